/* The data that a warp keeps of its world from step to step (warp_fits.h); loading a world and storing
 * it.
 *
 * Shared memory holds the state in working precision, the bodies and the last step's impulses. Numbers
 * of the model that no step changes lie in tables (warp_tables.h). The state in global memory is written when the
 * warp leaves the world, or where a course records a step. */
#ifndef TB_GPU_WARP_KEEP_H
#define TB_GPU_WARP_KEEP_H

#include "gpu/batch/small/warp_tables.h"

/* One body, in shared memory. */
typedef struct warp_body {
    tb_pose pose;           /* of its frame */
    tb_vec3 velocity, spin; /* of its origin, m/s; rad/s; world */
    tb_vec3 centre;         /* of mass of a free body, world; of another its origin */
    /* motion without impulses of rows: of a free body's centre, of all points of another body */
    double free_velocity[3], free_spin[3];
} warp_body;

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

/* Forces of a step on dofs, N or N m, in memory that is free until shapes are placed. */
typedef struct warp_forces {
    tb_real force[WARP_DOFS];
} warp_forces;

/* Errors of a lane's own block. */
typedef struct warp_errors {
    tb_real penetration, cone, complementarity;
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
    c->penetration = tb_team_largest((double)errors->penetration);
    c->cone_error = tb_team_largest((double)errors->cone);
    c->complementarity_error = tb_team_largest((double)errors->complementarity);
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
