/* Selects the stepping device: the options --backend and --device, for commands that step here and
 * for commands that use a daemon.
 *
 * Here the processors step unless the user selects a card. A daemon chooses by the size of the
 * request, unless the user names one of its devices; so the code records if the option was
 * given. */
#ifndef CLI_DEVICE_H
#define CLI_DEVICE_H

#include "common/args.h"
#include "tribo.h"

enum { DEVICE_NOT_GIVEN = -1, DEVICE_OPTIONS = 3, DEVICE_NAME = 24 };

typedef struct device_options {
    int backend;   /* tb_backend_choice, or DEVICE_NOT_GIVEN */
    int64_t index; /* of the backend, from 0, or DEVICE_NOT_GIVEN */
} device_options;

device_options device_defaults(void); /* nothing was given */
/* The command-line options that fill `options`; ends with an empty one. */
void device_option_list(device_options *options, args_option list[DEVICE_OPTIONS]);

/* The device that steps here; whether it is there the library says. */
void device_apply(const device_options *options, tb_step_options *step);
/* The daemon's name of the device: "cpu", "gpu:1"; "" lets it choose. Returns `name`. */
const char *device_name(const device_options *options, char name[DEVICE_NAME]);
/* The reason why a daemon cannot use this device; NULL: none. */
const char *device_objection(const device_options *options);

#endif
