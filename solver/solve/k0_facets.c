/* K0 for friction with four facets: Litven's reduction of the program (F2), algorithm 5.2 with the
 * signs and transposes that its own saddle system (5.15) asks for.
 *
 * The variables come in pairs, a contact's tangential impulse, and rows are (+-1, +-1) on a pair.
 * With E the active rows and Z a basis of what they leave free (two columns a pair, one, or none),
 *     beta_p = E' d / 2,   Z' H Z z = Z' (c - H beta_p),   beta = beta_p + Z z,
 *     nu = E (c - H beta) / 2,
 * because two rows of a pair that are not parallel are orthogonal: E E' = 2. */
#include "solve/qp_internal.h"

#include <string.h>

enum { FACETS_COLUMNS = 64 };

typedef struct facets_k0 {
    const tb_qp *qp;
    int32_t pairs, count;
    int32_t *active;    /* count constraints */
    int32_t *row_of;    /* pairs: bit 0: an active row whose signs agree, bit 1: differ */
    int32_t *start;     /* pairs + 1: first of a pair's free directions */
    tb_real *direction; /* n x 2: free direction k is over the pair's two variables */
    int32_t *pair_of;   /* n: the pair of a free direction */
    tb_real *reduced;   /* Z' H Z, lower band */
    tb_band band;
    tb_real *x, *right; /* n x FACETS_COLUMNS */
    tb_real *product;   /* n */
} facets_k0;

/* a row's two factors, of the even variable and of the odd one */
static void facet_of(const tb_qp *qp, int32_t constraint, tb_real facet[2])
{
    for (int32_t k = qp->row_start[constraint]; k < qp->row_start[constraint + 1]; k++)
        facet[qp->column[k] & 1] = qp->value[k];
}

static int32_t pair_of_row(const tb_qp *qp, int32_t constraint)
{
    return qp->column[qp->row_start[constraint]] / 2;
}

static bool is_facet(const tb_qp *qp, int32_t constraint)
{
    const int32_t first = qp->row_start[constraint];
    return qp->row_start[constraint + 1] - first == 2 &&
           qp->column[first] / 2 == qp->column[first + 1] / 2 &&
           qp->column[first] != qp->column[first + 1] && tb_abs(qp->value[first]) == 1 &&
           tb_abs(qp->value[first + 1]) == 1;
}

/* h_ij of a symmetric band */
static tb_real band_element(const tb_qp *qp, int32_t i, int32_t j)
{
    const int32_t low = i > j ? i : j, high = i > j ? j : i;
    if (low - high > qp->half_bandwidth) return 0;
    return qp->hessian[low - high + (int64_t)high * ((int64_t)qp->half_bandwidth + 1)];
}

static void put_direction(facets_k0 *k0, int32_t pair, int32_t *next, tb_real even, tb_real odd)
{
    k0->direction[2 * *next] = even;
    k0->direction[2 * *next + 1] = odd;
    k0->pair_of[*next] = pair;
    (*next)++;
}

/* What the active rows leave free, pair by pair. */
static void list_directions(facets_k0 *k0)
{
    int32_t next = 0;
    for (int32_t c = 0; c < k0->pairs; c++) {
        k0->start[c] = next;
        if (k0->row_of[c] == 0) {
            put_direction(k0, c, &next, 1, 0);
            put_direction(k0, c, &next, 0, 1);
        } else if (k0->row_of[c] == 1) {
            put_direction(k0, c, &next, 1, -1);
        } else if (k0->row_of[c] == 2) {
            put_direction(k0, c, &next, 1, 1);
        }
    }
    k0->start[k0->pairs] = next;
}

/* the last pair that H couples with this one */
static int32_t last_coupled(const facets_k0 *k0, int32_t pair)
{
    const int64_t last = (2 * (int64_t)pair + 1 + k0->qp->half_bandwidth) / 2;
    return last < k0->pairs ? (int32_t)last : k0->pairs - 1;
}

static int32_t gather_directions(facets_k0 *k0)
{
    const int32_t directions = k0->start[k0->pairs];
    int32_t half = 0;
    for (int32_t j = 0; j < directions; j++) {
        const int32_t reach = k0->start[last_coupled(k0, k0->pair_of[j]) + 1] - 1 - j;
        if (reach > half) half = reach;
    }
    const int64_t stride = (int64_t)half + 1;
    for (int32_t j = 0; j < directions; j++) {
        const int32_t end = k0->start[last_coupled(k0, k0->pair_of[j]) + 1];
        const tb_real *zj = k0->direction + 2 * (int64_t)j;
        tb_real *to = k0->reduced + j * stride;
        memset(to, 0, (size_t)stride * sizeof *to);
        for (int32_t i = j; i < end; i++) {
            const tb_real *zi = k0->direction + 2 * (int64_t)i;
            for (int a = 0; a < 2; a++)
                for (int b = 0; b < 2; b++)
                    if (zi[a] != 0 && zj[b] != 0)
                        to[i - j] +=
                            zi[a] * zj[b] *
                            band_element(k0->qp, 2 * k0->pair_of[i] + a, 2 * k0->pair_of[j] + b);
        }
    }
    return half;
}

