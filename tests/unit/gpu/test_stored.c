/* The stored prox iterations (Nützi): every variant against the fixed point and against each other,
 * on the processor and on a card. Where there is no card, one that the processor plays runs the
 * kernels. */
#include "contact/prox.h"
#include "gpu_qp_util.h"
#include "solve/stored/stored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTACTS = 110 }; /* four diagonal blocks of 32, the last one smaller */

static tb_prox_system *random_system(int32_t contacts, double alpha)
{
    tb_prox_system *system = NULL;
    tb_error error;
    TEST_OK(tb_prox_system_random(contacts, 5, alpha, &system, &error), &error);
    ck_assert_int_eq(tb_prox_system_contacts(system), contacts);
    return system;
}

/* A chain of contacts in which each touches the next two: sparse, and far from diagonal. */
static tb_prox_system *chain_system(double alpha)
{
    enum { N = 70, ROWS = 3 * N };
    static char text[400000];
    size_t at = 0;
    at += (size_t)snprintf(text + at, sizeof text - at, "3\n%d\n", N);
    at += (size_t)snprintf(text + at, sizeof text - at, "0\n%d\n%d\n%d\n%d\n", ROWS, ROWS, ROWS,
                           ROWS);
    for (int j = 0; j < ROWS; j++)
        for (int i = 0; i < ROWS; i++) {
            const int apart = abs(i / 3 - j / 3);
            const double g = i == j                            ? 2.5
                             : apart <= 2 && i % 3 == j % 3    ? 0.4 / (1 + apart)
                             : apart == 1 && i % 3 + j % 3 < 3 ? 0.1
                                                               : 0;
            at += (size_t)snprintf(text + at, sizeof text - at, "%.3g%c", g,
                                   i + 1 < ROWS ? ' ' : '\n');
            ck_assert(at < sizeof text - 64);
        }
    for (int i = 0; i < ROWS; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%.17g ",
                               i % 3 == 0 ? -1 - 0.3 * sin(i) : 0.6 * cos(1.7 * i));
    for (int i = 0; i < N; i++) at += (size_t)snprintf(text + at, sizeof text - at, "0.5 ");
    tb_problem_file *file = NULL;
    tb_prox_system *system = NULL;
    tb_error error;
    TEST_OK(tb_problem_load_memory(text, at, "chain", &file, &error), &error);
    TEST_OK(tb_prox_system_of_problem(file, alpha, &system, &error), &error);
    tb_problem_destroy(file);
    ck_assert(tb_prox_system_blocks(system) < 6 * N);
    return system;
}

/* A start that is no fixed point and lies outside of the cone here and there. */
static void start_from(double *lambda, int32_t contacts)
{
    for (int32_t i = 0; i < 3 * contacts; i++) lambda[i] = 1e-3 * sin(3.1 * i);
}

static tb_prox_result iterate(const tb_prox_system *system, const tb_prox_options *options,
                              double *lambda)
{
    tb_prox_result result;
    tb_error error;
    TEST_OK(tb_prox_iterate(system, options, lambda, &result, &error), &error);
    return result;
}

/* Whether the variant can run there: cuBLAS is not everywhere. */
static bool needs_library(const char *name)
{
    return strcmp(name, "jor1") == 0 || strcmp(name, "jor2") == 0;
}

START_TEST(every_variant_ends_at_the_fixed_point)
{
    tb_prox_system *systems[2] = {random_system(CONTACTS, 1), chain_system(0.5)};
    double answer[3 * CONTACTS], lambda[3 * CONTACTS];
    for (int s = 0; s < 2; s++) {
        const int32_t contacts = tb_prox_system_contacts(systems[s]);
        for (int v = 0; tb_prox_variant_name(v); v++)
            for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
                const bool single = precision == TB_FLOAT;
                tb_prox_options options = tb_prox_defaults();
                options.variant = tb_prox_variant_name(v);
                options.precision = (tb_precision)precision;
                options.relative = options.absolute = single ? 1e-6 : 1e-13;
                start_from(lambda, contacts);
                const tb_prox_result result = iterate(systems[s], &options, lambda);
                ck_assert(result.converged);
                ck_assert(result.residual < (single ? 1e-4 : 1e-11));
                if (v == 0 && !single) memcpy(answer, lambda, sizeof answer);
                for (int i = 0; i < 3 * contacts; i++)
                    TEST_NEAR(lambda[i], answer[i], single ? 1e-4 : 1e-11);
            }
        tb_prox_system_destroy(systems[s]);
    }
}
END_TEST

