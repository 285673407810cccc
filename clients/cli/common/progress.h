/* A progress bar on stderr: only on a terminal, and only for work of more than a second. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

typedef struct progress {
    const char *label; /* borrowed */
    double total;
    double start, drawn; /* s, by the clock below */
    bool enabled, visible;
} progress;

/* Seconds of a clock that only moves forward. */
double progress_clock(void);

progress progress_begin(const char *label, double total, bool quiet);
void progress_update(progress *bar, double done);
/* Erases the bar, so that later output starts on a clean line. */
void progress_end(progress *bar);

#endif
