/* Arrays: elements of unevaluated expressions, loops over them, and constructors. */
#include <string.h>

#include "modelica/lower/build.h"

/* ---- elements ---- */

static const mo_x *add(mo_build *b, const mo_x *p, const mo_x *q, mo_place place)
{
    if (q->op == MO_X_CONSTANT && q->integer == 0) return p;
    if (p->op == MO_X_CONSTANT && p->integer == 0) return q;
    return tb_mo_x_apply(b, MO_X_ADD, MO_T_INTEGER, place, p, q, NULL);
}

/* start + (index - 1) step */
static const mo_x *stepped(mo_build *b, const mo_x *start, const mo_x *step, const mo_x *index,
                           mo_base base, mo_place place)
{
    const mo_x *one = tb_mo_x_integer(b, 1, place);
    if (base == MO_T_INTEGER && step->op == MO_X_CONSTANT && step->integer == 1)
        return add(b, index, tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_INTEGER, place, start, one, NULL),
                   place);
    const mo_x *count = tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_INTEGER, place, index, one, NULL);
    if (base == MO_T_REAL) count = tb_mo_x_cast(b, count);
    return tb_mo_x_apply(b, MO_X_ADD, base, place, start,
                         tb_mo_x_apply(b, MO_X_MULTIPLY, base, place, count, step, NULL), NULL);
}

/* subscripts of the variable for an index into the lazy part of it */
static mo_x *place_of(mo_build *b, const mo_lazy *lazy, const mo_x *const *index)
{
    mo_x *x = tb_mo_x(b, MO_X_ELEMENT, lazy->base, lazy->place);
    const int32_t rank = b->function->variables[lazy->variable].rank;
    x->variable = lazy->variable;
    x->count = rank;
    for (int32_t d = 0, k = 0; d < rank; d++) {
        const mo_subscript *s = lazy->subscripts > 0 ? &lazy->subscript[d] : NULL;
        if (s != NULL && s->kind == MO_AT) {
            x->operand[d] = s->x;
            continue;
        }
        const mo_x *i = index[k++];
        if (s != NULL && s->kind == MO_VECTOR) {
            mo_x *named = tb_mo_x(b, MO_X_ELEMENT, MO_T_INTEGER, lazy->place);
            named->variable = s->vector;
            named->count = 1;
            named->operand[0] = i;
            i = named;
        } else if (s != NULL && s->x != NULL) {
            i = stepped(b, s->x, s->step, i, MO_T_INTEGER, lazy->place);
        }
        x->operand[d] = i;
    }
    return x;
}

static const mo_x *apply_element(mo_build *b, const mo_lazy *lazy, const mo_x *const *index)
{
    const mo_x *x[3] = {NULL, NULL, NULL};
    for (int k = 0; k < 3 && lazy->operand[k] != NULL; k++) {
        x[k] = tb_mo_element(b, lazy->operand[k], index);
        if (lazy->base == MO_T_REAL) x[k] = tb_mo_x_cast(b, x[k]);
    }
    if (lazy->op == MO_X_CAST) return x[0];
    /* a square is a product: the power function of libraries may differ in the last bit */
    if (lazy->op == MO_X_POWER && x[1]->op == MO_X_CONSTANT && x[1]->real == 2) {
        x[0] = tb_mo_hoist(b, x[0]);
        return tb_mo_x_apply(b, MO_X_MULTIPLY, MO_T_REAL, lazy->place, x[0], x[0], NULL);
    }
    return tb_mo_x_apply(b, lazy->op, lazy->base, lazy->place, x[0], x[1], x[2]);
}

