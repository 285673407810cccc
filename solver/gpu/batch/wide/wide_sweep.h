/* Gauss-Seidel sweeps of a wide world by a warp: a lane holds a dof of s = Y' lambda, and lanes sum the
 * velocities of an item's rows, or of four items of one row, together. */
#ifndef TB_GPU_WIDE_SWEEP_H
#define TB_GPU_WIDE_SWEEP_H

#include "gpu/batch/wide/wide_item.h"

/* The items 4 n to 4 n + 3 are swept together where each has one row. */
enum { WIDE_TOGETHER = 4 };

/* The product of the first rows of two items. */
TB_STATIC tb_real wide_product(const wide_memory *m, uint32_t columns, uint32_t other)
{
    tb_real sum = 0;
    TB_ROLLED
    for (uint32_t left = wide_groups(columns) & wide_groups(other); left != 0; left &= left - 1) {
        const int32_t group = tb_count_bits((left & (0 - left)) - 1);
        const warp_quad y = m->quads[wide_quad(columns, 0) + wide_place(columns, group)];
        const warp_quad z = m->quads[wide_quad(other, 0) + wide_place(other, group)];
        for (int32_t i = 0; i < WIDE_GROUP; i++) sum += y.v[i] * z.v[i];
    }
    return sum;
}

/* Where G between two of four items is, the number `of` and an earlier one. */
TB_FN int32_t wide_coupling(int32_t of, int32_t earlier)
{
    return of + earlier - (earlier == 0 ? 1 : 0);
}

/* Numbers of an item of one row that all its sweeps need, in the place of its K: 1 / G, c, the compliance
 * and the impulse. G between it and earlier items of its four goes to `couplings`. */
TB_STATIC void wide_prepare_row(wide_memory *m, int32_t item, uint32_t columns)
{
    const int32_t row = wide_row(columns), first = item - item % WIDE_TOGETHER;
    const tb_real compliance = wide_compliance(m, row);
    const tb_real own = wide_product(m, columns, columns) + compliance;
    m->rates[row] = TB_VALUE(warp_quad){
        {own > 0 ? 1 / own : TB_R(0), m->c[row], compliance, TB_R(m->answer[row])}};
    TB_ROLLED
    for (int32_t other = first; other < item; other++) {
        const int32_t place = wide_coupling(item - first, other - first);
        const int32_t quad = first / WIDE_TOGETHER * 2 + place / WIDE_GROUP;
        m->couplings[quad].v[place % WIDE_GROUP] = wide_product(m, columns, m->columns[other]);
    }
}

/* The same of an item of several rows: 1 / G of the normal one and G between it and the others, behind
 * it the impulses, and in `along` the rates of the others, by the trace of G there. */
TB_STATIC void wide_prepare_rows(wide_memory *m, uint32_t columns)
{
    const int32_t row = wide_row(columns), rows = wide_rows(columns);
    const int32_t stride = tb_count_bits(wide_groups(columns));
    const warp_quad *y = m->quads + wide_quad(columns, 0);
    tb_real g[WIDE_ROWS] = {0, 0, 0, 0}, trace = 0;
    warp_quad impulses = {{0, 0, 0, 0}}, along = {{0, 0, 0, 0}};
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
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        if (r >= rows) continue;
        const tb_real own = (r == 0 ? g[0] : trace) + wide_compliance(m, row + r);
        along.v[r] = own > 0 ? 1 / own : TB_R(0);
        impulses.v[r] = TB_R(m->answer[row + r]);
    }
    m->rates[row] = TB_VALUE(warp_quad){{along.v[0], g[1], g[2], g[3]}};
    m->rates[row + 1] = impulses;
    m->along[row / 2] = along;
}

TB_STATIC void wide_prepare_sweeps(wide_solve *w)
{
    wide_memory *m = wide_memory_of(w);
    TB_EACH (item, w->items) {
        const uint32_t columns = m->columns[item];
        if (wide_rows(columns) == 1)
            wide_prepare_row(m, item, columns);
        else
            wide_prepare_rows(m, columns);
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

/* Sums of four numbers over all lanes. Twice lanes part with half of the numbers that they sum, so there
 * are 10 exchanges and not 20. */
WIDE_FN void wide_sum_rows(tb_real u[WIDE_ROWS])
{
    const int32_t lane = tb_team_lane();
    const bool is_upper = (lane & 16) != 0, is_odd = (lane & 8) != 0;
    tb_real even = is_upper ? u[2] : u[0], odd = is_upper ? u[3] : u[1];
    even += tb_team_take_real(is_upper ? u[0] : u[2], lane ^ 16);
    odd += tb_team_take_real(is_upper ? u[1] : u[3], lane ^ 16);
    tb_real sum = is_odd ? odd : even;
    sum += tb_team_take_real(is_odd ? even : odd, lane ^ 8);
    WIDE_FULL
    for (int32_t step = 4; step > 0; step /= 2) sum += tb_team_take_real(sum, lane ^ step);
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) u[r] = tb_team_take_real(sum, 8 * r);
}

/* An item of several rows: every lane knows its dofs' part of them. */
TB_STATIC void wide_sweep_item(wide_solve *w, int32_t item, uint32_t columns, tb_real s[2])
{
    wide_memory *m = wide_memory_of(w);
    const int32_t row = wide_row(columns), rows = wide_rows(columns), dof = tb_team_lane();
    const warp_quad rates = m->rates[row], before = m->rates[row + 1], along = m->along[row / 2];
    const warp_quad y = wide_values(m, columns, rows, dof);
    const warp_quad z = w->dofs > WIDE_LANES ? wide_values(m, columns, rows, dof + WIDE_LANES)
                                             : TB_VALUE(warp_quad){{0, 0, 0, 0}};
    warp_quad x = before;
    tb_real u[WIDE_ROWS];
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) u[r] = y.v[r] * s[0] + z.v[r] * s[1];
    wide_sum_rows(u);
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        if (r >= rows) continue;
        u[r] += m->c[row + r] + wide_compliance(m, row + r) * before.v[r];
        if (r == 0)
            x.v[0] = tb_max(before.v[0] - rates.v[0] * u[0], m->lower[item]);
        else
            x.v[r] -= along.v[r] * (u[r] + rates.v[r] * (x.v[0] - before.v[0]));
    }
    wide_sweep_friction(m, item, rows, x.v);
    WIDE_FULL
    for (int32_t r = 0; r < WIDE_ROWS; r++) {
        s[0] += y.v[r] * (x.v[r] - before.v[r]);
        s[1] += z.v[r] * (x.v[r] - before.v[r]);
    }
    tb_team_sync(); /* all have read the impulses */
    if (TB_LEADER) m->rates[row + 1] = x;
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

