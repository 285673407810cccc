/* cuBLAS by dlopen: its header is not needed, and a machine without it loses two variants only. */
#include "gpu/device/blas.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

double tb_gpu_host_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A function pointer of any type from dlsym's object pointer. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static tb_status missing(tb_error *error, const char *reason)
{
    return tb_fail_field(error, TB_UNSUPPORTED, "variant",
                         "this variant needs cuBLAS, which is not here: %s", reason);
}

tb_status tb_gpu_blas_open(tb_gpu_blas *blas, cudaStream_t stream, tb_error *error)
{
    static const char *const NAMES[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    int (*create)(void **) = NULL;
    int (*set_stream)(void *, cudaStream_t) = NULL;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && !blas->library; i++)
        blas->library = dlopen(NAMES[i], RTLD_NOW | RTLD_LOCAL);
    if (!blas->library) return missing(error, dlerror());
    if (!find(blas->library, "cublasCreate_v2", &create) ||
        !find(blas->library, "cublasSetStream_v2", &set_stream) ||
        !find(blas->library, "cublasDgemv_v2", &blas->product) ||
        !find(blas->library, "cublasSgemv_v2", &blas->product_f32) ||
        !find(blas->library, "cublasDgemm_v2", &blas->gemm) ||
        !find(blas->library, "cublasSgemm_v2", &blas->gemm_f32))
        return missing(error, "it lacks a function");
    if (create(&blas->handle) != 0 || set_stream(blas->handle, stream) != 0)
        return missing(error, "it does not start");
    return TB_OK;
}

void tb_gpu_blas_close(tb_gpu_blas *blas)
{
    int (*destroy)(void *) = NULL;
    if (blas->handle && find(blas->library, "cublasDestroy_v2", &destroy)) destroy(blas->handle);
    if (blas->library) dlclose(blas->library);
    memset(blas, 0, sizeof *blas);
}

enum { NOT_TRANSPOSED = 0 };

tb_status tb_gpu_blas_product(tb_gpu_blas *blas, bool single, int32_t n, const void *t,
                              int64_t pitch, const void *x, void *y, tb_error *error)
{
    const double one = 1, zero = 0;
    const float one_f32 = 1, zero_f32 = 0;
    const int result = single ? blas->product_f32(blas->handle, NOT_TRANSPOSED, n, n, &one_f32, t,
                                                  (int)pitch, x, 1, &zero_f32, y, 1)
                              : blas->product(blas->handle, NOT_TRANSPOSED, n, n, &one, t,
                                              (int)pitch, x, 1, &zero, y, 1);
    return result == 0 ? TB_OK
                       : tb_fail(error, TB_INTERNAL, "cuBLAS ended its product with %d", result);
}

tb_status tb_gpu_blas_multiply(tb_gpu_blas *blas, bool single, int32_t n, int32_t columns,
                               const void *b, const void *a, void *c, tb_error *error)
{
    const double one = 1, zero = 0;
    const float one_f32 = 1, zero_f32 = 0;
    const int result = single ? blas->gemm_f32(blas->handle, NOT_TRANSPOSED, NOT_TRANSPOSED, n,
                                               columns, n, &one_f32, b, n, a, n, &zero_f32, c, n)
                              : blas->gemm(blas->handle, NOT_TRANSPOSED, NOT_TRANSPOSED, n, columns,
                                           n, &one, b, n, a, n, &zero, c, n);
    return result == 0 ? TB_OK
                       : tb_fail(error, TB_INTERNAL, "cuBLAS ended its product with %d", result);
}
