/* Compiles the masses of bodies, in MuJoCo's order: given inertia or the shapes' sum; then the
 * minimum mass and moments, the triangle inequality, and last the scaling to a total mass. */
#include "model/model_internal.h"

#include <string.h>

/* Mass properties of a mesh asset, computed once. A mesh without volume (a terrain, a plate) has
 * no mass on an immovable body; on a moving body it is an error. */
static tb_status asset_mass(tb_compiler *c, const tb_shape_def *shape, tb_mass_properties *cache,
                            bool *known, tb_mass_properties *result, tb_error *error)
{
    tb_status status = TB_OK;
    const int32_t mesh = scene_index(shape->asset);
    if (shape->shell) { /* the shape overrides the asset's inertia kind */
        tb_mesh_def def = c->scene->meshes[mesh];
        def.inertia = TB_MESH_INERTIA_SHELL;
        return tb_mesh_asset_mass(&def, result, error);
    }
    if (!known[mesh]) status = tb_mesh_asset_mass(&c->scene->meshes[mesh], &cache[mesh], error);
    known[mesh] = status == TB_OK;
    *result = cache[mesh];
    return status;
}

/* Adds a shape's mass at its pose in the body: mass, first moment, and inertia about the body
 * origin. */
static void place(const tb_shape_def *shape, const tb_mass_properties *own, double com[3],
                  double inertia[6])
{
    const tb_mat33 rotation = tb_q_matrix(tb_q_load(shape->orientation));
    const tb_vec3 centre =
        tb_v3_add(tb_v3_load(shape->position), tb_m33_mul_v3(&rotation, tb_v3_load(own->com)));
    tb_v3_store(com, centre);
    tb_inertia_rotate(rotation.m, own->inertia, inertia);
}

/* Names the shape without mass properties: by its mesh, since other names are rare. */
static tb_status fail_shape(tb_compiler *c, const tb_shape_def *shape, int32_t body,
                            tb_status status, const tb_error *why)
{
    if (shape->type == TB_SHAPE_CONVEX || shape->type == TB_SHAPE_MESH)
        return tb_fail_field(c->error, status, why->field, "mesh '%.100s': %s",
                             c->scene->meshes[scene_index(shape->asset)].name, why->message);
    return tb_fail_field(c->error, status, why->field, "a shape of body '%.100s': %s",
                         tb_compile_body_name(c, body), why->message);
}

/* Sums the shapes of a body that count for inertia; *found: at least one shape counts. */
static tb_status sum_shapes(tb_compiler *c, int32_t body, tb_mass_properties *cache, bool *known,
                            bool *found)
{
    const tb_scene_def *options = &c->scene->options;
    tb_model_body *into = &c->bodies[body];
    const int32_t first = c->body_shapes[body], end = c->body_shapes[body + 1];
    const tb_arena_mark mark = tb_arena_get_mark(&c->scratch);
    tb_mass_properties *parts = TB_ARENA_ARRAY(&c->scratch, tb_mass_properties, end - first);
    if (parts == NULL) return tb_fail_memory(c->error, sizeof *parts, "mass properties");

    /* mass and centre */
    int32_t count = 0;
    double mass = 0, com[3] = {0};
    for (int32_t i = first; i < end; i++) {
        const tb_shape_def *shape = &c->scene->shapes[c->scene_shape[i]];
        if (shape->group < options->inertia_groups[0] || shape->group > options->inertia_groups[1])
            continue;
        tb_mass_properties mesh = {0}, own;
        tb_error why = {0};
        tb_status status = TB_OK;
        bool weightless = shape->mass == 0 || (shape->mass < 0 && shape->density == 0);
        if (!weightless && (shape->type == TB_SHAPE_CONVEX || shape->type == TB_SHAPE_MESH))
            status = asset_mass(c, shape, cache, known, &mesh, &why);
        if (status == TB_OK && !weightless) status = tb_shape_mass(shape, &mesh, &own, &why);
        if (status == TB_INVALID_ARGUMENT && into->last_dof < 0) {
            status = TB_OK;
            weightless = true;
        }
        if (status != TB_OK) return fail_shape(c, shape, body, status, &why);
        if (weightless) memset(&own, 0, sizeof own);
        tb_mass_properties *part = &parts[count++];
        *part = own;
        place(shape, &own, part->com, part->inertia);
        mass += part->mass;
        for (int k = 0; k < 3; k++) com[k] += part->mass * part->com[k];
    }
    *found = count > 0;
    if (count == 0) return TB_OK;
    for (int k = 0; k < 3; k++)
        into->com[k] = count == 1 ? parts[0].com[k] : mass > 0 ? com[k] / mass : 0;

    /* inertia about it */
    into->mass = mass;
    memset(into->inertia, 0, sizeof into->inertia);
    for (int32_t i = 0; i < count; i++) {
        double d[3];
        for (int k = 0; k < 3; k++) d[k] = parts[i].com[k] - into->com[k];
        for (int k = 0; k < 6; k++) into->inertia[k] += parts[i].inertia[k];
        tb_inertia_add_offset(into->inertia, parts[i].mass, d);
    }
    tb_arena_return_to(&c->scratch, mark);
    return TB_OK;
}

