/* Programs with bounds: the factor of a set and its border. See the header. */
#include "base/team.h"
#include "qp/bounded_qp.h"

/* right-hand sides after which a fresh factorization is due (Litven's max_solve) */
static const int32_t BOUNDED_MOST_SOLVES = 500;

/* ---- products ---- */

/* Both ways leave the same bytes: each number has its sum in the order of k. */
TB_EXTERN void tb_bounded_add(tb_real *to, int32_t n, const tb_real *m, int64_t stride,
                              const tb_real *v, int32_t count, int which)
{
    if (tb_team_is_one()) { /* column by column: several numbers at a time */
        for (int32_t k = 0; k < count; k++) {
            const tb_real factor = v[k], *column = m + k * stride;
            const int32_t first = which == TB_COLUMNS_UP_TO ? k : 0;
            const int32_t end = which == TB_COLUMNS_FROM ? k + 1 : n;
            if (factor == 0) continue;
            for (int32_t i = first; i < end; i++) to[i] += column[i] * factor;
        }
        return;
    }
    TB_EACH (i, n) {
        tb_real sum = to[i];
        /* lanes side by side read neighbours: all begin where the first of them does */
        const int32_t own = which == TB_COLUMNS_FROM ? i : 0;
        const int32_t first = which == TB_COLUMNS_FROM ? i - tb_team_lane() : 0;
        const int32_t end = which == TB_COLUMNS_UP_TO ? i + 1 : count;
        TB_UNROLLED
        for (int32_t k = first; k < end; k++) {
            const tb_real number = m[k * stride + i], factor = v[k];
            if (k >= own && factor != 0) sum += number * factor;
        }
        to[i] = sum;
    }
}

TB_STATIC void bounded_zero(tb_real *to, int32_t n)
{
    TB_EACH (i, n) to[i] = 0;
    tb_team_sync();
}

/* ---- the factor ---- */

/* The variables that `next` leaves free, dealt out in their order. */
TB_STATIC void bounded_list_free(tb_bounded *b)
{
    const int32_t lanes = tb_team_lanes();
    b->frees = 0;
    TB_ROLLED
    for (int32_t first = 0; first < b->n; first += lanes) {
        const int32_t j = first + tb_team_lane();
        const bool is_free = j < b->n && b->next[j] == TB_BOUND_FREE;
        int32_t all = 0;
        const int32_t at = b->frees + tb_team_before(is_free, &all);
        if (is_free) b->free[at] = j;
        if (j < b->n) {
            b->place[j] = is_free ? at : -1;
            b->slot[j] = -1;
            b->state[j] = b->next[j];
        }
        b->frees += all;
    }
    tb_team_sync();
}

/* H_FF above the diagonal */
TB_STATIC void bounded_gather_free(const tb_bounded *b)
{
    const int64_t n = b->n, m = b->frees;
    for (int64_t j = 0; j < m; j++) {
        const tb_real *from = b->h + b->free[j] * n;
        TB_EACH (i, b->frees - (int32_t)j) b->root[j * m + j + i] = from[b->free[j + i]];
    }
    tb_team_sync();
}

/* Number j of each row of L from j on, from H_FF: row j of the upper triangle */
TB_STATIC void cholesky_column(const tb_bounded *b, int64_t j)
{
    const int64_t m = b->frees;
    tb_real *to = b->root + j * m;
    if (tb_team_is_one()) {
        for (int64_t k = 0; k < j; k++) {
            const tb_real *other = b->root + k * m, factor = other[j];
            for (int64_t i = j; i < m; i++) to[i] -= other[i] * factor;
        }
        return;
    }
    TB_EACH (place, b->frees - (int32_t)j) {
        const int64_t i = j + place;
        const tb_real *other = b->root;
        tb_real sum = to[i];
        TB_UNROLLED
        for (int32_t k = 0; k < (int32_t)j; k++) sum -= other[k * m + i] * other[k * m + j];
        to[i] = sum;
    }
}

/* Fills L' above the diagonal and 1 / L_jj; false if H_FF is not positive definite. */
TB_STATIC bool bounded_cholesky(const tb_bounded *b)
{
    const int64_t m = b->frees;
    for (int64_t j = 0; j < m; j++) {
        tb_real *row = b->root + j * m;
        cholesky_column(b, j);
        tb_team_sync();
        const tb_real pivot = row[j];
        if (!(pivot > TB_REAL_EPSILON * b->h[b->free[j] * ((int64_t)b->n + 1)])) return false;
        const tb_real inverse = 1 / tb_sqrt(pivot);
        TB_EACH (i, b->frees - 1 - (int32_t)j) row[j + 1 + i] *= inverse;
        if (TB_LEADER) b->pivots[j] = inverse;
        tb_team_sync();
    }
    return true;
}

