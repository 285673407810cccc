/* Quadratic programs for tests: made at random, judged by hand. */
#ifndef QP_UTIL_H
#define QP_UTIL_H

#include <stdlib.h>

#include "tribo_qp.h"
#include "qp/qp.h"
#include "test_util.h"

/* A program with arrays of its own, from an arena. */
typedef struct made_qp {
    tb_arena arena;
    tb_qp qp;
    tb_real *hessian, *f, *value, *b;
    int32_t *row_start, *column;
} made_qp;

static inline void made_qp_free(made_qp *made)
{
    tb_arena_destroy(&made->arena);
}

/* Memory for a program of n variables, m constraints, `entries` numbers in their rows. */
static inline void made_qp_open(made_qp *made, int32_t n, int32_t half_bandwidth, int32_t m,
                                int32_t entries)
{
    memset(made, 0, sizeof *made);
    made->hessian =
        TB_ARENA_ZEROED(&made->arena, tb_real, (size_t)n * (size_t)(half_bandwidth + 1));
    made->f = TB_ARENA_ZEROED(&made->arena, tb_real, n);
    made->value = TB_ARENA_ZEROED(&made->arena, tb_real, entries);
    made->column = TB_ARENA_ZEROED(&made->arena, int32_t, entries);
    made->row_start = TB_ARENA_ZEROED(&made->arena, int32_t, m + 1);
    made->b = TB_ARENA_ZEROED(&made->arena, tb_real, m);
    ck_assert(made->hessian && made->f && made->value && made->column && made->row_start &&
              made->b);
    made->qp = (tb_qp){.n = n,
                       .half_bandwidth = half_bandwidth,
                       .hessian = made->hessian,
                       .f = made->f,
                       .constraints = m,
                       .row_start = made->row_start,
                       .column = made->column,
                       .value = made->value,
                       .b = made->b};
}

/* H <- G G' / (width of the band) + shift, G a lower band of normal numbers. */
static inline void made_qp_hessian(made_qp *made, tb_random *random, double shift)
{
    const int32_t n = made->qp.n, half = made->qp.half_bandwidth;
    double *g = calloc((size_t)n * (size_t)(half + 1), sizeof *g);
    ck_assert(g != NULL);
    for (int32_t i = 0; i < n * (half + 1); i++) g[i] = tb_random_normal(random);
    for (int32_t j = 0; j < n; j++)
        for (int32_t i = j; i < n && i - j <= half; i++) {
            double sum = i == j ? shift : 0;
            /* g[k][d] is element (k, k - d) */
            for (int32_t d = 0; i - d >= 0 && d <= half; d++)
                if (j - (i - d) >= 0)
                    sum += g[i * (half + 1) + d] * g[j * (half + 1) + j - (i - d)] / (half + 1);
            made->hessian[i - j + (int64_t)j * (half + 1)] = TB_R(sum);
        }
    free(g);
}

/* x >= 0, as -x_i <= 0, and normal f. */
static inline void made_qp_bounds(made_qp *made, uint64_t seed, int32_t n, int32_t half)
{
    tb_random random = tb_random_stream(seed, 77);
    made_qp_open(made, n, half, n, n);
    made_qp_hessian(made, &random, 0.05);
    for (int32_t i = 0; i < n; i++) {
        made->f[i] = TB_R(tb_random_normal(&random));
        made->row_start[i + 1] = i + 1;
        made->column[i] = i;
        made->value[i] = -1;
    }
}

/* `m` dense rows, the first `equalities` of them equalities, all of which a point allows: there is
 * a solution. */
static inline void made_qp_rows(made_qp *made, uint64_t seed, int32_t n, int32_t m,
                                int32_t equalities)
{
    tb_random random = tb_random_stream(seed, 78);
    made_qp_open(made, n, n - 1, m, n * m);
    made_qp_hessian(made, &random, 0.3);
    made->qp.equalities = equalities;
    double *point = calloc((size_t)n, sizeof *point);
    ck_assert(point != NULL);
    for (int32_t j = 0; j < n; j++) {
        point[j] = tb_random_normal(&random);
        made->f[j] = TB_R(tb_random_normal(&random) * 2);
    }
    for (int32_t i = 0; i < m; i++) {
        double at = 0;
        for (int32_t j = 0; j < n; j++) {
            const int32_t k = i * n + j;
            made->column[k] = j;
            made->value[k] = TB_R(tb_random_normal(&random));
            at += (double)made->value[k] * point[j];
        }
        made->row_start[i + 1] = (i + 1) * n;
        made->b[i] = TB_R(at + (i < equalities ? 0 : fabs(tb_random_normal(&random)) * 0.3));
    }
    free(point);
}

