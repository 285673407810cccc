/* Expressions, statements and functions as C text. Names are made of numbers: v3 is the scalar
 * variable 3, A3 points to the array 3, f2 is the function 2. */
#include "modelica/emit.h"
#include "modelica/loops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void tb_mo_print(mo_text *text, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (size < 0 || size >= (int)sizeof piece ||
        tb_bytes_append(&text->bytes, piece, (size_t)size) != TB_OK)
        text->failed = true;
}

void tb_mo_emit_indent(mo_emit *e)
{
    for (int32_t k = 0; k < e->depth && k < 20; k++) tb_mo_print(e->text, "    ");
}

/* A place as a number: line and column; on the card, where failures have few bits, the byte. */
static int64_t place_of(const mo_emit *e, mo_place place)
{
    if (!e->on_card) return (int64_t)place.line << 32 | place.column;
    int64_t byte = 0;
    for (int32_t line = 1; line < place.line && e->program->text[byte] != '\0'; byte++)
        if (e->program->text[byte] == '\n') line++;
    return byte + place.column - 1;
}

/* ---- expressions ---- */

static void expression(mo_emit *e, const mo_x *x)
{
    tb_mo_emit_expression(e, x);
}

static void constant(mo_emit *e, const mo_x *x)
{
    if (x->base == MO_T_REAL)
        tb_mo_print(e->text, x->real < 0 || (x->real == 0 && 1 / x->real < 0) ? "(%a)" : "%a",
                    x->real);
    else if (x->integer == INT64_MIN)
        tb_mo_print(e->text, "(-9223372036854775807LL - 1)");
    else
        tb_mo_print(e->text, x->integer < 0 ? "(%" PRId64 "LL)" : "%" PRId64 "LL", x->integer);
}

static const char *c_type(mo_base base)
{
    return base == MO_T_REAL ? "double" : base == MO_T_INTEGER ? "mo_int" : "unsigned char";
}

/* a subscript from 0; one that can leave its dimension is checked, and the card goes on with `other` */
static void position(mo_emit *e, int32_t variable, int32_t d, const mo_x *subscript, mo_place place,
                     const char *other)
{
    if (tb_mo_is_inside(e, subscript, variable, d)) {
        tb_mo_print(e->text, "(");
        expression(e, subscript);
        tb_mo_print(e->text, " - 1)");
        return;
    }
    tb_mo_print(e->text, other == NULL ? "mo_at(" : "mo_near(%s, ", other);
    tb_mo_print(e->text, "run, %" PRId64 "LL, %" PRId64 "LL, ", place_of(e, place),
                (int64_t)e->function->index << 32 | (int64_t)variable << 3 | d);
    expression(e, subscript);
    tb_mo_print(e->text, ", A%d->size[%d])", variable, d);
}

/* an element: checked subscripts, row by row */
static void element(mo_emit *e, int32_t variable, int32_t count, const mo_x *const *subscript,
                    mo_place place)
{
    if (tb_mo_sweep_holds(e->sweep, variable)) {
        tb_mo_print(e->text, "S%d[(int)(", variable);
        position(e, variable, 0, subscript[0], place, "oi");
        tb_mo_print(e->text, " - oi) * MO_SIDE + (int)(");
        position(e, variable, 1, subscript[1], place, "oj");
        tb_mo_print(e->text, " - oj)]");
        return;
    }
    tb_mo_print(e->text, "((%s *)A%d->data)[", c_type(e->function->variables[variable].base),
                variable);
    for (int32_t d = 1; d < count; d++) tb_mo_print(e->text, "(");
    for (int32_t d = 0; d < count; d++) {
        if (d > 0) tb_mo_print(e->text, ") * A%d->size[%d] + ", variable, d);
        position(e, variable, d, subscript[d], place, NULL);
    }
    tb_mo_print(e->text, "]");
}

static void infix(mo_emit *e, const mo_x *x, const char *operator)
{
    tb_mo_print(e->text, "(");
    expression(e, x->operand[0]);
    tb_mo_print(e->text, " %s ", operator);
    expression(e, x->operand[1]);
    tb_mo_print(e->text, ")");
}

