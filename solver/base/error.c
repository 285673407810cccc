/* Filling errors and sending log messages.
 *
 * A message quotes names, values and paths from untrusted files, and goes to terminals, logs and
 * the wire. This file therefore makes every message one line of valid UTF-8: control characters
 * become spaces, invalid bytes become '?', and a cut never splits a character. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LOG_LINE_SIZE = 1024 };

/* Bytes of the UTF-8 character at `text` (1 to 4), 0 if no character begins there. RFC 3629: no
 * overlong forms, no surrogates, nothing above U+10FFFF. The zero at the end ends a character
 * that was cut. */
static size_t utf8_length(const unsigned char *text)
{
    const unsigned char c = text[0];
    size_t length;
    unsigned char lower = 0x80, upper = 0xBF; /* of the second byte */
    if (c < 0x80) return 1;
    if (c < 0xC2 || c > 0xF4) return 0;
    if (c < 0xE0) {
        length = 2;
    } else if (c < 0xF0) {
        length = 3;
        if (c == 0xE0) lower = 0xA0;
        if (c == 0xED) upper = 0x9F;
    } else {
        length = 4;
        if (c == 0xF0) lower = 0x90;
        if (c == 0xF4) upper = 0x8F;
    }
    if (text[1] < lower || text[1] > upper) return 0;
    for (size_t i = 2; i < length; i++)
        if (text[i] < 0x80 || text[i] > 0xBF) return 0;
    return length;
}

/* Whether the end of the text cuts a character that is valid so far. */
static bool is_cut(const unsigned char *text)
{
    const size_t wanted = text[0] >= 0xF0 ? 4 : (text[0] >= 0xE0 ? 3 : 2);
    size_t length = 1;
    while (length < wanted && text[length] >= 0x80 && text[length] <= 0xBF) length++;
    return text[0] >= 0xC2 && length < wanted && text[length] == 0;
}

/* Makes text one line of valid UTF-8, in place. `cut`: the text filled its buffer, so an
 * incomplete last character is dropped. */
static void make_clean(char *text, bool cut)
{
    unsigned char *p = (unsigned char *)text;
    while (*p != 0) {
        const size_t length = utf8_length(p);
        if (length > 1) {
            p += length;
            continue;
        }
        if (length == 0 && cut && is_cut(p)) {
            *p = 0;
            return;
        }
        if (length == 0) *p = '?';
        if (*p < 0x20 || *p == 0x7F) *p = ' ';
        p++;
    }
}

/* Copies text (NULL: "") as far as it fits. */
static void copy_clean(char *to, size_t size, const char *from)
{
    const size_t length = from != NULL ? strlen(from) : 0;
    const size_t kept = length < size ? length : size - 1;
    if (kept > 0) memmove(to, from, kept);
    to[kept] = 0;
    make_clean(to, kept < length);
}

/* Fills an error. The message is complete before the error changes, because the arguments may
 * point into the error: a caller wraps one message in another so. */
TB_PRINTF(6, 0)
static tb_status fail(tb_error *error, tb_status status, const char *file, int line,
                      const char *field, const char *format, va_list arguments)
{
    if (error == NULL) return status;
    tb_error e;
    memset(&e, 0, sizeof e);
    e.status = status;
    e.line = line > 0 ? line : 0;
    copy_clean(e.file, sizeof e.file, file);
    copy_clean(e.field, sizeof e.field, field);

    int used = 0;
    if (file != NULL && line > 0)
        used = snprintf(e.message, sizeof e.message, "%s:%d: ", file, line);
    else if (file != NULL)
        used = snprintf(e.message, sizeof e.message, "%s: ", file);
    size_t start = used > 0 ? (size_t)used : 0;
    bool cut = start >= sizeof e.message;
    if (!cut) {
        const int wanted =
            vsnprintf(e.message + start, sizeof e.message - start, format, arguments);
        if (wanted < 0) snprintf(e.message + start, sizeof e.message - start, "%s", "?");
        cut = wanted >= 0 && (size_t)wanted >= sizeof e.message - start;
    }
    make_clean(e.message, cut);
    *error = e;
    return status;
}

tb_status tb_fail(tb_error *error, tb_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, status, NULL, 0, NULL, format, arguments);
    va_end(arguments);
    return status;
}

tb_status tb_fail_field(tb_error *error, tb_status status, const char *field, const char *format,
                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, status, NULL, 0, field, format, arguments);
    va_end(arguments);
    return status;
}

tb_status tb_fail_file(tb_error *error, tb_status status, const char *file, int line,
                       const char *field, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, status, file, line, field, format, arguments);
    va_end(arguments);
    return status;
}

tb_status tb_fail_memory(tb_error *error, size_t bytes, const char *what)
{
    if (bytes == 0) return tb_fail(error, TB_RESOURCE_EXHAUSTED, "out of memory for %s", what);
    return tb_fail(error, TB_RESOURCE_EXHAUSTED, "out of memory: %zu bytes for %s", bytes, what);
}

tb_status tb_fail_world(tb_error *error, tb_status status, int32_t worlds, int32_t world,
                        const tb_error *own)
{
    if (error == NULL) return status;
    if (worlds > 1) return tb_fail(error, status, "world %d: %s", (int)world, own->message);
    *error = *own;
    return status;
}

void tb_log_write(const tb_log *log, tb_log_level level, const char *format, ...)
{
    if (log == NULL || log->function == NULL) return;
    char line[LOG_LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    const int wanted = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (wanted < 0) return;
    make_clean(line, (size_t)wanted >= sizeof line);
    log->function(log->context, level, line);
}
