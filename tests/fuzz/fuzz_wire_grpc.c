/* A connection of the gRPC transport, fed with any bytes behind HTTP/2's preface: frames, HPACK,
 * headers, messages, compression. Without threads: the bytes go through a pair of sockets, and the
 * loop takes its turns here. The first byte of the input says in which pieces the rest comes. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handlers/handlers.h"
#include "base/error.h"
#include "server.h"
#include "transport/grpc/grpc_internal.h"
#include "tribo/v1/grasp.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGE_BYTES = 1 << 16, DRAIN_BYTES = 1 << 16, TURNS_AT_THE_END = 3 };

static const uint8_t PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

/* ---- methods: one answers, one chats ---- */

static void echo(td_call *call, td_request *request)
{
    td_call_reply(call, request->message);
    td_request_free(request);
}

static void chat(td_call *call, td_request *request)
{
    td_call_send(call, request->message);
    td_request_free(request);
    td_call_read(call);
}

static void end_well(td_call *call)
{
    td_call_finish(call, TB_OK, NULL, 0);
}

static const td_method METHODS[] = {{.service = "t",
                                     .name = "E",
                                     .input = &tribo__v1__grasp_progress__descriptor,
                                     .output = &tribo__v1__grasp_progress__descriptor,
                                     .message = echo},
                                    {.service = "t",
                                     .name = "C",
                                     .client_streaming = true,
                                     .server_streaming = true,
                                     .input = &tribo__v1__grasp_progress__descriptor,
                                     .output = &tribo__v1__grasp_progress__descriptor,
                                     .message = chat,
                                     .half_closed = end_well,
                                     .cancelled = end_well},
                                    {.name = NULL}};

const td_method *td_methods(void)
{
    return METHODS;
}

const td_method *td_method_find(const char *path)
{
    if (strcmp(path, "/t/E") == 0) return &METHODS[0];
    return strcmp(path, "/t/C") == 0 ? &METHODS[1] : NULL;
}

bool td_auth_quick(td_auth *auth, const char *authorization)
{
    (void)auth;
    (void)authorization;
    return true;
}

tb_status td_auth_admit(td_auth *auth, td_call *call, const char *authorization, bool loopback,
                        double *retry_after, tb_error *error)
{
    (void)auth;
    (void)call;
    (void)authorization;
    (void)loopback;
    (void)retry_after;
    (void)error;
    return TB_OK;
}

/* ---- a server that lives as long as the process ---- */

static td_rpc *make_rpc(void)
{
    static td_config config;
    static td_server server;
    tb_error error = {0};
    config = td_config_defaults();
    config.grpc_address[0] = '\0';
    config.message_bytes = MESSAGE_BYTES;
    server.config = &config;
    if (td_metrics_create(&server.metrics, &error) != TB_OK ||
        td_workers_create(1, 16, &server.workers, &error) != TB_OK ||
        td_rpc_create(&server, &server.rpc, &error) != TB_OK)
        abort();
    server.rpc->workers = server.workers;
    return server.rpc;
}

static void take_turn(rpc_loop *loop, int other)
{
    static uint8_t drain[DRAIN_BYTES];
    rpc_loop_turn(loop);
    while (recv(other, drain, sizeof drain, MSG_DONTWAIT) > 0) continue;
}

/* Sends a piece and has the server read it. */
static void feed(rpc_loop *loop, int other, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size && loop->connections != NULL;) {
        const ssize_t sent = send(other, bytes + at, size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) at += (size_t)sent;
        rpc_connection_ready(loop->connections, EPOLLIN);
        take_turn(loop, other);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static td_rpc *rpc;
    const struct sockaddr_storage nowhere = {.ss_family = AF_UNSPEC};
    int pair[2];
    if (size < 1) return 0;
    if (rpc == NULL) rpc = make_rpc();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) abort();
    rpc_loop *loop = &rpc->loops[0];
    rpc_connection *c = rpc_connection_make(rpc, pair[0], true, &nowhere);
    if (c == NULL) abort();
    c->loop = loop;
    rpc_connection_open(c);
    feed(loop, pair[1], PREFACE, sizeof PREFACE - 1);

    const size_t piece = data[0] == 0 ? size : data[0];
    for (size_t at = 1; at < size; at += piece)
        feed(loop, pair[1], data + at, size - at < piece ? size - at : piece);
    for (int i = 0; i < TURNS_AT_THE_END; i++) take_turn(loop, pair[1]);
    close(pair[1]);
    if (loop->connections != NULL) rpc_connection_close(loop->connections);
    rpc_loop_turn(loop);
    return 0;
}
