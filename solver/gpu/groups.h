/* Groups of a call's worlds, each with all its steps in a stream of its own.
 *
 * Worlds of a batch do not know each other, so nothing but the end of the call needs them at the
 * same step. In one stream every kernel ends with its last world, and the card idles until then; in
 * several, the others' kernels have it meanwhile. */
#ifndef TB_GPU_GROUPS_H
#define TB_GPU_GROUPS_H

#include "device.h"
#include "gpu_internal.h"

/* The runtime gives the streams of a process eight queues to the card, unless told otherwise. */
enum { TB_GPU_GROUPS = 6 };

typedef struct tb_gpu_groups {
    /* of all groups but the first, which has the device's stream; made when they are first needed */
    cudaStream_t streams[TB_GPU_GROUPS];
    cudaEvent_t begin, ends[TB_GPU_GROUPS];
} tb_gpu_groups;

/* Sees to it that there are streams for so many groups. */
tb_status tb_gpu_groups_open(tb_gpu_groups *groups, tb_gpu_device *device, int32_t count,
                             tb_error *error);
void tb_gpu_groups_close(tb_gpu_groups *groups);

/* Starts the steps of a launch in so many groups; what comes next in the device's stream waits for
 * all of them. */
cudaError_t tb_gpu_groups_start(const tb_gpu_groups *groups, int32_t count,
                                const tb_gpu_launch *launch, bool single, cudaStream_t stream);

#endif
