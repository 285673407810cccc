/* See rows.h. Numbers travel as decimal text with 17 digits, which a double survives; infinities and
 * not-a-number as the strings that PostgreSQL reads. */
#include "db/fleet/rows.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef enum column_kind {
    BYTES,   /* an id or a digest; text of hexadecimal digits, "" for a digest of zeros */
    TEXT,    /* an array of char */
    POINTER, /* malloc'ed text, or NULL */
    INT32,
    UINT32,
    INT64,
    REAL,
    SAMPLES /* the samples of a benchmark */
} column_kind;

struct fleet_column {
    const char *name;
    column_kind kind;
    size_t place, size;
};

#define COLUMN(type, name, member, kind)                                                           \
    {                                                                                              \
        name, kind, offsetof(type, member), sizeof(((type *)0)->member)                            \
    }

#define RUN(name, member, kind) COLUMN(db_fleet_run, name, run.member, kind)
static const fleet_column RUN_COLUMNS[] = {
    RUN("id", id.bytes, BYTES),
    COLUMN(db_fleet_run, "node", node, TEXT),
    COLUMN(db_fleet_run, "sequence", sequence, INT64),
    RUN("kind", kind, INT32),
    RUN("status", status, INT32),
    RUN("owner", owner, TEXT),
    RUN("label", label, TEXT),
    RUN("scene", scene.bytes, BYTES),
    RUN("options_json", options_json, POINTER),
    RUN("build", build, TEXT),
    RUN("device", device, TEXT),
    RUN("start_time_us", start_time_us, INT64),
    RUN("end_time_us", end_time_us, INT64),
    RUN("worlds", worlds, INT64),
    RUN("steps", steps, INT64),
    RUN("compute_time_us", compute_time_us, INT64),
    RUN("grasps", grasps, INT64),
    RUN("grasps_held", grasps_held, INT64),
    RUN("message", message, TEXT),
    RUN("outcome", certificate.outcome, INT32),
    RUN("certificate_step", certificate.step, INT64),
    RUN("certificate_time", certificate.time, REAL),
    RUN("residual", certificate.residual, REAL),
    RUN("penetration", certificate.penetration, REAL),
    RUN("cone_error", certificate.cone_error, REAL),
    RUN("complementarity_error", certificate.complementarity_error, REAL),
    RUN("closure_error", certificate.closure_error, REAL),
    RUN("energy", certificate.energy, REAL),
    RUN("energy_change", certificate.energy_change, REAL),
    RUN("contacts", certificate.contacts, INT64),
    RUN("number_of_rows", certificate.rows, INT64),
    RUN("iterations", certificate.iterations, INT64),
    RUN("solver", certificate.solver, TEXT),
    RUN("flags", certificate.flags, UINT32),
};

#define BENCHMARK(name, member, kind) COLUMN(db_fleet_benchmark, name, benchmark.member, kind)
static const fleet_column BENCHMARK_COLUMNS[] = {
    BENCHMARK("id", id.bytes, BYTES),
    COLUMN(db_fleet_benchmark, "node", node, TEXT),
    COLUMN(db_fleet_benchmark, "sequence", sequence, INT64),
    BENCHMARK("name", name, TEXT),
    BENCHMARK("metric", metric, TEXT),
    BENCHMARK("unit", unit, TEXT),
    BENCHMARK("testbed", testbed, TEXT),
    BENCHMARK("build", build, TEXT),
    BENCHMARK("samples", samples, SAMPLES),
    BENCHMARK("median", median, REAL),
    BENCHMARK("lower_quartile", lower, REAL),
    BENCHMARK("upper_quartile", upper, REAL),
    BENCHMARK("residual", residual, REAL),
    BENCHMARK("iterations", iterations, REAL),
    BENCHMARK("penetration", penetration, REAL),
    BENCHMARK("energy_drift", energy_drift, REAL),
    BENCHMARK("time_us", time_us, INT64),
};

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))
const fleet_table FLEET_RUNS = {.name = "tribo_run",
                                .time = "start_time_us",
                                .row_size = sizeof(db_fleet_run),
                                .time_place = offsetof(db_fleet_run, run.start_time_us),
                                .id_place = offsetof(db_fleet_run, run.id),
                                .columns = RUN_COLUMNS,
                                .number_of_columns = COUNT(RUN_COLUMNS)};
