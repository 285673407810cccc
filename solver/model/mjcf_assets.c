/* MJCF assets: meshes and height fields, read when a geom first asks for them.
 *
 * A mesh's vertices are moved by -refpos, turned by the inverse of refquat, then scaled. Where
 * scaling and turning commute, the file is scaled as it is and the rest goes into the pose of the
 * shapes; else the vertices themselves are moved. MuJoCo puts the centre and the principal axes of
 * a mesh into the geom's frame and undoes it by the geom's pose; the surface lies where the
 * document says, and so it does here. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/import.h"
#include "model/mesh_file.h"
#include "model/mjcf.h"

enum { PATH_SIZE = 4096, HFIELD_LIMIT = 1 << 24, MSH_HEADER_BYTES = 16 };

static const mjcf_words MESH = {
    .used = "name class file scale inertia refpos refquat vertex face content_type maxhullvert",
    .silent = "smoothnormal normal texcoord material",
    .zero = "builtin params",
};

static const mjcf_words HFIELD = {.used = "name file nrow ncol size elevation content_type"};

/* The name of an asset without one: its file's, without folder and extension. */
static tb_status asset_name(mjcf *m, const xmlNode *node, const char **name)
{
    *name = tb_xml_attribute(node, "name");
    const char *file = tb_xml_attribute(node, "file");
    if (*name != NULL && (*name)[0] != 0) return TB_OK;
    *name = NULL;
    if (file == NULL) return TB_OK;
    const char *start = file;
    for (const char *p = file; *p != 0; p++)
        if (*p == '/' || *p == '\\') start = p + 1;
    const char *dot = strrchr(start, '.');
    char stem[PATH_SIZE];
    snprintf(stem, sizeof stem, "%.*s", dot != NULL ? (int)(dot - start) : (int)strlen(start),
             start);
    *name = tb_names_keep(&m->names, stem);
    return *name != NULL ? TB_OK : tb_fail_memory(m->error, strlen(stem), "a name");
}

static tb_status enter_name(mjcf *m, const xmlNode *node, tb_handle_kind kind, const char *name,
                            int32_t index)
{
    if (name == NULL) return TB_OK;
    if (tb_names_find(&m->names, kind, name) >= 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "name",
                           "the name '%.100s' is used twice", name);
    const char *kept = tb_names_keep(&m->names, name);
    if (kept == NULL || !tb_names_insert(&m->names, kind, kept, index))
        return tb_fail_memory(m->error, strlen(name), "a name");
    return TB_OK;
}

static tb_status read_mesh(mjcf *m, const xmlNode *node)
{
    mjcf_mesh mesh = {.node = node};
    mjcf_element element;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c))
        return tb_xml_fail(
            m->error, tb_xml_is(c, "plugin") ? TB_UNSUPPORTED : TB_INVALID_ARGUMENT, c, NULL,
            tb_xml_is(c, "plugin") ? "plugins are not supported" : "unknown element in 'mesh'");
    MJCF_TRY(mjcf_open(m, node, "mesh", m->main_class, &MESH, &element));
    MJCF_TRY(asset_name(m, node, &mesh.name));
    MJCF_TRY(enter_name(m, node, TB_HANDLE_MESH, mesh.name, m->number_of_meshes));
    const bool has_file = tb_xml_attribute(node, "file") != NULL;
    const bool has_vertices = tb_xml_attribute(node, "vertex") != NULL;
    if (has_file && has_vertices)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "vertex",
                           "both file and vertex are given");
    if (!has_file && !has_vertices)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "file",
                           "neither file nor vertex is given");
    if (has_file) {
        /* a file that is not there is said now, also where only unseen geoms use it */
        char path[PATH_SIZE];
        MJCF_TRY(mjcf_path(m, node, m->mesh_directory, tb_xml_attribute(node, "file"), path,
                           sizeof path));
        if (!tb_import_has(m->options, path))
            return tb_xml_fail(m->error, TB_NOT_FOUND, node, "file", "cannot read file '%.300s'",
                               path);
    }
    MJCF_TRY(mjcf_grow(m, (void **)&m->meshes, m->number_of_meshes, &m->mesh_capacity,
                       sizeof *m->meshes));
    m->meshes[m->number_of_meshes++] = mesh;
    return TB_OK;
}

/* ---- MSH: MuJoCo's own binary mesh ---- */

static int32_t read_int(const unsigned char *bytes)
{
    const uint32_t u = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                       (uint32_t)bytes[3] << 24;
    int32_t i;
    memcpy(&i, &u, sizeof i);
    return i;
}

