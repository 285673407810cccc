/* Programs in the coordinates of their rows. */
#include "qp/facet_coordinates.h"

#include <string.h>

#include "qp/qp.h"

/* Whether row i is a facet of the pair of its first variable. */
static bool is_facet_of_pair(const tb_qp_program *p, int32_t i)
{
    const int32_t k = p->row_start[i];
    return p->row_start[i + 1] - k == 2 && p->column[k] / 2 == p->column[k + 1] / 2 &&
           p->value[k] != 0 && fabs(p->value[k]) == fabs(p->value[k + 1]);
}

/* Which pairs are turned; false where rows are not such, or a pair has both kinds. */
static bool find_facet_pairs(const tb_qp_program *p, uint8_t *is_facet_pair)
{
    for (int32_t i = 0; i < p->constraints; i++) {
        if (p->row_start[i + 1] - p->row_start[i] == 1) continue;
        if (!is_facet_of_pair(p, i)) return false;
        is_facet_pair[p->column[p->row_start[i]] / 2] = 1;
    }
    for (int32_t i = 0; i < p->constraints; i++)
        if (p->row_start[i + 1] - p->row_start[i] == 1 &&
            is_facet_pair[p->column[p->row_start[i]] / 2])
            return false;
    return true;
}

static void turn_rows(const tb_qp_program *p, int32_t *row_start, int32_t *column, double *value)
{
    for (int32_t i = 0; i < p->constraints; i++) {
        const int32_t k = p->row_start[i];
        row_start[i] = i;
        column[i] = p->column[k];
        value[i] = p->value[k];
        if (p->row_start[i + 1] - k == 1) continue;
        /* of the even variable by the sum or the difference */
        const int32_t even = p->column[k] % 2 == 0 ? k : k + 1, odd = 2 * k + 1 - even;
        column[i] = p->column[even] + (p->value[even] != p->value[odd]);
        value[i] = p->value[even];
    }
    row_start[p->constraints] = p->constraints;
}

/* The block of pairs d and c, d >= c, of T' H T. */
static void turn_block(const tb_qp_facet_coordinates *coordinates, const tb_qp_program *p,
                       int32_t d, int32_t c, double *to, int64_t stride)
{
    const int32_t rows = 2 * d + 1 < p->n ? 2 : 1, columns = 2 * c + 1 < p->n ? 2 : 1;
    double h[2][2] = {{0}};
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < columns; j++)
            h[i][j] = tb_band_element(p->hessian, p->half_bandwidth, 2 * d + i, 2 * c + j);
    if (coordinates->is_facet_pair[c])
        for (int32_t i = 0; i < rows; i++) tb_qp_turn_two(&h[i][0], &h[i][1]);
    if (coordinates->is_facet_pair[d])
        for (int32_t j = 0; j < columns; j++) tb_qp_turn_two(&h[0][j], &h[1][j]);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < columns; j++) {
            const int32_t below = 2 * d + i - (2 * c + j);
            if (below >= 0 && below < stride) to[below + (2 * c + j) * stride] = h[i][j];
        }
}

tb_status tb_qp_to_facet_coordinates(const tb_qp_program *p, tb_arena *arena,
                                     tb_qp_facet_coordinates **result)
{
    const int32_t pairs = (p->n + 1) / 2;
    tb_qp_facet_coordinates *coordinates = TB_ARENA_ZEROED(arena, tb_qp_facet_coordinates, 1);
    if (!coordinates) return TB_RESOURCE_EXHAUSTED;
    coordinates->is_facet_pair = TB_ARENA_ZEROED(arena, uint8_t, pairs);
    if (!coordinates->is_facet_pair) return TB_RESOURCE_EXHAUSTED;
    if (!find_facet_pairs(p, coordinates->is_facet_pair)) return TB_UNSUPPORTED;
    const int32_t half = p->half_bandwidth < p->n - 2 ? p->half_bandwidth + 2 : p->n - 1;
    const int64_t stride = (int64_t)half + 1;
    double *hessian =
        p->hessian ? TB_ARENA_ZEROED(arena, double, (size_t)p->n *(size_t)stride) : NULL;
    int32_t *row_start = TB_ARENA_ARRAY(arena, int32_t, (size_t)p->constraints + 1);
    int32_t *column = TB_ARENA_ARRAY(arena, int32_t, p->constraints);
    double *value = TB_ARENA_ARRAY(arena, double, p->constraints);
    coordinates->f = TB_ARENA_ARRAY(arena, double, p->n);
    if ((p->hessian && !hessian) || !row_start || !column || !value || !coordinates->f)
        return TB_RESOURCE_EXHAUSTED;
    turn_rows(p, row_start, column, value);
    for (int32_t c = 0; c < pairs && hessian; c++)
        for (int32_t d = c; d < pairs && 2 * d - (2 * c + 1) <= p->half_bandwidth; d++)
            turn_block(coordinates, p, d, c, hessian, stride);
    if (p->hessian)
        coordinates->turned.program = *p;
    else
        coordinates->turned = *(const tb_qp_card_program *)(const void *)p;
    coordinates->turned.program.f = coordinates->turned.program.b = NULL;
    coordinates->turned.program.half_bandwidth = half;
    coordinates->turned.program.hessian = hessian;
    coordinates->turned.program.row_start = row_start;
    coordinates->turned.program.column = column;
    coordinates->turned.program.value = value;
    *result = coordinates;
    return TB_OK;
}

void tb_qp_facet_force(tb_qp_facet_coordinates *coordinates, const double *f)
{
    memcpy(coordinates->f, f, (size_t)coordinates->turned.program.n * sizeof *f);
    tb_qp_from_facet_coordinates(coordinates, coordinates->f);
}

void tb_qp_from_facet_coordinates(const tb_qp_facet_coordinates *coordinates, double *x)
{
    for (int32_t c = 0; 2 * c + 1 < coordinates->turned.program.n; c++)
        if (coordinates->is_facet_pair[c]) tb_qp_turn_two(&x[2 * c], &x[2 * c + 1]);
}

tb_status tb_qp_facet_judge(const tb_qp_program *p, const double *f, const double *b,
                            const double *x, const double *lambda, tb_arena *scratch, tb_kkt *kkt,
                            tb_error *error)
{
    const tb_qp qp = {.n = p->n,
                      .half_bandwidth = p->half_bandwidth,
                      .hessian = p->hessian,
                      .f = f,
                      .constraints = p->constraints,
                      .equalities = p->equalities,
                      .row_start = p->row_start,
                      .column = p->column,
                      .value = p->value,
                      .b = b};
    if (tb_qp_judge(&qp, x, lambda, scratch, kkt) == TB_OK) return TB_OK;
    return tb_fail_memory(error, 2 * (size_t)p->n * sizeof(double), "the residual");
}
