/* Programs with bounds: sets, and when they are done. See the header. */
#include "qp/bounded_qp.h"

#include "base/team.h"

#include <string.h>

enum {
    BOUNDED_SETS = 40,       /* that may change as they will; then one variable at a time */
    BOUNDED_REFINEMENTS = 2, /* of a set */
    BOUNDED_FEW = 32 /* columns of any border; more are half as many as there are variables */
};

/* of the largest number there is: less is rounding, and a variable stays where it is */
static const double BOUNDED_TIE = 100 * (double)TB_REAL_EPSILON;

/* ---- memory ---- */

TB_EXTERN tb_status tb_bounded_take(tb_bounded *b, int32_t n, bool with_h, tb_arena *arena)
{
    memset(b, 0, sizeof *b);
    b->n = n;
    b->h = TB_ARENA_ARRAY(arena, tb_real, with_h ? (size_t)n * (size_t)n : 0);
    b->f = TB_ARENA_ZEROED(arena, tb_real, n);
    b->lower = TB_ARENA_ZEROED(arena, tb_real, n);
    b->upper = TB_ARENA_ZEROED(arena, tb_real, n);
    b->state = TB_ARENA_ZEROED(arena, uint8_t, n);
    b->x = TB_ARENA_ZEROED(arena, tb_real, n);
    b->gradient = TB_ARENA_ZEROED(arena, double, n);
    return b->h && b->f && b->lower && b->upper && b->state && b->x && b->gradient
               ? TB_OK
               : TB_RESOURCE_EXHAUSTED;
}

TB_EXTERN tb_status tb_bounded_begin(tb_bounded *b, tb_arena *arena)
{
    const size_t n = (size_t)b->n;
    b->limit = BOUNDED_FEW + b->n / 2 < b->n ? BOUNDED_FEW + b->n / 2 : b->n;
    const size_t limit = (size_t)b->limit;
    b->free = TB_ARENA_ARRAY(arena, int32_t, n);
    b->place = TB_ARENA_ARRAY(arena, int32_t, n);
    b->root = TB_ARENA_ARRAY(arena, tb_real, n * n);
    b->pivots = TB_ARENA_ARRAY(arena, tb_real, n);
    b->changed = TB_ARENA_ARRAY(arena, int32_t, limit);
    b->slot = TB_ARENA_ARRAY(arena, int32_t, n);
    b->border = TB_ARENA_ARRAY(arena, tb_real, n * limit);
    b->schur = TB_ARENA_ARRAY(arena, tb_real, limit * limit);
    b->factor = TB_ARENA_ARRAY(arena, tb_real, limit * limit);
    b->scale = TB_ARENA_ARRAY(arena, tb_real, limit);
    b->pi = TB_ARENA_ARRAY(arena, tb_real, limit);
    b->next = TB_ARENA_ARRAY(arena, uint8_t, n);
    b->known = TB_ARENA_ARRAY(arena, uint64_t, BOUNDED_SETS);
    b->fixed = TB_ARENA_ARRAY(arena, tb_real, n);
    b->force = TB_ARENA_ARRAY(arena, tb_real, n);
    b->own = TB_ARENA_ARRAY(arena, tb_real, n);
    b->half = TB_ARENA_ARRAY(arena, tb_real, n);
    b->step = TB_ARENA_ARRAY(arena, tb_real, n);
    b->along = TB_ARENA_ARRAY(arena, tb_real, n);
    return b->free && b->place && b->root && b->pivots && b->changed && b->slot && b->border &&
                   b->schur && b->factor && b->scale && b->pi && b->next && b->known && b->fixed &&
                   b->force && b->own && b->half && b->step && b->along
               ? TB_OK
               : TB_RESOURCE_EXHAUSTED;
}

/* ---- the answer of a set ---- */

