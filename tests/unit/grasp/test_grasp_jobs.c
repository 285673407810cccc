/* Grasp jobs as they run: left at any time, filmed, and on a card, in slices of any length. */
#include "gpu/card_util.h"
#include "grasp/replay.h"
#include "grasp_util.h"

START_TEST(a_job_may_be_left_at_any_time)
{
    const tb_grasp_pose pose = pose_at(0, 0, 0.005);
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    r.perturbation.count = 20;
    r.step.threads = 2;
    for (int slices = 0; slices < 4; slices++) {
        tb_grasp_job *job;
        bool finished;
        TEST_OK(tb_grasp_job_create(&r, &job, &error), &error);
        for (int i = 0; i < slices; i++)
            TEST_OK(tb_grasp_job_advance(job, 0, &finished, &error), &error);
        const tb_grasp_progress p = tb_grasp_job_progress(job);
        ck_assert(p.trials == 20 && p.world_steps_done <= p.world_steps);
        ck_assert_ptr_null(tb_grasp_job_next(job));
        tb_grasp_job_destroy(job);
    }
    tb_grasp_job_destroy(NULL);
    tb_grasp_trial trial;
    r.perturbation.count = 1;
    play(&r, keep, &trial);
    ck_assert_int_eq(trial.verdict, TB_GRASP_HELD);
    free_request(&r);
}
END_TEST

/* ---- films ---- */

/* Times and poses of the films of a job; a replay must end with the poses' last row. */
typedef struct films {
    uint64_t hash;
    int32_t kept, frames;
    tb_grasp_verdict verdicts[8];
    double end; /* s, of the last film */
    float object[7];
} films;

static uint64_t add(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

/* Poses 0 and 2 hold, pose 1 grasps the air above the block; three copies each. */
static films film_job(const tb_grasp_film_options *options, int32_t threads, int64_t slice_ns,
                      tb_backend_choice backend)
{
    tb_grasp_pose poses[3] = {pose_at(0, 0, 0.005), pose_at(0, 0, 0.06), pose_at(0.002, 0, 0)};
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), poses);
    films f = {0};
    bool finished = false;
    tb_grasp_job *job;
    r.number_of_poses = 3;
    r.perturbation.count = 3;
    r.perturbation.position = 5e-4;
    r.protocol.hold_seconds = 0.1;
    r.step.threads = threads;
    r.step.backend = backend;
    TEST_OK(tb_grasp_job_create(&r, &job, &error), &error);
    TEST_OK(tb_grasp_job_film(job, options, &error), &error);
    ck_assert_uint_gt(tb_grasp_job_film_bytes(job), 0);
    while (!finished) {
        TEST_OK(tb_grasp_job_advance(job, slice_ns, &finished, &error), &error);
        for (const tb_grasp_result *g; (g = tb_grasp_job_next(job)) != NULL;)
            for (int32_t i = -1; i <= g->number_of_trials; i++) {
                tb_grasp_film film;
                if (!tb_grasp_job_filmed(job, i, &film)) continue;
                ck_assert(i == film.copy && film.times[0] == 0);
                const size_t frames = (size_t)film.frames, bodies = (size_t)film.bodies;
                f.hash = add(f.hash, film.times, frames * sizeof *film.times);
                f.hash = add(f.hash, film.poses, frames * bodies * 7 * sizeof *film.poses);
                ck_assert_int_lt(f.kept, 8);
                f.verdicts[f.kept++] = g->trials[i].verdict;
                f.frames += film.frames;
                f.end = film.times[film.frames - 1];
                memcpy(f.object, film.poses + (frames * bodies - 1) * 7, sizeof f.object);
                for (int32_t k = 1; k + 1 < film.frames; k++)
                    ck_assert(fabs(film.times[k] - k * 0.05) < 1e-9);
            }
    }
    tb_grasp_job_destroy(job);
    free_request(&r);
    return f;
}

