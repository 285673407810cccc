/* Expressions: literals, operators and conditional expressions. */
#include <string.h>

#include "modelica/lower/build.h"

/* ---- values ---- */

mo_value tb_mo_scalar(const mo_x *x)
{
    return (mo_value){.type = {x->base, NULL}, .place = x->place, .x = x};
}

mo_value tb_mo_nothing(mo_place place)
{
    static const mo_x zero = {.op = MO_X_CONSTANT, .base = MO_T_REAL};
    mo_value value = tb_mo_scalar(&zero);
    value.place = place;
    return value;
}

bool tb_mo_convert(mo_build *b, mo_value *value, mo_base base, const char *what)
{
    if (b->source->failed) return false;
    if (value->text == NULL && value->type.record == NULL) {
        if (value->type.base == base) return true;
        if (value->type.base == MO_T_INTEGER && base == MO_T_REAL) {
            if (value->rank == 0)
                *value = tb_mo_scalar(tb_mo_x_cast(b, value->x));
            else
                *value = tb_mo_each(b, MO_X_CAST, MO_T_REAL, value->place, value, NULL);
            return !b->source->failed;
        }
    }
    tb_mo_fail(b->source, value->place, "%s is %s, expected %s", what,
               value->text ? "text" : tb_mo_type_name(b, value->type, value->rank),
               tb_mo_base_name(base));
    return false;
}

const mo_x *tb_mo_lower_scalar(mo_build *b, const mo_node *node, mo_base base, const char *what)
{
    mo_value value = tb_mo_lower_expression(b, node);
    if (!tb_mo_convert(b, &value, base, what)) return tb_mo_nothing(node->place).x;
    if (value.rank == 0) return value.x;
    tb_mo_fail(b->source, node->place, "%s is %s, expected a scalar", what,
               tb_mo_type_name(b, value.type, value.rank));
    return tb_mo_nothing(node->place).x;
}

/* ---- statements set aside ---- */

/* An expression's value and the statements that it needs first, kept apart from the others so that
 * they run only where the expression is wanted. */
typedef struct mo_aside {
    mo_value value;
    mo_s *first, **tail;
} mo_aside;

static void lower_aside(mo_build *b, const mo_node *node, mo_aside *aside)
{
    mo_s **outer = b->tail;
    aside->first = NULL;
    b->tail = &aside->first;
    aside->value = tb_mo_lower_expression(b, node);
    aside->tail = b->tail;
    b->tail = outer;
}

/* Puts the statements into a block and assigns the value to a variable there. */
static void assign_aside(mo_build *b, mo_aside *aside, mo_s **block, int32_t variable)
{
    mo_s **outer = b->tail;
    *block = aside->first;
    b->tail = aside->first != NULL ? aside->tail : block;
    tb_mo_assign_variable(b, variable, aside->value, aside->value.place);
    b->tail = outer;
}

/* ---- unary and binary operators ---- */

static bool check_number(mo_build *b, const mo_value *value, const char *operator)
{
    if (b->source->failed) return false;
    if (value->text == NULL && value->type.record == NULL && value->type.base != MO_T_BOOLEAN)
        return true;
    tb_mo_fail(b->source, value->place, "operand of '%s' is %s, expected Real or Integer", operator,
               value->text ? "text" : tb_mo_type_name(b, value->type, value->rank));
    return false;
}

mo_value tb_mo_lower_unary(mo_build *b, const mo_node *node)
{
    if (node->op == MO_NOT) {
        const mo_x *x = tb_mo_lower_scalar(b, node->first, MO_T_BOOLEAN, "the operand of 'not'");
        return tb_mo_scalar(tb_mo_x_apply(b, MO_X_NOT, MO_T_BOOLEAN, node->place, x, NULL, NULL));
    }
    mo_value value = tb_mo_lower_expression(b, node->first);
    if (!check_number(b, &value, node->op == MO_NEGATE ? "-" : "+")) return value;
    if (node->op == MO_PLUS) return value;
    return tb_mo_each(b, MO_X_NEGATE, value.type.base, node->place, &value, NULL);
}

