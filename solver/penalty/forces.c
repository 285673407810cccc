/* Contact forces of one world: near pairs, their overlaps, and wrenches on the bodies.
 *
 * A list of near pairs is kept between evaluations. It holds all pairs whose boxes, grown by a
 * margin, met when the list was made, in the order of their shapes; it is made again when a box has
 * left its grown one. The list only leaves out pairs that cannot touch, so that it has no influence
 * on the forces. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "penalty/card/ball_law.h"
#include "penalty/penalty_internal.h"

/* A thread takes so many trees or shapes at a time: 0.1 ms and less than a first-level cache. */
enum { LOOP_GRAIN = 256 };

/* ---- motion ---- */

/* One point of an integration, for loops over trees and over shapes. */
typedef struct point_loop {
    tb_penalty *p;
    const double *q, *u;
    double *slope;          /* of q and u */
    atomic_bool *left_list; /* a box has left its grown one */
} point_loop;

static void loop_over(tb_penalty *p, int32_t count, tb_parallel_function *function,
                      point_loop *point)
{
    point->p = p;
    tb_parallel_for(count, LOOP_GRAIN, p->dynamics_memory.threads, function, point);
}

static void move_tree(void *context, int32_t t, int32_t thread)
{
    const point_loop *point = context;
    tb_penalty *p = point->p;
    const tb_model_tree *tree = &p->state->model->trees[t];
    tb_law_motion motion;
    (void)thread;
    tb_law_move(&p->law_bodies[t], point->q + tree->coordinate, point->u + tree->dof,
                &p->poses[tree->body], &motion);
    p->com[tree->body] = motion.com;
    p->linear[tree->body] = motion.linear;
    p->angular[tree->body] = motion.angular;
}

static void simple_motion(tb_penalty *p, const double *q, const double *u)
{
    point_loop point = {.q = q, .u = u};
    loop_over(p, p->state->model->number_of_trees, move_tree, &point);
}

/* Where bodies without coordinates of their own are: described poses, kinematic ones. */
static void walked_motion(tb_penalty *p, tb_dynamics *d, const double *u)
{
    const tb_model *m = p->state->model;
    tb_dynamics_velocities(d, u, p->kinematic);
    for (int32_t b = 0; b < m->number_of_bodies; b++) {
        const tb_model_body *body = &m->bodies[b];
        const tb_vec3 about =
            body->tree >= 0 ? d->references[body->tree] : d->poses[body->fixed_to].position;
        p->poses[b] = d->poses[b];
        p->com[b] = tb_pose_point(&d->poses[b], tb_v3_load(body->com));
        p->linear[b] = tb_motion_at(d->velocities[b], tb_v3_sub(p->com[b], about));
        p->angular[b] = d->velocities[b].angular;
    }
}

static tb_status find_motion(tb_penalty *p, double t, const double *q, const double *u,
                             tb_error *error)
{
    const tb_model *m = p->state->model;
    memcpy(p->kinematic, p->state->kinematic,
           (size_t)(TB_KINEMATIC_NUMBERS * m->number_of_kinematic_bodies) * sizeof(double));
    tb_kinematic_move(p->kinematic, m->number_of_kinematic_bodies, t);
    if (p->simple && p->listed) {
        simple_motion(p, q, u);
        return TB_OK;
    }
    tb_dynamics d = {0};
    tb_arena_reset(&p->dynamics_memory.arena);
    const tb_status status = tb_dynamics_take(&d, m, &p->dynamics_memory.arena);
    if (status != TB_OK) return tb_fail_memory(error, 0, "the motion of a world");
    tb_dynamics_positions(&d, q, p->kinematic);
    walked_motion(p, &d, u);
    if (p->simple) simple_motion(p, q, u);
    return TB_OK;
}

/* ---- near pairs ---- */

