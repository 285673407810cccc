/* See groups.h. */
#include "groups.h"

tb_status tb_gpu_groups_open(tb_gpu_groups *groups, tb_gpu_device *device, int32_t count,
                             tb_error *error)
{
    tb_status status = TB_OK;
    if (count > 1 && groups->begin == NULL)
        status =
            tb_gpu_check(device, cudaEventCreateWithFlags(&groups->begin, cudaEventDisableTiming),
                         "making an event", error);
    for (int32_t g = 1; g < count && status == TB_OK; g++) {
        if (groups->ends[g] != NULL) continue;
        if (groups->streams[g] == NULL)
            status = tb_gpu_check(
                device, cudaStreamCreateWithFlags(&groups->streams[g], cudaStreamNonBlocking),
                "making a stream", error);
        if (status == TB_OK)
            status = tb_gpu_check(
                device, cudaEventCreateWithFlags(&groups->ends[g], cudaEventDisableTiming),
                "making an event", error);
    }
    return status;
}

void tb_gpu_groups_close(tb_gpu_groups *groups)
{
    for (int32_t g = 1; g < TB_GPU_GROUPS; g++) {
        if (groups->ends[g] != NULL) (void)cudaEventDestroy(groups->ends[g]);
        if (groups->streams[g] != NULL) (void)cudaStreamDestroy(groups->streams[g]);
    }
    if (groups->begin != NULL) (void)cudaEventDestroy(groups->begin);
    *groups = (tb_gpu_groups){0};
}

/* A group's worlds, with their slots, memory and queue; sizes differ by one world at most. */
static tb_gpu_launch launch_of(const tb_gpu_launch *whole, int32_t group, int32_t groups)
{
    tb_gpu_launch own = *whole;
    if (groups == 1) return own;
    const int32_t first = (int32_t)((int64_t)whole->number_of_worlds * group / groups);
    const int32_t end = (int32_t)((int64_t)whole->number_of_worlds * (group + 1) / groups);
    own.number_of_worlds = own.slots = end - first;
    own.worlds += first;
    own.arenas += (size_t)first * own.arena_size;
    if (own.queue != NULL) own.queue += first + TB_GPU_QUEUE_HEAD * group;
    return own;
}

cudaError_t tb_gpu_groups_start(const tb_gpu_groups *groups, int32_t count,
                                const tb_gpu_launch *launch, bool single, cudaStream_t stream)
{
    tb_gpu_launch launches[TB_GPU_GROUPS];
    cudaStream_t streams[TB_GPU_GROUPS] = {stream};
    cudaError_t result = cudaSuccess;
    for (int32_t g = 0; g < count; g++) launches[g] = launch_of(launch, g, count);
    if (count > 1) result = cudaEventRecord(groups->begin, stream);
    for (int32_t g = 1; g < count && result == cudaSuccess; g++) {
        streams[g] = groups->streams[g];
        result = cudaStreamWaitEvent(streams[g], groups->begin, 0);
    }
    if (result == cudaSuccess)
        result = single ? tb_gpu_start_steps_f32(launches, count, streams)
                        : tb_gpu_start_steps(launches, count, streams);
    for (int32_t g = 1; g < count && result == cudaSuccess; g++) {
        result = cudaEventRecord(groups->ends[g], streams[g]);
        if (result == cudaSuccess) result = cudaStreamWaitEvent(stream, groups->ends[g], 0);
    }
    /* nobody waits for what has been begun, and its memory is used again */
    for (int32_t g = 1; g < count && result != cudaSuccess; g++)
        if (streams[g] != NULL) (void)cudaStreamSynchronize(streams[g]);
    return result;
}
