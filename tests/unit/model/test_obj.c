/* OBJ from memory: elements read, triangulation of faces, and every failure. */
#include "test_util.h"

#include "model/import/mesh/mesh_file.h"

static tb_error error;

static tb_status parse(const char *text, tb_mesh_data *mesh)
{
    memset(&error, 0, sizeof error);
    return tb_obj_parse(text, strlen(text), "t.obj", mesh, &error);
}

/* Parses, expects a failure with this status at this line whose message contains this text. */
static void check_failure(const char *text, tb_status expected, int line, const char *words)
{
    tb_mesh_data mesh;
    const tb_status status = parse(text, &mesh);
    ck_assert_msg(status == expected, "%s gave %s (%s)", text, tb_status_name(status),
                  error.message);
    ck_assert_int_eq(error.line, line);
    ck_assert_str_eq(error.file, "t.obj");
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
    ck_assert_ptr_null(mesh.vertices);
}

/* Area of a mesh in the XY plane, signed: shows gaps, overlaps and wrong turns. */
static double signed_area(const tb_mesh_data *mesh, bool *all_positive)
{
    double area = 0;
    *all_positive = true;
    for (int32_t i = 0; i < mesh->number_of_triangles; i++) {
        const double *a = mesh->vertices + 3 * mesh->triangles[3 * i];
        const double *b = mesh->vertices + 3 * mesh->triangles[3 * i + 1];
        const double *c = mesh->vertices + 3 * mesh->triangles[3 * i + 2];
        const double twice = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        if (!(twice > 0)) *all_positive = false;
        area += twice / 2;
    }
    return area;
}

#define SQUARE "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"

START_TEST(every_form_of_corner_is_read)
{
    static const char *const FACES[] = {
        "f 1 2 3\n",    "f 1/1 2/1 3/1\n",           "f 1//1 2//1 3//1\n", "f 1/1/1 2/1/1 3/1/1\n",
        "f -4 -3 -2\n", "f -4/-1 -3/-1/-1 -2//-1\n", "f +1 2 3 # comment"};
    for (size_t i = 0; i < sizeof FACES / sizeof FACES[0]; i++) {
        char text[200];
        tb_mesh_data mesh;
        snprintf(text, sizeof text, "%svt 0 0\nvn 0 0 1\n%s", SQUARE, FACES[i]);
        TEST_OK(parse(text, &mesh), &error);
        ck_assert_int_eq(mesh.number_of_vertices, 3);
        ck_assert_int_eq(mesh.number_of_triangles, 1);
        for (int k = 0; k < 3; k++) ck_assert_int_eq(mesh.triangles[k], k);
        TEST_NEAR(mesh.vertices[7], 1, 0);
        tb_mesh_data_free(&mesh);
    }
}
END_TEST

