/* Byte buffers of the core to flat bytes and back.
 *
 * The core would inflate a compressed message to whatever it holds. So its own decompression is
 * switched off and messages are inflated here, up to the limit for messages. */
#include "rpc_grpc_internal.h"

#include <grpc/byte_buffer_reader.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"

enum { FIRST_INFLATED_BYTES = 1 << 14, ZLIB_DETECT_HEADER = 32 };

static tb_status fail_inflated_size(tb_error *error, size_t limit)
{
    return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                   "the message inflates to more than the %zu bytes that it may have", limit);
}

/* Runs the stream into a buffer that grows up to the limit. */
static tb_status inflate_stream(z_stream *stream, size_t limit, rpc_flat *flat, tb_error *error)
{
    size_t capacity = 0;
    for (;;) {
        if (flat->size == capacity) {
            /* one byte beyond the limit tells that there is more */
            const size_t wanted = capacity == 0 ? FIRST_INFLATED_BYTES : 2 * capacity;
            capacity = wanted < limit + 1 ? wanted : limit + 1;
            uint8_t *grown = realloc(flat->own, capacity);
            if (grown == NULL) return tb_fail_memory(error, capacity, "an inflated message");
            flat->own = grown;
        }
        const size_t room = capacity - flat->size;
        stream->next_out = flat->own + flat->size;
        stream->avail_out = (uInt)(room < UINT32_MAX / 2 ? room : UINT32_MAX / 2);
        const uInt offered = stream->avail_out;
        const int result = inflate(stream, Z_NO_FLUSH);
        flat->size += offered - stream->avail_out;
        if (flat->size > limit) return fail_inflated_size(error, limit);
        if (result == Z_STREAM_END) break;
        if (result != Z_OK)
            return tb_fail(error, TB_INVALID_ARGUMENT, "the compressed message is corrupt");
    }
    flat->bytes = flat->own;
    return TB_OK;
}

static tb_status inflate_flat(size_t limit, rpc_flat *flat, tb_error *error)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)flat->bytes, .avail_in = (uInt)flat->size};
    if (flat->size > UINT32_MAX) return fail_inflated_size(error, limit);
    if (inflateInit2(&stream, MAX_WBITS + ZLIB_DETECT_HEADER) != Z_OK)
        return tb_fail_memory(error, 0, "inflating a message");
    flat->size = 0;
    const tb_status status = inflate_stream(&stream, limit, flat, error);
    inflateEnd(&stream);
    return status;
}

tb_status rpc_flatten(grpc_byte_buffer *buffer, size_t limit, rpc_flat *flat, tb_error *error)
{
    const grpc_compression_algorithm compression = buffer->data.raw.compression;
    const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
    *flat = (rpc_flat){.slice = grpc_empty_slice()};
    if (slices->count == 1) {
        flat->slice = grpc_slice_ref(slices->slices[0]);
    } else if (slices->count > 1) {
        /* the reader would inflate by itself: read as it is */
        grpc_byte_buffer_reader reader;
        buffer->data.raw.compression = GRPC_COMPRESS_NONE;
        if (!grpc_byte_buffer_reader_init(&reader, buffer))
            return tb_fail(error, TB_INTERNAL, "the message cannot be read");
        flat->slice = grpc_byte_buffer_reader_readall(&reader);
        grpc_byte_buffer_reader_destroy(&reader);
    }
    flat->bytes = GRPC_SLICE_START_PTR(flat->slice);
    flat->size = GRPC_SLICE_LENGTH(flat->slice);
    if (compression == GRPC_COMPRESS_NONE) return TB_OK;

    tb_status status;
    if (compression == GRPC_COMPRESS_GZIP || compression == GRPC_COMPRESS_DEFLATE)
        status = inflate_flat(limit, flat, error);
    else
        status = tb_fail(error, TB_UNSUPPORTED, "compression %d is not known", (int)compression);
    if (status != TB_OK) rpc_flat_free(flat);
    return status;
}

void rpc_flat_free(rpc_flat *flat)
{
    grpc_slice_unref(flat->slice);
    free(flat->own);
    *flat = (rpc_flat){.slice = grpc_empty_slice()};
}

grpc_byte_buffer *rpc_pack(const ProtobufCMessage *message)
{
    grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
    protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    grpc_byte_buffer *bytes = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return bytes;
}
