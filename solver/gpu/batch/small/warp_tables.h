/* Tables of a model: numbers of small worlds and piles that no step changes (warp_fits.h).
 *
 * They are made once a launch and read by all worlds of the model, so that the cache has them once. */
#ifndef TB_GPU_WARP_TABLES_H
#define TB_GPU_WARP_TABLES_H

#ifdef TB_UNIT_PILE
#include "gpu/batch/small/warp_pile.h"
#else
#include "gpu/batch/small/warp_solve.h"
#endif
#include "step/certificate.h"
#include "step/dynamics/free_body.h"
#include "step/stages/merge.h"
#include "step/stages/stages.h"

enum {
    WARP_LANES = 32,
    WARP_SHAPES = 32, /* colliding shapes: a lane each */
    WARP_ACTUATORS = 6,
    WARP_JOINT_ROWS = 16, /* rows that joints and actuators may have: a lane each */
    WARP_POINT_SLOTS = 32 /* pairs with points, at most; as many as there is room for */
};

#ifdef TB_UNIT_PILE
enum { WARP_BODIES = 8, WARP_COORDINATES = 42 };
#else
enum { WARP_BODIES = 6, WARP_COORDINATES = 16 };
#endif

/* A pair of colliding shapes that may touch, and how. */
typedef struct warp_candidate {
    uint16_t a, b; /* a < b, places in the model's list */
    int32_t kind;  /* rows: 1 or 3 */
    /* the first candidate of the same bodies and surface, whose points merge with its own; -1: none do */
    int32_t merges_as;
    tb_real friction, restitution;
    tb_real merge_distance; /* m */
} warp_candidate;

/* A candidate in one word, for the search: a, b and whether one of them is a plane, and which. */
enum { WARP_SECOND = 8, WARP_SHAPE_MASK = 0xff, WARP_PLANE = 1 << 16, WARP_PLANE_SECOND = 1 << 17 };

enum {
    WARP_SIZE,
    WARP_POSITION = WARP_SIZE + 3,
    WARP_ROTATION = WARP_POSITION + 3,
    WARP_REACH = WARP_ROTATION + 9,
    WARP_SHAPE_NUMBERS
};
enum {
    WARP_OF_POSITION,
    WARP_OF_NORMAL = WARP_OF_POSITION + 3,
    WARP_OF_GAP = WARP_OF_NORMAL + 3,
    WARP_OF_VELOCITY,
    WARP_RECORD_NUMBERS = WARP_OF_VELOCITY + 3
};

/* A body's numbers that stay. */
typedef struct warp_model_body {
    tb_pose pose;            /* where all coordinates are zero */
    tb_vec3 com;             /* centre of mass of a free body, in its frame */
    int32_t dof, coordinate; /* first ones of its free joint; dof -1: it has none */
    warp_tree_place tree_place;
    uint32_t slides;            /* dofs that move it */
    uint32_t tree;              /* dofs that a row on it is whitened over */
    tb_real root, spin_root[9]; /* of a free body: inverse roots of mass and inertia, lower */
    bool single_free;
} warp_model_body;

/* A row that a joint or an actuator may have. */
typedef struct warp_model_row {
    int32_t dof, coordinate, memory; /* memory: its place in the state's memory of rows */
    tb_real on, bound;               /* on: of an actuator its gear; bound: friction, N, or limit */
} warp_model_row;

/* An actuator on a joint; limits are infinite where there are none. */
typedef struct warp_model_actuator {
    double gear, gain[3], bias[3];
    double least, most;  /* control */
    double lower, upper; /* N */
} warp_model_actuator;

/* A dof; all but `actuators` is for slides alone. */
typedef struct warp_model_dof {
    uint32_t actuators; /* bits: those that push it */
    int32_t coordinate;
    warp_tree_place tree_place;
    tb_real damping, stiffness, spring_reference;
} warp_model_dof;

