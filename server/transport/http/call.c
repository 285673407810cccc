/* A request as a call: admitted, decoded, dispatched; its handler's messages are queued for the
 * thread that writes them. Queued messages are packed protobuf; JSON and compression happen when
 * the connection takes them, so that a device's owner thread never pays for them. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "wire/envelope.h"
#include "wire/gzip.h"
#include "transport/http/http_internal.h"
#include "wire/json.h"
#include "session/uploads.h"

/* Larger bodies are decoded by a worker. */
enum { QUICK_BODY_BYTES = 1 << 16 };
/* Limit of bytes that wait for a reader, in messages of the largest size, before the next one.
 * Handlers look at td_call_queued and stay far below. */
enum { QUEUE_LARGEST_MESSAGES = 4 };

/* ---- functions that handlers call ----------------------------------------------------------- */

bool http_call_answerable(const http_exchange *x)
{
    const bool stream = x->format.protocol != HTTP_CONNECT_UNARY;
    return !x->dispatching && (x->finished || x->dead || stream);
}

void http_call_drop_items(http_exchange *x)
{
    for (http_item *item = x->first, *next; item != NULL; item = next) {
        next = item->next;
        free(item);
        atomic_fetch_sub(&x->call.queued, 1);
    }
    x->first = x->last = NULL;
    x->waiting_bytes = 0;
}

static http_item *pack(const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    http_item *item = malloc(sizeof *item + HTTP_ENVELOPE_BYTES + size);
    if (item == NULL) return NULL;
    item->next = NULL;
    item->size = size;
    if (!http_envelope_write(item->frame, 0, size)) {
        free(item);
        return NULL;
    }
    protobuf_c_message_pack(message, item->frame + HTTP_ENVELOPE_BYTES);
    return item;
}

static void call_send(td_call *call, const ProtobufCMessage *message)
{
    http_exchange *x = (http_exchange *)call;
    http_item *item = pack(message);
    pthread_mutex_lock(&x->lock);
    const bool wanted = !x->off_wire && !x->dead && !x->finished && !atomic_load(&x->overflow);
    bool overflow = false;
    if (item != NULL && wanted) {
        overflow = x->waiting_bytes / QUEUE_LARGEST_MESSAGES > x->config->message_bytes;
        x->waiting_bytes += item->size;
        if (x->last != NULL)
            x->last->next = item;
        else
            x->first = item;
        x->last = item;
        item = NULL;
        http_call_wake(x);
    } else {
        /* an answer with a hole in it is worse than none: the guard ends the call */
        overflow = wanted;
        atomic_fetch_sub(&call->queued, 1);
    }
    if (overflow) atomic_store(&x->overflow, true);
    pthread_mutex_unlock(&x->lock);
    free(item);
    if (overflow) http_guard_wake(x->http);
}

static void call_finish(td_call *call, tb_status status, const tb_error *error, double retry_after)
{
    http_exchange *x = (http_exchange *)call;
    /* a cancelled handler reports CANCELLED; the passed deadline is the reason */
    if (status == TB_CANCELLED && call->deadline_ns <= td_monotonic_ns())
        status = TB_DEADLINE_EXCEEDED;
    pthread_mutex_lock(&x->lock);
    if (!x->finished) {
        x->finished = true;
        x->status = status;
        if (error != NULL) x->error = *error;
        x->retry_after = retry_after;
        http_call_wake(x);
    }
    pthread_mutex_unlock(&x->lock);
}

static void call_read(td_call *call)
{
    (void)call; /* no request streams over HTTP: http_request.c refuses them */
}

static void call_destroy(td_call *call)
{
    http_exchange *x = (http_exchange *)call;
    http_call_drop_items(x);
    free(x->current);
    tb_bytes_free(&x->encoded);
    tb_bytes_free(&x->body);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

const td_call_transport HTTP_TRANSPORT = {
    .name = "http",
    .send = call_send,
    .finish = call_finish,
    .read = call_read,
    .destroy = call_destroy,
};

/* ---- decoding -------------------------------------------------------------------------------- */

/* The message of Connect's GET: text or base64 for addresses. */
static tb_status read_query(http_exchange *x, tb_error *error)
{
    const char *text = NULL;
    size_t size = 0;
    const char *base64 = MHD_lookup_connection_value(x->wire, MHD_GET_ARGUMENT_KIND, "base64");
    MHD_lookup_connection_value_n(x->wire, MHD_GET_ARGUMENT_KIND, "message", strlen("message"),
                                  &text, &size);
    if (text == NULL) { /* nothing is the empty message */
        text = x->format.json ? "{}" : "";
        size = strlen(text);
        base64 = NULL;
        x->format.request_gzip = false;
    }
    if (base64 == NULL || strcmp(base64, "1") != 0) {
        if (tb_bytes_append(&x->body, text, size) != TB_OK)
            return tb_fail_memory(error, size, "a message");
        return TB_OK;
    }
    unsigned char *bytes = malloc(size + 1);
    size_t length = 0;
    tb_status status = TB_OK;
    if (bytes == NULL) return tb_fail_memory(error, size, "a message");
    const int variant = size > 0 && text[size - 1] == '='
                            ? sodium_base64_VARIANT_URLSAFE
                            : sodium_base64_VARIANT_URLSAFE_NO_PADDING;
    if (sodium_base642bin(bytes, size + 1, text, size, NULL, &length, NULL, variant) != 0)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "message",
                               "message: no base64 of the alphabet for addresses");
    else if (tb_bytes_append(&x->body, bytes, length) != TB_OK)
        status = tb_fail_memory(error, length, "a message");
    free(bytes);
    return status;
}

