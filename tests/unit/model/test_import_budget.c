/* Budgets of time and memory around the reading and compiling of scenes, and texts that used to take
 * the square of their size. */
#include "base/arena.h"
#include "base/budget.h"
#include "base/file.h"
#include "base/random.h"
#include "model/model.h"
#include "test_util.h"

#include <time.h>

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void append(tb_bytes *text, const char *piece)
{
    ck_assert_int_eq(tb_bytes_append(text, piece, strlen(piece)), TB_OK);
}

/* A text handed out as the file "scene.xml" or "points.obj". */
static tb_status read_text(void *context, const char *path, unsigned char **bytes, size_t *size,
                           tb_error *error)
{
    const tb_bytes *text = context;
    (void)path, (void)error;
    *bytes = malloc(text->size + 1);
    ck_assert_ptr_nonnull(*bytes);
    memcpy(*bytes, text->base, text->size);
    (*bytes)[text->size] = 0;
    *size = text->size;
    return TB_OK;
}

static tb_status load(tb_bytes *text, const char *path, tb_budget *budget, tb_model **model,
                      tb_error *error)
{
    const tb_file_source source = {.read = read_text, .context = text};
    tb_import_options options = tb_import_defaults();
    options.files = &source;
    if (budget != NULL) tb_budget_bind(budget);
    const tb_status status = tb_model_load(path, &options, model, error);
    tb_budget_release();
    tb_bytes_free(text);
    return status;
}

START_TEST(classes_take_time_in_proportion)
{
    enum { CLASSES = 40000 };
    tb_bytes text = {0};
    tb_model *model = NULL;
    tb_error e = {0};
    char piece[64];
    append(&text, "<mujoco><default><geom mass=\"3\"/>");
    for (int i = 0; i < CLASSES; i++) {
        snprintf(piece, sizeof piece, "<default class=\"c%d\"/>", i);
        append(&text, piece);
    }
    append(&text, "</default><worldbody><body><freejoint/>"
                  "<geom class=\"c39999\" size=\"1\"/></body></worldbody></mujoco>");
    const double begin = now_s();
    TEST_STATUS(load(&text, "scene.xml", NULL, &model, &e), TB_OK, &e);
    /* comparing each with all took 17 s */
    ck_assert_double_lt(now_s() - begin, 6);
    ck_assert_double_eq(tb_model_total_mass(model), 3);
    tb_model_destroy(model);
}
END_TEST

