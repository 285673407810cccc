/* Services of the gRPC transport beside the daemon's own methods: health, and reflection in both
 * versions. */
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "server/rpc_bench.h"

/* ---- health and reflection ---- */

START_TEST(health_is_checked)
{
    bench b;
    grpc_status_code code;
    bench_open(&b);
    ck_assert_int_eq(check_health(&b.client, "", &code), HEALTH(SERVING));
    ck_assert_int_eq(check_health(&b.client, "tribo.test.Test", &code), HEALTH(SERVING));
    td_rpc_set_serving(b.server.rpc, false);
    ck_assert_int_eq(check_health(&b.client, "", &code), HEALTH(NOT_SERVING));
    ck_assert_int_eq(check_health(&b.client, "tribo.test.Test", &code), HEALTH(NOT_SERVING));
    ck_assert_int_eq(check_health(&b.client, "tribo.test.Nobody", &code), -1);
    ck_assert_int_eq(code, GRPC_STATUS_NOT_FOUND);
    bench_close(&b);
}
END_TEST

static void watch_health(client_call *call, client *c, const char *service)
{
    char name[64];
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    snprintf(name, sizeof name, "%s", service);
    request.service = name;
    call_begin(call, c, "/grpc.health.v1.Health/Watch");
    call_send(call, &request);
    call_half_close(call);
}

static void expect_health(client_call *call, int status)
{
    health *answer = call_receive(call, HEALTH_TYPE);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq((int)answer->status, status);
    free_message(answer);
}

START_TEST(health_is_watched)
{
    bench b;
    client_call call, stranger, cancelled;
    bench_open(&b);
    watch_health(&call, &b.client, "");
    expect_health(&call, HEALTH(SERVING));
    watch_health(&stranger, &b.client, "tribo.test.Nobody");
    expect_health(&stranger, HEALTH(SERVICE_UNKNOWN));
    watch_health(&cancelled, &b.client, "tribo.test.Test");
    expect_health(&cancelled, HEALTH(SERVING));
    call_cancel(&cancelled);
    ck_assert_int_eq(call_status(&cancelled), GRPC_STATUS_CANCELLED);

    td_rpc_set_serving(b.server.rpc, false);
    expect_health(&call, HEALTH(NOT_SERVING));
    td_rpc_set_serving(b.server.rpc, true);
    expect_health(&call, HEALTH(SERVING));
    bench_stop(&b); /* the end is reported too */
    expect_health(&call, HEALTH(NOT_SERVING));
    ck_assert_ptr_null(call_receive(&call, HEALTH_TYPE));
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_UNAVAILABLE);
    call_end(&call);
    call_end(&stranger);
    call_end(&cancelled);
    client_close(&b.client);
}
END_TEST

typedef Grpc__Reflection__V1__ServerReflectionRequest question;
typedef Grpc__Reflection__V1__ServerReflectionResponse reply;
#define ASK(kind)   GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind
#define REPLY(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##kind

/* Asks on an open stream; free the reply. */
static reply *ask(client_call *call, int kind, const char *text)
{
    char copy[128];
    question q = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    snprintf(copy, sizeof copy, "%s", text);
    q.message_request_case =
        (Grpc__Reflection__V1__ServerReflectionRequest__MessageRequestCase)kind;
    q.list_services = copy; /* all of these are strings in one union */
    ck_assert(call_send(call, &q));
    reply *answer =
        call_receive(call, &grpc__reflection__v1__server_reflection_response__descriptor);
    ck_assert_ptr_nonnull(answer);
    ck_assert_str_eq(answer->original_request->list_services, copy);
    return answer;
}

static bool holds(ProtobufCBinaryData file, const char *text)
{
    return memmem(file.data, file.len, text, strlen(text)) != NULL;
}

static void reflect(client *c, const char *path)
{
    static const char *const SYMBOLS[] = {"tribo.v1.Grasp", "tribo.v1.Grasp.EvaluateGrasps",
                                          "tribo.v1.GraspPose", "tribo.v1.GraspVerdict"};
    client_call call;
    call_begin(&call, c, path);
    reply *r = ask(&call, ASK(LIST_SERVICES), "");
    ck_assert_int_eq(r->message_response_case, REPLY(LIST_SERVICES_RESPONSE));
    ck_assert_uint_eq(r->list_services_response->n_service, 4);
    ck_assert_str_eq(r->list_services_response->service[0]->name, "tribo.test.Test");
    free_message(r);

    r = ask(&call, ASK(FILE_BY_FILENAME), "tribo/v1/common.proto");
    ck_assert_int_eq(r->message_response_case, REPLY(FILE_DESCRIPTOR_RESPONSE));
    ck_assert_uint_eq(r->file_descriptor_response->n_file_descriptor_proto, 1);
    ck_assert(holds(r->file_descriptor_response->file_descriptor_proto[0], "Certificate"));
    free_message(r);

    for (size_t i = 0; i < sizeof SYMBOLS / sizeof SYMBOLS[0]; i++) {
        r = ask(&call, ASK(FILE_CONTAINING_SYMBOL), SYMBOLS[i]);
        ck_assert_int_eq(r->message_response_case, REPLY(FILE_DESCRIPTOR_RESPONSE));
        /* the file and its imports */
        ck_assert_uint_ge(r->file_descriptor_response->n_file_descriptor_proto, 3);
        ck_assert(
            holds(r->file_descriptor_response->file_descriptor_proto[0], "tribo/v1/grasp.proto"));
        free_message(r);
    }
    r = ask(&call, ASK(ALL_EXTENSION_NUMBERS_OF_TYPE), "tribo.v1.Pose");
    ck_assert_int_eq(r->message_response_case, REPLY(ALL_EXTENSION_NUMBERS_RESPONSE));
    ck_assert_uint_eq(r->all_extension_numbers_response->n_extension_number, 0);
    free_message(r);
    const int kinds[] = {ASK(FILE_BY_FILENAME), ASK(FILE_CONTAINING_SYMBOL),
                         ASK(ALL_EXTENSION_NUMBERS_OF_TYPE)};
    for (size_t i = 0; i < 3; i++) {
        r = ask(&call, kinds[i], "tribo.v1.Nothing");
        ck_assert_int_eq(r->message_response_case, REPLY(ERROR_RESPONSE));
        ck_assert_int_eq(r->error_response->error_code, GRPC_STATUS_NOT_FOUND);
        free_message(r);
    }
    call_half_close(&call);
    ck_assert_int_eq(call_status(&call), GRPC_STATUS_OK);
    call_end(&call);
}

START_TEST(reflection_tells_services_and_files)
{
    bench b;
    bench_open(&b);
    reflect(&b.client, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    reflect(&b.client, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    bench_close(&b);
}
END_TEST

TEST_MAIN(health_is_checked, health_is_watched, reflection_tells_services_and_files)
