/* Parses canonical protobuf JSON into messages: jansson reads the text, descriptors define the
 * fields.
 *
 * The text is untrusted. Before jansson builds its tree, one pass over the bytes bounds the tree's
 * depth and memory; the message itself is in the request's bounded arena. */
#include "wire/json.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"

#include "tribo/v1/common.pb-c.h"

/* Upper bounds of the memory of jansson's nodes, with the allocator's overhead: an object with its
 * first buckets, a key's pair in the hash table, a number or short string with its slot in an array
 * that has just doubled. */
enum { OBJECT_BYTES = 320, KEY_BYTES = 128, ELEMENT_BYTES = 96 };
/* Beyond 2^53 a number without quotes may have been rounded by its sender. */
static const double EXACT_LIMIT = 9007199254740992.0;
enum { MAXIMUM_FIELDS = 256 };

typedef struct reader {
    td_request *request;
    tb_error *error;
} reader;

/* Position of a value in the document, as names from the root, for error messages. */
typedef struct place {
    const struct place *outer; /* NULL: the root */
    const char *name;          /* NULL: an element of `outer` */
    size_t index;
} place;

static tb_status read_message(reader *, const place *, json_t *, ProtobufCMessage *);

/* ---- failing ----------------------------------------------------------------------------------*/

/* Writes "poses[3].pose.position"; returns its length. Cut at the buffer's end. */
static size_t place_print(const place *at, char path[TB_ERROR_NAME_SIZE])
{
    path[0] = '\0';
    if (at == NULL) return 0;
    size_t length = place_print(at->outer, path);
    const size_t left = TB_ERROR_NAME_SIZE - length;
    const int more = at->name != NULL
                         ? snprintf(path + length, left, "%s%s", length > 0 ? "." : "", at->name)
                         : snprintf(path + length, left, "[%zu]", at->index);
    length += more > 0 ? (size_t)more : 0;
    return length < TB_ERROR_NAME_SIZE ? length : TB_ERROR_NAME_SIZE - 1;
}

static tb_status refuse(reader *r, const place *at, const char *format, ...) TB_PRINTF(3, 4);
static tb_status refuse(reader *r, const place *at, const char *format, ...)
{
    char path[TB_ERROR_NAME_SIZE], text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (place_print(at, path) == 0)
        return tb_fail(r->error, TB_INVALID_ARGUMENT, "the message: %s", text);
    return tb_fail_field(r->error, TB_INVALID_ARGUMENT, path, "%s: %s", path, text);
}

static const char *kind_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a truth value";
    case JSON_NULL: return "null";
    }
    return "nothing";
}

static tb_status refuse_kind(reader *r, const place *at, const json_t *value, const char *expected)
{
    return refuse(r, at, "%s, %s expected", kind_name(value), expected);
}

static void *allocate(reader *r, const place *at, size_t size)
{
    void *memory = td_request_allocate(r->request, size);
    char path[TB_ERROR_NAME_SIZE];
    if (memory == NULL) {
        place_print(at, path);
        tb_fail_field(r->error, TB_RESOURCE_EXHAUSTED, path,
                      "%s: the request would take more memory than one may have", path);
    }
    return memory;
}

/* ---- numbers ----------------------------------------------------------------------------------*/

