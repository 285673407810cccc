/* Scalar expressions, variables and statements of the intermediate form. */
#include "modelica/lower/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---- */

const char *tb_mo_format(mo_build *b, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tb_mo_text(b->source, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
}

const char *tb_mo_base_name(mo_base base)
{
    return base == MO_T_REAL ? "Real" : base == MO_T_INTEGER ? "Integer" : "Boolean";
}

const char *tb_mo_type_name(mo_build *b, mo_type type, int32_t rank)
{
    char sizes[2 * MO_RANK + 2] = "";
    for (int32_t d = 0; d < rank && d < MO_RANK; d++) strcat(sizes, d == 0 ? "[:" : ",:");
    return tb_mo_format(b, "%s%s%s", type.record ? type.record->name : tb_mo_base_name(type.base),
                        sizes, rank > 0 ? "]" : "");
}

/* ---- expressions ---- */

mo_x *tb_mo_x(mo_build *b, mo_x_op op, mo_base base, mo_place place)
{
    static mo_x none; /* substitute when memory is refused: the source has failed */
    mo_x *x = TB_ARENA_ZEROED(b->arena, mo_x, 1);
    if (x == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, place,
                      "the program needs more than the limit of %d MiB", MO_TREE_BYTES >> 20);
        return &none;
    }
    x->op = op;
    x->base = base;
    x->place = place;
    return x;
}

const mo_x *tb_mo_x_integer(mo_build *b, int64_t value, mo_place place)
{
    mo_x *x = tb_mo_x(b, MO_X_CONSTANT, MO_T_INTEGER, place);
    x->integer = value;
    return x;
}

const mo_x *tb_mo_x_real(mo_build *b, double value, mo_place place)
{
    mo_x *x = tb_mo_x(b, MO_X_CONSTANT, MO_T_REAL, place);
    x->real = value;
    return x;
}

const mo_x *tb_mo_x_boolean(mo_build *b, bool value, mo_place place)
{
    mo_x *x = tb_mo_x(b, MO_X_CONSTANT, MO_T_BOOLEAN, place);
    x->integer = value;
    return x;
}

const mo_x *tb_mo_x_variable(mo_build *b, int32_t variable, mo_place place)
{
    const mo_variable *v = &b->function->variables[variable];
    if (v->value != NULL) return v->value;
    mo_x *x = tb_mo_x(b, MO_X_VARIABLE, v->base, place);
    x->variable = variable;
    return x;
}

const mo_x *tb_mo_x_size(mo_build *b, int32_t variable, int32_t dimension, mo_place place)
{
    const mo_variable *v = &b->function->variables[variable];
    if (v->size[dimension] != NULL) return v->size[dimension];
    mo_x *x = tb_mo_x(b, MO_X_SIZE, MO_T_INTEGER, place);
    x->variable = variable;
    x->dimension = dimension;
    return x;
}

/* the value of an integer operation on constants, if it has one */
static bool fold(mo_x_op op, int64_t p, int64_t q, int64_t *value)
{
    switch (op) {
    case MO_X_ADD: return !__builtin_add_overflow(p, q, value);
    case MO_X_SUBTRACT: return !__builtin_sub_overflow(p, q, value);
    case MO_X_MULTIPLY: return !__builtin_mul_overflow(p, q, value);
    default: return false;
    }
}

const mo_x *tb_mo_x_apply(mo_build *b, mo_x_op op, mo_base base, mo_place place, const mo_x *p,
                          const mo_x *q, const mo_x *r)
{
    int64_t value = 0;
    const bool constant = p->op == MO_X_CONSTANT && p->base == MO_T_INTEGER;
    if (constant && q != NULL && q->op == MO_X_CONSTANT && r == NULL && base == MO_T_INTEGER &&
        q->base == MO_T_INTEGER && fold(op, p->integer, q->integer, &value))
        return tb_mo_x_integer(b, value, place);
    if (op == MO_X_NEGATE && constant && p->integer != INT64_MIN)
        return tb_mo_x_integer(b, -p->integer, place);
    if (op == MO_X_NEGATE && p->op == MO_X_CONSTANT && base == MO_T_REAL)
        return tb_mo_x_real(b, -p->real, place);
    mo_x *x = tb_mo_x(b, op, base, place);
    x->operand[0] = p;
    x->operand[1] = q;
    x->operand[2] = r;
    x->count = 1 + (q != NULL) + (r != NULL);
    return x;
}

