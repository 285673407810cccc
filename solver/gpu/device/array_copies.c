/* Copies arrays to and from a card, in pieces of the pinned memory's size. */
#include "gpu/device/array_copies.h"

#include <string.h>

void tb_gpu_convert(void *to, const double *from, size_t count, bool single)
{
    if (to == NULL || count == 0) return;
    if (!single) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    float *numbers = to;
    for (size_t i = 0; i < count; i++) numbers[i] = (float)from[i];
}

tb_status tb_gpu_upload_doubles(tb_gpu_device *device, const tb_gpu_buffer *staging, void *to,
                                size_t stride, const double *from, size_t height, size_t columns,
                                bool single, tb_error *error)
{
    const size_t size = single ? sizeof(float) : sizeof(double);
    const size_t most = staging->capacity / (height * size);
    tb_status status = TB_OK;
    for (size_t j = 0; j < columns && status == TB_OK; j += most) {
        const size_t count = columns - j < most ? columns - j : most;
        tb_gpu_convert(staging->memory, from + j * height, count * height, single);
        status = tb_gpu_check(device,
                              cudaMemcpy2DAsync((char *)to + j * stride * size, stride * size,
                                                staging->memory, height * size, height * size,
                                                count, cudaMemcpyHostToDevice, device->stream),
                              "bringing numbers", error);
        if (status == TB_OK) status = tb_gpu_wait(device, "bringing numbers", error);
    }
    return status;
}

tb_status tb_gpu_download_doubles(tb_gpu_device *device, const tb_gpu_buffer *staging, double *to,
                                  const void *from, size_t count, bool single, tb_error *error)
{
    const size_t size = single ? sizeof(float) : sizeof(double);
    const size_t most = staging->capacity / size;
    tb_status status = TB_OK;
    for (size_t i = 0; i < count && status == TB_OK; i += most) {
        const size_t part = count - i < most ? count - i : most;
        status = tb_gpu_check(device,
                              cudaMemcpyAsync(staging->memory, (const char *)from + i * size,
                                              part * size, cudaMemcpyDeviceToHost, device->stream),
                              "fetching numbers", error);
        if (status == TB_OK) status = tb_gpu_wait(device, "fetching numbers", error);
        const float *floats = staging->memory;
        for (size_t k = 0; k < part && single && status == TB_OK; k++)
            to[i + k] = (double)floats[k];
        if (!single && status == TB_OK) memcpy(to + i, staging->memory, part * size);
    }
    return status;
}
