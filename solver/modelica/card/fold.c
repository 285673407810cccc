/* Kernels of reductions.
 *
 * A reduction in the order of the rounds: one block evaluates the terms of MO_FOLD_THREADS rounds at a time, side by
 * side, and then one thread for each reduced scalar adds its terms in the order of the rounds, while
 * the others evaluate the next ones. So the bytes are those of the sequential loop. An addition takes
 * about ten cycles then, which is still far less than a copy of the array to the host would.
 *
 * A reduction side by side (trees.c): each thread reduces runs of MO_BRANCHES rounds, and one block reduces the
 * parts, MO_BRANCHES at a time, to one. A sum is then that of mo_tree in prelude.inc, to the last bit. */
#include "modelica/card/kernels.h"

static const char *type_of(const mo_function *f, int32_t variable)
{
    return f->variables[variable].base == MO_T_REAL ? "double" : "mo_int";
}

static void emit_terms(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    const mo_loop *loop = k->loop->loop;
    mo_text *text = e->text;
    bool *assigned = tb_mo_find_assigned(k->loop, f->count);
    tb_mo_print(text, "    int w = 0;\n"
                      "    for (mo_int t0 = 0; t0 < p.total; t0 += MO_FOLD_THREADS, w ^= 1) {\n"
                      "    mo_int t = own.round = t0 + threadIdx.x;\n");
    for (int32_t q = 0; q < loop->fold->count; q++) {
        assigned[loop->fold->variable[q]] = false;
        if (!loop->fold->always[q])
            tb_mo_print(text, "    H%d[w][threadIdx.x] = 0;\n", loop->fold->variable[q]);
    }
    tb_mo_print(text, "    if (t < p.total) {\n");
    for (int32_t d = 0; d < loop->depth; d++) assigned[loop->nest[d]->variable] = false;
    for (int32_t v = 0; v < f->count; v++)
        if (assigned[v]) tb_mo_emit_variable(e, v);
    tb_mo_emit_iterators(e, loop);
    e->fold = loop->fold;
    for (int32_t d = 0; d < loop->depth; d++) e->loop[e->loops++] = loop->nest[d];
    tb_mo_emit_statements(e, loop->nest[loop->depth - 1]->body);
    e->loops = 0;
    e->fold = NULL;
    tb_mo_print(text, "    }\n    __syncthreads();\n");
}

/* v := v + term, with the term as a variable after the function's variables */
static void emit_sum(mo_emit *e, const mo_function *f, const mo_fold *fold, int32_t q)
{
    const int32_t v = fold->variable[q], term = f->count + q;
    const mo_x *value = fold->statement[q]->value;
    const mo_x read = {.op = MO_X_VARIABLE, .base = value->base, .variable = term};
    mo_x sum = *value;
    sum.operand[1] = &read;
    tb_mo_print(e->text,
                "    if (threadIdx.x == %d) {\n"
                "        const int top = p.total - t0 < MO_FOLD_THREADS ? (int)(p.total - t0) :"
                " MO_FOLD_THREADS;\n"
                "        _Pragma(\"unroll 8\") for (int k = 0; k < top; k++) {\n"
                "            const %s v%d = T%d[w][k];\n",
                32 * q, type_of(f, v), term, v);
    if (value->base != MO_T_REAL) tb_mo_print(e->text, "            own.round = t0 + k;\n");
    if (!fold->always[q]) tb_mo_print(e->text, "            if (H%d[w][k])", v);
    tb_mo_print(e->text, "            v%d = ", v);
    tb_mo_emit_expression(e, &sum);
    tb_mo_print(e->text, ";\n        }\n    }\n");
}

void tb_mo_emit_fold(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    const mo_fold *fold = k->loop->loop->fold;
    mo_text *text = e->text;
    e->function = f;
    e->loops = 0;
    e->depth = 1;
    tb_mo_print(text, "#define MO_FOLD_THREADS %d\n", MO_FOLD_THREADS);
    tb_mo_emit_parameters(e, k);
    tb_mo_emit_head(e, f, k, "r");
    for (int32_t q = 0; q < fold->count; q++)
        tb_mo_print(text,
                    "    __shared__ %s T%d[2][MO_FOLD_THREADS];\n"
                    "    __shared__ bool H%d[2][MO_FOLD_THREADS];\n",
                    type_of(f, fold->variable[q]), fold->variable[q], fold->variable[q]);
    tb_mo_print(text,
                "    struct mo_run own = {p.fault, p.launch, 0, p.rounds}, *const run = &own;\n");
    emit_terms(e, f, k);
    for (int32_t q = 0; q < fold->count; q++) emit_sum(e, f, fold, q);
    tb_mo_print(text, "    }\n");
    for (int32_t q = 0; q < fold->count; q++)
        tb_mo_print(text, "    if (threadIdx.x == %d) ((%s *)(p.fault + %d))[%d] = v%d;\n", 32 * q,
                    type_of(f, fold->variable[q]), MO_RESULT_WORD, q, fold->variable[q]);
    tb_mo_print(text, "}\n\n");
    e->depth = 0;
}

/* ---- side by side ---- */

