/* K0 for friction with four facets: Litven's reduction of the program (F2), algorithm 5.2 with the
 * signs and transposes that its own saddle system (5.15) asks for.
 *
 * The variables come in pairs, a contact's tangential impulse, and rows are (+-1, +-1) on a pair.
 * With E the active rows and Z a basis of their null space (two columns a pair, one, or none),
 *     beta_p = E' d / 2,   Z' H Z z = Z' (c - H beta_p),   beta = beta_p + Z z,
 *     nu = E (c - H beta) / 2,
 * because two rows of a pair that are not parallel are orthogonal: E E' = 2. */
#include "qp/qp_internal.h"

#include <string.h>

typedef struct facets_k0 {
    const tb_qp *qp;
    int32_t pairs, count;
    int32_t *active; /* count constraints */
    int32_t *row_of; /* pairs: bit 0: an active row with equal signs, bit 1: with unequal signs */
    int32_t *start;  /* pairs + 1: first of a pair's free directions */
    tb_real *direction; /* n x 2: free direction k is over the pair's two variables */
    int32_t *pair_of;   /* n: the pair of a free direction */
    tb_real *reduced;   /* Z' H Z, lower band */
    tb_band band;
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

static void put_direction(facets_k0 *k0, int32_t pair, int32_t *next, tb_real even, tb_real odd)
{
    k0->direction[2 * *next] = even;
    k0->direction[2 * *next + 1] = odd;
    k0->pair_of[*next] = pair;
    (*next)++;
}

/* Lists the free directions of every pair. */
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
                            tb_band_element(k0->qp->hessian, k0->qp->half_bandwidth,
                                            2 * k0->pair_of[i] + a, 2 * k0->pair_of[j] + b);
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

static int32_t facets_unknowns(const void *context)
{
    const facets_k0 *k0 = context;
    return k0->start[k0->pairs];
}

/* E' e / 2 */
static void facets_particular(const void *context, const tb_real *e, tb_real *x)
{
    const facets_k0 *k0 = context;
    memset(x, 0, (size_t)k0->qp->n * sizeof *x);
    for (int32_t p = 0; p < k0->count; p++) {
        if (e[p] == 0) continue;
        tb_real facet[2];
        facet_of(k0->qp, k0->active[p], facet);
        const int32_t pair = pair_of_row(k0->qp, k0->active[p]);
        x[2 * pair] += facet[0] * (e[p] / 2);
        x[2 * pair + 1] += facet[1] * (e[p] / 2);
    }
}

static int32_t facets_column(const void *context, int32_t place, int32_t variable[2],
                             tb_real number[2])
{
    const facets_k0 *k0 = context;
    facet_of(k0->qp, k0->active[place], number);
    for (int32_t a = 0; a < 2; a++) {
        variable[a] = 2 * pair_of_row(k0->qp, k0->active[place]) + a;
        number[a] /= 2;
    }
    return 2;
}

static void facets_forward(void *context, int32_t columns, const tb_real *r, tb_real *t)
{
    facets_k0 *k0 = context;
    const int32_t directions = k0->start[k0->pairs];
    if (directions == 0) return;
    for (int32_t c = 0; c < columns; c++)
        for (int32_t d = 0; d < directions; d++) {
            const tb_real *own = r + (int64_t)c * k0->qp->n + 2 * k0->pair_of[d];
            t[(int64_t)c * directions + d] =
                k0->direction[2 * d] * own[0] + k0->direction[2 * d + 1] * own[1];
        }
    tb_band_forward(&k0->band, columns, t, directions);
}

static void facets_backward(void *context, tb_real *t, tb_real *x)
{
    facets_k0 *k0 = context;
    const int32_t directions = k0->start[k0->pairs];
    if (directions == 0) return;
    tb_band_backward(&k0->band, 1, t, directions);
    for (int32_t d = 0; d < directions; d++)
        for (int a = 0; a < 2; a++) x[2 * k0->pair_of[d] + a] += k0->direction[2 * d + a] * t[d];
}

/* E r / 2 */
static void facets_multipliers(const void *context, const tb_real *r, tb_real *nu)
{
    const facets_k0 *k0 = context;
    for (int32_t p = 0; p < k0->count; p++) {
        tb_real facet[2];
        facet_of(k0->qp, k0->active[p], facet);
        const tb_real *own = r + 2 * pair_of_row(k0->qp, k0->active[p]);
        nu[p] = (facet[0] * own[0] + facet[1] * own[1]) / 2;
    }
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
    if (!k0->active || !k0->row_of || !k0->start || !k0->direction || !k0->pair_of || !k0->reduced)
        return TB_RESOURCE_EXHAUSTED;
    const tb_status status = tb_band_take(&k0->band, qp->n, half, block, arena);
    if (status != TB_OK) return status;
    static const tb_k0_halves halves = {.unknowns = facets_unknowns,
                                        .particular = facets_particular,
                                        .column = facets_column,
                                        .forward = facets_forward,
                                        .backward = facets_backward,
                                        .multipliers = facets_multipliers};
    *result = (tb_k0){.context = k0, .factor = facets_factor, .halves = &halves};
    return TB_OK;
}
