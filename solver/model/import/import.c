/* Entry point of the importers: loads a scene from a path. The content decides the file's
 * format; the extension only distinguishes mesh formats. */
#include "model/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/archive.h"
#include "model/import/mjz.h"
#include "model/import/mesh/mesh_file.h"
#include "model/model.h"
#include "model/soft.h"
#include "model/import/xml.h"

/* Relative difference of volumes below which a mesh counts as its hull. */
static const double CONVEX_VOLUME_TOLERANCE = 1e-5;

tb_import_options tb_import_defaults(void)
{
    tb_import_options options = {0};
    options.file_limit = (size_t)256 << 20;
    options.depth_limit = 250; /* a rope of 200 links passes */
    options.density = 1000;
    options.fixed_base = true;
    return options;
}

tb_status tb_import_check(const tb_import_options *options, tb_error *error)
{
    if (options->file_limit == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "file_limit", "file_limit is 0 bytes");
    if (options->depth_limit < 1)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "depth_limit",
                             "depth_limit is %d, less than 1", (int)options->depth_limit);
    if (!(options->density > 0) || !isfinite(options->density))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "density",
                             "density is %g kg/m^3, not positive", options->density);
    return TB_OK;
}

void tb_import_report(const tb_scene *scene, const tb_log *log)
{
    const int32_t count = tb_scene_number_of_warnings(scene);
    for (int32_t i = 0; i < count; i++)
        tb_log_write(log, TB_LOG_WARNING, "%s", tb_scene_warning(scene, i));
}

/* ---- mesh files as assets ---- */

static void turn_triangles(tb_mesh_data *mesh)
{
    for (size_t i = 0; i < (size_t)mesh->number_of_triangles; i++) {
        int32_t *t = mesh->triangles + 3 * i;
        const int32_t swap = t[1];
        t[1] = t[2];
        t[2] = swap;
    }
}

/* Scales by axis; a reflection turns the triangles round, so that they still face outwards. */
static void scale_mesh(tb_mesh_data *mesh, const double scale[3])
{
    for (size_t i = 0; i < 3 * (size_t)mesh->number_of_vertices; i++)
        mesh->vertices[i] *= scale[i % 3];
    if (((scale[0] < 0) != (scale[1] < 0)) != (scale[2] < 0)) turn_triangles(mesh);
}

tb_status tb_scene_load_mesh(tb_scene *scene, const char *path, const char *name,
                             const double scale[3], tb_mesh_inertia inertia,
                             const tb_import_options *options, tb_handle *handle, tb_error *error)
{
    const tb_import_options defaults = tb_import_defaults();
    if (options == NULL) options = &defaults;
    tb_bytes file = {0};
    tb_mesh_data mesh = {0};

    tb_status status = tb_import_check(options, error);
    for (int i = 0; status == TB_OK && scale != NULL && i < 3; i++)
        if (!(fabs(scale[i]) <= TB_MESH_COORDINATE_LIMIT) || scale[i] == 0)
            status = tb_fail_field(error, TB_INVALID_ARGUMENT, "scale",
                                   "mesh '%s': scale %g is zero or not finite", path, scale[i]);
    if (status != TB_OK) goto done;
    if (options->no_files) {
        status = tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, "file",
                              "the mesh is outside of the text, and no files may be read");
        goto done;
    }
    status = tb_import_read(options, path, options->file_limit, &file, error);
    if (status != TB_OK) goto done;
    status = tb_mesh_data_parse((const char *)file.base, file.size, path, &mesh, error);
    if (status != TB_OK) goto done;
    if (scale != NULL) scale_mesh(&mesh, scale);

    tb_mesh_def def = tb_mesh_defaults();
    def.name = name;
    def.vertices = mesh.vertices;
    def.number_of_vertices = mesh.number_of_vertices;
    def.triangles = mesh.number_of_triangles > 0 ? mesh.triangles : NULL;
    def.number_of_triangles = mesh.number_of_triangles;
    def.inertia = inertia;
    status = tb_scene_add_mesh(scene, &def, handle, error);
done:
    tb_mesh_data_free(&mesh);
    tb_bytes_free(&file);
    return status;
}

/* ---- mesh files as scenes ---- */

/* Properties of a mesh that decide on its shape. */
typedef struct mesh_kind {
    bool closed;  /* every edge has two triangles */
    bool inwards; /* triangles face inwards */
    bool convex;  /* its hull has the same volume */
} mesh_kind;

