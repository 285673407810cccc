/* K0 for any constraints, dense, by LAPACK.
 *
 * With H = L L' and V = L^-1 A0, the saddle system [H A0; A0' 0] [x; nu] = [c; d] is
 *     t = L^-1 c,   V' V nu = V' t - d,   x = L^-T (t - V nu),
 * three triangles and a Cholesky factor as large as the working set (range space method). A pivot
 * of V' V that is small against its diagonal marks a constraint that depends on the constraints
 * before it. Where H is not positive definite, K0 is factored whole, as L D L'. */
#include "qp/qp_internal.h"

#include "qp/lapack.h"

#include <string.h>

typedef struct dense_k0 {
    const tb_qp *qp;
    tb_arena *arena;
    int32_t most, count;
    bool whole;       /* L D L' of K0 */
    tb_real *hessian; /* n x n: L */
    tb_real *rows;    /* n x most: V */
    tb_real *product; /* most x most: the factor of V' V */
    tb_real *nu;      /* most x columns_of_nu */
    int32_t columns_of_nu;
    tb_real *saddle; /* (n + most)^2, allocated at first use, as are the next arrays */
    tb_real *saddle_workspace;
    int *pivots, *integers;
} dense_k0;

static tb_real *dense_row(const dense_k0 *k0, int32_t constraint, tb_real *to)
{
    const tb_qp *qp = k0->qp;
    memset(to, 0, (size_t)qp->n * sizeof *to);
    for (int32_t k = qp->row_start[constraint]; k < qp->row_start[constraint + 1]; k++)
        to[qp->column[k]] += qp->value[k];
    return to;
}

/* the lower triangle of H into a matrix of `stride` rows */
static void spread_hessian(const tb_qp *qp, tb_real *to, int64_t stride)
{
    const int64_t band = (int64_t)qp->half_bandwidth + 1;
    for (int64_t j = 0; j < qp->n; j++)
        for (int64_t i = j; i < qp->n; i++)
            to[i + j * stride] = i - j < band ? qp->hessian[i - j + j * band] : 0;
}

/* Cholesky factor of H; false where it is not definite to working precision */
static bool factor_hessian(dense_k0 *k0)
{
    const tb_qp *qp = k0->qp;
    const int n = qp->n;
    int info = 0;
    spread_hessian(qp, k0->hessian, n);
    TB_LAPACK(potrf)("L", &n, k0->hessian, &n, &info, 1);
    const int64_t band = (int64_t)qp->half_bandwidth + 1;
    bool definite = info == 0;
    for (int64_t j = 0; j < n && definite; j++) {
        const tb_real pivot = k0->hessian[j + j * n];
        definite = pivot * pivot > (tb_real)n * TB_REAL_EPSILON * qp->hessian[j * band];
    }
    return definite;
}

static tb_status factor_saddle(dense_k0 *k0, const int32_t *active)
{
    const tb_qp *qp = k0->qp;
    const size_t most = (size_t)qp->n + (size_t)k0->most;
    if (!k0->saddle) {
        k0->saddle_workspace = TB_ARENA_ARRAY(k0->arena, tb_real, 32 * most);
        k0->pivots = TB_ARENA_ARRAY(k0->arena, int, most);
        k0->integers = TB_ARENA_ARRAY(k0->arena, int, most);
        tb_real *saddle = TB_ARENA_ARRAY(k0->arena, tb_real, most * most);
        if (!k0->saddle_workspace || !k0->pivots || !k0->integers || !saddle)
            return TB_RESOURCE_EXHAUSTED;
        k0->saddle = saddle;
    }
    const int size = qp->n + k0->count, work_size = (int)(32 * most);
    tb_real *a = k0->saddle;
    memset(a, 0, (size_t)size * (size_t)size * sizeof *a);
    spread_hessian(qp, a, size);
    for (int64_t p = 0; p < k0->count; p++) {
        const int32_t i = active[p];
        for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1]; k++)
            a[qp->n + p + (int64_t)qp->column[k] * size] += qp->value[k];
    }
    tb_real norm = 0, condition = 0;
    for (int64_t j = 0; j < size; j++) { /* the 1-norm, from the lower triangle */
        tb_real sum = 0;
        for (int64_t i = 0; i < size; i++)
            sum += tb_abs(i >= j ? a[i + j * size] : a[j + i * size]);
        norm = tb_max(norm, sum);
    }
    int info = 0;
    TB_LAPACK(sytrf)("L", &size, a, &size, k0->pivots, k0->saddle_workspace, &work_size, &info, 1);
    if (info != 0) return TB_FAILED_PRECONDITION;
    TB_LAPACK(sycon)
    ("L", &size, a, &size, k0->pivots, &norm, &condition, k0->saddle_workspace, k0->integers, &info,
     1);
    return info == 0 && condition > 10 * TB_REAL_EPSILON ? TB_OK : TB_FAILED_PRECONDITION;
}

