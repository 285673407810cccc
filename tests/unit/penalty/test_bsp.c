/* The BSP generations against the convex pieces, and the exact sign of a plane. */
#include <time.h>

#include "base/random.h"
#include "penalty/bsp.h"
#include "penalty/exact.h"
#include "test_util.h"

static tb_error error;

enum { POINTS = 12, FACES = 20 };
static const int32_t STAR[60] = {0, 1,  2, 0, 2,  3, 0, 3,  4,  0, 4,  5,  0,  5,  1,
                                 1, 6,  2, 2, 6,  7, 2, 7,  3,  3, 7,  8,  3,  8,  4,
                                 4, 8,  9, 4, 9,  5, 5, 9,  10, 5, 10, 1,  1,  10, 6,
                                 6, 11, 7, 7, 11, 8, 8, 11, 9,  9, 11, 10, 10, 11, 6};
static const int32_t BOX[36] = {0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5, 0, 1, 5, 0, 5, 4,
                                2, 6, 7, 2, 7, 3, 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6};

static tb_solid solid_of(const double *x, int32_t points, const int32_t *faces, int32_t count)
{
    tb_surface_mesh m = {0};
    tb_solid solid;
    for (int32_t v = 0; v < points; v++)
        tb_surface_mesh_vertex(&m, x[3 * v], x[3 * v + 1], x[3 * v + 2]);
    for (int32_t t = 0; t < count; t++)
        tb_surface_mesh_triangle(&m, faces[3 * t], faces[3 * t + 1], faces[3 * t + 2]);
    TEST_OK(tb_surface_mesh_check(&m, TB_REPAIR_REFUSE, "solid", &error), &error);
    TEST_OK(tb_solid_of_mesh(&m, "solid", &solid, &error), &error);
    return solid;
}

static tb_solid random_star(tb_random *random)
{
    double x[3 * POINTS];
    for (int v = 0; v < POINTS; v++) {
        const double z = v == 0 ? 1 : (v == 11 ? -1 : (v < 6 ? 0.4472 : -0.4472));
        const double r = sqrt(1 - z * z);
        const double angle = v < 6 ? (v - 1) * 1.256637 : (v - 6) * 1.256637 + 0.6283;
        const double scale = tb_random_between(random, 0.2, 1);
        x[3 * v] = scale * r * cos(angle);
        x[3 * v + 1] = scale * r * sin(angle);
        x[3 * v + 2] = scale * z;
    }
    return solid_of(x, POINTS, STAR, FACES);
}

static tb_pose random_pose(tb_random *random, double reach)
{
    tb_pose pose;
    pose.position =
        tb_v3(tb_random_between(random, -reach, reach), tb_random_between(random, -reach, reach),
              tb_random_between(random, -reach, reach));
    pose.rotation =
        tb_q_matrix(tb_q_normalize(tb_q(tb_random_normal(random), tb_random_normal(random),
                                        tb_random_normal(random), tb_random_normal(random))));
    return pose;
}

static tb_bsp_result by(tb_bsp *bsp, tb_overlap_method method, const tb_solid_pair *pair)
{
    tb_bsp_result r;
    TEST_OK(tb_bsp_intersect(bsp, method, pair, 1, &r, &error), &error);
    return r;
}

static void all_agree(tb_bsp *bsp, const tb_solid_pair *pair, double tolerance, int32_t *mended)
{
    const tb_bsp_result p = by(bsp, TB_OVERLAP_PIECES, pair);
    for (tb_overlap_method m = TB_OVERLAP_ORIGINAL; m <= TB_OVERLAP_TRAVERSAL; m++) {
        const tb_bsp_result r = by(bsp, m, pair);
        TEST_NEAR(r.volume, p.volume, tolerance);
        TEST_NEAR(tb_v3_length(tb_v3_sub(r.first, p.first)), 0, tolerance);
        TEST_NEAR(tb_v3_length(tb_v3_sub(r.area, p.area)), 0, 10 * tolerance);
        *mended += r.mended;
    }
}

START_TEST(three_generations_agree_with_the_pieces)
{
    tb_random random = tb_random_stream(26, 2);
    int32_t mended = 0, met = 0;
    for (int i = 0; i < 150; i++) {
        tb_bsp *bsp;
        TEST_OK(tb_bsp_create(&bsp, &error), &error);
        tb_solid a = random_star(&random), b = random_star(&random);
        for (int k = 0; k < 4; k++) {
            const tb_solid_pair pair = {&a, &b, random_pose(&random, 0.5),
                                        random_pose(&random, 0.5)};
            all_agree(bsp, &pair, 1e-12, &mended);
            met += by(bsp, TB_OVERLAP_PIECES, &pair).volume > 0;
        }
        tb_solid_free(&a);
        tb_solid_free(&b);
        tb_bsp_destroy(bsp);
    }
    ck_assert_int_gt(met, 300);
    ck_assert_int_eq(mended, 0);
}
END_TEST

static tb_solid cube(void)
{
    double x[24];
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++) x[3 * i + k] = (i >> k & 1) - 0.5;
    return solid_of(x, 8, BOX, 12);
}

