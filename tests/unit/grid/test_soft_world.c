/* Worlds of soft bodies: texts, states, surfaces, the same bytes on any number of threads. */
#include "grid/grid.h"
#include "test_util.h"

static tb_error error;

static const char BALLS[] =
    "<soft model=\"balls\">\n"
    "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\" friction=\"0.5\"/>\n"
    "  <grid lower=\"-1 -1 -0.9\" upper=\"1 1 1.6\" spacing=\"0.125\"/>\n"
    "  <material name=\"rubber\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" "
    "damping=\"0.002\"/>\n"
    "  <body name=\"low\" material=\"rubber\" type=\"sphere\" size=\"0.3\" pos=\"0.02 0 0.31\"\n"
    "        velocity=\"0.5 0 -2\"/>\n"
    "  <body name=\"high\" material=\"rubber\" type=\"box\" size=\"0.2 0.3 0.15\" pos=\"0 0 "
    "0.77\"\n"
    "        quat=\"1 0.1 0 0.2\" velocity=\"0 0 -3\"/>\n"
    "  <wall name=\"floor\" type=\"plane\"/>\n"
    "</soft>\n";

static tb_soft_world *load(const char *text, int32_t threads)
{
    const tb_soft_load_options options = {.threads = threads};
    tb_soft_world *w;
    TEST_OK(tb_soft_world_load(text, strlen(text), "balls.xml", &options, &w, &error), &error);
    return w;
}

static void same_bytes(tb_soft_world *a, tb_soft_world *b)
{
    unsigned char *x, *y;
    size_t n, m;
    TEST_OK(tb_soft_world_save(a, &x, &n, &error), &error);
    TEST_OK(tb_soft_world_save(b, &y, &m, &error), &error);
    ck_assert_uint_eq(n, m);
    ck_assert(memcmp(x, y, n) == 0);
    tb_bytes_destroy(x);
    tb_bytes_destroy(y);
}

START_TEST(a_step_gives_the_same_bytes_on_any_number_of_threads)
{
    tb_soft_world *one = load(BALLS, 1), *two = load(BALLS, 2);
    tb_soft_certificate c;
    TEST_OK(tb_soft_step(one, 12, &c, &error), &error);
    TEST_OK(tb_soft_step(two, 12, NULL, &error), &error);
    ck_assert_int_gt(c.contacts, 8);
    TEST_OK(c.status, NULL);
    same_bytes(one, two);
    tb_soft_world_destroy(one);
    tb_soft_world_destroy(two);
}
END_TEST

START_TEST(twenty_runs_with_contacts_give_the_same_bytes)
{
    tb_soft_world *first = load(BALLS, 1);
    TEST_OK(tb_soft_step(first, 3, NULL, &error), &error);
    for (int32_t run = 1; run < 20; run++) {
        tb_soft_world *again = load(BALLS, 1 + run % 2);
        tb_soft_certificate c;
        TEST_OK(tb_soft_step(again, 3, &c, &error), &error);
        ck_assert_int_gt(c.contacts, 8);
        same_bytes(first, again);
        tb_soft_world_destroy(again);
    }
    tb_soft_world_destroy(first);
}
END_TEST

static const char SLIDING[] =
    "<soft model=\"s\"><option timestep=\"0.0005\" gravity=\"5.6 0 -8\" friction=\"0.5\"/>"
    "<grid lower=\"-0.9 -0.9 -0.6\" upper=\"0.9 0.9 0.9\" spacing=\"0.15\"/>"
    "<material name=\"m\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" damping=\"0.02\"/>"
    "<body name=\"b\" material=\"m\" type=\"box\" size=\"0.3 0.3 0.15\" pos=\"0 0 0.15\"/>"
    "<wall name=\"floor\" type=\"plane\"/></soft>";

/* Steps of one substep each. Before the first one no sets are known, and the second one has other cells. */
static void step_from_sets(tb_soft_first_sets sets, tb_soft_certificate c[3])
{
    const tb_soft_load_options options = {.threads = 1, .first_sets = sets};
    tb_soft_world *w;
    TEST_OK(tb_soft_world_load(SLIDING, strlen(SLIDING), "s.xml", &options, &w, &error), &error);
    for (int i = 0; i < 3; i++) {
        TEST_OK(tb_soft_step(w, 1, &c[i], &error), &error);
        TEST_OK(c[i].status, NULL);
        ck_assert_int_eq(c[i].substeps, 1);
    }
    ck_assert_int_gt(c[0].tangential.active, 0);
    tb_soft_world_destroy(w);
}

