/* A symmetric band times a vector, all sums in double: each number of the band is read once.
 *
 * A block takes a share of the columns. A column gives its own row a sum, and every row below it a
 * part. A warp keeps the parts of its columns in its own piece of shared memory; the parts of a
 * block's warps, and then those of the blocks, are added in their order. */
#ifndef TB_GPU_BAND_MULTIPLY_H
#define TB_GPU_BAND_MULTIPLY_H

#include "gpu/qp/card.h"

static const int PAIRS = 8; /* of numbers that a lane has under way */

typedef struct __align__(2 * sizeof(tb_real)) two_numbers
{
    tb_real number[2];
}
two_numbers;

static inline int64_t share_of(int64_t n, int64_t blocks)
{
    return (n + blocks - 1) / blocks;
}

/* Doubles of block memory for `copies` warps. */
static inline int64_t multiply_room(int64_t n, int64_t half, int64_t blocks, int64_t copies)
{
    return (copies + 1) * (share_of(n, blocks) + half);
}

/* Numbers of a column from `begin` on, as lanes have them. */
typedef struct column_part {
    two_numbers a[PAIRS];
} column_part;

TB_CARD __forceinline__ void load_part(column_part *p, const tb_real *column, int begin, int count)
{
#pragma unroll
    for (int k = 0; k < PAIRS; k++) {
        const int i = begin + (k * WARP + lane_of()) * 2;
        if (i < count) p->a[k] = *(const two_numbers *)(column + i);
    }
}

/* parts += a x_j below the diagonal; returns this lane's part of the column's sum with x */
TB_CARD __forceinline__ double use_part(const column_part *p, const double *x, double *part,
                                        int begin, int count, double own)
{
    double at[2 * PAIRS], to[2 * PAIRS], sum = 0;
    const int first = begin + lane_of() * 2;
#pragma unroll
    for (int k = 0; k < 2 * PAIRS; k++) {
        const int i = first + k / 2 * 2 * WARP + k % 2;
        at[k] = i < count ? x[i] : 0;
        to[k] = i < count ? part[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < 2 * PAIRS; k++) {
        const int i = first + k / 2 * 2 * WARP + k % 2;
        const double a = i < count ? (double)p->a[k / 2].number[k % 2] : 0;
        sum = fma(a, at[k], sum);
        if (i < count && i > 0) part[i] = fma(a, own, to[k]);
    }
    return sum;
}

/* Columns from, from + step ... by a warp, part of each while the next part is on its way. */
TB_CARD void multiply_columns_of_warp(const card *c, int first, int from, int to, int step,
                                      const double *x, double *part)
{
    const int WIDE = 2 * WARP * PAIRS, n = c->given.n, half = c->given.half_bandwidth;
    column_part now, next;
    int j = from, begin = 0;
    double sum = 0;
    if (j >= to) return;
    load_part(&now, c->hessian + (int64_t)j * c->given.stride, 0,
              n - j < half + 1 ? n - j : half + 1);
    while (j < to) {
        const int count = n - j < half + 1 ? n - j : half + 1;
        const bool ends = begin + WIDE >= count;
        const int k = ends ? j + step : j, next_begin = ends ? 0 : begin + WIDE;
        if (k < to)
            load_part(&next, c->hessian + (int64_t)k * c->given.stride, next_begin,
                      n - k < half + 1 ? n - k : half + 1);
        sum += use_part(&now, x + (j - first), part + (j - first), begin, count, x[j - first]);
        if (ends) {
            sum = sum_of_warp(sum);
            __syncwarp();
            if (lane_of() == 0) part[j - first] += sum;
            __syncwarp();
            sum = 0;
        }
        now = next;
        j = k;
        begin = next_begin;
    }
}

/* The parts of H x of this block's columns go to c->partial. x: n numbers; memory: doubles of the
 * block's memory, `room` bytes. To be followed by a meeting of all, then by product_at. */
TB_CARD_LARGE void multiply_share(const card *c, const tb_real *x, double *memory, size_t room)
{
    int from, to;
    own_variables(c, &from, &to);
    const int n = c->given.n, half = c->given.half_bandwidth;
    const int share = (n + (int)gridDim.x - 1) / (int)gridDim.x, length = share + half;
    const int end = n - from < length ? n - from : length;
    int copies = (int)(room / sizeof(double) / (size_t)length) - 1;
    if (copies > WARPS) copies = WARPS;
    double *own_x = memory, *part = memory + length;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < end; i += LANES) own_x[i] = (double)x[from + i];
    for (int i = (int)threadIdx.x; i < copies * length; i += LANES) part[i] = 0;
    __syncthreads();
    if (warp_of() < copies)
        multiply_columns_of_warp(c, from, from + warp_of(), to, copies, own_x,
                                 part + warp_of() * length);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < end; i += LANES) {
        double sum = 0;
        for (int k = 0; k < copies; k++) sum += part[k * length + i];
        c->partial[(int64_t)blockIdx.x * length + i] = sum;
    }
}

/* Row i of the product, once all shares are there. */
TB_CARD double product_at(const card *c, int i)
{
    const int n = c->given.n, blocks = (int)gridDim.x, share = (n + blocks - 1) / blocks;
    const int length = share + c->given.half_bandwidth, last = i / share;
    const int first = i < length ? 0 : (i - length) / share + 1;
    double sum = 0;
    for (int b = first; b <= last; b++)
        sum += c->partial[(int64_t)b * length + (i - (int64_t)b * share)];
    return sum;
}

#endif
