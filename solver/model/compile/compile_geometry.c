/* Compiling geometry: shapes in their bodies, and the hulls, triangle meshes and height fields that
 * they share. An asset is built once, and only if a shape that can collide uses it: a visual
 * mesh may be flat, open or huge. */
#include "model/model_internal.h"

#include <string.h>

/* Larger than any scene, small enough that its square fits a float. */
#define UNBOUNDED_M 1e15

/* Built index of each asset, -1 before it is built. */
typedef struct geometry {
    int32_t *hull_of, *mesh_of, *field_of; /* by scene asset */
    tb_hull *hulls;
    tb_triangle_mesh *meshes;
    tb_height_field *fields;
    int32_t *colliding;
} geometry;

/* ---- reach ---- */

static double farthest(const tb_pose *pose, const double *vertices, int32_t count)
{
    double square = 0;
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 p = tb_pose_point(pose, tb_v3_load(vertices + 3 * (size_t)i));
        square = tb_max(square, tb_v3_length2(p));
    }
    return sqrt(square);
}

/* Largest distance of a corner of the box +-half around `centre` (shape frame)
 * from the body origin. */
static double farthest_corner(const tb_pose *pose, const double centre[3], const double half[3])
{
    double corners[24];
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++)
            corners[3 * i + k] = centre[k] + (i >> k & 1 ? half[k] : -half[k]);
    return farthest(pose, corners, 8);
}

double tb_primitive_reach(tb_shape_type type, const tb_pose *pose, const double s[3])
{
    static const double origin[3] = {0, 0, 0};
    const double offset = tb_v3_length(pose->position);
    switch (type) {
    case TB_SHAPE_SPHERE: return offset + s[0];
    case TB_SHAPE_CAPSULE: {
        const double ends[6] = {0, 0, s[1], 0, 0, -s[1]};
        return farthest(pose, ends, 2) + s[0];
    }
    case TB_SHAPE_CYLINDER: return offset + sqrt(s[0] * s[0] + s[1] * s[1]);
    case TB_SHAPE_BOX: return farthest_corner(pose, origin, s);
    case TB_SHAPE_ELLIPSOID: return offset + tb_max(s[0], tb_max(s[1], s[2]));
    default: return UNBOUNDED_M;
    }
}

static double reach_of(const tb_scene *scene, const tb_shape_def *shape)
{
    const tb_pose pose = {tb_v3_load(shape->position), tb_q_matrix(tb_q_load(shape->orientation))};
    switch (shape->type) {
    case TB_SHAPE_CONVEX:
    case TB_SHAPE_MESH: {
        const tb_mesh_def *mesh = &scene->meshes[scene_index(shape->asset)];
        return farthest(&pose, mesh->vertices, mesh->number_of_vertices) + shape->size[0];
    }
    case TB_SHAPE_HEIGHT_FIELD: {
        const tb_height_field_def *field = &scene->height_fields[scene_index(shape->asset)];
        double highest = 0;
        for (int32_t i = 0; i < field->rows * field->columns; i++)
            highest = tb_max(highest, field->heights[i]);
        const double centre[3] = {0, 0, 0.5 * (highest - field->base)};
        const double half[3] = {field->half_x, field->half_y, 0.5 * (highest + field->base)};
        return farthest_corner(&pose, centre, half);
    }
    default: return tb_primitive_reach(shape->type, &pose, shape->size);
    }
}

/* ---- assets ---- */

/* The model owns the arena: after an error the caller destroys both. */
static tb_status build_hull(tb_compiler *c, geometry *g, int32_t asset, int32_t *index)
{
    const tb_mesh_def *def = &c->scene->meshes[asset];
    *index = g->hull_of[asset];
    if (*index >= 0) return TB_OK;
    tb_error why = {0};
    const tb_status status =
        tb_hull_build_within(def->vertices, def->number_of_vertices, def->most_hull_vertices,
                             &c->model->arena, &g->hulls[c->model->number_of_hulls], &why);
    if (status != TB_OK)
        return tb_fail_field(c->error, status, "vertices", "mesh '%.100s': %s", def->name,
                             why.message);
    *index = g->hull_of[asset] = c->model->number_of_hulls++;
    return TB_OK;
}

