/* A team of lanes solves a problem to the bytes that one processor leaves: over random problems of
 * all laws, in every storage form, by every solver that a device has. Lanes are played in turn, and
 * as threads under ThreadSanitizer, which sees accesses without a sync between them. */
#include "test_util.h"

#include "problem_util.h"
#include "gpu/team_play.h"
#include "team_solve.h"

enum { MEMORY = 16 << 20, MOST_RUNS = 3 };

static made_problem made, given;
static made_solution one, several;
static unsigned char *memory;

static const int32_t LANES[] = {1, 2, 8, 16};

/* Fast memory of a team: none, too little for most factors, enough for all. */
enum { MOST_FAST = 64 << 10 };
static const size_t FAST[] = {0, MOST_FAST, 1 << 10, MOST_FAST}; /* by lanes */
static _Alignas(16) unsigned char fast[MOST_FAST + 16];

/* the address sanitizer finds out-of-bounds accesses with few of them, and is slow */
#ifdef __SANITIZE_ADDRESS__
enum { FIRST_LANES = 1, NUMBERS_OF_LANES = 3, FORMS = 6 };
#else
enum { FIRST_LANES = 0, NUMBERS_OF_LANES = sizeof LANES / sizeof *LANES, FORMS = 12 };
#endif

/* ---- problems ---- */

static int32_t rows_of(tb_law law, tb_random *random)
{
    switch (law) {
    case TB_LAW_PLANAR: return 2;
    case TB_LAW_COULOMB: return 3;
    case TB_LAW_SPIN: return 4;
    case TB_LAW_ROLLING: return 6;
    case TB_LAW_BILATERAL: return 1 + (int32_t)(tb_random_uniform(random) * 5.99);
    default: return 1;
    }
}

/* Blocks of all laws on one to three runs of dofs each. c is a motion's, so that a solution
 * exists. */
static void make_mixed(uint64_t seed, int32_t blocks, int32_t dofs)
{
    tb_random random = tb_random_stream(seed, 4);
    double motion[64];
    made_begin(&made, dofs);
    for (int32_t i = 0; i < dofs; i++) motion[i] = tb_random_normal(&random);
    for (int32_t b = 0; b < blocks; b++) {
        tb_law law = (tb_law)(int)(tb_random_uniform(&random) * 10);
        if (law > TB_LAW_BOX) law = TB_LAW_COULOMB;
        tb_problem *p = &made.problem;
        tb_block *block = &made.blocks[p->number_of_blocks++];
        *block = (tb_block){.law = law,
                            .row = p->number_of_rows,
                            .rows = rows_of(law, &random),
                            .segment = made.next_segment,
                            .value = made.next_value,
                            .mu = TB_R(0.2 + 0.6 * tb_random_uniform(&random)),
                            .lower = TB_R(-0.3),
                            .upper = TB_R(0.2)};
        for (int32_t dof = 0, k = 0; k < MOST_RUNS && dof < dofs; k++) {
            dof += (int32_t)(tb_random_uniform(&random) * dofs / 3);
            int32_t count = 1 + (int32_t)(tb_random_uniform(&random) * 7);
            if (dof >= dofs) dof = dofs - 1;
            if (count > dofs - dof) count = dofs - dof;
            made.segments[made.next_segment++] = (tb_segment){dof, count};
            block->segments++;
            block->width += count;
            dof += count;
        }
        for (int32_t i = 0; i < block->rows; i++) {
            double c = 0;
            for (int32_t k = 0; k < block->segments; k++) {
                const tb_segment run = made.segments[block->segment + k];
                for (int32_t j = 0; j < run.count; j++) {
                    const double y = tb_random_normal(&random);
                    made.values[made.next_value++] = TB_R(y);
                    c += y * motion[run.dof + j];
                }
            }
            made.compliance[p->number_of_rows] = TB_R(0.1 * tb_random_uniform(&random));
            made.c[p->number_of_rows++] = TB_R(c);
        }
    }
}

/* ---- the same solve twice ---- */

static bool same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* Number of bytes that have been written; the bytes behind them are untouched. */
static int fast_used;
static int fast_changed(unsigned char before, size_t bytes)
{
    int changed = 0;
    for (size_t i = 0; i < bytes; i++) changed += fast[i] != before;
    for (size_t i = bytes; i < sizeof fast; i++) ck_assert_int_eq(fast[i], before);
    return changed;
}

