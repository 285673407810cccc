/* Large worlds on a card that is too full for them, and on one whose caller changes options: a
 * refused call leaves all worlds as they were. The tests use the played card, whose memory they
 * choose. */
#include "card_util.h"

static const char *const ROOMY = "268435456";

/* Balls above a plane, in a lattice that lies down: pairs grow in number as it does. */
static tb_model *lattice(int32_t count, double spacing, double stretch)
{
    tb_error error;
    tb_scene *scene = new_scene();
    const int32_t side = (int32_t)ceil(cbrt((double)count));
    tb_shape_def plane = tb_shape_defaults();
    plane.type = TB_SHAPE_PLANE;
    TEST_OK(tb_scene_add_shape(scene, &plane, NULL, &error), &error);
    for (int32_t i = 0; i < count; i++) {
        tb_body_def body = tb_body_defaults();
        tb_shape_def ball = tb_shape_defaults();
        body.position[0] = (i % side + 0.5) * spacing;
        body.position[1] = (i / side % side + 0.5) * spacing;
        body.position[2] = (i / side / side + 0.5) * spacing * stretch + 0.01;
        TEST_OK(tb_scene_add_body(scene, &body, &ball.body, &error), &error);
        add_joint(scene, ball.body, TB_JOINT_FREE, NULL);
        ball.type = TB_SHAPE_SPHERE;
        ball.size[0] = 0.05;
        TEST_OK(tb_scene_add_shape(scene, &ball, NULL, &error), &error);
    }
    return finish(scene);
}

static void set_card_memory(uint64_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    ck_assert_int_eq(setenv("TRIBO_TEST_CARD_MEMORY", text, 1), 0);
}

static tb_stepper *sweeps(double margin, bool resident)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.backend = TB_BACKEND_GPU;
    options.solve.solver = "sor";
    options.solve.maximum_iterations = 20;
    options.contact_margin = margin;
    options.resident = resident;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

static void begin(void)
{
    play_card(ROOMY, NULL, NULL);
    find_card();
    fix_schedule((tb_backend_schedule){.alone = -1, .overlap = -1, .large = 100});
}

/* The step in which a field of this world first asks for more. */
static int first_growth(const tb_model *model, bool resident)
{
    tb_stepper *stepper = sweeps(0.032, resident);
    tb_state *state = state_of(model);
    int made = 0;
    while (made < 200 && tb_stepper_measure(stepper).regrowths == 0)
        step(stepper, state, 1), made++;
    ck_assert_int_lt(made, 200);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    return made;
}

/* The call takes many steps before it finds no room. The world is as before it, and goes on from
 * there, whether the card has room by then or not. */
