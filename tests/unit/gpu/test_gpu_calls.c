/* A call on a card: its requests to the runtime, and results that do not depend on how it was
 * split. The tests use the played card, which counts requests. */
#include <dlfcn.h>

#include "../../plugin/card/played.h"
#include "card_util.h"
#include "gpu/batch/choose.h"

static played_counts asked(void)
{
    char path[1024];
    played_counts counts;
    snprintf(path, sizeof path, "%s/tests/plugin/card.so", build_folder());
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(plugin);
    void (*tell)(played_counts *) = NULL;
    *(void **)&tell = dlsym(plugin, "played_tell");
    ck_assert(tell != NULL);
    tell(&counts);
    dlclose(plugin);
    return counts;
}

/* Resident worlds are stepped by sending a header and fetching it, nothing else. */
START_TEST(a_step_of_a_world_that_stays_asks_little_of_the_runtime)
{
    enum { CALLS = 20 };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = boxes();
    tb_state *state = state_of(model);
    tb_stepper *stays = resident_stepper(0);
    for (int i = 0; i < 30; i++) step(stays, state, 1);
    const played_counts before = asked();
    for (int i = 0; i < CALLS; i++) step(stays, state, 1);
    const played_counts after = asked();
    ck_assert_int_eq(after.launches - before.launches, CALLS);
    ck_assert_int_eq(after.copies - before.copies, 2 * CALLS);
    ck_assert_int_eq(after.waits - before.waits, CALLS);
    ck_assert_int_eq(after.events - before.events, 3 * CALLS); /* two marks, the time between */
    ck_assert_int_eq(after.allocations, before.allocations);
    ck_assert_int_le(after.others - before.others, 2 * CALLS); /* of any thread */
    destroy(state, stays, model);
}
END_TEST

/* Requests of a warm call of this many steps by a caller that may cancel, beside those that the first
 * test counts. */
static int64_t questions(tb_model *model, int steps)
{
    int left = INT32_MAX;
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_state *state = state_of(model);
    tb_step_options options = tb_step_defaults();
    options.backend = TB_BACKEND_GPU;
    options.resident = true;
    options.solve.cancelled = gives_up;
    options.solve.cancelled_context = &left;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    for (int i = 0; i < 3; i++) step(stepper, state, steps);
    const int64_t before = asked().questions;
    step(stepper, state, steps);
    const int64_t made = asked().questions - before;
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    return made;
}

/* One step cannot end early, and the pauses between questions are longer than a short launch. */
START_TEST(a_caller_is_not_asked_during_one_step)
{
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = boxes();
    ck_assert_int_eq(questions(model, 1), 0);
    ck_assert_int_ge(questions(model, 2), 1);
    tb_model_destroy(model);
}
END_TEST

static tb_model *ball_on_a_floor(void)
{
    static const double position[3] = {0, 0, 0.06}, size[3] = {0.05, 0, 0};
    const tb_handle none = {0};
    tb_scene *scene = floor_scene();
    place(scene, TB_SHAPE_SPHERE, position, size, none);
    return finish(scene);
}

/* Steps the worlds; true if the call made tables of models. */
static bool makes_tables(tb_stepper *stepper, tb_state *const *states, int32_t count)
{
    tb_error error = {0};
    const int64_t before = asked().tables;
    TEST_OK(tb_step_batch(stepper, states, count, 1, NULL, &error), &error);
    const int64_t made = asked().tables - before;
    ck_assert_int_ge(made, 0);
    ck_assert_int_le(made, 1);
    return made == 1;
}

/* Tables of small worlds stay in the arenas from call to call. The played card ends the process where a
 * launch uses tables that do not stand in the arena of each world. */
