/* Warm-up: on every device, runs each routine of a step once over an empty scene, then steps one
 * box on a floor through the scheduler, as a client's worlds, in both precisions. The warm-up
 * starts the device's threads, loads its kernels, allocates its working memory, and measures the
 * step time by which sessions choose their device. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "schedule/device.h"
#include "schedule/scheduler.h"

/* the second double-precision round is measured, on a warm device */
enum { WARM_UP_STEPS = 20, ROUNDS = 3 };
static const tb_precision PRECISIONS[ROUNDS] = {TB_DOUBLE, TB_FLOAT, TB_DOUBLE};

typedef struct warm_up {
    tb_model *model;
    tb_state *state;
    td_job job;
    tb_certificate certificate;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* monotonic */
    bool done;
    atomic_bool stop;
    const td_device *device;
} warm_up;

/* A floor and a box of 1 kg that rests on it. */
static tb_status make_model(tb_model **model, tb_error *error)
{
    const tb_scene_def scene_def = tb_scene_defaults();
    tb_body_def body_def = tb_body_defaults();
    tb_joint_def joint_def = tb_joint_defaults();
    tb_shape_def floor_def = tb_shape_defaults(), box_def = tb_shape_defaults();
    tb_scene *scene = NULL;

    tb_status status = tb_scene_create(&scene_def, &scene, error);
    if (status != TB_OK) goto done;
    floor_def.type = TB_SHAPE_PLANE;
    status = tb_scene_add_shape(scene, &floor_def, NULL, error);
    if (status != TB_OK) goto done;
    body_def.position[2] = 0.1;
    status = tb_scene_add_body(scene, &body_def, &box_def.body, error);
    if (status != TB_OK) goto done;
    joint_def.body = box_def.body;
    joint_def.type = TB_JOINT_FREE;
    status = tb_scene_add_joint(scene, &joint_def, NULL, error);
    if (status != TB_OK) goto done;
    box_def.type = TB_SHAPE_BOX;
    for (int i = 0; i < 3; i++) box_def.size[i] = 0.1;
    box_def.mass = 1;
    status = tb_scene_add_shape(scene, &box_def, NULL, error);
    if (status == TB_OK) status = tb_scene_compile(scene, model, error);
done:
    tb_scene_destroy(scene);
    return status;
}

static void finished(td_job *job)
{
    warm_up *w = job->context;
    pthread_mutex_lock(&w->mutex);
    w->done = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static const td_caller CALLER = {.name = "tribod", .scope = TD_SCOPE_ADMIN, .loopback = true};

/* Submits the job and waits for it; stops it at `until`. */
static tb_status run_job(warm_up *w, const struct timespec *until, tb_error *error)
{
    w->done = false;
    w->job.priority = TD_PRIORITY_HIGH;
    w->job.client = &CALLER;
    w->job.stop = &w->stop;
    w->job.done = finished;
    w->job.context = w;
    tb_status status = td_scheduler_submit(w->device->scheduler, &w->job);
    if (status != TB_OK) {
        *error = w->job.error;
        return status;
    }

    pthread_mutex_lock(&w->mutex);
    while (!w->done)
        if (pthread_cond_timedwait(&w->changed, &w->mutex, until) != 0) {
            /* the job ends within a step, and nothing is freed before */
            atomic_store(&w->stop, true);
            while (!w->done) pthread_cond_wait(&w->changed, &w->mutex);
        }
    status = w->job.status;
    pthread_mutex_unlock(&w->mutex);
    if (status != TB_OK) *error = w->job.error;
    return status;
}

static bool warm_device(td_job *job, int64_t budget_ns, tb_status *status, tb_error *error)
{
    const warm_up *w = job->context;
    (void)budget_ns;
    *status = td_scheduler_warm(w->device->scheduler, error);
    return true;
}

/* Steps the box once more in a precision. */
static tb_status run_steps(warm_up *w, tb_precision precision, const struct timespec *until,
                           tb_error *error)
{
    w->job = (td_job){.states = &w->state,
                      .worlds = 1,
                      .steps = WARM_UP_STEPS,
                      .options = tb_step_defaults(),
                      .certificates = &w->certificate};
    w->job.options.precision = precision;
    td_device_apply(w->device, &w->job.options);
    return run_job(w, until, error);
}

static tb_status warm_up_device(warm_up *w, td_device *device, const struct timespec *until,
                                tb_error *error)
{
    const int64_t begin = td_monotonic_ns();
    w->device = device;
    w->job = (td_job){.slice = warm_device};
    tb_status status = run_job(w, until, error);
    int64_t step_ns = 0;
    for (int i = 0; i < ROUNDS && status == TB_OK; i++) {
        status = run_steps(w, PRECISIONS[i], until, error);
        step_ns = w->job.step_estimate_ns;
    }
    if (status == TB_OK) atomic_store(&device->step_ns, (double)step_ns);
    atomic_store(&device->warm_up_seconds, 1e-9 * (double)(td_monotonic_ns() - begin));
    return status;
}

tb_status td_server_warm_up(td_server *server, double seconds, tb_error *error)
{
    pthread_condattr_t monotonic;
    struct timespec until;
    if (seconds <= 0) return TB_OK;
    warm_up *w = calloc(1, sizeof *w);
    if (w == NULL) return tb_fail_memory(error, sizeof *w, "warming up");
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);

    tb_status status = make_model(&w->model, error);
    if (status == TB_OK) status = tb_state_create(w->model, &w->state, error);
    for (int32_t i = 0; i < server->number_of_devices && status == TB_OK; i++)
        status = warm_up_device(w, &server->devices[i], &until, error);
    /* running out of time is not a failure */
    if (status == TB_CANCELLED) status = TB_OK;
    for (int32_t i = 0; i < server->number_of_devices; i++) td_device_watch(&server->devices[i]);

    tb_state_destroy(w->state);
    tb_model_destroy(w->model);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w);
    return status;
}
