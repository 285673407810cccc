/* Statements: assignments, branches, loops, assertions and calls that stand alone. */
#include <string.h>

#include "modelica/lower/build.h"

/* ---- assignment ---- */

/* Whether a value is a temporary array as it is, whose content can be moved. */
static bool is_whole_temporary(const mo_build *b, const mo_value *value)
{
    return value->lazy->kind == MO_L_VARIABLE && value->lazy->subscripts == 0 &&
           b->function->variables[value->lazy->variable].temporary;
}

static bool is_whole(const mo_value *value)
{
    return value->lazy->kind == MO_L_VARIABLE && value->lazy->subscripts == 0;
}

static bool mentions(const mo_value *value, int32_t variable)
{
    for (int32_t d = 0; d < value->rank; d++)
        if (tb_mo_x_mentions(value->size[d], variable)) return true;
    return tb_mo_lazy_mentions(value->lazy, variable, false);
}

static void assign_array(mo_build *b, int32_t variable, mo_value value, mo_place place)
{
    const mo_variable *v = &b->function->variables[variable];
    bool resized = false;
    for (int32_t d = 0; d < v->rank; d++) {
        if (v->fixed[d])
            tb_mo_check_size(b, value.size[d], tb_mo_x_size(b, variable, d, place), place, d,
                             tb_mo_format(b, "'%s' and its value", v->name));
        else
            resized = true;
    }
    const bool same_type = value.lazy->base == v->base;
    if (same_type && is_whole(&value) && value.lazy->variable == variable) return;
    if (same_type && is_whole(&value) && !is_whole_temporary(b, &value)) {
        mo_s *s = tb_mo_s(b, MO_S_COPY, place);
        s->variable = variable;
        s->source = value.lazy->variable;
        return;
    }
    /* elements that are read at other places, or before a new size, need a copy first */
    if (!same_type || !is_whole_temporary(b, &value)) {
        if (resized ? mentions(&value, variable) : tb_mo_lazy_mentions(value.lazy, variable, true))
            value = tb_mo_array_of(b, tb_mo_materialise(b, &value), place);
    }
    if (b->source->failed) return;
    if (value.lazy->base == v->base && is_whole_temporary(b, &value)) {
        mo_s *s = tb_mo_s(b, MO_S_MOVE, place);
        s->variable = variable;
        s->source = value.lazy->variable;
        return;
    }
    if (resized) tb_mo_s_allocate(b, variable, v->rank, value.size, place);
    const mo_lazy target = {
        .kind = MO_L_VARIABLE, .base = v->base, .variable = variable, .place = place};
    tb_mo_store_all(b, &target, &value, place);
}

/* conditions on a value assigned to a target of a type and rank */
static bool check_assignable(mo_build *b, mo_type type, int32_t rank, mo_value *value,
                             const char *name, mo_place place)
{
    if (b->source->failed) return false;
    const bool numbers = type.base == value->type.base ||
                         (type.base == MO_T_REAL && value->type.base == MO_T_INTEGER);
    if (value->text == NULL && type.record == value->type.record && rank == value->rank &&
        (type.record != NULL || numbers))
        return true;
    tb_mo_fail(b->source, place, "'%s' is %s, its value is %s", name,
               tb_mo_type_name(b, type, rank),
               value->text ? "text" : tb_mo_type_name(b, value->type, value->rank));
    return false;
}

void tb_mo_assign_variable(mo_build *b, int32_t variable, mo_value value, mo_place place)
{
    const mo_variable v = b->function->variables[variable];
    if (!check_assignable(b, (mo_type){v.base, NULL}, v.rank, &value, v.name, place)) return;
    if (v.rank == 0)
        tb_mo_s_assign(b, variable, value.x, place);
    else
        assign_array(b, variable, value, place);
}

