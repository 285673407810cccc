/* The narrow phase of convex pairs against independent bounds.
 *
 * A separation along any direction is a lower bound of the signed distance, two points an upper
 * bound: where a result has both, the result is exact. In penetration the bound
 * is searched by many directions. test_collide_convex_f32.c compiles this again in float. */
#include "collide/convex/clip.h"
#include "convex_util.h"

/* exact: closed forms, GJK and EPA on flat shapes; smooth: curved shapes; tie: where a face's
 * normal may be preferred; deep, rough: points and gaps of curved shapes deep in each other, where
 * Newton may be lost */
#ifdef TB_SINGLE
static const double exact = 3e-5, smooth = 1e-3, tie = 1e-3, deep = 2e-2, rough = 2e-3;
#else
static const double exact = 1e-11, smooth = 1e-9, tie = 4e-6, deep = 1e-3, rough = 1e-5;
#endif

enum { POSES = 400 };

static bool curved(tb_shape_type type)
{
    return type == TB_SHAPE_CYLINDER || type == TB_SHAPE_ELLIPSOID;
}

/* margin for the error of pairs that are solved by iteration */
static double tolerance_of(tb_shape_type a, tb_shape_type b)
{
    return curved(a) || curved(b) ? smooth : exact;
}

/* a better direction than `gap`, searched around the normal and everywhere */
static double best_separation(const tb_posed_shape *a, const tb_posed_shape *b, tb_vec3 normal,
                              tb_random *random)
{
    double best = (double)plain_separation(a, b, normal);
    for (int i = 0; i < 300; i++) {
        const double width = i < 100 ? 1e-2 : (i < 200 ? 0.3 : 100);
        const tb_vec3 n = tb_v3_normalize(
            tb_v3_add_scaled(normal, random_direction(random), TB_R(width)), normal);
        best = fmax(best, (double)plain_separation(a, b, n));
    }
    return best;
}

START_TEST(distances_are_exact_by_both_bounds)
{
    tb_random random = tb_random_stream(11, 0);
    small_hull ha, hb;
    for (int ta = TB_SHAPE_SPHERE; ta <= TB_SHAPE_CONVEX; ta++)
        for (int tb = TB_SHAPE_SPHERE; tb <= TB_SHAPE_CONVEX; tb++)
            for (int i = 0; i < POSES; i++) {
                const tb_posed_shape a = random_shape(&random, (tb_shape_type)ta, 1, 1.2, &ha);
                const tb_posed_shape b = random_shape(&random, (tb_shape_type)tb, 1, 1.2, &hb);
                tb_vec3 n, pa, pb;
                uint32_t flags = 0;
                const double gap = (double)tb_convex_distance(&a, &b, &n, &pa, &pb, &flags);
                const bool lost = gap < -0.1 && (curved(a.type) || curved(b.type));
                const double tolerance = lost ? rough : tolerance_of(a.type, b.type);
                ck_assert_msg(isfinite(gap), "%s-%s %d", shape_names[ta], shape_names[tb], i);
                TEST_NEAR(tb_v3_length(n), 1, exact);
                ck_assert_msg(fabs((double)plain_separation(&a, &b, n) - gap) <= exact,
                              "%s-%s %d: gap %g, plane %g", shape_names[ta], shape_names[tb], i,
                              gap, (double)plain_separation(&a, &b, n));
                TEST_NEAR(tb_v3_length(tb_v3_sub(tb_v3_add_scaled(pa, n, TB_R(gap)), pb)), 0,
                          exact);
                const double better = best_separation(&a, &b, n, &random);
                ck_assert_msg(better <= gap + tolerance,
                              "%s-%s %d: gap %.12g, direction with %.12g", shape_names[ta],
                              shape_names[tb], i, gap, better);
                /* flat shapes touch at more than a point: the witness may be any of them */
                const double loose =
                    gap > 0 ? fmax(tolerance * 10, TB_REAL_EPSILON > 1e-9 ? tie : 0) : 5e-2;
                ck_assert_msg((double)outside(&a, pa) <= loose && (double)outside(&b, pb) <= loose,
                              "%s-%s %d: gap %g, points outside by %g, %g", shape_names[ta],
                              shape_names[tb], i, gap, (double)outside(&a, pa),
                              (double)outside(&b, pb));
            }
}
END_TEST

