/* Canonical protobuf JSON: every message type of every method there and back, and every refusal. */
#include <float.h>

#include "base/random.h"
#include "google/protobuf/any.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "handlers/handlers.h"
#include "wire/json.h"
#include "server.h"
#include "test_util.h"
#include "tribo/v1/function.pb-c.h"
#include "tribo/v1/grasp.pb-c.h"
#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"
#include "tribo/v1/solve.pb-c.h"

#define UNARY_TYPES(Service, service, Method, method, scope)                                       \
    &tribo__v1__##method##_request__descriptor, &tribo__v1__##method##_response__descriptor,
#define STREAM_TYPES(Service, service, Method, method, scope, client, server)                      \
    UNARY_TYPES(Service, service, Method, method, scope)

static const ProtobufCMessageDescriptor *const TYPES[] = {
    TD_UNARY_LIST(UNARY_TYPES) TD_STREAM_LIST(STREAM_TYPES) & google__rpc__error_info__descriptor,
    &google__rpc__bad_request__descriptor,
    &google__rpc__retry_info__descriptor,
};
enum { TYPE_COUNT = sizeof TYPES / sizeof TYPES[0], NESTING = 32 };

static td_config config;
static td_server server;

static void set_up(void)
{
    config = td_config_defaults();
    config.nesting = NESTING;
    server.config = &config;
}

/* ---- messages with random content ---- */

static ProtobufCMessage *make_message(const ProtobufCMessageDescriptor *, tb_random *, int depth);

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static char *make_string(tb_random *random)
{
    static const char *const PARTS[] = {
        "a",    "Z",        "\"",  "\\",           "\n", "\t", "/", "\x01",
        "\x7f", "\xc3\xa9", "<&>", "\xe2\x82\xac", "\r", "0",  " ", "\xf0\x9f\xa6\xbe"};
    char *string = zeroed(64);
    const unsigned count = tb_random_u32(random) % 12;
    for (unsigned i = 0; i < count; i++) strcat(string, PARTS[tb_random_u32(random) % 16]);
    return string;
}

static uint64_t make_bits(tb_random *random)
{
    const uint64_t high = tb_random_u32(random);
    return high << 32 | tb_random_u32(random);
}

static double make_real(tb_random *random)
{
    static const double SPECIAL[] = {0,        -0.0,      1,       -1,        0.1,
                                     1e20,     1e-300,    DBL_MAX, 5e-324,    NAN,
                                     INFINITY, -INFINITY, 1.0 / 3, 123456789, 9007199254740993.0};
    const unsigned which = tb_random_u32(random) % 30;
    if (which < sizeof SPECIAL / sizeof SPECIAL[0]) return SPECIAL[which];
    const uint64_t bits = make_bits(random);
    double x = 0;
    memcpy(&x, &bits, sizeof x);
    return isfinite(x) ? x : 0.5;
}

static void make_value(const ProtobufCFieldDescriptor *field, tb_random *random, int depth,
                       void *value)
{
    static const int64_t WHOLE[] = {0, 1, -1, INT64_MAX, INT64_MIN, 1000000007, 9007199254740993};
    const int64_t whole = tb_random_u32(random) % 3 == 0 ? (int64_t)make_bits(random)
                                                         : WHOLE[tb_random_u32(random) % 7];
    const ProtobufCEnumDescriptor *values = field->descriptor;
    ProtobufCBinaryData *data = value;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: memcpy(value, &whole, sizeof whole); break;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32: *(uint32_t *)value = (uint32_t)whole; break;
    case PROTOBUF_C_TYPE_DOUBLE: *(double *)value = make_real(random); break;
    case PROTOBUF_C_TYPE_FLOAT: *(float *)value = (float)make_real(random); break;
    case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *)value = whole & 1; break;
    case PROTOBUF_C_TYPE_ENUM: /* at times a number that has no name */
        *(int *)value = tb_random_u32(random) % 8 == 0
                            ? 77
                            : values->values[tb_random_u32(random) % values->n_values].value;
        break;
    case PROTOBUF_C_TYPE_STRING: *(char **)value = make_string(random); break;
    case PROTOBUF_C_TYPE_BYTES:
        data->len = tb_random_u32(random) % 10;
        if (tb_random_u32(random) % 20 == 0) data->len = 5000;
        data->data = zeroed(data->len);
        for (size_t i = 0; i < data->len; i++) data->data[i] = (uint8_t)tb_random_u32(random);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)value = make_message(field->descriptor, random, depth + 1);
        break;
    default: ck_abort_msg("a field of type %d", (int)field->type);
    }
}

