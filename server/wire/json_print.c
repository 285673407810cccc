/* Messages to canonical protobuf JSON, straight into a growing buffer: a document tree in between
 * would take several times the memory of the message. */
#include "wire/json.h"

#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tribo/v1/common.pb-c.h"

/* The text with the first failure; after one, everything else does nothing. */
typedef struct printer {
    bool plain; /* Arrays as lists */
    tb_bytes *text;
    tb_error *error;
    tb_status status;
} printer;

static void print_message(printer *, const ProtobufCMessage *);

static void put(printer *p, const char *bytes, size_t size)
{
    if (p->status == TB_OK && tb_bytes_append(p->text, bytes, size) != TB_OK)
        p->status = tb_fail_memory(p->error, size, "a JSON answer");
}

static void put_text(printer *p, const char *text)
{
    put(p, text, strlen(text));
}

/* ---- strings ----------------------------------------------------------------------------------*/

/* Length of the UTF-8 sequence at `s`, 0 if it is none (Unicode 15, table 3-7). */
static size_t sequence_length(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80) return 1;
    const size_t length = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                          : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                          : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                        : 0;
    if (length == 0 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0;  /* overlong */
    if (s[0] == 0xed && s[1] >= 0xa0) return 0; /* surrogates */
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;  /* overlong */
    if (s[0] == 0xf4 && s[1] >= 0x90) return 0; /* above U+10FFFF */
    return length;
}

tb_status td_json_print_string(tb_bytes *text, const char *bytes, size_t size)
{
    const unsigned char *s = (const unsigned char *)bytes;
    tb_status status = tb_bytes_append(text, "\"", 1);
    size_t begin = 0; /* bytes that need no escape */
    for (size_t i = 0; i < size && status == TB_OK;) {
        const size_t length = sequence_length(s + i, size - i);
        char escape[8] = "";
        switch (s[i]) {
        case '"': strcpy(escape, "\\\""); break;
        case '\\': strcpy(escape, "\\\\"); break;
        case '\n': strcpy(escape, "\\n"); break;
        case '\r': strcpy(escape, "\\r"); break;
        case '\t': strcpy(escape, "\\t"); break;
        default:
            if (length == 0)
                strcpy(escape, "\xef\xbf\xbd");
            else if (s[i] < 0x20 || s[i] == 0x7f)
                snprintf(escape, sizeof escape, "\\u%04x", s[i]);
        }
        const size_t step = length > 0 ? length : 1;
        if (escape[0] != '\0') {
            status = tb_bytes_append(text, s + begin, i - begin);
            if (status == TB_OK) status = tb_bytes_append(text, escape, strlen(escape));
            begin = i + step;
        }
        i += step;
    }
    if (status == TB_OK) status = tb_bytes_append(text, s + begin, size - begin);
    if (status == TB_OK) status = tb_bytes_append(text, "\"", 1);
    return status;
}

static void put_string(printer *p, const char *string)
{
    const size_t size = string != NULL ? strlen(string) : 0;
    if (p->status == TB_OK && td_json_print_string(p->text, string, size) != TB_OK)
        p->status = tb_fail_memory(p->error, size, "a JSON answer");
}

/* Base64 in pieces, so that no second copy of a large array is made. */
static void put_base64(printer *p, const ProtobufCBinaryData *data)
{
    enum { PIECE = 3 * 1024 };
    char encoded[PIECE / 3 * 4 + 1];
    put(p, "\"", 1);
    for (size_t i = 0; i < data->len && p->status == TB_OK; i += PIECE) {
        const size_t size = data->len - i < PIECE ? data->len - i : PIECE;
        sodium_bin2base64(encoded, sizeof encoded, data->data + i, size,
                          sodium_base64_VARIANT_ORIGINAL);
        put_text(p, encoded);
    }
    put(p, "\"", 1);
}

/* ---- numbers ----------------------------------------------------------------------------------*/