/* H x + f, in double */
TB_STATIC void bounded_gradient(const tb_bounded *b)
{
    const int64_t n = b->n;
    const tb_real *x = b->x;
    double *to = b->gradient;
    if (tb_team_is_one()) {
        for (int64_t i = 0; i < n; i++) to[i] = (double)b->f[i];
        for (int64_t k = 0; k < n; k++) {
            const tb_real *column = b->h + k * n;
            const double factor = (double)x[k];
            if (factor == 0) continue;
            for (int64_t i = 0; i < n; i++) to[i] += (double)column[i] * factor;
        }
        return;
    }
    TB_EACH (i, b->n) {
        double sum = (double)b->f[i];
        TB_UNROLLED
        for (int32_t k = 0; k < b->n; k++) {
            const double number = (double)b->h[k * n + i], factor = (double)x[k];
            if (factor != 0) sum += number * factor;
        }
        to[i] = sum;
    }
    tb_team_sync();
}

/* Computes x of the present set and the gradient there. Variables at a bound get its value to
 * the last bit; the system is passed the values that it does not know. */
TB_STATIC void bounded_answer(tb_bounded *b, tb_bounded_result *result)
{
    TB_EACH (j, b->n) {
        const uint8_t state = b->state[j];
        const tb_real value = state == TB_BOUND_LOWER   ? b->lower[j]
                              : state == TB_BOUND_UPPER ? b->upper[j]
                                                        : 0;
        b->x[j] = value;
        b->fixed[j] = b->place[j] < 0 ? value : 0;
        b->force[j] = b->f[j];
    }
    tb_team_sync();
    tb_bounded_add(b->force, b->n, b->h, b->n, b->fixed, b->n, TB_ALL_COLUMNS);
    tb_team_sync();
    TB_EACH (j, b->n) b->force[j] = -b->force[j];
    tb_team_sync();
    tb_bounded_system(b, b->force, b->x, b->x);
    bounded_gradient(b);
    result->iterations++;
    result->solves++;
}

/* One step of iterative refinement. */
TB_STATIC void bounded_refine(tb_bounded *b, tb_bounded_result *result)
{
    TB_EACH (j, b->n) b->force[j] = b->state[j] == TB_BOUND_FREE ? TB_R(-b->gradient[j]) : 0;
    tb_team_sync();
    tb_bounded_system(b, b->force, NULL, b->step);
    TB_EACH (j, b->n)
        if (b->state[j] == TB_BOUND_FREE) b->x[j] += b->step[j];
    tb_team_sync();
    bounded_gradient(b);
    result->refinements++;
    result->solves++;
}

/* ---- prediction of the next set ---- */

/* The largest numbers that errors are measured by. */
typedef struct bounded_sizes {
    double force, length, multiplier;
    bool finite;
} bounded_sizes;

typedef struct bounded_prediction {
    int32_t first;     /* variable that changes; n: none does */
    uint64_t hash;     /* of the next set */
    double worst;      /* KKT residual */
    bounded_sizes all; /* of the present answer */
} bounded_prediction;

TB_FN double bounded_larger(double most, double value)
{
    return value > most ? value : most;
}

/* An infinite bound has no size. */
TB_FN double bound_length(tb_real bound)
{
    return tb_abs(bound) <= TB_REAL_MAX ? fabs((double)bound) : 0;
}

TB_STATIC bounded_sizes measure_sizes(const tb_bounded *b)
{
    bounded_sizes own = {0, 0, 0, true};
    TB_EACH (j, b->n) {
        const double f = fabs((double)b->f[j]), g = b->gradient[j], x = fabs((double)b->x[j]);
        own.finite = own.finite && fabs(g) <= DBL_MAX && x <= DBL_MAX;
        own.force = bounded_larger(own.force, f);
        own.force = bounded_larger(own.force, fabs(g - (double)b->f[j]));
        own.multiplier = bounded_larger(own.multiplier, f);
        if (b->state[j] != TB_BOUND_FREE) own.multiplier = bounded_larger(own.multiplier, fabs(g));
        own.length = bounded_larger(own.length, x);
        own.length = bounded_larger(own.length, bound_length(b->lower[j]));
        own.length = bounded_larger(own.length, bound_length(b->upper[j]));
    }
    own.force = tb_team_largest(own.force);
    own.length = tb_team_largest(own.length);
    own.multiplier = tb_team_largest(own.multiplier);
    own.finite = tb_team_all(own.finite);
    return own;
}