/* Numbers of a model that no step changes, of all worlds of a launch that have it. */
typedef struct warp_common {
    tb_status status; /* OK: the rest is valid */
    size_t peak;      /* bytes of the arena behind warp_arena that it took */
    const tb_model *model;
    const warp_candidate *candidates;
    const uint32_t *pairs; /* the candidates' words */
    tb_contact_timing timing;
    tb_real ahead, margin; /* s, of the sweep; m */
    int32_t bodies, dofs, columns, coordinates, shapes, actuators, dry_dofs, number_of_candidates,
        possible_rows;
    bool merges;                                   /* redundant points become one */
    uint32_t slides;                               /* dofs that are slides */
    tb_real shape[WARP_SHAPE_NUMBERS][WARP_LANES]; /* size, pose in the body's frame, reach */
    int32_t type[WARP_LANES], place[WARP_LANES];   /* place: in the model's list of shapes */
    uint8_t body_of[WARP_LANES];
    warp_model_body body[WARP_BODIES];
    warp_model_dof dof[WARP_DOFS];
    warp_model_row row[WARP_JOINT_ROWS];
    warp_model_actuator actuator[WARP_ACTUATORS];
    tb_real bias[WARP_DOFS];                  /* N, of slides: gravity */
    tb_vec3 axes[WARP_DOFS];                  /* of slides, world */
    tb_real roots[WARP_DOFS][WARP_DOFS];      /* slides: v = roots s, whitened row = row roots */
    tb_real inverse[WARP_DOFS][WARP_DOFS];    /* slides: of their mass matrix, roots roots' */
    tb_vec3 whitened[WARP_BODIES][WARP_DOFS]; /* a point of the body's velocity for s of a slide */
} warp_common;

/* Contacts of a step, for their records, the end of the step and the next step's start. */
typedef struct warp_record {
    tb_real number[WARP_RECORD_NUMBERS][WARP_LANES];
    warp_impulse impulse[3]
                        [WARP_LANES]; /* N s; until the step ends those that the solve began with */
    tb_real bias[WARP_LANES];         /* m/s, of the first row */
    uint64_t feature[WARP_LANES];
    uint32_t shapes[WARP_LANES];                /* colliding shapes: lower << 16 | higher */
    int32_t kind[WARP_LANES], pair[WARP_LANES]; /* rows; candidate */
    uint8_t status[WARP_LANES];                 /* until the step ends the one of the step before */
} warp_record;

/* At the beginning of a world's arena. */
typedef struct warp_arena {
    warp_common common;     /* valid in one world of each model (warp_kernel.h) */
    warp_record records[2]; /* of the last step and of the present one, by turns */
    tb_world world;         /* arrays of the general stages, while `common` is made */
} warp_arena;

/* Whether a dof is one of some slides. All slides are among the first 32 dofs (warp_fits.c). */
TB_FN bool is_slide(uint32_t slides, int32_t dof)
{
    return dof < 32 && (slides >> dof & 1) != 0;
}

TB_STATIC warp_tree_place place_of_tree(const tb_model *m, int32_t tree)
{
    warp_tree_place place = {0, 0};
#ifdef TB_UNIT_PILE
    place.dof = tree >= 0 ? m->trees[tree].dof : 0;
    place.column = tree >= 0 ? (int32_t)WARP_TREE * tree : (int32_t)WARP_COLUMNS;
#else
    (void)m, (void)tree;
#endif
    return place;
}

/* Dofs of slides above a body. */
TB_STATIC uint32_t slides_of(const tb_model *m, int32_t body)
{
    uint32_t bits = 0;
    const int32_t tree = m->bodies[body].tree;
    if (tree < 0 || m->joints[m->trees[tree].joint].type == TB_JOINT_FREE) return 0;
    for (int32_t i = m->bodies[body].last_dof; i >= 0; i = m->dofs[i].parent) bits |= 1u << i;
    return bits;
}

TB_STATIC void put_free_body(const tb_model *m, int32_t index, warp_model_body *b)
{
    const tb_model_body *body = &m->bodies[index];
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    tb_mat33 inverse = tb_m33_identity();
    (void)tb_m33_inverse(&inertia, &inverse);
    const tb_real *a = inverse.m;
    tb_real *c = b->spin_root;
    for (int i = 0; i < 9; i++) c[i] = 0;
    c[0] = tb_sqrt(a[0]);
    c[3] = a[3] / c[0], c[6] = a[6] / c[0];
    c[4] = tb_sqrt(a[4] - c[3] * c[3]);
    c[7] = (a[7] - c[6] * c[3]) / c[4];
    c[8] = tb_sqrt(a[8] - c[6] * c[6] - c[7] * c[7]);
    b->root = 1 / tb_sqrt(TB_R(body->mass));
    b->com = tb_v3_load(body->com);
    b->dof = body->dof;
    b->coordinate = m->joints[body->joint].coordinate;
    b->single_free = m->trees[body->tree].single_free;
}

TB_STATIC void put_body(const tb_world *w, int32_t index, warp_model_body *b)
{
    const tb_model *m = w->model;
    const int32_t tree = m->bodies[index].tree;
    b->dof = -1;
    b->tree_place = place_of_tree(m, tree);
    b->slides = slides_of(m, index);
    b->tree = 0;
    b->pose = w->dynamics.poses[index];
    if (tree >= 0 && b->slides == 0) put_free_body(m, index, b);
}

