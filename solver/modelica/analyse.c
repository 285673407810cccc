/* Loops that can run on the card. */
#include "modelica/ir.h"

tb_status tb_mo_analyse(mo_program *program)
{
    (void)program;
    return TB_OK;
}
