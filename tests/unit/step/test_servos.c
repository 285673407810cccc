/* Servos with memory, delayed controls, orientation servos, bounded and polynomial tendons, and
 * surfaces that adhere, over time. tests/peers/peer_servos.py holds them beside MuJoCo's. */
#include <math.h>

#include "model/mjcf_util.h"

static tb_error error;

typedef struct world {
    mjcf_case c;
    tb_stepper *stepper;
    tb_state *state;
} world;

static world begin(const char *text)
{
    world w = {.c = mjcf_load(text)};
    tb_step_options options = tb_step_defaults();
    options.solve.tolerance = 1e-10;
    options.report_energy = true;
    TEST_OK(tb_stepper_create(&options, &w.stepper, &error), &error);
    TEST_OK(tb_state_create(w.c.model, &w.state, &error), &error);
    return w;
}

static void step(world *w, int steps)
{
    tb_certificate certificate;
    for (int i = 0; i < steps; i++) {
        TEST_OK(tb_step(w->stepper, w->state, 1, &certificate, &error), &error);
        ck_assert_int_eq(certificate.status, TB_OK);
    }
}

static void end(world *w)
{
    tb_state_destroy(w->state);
    tb_stepper_destroy(w->stepper);
    mjcf_free(&w->c);
}

static void control(world *w, int32_t count, const double *controls)
{
    TEST_OK(tb_state_set_controls(w->state, controls, count, &error), &error);
}

/* 1 kg on a vertical slide, 1 ms a step */
#define SLIDE(joint, rest)                                                                         \
    MJCF("<option timestep='.001'/><worldbody><body><joint name='j' type='slide' axis='0 0 1' "    \
         "damping='2' " joint "/><geom size='.1' mass='1'/></body></worldbody>" rest)

/* A spring of 100 N/m sags by 98.1 mm under the weight; the integral takes that away. */
START_TEST(an_integral_takes_the_error_away)
{
    const double wanted[2] = {0.3, 0};
    world w = begin(SLIDE("", "<actuator><pid joint='j' kp='100' kv='10'/></actuator>"));
    control(&w, 2, wanted);
    step(&w, 4000);
    TEST_NEAR(tb_state_q(w.state)[0], 0.3 - 0.0981, 1e-4);
    end(&w);
    w = begin(SLIDE("", "<actuator><pid joint='j' kp='100' kv='10' ki='200'/></actuator>"));
    control(&w, 2, wanted);
    step(&w, 8000);
    TEST_NEAR(tb_state_q(w.state)[0], 0.3, 1e-6);
    TEST_NEAR(tb_state_activations(w.state)[0], 9.81 / 200, 1e-6);
    end(&w);
    /* held back at 0.02: 4 N of the 9.81 N */
    w = begin(SLIDE("", "<actuator><pid joint='j' kp='100' kv='10' ki='200' imax='.02'/>"
                        "</actuator>"));
    control(&w, 2, wanted);
    step(&w, 8000);
    TEST_NEAR(tb_state_q(w.state)[0], 0.3 - 0.0581, 1e-5);
    TEST_NEAR(tb_state_activations(w.state)[0], 0.02, 1e-12);
    end(&w);
}
END_TEST

START_TEST(a_setpoint_is_followed_at_its_rate)
{
    const double wanted[2] = {0.3, 0};
    world w =
        begin(SLIDE("", "<actuator><pid joint='j' kp='100' kv='10' slewmax='2'/></actuator>"));
    control(&w, 2, wanted);
    step(&w, 100);
    TEST_NEAR(tb_state_activations(w.state)[0], 0.2, 1e-12);
    step(&w, 100);
    TEST_NEAR(tb_state_activations(w.state)[0], 0.3, 1e-12);
    end(&w);
}
END_TEST

/* The velocity's and the force's controls act beside the place's, and none beyond forcerange. */
START_TEST(further_controls_are_inputs_of_one_force)
{
    const double all[3] = {0.5, 2, 9.81};
    world w = begin(SLIDE("", "<actuator><pid name='p' joint='j' kp='0' kv='10' "
                              "input='pos vel ff'/></actuator>"));
    ck_assert_int_eq(tb_model_count(w.c.model).actuators, 3);
    control(&w, 3, all);
    step(&w, 3000); /* 10 (2 - v) = 2 v */
    TEST_NEAR(tb_state_u(w.state)[0], 20.0 / 12, 1e-9);
    end(&w);
    w = begin(SLIDE("", "<actuator><pid joint='j' kp='0' kv='10' input='vel ff' "
                        "forcerange='-1 10.81'/></actuator>"));
    control(&w, 2, all + 1);
    step(&w, 4000); /* 1 = 2 v */
    TEST_NEAR(tb_state_u(w.state)[0], 0.5, 1e-3);
    end(&w);
}
END_TEST

