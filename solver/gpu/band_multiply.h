/* A symmetric band times a vector, all sums in double: each number of the band is read once.
 *
 * A block takes a share of the columns. A column gives its own row a sum, and every row below it a
 * part; a warp has its columns' parts in block memory of its own, and what a block's warps, and then
 * the blocks, have found is added up in their order. */
#ifndef TB_GPU_BAND_MULTIPLY_H
#define TB_GPU_BAND_MULTIPLY_H

#include "gpu/card.h"

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

/* One column by a warp: parts += a x_j below the diagonal, and the column's sum with x. */
TB_CARD void multiply_column(const tb_real *column, const double *x, double *part, int count)
{
    const int STRIDE = 2 * WARP;
    const double own = x[0];
    double sum = 0;
    for (int begin = 0; begin < count; begin += STRIDE * PAIRS) {
        two_numbers a[PAIRS];
#pragma unroll
        for (int p = 0; p < PAIRS; p++) {
            const int i = begin + p * STRIDE + 2 * lane_of();
            if (i < count) a[p] = *(const two_numbers *)(column + i);
        }
#pragma unroll
        for (int p = 0; p < PAIRS; p++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int i = begin + p * STRIDE + 2 * lane_of() + h;
                if (i >= count) continue;
                sum = fma((double)a[p].number[h], x[i], sum);
                if (i > 0 && own != 0) part[i] = fma((double)a[p].number[h], own, part[i]);
            }
    }
    sum = sum_of_warp(sum);
    __syncwarp();
    if (lane_of() == 0) part[0] += sum;
    __syncwarp();
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
    for (int j = from + warp_of(); j < to && warp_of() < copies; j += copies) {
        const int count = n - j < half + 1 ? n - j : half + 1;
        multiply_column(c->hessian + (int64_t)j * c->given.stride, own_x + (j - from),
                        part + warp_of() * length + (j - from), count);
    }
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
