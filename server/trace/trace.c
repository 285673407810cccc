/* Trace context of a call: see trace.h. */
#include "trace/trace.h"

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

/* Ids and flags of a valid value; false for any other. */
static bool parse(td_trace *trace, const char *value, size_t size)
{
    if (size < SIZE || value[2] != '-' || value[PARENT_AT - 1] != '-' || value[FLAGS_AT - 1] != '-')
        return false;
    const int high = digit(value[0]), low = digit(value[1]);
    if (high < 0 || low < 0 || (high == 15 && low == 15)) return false;
    if (high == 0 && low == 0 ? size != SIZE : size > SIZE && value[SIZE] != '-') return false;
    const int flags_high = digit(value[FLAGS_AT]), flags_low = digit(value[FLAGS_AT + 1]);
    if (flags_high < 0 || flags_low < 0) return false;
    trace->sampled = (flags_low & SAMPLED) != 0;
    return take(trace->id, value + ID_AT, sizeof trace->id - 1) &&
           take(trace->parent_id, value + PARENT_AT, sizeof trace->parent_id - 1);
}

void td_trace_read(td_trace *trace, const char *value, size_t size)
{
    uint8_t span[8];
    trace->given = parse(trace, value, size);
    if (!trace->given) {
        trace->sampled = false;
        trace->id[0] = trace->parent_id[0] = trace->span_id[0] = '\0';
        return;
    }
    randombytes_buf(span, sizeof span);
    sodium_bin2hex(trace->span_id, sizeof trace->span_id, span, sizeof span);
}

void td_trace_read_state(td_trace *trace, const char *value, size_t size)
{
    const size_t used = strlen(trace->state), comma = used > 0;
    bool good = used + comma + size < sizeof trace->state;
    for (size_t i = 0; i < size && good; i++) good = value[i] >= ' ' && value[i] <= '~';
    if (!good) {
        trace->state[0] = '\0';
        return;
    }
    if (comma) trace->state[used] = ',';
    memcpy(trace->state + used + comma, value, size);
    trace->state[used + comma + size] = '\0';
}
