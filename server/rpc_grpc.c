/* The gRPC server: ports, start and shutdown, on gRPC's C core. */
#include "rpc_grpc_internal.h"

#include <errno.h>
#include <grpc/grpc_security.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

enum {
    /* calls that the core may hand over before it is asked again */
    OUTSTANDING_ACCEPTS = 32,
    STREAMS_PER_CONNECTION = 10000,
    /* clients may ping every 10 s, also without a call; jitter must not count as a strike */
    CLIENT_PING_INTERVAL_MS = 5000,
    PING_STRIKES = 3,
    /* the server's own pings find clients that are gone without a word */
    SERVER_PING_INTERVAL_MS = 30000,
    SERVER_PING_TIMEOUT_MS = 20000,
    HANDSHAKE_TIMEOUT_MS = 20000,
    METADATA_BYTES = 16384
};

/* s; for clients to hang up after the last call */
#define GOODBYE_S 0.5
/* the core may close after this long without a new call, s, or at the latest after this, ns */
#define QUIET_S       0.02
#define QUIET_MOST_NS 500000000

static void on_shut_down(rpc_call *call, bool success)
{
    (void)call;
    (void)success;
}

/* ---- ports ---- */

static grpc_arg integer_argument(const char *key, int value)
{
    grpc_arg argument = {.type = GRPC_ARG_INTEGER};
    argument.key = (char *)(uintptr_t)key;
    argument.value.integer = value;
    return argument;
}

static grpc_server *make_server(const td_config *config)
{
    const int bytes = config->message_bytes < INT32_MAX ? (int)config->message_bytes : INT32_MAX;
    grpc_arg list[] = {
        integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, bytes),
        integer_argument(GRPC_ARG_ALLOW_REUSEPORT, 0),
        integer_argument(GRPC_ARG_MAX_CONCURRENT_STREAMS, STREAMS_PER_CONNECTION),
        integer_argument(GRPC_ARG_MAX_METADATA_SIZE, METADATA_BYTES),
        integer_argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                         CLIENT_PING_INTERVAL_MS),
        integer_argument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        integer_argument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, PING_STRIKES),
        integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, SERVER_PING_INTERVAL_MS),
        integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, SERVER_PING_TIMEOUT_MS),
        integer_argument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HANDSHAKE_TIMEOUT_MS),
        integer_argument(GRPC_ARG_ENABLE_CHANNELZ, 0),
        integer_argument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),
        integer_argument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0),
    };
    const grpc_channel_args arguments = {.num_args = sizeof list / sizeof list[0], .args = list};
    return grpc_server_create(&arguments, NULL);
}

/* The core does not say why it could not bind, so the first address is tried here. */
static int bind_errno(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int reason = 0;
    if (getaddrinfo(*host != '\0' ? host : NULL, port, &hints, &found) != 0) return EADDRNOTAVAIL;
    const int s = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    const int on = 1;
    if (s < 0) {
        reason = errno;
    } else {
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(s, found->ai_addr, found->ai_addrlen) != 0 || listen(s, 1) != 0) reason = errno;
        close(s);
    }
    freeaddrinfo(found);
    return reason;
}

static tb_status fail_bind(tb_error *error, const td_config *config, const char *host,
                           const char *port)
{
    const char *address = config->grpc_address;
    const int reason = bind_errno(host, port);
    if (reason == 0 && config->tls_certificate[0] != '\0')
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "certificate",
                             "%s and %s are no certificate and key that belong together",
                             config->tls_certificate, config->tls_key);
    return tb_fail_field(error, TB_FAILED_PRECONDITION, "grpc", "cannot listen on %s: %s", address,
                         strerror(reason != 0 ? reason : EADDRINUSE));
}

