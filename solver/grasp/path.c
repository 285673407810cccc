/* Phases of the protocol, and the hand's frame in each step.
 *
 * All motions begin and end with zero velocity and acceleration (s^3 (10 - 15 s + 6 s^2)),
 * shakes have the envelope sin^2: the fingers bear the accelerations of a real arm. Phases are
 * whole steps. */
#include "base/error.h"
#include "grasp/grasp.h"

static const double PI = 3.14159265358979323846;

/* largest number of steps in one world */
static const double STEP_LIMIT = 1e8;

/* bounds of the time to close that follows from the hand */
static const double LEAST_CLOSE_S = 0.4, MOST_CLOSE_S = 1;

static double smooth(double s)
{
    if (s <= 0) return 0;
    if (s >= 1) return 1;
    return s * s * s * (10 + s * (6 * s - 15));
}

static int64_t steps_of(double seconds, double dt)
{
    return (int64_t)llround(seconds / dt);
}

tb_status grasp_phases_make(tb_grasp_plan *plan, tb_error *error)
{
    tb_grasp_protocol *p = &plan->protocol;
    grasp_phases *at = &plan->phases;
    if (p->close_seconds == 0)
        p->close_seconds = fmin(fmax(plan->info.close_seconds, LEAST_CLOSE_S), MOST_CLOSE_S);
    double seconds = p->close_seconds + p->lift_seconds + p->hold_seconds;
    if (p->approach_distance > 0) seconds += p->approach_distance / p->approach_speed;
    for (int32_t i = 0; i < p->number_of_shakes; i++) seconds += p->shakes[i].seconds;
    if (!(seconds / plan->dt < STEP_LIMIT))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "protocol",
                             "the protocol takes %g s, %g steps: more than %g", seconds,
                             seconds / plan->dt, STEP_LIMIT);

    at->approach =
        p->approach_distance > 0 ? steps_of(p->approach_distance / p->approach_speed, plan->dt) : 0;
    at->close = at->approach + steps_of(p->close_seconds, plan->dt);
    if (at->close == at->approach)
        at->close++; /* at least one step, after which the fingers are
                                                   checked */
    at->lift = at->close + steps_of(p->lift_seconds, plan->dt);
    at->shake = at->lift;
    for (int32_t i = 0; i < p->number_of_shakes; i++) {
        at->shake += steps_of(p->shakes[i].seconds, plan->dt);
        plan->shake_ends[i] = at->shake;
    }
    at->end = at->shake + steps_of(p->hold_seconds, plan->dt);
    return TB_OK;
}

static void add_shake(const tb_grasp_plan *plan, int64_t step, grasp_frame *frame)
{
    const grasp_phases *at = &plan->phases;
    if (step <= at->lift || step >= at->shake) return;
    int32_t i = 0;
    while (step >= plan->shake_ends[i]) i++;
    const int64_t first = i > 0 ? plan->shake_ends[i - 1] : at->lift;
    const tb_grasp_shake *shake = &plan->protocol.shakes[i];
    const double time = (double)(step - first) * plan->dt;
    const double share = (double)(step - first) / (double)(plan->shake_ends[i] - first);
    const double envelope = sin(PI * share) * sin(PI * share);
    const double swing = envelope * sin(2 * PI * shake->frequency * time);
    const tb_vec3 axis = tb_v3_load(shake->axis);
    frame->position = tb_v3_add_scaled(frame->position, axis, shake->amplitude * swing);
    const tb_quaternion turn = tb_q_from_rotation_vector(tb_v3_scale(axis, shake->angle * swing));
    frame->orientation = tb_q_normalize(tb_q_mul(turn, frame->orientation));
}

grasp_frame grasp_tool_at(const tb_grasp_plan *plan, const grasp_frame *grasp, int64_t step)
{
    const tb_grasp_protocol *p = &plan->protocol;
    const grasp_phases *at = &plan->phases;
    grasp_frame frame = *grasp;
    if (step < at->approach) {
        const double left = 1 - smooth((double)step / (double)at->approach);
        const tb_vec3 way = tb_q_rotate(grasp->orientation, tb_v3_load(p->approach));
        frame.position = tb_v3_add_scaled(frame.position, way, -p->approach_distance * left);
    }
    if (step > at->close && at->lift > at->close)
        frame.position.z +=
            p->lift * smooth((double)(step - at->close) / (double)(at->lift - at->close));
    add_shake(plan, step, &frame);
    return frame;
}

grasp_frame grasp_carrier_at(const tb_grasp_plan *plan, const grasp_frame *grasp, int64_t step)
{
    const grasp_frame tool = grasp_tool_at(plan, grasp, step);
    const grasp_frame back = grasp_frame_inverse(&plan->tool);
    return grasp_frame_mul(&tool, &back);
}

double grasp_closing_at(const tb_grasp_plan *plan, int64_t step)
{
    const grasp_phases *at = &plan->phases;
    if (step < at->approach) return 0;
    const double ramp = 0.5 * (double)(at->close - at->approach);
    const double done = (double)(step + 1 - at->approach);
    return done < ramp ? done / ramp : 1;
}