/* A whole number from a JSON number or string: its sign and its magnitude. */
static tb_status read_whole(reader *r, const place *at, const json_t *value, bool *negative,
                            uint64_t *magnitude)
{
    if (json_is_integer(value)) {
        const json_int_t number = json_integer_value(value);
        *negative = number < 0;
        *magnitude = number < 0 ? ~(uint64_t)number + 1 : (uint64_t)number;
        return TB_OK;
    }
    if (json_is_real(value)) {
        const double number = json_real_value(value);
        if (number != floor(number)) return refuse(r, at, "%.17g is no whole number", number);
        if (fabs(number) > EXACT_LIMIT)
            return refuse(r, at, "%.17g: whole numbers beyond 2^53 are written as strings", number);
        *negative = number < 0;
        *magnitude = (uint64_t)fabs(number);
        return TB_OK;
    }
    if (!json_is_string(value)) return refuse_kind(r, at, value, "a whole number");

    const char *text = json_string_value(value), *digit = text;
    *negative = *digit == '-';
    if (*digit == '-') digit++;
    *magnitude = 0;
    bool good = *digit != '\0', fits = true;
    for (; *digit != '\0' && good; digit++) {
        good = *digit >= '0' && *digit <= '9';
        const unsigned next = (unsigned)(*digit - '0') & 15;
        if (*magnitude > (UINT64_MAX - next) / 10) fits = false;
        *magnitude = *magnitude * 10 + next;
    }
    if (!good) return refuse(r, at, "\"%.40s\" is no whole number", text);
    if (!fits) return refuse(r, at, "%.40s is out of range", text);
    return TB_OK;
}

static tb_status read_signed(reader *r, const place *at, const json_t *value, int64_t least,
                             int64_t most, int64_t *number)
{
    bool negative = false;
    uint64_t magnitude = 0;
    const tb_status status = read_whole(r, at, value, &negative, &magnitude);
    if (status != TB_OK) return status;
    if (magnitude > (negative ? ~(uint64_t)least + 1 : (uint64_t)most))
        return refuse(r, at, "%s%llu is out of range", negative ? "-" : "",
                      (unsigned long long)magnitude);
    *number = negative ? (int64_t)(~magnitude + 1) : (int64_t)magnitude;
    return TB_OK;
}

static tb_status read_unsigned(reader *r, const place *at, const json_t *value, uint64_t most,
                               uint64_t *number)
{
    bool negative = false;
    const tb_status status = read_whole(r, at, value, &negative, number);
    if (status != TB_OK) return status;
    if ((negative && *number != 0) || *number > most)
        return refuse(r, at, "%s%llu is out of range", negative ? "-" : "",
                      (unsigned long long)*number);
    return TB_OK;
}

static tb_status read_real(reader *r, const place *at, const json_t *value, double most,
                           double *number)
{
    if (json_is_number(value)) {
        *number = json_number_value(value);
    } else if (json_is_string(value)) {
        const char *text = json_string_value(value), *end = text;
        if (strcmp(text, "NaN") == 0)
            *number = (double)NAN;
        else if (strcmp(text, "Infinity") == 0)
            *number = (double)INFINITY;
        else if (strcmp(text, "-Infinity") == 0)
            *number = -(double)INFINITY;
        else if (strspn(text, "0123456789+-.eE") != strlen(text) ||
                 !tb_parse_number(&end, number) || *end != '\0')
            return refuse(r, at, "\"%.40s\" is no number", text);
        else if (isinf(*number))
            return refuse(r, at, "%.40s is out of range", text);
    } else {
        return refuse_kind(r, at, value, "a number");
    }
    if (isfinite(*number) && fabs(*number) > most)
        return refuse(r, at, "%.17g is out of range", *number);
    return TB_OK;
}

static tb_status read_enum(reader *r, const place *at, const json_t *value,
                           const ProtobufCEnumDescriptor *type, int *number)
{
    if (json_is_string(value)) {
        const char *name = json_string_value(value);
        const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value_by_name(type, name);
        if (known == NULL) return refuse(r, at, "\"%.60s\" is no %s", name, type->short_name);
        *number = known->value;
        return TB_OK;
    }
    if (!json_is_number(value)) return refuse_kind(r, at, value, "the name of a value");
    int64_t wide = 0;
    const tb_status status = read_signed(r, at, value, INT32_MIN, INT32_MAX, &wide);
    *number = (int)wide;
    return status;
}

/* ---- strings and bytes ------------------------------------------------------------------------*/

static tb_status read_string(reader *r, const place *at, const json_t *value, char **string)
{
    if (!json_is_string(value)) return refuse_kind(r, at, value, "a string");
    const size_t size = json_string_length(value);
    char *copy = allocate(r, at, size + 1);
    if (copy == NULL) return TB_RESOURCE_EXHAUSTED;
    memcpy(copy, json_string_value(value), size);
    *string = copy;
    return TB_OK;
}

