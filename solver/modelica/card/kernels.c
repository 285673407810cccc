/* Kernels as CUDA text. A thread runs the body of a nest for the rounds t, t + threads, ...; the
 * innermost loop runs fastest over t, so that neighbouring threads touch neighbouring elements. */
#include "modelica/card/kernels.h"

#include <string.h>

/* ---- a kernel's arguments ---- */

static void add_scalar(mo_kernel *k, int32_t variable)
{
    for (int32_t i = 0; i < k->scalars; i++)
        if (k->scalar[i] == variable) return;
    if (k->scalars == MO_KERNEL_SCALARS)
        k->fits = false;
    else
        k->scalar[k->scalars++] = variable;
}

static void add_array(mo_kernel *k, int32_t variable, bool stored)
{
    for (int32_t i = 0; i < k->arrays; i++)
        if (k->array[i] == variable) {
            k->stored[i] = k->stored[i] || stored;
            return;
        }
    if (k->arrays == MO_KERNEL_ARRAYS) {
        k->fits = false;
        return;
    }
    k->stored[k->arrays] = stored;
    k->array[k->arrays++] = variable;
}

static void visit_expression(const mo_x *x, void *context)
{
    if (x->op == MO_X_VARIABLE) add_scalar(context, x->variable);
    if (x->op == MO_X_ELEMENT || x->op == MO_X_SIZE) add_array(context, x->variable, false);
    for (int32_t k = 0; k < x->count; k++) visit_expression(x->operand[k], context);
}

static void visit_statement(const mo_s *s, void *context)
{
    tb_mo_each_expression(s, visit_expression, context);
    if (s->op == MO_S_STORE || s->op == MO_S_COPY) add_array(context, s->variable, true);
    if (s->op == MO_S_COPY) add_array(context, s->source, false);
    for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->inputs + s->callee->flags; k++)
        if (s->arguments[k].value == NULL) add_array(context, s->arguments[k].variable, false);
}

typedef struct mo_assigned {
    bool *is; /* by a statement of the nest */
} mo_assigned;

static void visit_assignment(const mo_s *s, void *context)
{
    bool *is = ((mo_assigned *)context)->is;
    if (s->op == MO_S_ASSIGN || s->op == MO_S_FOR) is[s->variable] = true;
    for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->outputs; k++) is[s->results[k]] = true;
}

enum { MOST_VARIABLES = 4096 };

static void mark_assigned(const mo_s *loop, bool *assigned)
{
    mo_assigned context = {assigned};
    assigned[loop->variable] = true;
    tb_mo_each_statement(loop->body, visit_assignment, &context);
}

static bool *clear_assigned(int32_t count)
{
    static _Thread_local bool assigned[MOST_VARIABLES];
    memset(assigned, 0, (size_t)count * sizeof *assigned);
    return assigned;
}

bool *tb_mo_find_assigned(const mo_s *loop, int32_t count)
{
    bool *assigned = clear_assigned(count);
    mark_assigned(loop, assigned);
    return assigned;
}

/* the same of a sweep: its iterator and the variables its nests assign; the host sets the rest */
static bool *find_assigned_by_parts(const mo_s *loop, int32_t count)
{
    bool *assigned = clear_assigned(count);
    const mo_sweep *sweep = loop->loop->sweep;
    for (int32_t k = 0; k < sweep->parts; k++)
        if (sweep->part[k]->op == MO_S_FOR) mark_assigned(sweep->part[k], assigned);
    assigned[loop->variable] = true;
    return assigned;
}

static void list_kernel(const mo_function *f, const mo_s *loop, mo_kernel *k)
{
    *k = (mo_kernel){.loop = loop, .fits = f->count <= MOST_VARIABLES, .sweep = loop->loop->sweep};
    if (!k->fits) return;
    const bool *assigned = k->sweep != NULL ? find_assigned_by_parts(loop, f->count)
                                            : tb_mo_find_assigned(loop, f->count);
    tb_mo_each_statement(loop->body, visit_statement, k);
    int32_t kept = 0;
    for (int32_t i = 0; i < k->scalars; i++)
        if (!assigned[k->scalar[i]]) k->scalar[kept++] = k->scalar[i];
    k->scalars = kept;
    const mo_fold *fold = loop->loop->fold;
    for (int32_t q = 0; fold != NULL && !fold->parallel && q < fold->count; q++)
        add_scalar(k, fold->variable[q]);
    if (k->sweep == NULL && fold == NULL) tb_mo_find_product(f, k);
}

