/* Near pairs of boxes on a GPU: the structures that the host and the kernels share. */
#ifndef TB_GPU_PAIRS_H
#define TB_GPU_PAIRS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "base/error.h"
#include "penalty/card/box_pairs.h"

enum { TB_GPU_PAIRS_THREADS = 128, TB_GPU_PAIRS_SLOTS = 8 /* of a box */ };

/* Pointers of the card. */
typedef struct tb_gpu_pairs {
    int32_t boxes, slots; /* slots: boxes x TB_GPU_PAIRS_SLOTS */
    double lower[3], cells_per_metre;
    const double *corners;                     /* 6 x boxes: by corner, then by box */
    unsigned long long *starts, *spare_starts; /* slots; ~0 where there is no interval */
    unsigned long long *owners,
        *spare_owners;         /* slots: box, and the power of the length above bit 32 */
    int32_t *counts, *offsets; /* slots + 1: pairs of an interval, and of those before it */
    unsigned long long *pairs, *spare_pairs; /* capacity */
    int32_t capacity;
    int32_t *totals; /* intervals, pairs found, pairs kept */
} tb_gpu_pairs;

enum { TB_GPU_TOTAL_INTERVALS, TB_GPU_TOTAL_FOUND, TB_GPU_TOTAL_KEPT, TB_GPU_TOTALS };

/* Steps of a search, each one launch. */
typedef enum tb_gpu_pairs_step {
    TB_GPU_PAIRS_ENCODE,
    TB_GPU_PAIRS_COUNT,
    TB_GPU_PAIRS_WRITE,
    TB_GPU_PAIRS_APPEND,
    TB_GPU_PAIRS_MARK, /* 1 in counts for each pair that differs from the one before */
    TB_GPU_PAIRS_KEEP
} tb_gpu_pairs_step;

#ifdef __cplusplus
extern "C" {
#endif
/* The backend's entry. */
tb_status tb_gpu_box_pairs(int32_t device, tb_box_pairs *pairs, tb_error *error);
/* Each begins work on the stream and does not wait. */
cudaError_t tb_gpu_start_pairs(const tb_gpu_pairs *pairs, tb_gpu_pairs_step step,
                               int32_t processors, cudaStream_t stream);
/* Sorts into `to`; values may be NULL. With `scratch` NULL writes the scratch's size alone. */
cudaError_t tb_gpu_start_sort(void *scratch, size_t *bytes, const unsigned long long *keys,
                              unsigned long long *to, const unsigned long long *values,
                              unsigned long long *values_to, int32_t count, cudaStream_t stream);
/* Sums of all counts before each. */
cudaError_t tb_gpu_start_sums(void *scratch, size_t *bytes, const int32_t *counts, int32_t *offsets,
                              int32_t count, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