const mo_x *tb_mo_element(mo_build *b, const mo_lazy *lazy, const mo_x *const *index)
{
    switch (lazy->kind) {
    case MO_L_SCALAR: return lazy->x;
    case MO_L_VARIABLE: return place_of(b, lazy, index);
    case MO_L_APPLY: return apply_element(b, lazy, index);
    case MO_L_TRANSPOSE: {
        const mo_x *turned[MO_RANK] = {index[1], index[0]};
        for (int32_t d = 2; d < MO_RANK; d++) turned[d] = index[d];
        return tb_mo_element(b, lazy->operand[0], turned);
    }
    case MO_L_RANGE: return stepped(b, lazy->x, lazy->step, index[0], lazy->base, lazy->place);
    default: {
        const mo_x *same =
            tb_mo_x_apply(b, MO_X_EQUAL, MO_T_BOOLEAN, lazy->place, index[0], index[1], NULL);
        return tb_mo_x_apply(b, MO_X_SELECT, MO_T_INTEGER, lazy->place, same,
                             tb_mo_x_integer(b, 1, lazy->place),
                             tb_mo_x_integer(b, 0, lazy->place));
    }
    }
}

bool tb_mo_lazy_mentions(const mo_lazy *lazy, int32_t variable, bool elsewhere_only)
{
    if (lazy->x != NULL && tb_mo_x_mentions(lazy->x, variable)) return true;
    if (lazy->kind == MO_L_VARIABLE && lazy->variable == variable &&
        (lazy->subscripts > 0 || !elsewhere_only))
        return true;
    for (int32_t d = 0; d < lazy->subscripts; d++) {
        const mo_subscript *s = &lazy->subscript[d];
        if (s->kind == MO_VECTOR && s->vector == variable) return true;
        if (s->x != NULL && tb_mo_x_mentions(s->x, variable)) return true;
    }
    for (int k = 0; k < 3 && lazy->operand[k] != NULL; k++)
        if (tb_mo_lazy_mentions(lazy->operand[k], variable,
                                elsewhere_only && lazy->kind != MO_L_TRANSPOSE))
            return true;
    return false;
}

/* ---- evaluation ---- */

void tb_mo_store_all(mo_build *b, const mo_lazy *target, const mo_value *value, mo_place place)
{
    mo_s **outer[MO_RANK];
    const mo_x *index[MO_RANK] = {NULL};
    for (int32_t d = 0; d < value->rank; d++)
        index[d] = tb_mo_open_loop(b, value->size[d], place, &outer[d]);
    const mo_x *x = tb_mo_element(b, value->lazy, index);
    const mo_x *to = place_of(b, target, index);
    mo_s *s = tb_mo_s(b, MO_S_STORE, place);
    s->variable = target->variable;
    s->count = to->count;
    memcpy(s->subscript, to->operand, sizeof s->subscript);
    s->value = target->base == MO_T_REAL ? tb_mo_x_cast(b, x) : x;
    for (int32_t d = value->rank; d-- > 0;) tb_mo_close(b, outer[d]);
}

int32_t tb_mo_materialise(mo_build *b, const mo_value *value)
{
    if (b->source->failed || value->lazy == NULL) return 0;
    if (value->lazy->kind == MO_L_VARIABLE && value->lazy->subscripts == 0)
        return value->lazy->variable;
    const int32_t variable = tb_mo_temporary(b, value->type.base, value->rank, value->place);
    tb_mo_s_allocate(b, variable, value->rank, value->size, value->place);
    for (int32_t d = 0; d < value->rank && !b->source->failed; d++)
        if (tb_mo_x_stable(b, value->size[d]))
            b->function->variables[variable].size[d] = value->size[d];
    const mo_lazy target = {.kind = MO_L_VARIABLE,
                            .base = value->type.base,
                            .variable = variable,
                            .place = value->place};
    tb_mo_store_all(b, &target, value, value->place);
    return variable;
}

static mo_lazy *new_lazy(mo_build *b, mo_lazy content)
{
    static mo_lazy none;
    mo_lazy *lazy = TB_ARENA_ZEROED(b->arena, mo_lazy, 1);
    if (lazy == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, content.place, "no memory for arrays");
        return &none;
    }
    *lazy = content;
    return lazy;
}

