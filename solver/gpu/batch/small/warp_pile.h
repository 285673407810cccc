/* The blocks of a pile: up to WARP_TREES trees of up to WARP_TREE dofs, mostly free bodies. A tree has
 * WARP_TREE columns, so that the dofs of a block lie in few groups, and the solve is that of wide worlds
 * (wide/wide_solve.h), whose items are the lanes' blocks. */
#ifndef TB_GPU_WARP_PILE_H
#define TB_GPU_WARP_PILE_H

#include "gpu/batch/wide/wide_solve.h"

enum { WARP_TREES = 6, WARP_TREE = 6, WARP_DOFS = 36, WARP_COLUMNS = WARP_TREES * WARP_TREE };

typedef wide_solve warp_problem;
enum { WARP_BYTES = sizeof(warp_problem) };

typedef double warp_impulse; /* of the last step or the answer, N s */

/* The lane's own block, in its registers. */
typedef struct warp_own {
    warp_impulse lambda[3];
    tb_real c[3];                         /* m/s */
    tb_real lower, upper, mu, compliance; /* of the first row, but for mu */
    bool is;
} warp_own;

/* Shared memory that is free until blocks are written. */
TB_FN unsigned char *warp_free_memory(warp_problem *p, size_t *bytes)
{
    *bytes = sizeof *p;
    return (unsigned char *)p;
}

TB_FN const double *warp_whitened(const warp_problem *p)
{
    return p->memory.s;
}

/* The groups that a tree's columns lie in, as bits. */
TB_FN uint32_t warp_groups_of(warp_tree_place tree)
{
    const int32_t last = tree.column + (int32_t)WARP_TREE - 1;
    if (tree.column >= (int32_t)WARP_COLUMNS) return 0;
    return ((2u << last / WIDE_GROUP) - 1) & ~((1u << tree.column / WIDE_GROUP) - 1);
}

TB_TEAM_FN void warp_clear_block(warp_problem *p)
{
    wide_memory *m = &p->memory;
    const int32_t item = tb_team_lane();
    const uint32_t columns = m->columns[item];
    const warp_quad zero = {{0, 0, 0, 0}};
    TB_ROLLED
    for (int32_t q = wide_quad(columns, 0); q < wide_quad(columns, wide_rows(columns)); q++)
        m->quads[q] = zero;
}

/* Room for the lane's block, whose sides belong to these trees. False: there is none for all. */
TB_TEAM_FN bool warp_open_block(warp_problem *p, bool is, int32_t count,
                                const warp_tree_place trees[2], warp_rows *rows)
{
    wide_memory *m = &p->memory;
    const int32_t item = tb_team_lane();
    const uint32_t groups = is ? warp_groups_of(trees[0]) | warp_groups_of(trees[1]) : 0;
    const int32_t own = is ? count : 0, wide = tb_count_bits(groups);
    int32_t all_rows, all_quads;
    const int32_t row = tb_team_before(own, &all_rows);
    const int32_t quad = tb_team_before(own * wide, &all_quads);
    TB_ROLLED
    for (int32_t group = 0; group < (int32_t)WIDE_GROUPS; group++) {
        const uint32_t items = tb_team_ballot((groups >> group & 1) != 0);
        if (TB_LEADER) m->items_of[group] = items;
    }
    if (all_rows > (int32_t)WIDE_MOST_ROWS || all_quads > (int32_t)WIDE_MOST_QUADS) return false;
    if (!is) return true;
    const uint32_t columns = wide_columns(quad, row, own, groups);
    m->columns[item] = columns;
    for (int32_t r = 0; r < 3; r++)
        if (r < own) m->item_of[row + r] = (uint8_t)item;
    warp_clear_block(p);
    rows->y = m->quads[quad].v;
    rows->stride = WIDE_GROUP * wide;
    for (int side = 0; side < 2; side++) {
        const int32_t column = trees[side].column;
        rows->at[side] =
            column < (int32_t)WARP_COLUMNS
                ? WIDE_GROUP * wide_place(columns, column / WIDE_GROUP) + column % WIDE_GROUP
                : 0;
    }
    return true;
}

