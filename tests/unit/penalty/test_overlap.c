/* Overlaps of solids against exact rational arithmetic: random pairs, and flat and touching
 * ones. */
#include "penalty/overlap.h"
#include "penalty/exact_overlap.h"
#include "base/random.h"
#include "test_util.h"

static tb_error error;

/* OVERLAP_PAIRS in the environment asks for another number of random pairs. */
static int32_t pairs_wanted(int32_t usual)
{
    const char *text = getenv("OVERLAP_PAIRS");
    return text ? atoi(text) : usual;
}

static tb_pose identity(void)
{
    tb_pose pose = {.rotation = tb_m33_identity()};
    return pose;
}

static tb_solid solid_of(const double *vertices, int32_t nv, const int32_t *triangles, int32_t nt)
{
    tb_surface_mesh m = {0};
    tb_solid solid;
    for (int32_t v = 0; v < nv; v++)
        tb_surface_mesh_vertex(&m, vertices[3 * v], vertices[3 * v + 1], vertices[3 * v + 2]);
    for (int32_t t = 0; t < nt; t++)
        tb_surface_mesh_triangle(&m, triangles[3 * t], triangles[3 * t + 1], triangles[3 * t + 2]);
    TEST_OK(tb_surface_mesh_check(&m, TB_REPAIR_REFUSE, "solid", &error), &error);
    TEST_OK(tb_solid_of_mesh(&m, "solid", &solid, &error), &error);
    return solid;
}

/* Total volume of the parts, by the pieces. */
static double overlap_of(const tb_solid *a, const tb_solid *b, int32_t *parts)
{
    tb_overlaps_found found = {0};
    const tb_pose pose = identity();
    TEST_OK(tb_solids_overlap(a, &pose, b, &pose, true, &found, &error), &error);
    double volume = 0;
    for (int32_t i = 0; i < found.number_of_parts; i++) volume += found.parts[i].volume;
    if (parts) *parts = found.number_of_parts;
    tb_overlaps_found_free(&found);
    return volume;
}

/* ---- random tetrahedra ---- */

static const int32_t TETRA[12] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};

static void random_tetra(tb_random *random, double x[12])
{
    do {
        for (int i = 0; i < 12; i++) x[i] = tb_random_between(random, -1, 1);
        const tb_vec3 o = tb_v3_load(x);
        const double six = tb_v3_dot(
            tb_v3_sub(tb_v3_load(x + 3), o),
            tb_v3_cross(tb_v3_sub(tb_v3_load(x + 6), o), tb_v3_sub(tb_v3_load(x + 9), o)));
        if (six < 0)
            for (int i = 0; i < 3; i++) {
                const double swap = x[3 + i];
                x[3 + i] = x[6 + i];
                x[6 + i] = swap;
            }
        if (fabs(six) > 1e-3) break;
    } while (true);
}

START_TEST(random_tetrahedra_overlap_as_rationals_say)
{
    exact_pool *pool = exact_pool_create();
    tb_random random = tb_random_stream(26, 0);
    const int32_t pairs = pairs_wanted(800);
    int32_t met = 0;
    double worst = 0;
    for (int32_t i = 0; i < pairs; i++) {
        double a[12], b[12];
        random_tetra(&random, a);
        random_tetra(&random, b);
        tb_solid sa = solid_of(a, 4, TETRA, 4), sb = solid_of(b, 4, TETRA, 4);
        const double exact = exact_tetra_overlap(pool, a, b);
        const double volume = overlap_of(&sa, &sb, NULL);
        /* an overlap below 1e-15 m3 of solids of 1 m is a corner of rounding errors */
        if (exact > 1e-15) {
            worst = fmax(worst, fabs(volume - exact) / exact);
            TEST_NEAR_RELATIVE(volume, exact, 1e-9);
            met++;
        } else {
            TEST_NEAR(volume, exact, 1e-15);
        }
        tb_solid_free(&sa);
        tb_solid_free(&sb);
    }
    printf("%d pairs, %d overlap, worst relative error %.2g\n", pairs, met, worst);
    ck_assert_int_gt(met, pairs / 10);
    exact_pool_destroy(pool);
}
END_TEST

/* ---- stars: no convex hulls ---- */

enum { STAR_VERTICES = 12, STAR_TRIANGLES = 20 };
static const int32_t STAR[60] = {0, 1,  2, 0, 2,  3, 0, 3,  4,  0, 4,  5,  0,  5,  1,
                                 1, 6,  2, 2, 6,  7, 2, 7,  3,  3, 7,  8,  3,  8,  4,
                                 4, 8,  9, 4, 9,  5, 5, 9,  10, 5, 10, 1,  1,  10, 6,
                                 6, 11, 7, 7, 11, 8, 8, 11, 9,  9, 11, 10, 10, 11, 6};

