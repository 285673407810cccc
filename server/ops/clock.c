/* Real time, and the shift that a test may add to it. */
#include "ops/clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* a larger shift would overflow the sum of clock and shift: about 300 years, s */
#define SHIFT_LIMIT_S 1e10

static int64_t real_utc_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

td_clock td_clock_make(void)
{
    const char *path = getenv("TRIBOD_TEST_CLOCK"), *wall = getenv("TRIBOD_TEST_WALL_CLOCK");
    return (td_clock){.shift_path = path != NULL && *path != '\0' ? path : NULL,
                      .wall_shift_path = wall != NULL && *wall != '\0' ? wall : NULL,
                      .start_us = real_utc_us() - td_monotonic_ns() / 1000};
}

/* Seconds that the file holds; 0 while it cannot be read or holds no number. */
static double shift_read(const char *path)
{
    char text[64];
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return 0;
    const ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0) return 0;
    text[size] = '\0';
    const double shift = strtod(text, NULL);
    return isfinite(shift) && fabs(shift) < SHIFT_LIMIT_S ? shift : 0;
}

int64_t td_clock_utc_us(const td_clock *clock)
{
    int64_t us = real_utc_us();
    if (clock->wall_shift_path != NULL) us += (int64_t)(shift_read(clock->wall_shift_path) * 1e6);
    if (clock->shift_path != NULL) us += (int64_t)(shift_read(clock->shift_path) * 1e6);
    return us;
}

int64_t td_clock_steady_us(const td_clock *clock)
{
    int64_t us = clock->start_us + td_monotonic_ns() / 1000;
    if (clock->shift_path != NULL) us += (int64_t)(shift_read(clock->shift_path) * 1e6);
    return us;
}

int64_t td_clock_to_utc_us(const td_clock *clock, int64_t steady_us)
{
    return steady_us + td_clock_utc_us(clock) - td_clock_steady_us(clock);
}

int64_t td_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
