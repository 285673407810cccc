/* Iterators: the loops of for statements, reductions and array constructors with iterators. */
#include <string.h>

#include "modelica/lower/build.h"

static void push_iterator(mo_build *b, const mo_node *node, mo_base base, int32_t variable)
{
    mo_entity *entity = TB_ARENA_ZEROED(b->arena, mo_entity, 1);
    if (entity == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, node->place, "no memory");
        return;
    }
    *entity = (mo_entity){.name = node->text,
                          .type = {base, NULL},
                          .variable = variable,
                          .leaves = 1,
                          .flag = -1,
                          .state = MO_READY,
                          .next = b->entities};
    b->entities = entity;
}

static void pop_iterator(mo_build *b)
{
    if (b->entities != NULL && b->entities->node == NULL) b->entities = b->entities->next;
}

/* The loop over the elements of a vector, whose name is in scope inside. Returns the variable that
 * counts the elements. */
static int32_t open_over(mo_build *b, const mo_node *node, const mo_value *vector, mo_s ***outer)
{
    const mo_x *index = tb_mo_open_loop(b, vector->size[0], node->place, outer);
    const mo_x *element = tb_mo_element(b, vector->lazy, &index);
    const int32_t variable = tb_mo_variable(b, node->text, vector->type.base, 0, node->place);
    if (b->source->failed) return 0;
    if (element == index) {
        push_iterator(b, node, vector->type.base, index->variable);
        return index->variable;
    }
    tb_mo_s_assign(b, variable, element, node->place);
    push_iterator(b, node, vector->type.base, variable);
    return index->variable;
}

static bool lower_vector(mo_build *b, const mo_node *iterator, mo_value *vector)
{
    if (iterator->first == NULL) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, iterator->place,
                      "the range of '%s' is left out, expected 'in' and a range", iterator->text);
        return false;
    }
    *vector = tb_mo_lower_expression(b, iterator->first);
    if (b->source->failed) return false;
    if (vector->rank == 1 && vector->type.record == NULL && vector->type.base != MO_T_BOOLEAN) {
        /* the range is fixed when the loop begins */
        if (vector->lazy->kind != MO_L_RANGE)
            *vector = tb_mo_array_of(b, tb_mo_materialise(b, vector), iterator->place);
        return !b->source->failed;
    }
    tb_mo_fail(b->source, iterator->first->place, "'%s' is in %s, expected a vector of numbers",
               iterator->text, tb_mo_type_name(b, vector->type, vector->rank));
    return false;
}

bool tb_mo_open_iterator(mo_build *b, const mo_node *iterator, mo_s ***outer)
{
    const mo_node *range = iterator->first;
    mo_value part[3], vector;
    if (range == NULL || range->kind != MO_RANGE) {
        if (!lower_vector(b, iterator, &vector)) return false;
        open_over(b, iterator, &vector, outer);
        return !b->source->failed;
    }
    int32_t k = 0;
    bool integer = true;
    for (const mo_node *c = range->first; c != NULL; c = c->next, k++) {
        part[k] = tb_mo_lower_expression(b, c);
        if (b->source->failed) return false;
        integer = integer && part[k].rank == 0 && !part[k].text && part[k].type.record == NULL &&
                  part[k].type.base == MO_T_INTEGER;
    }
    if (!integer) {
        if (!lower_vector(b, iterator, &vector)) return false;
        open_over(b, iterator, &vector, outer);
        return !b->source->failed;
    }
    const int32_t variable = tb_mo_variable(b, iterator->text, MO_T_INTEGER, 0, iterator->place);
    if (b->source->failed) return false;
    b->function->variables[variable].iterator = true;
    mo_s *s = tb_mo_s(b, MO_S_FOR, iterator->place);
    s->variable = variable;
    s->value = part[0].x;
    s->limit = part[k - 1].x;
    s->step = k == 3 ? part[1].x : tb_mo_x_integer(b, 1, range->place);
    if (s->step->op == MO_X_CONSTANT && s->step->integer == 0)
        tb_mo_fail(b->source, range->place, "the step of a range is 0");
    *outer = b->tail;
    b->tail = &s->body;
    push_iterator(b, iterator, MO_T_INTEGER, variable);
    return !b->source->failed;
}

void tb_mo_close_iterator(mo_build *b, mo_s **outer)
{
    pop_iterator(b);
    b->tail = outer;
}

