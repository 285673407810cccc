/* Arenas and growing arrays. */
#include "base/arena.h"
#include "base/random.h"
#include "test_util.h"

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % TB_ARENA_ALIGNMENT == 0;
}

START_TEST(pieces_are_aligned_and_apart)
{
    tb_arena arena;
    tb_arena_init(&arena, 0);
    tb_random random = tb_random_stream(1, 0);
    enum { PIECES = 500 };
    unsigned char *pieces[PIECES];
    size_t sizes[PIECES];
    for (int i = 0; i < PIECES; i++) {
        sizes[i] = tb_random_u32(&random) % (i % 50 == 0 ? 100000 : 300);
        pieces[i] = tb_arena_take(&arena, sizes[i]);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert(is_aligned(pieces[i]));
        memset(pieces[i], i & 0xFF, sizes[i]);
    }
    for (int i = 0; i < PIECES; i++)
        for (size_t k = 0; k < sizes[i]; k++) ck_assert(pieces[i][k] == (i & 0xFF));
    ck_assert_uint_le(arena.used, arena.capacity);
    ck_assert_uint_eq(arena.used, arena.peak);
    tb_arena_destroy(&arena);
    ck_assert_uint_eq(arena.capacity, 0);
    ck_assert_ptr_null(arena.current);
}
END_TEST

