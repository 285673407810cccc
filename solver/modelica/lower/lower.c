/* Lowering a program: signatures of all functions first, so that they may call one another, then
 * their declarations and statements.
 *
 * Declarations of a function are worked through in the order of their dependence: a size or a
 * binding that mentions another component makes that component ready first. */
#include <string.h>

#include "modelica/lower/build.h"

/* ---- signatures ---- */

/* variables of a component: one, or one for each field of a record */
static void add_variables(mo_build *b, mo_entity *entity, const mo_node *sizes)
{
    const mo_node *node = entity->node;
    mo_leaves leaves = {0};
    entity->variable = b->function->count;
    entity->leaves = 1;
    for (const mo_node *d = sizes != NULL ? sizes->first : NULL; d != NULL; d = d->next)
        entity->rank++;
    if (entity->rank > MO_RANK) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, node->place, "'%s' has more than %d dimensions",
                      node->text, MO_RANK);
        return;
    }
    if (entity->type.record == NULL) {
        tb_mo_variable(b, node->text, entity->type.base, entity->rank, node->place);
    } else if (tb_mo_open_record(b, entity->type.record, node->place, &leaves)) {
        entity->leaves = leaves.count;
        for (int32_t k = 0; k < leaves.count && !b->source->failed; k++) {
            if (entity->rank + leaves.leaf[k].rank > MO_RANK) {
                tb_mo_fail_as(b->source, TB_UNSUPPORTED, node->place,
                              "'%s.%s' has more than %d dimensions", node->text,
                              leaves.leaf[k].suffix, MO_RANK);
                return;
            }
            tb_mo_variable(b,
                           tb_mo_dotted(b->source, node->text, leaves.leaf[k].suffix, node->place),
                           leaves.leaf[k].base, entity->rank + leaves.leaf[k].rank, node->place);
        }
    }
}

static mo_entity *add_entity(mo_build *b, mo_class *class, const mo_node *node, mo_entity ***last)
{
    mo_entity *entity = TB_ARENA_ZEROED(b->arena, mo_entity, 1);
    if (entity == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, node->place, "no memory");
        return NULL;
    }
    entity->name = node->text;
    entity->node = node;
    entity->flag = -1;
    const mo_node *sizes = node->first != NULL && node->first->count > 0 ? node->first : NULL;
    if (!tb_mo_find_type(b, node->type, class, node->place, &entity->type, &sizes)) return NULL;
    add_variables(b, entity, sizes);
    **last = entity;
    *last = &entity->next;
    return entity;
}

/* the binding of a declaration, or NULL */
static const mo_node *binding_of(const mo_node *component)
{
    for (const mo_node *c = component->first; c != NULL; c = c->next)
        if (c->kind == MO_BINDING) return c->first;
    return NULL;
}

static void add_role(mo_build *b, mo_class *class, int role, mo_entity ***last)
{
    for (const mo_node *e = class->node->first; e != NULL && !b->source->failed; e = e->next) {
        if (e->kind != MO_COMPONENT) continue;
        if ((e->op & (MO_INPUT | MO_OUTPUT)) != role) continue;
        mo_entity *entity = add_entity(b, class, e, last);
        if (b->source->failed || entity == NULL) return;
        for (int32_t k = 0; k < entity->leaves; k++) {
            mo_variable *v = &b->function->variables[entity->variable + k];
            v->role = role == MO_INPUT ? MO_IN : role == MO_OUTPUT ? MO_OUT : MO_LOCAL;
            v->optional = role == MO_INPUT && binding_of(e) != NULL;
        }
    }
}

static void lower_signature(mo_build *b, mo_class *class)
{
    mo_function *f = b->function = class->function;
    mo_entity **last = &class->entities;
    add_role(b, class, MO_INPUT, &last);
    f->inputs = f->count;
    int32_t *flag = TB_ARENA_ARRAY(b->arena, int32_t, f->inputs + 1);
    if (flag == NULL || b->source->failed) return;
    for (mo_entity *e = class->entities; e != NULL; e = e->next) {
        if (binding_of(e->node) != NULL) {
            e->flag = tb_mo_variable(b, tb_mo_format(b, "given(%s)", e->name), MO_T_BOOLEAN, 0,
                                     e->node->place);
            f->variables[e->flag].role = MO_IN;
        }
        for (int32_t k = 0; k < e->leaves; k++) flag[e->variable + k] = e->flag;
    }
    f->flag = flag;
    f->flags = f->count - f->inputs;
    const int32_t before = f->count;
    add_role(b, class, MO_OUTPUT, &last);
    f->outputs = f->count - before;
    if (f->outputs == 0) tb_mo_fail(b->source, f->place, "function '%s' has no output", f->name);
    add_role(b, class, 0, &last);
}

static void for_each(mo_build *b, mo_class *class, void (*apply)(mo_build *, mo_class *))
{
    for (mo_class *c = class->classes; c != NULL && !b->source->failed; c = c->next) {
        b->scope = c;
        if (c->function != NULL) apply(b, c);
        for_each(b, c, apply);
    }
}

