/* Poulsen's colourings: safe, first-free, balanced, merged, and refused where colours are too
 * few. */
#include "../test_util.h"

#include "contact/edge_colouring.h"

/* A star of three contacts on body 0, and a chain 1 - 4 - 5 behind its first. */
static const int32_t A[] = {0, 0, 0, 1, 4}, B[] = {1, 2, 3, 4, 5};
static const tb_edge_graph GRAPH = {6, 5, A, B};

static void check_safe(const tb_edge_graph *g, const tb_edge_colouring *c)
{
    ck_assert_int_eq(c->start[c->colours], g->edges);
    for (int32_t i = 0; i < c->colours - c->unsafe; i++)
        for (int32_t j = c->start[i]; j < c->start[i + 1]; j++)
            for (int32_t k = c->start[i]; k < j; k++) {
                const int32_t e = c->order[j], f = c->order[k];
                ck_assert(g->a[e] != g->a[f] && g->b[e] != g->b[f] && g->a[e] != g->b[f] &&
                          g->b[e] != g->a[f]);
            }
}

START_TEST(blocks_and_degrees_are_counted)
{
    tb_arena arena;
    tb_edge_table table;
    tb_arena_init(&arena, 0);
    ck_assert_int_eq(tb_edge_table_build(&GRAPH, &arena, &table), TB_OK);
    ck_assert_int_eq(tb_edge_degree(&GRAPH, &table, 0), 3);
    ck_assert_int_eq(tb_edge_degree(&GRAPH, &table, 4), 1);
    ck_assert_int_eq(tb_edge_largest_degree(&GRAPH, &table), 3);
    ck_assert_int_eq(tb_edge_blocks(&GRAPH, &table), 5 + 3 + 2 + 2 + 2 + 1);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(first_free_takes_the_smallest_colour)
{
    tb_arena arena;
    tb_edge_table table;
    tb_edge_colouring c;
    static const int32_t ORDER[] = {0, 4, 1, 3, 2};
    tb_arena_init(&arena, 0);
    ck_assert_int_eq(tb_edge_table_build(&GRAPH, &arena, &table), TB_OK);
    ck_assert_int_eq(tb_edge_colour_greedy(&GRAPH, &table, &arena, &c), TB_OK);
    ck_assert_int_eq(c.colours, 3);
    ck_assert_int_eq(memcmp(c.order, ORDER, sizeof ORDER), 0);
    check_safe(&GRAPH, &c);

    /* 2, 2 and 1: colours below 2 are one and stay; colours below 3 become one, the last */
    ck_assert_int_eq(tb_edge_merge_unsafe(5, 2, &arena, &c), TB_OK);
    ck_assert_int_eq(c.unsafe, 0);
    ck_assert_int_eq(tb_edge_merge_unsafe(5, 3, &arena, &c), TB_OK);
    ck_assert_int_eq(c.colours, 1);
    ck_assert_int_eq(c.unsafe, 1);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(balanced_colours_are_even_and_too_few_are_refused)
{
    tb_arena arena;
    tb_edge_table table;
    tb_edge_colouring c;
    tb_error error = {0};
    tb_arena_init(&arena, 0);
    ck_assert_int_eq(tb_edge_table_build(&GRAPH, &arena, &table), TB_OK);
    TEST_OK(tb_edge_colour_balanced(&GRAPH, &table, 0, &arena, &c, &error), &error);
    ck_assert_int_eq(c.colours, 3);
    check_safe(&GRAPH, &c);
    for (int32_t i = 0; i < 3; i++) ck_assert_int_le(c.start[i + 1] - c.start[i], 2);
    TEST_STATUS(tb_edge_colour_balanced(&GRAPH, &table, 2, &arena, &c, &error), TB_INVALID_ARGUMENT,
                &error);
    ck_assert_ptr_nonnull(strstr(error.message, "2 colours are too few: a body has 3 contacts"));
    ck_assert_str_eq(error.field, "colours");
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(counts_are_those_of_the_thesis)
{
    static const struct {
        const char *scene;
        int32_t bodies, contacts, nnz;
    } SCENES[] = {{"poulsen_grid_8", 513, 1408, 17728},
                  {"poulsen_grid_24", 13825, 40320, 757824},
                  {"poulsen_grid_40", 64001, 188800, 4587840},
                  {"poulsen_pile_40", 64001, 6605, 7415},
                  {"poulsen_pile_80", 512001, 52909, 58631}};
    tb_poulsen_counts c;
    tb_error error = {0};
    for (int i = 0; i < 5; i++) {
        TEST_OK(tb_poulsen_count(SCENES[i].scene, &c, &error), &error);
        ck_assert_int_eq(c.bodies, SCENES[i].bodies);
        ck_assert_int_eq(c.contacts, SCENES[i].contacts);
        ck_assert_int_eq(c.nnz, SCENES[i].nnz);
        if (i == 1) { /* section 7.3: 6,912 down to 5,329, and 570; 580 colours of 69 or 70 */
            static const int32_t SIZES[] = {6912, 6911, 6898, 6906, 6794, 5329, 570};
            ck_assert_int_eq(c.colours, 7);
            ck_assert_int_eq(memcmp(c.size, SIZES, sizeof SIZES), 0);
            ck_assert_int_eq(c.balanced_colours, 580);
            ck_assert_int_eq(c.balanced_smallest, 69);
            ck_assert_int_eq(c.balanced_largest, 70);
        }
        if (i == 4) { /* 50,125 safe and 2,784 unsafe; 3 colours of 17,636 or 17,637 */
            ck_assert_int_eq(c.size[0], 50125);
            ck_assert_int_eq(c.size[1], 2784);
            ck_assert_int_eq(c.unsafe, 1);
            ck_assert_int_eq(c.balanced_colours, 3);
            ck_assert_int_eq(c.balanced_smallest, 17636);
        }
    }
    TEST_STATUS(tb_poulsen_count("incline", &c, &error), TB_NOT_FOUND, &error);
}
END_TEST

TEST_MAIN(blocks_and_degrees_are_counted, first_free_takes_the_smallest_colour,
          balanced_colours_are_even_and_too_few_are_refused, counts_are_those_of_the_thesis)