/* name(a, b), with the run and the place before the operands if the operation can fail */
static void call_of(mo_emit *e, const mo_x *x, const char *name, bool can_fail)
{
    tb_mo_print(e->text, "%s(", name);
    if (can_fail) tb_mo_print(e->text, "run, %" PRId64 "LL, ", place_of(e, x->place));
    for (int32_t k = 0; k < x->count; k++) {
        if (k > 0) tb_mo_print(e->text, ", ");
        expression(e, x->operand[k]);
    }
    tb_mo_print(e->text, ")");
}

/* a function with a domain: sqrt(mo_within(run, place, op, x, lowest, highest)) */
static void guarded(mo_emit *e, const mo_x *x, const char *name, const char *guard,
                    const char *bounds)
{
    tb_mo_print(e->text, "%s(%s(run, %" PRId64 "LL, %d, ", name, guard, place_of(e, x->place),
                x->op);
    expression(e, x->operand[0]);
    tb_mo_print(e->text, "%s))", bounds);
}

static bool is_zero_free(const mo_x *x)
{
    return x->op == MO_X_CONSTANT && x->real != 0;
}

static void integer_operation(mo_emit *e, const mo_x *x)
{
    const bool small = x->op != MO_X_MULTIPLY && tb_mo_is_small(e, x);
    switch (x->op) {
    case MO_X_ADD: small ? infix(e, x, "+") : call_of(e, x, "mo_add", true); break;
    case MO_X_SUBTRACT: small ? infix(e, x, "-") : call_of(e, x, "mo_subtract", true); break;
    case MO_X_MULTIPLY: call_of(e, x, "mo_multiply", true); break;
    case MO_X_NEGATE: call_of(e, x, "mo_negate", true); break;
    case MO_X_ABS: call_of(e, x, "mo_abs_integer", true); break;
    case MO_X_DIV: call_of(e, x, "mo_div_integer", true); break;
    case MO_X_MOD: call_of(e, x, "mo_mod_integer", true); break;
    case MO_X_REM: call_of(e, x, "mo_rem_integer", true); break;
    case MO_X_MINIMUM: call_of(e, x, "mo_min_integer", false); break;
    default: call_of(e, x, "mo_max_integer", false); break;
    }
}

static void real_operation(mo_emit *e, const mo_x *x)
{
    switch (x->op) {
    case MO_X_ADD: infix(e, x, "+"); break;
    case MO_X_SUBTRACT: infix(e, x, "-"); break;
    case MO_X_MULTIPLY: infix(e, x, "*"); break;
    case MO_X_DIVIDE:
        is_zero_free(x->operand[1]) ? infix(e, x, "/") : call_of(e, x, "mo_divide", true);
        break;
    case MO_X_NEGATE:
        tb_mo_print(e->text, "(-");
        expression(e, x->operand[0]);
        tb_mo_print(e->text, ")");
        break;
    case MO_X_POWER: call_of(e, x, "mo_power", true); break;
    case MO_X_DIV: call_of(e, x, "mo_div_real", true); break;
    case MO_X_MOD: call_of(e, x, "mo_mod_real", true); break;
    case MO_X_REM: call_of(e, x, "mo_rem_real", true); break;
    case MO_X_MINIMUM: call_of(e, x, "mo_min_real", false); break;
    case MO_X_MAXIMUM: call_of(e, x, "mo_max_real", false); break;
    case MO_X_ABS: call_of(e, x, "mo_fabs", false); break;
    case MO_X_FLOOR: call_of(e, x, "mo_floor", false); break;
    case MO_X_CEIL: call_of(e, x, "mo_ceil", false); break;
    case MO_X_SQRT: guarded(e, x, "mo_sqrt", "mo_within", ", 0, MO_HUGE"); break;
    case MO_X_ASIN: guarded(e, x, "asin", "mo_within", ", -1, 1"); break;
    case MO_X_ACOS: guarded(e, x, "acos", "mo_within", ", -1, 1"); break;
    case MO_X_LOG: guarded(e, x, "log", "mo_positive", ""); break;
    case MO_X_LOG10: guarded(e, x, "log10", "mo_positive", ""); break;
    case MO_X_SIN: call_of(e, x, "sin", false); break;
    case MO_X_COS: call_of(e, x, "cos", false); break;
    case MO_X_TAN: call_of(e, x, "tan", false); break;
    case MO_X_ATAN: call_of(e, x, "atan", false); break;
    case MO_X_ATAN2: call_of(e, x, "atan2", false); break;
    case MO_X_SINH: call_of(e, x, "sinh", false); break;
    case MO_X_COSH: call_of(e, x, "cosh", false); break;
    case MO_X_TANH: call_of(e, x, "tanh", false); break;
    default: call_of(e, x, "exp", false); break;
    }
}

