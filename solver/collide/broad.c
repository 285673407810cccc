/* Broad phase on the CPU: intervals, a radix sort, one sweep, and a second sort that puts the pairs
 * in order. broad.h has the method and its source.
 *
 * What the sweep reads lies in sorted order, with each box packed to one word an end: a candidate
 * costs two subtractions instead of two cache misses, without a branch, and only survivors are
 * tested exactly, many at a time. The grid is chosen from a sample of the boxes by order
 * statistics, so that one body that flew away does not spoil it; a poor choice costs time and never
 * a pair. */
#include "collide/broad.h"

#include <string.h>

enum {
    BRUTE_BOXES = 128, /* up to so many boxes brute force is faster */
    SAMPLE_SIZE = 64,
    LARGE_LEVEL = 18,       /* boxes of more than 2^18 cells are tested against all */
    CHUNK_INTERVALS = 1024, /* the sweep's unit of parallel work */
    CHUNK_BOXES = 512,
    CHUNK_PAIRS = 3, /* room for pairs, in pairs per interval, before a chunk is done again */
    HITS = 1024,     /* candidates that are taken apart together */
    SMALL_CUBE = 40, /* boxes in a cube whose pairs all fit into HITS */
    MOST_DIGIT_BITS = 11
};

/* cube edge over the size of the smallest boxes of the sample: large cubes make few intervals,
 * small ones few candidates; measured, flat between 1.5 and 3 */
#define CUBE_EDGE_PER_SIZE TB_R(2.5)

/* Pairs of one chunk: `count` were found, and stored if they fit `capacity`. */
typedef struct pair_list {
    uint64_t *keys; /* a << index_bits | b */
    int64_t count, capacity;
} pair_list;

typedef struct sweep {
    const tb_box *boxes;
    tb_pair_filter *filter;
    const void *context;
    const tb_cube *items;        /* sorted */
    const tb_packed_box *packed; /* of each item */
    int32_t number_of_items, index_bits;
    pair_list *lists; /* one a chunk */
} sweep;

/* What a chunk of boxes gives. */
typedef struct chunk_items {
    size_t first; /* place of its items */
    int32_t count;
    uint64_t any, all;
    bool valid;
} chunk_items;

typedef struct generation {
    const tb_box *boxes;
    int32_t number_of_boxes;
    tb_grid grid;
    tb_packed_box *packed; /* of each box */
    tb_cube *items;
    bool *large;
    chunk_items *chunks;
} generation;

/* While they are sorted and swept, start codes bear 31 less the level in their lowest bits, which
 * are zero in all codes: so equal keys are equal cubes, and a cube stands before the smaller ones
 * that begin with it. */
static int32_t key_level(uint64_t key)
{
    return 31 - (int32_t)(key & 31);
}

static uint64_t key_end(uint64_t key)
{
    return tb_morton_end(key & ~(uint64_t)31, key_level(key));
}

static void list_add(pair_list *list, int32_t index_bits, int32_t a, int32_t b)
{
    const uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a);
    if (list->count < list->capacity) list->keys[list->count] = low << index_bits | high;
    list->count++;
}

/* ---- radix sorts ----------------------------------------------------------------------------- */

/* The digits of keys that differ in the bits of `varying` only: shifts of those that vary. */
typedef struct digits {
    int32_t count, bits;
    int32_t shift[64];
} digits;

static digits digits_of(uint64_t varying, int32_t number_of_items)
{
    digits d = {0};
    if (varying == 0) return d;
    int32_t top = 64, low = 0;
    while (!(varying >> (top - 1) & 1)) top--;
    while (!(varying >> low & 1)) low++;
    /* a table of counts should not be longer than what is counted,
     * nor spread writes beyond the cache */
    const int32_t most = number_of_items < 1024 ? 8 : MOST_DIGIT_BITS;
    const int32_t passes = (top - low + most - 1) / most;
    d.bits = (top - low + passes - 1) / passes;
    for (int32_t shift = low; shift < top; shift += d.bits)
        if (varying >> shift & (((uint64_t)1 << d.bits) - 1)) d.shift[d.count++] = shift;
    return d;
}

static void counts_to_places(uint32_t *places, int32_t buckets)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < buckets; i++) {
        const uint32_t count = places[i];
        places[i] = sum;
        sum += count;
    }
}