static void make_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       tb_random *random, int depth)
{
    char *value = (char *)message + field->offset;
    void *quantifier = (char *)message + field->quantifier_offset;
    const bool map = td_json_map_entry(message->descriptor, field) != NULL;
    if (depth > 4 && field->type == PROTOBUF_C_TYPE_MESSAGE) return;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        const size_t count = map ? 1 : tb_random_u32(random) % 4;
        const size_t size = td_json_value_size(field->type);
        if (count == 0) return;
        char *array = zeroed(count * size);
        for (size_t i = 0; i < count; i++) make_value(field, random, depth, array + i * size);
        *(char **)value = array;
        *(size_t *)quantifier = count;
        return;
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        if (*(uint32_t *)quantifier != 0) return;
        *(uint32_t *)quantifier = field->id;
    }
    make_value(field, random, depth, value);
}

static ProtobufCMessage *make_message(const ProtobufCMessageDescriptor *type, tb_random *random,
                                      int depth)
{
    ProtobufCMessage *message = zeroed(type->sizeof_message);
    protobuf_c_message_init(type, message);
    if (strcmp(type->name, "google.protobuf.Duration") == 0) {
        const int sign = tb_random_u32(random) % 2 == 0 ? 1 : -1;
        static const int32_t NANOS[] = {0, 500000000, 1, 120000, 999999999};
        *(int64_t *)((char *)message + type->fields[0].offset) =
            sign * (int64_t)(tb_random_u32(random) % 100000);
        *(int32_t *)((char *)message + type->fields[1].offset) =
            sign * NANOS[tb_random_u32(random) % 5];
        return message;
    }
    for (unsigned i = 0; i < type->n_fields; i++)
        if (tb_random_u32(random) % 4 != 0) make_field(message, &type->fields[i], random, depth);
    return message;
}

static uint8_t *pack(const ProtobufCMessage *message, size_t *size)
{
    *size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = zeroed(*size);
    ck_assert_uint_eq(protobuf_c_message_pack(message, bytes), *size);
    return bytes;
}

static tb_status parse_text(const ProtobufCMessageDescriptor *type, const char *text, size_t size,
                            td_request **request, tb_error *error)
{
    *request = NULL;
    TEST_OK(td_request_create(&server, type, request, error), error);
    const tb_status status =
        td_json_parse(text, size, config.nesting, config.unpack_bytes, *request, error);
    if (status != TB_OK) {
        td_request_free(*request);
        *request = NULL;
    }
    return status;
}

START_TEST(every_message_comes_back_with_the_same_bytes)
{
    set_up();
    for (int round = 0; round < 60; round++) {
        for (int t = 0; t < TYPE_COUNT; t++) {
            tb_random random = tb_random_stream((uint64_t)round, (uint64_t)t);
            ProtobufCMessage *message = make_message(TYPES[t], &random, 0);
            size_t before = 0, after = 0;
            uint8_t *expected = pack(message, &before);
            tb_bytes text = {0};
            tb_error e = {0};
            td_request *request = NULL;
            TEST_OK(td_json_print(&text, message, &e), &e);
            ck_assert_int_eq(text.base[0], '{');
            TEST_OK(parse_text(TYPES[t], (char *)text.base, text.size, &request, &e), &e);
            uint8_t *actual = pack(request->message, &after);
            ck_assert_msg(before == after && memcmp(expected, actual, before) == 0,
                          "%s, round %d: %s", TYPES[t]->name, round, (char *)text.base);
            free(actual);
            free(expected);
            td_request_free(request);
            tb_bytes_free(&text);
            protobuf_c_message_free_unpacked(message, NULL);
        }
    }
}
END_TEST

