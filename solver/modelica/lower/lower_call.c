/* Calls of functions of the source and of constructors of records. */
#include <string.h>

#include "modelica/lower/build.h"

/* the argument for an input: by position or by name; NULL if it is not given */
static const mo_node *argument_for(const mo_node *call, int32_t position, const char *name)
{
    int32_t k = 0;
    for (const mo_node *a = call->first; a != NULL; a = a->next) {
        if (a->kind == MO_NAMED && strcmp(a->text, name) == 0) return a->first;
        if (a->kind != MO_NAMED && k++ == position) return a;
    }
    return NULL;
}

/* whether each named argument names one of the components with a role, and none is given twice */
static bool check_arguments(mo_build *b, const mo_node *call, const mo_class *callee, int role)
{
    int32_t positional = 0, inputs = 0;
    for (const mo_node *a = call->first; a != NULL; a = a->next) {
        if (a->kind == MO_COMPREHENSION)
            tb_mo_fail(b->source, a->place, "iterators are for sum, product, min and max");
        if (a->kind != MO_NAMED) {
            positional++;
            continue;
        }
        int32_t k = 0;
        bool found = false;
        for (const mo_node *e = callee->node->first; e != NULL; e = e->next) {
            if (e->kind != MO_COMPONENT || (e->op & (MO_INPUT | MO_OUTPUT)) != role) continue;
            if (strcmp(e->text, a->text) == 0) {
                found = true;
                if (k < positional) tb_mo_fail(b->source, a->place, "'%s' is given twice", a->text);
            }
            k++;
        }
        for (const mo_node *o = call->first; o != a; o = o->next)
            if (o->kind == MO_NAMED && strcmp(o->text, a->text) == 0)
                tb_mo_fail(b->source, a->place, "'%s' is given twice", a->text);
        if (!found)
            tb_mo_fail(b->source, a->place, "'%s' has no input '%s'", callee->name, a->text);
    }
    for (const mo_node *e = callee->node->first; e != NULL; e = e->next)
        inputs += e->kind == MO_COMPONENT && (e->op & (MO_INPUT | MO_OUTPUT)) == role;
    if (positional > inputs)
        tb_mo_fail(b->source, call->place, "'%s' has %d inputs, not %d", callee->name, inputs,
                   positional);
    return !b->source->failed;
}

static void pass(mo_build *b, const mo_variable *to, mo_value value, mo_argument *argument)
{
    if (value.rank != to->rank) {
        tb_mo_fail(b->source, value.place, "input '%s' is %s, its value is %s", to->name,
                   tb_mo_type_name(b, (mo_type){to->base, NULL}, to->rank),
                   tb_mo_type_name(b, value.type, value.rank));
        return;
    }
    if (!tb_mo_convert(b, &value, to->base, tb_mo_format(b, "input '%s'", to->name))) return;
    if (to->rank == 0)
        argument->value = value.x;
    else
        argument->variable = tb_mo_materialise(b, &value);
}

/* value of an input that is not given: its function stores the default there */
static void pass_nothing(mo_build *b, const mo_variable *to, mo_argument *argument, mo_place place)
{
    if (to->rank > 0) {
        argument->variable = tb_mo_temporary(b, to->base, to->rank, place);
    } else {
        mo_x *zero = tb_mo_x(b, MO_X_CONSTANT, to->base, place);
        argument->value = zero;
    }
}

static void pass_inputs(mo_build *b, const mo_node *call, const mo_class *callee, mo_s *s)
{
    const mo_function *f = callee->function;
    int32_t position = 0;
    for (const mo_entity *e = callee->entities; e != NULL && !b->source->failed; e = e->next) {
        if (!(e->node->op & MO_INPUT)) continue;
        const mo_node *given = argument_for(call, position++, e->name);
        if (given == NULL && e->flag < 0) {
            tb_mo_fail(b->source, call->place, "'%s' needs its input '%s'", f->name, e->name);
            return;
        }
        if (e->flag >= 0)
            s->arguments[e->flag].value = tb_mo_x_boolean(b, given != NULL, call->place);
        for (int32_t k = 0; given == NULL && k < e->leaves; k++)
            pass_nothing(b, &f->variables[e->variable + k], &s->arguments[e->variable + k],
                         call->place);
        if (given == NULL) continue;
        mo_value value = tb_mo_lower_expression(b, given);
        if (b->source->failed) return;
        if (value.type.record != e->type.record || value.text) {
            tb_mo_fail(b->source, given->place, "input '%s' is %s, its value is %s", e->name,
                       tb_mo_type_name(b, e->type, e->rank),
                       value.text ? "text" : tb_mo_type_name(b, value.type, value.rank));
            return;
        }
        for (int32_t k = 0; k < e->leaves && !b->source->failed; k++)
            pass(b, &f->variables[e->variable + k], value.leaves > 0 ? value.leaf[k] : value,
                 &s->arguments[e->variable + k]);
    }
}

static mo_value value_of(mo_build *b, int32_t variable, mo_place place)
{
    return b->function->variables[variable].rank > 0
               ? tb_mo_array_of(b, variable, place)
               : tb_mo_scalar(tb_mo_x_variable(b, variable, place));
}

