/* Constructive solid geometry: volumes of unions, differences and intersections, flush and touching
 * faces, extrusions, faults, and a drilled plate in a scene of the volume law. */
#include "base/random.h"
#include "mjcf_files.h"
#include "model/import/mesh/mesh_file.h"

static tb_error error;

/* The volume of a text's solid; its surface is closed, or the text is refused. 0 for an empty solid. */
static double volume_of(const char *text)
{
    tb_mesh_data mesh;
    if (tb_csg_parse(text, strlen(text), "t.csg", &mesh, &error) != TB_OK &&
        strstr(error.message, "the solid is empty"))
        return 0;
    tb_mesh_data_free(&mesh);
    TEST_OK(tb_csg_parse(text, strlen(text), "t.csg", &mesh, &error), &error);
    const tb_mass_properties m =
        tb_mesh_mass_properties(mesh.vertices, mesh.number_of_vertices, mesh.triangles,
                                mesh.number_of_triangles, TB_MESH_INERTIA_EXACT);
    tb_mesh_data_free(&mesh);
    return m.volume;
}

static void refuses(const char *text, tb_status status, const char *words)
{
    tb_mesh_data mesh;
    TEST_STATUS(tb_csg_parse(text, strlen(text), "t.csg", &mesh, &error), status, &error);
    ck_assert_msg(strstr(error.message, words) != NULL, "%s", error.message);
}

#define CUBE           "cube([1,1,1]);"
#define MOVED(x, cube) "translate([" x "]) " cube

START_TEST(boxes_combine_to_their_volumes)
{
    static const struct {
        const char *text;
        double volume;
    } CASES[] = {
        {"union(){" CUBE MOVED("0.5,0,0", CUBE) "}", 1.5}, /* side faces flush */
        {"difference(){" CUBE MOVED("0.5,0,0", CUBE) "}", 0.5},
        {"intersection(){" CUBE MOVED("0.5,0,0", CUBE) "}", 0.5},
        {"union(){" CUBE MOVED("0.5,0.25,0.125", CUBE) "}", 2 - 0.5 * 0.75 * 0.875},
        {"difference(){" CUBE MOVED("0.5,0.25,0.125", CUBE) "}", 1 - 0.5 * 0.75 * 0.875},
        {"intersection(){" CUBE MOVED("0.5,0.25,0.125", CUBE) "}", 0.5 * 0.75 * 0.875},
        {"union(){" CUBE CUBE "}", 1}, /* the same twice */
        {"intersection(){" CUBE CUBE "}", 1},
        {"union(){" CUBE MOVED("1,0,0", CUBE) "}", 2},   /* face on face */
        {"union(){" CUBE MOVED("1,0.5,0", CUBE) "}", 2}, /* in part */
        {"difference(){" CUBE MOVED("1,0,0", CUBE) "}", 1},
        {"union(){" CUBE MOVED("3,0,0", CUBE) "}", 2},                  /* apart */
        {"union(){" CUBE MOVED("0.25,0.25,0.25", "cube(0.5);") "}", 1}, /* one inside the other */
        {"difference(){" CUBE MOVED("0.25,0.25,0.25", "cube(0.5);") "}", 0.875},
        {"difference(){" CUBE MOVED("0.25,0.25,-1", "cube([0.5,0.5,3]);") "}", 0.75},
        {"difference(){" CUBE MOVED("0.25,0.25,0", "cube([0.5,0.5,1]);") "}",
         0.75}, /* flush ends */
        {"difference(){cube(3, center = true);" MOVED("-0.5,-0.5,-2", "cube([1,1,4]);")
             MOVED("-2,-0.5,-0.5", "cube([4,1,1]);") MOVED("-0.5,-2,-0.5", "cube([1,4,1]);") "}",
         20}, /* a sponge */
        {"group(){group();difference(){" CUBE "}}" MOVED("0,0,1", CUBE), 2}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const double volume = volume_of(CASES[i].text);
        ck_assert_msg(fabs(volume / CASES[i].volume - 1) < 1e-12, "%s: %.15g", CASES[i].text,
                      volume);
    }
    refuses("difference(){" CUBE CUBE "}", TB_INVALID_ARGUMENT, "the solid is empty");
    refuses("intersection(){" CUBE MOVED("1,0,0", CUBE) "}", TB_INVALID_ARGUMENT, "is empty");
}
END_TEST

