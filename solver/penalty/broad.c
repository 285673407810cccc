/* Pairs by sorted Morton intervals, by rows, and by brute force (Göteman and Roxling 5.2, 5.3). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

/* A box is large if its extent is above LARGE times the mean; there are at most MOST_LARGE. */
#define LARGE 4.0
enum { MOST_LARGE = 16, SWEEP_BINS = 1 << 11, SMALL_GROUP = 48 };

/* A box in the order of the sweep, in a cache line of its own. */
typedef struct row_box {
    double ends[6]; /* m: upper corner, then the lower one with its sign turned */
    uint32_t low, high, box;
} row_box;

/* Rows of boxes run along axis 0 of `axes`; a row holds the boxes whose lower corner lies in it, and is
 * at least as high and wide as the largest box, so that only neighbouring rows meet. */
typedef struct rows {
    int axes[3];
    double lower[3], per_metre[3]; /* by axis: of the world; bins, rows and layers per m */
    int32_t across, layers;
    uint32_t reach;          /* bins: the largest box */
    uint32_t *low, *row;     /* boxes: bin of the lower end; row */
    uint32_t *order, *spare; /* boxes that are not large, by row and bin */
    uint32_t *first;         /* rows + 1: in order */
    row_box *sorted;         /* in order */
    int32_t count;           /* in order */
    int32_t large[MOST_LARGE], number_of_large;
} rows;

/* The least and the greatest of every number of some boxes. */
typedef struct box_range {
#ifdef __SSE2__
    __m128d least[3], most[3];
#else
    double least[6], most[6];
#endif
} box_range;

static inline void add_to_range(box_range *r, const double *b)
{
#ifdef __SSE2__
    for (int k = 0; k < 3; k++) {
        const __m128d x = _mm_loadu_pd(b + 2 * k);
        r->least[k] = _mm_min_pd(x, r->least[k]);
        r->most[k] = _mm_max_pd(x, r->most[k]);
    }
#else
    for (int k = 0; k < 6; k++) {
        r->least[k] = b[k] < r->least[k] ? b[k] : r->least[k];
        r->most[k] = b[k] > r->most[k] ? b[k] : r->most[k];
    }
#endif
}

/* Measures the boxes whose extents are not above a limit: lower corner, upper corner, largest extents. Returns
 * the sum of the largest extents of all; lists those above the limit. */
static double measure_boxes(rows *r, const double *boxes, int32_t count, double limit,
                            double upper[3], double widest[3])
{
    double wide[3] = {0, 0, 0}, sum = 0, ends[6];
    box_range range;
    for (int k = 0; k < 6; k++) ends[k] = INFINITY;
    memcpy(range.least, ends, sizeof ends);
    for (int k = 0; k < 6; k++) ends[k] = -INFINITY;
    memcpy(range.most, ends, sizeof ends);
    r->number_of_large = 0;
    for (int32_t i = 0; i < count; i++) {
        const double *b = boxes + 6 * (size_t)i;
        const double x = b[3] - b[0], y = b[4] - b[1], z = b[5] - b[2];
        double extent = x > y ? x : y;
        extent = z > extent ? z : extent;
        sum += extent;
        if (extent > limit) {
            if (r->number_of_large < MOST_LARGE) r->large[r->number_of_large] = i;
            r->number_of_large++;
            continue;
        }
        wide[0] = x > wide[0] ? x : wide[0];
        wide[1] = y > wide[1] ? y : wide[1];
        wide[2] = z > wide[2] ? z : wide[2];
        add_to_range(&range, b);
    }
    memcpy(r->lower, range.least, sizeof r->lower);
    memcpy(ends, range.most, sizeof ends);
    memcpy(upper, ends + 3, 3 * sizeof *upper);
    memcpy(widest, wide, sizeof wide);
    return sum;
}