START_TEST(tables_of_a_model_are_made_once)
{
    enum { WORLDS = 40 };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_error error;
    tb_model *box = stack(1), *ball = ball_on_a_floor(), *pile = stack(3), *tower = stack(7);
    tb_state *states[WORLDS], *several = state_of(pile), *large = state_of(tower);
    for (int i = 0; i < WORLDS; i++) states[i] = state_of(i < 36 ? box : ball);
    tb_stepper *single = stepper_on(TB_BACKEND_GPU, TB_FLOAT), *merging = NULL;
    tb_step_options options = tb_step_defaults();
    options.backend = TB_BACKEND_GPU;
    options.precision = TB_FLOAT;
    options.contact_merge = 1e-3;
    TEST_OK(tb_stepper_create(&options, &merging, &error), &error);
    for (int i = 0; i < 3; i++) (void)makes_tables(single, states, WORLDS); /* capacities grow */
    ck_assert(!makes_tables(single, states, WORLDS));
    ck_assert(!makes_tables(single, states, 5)); /* the first of the same worlds */
    ck_assert(makes_tables(single, states, WORLDS));
    ck_assert(!makes_tables(single, states, WORLDS));
    tb_state *const last = states[WORLDS - 1];
    states[WORLDS - 1] = states[0], states[0] = last; /* another model in two slots */
    ck_assert(makes_tables(single, states, WORLDS));
    ck_assert(!makes_tables(single, states, WORLDS));
    ck_assert(makes_tables(merging, states, WORLDS)); /* other options */
    ck_assert(makes_tables(single, states, WORLDS));
    step(single, large, 1); /* the general kernels use the same arenas */
    ck_assert(makes_tables(single, states, WORLDS));
    ck_assert(makes_tables(single, &several,
                           1)); /* and so does the kernel of piles, with its own tables */
    ck_assert(!makes_tables(single, &several, 1));
    ck_assert(makes_tables(single, states, WORLDS));
    ck_assert_int_eq(setenv("TRIBO_TEST_FAIL", "1", 1), 0);
    TEST_STATUS(tb_step_batch(single, states, WORLDS, 1, NULL, &error), TB_INTERNAL, &error);
    ck_assert_int_eq(unsetenv("TRIBO_TEST_FAIL"), 0);
    ck_assert(makes_tables(single, states, WORLDS));
    ck_assert(!makes_tables(single, states, WORLDS));
    for (int i = 0; i < WORLDS; i++) tb_state_destroy(states[i]);
    tb_state_destroy(several);
    tb_state_destroy(large);
    tb_stepper_destroy(single);
    tb_stepper_destroy(merging);
    tb_model_destroy(box);
    tb_model_destroy(ball);
    tb_model_destroy(pile);
    tb_model_destroy(tower);
}
END_TEST

/* Launches of a call of twenty steps: kernels of steps and copies. */
static int64_t launches_of_steps(tb_stepper *stepper, tb_state *state)
{
    const int64_t before = asked().launches;
    step(stepper, state, 20);
    return asked().launches - before;
}

/* A pile with more contacts than its kernel has room for takes all its steps by the general kernels, in one
 * launch, until it has fewer. */
START_TEST(a_crowded_pile_asks_no_more_than_other_worlds)
{
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = stack(6), *tower = stack(7);
    tb_state *state = state_of(model), *large = state_of(tower);
    tb_stepper *single = stepper_on(TB_BACKEND_GPU, TB_FLOAT);
    turn_boxes(state);
    for (int i = 0; i < 2; i++) step(single, state, 1), step(single, large, 1);
    ck_assert_int_gt(tb_state_number_of_contacts(state), 32);
    const int64_t tables = asked().tables, launches = launches_of_steps(single, large);
    ck_assert_int_eq(launches_of_steps(single, state), launches);
    ck_assert_int_eq(asked().tables, tables);
    ck_assert_int_gt(tb_state_number_of_contacts(state), 32);
    tb_state_destroy(large);
    tb_model_destroy(tower);
    destroy(state, single, model);
}
END_TEST

