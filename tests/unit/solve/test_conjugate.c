/* Sweeps along conjugate directions: a pile of points on a floor with friction. */
#include "test_util.h"

#include "problem_util.h"
#include "solve/sweep/conjugate.h"

enum { SIDE = 5, POINTS = SIDE * SIDE * SIDE };
static const double TOLERANCE = 1e-7, SPEED = 0.1; /* m/s, downwards */

static made_problem made;
static made_solution answer, other;

static int32_t dof_of(int x, int y, int z)
{
    return 3 * (x + SIDE * (y + SIDE * z));
}

/* A contact between two points of the grid, or of one with the floor; nearly along `axis`. */
static void add_contact(tb_random *random, int32_t a, int32_t b, int axis)
{
    double normal[3], square = 0;
    for (int i = 0; i < 3; i++) {
        normal[i] = (i == axis ? 1 : 0) + 0.3 * tb_random_normal(random);
        square += normal[i] * normal[i];
    }
    double y[6], c = 1e-3 * tb_random_uniform(random);
    for (int i = 0; i < 3; i++) {
        y[i] = -normal[i] / sqrt(square);
        y[3 + i] = -y[i];
    }
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, a, 3, b, 3, y, &c);
}

static void make_pile(double mu)
{
    tb_random random = tb_random_stream(5, 17);
    made_begin(&made, 3 * POINTS);
    for (int z = 0; z < SIDE; z++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                const int32_t dof = dof_of(x, y, z);
                const double on_floor[9] = {0, 0, 1, 1, 0, 0, 0, 1, 0}, c[3] = {-SPEED, 0.05, 0};
                if (z == 0) made_add(&made, TB_LAW_COULOMB, 3, TB_R(mu), dof, 3, 0, 0, on_floor, c);
                if (z > 0) add_contact(&random, dof_of(x, y, z - 1), dof, 2);
                if (y > 0) add_contact(&random, dof_of(x, y - 1, z), dof, 1);
                if (x > 0) add_contact(&random, dof_of(x - 1, y, z), dof, 0);
            }
}

/* Whitened velocities are unique, impulses need not be. */
static double difference(void)
{
    double largest = 0;
    for (int i = 0; i < 3 * POINTS; i++)
        largest = fmax(largest, fabs(answer.whitened[i] - other.whitened[i]));
    return largest;
}

/* Suits large problems with little friction. */
START_TEST(suits)
{
    tb_solve_options options = made_options("sor", TOLERANCE);
    make_pile(0.5);
    ck_assert(tb_conjugate_suits(&made.problem, &options, 100));
    options.accelerate = false;
    ck_assert(!tb_conjugate_suits(&made.problem, &options, 100));
    options = made_options("sor", TOLERANCE);
    ck_assert(!tb_conjugate_suits(&made.problem, &options, 5));
    made_random(&made, 3, 300, 40, 0.5, 1);
    options = made_options("sor", TOLERANCE);
    ck_assert(!tb_conjugate_suits(&made.problem, &options, 100));
}
END_TEST

/* The velocities are Newton's, in a small part of Gauss-Seidel's sweeps. */
START_TEST(solves)
{
    static const double FRICTION[] = {0, 0.3, 1};
    for (size_t k = 0; k < sizeof FRICTION / sizeof *FRICTION; k++) {
        make_pile(FRICTION[k]);
        tb_solve_options options = made_options("sor", TOLERANCE);
        made_solve(&made.problem, &options, NULL, &answer);
        ck_assert_int_eq(answer.solution.status, TB_OK);
        ck_assert_double_le(answer.solution.residuals.natural, TOLERANCE);
        const int32_t sweeps = answer.solution.iterations;
        options.accelerate = false;
        made_solve(&made.problem, &options, NULL, &other);
        printf("mu %g: %d sweeps, %d without acceleration\n", FRICTION[k], sweeps,
               other.solution.iterations);
        ck_assert_int_lt(FRICTION[k] < 1 ? 3 * sweeps : sweeps, other.solution.iterations);
        options = made_options("newton", TOLERANCE);
        made_solve(&made.problem, &options, NULL, &other);
        ck_assert_int_eq(other.solution.status, TB_OK);
        ck_assert_double_lt(difference(), 1e-5 * SPEED);
    }
}
END_TEST

/* A start within the tolerance ends soon, and equal calls give equal bytes. */
START_TEST(starts_warm)
{
    static tb_real warm[MADE_ROWS];
    make_pile(0.5);
    tb_solve_options options = made_options("sor", TOLERANCE);
    made_solve(&made.problem, &options, NULL, &answer);
    made_solve(&made.problem, &options, NULL, &other);
    const size_t bytes = (size_t)made.problem.number_of_rows * sizeof(tb_real);
    ck_assert_mem_eq(answer.lambda, other.lambda, bytes);
    options = made_options("newton", TOLERANCE / 1000);
    made_solve(&made.problem, &options, NULL, &other);
    memcpy(warm, other.lambda, bytes);
    options = made_options("sor", TOLERANCE);
    options.warm_start = true;
    made_solve(&made.problem, &options, warm, &answer);
    ck_assert_int_eq(answer.solution.status, TB_OK);
    ck_assert_int_le(answer.solution.iterations, 20);
}
END_TEST

static bool is_second(void *calls)
{
    return ++*(int *)calls > 1;
}

START_TEST(is_cancelled)
{
    int calls = 0;
    make_pile(0.5);
    tb_solve_options options = made_options("sor", TOLERANCE);
    options.cancelled = is_second;
    options.cancelled_context = &calls;
    made_solve(&made.problem, &options, NULL, &answer);
    ck_assert_int_eq(answer.returned, TB_CANCELLED);
    ck_assert_int_eq(calls, 2);
}
END_TEST

TEST_MAIN(suits, solves, starts_warm, is_cancelled)
