/* Fuzzes a request of the type that the first byte chooses: a message, or a refusal with a
 * reason, within bounded memory. A message packs, and unpacks again to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/handlers.h"
#include "wire/scan.h"
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
enum { TYPE_COUNT = sizeof TYPES / sizeof TYPES[0], UNPACK_BYTES = 1 << 20 };

typedef struct packed {
    uint8_t *bytes;
    size_t size;
} packed;

static td_request *unpack(const td_server *server, const ProtobufCMessageDescriptor *type,
                          const uint8_t *bytes, size_t size)
{
    const td_method method = {.input = type};
    td_request *request = NULL;
    tb_error error = {0};
    const tb_status status = td_request_unpack(server, method.input, bytes, size, &request, &error);
    if (status == TB_OK) return request;
    if (request != NULL || error.message[0] == '\0' || error.status != status) abort();
    if (status != TB_INVALID_ARGUMENT && status != TB_RESOURCE_EXHAUSTED) abort();
    return NULL;
}

static packed pack(const td_request *request)
{
    packed p = {NULL, protobuf_c_message_get_packed_size(request->message)};
    p.bytes = malloc(p.size + 1);
    if (p.bytes == NULL || protobuf_c_message_pack(request->message, p.bytes) != p.size) abort();
    return p;
}

/* The same bytes by protobuf-c's own allocator, where a sanitizer sees every block. Bytes that
 * pass the scan are malformed for protobuf-c only where it merges or converts. */
static void unpack_plainly(const ProtobufCMessageDescriptor *type, const packed *p)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, p->size, p->bytes);
    if (message == NULL) abort();
    protobuf_c_message_free_unpacked(message, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_config config = td_config_defaults();
    config.unpack_bytes = UNPACK_BYTES;
    const td_server server = {.config = &config};
    if (size < 1) return 0;

    const ProtobufCMessageDescriptor *type = TYPES[data[0] % TYPE_COUNT];
    td_request *first = unpack(&server, type, data + 1, size - 1);
    if (first == NULL) return 0;
    const packed once = pack(first);
    unpack_plainly(type, &once);

    /* merged fields may need less the second time, never more */
    td_request *second = unpack(&server, type, once.bytes, once.size);
    if (second == NULL) abort();
    const packed twice = pack(second);
    if (once.size != twice.size || memcmp(once.bytes, twice.bytes, once.size) != 0) abort();
    free(once.bytes);
    free(twice.bytes);
    td_request_free(first);
    td_request_free(second);
    return 0;
}