const mo_x *tb_mo_x_cast(mo_build *b, const mo_x *x)
{
    if (x->base != MO_T_INTEGER) return x;
    if (x->op == MO_X_CONSTANT) return tb_mo_x_real(b, (double)x->integer, x->place);
    return tb_mo_x_apply(b, MO_X_CAST, MO_T_REAL, x->place, x, NULL, NULL);
}

bool tb_mo_x_same(const mo_x *a, const mo_x *b)
{
    if (a == b) return true;
    if (a->op != b->op || a->base != b->base || a->count != b->count) return false;
    if (a->op == MO_X_CONSTANT)
        return a->integer == b->integer && memcmp(&a->real, &b->real, sizeof a->real) == 0;
    if (a->variable != b->variable || a->dimension != b->dimension) return false;
    for (int32_t k = 0; k < a->count; k++)
        if (!tb_mo_x_same(a->operand[k], b->operand[k])) return false;
    return true;
}

bool tb_mo_x_stable(const mo_build *b, const mo_x *x)
{
    const mo_variable *v;
    switch (x->op) {
    case MO_X_CONSTANT: return true;
    case MO_X_VARIABLE:
    case MO_X_SIZE:
        v = &b->function->variables[x->variable];
        return v->role == MO_IN && !v->optional;
    case MO_X_ADD:
    case MO_X_SUBTRACT:
    case MO_X_MULTIPLY:
    case MO_X_NEGATE:
    case MO_X_MINIMUM:
    case MO_X_MAXIMUM:
    case MO_X_DIV:
        for (int32_t k = 0; k < x->count; k++)
            if (!tb_mo_x_stable(b, x->operand[k])) return false;
        return x->base == MO_T_INTEGER;
    default: return false;
    }
}

bool tb_mo_x_mentions(const mo_x *x, int32_t variable)
{
    if ((x->op == MO_X_VARIABLE || x->op == MO_X_ELEMENT || x->op == MO_X_SIZE) &&
        x->variable == variable)
        return true;
    for (int32_t k = 0; k < x->count; k++)
        if (tb_mo_x_mentions(x->operand[k], variable)) return true;
    return false;
}

/* ---- variables ---- */

int32_t tb_mo_variable(mo_build *b, const char *name, mo_base base, int32_t rank, mo_place place)
{
    enum { MOST = 4096 };
    mo_function *f = b->function;
    if (f->count == f->capacity) {
        const int32_t capacity = f->capacity < 16 ? 16 : 2 * f->capacity;
        mo_variable *grown =
            capacity > MOST ? NULL : TB_ARENA_ZEROED(b->arena, mo_variable, capacity);
        if (grown == NULL) {
            tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, place,
                          "function '%s' has more than %d variables", f->name, f->count);
            return 0;
        }
        if (f->count > 0) memcpy(grown, f->variables, (size_t)f->count * sizeof *grown);
        f->variables = grown;
        f->capacity = capacity;
    }
    f->variables[f->count] =
        (mo_variable){.name = name, .base = base, .rank = rank, .role = MO_LOCAL, .place = place};
    return f->count++;
}

int32_t tb_mo_temporary(mo_build *b, mo_base base, int32_t rank, mo_place place)
{
    const int32_t variable = tb_mo_variable(b, "", base, rank, place);
    if (b->function->count > 0) b->function->variables[variable].temporary = true;
    return variable;
}

const mo_x *tb_mo_hoist(mo_build *b, const mo_x *x)
{
    if (x->op == MO_X_CONSTANT || x->op == MO_X_VARIABLE || x->op == MO_X_SIZE) return x;
    if (x->base == MO_T_INTEGER && tb_mo_x_stable(b, x)) return x;
    const int32_t variable = tb_mo_temporary(b, x->base, 0, x->place);
    tb_mo_s_assign(b, variable, x, x->place);
    return tb_mo_x_variable(b, variable, x->place);
}