static void place_shape(void *context, int32_t i, int32_t thread)
{
    const point_loop *point = context;
    tb_penalty *p = point->p;
    const tb_law_shape *x = &p->shapes[i];
    const tb_model_shape *s = &p->state->model->shapes[x->shape];
    const tb_law_outline outline = {.position = s->position,
                                    .rotation = s->rotation,
                                    .radius = x->radius,
                                    .half_space = x->half_space,
                                    .lower = x->lower,
                                    .upper = x->upper};
    double *box = p->boxes + 6 * i;
    (void)thread;
    tb_law_place_shape(&outline, &p->poses[x->body], &p->shape_poses[i], box);
    if (!p->listed) return;
    const double *grown = p->near_boxes + 6 * i;
    bool left = false;
    for (int k = 0; k < 3; k++) left = left || box[k] < grown[k] || box[3 + k] > grown[3 + k];
    if (left) atomic_store_explicit(point->left_list, true, memory_order_relaxed);
}

/* Whether the list of near pairs still holds there. */
static bool place_shapes(tb_penalty *p)
{
    atomic_bool left = false;
    point_loop point = {.left_list = &left};
    loop_over(p, p->number_of_shapes, place_shape, &point);
    return p->listed && !left;
}

static int compare_pairs(const void *a, const void *b)
{
    const tb_near_pair *x = a, *y = b;
    return x->a != y->a ? (x->a < y->a ? -1 : 1) : (x->b < y->b ? -1 : x->b > y->b);
}

static bool add_pair(tb_penalty *p, int32_t a, int32_t b)
{
    const tb_law_shape *x = &p->shapes[a], *y = &p->shapes[b];
    if ((x->fixed && y->fixed) || (x->half_space && y->half_space) ||
        !tb_model_shapes_collide(p->state->model, x->shape, y->shape))
        return true;
    tb_near_pair *grown =
        tb_grow(p->pairs, p->number_of_pairs + 1, &p->pair_capacity, sizeof *grown);
    if (!grown) return false;
    p->pairs = grown;
    p->pairs[p->number_of_pairs++] =
        (tb_near_pair){.a = a < b ? a : b,
                       .b = a < b ? b : a,
                       .reach = x->radius > 0 && y->radius > 0 ? x->radius + y->radius : 0};
    return true;
}

/* Half-spaces have no box: they are near all. */
static tb_status make_list(tb_penalty *p, tb_error *error)
{
    int32_t bounded = 0;
    p->number_of_pairs = 0;
    for (int32_t i = 0; i < p->number_of_shapes; i++) {
        double *box = p->near_boxes + 6 * i;
        for (int k = 0; k < 3; k++) {
            box[k] = p->boxes[6 * i + k] - p->margin;
            box[3 + k] = p->boxes[6 * i + 3 + k] + p->margin;
        }
        if (p->shapes[i].half_space) continue;
        memcpy(p->bounded_boxes + 6 * bounded, box, 6 * sizeof *box);
        p->bounded[bounded++] = i;
    }
    const tb_status status = tb_broad_near(&p->broad, p->bounded_boxes, bounded, error);
    if (status != TB_OK) return status;
    bool fits = true;
    for (int32_t i = 0; i < p->broad.number_of_pairs && fits; i++) {
        const uint64_t pair = p->broad.pairs[i];
        fits = add_pair(p, p->bounded[pair >> 32], p->bounded[pair & 0xffffffff]);
    }
    for (int32_t i = 0; i < p->number_of_shapes && fits; i++)
        for (int32_t k = 0; k < bounded && p->shapes[i].half_space && fits; k++)
            fits = add_pair(p, i, p->bounded[k]);
    if (!fits) return tb_fail_memory(error, 0, "near pairs");
    if (bounded < p->number_of_shapes)
        qsort(p->pairs, (size_t)p->number_of_pairs, sizeof *p->pairs, compare_pairs);
    p->listed = true;
    return TB_OK;
}

