/* References: components, their fields and subscripts, and constants of packages. */
#include <stdio.h>
#include <string.h>

#include "modelica/lower/build.h"

/* The part of a reference that is lowered so far. */
typedef struct mo_walk {
    int32_t variable; /* a variable of the component: sizes are asked of it */
    int32_t count;    /* subscripts */
    mo_subscript subscript[MO_RANK];
    bool whole;                   /* no subscript but ':' */
    char path[MO_NAME_BYTES + 1]; /* of fields */
} mo_walk;

static void lower_subscript(mo_build *b, const mo_node *node, mo_walk *walk)
{
    mo_subscript *s = &walk->subscript[walk->count];
    *s = (mo_subscript){.kind = MO_FROM};
    if (node->kind == MO_COLON) {
        walk->count++;
        return;
    }
    const mo_x *outer = b->end;
    b->end = tb_mo_x_size(b, walk->variable, walk->count, node->place);
    mo_value value = tb_mo_lower_expression(b, node);
    b->end = outer;
    if (b->source->failed) return;
    if (value.text || value.type.record || value.type.base != MO_T_INTEGER || value.rank > 1) {
        tb_mo_fail(b->source, node->place,
                   "a subscript is %s, expected Integer, a range or a vector of Integer",
                   value.text ? "text" : tb_mo_type_name(b, value.type, value.rank));
        return;
    }
    walk->whole = false;
    walk->count++;
    if (value.rank == 0) {
        s->kind = MO_AT;
        s->x = value.x;
    } else if (value.lazy->kind == MO_L_RANGE) {
        s->x = value.lazy->x;
        s->step = value.lazy->step;
        /* the number of elements waits where a vector's name would */
        s->vector = tb_mo_temporary(b, MO_T_INTEGER, 0, node->place);
        tb_mo_s_assign(b, s->vector, value.size[0], node->place);
    } else {
        s->kind = MO_VECTOR;
        s->vector = tb_mo_materialise(b, &value);
        /* a copy: the assignment may change the vector that it reads */
        if (!b->source->failed && !b->function->variables[s->vector].temporary) {
            mo_s *copy = tb_mo_s(b, MO_S_COPY, node->place);
            copy->source = s->vector;
            copy->variable = s->vector = tb_mo_temporary(b, MO_T_INTEGER, 1, node->place);
        }
    }
}

static void lower_part(mo_build *b, const mo_node *part, int32_t rank, mo_walk *walk)
{
    if (part->count > rank) {
        tb_mo_fail(b->source, part->place, "'%s' has %d dimensions, not %d subscripts", part->text,
                   rank, part->count);
        return;
    }
    if (walk->count + rank > MO_RANK) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, part->place, "more than %d subscripts", MO_RANK);
        return;
    }
    for (const mo_node *s = part->first; s != NULL && !b->source->failed; s = s->next)
        lower_subscript(b, s, walk);
    for (int32_t d = part->count; d < rank; d++)
        walk->subscript[walk->count++] = (mo_subscript){.kind = MO_FROM};
}

/* the walk's subscripts on a variable */
static mo_value subscripted(mo_build *b, int32_t variable, const mo_walk *walk, mo_place place)
{
    const mo_variable v = b->function->variables[variable];
    mo_value value = {.type = {v.base, NULL}, .place = place};
    int32_t count = walk->count;
    mo_subscript subscript[MO_RANK] = {{0}};
    memcpy(subscript, walk->subscript, sizeof subscript);
    while (count < v.rank) subscript[count++] = (mo_subscript){.kind = MO_FROM};

    bool element = true;
    for (int32_t d = 0; d < count; d++) element = element && subscript[d].kind == MO_AT;
    if (v.rank == 0) return tb_mo_scalar(tb_mo_x_variable(b, variable, place));
    if (element) {
        mo_x *x = tb_mo_x(b, MO_X_ELEMENT, v.base, place);
        x->variable = variable;
        x->count = count;
        for (int32_t d = 0; d < count; d++) x->operand[d] = subscript[d].x;
        return tb_mo_scalar(x);
    }
    mo_lazy *lazy = TB_ARENA_ZEROED(b->arena, mo_lazy, 1);
    if (lazy == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, place, "no memory");
        return tb_mo_nothing(place);
    }
    *lazy = (mo_lazy){.kind = MO_L_VARIABLE, .base = v.base, .variable = variable, .place = place};
    lazy->subscripts = walk->whole ? 0 : count;
    for (int32_t d = 0; d < count; d++) {
        mo_subscript *s = &subscript[d];
        if (s->kind == MO_AT) {
            s->x = tb_mo_hoist(b, s->x);
        } else if (s->kind == MO_VECTOR) {
            value.size[value.rank++] = tb_mo_x_size(b, s->vector, 0, place);
        } else if (s->x == NULL) {
            value.size[value.rank++] = tb_mo_x_size(b, variable, d, place);
        } else {
            s->x = tb_mo_hoist(b, s->x);
            s->step = tb_mo_hoist(b, s->step);
            value.size[value.rank++] = tb_mo_x_variable(b, s->vector, place);
        }
        lazy->subscript[d] = *s;
    }
    value.lazy = lazy;
    return value;
}

