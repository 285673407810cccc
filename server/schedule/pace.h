/* Paces: measured step times of each scene on the processors and on a card. `auto` (device.h)
 * prefers them to the warm-up, which measures one box.
 *
 * The processors' time a world does not depend on the number of worlds. A card's step time is
 * nearly constant until the card is full, so its times are kept by the number of worlds, in
 * octaves, and apply to numbers up to four times as large or small. Paces end with the process. */
#ifndef SERVER_PACE_H
#define SERVER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tribo.h"

typedef struct td_paces td_paces;

tb_status td_paces_create(td_paces **, tb_error *);
void td_paces_destroy(td_paces *); /* NULL is fine */

/* Key of the stepped worlds: bytes that identify the scene, and the options that determine the
 * cost. Bytes may come piece by piece: start from TD_PACE_SEED, and end with the key, never 0. */
static const uint64_t TD_PACE_SEED = 0xcbf29ce484222325u;
uint64_t td_pace_hash(uint64_t hash, const void *bytes, size_t size);
uint64_t td_pace_key(uint64_t hash, const tb_step_options *);

/* Worlds of this key were stepped there: `step_ns` of the device's time a step of all of them, of
 * one thread on the processors. Times of the clock are monotonic, ns. */
void td_pace_note(td_paces *, uint64_t key, tb_backend_choice, int64_t worlds, double step_ns,
                  int64_t now_ns);
/* The same for `worlds`, as far as it was measured since; 0: it is not known. */
double td_pace_step_ns(td_paces *, uint64_t key, tb_backend_choice, int64_t worlds,
                       int64_t since_ns);
/* True if a key measured on one kind of device may be tried on this other kind: true for one
 * caller, which records the trial, and false for all others for half a minute. */
bool td_pace_try(td_paces *, uint64_t key, tb_backend_choice, int64_t now_ns);

#endif
