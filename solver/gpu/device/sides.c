/* See sides.h. */
#include "gpu/device/sides.h"

static tb_status open_event(tb_gpu_device *device, cudaEvent_t *event, tb_error *error)
{
    if (*event != NULL) return TB_OK;
    return tb_gpu_check(device, cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                        "making an event", error);
}

tb_status tb_gpu_sides_open(tb_gpu_sides *sides, tb_gpu_device *device, tb_error *error)
{
    int lowest = 0, highest = 0;
    if (sides->ends[TB_GPU_ALL_SIDES - 1] != NULL) return TB_OK;
    tb_status status = tb_gpu_check(device, cudaDeviceGetStreamPriorityRange(&lowest, &highest),
                                    "asking for priorities", error);
    for (int32_t s = 0; s < TB_GPU_ALL_SIDES && status == TB_OK; s++) {
        if (sides->streams[s] == NULL)
            status =
                tb_gpu_check(device,
                             cudaStreamCreateWithPriority(&sides->streams[s], cudaStreamNonBlocking,
                                                          s < TB_GPU_SIDES ? highest : lowest),
                             "making a stream", error);
        if (status == TB_OK) status = open_event(device, &sides->begins[s], error);
        if (status == TB_OK) status = open_event(device, &sides->ends[s], error);
    }
    return status;
}

void tb_gpu_sides_close(tb_gpu_sides *sides)
{
    for (int32_t s = 0; s < TB_GPU_ALL_SIDES; s++) {
        if (sides->begins[s] != NULL) (void)cudaEventDestroy(sides->begins[s]);
        if (sides->ends[s] != NULL) (void)cudaEventDestroy(sides->ends[s]);
        if (sides->streams[s] != NULL) (void)cudaStreamDestroy(sides->streams[s]);
    }
    *sides = (tb_gpu_sides){0};
}

cudaError_t tb_gpu_side_begin(const tb_gpu_sides *sides, int32_t side, cudaStream_t stream)
{
    const cudaError_t result = cudaEventRecord(sides->begins[side], stream);
    if (result != cudaSuccess) return result;
    return cudaStreamWaitEvent(sides->streams[side], sides->begins[side], 0);
}

cudaError_t tb_gpu_side_join(const tb_gpu_sides *sides, int32_t side, cudaStream_t stream)
{
    const cudaError_t result = cudaEventRecord(sides->ends[side], sides->streams[side]);
    if (result != cudaSuccess) return result;
    return cudaStreamWaitEvent(stream, sides->ends[side], 0);
}

void tb_gpu_sides_settle(const tb_gpu_sides *sides)
{
    for (int32_t s = 0; s < TB_GPU_ALL_SIDES; s++) (void)cudaStreamSynchronize(sides->streams[s]);
}