/* and, or: the right operand is only evaluated where the left one leaves it open */
static mo_value lower_logic(mo_build *b, const mo_node *node)
{
    const bool is_and = node->op == MO_AND;
    const char *what = is_and ? "an operand of 'and'" : "an operand of 'or'";
    const mo_x *left = tb_mo_lower_scalar(b, node->first, MO_T_BOOLEAN, what);
    mo_aside right;
    lower_aside(b, node->first->next, &right);
    if (!tb_mo_convert(b, &right.value, MO_T_BOOLEAN, what)) return tb_mo_nothing(node->place);
    if (right.value.rank > 0) {
        tb_mo_fail(b->source, right.value.place, "%s is an array, expected a scalar", what);
        return tb_mo_nothing(node->place);
    }
    if (right.first == NULL)
        return tb_mo_scalar(tb_mo_x_apply(b, is_and ? MO_X_AND : MO_X_OR, MO_T_BOOLEAN, node->place,
                                          left, right.value.x, NULL));
    const int32_t result = tb_mo_temporary(b, MO_T_BOOLEAN, 0, node->place);
    tb_mo_s_assign(b, result, tb_mo_x_boolean(b, !is_and, node->place), node->place);
    mo_s *s = tb_mo_s(b, MO_S_IF, node->place);
    s->value = left;
    assign_aside(b, &right, is_and ? &s->body : &s->orelse, result);
    return tb_mo_scalar(tb_mo_x_variable(b, result, node->place));
}

static mo_value lower_relation(mo_build *b, const mo_node *node, mo_value p, mo_value q)
{
    if (p.text || q.text || p.type.record || q.type.record || p.rank > 0 || q.rank > 0 ||
        (p.type.base == MO_T_BOOLEAN) != (q.type.base == MO_T_BOOLEAN)) {
        tb_mo_fail(b->source, node->place, "%s and %s cannot be compared",
                   p.text ? "text" : tb_mo_type_name(b, p.type, p.rank),
                   q.text ? "text" : tb_mo_type_name(b, q.type, q.rank));
        return tb_mo_nothing(node->place);
    }
    const mo_x *x = p.x, *y = q.x;
    if (x->base != y->base) {
        x = tb_mo_x_cast(b, x);
        y = tb_mo_x_cast(b, y);
    }
    const bool swap = node->op == MO_GREATER || node->op == MO_GREATER_EQUAL;
    const mo_x_op op = node->op == MO_EQUAL                            ? MO_X_EQUAL
                       : node->op == MO_NOT_EQUAL                      ? MO_X_NOT_EQUAL
                       : node->op == MO_LESS || node->op == MO_GREATER ? MO_X_LESS
                                                                       : MO_X_LESS_EQUAL;
    return tb_mo_scalar(
        tb_mo_x_apply(b, op, MO_T_BOOLEAN, node->place, swap ? y : x, swap ? x : y, NULL));
}

static const struct {
    const char *text;
    mo_x_op op;
    bool real; /* the result is always Real */
} ARITHMETIC[] = {
    [MO_ADD] = {"+", MO_X_ADD, false},
    [MO_SUBTRACT] = {"-", MO_X_SUBTRACT, false},
    [MO_MULTIPLY] = {"*", MO_X_MULTIPLY, false},
    [MO_DIVIDE] = {"/", MO_X_DIVIDE, true},
    [MO_POWER] = {"^", MO_X_POWER, true},
    [MO_ADD_EACH] = {".+", MO_X_ADD, false},
    [MO_SUBTRACT_EACH] = {".-", MO_X_SUBTRACT, false},
    [MO_MULTIPLY_EACH] = {".*", MO_X_MULTIPLY, false},
    [MO_DIVIDE_EACH] = {"./", MO_X_DIVIDE, true},
    [MO_POWER_EACH] = {".^", MO_X_POWER, true},
};

/* whether an operator that is not element-wise accepts the ranks */
static bool check_ranks(mo_build *b, const mo_node *node, const mo_value *p, const mo_value *q)
{
    const char *text = ARITHMETIC[node->op].text;
    bool fits = true;
    if (node->op == MO_ADD || node->op == MO_SUBTRACT) fits = p->rank == q->rank;
    if (node->op == MO_DIVIDE) fits = q->rank == 0;
    if (node->op == MO_POWER) fits = p->rank == 0 && q->rank == 0;
    if (!fits)
        tb_mo_fail(b->source, node->place, "%s %s %s is not defined, expected '.%s' for elements",
                   tb_mo_type_name(b, p->type, p->rank), text, tb_mo_type_name(b, q->type, q->rank),
                   text);
    return fits;
}

