/* Scans protobuf's wire format: field by field, and a whole request before it is unpacked.
 *
 * protobuf-c recurses for every nested message, keeps every unknown field and allocates as it
 * parses, so a small hostile message can be expensive. The scan first walks the bytes with only a
 * counter: it refuses messages that are malformed, too deep, or not UTF-8 in a string field, and
 * computes the memory that the unpacked message takes. */
#ifndef SERVER_SCAN_H
#define SERVER_SCAN_H

#include <protobuf-c/protobuf-c.h>

#include "tribo.h"

/* Encoded fields that are still to be read. */
typedef struct td_wire {
    const uint8_t *at, *end;
} td_wire;

/* One field in the wire format. */
typedef struct td_wire_field {
    uint32_t id;
    ProtobufCWireType type;
    uint64_t number;      /* of a varint or a fixed-width field */
    const uint8_t *bytes; /* of a length-delimited field */
    size_t size;
} td_wire_field;

/* Takes the next field. False at the end, with wire->at == wire->end, and where the bytes are
 * malformed, with wire->at before the field at fault. Groups, which proto3 has not, count so. */
bool td_wire_next(td_wire *wire, td_wire_field *field);

/* Checks an encoded message of this type and adds to *memory the bytes that protobuf-c will ask for
 * to unpack it, its own working memory included. `nesting` is how many messages may be inside one
 * another. INVALID_ARGUMENT with the path of the field if the bytes are malformed, nested too deep,
 * or hold a string that is not UTF-8 or contains a NUL. */
tb_status td_scan(const ProtobufCMessageDescriptor *, const uint8_t *bytes, size_t size,
                  int32_t nesting, size_t *memory, tb_error *);

#endif