/* Base64, the usual alphabet or the one for addresses, with or without padding. */
static tb_status read_bytes(reader *r, const place *at, const json_t *value,
                            ProtobufCBinaryData *data)
{
    if (!json_is_string(value)) return refuse_kind(r, at, value, "a string of base64");
    const char *text = json_string_value(value), *end = NULL;
    const size_t size = json_string_length(value);
    if (size == 0) return TB_OK;
    const bool address = strpbrk(text, "-_") != NULL, padded = text[size - 1] == '=';
    const int variant =
        address  ? padded ? sodium_base64_VARIANT_URLSAFE : sodium_base64_VARIANT_URLSAFE_NO_PADDING
        : padded ? sodium_base64_VARIANT_ORIGINAL
                 : sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
    data->data = allocate(r, at, size / 4 * 3 + 3);
    if (data->data == NULL) return TB_RESOURCE_EXHAUSTED;
    if (sodium_base642bin(data->data, size / 4 * 3 + 3, text, size, NULL, &data->len, &end,
                          variant) != 0 ||
        end != text + size)
        return refuse(r, at, "no base64 at character %td", end != NULL ? end - text : 0);
    return TB_OK;
}

/* ---- values -----------------------------------------------------------------------------------*/

/* ---- arrays as lists ------------------------------------------------------------------------- */

enum { MOST_AXES = 8 };

/* Lists in lists while they are read: their shape, and the numbers of the innermost. */
typedef struct plain_array {
    int64_t shape[MOST_AXES];
    size_t axes, count;
    bool truths;
    double *numbers; /* NULL: elements are counted */
    uint8_t *bytes;
} plain_array;

static tb_status read_element(reader *r, const place *at, json_t *value, plain_array *a)
{
    double number = 0;
    if (a->truths != json_is_boolean(value) || (!a->truths && !json_is_number(value)))
        return refuse_kind(r, at, value, a->truths ? "a truth value" : "a number");
    const tb_status status = a->truths ? TB_OK : read_real(r, at, value, DBL_MAX, &number);
    if (a->bytes != NULL) a->bytes[a->count] = json_is_true(value) ? 1 : 0;
    if (a->numbers != NULL) a->numbers[a->count] = number;
    a->count++;
    return status;
}

static tb_status read_axis(reader *r, const place *at, json_t *value, size_t axis, plain_array *a)
{
    if (axis == a->axes) return read_element(r, at, value, a);
    if (!json_is_array(value)) return refuse_kind(r, at, value, "a list");
    const size_t length = json_array_size(value);
    if (length != (size_t)a->shape[axis])
        return refuse(r, at, "a list of %zu, the lists beside it have %lld", length,
                      (long long)a->shape[axis]);
    tb_status status = TB_OK;
    for (size_t i = 0; i < length && status == TB_OK; i++) {
        const place inside = {.outer = at, .index = i};
        status = read_axis(r, &inside, json_array_get(value, i), axis + 1, a);
    }
    return status;
}

/* An Array from lists in lists, which must all be of one length on each axis. */
static tb_status read_plain_array(reader *r, const place *at, json_t *value,
                                  Tribo__V1__Array *array)
{
    plain_array a = {0};
    json_t *inner = value;
    for (; json_is_array(inner); inner = json_array_get(inner, 0)) {
        if (a.axes == MOST_AXES)
            return refuse(r, at, "more than %d lists in each other", MOST_AXES);
        a.shape[a.axes++] = (int64_t)json_array_size(inner);
        if (json_array_size(inner) == 0) break;
    }
    a.truths = json_is_boolean(inner);
    tb_status status = read_axis(r, at, value, 0, &a);
    if (status != TB_OK) return status;
    const size_t size = a.count * (a.truths ? 1 : sizeof(double));
    void *data = allocate(r, at, size + 1);
    int64_t *shape = allocate(r, at, a.axes * sizeof *shape);
    if (data == NULL || shape == NULL) return TB_RESOURCE_EXHAUSTED;
    memcpy(shape, a.shape, a.axes * sizeof *shape);
    *(a.truths ? (void **)&a.bytes : (void **)&a.numbers) = data;
    a.count = 0;
    status = read_axis(r, at, value, 0, &a);
    array->dtype =
        a.truths ? TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8 : TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    array->shape = shape;
    array->n_shape = a.axes;
    array->data.data = data;
    array->data.len = size;
    return status;
}