/* Stable; the sorted items are in the array that is returned, `items` or `other`. */
static tb_cube *tb_cubes(tb_cube *items, tb_cube *other, int32_t count, uint64_t varying)
{
    uint32_t places[1 << MOST_DIGIT_BITS];
    const digits d = digits_of(varying, count);
    const uint64_t mask = ((uint64_t)1 << d.bits) - 1;
    for (int32_t digit = 0; digit < d.count; digit++) {
        const int32_t shift = d.shift[digit];
        memset(places, 0, sizeof(uint32_t) << d.bits);
        for (int32_t i = 0; i < count; i++) places[items[i].start >> shift & mask]++;
        counts_to_places(places, 1 << d.bits);
        for (int32_t i = 0; i < count; i++)
            other[places[items[i].start >> shift & mask]++] = items[i];
        tb_cube *swap = items;
        items = other;
        other = swap;
    }
    return items;
}

static uint64_t *sort_keys(uint64_t *keys, uint64_t *other, int32_t count, int32_t key_bits)
{
    uint32_t places[1 << MOST_DIGIT_BITS];
    const digits d = digits_of(((uint64_t)1 << key_bits) - 1, count);
    const uint64_t mask = ((uint64_t)1 << d.bits) - 1;
    for (int32_t digit = 0; digit < d.count; digit++) {
        const int32_t shift = d.shift[digit];
        memset(places, 0, sizeof(uint32_t) << d.bits);
        for (int32_t i = 0; i < count; i++) places[keys[i] >> shift & mask]++;
        counts_to_places(places, 1 << d.bits);
        for (int32_t i = 0; i < count; i++) other[places[keys[i] >> shift & mask]++] = keys[i];
        uint64_t *swap = keys;
        keys = other;
        other = swap;
    }
    return keys;
}

/* ---- the grid -------------------------------------------------------------------------------- */

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

/* The grid for these boxes, from a sample. Boxes are known to be valid where they are sampled;
 * those that have no bounds are passed over. */
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

    /* the finest cells whose grid holds the spread several times over; then the level whose cubes
     * have the wanted edge, and cells fitted to it */
    const tb_real tiniest = sizeof(tb_real) == 4 ? TB_R(1e-30) : TB_R(1e-290);
    tb_grid grid;
    tb_real cell = tb_max(spread * (6 / TB_R(TB_GRID_CELLS)), tiniest);
    tb_real edge = size * CUBE_EDGE_PER_SIZE;
    grid.minimum_level = TB_PACKED_DROPPED;
    if (edge > TB_R(1 << TB_PACKED_DROPPED) * cell) {
        while (grid.minimum_level < 12 && TB_R(1 << (grid.minimum_level + 1)) * cell <= edge)
            grid.minimum_level++;
        cell = edge / TB_R(1 << grid.minimum_level);
    }
    grid.inverse_cell = 1 / cell;

    /* The middle lies at a third of the grid: 1/3 = 0.010101... in binary is a third or two thirds
     * of a cube on every level, so that a layer of bodies in one plane
     * is not cut by a face of the cubes. */
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
    tb_cube cubes[8];
    const int32_t count = tb_cells_cubes(&cells, level, 0, cubes);
    for (int32_t i = 0; i < count; i++) {
        start[i] = cubes[i].start;
        end[i] = tb_morton_end(start[i], level);
    }
    return count;
}

/* ---- intervals ------------------------------------------------------------------------------- */