/* ---- the form ---- */

static void prints(const ProtobufCMessage *message, const char *expected)
{
    tb_bytes text = {0};
    tb_error e = {0};
    TEST_OK(td_json_print(&text, message, &e), &e);
    ck_assert_str_eq((char *)text.base, expected);
    tb_bytes_free(&text);
}

START_TEST(the_form_is_canonical)
{
    Tribo__V1__ListRunsRequest runs = TRIBO__V1__LIST_RUNS_REQUEST__INIT;
    prints(&runs.base, "{}");
    runs.page_size = 5;
    runs.kind = TRIBO__V1__RUN_KIND__RUN_KIND_GRASPS;
    prints(&runs.base, "{\"pageSize\":5,\"kind\":\"RUN_KIND_GRASPS\"}");
    runs.kind = (Tribo__V1__RunKind)99;
    prints(&runs.base, "{\"pageSize\":5,\"kind\":99}");

    /* 64 bits and bytes are strings, elements equal to the default stay */
    int64_t shape[] = {0, 3};
    uint8_t data[] = {0xfb, 0xff, 0xfe, 1};
    Tribo__V1__Array array = TRIBO__V1__ARRAY__INIT;
    array.n_shape = 2;
    array.shape = shape;
    array.data = (ProtobufCBinaryData){.len = sizeof data, .data = data};
    prints(&array.base, "{\"shape\":[\"0\",\"3\"],\"data\":\"+//+AQ==\"}");

    /* numbers as short as they can be */
    double position[] = {0.1, 1e20, NAN, INFINITY, -INFINITY, 1.0 / 3, -0.0, 5};
    Tribo__V1__Pose pose = TRIBO__V1__POSE__INIT;
    pose.n_position = sizeof position / sizeof position[0];
    pose.position = position;
    prints(&pose.base, "{\"position\":[0.1,1e+20,\"NaN\",\"Infinity\",\"-Infinity\","
                       "0.3333333333333333,-0.0,5]}");

    /* a member of a oneof is there even with its default */
    Tribo__V1__CreateSceneRequest scene = TRIBO__V1__CREATE_SCENE_REQUEST__INIT;
    char empty[] = "";
    scene.main_case = TRIBO__V1__CREATE_SCENE_REQUEST__MAIN_TEXT;
    scene.text = empty;
    prints(&scene.base, "{\"text\":\"\"}");

    /* bytes that are not UTF-8 must not make the document unreadable */
    char broken[] = "a\xff\xc0\x80z\xed\xa0\x80";
    runs = (Tribo__V1__ListRunsRequest)TRIBO__V1__LIST_RUNS_REQUEST__INIT;
    runs.scene_id = broken;
    prints(&runs.base, "{\"sceneId\":\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf"
                       "\xbd\xef\xbf\xbd\"}");
}
END_TEST

START_TEST(error_details_have_their_own_forms)
{
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;
    Google__Rpc__RetryInfo retry = GOOGLE__RPC__RETRY_INFO__INIT;
    retry.retry_delay = &delay;
    delay.seconds = 1;
    delay.nanos = 500000000;
    prints(&retry.base, "{\"retryDelay\":\"1.500s\"}");
    delay.seconds = 0;
    delay.nanos = -1;
    prints(&retry.base, "{\"retryDelay\":\"-0.000000001s\"}");
    delay.nanos = 0;
    prints(&retry.base, "{\"retryDelay\":\"0s\"}");

    uint8_t packed[64];
    char type_url[] = "type.googleapis.com/google.rpc.RetryInfo", unknown[] = "x/unknown.Type";
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    delay.seconds = 2;
    any.type_url = type_url;
    any.value = (ProtobufCBinaryData){protobuf_c_message_pack(&retry.base, packed), packed};
    prints(&any.base,
           "{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"2s\"}");
    any.type_url = unknown;
    any.value.len = 1;
    prints(&any.base, "{\"@type\":\"x/unknown.Type\",\"value\":\"Cg==\"}");

    char key[] = "file", value[] = "a.xml";
    Google__Rpc__ErrorInfo__MetadataEntry entry = GOOGLE__RPC__ERROR_INFO__METADATA_ENTRY__INIT;
    Google__Rpc__ErrorInfo__MetadataEntry *entries[] = {&entry};
    Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
    entry.key = key;
    entry.value = value;
    info.n_metadata = 1;
    info.metadata = entries;
    prints(&info.base, "{\"metadata\":{\"file\":\"a.xml\"}}");
}
END_TEST

