/* Triangles that go down BSP trees on a GPU: the structures that the host and the kernels share. */
#ifndef TB_GPU_TRAVERSE_H
#define TB_GPU_TRAVERSE_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "penalty/card/traversal.h"

enum {
    TB_GPU_TRAVERSE_THREADS = 64,
    TB_GPU_SHARED_PARTS = 160, /* that a block has room for */
    TB_GPU_OWN_PARTS = 24,     /* of a thread's own list */
    TB_GPU_TRAVERSE_DEPTH = 8  /* of calls; deeper nodes are the next launch's */
};

/* Pointers of the card. */
typedef struct tb_gpu_traverse {
    tb_traversal t;
    tb_traversal_part *parts; /* capacity: all parts, in the order of their launches */
    tb_traversal_part *own;   /* TB_GPU_OWN_PARTS for each part of a launch */
    int32_t *count; /* parts that are wanted; above the capacity where some found no room */
    int32_t capacity, from, to;
} tb_gpu_traverse;

#ifdef __cplusplus
extern "C" {
#endif
/* The backend's entry. */
tb_status tb_gpu_traverse_trees(int32_t device, tb_traversal *traversal, tb_error *error);
/* Begins the parts from ... to - 1 on the stream and does not wait. */
cudaError_t tb_gpu_start_traverse(const tb_gpu_traverse *traverse, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