mo_value tb_mo_array_of(mo_build *b, int32_t variable, mo_place place)
{
    const mo_variable v = b->function->variables[variable];
    mo_value value = {.type = {v.base, NULL}, .rank = v.rank, .place = place};
    for (int32_t d = 0; d < v.rank; d++) value.size[d] = tb_mo_x_size(b, variable, d, place);
    value.lazy = new_lazy(
        b, (mo_lazy){.kind = MO_L_VARIABLE, .base = v.base, .variable = variable, .place = place});
    return value;
}

static const mo_lazy *lazy_of(mo_build *b, const mo_value *value)
{
    if (value->rank > 0) return value->lazy;
    return new_lazy(b, (mo_lazy){.kind = MO_L_SCALAR,
                                 .base = value->type.base,
                                 .place = value->place,
                                 .x = tb_mo_hoist(b, value->x)});
}

mo_value tb_mo_each(mo_build *b, mo_x_op op, mo_base base, mo_place place, const mo_value *p,
                    const mo_value *q)
{
    if (b->source->failed) return tb_mo_nothing(place);
    mo_lazy content = {.kind = MO_L_APPLY, .op = op, .base = base, .place = place};
    if (p->rank == 0 && (q == NULL || q->rank == 0)) {
        /* the scalar case is the element of arrays without dimensions */
        mo_lazy left = {.kind = MO_L_SCALAR, .base = p->type.base, .x = p->x};
        mo_lazy right = {.kind = MO_L_SCALAR, .x = q != NULL ? q->x : NULL};
        content.operand[0] = &left;
        content.operand[1] = q != NULL ? &right : NULL;
        return tb_mo_scalar(tb_mo_element(b, &content, NULL));
    }
    mo_value value = {.type = {base, NULL}, .place = place};
    const mo_value *shape = p->rank > 0 ? p : q;
    if (q != NULL && p->rank > 0 && q->rank > 0 && p->rank != q->rank) {
        tb_mo_fail(b->source, place, "the operands have %d and %d dimensions", p->rank, q->rank);
        return tb_mo_nothing(place);
    }
    if (q != NULL && p->rank > 0 && q->rank > 0)
        for (int32_t d = 0; d < p->rank; d++)
            tb_mo_check_size(b, p->size[d], q->size[d], place, d, "the operands");
    value.rank = shape->rank;
    memcpy(value.size, shape->size, sizeof value.size);
    content.operand[0] = lazy_of(b, p);
    if (q != NULL) content.operand[1] = lazy_of(b, q);
    value.lazy = new_lazy(b, content);
    return value;
}

/* ---- ranges ---- */

/* floor((limit - start) / step) + 1, not below 0, as Integer */
static const mo_x *count_range(mo_build *b, const mo_x *start, const mo_x *step, const mo_x *limit,
                               mo_place place)
{
    const mo_x *zero = tb_mo_x_integer(b, 0, place), *one = tb_mo_x_integer(b, 1, place);
    const mo_x *count;
    if (start->base == MO_T_INTEGER && step->op == MO_X_CONSTANT && step->integer == 1) {
        count =
            start->op == MO_X_CONSTANT && start->integer == 1
                ? limit
                : add(b, tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_INTEGER, place, limit, start, NULL),
                      one, place);
        if (count->op == MO_X_SIZE) return count;
    } else if (start->base == MO_T_INTEGER) {
        const mo_x *width =
            tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_INTEGER, place, limit, start, NULL);
        /* towards the smaller: a range against its step has a negative count */
        const mo_x *rest = tb_mo_x_apply(b, MO_X_MOD, MO_T_INTEGER, place, width, step, NULL);
        width = tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_INTEGER, place, width, rest, NULL);
        count =
            add(b, tb_mo_x_apply(b, MO_X_DIV, MO_T_INTEGER, place, width, step, NULL), one, place);
    } else {
        const mo_x *width = tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_REAL, place, limit, start, NULL);
        width = tb_mo_x_apply(b, MO_X_DIVIDE, MO_T_REAL, place, width, step, NULL);
        /* the last element may be missed by rounding (section 10.4.3 leaves this open) */
        const mo_x *slack = tb_mo_x_real(b, 1e-10, place);
        width = tb_mo_x_apply(b, MO_X_ADD, MO_T_REAL, place, width, slack, NULL);
        count = tb_mo_x_apply(b, MO_X_INTEGER, MO_T_INTEGER, place, width, NULL, NULL);
        count = add(b, count, one, place);
    }
    if (count->op == MO_X_CONSTANT) return count->integer < 0 ? zero : count;
    return tb_mo_hoist(b, tb_mo_x_apply(b, MO_X_MAXIMUM, MO_T_INTEGER, place, count, zero, NULL));
}

