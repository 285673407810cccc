/* Warm sets: a step's whole start is in the state, so a restored, forked or interleaved world
 * continues with the same bytes; and warm starts save work, which the certificate shows. */
#include "step/step.h"
#include "test_util.h"

/* A jaw closes around a block on the floor, lifts it, and is pulled at. */
static const char JAW[] =
    "<mujoco><compiler autolimits='true'/><option timestep='0.002'/>"
    "<default><geom friction='0.6 0 0' condim='3'/></default><worldbody>"
    "<geom type='plane' size='1 1 1'/>"
    "<body name='block' pos='0 0 0.03'><freejoint/><geom type='box' size='0.02 0.02 0.03' "
    "mass='0.3'/>"
    "</body>"
    "<body pos='0 0 0.04'><joint name='lift' type='slide' axis='0 0 1' armature='0.5'/>"
    "<geom type='box' size='0.05 0.01 0.01' pos='0 0 0.06' mass='0.5' contype='0' conaffinity='0'/>"
    "<body pos='-0.04 0 0'><joint name='left' type='slide' axis='1 0 0' damping='80'/>"
    "<geom type='box' size='0.005 0.01 0.02' mass='0.05'/></body>"
    "<body pos='0.04 0 0'><joint name='right' type='slide' axis='-1 0 0' damping='80'/>"
    "<geom type='box' size='0.005 0.01 0.02' mass='0.05'/></body></body></worldbody>"
    "<actuator><position name='lift' joint='lift' kp='3000' kv='150' forcerange='-60 60'/>"
    "<motor joint='left'/><motor joint='right'/></actuator></mujoco>";

enum { STEPS = 600, MIDDLE = 330 };

static tb_model *model_of(const char *text)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "scene.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static tb_model *jaw(void)
{
    return model_of(JAW);
}

