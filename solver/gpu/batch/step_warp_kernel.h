/* The kernels of small worlds (small/): tables of each model, then all steps of each world. Included
 * by step_kernel.h for step_warp.cu and step_pile.cu. */
#include "gpu/batch/small/warp_kernel.h"

#ifdef TB_UNIT_PILE
#define warp_prepare_kernel KERNEL_SYMBOL(tb_gpu_prepare_pile)
#else
#define warp_prepare_kernel KERNEL_SYMBOL(tb_gpu_prepare_warp)
#endif
/* As many blocks as registers allow find room in the 228 KB of a processor, which takes 1 KB of each. */
static_assert(((int)SHARED_STEP_BYTES + (int)WARP_BYTES + (int)TB_ARENA_ALIGNMENT + 1024) *
                      (int)TB_GPU_BLOCKS_AT_ONCE <=
                  228 << 10,
              "fewer blocks run at once");

extern "C" __global__ void __launch_bounds__(TB_GPU_BLOCK_THREADS)
    warp_prepare_kernel(const __grid_constant__ tb_gpu_launch launch)
{
    const int32_t slot = (int32_t)blockIdx.x;
    if (is_slot(&launch, slot)) prepare_model(&launch, slot);
}

STEP_KERNEL(TB_GPU_BLOCKS_AT_ONCE)
{
    const int32_t block = slot_of_team();
    if (is_slot(&launch, block)) go_by_warp(&launch, launch.order ? launch.order[block] : block);
}

extern "C" cudaError_t KERNEL_SYMBOL(KERNEL_START)(const tb_gpu_launch *launch, cudaStream_t stream)
{
    const int32_t lanes = launch->lanes[0], worlds = TB_GPU_BLOCK_THREADS / lanes;
    const unsigned blocks = (unsigned)((launch->slots + worlds - 1) / worlds);
    /* the blocks of a problem, behind the shared step */
    const size_t bytes = (size_t)worlds * shared_bytes_of_team(WARP_BYTES);
    if (!launch->tables_stand)
        warp_prepare_kernel<<<blocks, TB_GPU_BLOCK_THREADS, bytes, stream>>>(*launch);
    step_kernel<<<blocks, dim3((unsigned)lanes, (unsigned)worlds), bytes, stream>>>(*launch);
    return cudaGetLastError();
}
