/* Clients: connections that are made again when they end, unary calls, repeating.
 *
 * A client has one connection that takes new calls. One that the server said goodbye to keeps the
 * calls it has, and a new one is made for the next call. */
#include "client_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"

static const double FIRST_PAUSE_S = 0.05, LONGEST_PAUSE_S = 2;
/* A daemon that restarts is found again this soon: between two attempts to connect. */
static const int64_t RECONNECT_NS = 100000000, LONGEST_CONNECT_NS = 20000000000;
static const int64_t SECOND_NS = 1000000000;
/* Connections that may go away between the choice of one and the beginning of a call. */
enum { MOST_LINES = 3 };

/* Only these may be sent again when it is not known whether the server saw them. */
static const char *const READS[] = {"GetServerInfo", "ListAssets",  "GetScene",       "ListScenes",
                                    "ListSessions",  "GetState",    "GetContacts",    "ListRuns",
                                    "GetRun",        "CompareRuns", "ListBenchmarks", "Heartbeat"};

tbc_options tbc_options_defaults(void)
{
    return (tbc_options){.address = "127.0.0.1:7410",
                         .connect_timeout = 5,
                         .attempts = 4,
                         .message_bytes = (size_t)64 << 20};
}

/* ---- connecting ---- */

static tb_status check(const tbc_options *options, tb_error *error)
{
    if (options->address == NULL || options->address[0] == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "address", "the address is empty");
    if ((options->client_pem != NULL) != (options->client_key != NULL))
        return tb_fail_field(error, TB_INVALID_ARGUMENT,
                             options->client_pem != NULL ? "client_key" : "client_pem",
                             "a client's certificate and its key come together");
    if (options->client_pem != NULL && options->root_pem == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "root_pem",
                             "a client's certificate needs TLS, which root_pem asks for");
    return TB_OK;
}

static gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)text,
                            .size = (unsigned)strlen(text)};
}

static tb_status load_certificates(const tbc_options *options, tbc_target *target, tb_error *error)
{
    if (options->root_pem == NULL) return TB_OK;
    if (gnutls_certificate_allocate_credentials(&target->credentials) != 0)
        return tb_fail_memory(error, 0, "certificates");
    const gnutls_datum_t roots = datum(options->root_pem);
    if (gnutls_certificate_set_x509_trust_mem(target->credentials, &roots, GNUTLS_X509_FMT_PEM) <=
        0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "root_pem",
                             "root_pem holds no certificate");
    if (options->client_pem == NULL) return TB_OK;
    const gnutls_datum_t own = datum(options->client_pem), key = datum(options->client_key);
    if (gnutls_certificate_set_x509_key_mem(target->credentials, &own, &key, GNUTLS_X509_FMT_PEM) <
        0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "client_pem",
                             "client_pem and client_key are no certificate and key that belong "
                             "together");
    return TB_OK;
}

static bool copy_key(tbc_client *client, const char *key)
{
    const size_t size = strlen(key) + sizeof "Bearer ";
    client->authorization = malloc(size);
    if (client->authorization != NULL) snprintf(client->authorization, size, "Bearer %s", key);
    return client->authorization != NULL;
}

/* Whether libnghttp2 takes the text: a header that it refuses would fail every call. */
static bool is_header_value(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~') return false;
    return *text != '\0';
}

/* Keeps the trace context where it is one; false without memory. */
static bool copy_trace(tbc_client *client, const tbc_options *options)
{
    const char *const given[2] = {options->traceparent, options->tracestate};
    char **const kept[2] = {&client->traceparent, &client->tracestate};
    for (int i = 0; i < 2; i++) {
        if (given[i] == NULL || !is_header_value(given[i])) continue;
        *kept[i] = strdup(given[i]);
        if (*kept[i] == NULL) return false;
    }
    return true;
}

/* A connection that is held is not freed. */
static void hold(tbc_line *line)
{
    pthread_mutex_lock(&line->lock);
    line->count++;
    pthread_mutex_unlock(&line->lock);
}