/* ---- fields ---- */

/* the field of a record with a name, its type and rank; false with a diagnosis */
static bool find_field(mo_build *b, mo_class *record, const mo_node *part, mo_type *type,
                       int32_t *rank)
{
    for (const mo_node *e = record->node->first; e != NULL; e = e->next) {
        if (e->kind != MO_COMPONENT || strcmp(e->text, part->text) != 0) continue;
        const mo_node *sizes = e->first != NULL && e->first->count > 0 ? e->first : NULL;
        if (!tb_mo_find_type(b, e->type, record, e->place, type, &sizes)) return false;
        *rank = sizes != NULL ? sizes->count : 0;
        return true;
    }
    tb_mo_fail(b->source, part->place, "record '%s' has no field '%s'", record->name, part->text);
    return false;
}

/* whether a field's name is the path, or begins with it and a point */
static bool is_below(const char *suffix, const char *path)
{
    const size_t length = strlen(path);
    return length == 0 || (strncmp(suffix, path, length) == 0 &&
                           (suffix[length] == '\0' || suffix[length] == '.'));
}

static mo_value lower_component(mo_build *b, const mo_node *node, const mo_entity *entity)
{
    mo_walk walk = {.variable = entity->variable, .whole = true};
    mo_type type = entity->type;
    int32_t rank = 0;
    mo_leaves leaves = {0};
    const mo_node *part = node->first;
    if (type.record != NULL && !tb_mo_open_record(b, type.record, node->place, &leaves))
        return tb_mo_nothing(node->place);
    lower_part(b, part, entity->rank, &walk);
    for (part = part->next; part != NULL && !b->source->failed; part = part->next) {
        if (type.record == NULL) {
            tb_mo_fail(b->source, part->place, "'%s' is no record and has no field '%s'",
                       node->first->text, part->text);
            break;
        }
        if (!find_field(b, type.record, part, &type, &rank)) break;
        const size_t used = strlen(walk.path);
        snprintf(walk.path + used, sizeof walk.path - used, "%s%s", used > 0 ? "." : "",
                 part->text);
        for (int32_t k = leaves.count - 1; k >= 0; k--)
            if (is_below(leaves.leaf[k].suffix, walk.path)) walk.variable = entity->variable + k;
        lower_part(b, part, rank, &walk);
    }
    if (b->source->failed) return tb_mo_nothing(node->place);
    if (type.record == NULL) return subscripted(b, walk.variable, &walk, node->place);

    mo_value value = {.type = type, .place = node->place};
    value.leaf = TB_ARENA_ZEROED(b->arena, mo_value, leaves.count);
    if (value.leaf == NULL) return tb_mo_nothing(node->place);
    for (int32_t d = 0; d < walk.count; d++) value.rank += walk.subscript[d].kind != MO_AT;
    for (int32_t k = 0; k < leaves.count && !b->source->failed; k++)
        if (is_below(leaves.leaf[k].suffix, walk.path))
            value.leaf[value.leaves++] = subscripted(b, entity->variable + k, &walk, node->place);
    return value;
}

/* ---- constants ---- */

