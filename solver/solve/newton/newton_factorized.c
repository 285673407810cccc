/* Newton's system in the factorized form: the bodies are the nodes, a run of dofs that no block
 * cuts each.
 *
 * The contacts of a pair follow one another and couple the same dofs: their sum is gathered in a
 * small dense square first and then added to the matrix at once. The motor, the dry friction and the
 * limits of a joint are rows along the same velocity: in the matrix of one node they are one term. */
#include "solve/newton/newton_system.h"

#include "base/team.h"
#include "solve/sweep/rows.h"

#include <string.h>

#ifndef TB_DEVICE
/* Up to so many dofs their full square fits in a core's cache. */
enum { LARGEST_FULL_DOFS = 192 };

TB_EXTERN bool tb_newton_full_dofs(int32_t dofs)
{
    return dofs > TB_CACHED_FACTOR_DOFS && dofs <= LARGEST_FULL_DOFS;
}
#endif

/* ---- pattern: one lane's work ---- */

/* True if two blocks have the same runs of dofs. */
TB_CALLED bool same_runs(const tb_problem *problem, const tb_block *a, const tb_block *b)
{
    if (a->segments != b->segments || a->width != b->width) return false;
    if (a->segment == b->segment) return true;
    for (int32_t k = 0; k < a->segments; k++) {
        const tb_segment *own = problem->segments + a->segment + k;
        const tb_segment *other = problem->segments + b->segment + k;
        if (own->dof != other->dof || own->count != other->count) return false;
    }
    return true;
}

TB_EXTERN int32_t tb_newton_number_dofs(tb_newton_system *system, int32_t *size)
{
    const tb_problem *problem = system->problem;
    const int32_t dofs = problem->number_of_dofs;
    enum { TOUCHED = 1, CUT = 2 };
    int32_t *mark = system->node_row;
    memset(mark, 0, (size_t)dofs * sizeof *mark);
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        if (!system->inside[b]) continue;
        const tb_block *block = &problem->blocks[b];
        for (int32_t k = 0; k < block->segments; k++) {
            const tb_segment run = problem->segments[block->segment + k];
            if (run.count < 1) continue;
            mark[run.dof] |= CUT;
            if (run.dof + run.count < dofs) mark[run.dof + run.count] |= CUT;
            TB_ROLLED
            for (int32_t j = 0; j < run.count; j++) mark[run.dof + j] |= TOUCHED;
        }
    }
    int32_t nodes = 0;
    TB_ROLLED
    for (int32_t i = 0; i < dofs; i++) {
        const int32_t here = mark[i];
        if (!(here & TOUCHED)) {
            system->node[i] = -1;
            continue;
        }
        if (here & CUT) size[nodes++] = 0;
        system->node[i] = nodes - 1;
        mark[i] = size[nodes - 1]++;
    }
    return nodes;
}

#ifndef TB_DEVICE
/* Couplings of up to LARGEST_FULL_DOFS nodes, a bit for every other node: the chains of a robot's blocks couple
 * most nodes many times over. */
enum { COUPLING_WORDS = LARGEST_FULL_DOFS / 64 };
typedef struct couplings {
    uint64_t of[LARGEST_FULL_DOFS][COUPLING_WORDS];
} couplings;

/* The nodes of a block as bits. */
TB_STATIC void find_nodes(const tb_newton_system *system, const tb_block *block,
                          uint64_t nodes[COUPLING_WORDS])
{
    for (int32_t k = 0; k < COUPLING_WORDS; k++) nodes[k] = 0;
    for (int32_t p = 0; p < block->segments; p++) {
        const tb_segment run = system->problem->segments[block->segment + p];
        for (int32_t i = run.dof; i < run.dof + run.count; i++)
            nodes[system->node[i] / 64] |= (uint64_t)1 << system->node[i] % 64;
    }
}

/* Every block inside couples all of its nodes. */
TB_STATIC void find_couplings(const tb_newton_system *system, couplings *found)
{
    const tb_problem *problem = system->problem;
    memset(found, 0, sizeof *found);
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        if (!system->inside[b]) continue;
        if (b > 0 && system->inside[b - 1] && same_runs(problem, block - 1, block)) continue;
        uint64_t nodes[COUPLING_WORDS];
        find_nodes(system, block, nodes);
        for (int32_t p = 0; p < block->segments; p++) {
            const tb_segment run = problem->segments[block->segment + p];
            for (int32_t i = run.dof; i < run.dof + run.count; i++)
                for (int32_t k = 0; k < COUPLING_WORDS; k++)
                    found->of[system->node[i]][k] |= nodes[k];
        }
    }
}

