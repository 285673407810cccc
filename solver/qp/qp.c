/* The primal-dual active-set method: systems, sets, and when it is done. PDAS and SCHURPA differ in
 * one thing, whether a changed set is factored or bordered.
 *
 * A set that no longer changes ends the work only if the KKT residual, in double, is small. Else
 * the system is refined (solved again for its residual); if that does not help, the set is factored
 * afresh, and the result reports the residual that is left. */
#include "qp/qp_internal.h"

#include <string.h>

/* ---- memory ---- */

static bool options_make_sense(const tb_qp_options *options)
{
    return options->maximum_iterations >= 1 && options->maximum_solves >= 0 &&
           options->maximum_changes >= 0 && options->maximum_refinements >= 0 &&
           options->tolerance >= 0 && options->tie >= 0 &&
           (options->method == TB_QP_PDAS || options->method == TB_QP_SCHURPA);
}

static bool take_half(tb_qp_half *half, size_t n, tb_arena *arena)
{
    half->t = TB_ARENA_ARRAY(arena, tb_real, n);
    half->particular = TB_ARENA_ARRAY(arena, tb_real, n);
    half->pull = TB_ARENA_ARRAY(arena, tb_real, n);
    return half->t && half->particular && half->pull;
}

static bool take_halves(tb_qp_workspace *work, tb_arena *arena)
{
    if (!work->k0.halves) return true;
    const size_t n = (size_t)work->qp->n;
    work->forces = TB_ARENA_ARRAY(arena, tb_real, n * QP_FORCES);
    return work->forces && take_half(&work->base_half, n, arena) &&
           take_half(&work->step_half, n, arena);
}

TB_EXTERN tb_status tb_qp_begin(const tb_qp *qp, const tb_k0 *k0, const tb_qp_options *options,
                                tb_arena *arena, tb_qp_workspace **result)
{
    if (qp->n < 1 || qp->half_bandwidth < 0 || qp->half_bandwidth >= qp->n || qp->equalities < 0 ||
        qp->equalities > qp->constraints || qp->equalities > qp->n || !options_make_sense(options))
        return TB_INVALID_ARGUMENT;
    tb_qp_workspace *work = TB_ARENA_ZEROED(arena, tb_qp_workspace, 1);
    if (!work) return TB_RESOURCE_EXHAUSTED;
    const size_t n = (size_t)qp->n, m = (size_t)qp->constraints;
    work->qp = qp;
    work->k0 = *k0;
    work->options = *options;
    if (options->tolerance == 0)
        work->options.tolerance = sizeof(tb_real) == sizeof(float) ? 1e-4 : 1e-10;
    if (options->tie == 0) work->options.tie = 100 * (double)TB_REAL_EPSILON;
    work->most = qp->constraints < qp->n ? qp->constraints : qp->n;
    if (options->method == TB_QP_SCHURPA) {
        const int32_t inequalities = qp->constraints - qp->equalities;
        work->limit =
            inequalities < options->maximum_changes ? inequalities : options->maximum_changes;
    }
    const size_t most = (size_t)work->most, limit = (size_t)work->limit;
    work->base = TB_ARENA_ARRAY(arena, int32_t, most);
    work->base_place = TB_ARENA_ARRAY(arena, int32_t, m);
    work->base_solution = TB_ARENA_ARRAY(arena, tb_real, n + most);
    work->changed = TB_ARENA_ARRAY(arena, int32_t, limit);
    work->slot = TB_ARENA_ARRAY(arena, int32_t, m);
    work->border = TB_ARENA_ARRAY(arena, tb_real, (k0->halves ? n : n + most) * limit);
    work->schur = TB_ARENA_ARRAY(arena, tb_real, limit * limit);
    work->schur_factor = TB_ARENA_ARRAY(arena, tb_real, limit * limit);
    work->schur_workspace = TB_ARENA_ARRAY(arena, tb_real, 32 * limit);
    work->schur_pivots = TB_ARENA_ARRAY(arena, int, limit);
    work->schur_integers = TB_ARENA_ARRAY(arena, int, limit);
    work->pi = TB_ARENA_ARRAY(arena, tb_real, limit);
    work->active = TB_ARENA_ARRAY(arena, uint8_t, m);
    work->next = TB_ARENA_ARRAY(arena, uint8_t, m);
    work->y = TB_ARENA_ARRAY(arena, tb_real, n + most);
    work->step = TB_ARENA_ARRAY(arena, tb_real, n + most);
    work->x = TB_ARENA_ZEROED(arena, tb_real, n);
    work->lambda = TB_ARENA_ZEROED(arena, tb_real, m);
    work->product = TB_ARENA_ARRAY(arena, double, n);
    work->sum = TB_ARENA_ARRAY(arena, double, n);
    work->rest = TB_ARENA_ARRAY(arena, tb_real, n);
    work->words = (int32_t)((m + 63) / 64);
    const size_t visits = (size_t)options->maximum_iterations + 1;
    work->hash = TB_ARENA_ARRAY(arena, uint64_t, visits);
    work->visited = TB_ARENA_ARRAY(arena, uint64_t, visits * (size_t)work->words);
    if (!work->base || !work->base_place || !work->base_solution || !work->changed || !work->slot ||
        !work->rest || !work->sum || !take_halves(work, arena) || !work->border || !work->schur ||
        !work->schur_factor || !work->schur_workspace || !work->schur_pivots ||
        !work->schur_integers || !work->pi || !work->active || !work->next || !work->y ||
        !work->step || !work->x || !work->lambda || !work->product || !work->hash || !work->visited)
        return TB_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < m; i++) work->slot[i] = work->base_place[i] = -1;
    *result = work;
    return TB_OK;
}

