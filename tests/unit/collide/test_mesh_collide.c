/* Triangle meshes against every convex shape. test_mesh_collide_f32.c compiles this again in float:
 * tolerances are given in double and in multiples of the working precision. */
#include "mesh_util.h"

/* A shape on a floor of triangles touches as on a plane, over any triangles. */
static void floor_is_a_plane(double scale, int trials)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(7, (uint64_t)(scale * 1e9));
    soup s = {0};
    soup_floor(&s, 4 * scale, 0, 9, 0.2, &random);
    const tb_triangle_mesh floor = soup_mesh(&s, &model);
    const tb_posed_shape mesh = shape_of_mesh(&floor, tb_pose_identity());
    const tb_posed_shape plane = shape_of(TB_SHAPE_PLANE, 0, 0, 0, tb_pose_identity());
    const tb_hull hull = random_hull(&model, &random, scale * 0.7);
    for (int trial = 0; trial < trials; trial++) {
        const tb_shape_type type = convex_types[trial % CONVEX_TYPES];
        tb_posed_shape shape = convex_shape(type, scale, &hull, pose_random(&random, 2 * scale));
        /* every fourth is level */
        if (trial % 4 == 3) shape.pose.rotation = tb_m33_identity();
        const double depth = scale * tb_random_between(&random, -0.02, 0.01);
        shape.pose.position.z += TB_R(depth - lowest_gap(&shape, &arena));
        const double margin = 0.011 * scale;
        const contacts expected = collide(&plane, &shape, margin, &arena);
        const contacts found = collide(&mesh, &shape, margin, &arena);
        ck_assert_msg(found.count > 0, "trial %d, type %d, depth %g", trial, (int)type,
                      depth / scale);
        TEST_NEAR(least_gap(&found), least_gap(&expected), tight * scale);
        for (int32_t i = 0; i < found.count; i++) {
            TEST_NEAR(found.p[i].normal.x, 0, tight);
            TEST_NEAR(found.p[i].normal.y, 0, tight);
            TEST_NEAR(found.p[i].normal.z, 1, tight);
            TEST_NEAR(found.p[i].point_a.z, 0, tight * scale);
            TEST_NEAR(found.p[i].point_b.z, found.p[i].gap, tight * scale);
        }
        /* the plane's points that touch or penetrate are all there */
        for (int32_t i = 0; i < expected.count && type != TB_SHAPE_CYLINDER; i++) {
            if (expected.p[i].gap > TB_R(least_gap(&expected) + 1e-6 * scale)) continue;
            double distance = HUGE_VAL;
            for (int32_t k = 0; k < found.count; k++)
                distance = fmin(distance, (double)tb_v3_length(tb_v3_sub(found.p[k].point_b,
                                                                         expected.p[i].point_b)));
            TEST_NEAR(distance, 0, 10 * tight * scale);
        }

        /* and the other way round */
        const contacts flipped = collide(&shape, &mesh, margin, &arena);
        ck_assert_int_eq(flipped.count, found.count);
        for (int32_t i = 0; i < found.count; i++) {
            ck_assert(flipped.p[i].normal.z == -found.p[i].normal.z);
            ck_assert(flipped.p[i].gap == found.p[i].gap);
            ck_assert_uint_eq(flipped.p[i].feature, found.p[i].feature);
        }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}

START_TEST(a_floor_of_triangles_is_a_plane)
{
    floor_is_a_plane(1, 1200);
}
END_TEST

START_TEST(a_floor_of_triangles_is_a_plane_at_a_micrometre_and_at_a_kilometre)
{
    floor_is_a_plane(1e-6, 240);
    floor_is_a_plane(1e3, 240);
}
END_TEST

