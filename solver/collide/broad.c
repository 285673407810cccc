/* Broad phase on the CPU: intervals, a radix sort, one sweep, and a second sort that puts the pairs in
 * order. broad.h has the method and its source.
 *
 * What the sweep reads lies in 32-byte records in sorted order, with the boxes packed to one word an
 * end: a candidate costs two subtractions instead of two cache misses, and only survivors are tested
 * exactly. The grid is chosen from a sample of the boxes by order statistics, so that one body that
 * flew away does not spoil it; a poor choice costs time and never a pair. */
#include "collide/broad.h"

#include <string.h>

enum {
    BRUTE_BOXES = 96,      /* up to so many boxes brute force is faster */
    SAMPLE_SIZE = 64,
    LARGE_CELLS = 1 << 18, /* boxes of more cells are tested against all */
    CHUNK_INTERVALS = 4096, /* the sweep's unit of parallel work */
    CHUNK_PAIRS = 3,       /* room for pairs, in pairs per interval, before a chunk is done again */
    DIGIT_BITS = 11,
    HITS = 256
};

/* cube edge over the size of the smallest boxes of the sample: large cubes make few intervals, small
 * ones few candidates; measured, flat between 1.5 and 3 */
#define CUBE_EDGE_PER_SIZE TB_R(2.0)

/* What is sorted: a start code, with the box, the level and the offset packed. */
typedef struct sort_item {
    uint64_t key;
    uint32_t box;
    uint32_t cube; /* level << 3 | offset */
} sort_item;

typedef struct interval {
    uint64_t start;
    uint64_t lower, upper; /* packed cells; upper with guard bits */
    uint32_t box, cube;
} interval;

/* Pairs of one chunk: `count` were found, and stored if they fit `capacity`. */
typedef struct pair_list {
    uint64_t *keys; /* a << index_bits | b */
    int64_t count, capacity;
} pair_list;

typedef struct sweep {
    const tb_box *boxes;
    tb_pair_filter *filter;
    const void *context;
    const interval *intervals;
    int32_t number_of_intervals, index_bits;
    pair_list *lists; /* one a chunk */
} sweep;

static void list_add(pair_list *list, int32_t index_bits, int32_t a, int32_t b)
{
    const uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a);
    if (list->count < list->capacity) list->keys[list->count] = low << index_bits | high;
    list->count++;
}

/* ---- radix sorts ------------------------------------------------------------------------------ */

/* The digits of keys that differ in the bits of `varying` only. */
typedef struct digits {
    int32_t count, bits, shift;
} digits;

static digits digits_of(uint64_t varying)
{
    digits d = {0, 0, 0};
    if (varying == 0) return d;
    int32_t top = 64;
    while (!(varying >> (top - 1) & 1)) top--;
    while (!(varying >> d.shift & 1)) d.shift++;
    const int32_t span = top - d.shift;
    d.count = (span + DIGIT_BITS - 1) / DIGIT_BITS;
    d.bits = (span + d.count - 1) / d.count;
    return d;
}

/* Turns counts into first places; true if all items are in one bucket. */
static bool counts_to_places(uint32_t *places, int32_t buckets, uint32_t number_of_items)
{
    uint32_t sum = 0;
    bool one = false;
    for (int32_t i = 0; i < buckets; i++) {
        const uint32_t count = places[i];
        one = one || count == number_of_items;
        places[i] = sum;
        sum += count;
    }
    return one;
}

/* Stable; the sorted items are in the array that is returned, `items` or `other`. */
static sort_item *sort_items(sort_item *items, sort_item *other, int32_t count, uint64_t varying)
{
    uint32_t places[1 << DIGIT_BITS];
    const digits d = digits_of(varying);
    const uint64_t mask = ((uint64_t)1 << d.bits) - 1;
    for (int32_t digit = 0; digit < d.count; digit++) {
        const int32_t shift = d.shift + digit * d.bits;
        memset(places, 0, sizeof(uint32_t) << d.bits);
        for (int32_t i = 0; i < count; i++) places[items[i].key >> shift & mask]++;
        if (counts_to_places(places, 1 << d.bits, (uint32_t)count)) continue;
        for (int32_t i = 0; i < count; i++)
            other[places[items[i].key >> shift & mask]++] = items[i];
        sort_item *swap = items;
        items = other;
        other = swap;
    }
    return items;
}