static double hull_volume(const tb_hull *hull)
{
    /* pyramids over fans of the faces, from a point inside */
    double volume = 0;
    const tb_vec3 o = tb_v3_load(hull->centre);
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        const int32_t *v = hull->face_vertices + hull->face_start[f];
        const int32_t n = hull->face_start[f + 1] - hull->face_start[f];
        const tb_vec3 a = tb_v3_sub(tb_v3_load(hull->vertices + 3 * (size_t)v[0]), o);
        for (int32_t i = 1; i + 1 < n; i++) {
            const tb_vec3 b = tb_v3_sub(tb_v3_load(hull->vertices + 3 * (size_t)v[i]), o);
            const tb_vec3 c = tb_v3_sub(tb_v3_load(hull->vertices + 3 * (size_t)v[i + 1]), o);
            volume += tb_v3_dot(a, tb_v3_cross(b, c)) / 6;
        }
    }
    return volume;
}

static tb_status mesh_kind_find(const tb_mesh_data *mesh, const char *path, mesh_kind *kind,
                                tb_error *error)
{
    tb_arena arena = {0};
    tb_hull hull;
    tb_triangle_mesh topology;
    tb_error cause = {0};
    memset(kind, 0, sizeof *kind);

    tb_status status =
        tb_hull_build(mesh->vertices, mesh->number_of_vertices, &arena, &hull, &cause);
    if (status == TB_OK && mesh->number_of_triangles > 0)
        status = tb_triangle_mesh_build(mesh->vertices, mesh->number_of_vertices, mesh->triangles,
                                        mesh->number_of_triangles, &arena, &topology, &cause);
    if (status != TB_OK) {
        tb_fail_file(error, status, path, 0, "mesh", "%s", cause.message);
        goto done;
    }
    if (mesh->number_of_triangles == 0) {
        kind->convex = true;
        goto done;
    }

    kind->closed = true;
    for (int32_t i = 0; i < 3 * topology.number_of_triangles; i++)
        if (topology.adjacent[i] < 0) kind->closed = false;
    const tb_mass_properties properties =
        tb_mesh_mass_properties(mesh->vertices, mesh->number_of_vertices, mesh->triangles,
                                mesh->number_of_triangles, TB_MESH_INERTIA_EXACT);
    const double volume = hull_volume(&hull);
    kind->inwards = kind->closed && properties.volume < 0;
    kind->convex =
        kind->closed && fabs(fabs(properties.volume) - volume) <= CONVEX_VOLUME_TOLERANCE * volume;
done:
    tb_arena_destroy(&arena);
    return status;
}

/* "mug" of "objects/mug.obj" */
static void stem_of(const char *path, char *stem, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(stem, size, "%s", slash != NULL ? slash + 1 : path);
    char *dot = strrchr(stem, '.');
    if (dot != NULL && dot != stem) *dot = 0;
}

static tb_status warn_about(tb_scene *scene, const char *path, const char *text, tb_error *error)
{
    char line[TB_ERROR_MESSAGE_SIZE];
    snprintf(line, sizeof line, "%.256s: %s", path, text);
    return tb_scene_warn(scene, line, error);
}