/* Four items of one row, from `first` on: their velocities are summed at once, and each impulse moves the
 * velocities of those behind it. */
TB_STATIC void wide_sweep_four(wide_solve *w, int32_t first, tb_real s[2])
{
    wide_memory *m = wide_memory_of(w);
    const int32_t dof = tb_team_lane();
    const warp_quad *g = m->couplings + first / WIDE_TOGETHER * 2;
    warp_quad *rates = m->rates + wide_row(m->columns[first]);
    tb_real u[WIDE_TOGETHER], y[WIDE_TOGETHER], z[WIDE_TOGETHER] = {0, 0, 0, 0};
    tb_real x[WIDE_TOGETHER];
    WIDE_FULL
    for (int32_t k = 0; k < WIDE_TOGETHER; k++) {
        y[k] = wide_value(m, m->columns[first + k], dof);
        u[k] = y[k] * s[0];
    }
    if (w->dofs > WIDE_LANES) {
        WIDE_FULL
        for (int32_t k = 0; k < WIDE_TOGETHER; k++) {
            z[k] = wide_value(m, m->columns[first + k], dof + WIDE_LANES);
            u[k] += z[k] * s[1];
        }
    }
    wide_sum_rows(u);
    WIDE_FULL
    for (int32_t k = 0; k < WIDE_TOGETHER; k++) {
        const warp_quad own = rates[k];
        u[k] += own.v[1] + own.v[2] * own.v[3];
        x[k] = tb_clamp(own.v[3] - own.v[0] * u[k], m->lower[first + k], m->bound[first + k]);
        const tb_real d = x[k] - own.v[3];
        s[0] += y[k] * d;
        s[1] += z[k] * d;
        WIDE_FULL
        for (int32_t j = k + 1; j < WIDE_TOGETHER; j++) {
            const int32_t place = wide_coupling(j, k);
            u[j] += g[place / WIDE_GROUP].v[place % WIDE_GROUP] * d;
        }
    }
    tb_team_sync(); /* all have read the impulses */
    WIDE_FULL
    for (int32_t k = 0; k < WIDE_TOGETHER; k++)
        if (TB_LEADER) rates[k].v[3] = x[k];
}

/* Every item once. */
TB_STATIC void wide_sweep_once(wide_solve *w, tb_real s[2])
{
    wide_memory *m = wide_memory_of(w);
    TB_ROLLED
    for (int32_t base = 0; base < w->items; base += WIDE_LANES) {
        const int32_t own = base + tb_team_lane();
        const int32_t end = base + WIDE_LANES < w->items ? base + WIDE_LANES : w->items;
        uint32_t fours = tb_team_ballot(own < w->items && wide_rows(m->columns[own]) == 1);
        fours &= fours >> 1;
        fours &= fours >> 2;
        TB_ROLLED
        for (int32_t item = base; item < end;) {
            if (item % WIDE_TOGETHER == 0 && (fours >> (item - base) & 1) != 0) {
                wide_sweep_four(w, item, s);
                item += WIDE_TOGETHER;
                continue;
            }
            const uint32_t columns = m->columns[item];
            if (wide_rows(columns) == 1)
                wide_sweep_row(w, item, columns, s);
            else
                wide_sweep_item(w, item, columns, s);
            item++;
        }
    }
    tb_team_sync(); /* the next turn reads the impulses */
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
    for (int32_t turn = 0; turn < turns; turn++) wide_sweep_once(w, s);
    TB_EACH (item, w->items) {
        const int32_t row = wide_row(m->columns[item]), rows = wide_rows(m->columns[item]);
        if (rows == 1) m->answer[row] = (double)m->rates[row].v[3];
        WIDE_FULL
        for (int32_t r = 0; r < WIDE_ROWS; r++)
            if (rows > 1 && r < rows) m->answer[row + r] = (double)m->rates[row + 1].v[r];
    }
    tb_team_sync();
    wide_take_answer(w);
    const double residual = wide_judge(w);
    wide_take_answer(w);
    return residual;
}

#endif