/* The couplings as tb_newton_list_dofs has them, each once. */
TB_STATIC void list_couplings(const tb_newton_system *system, int32_t *start, int32_t *neighbour)
{
    couplings found;
    find_couplings(system, &found);
    for (int32_t i = 0; i < system->problem->number_of_dofs; i++)
        for (int32_t k = 0; k < COUPLING_WORDS; k++)
            for (uint64_t left = found.of[i][k]; left; left &= left - 1) {
                const int32_t j = 64 * k + __builtin_ctzll(left);
                if (neighbour && j != i) neighbour[start[i]++] = j;
                if (!neighbour && j != i) start[i + 1]++;
            }
}
#endif

TB_EXTERN void tb_newton_list_dofs(const tb_newton_system *system, int32_t *start,
                                   int32_t *neighbour)
{
    const tb_problem *problem = system->problem;
#ifndef TB_DEVICE
    if (system->full) {
        list_couplings(system, start, neighbour);
        return;
    }
#endif
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        if (!system->inside[b]) continue;
        const tb_block *block = &problem->blocks[b];

        /* blocks of a pair follow each other and couple the same nodes */
        if (b > 0 && system->inside[b - 1] && same_runs(problem, block - 1, block)) continue;
        for (int32_t p = 0; p < block->segments; p++) {
            const tb_segment from = problem->segments[block->segment + p];
            for (int32_t q = 0; q < block->segments; q++) {
                const tb_segment to = problem->segments[block->segment + q];
                for (int32_t i = from.dof; i < from.dof + from.count; i++) {
                    if (i > from.dof && system->node[i] == system->node[i - 1]) continue;
                    TB_ROLLED
                    for (int32_t j = to.dof; j < to.dof + to.count; j++) {
                        if (j > to.dof && system->node[j] == system->node[j - 1]) continue;
                        if (system->node[i] == system->node[j]) continue;
                        if (neighbour)
                            neighbour[start[system->node[i]]++] = system->node[j];
                        else
                            start[system->node[i] + 1]++;
                    }
                }
            }
        }
    }
}

/* ---- numbers ---- */