static void check_refusal(bool resident, bool room_comes)
{
    begin();
    tb_error error = {0};
    tb_model *model = lattice(1000, 0.131, 1.02);
    const int growth = first_growth(model, resident);
    tb_stepper *stepper = sweeps(0.032, resident);
    tb_state *state = state_of(model), *other = state_of(model);
    step(stepper, other, 3);
    step(stepper, state, 2);
    set_card_memory(use_of(0).memory_bytes + 100000);
    TEST_STATUS(tb_step(stepper, state, growth + 3, NULL, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_int_eq(tb_state_steps(state), 2);
    if (room_comes) ck_assert_int_eq(setenv("TRIBO_TEST_CARD_MEMORY", ROOMY, 1), 0);
    step(stepper, state, 1);
    TEST_OK(tb_states_fetch(&state, 1, true, &error), &error);
    TEST_OK(tb_states_fetch(&other, 1, true, &error), &error);
    ck_assert_uint_eq(tb_state_hash(state), tb_state_hash(other));
    tb_state_destroy(other);
    destroy(state, stepper, model);
}

START_TEST(a_world_that_finds_no_room_stays_where_it_was)
{
    for (int i = 0; i < 4; i++) check_refusal(i % 2 == 1, i / 2 == 1);
}
END_TEST

START_TEST(worlds_beside_one_that_finds_no_room_go_on)
{
    begin();
    tb_error error = {0};
    tb_model *large = lattice(2000, 0.0995, 1), *few = spheres();
    tb_stepper *stepper = sweeps(0, false);
    tb_state *both[2] = {state_of(large), state_of(few)}, *alone = state_of(few);
    tb_certificate certificates[2];
    step(stepper, both[1], 2);
    step(stepper, alone, 7);
    set_card_memory(use_of(0).memory_bytes + (16 << 20));
    TEST_STATUS(tb_step_batch(stepper, both, 2, 5, certificates, &error), TB_RESOURCE_EXHAUSTED,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, "out of memory"));
    ck_assert_int_eq(tb_state_steps(both[0]), 0);
    ck_assert_int_eq(certificates[0].step, 0);
    ck_assert_int_eq(tb_state_steps(both[1]), 7);
    ck_assert_int_eq(certificates[1].step, 7);
    ck_assert_uint_eq(tb_state_hash(both[1]), tb_state_hash(alone));
    ck_assert_int_eq(setenv("TRIBO_TEST_CARD_MEMORY", ROOMY, 1), 0);
    TEST_OK(tb_step_batch(stepper, both, 2, 5, certificates, &error), &error);
    ck_assert_int_eq(tb_state_steps(both[0]), 5);
    tb_state_destroy(both[0]);
    tb_state_destroy(both[1]);
    tb_model_destroy(large);
    destroy(alone, stepper, few);
}
END_TEST

/* A large world's memory is reused by later ones. */
START_TEST(small_worlds_get_the_memory_of_a_large_that_rests)
{
    enum { WORLDS = 300 };
    begin();
    tb_error error = {0};
    tb_model *large = lattice(2000, 0.0995, 1), *few = spheres();
    tb_stepper *stepper = sweeps(0, false);
    tb_state *worlds[WORLDS], *world = state_of(large);
    step(stepper, world, 2);
    const uint64_t taken = use_of(0).memory_bytes;
    tb_state_destroy(world);
    tb_model_destroy(large);
    set_card_memory(taken);
    for (int i = 0; i < WORLDS; i++) worlds[i] = state_of(few);
    TEST_OK(tb_step_batch(stepper, worlds, WORLDS, 3, NULL, &error), &error);
    ck_assert_int_eq(tb_state_steps(worlds[WORLDS - 1]), 3);
    ck_assert_uint_le(use_of(0).memory_bytes, taken);
    for (int i = 0; i < WORLDS; i++) tb_state_destroy(worlds[i]);
    tb_stepper_destroy(stepper);
    tb_model_destroy(few);
}
END_TEST

/* The name of the stepper's solver is at one address, whatever the solver. */
START_TEST(another_solver_is_another_large)
{
    begin();
    tb_error error = {0};
    tb_model *model = lattice(216, 0.0995, 1);
    tb_stepper *changed = sweeps(0, false), *jor = sweeps(0, false);
    tb_step_options options = tb_stepper_options(jor);
    tb_state *first = state_of(model), *again = state_of(model), *other = state_of(model);
    tb_certificate a, b;
    TEST_OK(tb_step(changed, first, 1, &a, &error), &error);
    ck_assert_str_eq(a.solver, "sor");
    options.solve.solver = "jor";
    TEST_OK(tb_stepper_set_options(changed, &options, &error), &error);
    TEST_OK(tb_stepper_set_options(jor, &options, &error), &error);
    TEST_OK(tb_step(changed, again, 1, &a, &error), &error);
    TEST_OK(tb_step(jor, other, 1, &b, &error), &error);
    ck_assert_str_eq(a.solver, "jor");
    ck_assert_uint_eq(tb_state_hash(again), tb_state_hash(other));
    ck_assert_uint_ne(tb_state_hash(again), tb_state_hash(first));
    tb_state_destroy(first);
    tb_state_destroy(again);
    tb_stepper_destroy(changed);
    destroy(other, jor, model);
}
END_TEST

START_TEST(a_caller_may_give_up_a_large_world)
{
    begin();
    tb_error error = {0};
    tb_model *model = lattice(216, 0.0995, 1);
    tb_stepper *asks = sweeps(0, false), *does_not = sweeps(0, false);
    tb_state *state = state_of(model), *other = state_of(model);
    int questions = 2; /* that are answered with no */
    tb_step_options options = tb_stepper_options(asks);
    options.solve.cancelled = gives_up;
    options.solve.cancelled_context = &questions;
    TEST_OK(tb_stepper_set_options(asks, &options, &error), &error);
    TEST_STATUS(tb_step(asks, state, 200, NULL, &error), TB_CANCELLED, &error);
    ck_assert_int_eq(tb_state_steps(state), 64);
    step(does_not, other, 64);
    ck_assert_uint_eq(tb_state_hash(state), tb_state_hash(other));
    tb_state_destroy(state);
    tb_stepper_destroy(asks);
    destroy(other, does_not, model);
}
END_TEST

TEST_MAIN(a_world_that_finds_no_room_stays_where_it_was,
          small_worlds_get_the_memory_of_a_large_that_rests,
          worlds_beside_one_that_finds_no_room_go_on, another_solver_is_another_large,
          a_caller_may_give_up_a_large_world)
