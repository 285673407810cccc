/* Sweeps: sequential loops whose rounds are stencils, the second loop pattern of Göteman and Roxling.
 *
 * A round of such a loop is a list of nests over two iterators (i, j), and of copies of whole arrays.
 * Statements between them that do the same in each round, such as arrays that get their sizes, are made in
 * the first one alone, which the host takes.
 * The arrays that the loop stores are matrices of Real, stored at [i, j] alone and read at [i + c, j + d]
 * with constants c and d. So a part of the matrices, with a rim as wide as some rounds reach, is all
 * that a block of threads needs to take these rounds alone: it keeps the part in shared memory,
 * recomputes the rim, and the card's memory is read and written once for several rounds. */
#include "modelica/loops.h"

#include "modelica/emit.h"

typedef struct mo_search {
    mo_sweep *sweep;
    const mo_s *loop; /* the sequential loop */
    int32_t part;     /* under study */
    bool fits;
} mo_search;

bool tb_mo_sweep_holds(const mo_sweep *sweep, int32_t variable)
{
    for (int32_t k = 0; sweep != NULL && k < sweep->arrays; k++)
        if (sweep->array[k] == variable) return true;
    return false;
}

/* ---- values that stay ---- */

/* whether one statement, with those inside of it, assigns a scalar */
static bool assigns_alone(const mo_s *s, int32_t variable)
{
    mo_s alone = *s;
    alone.next = NULL;
    return tb_mo_assigns(&alone, variable);
}

/* The only assignment of a variable in a round, outside of its nests; NULL: none, or several. */
static const mo_s *only_assignment(const mo_s *loop, int32_t variable)
{
    const mo_s *found = NULL;
    for (const mo_s *s = loop->body; s != NULL; s = s->next) {
        if (!assigns_alone(s, variable)) continue;
        if (found != NULL || s->op != MO_S_ASSIGN || s->tree > 0) return NULL;
        found = s;
    }
    return found;
}

/* Whether an expression has one value for all rounds of the sequential loop, from the end of the first on:
 * scalars that each round sets to the same value are among its parts. */
static bool is_constant(const mo_s *loop, const mo_x *x, int32_t depth)
{
    enum { DEEPEST = 6 };
    if (x->op == MO_X_ELEMENT || depth > DEEPEST) return false;
    if (x->op == MO_X_VARIABLE && x->variable == loop->variable) return false;
    if (x->op == MO_X_VARIABLE && tb_mo_assigns(loop->body, x->variable)) {
        const mo_s *s = only_assignment(loop, x->variable);
        return s != NULL && is_constant(loop, s->value, depth + 1);
    }
    for (int32_t k = 0; k < x->count; k++)
        if (!is_constant(loop, x->operand[k], depth)) return false;
    return true;
}

/* ---- ends of the nests ---- */

static bool is_nest(const mo_s *loop, const mo_s *s)
{
    const mo_loop *nest = s->op == MO_S_FOR ? s->loop : NULL;
    if (nest == NULL || nest->depth != 2 || nest->fold != NULL) return false;
    for (int32_t d = 0; d < 2; d++)
        if (!is_constant(loop, nest->nest[d]->value, 0) ||
            !is_constant(loop, nest->nest[d]->limit, 0))
            return false;
    return true;
}

/* ---- arrays that are stored ---- */

static void add_stored(const mo_s *s, void *context)
{
    mo_search *search = context;
    mo_sweep *sweep = search->sweep;
    if ((s->op != MO_S_STORE && s->op != MO_S_COPY) || tb_mo_sweep_holds(sweep, s->variable))
        return;
    if (sweep->arrays == MO_SWEEP_ARRAYS)
        search->fits = false;
    else
        sweep->array[sweep->arrays++] = s->variable;
}

/* ---- accesses ---- */

/* whether subscripts are those of the part's own element, but for constants within the reach */
static bool is_near(const mo_search *search, int32_t count, const mo_x *const *subscript,
                    int64_t *offset)
{
    const mo_s *part = search->sweep->part[search->part];
    if (count != 2 || part->op != MO_S_FOR) return false;
    for (int32_t d = 0; d < 2; d++) {
        const mo_x *base;
        offset[d] = tb_mo_linear(subscript[d], &base);
        if (base == NULL || base->op != MO_X_VARIABLE ||
            base->variable != part->loop->nest[d]->variable || offset[d] > MO_REACH ||
            offset[d] < -MO_REACH)
            return false;
    }
    return true;
}

static void check_read(const mo_x *x, void *context)
{
    mo_search *search = context;
    mo_sweep *sweep = search->sweep;
    const int32_t part = search->part;
    int64_t offset[2];
    /* a scalar that another part of the round sets */
    if (x->op == MO_X_VARIABLE && x->variable != search->loop->variable &&
        !assigns_alone(sweep->part[part], x->variable) && !is_constant(search->loop, x, 0))
        search->fits = false;
    if (x->op == MO_X_ELEMENT && tb_mo_sweep_holds(sweep, x->variable)) {
        if (!is_near(search, x->count, x->operand, offset)) {
            search->fits = false;
            return;
        }
        for (int32_t d = 0; d < 2; d++) {
            if (-offset[d] > sweep->low[part][d]) sweep->low[part][d] = (int32_t)-offset[d];
            if (offset[d] > sweep->high[part][d]) sweep->high[part][d] = (int32_t)offset[d];
        }
    }
    for (int32_t k = 0; k < x->count; k++) check_read(x->operand[k], context);
}

