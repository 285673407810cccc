/* The C client's unary calls against a daemon in this process: answers, errors, deadlines, keys,
 * TLS, and what is tried again and what never is. */
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "auth.h"
#include "certificate_util.h"
#include "client_util.h"

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

    /* nobody asks for reasons */
    TEST_STATUS(step_session(client, none, 1, 0, NULL, NULL), TB_NOT_FOUND, NULL);

    /* what no daemon answers is told with method and address */
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

/* ---- what is tried again ---- */

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

    /* one that waits as it was told gets its answer, and soon its own deadline */
    options.attempts = 100;
    TEST_OK(tbc_connect(&options, &client, &error), &error);
    for (int i = 0; i < 3; i++)
        TEST_STATUS(step_session(client, session, 1, 0, NULL, &error), TB_NOT_FOUND, &error);
    tbc_disconnect(client);
    daemon_stop(server);
}
END_TEST

/* A gRPC server that answers every call with UNAVAILABLE and counts them. */
typedef struct refuser {
    grpc_server *server;
    grpc_completion_queue *queue;
    char address[32];
    pthread_t thread;
    atomic_int calls;
} refuser;

static void refuse(refuser *r, grpc_call *call)
{
    grpc_op ops[3];
    int cancelled = 0;
    grpc_slice text = grpc_slice_from_static_string("not now");
    memset(ops, 0, sizeof ops);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[1].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    ops[1].data.send_status_from_server.status = GRPC_STATUS_UNAVAILABLE;
    ops[1].data.send_status_from_server.status_details = &text;
    ops[2].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
    ops[2].data.recv_close_on_server.cancelled = &cancelled;
    atomic_fetch_add(&r->calls, 1);
    ck_assert_int_eq(grpc_call_start_batch(call, ops, 3, call, NULL), GRPC_CALL_OK);
    grpc_completion_queue_next(r->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_call_unref(call);
}

static void *serve_refusals(void *context)
{
    refuser *r = context;
    for (;;) {
        grpc_call *call = NULL;
        grpc_call_details details;
        grpc_metadata_array metadata;
        grpc_call_details_init(&details);
        grpc_metadata_array_init(&metadata);
        if (grpc_server_request_call(r->server, &call, &details, &metadata, r->queue, r->queue,
                                     r) != GRPC_CALL_OK)
            break;
        const grpc_event event =
            grpc_completion_queue_next(r->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        grpc_call_details_destroy(&details);
        grpc_metadata_array_destroy(&metadata);
        if (event.type != GRPC_OP_COMPLETE || !event.success) break;
        refuse(r, call);
    }
    return NULL;
}

static void refuser_start(refuser *r)
{
    memset(r, 0, sizeof *r);
    grpc_init();
    r->server = grpc_server_create(NULL, NULL);
    r->queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(r->server, r->queue, NULL);
    grpc_server_credentials *open = grpc_insecure_server_credentials_create();
    const int port = grpc_server_add_http2_port(r->server, "127.0.0.1:0", open);
    grpc_server_credentials_release(open);
    ck_assert_int_gt(port, 0);
    snprintf(r->address, sizeof r->address, "127.0.0.1:%d", port);
    grpc_server_start(r->server);
    ck_assert_int_eq(pthread_create(&r->thread, NULL, serve_refusals, r), 0);
}

static void refuser_stop(refuser *r)
{
    grpc_server_shutdown_and_notify(r->server, r->queue, &r->calls);
    pthread_join(r->thread, NULL);
    grpc_completion_queue_shutdown(r->queue);
    while (grpc_completion_queue_next(r->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN) {
    }
    grpc_server_destroy(r->server);
    grpc_completion_queue_destroy(r->queue);
    grpc_shutdown();
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

    TEST_OK(td_auth_create_key(server->db, "planner", TD_SCOPE_RUN, 0, 0, key, &error), &error);
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
    /* handshakes that were broken off are cleared away in the background: a leak checker at the end
     * of the process must not find them half gone */
    const struct timespec moment = {0, 10000000};
    for (int i = 0; i < 500 && grpc_is_initialized(); i++) nanosleep(&moment, NULL);
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
