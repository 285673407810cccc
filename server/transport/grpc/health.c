/* grpc.health.v1: readiness of the server or of one service. A watcher receives every change; a
 * slow reader receives only the last. */
#include "handlers/handlers.h"
#include "transport/grpc/grpc_internal.h"

#include <string.h>

#include "base/error.h"
#include "grpc/health/v1/health.pb-c.h"

typedef Grpc__Health__V1__HealthCheckRequest check_request;
typedef Grpc__Health__V1__HealthCheckResponse check_response;

enum {
    UNKNOWN_SERVICE = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN,
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
};

static const char *find_in(const td_method *methods, const char *name)
{
    for (const td_method *m = methods; m->name != NULL; m++)
        if (strcmp(m->service, name) == 0) return m->service;
    return NULL;
}

/* The service's name as the tables hold it; "" is the whole server; NULL if there is none. */
static const char *find_service(const char *name)
{
    if (*name == '\0') return "";
    const char *found = find_in(td_methods(), name);
    if (found == NULL) found = find_in(rpc_health_methods, name);
    if (found == NULL) found = find_in(rpc_reflection_methods, name);
    return found;
}

static void send_status(td_call *call, int status)
{
    check_response response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    td_call_send(call, &response.base);
}

static void check(td_call *call, td_request *request)
{
    const char *name = ((check_request *)request->message)->service;
    td_rpc *rpc = ((rpc_call *)call)->rpc;
    if (find_service(name) != NULL) {
        pthread_mutex_lock(&rpc->lock);
        const bool serving = rpc->serving;
        pthread_mutex_unlock(&rpc->lock);
        send_status(call, serving ? SERVING : NOT_SERVING);
        td_call_finish(call, TB_OK, NULL, 0);
    } else {
        tb_error error = {0};
        tb_fail_field(&error, TB_NOT_FOUND, "service", "there is no service '%s'", name);
        td_call_fail(call, &error);
    }
    td_request_free(request);
}

/* ---- watching; everything below holds the rpc's lock, but for the methods themselves ---- */

/* Sends a watcher the state if it changed since the last message. */
static void tell_now(rpc_call *call)
{
    const int serving = call->rpc->serving ? SERVING : NOT_SERVING;
    const int status = call->watched == NULL ? UNKNOWN_SERVICE : serving;
    if (call->watch_sent == status) return;
    call->watch_sent = status;
    send_status(&call->base, status);
}

/* The same unless it is still busy with an older status. */
static void tell_watcher(rpc_call *call)
{
    if (call->watching && td_call_queued(&call->base) == 0) tell_now(call);
}

static void link_watcher(rpc_call *call)
{
    td_rpc *rpc = call->rpc;
    td_call_hold(&call->base);
    call->watching = true;
    call->watch_next = rpc->watchers;
    if (rpc->watchers != NULL) rpc->watchers->watch_previous = call;
    rpc->watchers = call;
}

/* True if it was linked; the caller then releases it. */
static bool unlink_watcher(rpc_call *call)
{
    if (!call->watching) return false;
    call->watching = false;
    if (call->watch_previous != NULL)
        call->watch_previous->watch_next = call->watch_next;
    else
        call->rpc->watchers = call->watch_next;
    if (call->watch_next != NULL) call->watch_next->watch_previous = call->watch_previous;
    return true;
}

static void stop_watching(td_call *base)
{
    rpc_call *call = (rpc_call *)base;
    pthread_mutex_lock(&call->rpc->lock);
    const bool linked = unlink_watcher(call);
    pthread_mutex_unlock(&call->rpc->lock);
    if (!linked) return;
    td_call_finish(base, TB_CANCELLED, NULL, 0);
    td_call_release(base);
}

static void watch(td_call *base, td_request *request)
{
    rpc_call *call = (rpc_call *)base;
    td_rpc *rpc = call->rpc;
    call->watched = find_service(((check_request *)request->message)->service);
    td_request_free(request);

    pthread_mutex_lock(&rpc->lock);
    const bool late = rpc->shutting_down;
    if (!late) {
        link_watcher(call);
        tell_watcher(call);
    }
    pthread_mutex_unlock(&rpc->lock);
    if (late) td_call_finish(base, TB_UNAVAILABLE, NULL, 0);
    /* cancelled before it was linked */
    else if (atomic_load(&base->gone))
        stop_watching(base);
}

static void watch_writable(td_call *base)
{
    rpc_call *call = (rpc_call *)base;
    pthread_mutex_lock(&call->rpc->lock);
    tell_watcher(call);
    pthread_mutex_unlock(&call->rpc->lock);
}

void rpc_health_change(td_rpc *rpc, bool serving)
{
    pthread_mutex_lock(&rpc->lock);
    rpc->serving = serving;
    for (rpc_call *call = rpc->watchers; call != NULL; call = call->watch_next) tell_watcher(call);
    pthread_mutex_unlock(&rpc->lock);
}

void rpc_health_end(td_rpc *rpc)
{
    for (;;) {
        pthread_mutex_lock(&rpc->lock);
        rpc_call *call = rpc->watchers;
        if (call != NULL) {
            unlink_watcher(call);
            tell_now(call);
        }
        pthread_mutex_unlock(&rpc->lock);
        if (call == NULL) return;
        td_call_finish(&call->base, TB_UNAVAILABLE, NULL, 0);
        td_call_release(&call->base);
    }
}

#define SERVICE "grpc.health.v1.Health"

const td_method rpc_health_methods[] = {
    {.service = SERVICE,
     .name = "Check",
     .input = &grpc__health__v1__health_check_request__descriptor,
     .output = &grpc__health__v1__health_check_response__descriptor,
     .message = check},
    {.service = SERVICE,
     .name = "Watch",
     .server_streaming = true,
     .input = &grpc__health__v1__health_check_request__descriptor,
     .output = &grpc__health__v1__health_check_response__descriptor,
     .message = watch,
     .writable = watch_writable,
     .cancelled = stop_watching},
    {.name = NULL}};
