/* The kernels of near pairs, played: the source that cards run, lane by lane; sorts and sums are the
 * processor's. */
#include <algorithm>
#include <numeric>
#include <vector>

#include "one_kernel.h"

#include "../../../solver/gpu/penalty/pairs.cu"

#ifndef TB_SINGLE
PLAY_KERNEL(tb_gpu_pairs_step_kernel, pairs_order)

extern "C" cudaError_t tb_gpu_start_sort(void *scratch, size_t *bytes,
                                         const unsigned long long *keys, unsigned long long *to,
                                         const unsigned long long *values,
                                         unsigned long long *values_to, int32_t count, cudaStream_t)
{
    *bytes = 1;
    if (scratch == NULL) return cudaSuccess;
    std::vector<int32_t> order((size_t)count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [keys](int32_t a, int32_t b) { return keys[a] < keys[b]; });
    for (size_t i = 0; i < order.size(); i++) {
        to[i] = keys[order[i]];
        if (values != NULL) values_to[i] = values[order[i]];
    }
    return played_state();
}

extern "C" cudaError_t tb_gpu_start_sums(void *scratch, size_t *bytes, const int32_t *counts,
                                         int32_t *offsets, int32_t count, cudaStream_t)
{
    int32_t sum = 0;
    *bytes = 1;
    for (int32_t i = 0; i < count && scratch != NULL; i++) {
        offsets[i] = sum;
        sum += counts[i];
    }
    return played_state();
}
#endif
