/* The HTTP server: libmicrohttpd with epoll on a few threads, listening, starting and ending. */
#include "transport/http/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "wire/descriptors.h"
#include "transport/http/http_internal.h"
#include "call/pool.h"

enum {
    /* of a connection, besides the headers: the reading and writing of bodies */
    CONNECTION_BYTES = 32768,
    STACK_BYTES = 1 << 20,
    DECODE_NICENESS = 5, /* a third of a contended processor */
};
/* After the calls in flight were cancelled: for their answers to reach the wire. */
static const double LAST_WORDS_SECONDS = 1;

/* libmicrohttpd's own complaints: a client that broke off, a handshake that failed. */
static void log_line(void *context, const char *format, va_list arguments)
{
    td_http *http = context;
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\r\n")] = '\0';
    if (http->server->log != NULL)
        td_log_write(http->server->log, TB_LOG_DEBUG, "http.library", "message=%s", text);
}

static tb_status read_pem(const char *path, tb_bytes *bytes, tb_error *error)
{
    enum { PEM_LIMIT = 1 << 20 };
    return *path != '\0' ? tb_file_read(path, PEM_LIMIT, bytes, error) : TB_OK;
}

static tb_status make_decoders(const td_config *config, td_pool **pool, tb_error *error)
{
    const td_pool_options options = {.name = "decode",
                                     .threads = HTTP_WORKERS,
                                     .queue_length =
                                         config->http_connections + HTTP_SPARE_CONNECTIONS,
                                     .per_caller = config->http_connections_per_address,
                                     .niceness = DECODE_NICENESS};
    return td_pool_create(&options, pool, error);
}

tb_status td_http_create(td_server *server, td_http **created, tb_error *error)
{
    const td_config *config = server->config;
    td_http *http = calloc(1, sizeof *http);
    tb_status status = TB_OK;
    *created = NULL;
    if (http == NULL) return tb_fail_memory(error, sizeof *http, "the HTTP server");
    http->server = server;
    http->listener = http->guard.epoll = http->guard.wake = -1;
    atomic_init(&http->draining, false);
    atomic_init(&http->stopping, false);
    pthread_mutex_init(&http->guard.lock, NULL);
    pthread_mutex_init(&http->calls_lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&http->calls_done, &monotonic);
    pthread_condattr_destroy(&monotonic);

    status = td_certificates_create(config, &http->certificates, error);
    if (status == TB_OK) status = read_pem(config->tls_certificate, &http->certificate, error);
    if (status == TB_OK) status = read_pem(config->tls_key, &http->key, error);
    if (status == TB_OK) status = read_pem(config->tls_client_ca, &http->client_ca, error);
    if (status == TB_OK) status = make_decoders(config, &http->decoders, error);
    if (status == TB_OK)
        status =
            http_listen(config->http_address, &http->listener, &http->ipv6, http->address, error);
    if (status == TB_OK)
        *created = http;
    else
        td_http_destroy(http);
    return status;
}

tb_status td_http_start(td_http *http, tb_error *error)
{
    const td_config *config = http->server->config;
    const bool tls = http->certificate.size > 0;
    const int transports = *config->grpc_address != '\0' || *config->grpc_socket != '\0' ? 2 : 1;
    http->connections = td_descriptors_for_connections(config->http_connections, transports);
    if (http->connections < config->http_connections && http->server->log != NULL)
        td_log_write(http->server->log, TB_LOG_WARNING, "http.connections_limited",
                     "connections=%d wanted=%d descriptors=%lld", http->connections,
                     config->http_connections, (long long)td_descriptors_limit());
    const double timeout = config->http_timeout_seconds;
    tb_status status = http_guard_start(http, error);
    if (status != TB_OK) return status;

    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (http->ipv6) flags |= MHD_USE_DUAL_STACK;
    if (tls) flags |= MHD_USE_TLS;
    /* guard.c enforces the limits on connections; this limit is a backstop, because each
     * libmicrohttpd thread gets a share of it and does not count the other threads' connections */
    const unsigned connections =
        (unsigned)(http->connections + HTTP_SPARE_CONNECTIONS) * HTTP_THREADS;
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)log_line, http},
        {MHD_OPTION_LISTEN_SOCKET, http->listener, NULL},
        {MHD_OPTION_THREAD_POOL_SIZE, HTTP_THREADS, NULL},
        {MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)connections, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT,
         (intptr_t)(config->http_header_bytes + CONNECTION_BYTES), NULL},
        /* without a byte in either direction; the whole request's time is the guard's */
        {MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)(timeout < 1 ? 1 : timeout + 0.999), NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)http_connection_notify, http},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)http_completed, http},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, http->certificate.base},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, http->key.base},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TD_TLS_PRIORITIES},
        {http->client_ca.size > 0 ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
         http->client_ca.base},
        {MHD_OPTION_END, 0, NULL},
    };
    http->daemon = MHD_start_daemon(flags, 0, http_accept, http, http_handle, http,
                                    MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    http->listener = -1; /* libmicrohttpd's from here on: it closes it, also when it fails */
    if (http->daemon == NULL)
        return tb_fail(error, tls ? TB_FAILED_PRECONDITION : TB_INTERNAL,
                       "the HTTP server does not start%s%s",
                       tls ? ": are tls_certificate and tls_key a pair in PEM? " : ": ",
                       tls ? "" : strerror(errno));
    return TB_OK;
}

const char *td_http_address(const td_http *http)
{
    return http->address;
}

/* Waits until no request is on the wire or `seconds` have passed. */
static bool wait_for_calls(td_http *http, double seconds)
{
    const int64_t end = td_monotonic_ns() + (int64_t)(seconds * 1e9);
    const struct timespec until = {.tv_sec = (time_t)(end / 1000000000),
                                   .tv_nsec = (long)(end % 1000000000)};
    int result = 0;
    pthread_mutex_lock(&http->calls_lock);
    while (http->calls > 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&http->calls_done, &http->calls_lock, &until);
    const bool done = http->calls == 0;
    pthread_mutex_unlock(&http->calls_lock);
    return done;
}

void td_http_shutdown(td_http *http, double seconds)
{
    atomic_store(&http->draining, true);
    if (http->daemon == NULL || wait_for_calls(http, seconds)) return;
    http_guard_cancel_all(http);
    wait_for_calls(http, LAST_WORDS_SECONDS);
}

void td_http_destroy(td_http *http)
{
    if (http == NULL) return;
    atomic_store(&http->draining, true);
    pthread_mutex_lock(&http->calls_lock);
    atomic_store(&http->stopping, true);
    pthread_mutex_unlock(&http->calls_lock);
    /* a suspended connection would hold libmicrohttpd up for ever */
    td_pool_destroy(http->decoders);
    http_guard_cancel_all(http);
    if (http->daemon != NULL) MHD_stop_daemon(http->daemon);
    http_guard_stop(http);
    if (http->listener >= 0) close(http->listener);
    td_certificates_destroy(http->certificates);
    tb_bytes_free(&http->certificate);
    tb_bytes_free(&http->key);
    tb_bytes_free(&http->client_ca);
    pthread_cond_destroy(&http->calls_done);
    pthread_mutex_destroy(&http->calls_lock);
    pthread_mutex_destroy(&http->guard.lock);
    free(http);
}