mo_value tb_mo_lower_range(mo_build *b, const mo_node *node)
{
    mo_value part[3] = {{.rank = 0}};
    bool real = false;
    int32_t k = 0;
    for (const mo_node *c = node->first; c != NULL; c = c->next, k++) {
        part[k] = tb_mo_lower_expression(b, c);
        if (b->source->failed) return part[k];
        if (part[k].rank > 0 || part[k].text || part[k].type.record ||
            part[k].type.base == MO_T_BOOLEAN) {
            tb_mo_fail(b->source, c->place, "a range is of Real or Integer scalars, not of %s",
                       part[k].text ? "text" : tb_mo_type_name(b, part[k].type, part[k].rank));
            return part[k];
        }
        real = real || part[k].type.base == MO_T_REAL;
    }
    const mo_base base = real ? MO_T_REAL : MO_T_INTEGER;
    for (int32_t i = 0; i < k; i++)
        if (!tb_mo_convert(b, &part[i], base, "a range")) return part[i];
    const mo_x *start = tb_mo_hoist(b, part[0].x), *limit = tb_mo_hoist(b, part[k - 1].x);
    const mo_x *step = k == 3 ? tb_mo_hoist(b, part[1].x)
                       : real ? tb_mo_x_real(b, 1, node->place)
                              : tb_mo_x_integer(b, 1, node->place);
    if (step->op == MO_X_CONSTANT && (real ? step->real == 0 : step->integer == 0))
        tb_mo_fail(b->source, node->place, "the step of a range is 0");
    mo_value value = {.type = {base, NULL}, .rank = 1, .place = node->place};
    value.size[0] = count_range(b, start, step, limit, node->place);
    value.lazy = new_lazy(
        b, (mo_lazy){
               .kind = MO_L_RANGE, .base = base, .place = node->place, .x = start, .step = step});
    return value;
}

/* ---- constructors ---- */

/* values of a list of expressions, of one type and, if `equal`, one rank */
static mo_value *lower_parts(mo_build *b, const mo_node *list, bool equal, mo_base *base)
{
    mo_value *parts = TB_ARENA_ARRAY(b->arena, mo_value, list->count + 1);
    *base = MO_T_INTEGER;
    bool boolean = false, number = false;
    int32_t k = 0;
    for (const mo_node *c = list->first; c != NULL && parts != NULL; c = c->next, k++) {
        parts[k] = tb_mo_lower_expression(b, c);
        if (b->source->failed) return NULL;
        const mo_value *v = &parts[k];
        boolean = boolean || v->type.base == MO_T_BOOLEAN;
        number = number || v->type.base != MO_T_BOOLEAN;
        if (v->type.base == MO_T_REAL) *base = MO_T_REAL;
        if (v->text || v->type.record || (equal && v->rank != parts[0].rank) ||
            (boolean && number)) {
            tb_mo_fail(b->source, c->place, "this element is %s, the first one is %s",
                       v->text ? "text" : tb_mo_type_name(b, v->type, v->rank),
                       tb_mo_type_name(b, parts[0].type, parts[0].rank));
            return NULL;
        }
    }
    if (boolean) *base = MO_T_BOOLEAN;
    for (int32_t i = 0; parts != NULL && i < k; i++)
        if (!tb_mo_convert(b, &parts[i], *base, "an element")) return NULL;
    return parts;
}

