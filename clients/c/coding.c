/* The small grammars of gRPC over HTTP/2:
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client_internal.h"

static int hexadecimal(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool tbc_percent_decode(tb_bytes *to, const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t c = text[i];
        if (c == '%' && i + 2 < size && hexadecimal(text[i + 1]) >= 0 &&
            hexadecimal(text[i + 2]) >= 0) {
            c = (uint8_t)(hexadecimal(text[i + 1]) << 4 | hexadecimal(text[i + 2]));
            i += 2;
        }
        if (tb_bytes_append(to, &c, 1) != TB_OK) return false;
    }
    return true;
}

static int sextet(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool tbc_base64_decode(tb_bytes *to, const uint8_t *text, size_t size)
{
    uint32_t bits = 0;
    int held = 0;
    while (size > 0 && text[size - 1] == '=') size--;
    if (size % 4 == 1) return false;
    for (size_t i = 0; i < size; i++) {
        const int digit = sextet(text[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        const uint8_t byte = (uint8_t)(bits >> held);
        if (tb_bytes_append(to, &byte, 1) != TB_OK) return false;
    }
    return true;
}

void tbc_timeout_print(int64_t nanoseconds, char text[TBC_TEXT_SIZE])
{
    static const struct {
        char letter;
        int64_t nanoseconds;
    } UNITS[] = {{'n', 1},          {'u', 1000},        {'m', 1000000},
                 {'S', 1000000000}, {'M', 60000000000}, {'H', 3600000000000}};
    const int64_t most = 99999999;
    if (nanoseconds < 1) nanoseconds = 1;
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        const int64_t number = (nanoseconds - 1) / UNITS[i].nanoseconds + 1;
        if (number > most) continue;
        snprintf(text, TBC_TEXT_SIZE, "%" PRId64 "%c", number, UNITS[i].letter);
        return;
    }
    snprintf(text, TBC_TEXT_SIZE, "%" PRId64 "H", most);
}
