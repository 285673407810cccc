/* Grasp jobs as they run: left at any time, and on a card, in slices of any length. */
#include "gpu/card_util.h"
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

/* ---- on a card ---- */

/* Digest of the results of three poses with some copies, played in slices of this many ns. */
static uint64_t play_on_card(int64_t slice_ns)
{
    tb_grasp_pose poses[3] = {pose_at(0, 0, 0.005), pose_at(0, 0, 0.04), pose_at(0.012, 0, 0)};
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), poses);
    r.number_of_poses = 3;
    r.perturbation.count = 3;
    r.perturbation.position = 2e-3;
    r.protocol.hold_seconds = 0.1;
    r.step.backend = TB_BACKEND_GPU;
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

/* One step a round, where a slice has no time, or many. */
START_TEST(how_a_job_on_a_card_is_sliced_cannot_be_seen)
{
    find_card();
    ck_assert_uint_eq(play_on_card(0), play_on_card(1000000000));
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

TEST_MAIN(a_job_may_be_left_at_any_time, how_a_job_on_a_card_is_sliced_cannot_be_seen,
          a_job_is_played_on_the_card_that_was_asked_for)
