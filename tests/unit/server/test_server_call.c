/* Calls without a transport: their life, the bounds of unpacking, and the content of errors. */
#include <time.h>

#include "google/protobuf/any.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "wire/scan.h"
#include "server.h"
#include "test_util.h"
#include "tribo/v1/grasp.pb-c.h"

enum { MIB = 1 << 20 };

typedef Tribo__V1__EvaluateGraspsRequest grasps_request;
typedef Tribo__V1__EvaluateGraspsResponse grasps_response;

/* ---- a transport that counts, and a method that takes notes ---- */

typedef struct seen {
    int sent, finished, reads, destroyed;
    int messages, cancelled, states_destroyed;
    tb_status status;
} seen;

typedef struct noted_call {
    td_call base;
    seen *seen;
} noted_call;

static seen *of(td_call *call)
{
    return ((noted_call *)call)->seen;
}

static void noted_send(td_call *call, const ProtobufCMessage *response)
{
    ck_assert_ptr_eq(response->descriptor, call->method->output);
    of(call)->sent++;
}

static void noted_finish(td_call *call, tb_status status, const tb_error *error, double retry)
{
    (void)error;
    (void)retry;
    of(call)->finished++;
    of(call)->status = status;
}

static void noted_read(td_call *call)
{
    of(call)->reads++;
}

static void noted_destroy(td_call *call)
{
    of(call)->destroyed++;
}

static const td_call_transport TRANSPORT = {.send = noted_send,
                                            .finish = noted_finish,
                                            .read = noted_read,
                                            .destroy = noted_destroy,
                                            .name = "test"};

static void take_message(td_call *call, td_request *request)
{
    of(call)->messages++;
    td_request_free(request);
}

static void take_cancel(td_call *call)
{
    of(call)->cancelled++;
}

static void destroy_state(void *state)
{
    ((seen *)state)->states_destroyed++;
}

static const td_method METHOD = {.service = "tribo.v1.Grasp",
                                 .name = "EvaluateGrasps",
                                 .server_streaming = true,
                                 .input = &tribo__v1__evaluate_grasps_request__descriptor,
                                 .output = &tribo__v1__evaluate_grasps_response__descriptor,
                                 .message = take_message,
                                 .cancelled = take_cancel};

typedef struct world {
    td_config config;
    td_server server;
    seen seen;
    noted_call call;
} world;

static void world_make(world *w)
{
    memset(w, 0, sizeof *w);
    w->config.message_bytes = 4 * MIB;
    w->config.unpack_bytes = 8 * MIB;
    w->config.nesting = 16;
    w->server.config = &w->config;
    tb_error error = {0};
    TEST_OK(td_metrics_create(&w->server.metrics, &error), &error);
    td_call_init(&w->call.base, &TRANSPORT, &w->server);
    w->call.base.method = &METHOD;
    w->call.seen = &w->seen;
}

static void world_free(world *w)
{
    td_metrics_destroy(w->server.metrics);
}

static tb_status unpack(world *w, const uint8_t *bytes, size_t size, td_request **request,
                        tb_error *error)
{
    return td_request_unpack(&w->server, METHOD.input, bytes, size, request, error);
}

/* ---- encoded messages ---- */

typedef struct buffer {
    uint8_t *bytes;
    size_t size;
} buffer;

/* A request that uses strings, bytes, packed and repeated fields, and four levels of messages. */
static buffer encode_example(void)
{
    char path[] = "cup.obj", main_path[] = "hand.xml", name[] = "über";
    uint8_t data[100] = {1, 2, 3};
    double position[] = {1, 2, 3};
    Tribo__V1__SceneFile file = TRIBO__V1__SCENE_FILE__INIT, *files[] = {&file, &file};
    Tribo__V1__GraspAsset asset = TRIBO__V1__GRASP_ASSET__INIT;
    Tribo__V1__GraspObject object = TRIBO__V1__GRASP_OBJECT__INIT;
    Tribo__V1__Pose pose = TRIBO__V1__POSE__INIT;
    Tribo__V1__GraspPose place = TRIBO__V1__GRASP_POSE__INIT, *places[40];
    grasps_request request = TRIBO__V1__EVALUATE_GRASPS_REQUEST__INIT;
    file.path = path;
    asset.main_case = TRIBO__V1__GRASP_ASSET__MAIN_DATA;
    asset.data = (ProtobufCBinaryData){sizeof data, data};
    asset.path = main_path;
    asset.n_files = 2;
    asset.files = files;
    object.asset = &asset;
    pose.n_position = 3;
    pose.position = position;
    place.pose = &pose;
    place.name = name;
    for (size_t i = 0; i < 40; i++) places[i] = &place;
    request.object = &object;
    request.n_poses = 40;
    request.poses = places;
    buffer b = {NULL, tribo__v1__evaluate_grasps_request__get_packed_size(&request)};
    b.bytes = malloc(b.size);
    ck_assert_ptr_nonnull(b.bytes);
    tribo__v1__evaluate_grasps_request__pack(&request, b.bytes);
    return b;
}

