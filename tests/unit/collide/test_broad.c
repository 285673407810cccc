/* The broad phase against brute force on thousands of random scenes, Morton codes and intervals,
 * and the errors for invalid boxes. test_broad_f32.c compiles this again in float. */
#include "collide/broad/broad.h"
#include "collide/broad/broad_lanes.h"
#include "test_util.h"

#ifdef __SANITIZE_ADDRESS__
/* a sanitizer needs every path once, not many scenes */
enum { MOST_BOXES = 4000, SCENES = 300 };
#else
enum { MOST_BOXES = 4000, SCENES = 3000 };
#endif

typedef enum scene_kind {
    EQUAL_SIZES,
    WILD_SIZES, /* over five decades */
    COINCIDENT, /* all in one place */
    FLAT,       /* of no thickness, in one plane */
    TOUCHING,   /* on a lattice of their own size */
    POINTS,     /* of no size, many on one another */
    SPARSE,
    CLUSTERED, /* distances over sixteen decades */
    FAR_AWAY,  /* from the origin */
    HALF_HUGE, /* many without bounds */
    SCENE_KINDS
} scene_kind;

static void scene_make(scene_kind kind, tb_random *random, tb_box *boxes, int32_t n)
{
    const double w = pow(10, tb_random_between(random, -6, 3));
    const bool planes = kind == HALF_HUGE || tb_random_uniform(random) < 0.3;
    for (int32_t i = 0; i < n; i++) {
        double c[3], h[3];
        for (int k = 0; k < 3; k++) {
            c[k] = w * tb_random_between(random, -1, 1);
            h[k] = 0.05 * w * tb_random_uniform(random);
            if (kind == EQUAL_SIZES) h[k] = 0.04 * w;
            if (kind == WILD_SIZES) h[k] = w * pow(10, tb_random_between(random, -5, 0.3));
            if (kind == COINCIDENT) c[k] = w, h[k] = 0.1 * w;
            if (kind == FLAT && k == 2) c[k] = h[k] = 0;
            if (kind == TOUCHING) c[k] = floor(8 * c[k] / w) * w / 8, h[k] = w / 16;
            if (kind == POINTS) c[k] = floor(4 * c[k] / w) * w, h[k] = 0;
            if (kind == SPARSE) c[k] *= 100;
            if (kind == CLUSTERED) c[k] = w * pow(10, tb_random_between(random, -8, 8));
            if (kind == FAR_AWAY) c[k] += 1e3 * w;
        }
        const bool huge = planes && tb_random_uniform(random) < (kind == HALF_HUGE ? 0.5 : 0.02);
        for (int k = 0; k < 3 && huge; k++) c[k] = 0, h[k] = (double)TB_REAL_MAX / 4;
        boxes[i].lower = tb_v3(TB_R(c[0] - h[0]), TB_R(c[1] - h[1]), TB_R(c[2] - h[2]));
        boxes[i].upper = tb_v3(TB_R(c[0] + h[0]), TB_R(c[1] + h[1]), TB_R(c[2] + h[2]));
    }
}

/* odd, even, but not both ends of some residues: a filter with no pattern in the grid */
static bool some(const void *context, int32_t a, int32_t b)
{
    ck_assert_int_lt(a, b);
    return (a * 31 + b) % *(const int *)context != 0;
}

static void expect_same(const tb_box *boxes, int32_t n, tb_pair_filter *filter, const void *context,
                        int32_t threads, tb_arena *arena, const char *what)
{
    tb_pair *found, *expected;
    int32_t count, expected_count;
    tb_arena_reset(arena);
    ck_assert_int_eq(tb_broad_phase(boxes, n, filter, context, threads, arena, &found, &count),
                     TB_OK);
    ck_assert_int_eq(
        tb_broad_phase_brute(boxes, n, filter, context, arena, &expected, &expected_count), TB_OK);
    ck_assert_msg(count == expected_count, "%s: %d pairs of %d boxes, not %d", what, count, n,
                  expected_count);
    ck_assert_msg(count == 0 || memcmp(found, expected, sizeof(tb_pair) * (size_t)count) == 0,
                  "%s: other pairs", what);
}