static float read_float(const unsigned char *bytes)
{
    const int32_t i = read_int(bytes);
    float f;
    memcpy(&f, &i, sizeof f);
    return f;
}

/* Counts of vertices, normals, texture coordinates and faces, then their data, 32 bits each. */
static tb_status parse_msh(mjcf *m, const xmlNode *node, const tb_bytes *file, const char *path,
                           tb_mesh_data *data)
{
    int32_t n[4] = {0};
    if (file->size >= MSH_HEADER_BYTES)
        for (int i = 0; i < 4; i++) n[i] = read_int(file->base + 4 * i);
    bool good = file->size >= MSH_HEADER_BYTES && n[0] >= 4;
    for (int i = 0; i < 4; i++) good = good && n[i] >= 0 && n[i] <= TB_MESH_FILE_LIMIT;
    const size_t expected = good ? MSH_HEADER_BYTES +
                                       12 * ((size_t)n[0] + (size_t)n[1] + (size_t)n[3]) +
                                       8 * (size_t)n[2]
                                 : 0;
    if (!good || expected != file->size)
        return tb_xml_fail(m->error, TB_DATA_LOSS, node, "file",
                           "'%.200s' is no MSH file: %zu bytes do not fit its counts", path,
                           file->size);
    data->number_of_vertices = n[0];
    data->number_of_triangles = n[3];
    data->vertices = malloc(3 * (size_t)n[0] * sizeof *data->vertices);
    data->triangles = malloc((3 * (size_t)n[3] + 1) * sizeof *data->triangles);
    if (data->vertices == NULL || data->triangles == NULL)
        return tb_fail_memory(m->error, file->size, "a mesh");
    const unsigned char *p = file->base + MSH_HEADER_BYTES;
    for (size_t i = 0; i < 3 * (size_t)n[0]; i++, p += 4) data->vertices[i] = (double)read_float(p);
    p += 12 * (size_t)n[1] + 8 * (size_t)n[2];
    for (size_t i = 0; i < 3 * (size_t)n[3]; i++, p += 4) data->triangles[i] = read_int(p);
    return TB_OK;
}

/* ---- loading a mesh ---- */

static tb_status parse_file(mjcf *m, const xmlNode *node, tb_mesh_data *data)
{
    char path[PATH_SIZE];
    const char *name = tb_xml_attribute(node, "file");
    const char *type = tb_xml_attribute(node, "content_type");
    tb_bytes file = {0};
    tb_error refusal = {0};
    MJCF_TRY(mjcf_path(m, node, m->mesh_directory, name, path, sizeof path));
    tb_status status = tb_import_read(m->options, path, m->options->file_limit, &file, &refusal);
    if (status != TB_OK) return mjcf_refused(m, node, &refusal);

    const char *dot = strrchr(path, '.');
    const bool msh = type != NULL ? strcmp(type, "model/vnd.mujoco.msh") == 0
                                  : dot != NULL && strcasecmp(dot, ".msh") == 0;
    if (msh) {
        status = parse_msh(m, node, &file, path, data);
    } else {
        const char *bytes = (const char *)file.base;
        if (type != NULL && strcmp(type, "model/obj") == 0)
            status = tb_obj_parse(bytes, file.size, path, data, &refusal);
        else if (type != NULL && strcmp(type, "model/stl") == 0)
            status = tb_stl_parse(bytes, file.size, path, data, &refusal);
        else
            status = tb_mesh_data_parse(bytes, file.size, path, data, &refusal);
        if (status != TB_OK) status = mjcf_refused(m, node, &refusal);
    }
    tb_bytes_free(&file);
    return status;
}

static tb_status parse_inline(mjcf *m, const xmlNode *node, tb_mesh_data *data)
{
    double *faces = NULL;
    int32_t count = 0;
    MJCF_TRY(tb_xml_number_list(node, "vertex", &data->vertices, &count, m->error));
    if (count % 3 != 0 || count < 12)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "vertex",
                           "vertex has %d numbers, not 3 for each of at least 4 vertices",
                           (int)count);
    data->number_of_vertices = count / 3;

    MJCF_TRY(tb_xml_number_list(node, "face", &faces, &count, m->error));
    tb_status status = TB_OK;
    if (count % 3 != 0)
        status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "face",
                             "face has %d numbers, not 3 for each face", (int)count);
    data->number_of_triangles = count / 3;
    if (status == TB_OK) {
        data->triangles = malloc(((size_t)count + 1) * sizeof *data->triangles);
        if (data->triangles == NULL) status = tb_fail_memory(m->error, (size_t)count, "a mesh");
    }
    for (int32_t i = 0; status == TB_OK && i < count; i++) {
        if (!(faces[i] >= 0 && faces[i] < data->number_of_vertices && faces[i] == floor(faces[i])))
            status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "face",
                                 "face has %g, not the number of one of %d vertices", faces[i],
                                 (int)data->number_of_vertices);
        else
            data->triangles[i] = (int32_t)faces[i];
    }
    free(faces);
    return status;
}

