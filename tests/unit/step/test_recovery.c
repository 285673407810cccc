/* Recovery: positions come back by a motion that is no part of the momentum, gaps that cannot be
 * closed are named, and the certificate lists the sources of a step's energy. */
#include <math.h>

#include "model_util.h"
#include "run_util.h"

static void expect_fault(const run *r, int kind, double amount, double tolerance, const char *words)
{
    char text[256];
    tb_fault_describe(r->scene.model, &r->last.worst_fault, text, sizeof text);
    ck_assert_msg(r->last.flags & TB_CERTIFICATE_INFEASIBLE, "not infeasible");
    ck_assert_int_eq(r->last.worst_fault.kind, kind);
    TEST_NEAR(r->last.worst_fault.amount, amount, tolerance);
    ck_assert_msg(strstr(text, words) != NULL, "'%s' lacks '%s'", text, words);
}

/* A ball 5 mm deep in the floor comes out at the recovery speed and stays there at rest: a velocity
 * of 0.5 m/s, which the same motion by impulses would leave, would throw it 13 mm high. */
START_TEST(recovery_is_no_part_of_the_momentum)
{
    run r =
        begin(MJCF("<option timestep='.001'/><worldbody><geom type='plane' size='1 1 1'/>"
                   "<body name='ball' pos='0 0 .095'><freejoint/><geom size='.1' mass='1'/></body>"
                   "</worldbody>"),
              TB_SCHEME_STEWART_TRINKLE);
    double deepest = 1, fastest = 0;
    for (int i = 0; i < 200; i++) {
        const double before = tb_state_q(r.state)[2];
        go(&r, 1);
        deepest = fmin(deepest, tb_state_q(r.state)[2] - before);
        fastest = fmax(fastest, (tb_state_q(r.state)[2] - before) / 0.001);
        TEST_NEAR(tb_state_u(r.state)[2], 0, 1e-12);
    }
    ck_assert(deepest > -1e-12 && fastest <= 0.5 * (1 + 1e-9) && fastest > 0.4);
    TEST_NEAR(tb_state_q(r.state)[2], 0.1, 3e-6);
    ck_assert_int_eq(r.sum.faults, 0);
    /* all the energy that the run has gained is the lift */
    TEST_NEAR(r.sum.energy_recovery, 9.81 * (tb_state_q(r.state)[2] - 0.095), 1e-9);
    TEST_NEAR(r.sum.energy_unexplained, 0, 1e-9);
    end(&r);
}
END_TEST

/* Two cylinders overlap along the axis of the joint between them: nothing parts them, the joint
 * turns without friction, and the pair is named. */
START_TEST(an_overlap_along_a_joint_bears_no_friction_and_is_named)
{
    run r = begin(WORLD("<body name='base'><geom type='cylinder' size='.1 .1'/>"
                        "<body name='lid' pos='0 0 .19'><joint axis='0 0 1'/>"
                        "<geom type='cylinder' size='.1 .1' mass='2'/></body></body>"),
                  TB_SCHEME_STEWART_TRINKLE);
    const double torque = 0.1, inertia = 0.5 * 2 * 0.01;
    TEST_OK(tb_state_set_applied_force(r.state, &torque, 1, &error), &error);
    go(&r, 100);
    TEST_NEAR(tb_state_u(r.state)[0], torque / inertia * 0.2, 1e-9);
    ck_assert_int_eq(r.last.status, TB_OK);
    ck_assert_int_le(r.sum.iterations, 100);
    expect_fault(&r, TB_FAULT_OVERLAP, 0.01, 1e-6, "'base' and 'lid'");
    end(&r);
}
END_TEST

/* A ball between two walls that are too close: each gap requires a motion that the other
 * forbids. */
START_TEST(gaps_that_contradict_each_other_leave_it_in_the_middle)
{
    run r = begin(
        MJCF("<option gravity='0 0 0'/><worldbody>"
             "<geom name='left' type='box' size='.1 1 1' pos='-.15 0 0'/>"
             "<geom name='right' type='box' size='.1 1 1' pos='.15 0 0'/>"
             "<body name='ball' pos='.0001 0 0'><freejoint/><geom size='.0505' mass='1'/></body>"
             "</worldbody>"),
        TB_SCHEME_STEWART_TRINKLE);
    go(&r, 300);
    TEST_NEAR(tb_state_q(r.state)[0], 0, 1e-5);
    TEST_NEAR(tb_state_u(r.state)[0], 0, 1e-12);
    ck_assert_int_eq(r.sum.status, TB_OK);
    expect_fault(&r, TB_FAULT_OVERLAP, 5e-4, 2e-5, "'ball'");
    end(&r);
}
END_TEST