/* 12 V on 2 ohm with L/R = 20 ms and K = 0.2 N m/A. */
#define MOTOR(joint, settings)                                                                     \
    MJCF("<option timestep='.002' gravity='0 0 0'/><worldbody><body><joint name='j' axis='0 0 "    \
         "1' " joint                                                                               \
         "/><geom size='.1' mass='1'/></body></worldbody><actuator><dcmotor joint='j' "            \
         "resistance='2' motorconst='.2' inductance='0 .02' " settings "/></actuator>")

/* A held rotor's current rises to V/R = 6 A with the time constant; a free rotor ends at the speed
 * V/K = 60 rad/s without current. */
START_TEST(a_winding_delays_its_current)
{
    const double volts[1] = {12};
    world w = begin(MOTOR("armature='1e9'", ""));
    control(&w, 1, volts);
    step(&w, 10);
    TEST_NEAR(tb_state_activations(w.state)[0], 6 * (1 - exp(-1)), 1e-9);
    TEST_NEAR(tb_state_actuator_force(w.state, 0), 0.2 * 6 * (1 - exp(-1)), 1e-9);
    end(&w);
    w = begin(MOTOR("", ""));
    control(&w, 1, volts);
    step(&w, 2500);
    TEST_NEAR(tb_state_u(w.state)[0], 60, 1e-6);
    TEST_NEAR(tb_state_activations(w.state)[0], 0, 1e-6);
    end(&w);
    /* the torque is limited, the current is not */
    w = begin(MOTOR("armature='1e9'", "saturation='.5'"));
    control(&w, 1, volts);
    step(&w, 100);
    TEST_NEAR(tb_state_activations(w.state)[0], 6 * (1 - exp(-10)), 1e-7);
    TEST_NEAR(tb_state_actuator_force(w.state, 0), 0.5, 1e-12);
    end(&w);
}
END_TEST

/* A back EMF that would break a step taken explicitly: K^2/R dt is 400 times the inertia. */
START_TEST(a_strong_back_emf_brakes_without_swinging)
{
    world w = begin(MJCF(
        "<option timestep='.002' gravity='0 0 0'/><worldbody><body><joint name='j' axis='0 0 1'/>"
        "<geom size='.1' mass='1'/></body></worldbody><actuator><dcmotor joint='j' resistance='1' "
        "motorconst='28.284271' inductance='0 .0001'/></actuator><keyframe><key name='start' "
        "qvel='5'/></keyframe>"));
    TEST_OK(tb_state_reset(w.state, 0, &error), &error);
    double before = 5;
    for (int i = 0; i < 20; i++) {
        step(&w, 1);
        const double u = tb_state_u(w.state)[0];
        ck_assert(u >= 0 && u <= before);
        before = u;
    }
    ck_assert(before < 1e-9);
    end(&w);
}
END_TEST

/* A servo on a joint with dry friction and a limit, by gears of 1, -1 and 2 for the same torque: the
 * rows of the joint have the same numbers, opposite ones, and others. */
START_TEST(a_gear_changes_nothing_but_the_units)
{
    static const char *const SERVO[] = {"kp='40' kv='4' gear='1'", "kp='40' kv='4' gear='-1'",
                                        "kp='10' kv='1' gear='2'"};
    static const double GEAR[] = {1, -1, 2};
    double q[3][2];
    for (int k = 0; k < 3; k++) {
        char text[1000];
        snprintf(
            text, sizeof text,
            MJCF("<option timestep='.002'/><compiler angle='radian'/><worldbody><body><joint "
                 "name='a' axis='0 1 0' frictionloss='.3'/><geom type='capsule' size='.02' "
                 "fromto='0 0 0 .3 0 0'/><body pos='.3 0 0'><joint name='b' axis='0 1 0' "
                 "range='-.5 .4' frictionloss='.2'/><geom type='capsule' size='.02' fromto='0 0 "
                 "0 .3 0 0'/></body></body></worldbody><actuator><position joint='b' "
                 "%s/></actuator>"),
            SERVO[k]);
        world w = begin(text);
        const double wanted = GEAR[k];
        control(&w, 1, &wanted);
        step(&w, 300);
        for (int i = 0; i < 2; i++) q[k][i] = tb_state_q(w.state)[i];
        end(&w);
    }
    TEST_NEAR(q[0][1], 0.4, 1e-6); /* at its limit */
    for (int i = 0; i < 2; i++) {
        TEST_NEAR(q[1][i], q[0][i], 1e-8);
        TEST_NEAR(q[2][i], q[0][i], 1e-8);
    }
}
END_TEST

