/* Compiles elements that refer to bodies, joints and shapes: sites, actuators, equalities,
 * pairs, excludes and keyframes; tendons are in compile_tendons.c. Reference values belong to
 * the described pose. */
#include "base/budget.h"
#include "model/model_internal.h"

#include <stdlib.h>
#include <string.h>

static int32_t body_of(const tb_compiler *c, tb_handle body)
{
    return tb_handle_is_none(body) ? 0 : c->model_body[scene_index(body)];
}

static tb_status compile_sites(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_sites;
    tb_model_site *sites = TB_ARENA_ZEROED(&c->model->arena, tb_model_site, count);
    if (sites == NULL) return tb_fail_memory(c->error, (size_t)count * sizeof *sites, "sites");
    for (int32_t i = 0; i < count; i++) {
        const tb_site_def *def = &c->scene->sites[c->scene_site[i]];
        sites[i].body = body_of(c, def->body);
        memcpy(sites[i].position, def->position, sizeof sites[i].position);
        memcpy(sites[i].orientation, def->orientation, sizeof sites[i].orientation);
    }
    c->model->sites = sites;
    c->model->number_of_sites = count;
    return TB_OK;
}

/* ---- equalities ---- */

/* Pose of A's anchor and of A's frame in B, in the described pose. */
static void set_body_equality(tb_compiler *c, const tb_equality_def *def, tb_model_equality *into)
{
    into->a = body_of(c, def->a);
    into->b = body_of(c, def->b);
    const tb_pose *a = &c->poses[into->a], *b = &c->poses[into->b];
    memcpy(into->anchor_a, def->anchor_a, sizeof into->anchor_a);
    memcpy(into->anchor_b, def->anchor_b, sizeof into->anchor_b);
    memcpy(into->orientation, def->orientation, sizeof into->orientation);
    if (!def->has_anchor_b) {
        const tb_vec3 world = tb_pose_point(a, tb_v3_load(def->anchor_a));
        tb_v3_store(into->anchor_b, tb_pose_inverse_point(b, world));
    }
    if (!def->has_orientation) {
        const tb_pose relative = tb_pose_relative(a, b);
        tb_q_store(into->orientation, tb_q_from_matrix(&relative.rotation));
    }
}

static tb_status compile_equalities(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_equalities;
    tb_model *model = c->model;
    tb_model_equality *equalities = TB_ARENA_ZEROED(&model->arena, tb_model_equality, count);
    if (equalities == NULL)
        return tb_fail_memory(c->error, (size_t)count * sizeof *equalities, "equalities");
    for (int32_t i = 0; i < count; i++) {
        const tb_equality_def *def = &c->scene->equalities[i];
        tb_model_equality *into = &equalities[i];
        into->type = def->type;
        into->disabled = def->disabled;
        into->orientation[0] = 1;
        memcpy(into->polynomial, def->polynomial, sizeof into->polynomial);
        if (def->type == TB_EQUALITY_CONNECT || def->type == TB_EQUALITY_WELD) {
            set_body_equality(c, def, into);
        } else if (def->type == TB_EQUALITY_JOINT) {
            into->a = c->model_joint[scene_index(def->a)];
            into->b = tb_handle_is_none(def->b) ? -1 : c->model_joint[scene_index(def->b)];
            into->reference_a = model->joints[into->a].reference;
            into->reference_b = into->b < 0 ? 0 : model->joints[into->b].reference;
        } else {
            into->a = scene_index(def->a);
            into->b = scene_index(def->b);
            into->reference_a = tb_compile_tendon_length(c, into->a);
            into->reference_b = into->b < 0 ? 0 : tb_compile_tendon_length(c, into->b);
        }
    }
    model->equalities = equalities;
    model->number_of_equalities = count;
    return TB_OK;
}

/* ---- pairs and excludes ---- */

typedef struct sorted_pair {
    tb_model_pair pair;
    int32_t scene;
} sorted_pair;