int32_t tb_mo_kernel_count(const mo_function *f)
{
    return f->kernels + f->sweeps;
}

typedef struct mo_listing {
    const mo_function *function;
    mo_kernel *kernels;
} mo_listing;

static void visit_loop(const mo_s *s, void *context)
{
    const mo_listing *listing = context;
    const mo_loop *loop = s->op == MO_S_FOR ? s->loop : NULL;
    if (loop != NULL && loop->number >= 0)
        list_kernel(listing->function, s, &listing->kernels[loop->number]);
    else if (loop != NULL && loop->sweep != NULL)
        list_kernel(listing->function, s,
                    &listing->kernels[listing->function->kernels + loop->sweep->number]);
}

void tb_mo_list_kernels(const mo_function *f, mo_kernel *kernels)
{
    mo_listing listing = {f, kernels};
    tb_mo_each_statement(f->body, visit_loop, &listing);
}

/* ---- CUDA text ---- */

static const char HEAD[] =
    "#define MO_FN static __device__ __forceinline__\n"
    "#define MO_RUN struct mo_run *\n"
    "#define mo_floor floor\n#define mo_trunc trunc\n#define mo_ceil ceil\n"
    "#define mo_fabs fabs\n#define mo_sqrt sqrt\n"
    "#define MO_HUGE __longlong_as_double(0x7ff0000000000000LL)\n"
    "struct mo_array { void *data; long long size[8]; };\n"
    "struct mo_run { unsigned long long *fault, launch; long long round, rounds; };\n"
    "static __device__ __noinline__ void mo_note_key(unsigned long long *record,\n"
    "    unsigned long long key, long long what, long long a, long long b)\n"
    "{ volatile unsigned long long *const fault = record;\n"
    "  while (key < fault[0]) {\n"
    "    if (atomicCAS(record + 1, ~0ULL, 0ULL) != ~0ULL) continue;\n"
    "    if (key < fault[0]) { fault[2] = what; fault[3] = a; fault[4] = b; __threadfence();\n"
    "        fault[0] = key; }\n"
    "    __threadfence(); atomicExch(record + 1, ~0ULL); } }\n"
    "MO_FN void mo_note(struct mo_run *run, int kind, long long place, long long what,\n"
    "    long long a, long long b)\n"
    "{ mo_note_key(run->fault, run->launch << 56 | (unsigned long long)run->round << 25 |\n"
    "      (unsigned long long)place << 4 | (unsigned)kind, what, a, b); }\n"
    "#define MO_FAIL(run, kind, place, a, b) mo_note((run), (kind), (place), 0, (a), (b))\n"
    "#define MO_ROUND if (--run->rounds < 0) { MO_FAIL(run, 15, 0, 0, 0); break; }\n"
    "#ifndef MO_PARAMETER\n#define MO_PARAMETER(type) const __grid_constant__ struct type\n"
    "#endif\n"
    "#define MO_ENTER\n#define MO_LEAVE\n"
    "#define MO_CLOSE(a)\n";

static const char TAIL[] =
    "MO_FN mo_int mo_at(MO_RUN run, mo_int place, mo_int what, mo_int i, mo_int n)\n"
    "{ if ((mo_word)(i - 1) < (mo_word)n) return i - 1;\n"
    "  mo_note(run, MO_FAIL_INDEX, place, what, i, n);\n  return 0; }\n"
    /* the same of a sweep, whose matrices are small enough for short integers */
    "MO_FN int mo_near(int other, MO_RUN run, mo_int place, mo_int what, int i, int n)\n"
    "{ if ((unsigned)(i - 1) < (unsigned)n) return i - 1;\n"
    "  mo_note(run, MO_FAIL_INDEX, place, what, i, n);\n  return other; }\n"
    /* rounds of a sweep after which an element is still right that has so many others beside it */
    "MO_FN int mo_right(int beside, int reach)\n"
    "{ return beside < 0 ? -1 : reach == 0 ? 1 << 30 : beside / reach; }\n"
    "MO_FN int mo_may_run(MO_RUN run, mo_int from, mo_int to)\n"
    "{ if (from > to) return 0;\n"
    "  if (run->rounds >= 0 && (mo_word)to - (mo_word)from <= (mo_word)run->rounds) { run->rounds "
    "-= to - from;\n"
    "      return 1; }\n"
    "  MO_FAIL(run, 15, 0, 0, 0);\n  return 0; }\n"
    "MO_FN mo_int mo_part(mo_int *t, mo_int n)\n"
    "{ const unsigned u = (unsigned)*t, m = (unsigned)n;\n"
    "  *t = u / m; return u % m; }\n";