/* The items of a chunk of boxes; large boxes give none. */
static void generate_chunk(void *context, int32_t chunk, int32_t thread)
{
    (void)thread;
    const generation *g = context;
    const tb_grid grid = g->grid;
    const int32_t first = chunk * CHUNK_BOXES;
    int32_t last = first + CHUNK_BOXES;
    if (last > g->number_of_boxes) last = g->number_of_boxes;
    chunk_items result = {g->chunks[chunk].first, 0, 0, ~(uint64_t)0, true};
    tb_cube *out = g->items + result.first;
    tb_real least = 0, nothing = 0;
    for (int32_t i = first; i < last; i++) {
        const tb_box *box = &g->boxes[i];
        /* no extent is negative, and none less itself is anything but zero */
        const tb_vec3 e = tb_v3_sub(box->upper, box->lower);
        least = tb_min(tb_min(e.x, e.y), tb_min(e.z, least));
        nothing += (e.x - e.x) + (e.y - e.y) + (e.z - e.z);
        const tb_cells cells = tb_grid_cells(&grid, box);
        const int32_t level = tb_cells_level(&cells, grid.minimum_level);
        g->large[i] = level > LARGE_LEVEL;
        if (level > LARGE_LEVEL) continue;
        g->packed[i] = tb_packed_box_of(&cells);
        const int32_t count = tb_cells_cubes(&cells, level, (uint32_t)i, out);
        for (int32_t k = 0; k < count; k++) out[k].start |= (uint64_t)(31 - level);
        /* the first and the last have the digits of all between */
        result.any |= out[0].start | out[count - 1].start;
        result.all &= out[0].start & out[count - 1].start;
        out += count;
        result.count += count;
    }
    if (!(least >= 0) || !(nothing == 0))
        for (int32_t i = first; i < last; i++) result.valid &= tb_box_valid(&g->boxes[i]);
    g->chunks[chunk] = result;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Two items that may be a pair: places in the sorted array. */
typedef struct hit {
    uint32_t a, b;
} hit;

/* Takes hits apart: ownership between levels where asked, the boxes themselves, the filter. */
static void take_hits(const sweep *s, pair_list *list, const hit *hits, int32_t number_of_hits,
                      bool levels_differ)
{
    uint64_t keys[HITS];
    int32_t count = 0;
    for (int32_t h = 0; h < number_of_hits; h++) {
        const tb_cube *a = &s->items[hits[h].a], *b = &s->items[hits[h].b];
        if (levels_differ && !tb_packed_owns(s->packed[hits[h].a].lower, s->packed[hits[h].b].lower,
                                             b->offset, key_level(b->start)))
            continue;
        const uint64_t low = a->box < b->box ? a->box : b->box;
        const uint64_t high = a->box ^ b->box ^ low;
        keys[count] = low << s->index_bits | high;
        count += tb_box_overlap_likely(&s->boxes[a->box], &s->boxes[b->box]);
    }
    if (s->filter) {
        const uint64_t mask = ((uint64_t)1 << s->index_bits) - 1;
        int32_t wanted = 0;
        for (int32_t k = 0; k < count; k++) {
            const uint64_t key = keys[k];
            keys[wanted] = key;
            wanted += s->filter(s->context, (int32_t)(key >> s->index_bits), (int32_t)(key & mask));
        }
        count = wanted;
    }
    if (list->count + count <= list->capacity)
        memcpy(list->keys + list->count, keys, sizeof(uint64_t) * (size_t)count);
    list->count += count;
}

/* Hits gathered for taking apart together; all of one kind. */
typedef struct hit_list {
    hit hits[HITS];
    int32_t count;
} hit_list;

/* Adds what of items first to last, exclusive, overlaps item i as far as packed cells tell. */
static inline void sweep_item(const tb_packed_box *packed, int32_t i, int32_t first, int32_t last,
                              uint64_t guards, hit_list *list)
{
    const tb_packed_box a = packed[i];
    int32_t count = list->count;
    for (int32_t j = first; j < last; j++) {
        list->hits[count].a = (uint32_t)i;
        list->hits[count].b = (uint32_t)j;
        count += tb_packed_overlap(a, packed[j], guards);
    }
    list->count = count;
}

/* The same for a range of any length. */
static void sweep_range(const sweep *s, pair_list *pairs, int32_t i, int32_t first, int32_t last,
                        uint64_t guards, bool levels_differ, hit_list *list)
{
    while (first < last) {
        const int32_t stop = last - first > HITS / 2 ? first + HITS / 2 : last;
        if (list->count + stop - first >= HITS) {
            take_hits(s, pairs, list->hits, list->count, levels_differ);
            list->count = 0;
        }
        sweep_item(s->packed, i, first, stop, guards, list);
        first = stop;
    }
}

/* All cubes that begin in the chunk: the items of each with one another, and with those of the
 * smaller cubes inside it. */
static void sweep_chunk(void *context, int32_t chunk, int32_t thread)
{
    (void)thread;
    const sweep *s = context;
    pair_list *list = &s->lists[chunk];
    if (list->count <= list->capacity && list->count > 0) return; /* only what overflowed, again */
    list->count = 0;

    hit_list hits;
    hits.count = 0;
    const tb_cube *items = s->items;
    const int32_t end_of_items = s->number_of_items;
    int32_t i = chunk * CHUNK_INTERVALS;
    int32_t last = i + CHUNK_INTERVALS;
    if (last > end_of_items) last = end_of_items;
    while (i > 0 && i < last && items[i].start == items[i - 1].start)
        i++; /* the chunk before has these */
    while (i < last) {
        const uint64_t key = items[i].start;
        int32_t cube_end = i + 1;
        while (cube_end < end_of_items && items[cube_end].start == key) cube_end++;
        const uint64_t guards = TB_PACKED_BOX_GUARDS | TB_PACKED_CUBE_GUARDS;
        const int32_t size = cube_end - i;
        if (size <= SMALL_CUBE) {
            if (hits.count + size * (size - 1) / 2 >= HITS) {
                take_hits(s, list, hits.hits, hits.count, false);
                hits.count = 0;
            }
            for (int32_t k = i; k < cube_end; k++)
                sweep_item(s->packed, k, k + 1, cube_end, guards, &hits);
        } else {
            for (int32_t k = i; k < cube_end; k++)
                sweep_range(s, list, k, k + 1, cube_end, guards, false, &hits);
        }

        /* smaller cubes inside */
        const uint64_t end = key_end(key);
        if (cube_end < end_of_items && items[cube_end].start <= end) {
            int32_t inside_end = cube_end + 1;
            while (inside_end < end_of_items && items[inside_end].start <= end) inside_end++;
            take_hits(s, list, hits.hits, hits.count, false);
            hits.count = 0;
            for (int32_t k = i; k < cube_end; k++)
                sweep_range(s, list, k, cube_end, inside_end, TB_PACKED_BOX_GUARDS, true, &hits);
            take_hits(s, list, hits.hits, hits.count, true);
            hits.count = 0;
        }
        i = cube_end;
    }
    take_hits(s, list, hits.hits, hits.count, false);
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

/* The sorted items of all boxes, packed boxes beside them, and the list of large boxes. */
static tb_status sweep_prepare(sweep *s, int32_t number_of_boxes, int32_t threads, tb_arena *arena,
                               int32_t **large, int32_t *number_of_large)
{
    const size_t most = (size_t)number_of_boxes * 8 + 8;
    const int32_t chunks = (number_of_boxes + CHUNK_BOXES - 1) / CHUNK_BOXES;
    if (most > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    generation g = {.boxes = s->boxes, .number_of_boxes = number_of_boxes};
    g.grid = grid_choose(s->boxes, number_of_boxes);
    g.packed = TB_ARENA_ARRAY(arena, tb_packed_box, number_of_boxes);
    g.large = TB_ARENA_ARRAY(arena, bool, number_of_boxes);
    g.items = TB_ARENA_ARRAY(arena, tb_cube, most);
    g.chunks = TB_ARENA_ARRAY(arena, chunk_items, chunks);
    if (!g.packed || !g.large || !g.items || !g.chunks) return TB_RESOURCE_EXHAUSTED;

    /* one thread writes items one after another; of several, each chunk has the room it may need,
     * and what it wrote is moved together */
    const bool alone = chunks == 1 || tb_parallel_threads(threads) == 1;
    if (!alone) {
        for (int32_t c = 0; c < chunks; c++) g.chunks[c].first = 8 * (size_t)c * CHUNK_BOXES;
        tb_parallel_for(chunks, 1, threads, generate_chunk, &g);
    }
    uint64_t any = 0, all = ~(uint64_t)0;
    size_t n = 0;
    for (int32_t c = 0; c < chunks; c++) {
        chunk_items *chunk = &g.chunks[c];
        if (alone) {
            chunk->first = n;
            generate_chunk(&g, c, 0);
        }
        if (!chunk->valid) return TB_INVALID_ARGUMENT;
        if (chunk->first != n)
            memmove(g.items + n, g.items + chunk->first, sizeof(tb_cube) * (size_t)chunk->count);
        n += (size_t)chunk->count;
        any |= chunk->any;
        all &= chunk->all;
    }
    int32_t found = 0;
    for (int32_t i = 0; i < number_of_boxes; i++) found += g.large[i];
    *large = TB_ARENA_ARRAY(arena, int32_t, found);
    tb_cube *other = TB_ARENA_ARRAY(arena, tb_cube, n);
    tb_packed_box *packed = TB_ARENA_ARRAY(arena, tb_packed_box, n);
    if (!*large || !other || !packed) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < number_of_boxes && *number_of_large < found; i++)
        if (g.large[i]) (*large)[(*number_of_large)++] = i;

    const tb_cube *sorted = tb_cubes(g.items, other, (int32_t)n, n > 0 ? any ^ all : 0);
    for (size_t i = 0; i < n; i++)
        packed[i] = tb_packed_cube(g.packed[sorted[i].box], sorted[i].offset);
    s->items = sorted;
    s->packed = packed;
    s->number_of_items = (int32_t)n;
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
    sweep s = {.boxes = boxes, .filter = filter, .context = context};
    while ((int64_t)1 << s.index_bits < number_of_boxes) s.index_bits++;
    int32_t *large = NULL, number_of_large = 0;
    const tb_status status =
        sweep_prepare(&s, number_of_boxes, threads, arena, &large, &number_of_large);
    if (status != TB_OK) return status;

    /* a first round with room for the usual; what did not fit is done again with the right room */
    const int32_t chunks = (s.number_of_items + CHUNK_INTERVALS - 1) / CHUNK_INTERVALS;
    s.lists = TB_ARENA_ZEROED(arena, pair_list, chunks + 1);
    if (!s.lists) return TB_RESOURCE_EXHAUSTED;
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
                               const void *context, tb_arena *arena, tb_pair **pairs,
                               int32_t *count)
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
