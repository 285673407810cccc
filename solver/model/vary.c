/* Variants of a compiled model: see merge.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sha256.h"
#include "model/merge.h"
#include "model/model_internal.h"

/* A copy in the variant's memory; NULL if memory is refused (or if there is nothing to copy). */
static void *copy(tb_model *variant, const void *items, int32_t count, size_t size)
{
    void *made = tb_arena_take_array(&variant->arena, (size_t)count + 1, size);
    if (made != NULL && count > 0) memcpy(made, items, (size_t)count * size);
    return made;
}

static bool scale_friction(tb_model *v, double scale)
{
    tb_model_shape *shapes = copy(v, v->shapes, v->number_of_shapes, sizeof *shapes);
    tb_model_pair *pairs = copy(v, v->pairs, v->number_of_pairs, sizeof *pairs);
    if (shapes == NULL || pairs == NULL) return false;
    for (int32_t i = 0; i < v->number_of_shapes; i++) shapes[i].surface.friction *= scale;
    for (int32_t i = 0; i < v->number_of_pairs; i++) pairs[i].surface.friction *= scale;
    v->shapes = shapes;
    v->pairs = pairs;
    return true;
}

static bool scale_mass(tb_model *v, const tb_variation *variation)
{
    const double scale = variation->mass_scale;
    tb_model_body *bodies = copy(v, v->bodies, v->number_of_bodies, sizeof *bodies);
    tb_model_tree *trees = copy(v, v->trees, v->number_of_trees, sizeof *trees);
    if (bodies == NULL || trees == NULL) return false;
    for (int32_t b = variation->first_body; b < variation->last_body; b++) {
        v->total_mass += (scale - 1) * bodies[b].mass;
        bodies[b].mass *= scale;
        for (int k = 0; k < 6; k++) bodies[b].inertia[k] *= scale;
    }
    for (int32_t t = 0; t < v->number_of_trees; t++) {
        tb_model_tree *tree = &trees[t];
        if (!tree->single_free || tree->body < variation->first_body ||
            tree->body >= variation->last_body)
            continue;
        tree->inverse_mass /= scale;
        tree->inverse_mass_root /= sqrt(scale);
        for (int k = 0; k < 9; k++) {
            tree->inverse_inertia[k] /= scale;
            tree->inverse_root[k] /= sqrt(scale);
        }
    }
    v->bodies = bodies;
    v->trees = trees;
    return true;
}

static bool limit_force(tb_model *v, const tb_variation *variation)
{
    tb_model_actuator *actuators = copy(v, v->actuators, v->number_of_actuators, sizeof *actuators);
    if (actuators == NULL) return false;
    for (int32_t i = 0; i < variation->number_of_actuators; i++) {
        tb_model_actuator *a = &actuators[variation->actuators[i]];
        a->force_limited = true;
        a->force_lower = -variation->force;
        a->force_upper = variation->force;
    }
    v->actuators = actuators;
    return true;
}

/* Gives the variant its own hash: a cache by hash, such as a GPU's, must not confuse a variant
 * with its origin. */
static void name_variant(tb_model *v, const tb_variation *variation)
{
    struct {
        char origin[64], actuators[64];
        double friction, mass, force;
        int64_t first_body, last_body;
    } key;
    char actuators[65];
    memset(&key, 0, sizeof key);
    tb_sha256_hex(variation->actuators,
                  (size_t)variation->number_of_actuators * sizeof *variation->actuators, actuators);
    memcpy(key.origin, v->sha256, sizeof key.origin);
    memcpy(key.actuators, actuators, sizeof key.actuators);
    key.friction = variation->friction_scale;
    key.mass = variation->mass_scale;
    key.force = variation->force;
    key.first_body = variation->first_body;
    key.last_body = variation->last_body;
    tb_sha256_hex(&key, sizeof key, v->sha256);
}

/* A variant that borrows all arrays of the model; NULL if memory is refused. */
static tb_model *borrow(const tb_model *model)
{
    tb_model *v = malloc(sizeof *v);
    if (v == NULL) return NULL;
    *v = *model;
    if (v->origin == NULL) v->origin = model;
    tb_arena_init(&v->arena, 0);
    v->bytes = NULL; /* the origin owns and frees them */
    v->bytes_size = 0;
    v->name_index = NULL;
    return v;
}