/* A weld holds a joint where its limit forbids it: the loop stays closed, the limit is named. */
START_TEST(a_limit_that_a_weld_violates_is_named)
{
    run r = begin(MJCF("<compiler angle='radian'/><worldbody>"
                       "<body name='arm' pos='0 0 1'>"
                       "<joint name='elbow' axis='0 1 0' limited='true' range='.3 1'/>"
                       "<geom type='capsule' size='.02' fromto='0 0 0 .4 0 0'/></body></worldbody>"
                       "<equality><weld body1='arm'/></equality>"),
                  TB_SCHEME_STEWART_TRINKLE);
    go(&r, 200);
    ck_assert_int_eq(r.sum.status, TB_OK);
    ck_assert_int_lt(r.sum.iterations, 2000);
    ck_assert(r.last.faults > 0);
    ck_assert(fabs(tb_state_u(r.state)[0]) < 1e-6);
    char text[256];
    tb_fault_describe(r.scene.model, &r.last.worst_fault, text, sizeof text);
    ck_assert_msg(strstr(text, "'elbow'") || strstr(text, "equality"), "%s", text);
    end(&r);
}
END_TEST

/* A four-bar whose ends miss by 10 nm out of its plane swings as one whose ends meet. */
START_TEST(a_loop_that_misses_by_nanometers_costs_no_iterations)
{
    static const char FOURBAR[] = MJCF(
        "<compiler angle='radian'/><worldbody>"
        "<body name='a' pos='0 0 1'><joint axis='0 1 0' damping='.01'/>"
        "<geom type='capsule' size='.01' fromto='0 0 0 .05 0 -.2' contype='0' conaffinity='0'/>"
        "<body name='b' pos='.05 0 -.2'><joint axis='0 1 0' damping='.01'/>"
        "<geom type='capsule' size='.01' fromto='0 0 0 .3 0 0' contype='0' conaffinity='0'/>"
        "<site name='s' pos='.3 %s 0'/></body></body>"
        "<body name='c' pos='.3 0 1'><joint axis='0 1 0' damping='.01'/>"
        "<geom type='capsule' size='.01' fromto='0 0 0 .05 0 -.2' contype='0' conaffinity='0'/>"
        "<site name='t' pos='.05 0 -.2'/></body>"
        "</worldbody><equality><connect site1='s' site2='t'/></equality>");
    static const char *const MISSES[] = {"0", "1e-8"};
    char text[2048];
    double swing[2];
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, FOURBAR, MISSES[i]);
        run r = begin(text, TB_SCHEME_STEWART_TRINKLE);
        go(&r, 200);
        ck_assert_int_eq(r.sum.status, TB_OK);
        ck_assert_int_lt(r.sum.iterations, 1000);
        ck_assert_int_eq(r.sum.faults, 0);
        ck_assert(r.sum.closure_error < 2e-8);
        swing[i] = tb_state_q(r.state)[0];
        end(&r);
    }
    ck_assert(fabs(swing[0]) > 0.05);
    TEST_NEAR(swing[1], swing[0], 1e-6);
}
END_TEST

/* A loop that cannot close at all is named and brings no energy. */
START_TEST(a_loop_out_of_reach_is_named)
{
    run r = begin(MJCF("<option gravity='0 0 0'/><worldbody>"
                       "<body name='arm' pos='0 0 1'><joint axis='0 1 0'/>"
                       "<geom type='capsule' size='.02' fromto='0 0 0 .4 0 0'/>"
                       "<site name='hand' pos='.4 0 0'/></body><site name='hook' pos='.4004 0 1'/>"
                       "</worldbody><equality><connect name='grip' site1='hand' site2='hook'/>"
                       "</equality>"),
                  TB_SCHEME_STEWART_TRINKLE);
    go(&r, 100);
    ck_assert_int_eq(r.sum.status, TB_OK);
    TEST_NEAR(r.last.closure_error, 4e-4, 1e-6);
    expect_fault(&r, TB_FAULT_EQUALITY, 4e-4, 1e-6, "'grip'");
    TEST_NEAR(r.last.energy, 0, 1e-12);
    end(&r);
}
END_TEST

