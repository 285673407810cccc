/* Scans an encoded message. Wire format: protobuf.dev/programming-guides/encoding. The memory
 * estimate follows protobuf_c_message_unpack of protobuf-c 1.4. */
#include "wire/scan.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum {
    VARINT_BYTES = 10,
    FIELD_NUMBER_BITS = 29,
    /* protobuf-c keeps one record for each field that it finds: 16 on its stack, then in slabs of
     * twice the size each */
    MEMBER_RECORD_BYTES = 32,
    MEMBERS_ON_STACK = 16,
    ALIGNMENT = 16
};

/* Memory needs of one message. */
typedef struct needs {
    size_t memory;
    size_t members, unknown;
} needs;

static bool read_varint(td_wire *wire, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < VARINT_BYTES && wire->at + i < wire->end; i++) {
        const uint8_t byte = wire->at[i];
        result |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            wire->at += i + 1;
            *value = result;
            return true;
        }
    }
    return false;
}

static bool read_fixed(td_wire *wire, unsigned bytes, uint64_t *value)
{
    if ((size_t)(wire->end - wire->at) < bytes) return false;
    *value = 0;
    for (unsigned i = 0; i < bytes; i++) *value |= (uint64_t)wire->at[i] << (8 * i);
    wire->at += bytes;
    return true;
}

static bool read_content(td_wire *wire, td_wire_field *field)
{
    switch (field->type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT: return read_varint(wire, &field->number);
    case PROTOBUF_C_WIRE_TYPE_64BIT: return read_fixed(wire, 8, &field->number);
    case PROTOBUF_C_WIRE_TYPE_32BIT: return read_fixed(wire, 4, &field->number);
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!read_varint(wire, &field->number)) return false;
        if (field->number > (uint64_t)(wire->end - wire->at)) return false;
        field->bytes = wire->at;
        field->size = (size_t)field->number;
        wire->at += field->size;
        return true;
    default: return false;
    }
}

bool td_wire_next(td_wire *wire, td_wire_field *field)
{
    td_wire ahead = *wire;
    uint64_t tag = 0;
    *field = (td_wire_field){0};
    if (wire->at == wire->end || !read_varint(&ahead, &tag)) return false;
    if (tag >> 3 == 0 || tag >> 3 >> FIELD_NUMBER_BITS != 0) return false;
    field->id = (uint32_t)(tag >> 3);
    field->type = (ProtobufCWireType)(tag & 7);
    if (!read_content(&ahead, field)) return false;
    *wire = ahead;
    return true;
}

/* Bytes of one element in the C struct's array. */
static size_t element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return 4;
    }
}

/* Number of elements in a packed field. */
static size_t packed_elements(const ProtobufCFieldDescriptor *known, const td_wire_field *field)
{
    switch (known->type) {
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return field->size / 8;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return field->size / 4;
    default: break;
    }
    size_t count = 0;
    for (size_t i = 0; i < field->size; i++) count += field->bytes[i] < 0x80;
    return count;
}

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Bytes of the UTF-8 character at `text`, 0 where there is none. RFC 3629. */
static size_t character_length(const uint8_t *text, size_t size)
{
    const uint8_t c = text[0];
    if (c < 0x80) return 1;
    const size_t length = c < 0xE0 ? 2 : (c < 0xF0 ? 3 : 4);
    if (c < 0xC2 || c > 0xF4 || length > size) return 0;
    const uint8_t lower = c == 0xE0 ? 0xA0 : (c == 0xF0 ? 0x90 : 0x80);
    const uint8_t upper = c == 0xED ? 0x9F : (c == 0xF4 ? 0x8F : 0xBF);
    if (text[1] < lower || text[1] > upper) return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* A string is UTF-8 by proto3, and ends at its NUL in C. */
static tb_status check_text(const ProtobufCFieldDescriptor *known, const td_wire_field *field,
                            tb_error *error)
{
    for (size_t i = 0; i < field->size;) {
        const size_t length = character_length(field->bytes + i, field->size - i);
        if (length == 0)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, known->name,
                                 "%s is not UTF-8 from byte %zu on", known->name, i);
        if (field->bytes[i] == 0)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, known->name,
                                 "%s has a zero byte at byte %zu", known->name, i);
        i += length;
    }
    return TB_OK;
}

/* Puts the name of the field that holds the message before the path of the field at fault. */
static void prefix_field(tb_error *error, const char *name)
{
    char path[TB_ERROR_NAME_SIZE];
    if (error == NULL) return;
    const int length = snprintf(path, sizeof path, "%s%s%s", name,
                                error->field[0] != '\0' ? "." : "", error->field);
    if (length > 0 && (size_t)length < sizeof path) memcpy(error->field, path, (size_t)length + 1);
}

/* A field that the message type has, of a wire type that carries it. */
static tb_status scan_known(const ProtobufCFieldDescriptor *known, const td_wire_field *field,
                            int32_t nesting, needs *need, tb_error *error)
{
    tb_status status = TB_OK;
    const bool delimited = field->type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    const bool repeated = known->label == PROTOBUF_C_LABEL_REPEATED;
    size_t count = 1;
    switch (known->type) {
    case PROTOBUF_C_TYPE_STRING:
        if (delimited) status = check_text(known, field, error);
        need->memory += aligned(field->size + 1);
        break;
    case PROTOBUF_C_TYPE_BYTES: need->memory += aligned(field->size); break;
    case PROTOBUF_C_TYPE_MESSAGE:
        if (!delimited) break;
        if (nesting <= 1)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, known->name,
                                 "%s: messages are nested too deep", known->name);
        status = td_scan(known->descriptor, field->bytes, field->size, nesting - 1, &need->memory,
                         error);
        if (status != TB_OK) prefix_field(error, known->name);
        break;
    default:
        if (delimited && repeated) count = packed_elements(known, field);
        break;
    }
    if (repeated) need->memory += count * element_size(known->type);
    return status;
}

/* Working memory for the records of fields, and the memory of unknown fields. */
static size_t record_memory(const needs *need)
{
    size_t memory = aligned(need->unknown * sizeof(ProtobufCMessageUnknownField));
    size_t slab = MEMBERS_ON_STACK;
    for (size_t capacity = slab; capacity < need->members; capacity += slab) {
        slab *= 2;
        memory += slab * MEMBER_RECORD_BYTES;
    }
    return memory;
}

tb_status td_scan(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                  int32_t nesting, size_t *memory, tb_error *error)
{
    td_wire wire = {bytes, bytes + size};
    td_wire_field field;
    needs need = {.memory = *memory + aligned(type->sizeof_message)};

    while (td_wire_next(&wire, &field)) {
        const ProtobufCFieldDescriptor *known =
            protobuf_c_message_descriptor_get_field(type, field.id);
        need.members++;
        if (known == NULL) {
            need.unknown++;
            need.memory += aligned(VARINT_BYTES + field.size);
            continue;
        }
        const tb_status status = scan_known(known, &field, nesting, &need, error);
        if (status != TB_OK) return status;
    }
    if (wire.at != wire.end)
        return tb_fail(error, TB_INVALID_ARGUMENT, "%s is malformed at byte %zu of %zu", type->name,
                       (size_t)(wire.at - bytes), size);

    /* the arrays of repeated fields are aligned too: this is the largest loss */
    need.memory += need.members > 0 ? type->n_fields * (size_t)ALIGNMENT : 0;
    *memory = need.memory + record_memory(&need);
    return TB_OK;
}