static void use_given(tb_model_body *body, const scene_inertia *given)
{
    const tb_mat33 axes = tb_q_matrix(tb_q_load(given->frame));
    body->mass = given->mass;
    memcpy(body->com, given->com, sizeof body->com);
    tb_inertia_rotate(axes.m, given->inertia, body->inertia);
}

/* Smallest mass and moments, triangle inequality. */
static tb_status repair(tb_compiler *c, int32_t index)
{
    const tb_scene_def *options = &c->scene->options;
    tb_model_body *body = &c->bodies[index];
    body->mass = tb_max(body->mass, options->minimum_mass);

    double moments[3], repaired[3];
    tb_mat33 axes;
    const tb_mat33 matrix = tb_m33_symmetric(body->inertia);
    tb_m33_eigen(&matrix, moments, &axes);
    memcpy(repaired, moments, sizeof moments);
    if (!tb_moments_repair(repaired, options->minimum_inertia, options->balance_inertia))
        return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "inertia",
                             "body '%.100s': its inertia breaks the triangle inequality: %g + %g < "
                             "%g (balance_inertia, or tribo's --balance-inertia, repairs it)",
                             tb_compile_body_name(c, index), moments[1], moments[2], moments[0]);
    if (!isfinite(body->mass + moments[0] + body->com[0] + body->com[1] + body->com[2]))
        return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "mass",
                             "body '%.100s': its mass or inertia is too large for a number",
                             tb_compile_body_name(c, index));
    if (memcmp(moments, repaired, sizeof moments) != 0) {
        const double diagonal[6] = {repaired[0], repaired[1], repaired[2], 0, 0, 0};
        tb_inertia_rotate(axes.m, diagonal, body->inertia);
    }
    return TB_OK;
}

tb_status tb_compile_mass(tb_compiler *c)
{
    const tb_scene *scene = c->scene;
    const tb_inertia_source source = scene->options.inertia_source;
    tb_status status = TB_OK;
    const size_t meshes = (size_t)scene->number_of_meshes;
    tb_mass_properties *cache = TB_ARENA_ZEROED(&c->scratch, tb_mass_properties, meshes);
    bool *known = TB_ARENA_ZEROED(&c->scratch, bool, meshes);
    if (cache == NULL || known == NULL)
        return tb_fail_memory(c->error, meshes * sizeof *cache, "mass properties");

    double total = 0;
    for (int32_t b = 1; b < c->model->number_of_bodies; b++) {
        const scene_body *body = &scene->bodies[c->scene_body[b]];
        bool from_shapes = false;
        if (source == TB_INERTIA_SHAPES || (source == TB_INERTIA_AUTO && body->inertia < 0)) {
            status = sum_shapes(c, b, cache, known, &from_shapes);
            if (status != TB_OK) return status;
        }
        if (!from_shapes && body->inertia >= 0)
            use_given(&c->bodies[b], &scene->inertias[body->inertia]);
        status = repair(c, b);
        if (status != TB_OK) return status;
        total += c->bodies[b].mass;
    }

    /* scale to a total */
    if (scene->options.total_mass > 0 && total > 0) {
        const double scale = scene->options.total_mass / total;
        total = 0;
        for (int32_t b = 1; b < c->model->number_of_bodies; b++) {
            c->bodies[b].mass *= scale;
            for (int k = 0; k < 6; k++) c->bodies[b].inertia[k] *= scale;
            total += c->bodies[b].mass;
        }
    }
    c->model->total_mass = total;
    return TB_OK;
}
