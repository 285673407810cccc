/* The two programs of staggered projections, over a contact problem. */
#ifndef TB_STAGGERED_H
#define TB_STAGGERED_H

#include "contact/contact.h"
#include "qp/bounded_qp.h"

/* Programs of more variables are left to the library's SCHURPA (qp.h), with its blocks and LAPACK,
 * where there is one: not on a card. */
enum { TB_STAGGERED_SMALL = 1024 };

/* Kind of a variable: an impulse, or the sum or the difference of a contact's two tangential
 * impulses, which are neighbours. */
enum { TB_TURN_NONE, TB_TURN_SUM, TB_TURN_DIFFERENCE };

#define tb_staggered_large TB_SYMBOL(tb_staggered_large)
typedef struct tb_staggered_large tb_staggered_large;

/* One of the two programs: over some of the problem's rows with bounds on its variables. Four
 * facets |x1| + |x2| <= b are bounds on the sum and the difference of x1 and x2, and Litven's basis
 * of a facet's free direction is the other one of the two. H is the rows' part of G in these
 * variables, plus `shift` on the diagonal: G is only semidefinite where contacts are redundant, and
 * a proximal term, whose centre is the last answer, makes it definite without changing the
 * solution. Each lane has one; arrays are the team's. */
#define tb_staggered_program TB_SYMBOL(tb_staggered_program)
typedef struct tb_staggered_program {
    int32_t n;
    int32_t *block_of; /* n: the contact of a variable */
    int32_t *row;      /* n: the problem's row of an impulse; of two, the sum has the first one's */
    uint8_t *turn;     /* n */
    tb_real *diagonal; /* n: of H */
    tb_real *last;     /* n: the centre */
    tb_real shift;
    tb_bounded program;
    tb_staggered_large *large; /* NULL: the program is small */
} tb_staggered_program;

/* Takes the memory of the program of normal impulses: unilateral rows, normals of contacts,
 * bilateral rows, and boxes; with its bounds. UNSUPPORTED for laws with spin. */
#define tb_staggered_normals TB_SYMBOL(tb_staggered_normals)
TB_EXTERN tb_status tb_staggered_normals(const tb_problem *problem, tb_arena *arena,
                                         tb_staggered_program *part);

/* Likewise of the friction of all contacts that have some. */
#define tb_staggered_friction TB_SYMBOL(tb_staggered_friction)
TB_EXTERN tb_status tb_staggered_friction(const tb_problem *problem, tb_arena *arena,
                                          tb_staggered_program *part);

/* H from the dense Delassus matrix g, whose memory may be reused afterwards; then the arrays
 * that solves need. */
#define tb_staggered_fill TB_SYMBOL(tb_staggered_fill)
TB_EXTERN void tb_staggered_fill(tb_staggered_program *part, const tb_problem *problem,
                                 const tb_real *g);
#define tb_staggered_begin TB_SYMBOL(tb_staggered_begin)
TB_EXTERN tb_status tb_staggered_begin(tb_staggered_program *part, tb_arena *arena);

/* Solves the part's program. Failures as of tb_bounded_solve. */
#define tb_staggered_solve TB_SYMBOL(tb_staggered_solve)
TB_EXTERN tb_status tb_staggered_solve(tb_staggered_program *part, const tb_solve_options *options,
                                       tb_bounded_result *result);

/* Variables from numbers by rows, of impulses or (`forces`) of forces on them; and impulses from
 * variables. */
#define tb_staggered_gather TB_SYMBOL(tb_staggered_gather)
TB_EXTERN void tb_staggered_gather(const tb_staggered_program *part, const tb_real *rows,
                                   bool forces, tb_real *variables);
#define tb_staggered_scatter TB_SYMBOL(tb_staggered_scatter)
TB_EXTERN void tb_staggered_scatter(const tb_staggered_program *part, const tb_real *variables,
                                    tb_real *rows);

#ifndef TB_DEVICE
/* Large programs, by qp.h: their H is filled through tb_staggered_large_hessian (element (i, j), i
 * >=
 * j, in LAPACK's lower band). */
#define tb_staggered_large_take TB_SYMBOL(tb_staggered_large_take)
tb_status tb_staggered_large_take(tb_staggered_program *part, tb_arena *arena);
#define tb_staggered_large_hessian TB_SYMBOL(tb_staggered_large_hessian)
tb_real *tb_staggered_large_hessian(tb_staggered_large *large);
#define tb_staggered_large_begin TB_SYMBOL(tb_staggered_large_begin)
tb_status tb_staggered_large_begin(tb_staggered_program *part, tb_arena *arena);
#define tb_staggered_large_solve TB_SYMBOL(tb_staggered_large_solve)
tb_status tb_staggered_large_solve(tb_staggered_program *part, const tb_solve_options *options,
                                   tb_bounded_result *result);
#endif

#endif
