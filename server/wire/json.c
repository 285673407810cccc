/* Helpers shared by printing and parsing JSON: names, map entries, the types of error details. */
#include "wire/json.h"

#include <string.h>

#include "google/rpc/error_details.pb-c.h"

void td_json_name(const char *name, char json_name[TD_JSON_NAME_SIZE])
{
    size_t length = 0;
    bool upper = false;
    for (; *name != '\0' && length + 1 < TD_JSON_NAME_SIZE; name++) {
        if (*name == '_') {
            upper = true;
            continue;
        }
        const bool lower_case = *name >= 'a' && *name <= 'z';
        json_name[length++] = upper && lower_case ? (char)(*name - 'a' + 'A') : *name;
        upper = false;
    }
    json_name[length] = '\0';
}

/* protoc makes a map<> field "labels" of message M a repeated field of a message M.LabelsEntry with
 * a key and a value; protobuf-c keeps no other trace of it. */
const ProtobufCMessageDescriptor *td_json_map_entry(const ProtobufCMessageDescriptor *message,
                                                    const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label != PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    const ProtobufCMessageDescriptor *entry = field->descriptor;
    if (entry->n_fields != 2 || strcmp(entry->fields[0].name, "key") != 0 ||
        strcmp(entry->fields[1].name, "value") != 0)
        return NULL;

    char expected[TD_JSON_NAME_SIZE];
    td_json_name(field->name, expected);
    if (expected[0] >= 'a' && expected[0] <= 'z') expected[0] = (char)(expected[0] - 'a' + 'A');
    const size_t outer = strlen(message->name), inner = strlen(expected);
    const char *name = entry->name;
    return strncmp(name, message->name, outer) == 0 && name[outer] == '.' &&
                   strncmp(name + outer + 1, expected, inner) == 0 &&
                   strcmp(name + outer + 1 + inner, "Entry") == 0
               ? entry
               : NULL;
}

size_t td_json_value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_FLOAT: return sizeof(float);
    case PROTOBUF_C_TYPE_DOUBLE: return sizeof(double);
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM: return sizeof(int);
    case PROTOBUF_C_TYPE_STRING: return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(ProtobufCMessage *);
    }
    return 0;
}

const ProtobufCMessageDescriptor *td_json_detail_type(const char *type_url)
{
    static const ProtobufCMessageDescriptor *const KNOWN[] = {
        &google__rpc__error_info__descriptor,    &google__rpc__bad_request__descriptor,
        &google__rpc__retry_info__descriptor,    &google__rpc__resource_info__descriptor,
        &google__rpc__quota_failure__descriptor, &google__rpc__precondition_failure__descriptor,
    };
    const char *slash = strrchr(type_url, '/');
    const char *name = slash != NULL ? slash + 1 : type_url;
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (strcmp(KNOWN[i]->name, name) == 0) return KNOWN[i];
    return NULL;
}
