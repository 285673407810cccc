/* Climbs, listed faces and boxes of hulls against looking at every vertex and every face. */
#include "base/random.h"
#include "collide/collide.h"
#include "collide/convex/faces.h"
#include "test_util.h"

enum { DIRECTIONS = 2000 };

static const double PI = 3.141592653589793;

/* Heights that differ by less, over the hull's size, are equal to rounding. */
static const double ROUNDING = 1e-14;

typedef struct cloud {
    const char *name;
    double *points; /* x 3 */
    int32_t count;
} cloud;

static void add_point(cloud *c, double x, double y, double z)
{
    double *p = c->points + 3 * c->count++;
    p[0] = x, p[1] = y, p[2] = z;
}

static cloud new_cloud(const char *name, int32_t most)
{
    return (cloud){name, malloc((size_t)most * 3 * sizeof(double)), 0};
}

/* On an ellipsoid every point is a vertex; each of some twice. */
static cloud ellipsoid(int32_t count)
{
    tb_random random = tb_random_stream(21, (uint64_t)count);
    cloud c = new_cloud("ellipsoid", 2 * count);
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 p =
            tb_v3(tb_random_normal(&random), tb_random_normal(&random), tb_random_normal(&random));
        const tb_vec3 u = tb_v3_normalize(p, tb_v3(1, 0, 0));
        for (int k = 0; k < (i % 5 ? 1 : 2); k++)
            add_point(&c, 0.11 * u.x + 0.3, 0.07 * u.y, 0.05 * u.z);
    }
    return c;
}

/* A box of rows of points: faces of many coplanar points, corners in threes and on edges. */
static cloud lattice(int32_t side)
{
    cloud c = new_cloud("lattice", side * side * side);
    for (int32_t i = 0; i < side * side * side; i++)
        add_point(&c, 0.1 * (i % side) / (side - 1), 0.2 * (i / side % side) / (side - 1),
                  0.05 * (i / side / side) / (side - 1));
    return c;
}

/* A cylinder with rims in numbers of few digits, as files have them: caps flat to 1e-7 of their
 * size, some points of them within. */
static cloud machined(int32_t sides, double digit)
{
    tb_random random = tb_random_stream(22, (uint64_t)sides);
    cloud c = new_cloud("machined", 3 * sides);
    for (int32_t i = 0; i < sides; i++) {
        const double a = 2 * PI * i / sides, within = tb_random_uniform(&random);
        for (int cap = 0; cap < 2; cap++) {
            const double x = 0.05 * cos(a), y = 0.05 * sin(a);
            const double z = 0.11 * cap + digit * tb_random_uniform(&random);
            add_point(&c, digit * floor(x / digit), digit * floor(y / digit), z);
            if (cap) add_point(&c, within * x, within * y, z);
        }
    }
    return c;
}

static void make(int index, cloud *c)
{
    switch (index) {
    case 0: *c = ellipsoid(40); break;
    case 1: *c = ellipsoid(700); break;
    case 2: *c = ellipsoid(6000); break;
    case 3: *c = lattice(7); break;
    case 4: *c = machined(48, 3e-8); break;
    case 5: *c = machined(500, 1e-8); break;
    default: *c = machined(64, 0.05 * 1e-3); break;
    }
}

enum { CLOUDS = 7 };

/* Anywhere, along an axis, or along a face's normal or so. */
static tb_vec3 direction(tb_random *random, const tb_hull *hull, int i)
{
    const tb_vec3 any =
        tb_v3(tb_random_normal(random), tb_random_normal(random), tb_random_normal(random));
    if (i < 6)
        return tb_v3(i / 2 == 0 ? i % 2 * 2 - 1 : 0, i / 2 == 1 ? i % 2 * 2 - 1 : 0,
                     i / 2 == 2 ? i % 2 * 2 - 1 : 0);
    if (i % 3 == 0) return tb_v3_normalize(any, tb_v3(1, 0, 0));
    const int32_t f = (int32_t)(tb_random_u32(random) % (uint32_t)hull->number_of_faces);
    const tb_vec3 normal = tb_v3_load(hull->planes + 4 * f);
    return tb_v3_normalize(tb_v3_add_scaled(normal, any, i % 3 == 1 ? 0 : 1e-7), normal);
}

static double height(const tb_hull *hull, tb_vec3 d, int32_t vertex)
{
    return tb_v3_dot(d, tb_v3_load(hull->vertices + 3 * vertex));
}

/* Checks the hull of every cloud; size: its largest coordinate. */
static void for_hulls(void (*check)(const tb_hull *hull, double size, const char *name))
{
    for (int i = 0; i < CLOUDS; i++) {
        cloud c;
        tb_arena arena;
        tb_error error = {0};
        tb_hull hull;
        double size = 0;
        make(i, &c);
        tb_arena_init(&arena, 0);
        TEST_OK(tb_hull_build(c.points, c.count, &arena, &hull, &error), &error);
        for (int32_t k = 0; k < 3 * hull.number_of_vertices; k++)
            size = fmax(size, fabs(hull.vertices[k]));
        check(&hull, size, c.name);
        tb_arena_destroy(&arena);
        free(c.points);
    }
}

