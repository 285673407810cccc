/* The contact problem, independent of bodies and shapes: the input of every solver.
 *
 *     xi = G lambda + E lambda + c,     per block:  lambda = prox_C(lambda - r xi)  for any r > 0
 *
 * with lambda the impulses, xi = gamma+ + e gamma- (plus gap terms; gamma- and gamma+ the relative
 * velocities before and after the step, e the restitution), G the Delassus matrix, E a
 * diagonal compliance (zero for contacts; a servo's 1 / (dt (k dt + d))), and C the law's set
 * (Nützi 4.34).
 *
 * G comes in one of two forms.
 * Factorized: G = Y' Y with Y = H^-T W where M = H' H (step/dynamics/dynamics.h). Each block's rows
 * touch a few contiguous runs of dofs, and Y has the sparsity of W because H is sparse along the
 * kinematic chains. A sweep keeps the whitened velocity s = Y lambda (dofs): a row's xi is
 * Y_row . s + E lambda + c, an update adds Y_row dlambda. One array replaces both W and M^-1 W and
 * halves the memory traffic. Given: G itself from a file, dense or sparse, symmetric or not.
 *
 * Arrays are in working precision (tb_real). The problem borrows them all. */
#ifndef TB_PROBLEM_H
#define TB_PROBLEM_H

#include "base/base.h"

/* The laws with friction are those from PLANAR to ROLLING (tb_law_has_friction). */
typedef enum tb_law {
    TB_LAW_UNILATERAL, /* 1 row: lambda >= 0 (frictionless contact, limit) */
    TB_LAW_PLANAR,     /* 2 rows: normal, tangent; |lambda_t| <= mu lambda_n */
    TB_LAW_COULOMB,    /* 3 rows: normal, tangents; disk of radius mu lambda_n */
    /* 4 rows: plus spin; ellipsoid with semi-axes mu, mu, 2/3 mu times lambda_n. The spin row is
     * scaled by the spin radius, so that it is a velocity in m/s and lambda in N s */
    TB_LAW_SPIN,
    /* 6 rows: plus rolling about both tangents; disk of radius lambda_n; rows scaled by the
     * rolling length */
    TB_LAW_ROLLING,
    TB_LAW_BILATERAL, /* 1 to 6 rows: lambda free, xi = 0 */
    TB_LAW_BOX        /* 1 row: lower <= lambda <= upper (dry friction, motor with force limit) */
} tb_law;

TB_FN bool tb_law_has_friction(int32_t law)
{
    return law >= TB_LAW_PLANAR && law <= TB_LAW_ROLLING;
}

/* "coulomb", "box", ... */
TB_EXTERN const char *tb_law_name(int32_t law);

enum { TB_BLOCK_ROWS = 6 };

/* One contact or constraint. Its runs of dofs are disjoint. */
typedef struct tb_block {
    int32_t law;               /* tb_law */
    int32_t row, rows;         /* first row and their number */
    int32_t segment, segments; /* its runs of dofs; factorized form only */
    int32_t width;             /* sum of the runs' lengths */
    int64_t value;             /* first of its rows x width numbers in `values`, row-major */
    tb_real mu;                /* COULOMB, PLANAR, SPIN, ROLLING */
    tb_real lower, upper;      /* BOX, N s */
} tb_block;

typedef struct tb_segment {
    int32_t dof, count;
} tb_segment;

/* A matrix from a file: dense row-major, or compressed rows. */
typedef struct tb_matrix {
    int32_t rows, columns;
    const tb_real *dense;     /* rows x columns, or NULL */
    const int32_t *row_start; /* rows + 1, else */
    const int32_t *column;
    const tb_real *value;
} tb_matrix;

#define tb_problem TB_SYMBOL(tb_problem)
typedef struct tb_problem {
    int32_t number_of_blocks, number_of_rows, number_of_dofs;
    const tb_block *blocks;
    const tb_segment *segments;
    const tb_real *values;     /* Y, block by block; NULL in the given form */
    const tb_matrix *matrix;   /* G; NULL in the factorized form */
    const tb_real *c;          /* rows, m/s */
    const tb_real *compliance; /* rows, 1/kg; NULL: none */
    /* blocks x stride: the dof of each column, for blocks of at most `stride` columns; NULL: not
     * listed */
    const uint16_t *columns;
    int32_t stride;
    double c_squared; /* sum of the squares of c, or 0: not computed */
} tb_problem;

/* The dofs of a block's columns, or NULL if they are not listed. */
TB_FN const uint16_t *tb_block_columns(const tb_problem *problem, int32_t block)
{
    if (!problem->columns || problem->blocks[block].width > problem->stride) return NULL;
    return problem->columns + (int64_t)block * problem->stride;
}

/* The end of the consecutive blocks with the same runs and number of rows as block `first`, such
 * as the contacts of one pair. */
TB_FN int32_t tb_blocks_alike(const tb_problem *problem, int32_t first, int32_t end)
{
    const tb_block *block = &problem->blocks[first];
    const int32_t segment = block->segment, segments = block->segments, rows = block->rows;
    int32_t b = first + 1;
    TB_ROLLED
    for (; b < end; b++) { /* no short circuit: the three loads do not wait for each other */
        const tb_block *other = &problem->blocks[b];
        const int32_t unlike = (other->segment ^ segment) | (other->segments ^ segments);
        if ((unlike | (other->rows ^ rows)) != 0) break;
    }
    return b;
}

/* The dof of a column of a block. */
TB_FN int32_t tb_block_dof(const tb_problem *problem, const tb_block *block, int32_t column)
{
    const tb_segment *run = problem->segments + block->segment;
    while (column >= run->count) column -= (run++)->count;
    return run->dof + column;
}

/* Element (row, row) of the Delassus matrix in the factorized form: the squared length of a block's row
 * of Y. */
TB_FN tb_real tb_block_row_square(const tb_real *values, const tb_block *block, int32_t row)
{
    const tb_real *y = values + block->value + (int64_t)row * block->width;
    tb_real g = 0;
    for (int32_t i = 0; i < block->width; i++) g += y[i] * y[i];
    return g;
}

#endif
