/* Near pairs of boxes on a GPU (Göteman and Roxling A10 to A13): addAABBSepKernel and both ways of finding pairs.
 *
 * Boxes lie by corner, intervals by their number in a box, so that neighbouring lanes read neighbouring numbers.
 * A slot without an interval holds the largest key and sorts last; the thesis takes zero, which is also the code of
 * the world's first cell. The float build of this file is empty. */
#ifndef TB_SINGLE
#include "gpu/penalty/pairs.h"

#include "gpu/qp/grid.h"
#include "penalty/intervals.h"

#ifdef __CUDACC__ /* a test on the processor has its own sort and sums */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

extern "C" cudaError_t tb_gpu_start_sort(void *scratch, size_t *bytes,
                                         const unsigned long long *keys, unsigned long long *to,
                                         const unsigned long long *values,
                                         unsigned long long *values_to, int32_t count,
                                         cudaStream_t stream)
{
    if (values == NULL)
        return cub::DeviceRadixSort::SortKeys(scratch, *bytes, keys, to, count, 0, 64, stream);
    return cub::DeviceRadixSort::SortPairs(scratch, *bytes, keys, to, values, values_to, count, 0,
                                           64, stream);
}

extern "C" cudaError_t tb_gpu_start_sums(void *scratch, size_t *bytes, const int32_t *counts,
                                         int32_t *offsets, int32_t count, cudaStream_t stream)
{
    return cub::DeviceScan::ExclusiveSum(scratch, *bytes, counts, offsets, count, stream);
}
#endif

static const unsigned long long NO_INTERVAL = ~0ull;

TB_CARD void load_box(const tb_gpu_pairs *g, int32_t i, double box[6])
{
    for (int k = 0; k < 6; k++) box[k] = g->corners[(int64_t)k * g->boxes + i];
}

/* addAABBSepKernel (A10), a box a lane. */
TB_CARD void encode_box(const tb_gpu_pairs *g, int32_t i)
{
    double box[6];
    uint64_t start[TB_MORTON_INTERVALS];
    int32_t power;
    load_box(g, i, box);
    const int32_t n = tb_morton_intervals(box, g->lower, g->cells_per_metre, start, &power);
    for (int32_t k = 0; k < TB_GPU_PAIRS_SLOTS; k++) {
        const int64_t slot = (int64_t)k * g->boxes + i;
        g->starts[slot] = k < n ? start[k] : NO_INTERVAL;
        g->owners[slot] = (unsigned long long)power << 32 | (unsigned)i;
    }
    atomicAdd(&g->totals[TB_GPU_TOTAL_INTERVALS], n);
}

/* ---- pairs of sorted intervals ---- */

/* Goes through the intervals behind one that begin in it. */
typedef struct interval_walk {
    int32_t next, owner;
    unsigned long long last; /* cell */
    double box[6];
} interval_walk;

TB_CARD void begin_walk(const tb_gpu_pairs *g, int32_t i, interval_walk *w)
{
    w->owner = (int32_t)(uint32_t)g->owners[i];
    w->last = g->starts[i] + (1ull << 3 * (g->owners[i] >> 32)) - 1;
    w->next = i + 1;
    load_box(g, w->owner, w->box);
}

TB_CARD bool goes_on(const tb_gpu_pairs *g, const interval_walk *w)
{
    return w->next < g->slots && g->starts[w->next] <= w->last;
}

/* The pair with the next interval's box, 0 if the boxes do not meet. */
TB_CARD unsigned long long next_pair(const tb_gpu_pairs *g, interval_walk *w)
{
    const int32_t other = (int32_t)(uint32_t)g->owners[w->next++];
    double box[6];
    if (other == w->owner) return 0;
    load_box(g, other, box);
    for (int k = 0; k < 3; k++)
        if (!(w->box[k] <= box[3 + k] && box[k] <= w->box[3 + k])) return 0;
    const unsigned long long a = (unsigned)(w->owner < other ? w->owner : other),
                             b = (unsigned)(w->owner < other ? other : w->owner);
    return a << 32 | b;
}

/* The first pass counts, the second one writes. */
TB_CARD void find_counted(const tb_gpu_pairs *g, int32_t i, bool write)
{
    interval_walk w;
    int32_t found = 0;
    if (g->starts[i] != NO_INTERVAL) {
        begin_walk(g, i, &w);
        while (goes_on(g, &w)) {
            const unsigned long long pair = next_pair(g, &w);
            if (pair == 0) continue;
            const int32_t at = write ? g->offsets[i] + found : 0;
            if (write && at < g->capacity) g->pairs[at] = pair;
            found++;
        }
    }
    if (!write) g->counts[i] = found;
    if (write && i == g->slots - 1) g->totals[TB_GPU_TOTAL_FOUND] = g->offsets[i] + found;
}

