/* Worlds that stay on a GPU between calls: copies, forks, short memory, several cards, a lost card.
 * The tests use a card if there is one, else one that the processor plays (tests/plugin/card),
 * which leaves out the kernels alone. */
#include "card_util.h"

START_TEST(worlds_stay_until_somebody_reads)
{
    find_card();
    tb_model *model = boxes();
    tb_state *a = state_of(model), *b = state_of(model);
    tb_stepper *stays = resident_stepper(0), *plain = plain_stepper();
    for (int i = 0; i < 10; i++) {
        step(stays, a, 5);
        step(plain, b, 5);
        ck_assert_int_eq(tb_state_steps(a), tb_state_steps(b));
        ck_assert(tb_state_time(a) == tb_state_time(b));
        ck_assert_int_eq(tb_state_number_of_contacts(a), tb_state_number_of_contacts(b));
    }
    tb_device_use before = use_of(0);
    step(stays, a, 5);
    tb_device_use after = use_of(0);
    ck_assert_int_eq(after.fetches, before.fetches);
    ck_assert_int_eq(after.uploads, before.uploads);
    /* there and back a header each, and nothing else */
    ck_assert_uint_lt(after.copied_bytes - before.copied_bytes, 3000);
    step(plain, b, 5);

    before = use_of(0);
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    ck_assert_int_eq(use_of(0).fetches, before.fetches + 1);
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    ck_assert_int_eq(use_of(0).fetches, before.fetches + 1);
    ck_assert_mem_eq(tb_state_certificate(a), tb_state_certificate(b), sizeof(tb_certificate));
    tb_state_destroy(a), tb_state_destroy(b);
    ck_assert_int_eq(use_of(0).worlds, 0);
    tb_stepper_destroy(stays), tb_stepper_destroy(plain);
    ck_assert_uint_eq(use_of(0).memory_bytes, 0); /* closed with its last user */
    tb_model_destroy(model);
}
END_TEST

/* Numbers set on the host go to the card by parts, without a fetch before. */
START_TEST(what_the_host_sets_goes_there_alone)
{
    find_card();
    tb_model *model = boxes();
    tb_error error;
    tb_state *a = state_of(model), *b = state_of(model);
    tb_stepper *stays = resident_stepper(0), *plain = plain_stepper();
    const tb_model_counts n = tb_model_count(model);
    double u[64] = {0};
    step(stays, a, 3), step(plain, b, 3);
    for (int i = 0; i < 8; i++) {
        push(a, i), push(b, i);
        const tb_device_use before = use_of(0);
        step(stays, a, 2);
        ck_assert_int_eq(use_of(0).fetches, before.fetches);
        step(plain, b, 2);
    }
    u[0] = 0.25;
    TEST_OK(tb_state_set_u(a, u, n.dofs, &error), &error);
    TEST_OK(tb_state_set_u(b, u, n.dofs, &error), &error);
    ck_assert(tb_state_u(a)[0] == 0.25); /* and q, which is still there, comes on its own */
    ck_assert_mem_eq(tb_state_q(a), tb_state_q(b), (size_t)n.coordinates * sizeof(double));
    ck_assert(tb_state_u(a)[0] == 0.25);
    step(stays, a, 4), step(plain, b, 4);
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));

    /* a snapshot is taken of the card's data, and restored to it */
    unsigned char *bytes = NULL;
    size_t size = 0;
    step(stays, a, 2), step(plain, b, 2);
    TEST_OK(tb_state_snapshot(a, &bytes, &size, &error), &error);
    step(stays, a, 7);
    TEST_OK(tb_state_restore(a, bytes, size, &error), &error);
    tb_bytes_destroy(bytes);
    step(stays, a, 3), step(plain, b, 3);
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    TEST_OK(tb_state_reset(a, -1, &error), &error);
    TEST_OK(tb_state_reset(b, -1, &error), &error);
    step(stays, a, 3), step(plain, b, 3);
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    tb_state_destroy(a), tb_state_destroy(b);
    tb_stepper_destroy(stays), tb_stepper_destroy(plain);
    tb_model_destroy(model);
}
END_TEST