static void let_go(tbc_line *line)
{
    pthread_mutex_lock(&line->lock);
    line->count--;
    pthread_mutex_unlock(&line->lock);
}

/* The connection that takes new calls, held; or NULL. */
static tbc_line *current(tbc_client *client)
{
    pthread_mutex_lock(&client->lock);
    tbc_line *line = client->lines;
    if (line != NULL && !tbc_line_usable(line)) line = NULL;
    if (line != NULL) hold(line);
    pthread_mutex_unlock(&client->lock);
    return line;
}

/* Frees connections that take no new calls and have none left. The lock is held. */
static void forget_old(tbc_client *client)
{
    for (tbc_line **at = &client->lines; *at != NULL;) {
        tbc_line *line = *at;
        pthread_mutex_lock(&line->lock);
        const bool over = (line->going || line->failed) && line->count == 0;
        pthread_mutex_unlock(&line->lock);
        if (over) {
            *at = line->next;
            tbc_line_free(line);
        } else {
            at = &line->next;
        }
    }
}

/* The same, made now if there is none; NULL with the reason. */
static tbc_line *connect_now(tbc_client *client, int64_t deadline_ns, char reason[TBC_REASON_SIZE])
{
    tbc_line *line = current(client);
    if (line != NULL) return line;
    pthread_mutex_lock(&client->connecting);
    line = current(client); /* another thread may just have connected */
    if (line == NULL) {
        const int64_t longest = tbc_now_ns() + LONGEST_CONNECT_NS;
        line =
            tbc_line_open(&client->target, deadline_ns < longest ? deadline_ns : longest, reason);
        if (line != NULL) {
            pthread_mutex_lock(&client->lock);
            hold(line);
            line->next = client->lines;
            client->lines = line;
            pthread_mutex_unlock(&client->lock);
        }
    }
    pthread_mutex_unlock(&client->connecting);
    return line;
}

/* Looks at the connections once a second. */
static void *keep(void *context)
{
    tbc_client *client = context;
    pthread_mutex_lock(&client->lock);
    while (!client->stop) {
        const int64_t until = tbc_now_ns() + SECOND_NS;
        const struct timespec time = {.tv_sec = (time_t)(until / SECOND_NS),
                                      .tv_nsec = (long)(until % SECOND_NS)};
        pthread_cond_timedwait(&client->stopped, &client->lock, &time);
        for (tbc_line *line = client->lines; line != NULL; line = line->next) tbc_line_tick(line);
    }
    pthread_mutex_unlock(&client->lock);
    return NULL;
}

static void sleep_ns(int64_t nanoseconds)
{
    const struct timespec time = {.tv_sec = (time_t)(nanoseconds / SECOND_NS),
                                  .tv_nsec = (long)(nanoseconds % SECOND_NS)};
    nanosleep(&time, NULL);
}

static tb_status wait_connected(tbc_client *client, double seconds, bool secure, tb_error *error)
{
    const int64_t deadline = tbc_deadline_ns(seconds);
    char reason[TBC_REASON_SIZE] = "";
    tbc_line *line = NULL;
    while ((line = connect_now(client, deadline, reason)) == NULL) {
        if (tbc_now_ns() + RECONNECT_NS >= deadline)
            return tb_fail_field(
                error, TB_UNAVAILABLE, "address", "no tribod answers at %s%s (%s)", client->address,
                secure ? " by TLS with a certificate of the trusted ones" : "", reason);
        sleep_ns(RECONNECT_NS);
    }
    let_go(line);
    return TB_OK;
}