const fleet_table FLEET_BENCHMARKS = {.name = "tribo_benchmark",
                                      .time = "time_us",
                                      .row_size = sizeof(db_fleet_benchmark),
                                      .time_place = offsetof(db_fleet_benchmark, benchmark.time_us),
                                      .id_place = offsetof(db_fleet_benchmark, benchmark.id),
                                      .columns = BENCHMARK_COLUMNS,
                                      .number_of_columns = COUNT(BENCHMARK_COLUMNS)};

/* ---- SQL ---- */

static const char *type_of(const fleet_column *column)
{
    switch (column->kind) {
    case INT32:
    case UINT32:
    case INT64: return "bigint";
    case REAL: return "double precision";
    case SAMPLES: return "double precision[]";
    default: return "text";
    }
}

static char *finish(FILE *out, char **text)
{
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return *text;
    free(*text);
    return NULL;
}

char *fleet_sql_create(const fleet_table *table)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    fprintf(out, "CREATE TABLE IF NOT EXISTS %s (", table->name);
    for (int32_t i = 0; i < table->number_of_columns; i++)
        fprintf(out, "%s%s %s%s", i > 0 ? ", " : "", table->columns[i].name,
                type_of(&table->columns[i]), i == 0 ? " PRIMARY KEY" : "");
    fprintf(out, "); CREATE INDEX IF NOT EXISTS %s_by_time ON %s (%s DESC, id DESC);", table->name,
            table->name, table->time);
    return finish(out, &text);
}

char *fleet_sql_insert(const fleet_table *table)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    fprintf(out, "INSERT INTO %s AS kept (", table->name);
    for (int32_t i = 0; i < table->number_of_columns; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", table->columns[i].name);
    fputs(") SELECT ", out);
    for (int32_t i = 0; i < table->number_of_columns; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", table->columns[i].name);
    fprintf(out,
            " FROM jsonb_populate_recordset(NULL::%s, $1::jsonb) "
            "ON CONFLICT (id) DO UPDATE SET ",
            table->name);
    for (int32_t i = 1; i < table->number_of_columns; i++)
        fprintf(out, "%s%s = EXCLUDED.%s", i > 1 ? ", " : "", table->columns[i].name,
                table->columns[i].name);
    fputs(" WHERE kept.sequence < EXCLUDED.sequence", out);
    return finish(out, &text);
}

char *fleet_sql_select(const fleet_table *table, const char *condition, int limit)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    fputs("SELECT ", out);
    for (int32_t i = 0; i < table->number_of_columns; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", table->columns[i].name);
    fprintf(out, " FROM %s WHERE %s ORDER BY %s DESC, id DESC LIMIT $%d::bigint", table->name,
            condition, table->time, limit);
    return finish(out, &text);
}

/* ---- values to JSON ---- */

void fleet_hex(const uint8_t *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * size] = '\0';
}

static json_t *number_json(double value)
{
    if (isfinite(value)) return json_real(value);
    return isnan(value) ? json_null() : json_string(value > 0 ? "Infinity" : "-Infinity");
}