static uint64_t *sort_keys(uint64_t *keys, uint64_t *other, int32_t count, int32_t key_bits)
{
    uint32_t places[1 << DIGIT_BITS];
    const digits d = digits_of(((uint64_t)1 << key_bits) - 1);
    const uint64_t mask = ((uint64_t)1 << d.bits) - 1;
    for (int32_t digit = 0; digit < d.count; digit++) {
        const int32_t shift = d.shift + digit * d.bits;
        memset(places, 0, sizeof(uint32_t) << d.bits);
        for (int32_t i = 0; i < count; i++) places[keys[i] >> shift & mask]++;
        if (counts_to_places(places, 1 << d.bits, (uint32_t)count)) continue;
        for (int32_t i = 0; i < count; i++) other[places[keys[i] >> shift & mask]++] = keys[i];
        uint64_t *swap = keys;
        keys = other;
        other = swap;
    }
    return keys;
}

/* ---- the grid ----------------------------------------------------------------------------------- */

static void sort_sample(tb_real *x, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        const tb_real value = x[i];
        int32_t j = i;
        for (; j > 0 && x[j - 1] > value; j--) x[j] = x[j - 1];
        x[j] = value;
    }
}

static tb_real largest_extent(const tb_box *b)
{
    return tb_max(b->upper.x - b->lower.x,
                  tb_max(b->upper.y - b->lower.y, b->upper.z - b->lower.z));
}

/* The grid for these boxes, from a sample. Boxes are known to be valid where they are sampled; those
 * that have no bounds are passed over. */
static tb_grid grid_choose(const tb_box *boxes, int32_t number_of_boxes)
{
    tb_real sizes[SAMPLE_SIZE], centres[3][SAMPLE_SIZE];
    int32_t number_of_sizes = 0, number_of_centres = 0;
    for (int32_t i = 0; i < SAMPLE_SIZE; i++) {
        /* one of each stratum, at a place that does not step with the rows of a stack */
        const int64_t first = (int64_t)number_of_boxes * i / SAMPLE_SIZE;
        const int64_t next = (int64_t)number_of_boxes * (i + 1) / SAMPLE_SIZE;
        const uint32_t hash = (uint32_t)(i + 1) * 2654435769u;
        const tb_box *b = &boxes[first + (next > first ? (hash >> 8) % (next - first) : 0)];
        const tb_real size = largest_extent(b);
        if (!(size < TB_REAL_MAX / 16)) continue;
        if (size > 0) sizes[number_of_sizes++] = size;
        centres[0][number_of_centres] = b->lower.x + (b->upper.x - b->lower.x) / 2;
        centres[1][number_of_centres] = b->lower.y + (b->upper.y - b->lower.y) / 2;
        centres[2][number_of_centres] = b->lower.z + (b->upper.z - b->lower.z) / 2;
        number_of_centres++;
    }

    tb_real size = 0, spread = 0;
    tb_real middle[3] = {0, 0, 0};
    if (number_of_sizes > 0) {
        sort_sample(sizes, number_of_sizes);
        size = sizes[number_of_sizes / 32];
    }
    if (number_of_centres > 0) {
        const int32_t outliers = number_of_centres / 16;
        for (int axis = 0; axis < 3; axis++) {
            sort_sample(centres[axis], number_of_centres);
            const tb_real lower = centres[axis][outliers];
            const tb_real upper = centres[axis][number_of_centres - 1 - outliers];
            middle[axis] = centres[axis][number_of_centres / 2];
            if (upper - lower > spread) spread = upper - lower;
        }
    }

    /* the finest cells whose grid holds the spread several times over; then the level whose cubes have
     * the wanted edge, and cells fitted to it */
    const tb_real tiniest = sizeof(tb_real) == 4 ? TB_R(1e-30) : TB_R(1e-290);
    tb_grid grid;
    tb_real cell = tb_max(spread * (6 / TB_R(TB_GRID_CELLS)), tiniest);
    tb_real edge = size * CUBE_EDGE_PER_SIZE;
    grid.minimum_level = 1;
    if (edge > 2 * cell) {
        while (grid.minimum_level < 12 && TB_R(1 << (grid.minimum_level + 1)) * cell <= edge)
            grid.minimum_level++;
        cell = edge / TB_R(1 << grid.minimum_level);
    }
    grid.inverse_cell = 1 / cell;

    /* The middle lies at a third of the grid: 1/3 = 0.010101... in binary is a third or two thirds of a
     * cube on every level, so that a layer of bodies in one plane is not cut by a face of the cubes. */
    const tb_real third = TB_R(TB_GRID_CELLS) / 3 * cell;
    grid.origin = tb_v3(middle[0] - third, middle[1] - third, middle[2] - third);
    return grid;
}

