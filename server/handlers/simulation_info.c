/* GetServerInfo: version, devices and limits of this server. It is open to every caller, so the
 * response names only the calling key. GetLog: the log's tail, for administrators, because it names
 * callers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/build.h"
#include "handlers/handlers.h"
#include "schedule/scheduler.h"
#include "session/session.h"
#include "tribo/v1/simulation.pb-c.h"

enum { SOLVERS_MAXIMUM = 64 };

static void fill_limits(const td_config *config, Tribo__V1__Limits *limits)
{
    limits->message_bytes = config->message_bytes;
    limits->asset_bytes = config->asset_bytes;
    limits->sessions = config->sessions;
    limits->sessions_per_client = config->sessions_per_client;
    limits->worlds_per_session = config->worlds_per_session;
    limits->queue_length = config->queue_length;
    limits->session_ttl_seconds = config->session_maximum_ttl_seconds;
}

/* protobuf-c's strings are not const, though packing only reads them. */
static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant;
}

void td_simulation_get_server_info(td_call *call, td_request *request)
{
    td_server *server = call->server;
    const td_config *config = server->config;
    Tribo__V1__GetServerInfoResponse response = TRIBO__V1__GET_SERVER_INFO_RESPONSE__INIT;
    Tribo__V1__DeviceInfo devices[TD_DEVICES], *device_list[TD_DEVICES];
    Tribo__V1__Limits limits = TRIBO__V1__LIMITS__INIT;
    Tribo__V1__SolverInfo solvers[SOLVERS_MAXIMUM], *solver_list[SOLVERS_MAXIMUM];
    static const char *const SCOPES[] = {"none", "read", "run", "admin"}; /* of td_scope */
    td_request_free(request);

    const bool informed = (int32_t)call->caller.scope >= config->server_info;
    if (informed || call->caller.scope != TD_SCOPE_NONE) {
        response.caller_scope = text(SCOPES[call->caller.scope]);
        response.caller_name = call->caller.name;
        response.fleet = server->fleet != NULL;
    }
    if (!informed) {
        td_call_reply(call, &response.base);
        return;
    }
    for (int32_t i = 0; i < server->number_of_devices; i++) {
        td_device *d = &server->devices[i];
        tribo__v1__device_info__init(&devices[i]);
        devices[i].name = d->name;
        devices[i].description = d->description;
        devices[i].memory_bytes = d->memory_bytes;
        devices[i].queued = td_scheduler_queued(d->scheduler);
        device_list[i] = &devices[i];
    }
    for (int32_t i = 0; i < SOLVERS_MAXIMUM && tb_solver_name(i) != NULL; i++) {
        tribo__v1__solver_info__init(&solvers[i]);
        solvers[i].name = text(tb_solver_name(i));
        solvers[i].summary = text(tb_solver_summary(i));
        solver_list[i] = &solvers[i];
        response.n_solvers = (size_t)i + 1;
    }
    fill_limits(config, &limits);
    response.version = text(TB_VERSION);
    response.build = text(td_build());
    response.n_devices = (size_t)server->number_of_devices;
    response.devices = device_list;
    response.solvers = solver_list;
    response.limits = &limits;
    response.start_time_us = server->start_time_us;
    response.time_us = td_clock_utc_us(&server->clock);
    response.draining = atomic_load(&server->draining);
    response.sessions = td_sessions_count(server->sessions);
    td_call_reply(call, &response.base);
}

void td_simulation_get_log(td_call *call, td_request *request)
{
    enum { USUAL_LINES = 100, MOST_LINES = 1000 };
    const int32_t asked = ((const Tribo__V1__GetLogRequest *)request->message)->lines;
    Tribo__V1__GetLogResponse response = TRIBO__V1__GET_LOG_RESPONSE__INIT;
    tb_error error;
    td_request_free(request);
    if (asked < 0 || asked > MOST_LINES) {
        tb_fail_field(&error, TB_INVALID_ARGUMENT, "lines",
                      "lines is %d, expected 1 to %d, or 0 for %d", (int)asked, (int)MOST_LINES,
                      (int)USUAL_LINES);
        td_call_fail(call, &error);
        return;
    }
    char *lines[MOST_LINES], *tail = malloc(TD_LOG_TAIL_SIZE + 1);
    if (tail == NULL) {
        tb_fail_memory(&error, TD_LOG_TAIL_SIZE, "the log's tail");
        td_call_fail(call, &error);
        return;
    }
    td_log_tail(call->server->log, asked == 0 ? USUAL_LINES : asked, tail, TD_LOG_TAIL_SIZE + 1);
    char *rest = NULL;
    for (char *l = strtok_r(tail, "\n", &rest); l != NULL && response.n_lines < MOST_LINES;
         l = strtok_r(NULL, "\n", &rest))
        lines[response.n_lines++] = l;
    response.lines = lines;
    td_call_reply(call, &response.base);
    free(tail);
}
