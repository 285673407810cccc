/* Fuzzes the JSON of a request, read as the message type that the first byte chooses: a message,
 * or a refusal with a reason. A message prints, and its text reads back as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/handlers.h"
#include "wire/json.h"
#include "server.h"
#include "tribo/v1/function.pb-c.h"
#include "tribo/v1/grasp.pb-c.h"
#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"
#include "tribo/v1/solve.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UNARY_TYPE(Service, service, Method, method, scope)                                        \
    &tribo__v1__##method##_request__descriptor,
#define STREAM_TYPE(Service, service, Method, method, scope, client, server)                       \
    UNARY_TYPE(Service, service, Method, method, scope)

static const ProtobufCMessageDescriptor *const TYPES[] = {TD_UNARY_LIST(UNARY_TYPE)
                                                              TD_STREAM_LIST(STREAM_TYPE)};
enum { TYPE_COUNT = sizeof TYPES / sizeof TYPES[0] };

static td_request *parse(const td_server *server, const ProtobufCMessageDescriptor *type,
                         const char *text, size_t size)
{
    td_request *request = NULL;
    tb_error error = {0};
    if (td_request_create(server, type, &request, &error) != TB_OK) abort();
    if (td_json_parse(text, size, server->config->nesting, server->config->unpack_bytes, request,
                      &error) == TB_OK)
        return request;
    if (error.message[0] == '\0') abort();
    td_request_free(request);
    return NULL;
}

/* The message in protobuf's binary form. */
static uint8_t *pack(const td_request *request, size_t *size)
{
    *size = protobuf_c_message_get_packed_size(request->message);
    uint8_t *bytes = malloc(*size + 1);
    if (bytes == NULL || protobuf_c_message_pack(request->message, bytes) != *size) abort();
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_config config = td_config_defaults();
    config.unpack_bytes = 1 << 20;
    const td_server server = {.config = &config};
    if (size < 1) return 0;

    const ProtobufCMessageDescriptor *type = TYPES[data[0] % TYPE_COUNT];
    td_request *first = parse(&server, type, (const char *)data + 1, size - 1);
    if (first == NULL) return 0;
    tb_bytes text = {0};
    tb_error error = {0};
    if (td_json_print(&text, first->message, &error) != TB_OK) abort();
    td_request *second = parse(&server, type, (const char *)text.base, text.size);
    if (second == NULL) {
        /* the printed form may be longer than the one that fitted */
        if (text.size < config.unpack_bytes / 256) abort();
    } else {
        size_t first_size = 0, second_size = 0;
        uint8_t *a = pack(first, &first_size), *b = pack(second, &second_size);
        if (first_size != second_size || memcmp(a, b, first_size) != 0) abort();
        free(a);
        free(b);
    }
    tb_bytes_free(&text);
    td_request_free(second);
    td_request_free(first);
    return 0;
}