/* D' and f' of a block (see the header); both are D / w and f where there is no compliance */
TB_CALLED bool reduce_block(const tb_problem *problem, const tb_block *block, tb_real weight,
                            const tb_real *slope, const tb_real *prox_gap, tb_real *d, tb_real *f)
{
    const int32_t n = block->rows;
    const tb_real inverse = 1 / weight;
    TB_ROLLED
    for (int32_t i = 0; i < n * n; i++) d[i] = slope[i] * inverse;
    TB_ROLLED
    for (int32_t i = 0; i < n; i++) f[i] = prox_gap[block->row + i];
    if (!problem->compliance) return true;
    const tb_real *e = problem->compliance + block->row;
    bool stiff = true; /* as contacts are, beside springs that are not */
    TB_ROLLED
    for (int32_t i = 0; i < n; i++) stiff = stiff && e[i] == 0;
    if (stiff) return true;

    /* Gauss on 1 + D e / w: its diagonal is 1 or more by the row that friction pushes along */
    tb_real a[TB_BLOCK_ROWS * TB_BLOCK_ROWS];
    for (int32_t i = 0; i < n; i++) {
        TB_ROLLED
        for (int32_t j = 0; j < n; j++) a[i * n + j] = (i == j ? 1 : 0) + d[i * n + j] * e[j];
    }
    for (int32_t k = 0; k < n; k++) {
        if (!(tb_abs(a[k * n + k]) > 0)) return false;
        for (int32_t i = 0; i < n; i++) {
            if (i == k) continue;
            const tb_real factor = a[i * n + k] / a[k * n + k];
            if (factor == 0) continue;
            for (int32_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            TB_ROLLED
            for (int32_t j = 0; j < n; j++) d[i * n + j] -= factor * d[k * n + j];
            f[i] -= factor * f[k];
        }
    }
    for (int32_t k = 0; k < n; k++) {
        const tb_real scale = 1 / a[k * n + k];
        for (int32_t j = 0; j < n; j++) d[k * n + j] *= scale;
        f[k] *= scale;
    }
    return true;
}

/* The square of a few blocks with the same runs: sum of (rows of Y)' D' (rows of Y). A lane
 * takes rows of the square, the same ones here and when it is spread. */
TB_STATIC void add_to_square(const tb_problem *problem, const tb_block *block, const tb_real *d,
                             tb_real *square)
{
    const tb_real *y = problem->values + block->value;
    const int32_t n = block->rows, width = block->width;
    if (n == 3) {
        TB_EACH (a, width) {
            const tb_real *y0 = y, *y1 = y + width, *y2 = y + 2 * width;
            const tb_real l0 = y0[a] * d[0] + y1[a] * d[3] + y2[a] * d[6];
            const tb_real l1 = y0[a] * d[1] + y1[a] * d[4] + y2[a] * d[7];
            const tb_real l2 = y0[a] * d[2] + y1[a] * d[5] + y2[a] * d[8];
            tb_real *to = square + (int64_t)a * width;
            const tb_simd_pair f0 = tb_simd_pair_of(l0, l0), f1 = tb_simd_pair_of(l1, l1),
                               f2 = tb_simd_pair_of(l2, l2);
            int32_t b = 0;
            TB_ROLLED
            for (; b + 2 <= width; b += 2) {
                const tb_simd_pair sum = tb_simd_pair_add(
                    tb_simd_pair_add(tb_simd_pair_mul(f0, tb_simd_pair_load(y0 + b)),
                                     tb_simd_pair_mul(f1, tb_simd_pair_load(y1 + b))),
                    tb_simd_pair_mul(f2, tb_simd_pair_load(y2 + b)));
                tb_simd_pair_store(to + b, tb_simd_pair_add(tb_simd_pair_load(to + b), sum));
            }
            TB_ROLLED
            for (; b < width; b++) to[b] += l0 * y0[b] + l1 * y1[b] + l2 * y2[b];
        }
        return;
    }
    TB_EACH (a, width)
        for (int32_t i = 0; i < n; i++) {
            tb_real left = 0;
            TB_ROLLED
            for (int32_t k = 0; k < n; k++) left += y[(int64_t)k * width + a] * d[k * n + i];
            const tb_real *right = y + (int64_t)i * width;
            tb_real *to = square + (int64_t)a * width;
            TB_ROLLED
            for (int32_t b = 0; b < width; b++) to[b] += left * right[b];
        }
}

/* The square goes into the matrix, and is zero again. */
TB_CALLED void spread_square(tb_newton_system *system, const tb_block *block)
{
    const tb_block_lu *lu = &system->lu;
    const tb_segment *runs = system->problem->segments + block->segment;
    TB_EACH (a, block->width) {
        tb_real *square = system->square + (int64_t)a * block->width;
        const int32_t dof = tb_block_dof(system->problem, block, a), node = system->node[dof];
        const int32_t group = lu->group[node];
        const int32_t row = lu->offset[node] + system->node_row[dof];
        int32_t last = -1;
        tb_real *to = NULL;
        for (int32_t q = 0; q < block->segments; q++) {
            TB_ROLLED
            for (int32_t j = 0; j < runs[q].count; j++) {
                const int32_t column = runs[q].dof + j, other = system->node[column];
                if (other != last) {
                    const int32_t column_group = lu->group[other];
                    to = tb_block_lu_block(lu, group, column_group) +
                         (int64_t)row * lu->size[column_group] + lu->offset[other];
                    last = other;
                }
                to[system->node_row[column]] += *square;
                *square++ = 0;
            }
        }
    }
    tb_team_sync();
}

#ifndef TB_DEVICE
/* ---- the matrix of a tree of linked bodies ----
 *
 * Rows of joints and contacts of a robot reach over chains of dofs that nest. In the sparse matrix each of
 * these dofs is a node, so that every number of a square has its own block to be found. The squares are
 * summed in a full square of all dofs instead, where a run of dofs is a run of numbers, and each block of the
 * sparse matrix is copied from there once. The sums have the order of spread_square. */

/* The square goes into the full one, and is zero again. */
TB_STATIC void spread_in_full(tb_newton_system *system, const tb_block *block)
{
    const tb_segment *runs = system->problem->segments + block->segment;
    const int32_t dofs = system->problem->number_of_dofs;
    tb_real *square = system->square;
    for (int32_t p = 0; p < block->segments; p++)
        for (int32_t i = runs[p].dof; i < runs[p].dof + runs[p].count; i++) {
            tb_real *row = system->full + (int64_t)i * dofs;
            for (int32_t q = 0; q < block->segments; q++) {
                tb_real *to = row + runs[q].dof;
                for (int32_t j = 0; j < runs[q].count; j++) to[j] += square[j];
                square += runs[q].count;
            }
        }
    memset(system->square, 0, (size_t)block->width * (size_t)block->width * sizeof *square);
}

/* A block of the sparse matrix from the full square, where its numbers become zero. row_dofs, column_dofs: the
 * dofs of its rows and columns. */
TB_STATIC void take_from_full(tb_newton_system *system, const int32_t *row_dofs, int32_t rows,
                              const int32_t *column_dofs, int32_t columns, tb_real *to)
{
    for (int32_t i = 0; i < rows; i++) {
        tb_real *from = system->full + (int64_t)row_dofs[i] * system->problem->number_of_dofs;
        for (int32_t j = 0; j < columns; j++) {
            *to++ = from[column_dofs[j]];
            from[column_dofs[j]] = 0;
        }
    }
}

/* All blocks of the sparse matrix. */
TB_STATIC void take_all_from_full(tb_newton_system *system)
{
    const tb_block_lu *lu = &system->lu;
    int32_t dofs[LARGEST_FULL_DOFS]; /* by place in x */
    for (int32_t k = 0; k < system->problem->number_of_dofs; k++)
        if (system->node[k] >= 0) dofs[tb_newton_row_of_dof(system, k)] = k;
    for (int32_t g = 0; g < lu->groups; g++) {
        const int32_t *own = dofs + lu->first[g], size = lu->size[g];
        take_from_full(system, own, size, own, size, lu->values + lu->diagonal[g]);
        for (int32_t e = lu->later_start[g]; e < lu->later_start[g + 1]; e++) {
            const int32_t *other = dofs + lu->first[lu->later[e]];
            const int32_t count = lu->size[lu->later[e]];
            take_from_full(system, own, size, other, count, lu->values + lu->upper[e]);
            take_from_full(system, other, count, own, size, lu->values + lu->lower[e]);
        }
    }
}

/* 1 + Y D' Y' */
TB_STATIC void assemble_in_full(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    const int32_t dofs = problem->number_of_dofs;
    if (!system->full_clean) memset(system->full, 0, (size_t)dofs * (size_t)dofs * sizeof(tb_real));
    system->full_clean = true;
    for (int32_t k = 0; k < dofs; k++)
        if (system->node[k] >= 0) system->full[(int64_t)k * (dofs + 1)] = 1;
    const tb_block *before = NULL;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        if (!system->inside[b]) continue;
        if (before && !same_runs(problem, before, block)) spread_in_full(system, before);
        add_to_square(problem, block, system->reduced + TB_BLOCK_ROWS * (int64_t)block->row,
                      system->square);
        before = block;
    }
    if (before) spread_in_full(system, before);
    take_all_from_full(system);
}
#endif