/* The vertex of the scan, byte for byte, unless another is as far to rounding. */
static void check_climbs(const tb_hull *hull, double size, const char *name)
{
    tb_random random = tb_random_stream(23, 0);
    for (int i = 0; i < DIRECTIONS; i++) {
        const tb_vec3 d = direction(&random, hull, i);
        int32_t best = 0;
        for (int32_t v = 1; v < hull->number_of_vertices; v++)
            if (height(hull, d, v) > height(hull, d, best)) best = v;
        const int32_t found = tb_hull_support(hull, d, 0);
        ck_assert_msg(height(hull, d, found) >= height(hull, d, best) - ROUNDING * size,
                      "%s of %d vertices, direction %d: %d is %g below %d", name,
                      hull->number_of_vertices, i, found,
                      height(hull, d, best) - height(hull, d, found), best);
        const bool climbs = hull->number_of_vertices >= TB_HULL_SCAN;
        ck_assert(!climbs || found == tb_hull_support(hull, d, hull->number_of_vertices - 1));
        if (i >= 6 && i % 3 == 0) ck_assert_int_eq(found, best); /* only one is as far */
        for (int32_t v = 0; v < hull->number_of_vertices && found != best; v++)
            if (v == found)
                ck_assert(height(hull, d, best) - height(hull, d, v) <= ROUNDING * size);
    }
}

START_TEST(climbs_find_what_looking_at_every_vertex_finds)
{
    for_hulls(check_climbs);
}
END_TEST

/* The face by looking at all of them: the same hull without its lists. */
static void check_faces(const tb_hull *hull, double size, const char *name)
{
    tb_random random = tb_random_stream(24, 0);
    tb_hull bare = *hull;
    bare.vertex_face_start = bare.vertex_faces = NULL;
    ck_assert(size > 0);
    for (int i = 0; i < DIRECTIONS; i++) {
        const tb_vec3 d = direction(&random, hull, i);
        const int32_t listed = tb_hull_face_towards(hull, d, 0);
        ck_assert_msg(listed == tb_hull_face_towards(&bare, d, 0), "%s of %d faces, %d: %d", name,
                      hull->number_of_faces, i, listed);
    }
}

START_TEST(listed_faces_hold_the_one_that_looks_most_along_a_direction)
{
    for_hulls(check_faces);
}
END_TEST

static void check_boxes(const tb_hull *hull, double size, const char *name)
{
    tb_random random = tb_random_stream(25, 0);
    const double rounding = 1e-14 + ROUNDING * size;
    for (int i = 0; i < 50; i++) {
        const tb_vec3 any =
            tb_v3(tb_random_normal(&random), tb_random_normal(&random), tb_random_normal(&random));
        tb_posed_shape shape = {.type = TB_SHAPE_CONVEX, .hull = hull};
        shape.pose.position = tb_v3(1, 2, 3);
        shape.pose.rotation = tb_q_matrix(tb_q_from_rotation_vector(i ? any : tb_v3(0, 0, 0)));
        const tb_box box = tb_shape_box(&shape);
        tb_vec3 lower = tb_v3(1e9, 1e9, 1e9), upper = tb_v3_negate(lower);
        for (int32_t v = 0; v < hull->number_of_vertices; v++) {
            const tb_vec3 p = tb_pose_point(&shape.pose, tb_v3_load(hull->vertices + 3 * v));
            lower = tb_v3_min(lower, p);
            upper = tb_v3_max(upper, p);
        }
        const double off =
            tb_v3_length(tb_v3_sub(box.lower, lower)) + tb_v3_length(tb_v3_sub(box.upper, upper));
        ck_assert_msg(off <= rounding, "%s %d: off by %g", name, i, off);

        bool tight = true;
        const tb_box loose = tb_shape_loose_box(&shape, &tight);
        const tb_vec3 below = tb_v3_max(tb_v3_sub(loose.lower, box.lower), tb_v3(0, 0, 0));
        const tb_vec3 above = tb_v3_max(tb_v3_sub(box.upper, loose.upper), tb_v3(0, 0, 0));
        ck_assert(!tight && tb_v3_length(below) + tb_v3_length(above) <= rounding);
    }
}

START_TEST(boxes_hold_every_vertex_and_are_tight)
{
    for_hulls(check_boxes);
}
END_TEST

/* Every direction has a cell, and every cell its directions. */
START_TEST(cells_cover_all_directions)
{
    enum { CELLS = 5 };
    tb_random random = tb_random_stream(26, 0);
    int hits[6 * CELLS * CELLS] = {0};
    for (int i = 0; i < 20000; i++) {
        const tb_vec3 d =
            tb_v3(tb_random_normal(&random), tb_random_normal(&random), tb_random_normal(&random));
        const int32_t cell = tb_hull_cell(d, CELLS);
        ck_assert(cell >= 0 && cell < 6 * CELLS * CELLS);
        ck_assert_int_eq(cell, tb_hull_cell(tb_v3_scale(d, 16), CELLS));
        hits[cell]++;
    }
    for (int i = 0; i < 6 * CELLS * CELLS; i++) ck_assert_int_gt(hits[i], 20);
    const double none[] = {0, NAN, INFINITY, 1e-300};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_int_eq(tb_hull_cell(tb_v3(none[i], none[i], none[i]), CELLS), 0);
}
END_TEST

TEST_MAIN(climbs_find_what_looking_at_every_vertex_finds,
          listed_faces_hold_the_one_that_looks_most_along_a_direction,
          boxes_hold_every_vertex_and_are_tight, cells_cover_all_directions)
