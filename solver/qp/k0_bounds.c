/* K0 for bounds on single variables, with a band: Litven's reduction of the contact program (5.1,
 * algorithm 5.1 with the term H_BB x_B that it leaves out).
 *
 * An active bound v x_k = d gives x_k, the others solve H_FF x_F = c_F - H_FB x_B, and the
 * multiplier of the bound is the rest of its row, (c - H x)_k / v. H_FF keeps the band of H, and
 * its own is as much narrower as variables are bound. */
#include "qp/qp_internal.h"

#include "qp/lapack.h"

#include <string.h>

typedef struct bounds_k0 {
    const tb_qp *qp;
    bool lapack;
    int32_t count, free_count;
    int32_t half_bandwidth; /* of H_FF */
    int32_t *bound;         /* active constraints: their variable */
    tb_real *value;         /* and its factor v */
    int32_t *free;          /* the other variables, ascending */
    uint8_t *is_bound;      /* variables */
    tb_band band;
    /* with LAPACK instead of it: the factor of H_FF, lower band, and the diagonal of H_FF (n) */
    tb_real *reduced, *diagonal;
} bounds_k0;

/* The free variables, and how far two that H couples are apart among them. */
static void list_free(bounds_k0 *k0)
{
    const tb_qp *qp = k0->qp;
    k0->free_count = 0;
    for (int32_t j = 0; j < qp->n; j++)
        if (!k0->is_bound[j]) k0->free[k0->free_count++] = j;
    k0->half_bandwidth = 0;
    for (int32_t j = 0, i = 0; j < k0->free_count; j++) {
        while (i + 1 < k0->free_count && k0->free[i + 1] - k0->free[j] <= qp->half_bandwidth) i++;
        if (i - j > k0->half_bandwidth) k0->half_bandwidth = i - j;
    }
}

/* H_FF as LAPACK's band, factored by it */
static bool factor_by_lapack(bounds_k0 *k0)
{
    const tb_qp *qp = k0->qp;
    const int n = k0->free_count, half = k0->half_bandwidth, stride = half + 1;
    for (int32_t j = 0; j < n; j++) {
        const tb_real *from = qp->hessian + k0->free[j] * ((int64_t)qp->half_bandwidth + 1);
        tb_real *to = k0->reduced + (int64_t)j * stride;
        memset(to, 0, (size_t)stride * sizeof *to);
        for (int32_t i = j; i < n && k0->free[i] - k0->free[j] <= qp->half_bandwidth; i++)
            to[i - j] = from[k0->free[i] - k0->free[j]];
        k0->diagonal[j] = to[0];
    }
    int info = 0;
    TB_LAPACK(pbtrf)("L", &n, &half, k0->reduced, &stride, &info, 1);
    bool definite = info == 0;
    for (int32_t j = 0; j < n && definite; j++) {
        const tb_real pivot = k0->reduced[(int64_t)j * stride];
        definite = pivot * pivot > TB_REAL_EPSILON * k0->diagonal[j];
    }
    return definite;
}

static bool factor_free(bounds_k0 *k0)
{
    if (k0->free_count == 0) return true;
    if (k0->lapack) return factor_by_lapack(k0);
    return tb_band_factor_list(&k0->band, k0->qp->hessian, k0->qp->half_bandwidth, k0->free,
                               k0->free_count, k0->half_bandwidth,
                               TB_REAL_EPSILON) == k0->free_count;
}

static tb_status bounds_factor(void *context, const int32_t *active, int32_t count,
                               int32_t *dependent)
{
    bounds_k0 *k0 = context;
    const tb_qp *qp = k0->qp;
    *dependent = -1;
    k0->count = count;
    memset(k0->is_bound, 0, (size_t)qp->n);
    for (int32_t p = 0; p < count; p++) {
        const int32_t entry = qp->row_start[active[p]];
        k0->bound[p] = qp->column[entry];
        k0->value[p] = qp->value[entry];
        if (k0->is_bound[k0->bound[p]]) {
            *dependent = p;
            return TB_FAILED_PRECONDITION;
        }
        k0->is_bound[k0->bound[p]] = 1;
    }
    list_free(k0);
    return factor_free(k0) ? TB_OK : TB_FAILED_PRECONDITION;
}

static int32_t bounds_unknowns(const void *context)
{
    return ((const bounds_k0 *)context)->free_count;
}

