/* Triangle meshes and height fields against each other and against planes. test_mesh_pairs_f32.c
 * compiles this again in float: tolerances are given in double and in multiples of the working
 * precision. */
#include "mesh_util.h"

START_TEST(a_cube_of_triangles_on_a_floor_of_triangles_has_its_four_corners)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(23, 2);
    soup s = {0};
    soup_floor(&s, 2, 0, 7, 0.2, &random);
    const tb_triangle_mesh floor_mesh = soup_mesh(&s, &model);
    memset(&s, 0, sizeof s);
    soup_box(&s, 0.5, 0.5, 0.5, 2);
    const tb_triangle_mesh cube_mesh = soup_mesh(&s, &model);
    const tb_posed_shape floor = shape_of_mesh(&floor_mesh, tb_pose_identity());
    for (int trial = 0; trial < 40; trial++) {
        const double at_y = tb_random_between(&random, -1, 1);
        const double at_x = tb_random_between(&random, -1, 1);
        tb_pose pose = pose_at(at_x, at_y, 0.499);
        const double a = tb_random_between(&random, -3, 3);
        pose.rotation = tb_q_matrix(tb_q(TB_R(cos(a / 2)), 0, 0, TB_R(sin(a / 2))));
        const tb_posed_shape cube = shape_of_mesh(&cube_mesh, pose);
        for (int way = 0; way < 2; way++) {
            const contacts c =
                way ? collide(&cube, &floor, 0.01, &arena) : collide(&floor, &cube, 0.01, &arena);
            ck_assert_int_eq(c.count, 4);
            for (int32_t i = 0; i < 4; i++) {
                const tb_vec3 x = tb_pose_inverse_point(&pose, c.p[i].point_b);
                TEST_NEAR(fabs((double)x.x), 0.5, tight);
                TEST_NEAR(fabs((double)x.y), 0.5, tight);
                TEST_NEAR(c.p[i].gap, -0.001, tight);
                TEST_NEAR(c.p[i].normal.z, way ? -1 : 1, tight);
            }
        }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(two_blocks_of_triangles_side_by_side_push_sideways)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    soup_box(&s, 0.5, 0.5, 0.5, 2);
    const tb_triangle_mesh cube = soup_mesh(&s, &model);
    const tb_posed_shape a = shape_of_mesh(&cube, tb_pose_identity());
    for (int trial = 0; trial < 20; trial++) {
        const tb_posed_shape b =
            shape_of_mesh(&cube, pose_at(0.999, -0.3 + 0.031 * trial, 0.27 - 0.029 * trial));
        const contacts c = collide(&a, &b, 0.01, &arena);
        ck_assert_int_eq(c.count, 4);
        for (int32_t i = 0; i < c.count; i++) {
            TEST_NEAR(c.p[i].normal.x, 1, tight);
            TEST_NEAR(c.p[i].gap, -0.001, tight);
        }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(crossed_ridges_of_triangles_meet_edge_on_edge)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    soup_box(&s, 0.5, 0.05, 0.05, 1);
    const tb_triangle_mesh bar = soup_mesh(&s, &model);
    /* each turned by 45 degrees about its length, one across the other */
    const tb_real h = TB_R(sqrt(0.5));
    tb_pose low = tb_pose_identity(), high = low;
    low.rotation = tb_m33_from_columns(tb_v3(1, 0, 0), tb_v3(0, h, h), tb_v3(0, -h, h));
    high.rotation = tb_m33_from_columns(tb_v3(0, 1, 0), tb_v3(-h, 0, h), tb_v3(h, 0, h));
    const double height = 2 * 0.05 * sqrt(2.0);
    for (int trial = 0; trial < 10; trial++) {
        const double gap = -0.002 + 0.0005 * trial;
        high.position = tb_v3(TB_R(0.03 * trial), TB_R(-0.02 * trial), TB_R(height + gap));
        const tb_posed_shape a = shape_of_mesh(&bar, low), b = shape_of_mesh(&bar, high);
        const contacts c = collide(&a, &b, 0.01, &arena);
        ck_assert_int_eq(c.count, 1);
        TEST_NEAR(c.p[0].normal.z, 1, tight);
        TEST_NEAR(c.p[0].gap, gap, tight);
        const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.5, 0.05, 0.05, high);
        const contacts d = collide(&a, &box, 0.01, &arena);
        ck_assert_int_eq(d.count, 1);
        TEST_NEAR(d.p[0].normal.z, 1, tight);
        TEST_NEAR(d.p[0].gap, gap, tight);
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_mesh_on_a_plane_rests_on_its_extreme_corners)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    soup_box(&s, 0.5, 0.4, 0.3, 6);
    const tb_triangle_mesh block = soup_mesh(&s, &model);
    tb_random random = tb_random_stream(29, 2);
    for (int trial = 0; trial < 100; trial++) {
        const tb_pose ground = pose_random(&random, 10);
        const tb_posed_shape plane = shape_of(TB_SHAPE_PLANE, 0, 0, 0, ground);
        const tb_pose local = pose_at(tb_random_between(&random, -3, 3), 1, 0.299);
        const tb_posed_shape mesh = shape_of_mesh(&block, tb_pose_mul(&ground, &local));
        const tb_vec3 up = tb_m33_column(&ground.rotation, 2);
        for (int way = 0; way < 2; way++) {
            const contacts c =
                way ? collide(&mesh, &plane, 0.01, &arena) : collide(&plane, &mesh, 0.01, &arena);
            ck_assert_int_eq(c.count, 4);
            for (int32_t i = 0; i < 4; i++) {
                TEST_NEAR(c.p[i].gap, -0.001, 20 * tight);
                TEST_NEAR(tb_v3_dot(c.p[i].normal, up), way ? -1 : 1, tight);
            }
        }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_level_height_field_is_a_plane_and_a_solid)
{
    tb_arena arena = {0};
    enum { N = 9 };
    double heights[N * N];
    for (int i = 0; i < N * N; i++) heights[i] = 0.2;
    const tb_height_field field = {.rows = N,
                                   .columns = N,
                                   .heights = heights,
                                   .half_x = 2,
                                   .half_y = 2,
                                   .base = 0.1,
                                   .highest = 0.2};
    tb_posed_shape ground = {
        .type = TB_SHAPE_HEIGHT_FIELD, .field = &field, .pose = tb_pose_identity()};
    tb_random random = tb_random_stream(31, 2);
    for (int trial = 0; trial < 200; trial++) {
        const double x = tb_random_between(&random, -1, 1), y = tb_random_between(&random, -1, 1);
        const tb_posed_shape sphere = shape_of(TB_SHAPE_SPHERE, 0.3, 0, 0, pose_at(x, y, 0.49));
        const contacts c = collide(&ground, &sphere, 0.02, &arena);
        ck_assert_int_eq(c.count, 1);
        TEST_NEAR(c.p[0].gap, -0.01, tight);
        TEST_NEAR(c.p[0].normal.z, 1, tight);
        const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.3, 0.2, 0.1, pose_at(x, y, 0.301));
        const contacts d = collide(&box, &ground, 0.02, &arena);
        ck_assert_int_eq(d.count, 4);
        for (int32_t i = 0; i < 4; i++) {
            TEST_NEAR(d.p[i].gap, 0.001, tight);
            TEST_NEAR(d.p[i].normal.z, -1, tight);
        }
    }
    /* against a side and from below */
    const tb_posed_shape beside = shape_of(TB_SHAPE_SPHERE, 0.3, 0, 0, pose_at(2.29, 0.13, 0.05));
    contacts c = collide(&ground, &beside, 0.02, &arena);
    ck_assert_int_eq(c.count, 1);
    TEST_NEAR(c.p[0].normal.x, 1, tight);
    TEST_NEAR(c.p[0].gap, -0.01, tight);
    const tb_posed_shape below = shape_of(TB_SHAPE_SPHERE, 0.3, 0, 0, pose_at(0.4, 0.13, -0.39));
    c = collide(&ground, &below, 0.02, &arena);
    ck_assert_int_eq(c.count, 1);
    TEST_NEAR(c.p[0].normal.z, -1, tight);
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(a_height_field_and_the_mesh_of_it_agree)
{
    tb_arena arena = {0}, model = {0};
    enum { N = 12 };
    double heights[N * N];
    tb_random random = tb_random_stream(37, 2);
    soup s = {0};
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++) {
            heights[r * N + c] = tb_random_between(&random, 0.3, 0.45);
            soup_vertex(&s, -1 + 2.0 * c / (N - 1), -1 + 2.0 * r / (N - 1), heights[r * N + c]);
        }
    for (int r = 0; r + 1 < N; r++)
        for (int c = 0; c + 1 < N; c++) {
            const int32_t v = r * N + c;
            soup_quad(&s, v, v + 1, v + N + 1, v + N);
        }
    const tb_triangle_mesh surface = soup_mesh(&s, &model);
    const tb_height_field field = {.rows = N,
                                   .columns = N,
                                   .heights = heights,
                                   .half_x = 1,
                                   .half_y = 1,
                                   .base = 0,
                                   .highest = 0.45};
    const tb_hull hull = random_hull(&model, &random, 0.15);
    int met = 0;
    for (int trial = 0; trial < 400; trial++) {
        const tb_pose frame = pose_random(&random, 1);
        const tb_posed_shape ground = {
            .type = TB_SHAPE_HEIGHT_FIELD, .field = &field, .pose = frame};
        const tb_posed_shape mesh = shape_of_mesh(&surface, frame);
        tb_pose at = pose_random(&random, 0.6);
        at.position.z = TB_R(tb_random_between(&random, 0.5, 0.6));
        const tb_posed_shape shape =
            convex_shape(convex_types[trial % CONVEX_TYPES], 0.15, &hull, tb_pose_mul(&frame, &at));
        const contacts a = collide(&ground, &shape, 0.01, &arena);
        const contacts b = collide(&mesh, &shape, 0.01, &arena);
        ck_assert_int_eq(a.count, b.count);
        if (a.count == 0) continue;
        met++;
        TEST_NEAR(least_gap(&a), least_gap(&b), tight);
    }
    ck_assert_int_gt(met, 100);
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(two_boxes_of_triangles_are_as_far_apart_as_the_boxes)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(53, 2);
    soup s = {0};
    soup_box(&s, 0.5, 0.4, 0.3, 2);
    const tb_triangle_mesh a_mesh = soup_mesh(&s, &model);
    memset(&s, 0, sizeof s);
    soup_box(&s, 0.2, 0.3, 0.6, 3);
    const tb_triangle_mesh b_mesh = soup_mesh(&s, &model);
    int apart = 0;
    for (int trial = 0; trial < 1500; trial++) {
        const tb_pose pa = pose_random(&random, 0.2), pb = pose_random(&random, 1.1);
        const tb_posed_shape a = shape_of_mesh(&a_mesh, pa), b = shape_of_mesh(&b_mesh, pb);
        const tb_posed_shape box_a = shape_of(TB_SHAPE_BOX, 0.5, 0.4, 0.3, pa);
        const tb_posed_shape box_b = shape_of(TB_SHAPE_BOX, 0.2, 0.3, 0.6, pb);
        tb_vec3 n, x, y;
        uint32_t flags = 0;
        const double gap = (double)tb_convex_distance(&box_a, &box_b, &n, &x, &y, &flags);
        if (gap < 0.001 || gap > 0.15) continue;
        apart++;
        const contacts c = collide(&a, &b, 0.2, &arena);
        ck_assert_msg(c.count > 0, "trial %d: nothing at %g", trial, gap);
        const double slack = sizeof(tb_real) == 4 ? 2e-4 : 1e-7;
        ck_assert_msg(fabs(least_gap(&c) - gap) < slack, "trial %d: gap %.12g, not %.12g", trial,
                      least_gap(&c), gap);
    }
    ck_assert_int_gt(apart, 100);
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

TEST_MAIN(a_cube_of_triangles_on_a_floor_of_triangles_has_its_four_corners,
          two_blocks_of_triangles_side_by_side_push_sideways,
          crossed_ridges_of_triangles_meet_edge_on_edge,
          a_mesh_on_a_plane_rests_on_its_extreme_corners,
          a_level_height_field_is_a_plane_and_a_solid, a_height_field_and_the_mesh_of_it_agree,
          two_boxes_of_triangles_are_as_far_apart_as_the_boxes)