/* Groups of one are the exact iteration only for frictionless contacts. Groups of any size give the
 * result of the sparse form, and a diagonal block of 64 gives that of one of 32, to rounding. */
START_TEST(forms_of_one_iteration_agree_after_each_sweep)
{
    static const char *const PAIRS[][2] = {{"full-sor-32", "full-sor-64"},
                                           {"full-sor-32", "full-sor"},
                                           {"full-sor-32", "sparse-full-sor"},
                                           {"relaxed-sor-32", "sparse-relaxed-sor-32"},
                                           {"jor5", "sparse-jor"},
                                           {"jor5", "jor3"},
                                           {"jor5", "jor"}};
    tb_prox_system *system = chain_system(0.5);
    const int32_t contacts = tb_prox_system_contacts(system);
    double lambda[2][3 * CONTACTS];
    for (size_t p = 0; p < sizeof PAIRS / sizeof PAIRS[0]; p++)
        for (int32_t sweeps = 1; sweeps < 4; sweeps++) {
            for (int k = 0; k < 2; k++) {
                tb_prox_options options = tb_prox_defaults();
                options.variant = PAIRS[p][k];
                options.iterations = sweeps;
                options.check_period = 0;
                start_from(lambda[k], contacts);
                const tb_prox_result result = iterate(system, &options, lambda[k]);
                ck_assert_int_eq(result.iterations, sweeps);
                ck_assert(!result.converged);
            }
            for (int i = 0; i < 3 * contacts; i++) TEST_NEAR(lambda[0][i], lambda[1][i], 1e-14);
        }
    tb_prox_system_destroy(system);
}
END_TEST

START_TEST(bytes_do_not_depend_on_the_threads)
{
    tb_prox_system *system = random_system(CONTACTS, 0.35);
    double lambda[3][3 * CONTACTS];
    for (int k = 0; k < 3; k++) {
        tb_prox_options options = tb_prox_defaults();
        options.variant = k == 0 ? "jor5" : "jor7";
        options.threads = k + 1;
        options.iterations = 20;
        start_from(lambda[k], CONTACTS);
        (void)iterate(system, &options, lambda[k]);
    }
    ck_assert_mem_eq(lambda[0], lambda[1], sizeof lambda[0]);
    ck_assert_mem_eq(lambda[0], lambda[2], sizeof lambda[0]);
    tb_prox_system_destroy(system);
}
END_TEST

/* A card sums as the processor does, but where its blocks share a sum or a library makes it. */
START_TEST(card_and_processor_agree)
{
    (void)card_is_played();
    tb_prox_system *systems[2] = {random_system(CONTACTS, 1), chain_system(0.5)};
    double lambda[2][3 * CONTACTS];
    for (int s = 0; s < 2; s++) {
        const int32_t contacts = tb_prox_system_contacts(systems[s]);
        const size_t bytes = 3 * (size_t)contacts * sizeof(double);
        for (int v = 0; tb_prox_variant_name(v); v++)
            for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
                const char *name = tb_prox_variant_name(v);
                tb_prox_options options = tb_prox_defaults();
                tb_prox_result result[2] = {{0}};
                options.variant = name;
                options.precision = (tb_precision)precision;
                options.iterations = 7;
                options.check_period = 3;
                if (needs_library(name)) continue;
                for (int k = 0; k < 2; k++) {
                    options.backend = k == 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU;
                    start_from(lambda[k], contacts);
                    result[k] = iterate(systems[s], &options, lambda[k]);
                }
                ck_assert_int_eq(result[0].iterations, result[1].iterations);
                if (strcmp(name, "jor") != 0 && strcmp(name, "full-sor") != 0)
                    ck_assert_mem_eq(lambda[0], lambda[1], bytes);
                for (int i = 0; i < 3 * contacts; i++)
                    TEST_NEAR(lambda[0][i], lambda[1][i], precision == TB_FLOAT ? 1e-6 : 1e-14);
            }
        tb_prox_system_destroy(systems[s]);
    }
}
END_TEST

START_TEST(the_stop_test_ends_a_launch_of_a_card)
{
    (void)card_is_played();
    tb_prox_system *system = random_system(CONTACTS, 1);
    double lambda[3 * CONTACTS] = {0};
    static const char *const NAMES[] = {"jor", "full-sor", "jor5", "full-sor-32", "relaxed-sor-16"};
    for (size_t v = 0; v < sizeof NAMES / sizeof NAMES[0]; v++) {
        tb_prox_options options = tb_prox_defaults();
        options.variant = NAMES[v];
        options.backend = TB_BACKEND_GPU;
        options.relative = options.absolute = 1e-12;
        memset(lambda, 0, sizeof lambda);
        const tb_prox_result result = iterate(system, &options, lambda);
        ck_assert(result.converged && result.iterations < 200);
        ck_assert(result.residual < 1e-10);
    }
    tb_prox_system_destroy(system);
}
END_TEST

