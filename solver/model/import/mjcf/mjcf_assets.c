/* MJCF meshes, read on a geom's first use, and the asset section.
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

#include "model/import/import.h"
#include "model/import/mesh/mesh_builtin.h"
#include "model/import/mesh/mesh_file.h"
#include "model/import/mjcf/mjcf.h"

enum { PATH_SIZE = 4096, BUILTIN_PARAMETERS = 16 };

static const mjcf_words MESH = {
    .used = "name class file scale inertia refpos refquat vertex face content_type maxhullvert "
            "builtin params",
    .silent = "smoothnormal normal texcoord material octree_maxdepth",
};

static const mjcf_words MATERIAL = {
    .used = "name class rgba",
    .silent = "texture texrepeat texuniform emission specular shininess reflectance metallic "
              "roughness",
};

tb_status mjcf_asset_name(mjcf *m, const xmlNode *node, const char **name)
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

tb_status mjcf_enter_name(mjcf *m, const xmlNode *node, tb_handle_kind kind, const char *name,
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

/* Whether the mesh is made from parameters. */
static bool is_builtin(const xmlNode *node)
{
    const char *builtin = tb_xml_attribute(node, "builtin");
    return builtin != NULL && strcmp(builtin, "none") != 0;
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
    MJCF_TRY(mjcf_asset_name(m, node, &mesh.name));
    MJCF_TRY(mjcf_enter_name(m, node, TB_HANDLE_MESH, mesh.name, m->number_of_meshes));
    const bool has_file = tb_xml_attribute(node, "file") != NULL;
    const bool has_vertices = tb_xml_attribute(node, "vertex") != NULL;
    const bool is_made = is_builtin(node);
    if (has_file + has_vertices + is_made > 1)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, has_vertices ? "vertex" : "builtin",
                           "more than one of file, vertex and builtin is given");
    if (!has_file && !has_vertices && !is_made)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "file",
                           "none of file, vertex and builtin is given");
    if (has_file) {
        /* report a missing file now, even if only visual geoms use it */
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

/* ---- loading a mesh ---- */

tb_status mjcf_parse_mesh_file(mjcf *m, const xmlNode *node, tb_mesh_data *data)
{
    char path[PATH_SIZE];
    const char *name = tb_xml_attribute(node, "file");
    const char *type = tb_xml_attribute(node, "content_type");
    tb_bytes file = {0};
    tb_error refusal = {0};
    MJCF_TRY(mjcf_path(m, node, m->mesh_directory, name, path, sizeof path));
    tb_status status = tb_import_read(m->options, path, m->options->file_limit, &file, &refusal);
    if (status != TB_OK) return mjcf_refused(m, node, &refusal);

    const char *bytes = (const char *)file.base;
    if (type != NULL && strcmp(type, "model/vnd.mujoco.msh") == 0)
        status = tb_msh_parse(bytes, file.size, path, data, &refusal);
    else if (type != NULL && strcmp(type, "model/obj") == 0)
        status = tb_obj_parse(bytes, file.size, path, data, &refusal);
    else if (type != NULL && strcmp(type, "model/stl") == 0)
        status = tb_stl_parse(bytes, file.size, path, data, &refusal);
    else
        status = tb_mesh_data_parse(bytes, file.size, path, data, &refusal);
    if (status != TB_OK) status = mjcf_refused(m, node, &refusal);
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

static tb_status make_builtin(mjcf *m, const xmlNode *node, tb_mesh_data *data)
{
    double parameters[BUILTIN_PARAMETERS] = {0};
    int32_t kind = 0, count = 0;
    tb_error refusal = {0};
    MJCF_TRY(tb_xml_choice(node, "builtin", TB_BUILTIN_MESH_WORDS, &kind, m->error));
    MJCF_TRY(tb_xml_numbers(node, "params", 1, BUILTIN_PARAMETERS, parameters, &count, m->error));
    if (tb_mesh_make_builtin((tb_builtin_mesh)kind, parameters, count, data, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}

/* Moves, turns and scales the vertices; a rigid part goes into *offset. */
static void place_vertices(tb_mesh_data *data, tb_vec3 refpos, tb_quaternion refquat,
                           const double scale[3], mjcf_pose *offset)
{
    /* MuJoCo reads all vertices in single precision;
     * masses agree with it to the last digit only so */
    for (size_t i = 0; i < 3 * (size_t)data->number_of_vertices; i++)
        data->vertices[i] = tb_round_to_float(data->vertices[i]);

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

/* Reads a mesh's data and its element's attributes; *def borrows from *data. */
static tb_status load_mesh(mjcf *m, const mjcf_mesh *mesh, tb_mesh_data *data, mjcf_pose *offset,
                           tb_mesh_def *def)
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
    if (hull_vertices != -1 && hull_vertices < 4)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "maxhullvert",
                           "maxhullvert is %d, not -1 or at least 4", (int)hull_vertices);

    if (is_builtin(node))
        MJCF_TRY(make_builtin(m, node, data));
    else
        MJCF_TRY(tb_xml_attribute(node, "file") != NULL ? mjcf_parse_mesh_file(m, node, data)
                                                        : parse_inline(m, node, data));
    place_vertices(data, tb_v3_load(refpos), tb_q_normalize(turn), scale, offset);

    *def = tb_mesh_defaults();
    def->name = mesh->name;
    def->vertices = data->vertices;
    def->number_of_vertices = data->number_of_vertices;
    def->triangles = data->number_of_triangles > 0 ? data->triangles : NULL;
    def->number_of_triangles = data->number_of_triangles;
    def->inertia = KINDS[kind];
    if (is_builtin(node) && strcmp(tb_xml_attribute(node, "builtin"), "plate") == 0)
        def->inertia = TB_MESH_INERTIA_SHELL; /* a plate encloses nothing */
    def->most_hull_vertices = hull_vertices > 0 ? hull_vertices : 0;
    return TB_OK;
}

static tb_status find_mesh(mjcf *m, const xmlNode *node, const char *name, mjcf_mesh **mesh)
{
    const int32_t index = tb_names_find(&m->names, TB_HANDLE_MESH, name);
    if (index < 0)
        return tb_xml_fail(m->error, TB_NOT_FOUND, node, "mesh", "there is no mesh '%.100s'", name);
    *mesh = &m->meshes[index];
    return TB_OK;
}

tb_status mjcf_use_mesh(mjcf *m, const xmlNode *node, const char *name, const mjcf_mesh **used)
{
    mjcf_mesh *mesh = NULL;
    tb_mesh_data data = {0};
    tb_mesh_def def;
    tb_error refusal = {0};
    MJCF_TRY(find_mesh(m, node, name, &mesh));
    *used = mesh;
    if (mesh->loaded) return TB_OK;
    tb_status status = load_mesh(m, mesh, &data, &mesh->offset, &def);
    if (status == TB_OK && tb_scene_add_mesh(m->scene, &def, &mesh->handle, &refusal) != TB_OK)
        status = mjcf_refused(m, mesh->node, &refusal);
    mesh->loaded = status == TB_OK;
    mesh->has_faces = data.number_of_triangles > 0;
    tb_mesh_data_free(&data);
    return status;
}

tb_status mjcf_measure_mesh(mjcf *m, const xmlNode *node, const char *name,
                            const mjcf_extent **extent)
{
    mjcf_mesh *mesh = NULL;
    mjcf_pose offset;
    tb_mesh_data data = {0};
    tb_mesh_def def;
    MJCF_TRY(find_mesh(m, node, name, &mesh));
    *extent = &mesh->extent;
    if (mesh->measured) return TB_OK;
    tb_status status = load_mesh(m, mesh, &data, &offset, &def);
    if (status == TB_OK) {
        /* MuJoCo measures where the vertices lie in the geom: no part of their way is left over */
        for (size_t i = 0; i < (size_t)data.number_of_vertices; i++) {
            const tb_vec3 v = tb_v3_load(data.vertices + 3 * i);
            tb_v3_store(data.vertices + 3 * i,
                        tb_v3_add(offset.position, tb_q_rotate(offset.orientation, v)));
        }
        status = mjcf_find_extent(m, mesh->node, &def, &mesh->extent);
    }
    mesh->measured = status == TB_OK;
    tb_mesh_data_free(&data);
    return status;
}

/* ---- materials ---- */

/* Keeps a material's colour under its name; textures and gloss are not read. */
static tb_status read_material(mjcf *m, const xmlNode *node)
{
    mjcf_element element;
    mjcf_material material = {.colour = {1, 1, 1, 1}};
    const char *name = tb_xml_attribute(node, "name");
    MJCF_TRY(mjcf_open(m, node, "material", m->main_class, &MATERIAL, &element));
    MJCF_TRY(mjcf_numbers(m, &element, "rgba", 1, 4, material.colour, NULL));
    if (name == NULL || tb_names_find(&m->names, MJCF_MATERIAL_KIND, name) >= 0) return TB_OK;
    const char *kept = tb_names_keep(&m->names, name);
    if (kept == NULL ||
        !tb_names_insert(&m->names, MJCF_MATERIAL_KIND, kept, m->number_of_materials))
        return tb_fail_memory(m->error, strlen(name), "a material");
    MJCF_TRY(mjcf_grow(m, (void **)&m->materials, m->number_of_materials, &m->material_capacity,
                       sizeof *m->materials));
    m->materials[m->number_of_materials++] = material;
    return TB_OK;
}

/* ---- the section ---- */

tb_status mjcf_read_assets(mjcf *m)
{
    static const char *const LOOKS = "has no effect on motion";
    const xmlNode *root = tb_xml_root(m->xml);
    for (const xmlNode *s = tb_xml_first_named(root, "asset"); s != NULL;
         s = tb_xml_next_named(s, "asset")) {
        MJCF_TRY(tb_xml_check_attributes(s, "", m->error));
        for (const xmlNode *c = tb_xml_first(s); c != NULL; c = tb_xml_next(c)) {
            const char *name = tb_xml_name(c);
            mjcf_enter(m, c);
            if (strcmp(name, "mesh") == 0)
                MJCF_TRY(read_mesh(m, c));
            else if (strcmp(name, "hfield") == 0)
                MJCF_TRY(mjcf_read_hfield(m, c));
            else if (strcmp(name, "material") == 0)
                MJCF_TRY(read_material(m, c));
            else if (tb_xml_in_words("texture skin", name))
                MJCF_TRY(mjcf_note_past(m, c, name, LOOKS));
            else if (strcmp(name, "model") == 0)
                MJCF_TRY(mjcf_note_model(m, c));
            else
                return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                                   "unknown element in 'asset'");
        }
    }
    return TB_OK;
}
