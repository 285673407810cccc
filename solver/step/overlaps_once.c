/* Shapes that overlap in a pose, and whether the joints between them can part them.
 *
 * Collision meshes of robots overlap: hulls fill hollows, neighbours share a bearing. The filters
 * of MuJoCo's documentation (same body, bodies welded together, parent and child, excludes) take
 * most of such pairs away, and the pairs listed here are those that the filters leave. The step's
 * own narrow phase measures each, so the depth is the one that the first step meets.
 *
 * Whether the joints can part a pair is found by sampling: every joint visits NUMBER values spread
 * evenly over its range, ends included, each joint in an order of its own (a Latin hypercube),
 * joints that follow another by an equality excepted. All pairs are measured in the same samples. A
 * sample that parts a pair proves that the pair can part; the absence of one is evidence, not
 * proof. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "step/stages/approach.h"
#include "step/stages/stages.h"

/* Seed of the orders in which joints visit their values: equal models give equal answers. */
static const uint64_t SAMPLING_SEED = 0x6f7665726c6170;

typedef struct search {
    const tb_state *state;
    const tb_model *model;
    tb_arena *arena;
    tb_dynamics dynamics;
    tb_posed_shape *shapes; /* model shapes */
    double *q;              /* coordinates of a sample */
    uint32_t *stride;       /* joints: odd, in an order of its own */
    uint32_t *offset;       /* joints */
    int32_t samples;        /* a power of two */
    int32_t most;           /* pairs to list; less deep ones are only counted */
    int64_t total;          /* pairs that overlap */
} search;

static const double PI = 3.14159265358979323846;

/* ---- one pose ---- */

static void pose_shapes(search *s, const double *q)
{
    const tb_model *m = s->model;
    tb_dynamics_positions(&s->dynamics, q, s->state->kinematic);
    for (int32_t i = 0; i < m->number_of_colliding_shapes; i++) {
        const int32_t shape = m->colliding_shapes[i];
        const tb_pose *body = &s->dynamics.poses[m->shapes[shape].body];
        s->shapes[shape] = tb_shape_at(m, &m->shapes[shape], body);
    }
}

/* Deepest point of a pair, m; 0 where the two are apart. False without memory. */
static bool measure(search *s, int32_t a, int32_t b, double *depth)
{
    const tb_arena_mark mark = tb_arena_get_mark(s->arena);
    tb_contact_point few[64], *points = few;
    int32_t capacity = 64, count;
    uint32_t flags = 0;
    *depth = 0;
    for (;;) {
        count =
            tb_collide_pair(&s->shapes[a], &s->shapes[b], 0, points, capacity, s->arena, &flags);
        if (count <= capacity) break;
        capacity = count;
        points = TB_ARENA_ARRAY(s->arena, tb_contact_point, capacity);
        if (points == NULL) return false;
    }
    for (int32_t i = 0; i < count; i++) *depth = fmax(*depth, -points[i].gap);
    tb_arena_return_to(s->arena, mark);
    return count >= 0;
}

static bool wanted(const void *context, int32_t a, int32_t b)
{
    const tb_model *m = context;
    return tb_model_shapes_collide(m, m->colliding_shapes[a], m->colliding_shapes[b]);
}

/* ---- joints between two bodies ---- */

/* Walks from both bodies to the nearest body above both, counting bodies that have joints. */
static void walk_between(const tb_model *m, tb_overlap *o)
{
    int32_t a = o->body_a, b = o->body_b;
    o->joints = 0;
    while (a != b) {
        int32_t *lower = a > b ? &a : &b; /* a parent has a smaller number */
        if (m->bodies[*lower].number_of_joints > 0 || m->bodies[*lower].kinematic >= 0) o->joints++;
        *lower = m->bodies[*lower].parent;
    }
    o->linked = a != 0;
}

/* Whether a body goes anywhere: no range bounds its own joints. */
static bool goes_anywhere(const tb_model *m, int32_t body)
{
    const tb_model_body *b = &m->bodies[body];
    if (b->kinematic >= 0) return true;
    for (int32_t j = b->joint; j >= 0 && j < b->joint + b->number_of_joints; j++) {
        const tb_model_joint *joint = &m->joints[j];
        if (joint->type == TB_JOINT_FREE) return true;
        if (joint->type == TB_JOINT_SLIDE && !joint->limited) return true;
    }
    return false;
}

static bool can_go_anywhere(const tb_model *m, const tb_overlap *o)
{
    for (int32_t a = o->body_a, b = o->body_b; a != b;) {
        int32_t *lower = a > b ? &a : &b;
        if (goes_anywhere(m, *lower)) return true;
        *lower = m->bodies[*lower].parent;
    }
    return false;
}

