/* Many small copies in one launch: worlds to and from their places on the card. The list and one end
 * of each copy may be the host's pinned memory, which the card reads and writes over the bus: so a
 * hundred scattered worlds go in one piece, without a block to pack them into first. */
#ifndef TB_SINGLE

#include "gpu/device/gpu_internal.h"

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

#ifdef TB_TEST_LOSE
/* In a build for one test: where the file is that TRIBO_TEST_LOSE names, a kernel traps, as one does
 * that reads where it must not, and the card is lost to the process. */
#include <stdlib.h>
#include <unistd.h>

__global__ void lose_card(void)
{
    __trap();
}

static void lose_if_told(cudaStream_t stream)
{
    const char *file = getenv("TRIBO_TEST_LOSE");
    if (file != NULL && access(file, F_OK) == 0) lose_card<<<1, 1, 0, stream>>>();
}
#else
static void lose_if_told(cudaStream_t stream)
{
    (void)stream;
}
#endif

extern "C" cudaError_t tb_gpu_start_copies(const tb_gpu_copy *copies, int32_t count,
                                           cudaStream_t stream)
{
    lose_if_told(stream);
    tb_gpu_make_copies<<<(unsigned)count, TB_GPU_COPY_THREADS, 0, stream>>>(copies);
    return cudaGetLastError();
}

#endif
