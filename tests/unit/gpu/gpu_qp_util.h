/* Programs with bounds and a band for the tests of a card, and the errors of their solutions. */
#ifndef GPU_QP_UTIL_H
#define GPU_QP_UTIL_H

#include "tribo_qp.h"
#include "backend/backend.h"
#include "gpu_util.h"

enum { LOWER_BOUNDS, BOTH_BOUNDS, FACETS, BOUNDS_AND_FACETS };

typedef struct given_qp {
    tb_qp_program program;
    double *hessian, *f, *value, *b;
    int32_t *row_start, *column;
} given_qp;

typedef struct solved {
    uint8_t *active;
    double *x, *lambda;
    tb_qp_result result;
} solved;

static inline void free_given(given_qp *g)
{
    void *const memory[] = {g->hessian, g->f, g->value, g->b, g->row_start, g->column};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) free(memory[i]);
}

/* A row of one entry, or, with `other` not 0, of that and one for the variable behind it. */
static inline void put_row(given_qp *g, int32_t variable, double value, double other, double b)
{
    tb_qp_program *p = &g->program;
    int32_t at = g->row_start[p->constraints];
    g->column[at] = variable;
    g->value[at++] = value;
    if (other != 0) {
        g->column[at] = variable + 1;
        g->value[at++] = other;
    }
    g->b[p->constraints++] = b;
    g->row_start[p->constraints] = at;
}

/* Two bounds, away from zero; of every fifth side none. */
static inline void put_bounds(given_qp *g, int32_t j)
{
    for (int side = 0; side < 2; side++) {
        const double far = 0.1 + 0.05 * ((j * 7 + side * 3) % 11);
        if ((j + side) % 5 != 0) put_row(g, j, side ? 2 : -1, 0, side ? 2 * far : far);
    }
}

/* Random, with x >= 0; with two bounds on most variables; with four facets for each pair, as
 * friction has them, and bounds on a last variable without one; or with facets for every other
 * pair. */