/* Moves, turns and scales; what can stay rigid goes into *offset. */
static void place_vertices(tb_mesh_data *data, tb_vec3 refpos, tb_quaternion refquat,
                           const double scale[3], mjcf_pose *offset)
{
    /* MuJoCo reads all vertices in single precision;
     * masses agree with it to the last digit only so */
    for (size_t i = 0; i < 3 * (size_t)data->number_of_vertices; i++)
        data->vertices[i] = (double)(float)data->vertices[i];

    const tb_quaternion back = tb_q_conjugate(refquat);
    const bool turned = tb_abs(refquat.w) < 1 - 1e-15;
    const bool even = scale[0] == scale[1] && scale[1] == scale[2];
    *offset = mjcf_pose_identity();
    if (!turned || even) {
        /* S R' (v - p) = R' (S v) - S R' p */
        const tb_vec3 p = tb_q_rotate(back, refpos);
        offset->orientation = back;
        offset->position = tb_v3(-scale[0] * p.x, -scale[1] * p.y, -scale[2] * p.z);
    }
    for (size_t i = 0; i < (size_t)data->number_of_vertices; i++) {
        tb_vec3 v = tb_v3_load(data->vertices + 3 * i);
        if (turned && !even) v = tb_q_rotate(back, tb_v3_sub(v, refpos));
        tb_v3_store(data->vertices + 3 * i, tb_v3(v.x * scale[0], v.y * scale[1], v.z * scale[2]));
    }
    if (scale[0] * scale[1] * scale[2] < 0)
        for (size_t i = 0; i < (size_t)data->number_of_triangles; i++) {
            const int32_t swap = data->triangles[3 * i + 1];
            data->triangles[3 * i + 1] = data->triangles[3 * i + 2];
            data->triangles[3 * i + 2] = swap;
        }
}

