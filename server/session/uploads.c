/* See uploads.h. */
#include "session/uploads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/db.h"
#include "call/auth_internal.h"
#include "base/error.h"

enum { UPLOAD_THREADS_MAXIMUM = DB_READERS / 2 };
/* A thread of this niceness gets a tenth of a contended processor. */
enum { UPLOAD_NICENESS = 10 };
static const double RETRY_AFTER_S = 0.25;

typedef struct upload_job {
    td_call *call;
    td_request *request;
    void (*work)(td_call *, td_request *);
} upload_job;

tb_status td_uploads_create(const td_config *config, td_pool **pool, tb_error *error)
{
    long threads = config->threads > 0 ? config->threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (threads > UPLOAD_THREADS_MAXIMUM) threads = UPLOAD_THREADS_MAXIMUM;
    const td_pool_options options = {.name = "upload",
                                     .threads = threads > 0 ? (int32_t)threads : 1,
                                     .queue_length = config->uploads,
                                     .per_caller = config->uploads_per_client,
                                     .niceness = UPLOAD_NICENESS};
    return td_pool_create(&options, pool, error);
}

void td_caller_key(const td_call *call, char key[TD_POOL_CALLER_SIZE])
{
    const char *name = call->caller.name;
    snprintf(key, TD_POOL_CALLER_SIZE, "%s", name);
    if (*name != '\0' && strcmp(name, TD_ANONYMOUS) != 0) return;
    /* the address without the port, behind the last colon */
    snprintf(key, TD_POOL_CALLER_SIZE, "%.63s", call->peer);
    char *colon = strrchr(key, ':');
    if (colon != NULL) *colon = '\0';
}

/* Whether a drain has left uploads no more time. */
static bool too_late(const td_server *server)
{
    return td_monotonic_ns() > atomic_load(&server->uploads_end_ns);
}

static bool unwanted(void *context)
{
    td_call *call = context;
    return !td_call_wanted(call, td_monotonic_ns()) || too_late(call->server);
}

tb_budget td_upload_budget(td_call *call)
{
    const td_config *config = call->server->config;
    return (tb_budget){.seconds = config->upload_seconds,
                       .memory_bytes = (size_t)config->upload_memory_bytes,
                       .stop = unwanted,
                       .context = call};
}

static bool draining(void *context)
{
    return too_late(context);
}

tb_budget td_upload_budget_of_server(td_server *server)
{
    const td_config *config = server->config;
    return (tb_budget){.seconds = config->upload_seconds,
                       .memory_bytes = (size_t)config->upload_memory_bytes,
                       .stop = draining,
                       .context = server};
}

tb_status td_upload_failure(td_call *call, const tb_budget *budget, tb_status status,
                            tb_error *error)
{
    if (status == TB_OK || budget->status == TB_OK) return status;
    if (budget->status == TB_CANCELLED && too_late(call->server))
        return tb_fail(error, TB_UNAVAILABLE, "the server is stopping");
    return tb_budget_fail(budget, error);
}

static void run(void *context)
{
    upload_job *job = context;
    td_call *call = job->call;
    tb_error error = {0};
    if (!unwanted(call)) {
        job->work(call, job->request);
    } else {
        if (too_late(call->server))
            tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
        else
            tb_fail(&error, TB_CANCELLED, "the caller left before the upload was parsed");
        td_request_free(job->request);
        td_call_finish(call, error.status, &error, 1);
    }
    free(job);
    td_call_release(call);
}

void td_upload(td_call *call, td_request *request, void (*work)(td_call *, td_request *))
{
    char key[TD_POOL_CALLER_SIZE];
    tb_error error = {0};
    upload_job *job = malloc(sizeof *job);
    tb_status status = TB_OK;
    td_caller_key(call, key);
    if (job == NULL) {
        status = tb_fail_memory(&error, sizeof *job, "an upload");
    } else {
        *job = (upload_job){.call = call, .request = request, .work = work};
        td_call_hold(call);
        status = td_pool_post(call->server->uploads, key, run, job, &error);
        if (status != TB_OK) td_call_release(call);
    }
    if (status == TB_OK) return;
    free(job);
    td_request_free(request);
    td_call_finish(call, status, &error, RETRY_AFTER_S);
}

/* ---- scenes ---- */

void td_upload_for_scene(td_call *call, td_request *request, const char *scene_id,
                         void (*work)(td_call *, td_request *))
{
    td_catalog *catalog = call->server->catalog;
    const td_scene *warm = td_catalog_warm_scene(catalog, scene_id);
    if (warm != NULL)
        work(call, request);
    else
        td_upload(call, request, work);
    td_scene_release(catalog, warm); /* the scene stays in memory until here */
}

tb_status td_upload_scene(td_call *call, const char *scene_id, const td_scene **scene,
                          tb_error *error)
{
    tb_budget budget = td_upload_budget(call);
    const tb_status status =
        td_catalog_scene(call->server->catalog, scene_id, &budget, scene, error);
    return td_upload_failure(call, &budget, status, error);
}