static tb_problem_result solve_on(const tb_problem_file *file, int32_t most, double *reactions)
{
    tb_solve_options options = tb_solve_defaults();
    tb_problem_result result;
    tb_error error;
    options.tolerance = 1e-8;
    options.maximum_iterations = most;
    TEST_OK(
        tb_problem_solve_on(file, TB_BACKEND_GPU, 0, &options, reactions, NULL, &result, &error),
        &error);
    return result;
}

/* The impulses give the velocities of the processor's solution, for every solver. */
START_TEST(problems_are_solved_on_a_card)
{
    static const char *const NAMES[] = {"balls_3", "box_slides", "box_without_friction",
                                        "roof_falls", "roof_stands"};
    (void)card_is_played();
    for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++) {
        char path[128];
        double reactions[2][512], velocities[2][512];
        tb_solve_options options = tb_solve_defaults();
        tb_problem_result result;
        tb_problem_file *file = NULL;
        tb_error error;
        options.tolerance = 1e-10;
        options.maximum_iterations = 100000;
        snprintf(path, sizeof path, "tests/data/problems/%s.dat", NAMES[k]);
        TEST_OK(tb_problem_load(path, &file, &error), &error);
        const int32_t rows = tb_problem_describe(file).rows;
        ck_assert_int_le(rows, 512);
        for (int c = 0; c < 2; c++) {
            TEST_OK(tb_problem_solve_on(file, c == 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU, 0, &options,
                                        reactions[c], velocities[c], &result, &error),
                    &error);
            ck_assert_int_eq(result.on_gpu, c == 1);
            ck_assert_int_eq(strcmp(result.solver, "full-sor") == 0, c == 1);
            ck_assert(result.status == TB_OK && result.residual <= 1e-10);
        }
        for (int i = 0; i < rows; i++) TEST_NEAR(velocities[0][i], velocities[1][i], 1e-7);
        tb_problem_destroy(file);
    }
}
END_TEST

static bool always(void *context)
{
    return context == NULL;
}

/* Contacts in the plane; one iteration is too few, and then the processor solves. */
START_TEST(a_planar_problem_runs_on_a_card_and_too_few_iterations_end_on_the_processor)
{
    static const char TWO[] = "2\n2\n0\n4\n4\n4\n4\n2 0 0.5 0\n0 1 0 0.2\n0.5 0 2 0\n0 0.2 0 1\n"
                              "-1 0.3 -1 2\n0.5 0.5\n";
    double here[4], there[4];
    tb_problem_file *file = NULL;
    tb_solve_options options = tb_solve_defaults();
    tb_problem_result result;
    tb_error error;
    (void)card_is_played();
    TEST_OK(tb_problem_load_memory(TWO, sizeof TWO - 1, "two", &file, &error), &error);
    options.tolerance = 1e-12;
    TEST_OK(tb_problem_solve(file, &options, here, NULL, &result, &error), &error);
    ck_assert(!result.on_gpu);
    result = solve_on(file, 1000, there);
    ck_assert(result.on_gpu && result.residual <= 1e-8);
    for (int i = 0; i < 4; i++) TEST_NEAR(here[i], there[i], 1e-7);
    result = solve_on(file, 1, there);
    ck_assert(!result.on_gpu && result.status != TB_DIVERGED);
    ck_assert_str_ne(result.solver, "full-sor");
    options.cancelled = always;
    TEST_STATUS(tb_problem_solve_on(file, TB_BACKEND_GPU, 0, &options, NULL, NULL, &result, &error),
                TB_CANCELLED, &error);
    tb_problem_destroy(file);
}
END_TEST

/* One iteration from zero against the projections of d that it still has. */
static void prox_part_run_on(tb_backend_choice backend, uint32_t left_out, bool normal,
                             bool tangential)
{
    tb_prox_system *system = random_system(CONTACTS, 1);
    tb_prox_options options = tb_prox_defaults();
    double lambda[3 * CONTACTS] = {0};
    int moved = 0; /* projections that do something */
    options.variant = "full-sor-32";
    options.iterations = 1;
    options.check_period = 0;
    options.left_out = left_out;
    options.backend = backend;
    iterate(system, &options, lambda);
    for (int i = 0; i < CONTACTS; i++) {
        double x[3] = {system->d[3 * i], system->d[3 * i + 1], system->d[3 * i + 2]};
        if (normal) x[0] = tb_prox_unilateral(x[0]);
        if (tangential) tb_prox_disk(x + 1, system->mu[i] * x[0]);
        for (int k = 0; k < 3; k++) TEST_NEAR(lambda[3 * i + k], x[k], 0);
        for (int k = 0; k < 3; k++) moved += x[k] != system->d[3 * i + k];
    }
    ck_assert(moved > 0 || (!normal && !tangential));
    tb_prox_system_destroy(system);
}