/* ---- samples ---- */

/* The value of a joint in a sample, in [0, 1], both ends included. */
static double fraction(const search *s, int32_t joint, uint32_t sample)
{
    const uint32_t place = sample * s->stride[joint] + s->offset[joint];
    return (double)(place & (uint32_t)(s->samples - 1)) / (s->samples - 1);
}

/* A ball joint's sample: an angle within its range about an axis that goes round with it. */
static void sample_ball(const search *s, const tb_model_joint *j, double x, uint32_t sample)
{
    tb_random random = tb_random_stream(SAMPLING_SEED, (uint64_t)j->coordinate << 32 | sample);
    const double z = tb_random_between(&random, -1, 1),
                 turn = tb_random_between(&random, 0, 2 * PI);
    const double half = 0.5 * x * (j->limited ? j->upper : PI), flat = sqrt(1 - z * z);
    const tb_quaternion q =
        tb_q(cos(half), sin(half) * flat * cos(turn), sin(half) * flat * sin(turn), sin(half) * z);
    tb_q_store(s->q + j->coordinate, q);
}

static void follow_equalities(search *s)
{
    const tb_model *m = s->model;
    for (int32_t i = 0; i < m->number_of_equalities; i++) {
        const tb_model_equality *e = &m->equalities[i];
        if (e->type != TB_EQUALITY_JOINT || e->disabled) continue;
        const double *p = e->polynomial;
        const double y = e->b >= 0 ? s->q[m->joints[e->b].coordinate] - e->reference_b : 0;
        s->q[m->joints[e->a].coordinate] =
            e->reference_a + p[0] + y * (p[1] + y * (p[2] + y * (p[3] + y * p[4])));
    }
}

static void pose_sample(search *s, uint32_t sample)
{
    const tb_model *m = s->model;
    memcpy(s->q, s->state->q, (size_t)m->number_of_coordinates * sizeof *s->q);
    for (int32_t i = 0; i < m->number_of_joints; i++) {
        const tb_model_joint *j = &m->joints[i];
        const double x = fraction(s, i, sample);
        if (j->type == TB_JOINT_BALL)
            sample_ball(s, j, x, sample);
        else if (j->limited && (j->type == TB_JOINT_HINGE || j->type == TB_JOINT_SLIDE))
            s->q[j->coordinate] = j->lower + x * (j->upper - j->lower);
        else if (j->type == TB_JOINT_HINGE)
            s->q[j->coordinate] = j->reference + PI * (2 * x - 1);
    }
    /* twice, so that a joint that follows a follower arrives too */
    follow_equalities(s);
    follow_equalities(s);
    pose_shapes(s, s->q);
}

static bool try_samples(search *s, tb_overlap *overlaps, int32_t count, double slop)
{
    bool open = false;
    for (int32_t i = 0; i < count; i++) {
        overlaps[i].least_depth = can_go_anywhere(s->model, &overlaps[i]) ? 0 : overlaps[i].depth;
        open = open || overlaps[i].least_depth > 0;
    }
    for (int32_t k = 0; k < s->samples && open; k++) {
        pose_sample(s, (uint32_t)k);
        open = false;
        for (int32_t i = 0; i < count; i++) {
            tb_overlap *o = &overlaps[i];
            double depth;
            if (!(o->least_depth > 0)) continue;
            if (!measure(s, o->shape_a, o->shape_b, &depth)) return false;
            o->least_depth = fmin(o->least_depth, depth);
            open = open || o->least_depth > 0;
        }
    }
    for (int32_t i = 0; i < count; i++) overlaps[i].persists = overlaps[i].least_depth > slop;
    return true;
}

/* ---- the list ---- */

/* Takes the search's arrays and chooses the joints' orders. */
static bool prepare(search *s, int32_t samples)
{
    const tb_model *m = s->model;
    const int32_t joints = m->number_of_joints;
    s->samples = 2;
    while (s->samples < samples) s->samples *= 2;
    s->shapes = TB_ARENA_ARRAY(s->arena, tb_posed_shape, m->number_of_shapes);
    s->q = TB_ARENA_ARRAY(s->arena, double, m->number_of_coordinates);
    s->stride = TB_ARENA_ARRAY(s->arena, uint32_t, joints);
    s->offset = TB_ARENA_ARRAY(s->arena, uint32_t, joints);
    if (!s->shapes || !s->q || !s->stride || !s->offset) return false;
    for (int32_t j = 0; j < joints; j++) {
        tb_random random = tb_random_stream(SAMPLING_SEED, (uint64_t)j);
        s->stride[j] = tb_random_u32(&random) | 1u;
        s->offset[j] = tb_random_u32(&random);
    }
    return tb_dynamics_take(&s->dynamics, m, s->arena) == TB_OK;
}