/* ---- accepted input ---- */

/* Both texts mean the same message. */
static void means(const ProtobufCMessageDescriptor *type, const char *text, const char *same)
{
    td_request *a = NULL, *b = NULL;
    tb_error e = {0};
    size_t a_size = 0, b_size = 0;
    TEST_OK(parse_text(type, text, strlen(text), &a, &e), &e);
    TEST_OK(parse_text(type, same, strlen(same), &b, &e), &e);
    uint8_t *a_bytes = pack(a->message, &a_size), *b_bytes = pack(b->message, &b_size);
    ck_assert_msg(a_size == b_size && memcmp(a_bytes, b_bytes, a_size) == 0, "%s and %s", text,
                  same);
    free(a_bytes);
    free(b_bytes);
    td_request_free(a);
    td_request_free(b);
}

START_TEST(other_forms_are_read_too)
{
    set_up();
    const ProtobufCMessageDescriptor *runs = &tribo__v1__list_runs_request__descriptor;
    means(runs, "{\"page_size\": 7}", "{\"pageSize\":7}");
    means(runs, "{\"pageSize\": \"7\"}", "{\"pageSize\":7}");
    means(runs, "{\"pageSize\": 7.0}", "{\"pageSize\":7}");
    means(runs, "{\"pageSize\": 7e0}", "{\"pageSize\":7}");
    means(runs, "{\"kind\": 2}", "{\"kind\":\"RUN_KIND_GRASPS\"}");
    means(runs, "{\"kind\": null, \"pageToken\": null}", "{}");
    means(runs, "{\"sceneId\":\"\\u00e9\\ud83d\\ude00\"}",
          "{\"sceneId\":\"\xc3\xa9\xf0\x9f\x98\x80\"}");
    const ProtobufCMessageDescriptor *state = &tribo__v1__set_state_request__descriptor;
    means(state, "{\"q\":{\"shape\":[3,\"4\"]}}", "{\"q\":{\"shape\":[\"3\",\"4\"]}}");
    means(state, "{\"q\":{\"data\":\"-__-AQ\"}}", "{\"q\":{\"data\":\"+//+AQ==\"}}");
    means(state, "{\"q\":{\"data\":\"-__-AQ==\"}}", "{\"q\":{\"data\":\"+//+AQ\"}}");
    const ProtobufCMessageDescriptor *stream = &tribo__v1__step_stream_request__descriptor;
    means(stream, "{\"tag\":9223372036854775807}", "{\"tag\":\"9223372036854775807\"}");
    means(stream, "{\"tag\":\"18446744073709551615\"}", "{\"tag\":\"18446744073709551615\"}");
    const ProtobufCMessageDescriptor *grasp = &tribo__v1__evaluate_grasps_request__descriptor;
    means(grasp, "{\"confidence\":\"0.5\"}", "{\"confidence\":0.5}");
    /* as JavaScript writes 1e20; whole numbers next to it are unchanged */
    means(grasp, "{\"confidence\":100000000000000000000,\"priority\":2}",
          "{\"confidence\":1e20,\"priority\":\"PRIORITY_NORMAL\"}");
    /* null chooses no member of a oneof */
    means(&tribo__v1__create_scene_request__descriptor, "{\"text\":\"a\",\"sha256\":null}",
          "{\"text\":\"a\"}");
}
END_TEST