static void prox_part_run(uint32_t left_out, bool normal, bool tangential)
{
    (void)card_is_played();
    prox_part_run_on(TB_BACKEND_CPU, left_out, normal, tangential);
    prox_part_run_on(TB_BACKEND_GPU, left_out, normal, tangential);
}

/* From zero, one iteration without propagation projects d; without projections it is d itself;
 * without writes it is zero. The first diagonal block does not see step B. */
START_TEST(parts_of_an_iteration_can_be_left_out)
{
    prox_part_run(TB_PROX_STEP_B | TB_PROX_PROPAGATION, true, true);
    prox_part_run(TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL, false, true);
    prox_part_run(TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL | TB_PROX_TANGENTIAL, false,
                  false);
    tb_prox_system *system = random_system(CONTACTS, 1);
    tb_prox_options options = tb_prox_defaults();
    tb_prox_result result;
    tb_error error;
    double whole[3 * CONTACTS] = {0}, part[3 * CONTACTS] = {0}, none[3 * CONTACTS] = {0};
    options.variant = "full-sor-32";
    options.iterations = 1;
    options.check_period = 0;
    iterate(system, &options, whole);
    options.left_out = TB_PROX_STEP_B;
    options.backend = TB_BACKEND_GPU;
    iterate(system, &options, none);
    options.backend = TB_BACKEND_CPU;
    iterate(system, &options, part);
    ck_assert_int_eq(memcmp(none, part, sizeof part), 0);
    memset(none, 0, sizeof none);
    ck_assert_int_eq(memcmp(whole, part, 3 * 32 * sizeof *part), 0);
    ck_assert_int_ne(memcmp(whole + 96, part + 96, 3 * 32 * sizeof *part), 0);
    options.left_out = TB_PROX_WRITES;
    iterate(system, &options, none);
    for (int i = 0; i < 3 * CONTACTS; i++) TEST_NEAR(none[i], 0, 0);
    /* variants without parts to leave out, and bits that name no part */
    options.variant = "jor5";
    TEST_STATUS(tb_prox_iterate(system, &options, part, &result, &error), TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "left_out");
    options.variant = "full-sor-32";
    options.left_out = TB_PROX_BARRIERS;
    TEST_STATUS(tb_prox_iterate(system, &options, part, &result, &error), TB_INVALID_ARGUMENT,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, "race"));
    options.left_out = 1 << 9;
    TEST_STATUS(tb_prox_iterate(system, &options, part, &result, &error), TB_INVALID_ARGUMENT,
                &error);
    tb_prox_system_destroy(system);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    tb_prox_system *system = NULL;
    tb_prox_result result;
    tb_error error;
    double lambda[3] = {0};
    TEST_STATUS(tb_prox_system_random(0, 1, 1, &system, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "contacts");
    TEST_STATUS(tb_prox_system_random(1, 1, 3, &system, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "alpha");
    TEST_STATUS(tb_prox_system_random(1000000, 1, 1, &system, &error), TB_RESOURCE_EXHAUSTED,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, "bytes"));
    TEST_OK(tb_prox_system_random(1, 1, 1, &system, &error), &error);
    tb_prox_options options = tb_prox_defaults();
    options.variant = "jor6";
    TEST_STATUS(tb_prox_iterate(system, &options, lambda, &result, &error), TB_NOT_FOUND, &error);
    ck_assert_str_eq(error.field, "variant");
    options = tb_prox_defaults();
    options.iterations = 0;
    TEST_STATUS(tb_prox_iterate(system, &options, lambda, &result, &error), TB_INVALID_ARGUMENT,
                &error);
    ck_assert_str_eq(error.field, "iterations");
    tb_prox_system_destroy(system);
}
END_TEST

TEST_MAIN(every_variant_ends_at_the_fixed_point, forms_of_one_iteration_agree_after_each_sweep,
          bytes_do_not_depend_on_the_threads, card_and_processor_agree,
          the_stop_test_ends_a_launch_of_a_card, problems_are_solved_on_a_card,
          a_planar_problem_runs_on_a_card_and_too_few_iterations_end_on_the_processor,
          parts_of_an_iteration_can_be_left_out, what_makes_no_sense_is_refused)