/* Joins of two parts, p in front of q. */
static const struct {
    const char *name, *type, *start, *expression;
} JOINS[MO_JOINS] = {
    {"mo_join_sum", "double", "0", "p + q"},
    /* a partial result that is still NaN is replaced by the other one */
    {"mo_join_min", "double", "0 * MO_HUGE", "q < p || p != p ? q : p"},
    {"mo_join_max", "double", "0 * MO_HUGE", "q > p || p != p ? q : p"},
    {"mo_join_low", "mo_int", "9223372036854775807LL", "q < p ? q : p"},
    {"mo_join_top", "mo_int", "-9223372036854775807LL - 1", "q > p ? q : p"},
};

int32_t tb_mo_join_number(const mo_x *x)
{
    if (x->op == MO_X_ADD) return 0;
    return (x->base == MO_T_REAL ? 1 : 3) + (x->op == MO_X_MAXIMUM);
}

const char *tb_mo_join_name(const mo_x *x)
{
    return JOINS[tb_mo_join_number(x)].name;
}

static void emit_join_kernel(mo_text *text, int32_t join)
{
    tb_mo_print(
        text,
        "extern \"C\" __global__ void __launch_bounds__(%d) g%d(MO_PARAMETER(mo_parts) p)\n{\n"
        "    %s *x = (%s *)p.part;\n"
        "    for (mo_int n = p.count; n > 1;) {\n"
        "        %s *const y = x + n;\n"
        "        const mo_int runs = (n + %d) / %d;\n"
        "        for (mo_int r = threadIdx.x; r < runs; r += %d) {\n"
        "            const mo_int end = r * %d + %d < n ? r * %d + %d : n;\n",
        MO_FOLD_THREADS, join, JOINS[join].type, JOINS[join].type, JOINS[join].type,
        MO_BRANCHES - 1, MO_BRANCHES, MO_FOLD_THREADS, MO_BRANCHES, MO_BRANCHES, MO_BRANCHES,
        MO_BRANCHES);
    tb_mo_print(text,
                "            %s part = %s;\n"
                "            for (mo_int k = r * %d; k < end; k++) part = %s(part, x[k]);\n"
                "            y[r] = part;\n"
                "        }\n"
                "        __syncthreads();\n"
                "        x = y; n = runs;\n"
                "    }\n"
                "    if (threadIdx.x == 0) *(%s *)p.result = x[0];\n}\n\n",
                JOINS[join].type, JOINS[join].start, MO_BRANCHES, JOINS[join].name,
                JOINS[join].type);
}

void tb_mo_emit_joins(mo_text *text, unsigned joins)
{
    if (joins != 0) tb_mo_print(text, "struct mo_parts { void *part, *result; mo_int count; };\n");
    for (int k = 0; k < MO_JOINS; k++) {
        if (!(joins & 1u << k)) continue;
        tb_mo_print(text, "MO_FN %s %s(%s p, %s q)\n{ return %s; }\n", JOINS[k].type, JOINS[k].name,
                    JOINS[k].type, JOINS[k].type, JOINS[k].expression);
        emit_join_kernel(text, k);
    }
}

void tb_mo_emit_parallel(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    const mo_loop *loop = k->loop->loop;
    const mo_fold *fold = loop->fold;
    mo_text *text = e->text;
    e->function = f;
    e->loops = 0;
    e->depth = 1;
    tb_mo_emit_parameters(e, k);
    tb_mo_emit_head(e, f, k, "k");
    tb_mo_print(text,
                "    const mo_int runs = (p.total + %d) / %d;\n"
                "    struct mo_run own = {p.fault, p.launch, 0, p.rounds}, *const run = &own;\n"
                "    for (mo_int r = blockIdx.x * (mo_int)blockDim.x + threadIdx.x; r < runs;\n"
                "         r += (mo_int)gridDim.x * blockDim.x) {\n"
                "    const mo_int end = r * %d + %d < p.total ? r * %d + %d : p.total;\n",
                MO_BRANCHES - 1, MO_BRANCHES, MO_BRANCHES, MO_BRANCHES, MO_BRANCHES, MO_BRANCHES);
    for (int32_t q = 0; q < fold->count; q++)
        tb_mo_print(text, "    %s T%d = %s;\n", type_of(f, fold->variable[q]), fold->variable[q],
                    JOINS[tb_mo_join_number(fold->statement[q]->value)].start);
    tb_mo_print(text,
                "    for (mo_int t0 = r * %d; t0 < end; t0++) {\n"
                "    mo_int t = own.round = t0;\n",
                MO_BRANCHES);
    bool *assigned = tb_mo_find_assigned(k->loop, f->count);
    for (int32_t q = 0; q < fold->count; q++) assigned[fold->variable[q]] = false;
    for (int32_t d = 0; d < loop->depth; d++) assigned[loop->nest[d]->variable] = false;
    for (int32_t v = 0; v < f->count; v++)
        if (assigned[v]) tb_mo_emit_variable(e, v);
    tb_mo_emit_iterators(e, loop);
    e->fold = fold;
    for (int32_t d = 0; d < loop->depth; d++) e->loop[e->loops++] = loop->nest[d];
    tb_mo_emit_statements(e, loop->nest[loop->depth - 1]->body);
    e->loops = 0;
    e->fold = NULL;
    tb_mo_print(text, "    }\n");
    for (int32_t q = 0; q < fold->count; q++)
        tb_mo_print(text, "    ((%s *)p.part)[%d * (runs + runs / 32 + 8) + r] = T%d;\n",
                    type_of(f, fold->variable[q]), q, fold->variable[q]);
    tb_mo_print(text, "    }\n}\n\n");
    e->depth = 0;
}
