/* Pairs of boxes by sorted Morton intervals and by rows are those of brute force, whatever the boxes' sizes and
 * the base cell's edge. */
#include "base/random.h"
#include "penalty/broad.h"
#include "test_util.h"

enum { MOST_BOXES = 400, SCENES = 300 };

/* Boxes with centres within 1 m; sizes equal, over five decades, or none, one in ten as wide as the
 * world, or one in eight a thousand times as wide as the others. */
static void make_boxes(tb_random *random, double *boxes, int32_t count)
{
    const int kind = (int)(tb_random_uniform(random) * 5);
    const double lattice = 0.05;
    for (int32_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) {
            double centre = tb_random_between(random, -1, 1), half = 0.04;
            if (kind == 1) half = pow(10, tb_random_between(random, -5, 0));
            if (kind == 2) half = 0;
            if (kind == 3) centre = lattice * floor(centre / lattice), half = lattice / 2;
            if (i % 10 == 9 && kind == 1) half = 1;
            if (kind == 4) half = i % 8 == 7 ? 0.5 : 0.0005;
            boxes[6 * i + k] = centre - half;
            boxes[6 * i + 3 + k] = centre + half;
        }
}

START_TEST(intervals_and_rows_find_the_pairs_of_brute_force)
{
    static const double CELLS[] = {0, 10, 0.5, 0.01, 1e-4};
    static double boxes[6 * MOST_BOXES];
    tb_random random = tb_random_stream(1, 0);
    tb_broad intervals = {0}, brute = {0};
    tb_error error = {0};
    int64_t pairs = 0;
    int32_t by_rows = 0;
    for (int scene = 0; scene < SCENES; scene++) {
        const int32_t count = (int32_t)(tb_random_uniform(&random) * MOST_BOXES);
        make_boxes(&random, boxes, count);
        TEST_OK(tb_broad_brute(&brute, boxes, count, &error), &error);
        pairs += brute.number_of_pairs;
        bool fits;
        TEST_OK(tb_broad_rows(&intervals, boxes, count, &fits, &error), &error);
        by_rows += fits;
        if (!fits) TEST_OK(tb_broad_near(&intervals, boxes, count, &error), &error);
        ck_assert_int_eq(intervals.number_of_pairs, brute.number_of_pairs);
        if (brute.number_of_pairs > 0)
            ck_assert_mem_eq(intervals.pairs, brute.pairs,
                             (size_t)brute.number_of_pairs * sizeof *brute.pairs);
        for (int c = 0; c < (int)(sizeof CELLS / sizeof *CELLS); c++) {
            TEST_OK(tb_broad_morton(&intervals, boxes, count, CELLS[c], &error), &error);
            ck_assert_int_eq(intervals.number_of_pairs, brute.number_of_pairs);
            if (brute.number_of_pairs == 0) continue;
            ck_assert_mem_eq(intervals.pairs, brute.pairs,
                             (size_t)brute.number_of_pairs * sizeof *brute.pairs);
        }
    }
    ck_assert_int_gt(pairs, 100000);
    ck_assert_int_gt(by_rows, SCENES / 2);
    ck_assert_int_lt(by_rows, SCENES);
    tb_broad_free(&intervals);
    tb_broad_free(&brute);
}
END_TEST

TEST_MAIN(intervals_and_rows_find_the_pairs_of_brute_force)
