/* Sleep: islands at rest fall asleep, cost no rows, keep every bit, and wake by what pushes them. */
#include <math.h>

#include "model/mjcf_util.h"
#include "model_util.h"

static tb_error error;

#define OPTION "<option timestep='.002'><flag sleep='enable'/></option>"
#define FLOOR  "<geom name='floor' type='plane' size='5 5 1'/>"
#define BOX(name, x, z)                                                                            \
    "<body name='" name "' pos='" x " 0 " z "'><freejoint/>"                                       \
    "<geom name='" name "' type='box' size='.05 .05 .05' mass='1'/></body>"
/* two boxes on each other, and one beside them */
#define STACK                                                                                      \
    MJCF(OPTION "<worldbody>" FLOOR BOX("low", "0", ".05") BOX("high", "0", ".15")                 \
             BOX("beside", "1", ".05") "</worldbody>")

typedef struct run {
    mjcf_case scene;
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate last;
} run;

static run begin_with(const char *text, tb_precision precision)
{
    run r = {.scene = mjcf_load(text)};
    tb_step_options options = tb_step_defaults();
    options.precision = precision;
    options.report_energy = true;
    TEST_OK(tb_stepper_create(&options, &r.stepper, &error), &error);
    TEST_OK(tb_state_create(r.scene.model, &r.state, &error), &error);
    return r;
}

static run begin(const char *text)
{
    return begin_with(text, TB_DOUBLE);
}

static void go(run *r, int steps)
{
    for (int i = 0; i < steps; i++) {
        TEST_OK(tb_step(r->stepper, r->state, 1, &r->last, &error), &error);
        ck_assert_int_eq(r->last.status, TB_OK);
        ck_assert(r->last.residual <= tb_step_defaults().solve.tolerance);
    }
}

static void end(run *r)
{
    tb_state_destroy(r->state);
    tb_stepper_destroy(r->stepper);
    mjcf_free(&r->scene);
}

static void expect_asleep(const run *r, int trees)
{
    ck_assert_int_eq(r->last.asleep, trees);
}

/* All boxes of the stack asleep. */
static run sleeping_stack(void)
{
    run r = begin(STACK);
    go(&r, 60);
    expect_asleep(&r, 3);
    return r;
}

/* Coordinates, contacts and impulses stay to the last bit, the energy too, and no row is left. */
START_TEST(what_rests_falls_asleep_and_keeps_every_bit)
{
    for (int precision = 0; precision < 2; precision++) {
        run r = begin_with(STACK, precision ? TB_FLOAT : TB_DOUBLE);
        int steps = 0;
        for (; r.last.asleep < 3 && steps < 100; steps++) go(&r, 1);
        ck_assert_int_lt(steps, 100);
        ck_assert_int_ge(steps, 10);
        go(&r, 1);
        const int32_t contacts = tb_state_number_of_contacts(r.state);
        const double energy = r.last.energy;
        double q[21];
        tb_contact_info before, after;
        ck_assert_int_eq(tb_state_contact(r.state, 0, &before), TB_OK);
        memcpy(q, tb_state_q(r.state), sizeof q);
        ck_assert_int_ge(contacts, 12);
        for (int i = 0; i < 20; i++) {
            go(&r, 1);
            expect_asleep(&r, 3);
            ck_assert_int_eq(r.last.rows, 0);
            ck_assert_int_eq(r.last.contacts, contacts);
            ck_assert(r.last.energy == energy && r.last.energy_change == 0);
        }
        ck_assert_int_eq(memcmp(q, tb_state_q(r.state), sizeof q), 0);
        for (int i = 0; i < 18; i++) ck_assert(tb_state_u(r.state)[i] == 0);
        ck_assert_int_eq(tb_state_contact(r.state, 0, &after), TB_OK);
        ck_assert_int_eq(memcmp(&before, &after, sizeof after), 0);
        TEST_NEAR(tb_state_time(r.state), 0.002 * (steps + 21), 1e-7);
        end(&r);
    }
}
END_TEST

/* The weight on the floor is borne by the impulses that the contacts keep. */
START_TEST(impulses_of_what_sleeps_bear_its_weight)
{
    run r = sleeping_stack();
    double sum = 0;
    for (int32_t i = 0; i < tb_state_number_of_contacts(r.state); i++) {
        tb_contact_info c;
        ck_assert_int_eq(tb_state_contact(r.state, i, &c), TB_OK);
        if (c.shape_a == 0) sum += c.impulse[0];
    }
    TEST_NEAR(sum, 3 * 9.81 * 0.002, 1e-6);
    end(&r);
}
END_TEST

