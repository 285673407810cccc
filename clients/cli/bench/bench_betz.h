/* Worlds of Betz's tables: a scene by the planar scheme and one solver. */
#ifndef CLI_BENCH_BETZ_H
#define CLI_BENCH_BETZ_H

#include "bench/thesis.h"

typedef struct betz_world {
    tb_model *model;
    tb_state *state;
    tb_stepper *stepper;
} betz_world;

/* The world of a named scene; to be closed, whatever the status is. */
tb_status betz_world_open(betz_world *w, const char *scene, const tb_step_options *step,
                          tb_error *error);
void betz_world_close(betz_world *w);

/* The thesis's way to solve: cold, Jacobi's r, the one-sided test; `lemke` to a residual of 1e-9. */
tb_step_options betz_thesis_step(const char *solver, int32_t iterations, double omega);

/* X over time of bodies 17 and 209 and theta of 17, figures 4.6 to 4.33. */
tb_status betz_fill_curves(const thesis_options *options, thesis_table *table, tb_error *error);

#endif