START_TEST(sliding_over_a_floor_never_meets_a_bump)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(11, 1);
    soup s = {0};
    soup_floor(&s, 3, 0, 40, 0.2, &random);
    const tb_triangle_mesh floor = soup_mesh(&s, &model);
    const tb_posed_shape mesh = shape_of_mesh(&floor, tb_pose_identity());
    const tb_hull hull = random_hull(&model, &random, 0.3);
    for (int trial = 0; trial < 1000; trial++) {
        const tb_shape_type type = convex_types[trial % CONVEX_TYPES];
        tb_posed_shape shape = convex_shape(type, 0.3, &hull, pose_random(&random, 1));
        if (trial % 2) shape.pose.rotation = tb_m33_identity();
        shape.pose.position.z -=
            TB_R(lowest_gap(&shape, &arena) + tb_random_between(&random, 0, 0.02));
        const contacts c = collide(&mesh, &shape, 0.005, &arena);
        ck_assert_int_gt(c.count, 0);
        for (int32_t i = 0; i < c.count; i++)
            ck_assert_msg(c.p[i].normal.z > 1 - TB_R(tight), "trial %d, type %d: normal %g %g %g",
                          trial, (int)type, (double)c.p[i].normal.x, (double)c.p[i].normal.y,
                          (double)c.p[i].normal.z);
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_level_box_on_a_floor_has_its_four_corners_and_nothing_else)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(3, 9);
    soup s = {0};
    soup_floor(&s, 2, 0, 16, 0.2, &random);
    const tb_triangle_mesh floor = soup_mesh(&s, &model);
    const tb_posed_shape mesh = shape_of_mesh(&floor, tb_pose_identity());
    for (int trial = 0; trial < 50; trial++) {
        const double at_y = tb_random_between(&random, -1, 1);
        const double at_x = tb_random_between(&random, -1, 1);
        tb_pose pose = pose_at(at_x, at_y, 0.24);
        const double a = tb_random_between(&random, -3, 3);
        pose.rotation = tb_q_matrix(tb_q(TB_R(cos(a / 2)), 0, 0, TB_R(sin(a / 2))));
        const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.5, 0.3, 0.25, pose);
        const contacts c = collide(&mesh, &box, 0.02, &arena);
        ck_assert_int_eq(c.count, 4);
        for (int32_t i = 0; i < 4; i++) {
            const tb_vec3 x = tb_pose_inverse_point(&pose, c.p[i].point_b);
            TEST_NEAR(fabs((double)x.x), 0.5, tight);
            TEST_NEAR(fabs((double)x.y), 0.3, tight);
            TEST_NEAR(c.p[i].gap, -0.01, tight);
        }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_sphere_on_a_box_of_triangles_meets_faces_edges_and_corners_in_closed_form)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(5, 5);
    soup s = {0};
    const double h[3] = {0.5, 0.4, 0.3}, radius = 0.2;
    soup_box(&s, h[0], h[1], h[2], 4);
    const tb_triangle_mesh box = soup_mesh(&s, &model);
    int kinds[4] = {0};
    for (int trial = 0; trial < 1500; trial++) {
        const tb_pose pose = pose_random(&random, 1);
        const tb_posed_shape mesh = shape_of_mesh(&box, pose);
        double c[3], q[3], distance2 = 0;
        int outside = 0;
        for (int k = 0; k < 3; k++) {
            c[k] = tb_random_between(&random, -h[k] - 0.21, h[k] + 0.21);
            q[k] = fmin(fmax(c[k], -h[k]), h[k]);
            distance2 += (c[k] - q[k]) * (c[k] - q[k]);
            outside += c[k] != q[k];
        }
        if (outside == 0) continue;
        const double distance = sqrt(distance2);
        tb_pose at = tb_pose_identity();
        at.position = tb_pose_point(&pose, tb_v3(TB_R(c[0]), TB_R(c[1]), TB_R(c[2])));
        const tb_posed_shape sphere = shape_of(TB_SHAPE_SPHERE, radius, 0, 0, at);
        const contacts found = collide(&mesh, &sphere, 0.05, &arena);
        if (fabs(distance - radius - 0.05) < 1e-5) continue;
        if (distance > radius + 0.05) {
            ck_assert_int_eq(found.count, 0);
            continue;
        }
        kinds[outside]++;
        ck_assert_msg(found.count == 1, "%d contacts, trial %d, outside %d at %g", found.count,
                      trial, outside, distance);
        TEST_NEAR(found.p[0].gap, distance - radius, tight);
        const tb_vec3 n = tb_m33_tmul_v3(&pose.rotation, found.p[0].normal);
        const double loss = distance > 1e-3 ? 1 / distance : 1e3;
        TEST_NEAR(n.x, (c[0] - q[0]) / distance, tight * loss);
        TEST_NEAR(n.y, (c[1] - q[1]) / distance, tight * loss);
        TEST_NEAR(n.z, (c[2] - q[2]) / distance, tight * loss);
    }
    for (int k = 1; k < 4; k++) ck_assert_int_gt(kinds[k], 50);
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

