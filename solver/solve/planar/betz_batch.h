/* Islands of planar contacts whose sweeps a device runs in one launch, as host and device share
 * them.
 *
 * The arrays of all islands lie one after another; rows, dofs, segments and values of an
 * island's blocks count from the island's own first (step/planar/islands.h). */
#ifndef TB_BETZ_BATCH_H
#define TB_BETZ_BATCH_H

#include "contact/problem.h"

enum {
    TB_BETZ_FRESH = 1,      /* r, s and flags are computed before the first sweep */
    TB_BETZ_FREEZE = 2,     /* of prox_serial: see tb_betz */
    TB_BETZ_RICHARDSON = 4, /* r = omega */
    TB_BETZ_MU_ONE = 8,     /* the first sweep has mu = 1, as listed */
    TB_BETZ_ONE_SIDED = 16, /* the sweeps end where all contacts pass the one-sided test */
    TB_BETZ_UNGUARDED =
        32,           /* as listed: a fence where the blocks of threads must wait for each other */
    TB_BETZ_RUBS = 64 /* mprgp: some contact has friction */
};

/* Votes of a sweep; the last is mprgp's at the end of its products. */
enum { TB_BETZ_MOVES = 1, TB_BETZ_OVER = 2, TB_BETZ_GAVE_UP = 4 };

enum {
    TB_MPRGP_LANES = 1024, /* of a team, on a card and on a processor */
    TB_MPRGP_ARRAYS = 4    /* arrays of rows that a solve needs beside those of tb_betz */
};

typedef struct tb_betz_island {
    int32_t block, blocks, row, rows, dof, dofs, segment;
    int32_t start; /* first of its dofs + 1 numbers in `start`; of mprgp of its slices + 1 */
    int32_t entry; /* first of its numbers in `row_of` and `coefficient` */
    int64_t value;
    double omega;     /* of r */
    double tolerance; /* m/s */
    double limit;     /* N s, of a trial p_n; 0: none */
    int32_t kind;     /* of the flags above */
    int32_t width;    /* mprgp: most columns of a row */
    int32_t sweeps;   /* to be made; 0: the island rests */
    int32_t made;     /* by the device */
    uint32_t vote;    /* of the last sweep, where it was asked for one */
} tb_betz_island;

typedef struct tb_betz_batch {
    int32_t number_of_islands, number_of_blocks, number_of_rows, number_of_dofs, number_of_segments;
    int64_t number_of_values, number_of_entries;
    const tb_block *blocks;
    const tb_segment *segments;
    const double *values, *c;
    const int32_t *start;      /* dofs and islands: see tb_betz */
    const int32_t *row_of;     /* entries */
    const double *coefficient; /* entries */
    tb_betz_island *islands;
    double *p; /* rows, N s: read where an island is fresh, and written */
    /* Sweeps are products of the solver mprgp (mprgp.h). There are no segments, values and
     * coefficients lie as in tb_mprgp_lists, and so do: */
    bool mprgp;
    const int32_t *dof_of; /* of each value; else NULL */
} tb_betz_batch;

#endif
