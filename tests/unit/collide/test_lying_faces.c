/* Faces that lie on each other deep inside keep their contacts over an area, whatever the edges that
 * cross there. */
#include "convex_util.h"

/* A cube of half extent 1 as a hull. */
static void cube_hull(small_hull *h)
{
    double points[24];
    for (int i = 0; i < 24; i++) points[i] = (i / 3 >> i % 3 & 1) ? 1 : -1;
    small_hull_build(h, points, 8);
}

/* The upper of two cubes, turned about the normal and leaning a little. */
static tb_posed_shape leaning(tb_posed_shape shape, double turn, double lean, double depth)
{
    return shape_at(shape_turned(shape, lean, -0.6 * lean, turn), 0.05, -0.1, 2 - depth);
}

/* How far the contacts reach along x and y together, m. */
static double spread(const tb_contact_point *p, int count)
{
    double low[2] = {1e9, 1e9}, high[2] = {-1e9, -1e9};
    for (int k = 0; k < count; k++) {
        const double at[2] = {(double)p[k].point_a.x, (double)p[k].point_a.y};
        for (int i = 0; i < 2; i++) {
            low[i] = fmin(low[i], at[i]);
            high[i] = fmax(high[i], at[i]);
        }
    }
    return fmin(high[0] - low[0], high[1] - low[1]);
}

START_TEST(cubes_that_lie_on_each_other_touch_over_an_area)
{
    small_hull hull;
    cube_hull(&hull);
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 1, 1, 1);
    tb_posed_shape polytope = shape_of(TB_SHAPE_CONVEX, 0, 0, 0);
    polytope.hull = &hull.hull;
    const tb_posed_shape kinds[2] = {box, polytope};
    static const double turns[] = {0.05, 0.3, 0.7}, leans[] = {1e-5, 1e-3, 5e-3},
                        depths[] = {0.2, 0.6};
    for (int i = 0; i < 4 * 18; i++) {
        const double depth = depths[i / 4 % 2];
        const tb_posed_shape a = kinds[i % 2], other = kinds[i / 2 % 2];
        const tb_posed_shape b = leaning(other, turns[i / 8 % 3], leans[i / 24], depth);
        tb_contact_point p[TB_MANIFOLD_POINTS];
        tb_vec3 n, on_a, on_b;
        uint32_t flags = 0;
        const int count = tb_collide_convex(&a, &b, 0, p, &flags);
        const double least = (double)tb_convex_distance(&a, &b, &n, &on_a, &on_b, &flags);
        ck_assert_msg(count >= 4 && spread(p, count) > 1, "case %d: %d points over %g m", i, count,
                      spread(p, count));
        double deepest = 0;
        for (int k = 0; k < count; k++) {
            ck_assert(p[k].normal.z > TB_R(0.9999));
            deepest = fmin(deepest, (double)p[k].gap);
        }
        ck_assert_msg(deepest <= 0.9 * least && deepest >= 1.1 * least, "case %d: %g, least %g", i,
                      deepest, least);
    }
}
END_TEST

/* Cubes that stand on an edge have no face along the least depth. */
START_TEST(edges_that_cross_keep_their_one_contact)
{
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 1, 1, 1);
    const tb_posed_shape a = shape_turned(box, 0.785, 0, 0);
    const tb_posed_shape b = shape_at(shape_turned(box, 0, 0.785, 0), 0, 0, 2.6);
    tb_contact_point p[TB_MANIFOLD_POINTS];
    uint32_t flags = 0;
    ck_assert_int_eq(tb_collide_convex(&a, &b, 0, p, &flags), 1);
    TEST_NEAR(p[0].normal.z, 1, 1e-12);
    TEST_NEAR(p[0].gap, 2.6 - 2 * sqrt(2), 1e-6);
}
END_TEST

TEST_MAIN(cubes_that_lie_on_each_other_touch_over_an_area, edges_that_cross_keep_their_one_contact)