/* The hull of a mesh that is closed and convex, shared with convex shapes of the asset. An asset whose
 * hull leaves out vertices collides as its triangles. */
static tb_status find_hull_of_mesh(tb_compiler *c, geometry *g, int32_t asset,
                                   tb_triangle_mesh *mesh)
{
    tb_model *model = c->model;
    tb_hull hull;
    bool convex = false;
    if (c->scene->meshes[asset].most_hull_vertices > 0) return TB_OK;
    const tb_status status = tb_triangle_mesh_hull(mesh, &model->arena, &hull, &convex, c->error);
    if (status != TB_OK || !convex) return status;
    if (g->hull_of[asset] < 0) {
        g->hulls[model->number_of_hulls] = hull;
        g->hull_of[asset] = model->number_of_hulls++;
    }
    mesh->hull = g->hull_of[asset];
    return TB_OK;
}

static tb_status build_mesh(tb_compiler *c, geometry *g, int32_t asset, int32_t *index)
{
    const tb_mesh_def *def = &c->scene->meshes[asset];
    *index = g->mesh_of[asset];
    if (*index >= 0) return TB_OK;
    tb_error why = {0};
    const tb_status status = tb_triangle_mesh_build(
        def->vertices, def->number_of_vertices, def->triangles, def->number_of_triangles,
        &c->model->arena, &g->meshes[c->model->number_of_meshes], &why);
    if (status != TB_OK)
        return tb_fail_field(c->error, status, "triangles", "mesh '%.100s': %s", def->name,
                             why.message);
    *index = g->mesh_of[asset] = c->model->number_of_meshes++;
    return find_hull_of_mesh(c, g, asset, &g->meshes[*index]);
}

static tb_status build_field(tb_compiler *c, geometry *g, int32_t asset, int32_t *index)
{
    const tb_height_field_def *def = &c->scene->height_fields[asset];
    *index = g->field_of[asset];
    if (*index >= 0) return TB_OK;
    const int32_t count = def->rows * def->columns;
    double *heights = TB_ARENA_ARRAY(&c->model->arena, double, count);
    if (heights == NULL) return tb_fail_memory(c->error, (size_t)count * 8, "height field");
    tb_height_field *field = &g->fields[c->model->number_of_height_fields];
    memcpy(heights, def->heights, (size_t)count * sizeof *heights);
    field->rows = def->rows;
    field->columns = def->columns;
    field->half_x = def->half_x;
    field->half_y = def->half_y;
    field->base = def->base;
    field->heights = heights;
    field->highest = 0;
    for (int32_t i = 0; i < count; i++) field->highest = tb_max(field->highest, heights[i]);
    *index = g->field_of[asset] = c->model->number_of_height_fields++;
    return TB_OK;
}

/* ---- shapes ---- */

