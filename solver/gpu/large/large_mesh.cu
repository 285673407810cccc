/* Pairs of a large world with meshes and height fields; a file of its own, since it compiles for
 * long. */
#include "gpu/large/large_mesh_unit.h"

#include "gpu/large/large_kernels.h"

namespace
{

enum { THREADS = 128, BLOCKS_OF_A_PROCESSOR = 16, TEAM = 32 };

__global__ void __launch_bounds__(THREADS)
    kernel_near_surfaces(const __grid_constant__ tb_large_world f)
{
    tb_large_stage_near_surfaces(&f);
}

__global__ void __launch_bounds__(TEAM) kernel_surfaces(const __grid_constant__ tb_large_world f)
{
    tb_large_stage_surfaces(&f);
}

} // namespace

extern "C" cudaError_t
TB_SYMBOL(tb_gpu_large_start_near_surfaces)(const void *large, int processors, cudaStream_t stream)
{
    const tb_large_world *f = (const tb_large_world *)large;
    int64_t blocks = ((int64_t)f->capacity.pairs + THREADS - 1) / THREADS;
    const int64_t most = (int64_t)processors * BLOCKS_OF_A_PROCESSOR;
    if (blocks > most) blocks = most;
    kernel_near_surfaces<<<(unsigned)blocks, THREADS, 0, stream>>>(*f);
    return cudaGetLastError();
}

extern "C" cudaError_t TB_SYMBOL(tb_gpu_large_start_surfaces)(const void *large, int processors,
                                                              cudaStream_t stream)
{
    const tb_large_world *f = (const tb_large_world *)large;
    (void)processors;
    const unsigned teams = f->capacity.teams > 0 ? (unsigned)f->capacity.teams : 1;
    kernel_surfaces<<<teams, TEAM, 0, stream>>>(*f);
    return cudaGetLastError();
}
