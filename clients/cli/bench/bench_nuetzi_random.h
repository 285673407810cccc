/* Nützi's tables over random systems; each fills a table that has neither columns nor rows. */
#ifndef CLI_BENCH_NUETZI_RANDOM_H
#define CLI_BENCH_NUETZI_RANDOM_H

#include "bench/thesis.h"

/* Times of an iteration, figures 6.1 to 6.3. A variant whose library is missing is skipped in a note. */
tb_status nuetzi_fill_variants(const thesis_options *options, thesis_table *table, tb_error *error);
/* The same for some numbers of contacts up to that of the options. */
tb_status nuetzi_fill_sizes(const thesis_options *options, thesis_table *table, tb_error *error);
/* The parts of an iteration of full-sor-32 on the processor, figure 6.4. UNSUPPORTED on a card. */
tb_status nuetzi_fill_breakdown(const thesis_options *options, thesis_table *table,
                                tb_error *error);
/* The device against the processor; NOT_CONVERGED where a row fails the test. */
tb_status nuetzi_fill_crosscheck(const thesis_options *options, thesis_table *table,
                                 tb_error *error);

#endif
