/* Newton's matrix of one dense node, assembled on a processor.
 *
 * Joints along a chain have rows of one number, and the dofs of each row are among those of the next.
 * Up to three of them form a group, and so do the rows of a contact: a row of the matrix is walked
 * once for a group. The rows of Y are kept from step to step on the dofs of the group, the last dof
 * first as in the matrix. Each number of the matrix is summed in the order of the blocks, as by the
 * team of lanes in newton_factorized.c. */
#include "solve/newton/newton_system.h"

#include "solve/sweep/rows.h"

#ifndef TB_DEVICE

/* Place of a run of dofs among the dofs of a block; -1: some are not there. */
TB_STATIC int32_t place_of_dofs(const tb_problem *problem, const tb_segment *run,
                                const tb_block *block)
{
    const tb_segment *on = problem->segments + block->segment;
    int32_t place = 0;
    for (int32_t q = 0; q < block->segments; q++) {
        const int32_t from = run->dof - on[q].dof;
        if (from >= 0 && from + run->count <= on[q].count) return place + from;
        place += on[q].count;
    }
    return -1;
}

TB_STATIC bool moves_among(const tb_problem *problem, const tb_block *few, const tb_block *many)
{
    const tb_segment *runs = problem->segments + few->segment;
    for (int32_t p = 0; p < few->segments; p++)
        if (place_of_dofs(problem, &runs[p], many) < 0) return false;
    return true;
}

/* Whether a block of one row joins the group before it. */
TB_STATIC bool joins(const tb_problem *problem, const tb_dense_group *group, const tb_block *block)
{
    if (block->rows > 1 || !group->of_blocks || group->rows == TB_DENSE_GROUP_ROWS) return false;
    return moves_among(problem, &problem->blocks[group->block[group->rows - 1]], block);
}

TB_EXTERN tb_status tb_newton_group_rows(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    tb_newton_link_alike(system);
    tb_dense_group *groups =
        TB_ARENA_ARRAY(system->arena, tb_dense_group, problem->number_of_blocks);
    if (!groups) return TB_RESOURCE_EXHAUSTED;
    int32_t number = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        if (system->alike_before[b] >= 0) continue;
        tb_dense_group *group = &groups[number > 0 ? number - 1 : 0];
        if (number == 0 || !joins(problem, group, block)) {
            group = &groups[number++];
            group->rows = 0;
            group->of_blocks = block->rows == 1;
            group->has_numbers = false;
        }
        group->block[group->of_blocks ? group->rows : 0] = b;
        group->rows = group->of_blocks ? group->rows + 1 : block->rows;
        group->on = block;
    }
    int64_t numbers = 0;
    for (int32_t g = 0; g < number; g++) numbers += groups[g].rows * groups[g].on->width;
    tb_real *turned = TB_ARENA_ARRAY(system->arena, tb_real, numbers);
    if (!turned) return TB_RESOURCE_EXHAUSTED;
    for (int32_t g = 0; g < number; g++) {
        groups[g].turned = turned;
        turned += groups[g].rows * groups[g].on->width;
    }
    system->groups = groups;
    system->number_of_groups = number;
    return TB_OK;
}

/* A row of Y on the dofs of the group, the last one first, zero for others. */
TB_STATIC void turn_row(const tb_problem *problem, const tb_block *from, const tb_real *y,
                        const tb_block *on, tb_real *turned)
{
    const tb_segment *runs = problem->segments + from->segment;
    for (int32_t j = 0; j < on->width; j++) turned[j] = 0;
    for (int32_t p = 0; p < from->segments; p++) {
        tb_real *to = turned + on->width - 1 - place_of_dofs(problem, &runs[p], on);
        for (int32_t j = 0; j < runs[p].count; j++) *to-- = *y++;
    }
}

TB_STATIC void turn_rows(const tb_problem *problem, tb_dense_group *group)
{
    for (int32_t i = 0; i < group->rows; i++) {
        const tb_block *from = &problem->blocks[group->block[group->of_blocks ? i : 0]];
        const tb_real *y = problem->values + from->value;
        if (!group->of_blocks) y += (int64_t)i * from->width;
        turn_row(problem, from, y, group->on, group->turned + (int64_t)i * group->on->width);
    }
    group->has_numbers = true;
}

/* to += left row */
TB_FN void add_one_row(tb_real *TB_RESTRICT to, tb_real left, const tb_real *TB_RESTRICT row,
                       int32_t n)
{
    const tb_simd_pair f = tb_simd_pair_of(left, left);
    int32_t j = 0;
    for (; j + 2 <= n; j += 2)
        tb_simd_pair_store(to + j,
                           tb_simd_pair_add(tb_simd_pair_load(to + j),
                                            tb_simd_pair_mul(f, tb_simd_pair_load(row + j))));
    if (j < n) to[j] += left * row[j];
}