/* A course of any number of steps makes the requests of a single step. */
START_TEST(a_course_asks_as_little_as_a_step)
{
    enum { STEPS = 25, CALLS = 10 };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = boxes();
    tb_error error;
    tb_state *state = state_of(model);
    tb_stepper *stays = resident_stepper(0);
    static double q[STEPS * 64];
    static tb_certificate certificates[STEPS];
    const tb_course course = {.steps = STEPS, .q = q, .certificates = certificates};
    ck_assert_int_le(tb_model_count(model).coordinates, 64);
    for (int i = 0; i < 3; i++)
        TEST_OK(tb_step_courses(stays, &state, &course, 1, NULL, &error), &error);
    const played_counts before = asked();
    for (int i = 0; i < CALLS; i++)
        TEST_OK(tb_step_courses(stays, &state, &course, 1, NULL, &error), &error);
    const played_counts after = asked();
    ck_assert_int_eq(after.launches - before.launches, CALLS);
    ck_assert_int_eq(after.copies - before.copies, 2 * CALLS);
    ck_assert_int_eq(after.waits - before.waits, CALLS);
    ck_assert_int_eq(after.allocations, before.allocations);
    ck_assert_int_eq(certificates[STEPS - 1].step, (3 + CALLS) * STEPS);
    destroy(state, stays, model);
}
END_TEST

/* A launch takes no more than 128 steps of a world that goes alone, and only their rows travel
 * with it. */
START_TEST(a_long_course_sends_each_row_once)
{
    enum { STEPS = 1280, LAUNCHES = 10 };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = boxes();
    tb_error error;
    const size_t row = (size_t)tb_model_count(model).coordinates;
    tb_state *there = state_of(model), *here = state_of(model);
    tb_stepper *stays = resident_stepper(0), *cpu = stepper_on(TB_BACKEND_CPU, TB_DOUBLE);
    double *q[2];
    for (int i = 0; i < 2; i++) ck_assert_ptr_nonnull(q[i] = calloc(STEPS * row, sizeof **q));
    step(stays, there, 2);
    step(cpu, here, 2);
    const uint64_t before = use_of(0).copied_bytes;
    const tb_course course = {.steps = STEPS, .q = q[0]}, same = {.steps = STEPS, .q = q[1]};
    TEST_OK(tb_step_courses(stays, &there, &course, 1, NULL, &error), &error);
    const double copied = (double)(use_of(0).copied_bytes - before);
    const double rows = STEPS * (double)row * sizeof **q;
    ck_assert_msg(copied < 1.5 * rows, "%g bytes for rows of %g", copied, rows);
    TEST_OK(tb_step_courses(cpu, &here, &same, 1, NULL, &error), &error);
    ck_assert_mem_eq(q[0], q[1], STEPS * row * sizeof **q);
    ck_assert_uint_eq(tb_state_hash(there), tb_state_hash(here));
    for (int i = 0; i < 2; i++) free(q[i]);
    tb_state_destroy(here);
    tb_stepper_destroy(cpu);
    destroy(there, stays, model);
}
END_TEST

/* A call that may be cancelled is asked before each launch, of at most 64 steps, and keeps the steps
 * made. */
START_TEST(a_caller_may_give_up_between_launches)
{
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = boxes();
    tb_error error;
    tb_state *there = state_of(model), *here = state_of(model);
    tb_stepper *stays = resident_stepper(0), *cpu = stepper_on(TB_BACKEND_CPU, TB_DOUBLE);
    int questions = 3;     /* that are answered with no */
    step(stays, there, 2); /* room has grown by then */
    tb_step_options options = tb_stepper_options(stays);
    options.solve.cancelled = gives_up;
    options.solve.cancelled_context = &questions;
    TEST_OK(tb_stepper_set_options(stays, &options, &error), &error);
    TEST_STATUS(tb_step(stays, there, 1000, NULL, &error), TB_CANCELLED, &error);
    ck_assert_int_eq(tb_state_steps(there), 2 + 3 * 64);
    step(cpu, here, 2 + 3 * 64);
    ck_assert_uint_eq(tb_state_hash(there), tb_state_hash(here));
    tb_state_destroy(here);
    tb_stepper_destroy(cpu);
    destroy(there, stays, model);
}
END_TEST

/* A caller that gives up while a launch is on its way ends it: each world ends the step that it makes
 * and has the processor's bytes, alone or side by side with others. */
