/* The daemon's life: its parts are made in the order of their needs, and ended in the reverse.
 *
 * Draining. New calls are refused at once by both transports while those in flight go on; sessions
 * are checkpointed, watchers and streams get the news; jobs finish; the transports wait for the other
 * calls and cancel them when drain_seconds are nearly over; sessions that changed meanwhile are
 * checkpointed again.
 * The transports' shutdowns block, and the jobs that they wait for need time at the same moment, so
 * each shuts down on a thread of its own. */
#include "server.h"
#include "handlers/grasp_jobs.h"
#include "call/readiness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/db.h"
#include "db/fleet/fleet.h"
#include "base/error.h"
#include "session/catalog.h"
#include "session/programs.h"
#include "wire/descriptors.h"
#include "transport/http/http.h"
#include "wire/json.h"
#include "call/memory.h"
#include "transport/grpc/rpc.h"
#include "schedule/scheduler.h"
#include "session/session.h"
#include "session/uploads.h"
#include "trace/spans.h"

enum { WORKERS_MINIMUM = 2, WORKERS_MAXIMUM = 8, WORKERS_QUEUE = 256 };

/* at the end of a drain, for HTTP connections to be closed by their clients */
static const int64_t LINGER_NS = 500000000;

/* A configuration that a thread may still read. */
typedef struct kept_config {
    td_config config;
    struct kept_config *older;
} kept_config;

struct td_server_private {
    kept_config *configs; /* newest first */
    bool told_ready;      /* the status that health watchers have */
};

/* ---- configurations
 * --------------------------------------------------------------------------- */

static tb_status publish_config(td_server *server, const td_config *config, tb_error *error)
{
    kept_config *kept = malloc(sizeof *kept);
    if (kept == NULL) return tb_fail_memory(error, sizeof *kept, "the configuration");
    kept->config = *config;
    kept->older = server->own->configs;
    server->own->configs = kept;
    server->config = &kept->config;
    return TB_OK;
}

static void log_kept(void *context, const char *option)
{
    td_log_write(context, TB_LOG_WARNING, "config.needs_restart", "option=%s", option);
}

tb_status td_server_reload(td_server *server, const td_config *wanted, tb_error *error)
{
    const td_config *running = server->config;
    td_config config = *wanted;
    td_config_keep_fixed(&config, running, log_kept, server->log);
    /* only changed texts are kept, so that signals without a change cost no memory */
    if (!td_config_equal(&config, running)) {
        const tb_status status = publish_config(server, &config, error);
        if (status != TB_OK) return status;
    }
    td_log_set_level(server->log, config.log_level);
    td_auth_reload(server->auth, &config);
    return TB_OK;
}

/* ---- making
 * ----------------------------------------------------------------------------------- */

static void log_store(void *context, tb_log_level level, const char *message)
{
    td_log_write(context, level, "store", "message=%s", message);
}

static void observe_commit(void *context, double seconds)
{
    td_metrics_observe(context, TD_HISTOGRAM_DB_COMMIT, seconds);
}

static void refresh_outbox(td_server *server)
{
    if (server->fleet == NULL) return;
    const db_fleet_counters counters = db_fleet_count(server->fleet);
    td_metrics_set(server->metrics, TD_METRIC_OUTBOX_LENGTH, counters.waiting);
    td_metrics_set(server->metrics, TD_METRIC_OUTBOX_OLDEST, (int64_t)counters.oldest_seconds);
    td_metrics_set(server->metrics, TD_METRIC_OUTBOX_REFUSED, counters.refused);
    td_metrics_set(server->metrics, TD_METRIC_OUTBOX_SENT, counters.sent);
    td_metrics_set(server->metrics, TD_METRIC_OUTBOX_SKEW, (int64_t)counters.skew_seconds);
    td_metrics_set(server->metrics, TD_METRIC_OUTBOX_FAILURES, counters.failures);
}

