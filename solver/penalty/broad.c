/* Pairs by sorted Morton intervals, and by brute force (Göteman and Roxling 5.2, 5.3). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/broad.h"
#include "penalty/intervals.h"

enum { RADIX_BITS = 13, RADIX = 1 << RADIX_BITS };

void tb_broad_free(tb_broad *b)
{
    free(b->starts), free(b->spare_starts);
    free(b->owners), free(b->spare_owners);
    free(b->pairs), free(b->spare_pairs);
    memset(b, 0, sizeof *b);
}

/* Room for `count` items in a pair of arrays that a sort swaps. */
static bool grow_both(uint64_t **a, uint64_t **b, int32_t count, int32_t *capacity)
{
    int32_t other = *capacity;
    uint64_t *grown = tb_grow(*a, count, capacity, sizeof *grown);
    if (!grown) return false;
    *a = grown;
    grown = tb_grow(*b, count, &other, sizeof *grown);
    if (grown) *b = grown;
    return grown != NULL;
}

/* Stable radix sort of keys with their values (may be NULL). A digit begins at a bit in which keys
 * differ, so that bits which all share cost no pass. */
static void radix_sort(uint64_t **keys, uint64_t **spare, uint64_t **values, uint64_t **more,
                       int32_t count)
{
    uint64_t all = 0, any = ~(uint64_t)0;
    for (int32_t i = 0; i < count; i++) all |= (*keys)[i], any &= (*keys)[i];
    uint64_t differ = all ^ any;
    while (differ != 0) {
        const int shift = __builtin_ctzll(differ);
        differ &= ~((uint64_t)(RADIX - 1) << shift);
        int32_t first[RADIX] = {0}, sum = 0;
        for (int32_t i = 0; i < count; i++) first[(*keys)[i] >> shift & (RADIX - 1)]++;
        for (int d = 0; d < RADIX; d++) {
            const int32_t n = first[d];
            first[d] = sum;
            sum += n;
        }
        for (int32_t i = 0; i < count; i++) {
            const int32_t to = first[(*keys)[i] >> shift & (RADIX - 1)]++;
            (*spare)[to] = (*keys)[i];
            if (values) (*more)[to] = (*values)[i];
        }
        uint64_t *swap = *keys;
        *keys = *spare, *spare = swap;
        if (values) swap = *values, *values = *more, *more = swap;
    }
}

static bool add_pair(tb_broad *b, uint64_t x, uint64_t y)
{
    if (b->number_of_pairs >= b->pair_capacity &&
        !grow_both(&b->pairs, &b->spare_pairs, b->number_of_pairs + 1, &b->pair_capacity))
        return false;
    b->pairs[b->number_of_pairs++] = x < y ? x << 32 | y : y << 32 | x;
    return true;
}

/* The world's lower corner and cells per metre. */
static double choose_grid(const double *boxes, int32_t count, double cell, double lower[3])
{
    double upper[3], edge = 0;
    for (int k = 0; k < 3; k++) lower[k] = INFINITY, upper[k] = -INFINITY;
    for (int32_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) {
            const double low = boxes[6 * i + k], high = boxes[6 * i + 3 + k];
            lower[k] = low < lower[k] ? low : lower[k];
            upper[k] = high > upper[k] ? high : upper[k];
        }
    for (int k = 0; k < 3; k++) edge = fmax(edge, upper[k] - lower[k]);
    const double most = (double)(1 << TB_MORTON_BITS) - 2;
    const double finest = edge > 0 ? most / edge : 1;
    return cell > 0 && 1 / cell < finest ? 1 / cell : finest;
}

tb_status tb_broad_encode(tb_broad *b, const double *boxes, int32_t count, double cell,
                          tb_error *error)
{
    double lower[3];
    int32_t other = b->interval_capacity;
    if (!grow_both(&b->starts, &b->spare_starts, TB_MORTON_INTERVALS * count + 1,
                   &b->interval_capacity) ||
        !grow_both(&b->owners, &b->spare_owners, TB_MORTON_INTERVALS * count + 1, &other))
        return tb_fail_memory(error, 0, "Morton intervals");
    const double per_metre = choose_grid(boxes, count, cell, lower);
    b->number_of_intervals = 0;
    for (int32_t i = 0; i < count; i++) {
        uint64_t start[TB_MORTON_INTERVALS];
        int32_t power;
        const int32_t n = tb_morton_intervals(boxes + 6 * i, lower, per_metre, start, &power);
        for (int32_t k = 0; k < n; k++) {
            b->starts[b->number_of_intervals] = start[k];
            b->owners[b->number_of_intervals++] = (uint64_t)power << 32 | (uint64_t)i;
        }
    }
    return TB_OK;
}

tb_status tb_broad_morton(tb_broad *b, const double *boxes, int32_t count, double cell,
                          tb_error *error)
{
    const tb_status status = tb_broad_encode(b, boxes, count, cell, error);
    if (status != TB_OK) return status;
    radix_sort(&b->starts, &b->spare_starts, &b->owners, &b->spare_owners, b->number_of_intervals);
    b->number_of_pairs = 0;
    for (int32_t i = 0; i < b->number_of_intervals; i++) {
        const uint64_t owner = b->owners[i] & 0xffffffff;
        const uint64_t last = b->starts[i] + ((uint64_t)1 << 3 * (b->owners[i] >> 32)) - 1;
        for (int32_t k = i + 1; k < b->number_of_intervals && b->starts[k] <= last; k++) {
            const uint64_t other = b->owners[k] & 0xffffffff;
            if (owner != other && tb_boxes_meet(boxes + 6 * owner, boxes + 6 * other) &&
                !add_pair(b, owner, other))
                return tb_fail_memory(error, 0, "pairs of boxes");
        }
    }
    radix_sort(&b->pairs, &b->spare_pairs, NULL, NULL, b->number_of_pairs);
    int32_t kept = 0; /* a pair may share several cubes */
    for (int32_t i = 0; i < b->number_of_pairs; i++)
        if (kept == 0 || b->pairs[i] != b->pairs[kept - 1]) b->pairs[kept++] = b->pairs[i];
    b->number_of_pairs = kept;
    return TB_OK;
}

tb_status tb_broad_brute(tb_broad *b, const double *boxes, int32_t count, tb_error *error)
{
    b->number_of_pairs = 0;
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = i + 1; k < count; k++)
            if (tb_boxes_meet(boxes + 6 * i, boxes + 6 * k) &&
                !add_pair(b, (uint64_t)i, (uint64_t)k))
                return tb_fail_memory(error, 0, "pairs of boxes");
    return TB_OK;
}
