/* Poulsen's solvers: his figures, storage forms that agree, threads that do not change a byte. */
#include "../gpu/card_util.h"
#include "tribo_poulsen.h"

static tb_error error;

/* a sanitizer needs every path once: the medium grid takes those of the small one, and of the pile
 * only the unsafe colour is new */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1, THREADED_ITERATIONS = 3, PLAYED_ITERATIONS = 2 };
#else
enum { SANITIZED = 0, THREADED_ITERATIONS = 12, PLAYED_ITERATIONS = 4 };
#endif

static tb_poulsen_result solved(const char *scene, const tb_poulsen_options *options)
{
    tb_poulsen_result result;
    TEST_OK(tb_poulsen_solve(scene, options, &result, &error), &error);
    return result;
}

/* Tables 3.3 and 3.5: 50 sequential Gauss-Seidel iterations, and Jacobi after 63. */
START_TEST(grids_end_with_the_quality_of_the_thesis)
{
    tb_poulsen_options o = tb_poulsen_defaults();
    tb_poulsen_result r = solved("poulsen_grid_8", &o);
    TEST_NEAR(r.gamma, 247, 0.5);
    TEST_NEAR(r.epsilon, 0.088, 5e-4);
    ck_assert_int_eq(r.reductions, 0);
    if (!SANITIZED) {
        r = solved("poulsen_grid_24", &o);
        TEST_NEAR(r.gamma, 2850, 5);
        TEST_NEAR(r.epsilon, 0.090, 5e-4);
    }
    o.jacobi = true;
    o.iterations = 63;
    r = solved("poulsen_grid_8", &o);
    TEST_NEAR(r.gamma, 249, 5);
    TEST_NEAR(r.epsilon, 0.068, 5e-4);
}
END_TEST

START_TEST(storage_forms_agree)
{
    for (int way = 0; way < 4; way++) {
        tb_poulsen_options o = tb_poulsen_defaults();
        double gamma[3], epsilon[3];
        o.jacobi = way == 0;
        o.colouring = (tb_poulsen_colouring)way;
        for (int k = 0; k < 3; k++) {
            o.storage = (tb_storage)(TB_STORAGE_FACTORIZED + k);
            const tb_poulsen_result r = solved("poulsen_grid_8", &o);
            gamma[k] = r.gamma;
            epsilon[k] = r.epsilon;
            ck_assert_uint_eq(r.matrix_bytes, k == 0 ? 0 : 17728 * 128);
        }
        for (int k = 1; k < 3; k++) {
            TEST_NEAR_RELATIVE(gamma[k], gamma[0], 1e-10);
            TEST_NEAR_RELATIVE(epsilon[k], epsilon[0], 1e-10);
        }
    }
}
END_TEST

START_TEST(threads_do_not_change_a_byte)
{
    static const char *const SCENES[] = {"poulsen_grid_8", "poulsen_pile_40"};
    for (int i = 0; i < 2 * 3 * 5; i++) {
        tb_poulsen_options o = tb_poulsen_defaults();
        if (SANITIZED && i % 2 && i / 6 != TB_POULSEN_RELAXED) continue;
        o.iterations = THREADED_ITERATIONS;
        o.storage = (tb_storage)(TB_STORAGE_FACTORIZED + i / 2 % 3);
        o.jacobi = i / 6 == 4;
        o.colouring = (tb_poulsen_colouring)(i / 6 % 4);
        const uint64_t one = solved(SCENES[i % 2], &o).hash;
        o.threads = 2;
        if (!SANITIZED) ck_assert_uint_eq(solved(SCENES[i % 2], &o).hash, one);
        o.threads = 5;
        ck_assert_uint_eq(solved(SCENES[i % 2], &o).hash, one);
    }
}
END_TEST

/* Another order, the same fixed point; the same bytes by any number of threads. */
START_TEST(the_unsafe_colour_may_come_first)
{
    tb_poulsen_options o = tb_poulsen_defaults();
    o.colouring = TB_POULSEN_RELAXED;
    o.iterations = 3;
    const tb_poulsen_result last = solved("poulsen_grid_24", &o);
    o.unsafe_first = true;
    const tb_poulsen_result first = solved("poulsen_grid_24", &o);
    ck_assert_uint_ne(first.hash, last.hash);
    o.threads = 3;
    ck_assert_uint_eq(solved("poulsen_grid_24", &o).hash, first.hash);
    if (SANITIZED) return;
    o.iterations = 70; /* 57 with the unsafe colour last, to the quality of 50 sequential sweeps */
    o.gamma = 2852;
    const tb_poulsen_result r = solved("poulsen_grid_24", &o);
    ck_assert_double_le(r.gamma, o.gamma);
    ck_assert_int_ge(r.iterations, 50);
}
END_TEST