static tb_status dense_factor(void *context, const int32_t *active, int32_t count,
                              int32_t *dependent)
{
    dense_k0 *k0 = context;
    const int n = k0->qp->n, size = count;
    const tb_real one = 1, zero = 0;
    *dependent = -1;
    k0->count = count;
    k0->whole = !factor_hessian(k0);
    if (k0->whole) return factor_saddle(k0, active);
    if (count == 0) return TB_OK;

    for (int64_t p = 0; p < count; p++) dense_row(k0, active[p], k0->rows + p * n);
    TB_LAPACK(trsm)("L", "L", "N", "N", &n, &size, &one, k0->hessian, &n, k0->rows, &n, 1, 1, 1, 1);
    TB_LAPACK(syrk)("L", "T", &size, &n, &one, k0->rows, &n, &zero, k0->product, &size, 1, 1);
    for (int64_t p = 0; p < count; p++) k0->nu[p] = k0->product[p + p * count];
    int info = 0;
    TB_LAPACK(potrf)("L", &size, k0->product, &size, &info, 1);
    const int32_t end = info > 0 ? info - 1 : count;
    for (int64_t p = 0; p < end; p++) {
        const tb_real pivot = k0->product[p + p * count];
        if (pivot * pivot > 10 * (tb_real)n * TB_REAL_EPSILON * k0->nu[p]) continue;
        *dependent = (int32_t)p;
        return TB_FAILED_PRECONDITION;
    }
    if (info == 0) return TB_OK;
    *dependent = end;
    return TB_FAILED_PRECONDITION;
}

/* `columns` right-hand sides at most columns_of_nu */
static void dense_solve_few(dense_k0 *k0, int32_t columns, tb_real *x)
{
    const int n = k0->qp->n, size = k0->count, all = n + size, right = columns;
    const tb_real one = 1, minus = -1;
    int info = 0;
    TB_LAPACK(trsm)("L", "L", "N", "N", &n, &right, &one, k0->hessian, &n, x, &all, 1, 1, 1, 1);
    if (size > 0) {
        for (int64_t c = 0; c < columns; c++)
            memcpy(k0->nu + c * size, x + c * all + n, (size_t)size * sizeof *x);
        TB_LAPACK(gemm)
        ("T", "N", &size, &right, &n, &one, k0->rows, &n, x, &all, &minus, k0->nu, &size, 1, 1);
        TB_LAPACK(potrs)("L", &size, &right, k0->product, &size, k0->nu, &size, &info, 1);
        TB_LAPACK(gemm)
        ("N", "N", &n, &right, &size, &minus, k0->rows, &n, k0->nu, &size, &one, x, &all, 1, 1);
        for (int64_t c = 0; c < columns; c++)
            memcpy(x + c * all + n, k0->nu + c * size, (size_t)size * sizeof *x);
    }
    TB_LAPACK(trsm)("L", "L", "T", "N", &n, &right, &one, k0->hessian, &n, x, &all, 1, 1, 1, 1);
}

static void dense_solve(void *context, int32_t columns, tb_real *x)
{
    dense_k0 *k0 = context;
    const int all = k0->qp->n + k0->count, right = columns;
    int info = 0;
    if (k0->whole) {
        TB_LAPACK(sytrs)("L", &all, &right, k0->saddle, &all, k0->pivots, x, &all, &info, 1);
        return;
    }
    for (int32_t first = 0; first < columns; first += k0->columns_of_nu) {
        const int32_t left = columns - first;
        dense_solve_few(k0, left < k0->columns_of_nu ? left : k0->columns_of_nu,
                        x + (int64_t)first * all);
    }
}

TB_EXTERN tb_status tb_k0_dense(const tb_qp *qp, tb_arena *arena, tb_k0 *result)
{
    dense_k0 *k0 = TB_ARENA_ZEROED(arena, dense_k0, 1);
    if (!k0) return TB_RESOURCE_EXHAUSTED;
    k0->qp = qp;
    k0->arena = arena;
    k0->most = qp->constraints < qp->n ? qp->constraints : qp->n;
    k0->columns_of_nu = 32;
    const size_t n = (size_t)qp->n, most = (size_t)k0->most;
    k0->hessian = TB_ARENA_ARRAY(arena, tb_real, n * n);
    k0->rows = TB_ARENA_ARRAY(arena, tb_real, n * most);
    k0->product = TB_ARENA_ARRAY(arena, tb_real, most * most);
    k0->nu = TB_ARENA_ARRAY(arena, tb_real, most * (size_t)k0->columns_of_nu);
    if (!k0->hessian || !k0->rows || !k0->product || !k0->nu) return TB_RESOURCE_EXHAUSTED;
    *result = (tb_k0){.context = k0, .factor = dense_factor, .solve = dense_solve};
    return TB_OK;
}
