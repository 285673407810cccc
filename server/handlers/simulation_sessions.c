/* Handlers of sessions as such: CreateSession, ListSessions, Heartbeat, DeleteSession. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "call/memory.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "session/session_internal.h"
#include "session/uploads.h"

#include "tribo_soft.h"

#include "tribo/v1/runs.pb-c.h"

/* ---- CreateSession ---- */

static tb_status check_range(int32_t value, int32_t lower, int32_t upper, const char *field,
                             tb_error *error)
{
    if (value >= lower && value <= upper) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is %d, expected %d to %d", field,
                         value, lower, upper);
}

static tb_status read_ttl(const td_config *config, double asked, double *ttl, tb_error *error)
{
    *ttl = asked == 0 ? config->session_ttl_seconds : asked;
    if (*ttl > 0 && *ttl <= config->session_maximum_ttl_seconds) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "ttl_seconds",
                         "ttl_seconds is %g s, expected more than 0 and at most %g", asked,
                         config->session_maximum_ttl_seconds);
}

/* Reads the members that need no scene. */
static tb_status read_request(td_session *s, const td_config *config,
                              const Tribo__V1__CreateSessionRequest *m, tb_error *error)
{
    s->worlds = m->worlds == 0 ? 1 : m->worlds;
    s->keyframe = m->use_keyframe ? m->keyframe : -1;
    s->on_disconnect = m->on_disconnect == 0 ? (int32_t)TRIBO__V1__ON_DISCONNECT__ON_DISCONNECT_KEEP
                                             : (int32_t)m->on_disconnect;
    if (m->use_keyframe && m->keyframe < 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "keyframe",
                             "keyframe is %d, expected 0 or more", (int)m->keyframe);
    tb_status status = check_range(s->worlds, 1, config->worlds_per_session, "worlds", error);
    if (status == TB_OK)
        status = check_range(s->on_disconnect, 1, TRIBO__V1__ON_DISCONNECT__ON_DISCONNECT_DELETE,
                             "on_disconnect", error);
    if (status == TB_OK) status = read_ttl(config, m->ttl_seconds, &s->ttl_seconds, error);
    if (status == TB_OK)
        status = td_wire_read_step_options(m->options, "options", &s->options, error);
    if (status == TB_OK && strlen(m->label) > TD_LABEL_BYTES)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "label",
                               "the label has %zu bytes, at most %d are taken", strlen(m->label),
                               TD_LABEL_BYTES);
    if (status != TB_OK) return status;
    snprintf(s->label, sizeof s->label, "%s", m->label);
    snprintf(s->scene_id, sizeof s->scene_id, "%s", m->scene_id);
    Tribo__V1__StepOptions none = TRIBO__V1__STEP_OPTIONS__INIT;
    const Tribo__V1__StepOptions *options = m->options != NULL ? m->options : &none;
    const size_t size = tribo__v1__step_options__get_packed_size(options);
    if (size > sizeof s->packed_options) /* unknown fields may come along */
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "options",
                             "options take %zu bytes, at most %zu are kept", size,
                             sizeof s->packed_options);
    s->packed_options_size = (uint32_t)tribo__v1__step_options__pack(options, s->packed_options);
    return TB_OK;
}

static tb_status make_worlds(td_call *call, td_session *s, const char *device_name, tb_error *error)
{
    tb_status status = td_upload_scene(call, s->scene_id, &s->scene, error);
    if (status != TB_OK) return status;
    snprintf(s->scene_id, sizeof s->scene_id, "%s",
             s->scene->id); /* a prefix may have been given */
    const int32_t keyframes = tb_model_count(s->scene->model).keyframes;
    if (s->keyframe >= keyframes)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "keyframe",
                             "keyframe is %d, the scene has %d", s->keyframe, keyframes);
    td_device *device = NULL;
    const td_device_wish wish = {.name = device_name,
                                 .worlds = s->worlds,
                                 .bodies = tb_model_count(s->scene->model).bodies,
                                 .bytes = td_memory_on_card(s->scene->model, s->worlds),
                                 .meshes = tb_model_has_meshes(s->scene->model),
                                 .soft_nodes = tb_soft_model_nodes(s->scene->model),
                                 .pace = td_session_pace(s),
                                 .options = &s->options};
    status = td_device_choose(s->all->server, &wish, &device, error);
    if (status != TB_OK) return status;
    td_session_set_device(s, device);
    s->certificates = calloc((size_t)s->worlds, sizeof *s->certificates);
    if (s->certificates == NULL)
        return tb_fail_memory(error, (size_t)s->worlds * sizeof *s->certificates, "certificates");
    status = td_session_make_worlds(s, &s->states, error);
    atomic_store(&s->loaded, status == TB_OK);
    return status;
}

typedef struct creation {
    td_call *call;
    td_session *session;
} creation;