START_TEST(chosen_trials_are_filmed_whatever_the_threads_and_slices)
{
    const bool third[3] = {false, false, true};
    const uint32_t dropped = 1u << TB_GRASP_DROPPED;
    const tb_grasp_film_options by_verdict = {.verdicts = dropped, .copies = 3, .interval = 0.05},
                                both = {.poses = third, .verdicts = dropped, .interval = 0.05};
    const films a = film_job(&by_verdict, 1, 10000000, TB_BACKEND_CPU);
    ck_assert_int_eq(a.kept, 3);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(a.verdicts[i], TB_GRASP_DROPPED);
    ck_assert_uint_eq(film_job(&by_verdict, 2, 0, TB_BACKEND_CPU).hash, a.hash);
    const films b = film_job(&both, 2, 1000000, TB_BACKEND_CPU);
    ck_assert_int_eq(b.kept, 2);
    ck_assert(b.verdicts[0] == TB_GRASP_DROPPED && b.verdicts[1] == TB_GRASP_HELD);
    const tb_grasp_film_options none = {.interval = 0.05};
    ck_assert_int_eq(film_job(&none, 1, 1000000, TB_BACKEND_CPU).kept, 0);
}
END_TEST

/* The last state of a replay. */
static tb_status keep_last(void *context, tb_state *state, double time, const tb_certificate *step,
                           tb_error *problem)
{
    films *f = context;
    tb_body_motion motions[8];
    (void)step;
    (void)problem;
    tb_state_body_motions(state, motions);
    const tb_body_motion *last = &motions[tb_model_count(tb_state_model(state)).bodies - 1];
    for (int k = 0; k < 3; k++) f->object[k] = (float)last->position[k];
    for (int k = 0; k < 4; k++) f->object[3 + k] = (float)last->orientation[k];
    f->end = time;
    f->frames++;
    return TB_OK;
}

START_TEST(a_film_has_the_states_of_its_trial)
{
    const bool third[3] = {false, false, true};
    const tb_grasp_film_options options = {.poses = third, .interval = 0.05};
    const films film = film_job(&options, 1, 1000000, TB_BACKEND_CPU);
    const tb_grasp_pose pose = pose_at(0.002, 0, 0);
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    films again = {0};
    tb_model *model = NULL;
    r.perturbation.count = 3;
    r.perturbation.position = 5e-4;
    r.protocol.hold_seconds = 0.1;
    TEST_OK(tb_grasp_replay(&r, 0, 0.05, keep_last, &again, &model, &error), &error);
    ck_assert_int_eq(film.frames, again.frames);
    ck_assert(film.end == again.end);
    ck_assert_mem_eq(film.object, again.object, sizeof film.object);
    tb_model_destroy(model);
    free_request(&r);
}
END_TEST

START_TEST(films_that_make_no_sense_are_refused)
{
    const tb_grasp_pose pose = pose_at(0, 0, 0.005);
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    const struct {
        tb_grasp_film_options options;
        const char *field;
    } WRONG[] = {{{.interval = -1}, "interval"},
                 {{.interval = NAN}, "interval"},
                 {{.copies = -1}, "copies"},
                 {{.copies = 2}, "copies"},
                 {{.interval = 0.002}, "interval"}};
    r.protocol.hold_seconds = 200; /* 100,000 steps, whose frames are too many */
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        tb_grasp_job *job;
        TEST_OK(tb_grasp_job_create(&r, &job, &error), &error);
        ck_assert_int_eq(tb_grasp_job_film(job, &WRONG[i].options, &error), TB_INVALID_ARGUMENT);
        ck_assert_str_eq(error.field, WRONG[i].field);
        tb_grasp_job_destroy(job);
    }
    free_request(&r);
}
END_TEST

/* ---- on a card ---- */

START_TEST(a_card_films_as_a_processor_does)
{
    const tb_grasp_film_options options = {
        .verdicts = 1u << TB_GRASP_HELD, .copies = 1, .interval = 0.05};
    find_card();
    const films here = film_job(&options, 1, 10000000, TB_BACKEND_CPU),
                there = film_job(&options, 1, 10000000, TB_BACKEND_GPU);
    ck_assert(here.kept == 2 && there.kept == 2 && here.frames == there.frames);
    ck_assert(here.end == there.end);
    for (int k = 0; k < 7; k++) ck_assert(fabsf(here.object[k] - there.object[k]) < 1e-4f);
}
END_TEST

