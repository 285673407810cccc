/* The callers behind `tribo load`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cli.h"
#include "common/interrupt.h"
#include "bench/load.h"
#include "common/progress.h"
#include "tribo/v1/simulation.pb-c.h"

static const double SLICE_S = 0.05;

typedef struct caller {
    load *owner;
    int32_t index;
    pthread_t thread;
    bool started;
    char session[33];
    tbc_stream *stream;
    pthread_mutex_t lock; /* of the fields below: the window takes it away */
    double *latencies;
    int64_t count, capacity, refused, failed;
    tb_error last_error;
} caller;

struct load {
    tbc_client *client;
    load_plan plan;
    caller *callers;
    atomic_bool ended;
    double started; /* s */
};

/* ---- one call ---- */

static tb_status call_step(caller *c, tb_error *error)
{
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepResponse *answer = NULL;
    request.session_id = c->session;
    request.steps = c->owner->plan.steps;
    const tb_status status = TBC_CALL(c->owner->client, "tribo.v1.Simulation/Step", &request,
                                      step_response, &answer, error);
    tbc_free(answer);
    return status;
}

static tb_status call_stream(caller *c, tb_error *error)
{
    Tribo__V1__StepRequest step = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepStreamRequest request = TRIBO__V1__STEP_STREAM_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    step.session_id = c->session;
    step.steps = c->owner->plan.steps;
    request.step = &step;
    tb_status status = TB_OK;
    if (c->stream == NULL)
        status =
            tbc_stream_open(c->owner->client, "tribo.v1.Simulation/StepStream",
                            &tribo__v1__step_stream_response__descriptor, 0, &c->stream, error);
    if (status == TB_OK) {
        /* receive returns the reason of a failed send */
        tbc_stream_send(c->stream, &request.base, NULL);
        status = tbc_stream_receive(c->stream, &answer, error);
    }
    if (status == TB_OK && answer == NULL)
        status = cli_fail(error, TB_UNAVAILABLE, "", 0, NULL, "the daemon ended the stream");
    tbc_free(answer);
    if (status != TB_OK) {
        tbc_stream_close(c->stream);
        c->stream = NULL;
    }
    return status;
}

static tb_status call_info(caller *c, tb_error *error)
{
    Tribo__V1__GetServerInfoRequest request = TRIBO__V1__GET_SERVER_INFO_REQUEST__INIT;
    Tribo__V1__GetServerInfoResponse *answer = NULL;
    const tb_status status = TBC_CALL(c->owner->client, "tribo.v1.Simulation/GetServerInfo",
                                      &request, get_server_info_response, &answer, error);
    tbc_free(answer);
    return status;
}

/* ---- callers ---- */

static void note(caller *c, double latency, tb_status status, const tb_error *error)
{
    pthread_mutex_lock(&c->lock);
    if (status == TB_RESOURCE_EXHAUSTED) {
        c->refused++;
    } else if (status != TB_OK) {
        c->failed++;
        c->last_error = *error;
    } else {
        if (c->count == c->capacity) {
            const int64_t capacity = c->capacity > 0 ? 2 * c->capacity : 4096;
            double *larger = realloc(c->latencies, (size_t)capacity * sizeof *larger);
            if (larger != NULL) {
                c->latencies = larger;
                c->capacity = capacity;
            }
        }
        if (c->count < c->capacity)
            c->latencies[c->count++] = latency;
        else
            c->last_error = (tb_error){.status = TB_RESOURCE_EXHAUSTED, .message = "out of memory"},
            c->failed++;
    }
    pthread_mutex_unlock(&c->lock);
}

static void sleep_until(double time)
{
    const double left = time - progress_clock();
    if (left <= 0) return;
    const struct timespec pause = {(time_t)left, (long)((left - floor(left)) * 1e9)};
    nanosleep(&pause, NULL);
}

static void *work(void *context)
{
    caller *c = context;
    const load_plan *plan = &c->owner->plan;
    const double interval = plan->rate > 0 ? plan->callers / plan->rate : 0;
    double due = c->owner->started + interval * c->index / plan->callers;
    while (!atomic_load(&c->owner->ended)) {
        tb_error error = {0};
        if (interval > 0) sleep_until(due);
        const double begun = interval > 0 ? due : progress_clock();
        const tb_status status = plan->method == LOAD_STEP     ? call_step(c, &error)
                                 : plan->method == LOAD_STREAM ? call_stream(c, &error)
                                                               : call_info(c, &error);
        note(c, progress_clock() - begun, status, &error);
        due += interval;
        /* a daemon that is gone is not to be asked a million times a second */
        if (status != TB_OK && status != TB_RESOURCE_EXHAUSTED && interval <= 0)
            sleep_until(progress_clock() + 0.01);
    }
    return NULL;
}