static void test_pair(void *context, int32_t i, int32_t thread)
{
    tb_penalty *p = ((const point_loop *)context)->p;
    tb_near_pair *pair = &p->pairs[i];
    const int32_t a = pair->a, b = pair->b;
    const tb_pose *poses = p->shape_poses;
    (void)thread;
    pair->may_touch = (pair->reach == 0 ||
                       tb_law_balls_touch(poses[a].position, poses[b].position, pair->reach)) &&
                      tb_boxes_meet(p->boxes + 6 * a, p->boxes + 6 * b);
}

/* ---- contacts ---- */

static tb_law_motion motion_of(const tb_penalty *p, int32_t body)
{
    return (tb_law_motion){p->com[body], p->linear[body], p->angular[body]};
}

/* Applies a contact and remembers it; given: its push, NULL: by the law of overlaps. False if memory is
 * refused. */
static bool apply(tb_penalty *p, const tb_near_pair *pair, const tb_volume_constants *constants,
                  const tb_overlap_part *part, const tb_contact_push *given)
{
    const int32_t a = p->shapes[pair->a].body, b = p->shapes[pair->b].body;
    const tb_law_motion ma = motion_of(p, a), mb = motion_of(p, b);
    tb_law_pressed x;
    tb_law_press(constants, part, given, &ma, &mb, &x);
    if (!(tb_v3_length2(part->area) > 0)) p->degenerate = true;
    tb_law_add_wrench(p->wrenches + 6 * a, ma.com, part->centroid, x.push.force, x.push.torque);
    tb_law_add_wrench(p->wrenches + 6 * b, mb.com, part->centroid, tb_v3_negate(x.push.force),
                      tb_v3_negate(x.push.torque));
    p->power += x.power;
    tb_law_contact *grown =
        tb_grow(p->contacts, p->number_of_contacts + 1, &p->contact_capacity, sizeof *grown);
    if (!grown) return false;
    p->contacts = grown;
    p->contacts[p->number_of_contacts++] =
        (tb_law_contact){pair->a, pair->b, *part, x.push, x.velocity};
    return true;
}

static tb_law_round round_of(const tb_penalty *p, int32_t shape)
{
    const tb_pose *pose = &p->shape_poses[shape];
    return (tb_law_round){p->shapes[shape].radius, pose->position,
                          tb_m33_column(&pose->rotation, 2)};
}

static bool push_round(tb_penalty *p, const tb_near_pair *pair,
                       const tb_volume_constants *constants)
{
    const tb_law_round a = round_of(p, pair->a), b = round_of(p, pair->b);
    tb_overlap_part part;
    tb_contact_push push;
    bool given;
    switch (tb_law_round_contact(constants, &a, &b, &part, &push, &given)) {
    case TB_BALLS_APART: return true;
    case TB_BALLS_EQUAL: p->degenerate = true; return true;
    default: return apply(p, pair, constants, &part, given ? &push : NULL);
    }
}

/* ---- evaluations kept for viewers ---- */

/* Faces of the last overlap as triangles, which share the normal forces of the contacts that were
 * made of its parts, from `first` on. A part's area vector is the sum of its triangles' ones. */
static void keep_triangles(tb_penalty *p, int32_t first)
{
    const tb_overlaps_found *f = &p->found;
    for (int32_t i = 0; i < f->number_of_faces; i++) {
        const tb_overlap_face *face = &f->faces[i];
        const int32_t number = first + f->fragments[face->fragment].number;
        const tb_law_contact *contact = &p->contacts[number];
        const double area = tb_v3_length(contact->part.area);
        const tb_vec3 *v = f->vertices + face->vertex;
        for (int32_t k = 1; k + 1 < face->number_of_vertices; k++) {
            tb_evaluation_triangle *made = tb_kept_triangle(p->state->kept);
            if (!made) return;
            const tb_vec3 twice = tb_v3_cross(tb_v3_sub(v[k], v[0]), tb_v3_sub(v[k + 1], v[0]));
            made->contact = number;
            tb_v3_store(made->vertices[0], v[0]);
            tb_v3_store(made->vertices[1], v[k]);
            tb_v3_store(made->vertices[2], v[k + 1]);
            if (area > 0)
                tb_v3_store(made->force,
                            tb_v3_scale(twice, -0.5 * contact->push.normal_force / area));
        }
    }
}

