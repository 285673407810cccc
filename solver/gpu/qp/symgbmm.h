/* Litven's symgbmm on a card (his chapter 6): structures shared by the host's side and the
 * kernels. */
#ifndef TB_GPU_SYMGBMM_H
#define TB_GPU_SYMGBMM_H

#include <cuda_runtime_api.h>

#include "tribo_qp.h"
#include "step/step.h"

/* Pointers of the card, numbers of the kernel's precision; matrices by columns, n numbers each but
 * for the band's half_bandwidth + 1. */
typedef struct tb_gpu_product {
    int32_t n, half_bandwidth, columns;
    int32_t shared; /* the variant with tiles; else the naive one */
    const void *band, *a;
    void *c;
} tb_gpu_product;

enum { TB_GPU_PRODUCT_TILE = 16 };

#ifdef __cplusplus
extern "C" {
#endif
/* tb_symgbmm's variants of a card; the backend's entry. */
tb_status tb_gpu_symgbmm(tb_symgbmm_variant variant, tb_precision precision, int32_t device,
                         int32_t n, int32_t half_bandwidth, int32_t columns, const double *band,
                         const double *a, double *c, double *seconds, tb_error *error);

/* Begins a product on the stream with `blocks` blocks and does not wait. */
TB_BOTH_PRECISIONS(cudaError_t, tb_gpu_start_product,
                   (const tb_gpu_product *product, int blocks, cudaStream_t stream))
#ifdef __cplusplus
}
#endif

#endif
