/* The system of a Newton step of a wide world, (I + Y' K Y) ds = Y' lack, in a warp's registers.
 *
 * Lane d holds row d of the matrix, and the rows 32 to 35 of a larger world lie in the first lanes
 * beside their own. A row is summed item by item over the groups of the item's dofs, then eliminated
 * by Gauss and Jordan: the lane of the pivot's row writes it to shared memory and all lanes read it
 * there. After each pivot the numbers move down by one place, so that the pivot's column always lies
 * in the first place and a loop over pivots needs no code of its own for each. The diagonal holds the
 * proximal term's one, so no pivot is looked for. */
#ifndef TB_GPU_WIDE_SYSTEM_H
#define TB_GPU_WIDE_SYSTEM_H

#include "gpu/batch/wide/wide_data.h"

/* A row of the system: its numbers, its right side, its pivot's inverse. */
typedef struct wide_line {
    tb_real h[WIDE_MOST_DOFS], g, inverse;
} wide_line;

/* The numbers of an item of n rows that belong to the row of a dof: a = Y' K of it, and its part of the
 * right side. */
WIDE_FN void wide_read_line(wide_memory *m, int32_t item, int32_t n, int32_t dof,
                            tb_real a[WIDE_ROWS], wide_line *line)
{
    const uint32_t columns = m->columns[item];
    const int32_t row = m->row[item];
    const tb_real *k = wide_slope(m, item);
    WIDE_FULL
    for (int32_t j = 0; j < n; j++) a[j] = 0;
    WIDE_FULL
    for (int32_t r = 0; r < n; r++) {
        const tb_real y = wide_value(m, columns, r, dof);
        line->g += y * m->lack[row + r];
        WIDE_FULL
        for (int32_t j = 0; j < n; j++) a[j] += y * k[r * n + j];
    }
}

/* The part of an item of n rows in the lines: groups that none of its dofs lies in are left out. */
WIDE_FN void wide_add_rows(wide_memory *m, int32_t item, int32_t n, int32_t lines, wide_line *line)
{
    const uint32_t columns = m->columns[item];
    const warp_quad *quad = m->quads + wide_quad(columns, 0);
    const int32_t stride = tb_count_bits(wide_groups(columns));
    tb_real a[2][WIDE_ROWS];
    WIDE_FULL
    for (int32_t i = 0; i < lines; i++)
        wide_read_line(m, item, n, tb_team_lane() + i * WIDE_LANES, a[i], &line[i]);
    WIDE_FULL
    for (int32_t g = 0; g < (lines > 1 ? WIDE_GROUPS : WIDE_GROUPS - 1); g++) {
        if (!wide_has_group(columns, g)) continue;
        WIDE_FULL
        for (int32_t r = 0; r < n; r++) {
            const warp_quad y = quad[r * stride];
            WIDE_FULL
            for (int32_t j = 0; j < lines * WIDE_GROUP; j++)
                line[j / WIDE_GROUP].h[WIDE_GROUP * g + j % WIDE_GROUP] +=
                    a[j / WIDE_GROUP][r] * y.v[j % WIDE_GROUP];
        }
        quad++;
    }
}

WIDE_FN void wide_add_item(wide_memory *m, int32_t item, int32_t lines, wide_line *line)
{
    switch (m->rows[item]) {
    case 1: wide_add_rows(m, item, 1, lines, line); break;
    case 2: wide_add_rows(m, item, 2, lines, line); break;
    case 3: wide_add_rows(m, item, 3, lines, line); break;
    default: wide_add_rows(m, item, 4, lines, line); break;
    }
}

/* One pivot: the row of dof k, of `width` numbers, is taken from all others. */
WIDE_FN void wide_take_pivot(wide_memory *m, int32_t k, int32_t width, int32_t lines,
                             wide_line *line)
{
    warp_quad *shared = m->pivots[k & 1];
    const int32_t owner = k % WIDE_LANES, own = k / WIDE_LANES;
    WIDE_FULL
    for (int32_t i = 0; i < lines; i++) {
        if (tb_team_lane() != owner || own != i) continue;
        WIDE_FULL
        for (int32_t q = 0; q < width / WIDE_GROUP; q++)
            shared[q] = TB_VALUE(warp_quad){{line[i].h[4 * q], line[i].h[4 * q + 1],
                                             line[i].h[4 * q + 2], line[i].h[4 * q + 3]}};
        shared[WIDE_GROUPS].v[0] = line[i].g;
    }
    tb_team_sync();
    warp_quad y = shared[0];
    const tb_real inverse = 1 / y.v[0], g = shared[WIDE_GROUPS].v[0];
    tb_real factor[2] = {0, 0};
    WIDE_FULL
    for (int32_t i = 0; i < lines; i++) {
        const bool is = tb_team_lane() == owner && own == i;
        factor[i] = is ? TB_R(0) : -line[i].h[0] * inverse;
        if (is) line[i].inverse = inverse;
        line[i].g += factor[i] * g;
    }
    WIDE_FULL
    for (int32_t j = 1; j < width; j++) {
        if (j % WIDE_GROUP == 0) y = shared[j / WIDE_GROUP];
        WIDE_FULL
        for (int32_t i = 0; i < lines; i++)
            line[i].h[j - 1] = line[i].h[j] + factor[i] * y.v[j % WIDE_GROUP];
    }
    WIDE_FULL
    for (int32_t i = 0; i < lines; i++) line[i].h[width - 1] = 0;
}

WIDE_FN void wide_solve_lines(const wide_solve *w, int32_t lines)
{
    wide_memory *m = w->m;
    wide_line line[2];
    WIDE_FULL
    for (int32_t i = 0; i < lines; i++) {
        line[i].g = 0;
        line[i].inverse = 1;
        WIDE_FULL
        for (int32_t j = 0; j < WIDE_MOST_DOFS; j++)
            line[i].h[j] = TB_R(tb_team_lane() + i * WIDE_LANES == j);
    }
    TB_ROLLED
    for (int32_t item = 0; item < w->items; item++) wide_add_item(m, item, lines, line);
    const int32_t all = (w->dofs + WIDE_GROUP - 1) / WIDE_GROUP * WIDE_GROUP;
    int32_t k = 0;
    WIDE_FULL
    for (int32_t width = lines > 1 ? WIDE_MOST_DOFS : WIDE_LANES; width > 0; width -= WIDE_GROUP) {
        if (width > all) continue;
        TB_ROLLED
        for (int32_t i = 0; i < WIDE_GROUP; i++, k++) wide_take_pivot(m, k, width, lines, line);
    }
    WIDE_FULL
    for (int32_t i = 0; i < lines; i++) {
        const int32_t dof = tb_team_lane() + i * WIDE_LANES;
        if (dof < WIDE_MOST_DOFS)
            m->right[dof / WIDE_GROUP].v[dof % WIDE_GROUP] = line[i].g * line[i].inverse;
    }
    tb_team_sync();
}

/* ds from K and lack. */
TB_CALLED void wide_solve_system(const wide_solve *w)
{
    if (w->dofs > WIDE_LANES)
        wide_solve_lines(w, 2);
    else
        wide_solve_lines(w, 1);
}

#endif