static void append(mo_text *text, const char *piece, size_t size)
{
    if (tb_bytes_append(&text->bytes, piece, size) != TB_OK) text->failed = true;
}

void tb_mo_emit_head(mo_emit *e, const mo_function *f, const mo_kernel *k, const char *prefix)
{
    mo_text *text = e->text;
    const mo_fold *fold = k->loop->loop->fold;
    const int threads = k->sweep != NULL                  ? MO_SWEEP_THREADS
                        : fold != NULL && !fold->parallel ? MO_FOLD_THREADS
                                                          : MO_BLOCK;
    tb_mo_print(text,
                "extern \"C\" __global__ void __launch_bounds__(%d) %s@("
                "MO_PARAMETER(p@) p)\n{\n",
                threads, prefix);
    for (int32_t i = 0; i < k->arrays; i++)
        tb_mo_print(text, "    struct mo_array *const A%d = (struct mo_array *)&p.a[%d];\n",
                    k->array[i], i);
    for (int32_t i = 0; i < k->scalars; i++) {
        const bool real = f->variables[k->scalar[i]].base == MO_T_REAL;
        bool folded = false;
        for (int32_t q = 0; fold != NULL && q < fold->count; q++)
            folded = folded || fold->variable[q] == k->scalar[i];
        tb_mo_print(text, "    %s%s v%d = p.s[%d].%s;\n", folded ? "" : "const ",
                    real ? "double" : "mo_int", k->scalar[i], i, real ? "real" : "integer");
    }
}

void tb_mo_emit_parameters(mo_emit *e, const mo_kernel *k)
{
    tb_mo_print(e->text,
                "struct p@ { mo_int from[3], to[3], total, rounds; unsigned long long *fault,"
                " launch; void *part; union { double real; mo_int integer; } s[%d]; struct "
                "mo_array a[%d]; };\n",
                k->scalars > 0 ? k->scalars : 1, k->arrays > 0 ? k->arrays : 1);
}

void tb_mo_emit_iterators(mo_emit *e, const mo_loop *loop)
{
    for (int32_t d = loop->depth; d-- > 0;) {
        const int32_t v = loop->nest[d]->variable;
        if (d == 0)
            tb_mo_print(e->text, "    const mo_int v%d = p.from[0] + t;\n", v);
        else
            tb_mo_print(e->text,
                        "    const mo_int v%d = p.from[%d] + mo_part(&t, p.to[%d] - p.from[%d] + 1"
                        ");\n",
                        v, d, d, d);
    }
}

static void emit_kernel(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    const mo_loop *loop = k->loop->loop;
    mo_text *text = e->text;
    e->function = f;
    e->loops = 0;
    e->depth = 1;
    tb_mo_emit_parameters(e, k);
    tb_mo_emit_head(e, f, k, "k");
    tb_mo_print(
        text, "    struct mo_run own = {p.fault, p.launch, 0, p.rounds}, *const run = &own;\n"
              "    for (mo_int t0 = blockIdx.x * (mo_int)blockDim.x + threadIdx.x; t0 < p.total;\n"
              "         t0 += (mo_int)gridDim.x * blockDim.x) {\n"
              "    mo_int t = t0; own.round = t0;\n");
    bool *assigned = tb_mo_find_assigned(k->loop, f->count);
    for (int32_t d = 0; d < loop->depth; d++) assigned[loop->nest[d]->variable] = false;
    for (int32_t v = 0; v < f->count; v++)
        if (assigned[v]) tb_mo_emit_variable(e, v);
    tb_mo_emit_iterators(e, loop);
    for (int32_t d = 0; d < loop->depth; d++) e->loop[e->loops++] = loop->nest[d];
    tb_mo_emit_statements(e, loop->nest[loop->depth - 1]->body);
    e->loops = 0;
    tb_mo_print(text, "    }\n}\n\n");
}

/* the functions that a list of statements calls, callees first; done[] by the program's index */
static void emit_callees(mo_emit *e, const mo_s *s, bool *done)
{
    for (; s != NULL; s = s->next) {
        if (s->op == MO_S_CALL && !done[s->callee->index]) {
            done[s->callee->index] = true;
            emit_callees(e, s->callee->body, done);
            tb_mo_emit_function(e, s->callee, "static __device__");
        }
        emit_callees(e, s->body, done);
        emit_callees(e, s->orelse, done);
    }
}