/* The shortest of the usual precisions that reads back as the same number. */
static void put_real(printer *p, double x, bool single)
{
    if (isnan(x)) {
        put_text(p, "\"NaN\"");
        return;
    }
    if (isinf(x)) {
        put_text(p, x > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    if (x == 0 && signbit(x)) { /* "-0" would be read as a whole number, which has no sign */
        put_text(p, "-0.0");
        return;
    }
    char text[40];
    const int last = single ? 9 : 17;
    for (int precision = single ? 6 : 15; precision <= last; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, x);
        if (single ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x) break;
    }
    put_text(p, text);
}

static void put_enum(printer *p, const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);
    char text[16];
    if (value != NULL) {
        put_string(p, value->name);
        return;
    }
    snprintf(text, sizeof text, "%d", number);
    put_text(p, text);
}

/* ---- arrays as lists ------------------------------------------------------------------------- */

static void put_element(printer *p, const Tribo__V1__Array *array, size_t index)
{
    static const int64_t EXACT_LIMIT = INT64_C(1) << 53;
    const uint8_t *data = array->data.data;
    char text[32];
    double x = 0;
    float single = 0;
    int64_t whole = 0;
    int32_t narrow = 0;
    switch (array->dtype) {
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32:
        memcpy(&single, data + 4 * index, sizeof single);
        put_real(p, (double)single, true);
        return;
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32:
        memcpy(&narrow, data + 4 * index, sizeof narrow);
        whole = narrow;
        break;
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64:
        memcpy(&whole, data + 8 * index, sizeof whole);
        break;
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8: whole = data[index]; break;
    default:
        memcpy(&x, data + 8 * index, sizeof x);
        put_real(p, x, false);
        return;
    }
    const bool exact = whole <= EXACT_LIMIT && whole >= -EXACT_LIMIT;
    snprintf(text, sizeof text, exact ? "%lld" : "\"%lld\"", (long long)whole);
    put_text(p, text);
}

static void put_axis(printer *p, const Tribo__V1__Array *array, size_t axis, size_t *next)
{
    const int64_t length = axis < array->n_shape ? array->shape[axis] : 0;
    put(p, "[", 1);
    for (int64_t i = 0; i < length && p->status == TB_OK; i++) {
        if (i > 0) put(p, ",", 1);
        if (axis + 1 < array->n_shape)
            put_axis(p, array, axis + 1, next);
        else
            put_element(p, array, (*next)++);
    }
    put(p, "]", 1);
}

/* The shape must fit the data, which is ours. */
static void put_array(printer *p, const Tribo__V1__Array *array)
{
    const bool wide = array->dtype == TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64 ||
                      array->dtype == TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64 ||
                      array->dtype == TRIBO__V1__DATA_TYPE__DATA_TYPE_UNSPECIFIED;
    size_t size = array->dtype == TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8 ? 1 : wide ? 8 : 4;
    for (size_t i = 0; i < array->n_shape; i++) size *= (size_t)array->shape[i];
    size_t next = 0;
    if (size != array->data.len && p->status == TB_OK)
        p->status = tb_fail(p->error, TB_INTERNAL, "an array of %zu bytes, its shape asks for %zu",
                            array->data.len, size);
    put_axis(p, array, 0, &next);
}

