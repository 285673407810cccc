/* Calls inside a loop, written out, so that the dependence analysis sees through them.
 *
 * A copy of the loop's body holds the statements of the callee in place of each call. Arrays that are handed
 * over keep their variable, scalars that cannot change keep their expression, and the other variables of
 * the callee become variables of the caller. The outputs of the callee are the variables that take its
 * results. Functions that return early, and large ones, stay calls. */
#include "modelica/inline.h"

#include <string.h>

enum { DEEPEST = 4, MOST_STATEMENTS = 300, MOST_VARIABLES = 2048 };

/* Replacements of the variables of a callee that is written out, by their number. */
typedef struct mo_map {
    int32_t *variable;
    const mo_x **value; /* of a scalar, or NULL */
    int32_t first_tree; /* trees of the callee begin behind */
} mo_map;

typedef struct mo_inline {
    tb_arena *arena;
    mo_function *function; /* the caller */
    int32_t statements, calls;
    bool failed;
} mo_inline;

static void *take(mo_inline *in, size_t size)
{
    void *memory = tb_arena_take(in->arena, size);
    if (memory == NULL) in->failed = true;
    return memory;
}

/* ---- expressions ---- */

/* a map of the caller's variables to themselves */
static bool open_map(mo_inline *in, mo_map *map, int32_t count)
{
    *map = (mo_map){.variable = TB_ARENA_ZEROED(in->arena, int32_t, count + 1),
                    .value = TB_ARENA_ZEROED(in->arena, const mo_x *, count + 1)};
    if (map->variable == NULL || map->value == NULL) in->failed = true;
    for (int32_t k = 0; k < count && !in->failed; k++) map->variable[k] = k;
    return !in->failed;
}

static bool is_same(const mo_x *a, const mo_x *b)
{
    if (a->op != b->op || a->base != b->base || a->count != b->count) return false;
    if (a->op == MO_X_CONSTANT) return a->base != MO_T_REAL && a->integer == b->integer;
    if (a->variable != b->variable || a->dimension != b->dimension) return false;
    for (int32_t k = 0; k < a->count; k++)
        if (!is_same(a->operand[k], b->operand[k])) return false;
    return true;
}

static const mo_x *copy_x(mo_inline *in, const mo_map *map, const mo_x *x)
{
    if (x == NULL || in->failed) return x;
    if (x->op == MO_X_VARIABLE && map->value[x->variable] != NULL) return map->value[x->variable];
    mo_x *made = take(in, sizeof *made);
    if (made == NULL) return x;
    *made = *x;
    if (x->op == MO_X_VARIABLE || x->op == MO_X_ELEMENT || x->op == MO_X_SIZE)
        made->variable = map->variable[x->variable];
    if (x->op == MO_X_SIZE) {
        const mo_x *lasting = in->function->variables[made->variable].size[x->dimension];
        if (lasting != NULL) return lasting;
    }
    for (int32_t k = 0; k < x->count; k++) made->operand[k] = copy_x(in, map, x->operand[k]);
    return made;
}

/* ---- the callee's variables ---- */

static int32_t add_variable(mo_inline *in, mo_variable content)
{
    mo_function *f = in->function;
    if (f->count == f->capacity) {
        const int32_t capacity = 2 * f->capacity + 16;
        mo_variable *grown = capacity > 2 * MOST_VARIABLES
                                 ? NULL
                                 : TB_ARENA_ZEROED(in->arena, mo_variable, capacity);
        if (grown == NULL) {
            in->failed = true;
            return 0;
        }
        memcpy(grown, f->variables, (size_t)f->count * sizeof *grown);
        f->variables = grown;
        f->capacity = capacity;
    }
    f->variables[f->count] = content;
    return f->count++;
}

/* whether the callee leaves a value unchanged, and reading it again is free */
static bool is_plain(const mo_x *x)
{
    if (x->op == MO_X_CONSTANT || x->op == MO_X_VARIABLE || x->op == MO_X_SIZE) return true;
    return (x->op == MO_X_ADD || x->op == MO_X_SUBTRACT) && x->base == MO_T_INTEGER &&
           x->operand[1]->op == MO_X_CONSTANT && is_plain(x->operand[0]);
}

