/* gzip by zlib, in pieces, so that a small body that unpacks to gigabytes costs no more than the
 * limit. */
#include "wire/gzip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"

/* window bits for gzip's own header and checksum (zlib's inflateInit2 and deflateInit2) */
enum { GZIP_WINDOW = 15 + 16, PIECE_BYTES = 16384, MEMORY_LEVEL = 8, QUICK = 1 };

static uInt piece(size_t size)
{
    return size < UINT_MAX ? (uInt)size : UINT_MAX;
}

tb_status http_gunzip(const unsigned char *packed, size_t size, uint64_t limit, tb_bytes *bytes,
                      tb_error *error)
{
    unsigned char out[PIECE_BYTES];
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return tb_fail_memory(error, 0, "unpacking gzip");

    tb_status status = TB_OK;
    size_t taken = 0;
    uint64_t total = 0;
    int result = Z_OK;
    while (result == Z_OK && status == TB_OK) {
        stream.next_in = (Bytef *)(uintptr_t)(packed + taken); /* zlib only reads it */
        stream.avail_in = piece(size - taken);
        stream.next_out = out;
        stream.avail_out = sizeof out;
        const uInt given = stream.avail_in;
        result = inflate(&stream, Z_NO_FLUSH);
        taken += given - stream.avail_in;
        const size_t made = sizeof out - stream.avail_out;
        total += made;
        if (total > limit)
            status = tb_fail(error, TB_RESOURCE_EXHAUSTED,
                             "the body unpacks to more than the %llu bytes that a message may have",
                             (unsigned long long)limit);
        else if (tb_bytes_append(bytes, out, made) != TB_OK)
            status = tb_fail_memory(error, made, "an unpacked body");
    }
    inflateEnd(&stream);
    if (status != TB_OK) return status;
    if (result == Z_MEM_ERROR) return tb_fail_memory(error, 0, "unpacking gzip");
    if (result != Z_STREAM_END)
        return tb_fail(error, TB_INVALID_ARGUMENT, "the body is no gzip, or cut off, at byte %zu",
                       taken);
    if (taken < size)
        return tb_fail(error, TB_INVALID_ARGUMENT, "%zu bytes follow the gzip data", size - taken);
    return TB_OK;
}

tb_status http_gzip(const void *bytes, size_t size, tb_bytes *packed, tb_error *error)
{
    unsigned char out[PIECE_BYTES];
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (deflateInit2(&stream, QUICK, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return tb_fail_memory(error, 0, "packing gzip");

    tb_status status = TB_OK;
    size_t taken = 0;
    int result = Z_OK;
    while (result == Z_OK && status == TB_OK) {
        const uInt given = piece(size - taken);
        stream.next_in = (Bytef *)(uintptr_t)((const unsigned char *)bytes + taken);
        stream.avail_in = given;
        stream.next_out = out;
        stream.avail_out = sizeof out;
        result = deflate(&stream, given == size - taken ? Z_FINISH : Z_NO_FLUSH);
        taken += given - stream.avail_in;
        if (tb_bytes_append(packed, out, sizeof out - stream.avail_out) != TB_OK)
            status = tb_fail_memory(error, size, "a packed body");
    }
    deflateEnd(&stream);
    if (status == TB_OK && result != Z_STREAM_END)
        status = tb_fail(error, TB_INTERNAL, "zlib gave %d", result);
    return status;
}
