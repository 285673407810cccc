/* Poulsen's tables of processes, and the times that all of his tables share. */
#ifndef CLI_BENCH_POULSEN_H
#define CLI_BENCH_POULSEN_H

#include "bench/thesis.h"
#include "tribo_poulsen.h"

/* Median seconds of `repeats` solves; the bytes of the last. */
tb_status poulsen_time(const char *scene, const tb_poulsen_options *method, int64_t repeats,
                       double *seconds, uint64_t *hash, tb_error *error);

/* Sweeps that a method takes to a quality; left alone where it does not get there. */
tb_status poulsen_sweeps_to(const char *scene, tb_poulsen_options method, double gamma,
                            double *sweeps, tb_error *error);

/* Columns threads_1 to threads_<most>; most: at most 8. */
enum { POULSEN_MOST_THREADS = 8 };
int poulsen_thread_columns(const thesis_options *options, thesis_table *table, const char *unit);

/* fill functions of thesis_entry: figure 6.2; tables 6.1 and 6.2; the improvements of section 6.2.1;
 * section 7.1; figures 7.5 and 7.6; place of the unsafe colour; ends of the processes; their waits */
tb_status poulsen_fill_extreme(const thesis_options *o, thesis_table *t, tb_error *error);
tb_status poulsen_fill_csp(const thesis_options *o, thesis_table *t, tb_error *error);
tb_status poulsen_fill_ladder(const thesis_options *o, thesis_table *t, tb_error *error);
tb_status poulsen_fill_naive(const thesis_options *o, thesis_table *t, tb_error *error);
tb_status poulsen_fill_csp_sweeps(const thesis_options *o, thesis_table *t, tb_error *error);
tb_status poulsen_fill_order(const thesis_options *o, thesis_table *t, tb_error *error);
tb_status poulsen_fill_shutdown(const thesis_options *o, thesis_table *t, tb_error *error);
tb_status poulsen_fill_waits(const thesis_options *o, thesis_table *t, tb_error *error);

#endif