/* Convex shapes near a box of triangles: the same gap as against the box itself. */
START_TEST(a_box_of_triangles_is_as_far_from_convex_shapes_as_the_box)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(13, 5);
    soup s = {0};
    soup_box(&s, 0.5, 0.4, 0.3, 3);
    const tb_triangle_mesh box_mesh = soup_mesh(&s, &model);
    const tb_hull hull = random_hull(&model, &random, 0.4);
    int apart = 0, touching = 0;
    for (int trial = 0; trial < 3000; trial++) {
        const tb_shape_type type = convex_types[trial % CONVEX_TYPES];
        const tb_pose pose = pose_random(&random, 0.2);
        const tb_posed_shape mesh = shape_of_mesh(&box_mesh, pose);
        const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.5, 0.4, 0.3, pose);
        tb_posed_shape shape = convex_shape(type, 0.5, &hull, pose_random(&random, 1.2));
        tb_vec3 n, pa, pb;
        uint32_t flags = 0;
        const double gap = (double)tb_convex_distance(&box, &shape, &n, &pa, &pb, &flags);
        if (gap < -0.02 || gap > 0.15) continue;
        const contacts c = collide(&mesh, &shape, 0.2, &arena);
        ck_assert_msg(c.count > 0, "trial %d, type %d, gap %g", trial, (int)type, gap);
        const double difference = least_gap(&c) - gap;
        const double slack = sizeof(tb_real) == 4 ? 2e-4 : type == TB_SHAPE_ELLIPSOID ? 1e-6 : 1e-7;
        if (gap > 0) {
            apart++;
            ck_assert_msg(fabs(difference) < slack, "trial %d, type %d: gap %.12g, not %.12g",
                          trial, (int)type, least_gap(&c), gap);
        } else {
            touching++;
            /* in penetration the mesh may take another of nearly equal ways out, never a shorter
             * one */
            ck_assert_msg(difference < slack && difference > 2 * gap - 1e-3,
                          "trial %d, type %d: gap %.12g, not %.12g", trial, (int)type,
                          least_gap(&c), gap);
        }
        for (int32_t i = 0; i < c.count; i++)
            if (c.p[i].gap < TB_R(least_gap(&c) + 1e-9) && gap > 0.01)
                ck_assert_msg(tb_v3_dot(c.p[i].normal, n) > TB_R(0.999), "trial %d type %d", trial,
                              (int)type);
    }
    ck_assert_int_gt(apart, 200);
    ck_assert_int_gt(touching, 20);
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_pad_on_a_thin_wall_is_pushed_back_to_its_own_side)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    const double r = 0.04, t = 0.003;
    soup_mug(&s, r, t, 0.095, 32, 6);
    const tb_triangle_mesh mug = soup_mesh(&s, &model);
    const tb_posed_shape mesh = shape_of_mesh(&mug, tb_pose_identity());
    tb_random random = tb_random_stream(17, 1);
    for (int trial = 0; trial < 400; trial++) {
        const bool inside = trial % 2;
        const double a = tb_random_between(&random, -3, 3);
        const double depth = tb_random_between(&random, 0.0001, 0.0012);
        const double half = 0.006, width = inside ? 0.002 : 0.011;
        const double at = inside ? r - t - half + depth - 0.00025 : r + half - depth;
        tb_pose pose =
            pose_at(at * cos(a), at * sin(a), 0.05 + tb_random_between(&random, -0.01, 0.01));
        pose.rotation = tb_q_matrix(tb_q(TB_R(cos(a / 2)), 0, 0, TB_R(sin(a / 2))));
        const tb_posed_shape pad = shape_of(TB_SHAPE_BOX, half, width, 0.025, pose);
        const contacts c = collide(&mesh, &pad, 0.002, &arena);
        ck_assert_msg(c.count >= 2, "trial %d: %d contacts", trial, c.count);
        const double sign = inside ? -1 : 1;
        for (int32_t i = 0; i < c.count; i++) {
            const double along =
                sign * ((double)c.p[i].normal.x * cos(a) + (double)c.p[i].normal.y * sin(a));
            /* a facet that the pad's edge only comes near has a normal of its own */
            if (c.p[i].gap > TB_R(1e-6)) continue;
            ck_assert_msg(along > (inside ? 0.97 : 0.99),
                          "trial %d: normal %g %g %g for pad at %g, gap %g", trial,
                          (double)c.p[i].normal.x, (double)c.p[i].normal.y, (double)c.p[i].normal.z,
                          a, (double)c.p[i].gap);
            ck_assert(c.p[i].gap > TB_R(-1.6e-3));
        }
        ck_assert(least_gap(&c) < 0.0003);
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_pad_on_a_sphere_of_triangles_has_one_normal)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    soup_sphere(&s, 0.1, 48);
    const tb_triangle_mesh ball = soup_mesh(&s, &model);
    tb_random random = tb_random_stream(19, 1);
    for (int trial = 0; trial < 300; trial++) {
        const tb_pose pose = pose_random(&random, 0.5);
        const tb_posed_shape mesh = shape_of_mesh(&ball, pose);
        const tb_pose pad_pose = pose_random(&random, 0);
        tb_pose at = pad_pose;
        const tb_vec3 n = tb_m33_column(&pad_pose.rotation, 0);
        at.position = tb_v3_add_scaled(pose.position, n, TB_R(0.1 + 0.02 - 0.0006));
        const tb_posed_shape pad = shape_of(TB_SHAPE_BOX, 0.02, 0.05, 0.05, at);
        const contacts c = collide(&mesh, &pad, 0.001, &arena);
        ck_assert_int_gt(c.count, 0);
        for (int32_t i = 0; i < c.count; i++)
            ck_assert_msg(tb_v3_dot(c.p[i].normal, n) > TB_R(0.997), "trial %d: %g", trial,
                          (double)tb_v3_dot(c.p[i].normal, n));
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_shape_whose_centre_sank_in_is_pushed_out_the_nearest_side)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    soup_box(&s, 1, 1, 1, 3);
    const tb_triangle_mesh block = soup_mesh(&s, &model);
    const tb_posed_shape mesh = shape_of_mesh(&block, tb_pose_identity());
    tb_random random = tb_random_stream(19, 2);
    for (int trial = 0; trial < 200; trial++) {
        const tb_shape_type type = convex_types[trial % (CONVEX_TYPES - 1)];
        const double at_y = tb_random_between(&random, -0.5, 0.5);
        const double at_x = tb_random_between(&random, -0.5, 0.5);
        const tb_posed_shape shape = convex_shape(type, 0.5, NULL, pose_at(at_x, at_y, 0.92));
        const contacts c = collide(&mesh, &shape, 0.01, &arena);
        ck_assert_int_gt(c.count, 0);
        for (int32_t i = 0; i < c.count; i++) {
            TEST_NEAR(c.p[i].normal.z, 1, tight);
            ck_assert(c.p[i].gap < TB_R(-0.08));
        }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(needles_and_triangles_without_area_do_no_harm)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    /* a floor whose middle row is a sliver, with triangles of no area at corners on a long edge */
    const double y[4] = {-2, 0, 1e-7, 2};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) soup_vertex(&s, 2.0 * k - 2, y[i], 0);
    soup_quad(&s, 0, 2, 5, 3);
    soup_triangle(&s, 3, 5, 4);
    for (int i = 1; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            const int32_t v = 3 * i + k;
            soup_quad(&s, v, v + 1, v + 4, v + 3);
        }
    soup_triangle(&s, 4, 4, 7);
    const tb_triangle_mesh floor = soup_mesh(&s, &model);
    const tb_posed_shape mesh = shape_of_mesh(&floor, tb_pose_identity());
    tb_random random = tb_random_stream(41, 2);
    const tb_hull hull = random_hull(&model, &random, 0.3);
    for (int trial = 0; trial < 300; trial++) {
        const tb_shape_type type = convex_types[trial % CONVEX_TYPES];
        tb_posed_shape shape = convex_shape(type, 0.4, &hull, pose_random(&random, 0));
        shape.pose.position.x = TB_R(tb_random_between(&random, -1, 1));
        shape.pose.position.y = TB_R(tb_random_between(&random, -2e-7, 3e-7));
        shape.pose.position.z = TB_R(-0.004 - lowest_gap(&shape, &arena));
        const contacts c = collide(&mesh, &shape, 0.003, &arena);
        ck_assert_msg(c.count > 0, "trial %d, type %d", trial, (int)type);
        TEST_NEAR(least_gap(&c), -0.004, 10 * tight);
        for (int32_t i = 0; i < c.count; i++) TEST_NEAR(c.p[i].normal.z, 1, tight);
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

START_TEST(a_small_room_for_points_says_how_many_there_are_and_the_same_comes_twice)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    soup_mug(&s, 0.04, 0.003, 0.095, 24, 4);
    const tb_triangle_mesh mug = soup_mesh(&s, &model);
    tb_random random = tb_random_stream(43, 2);
    int met = 0;
    for (int trial = 0; trial < 300; trial++) {
        const tb_posed_shape mesh = shape_of_mesh(&mug, pose_random(&random, 0.05));
        const tb_posed_shape shape =
            trial % 5 == 4
                ? shape_of_mesh(&mug, pose_random(&random, 0.05))
                : convex_shape(convex_types[trial % 4], 0.05, NULL, pose_random(&random, 0.05));
        const contacts a = collide(&mesh, &shape, 0.002, &arena);
        const contacts b = collide(&mesh, &shape, 0.002, &arena);
        ck_assert(memcmp(&a, &b, sizeof a) == 0);
        if (a.count == 0) continue;
        met++;
        tb_contact_point few[2];
        uint32_t flags = 0;
        const int32_t room = a.count > 1 ? 2 : 1;
        memset(few, 0, sizeof few);
        ck_assert_int_eq(tb_collide_pair(&mesh, &shape, TB_R(0.002), few, room, &arena, &flags),
                         a.count);
        for (int32_t i = 0; i < room; i++) ck_assert_uint_eq(few[i].feature, a.p[i].feature);
    }
    ck_assert_int_gt(met, 50);

    /* scratch memory comes back, and its refusal is said */
    const tb_posed_shape mesh = shape_of_mesh(&mug, tb_pose_identity());
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.02, 0.02, 0.02, pose_at(0.058, 0, 0.05));
    tb_arena_reset(&arena);
    collide(&mesh, &box, 0.002, &arena);
    ck_assert_uint_eq(arena.used, 0);
    tb_arena tiny;
    tb_arena_init(&tiny, 1);
    tb_contact_point p[1];
    uint32_t flags = 0;
    ck_assert_int_eq(tb_collide_mesh(&mesh, &box, TB_R(0.002), p, 1, &tiny, &flags), -1);
    tb_arena_destroy(&tiny);
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

