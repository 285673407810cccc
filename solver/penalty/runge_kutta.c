/* Explicit Runge-Kutta methods: tables, fixed steps, and steps by an embedded error estimate.
 *
 * The thesis names Dymola's integrators RkfixX (fixed step, order X) and CerkXY (adaptive, order X
 * with an estimate of order Y). It prints no coefficients; these tables are the classical ones of
 * the same orders. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "penalty/integrate.h"
#include "tribo.h"

/* Numbers of a sum that a thread takes at a time. */
enum { BLOCK = 4096 };

typedef struct table {
    const char *name;
    int32_t order, stages;
    double c[TB_MOST_STAGES];
    double a[TB_MOST_STAGES][TB_MOST_STAGES];
    double b[TB_MOST_STAGES];
    double other[TB_MOST_STAGES]; /* weights of the embedded method; all 0: fixed steps */
} table;

static const table TABLES[] = {
    {.name = "rkfix1", .order = 1, .stages = 1, .b = {1}},
    {.name = "rkfix2", .order = 2, .stages = 2, .c = {0, 1}, .a = {{0}, {1}}, .b = {0.5, 0.5}},
    {.name = "rkfix3",
     .order = 3,
     .stages = 3,
     .c = {0, 0.5, 1},
     .a = {{0}, {0.5}, {-1, 2}},
     .b = {1.0 / 6, 2.0 / 3, 1.0 / 6}},
    {.name = "rkfix4",
     .order = 4,
     .stages = 4,
     .c = {0, 0.5, 0.5, 1},
     .a = {{0}, {0.5}, {0, 0.5}, {0, 0, 1}},
     .b = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}},
    {.name = "cerk23",
     .order = 2,
     .stages = 4,
     .c = {0, 0.5, 0.75, 1},
     .a = {{0}, {0.5}, {0, 0.75}, {2.0 / 9, 1.0 / 3, 4.0 / 9}},
     .b = {7.0 / 24, 0.25, 1.0 / 3, 0.125},
     .other = {2.0 / 9, 1.0 / 3, 4.0 / 9, 0}},
    {.name = "cerk34",
     .order = 3,
     .stages = 5,
     .c = {0, 0.5, 0.5, 1, 0.75},
     .a = {{0}, {0.5}, {0, 0.5}, {0, 0, 1}, {5.0 / 32, 7.0 / 32, 13.0 / 32, -1.0 / 32}},
     .b = {-0.5, 7.0 / 3, 7.0 / 3, 13.0 / 6, -16.0 / 3},
     .other = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6, 0}},
    {.name = "cerk45",
     .order = 4,
     .stages = 6,
     .c = {0, 0.25, 3.0 / 8, 12.0 / 13, 1, 0.5},
     .a = {{0},
           {0.25},
           {3.0 / 32, 9.0 / 32},
           {1932.0 / 2197, -7200.0 / 2197, 7296.0 / 2197},
           {439.0 / 216, -8, 3680.0 / 513, -845.0 / 4104},
           {-8.0 / 27, 2, -3544.0 / 2565, 1859.0 / 4104, -11.0 / 40}},
     .b = {25.0 / 216, 0, 1408.0 / 2565, 2197.0 / 4104, -0.2},
     .other = {16.0 / 135, 0, 6656.0 / 12825, 28561.0 / 56430, -9.0 / 50, 2.0 / 55}}};

enum { TABLES_COUNT = sizeof TABLES / sizeof *TABLES, MOST_STEPS = 1000000 };

/* ---- names ---- */

static const struct {
    const char *name, *summary;
} INTEGRATORS[] = {
#define LISTED(name, order, stages, summary) {#name, summary},
    TB_RUNGE_KUTTA_LIST(LISTED)
#undef LISTED
        {"symplectic", "semi-implicit Euler, one evaluation for each step of dt"},
#ifdef TB_HAVE_SUNDIALS
#define LISTED(name, summary) {#name, summary},
#else
#define LISTED(name, summary) {#name, summary " (not in this build)"},
#endif
    TB_SUNDIALS_LIST(LISTED)
#undef LISTED
};

enum { INTEGRATORS_COUNT = sizeof INTEGRATORS / sizeof *INTEGRATORS };

const char *tb_integrator_name(int32_t index)
{
    return index >= 0 && index < INTEGRATORS_COUNT ? INTEGRATORS[index].name : NULL;
}

const char *tb_integrator_summary(int32_t index)
{
    return index >= 0 && index < INTEGRATORS_COUNT ? INTEGRATORS[index].summary : NULL;
}

static bool is_adaptive(const table *m)
{
    bool adaptive = false;
    for (int32_t s = 0; s < m->stages; s++) adaptive = adaptive || m->other[s] != 0;
    return adaptive;
}