static void keep_contact(const tb_penalty *p, const tb_law_contact *x, tb_evaluation_contact *made)
{
    const tb_vec3 away = tb_v3_normalize(x->part.area, tb_v3(0, 0, 1));
    made->shape_a = p->shapes[x->a].shape;
    made->shape_b = p->shapes[x->b].shape;
    made->volume = x->part.volume;
    made->depth = x->part.depth;
    tb_v3_store(made->centroid, x->part.centroid);
    tb_v3_store(made->normal, tb_v3_negate(away));
    tb_v3_store(made->force, tb_v3_negate(x->push.force));
    tb_v3_store(made->torque, tb_v3_negate(x->push.torque));
}

/* Poses, boxes and contacts of the present evaluation; its triangles are kept as they are found. */
static void keep_evaluation(const tb_penalty *p, tb_kept_evaluations *kept)
{
    double *pose = tb_kept_poses(kept), *box = tb_kept_boxes(kept);
    for (int32_t b = 0; pose && b < p->state->model->number_of_bodies; b++, pose += 7) {
        tb_v3_store(pose, p->poses[b].position);
        tb_q_store(pose + 3, tb_q_from_matrix(&p->poses[b].rotation));
    }
    for (int32_t i = 0; box && i < p->number_of_shapes; i++)
        if (!p->shapes[i].half_space) {
            memcpy(box, p->boxes + 6 * i, 6 * sizeof *box);
            box += 6;
        }
    for (int32_t i = 0; i < p->number_of_contacts; i++) {
        tb_evaluation_contact *made = tb_kept_contact(kept);
        if (!made) break;
        keep_contact(p, &p->contacts[i], made);
    }
    tb_kept_end(kept);
}

/* ---- one evaluation ---- */

static tb_status push_pair(tb_penalty *p, const tb_near_pair *pair, tb_error *error)
{
    const tb_law_shape *a = &p->shapes[pair->a], *b = &p->shapes[pair->b];
    const tb_volume_constants constants = tb_volume_constants_of_pair(&a->constants, &b->constants);
    bool fits = true;
    if (tb_law_is_round(a->radius, a->half_space, b->radius, b->half_space)) {
        fits = push_round(p, pair, &constants);
    } else {
        const tb_status status =
            tb_solids_overlap(&p->solids[a->solid], &p->shape_poses[pair->a], &p->solids[b->solid],
                              &p->shape_poses[pair->b], !constants.joined, &p->found, error);
        if (status != TB_OK) return status;
        const int32_t first = p->number_of_contacts;
        for (int32_t i = 0; i < p->found.number_of_parts && fits; i++) {
            const tb_overlap_part part = p->found.parts[i];
            fits = apply(p, pair, &constants, &part, NULL);
        }
        if (p->found.keeps_faces && fits) keep_triangles(p, first);
    }
    return fits ? TB_OK : tb_fail_memory(error, 0, "contacts");
}

void tb_penalty_begin_kept(const tb_penalty *p)
{
    int32_t bounded = 0;
    if (!p->state->kept) return;
    for (int32_t i = 0; i < p->number_of_shapes; i++)
        if (!p->shapes[i].half_space) p->bounded_shapes[bounded++] = p->shapes[i].shape;
    tb_kept_begin_step(p->state->kept, p->state->model->number_of_bodies, p->bounded_shapes,
                       bounded);
}