START_TEST(forks_are_made_there_and_go_their_own_ways)
{
    enum { FORKS = 9 };
    find_card();
    tb_model *model = boxes();
    tb_error error = {0};
    tb_state *a = state_of(model), *forks[FORKS], *expected[FORKS];
    tb_stepper *stays = resident_stepper(0), *plain = plain_stepper();
    step(stays, a, 40);
    const tb_device_use before = use_of(0);
    for (int i = 0; i < FORKS; i++) TEST_OK(tb_state_fork(a, &forks[i], &error), &error);
    ck_assert_int_eq(use_of(0).worlds, 1); /* shared until they are stepped */
    for (int i = 0; i < FORKS; i++) push(forks[i], i);
    TEST_OK(tb_step_batch(stays, forks, FORKS, 10, NULL, &error), &error);
    const tb_device_use after = use_of(0);
    ck_assert_int_eq(after.worlds, 1 + FORKS);
    ck_assert_int_eq(after.moves, before.moves + FORKS);
    ck_assert_int_eq(after.fetches, before.fetches);
    ck_assert_int_eq(after.uploads, before.uploads);

    /* the same from a copy at home; and the one they came from has not moved */
    for (int i = 0; i < FORKS; i++) {
        unsigned char *bytes = NULL;
        size_t size = 0;
        TEST_OK(tb_state_snapshot(a, &bytes, &size, &error), &error);
        expected[i] = state_of(model);
        TEST_OK(tb_state_restore(expected[i], bytes, size, &error), &error);
        tb_bytes_destroy(bytes);
        ck_assert_uint_eq(tb_state_hash(expected[i]), tb_state_hash(a));
        push(expected[i], i);
        step(plain, expected[i], 10);
        ck_assert_uint_eq(tb_state_hash(forks[i]), tb_state_hash(expected[i]));
    }
    /* all that share one, in one batch */
    tb_state *pair[2] = {a, NULL};
    TEST_OK(tb_state_fork(a, &pair[1], &error), &error);
    TEST_OK(tb_step_batch(stays, pair, 2, 5, NULL, &error), &error);
    ck_assert_uint_eq(tb_state_hash(pair[0]), tb_state_hash(pair[1]));
    for (int i = 0; i < FORKS; i++) tb_state_destroy(forks[i]), tb_state_destroy(expected[i]);
    tb_state_destroy(pair[0]), tb_state_destroy(pair[1]);
    ck_assert_int_eq(use_of(0).worlds, 0);
    tb_stepper_destroy(stays), tb_stepper_destroy(plain);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_world_goes_from_backend_to_backend)
{
    find_card();
    tb_model *model = boxes();
    tb_error error = {0};
    tb_state *a = state_of(model), *b = state_of(model), *late = NULL;
    tb_stepper *stays = resident_stepper(0), *plain = plain_stepper();
    tb_stepper *cpu = stepper_on(TB_BACKEND_CPU, TB_DOUBLE);
    for (int i = 0; i < 3; i++) {
        step(stays, a, 6), step(plain, b, 6);
        step(cpu, a, 4), step(cpu, b, 4);
    }
    ck_assert_int_eq(use_of(0).worlds, 0); /* the CPU took them along */
    step(stays, a, 6), step(plain, b, 6);
    /* after a stepper's end its worlds can still be read, and are copied back on demand */
    TEST_OK(tb_state_fork(a, &late, &error), &error);
    tb_stepper_destroy(stays);
    tb_stepper_destroy(plain);
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    step(cpu, late, 4), step(cpu, b, 4);
    ck_assert_uint_eq(tb_state_hash(late), tb_state_hash(b));
    tb_state_destroy(a), tb_state_destroy(b), tb_state_destroy(late);
    ck_assert_uint_eq(use_of(0).memory_bytes, 0);
    tb_stepper_destroy(cpu);
    tb_model_destroy(model);
}
END_TEST

/* Parameters of a world (friction, mass) change between calls: resident, with a fork that keeps its
 * own, and as worlds of the processor. */