/* L^-1 below the diagonal, a lane column by column */
TB_STATIC void invert_factor(const tb_bounded *b)
{
    const int64_t m = b->frees;
    tb_real *root = b->root;
    for (int64_t i = 1; i < m; i++) {
        tb_real *row = root + i * m;
        const tb_real pivot = -b->pivots[i];
        if (tb_team_is_one()) {
            for (int64_t j = 0; j < i; j++) row[j] = 0;
            for (int64_t k = 0; k < i; k++) {
                const tb_real factor = root[k * m + i];
                for (int64_t j = 0; j < k; j++) row[j] += factor * root[k * m + j];
                row[k] += factor * b->pivots[k];
            }
            for (int64_t j = 0; j < i; j++) row[j] *= pivot;
            continue;
        }
        TB_EACH (j, (int32_t)i) {
            tb_real sum = 0;
            sum += root[j * m + i] * b->pivots[j];
            TB_UNROLLED
            for (int32_t k = j - tb_team_lane() + 1; k < (int32_t)i; k++) {
                const tb_real factor = root[k * m + i], number = root[k * m + j];
                if (k > j) sum += factor * number;
            }
            row[j] = sum * pivot;
        }
    }
    tb_team_sync();
    TB_EACH (i, b->frees) {
        TB_ROLLED
        for (int64_t k = 0; k < i; k++) root[k * m + i] = root[i * m + k];
        root[i * (m + 1)] = b->pivots[i];
    }
    tb_team_sync();
}

TB_EXTERN bool tb_bounded_factor(tb_bounded *b, tb_bounded_result *result)
{
    b->changes = b->rows = b->used = 0;
    b->factored = false;
    result->factorizations++;
    bounded_list_free(b);
    bounded_gather_free(b);
    if (!bounded_cholesky(b)) return false;
    invert_factor(b);
    b->factored = true;
    return true;
}

/* ---- the border ---- */

/* The last slot fills the gap. */
TB_STATIC void bounded_take_out(tb_bounded *b, int32_t s)
{
    const int64_t limit = b->limit;
    const int32_t last = --b->changes, variable = b->changed[s], other = b->changed[last];
    tb_team_sync(); /* all have read them */
    if (s < last) {
        TB_EACH (k, b->frees) b->border[k * limit + s] = b->border[k * limit + last];
        tb_real *c = b->schur;
        TB_EACH (k, last) {
            const tb_real number = c[last * limit + (k == s ? last : k)];
            c[s * limit + k] = number;
            if (k != s) c[k * limit + s] = number;
        }
    }
    if (TB_LEADER) {
        b->slot[variable] = -1;
        if (s < last) b->changed[s] = other;
        if (s < last) b->slot[other] = s;
    }
    if (b->rows > s) b->rows = s;
    tb_team_sync();
}

/* Assigns slots to variables in which `next` differs from the factored set; false if they are
 * too many. */
TB_STATIC bool bounded_put_in(tb_bounded *b)
{
    const int32_t lanes = tb_team_lanes();
    TB_ROLLED
    for (int32_t first = 0; first < b->n; first += lanes) {
        const int32_t j = first + tb_team_lane();
        const bool is_new =
            j < b->n && b->slot[j] < 0 && (b->next[j] == TB_BOUND_FREE) != (b->place[j] >= 0);
        int32_t all = 0;
        const int32_t at = b->changes + tb_team_before(is_new, &all);
        if (b->changes + all > b->limit) {
            tb_team_sync();
            return false;
        }
        if (is_new) {
            b->changed[at] = j;
            b->slot[j] = at;
        }
        b->changes += all;
    }
    tb_team_sync();
    return true;
}

/* T's column of a slot, and its row of D - T' T. */
TB_STATIC void make_column(const tb_bounded *b, int32_t s)
{
    const int64_t n = b->n, m = b->frees, limit = b->limit;
    const int32_t variable = b->changed[s], place = b->place[variable];
    tb_real *half = b->half;
    if (place >= 0) { /* a column of L^-1 */
        TB_EACH (k, b->frees) half[k] = k >= place ? b->root[place * m + k] : 0;
    } else {
        TB_EACH (k, b->frees) {
            b->own[k] = b->h[variable * n + b->free[k]];
            half[k] = 0;
        }
        tb_team_sync();
        tb_bounded_add(half, b->frees, b->root, m, b->own, b->frees, TB_COLUMNS_UP_TO);
    }
    TB_EACH (r, s + 1) b->along[r] = 0;
    tb_team_sync();
    TB_EACH (k, b->frees) b->border[k * limit + s] = half[k];
    tb_team_sync();
    tb_bounded_add(b->along, s + 1, b->border, limit, half, b->frees, TB_ALL_COLUMNS);
    tb_team_sync();
    TB_EACH (r, s + 1) {
        const int32_t other = b->changed[r];
        const bool both = place < 0 && b->place[other] < 0;
        const tb_real number = (both ? b->h[variable * n + other] : 0) - b->along[r];
        b->schur[s * limit + r] = number;
        b->schur[r * limit + s] = number;
    }
    tb_team_sync();
}

