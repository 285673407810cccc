/* Block Cholesky of a band, and products with a band. */
#include "qp/band_kernel.h"

#include <string.h>

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
    const size_t square = (size_t)block * (size_t)block;
    const size_t column = (size_t)band->below + 1;
    band->factor = TB_ARENA_ARRAY(arena, tb_real, (size_t)band->blocks * column * square);
    band->work = TB_ARENA_ARRAY(arena, tb_real, column * square);
    band->rows = TB_ARENA_ARRAY(arena, tb_real,
                                (size_t)band->blocks * (size_t)block * BAND_WIDTH * BAND_PANELS);
    return band->factor && band->work && band->rows ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

/* ---- factorization ---- */

/* the transposed block, its columns in panels one behind the other */
static void transpose_to_panels(tb_real *TB_RESTRICT to, const tb_real *from, int32_t size)
{
    for (int32_t j = 0; j < size; j++)
        for (int32_t t = 0; t < size; t++)
            to[(int64_t)(j / BAND_WIDTH * size + t) * BAND_WIDTH + j % BAND_WIDTH] =
                from[(int64_t)j * size + t];
}

/* The rows and columns that are factored: `list` of a band or, without a list, the whole band. */
typedef struct band_part {
    const tb_real *a;
    int64_t stride;
    const int32_t *list;
} band_part;

static int32_t part_row(const band_part *part, int32_t i)
{
    return part->list ? part->list[i] : i;
}

/* Copies columns [first, first + BAND_WIDTH) of the matrix to the block column whose first row
 * is `top`. The rows of a block lie one after another; one row of numbers is one cache line,
 * written once. */
static void load_columns(const tb_band *band, const band_part *part, int32_t first, int32_t top,
                         tb_real *to)
{
    const int32_t size = band->block, n = band->n,
                  end = n < first + BAND_WIDTH ? n : first + BAND_WIDTH;
    const tb_real *column[BAND_WIDTH]; /* its element in row 0, were there one */
    int32_t own[BAND_WIDTH];
    for (int32_t c = first; c < end; c++) {
        own[c - first] = part_row(part, c);
        column[c - first] = part->a + own[c - first] * part->stride - own[c - first];
    }
    to += first - top;
    for (int32_t i = first; i < n && i - (end - 1) <= band->half_bandwidth; i++) {
        const int32_t row = part_row(part, i);
        tb_real *line = to + (int64_t)(i - top) * size;
        for (int32_t c = first; c < end; c++)
            if (i >= c && row - own[c - first] < part->stride)
                line[c - first] = column[c - first][row];
    }
    for (int32_t c = end; c < first + BAND_WIDTH; c++) /* a ragged end */
        to[(int64_t)(c - top) * size + c - first] = 1;
}

/* the block column j of the matrix, as blocks */
static void load_block_column(const tb_band *band, const band_part *part, int32_t j)
{
    const int32_t size = band->block;
    const int64_t count = (band->below + 1) * (int64_t)size * size;
    tb_real *to = band->factor + j * count;
    memset(to, 0, (size_t)count * sizeof *to);
    for (int32_t c = 0; c < size; c += BAND_WIDTH)
        load_columns(band, part, j * size + c, j * size, to);
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

static int32_t factor_part(tb_band *band, const band_part *part, int32_t n, int32_t half_bandwidth,
                           tb_real threshold)
{
    const int32_t size = band->block;
    const int64_t square = (int64_t)size * size;
    band->n = n;
    band->half_bandwidth = half_bandwidth;
    band->blocks = (int32_t)(((int64_t)n + size - 1) / size);
    band->below = blocks_below(half_bandwidth, size);
    const int64_t column = (band->below + 1) * square;
    for (int32_t j = 0; j < band->blocks; j++) load_block_column(band, part, j);

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
            const tb_real diagonal = part->a[part_row(part, (int32_t)row) * part->stride];
            if (!(1 > threshold * tb_abs(diagonal) * inverse * inverse) || inverse == 0)
                return (int32_t)row;
        }

        /* L_ik = A_ik inverse(L_kk)', of which a panel's columns end at the diagonal */
        transpose_to_panels(band->work, own, size);
        for (int32_t i = 1; i <= below; i++) {
            tb_real *block = own + i * square, *old = band->work + square;
            memcpy(old, block, (size_t)square * sizeof *old);
            memset(block, 0, (size_t)square * sizeof *block);
            for (int32_t j = 0; j < size; j += BAND_WIDTH)
                band_product(block + j, size, old, size, 1, band->work + (int64_t)j * size, size,
                             j + BAND_WIDTH, 1, 0);
        }

        /* A_ij -= L_ik L_jk'; of a diagonal block, only the lower triangle */
        for (int32_t j = 1; j <= below; j++) {
            transpose_to_panels(band->work, own + j * square, size);
            tb_real *column_j = own + j * column;
            for (int32_t i = j; i <= below; i++)
                for (int32_t p = 0; p < size; p += BAND_WIDTH) {
                    const int64_t from = i == j ? (int64_t)p * size : 0;
                    band_product(column_j + (i - j) * square + from + p, size,
                                 own + i * square + from, size, 1, band->work + (int64_t)p * size,
                                 i == j ? size - p : size, size, -1, 0);
                }
        }
    }
    return n;
}

