/* Paces: the remembered step times of a scene, and the choices made from them. */
#include "schedule/pace.h"
#include "server/server_util.h"

static td_paces *make(void)
{
    tb_error error = {0};
    td_paces *paces = NULL;
    TEST_OK(td_paces_create(&paces, &error), &error);
    return paces;
}

static uint64_t key_of(const char *scene, const tb_step_options *options)
{
    return td_pace_key(td_pace_hash(TD_PACE_SEED, scene, strlen(scene)), options);
}

START_TEST(keys_tell_scenes_and_options_apart)
{
    tb_step_options options = tb_step_defaults(), other = options;
    const uint64_t key = key_of("mug", &options);
    ck_assert_uint_ne(key, 0);
    ck_assert_uint_eq(key, key_of("mug", &options));
    ck_assert_uint_ne(key, key_of("jug", &options));
    other.solve.tolerance = 1e-3;
    ck_assert_uint_ne(key, key_of("mug", &other));
    /* where it is stepped does not belong to it */
    other = options;
    other.backend = TB_BACKEND_GPU;
    other.device = 1;
    ck_assert_uint_eq(key, key_of("mug", &other));
    /* bytes may come in pieces */
    const uint64_t halves = td_pace_hash(td_pace_hash(TD_PACE_SEED, "mu", 2), "g", 1);
    ck_assert_uint_eq(key, td_pace_key(halves, &options));
}
END_TEST

static double known(td_paces *paces, uint64_t key, tb_backend_choice backend, int64_t worlds)
{
    return td_pace_step_ns(paces, key, backend, worlds, INT64_MIN);
}

START_TEST(processors_take_so_long_a_world)
{
    td_paces *paces = make();
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_CPU, 10), 0);
    td_pace_note(paces, 7, TB_BACKEND_CPU, 4, 4000, 0);
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_CPU, 4), 4000);
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_CPU, 1000), 1e6);
    /* other numbers of worlds count for the same average, and the last one more than any other */
    td_pace_note(paces, 7, TB_BACKEND_CPU, 100, 200000, 0);
    ck_assert_double_eq_tol(known(paces, 7, TB_BACKEND_CPU, 1), 1250, 1e-9);
    for (int i = 0; i < 40; i++) td_pace_note(paces, 7, TB_BACKEND_CPU, 1, 500, 0);
    ck_assert_double_eq_tol(known(paces, 7, TB_BACKEND_CPU, 1), 500, 1);
    /* of a card nothing is known by that, nor of other scenes */
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_GPU, 1), 0);
    ck_assert_double_eq(known(paces, 8, TB_BACKEND_CPU, 1), 0);
    td_paces_destroy(paces);
}
END_TEST

START_TEST(what_a_card_takes_lies_between_its_measurements)
{
    td_paces *paces = make();
    td_pace_note(paces, 7, TB_BACKEND_GPU, 100, 1000, 0);
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_GPU, 100), 1000);
    /* fewer take as long; 400 at least as long, and at most four times */
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_GPU, 25), 1000);
    ck_assert_double_eq_tol(known(paces, 7, TB_BACKEND_GPU, 400), 2000, 1e-9);
    /* of one world and of thousands that says nothing */
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_GPU, 1), 0);
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_GPU, 8000), 0);
    /* measurements there weigh more */
    td_pace_note(paces, 7, TB_BACKEND_GPU, 1000, 1100, 0);
    const double between = known(paces, 7, TB_BACKEND_GPU, 400);
    ck_assert_double_ge(between, 1000);
    ck_assert_double_le(between, 1100);
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_GPU, 1000), 1100);
    /* never less for more worlds between them */
    double last = 0;
    for (int64_t n = 256; n <= 1000; n += 31) {
        const double step_ns = known(paces, 7, TB_BACKEND_GPU, n);
        ck_assert_msg(step_ns >= last && step_ns > 0, "%g for %lld", step_ns, (long long)n);
        last = step_ns;
    }
    for (int64_t n = 1; n < (int64_t)1 << 40; n *= 3)
        ck_assert_double_finite(known(paces, 7, TB_BACKEND_GPU, n));
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_CPU, 100), 0);
    td_paces_destroy(paces);
}
END_TEST

