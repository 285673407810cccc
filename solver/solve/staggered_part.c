/* Making the two programs of staggered projections. */
#include "solve/staggered.h"

#include <string.h>

/* of the mean diagonal: far above rounding, far below what a solution feels in one iteration */
static const double SHIFT = sizeof(tb_real) == sizeof(float) ? 1e-4 : 1e-7;

static tb_qp_options part_options(void)
{
    tb_qp_options options = {
        .method = TB_QP_SCHURPA,
        .maximum_iterations = 40, /* a turn that stands still has the next one */
        .maximum_solves = 500,
        .maximum_changes = 500,
        .maximum_refinements = 2,
        .tolerance = sizeof(tb_real) == sizeof(float) ? 1e-5 : 1e-12,
    };
    return options;
}

/* Room for n variables and m constraints with `entries` numbers. */
static tb_status take_part(tb_staggered_part *part, int32_t n, int32_t m, int32_t entries,
                           tb_arena *arena)
{
    memset(part, 0, sizeof *part);
    part->n = n;
    part->row = TB_ARENA_ARRAY(arena, int32_t, n);
    part->f = TB_ARENA_ZEROED(arena, tb_real, n);
    part->b = TB_ARENA_ZEROED(arena, tb_real, m);
    part->x = TB_ARENA_ZEROED(arena, tb_real, n);
    part->last = TB_ARENA_ZEROED(arena, tb_real, n);
    part->lambda = TB_ARENA_ZEROED(arena, tb_real, m);
    part->active = TB_ARENA_ZEROED(arena, uint8_t, m);
    part->pins = TB_ARENA_ZEROED(arena, uint8_t, m);
    part->block_of = TB_ARENA_ZEROED(arena, int32_t, m);
    int32_t *row_start = TB_ARENA_ZEROED(arena, int32_t, m + 1);
    int32_t *column = TB_ARENA_ZEROED(arena, int32_t, entries);
    tb_real *value = TB_ARENA_ZEROED(arena, tb_real, entries);
    if (!part->row || !part->f || !part->b || !part->x || !part->last || !part->lambda ||
        !part->active || !part->pins || !part->block_of || !row_start || !column || !value)
        return TB_RESOURCE_EXHAUSTED;
    part->qp = (tb_qp){.n = n,
                       .half_bandwidth = n - 1,
                       .f = part->f,
                       .constraints = m,
                       .row_start = row_start,
                       .column = column,
                       .value = value,
                       .b = part->b,
                       .pins = part->pins};
    return TB_OK;
}

/* A constraint of one or two entries behind the others of the part. */
static void put_constraint(tb_staggered_part *part, int32_t i, int32_t block, int32_t first,
                           int32_t entries, tb_real even, tb_real odd)
{
    /* the part owns what its program borrows */
    int32_t *row_start = (int32_t *)part->qp.row_start, *column = (int32_t *)part->qp.column;
    tb_real *value = (tb_real *)part->qp.value;
    const int32_t at = row_start[i];
    part->block_of[i] = block;
    row_start[i + 1] = at + entries;
    column[at] = first;
    value[at] = even;
    if (entries == 1) return;
    column[at + 1] = first + 1;
    value[at + 1] = odd;
}

/* H from G, and the work on it */
static tb_status finish_part(tb_staggered_part *part, const tb_problem *problem, const tb_real *g,
                             tb_arena *arena)
{
    const int64_t n = part->n, rows = problem->number_of_rows;
    tb_real *h = TB_ARENA_ARRAY(arena, tb_real, (size_t)n * (size_t)n);
    if (!h) return TB_RESOURCE_EXHAUSTED;
    double trace = 0;
    for (int64_t j = 0; j < n; j++) {
        trace += fabs((double)g[part->row[j] * rows + part->row[j]]);
        for (int64_t i = j; i < n; i++) {
            const tb_real lower = g[part->row[i] * rows + part->row[j]];
            const tb_real upper = g[part->row[j] * rows + part->row[i]];
            h[i - j + j * n] = (lower + upper) / 2;
        }
    }
    part->shift = (tb_real)(SHIFT * (trace > 0 ? trace / (double)n : 1));
    for (int64_t j = 0; j < n; j++) h[j * n] += part->shift;
    part->qp.hessian = h;

    tb_status status = tb_k0_bounds(&part->qp, false, 0, arena, &part->k0);
    if (status == TB_UNSUPPORTED) status = tb_k0_facets(&part->qp, 0, arena, &part->k0);
    if (status == TB_UNSUPPORTED) status = tb_k0_dense(&part->qp, arena, &part->k0);
    const tb_qp_options options = part_options();
    if (status == TB_OK) status = tb_qp_begin(&part->qp, &part->k0, &options, arena, &part->work);
    return status;
}

