/* Step options for a device: all that a launch needs to know of the table of devices. */
#include "schedule/device.h"

void td_device_apply(const td_device *device, tb_step_options *options)
{
    options->backend = device->backend;
    options->device = device->index;
    options->resident = device->backend != TB_BACKEND_CPU;
}
