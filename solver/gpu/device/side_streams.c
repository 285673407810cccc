/* See side_streams.h. */
#include "gpu/device/side_streams.h"

static tb_status open_event(tb_gpu_device *device, cudaEvent_t *event, tb_error *error)
{
    if (*event != NULL) return TB_OK;
    return tb_gpu_check(device, cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                        "making an event", error);
}

tb_status tb_gpu_side_streams_open(tb_gpu_side_streams *side_streams, tb_gpu_device *device,
                                   tb_error *error)
{
    int lowest = 0, highest = 0;
    if (side_streams->ends[TB_GPU_SIDE_STREAMS - 1] != NULL) return TB_OK;
    tb_status status = tb_gpu_check(device, cudaDeviceGetStreamPriorityRange(&lowest, &highest),
                                    "asking for priorities", error);
    for (int32_t s = 0; s < TB_GPU_SIDE_STREAMS && status == TB_OK; s++) {
        if (side_streams->streams[s] == NULL)
            status = tb_gpu_check(
                device,
                cudaStreamCreateWithPriority(&side_streams->streams[s], cudaStreamNonBlocking,
                                             s < TB_GPU_SOLVE_STREAMS ? highest : lowest),
                "making a stream", error);
        if (status == TB_OK) status = open_event(device, &side_streams->begins[s], error);
        if (status == TB_OK) status = open_event(device, &side_streams->ends[s], error);
    }
    return status;
}

void tb_gpu_side_streams_close(tb_gpu_side_streams *side_streams)
{
    for (int32_t s = 0; s < TB_GPU_SIDE_STREAMS; s++) {
        if (side_streams->begins[s] != NULL) (void)cudaEventDestroy(side_streams->begins[s]);
        if (side_streams->ends[s] != NULL) (void)cudaEventDestroy(side_streams->ends[s]);
        if (side_streams->streams[s] != NULL) (void)cudaStreamDestroy(side_streams->streams[s]);
    }
    *side_streams = (tb_gpu_side_streams){0};
}

cudaError_t tb_gpu_side_stream_begin(const tb_gpu_side_streams *side_streams, int32_t index,
                                     cudaStream_t stream)
{
    const cudaError_t result = cudaEventRecord(side_streams->begins[index], stream);
    if (result != cudaSuccess) return result;
    return cudaStreamWaitEvent(side_streams->streams[index], side_streams->begins[index], 0);
}

cudaError_t tb_gpu_side_stream_join(const tb_gpu_side_streams *side_streams, int32_t index,
                                    cudaStream_t stream)
{
    const cudaError_t result =
        cudaEventRecord(side_streams->ends[index], side_streams->streams[index]);
    if (result != cudaSuccess) return result;
    return cudaStreamWaitEvent(stream, side_streams->ends[index], 0);
}

void tb_gpu_side_streams_wait(const tb_gpu_side_streams *side_streams)
{
    for (int32_t s = 0; s < TB_GPU_SIDE_STREAMS; s++)
        if (side_streams->streams[s] != NULL) (void)cudaStreamSynchronize(side_streams->streams[s]);
}
