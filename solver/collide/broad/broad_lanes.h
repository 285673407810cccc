/* Vector versions of broad.h, for the six faces of a box or for sixteen boxes at once, with
 * bit-identical results: a tile of up to 64 boxes of one cube, and the cubes of a box. They use
 * SSE4.1 if the compiler has it (the default build for x86-64 does) and plain C elsewhere. The
 * code has no branches on data: a misprediction costs as much as a box. */
#ifndef TB_BROAD_LANES_H
#define TB_BROAD_LANES_H

#include "collide/broad/broad.h"

#if defined(__SSE4_1__) && !defined(TB_PLAIN_LANES)
#define TB_LANES_SSE 1
#include <smmintrin.h>
#endif

enum {
    TB_TILE_BOXES = 64,
    TB_TILE_HITS = TB_TILE_BOXES * TB_TILE_BOXES + 16, /* largest number of matches of a tile */
    TB_HIT_UNSURE = 128,
    TB_SPREAD_BITS = 9,
    TB_READER_TABLE = (1 << TB_SPREAD_BITS) + 1
};

/* Boxes of one cube, as arrays by byte. Entries after the last one hold boxes that overlap none. */
typedef struct tb_tile {
    _Alignas(16) int8_t local[8][TB_TILE_BOXES + 16]; /* less TB_LOCAL_ZERO */
    uint32_t box[TB_TILE_BOXES];
    int32_t count;
} tb_tile;

/* ---- plain C --------------------------------------------------------------------------------- */

/* Turns boxes into items, and records whether a box may be invalid. */
typedef struct tb_box_reader {
    tb_cell_grid grid;
    tb_key_layout layout;
#ifdef TB_LANES_SSE
    uint64_t key;           /* key without box for the cube with code 0 */
    bool narrow;            /* the table contains every smallest cube */
    const uint64_t *spread; /* digits of a cube's number at their place in a key */
#endif
} tb_box_reader;

/* Check of the boxes read so far: no extent is negative, and every extent minus itself is zero
 * (finite). */
typedef struct tb_box_check {
    tb_real least, nothing;
#ifdef TB_LANES_SSE
    __m128d least_lanes, nothing_lanes;
#endif
} tb_box_check;

/* `table` serves the reader. */
static inline tb_box_reader tb_box_reader_of(const tb_cell_grid *grid, tb_key_layout layout,
                                             uint64_t table[TB_READER_TABLE])
{
    tb_box_reader reader = {.grid = *grid, .layout = layout};
#ifdef TB_LANES_SSE
    reader.key = (uint64_t)15 << layout.box_bits;
    reader.narrow = TB_CELL_GRID_BITS - layout.minimum_level <= TB_SPREAD_BITS;
    reader.spread = table;
    for (uint32_t x = 0; reader.narrow && x < TB_READER_TABLE; x++)
        table[x] = tb_morton_spread(x) << (TB_LEVEL_BITS + layout.box_bits);
#else
    (void)table;
#endif
    return reader;
}

/* The items of a box, none if its level is above TB_LARGE_LEVEL; all eight places are written. */
static inline int32_t tb_box_items_plain(const tb_box_reader *reader, tb_box_check *check,
                                         const tb_box *box, uint32_t number, tb_item out[8])
{
    const tb_vec3 e = tb_v3_sub(box->upper, box->lower);
    check->least = tb_min(tb_min(e.x, e.y), tb_min(e.z, check->least));
    check->nothing += (e.x - e.x) + (e.y - e.y) + (e.z - e.z);
    const tb_cells cells = tb_cell_grid_cells(&reader->grid, box);
    const int32_t level = tb_cells_level(&cells, reader->layout.minimum_level);
    return level > TB_LARGE_LEVEL ? 0 : tb_cells_items(&cells, level, reader->layout, number, out);
}

/* True only if all boxes read are valid; false is inconclusive. */
static inline bool tb_box_check_passed(const tb_box_check *check)
{
#ifdef TB_LANES_SSE
    const __m128d zero = _mm_setzero_pd();
    const __m128d good = _mm_and_pd(_mm_cmpge_pd(check->least_lanes, zero),
                                    _mm_cmpeq_pd(check->nothing_lanes, zero));
    if (_mm_movemask_pd(good) != 3) return false;
#endif
    return check->least >= 0 && check->nothing == 0;
}