TB_EXTERN int32_t tb_band_factor(tb_band *band, const tb_real *a, int32_t n, int32_t half_bandwidth,
                                 tb_real threshold)
{
    const band_part part = {.a = a, .stride = (int64_t)half_bandwidth + 1};
    return factor_part(band, &part, n, half_bandwidth, threshold);
}

TB_EXTERN int32_t tb_band_factor_list(tb_band *band, const tb_real *a, int32_t half_bandwidth,
                                      const int32_t *list, int32_t count, int32_t reach,
                                      tb_real threshold)
{
    const band_part part = {.a = a, .stride = (int64_t)half_bandwidth + 1, .list = list};
    return factor_part(band, &part, count, reach, threshold);
}

/* ---- products ---- */

/* eight sums side by side */
TB_EXTERN tb_real tb_band_dot(const tb_real *a, const tb_real *x, int32_t count)
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
            to[0] += own[0] * at + tb_band_dot(own + 1, from + 1, below);
            if (at == 0) continue; /* right-hand sides of single constraints are mostly zero */
            for (int32_t i = 1; i <= below; i++) to[i] += own[i] * at;
        }
    }
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

TB_EXTERN void tb_band_multiply_sparse(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                       const tb_real *x, tb_real *y)
{
    int32_t filled = 0;
    for (int32_t j = 0; j < n; j++) filled += x[j] != 0;
    if (filled > n / 8) {
        tb_band_multiply(a, n, half_bandwidth, 1, x, n, y, n);
        return;
    }
    memset(y, 0, (size_t)n * sizeof *y);
    for (int32_t j = 0; j < n; j++)
        if (x[j] != 0) tb_band_add_column(a, n, half_bandwidth, j, x[j], y);
}

TB_EXTERN void tb_band_multiply_double(const tb_real *a, int32_t n, int32_t half_bandwidth,
                                       const tb_real *x, double *y)
{
    enum { SIDE_BY_SIDE = 8, AHEAD = 256 };
    for (int32_t i = 0; i < n; i++) y[i] = 0;
    for (int32_t j = 0; j < n; j++) {
        const tb_real *own = a + (int64_t)j * ((int64_t)half_bandwidth + 1), *from = x + j;
        const int32_t below = n - 1 - j < half_bandwidth ? n - 1 - j : half_bandwidth;
        const double at = (double)from[0];
        double sums[SIDE_BY_SIDE] = {0};
        double *TB_RESTRICT to = y + j;
        int32_t i = 1;
        for (; i + SIDE_BY_SIDE <= below + 1; i += SIDE_BY_SIDE) {
            __builtin_prefetch(own + i + AHEAD);
            for (int32_t k = 0; k < SIDE_BY_SIDE; k++) {
                const double number = (double)own[i + k];
                to[i + k] += number * at;
                sums[k] += number * (double)from[i + k];
            }
        }
        for (int32_t k = 0; i <= below; i++, k++) {
            to[i] += (double)own[i] * at;
            sums[k] += (double)own[i] * (double)from[i];
        }
        to[0] += (double)own[0] * at + (((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                                        ((sums[4] + sums[5]) + (sums[6] + sums[7])));
    }
}