static void compare(const tb_problem *problem, const tb_solve_options *options, const tb_real *warm,
                    const char *what)
{
    if (memory == NULL) ck_assert_ptr_nonnull(memory = aligned_alloc(64, MEMORY));
    made_solve(problem, options, warm, &one);
    const size_t rows = (size_t)problem->number_of_rows * sizeof(tb_real);
    const size_t dofs = (size_t)problem->number_of_dofs * sizeof(double);
    for (int k = FIRST_LANES; k < NUMBERS_OF_LANES; k++) {
        /* earlier contents must not matter */
        memset(memory, 0xff - k, MEMORY);
        memset(&several, 0xff - k, sizeof several);
        memset(&several.solution, 0, sizeof several.solution);
        several.solution.lambda = several.lambda;
        several.solution.fine = several.fine;
        several.solution.xi = several.xi;
        several.solution.whitened = problem->values ? several.whitened : NULL;
        several.solution.statuses = several.statuses;
        const team_solve_call call = {.problem = problem,
                                      .options = options,
                                      .solver = tb_solver_number(options->solver),
                                      .lanes = LANES[k],
                                      .warm = warm,
                                      .memory = memory,
                                      .bytes = MEMORY};
        memset(fast, 0xff - k, sizeof fast);
        team_play_fast(FAST[k] > 0 ? fast : NULL, FAST[k]);
        several.returned = team_solve(&call, &several.solution);
        team_play_fast(NULL, 0);
        fast_used += fast_changed((unsigned char)(0xff - k), FAST[k]);
        ck_assert_msg(several.returned == one.returned, "%s, %d lanes: %s, not %s", what, LANES[k],
                      tb_status_name(several.returned), tb_status_name(one.returned));
        if (one.returned != TB_OK) continue;
        ck_assert_msg(same(several.lambda, one.lambda, rows) && same(several.xi, one.xi, rows) &&
                          same(several.statuses, one.statuses, (size_t)problem->number_of_blocks),
                      "%s, %d lanes: other bytes", what, LANES[k]);
        if (problem->values) ck_assert(same(several.whitened, one.whitened, dofs));
        ck_assert(several.solution.has_fine == one.solution.has_fine);
        if (one.solution.has_fine) ck_assert(same(several.fine, one.fine, rows));
        ck_assert_int_eq(several.solution.iterations, one.solution.iterations);
        ck_assert_int_eq(several.solution.halvings, one.solution.halvings);
        ck_assert_int_eq((int)several.solution.status, (int)one.solution.status);
        ck_assert_str_eq(several.solution.solver, one.solution.solver);
        ck_assert(same(&several.solution.residuals, &one.solution.residuals, sizeof(tb_residuals)));
    }
}

/* Cold, and warm from near the result. */
static void compare_twice(const tb_problem *problem, const tb_solve_options *options,
                          const char *what)
{
    static tb_real warm[MADE_ROWS];
    compare(problem, options, NULL, what);
    for (int32_t i = 0; i < problem->number_of_rows; i++)
        warm[i] = one.lambda[i] * TB_R(i % 5 == 0 ? 0.9 : 1.0);
    compare(problem, options, warm, what);
}

/* ---- tests ---- */

static const double TOLERANCE = sizeof(tb_real) == 8 ? 1e-9 : 1e-5;

static void all_forms(const char *solver)
{
    char what[100];
    for (int k = 0; k < FORMS; k++) {
        tb_solve_options options = made_options(solver, TOLERANCE);
        options.maximum_iterations = k == 3 ? 70 : 25;
        options.storage = (tb_storage)(k % 4);
        options.r_strategy = k < 4 ? TB_R_DIAGONAL : (tb_r_strategy)(k % 3);
        options.local_solve = k % 3 != 1;
        snprintf(what, sizeof what, "%s, problem %d", solver, k);
        if (k & 1)
            make_mixed((uint64_t)k, 9 + k, 11 + k);
        else
            made_random(&made, (uint64_t)k, 8 + 2 * k, 3 + k, 0.5, 1);
        if (k % 3 == 0) made.problem.compliance = made.compliance;
        compare_twice(&made.problem, &options, what);
    }
}

START_TEST(gauss_seidel_by_a_team_leaves_the_bytes_of_one)
{
    all_forms("sor");
}
END_TEST

START_TEST(jacobi_by_a_team_leaves_the_bytes_of_one)
{
    all_forms("jor");
}
END_TEST

START_TEST(every_stop_test_is_the_team_s_too)
{
    for (int stop = TB_STOP_RESIDUAL; stop <= TB_STOP_ONE_SIDED; stop++) {
        tb_solve_options options = made_options(stop % 2 ? "jor" : "sor", 1e-3);
        options.maximum_iterations = 40;
        options.stop = (tb_stop_test)stop;
        make_mixed(100 + (uint64_t)stop, 12, 15);
        compare_twice(&made.problem, &options, "stop tests");
    }
}
END_TEST

START_TEST(a_given_matrix_is_the_team_s_too)
{
    for (int k = 0; k < 4; k++) {
        made_random(&made, 40 + (uint64_t)k, 12, 4, 0.7, 1);
        made_given(&given, &made);
        tb_solve_options options = made_options(k % 2 ? "jor" : "sor", TOLERANCE);
        options.maximum_iterations = 30;
        options.storage = k < 2 ? TB_STORAGE_AUTO : TB_STORAGE_T;
        compare_twice(&given.problem, &options, "given");
        free(given.dense);
    }
}
END_TEST

