/* Quadratic programs with bounds on a card against the processor's: the same sets, and KKT
 * conditions that are reckoned here from the numbers alone. Where there is no card, one that the
 * processor plays runs the same kernels on small programs. */
#include "gpu_qp_util.h"

/* n, half-bandwidth; small ones first */
static const int32_t SIZES[][2] = {{1, 0},     {5, 4},   {65, 64},  {130, 31},
                                   {230, 60},  {64, 8},  {257, 64}, {300, 150},
                                   {200, 199}, {400, 0}, {700, 60}, {1500, 333}};
enum { FEW_SIZES = 3, SMALL_SIZES = 5, NUMBER_OF_SIZES = sizeof SIZES / sizeof SIZES[0] };

static const double TOLERANCE[] = {[TB_DOUBLE] = 1e-10, [TB_FLOAT] = 1e-4};

static tb_qp_options options_of(tb_qp_method method, tb_precision precision,
                                tb_backend_choice where)
{
    tb_qp_options options = tb_qp_defaults();
    options.method = method;
    options.precision = precision;
    options.backend = where;
    return options;
}

/* Both from the same start; on the card twice, and the bytes are the same. */
static void compare(given_qp *g, const uint8_t *start, tb_qp_method method, tb_precision precision)
{
    const size_t m = (size_t)g->program.constraints;
    const tb_qp_options on_card = options_of(method, precision, TB_BACKEND_GPU);
    const tb_qp_options here = options_of(method, precision, TB_BACKEND_CPU);
    solved a = solve_from(g, start, &here), b = solve_from(g, start, &on_card);
    ck_assert_int_eq(a.result.status, TB_OK);
    ck_assert_msg(b.result.status == TB_OK, "n %d, half %d: %s, kkt %g", g->program.n,
                  g->program.half_bandwidth, tb_status_name(b.result.status),
                  b.result.kkt.relative);
    ck_assert_mem_eq(a.active, b.active, m);
    const double residual = kkt_of(g, &b);
    ck_assert_msg(residual <= TOLERANCE[precision], "n %d, half %d: residual %g", g->program.n,
                  g->program.half_bandwidth, residual);
    ck_assert(b.result.kkt.relative <= TOLERANCE[precision]);
    ck_assert_int_eq(a.result.active, b.result.active);
    ck_assert_int_eq(a.result.corrected, b.result.corrected);
    if (method == TB_QP_PDAS) {
        ck_assert_int_eq(b.result.iterations, a.result.iterations);
        ck_assert_int_eq(b.result.factorizations, b.result.iterations);
    } else {
        ck_assert_int_eq(b.result.factorizations, 1 + b.result.resets);
    }
    solved c = solve_from(g, start, &on_card);
    ck_assert_mem_eq(b.x, c.x, (size_t)g->program.n * sizeof *b.x);
    ck_assert_mem_eq(b.lambda, c.lambda, m * sizeof *b.lambda);
    ck_assert_int_eq(b.result.solves, c.result.solves);
    free_solved(&a);
    free_solved(&b);
    free_solved(&c);
}

/* A program and the empty set to start from; the card is found first. */
typedef struct trial {
    given_qp g;
    uint8_t *start;
    size_t constraints;
    bool played;
} trial;

static trial open_trial(int32_t n, int32_t half, uint64_t seed, int kind)
{
    trial t = {.played = card_is_played(), .g = given_program(n, half, seed, kind)};
    t.constraints = (size_t)t.g.program.constraints;
    t.start = calloc(t.constraints + 1, 1);
    ck_assert_ptr_nonnull(t.start);
    return t;
}

static void close_trial(trial *t)
{
    free(t->start);
    free_given(&t->g);
}