START_TEST(a_caller_may_give_up_during_a_launch)
{
    enum { WORLDS = 3 };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = boxes();
    tb_error error;
    for (int32_t alone = WORLDS; alone >= 0; alone -= WORLDS) {
        tb_state *worlds[WORLDS], *here = NULL;
        tb_stepper *stays = resident_stepper(0), *cpu = stepper_on(TB_BACKEND_CPU, TB_DOUBLE);
        int questions = 1; /* before the launch */
        fix_schedule((tb_backend_schedule){.alone = alone, .overlap = 0});
        for (int i = 0; i < WORLDS; i++) worlds[i] = state_of(model);
        TEST_OK(tb_step_batch(stays, worlds, WORLDS, 2, NULL, &error), &error);
        tb_step_options options = tb_stepper_options(stays);
        options.solve.cancelled = gives_up;
        options.solve.cancelled_context = &questions;
        TEST_OK(tb_stepper_set_options(stays, &options, &error), &error);
        ck_assert_int_eq(setenv("TRIBO_TEST_STOP", "8", 1), 0);
        TEST_STATUS(tb_step_batch(stays, worlds, WORLDS, 60, NULL, &error), TB_CANCELLED, &error);
        ck_assert_int_eq(unsetenv("TRIBO_TEST_STOP"), 0);
        int64_t fewest = INT64_MAX, most = 0;
        for (int i = 0; i < WORLDS; i++) {
            const int64_t steps = tb_state_steps(worlds[i]);
            if (steps < fewest) fewest = steps;
            if (steps > most) most = steps;
            here = state_of(model);
            step(cpu, here, (int32_t)steps);
            ck_assert_uint_eq(tb_state_hash(worlds[i]), tb_state_hash(here));
            tb_state_destroy(here);
            tb_state_destroy(worlds[i]);
        }
        ck_assert(fewest > 2 && most > fewest && most < 62);
        tb_stepper_destroy(cpu);
        tb_stepper_destroy(stays);
    }
    choose_schedule();
    tb_model_destroy(model);
}
END_TEST

/* Solves that overlap the next steps of other worlds, worlds that go alone: none of it changes results,
 * also of worlds that need more memory in between or end. */
START_TEST(how_a_call_is_spread_over_the_card_leaves_no_trace)
{
    enum { WORLDS = 80, LOST = 7 }; /* by 32 lanes a solve more than the card holds: two groups */
    static const tb_backend_schedule SCHEDULES[] = {
        {.lanes = {4, 4, 4, 4}, .alone = 0, .overlap = 0},
        {.lanes = {4, 4, 4, 4}, .alone = 0, .overlap = 3},
        {.lanes = {8, 8, 32, 8}, .alone = 0, .overlap = 5},
        {.lanes = {2, 2, 2, 2}, .alone = 0, .overlap = -1},
        {.lanes = {32, 32, 32, 32}, .alone = 0, .overlap = 1},
        {.lanes = {8, 8, 8, 8}, .alone = 80, .overlap = -1},
        {.alone = -1, .overlap = -1}};
    enum { NUMBER_OF_SCHEDULES = sizeof SCHEDULES / sizeof *SCHEDULES };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *models[2] = {boxes(), crowd()};
    uint64_t expected[WORLDS];
    for (int k = -1; k < NUMBER_OF_SCHEDULES; k++) {
        tb_error error = {0};
        tb_state *worlds[WORLDS];
        if (k >= 0) fix_schedule(SCHEDULES[k]);
        tb_stepper *stepper = k < 0 ? stepper_on(TB_BACKEND_CPU, TB_DOUBLE) : resident_stepper(0);
        for (int i = 0; i < WORLDS; i++) {
            worlds[i] = state_of(models[i % 2]);
            push(worlds[i], i);
        }
        const double fast[256] = {0, 0, 0, 1e300};
        TEST_OK(tb_state_set_u(worlds[LOST], fast, tb_model_count(models[LOST % 2]).dofs, &error),
                &error);
        TEST_STATUS(tb_step_batch(stepper, worlds, WORLDS, 40, NULL, &error), TB_DIVERGED, &error);
        if (k >= 0) ck_assert_int_gt(tb_stepper_measure(stepper).regrowths, 0);
        for (int i = 0; i < WORLDS; i++) {
            if (k < 0) expected[i] = tb_state_hash(worlds[i]);
            ck_assert_uint_eq(tb_state_hash(worlds[i]), expected[i]);
            ck_assert_int_eq(tb_state_steps(worlds[i]), i == LOST ? 0 : 40);
            tb_state_destroy(worlds[i]);
        }
        tb_stepper_destroy(stepper);
    }
    choose_schedule();
    for (int i = 0; i < 2; i++) tb_model_destroy(models[i]);
}
END_TEST