static tb_status facets_factor(void *context, const int32_t *active, int32_t count,
                               int32_t *dependent)
{
    facets_k0 *k0 = context;
    *dependent = -1;
    k0->count = count;
    memcpy(k0->active, active, (size_t)count * sizeof *active);
    memset(k0->row_of, 0, (size_t)k0->pairs * sizeof *k0->row_of);
    for (int32_t p = 0; p < count; p++) {
        tb_real facet[2];
        facet_of(k0->qp, active[p], facet);
        const int32_t pair = pair_of_row(k0->qp, active[p]);
        const int32_t kind = facet[0] == facet[1] ? 1 : 2;
        if (k0->row_of[pair] & kind) {
            *dependent = p;
            return TB_FAILED_PRECONDITION;
        }
        k0->row_of[pair] |= kind;
    }
    list_directions(k0);
    const int32_t directions = k0->start[k0->pairs];
    if (directions == 0) return TB_OK;
    const int32_t half = gather_directions(k0);
    return tb_band_factor(&k0->band, k0->reduced, directions, half, TB_REAL_EPSILON) == directions
               ? TB_OK
               : TB_FAILED_PRECONDITION;
}

/* x <- E' d / 2 for the multipliers' part d of a right-hand side; false: all are zero */
static bool place_particular(const facets_k0 *k0, const tb_real *d, tb_real *x)
{
    bool moved = false;
    memset(x, 0, (size_t)k0->qp->n * sizeof *x);
    for (int32_t p = 0; p < k0->count; p++) {
        if (d[p] == 0) continue;
        tb_real facet[2];
        facet_of(k0->qp, k0->active[p], facet);
        const int32_t pair = pair_of_row(k0->qp, k0->active[p]);
        x[2 * pair] += facet[0] * (d[p] / 2);
        x[2 * pair + 1] += facet[1] * (d[p] / 2);
        moved = true;
    }
    return moved;
}

/* product <- H x for an x with few numbers that are not zero, or many */
static void multiply_particular(const facets_k0 *k0, const tb_real *x, tb_real *product)
{
    const tb_qp *qp = k0->qp;
    int32_t moved = 0;
    for (int32_t j = 0; j < qp->n; j++) moved += x[j] != 0;
    if (moved > qp->n / 8) {
        tb_band_multiply(qp->hessian, qp->n, qp->half_bandwidth, 1, x, qp->n, product, qp->n);
        return;
    }
    memset(product, 0, (size_t)qp->n * sizeof *product);
    for (int32_t j = 0; j < qp->n; j++)
        if (x[j] != 0) tb_band_add_column(qp->hessian, qp->n, qp->half_bandwidth, j, x[j], product);
}

/* the multiplier at a position from c - H x: a row of E / 2 */
static tb_real facet_multiplier(const facets_k0 *k0, int32_t position, const tb_real r[2])
{
    tb_real facet[2];
    facet_of(k0->qp, k0->active[position], facet);
    return (facet[0] * r[0] + facet[1] * r[1]) / 2;
}

/* c still stands in `own`, x in `x` */
static void find_facet_multipliers(const facets_k0 *k0, tb_real *own, const tb_real *x,
                                   const int32_t *wanted, int32_t number_wanted)
{
    const tb_qp *qp = k0->qp;
    if (wanted == NULL && k0->count > 0)
        tb_band_multiply(qp->hessian, qp->n, qp->half_bandwidth, 1, x, qp->n, k0->product, qp->n);
    const int32_t number = wanted != NULL ? number_wanted : k0->count;
    for (int32_t k = 0; k < number; k++) {
        const int32_t position = wanted != NULL ? wanted[k] : k;
        const int32_t at = 2 * pair_of_row(qp, k0->active[position]);
        tb_real r[2];
        for (int32_t a = 0; a < 2; a++)
            r[a] = own[at + a] -
                   (wanted == NULL
                        ? k0->product[at + a]
                        : tb_band_row_times(qp->hessian, qp->n, qp->half_bandwidth, at + a, x));
        own[qp->n + position] = facet_multiplier(k0, position, r);
    }
}