#ifdef TB_DEVICE
/* to[-j] += left row[j], j < n */
TB_FN void add_backward(tb_real *TB_RESTRICT to, tb_real left, const tb_real *TB_RESTRICT row,
                        int32_t n)
{
    for (int32_t j = 0; j < n; j++) to[-j] += left * row[j];
}

/* The block goes at once into the matrix of one node, the last dof first. A processor has
 * newton_dense.c. */
TB_STATIC void add_to_dense(tb_newton_system *system, const tb_block *block, const tb_real *d)
{
    const tb_problem *problem = system->problem;
    const tb_segment *runs = problem->segments + block->segment;
    const tb_real *y = problem->values + block->value;
    const int32_t n = block->rows, width = block->width, size = system->lu.rows;
    TB_EACH (a, width) {
        const int32_t own = size - 1 - tb_block_dof(problem, block, a);
        tb_real *row = system->lu.values + (int64_t)own * size + size - 1;
        for (int32_t i = 0; i < n; i++) {
            tb_real left = 0;
            TB_ROLLED
            for (int32_t k = 0; k < n; k++) left += y[(int64_t)k * width + a] * d[k * n + i];
            if (left == 0) continue;
            const tb_real *right = y + (int64_t)i * width;
            for (int32_t q = 0; q < block->segments; q++) {
                add_backward(row - runs[q].dof, left, right, runs[q].count);
                right += runs[q].count;
            }
        }
    }
}
#endif