/* assigns to a scalar, an element, an array or a part of one */
static void assign_leaf(mo_build *b, const mo_value *target, mo_value value, const char *name,
                        mo_place place)
{
    if (!check_assignable(b, target->type, target->rank, &value, name, place)) return;
    if (target->rank == 0 && target->x->op == MO_X_ELEMENT) {
        mo_s *s = tb_mo_s(b, MO_S_STORE, place);
        s->variable = target->x->variable;
        s->count = target->x->count;
        memcpy(s->subscript, target->x->operand, sizeof s->subscript);
        s->value = target->type.base == MO_T_REAL ? tb_mo_x_cast(b, value.x) : value.x;
    } else if (target->rank == 0) {
        tb_mo_s_assign(b, target->x->variable, value.x, place);
    } else if (target->lazy->subscripts == 0) {
        assign_array(b, target->lazy->variable, value, place);
    } else {
        for (int32_t d = 0; d < target->rank; d++)
            tb_mo_check_size(b, target->size[d], value.size[d], place, d,
                             tb_mo_format(b, "a part of '%s' and its value", name));
        if (tb_mo_lazy_mentions(value.lazy, target->lazy->variable, false))
            value = tb_mo_array_of(b, tb_mo_materialise(b, &value), place);
        if (!b->source->failed) tb_mo_store_all(b, target->lazy, &value, place);
    }
}

/* A copy that does not change when the target's other fields are assigned. */
static mo_value detach(mo_build *b, mo_value value)
{
    if (value.rank == 0) {
        if (value.x->op == MO_X_CONSTANT) return value;
        const int32_t copy = tb_mo_temporary(b, value.type.base, 0, value.place);
        tb_mo_s_assign(b, copy, value.x, value.place);
        return tb_mo_scalar(tb_mo_x_variable(b, copy, value.place));
    }
    if (is_whole_temporary(b, &value)) return value;
    if (!is_whole(&value)) return tb_mo_array_of(b, tb_mo_materialise(b, &value), value.place);
    const int32_t copy = tb_mo_temporary(b, value.lazy->base, value.rank, value.place);
    mo_s *s = tb_mo_s(b, MO_S_COPY, value.place);
    s->variable = copy;
    s->source = value.lazy->variable;
    return tb_mo_array_of(b, copy, value.place);
}

/* assignable targets, before their subscripts are checked */
static bool check_target(mo_build *b, const mo_node *target)
{
    if (target->kind != MO_REFERENCE) {
        tb_mo_fail(b->source, target->place, "expected a variable left of ':='");
        return false;
    }
    const char *name = target->first->text;
    const mo_entity *e = tb_mo_find_entity(b, name);
    if (b->source->failed) return false;
    if (e == NULL) {
        tb_mo_fail(b->source, target->place, "no variable '%s' in function '%s'", name,
                   b->function->name);
    } else if (e->node == NULL) {
        tb_mo_fail(b->source, target->place, "'%s' is assigned inside its own loop", name);
    } else if (e->node->op & MO_INPUT) {
        tb_mo_fail(b->source, target->place, "input '%s' is assigned", name);
    }
    return !b->source->failed;
}

static void assign(mo_build *b, const mo_node *target, mo_value value)
{
    if (b->source->failed || !check_target(b, target)) return;
    const char *name = target->first->text;
    mo_value to = tb_mo_lower_reference(b, target);
    if (b->source->failed) return;
    if (to.leaves == 0) {
        assign_leaf(b, &to, value, name, target->place);
        return;
    }
    if (!check_assignable(b, to.type, to.rank, &value, name, target->place)) return;
    mo_value *leaf = TB_ARENA_ARRAY(b->arena, mo_value, to.leaves);
    for (int32_t k = 0; leaf != NULL && k < to.leaves; k++) leaf[k] = detach(b, value.leaf[k]);
    for (int32_t k = 0; leaf != NULL && k < to.leaves && !b->source->failed; k++)
        assign_leaf(b, &to.leaf[k], leaf[k], name, target->place);
}

static void lower_assign(mo_build *b, const mo_node *node)
{
    const mo_node *target = node->first, *right = target->next;
    if (target->kind != MO_TUPLE) {
        if (!check_target(b, target)) return;
        assign(b, target, tb_mo_lower_expression(b, right));
        return;
    }
    mo_value *values = NULL;
    const mo_class *callee = tb_mo_call_function(b, right, &values);
    if (callee == NULL) return;
    int32_t outputs = 0, k = 0;
    for (const mo_entity *e = callee->entities; e != NULL; e = e->next)
        outputs += (e->node->op & MO_OUTPUT) != 0;
    if (target->count > outputs) {
        tb_mo_fail(b->source, target->place, "function '%s' has %d outputs, not %d", callee->name,
                   outputs, target->count);
        return;
    }
    for (const mo_node *t = target->first; t != NULL && !b->source->failed; t = t->next, k++)
        if (t->kind != MO_LIST) assign(b, t, values[k]);
}

/* ---- control ---- */

