/* The linear system of a Newton step, in the form that is small.
 *
 * A step solves, for the change of the impulses of all blocks (see newton.c for the equation),
 *
 *     w dlambda + D (G + E) dlambda = w f,
 *
 * with w > 0 one number a block, D the slopes of the projections and f = prox - lambda. Open contacts
 * have D = 0 and drop out. In the given form the rows of the others are the system, a node a block. In the factorized form, where G = Y'Y, the change of the whitened velocity ds = Y
 * dlambda is the unknown and the bodies are the nodes:
 *
 *     (1 + Y D' Y') ds = Y f',   dlambda = f' - D' Y' ds,
 *     D' = inverse(w + D E) D,   f' = inverse(w + D E) w f,
 *
 * however many contacts a body has. There the factor of an earlier step's matrix serves while few
 * blocks have changed (newton_update.c), and that of an earlier solve where it is still near
 * (newton_cached_factor.c). */
#ifndef TB_NEWTON_SYSTEM_H
#define TB_NEWTON_SYSTEM_H

#include "contact/contact.h"
#include "solve/newton/block_lu.h"
#include "solve/solve.h"

/* The present factor and the blocks that have changed since; the factorized form only. */
#define tb_newton_update TB_SYMBOL(tb_newton_update)
typedef struct tb_newton_update {
    bool has_factor;
    int32_t most;               /* rows of blocks that may differ; 0: none */
    int32_t columns;            /* kept so far */
    double factoring, products; /* multiplications of a factorization with assembly; of Y twice */
    tb_real *factored;          /* D' of the factor's matrix, squares at 6 row */
    uint8_t *differs;           /* blocks: D' is another now */
    int32_t *column;            /* blocks: the first of its kept columns; -1: none */
    int32_t *changed, *part;    /* most: rows that differ: block, row within */
    tb_real *solved_columns;    /* most x dofs: inverse(A0) times a row of Y each */
    tb_real *solving;           /* rows of lu x most: columns on their way there */
    tb_real *right, *answer;    /* dofs */
    tb_real *small;             /* most */
    tb_block_lu schur;          /* of the rows that differ */
} tb_newton_update;

/* A factor of an earlier solve and the memory to solve by it. */
#define tb_newton_cached_factor TB_SYMBOL(tb_newton_cached_factor)
typedef struct tb_newton_cached_factor {
    double *numbers; /* tb_cached_factor_numbers of the dofs, the caller's; NULL: none is kept */
    double weight;   /* share of the diagonal that this solve's weights are; 0: not one number */
    double enough;   /* length of a residual that is as good as none */
    tb_real *basis, *near, *inverse; /* vectors of dofs; dofs x dofs */
} tb_newton_cached_factor;

#ifndef TB_DEVICE
enum { TB_DENSE_GROUP_ROWS = 3 };

/* Rows of Y that a processor adds together to the matrix of one dense node (newton_dense.c). */
#define tb_dense_group TB_SYMBOL(tb_dense_group)
typedef struct tb_dense_group {
    int32_t block[TB_DENSE_GROUP_ROWS]; /* of each row; of all rows unless `of_blocks` */
    int32_t rows;
    bool of_blocks;     /* each row is a block of its own */
    bool has_numbers;   /* `turned` has been written */
    const tb_block *on; /* the block whose dofs all rows move: the last one */
    tb_real *turned;    /* rows x width of `on`, the last dof first */
} tb_dense_group;
#endif