/* Loads `count` items of one cube; also reads up to 15 items beyond them, of any content. */
static inline void tb_tile_load_plain(tb_tile *tile, const tb_item *items, int32_t count,
                                      uint64_t box_mask)
{
    tile->count = count;
    for (int32_t i = 0; i < count; i++) {
        for (int byte = 0; byte < 8; byte++)
            tile->local[byte][i] =
                (int8_t)((int32_t)(items[i].local >> 8 * byte & 255) - TB_LOCAL_ZERO);
        tile->box[i] = (uint32_t)(items[i].key & box_mask);
    }
}

/* Finds the boxes of the tile that each query overlaps; if the queries are the tile's own boxes,
 * only the boxes after the query. Writes query << 8 | index in the tile | TB_HIT_UNSURE if the
 * boxes themselves must be compared; ordered by query, then index. Returns the number of hits. */
static inline int32_t tb_tile_match_plain(const tb_tile *tile, const tb_item *queries,
                                          int32_t number_of_queries, bool own,
                                          uint16_t hits[TB_TILE_HITS])
{
    int32_t count = 0;
    for (int32_t i = 0; i < number_of_queries; i++)
        for (int32_t j = own ? i + 1 : 0; j < tile->count; j++) {
            uint64_t local = 0;
            for (int byte = 0; byte < 8; byte++)
                local |= (uint64_t)(tile->local[byte][j] + TB_LOCAL_ZERO) << 8 * byte;
            const int32_t overlap = tb_local_overlap(queries[i].local, local);
            hits[count] = (uint16_t)(i << 8 | j | (overlap == 0 ? TB_HIT_UNSURE : 0));
            count += overlap >= 0;
        }
    return count;
}

/* ---- SSE4.1 ---------------------------------------------------------------------------------- */

#ifdef TB_LANES_SSE

/* As the plain one, with a box's faces in two vectors. Key and bytes of an item are one vector:
 * one addition gives the next cube along an axis. Always writes eight items, and overwrites the
 * second half if the box reaches no farther along an axis. */
#ifndef TB_SINGLE
static inline int32_t tb_box_items_sse(const tb_box_reader *reader, tb_box_check *check,
                                       const tb_box *box, uint32_t number, tb_item out[8])
{
    const tb_cell_grid *grid = &reader->grid;
    const tb_key_layout layout = reader->layout;
    __m128i lower, upper; /* x, y, z, anything */
    const __m128d low_xy = _mm_loadu_pd(&box->lower.x), up_xy = _mm_loadu_pd(&box->upper.x);
    const __m128d z = _mm_loadh_pd(_mm_load_sd(&box->lower.z), &box->upper.z);
    const __m128d o_xy = _mm_loadu_pd(&grid->origin.x), o_z = _mm_load1_pd(&grid->origin.z);
    const __m128d scale = _mm_load1_pd(&grid->inverse_cell), nil = _mm_setzero_pd();
    const __m128d last_cell = _mm_set1_pd(TB_CELL_GRID_CELLS - 1);
#define CELLS(x, o)                                                                                \
    _mm_cvttpd_epi32(_mm_min_pd(_mm_max_pd(_mm_mul_pd(_mm_sub_pd(x, o), scale), nil), last_cell))
    const __m128i cells_z = CELLS(z, o_z);
    lower = _mm_unpacklo_epi64(CELLS(low_xy, o_xy), cells_z);
    upper = _mm_unpacklo_epi64(CELLS(up_xy, o_xy), _mm_shuffle_epi32(cells_z, 1));
#undef CELLS
    const __m128d e_xy = _mm_sub_pd(up_xy, low_xy);
    const __m128d e_z = _mm_sub_sd(_mm_unpackhi_pd(z, z), z); /* and the upper z */
    check->least_lanes =
        _mm_min_pd(_mm_min_pd(e_xy, check->least_lanes), _mm_unpacklo_pd(e_z, e_z));
    check->nothing_lanes = _mm_add_pd(check->nothing_lanes, _mm_sub_pd(e_xy, e_xy));
    check->nothing_lanes = _mm_add_pd(check->nothing_lanes, _mm_sub_pd(e_z, e_z));
    const __m128i extent = _mm_sub_epi32(upper, lower);
    const __m128i edge = _mm_set1_epi32(1 << layout.minimum_level);
    const int longer = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(extent, edge)));
    if ((longer & 7) || !reader->narrow) {
        tb_cells cells;
        _mm_storeu_si128((__m128i *)(void *)cells.lower, lower);
        _mm_storeu_si128((__m128i *)(void *)cells.upper, upper);
        const int32_t level = tb_cells_level(&cells, layout.minimum_level);
        return level > TB_LARGE_LEVEL ? 0 : tb_cells_items(&cells, level, layout, number, out);
    }

    /* the lower cube, and 64ths of it */
    const __m128i to_local = _mm_cvtsi32_si128(layout.minimum_level - TB_LOCAL_BITS);
    const __m128i lower_local = _mm_srl_epi32(lower, to_local);
    const __m128i upper_local = _mm_srl_epi32(upper, to_local);
    const __m128i cube = _mm_srli_epi32(lower_local, TB_LOCAL_BITS);
    const __m128i base =
        _mm_sub_epi32(_mm_slli_epi32(cube, TB_LOCAL_BITS), _mm_set1_epi32(TB_LOCAL_ZERO));
    const __m128i from = _mm_sub_epi32(lower_local, base), to = _mm_sub_epi32(upper_local, base);
    const __m128i words = _mm_packus_epi32(from, to);
    const __m128i local =
        _mm_and_si128(_mm_packus_epi16(words, words), _mm_set1_epi64x(0x00ffffff00ffffff));
    const uint32_t reaches = (uint32_t)_mm_movemask_ps(
        _mm_castsi128_ps(_mm_cmpgt_epi32(to, _mm_set1_epi32(2 * TB_LOCAL_ZERO - 1))));

    const uint64_t *spread = reader->spread;
    const uint64_t *sx = spread + (uint32_t)_mm_cvtsi128_si32(cube);
    const uint64_t *sy = spread + (uint32_t)_mm_extract_epi32(cube, 1);
    const uint64_t *sz = spread + (uint32_t)_mm_extract_epi32(cube, 2);
    const uint64_t key = sx[0] + 2 * (sy[0] + 2 * sz[0]) + (reader->key + number);