/* A variable's part of a set's hash; parts are joined in any order. */
TB_FN uint64_t hash_of_state(int32_t variable, uint8_t state)
{
    uint64_t h = ((uint64_t)variable << 2 | state) * 0x9E3779B97F4A7C15u; /* SplitMix64 */
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    return h ^ h >> 31;
}

/* Where a variable should be; *wrong: by how much it is not where it should, of its tie. */
TB_STATIC uint8_t next_state(const tb_bounded *b, int32_t j, const bounded_sizes *sizes,
                             double *wrong)
{
    const double dual = sizes->multiplier, primal = sizes->length, g = b->gradient[j];
    const double below = (double)b->lower[j] - (double)b->x[j];
    const double above = (double)b->x[j] - (double)b->upper[j];
    *wrong = 0;
    if (b->lower[j] >= b->upper[j]) return TB_BOUND_LOWER;
    if (b->state[j] == TB_BOUND_FREE) {
        const double outside = bounded_larger(below, above);
        *wrong = bounded_larger(sizes->force > 0 ? fabs(g) / sizes->force : 0,
                                primal > 0 ? outside / primal : 0);
        if (below > BOUNDED_TIE * primal) return TB_BOUND_LOWER;
        return above > BOUNDED_TIE * primal ? TB_BOUND_UPPER : TB_BOUND_FREE;
    }
    const double inward = b->state[j] == TB_BOUND_LOWER ? -g : g;
    if (inward > 0 && dual > 0) *wrong = inward / dual;
    return inward > BOUNDED_TIE * dual ? (uint8_t)TB_BOUND_FREE : b->state[j];
}

/* All that contradict the set change at once (Litven 2.12), but within a tie. */
TB_STATIC bounded_prediction bounded_predict(const tb_bounded *b)
{
    bounded_prediction p = {b->n, 0, 0, measure_sizes(b)};
    double worst = 0, first = -(double)b->n; /* the least index is the largest of these */
    TB_EACH (j, b->n) {
        double wrong = 0;
        const uint8_t next = next_state(b, j, &p.all, &wrong);
        b->next[j] = next;
        p.hash ^= hash_of_state(j, next);
        if (next != b->state[j]) first = bounded_larger(first, -(double)j);
        worst = bounded_larger(worst, wrong);
    }
    p.first = (int32_t)-tb_team_largest(first);
    p.worst = tb_team_largest(worst);
    p.hash = tb_team_xor(p.hash);
    tb_team_sync();
    return p;
}

/* ---- the method ---- */

TB_STATIC bool bounded_is_cancelled(const tb_solve_options *options)
{
#ifdef TB_DEVICE
    (void)options;
    return false;
#else
    return options && options->cancelled && options->cancelled(options->cancelled_context);
#endif
}

TB_STATIC void bounded_keep_set(const tb_bounded *b)
{
    TB_EACH (j, b->n) b->next[j] = b->state[j];
    tb_team_sync();
}

/* Factors at `next`; false where H is not definite. */
TB_STATIC bool bounded_reset(tb_bounded *b, tb_bounded_result *result)
{
    result->resets++;
    return tb_bounded_factor(b, result);
}

/* `next` becomes the set. */
TB_STATIC bool bounded_move(tb_bounded *b, tb_bounded_result *result)
{
    return tb_bounded_border(b, result) || bounded_reset(b, result);
}

/* A set that predicts itself: refined while that halves the residual. False: it has changed, or
 * stays wrong; *end says which. */
TB_STATIC bool bounded_confirm(tb_bounded *b, bounded_prediction *p, tb_bounded_result *result)
{
    double before = DBL_MAX;
    for (int32_t round = 0; p->first == b->n; round++) {
        result->relative = p->worst;
        if (p->worst <= b->tolerance) return true;
        if (round >= BOUNDED_REFINEMENTS || !(p->worst <= 0.5 * before)) return false;
        before = p->worst;
        bounded_refine(b, result);
        *p = bounded_predict(b);
    }
    return false;
}

