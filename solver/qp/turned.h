/* Facets as bounds: a program in the coordinates of its rows.
 *
 * Rows +-a (x_2c + x_2c+1) <= b and +-a (x_2c - x_2c+1) <= b, as friction with four facets has them,
 * are bounds on the sum u_1 and the difference u_2 of a pair. With x = T u, T = 1/2 [1 1; 1 -1] for
 * such a pair, H becomes T' H T, whose band is at most two wider, f becomes T' f, and b and the
 * multipliers stay. Litven's Z for a pair with one active row is a column of T. So who solves programs
 * with bounds solves these; all factors are powers of two, and only sums are rounded. */
#ifndef TB_TURNED_H
#define TB_TURNED_H

#include "tribo_qp.h"
#include "base/base.h"

typedef struct tb_qp_turned {
    tb_qp_program program; /* without f and b */
    double *f;             /* n: of tb_qp_turn_force */
    uint8_t *is_turned;    /* pairs */
} tb_qp_turned;

/* UNSUPPORTED where a row is neither a bound nor a facet, or a pair has both; RESOURCE_EXHAUSTED. */
tb_status tb_qp_turn(const tb_qp_program *program, tb_arena *arena, tb_qp_turned **turned);
/* turned->f <- T' f. */
void tb_qp_turn_force(tb_qp_turned *turned, const double *f);
/* x <- T x. */
void tb_qp_turn_back(const tb_qp_turned *turned, double *x);

/* The KKT residual of the program as it was given. */
tb_status tb_qp_turn_judge(const tb_qp_program *program, const double *f, const double *b,
                           const double *x, const double *lambda, tb_arena *scratch, tb_kkt *kkt,
                           tb_error *error);

#endif