static void bounds_particular(const void *context, const tb_real *e, tb_real *x)
{
    const bounds_k0 *k0 = context;
    memset(x, 0, (size_t)k0->qp->n * sizeof *x);
    for (int32_t p = 0; p < k0->count; p++) x[k0->bound[p]] = e[p] / k0->value[p];
}

static int32_t bounds_column(const void *context, int32_t place, int32_t variable[2],
                             tb_real number[2])
{
    const bounds_k0 *k0 = context;
    variable[0] = k0->bound[place];
    number[0] = 1 / k0->value[place];
    return 1;
}

/* a triangle of the factor by LAPACK */
static void solve_triangle(const bounds_k0 *k0, const char *transposed, int32_t columns, tb_real *t)
{
    const int n = k0->free_count, half = k0->half_bandwidth, stride = half + 1, right = columns;
    int info = 0;
    TB_LAPACK(tbtrs)
    ("L", transposed, "N", &n, &half, &right, k0->reduced, &stride, t, &n, &info, 1, 1, 1);
}

static void bounds_forward(void *context, int32_t columns, const tb_real *r, tb_real *t)
{
    bounds_k0 *k0 = context;
    const int32_t count = k0->free_count;
    if (count == 0) return;
    for (int32_t c = 0; c < columns; c++)
        for (int32_t k = 0; k < count; k++)
            t[(int64_t)c * count + k] = r[(int64_t)c * k0->qp->n + k0->free[k]];
    if (k0->lapack)
        solve_triangle(k0, "N", columns, t);
    else
        tb_band_forward(&k0->band, columns, t, count);
}

static void bounds_backward(void *context, tb_real *t, tb_real *x)
{
    bounds_k0 *k0 = context;
    const int32_t count = k0->free_count;
    if (count == 0) return;
    if (k0->lapack)
        solve_triangle(k0, "T", 1, t);
    else
        tb_band_backward(&k0->band, 1, t, count);
    for (int32_t k = 0; k < count; k++) x[k0->free[k]] += t[k];
}

static void bounds_multipliers(const void *context, const tb_real *r, tb_real *nu)
{
    const bounds_k0 *k0 = context;
    for (int32_t p = 0; p < k0->count; p++) nu[p] = r[k0->bound[p]] / k0->value[p];
}

TB_EXTERN tb_status tb_k0_bounds(const tb_qp *qp, bool lapack, int32_t block, tb_arena *arena,
                                 tb_k0 *result)
{
    for (int32_t i = 0; i < qp->constraints; i++)
        if (qp->row_start[i + 1] - qp->row_start[i] != 1 || qp->value[qp->row_start[i]] == 0)
            return TB_UNSUPPORTED;
    bounds_k0 *k0 = TB_ARENA_ZEROED(arena, bounds_k0, 1);
    if (!k0) return TB_RESOURCE_EXHAUSTED;
    k0->qp = qp;
    k0->lapack = lapack;
    const size_t n = (size_t)qp->n;
    k0->bound = TB_ARENA_ARRAY(arena, int32_t, n);
    k0->value = TB_ARENA_ARRAY(arena, tb_real, n);
    k0->free = TB_ARENA_ARRAY(arena, int32_t, n);
    k0->is_bound = TB_ARENA_ARRAY(arena, uint8_t, n);
    if (!k0->bound || !k0->value || !k0->free || !k0->is_bound) return TB_RESOURCE_EXHAUSTED;
    if (lapack) {
        k0->reduced = TB_ARENA_ARRAY(arena, tb_real, n * ((size_t)qp->half_bandwidth + 1));
        k0->diagonal = TB_ARENA_ARRAY(arena, tb_real, n);
        if (!k0->reduced || !k0->diagonal) return TB_RESOURCE_EXHAUSTED;
    } else {
        const tb_status status = tb_band_take(&k0->band, qp->n, qp->half_bandwidth, block, arena);
        if (status != TB_OK) return status;
    }
    static const tb_k0_halves halves = {.unknowns = bounds_unknowns,
                                        .particular = bounds_particular,
                                        .column = bounds_column,
                                        .forward = bounds_forward,
                                        .backward = bounds_backward,
                                        .multipliers = bounds_multipliers};
    *result = (tb_k0){.context = k0, .factor = bounds_factor, .halves = &halves};
    return TB_OK;
}
