/* Compiles tendons: the terms of fixed tendons; for spatial tendons the path in model bodies and
 * the dofs that can change its length. */
#include "model/model_internal.h"
#include "model/tendon_path.h"

#include <stdlib.h>
#include <string.h>

static int32_t body_of(const tb_compiler *c, tb_handle body)
{
    return tb_handle_is_none(body) ? 0 : c->model_body[scene_index(body)];
}

/* ---- dofs of spatial tendons ---- */

/* The model's arrays while they are filled. */
typedef struct tendon_arrays {
    tb_model_tendon *tendons;
    int32_t *dofs, *coordinates;
    double *coefficients;
    tb_model_tendon_point *points;
    int32_t *moved;  /* dofs, scratch, zero in between */
    bool *marks;     /* likewise */
    int32_t *listed; /* dofs, scratch */
} tendon_arrays;

/* A pass over the dofs above the bodies of a branch. */
typedef enum branch_pass { COUNT_DOFS, LIST_DOFS, CLEAR_DOFS } branch_pass;

/* Walks over the points of a branch, which begins after a pulley or at the path's start, and over the dofs above
 * each: counts how many bodies each dof moves, lists those that move some of `bodies` but not all, or clears the
 * counts. Returns the number of bodies; *end is the point after the branch. */
static int32_t walk_branch(const tb_compiler *c, const tb_tendon_def *def, int32_t first,
                           int32_t *end, branch_pass pass, int32_t bodies, tendon_arrays *t,
                           int32_t *listed)
{
    int32_t i = first;
    for (; i < def->number_of_points && def->points[i].kind != TB_TENDON_PULLEY; i++) {
        int32_t dof = c->bodies[body_of(c, def->points[i].body)].last_dof;
        for (; dof >= 0; dof = c->dofs[dof].parent) {
            if (pass == COUNT_DOFS) t->moved[dof]++;
            if (pass == CLEAR_DOFS) t->moved[dof] = 0;
            if (pass != LIST_DOFS || t->marks[dof] || t->moved[dof] == bodies) continue;
            t->marks[dof] = true;
            t->listed[(*listed)++] = dof;
        }
    }
    *end = i;
    return i - first;
}

static int ascending(const void *a, const void *b)
{
    const int32_t p = *(const int32_t *)a, q = *(const int32_t *)b;
    return (p > q) - (p < q);
}

/* Lists the dofs that change the length, ascending: in some branch they move some bodies, but not all. Returns
 * their number. */
static int32_t list_dofs(const tb_compiler *c, const tb_tendon_def *def, tendon_arrays *t)
{
    int32_t listed = 0;
    for (int32_t i = 0, end = 0; i < def->number_of_points; i = end + 1) {
        const int32_t bodies = walk_branch(c, def, i, &end, COUNT_DOFS, 0, t, &listed);
        walk_branch(c, def, i, &end, LIST_DOFS, bodies, t, &listed);
        walk_branch(c, def, i, &end, CLEAR_DOFS, 0, t, &listed);
    }
    for (int32_t k = 0; k < listed; k++) t->marks[t->listed[k]] = false;
    if (listed > 0) qsort(t->listed, (size_t)listed, sizeof *t->listed, ascending);
    return listed;
}

/* ---- the arrays ---- */

static void write_fixed(const tb_compiler *c, const tb_tendon_def *def,
                        const tb_model_tendon *tendon, tendon_arrays *t)
{
    for (int32_t k = 0; k < tendon->count; k++) {
        const tb_model_joint *joint = &c->joints[c->model_joint[scene_index(def->joints[k])]];
        t->dofs[tendon->first + k] = joint->dof;
        t->coordinates[tendon->first + k] = joint->coordinate;
        t->coefficients[tendon->first + k] = def->coefficients[k];
    }
}

static void write_point(const tb_compiler *c, const tb_tendon_point *from,
                        tb_model_tendon_point *to)
{
    const tb_mat33 rotation = tb_q_matrix(tb_q_load(from->orientation));
    to->kind = from->kind;
    to->body = body_of(c, from->body);
    memcpy(to->position, from->position, sizeof to->position);
    memcpy(to->rotation, rotation.m, sizeof to->rotation);
    to->radius = from->radius;
    to->divisor = from->divisor;
    to->side_body = from->has_side ? body_of(c, from->side_body) : -1;
    memcpy(to->side, from->side, sizeof to->side);
}

static void write_spatial(const tb_compiler *c, const tb_tendon_def *def,
                          const tb_model_tendon *tendon, tendon_arrays *t)
{
    const int32_t count = list_dofs(c, def, t);
    for (int32_t i = 0; i < count; i++) {
        t->dofs[tendon->first + i] = t->listed[i];
        t->coordinates[tendon->first + i] = 0;
        t->coefficients[tendon->first + i] = 0;
    }
    for (int32_t k = 0; k < tendon->number_of_points; k++)
        write_point(c, &def->points[k], &t->points[tendon->first_point + k]);
}

