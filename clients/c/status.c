/* How a call ended, in the library's terms: the gRPC code, and google.rpc.Status behind it in the
 * trailing metadata `grpc-status-details-bin`. The details are read by their field numbers, which
 * are fixed for good: ErrorInfo.reason (1), BadRequest.field_violations (1).field (1) and
 * RetryInfo.retry_delay (1): seconds (1), nanoseconds (2). */
#include "client_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

typedef struct span {
    const uint8_t *at, *end;
} span;

static bool read_varint(span *s, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        const uint8_t byte = *s->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* The next field: its number, and its number or bytes. False at the end or where it is damaged. */
static bool next_field(span *s, uint32_t *number, uint64_t *value, span *bytes)
{
    uint64_t key;
    *bytes = (span){0};
    *value = 0;
    if (!read_varint(s, &key)) return false;
    *number = (uint32_t)(key >> 3);
    switch (key & 7) {
    case 0: return read_varint(s, value);
    case 2:
        if (!read_varint(s, value) || *value > (uint64_t)(s->end - s->at)) return false;
        *bytes = (span){s->at, s->at + *value};
        s->at += *value;
        return true;
    case 1:
    case 5: {
        const ptrdiff_t size = (key & 7) == 1 ? 8 : 4;
        if (s->end - s->at < size) return false;
        s->at += size;
        return true;
    }
    default: return false;
    }
}

static bool find_bytes(span message, uint32_t wanted, span *found)
{
    uint32_t number;
    uint64_t value;
    span bytes;
    while (next_field(&message, &number, &value, &bytes))
        if (number == wanted && bytes.at != NULL) {
            *found = bytes;
            return true;
        }
    return false;
}

static bool ends_with(span text, const char *suffix)
{
    const size_t size = strlen(suffix), length = (size_t)(text.end - text.at);
    return length >= size && memcmp(text.end - size, suffix, size) == 0;
}

static void copy_text(span text, char *to, size_t size)
{
    size_t length = (size_t)(text.end - text.at);
    if (length > size - 1) length = size - 1;
    memcpy(to, text.at, length);
    to[length] = 0;
}

static double read_delay(span info)
{
    span delay, bytes;
    uint32_t number;
    uint64_t value;
    double seconds = 0;
    if (!find_bytes(info, 1, &delay)) return 0;
    while (next_field(&delay, &number, &value, &bytes))
        seconds += number == 1 ? (double)value : number == 2 ? (double)value * 1e-9 : 0;
    return seconds;
}

static void read_details(span status, double *retry_after, char reason[32], tb_error *error)
{
    uint32_t number;
    uint64_t value;
    span detail, type, body, violation, text;
    while (next_field(&status, &number, &value, &detail)) {
        if (number != 3 || !find_bytes(detail, 1, &type) || !find_bytes(detail, 2, &body)) continue;
        if (ends_with(type, "/google.rpc.ErrorInfo")) {
            if (find_bytes(body, 1, &text)) copy_text(text, reason, 32);
        } else if (ends_with(type, "/google.rpc.BadRequest")) {
            if (error != NULL && find_bytes(body, 1, &violation) && find_bytes(violation, 1, &text))
                copy_text(text, error->field, sizeof error->field);
        } else if (ends_with(type, "/google.rpc.RetryInfo")) {
            *retry_after = read_delay(body);
        }
    }
}

/* The library's status: by its own name where the server sent one, else by the gRPC code. */
static tb_status status_of(int code, const char *reason)
{
#define BY_NAME(name, text, grpc_code, http_code)                                                  \
    if (grpc_code == code && strcmp(reason, #name) == 0) return TB_##name;
    TB_STATUS_LIST(BY_NAME)
#undef BY_NAME
#define BY_CODE(name, text, grpc_code, http_code)                                                  \
    if (grpc_code == code && strcmp(tb_status_name(TB_##name), "DIVERGED") != 0 &&                 \
        strcmp(tb_status_name(TB_##name), "NOT_CONVERGED") != 0)                                   \
        return TB_##name;
    TB_STATUS_LIST(BY_CODE)
#undef BY_CODE
    return TB_INTERNAL;
}

void tbc_end_init(tbc_end *end)
{
    memset(end, 0, sizeof *end);
    end->message = grpc_empty_slice();
    grpc_metadata_array_init(&end->trailing);
}

void tbc_end_free(tbc_end *end)
{
    grpc_slice_unref(end->message);
    grpc_metadata_array_destroy(&end->trailing);
}

tb_status tbc_end_status(const tbc_client *client, const tbc_end *end, const char *method,
                         double *retry_after, tb_error *error)
{
    char reason[32] = "", text[TB_ERROR_MESSAGE_SIZE];
    double delay = -1;
    if (end->code == GRPC_STATUS_OK) return TB_OK;
    if (error != NULL) *error = (tb_error){0};
    for (size_t i = 0; i < end->trailing.count; i++) {
        const grpc_metadata *entry = &end->trailing.metadata[i];
        if (grpc_slice_str_cmp(entry->key, "grpc-status-details-bin") != 0) continue;
        const uint8_t *start = GRPC_SLICE_START_PTR(entry->value);
        read_details((span){start, start + GRPC_SLICE_LENGTH(entry->value)}, &delay, reason, error);
    }
    if (retry_after != NULL) *retry_after = delay;
    const uint8_t *message = GRPC_SLICE_START_PTR(end->message);
    copy_text((span){message, message + GRPC_SLICE_LENGTH(end->message)}, text, sizeof text);
    const tb_status status = status_of((int)end->code, reason);
    const char *slash = strrchr(method, '/');
    if (text[0] == 0)
        snprintf(text, sizeof text, "%.64s at %.128s: %s", slash != NULL ? slash + 1 : method,
                 client->address, tb_status_text(status));
    char field[TB_ERROR_NAME_SIZE] = "";
    if (error != NULL) memcpy(field, error->field, sizeof field);
    return tb_fail_field(error, status, field, "%s", text);
}
