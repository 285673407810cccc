/* STL from memory, both kinds, and every way to fail. */
#include "test_util.h"

#include "model/import/mesh/mesh_file.h"

enum { HEADER = 84, RECORD = 50 };

static tb_error error;

static tb_status parse(const void *bytes, size_t size, tb_mesh_data *mesh)
{
    memset(&error, 0, sizeof error);
    return tb_stl_parse(bytes, size, "t.stl", mesh, &error);
}

static void check_failure(const void *bytes, size_t size, tb_status expected, int line,
                          const char *words)
{
    tb_mesh_data mesh;
    const tb_status status = parse(bytes, size, &mesh);
    ck_assert_msg(status == expected, "%s gave %s (%s)", words, tb_status_name(status),
                  error.message);
    ck_assert_int_eq(error.line, line);
    ck_assert_str_eq(error.file, "t.stl");
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
    ck_assert_ptr_null(mesh.vertices);
}

static void check_text_failure(const char *text, tb_status expected, int line, const char *words)
{
    check_failure(text, strlen(text), expected, line, words);
}

/* A binary file in a buffer of the test: header, count, and these triangles of 9 floats each. */
static size_t make_binary(char *bytes, const char *header, uint32_t count, const float *corners,
                          int triangles)
{
    memset(bytes, 0, HEADER + (size_t)triangles * RECORD + 1);
    memcpy(bytes, header, strlen(header));
    memcpy(bytes + 80, &count, 4); /* the tests run on little-endian machines */
    for (int t = 0; t < triangles; t++)
        memcpy(bytes + HEADER + t * RECORD + 12, corners + 9 * t, 36);
    return HEADER + (size_t)triangles * RECORD;
}

static const float TETRAHEDRON[36] = {0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1,
                                      0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};

static double volume(const tb_mesh_data *mesh)
{
    double six = 0;
    for (int32_t i = 0; i < mesh->number_of_triangles; i++) {
        const double *a = mesh->vertices + 3 * mesh->triangles[3 * i];
        const double *b = mesh->vertices + 3 * mesh->triangles[3 * i + 1];
        const double *c = mesh->vertices + 3 * mesh->triangles[3 * i + 2];
        six += a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
               a[2] * (b[0] * c[1] - b[1] * c[0]);
    }
    return six / 6;
}

#define FACET(a, b, c)                                                                             \
    "facet normal 0 0 0\n outer loop\n  vertex " a "\n  vertex " b "\n  vertex " c                 \
    "\n endloop\nendfacet\n"