#define STEP(k, axis)                                                                              \
    _mm_sub_epi64(_mm_cvtsi64_si128((long long)(k)),                                               \
                  _mm_set_epi64x((long long)0x4000000040 << 8 * (axis), 0))
    const __m128i along_x = STEP(sx[1] - sx[0], 0);
    const __m128i along_y = STEP(2 * (sy[1] - sy[0]), 1);
    const __m128i along_z = STEP(4 * (sz[1] - sz[0]), 2);
#undef STEP
    const __m128i i0 = _mm_unpacklo_epi64(_mm_cvtsi64_si128((long long)key), local);
    const __m128i i1 = _mm_add_epi64(i0, along_x);
    const __m128i i2 = _mm_add_epi64(i0, along_y), i3 = _mm_add_epi64(i1, along_y);
    __m128i *p = (__m128i *)(void *)out;
    _mm_store_si128(p, i0);
    _mm_store_si128(p + 1, i1);
    int32_t count = 1 + (int32_t)(reaches & 1);
    _mm_store_si128(p + count, i2);
    _mm_store_si128(p + count + 1, i3);
    count <<= reaches >> 1 & 1;
    _mm_store_si128(p + count, _mm_add_epi64(i0, along_z));
    _mm_store_si128(p + count + 1, _mm_add_epi64(i1, along_z));
    /* the rest only counts where y doubled the list */
    const int32_t next = count + 1 + (int32_t)(reaches & 1);
    _mm_store_si128(p + next, _mm_add_epi64(i2, along_z));
    _mm_store_si128(p + next + 1, _mm_add_epi64(i3, along_z));
    return count << (reaches >> 2 & 1);
}
#endif

