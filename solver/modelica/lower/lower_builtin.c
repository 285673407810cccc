/* Built-in functions of the language (sections 3.7 and 10.3) and products of arrays. */
#include <string.h>

#include "modelica/lower/build.h"

enum { MOST_ARGUMENTS = 16 };

/* ---- products ---- */

/* sum over k of p[.., k] q[k, ..], in ascending order but for two vectors, into a variable of rank p.rank + q.rank - 2 */
mo_value tb_mo_multiply(mo_build *b, mo_value p, mo_value q, mo_place place)
{
    const mo_base base =
        p.type.base == MO_T_REAL || q.type.base == MO_T_REAL ? MO_T_REAL : MO_T_INTEGER;
    if (p.rank > 2 || q.rank > 2) {
        tb_mo_fail(b->source, place, "%s * %s is not defined, expected vectors and matrices",
                   tb_mo_type_name(b, p.type, p.rank), tb_mo_type_name(b, q.type, q.rank));
        return tb_mo_nothing(place);
    }
    tb_mo_check_size(b, p.size[p.rank - 1], q.size[0], place, 0, "the factors' inner dimension");
    p = tb_mo_array_of(b, tb_mo_materialise(b, &p), place);
    q = tb_mo_array_of(b, tb_mo_materialise(b, &q), place);
    const mo_x *size[2] = {NULL, NULL}, *index[2] = {NULL, NULL};
    mo_s **outer[2], **inner;
    int32_t rank = 0;
    if (p.rank == 2) size[rank++] = p.size[0];
    if (q.rank == 2) size[rank++] = q.size[1];
    const int32_t total = tb_mo_temporary(b, base, 0, place);
    const int32_t result = rank > 0 ? tb_mo_temporary(b, base, rank, place) : total;
    if (rank > 0) tb_mo_s_allocate(b, result, rank, size, place);
    for (int32_t d = 0; d < rank; d++) index[d] = tb_mo_open_loop(b, size[d], place, &outer[d]);
    mo_s *start = tb_mo_s_assign(
        b, total, base == MO_T_REAL ? tb_mo_x_real(b, 0, place) : tb_mo_x_integer(b, 0, place),
        place);
    const mo_x *k = tb_mo_open_loop(b, q.size[0], place, &inner);
    const mo_x *left[2] = {p.rank == 2 ? index[0] : k, k};
    const mo_x *right[2] = {k, q.rank == 2 ? index[rank - 1] : NULL};
    if (b->source->failed) return tb_mo_nothing(place);
    const mo_x *x = tb_mo_element(b, p.lazy, left), *y = tb_mo_element(b, q.lazy, right);
    if (base == MO_T_REAL) {
        x = tb_mo_x_cast(b, x);
        y = tb_mo_x_cast(b, y);
    }
    const mo_x *term = tb_mo_x_apply(b, MO_X_MULTIPLY, base, place, x, y, NULL);
    const mo_x *read = tb_mo_x_variable(b, total, place);
    mo_s *step =
        tb_mo_s_assign(b, total, tb_mo_x_apply(b, MO_X_ADD, base, place, read, term, NULL), place);
    tb_mo_close(b, inner);
    if (rank == 0 && base == MO_T_REAL)
        tb_mo_s_make_tree(b, start, step, tb_mo_s_assign(b, total, read, place));
    if (rank == 0) return tb_mo_scalar(tb_mo_x_variable(b, total, place));
    mo_s *s = tb_mo_s(b, MO_S_STORE, place);
    s->variable = result;
    s->count = rank;
    memcpy(s->subscript, index, sizeof index);
    s->value = tb_mo_x_variable(b, total, place);
    for (int32_t d = rank; d-- > 0;) tb_mo_close(b, outer[d]);
    return tb_mo_array_of(b, result, place);
}

/* ---- helpers ---- */