START_TEST(first_sets_change_the_work_and_not_the_answer)
{
    tb_soft_certificate swept[3], recalled[3], empty[3];
    step_from_sets(TB_SOFT_SETS_SWEPT, swept);
    step_from_sets(TB_SOFT_SETS_RECALLED, recalled);
    step_from_sets(TB_SOFT_SETS_EMPTY, empty);
    for (int i = 0; i < 3; i++) {
        TEST_NEAR(recalled[i].kinetic, swept[i].kinetic, 1e-6 * swept[i].kinetic);
        TEST_NEAR(empty[i].kinetic, swept[i].kinetic, 1e-6 * swept[i].kinetic);
        ck_assert_int_eq(empty[i].normal.warm + empty[i].tangential.warm, 0);
        ck_assert_int_gt(swept[i].tangential.warm, empty[i].tangential.warm);
        ck_assert_int_lt(swept[i].tangential.iterations, empty[i].tangential.iterations);
    }
    ck_assert_int_eq(recalled[0].tangential.warm, 0);
    ck_assert_int_gt(recalled[2].tangential.warm, 0);
}
END_TEST

START_TEST(a_restored_world_goes_on_with_the_same_bytes)
{
    tb_soft_world *whole = load(BALLS, 1), *fork = load(BALLS, 1);
    unsigned char *state;
    size_t size;
    TEST_OK(tb_soft_step(whole, 8, NULL, &error), &error);
    TEST_OK(tb_soft_world_save(whole, &state, &size, &error), &error);
    TEST_OK(tb_soft_step(fork, 3, NULL, &error), &error); /* elsewhere before */
    TEST_OK(tb_soft_world_restore(fork, state, size, &error), &error);
    same_bytes(whole, fork);
    TEST_OK(tb_soft_step(whole, 6, NULL, &error), &error);
    TEST_OK(tb_soft_step(fork, 6, NULL, &error), &error);
    same_bytes(whole, fork);
    TEST_OK(tb_soft_world_restore(whole, state, size, &error), &error); /* back in time */
    TEST_OK(tb_soft_step(whole, 6, NULL, &error), &error);
    same_bytes(whole, fork);

    state[size / 2] ^= 1;
    TEST_STATUS(tb_soft_world_restore(fork, state, size, &error), TB_DATA_LOSS, NULL);
    TEST_STATUS(tb_soft_world_restore(fork, state, 20, &error), TB_DATA_LOSS, NULL);
    same_bytes(whole, fork);
    tb_bytes_destroy(state);
    tb_soft_world_destroy(whole);
    tb_soft_world_destroy(fork);
}
END_TEST

START_TEST(a_state_of_another_scene_is_refused)
{
    char other[sizeof BALLS];
    memcpy(other, BALLS, sizeof BALLS);
    memcpy(strstr(other, "1e5"), "2e5", 3);
    tb_soft_world *a = load(BALLS, 1), *b = load(other, 1);
    unsigned char *state;
    size_t size;
    TEST_OK(tb_soft_world_save(a, &state, &size, &error), &error);
    TEST_STATUS(tb_soft_world_restore(b, state, size, &error), TB_FAILED_PRECONDITION, NULL);
    TEST_OK(tb_soft_step(b, 1, NULL, &error), &error);
    tb_bytes_destroy(state);
    tb_soft_world_destroy(a);
    tb_soft_world_destroy(b);
}
END_TEST