static mo_s *add_statement(mo_inline *in, mo_s content, mo_s ***tail)
{
    mo_s *s = take(in, sizeof *s);
    if (s == NULL || ++in->statements > MOST_STATEMENTS) {
        in->failed = true;
        return NULL;
    }
    *s = content;
    s->next = NULL;
    s->loop = NULL;
    **tail = s;
    *tail = &s->next;
    return s;
}

static void assign(mo_inline *in, int32_t variable, const mo_x *x, mo_place place, mo_s ***tail)
{
    add_statement(in, (mo_s){.op = MO_S_ASSIGN, .place = place, .variable = variable, .value = x},
                  tail);
}

static const mo_x *zero_of(mo_inline *in, mo_base base, mo_place place)
{
    mo_x *x = take(in, sizeof *x);
    if (x != NULL) *x = (mo_x){.op = MO_X_CONSTANT, .base = base, .place = place};
    return x;
}

/* a scalar begins with its argument, or with 0 */
static void open_scalar(mo_inline *in, const mo_map *outer, const mo_s *call, int32_t k,
                        mo_map *map, mo_s ***tail)
{
    const mo_function *g = call->callee;
    const mo_variable *v = &g->variables[k];
    const int32_t inputs = g->inputs + g->flags;
    if (k < inputs) {
        const mo_x *x = copy_x(in, outer, call->arguments[k].value);
        if (in->failed) return;
        /* an input that is not given gets its default from a statement of the callee */
        const mo_x *given = v->optional ? call->arguments[g->flag[k]].value : NULL;
        const bool defaults = given != NULL && given->op == MO_X_CONSTANT && given->integer == 0;
        if (is_plain(x) && !defaults && (given == NULL || given->op == MO_X_CONSTANT)) {
            map->value[k] = x;
            return;
        }
        map->variable[k] =
            add_variable(in, (mo_variable){.name = v->name, .base = v->base, .place = v->place});
        if (!defaults) assign(in, map->variable[k], x, call->place, tail);
        return;
    }
    if (k < inputs + g->outputs) {
        map->variable[k] = outer->variable[call->results[k - inputs]];
    } else {
        mo_variable own = *v;
        own.role = MO_LOCAL;
        own.value = NULL;
        map->variable[k] = add_variable(in, own);
    }
    if (v->value != NULL || v->iterator || v->temporary) return;
    const mo_x *zero = zero_of(in, v->base, call->place);
    if (zero != NULL) assign(in, map->variable[k], zero, call->place, tail);
}

static void open_array(mo_inline *in, const mo_map *outer, const mo_s *call, int32_t k, mo_map *map)
{
    const mo_function *g = call->callee;
    const int32_t inputs = g->inputs + g->flags;
    mo_variable own = g->variables[k];
    if (k < inputs) {
        map->variable[k] = outer->variable[call->arguments[k].variable];
    } else if (k < inputs + g->outputs) {
        map->variable[k] = outer->variable[call->results[k - inputs]];
        if (!in->failed) in->function->variables[map->variable[k]].name = own.name;
    } else {
        own.role = MO_LOCAL;
        memset(own.size, 0, sizeof own.size);
        map->variable[k] = add_variable(in, own);
    }
}

/* whether an expression of sizes is one of constants and of the caller's inputs, which never change */
static bool is_lasting(const mo_function *f, const mo_x *x)
{
    if (x->op == MO_X_ELEMENT) return false;
    if (x->op == MO_X_VARIABLE || x->op == MO_X_SIZE) {
        const mo_variable *v = &f->variables[x->variable];
        return v->role == MO_IN && !v->optional;
    }
    for (int32_t k = 0; k < x->count; k++)
        if (!is_lasting(f, x->operand[k])) return false;
    return true;
}

