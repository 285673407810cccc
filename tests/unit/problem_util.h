/* Contact problems made by hand and at random, for the tests of contact/ and solve/. In the
 * precision that the including test is compiled for. */
#ifndef PROBLEM_UTIL_H
#define PROBLEM_UTIL_H

#include <string.h>

#include "solve/solve.h"

enum { MADE_BLOCKS = 400, MADE_ROWS = 3 * MADE_BLOCKS, MADE_VALUES = 64 * MADE_BLOCKS };

/* A problem with memory for its arrays. Static or on the heap: it is large. */
typedef struct made_problem {
    tb_problem problem;
    tb_block blocks[MADE_BLOCKS];
    tb_segment segments[2 * MADE_BLOCKS];
    tb_real values[MADE_VALUES], c[MADE_ROWS], compliance[MADE_ROWS];
    tb_matrix matrix;
    tb_real *dense; /* heap; given form */
    int32_t next_segment;
    int64_t next_value;
} made_problem;

static inline void made_begin(made_problem *m, int32_t dofs)
{
    memset(m, 0, sizeof *m);
    m->problem.number_of_dofs = dofs;
    m->problem.blocks = m->blocks;
    m->problem.segments = m->segments;
    m->problem.values = m->values;
    m->problem.c = m->c;
}

/* A block on one run of dofs (count_b = 0) or two; y: rows x (count_a + count_b), c: rows. */
static inline tb_block *made_add(made_problem *m, tb_law law, int32_t rows, tb_real mu,
                                 int32_t dof_a, int32_t count_a, int32_t dof_b, int32_t count_b,
                                 const double *y, const double *c)
{
    tb_problem *p = &m->problem;
    tb_block *block = &m->blocks[p->number_of_blocks++];
    *block = (tb_block){.law = law,
                        .row = p->number_of_rows,
                        .rows = rows,
                        .segment = m->next_segment,
                        .segments = count_b > 0 ? 2 : 1,
                        .width = count_a + count_b,
                        .value = m->next_value,
                        .mu = mu};
    m->segments[m->next_segment++] = (tb_segment){dof_a, count_a};
    if (count_b > 0) m->segments[m->next_segment++] = (tb_segment){dof_b, count_b};
    for (int32_t k = 0; k < rows * block->width; k++) m->values[m->next_value++] = TB_R(y[k]);
    for (int32_t i = 0; i < rows; i++) m->c[p->number_of_rows++] = TB_R(c[i]);
    return block;
}

/* Coulomb contacts between random pairs of free bodies, some against the world; scale of impulses
 * over velocities is 1 / scale^2. c is the contacts' velocity in a motion of the bodies, so that
 * bodies at rest are a way out and a solution exists however many contacts there are. */
static inline void made_random(made_problem *m, uint64_t seed, int32_t contacts, int32_t bodies,
                               double mu, double scale)
{
    tb_random random = tb_random_stream(seed, 77);
    made_begin(m, 6 * bodies);
    static double motion[MADE_ROWS * 2];
    for (int32_t i = 0; i < 6 * bodies; i++) motion[i] = tb_random_normal(&random) / scale;
    for (int32_t i = 0; i < contacts; i++) {
        const int32_t a = i % bodies;
        int32_t b = (int32_t)(tb_random_uniform(&random) * bodies);
        const bool two = b != a && i % 4 != 0;
        double y[36], c[3];
        for (int k = 0; k < 36; k++) y[k] = scale * tb_random_normal(&random);
        const int width = two ? 12 : 6;
        for (int k = 0; k < 3; k++) {
            c[k] = 0;
            for (int j = 0; j < width; j++)
                c[k] += y[k * width + j] * motion[j < 6 ? 6 * a + j : 6 * b + j - 6];
        }
        made_add(m, TB_LAW_COULOMB, 3, TB_R(mu), 6 * a, 6, 6 * b, two ? 6 : 0, y, c);
    }
}

/* The same with bodies in groups that share no contact: body b is of group b % groups, and contacts
 * take turns between the groups. */
static inline void made_groups(made_problem *m, uint64_t seed, int32_t contacts, int32_t bodies,
                               int32_t groups, double mu)
{
    tb_random random = tb_random_stream(seed, 78);
    made_begin(m, 6 * bodies);
    static double motion[MADE_ROWS * 2];
    for (int32_t i = 0; i < 6 * bodies; i++) motion[i] = tb_random_normal(&random);
    for (int32_t i = 0; i < contacts; i++) {
        const int32_t a = i % bodies;
        const int32_t other = (a + groups) % bodies, b = other % groups == a % groups ? other : a;
        const bool two = b != a && i % 5 != 0;
        double y[36], c[3];
        for (int k = 0; k < 36; k++) y[k] = tb_random_normal(&random);
        const int width = two ? 12 : 6;
        for (int k = 0; k < 3; k++) {
            c[k] = 0;
            for (int j = 0; j < width; j++)
                c[k] += y[k * width + j] * motion[j < 6 ? 6 * a + j : 6 * b + j - 6];
        }
        made_add(m, TB_LAW_COULOMB, 3, TB_R(mu), 6 * a, 6, 6 * b, two ? 6 : 0, y, c);
    }
}

/* The same problem with its G given dense. free(dense) when done. */
static inline void made_given(made_problem *given, const made_problem *from)
{
    *given = *from;
    const size_t n = (size_t)from->problem.number_of_rows;
    given->dense = malloc(n * n * sizeof *given->dense);
    ck_assert_ptr_nonnull(given->dense);
    ck_assert(tb_problem_delassus(&from->problem, given->dense) == TB_OK);
    given->matrix = (tb_matrix){.rows = (int32_t)n, .columns = (int32_t)n, .dense = given->dense};
    given->problem.blocks = given->blocks;
    given->problem.c = given->c;
    given->problem.values = NULL;
    given->problem.segments = NULL;
    given->problem.compliance = NULL; /* the compliance is on the diagonal now */
    given->problem.number_of_dofs = 0;
    given->problem.matrix = &given->matrix;
}

/* A solve with memory of its own; numbers live until the next. */
typedef struct made_solution {
    tb_solution solution;
    tb_real lambda[MADE_ROWS], fine[MADE_ROWS], xi[MADE_ROWS];
    double whitened[MADE_ROWS * 2];
    uint8_t statuses[MADE_BLOCKS];
    tb_status returned;
} made_solution;

/* With all of the warm start but the working memory, which is this function's. */
static inline void made_solve_warm(const tb_problem *problem, const tb_solve_options *options,
                                   tb_warm_start warm, made_solution *s)
{
    tb_arena arena;
    tb_arena_init(&arena, 0);
    warm.scratch = &arena;
    memset(&s->solution, 0, sizeof s->solution);
    s->solution.lambda = s->lambda;
    s->solution.fine = s->fine;
    s->solution.xi = s->xi;
    s->solution.whitened = s->whitened;
    s->solution.statuses = s->statuses;
    tb_solve_function *solve = tb_solver_find(options->solver);
    ck_assert(solve != NULL);
    s->returned = solve(problem, options, &warm, &s->solution);
    tb_arena_destroy(&arena);
}

static inline void made_solve(const tb_problem *problem, const tb_solve_options *options,
                              const tb_real *warm_lambda, made_solution *s)
{
    made_solve_warm(problem, options, (tb_warm_start){.lambda = warm_lambda}, s);
}

static inline tb_solve_options made_options(const char *solver, double tolerance)
{
    tb_solve_options options = tb_solve_defaults();
    options.solver = solver;
    options.tolerance = tolerance;
    options.maximum_iterations = 20000;
    return options;
}

#endif