/* Whether the next set was solved for already; *sets: how many were. */
TB_STATIC int32_t bounded_came_back(const tb_bounded *b, int32_t sets, uint64_t hash)
{
    TB_ROLLED
    for (int32_t k = sets - 1; k >= 0; k--)
        if (b->known[k] == hash) return sets - k;
    return 0;
}

/* The next set: all that would change, or, when sets have come back or changed for long, the first
 * one alone. */
TB_STATIC void bounded_choose(tb_bounded *b, const bounded_prediction *p, int32_t *sets,
                              tb_bounded_result *result)
{
    if (*sets >= 0 && *sets < BOUNDED_SETS) {
        result->cycle = bounded_came_back(b, *sets, p->hash);
        if (result->cycle == 0) {
            if (TB_LEADER) b->known[*sets] = p->hash;
            ++*sets;
            tb_team_sync();
            return;
        }
    }
    *sets = -1;
    TB_EACH (j, b->n)
        if (j != p->first) b->next[j] = b->state[j];
    tb_team_sync();
}

/* The first working set: as given, but a variable with equal bounds is at its bound, and no
 * infinite bound is active. */
TB_STATIC uint64_t bounded_first_set(const tb_bounded *b)
{
    uint64_t hash = 0;
    TB_EACH (j, b->n) {
        uint8_t state = b->state[j];
        if (b->lower[j] >= b->upper[j]) {
            state = TB_BOUND_LOWER;
        } else if (state != TB_BOUND_FREE) {
            const tb_real bound = state == TB_BOUND_LOWER ? b->lower[j] : b->upper[j];
            if (!(tb_abs(bound) <= TB_REAL_MAX)) state = TB_BOUND_FREE;
        }
        b->next[j] = state;
        hash ^= hash_of_state(j, state);
    }
    hash = tb_team_xor(hash);
    if (TB_LEADER) b->known[0] = hash;
    tb_team_sync();
    return hash;
}

TB_STATIC tb_status bounded_iterate(tb_bounded *b, const tb_solve_options *options,
                                    tb_bounded_result *result)
{
    const int32_t most = 2 * BOUNDED_SETS + 8 * b->n;
    int32_t sets = 1; /* in `known`; -1: they change one at a time */
    while (!bounded_is_cancelled(options)) {
        bounded_answer(b, result);
        bounded_prediction p = bounded_predict(b);
        if (!p.all.finite && b->changes > 0) { /* the border may be to blame */
            bounded_keep_set(b);
            if (!bounded_reset(b, result)) return TB_FAILED_PRECONDITION;
            bounded_answer(b, result);
            p = bounded_predict(b);
        }
        if (!p.all.finite) {
            result->status = TB_DIVERGED;
            return TB_OK;
        }
        result->relative = p.worst;
        if (bounded_confirm(b, &p, result)) {
            b->hash = p.hash;
            result->status = TB_OK;
            return TB_OK;
        }
        if (result->iterations >= most || (p.first == b->n && b->changes == 0)) {
            b->hash = p.hash;
            return TB_OK;
        }
        bool moved;
        if (p.first == b->n) { /* the same set once more, with factors of its own */
            moved = bounded_reset(b, result);
        } else {
            bounded_choose(b, &p, &sets, result);
            moved = bounded_move(b, result);
        }
        if (!moved) return TB_FAILED_PRECONDITION;
    }
    return TB_CANCELLED;
}

TB_EXTERN tb_status tb_bounded_solve(tb_bounded *b, const tb_solve_options *options,
                                     tb_bounded_result *result)
{
    memset(result, 0, sizeof *result);
    result->status = TB_NOT_CONVERGED;
    b->hash = bounded_first_set(b);
    const bool moved = b->factored ? bounded_move(b, result) : tb_bounded_factor(b, result);
    return moved ? bounded_iterate(b, options, result) : TB_FAILED_PRECONDITION;
}