START_TEST(measurements_without_meaning_are_none)
{
    td_paces *paces = make();
    td_pace_note(paces, 0, TB_BACKEND_CPU, 1, 100, 0);
    td_pace_note(paces, 7, TB_BACKEND_CPU, 0, 100, 0);
    td_pace_note(paces, 7, TB_BACKEND_CPU, 1, 0, 0);
    td_pace_note(paces, 7, TB_BACKEND_GPU, 1, NAN, 0);
    ck_assert_double_eq(known(paces, 0, TB_BACKEND_CPU, 1), 0);
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_CPU, 1), 0);
    ck_assert_double_eq(known(paces, 7, TB_BACKEND_GPU, 1), 0);
    td_paces_destroy(paces);
}
END_TEST

START_TEST(measurements_age)
{
    td_paces *paces = make();
    td_pace_note(paces, 7, TB_BACKEND_CPU, 1, 100, 1000);
    td_pace_note(paces, 7, TB_BACKEND_GPU, 1, 100, 2000);
    ck_assert_double_eq(td_pace_step_ns(paces, 7, TB_BACKEND_CPU, 1, 1000), 100);
    ck_assert_double_eq(td_pace_step_ns(paces, 7, TB_BACKEND_CPU, 1, 1001), 0);
    ck_assert_double_eq(td_pace_step_ns(paces, 7, TB_BACKEND_GPU, 1, 1001), 100);
    td_pace_note(paces, 7, TB_BACKEND_CPU, 1, 100, 1001);
    ck_assert_double_eq(td_pace_step_ns(paces, 7, TB_BACKEND_CPU, 1, 1001), 100);
    td_paces_destroy(paces);
}
END_TEST

START_TEST(one_at_a_time_tries_what_is_not_known)
{
    static const int64_t SECOND = 1000000000;
    td_paces *paces = make();
    ck_assert(!td_pace_try(paces, 7, TB_BACKEND_CPU, 0)); /* nothing is known of it at all */
    td_pace_note(paces, 7, TB_BACKEND_GPU, 1, 100, 0);
    ck_assert(td_pace_try(paces, 7, TB_BACKEND_CPU, 0));
    ck_assert(!td_pace_try(paces, 7, TB_BACKEND_CPU, SECOND));
    ck_assert(td_pace_try(paces, 7, TB_BACKEND_GPU, SECOND));
    ck_assert(!td_pace_try(paces, 7, TB_BACKEND_CPU, 29 * SECOND));
    ck_assert(td_pace_try(paces, 7, TB_BACKEND_CPU, 31 * SECOND));
    td_paces_destroy(paces);
}
END_TEST

START_TEST(scenes_that_are_used_are_kept)
{
    enum { MANY = 5000 };
    td_paces *paces = make();
    for (uint64_t i = 1; i <= MANY; i++) {
        td_pace_note(paces, i, TB_BACKEND_CPU, 1, (double)i, 0);
        ck_assert_double_eq(known(paces, 1, TB_BACKEND_CPU, 1), 1);
    }
    ck_assert_double_eq(known(paces, MANY, TB_BACKEND_CPU, 1), MANY);
    ck_assert_double_eq(known(paces, 2, TB_BACKEND_CPU, 1), 0);
    td_paces_destroy(paces);
}
END_TEST

TEST_MAIN(keys_tell_scenes_and_options_apart, processors_take_so_long_a_world,
          what_a_card_takes_lies_between_its_measurements, measurements_without_meaning_are_none,
          measurements_age, one_at_a_time_tries_what_is_not_known, scenes_that_are_used_are_kept)