static mo_value lazy_value(mo_build *b, mo_lazy content, int32_t rank, const mo_x *const *size)
{
    mo_value value = {.type = {content.base, NULL}, .rank = rank, .place = content.place};
    mo_lazy *lazy = TB_ARENA_ZEROED(b->arena, mo_lazy, 1);
    if (lazy == NULL) return tb_mo_nothing(content.place);
    *lazy = content;
    value.lazy = lazy;
    for (int32_t d = 0; d < rank; d++) value.size[d] = size[d];
    return value;
}

static bool wrong(mo_build *b, const mo_node *node, const char *expected)
{
    tb_mo_fail(b->source, node->place, "%s: expected %s", node->text, expected);
    return true;
}

/* ---- sizes and filled arrays ---- */

static mo_value size_of(mo_build *b, const mo_node *node, mo_value *v)
{
    const mo_place place = node->place;
    if (v->text || (v->rank == 0 && node->count > 1)) {
        wrong(b, node, "an array and a dimension");
        return *v;
    }
    if (v->type.record) v = &v->leaf[0];
    const int32_t rank = v->rank;
    if (node->count > 1) {
        const mo_x *d = tb_mo_lower_scalar(b, node->first->next, MO_T_INTEGER, "a dimension");
        if (b->source->failed) return *v;
        if (d->op == MO_X_CONSTANT) {
            if (d->integer < 1 || d->integer > rank) {
                tb_mo_fail(b->source, node->first->next->place,
                           "dimension %lld of an array with %d", (long long)d->integer, rank);
                return *v;
            }
            return tb_mo_scalar(v->size[d->integer - 1]);
        }
    }
    const mo_x *count = tb_mo_x_integer(b, rank, place);
    const int32_t sizes = tb_mo_temporary(b, MO_T_INTEGER, 1, place);
    tb_mo_s_allocate(b, sizes, 1, &count, place);
    for (int32_t d = 0; d < rank; d++) {
        mo_s *s = tb_mo_s(b, MO_S_STORE, place);
        s->variable = sizes;
        s->count = 1;
        s->subscript[0] = tb_mo_x_integer(b, d + 1, place);
        s->value = v->size[d];
    }
    if (node->count == 1) return tb_mo_array_of(b, sizes, place);
    mo_x *x = tb_mo_x(b, MO_X_ELEMENT, MO_T_INTEGER, place);
    x->variable = sizes;
    x->count = 1;
    x->operand[0] = tb_mo_lower_scalar(b, node->first->next, MO_T_INTEGER, "a dimension");
    return tb_mo_scalar(x);
}

/* zeros, ones, fill: `first` is the argument that holds the first size */
static mo_value filled(mo_build *b, const mo_node *node, const mo_x *x, const mo_node *first)
{
    const mo_x *size[MO_RANK];
    int32_t rank = 0;
    for (const mo_node *a = first; a != NULL; a = a->next) {
        if (rank == MO_RANK) {
            wrong(b, node, "at most 8 sizes");
            return tb_mo_nothing(node->place);
        }
        size[rank++] = tb_mo_hoist(b, tb_mo_lower_scalar(b, a, MO_T_INTEGER, "a size"));
    }
    if (rank == 0) {
        wrong(b, node, "a size");
        return tb_mo_nothing(node->place);
    }
    return lazy_value(
        b,
        (mo_lazy){
            .kind = MO_L_SCALAR, .base = x->base, .place = node->place, .x = tb_mo_hoist(b, x)},
        rank, size);
}