static void store_scalar(mo_build *b, int32_t variable, const mo_x *x, int64_t row, int64_t column,
                         int32_t count)
{
    mo_s *s = tb_mo_s(b, MO_S_STORE, x->place);
    s->variable = variable;
    s->count = count;
    s->subscript[0] = tb_mo_x_integer(b, row, x->place);
    if (count > 1) s->subscript[1] = tb_mo_x_integer(b, column, x->place);
    s->value = x;
}

mo_value tb_mo_lower_array(mo_build *b, const mo_node *node)
{
    mo_base base;
    const mo_place place = node->place;
    if (node->first->kind == MO_COMPREHENSION) return tb_mo_lower_comprehension(b, node->first);
    mo_value *parts = lower_parts(b, node, true, &base);
    if (parts == NULL) return tb_mo_nothing(place);
    const int32_t rank = parts[0].rank;
    if (rank == MO_RANK) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, place, "more than %d dimensions", MO_RANK);
        return parts[0];
    }
    const mo_x *size[MO_RANK] = {tb_mo_x_integer(b, node->count, place)};
    for (int32_t d = 0; d < rank; d++) {
        size[d + 1] = parts[0].size[d];
        for (int32_t k = 1; k < node->count; k++)
            tb_mo_check_size(b, parts[k].size[d], parts[0].size[d], parts[k].place, d,
                             "the elements");
    }
    const int32_t variable = tb_mo_temporary(b, base, rank + 1, place);
    tb_mo_s_allocate(b, variable, rank + 1, size, place);
    if (!b->source->failed && rank == 0) b->function->variables[variable].size[0] = size[0];
    for (int32_t k = 0; k < node->count && !b->source->failed; k++) {
        mo_lazy target = {.kind = MO_L_VARIABLE,
                          .base = base,
                          .variable = variable,
                          .place = place,
                          .subscripts = rank + 1};
        target.subscript[0] = (mo_subscript){.kind = MO_AT, .x = tb_mo_x_integer(b, k + 1, place)};
        for (int32_t d = 0; d < rank; d++) target.subscript[d + 1].kind = MO_FROM;
        if (rank == 0)
            store_scalar(b, variable, parts[k].x, k + 1, 0, 1);
        else
            tb_mo_store_all(b, &target, &parts[k], place);
    }
    return b->source->failed ? tb_mo_nothing(place) : tb_mo_array_of(b, variable, place);
}

mo_value tb_mo_promote(mo_build *b, mo_value value, int32_t rank)
{
    if (b->source->failed || value.rank >= rank) return value;
    const mo_place place = value.place;
    mo_value full = {.type = value.type, .rank = rank, .place = place};
    for (int32_t d = 0; d < rank; d++)
        full.size[d] = d < value.rank ? value.size[d] : tb_mo_x_integer(b, 1, place);
    const int32_t variable = tb_mo_temporary(b, value.type.base, rank, place);
    tb_mo_s_allocate(b, variable, rank, full.size, place);
    mo_lazy target = {.kind = MO_L_VARIABLE,
                      .base = value.type.base,
                      .variable = variable,
                      .place = place,
                      .subscripts = rank};
    for (int32_t d = 0; d < rank; d++) {
        target.subscript[d].kind = d < value.rank ? MO_FROM : MO_AT;
        if (d >= value.rank) target.subscript[d].x = tb_mo_x_integer(b, 1, place);
    }
    mo_value source = value;
    if (value.rank == 0) source.lazy = lazy_of(b, &value);
    tb_mo_store_all(b, &target, &source, place);
    return b->source->failed ? full : tb_mo_array_of(b, variable, place);
}