static tb_status read_submessage(reader *r, const place *at, json_t *value,
                                 const ProtobufCMessageDescriptor *type, ProtobufCMessage **message)
{
    ProtobufCMessage *made = allocate(r, at, type->sizeof_message);
    if (made == NULL) return TB_RESOURCE_EXHAUSTED;
    protobuf_c_message_init(type, made);
    *message = made;
    if (type == &tribo__v1__array__descriptor && json_is_array(value))
        return read_plain_array(r, at, value, (Tribo__V1__Array *)made);
    return read_message(r, at, value, made);
}

/* Reads one value into its place in a message or in a repeated field's array. */
static tb_status read_value(reader *r, const place *at, json_t *value,
                            const ProtobufCFieldDescriptor *field, void *member)
{
    int64_t number = 0;
    uint64_t natural = 0;
    double real = 0;
    tb_status status = TB_OK;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        status = read_signed(r, at, value, INT32_MIN, INT32_MAX, &number);
        *(int32_t *)member = (int32_t)number;
        return status;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: return read_signed(r, at, value, INT64_MIN, INT64_MAX, member);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        status = read_unsigned(r, at, value, UINT32_MAX, &natural);
        *(uint32_t *)member = (uint32_t)natural;
        return status;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: return read_unsigned(r, at, value, UINT64_MAX, member);
    case PROTOBUF_C_TYPE_FLOAT:
        status = read_real(r, at, value, (double)FLT_MAX, &real);
        if (status == TB_OK) *(float *)member = (float)real;
        return status;
    case PROTOBUF_C_TYPE_DOUBLE: return read_real(r, at, value, DBL_MAX, member);
    case PROTOBUF_C_TYPE_BOOL:
        if (!json_is_boolean(value)) return refuse_kind(r, at, value, "true or false");
        *(protobuf_c_boolean *)member = json_is_true(value);
        return TB_OK;
    case PROTOBUF_C_TYPE_ENUM: return read_enum(r, at, value, field->descriptor, member);
    case PROTOBUF_C_TYPE_STRING: return read_string(r, at, value, member);
    case PROTOBUF_C_TYPE_BYTES: return read_bytes(r, at, value, member);
    case PROTOBUF_C_TYPE_MESSAGE: return read_submessage(r, at, value, field->descriptor, member);
    }
    return tb_fail(r->error, TB_INTERNAL, "a field of type %d", (int)field->type);
}

static tb_status read_repeated(reader *r, const place *at, json_t *value,
                               const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    if (!json_is_array(value)) return refuse_kind(r, at, value, "an array");
    const size_t count = json_array_size(value), size = td_json_value_size(field->type);
    if (count == 0) return TB_OK;
    if (count > SIZE_MAX / size) return refuse(r, at, "%zu elements are too many", count);
    char *array = allocate(r, at, count * size);
    if (array == NULL) return TB_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < count; i++) {
        const place inside = {.outer = at, .index = i};
        const tb_status status =
            read_value(r, &inside, json_array_get(value, i), field, array + i * size);
        if (status != TB_OK) return status;
    }
    *(char **)((char *)message + field->offset) = array;
    *(size_t *)((char *)message + field->quantifier_offset) = count;
    return TB_OK;
}

