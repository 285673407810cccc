/* The device that steps sessions: a backend of the library, chosen by the configuration. */
#ifndef SERVER_DEVICE_H
#define SERVER_DEVICE_H

#include "config.h"

typedef struct td_device {
    tb_backend_choice backend; /* CPU or GPU, AUTO decided */
    char name[16];             /* "cpu", "gpu:0" */
    char description[96];  /* "NVIDIA H200"; "" for the CPU, whose threads the scheduler knows */
    uint64_t memory_bytes; /* 0: the machine's */
} td_device;

/* The device that [server] backend names. UNAVAILABLE, with the reason, where it is not there. */
tb_status td_device_choose(const td_config *, td_device *, tb_error *);

#endif
