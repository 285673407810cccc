/* Triangles that go down inverted BSP trees on a GPU, in the thesis's ways (Göteman and Roxling A21, A22).
 *
 * A part ends as kept or dropped in its place; parts that a split adds go to the end of the list, for the next
 * launch, or to the memory of the block or the thread. The order of the list depends on the lanes; the
 * host does not rely on it. The float build of this file is empty. */
#ifndef TB_SINGLE
#include "gpu/penalty/traverse.h"
#include "gpu/qp/grid.h"

TB_CARD void push_part(const tb_gpu_traverse *g, const tb_traversal_part *x)
{
    const int32_t at = atomicAdd(g->count, 1);
    if (at < g->capacity) g->parts[at] = *x;
}

/* Each call is one node. Parts that are too deep are the next launch's. */
TB_CARD_LARGE void clip_recursive(const tb_gpu_traverse *g, tb_traversal_part *x, int depth)
{
    tb_traversal_part more[2];
    if (x->node < 0) return;
    if (depth == TB_GPU_TRAVERSE_DEPTH) {
        push_part(g, x);
        x->node = TB_TRAVERSAL_DROPPED;
        return;
    }
    const int32_t pieces = tb_traversal_step(&g->t, x, more);
    for (int32_t k = 0; k < pieces; k++) push_part(g, &more[k]);
    clip_recursive(g, x, depth + 1);
}

TB_CARD void clip_iterative(const tb_gpu_traverse *g, tb_traversal_part *x)
{
    tb_traversal_part more[2];
    while (x->node >= 0) {
        const int32_t pieces = tb_traversal_step(&g->t, x, more);
        for (int32_t k = 0; k < pieces; k++) push_part(g, &more[k]);
    }
}

/* A list of the thread's own takes all parts of a triangle; only finished ones leave it. */
TB_CARD void clip_own(const tb_gpu_traverse *g, int32_t i)
{
    tb_traversal_part *list = g->own + (int64_t)(i - g->from) * TB_GPU_OWN_PARTS, more[2];
    tb_traversal_part x = g->parts[i];
    int32_t waiting = 0;
    bool first = true;
    for (;;) {
        while (x.node >= 0) {
            const int32_t pieces = tb_traversal_step(&g->t, &x, more);
            for (int32_t k = 0; k < pieces; k++) {
                if (waiting < TB_GPU_OWN_PARTS)
                    list[waiting++] = more[k];
                else
                    push_part(g, &more[k]);
            }
        }
        if (first)
            g->parts[i] = x;
        else if (x.node == TB_TRAVERSAL_KEPT)
            push_part(g, &x);
        first = false;
        if (waiting == 0) return;
        x = list[--waiting];
    }
}

/* The parts of a block's triangles, in rounds: a free thread takes a part that another one has split off. */
TB_CARD void clip_shared(const tb_gpu_traverse *g, tb_traversal_part *shared, int32_t *counts)
{
    const int32_t begin = g->from + (int32_t)blockIdx.x * TB_GPU_TRAVERSE_THREADS;
    const int32_t own = begin + (int32_t)threadIdx.x;
    if (threadIdx.x == 0) counts[0] = 0;
    __syncthreads();
    if (own < g->to && g->parts[own].node >= 0) {
        const int32_t at = atomicAdd(&counts[0], 1);
        shared[at] = g->parts[own];
        g->parts[own].node = TB_TRAVERSAL_DROPPED; /* its pieces come to the list's end */
    }
    __syncthreads();
    int32_t from = 0, to = counts[0];
    __syncthreads(); /* all have read the number before one adds to it */
    while (from < to) {
        for (int32_t i = from + (int32_t)threadIdx.x; i < to; i += TB_GPU_TRAVERSE_THREADS) {
            tb_traversal_part x = shared[i], more[2];
            while (x.node >= 0) {
                const int32_t pieces = tb_traversal_step(&g->t, &x, more);
                for (int32_t k = 0; k < pieces; k++) {
                    const int32_t at = atomicAdd(&counts[0], 1);
                    if (at < TB_GPU_SHARED_PARTS)
                        shared[at] = more[k];
                    else
                        push_part(g, &more[k]);
                }
            }
            if (x.node == TB_TRAVERSAL_KEPT) push_part(g, &x);
        }
        __syncthreads();
        from = to;
        to = counts[0] < TB_GPU_SHARED_PARTS ? counts[0] : TB_GPU_SHARED_PARTS;
        __syncthreads();
    }
}

#ifdef __CUDACC__
extern __shared__ unsigned char traverse_memory[];
#define traverse_shared traverse_memory
#else
#define traverse_shared shared_bytes
#endif

extern "C" __global__ void __launch_bounds__(TB_GPU_TRAVERSE_THREADS)
    tb_gpu_traverse_parts(const __grid_constant__ tb_gpu_traverse g)
{
    const int32_t i = g.from + (int32_t)(blockIdx.x * TB_GPU_TRAVERSE_THREADS + threadIdx.x);
    if (g.t.way == TB_TRAVERSE_SHARED) {
        tb_traversal_part *parts = (tb_traversal_part *)(void *)traverse_shared;
        clip_shared(&g, parts, (int32_t *)(void *)(parts + TB_GPU_SHARED_PARTS));
        return;
    }
    if (i >= g.to) return;
    if (g.t.way == TB_TRAVERSE_OWN) {
        clip_own(&g, i);
        return;
    }
    tb_traversal_part x = g.parts[i];
    if (g.t.way == TB_TRAVERSE_RECURSIVE)
        clip_recursive(&g, &x, 0);
    else
        clip_iterative(&g, &x);
    g.parts[i] = x;
}

extern "C" cudaError_t tb_gpu_start_traverse(const tb_gpu_traverse *traverse, cudaStream_t stream)
{
    tb_gpu_traverse g = *traverse;
    void *arguments[] = {&g};
    const unsigned blocks =
        (unsigned)((g.to - g.from + TB_GPU_TRAVERSE_THREADS - 1) / TB_GPU_TRAVERSE_THREADS);
    const size_t memory =
        g.t.way == TB_TRAVERSE_SHARED ? TB_GPU_SHARED_PARTS * sizeof(tb_traversal_part) + 16 : 0;
    if (blocks == 0) return cudaSuccess;
    return cudaLaunchKernel((const void *)tb_gpu_traverse_parts, dim3(blocks),
                            dim3((unsigned)TB_GPU_TRAVERSE_THREADS), arguments, memory, stream);
}
#endif
