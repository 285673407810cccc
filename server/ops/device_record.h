/* A device of the daemon as data; only schedule/ selects devices and schedules requests on them. */
#ifndef SERVER_DEVICE_RECORD_H
#define SERVER_DEVICE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tribo.h"

struct td_scheduler;

enum { TD_DEVICES = 17 };

typedef struct td_device {
    tb_backend_choice backend; /* CPU or GPU */
    int32_t index;             /* of the backend */
    char name[16];             /* "cpu", "gpu:0" */
    char description[96];      /* "2 threads", "NVIDIA H200" */
    uint64_t memory_bytes;     /* 0: the machine's */
    int32_t processors;        /* of a card */
    struct td_scheduler *scheduler;
    atomic_int sessions;      /* that are stepped here */
    atomic_int worlds;        /* of these sessions */
    atomic_llong world_bytes; /* of their worlds that are in memory, as estimated */
    /* share of the time that the device was in use, between the latest two looks of device.c, which are
     * kept here */
    _Atomic double busy_share, looked_busy_seconds;
    atomic_llong looked_ns;
    atomic_bool lost; /* it failed: nothing is sent to it any more */
    /* selections by `auto`: by size, and by pace where both kinds of device have a measured
     * speed */
    atomic_llong chosen_by_size, chosen_by_pace;
    /* measured by the warm-up: its own time, s, and that of one step of one small world, ns */
    _Atomic double warm_up_seconds, step_ns;
} td_device;

#endif