void tb_mo_emit_expression(mo_emit *e, const mo_x *x)
{
    switch (x->op) {
    case MO_X_CONSTANT: constant(e, x); break;
    case MO_X_VARIABLE: tb_mo_print(e->text, "v%d", x->variable); break;
    case MO_X_SIZE: tb_mo_print(e->text, "A%d->size[%d]", x->variable, x->dimension); break;
    case MO_X_ELEMENT:
        if (x->base != MO_T_REAL) tb_mo_print(e->text, "(mo_int)");
        element(e, x->variable, x->count, x->operand, x->place);
        break;
    case MO_X_CAST:
        tb_mo_print(e->text, "(double)");
        expression(e, x->operand[0]);
        break;
    case MO_X_LESS: infix(e, x, "<"); break;
    case MO_X_LESS_EQUAL: infix(e, x, "<="); break;
    case MO_X_EQUAL: infix(e, x, "=="); break;
    case MO_X_NOT_EQUAL: infix(e, x, "!="); break;
    case MO_X_AND: infix(e, x, "&&"); break;
    case MO_X_OR: infix(e, x, "||"); break;
    case MO_X_NOT:
        tb_mo_print(e->text, "!");
        expression(e, x->operand[0]);
        break;
    case MO_X_SELECT:
        tb_mo_print(e->text, "(");
        expression(e, x->operand[0]);
        tb_mo_print(e->text, " ? ");
        expression(e, x->operand[1]);
        tb_mo_print(e->text, " : ");
        expression(e, x->operand[2]);
        tb_mo_print(e->text, ")");
        break;
    case MO_X_SIGN:
        tb_mo_print(e->text, "mo_sign((double)");
        expression(e, x->operand[0]);
        tb_mo_print(e->text, ")");
        break;
    case MO_X_INTEGER: call_of(e, x, "mo_integer", true); break;
    default:
        if (x->base == MO_T_REAL)
            real_operation(e, x);
        else
            integer_operation(e, x);
    }
}

/* ---- statements ---- */

static void line(mo_emit *e, const char *text)
{
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "%s\n", text);
}

/* whether a body has loops or calls inside, so that its own rounds are few */
static bool is_innermost(const mo_s *s)
{
    for (; s != NULL; s = s->next) {
        if (s->op == MO_S_FOR || s->op == MO_S_WHILE || s->op == MO_S_CALL) return false;
        if (s->op == MO_S_IF && (!is_innermost(s->body) || !is_innermost(s->orelse))) return false;
    }
    return true;
}

/* whether a break of the body leaves this loop */
static bool has_break(const mo_s *s)
{
    for (; s != NULL; s = s->next) {
        if (s->op == MO_S_BREAK) return true;
        if (s->op == MO_S_IF && (has_break(s->body) || has_break(s->orelse))) return true;
    }
    return false;
}

static void body_of(mo_emit *e, const mo_s *s, const mo_s *body)
{
    if (s->op == MO_S_FOR && e->loops < MO_LOOPS) e->loop[e->loops++] = s;
    e->depth++;
    tb_mo_emit_statements(e, body);
    e->depth--;
    if (s->op == MO_S_FOR) e->loops--;
}

