/* The text of prelude.h, for generated code. */
#include "modelica/emit.h"

const char tb_mo_prelude[] = {
#include "solver/modelica/prelude.h.inc"
};
const size_t tb_mo_prelude_size = sizeof tb_mo_prelude;