/* Properties of every manifold. */
static void check_manifold(const tb_posed_shape *a, const tb_posed_shape *b, double margin,
                           const tb_contact_point *p, int count, const char *what, int i)
{
    const double tolerance = tolerance_of(a->type, b->type);
    for (int k = 0; k < count; k++) {
        const double gap = (double)p[k].gap;
        ck_assert_msg(isfinite(gap) && gap <= margin, "%s %d: gap %g", what, i, gap);
        TEST_NEAR(tb_v3_length(p[k].normal), 1, exact);
        const tb_vec3 across = tb_v3_add_scaled(p[k].point_a, p[k].normal, p[k].gap);
        TEST_NEAR(tb_v3_length(tb_v3_sub(across, p[k].point_b)), 0, exact);
        /* a point of a curved body's face-wide contact lies on its chord: inside is enough */
        const double off_a = (double)outside(a, p[k].point_a);
        const double off_b = (double)outside(b, p[k].point_b);
        const double loose = fmax(tolerance, gap < -0.1 ? deep : tie);
        ck_assert_msg(off_a <= loose && off_b <= loose,
                      "%s %d: point %d of %d (gap %g, feature %llx) outside by %g and %g", what, i,
                      k, count, gap, (unsigned long long)p[k].feature, off_a, off_b);
        for (int l = 0; l < k; l++)
            ck_assert_msg(p[l].feature != p[k].feature, "%s %d: feature %llx twice of %d", what, i,
                          (unsigned long long)p[k].feature, count);
    }
}

START_TEST(manifolds_agree_with_the_distance)
{
    tb_random random = tb_random_stream(12, 0);
    small_hull ha, hb;
    for (int ta = TB_SHAPE_PLANE; ta <= TB_SHAPE_CONVEX; ta++)
        for (int tb = TB_SHAPE_SPHERE; tb <= TB_SHAPE_CONVEX; tb++)
            for (int i = 0; i < POSES; i++) {
                const double margin = i % 3 == 0 ? 0.02 : (i % 3 == 1 ? 0.3 : 0);
                const tb_posed_shape a = random_shape(&random, (tb_shape_type)ta, 1, 1, &ha);
                const tb_posed_shape b = random_shape(&random, (tb_shape_type)tb, 1, 1, &hb);
                char what[40];
                snprintf(what, sizeof what, "%s-%s", shape_names[ta], shape_names[tb]);
                tb_contact_point p[TB_MANIFOLD_POINTS];
                uint32_t flags = 0;
                const int count = tb_collide_convex(&a, &b, TB_R(margin), p, &flags);
                ck_assert_int_le(count, TB_MANIFOLD_POINTS);
                check_manifold(&a, &b, margin, p, count, what, i);

                tb_vec3 n, pa, pb;
                const double gap = (double)tb_convex_distance(&a, &b, &n, &pa, &pb, &flags);
                double least = 1e30;
                for (int k = 0; k < count; k++) least = fmin(least, (double)p[k].gap);
                if (gap > margin + tie) ck_assert_msg(count == 0, "%s %d: %g", what, i, gap);
                /* faces that lie on each other may be a tenth deeper or less deep than the least */
                const bool flat = gap < 0 && (ta == TB_SHAPE_BOX || ta == TB_SHAPE_CONVEX) &&
                                  (tb == TB_SHAPE_BOX || tb == TB_SHAPE_CONVEX);
                if (gap < margin - tie)
                    ck_assert_msg(fabs(least - gap) <= (flat ? fmax(tie, -0.1 * gap) : tie),
                                  "%s %d: %d points, least %.12g, not %.12g", what, i, count, least,
                                  gap);
            }
}
END_TEST

START_TEST(swapping_the_shapes_mirrors_the_contacts)
{
    tb_random random = tb_random_stream(13, 0);
    small_hull ha, hb;
    for (int ta = TB_SHAPE_PLANE; ta <= TB_SHAPE_CONVEX; ta++)
        for (int tb = TB_SHAPE_SPHERE; tb <= TB_SHAPE_CONVEX; tb++)
            for (int i = 0; i < POSES / 4; i++) {
                const tb_posed_shape a = random_shape(&random, (tb_shape_type)ta, 1, 1, &ha);
                const tb_posed_shape b = random_shape(&random, (tb_shape_type)tb, 1, 1, &hb);
                tb_contact_point p[TB_MANIFOLD_POINTS], q[TB_MANIFOLD_POINTS];
                uint32_t flags = 0;
                const int n = tb_collide_convex(&a, &b, TB_R(0.1), p, &flags);
                const int m = tb_collide_convex(&b, &a, TB_R(0.1), q, &flags);
                ck_assert_msg((n > 0) == (m > 0), "%s-%s %d", shape_names[ta], shape_names[tb], i);
                if (n == 0) continue;
                double least_p = 1e30, least_q = 1e30;
                for (int k = 0; k < n; k++) least_p = fmin(least_p, (double)p[k].gap);
                for (int k = 0; k < m; k++) least_q = fmin(least_q, (double)q[k].gap);
                TEST_NEAR(least_p, least_q, tie);
                if (ta == tb) continue;
                ck_assert_int_eq(n, m);
                for (int k = 0; k < n; k++) {
                    TEST_NEAR(tb_v3_length(tb_v3_add(p[k].normal, q[k].normal)), 0, 0);
                    TEST_NEAR(tb_v3_length(tb_v3_sub(p[k].point_a, q[k].point_b)), 0, 0);
                    ck_assert(p[k].feature == (q[k].feature << 32 | q[k].feature >> 32));
                }
            }
}
END_TEST

