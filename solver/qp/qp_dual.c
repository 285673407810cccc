/* The dual active-set method, used when sets of PDASM repeat (Goldfarb and Idnani, A numerically
 * stable dual method for solving strictly convex quadratic programs, Math. Programming 27, 1983).
 *
 * It begins at the minimum without inequalities and adds one violated constraint at a time, along a
 * path on which the multipliers keep their signs; a constraint whose multiplier reaches zero
 * leaves. Each addition raises the minimum, so no set repeats, and the method ends at the solution
 * or finds that there is none. It is slower than PDASM and dense throughout; so it serves only
 * programs that PDASM does not end, and only its set is used.
 *
 * With H + rho A_e' A_e = L L' (the equalities make it positive definite and change no solution),
 * and v_i = L^-1 a_i, u = L' x: the program is that of the point nearest to -L^-1 f with v_i' u <=
 * b_i. All in double, whatever the precision. */
#include <string.h>

#include "qp/qp_internal.h"

/* Numbers that it may take: 512 MiB. */
static const double DUAL_MOST_NUMBERS = 64e6;
/* share of a constraint's length; a smaller remainder beside the others is rounding */
static const double DUAL_DEPENDENT = 1e-9;
static const double DUAL_VIOLATED = 1e-13;

typedef struct dual_method {
    const tb_qp *qp;
    int32_t n, count;
    double *factor;    /* n x n: L, row-major */
    double *v, *norm;  /* constraints x n, constraints */
    double *u;         /* n */
    double *gram;      /* most x most: Cholesky of v' v of the set, row-major */
    double *lambda;    /* of the set */
    double *r, *w, *z; /* most, most, n */
    int32_t *set, most;
    uint8_t *held;
} dual_method;

static double dual_dot(const double *a, const double *b, int32_t count)
{
    double sums[4] = {0};
    int32_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int32_t k = 0; k < 4; k++) sums[k] += a[i + k] * b[i + k];
    for (; i < count; i++) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static bool take_dual(dual_method *d, const tb_qp *qp, tb_arena *arena)
{
    const size_t n = (size_t)qp->n, m = (size_t)qp->constraints, most = m < n ? m : n;
    if ((double)n * ((double)n + (double)m) + (double)most * (double)most > DUAL_MOST_NUMBERS)
        return false;
    d->qp = qp;
    d->n = qp->n;
    d->count = 0;
    d->most = (int32_t)most;
    d->factor = TB_ARENA_ZEROED(arena, double, n *n);
    d->v = TB_ARENA_ZEROED(arena, double, m *n);
    d->norm = TB_ARENA_ARRAY(arena, double, m);
    d->u = TB_ARENA_ARRAY(arena, double, n);
    d->gram = TB_ARENA_ARRAY(arena, double, most *most);
    d->lambda = TB_ARENA_ARRAY(arena, double, most + 1);
    d->r = TB_ARENA_ARRAY(arena, double, most + 1);
    d->w = TB_ARENA_ARRAY(arena, double, most + 1);
    d->z = TB_ARENA_ARRAY(arena, double, n);
    d->set = TB_ARENA_ARRAY(arena, int32_t, most + 1);
    d->held = TB_ARENA_ZEROED(arena, uint8_t, m);
    return d->factor && d->v && d->norm && d->u && d->gram && d->lambda && d->r && d->w && d->z &&
           d->set && d->held;
}

/* x <- L^-1 x */
static void dual_forward(const dual_method *d, double *x)
{
    for (int32_t i = 0; i < d->n; i++) {
        const double *row = d->factor + (int64_t)i * d->n;
        x[i] = (x[i] - dual_dot(row, x, i)) / row[i];
    }
}