/* x1 + (x2 - x1) (i - 1) / (n - 1) */
static mo_value linspace(mo_build *b, const mo_node *node)
{
    const mo_place place = node->place;
    const mo_x *from = tb_mo_hoist(b, tb_mo_lower_scalar(b, node->first, MO_T_REAL, "linspace"));
    const mo_x *to =
        tb_mo_hoist(b, tb_mo_lower_scalar(b, node->first->next, MO_T_REAL, "linspace"));
    const mo_x *n =
        tb_mo_hoist(b, tb_mo_lower_scalar(b, node->first->next->next, MO_T_INTEGER, "linspace"));
    const mo_x *one = tb_mo_x_integer(b, 1, place);
    tb_mo_s_assert(b, tb_mo_x_apply(b, MO_X_LESS, MO_T_BOOLEAN, place, one, n, NULL),
                   TB_INVALID_ARGUMENT, place, "linspace needs at least 2 points");
    const mo_lazy range = {.kind = MO_L_RANGE,
                           .base = MO_T_INTEGER,
                           .place = place,
                           .x = tb_mo_x_integer(b, 0, place),
                           .step = one};
    mo_value i = lazy_value(b, range, 1, &n);
    const mo_x *width =
        tb_mo_hoist(b, tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_REAL, place, to, from, NULL));
    const mo_x *last = tb_mo_hoist(
        b, tb_mo_x_cast(b, tb_mo_x_apply(b, MO_X_SUBTRACT, MO_T_INTEGER, place, n, one, NULL)));
    mo_value w = tb_mo_scalar(width), l = tb_mo_scalar(last), f = tb_mo_scalar(from);
    mo_value v = tb_mo_each(b, MO_X_MULTIPLY, MO_T_REAL, place, &w, &i);
    v = tb_mo_each(b, MO_X_DIVIDE, MO_T_REAL, place, &v, &l);
    return tb_mo_each(b, MO_X_ADD, MO_T_REAL, place, &f, &v);
}

/* ---- vectors and matrices ---- */

static const mo_x *element_at(mo_build *b, const mo_value *v, int64_t i, int64_t j, mo_place place)
{
    const mo_x *index[MO_RANK] = {tb_mo_x_integer(b, i, place), tb_mo_x_integer(b, j, place)};
    return tb_mo_element(b, v->lazy, index);
}

static void store_at(mo_build *b, int32_t variable, int32_t rank, const mo_x *i, const mo_x *j,
                     const mo_x *x)
{
    mo_s *s = tb_mo_s(b, MO_S_STORE, x->place);
    s->variable = variable;
    s->count = rank;
    s->subscript[0] = i;
    s->subscript[1] = j;
    s->value = x;
}

/* cross: x[2] y[3] - x[3] y[2], ...; skew: the matrix of cross(x, .) */
static mo_value cross(mo_build *b, mo_value *x, mo_value *y, mo_base base, mo_place place)
{
    const mo_x *three = tb_mo_x_integer(b, 3, place), *size[2] = {three, three};
    const int32_t rank = y != NULL ? 1 : 2;
    const int32_t result = tb_mo_temporary(b, base, rank, place);
    tb_mo_s_allocate(b, result, rank, size, place);
    for (int64_t i = 1; i <= 3; i++) {
        const int64_t j = i % 3 + 1, k = j % 3 + 1;
        const mo_x *I = tb_mo_x_integer(b, i, place), *J = tb_mo_x_integer(b, j, place);
        if (y == NULL) {
            const mo_x *e = element_at(b, x, k, 0, place);
            store_at(b, result, 2, J, I, e);
            store_at(b, result, 2, I, J, tb_mo_x_apply(b, MO_X_NEGATE, base, place, e, NULL, NULL));
            continue;
        }
        const mo_x *p = tb_mo_x_apply(b, MO_X_MULTIPLY, base, place, element_at(b, x, j, 0, place),
                                      element_at(b, y, k, 0, place), NULL);
        const mo_x *q = tb_mo_x_apply(b, MO_X_MULTIPLY, base, place, element_at(b, x, k, 0, place),
                                      element_at(b, y, j, 0, place), NULL);
        store_at(b, result, 1, I, NULL, tb_mo_x_apply(b, MO_X_SUBTRACT, base, place, p, q, NULL));
    }
    return tb_mo_array_of(b, result, place);
}