/* ---- several iterators ---- */

typedef struct mo_nest {
    int32_t count;
    mo_value range[MO_RANK];  /* of the iterators, as written */
    int32_t counter[MO_RANK]; /* variable that counts the elements of a range */
    mo_s **outer[MO_RANK];
} mo_nest;

/* The ranges, none of which sees an iterator of the same list. */
static bool lower_ranges(mo_build *b, const mo_node *comprehension, mo_nest *nest)
{
    nest->count = comprehension->count - 1;
    if (nest->count > MO_RANK) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, comprehension->place, "more than %d iterators",
                      MO_RANK);
        return false;
    }
    for (int32_t k = 0; k < nest->count; k++)
        if (!lower_vector(b, tb_mo_child(comprehension, k + 1), &nest->range[k])) return false;
    return true;
}

/* Opens the loops, the last iterator's outermost, as the language orders the elements. */
static void open_nest(mo_build *b, const mo_node *comprehension, mo_nest *nest)
{
    for (int32_t k = nest->count; k-- > 0 && !b->source->failed;)
        nest->counter[k] =
            open_over(b, tb_mo_child(comprehension, k + 1), &nest->range[k], &nest->outer[k]);
}

static void close_nest(mo_build *b, mo_nest *nest)
{
    for (int32_t k = 0; k < nest->count; k++) tb_mo_close_iterator(b, nest->outer[k]);
}

/* The first element that is an array decides the sizes of all: the result gets them there. */
static void store_array(mo_build *b, const mo_nest *nest, int32_t variable, const mo_x *const *size,
                        const mo_value *value)
{
    const mo_place place = value->place;
    const mo_x *first = tb_mo_x_boolean(b, true, place), *one = tb_mo_x_integer(b, 1, place);
    const int32_t rank = nest->count + value->rank;
    mo_lazy target = {.kind = MO_L_VARIABLE,
                      .base = value->type.base,
                      .variable = variable,
                      .place = place,
                      .subscripts = rank};
    const mo_x *sizes[MO_RANK];
    for (int32_t d = 0; d < nest->count; d++) {
        const mo_x *i = tb_mo_x_variable(b, nest->counter[nest->count - 1 - d], place);
        target.subscript[d] = (mo_subscript){.kind = MO_AT, .x = i};
        first =
            tb_mo_x_apply(b, MO_X_AND, MO_T_BOOLEAN, place, first,
                          tb_mo_x_apply(b, MO_X_EQUAL, MO_T_BOOLEAN, place, i, one, NULL), NULL);
        sizes[d] = size[d];
    }
    for (int32_t d = nest->count; d < rank; d++) {
        target.subscript[d].kind = MO_FROM;
        sizes[d] = value->size[d - nest->count];
    }
    mo_s *s = tb_mo_s(b, MO_S_IF, place);
    s->value = first;
    mo_s **outer = b->tail;
    b->tail = &s->body;
    tb_mo_s_allocate(b, variable, rank, sizes, place);
    b->tail = outer;
    for (int32_t d = nest->count; d < rank; d++)
        tb_mo_check_size(b, tb_mo_x_size(b, variable, d, place), sizes[d], place, d - nest->count,
                         "the elements");
    tb_mo_store_all(b, &target, value, place);
}

mo_value tb_mo_lower_comprehension(mo_build *b, const mo_node *node)
{
    mo_nest nest;
    const mo_place place = node->place;
    const mo_x *size[MO_RANK];
    if (!lower_ranges(b, node, &nest)) return tb_mo_nothing(place);
    mo_s *allocation = tb_mo_s(b, MO_S_ALLOCATE, place);
    open_nest(b, node, &nest);
    if (b->source->failed) return tb_mo_nothing(place);
    mo_value value = tb_mo_lower_expression(b, node->first);
    if (b->source->failed) return value;
    if (value.text || value.type.record || nest.count + value.rank > MO_RANK) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, place,
                      "an array of %s with %d iterators is left out",
                      value.text ? "text" : tb_mo_type_name(b, value.type, value.rank), nest.count);
        return value;
    }
    const int32_t rank = nest.count + value.rank;
    const int32_t variable = tb_mo_temporary(b, value.type.base, rank, place);
    for (int32_t d = 0; d < rank; d++)
        size[d] =
            d < nest.count ? nest.range[nest.count - 1 - d].size[0] : tb_mo_x_integer(b, 0, place);
    allocation->variable = variable;
    allocation->count = rank;
    memcpy(allocation->subscript, size, (size_t)rank * sizeof size[0]);
    if (value.rank > 0) {
        store_array(b, &nest, variable, size, &value);
    } else {
        mo_s *store = tb_mo_s(b, MO_S_STORE, place);
        store->variable = variable;
        store->count = nest.count;
        store->value = value.x;
        for (int32_t d = 0; d < nest.count; d++)
            store->subscript[d] = tb_mo_x_variable(b, nest.counter[nest.count - 1 - d], place);
    }
    close_nest(b, &nest);
    return b->source->failed ? tb_mo_nothing(place) : tb_mo_array_of(b, variable, place);
}