/* |A or B| + |A and B| = |A| + |B|, |A not B| + |A and B| = |A|, for boxes, cylinders and spheres. */
START_TEST(random_solids_obey_the_laws_of_volumes)
{
    tb_random random = tb_random_stream(26, 9);
    int met = 0;
    for (int round = 0; round < 150; round++) {
        char one[2][400], text[1000];
        double v[2], all, both, rest;
        for (int i = 0; i < 2; i++) {
            double x[9];
            for (int k = 0; k < 9; k++) x[k] = tb_random_between(&random, 0.3, 1);
            const int kind = (int)(tb_random_uniform(&random) * 3);
            const int n =
                snprintf(one[i], sizeof one[i],
                         "translate([%.17g,%.17g,%.17g]) rotate([%.17g,%.17g,%.17g]) ", x[3] - 0.5,
                         x[4] - 0.5, x[5] - 0.5, 360 * x[6], 360 * x[7], 360 * x[8]);
            if (kind == 0)
                snprintf(one[i] + n, sizeof one[i] - (size_t)n,
                         "cube([%.17g,%.17g,%.17g], center=true);", x[0], x[1], x[2]);
            else if (kind == 1)
                snprintf(one[i] + n, sizeof one[i] - (size_t)n,
                         "cylinder($fn=11, h=%.17g, r1=%.17g, r2=%.17g, center=true);", x[0], x[1],
                         x[2]);
            else
                snprintf(one[i] + n, sizeof one[i] - (size_t)n, "sphere($fn=12, r=%.17g);", x[0]);
            v[i] = volume_of(one[i]);
        }
        snprintf(text, sizeof text, "union(){%s%s}", one[0], one[1]);
        all = volume_of(text);
        snprintf(text, sizeof text, "intersection(){%s%s}", one[0], one[1]);
        both = volume_of(text);
        snprintf(text, sizeof text, "difference(){%s%s}", one[0], one[1]);
        rest = volume_of(text);
        met += both > 0 && rest > 0;
        TEST_NEAR_RELATIVE(all + both, v[0] + v[1], 1e-8);
        TEST_NEAR_RELATIVE(rest + both, v[0], 1e-8);
    }
    ck_assert_int_gt(met, 100);
}
END_TEST

/* Trees of convex solids are chains as long as their faces are many. */
START_TEST(many_faces_need_no_deep_calls)
{
    const double ball = volume_of("sphere($fn = 100, r = 1);"), pi = acos(-1.);
    TEST_NEAR_RELATIVE(ball, 4 * pi / 3, 3e-3);
    TEST_NEAR_RELATIVE(
        volume_of("difference() { cube(4, center = true); sphere($fn = 100, r = 1); }"), 64 - ball,
        1e-9);
}
END_TEST