static inline void tb_tile_load_sse(tb_tile *tile, const tb_item *items, int32_t count,
                                    uint64_t box_mask)
{
    const __m128i zero = _mm_set1_epi8(TB_LOCAL_ZERO);
    tile->count = count;
    for (int32_t block = 0; 16 * block < count; block++) {
        /* a transposition of 16 by 8 bytes */
        __m128i a[8], b[8];
        const __m128i *in = (const __m128i *)(const void *)(items + 16 * block);
        for (int i = 0; i < 8; i++) /* items i and i + 8 */
            a[i] = _mm_unpackhi_epi64(_mm_load_si128(in + i), _mm_load_si128(in + i + 8));
        for (int i = 0; i < 4; i++) { /* bytes of items i, i + 4; and of i + 8, i + 12 */
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 4]);
            b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 4]);
        }
        for (int i = 0; i < 2; i++) { /* items i, i + 2, i + 4, i + 6, bytes 0 to 3; 4 to 7 */
            for (int half = 0; half < 2; half++) {
                const __m128i x = b[2 * i + half], y = b[2 * i + 4 + half];
                a[4 * i + 2 * half] = _mm_unpacklo_epi8(x, y);
                a[4 * i + 2 * half + 1] = _mm_unpackhi_epi8(x, y);
            }
        }
        for (int part = 0; part < 2; part++) { /* bytes 0 to 3; 4 to 7 */
            const __m128i low0 = _mm_unpacklo_epi8(a[part], a[4 + part]);
            const __m128i low1 = _mm_unpackhi_epi8(a[part], a[4 + part]);
            const __m128i high0 = _mm_unpacklo_epi8(a[2 + part], a[6 + part]);
            const __m128i high1 = _mm_unpackhi_epi8(a[2 + part], a[6 + part]);
            const __m128i x = _mm_unpacklo_epi64(low0, high0), y = _mm_unpackhi_epi64(low0, high0);
            const __m128i z = _mm_unpacklo_epi64(low1, high1);
            int8_t(*out)[TB_TILE_BOXES + 16] = &tile->local[4 * part];
            _mm_store_si128((__m128i *)(void *)(out[0] + 16 * block), _mm_sub_epi8(x, zero));
            _mm_store_si128((__m128i *)(void *)(out[1] + 16 * block), _mm_sub_epi8(y, zero));
            _mm_store_si128((__m128i *)(void *)(out[2] + 16 * block), _mm_sub_epi8(z, zero));
        }
    }
    /* an upper corner below the cube meets no box */
    _mm_storeu_si128((__m128i *)(void *)(tile->local[4] + count), _mm_set1_epi8(-128));
    for (int32_t i = 0; i < count; i++) tile->box[i] = (uint32_t)(items[i].key & box_mask);
}

/* The indices of the set bits of a byte, lowest first, one per byte. */
#define BELOW(m, b) ((m) & ((1u << (b)) - 1))
#define SUM(m)                                                                                     \
    (((m)&1) + ((m) >> 1 & 1) + ((m) >> 2 & 1) + ((m) >> 3 & 1) + ((m) >> 4 & 1) +                 \
     ((m) >> 5 & 1) + ((m) >> 6 & 1))
#define PLACE(m, b) ((uint64_t)((m) >> (b)&1) * (b) << 8 * SUM(BELOW(m, b)))
#define PLACES(m)                                                                                  \
    (PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) |           \
     PLACE(m, 7))
#define PLACES_4(m)  PLACES((m)), PLACES((m) + 1u), PLACES((m) + 2u), PLACES((m) + 3u)
#define PLACES_16(m) PLACES_4(m), PLACES_4(m + 4u), PLACES_4(m + 8u), PLACES_4(m + 12u)
#define PLACES_64(m) PLACES_16(m), PLACES_16(m + 16u), PLACES_16(m + 32u), PLACES_16(m + 48u)
static const uint64_t tb_places_of_bits[256] = {PLACES_64(0u), PLACES_64(64u), PLACES_64(128u),
                                                PLACES_64(192u)};
#undef BELOW
#undef SUM
#undef PLACE
#undef PLACES
#undef PLACES_4
#undef PLACES_16
#undef PLACES_64