int32_t tb_morton_intervals(const tb_box *box, tb_vec3 origin, tb_real cell, uint64_t start[8],
                            uint64_t end[8])
{
    tb_grid grid;
    grid.origin = origin;
    grid.inverse_cell = 1 / cell;
    grid.minimum_level = 0;
    const tb_cells cells = tb_grid_cells(&grid, box);
    const int32_t level = tb_cells_level(&cells, 0);
    uint32_t offset[8];
    const int32_t count = tb_cells_intervals(&cells, level, start, offset);
    for (int32_t i = 0; i < count; i++) end[i] = tb_morton_end(start[i], level);
    return count;
}

/* ---- pairs -------------------------------------------------------------------------------------- */

/* Takes what the packed words said apart: ownership between levels, the boxes themselves, the filter. */
static void take_hits(const sweep *s, pair_list *list, const interval *a, const uint32_t *hits,
                      int32_t number_of_hits)
{
    for (int32_t h = 0; h < number_of_hits; h++) {
        const interval *b = &s->intervals[hits[h]];
        const int32_t level_a = (int32_t)(a->cube >> 3), level_b = (int32_t)(b->cube >> 3);
        if (level_a > level_b && !tb_packed_owns(a->lower, b->lower, b->cube & 7, level_b))
            continue;
        if (level_a < level_b && !tb_packed_owns(b->lower, a->lower, a->cube & 7, level_a))
            continue;
        if (!tb_box_overlap(&s->boxes[a->box], &s->boxes[b->box])) continue;
        const int32_t low = (int32_t)(a->box < b->box ? a->box : b->box);
        const int32_t high = (int32_t)(a->box < b->box ? b->box : a->box);
        if (s->filter && !s->filter(s->context, low, high)) continue;
        list_add(list, s->index_bits, low, high);
    }
}

/* Every interval of the chunk with those that start inside it. */
static void sweep_chunk(void *context, int32_t chunk, int32_t thread)
{
    (void)thread;
    const sweep *s = context;
    pair_list *list = &s->lists[chunk];
    if (list->count <= list->capacity && list->count > 0) return; /* second round: only what overflowed */
    list->count = 0;

    uint32_t hits[HITS];
    const int32_t first = chunk * CHUNK_INTERVALS;
    int32_t last = first + CHUNK_INTERVALS;
    if (last > s->number_of_intervals) last = s->number_of_intervals;
    for (int32_t i = first; i < last; i++) {
        const interval a = s->intervals[i];
        const uint64_t end = tb_morton_end(a.start, (int32_t)(a.cube >> 3));
        int32_t j = i + 1;
        while (j < s->number_of_intervals && s->intervals[j].start <= end) {
            int32_t number_of_hits = 0;
            int32_t stop = j + HITS;
            if (stop > s->number_of_intervals) stop = s->number_of_intervals;
            for (; j < stop && s->intervals[j].start <= end; j++) {
                const interval *b = &s->intervals[j];
                /* on one level, a cube holds the intersection's lower corner unless it lies above the
                 * corner cubes of both boxes on some axis */
                const uint32_t both = a.cube & b->cube & 7;
                const bool mine = ((a.cube ^ b->cube) > 7) | (both == 0);
                hits[number_of_hits] = (uint32_t)j;
                number_of_hits +=
                    mine & tb_packed_overlap(a.lower, a.upper, b->lower, b->upper);
            }
            take_hits(s, list, &a, hits, number_of_hits);
        }
    }
}

