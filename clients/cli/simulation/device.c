/* Options --backend and --device, here and for a daemon. See device.h. */
#include "simulation/device.h"

#include <stdio.h>
#include <string.h>

device_options device_defaults(void)
{
    return (device_options){.backend = DEVICE_NOT_GIVEN, .index = DEVICE_NOT_GIVEN};
}

void device_option_list(device_options *o, args_option list[DEVICE_OPTIONS])
{
    /* in the order of the library's enumeration */
    static const char *const BACKENDS[] = {"cpu", "gpu", "auto", NULL};
    const args_option options[DEVICE_OPTIONS] = {
        {"backend", "NAME", "where worlds are stepped (cpu; a daemon chooses)", ARGS_CHOICE,
         &o->backend, 0, 0, BACKENDS},
        {"device", "N", "of the backend, from 0 (0)", ARGS_INTEGER, &o->index, 0, 1 << 20, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    memcpy(list, options, sizeof options);
}

void device_apply(const device_options *o, tb_step_options *step)
{
    if (o->backend != DEVICE_NOT_GIVEN) step->backend = (tb_backend_choice)o->backend;
    if (o->index != DEVICE_NOT_GIVEN) step->device = (int32_t)o->index;
}

const char *device_name(const device_options *o, char name[DEVICE_NAME])
{
    name[0] = '\0';
    if (o->backend == TB_BACKEND_CPU) snprintf(name, DEVICE_NAME, "cpu");
    if (o->backend == TB_BACKEND_GPU)
        snprintf(name, DEVICE_NAME, "gpu:%d", o->index > 0 ? (int)o->index : 0);
    return name;
}

const char *device_objection(const device_options *o)
{
    if (o->index == DEVICE_NOT_GIVEN || o->backend == TB_BACKEND_GPU) return NULL;
    if (o->backend == TB_BACKEND_CPU)
        return o->index > 0 ? "there is no such --device: the backend cpu has one" : NULL;
    return "--device needs --backend gpu: otherwise a daemon chooses itself";
}
