/* A call to the card: headers there, steps, headers back, as three pieces of work on a stream. */
#ifndef TB_GPU_CALL_H
#define TB_GPU_CALL_H

#include "gpu/device/side_streams.h"

typedef struct tb_gpu_call {
    tb_gpu_launch launch;
    const tb_gpu_side_streams *side_streams;
    bool single; /* precision */
    void *staging;
    void *block;
    /* bytes of both: inputs of courses, headers, outputs of courses; the first two go to the card, the
     * last two come back */
    size_t inputs, headers, outputs;
} tb_gpu_call;

/* Copies the options that kernels read into a call that has been cleared. Names and functions of the
 * host stay out. */
void tb_gpu_call_set_options(tb_gpu_call *call, const tb_step_options *options);

/* Starts the call's copies and steps on the stream. */
cudaError_t tb_gpu_call_start(const tb_gpu_call *call, cudaStream_t stream);

#endif