static tb_stepper *stepper_of(const char *solver, double tolerance, tb_precision precision,
                              bool warm)
{
    tb_error error = {0};
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.precision = precision;
    options.solve.solver = solver;
    options.solve.tolerance = tolerance;
    options.solve.maximum_iterations = 2000;
    options.solve.warm_start = warm;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

static tb_state *new_state(const tb_model *model)
{
    tb_error error = {0};
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

/* One step of the trajectory, `shift` steps into it: close, lift, a pull to and fro. */
static void play(tb_stepper *stepper, tb_state *state, int shift, tb_certificate *sum)
{
    tb_error error = {0};
    tb_certificate c;
    const double time = 2e-3 * (double)(tb_state_steps(state) + shift);
    const double controls[3] = {0.1 * fmin(fmax((time - 0.3) / 0.4, 0), 1), 15, 15};
    const double pull[6] = {0, time > 0.6 && time < 0.8 ? 3 * sin(80 * time) : 0, 0, 0, 0, 0};
    TEST_OK(tb_state_set_controls(state, controls, 3, &error), &error);
    TEST_OK(tb_state_set_body_wrench(
                state, tb_model_find(tb_state_model(state), TB_HANDLE_BODY, "block"), pull, &error),
            &error);
    TEST_OK(tb_step(stepper, state, 1, &c, &error), &error);
    if (sum) tb_certificate_merge(sum, &c);
}

static const struct {
    const char *solver;
    double tolerance;
    tb_precision precision;
} WAYS[] = {{"newton", 1e-8, TB_DOUBLE},
            {"auto", 1e-8, TB_DOUBLE},
            {"auto", 1e-6, TB_DOUBLE},
            {"auto", 1e-4, TB_FLOAT}};

START_TEST(what_was_restored_or_forked_goes_on_with_the_same_bytes)
{
    tb_error error = {0};
    tb_model *model = jaw();
    for (size_t w = 0; w < sizeof WAYS / sizeof WAYS[0]; w++) {
        tb_stepper *stepper =
            stepper_of(WAYS[w].solver, WAYS[w].tolerance, WAYS[w].precision, true);
        tb_stepper *other = stepper_of(WAYS[w].solver, WAYS[w].tolerance, WAYS[w].precision, true);
        tb_state *state = new_state(model), *restored = new_state(model), *fork = NULL;
        for (int i = 0; i < 100; i++) play(other, restored, 200, NULL); /* a history of its own */
        for (int i = 0; i < MIDDLE; i++) play(stepper, state, 0, NULL);
        unsigned char *bytes = NULL;
        size_t size = 0;
        TEST_OK(tb_state_snapshot(state, &bytes, &size, &error), &error);
        TEST_OK(tb_state_fork(state, &fork, &error), &error);
        TEST_OK(tb_state_restore(restored, bytes, size, &error), &error);
        tb_bytes_destroy(bytes);
        for (int i = MIDDLE; i < STEPS; i++) {
            play(stepper, state, 0, NULL);
            play(other, restored, 0, NULL);
            play(other, fork, 0, NULL);
            ck_assert(tb_state_hash(state) == tb_state_hash(restored));
            ck_assert(tb_state_hash(state) == tb_state_hash(fork));
        }
        tb_state_destroy(state);
        tb_state_destroy(restored);
        tb_state_destroy(fork);
        tb_stepper_destroy(stepper);
        tb_stepper_destroy(other);
    }
    tb_model_destroy(model);
}
END_TEST

START_TEST(interleaved_sessions_are_as_if_alone)
{
    tb_model *model = jaw();
    for (size_t w = 0; w < sizeof WAYS / sizeof WAYS[0]; w++) {
        tb_stepper *stepper =
            stepper_of(WAYS[w].solver, WAYS[w].tolerance, WAYS[w].precision, true);
        tb_state *states[4];
        for (int s = 0; s < 4; s++) states[s] = new_state(model);
        for (int i = 0; i < STEPS; i++) {
            play(stepper, states[0], 0, NULL);
            play(stepper, states[1], 120, NULL);
        }
        for (int s = 2; s < 4; s++)
            for (int i = 0; i < STEPS; i++) play(stepper, states[s], s == 2 ? 0 : 120, NULL);
        ck_assert(tb_state_hash(states[0]) == tb_state_hash(states[2]));
        ck_assert(tb_state_hash(states[1]) == tb_state_hash(states[3]));
        ck_assert(tb_state_hash(states[0]) != tb_state_hash(states[1]));
        for (int s = 0; s < 4; s++) tb_state_destroy(states[s]);
        tb_stepper_destroy(stepper);
    }
    tb_model_destroy(model);
}
END_TEST

START_TEST(certificates_tell_what_was_warm)
{
    tb_model *model = jaw();
    tb_certificate sums[2];
    for (int warm = 0; warm < 2; warm++) {
        tb_stepper *stepper = stepper_of("newton", 1e-8, TB_DOUBLE, warm);
        tb_state *state = new_state(model);
        memset(&sums[warm], 0, sizeof sums[warm]);
        for (int i = 0; i < STEPS; i++) play(stepper, state, 0, &sums[warm]);
        ck_assert_msg(sums[warm].status == TB_OK, "%g", sums[warm].residual);
        tb_state_destroy(state);
        tb_stepper_destroy(stepper);
    }
    const tb_certificate *cold = &sums[0], *c = &sums[1];
    printf("a step: linear solves %.2f warm, %.2f cold, factorizations %.2f and %.2f; %lld resets; "
           "statuses kept %.4f\n",
           (double)c->linear_solves / STEPS, (double)cold->linear_solves / STEPS,
           (double)c->factorizations / STEPS, (double)cold->factorizations / STEPS,
           (long long)c->resets, (double)c->kept_statuses / (double)c->known_statuses);
    ck_assert_int_eq(cold->known_statuses, 0);
    ck_assert(c->known_statuses > 4 * STEPS && c->kept_statuses <= c->known_statuses);
    ck_assert((double)c->kept_statuses > 0.95 * (double)c->known_statuses);
    ck_assert(3 * c->factorizations < 2 * c->linear_solves && c->linear_solves < 2 * STEPS);
    ck_assert(3 * c->linear_solves < 2 * cold->linear_solves);
    ck_assert(c->resets < STEPS / 50);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_reset_forgets)
{
    tb_error error = {0};
    tb_model *model = jaw();
    tb_stepper *stepper = stepper_of("auto", 1e-8, TB_DOUBLE, true);
    tb_state *used = new_state(model), *fresh = new_state(model);
    for (int i = 0; i < 200; i++) play(stepper, used, 300, NULL);
    TEST_OK(tb_state_reset(used, -1, &error), &error);
    for (int i = 0; i < 200; i++) {
        play(stepper, used, 0, NULL);
        play(stepper, fresh, 0, NULL);
    }
    ck_assert(tb_state_hash(used) == tb_state_hash(fresh));
    tb_state_destroy(used);
    tb_state_destroy(fresh);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

/* Six boxes on each other: rounding of a float's impulses gives a residual of about 1e-6. */
#define BOX(z)                                                                                     \
    "<body pos='0 0 " z "'><freejoint/><geom type='box' size='0.05 0.05 0.05' mass='1'/></body>"
static const char PILE[] =
    "<mujoco><option timestep='0.001'/><default><geom friction='0.7 0 0' condim='3'/></default>"
    "<worldbody><geom type='plane' size='1 1 1'/>" BOX("0.05") BOX("0.15") BOX("0.25") BOX("0.35")
        BOX("0.45") BOX("0.55") "</worldbody></mujoco>";

START_TEST(a_pile_in_float_stands_for_most_of_its_steps)
{
    tb_error error = {0};
    tb_model *model = model_of(PILE);
    tb_stepper *stepper = stepper_of("auto", 1e-6, TB_FLOAT, true);
    tb_state *state = new_state(model);
    tb_certificate c;
    int stood = 0;
    int64_t solves = 0;
    for (int i = 0; i < 400; i++) {
        TEST_OK(tb_step(stepper, state, 1, &c, &error), &error);
        ck_assert(c.status == TB_OK && c.residual <= 1e-6);
        if (i < 200) continue;
        stood += c.iterations == 0;
        solves += c.linear_solves;
    }
    ck_assert_msg(stood > 120 && solves < 100, "stood %d of 200, %d solves", stood, (int)solves);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

/* A body of 0.1 g on the floor carries one of 1000 kg, on which another one swings up and down: the
 * impulses of the floor follow so slowly that Newton's proximal pull is in their way, and a world
 * remembers how weak it has to be. */
static const char SWINGING_LOAD[] =
    "<mujoco><worldbody><geom type='plane' size='1 1 .1'/><body pos='0 0 .05'><freejoint/>"
    "<geom type='box' size='.2 .2 .05' mass='1e-4'/></body><body pos='0 0 .2'>"
    "<joint type='slide' axis='0 0 1'/><joint type='slide' axis='1 0 0' stiffness='1e3'/>"
    "<geom type='box' size='.2 .2 .1' mass='1e3'/><body pos='0 0 .5'>"
    "<joint type='slide' axis='0 0 1' stiffness='1e5' springref='.05'/>"
    "<geom type='box' size='.1 .1 .1' mass='300' contype='0' conaffinity='0'/></body></body>"
    "</worldbody></mujoco>";

START_TEST(the_pull_that_slow_motions_need_is_remembered)
{
    tb_error error = {0};
    tb_certificate c;
    enum { SWING = 200 };
    tb_model *model = model_of(SWINGING_LOAD);
    tb_stepper *stepper = stepper_of("auto", 1e-6, TB_DOUBLE, true);
    tb_state *state = new_state(model);
    int64_t solves = 0, factorizations = 0;
    for (int i = 0; i < SWING; i++) {
        TEST_OK(tb_step(stepper, state, 1, &c, &error), &error);
        ck_assert(c.status == TB_OK && c.residual <= 1e-6);
        solves += c.linear_solves;
        factorizations += c.factorizations;
    }
    ck_assert_msg(solves < 4 * SWING && 2 * factorizations < 5 * SWING,
                  "%d solves, %d factorizations", (int)solves, (int)factorizations);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

/* A disabled equality has no rows, and closing the loops drops the blocks of all others: what a step
 * learns is kept all the same. */
START_TEST(a_world_of_disabled_equalities_remembers_its_solves)
{
    tb_error error = {0};
    tb_certificate c;
    tb_model *model = model_of(
        "<mujoco><worldbody><body name='a'><joint name='j' range='-1 1' frictionloss='.1'/><geom "
        "size='.1'/></body><body name='b' pos='1 0 0'><joint name='k' damping='1'/><geom "
        "size='.1'/></body></worldbody><equality><joint joint1='j' joint2='k' active='false'/>"
        "</equality></mujoco>");
    tb_stepper *stepper = stepper_of("auto", 1e-6, TB_DOUBLE, true);
    tb_state *state = new_state(model);
    for (int i = 0; i < 3; i++) TEST_OK(tb_step(stepper, state, 1, &c, &error), &error);
    ck_assert_int_gt(c.rows, 0);
    tb_solve_history history;
    memcpy(&history, state->history, sizeof history);
    ck_assert(history.price > 0 && history.sweeps > 0);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

/* Contacts whose features all have other names since the last step, as those of hulls that overlap do, start from the
 * forces of the nearest contacts of that step: a world that holds a block goes on with the same bytes. */
START_TEST(contacts_with_new_features_start_from_the_nearest_forces)
{
    tb_model *model = jaw();
    for (size_t w = 0; w < sizeof WAYS / sizeof WAYS[0]; w++) {
        tb_stepper *stepper =
            stepper_of(WAYS[w].solver, WAYS[w].tolerance, WAYS[w].precision, true);
        tb_state *states[2];
        for (int s = 0; s < 2; s++) {
            states[s] = new_state(model);
            for (int i = 0; i < MIDDLE; i++) play(stepper, states[s], 0, NULL);
        }
        ck_assert_int_gt(states[1]->number_of_contacts, 3);
        for (int32_t i = 0; i < states[1]->number_of_contacts; i++)
            states[1]->contacts[i].feature ^= 0x15555555ull << 32;
        ck_assert(tb_state_hash(states[0]) != tb_state_hash(states[1]));
        for (int s = 0; s < 2; s++) play(stepper, states[s], 0, NULL);
        ck_assert(tb_state_hash(states[0]) == tb_state_hash(states[1]));
        for (int s = 0; s < 2; s++) tb_state_destroy(states[s]);
        tb_stepper_destroy(stepper);
    }
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(what_was_restored_or_forked_goes_on_with_the_same_bytes,
          interleaved_sessions_are_as_if_alone, certificates_tell_what_was_warm, a_reset_forgets,
          a_pile_in_float_stands_for_most_of_its_steps,
          the_pull_that_slow_motions_need_is_remembered,
          a_world_of_disabled_equalities_remembers_its_solves,
          contacts_with_new_features_start_from_the_nearest_forces)
