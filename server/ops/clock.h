/* Time as the daemon sees it. Leases, checkpoints and the reaper ask this clock and no other, so
 * that a test can drive it: with the environment variable TRIBOD_TEST_CLOCK set to a file's path,
 * the clock is the seconds that this file holds, added to the real time. TRIBOD_TEST_WALL_CLOCK does
 * the same to UTC alone, as an operator does who sets the machine's clock. */
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
/* The same at the start, and from then on as the monotonic clock goes: for leases and intervals,
 * which must not end because somebody sets the machine's clock. */
int64_t td_clock_steady_us(const td_clock *);
/* A time of the steady clock in UTC as it is set now. */
int64_t td_clock_to_utc_us(const td_clock *, int64_t steady_us);
/* Monotonic nanoseconds, never shifted: deadlines and measurements. */
int64_t td_monotonic_ns(void);

#endif
