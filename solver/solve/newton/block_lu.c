/* Sparse LU of small dense blocks: the numbers. The pattern is made in block_lu_pattern.c. */
#include "solve/newton/block_lu.h"

#include "base/team.h"
#include "solve/sweep/simd_pair.h"
#ifndef TB_DEVICE
#include "solve/newton/block_product.h"
#endif

#include <string.h>

TB_EXTERN tb_status tb_block_lu_dense(tb_block_lu *lu, int32_t rows, tb_arena *arena)
{
    memset(lu, 0, sizeof *lu);
    lu->nodes = lu->groups = 1;
    lu->rows = rows;
    lu->numbers = (int64_t)rows * rows;
    lu->operations = (double)rows * rows * rows / 3;
    int32_t *zeros = TB_ARENA_ZEROED(arena, int32_t, 5);
    lu->diagonal = TB_ARENA_ZEROED(arena, int64_t, 1);
    lu->size = TB_ARENA_ARRAY(arena, int32_t, 1);
    lu->values = TB_ARENA_ARRAY(arena, tb_real, lu->numbers);
    lu->exchange = TB_ARENA_ARRAY(arena, int32_t, rows);
    lu->work = TB_ARENA_ARRAY(arena, tb_real, rows);
    if (!zeros || !lu->diagonal || !lu->size || !lu->values || !lu->exchange || !lu->work)
        return TB_RESOURCE_EXHAUSTED;
    lu->group = zeros;
    lu->offset = zeros + 1;
    lu->first = zeros + 2;
    lu->later_start = zeros + 3;
    if (TB_LEADER) lu->size[0] = rows;
    tb_team_sync();
    return TB_OK;
}

TB_EXTERN void tb_block_lu_shrink(tb_block_lu *lu, int32_t rows)
{
    tb_team_sync();
    lu->rows = rows;
    lu->numbers = (int64_t)rows * rows;
    if (TB_LEADER) lu->size[0] = rows;
    tb_team_sync();
}

TB_EXTERN tb_real *tb_block_lu_single_node(tb_block_lu *lu)
{
    size_t room = 0;
    tb_real *fast = (tb_real *)tb_team_fast(&room);
    const size_t rows = (size_t)lu->rows, numbers = (size_t)lu->numbers + 2 * rows;
    if (!fast || numbers * sizeof(tb_real) + rows * sizeof(int32_t) > room) return NULL;
    lu->values = fast;
    lu->work = fast + lu->numbers;
    lu->exchange = (int32_t *)(void *)(fast + numbers);
    return lu->work + rows;
}

TB_EXTERN void tb_block_lu_clear(tb_block_lu *lu)
{
    tb_team_clear(lu->values, (size_t)lu->numbers * sizeof(tb_real));
    tb_team_sync();
}