START_TEST(outlines_are_extruded)
{
    const double circle = 0.5 * 16 * sin(2 * acos(-1.) / 16); /* 16 sides, radius 1 */
    TEST_NEAR_RELATIVE(volume_of("linear_extrude(height = 2) polygon(points = [[0,0],[2,0],[2,1],"
                                 "[1,1],[1,2],[0,2]], paths = undef);"),
                       6, 1e-12);
    TEST_NEAR_RELATIVE(volume_of("linear_extrude(height = 2, center = true) polygon([[0,0],[0,2],"
                                 "[1,2],[1,1],[2,1],[2,0]], [[0,1,2,3,4,5]]);"),
                       6, 1e-12); /* clockwise */
    TEST_NEAR_RELATIVE(volume_of("linear_extrude(height = 0.5) difference() { square([4,4], "
                                 "center = true); circle($fn = 16, r = 1); }"),
                       0.5 * (16 - circle), 1e-12);
    TEST_NEAR_RELATIVE(volume_of("cylinder($fn = 16, h = 3, r1 = 1, r2 = 0);"), circle, 1e-12);
    TEST_NEAR_RELATIVE(volume_of("multmatrix([[-2,0,0,1],[0,1,0,0],[0,0,1,0],[0,0,0,1]]) { " CUBE
                                 " } // mirrored"),
                       2, 1e-12);
    TEST_NEAR_RELATIVE(volume_of("polyhedron(points=[[0,0,0],[1,0,0],[0,1,0],[0,0,1]], "
                                 "faces=[[0,1,2],[0,3,1],[0,2,3],[1,3,2]]);"),
                       1. / 6, 1e-12);
    refuses("square(1);", TB_INVALID_ARGUMENT, "is flat");
    refuses("linear_extrude(height=1) cube(1);", TB_INVALID_ARGUMENT, "cannot be extruded");
    refuses("linear_extrude(height=1, twist=9) square(1);", TB_UNSUPPORTED, "straight");
    refuses(CUBE "\n\nhull() { " CUBE " }", TB_UNSUPPORTED, "'hull' is not read");
    ck_assert_msg(strstr(error.message, "t.csg:3") != NULL, "%s", error.message);
    refuses("union() { " CUBE, TB_INVALID_ARGUMENT, "'}' is missing");
    refuses("cube(1e13);", TB_INVALID_ARGUMENT, "beyond 1e+12 m");
    refuses("polyhedron(points=[7,[0,0,0],[1,0,0],[0,1,0]], faces=[[0,1,2]]);", TB_INVALID_ARGUMENT,
            "3 or more lists of 3 numbers");
    refuses("cube(size = );", TB_INVALID_ARGUMENT, "is no number");
    refuses("polyhedron(points=[[0,0,0],[1,0,0],[0,1,0]], faces=[[0,1,7]]);", TB_INVALID_ARGUMENT,
            "names point 7 of 3");
    refuses(
        "polyhedron(points=[[0,0,0],[1,0,0],[0,1,0],[0,0,1]], faces=[[0,1,2],[0,3,1],[0,2,3]]);",
        TB_INVALID_ARGUMENT, "not closed at the edge from (");
}
END_TEST

/* A bar through the hole of a drilled plate touches nothing; a thicker one overlaps by its corners. */
START_TEST(a_drilled_plate_keeps_its_hole_under_the_volume_law)
{
    static const char PLATE[] = "difference() { cube([4,4,1], center = true);\n"
                                "cube([1,1,3], center = true); }";
    for (int thick = 0; thick < 2; thick++) {
        char text[800];
        snprintf(text, sizeof text,
                 "<mujoco><asset><mesh name='plate' file='plate.csg' inertia='exact'/></asset>"
                 "<worldbody><geom type='sdf' mesh='plate'/><body pos='0.05 0 0'><freejoint/>"
                 "<geom type='box' size='%s 0.4 2'/></body></worldbody></mujoco>",
                 thick ? "0.55" : "0.4");
        const mjcf_file files[] = {{"model.xml", text, strlen(text)},
                                   {"plate.csg", PLATE, sizeof PLATE - 1},
                                   {NULL, NULL, 0}};
        mjcf_case c;
        tb_volume_measure m;
        tb_state *state;
        TEST_OK(mjcf_load_files(files, &c), &c.error);
        TEST_OK(tb_state_create(c.model, &state, &error), &error);
        TEST_OK(tb_state_measure_volume(state, "pieces", 0, &m, &error), &error);
        ck_assert_int_eq(m.pairs, 1);
        TEST_NEAR(m.volume, thick ? 0.1 * 0.8 * 1 : 0, 1e-12); /* x up to 0.6 of 0.5 */
        tb_state_destroy(state);
        mjcf_free(&c);
    }
}
END_TEST

TEST_MAIN(boxes_combine_to_their_volumes, random_solids_obey_the_laws_of_volumes,
          many_faces_need_no_deep_calls, outlines_are_extruded,
          a_drilled_plate_keeps_its_hole_under_the_volume_law)
