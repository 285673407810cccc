/* Pairs by sorted Morton intervals, by rows, and by brute force (Göteman and Roxling 5.2, 5.3). */
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
    free(b->numbers);
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
void tb_broad_sort(uint64_t **keys, uint64_t **spare, uint64_t **values, uint64_t **more,
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

double tb_broad_grid(const double *boxes, int32_t count, double cell, double lower[3])
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
    const double per_metre = tb_broad_grid(boxes, count, cell, lower);
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

static tb_status sort_intervals(tb_broad *b, tb_error *error)
{
    const int32_t count = b->number_of_intervals;
    if (b->sorter && count >= TB_BROAD_MANY_INTERVALS)
        return b->sorter(b->sorter_context, b->starts, b->owners, count, error);
    tb_broad_sort(&b->starts, &b->spare_starts, &b->owners, &b->spare_owners, count);
    return TB_OK;
}

static tb_status sort_pairs(tb_broad *b, tb_error *error)
{
    const int32_t count = b->number_of_pairs;
    if (b->sorter && count >= TB_BROAD_MANY_PAIRS)
        return b->sorter(b->sorter_context, b->pairs, NULL, count, error);
    tb_broad_sort(&b->pairs, &b->spare_pairs, NULL, NULL, count);
    return TB_OK;
}

tb_status tb_broad_morton(tb_broad *b, const double *boxes, int32_t count, double cell,
                          tb_error *error)
{
    tb_status status = tb_broad_encode(b, boxes, count, cell, error);
    if (status == TB_OK) status = sort_intervals(b, error);
    if (status != TB_OK) return status;
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
    status = sort_pairs(b, error);
    if (status != TB_OK) return status;
    int32_t kept = 0; /* a pair may share several cubes */
    for (int32_t i = 0; i < b->number_of_pairs; i++)
        if (kept == 0 || b->pairs[i] != b->pairs[kept - 1]) b->pairs[kept++] = b->pairs[i];
    b->number_of_pairs = kept;
    return TB_OK;
}

/* ---- rows ---- */

/* A box is large if its extent is above this multiple of the mean; so many may be. */
#define LARGE 4.0
enum { MOST_LARGE = 16, SWEEP_BINS = 1 << RADIX_BITS };

/* Rows of boxes run along axis 0 of `axes`; a row holds the boxes whose lower corner lies in it, and is
 * at least as high and wide as the largest box, so that only neighbouring rows meet. */
typedef struct rows {
    int axes[3];
    double lower[3], per_metre[3]; /* by axis: of the world; bins, rows and layers per m */
    int32_t across, layers;
    uint32_t reach;             /* bins: the largest box */
    uint32_t *low, *high, *row; /* boxes: bins of both ends; row */
    uint32_t *order, *spare;    /* boxes that are not large, by row and bin */
    uint32_t *first;            /* rows + 1: in order */
    int32_t count;              /* in order */
    int32_t large[MOST_LARGE], number_of_large;
} rows;

/* False if too many boxes are large. */
static bool measure_rows(rows *r, const double *boxes, int32_t count)
{
    double upper[3], widest[3] = {0, 0, 0}, sum = 0;
    for (int k = 0; k < 3; k++) r->lower[k] = INFINITY, upper[k] = -INFINITY;
    for (int32_t i = 0; i < count; i++) {
        const double *b = boxes + 6 * (size_t)i;
        double extent = 0;
        for (int k = 0; k < 3; k++) extent = b[3 + k] - b[k] > extent ? b[3 + k] - b[k] : extent;
        sum += extent;
    }
    const double limit = LARGE * sum / count;
    for (int32_t i = 0; i < count; i++) {
        const double *b = boxes + 6 * (size_t)i;
        const double extent[3] = {b[3] - b[0], b[4] - b[1], b[5] - b[2]};
        if (extent[0] > limit || extent[1] > limit || extent[2] > limit) {
            if (r->number_of_large == MOST_LARGE) return false;
            r->large[r->number_of_large++] = i;
            continue;
        }
        for (int k = 0; k < 3; k++) {
            widest[k] = extent[k] > widest[k] ? extent[k] : widest[k];
            r->lower[k] = b[k] < r->lower[k] ? b[k] : r->lower[k];
            upper[k] = b[k] > upper[k] ? b[k] : upper[k];
        }
    }
    /* sweep along the longest axis */
    double size[3];
    for (int k = 0; k < 3; k++) size[k] = upper[k] > r->lower[k] ? upper[k] - r->lower[k] : 0;
    r->axes[0] = size[0] >= size[1] && size[0] >= size[2] ? 0 : (size[1] >= size[2] ? 1 : 2);
    r->axes[1] = (r->axes[0] + 1) % 3;
    r->axes[2] = (r->axes[0] + 2) % 3;
    const double length = size[r->axes[0]];
    r->per_metre[0] = length > 0 ? (SWEEP_BINS - 1) / length : 0; /* bins */
    r->reach = (uint32_t)fmin(widest[r->axes[0]] * r->per_metre[0], SWEEP_BINS) + 2;
    /* no more rows than boxes; a little wider than the widest box, against rounding */
    int32_t numbers[2];
    double wide[2];
    for (int k = 0; k < 2; k++)
        wide[k] = fmax(1.0001 * widest[r->axes[1 + k]], size[r->axes[1 + k]] / count);
    for (;; wide[0] *= 1.5, wide[1] *= 1.5) {
        for (int k = 0; k < 2; k++) {
            r->per_metre[1 + k] = wide[k] > 0 ? 1 / wide[k] : 0;
            numbers[k] = 1 + (int32_t)(size[r->axes[1 + k]] * r->per_metre[1 + k]);
        }
        if ((int64_t)numbers[0] * numbers[1] <= 2 * (int64_t)count + 8) break;
    }
    r->across = numbers[0];
    r->layers = numbers[1];
    return true;
}

static bool take_numbers(tb_broad *b, rows *r, int32_t count)
{
    const size_t boxes = (size_t)count, all = (size_t)r->across * (size_t)r->layers;
    uint32_t *grown =
        tb_grow(b->numbers, (int32_t)(5 * boxes + all + 2), &b->number_capacity, sizeof *grown);
    if (!grown) return false;
    b->numbers = grown;
    r->low = grown;
    r->high = r->low + boxes;
    r->row = r->high + boxes;
    r->order = r->row + boxes;
    r->spare = r->order + boxes;
    r->first = r->spare + boxes;
    return true;
}

/* Stable order by one number below `bins`; `first` has bins + 1 entries and becomes the bins' starts. */
static void sort_by(const uint32_t *number, const uint32_t *from, uint32_t *to, int32_t count,
                    uint32_t *first, uint32_t bins)
{
    memset(first, 0, (bins + 1) * sizeof *first);
    for (int32_t i = 0; i < count; i++) first[number[from[i]] + 1]++;
    for (uint32_t k = 0; k < bins; k++) first[k + 1] += first[k];
    for (int32_t i = 0; i < count; i++) to[first[number[from[i]]]++] = from[i];
    memmove(first + 1, first, bins * sizeof *first);
    first[0] = 0;
}

static void sort_rows(rows *r, const double *boxes, int32_t count)
{
    uint32_t bins[SWEEP_BINS + 1];
    int32_t large = 0;
    r->count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (large < r->number_of_large && r->large[large] == i) {
            large++;
            continue;
        }
        const double *b = boxes + 6 * (size_t)i;
        double x[3];
        for (int k = 0; k < 3; k++) x[k] = (b[r->axes[k]] - r->lower[r->axes[k]]) * r->per_metre[k];
        const double end = (b[3 + r->axes[0]] - r->lower[r->axes[0]]) * r->per_metre[0];
        r->low[i] = (uint32_t)x[0];
        r->high[i] = (uint32_t)end;
        r->row[i] = (uint32_t)x[2] * (uint32_t)r->across + (uint32_t)x[1];
        r->spare[r->count++] = (uint32_t)i;
    }
    sort_by(r->low, r->spare, r->order, r->count, bins, SWEEP_BINS);
    sort_by(r->row, r->order, r->spare, r->count, r->first,
            (uint32_t)r->across * (uint32_t)r->layers);
    uint32_t *swap = r->order;
    r->order = r->spare, r->spare = swap;
}