/* Flush faces, the same cube twice, touching faces, and all of that turned in space. */
START_TEST(flat_and_touching_cubes_agree_too)
{
    static const double MOVES[][3] = {{0, 0, 0},    {0, 0, 0.5},    {0, 0, 1},      {1, 1, 0},
                                      {1, 1, 1},    {0.5, 0, 0},    {0, 0.25, 0.5}, {0.5, 0.5, 0.5},
                                      {0, 0, 1e-9}, {0, 1e-13, 0.5}};
    tb_random random = tb_random_stream(26, 3);
    tb_bsp *bsp;
    TEST_OK(tb_bsp_create(&bsp, &error), &error);
    tb_solid a = cube(), b = cube();
    int32_t mended = 0;
    for (size_t i = 0; i < sizeof MOVES / sizeof *MOVES; i++)
        for (int turn = 0; turn < 20; turn++) {
            tb_pose pose = {.rotation = tb_m33_identity()}, moved;
            if (turn > 0) pose = random_pose(&random, 1);
            moved = pose;
            moved.position =
                tb_v3_add(pose.position, tb_m33_mul_v3(&pose.rotation, tb_v3_load(MOVES[i])));
            const tb_solid_pair pair = {&a, &b, pose, moved};
            const double expected = (1 - MOVES[i][0]) * (1 - MOVES[i][1]) * (1 - MOVES[i][2]);
            TEST_NEAR(by(bsp, TB_OVERLAP_PIECES, &pair).volume, expected, 1e-13);
            for (tb_overlap_method m = TB_OVERLAP_ORIGINAL; m <= TB_OVERLAP_TRAVERSAL; m++) {
                const tb_bsp_result r = by(bsp, m, &pair);
                TEST_NEAR(r.volume, expected, 1e-12);
                mended += r.mended;
            }
        }
    printf("%d of 600 intersections of flat cubes were mended\n", mended);
    tb_solid_free(&a);
    tb_solid_free(&b);
    tb_bsp_destroy(bsp);
}
END_TEST

/* Bodies that take part in many pairs are placed once; the answers are those of each pair alone. */
START_TEST(a_batch_gives_the_results_of_its_pairs)
{
    enum { BODIES = 40, MOST = BODIES * (BODIES - 1) / 2 };
    static tb_solid_pair pairs[MOST];
    static tb_bsp_result all[MOST];
    tb_random random = tb_random_stream(26, 4);
    tb_solid solids[3] = {random_star(&random), random_star(&random), cube()};
    tb_pose poses[BODIES];
    tb_bsp *bsp;
    TEST_OK(tb_bsp_create(&bsp, &error), &error);
    for (int i = 0; i < BODIES; i++) poses[i] = random_pose(&random, 1);
    int32_t count = 0, met = 0;
    for (int i = 0; i < BODIES; i++)
        for (int k = i + 1; k < BODIES; k++)
            pairs[count++] = (tb_solid_pair){&solids[i % 3], &solids[k % 3], poses[i], poses[k]};
    TEST_OK(tb_bsp_intersect(bsp, TB_OVERLAP_TRAVERSAL, pairs, count, all, &error), &error);
    for (int32_t i = 0; i < count; i++) {
        const tb_bsp_result r = by(bsp, TB_OVERLAP_TRAVERSAL, &pairs[i]),
                            p = by(bsp, TB_OVERLAP_PIECES, &pairs[i]),
                            o = by(bsp, TB_OVERLAP_ORIGINAL, &pairs[i]);
        ck_assert(all[i].volume == r.volume && all[i].triangles == r.triangles && !r.mended);
        TEST_NEAR(all[i].volume, p.volume, 1e-12);
        TEST_NEAR(all[i].volume, o.volume, 1e-12);
        met += p.volume > 0;
    }
    ck_assert_int_gt(met, count / 3);
    ck_assert_int_lt(met, count);
    for (int i = 0; i < 3; i++) tb_solid_free(&solids[i]);
    tb_bsp_destroy(bsp);
}
END_TEST

START_TEST(the_sign_of_a_plane_is_exact)
{
    const double plane[4] = {1.0 / 3, 1.0 / 7, -1.0 / 11, 0};
    const double zero[3] = {0, 0, 0};
    TEST_NEAR(tb_plane_side(plane, zero), 0, 0);
    /* 1 + e - 1 - e / 2 with e far below the rounding of the sum */
    const double thin[4] = {1, 1e-30, 0, 1}, above[3] = {1, 1, 0}, below[3] = {1, -1, 0};
    ck_assert(tb_plane_side(thin, above) > 0);
    ck_assert(tb_plane_side(thin, below) < 0);
    const double product[4] = {1 + 0x1p-30, 0, 0, 1 + 0x1p-29}, x[3] = {1 + 0x1p-30, 0, 0};
    ck_assert(tb_plane_side(product, x) == 0x1p-60);
}
END_TEST

TEST_MAIN(three_generations_agree_with_the_pieces, flat_and_touching_cubes_agree_too,
          a_batch_gives_the_results_of_its_pairs, the_sign_of_a_plane_is_exact)