/* Pairs with four facets |x| + |y| <= limit, as friction has them; limits between 0.1 and 1. */
static inline void made_qp_facets(made_qp *made, uint64_t seed, int32_t pairs, int32_t half)
{
    static const int8_t SIGNS[4][2] = {{1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
    tb_random random = tb_random_stream(seed, 79);
    made_qp_open(made, 2 * pairs, half, 4 * pairs, 8 * pairs);
    made_qp_hessian(made, &random, 0.05);
    for (int32_t j = 0; j < 2 * pairs; j++) made->f[j] = TB_R(tb_random_normal(&random));
    for (int32_t c = 0; c < pairs; c++) {
        const double limit = tb_random_between(&random, 0.1, 1);
        for (int32_t k = 0; k < 4; k++) {
            const int32_t i = 4 * c + k;
            for (int32_t a = 0; a < 2; a++) {
                made->column[2 * i + a] = 2 * c + a;
                made->value[2 * i + a] = SIGNS[k][a];
            }
            made->row_start[i + 1] = 2 * (i + 1);
            made->b[i] = TB_R(limit);
        }
    }
}

/* Result of a solve. */
typedef struct solved_qp {
    uint8_t *active;
    tb_real *x, *lambda;
    tb_qp_result result;
    tb_qp_workspace *work;
    tb_k0 k0;
} solved_qp;

typedef enum k0_kind { K0_DENSE, K0_BOUNDS, K0_BOUNDS_LAPACK, K0_FACETS } k0_kind;

static inline void solved_qp_open(solved_qp *solved, made_qp *made, k0_kind kind,
                                  const tb_qp_options *options)
{
    memset(solved, 0, sizeof *solved);
    tb_arena *arena = &made->arena;
    solved->active = TB_ARENA_ZEROED(arena, uint8_t, made->qp.constraints);
    solved->x = TB_ARENA_ZEROED(arena, tb_real, made->qp.n);
    solved->lambda = TB_ARENA_ZEROED(arena, tb_real, made->qp.constraints);
    tb_status status = TB_OK;
    switch (kind) {
    case K0_DENSE: status = tb_k0_dense(&made->qp, arena, &solved->k0); break;
    case K0_BOUNDS: status = tb_k0_bounds(&made->qp, false, 0, arena, &solved->k0); break;
    case K0_BOUNDS_LAPACK: status = tb_k0_bounds(&made->qp, true, 0, arena, &solved->k0); break;
    case K0_FACETS: status = tb_k0_facets(&made->qp, 0, arena, &solved->k0); break;
    }
    TEST_OK(status, NULL);
    TEST_OK(tb_qp_begin(&made->qp, &solved->k0, options, arena, &solved->work), NULL);
}

static inline void solved_qp_run(solved_qp *solved)
{
    TEST_OK(tb_qp_solve(solved->work, solved->active, solved->x, solved->lambda, &solved->result),
            NULL);
}

/* Cold, from no active inequality. */
static inline void solved_qp_make(solved_qp *solved, made_qp *made, k0_kind kind,
                                  const tb_qp_options *options)
{
    solved_qp_open(solved, made, kind, options);
    solved_qp_run(solved);
}

/* The KKT conditions by hand, dense and in double. */
static inline void check_kkt(const made_qp *made, const solved_qp *solved, double tolerance)
{
    const tb_qp *qp = &made->qp;
    for (int32_t j = 0; j < qp->n; j++) {
        double sum = (double)qp->f[j], size = fabs(sum) + 1;
        for (int32_t i = 0; i < qp->n; i++) {
            const int32_t low = i > j ? i : j, high = i > j ? j : i;
            if (low - high > qp->half_bandwidth) continue;
            const double h =
                (double)qp->hessian[low - high + (int64_t)high * (qp->half_bandwidth + 1)];
            sum += h * (double)solved->x[i];
            size = fmax(size, fabs(h * (double)solved->x[i]));
        }
        for (int32_t i = 0; i < qp->constraints; i++)
            for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1]; k++)
                if (qp->column[k] == j) {
                    sum += (double)qp->value[k] * (double)solved->lambda[i];
                    size = fmax(size, fabs((double)qp->value[k] * (double)solved->lambda[i]));
                }
        TEST_NEAR(sum, 0, tolerance * size);
    }
    for (int32_t i = 0; i < qp->constraints; i++) {
        double slack = (double)qp->b[i], size = fabs(slack) + 1;
        for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1]; k++) {
            const double part = (double)qp->value[k] * (double)solved->x[qp->column[k]];
            slack -= part;
            size = fmax(size, fabs(part));
        }
        const double l = (double)solved->lambda[i];
        if (i < qp->equalities) {
            TEST_NEAR(slack, 0, tolerance * size);
            continue;
        }
        ck_assert_msg(slack >= -tolerance * size, "constraint %d is off by %g", i, slack);
        ck_assert_msg(l >= -tolerance * (1 + fabs(l)), "multiplier %d is %g", i, l);
        TEST_NEAR(slack * l, 0, tolerance * size * (1 + fabs(l)));
    }
}

#endif