static tb_status client_make(const tbc_options *options, tbc_client **made, tb_error *error)
{
    tbc_client *client = calloc(1, sizeof *client);
    pthread_condattr_t attributes;
    *made = client;
    if (client == NULL) return tb_fail_memory(error, sizeof *client, "a client");
    pthread_mutex_init(&client->lock, NULL);
    pthread_mutex_init(&client->connecting, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&client->stopped, &attributes);
    pthread_condattr_destroy(&attributes);
    client->timeout = options->timeout;
    client->attempts = options->attempts > 1 ? options->attempts : 1;
    client->address = strdup(options->address);
    if (client->address == NULL || !copy_trace(client, options) ||
        (options->api_key != NULL && !copy_key(client, options->api_key)))
        return tb_fail_memory(error, 0, "a client");
    client->target.address = client->address;
    client->target.message_bytes = options->message_bytes;
    client->target.traceparent = client->traceparent;
    client->target.tracestate = client->tracestate;
    tbc_host_of(client->address, client->target.host);
    const tb_status status = load_certificates(options, &client->target, error);
    if (status != TB_OK) return status;
    client->keeping = pthread_create(&client->keeper, NULL, keep, client) == 0;
    if (!client->keeping) return tb_fail_memory(error, 0, "a client's thread");
    return TB_OK;
}

tb_status tbc_connect(const tbc_options *options, tbc_client **out, tb_error *error)
{
    tbc_client *client = NULL;
    *out = NULL;
    tb_status status = check(options, error);
    if (status == TB_OK) status = client_make(options, &client, error);
    if (status == TB_OK && options->connect_timeout > 0)
        status = wait_connected(client, options->connect_timeout, options->root_pem != NULL, error);
    if (status == TB_OK)
        *out = client;
    else
        tbc_disconnect(client);
    return status;
}

void tbc_disconnect(tbc_client *client)
{
    if (client == NULL) return;
    pthread_mutex_lock(&client->lock);
    client->stop = true;
    pthread_cond_signal(&client->stopped);
    pthread_mutex_unlock(&client->lock);
    if (client->keeping) pthread_join(client->keeper, NULL);
    while (client->lines != NULL) {
        tbc_line *next = client->lines->next;
        tbc_line_free(client->lines);
        client->lines = next;
    }
    if (client->target.credentials != NULL)
        gnutls_certificate_free_credentials(client->target.credentials);
    pthread_cond_destroy(&client->stopped);
    pthread_mutex_destroy(&client->connecting);
    pthread_mutex_destroy(&client->lock);
    free(client->authorization);
    free(client->traceparent);
    free(client->tracestate);
    free(client->address);
    free(client);
}

tbc_exchange *tbc_begin(tbc_client *client, const char *method, int64_t deadline_ns,
                        tb_error *error)
{
    char path[256], reason[TBC_REASON_SIZE] = "the server ends its connections";
    snprintf(path, sizeof path, "%s%s", method[0] == '/' ? "" : "/", method);
    pthread_mutex_lock(&client->lock);
    forget_old(client);
    pthread_mutex_unlock(&client->lock);
    for (int i = 0; i < MOST_LINES; i++) {
        tbc_line *line = connect_now(client, deadline_ns, reason);
        if (line == NULL) break;
        tbc_exchange *x = tbc_exchange_open(line, path, client->authorization, NULL, deadline_ns);
        let_go(line);
        if (x != NULL) return x;
    }
    const char *slash = strrchr(path, '/');
    const bool late = tbc_now_ns() >= deadline_ns;
    tb_fail(error, late ? TB_DEADLINE_EXCEEDED : TB_UNAVAILABLE, "%.64s at %.128s: %s", slash + 1,
            client->address, reason);
    return NULL;
}

/* ---- messages ---- */

uint8_t *tbc_pack(const tbc_client *client, const ProtobufCMessage *message, size_t *size,
                  tb_error *error)
{
    *size = protobuf_c_message_get_packed_size(message);
    if (*size > client->target.message_bytes) {
        tb_fail(error, TB_RESOURCE_EXHAUSTED,
                "the request has %zu bytes, more than the %zu of a message", *size,
                client->target.message_bytes);
        return NULL;
    }
    uint8_t *bytes = malloc(*size + 1);
    if (bytes == NULL)
        tb_fail_memory(error, *size, "a request");
    else
        protobuf_c_message_pack(message, bytes);
    return bytes;
}