START_TEST(worlds_of_one_batch_have_their_own_parameters)
{
    enum { WORLDS = 6 };
    const bool played = find_card();
    tb_model *model = boxes();
    tb_error error = {0};
    tb_state *a[WORLDS + 1], *b[WORLDS + 1], *c[WORLDS + 1];
    tb_stepper *stays = resident_stepper(0), *plain = plain_stepper(),
               *cpu = stepper_on(TB_BACKEND_CPU, TB_DOUBLE);
    for (int i = 0; i < WORLDS; i++)
        a[i] = state_of(model), b[i] = state_of(model), c[i] = state_of(model);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < WORLDS; i++) {
            double friction[5] = {0.02 * (i % 3), 0.1, 0.3, 0.2, 0.1 * i};
            double mass[5] = {0, 1 + i % 2, 2 + round, 3, 1};
            const tb_parameters p = {.friction = friction, .mass = round % 2 ? NULL : mass};
            TEST_OK(tb_state_set_parameters(a[i], &p, &error), &error);
            TEST_OK(tb_state_set_parameters(b[i], &p, &error), &error);
            TEST_OK(tb_state_set_parameters(c[i], &p, &error), &error);
            push(a[i], i), push(b[i], i), push(c[i], i);
        }
        TEST_OK(tb_step_batch(stays, a, WORLDS, 20, NULL, &error), &error);
        TEST_OK(tb_step_batch(plain, b, WORLDS, 20, NULL, &error), &error);
        TEST_OK(tb_step_batch(cpu, c, WORLDS, 20, NULL, &error), &error);
    }
    TEST_OK(tb_state_fork(a[2], &a[WORLDS], &error), &error);
    TEST_OK(tb_state_fork(b[2], &b[WORLDS], &error), &error);
    TEST_OK(tb_state_fork(c[2], &c[WORLDS], &error), &error);
    TEST_OK(tb_step_batch(stays, a, WORLDS + 1, 20, NULL, &error), &error);
    TEST_OK(tb_step_batch(plain, b, WORLDS + 1, 20, NULL, &error), &error);
    TEST_OK(tb_step_batch(cpu, c, WORLDS + 1, 20, NULL, &error), &error);
    const tb_model_counts n = tb_model_count(model);
    for (int i = 0; i <= WORLDS; i++) {
        ck_assert_uint_eq(tb_state_hash(a[i]), tb_state_hash(b[i]));
        for (int k = 0; k < n.coordinates; k++)
            TEST_NEAR(tb_state_q(a[i])[k], tb_state_q(c[i])[k], played ? 0 : 1e-9);
        if (i > 0 && i < WORLDS)
            ck_assert_mem_ne(tb_state_q(a[i]), tb_state_q(a[0]), sizeof(double));
    }
    for (int i = 0; i <= WORLDS; i++)
        tb_state_destroy(a[i]), tb_state_destroy(b[i]), tb_state_destroy(c[i]);
    tb_stepper_destroy(stays), tb_stepper_destroy(plain), tb_stepper_destroy(cpu);
    tb_model_destroy(model);
}
END_TEST

/* ---- on the played card, whose memory and number can be chosen ---- */