/* One addition to the list's length for all pairs that the lanes of a warp found in a turn (atomicAggInc). */
TB_CARD void append_pairs(const tb_gpu_pairs *g, int32_t i)
{
    interval_walk w;
    bool active = i < g->slots && g->starts[i] != NO_INTERVAL;
    if (active) begin_walk(g, i, &w);
    for (;;) {
        unsigned long long pair = 0;
        active = active && goes_on(g, &w);
        if (__ballot_sync(0xffffffffu, active) == 0) return;
        if (active) pair = next_pair(g, &w);
        const unsigned found = __ballot_sync(0xffffffffu, pair != 0);
        if (found == 0) continue;
        int32_t first = 0;
        if (lane_of() == 0) first = atomicAdd(&g->totals[TB_GPU_TOTAL_FOUND], __popc(found));
        first = __shfl_sync(0xffffffffu, first, 0);
        const int32_t at = first + __popc(found & ((1u << lane_of()) - 1));
        if (pair != 0 && at < g->capacity) g->pairs[at] = pair;
    }
}

/* ---- doubles ---- */

TB_CARD bool is_new(const tb_gpu_pairs *g, int32_t i)
{
    return i == 0 || g->pairs[i] != g->pairs[i - 1];
}

TB_CARD void keep_pair(const tb_gpu_pairs *g, int32_t i, int32_t count)
{
    if (is_new(g, i)) g->spare_pairs[g->offsets[i]] = g->pairs[i];
    if (i == count - 1) g->totals[TB_GPU_TOTAL_KEPT] = g->offsets[i] + is_new(g, i);
}

/* ---- launches ---- */

typedef struct pairs_order {
    tb_gpu_pairs g;
    tb_gpu_pairs_step step;
    int32_t count; /* lanes with work */
} pairs_order;

extern "C" __global__ void __launch_bounds__(TB_GPU_PAIRS_THREADS)
    tb_gpu_pairs_step_kernel(const __grid_constant__ pairs_order o)
{
    const tb_gpu_pairs *g = &o.g;
    const int32_t lanes = (int32_t)gridDim.x * TB_GPU_PAIRS_THREADS;
    /* all lanes of a warp make equally many turns */
    const int32_t end = (o.count + WARP - 1) / WARP * WARP;
    for (int32_t i = (int32_t)(blockIdx.x * TB_GPU_PAIRS_THREADS + threadIdx.x); i < end;
         i += lanes) {
        if (o.step == TB_GPU_PAIRS_APPEND) append_pairs(g, i);
        if (i >= o.count) continue;
        switch (o.step) {
        case TB_GPU_PAIRS_ENCODE: encode_box(g, i); break;
        case TB_GPU_PAIRS_COUNT: find_counted(g, i, false); break;
        case TB_GPU_PAIRS_WRITE: find_counted(g, i, true); break;
        case TB_GPU_PAIRS_MARK: g->counts[i] = is_new(g, i); break;
        case TB_GPU_PAIRS_KEEP: keep_pair(g, i, o.count); break;
        default: break;
        }
    }
}

extern "C" cudaError_t tb_gpu_start_pairs(const tb_gpu_pairs *pairs, tb_gpu_pairs_step step,
                                          int32_t processors, cudaStream_t stream)
{
    const bool of_pairs = step == TB_GPU_PAIRS_MARK || step == TB_GPU_PAIRS_KEEP;
    pairs_order o;
    void *arguments[] = {&o};
    o.g = *pairs;
    o.step = step;
    o.count =
        step == TB_GPU_PAIRS_ENCODE ? pairs->boxes : (of_pairs ? pairs->capacity : pairs->slots);
    int64_t blocks = (o.count + (int64_t)TB_GPU_PAIRS_THREADS - 1) / TB_GPU_PAIRS_THREADS;
    if (blocks > (int64_t)processors * 8) blocks = (int64_t)processors * 8;
    if (blocks < 1) return cudaSuccess;
    return cudaLaunchKernel((const void *)tb_gpu_pairs_step_kernel, dim3((unsigned)blocks),
                            dim3((unsigned)TB_GPU_PAIRS_THREADS), arguments, 0, stream);
}
#endif