/* A foot that tilts by far less than its size keeps all corners in touch, whichever side is the
 * mesh. */
START_TEST(a_nearly_level_foot_keeps_its_four_corners)
{
    tb_arena arena = {0}, model = {0};
    tb_random random = tb_random_stream(47, 2);
    soup s = {0};
    soup_floor(&s, 2, 0, 5, 0.2, &random);
    const tb_triangle_mesh floor_mesh = soup_mesh(&s, &model);
    memset(&s, 0, sizeof s);
    soup_box(&s, 0.5, 0.5, 0.5, 3);
    const tb_triangle_mesh cube_mesh = soup_mesh(&s, &model);
    for (int trial = 0; trial < 120; trial++) {
        const double x = tb_random_between(&random, -1, 1), y = tb_random_between(&random, -1, 1);
        tb_pose pose = pose_at(x, y, 0.5 - 1e-4);
        /* one draw a line: C leaves the order of a call's arguments open */
        const double tilt_y = tb_random_between(&random, -2e-3, 2e-3);
        const double tilt_x = tb_random_between(&random, -2e-3, 2e-3);
        const tb_quaternion turn = tb_q_from_rotation_vector(tb_v3(TB_R(tilt_x), TB_R(tilt_y), 0));
        const double a = tb_random_between(&random, -3, 3);
        pose.rotation = tb_q_matrix(tb_q_mul(turn, tb_q(TB_R(cos(a / 2)), 0, 0, TB_R(sin(a / 2)))));
        const tb_posed_shape floor = shape_of_mesh(&floor_mesh, tb_pose_identity());
        const tb_posed_shape slab = shape_of(TB_SHAPE_BOX, 2, 2, 0.5, pose_at(0, 0, -0.5));
        const tb_posed_shape cube = shape_of_mesh(&cube_mesh, pose);
        const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.5, 0.5, 0.5, pose);
        const tb_posed_shape *pairs[3][2] = {{&floor, &cube}, {&floor, &box}, {&slab, &cube}};
        for (int k = 0; k < 3; k++)
            for (int way = 0; way < 2; way++) {
                const contacts c = collide(pairs[k][way], pairs[k][1 - way], 0.01, &arena);
                int corners = 0;
                for (int32_t i = 0; i < c.count; i++) {
                    const tb_vec3 at =
                        tb_pose_inverse_point(&pose, way ? c.p[i].point_a : c.p[i].point_b);
                    corners += fabs(fabs((double)at.x) - 0.5) < 0.01 &&
                               fabs(fabs((double)at.y) - 0.5) < 0.01;
                    ck_assert((way ? -c.p[i].normal.z : c.p[i].normal.z) > TB_R(0.9999));
                }
                ck_assert_msg(corners >= 4, "trial %d, pair %d %d: %d corners of %d points", trial,
                              k, way, corners, c.count);
            }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

/* Triangles without area on the inner edges of a floor are not felt. */
START_TEST(a_capsule_slides_over_needles)
{
    tb_arena arena = {0}, model = {0};
    soup s = {0};
    soup_floor(&s, 1, 0, 4, 0, NULL);
    const int32_t count = s.number_of_triangles;
    for (int32_t t = 0; t < count; t++)
        for (int k = 0; k < 3; k++) {
            const int32_t a = s.triangles[3 * t + k], b = s.triangles[3 * t + (k + 1) % 3];
            const double *p = &s.vertices[3 * a], *q = &s.vertices[3 * b];
            const int32_t middle = soup_vertex(&s, (p[0] + q[0]) / 2, (p[1] + q[1]) / 2, 0);
            soup_triangle(&s, a, b, middle);
            soup_triangle(&s, b, b, a);
        }
    const tb_triangle_mesh floor = soup_mesh(&s, &model);
    const tb_posed_shape mesh = shape_of_mesh(&floor, tb_pose_identity());
    for (int i = 0; i < 200; i++) {
        tb_posed_shape capsule =
            shape_of(TB_SHAPE_CAPSULE, 0.1, 0.2, 0, pose_at(-0.6 + 0.006 * i, 0.1, 0.099));
        capsule.pose.rotation = (tb_mat33){{1, 0, 0, 0, 0, -1, 0, 1, 0}};
        const contacts c = collide(&mesh, &capsule, 0.01, &arena);
        ck_assert_int_eq(c.count, 2);
        for (int32_t k = 0; k < c.count; k++) {
            TEST_NEAR(c.p[k].normal.z, 1, tight);
            TEST_NEAR(c.p[k].gap, -0.001, tight);
        }
    }
    tb_arena_destroy(&arena);
    tb_arena_destroy(&model);
}
END_TEST

TEST_MAIN(a_floor_of_triangles_is_a_plane,
          a_floor_of_triangles_is_a_plane_at_a_micrometre_and_at_a_kilometre,
          sliding_over_a_floor_never_meets_a_bump,
          a_level_box_on_a_floor_has_its_four_corners_and_nothing_else,
          a_sphere_on_a_box_of_triangles_meets_faces_edges_and_corners_in_closed_form,
          a_box_of_triangles_is_as_far_from_convex_shapes_as_the_box,
          a_pad_on_a_thin_wall_is_pushed_back_to_its_own_side,
          a_pad_on_a_sphere_of_triangles_has_one_normal,
          a_shape_whose_centre_sank_in_is_pushed_out_the_nearest_side,
          needles_and_triangles_without_area_do_no_harm,
          a_small_room_for_points_says_how_many_there_are_and_the_same_comes_twice,
          a_nearly_level_foot_keeps_its_four_corners, a_capsule_slides_over_needles)