START_TEST(thousands_of_random_scenes_give_the_pairs_of_brute_force)
{
    static tb_box boxes[MOST_BOXES];
    tb_arena arena = {0};
    tb_random random = tb_random_stream(1, 2);
    for (int trial = 0; trial < SCENES; trial++) {
        const scene_kind kind = (scene_kind)(trial % SCENE_KINDS);
        const double most = trial % 100 < SCENE_KINDS ? 1500 : 250;
        const int32_t n = (int32_t)tb_random_between(&random, 0, most);
        scene_make(kind, &random, boxes, n);
        char what[64];
        snprintf(what, sizeof what, "scene %d of kind %d", trial, (int)kind);
        const int modulus = 2 + trial % 3;
        if (trial % 4)
            expect_same(boxes, n, NULL, NULL, 1, &arena, what);
        else
            expect_same(boxes, n, some, &modulus, 1 + trial % 3, &arena, what);
    }
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(pairs_do_not_depend_on_the_number_of_threads)
{
    static tb_box boxes[MOST_BOXES];
    tb_arena arena = {0};
    tb_random random = tb_random_stream(2, 2);
    for (int trial = 0; trial < 30; trial++) {
        scene_make((scene_kind)(trial % HALF_HUGE), &random, boxes, MOST_BOXES / 2);
        expect_same(boxes, MOST_BOXES / 2, NULL, NULL, 1, &arena, "one thread");
        expect_same(boxes, MOST_BOXES / 2, NULL, NULL, 2, &arena, "two threads");
        expect_same(boxes, MOST_BOXES / 2, NULL, NULL, 5, &arena, "five threads");
    }
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(a_body_that_flew_away_or_stands_apart_in_size_spoils_nothing)
{
    static tb_box boxes[MOST_BOXES];
    tb_arena arena = {0};
    tb_random random = tb_random_stream(3, 2);
    for (int trial = 0; trial < 20; trial++) {
        scene_make(EQUAL_SIZES, &random, boxes, MOST_BOXES);
        for (int k = 0; k < 5; k++) {
            const tb_real far = TB_R(pow(10, 3 + 5 * k));
            boxes[100 * k].lower.x += far;
            boxes[100 * k].upper.x += far;
            boxes[50 + 100 * k].upper.y += far;
        }
        expect_same(boxes, MOST_BOXES, NULL, NULL, 1, &arena, "flown away");
    }
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(a_warm_call_takes_no_memory_from_the_system)
{
    static tb_box boxes[MOST_BOXES];
    tb_arena arena = {0};
    tb_random random = tb_random_stream(4, 2);
    scene_make(EQUAL_SIZES, &random, boxes, MOST_BOXES);
    int64_t allocations = 0;
    for (int k = 0; k < 5; k++) {
        tb_pair *pairs;
        int32_t count;
        tb_arena_reset(&arena);
        if (k == 2) allocations = arena.allocations;
        ck_assert_int_eq(tb_broad_phase(boxes, MOST_BOXES, NULL, NULL, 1, &arena, &pairs, &count),
                         TB_OK);
    }
    ck_assert_int_eq(arena.allocations, allocations);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(boxes_that_are_not_finite_or_inside_out_are_refused)
{
    static tb_box boxes[1000];
    tb_arena arena = {0};
    tb_random random = tb_random_stream(5, 2);
    for (int trial = 0; trial < 60; trial++) {
        const int32_t n = trial % 2 ? 10 : 1000, bad = (int32_t)tb_random_between(&random, 0, n);
        scene_make(EQUAL_SIZES, &random, boxes, n);
        tb_box *b = &boxes[bad];
        tb_real *p[6] = {&b->lower.x, &b->lower.y, &b->lower.z,
                         &b->upper.x, &b->upper.y, &b->upper.z};
        const int which = (int)tb_random_between(&random, 0, 6);
        if (trial % 5 == 0)
            *p[which] = TB_R(NAN);
        else if (trial % 5 == 1)
            *p[which] = TB_R(INFINITY);
        else if (trial % 5 == 2)
            *p[which] = -TB_R(INFINITY);
        else if (trial % 5 == 3)
            b->lower.y = 2 * tb_abs(b->upper.y) + 1;
        else
            b->lower.x = b->lower.y = b->lower.z = TB_R(NAN);
        tb_pair *pairs;
        int32_t count = -1;
        ck_assert_int_eq(tb_broad_phase(boxes, n, NULL, NULL, 1, &arena, &pairs, &count),
                         TB_INVALID_ARGUMENT);
        ck_assert_int_eq(count, 0);
        ck_assert_int_eq(tb_broad_phase_brute(boxes, n, NULL, NULL, &arena, &pairs, &count),
                         TB_INVALID_ARGUMENT);
    }
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(memory_that_is_refused_is_said)
{
    static tb_box boxes[1000];
    tb_random random = tb_random_stream(6, 2);
    scene_make(COINCIDENT, &random, boxes, 1000);
    for (size_t limit = 1; limit < 40u << 20; limit *= 4) {
        tb_arena arena;
        tb_arena_init(&arena, limit);
        tb_pair *pairs;
        int32_t count;
        const tb_status status = tb_broad_phase(boxes, 1000, NULL, NULL, 1, &arena, &pairs, &count);
        ck_assert(status == TB_RESOURCE_EXHAUSTED || (status == TB_OK && count == 499500));
        tb_arena_destroy(&arena);
    }
}
END_TEST

START_TEST(morton_codes_interleave_the_bits)
{
    tb_random random = tb_random_stream(7, 2);
    for (int trial = 0; trial < 2000; trial++) {
        uint32_t c[3];
        uint64_t expected = 0;
        for (int k = 0; k < 3; k++) {
            c[k] = tb_random_u32(&random) & 0x1fffff;
            for (int bit = 0; bit < 21; bit++)
                expected |= (uint64_t)(c[k] >> bit & 1) << (3 * bit + k);
        }
        ck_assert_uint_eq(tb_morton_code(c[0], c[1], c[2]), expected);
    }
}
END_TEST

/* Cubes of one size that are aligned, disjoint, at most eight, and hold the box. */
START_TEST(intervals_of_a_box_are_the_cubes_that_cover_it)
{
    tb_random random = tb_random_stream(8, 2);
    for (int trial = 0; trial < 3000; trial++) {
        tb_cell_grid grid = {.origin = tb_v3(0, 0, 0), .inverse_cell = 1};
        const double size = pow(2, tb_random_between(&random, -2, 12));
        tb_box box;
        box.lower = tb_v3(TB_R(tb_random_between(&random, 0, 30000)),
                          TB_R(tb_random_between(&random, 0, 30000)),
                          TB_R(tb_random_between(&random, 0, 30000)));
        box.upper = tb_v3_add(box.lower, tb_v3(TB_R(size), TB_R(size * tb_random_uniform(&random)),
                                               TB_R(size * tb_random_uniform(&random))));
        const tb_cells cells = tb_cell_grid_cells(&grid, &box);
        uint64_t start[8], end[8];
        const int32_t count = tb_morton_intervals(&box, grid.origin, 1, start, end);
        ck_assert(count == 1 || count == 2 || count == 4 || count == 8);
        const uint64_t volume = end[0] - start[0] + 1;
        for (int32_t i = 0; i < count; i++) {
            ck_assert_uint_eq(end[i] - start[i] + 1, volume);
            ck_assert_uint_eq(start[i] % volume, 0);
            for (int32_t k = 0; k < i; k++) ck_assert(start[i] != start[k]);
        }
        /* corners and random cells of the box lie in one of them */
        for (int probe = 0; probe < 20; probe++) {
            uint32_t c[3];
            for (int k = 0; k < 3; k++) {
                const uint32_t range = cells.upper[k] - cells.lower[k] + 1;
                c[k] = probe < 8 ? (probe >> k & 1 ? cells.upper[k] : cells.lower[k])
                                 : cells.lower[k] + tb_random_u32(&random) % range;
            }
            const uint64_t code = tb_morton_code(c[0], c[1], c[2]);
            int holds = 0;
            for (int32_t i = 0; i < count; i++) holds += code >= start[i] && code <= end[i];
            ck_assert_int_eq(holds, 1);
        }
    }
}
END_TEST

/* Göteman and Roxling, Table 8.1, with the printed kernel's arithmetic: balls of 1 m in a triangle
 * of 100 rows, and one in front. In float the sums of cells lose the last bits that decide. */
START_TEST(intervals_per_body_are_those_of_the_published_table)
{
    if (sizeof(tb_real) == 4) return;
    const double cell[] = {2, 1, 0.5, 0.1, 0.01, 0.001}, printed[] = {4.5, 8.0, 8.0, 5.2, 3.2, 7.8};
    for (int k = 0; k < 6; k++) {
        const double corner = -(1e6 + 97151) * cell[k];
        int64_t sum = 0, n = 0;
        for (int r = 0; r <= 100; r++)
            for (int c = 0; c <= (r < 100 ? r : 0); c++) {
                const double x = r < 100 ? c - 0.5 * r : 0, z = r < 100 ? r * sqrt(0.75) : -2;
                tb_box box;
                box.lower = tb_v3(TB_R(x - 0.5), TB_R(-0.5), TB_R(z - 0.5));
                box.upper = tb_v3(TB_R(x + 0.5), TB_R(0.5), TB_R(z + 0.5));
                uint64_t start[8], end[8];
                sum += tb_morton_intervals(&box, tb_v3(TB_R(corner), TB_R(corner), TB_R(corner)),
                                           TB_R(cell[k]), start, end);
                n++;
            }
        ck_assert_int_eq(n, 5051);
        TEST_NEAR((double)sum / (double)n, printed[k], 0.06);
    }
}
END_TEST

/* Boxes as items, and items of one cube with one another: vector units beside plain C. */
START_TEST(sixteen_at_a_time_are_what_one_at_a_time_are)
{
    static tb_item own[TB_TILE_BOXES + 16];
    static tb_tile tile, plain_tile;
    static uint16_t hits[TB_TILE_HITS], plain_hits[TB_TILE_HITS];
    uint64_t table[TB_READER_TABLE];
    tb_random random = tb_random_stream(9, 2);
    for (int trial = 0; trial < 200; trial++) {
        const tb_key_layout layout = {10, (int32_t)tb_random_between(&random, 7, 13)};
        const double edge = ldexp(1, layout.minimum_level);
        const tb_cell_grid grid = {tb_v3(-1, 2, -3), TB_R(1), layout.minimum_level};
        const tb_box_reader reader = tb_box_reader_of(&grid, layout, table);
        tb_box_check check;
        memset(&check, 0, sizeof check);
        for (uint32_t i = 0; i < 1000; i++) {
            tb_box box;
            const double large = i % 50 == 0 ? 20 : 1, far = i % 20 == 0 ? 1e7 : 4 * edge;
            box.lower = tb_v3(TB_R(tb_random_between(&random, -far / 4, far)),
                              TB_R(tb_random_between(&random, -far / 4, far)),
                              TB_R(tb_random_between(&random, -far / 4, far)));
            const tb_vec3 size = tb_v3(TB_R(large * edge * tb_random_uniform(&random)),
                                       TB_R(edge * tb_random_uniform(&random)),
                                       TB_R(edge * tb_random_uniform(&random)));
            box.upper = tb_v3_add(box.lower, size);
            tb_item some[8], plain[8];
            const int32_t count = tb_box_items(&reader, &check, &box, i, some);
            ck_assert_int_eq(count, tb_box_items_plain(&reader, &check, &box, i, plain));
            ck_assert_int_eq(memcmp(some, plain, sizeof(tb_item) * (size_t)count), 0);
        }
        ck_assert(tb_box_check_passed(&check));

        /* bytes that items may have: a corner up to a cube below and above */
        const int32_t count = 1 + (int32_t)(tb_random_u32(&random) % TB_TILE_BOXES);
        for (int32_t i = 0; i < count + 15; i++) {
            own[i].key = (uint64_t)i + 1000;
            own[i].local = 0;
            for (int axis = 0; axis < 3; axis++) {
                const uint32_t lower = tb_random_u32(&random) % (2 * TB_LOCAL_ZERO);
                const uint32_t upper =
                    TB_LOCAL_ZERO + (trial % 2 ? lower / 2 : tb_random_u32(&random) % 128);
                own[i].local |= (uint64_t)lower << 8 * axis | (uint64_t)upper << (32 + 8 * axis);
            }
        }
        tb_tile_load(&tile, own, count, ~(uint64_t)0);
        tb_tile_load_plain(&plain_tile, own, count, ~(uint64_t)0);
        ck_assert_int_eq(memcmp(tile.box, plain_tile.box, sizeof(uint32_t) * (size_t)count), 0);
        for (int same = 0; same < 2; same++) {
            const int32_t queries = same ? count : 1 + count / 2;
            const int32_t found = tb_tile_match(&tile, own, queries, same, hits);
            ck_assert_int_eq(found,
                             tb_tile_match_plain(&plain_tile, own, queries, same, plain_hits));
            ck_assert_int_eq(memcmp(hits, plain_hits, sizeof(uint16_t) * (size_t)found), 0);
        }
    }
}
END_TEST

TEST_MAIN(thousands_of_random_scenes_give_the_pairs_of_brute_force,
          pairs_do_not_depend_on_the_number_of_threads,
          a_body_that_flew_away_or_stands_apart_in_size_spoils_nothing,
          a_warm_call_takes_no_memory_from_the_system,
          boxes_that_are_not_finite_or_inside_out_are_refused, memory_that_is_refused_is_said,
          morton_codes_interleave_the_bits, intervals_of_a_box_are_the_cubes_that_cover_it,
          intervals_per_body_are_those_of_the_published_table,
          sixteen_at_a_time_are_what_one_at_a_time_are)
