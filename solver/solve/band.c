/* Block Cholesky of a band, block substitution, and products with a band. */
#include "solve/band.h"

#include <string.h>

/* A vector of the kernels: 32 bytes wherever they lie, which the compiler splits where the
 * processor has less. Sums run in the same order in any case. */
enum { BAND_LANES = 32 / sizeof(tb_real), BAND_ROWS = 4 };
typedef tb_real band_vector __attribute__((vector_size(32), aligned(sizeof(tb_real)), may_alias));

TB_EXTERN int32_t tb_band_block_size(int32_t half_bandwidth)
{
    if (half_bandwidth < 32) return 8;
    if (half_bandwidth < 128) return 16;
    return half_bandwidth < 512 ? 32 : 64;
}

static int32_t blocks_below(int32_t half_bandwidth, int32_t block)
{
    return (int32_t)(((int64_t)half_bandwidth + block - 1) / block);
}

TB_EXTERN tb_status tb_band_take(tb_band *band, int32_t n, int32_t half_bandwidth, int32_t block,
                                 tb_arena *arena)
{
    memset(band, 0, sizeof *band);
    if (block <= 0) block = tb_band_block_size(half_bandwidth);
    if (block > TB_BAND_LARGEST_BLOCK) block = TB_BAND_LARGEST_BLOCK;
    block = (block + TB_BAND_LANE - 1) / TB_BAND_LANE * TB_BAND_LANE;
    band->n = n;
    band->half_bandwidth = half_bandwidth;
    band->block = block;
    band->blocks = (int32_t)(((int64_t)n + block - 1) / block);
    band->below = blocks_below(half_bandwidth, block);
    band->panel = BAND_LANES;
    const size_t square = (size_t)block * (size_t)block;
    const size_t column = (size_t)band->below + 1;
    band->factor = TB_ARENA_ARRAY(arena, tb_real, (size_t)band->blocks * column * square);
    band->work = TB_ARENA_ARRAY(arena, tb_real, column * square);
    band->rows =
        TB_ARENA_ARRAY(arena, tb_real, (size_t)band->blocks * (size_t)block * (size_t)band->panel);
    return band->factor && band->work && band->rows ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

/* ---- kernels: sizes are multiples of the lanes, so nothing is ragged ---- */

/* c += sign a b; element (i, t) of a at a[i * row + t * step]; b: k x n, c: m x n, row-major */
static void block_product(tb_real *TB_RESTRICT c, const tb_real *a, int64_t row, int64_t step,
                          const tb_real *b, int32_t m, int32_t n, int32_t k, tb_real sign)
{
    for (int32_t j = 0; j < n; j += BAND_LANES) {
        for (int32_t i = 0; i < m; i += BAND_ROWS) {
            const tb_real *a0 = a + i * row, *a1 = a0 + row, *a2 = a1 + row, *a3 = a2 + row;
            band_vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
            for (int32_t t = 0; t < k; t++) {
                const band_vector right = *(const band_vector *)(b + (int64_t)t * n + j);
                s0 += a0[t * step] * right;
                s1 += a1[t * step] * right;
                s2 += a2[t * step] * right;
                s3 += a3[t * step] * right;
            }
            tb_real *to = c + (int64_t)i * n + j;
            *(band_vector *)to += sign * s0;
            *(band_vector *)(to + n) += sign * s1;
            *(band_vector *)(to + 2 * (int64_t)n) += sign * s2;
            *(band_vector *)(to + 3 * (int64_t)n) += sign * s3;
        }
    }
}

static void transpose_block(tb_real *TB_RESTRICT to, const tb_real *from, int32_t size)
{
    for (int32_t i = 0; i < size; i++)
        for (int32_t j = 0; j < size; j++) to[(int64_t)j * size + i] = from[(int64_t)i * size + j];
}

/* ---- factorization ---- */

/* the block column j of the matrix, as blocks */
static void load_block_column(const tb_band *band, const tb_real *a, int32_t j)
{
    const int32_t size = band->block, n = band->n, half = band->half_bandwidth;
    const int64_t square = (int64_t)size * size, stride = (int64_t)half + 1;
    tb_real *to = band->factor + (int64_t)j * (band->below + 1) * square;
    memset(to, 0, (size_t)(band->below + 1) * (size_t)square * sizeof *to);
    for (int32_t c = 0; c < size; c++) {
        const int64_t column = (int64_t)j * size + c;
        if (column >= n) {
            to[(int64_t)c * size + c] = 1;
            continue;
        }
        int64_t end = column + half;
        if (end > n - 1) end = n - 1;
        /* rows follow each other through the blocks: row r of the column's blocks is one line */
        for (int64_t i = column; i <= end; i++)
            to[(i - (int64_t)j * size) * size + c] = a[i - column + column * stride];
    }
}

/* Replaces a diagonal block by the inverse of its factor, zeros above the diagonal. `spare`: one
 * block. Returns the size, or the first bad pivot. */
static int32_t invert_diagonal(tb_real *d, tb_real *spare, int32_t size)
{
    const int64_t square = (int64_t)size * size;
    const int bad = tb_cholesky(d, size, size);
    if (bad < size) return bad;

    /* row i of the inverse: -1/l_ii sum_k l_ik (row k), and 1/l_ii on the diagonal */
    memset(spare, 0, (size_t)square * sizeof *spare);
    for (int32_t i = 0; i < size; i++) {
        tb_real *to = spare + (int64_t)i * size;
        for (int32_t k = 0; k < i; k++) {
            const tb_real l = d[(int64_t)i * size + k];
            const tb_real *from = spare + (int64_t)k * size;
            for (int32_t j = 0; j <= k; j++) to[j] -= l * from[j];
        }
        const tb_real inverse = 1 / d[(int64_t)i * size + i];
        for (int32_t j = 0; j < i; j++) to[j] *= inverse;
        to[i] = inverse;
    }
    memcpy(d, spare, (size_t)square * sizeof *d);
    return size;
}

TB_EXTERN int32_t tb_band_factor(tb_band *band, const tb_real *a, int32_t n, int32_t half_bandwidth,
                                 tb_real threshold)
{
    const int32_t size = band->block;
    const int64_t square = (int64_t)size * size;
    band->n = n;
    band->half_bandwidth = half_bandwidth;
    band->blocks = (int32_t)(((int64_t)n + size - 1) / size);
    band->below = blocks_below(half_bandwidth, size);
    const int64_t column = (band->below + 1) * square;
    for (int32_t j = 0; j < band->blocks; j++) load_block_column(band, a, j);

    for (int32_t k = 0; k < band->blocks; k++) {
        tb_real *own = band->factor + k * column;
        const int32_t left = band->blocks - 1 - k;
        const int32_t below = band->below < left ? band->below : left;

        /* pivots are judged against the matrix's own diagonal; a ragged end's are all 1 */
        const int32_t bad = invert_diagonal(own, band->work, size);
        if (bad < size) return k * size + bad;
        for (int32_t i = 0; i < size && (int64_t)k * size + i < n; i++) {
            const int64_t row = (int64_t)k * size + i;
            const tb_real inverse = own[(int64_t)i * size + i];
            const tb_real diagonal = a[row * ((int64_t)half_bandwidth + 1)];
            if (!(1 > threshold * tb_abs(diagonal) * inverse * inverse) || inverse == 0)
                return (int32_t)row;
        }

        /* L_ik = A_ik inverse(L_kk)' */
        transpose_block(band->work, own, size);
        for (int32_t i = 1; i <= below; i++) {
            tb_real *block = own + i * square, *old = band->work + square;
            memcpy(old, block, (size_t)square * sizeof *old);
            memset(block, 0, (size_t)square * sizeof *block);
            block_product(block, old, size, 1, band->work, size, size, size, 1);
        }

        /* A_ij -= L_ik L_jk' */
        for (int32_t j = 1; j <= below; j++) {
            transpose_block(band->work, own + j * square, size);
            tb_real *column_j = own + j * column;
            for (int32_t i = j; i <= below; i++)
                block_product(column_j + (i - j) * square, own + i * square, size, 1, band->work,
                              size, size, size, -1);
        }
    }
    return n;
}

/* ---- substitution ---- */

/* Y_i = D_i (B_i - sum C Y), then X_i = D_i' (Y_i - sum C' X): algorithm 5.3 with its transposes */
static void substitute(const tb_band *band, tb_real *rows, tb_real *spare)
{
    const int32_t size = band->block, width = band->panel;
    const int64_t square = (int64_t)size * size, column = (band->below + 1) * square;
    const int64_t part = (int64_t)size * width;
    const size_t bytes = (size_t)part * sizeof(tb_real);
    for (int32_t k = 0; k < band->blocks; k++) {
        const tb_real *own = band->factor + k * column;
        tb_real *y = rows + k * part;
        memcpy(spare, y, bytes);
        memset(y, 0, bytes);
        block_product(y, own, size, 1, spare, size, width, size, 1);
        for (int32_t i = 1; i <= band->below && k + i < band->blocks; i++)
            block_product(y + i * part, own + i * square, size, 1, y, size, width, size, -1);
    }
    for (int32_t k = band->blocks - 1; k >= 0; k--) {
        const tb_real *own = band->factor + k * column;
        tb_real *x = rows + k * part;
        for (int32_t i = 1; i <= band->below && k + i < band->blocks; i++)
            block_product(x, own + i * square, 1, size, x + i * part, size, width, size, -1);
        memcpy(spare, x, bytes);
        memset(x, 0, bytes);
        block_product(x, own, 1, size, spare, size, width, size, 1);
    }
}

TB_EXTERN void tb_band_solve(tb_band *band, int32_t columns, tb_real *x, int64_t stride)
{
    const int32_t n = band->n, width = band->panel;
    const size_t rows = (size_t)band->blocks * (size_t)band->block;
    for (int32_t first = 0; first < columns; first += width) {
        const int32_t count = columns - first < width ? columns - first : width;
        memset(band->rows, 0, rows * (size_t)width * sizeof(tb_real));
        for (int32_t c = 0; c < count; c++)
            for (int32_t i = 0; i < n; i++)
                band->rows[(int64_t)i * width + c] = x[(first + c) * stride + i];
        substitute(band, band->rows, band->work);
        for (int32_t c = 0; c < count; c++)
            for (int32_t i = 0; i < n; i++)
                x[(first + c) * stride + i] = band->rows[(int64_t)i * width + c];
    }
}

/* ---- products ---- */

/* sum of a[i] x[i], eight sums side by side */
static tb_real dot_of(const tb_real *a, const tb_real *x, int32_t count)
{
    tb_real sums[8] = {0};
    int32_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int32_t k = 0; k < 8; k++) sums[k] += a[i + k] * x[i + k];
    for (int32_t k = 0; i < count; i++, k++) sums[k] += a[i] * x[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

TB_EXTERN void tb_band_multiply(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                int32_t columns, const tb_real *x, int64_t stride, tb_real *y,
                                int64_t y_stride)
{
    for (int32_t c = 0; c < columns; c++) memset(y + c * y_stride, 0, (size_t)n * sizeof *y);
    for (int32_t j = 0; j < n; j++) {
        const tb_real *own = a + (int64_t)j * ((int64_t)half_bandwidth + 1);
        const int32_t below = n - 1 - j < half_bandwidth ? n - 1 - j : half_bandwidth;
        for (int32_t c = 0; c < columns; c++) {
            const tb_real *from = x + c * stride + j;
            tb_real *TB_RESTRICT to = y + c * y_stride + j;
            const tb_real at = from[0];
            to[0] += own[0] * at + dot_of(own + 1, from + 1, below);
            if (at == 0) continue; /* right-hand sides of single constraints are mostly zero */
            for (int32_t i = 1; i <= below; i++) to[i] += own[i] * at;
        }
    }
}

TB_EXTERN tb_real tb_band_row_times(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                    int32_t row, const tb_real *x)
{
    const int64_t stride = (int64_t)half_bandwidth + 1;
    const int32_t below = n - 1 - row < half_bandwidth ? n - 1 - row : half_bandwidth;
    tb_real sum = dot_of(a + row * stride, x + row, below + 1);
    for (int32_t j = row > half_bandwidth ? row - half_bandwidth : 0; j < row; j++)
        sum += a[row - j + j * stride] * x[j];
    return sum;
}

TB_EXTERN void tb_band_add_column(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                  int32_t column, tb_real factor, tb_real *y)
{
    const int64_t stride = (int64_t)half_bandwidth + 1;
    const int32_t below = n - 1 - column < half_bandwidth ? n - 1 - column : half_bandwidth;
    const int32_t first = column > half_bandwidth ? column - half_bandwidth : 0;
    for (int32_t j = first; j < column; j++) y[j] += factor * a[column - j + j * stride];
    for (int32_t i = 0; i <= below; i++) y[column + i] += factor * a[i + column * stride];
}

TB_EXTERN void tb_band_multiply_double(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                       const tb_real *x, double *y)
{
    for (int32_t i = 0; i < n; i++) y[i] = 0;
    for (int32_t j = 0; j < n; j++) {
        const tb_real *own = a + (int64_t)j * ((int64_t)half_bandwidth + 1);
        const int32_t below = n - 1 - j < half_bandwidth ? n - 1 - j : half_bandwidth;
        const double at = (double)x[j];
        double sums[4] = {(double)own[0] * at, 0, 0, 0};
        double *TB_RESTRICT to = y + j;
        for (int32_t i = 1; i <= below; i++) {
            to[i] += (double)own[i] * at;
            sums[i & 3] += (double)own[i] * (double)x[j + i];
        }
        to[0] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}