/* Digest of the results of three poses with some copies, shaken along the fingers' way, played in slices
 * of this many ns. */
static uint64_t play_on_card(int64_t slice_ns)
{
    tb_grasp_pose poses[3] = {pose_at(0, 0, 0.005), pose_at(0, 0, 0.04), pose_at(0.012, 0, 0)};
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), poses);
    r.number_of_poses = 3;
    r.perturbation.count = 3;
    r.perturbation.position = 2e-3;
    r.protocol.hold_seconds = 0.1;
    r.step.backend = TB_BACKEND_GPU;
    tb_grasp_shake shake = tb_grasp_shake_defaults();
    shake.axis[1] = 1, shake.axis[2] = 0;
    shake.frequency = 5;
    shake.seconds = 0.2;
    r.protocol.shakes = &shake;
    r.protocol.number_of_shakes = 1;
    tb_grasp_job *job;
    bool finished = false;
    uint64_t hash = 0;
    TEST_OK(tb_grasp_job_create(&r, &job, &error), &error);
    while (!finished) {
        TEST_OK(tb_grasp_job_advance(job, slice_ns, &finished, &error), &error);
        for (const tb_grasp_result *g; (g = tb_grasp_job_next(job)) != NULL;)
            for (int32_t i = 0; i < g->number_of_trials; i++) {
                const tb_grasp_trial *t = &g->trials[i];
                const double numbers[] = {t->verdict, t->slip, t->drop_time, (double)t->steps,
                                          t->certificate.residual};
                for (int k = 0; k < 5; k++) {
                    uint64_t word;
                    memcpy(&word, &numbers[k], sizeof word);
                    hash = (hash ^ word) * 0x100000001b3u;
                }
            }
    }
    tb_grasp_job_destroy(job);
    free_request(&r);
    return hash;
}

START_TEST(how_a_job_on_a_card_is_sliced_cannot_be_seen)
{
    find_card();
    ck_assert_uint_eq(play_on_card(0), play_on_card(1000000000));
}
END_TEST

/* A slice that ends during a round leaves its worlds with different numbers of steps. */
START_TEST(a_round_that_ends_early_cannot_be_seen)
{
    play_card(NULL, NULL, NULL);
    find_card();
    const uint64_t whole = play_on_card(1000000000);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(setenv("TRIBO_TEST_STOP", (const char *[]){"1", "5", "30"}[i], 1), 0);
        ck_assert_uint_eq(play_on_card(0), whole);
        ck_assert_uint_eq(play_on_card(1000000000), whole);
    }
    ck_assert_int_eq(unsetenv("TRIBO_TEST_STOP"), 0);
}
END_TEST

/* Though the processors see where the hand comes to rest. */
START_TEST(a_job_is_played_on_the_card_that_was_asked_for)
{
    play_card(NULL, "2", NULL);
    find_card();
    /* a card counts as long as it is in use */
    tb_stepper *keepers[2] = {resident_stepper(0), resident_stepper(1)};
    const tb_grasp_pose pose = pose_at(0, 0, 0.005);
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    tb_grasp_trial trial;
    r.step.backend = TB_BACKEND_GPU;
    r.step.device = 1;
    const int64_t before[2] = {use_of(0).launches, use_of(1).launches};
    play(&r, keep, &trial);
    ck_assert_int_eq(trial.verdict, TB_GRASP_HELD);
    ck_assert_int_eq(use_of(0).launches, before[0]);
    ck_assert_int_gt(use_of(1).launches, before[1]);
    free_request(&r);
    for (int i = 0; i < 2; i++) tb_stepper_destroy(keepers[i]);
}
END_TEST

TEST_MAIN(a_job_may_be_left_at_any_time, chosen_trials_are_filmed_whatever_the_threads_and_slices,
          a_film_has_the_states_of_its_trial, films_that_make_no_sense_are_refused,
          a_card_films_as_a_processor_does, how_a_job_on_a_card_is_sliced_cannot_be_seen,
          a_round_that_ends_early_cannot_be_seen, a_job_is_played_on_the_card_that_was_asked_for)
