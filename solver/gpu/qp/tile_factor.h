/* The Cholesky factor of a tile and its inverse, by one block; all other work waits for it.
 *
 * Sixteen columns at a time are eliminated by one warp, two rows a lane, in registers; the others
 * subtract their products from the other columns. */
#ifndef TB_GPU_TILE_FACTOR_H
#define TB_GPU_TILE_FACTOR_H

#include "gpu/qp/tile.h"

static const int PANEL = 16, OCTET = 8;

/* 1 / sqrt(x) of a positive number to a rounding or two; the whole chain waits for its result */
TB_CARD __forceinline__ tb_real inverse_root(tb_real x)
{
#if defined(TB_SINGLE)
    return rsqrtf(x);
#elif defined(__CUDA_ARCH__)
    double r;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    const double e = fma(-x * r, r, 1.0);
    return fma(fma(0.375, e, 0.5), r * e, r);
#else
    return rsqrt(x);
#endif
}

/* Columns `from` ... from + 15 of the tile, by one warp. `pivots` gives the least that a pivot may
 * be; *bad becomes the first column that has less. 1 / l_jj go to `reciprocal`. */
TB_CARD void eliminate_panel(tb_real *tile, int from, const tb_real *pivots, tb_real *reciprocal,
                             int *bad)
{
    const int lane = lane_of(), base = from < WARP ? 0 : WARP, pivot = from - base;
    const bool two = base == 0;
    tb_real u[PANEL], v[PANEL];
#pragma unroll
    for (int j = 0; j < PANEL; j++) {
        u[j] = tile[(base + lane) * PITCH + from + j];
        v[j] = two ? tile[(WARP + lane) * PITCH + from + j] : 0;
    }
    /* all lanes compute the next pivot as soon as this one's root is known, from numbers shared
     * before; its root is computed while this column is subtracted */
    tb_real d = __shfl_sync(0xffffffffu, u[0], pivot);
    tb_real left = __shfl_sync(0xffffffffu, u[0], pivot + 1);
    tb_real own = __shfl_sync(0xffffffffu, u[1], pivot + 1);
    bool fine = d > pivots[from];
    tb_real r = inverse_root(fine ? d : (tb_real)1);
    unsigned small = !fine;
#pragma unroll
    for (int j = 0; j < PANEL; j++) {
        tb_real next = 1;
        if (j + 1 < PANEL) {
            left *= r;
            d = fma(-left, left, own);
            fine = d > pivots[from + j + 1];
            small |= (unsigned)!fine << (j + 1);
            next = inverse_root(fine ? d : (tb_real)1);
        }
        if (lane == 0) reciprocal[from + j] = r;
        u[j] *= r;
        v[j] *= r;
#pragma unroll
        for (int c = j + 1; c < PANEL; c++) {
            const tb_real l = __shfl_sync(0xffffffffu, u[j], pivot + c);
            u[c] = fma(-u[j], l, u[c]);
            v[c] = fma(-v[j], l, v[c]);
            if (c == j + 2) { /* the next column and pivot are ready to be shown */
                left = __shfl_sync(0xffffffffu, u[j + 1], pivot + j + 2);
                own = __shfl_sync(0xffffffffu, u[j + 2], pivot + j + 2);
            }
        }
        r = next;
    }
    if (lane == 0 && small != 0)
        for (int j = PANEL - 1; j >= 0; j--)
            if (small >> j & 1 && from + j < *bad) *bad = from + j;
#pragma unroll
    for (int j = 0; j < PANEL; j++) {
        if (lane >= pivot + j) tile[(base + lane) * PITCH + from + j] = u[j];
        if (two) tile[(WARP + lane) * PITCH + from + j] = v[j];
    }
}

/* to = sign a b for 8 x 8 parts `index`, index + WARPS, ... of a rows x columns matrix, by all
 * warps;
 * a row-major, b in the layout of warp_product */