static int compare_pairs(const void *left, const void *right)
{
    const sorted_pair *l = left, *r = right;
    if (l->pair.a != r->pair.a) return l->pair.a < r->pair.a ? -1 : 1;
    if (l->pair.b != r->pair.b) return l->pair.b < r->pair.b ? -1 : 1;
    return (l->scene > r->scene) - (l->scene < r->scene);
}

static int compare_excludes(const void *left, const void *right)
{
    const tb_model_exclude *l = left, *r = right;
    if (l->a != r->a) return l->a < r->a ? -1 : 1;
    return (l->b > r->b) - (l->b < r->b);
}

static tb_status compile_elements(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_elements;
    tb_model_element *elements = TB_ARENA_ZEROED(&c->model->arena, tb_model_element, count);
    if (!elements) return tb_fail_memory(c->error, (size_t)count * sizeof *elements, "elements");
    for (int32_t i = 0; i < count; i++) {
        const tb_element_def *def = &c->scene->elements[i];
        elements[i].corners = def->corners;
        elements[i].group = def->group;
        c->model->has_element_pairs =
            c->model->has_element_pairs || def->group == 0 || def->group != elements[0].group;
        for (int32_t k = 0; k < def->corners; k++)
            elements[i].balls[k] = c->model_shape[scene_index(def->balls[k])];
    }
    c->model->elements = elements;
    c->model->number_of_elements = count;
    return TB_OK;
}

/* Of several definitions of one pair the first applies. */
static tb_status compile_pairs(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_pairs, shapes = c->model->number_of_shapes;
    tb_model *model = c->model;
    sorted_pair *sorted = TB_ARENA_ARRAY(&c->scratch, sorted_pair, count);
    tb_model_pair *pairs = TB_ARENA_ARRAY(&model->arena, tb_model_pair, count);
    c->scene_pair = TB_ARENA_ARRAY(&c->scratch, int32_t, count);
    int32_t *start = TB_ARENA_ZEROED(&model->arena, int32_t, shapes + 1);
    if (!sorted || !pairs || !c->scene_pair || !start)
        return tb_fail_memory(c->error, (size_t)count * sizeof *sorted, "pairs");
    for (int32_t i = 0; i < count; i++) {
        const tb_pair_def *def = &c->scene->pairs[i];
        const int32_t a = c->model_shape[scene_index(def->a)];
        const int32_t b = c->model_shape[scene_index(def->b)];
        sorted[i].pair.a = a < b ? a : b;
        sorted[i].pair.b = a < b ? b : a;
        sorted[i].pair.surface = def->surface;
        sorted[i].scene = i;
    }
    if (count > 0) qsort(sorted, (size_t)count, sizeof *sorted, compare_pairs);
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        if (kept > 0 && pairs[kept - 1].a == sorted[i].pair.a &&
            pairs[kept - 1].b == sorted[i].pair.b) {
            const tb_status status =
                tb_compile_warn(c,
                                "pair %d '%.100s' names the same shapes as an earlier one and is "
                                "left out",
                                (int)sorted[i].scene, c->scene->pairs[sorted[i].scene].name);
            if (status != TB_OK) return status;
            continue;
        }
        c->scene_pair[kept] = sorted[i].scene;
        pairs[kept++] = sorted[i].pair;
        start[sorted[i].pair.a + 1]++;
    }
    for (int32_t i = 0; i < shapes; i++) start[i + 1] += start[i];
    model->pairs = pairs;
    model->number_of_pairs = kept;
    model->shape_pair_start = start;
    return TB_OK;
}

/* Sorts pairs of indices, and drops repetitions and pairs of an element with itself. */
static int32_t sort_excludes(tb_model_exclude *excludes, int32_t count)
{
    int32_t kept = 0;
    if (count > 0) qsort(excludes, (size_t)count, sizeof *excludes, compare_excludes);
    for (int32_t i = 0; i < count; i++) {
        if (excludes[i].a == excludes[i].b) continue; /* never collides anyway */
        if (kept == 0 || compare_excludes(&excludes[kept - 1], &excludes[i]) != 0)
            excludes[kept++] = excludes[i];
    }
    return kept;
}