static void take_outputs(mo_build *b, const mo_class *callee, mo_s *s, mo_value *values)
{
    const mo_function *f = callee->function;
    const int32_t first = f->inputs + f->flags;
    int32_t k = 0;
    for (int32_t i = 0; i < f->outputs; i++) {
        const mo_variable *v = &f->variables[first + i];
        s->results[i] = tb_mo_temporary(b, v->base, v->rank, s->place);
    }
    for (const mo_entity *e = callee->entities; e != NULL && !b->source->failed; e = e->next) {
        if (!(e->node->op & MO_OUTPUT)) continue;
        const int32_t at = e->variable - first;
        mo_value *value = &values[k++];
        if (e->type.record == NULL) {
            *value = value_of(b, s->results[at], s->place);
            continue;
        }
        *value =
            (mo_value){.type = e->type, .rank = e->rank, .place = s->place, .leaves = e->leaves};
        value->leaf = TB_ARENA_ARRAY(b->arena, mo_value, e->leaves);
        for (int32_t i = 0; value->leaf != NULL && i < e->leaves; i++)
            value->leaf[i] = value_of(b, s->results[at + i], s->place);
    }
}

static mo_class *lower_function_call(mo_build *b, const mo_node *node, mo_class *callee,
                                     mo_value **values)
{
    const mo_function *f = callee->function;
    if (!check_arguments(b, node, callee, MO_INPUT)) return NULL;
    mo_s call = {.op = MO_S_CALL, .place = node->place, .callee = f};
    call.arguments = TB_ARENA_ZEROED(b->arena, mo_argument, f->inputs + f->flags + 1);
    call.results = TB_ARENA_ZEROED(b->arena, int32_t, f->outputs + 1);
    *values = TB_ARENA_ZEROED(b->arena, mo_value, f->outputs + 1);
    if (call.arguments == NULL || call.results == NULL || *values == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, node->place, "no memory for a call");
        return NULL;
    }
    pass_inputs(b, node, callee, &call);
    if (b->source->failed) return NULL;
    take_outputs(b, callee, &call, *values);
    mo_s *s = tb_mo_s(b, MO_S_CALL, node->place);
    call.next = s->next;
    *s = call;
    return b->source->failed ? NULL : callee;
}

/* the function that is called; NULL, with a diagnosis, if there is none */
static mo_class *find_callee(mo_build *b, const mo_node *node)
{
    mo_class *callee = tb_mo_find_class(b, node->text, b->scope);
    if (callee == NULL)
        tb_mo_fail(b->source, node->place, "no function '%s'", node->text);
    else if (callee->function == NULL)
        tb_mo_fail(b->source, node->place, "'%s' is no function", node->text);
    return b->source->failed ? NULL : callee;
}

mo_class *tb_mo_call_function(mo_build *b, const mo_node *node, mo_value **values)
{
    mo_class *callee = find_callee(b, node);
    return callee != NULL ? lower_function_call(b, node, callee, values) : NULL;
}

/* ---- records ---- */

static void add_leaves(mo_value *record, const mo_value *field)
{
    if (field->leaves == 0) record->leaf[record->leaves++] = *field;
    for (int32_t k = 0; k < field->leaves; k++) record->leaf[record->leaves++] = field->leaf[k];
}

static mo_value lower_record(mo_build *b, const mo_node *node, mo_class *class)
{
    mo_value record = {.type = {MO_T_REAL, class}, .place = node->place};
    mo_leaves leaves = {0};
    if (!check_arguments(b, node, class, 0)) return tb_mo_nothing(node->place);
    if (!tb_mo_open_record(b, class, node->place, &leaves)) return tb_mo_nothing(node->place);
    record.leaf = TB_ARENA_ZEROED(b->arena, mo_value, leaves.count);
    int32_t position = 0;
    for (const mo_node *e = class->node->first; e != NULL && !b->source->failed; e = e->next) {
        if (e->kind != MO_COMPONENT || record.leaf == NULL) continue;
        const mo_node *given = argument_for(node, position++, e->text);
        const mo_node *binding = NULL,
                      *sizes = e->first != NULL && e->first->count > 0 ? e->first : NULL;
        for (const mo_node *c = e->first; c != NULL; c = c->next)
            if (c->kind == MO_BINDING) binding = c->first;
        if (given == NULL && binding == NULL) {
            tb_mo_fail(b->source, node->place, "record '%s' needs its field '%s'", class->name,
                       e->text);
            break;
        }
        mo_class *scope = b->scope;
        mo_type type;
        if (given == NULL) b->scope = class;
        mo_value value = tb_mo_lower_expression(b, given != NULL ? given : binding);
        b->scope = scope;
        if (!tb_mo_find_type(b, e->type, class, e->place, &type, &sizes)) break;
        const int32_t rank = sizes != NULL ? sizes->count : 0;
        if (b->source->failed) break;
        if (value.text || value.type.record != type.record || value.rank != rank) {
            tb_mo_fail(b->source, value.place, "field '%s' is %s, its value is %s", e->text,
                       tb_mo_type_name(b, type, rank),
                       value.text ? "text" : tb_mo_type_name(b, value.type, value.rank));
            break;
        }
        if (type.record == NULL && !tb_mo_convert(b, &value, type.base, e->text)) break;
        add_leaves(&record, &value);
    }
    return b->source->failed || record.leaf == NULL ? tb_mo_nothing(node->place) : record;
}

mo_value tb_mo_lower_call(mo_build *b, const mo_node *node)
{
    mo_value value = tb_mo_nothing(node->place), *values = NULL;
    mo_class *class = tb_mo_find_class(b, node->text, b->scope);
    if (class == NULL) {
        if (tb_mo_lower_builtin(b, node, tb_mo_plain_name(b, node->text), &value)) return value;
        tb_mo_fail(b->source, node->place, "no function '%s'", node->text);
        return value;
    }
    if (class->node->op == MO_RECORD) return lower_record(b, node, class);
    if (class->function == NULL) {
        tb_mo_fail(b->source, node->place, "'%s' is a package, expected a function", class->name);
        return value;
    }
    return lower_function_call(b, node, class, &values) != NULL ? values[0] : value;
}
