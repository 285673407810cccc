/* The hand at rest: simulated alone, without gravity, until it holds its controls; and where its
 * fingertips are then. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

/* limits of the simulation in which the hand comes to rest */
static const double SETTLE_S = 2, SETTLE_DT_S = 5e-4, REST_SPEED = 1e-4;
/* m/s or rad/s: slower joints have come to where they go */
static const double MOVING_SPEED = 1e-2;
enum { SETTLE_CHUNK = 25 };

static double fastest(const tb_state *state, int32_t dofs)
{
    const double *u = tb_state_u(state);
    double speed = 0;
    for (int32_t i = 0; i < dofs; i++) speed = fmax(speed, fabs(u[i]));
    return speed;
}

tb_status grasp_hand_rest(const tb_grasp_plan *plan, const grasp_hand *hand, const double *start,
                          const double *controls, double *q, double *seconds, tb_error *error)
{
    const tb_model *m = hand->bare;
    tb_step_options options = plan->step;
    options.backend = TB_BACKEND_CPU; /* one small world, with the same result for every backend */
    options.device = 0;
    options.dt = fmax(plan->dt, SETTLE_DT_S); /* bounds the number of steps */
    const int64_t most = (int64_t)(SETTLE_S / options.dt);
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_status status = tb_state_create(m, &state, error);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK && hand->parameters != NULL)
        status = tb_state_set_parameters(state, hand->parameters, error);
    if (status == TB_OK) status = tb_state_set_q(state, start, m->number_of_coordinates, error);
    if (status == TB_OK)
        status = tb_state_set_controls(state, controls, m->number_of_actuators, error);
    for (int64_t step = 0; step < most && status == TB_OK; step += SETTLE_CHUNK) {
        status = tb_step(stepper, state, SETTLE_CHUNK, NULL, error);
        const double speed = fastest(state, m->number_of_dofs);
        if (speed > MOVING_SPEED && seconds != NULL)
            *seconds = (double)(step + SETTLE_CHUNK) * options.dt;
        if (speed < REST_SPEED) break;
    }
    if (status == TB_OK) memcpy(q, tb_state_q(state), (size_t)m->number_of_coordinates * sizeof *q);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    return status;
}

/* ---- fingertips ---- */

static bool can_touch(const tb_model *m, int32_t body)
{
    for (int32_t s = 0; s < m->number_of_shapes; s++)
        if (m->shapes[s].body == body && (m->shapes[s].category != 0 || m->shapes[s].mask != 0))
            return true;
    return false;
}

/* Whether a body with shapes that collide hangs on this one. */
static bool has_touching_child(const tb_model *m, int32_t body)
{
    for (int32_t b = body + 1; b < m->number_of_bodies; b++) {
        int32_t p = m->bodies[b].parent;
        while (p > body) p = m->bodies[p].parent;
        if (p == body && can_touch(m, b)) return true;
    }
    return false;
}

tb_status grasp_hand_tips(grasp_hand *hand, tb_error *error)
{
    const tb_model *m = hand->bare;
    hand->tips = calloc((size_t)m->number_of_bodies + 1, sizeof *hand->tips);
    if (hand->tips == NULL) return tb_fail_memory(error, 0, "a hand's fingertips");
    for (int32_t b = 1; b < m->number_of_bodies; b++)
        if (m->bodies[b].tree >= 0 && can_touch(m, b) && !has_touching_child(m, b))
            hand->tips[hand->number_of_tips++] = b;
    return TB_OK;
}

tb_status grasp_hand_motions(const grasp_hand *hand, tb_state *state, const double *q,
                             tb_body_motion *motions, tb_error *error)
{
    tb_status status = tb_state_set_q(state, q, hand->bare->number_of_coordinates, error);
    if (status == TB_OK) status = tb_state_body_motions(state, motions);
    return status == TB_OK ? TB_OK : tb_fail(error, status, "a hand's body motions");
}

double grasp_hand_spread(const grasp_hand *hand, const tb_body_motion *motions)
{
    double sum = 0;
    for (int32_t i = 0; i < hand->number_of_tips; i++)
        for (int32_t k = i + 1; k < hand->number_of_tips; k++) {
            const tb_vec3 a = tb_v3_load(motions[hand->tips[i]].com),
                          b = tb_v3_load(motions[hand->tips[k]].com);
            sum += tb_v3_length(tb_v3_sub(a, b));
        }
    const int32_t pairs = hand->number_of_tips * (hand->number_of_tips - 1) / 2;
    return pairs > 0 ? sum / pairs : 0;
}