/* A force on the lower box wakes the island of both, and not the box beside. */
START_TEST(a_force_wakes_the_island_that_it_pushes)
{
    run r = sleeping_stack(),
        awake = begin(MJCF("<option timestep='.002'/><worldbody>" FLOOR BOX("low", "0", ".05")
                               BOX("high", "0", ".15") BOX("beside", "1", ".05") "</worldbody>"));
    go(&awake, 60);
    const double wrench[6] = {30, 0, 0, 0, 0, 0};
    TEST_OK(tb_state_set_body_wrench(r.state, 1, wrench, &error), &error);
    TEST_OK(tb_state_set_body_wrench(awake.state, 1, wrench, &error), &error);
    go(&r, 1);
    expect_asleep(&r, 1);
    ck_assert_int_gt(r.last.rows, 0);
    go(&r, 99);
    go(&awake, 100);
    for (int i = 0; i < 21; i++)
        TEST_NEAR(tb_state_q(r.state)[i], tb_state_q(awake.state)[i], 1e-6);
    ck_assert(tb_state_q(r.state)[0] > 0.01);
    end(&r);
    end(&awake);
}
END_TEST

/* A setter of coordinates, velocities or controls wakes too, whatever it sets. */
START_TEST(setters_wake)
{
    run r = sleeping_stack();
    double u[18] = {0}, q[21];
    u[12] = 0.5;
    TEST_OK(tb_state_set_u(r.state, u, 18, &error), &error);
    go(&r, 1);
    expect_asleep(&r, 2);
    go(&r, 200);
    expect_asleep(&r, 3);
    ck_assert(tb_state_q(r.state)[14] > 1.005);
    memcpy(q, tb_state_q(r.state), sizeof q);
    q[2] += 1e-3, q[9] += 1e-3;
    TEST_OK(tb_state_set_q(r.state, q, 21, &error), &error);
    go(&r, 1);
    expect_asleep(&r, 1);
    end(&r);

    run hinge = begin(MJCF(OPTION "<worldbody><body><joint name='j' axis='0 0 1'/><geom size='.1'/>"
                                  "</body></worldbody><actuator><motor joint='j'/></actuator>"));
    go(&hinge, 20);
    expect_asleep(&hinge, 1);
    const double control = 1;
    TEST_OK(tb_state_set_controls(hinge.state, &control, 1, &error), &error);
    go(&hinge, 1);
    expect_asleep(&hinge, 0);
    ck_assert(tb_state_u(hinge.state)[0] > 0);
    end(&hinge);
}
END_TEST

/* A ball that falls on the stack wakes it before it touches; the box beside sleeps on. */
START_TEST(a_body_that_comes_wakes_what_it_meets)
{
    run r = begin(MJCF(OPTION "<worldbody>" FLOOR BOX("low", "0", ".05") BOX("high", "0", ".15")
                           BOX("beside", "1", ".05") "<body pos='0 0 .5'><freejoint/>"
                                                     "<geom size='.05' mass='1'/></body>"
                                                     "</worldbody>"));
    go(&r, 60);
    expect_asleep(&r, 3);
    bool woke = false;
    for (int i = 0; i < 400; i++) {
        go(&r, 1);
        woke = woke || r.last.asleep == 1;
        ck_assert(r.last.penetration < 1e-4);
        ck_assert_int_ge(r.last.asleep, 1);
    }
    ck_assert(woke);
    end(&r);
}
END_TEST

/* A box on a kinematic body moves with it, and falls when the body goes away. */
START_TEST(a_kinematic_body_wakes_what_it_bears)
{
    run r = begin(MJCF(
        OPTION "<worldbody><body name='plate' mocap='true'>"
               "<geom type='box' size='.5 .5 .05'/></body>" BOX("box", "0", ".1") "</worldbody>"));
    go(&r, 60);
    expect_asleep(&r, 1);
    const double up[3] = {0, 0, 0.1}, none[3] = {0}, start[3] = {0, 0, 0}, away[3] = {3, 0, 0};
    const double straight[4] = {1, 0, 0, 0};
    TEST_OK(tb_state_set_kinematic(r.state, 1, start, straight, up, none, &error), &error);
    go(&r, 50);
    expect_asleep(&r, 0);
    TEST_NEAR(tb_state_q(r.state)[2], 0.11, 1e-4);
    TEST_OK(tb_state_set_kinematic(r.state, 1, start, straight, none, none, &error), &error);
    go(&r, 100);
    expect_asleep(&r, 1);
    TEST_OK(tb_state_set_kinematic(r.state, 1, away, straight, none, none, &error), &error);
    go(&r, 50);
    expect_asleep(&r, 0);
    ck_assert(tb_state_q(r.state)[2] < 0.07);
    end(&r);
}
END_TEST

