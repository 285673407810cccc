/* Scenes of soft bodies as scenes of the library: the importer of <soft>. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "grid/grid_internal.h"
#include "model/import/import.h"
#include "model/import/mesh/mesh_file.h"
#include "model/import/xml.h"
#include "model/model_internal.h"
#include "model/soft.h"

static tb_status make_wall(tb_scene *scene, const tb_soft_obstacle *o, double friction,
                           tb_error *error)
{
    static const tb_shape_type types[] = {TB_SHAPE_BOX, TB_SHAPE_SPHERE, TB_SHAPE_CYLINDER,
                                          TB_SHAPE_CAPSULE, TB_SHAPE_PLANE};
    tb_shape_def shape = tb_shape_defaults();
    double position[3], orientation[4];
    const bool moves = o->velocity[0] != 0 || o->velocity[1] != 0 || o->velocity[2] != 0;
    tb_v3_store(position, o->shape.pose.position);
    tb_q_store(orientation, tb_q_from_matrix(&o->shape.pose.rotation));
    shape.name = o->name;
    shape.type = types[o->shape.kind];
    shape.surface.friction = friction;
    memcpy(shape.size, o->shape.size, sizeof shape.size);
    if (moves) {
        tb_body_def body = tb_body_defaults();
        body.name = o->name;
        body.kinematic = true;
        memcpy(body.position, position, sizeof position);
        memcpy(body.orientation, orientation, sizeof orientation);
        const tb_status status = tb_scene_add_body(scene, &body, &shape.body, error);
        if (status != TB_OK) return status;
    } else {
        memcpy(shape.position, position, sizeof position);
        memcpy(shape.orientation, orientation, sizeof orientation);
    }
    return tb_scene_add_shape(scene, &shape, NULL, error);
}

/* Loads the rigid bodies that the scene includes. */
static tb_status load_rigid(const tb_soft_scene *soft, const char *path,
                            const tb_import_options *options, tb_scene **scene, tb_error *error)
{
    char joined[4096];
    tb_bytes file = {0};
    if (options->no_files)
        return tb_fail_file(error, TB_INVALID_ARGUMENT, path, soft->rigid_line, "rigid",
                            "the file '%.200s' is outside of the text, and no files may be read",
                            soft->rigid);
    tb_status status = tb_path_join(path, soft->rigid, joined, sizeof joined);
    if (status != TB_OK)
        return tb_fail_file(error, TB_INVALID_ARGUMENT, path, soft->rigid_line, "rigid",
                            "the path '%.200s' is too long", soft->rigid);
    status = tb_import_read(options, joined, options->file_limit, &file, error);
    if (status == TB_OK && tb_soft_is_scene((const char *)file.base, file.size))
        status =
            tb_fail_file(error, TB_INVALID_ARGUMENT, path, soft->rigid_line, "rigid",
                         "'%.200s' is a scene of soft bodies; rigid ones are needed", soft->rigid);
    tb_bytes_free(&file);
    if (status != TB_OK) return status;
    return tb_scene_load(joined, options, scene, error);
}

/* ---- meshes in files ---- */

/* Numbers as text, after one another; *text is malloc'ed. */
static tb_status put_numbers(tb_bytes *text, const double *numbers, const int32_t *indices,
                             int32_t count)
{
    tb_status status = TB_OK;
    text->size = 0;
    for (int32_t i = 0; status == TB_OK && i < count; i++) {
        char one[40];
        const int length = numbers != NULL ? snprintf(one, sizeof one, "%.17g ", numbers[i])
                                           : snprintf(one, sizeof one, "%d ", indices[i]);
        status = tb_bytes_append(text, one, (size_t)length);
    }
    if (status == TB_OK) status = tb_bytes_append(text, "", 1);
    return status;
}

static tb_status read_mesh_file(const xmlNode *node, const char *file, const char *path,
                                const tb_import_options *options, tb_mesh_data *mesh,
                                tb_error *error)
{
    char joined[4096];
    tb_bytes bytes = {0};
    tb_soft_mesh *closed = NULL;
    tb_error cause = {0};
    if (options->no_files)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "file",
                           "the file '%.200s' is outside of the text, and no files may be read",
                           file);
    tb_status status = tb_path_join(path, file, joined, sizeof joined);
    if (status != TB_OK)
        return tb_xml_fail(error, status, node, "file", "the path '%.200s' is too long", file);
    status = tb_import_read(options, joined, options->file_limit, &bytes, error);
    if (status == TB_OK)
        status = tb_mesh_data_parse((const char *)bytes.base, bytes.size, joined, mesh, error);
    tb_bytes_free(&bytes);
    if (status != TB_OK) return status;
    /* whether it is closed: the message has the name of the mesh's own file */
    status = tb_soft_mesh_create(mesh->vertices, mesh->number_of_vertices, mesh->triangles,
                                 mesh->number_of_triangles, &closed, &cause);
    tb_soft_mesh_release(closed);
    if (status == TB_OK) return TB_OK;
    return tb_fail_file(error, status, joined, 0, "mesh", "%s", cause.message);
}