static tb_status load_mesh(mjcf *m, mjcf_mesh *mesh, tb_mesh_data *data)
{
    static const tb_mesh_inertia KINDS[] = {TB_MESH_INERTIA_CONVEX, TB_MESH_INERTIA_EXACT,
                                            TB_MESH_INERTIA_LEGACY, TB_MESH_INERTIA_SHELL};
    const xmlNode *node = mesh->node;
    mjcf_element element;
    double scale[3] = {1, 1, 1}, refpos[3] = {0}, refquat[4] = {1, 0, 0, 0};
    int32_t kind = m->exact_mesh_inertia ? 1 : 2, hull_vertices = -1;
    MJCF_TRY(mjcf_open(m, node, "mesh", m->main_class, NULL, &element));
    MJCF_TRY(mjcf_numbers(m, &element, "scale", 3, 3, scale, NULL));
    MJCF_TRY(mjcf_numbers(m, &element, "refpos", 3, 3, refpos, NULL));
    MJCF_TRY(mjcf_numbers(m, &element, "refquat", 4, 4, refquat, NULL));
    MJCF_TRY(mjcf_choice(m, &element, "inertia", "convex exact legacy shell", &kind));
    MJCF_TRY(mjcf_integer(m, &element, "maxhullvert", &hull_vertices));
    for (int i = 0; i < 3; i++)
        if (scale[i] == 0)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "scale", "scale has a zero");
    const tb_quaternion turn = tb_q_load(refquat);
    if (turn.w == 0 && turn.x == 0 && turn.y == 0 && turn.z == 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "refquat", "refquat is zero");
    if (hull_vertices > 0)
        MJCF_TRY(mjcf_note_past(m, node, "maxhullvert", "is not needed: the hull is kept whole"));

    MJCF_TRY(tb_xml_attribute(node, "file") != NULL ? parse_file(m, node, data)
                                                    : parse_inline(m, node, data));
    place_vertices(data, tb_v3_load(refpos), tb_q_normalize(turn), scale, &mesh->offset);

    tb_error refusal = {0};
    tb_mesh_def def = tb_mesh_defaults();
    def.name = mesh->name;
    def.vertices = data->vertices;
    def.number_of_vertices = data->number_of_vertices;
    def.triangles = data->number_of_triangles > 0 ? data->triangles : NULL;
    def.number_of_triangles = data->number_of_triangles;
    def.inertia = KINDS[kind];
    if (tb_scene_add_mesh(m->scene, &def, &mesh->handle, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    mesh->loaded = true;
    return TB_OK;
}

tb_status mjcf_use_mesh(mjcf *m, const xmlNode *node, const char *name, const mjcf_mesh **mesh)
{
    const int32_t index = tb_names_find(&m->names, TB_HANDLE_MESH, name);
    if (index < 0)
        return tb_xml_fail(m->error, TB_NOT_FOUND, node, "mesh", "there is no mesh '%.100s'", name);
    *mesh = &m->meshes[index];
    if (m->meshes[index].loaded) return TB_OK;
    tb_mesh_data data = {0};
    const tb_status status = load_mesh(m, &m->meshes[index], &data);
    tb_mesh_data_free(&data);
    return status;
}

/* ---- height fields ---- */

static tb_status read_hfield(mjcf *m, const xmlNode *node)
{
    mjcf_hfield hfield = {.node = node};
    MJCF_TRY(mjcf_check_attributes(m, node, &HFIELD));
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    MJCF_TRY(asset_name(m, node, &hfield.name));
    MJCF_TRY(enter_name(m, node, TB_HANDLE_HEIGHT_FIELD, hfield.name, m->number_of_hfields));
    MJCF_TRY(mjcf_grow(m, (void **)&m->hfields, m->number_of_hfields, &m->hfield_capacity,
                       sizeof *m->hfields));
    m->hfields[m->number_of_hfields++] = hfield;
    return TB_OK;
}

/* MuJoCo's own file: rows, columns, then 32-bit floats, the first row at the smallest y. */
static tb_status parse_hfield_file(mjcf *m, const xmlNode *node, int32_t *rows, int32_t *columns,
                                   double **heights)
{
    char path[PATH_SIZE];
    tb_bytes file = {0};
    tb_error refusal = {0};
    const char *name = tb_xml_attribute(node, "file");
    const char *type = tb_xml_attribute(node, "content_type");
    const char *dot = strrchr(name, '.');
    if ((type != NULL && strcmp(type, "image/png") == 0) ||
        (type == NULL && dot != NULL && strcasecmp(dot, ".png") == 0))
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "file",
                           "height fields from PNG images are not supported: '%.200s'", name);
    MJCF_TRY(mjcf_path(m, node, m->mesh_directory, name, path, sizeof path));
    if (tb_import_read(m->options, path, m->options->file_limit, &file, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    tb_status status = TB_OK;
    if (file.size >= 8) {
        *rows = read_int(file.base);
        *columns = read_int(file.base + 4);
    }
    if (*rows < 2 || *columns < 2 || *rows > HFIELD_LIMIT / *columns ||
        file.size != 8 + 4 * (size_t)*rows * (size_t)*columns) {
        status =
            tb_xml_fail(m->error, TB_DATA_LOSS, node, "file",
                        "'%.200s' is no height field: %zu bytes do not fit %d rows by %d columns",
                        path, file.size, (int)*rows, (int)*columns);
    } else {
        const size_t count = (size_t)*rows * (size_t)*columns;
        *heights = malloc(count * sizeof **heights);
        if (*heights == NULL) status = tb_fail_memory(m->error, count, "a height field");
        for (size_t i = 0; status == TB_OK && i < count; i++) {
            (*heights)[i] = (double)read_float(file.base + 8 + 4 * i);
            if (!isfinite((*heights)[i]))
                status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "file",
                                     "'%.200s' has a height that is not finite", path);
        }
    }
    tb_bytes_free(&file);
    return status;
}

/* In the document the first row lies at the largest y. */
static tb_status parse_hfield_text(mjcf *m, const xmlNode *node, int32_t *rows, int32_t *columns,
                                   double **heights)
{
    double *elevation = NULL;
    int32_t count = 0;
    MJCF_TRY(tb_xml_integer(node, "nrow", rows, m->error));
    MJCF_TRY(tb_xml_integer(node, "ncol", columns, m->error));
    if (*rows < 2 || *columns < 2 || *rows > HFIELD_LIMIT / *columns)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, *rows < 2 ? "nrow" : "ncol",
                           "%d rows by %d columns are not 2 by 2 to %d points", (int)*rows,
                           (int)*columns, HFIELD_LIMIT);
    const size_t total = (size_t)*rows * (size_t)*columns;
    MJCF_TRY(tb_xml_number_list(node, "elevation", &elevation, &count, m->error));
    tb_status status = TB_OK;
    if (elevation != NULL && (size_t)count != total)
        status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "elevation",
                             "elevation has %d numbers, not %zu", (int)count, total);
    if (status == TB_OK) {
        *heights = calloc(total, sizeof **heights);
        if (*heights == NULL) status = tb_fail_memory(m->error, total, "a height field");
    }
    const size_t width = (size_t)*columns;
    for (size_t r = 0; status == TB_OK && elevation != NULL && r < (size_t)*rows; r++)
        memcpy(*heights + ((size_t)*rows - 1 - r) * width, elevation + r * width,
               width * sizeof **heights);
    free(elevation);
    return status;
}