/* The same of small worlds and piles whose launches are over before all worlds have made their steps, and of worlds
 * that go alone. */
START_TEST(lengths_of_launches_leave_no_trace)
{
    enum { WORLDS = 80 };
    /* precision, schedule, TRIBO_TEST_OVER; in double the general kernel takes the worlds alone */
    static const struct {
        tb_precision precision;
        tb_backend_schedule schedule;
        const char *over;
    } CASES[] = {{TB_FLOAT, {.overlap = -1}, NULL},
                 {TB_FLOAT, {.overlap = -1}, "100"},
                 {TB_DOUBLE, {.alone = WORLDS}, NULL},
                 {TB_DOUBLE, {.alone = WORLDS}, "100"}};
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *models[2] = {jaw_and_mug(), boxes()};
    for (int m = 0; m < 2; m++) {
        uint64_t expected[WORLDS];
        for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
            tb_error error = {0};
            tb_state *worlds[WORLDS];
            fix_schedule(CASES[k].schedule);
            if (CASES[k].over != NULL)
                ck_assert_int_eq(setenv("TRIBO_TEST_OVER", CASES[k].over, 1), 0);
            tb_stepper *stepper = stepper_with(TB_BACKEND_GPU, CASES[k].precision, "auto");
            for (int i = 0; i < WORLDS; i++) {
                worlds[i] = state_of(models[m]);
                push(worlds[i], i);
            }
            const played_counts before = asked();
            TEST_OK(tb_step_batch(stepper, worlds, WORLDS, 45, NULL, &error), &error);
            const int64_t launches = asked().launches - before.launches;
            ck_assert_int_eq(launches > 30, CASES[k].over != NULL);
            const bool first = k == 0 || CASES[k].precision != CASES[k - 1].precision;
            for (int i = 0; i < WORLDS; i++) {
                if (first) expected[i] = tb_state_hash(worlds[i]);
                ck_assert_uint_eq(tb_state_hash(worlds[i]), expected[i]);
                ck_assert_int_eq(tb_state_steps(worlds[i]), 45);
                tb_state_destroy(worlds[i]);
            }
            tb_stepper_destroy(stepper);
            ck_assert_int_eq(unsetenv("TRIBO_TEST_OVER"), 0);
        }
        tb_model_destroy(models[m]);
    }
    choose_schedule();
}
END_TEST

/* Normals and friction in turn run on cards like all solvers, with the processor's results;
 * worlds of many contacts need more memory first. */
