/* Statistics of a measuring window, and the test for a settled load.
 *
 * A warm-up, a filling cache or another process disturbs a single window. Three consecutive windows
 * that agree pairwise, so that a slow drift does not pass as steady, are taken as the daemon's
 * behaviour at this load. */
#include "bench/load_settle.h"

#include <math.h>
#include <stdlib.h>

static const double AGREEMENT = 0.1;
enum { WINDOWS_THAT_AGREE = 3 };

void load_window_free(load_window *window)
{
    free(window->latencies);
    *window = (load_window){0};
}

double load_quantile(const load_window *window, double q)
{
    if (window->count == 0) return 0;
    /* nearest rank: the smallest that a share of q does not exceed */
    int64_t rank = (int64_t)ceil(q * (double)window->count);
    if (rank < 1) rank = 1;
    if (rank > window->count) rank = window->count;
    return window->latencies[rank - 1];
}

load_figures load_summarize(const load_window *w)
{
    return (load_figures){.rate = w->seconds > 0 ? (double)w->count / w->seconds : 0,
                          .p50 = load_quantile(w, 0.50),
                          .p90 = load_quantile(w, 0.90),
                          .p99 = load_quantile(w, 0.99),
                          .worst = load_quantile(w, 1),
                          .refused = w->refused,
                          .failed = w->failed,
                          .count = w->count};
}

/* The larger counts, so that it does not matter which is asked about first. */
static bool agree(double a, double b)
{
    return fabs(a - b) <= AGREEMENT * fmax(fabs(a), fabs(b));
}

bool load_settled(const load_figures *f, int count)
{
    if (count < WINDOWS_THAT_AGREE) return false;
    for (int i = count - WINDOWS_THAT_AGREE; i < count; i++) {
        if (f[i].count == 0) return false;
        for (int k = i + 1; k < count; k++)
            if (!agree(f[i].rate, f[k].rate) || !agree(f[i].p50, f[k].p50)) return false;
    }
    return true;
}