/* On the store's writer thread: the session is durable, or is none. */
static void on_created(void *context, tb_status status, const tb_error *error)
{
    creation *made = context;
    td_session *s = made->session;
    if (status == TB_OK) {
        Tribo__V1__CreateSessionResponse response = TRIBO__V1__CREATE_SESSION_RESPONSE__INIT;
        response.session_id = s->text;
        response.expire_time_us =
            td_clock_to_utc_us(&s->all->server->clock, atomic_load(&s->expire_time_us));
        response.device = s->device->name;
        td_call_reply(made->call, &response.base);
    } else {
        td_session_end(s, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DELETED, "it was never stored");
        td_call_finish(made->call, status, error, 0);
    }
    td_call_release(made->call);
    td_session_release(s);
    free(made);
}

/* Puts the session into the table and into the store, and answers when it is durable. */
static tb_status publish(td_call *call, td_session *s, tb_error *error)
{
    td_server *server = call->server;
    creation *made = calloc(1, sizeof *made);
    if (made == NULL) return tb_fail_memory(error, sizeof *made, "a session");
    *made = (creation){.call = call, .session = s};

    /* the run first: with the session's row it is durable too */
    tb_status status = td_session_put_run(s, TRIBO__V1__RUN_STATUS__RUN_STATUS_RUNNING, "", error);
    if (status != TB_OK) {
        free(made);
        return status;
    }
    td_session_hold(s);
    td_call_hold(call);
    td_sessions_insert(s->all, s);
    const db_session row = td_session_row(s);
    status = db_put_session(server->db, &row, on_created, made, error);
    if (status != TB_OK) on_created(made, status, error);
    return TB_OK;
}

static tb_status create(td_call *call, const Tribo__V1__CreateSessionRequest *message,
                        td_session *s, tb_error *error)
{
    td_server *server = call->server;
    td_sessions *all = server->sessions;
    snprintf(s->owner, sizeof s->owner, "%s", call->caller.name);
    s->create_time_us = td_clock_utc_us(&server->clock);
    s->run.start_time_us = s->create_time_us;
    s->run.known = true;
    tb_status status = read_request(s, server->config, message, error);
    if (status == TB_OK) status = td_sessions_reserve(all, &call->caller, 1, error);
    if (status != TB_OK) return status;
    status = make_worlds(call, s, message->device, error);
    if (status == TB_OK && message->record != NULL)
        status = td_session_start_recording(s, message->record, error);
    td_session_renew(s);
    if (status == TB_OK) status = publish(call, s, error);
    if (status != TB_OK) {
        td_sessions_unreserve(all, s->owner, 1);
        return status;
    }
    td_metrics_add(server->metrics, TD_METRIC_SESSIONS_CREATED, 1);
    td_log_write(server->log, TB_LOG_INFO, "session.created", "session=%s owner=%s worlds=%d",
                 s->text, s->owner, s->worlds);
    return TB_OK;
}

static void create_session(td_call *call, td_request *request)
{
    tb_error error = {0};
    td_session *s = td_session_new(call->server->sessions, &error);
    tb_status status = s == NULL ? TB_RESOURCE_EXHAUSTED : TB_OK;
    if (status == TB_OK)
        status = create(call, (const Tribo__V1__CreateSessionRequest *)request->message, s, &error);
    if (status != TB_OK) td_call_finish(call, status, &error, status == TB_UNAVAILABLE ? 1 : 0);
    td_session_release(s);
    td_request_free(request);
}

static void find_scene(td_call *call, td_request *request)
{
    td_upload_for_scene(call, request,
                        ((const Tribo__V1__CreateSessionRequest *)request->message)->scene_id,
                        create_session);
}

void td_simulation_create_session(td_call *call, td_request *request)
{
    td_offload(call, request, find_scene);
}

/* ---- ListSessions ---- */

typedef struct listed {
    Tribo__V1__SessionInfo info;
    td_session *session;
} listed;

static void describe(listed *l)
{
    static const int64_t IDLE_NS = INT64_C(3000000000);
    td_session *s = l->session;
    Tribo__V1__SessionInfo *info = &l->info;
    tribo__v1__session_info__init(info);
    info->session_id = s->text;
    info->scene_id = s->scene_id;
    info->owner = s->owner;
    info->label = s->label;
    info->status = atomic_load(&s->loaded) ? TRIBO__V1__SESSION_STATUS__SESSION_STATUS_ACTIVE
                                           : TRIBO__V1__SESSION_STATUS__SESSION_STATUS_PAUSED;
    info->worlds = s->worlds;
    info->steps = atomic_load(&s->steps);
    info->time = atomic_load(&s->time);
    info->create_time_us = s->create_time_us;
    info->expire_time_us =
        td_clock_to_utc_us(&s->all->server->clock, atomic_load(&s->expire_time_us));
    info->device = s->device->name;
    info->memory_bytes = (uint64_t)atomic_load(&s->listed_bytes);
    const bool idle = td_monotonic_ns() - atomic_load(&s->stepped_ns) > IDLE_NS;
    info->steps_per_second = idle ? 0 : atomic_load(&s->rate);
    info->recorded = atomic_load(&s->recorded);
    info->scheme = (Tribo__V1__Scheme)((int)s->options.scheme + 1); /* 0 is UNSPECIFIED */
    pthread_mutex_lock(&s->mutex);
    info->watchers = s->number_of_watchers;
    pthread_mutex_unlock(&s->mutex);
}