static tb_status listen_tcp(td_rpc *rpc, const td_config *config, grpc_server_credentials *creds,
                            tb_error *error)
{
    char host[TD_CONFIG_TEXT_SIZE];
    const char *address = config->grpc_address;
    const char *colon = strrchr(address, ':');
    if (address[0] == '\0') return TB_OK;
    if (colon == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "grpc", "'%s' is not HOST:PORT", address);

    const int length = (int)(colon - address);
    const int port = grpc_server_add_http2_port(rpc->grpc, address, creds);
    if (port <= 0) {
        const bool bracketed = length >= 2 && address[0] == '[' && colon[-1] == ']';
        snprintf(host, sizeof host, "%.*s", bracketed ? length - 2 : length,
                 bracketed ? address + 1 : address);
        return fail_bind(error, config, host, colon + 1);
    }
    snprintf(rpc->address, sizeof rpc->address, "%.*s:%d", length, address, port);
    return TB_OK;
}

/* Whether somebody answers on this socket; a file that nobody serves is left from a crash. */
static bool is_served(const struct sockaddr_un *address)
{
    const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) return false;
    const bool answered = connect(s, (const struct sockaddr *)address, sizeof *address) == 0;
    close(s);
    return answered;
}

static tb_status listen_unix(td_rpc *rpc, const td_config *config, tb_error *error)
{
    char uri[TD_CONFIG_TEXT_SIZE + 8];
    const char *path = config->grpc_socket;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path[0] == '\0') return TB_OK;
    if (strlen(path) >= sizeof address.sun_path)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "grpc_socket",
                             "the path '%s' has more than %zu bytes", path,
                             sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    if (is_served(&address))
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "grpc_socket",
                             "cannot listen on %s: %s", path, strerror(EADDRINUSE));

    /* whoever may open the file may call, so TLS has nothing to add */
    grpc_server_credentials *plain = grpc_insecure_server_credentials_create();
    snprintf(uri, sizeof uri, "unix:%s", path);
    const int bound = grpc_server_add_http2_port(rpc->grpc, uri, plain);
    grpc_server_credentials_release(plain);
    if (bound <= 0)
        return tb_fail_field(error, TB_FAILED_PRECONDITION, "grpc_socket", "cannot listen on %s",
                             path);
    strcpy(rpc->socket, path);
    if (rpc->address[0] == '\0') snprintf(rpc->address, sizeof rpc->address, "%s", uri);
    return TB_OK;
}

static tb_status listen_all(td_rpc *rpc, const td_config *config, tb_error *error)
{
    grpc_server_credentials *credentials = NULL;
    tb_status status = rpc_credentials(config, &credentials, &rpc->tls, error);
    if (status != TB_OK) return status;
    status = listen_tcp(rpc, config, credentials, error);
    grpc_server_credentials_release(credentials);
    if (status == TB_OK) status = listen_unix(rpc, config, error);
    return status;
}

/* ---- life ---- */

static tb_status rpc_make(td_server *server, td_rpc **made, tb_error *error)
{
    td_rpc *rpc = calloc(1, sizeof *rpc);
    *made = NULL;
    if (rpc == NULL) return tb_fail_memory(error, sizeof *rpc, "the gRPC server");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const bool locks = pthread_mutex_init(&rpc->lock, NULL) == 0 &&
                       pthread_cond_init(&rpc->changed, &attributes) == 0 &&
                       pthread_cond_init(&rpc->relief, NULL) == 0;
    pthread_condattr_destroy(&attributes);
    if (!locks) {
        free(rpc);
        return tb_fail_memory(error, 0, "locks of the gRPC server");
    }
    rpc->server = server;
    rpc->shutdown_tag = (rpc_tag){on_shut_down, NULL};
    *made = rpc;
    return TB_OK;
}

tb_status td_rpc_create(td_server *server, td_rpc **made, tb_error *error)
{
    td_rpc *rpc = NULL;
    *made = NULL;
    /* the core has a log of its own on standard error; what matters comes back as an error */
    setenv("GRPC_VERBOSITY", "NONE", 0);
    tb_status status = rpc_make(server, &rpc, error);
    if (status != TB_OK) return status;
    grpc_init();
    rpc->grpc = make_server(server->config);
    rpc->queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(rpc->grpc, rpc->queue, NULL);
    status = rpc_reflection_create(&rpc->reflection, error);
    if (status == TB_OK) status = listen_all(rpc, server->config, error);
    if (status == TB_OK)
        *made = rpc;
    else
        td_rpc_destroy(rpc);
    return status;
}

