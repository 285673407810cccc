/* Square tiles: products of two by a block, of small parts by a warp.
 *
 * In double, on cards that have it, products are those of the tensor cores (m8n8k4, exact products,
 * sums rounded as fused multiply-adds are); else fused multiply-adds. Tiles are row-major. In a
 * block's memory rows are PITCH numbers apart: lanes that read eight rows then have no bank
 * conflict. */
#ifndef TB_GPU_TILE_H
#define TB_GPU_TILE_H

#include "gpu/qp/grid.h"

static const int TILE = 64, PITCH = TILE + 4, SQUARE = TILE * TILE, ROOM = TILE * PITCH, SUMS = 16;

#if !defined(TB_SINGLE) &&                                                                         \
    ((defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800) || defined(TB_CARD_MMA))
#define TENSOR_PRODUCTS 1
#else
#define TENSOR_PRODUCTS 0
#endif

#if TENSOR_PRODUCTS && !defined(TB_CARD_MMA)
/* sums (8 x 8; a lane's: row lane / 4, columns 2 (lane % 4) and the next) += a b, a: 8 x 4, a
 * lane's number at row lane / 4, column lane % 4; b: 4 x 8, a lane's at row lane % 4, column lane /
 * 4 */
TB_CARD void multiply_add(double *sums, double a, double b)
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(sums[0]), "+d"(sums[1])
        : "d"(a), "d"(b));
}
#endif

/* ---- a warp: 8 x 8 ---- */

/* sums (laid out as those of multiply_add) += a b: a(r, t) at a[r * ar + t * at], b(t, c) at
 * b[c * bc + t * bt]; `depth` is a multiple of 4 */
TB_CARD __forceinline__ void warp_product(tb_real *sums, const tb_real *a, int ar, int at,
                                          const tb_real *b, int bc, int bt, int depth)
{
    const int high = lane_of() / 4, low = lane_of() % 4;
#if TENSOR_PRODUCTS
    a += high * ar + low * at;
    b += high * bc + low * bt;
#pragma unroll 4
    for (int t = 0; t < depth; t += 4) multiply_add(sums, a[t * at], b[t * bt]);
#else
    a += high * ar;
    b += 2 * low * bc;
#pragma unroll 8
    for (int t = 0; t < depth; t++) {
        const tb_real left = a[t * at];
        sums[0] = fma(left, b[t * bt], sums[0]);
        sums[1] = fma(left, b[bc + t * bt], sums[1]);
    }
#endif
}

/* ---- a block: 64 x 64 ---- */

/* the place in the tile of sum e of this lane */
TB_CARD __forceinline__ int sum_row(int e)
{
#if TENSOR_PRODUCTS
    return warp_of() / 2 * 16 + e / 8 * 8 + lane_of() / 4;
#else
    return (int)threadIdx.x / 16 + 16 * (e / 4);
#endif
}

TB_CARD __forceinline__ int sum_column(int e)
{
#if TENSOR_PRODUCTS
    return warp_of() % 2 * 32 + e % 8 / 2 * 8 + lane_of() % 4 * 2 + e % 2;
#else
    return (int)threadIdx.x % 16 + 16 * (e % 4);
#endif
}

/* sums += a b' (transposed), or a b; both in the block's memory */
TB_CARD __forceinline__ void tile_product(tb_real *sums, const tb_real *a, const tb_real *b,
                                          const bool transposed)
{
    const int bc = transposed ? PITCH : 1, bt = transposed ? 1 : PITCH;
#if TENSOR_PRODUCTS
    const int high = lane_of() / 4, low = lane_of() % 4;
    const tb_real *left = a + (warp_of() / 2 * 16 + high) * PITCH + low;
    const tb_real *right = b + (warp_of() % 2 * 32 + high) * bc + low * bt;
#pragma unroll 4
    for (int t = 0; t < TILE; t += 4) {
        tb_real l[2], r[4];
#pragma unroll
        for (int i = 0; i < 2; i++) l[i] = left[i * 8 * PITCH + t];
#pragma unroll
        for (int j = 0; j < 4; j++) r[j] = right[j * 8 * bc + t * bt];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) multiply_add(sums + i * 8 + j * 2, l[i], r[j]);
    }
#else
    const tb_real *left = a + (int)threadIdx.x / 16 * PITCH;
    const tb_real *right = b + (int)threadIdx.x % 16 * bc;
#pragma unroll 4
    for (int t = 0; t < TILE; t++) {
        tb_real l[4], r[4];
#pragma unroll
        for (int i = 0; i < 4; i++) l[i] = left[i * 16 * PITCH + t];
#pragma unroll
        for (int j = 0; j < 4; j++) r[j] = right[j * 16 * bc + t * bt];
#pragma unroll
        for (int e = 0; e < SUMS; e++) sums[e] = fma(l[e / 4], r[e % 4], sums[e]);
    }
#endif
}

/* ---- to and from the block's memory ---- */

typedef struct __align__(16) sixteen_bytes
{
    tb_real number[16 / sizeof(tb_real)];
}
sixteen_bytes;

/* no lane may still read `to`; the caller adds __syncthreads */
TB_CARD __forceinline__ void load_tile(tb_real *to, const tb_real *from)
{
    const int WIDE = 16 / sizeof(tb_real), TURNS = SQUARE / WIDE / LANES;
    sixteen_bytes part[TURNS];
#pragma unroll
    for (int k = 0; k < TURNS; k++)
        part[k] = *(const sixteen_bytes *)(from + (k * LANES + (int)threadIdx.x) * WIDE);
#pragma unroll
    for (int k = 0; k < TURNS; k++) {
        const int at = (k * LANES + (int)threadIdx.x) * WIDE;
        *(sixteen_bytes *)(to + at / TILE * PITCH + at % TILE) = part[k];
    }
}

TB_CARD __forceinline__ void store_tile(tb_real *to, const tb_real *from)
{
    const int WIDE = 16 / sizeof(tb_real);
    for (int at = (int)threadIdx.x * WIDE; at < SQUARE; at += LANES * WIDE)
        *(sixteen_bytes *)(to + at) =
            *(const sixteen_bytes *)(from + at / TILE * PITCH + at % TILE);
}

#endif