/* With a large r Jacobi grows, is brought back and ends with a smaller r. */
START_TEST(growth_is_rolled_back)
{
    tb_poulsen_options o = tb_poulsen_defaults();
    o.jacobi = true;
    o.r = 33;
    o.iterations = 100;
    const tb_poulsen_result r = solved("poulsen_grid_8", &o);
    ck_assert_int_ge(r.reductions, 1);
    TEST_NEAR(r.r, 33 * pow(0.5, r.reductions), 1e-12);
    o.storage = TB_STORAGE_T;
    const tb_poulsen_result t = solved("poulsen_grid_8", &o);
    ck_assert_int_eq(t.reductions, r.reductions);
    TEST_NEAR_RELATIVE(t.gamma, r.gamma, 1e-9);
}
END_TEST

START_TEST(what_does_not_fit_is_named)
{
    tb_poulsen_options o = tb_poulsen_defaults();
    tb_poulsen_result r;
    o.storage = TB_STORAGE_T;
    o.memory_limit = 1 << 20;
    TEST_STATUS(tb_poulsen_solve("poulsen_grid_24", &o, &r, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "T takes 97001472 bytes, and 1048576 are allowed"));
    o = tb_poulsen_defaults();
    o.colouring = TB_POULSEN_BALANCED;
    o.colours = 10;
    TEST_STATUS(tb_poulsen_solve("poulsen_grid_8", &o, &r, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "10 colours are too few: a body has 64 contacts"));
    o = tb_poulsen_defaults();
    o.nu = 1;
    TEST_STATUS(tb_poulsen_solve("poulsen_grid_8", &o, &r, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "nu");
    o = tb_poulsen_defaults();
    TEST_STATUS(tb_poulsen_solve("incline", &o, &r, &error), TB_NOT_FOUND, &error);
}
END_TEST

/* Every iteration and the reductions of R, with each colouring and storage. */
START_TEST(card_and_processor_leave_the_same_bytes)
{
    (void)find_card();
    for (int i = 0; i < 2 * 3 * 4; i++) {
        tb_poulsen_options o = tb_poulsen_defaults();
        const bool pile = i % 2;
        if (SANITIZED && pile && i / 6 != TB_POULSEN_RELAXED) continue;
        o.iterations = PLAYED_ITERATIONS;
        o.storage = (tb_storage)(TB_STORAGE_FACTORIZED + i / 2 % 3);
        o.jacobi = i / 6 == 0;
        o.colouring = (tb_poulsen_colouring)(i / 6 % 4);
        if (!pile && o.colouring == TB_POULSEN_RELAXED) {
            o.r = 40; /* epsilon grows */
            o.tries = 1;
        }
        const char *scene = pile ? "poulsen_pile_40" : "poulsen_grid_8";
        const tb_poulsen_result here = solved(scene, &o);
        o.backend = TB_BACKEND_GPU;
        const tb_poulsen_result there = solved(scene, &o);
        ck_assert_uint_eq(here.hash, there.hash);
        ck_assert_int_eq(here.iterations, there.iterations);
        ck_assert_int_eq(here.reductions, there.reductions);
        ck_assert(here.epsilon == there.epsilon && here.r == there.r);
        if (o.r > 5) ck_assert_int_eq(there.reductions, 1);
    }
    tb_poulsen_options o = tb_poulsen_defaults();
    tb_poulsen_result result;
    o.backend = TB_BACKEND_GPU;
    TEST_STATUS(tb_poulsen_solve("poulsen_grid_8", &o, &result, &error), TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "colouring");
    o.colouring = TB_POULSEN_RELAXED;
    o.unsafe_first = true;
    TEST_STATUS(tb_poulsen_solve("poulsen_grid_8", &o, &result, &error), TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "unsafe_first");
    o.unsafe_first = false;
    o.jacobi = true;
    o.gamma = 1;
    TEST_STATUS(tb_poulsen_solve("poulsen_grid_8", &o, &result, &error), TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "gamma");
}
END_TEST

TEST_MAIN(grids_end_with_the_quality_of_the_thesis, storage_forms_agree,
          threads_do_not_change_a_byte, the_unsafe_colour_may_come_first, growth_is_rolled_back,
          what_does_not_fit_is_named, card_and_processor_leave_the_same_bytes)