/* the entry of `later` at which group k has group j > k; there is one */
TB_CALLED int32_t find_later(const tb_block_lu *lu, int32_t k, int32_t j)
{
    int32_t low = lu->later_start[k], high = lu->later_start[k + 1] - 1;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (lu->later[middle] < j)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

TB_EXTERN tb_real *tb_block_lu_block(const tb_block_lu *lu, int32_t row, int32_t column)
{
    if (row == column) return lu->values + lu->diagonal[row];
    if (row < column) return lu->values + lu->upper[find_later(lu, row, column)];
    return lu->values + lu->lower[find_later(lu, column, row)];
}

/* ---- numbers ---- */

/* to (n) -= four numbers of a row times four rows of b */
TB_FN void subtract_four(tb_real *TB_RESTRICT to, const tb_real *left, const tb_real *b, int32_t n)
{
    const tb_real *r0 = b, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
    const tb_simd_pair f0 = tb_simd_pair_of(-left[0], -left[0]),
                       f1 = tb_simd_pair_of(-left[1], -left[1]);
    const tb_simd_pair f2 = tb_simd_pair_of(-left[2], -left[2]),
                       f3 = tb_simd_pair_of(-left[3], -left[3]);
    int32_t j = 0;
    for (; j + 2 <= n; j += 2) {
        const tb_simd_pair near = tb_simd_pair_add(tb_simd_pair_mul(f0, tb_simd_pair_load(r0 + j)),
                                                   tb_simd_pair_mul(f1, tb_simd_pair_load(r1 + j)));
        const tb_simd_pair far = tb_simd_pair_add(tb_simd_pair_mul(f2, tb_simd_pair_load(r2 + j)),
                                                  tb_simd_pair_mul(f3, tb_simd_pair_load(r3 + j)));
        tb_simd_pair_store(
            to + j, tb_simd_pair_add(tb_simd_pair_load(to + j), tb_simd_pair_add(near, far)));
    }
    for (; j < n; j++)
        to[j] -= (left[0] * r0[j] + left[1] * r1[j]) + (left[2] * r2[j] + left[3] * r3[j]);
}

/* four products of a row with numbers `stride` apart */
TB_FN tb_real four_products(const tb_real *row, const tb_real *column, int32_t stride)
{
    return (row[0] * column[0] + row[1] * column[stride]) +
           (row[2] * column[2 * stride] + row[3] * column[3 * stride]);
}

/* One number of a product: from - a's row times b's column, summed in the same order. */
TB_STATIC tb_real less_product(tb_real from, const tb_real *row, const tb_real *column, int32_t k,
                               int32_t stride)
{
    int32_t p = 0;
    TB_ROLLED
    for (; p + 4 <= k; p += 4) from -= four_products(row + p, column + p * stride, stride);
    TB_ROLLED
    for (; p < k; p++) from -= row[p] * column[p * stride];
    return from;
}

#ifdef TB_DEVICE
/* Up to two rows and two pairs of columns of c -= a b, kept in registers: c - the products of four rows
 * of b at a time, then of one. */
TB_FN void subtract_tile(tb_real *c, const tb_real *a, const tb_real *b, int32_t k, int32_t n,
                         const int rows, const int pairs)
{
    const tb_real *second = a + (rows > 1 ? k : 0);
    tb_simd_pair sum[2][2];
    for (int j = 0; j < pairs; j++) {
        sum[0][j] = tb_simd_pair_load(c + 2 * j);
        if (rows > 1) sum[1][j] = tb_simd_pair_load(c + n + 2 * j);
    }
    int32_t p = 0;
    for (; p + 4 <= k; p += 4) {
        const tb_real *r0 = b + (int64_t)p * n, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
        for (int i = 0; i < rows; i++) {
            const tb_real *left = (i ? second : a) + p;
            const tb_simd_pair f0 = tb_simd_pair_of(-left[0], -left[0]),
                               f1 = tb_simd_pair_of(-left[1], -left[1]),
                               f2 = tb_simd_pair_of(-left[2], -left[2]),
                               f3 = tb_simd_pair_of(-left[3], -left[3]);
            for (int j = 0; j < pairs; j++) {
                const tb_simd_pair near =
                    tb_simd_pair_add(tb_simd_pair_mul(f0, tb_simd_pair_load(r0 + 2 * j)),
                                     tb_simd_pair_mul(f1, tb_simd_pair_load(r1 + 2 * j)));
                const tb_simd_pair far =
                    tb_simd_pair_add(tb_simd_pair_mul(f2, tb_simd_pair_load(r2 + 2 * j)),
                                     tb_simd_pair_mul(f3, tb_simd_pair_load(r3 + 2 * j)));
                sum[i][j] = tb_simd_pair_add(sum[i][j], tb_simd_pair_add(near, far));
            }
        }
    }
    for (; p < k; p++) {
        const tb_real *row = b + (int64_t)p * n;
        for (int i = 0; i < rows; i++) {
            const tb_real left = -(i ? second : a)[p];
            const tb_simd_pair f = tb_simd_pair_of(left, left);
            for (int j = 0; j < pairs; j++)
                sum[i][j] = tb_simd_pair_add(sum[i][j],
                                             tb_simd_pair_mul(f, tb_simd_pair_load(row + 2 * j)));
        }
    }
    for (int j = 0; j < pairs; j++) {
        tb_simd_pair_store(c + 2 * j, sum[0][j]);
        if (rows > 1) tb_simd_pair_store(c + n + 2 * j, sum[1][j]);
    }
}

/* c -= a b, a: m x k, b: k x n, row-major without gaps, with the sums of subtract_four */
TB_STATIC void subtract_product(tb_real *TB_RESTRICT c, const tb_real *a, const tb_real *b,
                                int32_t m, int32_t k, int32_t n)
{
    for (int32_t i = 0; i < m; i += 2) {
        tb_real *to = c + (int64_t)i * n;
        const tb_real *left = a + (int64_t)i * k;
        const int32_t rows = m - i < 2 ? 1 : 2;
        int32_t j = 0;
        if (rows == 2) {
            for (; j + 4 <= n; j += 4) subtract_tile(to + j, left, b + j, k, n, 2, 2);
            if (j + 2 <= n) {
                subtract_tile(to + j, left, b + j, k, n, 2, 1);
                j += 2;
            }
        } else {
            for (; j + 4 <= n; j += 4) subtract_tile(to + j, left, b + j, k, n, 1, 2);
            if (j + 2 <= n) {
                subtract_tile(to + j, left, b + j, k, n, 1, 1);
                j += 2;
            }
        }
        for (; j < n; j++)
            for (int32_t r = 0; r < rows; r++)
                to[r * n + j] = less_product(to[r * n + j], left + r * k, b + j, k, n);
    }
}

#else
TB_STATIC void subtract_product(tb_real *TB_RESTRICT c, const tb_real *a, const tb_real *b,
                                int32_t m, int32_t k, int32_t n)
{
    tb_subtract_product(c, a, b, m, k, n);
}
#endif

/* The same of one row, the last rows of b first. */
TB_STATIC void subtract_backward(tb_real *TB_RESTRICT to, const tb_real *left, const tb_real *b,
                                 int32_t k, int32_t n)
{
    int32_t p = k;
    for (; p >= 4; p -= 4) subtract_four(to, left + p - 4, b + (int64_t)(p - 4) * n, n);
    for (p--; p >= 0; p--) {
        const tb_real *row = b + (int64_t)p * n;
        for (int32_t j = 0; j < n; j++) to[j] -= left[p] * row[j];
    }
}

TB_STATIC tb_real less_backward(tb_real from, const tb_real *row, const tb_real *column, int32_t k,
                                int32_t stride)
{
    int32_t p = k;
    TB_ROLLED
    for (; p >= 4; p -= 4) from -= four_products(row + p - 4, column + (p - 4) * stride, stride);
    TB_ROLLED
    for (p--; p >= 0; p--) from -= row[p] * column[p * stride];
    return from;
}

/* Of c -= a b a lane takes numbers. No sync: products of one group go to different places. */
TB_CALLED void subtract_product_together(tb_real *c, const tb_real *a, const tb_real *b, int32_t m,
                                         int32_t k, int32_t n)
{
    if (tb_team_is_one()) {
        subtract_product(c, a, b, m, k, n);
        return;
    }
    const tb_team_nest nest = tb_team_nest_of(n);
    TB_ROLLED
    for (int32_t j = nest.outer; j < n; j += nest.outer_step) {
        TB_ROLLED
        for (int32_t i = nest.inner; i < m; i += nest.inner_step)
            c[i * n + j] = less_product(c[i * n + j], a + i * k, b + j, k, n);
    }
}

/* y -= a x, a: m x n */
TB_CALLED void subtract_times(tb_real *y, const tb_real *a, const tb_real *x, int32_t m, int32_t n)
{
    TB_EACH (i, m) y[i] = less_product(y[i], a + (int64_t)i * n, x, n, 1);
}

/* ---- a diagonal block ----
 *
 * The factors overwrite the block: L with the inverse of its diagonal, and U with a unit
 * diagonal (Crout). A step of the elimination therefore writes only the pivot's row and the
 * entries that it eliminates. */

/* Share of the largest number above which a diagonal entry is accepted as pivot in a matrix of one
 * node, so that its rows mostly keep the order that causes no fill. */
#define GOOD_PIVOT TB_R(0.1)

/* Row of the pivot for column k: the largest by its row's largest number, of equal ones the first;
 * the diagonal's, if it has this share of that. */
TB_STATIC int32_t find_pivot(const tb_real *a, int32_t n, int32_t k, const tb_real *scale,
                             tb_real good)
{
    enum { FEW_ROWS = 16 }; /* up to this, one lane is as fast as a reduction over all lanes */
    const bool alone = n - k <= FEW_ROWS || tb_team_lanes() == 1;
    const int32_t step = alone ? 1 : tb_team_lanes();
    int32_t pivot = k;
    tb_real largest = -1;
    TB_ROLLED
    for (int32_t i = alone ? k : k + tb_team_lane(); i < n; i += step) {
        const tb_real size = tb_abs(a[(int64_t)i * n + k]) * scale[i];
        if (size > largest) {
            largest = size;
            pivot = i;
        }
    }
    if (!alone) pivot = tb_team_place_of_largest(largest, pivot);
    const tb_real best = tb_abs(a[(int64_t)pivot * n + k]) * scale[pivot];
    return tb_abs(a[(int64_t)k * n + k]) * scale[k] >= good * best ? k : pivot;
}

/* Row k becomes the pivot's, by the lanes: U's part divided by the pivot. */
TB_STATIC void move_pivot(tb_real *a, int32_t n, int32_t k, int32_t pivot, tb_real inverse)
{
    tb_real *to = a + (int64_t)k * n, *from = a + (int64_t)pivot * n;
    const int32_t first = pivot == k ? k : 0;
    TB_EACH (at, n - first) {
        const int32_t j = first + at;
        const tb_real moved = from[j];
        if (pivot != k) from[j] = to[j];
        to[j] = j < k ? moved : j == k ? inverse : moved * inverse;
    }
}

/* Updates the rows below k. */
TB_STATIC void eliminate(tb_real *a, int32_t n, int32_t k)
{
    const tb_real *pivot = a + (int64_t)k * n;
    const tb_team_nest nest = tb_team_nest_of(n - k - 1);
    TB_ROLLED
    for (int32_t i = k + 1 + nest.outer; i < n; i += nest.outer_step) {
        tb_real *row = a + (int64_t)i * n;
        const tb_real factor = row[k];
        if (factor == 0) continue;
        for (int32_t j = k + 1 + nest.inner; j < n; j += nest.inner_step)
            row[j] -= factor * pivot[j];
    }
}

/* LU of a diagonal block with row exchanges, rows judged by their largest number; false where it
 * is singular */
TB_STATIC bool factor_diagonal(tb_real *a, int32_t n, int32_t *exchange, tb_real *scale,
                               tb_real good)
{
    TB_EACH (i, n) {
        tb_real largest = 0;
        TB_ROLLED
        for (int32_t j = 0; j < n; j++) largest = tb_max(largest, tb_abs(a[i * n + j]));
        scale[i] = largest > 0 ? 1 / largest : 0;
    }
    tb_team_sync();
    TB_ROLLED
    for (int32_t k = 0; k < n; k++) {
        const int32_t pivot = find_pivot(a, n, k, scale, good);
        const tb_real inverse = 1 / a[(int64_t)pivot * n + k];
        if (!(tb_abs(inverse) <= TB_REAL_MAX) || inverse == 0) return false;
        tb_team_sync(); /* all have found it */
        if (TB_LEADER) {
            exchange[k] = pivot;
            scale[pivot] = scale[k];
        }
        move_pivot(a, n, k, pivot, inverse);
        tb_team_sync();
        eliminate(a, n, k);
        tb_team_sync();
    }
    return true;
}

/* One column of the solution. */
TB_STATIC void solve_column(const tb_real *a, int32_t n, const int32_t *exchange, tb_real *b,
                            int32_t stride)
{
    TB_ROLLED
    for (int32_t k = 0; k < n; k++) {
        const int32_t other = exchange[k];
        if (other == k) continue;
        const tb_real moved = b[k * stride];
        b[k * stride] = b[other * stride];
        b[other * stride] = moved;
    }
    TB_ROLLED
    for (int32_t i = 0; i < n; i++) {
        const tb_real *row = a + (int64_t)i * n;
        b[i * stride] = less_product(b[i * stride], row, b, i, stride) * row[i];
    }
    TB_ROLLED
    for (int32_t i = n - 2; i >= 0; i--)
        b[i * stride] = less_backward(b[i * stride], a + (int64_t)i * n + i + 1,
                                      b + (i + 1) * stride, n - 1 - i, stride);
}

/* The same for one right side, by all lanes: each lane solves four rows, and their effect on the
 * other rows is shared out. The sums are those of solve_column. */
TB_STATIC void solve_forward(const tb_real *a, int32_t n, tb_real *b)
{
    TB_ROLLED
    for (int32_t k = 0; k < n; k += 4) {
        tb_real x[4] = {0, 0, 0, 0};
        for (int i = 0; i < 4; i++) {
            if (k + i >= n) continue;
            const tb_real *row = a + (int64_t)(k + i) * n + k;
            x[i] = b[k + i];
            for (int p = 0; p < i; p++) x[i] -= row[p] * x[p];
            x[i] *= row[i];
        }
        TB_EACH (below, n - k - 4) {
            const int32_t i = k + 4 + below;
            b[i] -= four_products(a + (int64_t)i * n + k, x, 1);
        }
        tb_team_sync(); /* all lanes have read the entries that are overwritten below */
        for (int i = 0; TB_LEADER && i < 4; i++)
            if (k + i < n) b[k + i] = x[i];
    }
    tb_team_sync();
}

TB_STATIC void solve_backward(const tb_real *a, int32_t n, tb_real *b)
{
    TB_ROLLED
    for (int32_t k = n - 4; k > -4; k -= 4) {
        tb_real x[4] = {0, 0, 0, 0};
        for (int i = 3; i >= 0; i--) {
            if (k + i < 0) continue;
            const tb_real *row = a + (int64_t)(k + i) * n + k;
            x[i] = b[k + i];
            for (int p = 3; p > i; p--) x[i] -= row[p] * x[p];
        }
        TB_EACH (i, k) b[i] -= four_products(a + (int64_t)i * n + k, x, 1);
        tb_team_sync();
        for (int i = 0; TB_LEADER && i < 4; i++)
            if (k + i >= 0) b[k + i] = x[i];
    }
    tb_team_sync();
}

TB_STATIC void solve_together(const tb_real *a, int32_t n, const int32_t *exchange, tb_real *b)
{
    TB_ROLLED
    for (int32_t k = 0; TB_LEADER && k < n; k++) {
        const int32_t other = exchange[k];
        if (other == k) continue;
        const tb_real moved = b[k];
        b[k] = b[other];
        b[other] = moved;
    }
    tb_team_sync();
    solve_forward(a, n, b);
    solve_backward(a, n, b);
}

/* b <- inverse of a factored diagonal block times b, b: n x columns; lanes take columns, or all the
 * only one */
TB_CALLED void solve_diagonal(const tb_real *a, int32_t n, const int32_t *exchange, tb_real *b,
                              int32_t columns)
{
    if (columns == 1 && tb_team_lanes() > 1) {
        solve_together(a, n, exchange, b);
        return;
    }
    if (columns == 1 || !tb_team_is_one()) {
        TB_EACH (j, columns) solve_column(a, n, exchange, b + j, columns);
        return;
    }
    for (int32_t k = 0; k < n; k++) {
        if (exchange[k] == k) continue;
        for (int32_t j = 0; j < columns; j++) {
            const tb_real moved = b[k * columns + j];
            b[k * columns + j] = b[exchange[k] * columns + j];
            b[exchange[k] * columns + j] = moved;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        const tb_real *row = a + (int64_t)i * n;
        tb_real *to = b + (int64_t)i * columns;
        subtract_product(to, row, b, 1, i, columns);
        for (int32_t j = 0; j < columns; j++) to[j] *= row[i];
    }
    for (int32_t i = n - 2; i >= 0; i--)
        subtract_backward(b + (int64_t)i * columns, a + (int64_t)i * n + i + 1,
                          b + (int64_t)(i + 1) * columns, n - 1 - i, columns);
}

TB_EXTERN bool tb_block_lu_factor(tb_block_lu *lu)
{
    const tb_real good = lu->groups == 1 ? GOOD_PIVOT : TB_R(1);
    for (int32_t k = 0; k < lu->groups; k++) {
        const int32_t n = lu->size[k], from = lu->later_start[k], to = lu->later_start[k + 1];
        tb_real *diagonal = lu->values + lu->diagonal[k];
        int32_t *exchange = lu->exchange + lu->first[k];
        if (!factor_diagonal(diagonal, n, exchange, lu->work, good)) return false;
        for (int32_t a = from; a < to; a++)
            solve_diagonal(diagonal, n, exchange, lu->values + lu->upper[a],
                           lu->size[lu->later[a]]);
        tb_team_sync();

        /* the rest of the matrix: all pairs of blocks that this group fills */
        for (int32_t a = from; a < to; a++) {
            const int32_t i = lu->later[a], rows = lu->size[i];
            const tb_real *left = lu->values + lu->lower[a];
            TB_ROLLED
            for (int32_t b = from; b < a; b++) {
                const int32_t j = lu->later[b];
                const int32_t entry = find_later(lu, j, i);
                subtract_product_together(lu->values + lu->lower[entry], left,
                                          lu->values + lu->upper[b], rows, n, lu->size[j]);
                subtract_product_together(lu->values + lu->upper[entry], lu->values + lu->lower[b],
                                          lu->values + lu->upper[a], lu->size[j], n, rows);
            }
            subtract_product_together(lu->values + lu->diagonal[i], left, lu->values + lu->upper[a],
                                      rows, n, rows);
        }
        tb_team_sync();
    }
    return true;
}

TB_EXTERN void tb_block_lu_solve(tb_block_lu *lu, tb_real *x)
{
    for (int32_t k = 0; k < lu->groups; k++) {
        tb_real *own = x + lu->first[k];
        solve_diagonal(lu->values + lu->diagonal[k], lu->size[k], lu->exchange + lu->first[k], own,
                       1);
        tb_team_sync();
        TB_ROLLED
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int32_t j = lu->later[a];
            subtract_times(x + lu->first[j], lu->values + lu->lower[a], own, lu->size[j],
                           lu->size[k]);
        }
        tb_team_sync();
    }
    for (int32_t k = lu->groups - 1; k >= 0; k--) {
        TB_ROLLED
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int32_t j = lu->later[a];
            subtract_times(x + lu->first[k], lu->values + lu->upper[a], x + lu->first[j],
                           lu->size[k], lu->size[j]);
        }
        tb_team_sync();
    }
}