/* An icosahedron with corners at random distances from a random centre. */
static void random_star(tb_random *random, double x[36])
{
    double centre[3];
    for (int i = 0; i < 3; i++) centre[i] = tb_random_between(random, -0.7, 0.7);
    for (int v = 0; v < STAR_VERTICES; v++) {
        const double z = v == 0 ? 1 : (v == 11 ? -1 : (v < 6 ? 0.4472 : -0.4472));
        const double r = sqrt(1 - z * z),
                     angle = v < 6 ? (v - 1) * 1.256637 : (v - 6) * 1.256637 + 0.6283;
        const double scale = tb_random_between(random, 0.2, 1);
        x[3 * v] = centre[0] + scale * r * cos(angle);
        x[3 * v + 1] = centre[1] + scale * r * sin(angle);
        x[3 * v + 2] = centre[2] + scale * z;
    }
}

START_TEST(random_stars_overlap_as_rationals_say)
{
    exact_pool *pool = exact_pool_create();
    tb_random random = tb_random_stream(26, 1);
    const int32_t pairs = pairs_wanted(6);
    int32_t met = 0, concave = 0;
    for (int32_t i = 0; i < pairs; i++) {
        double a[36], b[36];
        random_star(&random, a);
        random_star(&random, b);
        tb_solid sa = solid_of(a, STAR_VERTICES, STAR, STAR_TRIANGLES);
        tb_solid sb = solid_of(b, STAR_VERTICES, STAR, STAR_TRIANGLES);
        concave += sa.number_of_pieces > 1;
        const double exact = exact_overlap(pool, a, STAR_VERTICES, STAR, STAR_TRIANGLES, b,
                                           STAR_VERTICES, STAR, STAR_TRIANGLES);
        const double volume = overlap_of(&sa, &sb, NULL);
        if (exact > 1e-12)
            TEST_NEAR_RELATIVE(volume, exact, 1e-9);
        else
            TEST_NEAR(volume, exact, 1e-12);
        met += exact > 1e-12;
        tb_solid_free(&sa);
        tb_solid_free(&sb);
    }
    ck_assert_int_gt(met, 0);
    ck_assert_int_gt(concave, pairs / 3);
    exact_pool_destroy(pool);
}
END_TEST

/* ---- boxes: flat and touching ---- */

static const int32_t BOX[36] = {0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5, 0, 1, 5, 0, 5, 4,
                                2, 6, 7, 2, 7, 3, 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6};

static tb_solid box(double x, double y, double z, double sx, double sy, double sz)
{
    double v[24];
    for (int i = 0; i < 8; i++) {
        v[3 * i] = x + (i & 1 ? sx : 0);
        v[3 * i + 1] = y + (i & 2 ? sy : 0);
        v[3 * i + 2] = z + (i & 4 ? sz : 0);
    }
    return solid_of(v, 8, BOX, 12);
}

START_TEST(flat_and_touching_boxes_overlap_exactly)
{
    static const struct {
        double b[6], volume;
    } CASES[] = {{{0, 0, 0, 1, 1, 1}, 1},              /* the same */
                 {{0, 0, 1, 1, 1, 1}, 0},              /* face on face */
                 {{1, 1, 0, 1, 1, 1}, 0},              /* edge on edge */
                 {{1, 1, 1, 1, 1, 1}, 0},              /* corner on corner */
                 {{0, 0, 0.5, 1, 1, 1}, 0.5},          /* side faces flush */
                 {{0.25, 0.25, 0, 0.5, 0.5, 1}, 0.25}, /* inside, both ends flush */
                 {{0.25, 0.25, 0.25, 0.5, 0.5, 0.5}, 0.125},
                 {{-1, -1, -1, 3, 3, 3}, 1}, /* outside of all */
                 {{0, 0, 1e-9, 1, 1, 1}, 1 - 1e-9},
                 {{1 - 1e-9, 0, 0, 1, 1, 1}, 1e-9}};
    tb_solid a = box(0, 0, 0, 1, 1, 1);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const double *b = CASES[i].b;
        tb_solid other = box(b[0], b[1], b[2], b[3], b[4], b[5]);
        TEST_NEAR(overlap_of(&a, &other, NULL), CASES[i].volume, 1e-15);
        TEST_NEAR(overlap_of(&other, &a, NULL), CASES[i].volume, 1e-15);
        tb_solid_free(&other);
    }
    tb_solid_free(&a);
}
END_TEST

