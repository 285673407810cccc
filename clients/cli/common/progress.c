/* Draws a progress bar on a terminal. See progress.h. */
#include "common/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double APPEAR_AFTER_S = 1.0;
static const double REDRAW_EVERY_S = 0.1;
enum { BAR_WIDTH = 30 };

double progress_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

progress progress_begin(const char *label, double total, bool quiet)
{
    progress bar = {.label = label, .total = total, .start = progress_clock()};
    bar.enabled = !quiet && total > 0 && isatty(STDERR_FILENO);
    return bar;
}

void progress_update(progress *bar, double done)
{
    if (!bar->enabled) return;
    const double now = progress_clock();
    const double elapsed = now - bar->start;
    if (elapsed < APPEAR_AFTER_S || now - bar->drawn < REDRAW_EVERY_S) return;
    bar->drawn = now;
    bar->visible = true;

    const double share = done < bar->total ? done / bar->total : 1;
    const int filled = (int)(share * BAR_WIDTH);
    char cells[BAR_WIDTH + 1];
    for (int i = 0; i < BAR_WIDTH; i++) cells[i] = i < filled ? '#' : '.';
    cells[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3.0f %%", bar->label, cells, 100 * share);
    if (share > 0) fprintf(stderr, ", %.0f s left", elapsed * (1 - share) / share);
    fprintf(stderr, "\033[K");
    fflush(stderr);
}

void progress_end(progress *bar)
{
    if (bar->visible) fprintf(stderr, "\r\033[K");
    bar->visible = false;
    bar->enabled = false;
}
