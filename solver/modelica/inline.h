/* Loops with the calls inside of them written out. */
#ifndef TB_MODELICA_INLINE_H
#define TB_MODELICA_INLINE_H

#include "modelica/loops.h"

/* A copy of a for statement in which the statements of the callees stand in place of calls; the function
 * may have more variables then. NULL if no call can be written out. */
mo_s *tb_mo_inline(tb_arena *arena, mo_function *f, const mo_s *loop);

#endif