static void refused(const ProtobufCMessageDescriptor *type, const char *text, const char *field,
                    const char *hint)
{
    td_request *request = NULL;
    tb_error e = {0};
    const tb_status status = parse_text(type, text, strlen(text), &request, &e);
    ck_assert_msg(status == TB_INVALID_ARGUMENT, "%s: %s %s", text, tb_status_name(status),
                  e.message);
    ck_assert_msg(strcmp(e.field, field) == 0, "%s: field '%s', not '%s'", text, e.field, field);
    ck_assert_msg(strstr(e.message, hint) != NULL, "%s: '%s' without '%s'", text, e.message, hint);
    ck_assert_ptr_null(request);
}

START_TEST(arrays_are_lists_on_request)
{
    set_up();
    const ProtobufCMessageDescriptor *state = &tribo__v1__set_state_request__descriptor;
    /* lists are always read */
    means(state, "{\"q\":[1,2.5]}",
          "{\"q\":{\"dtype\":1,\"shape\":[2],\"data\":\"AAAAAAAA8D8AAAAAAAAEQA==\"}}");
    means(state, "{\"u\":[[1],[2.5]]}",
          "{\"u\":{\"dtype\":1,\"shape\":[2,1],\"data\":\"AAAAAAAA8D8AAAAAAAAEQA==\"}}");
    means(state, "{\"mask\":[true,false]}",
          "{\"mask\":{\"dtype\":5,\"shape\":[2],\"data\":\"AQA=\"}}");
    means(state, "{\"q\":[]}", "{\"q\":{\"dtype\":1,\"shape\":[0]}}");
    refused(state, "{\"q\":[1,true]}", "q[1]", "a number expected");
    refused(state, "{\"q\":[[1,2],[3]]}", "q[1]", "a list of 1");
    refused(state, "{\"q\":[[1],2]}", "q[1]", "a list expected");
    refused(state, "{\"q\":[1,[2]]}", "q[1]", "a number expected");
    refused(state, "{\"q\":[[[[[[[[[1]]]]]]]]]}", "q", "more than 8");

    /* and printed where they are asked for */
    const int64_t steps[2] = {3, INT64_C(9007199254740993)};
    const float small[4] = {0.1f, 2, -0.5f, 1e9f};
    const uint8_t bytes[2] = {0, 255};
    int64_t shapes[2] = {2, 2};
    Tribo__V1__Array a = TRIBO__V1__ARRAY__INIT, b = a, c = a;
    a.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64;
    b.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    c.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8;
    a.shape = b.shape = c.shape = shapes;
    a.n_shape = c.n_shape = 1;
    b.n_shape = 2;
    a.data = (ProtobufCBinaryData){sizeof steps, (uint8_t *)(uintptr_t)steps};
    b.data = (ProtobufCBinaryData){sizeof small, (uint8_t *)(uintptr_t)small};
    c.data = (ProtobufCBinaryData){sizeof bytes, (uint8_t *)(uintptr_t)bytes};
    Tribo__V1__State message = TRIBO__V1__STATE__INIT;
    message.q = &a;
    message.poses = &b;
    message.u = &c;
    tb_bytes text = {0};
    tb_error e = {0};
    TEST_OK(td_json_print_plain(&text, &message.base, &e), &e);
    ck_assert_str_eq((const char *)text.base, "{\"q\":[3,\"9007199254740993\"],\"u\":[0,255],"
                                              "\"poses\":[[0.1,2],[-0.5,1e+09]]}");
    tb_bytes_free(&text);
    c.data.len = 1; /* less than the shape says: an error, no read beyond it */
    ck_assert_int_eq(td_json_print_plain(&text, &message.base, &e), TB_INTERNAL);
    tb_bytes_free(&text);
}
END_TEST

START_TEST(whole_numbers_are_exact)
{
    set_up();
    td_request *request = NULL;
    tb_error e = {0};
    const char text[] = "{\"tag\":\"18446744073709551615\"}";
    TEST_OK(
        parse_text(&tribo__v1__step_stream_request__descriptor, text, strlen(text), &request, &e),
        &e);
    ck_assert_uint_eq(((Tribo__V1__StepStreamRequest *)request->message)->tag, UINT64_MAX);
    td_request_free(request);
}
END_TEST

/* ---- refused input ---- */

