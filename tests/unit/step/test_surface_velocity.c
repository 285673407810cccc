/* Surfaces that move past their shapes: belts and turntables. */
#include <math.h>

#include "model/mjcf_util.h"

static tb_error error;

#define SCENE(surface, friction, at, velocity)                                                     \
    MJCF("<option timestep='.001'/><worldbody><geom type='box' size='2 2 .1' pos='0 0 -.1' "       \
         "friction='" friction "' surfacevel='" surface "'/>"                                      \
         "<body name='b' pos='" at "'><freejoint/><geom type='box' size='.05 .05 .05' mass='1' "   \
         "friction='" friction "'/></body></worldbody>"                                            \
         "<keyframe><key qvel='" velocity "'/></keyframe>")

/* Velocities of the body after the given number of steps of 1 ms. */
static void run(const char *text, int steps, double u[6])
{
    mjcf_case c = mjcf_load(text);
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate certificate;
    tb_step_options options = tb_step_defaults();
    options.report_energy = true;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(c.model, &state, &error), &error);
    for (int i = 0; i < steps; i++) {
        TEST_OK(tb_step(stepper, state, 1, &certificate, &error), &error);
        ck_assert_int_eq(certificate.status, TB_OK);
    }
    memcpy(u, tb_state_u(state), 6 * sizeof *u);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&c);
}

/* A box on a belt slides under mu m g until it goes with the belt. */
START_TEST(a_belt_accelerates_by_friction_and_then_carries)
{
    double u[6];
    run(SCENE("0.8 0 0 0 0 0", "0.5", "0 0 .05", "0 0 0 0 0 0"), 100, u);
    TEST_NEAR(u[0], 0.5 * 9.81 * 0.1, 1e-3);
    TEST_NEAR(u[2], 0, 1e-6);
    run(SCENE("0.8 0 0 0 0 0", "0.5", "0 0 .05", "0 0 0 0 0 0"), 400, u);
    TEST_NEAR(u[0], 0.8, 1e-5);
    TEST_NEAR(u[1], 0, 1e-5);
}
END_TEST

/* A surface that moves along the normal exerts no push. */
START_TEST(the_normal_part_has_no_effect)
{
    double u[6];
    run(SCENE("0 0 3 0 0 0", "0.5", "0 0 .05", "0 0 0 0 0 0"), 100, u);
    for (int i = 0; i < 6; i++) TEST_NEAR(u[i], 0, 1e-6);
}
END_TEST

/* On a turntable of 1 rad/s a box 0.2 m off the axis goes round with it. */
START_TEST(a_turntable_carries_round)
{
    double u[6];
    run(SCENE("0 0 0 0 0 1", "1", "0.2 0 .05", "0 0 0 0 0 0"), 300, u);
    TEST_NEAR(hypot(u[0], u[1]), 0.2, 4e-3);
    TEST_NEAR(u[5], 1, 2e-2);
}
END_TEST

START_TEST(the_surface_velocity_is_a_part_of_the_model)
{
    mjcf_case c = mjcf_load(SCENE("1 2 3 4 5 6", "1", "0 0 1", "0 0 0 0 0 0"));
    ck_assert(c.model->shapes[0].conveys && !c.model->shapes[1].conveys);
    for (int i = 0; i < 6; i++) TEST_NEAR(c.model->shapes[0].surface_velocity[i], i + 1, 0);
    size_t size;
    const unsigned char *bytes = tb_model_bytes(c.model, &size);
    tb_model *copy;
    TEST_OK(tb_model_from_bytes(bytes, size, &copy, &error), &error);
    TEST_NEAR(copy->shapes[0].surface_velocity[5], 6, 0);
    tb_model_destroy(copy);
    mjcf_free(&c);
}
END_TEST

TEST_MAIN(a_belt_accelerates_by_friction_and_then_carries, the_normal_part_has_no_effect,
          a_turntable_carries_round, the_surface_velocity_is_a_part_of_the_model)
