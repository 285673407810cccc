/* C = B A for a symmetric band B, in Litven's two variants of a card (listings 6.4 and 6.5, with
 * their limits put right: the last sub-diagonal and the last column count). Compiled twice, as
 * double and with TB_SINGLE as float.
 *
 * Both give a lane each number of a tile of 16 x 16 of C and sum over the band in its order, so
 * they leave the same bytes; zeros outside of the band add nothing. The naive one reads both
 * factors from the card's memory for each lane; the other brings them into the block's memory once
 * for 32 lanes. */
#include "gpu/qp/grid.h"
#include "gpu/qp/symgbmm.h"

static const int SIDE = TB_GPU_PRODUCT_TILE, ROW_PITCH = SIDE + 1;

/* Row and column of this lane's number in tile `t` of C. */
typedef struct own_number {
    int row, column;
} own_number;

TB_CARD own_number number_of_tile(const tb_gpu_product *p, int t)
{
    const int down = (p->n + SIDE - 1) / SIDE;
    own_number own;
    own.row = t % down * SIDE + (int)threadIdx.x / SIDE;
    own.column = t / down * SIDE + (int)threadIdx.x % SIDE;
    return own;
}

/* Element (i, k) of B; zero outside of it and of its band. */
TB_CARD tb_real band_number(const tb_gpu_product *p, int i, int k)
{
    const int low = i > k ? i : k, high = i > k ? k : i;
    if (high < 0 || low >= p->n || low - high > p->half_bandwidth) return 0;
    return (
        (const tb_real *)p->band)[low - high + (int64_t)high * ((int64_t)p->half_bandwidth + 1)];
}

TB_CARD tb_real dense_number(const tb_gpu_product *p, int k, int column)
{
    if (k < 0 || k >= p->n || column >= p->columns) return 0;
    return ((const tb_real *)p->a)[k + (int64_t)column * p->n];
}

TB_CARD void store_number(const tb_gpu_product *p, own_number own, tb_real value)
{
    if (own.row < p->n && own.column < p->columns)
        ((tb_real *)p->c)[own.row + (int64_t)own.column * p->n] = value;
}

/* ---- naive ---- */

TB_CARD void multiply_naive(const tb_gpu_product *p, int t)
{
    const own_number own = number_of_tile(p, t);
    const int from = own.row > p->half_bandwidth ? own.row - p->half_bandwidth : 0;
    const int last =
        own.row + p->half_bandwidth < p->n - 1 ? own.row + p->half_bandwidth : p->n - 1;
    tb_real sum = 0;
    if (own.row >= p->n || own.column >= p->columns) return;
    for (int k = from; k <= last; k++)
        sum += band_number(p, own.row, k) * dense_number(p, k, own.column);
    store_number(p, own, sum);
}

/* ---- shared ---- */

typedef struct product_memory {
    tb_real band[SIDE][ROW_PITCH], dense[SIDE][ROW_PITCH];
} product_memory;

/* Tiles of both factors from column and row m on. Lanes follow the order in memory: of A along
 * its columns, of the band along its columns below the diagonal and along its rows above it. */
TB_CARD void load_tiles(const tb_gpu_product *p, product_memory *memory, int row, int column, int m)
{
    const int fast = (int)threadIdx.x % SIDE, slow = (int)threadIdx.x / SIDE;
    const bool below = m <= row;
    const int i = below ? fast : slow, k = below ? slow : fast;
    memory->band[i][k] = band_number(p, row + i, m + k);
    memory->dense[fast][slow] = dense_number(p, m + fast, column + slow);
}

TB_CARD void multiply_shared(const tb_gpu_product *p, product_memory *memory, int t)
{
    const own_number own = number_of_tile(p, t);
    const int i = (int)threadIdx.x / SIDE, j = (int)threadIdx.x % SIDE;
    const int row = own.row - i, column = own.column - j;
    const int from = row > p->half_bandwidth ? row - p->half_bandwidth : 0;
    const int last = row + SIDE - 1 + p->half_bandwidth;
    tb_real sum = 0;
    for (int m = from; m <= last && m < p->n; m += SIDE) {
        load_tiles(p, memory, row, column, m);
        __syncthreads();
        for (int k = 0; k < SIDE; k++) sum += memory->band[i][k] * memory->dense[k][j];
        __syncthreads();
    }
    store_number(p, own, sum);
}

#define product_kernel TB_SYMBOL(tb_gpu_product_kernel)
extern "C" __global__ void __launch_bounds__(TB_GPU_PROGRAM_THREADS)
    product_kernel(const __grid_constant__ tb_gpu_product p)
{
#ifdef __CUDACC__
    __shared__ __align__(16) unsigned char shared_bytes[sizeof(product_memory)];
#endif
    product_memory *memory = (product_memory *)shared_bytes;
    const int tiles = (p.n + SIDE - 1) / SIDE * ((p.columns + SIDE - 1) / SIDE);
    for (int t = (int)blockIdx.x; t < tiles; t += (int)gridDim.x) {
        if (p.shared)
            multiply_shared(&p, memory, t);
        else
            multiply_naive(&p, t);
    }
}

extern "C" cudaError_t TB_SYMBOL(tb_gpu_start_product)(const tb_gpu_product *product, int blocks,
                                                       cudaStream_t stream)
{
    tb_gpu_product p = *product;
    void *arguments[] = {&p};
    return cudaLaunchKernel((const void *)product_kernel, dim3((unsigned)blocks),
                            dim3(TB_GPU_PROGRAM_THREADS), arguments, 0, stream);
}
