/* Real time, and the shift that a test may add to it. */
#include "clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* beyond this a shift would overflow what is added to it: about 300 years, s */
#define SHIFT_LIMIT_S 1e10

td_clock td_clock_make(void)
{
    const char *path = getenv("TRIBOD_TEST_CLOCK");
    return (td_clock){.shift_path = path != NULL && *path != '\0' ? path : NULL};
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
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    if (clock->shift_path != NULL) us += (int64_t)(shift_read(clock->shift_path) * 1e6);
    return us;
}

int64_t td_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