START_TEST(scale_and_motion_change_nothing_else)
{
    tb_random random = tb_random_stream(14, 0);
    small_hull ha, hb, hs, ht;
    for (int ta = TB_SHAPE_PLANE; ta <= TB_SHAPE_CONVEX; ta++)
        for (int tb = TB_SHAPE_SPHERE; tb <= TB_SHAPE_CONVEX; tb++)
            for (int i = 0; i < POSES / 4; i++) {
                const tb_posed_shape a = random_shape(&random, (tb_shape_type)ta, 1, 1, &ha);
                const tb_posed_shape b = random_shape(&random, (tb_shape_type)tb, 1, 1, &hb);
                const double scale = i & 1 ? 1e-6 : 1e3;
                tb_posed_shape c = a, d = b;
                c.size = tb_v3_scale(c.size, TB_R(scale));
                d.size = tb_v3_scale(d.size, TB_R(scale));
                c.pose.position = tb_v3_scale(c.pose.position, TB_R(scale));
                d.pose.position = tb_v3_scale(d.pose.position, TB_R(scale));
                if (a.hull) {
                    double v[36];
                    for (int k = 0; k < 3 * a.hull->number_of_vertices; k++)
                        v[k] = scale * a.hull->vertices[k];
                    small_hull_build(&hs, v, a.hull->number_of_vertices);
                    c.hull = &hs.hull;
                }
                if (b.hull) {
                    double v[36];
                    for (int k = 0; k < 3 * b.hull->number_of_vertices; k++)
                        v[k] = scale * b.hull->vertices[k];
                    small_hull_build(&ht, v, b.hull->number_of_vertices);
                    d.hull = &ht.hull;
                }
                tb_contact_point p[TB_MANIFOLD_POINTS], q[TB_MANIFOLD_POINTS];
                uint32_t flags = 0;
                const int n = tb_collide_convex(&a, &b, TB_R(0.1), p, &flags);
                const int m = tb_collide_convex(&c, &d, TB_R(0.1 * scale), q, &flags);
                double least_p = 1e30, least_q = 1e30;
                for (int k = 0; k < n; k++) least_p = fmin(least_p, (double)p[k].gap);
                for (int k = 0; k < m; k++) least_q = fmin(least_q, (double)q[k].gap / scale);
                if (least_p > 0.1 - tie || least_q > 0.1 - tie) continue;
                ck_assert_msg(fabs(least_p - least_q) <= tie,
                              "%s-%s %d at %g: %.12g (%d), %.12g (%d)", shape_names[ta],
                              shape_names[tb], i, scale, least_p, n, least_q, m);

                /* a rigid motion of both */
                const tb_posed_shape e = random_shape(&random, TB_SHAPE_SPHERE, 1, 3, &hs);
                c = a, d = b;
                c.pose = tb_pose_mul(&e.pose, &a.pose);
                d.pose = tb_pose_mul(&e.pose, &b.pose);
                const int o = tb_collide_convex(&c, &d, TB_R(0.1), q, &flags);
                least_q = 1e30;
                for (int k = 0; k < o; k++) least_q = fmin(least_q, (double)q[k].gap);
                ck_assert_msg(fabs(least_p - least_q) <= tie,
                              "%s-%s %d moved: %.12g (%d), %.12g (%d)", shape_names[ta],
                              shape_names[tb], i, least_p, n, least_q, o);
            }
}
END_TEST

/* ---- canonical manifolds ---- */

typedef struct canonical {
    const char *what;
    tb_posed_shape a, b;
    int points;
    double gap;
    double normal[3];
} canonical;