static tb_status read_map(reader *r, const place *at, json_t *value,
                          const ProtobufCMessageDescriptor *type,
                          const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    if (!json_is_object(value)) return refuse_kind(r, at, value, "an object");
    const size_t count = json_object_size(value);
    ProtobufCMessage **entries = allocate(r, at, (count + 1) * sizeof *entries);
    if (entries == NULL) return TB_RESOURCE_EXHAUSTED;
    const char *key = NULL;
    json_t *inner = NULL;
    size_t i = 0;
    json_object_foreach(value, key, inner)
    {
        const place inside = {.outer = at, .name = key};
        ProtobufCMessage *entry = allocate(r, &inside, type->sizeof_message);
        json_t *key_value = json_string(key);
        if (entry == NULL || key_value == NULL) {
            json_decref(key_value);
            return tb_fail_memory(r->error, type->sizeof_message, "an entry of a map");
        }
        protobuf_c_message_init(type, entry);
        entries[i++] = entry;
        tb_status status = type->fields[0].type == PROTOBUF_C_TYPE_BOOL
                               ? refuse(r, &inside, "maps by truth values are not supported")
                               : read_value(r, &inside, key_value, &type->fields[0],
                                            (char *)entry + type->fields[0].offset);
        json_decref(key_value);
        if (status == TB_OK)
            status = read_value(r, &inside, inner, &type->fields[1],
                                (char *)entry + type->fields[1].offset);
        if (status != TB_OK) return status;
    }
    *(ProtobufCMessage ***)((char *)message + field->offset) = entries;
    *(size_t *)((char *)message + field->quantifier_offset) = count;
    return TB_OK;
}

/* ---- messages ---------------------------------------------------------------------------------*/

/* The field of this JSON or original name; its index in the descriptor goes to *index. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  const char *key, unsigned *index)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        char name[TD_JSON_NAME_SIZE];
        td_json_name(type->fields[i].name, name);
        if (strcmp(key, name) == 0 || strcmp(key, type->fields[i].name) == 0) {
            *index = i;
            return &type->fields[i];
        }
    }
    return NULL;
}

/* Marks a member of a oneof, or an optional field, as present. */
static tb_status mark_present(reader *r, const place *at, const ProtobufCFieldDescriptor *field,
                              ProtobufCMessage *message)
{
    void *quantifier = (char *)message + field->quantifier_offset;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        const uint32_t other = *(const uint32_t *)quantifier;
        if (other != 0) {
            const ProtobufCFieldDescriptor *first =
                protobuf_c_message_descriptor_get_field(message->descriptor, other);
            return refuse(r, at, "only one of it and %s may be given", first->name);
        }
        *(uint32_t *)quantifier = field->id;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL &&
               field->type != PROTOBUF_C_TYPE_MESSAGE && field->type != PROTOBUF_C_TYPE_STRING) {
        *(protobuf_c_boolean *)quantifier = 1;
    }
    return TB_OK;
}

static tb_status read_field(reader *r, const place *at, json_t *value,
                            const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        const ProtobufCMessageDescriptor *entry = td_json_map_entry(message->descriptor, field);
        return entry != NULL ? read_map(r, at, value, entry, field, message)
                             : read_repeated(r, at, value, field, message);
    }
    const tb_status status = mark_present(r, at, field, message);
    return status != TB_OK ? status
                           : read_value(r, at, value, field, (char *)message + field->offset);
}

/* "1.5s" */
static tb_status read_duration(reader *r, const place *at, const json_t *value,
                               ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (!json_is_string(value)) return refuse_kind(r, at, value, "a duration like \"1.5s\"");
    const char *text = json_string_value(value), *s = text;
    const bool negative = *s == '-';
    if (negative) s++;
    int64_t seconds = 0;
    int32_t nanos = 0;
    bool good = *s >= '0' && *s <= '9';
    for (; *s >= '0' && *s <= '9' && good; s++) {
        seconds = seconds * 10 + (*s - '0');
        good = seconds <= 315576000000; /* 10,000 years, as protobuf says */
    }
    if (*s == '.') {
        s++;
        for (int32_t unit = 100000000; *s >= '0' && *s <= '9' && good; s++, unit /= 10) {
            nanos += (*s - '0') * unit;
            good = unit > 0;
        }
    }
    if (!good || strcmp(s, "s") != 0) return refuse(r, at, "\"%.40s\" is no duration", text);
    *(int64_t *)((char *)message + type->fields[0].offset) = negative ? -seconds : seconds;
    *(int32_t *)((char *)message + type->fields[1].offset) = negative ? -nanos : nanos;
    return TB_OK;
}