static int by_depth(const void *left, const void *right)
{
    const tb_overlap *l = left, *r = right;
    if (l->depth != r->depth) return l->depth > r->depth ? -1 : 1;
    if (l->shape_a != r->shape_a) return l->shape_a < r->shape_a ? -1 : 1;
    return (l->shape_b > r->shape_b) - (l->shape_b < r->shape_b);
}

/* Pairs that overlap in the state's pose, on the heap. */
static tb_status find_overlaps(search *s, double slop, tb_overlap **overlaps, int32_t *count,
                               tb_error *error)
{
    const tb_model *m = s->model;
    const int32_t colliding = m->number_of_colliding_shapes;
    tb_pair *pairs = NULL;
    int32_t number_of_pairs = 0;
    tb_box *boxes = TB_ARENA_ARRAY(s->arena, tb_box, colliding);
    if (boxes == NULL) return tb_fail_memory(error, 0, "overlaps");
    pose_shapes(s, s->state->q);
    for (int32_t i = 0; i < colliding; i++)
        boxes[i] = tb_shape_box(&s->shapes[m->colliding_shapes[i]]);
    const tb_status status =
        tb_broad_phase(boxes, colliding, wanted, m, 1, s->arena, &pairs, &number_of_pairs);
    if (status != TB_OK) return tb_fail(error, status, "overlaps: %s", tb_status_text(status));

    int32_t capacity = 0;
    for (int32_t p = 0; p < number_of_pairs; p++) {
        tb_overlap o = {.shape_a = m->colliding_shapes[pairs[p].a],
                        .shape_b = m->colliding_shapes[pairs[p].b]};
        if (!measure(s, o.shape_a, o.shape_b, &o.depth))
            return tb_fail_memory(error, 0, "overlaps");
        if (!(o.depth > slop)) continue;
        s->total++;
        if (*count / 2 >= s->most) {
            qsort(*overlaps, (size_t)*count, sizeof **overlaps, by_depth);
            *count = s->most;
        }
        if (*count == capacity) {
            tb_overlap *larger = tb_grow(*overlaps, *count + 1, &capacity, sizeof o);
            if (larger == NULL) return tb_fail_memory(error, sizeof o, "overlaps");
            *overlaps = larger;
        }
        o.body_a = m->shapes[o.shape_a].body;
        o.body_b = m->shapes[o.shape_b].body;
        walk_between(m, &o);
        (*overlaps)[(*count)++] = o;
    }
    if (*count > 0) qsort(*overlaps, (size_t)*count, sizeof **overlaps, by_depth);
    if (*count > s->most) *count = s->most;
    return TB_OK;
}

tb_status tb_state_overlaps(const tb_state *state, double slop, int32_t samples,
                            tb_overlap **overlaps, int32_t *count, tb_error *error)
{
    int64_t total;
    return tb_state_deepest_overlaps(state, slop, samples, INT32_MAX / 4, overlaps, count, &total,
                                     error);
}

tb_status tb_state_deepest_overlaps(const tb_state *state, double slop, int32_t samples,
                                    int32_t most, tb_overlap **overlaps, int32_t *count,
                                    int64_t *total, tb_error *error)
{
    enum { MOST_SAMPLES = 1 << 16 };
    tb_arena arena = {0};
    search s = {.state = state, .model = state->model, .arena = &arena, .most = most};
    *total = 0;
    *overlaps = NULL;
    *count = 0;
    if (!(slop >= 0) || !isfinite(slop))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "slop", "slop is %g m, not zero or above",
                             slop);
    if (samples < 0 || samples > MOST_SAMPLES)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "samples", "%d samples, expected 0 to %d",
                             (int)samples, (int)MOST_SAMPLES);
    tb_status status = tb_state_sync_to_host(state, TB_PARTS_NUMBERS, error);
    if (status == TB_OK && !prepare(&s, samples)) status = tb_fail_memory(error, 0, "overlaps");
    if (status == TB_OK) status = find_overlaps(&s, slop, overlaps, count, error);
    if (status == TB_OK && samples > 0 && !try_samples(&s, *overlaps, *count, slop))
        status = tb_fail_memory(error, 0, "overlaps");
    *total = s.total;
    tb_arena_destroy(&arena);
    if (status != TB_OK) {
        tb_overlaps_destroy(*overlaps);
        *overlaps = NULL;
        *count = 0;
    }
    return status;
}

void tb_overlaps_destroy(tb_overlap *overlaps)
{
    free(overlaps);
}