/* False if too many boxes are large. */
static bool measure_rows(rows *r, const double *boxes, int32_t count)
{
    double upper[3], widest[3];
    const double sum = measure_boxes(r, boxes, count, INFINITY, upper, widest);
    const double limit = LARGE * sum / count;
    if (widest[0] > limit || widest[1] > limit || widest[2] > limit)
        measure_boxes(r, boxes, count, limit, upper, widest);
    if (r->number_of_large > MOST_LARGE) return false;
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
    const size_t wide = sizeof(row_box) / sizeof(uint32_t);
    uint32_t *grown = tb_grow(b->numbers, (int32_t)((wide + 4) * boxes + all + 1),
                              &b->number_capacity, sizeof *grown);
    if (!grown) return false;
    b->numbers = grown;
    r->sorted = (row_box *)(void *)grown;
    r->low = grown + wide * boxes;
    r->row = r->low + boxes;
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
    const int along = r->axes[0], across = r->axes[1], up = r->axes[2];
    const double lower[3] = {r->lower[along], r->lower[across], r->lower[up]};
    const double per_metre[3] = {r->per_metre[0], r->per_metre[1], r->per_metre[2]};
    const uint32_t number_across = (uint32_t)r->across;
    int32_t large = 0;
    r->count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (large < r->number_of_large && r->large[large] == i) {
            large++;
            continue;
        }
        const double *b = boxes + 6 * (size_t)i;
        const double x = (b[along] - lower[0]) * per_metre[0],
                     y = (b[across] - lower[1]) * per_metre[1],
                     z = (b[up] - lower[2]) * per_metre[2];
        r->low[i] = (uint32_t)x;
        r->row[i] = (uint32_t)z * number_across + (uint32_t)y;
        r->spare[r->count++] = (uint32_t)i;
    }
    sort_by(r->low, r->spare, r->order, r->count, bins, SWEEP_BINS);
    sort_by(r->row, r->order, r->spare, r->count, r->first,
            (uint32_t)r->across * (uint32_t)r->layers);
    for (int32_t i = 0; i < r->count; i++) {
        row_box *to = &r->sorted[i];
        const double *b = boxes + 6 * (size_t)r->spare[i];
        for (int k = 0; k < 3; k++) to->ends[k] = b[3 + k], to->ends[3 + k] = -b[k];
        to->box = r->spare[i];
        to->low = r->low[to->box];
        to->high = (uint32_t)((b[3 + along] - lower[0]) * per_metre[0]);
    }
}

/* The lower corner of a box and its upper corner with its sign turned. No number of them is above its
 * counterpart in another box's `ends` exactly when the boxes meet. */
typedef struct row_starts {
#ifdef __SSE2__
    __m128d x[3];
#else
    double x[6];
#endif
} row_starts;

static inline row_starts starts_of(const row_box *a)
{
    const double *e = a->ends;
#ifdef __SSE2__
    return (row_starts){
        {_mm_set_pd(-e[4], -e[3]), _mm_set_pd(-e[0], -e[5]), _mm_set_pd(-e[2], -e[1])}};
#else
    return (row_starts){{-e[3], -e[4], -e[5], -e[0], -e[1], -e[2]}};
#endif
}

/* All six comparisons at once, since none of them can be foretold. */
static inline bool starts_meet(const row_starts *a, const row_box *b)
{
#ifdef __SSE2__
    const __m128d x = _mm_cmple_pd(a->x[0], _mm_loadu_pd(b->ends)),
                  y = _mm_cmple_pd(a->x[1], _mm_loadu_pd(b->ends + 2)),
                  z = _mm_cmple_pd(a->x[2], _mm_loadu_pd(b->ends + 4));
    return _mm_movemask_pd(_mm_and_pd(_mm_and_pd(x, y), z)) == 3;
#else
    int meet = 1;
    for (int k = 0; k < 6; k++) meet &= a->x[k] <= b->ends[k];
    return meet;
#endif
}

