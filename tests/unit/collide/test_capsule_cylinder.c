/* A capsule beside a cylinder in closed form against the general method, in poses made so that the
 * segment crosses the side, ends beside it, passes a rim, runs nearly along the axis or is deep
 * inside. test_capsule_cylinder_f32.c compiles this again in float. */
#include "collide/convex/round_pairs.h"
#include "convex_util.h"

/* bound: by a plane between both and by two points, of shapes of about a metre. gaps, normals,
 * points: against the general method; normals turn by rounding over the sine of the two axes, and
 * points slide by that over the sine once more. In float the general method's own error is the
 * larger one, and of segments near the side only its gap is compared. */
#ifdef TB_SINGLE
static const double bound = 2e-6, gaps = 1e-3, normals = 1e-3, points = 1e-4, compared = -0.04;
#else
static const double bound = 5e-15, gaps = 2e-13, normals = 1e-12, points = 1e-13, compared = -1;
#endif

enum { POSES = 4000 };

typedef struct family {
    const char *what;
    double gap[2];   /* m, of the capsule's surface over the side */
    double sine[2];  /* of the two axes */
    double place[2]; /* nearest point along the segment, in half lengths */
    double level[2]; /* and along the axis, in half heights */
    int answers;     /* per cent that the closed form gives, at least */
    int left;        /* and at least leaves */
} family;

static const family families[] = {
    {"crossing, near", {-0.04, 0.04}, {0.05, 1}, {-0.95, 0.95}, {-0.95, 0.95}, 100, 0},
    {"crossing, apart", {0.1, 1}, {0.05, 1}, {-0.95, 0.95}, {-0.95, 0.95}, 100, 0},
    {"ending beside the side", {-0.04, 0.3}, {0.05, 1}, {-1.5, 1.5}, {-0.5, 0.5}, 90, 0},
    {"passing a rim", {-0.04, 0.04}, {0.05, 1}, {-1.5, 1.5}, {0.95, 1.2}, 40, 50},
    {"nearly parallel", {-0.04, 0.3}, {0.0005, 0.01}, {-0.95, 0.95}, {-0.95, 0.95}, 70, 5},
    {"deep", {-0.6, -0.04}, {0.0005, 1}, {-1, 1}, {-1, 1}, 30, 50},
};

static double between(tb_random *random, const double range[2])
{
    return tb_random_between(random, range[0], range[1]);
}

/* A pose of the family in the cylinder's frame, and then both moved. */
static void pose_of(const family *f, tb_random *random, tb_posed_shape *a, tb_posed_shape *b)
{
    const double thick = tb_random_between(random, 0.05, 0.4);
    const double length = tb_random_u32(random) % 16 ? tb_random_between(random, 0.05, 1) : 0;
    const double radius = tb_random_between(random, 0.1, 1);
    const double half = tb_random_between(random, 0.1, 1);
    const double sine = between(random, f->sine), cosine = sqrt(1 - sine * sine);
    const double out = radius + thick + between(random, f->gap);
    const double along = length * between(random, f->place),
                 level = half * between(random, f->level);
    *b = shape_of(TB_SHAPE_CYLINDER, radius, half, 0);
    *a = shape_of(TB_SHAPE_CAPSULE, thick, length, 0);
    *a = shape_at(*a, out, -along * sine, level - along * cosine);
    const tb_vec3 z = tb_v3(0, TB_R(sine), TB_R(cosine)), x = tb_v3(1, 0, 0);
    a->pose.rotation = tb_m33_from_columns(x, tb_v3_cross(z, x), z);
    tb_pose move;
    move.position = random_direction(random);
    move.rotation = tb_q_matrix(random_rotation(random));
    a->pose = tb_pose_mul(&move, &a->pose);
    b->pose = tb_pose_mul(&move, &b->pose);
}