static bool library_constant(const char *name, double *value)
{
    static const struct {
        const char *name;
        double value;
    } CONSTANTS[] = {{"pi", 3.14159265358979323846},
                     {"e", 2.71828182845904523536},
                     {"D2R", 0.017453292519943295769},
                     {"R2D", 57.295779513082320877},
                     {"g_n", 9.80665},
                     {"eps", 2.220446049250313e-16},
                     {"small", 2.2250738585072014e-308},
                     {"inf", 1.7976931348623157e308},
                     {"R", 8.31446261815324},
                     {"sigma", 5.670374419e-8},
                     {"T_zero", -273.15}};
    static const char PREFIX[] = "Modelica.Constants.";
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) return false;
    for (size_t k = 0; k < sizeof CONSTANTS / sizeof CONSTANTS[0]; k++)
        if (strcmp(CONSTANTS[k].name, name + sizeof PREFIX - 1) == 0) {
            *value = CONSTANTS[k].value;
            return true;
        }
    return false;
}

/* the value of a package's constant, lowered where it is used */
static mo_value lower_constant(mo_build *b, const mo_node *component, mo_class *scope,
                               mo_place place)
{
    enum { DEEPEST = 100 };
    const mo_node *binding = NULL, *sizes = NULL;
    for (const mo_node *c = component->first; c != NULL; c = c->next)
        if (c->kind == MO_BINDING) binding = c->first;
    mo_value value = tb_mo_nothing(place);
    if (binding == NULL) {
        tb_mo_fail(b->source, component->place, "constant '%s' has no value", component->text);
        return value;
    }
    if (b->constants >= DEEPEST) {
        tb_mo_fail(b->source, component->place,
                   "the value of '%s' depends on itself, or through more than %d constants",
                   component->text, DEEPEST);
        return value;
    }
    mo_type type;
    mo_class *outer = b->scope;
    mo_entity *entities = b->entities;
    const mo_x *end = b->end;
    if (!tb_mo_find_type(b, component->type, scope, component->place, &type, &sizes)) return value;
    b->scope = scope;
    b->entities = NULL;
    b->end = NULL;
    b->constants++;
    value = tb_mo_lower_expression(b, binding);
    b->constants--;
    b->scope = outer;
    b->entities = entities;
    b->end = end;
    if (type.record == NULL) tb_mo_convert(b, &value, type.base, component->text);
    return value;
}

static mo_value lower_name(mo_build *b, const mo_node *node)
{
    const char *name = NULL;
    double number = 0;
    for (const mo_node *p = node->first; p != NULL; p = p->next) {
        if (p->count > 0 && p->next != NULL) break;
        name = name == NULL ? p->text : tb_mo_dotted(b->source, name, p->text, p->place);
    }
    if (b->source->failed || name == NULL) name = node->first->text;
    mo_class *scope = b->scope;
    const mo_node *component = tb_mo_find_constant(b, name, &scope);
    if (component == NULL) {
        const char *plain = tb_mo_plain_name(b, name);
        if (library_constant(plain, &number))
            return tb_mo_scalar(tb_mo_x_real(b, number, node->place));
        tb_mo_fail(b->source, node->place, "no variable or constant '%s' in function '%s'", name,
                   b->function->name);
        return tb_mo_nothing(node->place);
    }
    mo_value value = lower_constant(b, component, scope, node->place);
    const mo_node *last = node->last;
    if (b->source->failed || last->count == 0) return value;
    if (value.type.record != NULL || last->count > value.rank) {
        tb_mo_fail(b->source, last->place, "'%s' has %d dimensions, not %d subscripts", name,
                   value.rank, last->count);
        return value;
    }
    mo_walk walk = {.variable = tb_mo_materialise(b, &value), .whole = true};
    lower_part(b, last, value.rank, &walk);
    return b->source->failed ? value : subscripted(b, walk.variable, &walk, node->place);
}

mo_value tb_mo_lower_reference(mo_build *b, const mo_node *node)
{
    const mo_entity *entity = tb_mo_find_entity(b, node->first->text);
    if (b->source->failed) return tb_mo_nothing(node->place);
    return entity != NULL ? lower_component(b, node, entity) : lower_name(b, node);
}