START_TEST(a_binary_file_is_read_and_its_vertices_merged)
{
    char bytes[1000];
    tb_mesh_data mesh;
    const size_t size = make_binary(bytes, "made by hand", 4, TETRAHEDRON, 4);
    TEST_OK(parse(bytes, size, &mesh), &error);
    ck_assert_int_eq(mesh.number_of_vertices, 4);
    ck_assert_int_eq(mesh.number_of_triangles, 4);
    TEST_NEAR(volume(&mesh), 1.0 / 6, 1e-15);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(a_binary_file_may_begin_with_solid)
{
    char bytes[1000];
    tb_mesh_data mesh;
    const size_t size = make_binary(bytes, "solid but binary\n facet normal", 4, TETRAHEDRON, 4);
    TEST_OK(parse(bytes, size, &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 4);
    tb_mesh_data_free(&mesh);
    /* and is still known for binary where it is cut off */
    check_failure(bytes, size - 1, TB_DATA_LOSS, 0, "truncated");
}
END_TEST

START_TEST(an_ascii_file_is_read_in_any_case_and_layout)
{
    tb_mesh_data mesh;
    const char *text = "  SOLID a name with facet in it\r\n" FACET(
        "0 0 0", "1 0 0", "0 1 0") "Facet Normal nan nan nan outer loop vertex 0 0 0 vertex 0 1 0 "
                                   "vertex -0 0 1 endloop "
                                   "endFacet endsolid\nsolid second\n" FACET(
                                       "0 0 0", "0 0 1", "1 0 0") "endsolid second";
    TEST_OK(parse(text, strlen(text), &mesh), &error);
    ck_assert_int_eq(mesh.number_of_vertices, 4);
    ck_assert_int_eq(mesh.number_of_triangles, 3);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(many_vertices_are_merged_by_place)
{
    /* a strip of 2000 quads, each with six corners of its own */
    enum { QUADS = 2000 };
    float *corners = malloc(sizeof(float) * 18 * QUADS);
    char *bytes = malloc(HEADER + 2 * QUADS * RECORD + 1);
    for (int i = 0; i < QUADS; i++) {
        const float a = (float)i, b = (float)(i + 1);
        const float quad[18] = {a, 0, 0, b, 0, 0, b, 1, 0, a, 0, 0, b, 1, 0, a, 1, -0.0f};
        memcpy(corners + 18 * i, quad, sizeof quad);
    }
    tb_mesh_data mesh;
    const size_t size = make_binary(bytes, "strip", 2 * QUADS, corners, 2 * QUADS);
    TEST_OK(parse(bytes, size, &mesh), &error);
    ck_assert_int_eq(mesh.number_of_vertices, 2 * QUADS + 2);
    ck_assert_int_eq(mesh.number_of_triangles, 2 * QUADS);
    tb_mesh_data_free(&mesh);
    free(corners);
    free(bytes);
}
END_TEST

START_TEST(triangles_without_three_places_are_left_out)
{
    tb_mesh_data mesh;
    const char *text =
        "solid\n" FACET("0 0 0", "1 0 0", "0 1 0") FACET("0 0 0", "0 0 0", "0 1 0") "endsolid\n";
    TEST_OK(parse(text, strlen(text), &mesh), &error);
    ck_assert_int_eq(mesh.number_of_triangles, 1);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(every_mistake_of_a_binary_file_is_named_with_its_byte)
{
    char bytes[1000];
    float corners[36];
    memcpy(corners, TETRAHEDRON, sizeof corners);
    size_t size = make_binary(bytes, "x", 4, corners, 4);
    check_failure(bytes, 0, TB_DATA_LOSS, 0, "ends inside its header");
    check_failure(bytes, 83, TB_DATA_LOSS, 0, "ends inside its header");
    check_failure(bytes, 84, TB_DATA_LOSS, 0, "truncated");
    check_failure(bytes, size - 1, TB_DATA_LOSS, 0, "announces 4 triangles");
    check_failure(bytes, size + 1, TB_DATA_LOSS, 0, "goes on to");

    size = make_binary(bytes, "x", 5, corners, 4);
    check_failure(bytes, size, TB_DATA_LOSS, 0, "announces 5 triangles");
    size = make_binary(bytes, "x", 0xFFFFFFFFu, corners, 4);
    check_failure(bytes, size, TB_DATA_LOSS, 0, "truncated");
    size = make_binary(bytes, "x", 0, corners, 0);
    check_failure(bytes, size, TB_INVALID_ARGUMENT, 0, "no triangle");

    corners[9 + 4] = NAN; /* byte 84 + 50 + 12 + 16 */
    size = make_binary(bytes, "x", 4, corners, 4);
    check_failure(bytes, size, TB_INVALID_ARGUMENT, 0, "byte 162");
    corners[9 + 4] = 1e30f;
    size = make_binary(bytes, "x", 4, corners, 4);
    check_failure(bytes, size, TB_INVALID_ARGUMENT, 0, "triangle 1");
}
END_TEST

START_TEST(every_mistake_of_an_ascii_file_is_named_with_its_line)
{
    check_text_failure("solid x\nendsolid x\n", TB_INVALID_ARGUMENT, 3, "no triangle");
    check_text_failure("solid x\n", TB_DATA_LOSS, 2, "'endsolid'");
    check_text_failure("solid x\nfacet\n", TB_DATA_LOSS, 3, "'normal'");
    check_text_failure("solid x\nfacet normal 0 0", TB_DATA_LOSS, 2, "inside a normal");
    check_text_failure("solid x\nfacet normal 0 0 z\n", TB_INVALID_ARGUMENT, 2, "three numbers");
    check_text_failure("solid x\nfacet normal 0 0 1\nouter\nvertex 0 0 0\n", TB_INVALID_ARGUMENT, 4,
                       "'vertex' where 'loop'");
    check_text_failure("solid x\n" FACET("0 0 0", "1 0 0", "0 inf 0") "endsolid",
                       TB_INVALID_ARGUMENT, 6, "finite");
    check_text_failure("solid x\n" FACET("0 0 0", "1 0 0", "0 nan 0") "endsolid",
                       TB_INVALID_ARGUMENT, 6, "finite");
    check_text_failure("solid x\n" FACET("0 0 0", "1 0 0", "0 1e15 0") "endsolid",
                       TB_INVALID_ARGUMENT, 6, "1e+15");
    check_text_failure("solid x\n" FACET("0 0 0", "1 0 0", "0 1 0") "end", TB_INVALID_ARGUMENT, 9,
                       "'endsolid'");
    check_text_failure("solid x\n" FACET("0 0 0", "1 0 0", "0 1 0") "endsolid\nrubbish",
                       TB_INVALID_ARGUMENT, 10, "'rubbish'");
    check_text_failure("solid x\nfacet normal 0 0 1 outer loop vertex 0 0 0 vertex 1 0 0 endloop",
                       TB_INVALID_ARGUMENT, 2, "'endloop' where 'vertex'");
}
END_TEST

START_TEST(the_kind_of_a_mesh_file_is_found_out)
{
    static const char OBJ[] = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
    static const char STL[] = "solid\n" FACET("0 0 0", "1 0 0", "0 1 0") "endsolid\n";
    char bytes[1000];
    tb_mesh_data mesh;
    const size_t size = make_binary(bytes, "x", 4, TETRAHEDRON, 4);
    static const char *const OBJ_NAMES[] = {"a.obj", "A.OBJ", "mesh", "a.txt"};
    static const char *const STL_NAMES[] = {"a.stl", "A.STL", "mesh", "a.txt"};
    for (size_t i = 0; i < 4; i++) {
        TEST_OK(tb_mesh_data_parse(OBJ, strlen(OBJ), OBJ_NAMES[i], &mesh, &error), &error);
        tb_mesh_data_free(&mesh);
        TEST_OK(tb_mesh_data_parse(STL, strlen(STL), STL_NAMES[i], &mesh, &error), &error);
        tb_mesh_data_free(&mesh);
        TEST_OK(tb_mesh_data_parse(bytes, size, STL_NAMES[i], &mesh, &error), &error);
        tb_mesh_data_free(&mesh);
    }
    TEST_STATUS(tb_mesh_data_parse(OBJ, strlen(OBJ), "a.ply", &mesh, &error), TB_UNSUPPORTED, NULL);
    ck_assert_ptr_nonnull(strstr(error.message, ".ply"));
}
END_TEST

TEST_MAIN(a_binary_file_is_read_and_its_vertices_merged, a_binary_file_may_begin_with_solid,
          an_ascii_file_is_read_in_any_case_and_layout, many_vertices_are_merged_by_place,
          triangles_without_three_places_are_left_out,
          every_mistake_of_a_binary_file_is_named_with_its_byte,
          every_mistake_of_an_ascii_file_is_named_with_its_line,
          the_kind_of_a_mesh_file_is_found_out)