START_TEST(refusals_name_the_place)
{
    set_up();
    const ProtobufCMessageDescriptor *grasp = &tribo__v1__evaluate_grasps_request__descriptor;
    refused(grasp, "{\"poses\":[{},{},{},{\"pose\":{\"position\":{}}}]}", "poses[3].pose.position",
            "an object, an array expected");
    refused(grasp, "{\"poses\":[{\"pose\":{\"position\":[0,true]}}]}", "poses[0].pose.position[1]",
            "a truth value, a number expected");
    refused(grasp, "{\"hand\":{\"asset\":{\"colour\":1}}}", "hand.asset.colour", "no such field");
    refused(grasp, "{\"poses\":[null]}", "poses[0]", "null");
    refused(grasp, "{\"object\":[]}", "object", "an array, an object expected");
    refused(grasp, "{\"label\":5}", "label", "a number, a string expected");
    refused(grasp, "{\"confidence\":\"half\"}", "confidence", "\"half\" is no number");
    refused(grasp, "{\"confidence\":\"0x10\"}", "confidence", "is no number");
    refused(grasp, "{\"confidence\":\"1e999\"}", "confidence", "out of range");
    refused(grasp, "{\"confidence\":1e999}", "", "overflow");
    refused(grasp, "{\"confidence\":\"\"}", "confidence", "is no number");
    refused(grasp, "{\"priority\":\"PRIORITY_URGENT\"}", "priority", "is no Priority");
    refused(grasp, "{\"priority\":2147483648}", "priority", "out of range");
    refused(grasp, "{\"priority\":true}", "priority", "the name of a value expected");
    refused(grasp, "{\"object\":{\"convex\":\"true\"}}", "object.convex", "true or false expected");
    refused(grasp, "{\"object\":{\"asset\":{\"data\":\"a?==\"}}}", "object.asset.data",
            "no base64");
    refused(grasp, "{\"object\":{\"asset\":{\"data\":\"+_==\"}}}", "object.asset.data",
            "no base64");
    refused(grasp, "{\"object\":{\"asset\":{\"data\":\"AAA=AAA=\"}}}", "object.asset.data",
            "no base64");
    refused(grasp, "{\"object\":{\"asset\":{\"data\":\"A\"}}}", "object.asset.data", "no base64");
    refused(grasp, "{\"object\":{\"asset\":{\"data\":\"AA==\",\"sha256\":\"\"}}}",
            "object.asset.sha256", "only one of it and data");

    const ProtobufCMessageDescriptor *runs = &tribo__v1__list_runs_request__descriptor;
    refused(runs, "{\"pageSize\":2147483648}", "pageSize", "out of range");
    refused(runs, "{\"pageSize\":-2147483649}", "pageSize", "out of range");
    refused(runs, "{\"pageSize\":1.5}", "pageSize", "no whole number");
    refused(runs, "{\"pageSize\":\"1.5\"}", "pageSize", "no whole number");
    refused(runs, "{\"pageSize\":\"\"}", "pageSize", "no whole number");
    refused(runs, "{\"pageSize\":\"-\"}", "pageSize", "no whole number");
    refused(runs, "{\"pageSize\":\" 1\"}", "pageSize", "no whole number");
    refused(runs, "{\"pageSize\":[1]}", "pageSize", "an array, a whole number expected");
    refused(runs, "{\"pageSize\":1,\"page_size\":1}", "page_size", "given twice");
    refused(runs, "{\"sceneId\":\"a\\u0000b\"}", "", "NUL");

    const ProtobufCMessageDescriptor *stream = &tribo__v1__step_stream_request__descriptor;
    refused(stream, "{\"tag\":-1}", "tag", "out of range");
    refused(stream, "{\"tag\":\"18446744073709551616\"}", "tag", "out of range");
    refused(stream, "{\"tag\":\"99999999999999999999999\"}", "tag", "out of range");
    refused(stream, "{\"tag\":18446744073709551615}", "tag", "written as strings");

    refused(&google__rpc__retry_info__descriptor, "{\"retryDelay\":\"1\"}", "retryDelay",
            "no duration");
    refused(&google__rpc__retry_info__descriptor, "{\"retryDelay\":\"1.0000000001s\"}",
            "retryDelay", "no duration");
    refused(&google__rpc__retry_info__descriptor, "{\"retryDelay\":\"9999999999999s\"}",
            "retryDelay", "no duration");
}
END_TEST

