/* A program as C for the processor. The text includes no header and names nothing of the host but
 * the functions of the mathematics library; everything else it reaches through the run. */
#include "modelica/emit.h"

#include <stddef.h>

static const char HEAD[] =
    "#define MO_FN static inline __attribute__((unused))\n"
    "#define MO_RUN struct mo_run *\n"
    "#define mo_floor __builtin_floor\n"
    "#define mo_trunc __builtin_trunc\n"
    "#define mo_ceil __builtin_ceil\n"
    "#define mo_fabs __builtin_fabs\n"
    "#define mo_sqrt __builtin_sqrt\n"
    "#define MO_HUGE __builtin_huge_val()\n"
    "double pow(double, double), sin(double), cos(double), tan(double), asin(double);\n"
    "double acos(double), atan(double), atan2(double, double), sinh(double), cosh(double);\n"
    "double tanh(double), exp(double), log(double), log10(double);\n"
    "struct mo_array { void *data; long long size[8]; void *card; int where, base, rank;\n"
    "    _Bool borrowed, zero, kept; long long bytes; };\n"
    "struct mo_run { long long budget, depth; void (*poll)(struct mo_run *);\n"
    "    void (*fail)(struct mo_run *, int, long long, long long, long long, long long);\n"
    "    void (*allocate)(struct mo_run *, struct mo_array *, long long);\n"
    "    void (*move)(struct mo_run *, struct mo_array *, struct mo_array *);\n"
    "    void (*copy)(struct mo_run *, struct mo_array *, const struct mo_array *, long long);\n"
    "    void (*close)(struct mo_run *, struct mo_array *); };\n"
    "union mo_slot { double real; long long integer; struct mo_array *array; };\n"
    "static _Noreturn void mo_fail(struct mo_run *run, int kind, long long place, long long what,\n"
    "    long long a, long long b) { run->fail(run, kind, place, what, a, b); for (;;) {} }\n"
    "#define MO_FAIL(run, kind, place, a, b) mo_fail((run), (kind), (place), 0, (a), (b))\n"
    "#define MO_ROUND if (__builtin_expect(--run->budget < 0, 0)) run->poll(run);\n"
    "#define MO_ROUNDS(n) run->budget -= (n); MO_ROUND\n"
    "#define MO_ARRAY(k, b, r) struct mo_array L##k = {.where = 1, .base = b, .rank = r}, \\\n"
    "    *const A##k = &L##k; (void)A##k;\n"
    "#define MO_CLOSE(a) run->close(run, a);\n"
    "#define MO_ENTER if (++run->depth > 41) MO_FAIL(run, MO_FAIL_DEPTH, place, 0, 0);\n"
    "#define MO_LEAVE run->depth--;\n";

static const char TAIL[] =
    "MO_FN mo_int mo_at(MO_RUN run, mo_int place, mo_int what, mo_int i, mo_int n)\n"
    "{ if (__builtin_expect((mo_word)(i - 1) >= (mo_word)n, 0))\n"
    "    mo_fail(run, MO_FAIL_INDEX, place, what, i, n);\n  return i - 1; }\n";

_Static_assert(offsetof(mo_array, bytes) == 96 && sizeof(mo_array) == 104, "as in HEAD");
_Static_assert(offsetof(mo_run, close) == 56, "as in HEAD");

/* reads the arguments of a call from the slots of the function's variables */
static void emit_entry(mo_text *text, const mo_function *f)
{
    const int32_t inputs = f->inputs + f->flags;
    tb_mo_print(text, "void entry%d(struct mo_run *run, union mo_slot *slot)\n{\n", f->index);
    for (int32_t k = inputs; k < inputs + f->outputs; k++)
        if (f->variables[k].rank == 0)
            tb_mo_print(text, "    %s r%d = 0;\n",
                        f->variables[k].base == MO_T_REAL ? "double" : "mo_int", k);
    tb_mo_print(text, "    f%d(run, 0", f->index);
    for (int32_t k = 0; k < inputs + f->outputs; k++) {
        const mo_variable *v = &f->variables[k];
        const char *field = v->base == MO_T_REAL ? "real" : "integer";
        if (v->rank > 0)
            tb_mo_print(text, ", slot[%d].array", k);
        else if (k < inputs)
            tb_mo_print(text, ", slot[%d].%s", k, field);
        else
            tb_mo_print(text, ", &r%d", k);
    }
    tb_mo_print(text, ");\n");
    for (int32_t k = inputs; k < inputs + f->outputs; k++)
        if (f->variables[k].rank == 0)
            tb_mo_print(text, "    slot[%d].%s = r%d;\n", k,
                        f->variables[k].base == MO_T_REAL ? "real" : "integer", k);
    tb_mo_print(text, "}\n\n");
}

static void append(mo_text *text, const char *piece, size_t size)
{
    if (tb_bytes_append(&text->bytes, piece, size) != TB_OK) text->failed = true;
}

tb_status tb_mo_emit_c(const mo_program *program, mo_text *text, tb_error *error)
{
    mo_emit e = {.text = text};
    append(text, HEAD, sizeof HEAD - 1);
    append(text, tb_mo_prelude, tb_mo_prelude_size());
    append(text, TAIL, sizeof TAIL - 1);
    for (int32_t k = 0; k < program->count; k++) {
        tb_mo_emit_prototype(text, program->functions[k], "static");
        tb_mo_print(text, ";\n");
    }
    for (int32_t k = 0; k < program->count; k++)
        tb_mo_emit_function(&e, program->functions[k], "static");
    for (int32_t k = 0; k < program->count; k++) emit_entry(text, program->functions[k]);
    return text->failed ? tb_fail_memory(error, text->bytes.size, "generated code") : TB_OK;
}