/* A loop that counts up by one: rounds are charged to the budget before they run, in pieces, so that
 * the compiler sees a plain loop. */
static void counted_loop(mo_emit *e, const mo_s *s, int32_t label)
{
    const bool pieces = !e->on_card && is_innermost(s->body);
    if (e->on_card) {
        tb_mo_emit_indent(e);
        tb_mo_print(e->text, "if (mo_may_run(run, n%d, m%d)) {\n", label, label);
    }
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "if (n%d <= m%d) for (mo_int c%d = n%d, e%d;; c%d = e%d + 1) {\n", label,
                label, label, label, label, label, label);
    tb_mo_emit_indent(e);
    if (pieces)
        tb_mo_print(e->text,
                    "    e%d = m%d - c%d >= 1048575 ? c%d + 1048575 : m%d; MO_ROUNDS(e%d - c%d)\n",
                    label, label, label, label, label, label, label);
    else
        tb_mo_print(e->text, "    e%d = m%d;\n", label, label);
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "    for (v%d = c%d;; v%d++) {\n", s->variable, label, s->variable);
    e->depth++;
    if (!pieces && !e->on_card) line(e, "    MO_ROUND");
    body_of(e, s, s->body);
    e->depth--;
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "        if (v%d == e%d) break;\n", s->variable, label);
    line(e, "    }");
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "    if (e%d == m%d) break;\n", label, label);
    line(e, "}");
    if (e->on_card) line(e, "}");
}

static void stepped_loop(mo_emit *e, const mo_s *s, int32_t label)
{
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "const mo_int s%d = ", label);
    tb_mo_emit_expression(e, s->step);
    tb_mo_print(e->text, ";\n");
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "if (s%d == 0) MO_FAIL(run, MO_FAIL_STEP, %" PRId64 "LL, 0, 0);\n", label,
                place_of(e, s->place));
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "mo_word r%d = mo_rounds(n%d, m%d, s%d); v%d = n%d;\n", label, label,
                label, label, s->variable, label);
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "for (; r%d > 0; r%d--, v%d = (mo_int)((mo_word)v%d + (mo_word)s%d)) {\n",
                label, label, s->variable, s->variable, label);
    line(e, "    MO_ROUND");
    body_of(e, s, s->body);
    line(e, "}");
}

static void for_loop(mo_emit *e, const mo_s *s)
{
    const int32_t label = e->labels++, outer = e->broken;
    e->broken = label;
    line(e, "{");
    e->depth++;
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "const mo_int n%d = ", label);
    tb_mo_emit_expression(e, s->value);
    tb_mo_print(e->text, ", m%d = ", label);
    tb_mo_emit_expression(e, s->limit);
    tb_mo_print(e->text, ";\n");
    if (s->step->op == MO_X_CONSTANT && s->step->integer == 1)
        counted_loop(e, s, label);
    else
        stepped_loop(e, s, label);
    if (has_break(s->body)) {
        tb_mo_emit_indent(e);
        tb_mo_print(e->text, "b%d:;\n", label);
    }
    e->depth--;
    line(e, "}");
    e->broken = outer;
}

static void while_loop(mo_emit *e, const mo_s *s)
{
    const int32_t label = e->labels++, outer = e->broken;
    e->broken = label;
    line(e, "for (;;) {");
    line(e, "    MO_ROUND");
    body_of(e, s, s->body);
    line(e, "}");
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "b%d:;\n", label);
    e->broken = outer;
}

static void call(mo_emit *e, const mo_s *s)
{
    const mo_function *f = s->callee;
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "f%d(run, %" PRId64 "LL", f->index, place_of(e, s->place));
    for (int32_t k = 0; k < f->inputs + f->flags; k++) {
        tb_mo_print(e->text, ", ");
        if (s->arguments[k].value != NULL)
            tb_mo_emit_expression(e, s->arguments[k].value);
        else
            tb_mo_print(e->text, "A%d", s->arguments[k].variable);
    }
    for (int32_t k = 0; k < f->outputs; k++) {
        const bool array = f->variables[f->inputs + f->flags + k].rank > 0;
        tb_mo_print(e->text, array ? ", A%d" : ", &v%d", s->results[k]);
    }
    tb_mo_print(e->text, ");\n");
}