/* Puts the triangles of a mesh's file in the place of its name. */
static tb_status put_mesh(xmlNode *node, const char *path, const tb_import_options *options,
                          tb_error *error)
{
    const char *file = tb_xml_attribute(node, "file");
    tb_mesh_data mesh = {0};
    tb_bytes vertices = {0}, faces = {0};
    if (tb_xml_attribute(node, "vertex") != NULL || tb_xml_attribute(node, "face") != NULL)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "file",
                           "a mesh is from a file or from 'vertex' and 'face'");
    tb_status status = read_mesh_file(node, file, path, options, &mesh, error);
    if (status == TB_OK) {
        status = put_numbers(&vertices, mesh.vertices, NULL, 3 * mesh.number_of_vertices);
        if (status == TB_OK)
            status = put_numbers(&faces, NULL, mesh.triangles, 3 * mesh.number_of_triangles);
        if (status != TB_OK ||
            xmlSetProp(node, BAD_CAST "vertex", BAD_CAST vertices.base) == NULL ||
            xmlSetProp(node, BAD_CAST "face", BAD_CAST faces.base) == NULL)
            status = tb_fail_memory(error, vertices.size + faces.size, "a mesh as text");
        xmlUnsetProp(node, BAD_CAST "file");
    }
    tb_bytes_free(&vertices);
    tb_bytes_free(&faces);
    tb_mesh_data_free(&mesh);
    return status;
}

/* Reads the scene with the meshes that are in files. *inside is the text with all meshes; it stays
 * empty if no mesh is in a file. */
static tb_status read_scene(const char *text, size_t size, const char *path,
                            const tb_import_options *options, tb_soft_scene *soft, tb_bytes *inside,
                            tb_error *error)
{
    tb_xml *xml = NULL;
    int32_t count = 0;
    tb_status status = tb_xml_parse(text, size, path, options, &xml, error);
    if (status != TB_OK) return status;
    for (xmlNode *e = tb_xml_first_named(tb_xml_root(xml), "mesh"); status == TB_OK && e != NULL;
         e = tb_xml_next_named(e, "mesh")) {
        if (tb_xml_attribute(e, "file") == NULL) continue;
        status = put_mesh(e, path, options, error);
        count++;
    }
    if (status == TB_OK) status = tb_soft_scene_read_tree(tb_xml_root(xml), soft, error);
    if (status == TB_OK && count > 0) {
        xmlChar *all = NULL;
        int length = 0;
        xmlDocDumpMemory(xml->document, &all, &length);
        status = all != NULL ? tb_bytes_append(inside, all, (size_t)length) : TB_RESOURCE_EXHAUSTED;
        if (status != TB_OK) status = tb_fail_memory(error, 0, "a scene with its meshes");
        xmlFree(all);
    }
    tb_xml_destroy(xml);
    return status;
}

/* Shapes that soft bodies may touch have a distance (shape.h). */
static tb_status check_shapes(const tb_scene *scene, tb_error *error)
{
    int32_t count = 0;
    for (int32_t i = 0; i < scene->number_of_shapes; i++) {
        const tb_shape_def *s = scene->shapes + i;
        if (s->category == 0 && s->mask == 0) continue;
        count++;
        if (s->type == TB_SHAPE_MESH || s->type == TB_SHAPE_HEIGHT_FIELD)
            return tb_fail_field(error, TB_UNSUPPORTED, "rigid",
                                 "shape '%s' (number %d) is a %s: soft bodies touch convex shapes",
                                 s->name != NULL ? s->name : "", (int)i,
                                 s->type == TB_SHAPE_MESH ? "triangle mesh" : "height field");
    }
    if (count <= TB_SOFT_MOST_OBSTACLES) return TB_OK;
    return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "rigid",
                         "%d shapes collide; soft bodies touch at most %d", (int)count,
                         TB_SOFT_MOST_OBSTACLES);
}

static tb_status set_options(tb_scene *scene, const tb_soft_scene *soft, tb_error *error)
{
    tb_scene_def options = scene->options;
    options.name = soft->name;
    options.dt = soft->options.dt;
    memcpy(options.gravity, soft->gravity, sizeof options.gravity);
    return tb_scene_set_options(scene, &options, error);
}

tb_status tb_soft_import(const char *text, size_t size, const char *path,
                         const tb_import_options *options, tb_scene **scene, tb_error *error)
{
    tb_soft_scene *soft = calloc(1, sizeof *soft);
    tb_bytes inside = {0};
    *scene = NULL;
    if (soft == NULL) return tb_fail_memory(error, sizeof *soft, "a scene of soft bodies");
    tb_status status = read_scene(text, size, path, options, soft, &inside, error);
    if (status == TB_OK && inside.size > 0) {
        text = (const char *)inside.base;
        size = inside.size;
    }
    if (status == TB_OK)
        status = soft->rigid[0] != 0 ? load_rigid(soft, path, options, scene, error)
                                     : tb_scene_create(NULL, scene, error);
    if (status == TB_OK) status = set_options(*scene, soft, error);
    for (int32_t i = 0; status == TB_OK && i < soft->number_of_obstacles; i++)
        status = make_wall(*scene, soft->obstacles + i, soft->options.friction, error);
    if (status == TB_OK) status = check_shapes(*scene, error);
    if (status == TB_OK) status = tb_scene_set_soft(*scene, text, size, error);
    tb_soft_scene_clear(soft);
    free(soft);
    tb_bytes_free(&inside);
    return status;
}
