/* Islands of a contact problem: blocks that share no degree of freedom with other blocks, directly
 * or through others, are problems of their own. */
#ifndef TB_ISLANDS_H
#define TB_ISLANDS_H

#include "solve/solve.h"

/* Sizes of an island, and where it begins in the arrays of tb_islands. */
typedef struct tb_island {
    int32_t blocks, rows, dofs, segments;
    int32_t first, row, segment; /* of its blocks, rows and segments */
} tb_island;

/* The problem and its start in the order of the islands. Blocks of an island count rows, segments
 * and dofs from its own first ones, and keep their order and their numbers in Y. */
#define tb_islands TB_SYMBOL(tb_islands)
typedef struct tb_islands {
    const tb_problem *problem;
    int32_t number;                /* of islands */
    double c_squared, own_squares; /* of the problem; sum of the squares of its c */
    tb_island *islands;            /* number */
    int32_t *order;                /* blocks: index in the problem, island by island */
    tb_block *blocks;
    tb_segment *segments;
    tb_real *c, *compliance, *warm, *fine; /* rows; all but c may be NULL */
    tb_real *speeds;                       /* blocks, or NULL */
    uint8_t *known;                        /* blocks, or NULL: statuses of the start */
    tb_real *lambda, *lambda_fine, *xi;    /* rows: the solution; fine may be NULL */
    uint8_t *statuses;                     /* blocks */
} tb_islands;

/* Finds the islands of a problem in factorized form. islands->number is 0 where the problem is not
 * worth taking apart: fewer than two islands, few dofs, or a given matrix; nothing else is set then.
 * Takes memory from warm->scratch, which the caller returns. RESOURCE_EXHAUSTED. */
#define tb_islands_find TB_SYMBOL(tb_islands_find)
TB_EXTERN tb_status tb_islands_find(const tb_problem *problem, const tb_solve_options *options,
                                    const tb_warm_start *warm, const tb_solution *solution,
                                    tb_islands *islands);

/* Island i as a problem, with its part of the start and room for its solution. */
#define tb_islands_open TB_SYMBOL(tb_islands_open)
TB_EXTERN void tb_islands_open(const tb_islands *islands, int32_t i, tb_problem *problem,
                               tb_warm_start *warm, tb_solution *solution);

/* Sets the counts of the whole problem's solution to those of no island. */
#define tb_islands_begin TB_SYMBOL(tb_islands_begin)
TB_EXTERN void tb_islands_begin(tb_solution *solution);

/* Writes the impulses and statuses of a solved island into the solution of the whole problem, and
 * adds its counts: iterations are those of the island that took most. */
#define tb_islands_close TB_SYMBOL(tb_islands_close)
TB_EXTERN void tb_islands_close(const tb_islands *islands, int32_t i, const tb_solution *part,
                                tb_solution *solution);

#endif
