/* Sparse LU of a matrix of small dense blocks, for systems whose graph is that of contacts or
 * bodies: couplings are blocks, the pattern is symmetric though the numbers are not, and one
 * pattern is factored many times.
 *
 * Nodes that see the same neighbours become one (the contacts of a pair of bodies, the chain of an
 * arm), the order is that of minimum degree (Tinney and Walker, Proc. IEEE 55, 1967), and rows are
 * exchanged within a node only: the systems of Newton have a regular diagonal by their proximal
 * term. A dense matrix is the case of one node. */
#ifndef TB_BLOCK_LU_H
#define TB_BLOCK_LU_H

#include "base/base.h"

/* A factorization with more numbers than this is refused as soon as its analysis exceeds the bound:
 * 1 GiB of doubles, a minute to factor. */
enum { TB_BLOCK_LU_NUMBERS = 1 << 27 };

/* Where two nodes couple: CSR over nodes, symmetric, any order, self allowed. */
typedef struct tb_node_graph {
    int32_t nodes;
    const int32_t *size;  /* rows of a node, >= 1 */
    const int32_t *start; /* nodes + 1 */
    const int32_t *neighbour;
} tb_node_graph;

#define tb_block_lu TB_SYMBOL(tb_block_lu)
typedef struct tb_block_lu {
    int32_t nodes, groups, rows; /* as given, merged, scalar */
    int32_t *group, *offset;     /* of a node: its group, and its first row within */
    int32_t *size, *first;       /* of a group, in elimination order: rows, first place in x */
    int32_t *later_start;        /* groups + 1: into `later` */
    int32_t *later;              /* groups that a group's elimination fills, ascending */
    int64_t *diagonal;           /* groups: into `values` */
    int64_t *upper, *lower;      /* per entry of `later`: into `values` */
    int64_t numbers;             /* of `values` */
    tb_real *values;
    int32_t *exchange; /* rows: row exchanges within groups */
    tb_real *work;     /* rows */
    double operations; /* of one factorization, multiplications */
} tb_block_lu;

/* Orders the nodes and takes all memory. RESOURCE_EXHAUSTED where that is refused, UNSUPPORTED
 * beyond TB_BLOCK_LU_NUMBERS. */
#define tb_block_lu_analyse TB_SYMBOL(tb_block_lu_analyse)
TB_EXTERN tb_status tb_block_lu_analyse(tb_block_lu *lu, const tb_node_graph *graph,
                                        tb_arena *arena);

/* The same for one node alone, of at least one row: nothing to order. */
#define tb_block_lu_dense TB_SYMBOL(tb_block_lu_dense)
TB_EXTERN tb_status tb_block_lu_dense(tb_block_lu *lu, int32_t rows, tb_arena *arena);

/* A matrix of one node with another number of rows, not more than it was made for. */
#define tb_block_lu_shrink TB_SYMBOL(tb_block_lu_shrink)
TB_EXTERN void tb_block_lu_shrink(tb_block_lu *lu, int32_t rows);

/* Bytes that tb_block_lu_single_node needs for a matrix of one node, with numbers of `real`
 * bytes. */
TB_FN size_t tb_block_lu_dense_bytes(int32_t rows, size_t real)
{
    return ((size_t)rows * (size_t)rows + 2 * (size_t)rows) * real + (size_t)rows * sizeof(int32_t);
}

/* Puts the numbers of a matrix that is not written yet, with its `work` and `exchange`, into the
 * team's fast memory. Returns room for a right side behind them; NULL: they do not fit, and all
 * stays where it is. */
#define tb_block_lu_single_node TB_SYMBOL(tb_block_lu_single_node)
TB_EXTERN tb_real *tb_block_lu_single_node(tb_block_lu *lu);

/* All numbers become zero. */
#define tb_block_lu_clear TB_SYMBOL(tb_block_lu_clear)
TB_EXTERN void tb_block_lu_clear(tb_block_lu *lu);

/* The block of two groups that couple, row-major: size[row] x size[column] numbers. */
#define tb_block_lu_block TB_SYMBOL(tb_block_lu_block)
TB_EXTERN tb_real *tb_block_lu_block(const tb_block_lu *lu, int32_t row, int32_t column);

/* False where a pivot is zero or not finite. */
#define tb_block_lu_factor TB_SYMBOL(tb_block_lu_factor)
TB_EXTERN bool tb_block_lu_factor(tb_block_lu *lu);

/* x <- inverse(A) x; a node's rows lie at x + first[group[node]] + offset[node]. */
#define tb_block_lu_solve TB_SYMBOL(tb_block_lu_solve)
TB_EXTERN void tb_block_lu_solve(tb_block_lu *lu, tb_real *x);

/* The same for several right sides: x has a row of `columns` numbers for every row of A. Leading
 * zeros, up to the rows of a group, cost nothing. */
#define tb_block_lu_solve_columns TB_SYMBOL(tb_block_lu_solve_columns)
TB_EXTERN void tb_block_lu_solve_columns(tb_block_lu *lu, tb_real *x, int32_t columns);

#endif