START_TEST(a_surface_encloses_the_bodys_volume)
{
    tb_soft_world *w = load(BALLS, 1);
    for (int32_t b = 0; b < 2; b++) {
        tb_soft_surface s;
        TEST_OK(tb_soft_world_surface(w, b, &s, &error), &error);
        double volume = 0;
        for (int32_t t = 0; t < s.number_of_triangles; t++) {
            const double *x = s.vertices + 3 * s.triangles[3 * t],
                         *y = s.vertices + 3 * s.triangles[3 * t + 1],
                         *z = s.vertices + 3 * s.triangles[3 * t + 2];
            for (int a = 0; a < 3; a++)
                volume +=
                    x[a] * (y[(a + 1) % 3] * z[(a + 2) % 3] - y[(a + 2) % 3] * z[(a + 1) % 3]) / 6;
        }
        /* chords of cells of 0.125 m lie inside of curves and cut edges */
        TEST_NEAR_RELATIVE(volume, b == 0 ? 0.1131 : 0.072, 0.2);
        free(s.vertices);
        free(s.triangles);
        free(s.pressure);
    }
    tb_soft_surface none;
    TEST_STATUS(tb_soft_world_surface(w, 2, &none, &error), TB_NOT_FOUND, NULL);
    tb_soft_world_destroy(w);
}
END_TEST

/* How many edges of a mesh have no partner that runs the other way, or several. */
static int32_t count_open_edges(const tb_soft_surface *s)
{
    const int32_t n = 3 * s->number_of_triangles;
    int32_t open = 0;
    for (int32_t e = 0; e < n; e++) {
        const int32_t from = s->triangles[e], to = s->triangles[e % 3 == 2 ? e - 2 : e + 1];
        int32_t partners = 0;
        for (int32_t f = 0; f < n; f++)
            partners += s->triangles[f] == to && s->triangles[f % 3 == 2 ? f - 2 : f + 1] == from;
        open += partners != 1;
    }
    return open;
}

START_TEST(surfaces_are_closed_also_where_they_run_through_nodes)
{
    char text[2 * sizeof BALLS];
    const char *at = strstr(BALLS, "size=\"0.2 0.3 0.15\"");
    /* the box's faces lie in planes of the grid, but for its rotation, which goes */
    snprintf(
        text, sizeof text, "%.*s%s", (int)(at - BALLS), BALLS,
        "size=\"0.25 0.25 0.125\" pos=\"0 0 0.85\"/><wall name=\"floor\" type=\"plane\"/></soft>");
    tb_soft_world *w = load(text, 1);
    for (int round = 0; round < 2; round++) {
        for (int32_t b = 0; b < 2; b++) {
            tb_soft_surface s;
            TEST_OK(tb_soft_world_surface(w, b, &s, &error), &error);
            ck_assert_int_gt(s.number_of_triangles, 100);
            ck_assert_int_eq(count_open_edges(&s), 0);
            free(s.vertices);
            free(s.triangles);
            free(s.pressure);
        }
        TEST_OK(tb_soft_step(w, 10, NULL, &error), &error);
    }
    tb_soft_world_destroy(w);
}
END_TEST

/* Loads BALLS with `old` replaced; checks the status and that the message has `said`. */
static void refuse(const char *old, const char *new, tb_status status, const char *said)
{
    char text[2 * sizeof BALLS];
    tb_soft_world *w = NULL;
    const char *at = strstr(BALLS, old);
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - BALLS), BALLS, new, at + strlen(old));
    memset(&error, 0, sizeof error);
    TEST_STATUS(tb_soft_world_load(text, strlen(text), "balls.xml", NULL, &w, &error), status,
                &error);
    ck_assert_msg(strstr(error.message, said) != NULL, "'%s' does not say '%s'", error.message,
                  said);
    ck_assert_ptr_null(w);
}

