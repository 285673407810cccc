/* Fuzzes the body of a Connect stream or gRPC-Web call, and its framing: base64 text, gzip,
 * timeouts. The first byte chooses; no accepted input may reach beyond its bytes or its limit. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/envelope.h"
#include "wire/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 16 };

static void read_envelope(const uint8_t *body, size_t size)
{
    http_envelope envelope = {0};
    unsigned char header[HTTP_ENVELOPE_BYTES];
    tb_error error = {0};
    if (http_envelope_read(body, size, &envelope, &error) != TB_OK) {
        if (error.message[0] == '\0') abort();
        return;
    }
    if (envelope.bytes != body + HTTP_ENVELOPE_BYTES ||
        envelope.size != size - HTTP_ENVELOPE_BYTES ||
        !http_envelope_write(header, envelope.compressed, envelope.size) ||
        memcmp(header, body, sizeof header) != 0)
        abort();
    tb_bytes message = {0};
    if (envelope.compressed &&
        http_gunzip(envelope.bytes, envelope.size, LIMIT, &message, &error) == TB_OK &&
        message.size > LIMIT)
        abort();
    tb_bytes_free(&message);
}

/* Checks that decoded text encodes and decodes to the same. */
static void read_text(const uint8_t *body, size_t size)
{
    tb_bytes text = {0}, again = {0};
    tb_error error = {0};
    if (tb_bytes_append(&text, body, size) != TB_OK) abort();
    if (http_text_decode(&text, &error) == TB_OK) {
        if (text.size > size / 4 * 3) abort();
        if (http_text_encode(&again, text.base, text.size) != TB_OK ||
            http_text_decode(&again, &error) != TB_OK || again.size != text.size ||
            (text.size > 0 && memcmp(again.base, text.base, text.size) != 0))
            abort();
        read_envelope(text.base, text.size);
    }
    tb_bytes_free(&again);
    tb_bytes_free(&text);
}

static void read_gzip(const uint8_t *body, size_t size)
{
    tb_bytes plain = {0}, packed = {0}, again = {0};
    tb_error error = {0};
    if (http_gunzip(body, size, LIMIT, &plain, &error) == TB_OK) {
        if (plain.size > LIMIT) abort();
        if (http_gzip(plain.base, plain.size, &packed, &error) != TB_OK ||
            http_gunzip(packed.base, packed.size, LIMIT, &again, &error) != TB_OK ||
            again.size != plain.size ||
            (plain.size > 0 && memcmp(again.base, plain.base, plain.size) != 0))
            abort();
    } else if (error.message[0] == '\0') {
        abort();
    }
    tb_bytes_free(&plain);
    tb_bytes_free(&packed);
    tb_bytes_free(&again);
}

static void read_headers(const uint8_t *body, size_t size)
{
    char text[64];
    int64_t wait = 0;
    tb_bytes encoded = {0};
    if (size >= sizeof text) return;
    memcpy(text, body, size);
    text[size] = '\0';
    if ((http_timeout_connect(text, &wait) || http_timeout_grpc(text, &wait)) && wait < 0) abort();
    if (http_percent_encode(&encoded, text) != TB_OK) abort();
    for (size_t i = 0; i < encoded.size; i++)
        if (encoded.base[i] < 0x20 || encoded.base[i] > 0x7e) abort();
    tb_bytes_free(&encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    switch (data[0] & 3) {
    case 0: read_envelope(data + 1, size - 1); break;
    case 1: read_text(data + 1, size - 1); break;
    case 2: read_gzip(data + 1, size - 1); break;
    default: read_headers(data + 1, size - 1);
    }
    return 0;
}