/* Stacks of two balls, all of which overlap: few rows are recovered by active sets, more of them by
 * the step's solver, and a ball rises alike. */
START_TEST(few_rows_and_many_are_recovered_alike)
{
    enum { FEW = 10, MANY = 40, STEPS = 20 }; /* 20 rows and 80 */
    static const int STACKS[] = {FEW, MANY};
    static char text[16384];
    double height[2][STEPS][2];
    for (int k = 0; k < 2; k++) {
        int length = snprintf(text, sizeof text, "%s",
                              "<mujoco><option timestep='.001'/><worldbody>"
                              "<geom type='plane' size='9 9 1'/>");
        for (int i = 0; i < STACKS[k]; i++)
            for (int ball = 0; ball < 2; ball++)
                length += snprintf(text + length, sizeof text - (size_t)length,
                                   "<body pos='%d 0 %s'><freejoint/>"
                                   "<geom size='.1' mass='%d'/></body>",
                                   i, ball ? ".292" : ".095", 1 + ball);
        snprintf(text + length, sizeof text - (size_t)length, "</worldbody></mujoco>");
        run r = begin(text, TB_SCHEME_STEWART_TRINKLE);
        for (int step = 0; step < STEPS; step++) {
            go(&r, 1);
            height[k][step][0] = tb_state_q(r.state)[2];
            height[k][step][1] = tb_state_q(r.state)[9];
        }
        ck_assert_int_eq(r.sum.status, TB_OK);
        end(&r);
    }
    ck_assert(height[0][STEPS - 1][0] > .0999 && height[0][STEPS - 1][1] > .2995);
    for (int step = 0; step < STEPS; step++)
        for (int ball = 0; ball < 2; ball++)
            TEST_NEAR(height[1][step][ball], height[0][step][ball], 1e-9);
}
END_TEST

/* Coordinates of a body in `steps` steps: of a scene whose text is complete but for bodies that touch nothing, of
 * which there are `others`, and for its end. */
static void let_rise(char *text, size_t size, int length, int others, int contacts, int steps,
                     double pose[][7])
{
    for (int i = 0; i < others; i++)
        length += snprintf(text + length, size - (size_t)length,
                           "<body pos='%d 3 5'><freejoint/><geom size='.1'/></body>", i);
    snprintf(text + length, size - (size_t)length, "</worldbody></mujoco>");
    run r = begin(text, TB_SCHEME_STEWART_TRINKLE);
    for (int step = 0; step < steps; step++) {
        go(&r, 1);
        for (int i = 0; i < 7; i++) pose[step][i] = tb_state_q(r.state)[i];
    }
    ck_assert_int_eq(r.sum.contacts, contacts);
    end(&r);
}

/* A body on three boxes of unlike depths. Its rows outnumber its own six dofs, so that they are recovered by
 * the system of the dofs; beside four bodies that touch nothing they are fewer than the dofs, and are
 * recovered by their own system. The body moves alike. */
START_TEST(rows_and_dofs_recover_alike)
{
    enum { STEPS = 20, NUMBERS = 7 };
    static char text[4096];
    double pose[2][STEPS][NUMBERS];
    for (int k = 0; k < 2; k++) {
        int length =
            snprintf(text, sizeof text, "%s",
                     "<mujoco><option timestep='.001'/><worldbody><geom type='plane' size='9 9 1'/>"
                     "<body pos='0 0 .1'><freejoint/>"
                     "<geom type='box' size='.1 .1 .1' pos='-.3 0 -.004'/>"
                     "<geom type='box' size='.1 .2 .1' pos='.3 .1 -.006'/>"
                     "<geom type='box' size='.2 .1 .1' pos='0 .4 -.005' mass='3'/></body>");
        let_rise(text, sizeof text, length, k > 0 ? 4 : 0, 12, STEPS, pose[k]);
    }
    ck_assert_msg(pose[0][STEPS - 1][2] > .103, "rises to %g", pose[0][STEPS - 1][2]);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < NUMBERS; i++) TEST_NEAR(pose[1][step][i], pose[0][step][i], 1e-9);
}
END_TEST

/* A body on twenty boxes: 80 rows. Of its own six dofs they are recovered by active sets; beside eleven bodies that
 * touch nothing, whose dofs are too many, by the step's solver. The body rises alike. */