static inline __attribute__((always_inline)) int32_t
tb_tile_match_sse(const tb_tile *tile, const tb_item *queries, int32_t number_of_queries, bool own,
                  uint16_t hits[TB_TILE_HITS])
{
    const __m128i nil = _mm_setzero_si128(), one = _mm_set1_epi8(1);
    const __m128i sixteen = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int32_t tile_count = tile->count;
    __m128i query_places = nil, first_places = own ? _mm_add_epi8(sixteen, one) : sixteen;
    int32_t count = 0;
    for (int32_t i = 0; i < number_of_queries; i++) {
        const __m128i q =
            _mm_sub_epi8(_mm_loadl_epi64((const __m128i *)(const void *)&queries[i].local),
                         _mm_set1_epi8(TB_LOCAL_ZERO));
        __m128i places = first_places;
        for (int32_t j = own ? i + 1 : 0; j < tile_count; j += 16) {
            /* the intersection's lower corner and extent */
#define TILE(byte)  _mm_loadu_si128((const __m128i *)(const void *)(tile->local[byte] + j))
#define QUERY(byte) _mm_shuffle_epi8(q, _mm_set1_epi8(byte))
            const __m128i x = _mm_max_epi8(TILE(0), QUERY(0));
            const __m128i y = _mm_max_epi8(TILE(1), QUERY(1));
            const __m128i z = _mm_max_epi8(TILE(2), QUERY(2));
            __m128i least = _mm_subs_epi8(_mm_min_epi8(TILE(4), QUERY(4)), x);
            least = _mm_min_epi8(least, _mm_subs_epi8(_mm_min_epi8(TILE(5), QUERY(5)), y));
            least = _mm_min_epi8(least, _mm_subs_epi8(_mm_min_epi8(TILE(6), QUERY(6)), z));
#undef TILE
#undef QUERY
            const __m128i below = _mm_or_si128(_mm_or_si128(x, y), z);
            const uint32_t met = 0xffffu ^ (uint32_t)_mm_movemask_epi8(_mm_or_si128(below, least));

            /* boxes that meet move together */
            const __m128i unsure =
                _mm_and_si128(_mm_cmpeq_epi8(least, nil), _mm_set1_epi8((char)TB_HIT_UNSURE));
            const __m128i values = _mm_or_si128(unsure, places);
            places = _mm_add_epi8(places, _mm_set1_epi8(16));
            const uint32_t low = met & 255, high = met >> 8;
            const __m128i low_places =
                _mm_loadl_epi64((const __m128i *)(const void *)&tb_places_of_bits[low]);
            const __m128i high_places =
                _mm_loadl_epi64((const __m128i *)(const void *)&tb_places_of_bits[high]);
            const __m128i low_values = _mm_shuffle_epi8(values, low_places);
            const __m128i high_values = _mm_shuffle_epi8(_mm_srli_si128(values, 8), high_places);
            __m128i *out = (__m128i *)(void *)(hits + count);
            _mm_storeu_si128(out, _mm_unpacklo_epi8(low_values, query_places));
            out = (__m128i *)(void *)(hits + count + __builtin_popcount(low));
            _mm_storeu_si128(out, _mm_unpacklo_epi8(high_values, query_places));
            count += __builtin_popcount(met);
        }
        query_places = _mm_add_epi8(query_places, one);
        if (own) first_places = _mm_add_epi8(first_places, one);
    }
    return count;
}

/* Closed boxes, so that touching counts; without branches. */
static inline bool tb_box_overlap_sse(const tb_box *a, const tb_box *b)
{
#ifdef TB_SINGLE
    return tb_box_overlap_likely(a, b);
#else
    const __m128d low_a = _mm_loadu_pd(&a->lower.x), low_b = _mm_loadu_pd(&b->lower.x);
    __m128d apart = _mm_cmpnle_pd(low_a, _mm_loadu_pd(&b->upper.x));
    apart = _mm_or_pd(apart, _mm_cmpnle_pd(low_b, _mm_loadu_pd(&a->upper.x)));
    apart = _mm_or_pd(apart, _mm_cmpnle_sd(_mm_load_sd(&a->lower.z), _mm_load_sd(&b->upper.z)));
    apart = _mm_or_pd(apart, _mm_cmpnle_sd(_mm_load_sd(&b->lower.z), _mm_load_sd(&a->upper.z)));
    return _mm_movemask_pd(apart) == 0;
#endif
}

#endif

/* ---- which ----------------------------------------------------------------------------------- */

/* Closed boxes, so that touching counts; without branches. */
static inline bool tb_box_overlap_exact(const tb_box *a, const tb_box *b)
{
#ifdef TB_LANES_SSE
    return tb_box_overlap_sse(a, b);
#else
    return tb_box_overlap_likely(a, b);
#endif
}

static inline int32_t tb_box_items(const tb_box_reader *reader, tb_box_check *check,
                                   const tb_box *box, uint32_t number, tb_item out[8])
{
#if defined(TB_LANES_SSE) && !defined(TB_SINGLE)
    return tb_box_items_sse(reader, check, box, number, out);
#else
    return tb_box_items_plain(reader, check, box, number, out);
#endif
}

static inline void tb_tile_load(tb_tile *tile, const tb_item *items, int32_t count,
                                uint64_t box_mask)
{
#ifdef TB_LANES_SSE
    tb_tile_load_sse(tile, items, count, box_mask);
#else
    tb_tile_load_plain(tile, items, count, box_mask);
#endif
}

static inline int32_t tb_tile_match(const tb_tile *tile, const tb_item *queries,
                                    int32_t number_of_queries, bool own,
                                    uint16_t hits[TB_TILE_HITS])
{
#ifdef TB_LANES_SSE
    return tb_tile_match_sse(tile, queries, number_of_queries, own, hits);
#else
    return tb_tile_match_plain(tile, queries, number_of_queries, own, hits);
#endif
}

#endif
