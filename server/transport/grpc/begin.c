/* Starts a call: finds its method, its caller and its deadline. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "handlers/handlers.h"
#include "base/error.h"
#include "call/edge.h"
#include "transport/grpc/grpc_internal.h"
#include "wire/envelope.h"

/* s; a stopping server is gone by then, and a replacement may listen on its address */
#define REFUSED_RETRY_S 1.0

/* Overhead counted for each header (RFC 9113 6.5.2). */
enum { HEADER_OVERHEAD_BYTES = 32 };

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

/* ---- headers ---- */

static bool is_named(const uint8_t *name, size_t size, const char *wanted)
{
    return strlen(wanted) == size && memcmp(name, wanted, size) == 0;
}

/* Copies a value; one that is too long for the place is cut, and equals nothing that is known. */
static void take(char *to, size_t room, const uint8_t *value, size_t size)
{
    const size_t kept = size < room ? size : room - 1;
    memcpy(to, value, kept);
    to[kept] = '\0';
}

/* "application/grpc", "application/grpc+proto", both with parameters; not gRPC-Web. */
static bool is_grpc_type(const uint8_t *value, size_t size)
{
    static const char TYPE[] = "application/grpc";
    const size_t length = sizeof TYPE - 1;
    if (size < length || strncasecmp((const char *)value, TYPE, length) != 0) return false;
    if (size == length || value[length] == ';') return true;
    static const char PROTO[] = "+proto";
    return size >= length + sizeof PROTO - 1 &&
           strncasecmp((const char *)value + length, PROTO, sizeof PROTO - 1) == 0 &&
           (size == length + sizeof PROTO - 1 || value[length + sizeof PROTO - 1] == ';');
}

/* Whether a comma-separated list names gzip. */
static bool lists_gzip(const uint8_t *value, size_t size)
{
    for (size_t at = 0; at < size;) {
        while (at < size && (value[at] == ',' || value[at] == ' ')) at++;
        size_t end = at;
        while (end < size && value[end] != ',' && value[end] != ' ' && value[end] != ';') end++;
        if (end - at == 4 && strncasecmp((const char *)value + at, "gzip", 4) == 0) return true;
        while (end < size && value[end] != ',') end++;
        at = end;
    }
    return false;
}

static void take_authorization(rpc_head *head, const uint8_t *value, size_t size)
{
    if (head->authorization != NULL) return;
    head->authorization = malloc(size + 1);
    if (head->authorization == NULL) {
        head->no_memory = true;
        return;
    }
    memcpy(head->authorization, value, size);
    head->authorization[size] = '\0';
}

void rpc_begin_header(rpc_call *call, const uint8_t *name, size_t name_size, const uint8_t *value,
                      size_t size)
{
    rpc_head *head = &call->head;
    char authority[TD_CONFIG_TEXT_SIZE];
    head->bytes += name_size + size + HEADER_OVERHEAD_BYTES;
    if (head->bytes > call->rpc->limits.header_bytes) {
        head->too_large = true;
        return;
    }
    if (is_named(name, name_size, ":path")) {
        take(head->path, sizeof head->path, value, size);
    } else if (is_named(name, name_size, ":method")) {
        take(head->method, sizeof head->method, value, size);
    } else if (is_named(name, name_size, ":authority") || is_named(name, name_size, "host")) {
        take(authority, sizeof authority, value, size);
        head->foreign = head->foreign ||
                        !td_edge_is_loopback(call->rpc->server->config, true, false, authority);
    } else if (is_named(name, name_size, "content-type")) {
        head->grpc = is_grpc_type(value, size);
    } else if (is_named(name, name_size, "grpc-timeout")) {
        take(head->timeout, sizeof head->timeout, value, size);
        head->has_timeout = true;
    } else if (is_named(name, name_size, "grpc-encoding")) {
        take(head->encoding, sizeof head->encoding, value, size);
    } else if (is_named(name, name_size, "grpc-accept-encoding")) {
        head->takes_gzip = head->takes_gzip || lists_gzip(value, size);
    } else if (is_named(name, name_size, "authorization")) {
        take_authorization(head, value, size);
    } else if (is_named(name, name_size, "traceparent")) {
        td_trace_read(&call->base.trace, (const char *)value, size);
    } else if (is_named(name, name_size, "tracestate")) {
        td_trace_read_state(&call->base.trace, (const char *)value, size);
    } else if ((call->rpc->forwarding_lengths >> (name_size < 63 ? name_size : 63) & 1) != 0 &&
               td_edge_forwards(call->rpc->server->config, (const char *)name, name_size)) {
        head->forwarded = true;
    }
}