static const mo_x *limit_of(mo_build *b, mo_base base, bool largest, mo_place place)
{
    const double real = 1.7976931348623157e308;
    return base == MO_T_REAL ? tb_mo_x_real(b, largest ? real : -real, place)
                             : tb_mo_x_integer(b, largest ? INT64_MAX : INT64_MIN, place);
}

/* the value of a reduction over nothing */
static const mo_x *initial(mo_build *b, mo_x_op op, mo_base base, mo_place place)
{
    if (op == MO_X_MINIMUM || op == MO_X_MAXIMUM)
        return limit_of(b, base, op == MO_X_MINIMUM, place);
    const int64_t value = op == MO_X_MULTIPLY;
    return base == MO_T_REAL ? tb_mo_x_real(b, (double)value, place)
                             : tb_mo_x_integer(b, value, place);
}

mo_value tb_mo_lower_reduction(mo_build *b, const mo_node *node, const char *name)
{
    const mo_x_op op = strcmp(name, "sum") == 0       ? MO_X_ADD
                       : strcmp(name, "product") == 0 ? MO_X_MULTIPLY
                       : strcmp(name, "min") == 0     ? MO_X_MINIMUM
                                                      : MO_X_MAXIMUM;
    const mo_place place = node->place;
    const bool iterators = node->first->kind == MO_COMPREHENSION;
    mo_nest nest;
    mo_s **outer[MO_RANK];
    const mo_x *index[MO_RANK] = {NULL}, *x = NULL;
    mo_value value = tb_mo_nothing(place);
    if (iterators ? !lower_ranges(b, node->first, &nest)
                  : (value = tb_mo_lower_expression(b, node->first), b->source->failed))
        return value;
    if (!iterators && value.rank == 0) {
        tb_mo_fail(b->source, place, "%s of a scalar, expected an array", name);
        return value;
    }
    mo_s *start = tb_mo_s(b, MO_S_ASSIGN, place);
    if (iterators) {
        open_nest(b, node->first, &nest);
        value = tb_mo_lower_expression(b, node->first->first);
        x = value.x;
    } else {
        for (int32_t d = 0; d < value.rank; d++)
            index[d] = tb_mo_open_loop(b, value.size[d], place, &outer[d]);
        if (value.lazy != NULL) x = tb_mo_element(b, value.lazy, index);
    }
    if (b->source->failed) return value;
    if (value.text || value.type.record || value.type.base == MO_T_BOOLEAN ||
        (iterators && value.rank > 0)) {
        tb_mo_fail(b->source, place, "%s of %s, expected numbers", name,
                   value.text ? "text" : tb_mo_type_name(b, value.type, value.rank));
        return value;
    }
    const mo_base base = value.type.base;
    const int32_t total = tb_mo_temporary(b, base, 0, place);
    start->variable = total;
    start->value = initial(b, op, base, place);
    const mo_x *read = tb_mo_x_variable(b, total, place);
    mo_s *step = tb_mo_s_assign(b, total, tb_mo_x_apply(b, op, base, place, read, x, NULL), place);
    if (iterators)
        close_nest(b, &nest);
    else
        for (int32_t d = value.rank; d-- > 0;) tb_mo_close(b, outer[d]);
    if (op == MO_X_ADD && base == MO_T_REAL)
        tb_mo_s_make_tree(b, start, step, tb_mo_s_assign(b, total, read, place));
    return tb_mo_scalar(tb_mo_x_variable(b, total, place));
}