START_TEST(empty_keyframes_share_the_reference)
{
    enum { KEYS = 2000, BODIES = 1000 };
    tb_bytes text = {0};
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_error e = {0};
    append(&text, "<mujoco><worldbody>");
    for (int i = 0; i < BODIES; i++)
        append(&text, "<body pos=\"1 2 3\"><freejoint/><geom size=\"1\"/></body>");
    append(&text, "</worldbody><keyframe>");
    for (int i = 0; i < KEYS; i++) append(&text, "<key time=\"2\"/>");
    append(&text, "</keyframe></mujoco>");
    /* a copy a keyframe would be 2000 x 1000 x 13 numbers: 208 MB */
    tb_budget budget = {.memory_bytes = (size_t)64 << 20};
    TEST_STATUS(load(&text, "scene.xml", &budget, &model, &e), TB_OK, &e);
    ck_assert_int_eq(tb_model_count(model).keyframes, KEYS);
    TEST_STATUS(tb_state_create(model, &state, &e), TB_OK, &e);
    TEST_STATUS(tb_state_reset(state, KEYS - 1, &e), TB_OK, &e);
    ck_assert_double_eq(tb_state_time(state), 2);
    ck_assert_double_eq(tb_state_q(state)[2], 3);
    ck_assert_double_eq(tb_state_u(state)[0], 0);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(memory_is_refused_with_what_is_wanted)
{
    tb_bytes text = {0};
    tb_model *model = NULL;
    tb_error e = {0};
    tb_budget budget = {.memory_bytes = 1 << 20};
    append(&text, "<mujoco><worldbody>");
    for (int i = 0; i < 20000; i++) append(&text, "<geom size=\"1\"/>");
    append(&text, "</worldbody></mujoco>");
    ck_assert_int_eq(load(&text, "scene.xml", &budget, &model, &e), TB_RESOURCE_EXHAUSTED);
    ck_assert_ptr_null(model);
    ck_assert_int_eq(budget.status, TB_RESOURCE_EXHAUSTED);
    ck_assert_uint_gt(budget.wanted_bytes, budget.memory_bytes);
    tb_budget_fail(&budget, &e);
    ck_assert_ptr_nonnull(strstr(e.message, "1048576 are allowed"));
}
END_TEST

typedef struct hook {
    double from_s;
    int asked;
} hook;

/* Wanted for a fifth of a second. */
static bool stop_soon(void *context)
{
    hook *h = context;
    h->asked++;
    return now_s() > h->from_s + 0.2;
}

/* Points on a sphere, all of them corners of the hull: some ten seconds of qhull. */
static void append_ball(tb_bytes *text, int points)
{
    tb_random random = tb_random_stream(7, 0);
    char line[96];
    for (int i = 0; i < points; i++) {
        const double z = 2 * tb_random_uniform(&random) - 1,
                     a = 6.2831853 * tb_random_uniform(&random);
        const double r = sqrt(1 - z * z);
        snprintf(line, sizeof line, "v %.9f %.9f %.9f\n", r * cos(a), r * sin(a), z);
        append(text, line);
    }
}

START_TEST(hulls_end_when_nobody_waits)
{
    tb_bytes text = {0};
    tb_model *model = NULL;
    tb_error e = {0};
    append_ball(&text, 200000);
    hook h = {.from_s = now_s()};
    tb_budget budget = {.stop = stop_soon, .context = &h};
    ck_assert_int_ne(load(&text, "points.obj", &budget, &model, &e), TB_OK);
    ck_assert_int_eq(budget.status, TB_CANCELLED);
    ck_assert_int_gt(h.asked, 1);
    ck_assert_double_lt(now_s() - h.from_s, 3);
    ck_assert_ptr_null(model);
}
END_TEST

START_TEST(time_ends_the_hull_and_says_so)
{
    tb_bytes text = {0};
    tb_model *model = NULL;
    tb_error e = {0};
    append_ball(&text, 200000);
    tb_budget budget = {.seconds = 0.1};
    ck_assert_int_ne(load(&text, "points.obj", &budget, &model, &e), TB_OK);
    ck_assert_int_eq(tb_budget_fail(&budget, &e), TB_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(e.message, "longer than the 0.1 s"));
}
END_TEST

/* A tendon that nothing holds moves for ever, while a muscle pulls it to find its length range. */
START_TEST(searches_for_lengths_end_with_the_time)
{
    tb_bytes text = {0};
    tb_model *model = NULL;
    tb_error e = {0};
    tb_budget budget = {.seconds = 0.5};
    append(&text, "<mujoco><compiler><lengthrange inttotal=\"1e9\"/></compiler><worldbody><body>"
                  "<joint name=\"j\"/><geom size=\".1\" pos=\".3 0 0\"/></body></worldbody>"
                  "<actuator><muscle joint=\"j\"/></actuator></mujoco>");
    const double begin = now_s();
    TEST_STATUS(load(&text, "scene.xml", &budget, &model, &e), TB_RESOURCE_EXHAUSTED, &e);
    ck_assert_double_lt(now_s() - begin, 10);
    ck_assert_ptr_null(model);
}
END_TEST

START_TEST(a_budget_does_not_change_the_model)
{
    tb_bytes text = {0}, again = {0};
    tb_model *model = NULL, *same = NULL;
    tb_error e = {0};
    append_ball(&text, 2000);
    append_ball(&again, 2000);
    tb_budget budget = {.seconds = 100, .memory_bytes = (size_t)1 << 30};
    TEST_STATUS(load(&text, "points.obj", &budget, &model, &e), TB_OK, &e);
    TEST_STATUS(load(&again, "points.obj", NULL, &same, &e), TB_OK, &e);
    ck_assert_str_eq(tb_model_sha256(model), tb_model_sha256(same));
    tb_model_destroy(model);
    tb_model_destroy(same);
}
END_TEST

START_TEST(a_thread_without_a_budget_is_never_stopped)
{
    tb_error e = {0};
    ck_assert(tb_budget_holds());
    ck_assert(tb_budget_take(SIZE_MAX));
    tb_budget_give_back(SIZE_MAX);
    TEST_STATUS(tb_budget_check(&e), TB_OK, &e);
}
END_TEST

TEST_MAIN(classes_take_time_in_proportion, empty_keyframes_share_the_reference,
          memory_is_refused_with_what_is_wanted, hulls_end_when_nobody_waits,
          time_ends_the_hull_and_says_so, searches_for_lengths_end_with_the_time,
          a_budget_does_not_change_the_model, a_thread_without_a_budget_is_never_stopped)