tb_status td_rpc_start(td_rpc *rpc, tb_error *error)
{
    grpc_server_start(rpc->grpc);
    rpc->started = true;
    for (int i = 0; i < OUTSTANDING_ACCEPTS; i++) rpc_accept(rpc);
    return rpc_poll_start(rpc, error);
}

const char *td_rpc_address(const td_rpc *rpc)
{
    return rpc->address;
}

void td_rpc_set_serving(td_rpc *rpc, bool serving)
{
    rpc_health_change(rpc, serving);
}

static struct timespec later_by(double seconds)
{
    struct timespec until;
    const double longest = 1e6;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (seconds > longest) seconds = longest;
    if (seconds < 0) seconds = 0;
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

/* Waits until no call came for a moment, or half a second has passed. What is on its way over an
 * open connection is refused with a status; the core would break it off. Under the lock. */
static void wait_quiet(td_rpc *rpc)
{
    const int64_t end = td_monotonic_ns() + QUIET_MOST_NS;
    uint64_t seen;
    do {
        seen = rpc->refused;
        const struct timespec moment = later_by(QUIET_S);
        int late = 0;
        while (late == 0) late = pthread_cond_timedwait(&rpc->changed, &rpc->lock, &moment);
    } while (rpc->refused != seen && td_monotonic_ns() < end);
}

/* First new calls are refused by a status that clients retry on, for the core would break them off.
 * Once the last call is over, or time is, the core says good-bye on every connection, and cuts off
 * those that do not go. */
void td_rpc_shutdown(td_rpc *rpc, double seconds)
{
    struct timespec until = later_by(seconds);
    int late = 0;
    pthread_mutex_lock(&rpc->lock);
    const bool again = rpc->shutting_down;
    rpc->shutting_down = true;
    pthread_mutex_unlock(&rpc->lock);
    if (again || !rpc->started || rpc->threads_running == 0) return;

    rpc_health_change(rpc, false);
    pthread_mutex_lock(&rpc->lock);
    while (rpc->working > 0 && late == 0)
        late = pthread_cond_timedwait(&rpc->changed, &rpc->lock, &until);
    if (late == 0) wait_quiet(rpc);
    pthread_mutex_unlock(&rpc->lock);

    rpc_health_end(rpc);
    grpc_server_shutdown_and_notify(rpc->grpc, rpc->queue, &rpc->shutdown_tag);
    if (late == 0) {
        until = later_by(GOODBYE_S);
        pthread_mutex_lock(&rpc->lock);
        while (!rpc->shut_down && late == 0)
            late = pthread_cond_timedwait(&rpc->changed, &rpc->lock, &until);
        pthread_mutex_unlock(&rpc->lock);
    }
    grpc_server_cancel_all_calls(rpc->grpc);

    /* each call hears of its end */
    pthread_mutex_lock(&rpc->lock);
    while (!rpc->shut_down || rpc->calls > 0) pthread_cond_wait(&rpc->changed, &rpc->lock);
    pthread_mutex_unlock(&rpc->lock);
}

void td_rpc_destroy(td_rpc *rpc)
{
    if (rpc == NULL) return;
    td_rpc_shutdown(rpc, 0);
    const bool threaded = rpc->threads_running > 0;
    if (!threaded && rpc->grpc != NULL) {
        grpc_server_shutdown_and_notify(rpc->grpc, rpc->queue, &rpc->shutdown_tag);
        grpc_server_cancel_all_calls(rpc->grpc);
    }
    rpc_poll_end(rpc);
    if (rpc->grpc != NULL) grpc_server_destroy(rpc->grpc);
    if (rpc->queue != NULL) grpc_completion_queue_destroy(rpc->queue);
    if (rpc->socket[0] != '\0') unlink(rpc->socket);
    rpc_tls_destroy(rpc->tls);
    rpc_reflection_destroy(rpc->reflection);
    pthread_cond_destroy(&rpc->changed);
    pthread_cond_destroy(&rpc->relief);
    pthread_mutex_destroy(&rpc->lock);
    free(rpc);
    grpc_shutdown();
}