/* A card that is played is slow: it gets `few` of the sizes. */
static void compare_all(int kind, int32_t few)
{
    /* the processor takes 40 s for pairs of the largest */
    const int32_t all = NUMBER_OF_SIZES - (kind >= FACETS ? 1 : 0);
    const int32_t sizes = card_is_played() ? few : all;
    for (int32_t k = 0; k < sizes; k++) {
        trial t = open_trial(SIZES[k][0], SIZES[k][1], (uint64_t)k + 1, kind);
        for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++)
            for (int method = TB_QP_PDAS; method <= TB_QP_SCHURPA; method++)
                compare(&t.g, t.start, (tb_qp_method)method, (tb_precision)precision);
        close_trial(&t);
    }
}

START_TEST(programs_from_a_cold_start_end_in_the_sets_of_the_processor)
{
    compare_all(LOWER_BOUNDS, SMALL_SIZES);
}
END_TEST

START_TEST(bounds_on_both_sides_that_are_not_zero_are_solved)
{
    compare_all(BOTH_BOUNDS, SMALL_SIZES);
}
END_TEST

START_TEST(facets_of_pairs_are_solved_as_bounds_in_other_coordinates)
{
    compare_all(FACETS, FEW_SIZES);
}
END_TEST

START_TEST(bounds_and_facets_of_different_pairs_are_solved_together)
{
    compare_all(BOUNDS_AND_FACETS, FEW_SIZES);
}
END_TEST

START_TEST(a_good_start_needs_one_factorization_and_few_batches)
{
    trial t = open_trial(200, 30, 3, LOWER_BOUNDS);
    const tb_qp_options here = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_CPU);
    const tb_qp_options on_card = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_GPU);
    solved a = solve_from(&t.g, t.start, &here);
    for (int32_t delta = 0; delta <= 50; delta += 25) {
        memcpy(t.start, a.active, t.constraints);
        for (int32_t i = 0; i < delta; i++) t.start[i] = !t.start[i];
        solved b = solve_from(&t.g, t.start, &on_card);
        ck_assert_int_eq(b.result.status, TB_OK);
        ck_assert_mem_eq(a.active, b.active, t.constraints);
        ck_assert_int_eq(b.result.factorizations, 1);
        ck_assert_int_eq(b.result.corrected, delta);
        ck_assert_int_ge(b.result.solves, delta + 1);
        ck_assert_int_le(b.result.batches, b.result.iterations);
        if (delta == 0) ck_assert_int_eq(b.result.iterations, 1);
        compare(&t.g, t.start, TB_QP_SCHURPA, TB_FLOAT);
        free_solved(&b);
    }
    free_solved(&a);
    close_trial(&t);
}
END_TEST

START_TEST(small_borders_reset_and_change_nothing_else)
{
    trial t = open_trial(150, 20, 4, LOWER_BOUNDS);
    tb_qp_options options = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_CPU);
    solved a = solve_from(&t.g, t.start, &options);
    options.backend = TB_BACKEND_GPU;
    for (int k = 0; k < 2; k++) {
        options.maximum_changes = k == 0 ? 3 : 500;
        options.maximum_solves = k == 0 ? 500 : 12;
        solved b = solve_from(&t.g, t.start, &options);
        ck_assert_int_eq(b.result.status, TB_OK);
        ck_assert_int_gt(b.result.resets, 0);
        ck_assert_int_eq(b.result.factorizations, 1 + b.result.resets);
        ck_assert_int_le(b.result.largest_border, k == 0 ? 3 : 12);
        ck_assert_mem_eq(a.active, b.active, t.constraints);
        free_solved(&b);
    }
    free_solved(&a);
    close_trial(&t);
}
END_TEST

START_TEST(equalities_hold_and_no_constraints_are_one_system)
{
    trial t = open_trial(90, 12, 5, LOWER_BOUNDS);
    t.g.program.equalities = 7;
    for (int32_t i = 0; i < 7; i++) t.g.b[i] = 0.25 * (i - 3);
    compare(&t.g, t.start, TB_QP_SCHURPA, TB_DOUBLE);
    compare(&t.g, t.start, TB_QP_PDAS, TB_FLOAT);
    t.g.program.equalities = t.g.program.constraints = 0;
    compare(&t.g, t.start, TB_QP_SCHURPA, TB_DOUBLE);
    close_trial(&t);
}
END_TEST