tb_status tb_model_vary(const tb_model *model, const tb_variation *variation, tb_model **variant,
                        tb_error *error)
{
    *variant = NULL;
    tb_model *v = borrow(model);
    if (v == NULL) return tb_fail_memory(error, sizeof *v, "a variant of a model");
    bool done = variation->friction_scale == 1 || scale_friction(v, variation->friction_scale);
    if (done && variation->mass_scale != 1) done = scale_mass(v, variation);
    if (done && variation->force > 0 && variation->number_of_actuators > 0)
        done = limit_force(v, variation);
    if (!done) {
        tb_model_destroy(v);
        return tb_fail_memory(error, 0, "a variant of a model");
    }
    name_variant(v, variation);
    *variant = v;
    return TB_OK;
}

/* ---- values of single elements ---- */

/* Of arrays that both are complete: whether a variant needs the first in place of the second. */
#define DIFFERS(count, a, b)                                                                       \
    for (int32_t i = 0; i < (count); i++)                                                          \
        if ((a) != (b)) return true;

static bool friction_differs(const tb_model *m, const tb_model_values *values)
{
    DIFFERS(m->number_of_shapes, values->friction[i], m->shapes[i].surface.friction)
    return false;
}

static bool mass_differs(const tb_model *m, const tb_model_values *values)
{
    DIFFERS(m->number_of_bodies, i > 0 ? values->mass[i] : m->bodies[0].mass, m->bodies[i].mass)
    return false;
}

static bool gains_differ(const tb_model *m, const tb_model_values *values)
{
    DIFFERS(3 * m->number_of_actuators, values->gain[i], m->actuators[i / 3].gain[i % 3])
    DIFFERS(3 * m->number_of_actuators, values->bias[i], m->actuators[i / 3].bias[i % 3])
    return false;
}

static bool joints_differ(const tb_model *m, const tb_model_values *values)
{
    DIFFERS(m->number_of_dofs, values->damping[m->dofs[i].joint], m->dofs[i].damping)
    DIFFERS(m->number_of_dofs, values->dry_friction[m->dofs[i].joint], m->dofs[i].dry_friction)
    return false;
}

static bool sizes_differ(const tb_model *m, const tb_model_values *values)
{
    DIFFERS(3 * m->number_of_shapes, values->size[i], m->shapes[i / 3].size[i % 3])
    return false;
}

static bool take_shapes(tb_model *v, const tb_model_values *values)
{
    tb_model_shape *shapes = copy(v, v->shapes, v->number_of_shapes, sizeof *shapes);
    if (shapes == NULL) return false;
    for (int32_t i = 0; i < v->number_of_shapes; i++) {
        tb_model_shape *shape = &shapes[i];
        shape->surface.friction = values->friction[i];
        const double *size = values->size + 3 * (size_t)i;
        if (memcmp(shape->size, size, sizeof shape->size) == 0) continue;
        const tb_pose pose = {tb_v3_load(shape->position),
                              tb_q_matrix(tb_q_load(shape->orientation))};
        memcpy(shape->size, size, sizeof shape->size);
        shape->reach = tb_primitive_reach(shape->type, &pose, size);
    }
    v->shapes = shapes;
    return true;
}

static tb_status take_masses(tb_model *v, const tb_model_values *values, tb_error *error)
{
    tb_model_body *bodies = copy(v, v->bodies, v->number_of_bodies, sizeof *bodies);
    tb_model_tree *trees = copy(v, v->trees, v->number_of_trees, sizeof *trees);
    if (bodies == NULL || trees == NULL) return tb_fail_memory(error, 0, "a variant of a model");
    v->total_mass = 0;
    for (int32_t b = 1; b < v->number_of_bodies; b++) {
        tb_model_body *body = &bodies[b];
        if (body->mass != values->mass[b]) {
            const double scale = values->mass[b] / body->mass;
            body->mass = values->mass[b];
            for (int k = 0; k < 6; k++) body->inertia[k] *= scale;
            tb_model_tree *tree = body->tree >= 0 ? &trees[body->tree] : NULL;
            if (tree != NULL && tree->single_free &&
                !tb_tree_invert(tree, body, v->dofs[tree->dof].armature))
                return tb_fail_field(error, TB_INVALID_ARGUMENT, "mass",
                                     "body '%.100s': no inverse of its inertia for %g kg",
                                     tb_model_thing_name(v, TB_HANDLE_BODY, b), body->mass);
        }
        v->total_mass += body->mass;
    }
    v->bodies = bodies;
    v->trees = trees;
    return TB_OK;
}