static void put_value(printer *p, const ProtobufCFieldDescriptor *field, const void *value)
{
    char text[32] = "";
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        snprintf(text, sizeof text, "%ld", (long)*(const int32_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        snprintf(text, sizeof text, "%lu", (unsigned long)*(const uint32_t *)value);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        snprintf(text, sizeof text, "\"%lld\"", (long long)*(const int64_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        snprintf(text, sizeof text, "\"%llu\"", (unsigned long long)*(const uint64_t *)value);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        strcpy(text, *(const protobuf_c_boolean *)value ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_FLOAT: put_real(p, (double)*(const float *)value, true); break;
    case PROTOBUF_C_TYPE_DOUBLE: put_real(p, *(const double *)value, false); break;
    case PROTOBUF_C_TYPE_ENUM: put_enum(p, field->descriptor, *(const int *)value); break;
    case PROTOBUF_C_TYPE_STRING: put_string(p, *(char *const *)value); break;
    case PROTOBUF_C_TYPE_BYTES: put_base64(p, value); break;
    case PROTOBUF_C_TYPE_MESSAGE: print_message(p, *(ProtobufCMessage *const *)value); break;
    }
    put_text(p, text);
}

/* ---- messages ---------------------------------------------------------------------------------*/

/* Whether a field without explicit presence has its default value, which is left out. */
static bool is_default(const ProtobufCFieldDescriptor *field, const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE: return *(ProtobufCMessage *const *)value == NULL;
    case PROTOBUF_C_TYPE_STRING:
        return *(char *const *)value == NULL || **(char *const *)value == '\0';
    case PROTOBUF_C_TYPE_BYTES: return ((const ProtobufCBinaryData *)value)->len == 0;
    default: break;
    }
    static const unsigned char ZERO[sizeof(uint64_t)] = {0};
    return memcmp(value, ZERO, td_json_value_size(field->type)) == 0;
}

static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    const void *value = base + field->offset;
    const void *quantifier = base + field->quantifier_offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return *(const size_t *)quantifier > 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)quantifier == field->id &&
               (field->type != PROTOBUF_C_TYPE_MESSAGE || !is_default(field, value));
    if (field->label == PROTOBUF_C_LABEL_REQUIRED) return true;
    const bool pointer =
        field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING;
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL)
        return pointer
                   ? *(void *const *)value != NULL && *(void *const *)value != field->default_value
                   : *(const protobuf_c_boolean *)quantifier;
    return !is_default(field, value);
}

static void put_repeated(printer *p, const ProtobufCFieldDescriptor *field, const char *values,
                         size_t count)
{
    const size_t size = td_json_value_size(field->type);
    put(p, "[", 1);
    for (size_t i = 0; i < count && p->status == TB_OK; i++) {
        if (i > 0) put(p, ",", 1);
        put_value(p, field, values + i * size);
    }
    put(p, "]", 1);
}

/* A map: its entries are messages of a key and a value. Keys are strings in JSON. */
static void put_map(printer *p, const ProtobufCMessageDescriptor *entry,
                    ProtobufCMessage *const *entries, size_t count)
{
    const ProtobufCFieldDescriptor *key = &entry->fields[0], *value = &entry->fields[1];
    put(p, "{", 1);
    for (size_t i = 0; i < count && p->status == TB_OK; i++) {
        const char *base = (const char *)entries[i];
        const size_t begin = p->text->size + (i > 0 ? 1 : 0);
        if (i > 0) put(p, ",", 1);
        put_value(p, key, base + key->offset);
        /* a number or a truth value still needs its quotes */
        if (p->status == TB_OK && p->text->base[begin] != '"') {
            char bare[32];
            const size_t size = p->text->size - begin;
            if (size >= sizeof bare) {
                p->status = tb_fail(p->error, TB_INTERNAL, "%s: a key of type %d", entry->name,
                                    (int)key->type);
                return;
            }
            memcpy(bare, p->text->base + begin, size);
            p->text->size = begin;
            put(p, "\"", 1);
            put(p, bare, size);
            put(p, "\"", 1);
        }
        put(p, ":", 1);
        put_value(p, value, base + value->offset);
    }
    put(p, "}", 1);
}