TB_CARD __forceinline__ void parts_product(tb_real *to, const tb_real *a, const tb_real *b, int bc,
                                           int bt, int rows, int columns, int depth, tb_real sign)
{
    const int across = columns / OCTET, parts = rows / OCTET * across;
    for (int p = warp_of(); p < parts; p += WARPS) {
        const int r = p / across * OCTET, c = p % across * OCTET;
        tb_real sums[2] = {0, 0};
        warp_product(sums, a + r * PITCH, PITCH, 1, b + c * bc, bc, bt, depth);
        tb_real *at = to + (r + lane_of() / 4) * PITCH + c + lane_of() % 4 * 2;
        at[0] = sign * sums[0];
        at[1] = sign * sums[1];
    }
}

/* Subtracts the panel's products from the lower triangle right of and below the panel. */
TB_CARD void subtract_panel(tb_real *tile, int from)
{
    const int first = from + PANEL, octets = (TILE - first) / OCTET;
    for (int p = warp_of(); p < octets * (octets + 1) / 2; p += WARPS) {
        int r = 0, left = p;
        while (left > r) left -= ++r;
        const int row = first + r * OCTET, column = first + left * OCTET;
        tb_real sums[2] = {0, 0};
        warp_product(sums, tile + row * PITCH + from, PITCH, 1, tile + column * PITCH + from, PITCH,
                     1, PANEL);
        tb_real *at = tile + (row + lane_of() / 4) * PITCH + column + lane_of() % 4 * 2;
        at[0] -= sums[0];
        at[1] -= sums[1];
    }
}

/* inverses of the four triangles on the diagonal: a warp each, a lane a column */
TB_CARD void invert_triangles(tb_real *inverse, const tb_real *tile, const tb_real *reciprocal)
{
    const int from = warp_of() * PANEL, column = lane_of();
    if (from >= TILE || column >= PANEL) return;
    tb_real x[PANEL];
    const tb_real *l = tile + from * PITCH + from;
#pragma unroll
    for (int i = 0; i < PANEL; i++) {
        tb_real sum = i == column ? (tb_real)1 : (tb_real)0;
#pragma unroll
        for (int k = 0; k < i; k++) sum = fma(-l[i * PITCH + k], x[k], sum);
        x[i] = sum * reciprocal[from + i];
        inverse[(from + i) * PITCH + from + column] = x[i];
    }
}

/* Cholesky of the lower triangle of `tile`, in place, and the factor's inverse, zero above its
 * diagonal. `spare` is a tile, `reciprocal` TILE numbers; all in the block's memory. *bad (there,
 * TILE before) as eliminate_panel says. Ends with a __syncthreads. */
TB_CARD_LARGE void factor_tile(tb_real *tile, tb_real *inverse, tb_real *spare,
                               const tb_real *pivots, tb_real *reciprocal, int *bad)
{
    for (int e = (int)threadIdx.x; e < ROOM; e += LANES) inverse[e] = 0;
    for (int from = 0; from < TILE; from += PANEL) {
        if (warp_of() == 0) eliminate_panel(tile, from, pivots, reciprocal, bad);
        __syncthreads();
        subtract_panel(tile, from);
        __syncthreads();
    }
    invert_triangles(inverse, tile, reciprocal);
    __syncthreads();

    /* two triangles and the square between them: -X22 (L21 X11) */
    for (int size = PANEL; size < TILE; size *= 2) {
        for (int at = 0; at < TILE; at += 2 * size)
            parts_product(spare + at * PITCH, tile + (at + size) * PITCH + at,
                          inverse + at * PITCH + at, 1, PITCH, size, size, size, 1);
        __syncthreads();
        for (int at = 0; at < TILE; at += 2 * size)
            parts_product(inverse + (at + size) * PITCH + at,
                          inverse + (at + size) * PITCH + at + size, spare + at * PITCH, 1, PITCH,
                          size, size, size, -1);
        __syncthreads();
    }
}

#endif
