/* Sparse LU of small dense blocks: merging, ordering, and the numbers. */
#include "solve/block_lu.h"

#include "base/bits.h"
#include "base/team.h"
#include "solve/twin.h"

#include <string.h>

enum { LARGEST_GROUP = 48 }; /* rows: three such blocks fill half of a first-level cache */

/* ---- bit sets of nodes ---- */

TB_STATIC void bit_put(uint64_t *set, int32_t i)
{
    set[i >> 6] |= (uint64_t)1 << (i & 63);
}

TB_STATIC int32_t bit_count(const uint64_t *set, int32_t words)
{
    int32_t sum = 0;
    for (int32_t w = 0; w < words; w++) sum += tb_bits_count(set[w]);
    return sum;
}

/* ---- which nodes become one ---- */

/* A group for every node, in the order of the first of each: nodes with equal closed neighbourhoods
 * while their rows are few enough. `sets` has a row of bits for every node, self included. */
TB_STATIC int32_t merge_nodes(tb_block_lu *lu, const tb_node_graph *graph, const uint64_t *sets,
                              int32_t words, int32_t *group_size)
{
    const int32_t n = graph->nodes;
    int32_t groups = 0;
    for (int32_t i = 0; i < n; i++) lu->group[i] = -1;
    for (int32_t i = 0; i < n; i++) {
        if (lu->group[i] >= 0) continue;
        const uint64_t *own = sets + (int64_t)i * words;
        int32_t rows = graph->size[i];
        lu->group[i] = groups;
        lu->offset[i] = 0;
        for (int32_t k = graph->start[i]; k < graph->start[i + 1]; k++) {
            const int32_t j = graph->neighbour[k];
            if (j <= i || lu->group[j] >= 0 || rows + graph->size[j] > LARGEST_GROUP) continue;
            if (!tb_bits_equal(own, sets + (int64_t)j * words, words)) continue;
            lu->group[j] = groups;
            lu->offset[j] = rows;
            rows += graph->size[j];
        }
        group_size[groups++] = rows;
    }
    return groups;
}

/* ---- minimum degree ---- */

/* Eliminates groups by smallest degree, the first of equals. `sets` (groups x words bits, self
 * left out) becomes, row by row, what each group's elimination fills. */
TB_STATIC void order_groups(uint64_t *sets, int32_t groups, int32_t words, int32_t *degree,
                            int32_t *order, int32_t *place)
{
    for (int32_t i = 0; i < groups; i++) {
        degree[i] = bit_count(sets + (int64_t)i * words, words);
        place[i] = -1;
    }
    for (int32_t k = 0; k < groups; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < groups; i++)
            if (place[i] < 0 && (best < 0 || degree[i] < degree[best])) best = i;
        order[k] = best;
        place[best] = k;
        const uint64_t *own = sets + (int64_t)best * words;
        for (int32_t w = 0; w < words; w++) {
            for (uint64_t left = own[w]; left; left &= left - 1) {
                const int32_t i = 64 * w + tb_bits_lowest(left);
                uint64_t *other = sets + (int64_t)i * words;
                for (int32_t v = 0; v < words; v++) other[v] |= own[v];
                other[i >> 6] &= ~((uint64_t)1 << (i & 63));
                other[best >> 6] &= ~((uint64_t)1 << (best & 63));
                degree[i] = bit_count(other, words);
            }
        }
    }
}

/* ---- analysis ---- */