/* diagonal(v), symmetric(A): loops that store into a matrix of zeros */
static mo_value diagonal(mo_build *b, mo_value *v, mo_place place)
{
    const mo_x *size[2] = {v->size[0], v->size[0]};
    mo_s **outer;
    const int32_t result = tb_mo_temporary(b, v->type.base, 2, place);
    tb_mo_s_allocate(b, result, 2, size, place);
    const mo_x *i = tb_mo_open_loop(b, v->size[0], place, &outer);
    store_at(b, result, 2, i, i, tb_mo_element(b, v->lazy, &i));
    tb_mo_close(b, outer);
    return tb_mo_array_of(b, result, place);
}

static mo_value symmetric(mo_build *b, mo_value *v, mo_place place)
{
    mo_s **outer[2];
    tb_mo_check_size(b, v->size[0], v->size[1], place, 1, "a symmetric matrix");
    const int32_t result = tb_mo_temporary(b, v->type.base, 2, place);
    tb_mo_s_allocate(b, result, 2, v->size, place);
    const mo_x *i = tb_mo_open_loop(b, v->size[0], place, &outer[0]);
    const mo_x *j = tb_mo_open_loop(b, v->size[0], place, &outer[1]);
    const mo_x *low = tb_mo_x_apply(b, MO_X_MINIMUM, MO_T_INTEGER, place, i, j, NULL);
    const mo_x *high = tb_mo_x_apply(b, MO_X_MAXIMUM, MO_T_INTEGER, place, i, j, NULL);
    const mo_x *index[MO_RANK] = {low, high};
    store_at(b, result, 2, i, j, tb_mo_element(b, v->lazy, index));
    tb_mo_close(b, outer[1]);
    tb_mo_close(b, outer[0]);
    return tb_mo_array_of(b, result, place);
}

/* scalar(A), vector(A): elements of an array with at most one dimension that is not 1 */
static mo_value flattened(mo_build *b, mo_value *v, bool scalar, mo_place place)
{
    const mo_x *one = tb_mo_x_integer(b, 1, place), *count = one, *largest = one;
    const mo_x *index[MO_RANK] = {NULL};
    mo_s **outer[MO_RANK];
    for (int32_t d = 0; d < v->rank; d++) {
        count = tb_mo_x_apply(b, MO_X_MULTIPLY, MO_T_INTEGER, place, count, v->size[d], NULL);
        largest = tb_mo_x_apply(b, MO_X_MAXIMUM, MO_T_INTEGER, place, largest, v->size[d], NULL);
    }
    tb_mo_s_assert(
        b, tb_mo_x_apply(b, MO_X_EQUAL, MO_T_BOOLEAN, place, count, scalar ? one : largest, NULL),
        TB_INVALID_ARGUMENT, place,
        scalar ? "scalar() of an array with more than one element"
               : "vector() of an array with more than one dimension above 1");
    for (int32_t d = 0; d < MO_RANK; d++) index[d] = one;
    if (scalar) return tb_mo_scalar(tb_mo_element(b, v->lazy, index));
    const int32_t result = tb_mo_temporary(b, v->type.base, 1, place);
    const int32_t at = tb_mo_temporary(b, MO_T_INTEGER, 0, place);
    tb_mo_s_allocate(b, result, 1, &count, place);
    tb_mo_s_assign(b, at, tb_mo_x_integer(b, 0, place), place);
    for (int32_t d = 0; d < v->rank; d++)
        index[d] = tb_mo_open_loop(b, v->size[d], place, &outer[d]);
    const mo_x *k = tb_mo_x_variable(b, at, place);
    tb_mo_s_assign(b, at, tb_mo_x_apply(b, MO_X_ADD, MO_T_INTEGER, place, k, one, NULL), place);
    store_at(b, result, 1, k, NULL, tb_mo_element(b, v->lazy, index));
    for (int32_t d = v->rank; d-- > 0;) tb_mo_close(b, outer[d]);
    return tb_mo_array_of(b, result, place);
}