/* Page tokens are the number of the last session that was shown. */
static tb_status read_token(const char *token, uint64_t *before, tb_error *error)
{
    char *end = NULL;
    *before = UINT64_MAX;
    if (*token == '\0') return TB_OK;
    if (token[0] == 's' && token[1] >= '0' && token[1] <= '9') {
        *before = strtoull(token + 1, &end, 10);
        if (*end == '\0') return TB_OK;
    }
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "page_token",
                         "page_token '%.40s' is none of this list", token);
}

/* References up to `size` sessions that the caller may see, newest first; reports if there are
 * more. */
static int32_t collect(td_sessions *all, const td_caller *caller, uint64_t before, listed *page,
                       int32_t size, bool *more)
{
    int32_t n = 0;
    *more = false;
    pthread_mutex_lock(&all->mutex);
    for (td_session *s = all->newest; s != NULL && !*more; s = s->older) {
        const bool mine = caller->scope >= TD_SCOPE_ADMIN || strcmp(s->owner, caller->name) == 0;
        if (!mine || s->sequence >= before) continue;
        *more = n == size;
        if (*more) continue;
        td_session_hold(s);
        page[n++].session = s;
    }
    pthread_mutex_unlock(&all->mutex);
    return n;
}

void td_simulation_list_sessions(td_call *call, td_request *request)
{
    const Tribo__V1__ListSessionsRequest *message =
        (const Tribo__V1__ListSessionsRequest *)request->message;
    Tribo__V1__ListSessionsResponse response = TRIBO__V1__LIST_SESSIONS_RESPONSE__INIT;
    tb_error error = {0};
    char token[24] = "";
    uint64_t before = 0;
    int32_t size = 0;
    listed *page = NULL;
    Tribo__V1__SessionInfo **pointers = NULL;

    tb_status status = td_page_size(message->page_size, &size, &error);
    if (status == TB_OK) status = read_token(message->page_token, &before, &error);
    if (status != TB_OK) goto done;
    page = calloc((size_t)size, sizeof *page);
    pointers = calloc((size_t)size, sizeof(Tribo__V1__SessionInfo *));
    if (page == NULL || pointers == NULL) {
        status = tb_fail_memory(&error, (size_t)size * sizeof *page, "a list");
        goto done;
    }
    bool more = false;
    const int32_t n = collect(call->server->sessions, &call->caller, before, page, size, &more);
    for (int32_t i = 0; i < n; i++) {
        describe(&page[i]);
        pointers[i] = &page[i].info;
    }
    if (more)
        snprintf(token, sizeof token, "s%llu", (unsigned long long)page[n - 1].session->sequence);
    response.sessions = pointers;
    response.n_sessions = (size_t)n;
    response.next_page_token = token;
    td_call_reply(call, &response.base);
    for (int32_t i = 0; i < n; i++) td_session_release(page[i].session);
done:
    if (status != TB_OK) td_call_fail(call, &error);
    free(page);
    free(pointers);
    td_request_free(request);
}

/* ---- Heartbeat, DeleteSession ---- */

void td_simulation_heartbeat(td_call *call, td_request *request)
{
    const Tribo__V1__HeartbeatRequest *message =
        (const Tribo__V1__HeartbeatRequest *)request->message;
    Tribo__V1__HeartbeatResponse response = TRIBO__V1__HEARTBEAT_RESPONSE__INIT;
    td_session *s = NULL;
    tb_error error = {0};
    if (td_sessions_find(call->server->sessions, &call->caller, message->session_id, &s, &error) ==
        TB_OK) {
        response.expire_time_us =
            td_clock_to_utc_us(&s->all->server->clock, atomic_load(&s->expire_time_us));
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    td_session_release(s);
    td_request_free(request);
}

void td_simulation_delete_session(td_call *call, td_request *request)
{
    const Tribo__V1__DeleteSessionRequest *message =
        (const Tribo__V1__DeleteSessionRequest *)request->message;
    td_session *s = NULL;
    tb_error error = {0};
    if (td_sessions_find(call->server->sessions, &call->caller, message->session_id, &s, &error) ==
        TB_OK)
        td_session_delete(s, call);
    else
        td_call_fail(call, &error);
    td_session_release(s);
    td_request_free(request);
}