mo_value tb_mo_join(mo_build *b, mo_value *parts, int32_t count, int32_t dimension, mo_place place)
{
    if (count == 1) return parts[0];
    const int32_t rank = parts[0].rank;
    const mo_x *size[MO_RANK];
    memcpy(size, parts[0].size, sizeof size);
    for (int32_t k = 1; k < count; k++) {
        for (int32_t d = 0; d < rank; d++)
            if (d != dimension)
                tb_mo_check_size(b, parts[k].size[d], parts[0].size[d], parts[k].place, d,
                                 "the joined arrays");
        size[dimension] = add(b, size[dimension], parts[k].size[dimension], place);
    }
    size[dimension] = tb_mo_hoist(b, size[dimension]);
    const int32_t variable = tb_mo_temporary(b, parts[0].type.base, rank, place);
    tb_mo_s_allocate(b, variable, rank, size, place);
    const mo_x *first = tb_mo_x_integer(b, 1, place), *step = first;
    for (int32_t k = 0; k < count && !b->source->failed; k++) {
        mo_lazy target = {.kind = MO_L_VARIABLE,
                          .base = parts[0].type.base,
                          .variable = variable,
                          .place = place,
                          .subscripts = rank};
        for (int32_t d = 0; d < rank; d++) target.subscript[d].kind = MO_FROM;
        target.subscript[dimension].x = first;
        target.subscript[dimension].step = step;
        tb_mo_store_all(b, &target, &parts[k], place);
        first = tb_mo_hoist(b, add(b, first, parts[k].size[dimension], place));
    }
    return b->source->failed ? parts[0] : tb_mo_array_of(b, variable, place);
}

/* [a, b; c, d] of scalars alone: its elements are stored one by one */
static mo_value lower_scalar_matrix(mo_build *b, const mo_node *node, mo_value **rows, mo_base base)
{
    const int32_t columns = node->first->count;
    const mo_x *size[2] = {tb_mo_x_integer(b, node->count, node->place),
                           tb_mo_x_integer(b, columns, node->place)};
    const int32_t variable = tb_mo_temporary(b, base, 2, node->place);
    tb_mo_s_allocate(b, variable, 2, size, node->place);
    for (int32_t r = 0; r < node->count; r++)
        for (int32_t c = 0; c < columns && !b->source->failed; c++) {
            if (!tb_mo_convert(b, &rows[r][c], base, "an element")) break;
            store_scalar(b, variable, rows[r][c].x, r + 1, c + 1, 2);
        }
    return tb_mo_array_of(b, variable, node->place);
}

mo_value tb_mo_lower_matrix(mo_build *b, const mo_node *node)
{
    const mo_place place = node->place;
    mo_value **rows = TB_ARENA_ARRAY(b->arena, mo_value *, node->count);
    mo_value *joined = TB_ARENA_ARRAY(b->arena, mo_value, node->count);
    mo_base base = MO_T_INTEGER, of_row;
    int32_t r = 0, rank = 2;
    bool scalars = true;
    for (const mo_node *row = node->first; row != NULL && rows && joined; row = row->next, r++) {
        rows[r] = lower_parts(b, row, false, &of_row);
        if (rows[r] == NULL) return tb_mo_nothing(place);
        if (r > 0 && (of_row == MO_T_BOOLEAN) != (base == MO_T_BOOLEAN))
            tb_mo_fail(b->source, row->place, "a matrix of Boolean and numbers");
        if (r == 0 || of_row == MO_T_REAL) base = of_row;
        scalars = scalars && row->count == node->first->count;
        for (int32_t c = 0; c < row->count; c++) {
            scalars = scalars && rows[r][c].rank == 0;
            if (rows[r][c].rank > rank) rank = rows[r][c].rank;
        }
    }
    if (b->source->failed) return tb_mo_nothing(place);
    if (scalars) return lower_scalar_matrix(b, node, rows, base);
    r = 0;
    for (const mo_node *row = node->first; row != NULL; row = row->next, r++) {
        for (int32_t c = 0; c < row->count && !b->source->failed; c++)
            if (tb_mo_convert(b, &rows[r][c], base, "an element"))
                rows[r][c] = tb_mo_promote(b, rows[r][c], rank);
        if (b->source->failed) return tb_mo_nothing(place);
        joined[r] = tb_mo_join(b, rows[r], row->count, 1, row->place);
    }
    return b->source->failed ? tb_mo_nothing(place) : tb_mo_join(b, joined, node->count, 0, place);
}