START_TEST(staggered_projections_of_a_batch_leave_the_bytes_of_the_processors)
{
    enum { WORLDS = 6 };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *models[2] = {boxes(), crowd()};
    tb_error error = {0};
    for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
        tb_state *here[WORLDS], *there[WORLDS];
        tb_certificate certificates[2][WORLDS];
        tb_stepper *cpu = stepper_with(TB_BACKEND_CPU, (tb_precision)precision, "staggered");
        tb_stepper *gpu = stepper_with(TB_BACKEND_GPU, (tb_precision)precision, "staggered");
        for (int i = 0; i < WORLDS; i++) {
            here[i] = state_of(models[i % 2]);
            push(here[i], i);
            TEST_OK(tb_state_fork(here[i], &there[i], &error), &error);
        }
        TEST_OK(tb_step_batch(cpu, here, WORLDS, 40, certificates[0], &error), &error);
        TEST_OK(tb_step_batch(gpu, there, WORLDS, 40, certificates[1], &error), &error);
        ck_assert_int_gt(tb_stepper_measure(gpu).regrowths, 0);
        for (int i = 0; i < WORLDS; i++) {
            ck_assert_uint_eq(tb_state_hash(here[i]), tb_state_hash(there[i]));
            ck_assert_str_eq(certificates[1][i].solver, "staggered");
            ck_assert_int_eq(certificates[1][i].iterations, certificates[0][i].iterations);
            ck_assert_int_gt(certificates[1][i].iterations, 0);
            ck_assert_int_gt(tb_state_number_of_contacts(there[i]), 3);
            tb_state_destroy(here[i]);
            tb_state_destroy(there[i]);
        }
        tb_stepper_destroy(gpu);
        tb_stepper_destroy(cpu);
    }
    for (int i = 0; i < 2; i++) tb_model_destroy(models[i]);
}
END_TEST

/* The first kernel that cannot be launched leaves all as it was; one behind others leaves worlds
 * between two steps, and the card counts as lost. */
START_TEST(a_launch_that_fails_on_its_way_is_the_loss_of_the_card)
{
    enum { WORLDS = 40 };
    play_card(NULL, NULL, NULL);
    find_card();
    tb_model *model = boxes();
    tb_error error = {0};
    for (int overlap = 0; overlap <= 3; overlap += 3) {
        tb_state *worlds[WORLDS];
        fix_schedule((tb_backend_schedule){.alone = 0, .overlap = overlap});
        tb_stepper *stays = resident_stepper(0);
        for (int i = 0; i < WORLDS; i++) worlds[i] = state_of(model);
        TEST_OK(tb_step_batch(stays, worlds, WORLDS, 8, NULL, &error), &error);
        ck_assert_int_eq(setenv("TRIBO_TEST_FAIL", "1", 1), 0);
        TEST_STATUS(tb_step_batch(stays, worlds, WORLDS, 8, NULL, &error), TB_INTERNAL, &error);
        ck_assert_int_eq(unsetenv("TRIBO_TEST_FAIL"), 0);
        ck_assert_int_eq(tb_state_steps(worlds[0]), 8);
        TEST_OK(tb_step_batch(stays, worlds, WORLDS, 8, NULL, &error), &error);
        ck_assert_int_eq(tb_state_steps(worlds[WORLDS - 1]), 16);

        ck_assert_int_eq(setenv("TRIBO_TEST_FAIL", "7", 1), 0);
        TEST_STATUS(tb_step_batch(stays, worlds, WORLDS, 8, NULL, &error), TB_ABORTED, &error);
        ck_assert_int_eq(unsetenv("TRIBO_TEST_FAIL"), 0);
        TEST_STATUS(tb_step_batch(stays, worlds, WORLDS, 8, NULL, &error), TB_ABORTED, &error);
        ck_assert_ptr_nonnull(strstr(error.message, "is lost"));
        for (int i = 0; i < WORLDS; i++) tb_state_destroy(worlds[i]);
        tb_stepper_destroy(stays);
    }
    choose_schedule();
    tb_model_destroy(model);
}
END_TEST

