/* Memory of a card for worlds, in slabs.
 *
 * Worlds come and go with sessions, forks and grasps, and a call of the card's own allocator may
 * wait for running kernels. So memory is taken in chunks of equal blocks, a size class each, and a
 * freed block serves the next world of about that size without such a call. */
#ifndef TB_GPU_POOL_H
#define TB_GPU_POOL_H

#include "gpu/device/device.h"

/* Sizes are 1 KiB times 1, 1.25, 1.5, 1.75, 2, 2.5 and so on. */
enum { TB_GPU_POOL_CLASSES = 120 };

typedef struct tb_gpu_chunk tb_gpu_chunk;

/* A block in use. */
typedef struct tb_gpu_allocation {
    void *memory; /* on the card, aligned to 256; NULL: none */
    tb_gpu_chunk *chunk;
} tb_gpu_allocation;

typedef struct tb_gpu_pool {
    tb_gpu_chunk *chunks[TB_GPU_POOL_CLASSES];
    uint64_t bytes, used; /* of all chunks; of blocks in use */
    uint64_t limit;       /* on `bytes` */
} tb_gpu_pool;

/* RESOURCE_EXHAUSTED at the limit, or where the card refuses. */
tb_status tb_gpu_pool_take(tb_gpu_pool *pool, tb_gpu_device *device, size_t bytes,
                           tb_gpu_allocation *place, tb_error *error);
/* Nothing may be at work on the block any longer. An empty place is fine. */
void tb_gpu_pool_give(tb_gpu_pool *pool, tb_gpu_allocation *place);
/* Chunks without a block in use go back to the card. */
void tb_gpu_pool_trim(tb_gpu_pool *pool, tb_gpu_device *device);
/* All chunks go. */
void tb_gpu_pool_destroy(tb_gpu_pool *pool, tb_gpu_device *device);

#endif