/* ---- statements ---- */

mo_s *tb_mo_s(mo_build *b, mo_s_op op, mo_place place)
{
    static mo_s none;
    mo_s *s = TB_ARENA_ZEROED(b->arena, mo_s, 1);
    if (s == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, place,
                      "the program needs more than the limit of %d MiB", MO_TREE_BYTES >> 20);
        return &none;
    }
    s->op = op;
    s->place = place;
    *b->tail = s;
    b->tail = &s->next;
    return s;
}

mo_s *tb_mo_s_assign(mo_build *b, int32_t variable, const mo_x *x, mo_place place)
{
    mo_s *s = tb_mo_s(b, MO_S_ASSIGN, place);
    s->variable = variable;
    s->value = b->function->variables[variable].base == MO_T_REAL ? tb_mo_x_cast(b, x) : x;
    return s;
}

void tb_mo_s_make_tree(mo_build *b, mo_s *open, mo_s *add, mo_s *close)
{
    open->tree = add->tree = close->tree = ++b->function->trees;
    open->tree_step = MO_TREE_OPEN;
    add->tree_step = MO_TREE_ADD;
    close->tree_step = MO_TREE_CLOSE;
}

/* the number of a message */
static int32_t add_message(mo_build *b, const char *text, tb_status status, mo_place place)
{
    mo_program *p = b->program;
    if (p->message_count == p->message_capacity) {
        const int32_t capacity = p->message_capacity < 16 ? 16 : 2 * p->message_capacity;
        mo_message *grown = TB_ARENA_ZEROED(b->arena, mo_message, capacity);
        if (grown == NULL) {
            tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, place, "no memory for messages");
            return 0;
        }
        if (p->message_count > 0)
            memcpy(grown, p->messages, (size_t)p->message_count * sizeof *grown);
        p->messages = grown;
        p->message_capacity = capacity;
    }
    p->messages[p->message_count] = (mo_message){text, status, place};
    return p->message_count++;
}

void tb_mo_s_assert(mo_build *b, const mo_x *condition, tb_status status, mo_place place,
                    const char *message)
{
    mo_s *s = tb_mo_s(b, MO_S_ASSERT, place);
    s->value = condition;
    s->source = add_message(b, message, status, place);
}

void tb_mo_s_allocate(mo_build *b, int32_t variable, int32_t rank, const mo_x *const *size,
                      mo_place place)
{
    mo_s *s = tb_mo_s(b, MO_S_ALLOCATE, place);
    s->variable = variable;
    s->count = rank;
    for (int32_t d = 0; d < rank; d++) s->subscript[d] = size[d];
}

const mo_x *tb_mo_open_loop(mo_build *b, const mo_x *limit, mo_place place, mo_s ***outer)
{
    const int32_t iterator = tb_mo_temporary(b, MO_T_INTEGER, 0, place);
    if (b->function->count > 0) b->function->variables[iterator].iterator = true;
    mo_s *s = tb_mo_s(b, MO_S_FOR, place);
    s->variable = iterator;
    s->value = tb_mo_x_integer(b, 1, place);
    s->step = s->value;
    s->limit = limit;
    *outer = b->tail;
    b->tail = &s->body;
    return tb_mo_x_variable(b, iterator, place);
}

void tb_mo_close(mo_build *b, mo_s **outer)
{
    b->tail = outer;
}

void tb_mo_check_size(mo_build *b, const mo_x *p, const mo_x *q, mo_place place, int32_t dimension,
                      const char *what)
{
    if (tb_mo_x_same(p, q)) return;
    if (p->op == MO_X_CONSTANT && q->op == MO_X_CONSTANT) {
        tb_mo_fail(b->source, place, "sizes of %s differ in dimension %d: %lld and %lld", what,
                   dimension + 1, (long long)p->integer, (long long)q->integer);
        return;
    }
    tb_mo_s_assert(b, tb_mo_x_apply(b, MO_X_EQUAL, MO_T_BOOLEAN, place, p, q, NULL),
                   TB_INVALID_ARGUMENT, place,
                   tb_mo_format(b, "sizes of %s differ in dimension %d", what, dimension + 1));
}
