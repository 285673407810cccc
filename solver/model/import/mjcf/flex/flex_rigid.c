/* MJCF flexcomps that are rigid: a surface on the parent body, its triangles rolled by a ball; and the contacts
 * of all flexcomps.
 *
 * All points of a rigid flex lie in its body, to which it adds no mass: it becomes a mesh with a radius. A
 * flex has no outer side, a mesh has: a closed surface is turned outwards. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/flex/flex.h"

static const mjcf_words FLEX = {
    .used = "name type dim file content_type rigid pos quat axisangle xyaxes zaxis euler scale "
            "radius point element",
    .silent = "count spacing cellcount dof mass inertiabox group material rgba texcoord flatskin "
              "origin",
};

static const mjcf_words CONTACT = {
    .used = "contype conaffinity condim priority friction",
    .silent = "internal selfcollide activelayers vertcollide passive",
    .soft = "solmix solref solimp margin gap",
};

/* Points and triangles of type="direct". */
static tb_status parse_direct(mjcf *m, const xmlNode *node, tb_mesh_data *data)
{
    tb_simplices body = {.dimension = 2};
    const tb_status status = flex_read_direct(m, node, &body);
    *data = (tb_mesh_data){.vertices = body.points,
                           .number_of_vertices = body.number_of_points,
                           .triangles = body.simplices,
                           .number_of_triangles = body.number_of_simplices};
    return status; /* the caller frees the mesh */
}

/* Surfaces are read; volumes, threads and grids have no use as rigid bodies in any known model. */
static tb_status parse_surface(mjcf *m, const xmlNode *node, tb_mesh_data *data)
{
    const char *type = tb_xml_attribute(node, "type");
    int32_t dim = 2;
    MJCF_TRY(tb_xml_integer(node, "dim", &dim, m->error));
    if (type != NULL && strcmp(type, "mesh") == 0) {
        if (tb_xml_attribute(node, "file") == NULL)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "file",
                               "attribute 'file' is missing");
        return mjcf_parse_mesh_file(m, node, data);
    }
    if (type != NULL && strcmp(type, "direct") == 0 && dim == 2) return parse_direct(m, node, data);
    return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "type",
                       "a rigid flexcomp of type=\"%.40s\" is not supported: mesh is, and direct "
                       "with dim=\"2\"",
                       type != NULL ? type : "grid");
}

tb_status flex_read_contact(mjcf *m, const xmlNode *node, tb_shape_def *def)
{
    double friction[3] = {1, 0.005, 0.0001}, category = 1, mask = 1;
    int32_t condim = 3;
    const xmlNode *source = node;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "plugin"))
            return tb_xml_fail(m->error, TB_UNSUPPORTED, c, NULL, "plugins are not supported");
        if (!tb_xml_in_words("contact edge elasticity pin", tb_xml_name(c)))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                               "unknown element in 'flexcomp'");
        if (!tb_xml_is(c, "contact")) continue;
        source = c;
        MJCF_TRY(mjcf_check_attributes(m, c, &CONTACT));
        MJCF_TRY(tb_xml_number(c, "contype", &category, m->error));
        MJCF_TRY(tb_xml_number(c, "conaffinity", &mask, m->error));
        MJCF_TRY(tb_xml_integer(c, "condim", &condim, m->error));
        MJCF_TRY(tb_xml_integer(c, "priority", &def->priority, m->error));
        MJCF_TRY(tb_xml_numbers(c, "friction", 1, 3, friction, NULL, m->error));
    }
    def->category = (uint32_t)(int64_t)category;
    def->mask = (uint32_t)(int64_t)mask;
    if (m->override) {
        friction[0] = m->override_friction[0];
        friction[1] = m->override_friction[2];
        friction[2] = m->override_friction[3];
    }
    return mjcf_surface(m, source, condim, friction[0], friction[1], friction[2], &def->surface);
}

/* Sum of the vectors of area over the sum of areas, below which a surface counts as closed. */
#define CLOSED_SURFACE 1e-9