tb_status tb_penalty_evaluate(tb_penalty *p, double t, const double *y, tb_error *error)
{
    const tb_model *m = p->state->model;
    tb_status status = find_motion(p, t, y, y + m->number_of_coordinates, error);
    if (status != TB_OK) return status;
    if (!place_shapes(p)) status = make_list(p, error);
    memset(p->wrenches, 0, 6 * (size_t)m->number_of_bodies * sizeof(double));
    tb_kept_evaluations *kept = p->state->kept;
    p->found.keeps_faces = kept != NULL;
    if (kept) tb_kept_begin(kept, t);
    p->number_of_contacts = 0;
    p->power = 0;
    if (status == TB_OK) loop_over(p, p->number_of_pairs, test_pair, &(point_loop){0});
    for (int32_t i = 0; i < p->number_of_pairs && status == TB_OK; i++)
        if (p->pairs[i].may_touch) status = push_pair(p, &p->pairs[i], error);
    if (kept && status == TB_OK) keep_evaluation(p, kept);
    return status;
}

/* ---- f(t, y) ---- */

static void coordinate_slopes(const tb_model *m, const double *q, const double *u, double *slope)
{
    for (int32_t j = 0; j < m->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        const double *v = u + joint->dof, *x = q + joint->coordinate;
        double *s = slope + joint->coordinate;
        switch (joint->type) {
        case TB_JOINT_FREE:
            memcpy(s, v, 3 * sizeof *s);
            tb_law_quaternion_slope(x + 3, v + 3, s + 3);
            break;
        case TB_JOINT_BALL: tb_law_quaternion_slope(x, v, s); break;
        default: s[0] = v[0];
        }
    }
}

/* Slopes of a single body under gravity, contacts and applied wrenches. */
static void simple_slope(void *context, int32_t t, int32_t thread)
{
    const point_loop *point = context;
    const tb_penalty *p = point->p;
    const tb_model *m = p->state->model;
    const tb_model_tree *tree = &m->trees[t];
    const tb_law_body *law = &p->law_bodies[t];
    const int32_t body = tree->body;
    const double *u = point->u + tree->dof;
    (void)thread;
    tb_law_coordinate_slopes(law, point->q + tree->coordinate, u, point->slope + tree->coordinate);
    tb_law_acceleration(law, m->gravity, &p->poses[body].rotation, p->com[body], u,
                        p->wrenches + 6 * body, p->state->wrenches + 6 * body,
                        p->state->applied + tree->dof,
                        point->slope + m->number_of_coordinates + tree->dof);
}

static tb_status tree_accelerations(tb_penalty *p, const double *y, double *slope, tb_error *error)
{
    const tb_model *m = p->state->model;
    tb_state moved = *p->state;
    moved.q = (double *)(uintptr_t)y;
    moved.u = (double *)(uintptr_t)(y + m->number_of_coordinates);
    moved.wrenches = p->wrenches;
    moved.kinematic = p->kinematic;
    for (int32_t i = 0; i < 6 * m->number_of_bodies; i++) p->wrenches[i] += p->state->wrenches[i];
    return tb_world_smooth_acceleration(&moved, &p->dynamics_memory, slope, error);
}

tb_status tb_penalty_slope(void *context, double t, const double *y, double *slope, tb_error *error)
{
    tb_penalty *p = context;
    const tb_model *m = p->state->model;
    const double *u = y + m->number_of_coordinates;
    if (!tb_penalty_is_finite(p, y)) return tb_fail(error, TB_DIVERGED, "the motion is not finite");
    tb_status status = tb_penalty_evaluate(p, t, y, error);
    if (status != TB_OK) return status;
    if (p->simple) {
        point_loop point = {.q = y, .u = u, .slope = slope};
        loop_over(p, m->number_of_trees, simple_slope, &point);
    } else {
        coordinate_slopes(m, y, u, slope);
        status = tree_accelerations(p, y, slope + m->number_of_coordinates, error);
    }
    slope[p->size - 1] = p->power;
    return status;
}