START_TEST(canonical_pairs_have_the_manifolds_of_a_textbook)
{
    const double quarter = 0.7853981633974483, half = 2 * quarter;
    small_hull hull, wedge;
    small_hull_box(&hull, 1, 1, 1);
    const double wedge_points[18] = {-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0, -1, 0, 1, 1, 0, 1};
    small_hull_build(&wedge, wedge_points, 6);
    const tb_posed_shape plane = shape_of(TB_SHAPE_PLANE, 0, 0, 0);
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 1, 1, 1);
    const tb_posed_shape small_box = shape_of(TB_SHAPE_BOX, 0.3, 0.3, 0.3);
    const tb_posed_shape capsule = shape_of(TB_SHAPE_CAPSULE, 0.2, 0.5, 0);
    const tb_posed_shape cylinder = shape_of(TB_SHAPE_CYLINDER, 0.5, 0.7, 0);
    tb_posed_shape convex = shape_of(TB_SHAPE_CONVEX, 0, 0, 0), roof = convex;
    convex.hull = &hull.hull;
    roof.hull = &wedge.hull;
    const double g = -1e-3;
    const canonical cases[] = {
        {"box on plane", plane, shape_at(box, 3, 2, 1 + g), 4, g, {0, 0, 1}},
        {"hull box on plane", plane, shape_at(convex, 3, 2, 1 + g), 4, g, {0, 0, 1}},
        {"cylinder standing on plane", plane, shape_at(cylinder, 1, 0, 0.7 + g), 4, g, {0, 0, 1}},
        {"cylinder lying on plane",
         plane,
         shape_turned(shape_at(cylinder, 1, 0, 0.5 + g), half, 0, 0),
         2,
         g,
         {0, 0, 1}},
        {"capsule lying on plane",
         plane,
         shape_turned(shape_at(capsule, 1, 0, 0.2 + g), half, 0, 0),
         2,
         g,
         {0, 0, 1}},
        {"box on box", box, shape_at(small_box, 0.1, 0.2, 1.3 + g), 4, g, {0, 0, 1}},
        {"same box on box", box, shape_at(box, 0, 0, 2 + g), 4, g, {0, 0, 1}},
        {"box on box turned by 45 degrees",
         box,
         shape_turned(shape_at(box, 0, 0, 2 + g), 0, 0, quarter),
         8,
         g,
         {0, 0, 1}},
        {"box over the rim of a box", box, shape_at(box, 1.5, 1.5, 2 + g), 4, g, {0, 0, 1}},
        {"box edge across box edge",
         shape_turned(box, 0, quarter, 0),
         shape_turned(shape_at(box, 0, 0, 2 * sqrt(2) + g), quarter, 0, 0),
         1,
         g,
         {0, 0, 1}},
        {"box edge along box face",
         box,
         shape_turned(shape_at(small_box, 0, 0, 1 + 0.3 * sqrt(2) + g), quarter, 0, 0),
         2,
         g,
         {0, 0, 1}},
        {"box edge along box edge, apart",
         box,
         shape_turned(shape_at(box, 0, 1.01 + 1.01, 2.01), 0, 0, 0),
         2,
         sqrt(0.02 * 0.02 + 0.01 * 0.01),
         {0, 0.02 / sqrt(5e-4), 0.01 / sqrt(5e-4)}},
        {"hull on box", box, shape_at(convex, 0.5, 0, 2 + g), 4, g, {0, 0, 1}},
        {"hull on hull turned by 45 degrees",
         convex,
         shape_turned(shape_at(convex, 0, 0, 2 + g), 0, 0, quarter),
         8,
         g,
         {0, 0, 1}},
        {"box on the ridge of a roof", shape_at(small_box, 0, 0, 1.3 + g), roof, 2, g, {0, 0, -1}},
        {"capsule lying on box",
         shape_turned(shape_at(capsule, 0, 0.2, 1.2 + g), half, 0, 0),
         box,
         2,
         g,
         {0, 0, -1}},
        {"capsule standing on box", shape_at(capsule, 0, 0.2, 1.7 + g), box, 1, g, {0, 0, -1}},
        {"capsule over the rim of a box",
         shape_turned(shape_at(capsule, 0, 0.9, 1.2 + g), half, 0, 0),
         box,
         2,
         g,
         {0, 0, -1}},
        {"capsule lying on hull",
         shape_turned(shape_at(capsule, 0, 0.2, 1.2 + g), half, 0, 0),
         convex,
         2,
         g,
         {0, 0, -1}},
        {"capsule beside capsule", capsule, shape_at(capsule, 0.4 + g, 0, 0.3), 2, g, {1, 0, 0}},
        {"capsule across capsule",
         capsule,
         shape_turned(shape_at(capsule, 0.4 + g, 0, 0.3), half, 0, 0),
         1,
         g,
         {1, 0, 0}},
        {"capsule on capsule", capsule, shape_at(capsule, 0, 0, 1.4 + g), 1, g, {0, 0, 1}},
        {"cylinder standing on box", shape_at(cylinder, 0.1, 0, 1.7 + g), box, 4, g, {0, 0, -1}},
        {"cylinder lying on box",
         shape_turned(shape_at(cylinder, 0.1, 0, 1.5 + g), half, 0, 0),
         box,
         2,
         g,
         {0, 0, -1}},
        {"cylinder lying on hull",
         shape_turned(shape_at(cylinder, 0.1, 0, 1.5 + g), half, 0, 0),
         convex,
         2,
         g,
         {0, 0, -1}},
        {"box on cylinder", cylinder, shape_at(small_box, 0, 0, 1 + g), 4, g, {0, 0, 1}},
        {"cylinder on cylinder", cylinder, shape_at(cylinder, 0, 0, 1.4 + g), 4, g, {0, 0, 1}},
        {"cylinder beside cylinder", cylinder, shape_at(cylinder, 1 + g, 0, 0.4), 2, g, {1, 0, 0}},
        {"cylinder across cylinder",
         cylinder,
         shape_turned(shape_at(cylinder, 1 + g, 0, 0.4), half, 0, 0),
         1,
         g,
         {1, 0, 0}},
        {"capsule beside cylinder", capsule, shape_at(cylinder, 0.7 + g, 0, 0.3), 2, g, {1, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const canonical *c = &cases[i];
        tb_contact_point p[TB_MANIFOLD_POINTS];
        uint32_t flags = 0;
        const int count = tb_collide_convex(&c->a, &c->b, TB_R(0.05), p, &flags);
        ck_assert_msg(count == c->points, "%s: %d points, not %d", c->what, count, c->points);
        ck_assert_msg(flags == 0, "%s: flags %u", c->what, flags);
        check_manifold(&c->a, &c->b, 0.05, p, count, c->what, 0);
        for (int k = 0; k < count; k++) {
            const double d[3] = {(double)p[k].normal.x - c->normal[0],
                                 (double)p[k].normal.y - c->normal[1],
                                 (double)p[k].normal.z - c->normal[2]};
            const double room = fmax(exact * 10, 1e-11);
            ck_assert_msg(sqrt(dot3(d, d)) <= room && fabs((double)p[k].gap - c->gap) <= room,
                          "%s: point %d normal off by %g, gap %.12g", c->what, k, sqrt(dot3(d, d)),
                          (double)p[k].gap);
        }
    }
}
END_TEST

START_TEST(a_sphere_knows_inside_from_outside)
{
    tb_contact_point p[TB_MANIFOLD_POINTS];
    uint32_t flags = 0;
    const tb_posed_shape sphere = shape_of(TB_SHAPE_SPHERE, 0.1, 0, 0);
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 1, 2, 3);
    tb_posed_shape s = shape_at(sphere, 0.9, 0.5, 0.1);
    ck_assert_int_eq(tb_collide_convex(&s, &box, 0, p, &flags), 1);
    TEST_NEAR(p[0].gap, -0.2, exact);
    TEST_NEAR(p[0].normal.x, -1, exact);
    TEST_NEAR(p[0].point_b.x, 1, exact);

    s = shape_at(sphere, 1 + 0.3 / 5, 2 + 0.4 / 5, 0);
    ck_assert_int_eq(tb_collide_convex(&s, &box, TB_R(0.01), p, &flags), 1);
    TEST_NEAR(p[0].gap, 0, exact);
    TEST_NEAR(p[0].normal.x, -0.6, exact * 10);

    const tb_posed_shape cylinder = shape_of(TB_SHAPE_CYLINDER, 1, 2, 0);
    s = shape_at(sphere, 0.3, 0.4, 0);
    ck_assert_int_eq(tb_collide_convex(&s, &cylinder, 0, p, &flags), 1);
    TEST_NEAR(p[0].gap, -0.6, exact);
    TEST_NEAR(p[0].normal.y, -0.8, exact);
    ck_assert_uint_eq(flags, 0);
}
END_TEST

