/* Objects that move before the fingers reach them: a warning, found by leaving the object alone.
 *
 * Until the hand touches it, the object's motion on the table is the same in every trial. It is
 * therefore simulated once without the hand, over the time in which the fingers approach and close.
 * A pose that was chosen for the object's first pose does not fit an object that tips over or rolls
 * away in that time. */
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

/* m: an object that moves less lies where it was put */
static const double MOVED_M = 5e-3;
/* m/s and rad/s: slower objects rest */
static const double REST_SPEED = 1e-4;
/* steps between two looks at its pose; the first looks that do not end the simulation: an object
 * that begins to tip is slow */
enum { LOOK_EVERY = 5, LOOKS_BEFORE_REST = 10 };

/* Displacement of the object since the start. */
typedef struct displacement {
    double way; /* m, of the centre of mass and of three points around it at the object's radius */
    double angle; /* rad */
} displacement;

static displacement displacement_of(const tb_grasp_plan *plan, const tb_model *alone,
                                    const double *from, const double *to)
{
    const tb_quaternion before = tb_q_normalize(tb_q_load(from + 3)),
                        after = tb_q_normalize(tb_q_load(to + 3));
    const tb_vec3 com = tb_v3_load(alone->bodies[1].com);
    const double r = plan->object_radius;
    const tb_vec3 arms[] = {tb_v3(0, 0, 0), tb_v3(r, 0, 0), tb_v3(0, r, 0), tb_v3(0, 0, r)};
    displacement d = {0, 0};
    for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) {
        const tb_vec3 point = tb_v3_add(com, arms[i]);
        const tb_vec3 was = tb_v3_add(tb_v3_load(from), tb_q_rotate(before, point)),
                      is = tb_v3_add(tb_v3_load(to), tb_q_rotate(after, point));
        d.way = fmax(d.way, tb_v3_length(tb_v3_sub(is, was)));
    }
    d.angle = tb_v3_length(tb_q_rotation_vector(tb_q_mul(after, tb_q_conjugate(before))));
    return d;
}

static double speed_of(const tb_state *state, int32_t dofs)
{
    const double *u = tb_state_u(state);
    double speed = 0;
    for (int32_t i = 0; i < dofs; i++) speed = fmax(speed, fabs(u[i]));
    return speed;
}

tb_status grasp_warn_of_motion(tb_grasp_plan *plan, const tb_model *alone, tb_error *error)
{
    static const double DEGREES = 57.29577951308232;
    tb_step_options options = plan->step;
    options.backend = TB_BACKEND_CPU; /* one small world, with the same result for every backend */
    options.device = 0;
    const int64_t most = plan->phases.close;
    int64_t step = 0, moved = -1;
    displacement d = {0, 0};
    double start[7];
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_status status = tb_state_create(alone, &state, error);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK) memcpy(start, tb_state_q(state), sizeof start);
    while (step < most && status == TB_OK) {
        const int32_t next = most - step < LOOK_EVERY ? (int32_t)(most - step) : LOOK_EVERY;
        status = tb_step(stepper, state, next, NULL, error);
        step += next;
        d = displacement_of(plan, alone, start, tb_state_q(state));
        if (moved < 0 && d.way > MOVED_M) moved = step;
        if (step >= LOOK_EVERY * LOOKS_BEFORE_REST &&
            speed_of(state, alone->number_of_dofs) < REST_SPEED)
            break;
    }
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    /* the trials themselves tell of steps that diverge or miss the tolerance */
    if (status == TB_DIVERGED || status == TB_NOT_CONVERGED) return TB_OK;
    if (status != TB_OK || moved < 0) return status;
    return grasp_plan_warn(
        plan, error,
        "the object does not rest: alone on the table it has moved by more than "
        "%.0f mm after %.2f s, and by %.1f mm and %.0f degrees after %.2f s, when "
        "the fingers have closed at the latest: sample grasps of it at rest",
        1e3 * MOVED_M, (double)moved * plan->dt, 1e3 * d.way, DEGREES * d.angle,
        (double)step * plan->dt);
}