/* The closed form is exact by both bounds and equals the general method. */
static void compare(const tb_posed_shape *a, const tb_posed_shape *b, double margin, int count,
                    const tb_contact_point *p, const char *what, int i)
{
    tb_vec3 n, pa, pb;
    uint32_t flags = 0;
    const double gap = (double)tb_convex_distance(a, b, &n, &pa, &pb, &flags);
    if (count == 0) {
        ck_assert_msg(gap > margin - gaps, "%s %d: apart, but gap %.17g", what, i, gap);
        return;
    }
    ck_assert_int_eq(count, 1);
    const double plane = fabs((double)(plain_separation(a, b, p->normal) - p->gap));
    const double off = fmax((double)outside(a, p->point_a), (double)outside(b, p->point_b));
    ck_assert_msg(plane <= bound && off <= bound, "%s %d: plane off by %g, points outside by %g",
                  what, i, plane, off);
    const double wrong = fabs((double)p->gap - gap);
    const double turn = (double)tb_v3_length(tb_v3_sub(p->normal, n));
    const double shift = fmax((double)tb_v3_length(tb_v3_sub(p->point_a, pa)),
                              (double)tb_v3_length(tb_v3_sub(p->point_b, pb)));
    const double sine = (double)tb_v3_length(
        tb_v3_cross(tb_m33_column(&a->pose.rotation, 2), tb_m33_column(&b->pose.rotation, 2)));
    const bool same = gap < compared || (turn <= normals / sine && shift <= points / (sine * sine));
    ck_assert_msg(wrong <= gaps && same && p->feature == 0,
                  "%s %d: gap %.17g, not %.17g; normal off by %g, points by %g", what, i,
                  (double)p->gap, gap, turn, shift);
    tb_contact_point q[TB_MANIFOLD_POINTS];
    ck_assert_int_eq(tb_collide_convex(a, b, TB_R(margin), q, &flags), 1);
    ck_assert(memcmp(&q[0].normal, &p->normal, sizeof q[0].normal) == 0 && q[0].gap == p->gap);
}

START_TEST(the_closed_form_is_what_the_general_method_finds)
{
    tb_random random = tb_random_stream(21, 0);
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        const family *f = &families[k];
        int answers = 0;
        for (int i = 0; i < POSES; i++) {
            const double margin = i % 2 ? 0.05 : 0;
            tb_posed_shape a, b;
            pose_of(f, &random, &a, &b);
            tb_contact_point p[TB_MANIFOLD_POINTS];
            const int count = tb_capsule_cylinder(&a, &b, TB_R(margin), p);
            if (count == TB_COLLIDE_GENERAL) continue;
            compare(&a, &b, margin, count, p, f->what, i);
            answers++;
        }
        ck_assert_msg(answers * 100 >= f->answers * POSES &&
                          (POSES - answers) * 100 >= f->left * POSES,
                      "%s: %d of %d in closed form", f->what, answers, POSES);
    }
}
END_TEST

/* axes in parallel touch along a stretch: two points, by the general method */
START_TEST(side_by_side_keeps_two_points)
{
    const tb_posed_shape cylinder = shape_of(TB_SHAPE_CYLINDER, 0.5, 0.7, 0);
    const tb_posed_shape capsule = shape_at(shape_of(TB_SHAPE_CAPSULE, 0.2, 0.5, 0), 0.69, 0, 0.3);
    for (int i = 0; i < 2; i++) { /* about the normal: below and above the sine that counts */
        const tb_posed_shape a = shape_turned(capsule, i ? 2.5e-3 : 1.5e-3, 0, 0);
        tb_contact_point p[TB_MANIFOLD_POINTS];
        uint32_t flags = 0;
        ck_assert_int_eq(tb_capsule_cylinder(&a, &cylinder, 0, p), i ? 1 : TB_COLLIDE_GENERAL);
        ck_assert_int_eq(tb_collide_convex(&a, &cylinder, 0, p, &flags), i ? 1 : 2);
        TEST_NEAR(p[0].gap, -0.01, 1e-6);
        TEST_NEAR(p[0].normal.x, -1, 1e-6);
    }
}
END_TEST

TEST_MAIN(the_closed_form_is_what_the_general_method_finds, side_by_side_keeps_two_points)