/* The fields between the braces; `first`: no comma is due yet. */
static void put_fields(printer *p, const ProtobufCMessage *message, bool first)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned i = 0; i < type->n_fields && p->status == TB_OK; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (!is_present(message, field)) continue;
        char name[TD_JSON_NAME_SIZE];
        td_json_name(field->name, name);
        put_text(p, first ? "\"" : ",\"");
        put_text(p, name);
        put(p, "\":", 2);
        first = false;

        const char *value = (const char *)message + field->offset;
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            put_value(p, field, value);
            continue;
        }
        const size_t count = *(const size_t *)((const char *)message + field->quantifier_offset);
        const ProtobufCMessageDescriptor *entry = td_json_map_entry(type, field);
        if (entry != NULL)
            put_map(p, entry, *(ProtobufCMessage *const *const *)value, count);
        else
            put_repeated(p, field, *(const char *const *)value, count);
    }
}

/* ---- the types with a JSON form of their own ------------------------------------------------- */

/* Value of the field with this number, or NULL. */
static const void *field_value(const ProtobufCMessage *message, unsigned id)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message->descriptor, id);
    return field != NULL ? (const char *)message + field->offset : NULL;
}

/* "1.5s": as many decimals as needed, in groups of three. */
static void put_duration(printer *p, const ProtobufCMessage *duration)
{
    const int64_t seconds = *(const int64_t *)field_value(duration, 1);
    const int32_t nanos = *(const int32_t *)field_value(duration, 2);
    char text[64];
    if (seconds < -315576000000 || seconds > 315576000000 || nanos <= -1000000000 ||
        nanos >= 1000000000 || (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0)) {
        p->status = tb_fail(p->error, TB_INTERNAL, "a duration of %lld s and %d ns",
                            (long long)seconds, (int)nanos);
        return;
    }
    snprintf(text, sizeof text, "\"%s%lld.%09d", seconds < 0 || nanos < 0 ? "-" : "",
             llabs((long long)seconds), abs((int)nanos));
    size_t length = strlen(text);
    for (int group = 0; group < 3 && strcmp(text + length - 3, "000") == 0; group++)
        text[length -= 3] = '\0';
    if (text[length - 1] == '.') length--;
    strcpy(text + length, "s\"");
    put_text(p, text);
}

/* The message inside with "@type" before its fields; of a type not known, its bytes. */
static void put_any(printer *p, const ProtobufCMessage *any)
{
    const char *type_url = *(char *const *)field_value(any, 1);
    const ProtobufCBinaryData *value = field_value(any, 2);
    const ProtobufCMessageDescriptor *type = td_json_detail_type(type_url);
    ProtobufCMessage *inside =
        type != NULL ? protobuf_c_message_unpack(type, NULL, value->len, value->data) : NULL;
    put_text(p, "{\"@type\":");
    put_string(p, type_url);
    if (inside != NULL) {
        put_fields(p, inside, false);
        protobuf_c_message_free_unpacked(inside, NULL);
    } else {
        put_text(p, ",\"value\":");
        put_base64(p, value);
    }
    put(p, "}", 1);
}

static void print_message(printer *p, const ProtobufCMessage *message)
{
    if (p->plain && message->descriptor == &tribo__v1__array__descriptor) {
        put_array(p, (const Tribo__V1__Array *)message);
    } else if (strcmp(message->descriptor->name, "google.protobuf.Duration") == 0) {
        put_duration(p, message);
    } else if (strcmp(message->descriptor->name, "google.protobuf.Any") == 0) {
        put_any(p, message);
    } else {
        put(p, "{", 1);
        put_fields(p, message, true);
        put(p, "}", 1);
    }
}

static tb_status print(tb_bytes *text, const ProtobufCMessage *message, bool plain, tb_error *error)
{
    printer p = {.plain = plain, .text = text, .error = error};
    print_message(&p, message);
    return p.status;
}

tb_status td_json_print(tb_bytes *text, const ProtobufCMessage *message, tb_error *error)
{
    return print(text, message, false, error);
}

tb_status td_json_print_plain(tb_bytes *text, const ProtobufCMessage *message, tb_error *error)
{
    return print(text, message, true, error);
}