static bool factor_dual(dual_method *d)
{
    const tb_qp *qp = d->qp;
    const int64_t n = d->n, stride = (int64_t)qp->half_bandwidth + 1;
    double largest = 0, longest = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n && i - j <= qp->half_bandwidth; i++) {
            d->factor[i * n + j] = (double)qp->hessian[i - j + j * stride];
            largest = fmax(largest, fabs(d->factor[i * n + j]));
        }
    const int32_t entries = qp->equalities > 0 ? qp->row_start[qp->equalities] : 0;
    for (int32_t k = 0; k < entries; k++) longest = fmax(longest, fabs((double)qp->value[k]));
    const double rho = longest > 0 ? largest / (longest * longest) : 0;
    for (int32_t e = 0; e < qp->equalities; e++)
        for (int32_t k = qp->row_start[e]; k < qp->row_start[e + 1]; k++)
            for (int32_t l = qp->row_start[e]; l < qp->row_start[e + 1]; l++)
                if (qp->column[l] <= qp->column[k])
                    d->factor[qp->column[k] * n + qp->column[l]] +=
                        rho * (double)qp->value[k] * (double)qp->value[l];
    for (int64_t i = 0; i < n; i++) {
        double *row = d->factor + i * n;
        const double diagonal = row[i];
        for (int64_t j = 0; j < i; j++)
            row[j] = (row[j] - dual_dot(row, d->factor + j * n, (int32_t)j)) / d->factor[j * n + j];
        row[i] -= dual_dot(row, row, (int32_t)i);
        if (!(row[i] > 1e-15 * diagonal)) return false;
        row[i] = sqrt(row[i]);
    }

    /* L' x of the minimum of 1/2 x' H x + (f - rho A_e' b_e)' x */
    for (int64_t j = 0; j < n; j++) d->u[j] = -(double)qp->f[j];
    for (int32_t e = 0; e < qp->equalities; e++)
        for (int32_t k = qp->row_start[e]; k < qp->row_start[e + 1]; k++)
            d->u[qp->column[k]] += rho * (double)qp->value[k] * (double)qp->b[e];
    dual_forward(d, d->u);
    for (int32_t i = 0; i < qp->constraints; i++) {
        double *v = d->v + i * n;
        for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1]; k++)
            v[qp->column[k]] = (double)qp->value[k];
        dual_forward(d, v);
        d->norm[i] = sqrt(dual_dot(v, v, d->n));
    }
    return true;
}

/* The row of the Gram matrix's factor for constraint p beside the first `count` of the set, in
 * w. */
static void gram_row(dual_method *d, int32_t p, int32_t count)
{
    for (int32_t j = 0; j < count; j++) {
        const double *row = d->gram + (int64_t)j * d->most;
        const double product =
            dual_dot(d->v + (int64_t)d->set[j] * d->n, d->v + (int64_t)p * d->n, d->n);
        d->w[j] = (product - dual_dot(row, d->w, j)) / row[j];
    }
}

static void leave_dual(dual_method *d, int32_t at)
{
    d->held[d->set[at]] = 0;
    d->count--;
    for (int32_t j = at; j < d->count; j++) {
        d->set[j] = d->set[j + 1];
        d->lambda[j] = d->lambda[j + 1];
    }
    for (int32_t j = at; j < d->count; j++) {
        double *row = d->gram + (int64_t)j * d->most;
        const double norm = d->norm[d->set[j]];
        gram_row(d, d->set[j], j);
        memcpy(row, d->w, (size_t)j * sizeof *row);
        const double rest = norm * norm - dual_dot(row, row, j);
        row[j] = sqrt(fmax(rest, DUAL_DEPENDENT * DUAL_DEPENDENT * norm * norm));
    }
}