START_TEST(short_of_memory_the_oldest_leave_and_come_back)
{
    enum { WORLDS = 400 };
    play_card("12582912", NULL, NULL);
    find_card();
    tb_model *model = crowd();
    tb_error error = {0};
    tb_state *worlds[WORLDS];
    uint64_t expected[WORLDS];
    tb_stepper *stays = resident_stepper(0), *plain;
    for (int i = 0; i < WORLDS; i++) {
        worlds[i] = state_of(model);
        push(worlds[i], i % 7);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < WORLDS; i += 100)
            TEST_OK(tb_step_batch(stays, worlds + i, 100, 1, NULL, &error), &error);
    /* and all in one call, which does it in pieces */
    TEST_OK(tb_step_batch(stays, worlds, WORLDS, 1, NULL, &error), &error);
    const tb_device_use use = use_of(0);
    ck_assert_int_eq(use.worlds, WORLDS);
    ck_assert_int_gt(use.evictions, WORLDS);
    ck_assert_int_gt(use.worlds_swapped, 0);
    ck_assert_uint_le(use.pool_bytes, 6291456);
    ck_assert_int_eq(use.fetches, 0);
    TEST_OK(tb_states_fetch(worlds, WORLDS, true, &error), &error);
    for (int i = 0; i < WORLDS; i++) expected[i] = tb_state_hash(worlds[i]);
    for (int i = 0; i < WORLDS; i++) tb_state_destroy(worlds[i]);
    tb_stepper_destroy(stays);

    play_card("1073741824", NULL, NULL);
    plain = plain_stepper();
    for (int i = 0; i < WORLDS; i++) worlds[i] = state_of(model), push(worlds[i], i % 7);
    TEST_OK(tb_step_batch(plain, worlds, WORLDS, 4, NULL, &error), &error);
    for (int i = 0; i < WORLDS; i++) ck_assert_uint_eq(tb_state_hash(worlds[i]), expected[i]);
    ck_assert_int_eq(use_of(0).evictions, 0);
    for (int i = 0; i < WORLDS; i++) tb_state_destroy(worlds[i]);
    tb_stepper_destroy(plain);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_world_larger_than_the_card_is_refused_and_stays_as_it_is)
{
    play_card("20000", NULL, NULL);
    find_card();
    tb_model *model = crowd();
    tb_error error = {0};
    tb_state *state = state_of(model);
    const uint64_t before = tb_state_hash(state);
    tb_stepper *stays = resident_stepper(0);
    TEST_STATUS(tb_step(stays, state, 1, NULL, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_uint_eq(tb_state_hash(state), before);
    destroy(state, stays, model);
}
END_TEST

START_TEST(worlds_move_between_cards)
{
    play_card(NULL, "3", NULL);
    find_card();
    tb_model *model = boxes();
    tb_error error = {0};
    tb_state *a = state_of(model), *b = state_of(model);
    tb_stepper *cards[3], *plain = plain_stepper();
    for (int i = 0; i < 3; i++) cards[i] = resident_stepper(i);
    for (int i = 0; i < 6; i++) {
        step(cards[i % 3], a, 5);
        step(plain, b, 5);
        for (int k = 0; k < 3; k++) ck_assert_int_eq(use_of(k).worlds, (k == i % 3) + (k == 0));
    }
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    /* both in one batch of a third */
    tb_state *both[2] = {a, b};
    TEST_OK(tb_step_batch(cards[1], both, 2, 5, NULL, &error), &error);
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    tb_step_options options = tb_step_defaults();
    tb_stepper *none = NULL;
    options.backend = TB_BACKEND_GPU;
    options.device = 3;
    TEST_STATUS(tb_stepper_create(&options, &none, &error), TB_NOT_FOUND, &error);
    tb_state_destroy(a), tb_state_destroy(b);
    for (int i = 0; i < 3; i++) tb_stepper_destroy(cards[i]);
    tb_stepper_destroy(plain);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_lost_card_says_so_to_steppers_and_readers)
{
    char folder[] = "/tmp/tribo_lose_XXXXXX", file[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/lose", folder);
    play_card(NULL, NULL, file);
    find_card();
    tb_model *model = boxes();
    tb_error error = {0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    tb_state *a = state_of(model), *home = state_of(model), *fork = NULL;
    tb_stepper *stays = resident_stepper(0);
    step(stays, home, 30);
    const uint64_t kept = tb_state_hash(home);
    step(stays, a, 30);
    TEST_OK(tb_state_fork(a, &fork, &error), &error);
    FILE *switched = fopen(file, "w");
    ck_assert_ptr_nonnull(switched);
    fclose(switched);

    TEST_STATUS(tb_step(stays, a, 1, NULL, &error), TB_ABORTED, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "card 0 is lost"));
    TEST_STATUS(tb_states_fetch(&a, 1, true, &error), TB_ABORTED, &error);
    TEST_STATUS(tb_state_snapshot(fork, &bytes, &size, &error), TB_ABORTED, &error);
    tb_contact_info contact;
    ck_assert_int_eq(tb_state_contact(fork, 0, &contact), TB_ABORTED);
    ck_assert(use_of(0).lost);
    /* worlds that were fetched before are unchanged */
    ck_assert_uint_eq(tb_state_hash(home), kept);
    TEST_STATUS(tb_step(stays, home, 1, NULL, &error), TB_ABORTED, &error);
    ck_assert_uint_eq(tb_state_hash(home), kept);
    tb_state_destroy(a), tb_state_destroy(fork), tb_state_destroy(home);
    tb_stepper_destroy(stays);
    tb_model_destroy(model);
    unlink(file), rmdir(folder);
}
END_TEST

TEST_MAIN(worlds_stay_until_somebody_reads, what_the_host_sets_goes_there_alone,
          worlds_of_one_batch_have_their_own_parameters, forks_are_made_there_and_go_their_own_ways,
          a_world_goes_from_backend_to_backend, short_of_memory_the_oldest_leave_and_come_back,
          a_world_larger_than_the_card_is_refused_and_stays_as_it_is, worlds_move_between_cards,
          a_lost_card_says_so_to_steppers_and_readers)
