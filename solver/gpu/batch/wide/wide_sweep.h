/* Gauss-Seidel sweeps of a wide world by a warp: a lane holds a dof of s = Y' lambda, and lanes sum the
 * velocity of a row together. */
#ifndef TB_GPU_WIDE_SWEEP_H
#define TB_GPU_WIDE_SWEEP_H

#include "gpu/batch/wide/wide_item.h"

/* Numbers of an item that all its sweeps need, in the place of its K. Of several rows: 1 / G of the
 * normal one and G between it and the others, and behind it the rate along the others, by the trace of
 * G there. Of one row: 1 / G, c, the compliance and the impulse. */
TB_STATIC void wide_prepare_sweeps(wide_solve *w)
{
    wide_memory *m = wide_memory_of(w);
    TB_EACH (item, w->items) {
        const uint32_t columns = m->columns[item];
        const int32_t row = wide_row(columns), rows = wide_rows(columns);
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
        const tb_real own = g[0] + wide_compliance(m, row), inverse = own > 0 ? 1 / own : TB_R(0);
        if (rows == 1) {
            m->rates[row] = TB_VALUE(warp_quad){
                {inverse, m->c[row], wide_compliance(m, row), TB_R(m->answer[row])}};
            continue;
        }
        m->rates[row] = TB_VALUE(warp_quad){{inverse, g[1], g[2], g[3]}};
        m->rates[row + 1].v[0] = trace > 0 ? 1 / trace : TB_R(0);
    }
    tb_team_sync();
}

/* Impulses of an item after friction's set, in place. */
WIDE_FN void wide_sweep_friction(const wide_memory *m, int32_t item, int32_t rows,
                                 tb_real x[WIDE_ROWS])
{
    const tb_real radius = m->bound[item] * x[0];
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

/* Sums over all lanes. */
WIDE_FN void wide_sum_rows(int32_t rows, tb_real u[WIDE_ROWS])
{
    WIDE_FULL
    for (int32_t step = WIDE_LANES / 2; step > 0; step /= 2) {
        const int32_t other = tb_team_lane() ^ step;
        u[0] += tb_team_take_real(u[0], other);
        u[1] += tb_team_take_real(u[1], other);
        u[2] += tb_team_take_real(u[2], other);
        if (rows == WIDE_ROWS) u[3] += tb_team_take_real(u[3], other);
    }
}

/* An item of several rows: every lane knows its dofs' part of them. */
TB_STATIC void wide_sweep_item(wide_solve *w, int32_t item, uint32_t columns, tb_real s[2])
{
    wide_memory *m = wide_memory_of(w);
    const int32_t row = wide_row(columns), rows = wide_rows(columns), dof = tb_team_lane();
    const warp_quad rates = m->rates[row], y = wide_values(m, columns, rows, dof);
    const warp_quad z = w->dofs > WIDE_LANES ? wide_values(m, columns, rows, dof + WIDE_LANES)
                                             : TB_VALUE(warp_quad){{0, 0, 0, 0}};
    tb_real u[WIDE_ROWS], x[WIDE_ROWS], before[WIDE_ROWS];
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) u[r] = y.v[r] * s[0] + z.v[r] * s[1];
    wide_sum_rows(rows, u);
    const tb_real rate = m->rates[row + 1].v[0];
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        x[r] = before[r] = 0;
        if (r >= rows) continue;
        const tb_real compliance = wide_compliance(m, row + r);
        before[r] = TB_R(m->answer[row + r]);
        u[r] += m->c[row + r] + compliance * before[r];
        if (r == 0) {
            x[0] = tb_max(before[0] - rates.v[0] * u[0], m->lower[item]);
            continue;
        }
        const tb_real own = rate / (1 + rate * compliance);
        x[r] = before[r] - own * (u[r] + rates.v[r] * (x[0] - before[0]));
    }
    wide_sweep_friction(m, item, rows, x);
    tb_team_sync(); /* all have read the impulses */
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        s[0] += y.v[r] * (x[r] - before[r]);
        s[1] += z.v[r] * (x[r] - before[r]);
        if (TB_LEADER && r < rows) m->answer[row + r] = (double)x[r];
    }
}

/* An item of one row. */
TB_STATIC void wide_sweep_row(wide_solve *w, int32_t item, uint32_t columns, tb_real s[2])
{
    wide_memory *m = wide_memory_of(w);
    const int32_t dof = tb_team_lane();
    const warp_quad own = m->rates[wide_row(columns)];
    const tb_real y = wide_value(m, columns, dof), lower = m->lower[item], upper = m->bound[item];
    const tb_real z = w->dofs > WIDE_LANES ? wide_value(m, columns, dof + WIDE_LANES) : TB_R(0);
    tb_real u = y * s[0] + z * s[1];
    WIDE_FULL
    for (int32_t step = WIDE_LANES / 2; step > 0; step /= 2)
        u += tb_team_take_real(u, tb_team_lane() ^ step);
    u += own.v[1] + own.v[2] * own.v[3];
    const tb_real x = tb_clamp(own.v[3] - own.v[0] * u, lower, upper), d = x - own.v[3];
    s[0] += y * d;
    s[1] += z * d;
    tb_team_sync(); /* all have read the impulse */
    if (TB_LEADER) m->rates[wide_row(columns)].v[3] = x;
}

/* A burst of sweeps from the answer that was judged last, which the iterate becomes. Returns its
 * residual. */
TB_CALLED double wide_sweep(wide_solve *w, int32_t turns)
{
    wide_memory *m = wide_memory_of(w);
    wide_prepare_sweeps(w);
    const int32_t dof = tb_team_lane();
    tb_real s[2] = {TB_R(m->s[dof]),
                    dof + WIDE_LANES < w->dofs ? TB_R(m->s[dof + WIDE_LANES]) : TB_R(0)};
    TB_ROLLED
    for (int32_t turn = 0; turn < turns; turn++) {
        uint32_t columns = m->columns[0];
        TB_ROLLED
        for (int32_t item = 0; item < w->items; item++) {
            const uint32_t own = columns;
            if (item + 1 < w->items) columns = m->columns[item + 1];
            if (wide_rows(own) == 1)
                wide_sweep_row(w, item, own, s);
            else
                wide_sweep_item(w, item, own, s);
        }
        tb_team_sync(); /* the next turn reads the impulses */
    }
    TB_EACH (item, w->items) {
        const int32_t row = wide_row(m->columns[item]);
        if (wide_rows(m->columns[item]) == 1) m->answer[row] = (double)m->rates[row].v[3];
    }
    tb_team_sync();
    wide_take_answer(w);
    const double residual = wide_judge(w);
    wide_take_answer(w);
    return residual;
}

#endif
