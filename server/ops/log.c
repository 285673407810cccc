/* Log lines: one event with fields, one write, so that lines of several threads never mix.
 *
 *     2026-01-31T12:00:00.123456Z INFO session.created session=4f2a... worlds=3
 *     {"time":"2026-01-31T12:00:00.123456Z","level":"info","event":"session.created",...}
 *
 * The format is taken apart into its `name=%x` pairs before anything is printed, so a value that
 * holds spaces, quotes or line ends stays one value: it cannot forge a field or a line. */
#include "ops/log.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

/* PIPE_BUF on Linux: a write of this size to a pipe is never torn */
enum { LINE_SIZE = 4096, NAME_SIZE = 48, VALUE_SIZE = 1024, DIRECTIVE_SIZE = 24 };

struct td_log {
    atomic_int least;
    bool json;
    pthread_mutex_t mutex; /* of the tail */
    size_t written;        /* bytes in all; the last ones are in the ring */
    char ring[TD_LOG_TAIL_SIZE];
};

/* A line under construction; longer text is cut, and space for the line's end is reserved. */
typedef struct line {
    char text[LINE_SIZE];
    size_t size;
} line;

static void put(line *l, const char *text, size_t size)
{
    const size_t room = sizeof l->text - 8 - l->size; /* kept: quote, brace, line end */
    if (size > room) size = room;
    memcpy(l->text + l->size, text, size);
    l->size += size;
}

static void put_text(line *l, const char *text)
{
    put(l, text, strlen(text));
}

/* The bytes of the UTF-8 character at `text`, 0 if there is none. */
static size_t character_size(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        size_t size;
    } KINDS[] = {{0xe0, 0xc0, 2}, {0xf0, 0xe0, 3}, {0xf8, 0xf0, 4}};
    if (text[0] < 0x80) return 1;
    for (int k = 0; k < 3; k++) {
        if ((text[0] & KINDS[k].mask) != KINDS[k].lead) continue;
        for (size_t i = 1; i < KINDS[k].size; i++)
            if ((text[i] & 0xc0) != 0x80) return 0;
        return KINDS[k].size;
    }
    return 0;
}

/* Writes a value between quotes, escaped as JSON asks. */
static void put_quoted(line *l, const char *value)
{
    const unsigned char *c = (const unsigned char *)value;
    put(l, "\"", 1);
    while (*c != '\0') {
        const size_t size = character_size(c);
        char escaped[8];
        /* whole characters only, also where the line is cut */
        if (l->size + 16 > sizeof l->text) break;
        if (size == 0)
            put_text(l, "\\ufffd");
        else if (*c == '"' || *c == '\\')
            put(l, (const char[]){'\\', (char)*c}, 2);
        else if (*c < 0x20 || *c == 0x7f) {
            snprintf(escaped, sizeof escaped, "\\u%04x", *c);
            put_text(l, escaped);
        } else
            put(l, (const char *)c, size);
        c += size > 0 ? size : 1;
    }
    put(l, "\"", 1);
}

/* True if a value needs no quotes in a text line. */
static bool plain(const char *value)
{
    if (*value == '\0') return false;
    for (const char *c = value; *c != '\0'; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '"' || *c == '=' || *c == '\\') return false;
    return true;
}

/* Whether a value is a number as JSON writes them. */
static bool json_number(const char *value)
{
    const char *c = value + (*value == '-');
    if (!isdigit((unsigned char)*c) || (*c == '0' && isdigit((unsigned char)c[1]))) return false;
    while (isdigit((unsigned char)*c)) c++;
    if (*c == '.') {
        if (!isdigit((unsigned char)*++c)) return false;
        while (isdigit((unsigned char)*c)) c++;
    }
    if (*c == 'e' || *c == 'E') {
        c++;
        if (*c == '+' || *c == '-') c++;
        if (!isdigit((unsigned char)*c)) return false;
        while (isdigit((unsigned char)*c)) c++;
    }
    return *c == '\0';
}

static void put_field(line *l, bool json, const char *name, const char *value, bool number)
{
    /* a line that is full has no further fields; a number is never cut */
    number = number && json_number(value);
    const size_t needed = strlen(name) + 32 + (number ? strlen(value) : 0);
    if (l->size + needed > sizeof l->text) return;
    if (json) {
        put(l, ",", 1);
        put_quoted(l, name);
        put(l, ":", 1);
        if (number)
            put_text(l, value);
        else
            put_quoted(l, value);
        return;
    }
    put(l, " ", 1);
    put_text(l, name);
    put(l, "=", 1);
    if (plain(value))
        put_text(l, value);
    else
        put_quoted(l, value);
}

/* va_list by pointer, since it may be an array type */
typedef struct arguments {
    va_list list;
} arguments;

/* Prints one printf directive (`*format` is behind its '%') with the next argument, which it takes
 * by the directive's type; moves *format behind it. Returns the conversion's letter. */