static tb_status add_shape(tb_compiler *c, geometry *g, int32_t index, int32_t body, bool listed)
{
    const tb_shape_def *def = &c->scene->shapes[c->scene_shape[index]];
    tb_model_shape *shape = &c->shapes[index];
    memset(shape, 0, sizeof *shape);
    shape->type = def->type;
    shape->body = body;
    shape->asset = -1;
    memcpy(shape->position, def->position, sizeof shape->position);
    memcpy(shape->orientation, def->orientation, sizeof shape->orientation);
    memcpy(shape->size, def->size, sizeof shape->size);
    const tb_mat33 rotation = tb_q_matrix(tb_q_load(def->orientation));
    memcpy(shape->rotation, rotation.m, sizeof shape->rotation);
    shape->surface = def->surface;
    shape->category = def->category;
    shape->mask = def->mask;
    shape->priority = def->priority;
    memcpy(shape->surface_velocity, def->surface_velocity, sizeof shape->surface_velocity);
    for (int i = 0; i < 6; i++) shape->conveys = shape->conveys || def->surface_velocity[i] != 0;
    shape->reach = reach_of(c->scene, def);

    if ((def->type == TB_SHAPE_PLANE || def->type == TB_SHAPE_HEIGHT_FIELD) &&
        c->bodies[body].last_dof >= 0)
        return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "type",
                             "shape '%.100s': a %s must not be on a body that moves ('%.100s')",
                             def->name, def->type == TB_SHAPE_PLANE ? "plane" : "height field",
                             tb_compile_body_name(c, body));
    if (def->category == 0 && def->mask == 0 && !listed) return TB_OK;
    g->colliding[c->model->number_of_colliding_shapes++] = index;
    const int32_t asset = scene_index(def->asset);
    switch (def->type) {
    case TB_SHAPE_CONVEX: return build_hull(c, g, asset, &shape->asset);
    case TB_SHAPE_MESH: return build_mesh(c, g, asset, &shape->asset);
    case TB_SHAPE_HEIGHT_FIELD: return build_field(c, g, asset, &shape->asset);
    default: return TB_OK;
    }
}

static void add_look(tb_compiler *c, int32_t index)
{
    const tb_shape_def *def = &c->scene->shapes[c->scene_shape[index]];
    c->looks[index] = (tb_model_look){.asset = scene_index(def->asset),
                                      .group = def->group,
                                      .has_colour = def->has_colour,
                                      .material = def->material};
    memcpy(c->looks[index].colour, def->colour, sizeof def->colour);
}

/* Materials' names move to the model, which outlives the scene. */
static tb_status keep_materials(tb_compiler *c)
{
    for (int32_t i = 0; i < c->scene->number_of_shapes; i++) {
        tb_model_look *look = &c->looks[i];
        const size_t size = strlen(look->material) + 1;
        if (size == 1) {
            look->material = "";
            continue;
        }
        char *copy = tb_arena_take(&c->model->arena, size);
        if (copy == NULL) return tb_fail_memory(c->error, size, "a material");
        memcpy(copy, look->material, size);
        look->material = copy;
    }
    return TB_OK;
}

static tb_status add_volume_constants(tb_compiler *c)
{
    const int32_t shapes = c->scene->number_of_shapes;
    bool own = false;
    for (int32_t i = 0; i < shapes; i++) own = own || c->scene->shapes[i].has_volume_constants;
    if (!own) return TB_OK;
    tb_volume_constants *constants = TB_ARENA_ARRAY(&c->model->arena, tb_volume_constants, shapes);
    if (constants == NULL)
        return tb_fail_memory(c->error, (size_t)shapes * sizeof *constants, "shapes");
    for (int32_t i = 0; i < shapes; i++)
        constants[i] = c->scene->shapes[c->scene_shape[i]].volume_constants;
    c->model->volume_constants = constants;
    return TB_OK;
}

static tb_status add_filters(tb_compiler *c)
{
    tb_model *model = c->model;
    const int32_t shapes = model->number_of_shapes;
    tb_model_filter *filters = TB_ARENA_ARRAY(&model->arena, tb_model_filter, shapes);
    if (filters == NULL)
        return tb_fail_memory(c->error, (size_t)shapes * sizeof *filters, "shapes");
    for (int32_t i = 0; i < shapes; i++) {
        const tb_model_shape *shape = &c->shapes[i];
        const tb_model_body *body = &c->bodies[shape->body];
        tb_model_filter *f = &filters[i];
        f->root = body->fixed_to;
        f->above = -1;
        f->category = shape->category;
        f->mask = shape->mask;
        f->moves = body->last_dof >= 0;
        f->is_corner = false;
        if (!model->filter_parent || f->root == 0) continue;
        const int32_t above = c->bodies[c->bodies[f->root].parent].fixed_to;
        if (above != 0) f->above = above; /* an immovable body is not a parent */
    }
    for (int32_t i = 0; i < c->scene->number_of_elements; i++)
        for (int32_t k = 0; k < c->scene->elements[i].corners; k++) {
            tb_model_filter *f =
                &filters[c->model_shape[scene_index(c->scene->elements[i].balls[k])]];
            f->is_corner = true;
            f->above = -1;
        }
    model->filters = filters;
    return TB_OK;
}

