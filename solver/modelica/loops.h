/* Loops whose rounds do not depend on one another, and why the others' do. */
#ifndef TB_MODELICA_LOOPS_H
#define TB_MODELICA_LOOPS_H

#include "modelica/ir.h"

enum { MO_NEST = 3, MO_REASON_BYTES = 240 };

/* Result of the dependence analysis of a for statement. */
typedef struct mo_loop {
    int32_t number;            /* in the function; kernels alone have one, from 0; else -1 */
    int32_t depth;             /* loops of the nest whose rounds are independent; 0: none */
    const mo_s *nest[MO_NEST]; /* outermost first */
    mo_place reason_place;     /* depth 0: the access that forbids a kernel */
    const char *reason;
} mo_loop;

/* A function that a kernel can call: scalars out, no arrays of its own. */
bool tb_mo_is_device_function(const mo_function *f, int32_t depth);
/* Calls visit(x) for each expression of a statement's own operands, not of the statements below. */
void tb_mo_each_expression(const mo_s *s, void (*visit)(const mo_x *x, void *context),
                           void *context);
/* Calls visit for each statement, those of bodies included. */
void tb_mo_each_statement(const mo_s *s, void (*visit)(const mo_s *s, void *context),
                          void *context);

#endif