/* Column `dof` of the slides' inverse root: H^-1 of a unit vector. */
TB_STATIC void put_root(const tb_world *w, int32_t dof, warp_common *c)
{
    double x[WARP_DOFS];
    for (int i = 0; i < WARP_DOFS; i++) x[i] = i == dof;
    tb_dynamics_unwhiten_tree(&w->dynamics, &w->model->trees[w->model->dofs[dof].tree], x);
    for (int i = 0; i < WARP_DOFS; i++) c->roots[i][dof] = TB_R(x[i]);
}

/* Row `i` of the inverse of the slides' mass matrix. */
TB_STATIC void put_inverse(warp_common *c, int32_t i)
{
    TB_ROLLED
    for (int32_t j = 0; j < WARP_DOFS; j++) {
        tb_real sum = 0;
        for (int32_t k = 0; k < WARP_DOFS; k++) sum += c->roots[i][k] * c->roots[j][k];
        c->inverse[i][j] = sum;
    }
}

/* The velocity that every point of a sliding body gets from one whitened dof. */
TB_STATIC void whiten_body(warp_common *c, int32_t index)
{
    warp_model_body *b = &c->body[index];
    TB_ROLLED
    for (int32_t i = 0; i < WARP_DOFS; i++) {
        tb_vec3 sum = tb_v3(0, 0, 0);
        bool any = false;
        TB_ROLLED
        for (int32_t j = 0; j < WARP_DOFS; j++) {
            if (!is_slide(b->slides, j) || !is_slide(c->slides, i)) continue;
            sum = tb_v3_add_scaled(sum, c->axes[j], c->roots[j][i]);
            any = any || c->roots[j][i] != 0;
        }
        c->whitened[index][i] = sum;
        if (any) b->tree |= 1u << i;
    }
}

/* Place of a possible row in the state's memory of rows. */
TB_STATIC int32_t memory_of_row(const tb_model *m, int32_t k)
{
    const tb_row_memory memory = tb_row_memory_layout(m);
    if (k < m->number_of_actuators) return memory.actuators + k;
    k -= m->number_of_actuators;
    if (k < m->number_of_dry_dofs) return memory.dof_friction + m->dry_dofs[k];
    k -= m->number_of_dry_dofs;
    return memory.joint_limits + 2 * m->limited_joints[k / 2] + k % 2;
}

/* The k-th row that there may be, like joint_row_at. */
TB_STATIC void put_row(const tb_model *m, int32_t k, warp_model_row *row)
{
    const tb_model_joint *joint = NULL;
    row->memory = memory_of_row(m, k);
    row->on = 1;
    row->bound = 0;
    if (k < m->number_of_actuators) {
        joint = &m->joints[m->actuators[k].joint];
        row->on = TB_R(m->actuators[k].gear[0]);
        row->dof = joint->dof;
    } else if (k < m->number_of_actuators + m->number_of_dry_dofs) {
        row->dof = m->dry_dofs[k - m->number_of_actuators];
        row->bound = TB_R(m->dofs[row->dof].dry_friction);
        joint = &m->joints[m->dofs[row->dof].joint];
    } else {
        const int32_t limit = k - m->number_of_actuators - m->number_of_dry_dofs;
        joint = &m->joints[m->limited_joints[limit / 2]];
        row->dof = joint->dof;
        row->on = limit & 1 ? TB_R(-1) : TB_R(1);
        row->bound = limit & 1 ? TB_R(joint->upper) : TB_R(joint->lower);
    }
    row->coordinate = joint->coordinate;
}

TB_STATIC void put_actuator(const tb_model *m, int32_t k, warp_model_actuator *actuator)
{
    const tb_model_actuator *a = &m->actuators[k];
    actuator->gear = a->gear[0];
    for (int i = 0; i < 3; i++) {
        actuator->gain[i] = a->gain[i];
        actuator->bias[i] = a->bias[i];
    }
    actuator->least = a->control_limited ? a->control_lower : -INFINITY;
    actuator->most = a->control_limited ? a->control_upper : INFINITY;
    actuator->lower = a->force_limited ? a->force_lower : -INFINITY;
    actuator->upper = a->force_limited ? a->force_upper : INFINITY;
}

TB_STATIC uint32_t actuators_of(const tb_model *m, int32_t dof)
{
    uint32_t bits = 0;
    TB_ROLLED
    for (int32_t a = 0; a < m->number_of_actuators; a++)
        if (m->joints[m->actuators[a].joint].dof == dof) bits |= 1u << a;
    return bits;
}