static tb_status read_message(reader *r, const place *at, json_t *value, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (strcmp(type->name, "google.protobuf.Duration") == 0)
        return read_duration(r, at, value, message);
    if (strcmp(type->name, "google.protobuf.Any") == 0)
        return refuse(r, at, "google.protobuf.Any is not taken from JSON");
    if (!json_is_object(value)) return refuse_kind(r, at, value, "an object");
    if (type->n_fields > MAXIMUM_FIELDS)
        return tb_fail(r->error, TB_INTERNAL, "%s has %u fields", type->name, type->n_fields);

    bool seen[MAXIMUM_FIELDS] = {false};
    const char *key = NULL;
    json_t *inner = NULL;
    json_object_foreach(value, key, inner)
    {
        const place inside = {.outer = at, .name = key};
        unsigned index = 0;
        const ProtobufCFieldDescriptor *field = find_field(type, key, &index);
        if (field == NULL) return refuse(r, &inside, "%s has no such field", type->short_name);
        if (seen[index]) return refuse(r, &inside, "given twice, as %s too", field->name);
        seen[index] = true;
        if (json_is_null(inner)) continue;
        const tb_status status = read_field(r, &inside, inner, field, message);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* ---- text -------------------------------------------------------------------------------------*/

/* Bounds depth and memory of the tree before there is one. */
static tb_status survey(const char *text, size_t size, int nesting, uint64_t memory,
                        tb_error *error)
{
    uint64_t bytes = size; /* of the strings in the tree */
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        switch (c) {
        case '"': in_string = true; break;
        case '{':
        case '[':
            bytes += OBJECT_BYTES;
            if (++depth > nesting)
                return tb_fail(error, TB_INVALID_ARGUMENT,
                               "the message: brackets stand more than %d deep at byte %zu", nesting,
                               i);
            break;
        case '}':
        case ']': depth--; break;
        case ',': bytes += ELEMENT_BYTES; break;
        case ':': bytes += KEY_BYTES; break;
        default: break;
        }
    }
    if (bytes > memory)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                       "the message: would take up to %llu bytes of memory, at most %llu allowed",
                       (unsigned long long)bytes, (unsigned long long)memory);
    return TB_OK;
}

/* A document of one value. Numbers without a fraction are kept exactly where they fit 64 bits; a
 * document with longer ones, as JavaScript writes 1e20, is read again with all of them as reals. */
static tb_status read_tree(const char *text, size_t size, json_t **tree, tb_error *error)
{
    json_error_t why = {0};
    *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (*tree == NULL && json_error_code(&why) == json_error_numeric_overflow)
        *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
    if (*tree != NULL) return TB_OK;
    if (json_error_code(&why) == json_error_out_of_memory)
        return tb_fail_memory(error, size, "a JSON document");
    return tb_fail(error, TB_INVALID_ARGUMENT, "the message: no JSON at line %d, column %d: %s",
                   why.line, why.column, why.text);
}

void td_json_use_budgets(void)
{
    json_set_alloc_funcs(tb_budget_malloc, tb_budget_free);
}

tb_status td_json_parse(const char *text, size_t size, int nesting, uint64_t memory,
                        td_request *request, tb_error *error)
{
    reader r = {.request = request, .error = error};
    json_t *tree = NULL;
    tb_status status = survey(text, size, nesting, memory, error);
    if (status == TB_OK) status = read_tree(text, size, &tree, error);
    if (status == TB_OK) status = read_message(&r, NULL, tree, request->message);
    json_decref(tree);
    return status;
}
