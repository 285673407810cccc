/* A strict reader: a file that drives a hand must fail on the first field that is not a number.
 * Depends on the C library alone, so that the fuzzer can link it by itself. */
#include "simulation/controls.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_SIZE = TB_ERROR_NAME_SIZE, MOST_COLUMNS = 100000, LIST_SIZE = 240 };

typedef struct reader {
    const char *next, *end;
    const char *path;
    int line;
    tb_error *error;
    const char *const *actuators;
    int32_t number_of_actuators;
    control_table *out;
    int32_t row_capacity;
} reader;

static tb_status fail(reader *r, tb_status status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static tb_status fail(reader *r, tb_status status, const char *field, const char *format, ...)
{
    tb_error *error = r->error;
    if (error == NULL) return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    const int line = r->line > 0 ? r->line : 1; /* an empty file fails on its first */
    error->line = line;
    snprintf(error->file, sizeof error->file, "%s", r->path);
    snprintf(error->field, sizeof error->field, "%s", field);
    int used = snprintf(error->message, sizeof error->message, "%s:%d: ", r->path, line);
    if (used < 0 || used >= (int)sizeof error->message) return status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message + used, sizeof error->message - (size_t)used, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- lines and fields ---- */

/* Moves to the next line that counts; false at the end of the text. */
static bool next_line(reader *r, const char **begin, const char **end)
{
    while (r->next < r->end) {
        const char *line = r->next;
        const char *stop = memchr(line, '\n', (size_t)(r->end - line));
        r->next = stop != NULL ? stop + 1 : r->end;
        if (stop == NULL) stop = r->end;
        if (stop > line && stop[-1] == '\r') stop--;
        r->line++;
        while (line < stop && (*line == ' ' || *line == '\t')) line++;
        if (line == stop || *line == '#') continue;
        *begin = line;
        *end = stop;
        return true;
    }
    return false;
}

/* Copies the field at *text without its blanks and quotes, and moves past its comma. *last is true
 * if the field ends the line. */
static tb_status next_field(reader *r, const char **text, const char *end, char field[FIELD_SIZE],
                            bool *last)
{
    const char *c = *text;
    size_t length = 0;
    while (c < end && (*c == ' ' || *c == '\t')) c++;
    const bool quoted = c < end && *c == '"';
    if (quoted) c++;
    while (c < end) {
        if (quoted && *c == '"') {
            if (c + 1 == end || c[1] != '"') break;
            c++;
        } else if (!quoted && *c == ',') {
            break;
        }
        if (*c == '\0') return fail(r, TB_INVALID_ARGUMENT, "", "a zero byte in the text");
        if (length + 1 >= FIELD_SIZE)
            return fail(r, TB_INVALID_ARGUMENT, "", "a field of more than %d characters",
                        FIELD_SIZE - 1);
        field[length++] = *c++;
    }
    if (quoted) {
        if (c == end) return fail(r, TB_INVALID_ARGUMENT, "", "a quote that does not end");
        c++;
        while (c < end && (*c == ' ' || *c == '\t')) c++;
        if (c < end && *c != ',')
            return fail(r, TB_INVALID_ARGUMENT, "", "text behind a closing quote");
    } else {
        while (length > 0 && (field[length - 1] == ' ' || field[length - 1] == '\t')) length--;
    }
    field[length] = '\0';
    *last = c == end;
    *text = *last ? end : c + 1;
    return TB_OK;
}

/* ---- header ---- */

static void join_actuators(const reader *r, char list[LIST_SIZE])
{
    size_t used = 0;
    snprintf(list, LIST_SIZE, "none");
    for (int32_t i = 0; i < r->number_of_actuators; i++) {
        if (used + strlen(r->actuators[i]) + sizeof ", , ..." > LIST_SIZE) {
            snprintf(list + used, LIST_SIZE - used, ", ...");
            return;
        }
        used += (size_t)snprintf(list + used, LIST_SIZE - used, "%s%s", i == 0 ? "" : ", ",
                                 r->actuators[i]);
    }
}

static tb_status add_column(reader *r, const char *name)
{
    control_table *out = r->out;
    int32_t actuator = -1;
    for (int32_t i = 0; i < r->number_of_actuators && actuator < 0; i++)
        if (strcmp(r->actuators[i], name) == 0) actuator = i;
    if (actuator < 0) {
        char list[LIST_SIZE];
        join_actuators(r, list);
        return fail(r, TB_NOT_FOUND, name, "no actuator named '%s'; there are: %s", name, list);
    }
    for (int32_t i = 0; i < out->columns; i++)
        if (out->actuators[i] == actuator)
            return fail(r, TB_INVALID_ARGUMENT, name, "actuator '%s' has two columns", name);
    if (out->columns == MOST_COLUMNS)
        return fail(r, TB_RESOURCE_EXHAUSTED, name, "more than %d columns", MOST_COLUMNS);

    int32_t *grown = realloc(out->actuators, ((size_t)out->columns + 1) * sizeof *grown);
    if (grown == NULL) return fail(r, TB_RESOURCE_EXHAUSTED, name, "no memory for its columns");
    out->actuators = grown;
    grown[out->columns++] = actuator;
    return TB_OK;
}

static tb_status parse_header(reader *r)
{
    const char *text = NULL, *end = NULL;
    char field[FIELD_SIZE];
    bool last = false;
    if (!next_line(r, &text, &end))
        return fail(r, TB_INVALID_ARGUMENT, "time", "no header; it reads 'time,ACTUATOR,...'");

    tb_status status = next_field(r, &text, end, field, &last);
    if (status != TB_OK) return status;
    if (strcmp(field, "time") != 0)
        return fail(r, TB_INVALID_ARGUMENT, "time",
                    "the first column is '%s'; the header reads 'time,ACTUATOR,...'", field);
    if (last) return fail(r, TB_INVALID_ARGUMENT, "time", "no actuator beside 'time'");
    while (!last) {
        status = next_field(r, &text, end, field, &last);
        if (status == TB_OK) status = add_column(r, field);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* ---- rows ---- */

/* Plain decimal numbers only: strtod's other forms (nan, inf, hexadecimal) are mistakes in a
 * controls file. */
static tb_status parse_number(reader *r, const char *field, const char *column, double *value)
{
    char *end = NULL;
    *value = strtod(field, &end);
    if (end == field || *end != '\0' || field[strspn(field, "0123456789+-.eE")] != '\0')
        return fail(r, TB_INVALID_ARGUMENT, column, "%s: '%s' is not a finite number", column,
                    field);
    if (!isfinite(*value))
        return fail(r, TB_INVALID_ARGUMENT, column, "%s: '%s' is out of range", column, field);
    return TB_OK;
}

static tb_status add_row(reader *r)
{
    control_table *out = r->out;
    if (out->rows < r->row_capacity) return TB_OK;
    const int32_t capacity = r->row_capacity > 0 ? 2 * r->row_capacity : 64;
    double *times = realloc(out->times, (size_t)capacity * sizeof *times);
    if (times != NULL) out->times = times;
    double *values = realloc(out->values, (size_t)capacity * (size_t)out->columns * sizeof *values);
    if (values != NULL) out->values = values;
    if (times == NULL || values == NULL)
        return fail(r, TB_RESOURCE_EXHAUSTED, "", "no memory for %d rows", (int)capacity);
    r->row_capacity = capacity;
    return TB_OK;
}

static tb_status parse_row(reader *r, const char *text, const char *end)
{
    control_table *out = r->out;
    tb_status status = add_row(r);
    if (status != TB_OK) return status;

    double *values = out->values + (size_t)out->rows * (size_t)out->columns;
    bool last = false;
    for (int32_t i = -1; i < out->columns; i++) {
        const char *column = i < 0 ? "time" : r->actuators[out->actuators[i]];
        char field[FIELD_SIZE];
        if (last)
            return fail(r, TB_INVALID_ARGUMENT, column, "%s: the row ends before this column",
                        column);
        status = next_field(r, &text, end, field, &last);
        if (status != TB_OK) return status;
        status = parse_number(r, field, column, i < 0 ? &out->times[out->rows] : &values[i]);
        if (status != TB_OK) return status;
    }
    if (!last)
        return fail(r, TB_INVALID_ARGUMENT, "", "more fields than the header's %d",
                    (int)out->columns + 1);
    if (out->rows > 0 && !(out->times[out->rows] > out->times[out->rows - 1]))
        return fail(r, TB_INVALID_ARGUMENT, "time", "time: %g does not come after %g",
                    out->times[out->rows], out->times[out->rows - 1]);
    out->rows++;
    return TB_OK;
}

tb_status controls_parse(const char *text, size_t size, const char *path,
                         const char *const *actuators, int32_t number_of_actuators,
                         control_table *controls, tb_error *error)
{
    memset(controls, 0, sizeof *controls);
    reader r = {.next = text,
                .end = text + size,
                .path = path,
                .error = error,
                .actuators = actuators,
                .number_of_actuators = number_of_actuators,
                .out = controls};
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r.next += 3; /* byte order mark */

    tb_status status = parse_header(&r);
    const char *begin = NULL, *end = NULL;
    while (status == TB_OK && next_line(&r, &begin, &end)) status = parse_row(&r, begin, end);
    if (status == TB_OK && controls->rows == 0)
        status = fail(&r, TB_INVALID_ARGUMENT, "time", "no row below the header");
    if (status != TB_OK) controls_free(controls);
    return status;
}

void controls_free(control_table *controls)
{
    free(controls->actuators);
    free(controls->times);
    free(controls->values);
    memset(controls, 0, sizeof *controls);
}

int32_t controls_row(const control_table *controls, double time, double tolerance)
{
    /* first row after `time`, by bisection */
    int32_t low = 0, high = controls->rows;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (controls->times[middle] <= time + tolerance)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}