/* 50 ms late to the step, for every kind of interpolation; a copy of the state continues in the
 * same way. */
START_TEST(a_delayed_control_comes_late)
{
    static const char *const KINDS[] = {"zoh", "linear", "cubic"};
    const double force[1] = {4};
    for (int i = 0; i < 3; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 MJCF("<option timestep='.001' gravity='0 0 0'/><worldbody><body><joint name='j' "
                      "type='slide'/><geom size='.1' mass='1'/></body></worldbody><actuator><motor "
                      "joint='j' delay='.05' nsample='60' interp='%s'/></actuator>"),
                 KINDS[i]);
        world w = begin(text);
        control(&w, 1, force);
        step(&w, 50);
        TEST_NEAR(tb_state_u(w.state)[0], 0, 0);
        tb_state *copy = NULL;
        TEST_OK(tb_state_fork(w.state, &copy, &error), &error);
        step(&w, 100);
        TEST_NEAR(tb_state_u(w.state)[0], 0.4, 1e-9);
        const double u = tb_state_u(w.state)[0];
        tb_state_destroy(w.state);
        w.state = copy;
        step(&w, 100);
        ck_assert(tb_state_u(w.state)[0] == u);
        end(&w);
    }
}
END_TEST

START_TEST(an_orientation_servo_turns_to_its_orientation)
{
    const double controls[4] = {2 * 0.5, 2 * 0.1, -2 * 0.7, 2 * 0.5}; /* of length 2 */
    world w = begin(MJCF(
        "<option timestep='.002' gravity='0 0 0'/><worldbody><body><joint name='j' type='ball'/>"
        "<geom type='box' size='.07 .09 .05'/></body></worldbody><actuator><orientation joint='j' "
        "input='quat' kp='5' dampratio='1'/></actuator>"));
    ck_assert_int_eq(tb_model_count(w.c.model).actuators, 4);
    control(&w, 4, controls);
    step(&w, 3000);
    for (int i = 0; i < 4; i++) TEST_NEAR(tb_state_q(w.state)[i], controls[i] / 2, 1e-6);
    end(&w);
}
END_TEST

/* 3 N and 5 N over a bound of 4 N: scaled to 1.5 N and 2.5 N. */
START_TEST(a_tendon_bounds_the_sum_of_its_actuators)
{
    const double forces[2] = {3, 5};
    world w =
        begin(MJCF("<option timestep='.001' gravity='0 0 0'/><worldbody><body><joint name='j' "
                   "type='slide'/><geom size='.1' mass='1'/></body></worldbody><tendon>"
                   "<fixed name='t' actuatorfrcrange='-4 4'><joint joint='j' coef='1'/>"
                   "</fixed></tendon><actuator><motor tendon='t'/><motor tendon='t'/>"
                   "</actuator>"));
    control(&w, 2, forces);
    step(&w, 10);
    TEST_NEAR(tb_state_u(w.state)[0], 0.04, 1e-12);
    TEST_NEAR(tb_state_actuator_force(w.state, 0), 1.5, 1e-12);
    TEST_NEAR(tb_state_actuator_force(w.state, 1), 2.5, 1e-12);
    end(&w);
}
END_TEST

/* x (10 + 100 x + 1000 x^2) = 9.81: x = 0.16636... */
START_TEST(a_polynomial_tendon_sags_to_its_force)
{
    world w = begin(SLIDE("", "<tendon><fixed stiffness='10 100 1000' damping='5 1 1' "
                              "springlength='0'><joint joint='j' coef='-1'/></fixed></tendon>"));
    step(&w, 8000);
    const double x = -tb_state_q(w.state)[0];
    TEST_NEAR(x * (10 + x * (100 + 1000 * x)), 9.81, 1e-6);
    end(&w);
}
END_TEST