/* ---- blocks along one velocity ---- */

/* The last dof that a block of one row moves; -1: a block of more rows. */
TB_STATIC int32_t last_dof_of_row(const tb_problem *problem, const tb_block *block)
{
    if (block->rows != 1 || block->segments < 1) return -1;
    const tb_segment *run = problem->segments + block->segment + block->segments - 1;
    return run->dof + run->count - 1;
}

/* Whether two blocks of one row with the same last dof have the same numbers, or their negatives. */
TB_STATIC bool are_alike(const tb_problem *problem, const tb_block *a, const tb_block *b)
{
    if (!same_runs(problem, a, b)) return false;
    const tb_real *one = problem->values + a->value, *other = problem->values + b->value;
    bool same = true, opposite = true;
    for (int32_t i = 0; i < a->width && (same || opposite); i++) {
        same = same && one[i] == other[i];
        opposite = opposite && one[i] == -other[i];
    }
    return same || opposite;
}

TB_EXTERN void tb_newton_link_alike(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    const int32_t blocks = problem->number_of_blocks;
    int32_t *last = system->last_dof, *before = system->alike_before, *after = system->alike_after;
    system->knows_alike = true;
    TB_EACH (b, blocks) {
        last[b] = last_dof_of_row(problem, &problem->blocks[b]);
        after[b] = -1;
    }
    tb_team_sync();
    TB_EACH (b, blocks) {
        int32_t a = last[b] < 0 ? -1 : b - 1;
        while (a >= 0 && (last[a] != last[b] ||
                          !are_alike(problem, &problem->blocks[a], &problem->blocks[b])))
            a--;
        before[b] = a;
        if (a >= 0) after[a] = b;
    }
    tb_team_sync();
}

TB_EXTERN const tb_real *tb_newton_sum_alike(const tb_newton_system *system, int32_t b,
                                             tb_real *sum)
{
    const tb_real *own = system->reduced + TB_BLOCK_ROWS * (int64_t)system->problem->blocks[b].row;
    if (system->alike_after[b] < 0) return own;
    *sum = own[0];
    for (int32_t k = system->alike_after[b]; k >= 0; k = system->alike_after[k])
        *sum += system->reduced[TB_BLOCK_ROWS * (int64_t)system->problem->blocks[k].row];
    return sum;
}

/* 1 + Y D' Y' */
TB_STATIC void assemble_dofs(tb_newton_system *system)
{
    const tb_problem *problem = system->problem;
    tb_block_lu *lu = &system->lu;
#ifdef TB_DEVICE
    if (system->one_node && !system->knows_alike) tb_newton_link_alike(system);
#else
    if (system->one_node) {
        tb_newton_assemble_dense(system);
        return;
    }
    if (system->full) {
        assemble_in_full(system);
        return;
    }
#endif
    tb_block_lu_clear(lu);
    TB_EACH (k, problem->number_of_dofs) {
        if (system->node[k] < 0) continue;
        const int32_t group = lu->group[system->node[k]];
        const int32_t row = lu->offset[system->node[k]] + system->node_row[k];
        tb_block_lu_block(lu, group, group)[(int64_t)row * (lu->size[group] + 1)] = 1;
    }
    tb_team_sync();
    const tb_block *before = NULL;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
#ifdef TB_DEVICE
        if (system->one_node) {
            /* D' of open blocks is zero */
            tb_real sum;
            if (system->alike_before[b] >= 0) continue;
            if (!system->inside[b] && system->alike_after[b] < 0) continue;
            const tb_real *d = tb_newton_sum_alike(system, b, &sum);
            if (before && !same_runs(problem, before, block)) tb_team_sync();
            add_to_dense(system, block, d);
            before = block;
            continue;
        }
#endif
        if (!system->inside[b]) continue;
        if (before && !same_runs(problem, before, block)) spread_square(system, before);
        add_to_square(problem, block, system->reduced + TB_BLOCK_ROWS * (int64_t)block->row,
                      system->square);
        before = block;
    }
    if (before && !system->one_node) spread_square(system, before);
    tb_team_sync();
}

