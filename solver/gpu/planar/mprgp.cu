/* The solver mprgp on a card: a block of threads takes an island through all its products, so that
 * a reduction needs one barrier of the block and no meeting of blocks. Islands run side by side.
 *
 * The planar scheme is double only; the float build of this file is empty. */
#ifndef TB_SINGLE
#include "gpu/planar/betz.h"
#include "gpu/qp/grid.h"

#define TB_MPRGP_CARD
#define TB_MPRGP_FN TB_CARD __forceinline__
#include "solve/planar/mprgp.h"

/* Leaves an island's vote and products; its impulses are in their place. */
TB_MPRGP_FN void solve_island(const tb_gpu_betz *g, tb_betz_island *own, double *shared)
{
    const tb_betz_batch *batch = &g->batch;
    const int64_t rows = batch->number_of_rows;
    const tb_problem problem = {.number_of_blocks = own->blocks,
                                .number_of_rows = own->rows,
                                .number_of_dofs = own->dofs,
                                .blocks = batch->blocks + own->block,
                                .c = batch->c + own->row};
    tb_mprgp it = {};
    it.problem = &problem;
    it.y.width = own->width;
    it.y.of_row = batch->values + own->value;
    it.y.dof = batch->dof_of + own->value;
    it.y.slice = batch->start + own->start;
    it.y.of_dof = batch->coefficient + own->entry;
    it.y.row = batch->row_of + own->entry;
    it.p = batch->p + own->row;
    it.r = g->r + own->row;
    it.s = g->s + own->dof;
    it.xi = g->work + own->row;
    it.along = g->work + rows + own->row;
    it.q = g->work + 2 * rows + own->row;
    it.limit = g->work + 3 * rows + own->row;
    it.shares = shared;
    it.own_least = TB_RESIDUAL_UNKNOWN;
    it.tolerance = own->tolerance;
    it.rubs = (own->kind & TB_BETZ_RUBS) != 0;
    it.most = own->sweeps;
    const bool reached = tb_mprgp_iterate(&it);
    __syncthreads(); /* the next island's sums begin in the same place */
    if (threadIdx.x > 0) return;
    own->made = it.made;
    own->vote = reached ? 0 : TB_BETZ_GAVE_UP;
}

#ifdef __CUDACC__
#define MPRGP_MEMORY extern __shared__ __align__(16) unsigned char shared_bytes[];
#else
#define MPRGP_MEMORY
#endif

extern "C" __global__ void __launch_bounds__(TB_MPRGP_LANES, 1)
    tb_gpu_mprgp_islands(const __grid_constant__ tb_gpu_betz g)
{
    MPRGP_MEMORY
    for (int32_t i = (int32_t)blockIdx.x; i < g.batch.number_of_islands; i += (int32_t)gridDim.x) {
        tb_betz_island *own = &g.batch.islands[i];
        if (own->sweeps > 0) solve_island(&g, own, (double *)(void *)shared_bytes);
    }
}

extern "C" cudaError_t tb_gpu_start_mprgp(const tb_gpu_betz *betz, cudaStream_t stream)
{
    tb_gpu_betz g = *betz;
    void *arguments[] = {&g};
    return cudaLaunchKernel((const void *)tb_gpu_mprgp_islands,
                            dim3((unsigned)g.batch.number_of_islands), dim3(TB_MPRGP_LANES),
                            arguments, TB_MPRGP_SHARED, stream);
}
#endif