static mo_value concatenate(mo_build *b, const mo_node *node, mo_value *v)
{
    const mo_node *first = node->first;
    if (node->count < 2 || first->kind != MO_INTEGER) {
        wrong(b, node, "a dimension written as a number, then arrays");
        return tb_mo_nothing(node->place);
    }
    const int32_t count = node->count - 1;
    mo_base base = MO_T_INTEGER;
    for (int32_t k = 1; k <= count; k++)
        if (v[k].type.base == MO_T_REAL) base = MO_T_REAL;
    if (v[1].type.base == MO_T_BOOLEAN) base = MO_T_BOOLEAN;
    for (int32_t k = 1; k <= count; k++) {
        if (v[k].rank != v[1].rank || first->integer < 1 || first->integer > v[1].rank) {
            tb_mo_fail(b->source, v[k].place, "cat along dimension %lld of %s",
                       (long long)first->integer, tb_mo_type_name(b, v[k].type, v[k].rank));
            return v[1];
        }
        if (!tb_mo_convert(b, &v[k], base, "an array of cat")) return v[1];
    }
    return tb_mo_join(b, v + 1, count, (int32_t)first->integer - 1, node->place);
}

/* arrays: true if the name is one of these */
static bool lower_array_function(mo_build *b, const mo_node *node, const char *name, mo_value *v,
                                 mo_value *value)
{
    const mo_place place = node->place;
    const int32_t count = node->count, rank = count > 0 ? v[0].rank : 0;
    const bool vectors = count == 2 && rank == 1 && v[1].rank == 1;
    if (strcmp(name, "size") == 0) {
        if (count < 1 || count > 2) return wrong(b, node, "an array and a dimension");
        *value = size_of(b, node, &v[0]);
    } else if (strcmp(name, "ndims") == 0) {
        if (count != 1) return wrong(b, node, "an array");
        *value = tb_mo_scalar(tb_mo_x_integer(b, rank, place));
    } else if (strcmp(name, "transpose") == 0) {
        if (count != 1 || rank != 2) return wrong(b, node, "a matrix");
        const mo_x *size[2] = {v[0].size[1], v[0].size[0]};
        mo_lazy lazy = {.kind = MO_L_TRANSPOSE, .base = v[0].type.base, .place = place};
        lazy.operand[0] = v[0].lazy;
        *value = lazy_value(b, lazy, 2, size);
    } else if (strcmp(name, "outerProduct") == 0) {
        if (!vectors) return wrong(b, node, "two vectors");
        mo_value one = tb_mo_promote(b, v[1], 2);
        const mo_x *size[2] = {one.size[1], one.size[0]};
        mo_lazy lazy = {.kind = MO_L_TRANSPOSE, .base = one.type.base, .place = place};
        if (b->source->failed) return true;
        lazy.operand[0] = one.lazy;
        *value = tb_mo_multiply(b, tb_mo_promote(b, v[0], 2), lazy_value(b, lazy, 2, size), place);
    } else if (strcmp(name, "cross") == 0 || strcmp(name, "skew") == 0) {
        const bool is_cross = name[0] == 'c';
        if (is_cross ? !vectors : count != 1 || rank != 1)
            return wrong(b, node, is_cross ? "two vectors of 3" : "a vector of 3");
        mo_base base = v[0].type.base;
        if (is_cross && v[1].type.base == MO_T_REAL) base = MO_T_REAL;
        const mo_x *three = tb_mo_x_integer(b, 3, place);
        for (int32_t k = 0; k < count; k++) {
            tb_mo_check_size(b, v[k].size[0], three, place, 0, "a vector of 3");
            if (!tb_mo_convert(b, &v[k], base, name)) return true;
        }
        *value = cross(b, &v[0], is_cross ? &v[1] : NULL, base, place);
    } else if (strcmp(name, "diagonal") == 0) {
        if (count != 1 || rank != 1) return wrong(b, node, "a vector");
        *value = diagonal(b, &v[0], place);
    } else if (strcmp(name, "symmetric") == 0) {
        if (count != 1 || rank != 2) return wrong(b, node, "a matrix");
        *value = symmetric(b, &v[0], place);
    } else if (strcmp(name, "scalar") == 0 || strcmp(name, "vector") == 0) {
        if (count != 1) return wrong(b, node, "an array");
        if (rank == 0)
            *value = name[0] == 's' ? v[0] : tb_mo_promote(b, v[0], 1);
        else
            *value = flattened(b, &v[0], name[0] == 's', place);
    } else if (strcmp(name, "matrix") == 0) {
        if (count != 1 || rank > 2) return wrong(b, node, "a scalar, a vector or a matrix");
        *value = tb_mo_promote(b, v[0], 2);
    } else if (strcmp(name, "cat") == 0) {
        *value = concatenate(b, node, v);
    } else {
        return false;
    }
    return true;
}