static char print_directive(const char **format, arguments *a, char *out, size_t size)
{
    char directive[DIRECTIVE_SIZE] = "%";
    const size_t flags = strspn(*format, "-+ #0123456789.*");
    const size_t length = strspn(*format + flags, "hlzjt");
    const char *modifier = *format + flags;
    const char conversion = modifier[length];
    const bool starred = memchr(*format, '*', flags) != NULL;
    out[0] = '\0';
    if (conversion == '\0' || flags + length + 2 > sizeof directive) {
        *format += strlen(*format);
        return '\0';
    }
    memcpy(directive + 1, *format, flags + length + 1);
    *format += flags + length + 1;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int star = starred ? va_arg(a->list, int) : 0;
#define PRINT(type)                                                                                \
    (starred ? snprintf(out, size, directive, star, va_arg(a->list, type))                         \
             : snprintf(out, size, directive, va_arg(a->list, type)))
    if (strchr("eEfFgG", conversion) != NULL)
        PRINT(double);
    else if (conversion == 's' || conversion == 'p')
        PRINT(const char *);
    else if (conversion == '%')
        snprintf(out, size, "%%");
    else if (length >= 1 &&
             (*modifier == 'l' || *modifier == 'z' || *modifier == 'j' || *modifier == 't'))
        PRINT(long long); /* all 64 bits wide on the platforms that this builds for */
    else
        PRINT(int);
#undef PRINT
#pragma GCC diagnostic pop
    return conversion;
}

/* Splits the format into pairs and writes each. */
static void put_fields(line *l, bool json, const char *format, arguments *a)
{
    while (*format != '\0') {
        char name[NAME_SIZE], value[VALUE_SIZE];
        size_t used = 0;
        bool number = true;
        const size_t length = strcspn(format, "= ");
        snprintf(name, sizeof name, "%.*s", (int)length, format);
        format += length;
        if (*format == '=') format++;
        while (*format != '\0' && *format != ' ') {
            char piece[VALUE_SIZE] = {*format, '\0'};
            if (*format++ == '%') {
                const char conversion = print_directive(&format, a, piece, sizeof piece);
                if (conversion == 's' || conversion == 'p') number = false;
            }
            const size_t size = strlen(piece), room = sizeof value - 1 - used;
            memcpy(value + used, piece, size < room ? size : room);
            used += size < room ? size : room;
        }
        value[used] = '\0';
        if (*format == ' ') format++;
        put_field(l, json, name, value, number);
    }
}

static void put_head(line *l, bool json, tb_log_level level, const char *event)
{
    static const char *const UPPER[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    static const char *const LOWER[] = {"debug", "info", "warning", "error"};
    const int index = level >= TB_LOG_DEBUG && level <= TB_LOG_ERROR ? (int)level : TB_LOG_ERROR;
    struct timespec now;
    struct tm utc;
    char stamp[48];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    const size_t size = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp + size, sizeof stamp - size, ".%06dZ", (int)(now.tv_nsec / 1000));
    if (!json) {
        put_text(l, stamp);
        put(l, " ", 1);
        put_text(l, UPPER[index]);
        put(l, " ", 1);
        put_text(l, event);
        return;
    }
    put_text(l, "{\"time\":\"");
    put_text(l, stamp);
    put_text(l, "\",\"level\":\"");
    put_text(l, LOWER[index]);
    put_text(l, "\",\"event\":");
    put_quoted(l, event);
}

tb_status td_log_create(tb_log_level least, bool json, td_log **created, tb_error *error)
{
    td_log *log = calloc(1, sizeof *log);
    *created = log;
    if (log == NULL) return tb_fail_memory(error, sizeof *log, "the log");
    pthread_mutex_init(&log->mutex, NULL);
    atomic_init(&log->least, (int)least);
    log->json = json;
    return TB_OK;
}

void td_log_destroy(td_log *log)
{
    if (log != NULL) pthread_mutex_destroy(&log->mutex);
    free(log);
}

static void keep(td_log *log, const line *l)
{
    pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < l->size; i++) log->ring[log->written++ % TD_LOG_TAIL_SIZE] = l->text[i];
    pthread_mutex_unlock(&log->mutex);
}

size_t td_log_tail(td_log *log, int lines, char *text, size_t size)
{
    size_t used = 0;
    if (size == 0) return 0;
    if (log != NULL && lines > 0) {
        pthread_mutex_lock(&log->mutex);
        const size_t end = log->written, kept = end < TD_LOG_TAIL_SIZE ? end : TD_LOG_TAIL_SIZE;
        const size_t most = kept < size - 1 ? kept : size - 1;
        /* back over whole lines; where a byte before the first line is gone, that line is cut */
        size_t begin = end;
        int found = 0;
        for (size_t back = 1; back <= most && found < lines; back++) {
            const size_t at = end - back;
            const bool starts =
                at == 0 || (back < kept && log->ring[(at - 1) % TD_LOG_TAIL_SIZE] == '\n');
            if (starts) begin = at, found++;
        }
        for (; begin < end; begin++) text[used++] = log->ring[begin % TD_LOG_TAIL_SIZE];
        pthread_mutex_unlock(&log->mutex);
    }
    text[used] = '\0';
    return used;
}

void td_log_set_level(td_log *log, tb_log_level least)
{
    atomic_store_explicit(&log->least, (int)least, memory_order_relaxed);
}

void td_log_write(td_log *log, tb_log_level level, const char *event, const char *format, ...)
{
    if (log == NULL || (int)level < atomic_load_explicit(&log->least, memory_order_relaxed)) return;
    const int kept_errno = errno;
    line l = {.size = 0};
    arguments a;
    put_head(&l, log->json, level, event);
    va_start(a.list, format);
    put_fields(&l, log->json, format, &a);
    va_end(a.list);
    if (log->json) l.text[l.size++] = '}';
    l.text[l.size++] = '\n';

    keep(log, &l);
    /* serving continues if the log cannot be written */
    for (size_t done = 0; done < l.size;) {
        const ssize_t n = write(STDERR_FILENO, l.text + done, l.size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    errno = kept_errno;
}

static void hook(void *context, tb_log_level level, const char *message)
{
    td_log_write(context, level, "library", "message=%s", message);
}

tb_log td_log_hook(td_log *log)
{
    return (tb_log){.function = hook, .context = log};
}