/* the same for all lanes */
TB_STATIC bool is_zero(const tb_real *x, int64_t n)
{
    bool zero = true;
    for (int64_t i = tb_team_lane(); zero && i < n; i += tb_team_lanes()) zero = x[i] == 0;
    return tb_team_all(zero);
}

TB_EXTERN void tb_block_lu_solve_columns(tb_block_lu *lu, tb_real *x, int32_t columns)
{
    for (int32_t k = 0; k < lu->groups; k++) {
        tb_real *own = x + (int64_t)lu->first[k] * columns;
        if (is_zero(own, (int64_t)lu->size[k] * columns)) continue;
        tb_team_sync(); /* all have seen it */
        solve_diagonal(lu->values + lu->diagonal[k], lu->size[k], lu->exchange + lu->first[k], own,
                       columns);
        tb_team_sync();
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int32_t j = lu->later[a];
            subtract_product_together(x + (int64_t)lu->first[j] * columns,
                                      lu->values + lu->lower[a], own, lu->size[j], lu->size[k],
                                      columns);
        }
        tb_team_sync();
    }
    for (int32_t k = lu->groups - 1; k >= 0; k--) {
        TB_ROLLED
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int32_t j = lu->later[a];
            subtract_product_together(
                x + (int64_t)lu->first[k] * columns, lu->values + lu->upper[a],
                x + (int64_t)lu->first[j] * columns, lu->size[k], lu->size[j], columns);
        }
        tb_team_sync();
    }
}