TB_EXTERN void tb_qp_listen(tb_qp_workspace *work, bool (*cancelled)(void *context), void *context)
{
    work->cancelled = cancelled;
    work->cancelled_context = context;
}

TB_EXTERN void tb_qp_forget(tb_qp_workspace *work)
{
    work->factored = false;
}

/* ---- sets ---- */

/* Predicts the next set (2.12). Within the tie, a constraint keeps its side: Litven's strict
 * inequality would decide by rounding where both sides are zero. Returns the first constraint
 * that changes, `constraints` if none does. */
static int32_t predict(tb_qp_workspace *work)
{
    const tb_qp *qp = work->qp;
    tb_real multiplier = work->largest_a > 0 ? work->largest_f / work->largest_a : 0;
    for (int32_t i = 0; i < qp->constraints; i++)
        multiplier = tb_max(multiplier, tb_abs(work->lambda[i]));
    tb_real length = work->largest_b;
    for (int32_t j = 0; j < qp->n; j++)
        length = tb_max(length, work->largest_a * tb_abs(work->x[j]));
    const double dual_tie = work->options.tie * (double)multiplier;
    const double primal_tie = work->options.tie * (double)length;

    int32_t first = qp->constraints;
    for (int32_t i = 0; i < qp->constraints; i++) {
        bool active = tb_qp_is_equality(qp, i);
        if (!active && !tb_qp_is_off(qp, i))
            active = work->active[i]
                         ? (double)work->lambda[i] >= -dual_tie
                         : (double)qp->b[i] - tb_qp_row_times(qp, i, work->x) < -primal_tie;
        work->next[i] = active;
        if (active != (work->active[i] != 0) && i < first) first = i;
    }
    return first;
}

static void pack_set(const tb_qp_workspace *work, const uint8_t *set, uint64_t *bits,
                     uint64_t *hash)
{
    memset(bits, 0, (size_t)work->words * sizeof *bits);
    for (int32_t i = 0; i < work->qp->constraints; i++)
        bits[i >> 6] |= (uint64_t)(set[i] != 0) << (i & 63);
    *hash = 14695981039346656037u; /* FNV-1a, a word at a time */
    for (int32_t w = 0; w < work->words; w++) *hash = (*hash ^ bits[w]) * 1099511628211u;
}