/* Takes envelope and compression off; *bytes and *size borrow from the body or from `unpacked`. */
static tb_status open_body(http_exchange *x, tb_bytes *unpacked, const unsigned char **bytes,
                           size_t *size, tb_error *error)
{
    tb_status status = TB_OK;
    bool compressed = x->format.request_gzip;
    if (x->format.get) status = read_query(x, error);
    if (status == TB_OK && x->format.text) status = http_text_decode(&x->body, error);
    if (status != TB_OK) return status;
    *bytes = x->body.base;
    *size = x->body.size;
    if (x->format.protocol != HTTP_CONNECT_UNARY && !x->format.get) {
        http_envelope envelope = {0};
        status = http_envelope_read(*bytes, *size, &envelope, error);
        if (status != TB_OK) return status;
        if (envelope.compressed && !compressed)
            return tb_fail(error, TB_INVALID_ARGUMENT,
                           "the envelope says compressed, but no header says how");
        compressed = envelope.compressed;
        *bytes = envelope.bytes;
        *size = envelope.size;
    } else if (*size == 0) {
        compressed = false;
    }
    if (compressed) {
        status = http_gunzip(*bytes, *size, x->config->message_bytes, unpacked, error);
        *bytes = unpacked->base;
        *size = unpacked->size;
    }
    return status;
}

static tb_status decode(http_exchange *x, td_request **request, tb_error *error)
{
    const td_server *server = x->http->server;
    tb_bytes unpacked = {0};
    const unsigned char *bytes = NULL;
    size_t size = 0;
    /* the tree that JSON is read into; the message has a bound of its own */
    tb_budget budget = td_upload_budget(&x->call);
    budget.memory_bytes = (size_t)x->config->unpack_bytes;
    tb_budget_bind(&budget);
    tb_status status = open_body(x, &unpacked, &bytes, &size, error);
    if (status != TB_OK) goto done;
    if (!x->format.json) {
        status = td_request_unpack(server, x->call.method->input, bytes, size, request, error);
        goto done;
    }
    if (size == 0) {
        status = tb_fail(error, TB_INVALID_ARGUMENT,
                         "the body is empty: send {} for a message without fields");
        goto done;
    }
    status = td_request_create(server, x->call.method->input, request, error);
    if (status == TB_OK)
        status = td_json_parse((const char *)bytes, size, x->config->nesting,
                               x->config->unpack_bytes, *request, error);
    if (status != TB_OK) {
        td_request_free(*request);
        *request = NULL;
    }
done:
    tb_budget_release();
    tb_bytes_free(&unpacked);
    tb_bytes_free(&x->body);
    return td_upload_failure(&x->call, &budget, status, error);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void run(http_exchange *x)
{
    td_call *call = &x->call;
    td_request *request = NULL;
    double retry_after = 0;
    tb_error error = {0};
    const bool loopback = call->caller.loopback;
    tb_status status = td_auth_admit(x->http->server->auth, call, http_header(x, "Authorization"),
                                     loopback, &retry_after, &error);
    if (status == TB_OK) {
        http_guard_admitted(x);
        status = decode(x, &request, &error);
    }
    if (status == TB_OK)
        td_call_dispatch(call, request);
    else
        td_call_finish(call, status, &error, retry_after);
}

static void run_on_worker(void *context)
{
    http_exchange *x = context;
    run(x);
    pthread_mutex_lock(&x->lock);
    x->dispatching = false;
    http_call_wake(x);
    pthread_mutex_unlock(&x->lock);
    td_call_release(&x->call);
}

bool http_call_begin(http_exchange *x)
{
    tb_error error = {0};
    td_call_hold(&x->call); /* for the worker, or until run has returned */
    http_guard_watch(x);
    if (atomic_load(&x->http->stopping)) {
        /* watched before this check and after the flag was set: no other thread will cancel it */
        tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
        td_call_finish(&x->call, error.status, &error, 1);
        td_call_release(&x->call);
        return true;
    }
    const bool quick = x->body.size <= QUICK_BODY_BYTES && !x->format.request_gzip &&
                       td_auth_quick(x->http->server->auth, http_header(x, "Authorization"));
    if (quick) {
        run(x);
        td_call_release(&x->call);
        return true;
    }
    pthread_mutex_lock(&x->lock);
    x->dispatching = true;
    x->suspended = true;
    MHD_suspend_connection(x->wire);
    pthread_mutex_unlock(&x->lock);
    pthread_mutex_lock(&x->http->calls_lock); /* the workers end under it */
    char key[TD_POOL_CALLER_SIZE];
    td_caller_key(&x->call, key);
    const tb_status status = atomic_load(&x->http->stopping)
                                 ? tb_fail(&error, TB_UNAVAILABLE, "the server is stopping")
                                 : td_pool_post(x->http->decoders, key, run_on_worker, x, &error);
    pthread_mutex_unlock(&x->http->calls_lock);
    if (status == TB_OK) return false;
    td_call_finish(&x->call, error.status, &error, 1);
    pthread_mutex_lock(&x->lock);
    x->dispatching = false;
    http_call_wake(x);
    pthread_mutex_unlock(&x->lock);
    td_call_release(&x->call);
    return false;
}
