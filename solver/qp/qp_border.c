/* The border of a saddle matrix: columns for constraints that have changed since K0 was factored,
 * and the Schur matrix that ties them (Litven 3.2, after Bartlett and Biegler's QPSchur).
 *
 *     [ K0  U ] [y ]   [c]       R = K0^-1 U,  v = K0^-1 c
 *     [ U'  0 ] [pi] = [w]       (-U' R) pi = w - U' v,  y = v - R pi
 *
 * Where K0 solves in halves, qp_halves.c makes the Schur matrix and y of half columns; the columns and
 * the Schur matrix are the same.
 *
 * A column of R is solved for once and kept while its constraint differs from the base; a change
 * that is undone takes its column out again, for a second one would make the matrix singular. */
#include "qp/qp_internal.h"

#include "qp/lapack.h"

#include <string.h>

/* from one column of the border to the next */
static int64_t border_stride(const tb_qp_workspace *work)
{
    if (work->k0.halves) return work->k0.halves->unknowns(work->k0.context);
    return (int64_t)work->qp->n + work->base_count;
}

/* u' z for the column u of a constraint's change */
static tb_real change_times(const tb_qp_workspace *work, int32_t constraint, const tb_real *z)
{
    const int32_t place = work->base_place[constraint];
    return place >= 0 ? z[work->qp->n + place] : (tb_real)tb_qp_row_times(work->qp, constraint, z);
}

static void take_change_out(tb_qp_workspace *work, int32_t slot)
{
    const int32_t last = --work->changes;
    const int64_t stride = border_stride(work);
    work->slot[work->changed[slot]] = -1;
    work->result->deletions++;
    if (slot == last) return;

    /* the last one fills the gap */
    work->changed[slot] = work->changed[last];
    work->slot[work->changed[slot]] = slot;
    memcpy(work->border + slot * stride, work->border + last * stride,
           (size_t)stride * sizeof(tb_real));
    tb_real *c = work->schur;
    const int64_t limit = work->limit;
    for (int32_t k = 0; k < last; k++) {
        const int32_t from = k == slot ? last : k;
        c[slot * limit + k] = c[k * limit + slot] = c[last * limit + from];
    }
}

static void put_change_in(tb_qp_workspace *work, int32_t constraint)
{
    work->slot[constraint] = work->changes;
    work->changed[work->changes++] = constraint;
}

/* the column u of a constraint's change */
static void fill_change(const tb_qp_workspace *work, int32_t constraint, tb_real *column)
{
    const tb_qp *qp = work->qp;
    memset(column, 0, (size_t)border_stride(work) * sizeof(tb_real));
    if (work->base_place[constraint] >= 0) {
        column[qp->n + work->base_place[constraint]] = 1;
        return;
    }
    for (int32_t k = qp->row_start[constraint]; k < qp->row_start[constraint + 1]; k++)
        column[qp->column[k]] = qp->value[k];
}

/* Whole columns, and their rows of the Schur matrix, for the slots from `known` on. */
static void solve_columns(tb_qp_workspace *work, int32_t known)
{
    const int64_t stride = border_stride(work), limit = work->limit;
    for (int32_t s = known; s < work->changes; s++)
        fill_change(work, work->changed[s], work->border + s * stride);
    work->k0.solve(work->k0.context, work->changes - known, work->border + known * stride);
    for (int32_t s = known; s < work->changes; s++) {
        const tb_real *column = work->border + s * stride;
        for (int32_t k = 0; k <= s; k++)
            work->schur[s * limit + k] = work->schur[k * limit + s] =
                -change_times(work, work->changed[k], column);
    }
}

/* L D L' of the Schur matrix; false where it is singular to working precision */
static bool factor_schur(tb_qp_workspace *work)
{
    const int size = work->changes;
    const int64_t limit = work->limit;
    tb_real *f = work->schur_factor;
    tb_real norm = 0;
    for (int32_t j = 0; j < size; j++) {
        tb_real sum = 0;
        for (int32_t i = 0; i < size; i++) {
            const tb_real c = work->schur[j * limit + i];
            f[(int64_t)j * size + i] = c;
            sum += tb_abs(c);
        }
        norm = tb_max(norm, sum);
    }
    if (!(norm > 0 && norm <= TB_REAL_MAX)) return false;
    const int work_size = 32 * work->limit;
    int info = 0;
    TB_LAPACK(sytrf)
    ("L", &size, f, &size, work->schur_pivots, work->schur_workspace, &work_size, &info, 1);
    if (info != 0) return false;
    tb_real condition = 0;
    TB_LAPACK(sycon)
    ("L", &size, f, &size, work->schur_pivots, &norm, &condition, work->schur_workspace,
     work->schur_integers, &info, 1);
    return info == 0 && condition > 10 * TB_REAL_EPSILON;
}

TB_EXTERN void tb_qp_border_clear(tb_qp_workspace *work)
{
    for (int32_t s = 0; s < work->changes; s++) work->slot[work->changed[s]] = -1;
    work->changes = 0;
}

TB_EXTERN bool tb_qp_border_move(tb_qp_workspace *work, const uint8_t *set)
{
    /* variables that changed back go first, so that their slots are free */
    for (int32_t s = work->changes - 1; s >= 0; s--)
        if ((set[work->changed[s]] != 0) == (work->base_place[work->changed[s]] >= 0))
            take_change_out(work, s);

    const int32_t known = work->changes;
    for (int32_t i = work->qp->equalities; i < work->qp->constraints; i++) {
        if ((set[i] != 0) == (work->base_place[i] >= 0) || work->slot[i] >= 0) continue;
        if (work->changes == work->limit) return false;
        put_change_in(work, i);
    }
    const int32_t fresh = work->changes - known;
    if (work->solves_of_base + fresh > work->options.maximum_solves) return false;

    if (fresh > 0) {
        const double start = tb_qp_clock();
        if (work->k0.halves)
            tb_qp_half_columns(work, known);
        else
            solve_columns(work, known);
        tb_qp_count_solves(work, fresh, start);
    }
    if (work->changes > work->result->largest_border) work->result->largest_border = work->changes;
    return work->changes == 0 || factor_schur(work);
}

TB_EXTERN void tb_qp_border_unknowns(const tb_qp_workspace *work, tb_real *pi)
{
    const int size = work->changes, one = 1;
    int info = 0;
    if (size == 0) return;
    TB_LAPACK(sytrs)
    ("L", &size, &one, work->schur_factor, &size, work->schur_pivots, pi, &size, &info, 1);
}

TB_EXTERN void tb_qp_border_solve(const tb_qp_workspace *work, tb_real *y, tb_real *pi)
{
    const int64_t stride = border_stride(work);
    for (int32_t s = 0; s < work->changes; s++) pi[s] -= change_times(work, work->changed[s], y);
    tb_qp_border_unknowns(work, pi);
    for (int32_t s = 0; s < work->changes; s++) {
        const tb_real *column = work->border + s * stride;
        for (int64_t i = 0; i < stride; i++) y[i] -= column[i] * pi[s];
    }
}
