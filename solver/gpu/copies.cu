/* Many small copies in one launch: worlds to and from their places on the card. The list and one end
 * of each copy may be the host's pinned memory, which the card reads and writes over the bus: so a
 * hundred scattered worlds go in one piece, without a block to pack them into first. */
#ifndef TB_SINGLE

#include "gpu_internal.h"

/* A block a copy, 8 bytes a lane. */
extern "C" __global__ void tb_gpu_make_copies(const tb_gpu_copy *copies)
{
    const tb_gpu_copy copy = copies[blockIdx.x];
    const uint64_t *from = (const uint64_t *)copy.from;
    uint64_t *to = (uint64_t *)copy.to;
    const int64_t words = copy.bytes / 8;
    for (int64_t k = threadIdx.x; k < words; k += blockDim.x) to[k] = from[k];
}
static_assert(sizeof(tb_contact_record) % 8 == 0, "records are copied by words");

extern "C" cudaError_t tb_gpu_start_copies(const tb_gpu_copy *copies, int32_t count,
                                           cudaStream_t stream)
{
    tb_gpu_make_copies<<<(unsigned)count, TB_GPU_COPY_THREADS, 0, stream>>>(copies);
    return cudaGetLastError();
}

#endif