/* Rows of L D L' that are not up to date; false where a pivot has not the sign that it must. */
TB_STATIC bool factor_schur_rows(tb_bounded *b)
{
    const int64_t limit = b->limit;
    tb_real *f = b->factor;
    for (int32_t j = 0; j < b->changes; j++) {
        const int32_t first = j > b->rows ? j : b->rows;
        TB_EACH (place, b->changes - first) {
            const int64_t i = first + place;
            tb_real sum = b->schur[i * limit + j];
            TB_UNROLLED
            for (int32_t k = 0; k < j; k++) sum -= f[i * limit + k] * f[k * limit + j];
            f[i * limit + j] = sum;
        }
        tb_team_sync();
        const tb_real pivot = f[j * (limit + 1)];
        const int32_t variable = b->changed[j];
        const bool released = b->place[variable] < 0;
        const tb_real least = TB_REAL_EPSILON * (released ? b->h[variable * ((int64_t)b->n + 1)]
                                                          : tb_abs(b->schur[j * (limit + 1)]));
        if (!((released ? pivot : -pivot) > least)) {
            b->rows = 0;
            return false;
        }
        if (TB_LEADER && j >= b->rows) b->scale[j] = pivot;
        TB_EACH (place, b->changes - first) {
            const int64_t i = first + place;
            if (i > j) f[j * limit + i] = f[i * limit + j] / pivot;
        }
        tb_team_sync();
    }
    b->rows = b->changes;
    return true;
}

TB_EXTERN bool tb_bounded_border(tb_bounded *b, tb_bounded_result *result)
{
    /* variables that changed back go first, so that their slots are free */
    for (int32_t s = b->changes - 1; s >= 0; s--) {
        const int32_t j = b->changed[s];
        if ((b->next[j] == TB_BOUND_FREE) != (b->place[j] >= 0)) continue;
        bounded_take_out(b, s);
        result->deletions++;
    }
    const int32_t known = b->changes;
    if (!bounded_put_in(b)) return false;
    const int32_t fresh = b->changes - known;
    b->used += fresh;
    result->solves += fresh;
    if (b->used > BOUNDED_MOST_SOLVES) return false;
    for (int32_t s = known; s < b->changes; s++) make_column(b, s);
    if (!factor_schur_rows(b)) return false;
    if (b->changes > result->largest_border) result->largest_border = b->changes;
    TB_EACH (j, b->n) b->state[j] = b->next[j];
    tb_team_sync();
    return true;
}

/* ---- systems ---- */

/* pi <- (L D L')^-1 pi */
TB_STATIC void solve_schur(const tb_bounded *b)
{
    const int64_t limit = b->limit;
    const tb_real *f = b->factor;
    tb_real *pi = b->pi;
    for (int32_t j = 0; j < b->changes; j++) {
        const tb_real known = pi[j];
        TB_EACH (place, b->changes - 1 - j) {
            const int32_t i = j + 1 + place;
            pi[i] -= f[j * limit + i] * known;
        }
        tb_team_sync();
    }
    TB_EACH (j, b->changes) pi[j] /= b->scale[j];
    tb_team_sync();
    for (int32_t j = b->changes - 1; j > 0; j--) {
        const tb_real known = pi[j];
        TB_EACH (i, j) pi[i] -= f[i * limit + j] * known;
        tb_team_sync();
    }
}

TB_EXTERN void tb_bounded_system(tb_bounded *b, const tb_real *force, const tb_real *fixed,
                                 tb_real *to)
{
    const int64_t limit = b->limit;
    tb_real *half = b->half, *own = b->own, *along = b->along;
    b->used++;
    TB_EACH (k, b->frees) {
        own[k] = force[b->free[k]];
        half[k] = 0;
    }
    TB_EACH (s, b->changes) along[s] = 0;
    tb_team_sync();
    tb_bounded_add(half, b->frees, b->root, b->frees, own, b->frees, TB_COLUMNS_UP_TO);
    tb_team_sync();
    if (b->changes > 0) {
        tb_bounded_add(along, b->changes, b->border, limit, half, b->frees, TB_ALL_COLUMNS);
        tb_team_sync();
        TB_EACH (s, b->changes) {
            const int32_t j = b->changed[s];
            b->pi[s] = (b->place[j] < 0 ? force[j] : fixed ? fixed[j] : 0) - along[s];
        }
        tb_team_sync();
        solve_schur(b);
        TB_EACH (k, b->frees) {
            const tb_real *row = b->border + k * limit;
            tb_real sum = half[k];
            TB_UNROLLED
            for (int32_t s = 0; s < b->changes; s++) sum -= row[s] * b->pi[s];
            half[k] = sum;
        }
    }
    bounded_zero(own, b->frees);
    tb_bounded_add(own, b->frees, b->root, b->frees, half, b->frees, TB_COLUMNS_FROM);
    tb_team_sync();
    TB_EACH (k, b->frees)
        if (b->state[b->free[k]] == TB_BOUND_FREE) to[b->free[k]] = own[k];
    TB_EACH (s, b->changes)
        if (b->place[b->changed[s]] < 0) to[b->changed[s]] = b->pi[s];
    tb_team_sync();
}
