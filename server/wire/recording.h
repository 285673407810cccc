/* A recording: frames of one world, within a bound of bytes.
 *
 * A frame has the poses of all bodies, the contacts with their forces, and the certificate's figures, in
 * single precision: enough to draw the world and its curves again. When the bound is reached, every
 * second frame goes and the interval doubles, so that a recording of any length covers the whole run. */
#ifndef SERVER_RECORDING_H
#define SERVER_RECORDING_H

#include "wire/wire.h"

#include "tribo/v1/runs.pb-c.h"

/* Least and usual bound of a recording, bytes. */
enum { TD_RECORDING_LEAST = 1 << 16, TD_RECORDING_USUAL = 1 << 24 };

typedef struct td_recording {
    int32_t world, bodies, frames;
    double interval; /* s, simulated, between two frames now; 0: every state */
    double next;     /* s, time from which the next frame is due */
    uint64_t maximum;
    unsigned char *bytes; /* frames one after the other */
    size_t size, capacity;
    size_t *starts; /* of the frames in `bytes` */
    int32_t start_capacity;
    bool changed; /* since it was packed */
} td_recording;

/* A recording without frames. INVALID_ARGUMENT names a field below `field`. */
tb_status td_recording_create(const Tribo__V1__RecordOptions *, const char *field, int32_t worlds,
                              int32_t bodies, td_recording **, tb_error *);
void td_recording_destroy(td_recording *); /* NULL is fine */

/* Whether a state of this time makes a frame: the interval has passed, or time went back. */
bool td_recording_due(const td_recording *, double time);
/* Adds the state as a frame. `dt` (s) of its last step converts impulses to forces. A frame is left
 * out if it exceeds the bound alone, or if its memory is refused. */
void td_recording_add(td_recording *, const tb_state *, double dt);

/* The recording as bytes for the store (malloc'ed), and back. DATA_LOSS for bytes that are none. */
tb_status td_recording_pack(td_recording *, unsigned char **bytes, size_t *size, tb_error *);
tb_status td_recording_unpack(const unsigned char *bytes, size_t size, td_recording **, tb_error *);

/* Frames [first, first + count) as columns; fewer, at least one, where they would exceed about `limit`
 * bytes. `wire` has failed if memory ran out. */
void td_recording_fill(td_wire *, const td_recording *, int32_t first, int32_t count,
                       uint64_t limit, Tribo__V1__GetRecordingResponse *);

#endif