/* ---- stability ---- */

START_TEST(features_and_normals_survive_rounding)
{
    tb_random random = tb_random_stream(15, 0);
    small_hull hull;
    small_hull_box(&hull, 1, 1, 1);
    tb_posed_shape convex = shape_of(TB_SHAPE_CONVEX, 0, 0, 0);
    convex.hull = &hull.hull;
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 1, 1, 1);
    const tb_posed_shape cylinder = shape_of(TB_SHAPE_CYLINDER, 0.5, 0.7, 0);
    const tb_posed_shape capsule =
        shape_turned(shape_of(TB_SHAPE_CAPSULE, 0.2, 0.5, 0), 1.5707963267948966, 0, 0);
    const tb_posed_shape a[] = {box, box, convex, convex, cylinder, cylinder, capsule, capsule};
    const tb_posed_shape b[] = {shape_at(box, 0.1, 0.2, 2),    shape_at(box, 0, 0, 2),
                                shape_at(convex, 0.3, 0.1, 2), shape_at(box, 0.1, -0.1, 2),
                                shape_at(box, 0.1, 0, 1.7),    shape_at(cylinder, 0.1, 0.1, 1.4),
                                shape_at(box, 0.1, 0, 1.2),    shape_at(convex, 0.1, 0, 1.2)};