/* Text cut within a character is not UTF-8: its bytes above ASCII become question marks. */
static json_t *text_json(const char *text)
{
    json_t *string = json_string(text);
    if (string != NULL) return string;
    char *clean = strdup(text);
    if (clean == NULL) return NULL;
    for (char *c = clean; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    string = json_string(clean);
    free(clean);
    return string;
}

static json_t *bytes_json(const uint8_t *bytes, size_t size)
{
    static const uint8_t ZEROS[sizeof(db_sha256)];
    char text[2 * sizeof(db_sha256) + 1] = "";
    if (size != sizeof ZEROS || memcmp(bytes, ZEROS, size) != 0) fleet_hex(bytes, size, text);
    return json_string(text);
}

static json_t *samples_json(const db_benchmark *benchmark)
{
    json_t *array = json_array();
    for (int32_t i = 0; i < benchmark->number_of_samples; i++)
        if (json_array_append_new(array, number_json(benchmark->samples[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *value_json(const fleet_column *column, const void *row)
{
    const char *place = (const char *)row + column->place;
    switch (column->kind) {
    case BYTES: return bytes_json((const uint8_t *)place, column->size);
    case TEXT: return text_json(place);
    case POINTER: {
        const char *text;
        memcpy(&text, place, sizeof text);
        return text != NULL ? text_json(text) : json_null();
    }
    case INT32: return json_integer(*(const int32_t *)place);
    case UINT32: return json_integer(*(const uint32_t *)place);
    case INT64: return json_integer(*(const int64_t *)place);
    case REAL: return number_json(*(const double *)place);
    case SAMPLES: return samples_json(&((const db_fleet_benchmark *)row)->benchmark);
    }
    return NULL;
}

json_t *fleet_row_json(const fleet_table *table, const void *row)
{
    json_t *object = json_object();
    for (int32_t i = 0; i < table->number_of_columns; i++)
        if (json_object_set_new(object, table->columns[i].name,
                                value_json(&table->columns[i], row)) != 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

/* ---- values from text ---- */

static void read_bytes(const char *text, uint8_t *bytes, size_t size)
{
    memset(bytes, 0, size);
    if (strlen(text) != 2 * size) return;
    for (size_t i = 0; i < size; i++) {
        unsigned value = 0;
        if (sscanf(text + 2 * i, "%2x", &value) == 1) bytes[i] = (uint8_t)value;
    }
}

/* An array as PostgreSQL prints it, {1,2.5,NaN}. */
static tb_status read_samples(const char *text, db_benchmark *benchmark, tb_error *error)
{
    int32_t count = 0;
    if (text[0] != '{' || text[1] == '}') return TB_OK;
    double *samples = calloc(DB_BENCHMARK_SAMPLES, sizeof *samples);
    if (samples == NULL) return tb_fail_memory(error, 0, "a benchmark's samples");
    for (const char *next = text; (*next == '{' || *next == ',') && count < DB_BENCHMARK_SAMPLES;) {
        char *end = NULL;
        samples[count++] = strtod(next + 1, &end);
        next = end;
    }
    benchmark->samples = samples;
    benchmark->number_of_samples = count;
    return TB_OK;
}

static tb_status read_value(const fleet_column *column, const char *text, void *row,
                            tb_error *error)
{
    char *place = (char *)row + column->place;
    switch (column->kind) {
    case BYTES: read_bytes(text, (uint8_t *)place, column->size); return TB_OK;
    case TEXT: snprintf(place, column->size, "%s", text); return TB_OK;
    case POINTER: {
        char *copy = strdup(text);
        if (copy == NULL) return tb_fail_memory(error, strlen(text), "a run's options");
        memcpy(place, &copy, sizeof copy);
        return TB_OK;
    }
    case INT32: *(int32_t *)place = (int32_t)strtoll(text, NULL, 10); return TB_OK;
    case UINT32: *(uint32_t *)place = (uint32_t)strtoll(text, NULL, 10); return TB_OK;
    case INT64: *(int64_t *)place = strtoll(text, NULL, 10); return TB_OK;
    case REAL: *(double *)place = strtod(text, NULL); return TB_OK;
    case SAMPLES: return read_samples(text, &((db_fleet_benchmark *)row)->benchmark, error);
    }
    return TB_OK;
}

tb_status fleet_row_read(const fleet_table *table, const db_postgres_rows *rows, int index,
                         void *row, tb_error *error)
{
    memset(row, 0, table->row_size);
    for (int32_t i = 0; i < table->number_of_columns; i++) {
        const fleet_column *column = &table->columns[i];
        const char *text = db_postgres_value(rows, index, i);
        if (text == NULL && column->kind == REAL) text = "nan";
        if (text == NULL) continue;
        const tb_status status = read_value(column, text, row, error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}
