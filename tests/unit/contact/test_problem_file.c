/* Problem files: both forms, three storage kinds, round trips without the loss of a bit,
 * and bad files. */
#include "test_util.h"

#include <unistd.h>

#include "problem_util.h"

static made_problem made;

static char folder[64];

/* a path in a folder that is this process's own */
static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int next;
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/tribo-problem-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
    }
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void clean(void)
{
    static const char *const names[] = {"a.dat", "b.dat", "a.hdf5", "b.hdf5"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(in_folder(names[i]));
    rmdir(folder);
    folder[0] = 0;
}

static tb_problem_file *load_text(const char *text, tb_status expected, tb_error *error)
{
    tb_problem_file *file = NULL;
    const char *path = in_folder("a.dat");
    ck_assert(tb_file_write(path, text, strlen(text), error) == TB_OK);
    TEST_STATUS(tb_problem_load(path, &file, error), expected, error);
    ck_assert((file != NULL) == (expected == TB_OK));
    clean();
    return file;
}

static const char ONE_CONTACT[] = "3\n1\n0\n3 3\n3 3\n15 -1 -2\n-1 14 1\n-2 1 16\n-1 2 3\n0.1";

START_TEST(a_dense_text_problem_is_read_column_by_column)
{
    tb_error error;
    tb_problem_file *file =
        load_text("3 1 0 3 3 3 3  1 2 3 4 5 6 7 8 9  -1 -2 -3  0.5", TB_OK, &error);
    const tb_problem_info info = tb_problem_describe(file);
    ck_assert(info.dimension == 3 && info.contacts == 1 && info.rows == 3 && info.dense);
    ck_assert(!info.global && info.asymmetry > 0.1);
    const tb_problem *p = tb_problem_file_local(file);
    TEST_NEAR(p->matrix->dense[1], 4, 0);
    TEST_NEAR(p->matrix->dense[3], 2, 0);
    TEST_NEAR(p->c[2], -3, 0);
    TEST_NEAR(p->blocks[0].mu, 0.5, 0);
    tb_problem_destroy(file);
}
END_TEST

START_TEST(older_files_have_one_number_more)
{
    tb_error error;
    char text[256];
    snprintf(text, sizeof text, "%s\n1\n", ONE_CONTACT);
    tb_problem_destroy(load_text(text, TB_OK, &error));
    snprintf(text, sizeof text, "%s\n1\n1\n1\n", ONE_CONTACT);
    load_text(text, TB_INVALID_ARGUMENT, &error);
}
END_TEST

START_TEST(a_block_problem_is_read)
{
    tb_error error;
    /* two planar contacts, the second coupled to the first one way only */
    tb_problem_file *file = load_text("2 2 1 4 4  3 2 2  2 4  2 4  3 3  0 1 3  0 0 1 "
                                      "0 1 0 0 1  1 5 6 7 8  2 2 0 0 2  -1 0 -1 0  0.3 0.4 0",
                                      TB_OK, &error);
    const tb_problem *p = tb_problem_file_local(file);
    double g[16];
    ck_assert(tb_problem_delassus(p, g) == TB_OK);
    const double expected[16] = {1, 0, 0, 0, 0, 1, 0, 0, 5, 7, 2, 0, 6, 8, 0, 2};
    for (int i = 0; i < 16; i++) TEST_NEAR(g[i], expected[i], 0);
    ck_assert(p->blocks[1].law == TB_LAW_PLANAR);
    const tb_problem_info info = tb_problem_describe(file);
    const double difference = 2 * (25 + 36 + 49 + 64), size = 2 + 8 + 174;
    TEST_NEAR(info.asymmetry, sqrt(difference / size), 1e-15);
    tb_problem_destroy(file);
}
END_TEST

START_TEST(the_print_of_a_csparse_matrix_is_read)
{
    tb_error error;
    tb_problem_file *file =
        load_text("2\n1\n2\n2\n2\n2\nCSparse Version 3.1.9\n2-by-2, nzmax: 3 nnz: 3, 1-norm: 7\n"
                  "    col 0 : locations 0 to 1\n      0 : 4\n      1 : 0.5\n"
                  "    col 1 : locations 2 to 2\n      1 : 2\n-1 1\n0.5\n",
                  TB_OK, &error);
    double g[4];
    ck_assert(tb_problem_delassus(tb_problem_file_local(file), g) == TB_OK);
    ck_assert(g[0] == 4 && g[1] == 0 && g[2] == 0.5 && g[3] == 2);
    tb_problem_destroy(file);
}
END_TEST

START_TEST(the_print_of_csparse_triplets_is_read)
{
    tb_error error;
    /* entries in any order; duplicate entries are added */
    tb_problem_file *file =
        load_text("2\n1\n2\n2\n2\n0\nCSparse Version 3.2.0, Sept 12, 2017.  (c)\n"
                  "triplet: 2-by-2, nzmax: 8 nnz: 4\n"
                  "    1 1 : 2\n    0 0 : 3\n    1 0 : 0.5\n    0 0 : 1\n"
                  "-1 1\n0.5\n",
                  TB_OK, &error);
    double g[4];
    ck_assert(tb_problem_delassus(tb_problem_file_local(file), g) == TB_OK);
    ck_assert(g[0] == 4 && g[1] == 0 && g[2] == 0.5 && g[3] == 2);
    tb_problem_destroy(file);
    load_text(
        "2 1 2 2 2 0 CSparse x\ntriplet: 2-by-2, nzmax: 8 nnz: 3\n 1 1 : 2\n 0 0 : 3\n-1 1 0.5",
        TB_INVALID_ARGUMENT, &error);
    load_text("2 1 2 2 2 0 CSparse x\ntriplet: 2-by-2, nzmax: 8 nnz: 1\n 2 1 : 2\n -1 1 0.5",
              TB_INVALID_ARGUMENT, &error);
}
END_TEST

START_TEST(a_global_problem_is_reduced)
{
    tb_error error;
    /* M = diag(2, 4, 4), H = 1, q = (-20, 0, 4), b = (1, 0, 0): W = inverse(M),
     * q = inverse(M) q + b */
    tb_problem_file *file =
        load_text("3 1  0 3 3 3 3 2 0 0 0 4 0 0 0 4  0 3 3 3 3 1 0 0 0 1 0 0 0 1 "
                  "-20 0 4  1 0 0  0.5",
                  TB_OK, &error);
    const tb_problem *p = tb_problem_file_local(file);
    ck_assert(tb_problem_describe(file).global);
    double g[9];
    ck_assert(tb_problem_delassus(p, g) == TB_OK);
    TEST_NEAR(g[0], 0.5, 1e-15);
    TEST_NEAR(g[4], 0.25, 1e-15);
    TEST_NEAR(p->c[0], -9, 1e-14);
    TEST_NEAR(p->c[2], 1, 1e-15);
    tb_problem_destroy(file);
}
END_TEST

START_TEST(a_global_problem_with_a_full_skewed_mass_matrix_is_reduced)
{
    tb_error error;
    /* M = (2 1; 0 4 ...) in a part of two and a part of one, H 3 x 3 full */
    tb_problem_file *file = load_text("3 1  0 3 3 3 3  2 0 0  1 4 0  0 0 5 "
                                      "0 3 3 3 3  1 0 1  0 1 0  0 0 1  1 2 3  0 0 0  0",
                                      TB_OK, &error);
    double g[9];
    ck_assert(tb_problem_delassus(tb_problem_file_local(file), g) == TB_OK);
    /* inverse(M) = (1/2 -1/8 0; 0 1/4 0; 0 0 1/5), H = (1 0 0; 0 1 0; 1 0 1) */
    const double expected[9] = {0.7, -0.125, 0.2, 0, 0.25, 0, 0.2, 0, 0.2};
    for (int i = 0; i < 9; i++) TEST_NEAR(g[i], expected[i], 1e-15);
    tb_problem_destroy(file);
    load_text("3 1  0 3 3 3 3  0 0 0  0 0 0  0 0 0  0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0 0 0 0 0 0.5",
              TB_INVALID_ARGUMENT, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "singular"));
}
END_TEST