/* ---- scalar functions, element by element ---- */

static const struct {
    const char *name;
    mo_x_op op;
    int32_t arguments;
    enum { TO_REAL, KEEP, TO_INTEGER, REAL_OF_ANY } type;
} SCALAR[] = {
    {"sqrt", MO_X_SQRT, 1, TO_REAL},
    {"sin", MO_X_SIN, 1, TO_REAL},
    {"cos", MO_X_COS, 1, TO_REAL},
    {"tan", MO_X_TAN, 1, TO_REAL},
    {"asin", MO_X_ASIN, 1, TO_REAL},
    {"acos", MO_X_ACOS, 1, TO_REAL},
    {"atan", MO_X_ATAN, 1, TO_REAL},
    {"atan2", MO_X_ATAN2, 2, TO_REAL},
    {"sinh", MO_X_SINH, 1, TO_REAL},
    {"cosh", MO_X_COSH, 1, TO_REAL},
    {"tanh", MO_X_TANH, 1, TO_REAL},
    {"exp", MO_X_EXP, 1, TO_REAL},
    {"log", MO_X_LOG, 1, TO_REAL},
    {"log10", MO_X_LOG10, 1, TO_REAL},
    {"abs", MO_X_ABS, 1, KEEP},
    {"sign", MO_X_SIGN, 1, TO_INTEGER},
    {"floor", MO_X_FLOOR, 1, TO_REAL},
    {"ceil", MO_X_CEIL, 1, TO_REAL},
    {"integer", MO_X_INTEGER, 1, REAL_OF_ANY},
    {"div", MO_X_DIV, 2, KEEP},
    {"mod", MO_X_MOD, 2, KEEP},
    {"rem", MO_X_REM, 2, KEEP},
    {"min", MO_X_MINIMUM, 2, KEEP},
    {"max", MO_X_MAXIMUM, 2, KEEP},
};

static bool lower_scalar_function(mo_build *b, const mo_node *node, const char *name, mo_value *v,
                                  mo_value *value)
{
    for (size_t k = 0; k < sizeof SCALAR / sizeof SCALAR[0]; k++) {
        if (strcmp(SCALAR[k].name, name) != 0) continue;
        if (node->count != SCALAR[k].arguments)
            return wrong(b, node, SCALAR[k].arguments == 1 ? "1 argument" : "2 arguments");
        mo_base base = MO_T_INTEGER;
        for (int32_t i = 0; i < node->count; i++) {
            if (v[i].text || v[i].type.record || v[i].type.base == MO_T_BOOLEAN)
                return wrong(b, node, "numbers");
            if (v[i].type.base == MO_T_REAL) base = MO_T_REAL;
        }
        if (SCALAR[k].type == REAL_OF_ANY && !tb_mo_convert(b, &v[0], MO_T_REAL, name)) return true;
        if (SCALAR[k].type == TO_REAL) base = MO_T_REAL;
        if (SCALAR[k].type == TO_INTEGER || SCALAR[k].type == REAL_OF_ANY) base = MO_T_INTEGER;
        *value =
            tb_mo_each(b, SCALAR[k].op, base, node->place, &v[0], node->count == 2 ? &v[1] : NULL);
        return true;
    }
    return false;
}

