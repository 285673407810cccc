/* One call on a connection: its headers, messages both ways, and its end.
 *
 * A message is sent from the sender's own bytes, which the sender keeps until libnghttp2 has taken
 * them: a server that does not read makes the sender wait, and nothing is copied twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_internal.h"

enum { MOST_HEADERS = 12 };

/* ---- the end ---- */

void tbc_exchange_wake(tbc_exchange *x)
{
    if (x->waiting) pthread_cond_signal(&x->changed);
}

void tbc_exchange_end(tbc_exchange *x, int code, const char *message)
{
    if (x->ended) return;
    x->ended = true;
    x->code = code;
    if (message != NULL) {
        tb_bytes_free(&x->message);
        tb_bytes_append(&x->message, message, strlen(message));
    }
    tbc_exchange_wake(x);
}

/* ---- sending ---- */

static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *context)
{
    tbc_exchange *x = source->ptr;
    size_t filled = 0;
    (void)session;
    (void)stream;
    (void)context;
    for (; x->sending && x->prefix_at < TBC_PREFIX_BYTES && filled < room; filled++)
        to[filled] = x->prefix[x->prefix_at++];
    if (x->sending) {
        const size_t rest = x->out_size - x->out_at;
        const size_t part = rest < room - filled ? rest : room - filled;
        if (part > 0) memcpy(to + filled, x->out + x->out_at, part);
        x->out_at += part;
        filled += part;
        if (x->out_at == x->out_size && x->prefix_at == TBC_PREFIX_BYTES) {
            x->sending = false;
            tbc_exchange_wake(x);
        }
    }
    if (!x->sending && x->half_closed) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (filled == 0) {
        x->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)filled;
}

static void resume(tbc_exchange *x)
{
    if (x->deferred) nghttp2_session_resume_data(x->line->session, x->stream);
    x->deferred = false;
    tbc_line_flush(x->line);
    if (x->line->unsent_at < x->line->unsent.size) tbc_line_kick(x->line);
}

static bool is_sent(const tbc_exchange *x)
{
    return !x->sending;
}

static void offer(tbc_exchange *x, const void *bytes, size_t size, bool compressed)
{
    x->prefix[0] = compressed;
    for (int i = 0; i < 4; i++) x->prefix[1 + i] = (uint8_t)(size >> (24 - 8 * i));
    x->prefix_at = x->out_at = 0;
    x->out = bytes;
    x->out_size = size;
    x->sending = true;
    resume(x);
}

void tbc_exchange_send_last(tbc_exchange *x, const void *bytes, size_t size)
{
    pthread_mutex_lock(&x->line->lock);
    x->half_closed = true;
    if (!x->ended) offer(x, bytes, size, false);
    pthread_mutex_unlock(&x->line->lock);
}

bool tbc_exchange_send(tbc_exchange *x, const void *bytes, size_t size, bool compressed)
{
    tbc_line *line = x->line;
    bool taken = false;
    pthread_mutex_lock(&line->lock);
    if (!x->ended && !x->half_closed) {
        offer(x, bytes, size, compressed);
        tbc_line_wait(line, x, is_sent);
        taken = is_sent(x);
        x->sending = false;
    }
    pthread_mutex_unlock(&line->lock);
    return taken;
}

bool tbc_exchange_half_close(tbc_exchange *x)
{
    tbc_line *line = x->line;
    pthread_mutex_lock(&line->lock);
    x->half_closed = true;
    if (!x->ended) resume(x);
    const bool good = !x->ended || x->code == TBC_OK;
    pthread_mutex_unlock(&line->lock);
    return good;
}

/* ---- receiving ---- */

static size_t message_size(const tbc_exchange *x)
{
    const uint8_t *p = x->in.base + x->in_at;
    return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
}

bool tbc_exchange_has_message(const tbc_exchange *x)
{
    const size_t there = x->in.size - x->in_at;
    if (there < TBC_PREFIX_BYTES) return false;
    const size_t size = message_size(x);
    /* one that is too large is not waited for: receive ends the call */
    return size > x->line->target.message_bytes || there - TBC_PREFIX_BYTES >= size;
}

static bool take_message(tbc_exchange *x, tb_bytes *message)
{
    const size_t size = message_size(x), begin = x->in_at + TBC_PREFIX_BYTES;
    if (x->in.base[x->in_at] != 0 || size > x->line->target.message_bytes) {
        const bool large = size > x->line->target.message_bytes;
        nghttp2_submit_rst_stream(x->line->session, NGHTTP2_FLAG_NONE, x->stream, NGHTTP2_CANCEL);
        x->ended = false;
        tbc_exchange_end(x, large ? TBC_RESOURCE_EXHAUSTED : TBC_INTERNAL,
                         large ? "the answer is larger than a message may be"
                               : "the answer is compressed, which was not asked for");
        tb_bytes_free(&x->in);
        x->in_at = 0;
        return false;
    }
    const bool good = tb_bytes_append(message, x->in.base + begin, size) == TB_OK;
    x->in_at = begin + size;
    if (x->in_at == x->in.size) {
        x->in.size = x->in_at = 0;
        const size_t large = 1 << 20;
        if (x->in.capacity > large) tb_bytes_free(&x->in);
    }
    if (!x->ended && x->unconsumed > 0 && !tbc_exchange_has_message(x)) {
        nghttp2_session_consume_stream(x->line->session, x->stream, x->unconsumed);
        x->unconsumed = 0;
    }
    tbc_line_flush(x->line);
    return good;
}