/* Turns a closed surface outwards if it encloses a negative volume. */
static void turn_outwards(const tb_mesh_data *data)
{
    double volume = 0, size = 0;
    tb_vec3 sum = tb_v3(0, 0, 0);
    const tb_vec3 origin = tb_v3_load(data->vertices);
    for (int32_t t = 0; t < data->number_of_triangles; t++) {
        const int32_t *v = data->triangles + 3 * (size_t)t;
        const tb_vec3 a = tb_v3_sub(tb_v3_load(data->vertices + 3 * (size_t)v[0]), origin);
        const tb_vec3 b = tb_v3_sub(tb_v3_load(data->vertices + 3 * (size_t)v[1]), origin);
        const tb_vec3 c = tb_v3_sub(tb_v3_load(data->vertices + 3 * (size_t)v[2]), origin);
        const tb_vec3 area = tb_v3_cross(tb_v3_sub(b, a), tb_v3_sub(c, a));
        sum = tb_v3_add(sum, area);
        size += tb_v3_length(area);
        volume += tb_v3_dot(a, tb_v3_cross(b, c));
    }
    if (volume >= 0 || tb_v3_length(sum) > CLOSED_SURFACE * size) return;
    for (int32_t t = 0; t < data->number_of_triangles; t++) {
        int32_t *v = data->triangles + 3 * (size_t)t;
        const int32_t second = v[1];
        v[1] = v[2];
        v[2] = second;
    }
}

/* Adds the surface as an asset of the scene, scaled in its own frame. */
static tb_status add_surface(mjcf *m, const xmlNode *node, tb_handle *asset)
{
    double scale[3] = {1, 1, 1};
    tb_mesh_data data = {0};
    tb_error refusal = {0};
    MJCF_TRY(tb_xml_numbers(node, "scale", 3, 3, scale, NULL, m->error));
    for (int i = 0; i < 3; i++)
        if (!(scale[i] > 0))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "scale",
                               "scale %d is %g, not positive", i + 1, scale[i]);
    tb_status status = parse_surface(m, node, &data);
    for (int32_t i = 0; status == TB_OK && i < 3 * data.number_of_vertices; i++)
        data.vertices[i] *= scale[i % 3];
    if (status == TB_OK && data.number_of_vertices > 0) turn_outwards(&data);
    tb_mesh_def def = tb_mesh_defaults();
    def.vertices = data.vertices;
    def.number_of_vertices = data.number_of_vertices;
    def.triangles = data.triangles;
    def.number_of_triangles = data.number_of_triangles;
    def.inertia = TB_MESH_INERTIA_SHELL;
    if (status == TB_OK && tb_scene_add_mesh(m->scene, &def, asset, &refusal) != TB_OK)
        status = mjcf_refused(m, node, &refusal);
    tb_mesh_data_free(&data);
    return status;
}

tb_status mjcf_read_flexcomp(mjcf *m, const xmlNode *node, const mjcf_pose *frame, tb_handle body)
{
    mjcf_element element;
    mjcf_pose pose;
    tb_error refusal = {0};
    tb_shape_def def = tb_shape_defaults();
    MJCF_TRY(mjcf_open(m, node, NULL, -1, &FLEX, &element));
    MJCF_TRY(mjcf_read_pose(m, &element, &pose));
    MJCF_TRY(flex_read_contact(m, node, &def));
    MJCF_TRY(add_surface(m, node, &def.asset));
    def.body = body;
    def.type = TB_SHAPE_MESH;
    def.mass = 0;
    def.size[0] = 0.005;
    MJCF_TRY(tb_xml_number(node, "radius", &def.size[0], m->error));
    pose = mjcf_pose_mul(frame, &pose);
    tb_v3_store(def.position, pose.position);
    tb_q_store(def.orientation, pose.orientation);
    if (m->no_contact) def.category = def.mask = 0;
    if (tb_scene_add_shape(m->scene, &def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}
