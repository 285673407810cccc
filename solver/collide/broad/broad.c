/* Broad phase on the CPU: intervals, a radix sort, one sweep, and a counting sort that orders the
 * pairs. broad.h has the method and its source.
 *
 * Instructions and branch mispredictions dominate the time, so the sweep takes a cube at a time:
 * the boxes of one cube are eight bytes each, compared with sixteen others at once
 * (broad_lanes.h), without a branch per pair. The grid is chosen from order statistics of a
 * sample of the boxes, so that one distant body does not spoil it; a poor grid costs time but
 * never misses a pair. */
#include "collide/broad/broad.h"

#include "collide/broad/broad_lanes.h"

#include <string.h>

enum {
    BRUTE_BOXES = 128, /* up to this number of boxes brute force is faster */
    SAMPLE_SIZE = 64,
    MOST_LEVEL = 12,        /* of the smallest cubes */
    CHUNK_INTERVALS = 1024, /* the sweep's unit of parallel work */
    CHUNK_BOXES = 512,
    CHUNK_PAIRS = 6, /* capacity for pairs, in pairs per interval, before a chunk is repeated */
    MOST_DIGIT_BITS = 11,
    MOST_ENCLOSING = TB_LARGE_LEVEL + 1 /* cubes around a cube */
};

/* cube edge over the size of the smallest boxes of the sample: large cubes make few intervals,
 * small cubes few candidates; the time is flat between 2.5 and 6 */
#define CUBE_EDGE_PER_SIZE TB_R(3.5)

/* Pairs of one chunk, unordered: `count` pairs were found, and stored if they fit `capacity`. */
typedef struct pair_list {
    uint64_t *pairs; /* a | b << 32, a < b */
    int64_t count, capacity;
} pair_list;

typedef struct sweep {
    const tb_box *boxes;
    tb_pair_filter *filter;
    const void *context;
    tb_cell_grid grid;
    tb_key_layout layout;
    bool levels_vary;
    const tb_item *items; /* sorted, followed by one sentinel that belongs to no cube */
    int32_t number_of_items;
    pair_list *lists; /* one a chunk */
} sweep;

/* Result of a chunk of boxes. */
typedef struct chunk_items {
    size_t first; /* place of its items */
    int32_t count, number_of_large;
    uint64_t any, all; /* of the keys */
    bool valid;
} chunk_items;

typedef struct generation {
    const tb_box *boxes;
    int32_t number_of_boxes;
    tb_box_reader reader;
    tb_item *items;
    int32_t *large; /* each chunk's large boxes begin at the index of its first box */
    chunk_items *chunks;
} generation;

static void list_add(pair_list *list, int32_t a, int32_t b)
{
    const uint64_t low = (uint32_t)(a < b ? a : b), high = (uint32_t)(a < b ? b : a);
    if (list->count < list->capacity) list->pairs[list->count] = low | high << 32;
    list->count++;
}

/* ---- sorts ----------------------------------------------------------------------------------- */

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
    /* the count table must not exceed the number of items, nor spread writes beyond the cache */
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

/* Stable radix sort; returns the array that holds the sorted items, `items` or `other`. */
static inline tb_item *sort_items(tb_item *items, tb_item *other, int32_t count, uint64_t varying)
{
    uint32_t places[1 << MOST_DIGIT_BITS];
    const digits d = digits_of(varying, count);
    const uint64_t mask = ((uint64_t)1 << d.bits) - 1;
    for (int32_t digit = 0; digit < d.count; digit++) {
        const int32_t shift = d.shift[digit];
        memset(places, 0, sizeof(uint32_t) << d.bits);
        for (int32_t i = 0; i < count; i++) places[items[i].key >> shift & mask]++;
        counts_to_places(places, 1 << d.bits);
        for (int32_t i = 0; i < count; i++)
            other[places[items[i].key >> shift & mask]++] = items[i];
        tb_item *swap = items;
        items = other;
        other = swap;
    }
    return items;
}