/* ---- data kept from solve to solve ---- */

/* f and b move a little; from the last set. Twice with the same solves: the bytes are the same. */
static void solve_in_a_row(tb_backend_choice where, tb_precision precision, int kind)
{
    enum { ROUNDS = 3, TWICE = 2 };
    tb_error error;
    solved first[ROUNDS];
    const tb_qp_options options = options_of(TB_QP_SCHURPA, precision, where);
    const tb_qp_options here = options_of(TB_QP_SCHURPA, precision, TB_BACKEND_CPU);
    for (int turn = 0; turn < TWICE; turn++) {
        trial t = open_trial(75, 12, 6, kind);
        tb_random random = tb_random_stream(6, 6);
        tb_qp_solver *solver = NULL;
        TEST_OK(tb_qp_solver_open(&t.g.program, &options, &solver, &error), &error);
        for (int round = 0; round < ROUNDS; round++) {
            solved kept = solve_with(&t.g, solver, t.start, NULL);
            solved fresh = solve_from(&t.g, t.start, &here);
            ck_assert_int_eq(kept.result.status, TB_OK);
            ck_assert(kept.result.kkt.relative <= TOLERANCE[precision]);
            ck_assert(kkt_of(&t.g, &kept) <= TOLERANCE[precision]);
            ck_assert_mem_eq(kept.active, fresh.active, t.constraints);
            ck_assert_int_eq(kept.result.factorizations, (round == 0) + kept.result.resets);
            ck_assert(round == 0 || kept.result.factorizations == 0);
            ck_assert_int_eq(fresh.result.factorizations, 1);
            memcpy(t.start, kept.active, t.constraints);
            for (int32_t j = 0; j < t.g.program.n; j++)
                t.g.f[j] += 0.03 * tb_random_normal(&random);
            for (size_t i = 0; i < t.constraints; i++) t.g.b[i] *= 1.02;
            free_solved(&fresh);
            if (turn == 0) {
                first[round] = kept;
                continue;
            }
            ck_assert_mem_eq(kept.x, first[round].x, (size_t)t.g.program.n * sizeof *kept.x);
            ck_assert_mem_eq(kept.lambda, first[round].lambda, t.constraints * sizeof *kept.lambda);
            free_solved(&kept);
            free_solved(&first[round]);
        }
        tb_qp_solver_forget(solver);
        solved again = solve_with(&t.g, solver, t.start, NULL);
        ck_assert_int_eq(again.result.factorizations, 1);
        free_solved(&again);
        tb_qp_solver_close(solver);
        close_trial(&t);
    }
}

START_TEST(solves_in_a_row_need_one_factorization)
{
    for (int where = TB_BACKEND_CPU; where <= TB_BACKEND_GPU; where++)
        for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++)
            solve_in_a_row((tb_backend_choice)where, (tb_precision)precision,
                           precision == TB_FLOAT ? BOTH_BOUNDS : FACETS);
}
END_TEST

/* Twice the force doubles the solution and keeps its set, whose columns are all there: one system is
 * solved, with one right-hand side. Some of the first set's bounds are left on the way. */
