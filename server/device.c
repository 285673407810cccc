/* Choosing the device once, when the daemon starts: a GPU that is asked for and is not there must
 * end the start, not the first step hours later. */
#include "device.h"

#include <stdio.h>

#include "base/error.h"

tb_status td_device_choose(const td_config *config, td_device *device, tb_error *error)
{
    *device = (td_device){.backend = TB_BACKEND_CPU, .name = "cpu"};
    if (config->backend == TB_BACKEND_CPU) return TB_OK;

    tb_backend_info gpu;
    tb_status status = tb_backend_describe(TB_BACKEND_GPU, &gpu);
    if (status == TB_OK && gpu.devices > 0) {
        tb_device_info info;
        status = tb_device_describe(TB_BACKEND_GPU, 0, &info, error);
        if (status != TB_OK) return status;
        device->backend = TB_BACKEND_GPU;
        snprintf(device->name, sizeof device->name, "gpu:0");
        snprintf(device->description, sizeof device->description, "%s", info.name);
        device->memory_bytes = info.memory;
        return TB_OK;
    }
    if (config->backend == TB_BACKEND_AUTO) return TB_OK;
    return tb_fail_field(error, TB_UNAVAILABLE, "server.backend",
                         "[server] backend = gpu, but there is none: %.300s", gpu.reason);
}