/* The proximal weight. Returns whether anything moves along the first row (contact_rows.c). */
TB_TEAM_FN bool warp_weigh(warp_problem *p, const warp_own *b)
{
    wide_memory *m = &p->memory;
    const int32_t item = tb_team_lane(), rows = wide_rows(m->columns[item]);
    const int32_t stride = tb_count_bits(wide_groups(m->columns[item]));
    const warp_quad *y = m->quads + wide_quad(m->columns[item], 0);
    tb_real first = 0, others = 0;
    (void)b;
    TB_ROLLED
    for (int32_t q = 0; q < rows * stride; q++) {
        const warp_quad own = y[q];
        tb_real sum = 0;
        for (int i = 0; i < WARP_PART; i++) sum += own.v[i] * own.v[i];
        first += q < stride ? sum : TB_R(0);
        others += q < stride ? TB_R(0) : sum;
    }
    m->weight[item] = (first + others) / TB_R(rows);
    return first > UNREACHABLE_SHARE * UNREACHABLE_SHARE * others &&
           first > UNREACHABLE_M * UNREACHABLE_M;
}

/* Publishes the values of the lane's block that the other lanes read. */
TB_TEAM_FN void warp_share_block(warp_problem *p, const warp_own *b)
{
    wide_memory *m = &p->memory;
    const int32_t item = tb_team_lane();
    const int32_t row = wide_row(m->columns[item]), rows = wide_rows(m->columns[item]);
    m->lower[item] = b->lower;
    m->bound[item] = rows > 1 ? b->mu : b->upper;
    for (int r = 0; r < 3; r++) {
        if (r >= rows) continue;
        m->lambda[row + r] = b->lambda[r];
        m->c[row + r] = b->c[r];
        if (row + r < (int32_t)WIDE_COMPLIANT_ROWS)
            m->compliance[row + r] = r == 0 ? b->compliance : TB_R(0);
    }
}

enum { WARP_STARTS = 5 /* random ones of a solve, after its own */ };
/* A start whose residual is larger is swept first. Steps from statuses gain nothing here: 30.6 for 31.6
 * million steps a second of six boxes in 8,192 worlds on an H200. */
static const double WARP_COLD = 0.05;

/* Solves for the blocks of all lanes; false: it has not come to the tolerance. x: velocities of the lane's
 * block. */
TB_STATIC bool warp_solve_blocks(warp_problem *p, int32_t items, int32_t columns, double tolerance,
                                 warp_own *b, double x[3], warp_effort *effort)
{
    wide_memory *m = wide_memory_of(p);
    const int32_t lane = tb_team_lane();
    double own = 0;
    int32_t rows;
    for (int r = 0; r < 3; r++) own += (double)b->c[r] * (double)b->c[r];
    const double c2 = tb_team_total(own);
    (void)tb_team_before(b->is ? wide_rows(m->columns[lane]) : 0, &rows);
    if (TB_LEADER) {
        p->items = items;
        p->rows = rows;
        p->dofs = columns;
        p->has_fine = true;
        p->tolerance = tolerance;
        p->inverse_norm = c2 > 0 ? 1 / sqrt(c2) : 1;
    }
    TB_EACH (column, WARP_COLUMNS) m->s[column] = 0;
    tb_team_sync();
    wide_progress now = {0};
    if (!wide_begin(p, &now)) {
        if (now.residual > WARP_COLD) wide_sweep_start(p, &now);
        wide_weigh_start(&now);
    }
    bool solved = wide_iterate(p, &now, INT32_MAX) == WIDE_REACHED;
    TB_ROLLED
    for (int k = 0; k < WARP_STARTS && !solved; k++) {
        wide_begin_again(p, &now);
        solved = wide_iterate(p, &now, INT32_MAX) == WIDE_REACHED;
    }
    *effort = TB_VALUE(warp_effort){now.residual, now.start, now.steps, now.sweeps};
    if (!b->is || !solved) return solved;
    wide_own o = wide_item_of(m, lane);
    wide_take_rows(&o, m->answer, o.lambda);
    wide_take_rows(&o, m->x, o.x);
    for (int r = 0; r < 3; r++) {
        b->lambda[r] = o.lambda[r];
        x[r] = o.x[r];
    }
    return true;
}

#endif
