/* Prox iterations with a stored T on a card: Nützi's kernels by the step they make (Computing
 * Non-Smooth Dynamics on the GPU, ETH 2011), and two cooperative ones. Compiled twice, as double and
 * with TB_SINGLE as float. */
#include "gpu/stored/jor_grid.h"
#include "gpu/stored/product.h"
#include "gpu/stored/sor.h"
#include "gpu/stored/sor_grid.h"

#ifdef __CUDACC__
#define STORED_MEMORY extern __shared__ __align__(16) unsigned char shared_bytes[];
#else
#define STORED_MEMORY
#endif

/* The block's shared memory as numbers. */
#define SHARED ((tb_real *)shared_bytes)

/* A kernel of one step: its body sees the argument `s`, `shared_bytes` and SHARED. */
#define STORED_KERNEL(name, threads, body)                                                         \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        TB_SYMBOL(tb_gpu_stored_##name)(const __grid_constant__ tb_gpu_stored argument)            \
    {                                                                                              \
        STORED_MEMORY                                                                              \
        const tb_gpu_stored *s = &argument;                                                        \
        body;                                                                                      \
    }

TB_CARD int own_index(void)
{
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

TB_CARD void test_element(const tb_gpu_stored *s, int row)
{
    if (row < 3 * s->contacts &&
        moves_on(s, ((const tb_real *)s->old)[row], ((const tb_real *)s->next)[row]))
        *s->stopped = 0;
}

TB_CARD void add_row_of(const tb_gpu_stored *s, int row)
{
    if (row < 3 * s->contacts)
        ((tb_real *)s->next)[row] = ((const tb_real *)s->sum)[row] + ((const tb_real *)s->d)[row];
}

TB_CARD void add_and_project(const tb_gpu_stored *s, int contact)
{
    add_to_contact(s, contact);
    project_contact(s, contact);
}

STORED_KERNEL(gemv, 128, product_of_block(s, SHARED))
STORED_KERNEL(prox, 128, if (own_index() < s->contacts) project_contact(s, own_index()))
STORED_KERNEL(cancel, 128, test_element(s, own_index()))
STORED_KERNEL(fused_126, 128, product_and_projection(s, SHARED, 126))
STORED_KERNEL(fused_192, 192, product_and_projection(s, SHARED, 192))
STORED_KERNEL(add, 192, add_row_of(s, own_index()))
STORED_KERNEL(add_prox, 256, if (own_index() < s->contacts) add_and_project(s, own_index()))
STORED_KERNEL(start, 128, start_row(s, s->check != 0))
STORED_KERNEL(sor_a, 192, diagonal_block(s, (diagonal_memory *)shared_bytes))
STORED_KERNEL(sor_b, 128, columns_off_diagonal(s, SHARED))
STORED_KERNEL(relaxed_a, 128, project_group(s))
STORED_KERNEL(relaxed_b, 128, columns_of_group(s, SHARED))
STORED_KERNEL(sparse_b, 128, sparse_columns_of_group(s))
STORED_KERNEL(sparse_sor, 128, sparse_sweep(s, (unsigned *)shared_bytes))
STORED_KERNEL(jor, 256, iterate_jor(s, SHARED))
STORED_KERNEL(sor, 256,
              if (blockIdx.x == 0) go_along_diagonal(s, &((sor_memory *)shared_bytes)->diagonal);
              else own_rows(s, &((sor_memory *)shared_bytes)->owner))

/* ---- launches ---- */

/* Kernel, threads of a block, the items shared out to blocks, shared numbers of a thread. */
typedef struct stored_kernel {
    const void *kernel;
    int threads, rows_of_block, by_contact, numbers_of_thread;
} stored_kernel;

#define KERNEL(name) (const void *)TB_SYMBOL(tb_gpu_stored_##name)

static stored_kernel kernel_of(tb_gpu_stored_step step)
{
    switch (step) {
    case TB_GPU_STORED_GEMV: return {KERNEL(gemv), 128, 128, 0, X_NUMBERS};
    case TB_GPU_STORED_PROX: return {KERNEL(prox), 128, 128, 1, 0};
    case TB_GPU_STORED_CANCEL: return {KERNEL(cancel), 128, 128, 0, 0};
    case TB_GPU_STORED_FUSED_126: return {KERNEL(fused_126), 128, 126, 0, X_NUMBERS};
    case TB_GPU_STORED_FUSED_192: return {KERNEL(fused_192), 192, 192, 0, X_NUMBERS};
    case TB_GPU_STORED_ADD: return {KERNEL(add), 192, 192, 0, 0};
    case TB_GPU_STORED_ADD_PROX: return {KERNEL(add_prox), 256, 256, 1, 0};
    case TB_GPU_STORED_START: return {KERNEL(start), 128, 128, 0, 0};
    case TB_GPU_STORED_SOR_B: return {KERNEL(sor_b), 128, 128, 0, X_NUMBERS};
    case TB_GPU_STORED_RELAXED_B: return {KERNEL(relaxed_b), 128, 128, 0, X_NUMBERS};
    case TB_GPU_STORED_SPARSE_B: return {KERNEL(sparse_b), 128, 128, 1, 0};
    case TB_GPU_STORED_SPARSE_SOR: return {KERNEL(sparse_sor), 128, 128, 1, 1};
    default: return {KERNEL(relaxed_a), 128, 128, 0, 0};
    }
}

static cudaError_t launch_together(const void *kernel, tb_gpu_stored *s, int blocks, size_t memory,
                                   cudaStream_t stream)
{
    void *arguments[] = {s};
    const cudaError_t result =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)memory);
    if (result != cudaSuccess) return result;
    return cudaLaunchCooperativeKernel(kernel, dim3((unsigned)blocks), dim3((unsigned)LANES),
                                       arguments, memory, stream);
}

extern "C" cudaError_t TB_SYMBOL(tb_gpu_start_stored)(const tb_gpu_stored *stored,
                                                      tb_gpu_stored_step step, int32_t processors,
                                                      cudaStream_t stream)
{
    tb_gpu_stored s = *stored;
    void *arguments[] = {&s};
    if (step == TB_GPU_STORED_JOR)
        return launch_together(KERNEL(jor), &s, processors * TB_GPU_STORED_JOR_BLOCKS,
                               TB_GPU_STORED_JOR_ROWS * sizeof(tb_real), stream);
    if (step == TB_GPU_STORED_SOR)
        return launch_together(KERNEL(sor), &s, processors, sizeof(sor_memory), stream);
    if (step == TB_GPU_STORED_SOR_A)
        return cudaLaunchKernel(KERNEL(sor_a), dim3(1), dim3((unsigned)(3 * s.group)), arguments,
                                sizeof(diagonal_memory), stream);
    if (step == TB_GPU_STORED_RELAXED_A)
        return cudaLaunchKernel(KERNEL(relaxed_a), dim3((unsigned)((s.group + 127) / 128)),
                                dim3(128), arguments, 0, stream);
    const stored_kernel k = kernel_of(step);
    const int items = k.by_contact ? s.contacts : 3 * s.contacts;
    return cudaLaunchKernel(k.kernel,
                            dim3((unsigned)((items + k.rows_of_block - 1) / k.rows_of_block)),
                            dim3((unsigned)k.threads), arguments,
                            (size_t)(k.threads * k.numbers_of_thread) * sizeof(tb_real), stream);
}