/* omega too large: impulses go back and are halved */
START_TEST(divergence_is_the_team_s_too)
{
    make_mixed(7, 20, 12);
    tb_solve_options options = made_options("jor", TOLERANCE);
    options.omega = 1.9;
    options.maximum_iterations = 60;
    compare_twice(&made.problem, &options, "divergence");
    ck_assert_int_gt(one.solution.halvings, 0);
    made.c[4] = TB_R(NAN);
    compare(&made.problem, &options, NULL, "not a number");
}
END_TEST

START_TEST(newton_and_auto_by_a_team_leave_the_bytes_of_one)
{
    for (int k = 0; k < 5; k++) {
        tb_solve_options options = made_options(k % 2 ? "auto" : "newton", TOLERANCE);
        options.maximum_iterations = 60;
        if (k % 5 < 2)
            make_mixed((uint64_t)k, 14, 16);
        else
            made_random(&made, (uint64_t)k, 16 + k, 5, 0.6, 1);
        if (k % 3 == 0) made.problem.compliance = made.compliance;
        if (k % 5 == 4) {
            made_given(&given, &made);
            compare_twice(&given.problem, &options, "newton, given");
            free(given.dense);
        } else {
            compare_twice(&made.problem, &options, "newton");
        }
    }
}
END_TEST

/* Islands of a problem with many dofs are solved apart. */
START_TEST(islands_by_a_team_leave_the_bytes_of_one)
{
    for (int k = 0; k < 3; k++) {
        tb_solve_options options = made_options("auto", TOLERANCE);
        options.maximum_iterations = k == 0 ? 20 : 60;
        made_groups(&made, 20 + (uint64_t)k, 30, 12, 2 + 2 * k, 0.6);
        if (k == 1) made.problem.compliance = made.compliance;
        if (k == 1) made.compliance[7] = TB_R(0.1);
        compare_twice(&made.problem, &options, "islands");
    }
}
END_TEST

/* Laws that it takes, of one run of dofs or two; and problems on which its turns go round. */
START_TEST(staggered_projections_by_a_team_leave_the_bytes_of_one)
{
    for (int k = 0; k < 4; k++) {
        tb_solve_options options = made_options("staggered", TOLERANCE);
        options.maximum_iterations = 20;
        made_random(&made, (uint64_t)k, 5 + 4 * k, 3 + 2 * k, k == 2 ? 1e3 : 0.5, 1);
        if (k % 3 == 0) made.problem.compliance = made.compliance;
        for (int32_t b = 0; b < made.problem.number_of_blocks; b++) {
            tb_block *block = &made.blocks[b];
            if (k < 2 || b % 4 == 0) continue;
            if (b % 4 == 2) block->law = TB_LAW_BILATERAL;
            if (b % 8 == 3) block->mu = 0;
        }
        if (k == 3) {
            made_given(&given, &made);
            compare_twice(&given.problem, &options, "staggered, given");
            free(given.dense);
        } else {
            compare_twice(&made.problem, &options, "staggered");
        }
        ck_assert_str_eq(one.solution.solver, "staggered");
        ck_assert_int_gt(one.solution.iterations, k == 0 ? 2 : 5);
    }
    make_mixed(3, 20, 20); /* with spin */
    tb_solve_options options = made_options("staggered", TOLERANCE);
    compare(&made.problem, &options, NULL, "staggered, spin");
    TEST_STATUS(one.returned, TB_UNSUPPORTED, NULL);
}
END_TEST

/* Sweeps need none; Newton keeps its factor there, where that fits. */
START_TEST(fast_memory_holds_what_newton_factors_and_changes_no_byte)
{
    for (int k = 0; k < 4; k++) {
        tb_solve_options options = made_options(k % 2 ? "newton" : "sor", TOLERANCE);
        options.maximum_iterations = 40;
        make_mixed(60 + (uint64_t)k, 12, k < 2 ? 14 : 56); /* dense, and by nodes */
        fast_used = 0;
        compare_twice(&made.problem, &options, "fast memory");
        ck_assert((fast_used > 0) == (k % 2 == 1));
    }
}
END_TEST

TEST_MAIN(gauss_seidel_by_a_team_leaves_the_bytes_of_one, jacobi_by_a_team_leaves_the_bytes_of_one,
          every_stop_test_is_the_team_s_too, a_given_matrix_is_the_team_s_too,
          divergence_is_the_team_s_too, newton_and_auto_by_a_team_leave_the_bytes_of_one,
          islands_by_a_team_leave_the_bytes_of_one,
          staggered_projections_by_a_team_leave_the_bytes_of_one,
          fast_memory_holds_what_newton_factors_and_changes_no_byte)
