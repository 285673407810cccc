/* Errors as google.rpc.Status, which clients of any language know how to read.
 *
 * ErrorInfo always comes: reason is the status's name, domain "tribo.v1", metadata the file and line
 * at fault, or the address of the replica that has the session. The others come as they
 * apply: the field at fault, the thing that was not found, the limit that was met, when to retry.
 * Meaning of each: google/rpc/error_details.proto and AIP-193. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "call/call.h"
#include "ops/replica.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

#define TYPE_PREFIX "type.googleapis.com/"

enum { DETAILS = 4, TYPE_URL_SIZE = 64, LINE_TEXT_SIZE = 16 };

/* Packed details; each holds a malloc'ed copy of its message. */
typedef struct detail_list {
    Google__Protobuf__Any any[DETAILS], *pointers[DETAILS];
    char type_url[DETAILS][TYPE_URL_SIZE];
    size_t count;
} detail_list;

/* Appends a detail; false if out of memory. */
static bool add(detail_list *list, const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (bytes == NULL) return false;
    protobuf_c_message_pack(message, bytes);
    const size_t i = list->count++;
    snprintf(list->type_url[i], TYPE_URL_SIZE, TYPE_PREFIX "%s", message->descriptor->name);
    google__protobuf__any__init(&list->any[i]);
    list->any[i].type_url = list->type_url[i];
    list->any[i].value = (ProtobufCBinaryData){.len = size, .data = bytes};
    list->pointers[i] = &list->any[i];
    return true;
}

static bool add_error_info(detail_list *list, tb_status status, tb_error *error)
{
    char line[LINE_TEXT_SIZE], address[TB_ERROR_NAME_SIZE];
    Google__Rpc__ErrorInfo__MetadataEntry entries[2], *pointers[2];
    Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
    char domain[] = "tribo.v1", file_key[] = "file", line_key[] = "line", replica_key[] = "replica";
    char reason[TB_ERROR_NAME_SIZE];
    snprintf(reason, sizeof reason, "%s", tb_status_name(status));
    snprintf(line, sizeof line, "%d", error->line);
    for (size_t i = 0; i < 2; i++) {
        google__rpc__error_info__metadata_entry__init(&entries[i]);
        pointers[i] = &entries[i];
    }
    entries[0].key = file_key;
    entries[0].value = error->file;
    entries[1].key = line_key;
    entries[1].value = line;
    info.reason = reason;
    info.domain = domain;
    info.metadata = pointers;
    if (error->file[0] != '\0') info.n_metadata = error->line > 0 ? 2 : 1;
    snprintf(address, sizeof address, "%s", td_replica_of_error(error));
    if (address[0] != '\0') {
        entries[0].key = replica_key;
        entries[0].value = address;
    }
    return add(list, &info.base);
}

static bool add_field(detail_list *list, tb_error *error)
{
    Google__Rpc__BadRequest__FieldViolation violation =
        GOOGLE__RPC__BAD_REQUEST__FIELD_VIOLATION__INIT;
    Google__Rpc__BadRequest__FieldViolation *pointers[] = {&violation};
    Google__Rpc__BadRequest detail = GOOGLE__RPC__BAD_REQUEST__INIT;
    violation.field = error->field;
    violation.description = error->message;
    detail.n_field_violations = 1;
    detail.field_violations = pointers;
    return add(list, &detail.base);
}

static bool add_resource(detail_list *list, tb_error *error)
{
    char type[] = "tribo.v1";
    Google__Rpc__ResourceInfo detail = GOOGLE__RPC__RESOURCE_INFO__INIT;
    detail.resource_type = type;
    detail.resource_name = error->field;
    detail.description = error->message;
    return add(list, &detail.base);
}

static bool add_quota(detail_list *list, tb_error *error)
{
    Google__Rpc__QuotaFailure__Violation violation = GOOGLE__RPC__QUOTA_FAILURE__VIOLATION__INIT;
    Google__Rpc__QuotaFailure__Violation *pointers[] = {&violation};
    Google__Rpc__QuotaFailure detail = GOOGLE__RPC__QUOTA_FAILURE__INIT;
    violation.subject = error->field;
    violation.description = error->message;
    detail.n_violations = 1;
    detail.violations = pointers;
    return add(list, &detail.base);
}

static bool add_precondition(detail_list *list, tb_status status, tb_error *error)
{
    char type[TB_ERROR_NAME_SIZE];
    Google__Rpc__PreconditionFailure__Violation violation =
        GOOGLE__RPC__PRECONDITION_FAILURE__VIOLATION__INIT;
    Google__Rpc__PreconditionFailure__Violation *pointers[] = {&violation};
    Google__Rpc__PreconditionFailure detail = GOOGLE__RPC__PRECONDITION_FAILURE__INIT;
    snprintf(type, sizeof type, "%s", tb_status_name(status));
    violation.type = type;
    violation.subject = error->field;
    violation.description = error->message;
    detail.n_violations = 1;
    detail.violations = pointers;
    return add(list, &detail.base);
}

static bool add_retry(detail_list *list, double retry_after)
{
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;
    Google__Rpc__RetryInfo detail = GOOGLE__RPC__RETRY_INFO__INIT;
    const double longest = 1e9; /* s: far beyond any sense, within the type's range */
    const double seconds = fmin(retry_after, longest);
    delay.seconds = (int64_t)floor(seconds);
    delay.nanos = (int32_t)((seconds - floor(seconds)) * 1e9);
    detail.retry_delay = &delay;
    return add(list, &detail.base);
}

/* The detail that belongs to the status, where there is one. */
static bool add_specific(detail_list *list, tb_status status, tb_error *error)
{
    switch (status) {
    case TB_INVALID_ARGUMENT: return error->field[0] == '\0' || add_field(list, error);
    case TB_NOT_FOUND: return add_resource(list, error);
    case TB_RESOURCE_EXHAUSTED: return add_quota(list, error);
    case TB_FAILED_PRECONDITION: return add_precondition(list, status, error);
    default: return true;
    }
}

uint8_t *td_status_details(tb_status status, const tb_error *error, double retry_after,
                           size_t *size)
{
    uint8_t *bytes = NULL;
    detail_list list = {.count = 0};
    tb_error copy = {.status = status};
    Google__Rpc__Status message = GOOGLE__RPC__STATUS__INIT;
    *size = 0;

    if (error != NULL) copy = *error;
    if (copy.message[0] == '\0')
        snprintf(copy.message, sizeof copy.message, "%s", tb_status_text(status));
    if (!add_error_info(&list, status, &copy) || !add_specific(&list, status, &copy)) goto done;
    if (retry_after > 0 && !add_retry(&list, retry_after)) goto done;

    message.code = tb_status_grpc(status);
    message.message = copy.message;
    message.n_details = list.count;
    message.details = list.pointers;
    *size = google__rpc__status__get_packed_size(&message);
    bytes = malloc(*size);
    if (bytes != NULL)
        google__rpc__status__pack(&message, bytes);
    else
        *size = 0;
done:
    for (size_t i = 0; i < list.count; i++) free(list.any[i].value.data);
    return bytes;
}