static void allocate(mo_emit *e, const mo_s *s)
{
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "{ ");
    for (int32_t d = 0; d < s->count; d++) {
        tb_mo_print(e->text, "const mo_int z%d = ", d);
        tb_mo_emit_expression(e, s->subscript[d]);
        tb_mo_print(e->text, "; ");
    }
    for (int32_t d = 0; d < s->count; d++)
        tb_mo_print(e->text, "A%d->size[%d] = z%d; ", s->variable, d, d);
    tb_mo_print(e->text, "run->allocate(run, A%d, %" PRId64 "LL); }\n", s->variable,
                place_of(e, s->place));
}

static void branch(mo_emit *e, const mo_s *s)
{
    tb_mo_emit_indent(e);
    tb_mo_print(e->text, "if (");
    tb_mo_emit_expression(e, s->value);
    tb_mo_print(e->text, ") {\n");
    body_of(e, s, s->body);
    if (s->orelse != NULL) {
        line(e, "} else {");
        body_of(e, s, s->orelse);
    }
    line(e, "}");
}

/* Keeps the x of a reduction v := v + x for the thread that adds it, or adds it to the thread's own part;
 * false: it is none. */
static bool term(mo_emit *e, const mo_s *s)
{
    int32_t q = 0;
    while (e->fold != NULL && q < e->fold->count && e->fold->statement[q] != s) q++;
    if (e->fold == NULL || q == e->fold->count) return false;
    if (e->fold->parallel) {
        tb_mo_print(e->text, "T%d = %s(T%d, ", s->variable, tb_mo_join_name(s->value), s->variable);
        tb_mo_emit_expression(e, s->value->operand[1]);
        tb_mo_print(e->text, ");\n");
        return true;
    }
    if (!e->fold->always[q]) tb_mo_print(e->text, "H%d[w][threadIdx.x] = 1; ", s->variable);
    tb_mo_print(e->text, "T%d[w][threadIdx.x] = ", s->variable);
    tb_mo_emit_expression(e, s->value->operand[1]);
    tb_mo_print(e->text, ";\n");
    return true;
}

/* A step of a sum by a tree; false: the statement is none. */
static bool tree(mo_emit *e, const mo_s *s)
{
    if (s->tree == 0) return false;
    switch (s->tree_step) {
    case MO_TREE_OPEN: tb_mo_print(e->text, "mo_tree_open(&W%d);\n", s->tree); break;
    case MO_TREE_ADD:
        tb_mo_print(e->text, "mo_tree_add(&W%d, ", s->tree);
        tb_mo_emit_expression(e, s->value->operand[1]);
        tb_mo_print(e->text, ");\n");
        break;
    case MO_TREE_CLOSE:
        tb_mo_print(e->text, "v%d = mo_tree_total(&W%d);\n", s->variable, s->tree);
        break;
    }
    return true;
}