/* lasting sizes of the callee's arrays, in terms of the caller; inputs are mapped by then */
static void size_arrays(mo_inline *in, const mo_function *g, const mo_map *map)
{
    for (int32_t k = g->inputs + g->flags; k < g->count; k++) {
        const mo_variable *v = &g->variables[k];
        for (int32_t d = 0; d < v->rank && !in->failed; d++)
            if (v->size[d] != NULL) {
                const mo_x *size = copy_x(in, map, v->size[d]);
                if (!in->failed && is_lasting(in->function, size))
                    in->function->variables[map->variable[k]].size[d] = size;
            }
    }
}

/* ---- statements ---- */

static void copy_list(mo_inline *in, const mo_map *map, const mo_s *s, int32_t depth, mo_s ***tail);

static bool returns(const mo_s *s)
{
    for (; s != NULL; s = s->next)
        if (s->op == MO_S_RETURN || returns(s->body) || returns(s->orelse)) return true;
    return false;
}

static bool write_out(mo_inline *in, const mo_map *outer, const mo_s *call, int32_t depth,
                      mo_s ***tail)
{
    const mo_function *g = call->callee;
    if (depth == DEEPEST || returns(g->body) || g == in->function ||
        in->function->count + g->count > MOST_VARIABLES)
        return false;
    mo_map map;
    if (!open_map(in, &map, g->count)) return false;
    map.first_tree = in->function->trees;
    in->function->trees += g->trees;
    in->calls++;
    for (int32_t k = 0; k < g->count && !in->failed; k++)
        if (g->variables[k].rank > 0) open_array(in, outer, call, k, &map);
    for (int32_t k = 0; k < g->count && !in->failed; k++)
        if (g->variables[k].rank == 0) open_scalar(in, outer, call, k, &map, tail);
    if (!in->failed) size_arrays(in, g, &map);
    copy_list(in, &map, g->body, depth + 1, tail);
    return true;
}

static void copy_call(mo_inline *in, const mo_map *map, const mo_s *s, int32_t depth, mo_s ***tail)
{
    const mo_function *g = s->callee;
    const int32_t inputs = g->inputs + g->flags;
    if (write_out(in, map, s, depth, tail) || in->failed) return;
    mo_s *made = add_statement(in, *s, tail);
    if (made == NULL) return;
    made->arguments = TB_ARENA_ZEROED(in->arena, mo_argument, inputs + 1);
    made->results = TB_ARENA_ZEROED(in->arena, int32_t, g->outputs + 1);
    if (made->arguments == NULL || made->results == NULL) {
        in->failed = true;
        return;
    }
    for (int32_t k = 0; k < inputs; k++) {
        made->arguments[k].value = copy_x(in, map, s->arguments[k].value);
        if (s->arguments[k].value == NULL)
            made->arguments[k].variable = map->variable[s->arguments[k].variable];
    }
    for (int32_t k = 0; k < g->outputs; k++) made->results[k] = map->variable[s->results[k]];
}

/* an assertion that two sizes agree which are the same in the caller */
static bool is_true(const mo_x *x)
{
    return x->op == MO_X_EQUAL && is_same(x->operand[0], x->operand[1]);
}

static void copy_one(mo_inline *in, const mo_map *map, const mo_s *s, int32_t depth, mo_s ***tail)
{
    mo_s content = *s;
    content.value = copy_x(in, map, s->value);
    content.limit = copy_x(in, map, s->limit);
    content.step = copy_x(in, map, s->step);
    for (int32_t d = 0; d < s->count; d++) content.subscript[d] = copy_x(in, map, s->subscript[d]);
    if (s->op != MO_S_ASSERT && s->op != MO_S_IF && s->op != MO_S_WHILE && s->op != MO_S_BREAK &&
        s->op != MO_S_RETURN)
        content.variable = map->variable[s->variable];
    if (s->op == MO_S_MOVE || s->op == MO_S_COPY) content.source = map->variable[s->source];
    if (s->tree > 0) content.tree = s->tree + map->first_tree;
    if (s->op == MO_S_ASSERT && is_true(content.value)) return;
    if (s->op == MO_S_IF && content.value->op == MO_X_CONSTANT) {
        copy_list(in, map, content.value->integer ? s->body : s->orelse, depth, tail);
        return;
    }
    mo_s *made = add_statement(in, content, tail);
    if (made == NULL) return;
    made->body = made->orelse = NULL;
    mo_s **body = &made->body, **orelse = &made->orelse;
    copy_list(in, map, s->body, depth, &body);
    copy_list(in, map, s->orelse, depth, &orelse);
}