TB_STATIC tb_status take_entries(tb_block_lu *lu, const uint64_t *sets, int32_t words,
                                 const int32_t *order, tb_arena *arena)
{
    int64_t entries = 0;
    for (int32_t k = 0; k < lu->groups; k++)
        entries += bit_count(sets + (int64_t)order[k] * words, words);
    if (entries > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    lu->later = TB_ARENA_ARRAY(arena, int32_t, entries);
    lu->upper = TB_ARENA_ARRAY(arena, int64_t, entries);
    lu->lower = TB_ARENA_ARRAY(arena, int64_t, entries);
    return lu->later && lu->upper && lu->lower ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

TB_STATIC void lay_out_pattern(tb_block_lu *lu, const uint64_t *sets, int32_t words,
                               const int32_t *order, const int32_t *place,
                               const int32_t *group_size)
{
    const int32_t groups = lu->groups;
    int32_t entry = 0, first = 0;
    int64_t value = 0;
    for (int32_t k = 0; k < groups; k++) {
        const uint64_t *own = sets + (int64_t)order[k] * words;
        const int64_t size = group_size[order[k]];
        lu->size[k] = (int32_t)size;
        lu->first[k] = first;
        first += (int32_t)size;
        lu->diagonal[k] = value;
        value += size * size;
        lu->later_start[k] = entry;
        for (int32_t w = 0; w < words; w++)
            for (uint64_t left = own[w]; left; left &= left - 1)
                lu->later[entry++] = place[64 * w + tb_bits_lowest(left)];

        /* ascending: insertion, the lists are short or nearly in order */
        for (int32_t a = lu->later_start[k] + 1; a < entry; a++) {
            const int32_t moved = lu->later[a];
            int32_t b = a;
            for (; b > lu->later_start[k] && lu->later[b - 1] > moved; b--)
                lu->later[b] = lu->later[b - 1];
            lu->later[b] = moved;
        }
    }
    lu->later_start[groups] = entry;
    lu->rows = first;

    lu->operations = 0;
    for (int32_t k = 0; k < groups; k++) {
        int64_t width = 0;
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int64_t block = (int64_t)lu->size[k] * lu->size[lu->later[a]];
            lu->upper[a] = value;
            lu->lower[a] = value + block;
            value += 2 * block;
            width += lu->size[lu->later[a]];
        }
        const double d = (double)lu->size[k], w = (double)width;
        lu->operations += d * d * d / 3 + d * d * w + d * w * w;
    }
    lu->numbers = value;
}

/* Groups of nodes, and in `sets` what couples them: groups x words bits. */
TB_STATIC void make_groups(tb_block_lu *lu, const tb_node_graph *graph, uint64_t *sets,
                           int32_t words, int32_t *group_size)
{
    const int32_t n = graph->nodes;
    for (int32_t i = 0; i < n; i++) {
        bit_put(sets + (int64_t)i * words, i);
        for (int32_t k = graph->start[i]; k < graph->start[i + 1]; k++)
            bit_put(sets + (int64_t)i * words, graph->neighbour[k]);
    }
    lu->groups = merge_nodes(lu, graph, sets, words, group_size);

    /* the groups' own sets, in place: a group's number is not above its first node's */
    const int32_t group_words = (lu->groups + 63) / 64;
    for (int32_t i = 0, group = 0; i < n; i++) {
        if (lu->group[i] != group) continue;
        uint64_t *own = sets + (int64_t)group * group_words;
        memset(own, 0, (size_t)group_words * sizeof *own);
        for (int32_t k = graph->start[i]; k < graph->start[i + 1]; k++)
            if (lu->group[graph->neighbour[k]] != group)
                bit_put(own, lu->group[graph->neighbour[k]]);
        group++;
    }
}

TB_EXTERN tb_status tb_block_lu_analyse(tb_block_lu *lu, const tb_node_graph *graph,
                                        tb_arena *arena)
{
    const int32_t n = graph->nodes;
    if (n > TB_BLOCK_LU_NODES) return TB_UNSUPPORTED;
    memset(lu, 0, sizeof *lu);
    lu->nodes = n;
    lu->group = TB_ARENA_ARRAY(arena, int32_t, n);
    lu->offset = TB_ARENA_ARRAY(arena, int32_t, n);
    lu->size = TB_ARENA_ARRAY(arena, int32_t, n);
    lu->first = TB_ARENA_ARRAY(arena, int32_t, n);
    lu->later_start = TB_ARENA_ARRAY(arena, int32_t, n + 1);
    lu->diagonal = TB_ARENA_ARRAY(arena, int64_t, n);
    int32_t *group_size = TB_ARENA_ARRAY(arena, int32_t, n);
    int32_t *degree = TB_ARENA_ARRAY(arena, int32_t, n);
    int32_t *order = TB_ARENA_ARRAY(arena, int32_t, n);
    int32_t *place = TB_ARENA_ARRAY(arena, int32_t, n);
    const int32_t words = (n + 63) / 64;
    uint64_t *sets = TB_ARENA_ZEROED(arena, uint64_t, (size_t)n * (size_t)words);
    if (!lu->group || !lu->offset || !lu->size || !lu->first || !lu->later_start || !lu->diagonal ||
        !group_size || !degree || !order || !place || !sets)
        return TB_RESOURCE_EXHAUSTED;

    /* few nodes and many branches: the leader's work, the others take memory with it */
    if (TB_LEADER) {
        make_groups(lu, graph, sets, words, group_size);
        order_groups(sets, lu->groups, (lu->groups + 63) / 64, degree, order, place);
    }
    tb_team_share(&lu->groups, sizeof lu->groups);
    tb_team_sync();
    const int32_t group_words = (lu->groups + 63) / 64;
    const tb_status status = take_entries(lu, sets, group_words, order, arena);
    if (status != TB_OK) return status;
    if (TB_LEADER) {
        lay_out_pattern(lu, sets, group_words, order, place, group_size);
        for (int32_t i = 0; i < n; i++) lu->group[i] = place[lu->group[i]];
    }
    tb_team_share(&lu->rows, sizeof lu->rows);
    tb_team_share(&lu->numbers, sizeof lu->numbers);
    tb_team_share(&lu->operations, sizeof lu->operations);
    tb_team_sync();

    lu->values = TB_ARENA_ARRAY(arena, tb_real, lu->numbers);
    lu->exchange = TB_ARENA_ARRAY(arena, int32_t, lu->rows);
    lu->work = TB_ARENA_ARRAY(arena, tb_real, lu->rows);
    return lu->values && lu->exchange && lu->work ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

TB_EXTERN tb_status tb_block_lu_dense(tb_block_lu *lu, int32_t rows, tb_arena *arena)
{
    memset(lu, 0, sizeof *lu);
    lu->nodes = lu->groups = 1;
    lu->rows = rows;
    lu->numbers = (int64_t)rows * rows;
    lu->operations = (double)rows * rows * rows / 3;
    int32_t *zeros = TB_ARENA_ZEROED(arena, int32_t, 5);
    lu->diagonal = TB_ARENA_ZEROED(arena, int64_t, 1);
    lu->size = TB_ARENA_ARRAY(arena, int32_t, 1);
    lu->values = TB_ARENA_ARRAY(arena, tb_real, lu->numbers);
    lu->exchange = TB_ARENA_ARRAY(arena, int32_t, rows);
    lu->work = TB_ARENA_ARRAY(arena, tb_real, rows);
    if (!zeros || !lu->diagonal || !lu->size || !lu->values || !lu->exchange || !lu->work)
        return TB_RESOURCE_EXHAUSTED;
    lu->group = zeros;
    lu->offset = zeros + 1;
    lu->first = zeros + 2;
    lu->later_start = zeros + 3;
    if (TB_LEADER) lu->size[0] = rows;
    tb_team_sync();
    return TB_OK;
}

TB_EXTERN void tb_block_lu_clear(tb_block_lu *lu)
{
    tb_team_clear(lu->values, (size_t)lu->numbers * sizeof(tb_real));
    tb_team_sync();
}

/* the entry of `later` at which group k has group j > k; there is one */
TB_STATIC int32_t find_later(const tb_block_lu *lu, int32_t k, int32_t j)
{
    int32_t low = lu->later_start[k], high = lu->later_start[k + 1] - 1;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (lu->later[middle] < j)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

TB_EXTERN tb_real *tb_block_lu_block(const tb_block_lu *lu, int32_t row, int32_t column)
{
    if (row == column) return lu->values + lu->diagonal[row];
    if (row < column) return lu->values + lu->upper[find_later(lu, row, column)];
    return lu->values + lu->lower[find_later(lu, column, row)];
}

/* ---- numbers ---- */

/* c -= a b, a: m x k, b: k x n, row-major without gaps; four rows of b at a time */
TB_STATIC void subtract_product(tb_real *TB_RESTRICT c, const tb_real *a, const tb_real *b,
                                int32_t m, int32_t k, int32_t n)
{
    for (int32_t i = 0; i < m; i++) {
        tb_real *to = c + (int64_t)i * n;
        const tb_real *left = a + (int64_t)i * k;
        int32_t p = 0;
        for (; p + 4 <= k; p += 4) {
            const tb_real *r0 = b + (int64_t)p * n, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
            const tb_twin f0 = tb_twin_of(-left[p], -left[p]);
            const tb_twin f1 = tb_twin_of(-left[p + 1], -left[p + 1]);
            const tb_twin f2 = tb_twin_of(-left[p + 2], -left[p + 2]);
            const tb_twin f3 = tb_twin_of(-left[p + 3], -left[p + 3]);
            int32_t j = 0;
            for (; j + 2 <= n; j += 2) {
                const tb_twin near = tb_twin_add(tb_twin_mul(f0, tb_twin_load(r0 + j)),
                                                 tb_twin_mul(f1, tb_twin_load(r1 + j)));
                const tb_twin far = tb_twin_add(tb_twin_mul(f2, tb_twin_load(r2 + j)),
                                                tb_twin_mul(f3, tb_twin_load(r3 + j)));
                tb_twin_store(to + j, tb_twin_add(tb_twin_load(to + j), tb_twin_add(near, far)));
            }
            for (; j < n; j++)
                to[j] -= (left[p] * r0[j] + left[p + 1] * r1[j]) +
                         (left[p + 2] * r2[j] + left[p + 3] * r3[j]);
        }
        for (; p < k; p++) {
            const tb_real *row = b + (int64_t)p * n;
            for (int32_t j = 0; j < n; j++) to[j] -= left[p] * row[j];
        }
    }
}

/* One number of that: from - a's row times b's column, summed in the same order. */
TB_STATIC tb_real less_product(tb_real from, const tb_real *row, const tb_real *column, int32_t k,
                               int32_t stride)
{
    int32_t p = 0;
    for (; p + 4 <= k; p += 4, column += 4 * (int64_t)stride)
        from -= (row[p] * column[0] + row[p + 1] * column[stride]) +
                (row[p + 2] * column[2 * stride] + row[p + 3] * column[3 * stride]);
    for (; p < k; p++, column += stride) from -= row[p] * *column;
    return from;
}

/* Of c -= a b a lane takes columns. No sync: products of one group go to different places. */
TB_STATIC void subtract_product_together(tb_real *c, const tb_real *a, const tb_real *b, int32_t m,
                                         int32_t k, int32_t n)
{
    if (tb_team_lanes() == 1) {
        subtract_product(c, a, b, m, k, n);
        return;
    }
    TB_EACH (j, n)
        for (int32_t i = 0; i < m; i++)
            c[i * n + j] = less_product(c[i * n + j], a + i * k, b + j, k, n);
}

/* y -= a x, a: m x n */
TB_STATIC void subtract_times(tb_real *y, const tb_real *a, const tb_real *x, int32_t m, int32_t n)
{
    TB_EACH (i, m) {
        tb_real sum = 0;
        for (int32_t j = 0; j < n; j++) sum += a[(int64_t)i * n + j] * x[j];
        y[i] -= sum;
    }
}

/* LU of a diagonal block with row exchanges, rows judged by their largest number; false where it
 * is singular */
TB_STATIC bool factor_diagonal(tb_real *a, int32_t n, int32_t *exchange, tb_real *scale)
{
    TB_EACH (i, n) {
        tb_real largest = 0;
        for (int32_t j = 0; j < n; j++) largest = tb_max(largest, tb_abs(a[i * n + j]));
        scale[i] = largest > 0 ? 1 / largest : 0;
    }
    tb_team_sync();
    for (int32_t k = 0; k < n; k++) {
        int32_t pivot = k;
        for (int32_t i = k + 1; i < n; i++)
            if (tb_abs(a[i * n + k]) * scale[i] > tb_abs(a[pivot * n + k]) * scale[pivot])
                pivot = i;
        tb_team_sync(); /* all have found it */
        if (TB_LEADER) exchange[k] = pivot;
        if (pivot != k) {
            TB_EACH (j, n) {
                const tb_real moved = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = moved;
            }
            if (TB_LEADER) scale[pivot] = scale[k];
            tb_team_sync();
        }
        const tb_real inverse = 1 / a[k * n + k];
        if (!(tb_abs(inverse) <= TB_REAL_MAX) || inverse == 0) return false;
        TB_EACH (below, n - k - 1) {
            tb_real *row = a + (int64_t)(k + 1 + below) * n;
            const tb_real factor = row[k] * inverse;
            row[k] = factor;
            if (factor == 0) continue;
            for (int32_t j = k + 1; j < n; j++) row[j] -= factor * a[k * n + j];
        }
        tb_team_sync();
    }
    return true;
}

/* One column of what follows. */
TB_STATIC void solve_column(const tb_real *a, int32_t n, const int32_t *exchange, tb_real *b,
                            int32_t stride)
{
    for (int32_t k = 0; k < n; k++) {
        const tb_real moved = b[k * stride];
        b[k * stride] = b[exchange[k] * stride];
        b[exchange[k] * stride] = moved;
    }
    for (int32_t i = 1; i < n; i++)
        b[i * stride] = less_product(b[i * stride], a + (int64_t)i * n, b, i, stride);
    for (int32_t i = n - 1; i >= 0; i--) {
        const tb_real *row = a + (int64_t)i * n;
        const tb_real rest =
            less_product(b[i * stride], row + i + 1, b + (i + 1) * stride, n - 1 - i, stride);
        b[i * stride] = rest * (1 / row[i]);
    }
}

/* b <- inverse of a factored diagonal block times b, b: n x columns; lanes take columns */
TB_STATIC void solve_diagonal(const tb_real *a, int32_t n, const int32_t *exchange, tb_real *b,
                              int32_t columns)
{
    if (tb_team_lanes() > 1) {
        TB_EACH (j, columns) solve_column(a, n, exchange, b + j, columns);
        return;
    }
    for (int32_t k = 0; k < n; k++) {
        if (exchange[k] == k) continue;
        for (int32_t j = 0; j < columns; j++) {
            const tb_real moved = b[k * columns + j];
            b[k * columns + j] = b[exchange[k] * columns + j];
            b[exchange[k] * columns + j] = moved;
        }
    }
    for (int32_t i = 1; i < n; i++)
        subtract_product(b + (int64_t)i * columns, a + (int64_t)i * n, b, 1, i, columns);
    for (int32_t i = n - 1; i >= 0; i--) {
        subtract_product(b + (int64_t)i * columns, a + (int64_t)i * n + i + 1,
                         b + (int64_t)(i + 1) * columns, 1, n - 1 - i, columns);
        const tb_real inverse = 1 / a[(int64_t)i * n + i];
        for (int32_t j = 0; j < columns; j++) b[(int64_t)i * columns + j] *= inverse;
    }
}

TB_EXTERN bool tb_block_lu_factor(tb_block_lu *lu)
{
    for (int32_t k = 0; k < lu->groups; k++) {
        const int32_t n = lu->size[k], from = lu->later_start[k], to = lu->later_start[k + 1];
        tb_real *diagonal = lu->values + lu->diagonal[k];
        int32_t *exchange = lu->exchange + lu->first[k];
        if (!factor_diagonal(diagonal, n, exchange, lu->work)) return false;
        for (int32_t a = from; a < to; a++)
            solve_diagonal(diagonal, n, exchange, lu->values + lu->upper[a],
                           lu->size[lu->later[a]]);
        tb_team_sync();

        /* what is left of the matrix: all pairs of what this group fills */
        for (int32_t a = from; a < to; a++) {
            const int32_t i = lu->later[a], rows = lu->size[i];
            const tb_real *left = lu->values + lu->lower[a];
            for (int32_t b = from; b < a; b++) {
                const int32_t j = lu->later[b];
                const int32_t entry = find_later(lu, j, i);
                subtract_product_together(lu->values + lu->lower[entry], left,
                                          lu->values + lu->upper[b], rows, n, lu->size[j]);
                subtract_product_together(lu->values + lu->upper[entry], lu->values + lu->lower[b],
                                          lu->values + lu->upper[a], lu->size[j], n, rows);
            }
            subtract_product_together(lu->values + lu->diagonal[i], left, lu->values + lu->upper[a],
                                      rows, n, rows);
        }
        tb_team_sync();
    }
    return true;
}

TB_EXTERN void tb_block_lu_solve(tb_block_lu *lu, tb_real *x)
{
    for (int32_t k = 0; k < lu->groups; k++) {
        tb_real *own = x + lu->first[k];
        solve_diagonal(lu->values + lu->diagonal[k], lu->size[k], lu->exchange + lu->first[k], own,
                       1);
        tb_team_sync();
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int32_t j = lu->later[a];
            subtract_times(x + lu->first[j], lu->values + lu->lower[a], own, lu->size[j],
                           lu->size[k]);
        }
        tb_team_sync();
    }
    for (int32_t k = lu->groups - 1; k >= 0; k--) {
        for (int32_t a = lu->later_start[k]; a < lu->later_start[k + 1]; a++) {
            const int32_t j = lu->later[a];
            subtract_times(x + lu->first[k], lu->values + lu->upper[a], x + lu->first[j],
                           lu->size[k], lu->size[j]);
        }
        tb_team_sync();
    }
}