#define tb_newton_system TB_SYMBOL(tb_newton_system)
typedef struct tb_newton_system {
    const tb_problem *problem;
    tb_arena *arena;
    tb_arena_mark pattern_mark; /* memory behind it belongs to the pattern */
    bool has_pattern;
    bool one_node;      /* the pattern is one dense node of all dofs, the last one first */
    uint8_t *inside;    /* blocks: in the pattern */
    int32_t *node;      /* given: of a block; factorized: of a dof; -1: in none */
    int32_t *node_row;  /* factorized: of a dof, its row within the node */
    int32_t *row_block; /* given: rows, the block */
    tb_block_lu lu;
    tb_real *x; /* right side and solution: `arena_x`, or in fast memory */
    tb_real *arena_x;
    tb_real *work;  /* rows; factorized, after a solve: Y' ds */
    int32_t widest; /* block's width, factorized */
    /* factorized: D' as squares at 6 row; zero square of the widest block for sums */
    tb_real *reduced, *square;
    /* factorized, blocks: the last dof of a block of one row, and the blocks before and after it along
     * the same velocity; -1: none. Once `knows_alike`. */
    int32_t *last_dof, *alike_before, *alike_after;
    bool knows_alike;
    tb_real *ds; /* dofs: right side, then change of the whitened velocity of the last solve */
    tb_newton_update update;
    tb_newton_cached_factor cached;
    int32_t solves, factorizations; /* so far */
#ifndef TB_DEVICE
    tb_dense_group *groups; /* of one dense node; NULL: not known yet */
    int32_t number_of_groups;
    tb_real *full;   /* dofs x dofs: sums on their way to a sparse matrix; NULL: too many dofs */
    bool full_clean; /* `full` has been written: zeros, but while a matrix is assembled */
#endif
} tb_newton_system;

/* Allocates the arrays that do not depend on the pattern. */
#define tb_newton_system_prepare TB_SYMBOL(tb_newton_system_prepare)
TB_EXTERN tb_status tb_newton_system_prepare(tb_newton_system *system, const tb_problem *problem,
                                             tb_arena *arena);

/* Cost of steps and sweeps, in dependent multiplications. */
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
                                           const tb_real *slope, const tb_real *prox_gap,
                                           const uint8_t *statuses, tb_real *dlambda, bool *solved);

/* ---- the factorized form, for newton_system.c ---- */

/* Numbers the nodes of the blocks inside and stores their sizes; returns their number. */
#define tb_newton_number_dofs TB_SYMBOL(tb_newton_number_dofs)
TB_EXTERN int32_t tb_newton_number_dofs(tb_newton_system *system, int32_t *size);
/* Couplings of nodes, to count (`neighbour` NULL) and to list. */
#define tb_newton_list_dofs TB_SYMBOL(tb_newton_list_dofs)
TB_EXTERN void tb_newton_list_dofs(const tb_newton_system *system, int32_t *start,
                                   int32_t *neighbour);
/* D' and f' of all blocks, f' into dlambda, and the right side into ds; false where a block is
 * singular. */
#define tb_newton_reduce TB_SYMBOL(tb_newton_reduce)
TB_EXTERN bool tb_newton_reduce(tb_newton_system *system, const tb_real *weight,
                                const tb_real *slope, const tb_real *prox_gap,
                                const uint8_t *statuses, tb_real *dlambda);
/* Links the blocks of one row along one velocity, in ascending order. */
#define tb_newton_link_alike TB_SYMBOL(tb_newton_link_alike)
TB_EXTERN void tb_newton_link_alike(tb_newton_system *system);
/* D' of a block, or the sum, in *sum, of those of all blocks along its velocity. */
#define tb_newton_sum_alike TB_SYMBOL(tb_newton_sum_alike)
TB_EXTERN const tb_real *tb_newton_sum_alike(const tb_newton_system *system, int32_t b,
                                             tb_real *sum);
#ifndef TB_DEVICE
/* Groups the rows of Y for the matrix of one dense node. RESOURCE_EXHAUSTED. */
#define tb_newton_group_rows TB_SYMBOL(tb_newton_group_rows)
TB_EXTERN tb_status tb_newton_group_rows(tb_newton_system *system);
/* The matrix 1 + Y D' Y' of one dense node, whose groups are known. */
#define tb_newton_assemble_dense TB_SYMBOL(tb_newton_assemble_dense)
TB_EXTERN void tb_newton_assemble_dense(tb_newton_system *system);
#endif
#ifndef TB_DEVICE
/* Whether a sparse matrix of so many dofs is summed in a full square first. */
#define tb_newton_full_dofs TB_SYMBOL(tb_newton_full_dofs)
TB_EXTERN bool tb_newton_full_dofs(int32_t dofs);
#endif
/* Solves for ds by a factorization of the matrix; false where it is singular. */
#define tb_newton_factor_dofs TB_SYMBOL(tb_newton_factor_dofs)
TB_EXTERN bool tb_newton_factor_dofs(tb_newton_system *system);
/* v <- inverse(A0) v (dofs), by the last factor. */
#define tb_newton_apply_factor TB_SYMBOL(tb_newton_apply_factor)
TB_EXTERN void tb_newton_apply_factor(tb_newton_system *system, tb_real *v);
/* dlambda (f') less D' Y' ds; Y' ds into `work`. */
#define tb_newton_expand TB_SYMBOL(tb_newton_expand)
TB_EXTERN void tb_newton_expand(const tb_newton_system *system, const uint8_t *statuses,
                                tb_real *dlambda);