/* Pairs of the boxes of one row with those of a neighbour, whose sweep begins where it last did. */
static bool sweep(tb_broad *b, const rows *r, const double *boxes, uint32_t own, uint32_t other)
{
    uint32_t begin = r->first[other];
    const uint32_t end = r->first[other + 1];
    for (uint32_t i = r->first[own]; i < r->first[own + 1]; i++) {
        const uint32_t a = r->order[i];
        if (own == other)
            begin = i + 1;
        else
            while (begin < end && r->low[r->order[begin]] + r->reach < r->low[a]) begin++;
        for (uint32_t k = begin; k < end && r->low[r->order[k]] <= r->high[a]; k++)
            if (tb_boxes_meet(boxes + 6 * (size_t)a, boxes + 6 * (size_t)r->order[k]) &&
                !add_pair(b, a, r->order[k]))
                return false;
    }
    return true;
}

static bool sweep_rows(tb_broad *b, const rows *r, const double *boxes)
{
    bool fits = true;
    for (int32_t z = 0; z < r->layers; z++)
        for (int32_t y = 0; y < r->across && fits; y++) {
            const uint32_t own = (uint32_t)(z * r->across + y);
            if (r->first[own] == r->first[own + 1]) continue;
            fits = sweep(b, r, boxes, own, own);
            if (y + 1 < r->across) fits = fits && sweep(b, r, boxes, own, own + 1);
            for (int32_t x = y - 1; x <= y + 1 && z + 1 < r->layers; x++)
                if (x >= 0 && x < r->across)
                    fits = fits && sweep(b, r, boxes, own, (uint32_t)((z + 1) * r->across + x));
        }
    return fits;
}