#ifdef TB_SINGLE
    const double noise = 3e-7;
#else
    const double noise = 1e-9;
#endif
    for (size_t i = 0; i < sizeof a / sizeof *a; i++) {
        tb_contact_point p[TB_MANIFOLD_POINTS], q[TB_MANIFOLD_POINTS];
        uint32_t flags = 0;
        const int n = tb_collide_convex(&a[i], &b[i], TB_R(0.01), p, &flags);
        ck_assert_int_gt(n, 1);
        for (int trial = 0; trial < 200; trial++) {
            /* lifted and lowered through the touching state, tilted, shifted */
            tb_posed_shape c = b[i];
            const tb_vec3 turn = tb_v3_scale(random_direction(&random), TB_R(noise));
            const tb_mat33 r = tb_q_matrix(tb_q_from_rotation_vector(turn));
            c.pose.rotation = tb_m33_mul(&r, &c.pose.rotation);
            c.pose.position =
                tb_v3_add_scaled(c.pose.position, random_direction(&random), TB_R(noise));
            const int m = tb_collide_convex(&a[i], &c, TB_R(0.01), q, &flags);
            ck_assert_msg(n == m, "pair %zu: %d points, then %d", i, n, m);
            for (int k = 0; k < n; k++) {
                ck_assert_msg(p[k].feature == q[k].feature, "pair %zu: %llx, then %llx", i,
                              (unsigned long long)p[k].feature, (unsigned long long)q[k].feature);
                TEST_NEAR(tb_v3_length(tb_v3_sub(p[k].normal, q[k].normal)), 0, 4 * noise);
                TEST_NEAR(p[k].gap, q[k].gap, 10 * noise);
                TEST_NEAR(tb_v3_length(tb_v3_sub(p[k].point_a, q[k].point_a)), 0, 10 * noise);
            }
        }
    }
}
END_TEST

START_TEST(a_box_coming_down_keeps_its_contacts_through_touching)
{
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 1, 1, 1);
    const tb_posed_shape other = shape_turned(box, 0, 0, 0.3);
    uint64_t names[TB_MANIFOLD_POINTS];
    int first = -1;
    for (int step = -40; step <= 40; step++) {
        const double height = step == 0 ? 0 : copysign(pow(10, -abs(step) / 4.0), -step);
        const tb_posed_shape b = shape_at(other, 0.2, 0.1, 2 + height * 0.9);
        tb_contact_point p[TB_MANIFOLD_POINTS];
        uint32_t flags = 0;
        const int n = tb_collide_convex(&box, &b, 2, p, &flags);
        if (first < 0) {
            first = n;
            for (int k = 0; k < n; k++) names[k] = p[k].feature;
        }
        ck_assert_int_eq(n, first);
        for (int k = 0; k < n; k++) {
            ck_assert(names[k] == p[k].feature);
            TEST_NEAR(p[k].normal.z, 1, 0);
            TEST_NEAR(p[k].gap, height * 0.9, exact);
        }
    }
}
END_TEST

/* ---- degenerate input ---- */

START_TEST(coincident_shapes_get_a_fallback_normal)
{
    small_hull hull;
    small_hull_box(&hull, 1, 1, 1);
    for (int ta = TB_SHAPE_SPHERE; ta <= TB_SHAPE_CONVEX; ta++) {
        tb_posed_shape a = shape_of((tb_shape_type)ta, 1, 1, 1);
        if (ta == TB_SHAPE_CONVEX) a.hull = &hull.hull;
        const tb_posed_shape b = a;
        tb_contact_point p[TB_MANIFOLD_POINTS];
        uint32_t flags = 0;
        const int n = tb_collide_convex(&a, &b, 0, p, &flags);
        ck_assert_msg(n > 0, "%s", shape_names[ta]);
        check_manifold(&a, &b, 0, p, n, shape_names[ta], 0);
        ck_assert_msg(flags == TB_CONTACT_DEGENERATE, "%s", shape_names[ta]);
    }
}
END_TEST