/* A body that begins asleep hangs in the air until something comes; a reset puts it back. */
START_TEST(a_body_may_begin_asleep)
{
    run r =
        begin(MJCF(OPTION "<worldbody>" FLOOR
                          "<body pos='0 0 .5' sleep='init'><freejoint/><geom size='.05'/></body>"
                          "<body pos='0 0 1'><freejoint/><geom size='.05'/></body>"
                          "</worldbody>"));
    for (int round = 0; round < 2; round++) {
        go(&r, 100);
        expect_asleep(&r, 1);
        ck_assert(tb_state_q(r.state)[2] == 0.5);
        go(&r, 200);
        ck_assert(tb_state_q(r.state)[2] < 0.5);
        TEST_OK(tb_state_reset(r.state, -1, &error), &error);
    }
    end(&r);
}
END_TEST

/* Trees that an equality couples sleep and wake together; one that pulls at a kinematic body, or
 * that an activation moves, never sleeps. */
START_TEST(coupled_trees_sleep_together)
{
    run r = begin(MJCF(
        OPTION "<worldbody>" FLOOR BOX("a", "0", ".05") BOX("b", "1", ".05") BOX("c", "2", ".05")
            BOX("d", "3",
                ".05") "<body name='m' mocap='true' pos='2 0 .05'/></worldbody>"
                       "<equality><weld body1='a' body2='b'/><weld body1='c' body2='m'/>"
                       "</equality><actuator><general site='s' dyntype='integrator'/>"
                       "</actuator>"
                       "<worldbody><body name='e' pos='4 0 .05'><freejoint/><site name='s'/>"
                       "<geom size='.05'/></body></worldbody>"));
    go(&r, 80);
    expect_asleep(&r, 3);
    const double wrench[6] = {0, 0, 1, 0, 0, 0};
    TEST_OK(tb_state_set_body_wrench(r.state, 2, wrench, &error), &error);
    go(&r, 1);
    expect_asleep(&r, 1);
    end(&r);
}
END_TEST

/* Forks and snapshots continue as their source, asleep and through a wake. */
START_TEST(snapshots_and_forks_keep_sleep)
{
    run r = begin(MJCF(OPTION "<worldbody>" FLOOR BOX("low", "0", ".05") BOX(
        "high", "0", ".15") "<body pos='0 0 .5'><freejoint/><geom size='.05' mass='1'/></body>"
                            "</worldbody>"));
    go(&r, 60);
    expect_asleep(&r, 2);
    tb_state *fork = NULL, *restored = NULL;
    unsigned char *bytes = NULL;
    size_t size = 0;
    TEST_OK(tb_state_fork(r.state, &fork, &error), &error);
    TEST_OK(tb_state_snapshot(r.state, &bytes, &size, &error), &error);
    TEST_OK(tb_state_create(r.scene.model, &restored, &error), &error);
    TEST_OK(tb_state_restore(restored, bytes, size, &error), &error);
    go(&r, 200);
    TEST_OK(tb_step(r.stepper, fork, 200, NULL, &error), &error);
    TEST_OK(tb_step(r.stepper, restored, 200, NULL, &error), &error);
    ck_assert_uint_eq(tb_state_hash(fork), tb_state_hash(r.state));
    ck_assert_uint_eq(tb_state_hash(restored), tb_state_hash(r.state));
    tb_bytes_destroy(bytes);
    tb_state_destroy(fork);
    tb_state_destroy(restored);
    end(&r);
}
END_TEST

/* A ball between walls that are too close is at rest, but each step has to tell of its gaps. */
START_TEST(what_cannot_be_closed_stays_awake)
{
    run r = begin(
        MJCF("<option gravity='0 0 0'><flag sleep='enable'/></option><worldbody>"
             "<geom type='box' size='.1 1 1' pos='-.15 0 0'/>"
             "<geom type='box' size='.1 1 1' pos='.15 0 0'/>"
             "<body name='ball'><freejoint/><geom size='.0505' mass='1'/></body></worldbody>"));
    go(&r, 100);
    expect_asleep(&r, 0);
    ck_assert(r.last.flags & TB_CERTIFICATE_INFEASIBLE);
    end(&r);
}
END_TEST

/* Other parameters are another weight: what sleeps wakes. */
START_TEST(parameters_wake)
{
    run r = sleeping_stack();
    double masses[4] = {0, 2, 1, 1};
    const tb_parameters parameters = {.mass = masses};
    TEST_OK(tb_state_set_parameters(r.state, &parameters, &error), &error);
    go(&r, 1);
    expect_asleep(&r, 0);
    end(&r);
}
END_TEST

TEST_MAIN(what_rests_falls_asleep_and_keeps_every_bit, impulses_of_what_sleeps_bear_its_weight,
          a_force_wakes_the_island_that_it_pushes, setters_wake,
          a_body_that_comes_wakes_what_it_meets, a_kinematic_body_wakes_what_it_bears,
          a_body_may_begin_asleep, coupled_trees_sleep_together, snapshots_and_forks_keep_sleep,
          what_cannot_be_closed_stays_awake, parameters_wake)