START_TEST(few_worlds_go_alone)
{
    const tb_backend_schedule chosen = {.alone = -1}, none = {.alone = 0}, told = {.alone = 9};
    tb_gpu_launch launch = {
        .number_of_worlds = 528, .slots = 528, .steps = 500, .solver = TB_SOLVER_NUMBER_auto};
    tb_gpu_effort even = {0}, uneven = {0};
    for (int i = 0; i < 528; i++) {
        tb_gpu_effort_add(&even, i % 1000 == 0 ? 200 : 2);
        tb_gpu_effort_add(&uneven, i % 50 == 0 ? 200 : 2);
    }
    tb_gpu_choose_alone(&chosen, 132, &uneven, &launch); /* others need not wait for long solves */
    ck_assert_int_eq(launch.alone, 0);
    tb_gpu_choose_alone(&chosen, 132, &even, &launch);
    ck_assert_int_eq(launch.alone, 1);
    ck_assert_int_eq(launch.steps, 128); /* of one kernel */
    launch.steps = 500;
    tb_gpu_choose_alone(&none, 132, &even, &launch);
    ck_assert_int_eq(launch.alone, 0);
    ck_assert_int_eq(launch.steps, 500);
    tb_gpu_choose_alone(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.alone, 0);
    launch.slots = 527; /* no memory for all at once: they come in turns */
    tb_gpu_choose_alone(&chosen, 132, &even, &launch);
    ck_assert_int_eq(launch.alone, 0);
    launch.number_of_worlds = launch.slots = 529;
    tb_gpu_choose_alone(&chosen, 132, &even, &launch);
    ck_assert_int_eq(launch.alone, 0);
    launch.number_of_worlds = launch.slots = 9;
    tb_gpu_choose_alone(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.alone, 1);
    launch.solver = TB_SOLVER_NUMBER_staggered; /* has a kernel of its own */
    tb_gpu_choose_alone(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.alone, 0);
    /* in float a world of at most 36 dofs has its solves by a kernel of their own, also where it is one */
    launch.solver = TB_SOLVER_NUMBER_auto;
    tb_gpu_choose_wide(36, true, &launch);
    tb_gpu_choose_alone(&told, 132, &even, &launch);
    ck_assert(launch.wide && !launch.alone);
    tb_gpu_choose_wide(37, true, &launch);
    ck_assert(!launch.wide);
    tb_gpu_choose_wide(36, false, &launch);
    ck_assert(!launch.wide);
    launch.solver = TB_SOLVER_NUMBER_sor;
    tb_gpu_choose_wide(36, true, &launch);
    ck_assert(!launch.wide);
}
END_TEST

START_TEST(fast_memory_is_what_a_small_factor_needs)
{
    tb_gpu_launch launch = {.solver = TB_SOLVER_NUMBER_auto};
    tb_gpu_choose_fast(8, sizeof(double), &launch);
    ck_assert_int_ge(launch.fast, 8 * 8 * (int)sizeof(double));
    ck_assert_int_le(launch.fast, 2048);
    tb_gpu_choose_fast(27, sizeof(double), &launch); /* does not fit */
    ck_assert_int_eq(launch.fast, 0);
    launch.fast = 1;
    launch.solver = TB_SOLVER_NUMBER_staggered; /* contacts are not known yet */
    tb_gpu_choose_fast(8, sizeof(double), &launch);
    ck_assert_int_eq(launch.fast, 0);
}
END_TEST