static void reach_list(const mo_s *s, bool *reached)
{
    for (; s != NULL; s = s->next) {
        if (s->op == MO_S_CALL && !reached[s->callee->index]) tb_mo_reach(s->callee, reached);
        reach_list(s->body, reached);
        reach_list(s->orelse, reached);
    }
}

void tb_mo_reach(const mo_function *f, bool *reached)
{
    reached[f->index] = true;
    reach_list(f->body, reached);
}

/* The text of one kernel, and of those that may stand in for it, with @ for its number. */
static void emit_any(mo_emit *e, const mo_function *f, const mo_kernel *kernel)
{
    e->labels = 0;
    if (kernel->sweep != NULL) {
        tb_mo_emit_sweep(e, f, kernel);
        return;
    }
    const mo_fold *fold = kernel->loop->loop->fold;
    if (fold != NULL) {
        (fold->parallel ? tb_mo_emit_parallel : tb_mo_emit_fold)(e, f, kernel);
        return;
    }
    emit_kernel(e, f, kernel);
    if (kernel->product != NULL) tb_mo_emit_product(e, f, kernel);
}

/* The joins of the reductions side by side, a bit each. */
static unsigned find_joins(mo_kernel *const *kernels, const mo_program *program)
{
    unsigned joins = 0;
    for (int32_t f = 0; f < program->count; f++)
        for (int32_t k = 0; kernels[f] != NULL && k < tb_mo_kernel_count(program->functions[f]);
             k++) {
            const mo_fold *fold = kernels[f][k].loop->loop->fold;
            if (!kernels[f][k].fits || fold == NULL || !fold->parallel) continue;
            for (int32_t q = 0; q < fold->count; q++)
                joins |= 1u << tb_mo_join_number(fold->statement[q]->value);
        }
    return joins;
}

/* The kernel kf: the first element of an array that is not finite. */
static const char FINITE[] =
    "struct mo_search { const double *x; unsigned long long *first; mo_int count; };\n"
    "extern \"C\" __global__ void __launch_bounds__(256) kf(MO_PARAMETER(mo_search) p)\n{\n"
    "    for (mo_int t = blockIdx.x * (mo_int)blockDim.x + threadIdx.x; t < p.count;\n"
    "         t += (mo_int)gridDim.x * blockDim.x) {\n"
    "        if (p.x[t] * 0 == 0) continue;\n"
    "        const unsigned long long own = (unsigned long long)t;\n"
    "        for (unsigned long long old = *p.first; own < old;) {\n"
    "            const unsigned long long now = atomicCAS(p.first, old, own);\n"
    "            if (now == old) break;\n"
    "            old = now;\n"
    "        }\n"
    "    }\n}\n\n";

tb_status tb_mo_emit_cuda(const mo_program *program, mo_kernel *const *kernels, mo_text *text,
                          tb_error *error)
{
    enum { MOST_FUNCTIONS = 4096 };
    bool done[MOST_FUNCTIONS] = {false};
    mo_emit e = {.text = text, .on_card = true, .program = program};
    mo_merge merge = {.text = text};
    if (program->count > MOST_FUNCTIONS)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "more than %d functions", MOST_FUNCTIONS);
    append(text, HEAD, sizeof HEAD - 1);
    append(text, tb_mo_prelude, tb_mo_prelude_size());
    append(text, TAIL, sizeof TAIL - 1);
    append(text, FINITE, sizeof FINITE - 1);
    tb_mo_emit_joins(text, find_joins(kernels, program));
    for (int32_t f = 0; f < program->count; f++)
        for (int32_t k = 0; kernels[f] != NULL && k < tb_mo_kernel_count(program->functions[f]);
             k++)
            if (kernels[f][k].fits) emit_callees(&e, kernels[f][k].loop->body, done);
    for (int32_t f = 0; f < program->count; f++)
        for (int32_t k = 0; kernels[f] != NULL && k < tb_mo_kernel_count(program->functions[f]);
             k++) {
            mo_text own = {0};
            if (!kernels[f][k].fits) continue;
            e.text = &own;
            emit_any(&e, program->functions[f], &kernels[f][k]);
            kernels[f][k].number = tb_mo_merge(&merge, &own);
            tb_bytes_free(&own.bytes);
        }
    tb_mo_merge_end(&merge);
    append(text, "", 1); /* NVRTC reads up to a zero */
    return text->failed ? tb_fail_memory(error, text->bytes.size, "generated code") : TB_OK;
}