static void copy_list(mo_inline *in, const mo_map *map, const mo_s *s, int32_t depth, mo_s ***tail)
{
    for (; s != NULL && !in->failed; s = s->next) {
        if (s->op == MO_S_CALL)
            copy_call(in, map, s, depth, tail);
        else
            copy_one(in, map, s, depth, tail);
    }
}

/* ---- arrays that take another's content ---- */

static void mention_in_x(const mo_x *x, void *context)
{
    int32_t *variable = context;
    if (*variable >= 0 && tb_mo_x_mentions(x, *variable)) *variable = -1;
}

static void mention_in_s(const mo_s *s, void *context)
{
    int32_t *variable = context;
    tb_mo_each_expression(s, mention_in_x, context);
    const bool array =
        s->op == MO_S_STORE || s->op == MO_S_ALLOCATE || s->op == MO_S_MOVE || s->op == MO_S_COPY;
    if (array && s->variable == *variable) *variable = -1;
    if ((s->op == MO_S_MOVE || s->op == MO_S_COPY) && s->source == *variable) *variable = -1;
    for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->inputs; k++)
        if (s->arguments[k].value == NULL && s->arguments[k].variable == *variable) *variable = -1;
    for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->outputs; k++)
        if (s->results[k] == *variable) *variable = -1;
}

/* whether one statement, with those inside of it, mentions an array */
static bool mentions(const mo_s *s, int32_t variable)
{
    mo_s alone = *s;
    alone.next = NULL;
    tb_mo_each_statement(&alone, mention_in_s, &variable);
    return variable < 0;
}

/* t := ..., v := content of t: the statements between write to v at once, if none of them reads v. */
static void join_move(mo_inline *in, mo_s **list, mo_s **move)
{
    const int32_t v = (*move)->variable, t = (*move)->source;
    mo_s **from = NULL;
    for (mo_s **s = list; s != move; s = &(*s)->next)
        if ((*s)->op == MO_S_ALLOCATE && (*s)->variable == t) from = s;
    if (from == NULL) return;
    for (mo_s **s = list; *s != NULL; s = &(*s)->next)
        if (s == from) {
            while (s != move) {
                if (mentions(*s, v)) return;
                s = &(*s)->next;
            }
        } else if (mentions(*s, t)) {
            return;
        }
    /* the same statements with the one variable for the other */
    mo_map map;
    if (!open_map(in, &map, in->function->count)) return;
    map.variable[t] = v;
    mo_s *rest = (*move)->next, **tail = from, *first = *from;
    *move = NULL;
    copy_list(in, &map, first, DEEPEST, &tail);
    *tail = rest;
}

static void join_moves(mo_inline *in, mo_s **list)
{
    for (mo_s **s = list; *s != NULL && !in->failed; s = &(*s)->next)
        if ((*s)->op == MO_S_MOVE) {
            const mo_s *before = *s;
            join_move(in, list, s);
            if (*s != before) s = list; /* statements are new: from the begin */
            if (*s == NULL) return;
        }
}

mo_s *tb_mo_inline(tb_arena *arena, mo_function *f, const mo_s *loop)
{
    mo_inline in = {.arena = arena, .function = f};
    mo_map own;
    mo_s *made = NULL, **tail = &made;
    if (!open_map(&in, &own, f->count)) return NULL;
    mo_s alone = *loop;
    alone.next = NULL;
    copy_list(&in, &own, &alone, 0, &tail);
    if (!in.failed && in.calls > 0) join_moves(&in, &made->body);
    return in.failed || in.calls == 0 ? NULL : made;
}
