/* Islands of a planar world's contacts: copies of the contacts, island by island, each a
 * problem. */
#ifndef TB_PLANAR_ISLANDS_H
#define TB_PLANAR_ISLANDS_H

#include "step/planar/planar.h"

typedef struct tb_planar_island {
    int32_t first, blocks; /* in `order` and `blocks` */
    int32_t row, rows;     /* in the arrays of all islands */
    int32_t dof, dofs;     /* likewise: compact numbers */
    int32_t segment;
    int64_t value;
} tb_planar_island;

typedef struct tb_planar_islands {
    tb_planar_solve solve;
    const tb_problem *problem; /* the whole */
    tb_planar_island *islands;
    int32_t number_of_islands;
    int32_t *order;    /* blocks of the problem, by island */
    int32_t *body_dof; /* bodies: first compact dof in its island */
    tb_block *blocks;  /* rows, segments and values are the island's own */
    tb_segment *segments;
    double *values, *c, *warm, *speeds;
    uint8_t *known;
    tb_solution *solutions; /* islands; their arrays are parts of those below */
    double *lambda, *xi, *whitened;
    uint8_t *statuses;
    tb_solve_history *histories; /* islands */
    tb_status *failures;         /* islands */
    tb_arena *arenas;            /* threads */
} tb_planar_islands;

/* From the arena, as all that follows. */
tb_status tb_planar_islands_make(const tb_problem *problem, const tb_planar_solve *solve,
                                 tb_arena *arena, tb_planar_islands *islands);
/* The problem and the start of one island; points its solution's arrays. */
void tb_planar_island_open(tb_planar_islands *islands, int32_t i, tb_problem *problem,
                           tb_warm_start *warm);
/* Solves them one by one on so many threads (0: all processors); the same bytes on any number. */
tb_status tb_planar_islands_solve(tb_planar_islands *islands, int32_t threads, tb_arena *arena);
/* The solution of the whole, judged, or the first island's failure. */
tb_status tb_planar_islands_finish(const tb_planar_islands *islands, tb_arena *arena,
                                   tb_solution *solution);

#endif