/* A stable counting sort by b; `places` are as many as there are boxes. */
static void sort_by_b(const tb_pair *pairs, uint64_t *out, int32_t count, uint32_t *places,
                      int32_t number_of_boxes)
{
    memset(places, 0, sizeof(uint32_t) * (size_t)number_of_boxes);
    for (int32_t i = 0; i < count; i++) places[pairs[i].b]++;
    counts_to_places(places, number_of_boxes);
    for (int32_t i = 0; i < count; i++)
        out[places[pairs[i].b]++] = (uint32_t)pairs[i].a | (uint64_t)pairs[i].b << 32;
}

/* The same by a, of several lists. */
static void sort_by_a(const pair_list *lists, int32_t number_of_lists, tb_pair *out,
                      uint32_t *places, int32_t number_of_boxes)
{
    memset(places, 0, sizeof(uint32_t) * (size_t)number_of_boxes);
    for (int32_t k = 0; k < number_of_lists; k++)
        for (int64_t i = 0; i < lists[k].count; i++) places[(uint32_t)lists[k].pairs[i]]++;
    counts_to_places(places, number_of_boxes);
    for (int32_t k = 0; k < number_of_lists; k++)
        for (int64_t i = 0; i < lists[k].count; i++) {
            const uint64_t pair = lists[k].pairs[i];
            tb_pair *place = &out[places[(uint32_t)pair]++];
            place->a = (int32_t)(uint32_t)pair;
            place->b = (int32_t)(pair >> 32);
        }
}

/* Sorts pairs that are sorted by a also by b, by insertion, while that is cheap: most boxes have
 * few pairs, nearly in order. Returns whether it finished. */