static void check_part(const mo_s *s, void *context)
{
    mo_search *search = context;
    int64_t offset[2] = {0};
    tb_mo_each_expression(s, check_read, search);
    /* a loop inside is no stencil: its rounds are worth a launch of their own, or tiles (product.c) */
    if (s->op == MO_S_FOR || s->op == MO_S_WHILE) search->fits = false;
    if (s->op == MO_S_STORE &&
        (!is_near(search, s->count, s->subscript, offset) || offset[0] != 0 || offset[1] != 0))
        search->fits = false;
    for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->inputs + s->callee->flags; k++)
        if (s->arguments[k].value == NULL &&
            tb_mo_sweep_holds(search->sweep, s->arguments[k].variable))
            search->fits = false;
}

/* ---- the loop ---- */

typedef struct mo_stores {
    int32_t variable, count;
} mo_stores;

static void count_store(const mo_s *s, void *context)
{
    mo_stores *stores = context;
    if ((s->op == MO_S_STORE || s->op == MO_S_COPY) && s->variable == stores->variable)
        stores->count++;
}

/* Whether an array that each round makes 0 needs that in its first round alone: one nest stores elements of
 * it, the same in each round. */
static bool stays_zero(const mo_s *loop, int32_t variable)
{
    mo_stores stores = {variable, 0};
    tb_mo_each_statement(loop->body, count_store, &stores);
    if (stores.count == 0) return true;
    for (const mo_s *s = loop->body; s != NULL; s = s->next) {
        if (s->op != MO_S_FOR || !is_nest(loop, s)) continue;
        for (const mo_s *inner = s->loop->nest[1]->body; inner != NULL; inner = inner->next)
            if (inner->op == MO_S_STORE && inner->variable == variable) return stores.count == 1;
    }
    return false;
}

/* whether a statement between the nests does the same in each round, so that the first one is enough */
static bool settles(const mo_s *loop, const mo_s *s)
{
    if (s->op == MO_S_ASSIGN || s->op == MO_S_ASSERT)
        return s->tree == 0 && is_constant(loop, s->value, 0);
    for (int32_t d = 0; s->op == MO_S_ALLOCATE && d < s->count; d++)
        if (!is_constant(loop, s->subscript[d], 0)) return false;
    return s->op == MO_S_ALLOCATE;
}

static bool add_part(mo_search *search, const mo_s *s)
{
    mo_sweep *sweep = search->sweep;
    const bool settled = settles(search->loop, s);
    sweep->settles = sweep->settles || settled;
    if (settled && (s->op != MO_S_ALLOCATE || stays_zero(search->loop, s->variable))) return true;
    if (sweep->parts == MO_SWEEP_PARTS ||
        (!settled && s->op != MO_S_COPY && !is_nest(search->loop, s)))
        return false;
    sweep->part[sweep->parts++] = s;
    return true;
}

static bool list_parts(mo_search *search, const mo_function *f)
{
    enum { MOST_STATEMENTS = 60 };
    mo_sweep *sweep = search->sweep;
    bool nests = false;
    int32_t count = 0;
    for (const mo_s *s = search->loop->body; s != NULL; s = s->next)
        if (++count > MOST_STATEMENTS) return false;
    for (const mo_s *s = search->loop->body; s != NULL; s = s->next) {
        if (!add_part(search, s)) return false;
        nests = nests || s->op == MO_S_FOR;
    }
    tb_mo_each_statement(search->loop->body, add_stored, search);
    for (int32_t k = 0; k < sweep->arrays; k++) {
        const mo_variable *v = &f->variables[sweep->array[k]];
        if (v->rank != 2 || v->base != MO_T_REAL) return false;
    }
    for (int32_t k = 0; k < sweep->parts; k++)
        if (sweep->part[k]->op == MO_S_COPY && !tb_mo_sweep_holds(sweep, sweep->part[k]->source))
            return false;
    return search->fits && nests;
}

bool tb_mo_find_sweep(const mo_function *f, const mo_s *loop, mo_sweep *sweep)
{
    mo_search search = {.sweep = sweep, .loop = loop, .fits = true};
    *sweep = (mo_sweep){.parts = 0};
    if (loop->step->op != MO_X_CONSTANT || loop->step->integer != 1) return false;
    if (!list_parts(&search, f)) return false;
    for (int32_t k = 0; k < sweep->parts; k++) {
        search.part = k;
        if (sweep->part[k]->op != MO_S_FOR) continue;
        tb_mo_each_statement(sweep->part[k]->loop->nest[1]->body, check_part, &search);
        for (int32_t d = 0; d < 2; d++) {
            sweep->reach_low[d] += sweep->low[k][d];
            sweep->reach_high[d] += sweep->high[k][d];
        }
    }
    for (int32_t d = 0; d < 2; d++)
        if (sweep->reach_low[d] + sweep->reach_high[d] > MO_REACH) search.fits = false;
    return search.fits;
}
