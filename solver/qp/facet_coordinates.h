/* Facets as bounds: a program in the coordinates of its rows.
 *
 * Rows +-a (x_2c + x_2c+1) <= b and +-a (x_2c - x_2c+1) <= b, as friction with four facets has
 * them, are bounds on the sum u_1 and the difference u_2 of a pair. With x = T u, T = 1/2 [1 1; 1
 * -1] for such a pair, H becomes T' H T, whose band is at most two wider, f becomes T' f, and b and
 * the multipliers stay. Litven's Z for a pair with one active row is a column of T. A solver of
 * programs with bounds therefore solves these; all factors are powers of two, and only sums are
 * rounded. */
#ifndef TB_FACET_COORDINATES_H
#define TB_FACET_COORDINATES_H

#include "tribo_qp.h"
#include "base/base.h"

/* a, b <- half of their sum, half of their difference: T, and T' too */
TB_FN void tb_qp_turn_two(double *a, double *b)
{
    const double sum = (*a + *b) / 2;
    *b = (*a - *b) / 2;
    *a = sum;
}

/* A program whose Hessian lies on the options' GPU: program.hessian is NULL. A program without a Hessian is
 * always the first member of such a struct.
 * band: columns `stride` numbers apart, a multiple of 16. If rows are facets of pairs: of T' H T, whose
 * half-bandwidth is min(program.half_bandwidth + 2, n - 1).
 * room: the stream and the memory of an earlier program, which this one takes and gives back when it is closed
 * (tb_backend.program_leave); *room is NULL before the first one. A NULL room: they are opened anew. */
typedef struct tb_qp_card_program {
    tb_qp_program program;
    const double *band;
    int64_t stride;
    void **room;
} tb_qp_card_program;

/* tb_qp_solver_open of such a program. UNSUPPORTED as there. A room is in use until tb_qp_solver_close. */
tb_status tb_qp_solver_open_on_card(const tb_qp_card_program *program, const tb_qp_options *options,
                                    tb_qp_solver **solver, tb_error *error);

typedef struct tb_qp_facet_coordinates {
    tb_qp_card_program turned; /* without f and b */
    double *f;                 /* n: of tb_qp_facet_force */
    uint8_t *is_facet_pair;    /* pairs */
} tb_qp_facet_coordinates;

/* UNSUPPORTED where a row is neither a bound nor a facet, or a pair has both;
 * RESOURCE_EXHAUSTED. */
tb_status tb_qp_to_facet_coordinates(const tb_qp_program *program, tb_arena *arena,
                                     tb_qp_facet_coordinates **coordinates);
/* turned->f <- T' f. */
void tb_qp_facet_force(tb_qp_facet_coordinates *coordinates, const double *f);
/* x <- T x. */
void tb_qp_from_facet_coordinates(const tb_qp_facet_coordinates *coordinates, double *x);

/* The KKT residual of the program as it was given. */
tb_status tb_qp_facet_judge(const tb_qp_program *program, const double *f, const double *b,
                            const double *x, const double *lambda, tb_arena *scratch, tb_kkt *kkt,
                            tb_error *error);

#endif