bool tbc_exchange_receive(tbc_exchange *x, tb_bytes *message)
{
    tbc_line *line = x->line;
    pthread_mutex_lock(&line->lock);
    tbc_line_wait(line, x, tbc_exchange_has_message);
    const bool there = tbc_exchange_has_message(x) && take_message(x, message);
    pthread_mutex_unlock(&line->lock);
    return there;
}

static bool never(const tbc_exchange *x)
{
    (void)x;
    return false;
}

int tbc_exchange_finish(tbc_exchange *x)
{
    tbc_line *line = x->line;
    pthread_mutex_lock(&line->lock);
    /* messages that are not wanted must not hold up the end */
    if (!x->ended && x->unconsumed > 0)
        nghttp2_session_consume_stream(line->session, x->stream, x->unconsumed);
    x->unconsumed = 0;
    tbc_line_wait(line, x, never);
    pthread_mutex_unlock(&line->lock);
    return x->code;
}

void tbc_exchange_cancel(tbc_exchange *x)
{
    tbc_line *line = x->line;
    pthread_mutex_lock(&line->lock);
    if (!x->ended) {
        nghttp2_submit_rst_stream(line->session, NGHTTP2_FLAG_NONE, x->stream, NGHTTP2_CANCEL);
        tbc_exchange_end(x, TBC_CANCELLED, "the caller cancelled the call");
        tbc_line_flush(line);
        tbc_line_kick(line);
    }
    pthread_mutex_unlock(&line->lock);
}

/* ---- life ---- */

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value)};
}

static bool submit(tbc_exchange *x, const char *path, const char *authorization,
                   const char *encoding)
{
    tbc_line *line = x->line;
    char timeout[TBC_TEXT_SIZE];
    nghttp2_nv headers[MOST_HEADERS];
    size_t count = 0;
    headers[count++] = header(":method", "POST");
    headers[count++] = header(":scheme", line->tls != NULL ? "https" : "http");
    headers[count++] = header(":path", path);
    headers[count++] = header(":authority", line->target.host);
    headers[count++] = header("te", "trailers");
    headers[count++] = header("content-type", "application/grpc");
    headers[count++] = header("user-agent", "tribo-c/" TB_VERSION);
    if (encoding != NULL) headers[count++] = header("grpc-encoding", encoding);
    if (x->deadline_ns != INT64_MAX) {
        tbc_timeout_print(x->deadline_ns - tbc_now_ns(), timeout);
        headers[count++] = header("grpc-timeout", timeout);
    }
    if (authorization != NULL) {
        headers[count] = header("authorization", authorization);
        headers[count++].flags = NGHTTP2_NV_FLAG_NO_INDEX;
    }
    if (line->target.traceparent != NULL)
        headers[count++] = header("traceparent", line->target.traceparent);
    if (line->target.tracestate != NULL)
        headers[count++] = header("tracestate", line->target.tracestate);
    const nghttp2_data_provider provider = {.source.ptr = x, .read_callback = read_request};
    x->stream = nghttp2_submit_request(line->session, NULL, headers, count, &provider, x);
    return x->stream > 0;
}

tbc_exchange *tbc_exchange_open(tbc_line *line, const char *path, const char *authorization,
                                const char *encoding, int64_t deadline_ns)
{
    tbc_exchange *x = calloc(1, sizeof *x);
    pthread_condattr_t attributes;
    if (x == NULL) return NULL;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&x->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    x->line = line;
    x->deadline_ns = deadline_ns;
    x->code = -1;

    pthread_mutex_lock(&line->lock);
    x->average_ns = line->average_ns;
    const bool good = !line->going && !line->failed && submit(x, path, authorization, encoding);
    if (good) {
        x->next = line->exchanges;
        if (x->next != NULL) x->next->previous = x;
        line->exchanges = x;
        line->count++;
    }
    pthread_mutex_unlock(&line->lock);
    if (good) return x;
    pthread_cond_destroy(&x->changed);
    free(x);
    return NULL;
}

void tbc_exchange_close(tbc_exchange *x)
{
    if (x == NULL) return;
    tbc_line *line = x->line;
    tbc_exchange_cancel(x);
    pthread_mutex_lock(&line->lock);
    /* the stream may close later than the call: libnghttp2 forgets the exchange */
    if (line->session != NULL) nghttp2_session_set_stream_user_data(line->session, x->stream, NULL);
    if (x->previous != NULL)
        x->previous->next = x->next;
    else
        line->exchanges = x->next;
    if (x->next != NULL) x->next->previous = x->previous;
    line->count--;
    pthread_mutex_unlock(&line->lock);
    pthread_cond_destroy(&x->changed);
    tb_bytes_free(&x->in);
    tb_bytes_free(&x->message);
    tb_bytes_free(&x->details);
    free(x);
}