static bool take_gains(tb_model *v, const tb_model_values *values)
{
    tb_model_actuator *actuators = copy(v, v->actuators, v->number_of_actuators, sizeof *actuators);
    if (actuators == NULL) return false;
    for (int32_t i = 0; i < v->number_of_actuators; i++) {
        tb_model_actuator *a = &actuators[i];
        memcpy(a->gain, values->gain + 3 * i, sizeof a->gain);
        memcpy(a->bias, values->bias + 3 * i, sizeof a->bias);
        a->period = tb_actuator_period(v->joints, a);
    }
    v->actuators = actuators;
    return true;
}

static bool take_joints(tb_model *v, const tb_model_values *values)
{
    tb_model_dof *dofs = copy(v, v->dofs, v->number_of_dofs, sizeof *dofs);
    int32_t *dry = tb_arena_take_array(&v->arena, (size_t)v->number_of_dofs + 1, sizeof *dry);
    if (dofs == NULL || dry == NULL) return false;
    v->number_of_dry_dofs = 0;
    for (int32_t i = 0; i < v->number_of_dofs; i++) {
        dofs[i].damping = values->damping[dofs[i].joint];
        dofs[i].dry_friction = values->dry_friction[dofs[i].joint];
        if (dofs[i].dry_friction > 0) dry[v->number_of_dry_dofs++] = i;
    }
    v->dofs = dofs;
    v->dry_dofs = dry;
    return true;
}

/* The variant's hash: of the model's and all values. */
static bool name_by_values(tb_model *v, const tb_model_values *values)
{
    const size_t shapes = (size_t)v->number_of_shapes, bodies = (size_t)v->number_of_bodies,
                 gains = 3 * (size_t)v->number_of_actuators, joints = (size_t)v->number_of_joints;
    double *key = tb_arena_take_array(&v->arena, 8 + 4 * shapes + bodies + 2 * gains + 2 * joints,
                                      sizeof *key);
    if (key == NULL) return false;
    double *end = key + 8; /* behind 64 characters */
    memcpy(key, v->sha256, 64);
    if (shapes > 0) memcpy(end, values->friction, shapes * sizeof *end);
    memcpy(end += shapes, values->mass, bodies * sizeof *end);
    end[0] = 0; /* the world's is not used */
    end += bodies;
    if (gains > 0) memcpy(end, values->gain, gains * sizeof *end);
    if (gains > 0) memcpy(end + gains, values->bias, gains * sizeof *end);
    end += 2 * gains;
    if (joints > 0) memcpy(end, values->damping, joints * sizeof *end);
    if (joints > 0) memcpy(end + joints, values->dry_friction, joints * sizeof *end);
    end += 2 * joints;
    if (shapes > 0) memcpy(end, values->size, 3 * shapes * sizeof *end);
    end += 3 * shapes;
    tb_sha256_hex(key, (size_t)(end - key) * sizeof *key, v->sha256);
    return true;
}

tb_status tb_model_vary_values(const tb_model *model, const tb_model_values *values,
                               tb_model **variant, tb_error *error)
{
    *variant = NULL;
    const bool shapes = friction_differs(model, values) || sizes_differ(model, values),
               mass = mass_differs(model, values), gains = gains_differ(model, values),
               joints = joints_differ(model, values);
    if (!shapes && !mass && !gains && !joints) return TB_OK;
    tb_model *v = borrow(model);
    if (v == NULL) return tb_fail_memory(error, sizeof *v, "a variant of a model");
    tb_status status = mass ? take_masses(v, values, error) : TB_OK;
    if (status == TB_OK &&
        ((shapes && !take_shapes(v, values)) || (gains && !take_gains(v, values)) ||
         (joints && !take_joints(v, values)) || !name_by_values(v, values)))
        status = tb_fail_memory(error, 0, "a variant of a model");
    if (status == TB_OK)
        *variant = v;
    else
        tb_model_destroy(v);
    return status;
}
