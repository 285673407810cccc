/* K0 for bounds on single variables, with a band: Litven's reduction of the contact program (5.1,
 * algorithm 5.1 with the term H_BB x_B that it leaves out).
 *
 * An active bound v x_k = d gives x_k, the others solve H_FF x_F = c_F - H_FB x_B, and what is left
 * of the bound's row is its multiplier, (c - H x)_k / v. H_FF keeps the band of H, and its own is
 * as much narrower as variables are bound. */
#include "solve/qp_internal.h"

#include "solve/lapack.h"

#include <string.h>

enum { BOUNDS_COLUMNS = 64 }; /* right-hand sides at a time */

typedef struct bounds_k0 {
    const tb_qp *qp;
    bool lapack;
    int32_t count, free_count;
    int32_t half_bandwidth; /* of H_FF */
    int32_t *bound;         /* active constraints: their variable */
    tb_real *value;         /* and its factor v */
    int32_t *free;          /* the other variables, ascending */
    uint8_t *is_bound;      /* variables */
    tb_real *reduced;       /* H_FF, lower band; with LAPACK its factor */
    tb_band band;
    tb_real *x, *right; /* n x BOUNDS_COLUMNS */
    tb_real *product;   /* n */
} bounds_k0;

static void gather_free(bounds_k0 *k0)
{
    const tb_qp *qp = k0->qp;
    const int32_t half = qp->half_bandwidth;
    k0->free_count = 0;
    for (int32_t j = 0; j < qp->n; j++)
        if (!k0->is_bound[j]) k0->free[k0->free_count++] = j;

    /* as far as two free variables that H couples are apart among the free */
    int32_t reach = 0;
    for (int32_t j = 0, i = 0; j < k0->free_count; j++) {
        while (i + 1 < k0->free_count && k0->free[i + 1] - k0->free[j] <= half) i++;
        if (i - j > reach) reach = i - j;
    }
    k0->half_bandwidth = reach;
    const int64_t stride = (int64_t)half + 1, to_stride = (int64_t)reach + 1;
    for (int32_t j = 0; j < k0->free_count; j++) {
        const tb_real *from = qp->hessian + k0->free[j] * stride;
        tb_real *to = k0->reduced + j * to_stride;
        memset(to, 0, (size_t)to_stride * sizeof *to);
        for (int32_t i = j; i < k0->free_count && k0->free[i] - k0->free[j] <= half; i++)
            to[i - j] = from[k0->free[i] - k0->free[j]];
    }
}

static bool factor_free(bounds_k0 *k0)
{
    if (k0->free_count == 0) return true;
    if (!k0->lapack)
        return tb_band_factor(&k0->band, k0->reduced, k0->free_count, k0->half_bandwidth,
                              TB_REAL_EPSILON) == k0->free_count;
    const int n = k0->free_count, half = k0->half_bandwidth, stride = half + 1;
    int info = 0;
    for (int32_t j = 0; j < n; j++) k0->right[j] = k0->reduced[(int64_t)j * stride];
    TB_LAPACK(pbtrf)("L", &n, &half, k0->reduced, &stride, &info, 1);
    bool definite = info == 0;
    for (int32_t j = 0; j < n && definite; j++) {
        const tb_real pivot = k0->reduced[(int64_t)j * stride];
        definite = pivot * pivot > TB_REAL_EPSILON * k0->right[j];
    }
    return definite;
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
    gather_free(k0);
    return factor_free(k0) ? TB_OK : TB_FAILED_PRECONDITION;
}

static void solve_free(bounds_k0 *k0, int32_t columns)
{
    const int n = k0->free_count;
    if (n == 0) return;
    if (!k0->lapack) {
        tb_band_solve(&k0->band, columns, k0->right, n);
        return;
    }
    const int half = k0->half_bandwidth, stride = half + 1, right = columns;
    int info = 0;
    TB_LAPACK(pbtrs)("L", &n, &half, &right, k0->reduced, &stride, k0->right, &n, &info, 1);
}

/* product <- H x_B of one column, by columns of H where few bounds are not zero; false: all are */
static bool multiply_bound(bounds_k0 *k0, const tb_real *x, tb_real *product)
{
    const tb_qp *qp = k0->qp;
    int32_t moved = 0;
    for (int32_t p = 0; p < k0->count; p++) moved += x[k0->bound[p]] != 0;
    if (moved == 0) return false;
    if (moved > qp->n / 8) {
        tb_band_multiply(qp->hessian, qp->n, qp->half_bandwidth, 1, x, qp->n, product, qp->n);
        return true;
    }
    memset(product, 0, (size_t)qp->n * sizeof *product);
    for (int32_t p = 0; p < k0->count; p++)
        if (x[k0->bound[p]] != 0)
            tb_band_add_column(qp->hessian, qp->n, qp->half_bandwidth, k0->bound[p],
                               x[k0->bound[p]], product);
    return true;
}