tb_status tbc_unpack(const tb_bytes *bytes, const ProtobufCMessageDescriptor *descriptor,
                     ProtobufCMessage **message, tb_error *error)
{
    *message = protobuf_c_message_unpack(descriptor, NULL, bytes->size,
                                         bytes->base != NULL ? bytes->base : (const uint8_t *)"");
    if (*message == NULL)
        return tb_fail(error, TB_DATA_LOSS, "the server's answer is not a %s", descriptor->name);
    return TB_OK;
}

void tbc_free(void *message)
{
    if (message != NULL) protobuf_c_message_free_unpacked(message, NULL);
}

/* ---- unary calls ---- */

/* Makes one attempt; *unseen is true if the server certainly did not begin to process it. */
static tb_status attempt(tbc_client *client, const char *method, const ProtobufCMessage *request,
                         const ProtobufCMessageDescriptor *descriptor, int64_t deadline,
                         ProtobufCMessage **response, double *retry_after, bool *unseen,
                         tb_error *error)
{
    tb_bytes message = {0};
    size_t size = 0;
    tb_error told = {.status = TB_OK};
    *unseen = false;
    uint8_t *bytes = tbc_pack(client, request, &size, &told);
    tbc_exchange *x = bytes != NULL ? tbc_begin(client, method, deadline, &told) : NULL;
    tb_status status = told.status;
    if (x != NULL) {
        /* with its end the request leaves in one write */
        tbc_exchange_send_last(x, bytes, size);
        const bool answered = tbc_exchange_receive(x, &message);
        tbc_exchange_finish(x);
        *unseen = x->unseen;
        status = tbc_end_status(client, x, method, retry_after, error);
        if (status == TB_OK && !answered)
            status = tb_fail(error, TB_DATA_LOSS, "%s was answered without a message", method);
        if (status == TB_OK) status = tbc_unpack(&message, descriptor, response, error);
    } else if (error != NULL) {
        *error = told;
    }
    tbc_exchange_close(x);
    tb_bytes_free(&message);
    free(bytes);
    return status;
}

static bool only_reads(const char *method)
{
    const char *slash = strrchr(method, '/');
    const char *name = slash != NULL ? slash + 1 : method;
    for (size_t i = 0; i < sizeof READS / sizeof READS[0]; i++)
        if (strcmp(name, READS[i]) == 0) return true;
    return false;
}

/* Sleeps; false if the deadline would come first. */
static bool pause_before(int64_t deadline, double seconds)
{
    const int64_t pause = (int64_t)(seconds * 1e9);
    if (deadline != INT64_MAX && tbc_now_ns() + pause >= deadline) return false;
    sleep_ns(pause);
    return true;
}

tb_status tbc_call(tbc_client *client, const char *method, const ProtobufCMessage *request,
                   const ProtobufCMessageDescriptor *descriptor, double timeout,
                   ProtobufCMessage **response, tb_error *error)
{
    /* one deadline for all attempts and the pauses between them */
    const int64_t deadline = tbc_deadline_ns(timeout > 0 ? timeout : client->timeout);
    double pause = FIRST_PAUSE_S;
    for (int32_t i = 1;; i++) {
        double retry_after = -1;
        bool unseen = false;
        *response = NULL;
        const tb_status status = attempt(client, method, request, descriptor, deadline, response,
                                         &retry_after, &unseen, error);
        /* with a time to come back the server has refused without doing anything */
        const bool again = (status == TB_RESOURCE_EXHAUSTED && retry_after >= 0) ||
                           (status == TB_UNAVAILABLE && (retry_after >= 0 || only_reads(method)));
        if (!(again || unseen) || i >= client->attempts) return status;
        double wait = retry_after > pause ? retry_after : pause;
        if (wait > LONGEST_PAUSE_S) wait = LONGEST_PAUSE_S;
        if (!pause_before(deadline, wait)) return status;
        pause *= 2;
    }
}
