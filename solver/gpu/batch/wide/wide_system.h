/* The system of a Newton step of a wide world, (I + Y' K Y) ds = Y' lack, in a warp's registers.
 *
 * Lane d holds row d of the matrix, and the rows 32 to 35 of a larger world lie in the first lanes
 * beside their own. A row is summed item by item over the groups of the item's dofs, then eliminated
 * by Gauss and Jordan: the lane of the pivot's row writes it to shared memory and all lanes read it
 * there. After each pivot the numbers move down by one place, so that the pivot's column always lies
 * in the first place and a loop over pivots needs no code of its own for each. The diagonal holds the
 * proximal term's one, which is added when its pivot comes, so no pivot is looked for. */
#ifndef TB_GPU_WIDE_SYSTEM_H
#define TB_GPU_WIDE_SYSTEM_H

#include "gpu/batch/wide/wide_data.h"

/* A row of the system: its numbers by groups, its right side, its pivot's inverse. Groups have names,
 * since the compiler leaves an array in memory whose loops it unrolls. */
typedef struct wide_line {
    warp_quad h0, h1, h2, h3, h4, h5, h6, h7, h8;
    warp_quad h9; /* zero, behind the last */
    tb_real g, inverse;
} wide_line;

/* Each group and the next one. */
#define WIDE_EACH_GROUP(X) X(0, 1) X(1, 2) X(2, 3) X(3, 4) X(4, 5) X(5, 6) X(6, 7) X(7, 8) X(8, 9)

WIDE_FN warp_quad wide_no_numbers(void)
{
    return TB_VALUE(warp_quad){{0, 0, 0, 0}};
}

/* The numbers of an item of n rows that belong to the row of a dof: Y' K of it, and its part of the
 * right side. */
WIDE_FN warp_quad wide_read_line(wide_memory *m, uint32_t columns, int32_t n, int32_t dof,
                                 wide_line *line)
{
    const warp_quad *k = wide_slope(m, columns);
    const tb_real *lack = m->lack + wide_row(columns);
    const warp_quad y = wide_values(m, columns, n, dof);
    warp_quad a = wide_no_numbers();
    for (int32_t i = 0; i < WIDE_ROWS; i++) {
        if (i >= n) continue;
        const warp_quad own = k[i];
        line->g += y.v[i] * (n == WIDE_ROWS ? lack[i] : own.v[3]);
        for (int32_t j = 0; j < WIDE_ROWS; j++)
            if (j < n) a.v[j] += y.v[i] * own.v[j];
    }
    return a;
}

WIDE_FN void wide_add_scaled(tb_real factor, const warp_quad *y, warp_quad *h)
{
    h->v[0] += factor * y->v[0];
    h->v[1] += factor * y->v[1];
    h->v[2] += factor * y->v[2];
    h->v[3] += factor * y->v[3];
}

/* A group's part of n rows, in one line or two. */
WIDE_FN void wide_add_group(const warp_quad *quad, int32_t stride, int32_t n, const warp_quad *a,
                            const warp_quad *b, warp_quad *h, warp_quad *second)
{
    const warp_quad y0 = quad[0], y1 = n > 1 ? quad[stride] : wide_no_numbers();
    const warp_quad y2 = n > 2 ? quad[2 * stride] : wide_no_numbers();
    const warp_quad y3 = n > 3 ? quad[3 * stride] : wide_no_numbers();
    wide_add_scaled(a->v[0], &y0, h);
    if (n > 1) wide_add_scaled(a->v[1], &y1, h);
    if (n > 2) wide_add_scaled(a->v[2], &y2, h);
    if (n > 3) wide_add_scaled(a->v[3], &y3, h);
    if (!second) return;
    wide_add_scaled(b->v[0], &y0, second);
    if (n > 1) wide_add_scaled(b->v[1], &y1, second);
    if (n > 2) wide_add_scaled(b->v[2], &y2, second);
    if (n > 3) wide_add_scaled(b->v[3], &y3, second);
}

