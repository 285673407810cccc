/* Encodes errors for the two protocols. Connect: a JSON object with a code's name and details
 * (https://connectrpc.com/docs/protocol#error-end-stream). gRPC-Web: the same status in
 * trailers. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "google/protobuf/any.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "wire/envelope.h"
#include "transport/http/http_internal.h"
#include "wire/json.h"

/* Connect's names of gRPC's codes, by number. */
static const char *code_name(tb_status status)
{
    static const char *const NAMES[] = {
        "ok",
        "canceled",
        "unknown",
        "invalid_argument",
        "deadline_exceeded",
        "not_found",
        "already_exists",
        "permission_denied",
        "resource_exhausted",
        "failed_precondition",
        "aborted",
        "out_of_range",
        "unimplemented",
        "internal",
        "unavailable",
        "data_loss",
        "unauthenticated",
    };
    const int code = tb_status_grpc(status);
    return code >= 0 && code < (int)(sizeof NAMES / sizeof NAMES[0]) ? NAMES[code] : "unknown";
}

static const char *message_of(tb_status status, const tb_error *error)
{
    return error != NULL && error->message[0] != '\0' ? error->message : tb_status_text(status);
}

static tb_status put(tb_bytes *text, const char *literal)
{
    return tb_bytes_append(text, literal, strlen(literal));
}

static tb_status put_base64(tb_bytes *text, const unsigned char *bytes, size_t size, int variant)
{
    const size_t room = sodium_base64_encoded_len(size, variant);
    char *encoded = malloc(room);
    if (encoded == NULL) return TB_RESOURCE_EXHAUSTED;
    sodium_bin2base64(encoded, room, bytes, size, variant);
    const tb_status status = put(text, encoded);
    free(encoded);
    return status;
}

void http_retry_text(double retry_after, char text[16])
{
    snprintf(text, 16, "%.0f", fmin(ceil(retry_after), 1e9));
}

/* ---- Connect --------------------------------------------------------------------------------- */

/* One detail: its type, its bytes, and its content as "debug". */
static tb_status put_detail(tb_bytes *text, const Google__Protobuf__Any *any)
{
    const char *slash = strrchr(any->type_url, '/');
    const char *type = slash != NULL ? slash + 1 : any->type_url;
    tb_status status = put(text, "{\"type\":");
    if (status == TB_OK) status = td_json_print_string(text, type, strlen(type));
    if (status == TB_OK) status = put(text, ",\"value\":\"");
    if (status == TB_OK)
        status = put_base64(text, any->value.data, any->value.len,
                            sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
    if (status == TB_OK) status = put(text, "\"");

    const ProtobufCMessageDescriptor *known = td_json_detail_type(any->type_url);
    ProtobufCMessage *inside =
        known != NULL ? protobuf_c_message_unpack(known, NULL, any->value.len, any->value.data)
                      : NULL;
    if (inside != NULL) {
        if (status == TB_OK) status = put(text, ",\"debug\":");
        if (status == TB_OK) status = td_json_print(text, inside, NULL);
        protobuf_c_message_free_unpacked(inside, NULL);
    }
    return status == TB_OK ? put(text, "}") : status;
}

tb_status http_error_connect(tb_bytes *text, tb_status code, const tb_error *error,
                             double retry_after)
{
    const char *message = message_of(code, error);
    size_t size = 0;
    uint8_t *bytes = td_status_details(code, error, retry_after, &size);
    Google__Rpc__Status *details =
        bytes != NULL ? google__rpc__status__unpack(NULL, size, bytes) : NULL;

    tb_status status = put(text, "{\"code\":\"");
    if (status == TB_OK) status = put(text, code_name(code));
    if (status == TB_OK) status = put(text, "\",\"message\":");
    if (status == TB_OK) status = td_json_print_string(text, message, strlen(message));
    if (details != NULL && details->n_details > 0) {
        if (status == TB_OK) status = put(text, ",\"details\":[");
        for (size_t i = 0; i < details->n_details && status == TB_OK; i++) {
            if (i > 0) status = put(text, ",");
            if (status == TB_OK) status = put_detail(text, details->details[i]);
        }
        if (status == TB_OK) status = put(text, "]");
    }
    if (status == TB_OK) status = put(text, "}");
    if (details != NULL) google__rpc__status__free_unpacked(details, NULL);
    free(bytes);
    return status;
}

tb_status http_error_end_stream(tb_bytes *text, tb_status code, const tb_error *error,
                                double retry_after)
{
    char seconds[16], metadata[64];
    tb_status status = put(text, "{");
    if (code != TB_OK) {
        if (status == TB_OK) status = put(text, "\"error\":");
        if (status == TB_OK) status = http_error_connect(text, code, error, retry_after);
        if (status == TB_OK && retry_after > 0) {
            http_retry_text(retry_after, seconds);
            snprintf(metadata, sizeof metadata, ",\"metadata\":{\"retry-after\":[\"%s\"]}",
                     seconds);
            status = put(text, metadata);
        }
    }
    return status == TB_OK ? put(text, "}") : status;
}

/* ---- gRPC-Web -------------------------------------------------------------------------------- */

tb_status http_error_trailers(tb_bytes *text, tb_status code, const tb_error *error,
                              double retry_after)
{
    char line[64];
    snprintf(line, sizeof line, "grpc-status:%d\r\n", tb_status_grpc(code));
    tb_status status = put(text, line);
    if (code == TB_OK) return status;
    if (status == TB_OK) status = put(text, "grpc-message:");
    if (status == TB_OK) status = http_percent_encode(text, message_of(code, error));
    if (status == TB_OK) status = put(text, "\r\n");

    size_t size = 0;
    uint8_t *bytes = td_status_details(code, error, retry_after, &size);
    if (bytes != NULL) {
        if (status == TB_OK) status = put(text, "grpc-status-details-bin:");
        if (status == TB_OK)
            status = put_base64(text, bytes, size, sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
        if (status == TB_OK) status = put(text, "\r\n");
        free(bytes);
    }
    if (retry_after > 0 && status == TB_OK) {
        char seconds[16];
        http_retry_text(retry_after, seconds);
        snprintf(line, sizeof line, "retry-after:%s\r\n", seconds);
        status = put(text, line);
    }
    return status;
}
