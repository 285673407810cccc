/* The scheduler's handling of a launch that fails as a whole on a card. */
#include "gpu/card_util.h"
#include "schedule/scheduler_internal.h"
#include "server.h"

static tb_status run(td_batch *batch, const td_device *device, td_metrics *metrics, td_job *job)
{
    job->options = tb_step_defaults();
    job->worlds = 1;
    job->steps = 3;
    job->step_estimate_ns = 1000;
    td_device_apply(device, &job->options);
    td_batch_clear(batch);
    ck_assert(td_batch_add(batch, job, 1000, 3000));
    td_batch_launch(batch, metrics);
    ck_assert(batch->list[0]->finished);
    return batch->list[0]->status;
}

/* One client's world diverges; then another's finds no memory: its error must not be the first
 * one's certificate. */
START_TEST(a_launch_that_never_began_is_a_failure)
{
    play_card(NULL, NULL, NULL);
    find_card();
    tb_error error = {0};
    tb_model *model = boxes(), *other = crowd();
    tb_state *wild = state_of(model), *calm = state_of(other);
    double u[64] = {0};
    u[3] = 1e300;
    TEST_OK(tb_state_set_u(wild, u, tb_model_count(model).dofs, &error), &error);
    const td_device device = {.backend = TB_BACKEND_GPU};
    td_batch batch;
    td_metrics *metrics = NULL;
    tb_certificate first = {0}, second = {0};
    td_job job = {.states = &wild, .certificates = &first};
    TEST_OK(td_metrics_create(&metrics, &error), &error);
    TEST_OK(td_batch_create(&batch, &device, 1, 1, &error), &error);
    ck_assert_int_eq(run(&batch, &device, metrics, &job), TB_OK);
    ck_assert_int_eq(first.status, TB_DIVERGED);

    play_card("1000", NULL, NULL); /* another process has the card's memory */
    job = (td_job){.states = &calm, .certificates = &second};
    ck_assert_int_eq(run(&batch, &device, metrics, &job), TB_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(job.error.status, TB_RESOURCE_EXHAUSTED);
    ck_assert_str_ne(job.error.message, "");
    ck_assert_int_ne(second.status, TB_DIVERGED);
    ck_assert_int_eq(tb_state_steps(calm), 0);

    /* and the library says so itself */
    memset(&second, 1, sizeof second);
    ck_assert_int_eq(tb_step_batch(batch.parallel, &calm, 1, 3, &second, &error),
                     TB_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(second.status, TB_OK);
    ck_assert_int_eq(second.step, 0);

    /* with memory it goes on as if nothing had been */
    play_card(NULL, NULL, NULL);
    job = (td_job){.states = &calm, .certificates = &second};
    ck_assert_int_eq(run(&batch, &device, metrics, &job), TB_OK);
    ck_assert_int_eq(second.step, 3);
    ck_assert_int_eq(tb_state_steps(calm), 3);
    td_batch_destroy(&batch);
    td_metrics_destroy(metrics);
    tb_state_destroy(wild);
    tb_state_destroy(calm);
    tb_model_destroy(model);
    tb_model_destroy(other);
}
END_TEST

TEST_MAIN(a_launch_that_never_began_is_a_failure)