static void same(const tb_problem_file *a, const tb_problem_file *b)
{
    const tb_problem *p = tb_problem_file_local(a), *q = tb_problem_file_local(b);
    ck_assert(p->number_of_rows == q->number_of_rows);
    const size_t n = (size_t)p->number_of_rows;
    double *g = malloc(n * n * 8 + 1), *h = malloc(n * n * 8 + 1);
    ck_assert(g && h && tb_problem_delassus(p, g) == TB_OK && tb_problem_delassus(q, h) == TB_OK);
    ck_assert(memcmp(g, h, n * n * 8) == 0);
    ck_assert(memcmp(p->c, q->c, n * 8) == 0);
    for (int32_t i = 0; i < p->number_of_blocks; i++)
        ck_assert(p->blocks[i].mu == q->blocks[i].mu && p->blocks[i].law == q->blocks[i].law);
    free(g);
    free(h);
}

START_TEST(round_trips_lose_no_bit)
{
    made_random(&made, 3, 30, 12, 0.5, 1);
    tb_error error;
    static const char *const names[] = {"b.dat", "b.hdf5"};
    tb_problem_file *a, *b, *c;
    TEST_OK(tb_problem_write(&made.problem, in_folder("a.dat"), &error), &error);
    TEST_OK(tb_problem_load(in_folder("a.dat"), &a, &error), &error);
    ck_assert(tb_problem_describe(a).contacts == 30);
    for (int i = 0; i < 2; i++) {
        TEST_OK(tb_problem_save(a, in_folder(names[i]), &error), &error);
        TEST_OK(tb_problem_load(in_folder(names[i]), &b, &error), &error);
        same(a, b);
        /* and once more through the other */
        TEST_OK(tb_problem_save(b, in_folder(i ? "a.dat" : "a.hdf5"), &error), &error);
        TEST_OK(tb_problem_load(in_folder(i ? "a.dat" : "a.hdf5"), &c, &error), &error);
        same(a, c);
        tb_problem_destroy(b);
        tb_problem_destroy(c);
    }
    tb_problem_destroy(a);
    /* dense ones stay dense */
    TEST_OK(tb_file_write(in_folder("a.dat"), ONE_CONTACT, strlen(ONE_CONTACT), &error), &error);
    TEST_OK(tb_problem_load(in_folder("a.dat"), &a, &error), &error);
    for (int i = 0; i < 2; i++) {
        TEST_OK(tb_problem_save(a, in_folder(names[i]), &error), &error);
        TEST_OK(tb_problem_load(in_folder(names[i]), &b, &error), &error);
        same(a, b);
        tb_problem_destroy(b);
    }
    ck_assert(tb_problem_save(a, in_folder("c.txt"), &error) == TB_INVALID_ARGUMENT);
    ck_assert(tb_problem_save(a, "/nonexistent/x.hdf5", &error) != TB_OK);
    ck_assert(tb_problem_save(a, "/nonexistent/x.dat", &error) != TB_OK);
    tb_problem_destroy(a);
    clean();
}
END_TEST