/* A dof that is a slide. */
TB_STATIC void put_dof(const tb_model *m, int32_t i, warp_model_dof *dof)
{
    const tb_model_joint *joint = &m->joints[m->dofs[i].joint];
    dof->coordinate = joint->coordinate;
    dof->tree_place = place_of_tree(m, m->dofs[i].tree);
    dof->damping = TB_R(m->dofs[i].damping);
    dof->stiffness = TB_R(joint->stiffness);
    dof->spring_reference = TB_R(joint->spring_reference);
}

/* Bodies where all slides are zero, their masses and the slides' axes. */
TB_STATIC tb_status put_motion(tb_world *w, warp_common *c)
{
    const tb_model *m = w->model;
    uint32_t slides = 0;
    TB_EACH (i, m->number_of_coordinates) w->q[i] = 0;
    TB_EACH (i, m->number_of_dofs) w->u[i] = w->force[i] = 0;
    tb_team_sync();
    tb_dynamics_motion(&w->dynamics, w->q, w->u, w->kinematic);
    tb_passive_forces(w);
    tb_dynamics_mass(&w->dynamics, w->diagonal);
    const tb_status status = tb_dynamics_factor(&w->dynamics, NULL);
    if (status != TB_OK) return status;
    tb_real *bias = w->u_end;
    tb_dynamics_bias(&w->dynamics, w->u, tb_v3_load(m->gravity), false, bias);
    tb_team_sync();
    for (int32_t b = 1; b < m->number_of_bodies; b++) slides |= slides_of(m, b);
    if (TB_LEADER) c->slides = slides;
    TB_EACH (b, m->number_of_bodies) put_body(w, b, &c->body[b]);
    TB_EACH (k, c->possible_rows) put_row(m, k, &c->row[k]);
    TB_EACH (k, c->actuators) put_actuator(m, k, &c->actuator[k]);
    TB_EACH (i, WARP_DOFS) {
        const bool is = i < m->number_of_dofs && is_slide(slides, i);
        c->bias[i] = is ? bias[i] : TB_R(0);
        c->axes[i] = is ? w->dynamics.axes[i].linear : tb_v3(0, 0, 0);
        for (int j = 0; j < WARP_DOFS; j++) c->roots[j][i] = 0;
        c->dof[i].actuators = i < m->number_of_dofs ? actuators_of(m, i) : 0;
        if (is) put_root(w, i, c);
        if (is) put_dof(m, i, &c->dof[i]);
    }
    tb_team_sync();
    TB_EACH (b, m->number_of_bodies) whiten_body(c, b);
    TB_EACH (i, WARP_DOFS) put_inverse(c, i);
    tb_team_sync();
    return TB_OK;
}

TB_STATIC void put_shape(const tb_model *m, warp_common *c)
{
    const int32_t lane = tb_team_lane();
    const bool is = lane < m->number_of_colliding_shapes;
    const int32_t place = is ? m->colliding_shapes[lane] : -1;
    const tb_model_shape *shape = &m->shapes[is ? place : 0];
    for (int k = 0; k < 3; k++) {
        c->shape[WARP_SIZE + k][lane] = TB_R(shape->size[k]);
        c->shape[WARP_POSITION + k][lane] = TB_R(shape->position[k]);
    }
    for (int k = 0; k < 9; k++) c->shape[WARP_ROTATION + k][lane] = TB_R(shape->rotation[k]);
    c->shape[WARP_REACH][lane] = shape->type == TB_SHAPE_PLANE ? TB_R(0) : TB_R(shape->reach);
    c->type[lane] = (int32_t)shape->type;
    c->body_of[lane] = (uint8_t)shape->body;
    c->place[lane] = place;
}

TB_STATIC void put_pair(const tb_model *m, double share, int32_t a, int32_t b, warp_candidate *c)
{
    const tb_surface surface =
        tb_model_pair_surface(m, m->colliding_shapes[a], m->colliding_shapes[b]);
    const tb_law law = tb_contact_law(&surface);
    c->a = (uint16_t)a, c->b = (uint16_t)b;
    c->kind = tb_contact_law_rows(law);
    c->friction = law == TB_LAW_COULOMB ? TB_R(surface.friction) : TB_R(0);
    c->restitution = TB_R(surface.restitution);
    c->merges_as = -1;
    c->merge_distance =
        tb_merge_reach(m, share, m->colliding_shapes[a], m->colliding_shapes[b], &surface);
}