/* How the set's multipliers (r) and the point (z) answer to constraint p; returns |z|^2. */
static double dual_direction(dual_method *d, int32_t p)
{
    const int64_t n = d->n, most = d->most;
    gram_row(d, p, d->count);
    memcpy(d->z, d->v + p * n, (size_t)n * sizeof *d->z);
    for (int32_t j = d->count - 1; j >= 0; j--) {
        double sum = d->w[j];
        for (int32_t k = j + 1; k < d->count; k++) sum -= d->gram[k * most + j] * d->r[k];
        d->r[j] = sum / d->gram[j * most + j];
    }
    for (int32_t j = 0; j < d->count; j++) {
        const double *v = d->v + d->set[j] * n;
        for (int32_t i = 0; i < n; i++) d->z[i] -= d->r[j] * v[i];
    }
    return dual_dot(d->z, d->z, d->n);
}

/* Takes constraint p in. False: it contradicts the set. */
static bool enter_dual(dual_method *d, int32_t p, int32_t *steps, int32_t most_steps)
{
    const tb_qp *qp = d->qp;
    const double *v = d->v + (int64_t)p * d->n;
    const double tiny = DUAL_DEPENDENT * d->norm[p];
    double own = 0;
    while (++*steps <= most_steps) {
        const double zz = dual_direction(d, p);
        const double outside = dual_dot(v, d->u, d->n) - (double)qp->b[p];
        const bool independent = zz > tiny * tiny && d->count < d->most;
        double step = independent ? outside / zz : DBL_MAX;
        int32_t leaves = -1;
        for (int32_t j = 0; j < d->count; j++) {
            if (tb_qp_is_equality(qp, d->set[j]) || !(d->r[j] > 0)) continue;
            const double until = fmax(d->lambda[j], 0) / d->r[j];
            if (until < step) {
                step = until;
                leaves = j;
            }
        }
        if (step == DBL_MAX) return false;
        for (int32_t j = 0; j < d->count; j++) d->lambda[j] -= step * d->r[j];
        own += step;
        for (int32_t i = 0; i < d->n; i++) d->u[i] -= step * d->z[i];
        if (leaves >= 0) {
            leave_dual(d, leaves);
            continue;
        }
        double *row = d->gram + (int64_t)d->count * d->most;
        memcpy(row, d->w, (size_t)d->count * sizeof *row);
        row[d->count] = sqrt(zz);
        d->set[d->count] = p;
        d->lambda[d->count++] = own;
        d->held[p] = 1;
        return true;
    }
    return false;
}

/* The constraint that is violated most, for its length; -1: none. */
static int32_t most_violated(const dual_method *d)
{
    const tb_qp *qp = d->qp;
    const double length = sqrt(dual_dot(d->u, d->u, d->n));
    int32_t worst = -1;
    double most = 0;
    for (int32_t i = qp->equalities; i < qp->constraints; i++) {
        if (d->held[i] || tb_qp_is_off(qp, i)) continue;
        const double b = (double)qp->b[i];
        const double outside = dual_dot(d->v + (int64_t)i * d->n, d->u, d->n) - b;
        if (!(outside > DUAL_VIOLATED * (d->norm[i] * length + fabs(b)))) continue;
        const double far = d->norm[i] > 0 ? outside / d->norm[i] : DBL_MAX;
        if (far > most) {
            most = far;
            worst = i;
        }
    }
    return worst;
}

TB_EXTERN bool tb_qp_dual_set(const tb_qp_workspace *work, uint8_t *set, int32_t *steps)
{
    const tb_qp *qp = work->qp;
    tb_arena arena;
    dual_method d;
    const int32_t most_steps = 100 + 20 * (qp->n + qp->constraints);
    *steps = 0;
    tb_arena_init(&arena, 0);
    bool good = take_dual(&d, qp, &arena) && factor_dual(&d);
    for (int32_t e = 0; e < qp->constraints && good; e++)
        if (tb_qp_is_equality(qp, e)) good = enter_dual(&d, e, steps, most_steps);
    while (good) {
        const int32_t p = most_violated(&d);
        if (p < 0) break;
        good = !tb_qp_is_cancelled(work) && enter_dual(&d, p, steps, most_steps);
    }
    if (good) memcpy(set, d.held, (size_t)qp->constraints);
    tb_arena_destroy(&arena);
    return good;
}