bool tb_integrator_fixed(const char *name, tb_fixed_method *method)
{
    for (int32_t i = 0; i < TABLES_COUNT; i++) {
        const table *m = &TABLES[i];
        if (strcmp(name, m->name) != 0 || is_adaptive(m)) continue;
        method->stages = m->stages;
        memcpy(method->a, m->a, sizeof method->a);
        memcpy(method->b, m->b, sizeof method->b);
        return true;
    }
    return false;
}

/* ---- steps ---- */

/* A sum of slopes that threads share. */
typedef struct slope_sum {
    const tb_initial_value *problem;
    const double *weights; /* count, without h */
    int32_t count;
    double h;    /* s */
    double *sum; /* y + h (weights . slopes); may be y */
} slope_sum;

static void add_block(void *context, int32_t block, int32_t thread)
{
    const slope_sum *x = context;
    const tb_initial_value *p = x->problem;
    const int32_t first = block * BLOCK, left = p->size - first, n = left < BLOCK ? left : BLOCK;
    const double *from = p->y + first;
    double *sum = x->sum + first;
    (void)thread;
    for (int32_t k = 0; k < x->count; k++) {
        if (x->weights[k] == 0) continue;
        const double weight = x->h * x->weights[k];
        const double *slope = p->scratch + (size_t)k * (size_t)p->size + first;
#pragma omp simd
        for (int32_t i = 0; i < n; i++) sum[i] = from[i] + weight * slope[i];
        from = sum;
    }
}

/* Not all of the weights are 0. */
static void add_slopes(const tb_initial_value *p, const double *weights, int32_t count, double h,
                       double *sum)
{
    slope_sum x = {p, weights, count, h, sum};
    tb_parallel_for((p->size + BLOCK - 1) / BLOCK, 1, p->threads, add_block, &x);
}

/* All stages of a step h from t at y; the first slope is there if `warm`. Stage k is at scratch +
 * k size, the point of a stage behind the last. */
static tb_status run_stages(const table *m, tb_initial_value *p, double t, double h, bool warm,
                            tb_error *error)
{
    const size_t n = (size_t)p->size;
    double *point = p->scratch + TB_MOST_STAGES * n;
    for (int32_t s = warm ? 1 : 0; s < m->stages; s++) {
        if (s > 0) add_slopes(p, m->a[s], s, h, point);
        const tb_status status = p->slope(p->context, t + m->c[s] * h, s > 0 ? point : p->y,
                                          p->scratch + (size_t)s * n, error);
        p->evaluations++;
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* Difference of both methods over the tolerance, the largest of all numbers. */
static double estimate(const table *m, const tb_initial_value *p, double h)
{
    const size_t n = (size_t)p->size;
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double difference = 0;
        for (int32_t s = 0; s < m->stages; s++)
            difference += (m->b[s] - m->other[s]) * p->scratch[(size_t)s * n + i];
        const double scale = p->tolerance * (1 + fabs(p->y[i]));
        const double error = fabs(h * difference) / scale;
        if (!(error <= worst)) worst = error; /* NaN too */
    }
    return worst;
}

static tb_status run_adaptive(const table *m, tb_initial_value *p, tb_error *error)
{
    double t = 0, h = p->dt;
    bool warm = false;
    while (t < p->dt) {
        if (p->steps + p->rejected > MOST_STEPS || !(h > 1e-14 * p->dt))
            return tb_fail(error, TB_NOT_CONVERGED,
                           "integrator '%s' does not reach the tolerance %g", m->name,
                           p->tolerance);
        const bool last = t + h >= p->dt * (1 - 1e-12);
        if (last) h = p->dt - t;
        const tb_status status = run_stages(m, p, t, h, warm, error);
        if (status != TB_OK) return status;
        const double worst = estimate(m, p, h);
        const double factor = worst > 0 ? 0.9 * pow(worst, -1.0 / (m->order + 1)) : 5;
        warm = worst > 1 || !isfinite(worst); /* the first slope of a step that is tried again */
        if (!warm) {
            add_slopes(p, m->b, m->stages, h, p->y);
            t = last ? p->dt : t + h;
            p->steps++;
        } else {
            p->rejected++;
        }
        h *= isfinite(factor) ? fmax(0.2, fmin(factor, warm ? 0.9 : 5)) : 0.1;
    }
    return TB_OK;
}

tb_status tb_integrate(const char *name, tb_initial_value *problem, tb_error *error)
{
    problem->evaluations = problem->steps = problem->rejected = 0;
    for (int32_t i = 0; i < TABLES_COUNT; i++) {
        const table *m = &TABLES[i];
        if (strcmp(name, m->name) != 0) continue;
        if (is_adaptive(m)) return run_adaptive(m, problem, error);
        const tb_status status = run_stages(m, problem, 0, problem->dt, false, error);
        if (status == TB_OK) add_slopes(problem, m->b, m->stages, problem->dt, problem->y);
        problem->steps = 1;
        return status;
    }
    return tb_integrate_sundials(name, problem, error);
}