static void statement(mo_emit *e, const mo_s *s)
{
    switch (s->op) {
    case MO_S_ASSIGN:
        tb_mo_emit_indent(e);
        if (term(e, s) || tree(e, s)) break;
        tb_mo_print(e->text, "v%d = ", s->variable);
        tb_mo_emit_expression(e, s->value);
        tb_mo_print(e->text, ";\n");
        break;
    case MO_S_STORE:
        tb_mo_emit_indent(e);
        element(e, s->variable, s->count, s->subscript, s->place);
        tb_mo_print(e->text, " = ");
        if (e->function->variables[s->variable].base == MO_T_BOOLEAN)
            tb_mo_print(e->text, "(unsigned char)");
        tb_mo_emit_expression(e, s->value);
        tb_mo_print(e->text, ";\n");
        break;
    case MO_S_ALLOCATE: allocate(e, s); break;
    case MO_S_MOVE:
        tb_mo_emit_indent(e);
        tb_mo_print(e->text, "run->move(run, A%d, A%d);\n", s->variable, s->source);
        break;
    case MO_S_COPY:
        tb_mo_emit_indent(e);
        tb_mo_print(e->text, "run->copy(run, A%d, A%d, %" PRId64 "LL);\n", s->variable, s->source,
                    place_of(e, s->place));
        break;
    case MO_S_FOR: for_loop(e, s); break;
    case MO_S_WHILE: while_loop(e, s); break;
    case MO_S_IF: branch(e, s); break;
    case MO_S_BREAK:
        tb_mo_emit_indent(e);
        tb_mo_print(e->text, "goto b%d;\n", e->broken);
        break;
    case MO_S_RETURN: line(e, "goto done;"); break;
    case MO_S_ASSERT:
        tb_mo_emit_indent(e);
        tb_mo_print(e->text, "if (!(");
        tb_mo_emit_expression(e, s->value);
        tb_mo_print(e->text, ")) MO_FAIL(run, MO_FAIL_ASSERT, %" PRId64 "LL, %d, 0);\n",
                    place_of(e, s->place), s->source);
        break;
    case MO_S_CALL: call(e, s); break;
    }
}

void tb_mo_emit_statements(mo_emit *e, const mo_s *s)
{
    for (; s != NULL; s = s->next) statement(e, s);
}

/* ---- functions ---- */

void tb_mo_emit_variable(mo_emit *e, int32_t variable)
{
    const mo_variable *v = &e->function->variables[variable];
    tb_mo_emit_indent(e);
    if (v->rank == 0)
        tb_mo_print(e->text, "%s v%d = 0;\n", v->base == MO_T_REAL ? "double" : "mo_int", variable);
    else
        tb_mo_print(e->text, "MO_ARRAY(%d, %d, %d)\n", variable, v->base, v->rank);
}

void tb_mo_emit_prototype(mo_text *text, const mo_function *f, const char *qualifier)
{
    const int32_t inputs = f->inputs + f->flags;
    tb_mo_print(text, "%s void f%d(MO_RUN run, mo_int place", qualifier, f->index);
    for (int32_t k = 0; k < inputs + f->outputs; k++) {
        const mo_variable *v = &f->variables[k];
        const char *type = v->base == MO_T_REAL ? "double" : "mo_int";
        if (v->rank > 0)
            tb_mo_print(text, ", struct mo_array *const A%d", k);
        else if (k < inputs)
            tb_mo_print(text, ", %s v%d", type, k);
        else
            tb_mo_print(text, ", %s *const o%d", type, k);
    }
    tb_mo_print(text, ")");
}

void tb_mo_emit_function(mo_emit *e, const mo_function *f, const char *qualifier)
{
    const int32_t inputs = f->inputs + f->flags, first_local = inputs + f->outputs;
    e->function = f;
    e->loops = 0;
    e->broken = -1;
    tb_mo_emit_prototype(e->text, f, qualifier);
    tb_mo_print(e->text, "\n{\n");
    e->depth = 1;
    for (int32_t k = inputs; k < f->count; k++)
        if (k >= first_local || f->variables[k].rank == 0) tb_mo_emit_variable(e, k);
    for (int32_t k = 1; k <= f->trees; k++) tb_mo_print(e->text, "    struct mo_tree W%d;\n", k);
    line(e, "MO_ENTER");
    tb_mo_emit_statements(e, f->body);
    line(e, "goto done;");
    tb_mo_print(e->text, "done:\n");
    for (int32_t k = inputs; k < first_local; k++)
        if (f->variables[k].rank == 0) tb_mo_print(e->text, "    *o%d = v%d;\n", k, k);
    for (int32_t k = f->count; k-- > first_local;)
        if (f->variables[k].rank > 0) tb_mo_print(e->text, "    MO_CLOSE(A%d)\n", k);
    tb_mo_print(e->text, "    MO_LEAVE\n}\n\n");
    e->depth = 0;
}