static void remember_set(tb_qp_workspace *work)
{
    pack_set(work, work->active, work->visited + (int64_t)work->visits * work->words,
             work->hash + work->visits);
    work->visits++;
}

/* How many sets ago the next one was solved for already; 0: never. */
static int32_t came_back(tb_qp_workspace *work)
{
    uint64_t *bits = work->visited + (int64_t)work->visits * work->words, hash;
    pack_set(work, work->next, bits, &hash);
    for (int32_t k = work->visits - 1; k >= 0; k--)
        if (work->hash[k] == hash && memcmp(work->visited + (int64_t)k * work->words, bits,
                                            (size_t)work->words * sizeof *bits) == 0)
            return work->visits - k;
    return 0;
}

/* ---- the method ---- */

enum { LONG_WAY = 40 /* systems, after which sets that do not settle are not waited for */ };

typedef enum set_outcome { SET_SOLVED, SET_CHANGED, SET_STALE, SET_STUCK } set_outcome;

/* The set predicts itself: is this the solution? Refines while that halves the residual. */
static set_outcome confirm(tb_qp_workspace *work, int32_t *first)
{
    tb_kkt *kkt = &work->result->kkt;
    double before = DBL_MAX;
    for (int32_t round = 0;; round++) {
        tb_qp_measure_answer(work);
        if (kkt->relative <= work->options.tolerance) return SET_SOLVED;
        if (round >= work->options.maximum_refinements || !(kkt->relative <= 0.5 * before)) break;
        before = kkt->relative;
        if (!tb_qp_refine(work)) break;
        *first = predict(work);
        if (*first < work->qp->constraints) return SET_CHANGED;
    }
    return work->changes > 0 ? SET_STALE : SET_STUCK;
}

/* The next set, or, when sets come back, one change of it. False: these come back, too. */
static bool choose_next(tb_qp_workspace *work, int32_t first)
{
    tb_qp_result *result = work->result;
    if (result->cycle == 0) {
        const int32_t length = came_back(work);
        if (length == 0) return true;
        result->cycle = length;
        work->visits = 0;
        remember_set(work);
    }
    memcpy(work->next, work->active, (size_t)work->qp->constraints);
    work->next[first] = !work->next[first];
    return came_back(work) == 0;
}

/* True if the set without its dropped constraints is one that was solved for. */
static bool has_left_known_sets(tb_qp_workspace *work)
{
    memcpy(work->next, work->active, (size_t)work->qp->constraints);
    const int32_t length = came_back(work);
    if (length == 0) return true;
    if (work->result->cycle > 0) return false;
    work->result->cycle = length;
    work->visits = 0;
    return true;
}

/* The present set once more, with factors of its own. */
static tb_status factor_again(tb_qp_workspace *work)
{
    work->result->resets++;
    memcpy(work->next, work->active, (size_t)work->qp->constraints);
    return tb_qp_factor_at(work, work->next);
}

/* All sets repeat: the dual method finds the right one. Its system is solved and refined here,
 * and the residual decides. */
static tb_status end_by_dual(tb_qp_workspace *work)
{
    tb_qp_result *result = work->result;
    if (!tb_qp_dual_set(work, work->next, &result->dual_steps))
        return tb_qp_is_cancelled(work) ? TB_CANCELLED : TB_OK;
    const tb_status status = tb_qp_factor_at(work, work->next);
    if (status != TB_OK) return status;
    bool finite = tb_qp_answer(work);
    result->iterations++;
    for (int32_t round = 0; finite; round++) {
        tb_qp_measure_answer(work);
        if (result->kkt.relative <= work->options.tolerance) result->status = TB_OK;
        if (result->status == TB_OK || round >= work->options.maximum_refinements) break;
        finite = tb_qp_refine(work);
    }
    return TB_OK;
}