/* Pairs of the boxes in `large` with all; among themselves once. */
static void pairs_of_large(const sweep *s, const int32_t *large, int32_t number_of_large,
                           int32_t number_of_boxes, pair_list *list)
{
    list->count = 0;
    for (int32_t k = 0; k < number_of_large; k++) {
        const int32_t a = large[k];
        int32_t next = 0; /* in `large`, which ascends */
        for (int32_t b = 0; b < number_of_boxes; b++) {
            if (next < number_of_large && large[next] == b) {
                next++;
                if (b <= a) continue;
            }
            if (!tb_box_overlap(&s->boxes[a], &s->boxes[b])) continue;
            if (s->filter && !s->filter(s->context, a < b ? a : b, a < b ? b : a)) continue;
            list_add(list, s->index_bits, a, b);
        }
    }
}

/* All lists into one array, in order. */
static tb_status pairs_join(const pair_list *lists, int32_t number_of_lists, int32_t index_bits,
                            tb_arena *arena, tb_pair **pairs, int32_t *count)
{
    int64_t total = 0;
    for (int32_t i = 0; i < number_of_lists; i++) total += lists[i].count;
    if (total > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    uint64_t *keys = TB_ARENA_ARRAY(arena, uint64_t, total);
    uint64_t *other = TB_ARENA_ARRAY(arena, uint64_t, total);
    if (!keys || !other) return TB_RESOURCE_EXHAUSTED;
    int64_t filled = 0;
    for (int32_t i = 0; i < number_of_lists; i++) {
        if (lists[i].count == 0) continue;
        memcpy(keys + filled, lists[i].keys, sizeof(uint64_t) * (size_t)lists[i].count);
        filled += lists[i].count;
    }
    const uint64_t *sorted = sort_keys(keys, other, (int32_t)total, 2 * index_bits);

    /* unpacked into the array that is free */
    tb_pair *result = (tb_pair *)(void *)(sorted == keys ? other : keys);
    const uint64_t mask = ((uint64_t)1 << index_bits) - 1;
    for (int64_t i = 0; i < total; i++) {
        result[i].a = (int32_t)(sorted[i] >> index_bits);
        result[i].b = (int32_t)(sorted[i] & mask);
    }
    *pairs = result;
    *count = (int32_t)total;
    return TB_OK;
}

tb_status tb_broad_phase(const tb_box *boxes, int32_t number_of_boxes, tb_pair_filter *filter,
                         const void *context, int32_t threads, tb_arena *arena, tb_pair **pairs,
                         int32_t *count)
{
    if (number_of_boxes <= BRUTE_BOXES)
        return tb_broad_phase_brute(boxes, number_of_boxes, filter, context, arena, pairs, count);
    *pairs = NULL;
    *count = 0;
    bool valid = true;
    for (int32_t i = 0; i < number_of_boxes; i++) valid &= tb_box_valid(&boxes[i]);
    if (!valid) return TB_INVALID_ARGUMENT;

    sweep s = {.boxes = boxes, .filter = filter, .context = context};
    while ((int64_t)1 << s.index_bits < number_of_boxes) s.index_bits++;
    const tb_grid grid = grid_choose(boxes, number_of_boxes);

    /* intervals, and the boxes in packed cells; large boxes go to a list of their own */
    const size_t most = (size_t)number_of_boxes * 8;
    if (most > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    uint64_t *packed = TB_ARENA_ARRAY(arena, uint64_t, (size_t)number_of_boxes * 2);
    int32_t *large = TB_ARENA_ARRAY(arena, int32_t, number_of_boxes);
    sort_item *items = TB_ARENA_ARRAY(arena, sort_item, most);
    if (!packed || !large || !items) return TB_RESOURCE_EXHAUSTED;
    int32_t number_of_large = 0, n = 0;
    uint64_t any = 0, all = ~(uint64_t)0;
    for (int32_t i = 0; i < number_of_boxes; i++) {
        const tb_cells cells = tb_grid_cells(&grid, &boxes[i]);
        const int32_t level = tb_cells_level(&cells, grid.minimum_level);
        if (1 << level > LARGE_CELLS) {
            large[number_of_large++] = i;
            continue;
        }
        packed[2 * i] = tb_cells_pack(cells.lower);
        packed[2 * i + 1] = tb_cells_pack(cells.upper) | TB_PACKED_GUARDS;
        uint64_t start[8];
        uint32_t offset[8];
        const int32_t cubes = tb_cells_intervals(&cells, level, start, offset);
        for (int32_t k = 0; k < cubes; k++) {
            any |= start[k];
            all &= start[k];
            items[n].key = start[k];
            items[n].box = (uint32_t)i;
            items[n].cube = (uint32_t)level << 3 | offset[k];
            n++;
        }
    }

    /* sorted, with what the sweep reads beside each */
    sort_item *other = TB_ARENA_ARRAY(arena, sort_item, n);
    interval *intervals = TB_ARENA_ARRAY(arena, interval, n);
    const int32_t chunks = (n + CHUNK_INTERVALS - 1) / CHUNK_INTERVALS;
    s.lists = TB_ARENA_ZEROED(arena, pair_list, chunks + 1);
    if (!other || !intervals || !s.lists) return TB_RESOURCE_EXHAUSTED;
    const sort_item *sorted = sort_items(items, other, n, any ^ all);
    for (int32_t i = 0; i < n; i++) {
        interval *v = &intervals[i];
        v->start = sorted[i].key;
        v->box = sorted[i].box;
        v->cube = sorted[i].cube;
        v->lower = packed[2 * v->box];
        v->upper = packed[2 * v->box + 1];
    }
    s.intervals = intervals;
    s.number_of_intervals = n;

    /* a first round with room for the usual; what did not fit is done again with the right room */
    for (int32_t round = 0; round < 2; round++) {
        bool again = false;
        for (int32_t k = 0; k <= chunks; k++) {
            pair_list *list = &s.lists[k];
            if (round > 0 && list->count <= list->capacity) continue;
            list->capacity = round > 0 ? list->count : CHUNK_INTERVALS * CHUNK_PAIRS;
            list->keys = TB_ARENA_ARRAY(arena, uint64_t, list->capacity);
            if (!list->keys) return TB_RESOURCE_EXHAUSTED;
            list->count = 0;
            again = true;
        }
        if (!again) break;
        tb_parallel_for(chunks, 1, threads, sweep_chunk, &s);
        if (s.lists[chunks].count == 0)
            pairs_of_large(&s, large, number_of_large, number_of_boxes, &s.lists[chunks]);
    }
    return pairs_join(s.lists, chunks + 1, s.index_bits, arena, pairs, count);
}

tb_status tb_broad_phase_brute(const tb_box *boxes, int32_t number_of_boxes, tb_pair_filter *filter,
                               const void *context, tb_arena *arena, tb_pair **pairs, int32_t *count)
{
    *pairs = NULL;
    *count = 0;
    for (int32_t i = 0; i < number_of_boxes; i++)
        if (!tb_box_valid(&boxes[i])) return TB_INVALID_ARGUMENT;

    /* once with the usual room, and again with enough where that was too little */
    int64_t capacity = (int64_t)number_of_boxes * 8, found = 0;
    do {
        if (found > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
        if (found > capacity) capacity = found;
        tb_pair *list = TB_ARENA_ARRAY(arena, tb_pair, capacity);
        if (!list) return TB_RESOURCE_EXHAUSTED;
        *pairs = list;
        found = 0;
        for (int32_t a = 0; a < number_of_boxes; a++) {
            const tb_box box = boxes[a];
            for (int32_t b = a + 1; b < number_of_boxes; b++) {
                if (!tb_box_overlap(&box, &boxes[b])) continue;
                if (filter && !filter(context, a, b)) continue;
                if (found < capacity) {
                    list[found].a = a;
                    list[found].b = b;
                }
                found++;
            }
        }
    } while (found > capacity);
    *count = (int32_t)found;
    return TB_OK;
}
