/* The text of prelude.inc, for generated code. */
#include "modelica/emit.h"

__asm__(".section .rodata\n"
        ".global tb_mo_prelude, tb_mo_prelude_end\n"
        ".type tb_mo_prelude, @object\n"
        "tb_mo_prelude:\n"
        ".incbin \"solver/modelica/prelude.inc\"\n"
        "tb_mo_prelude_end:\n"
        ".byte 0\n"
        ".size tb_mo_prelude, . - tb_mo_prelude\n"
        ".previous\n");

extern const char tb_mo_prelude_end[];

size_t tb_mo_prelude_size(void)
{
    return (size_t)(tb_mo_prelude_end - tb_mo_prelude);
}
