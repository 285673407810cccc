/* The C client's unary calls against a daemon in this process: answers, errors, deadlines, keys,
 * TLS, and which calls are retried. */
#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

#include "call/auth.h"
#include "step/certificate_util.h"
#include "client/client_util.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

typedef struct stepper {
    tbc_client *client;
    char session[33];
    pthread_t thread;
    tb_status status;
    int64_t done;
} stepper;

static void *step_often(void *context)
{
    stepper *s = context;
    for (int i = 0; i < 20 && s->status == TB_OK; i++)
        s->status = step_session(s->client, s->session, 2, 0, &s->done, NULL);
    return NULL;
}

START_TEST(calls_are_answered_from_many_threads)
{
    enum { THREADS = 24 };
    static stepper steppers[THREADS];
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    for (int i = 0; i < THREADS; i++) {
        steppers[i].client = client;
        create_session(client, steppers[i].session);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&steppers[i].thread, NULL, step_often, &steppers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(steppers[i].thread, NULL);
        TEST_OK(steppers[i].status, NULL);
        ck_assert_int_eq(steppers[i].done, 40);
    }
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

START_TEST(errors_tell_field_line_and_server)
{
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    char session[33], none[] = "00000000000000000000000000000000", scene[65];
    tb_error error = {0};
    create_session(client, session);

    TEST_STATUS(step_session(client, session, -5, 0, NULL, &error), TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(error.field, "steps");
    ck_assert_ptr_nonnull(strstr(error.message, "-5"));
    ck_assert_int_eq((int)error.status, TB_INVALID_ARGUMENT);

    TEST_STATUS(step_session(client, none, 1, 0, NULL, &error), TB_NOT_FOUND, NULL);
    ck_assert_ptr_nonnull(strstr(error.message, none));

    TEST_STATUS(create_scene(client, "<mujoco>\n<worldbody>\n<geom type=\"blob\"/>\n</mujoco>",
                             scene, &error),
                TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(error.file, "ball.xml");
    ck_assert_int_gt(error.line, 0);

    /* no reasons wanted */
    TEST_STATUS(step_session(client, none, 1, 0, NULL, NULL), TB_NOT_FOUND, NULL);

    /* an error without a daemon's answer names method and address */
    Tribo__V1__GetServerInfoRequest request = TRIBO__V1__GET_SERVER_INFO_REQUEST__INIT;
    Tribo__V1__GetServerInfoResponse *answer = NULL;
    TEST_STATUS(TBC_CALL(client, "tribo.v1.Simulation/Dance", &request, get_server_info_response,
                         &answer, &error),
                TB_UNSUPPORTED, NULL);
    ck_assert_ptr_null(answer);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

START_TEST(nobody_at_the_address_is_told_with_the_address)
{
    tbc_client *client = NULL;
    tb_error error = {0};
    tbc_options options = tbc_options_defaults();
    options.address = "unix:/tmp/no-such-folder/tribo.sock";
    options.connect_timeout = 0.2;
    TEST_STATUS(tbc_connect(&options, &client, &error), TB_UNAVAILABLE, NULL);
    ck_assert_ptr_null(client);
    ck_assert_ptr_nonnull(strstr(error.message, options.address));
    ck_assert_str_eq(error.field, "address");

    options.address = "";
    TEST_STATUS(tbc_connect(&options, &client, &error), TB_INVALID_ARGUMENT, NULL);
    options.address = "127.0.0.1:1";
    options.client_pem = "x";
    TEST_STATUS(tbc_connect(&options, &client, &error), TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(error.field, "client_key");

    /* without waiting the first call finds out */
    options = tbc_options_defaults();
    options.address = "unix:/tmp/no-such-folder/tribo.sock";
    options.connect_timeout = 0;
    options.attempts = 1;
    char session[33] = "00000000000000000000000000000000";
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    TEST_STATUS(step_session(client, session, 1, 0, NULL, &error), TB_UNAVAILABLE, NULL);
    ck_assert_ptr_nonnull(strstr(error.message, options.address));
    ck_assert_ptr_nonnull(strstr(error.message, "Step"));
    tbc_disconnect(client);
}
END_TEST

START_TEST(a_deadline_ends_a_call_and_the_server_stops_too)
{
    const td_config config = daemon_config();
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    char session[33];
    int64_t done = 0;
    create_session(client, session);
    TEST_STATUS(step_session(client, session, config.steps_per_request, 0.05, NULL, &error),
                TB_DEADLINE_EXCEEDED, NULL);
    /* of the client's own clock and the daemon's, whichever was first */
    ck_assert(strstr(error.message, "Step") || strstr(error.message, "the deadline passed"));
    /* the session is free again long before so many steps could have been done */
    TEST_OK(step_session(client, session, 1, 0, &done, &error), &error);
    ck_assert_int_lt(done, config.steps_per_request);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

/* ---- retries ---- */

START_TEST(a_refusal_with_a_time_to_come_back_is_tried_again)
{
    td_config config = daemon_config();
    config.calls_per_second = 20;
    td_server *server = daemon_start(&config);
    tbc_client *client = NULL;
    tb_error error = {0};
    tbc_options options = tbc_options_defaults();
    options.address = td_server_grpc_address(server);
    options.attempts = 1;
    char session[33] = "00000000000000000000000000000000";
    tb_status status = TB_NOT_FOUND;
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    for (int i = 0; i < 2000 && status == TB_NOT_FOUND; i++)
        status = step_session(client, session, 1, 0, NULL, &error);
    TEST_STATUS(status, TB_RESOURCE_EXHAUSTED, &error);
    tbc_disconnect(client);

    /* a call that waits as long as the answer says succeeds, and later its own deadline ends it */
    options.attempts = 100;
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    for (int i = 0; i < 3; i++)
        TEST_STATUS(step_session(client, session, 1, 0, NULL, &error), TB_NOT_FOUND, &error);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

/* A gRPC server that answers every call with UNAVAILABLE and counts them; one connection at a
 * time. */
typedef struct refuser {
    int listener;
    char address[32];
    pthread_t thread;
    atomic_int calls;
    atomic_bool stop;
} refuser;

static nghttp2_nv text_header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int refuse(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    refuser *r = context;
    const nghttp2_nv headers[] = {
        text_header(":status", "200"), text_header("content-type", "application/grpc"),
        text_header("grpc-status", "14"), text_header("grpc-message", "not%20now")};
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    atomic_fetch_add(&r->calls, 1);
    return nghttp2_submit_response(session, frame->hd.stream_id, headers, 4, NULL);
}

static void serve_connection(refuser *r, int wire)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_session *session = NULL;
    uint8_t in[4096];
    ck_assert_int_eq(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, refuse);
    ck_assert_int_eq(nghttp2_session_server_new(&session, callbacks, r), 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
    for (;;) {
        const uint8_t *out = NULL;
        for (ssize_t size; (size = nghttp2_session_mem_send(session, &out)) > 0;)
            if (send(wire, out, (size_t)size, MSG_NOSIGNAL) != size) break;
        const ssize_t size = recv(wire, in, sizeof in, 0);
        if (size <= 0 || nghttp2_session_mem_recv(session, in, (size_t)size) < 0) break;
    }
    nghttp2_session_del(session);
}

static void *serve_refusals(void *context)
{
    refuser *r = context;
    while (!atomic_load(&r->stop)) {
        const int wire = accept(r->listener, NULL, NULL);
        if (wire < 0) break;
        serve_connection(r, wire);
        close(wire);
    }
    return NULL;
}

static void refuser_start(refuser *r)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    memset(r, 0, sizeof *r);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(r->listener, (const struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(r->listener, 8), 0);
    ck_assert_int_eq(getsockname(r->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(r->address, sizeof r->address, "127.0.0.1:%d", ntohs(address.sin_port));
    ck_assert_int_eq(pthread_create(&r->thread, NULL, serve_refusals, r), 0);
}

static void refuser_stop(refuser *r)
{
    atomic_store(&r->stop, true);
    shutdown(r->listener, SHUT_RDWR);
    pthread_join(r->thread, NULL);
    close(r->listener);
}

START_TEST(only_methods_that_read_are_repeated_blindly)
{
    refuser r;
    tbc_client *client = NULL;
    tb_error error = {0};
    tbc_options options = tbc_options_defaults();
    refuser_start(&r);
    options.address = r.address;
    options.attempts = 3;
    TEST_OK(tbc_connect(&options, &client, &error), &error);

    char session[33] = "00000000000000000000000000000000";
    TEST_STATUS(step_session(client, session, 1, 0, NULL, &error), TB_UNAVAILABLE, NULL);
    ck_assert_int_eq(atomic_load(&r.calls), 1);

    Tribo__V1__GetServerInfoRequest request = TRIBO__V1__GET_SERVER_INFO_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    TEST_STATUS(tbc_call(client, "tribo.v1.Simulation/GetServerInfo", &request.base,
                         &tribo__v1__get_server_info_response__descriptor, 0, &answer, &error),
                TB_UNAVAILABLE, NULL);
    ck_assert_int_eq(atomic_load(&r.calls), 4);
    ck_assert_ptr_nonnull(strstr(error.message, "not now"));

    /* the deadline holds for all attempts and pauses together */
    tbc_disconnect(client);
    options.attempts = 1000;
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    const double begun = now();
    const tb_status status =
        tbc_call(client, "tribo.v1.Simulation/GetServerInfo", &request.base,
                 &tribo__v1__get_server_info_response__descriptor, 1, &answer, &error);
    ck_assert(status == TB_UNAVAILABLE || status == TB_DEADLINE_EXCEEDED);
    ck_assert(now() - begun < 10);
    tbc_disconnect(client);
    refuser_stop(&r);
}
END_TEST

/* ---- keys and TLS ---- */

START_TEST(a_key_opens_what_anonymous_callers_may_not)
{
    td_config config = daemon_config();
    config.anonymous = TD_SCOPE_NONE;
    char folder[] = "/tmp/test_client_XXXXXX", key[128], scene[65];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(config.data, sizeof config.data, "%s", folder);
    td_server *server = daemon_start(&config);
    tbc_client *client = client_of(server);
    tb_error error = {0};
    TEST_STATUS(create_scene(client, BALL, scene, &error), TB_UNAUTHENTICATED, NULL);
    tbc_disconnect(client);

    TEST_OK(td_auth_create_key(
                server->db, "planner",
                &(td_key_terms){.scope = TD_SCOPE_RUN, .calls_per_second = 0, .sessions = 0}, key,
                &error),
            &error);
    tbc_options options = tbc_options_defaults();
    options.address = td_server_grpc_address(server);
    options.api_key = key;
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    memset(key, 'x', strlen(key)); /* the client has a copy */
    TEST_OK(create_scene(client, BALL, scene, &error), &error);
    tbc_disconnect(client);
    options.api_key = "tribo_00000000_hushhush";
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    TEST_STATUS(create_scene(client, BALL, scene, &error), TB_UNAUTHENTICATED, NULL);
    ck_assert_ptr_null(strstr(error.message, "hush"));
    tbc_disconnect(client);
    daemon_stop(server);
    remove_folder(folder);
}
END_TEST

START_TEST(tls_and_mutual_tls_are_spoken)
{
    char folder[] = "/tmp/test_client_XXXXXX";
    char root[CERTIFICATE_PEM_SIZE], own[CERTIFICATE_PEM_SIZE], own_key[CERTIFICATE_PEM_SIZE];
    char strange[CERTIFICATE_PEM_SIZE], scene[65];
    authority ca = certificate_make("authority", NULL), other = certificate_make("other", NULL);
    authority host = certificate_make("localhost", &ca), me = certificate_make("me", &ca);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    td_config config = daemon_config();
    snprintf(config.tls_certificate, sizeof config.tls_certificate, "%s/certificate", folder);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/key", folder);
    snprintf(config.tls_client_ca, sizeof config.tls_client_ca, "%s/ca", folder);
    certificate_pem(&host, own);
    certificate_write(config.tls_certificate, own);
    certificate_key_pem(&host, own);
    certificate_write(config.tls_key, own);
    certificate_pem(&ca, root);
    certificate_write(config.tls_client_ca, root);
    certificate_pem(&other, strange);
    certificate_pem(&me, own);
    certificate_key_pem(&me, own_key);

    td_server *server = daemon_start(&config);
    tbc_client *client = NULL;
    tb_error error = {0};
    tbc_options options = tbc_options_defaults();
    options.address = td_server_grpc_address(server);
    options.root_pem = root;
    options.client_pem = own;
    options.client_key = own_key;
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    TEST_OK(create_scene(client, BALL, scene, &error), &error);
    tbc_disconnect(client);

    /* a server that is not trusted; plain text where TLS is spoken */
    options.connect_timeout = 0.5;
    options.root_pem = strange;
    TEST_STATUS(tbc_connect(&options, &client, &error), TB_UNAVAILABLE, NULL);
    ck_assert_ptr_nonnull(strstr(error.message, "TLS"));
    options.root_pem = options.client_pem = options.client_key = NULL;
    TEST_STATUS(tbc_connect(&options, &client, &error), TB_UNAVAILABLE, NULL);
    daemon_stop(server);
    certificate_free(&ca), certificate_free(&other), certificate_free(&host), certificate_free(&me);
    remove_folder(folder);
}
END_TEST

TEST_MAIN(calls_are_answered_from_many_threads, errors_tell_field_line_and_server,
          nobody_at_the_address_is_told_with_the_address,
          a_deadline_ends_a_call_and_the_server_stops_too,
          a_refusal_with_a_time_to_come_back_is_tried_again,
          only_methods_that_read_are_repeated_blindly, a_key_opens_what_anonymous_callers_may_not,
          tls_and_mutual_tls_are_spoken)
