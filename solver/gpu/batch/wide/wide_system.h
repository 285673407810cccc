/* The system of a Newton step of a wide world, (I + Y' K Y) ds = Y' lack, in a warp's registers.
 *
 * Lane d holds row d of the matrix, and the rows 32 to 35 of a larger world lie in the first lanes
 * beside their own. A row is summed item by item over the groups of the item's dofs, then eliminated
 * by Gauss and Jordan, two pivots at a time: the lanes of their rows write them to shared memory and
 * all lanes read them there. Then the numbers move down by two places, so that the pivots' columns
 * always lie in the first places and a loop over pivots needs no code of its own for each. The
 * diagonal holds the proximal term's one, which is added when its pivot comes, so no pivot is looked
 * for. Where items have most of the groups, rows of Y have them all (wide_common_groups), and the sum
 * is one short loop over rows. */
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

/* A group's part of n rows. */
WIDE_FN void wide_add_group(const warp_quad *quad, int32_t stride, int32_t n, const warp_quad *a,
                            warp_quad *h)
{
    const warp_quad y0 = quad[0], y1 = n > 1 ? quad[stride] : wide_no_numbers();
    const warp_quad y2 = n > 2 ? quad[2 * stride] : wide_no_numbers();
    const warp_quad y3 = n > 3 ? quad[3 * stride] : wide_no_numbers();
    wide_add_scaled(a->v[0], &y0, h);
    if (n > 1) wide_add_scaled(a->v[1], &y1, h);
    if (n > 2) wide_add_scaled(a->v[2], &y2, h);
    if (n > 3) wide_add_scaled(a->v[3], &y3, h);
}

/* The part of an item of n rows in the line of a dof: groups that none of its dofs lies in are left out.
 * `most`: groups of the line. */
