/* The data that a warp keeps of its world from step to step (warp_fits.h); loading a world and storing
 * it.
 *
 * Shared memory holds the state in working precision, the bodies and the last step's impulses. Numbers
 * of the model that no step changes, tables of warp_common, are made once a launch and read by all
 * worlds of the model, so that the cache has them once. The state in global memory is written when the
 * warp leaves the world, or where a course records a step. */
#ifndef TB_GPU_WARP_KEEP_H
#define TB_GPU_WARP_KEEP_H

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

/* One body, in shared memory. */
typedef struct warp_body {
    tb_pose pose;           /* of its frame */
    tb_vec3 velocity, spin; /* of its origin, m/s; rad/s; world */
    tb_vec3 centre;         /* of mass of a free body, world; of another its origin */
    /* motion without impulses of rows: of a free body's centre, of all points of another body */
    double free_velocity[3], free_spin[3];
} warp_body;

/* A pair of colliding shapes that may touch, and how. */
typedef struct warp_candidate {
    uint16_t a, b; /* a < b, places in the model's list */
    int32_t kind;  /* rows: 1 or 3 */
    /* the first candidate of the same bodies and surface, whose points merge with its own; -1: none do */
    int32_t merges_as;
    tb_real friction, restitution;
    tb_real merge_distance; /* m */
} warp_candidate;

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