START_TEST(many_rows_of_few_dofs_recover_alike)
{
    enum { STEPS = 12, NUMBERS = 7, BOXES = 20 };
    static char text[8192];
    double pose[2][STEPS][NUMBERS];
    for (int k = 0; k < 2; k++) {
        int length = snprintf(text, sizeof text, "%s",
                              "<mujoco><option timestep='.001'/><worldbody>"
                              "<geom type='plane' size='9 9 1'/>"
                              "<body pos='0 0 .1'><freejoint/>");
        for (int i = 0; i < BOXES; i++)
            length += snprintf(text + length, sizeof text - (size_t)length,
                               "<geom type='box' size='.05 .05 .1' pos='%g %g %g'/>",
                               0.12 * (i % 5), 0.12 * (i / 5), -0.003 - 0.0002 * (i * 7 % 11));
        length += snprintf(text + length, sizeof text - (size_t)length, "</body>");
        let_rise(text, sizeof text, length, k > 0 ? 11 : 0, 4 * BOXES, STEPS, pose[k]);
    }
    ck_assert_msg(pose[0][STEPS - 1][2] > .104, "rises to %g", pose[0][STEPS - 1][2]);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < NUMBERS; i++) TEST_NEAR(pose[1][step][i], pose[0][step][i], 1e-9);
}
END_TEST

/* A hand on a weld that a mocap body draws, with parts that are fixed to it, over a shelf that is
 * fixed to the world: loops are closed, the finger's limit and the overlap recovered. A step's
 * energy is that of the state which it leaves, computed from nothing but the state. */
START_TEST(poses_at_the_end_of_a_step_are_those_of_its_state)
{
    run r = begin(
        MJCF(
            "<compiler angle='radian'/><worldbody>"
            "<body name='shelf' pos='.1 0 .1'><geom type='box' size='.3 .3 .1'/>"
            "<body name='edge' pos='0 0 .1'><geom type='box' size='.1 .1 .02'/></body></body>"
            "<body name='way' mocap='true' pos='0 0 .6'/>"
            "<body name='arm' pos='0 0 .59'><joint type='slide' axis='0 0 1'/>"
            "<joint axis='0 1 0' springref='.1' stiffness='2'/>"
            "<geom type='capsule' size='.02' fromto='0 0 0 .2 0 0'/>"
            "<body name='palm' pos='.2 0 0'><geom type='box' size='.02 .03 .02'/>"
            "<body name='plate' pos='0 0 -.03' euler='.3 0 0'><geom type='box' size='.01 .01 .01'/>"
            "<body name='finger' pos='.02 0 -.02'><joint axis='0 1 0' limited='true' "
            "range='.2 1'/><geom type='capsule' size='.01' fromto='0 0 0 0 0 -.1'/></body>"
            "</body></body></body>"
            "<body pos='.1 .2 .29'><freejoint/><geom size='.1' mass='1'/></body></worldbody>"
            "<equality><connect body1='way' body2='arm' anchor='0 0 0'/></equality>"),
        TB_SCHEME_STEWART_TRINKLE);
    tb_step_options still = tb_step_defaults();
    tb_stepper *stepper;
    still.report_energy = true;
    TEST_OK(tb_stepper_create(&still, &stepper, &error), &error);
    double recovered = 0;
    for (int i = 0; i < 60; i++) {
        go(&r, 1);
        recovered = fmax(recovered, fabs(r.last.energy_recovery));
        /* the next step of a copy begins with the energy of the state */
        tb_certificate next;
        tb_state *copy;
        TEST_OK(tb_state_fork(r.state, &copy, &error), &error);
        TEST_OK(tb_step(stepper, copy, 1, &next, &error), &error);
        TEST_NEAR(next.energy - next.energy_change, r.last.energy, 1e-9);
        tb_state_destroy(copy);
    }
    ck_assert(recovered > 1e-4);
    tb_stepper_destroy(stepper);
    end(&r);
}
END_TEST

