/* The kernel of a reduction: one block evaluates the terms of MO_FOLD_THREADS rounds at a time, side by
 * side, and then one thread for each reduced scalar adds its terms in the order of the rounds, while
 * the others evaluate the next ones. So the bytes are those of the sequential loop. An addition takes
 * about ten cycles then, which is still far less than a copy of the array to the host would. */
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
    tb_mo_print(text, "    const int narrow = p.total < 2147483648LL;\n    int w = 0;\n"
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

/* v := v + term, with the term as a variable behind those of the function */
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

void tb_mo_emit_fold(mo_emit *e, const mo_function *f, const mo_kernel *k, int32_t number)
{
    const mo_fold *fold = k->loop->loop->fold;
    mo_text *text = e->text;
    e->function = f;
    e->loops = 0;
    e->depth = 1;
    tb_mo_print(text, "#define MO_FOLD_THREADS %d\n", MO_FOLD_THREADS);
    tb_mo_emit_parameters(e, f, k, number);
    tb_mo_emit_head(e, f, k, "r", number);
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
