/* Shared by all benchmarks: a clock, medians with spread, one JSON object a figure.
 *
 * Machines are shared and noisy: quote ratios of figures from one run, medians, and the spread. */
#ifndef COMMON_BENCH_H
#define COMMON_BENCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tribo.h"

/* s, monotonic */
double bench_now(void);

/* s of processor time that this thread has taken */
double bench_worked(void);

/* Sorts samples, the least first. */
void bench_sort(double *samples, int count);

enum { BENCH_RUNS = 64 };

/* Samples of one figure. */
typedef struct bench_figure {
    const char *name, *unit;
    double samples[BENCH_RUNS];
    int count;
} bench_figure;

/* Adds a sample; the first BENCH_RUNS count. */
void bench_add(bench_figure *figure, double sample);
double bench_median(const bench_figure *figure);

/* Prints one line of JSON to standard output: name, unit, median, minimum, maximum, samples. */
void bench_print(const bench_figure *figure);

/* Prints one line of JSON for a number derived from others (a ratio, an exponent). */
void bench_print_number(const char *name, const char *unit, double value);

/* The commit that TRIBO_COMMIT names, else git's, else "unknown". */
void bench_commit(char commit[64]);

/* Stops the program with the message if status is not OK. */
void bench_check(tb_status status, const tb_error *error);

#endif