START_TEST(no_pair_of_odd_shapes_gives_nonsense)
{
    tb_random random = tb_random_stream(16, 0);
    small_hull ha, hb;
    const double sizes[] = {0, 1e-12, 1e-6, 1e-3, 1, 1, 1e3};
    for (int ta = TB_SHAPE_PLANE; ta <= TB_SHAPE_CONVEX; ta++)
        for (int tb = TB_SHAPE_SPHERE; tb <= TB_SHAPE_CONVEX; tb++)
            for (int i = 0; i < POSES * 2; i++) {
                tb_posed_shape s[2];
                for (int k = 0; k < 2; k++) {
                    s[k] =
                        random_shape(&random, (tb_shape_type)(k ? tb : ta), 1, 0.5, k ? &hb : &ha);
                    tb_real *size = &s[k].size.x;
                    for (int c = 0; c < 3; c++) size[c] = TB_R(sizes[tb_random_u32(&random) % 7]);
                    if (i % 4 == 0) s[k].pose.position = tb_v3(0, 0, 0);
                    if (i % 5 == 0) s[k].pose.rotation = tb_m33_identity();
                }
                tb_contact_point p[TB_MANIFOLD_POINTS];
                uint32_t flags = 0;
                const int n = tb_collide_convex(&s[0], &s[1], TB_R(0.1), p, &flags);
                ck_assert(n >= 0 && n <= TB_MANIFOLD_POINTS);
                for (int k = 0; k < n; k++) {
                    const double sum =
                        (double)(p[k].gap + p[k].point_a.x + p[k].point_a.y + p[k].point_a.z +
                                 p[k].point_b.x + p[k].point_b.y + p[k].point_b.z);
                    ck_assert_msg(isfinite(sum), "%s-%s %d", shape_names[ta], shape_names[tb], i);
                    TEST_NEAR(tb_v3_length(p[k].normal), 1, exact * 10);
                }
                tb_vec3 normal, pa, pb;
                if (ta == TB_SHAPE_PLANE) continue;
                const double gap =
                    (double)tb_convex_distance(&s[0], &s[1], &normal, &pa, &pb, &flags);
                ck_assert(isfinite(gap));
                TEST_NEAR(tb_v3_length(normal), 1, exact * 10);
            }
}
END_TEST

START_TEST(a_triangle_is_a_flat_hull)
{
    static const double vertices[9] = {-1, -1, 0, 2, -1, 0, -1, 2, 0};
    static const double planes[8] = {0, 0, 1, 0, 0, 0, -1, 0};
    static const int32_t face_start[3] = {0, 3, 6}, face_vertices[6] = {0, 1, 2, 0, 2, 1};
    static const int32_t neighbour_start[4] = {0, 2, 4, 6}, neighbours[6] = {1, 2, 0, 2, 0, 1};
    tb_hull hull;
    memset(&hull, 0, sizeof hull);
    hull.number_of_vertices = 3;
    hull.number_of_faces = 2;
    hull.number_of_edges = 3;
    hull.number_of_face_indices = 6;
    hull.vertices = vertices;
    hull.planes = planes;
    hull.face_start = face_start;
    hull.face_vertices = face_vertices;
    hull.neighbour_start = neighbour_start;
    hull.neighbours = neighbours;
    tb_posed_shape triangle = shape_of(TB_SHAPE_CONVEX, 0, 0, 0);
    triangle.hull = &hull;

    const double g = 1e-3, half = 1.5707963267948966;
    const tb_posed_shape sphere = shape_of(TB_SHAPE_SPHERE, 0.2, 0, 0);
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.2, 0.3, 0.1);
    const tb_posed_shape capsule = shape_of(TB_SHAPE_CAPSULE, 0.1, 0.3, 0);
    const tb_posed_shape cylinder = shape_of(TB_SHAPE_CYLINDER, 0.2, 0.3, 0);
    const tb_posed_shape ellipsoid = shape_of(TB_SHAPE_ELLIPSOID, 0.2, 0.3, 0.4);
    const struct {
        tb_posed_shape shape;
        int points;
        double gap;
    } cases[] = {
        {shape_at(sphere, 0, 0, 0.2 + g), 1, g},
        {shape_at(sphere, 0, -1.2 - g, 0), 1, g}, /* beside an edge */
        {shape_at(sphere, 2.2 + g, -1, 0), 0, 0}, /* beside a corner, checked below */
        {shape_at(box, 0, 0, 0.1 + g), 4, g},
        {shape_turned(shape_at(capsule, 0, 0, 0.1 - g), half, 0, 0), 2, -g},
        {shape_at(cylinder, 0, 0, 0.3 - g), 4, -g},
        {shape_turned(shape_at(cylinder, 0, 0, -0.2 - g), half, 0, 0), 2, g},
        {shape_at(ellipsoid, 0, 0, 0.4 - g), 1, -g},
        {shape_at(ellipsoid, 0, -1.3 - g, 0), 1, g},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tb_contact_point p[TB_MANIFOLD_POINTS];
        uint32_t flags = 0;
        const int n = tb_collide_convex(&cases[i].shape, &triangle, TB_R(5e-3), p, &flags);
        if (cases[i].points == 0) {
            ck_assert_int_eq(n, 1);
            TEST_NEAR(p[0].gap, g, 0.1 * g);
            continue;
        }
        ck_assert_msg(n == cases[i].points, "case %zu: %d points", i, n);
        for (int k = 0; k < n; k++) TEST_NEAR(p[k].gap, cases[i].gap, exact);
    }
}
END_TEST