START_TEST(solves_overlap_where_there_are_many)
{
    const tb_backend_schedule chosen = {.overlap = -1}, told = {.overlap = 30};
    const tb_backend_schedule none = {.overlap = 0};
    const tb_gpu_launch call = {
        .number_of_worlds = 8192, .slots = 8192, .steps = 500, .lanes = {8, 8, 8, 8}};
    tb_gpu_effort even = {0}, uneven = {0}, alike = {0}, unknown = {0};
    for (int i = 0; i < 8192; i++) {
        tb_gpu_effort_add(&alike, 3 + i % 3);
        tb_gpu_effort_add(&even, i % 1000 == 0 ? 200 : 2);
        tb_gpu_effort_add(&uneven, i % 50 == 0 ? 200 : 2);
    }
    tb_gpu_launch launch = call;
    tb_gpu_choose_overlap(&chosen, 132, &even, &launch);
    ck_assert_int_gt(launch.overlap, 0);
    ck_assert_int_lt(launch.overlap, 132);
    ck_assert_int_eq(launch.groups, 1);
    ck_assert_int_eq(launch.steps, 128); /* then it is looked again */
    tb_gpu_choose_overlap(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.overlap, 30);
    ck_assert_int_eq(launch.groups, 1);

    launch = call;
    tb_gpu_choose_overlap(&chosen, 132, &alike, &launch); /* no long solve ... */
    ck_assert_int_eq(launch.overlap, 0);
    ck_assert_int_eq(launch.steps, 128); /* ... so far */
    tb_gpu_choose_overlap(&told, 132, &alike, &launch);
    ck_assert_int_eq(launch.overlap, 30);
    tb_gpu_choose_overlap(&chosen, 132, &unknown, &launch); /* a few steps tell */
    ck_assert_int_gt(launch.overlap, 0);
    ck_assert_int_eq(launch.steps, 32);

    launch = call;
    tb_gpu_choose_overlap(&none, 132, &uneven, &launch);
    ck_assert_int_eq(launch.overlap, 0);
    ck_assert_int_eq(launch.groups, 1);
    ck_assert_int_eq(launch.steps, 500);
    tb_gpu_choose_overlap(&chosen, 132, &uneven, &launch); /* long ones are many */
    ck_assert_int_gt(launch.overlap, 132);
    launch.number_of_worlds = launch.slots = 32768; /* more than find room at once */
    launch.steps = 5000;
    tb_gpu_choose_overlap(&chosen, 132, &even, &launch);
    ck_assert_int_eq(launch.groups, TB_GPU_GROUPS);
    ck_assert_int_lt(launch.steps, 5000);
    launch.steps = 1; /* all end together */
    tb_gpu_choose_overlap(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.overlap, 0);
    launch = call;
    launch.slots = 100; /* the card cannot hold all at once */
    tb_gpu_choose_overlap(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.overlap, 0);
    launch = call;
    launch.number_of_worlds = launch.slots = 100;
    tb_gpu_choose_overlap(&chosen, 132, &uneven, &launch);
    ck_assert_int_eq(launch.overlap, 0);
    tb_gpu_choose_overlap(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.overlap, 30);
    launch.alone = 1;
    tb_gpu_choose_overlap(&told, 132, &even, &launch);
    ck_assert_int_eq(launch.overlap, 0);
}
END_TEST

/* A card refuses elements; the backend that chooses leaves them to the processor. */
START_TEST(elements_stay_on_a_processor)
{
    static const char TEXT[] =
        "<mujoco><worldbody><flexcomp name='f' count='3 3 1'/></worldbody></mujoco>";
    static const tb_backend_choice CHOICES[] = {TB_BACKEND_GPU, TB_BACKEND_AUTO};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_error error;
    play_card(NULL, NULL, NULL);
    find_card();
    TEST_OK(tb_scene_load_mjcf(TEXT, sizeof TEXT - 1, "t.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    for (int i = 0; i < 2; i++) {
        tb_step_options options = tb_step_defaults();
        tb_stepper *stepper = NULL;
        options.backend = CHOICES[i];
        TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
        tb_state *state = state_of(model);
        TEST_STATUS(tb_step(stepper, state, 1, NULL, &error), i == 0 ? TB_UNSUPPORTED : TB_OK,
                    &error);
        if (i == 0) ck_assert(strstr(error.message, "elements of flexes") != NULL);
        tb_state_destroy(state);
        tb_stepper_destroy(stepper);
    }
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(a_step_of_a_world_that_stays_asks_little_of_the_runtime,
          a_caller_is_not_asked_during_one_step, tables_of_a_model_are_made_once,
          a_crowded_pile_asks_no_more_than_other_worlds, a_course_asks_as_little_as_a_step,
          a_long_course_sends_each_row_once, a_caller_may_give_up_between_launches,
          a_caller_may_give_up_during_a_launch, how_a_call_is_spread_over_the_card_leaves_no_trace,
          lengths_of_launches_leave_no_trace,
          staggered_projections_of_a_batch_leave_the_bytes_of_the_processors,
          a_launch_that_fails_on_its_way_is_the_loss_of_the_card, few_worlds_go_alone,
          fast_memory_is_what_a_small_factor_needs, solves_overlap_where_there_are_many,
          elements_stay_on_a_processor)
