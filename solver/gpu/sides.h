/* Streams beside a card's own, for solves that take long (steps.c). */
#ifndef TB_GPU_SIDES_H
#define TB_GPU_SIDES_H

#include "device.h"
#include "gpu_internal.h"

/* The runtime gives the streams of a process eight queues to the card, unless told otherwise. */
enum { TB_GPU_SIDES = 6 };

/* Each with an event that it begins after and one that its end is known by. */
typedef struct tb_gpu_sides {
    cudaStream_t streams[TB_GPU_SIDES];
    cudaEvent_t begins[TB_GPU_SIDES], ends[TB_GPU_SIDES];
} tb_gpu_sides;

/* Makes what is missing. The card prefers the sides' blocks, which are few, to those of its own
 * stream. */
tb_status tb_gpu_sides_open(tb_gpu_sides *sides, tb_gpu_device *device, tb_error *error);
void tb_gpu_sides_close(tb_gpu_sides *sides);

/* What comes next on the side waits for all that the stream has so far... */
cudaError_t tb_gpu_side_begin(const tb_gpu_sides *sides, int32_t side, cudaStream_t stream);
/* ... and what comes next on the stream for the first `count` sides. */
cudaError_t tb_gpu_sides_join(const tb_gpu_sides *sides, int32_t count, cudaStream_t stream);
/* Waits for them, where something has failed. */
void tb_gpu_sides_settle(const tb_gpu_sides *sides, int32_t count);

#endif