static tb_status compile_excludes(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_excludes;
    tb_model_exclude *bodies = TB_ARENA_ARRAY(&c->model->arena, tb_model_exclude, count);
    tb_model_exclude *shapes = TB_ARENA_ARRAY(&c->model->arena, tb_model_exclude, count);
    int32_t number_of_bodies = 0, number_of_shapes = 0;
    if (bodies == NULL || shapes == NULL)
        return tb_fail_memory(c->error, (size_t)count * sizeof *bodies, "excludes");
    for (int32_t i = 0; i < count; i++) {
        const scene_exclude *def = &c->scene->excludes[i];
        const int32_t *model = def->shapes ? c->model_shape : c->model_body;
        const int32_t a = def->a < 0 ? 0 : model[def->a];
        const int32_t b = def->b < 0 ? 0 : model[def->b];
        const tb_model_exclude exclude = {a < b ? a : b, a < b ? b : a};
        if (def->shapes)
            shapes[number_of_shapes++] = exclude;
        else
            bodies[number_of_bodies++] = exclude;
    }
    c->model->excludes = bodies;
    c->model->number_of_excludes = sort_excludes(bodies, number_of_bodies);
    c->model->shape_excludes = shapes;
    c->model->number_of_shape_excludes = sort_excludes(shapes, number_of_shapes);
    return TB_OK;
}

/* ---- keyframes ---- */

/* A copy of a keyframe's array, or the shared default `rest` if the keyframe has none. */
static tb_status key_array(tb_compiler *c, const tb_keyframe_def *def, int32_t index,
                           const char *field, const double *numbers, int32_t count,
                           int32_t expected, const double *rest, const double **result)
{
    *result = rest;
    if (numbers == NULL) return tb_budget_check(c->error);
    if (count != expected)
        return tb_fail_field(c->error, TB_INVALID_ARGUMENT, field,
                             "keyframe %d '%.100s': %s has %d numbers, but the model has %d",
                             (int)index, def->name, field, (int)count, (int)expected);
    double *copy = TB_ARENA_ARRAY(&c->model->arena, double, expected);
    if (copy == NULL) return tb_fail_memory(c->error, (size_t)expected * 8, "keyframe");
    memcpy(copy, numbers, (size_t)expected * sizeof *copy);
    *result = copy;
    return TB_OK;
}

static void normalize_rotations(const tb_model *model, double *q)
{
    for (int32_t i = 0; i < model->number_of_joints; i++) {
        const tb_model_joint *joint = &model->joints[i];
        if (joint->type != TB_JOINT_BALL && joint->type != TB_JOINT_FREE) continue;
        double *at = q + joint->coordinate + (joint->type == TB_JOINT_FREE ? 3 : 0);
        tb_q_store(at, tb_q_normalize(tb_q_load(at)));
    }
}