/* Motor, damper and friction each do the work that they do. */
START_TEST(the_certificate_tells_where_energy_comes_from)
{
    run r = begin(MJCF("<option timestep='.0005' gravity='0 0 -10'/><worldbody>"
                       "<geom type='plane' size='1 1 1' friction='.5'/>"
                       "<body name='sled' pos='0 0 .1'><freejoint/>"
                       "<geom type='box' size='.1 .1 .1' mass='1' friction='.5'/></body>"
                       "<body name='fan' pos='0 0 2'><joint name='fan' axis='0 0 1' damping='.01'/>"
                       "<geom type='cylinder' size='.1 .01' mass='2'/></body></worldbody>"
                       "<actuator><motor joint='fan'/></actuator>"),
                  TB_SCHEME_STEWART_TRINKLE);
    const double u[7] = {1, 0, 0, 0, 0, 0, 0}, torque = 0.2;
    TEST_OK(tb_state_set_u(r.state, u, 7, &error), &error);
    TEST_OK(tb_state_set_control(r.state, 0, torque, &error), &error);
    go(&r, 200);
    /* the sled: v = 1 - mu g t for 0.1 s, slowed to half; its loss is m (v0^2 - v1^2) / 2 */
    TEST_NEAR(tb_state_u(r.state)[0], 0.5, 1e-9);
    TEST_NEAR(r.sum.energy_friction, -0.5 * (1 - 0.25), 1e-9);
    const double omega = tb_state_u(r.state)[6], angle = tb_state_q(r.state)[7];
    const double kinetic = 0.5 * (0.5 * 2 * 0.01) * omega * omega;
    TEST_NEAR(r.sum.energy_motors, torque * angle, 1e-2 * torque * angle);
    TEST_NEAR(r.sum.energy_motors + r.sum.energy_damping, kinetic, 1e-9);
    ck_assert(r.sum.energy_damping < -1e-3);
    TEST_NEAR(r.sum.energy_unexplained, 0, 1e-8);
    TEST_NEAR(r.sum.energy_change,
              r.sum.energy_friction + r.sum.energy_motors + r.sum.energy_damping +
                  r.sum.energy_applied + r.sum.energy_recovery + r.sum.energy_unexplained,
              1e-12);
    end(&r);
}
END_TEST

enum { MOST_NUMBERS = 32, ROUNDED_STEPS = 10 };

/* Coordinates and velocities of a world with one of everything, in overlaps that contradict each
 * other, after a few steps. Before each step every coordinate moves by a last bit or not at all, as
 * the seed says; 0: none. */
static void step_rounded(tb_stepper *stepper, tb_model *model, uint32_t seed,
                         double q[MOST_NUMBERS], double u[MOST_NUMBERS])
{
    const tb_model_counts n = tb_model_count(model);
    const uint32_t first = seed;
    tb_state *state;
    tb_certificate certificate;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    memcpy(q, tb_state_q(state), (size_t)n.coordinates * sizeof *q);
    /* where the scene is written, shapes touch by whole faces, and a last bit is a contact */
    for (int32_t i = 0; i < n.coordinates; i++) q[i] += 0.01 * sin(1 + i * i);
    for (int32_t i = 0; i < n.dofs; i++) u[i] = 0.1 * (i % 3);
    TEST_OK(tb_state_set_u(state, u, n.dofs, &error), &error);
    for (int step = 0; step < ROUNDED_STEPS; step++) {
        for (int32_t i = 0; first > 0 && i < n.coordinates; i++) {
            seed = seed * 1664525 + 1013904223;
            const uint32_t way = (seed >> 16) % 3;
            if (way > 0) q[i] = nextafter(q[i], way == 1 ? INFINITY : -INFINITY);
        }
        TEST_OK(tb_state_set_q(state, q, n.coordinates, &error), &error);
        TEST_OK(tb_step(stepper, state, 1, &certificate, &error), &error);
        ck_assert_int_eq(certificate.status, TB_OK);
        memcpy(q, tb_state_q(state), (size_t)n.coordinates * sizeof *q);
    }
    memcpy(u, tb_state_u(state), (size_t)n.dofs * sizeof *u);
    tb_state_destroy(state);
}

/* A double pendulum whose speed a step of 20 ms cannot follow gains energy by its discretization:
 * the step ends DIVERGED whether or not energies are reported. A slower one stays OK. */
#define SPUN(u0, u1)                                                                               \
    MJCF("<option timestep='.02'/><worldbody><body><joint axis='0 1 0'/><geom type='capsule' "     \
         "fromto='0 0 0 .4 0 0' size='.03'/><body pos='.4 0 0'><joint axis='0 1 0'/><geom "        \
         "type='capsule' fromto='0 0 0 .4 0 0' size='.03'/></body></body></worldbody><contact>"    \
         "</contact><keyframe><key qvel='" u0 " " u1 "'/></keyframe>")