static void lower_if(mo_build *b, const mo_node *node)
{
    mo_s **outer = NULL;
    for (const mo_node *branch = node->first; branch != NULL && !b->source->failed;
         branch = branch->next) {
        const mo_node *condition = branch->first, *list = condition->next;
        if (condition->kind == MO_LIST) {
            tb_mo_lower_statements(b, list);
            break;
        }
        const mo_x *x = tb_mo_lower_scalar(b, condition, MO_T_BOOLEAN, "a condition");
        mo_s *s = tb_mo_s(b, MO_S_IF, branch->place);
        s->value = x;
        if (outer == NULL) outer = b->tail;
        b->tail = &s->body;
        tb_mo_lower_statements(b, list);
        b->tail = &s->orelse;
    }
    if (outer != NULL) b->tail = outer;
}

static void lower_while(mo_build *b, const mo_node *node)
{
    mo_s *s = tb_mo_s(b, MO_S_WHILE, node->place);
    mo_s **outer = b->tail;
    b->tail = &s->body;
    b->loops++;
    const mo_x *x = tb_mo_lower_scalar(b, node->first, MO_T_BOOLEAN, "the condition of while");
    mo_s *test = tb_mo_s(b, MO_S_IF, node->place);
    test->value = x;
    mo_s **after = b->tail;
    b->tail = &test->orelse;
    tb_mo_s(b, MO_S_BREAK, node->place);
    b->tail = after;
    tb_mo_lower_statements(b, node->first->next);
    b->loops--;
    b->tail = outer;
}

static void lower_for(mo_build *b, const mo_node *iterator)
{
    enum { MOST = 20 };
    mo_s **outer = NULL;
    if (iterator->kind == MO_LIST) {
        tb_mo_lower_statements(b, iterator);
        return;
    }
    if (b->loops > MOST) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, iterator->place,
                      "more than %d loops inside one another", MOST);
        return;
    }
    if (!tb_mo_open_iterator(b, iterator, &outer)) return;
    b->loops++;
    lower_for(b, iterator->next);
    b->loops--;
    tb_mo_close_iterator(b, outer);
}

/* ---- calls ---- */

static void lower_assert(mo_build *b, const mo_node *call)
{
    const mo_node *condition = call->first;
    const mo_node *message = condition != NULL ? condition->next : NULL;
    if (message == NULL || call->count > 3 || message->kind == MO_NAMED) {
        tb_mo_fail(b->source, call->place, "assert has a condition and a message");
        return;
    }
    const mo_node *level = message->next;
    if (level != NULL && level->kind == MO_NAMED) level = level->first;
    if (level != NULL && (level->kind != MO_REFERENCE || level->count != 2 ||
                          strcmp(level->last->text, "error") != 0)) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, level->place,
                      "levels of assert other than AssertionLevel.error are left out");
        return;
    }
    const mo_x *x = tb_mo_lower_scalar(b, condition, MO_T_BOOLEAN, "the condition of assert");
    const mo_value text = tb_mo_lower_expression(b, message);
    if (b->source->failed) return;
    if (text.text == NULL)
        tb_mo_fail(b->source, message->place, "expected a text as the message of assert");
    tb_mo_s_assert(b, x, TB_FAILED_PRECONDITION, call->place, text.text);
}

static void lower_statement(mo_build *b, const mo_node *node)
{
    mo_value *values;
    switch (node->kind) {
    case MO_ASSIGN: lower_assign(b, node); break;
    case MO_IF_STATEMENT: lower_if(b, node); break;
    case MO_FOR: lower_for(b, node->first); break;
    case MO_WHILE: lower_while(b, node); break;
    case MO_BREAK:
        if (b->loops == 0) tb_mo_fail(b->source, node->place, "break outside of a loop");
        tb_mo_s(b, MO_S_BREAK, node->place);
        break;
    case MO_RETURN: tb_mo_s(b, MO_S_RETURN, node->place); break;
    case MO_CALL_ALONE:
        if (strcmp(node->first->text, "assert") == 0)
            lower_assert(b, node->first);
        else
            tb_mo_call_function(b, node->first, &values);
        break;
    default: tb_mo_fail(b->source, node->place, "expected a statement"); break;
    }
}

void tb_mo_lower_statements(mo_build *b, const mo_node *list)
{
    for (const mo_node *s = list->first; s != NULL && !b->source->failed; s = s->next)
        lower_statement(b, s);
}