static tb_status load_hfield(mjcf *m, mjcf_hfield *hfield, double **heights)
{
    const xmlNode *node = hfield->node;
    double size[4] = {0};
    int32_t rows = 0, columns = 0;
    if (tb_xml_attribute(node, "size") == NULL)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "size",
                           "attribute 'size' is missing");
    MJCF_TRY(tb_xml_numbers(node, "size", 4, 4, size, NULL, m->error));
    for (int i = 0; i < 4; i++)
        if (!(size[i] > 0))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "size",
                               "size %d is %g, not positive", i + 1, size[i]);
    if (tb_xml_attribute(node, "file") != NULL)
        MJCF_TRY(parse_hfield_file(m, node, &rows, &columns, heights));
    else
        MJCF_TRY(parse_hfield_text(m, node, &rows, &columns, heights));

    /* elevations are taken relative to their range */
    const size_t count = (size_t)rows * (size_t)columns;
    double lowest = (*heights)[0], highest = lowest;
    for (size_t i = 0; i < count; i++) {
        lowest = fmin(lowest, (*heights)[i]);
        highest = fmax(highest, (*heights)[i]);
    }
    const double range = highest > lowest ? highest - lowest : 1;
    for (size_t i = 0; i < count; i++) (*heights)[i] = size[2] * (((*heights)[i] - lowest) / range);

    tb_error refusal = {0};
    tb_height_field_def def = tb_height_field_defaults();
    def.name = hfield->name;
    def.heights = *heights;
    def.rows = rows;
    def.columns = columns;
    def.half_x = size[0];
    def.half_y = size[1];
    def.base = size[3];
    if (tb_scene_add_height_field(m->scene, &def, &hfield->handle, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    hfield->loaded = true;
    return TB_OK;
}

tb_status mjcf_use_hfield(mjcf *m, const xmlNode *node, const char *name, tb_handle *handle)
{
    const int32_t index = tb_names_find(&m->names, TB_HANDLE_HEIGHT_FIELD, name);
    if (index < 0)
        return tb_xml_fail(m->error, TB_NOT_FOUND, node, "hfield",
                           "there is no height field '%.100s'", name);
    if (!m->hfields[index].loaded) {
        double *heights = NULL;
        const tb_status status = load_hfield(m, &m->hfields[index], &heights);
        free(heights);
        if (status != TB_OK) return status;
    }
    *handle = m->hfields[index].handle;
    return TB_OK;
}

tb_status mjcf_read_assets(mjcf *m)
{
    static const char *const LOOKS = "has no effect on motion";
    const xmlNode *root = tb_xml_root(m->xml);
    for (const xmlNode *s = tb_xml_first_named(root, "asset"); s != NULL;
         s = tb_xml_next_named(s, "asset")) {
        MJCF_TRY(tb_xml_check_attributes(s, "", m->error));
        for (const xmlNode *c = tb_xml_first(s); c != NULL; c = tb_xml_next(c)) {
            const char *name = tb_xml_name(c);
            if (strcmp(name, "mesh") == 0)
                MJCF_TRY(read_mesh(m, c));
            else if (strcmp(name, "hfield") == 0)
                MJCF_TRY(read_hfield(m, c));
            else if (tb_xml_in_words("material texture skin", name))
                MJCF_TRY(mjcf_note_past(m, c, name, LOOKS));
            else if (strcmp(name, "model") == 0)
                return tb_xml_fail(m->error, TB_UNSUPPORTED, c, NULL,
                                   "models inside of models are not supported");
            else
                return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                                   "unknown element in 'asset'");
        }
    }
    return TB_OK;
}