START_TEST(another_force_with_the_same_columns_is_one_system)
{
    tb_error error;
    for (int kind = LOWER_BOUNDS; kind <= FACETS; kind += FACETS - LOWER_BOUNDS) {
        trial t = open_trial(60, 8, 8, kind);
        const tb_qp_options options = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_GPU);
        tb_qp_solver *solver = NULL;
        TEST_OK(tb_qp_solver_open(&t.g.program, &options, &solver, &error), &error);
        solved a = solve_with(&t.g, solver, t.start, NULL);
        memcpy(t.start, a.active, t.constraints);
        int32_t bound = 0;
        for (size_t i = 0; i < t.constraints && bound < 10; i++) {
            bound += !t.start[i];
            t.start[i] = 1;
        }
        ck_assert_int_eq(bound, 10);
        tb_qp_solver_forget(solver);
        solved b = solve_with(&t.g, solver, t.start, NULL);
        ck_assert_mem_eq(a.active, b.active, t.constraints);
        ck_assert_int_gt(b.result.largest_border, 0);
        memcpy(t.start, b.active, t.constraints);
        for (int32_t j = 0; j < t.g.program.n; j++) t.g.f[j] *= 2;
        for (int32_t i = 0; i < t.g.program.constraints; i++) t.g.b[i] *= 2;
        solved c = solve_with(&t.g, solver, t.start, NULL);
        ck_assert_int_eq(c.result.status, TB_OK);
        ck_assert_int_eq(c.result.iterations, 1);
        ck_assert_int_eq(c.result.solves, 1);
        ck_assert_mem_eq(a.active, c.active, t.constraints);
        ck_assert(kkt_of(&t.g, &c) <= TOLERANCE[TB_DOUBLE]);
        free_solved(&a);
        free_solved(&b);
        free_solved(&c);
        tb_qp_solver_close(solver);
        close_trial(&t);
    }
}
END_TEST

/* Solves in a row, whose first sets have `wrong` rows, so many rows apart, changed; the same ones twice in a row. Forces move on. */
static void extend_border(int kind, int32_t size, int32_t half, int rounds, int32_t wrong,
                          int32_t apart, int32_t least_undone)
{
    tb_error error;
    trial t = open_trial(size, half, 9, kind);
    const tb_qp_options options = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_GPU);
    const tb_qp_options here = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_CPU);
    const int32_t n = t.g.program.n, m = (int32_t)t.constraints;
    tb_random random = tb_random_stream(9, 9);
    tb_qp_solver *solver = NULL;
    double *towards = malloc((size_t)n * sizeof *towards);
    int32_t border = 0, undone = 0;
    ck_assert_ptr_nonnull(towards);
    for (int32_t j = 0; j < n; j++) towards[j] = tb_random_normal(&random);
    solved known = solve_from(&t.g, t.start, &here);
    memcpy(t.start, known.active, t.constraints);
    free_solved(&known);
    TEST_OK(tb_qp_solver_open(&t.g.program, &options, &solver, &error), &error);
    for (int round = 0; round < rounds; round++) {
        for (int32_t k = 0; k < wrong; k++) {
            const int32_t i = (k * apart + round / 2) % m;
            t.start[i] = !t.start[i];
        }
        solved a = solve_from(&t.g, t.start, &here);
        solved b = solve_with(&t.g, solver, t.start, NULL);
        ck_assert_int_eq(b.result.status, TB_OK);
        ck_assert_mem_eq(a.active, b.active, t.constraints);
        ck_assert(kkt_of(&t.g, &b) <= TOLERANCE[TB_DOUBLE]);
        ck_assert_int_eq(b.result.factorizations, (round == 0) + b.result.resets);
        if (b.result.largest_border > border) border = b.result.largest_border;
        undone += b.result.deletions;
        memcpy(t.start, b.active, t.constraints);
        free_solved(&a);
        free_solved(&b);
        for (int32_t j = 0; j < n; j++) t.g.f[j] += 0.35 * towards[j];
    }
    ck_assert_msg(border > 64 && undone > least_undone, "border %d, undone %d", border, undone);
    tb_qp_solver_close(solver);
    free(towards);
    close_trial(&t);
}

/* A border that grows over many solves: rows of a second panel of the Schur matrix,
 * changes that are undone and done again, and facets that give way to the opposite ones. */
START_TEST(borders_that_grow_and_shrink_from_solve_to_solve_are_extended)
{
    for (int kind = LOWER_BOUNDS; kind <= FACETS; kind += FACETS - LOWER_BOUNDS)
        extend_border(kind, 300, 8, 6, 24, 12, 30);
}
END_TEST

