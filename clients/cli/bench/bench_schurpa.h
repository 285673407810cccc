/* Litven's table 7.1: savings of SCHURPA against a factorization in every iteration. */
#ifndef CLI_BENCH_SCHURPA_H
#define CLI_BENCH_SCHURPA_H

#include "tribo.h"

typedef struct bench_schurpa_options {
    int32_t n, half_bandwidth; /* half_bandwidth < n */
    int32_t delta;             /* wrong bounds at the start, at most n; -1: 0, 10, ... 50 */
    int32_t repeats;
    uint64_t seed;
    tb_precision precision;
    tb_backend_choice backend;
    bool lapack; /* DIRECT factors by LAPACK's band routines, not by blocks as SCHURPA does */
    bool json;
} bench_schurpa_options;

enum { BENCH_SCHURPA_DELTAS = 6 };

/* Medians of one delta: of SCHURPA and of DIRECT. */
typedef struct bench_schurpa_times {
    int32_t delta, iterations;            /* iterations: of SCHURPA */
    double factor[2], solve[2], total[2]; /* s */
    double residual;                      /* the larger relative KKT residual */
} bench_schurpa_times;

/* Runs, and gives the times of each delta in place of printing. */
tb_status bench_schurpa_measure(const bench_schurpa_options *options,
                                bench_schurpa_times times[BENCH_SCHURPA_DELTAS], int32_t *count,
                                tb_error *error);

/* Runs and prints. CANCELLED by an interrupt, NOT_CONVERGED where a program is not solved. */
tb_status bench_schurpa(const bench_schurpa_options *options, tb_error *error);

#endif