TB_EXTERN bool tb_newton_reduce(tb_newton_system *system, const tb_real *weight,
                                const tb_real *slope, const tb_real *prox_gap,
                                const uint8_t *statuses, tb_real *dlambda)
{
    /* prox gaps of blocks move the velocity: open blocks move by their gap alone */
    const tb_problem *problem = system->problem;
    bool regular = true;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        const int64_t square = TB_BLOCK_ROWS * (int64_t)block->row;
        tb_real *d = system->reduced + square;
        for (int32_t i = block->row; i < block->row + block->rows; i++) dlambda[i] = prox_gap[i];
        if (statuses[b] == TB_CONTACT_OPEN)
            for (int32_t i = 0; i < block->rows * block->rows; i++) d[i] = 0;
        else if (!reduce_block(problem, block, weight[b], slope + square, prox_gap, d,
                               dlambda + block->row))
            regular = false;
    }
    tb_team_sync();
    if (!tb_team_all(regular)) return false;
    tb_problem_whiten(problem, dlambda, system->ds);
    return true;
}

TB_EXTERN int32_t tb_newton_row_of_dof(const tb_newton_system *system, int32_t dof)
{
    const int32_t node = system->node[dof];
    return system->lu.first[system->lu.group[node]] + system->lu.offset[node] +
           system->node_row[dof];
}

TB_EXTERN void tb_newton_apply_factor(tb_newton_system *system, tb_real *v)
{
    const int32_t dofs = system->problem->number_of_dofs;
    TB_EACH (k, dofs)
        if (system->node[k] >= 0) system->x[tb_newton_row_of_dof(system, k)] = v[k];
    tb_team_sync();
    tb_block_lu_solve(&system->lu, system->x);
    TB_EACH (k, dofs)
        if (system->node[k] >= 0) v[k] = system->x[tb_newton_row_of_dof(system, k)];
    tb_team_sync();
}

TB_EXTERN bool tb_newton_factor_dofs(tb_newton_system *system)
{
    system->update.has_factor = false;
    assemble_dofs(system);
    system->factorizations++;
    if (!tb_block_lu_factor(&system->lu)) return false;
    tb_newton_apply_factor(system, system->ds);
    return true;
}

TB_EXTERN void tb_newton_expand(const tb_newton_system *system, const uint8_t *statuses,
                                tb_real *dlambda)
{
    const tb_problem *problem = system->problem;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        const int32_t n = block->rows;
        const tb_real *d = system->reduced + TB_BLOCK_ROWS * (int64_t)block->row;
        tb_real *velocity = system->work + block->row, *to = dlambda + block->row;
        tb_gather_any(problem, block, system->ds, velocity);
        if (statuses[b] == TB_CONTACT_OPEN) continue;
        for (int32_t i = 0; i < n; i++) {
            TB_ROLLED
            for (int32_t k = 0; k < n; k++) to[i] -= d[i * n + k] * velocity[k];
        }
    }
    tb_team_sync();
}

TB_EXTERN double tb_newton_length(const tb_real *v, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    tb_team_sync(); /* all have read it */
    return sqrt(sum);
}

TB_EXTERN void tb_newton_product(tb_newton_system *system, const tb_real *v, tb_real *to)
{
    const tb_problem *problem = system->problem;
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        const tb_real *d = system->reduced + TB_BLOCK_ROWS * (int64_t)block->row;
        const int32_t n = block->rows;
        tb_real velocity[TB_BLOCK_ROWS], *response = system->work + block->row;
        tb_gather_any(problem, block, v, velocity);
        for (int32_t i = 0; i < n; i++) {
            response[i] = 0;
            TB_ROLLED
            for (int32_t k = 0; k < n; k++) response[i] += d[i * n + k] * velocity[k];
        }
    }
    tb_team_sync();
    tb_problem_whiten(problem, system->work, to);
    TB_EACH (k, problem->number_of_dofs) to[k] += v[k];
    tb_team_sync();
}
