/* Streams beside a card's own, for solves that overlap (steps.c). */
#ifndef TB_GPU_SIDES_H
#define TB_GPU_SIDES_H

#include "gpu/device/device.h"
#include "gpu/device/gpu_internal.h"

/* Streams of solves, behind them one for each group of worlds but the first. A solve that takes as many
 * rounds as there are streams holds up the next one of its own. With a call's stream, that of readers
 * (twin.h) and one to spare they are as many as a process can have queues to the card (TB_GPU_QUEUES):
 * streams that share a queue wait for each other. */
enum { TB_GPU_SIDES = 28, TB_GPU_ALL_SIDES = TB_GPU_SIDES + TB_GPU_GROUPS - 1 };
#define TB_GPU_QUEUES "32"

/* Each with an event that it begins after and one that its end is known by. */
typedef struct tb_gpu_sides {
    cudaStream_t streams[TB_GPU_ALL_SIDES];
    cudaEvent_t begins[TB_GPU_ALL_SIDES], ends[TB_GPU_ALL_SIDES];
} tb_gpu_sides;

/* Makes what is missing. The card prefers blocks of solves to all others: who waits at a gate waits
 * for them. */
tb_status tb_gpu_sides_open(tb_gpu_sides *sides, tb_gpu_device *device, tb_error *error);
void tb_gpu_sides_close(tb_gpu_sides *sides);

/* What comes next on the side waits for all that the stream has so far... */
cudaError_t tb_gpu_side_begin(const tb_gpu_sides *sides, int32_t side, cudaStream_t stream);
/* ... and what comes next on the stream for all that the side has. */
cudaError_t tb_gpu_side_join(const tb_gpu_sides *sides, int32_t side, cudaStream_t stream);
/* Waits for all of them, where something has failed. */
void tb_gpu_sides_settle(const tb_gpu_sides *sides);

#endif