static inline given_qp given_program(int32_t n, int32_t half, uint64_t seed, int kind)
{
    static const int8_t SIGNS[4][2] = {{1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
    given_qp g = {0};
    const size_t most = 4 * (size_t)n;
    tb_error error;
    g.hessian = malloc((size_t)n * ((size_t)half + 1) * sizeof *g.hessian);
    g.f = malloc((size_t)n * sizeof *g.f);
    g.value = malloc(most * sizeof *g.value);
    g.b = malloc(most * sizeof *g.b);
    g.row_start = calloc(most + 1, sizeof *g.row_start);
    g.column = malloc(most * sizeof *g.column);
    ck_assert(g.hessian && g.f && g.value && g.b && g.row_start && g.column);
    TEST_OK(tb_qp_random(n, half, seed, g.hessian, g.f, &error), &error);
    for (int32_t j = 0; j < n; j++) {
        const bool pair = kind >= FACETS && j % 2 == 0 && j + 1 < n;
        if (pair && (kind == FACETS || j % 4 == 0)) {
            for (int k = 0; k < 4; k++)
                put_row(&g, j, 0.5 * SIGNS[k][0], 0.5 * SIGNS[k][1], 0.05 + 0.02 * (j % 7));
            j++;
        } else if (kind == LOWER_BOUNDS) {
            put_row(&g, j, -1, 0, 0);
        } else {
            put_bounds(&g, j);
        }
    }
    g.program.n = n;
    g.program.half_bandwidth = half;
    g.program.hessian = g.hessian;
    g.program.f = g.f;
    g.program.row_start = g.row_start;
    g.program.column = g.column;
    g.program.value = g.value;
    g.program.b = g.b;
    return g;
}

static inline void free_solved(solved *s)
{
    free(s->active);
    free(s->x);
    free(s->lambda);
}

/* The result of `solver` or, with NULL, of a single solve; NaN where nothing was written. */
static inline solved solve_with(const given_qp *g, tb_qp_solver *solver, const uint8_t *start,
                                const tb_qp_options *options)
{
    const size_t n = (size_t)g->program.n, m = (size_t)g->program.constraints;
    solved s;
    tb_error error = {0};
    s.active = malloc(m + 1);
    s.x = malloc(n * sizeof *s.x);
    s.lambda = malloc((m + 1) * sizeof *s.lambda);
    ck_assert(s.active && s.x && s.lambda);
    memcpy(s.active, start, m);
    for (size_t j = 0; j < n; j++) s.x[j] = NAN;
    for (size_t i = 0; i < m; i++) s.lambda[i] = NAN;
    memset(&s.result, 0xee, sizeof s.result);
    const tb_status status =
        solver
            ? tb_qp_solver_solve(solver, g->f, g->b, s.active, s.x, s.lambda, &s.result, &error)
            : tb_qp_program_solve(&g->program, options, s.active, s.x, s.lambda, &s.result, &error);
    TEST_OK(status, &error);
    return s;
}

static inline solved solve_from(const given_qp *g, const uint8_t *start,
                                const tb_qp_options *options)
{
    return solve_with(g, NULL, start, options);
}

/* The largest violation of the KKT conditions, each over the magnitude of its sum's terms. Sums
 * over the given matrix. */
static inline double kkt_of(const given_qp *g, const solved *s)
{
    const tb_qp_program *p = &g->program;
    const int32_t n = p->n, half = p->half_bandwidth;
    double *sum = calloc((size_t)n, sizeof *sum), force = 0, length = 0, multiplier = 0, worst = 0;
    ck_assert_ptr_nonnull(sum);
    for (int32_t j = 0; j < n; j++) {
        sum[j] += p->f[j];
        force = fmax(force, fabs(p->f[j]));
        for (int32_t i = j; i < n && i - j <= half; i++) {
            const double a = p->hessian[i - j + (int64_t)j * (half + 1)];
            sum[i] += a * s->x[j];
            if (i != j) sum[j] += a * s->x[i];
        }
    }
    for (int32_t i = 0; i < p->constraints; i++) {
        multiplier = fmax(multiplier, fabs(s->lambda[i]));
        length = fmax(length, fabs(p->b[i]));
        for (int32_t k = p->row_start[i]; k < p->row_start[i + 1]; k++) {
            force = fmax(force, fabs(p->value[k] * s->lambda[i]));
            length = fmax(length, fabs(p->value[k] * s->x[p->column[k]]));
        }
    }
    for (int32_t i = 0; i < p->constraints; i++) {
        const double l = s->lambda[i];
        const bool equality = i < p->equalities;
        double slack = p->b[i];
        for (int32_t k = p->row_start[i]; k < p->row_start[i + 1]; k++) {
            slack -= p->value[k] * s->x[p->column[k]];
            sum[p->column[k]] += p->value[k] * l;
        }
        worst = fmax(worst, (equality ? fabs(slack) : -slack) / fmax(length, 1e-300));
        if (!equality) worst = fmax(worst, -l / fmax(multiplier, 1e-300));
        if (!equality) worst = fmax(worst, fabs(l * slack) / fmax(multiplier * length, 1e-300));
        ck_assert(equality || s->active[i] || l == 0);
        ck_assert(isfinite(l));
    }
    for (int32_t j = 0; j < n; j++) {
        ck_assert(isfinite(s->x[j]));
        worst = fmax(worst, fabs(sum[j]) / force);
    }
    free(sum);
    return worst;
}

/* The card, or, where there is none, one that the processor plays: true then, for it is slow. */
static inline bool card_is_played(void)
{
    char path[1024], reason[TB_ERROR_MESSAGE_SIZE];
    const tb_backend *card = NULL;
    tb_device_info info;
    if (getenv("TRIBO_GPU_PLUGIN") != NULL) {
        TEST_OK(tb_device_describe(TB_BACKEND_GPU, 0, &info, NULL), NULL);
        return strstr(info.name, "played") != NULL;
    }
    snprintf(path, sizeof path, "%s/libtribo_gpu.so", build_folder());
    const bool there = tb_backend_open(path, &card, NULL) == TB_OK && card->devices(reason) > 0;
    if (!there) snprintf(path, sizeof path, "%s/tests/plugin/card.so", build_folder());
    ck_assert_int_eq(setenv("TRIBO_GPU_PLUGIN", path, 1), 0);
    return !there;
}

#endif