/* Pairs of the boxes of one row with those of a neighbour, whose sweep begins where it last did. */
static bool sweep(tb_broad *b, const rows *r, uint32_t own, uint32_t other)
{
    const row_box *at = r->sorted + r->first[other];
    const row_box *const end = r->sorted + r->first[other + 1], *const last =
                                                                    r->sorted + r->first[own + 1];
    const uint32_t reach = r->reach;
    uint64_t *pairs = b->pairs;
    int32_t count = b->number_of_pairs, room = b->pair_capacity;
    for (const row_box *a = r->sorted + r->first[own]; a < last; a++) {
        const row_starts starts = starts_of(a);
        const uint32_t high = a->high;
        const uint64_t x = a->box;
        if (own == other)
            at = a + 1;
        else
            while (at < end && at->low + reach < a->low) at++;
        for (const row_box *k = at; k < end && k->low <= high; k++) {
            if (!starts_meet(&starts, k)) continue;
            if (count == room) {
                if (!grow_both(&b->pairs, &b->spare_pairs, count + 1, &b->pair_capacity))
                    return false;
                pairs = b->pairs;
                room = b->pair_capacity;
            }
            const uint64_t y = k->box;
            pairs[count++] = x < y ? x << 32 | y : y << 32 | x;
        }
    }
    b->number_of_pairs = count;
    return true;
}

static bool sweep_rows(tb_broad *b, const rows *r)
{
    bool fits = true;
    for (int32_t z = 0; z < r->layers; z++)
        for (int32_t y = 0; y < r->across && fits; y++) {
            const uint32_t own = (uint32_t)(z * r->across + y);
            if (r->first[own] == r->first[own + 1]) continue;
            fits = sweep(b, r, own, own);
            if (y + 1 < r->across) fits = fits && sweep(b, r, own, own + 1);
            for (int32_t x = y - 1; x <= y + 1 && z + 1 < r->layers; x++)
                if (x >= 0 && x < r->across)
                    fits = fits && sweep(b, r, own, (uint32_t)((z + 1) * r->across + x));
        }
    return fits;
}

/* Sorts pairs by their first box, a group a box, and the few of a group among each other. */
static void sort_pairs_of_rows(tb_broad *b, uint32_t *first, int32_t boxes)
{
    const int32_t count = b->number_of_pairs;
    uint32_t most = 0;
    uint64_t *const found = b->pairs, *const pairs = b->spare_pairs;
    memset(first, 0, ((size_t)boxes + 1) * sizeof *first);
    for (int32_t i = 0; i < count; i++) first[(found[i] >> 32) + 1]++;
    for (int32_t k = 0; k < boxes; k++) {
        most = first[k + 1] > most ? first[k + 1] : most;
        first[k + 1] += first[k];
    }
    if (most > SMALL_GROUP) {
        tb_broad_sort(&b->pairs, &b->spare_pairs, NULL, NULL, count);
        return;
    }
    for (int32_t i = 0; i < count; i++) pairs[first[found[i] >> 32]++] = found[i];
    for (int32_t i = 1; i < count; i++) {
        const uint64_t pair = pairs[i];
        int32_t at = i;
        for (; at > 0 && pairs[at - 1] > pair; at--) pairs[at] = pairs[at - 1];
        pairs[at] = pair;
    }
    b->spare_pairs = found;
    b->pairs = pairs;
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
    bool room = sweep_rows(b, &r);
    for (int32_t k = 0; k < r.number_of_large && room; k++)
        for (int32_t i = 0; i < count && room; i++) {
            /* two large boxes meet once: at the one with the lower number */
            bool seen = i == r.large[k];
            for (int32_t j = 0; j < k; j++) seen = seen || i == r.large[j];
            if (!seen && tb_boxes_meet(boxes + 6 * (size_t)r.large[k], boxes + 6 * (size_t)i))
                room = add_pair(b, (uint64_t)r.large[k], (uint64_t)i);
        }
    if (!room) return tb_fail_memory(error, 0, "pairs of boxes");
    if (b->number_of_pairs > 0) sort_pairs_of_rows(b, r.low, count);
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