static tb_model_tendon tendon_of(const tb_tendon_def *def)
{
    tb_model_tendon tendon = {.limited = def->limited};
    tendon.lower = def->lower;
    tendon.upper = def->upper;
    tendon.stiffness = def->stiffness;
    tendon.damping = def->damping;
    tendon.dry_friction = def->dry_friction;
    tendon.spring_lower = def->spring_lower;
    tendon.spring_upper = def->spring_upper;
    tendon.armature = def->armature;
    memcpy(tendon.stiffness_polynomial, def->stiffness_polynomial,
           sizeof tendon.stiffness_polynomial);
    memcpy(tendon.damping_polynomial, def->damping_polynomial, sizeof tendon.damping_polynomial);
    for (int i = 0; i < 2; i++)
        tendon.is_polynomial = tendon.is_polynomial || def->stiffness_polynomial[i] != 0 ||
                               def->damping_polynomial[i] != 0;
    tendon.force_limited = def->actuator_force_limited;
    tendon.force_lower = def->actuator_force_lower;
    tendon.force_upper = def->actuator_force_upper;
    tendon.number_of_points = def->number_of_points;
    return tendon;
}

static tb_status too_many(tb_compiler *c, int64_t count)
{
    return tb_fail_field(c->error, TB_RESOURCE_EXHAUSTED, "tendon",
                         "all tendons together have %lld terms; at most %d are possible",
                         (long long)count, INT32_MAX);
}

tb_status tb_compile_tendons(tb_compiler *c)
{
    tb_model *model = c->model;
    tb_arena *arena = &model->arena;
    const int32_t count = c->scene->number_of_tendons;
    tendon_arrays t = {.tendons = TB_ARENA_ZEROED(arena, tb_model_tendon, count),
                       .moved = TB_ARENA_ZEROED(&c->scratch, int32_t, model->number_of_dofs + 1),
                       .marks = TB_ARENA_ZEROED(&c->scratch, bool, model->number_of_dofs + 1),
                       .listed = TB_ARENA_ARRAY(&c->scratch, int32_t, model->number_of_dofs + 1)};
    if (!t.tendons || !t.moved || !t.marks || !t.listed)
        return tb_fail_memory(c->error, (size_t)count * sizeof *t.tendons, "tendons");
    int64_t terms = 0, points = 0;
    for (int32_t i = 0; i < count; i++) {
        const tb_tendon_def *def = &c->scene->tendons[i];
        t.tendons[i] = tendon_of(def);
        t.tendons[i].first = (int32_t)terms;
        t.tendons[i].first_point = (int32_t)points;
        t.tendons[i].count =
            def->number_of_points > 0 ? list_dofs(c, def, &t) : def->number_of_joints;
        terms += t.tendons[i].count;
        points += def->number_of_points;
        if (terms > INT32_MAX || points > INT32_MAX) return too_many(c, terms + points);
    }
    t.dofs = TB_ARENA_ARRAY(arena, int32_t, terms);
    t.coordinates = TB_ARENA_ARRAY(arena, int32_t, terms);
    t.coefficients = TB_ARENA_ARRAY(arena, double, terms);
    t.points = TB_ARENA_ZEROED(arena, tb_model_tendon_point, points);
    if (!t.dofs || !t.coordinates || !t.coefficients || !t.points)
        return tb_fail_memory(c->error, (size_t)terms * sizeof *t.coefficients, "tendons");
    for (int32_t i = 0; i < count; i++) {
        const tb_tendon_def *def = &c->scene->tendons[i];
        if (def->number_of_points > 0)
            write_spatial(c, def, &t.tendons[i], &t);
        else
            write_fixed(c, def, &t.tendons[i], &t);
    }
    model->tendons = c->tendons = t.tendons;
    model->tendon_dofs = t.dofs;
    model->tendon_coordinates = t.coordinates;
    model->tendon_coefficients = t.coefficients;
    model->tendon_points = t.points;
    model->number_of_tendons = count;
    model->number_of_tendon_terms = (int32_t)terms;
    model->number_of_tendon_points = (int32_t)points;
    return TB_OK;
}

double tb_compile_tendon_length(const tb_compiler *c, int32_t tendon)
{
    const tb_model *m = c->model;
    const tb_model_tendon *t = &m->tendons[tendon];
    if (t->number_of_points > 0)
        return tb_tendon_path_length(m->tendon_points + t->first_point, t->number_of_points,
                                     c->poses);
    double length = 0;
    for (int32_t i = t->first; i < t->first + t->count; i++)
        length += m->tendon_coefficients[i] * m->q_reference[m->tendon_coordinates[i]];
    return length;
}
