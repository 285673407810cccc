/* Statements and expressions as C text, the same for the processor and the card. */
#ifndef TB_MODELICA_EMIT_H
#define TB_MODELICA_EMIT_H

#include "modelica/native.h"

enum { MO_LOOPS = 64 };

typedef struct mo_emit {
    mo_text *text;
    const mo_function *function;
    const mo_program *program;  /* on the card: places are offsets in its text */
    const mo_s *loop[MO_LOOPS]; /* open for statements, outermost first */
    int32_t loops;
    int32_t labels; /* made so far */
    int32_t broken; /* label behind the innermost loop; -1: none */
    int32_t depth;  /* of indentation */
    bool on_card;   /* no allocation, no polling */
    const struct mo_fold
        *fold; /* its assignments keep their terms in T3, and H3 says that they are */
    const struct mo_sweep *sweep; /* its arrays are S3 in shared memory, from row oi, column oj */
} mo_emit;

void tb_mo_emit_expression(mo_emit *e, const mo_x *x);
void tb_mo_emit_statements(mo_emit *e, const mo_s *s);
/* "f3(run, ...)": parameters of a function, and the function. */
void tb_mo_emit_prototype(mo_text *text, const mo_function *f, const char *qualifier);
void tb_mo_emit_function(mo_emit *e, const mo_function *f, const char *qualifier);
/* Declares a function's variables but for the first `known`. */
void tb_mo_emit_variable(mo_emit *e, int32_t variable);
void tb_mo_emit_indent(mo_emit *e);
/* The function of generated CUDA that reduces two parts of a reduction v + x, min(v, x) or max(v, x). */
const char *tb_mo_join_name(const mo_x *x);
/* The text of prelude.inc. */
extern const char tb_mo_prelude[];
size_t tb_mo_prelude_size(void);

/* bounds.c: whether a subscript cannot leave the dimension, or a sum the range of Integer, given
 * the ranges of the open loops. */
bool tb_mo_is_inside(const mo_emit *e, const mo_x *subscript, int32_t variable, int32_t dimension);
bool tb_mo_is_small(const mo_emit *e, const mo_x *x);
/* x = *base + offset; *base NULL for a constant. */
int64_t tb_mo_linear(const mo_x *x, const mo_x **base);
/* The size that an array has for its whole life, or NULL. */
const mo_x *tb_mo_lasting_size(const mo_function *f, int32_t variable, int32_t dimension,
                               mo_x *storage);

#endif
