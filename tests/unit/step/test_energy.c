/* The discretization error of a step: the certificate's energy_unexplained stays within
 * energy_bound, and both vanish with the length of the step, at impacts too. */
#include <math.h>

#include "model/mjcf_util.h"
#include "model_util.h"

static tb_error error;

/* Sums over a run, and most of one step; J. gain: of the change of energy beyond the works of
 * motors, applied forces and the motion of positions. */
typedef struct errors {
    double sum, bound, most, most_bound, gain;
    int contacts;
} errors;

/* A run of `duration` s in steps of dt from the first keyframe. */
static errors run(const char *text, double dt, double duration)
{
    mjcf_case scene = mjcf_load(text);
    tb_step_options options = tb_step_defaults();
    options.report_energy = true;
    options.dt = dt;
    options.solve.tolerance = 1e-9;
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate c;
    errors e = {0};
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(scene.model, &state, &error), &error);
    TEST_OK(tb_state_reset(state, 0, &error), &error);
    for (int i = 0, n = (int)lround(duration / dt); i < n; i++) {
        TEST_OK(tb_step(stepper, state, 1, &c, &error), &error);
        ck_assert_int_eq(c.status, TB_OK);
        ck_assert_double_le(c.energy_unexplained, c.energy_bound);
        e.sum += c.energy_unexplained;
        e.bound += c.energy_bound;
        e.most = fmax(e.most, c.energy_unexplained);
        e.most_bound = fmax(e.most_bound, c.energy_bound);
        e.gain = fmax(e.gain, c.energy_change - c.energy_motors - c.energy_applied -
                                  fmax(c.energy_recovery, 0));
        e.contacts += c.contacts;
    }
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&scene);
    return e;
}

#define ARM                                                                                        \
    "<geom type='capsule' fromto='0 0 0 .4 0 0' size='.03'/><body pos='.4 0 0'><joint axis='0 1 "  \
    "0' stiffness='2'/><geom type='capsule' fromto='0 0 0 .4 0 0' size='.03'/></body>"

/* Two links that swing on a spring between them: no impact, so the error of a step is of second
 * order. */
static const char SWING[] = MJCF("<worldbody><body><joint axis='0 1 0'/>" ARM "</body></worldbody>"
                                 "<keyframe><key qpos='.3 .4' qvel='3 -5'/></keyframe>");

/* The same two links fall on the floor: the impacts change velocities at once. */
static const char FALL[] =
    MJCF("<worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .5'><freejoint/>" ARM
         "</body></worldbody><keyframe><key qpos='0 0 .6 1 0 .2 0 .4' qvel='.5 .2 0 .3 .5 -.2 2'/>"
         "</keyframe>");

START_TEST(the_error_of_a_step_without_impacts_is_of_second_order)
{
    errors coarse = run(SWING, 1e-3, 1);
    for (double dt = 5e-4; dt > 2e-4; dt /= 2) {
        const errors fine = run(SWING, dt, 1);
        ck_assert(fine.most > 0 && fine.most_bound > 0);
        TEST_NEAR(coarse.most / fine.most, 4, 0.4);
        TEST_NEAR(coarse.most_bound / fine.most_bound, 4, 0.4);
        TEST_NEAR(coarse.sum / fine.sum, 2, 0.2);
        TEST_NEAR(coarse.bound / fine.bound, 2, 0.2);
        /* nothing else feeds the links */
        TEST_NEAR(fine.gain, fine.most, 1e-12);
        coarse = fine;
    }
}
END_TEST

START_TEST(the_error_of_impacts_vanishes_with_the_step)
{
    errors coarse = run(FALL, 2e-3, 1);
    const double first = coarse.most_bound;
    for (double dt = 1e-3; dt > 4e-4; dt /= 2) {
        const errors fine = run(FALL, dt, 1);
        ck_assert_int_gt(fine.contacts, 0);
        TEST_NEAR(coarse.sum / fine.sum, 2, 0.4);
        TEST_NEAR(coarse.bound / fine.bound, 2, 0.3);
        coarse = fine;
    }
    ck_assert_double_lt(coarse.most_bound, first / 3);
    ck_assert_double_lt(coarse.gain, 1e-3);
}
END_TEST

TEST_MAIN(the_error_of_a_step_without_impacts_is_of_second_order,
          the_error_of_impacts_vanishes_with_the_step)
