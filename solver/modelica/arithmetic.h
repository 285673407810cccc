/* prelude.inc for the processor: the interpreter's arithmetic. */
#ifndef TB_MODELICA_ARITHMETIC_H
#define TB_MODELICA_ARITHMETIC_H

#include <math.h>

#include "modelica/run.h"

#define MO_FN                           static inline
#define MO_RUN                          mo_run *
#define MO_FAIL(run, kind, place, a, b) (run)->fail((run), (kind), (place), 0, (a), (b))
#define mo_floor                        floor
#define mo_trunc                        trunc

#include "modelica/prelude.inc"

#endif
