/* Clocks, medians and JSON lines of the benchmarks. See common_bench.h. */
#include "common_bench.h"

#include <time.h>

static double seconds_on(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_now(void)
{
    return seconds_on(CLOCK_MONOTONIC);
}

double bench_worked(void)
{
    return seconds_on(CLOCK_THREAD_CPUTIME_ID);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, ascending);
}

void bench_add(bench_figure *figure, double sample)
{
    if (figure->count < BENCH_RUNS) figure->samples[figure->count++] = sample;
}

double bench_median(const bench_figure *figure)
{
    double sorted[BENCH_RUNS];
    const int n = figure->count;
    if (n == 0) return 0;
    memcpy(sorted, figure->samples, (size_t)n * sizeof *sorted);
    bench_sort(sorted, n);
    return 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
}

void bench_print(const bench_figure *figure)
{
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < figure->count; i++) {
        least = fmin(least, figure->samples[i]);
        most = fmax(most, figure->samples[i]);
    }
    printf("{\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"minimum\": %.6g, "
           "\"maximum\": %.6g, \"samples\": %d}\n",
           figure->name, figure->unit, bench_median(figure), least, most, figure->count);
    fflush(stdout);
}

void bench_print_number(const char *name, const char *unit, double value)
{
    printf("{\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.6g}\n", name, unit, value);
    fflush(stdout);
}

void bench_commit(char commit[64])
{
    const char *known = getenv("TRIBO_COMMIT");
    snprintf(commit, 64, "%s", known != NULL ? known : "unknown");
    FILE *git = known == NULL ? popen("git rev-parse --short=12 HEAD 2>/dev/null", "r") : NULL;
    if (git == NULL) return;
    if (fscanf(git, "%63s", commit) != 1) snprintf(commit, 64, "unknown");
    pclose(git);
}

void bench_check(tb_status status, const tb_error *error)
{
    if (status == TB_OK) return;
    fprintf(stderr, "bench: %s: %s\n", tb_status_name(status), error ? error->message : "");
    exit(1);
}