static tb_status spin(const char *text, bool report, int64_t *steps)
{
    mjcf_case scene = mjcf_load(text);
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate certificate;
    tb_step_options options = tb_step_defaults();
    options.report_energy = report;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(scene.model, &state, &error), &error);
    TEST_OK(tb_state_reset(state, 0, &error), &error);
    tb_status status = TB_OK;
    for (int i = 0; i < 100 && status == TB_OK; i++)
        status = tb_step(stepper, state, 1, &certificate, &error);
    *steps = tb_state_steps(state);
    if (status == TB_DIVERGED) ck_assert_ptr_nonnull(strstr(error.message, "nothing explains"));
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&scene);
    return status;
}

START_TEST(energy_that_nothing_explains_is_found_without_being_asked)
{
    int64_t asked = 0, unasked = 0;
    ck_assert_int_eq(spin(SPUN("60", "-120"), true, &asked), TB_DIVERGED);
    ck_assert_int_eq(spin(SPUN("60", "-120"), false, &unasked), TB_DIVERGED);
    ck_assert_int_eq(asked, unasked);
    ck_assert_int_eq(spin(SPUN("1", "-2"), false, &unasked), TB_OK);
}
END_TEST

/* Energy changes by a step's discretization and recovery are not DIVERGED: the armature of a tendon
 * whose direction turns; recovery along a rail that spins, which changes the mass matrix; the
 * spring of a tendon that becomes slack within a step. */
START_TEST(errors_of_a_step_are_told_from_energy_out_of_nothing)
{
    int64_t steps = 0;
    ck_assert_int_eq(
        spin(MJCF("<worldbody><site name='a' pos='1 0 1'/><body><joint type='slide' axis='0 0 1'/>"
                  "<joint axis='0 1 0'/><geom type='box' size='.1 .1 .1' mass='1' pos='1 0 0'/>"
                  "<site name='b'/></body></worldbody><tendon><spatial armature='579'><site "
                  "site='a'/><site site='b'/></spatial></tendon><keyframe><key qpos='1.2345 "
                  "1.2345' qvel='1.2345 1.2345'/></keyframe>"),
             true, &steps),
        TB_OK);
    ck_assert_int_eq(
        spin(MJCF("<worldbody><body><joint axis='0 0 1'/><geom size='.02' mass='.1'/><body><joint "
                  "type='slide' axis='1 0 0' range='.7 1' limited='true'/><geom size='.05' "
                  "mass='1'/></body></body></worldbody><keyframe><key qpos='0 .4' qvel='5 0'/>"
                  "</keyframe>"),
             true, &steps),
        TB_OK);
    ck_assert_int_eq(
        spin(
            MJCF("<option gravity='0 0 0'/><worldbody><site name='a'/><body><joint type='slide' "
                 "axis='1 0 0'/><geom size='.02' mass='1'/><site name='b'/></body></worldbody>"
                 "<tendon><spatial stiffness='10' springlength='0 .5'><site site='a'/><site "
                 "site='b'/></spatial></tendon><keyframe><key qpos='.5053' qvel='-2'/></keyframe>"),
            true, &steps),
        TB_OK);
}
END_TEST

/* A stack that three sweeps of over-relaxed Jacobi leave far from solved: their impulses would make
 * 1e27 J. The step's answer takes energy instead, misses its tolerance and says so. */
START_TEST(an_answer_that_misses_its_tolerance_makes_no_energy)
{
    mjcf_case scene = mjcf_load(
        MJCF("<option timestep='.005'/><default><geom type='box' size='.1 .1 .1' friction='.8'/>"
             "</default><worldbody><geom type='plane' size='1 1 1'/>"
             "<body pos='0 0 .1'><freejoint/><geom mass='1'/></body>"
             "<body pos='.02 0 .3'><freejoint/><geom mass='10'/></body>"
             "<body pos='0 .02 .5'><freejoint/><geom mass='100'/></body></worldbody>"));
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate certificate;
    tb_step_options options = tb_step_defaults();
    options.report_energy = true;
    options.solve.solver = "jor";
    options.solve.omega = 1.99;
    options.solve.maximum_iterations = 3;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(scene.model, &state, &error), &error);
    for (int i = 0; i < 200; i++) {
        TEST_OK(tb_step(stepper, state, 1, &certificate, &error), &error);
        if (i == 0) ck_assert_int_eq(certificate.status, TB_NOT_CONVERGED);
        ck_assert_msg(certificate.energy_friction <= 1e-9, "step %d: %g J", i,
                      certificate.energy_friction);
        ck_assert(certificate.penetration < 0.02);
    }
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&scene);
}
END_TEST