START_TEST(boxes_hold_their_shapes)
{
    tb_random random = tb_random_stream(17, 0);
    small_hull h;
    for (int type = TB_SHAPE_SPHERE; type <= TB_SHAPE_CONVEX; type++)
        for (int i = 0; i < 50; i++) {
            const tb_posed_shape s = random_shape(&random, (tb_shape_type)type, 1, 2, &h);
            const tb_box box = tb_shape_box(&s);
            TEST_NEAR(plain_support(&s, tb_v3(1, 0, 0)).x, box.upper.x, exact);
            TEST_NEAR(plain_support(&s, tb_v3(0, -1, 0)).y, box.lower.y, exact);
            TEST_NEAR(plain_support(&s, tb_v3(0, 0, 1)).z, box.upper.z, exact);
        }
}
END_TEST

/* Corners of a convex polygon around a circle, counter-clockwise, with an edge's feature each. */
static void round_polygon(tb_random *random, int corners, tb_clip_point *points)
{
    const double radius = tb_random_between(random, 0.5, 1.5);
    const double x = tb_random_between(random, -1, 1), y = tb_random_between(random, -1, 1);
    for (int k = 0; k < corners; k++) {
        const double angle = 2 * M_PI * (k + tb_random_between(random, 0, 0.4)) / corners;
        const uint32_t next = (uint32_t)(k + 1 < corners ? k + 1 : 0);
        points[k] = (tb_clip_point){.u = TB_R(x + radius * cos(angle)),
                                    .v = TB_R(y + radius * sin(angle)),
                                    .height = TB_R(tb_random_between(random, -1, 1)),
                                    .reference = 1,
                                    .incident = TB_FEATURE_VERTEX | (uint32_t)k,
                                    .edge = tb_feature_edge((uint32_t)k, next)};
    }
}

/* A ring of many corners is cut into the corners, and their order, that a copy at each side gives. */
START_TEST(a_ring_is_cut_as_a_copied_polygon)
{
    tb_random random = tb_random_stream(23, 0);
    int left_whole = 0, empty = 0, cut = 0;
    for (int i = 0; i < POSES; i++) {
        const int corners = 3 + (int)tb_random_between(&random, 0, TB_CLIP_FACE - 2.01);
        const int sides = 3 + (int)tb_random_between(&random, 0, TB_CLIP_FACE - 2.01);
        tb_clip_point reference[TB_CLIP_FACE], copies[2][TB_CLIP_POINTS];
        tb_clip_ring ring;
        round_polygon(&random, sides, reference);
        round_polygon(&random, corners, copies[0]);
        memcpy(ring.points, copies[0], (size_t)corners * sizeof *copies[0]);
        tb_clip_ring_close(&ring, corners);
        int count = corners, at = 0;
        for (int k = 0; k < sides; k++) {
            const tb_clip_point *p = &reference[k], *q = &reference[k + 1 < sides ? k + 1 : 0];
            const tb_real u = q->u - p->u, v = q->v - p->v, length = tb_sqrt(u * u + v * v);
            tb_clip_side side = {.nu = v / length, .nv = -u / length};
            side.d = side.nu * p->u + side.nv * p->v;
            side.edge = p->edge;
            count = tb_clip_by_side(copies[at], count, &side, 7, TB_R(1e-6), copies[1 - at],
                                    TB_CLIP_POINTS);
            at = 1 - at;
            tb_clip_ring_cut(&ring, &side, 7, TB_R(1e-6));
            ck_assert_int_eq(ring.count, count);
        }
        for (int k = 0, place = ring.first; k < count; k++, place = ring.next[place])
            ck_assert_mem_eq(&ring.points[place], &copies[at][k], sizeof copies[at][k]);
        left_whole += count == corners;
        empty += count == 0;
        cut += count > 0 && count != corners;
    }
    ck_assert(empty > 10 && cut > 100 && left_whole > 0);
}
END_TEST

TEST_MAIN(a_ring_is_cut_as_a_copied_polygon, distances_are_exact_by_both_bounds,
          manifolds_agree_with_the_distance, swapping_the_shapes_mirrors_the_contacts,
          scale_and_motion_change_nothing_else, canonical_pairs_have_the_manifolds_of_a_textbook,
          a_sphere_knows_inside_from_outside, features_and_normals_survive_rounding,
          a_box_coming_down_keeps_its_contacts_through_touching,
          coincident_shapes_get_a_fallback_normal, no_pair_of_odd_shapes_gives_nonsense,
          a_triangle_is_a_flat_hull, boxes_hold_their_shapes)