tb_status tb_broad_rows(tb_broad *b, const double *boxes, int32_t count, bool *fits,
                        tb_error *error)
{
    rows r = {.number_of_large = 0};
    b->number_of_pairs = b->number_of_intervals = 0;
    *fits = count == 0 || measure_rows(&r, boxes, count);
    if (count == 0 || !*fits) return TB_OK;
    if (!take_numbers(b, &r, count)) return tb_fail_memory(error, 0, "rows of boxes");
    sort_rows(&r, boxes, count);
    bool room = sweep_rows(b, &r, boxes);
    for (int32_t k = 0; k < r.number_of_large && room; k++)
        for (int32_t i = 0; i < count && room; i++) {
            /* two large boxes meet once: at the one with the lower number */
            bool seen = i == r.large[k];
            for (int32_t j = 0; j < k; j++) seen = seen || i == r.large[j];
            if (!seen && tb_boxes_meet(boxes + 6 * (size_t)r.large[k], boxes + 6 * (size_t)i))
                room = add_pair(b, (uint64_t)r.large[k], (uint64_t)i);
        }
    if (!room) return tb_fail_memory(error, 0, "pairs of boxes");
    tb_broad_sort(&b->pairs, &b->spare_pairs, NULL, NULL, b->number_of_pairs);
    return TB_OK;
}

tb_status tb_broad_near(tb_broad *b, const double *boxes, int32_t count, tb_error *error)
{
    bool fits = false;
    const tb_status status = tb_broad_rows(b, boxes, count, &fits, error);
    if (status != TB_OK || fits) return status;
    return tb_broad_morton(b, boxes, count, 0, error);
}

/* ---- brute force ---- */

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
