/* The linear system of a Newton step, in the form that is small.
 *
 * A step solves, for the change of the impulses of all blocks (see newton.c for the equation),
 *
 *     w dlambda + D (G + E) dlambda = w f,
 *
 * with w > 0 one number a block, D the slopes of the projections and f what the impulses lack. Open
 * contacts have D = 0 and drop out. In the given form the rows of the others are the system, a node
 * a block. In the factorized form, where G = Y'Y, the change of the whitened velocity ds = Y
 * dlambda is the unknown and the bodies are the nodes:
 *
 *     (1 + Y D' Y') ds = Y f',   dlambda = f' - D' Y' ds,
 *     D' = inverse(w + D E) D,   f' = inverse(w + D E) w f,
 *
 * however many contacts a body has. */
#ifndef TB_NEWTON_SYSTEM_H
#define TB_NEWTON_SYSTEM_H

#include "contact/contact.h"
#include "solve/block_lu.h"

#define tb_newton_system TB_SYMBOL(tb_newton_system)
typedef struct tb_newton_system {
    const tb_problem *problem;
    tb_arena *arena;
    tb_arena_mark pattern_mark; /* what lies behind it belongs to the pattern */
    bool has_pattern;
    uint8_t *inside;    /* blocks: in the pattern */
    int32_t *node;      /* given: of a block; factorized: of a dof; -1: in none */
    int32_t *node_row;  /* factorized: of a dof, its row within the node */
    int32_t *row_block; /* given: rows, the block */
    tb_block_lu lu;
    tb_real *x;    /* right side and solution */
    tb_real *work; /* rows */
    /* factorized: D' as squares at 6 row; zero square of the widest block for sums */
    tb_real *reduced, *square;
    tb_real *ds;                    /* dofs: change of the whitened velocity of the last solve */
    int32_t solves, factorizations; /* so far */
} tb_newton_system;

/* Takes what does not depend on the pattern. */
#define tb_newton_system_prepare TB_SYMBOL(tb_newton_system_prepare)
TB_EXTERN tb_status tb_newton_system_prepare(tb_newton_system *system, const tb_problem *problem,
                                             tb_arena *arena);

/* What steps and sweeps cost, in multiplications that follow one another. */
typedef struct tb_newton_price {
    double sweep;     /* of sor */
    double step;      /* of a round: factorization, assembly, products, line search */
    double sets_step; /* from sets, which has no line search */
} tb_newton_price;

/* Factorizations count half and assemblies too, since they run over dense blocks. Makes the pattern
 * for these statuses; NULL: of the pattern that there is. */
#define tb_newton_system_price TB_SYMBOL(tb_newton_system_price)
TB_EXTERN tb_status tb_newton_system_price(tb_newton_system *system, const uint8_t *statuses,
                                           tb_newton_price *price);

/* Solves for dlambda (rows). weight: blocks; slope: row-major squares, block b's at 6 rows[b].row;
 * lack: f, rows; statuses: blocks. UNSUPPORTED where the system is too large, RESOURCE_EXHAUSTED
 * where memory is refused; *solved is false where the matrix is singular or the step not finite.
 * Takes memory from the arena behind everything that was taken before: the caller returns it. */
#define tb_newton_system_solve TB_SYMBOL(tb_newton_system_solve)
TB_EXTERN tb_status tb_newton_system_solve(tb_newton_system *system, const tb_real *weight,
                                           const tb_real *slope, const tb_real *lack,
                                           const uint8_t *statuses, tb_real *dlambda, bool *solved);

/* ---- the factorized form, for newton_system.c ---- */

/* Numbers the nodes of the blocks inside and tells their sizes; returns how many there are. */
#define tb_newton_number_dofs TB_SYMBOL(tb_newton_number_dofs)
TB_EXTERN int32_t tb_newton_number_dofs(tb_newton_system *system, int32_t *size);
/* Couplings of nodes, to count (`neighbour` NULL) and to list. */
#define tb_newton_list_dofs TB_SYMBOL(tb_newton_list_dofs)
TB_EXTERN void tb_newton_list_dofs(const tb_newton_system *system, int32_t *start,
                                   int32_t *neighbour);
#define tb_newton_solve_dofs TB_SYMBOL(tb_newton_solve_dofs)
TB_EXTERN void tb_newton_solve_dofs(tb_newton_system *system, const tb_real *weight,
                                    const tb_real *slope, const tb_real *lack, tb_real *dlambda,
                                    bool *solved);

/* ---- both ---- */

/* The change of xi (rows) that goes with the last solve's dlambda. */
#define tb_newton_system_move TB_SYMBOL(tb_newton_system_move)
TB_EXTERN void tb_newton_system_move(const tb_newton_system *system, const tb_real *dlambda,
                                     tb_real *dxi);

#endif