/* A dof that is a slide. */
typedef struct warp_model_dof {
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
    tb_real bias[WARP_DOFS];                  /* N, of slides: gravity */
    tb_vec3 axes[WARP_DOFS];                  /* of slides, world */
    tb_real roots[WARP_DOFS][WARP_DOFS];      /* slides: v = roots s, whitened row = row roots */
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

/* Numbers of the last step, or their sums over the steps of the launch. */
typedef struct warp_sums {
    double residual;
    int32_t contacts, rows, rounds, sweeps, known, kept;
} warp_sums;

/* The row of an actuator in a step, where its force depends on its speed (is). */
typedef struct warp_law {
    tb_real bias, compliance, lower, upper;
    bool is;
} warp_law;

/* Forces of a step, in memory that is free until shapes are placed. */
typedef struct warp_forces {
    tb_real force[WARP_DOFS]; /* on dofs, N or N m */
    tb_real push[WARP_DOFS];  /* impulses of slides, whitened */
} warp_forces;

/* Errors of a lane's own block. */
typedef struct warp_errors {
    double penetration, cone, complementarity;
} warp_errors;

typedef struct warp_keep {
    const tb_model *model;
    tb_state *state; /* in global memory */
    const tb_step_options *options;
    const warp_common *common;
    warp_record *record, *next_record; /* of the last step, and of the present one */
    const warp_candidate *candidates;
    const double *course_controls; /* of the next step; NULL: they stay */
    tb_contact_timing timing;
    tb_real ahead, margin; /* s, of the sweep; m */
    double tolerance, time;
    int64_t steps;
    int32_t bodies, dofs, coordinates, shapes, actuators, number_of_candidates, possible_rows;
    uint32_t slides; /* dofs that are slides */
    tb_real q[WARP_COORDINATES], u[WARP_DOFS], u_free[WARP_DOFS];
    double controls[WARP_ACTUATORS], actuator_force[WARP_ACTUATORS]; /* N, of the last step */
    double pushing[WARP_ACTUATORS]; /* N, of actuators without a row */
    warp_law laws[WARP_ACTUATORS];
    warp_body body[WARP_BODIES];
    warp_impulse row_impulse[WARP_JOINT_ROWS];         /* by possible row */
    uint8_t row_status[WARP_JOINT_ROWS];               /* 1 + status; 0: there was no row */
    uint8_t row_of[WARP_JOINT_ROWS];                   /* possible row of a block */
    uint16_t pairs[WARP_POINT_SLOTS];                  /* candidates that are near */
    uint8_t counts[WARP_POINT_SLOTS];                  /* their points */
    uint8_t slot_of[WARP_ITEMS], point_of[WARP_ITEMS]; /* of a contact */
    int32_t joint_rows, contacts;
    int32_t last_contacts; /* of the last step, in its record */
    warp_sums now, sum;
} warp_keep;

/* ---- tables of a model ---- */

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
    TB_EACH (i, WARP_DOFS) {
        const bool is = i < m->number_of_dofs && is_slide(slides, i);
        c->bias[i] = is ? bias[i] : TB_R(0);
        c->axes[i] = is ? w->dynamics.axes[i].linear : tb_v3(0, 0, 0);
        for (int j = 0; j < WARP_DOFS; j++) c->roots[j][i] = 0;
        if (is) put_root(w, i, c);
        if (is) put_dof(m, i, &c->dof[i]);
    }
    tb_team_sync();
    TB_EACH (b, m->number_of_bodies) whiten_body(c, b);
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

/* Pairs a < b in order, a lane each: those that can collide, behind each other. */
TB_STATIC tb_status put_candidates(const tb_model *m, double share, tb_arena *arena, warp_common *c)
{
    const int32_t shapes = m->number_of_colliding_shapes, pairs = shapes * (shapes - 1) / 2;
    warp_candidate *list = TB_ARENA_ARRAY(arena, warp_candidate, (size_t)pairs);
    int32_t a = 0, b = 1 + tb_team_lane(), count = 0;
    if (!list) return TB_RESOURCE_EXHAUSTED;
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
    TB_EACH (i, count) find_merging(c, list, i);
    if (TB_LEADER) {
        c->candidates = list;
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

/* ---- taking a world up ---- */

/* Contacts of the state; more than the warp holds come from a step of the general kernels. */
TB_STATIC void take_contacts(warp_keep *keep)
{
    const tb_state *state = keep->state;
    const int32_t *place = keep->common->place;
    warp_record *t = keep->record;
    const int32_t count = state->number_of_contacts, lane = tb_team_lane();
    if (lane < count && lane < WARP_ITEMS) {
        const tb_contact_record *r = &state->contacts[lane];
        const int32_t shape_a = r->shape_a, shape_b = r->shape_b;
        int32_t a = 0, b = 0;
        TB_ROLLED
        for (int32_t i = 0; i < keep->shapes; i++) {
            if (place[i] == shape_a) a = i;
            if (place[i] == shape_b) b = i;
        }
        t->feature[lane] = r->feature;
        t->shapes[lane] = (uint32_t)(a << 16 | b);
        for (int k = 0; k < 3; k++) {
            t->impulse[k][lane] = (warp_impulse)r->impulse[k];
            t->number[WARP_OF_NORMAL + k][lane] = TB_R(r->normal[k]);
        }
        t->status[lane] = (uint8_t)r->status;
    }
    if (TB_LEADER) keep->last_contacts = count < WARP_ITEMS ? count : (int32_t)WARP_ITEMS;
    tb_team_sync();
}

TB_STATIC void take_state(warp_keep *keep)
{
    const tb_state *s = keep->state;
    const warp_common *c = keep->common;
    TB_EACH (i, c->coordinates) keep->q[i] = TB_R(s->q[i]);
    TB_EACH (i, WARP_DOFS) {
        const bool is = i < c->dofs;
        keep->u[i] = is ? TB_R(s->u[i]) : TB_R(0);
        keep->u_free[i] = 0;
    }
    TB_EACH (a, c->actuators) keep->controls[a] = s->controls[a];
    TB_EACH (k, c->possible_rows) {
        const int32_t memory = c->row[k].memory;
        keep->row_impulse[k] = (warp_impulse)s->row_impulses[memory];
        keep->row_status[k] = (uint8_t)s->row_statuses[memory];
    }
    TB_EACH (i, c->bodies) {
        warp_body *b = &keep->body[i];
        b->pose = c->body[i].pose;
        b->centre = b->pose.position;
        b->velocity = b->spin = tb_v3(0, 0, 0);
        for (int k = 0; k < 3; k++) b->free_velocity[k] = b->free_spin[k] = 0;
    }
    tb_team_sync();
}

TB_STATIC void set_up(warp_keep *keep, const warp_common *c, tb_state *state,
                      const tb_step_options *options)
{
    keep->model = c->model;
    keep->state = state;
    keep->options = options;
    keep->common = c;
    keep->candidates = c->candidates;
    keep->timing = c->timing;
    keep->ahead = c->ahead;
    keep->margin = c->margin;
    keep->tolerance = options->solve.tolerance;
    keep->time = state->time;
    keep->steps = state->steps;
    keep->bodies = c->bodies;
    keep->dofs = c->dofs;
    keep->coordinates = c->coordinates;
    keep->shapes = c->shapes;
    keep->actuators = c->actuators;
    keep->number_of_candidates = c->number_of_candidates;
    keep->possible_rows = c->possible_rows;
    keep->slides = c->slides;
    keep->course_controls = NULL;
    keep->sum = TB_VALUE(warp_sums){.residual = 0};
}

/* Whether a body has a wrench of its own. */
TB_STATIC bool any_wrench(const tb_state *state)
{
    bool any = false;
    TB_EACH (i, 6 * state->model->number_of_bodies) any = any || state->wrenches[i] != 0;
    return tb_team_any(any);
}

/* Takes a world up by the tables of its model. UNSUPPORTED: the general kernels make its step. */
TB_CALLED tb_status warp_take(warp_keep *keep, const warp_common *common, warp_record records[2],
                              tb_state *state, const tb_step_options *options)
{
    if (common->status != TB_OK) return common->status;
    if (any_wrench(state)) return TB_UNSUPPORTED;
    if (TB_LEADER) {
        set_up(keep, common, state, options);
        keep->record = &records[0];
        keep->next_record = &records[1];
    }
    tb_team_sync();
    take_state(keep);
    take_contacts(keep);
    return TB_OK;
}

/* ---- giving it back ---- */

/* The last step's contacts as records. */
TB_STATIC void give_contacts(const warp_keep *keep)
{
    const tb_model *m = keep->model;
    const warp_record *t = keep->record;
    const int32_t lane = tb_team_lane();
    if (lane >= keep->last_contacts) return;
    tb_contact_record *r = &keep->state->next_contacts[lane];
    const warp_candidate *pair = &keep->candidates[t->pair[lane]];
    tb_vec3 tangent1, tangent2;
    const tb_vec3 normal =
        tb_v3(t->number[WARP_OF_NORMAL][lane], t->number[WARP_OF_NORMAL + 1][lane],
              t->number[WARP_OF_NORMAL + 2][lane]);
    tb_v3_tangents(normal, &tangent1, &tangent2);
    r->feature = t->feature[lane];
    r->shape_a = m->colliding_shapes[pair->a];
    r->shape_b = m->colliding_shapes[pair->b];
    r->kind = t->kind[lane];
    r->status = t->status[lane];
    tb_v3_store(r->normal, normal);
    tb_v3_store(r->tangent1, tangent1);
    tb_v3_store(r->tangent2, tangent2);
    r->gap = (double)t->number[WARP_OF_GAP][lane];
    for (int k = 0; k < 3; k++) {
        r->position[k] = (double)t->number[WARP_OF_POSITION + k][lane];
        r->impulse[k] = (double)t->impulse[k][lane];
        r->impulse[3 + k] = 0;
        r->velocity[k] = (double)t->number[WARP_OF_VELOCITY + k][lane];
    }
}

/* The state after the last step, in global memory. `next_contacts` has room. */
TB_CALLED void warp_give(const warp_keep *keep)
{
    tb_state *s = keep->state;
    const tb_model *m = keep->model;
    const int32_t total = tb_row_memory_layout(m).total;
    TB_EACH (i, m->number_of_coordinates) s->q[i] = (double)keep->q[i];
    TB_EACH (i, m->number_of_dofs) s->u[i] = (double)keep->u[i];
    TB_EACH (r, total) s->row_impulses[r] = s->row_statuses[r] = 0;
    TB_EACH (a, m->number_of_actuators) {
        s->controls[a] = keep->controls[a];
        s->actuator_force[a] =
            keep->actuator_force[a] + (double)keep->row_impulse[a] / (double)keep->timing.dt;
    }
    tb_team_sync();
    TB_EACH (k, keep->possible_rows) {
        const int32_t memory = keep->common->row[k].memory;
        s->row_impulses[memory] = (double)keep->row_impulse[k];
        s->row_statuses[memory] = keep->row_status[k];
    }
    give_contacts(keep);
    tb_team_sync();
    if (TB_LEADER) {
        s->time = keep->time;
        s->steps = keep->steps;
        tb_state_take_next(s, keep->last_contacts);
    }
    tb_team_sync();
}

/* Certificate of the last step, or of all steps of the launch, from its sums and the lanes' errors. */
TB_CALLED void warp_certify(const warp_keep *keep, const warp_sums *sums, const warp_errors *errors,
                            tb_certificate *c)
{
    tb_solution named;
    memset(c, 0, sizeof *c);
    c->step = keep->steps;
    c->time = keep->time;
    c->residual = sums->residual;
    c->penetration = tb_team_largest(errors->penetration);
    c->cone_error = tb_team_largest(errors->cone);
    c->complementarity_error = tb_team_largest(errors->complementarity);
    c->contacts = sums->contacts;
    c->rows = sums->rows;
    c->iterations = sums->rounds + sums->sweeps;
    c->linear_solves = c->factorizations = sums->rounds;
    c->known_statuses = sums->known;
    c->kept_statuses = sums->kept;
    tb_solution_sign(&named, keep->now.rounds > 0 ? "newton" : "auto");
    memcpy(c->solver, named.solver, sizeof c->solver);
}

#endif