/* ---- all ---- */

/* operators of the language that functions cannot hold, or that are left out */
static bool is_left_out(const char *name)
{
    static const char *const NAMES[] = {
        "pre",        "edge",         "change",          "terminal",
        "sample",     "delay",        "reinit",          "spatialDistribution",
        "semiLinear", "homotopy",     "String",          "cardinality",
        "inStream",   "actualStream", "getInstanceName", "terminate",
        "Integer",    "promote",      "Clock",           "previous",
        "hold"};
    for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++)
        if (strcmp(NAMES[k], name) == 0) return true;
    return false;
}

/* functions whose arguments are not all plain values; true if the name is one of these */
static bool lower_special(mo_build *b, const mo_node *node, const char *name, mo_value *value)
{
    const mo_node *a = node->first;
    const int32_t count = node->count;
    if (strcmp(name, "zeros") == 0 || strcmp(name, "ones") == 0) {
        *value = filled(b, node, tb_mo_x_integer(b, name[0] == 'o', node->place), a);
    } else if (strcmp(name, "fill") == 0) {
        if (count < 2) return wrong(b, node, "a value and sizes");
        mo_value x = tb_mo_lower_expression(b, a);
        if (b->source->failed) return true;
        if (x.text || x.type.record || x.rank > 0) return wrong(b, node, "a scalar, then sizes");
        *value = filled(b, node, x.x, a->next);
    } else if (strcmp(name, "identity") == 0) {
        if (count != 1) return wrong(b, node, "a size");
        const mo_x *n = tb_mo_hoist(b, tb_mo_lower_scalar(b, a, MO_T_INTEGER, "a size"));
        const mo_x *size[2] = {n, n};
        *value = lazy_value(
            b, (mo_lazy){.kind = MO_L_IDENTITY, .base = MO_T_INTEGER, .place = node->place}, 2,
            size);
    } else if (strcmp(name, "linspace") == 0) {
        if (count != 3) return wrong(b, node, "two ends and a number of points");
        *value = linspace(b, node);
    } else if (strcmp(name, "noEvent") == 0 || strcmp(name, "smooth") == 0) {
        if (count != (name[0] == 'n' ? 1 : 2)) return wrong(b, node, "an expression");
        *value = tb_mo_lower_expression(b, count == 2 ? a->next : a);
    } else if (strcmp(name, "sum") == 0 || strcmp(name, "product") == 0 ||
               ((strcmp(name, "min") == 0 || strcmp(name, "max") == 0) && count == 1)) {
        if (count != 1) return wrong(b, node, "an array, or an expression with iterators");
        *value = tb_mo_lower_reduction(b, node, name);
    } else {
        return false;
    }
    return true;
}

bool tb_mo_lower_builtin(mo_build *b, const mo_node *node, const char *name, mo_value *value)
{
    mo_value v[MOST_ARGUMENTS];
    if (is_left_out(name)) {
        tb_mo_fail_as(b->source, TB_UNSUPPORTED, node->place, "'%s' is left out", name);
        return true;
    }
    for (const mo_node *a = node->first; a != NULL; a = a->next)
        if (a->kind == MO_NAMED) return false;
    if (lower_special(b, node, name, value)) return true;
    if (strcmp(name, "assert") == 0) {
        tb_mo_fail(b->source, node->place, "assert stands alone, expected an expression");
        return true;
    }
    int32_t count = 0;
    if (node->count > MOST_ARGUMENTS) return false;
    for (const mo_node *a = node->first; a != NULL; a = a->next) {
        v[count++] = tb_mo_lower_expression(b, a);
        if (b->source->failed) return true;
    }
    return lower_array_function(b, node, name, v, value) ||
           (count > 0 && lower_scalar_function(b, node, name, v, value));
}