START_TEST(a_file_has_the_same_answer_as_its_problem)
{
    made_random(&made, 7, 40, 15, 0.4, 1);
    tb_error error;
    tb_problem_file *file;
    TEST_OK(tb_problem_write(&made.problem, in_folder("a.hdf5"), &error), &error);
    TEST_OK(tb_problem_load(in_folder("a.hdf5"), &file, &error), &error);
    tb_solve_options options = made_options("sor", 1e-11);
    static made_solution live;
    made_solve(&made.problem, &options, NULL, &live);
    double reactions[120], velocities[120];
    tb_problem_result result;
    TEST_OK(tb_problem_solve(file, &options, reactions, velocities, &result, &error), &error);
    ck_assert(result.status == TB_OK && result.residual <= 1e-11);
    ck_assert_str_eq(result.solver, "sor");
    for (int i = 0; i < 120; i++) TEST_NEAR(velocities[i], live.xi[i], 1e-6);
    options.solver = "nonesuch";
    ck_assert(tb_problem_solve(file, &options, NULL, NULL, &result, &error) == TB_NOT_FOUND);
    tb_problem_destroy(file);
    clean();
}
END_TEST

START_TEST(joints_are_eliminated_and_other_laws_refused_by_name)
{
    /* a body of unit mass on a rail along x (its y and z held), pushed down a slope of contacts */
    const double rail[6] = {0, 1, 0, 0, 0, 1}, none[2] = {0.5, 0};
    const double contact[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, c[3] = {-1, 0.5, 0};
    tb_error error;
    tb_problem_file *file;
    made_begin(&made, 3);
    made_add(&made, TB_LAW_BILATERAL, 2, 0, 0, 3, 0, 0, rail, none);
    made_add(&made, TB_LAW_COULOMB, 3, TB_R(0.5), 0, 3, 0, 0, contact, c);
    made_add(&made, TB_LAW_UNILATERAL, 1, 0, 0, 3, 0, 0, contact, c);
    TEST_OK(tb_problem_write(&made.problem, in_folder("a.dat"), &error), &error);
    TEST_OK(tb_problem_load(in_folder("a.dat"), &file, &error), &error);
    const tb_problem *p = tb_problem_file_local(file);
    double g[36];
    ck_assert(p->number_of_blocks == 2 && tb_problem_delassus(p, g) == TB_OK);
    for (int i = 0; i < 36; i++)
        TEST_NEAR(g[i], i == 0 || i == 3 || i == 18 || i == 21 ? 1 : 0, 1e-15);
    TEST_NEAR(p->c[1], 0, 1e-15); /* the rail carries the load before the contact */
    ck_assert(p->blocks[1].mu == 0);
    tb_problem_destroy(file);

    const double unit[3] = {1, 0, 0};
    made_add(&made, TB_LAW_BOX, 1, 0, 0, 3, 0, 0, unit, c);
    TEST_STATUS(tb_problem_write(&made.problem, in_folder("a.dat"), &error), TB_UNSUPPORTED, NULL);
    ck_assert_ptr_nonnull(strstr(error.message, "box"));
    clean();
}
END_TEST

START_TEST(bad_text_is_refused_with_its_line)
{
    static const char *const bad[] = {"",
                                      "3",
                                      "3\nx",
                                      "4 1 0 3 3 3 3",
                                      "3 1 0 3 3 3 3 1 2 3",
                                      "3 1 7 3 3",
                                      "-3 1",
                                      "3 1.5",
                                      "3 1 0 3 4 3 4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 0.5",
                                      "3 99999999 0 299999997 299999997",
                                      "3 1 0 3 3 3 3 1 0 0 0 nan 0 0 0 1 0 0 0 0.5",
                                      "3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0 0 -0.5",
                                      "3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 0 0 inf 0.5",
                                      "3 1 1 3 3 1 1 1 3 3 2 1 0 2 0 0",
                                      "3 1 1 3 3 1 1 1 2 3 2 1 0 1 0 0 1 0 0 0 1 0 0 0 1 0 0 0 0.5",
                                      "3 1 1 3 3 1 1 1 3 3 2 1 0 1 5 0 1 0 0 0 1 0 0 0 1 0 0 0 0.5",
                                      "2 1 2 2 2 2 CSparse x\n2-by-2, nzmax: 3 nnz: 9, 1-norm: 7\n "
                                      "col 0 : locations 0 to 1\n 0 : 4",
                                      "2 1 2 2 2 2 CSparse x\n2-by-2, nzmax: 3 nnz: 1, 1-norm: 7\n "
                                      "col 0 : locations 0 to 0\n 7 : 4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tb_error error = {0};
        tb_problem_file *file = NULL;
        const char *path = in_folder("a.dat");
        ck_assert(tb_file_write(path, bad[i], strlen(bad[i]), &error) == TB_OK);
        const tb_status status = tb_problem_load(path, &file, &error);
        ck_assert_msg(status == TB_INVALID_ARGUMENT || status == TB_UNSUPPORTED, "'%s' gave %s",
                      bad[i], tb_status_name(status));
        ck_assert(file == NULL && error.message[0] != 0 && strstr(error.message, "a.dat") != NULL);
    }
    clean();
}
END_TEST

START_TEST(bad_hdf5_is_refused)
{
    made_random(&made, 3, 4, 2, 0.5, 1);
    tb_error error;
    tb_problem_file *file = NULL;
    TEST_OK(tb_problem_write(&made.problem, in_folder("a.hdf5"), &error), &error);
    tb_bytes bytes = {0};
    TEST_OK(tb_file_read(in_folder("a.hdf5"), 0, &bytes, &error), &error);
    for (size_t size = 8; size < bytes.size; size += bytes.size / 7) {
        TEST_OK(tb_file_write(in_folder("b.hdf5"), bytes.base, size, &error), &error);
        ck_assert(tb_problem_load(in_folder("b.hdf5"), &file, &error) != TB_OK);
        ck_assert(file == NULL && error.message[0] != 0);
    }
    tb_bytes_free(&bytes);
    ck_assert(tb_problem_load(in_folder("none.hdf5"), &file, &error) == TB_NOT_FOUND);
    ck_assert(tb_problem_load(NULL, &file, &error) == TB_INVALID_ARGUMENT);
    tb_problem_destroy(NULL);
    clean();
}
END_TEST

TEST_MAIN(a_dense_text_problem_is_read_column_by_column, older_files_have_one_number_more,
          a_block_problem_is_read, the_print_of_a_csparse_matrix_is_read,
          the_print_of_csparse_triplets_is_read, a_global_problem_is_reduced,
          a_global_problem_with_a_full_skewed_mass_matrix_is_reduced, round_trips_lose_no_bit,
          a_file_has_the_same_answer_as_its_problem,
          joints_are_eliminated_and_other_laws_refused_by_name, bad_text_is_refused_with_its_line,
          bad_hdf5_is_refused)