/* up to FACETS_COLUMNS right-hand sides */
static void facets_solve_few(facets_k0 *k0, int32_t columns, tb_real *x, const int32_t *wanted,
                             int32_t number_wanted)
{
    const int64_t n = k0->qp->n, all = n + k0->count;
    const int32_t directions = k0->start[k0->pairs];
    for (int32_t c = 0; c < columns; c++) { /* Z' (c - H beta_p) */
        const tb_real *own = x + c * all;
        const bool moved = place_particular(k0, own + n, k0->x + c * n);
        if (moved) multiply_particular(k0, k0->x + c * n, k0->product);
        for (int32_t d = 0; d < directions; d++) {
            tb_real sum = 0;
            for (int a = 0; a < 2; a++) {
                const int32_t at = 2 * k0->pair_of[d] + a;
                sum += k0->direction[2 * d + a] * (own[at] - (moved ? k0->product[at] : 0));
            }
            k0->right[(int64_t)c * directions + d] = sum;
        }
    }
    if (directions > 0) tb_band_solve(&k0->band, columns, k0->right, directions);
    for (int32_t c = 0; c < columns; c++) {
        tb_real *own = x + c * all, *own_x = k0->x + c * n;
        for (int32_t d = 0; d < directions; d++)
            for (int a = 0; a < 2; a++)
                own_x[2 * k0->pair_of[d] + a] +=
                    k0->direction[2 * d + a] * k0->right[(int64_t)c * directions + d];
        find_facet_multipliers(k0, own, own_x, wanted, number_wanted);
        memcpy(own, own_x, (size_t)n * sizeof *own);
    }
}

static void facets_solve(void *context, int32_t columns, tb_real *x, const int32_t *wanted,
                         int32_t number_wanted)
{
    facets_k0 *k0 = context;
    const int64_t all = (int64_t)k0->qp->n + k0->count;
    for (int32_t first = 0; first < columns; first += FACETS_COLUMNS) {
        const int32_t left = columns - first;
        facets_solve_few(k0, left < FACETS_COLUMNS ? left : FACETS_COLUMNS, x + first * all, wanted,
                         number_wanted);
    }
}

static void facets_multipliers(void *context, const tb_real *r, tb_real *nu)
{
    const facets_k0 *k0 = context;
    for (int32_t p = 0; p < k0->count; p++)
        nu[p] = facet_multiplier(k0, p, r + 2 * pair_of_row(k0->qp, k0->active[p]));
}

TB_EXTERN tb_status tb_k0_facets(const tb_qp *qp, int32_t block, tb_arena *arena, tb_k0 *result)
{
    if (qp->n % 2 != 0) return TB_UNSUPPORTED;
    for (int32_t i = 0; i < qp->constraints; i++)
        if (!is_facet(qp, i)) return TB_UNSUPPORTED;
    facets_k0 *k0 = TB_ARENA_ZEROED(arena, facets_k0, 1);
    if (!k0) return TB_RESOURCE_EXHAUSTED;
    k0->qp = qp;
    k0->pairs = qp->n / 2;
    const size_t n = (size_t)qp->n;
    /* between directions there can be no more of them than there are variables */
    const int32_t half = qp->half_bandwidth + 2 < qp->n ? qp->half_bandwidth + 2 : qp->n - 1;
    k0->active = TB_ARENA_ARRAY(arena, int32_t, n);
    k0->row_of = TB_ARENA_ARRAY(arena, int32_t, k0->pairs);
    k0->start = TB_ARENA_ARRAY(arena, int32_t, k0->pairs + 1);
    k0->direction = TB_ARENA_ARRAY(arena, tb_real, 2 * n);
    k0->pair_of = TB_ARENA_ARRAY(arena, int32_t, n);
    k0->reduced = TB_ARENA_ARRAY(arena, tb_real, n * ((size_t)half + 1));
    k0->x = TB_ARENA_ARRAY(arena, tb_real, n * FACETS_COLUMNS);
    k0->product = TB_ARENA_ARRAY(arena, tb_real, n);
    k0->right = TB_ARENA_ARRAY(arena, tb_real, n * FACETS_COLUMNS);
    if (!k0->active || !k0->row_of || !k0->start || !k0->direction || !k0->pair_of ||
        !k0->reduced || !k0->x || !k0->product || !k0->right)
        return TB_RESOURCE_EXHAUSTED;
    const tb_status status = tb_band_take(&k0->band, qp->n, half, block, arena);
    if (status != TB_OK) return status;
    *result = (tb_k0){.context = k0,
                      .factor = facets_factor,
                      .solve = facets_solve,
                      .multipliers = facets_multipliers};
    return TB_OK;
}
