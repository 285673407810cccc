/* Messages as canonical protobuf JSON and back, driven by protobuf-c's descriptors.
 *
 * The mapping is that of https://protobuf.dev/programming-guides/json: names in lowerCamelCase (the
 * original ones are read too), 64-bit integers and bytes (base64) as strings, enums by name, "NaN",
 * "Infinity" and "-Infinity" for numbers that JSON has not, null for absent messages, values equal
 * to the default left out. map<> entries are objects, google.protobuf.Duration is "1.5s", and a
 * google.protobuf.Any of a type that the daemon knows is printed with "@type".
 *
 * Beyond that mapping an Array is also read from lists in lists: of numbers as FLOAT64, of truth values as
 * UINT8. */
#ifndef SERVER_JSON_H
#define SERVER_JSON_H

#include "base/file.h"
#include "wire/request.h"

/* Appends a message as JSON. RESOURCE_EXHAUSTED if out of memory; INTERNAL if the message breaks
 * its descriptor. */
tb_status td_json_print(tb_bytes *text, const ProtobufCMessage *, tb_error *);
/* The same with every Array as lists in lists, as many levels as it has axes, in place of base64. Whole
 * numbers beyond 2^53 are strings, as everywhere in this mapping. */
tb_status td_json_print_plain(tb_bytes *text, const ProtobufCMessage *, tb_error *);

/* Has jansson take its memory from the budget of the thread (base/budget.h), so that the reading of a
 * document can be bounded and ended. Once, before any document is read. */
void td_json_use_budgets(void);

/* Fills the empty message of `request` from one JSON object. The text need not end in a zero.
 * nesting   how deep brackets may stand in each other
 * memory    bytes that the parsed document may take before it is a message
 * INVALID_ARGUMENT, with the field's path ("poses[3].pose.position") where there is one: not JSON,
 * a key twice, an unknown field, a value of the wrong type or out of range, two members of a oneof.
 * RESOURCE_EXHAUSTED when it would take more memory than that, or than the request may have. */
tb_status td_json_parse(const char *text, size_t size, int nesting, uint64_t memory, td_request *,
                        tb_error *);

/* Appends the JSON string of `size` bytes, quotes included; invalid UTF-8 becomes U+FFFD. */
tb_status td_json_print_string(tb_bytes *text, const char *bytes, size_t size);

/* ---- shared by both directions ---- */

enum { TD_JSON_NAME_SIZE = 128 };

/* The lowerCamelCase form of a field's name, as protoc makes it. */
void td_json_name(const char *name, char json_name[TD_JSON_NAME_SIZE]);
/* The entry type of a map field, or NULL if the field is no map. */
const ProtobufCMessageDescriptor *td_json_map_entry(const ProtobufCMessageDescriptor *,
                                                    const ProtobufCFieldDescriptor *);
/* Bytes of one value of this type inside a message or a repeated field's array. */
size_t td_json_value_size(ProtobufCType);
/* The descriptor behind "type.googleapis.com/NAME" if it is one that error details use. */
const ProtobufCMessageDescriptor *td_json_detail_type(const char *type_url);

#endif
