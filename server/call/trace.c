/* Trace context of a call: see trace.h. */
#include "call/trace.h"

#include <sodium.h>
#include <stdint.h>
#include <string.h>

/* "00-" trace-id "-" parent-id "-" flags; later versions may append fields behind another "-". */
enum { ID_AT = 3, PARENT_AT = 36, FLAGS_AT = 53, SIZE = 55, SAMPLED = 1 };

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies `size` lower-case digits; false if one is none, or all are zero. */
static bool take(char *to, const char *from, size_t size)
{
    bool any = false;
    for (size_t i = 0; i < size; i++) {
        if (digit(from[i]) < 0) return false;
        any = any || from[i] != '0';
        to[i] = from[i];
    }
    to[size] = '\0';
    return any;
}

void td_trace_read(td_trace *trace, const char *value, size_t size)
{
    td_trace found = {.given = true};
    uint8_t span[8];
    *trace = (td_trace){0};
    if (size < SIZE || value[2] != '-' || value[PARENT_AT - 1] != '-' || value[FLAGS_AT - 1] != '-')
        return;
    const int high = digit(value[0]), low = digit(value[1]);
    if (high < 0 || low < 0 || (high == 15 && low == 15)) return;
    if (high == 0 && low == 0 ? size != SIZE : size > SIZE && value[SIZE] != '-') return;
    const int flags_high = digit(value[FLAGS_AT]), flags_low = digit(value[FLAGS_AT + 1]);
    if (flags_high < 0 || flags_low < 0) return;
    if (!take(found.id, value + ID_AT, sizeof found.id - 1)) return;
    if (!take(found.parent_id, value + PARENT_AT, sizeof found.parent_id - 1)) return;
    found.sampled = (flags_low & SAMPLED) != 0;
    randombytes_buf(span, sizeof span);
    sodium_bin2hex(found.span_id, sizeof found.span_id, span, sizeof span);
    *trace = found;
}