/* ---- declarations ---- */

/* where the sizes of a leaf are written: those of the component, then those of the field */
static int32_t sizes_of(mo_build *b, const mo_entity *entity, int32_t leaf, const mo_node **sizes,
                        mo_class **scopes)
{
    int32_t rank = 0;
    const mo_node *own =
        entity->node->first != NULL && entity->node->first->count > 0 ? entity->node->first : NULL;
    mo_type type;
    tb_mo_find_type(b, entity->node->type, b->scope, entity->node->place, &type, &own);
    for (const mo_node *d = own != NULL ? own->first : NULL; d != NULL; d = d->next) {
        scopes[rank] = b->scope;
        sizes[rank++] = d;
    }
    if (entity->type.record == NULL) return rank;
    mo_leaves leaves = {0};
    if (!tb_mo_open_record(b, entity->type.record, entity->node->place, &leaves)) return rank;
    for (int32_t d = 0; d < leaves.leaf[leaf].rank; d++) {
        scopes[rank] = leaves.leaf[leaf].scope;
        sizes[rank++] = leaves.leaf[leaf].sizes[d];
    }
    return rank;
}

/* Sizes of a variable: checked for an input, given to any other. */
static void lower_sizes(mo_build *b, mo_entity *entity, int32_t leaf)
{
    const int32_t variable = entity->variable + leaf;
    const mo_node *sizes[MO_RANK];
    mo_class *scopes[MO_RANK];
    const mo_x *size[MO_RANK];
    const int32_t rank = sizes_of(b, entity, leaf, sizes, scopes);
    const mo_place place = entity->node->place;
    const bool input = b->function->variables[variable].role == MO_IN;
    for (int32_t d = 0; d < rank && !b->source->failed; d++) {
        size[d] = tb_mo_x_integer(b, 0, place);
        if (sizes[d]->kind == MO_COLON) continue;
        mo_class *scope = b->scope;
        b->scope = scopes[d];
        const mo_x *x = tb_mo_lower_scalar(b, sizes[d], MO_T_INTEGER, "a size");
        b->scope = scope;
        if (b->source->failed) return;
        b->function->variables[variable].fixed[d] = true;
        size[d] = tb_mo_x_stable(b, x) ? x : tb_mo_hoist(b, x);
        if (input) {
            mo_x *actual = tb_mo_x(b, MO_X_SIZE, MO_T_INTEGER, sizes[d]->place);
            actual->variable = variable;
            actual->dimension = d;
            tb_mo_check_size(b, actual, size[d], sizes[d]->place, d,
                             tb_mo_format(b, "input '%s' and its declaration",
                                          b->function->variables[variable].name));
        }
        if (tb_mo_x_stable(b, x) && !b->function->variables[variable].optional)
            b->function->variables[variable].size[d] = x;
    }
    if (!input && rank > 0 && !b->source->failed) tb_mo_s_allocate(b, variable, rank, size, place);
}

static void lower_default(mo_build *b, mo_entity *entity, const mo_node *binding)
{
    const mo_place place = binding->place;
    mo_s *s = tb_mo_s(b, MO_S_IF, place);
    s->value = tb_mo_x_variable(b, entity->flag, place);
    mo_s **outer = b->tail;
    b->tail = &s->orelse;
    mo_value value = tb_mo_lower_expression(b, binding);
    if (!b->source->failed && value.leaves != entity->leaves && entity->leaves > 1)
        tb_mo_fail(b->source, place, "the default of '%s' is no record '%s'", entity->name,
                   entity->type.record->name);
    for (int32_t k = 0; k < entity->leaves && !b->source->failed; k++)
        tb_mo_assign_variable(b, entity->variable + k, value.leaves > 0 ? value.leaf[k] : value,
                              place);
    b->tail = outer;
}

static void lower_binding(mo_build *b, mo_entity *entity, const mo_node *binding)
{
    const mo_place place = binding->place;
    mo_value value = tb_mo_lower_expression(b, binding);
    if (b->source->failed) return;
    mo_variable *v = &b->function->variables[entity->variable];
    if (entity->type.record != value.type.record) {
        tb_mo_fail(b->source, place, "'%s' is %s, its value is %s", entity->name,
                   tb_mo_type_name(b, entity->type, entity->rank),
                   tb_mo_type_name(b, value.type, value.rank));
        return;
    }
    /* a local scalar that is never assigned is a name for its value */
    if (v->rank == 0 && v->role == MO_LOCAL && !v->assigned && entity->leaves == 1 &&
        value.x != NULL && value.rank == 0 && tb_mo_convert(b, &value, v->base, entity->name) &&
        (value.x->op == MO_X_CONSTANT || tb_mo_x_stable(b, value.x))) {
        v->value = value.x;
        return;
    }
    for (int32_t k = 0; k < entity->leaves && !b->source->failed; k++)
        tb_mo_assign_variable(b, entity->variable + k, value.leaves > 0 ? value.leaf[k] : value,
                              place);
}

