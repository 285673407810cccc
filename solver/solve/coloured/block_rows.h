/* Poulsen's solvers on one contact configuration (A Parallel Gauss-Seidel Method for Computing Contact
 * Forces, DIKU 2010): Jacobi and coloured Gauss-Seidel, in three storage forms, on any number of threads.
 *
 * A contact has four rows (normal, two tangents, spin) and two bodies of six dofs. With Y = J W^1/2 the
 * velocity of contact k is Y_ka w_a + Y_kb w_b + b_k, where w = Y' lambda is kept by bodies (factorized),
 * or row k of A = Y Y' or of T = 1 - R A times lambda. A and T are compressed block rows of 4 x 4 blocks:
 * block (k, l) is there where both contacts have a body in common, also where that body is fixed.
 *
 * The bytes of a result do not depend on the number of threads: contacts of one safe colour share no
 * body, contacts of the unsafe colour see the impulses before it, and sums by body run in contact
 * order. */
#ifndef TB_BLOCK_ROWS_H
#define TB_BLOCK_ROWS_H

#include "contact/contact.h"
#include "contact/edge_colouring.h"
#include "tribo_poulsen.h"

enum { TB_CONTACT_ROWS = 4, TB_BODY_DOFS = 6, TB_SIDE_NUMBERS = 24, TB_BLOCK_NUMBERS = 16 };

/* A contact configuration; borrowed. */
typedef struct tb_block_rows {
    tb_edge_graph graph;
    const double *y; /* contacts x 2 sides x 4 x 6, row-major; zero for a fixed body */
    const double *b; /* contacts x 4, m/s */
    double mu;
} tb_block_rows;

/* Solves in `arena`'s memory; lambda (contacts x 4, N s) receives the impulses. RESOURCE_EXHAUSTED names
 * the bytes of A or T that do not fit; INVALID_ARGUMENT names too few colours. */
tb_status tb_block_rows_solve(const tb_block_rows *rows, const tb_poulsen_options *options,
                              tb_arena *arena, double *lambda, tb_poulsen_result *result,
                              tb_error *error);

#endif