/* A spring whose force falls as it is stretched still pulls. */
START_TEST(a_spring_that_weakens_pulls)
{
    world w =
        begin(MJCF("<option timestep='.001' gravity='0 0 0'/><worldbody><body><joint name='j' "
                   "type='slide'/><geom size='.1' mass='1'/></body></worldbody><tendon>"
                   "<fixed stiffness='30 -100' springlength='-.2'><joint joint='j' coef='1'/>"
                   "</fixed></tendon>"));
    step(&w, 10); /* 0.2 m: 6 N - 4 N */
    TEST_NEAR(tb_state_u(w.state)[0], -0.02, 2e-4);
    end(&w);
}
END_TEST

#define HUNG(adhesion)                                                                             \
    MJCF("<option timestep='.001'/><worldbody><geom type='plane' size='1 1 .1' pos='0 0 1' "       \
         "euler='180 0 0'/><body pos='0 0 .9'><freejoint/><geom size='.1' mass='1' "               \
         "adhesion='" adhesion "'/></body></worldbody>")

/* A ball of 9.81 N under a ceiling. */
START_TEST(a_surface_holds_up_to_its_adhesion)
{
    world w = begin(HUNG("9.9"));
    step(&w, 500);
    TEST_NEAR(tb_state_q(w.state)[2], 0.9, 1e-9);
    end(&w);
    w = begin(HUNG("9.7"));
    step(&w, 500);
    ck_assert(tb_state_q(w.state)[2] < 0.899);
    end(&w);
}
END_TEST

/* A box on a slope of tan 0.6 with mu 0.4: four contacts that pull with a each hold it where
 * 0.4 (N + 4 a) >= 0.6 N, that is a >= N / 8 = 1.0515 N. */
#define SLOPE(adhesion)                                                                            \
    MJCF("<option timestep='.001' gravity='5.0475 0 -8.4125'/><worldbody><geom type='plane' "      \
         "size='2 2 .1' friction='.4'/><body pos='0 0 .1'><freejoint/><geom type='box' "           \
         "size='.1 .1 .1' mass='1' friction='.4' adhesion='" adhesion "'/></body></worldbody>")

START_TEST(adhesion_counts_for_friction)
{
    world w = begin(SLOPE("1.06"));
    step(&w, 300);
    TEST_NEAR(tb_state_u(w.state)[0], 0, 1e-9);
    end(&w);
    w = begin(SLOPE("1.04"));
    step(&w, 300);
    TEST_NEAR(tb_state_u(w.state)[0], 0.3 * (5.0475 - 0.4 * (8.4125 + 4.16)), 1e-4);
    end(&w);
}
END_TEST

/* A magnet draws across its gap, and no farther. */
START_TEST(a_surface_draws_across_its_gap)
{
#define MAGNET(height)                                                                             \
    MJCF("<option timestep='.001' gravity='0 0 0'/><worldbody><geom type='plane' size='1 1 .1' "   \
         "adhesion='1' gap='.003'/><body pos='0 0 " height "'><freejoint/><geom size='.1' "        \
         "mass='1' adhesion='1' gap='.003'/></body></worldbody>")
    world w = begin(MAGNET(".1055"));
    step(&w, 10);
    TEST_NEAR(tb_state_u(w.state)[2], -0.02, 1e-12);
    end(&w);
    w = begin(MAGNET(".1065"));
    step(&w, 10);
    TEST_NEAR(tb_state_u(w.state)[2], 0, 0);
    end(&w);
}
END_TEST

TEST_MAIN(an_integral_takes_the_error_away, a_setpoint_is_followed_at_its_rate,
          further_controls_are_inputs_of_one_force, a_winding_delays_its_current,
          a_strong_back_emf_brakes_without_swinging, a_gear_changes_nothing_but_the_units,
          a_delayed_control_comes_late, an_orientation_servo_turns_to_its_orientation,
          a_tendon_bounds_the_sum_of_its_actuators, a_polynomial_tendon_sags_to_its_force,
          a_spring_that_weakens_pulls, a_surface_holds_up_to_its_adhesion,
          adhesion_counts_for_friction, a_surface_draws_across_its_gap)