/* to += l0 r0, then l1 r1, then l2 r2; l0, l1 and l2 are TB_DENSE_DOFS apart */
TB_FN void add_three_rows(tb_real *TB_RESTRICT to, const tb_real *left,
                          const tb_real *TB_RESTRICT r0, const tb_real *TB_RESTRICT r1,
                          const tb_real *TB_RESTRICT r2, int32_t n)
{
    const tb_real l0 = left[0], l1 = left[TB_DENSE_DOFS], l2 = left[2 * TB_DENSE_DOFS];
    const tb_simd_pair f0 = tb_simd_pair_of(l0, l0), f1 = tb_simd_pair_of(l1, l1),
                       f2 = tb_simd_pair_of(l2, l2);
    int32_t j = 0;
    for (; j + 2 <= n; j += 2) {
        tb_simd_pair sum = tb_simd_pair_add(tb_simd_pair_load(to + j),
                                            tb_simd_pair_mul(f0, tb_simd_pair_load(r0 + j)));
        sum = tb_simd_pair_add(sum, tb_simd_pair_mul(f1, tb_simd_pair_load(r1 + j)));
        tb_simd_pair_store(to + j,
                           tb_simd_pair_add(sum, tb_simd_pair_mul(f2, tb_simd_pair_load(r2 + j))));
    }
    if (j < n) to[j] = ((to[j] + l0 * r0[j]) + l1 * r1[j]) + l2 * r2[j];
}

/* D' of the rows of a group, a square. */
TB_STATIC void slopes_of_group(const tb_newton_system *system, const tb_dense_group *group,
                               tb_real *d)
{
    const int32_t n = group->rows, squares = n * n;
    tb_real sum;
    if (group->of_blocks) {
        for (int32_t i = 0; i < squares; i++) d[i] = 0;
        for (int32_t i = 0; i < n; i++)
            d[i * (n + 1)] = *tb_newton_sum_alike(system, group->block[i], &sum);
    } else {
        const tb_real *own = tb_newton_sum_alike(system, group->block[0], &sum);
        for (int32_t i = 0; i < squares; i++) d[i] = own[i];
    }
}

/* False for open contacts and impulses at their bounds. */
TB_STATIC bool has_slope(const tb_real *d, int32_t n)
{
    bool some = false;
    for (int32_t i = 0; i < n * n; i++) some = some || d[i] != 0;
    return some;
}

/* scaled = turned' D', the numbers of a row of D' TB_DENSE_DOFS after those of the row before. */
TB_STATIC void scale_rows(const tb_dense_group *group, const tb_real *d, tb_real *scaled)
{
    const int32_t width = group->on->width, n = group->rows;
    for (int32_t i = 0; i < n; i++) {
        tb_real *TB_RESTRICT to = scaled + (int64_t)i * TB_DENSE_DOFS;
        for (int32_t k = 0; k < n; k++) {
            const tb_real *TB_RESTRICT own = group->turned + (int64_t)k * width;
            const tb_real slope = d[k * n + i];
            if (k == 0)
                for (int32_t a = 0; a < width; a++) to[a] = own[a] * slope;
            else if (slope != 0)
                for (int32_t a = 0; a < width; a++) to[a] += own[a] * slope;
        }
    }
}

/* Adds the group's term. */
TB_STATIC void add_group(tb_newton_system *system, const tb_dense_group *group, const tb_real *d)
{
    const tb_segment *runs = system->problem->segments + group->on->segment;
    const int32_t width = group->on->width, size = system->lu.rows, last = group->on->segments - 1;
    tb_real scaled[TB_BLOCK_ROWS * TB_DENSE_DOFS];
    scale_rows(group, d, scaled);
    for (int32_t p = last, a = 0; p >= 0; a += runs[p--].count) {
        const int32_t first = size - runs[p].dof - runs[p].count;
        for (int32_t q = last, b = 0; q >= 0; b += runs[q--].count) {
            const int32_t count = runs[q].count;
            const tb_real *row = group->turned + b;
            tb_real *to = system->lu.values + (int64_t)first * size + size - runs[q].dof - count;
            for (int32_t k = a; k < a + runs[p].count; k++, to += size) {
                if (group->rows == 3)
                    add_three_rows(to, scaled + k, row, row + width, row + 2 * width, count);
                else
                    for (int32_t i = 0; i < group->rows; i++)
                        add_one_row(to, scaled[i * TB_DENSE_DOFS + k], row + i * width, count);
            }
        }
    }
}

TB_EXTERN void tb_newton_assemble_dense(tb_newton_system *system)
{
    tb_block_lu_clear(&system->lu);
    for (int32_t i = 0; i < system->lu.rows; i++)
        system->lu.values[(int64_t)i * (system->lu.rows + 1)] = 1;
    for (int32_t g = 0; g < system->number_of_groups; g++) {
        tb_dense_group *group = &system->groups[g];
        tb_real d[TB_BLOCK_ROWS * TB_BLOCK_ROWS];
        slopes_of_group(system, group, d);
        if (!has_slope(d, group->rows)) continue;
        if (!group->has_numbers) turn_rows(system->problem, group);
        add_group(system, group, d);
    }
}

#endif
