/* cuBLAS, loaded when a variant asks for it: nothing else needs it. */
#ifndef TB_GPU_DEVICE_BLAS_H
#define TB_GPU_DEVICE_BLAS_H

#include "gpu/device/device.h"

typedef struct tb_gpu_blas {
    void *library, *handle;
    int (*product)(void *, int, int, int, const double *, const double *, int, const double *, int,
                   const double *, double *, int);
    int (*product_f32)(void *, int, int, int, const float *, const float *, int, const float *, int,
                       const float *, float *, int);
    int (*gemm)(void *, int, int, int, int, int, const double *, const double *, int,
                const double *, int, const double *, double *, int);
    int (*gemm_f32)(void *, int, int, int, int, int, const float *, const float *, int,
                    const float *, int, const float *, float *, int);
} tb_gpu_blas;

/* UNSUPPORTED, with the reason, where the library is not there. */
tb_status tb_gpu_blas_open(tb_gpu_blas *blas, cudaStream_t stream, tb_error *error);
void tb_gpu_blas_close(tb_gpu_blas *blas); /* zeroed is fine */

/* y = T x on the stream; T is n x n by columns, `pitch` numbers apart. */
tb_status tb_gpu_blas_product(tb_gpu_blas *blas, bool single, int32_t n, const void *t,
                              int64_t pitch, const void *x, void *y, tb_error *error);

/* C = B A on the stream; B is n x n, A and C are n x columns, all by columns without gaps. */
tb_status tb_gpu_blas_multiply(tb_gpu_blas *blas, bool single, int32_t n, int32_t columns,
                               const void *b, const void *a, void *c, tb_error *error);

/* Seconds of the host's clock. */
double tb_gpu_host_clock(void);

#endif
