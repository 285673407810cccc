/* Time as the daemon sees it. Leases, checkpoints and the reaper ask this clock and no other, so
 * that a test can drive it: with the environment variable TRIBOD_TEST_CLOCK set to a file's path,
 * the clock is the seconds that this file holds, added to the real time. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdint.h>

typedef struct td_clock {
    const char *shift_path; /* NULL: real time */
} td_clock;

td_clock td_clock_make(void);
/* Microseconds since 1970-01-01 UTC. */
int64_t td_clock_utc_us(const td_clock *);
/* Monotonic nanoseconds, never shifted: deadlines and measurements. */
int64_t td_monotonic_ns(void);

#endif