WIDE_FN void wide_add_rows(wide_memory *m, uint32_t columns, int32_t n, int32_t dof, int32_t most,
                           wide_line *line)
{
    const warp_quad *quad = m->quads + wide_quad(columns, 0);
    const int32_t stride = tb_count_bits(wide_groups(columns));
    const warp_quad a = wide_read_line(m, columns, n, dof, line);
#define ADD_GROUP(group, next)                                                                     \
    if (group < most && wide_has_group(columns, group))                                            \
        wide_add_group(quad++, stride, n, &a, &line->h##group);
    WIDE_EACH_GROUP(ADD_GROUP)
#undef ADD_GROUP
}

/* The part of an item of n rows in both lines. Few items have one in the second. */
WIDE_FN void wide_add_to_lines(wide_memory *m, uint32_t columns, int32_t n, wide_line *line,
                               wide_line *second)
{
    const int32_t dof = tb_team_lane(), last = WIDE_GROUPS - 1;
    wide_add_rows(m, columns, n, dof, second ? (int32_t)WIDE_GROUPS : last, line);
    if (second && wide_has_group(columns, last))
        wide_add_rows(m, columns, n, dof + WIDE_LANES, WIDE_GROUPS, second);
}

WIDE_FN void wide_add_item(wide_memory *m, uint32_t columns, wide_line *line, wide_line *second)
{
    switch (wide_rows(columns)) {
    case 1: wide_add_to_lines(m, columns, 1, line, second); break;
    case 2: wide_add_to_lines(m, columns, 2, line, second); break;
    case 3: wide_add_to_lines(m, columns, 3, line, second); break;
    default: wide_add_to_lines(m, columns, 4, line, second); break;
    }
}

/* The part of a row in the lines of a world whose items have all groups. A group that the world has
 * not takes numbers of the next row, which stay behind all pivots. */
WIDE_FN void wide_add_whole_row(const warp_quad *quad, tb_real a, wide_line *line)
{
#define ADD_GROUP(group, next)                                                                     \
    if (group < WIDE_WHOLE_GROUPS) wide_add_scaled(a, &quad[group], &line->h##group);
    WIDE_EACH_GROUP(ADD_GROUP)
#undef ADD_GROUP
}

/* A lane's number of a row of an item that has all groups. */
WIDE_FN tb_real wide_whole_value(const tb_real *y, int32_t dof, int32_t row, int32_t stride)
{
    return dof < WIDE_GROUP * stride ? y[row * WIDE_GROUP * stride] : TB_R(0);
}

/* The part of a row of K in Y' K of a lane, and of its lack in the right side. `lack` is NULL where
 * the lack is the row's last number. */
WIDE_FN void wide_add_slope(tb_real y, const warp_quad *k, const tb_real *lack, int32_t row,
                            wide_line *line, warp_quad *a)
{
    line->g += y * (lack ? lack[row] : k->v[3]);
    a->v[0] += y * k->v[0];
    a->v[1] += y * k->v[1];
    a->v[2] += y * k->v[2];
    if (lack) a->v[3] += y * k->v[3];
}

/* The part of an item that has all groups in the line. */
WIDE_FN void wide_add_whole_item(wide_memory *m, uint32_t columns, int32_t stride, wide_line *line)
{
    const warp_quad *k = wide_slope(m, columns), *quad = m->quads + wide_quad(columns, 0);
    const int32_t row = wide_row(columns), rows = wide_rows(columns), dof = tb_team_lane();
    const tb_real *y = quad->v + dof;
    const bool is_spin = rows == WIDE_ROWS;
    warp_quad a = wide_no_numbers();
    wide_add_slope(wide_whole_value(y, dof, 0, stride), &k[0], is_spin ? m->lack : NULL, row, line,
                   &a);
    if (rows > 1) {
        const tb_real third = rows > 2 ? wide_whole_value(y, dof, 2, stride) : TB_R(0);
        const warp_quad second_k = k[1], third_k = k[2]; /* read before they are used */
        wide_add_slope(wide_whole_value(y, dof, 1, stride), &second_k, is_spin ? m->lack : NULL,
                       row + 1, line, &a);
        wide_add_slope(third, &third_k, is_spin ? m->lack : NULL, row + 2, line, &a);
    }
    if (is_spin)
        wide_add_slope(wide_whole_value(y, dof, 3, stride), &k[3], m->lack, row + 3, line, &a);
    TB_ROLLED
    for (int32_t r = 0; r < rows; r++, quad += stride) {
        wide_add_whole_row(quad, a.v[0], line);
        a.v[0] = a.v[1];
        a.v[1] = a.v[2];
        a.v[2] = a.v[3];
    }
}

/* The parts of all items that count. */
WIDE_FN void wide_add_items(wide_solve *w, wide_memory *m, wide_line *line, wide_line *second)
{
#ifndef TB_UNIT_PILE
    const int32_t stride = tb_count_bits(w->common_groups);
#endif
    TB_ROLLED
    for (int32_t first = 0; first < w->items; first += WIDE_LANES) {
        const int32_t own = first + tb_team_lane();
        TB_ROLLED
        for (uint32_t left = tb_team_ballot(own < w->items && m->active[own]); left != 0;
             left &= left - 1) {
            const int32_t item = first + tb_count_bits((left & (0 - left)) - 1);
#ifndef TB_UNIT_PILE
            if (!second && stride > 0) {
                wide_add_whole_item(m, m->columns[item], stride, line);
                continue;
            }
#endif
            wide_add_item(m, m->columns[item], line, second);
        }
    }
}

/* Adds the proximal term's one to the pivot, the number in `place`, and writes its row, of `width`
 * numbers. */
WIDE_FN void wide_share_pivot(warp_quad *shared, int32_t width, int32_t place, wide_line *line)
{
    line->h0.v[0] += place == 0 ? TB_R(1) : TB_R(0);
    line->h0.v[1] += place == 1 ? TB_R(1) : TB_R(0);
#define SHARE_GROUP(group, next)                                                                   \
    if (width > WIDE_GROUP * group) shared[group] = line->h##group;
    WIDE_EACH_GROUP(SHARE_GROUP)
#undef SHARE_GROUP
    shared[WIDE_GROUPS].v[0] = line->g;
}

/* A number of a line less its part of a pair of rows. */
WIDE_FN tb_real wide_less(tb_real h, const tb_real factor[2], tb_real first, tb_real second)
{
    return h + factor[0] * first + factor[1] * second;
}

/* A pair of rows from a lane's line, which is its own one or another; its numbers move down by two
 * places. The pair begins with a b / c d and ends with a and d' = d - (c / a) b on the diagonal: the
 * second row loses c / a of the first one, then any other line its first number by the first row and
 * its second number by the second row. */
WIDE_FN void wide_eliminate(const warp_quad shared[2][WIDE_GROUPS + 1], int32_t width,
                            bool is_first, bool is_second, wide_line *line)
{
    warp_quad y = shared[0][0], z = shared[1][0];
    const tb_real inverse = 1 / y.v[0], share = z.v[0] * inverse;
    const tb_real second_inverse = 1 / (z.v[1] - share * y.v[1]);
    const tb_real own = is_first ? TB_R(0) : -line->h0.v[0] * inverse;
    const tb_real other = is_second ? TB_R(0) : -(line->h0.v[1] + own * y.v[1]) * second_inverse;
    const tb_real factor[2] = {own - other * share, other};
    if (is_first) line->inverse = inverse;
    if (is_second) line->inverse = second_inverse;
    line->g = wide_less(line->g, factor, shared[0][WIDE_GROUPS].v[0], shared[1][WIDE_GROUPS].v[0]);
#define MOVE_GROUP(group, next)                                                                    \
    if (width > WIDE_GROUP * group) {                                                              \
        const bool is_last = width <= WIDE_GROUP * next;                                           \
        const warp_quad next_y = is_last ? wide_no_numbers() : shared[0][next];                    \
        const warp_quad next_z = is_last ? wide_no_numbers() : shared[1][next];                    \
        const warp_quad behind = is_last ? line->h9 : line->h##next;                               \
        warp_quad *h = &line->h##group;                                                            \
        h->v[0] = wide_less(h->v[2], factor, y.v[2], z.v[2]);                                      \
        h->v[1] = wide_less(h->v[3], factor, y.v[3], z.v[3]);                                      \
        h->v[2] = wide_less(behind.v[0], factor, next_y.v[0], next_z.v[0]);                        \
        h->v[3] = wide_less(behind.v[1], factor, next_y.v[1], next_z.v[1]);                        \
        y = next_y;                                                                                \
        z = next_z;                                                                                \
    }
    WIDE_EACH_GROUP(MOVE_GROUP)
#undef MOVE_GROUP
}

/* Takes the pivots from *k on, by twos, while more than `least` and at most `width` dofs are left. */
WIDE_FN void wide_take_pivots(wide_memory *m, int32_t dofs, int32_t least, int32_t width,
                              int32_t *k, wide_line *line, wide_line *second)
{
    TB_ROLLED
    for (; dofs - *k > least; *k += 2) {
        warp_quad(*shared)[WIDE_GROUPS + 1] = m->pivots[*k / 2 & 1];
        const int32_t place = tb_team_lane() - *k % WIDE_LANES;
        const bool has = place == 0 || place == 1, is_line = has && *k < WIDE_LANES;
        if (is_line) wide_share_pivot(shared[place], width, place, line);
        if (second && has && !is_line) wide_share_pivot(shared[place], width, place, second);
        tb_team_sync();
        wide_eliminate(shared, width, is_line && place == 0, is_line && place == 1, line);
        if (second)
            wide_eliminate(shared, width, has && !is_line && place == 0,
                           has && !is_line && place == 1, second);
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
    int32_t k = 0;
    wide_clear_line(line);
    if (second) wide_clear_line(second);
    wide_add_items(w, m, line, second);
    if (second) wide_take_pivots(m, dofs, 32, WIDE_MOST_DOFS, &k, line, second);
    wide_take_pivots(m, dofs, 24, 32, &k, line, second);
    wide_take_pivots(m, dofs, 16, 24, &k, line, second);
    wide_take_pivots(m, dofs, 8, 16, &k, line, second);
    wide_take_pivots(m, dofs, 0, 8, &k, line, second);
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
