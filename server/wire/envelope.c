/* Frames, base64 text, timeouts and percent encoding: all the small grammars of the HTTP
 * protocols, apart from sockets so that they can be fuzzed. */
#include "wire/envelope.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

tb_status http_envelope_read(const unsigned char *body, size_t size, http_envelope *envelope,
                             tb_error *error)
{
    if (size == 0)
        return tb_fail(error, TB_INVALID_ARGUMENT,
                       "the body is empty: one enveloped message was expected");
    if (size < HTTP_ENVELOPE_BYTES)
        return tb_fail(error, TB_INVALID_ARGUMENT,
                       "the envelope is cut off: %zu bytes of at least %d", size,
                       HTTP_ENVELOPE_BYTES);
    const unsigned flags = body[0];
    const size_t promised =
        (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | (size_t)body[4];
    const size_t there = size - HTTP_ENVELOPE_BYTES;
    if ((flags & ~(unsigned)HTTP_FLAG_COMPRESSED) != 0)
        return tb_fail(error, TB_INVALID_ARGUMENT,
                       "the envelope's flags are 0x%02x: a request's may be 0 or 1", flags);
    if (promised > there)
        return tb_fail(error, TB_INVALID_ARGUMENT,
                       "the message is cut off: its envelope promises %zu bytes, %zu came",
                       promised, there);
    if (promised < there)
        return tb_fail(error, TB_INVALID_ARGUMENT,
                       "%zu bytes follow the message: this method takes one message",
                       there - promised);
    *envelope = (http_envelope){.bytes = body + HTTP_ENVELOPE_BYTES,
                                .size = promised,
                                .compressed = (flags & HTTP_FLAG_COMPRESSED) != 0};
    return TB_OK;
}

bool http_envelope_write(unsigned char header[HTTP_ENVELOPE_BYTES], unsigned flags, size_t size)
{
    if (size > UINT32_MAX) return false;
    header[0] = (unsigned char)flags;
    for (int i = 0; i < 4; i++) header[1 + i] = (unsigned char)(size >> (24 - 8 * i));
    return true;
}

/* ---- base64 ---------------------------------------------------------------------------------- */

/* 0 to 63, 64 for padding, -1 for anything else. */
static int digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : c == '=' ? 64 : -1;
}

/* A client may encode each piece by itself, so padding can follow any quartet. libsodium's decoder
 * stops at padding; this decoder continues. */
tb_status http_text_decode(tb_bytes *body, tb_error *error)
{
    const size_t size = body->size;
    size_t length = 0;
    if (size % 4 != 0)
        return tb_fail(error, TB_INVALID_ARGUMENT,
                       "the body has %zu characters: base64 comes in groups of four", size);
    for (size_t i = 0; i < size; i += 4) {
        const unsigned char *s = body->base + i;
        const int d[4] = {digit(s[0]), digit(s[1]), digit(s[2]), digit(s[3])};
        const int padding = (d[2] == 64) + (d[3] == 64);
        if (d[0] < 0 || d[0] > 63 || d[1] < 0 || d[1] > 63 || d[2] < 0 || d[3] < 0 ||
            (d[2] == 64 && d[3] != 64))
            return tb_fail(error, TB_INVALID_ARGUMENT, "no base64 at byte %zu of the body", i);
        const unsigned bits = (unsigned)d[0] << 18 | (unsigned)d[1] << 12 |
                              (unsigned)(d[2] & 63) << 6 | (unsigned)(d[3] & 63);
        body->base[length++] = (unsigned char)(bits >> 16);
        if (padding < 2) body->base[length++] = (unsigned char)(bits >> 8);
        if (padding < 1) body->base[length++] = (unsigned char)bits;
    }
    body->size = length;
    return TB_OK;
}

tb_status http_text_encode(tb_bytes *text, const void *bytes, size_t size)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *s = bytes;
    char piece[1024];
    size_t length = 0;
    tb_status status = TB_OK;
    for (size_t i = 0; i < size && status == TB_OK; i += 3) {
        const size_t left = size - i;
        const unsigned bits = (unsigned)s[i] << 16 | (left > 1 ? (unsigned)s[i + 1] << 8 : 0) |
                              (left > 2 ? (unsigned)s[i + 2] : 0);
        piece[length++] = DIGITS[bits >> 18];
        piece[length++] = DIGITS[bits >> 12 & 63];
        piece[length++] = left > 1 ? DIGITS[bits >> 6 & 63] : '=';
        piece[length++] = left > 2 ? DIGITS[bits & 63] : '=';
        if (length == sizeof piece || left <= 3) {
            status = tb_bytes_append(text, piece, length);
            length = 0;
        }
    }
    return status;
}

/* ---- timeouts -------------------------------------------------------------------------------- */

/* A whole number of at most `digits` digits; moves *text behind it. */
static bool read_digits(const char **text, int digits, int64_t *number)
{
    int count = 0;
    *number = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (++count > digits) return false;
        *number = *number * 10 + (**text - '0');
    }
    return count > 0;
}

bool http_timeout_connect(const char *text, int64_t *nanoseconds)
{
    int64_t number = 0;
    if (!read_digits(&text, 10, &number) || *text != '\0') return false;
    const int64_t longest = INT64_MAX / 4 / 1000000;
    *nanoseconds = (number < longest ? number : longest) * 1000000;
    return true;
}

bool http_timeout_grpc(const char *text, int64_t *nanoseconds)
{
    static const struct {
        char letter;
        int64_t nanoseconds;
    } UNITS[] = {{'H', 3600000000000}, {'M', 60000000000}, {'S', 1000000000},
                 {'m', 1000000},       {'u', 1000},        {'n', 1}};
    int64_t number = 0;
    if (!read_digits(&text, 8, &number) || *text == '\0' || text[1] != '\0') return false;
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        if (UNITS[i].letter != *text) continue;
        const int64_t longest = INT64_MAX / 4 / UNITS[i].nanoseconds;
        *nanoseconds = (number < longest ? number : longest) * UNITS[i].nanoseconds;
        return true;
    }
    return false;
}

/* ---- grpc-message ---------------------------------------------------------------------------- */

tb_status http_percent_encode(tb_bytes *text, const char *message)
{
    tb_status status = TB_OK;
    for (const unsigned char *s = (const unsigned char *)message; *s != '\0' && status == TB_OK;
         s++) {
        char encoded[4] = {(char)*s, '\0'};
        if (*s < 0x20 || *s > 0x7e || *s == '%') snprintf(encoded, sizeof encoded, "%%%02X", *s);
        status = tb_bytes_append(text, encoded, strlen(encoded));
    }
    return status;
}