/* so short that a detector of races comes to its end */
START_TEST(a_border_of_two_panels_is_extended)
{
    extend_border(LOWER_BOUNDS, 120, 2, 3, 40, 3, 5);
}
END_TEST

/* a border that has no room, solves that are used up: K0 is factored again, and said to be */
START_TEST(what_is_kept_goes_when_it_no_longer_serves)
{
    tb_error error;
    trial t = open_trial(100, 16, 7, LOWER_BOUNDS);
    for (int k = 0; k < 2; k++) {
        tb_qp_options options = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_GPU);
        tb_qp_solver *solver = NULL;
        int32_t resets = 0;
        options.maximum_changes = k == 0 ? 8 : 500;
        options.maximum_solves = k == 0 ? 500 : 3;
        memset(t.start, 0, t.constraints);
        TEST_OK(tb_qp_solver_open(&t.g.program, &options, &solver, &error), &error);
        solved a = solve_with(&t.g, solver, t.start, NULL);
        memcpy(t.start, a.active, t.constraints);
        for (int32_t i = 0; i < 30 && k == 0; i++) t.start[40 + i] = !t.start[40 + i];
        for (int round = 0; round < (k == 0 ? 2 : 5); round++) {
            solved b = solve_with(&t.g, solver, t.start, NULL);
            ck_assert_int_eq(b.result.status, TB_OK);
            ck_assert_mem_eq(a.active, b.active, t.constraints);
            ck_assert_int_eq(b.result.factorizations, b.result.resets);
            resets += b.result.resets;
            free_solved(&b);
        }
        ck_assert_int_gt(resets, 0);
        free_solved(&a);
        tb_qp_solver_close(solver);
    }
    close_trial(&t);
}
END_TEST

START_TEST(what_a_card_does_not_take_is_said)
{
    (void)card_is_played();
    given_qp g = given_program(20, 4, 6, LOWER_BOUNDS);
    uint8_t active[20] = {0};
    double x[20], lambda[20];
    tb_qp_result result;
    tb_error error;
    tb_qp_options options = options_of(TB_QP_SCHURPA, TB_DOUBLE, TB_BACKEND_GPU);
    options.device = 1000;
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_NOT_FOUND, &error);
    ck_assert_str_eq(error.field, "device");
    options.device = 0;
    options.system = TB_QP_DENSE;
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_UNSUPPORTED, &error);
    options.system = TB_QP_AUTO;
    g.row_start[1] = 2; /* row 0 has variables 0 and 1 */
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_UNSUPPORTED, &error);
    ck_assert_str_eq(error.field, "system");
    options.backend = TB_BACKEND_AUTO; /* the processor takes programs that the card refuses */
    TEST_OK(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error), &error);
    options.backend = TB_BACKEND_GPU;
    g.row_start[1] = 1;
    for (int32_t j = 0; j < 20; j++) g.hessian[j * 5] = -1;
    TEST_STATUS(tb_qp_program_solve(&g.program, &options, active, x, lambda, &result, &error),
                TB_FAILED_PRECONDITION, &error);
    free_given(&g);
}
END_TEST

TEST_MAIN(programs_from_a_cold_start_end_in_the_sets_of_the_processor,
          bounds_on_both_sides_that_are_not_zero_are_solved,
          facets_of_pairs_are_solved_as_bounds_in_other_coordinates,
          bounds_and_facets_of_different_pairs_are_solved_together,
          a_good_start_needs_one_factorization_and_few_batches,
          small_borders_reset_and_change_nothing_else,
          equalities_hold_and_no_constraints_are_one_system, solves_in_a_row_need_one_factorization,
          another_force_with_the_same_columns_is_one_system,
          borders_that_grow_and_shrink_from_solve_to_solve_are_extended,
          a_border_of_two_panels_is_extended, what_is_kept_goes_when_it_no_longer_serves,
          what_a_card_does_not_take_is_said)