mo_value tb_mo_lower_binary(mo_build *b, const mo_node *node)
{
    if (node->op == MO_AND || node->op == MO_OR) return lower_logic(b, node);
    mo_value p = tb_mo_lower_expression(b, node->first);
    mo_value q = tb_mo_lower_expression(b, node->first->next);
    if (b->source->failed) return p;
    if (node->op >= MO_LESS && node->op <= MO_NOT_EQUAL) return lower_relation(b, node, p, q);
    if (node->op == MO_ADD && p.text != NULL && q.text != NULL) {
        p.text = tb_mo_format(b, "%s%s", p.text, q.text);
        return p;
    }
    const char *text = ARITHMETIC[node->op].text;
    if (!check_number(b, &p, text) || !check_number(b, &q, text)) return p;
    if (!check_ranks(b, node, &p, &q)) return p;
    if (node->op == MO_MULTIPLY && p.rank > 0 && q.rank > 0)
        return tb_mo_multiply(b, p, q, node->place);
    const bool real =
        ARITHMETIC[node->op].real || p.type.base == MO_T_REAL || q.type.base == MO_T_REAL;
    return tb_mo_each(b, ARITHMETIC[node->op].op, real ? MO_T_REAL : MO_T_INTEGER, node->place, &p,
                      &q);
}

/* ---- conditional expressions ---- */

static mo_value lower_conditional(mo_build *b, const mo_node *node)
{
    const mo_x *condition = tb_mo_lower_scalar(b, node->first, MO_T_BOOLEAN, "the condition of if");
    mo_aside yes, no;
    lower_aside(b, node->first->next, &yes);
    lower_aside(b, node->first->next->next, &no);
    if (b->source->failed) return tb_mo_nothing(node->place);
    const mo_value *p = &yes.value, *q = &no.value;
    const bool mixed = p->type.base != q->type.base;
    if (p->text || q->text || p->rank != q->rank || p->type.record || q->type.record ||
        (mixed && (p->type.base == MO_T_BOOLEAN || q->type.base == MO_T_BOOLEAN))) {
        tb_mo_fail(b->source, node->place, "the branches of if are %s and %s",
                   p->text ? "text" : tb_mo_type_name(b, p->type, p->rank),
                   q->text ? "text" : tb_mo_type_name(b, q->type, q->rank));
        return tb_mo_nothing(node->place);
    }
    const mo_base base = mixed ? MO_T_REAL : p->type.base;
    if (p->rank == 0 && yes.first == NULL && no.first == NULL) {
        const mo_x *x = mixed ? tb_mo_x_cast(b, p->x) : p->x;
        const mo_x *y = mixed ? tb_mo_x_cast(b, q->x) : q->x;
        return tb_mo_scalar(tb_mo_x_apply(b, MO_X_SELECT, base, node->place, condition, x, y));
    }
    const int32_t result = tb_mo_temporary(b, base, p->rank, node->place);
    mo_s *s = tb_mo_s(b, MO_S_IF, node->place);
    s->value = condition;
    assign_aside(b, &yes, &s->body, result);
    assign_aside(b, &no, &s->orelse, result);
    return p->rank == 0 ? tb_mo_scalar(tb_mo_x_variable(b, result, node->place))
                        : tb_mo_array_of(b, result, node->place);
}

/* ---- all ---- */

static mo_value lower_end(mo_build *b, const mo_node *node)
{
    if (b->end != NULL) return tb_mo_scalar(b->end);
    tb_mo_fail(b->source, node->place, "'end' outside of a subscript, expected an expression");
    return tb_mo_nothing(node->place);
}

mo_value tb_mo_lower_expression(mo_build *b, const mo_node *node)
{
    const mo_place place = node->place;
    mo_value value = tb_mo_nothing(place);
    if (b->source->failed) return value;
    switch (node->kind) {
    case MO_REAL: value = tb_mo_scalar(tb_mo_x_real(b, node->real, place)); break;
    case MO_INTEGER: value = tb_mo_scalar(tb_mo_x_integer(b, node->integer, place)); break;
    case MO_BOOLEAN: value = tb_mo_scalar(tb_mo_x_boolean(b, node->integer != 0, place)); break;
    case MO_STRING: value.text = node->text; break;
    case MO_REFERENCE: value = tb_mo_lower_reference(b, node); break;
    case MO_END: value = lower_end(b, node); break;
    case MO_RANGE: value = tb_mo_lower_range(b, node); break;
    case MO_UNARY: value = tb_mo_lower_unary(b, node); break;
    case MO_BINARY: value = tb_mo_lower_binary(b, node); break;
    case MO_IF: value = lower_conditional(b, node); break;
    case MO_CALL: value = tb_mo_lower_call(b, node); break;
    case MO_ARRAY: value = tb_mo_lower_array(b, node); break;
    case MO_MATRIX: value = tb_mo_lower_matrix(b, node); break;
    case MO_TUPLE:
        tb_mo_fail(b->source, place, "a list of %d expressions, expected one", node->count);
        break;
    default: tb_mo_fail(b->source, place, "expected an expression"); break;
    }
    value.place = place;
    return value;
}
