/* Gauss-Seidel sweeps of a wide world by a warp: a lane holds a dof of s = Y' lambda, and lanes sum the
 * velocity of a row together. */
#ifndef TB_GPU_WIDE_SWEEP_H
#define TB_GPU_WIDE_SWEEP_H

#include "gpu/batch/wide/wide_item.h"

/* Numbers of an item that all its sweeps need, in the place of its K: 1 / G and G between the normal row
 * and the others, and in the place of the lack the rate along the others, by the trace of G there. */
TB_STATIC void wide_prepare_sweeps(const wide_solve *w)
{
    wide_memory *m = wide_memory_of(w);
    TB_EACH (item, w->items) {
        const uint32_t columns = m->columns[item];
        const int32_t row = m->row[item], rows = m->rows[item];
        const int32_t stride = tb_count_bits(wide_groups(columns));
        const warp_quad *y = m->quads + wide_quad(columns, 0);
        tb_real g[WIDE_ROWS] = {0, 0, 0, 0}, trace = 0;
        TB_ROLLED
        for (int32_t q = 0; q < stride; q++) {
            const warp_quad first = y[q];
            WIDE_FULL
            for (int32_t r = 0; r < WIDE_ROWS; r++) {
                if (r >= rows) continue;
                const warp_quad other = y[r * stride + q];
                for (int32_t i = 0; i < WIDE_GROUP; i++) {
                    g[r] += first.v[i] * other.v[i];
                    if (r > 0) trace += other.v[i] * other.v[i];
                }
            }
        }
        tb_real *to = wide_slope(m, item);
        const tb_real own = g[0] + m->compliance[row];
        to[0] = own > 0 ? 1 / own : TB_R(0);
        WIDE_FULL
        for (int32_t r = 1; r < WIDE_ROWS; r++)
            if (r < rows) to[r] = g[r];
        m->lack[row] = trace > 0 ? 1 / trace : TB_R(0);
    }
    tb_team_sync();
}

/* Impulses of an item after friction's set, in place. */
WIDE_FN void wide_sweep_friction(const wide_memory *m, int32_t item, int32_t rows,
                                 tb_real x[WIDE_ROWS])
{
    const tb_real radius = m->mu[item] * x[0];
    if (rows == WIDE_ROWS) {
        tb_real own[3] = {x[1], x[2], x[3]};
        tb_prox_ellipsoid(own, radius);
        for (int32_t i = 0; i < 3; i++) x[1 + i] = own[i];
        return;
    }
    const tb_real f = tb_prox_disk_factor(x[1] * x[1] + x[2] * x[2], radius);
    x[1] *= f;
    x[2] *= f;
}

/* One item: every lane knows its dofs' part of the rows. */
TB_STATIC void wide_sweep_item(const wide_solve *w, int32_t item, tb_real s[2])
{
    wide_memory *m = wide_memory_of(w);
    const uint32_t columns = m->columns[item];
    const int32_t row = m->row[item], rows = m->rows[item], dof = tb_team_lane();
    const bool wide = w->dofs > WIDE_LANES;
    tb_real y[2][WIDE_ROWS], u[WIDE_ROWS], x[WIDE_ROWS], before[WIDE_ROWS];
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        const bool is = r < rows;
        y[0][r] = is ? wide_value(m, columns, r, dof) : TB_R(0);
        y[1][r] = is && wide ? wide_value(m, columns, r, dof + WIDE_LANES) : TB_R(0);
        before[r] = is ? TB_R(m->answer[row + r]) : TB_R(0);
        u[r] = y[0][r] * s[0] + y[1][r] * s[1];
        for (int32_t step = WIDE_LANES / 2; is && step > 0; step /= 2)
            u[r] += tb_team_take_real(u[r], tb_team_lane() ^ step);
        u[r] += is ? m->c[row + r] + m->compliance[row + r] * before[r] : TB_R(0);
    }
    const tb_real *k = wide_slope(m, item);
    const tb_real rate = m->lack[row];
    x[0] = tb_clamp(before[0] - k[0] * u[0], m->lower[item], m->upper[item]);
    WIDE_FULL
    for (int32_t r = 1; r < WIDE_ROWS; r++) {
        x[r] = 0;
        if (r >= rows) continue;
        const tb_real own = rate / (1 + rate * m->compliance[row + r]);
        x[r] = before[r] - own * (u[r] + k[r] * (x[0] - before[0]));
    }
    if (rows > 1) wide_sweep_friction(m, item, rows, x);
    tb_team_sync(); /* all have read the impulses */
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        s[0] += y[0][r] * (x[r] - before[r]);
        s[1] += y[1][r] * (x[r] - before[r]);
        if (TB_LEADER && r < rows) m->answer[row + r] = (double)x[r];
    }
    tb_team_sync();
}

/* A burst of sweeps from the answer that was judged last, which the iterate becomes. */
TB_CALLED void wide_sweep(wide_solve *w, int32_t turns)
{
    wide_memory *m = wide_memory_of(w);
    wide_prepare_sweeps(w);
    const int32_t dof = tb_team_lane();
    tb_real s[2] = {TB_R(m->s[dof]),
                    dof + WIDE_LANES < w->dofs ? TB_R(m->s[dof + WIDE_LANES]) : TB_R(0)};
    TB_ROLLED
    for (int32_t turn = 0; turn < turns; turn++) {
        TB_ROLLED
        for (int32_t item = 0; item < w->items; item++) wide_sweep_item(w, item, s);
    }
    w->now.sweeps += turns;
    wide_take_answer(w);
    wide_judge(w);
    wide_take_answer(w);
}

#endif