/* The place in x of a dof in a node. */
#define tb_newton_row_of_dof TB_SYMBOL(tb_newton_row_of_dof)
TB_EXTERN int32_t tb_newton_row_of_dof(const tb_newton_system *system, int32_t dof);

/* ---- the factor of an earlier step, for the factorized form ---- */

/* Allocates the arrays that do not depend on the pattern. RESOURCE_EXHAUSTED. */
#define tb_newton_update_prepare TB_SYMBOL(tb_newton_update_prepare)
TB_EXTERN tb_status tb_newton_update_prepare(tb_newton_system *system);
/* Takes the rest, for a new pattern: there is no factor. RESOURCE_EXHAUSTED. */
#define tb_newton_update_fit TB_SYMBOL(tb_newton_update_fit)
TB_EXTERN tb_status tb_newton_update_fit(tb_newton_system *system);
/* The matrix has just been factored: remembers which one it was. */
#define tb_newton_update_begin TB_SYMBOL(tb_newton_update_begin)
TB_EXTERN void tb_newton_update_begin(tb_newton_system *system);
/* Solves for ds by the factor that there is. False, and ds as it was: it has to be another. */
#define tb_newton_update_solve TB_SYMBOL(tb_newton_update_solve)
TB_EXTERN bool tb_newton_update_solve(tb_newton_system *system);

/* to = A v, v + Y D' Y' v (dofs), A the matrix as it is. */
#define tb_newton_product TB_SYMBOL(tb_newton_product)
TB_EXTERN void tb_newton_product(tb_newton_system *system, const tb_real *v, tb_real *to);

/* Euclid's, in double, the same for all lanes. */
#define tb_newton_length TB_SYMBOL(tb_newton_length)
TB_EXTERN double tb_newton_length(const tb_real *v, int32_t n);

/* ---- a factor kept from solve to solve ---- */

/* Takes memory, where `numbers` (NULL: none) are there to be used. RESOURCE_EXHAUSTED. */
#define tb_newton_cached_factor_prepare TB_SYMBOL(tb_newton_cached_factor_prepare)
TB_EXTERN tb_status tb_newton_cached_factor_prepare(tb_newton_system *system, double *numbers);
/* From here to tb_newton_cached_factor_end all weights are one share of the diagonal: that of the
 * factor where it lies a little below the given one, else the given one. Returns which. A residual
 * of length `enough` is as good as none. */
#define tb_newton_cached_factor_begin TB_SYMBOL(tb_newton_cached_factor_begin)
TB_EXTERN double tb_newton_cached_factor_begin(tb_newton_system *system, double weight,
                                               double enough);
#define tb_newton_cached_factor_end TB_SYMBOL(tb_newton_cached_factor_end)
TB_EXTERN void tb_newton_cached_factor_end(tb_newton_system *system);
/* The matrix has just been factored: keeps its inverse, where that is worth it. */
#define tb_newton_cache_factor TB_SYMBOL(tb_newton_cache_factor)
TB_EXTERN void tb_newton_cache_factor(tb_newton_system *system);
/* Solves for ds with it. False, and ds as it was: it is none or too old. */
#define tb_newton_cached_factor_solve TB_SYMBOL(tb_newton_cached_factor_solve)
TB_EXTERN bool tb_newton_cached_factor_solve(tb_newton_system *system);

/* ---- both ---- */

/* The change of xi (rows) that goes with the last solve's dlambda. */
#define tb_newton_system_move TB_SYMBOL(tb_newton_system_move)
TB_EXTERN void tb_newton_system_move(const tb_newton_system *system, const tb_real *dlambda,
                                     tb_real *dxi);

#endif