START_TEST(bad_scenes_are_refused_by_name)
{
    refuse("young=\"1e5\"", "young=\"-1\"", TB_INVALID_ARGUMENT, "body 'low'");
    refuse("poisson=\"0.3\"", "poisson=\"0.5\"", TB_INVALID_ARGUMENT, "Poisson's ratio 0.5");
    refuse("density=\"1000\" ", "", TB_INVALID_ARGUMENT, "density");
    refuse("pos=\"0.02 0 0.31\"", "pos=\"9 0 0\"", TB_INVALID_ARGUMENT,
           "body 'low' reaches from 8.7");
    refuse("size=\"0.3\"", "size=\"0.3 1\"", TB_INVALID_ARGUMENT, "balls.xml:5: body");
    refuse("size=\"0.3\"", "size=\"-0.3\"", TB_INVALID_ARGUMENT, "'low': a size is -0.3 m");
    refuse("material=\"rubber\"", "material=\"iron\"", TB_INVALID_ARGUMENT, "no material 'iron'");
    refuse("type=\"sphere\"", "type=\"torus\"", TB_INVALID_ARGUMENT, "torus");
    refuse("type=\"sphere\" size=\"0.3\"", "type=\"plane\"", TB_INVALID_ARGUMENT, "'low'");
    refuse("\"high\"", "\"low\"", TB_INVALID_ARGUMENT, "a body of this name");
    refuse("velocity=\"0 0 -3\"", "speed=\"3\"", TB_INVALID_ARGUMENT, "speed");
    refuse("spacing=\"0.125\"", "spacing=\"0\"", TB_INVALID_ARGUMENT, "balls.xml:3: grid: 0 m");
    refuse("spacing=\"0.125\"", "spacing=\"0.0001\"", TB_RESOURCE_EXHAUSTED, "nodes");
    refuse("friction=\"0.5\"", "friction=\"-1\"", TB_INVALID_ARGUMENT, "friction");
    refuse("<wall name=\"floor\" type=\"plane\"/>",
           "<clamp body=\"x\" lower=\"0 0 0\" upper=\"1 1 1\"/>", TB_INVALID_ARGUMENT,
           "no body 'x'");
    refuse("<grid", "<lattice", TB_INVALID_ARGUMENT, "lattice");
    refuse("</soft>", "", TB_INVALID_ARGUMENT, "balls.xml");
}
END_TEST

START_TEST(a_step_beyond_the_limits_is_named_and_loses_nothing)
{
    char text[2 * sizeof BALLS];
    snprintf(text, sizeof text, "%s", BALLS);
    memcpy(strstr(text, "timestep=\"0.002\""), "timestep=\"5.000\"", 16);
    tb_soft_world *w = load(text, 1), *fresh = load(text, 1);
    TEST_STATUS(tb_soft_step(w, 1, NULL, &error), TB_FAILED_PRECONDITION, NULL);
    ck_assert_msg(strstr(error.message, "100 are allowed") != NULL, "%s", error.message);
    same_bytes(w, fresh);
    tb_soft_world_destroy(w);
    tb_soft_world_destroy(fresh);

    /* without a floor the lower ball leaves the grid */
    snprintf(text, sizeof text, "%s", BALLS);
    memcpy(strstr(text, "type=\"plane\""), "type=\"plane\" pos=\"0 0 -9\"/></soft>", 34);
    w = load(text, 1);
    TEST_STATUS(tb_soft_step(w, 400, NULL, &error), TB_FAILED_PRECONDITION, NULL);
    ck_assert_msg(strstr(error.message, "body 'low' leaves the grid along z") != NULL, "%s",
                  error.message);
    unsigned char *state;
    size_t size;
    TEST_OK(tb_soft_world_save(w, &state, &size, &error), &error); /* the state is whole */
    tb_bytes_destroy(state);
    tb_soft_world_destroy(w);
}
END_TEST

START_TEST(a_soft_scene_is_told_from_others)
{
    const char *const yes[] = {"<soft>", "<?xml version=\"1.0\"?>\n<!-- a --><soft model=\"x\">"};
    const char *const no[] = {"<mujoco/>", "<softer>", "", "<!-- <soft> -->", "<!--", "soft"};
    for (size_t i = 0; i < 2; i++) ck_assert(tb_soft_is_scene(yes[i], strlen(yes[i])));
    for (size_t i = 0; i < 6; i++) ck_assert(!tb_soft_is_scene(no[i], strlen(no[i])));
}
END_TEST

TEST_MAIN(a_step_gives_the_same_bytes_on_any_number_of_threads,
          twenty_runs_with_contacts_give_the_same_bytes,
          first_sets_change_the_work_and_not_the_answer,
          a_restored_world_goes_on_with_the_same_bytes, a_state_of_another_scene_is_refused,
          a_surface_encloses_the_bodys_volume,
          surfaces_are_closed_also_where_they_run_through_nodes, bad_scenes_are_refused_by_name,
          a_step_beyond_the_limits_is_named_and_loses_nothing, a_soft_scene_is_told_from_others)