START_TEST(statements_without_shape_are_passed_over)
{
    tb_mesh_data mesh;
    TEST_OK(parse("\xEF\xBB\xBF# made by hand\r\nmtllib a.mtl\r\no thing\r\ng a b\r\ns off\r\n"
                  "usemtl red\r\nv 0 0 0 1\r\nv 1 0 0 0.5 0.5 0.5\r\nv 0 1e0 0\r\nl 1 2\r\n"
                  "p 1\r\nf 1 2 3\r\n",
                  &mesh),
            &error);
    ck_assert_int_eq(mesh.number_of_triangles, 1);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(lines_continue_behind_a_backslash_and_are_counted)
{
    tb_mesh_data mesh;
    TEST_OK(parse("v 0 \\\n0 0\nv 1 0 0\nv 0 1 \\\r\n 0\nf 1 \\\n 2 3", &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 1);
    tb_mesh_data_free(&mesh);
    check_failure("v 0 \\\n0 0\nf 1 \\\n2 3\n", TB_INVALID_ARGUMENT, 4, "out of range");
}
END_TEST

START_TEST(lines_may_end_in_a_lone_carriage_return)
{
    tb_mesh_data mesh;
    TEST_OK(parse("v 0 0 0\rv 1 0 0\rv 0 1 0\rf 1 2 3\r", &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 1);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(a_face_may_come_before_its_vertices)
{
    tb_mesh_data mesh;
    TEST_OK(parse("f 1 2 3\n" SQUARE, &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 1);
    tb_mesh_data_free(&mesh);
    /* but not by a negative index, which counts back from its own line */
    check_failure("f -1 -2 -3\n" SQUARE, TB_INVALID_ARGUMENT, 1, "out of range");
}
END_TEST

START_TEST(unused_vertices_are_left_out_unless_there_is_no_face)
{
    tb_mesh_data mesh;
    TEST_OK(parse("v 9 9 9\n" SQUARE "v 8 8 8\nf 2 3 4\n", &mesh), &error);
    ck_assert_int_eq(mesh.number_of_vertices, 3);
    TEST_NEAR(mesh.vertices[3], 1, 0);
    tb_mesh_data_free(&mesh);
    TEST_OK(parse(SQUARE, &mesh), &error);
    ck_assert_int_eq(mesh.number_of_vertices, 4);
    ck_assert_int_eq(mesh.number_of_triangles, 0);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(polygons_are_cut_into_triangles)
{
    static const struct {
        const char *text;
        int triangles;
        double area;
    } CASES[] = {
        {SQUARE "f 1 2 3 4\n", 2, 1},
        /* an L, from each kind of start */
        {"v 0 0 0\nv 2 0 0\nv 2 1 0\nv 1 1 0\nv 1 2 0\nv 0 2 0\nf 1 2 3 4 5 6\n", 4, 3},
        {"v 0 0 0\nv 2 0 0\nv 2 1 0\nv 1 1 0\nv 1 2 0\nv 0 2 0\nf 5 6 1 2 3 4\n", 4, 3},
        /* a dart, whose fan from the first corner would leave it */
        {"v 0 0 0\nv 2 1 0\nv 0 2 0\nv 1 1 0\nf 1 2 3 4\n", 2, 1},
        /* a square with a corner amid each side: no triangle without area */
        {"v 0 0 0\nv 1 0 0\nv 2 0 0\nv 2 1 0\nv 2 2 0\nv 1 2 0\nv 0 2 0\nv 0 1 0\n"
         "f 2 3 4 5 6 7 8 1\n",
         6, 4},
        /* a frame: a square hole joined to the outside by a slit */
        {"v 0 0 0\nv 3 0 0\nv 3 3 0\nv 0 3 0\nv 1 1 0\nv 2 1 0\nv 2 2 0\nv 1 2 0\n"
         "f 1 2 3 4 1 5 8 7 6 5\n",
         8, 8},
        /* a comb */
        {"v 0 0 0\nv 5 0 0\nv 5 3 0\nv 4 3 0\nv 4 1 0\nv 3 1 0\nv 3 3 0\nv 2 3 0\nv 2 1 0\n"
         "v 1 1 0\nv 1 3 0\nv 0 3 0\nf 1 2 3 4 5 6 7 8 9 10 11 12\n",
         10, 11}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tb_mesh_data mesh;
        bool all_positive;
        TEST_OK(parse(CASES[i].text, &mesh), &error);
        ck_assert_int_eq(mesh.number_of_triangles, CASES[i].triangles);
        TEST_NEAR(signed_area(&mesh, &all_positive), CASES[i].area, 1e-14);
        ck_assert_msg(all_positive, "case %zu has a triangle turned round or without area", i);
        tb_mesh_data_free(&mesh);
    }
}
END_TEST

START_TEST(a_quadrangle_is_cut_along_its_shorter_diagonal)
{
    tb_mesh_data mesh;
    TEST_OK(parse("v 0 0 0\nv 2 1 0\nv 4 0 1\nv 2 -1 0\nf 1 2 3 4\n", &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 2);
    static const int32_t CORNERS[] = {0, 1, 3, 1, 2, 3};
    for (int i = 0; i < 6; i++) ck_assert_int_eq(mesh.triangles[i], CORNERS[i]);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(polygons_that_are_not_simple_or_flat_still_give_triangles)
{
    static const char *const FACES[] = {
        "v 0 0 0\nv 1 1 0\nv 1 0 0\nv 0 1 0\nf 1 2 3 4\n",   /* a bow tie */
        "v 0 0 0\nv 1 0 0\nv 2 0 0\nv 3 0 0\nf 1 2 3 4\n",   /* on one line */
        "v 0 0 0\nv 1 0 0\nv 1 1 0.5\nv 0 1 0\nf 1 2 3 4\n", /* bent */
        "v 0 0 0\nv 1e-300 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n"};
    for (size_t i = 0; i < sizeof FACES / sizeof FACES[0]; i++) {
        tb_mesh_data mesh;
        TEST_OK(parse(FACES[i], &mesh), &error);
        ck_assert_int_eq(mesh.number_of_triangles, 2);
        tb_mesh_data_free(&mesh);
    }
}
END_TEST

START_TEST(a_large_polygon_that_is_not_convex_is_refused)
{
    const int count = TB_MESH_FACE_LIMIT + 2;
    char *text = malloc((size_t)count * 80), *at = text;
    for (int i = 0; i < count; i++) {
        const double angle = 2 * 3.14159265358979 * i / count, radius = i % 2 ? 1 : 2;
        at += sprintf(at, "v %.12f %.12f 0\n", radius * cos(angle), radius * sin(angle));
    }
    at += sprintf(at, "f");
    for (int i = 1; i <= count; i++) at += sprintf(at, " %d", i);
    check_failure(text, TB_RESOURCE_EXHAUSTED, count + 1, "4098 vertices");

    /* one corner less on each side, and it is cut */
    tb_mesh_data mesh;
    bool all_positive;
    at = strrchr(text, ' ');
    *at = 0;
    *strrchr(text, ' ') = 0;
    TEST_OK(parse(text, &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, TB_MESH_FACE_LIMIT - 2);
    ck_assert(signed_area(&mesh, &all_positive) > 6);
    ck_assert(all_positive);
    tb_mesh_data_free(&mesh);
    free(text);
}
END_TEST

START_TEST(a_triangle_that_names_a_vertex_twice_is_left_out)
{
    tb_mesh_data mesh;
    TEST_OK(parse(SQUARE "f 1 2 3\nf 1 1 2\n", &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 1);
    tb_mesh_data_free(&mesh);
    /* as are points and lines that call themselves faces */
    TEST_OK(parse(SQUARE "f 1 2\nf 4 3 2\nf 4\n", &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 1);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(every_mistake_is_named_with_its_line)
{
    check_failure("", TB_INVALID_ARGUMENT, 1, "no vertices");
    check_failure("# nothing\n\n", TB_INVALID_ARGUMENT, 3, "no vertices");
    check_failure("v 0 0\n", TB_INVALID_ARGUMENT, 1, "2 numbers");
    check_failure("v\n", TB_INVALID_ARGUMENT, 1, "0 numbers");
    check_failure("v 1 2 3 4 5 6 7 8\n", TB_INVALID_ARGUMENT, 1, "8 numbers");
    check_failure("v 0 0 0\nv 0 nan 0\n", TB_INVALID_ARGUMENT, 2, "finite");
    check_failure("v 0 0 -inf\n", TB_INVALID_ARGUMENT, 1, "finite");
    check_failure("v 0 0 1e999\n", TB_INVALID_ARGUMENT, 1, "finite");
    check_failure("v 0 0 1e13\n", TB_INVALID_ARGUMENT, 1, "1e+13");
    check_failure("v 0 0 x\n", TB_INVALID_ARGUMENT, 1, "no number");
    check_failure("v 0 0 1x\n", TB_INVALID_ARGUMENT, 1, "no number");
    check_failure(SQUARE "f\n", TB_INVALID_ARGUMENT, 5, "a face has no vertices");
    check_failure(SQUARE "f 1 2 5\n", TB_INVALID_ARGUMENT, 5, "index 5 is out of range");
    check_failure(SQUARE "f 1 2 0\n", TB_INVALID_ARGUMENT, 5, "index 0 is out of range");
    check_failure(SQUARE "f 1 2 -5\n", TB_INVALID_ARGUMENT, 5, "index -5 is out of range");
    check_failure(SQUARE "f 1 2 99999999999999999999\n", TB_INVALID_ARGUMENT, 5, "out of range");
    check_failure(SQUARE "f 1 2 -99999999999999999999\n", TB_INVALID_ARGUMENT, 5, "out of range");
    check_failure(SQUARE "f 1 2 3.5\n", TB_INVALID_ARGUMENT, 5, "no vertex index");
    check_failure(SQUARE "f 1 2 3/\n", TB_INVALID_ARGUMENT, 5, "no vertex index");
    check_failure(SQUARE "f 1 2 3//\n", TB_INVALID_ARGUMENT, 5, "no vertex index");
    check_failure(SQUARE "f 1 2 3/1/1/1\n", TB_INVALID_ARGUMENT, 5, "no vertex index");
    check_failure(SQUARE "f 1 2 /3\n", TB_INVALID_ARGUMENT, 5, "no vertex index");
    check_failure(SQUARE "curv 0 1 1 2\n", TB_UNSUPPORTED, 5, "'curv'");
    check_failure(SQUARE "hello 0 1\n", TB_INVALID_ARGUMENT, 5, "'hello'");
    check_failure("solid\n", TB_INVALID_ARGUMENT, 1, "'solid'");
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused)
{
    static const char BYTES[] = "v 0 0 0\n\0\0\0";
    tb_mesh_data mesh;
    TEST_STATUS(tb_obj_parse(BYTES, sizeof BYTES - 1, "t.obj", &mesh, &error), TB_INVALID_ARGUMENT,
                NULL);
    ck_assert_int_eq(error.line, 2);
}
END_TEST

TEST_MAIN(every_form_of_corner_is_read, statements_without_shape_are_passed_over,
          lines_continue_behind_a_backslash_and_are_counted,
          lines_may_end_in_a_lone_carriage_return, a_face_may_come_before_its_vertices,
          unused_vertices_are_left_out_unless_there_is_no_face, polygons_are_cut_into_triangles,
          a_quadrangle_is_cut_along_its_shorter_diagonal,
          polygons_that_are_not_simple_or_flat_still_give_triangles,
          a_large_polygon_that_is_not_convex_is_refused,
          a_triangle_that_names_a_vertex_twice_is_left_out, every_mistake_is_named_with_its_line,
          bytes_that_are_no_text_are_refused)
