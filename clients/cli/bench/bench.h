/* Small benchmarks. Times on a shared machine are noisy, so each case is repeated and the cases
 * alternate; the report is the median with the smallest and the largest, and ratios within one
 * round. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "tribo.h"

enum { BENCH_CASES = 8, BENCH_REPEATS = 101 };

typedef struct bench_case {
    char label[48];
    double amount; /* divisor of a time: contacts and sweeps, worlds and steps, ... */
    double size;   /* contacts, for growth */
    double seconds[BENCH_REPEATS];
    void *context;
} bench_case;

typedef struct bench {
    const char *name, *summary;
    const char *unit; /* of seconds / amount: "s per contact and sweep" */
    int cases, repeats;
    bench_case list[BENCH_CASES];
    double exponent; /* of the time in `size`; 0: not asked */
} bench;

/* Runs the case once and returns the seconds; a negative number is a failure, with the reason in
 * `error`. */
typedef double bench_function(void *context, tb_error *error);

/* Runs all cases in turn, `repeats` times after one warm-up. */
tb_status bench_measure(bench *b, bench_function *function, tb_error *error);

/* Median, smallest and largest of a case's numbers: seconds / amount, or relative to the first
 * case. */
typedef struct bench_summary {
    double median, low, high;
} bench_summary;

bench_summary bench_time(const bench *b, int index);
bench_summary bench_ratio(const bench *b, int index);
/* Slope of log(time of a step) over log(size), by least squares through the medians. */
double bench_exponent(const bench *b);

/* A cubic pile of side^3 touching spheres (r 0.1 m, 10 kg) on a floor. */
tb_status bench_pile(int side, tb_model **model, tb_error *error);

#endif