static tb_status iterate_sets(tb_qp_workspace *work)
{
    tb_qp_result *result = work->result;
    const int32_t constraints = work->qp->constraints;
    for (;;) {
        tb_status status = tb_qp_is_cancelled(work) ? TB_CANCELLED : TB_OK;
        if (status != TB_OK) return status;
        bool finite = tb_qp_answer(work);
        result->iterations++;
        if (!finite && work->changes > 0) { /* the border may be to blame */
            status = factor_again(work);
            if (status != TB_OK) return status;
            finite = tb_qp_answer(work);
        }
        if (!finite) {
            result->status = TB_DIVERGED;
            return end_by_dual(work);
        }
        remember_set(work);

        int32_t first = predict(work);
        if (first == constraints) {
            const set_outcome outcome = confirm(work, &first);
            if (outcome == SET_SOLVED) result->status = TB_OK;
            if (outcome == SET_SOLVED) return TB_OK;
            if (outcome == SET_STUCK) return end_by_dual(work);
        }
        if (result->iterations >= work->options.maximum_iterations) return TB_OK;
        if (result->iterations >= LONG_WAY &&
            result->iterations + 1 >= work->options.maximum_iterations)
            return end_by_dual(work); /* the last system is for its set */
        const int32_t dropped = result->dropped;
        if (first == constraints) {
            status = factor_again(work);
        } else {
            if (!choose_next(work, first)) return end_by_dual(work);
            status = tb_qp_move_to(work, work->next);
        }
        if (status != TB_OK) return status;
        if (result->dropped > dropped && !has_left_known_sets(work)) return end_by_dual(work);
    }
}

/* Scales that ties are measured by. */
static void find_sizes(tb_qp_workspace *work)
{
    const tb_qp *qp = work->qp;
    work->largest_a = work->largest_b = work->largest_f = 0;
    for (int32_t j = 0; j < qp->n; j++) work->largest_f = tb_max(work->largest_f, tb_abs(qp->f[j]));
    for (int32_t i = 0; i < qp->constraints; i++) {
        work->largest_b = tb_max(work->largest_b, tb_abs(qp->b[i]));
        for (int32_t k = qp->row_start[i]; k < qp->row_start[i + 1]; k++)
            work->largest_a = tb_max(work->largest_a, tb_abs(qp->value[k]));
    }
}

TB_EXTERN tb_status tb_qp_solve(tb_qp_workspace *work, uint8_t *active, tb_real *x, tb_real *lambda,
                                tb_qp_result *result)
{
    const tb_qp *qp = work->qp;
    const size_t m = (size_t)qp->constraints;
    const double start = tb_qp_clock();
    *result = (tb_qp_result){.status = TB_NOT_CONVERGED};
    memset(work->x, 0, (size_t)qp->n * sizeof(tb_real));
    work->product_known = false;
    memset(work->lambda, 0, m * sizeof(tb_real));
    work->result = result;
    work->visits = 0;
    find_sizes(work);
    for (int32_t i = 0; i < qp->constraints; i++)
        work->next[i] = tb_qp_is_equality(qp, i) || (active[i] != 0 && !tb_qp_is_off(qp, i));

    tb_status status = TB_OK;
    if (work->factored && work->options.method == TB_QP_SCHURPA) {
        if (work->solves_of_base < work->options.maximum_solves) {
            tb_qp_solve_base(work);
            status = tb_qp_move_to(work, work->next);
        } else {
            result->resets++;
            status = tb_qp_factor_at(work, work->next);
        }
    } else {
        status = tb_qp_factor_at(work, work->next);
    }
    if (status == TB_OK) status = iterate_sets(work);
    if (status != TB_OK) return status;

    if (result->status != TB_OK) tb_qp_measure_answer(work);
    for (int32_t i = qp->equalities; i < qp->constraints; i++) {
        result->active += work->active[i] != 0;
        result->corrected += (work->active[i] != 0) != (active[i] != 0);
    }
    memcpy(active, work->active, m);
    memcpy(x, work->x, (size_t)qp->n * sizeof(tb_real));
    memcpy(lambda, work->lambda, m * sizeof(tb_real));
    result->seconds = tb_qp_clock() - start;
    return TB_OK;
}
