/* The path of falling weights: how many steps it takes, and which problems have one. */
#include "test_util.h"

#include "problem_util.h"
#include "solve/newton/newton_internal.h"
#include "solve/sweep/rows.h"

static made_problem made;
static made_solution one, two;

/* Random contacts, and one of a body that all others carry, which links them and stays open. */
static void linked_random(uint64_t seed, int contacts, int bodies, double mu)
{
    made_random(&made, seed, contacts, bodies, mu, 1);
    double y[3 * 6 * 16];
    const double c[3] = {100, 0, 0};
    for (int i = 0; i < 18 * bodies; i++) y[i] = 0.1 * sin(i);
    made_add(&made, TB_LAW_COULOMB, 3, TB_R(mu), 0, 6 * bodies, 0, 0, y, c);
}

/* Starts of the path: the answer of another motion of the bodies, a tenth away. */
START_TEST(a_path_of_falling_weights_needs_few_steps)
{
    enum { SEEDS = 20 };
    static double warm[MADE_ROWS];
    int reached = 0, solves = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        linked_random(seed, 30, 8, 0.3);
        tb_solve_options options = made_options("sor", 1e-10);
        made_solve(&made.problem, &options, NULL, &two);
        memcpy(warm, two.lambda, sizeof warm);
        tb_random random = tb_random_stream(seed, 5);
        tb_real motion[48], moved[TB_BLOCK_ROWS];
        for (int i = 0; i < 48; i++) motion[i] = TB_R(0.1 * tb_random_normal(&random));
        for (int32_t b = 0; b < made.problem.number_of_blocks; b++) {
            const tb_block *block = &made.problem.blocks[b];
            tb_gather_any(&made.problem, block, motion, moved);
            for (int32_t i = 0; i < block->rows; i++) made.c[block->row + i] += moved[i];
        }
        options = made_options("newton", 1e-9);
        options.warm_start = true;
        ck_assert(tb_newton_has_path(&made.problem));
        tb_arena arena;
        tb_arena_init(&arena, 0);
        tb_newton it = {.problem = &made.problem,
                        .options = &options,
                        .scratch = &arena,
                        .best_residual = DBL_MAX};
        ck_assert(tb_newton_prepare(&it) == TB_OK);
        tb_newton_measure(&it);
        tb_newton_project(&made.problem, warm, it.lambda);
        ck_assert(tb_newton_follow_path(&it) == TB_OK);
        ck_assert(it.work > 0 && it.work <= 32);
        reached += it.best_residual <= options.tolerance;
        solves += it.system.solves;
        tb_residuals residuals;
        ck_assert(tb_problem_residuals(&made.problem, it.best, &arena, it.xi, &residuals) == TB_OK);
        ck_assert(residuals.natural == it.best_residual);
        tb_arena_destroy(&arena);

        /* the solver that uses it reaches the tolerance from the same start */
        made_solve(&made.problem, &options, warm, &one);
        TEST_STATUS(one.solution.status, TB_OK, NULL);
    }
    printf("path: %d of %d reached, %d linear solves\n", reached, (int)SEEDS, solves);
    ck_assert(reached >= 18 && solves < 16 * SEEDS);
}
END_TEST

/* Linked bodies of up to 64 dofs have a path, a pile of free ones has none; a leg of one dof on a free base
 * is enough. */
START_TEST(linked_bodies_have_a_path)
{
    const double leg[7] = {1, 0, 0, 0, 0, 0, 1}, c = 0;
    made_random(&made, 1, 30, 8, 0.5, 1);
    ck_assert(!tb_newton_has_path(&made.problem));
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, 0, 7, 0, 0, leg, &c);
    ck_assert(tb_newton_has_path(&made.problem));
    static const int bodies[] = {4, 10, 11};
    for (int i = 0; i < 3; i++) {
        linked_random(1, 30, bodies[i], 0.5);
        ck_assert(tb_newton_has_path(&made.problem) == (i < 2));
    }
}
END_TEST

TEST_MAIN(a_path_of_falling_weights_needs_few_steps, linked_bodies_have_a_path)
