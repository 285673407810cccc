/* Streams in addition to a card's own, for solves that overlap and for the second group of worlds (steps.c). */
#ifndef TB_GPU_SIDE_STREAMS_H
#define TB_GPU_SIDE_STREAMS_H

#include "gpu/device/device.h"
#include "gpu/device/gpu_internal.h"

/* Streams of solves, behind them one for each group of worlds but the first. A solve that takes as many
 * rounds as there are streams holds up the next one of its own. With a call's stream, that of readers
 * (device_copy.h) and one to spare they are as many as a process has queues to the card (TB_GPU_QUEUES):
 * streams that share a queue wait for each other. The driver makes all queues with its context, 15 ms each, so
 * there are 20 of the 32 that it allows. */
enum { TB_GPU_SOLVE_STREAMS = 16, TB_GPU_SIDE_STREAMS = TB_GPU_SOLVE_STREAMS + TB_GPU_GROUPS - 1 };
#define TB_GPU_QUEUES "20"

/* Each stream has an event that it begins after, and one that marks its end. */
typedef struct tb_gpu_side_streams {
    cudaStream_t streams[TB_GPU_SIDE_STREAMS];
    cudaEvent_t begins[TB_GPU_SIDE_STREAMS], ends[TB_GPU_SIDE_STREAMS];
} tb_gpu_side_streams;

/* Makes the streams that are missing. Solves have the highest priority: the barrier waits for them. */
tb_status tb_gpu_side_streams_open(tb_gpu_side_streams *side_streams, tb_gpu_device *device,
                                   tb_error *error);
void tb_gpu_side_streams_close(tb_gpu_side_streams *side_streams);

/* Later work of the side stream waits for all present work of the stream ... */
cudaError_t tb_gpu_side_stream_begin(const tb_gpu_side_streams *side_streams, int32_t index,
                                     cudaStream_t stream);
/* ... and later work of the stream for all present work of the side stream. */
cudaError_t tb_gpu_side_stream_join(const tb_gpu_side_streams *side_streams, int32_t index,
                                    cudaStream_t stream);
/* Waits for all side streams, after a failure. */
void tb_gpu_side_streams_wait(const tb_gpu_side_streams *side_streams);

#endif