/* ---- admission ---- */

/* Admits the caller, and asks for the first message or ends the call. */
static void admit(rpc_call *call)
{
    td_call *base = &call->base;
    const rpc_head *head = &call->head;
    double retry_after = 0;
    tb_error error = {0};
    const tb_status status = td_auth_admit(base->server->auth, base, head->authorization,
                                           base->caller.loopback, &retry_after, &error);
    if (status == TB_OK) {
        atomic_store(&call->standing, (int)td_auth_standing(&base->caller));
        td_call_read(base);
    } else {
        td_call_finish(base, status, &error, retry_after);
    }
}

static void admit_on_worker(void *context)
{
    rpc_call *call = context;
    admit(call);
    td_call_release(&call->base);
}

/* Admits here, or by a worker if that takes long. */
static void begin_admission(rpc_call *call)
{
    td_call *base = &call->base;
    tb_error error = {0};
    if (td_auth_quick(base->server->auth, call->head.authorization)) {
        admit(call);
        return;
    }
    td_call_hold(base);
    if (td_workers_post(base->server->workers, admit_on_worker, call, &error) == TB_OK) return;
    td_call_fail(base, &error);
    td_call_release(base);
}

/* Checks the headers and stores their values; TB_OK if they are valid. */
static tb_status check(rpc_call *call, tb_error *error)
{
    const rpc_head *head = &call->head;
    int64_t wait = 0;
    if (head->too_large)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                       "the headers have more than the %zu bytes that are allowed",
                       call->rpc->limits.header_bytes);
    if (head->no_memory) return tb_fail_memory(error, head->bytes, "a call's headers");
    if (head->has_timeout) {
        if (!http_timeout_grpc(head->timeout, &wait))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "grpc-timeout",
                                 "grpc-timeout: \"%s\" is no timeout", head->timeout);
        call->base.deadline_ns = call->base.arrival_ns + wait;
    }
    if (strcasecmp(head->encoding, "gzip") == 0)
        call->gzip_in = true;
    else if (head->encoding[0] != '\0' && strcasecmp(head->encoding, "identity") != 0)
        return tb_fail_field(error, TB_UNSUPPORTED, "grpc-encoding",
                             "grpc-encoding: \"%s\" is not known; there are gzip and identity",
                             head->encoding);
    /* a client that compresses pays for bytes on its line */
    call->gzip_out = call->gzip_in && head->takes_gzip;
    return TB_OK;
}

void rpc_begin(rpc_call *call)
{
    td_call *base = &call->base;
    const rpc_head *head = &call->head;
    tb_error error = {0};
    if (!head->too_large && strcmp(head->method, "POST") != 0) {
        call->http_status = "405";
        return;
    }
    if (!head->too_large && !head->grpc) {
        call->http_status = "415";
        return;
    }
    base->method = rpc_method_find(head->path);
    const rpc_connection *c = call->connection;
    base->caller.loopback = c->loopback && !head->forwarded && (c->local || !head->foreign) &&
                            !c->rpc->server->config->behind_proxy;
    tb_status status = check(call, &error);
    /* health is for probes, which have no keys, also while the server goes down */
    const ProtobufCMessageDescriptor *input = base->method != NULL ? base->method->input : NULL;
    const bool health = input == rpc_health_methods[0].input;
    const bool reflection = input == rpc_reflection_methods[0].input;

    const bool open = rpc_call_begin(call, !health && !reflection);
    if (status == TB_OK && !rpc_deadline_add(call))
        status = tb_fail_memory(&error, 0, "a deadline");
    if (status != TB_OK) {
        td_call_fail(base, &error);
    } else if (!open) {
        tb_fail(&error, TB_UNAVAILABLE, "the server is shutting down");
        td_call_finish(base, error.status, &error, REFUSED_RETRY_S);
    } else if (base->method == NULL) {
        tb_fail(&error, TB_UNSUPPORTED, "there is no method %s", head->path);
        td_call_fail(base, &error);
    } else if (health) {
        td_call_read(base);
    } else {
        begin_admission(call);
    }
}