tb_status tb_compile_geometry(tb_compiler *c)
{
    const tb_scene *scene = c->scene;
    tb_model *model = c->model;
    const int32_t meshes = scene->number_of_meshes, fields = scene->number_of_height_fields;
    geometry g;
    g.hull_of = TB_ARENA_ARRAY(&c->scratch, int32_t, meshes);
    g.mesh_of = TB_ARENA_ARRAY(&c->scratch, int32_t, meshes);
    g.field_of = TB_ARENA_ARRAY(&c->scratch, int32_t, fields);
    g.hulls = TB_ARENA_ZEROED(&model->arena, tb_hull, meshes);
    g.meshes = TB_ARENA_ZEROED(&model->arena, tb_triangle_mesh, meshes);
    g.fields = TB_ARENA_ZEROED(&model->arena, tb_height_field, fields);
    g.colliding = TB_ARENA_ARRAY(&model->arena, int32_t, scene->number_of_shapes);
    bool *listed = TB_ARENA_ZEROED(&c->scratch, bool, scene->number_of_shapes);
    c->shapes = TB_ARENA_ARRAY(&model->arena, tb_model_shape, scene->number_of_shapes);
    c->looks = TB_ARENA_ZEROED(&model->arena, tb_model_look, scene->number_of_shapes);
    model->mesh_contents = TB_ARENA_ZEROED(&model->arena, tb_model_content, meshes);
    model->height_field_contents = TB_ARENA_ZEROED(&model->arena, tb_model_content, fields);
    if (!c->looks || !model->mesh_contents || !model->height_field_contents || !g.hull_of ||
        !g.mesh_of || !g.field_of || !g.hulls || !g.meshes || !g.fields || !g.colliding ||
        !listed || !c->shapes)
        return tb_fail_memory(c->error, (size_t)scene->number_of_shapes * sizeof *c->shapes,
                              "shapes");
    for (int32_t i = 0; i < meshes; i++) g.hull_of[i] = g.mesh_of[i] = -1;
    for (int32_t i = 0; i < fields; i++) g.field_of[i] = -1;
    for (int32_t i = 0; i < scene->number_of_pairs; i++) {
        listed[c->model_shape[scene_index(scene->pairs[i].a)]] = true;
        listed[c->model_shape[scene_index(scene->pairs[i].b)]] = true;
    }

    for (int32_t b = 0; b < model->number_of_bodies; b++)
        for (int32_t i = c->body_shapes[b]; i < c->body_shapes[b + 1]; i++) {
            const tb_status status = add_shape(c, &g, i, b, listed[i]);
            if (status != TB_OK) return status;
            add_look(c, i);
        }
    for (int32_t i = 0; i < meshes; i++) model->mesh_contents[i].hull = g.hull_of[i];
    model->number_of_shapes = scene->number_of_shapes;
    model->number_of_mesh_assets = meshes;
    model->number_of_height_field_assets = fields;
    model->shapes = c->shapes;
    model->looks = c->looks;
    model->colliding_shapes = g.colliding;
    model->hulls = g.hulls;
    model->meshes = g.meshes;
    model->height_fields = g.fields;
    tb_status status = keep_materials(c);
    if (status == TB_OK) status = add_volume_constants(c);
    return status == TB_OK ? add_filters(c) : status;
}