START_TEST(what_is_no_json_is_refused)
{
    set_up();
    const ProtobufCMessageDescriptor *runs = &tribo__v1__list_runs_request__descriptor;
    static const char *const TEXTS[] = {
        "",
        " ",
        "{",
        "}",
        "[]",
        "null",
        "1",
        "\"a\"",
        "{}}",
        "{} {}",
        "{'a':1}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"pageSize\":1,}",
        "{,}",
        "{\"pageSize\":01}",
        "{\"pageSize\":+1}",
        "{\"pageSize\":NaN}",
        "{\"sceneId\":\"\xff\"}",
        "{\"sceneId\":\"\\x\"}",
        "{\"sceneId\":\"a",
        "{\"pageSize\":1,\"pageSize\":2}",
        "\xef\xbb\xbf{}",
        "{\"sceneId\":\"\\ud800\"}",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) refused(runs, TEXTS[i], "", "");
}
END_TEST

START_TEST(depth_and_memory_are_bounded)
{
    set_up();
    td_request *request = NULL;
    tb_error e = {0};
    const ProtobufCMessageDescriptor *grasp = &tribo__v1__evaluate_grasps_request__descriptor;

    /* brackets a million deep cost nothing */
    const size_t deep = 1000000;
    char *text = zeroed(2 * deep + 64);
    memset(text, '[', deep);
    TEST_STATUS(parse_text(grasp, text, deep, &request, &e), TB_INVALID_ARGUMENT, &e);
    ck_assert_ptr_nonnull(strstr(e.message, "32 deep"));
    /* brackets in strings do not count */
    strcpy(text, "{\"label\":\"");
    memset(text + strlen(text), '[', 1000);
    strcat(text, "\\\"[\"}");
    TEST_OK(parse_text(grasp, text, strlen(text), &request, &e), &e);
    td_request_free(request);

    /* many small things in little text */
    strcpy(text, "{\"poses\":[{}");
    size_t length = strlen(text);
    while (length < 2 * deep - 8) {
        memcpy(text + length, ",{}", 3);
        length += 3;
    }
    strcpy(text + length, "]}");
    config.unpack_bytes = 1 << 24;
    TEST_STATUS(parse_text(grasp, text, strlen(text), &request, &e), TB_RESOURCE_EXHAUSTED, &e);

    /* a document that fits, of a message that does not: the arena's bound holds by itself */
    config.unpack_bytes = 1 << 16;
    TEST_OK(td_request_create(&server, grasp, &request, &e), &e);
    TEST_STATUS(td_json_parse(text, strlen(text), NESTING, UINT64_MAX, request, &e),
                TB_RESOURCE_EXHAUSTED, &e);
    ck_assert_ptr_nonnull(strstr(e.field, "poses"));
    td_request_free(request);
    free(text);
}
END_TEST

START_TEST(a_long_path_is_cut_and_not_overrun)
{
    set_up();
    char text[4096] = "{\"hand\":{\"asset\":{\"";
    memset(text + strlen(text), 'k', 3000);
    strcat(text, "\":1}}}");
    td_request *request = NULL;
    tb_error e = {0};
    TEST_STATUS(parse_text(&tribo__v1__evaluate_grasps_request__descriptor, text, strlen(text),
                           &request, &e),
                TB_INVALID_ARGUMENT, &e);
    ck_assert_uint_eq(strlen(e.field), TB_ERROR_NAME_SIZE - 1);
    ck_assert_int_eq(strncmp(e.field, "hand.asset.kkk", 14), 0);
}
END_TEST

TEST_MAIN(every_message_comes_back_with_the_same_bytes, the_form_is_canonical,
          error_details_have_their_own_forms, other_forms_are_read_too, arrays_are_lists_on_request,
          whole_numbers_are_exact, refusals_name_the_place, what_is_no_json_is_refused,
          depth_and_memory_are_bounded, a_long_path_is_cut_and_not_overrun)