/* nu = (c - H x) / v; c still stands in `own`, x in `x` */
static void find_bound_multipliers(bounds_k0 *k0, tb_real *own, const tb_real *x, tb_real *product,
                                   const int32_t *wanted, int32_t number_wanted)
{
    const tb_qp *qp = k0->qp;
    tb_real *nu = own + qp->n;
    if (wanted == NULL && k0->count > 0) {
        tb_band_multiply(qp->hessian, qp->n, qp->half_bandwidth, 1, x, qp->n, product, qp->n);
        for (int32_t p = 0; p < k0->count; p++)
            nu[p] = (own[k0->bound[p]] - product[k0->bound[p]]) / k0->value[p];
    }
    for (int32_t k = 0; wanted != NULL && k < number_wanted; k++) {
        const int32_t p = wanted[k], row = k0->bound[p];
        const tb_real at = tb_band_row_times(qp->hessian, qp->n, qp->half_bandwidth, row, x);
        nu[p] = (own[row] - at) / k0->value[p];
    }
}

/* up to BOUNDS_COLUMNS right-hand sides */
static void bounds_solve_few(bounds_k0 *k0, int32_t columns, tb_real *x, const int32_t *wanted,
                             int32_t number_wanted)
{
    const int64_t n = k0->qp->n, all = n + k0->count;
    const int32_t free_count = k0->free_count;
    memset(k0->x, 0, (size_t)columns * (size_t)n * sizeof *x);
    for (int32_t c = 0; c < columns; c++) { /* c_F - H_FB x_B */
        const tb_real *own = x + c * all;
        tb_real *own_x = k0->x + c * n, *right = k0->right + (int64_t)c * free_count;
        for (int32_t p = 0; p < k0->count; p++) own_x[k0->bound[p]] = own[n + p] / k0->value[p];
        const bool moved = multiply_bound(k0, own_x, k0->product);
        for (int32_t f = 0; f < free_count; f++)
            right[f] = own[k0->free[f]] - (moved ? k0->product[k0->free[f]] : 0);
    }
    solve_free(k0, columns);
    for (int32_t c = 0; c < columns; c++) {
        tb_real *own = x + c * all, *own_x = k0->x + c * n;
        for (int32_t f = 0; f < free_count; f++)
            own_x[k0->free[f]] = k0->right[(int64_t)c * free_count + f];
        find_bound_multipliers(k0, own, own_x, k0->product, wanted, number_wanted);
        memcpy(own, own_x, (size_t)n * sizeof *own);
    }
}

static void bounds_solve(void *context, int32_t columns, tb_real *x, const int32_t *wanted,
                         int32_t number_wanted)
{
    bounds_k0 *k0 = context;
    const int64_t all = (int64_t)k0->qp->n + k0->count;
    for (int32_t first = 0; first < columns; first += BOUNDS_COLUMNS) {
        const int32_t left = columns - first;
        bounds_solve_few(k0, left < BOUNDS_COLUMNS ? left : BOUNDS_COLUMNS, x + first * all, wanted,
                         number_wanted);
    }
}

static void bounds_multipliers(void *context, const tb_real *r, tb_real *nu)
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
    k0->reduced = TB_ARENA_ARRAY(arena, tb_real, n * ((size_t)qp->half_bandwidth + 1));
    k0->x = TB_ARENA_ARRAY(arena, tb_real, n * BOUNDS_COLUMNS);
    k0->product = TB_ARENA_ARRAY(arena, tb_real, n);
    k0->right = TB_ARENA_ARRAY(arena, tb_real, n * BOUNDS_COLUMNS);
    if (!k0->bound || !k0->value || !k0->free || !k0->is_bound || !k0->reduced || !k0->x ||
        !k0->product || !k0->right)
        return TB_RESOURCE_EXHAUSTED;
    if (!lapack) {
        const tb_status status = tb_band_take(&k0->band, qp->n, qp->half_bandwidth, block, arena);
        if (status != TB_OK) return status;
    }
    *result = (tb_k0){.context = k0,
                      .factor = bounds_factor,
                      .solve = bounds_solve,
                      .multipliers = bounds_multipliers};
    return TB_OK;
}