/* Faces that are parallel up to an angle between rounding and a millionth. */
START_TEST(nearly_flush_boxes_overlap_to_rounding)
{
    tb_solid a = box(-0.5, -0.5, -0.5, 1, 1, 1);
    for (int k = 16; k >= 5; k--) {
        const double angle = pow(10, -k);
        const tb_pose fixed = identity();
        tb_pose turned = {.position = tb_v3(0, 0, 0.75),
                          .rotation =
                              tb_q_matrix(tb_q_normalize(tb_q(1, angle, -angle / 3, angle)))};
        tb_overlaps_found found = {0};
        TEST_OK(tb_solids_overlap(&a, &fixed, &a, &turned, true, &found, &error), &error);
        ck_assert_int_eq(found.number_of_parts, 1);
        /* edges that stick out take at most the angle times the flanks */
        TEST_NEAR(found.parts[0].volume, 0.25, 1e-15 + 4 * angle);
        TEST_NEAR(found.parts[0].area.z, -1, 1e-14 + 4 * angle);
        tb_overlaps_found_free(&found);
    }
    tb_solid_free(&a);
}
END_TEST

/* ---- parts ---- */

/* A bar under an arch of two legs: two overlaps, which splitting separates. */
START_TEST(disjoint_overlaps_are_separate_parts)
{
    static const double OUTLINE[8][2] = {{0, 0}, {1, 0}, {1, 2}, {2, 2},
                                         {2, 0}, {3, 0}, {3, 3}, {0, 3}};
    static const int32_t FLAT[18] = {0, 1, 2, 0, 2, 7, 2, 3, 7, 3, 6, 7, 3, 4, 6, 4, 5, 6};
    double v[48];
    int32_t triangles[84], n = 0;
    for (int i = 0; i < 16; i++) {
        v[3 * i] = OUTLINE[i % 8][0];
        v[3 * i + 1] = OUTLINE[i % 8][1];
        v[3 * i + 2] = i / 8;
    }
    for (int i = 0; i < 18; i += 3) {
        const int32_t *f = FLAT + i;
        triangles[n++] = f[0], triangles[n++] = f[2], triangles[n++] = f[1];
        triangles[n++] = f[0] + 8, triangles[n++] = f[1] + 8, triangles[n++] = f[2] + 8;
    }
    for (int i = 0; i < 8; i++) {
        const int32_t a = i, b = (i + 1) % 8;
        triangles[n++] = a, triangles[n++] = b, triangles[n++] = b + 8;
        triangles[n++] = a, triangles[n++] = b + 8, triangles[n++] = a + 8;
    }
    tb_solid arch = solid_of(v, 16, triangles, n / 3);
    int32_t parts;
    tb_solid low = box(-1, 0.5, 0.25, 5, 0.5, 0.5), high = box(-1, 1.5, 0.25, 5, 1, 0.5);
    TEST_NEAR(overlap_of(&arch, &low, &parts), 2 * 0.25, 1e-14);
    ck_assert_int_eq(parts, 2);
    /* the higher bar also meets the beam, which joins both legs */
    TEST_NEAR(overlap_of(&arch, &high, &parts), 2 * 0.5 + 0.25, 1e-14);
    ck_assert_int_eq(parts, 1);
    tb_solid_free(&arch);
    tb_solid_free(&low);
    tb_solid_free(&high);
}
END_TEST

/* ---- faults of surfaces ---- */

static void expect_fault(int32_t left_out, int32_t reversed, bool crossed, const char *words)
{
    for (int mend = 0; mend < 2; mend++) {
        tb_surface_mesh m = {0};
        for (int i = 0; i < 8; i++) tb_surface_mesh_vertex(&m, i & 1, i >> 1 & 1, i >> 2 & 1);
        if (crossed) m.vertices[0] = 1.5, m.vertices[1] = 0.4, m.vertices[2] = 0.6;
        for (int32_t t = 0; t < 12; t++) {
            const int32_t *v = BOX + 3 * t;
            if (t == left_out) continue;
            if (t == reversed)
                tb_surface_mesh_triangle(&m, v[0], v[2], v[1]);
            else
                tb_surface_mesh_triangle(&m, v[0], v[1], v[2]);
        }
        const tb_status status =
            tb_surface_mesh_check(&m, mend ? TB_REPAIR_MEND : TB_REPAIR_REFUSE, "crate", &error);
        if (mend && !crossed) {
            TEST_OK(status, &error);
            TEST_NEAR(tb_surface_mesh_volume(&m), 1, 1e-15);
        } else {
            TEST_STATUS(status, TB_INVALID_ARGUMENT, &error);
            ck_assert_msg(strstr(error.message, words) && strstr(error.message, "crate"), "%s",
                          error.message);
        }
        tb_surface_mesh_free(&m);
    }
}

START_TEST(faults_of_a_surface_are_named_or_mended)
{
    expect_fault(3, -1, false, "a hole at the edge from (");
    expect_fault(-1, 5, false, "reversed at the edge from (");
    expect_fault(-1, -1, true, "cross each other near (");
}
END_TEST

TEST_MAIN(random_tetrahedra_overlap_as_rationals_say, random_stars_overlap_as_rationals_say,
          flat_and_touching_boxes_overlap_exactly, nearly_flush_boxes_overlap_to_rounding,
          disjoint_overlaps_are_separate_parts, faults_of_a_surface_are_named_or_mended)