/* The same few bytes again and again. */
static buffer repeat(const uint8_t *unit, size_t size, size_t times)
{
    buffer b = {malloc(size * times), size * times};
    ck_assert_ptr_nonnull(b.bytes);
    for (size_t i = 0; i < times; i++) memcpy(b.bytes + i * size, unit, size);
    return b;
}

/* ---- unpacking ---- */

START_TEST(a_request_is_unpacked)
{
    world w;
    td_request *request = NULL;
    tb_error error = {0};
    world_make(&w);
    buffer b = encode_example();
    TEST_OK(unpack(&w, b.bytes, b.size, &request, &error), &error);
    const grasps_request *message = (const grasps_request *)request->message;
    ck_assert_uint_eq(message->n_poses, 40);
    ck_assert_str_eq(message->poses[39]->name, "über");
    ck_assert_str_eq(message->object->asset->files[1]->path, "cup.obj");
    ck_assert_uint_eq(message->object->asset->data.len, 100);
    ck_assert_uint_eq(message->object->asset->data.data[2], 3);
    td_request_free(request);
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(an_empty_request_is_unpacked)
{
    world w;
    td_request *request = NULL;
    tb_error error = {0};
    world_make(&w);
    TEST_OK(unpack(&w, (const uint8_t *)"", 0, &request, &error), &error);
    ck_assert_uint_eq(((grasps_request *)request->message)->n_poses, 0);
    td_request_free(request);
    td_request_free(NULL);
    world_free(&w);
}
END_TEST

START_TEST(what_the_scan_foretells_is_enough)
{
    world w;
    tb_error error = {0};
    world_make(&w);
    buffer b = encode_example();
    /* unknown fields of all kinds too: varint, 64 bits, 32 bits, delimited, then many */
    const uint8_t unknown[] = {0x98, 0x06, 0x01, 0x99, 0x06, 1,    2,   3, 4,
                               5,    6,    7,    8,    0x9d, 0x06, 1,   2, 3,
                               4,    0x9a, 0x06, 0x03, 0x61, 0x62, 0x63};
    for (size_t times = 0; times < 200; times += 7) {
        td_request *request = NULL;
        buffer tail = repeat(unknown, sizeof unknown, times + 1);
        buffer all = {malloc(b.size + tail.size), b.size + tail.size};
        memcpy(all.bytes, b.bytes, b.size);
        memcpy(all.bytes + b.size, tail.bytes, tail.size);
        size_t memory = 0;
        TEST_OK(td_scan(METHOD.input, all.bytes, all.size, 16, &memory, &error), &error);
        ck_assert_uint_lt(memory, 60 * all.size);
        w.config.unpack_bytes = memory;
        TEST_OK(unpack(&w, all.bytes, all.size, &request, &error), &error);
        td_request_free(request);
        w.config.unpack_bytes = memory / 4;
        TEST_STATUS(unpack(&w, all.bytes, all.size, &request, &error), TB_RESOURCE_EXHAUSTED, NULL);
        free(all.bytes);
        free(tail.bytes);
    }
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(every_cut_gives_a_status)
{
    world w;
    world_make(&w);
    buffer b = encode_example();
    int malformed = 0;
    for (size_t size = 0; size < b.size; size++) {
        td_request *request = NULL;
        tb_error error = {0};
        uint8_t *cut = malloc(size + 1); /* so that a sanitizer sees a read beyond */
        memcpy(cut, b.bytes, size);
        const tb_status status = unpack(&w, cut, size, &request, &error);
        ck_assert(status == TB_OK || status == TB_INVALID_ARGUMENT);
        ck_assert_int_eq(status == TB_OK, request != NULL);
        malformed += status != TB_OK;
        td_request_free(request);
        free(cut);
    }
    ck_assert_int_gt(malformed, (int)b.size / 2);
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(every_flipped_byte_gives_a_status)
{
    world w;
    world_make(&w);
    buffer b = encode_example();
    for (size_t i = 0; i < b.size; i++) {
        for (unsigned flip = 1; flip < 256; flip *= 2) {
            td_request *request = NULL;
            tb_error error = {0};
            b.bytes[i] ^= (uint8_t)flip;
            const tb_status status = unpack(&w, b.bytes, b.size, &request, &error);
            ck_assert(status == TB_OK || status == TB_INVALID_ARGUMENT);
            td_request_free(request);
            b.bytes[i] ^= (uint8_t)flip;
        }
    }
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(a_message_that_is_too_large_is_refused)
{
    world w;
    td_request *request = NULL;
    tb_error error = {0};
    world_make(&w);
    buffer b = encode_example();
    w.config.message_bytes = b.size - 1;
    TEST_STATUS(unpack(&w, b.bytes, b.size, &request, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_ptr_null(request);
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(a_message_that_is_too_deep_is_refused)
{
    world w;
    td_request *request = NULL;
    tb_error error = {0};
    world_make(&w);
    buffer b = encode_example();
    w.config.nesting = 4; /* request, object, asset, file */
    TEST_OK(unpack(&w, b.bytes, b.size, &request, &error), &error);
    td_request_free(request);
    w.config.nesting = 3;
    TEST_STATUS(unpack(&w, b.bytes, b.size, &request, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "object.asset.files");
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(a_bomb_of_unknown_fields_is_refused)
{
    world w;
    td_request *request = NULL;
    tb_error error = {0};
    const uint8_t unit[] = {0x78, 0x00}; /* field 15, varint 0: two bytes become 96 */
    world_make(&w);
    buffer b = repeat(unit, sizeof unit, MIB / sizeof unit);
    TEST_STATUS(unpack(&w, b.bytes, b.size, &request, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_ptr_null(request);
    ck_assert_ptr_nonnull(strstr(error.message, "8388608 bytes"));
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(a_bomb_of_merges_is_cut_off)
{
    world w;
    td_request *request = NULL;
    tb_error error = {0};
    /* protocol { shakes {} }, again and again: each is merged with all before it */
    const uint8_t unit[] = {0x22, 0x02, 0x52, 0x00};
    world_make(&w);
    buffer b = repeat(unit, sizeof unit, 12000);
    size_t memory = 0;
    TEST_OK(td_scan(METHOD.input, b.bytes, b.size, 16, &memory, &error), &error);
    ck_assert_uint_lt(memory, w.config.unpack_bytes); /* the scan alone would let it pass */
    const clock_t begin = clock();
    TEST_STATUS(unpack(&w, b.bytes, b.size, &request, &error), TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_ptr_null(request);
    ck_assert_double_lt((double)(clock() - begin) / CLOCKS_PER_SEC, 2.0);
    free(b.bytes);

    /* a few are fine, and merged as proto3 says */
    b = repeat(unit, sizeof unit, 3);
    TEST_OK(unpack(&w, b.bytes, b.size, &request, &error), &error);
    ck_assert_uint_eq(((grasps_request *)request->message)->protocol->n_shakes, 3);
    td_request_free(request);
    free(b.bytes);
    world_free(&w);
}
END_TEST

START_TEST(text_must_be_utf8)
{
    /* poses { name: ... } */
    const struct {
        uint8_t bytes[8];
        size_t size;
        bool good;
    } cases[] = {
        {{0x1a, 4, 0x0a, 2, 'a', 'b'}, 6, true},
        {{0x1a, 4, 0x0a, 2, 0xc3, 0xbc}, 6, true},
        {{0x1a, 6, 0x0a, 4, 0xf0, 0x9f, 0x92, 0xa1}, 8, true},
        {{0x1a, 4, 0x0a, 2, 'a', 0}, 6, false},                /* ends in the middle in C */
        {{0x1a, 4, 0x0a, 2, 'a', 0xff}, 6, false},             /* no UTF-8 at all */
        {{0x1a, 4, 0x0a, 2, 0xc0, 0x80}, 6, false},            /* overlong */
        {{0x1a, 5, 0x0a, 3, 0xed, 0xa0, 0x80}, 7, false},      /* surrogate */
        {{0x1a, 4, 0x0a, 2, 0xe2, 0x82}, 6, false},            /* cut */
        {{0x1a, 6, 0x0a, 4, 0xf4, 0x90, 0x80, 0x80}, 8, false} /* beyond U+10FFFF */
    };
    world w;
    world_make(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        td_request *request = NULL;
        tb_error error = {0};
        const tb_status status = unpack(&w, cases[i].bytes, cases[i].size, &request, &error);
        ck_assert_int_eq(status, cases[i].good ? TB_OK : TB_INVALID_ARGUMENT);
        if (!cases[i].good) ck_assert_str_eq(error.field, "poses.name");
        td_request_free(request);
    }
    world_free(&w);
}
END_TEST

START_TEST(a_request_can_be_made_by_hand)
{
    world w;
    td_request *request = NULL;
    tb_error error = {0};
    world_make(&w);
    w.config.unpack_bytes = 65536;
    TEST_OK(td_request_create(&w.server, METHOD.input, &request, &error), &error);
    ck_assert_ptr_eq(request->message->descriptor, METHOD.input);
    size_t taken = 0;
    for (unsigned char *p; (p = td_request_allocate(request, 1000)) != NULL; taken += 1000) {
        for (size_t i = 0; i < 1000; i++) ck_assert_uint_eq(p[i], 0);
        memset(p, 0xAA, 1000);
    }
    ck_assert_uint_gt(taken, 60000);
    ck_assert_uint_le(taken, 65536);
    ck_assert_ptr_null(td_request_allocate(request, SIZE_MAX));
    td_request_free(request);
    w.config.unpack_bytes = 16;
    TEST_STATUS(td_request_create(&w.server, METHOD.input, &request, &error), TB_RESOURCE_EXHAUSTED,
                &error);
    world_free(&w);
}
END_TEST

/* ---- the life of a call ---- */

static td_request *empty_request(world *w)
{
    td_request *request = NULL;
    tb_error error = {0};
    TEST_OK(td_request_create(&w->server, METHOD.input, &request, &error), &error);
    return request;
}

START_TEST(a_call_ends_once)
{
    world w;
    grasps_response response = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__INIT;
    world_make(&w);
    td_call *call = &w.call.base;
    call->state = &w.seen;
    call->destroy_state = destroy_state;
    td_call_dispatch(call, empty_request(&w));
    ck_assert_int_eq(w.seen.messages, 1);
    ck_assert_int_eq(td_metrics_get(w.server.metrics, TD_METRIC_CALLS_IN_FLIGHT), 1);
    td_call_send(call, &response.base);
    td_call_read(call);
    ck_assert_int_eq(td_call_queued(call), 1);
    td_call_reply(call, &response.base);
    td_call_finish(call, TB_INTERNAL, NULL, 0);
    td_call_send(call, &response.base);
    td_call_dispatch(call, empty_request(&w)); /* too late */
    ck_assert_int_eq(w.seen.sent, 2);
    ck_assert_int_eq(w.seen.finished, 1);
    ck_assert_int_eq(w.seen.status, TB_OK);
    ck_assert_int_eq(w.seen.messages, 1);
    ck_assert_int_eq(w.seen.reads, 1);
    ck_assert_int_eq(td_metrics_get(w.server.metrics, TD_METRIC_CALLS_IN_FLIGHT), 0);
    td_call_hold(call);
    td_call_release(call);
    ck_assert_int_eq(w.seen.destroyed, 0);
    td_call_release(call);
    ck_assert_int_eq(w.seen.destroyed, 1);
    ck_assert_int_eq(w.seen.states_destroyed, 1);
    size_t size = 0;
    char *text = td_metrics_text(w.server.metrics, &size);
    ck_assert_ptr_nonnull(strstr(text, "EvaluateGrasps"));
    ck_assert_ptr_nonnull(strstr(text, "\"test\""));
    free(text);
    world_free(&w);
}
END_TEST

START_TEST(a_cancelled_call_tells_its_method_once)
{
    world w;
    grasps_response response = TRIBO__V1__EVALUATE_GRASPS_RESPONSE__INIT;
    world_make(&w);
    td_call *call = &w.call.base;
    td_call_dispatch(call, empty_request(&w));
    ck_assert(td_call_wanted(call, td_monotonic_ns()));
    td_call_cancel(call);
    td_call_cancel(call);
    ck_assert(!td_call_wanted(call, td_monotonic_ns()));
    ck_assert_int_eq(w.seen.cancelled, 1);
    ck_assert_int_eq(w.seen.finished, 0); /* that is the method's */
    td_call_send(call, &response.base);
    ck_assert_int_eq(w.seen.sent, 0);
    td_call_finish(call, TB_CANCELLED, NULL, 0);
    ck_assert_int_eq(w.seen.finished, 1);
    ck_assert_int_eq(td_metrics_get(w.server.metrics, TD_METRIC_CALLS_IN_FLIGHT), 0);
    world_free(&w);
}
END_TEST

START_TEST(a_call_cancelled_before_its_message_ends_by_itself)
{
    world w;
    world_make(&w);
    td_call *call = &w.call.base;
    td_call_cancel(call);
    ck_assert_int_eq(w.seen.finished, 1);
    ck_assert_int_eq(w.seen.status, TB_CANCELLED);
    td_call_dispatch(call, empty_request(&w));
    ck_assert_int_eq(w.seen.messages + w.seen.cancelled, 0);
    ck_assert_int_eq(td_metrics_get(w.server.metrics, TD_METRIC_CALLS_IN_FLIGHT), 0);
    world_free(&w);
}
END_TEST

START_TEST(a_call_past_its_deadline_is_not_begun)
{
    world w;
    world_make(&w);
    td_call *call = &w.call.base;
    call->deadline_ns = call->arrival_ns;
    td_call_dispatch(call, empty_request(&w));
    ck_assert_int_eq(w.seen.messages, 0);
    ck_assert_int_eq(w.seen.status, TB_DEADLINE_EXCEEDED);
    world_free(&w);
}
END_TEST

START_TEST(a_refused_message_ends_the_call_and_tells_the_method)
{
    tb_error error = {.status = TB_INVALID_ARGUMENT};
    world w;
    world_make(&w);
    td_call_refuse(&w.call.base, &error);
    ck_assert_int_eq(w.seen.status, TB_INVALID_ARGUMENT);
    ck_assert_int_eq(w.seen.cancelled, 0); /* the handler never knew of the call */
    world_free(&w);

    world_make(&w);
    td_call_dispatch(&w.call.base, empty_request(&w));
    td_call_refuse(&w.call.base, &error);
    td_call_refuse(&w.call.base, &error);
    ck_assert_int_eq(w.seen.finished, 1);
    ck_assert_int_eq(w.seen.cancelled, 1);
    world_free(&w);
}
END_TEST

START_TEST(an_error_without_status_is_an_error)
{
    tb_error error = {0};
    world w;
    world_make(&w);
    td_call_fail(&w.call.base, &error);
    ck_assert_int_eq(w.seen.status, TB_INTERNAL);
    world_free(&w);
}
END_TEST

/* ---- details ---- */

static Google__Rpc__Status *decode(tb_status status, const tb_error *error, double retry_after)
{
    size_t size = 0;
    uint8_t *bytes = td_status_details(status, error, retry_after, &size);
    ck_assert_ptr_nonnull(bytes);
    Google__Rpc__Status *decoded = google__rpc__status__unpack(NULL, size, bytes);
    ck_assert_ptr_nonnull(decoded);
    free(bytes);
    return decoded;
}

/* The detail of this type; NULL if there is none. */
static ProtobufCMessage *detail(const Google__Rpc__Status *status,
                                const ProtobufCMessageDescriptor *type)
{
    char url[128];
    snprintf(url, sizeof url, "type.googleapis.com/%s", type->name);
    for (size_t i = 0; i < status->n_details; i++) {
        const Google__Protobuf__Any *any = status->details[i];
        if (strcmp(any->type_url, url) != 0) continue;
        ProtobufCMessage *message =
            protobuf_c_message_unpack(type, NULL, any->value.len, any->value.data);
        ck_assert_ptr_nonnull(message);
        return message;
    }
    return NULL;
}

START_TEST(details_name_field_file_and_line)
{
    tb_error error = {.status = TB_INVALID_ARGUMENT, .line = 7};
    strcpy(error.message, "hand.xml:7: mass is -1");
    strcpy(error.file, "hand.xml");
    strcpy(error.field, "object.mass");
    Google__Rpc__Status *status = decode(error.status, &error, 0);
    ck_assert_int_eq(status->code, 3);
    ck_assert_str_eq(status->message, error.message);

    Google__Rpc__ErrorInfo *info =
        (Google__Rpc__ErrorInfo *)detail(status, &google__rpc__error_info__descriptor);
    ck_assert_ptr_nonnull(info);
    ck_assert_str_eq(info->reason, "INVALID_ARGUMENT");
    ck_assert_str_eq(info->domain, "tribo.v1");
    ck_assert_uint_eq(info->n_metadata, 2);
    ck_assert_str_eq(info->metadata[0]->key, "file");
    ck_assert_str_eq(info->metadata[0]->value, "hand.xml");
    ck_assert_str_eq(info->metadata[1]->key, "line");
    ck_assert_str_eq(info->metadata[1]->value, "7");

    Google__Rpc__BadRequest *bad =
        (Google__Rpc__BadRequest *)detail(status, &google__rpc__bad_request__descriptor);
    ck_assert_ptr_nonnull(bad);
    ck_assert_uint_eq(bad->n_field_violations, 1);
    ck_assert_str_eq(bad->field_violations[0]->field, "object.mass");
    ck_assert_str_eq(bad->field_violations[0]->description, error.message);
    ck_assert_ptr_null(detail(status, &google__rpc__retry_info__descriptor));
    protobuf_c_message_free_unpacked(&info->base, NULL);
    protobuf_c_message_free_unpacked(&bad->base, NULL);
    google__rpc__status__free_unpacked(status, NULL);
}
END_TEST

START_TEST(details_say_when_to_retry)
{
    tb_error error = {.status = TB_RESOURCE_EXHAUSTED};
    strcpy(error.field, "queue");
    Google__Rpc__Status *status = decode(error.status, &error, 1.25);
    ck_assert_int_eq(status->code, 8);
    ck_assert_str_eq(status->message, "resource exhausted"); /* without a message of its own */
    Google__Rpc__RetryInfo *retry =
        (Google__Rpc__RetryInfo *)detail(status, &google__rpc__retry_info__descriptor);
    ck_assert_ptr_nonnull(retry);
    ck_assert_int_eq(retry->retry_delay->seconds, 1);
    ck_assert_int_eq(retry->retry_delay->nanos, 250000000);
    Google__Rpc__QuotaFailure *quota =
        (Google__Rpc__QuotaFailure *)detail(status, &google__rpc__quota_failure__descriptor);
    ck_assert_ptr_nonnull(quota);
    ck_assert_str_eq(quota->violations[0]->subject, "queue");
    protobuf_c_message_free_unpacked(&retry->base, NULL);
    protobuf_c_message_free_unpacked(&quota->base, NULL);
    google__rpc__status__free_unpacked(status, NULL);
}
END_TEST

START_TEST(every_status_has_details)
{
    for (tb_status s = TB_INVALID_ARGUMENT; s <= TB_INTERNAL; s++) {
        Google__Rpc__Status *status = decode(s, NULL, 0);
        ck_assert_int_eq(status->code, tb_status_grpc(s));
        Google__Rpc__ErrorInfo *info =
            (Google__Rpc__ErrorInfo *)detail(status, &google__rpc__error_info__descriptor);
        ck_assert_ptr_nonnull(info);
        ck_assert_str_eq(info->reason, tb_status_name(s));
        protobuf_c_message_free_unpacked(&info->base, NULL);
        google__rpc__status__free_unpacked(status, NULL);
    }
}
END_TEST

TEST_MAIN(a_request_is_unpacked, an_empty_request_is_unpacked, what_the_scan_foretells_is_enough,
          every_cut_gives_a_status, every_flipped_byte_gives_a_status,
          a_message_that_is_too_large_is_refused, a_message_that_is_too_deep_is_refused,
          a_bomb_of_unknown_fields_is_refused, a_bomb_of_merges_is_cut_off, text_must_be_utf8,
          a_request_can_be_made_by_hand, a_call_ends_once, a_cancelled_call_tells_its_method_once,
          a_call_cancelled_before_its_message_ends_by_itself, a_call_past_its_deadline_is_not_begun,
          a_refused_message_ends_the_call_and_tells_the_method, an_error_without_status_is_an_error,
          details_name_field_file_and_line, details_say_when_to_retry, every_status_has_details)