/* The part of an item of n rows in the lines: groups that none of its dofs lies in are left out. */
WIDE_FN void wide_add_rows(wide_memory *m, uint32_t columns, int32_t n, wide_line *line,
                           wide_line *second)
{
    const warp_quad *quad = m->quads + wide_quad(columns, 0);
    const int32_t stride = tb_count_bits(wide_groups(columns)), dof = tb_team_lane();
    const warp_quad a = wide_read_line(m, columns, n, dof, line);
    const warp_quad b =
        second ? wide_read_line(m, columns, n, dof + WIDE_LANES, second) : wide_no_numbers();
#define ADD_GROUP(group, next)                                                                     \
    if ((second || WIDE_GROUP * group < WIDE_LANES) && wide_has_group(columns, group))             \
        wide_add_group(quad++, stride, n, &a, &b, &line->h##group,                                 \
                       second ? &second->h##group : NULL);
    WIDE_EACH_GROUP(ADD_GROUP)
#undef ADD_GROUP
}

WIDE_FN void wide_add_item(wide_memory *m, uint32_t columns, wide_line *line, wide_line *second)
{
    switch (wide_rows(columns)) {
    case 1: wide_add_rows(m, columns, 1, line, second); break;
    case 2: wide_add_rows(m, columns, 2, line, second); break;
    case 3: wide_add_rows(m, columns, 3, line, second); break;
    default: wide_add_rows(m, columns, 4, line, second); break;
    }
}

/* The parts of all items that count. */
WIDE_FN void wide_add_items(wide_solve *w, wide_memory *m, wide_line *line, wide_line *second)
{
    TB_ROLLED
    for (int32_t first = 0; first < w->items; first += WIDE_LANES) {
        const int32_t own = first + tb_team_lane();
        TB_ROLLED
        for (uint32_t left = tb_team_ballot(own < w->items && m->active[own]); left != 0;
             left &= left - 1) {
            const int32_t item = first + tb_count_bits((left & (0 - left)) - 1);
            wide_add_item(m, m->columns[item], line, second);
        }
    }
}

/* Adds the proximal term's one to the pivot and writes its row, of `width` numbers. */
WIDE_FN void wide_share_pivot(warp_quad *shared, int32_t width, wide_line *line)
{
    line->h0.v[0] += 1;
#define SHARE_GROUP(group, next)                                                                   \
    if (width > WIDE_GROUP * group) shared[group] = line->h##group;
    WIDE_EACH_GROUP(SHARE_GROUP)
#undef SHARE_GROUP
    shared[WIDE_GROUPS].v[0] = line->g;
}

/* A group of a line less its part of the pivot's row, moved down by one place. */
WIDE_FN void wide_move_group(tb_real factor, const warp_quad *y, const warp_quad *next_y,
                             const warp_quad *next, warp_quad *h)
{
    h->v[0] = h->v[1] + factor * y->v[1];
    h->v[1] = h->v[2] + factor * y->v[2];
    h->v[2] = h->v[3] + factor * y->v[3];
    h->v[3] = next->v[0] + factor * next_y->v[0];
}

/* Takes the pivot's row from a line, which is its own one or another. */
WIDE_FN void wide_eliminate(const warp_quad *shared, int32_t width, bool is_own, wide_line *line)
{
    warp_quad y = shared[0];
    const tb_real inverse = 1 / y.v[0];
    const tb_real factor = is_own ? TB_R(0) : -line->h0.v[0] * inverse;
    if (is_own) line->inverse = inverse;
    line->g += factor * shared[WIDE_GROUPS].v[0];
#define MOVE_GROUP(group, next)                                                                    \
    if (width > WIDE_GROUP * group) {                                                              \
        const warp_quad next_y = width > WIDE_GROUP * next ? shared[next] : wide_no_numbers();     \
        wide_move_group(factor, &y, &next_y,                                                       \
                        width > WIDE_GROUP * next ? &line->h##next : &line->h9, &line->h##group);  \
        y = next_y;                                                                                \
    }
    WIDE_EACH_GROUP(MOVE_GROUP)
#undef MOVE_GROUP
}

/* The pivots of four dofs from *k on: the row of each, of `width` numbers, is taken from all others. */
WIDE_FN void wide_take_pivots(wide_memory *m, int32_t dofs, int32_t width, wide_line *line,
                              wide_line *second)
{
    TB_ROLLED
    for (int32_t k = dofs - width; k < dofs - width + WIDE_GROUP; k++) {
        warp_quad *shared = m->pivots[k & 1];
        const bool has = tb_team_lane() == k % WIDE_LANES;
        const bool is_line = has && k < WIDE_LANES, is_second = has && k >= WIDE_LANES;
        if (is_line) wide_share_pivot(shared, width, line);
        if (second && is_second) wide_share_pivot(shared, width, second);
        tb_team_sync();
        wide_eliminate(shared, width, is_line, line);
        if (second) wide_eliminate(shared, width, is_second, second);
    }
}

WIDE_FN void wide_clear_line(wide_line *line)
{
    line->g = 0;
    line->inverse = 1;
    line->h9 = wide_no_numbers();
#define CLEAR_GROUP(group, next) line->h##group = wide_no_numbers();
    WIDE_EACH_GROUP(CLEAR_GROUP)
#undef CLEAR_GROUP
}

WIDE_FN void wide_put_result(wide_memory *m, int32_t dof, const wide_line *line)
{
    if (dof < WIDE_MOST_DOFS)
        wide_right(m)[dof / WIDE_GROUP].v[dof % WIDE_GROUP] = line->g * line->inverse;
}

/* With the rows of the dofs from 32 on in `second`, NULL where there are none. */
WIDE_FN void wide_solve_lines(wide_solve *w, wide_line *line, wide_line *second)
{
    wide_memory *m = wide_memory_of(w);
    const int32_t dofs = (w->dofs + WIDE_GROUP - 1) / WIDE_GROUP * WIDE_GROUP;
    wide_clear_line(line);
    if (second) wide_clear_line(second);
    wide_add_items(w, m, line, second);
#define TAKE_PIVOTS(group, next)                                                                   \
    if ((second || group > 0) && WIDE_MOST_DOFS - WIDE_GROUP * group <= dofs)                      \
        wide_take_pivots(m, dofs, WIDE_MOST_DOFS - WIDE_GROUP * group, line, second);
    WIDE_EACH_GROUP(TAKE_PIVOTS)
#undef TAKE_PIVOTS
    wide_put_result(m, tb_team_lane(), line);
    if (second) wide_put_result(m, tb_team_lane() + WIDE_LANES, second);
    tb_team_sync();
}

/* ds from K and lack. */
TB_CALLED void wide_solve_system(wide_solve *w)
{
    wide_line line, second;
    if (w->dofs > WIDE_LANES)
        wide_solve_lines(w, &line, &second);
    else
        wide_solve_lines(w, &line, NULL);
}

#endif