static void refresh_metrics(void *context)
{
    td_server *server = context;
    const db_counters counters = db_count(server->db);
    td_metrics_set(server->metrics, TD_METRIC_DB_QUEUE_LENGTH, counters.queued);
    td_metrics_set(server->metrics, TD_METRIC_DB_DROPPED, counters.dropped_summaries);
    td_metrics_set(server->metrics, TD_METRIC_DB_COMMITS, counters.commits);
    td_metrics_set(server->metrics, TD_METRIC_DB_BYTES, counters.file_bytes);
    td_metrics_set(server->metrics, TD_METRIC_DB_FAILURES, counters.failures);
    td_metrics_set(server->metrics, TD_METRIC_DB_FAILING, counters.failing);
    refresh_outbox(server);
    td_metrics_set(server->metrics, TD_METRIC_SPANS_WAITING, td_spans_waiting(server->spans));
    const td_workers_use workers = td_workers_measure(server->workers);
    td_metrics_set(server->metrics, TD_METRIC_WORKERS_WAITING, workers.waiting);
    td_metrics_set(server->metrics, TD_METRIC_WORKERS_OLDEST, (int64_t)workers.oldest_seconds);
    td_metrics_set(server->metrics, TD_METRIC_DESCRIPTORS, td_descriptors_open());
    td_metrics_set(server->metrics, TD_METRIC_DESCRIPTORS_LIMIT, td_descriptors_limit());
    const td_pool_use uploads = td_pool_measure(server->uploads);
    td_metrics_set(server->metrics, TD_METRIC_UPLOADS_WAITING, uploads.waiting);
    td_metrics_set(server->metrics, TD_METRIC_UPLOADS_OLDEST, (int64_t)uploads.oldest_seconds);
    td_metrics_set(server->metrics, TD_METRIC_MEMORY_BOOKED, (int64_t)td_memory_booked(server));
    td_metrics_set(server->metrics, TD_METRIC_MEMORY_LIMIT, (int64_t)td_memory_limit(server));
}

static tb_status open_store(td_server *server, const td_config *config, tb_error *error)
{
    const db_options options = {.folder = config->data,
                                .queue_length = config->store_queue_length,
                                .retain_days = config->retain_days,
                                .retain_snapshots_bytes = config->retain_snapshots_bytes,
                                .retain_unused_bytes = config->retain_unused_bytes,
                                .retain_jobs_bytes = config->retain_jobs_bytes,
                                .retain_recordings_bytes = config->retain_recordings_bytes,
                                .retain_trajectories_bytes = config->retain_trajectories_bytes,
                                .session_snapshots = config->session_snapshots,
                                .session_snapshots_bytes = config->session_snapshots_bytes,
                                .outbox = *config->fleet_outbox != '\0',
                                .log = log_store,
                                .log_context = server->log,
                                .committed = observe_commit,
                                .committed_context = server->metrics};
    return db_open(&options, &server->db, error);
}

static void log_fleet(void *context, tb_log_level level, const char *message)
{
    td_log_write(context, level, "fleet", "message=%s", message);
}

static tb_status join_fleet(td_server *server, const td_config *config, tb_error *error)
{
    char host[DB_FLEET_NODE_SIZE] = "";
    if (*config->fleet_outbox == '\0') return TB_OK;
    gethostname(host, sizeof host - 1);
    const db_fleet_options options = {.url = config->fleet_outbox,
                                      .node =
                                          *config->fleet_node != '\0' ? config->fleet_node : host,
                                      .log = log_fleet,
                                      .log_context = server->log};
    return db_fleet_create(server->db, &options, &server->fleet, error);
}