START_TEST(nothing_taken_is_still_a_pointer_of_its_own)
{
    tb_arena arena = {0};
    void *a = tb_arena_take(&arena, 0), *b = tb_arena_take(&arena, 0);
    void *c = tb_arena_take_array(&arena, 0, 8), *d = tb_arena_take_zeroed(&arena, 8, 0);
    ck_assert(a != NULL && b != NULL && c != NULL && d != NULL);
    ck_assert(a != b && b != c && c != d);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(a_reset_joins_the_blocks_and_the_warm_round_asks_for_nothing)
{
    tb_arena arena = {0};
    int64_t cold = 0;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 200; i++) ck_assert_ptr_nonnull(tb_arena_take(&arena, 5000));
        if (round == 0) ck_assert_int_gt(arena.allocations, 1);
        tb_arena_reset(&arena);
        ck_assert_uint_eq(arena.used, 0);
        if (round == 0) cold = arena.allocations;
        ck_assert_int_eq(arena.allocations, cold);
    }
    /* one block from end to end: everything fits without asking */
    ck_assert_ptr_nonnull(tb_arena_take(&arena, arena.capacity - TB_ARENA_ALIGNMENT));
    ck_assert_int_eq(arena.allocations, cold);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(blocks_given_back_by_a_mark_count_for_the_warm_round_too)
{
    tb_arena arena = {0};
    int64_t cold = 0;
    for (int round = 0; round < 4; round++) {
        tb_arena_take(&arena, 100);
        for (int i = 0; i < 10; i++) {
            const tb_arena_mark mark = tb_arena_get_mark(&arena);
            ck_assert_ptr_nonnull(tb_arena_take(&arena, 1000000));
            tb_arena_return_to(&arena, mark);
        }
        ck_assert_uint_eq(arena.used, 128);
        tb_arena_reset(&arena);
        if (round == 0) cold = arena.allocations;
        ck_assert_int_eq(arena.allocations, cold);
    }
    ck_assert_uint_eq(arena.peak, 128 + 1000000);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(a_cold_arena_asks_rarely)
{
    tb_arena arena = {0};
    for (int i = 0; i < 100000; i++) tb_arena_take(&arena, 64);
    ck_assert_int_le(arena.allocations, 16);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(marks_nest_across_blocks)
{
    tb_arena arena = {0};
    const tb_arena_mark empty = tb_arena_get_mark(&arena);
    char *first = tb_arena_string(&arena, "kept");
    const tb_arena_mark outer = tb_arena_get_mark(&arena);
    void *second = tb_arena_take(&arena, 10);
    const tb_arena_mark inner = tb_arena_get_mark(&arena);
    for (int i = 0; i < 10; i++) tb_arena_take(&arena, 50000);
    tb_arena_return_to(&arena, inner);
    ck_assert_uint_eq(arena.used, 128);
    tb_arena_return_to(&arena, outer);
    ck_assert_uint_eq(arena.used, 64);
    ck_assert_ptr_eq(tb_arena_take(&arena, 10), second);
    ck_assert_str_eq(first, "kept");
    tb_arena_return_to(&arena, empty);
    ck_assert_uint_eq(arena.used, 0);
    ck_assert_ptr_eq(tb_arena_take(&arena, 5), first);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(the_limit_holds_and_leaves_the_arena_usable)
{
    tb_arena arena;
    tb_arena_init(&arena, 20000);
    int pieces = 0;
    while (tb_arena_take(&arena, 1000) != NULL) pieces++;
    ck_assert_int_ge(pieces, 15);
    ck_assert_uint_le(arena.capacity, 20000);
    ck_assert_ptr_null(tb_arena_take(&arena, 20000));
    tb_arena_reset(&arena);
    ck_assert_uint_le(arena.capacity, 20000);
    for (int i = 0; i < pieces; i++) ck_assert_ptr_nonnull(tb_arena_take(&arena, 1000));
    tb_arena_destroy(&arena);

    /* a limit below the first block's usual size */
    tb_arena_init(&arena, 300);
    ck_assert_ptr_nonnull(tb_arena_take(&arena, 100));
    ck_assert_ptr_null(tb_arena_take(&arena, 300));
    tb_arena_destroy(&arena);
    ck_assert_uint_eq(arena.limit, 300);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
    tb_arena arena = {0};
    ck_assert_ptr_null(tb_arena_take(&arena, SIZE_MAX));
    ck_assert_ptr_null(tb_arena_take(&arena, SIZE_MAX - 64));
    ck_assert_ptr_null(tb_arena_take(&arena, SIZE_MAX - 128));
    ck_assert_ptr_null(tb_arena_take_array(&arena, SIZE_MAX / 8 + 1, 8));
    ck_assert_ptr_null(tb_arena_take_zeroed(&arena, (size_t)1 << 33, (size_t)1 << 33));
    ck_assert_ptr_null(TB_ARENA_ARRAY(&arena, double, -1));
    ck_assert_ptr_nonnull(tb_arena_take(&arena, 1));
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(zeroed_is_zeroed_also_where_memory_was_used_before)
{
    tb_arena arena = {0};
    for (int round = 0; round < 3; round++) {
        int32_t *x = TB_ARENA_ZEROED(&arena, int32_t, 3000);
        for (int i = 0; i < 3000; i++) ck_assert_int_eq(x[i], 0);
        memset(x, 0xFF, 3000 * sizeof *x);
        tb_arena_reset(&arena);
    }
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(a_growing_array_keeps_its_content)
{
    int32_t *items = NULL, capacity = 0;
    int growths = 0;
    for (int32_t n = 0; n < 100000; n++) {
        const int32_t before = capacity;
        int32_t *grown = tb_grow(items, n + 1, &capacity, sizeof *items);
        ck_assert_ptr_nonnull(grown);
        ck_assert_int_gt(capacity, n);
        growths += capacity != before;
        items = grown;
        items[n] = n;
    }
    ck_assert_int_le(growths, 30);
    for (int32_t n = 0; n < 100000; n++) ck_assert_int_eq(items[n], n);
    free(items);
}
END_TEST

START_TEST(a_growing_array_refuses_what_cannot_be)
{
    int32_t capacity = 0;
    ck_assert_ptr_null(tb_grow(NULL, -1, &capacity, 4));
    ck_assert_ptr_null(tb_grow(NULL, INT32_MAX, &capacity, SIZE_MAX / 2));
    ck_assert_int_eq(capacity, 0);

    /* no items wanted yet is still an array */
    void *items = tb_grow(NULL, 0, &capacity, 4);
    ck_assert_ptr_nonnull(items);
    ck_assert_ptr_eq(tb_grow(items, capacity, &capacity, 4), items);
    free(items);
}
END_TEST

TEST_MAIN(pieces_are_aligned_and_apart, nothing_taken_is_still_a_pointer_of_its_own,
          a_reset_joins_the_blocks_and_the_warm_round_asks_for_nothing,
          blocks_given_back_by_a_mark_count_for_the_warm_round_too, a_cold_arena_asks_rarely,
          marks_nest_across_blocks, the_limit_holds_and_leaves_the_arena_usable,
          sizes_that_overflow_are_refused, zeroed_is_zeroed_also_where_memory_was_used_before,
          a_growing_array_keeps_its_content, a_growing_array_refuses_what_cannot_be)
