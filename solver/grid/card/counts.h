/* Counts of a program's solves, for the host's sides of both processor and card. */
#ifndef TB_SOFT_CARD_COUNTS_H
#define TB_SOFT_CARD_COUNTS_H

#include "tribo_qp.h"
#include "tribo_soft.h"

static inline double tb_soft_band_bytes(int32_t n, int32_t half_bandwidth)
{
    return (double)sizeof(double) * n * (half_bandwidth + 1);
}

/* A program is opened. */
static inline void tb_soft_count_program(tb_soft_program_counts *c, int32_t n,
                                         int32_t half_bandwidth)
{
    c->variables = n > c->variables ? n : c->variables;
    c->bytes += tb_soft_band_bytes(n, half_bandwidth); /* H is written */
    if (half_bandwidth > c->half_bandwidth) c->half_bandwidth = half_bandwidth;
}

static inline void tb_soft_count_solve(tb_soft_program_counts *c, int32_t n, int32_t half_bandwidth,
                                       const tb_qp_result *r)
{
    c->iterations = r->iterations > c->iterations ? r->iterations : c->iterations;
    c->solves += r->solves;
    c->factorizations += r->factorizations;
    c->resets += r->resets;
    /* a factorization reads H and writes its factor, a solve reads the factor twice */
    c->bytes += 2 * tb_soft_band_bytes(n, half_bandwidth) * (r->factorizations + r->solves);
    c->factor_seconds += r->factor_seconds;
    c->solve_seconds += r->solve_seconds;
    c->seconds += r->seconds;
}

/* A program is closed: active rows at its end, and those of them that its first set had. */
static inline void tb_soft_count_sets(tb_soft_program_counts *c, int32_t n, int32_t active,
                                      int32_t warm)
{
    c->active += active;
    c->warm += warm;
    if (n - active > c->free_variables) c->free_variables = n - active;
}

#endif
