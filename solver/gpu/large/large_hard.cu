/* Narrow phase of a large world's pairs without a closed form; a file of its own, since it
 * compiles for long. */
#include "gpu/large/large_unit.h"

#include "gpu/large/large_kernels.h"

namespace
{

enum { THREADS = 128, BLOCKS_OF_A_PROCESSOR = 16 };

__global__ void __launch_bounds__(THREADS) kernel_hard(const __grid_constant__ tb_large_world f)
{
    tb_large_stage_hard(&f);
}

} // namespace

extern "C" cudaError_t TB_SYMBOL(tb_gpu_large_start_hard)(const void *large, int processors,
                                                          cudaStream_t stream)
{
    const tb_large_world *f = (const tb_large_world *)large;
    int64_t blocks = ((int64_t)f->capacity.hard + THREADS - 1) / THREADS;
    const int64_t most = (int64_t)processors * BLOCKS_OF_A_PROCESSOR;
    if (blocks > most) blocks = most;
    kernel_hard<<<(unsigned)blocks, THREADS, 0, stream>>>(*f);
    return cudaGetLastError();
}