/* One free body of the mesh: its convex hull if the mesh is convex, else its triangles. */
static tb_status scene_from_mesh(tb_mesh_data *mesh, const char *path,
                                 const tb_import_options *options, tb_scene **scene,
                                 tb_error *error)
{
    char name[TB_ERROR_NAME_SIZE];
    stem_of(path, name, sizeof name);
    mesh_kind kind;
    tb_status status = mesh_kind_find(mesh, path, &kind, error);
    if (status != TB_OK) return status;
    if (kind.inwards) turn_triangles(mesh);

    tb_scene_def scene_def = tb_scene_defaults();
    tb_mesh_def mesh_def = tb_mesh_defaults();
    tb_body_def body_def = tb_body_defaults();
    tb_joint_def joint_def = tb_joint_defaults();
    tb_shape_def shape_def = tb_shape_defaults();
    scene_def.name = mesh_def.name = body_def.name = joint_def.name = shape_def.name = name;
    mesh_def.vertices = mesh->vertices;
    mesh_def.number_of_vertices = mesh->number_of_vertices;
    mesh_def.triangles = mesh->number_of_triangles > 0 ? mesh->triangles : NULL;
    mesh_def.number_of_triangles = mesh->number_of_triangles;
    mesh_def.inertia = kind.closed ? TB_MESH_INERTIA_EXACT : TB_MESH_INERTIA_CONVEX;
    joint_def.type = TB_JOINT_FREE;
    shape_def.type = kind.convex ? TB_SHAPE_CONVEX : TB_SHAPE_MESH;
    shape_def.density = options->density;

    status = tb_scene_create(&scene_def, scene, error);
    if (status == TB_OK) status = tb_scene_add_mesh(*scene, &mesh_def, &shape_def.asset, error);
    if (status == TB_OK) status = tb_scene_add_body(*scene, &body_def, &joint_def.body, error);
    if (status == TB_OK) status = tb_scene_add_joint(*scene, &joint_def, NULL, error);
    shape_def.body = joint_def.body;
    if (status == TB_OK) status = tb_scene_add_shape(*scene, &shape_def, NULL, error);
    if (status == TB_OK && kind.inwards)
        status = warn_about(*scene, path, "triangles face inwards: turned round", error);
    if (status == TB_OK && !kind.closed && mesh->number_of_triangles > 0)
        status =
            warn_about(*scene, path,
                       "the surface is not closed: mass and inertia are those of its hull", error);
    if (status == TB_OK) tb_import_report(*scene, &options->log);
    return status;
}

/* ---- scenes of any kind ---- */

static tb_status load_xml(const tb_bytes *file, const char *path, const tb_import_options *options,
                          tb_scene **scene, tb_error *error)
{
    const char *text = (const char *)file->base;
    tb_xml *xml = NULL;
    tb_status status = tb_xml_parse(text, file->size, path, options, &xml, error);
    if (status != TB_OK) return status;
    const xmlNode *root = tb_xml_root(xml);
    const bool mjcf = tb_xml_is(root, "mujoco"), urdf = tb_xml_is(root, "robot");
    const bool soft = tb_xml_is(root, "soft");
    if (!mjcf && !urdf && !soft)
        status = tb_xml_fail(error, TB_INVALID_ARGUMENT, root, NULL,
                             "the root element is neither 'mujoco', 'robot' nor 'soft'");
    tb_xml_destroy(xml);
    if (mjcf) status = tb_scene_load_mjcf(text, file->size, path, options, scene, error);
    if (urdf) status = tb_scene_load_urdf(text, file->size, path, options, scene, error);
    if (soft) status = tb_soft_import(text, file->size, path, options, scene, error);
    return status;
}

/* Whether the first character is '<', behind white space and a byte order mark (or in UTF-16). */
static bool looks_like_xml(const tb_bytes *file)
{
    size_t i = 0;
    if (file->size >= 3 && memcmp(file->base, "\xEF\xBB\xBF", 3) == 0) i = 3;
    if (file->size >= 2 &&
        (memcmp(file->base, "\xFF\xFE", 2) == 0 || memcmp(file->base, "\xFE\xFF", 2) == 0))
        return true;
    while (i < file->size && strchr(" \t\r\n", file->base[i]) != NULL && file->base[i] != 0) i++;
    return i < file->size && file->base[i] == '<';
}

tb_status tb_scene_load(const char *path, const tb_import_options *options, tb_scene **scene,
                        tb_error *error)
{
    const tb_import_options defaults = tb_import_defaults();
    if (options == NULL) options = &defaults;
    tb_bytes file = {0};
    tb_mesh_data mesh = {0};

    *scene = NULL;
    tb_status status = tb_import_check(options, error);
    if (status == TB_OK) status = tb_import_read(options, path, options->file_limit, &file, error);
    if (status != TB_OK) goto done;
    if (file.size == 0) {
        status = tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, NULL, "the file is empty");
    } else if (tb_archive_is(&file)) {
        status = tb_scene_load_mjz(&file, path, options, scene, error);
    } else if (looks_like_xml(&file) && !tb_mesh_is_dae(path)) {
        status = load_xml(&file, path, options, scene, error);
    } else {
        status = tb_mesh_data_parse((const char *)file.base, file.size, path, &mesh, error);
        if (status == TB_OK) status = scene_from_mesh(&mesh, path, options, scene, error);
    }
done:
    tb_mesh_data_free(&mesh);
    tb_bytes_free(&file);
    if (status != TB_OK && *scene != NULL) {
        tb_scene_destroy(*scene);
        *scene = NULL;
    }
    return status;
}