static void make_ready(mo_build *b, mo_entity *entity);

/* Makes the components ready that an expression mentions, before any statement of it. */
static void ready_mentioned(mo_build *b, const mo_node *node)
{
    if (node->kind == MO_REFERENCE)
        for (mo_entity *e = b->entities; e != NULL; e = e->next)
            if (strcmp(e->name, node->first->text) == 0) make_ready(b, e);
    for (const mo_node *c = node->first; c != NULL && !b->source->failed; c = c->next)
        ready_mentioned(b, c);
}

static void make_ready(mo_build *b, mo_entity *entity)
{
    enum { DEEPEST = 100 };
    if (entity->state == MO_READY || entity->node == NULL) return;
    if (b->constants >= DEEPEST) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, entity->node->place,
                      "more than %d declarations depend on one another", DEEPEST);
        return;
    }
    if (entity->state == MO_VISITING) {
        tb_mo_fail(b->source, entity->node->place, "the declaration of '%s' depends on itself",
                   entity->name);
        return;
    }
    entity->state = MO_VISITING;
    const mo_x *end = b->end;
    b->end = NULL;
    b->constants++;
    for (const mo_node *c = entity->node->first; c != NULL; c = c->next) ready_mentioned(b, c);
    const mo_node *binding = binding_of(entity->node);
    /* a size may depend on the default of another input, and a check on the own default */
    const bool input = b->function->variables[entity->variable].role == MO_IN;
    if (input && binding != NULL) lower_default(b, entity, binding);
    for (int32_t k = 0; k < entity->leaves && !b->source->failed; k++) lower_sizes(b, entity, k);
    if (!input && binding != NULL && !b->source->failed) lower_binding(b, entity, binding);
    b->end = end;
    b->constants--;
    entity->state = MO_READY;
}

mo_entity *tb_mo_find_entity(mo_build *b, const char *name)
{
    for (mo_entity *e = b->entities; e != NULL; e = e->next)
        if (strcmp(e->name, name) == 0) {
            make_ready(b, e);
            return e;
        }
    return NULL;
}

/* ---- bodies ---- */

/* the variables that statements assign, so that the others can be names for values */
static void mark_assigned(mo_build *b, const mo_node *node)
{
    if (node->kind == MO_ASSIGN) {
        const mo_node *target = node->first;
        const mo_node *one = target->kind == MO_TUPLE ? target->first : target;
        for (; one != NULL; one = target->kind == MO_TUPLE ? one->next : NULL) {
            if (one->kind != MO_REFERENCE) continue;
            for (mo_entity *e = b->entities; e != NULL; e = e->next)
                if (strcmp(e->name, one->first->text) == 0)
                    for (int32_t k = 0; k < e->leaves; k++)
                        b->function->variables[e->variable + k].assigned = true;
        }
        return;
    }
    for (const mo_node *c = node->first; c != NULL; c = c->next) mark_assigned(b, c);
}

static void lower_body(mo_build *b, mo_class *class)
{
    mo_function *f = b->function = class->function;
    const mo_node *algorithm = NULL;
    b->entities = class->entities;
    b->tail = &f->body;
    b->loops = 0;
    for (const mo_node *e = class->node->first; e != NULL; e = e->next)
        if (e->kind == MO_ALGORITHM) algorithm = e;
    if (algorithm != NULL) mark_assigned(b, algorithm);
    for (mo_entity *e = class->entities; e != NULL && !b->source->failed; e = e->next) {
        const mo_variable *v = &f->variables[e->variable];
        if (v->role == MO_OUT && !v->assigned && binding_of(e->node) == NULL)
            tb_mo_fail(b->source, e->node->place, "output '%s' is never assigned", e->name);
        if ((e->node->op & (MO_CONSTANT | MO_PARAMETER)) && v->assigned)
            tb_mo_fail(b->source, e->node->place, "constant '%s' is assigned", e->name);
        if ((e->node->op & MO_CONSTANT) && v->role == MO_LOCAL && binding_of(e->node) == NULL)
            tb_mo_fail(b->source, e->node->place, "constant '%s' has no value", e->name);
        if (!b->source->failed) make_ready(b, e);
    }
    if (algorithm != NULL && !b->source->failed) tb_mo_lower_statements(b, algorithm);
}

tb_status tb_mo_lower(mo_program *program)
{
    mo_source *source = &program->source;
    mo_build b = {.program = program, .source = source, .arena = source->arena};
    mo_node *classes = NULL;
    tb_status status = tb_mo_parse(source, &classes);
    if (status == TB_OK) status = tb_mo_declare(&b, classes);
    if (status == TB_OK) for_each(&b, b.root, lower_signature);
    if (!source->failed) for_each(&b, b.root, lower_body);
    if (!source->failed && program->count == 0)
        tb_mo_fail(source, (mo_place){1, 1}, "the source holds no function");
    if (!source->failed) return TB_OK;
    return source->error != NULL ? source->error->status : TB_INVALID_ARGUMENT;
}
