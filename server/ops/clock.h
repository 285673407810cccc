/* The daemon's clock. Leases, checkpoints and the reaper use this clock alone, so that a test can
 * drive it: TRIBOD_TEST_CLOCK names a file that holds seconds, which the clock adds to real time.
 * TRIBOD_TEST_WALL_CLOCK does the same to UTC alone and imitates an operator's change of the
 * machine's clock. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdint.h>

typedef struct td_clock {
    const char *shift_path;      /* NULL: real time */
    const char *wall_shift_path; /* NULL: UTC goes as the steady clock does */
    int64_t start_us;            /* UTC less monotonic when the clock was made */
} td_clock;

td_clock td_clock_make(void);
/* Microseconds since 1970-01-01 UTC. */
int64_t td_clock_utc_us(const td_clock *);
/* UTC at the start, advanced from then on by the monotonic clock: for leases and intervals, which
 * must not end because the machine's clock is changed. */
int64_t td_clock_steady_us(const td_clock *);
/* A time of the steady clock in UTC as it is set now. */
int64_t td_clock_to_utc_us(const td_clock *, int64_t steady_us);
/* Monotonic nanoseconds, never shifted: deadlines and measurements. */
int64_t td_monotonic_ns(void);

#endif