/* Names the first candidate whose points merge with those of this one. */
TB_STATIC void find_merging(const warp_common *c, warp_candidate *list, int32_t own)
{
    const warp_candidate *pair = &list[own];
    int32_t first = own;
    if (!(pair->merge_distance > 0)) return;
    TB_ROLLED
    for (int32_t i = own - 1; i >= 0; i--) {
        const warp_candidate *other = &list[i];
        if (c->body_of[other->a] == c->body_of[pair->a] &&
            c->body_of[other->b] == c->body_of[pair->b] && other->kind == pair->kind &&
            other->friction == pair->friction && other->restitution == pair->restitution)
            first = i;
    }
    list[own].merges_as = first;
}

TB_STATIC uint32_t word_of_pair(const tb_model *m, const warp_candidate *c)
{
    const bool first = m->shapes[m->colliding_shapes[c->a]].type == TB_SHAPE_PLANE;
    const bool second = m->shapes[m->colliding_shapes[c->b]].type == TB_SHAPE_PLANE;
    return (uint32_t)c->a | (uint32_t)c->b << WARP_SECOND |
           (first != second ? (uint32_t)WARP_PLANE : 0) |
           (second ? (uint32_t)WARP_PLANE_SECOND : 0);
}

/* Pairs a < b in order, a lane each: those that can collide, behind each other. */
TB_STATIC tb_status put_candidates(const tb_model *m, double share, tb_arena *arena, warp_common *c)
{
    const int32_t shapes = m->number_of_colliding_shapes, pairs = shapes * (shapes - 1) / 2;
    warp_candidate *list = TB_ARENA_ARRAY(arena, warp_candidate, (size_t)pairs);
    uint32_t *words = TB_ARENA_ARRAY(arena, uint32_t, (size_t)pairs);
    int32_t a = 0, b = 1 + tb_team_lane(), count = 0;
    if (!list || !words) return TB_RESOURCE_EXHAUSTED;
    TB_ROLLED
    for (int32_t first = 0; first < pairs; first += WARP_LANES, b += WARP_LANES) {
        TB_ROLLED
        for (; b >= shapes && a < shapes - 1; a++) b += a + 2 - shapes;
        const bool is = a < shapes - 1 &&
                        tb_model_shapes_collide(m, m->colliding_shapes[a], m->colliding_shapes[b]);
        const uint32_t bits = tb_team_ballot(is);
        if (is)
            put_pair(m, share, a, b,
                     &list[count + tb_count_bits(bits & ((1u << tb_team_lane()) - 1))]);
        count += tb_count_bits(bits);
    }
    tb_team_sync();
    TB_EACH (i, count) {
        find_merging(c, list, i);
        words[i] = word_of_pair(m, &list[i]);
    }
    if (TB_LEADER) {
        c->candidates = list;
        c->pairs = words;
        c->number_of_candidates = count;
    }
    return TB_OK;
}

/* Columns of the whole problem. */
TB_STATIC int32_t columns_of(const tb_model *m)
{
#ifdef TB_UNIT_PILE
    return (int32_t)WARP_TREE * m->number_of_trees;
#else
    return m->number_of_dofs;
#endif
}

/* The tables of the state's model. The workspace's memory is the arena behind `own`. */
TB_CALLED void warp_put_common(warp_arena *own, const tb_state *state,
                               const tb_step_options *options, tb_workspace *workspace)
{
    tb_world *w = &own->world;
    warp_common *c = &own->common;
    const tb_model *m = state->model;
    tb_arena_reset(&workspace->arena);
    /* fields that a body or a row does not have are read with those that it has */
    TB_EACH (i, (int32_t)(sizeof *c / sizeof(tb_team_word))) ((tb_team_word *)(void *)c)[i] = 0;
    tb_team_sync();
    if (TB_LEADER) {
        *w = make_world(state, options, workspace);
        c->model = m;
        c->timing = tb_contact_timing_of(options, w->dt, w->theta);
        c->ahead = look_ahead(w);
        c->margin = least_margin(w);
        c->merges = options->contact_merge > 0;
        c->bodies = m->number_of_bodies;
        c->dofs = m->number_of_dofs;
        c->columns = columns_of(m);
        c->coordinates = m->number_of_coordinates;
        c->shapes = m->number_of_colliding_shapes;
        c->actuators = m->number_of_actuators;
        c->dry_dofs = m->number_of_dry_dofs;
        c->possible_rows = most_joint_rows(m);
    }
    tb_team_sync();
    tb_status status = take_arrays(w);
    put_shape(m, c);
    tb_team_sync();
    if (status == TB_OK) status = put_candidates(m, options->contact_merge, &workspace->arena, c);
    if (status == TB_OK) status = put_motion(w, c);
    tb_team_sync();
    if (TB_LEADER) {
        c->status = status;
        c->peak = workspace->arena.peak;
    }
    tb_team_sync();
}

#endif