/* ---- normal impulses ---- */

/* how many rows of a block the first program has; -1: none of its business */
static int32_t rows_of_normals(const tb_block *block)
{
    switch (block->law) {
    case TB_LAW_UNILATERAL:
    case TB_LAW_PLANAR:
    case TB_LAW_COULOMB:
    case TB_LAW_BOX: return 1;
    case TB_LAW_BILATERAL: return block->rows;
    default: return -1;
    }
}

/* A bound that limits: boxes may be open to a side. */
static bool is_bound(tb_real value)
{
    return tb_abs(value) <= TB_REAL_MAX;
}

static int32_t constraints_of_normals(const tb_block *block)
{
    if (block->law == TB_LAW_BILATERAL) return 0;
    if (block->law == TB_LAW_BOX) return is_bound(block->lower) + is_bound(block->upper);
    return 1;
}

TB_EXTERN tb_status tb_staggered_normals(const tb_problem *problem, const tb_real *g,
                                         tb_arena *arena, tb_staggered_part *part)
{
    int32_t n = 0, m = 0;
    for (int32_t k = 0; k < problem->number_of_blocks; k++) {
        const int32_t rows = rows_of_normals(&problem->blocks[k]);
        if (rows < 0) return TB_UNSUPPORTED;
        n += rows;
        m += constraints_of_normals(&problem->blocks[k]);
    }
    tb_status status = take_part(part, n, m, m, arena);
    if (status != TB_OK || n == 0) return status;
    for (int32_t k = 0, j = 0, i = 0; k < problem->number_of_blocks; k++) {
        const tb_block *block = &problem->blocks[k];
        if (block->law == TB_LAW_BOX) {
            if (is_bound(block->lower)) {
                part->b[i] = -block->lower;
                put_constraint(part, i++, k, j, 1, -1, 0);
            }
            if (is_bound(block->upper)) {
                part->b[i] = block->upper;
                put_constraint(part, i++, k, j, 1, 1, 0);
            }
        } else if (block->law != TB_LAW_BILATERAL) {
            put_constraint(part, i++, k, j, 1, -1, 0);
        }
        for (int32_t r = 0; r < rows_of_normals(block); r++) part->row[j++] = block->row + r;
    }
    return finish_part(part, problem, g, arena);
}

/* ---- friction ---- */

TB_EXTERN tb_status tb_staggered_friction(const tb_problem *problem, const tb_real *g,
                                          const int32_t *contacts, int32_t count, tb_arena *arena,
                                          tb_staggered_part *part)
{
    static const int8_t SIGNS[4][2] = {{1, 1}, {-1, -1}, {1, -1}, {-1, 1}}; /* Litven's order */
    int32_t n = 0, m = 0, entries = 0;
    for (int32_t c = 0; c < count; c++) {
        const bool planar = problem->blocks[contacts[c]].law == TB_LAW_PLANAR;
        n += planar ? 1 : 2;
        m += planar ? 2 : 4;
        entries += planar ? 2 : 8;
    }
    tb_status status = take_part(part, n, m, entries, arena);
    if (status != TB_OK || n == 0) return status;
    for (int32_t c = 0, j = 0, i = 0; c < count; c++) {
        const tb_block *block = &problem->blocks[contacts[c]];
        if (block->law == TB_LAW_PLANAR) {
            put_constraint(part, i++, contacts[c], j, 1, 1, 0);
            put_constraint(part, i++, contacts[c], j, 1, -1, 0);
        } else {
            for (int k = 0; k < 4; k++)
                put_constraint(part, i++, contacts[c], j, 2, SIGNS[k][0], SIGNS[k][1]);
        }
        for (int32_t r = 1; r < block->rows; r++) part->row[j++] = block->row + r;
    }
    return finish_part(part, problem, g, arena);
}