static tb_status compile_keyframes(tb_compiler *c)
{
    const int32_t count = c->scene->number_of_keyframes;
    tb_model *model = c->model;
    tb_model_keyframe *keys = TB_ARENA_ZEROED(&model->arena, tb_model_keyframe, count);
    const int32_t actuators = model->number_of_actuators,
                  kinematics = model->number_of_kinematic_bodies;
    const int32_t longest = model->number_of_dofs > actuators ? model->number_of_dofs : actuators;
    const double *zeros = TB_ARENA_ZEROED(&model->arena, double, longest);
    double *described = TB_ARENA_ARRAY(&model->arena, double, 7 * kinematics);
    if (keys == NULL || zeros == NULL || described == NULL)
        return tb_fail_memory(c->error, (size_t)count * sizeof *keys, "keyframes");
    for (int32_t i = 0; i < kinematics; i++) {
        const tb_model_body *body = &model->bodies[model->kinematic_bodies[i]];
        memcpy(described + 7 * i, body->position, sizeof body->position);
        memcpy(described + 7 * i + 3, body->orientation, sizeof body->orientation);
    }
    for (int32_t i = 0; i < count; i++) {
        const tb_keyframe_def *def = &c->scene->keyframes[i];
        const double *q = NULL, *u = NULL, *controls = NULL, *activations = NULL, *kinematic = NULL;
        tb_status status = key_array(c, def, i, "q", def->q, def->number_of_q,
                                     model->number_of_coordinates, model->q_reference, &q);
        if (status == TB_OK)
            status = key_array(c, def, i, "u", def->u, def->number_of_u, model->number_of_dofs,
                               zeros, &u);
        if (status == TB_OK)
            status = key_array(c, def, i, "controls", def->controls, def->number_of_controls,
                               actuators, zeros, &controls);
        if (status == TB_OK)
            status =
                key_array(c, def, i, "activations", def->activations, def->number_of_activations,
                          model->number_of_activations, zeros, &activations);
        if (status == TB_OK)
            status = key_array(c, def, i, "kinematic", def->kinematic, def->number_of_kinematic,
                               7 * kinematics, described, &kinematic);
        if (status != TB_OK) return status;
        if (q != model->q_reference)
            normalize_rotations(model, (double *)(uintptr_t)q); /* the copy */
        for (int32_t k = 0; kinematic != described && k < kinematics; k++) {
            double *turn = (double *)(uintptr_t)(kinematic + 7 * k + 3); /* likewise */
            tb_q_store(turn, tb_q_normalize(tb_q_load(turn)));
        }
        keys[i].time = def->time;
        keys[i].q = q;
        keys[i].u = u;
        keys[i].controls = controls;
        keys[i].activations = activations;
        keys[i].kinematic = kinematic;
    }
    model->keyframes = keys;
    model->number_of_keyframes = count;
    return TB_OK;
}

/* Whether surfaces adhere or rebound sideways, and how far apart two shapes may be that adhere: the ranges of
 * two shapes add. */
static void look_at_surfaces(tb_model *model)
{
    double range = 0;
    bool adheres = false, rebounds = false;
    for (int32_t i = 0; i < model->number_of_shapes; i++) {
        const tb_surface *s = &model->shapes[i].surface;
        adheres = adheres || s->adhesion > 0;
        rebounds = rebounds || s->tangential_restitution > 0;
        range = fmax(range, 2 * s->adhesion_range);
    }
    for (int32_t i = 0; i < model->number_of_pairs; i++) {
        const tb_surface *s = &model->pairs[i].surface;
        adheres = adheres || s->adhesion > 0;
        rebounds = rebounds || s->tangential_restitution > 0;
        range = fmax(range, s->adhesion_range);
    }
    model->has_tangential_restitution = rebounds;
    model->has_adhesive_surfaces = adheres;
    model->has_adhesion = model->has_adhesion || adheres;
    model->adhesion_reach = adheres ? range : 0;
}

tb_status tb_compile_parts(tb_compiler *c)
{
    tb_status status = compile_sites(c);
    if (status == TB_OK) status = tb_compile_tendons(c);
    if (status == TB_OK) status = tb_compile_actuators(c);
    if (status == TB_OK) status = compile_equalities(c);
    if (status == TB_OK) status = compile_pairs(c);
    if (status == TB_OK) status = compile_elements(c);
    if (status == TB_OK) status = tb_compile_elastics(c);
    if (status == TB_OK) status = compile_excludes(c);
    if (status == TB_OK) status = compile_keyframes(c);
    if (status == TB_OK) status = tb_compile_sensors(c);
    if (status == TB_OK) look_at_surfaces(c->model);
    return status;
}