static tb_status open_session(load *l, caller *c, tb_error *error)
{
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    Tribo__V1__CreateSessionResponse *answer = NULL;
    char label[] = "tribo load", *scene = strdup(l->plan.scene_id);
    if (scene == NULL) return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
    request.scene_id = scene;
    request.worlds = l->plan.worlds;
    request.label = label;
    const tb_status status = TBC_CALL(l->client, "tribo.v1.Simulation/CreateSession", &request,
                                      create_session_response, &answer, error);
    if (status == TB_OK) snprintf(c->session, sizeof c->session, "%s", answer->session_id);
    tbc_free(answer);
    free(scene);
    return status;
}

tb_status load_start(tbc_client *client, const load_plan *plan, load **out, tb_error *error)
{
    tb_status status = TB_OK;
    *out = NULL;
    load *l = calloc(1, sizeof *l);
    if (l != NULL) l->callers = calloc((size_t)plan->callers, sizeof *l->callers);
    if (l == NULL || l->callers == NULL) {
        free(l);
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
    }
    l->client = client;
    l->plan = *plan;
    for (int32_t i = 0; i < plan->callers; i++) {
        caller *c = &l->callers[i];
        c->owner = l;
        c->index = i;
        pthread_mutex_init(&c->lock, NULL);
        if (status == TB_OK && plan->method != LOAD_INFO) status = open_session(l, c, error);
    }
    l->started = progress_clock();
    for (int32_t i = 0; i < plan->callers && status == TB_OK; i++) {
        caller *c = &l->callers[i];
        c->started = pthread_create(&c->thread, NULL, work, c) == 0;
        if (!c->started)
            status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL,
                              "only %d of %d threads could be started", (int)i, (int)plan->callers);
    }
    if (status != TB_OK) {
        load_stop(l);
        return status;
    }
    *out = l;
    return TB_OK;
}

void load_stop(load *l)
{
    if (l == NULL) return;
    atomic_store(&l->ended, true);
    for (int32_t i = 0; i < l->plan.callers; i++) {
        caller *c = &l->callers[i];
        if (c->started) pthread_join(c->thread, NULL);
        tbc_stream_close(c->stream);
        if (c->session[0] != '\0') {
            Tribo__V1__DeleteSessionRequest request = TRIBO__V1__DELETE_SESSION_REQUEST__INIT;
            Tribo__V1__DeleteSessionResponse *answer = NULL;
            request.session_id = c->session;
            TBC_CALL(l->client, "tribo.v1.Simulation/DeleteSession", &request,
                     delete_session_response, &answer, NULL);
            tbc_free(answer);
        }
        pthread_mutex_destroy(&c->lock);
        free(c->latencies);
    }
    free(l->callers);
    free(l);
}

/* ---- windows ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Collects the callers' measurements since the last window. */
static tb_status collect(load *l, load_window *window, tb_error *error)
{
    *window = (load_window){0};
    tb_error failure = {0};
    int64_t room = 0;
    for (int32_t i = 0; i < l->plan.callers; i++) {
        caller *c = &l->callers[i];
        pthread_mutex_lock(&c->lock);
        if (window->count + c->count > room) {
            room = 2 * (window->count + c->count);
            double *larger = realloc(window->latencies, (size_t)room * sizeof *larger);
            if (larger == NULL) {
                pthread_mutex_unlock(&c->lock);
                load_window_free(window);
                return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
            }
            window->latencies = larger;
        }
        if (c->count > 0)
            memcpy(window->latencies + window->count, c->latencies,
                   (size_t)c->count * sizeof *c->latencies);
        window->count += c->count;
        window->refused += c->refused;
        window->failed += c->failed;
        if (c->failed > 0) failure = c->last_error;
        c->count = c->refused = c->failed = 0;
        pthread_mutex_unlock(&c->lock);
    }
    if (window->count > 0)
        qsort(window->latencies, (size_t)window->count, sizeof *window->latencies, compare);
    /* nothing but failures: the measurement itself has failed */
    if (window->count == 0 && window->refused == 0 && window->failed > 0) {
        *error = failure;
        return failure.status;
    }
    return TB_OK;
}

tb_status load_measure(load *l, double seconds, load_window *window, tb_error *error)
{
    load_window before;
    tb_status status = collect(l, &before, error);
    if (status != TB_OK) return status;
    load_window_free(&before);
    const double begun = progress_clock(), until = begun + seconds;
    /* in slices: the signal may wake another thread */
    while (progress_clock() < until && !interrupt_requested())
        sleep_until(fmin(until, progress_clock() + SLICE_S));
    status = collect(l, window, error);
    window->seconds = progress_clock() - begun;
    return status;
}
