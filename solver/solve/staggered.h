/* The two programs of staggered projections, over a contact problem. */
#ifndef TB_STAGGERED_H
#define TB_STAGGERED_H

#include "contact/contact.h"
#include "solve/qp.h"

/* One of them: a quadratic program over some of the problem's rows, with what it needs to begin
 * where it ended. H is the rows' part of G, plus `shift` on the diagonal: G is only semidefinite
 * where contacts are redundant, and a proximal term, whose centre is the last answer, makes it
 * definite without changing what the iterations end in. */
#define tb_staggered_part TB_SYMBOL(tb_staggered_part)
typedef struct tb_staggered_part {
    int32_t n;
    int32_t *row; /* n: the problem's row of a variable */
    tb_qp qp;
    tb_k0 k0;
    tb_qp_work *work;
    tb_real shift;
    tb_real *f, *b;    /* n, constraints: to be filled before a solve */
    tb_real *x, *last; /* n: the answer, and the centre */
    tb_real *lambda;   /* constraints */
    uint8_t *active;   /* constraints: where to begin, then where it ended */
    uint8_t *pins;     /* constraints: of the program */
    int32_t *block_of; /* constraints: the contact it belongs to */
} tb_staggered_part;

/* Makes the program of normal impulses: unilateral rows, normals of contacts, bilateral rows, and
 * boxes. g is the dense Delassus matrix. UNSUPPORTED for laws with spin. */
#define tb_staggered_normals TB_SYMBOL(tb_staggered_normals)
TB_EXTERN tb_status tb_staggered_normals(const tb_problem *problem, const tb_real *g,
                                         tb_arena *arena, tb_staggered_part *part);

/* Makes the program of friction for `count` contacts: |x| <= b in the plane, four facets
 * |x1| + |x2| <= b in space. */
#define tb_staggered_friction TB_SYMBOL(tb_staggered_friction)
TB_EXTERN tb_status tb_staggered_friction(const tb_problem *problem, const tb_real *g,
                                          const int32_t *contacts, int32_t count, tb_arena *arena,
                                          tb_staggered_part *part);

#endif