/* A box that begins 85 mm deep in the uppermost of three that stand on each other comes out, and the
 * three hold it: their faces, which cross at 20 degrees, keep their contacts while they lean. */
START_TEST(a_tower_holds_a_box_that_comes_out_of_it)
{
    static const char *const SHAPES[] = {"type='box' size='.1 .1 .1'", "type='mesh' mesh='cube'"};
    for (int i = 0; i < 2; i++) {
        char text[1200], body[4][160];
        for (int k = 0; k < 4; k++)
            snprintf(body[k], sizeof body[k],
                     "<body pos='0 0 %g' euler='%d %d %d'><freejoint/><geom %s/></body>",
                     k < 3 ? 0.1 + 0.2 * k : 0.66, k < 3 ? 0 : 10, k < 3 ? 0 : 20,
                     k < 3 ? 20 * k : 30, SHAPES[i]);
        snprintf(
            text, sizeof text,
            MJCF("<asset><mesh name='cube' vertex='-.1 -.1 -.1 .1 -.1 -.1 -.1 .1 -.1 .1 .1 -.1 "
                 "-.1 -.1 .1 .1 -.1 .1 -.1 .1 .1 .1 .1 .1'/></asset><worldbody>"
                 "<geom type='plane' size='1 1 1'/>%s%s%s%s</worldbody>"),
            body[0], body[1], body[2], body[3]);
        run r = begin(text, TB_SCHEME_STEWART_TRINKLE);
        for (int k = 0; k < 200; k++) {
            go(&r, 1);
            ck_assert_int_eq(r.last.status, TB_OK);
            for (int b = 0; b < 3; b++)
                TEST_NEAR(tb_state_q(r.state)[7 * b + 2], 0.1 + 0.2 * b, 2e-3);
        }
        TEST_NEAR(tb_state_q(r.state)[7 * 3 + 2], 0.7, 2e-3);
        end(&r);
    }
}
END_TEST

/* Processor and card differ by their sines and cosines. The recovery of a step has one answer,
 * and its solve goes to the step's tolerance. */
START_TEST(last_bits_of_coordinates_stay_last_bits)
{
    enum { SEEDS = 20 };
    double q0[MOST_NUMBERS], u0[MOST_NUMBERS], q[MOST_NUMBERS], u[MOST_NUMBERS];
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper;
    options.solve.solver = "newton";
    options.solve.tolerance = 3e-14; /* 1e-14 is below the rounding of a residual of these solves */
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene);
    const tb_model_counts n = tb_model_count(model);
    ck_assert_int_le(n.coordinates, MOST_NUMBERS);
    step_rounded(stepper, model, 0, q0, u0);
    double most_q = 0, most_u = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        step_rounded(stepper, model, seed, q, u);
        for (int32_t i = 0; i < n.coordinates; i++) most_q = fmax(most_q, fabs(q[i] - q0[i]));
        for (int32_t i = 0; i < n.dofs; i++) most_u = fmax(most_u, fabs(u[i] - u0[i]));
    }
    ck_assert_msg(most_q > 0 && most_q < 1e-12, "coordinates differ by %g", most_q);
    ck_assert_msg(most_u < 1e-11, "velocities differ by %g", most_u);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
    tb_stepper_destroy(stepper);
}
END_TEST

TEST_MAIN(a_tower_holds_a_box_that_comes_out_of_it,
          an_answer_that_misses_its_tolerance_makes_no_energy,
          errors_of_a_step_are_told_from_energy_out_of_nothing,
          energy_that_nothing_explains_is_found_without_being_asked,
          last_bits_of_coordinates_stay_last_bits, recovery_is_no_part_of_the_momentum,
          an_overlap_along_a_joint_bears_no_friction_and_is_named,
          gaps_that_contradict_each_other_leave_it_in_the_middle,
          a_limit_that_a_weld_violates_is_named,
          a_loop_that_misses_by_nanometers_costs_no_iterations, a_loop_out_of_reach_is_named,
          few_rows_and_many_are_recovered_alike, rows_and_dofs_recover_alike,
          many_rows_of_few_dofs_recover_alike, poses_at_the_end_of_a_step_are_those_of_its_state,
          the_certificate_tells_where_energy_comes_from)