static bool insert_by_b(tb_pair *pairs, int32_t count)
{
    int64_t moves = 16 * (int64_t)count;
    for (int32_t i = 1; i < count; i++) {
        if (pairs[i - 1].a != pairs[i].a || pairs[i - 1].b <= pairs[i].b) continue;
        const tb_pair pair = pairs[i];
        int32_t j = i;
        for (; j > 0 && pairs[j - 1].a == pair.a && pairs[j - 1].b > pair.b; j--)
            pairs[j] = pairs[j - 1];
        pairs[j] = pair;
        moves -= i - j;
        if (moves < 0) return false;
    }
    return true;
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

/* The grid for these boxes, from a sample. Sampled boxes are valid; unbounded boxes are skipped. */
static tb_cell_grid grid_choose(const tb_box *boxes, int32_t number_of_boxes, int32_t least_level)
{
    tb_real sizes[SAMPLE_SIZE], centres[3][SAMPLE_SIZE];
    int32_t number_of_sizes = 0, number_of_centres = 0;
    for (int32_t i = 0; i < SAMPLE_SIZE; i++) {
        /* one box per stratum, at an index that does not align with the rows of a stack */
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
    tb_cell_grid grid;
    tb_real cell = tb_max(spread * (6 / TB_R(TB_CELL_GRID_CELLS)), tiniest);
    tb_real edge = size * CUBE_EDGE_PER_SIZE;
    grid.minimum_level = least_level;
    if (edge > TB_R(1 << least_level) * cell) {
        while (grid.minimum_level < MOST_LEVEL &&
               TB_R(1 << (grid.minimum_level + 1)) * cell <= edge)
            grid.minimum_level++;
        cell = edge / TB_R(1 << grid.minimum_level);
    }
    grid.inverse_cell = 1 / cell;

    /* The middle lies at a third of the grid: 1/3 = 0.010101... in binary is a third or two thirds
     * of a cube on every level, so that a layer of bodies in one plane
     * is not cut by a face of the cubes. */
    const tb_real third = TB_R(TB_CELL_GRID_CELLS) / 3 * cell;
    grid.origin = tb_v3(middle[0] - third, middle[1] - third, middle[2] - third);
    return grid;
}

int32_t tb_morton_intervals(const tb_box *box, tb_vec3 origin, tb_real cell, uint64_t start[8],
                            uint64_t end[8])
{
    const tb_cell_grid grid = {.origin = origin, .inverse_cell = 1 / cell};
    const tb_cells cells = tb_cell_grid_cells(&grid, box);
    const int32_t level = tb_cells_level(&cells, 0);
    int32_t count = 0;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t cube[3];
        bool reached = true;
        for (int axis = 0; axis < 3; axis++) {
            cube[axis] = (cells.lower[axis] >> level) + (k >> axis & 1);
            reached &= cube[axis] <= cells.upper[axis] >> level;
        }
        if (!reached) continue;
        start[count] = tb_morton_code(cube[0], cube[1], cube[2]) << 3 * level;
        end[count] = tb_morton_end(start[count], level);
        count++;
    }
    return count;
}

/* ---- intervals ------------------------------------------------------------------------------- */

/* The items of a chunk of boxes; large boxes give none. */
static void generate_chunk(void *context, int32_t chunk, int32_t thread)
{
    (void)thread;
    const generation *g = context;
    const int32_t first = chunk * CHUNK_BOXES;
    int32_t last = first + CHUNK_BOXES;
    if (last > g->number_of_boxes) last = g->number_of_boxes;
    chunk_items result = {.first = g->chunks[chunk].first, .all = ~(uint64_t)0, .valid = true};
    tb_item *out = g->items + result.first;
    int32_t *large = g->large + first;
    const tb_box_reader reader = g->reader; /* a local copy, which no write aliases */
    tb_box_check check;
    memset(&check, 0, sizeof check);
    for (int32_t i = first; i < last; i++) {
        const int32_t count = tb_box_items(&reader, &check, &g->boxes[i], (uint32_t)i, out);
        if (count == 0) {
            large[result.number_of_large++] = i;
            continue;
        }
        /* the first and the last have the digits of all between */
        result.any |= out[0].key | out[count - 1].key;
        result.all &= out[0].key & out[count - 1].key;
        out += count;
    }
    result.count = (int32_t)(out - (g->items + result.first));
    if (!tb_box_check_passed(&check))
        for (int32_t i = first; i < last; i++) result.valid &= tb_box_valid(&g->boxes[i]);
    g->chunks[chunk] = result;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Scratch of a thread that processes cubes. */
typedef struct workshop {
    tb_tile tile, queries;
    uint16_t hits[TB_TILE_HITS];
    uint16_t unsure[TB_TILE_HITS];
    uint64_t pairs[TB_TILE_HITS]; /* as in a pair_list */
} workshop;

/* Matches boxes with the boxes of a tile, compares the boxes themselves if their bytes are
 * inconclusive, and applies the filter. Pairs stay in the order of the hits, which is nearly the
 * final order. query_boxes: of the queries; own: the queries are the tile's boxes, which ascend. */
static inline __attribute__((always_inline)) void match(const sweep *s, workshop *w,
                                                        pair_list *list, const tb_item *queries,
                                                        const uint32_t *query_boxes,
                                                        int32_t number_of_queries, bool own)
{
    const int32_t hits = tb_tile_match(&w->tile, queries, number_of_queries, own, w->hits);
    const bool fits = list->count + hits <= list->capacity;
    uint64_t *out = fits ? list->pairs + list->count : w->pairs;
    int32_t unsure = 0;
    for (int32_t h = 0; h < hits; h++) {
        const uint32_t hit = w->hits[h];
        const uint64_t a = query_boxes[hit >> 8], b = w->tile.box[hit % TB_TILE_BOXES];
        const uint64_t low = own || a < b ? a : b, high = own ? b : a ^ b ^ low;
        out[h] = low | high << 32;
        w->unsure[unsure] = (uint16_t)h;
        unsure += (int32_t)(hit / TB_HIT_UNSURE & 1);
    }
    int32_t dropped = 0, count = hits;
    for (int32_t k = 0; k < unsure; k++) {
        const uint16_t h = w->unsure[k];
        w->unsure[dropped] = h;
        dropped += !tb_box_overlap_exact(&s->boxes[(uint32_t)out[h]], &s->boxes[out[h] >> 32]);
    }
    if (dropped > 0) {
        w->unsure[dropped] = (uint16_t)hits; /* ends the last gap */
        count = w->unsure[0];
        for (int32_t k = 0; k < dropped; k++)
            for (int32_t h = w->unsure[k] + 1; h < w->unsure[k + 1]; h++) out[count++] = out[h];
    }
    if (s->filter) {
        int32_t wanted = 0;
        for (int32_t k = 0; k < count; k++) {
            const uint64_t pair = out[k];
            out[wanted] = pair;
            wanted += s->filter(s->context, (int32_t)(uint32_t)pair, (int32_t)(pair >> 32));
        }
        count = wanted;
    }
    if (!fits && list->count + count <= list->capacity)
        memcpy(list->pairs + list->count, out, sizeof(uint64_t) * (size_t)count);
    list->count += count;
}

/* The two instances of match. */
static void match_own(const sweep *s, workshop *w, pair_list *list, const tb_item *queries)
{
    match(s, w, list, queries, w->tile.box, w->tile.count, true);
}

static void match_others(const sweep *s, workshop *w, pair_list *list, const tb_item *queries,
                         int32_t number_of_queries)
{
    uint32_t boxes[TB_TILE_BOXES];
    const uint64_t mask = ((uint64_t)1 << s->layout.box_bits) - 1;
    for (int32_t k = 0; k < number_of_queries; k++) boxes[k] = (uint32_t)(queries[k].key & mask);
    match(s, w, list, queries, boxes, number_of_queries, false);
}

/* The items of one cube with one another, in tiles. */
static void match_cube(const sweep *s, workshop *w, pair_list *list, const tb_item *items,
                       int32_t count)
{
    const uint64_t mask = ((uint64_t)1 << s->layout.box_bits) - 1;
    for (int32_t first = 0; first < count; first += TB_TILE_BOXES) {
        const int32_t size = count - first < TB_TILE_BOXES ? count - first : TB_TILE_BOXES;
        tb_tile_load(&w->tile, items + first, size, mask);
        for (int32_t before = 0; before < first; before += TB_TILE_BOXES)
            match_others(s, w, list, items + before, TB_TILE_BOXES);
        match_own(s, w, list, items + first);
    }
}

/* Items of one cube that encloses the current cube. */
typedef struct enclosing {
    int32_t first, last; /* exclusive */
    uint64_t end;        /* last cube inside */
} enclosing;

/* Matches the items of one cube with the boxes of the enclosing cubes that reach into it. */
static void match_enclosing(const sweep *s, workshop *w, pair_list *list, const tb_item *items,
                            int32_t count, const enclosing *around, int32_t number_around)
{
    const uint64_t mask = ((uint64_t)1 << s->layout.box_bits) - 1;
    const int32_t level =
        tb_cube_level(items[0].key >> s->layout.box_bits, s->layout.minimum_level);
    const tb_cells first = tb_cell_grid_cells(&s->grid, &s->boxes[items[0].key & mask]);
    uint32_t base[3], top[3];
    for (int axis = 0; axis < 3; axis++) {
        const uint32_t beyond = (items[0].local >> 8 * axis & 255) < TB_LOCAL_ZERO;
        base[axis] = ((first.lower[axis] >> level) + beyond) << level;
        top[axis] = base[axis] + (((uint32_t)1 << level) - 1);
    }
    _Alignas(16) tb_item reaching[TB_TILE_BOXES];
    int32_t filled = 0;
    for (int32_t k = 0; k < number_around; k++)
        for (int32_t i = around[k].first; i < around[k].last; i++) {
            const tb_cells c = tb_cell_grid_cells(&s->grid, &s->boxes[s->items[i].key & mask]);
            const bool reaches = (c.lower[0] <= top[0]) & (c.upper[0] >= base[0]) &
                                 (c.lower[1] <= top[1]) & (c.upper[1] >= base[1]) &
                                 (c.lower[2] <= top[2]) & (c.upper[2] >= base[2]);
            if (reaches) {
                reaching[filled].key = s->items[i].key;
                reaching[filled++].local = tb_cells_local(&c, base, level);
            }
            const bool end = k == number_around - 1 && i == around[k].last - 1;
            if (filled < TB_TILE_BOXES && !(end && filled > 0)) continue;
            tb_tile_load(&w->tile, reaching, filled, mask);
            filled = 0;
            for (int32_t q = 0; q < count; q += TB_TILE_BOXES) {
                const int32_t size = count - q < TB_TILE_BOXES ? count - q : TB_TILE_BOXES;
                match_others(s, w, list, items + q, size);
            }
        }
}

/* The first of the first `count` items with a cube >= `cube`. */
static int32_t first_of_cube(const sweep *s, int32_t count, uint64_t cube)
{
    int32_t low = 0, high = count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (s->items[middle].key >> s->layout.box_bits < cube)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The cubes around the one that begins at item i, the largest first. */
static int32_t find_enclosing(const sweep *s, int32_t i, enclosing around[MOST_ENCLOSING])
{
    const uint64_t cube = s->items[i].key >> s->layout.box_bits;
    const int32_t above = 15 - (int32_t)(cube & 15);
    int32_t count = 0;
    for (int32_t a = TB_LARGE_LEVEL - s->layout.minimum_level; a > above; a--) {
        const uint64_t code = cube >> TB_LEVEL_BITS >> 3 * a << 3 * a;
        const uint64_t parent = code << TB_LEVEL_BITS | (uint64_t)(15 - a);
        const int32_t first = first_of_cube(s, i, parent);
        const int32_t last = first_of_cube(s, i, parent + 1);
        if (first == last) continue;
        around[count].first = first;
        around[count].last = last;
        around[count++].end = tb_cube_end(parent);
    }
    return count;
}

/* Processes all cubes that begin in the chunk: matches the items of each with one another, and
 * with the items of the enclosing cubes. */
static void sweep_chunk(void *context, int32_t chunk, int32_t thread)
{
    (void)thread;
    const sweep *s = context;
    pair_list *list = &s->lists[chunk];
    /* the second run repeats only lists that overflowed */
    if (list->count <= list->capacity && list->count > 0) return;
    list->count = 0;

    workshop w;
    const tb_item *items = s->items;
    const int32_t bits = s->layout.box_bits;
    int32_t i = chunk * CHUNK_INTERVALS;
    int32_t last = i + CHUNK_INTERVALS;
    if (last > s->number_of_items) last = s->number_of_items;
    while (i > 0 && i < last && items[i].key >> bits == items[i - 1].key >> bits)
        i++; /* the previous chunk has these */
    if (i == last) return;
    enclosing around[MOST_ENCLOSING];
    int32_t number_around = s->levels_vary ? find_enclosing(s, i, around) : 0;
    while (i < last) {
        const uint64_t cube = items[i].key >> bits;
        int32_t end = i + 1;
        while (items[end].key >> bits == cube) end++;
        if (end - i > 1) match_cube(s, &w, list, items + i, end - i);
        if (s->levels_vary) {
            while (number_around > 0 && around[number_around - 1].end < cube) number_around--;
            if (number_around > 0)
                match_enclosing(s, &w, list, items + i, end - i, around, number_around);
            const uint64_t inside = tb_cube_end(cube);
            if (items[end].key >> bits <= inside) {
                around[number_around].first = i;
                around[number_around].last = end;
                around[number_around++].end = inside;
            }
        }
        i = end;
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
            list_add(list, a, b);
        }
    }
}

/* Joins all lists into one ordered array. */
static tb_status pairs_join(const pair_list *lists, int32_t number_of_lists,
                            int32_t number_of_boxes, tb_arena *arena, tb_pair **pairs,
                            int32_t *count)
{
    int64_t total = 0;
    for (int32_t i = 0; i < number_of_lists; i++) total += lists[i].count;
    if (total > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    tb_pair *result = TB_ARENA_ARRAY(arena, tb_pair, total);
    uint32_t *places = TB_ARENA_ARRAY(arena, uint32_t, number_of_boxes);
    if (!result || !places) return TB_RESOURCE_EXHAUSTED;
    sort_by_a(lists, number_of_lists, result, places, number_of_boxes);
    if (!insert_by_b(result, (int32_t)total)) {
        pair_list by_b = {TB_ARENA_ARRAY(arena, uint64_t, total), total, total};
        if (!by_b.pairs) return TB_RESOURCE_EXHAUSTED;
        sort_by_b(result, by_b.pairs, (int32_t)total, places, number_of_boxes);
        sort_by_a(&by_b, 1, result, places, number_of_boxes);
    }
    *pairs = result;
    *count = (int32_t)total;
    return TB_OK;
}

/* The sorted items of all boxes, and the list of large boxes. */
static tb_status sweep_prepare(sweep *s, int32_t number_of_boxes, int32_t threads, tb_arena *arena,
                               int32_t **large, int32_t *number_of_large)
{
    const size_t most = (size_t)number_of_boxes * 8 + 16;
    const int32_t chunks = (number_of_boxes + CHUNK_BOXES - 1) / CHUNK_BOXES;
    if (most > INT32_MAX) return TB_RESOURCE_EXHAUSTED;
    generation g;
    g.boxes = s->boxes;
    g.number_of_boxes = number_of_boxes;
    while ((int64_t)1 << s->layout.box_bits < number_of_boxes) s->layout.box_bits++;
    s->grid = grid_choose(s->boxes, number_of_boxes, tb_key_least_level(s->layout.box_bits));
    s->layout.minimum_level = s->grid.minimum_level;
    uint64_t table[TB_READER_TABLE];
    g.reader = tb_box_reader_of(&s->grid, s->layout, table);
    g.items = TB_ARENA_ARRAY(arena, tb_item, most);
    g.large = TB_ARENA_ARRAY(arena, int32_t, number_of_boxes);
    g.chunks = TB_ARENA_ARRAY(arena, chunk_items, chunks);
    if (!g.items || !g.large || !g.chunks) return TB_RESOURCE_EXHAUSTED;

    /* one thread writes items consecutively; with several threads each chunk has its full
     * capacity, and the written items are compacted */
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
            memmove(g.items + n, g.items + chunk->first, sizeof(tb_item) * (size_t)chunk->count);
        n += (size_t)chunk->count;
        any |= chunk->any;
        all &= chunk->all;
        memmove(g.large + *number_of_large, g.large + (size_t)c * CHUNK_BOXES,
                sizeof(int32_t) * (size_t)chunk->number_of_large);
        *number_of_large += chunk->number_of_large;
    }
    *large = g.large;

    /* boxes are already in order within a cube */
    tb_item *other = TB_ARENA_ARRAY(arena, tb_item, n + 16);
    if (!other) return TB_RESOURCE_EXHAUSTED;
    const uint64_t varying = n > 0 ? (any ^ all) >> s->layout.box_bits : 0;
    tb_item *sorted = sort_items(g.items, other, (int32_t)n, varying << s->layout.box_bits);
    /* items that a tile may read beyond the last one belong to no cube */
    memset(sorted + n, 0xff, sizeof(tb_item) * 16);
    s->items = sorted;
    s->number_of_items = (int32_t)n;
    s->levels_vary = (varying & 15) != 0;
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
    int32_t *large = NULL, number_of_large = 0;
    const tb_status status =
        sweep_prepare(&s, number_of_boxes, threads, arena, &large, &number_of_large);
    if (status != TB_OK) return status;

    /* a first run with the usual capacity; chunks that overflow run again with the needed
     * capacity */
    const int32_t chunks = (s.number_of_items + CHUNK_INTERVALS - 1) / CHUNK_INTERVALS;
    s.lists = TB_ARENA_ZEROED(arena, pair_list, chunks + 1);
    if (!s.lists) return TB_RESOURCE_EXHAUSTED;
    for (int32_t round = 0; round < 2; round++) {
        bool again = false;
        for (int32_t k = 0; k <= chunks; k++) {
            pair_list *list = &s.lists[k];
            if (round > 0 && list->count <= list->capacity) continue;
            list->capacity = round > 0 ? list->count : CHUNK_INTERVALS * CHUNK_PAIRS;
            list->pairs = TB_ARENA_ARRAY(arena, uint64_t, list->capacity);
            if (!list->pairs) return TB_RESOURCE_EXHAUSTED;
            list->count = 0;
            again = true;
        }
        if (!again) break;
        tb_parallel_for(chunks, 1, threads, sweep_chunk, &s);
        if (s.lists[chunks].count == 0)
            pairs_of_large(&s, large, number_of_large, number_of_boxes, &s.lists[chunks]);
    }
    return pairs_join(s.lists, chunks + 1, number_of_boxes, arena, pairs, count);
}
