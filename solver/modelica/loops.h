/* Loops whose rounds do not depend on one another, and why the others' do. */
#ifndef TB_MODELICA_LOOPS_H
#define TB_MODELICA_LOOPS_H

#include "modelica/ir.h"

enum { MO_NEST = 3, MO_REASON_BYTES = 240 };
enum { MO_SWEEP_PARTS = 8, MO_SWEEP_ARRAYS = 6, MO_REACH = 4 };

enum { MO_FOLDS = 4 };

/* Scalars that the rounds of a nest reduce: v := v + x, v * x, min(v, x) or max(v, x), once a round. */
typedef struct mo_fold {
    int32_t count;
    int32_t variable[MO_FOLDS];
    const mo_s *statement[MO_FOLDS]; /* the assignment */
    bool always[MO_FOLDS];           /* every round makes it; else it stands in an if statement */
    bool parallel; /* runs of rounds are reduced side by side, with the same result */
} mo_fold;

/* A sequential loop of stencils: sweeps.c. */
typedef struct mo_sweep {
    int32_t number; /* in the function, from 0 */
    int32_t parts;
    /* nests over two iterators, copies of arrays, and arrays that become 0, in order */
    const mo_s *part[MO_SWEEP_PARTS];
    bool settles; /* the loop sets scalars and sizes that are the same from its first round on */
    int32_t arrays;
    int32_t array[MO_SWEEP_ARRAYS]; /* that the loop stores: matrices of Real */
    /* elements that a part reads before and behind its own, by dimension; and all parts together */
    int32_t low[MO_SWEEP_PARTS][2], high[MO_SWEEP_PARTS][2], reach_low[2], reach_high[2];
} mo_sweep;

/* Result of the dependence analysis of a for statement. */
typedef struct mo_loop {
    int32_t number;            /* in the function; kernels alone have one, from 0; else -1 */
    int32_t depth;             /* loops of the nest whose rounds are independent; 0: none */
    const mo_s *nest[MO_NEST]; /* outermost first */
    mo_place reason_place;     /* depth 0: the access that forbids a kernel */
    const char *reason;
    mo_fold *fold;         /* a kernel that reduces scalars, or NULL */
    const mo_sweep *sweep; /* depth 0: the loop is a sweep, or NULL */
} mo_loop;

/* Whether a list of statements assigns a scalar. */
bool tb_mo_assigns(const mo_s *s, int32_t variable);
/* Whether the loop stores elements of one colour at p, and q has the other colour: parity.c. */
bool tb_mo_has_other_colour(const mo_s *loop, int32_t count, const mo_x *const *p,
                            const mo_x *const *q);
/* Whether a loop, whose inner loops are analysed, is a sweep. */
bool tb_mo_find_sweep(const mo_function *f, const mo_s *loop, mo_sweep *sweep);
/* Decides which sums stay trees, and which reductions are made side by side: trees.c. */
void tb_mo_settle_trees(mo_function *f);
/* Whether a sweep stores an array; false for the sweep NULL. */
bool tb_mo_sweep_holds(const mo_sweep *sweep, int32_t variable);

/* A function that a kernel can call: scalars out, no arrays of its own. */
bool tb_mo_is_device_function(const mo_function *f, int32_t depth);
/* Calls visit(x) for each expression of a statement's own operands, not of the statements below. */
void tb_mo_each_expression(const mo_s *s, void (*visit)(const mo_x *x, void *context),
                           void *context);
/* Calls visit for each statement, those of bodies included. */
void tb_mo_each_statement(const mo_s *s, void (*visit)(const mo_s *s, void *context),
                          void *context);

#endif
