/* How a call ended, in the library's terms: the gRPC code, and google.rpc.Status behind it in the
 * trailing metadata `grpc-status-details-bin`. The details (google/rpc/error_details.proto) are
 * read by their field numbers, which are fixed for good. */
#include "client_internal.h"

#include <stdio.h>
#include <stdlib.h>
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

/* ErrorInfo: reason (1); metadata (3) of key (1) and value (2) holds file and line. */
static void read_error_info(span info, char reason[32], tb_error *error)
{
    uint32_t number;
    uint64_t value;
    span bytes, key, text;
    while (next_field(&info, &number, &value, &bytes)) {
        if (number == 1) copy_text(bytes, reason, 32);
        if (number != 3 || !find_bytes(bytes, 1, &key) || !find_bytes(bytes, 2, &text)) continue;
        char line[16];
        if (ends_with(key, "file")) copy_text(text, error->file, sizeof error->file);
        copy_text(text, line, sizeof line);
        if (ends_with(key, "line")) error->line = (int)strtol(line, NULL, 10);
    }
}

/* Where each kind of detail names the thing at fault. */
static void read_field(span type, span body, tb_error *error)
{
    static const struct {
        const char *type;
        uint32_t list, name; /* list 0: the detail itself holds the name */
    } PLACES[] = {{"/google.rpc.BadRequest", 1, 1},
                  {"/google.rpc.ResourceInfo", 0, 2},
                  {"/google.rpc.QuotaFailure", 1, 1},
                  {"/google.rpc.PreconditionFailure", 1, 2}};
    span holder = body, text;
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++)
        if (ends_with(type, PLACES[i].type) &&
            (PLACES[i].list == 0 || find_bytes(body, PLACES[i].list, &holder)) &&
            find_bytes(holder, PLACES[i].name, &text))
            copy_text(text, error->field, sizeof error->field);
}

/* google.rpc.Status: details (3), each an Any of type (1) and value (2). */
static void read_details(span status, double *retry_after, char reason[32], tb_error *error)
{
    uint32_t number;
    uint64_t value;
    span detail, type, body;
    while (next_field(&status, &number, &value, &detail)) {
        if (number != 3 || !find_bytes(detail, 1, &type) || !find_bytes(detail, 2, &body)) continue;
        if (ends_with(type, "/google.rpc.ErrorInfo"))
            read_error_info(body, reason, error);
        else if (ends_with(type, "/google.rpc.RetryInfo"))
            *retry_after = read_delay(body);
        else
            read_field(type, body, error);
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

tb_status tbc_end_status(const tbc_client *client, const tbc_exchange *x, const char *method,
                         double *retry_after, tb_error *error)
{
    char reason[32] = "", text[TB_ERROR_MESSAGE_SIZE];
    double delay = -1;
    tb_error told = {0};
    if (x->code == TBC_OK) return TB_OK;
    const uint8_t *details = x->details.base, *message = x->message.base;
    if (details != NULL)
        read_details((span){details, details + x->details.size}, &delay, reason, &told);
    if (retry_after != NULL) *retry_after = delay;
    text[0] = 0;
    if (message != NULL) copy_text((span){message, message + x->message.size}, text, sizeof text);
    const tb_status status = status_of(x->code, reason);
    const char *slash = strrchr(method, '/');
    method = slash != NULL ? slash + 1 : method;
    const char *said = text[0] != 0 ? text : tb_status_text(status);
    if (error == NULL) return status;
    /* an error without details is not from the daemon: name the address and the method */
    if (reason[0] == 0)
        tb_fail(error, status, "%.64s at %.128s: %s", method, client->address, said);
    else
        tb_fail_field(error, status, told.field, "%s", said);
    memcpy(error->file, told.file, sizeof error->file);
    error->line = told.line;
    return status;
}
