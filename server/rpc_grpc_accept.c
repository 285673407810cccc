/* A call arrives: which method, who calls, until when. */
#include "rpc_grpc_internal.h"

#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const td_method *find_in(const td_method *methods, const char *path)
{
    if (*path == '/') path++;
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return NULL;
    const size_t length = (size_t)(slash - path);
    for (const td_method *m = methods; m->name != NULL; m++)
        if (strcmp(slash + 1, m->name) == 0 && strlen(m->service) == length &&
            memcmp(path, m->service, length) == 0)
            return m;
    return NULL;
}

const td_method *rpc_method_find(const char *path)
{
    const td_method *method = td_method_find(path);
    if (method == NULL) method = find_in(rpc_health_methods, path);
    if (method == NULL) method = find_in(rpc_reflection_methods, path);
    return method;
}

enum { PATH_SIZE = 256 };

/* s; by then a server that goes down is gone, and another may stand in its place */
#define REFUSED_RETRY_S 1.0

/* The method's path, cut where it is too long for any that is served. */
static void take_path(const rpc_call *call, char path[PATH_SIZE])
{
    const grpc_slice name = call->details.method;
    const size_t length = GRPC_SLICE_LENGTH(name);
    const size_t kept = length < PATH_SIZE ? length : PATH_SIZE - 1;
    memcpy(path, GRPC_SLICE_START_PTR(name), kept);
    path[kept] = '\0';
}

/* The peer as the core writes it: "ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711", "unix:/path". */
static bool is_loopback(const char *peer)
{
    static const char *const PREFIXES[] = {
        "ipv4:127.", "ipv6:%5B::1%5D:", "ipv6:[::1]:", "unix:", "unix-abstract:"};
    for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0]; i++)
        if (strncmp(peer, PREFIXES[i], strlen(PREFIXES[i])) == 0) return true;
    return false;
}

static bool take_peer(rpc_call *call)
{
    char *peer = grpc_call_get_peer(call->grpc);
    const bool loopback = is_loopback(peer);
    const size_t length = strlen(peer), size = sizeof call->base.peer;
    memcpy(call->base.peer, peer, length < size ? length : size - 1);
    gpr_free(peer);
    return loopback;
}

static void take_deadline(rpc_call *call)
{
    const gpr_timespec deadline = call->details.deadline;
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return;
    const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    const int64_t longest_s = INT64_MAX / 4 / 1000000000;
    if (left.tv_sec > longest_s) return;
    call->base.deadline_ns = call->base.arrival_ns + left.tv_sec * 1000000000 + left.tv_nsec;
}

/* The authorization header, malloc'ed; NULL if there is none. */
static char *take_authorization(const rpc_call *call)
{
    static const char KEY[] = "authorization";
    for (size_t i = 0; i < call->metadata.count; i++) {
        const grpc_metadata *entry = &call->metadata.metadata[i];
        const size_t length = GRPC_SLICE_LENGTH(entry->value);
        if (grpc_slice_str_cmp(entry->key, KEY) != 0) continue;
        char *text = malloc(length + 1);
        if (text == NULL) return NULL;
        memcpy(text, GRPC_SLICE_START_PTR(entry->value), length);
        text[length] = '\0';
        return text;
    }
    return NULL;
}

/* What admission needs, carried to a worker where it may be slow. */
typedef struct admission {
    rpc_call *call;
    char *authorization;
    bool loopback;
} admission;

static void admission_free(admission *a)
{
    if (a == NULL) return;
    if (a->authorization != NULL) {
        explicit_bzero(a->authorization, strlen(a->authorization));
        free(a->authorization);
    }
    free(a);
}

/* Decides, and receives the first message or ends the call. */
static void admit(void *context)
{
    admission *a = context;
    rpc_call *call = a->call;
    td_call *base = &call->base;
    double retry_after = 0;
    tb_error error = {0};
    const tb_status status = td_auth_admit(base->server->auth, base, a->authorization, a->loopback,
                                           &retry_after, &error);
    if (status == TB_OK)
        td_call_read(base);
    else
        td_call_finish(base, status, &error, retry_after);
    admission_free(a);
    rpc_call_begun(call);
}

/* Has the caller admitted: here, or by a worker if that takes long. */
static void begin_admission(rpc_call *call, bool loopback)
{
    td_call *base = &call->base;
    tb_error error = {0};
    admission *a = calloc(1, sizeof *a);
    if (a != NULL) {
        *a = (admission){call, take_authorization(call), loopback};
        if (td_auth_quick(base->server->auth, a->authorization)) {
            admit(a);
            return;
        }
        if (td_workers_post(base->server->workers, admit, a, &error) == TB_OK) return;
        admission_free(a);
    } else {
        tb_fail_memory(&error, sizeof *a, "a call");
    }
    td_call_fail(base, &error);
    rpc_call_begun(call);
}

static void begin(rpc_call *call)
{
    td_call *base = &call->base;
    tb_error error = {0};
    char path[PATH_SIZE];
    base->arrival_ns = td_monotonic_ns();
    take_path(call, path);
    base->method = rpc_method_find(path);
    take_deadline(call);
    const bool loopback = take_peer(call);
    /* health is for probes, which have no keys, also while the server goes down */
    const ProtobufCMessageDescriptor *input = base->method != NULL ? base->method->input : NULL;
    const bool health = input == rpc_health_methods[0].input;
    const bool reflection = input == rpc_reflection_methods[0].input;

    if (!rpc_call_begin(call, !health && !reflection)) {
        tb_fail(&error, TB_UNAVAILABLE, "the server is shutting down");
        td_call_finish(base, error.status, &error, REFUSED_RETRY_S);
    } else if (base->method == NULL) {
        tb_fail(&error, TB_UNSUPPORTED, "there is no method %s", path);
        td_call_fail(base, &error);
    } else if (health) {
        td_call_read(base);
    } else {
        begin_admission(call, loopback);
        return;
    }
    rpc_call_begun(call);
}

static void on_accepted(rpc_call *call, bool success)
{
    if (!success) {
        rpc_call_drop(call);
        return;
    }
    rpc_accept(call->rpc);
    rpc_poll_relieve(call->rpc);
    begin(call);
}

void rpc_accept(td_rpc *rpc)
{
    rpc_call *call = rpc_call_make(rpc);
    if (call == NULL) return;
    call->accepted = (rpc_tag){on_accepted, call};
    /* when shutting down the core refuses at once, through the queue */
    if (grpc_server_request_call(rpc->grpc, &call->grpc, &call->details, &call->metadata,
                                 rpc->queue, rpc->queue, &call->accepted) != GRPC_CALL_OK)
        rpc_call_drop(call);
}
