/* The bytes of a session's row in the store, for the files that write (session_store.c) and read
 * them (session_recover.c). */
#ifndef SERVER_SESSION_ROW_H
#define SERVER_SESSION_ROW_H

#include "session/session_internal.h"

/* Options of a session's row that have no column. */
typedef struct td_row_options {
    char magic[4]; /* "TDS1" */
    int32_t keyframe;
    int64_t steps;
    double time;
    uint8_t has_origin, family; /* family: the row of an origin */
    uint8_t device;             /* td_device_code; 0: of a build that had one device */
    uint8_t reserved;
    uint8_t origin[16];
    uint32_t packed_size; /* of the StepOptions behind this */
} td_row_options;

static const char TD_ROW_MAGIC[4] = {'T', 'D', 'S', '1'};
_Static_assert(sizeof(td_row_options) + TD_OPTIONS_BYTES <= sizeof((db_session *)0)->options,
               "a row holds all options");

#endif