static tb_status make_workers(td_server *server, const td_config *config, tb_error *error)
{
    int threads = config->threads > 0 ? config->threads : (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (threads < WORKERS_MINIMUM) threads = WORKERS_MINIMUM;
    if (threads > WORKERS_MAXIMUM) threads = WORKERS_MAXIMUM;
    return td_workers_create(threads, WORKERS_QUEUE, &server->workers, error);
}

static tb_status make_transports(td_server *server, const td_config *config, tb_error *error)
{
    tb_status status = TB_OK;
    if (*config->grpc_address != '\0' || *config->grpc_socket != '\0')
        status = td_rpc_create(server, &server->rpc, error);
    if (status == TB_OK && *config->http_address != '\0')
        status = td_http_create(server, &server->http, error);
    return status;
}

tb_status td_server_create(const td_config *config, td_server **created, tb_error *error)
{
    *created = NULL;
    td_server *server = calloc(1, sizeof *server);
    if (server == NULL) return tb_fail_memory(error, sizeof *server, "the server");
    server->own = calloc(1, sizeof *server->own);
    td_json_use_budgets();
    server->clock = td_clock_make();
    server->start_time_us = td_clock_utc_us(&server->clock);
    atomic_init(&server->alive, true);
    atomic_init(&server->uploads_end_ns, INT64_MAX);
    tb_status status =
        server->own != NULL ? TB_OK : tb_fail_memory(error, sizeof *server->own, "the server");
    if (status == TB_OK) status = publish_config(server, config, error);
    if (status == TB_OK)
        status = td_log_create(config->log_level, config->log_json, &server->log, error);
    if (status == TB_OK) status = td_devices_find(server, error);
    if (status == TB_OK) status = td_metrics_create(&server->metrics, error);
    if (status == TB_OK)
        status = td_spans_create(config, server->log, server->metrics, &server->spans, error);
    if (status == TB_OK) status = open_store(server, config, error);
    if (status == TB_OK) status = join_fleet(server, config, error);
    if (status == TB_OK) status = td_auth_create(config, server->db, &server->auth, error);
    if (status == TB_OK) status = make_workers(server, config, error);
    if (status == TB_OK) status = td_uploads_create(config, &server->uploads, error);
    if (status == TB_OK) status = td_memory_create(&server->memory, error);
    if (status == TB_OK) status = td_catalog_create(server, &server->catalog, error);
    if (status == TB_OK) status = td_programs_create(&server->programs, error);
    if (status == TB_OK) status = td_arrays_create(server, &server->arrays, error);
    if (status == TB_OK) status = td_devices_start(server, error);
    if (status == TB_OK) status = td_sessions_create(server, &server->sessions, error);
    if (status == TB_OK) status = td_sessions_recover(server->sessions, error);
    if (status == TB_OK) status = td_grasp_jobs_create(server, &server->grasp_jobs, error);
    if (status == TB_OK) status = make_transports(server, config, error);
    if (status != TB_OK) {
        td_server_destroy(server);
        return status;
    }
    td_metrics_on_refresh(server->metrics, refresh_metrics, server);
    td_metrics_on_print(server->metrics, td_devices_print, server);
    *created = server;
    return TB_OK;
}

/* "gpu:0 (NVIDIA H200), cpu (16 threads)" */
static void list_devices(const td_server *server, char *text, size_t size)
{
    size_t used = 0;
    for (int32_t i = 0; i < server->number_of_devices && used < size; i++) {
        const td_device *d = &server->devices[i];
        used += (size_t)snprintf(text + used, size - used, "%s%s (%s)", i > 0 ? ", " : "", d->name,
                                 d->description);
    }
}

tb_status td_server_start(td_server *server, tb_error *error)
{
    const int64_t start = td_monotonic_ns();
    tb_status status = TB_OK;
    if (server->http != NULL) status = td_http_start(server->http, error);
    if (status == TB_OK && server->rpc != NULL) status = td_rpc_start(server->rpc, error);
    if (status == TB_OK) status = td_server_warm_up(server, server->config->warm_up_seconds, error);
    if (status != TB_OK) return status;
    atomic_store(&server->ready, true);
    td_grasp_jobs_resume(server);
    server->own->told_ready = true;
    if (server->rpc != NULL) td_rpc_set_serving(server->rpc, true);
    char devices[512];
    list_devices(server, devices, sizeof devices);
    td_log_write(server->log, TB_LOG_INFO, "server.ready",
                 "grpc=%s http=%s data=%s devices=%s gpu_worlds=%lld sessions=%d "
                 "warm_up_seconds=%.3f",
                 td_server_grpc_address(server), td_server_http_address(server),
                 server->config->data, devices, (long long)td_device_card_worlds(server),
                 (int)td_sessions_count(server->sessions),
                 1e-9 * (double)(td_monotonic_ns() - start));
    return TB_OK;
}

void td_server_look_after(td_server *server)
{
    tb_error why = {0};
    td_auth_follow_store(server->auth, server->config);
    const bool ready = td_server_is_ready(server, &why);
    if (ready == server->own->told_ready || atomic_load(&server->draining)) return;
    server->own->told_ready = ready;
    if (server->rpc != NULL) td_rpc_set_serving(server->rpc, ready);
    td_log_write(server->log, ready ? TB_LOG_INFO : TB_LOG_ERROR, "server.readiness",
                 "ready=%s reason=%s", ready ? "yes" : "no", ready ? "" : why.message);
}

const char *td_server_grpc_address(const td_server *server)
{
    return server->rpc != NULL ? td_rpc_address(server->rpc) : "-";
}

const char *td_server_http_address(const td_server *server)
{
    return server->http != NULL ? td_http_address(server->http) : "-";
}

/* ---- draining
 * --------------------------------------------------------------------------------- */

typedef struct shutdown {
    td_server *server;
    double seconds;
} shutdown;

static void *shut_rpc_down(void *context)
{
    const shutdown *s = context;
    if (s->server->rpc != NULL) td_rpc_shutdown(s->server->rpc, s->seconds);
    return NULL;
}

static void *shut_http_down(void *context)
{
    const shutdown *s = context;
    if (s->server->http != NULL) td_http_shutdown(s->server->http, s->seconds);
    return NULL;
}

static double seconds_until(int64_t deadline_ns)
{
    const double left = 1e-9 * (double)(deadline_ns - td_monotonic_ns());
    return left > 0 ? left : 0;
}

static bool checkpoint(td_server *server, int64_t deadline_ns)
{
    tb_error error;
    const tb_status status =
        td_sessions_checkpoint_all(server->sessions, seconds_until(deadline_ns), &error);
    if (status != TB_OK)
        td_log_write(server->log, TB_LOG_ERROR, "drain.checkpoint", "status=%s message=%s",
                     tb_status_name(status), error.message);
    return status == TB_OK;
}

/* Keeps idle HTTP connections open for a while: a request may be in transit on one, and an answer
 * can ask the client to come back later, which a closed connection cannot. */
static void linger(const td_server *server, int64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const int64_t longest = td_monotonic_ns() + LINGER_NS;
    const int64_t end = longest < deadline_ns ? longest : deadline_ns;
    while (td_metrics_get(server->metrics, TD_METRIC_CONNECTIONS_HTTP) > 0 &&
           td_monotonic_ns() < end)
        nanosleep(&pause, NULL);
}

bool td_server_drain(td_server *server)
{
    const double allowed = server->config->drain_seconds;
    const int64_t start = td_monotonic_ns(), deadline = start + (int64_t)(allowed * 1e9);
    td_log_write(server->log, TB_LOG_INFO, "server.draining", "seconds=%g queued=%d sessions=%d",
                 allowed, (int)td_devices_queued(server), (int)td_sessions_count(server->sessions));
    atomic_store(&server->draining, true);
    atomic_store(&server->ready, false);
    atomic_store(&server->uploads_end_ns, start + (deadline - start) / 4);
    if (server->rpc != NULL) td_rpc_set_serving(server->rpc, false);

    /* the last tenth is for cancelling calls that do not end by themselves, and for their checkpoints */
    shutdown down = {server, 0.9 * allowed};
    pthread_t rpc, http;
    const bool rpc_started = pthread_create(&rpc, NULL, shut_rpc_down, &down) == 0;
    const bool http_started = pthread_create(&http, NULL, shut_http_down, &down) == 0;

    /* streams get the order to end, or jobs would go on coming; sessions that they step until then
     * are checkpointed once more below */
    checkpoint(server, deadline);
    bool complete = td_devices_drain(server, 0.8 * seconds_until(deadline));
    if (rpc_started)
        pthread_join(rpc, NULL);
    else
        shut_rpc_down(&down);
    if (http_started)
        pthread_join(http, NULL);
    else
        shut_http_down(&down);

    complete = td_devices_drain(server, seconds_until(deadline)) && complete;
    const bool saved = checkpoint(server, deadline);
    atomic_store(&server->unsaved, !saved);
    complete = saved && complete;
    linger(server, deadline);
    td_log_write(server->log, complete ? TB_LOG_INFO : TB_LOG_WARNING, "server.drained",
                 "seconds=%.3f complete=%s", 1e-9 * (double)(td_monotonic_ns() - start),
                 complete ? "yes" : "no");
    return complete;
}

void td_server_destroy(td_server *server)
{
    if (server == NULL) return;
    atomic_store(&server->draining,
                 true); /* grasp jobs pause; the next process goes on with them */
    if (server->http != NULL) td_http_destroy(server->http);
    if (server->rpc != NULL) td_rpc_destroy(server->rpc);
    /* jobs and work still point at sessions and scenes: they end first */
    td_devices_drain(server, 1e9);
    atomic_store(&server->uploads_end_ns, 0);
    td_pool_stop(server->uploads); /* workers post to it, and it to them */
    if (server->workers != NULL) td_workers_destroy(server->workers);
    td_pool_destroy(server->uploads);
    if (server->sessions != NULL) td_sessions_destroy(server->sessions);
    td_devices_end(server);
    td_grasp_jobs_destroy(server->grasp_jobs);
    td_arrays_destroy(server->arrays);
    td_programs_destroy(server->programs);
    if (server->catalog != NULL) td_catalog_destroy(server->catalog);
    if (server->auth != NULL) td_auth_destroy(server->auth);
    td_spans_destroy(server->spans);
    db_fleet_destroy(server->fleet);
    if (server->db != NULL) db_close(server->db);
    td_memory_destroy(server->memory);
    if (server->metrics != NULL) td_metrics_destroy(server->metrics);
    if (server->log != NULL) td_log_destroy(server->log);
    while (server->own != NULL && server->own->configs != NULL) {
        kept_config *older = server->own->configs->older;
        free(server->own->configs);
        server->own->configs = older;
    }
    free(server->own);
    free(server);
}
