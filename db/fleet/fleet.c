/* The sender and the lists of fleet.h. */
#include "db/fleet/fleet.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "db/db_internal.h"
#include "db/fleet/rows.h"
#include "db/outbox.h"

/* Version of the tables in PostgreSQL. */
enum { FLEET_VERSION = 1 };
enum { BATCH = 100, URL_SIZE = 512, IDENTITY_SIZE = 64 };
static const double ANSWER_S = 10;     /* for a connection, and for each statement */
static const double IDLE_S = 0.5;      /* between looks at an empty outbox */
static const double FIRST_PAUSE_S = 1; /* after a failure; doubles */
static const double LONGEST_PAUSE_S = 30;
static const int64_t SKEW_NS = 60000000000; /* between comparisons of the clocks */
static const double MOST_SKEW_S = 5;
static const int64_t RETRY_NS = 5000000000; /* a list retries once if at least this time is left */
static const double FAREWELL_S = 2;         /* for the rest, at the end */

struct db_fleet {
    db *store;
    char url[URL_SIZE], node[DB_FLEET_NODE_SIZE];
    void (*log)(void *context, tb_log_level, const char *message);
    void *log_context;
    char *create[2], *insert[2], *select_runs, *select_benchmarks, *find_run; /* SQL */

    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* monotonic clock */
    bool closing;        /* under the mutex */
    atomic_bool stop;    /* ends waiting for the database */

    /* the thread's own */
    db_postgres *connection;
    bool failing;
    double pause_seconds;
    int64_t next_skew_ns;
    bool skewed; /* the last comparison found a difference, which was logged */

    /* lists: one caller at a time */
    pthread_mutex_t lists;
    db_postgres *reader;

    atomic_llong waiting, refused, sent, failures, oldest_us, skew_us;
};

static void say(const db_fleet *fleet, tb_log_level level, const char *format, ...) TB_PRINTF(3, 4);
static void say(const db_fleet *fleet, tb_log_level level, const char *format, ...)
{
    char line[TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    if (fleet->log == NULL) return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fleet->log(fleet->log_context, level, line);
}

/* ---- the tables ---- */

/* Makes the tables where they are missing. Nodes that start together take turns by the lock. */
static tb_status make_tables(db_fleet *fleet, db_postgres *c, tb_error *error)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&sql, &size);
    if (out == NULL) return tb_fail_memory(error, 0, "a statement");
    fprintf(out,
            "SELECT pg_advisory_xact_lock(7410); %s %s "
            "CREATE TABLE IF NOT EXISTS tribo_fleet (version bigint NOT NULL, id text NOT NULL); "
            "INSERT INTO tribo_fleet SELECT %d, gen_random_uuid()::text "
            "WHERE NOT EXISTS (SELECT 1 FROM tribo_fleet)",
            fleet->create[0], fleet->create[1], FLEET_VERSION);
    fclose(out);
    const tb_status status = db_postgres_run(c, sql, ANSWER_S, error);
    free(sql);
    return status;
}

/* Identity of the database; "" where the tables are missing. */
static tb_status read_identity(db_postgres *c, char identity[IDENTITY_SIZE], tb_error *error)
{
    db_postgres_rows *rows = NULL;
    identity[0] = '\0';
    tb_status status =
        db_postgres_ask(c, "SELECT to_regclass('tribo_fleet')", 0, NULL, ANSWER_S, &rows, error);
    if (status != TB_OK) return status;
    const bool there = db_postgres_count(rows) == 1 && db_postgres_value(rows, 0, 0) != NULL;
    db_postgres_free(rows);
    if (!there) return TB_OK;

    status =
        db_postgres_ask(c, "SELECT version, id FROM tribo_fleet", 0, NULL, ANSWER_S, &rows, error);
    if (status != TB_OK) return status;
    if (db_postgres_count(rows) != 1) {
        status = tb_fail(error, TB_FAILED_PRECONDITION,
                         "the table tribo_fleet has %d rows, not one", db_postgres_count(rows));
    } else if (atoi(db_postgres_value(rows, 0, 0)) != FLEET_VERSION) {
        status = tb_fail(error, TB_FAILED_PRECONDITION,
                         "the fleet's tables have version %s, and this build knows version %d",
                         db_postgres_value(rows, 0, 0), FLEET_VERSION);
    } else {
        snprintf(identity, IDENTITY_SIZE, "%s", db_postgres_value(rows, 0, 1));
    }
    db_postgres_free(rows);
    return status;
}

/* Connects, and sends every row again if the database is not that of the last connection. */
static tb_status connect_sender(db_fleet *fleet, tb_error *error)
{
    char identity[IDENTITY_SIZE];
    bool filled = false;
    tb_status status =
        db_postgres_connect(fleet->url, ANSWER_S, &fleet->stop, &fleet->connection, error);
    if (status != TB_OK) return status;
    status = read_identity(fleet->connection, identity, error);
    if (status == TB_OK && identity[0] == '\0') {
        status = make_tables(fleet, fleet->connection, error);
        if (status == TB_OK) status = read_identity(fleet->connection, identity, error);
    }
    if (status == TB_OK) status = db_outbox_aim(fleet->store, identity, &filled, error);
    if (status == TB_OK)
        say(fleet, TB_LOG_INFO, "connected to the fleet's database%s",
            filled ? ", which gets all runs and benchmarks" : "");
    return status;
}

static void disconnect(db_postgres **c)
{
    db_postgres_close(*c);
    *c = NULL;
}

/* Compares the clocks once a minute; the answer's time counts as that of the middle of the wait. */
static tb_status compare_clocks(db_fleet *fleet, tb_error *error)
{
    const int64_t now_ns = db_monotonic_ns();
    if (now_ns < fleet->next_skew_ns) return TB_OK;
    db_postgres_rows *rows = NULL;
    const int64_t asked_us = db_utc_us();
    const tb_status status = db_postgres_ask(
        fleet->connection, "SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint", 0, NULL,
        ANSWER_S, &rows, error);
    if (status != TB_OK) return status;
    const int64_t answered_us = db_utc_us();
    const int64_t theirs_us = strtoll(db_postgres_value(rows, 0, 0), NULL, 10);
    db_postgres_free(rows);
    const int64_t skew_us = asked_us + (answered_us - asked_us) / 2 - theirs_us;
    const double seconds = 1e-6 * (double)llabs(skew_us);
    if (seconds > MOST_SKEW_S && !fleet->skewed)
        say(fleet, TB_LOG_WARNING,
            "this node's clock is %.1f s %s that of the fleet's database: lists of the fleet are "
            "ordered by clocks",
            seconds, skew_us > 0 ? "ahead of" : "behind");
    fleet->skewed = seconds > MOST_SKEW_S;
    atomic_store(&fleet->skew_us, skew_us);
    fleet->next_skew_ns = now_ns + SKEW_NS;
    return TB_OK;
}

/* ---- batches ---- */

typedef struct batch {
    db_outbox_entry entries[BATCH];
    int32_t count;
} batch;

/* Reads the row of an entry as JSON; NULL in *object where the row is gone. */
static tb_status read_row(db_fleet *fleet, const db_outbox_entry *entry, json_t **object,
                          tb_error *error)
{
    tb_error missing = {0};
    tb_status status;
    *object = NULL;
    if (entry->kind == DB_OUTBOX_RUN) {
        db_fleet_run row = {.sequence = entry->sequence};
        memcpy(row.node, fleet->node, sizeof row.node);
        status = db_get_run(fleet->store, &entry->id, &row.run, &missing);
        if (status == TB_OK) *object = fleet_row_json(&FLEET_RUNS, &row);
        free((void *)(uintptr_t)row.run.options_json);
    } else {
        db_fleet_benchmark row = {.sequence = entry->sequence};
        memcpy(row.node, fleet->node, sizeof row.node);
        status = db_get_benchmark(fleet->store, &entry->id, &row.benchmark, &missing);
        if (status == TB_OK) *object = fleet_row_json(&FLEET_BENCHMARKS, &row);
        free((void *)(uintptr_t)row.benchmark.samples);
    }
    if (status == TB_NOT_FOUND) return TB_OK;
    if (status == TB_OK && *object == NULL) return tb_fail_memory(error, 0, "a row");
    if (status != TB_OK && error != NULL) *error = missing;
    return status;
}

/* Sends rows of one table with one statement. */
static tb_status insert_rows(db_fleet *fleet, int table, const json_t *rows, tb_error *error)
{
    if (json_array_size(rows) == 0) return TB_OK;
    char *text = json_dumps(rows, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (text == NULL) return tb_fail_memory(error, 0, "a batch of rows");
    const char *const values[] = {text};
    db_postgres_rows *answer = NULL;
    const tb_status status = db_postgres_ask(fleet->connection, fleet->insert[table], 1, values,
                                             ANSWER_S, &answer, error);
    db_postgres_free(answer);
    free(text);
    return status;
}

/* Sends entries and waits until the database has committed them. */
static tb_status send_entries(db_fleet *fleet, const db_outbox_entry *entries, int32_t count,
                              tb_error *error)
{
    json_t *rows[2] = {json_array(), json_array()};
    tb_status status =
        rows[0] != NULL && rows[1] != NULL ? TB_OK : tb_fail_memory(error, 0, "a batch");
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        json_t *object = NULL;
        status = read_row(fleet, &entries[i], &object, error);
        if (object != NULL)
            json_array_append_new(rows[entries[i].kind == DB_OUTBOX_BENCHMARK], object);
    }
    for (int table = 0; table < 2 && status == TB_OK; table++)
        status = insert_rows(fleet, table, rows[table], error);
    json_decref(rows[0]);
    json_decref(rows[1]);
    return status;
}

/* Sends a batch whose rows the database cannot all store: one by one, setting aside those. */
static tb_status send_singly(db_fleet *fleet, const batch *b, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < b->count && status == TB_OK; i++) {
        tb_error fault = {0};
        status = send_entries(fleet, &b->entries[i], 1, &fault);
        if (status == TB_INVALID_ARGUMENT) {
            char id[2 * sizeof(db_id) + 1];
            fleet_hex(b->entries[i].id.bytes, sizeof(db_id), id);
            say(fleet, TB_LOG_ERROR, "the fleet's database cannot store %s: %s", id, fault.message);
            status = db_outbox_refuse(fleet->store, &b->entries[i], fault.message, error);
        } else if (status == TB_OK) {
            status = db_outbox_acknowledge(fleet->store, &b->entries[i], 1, error);
            atomic_fetch_add(&fleet->sent, 1);
        } else if (error != NULL) {
            *error = fault;
        }
    }
    return status;
}

/* Sends the oldest entries; *more: the outbox may have others. */
static tb_status send_batch(db_fleet *fleet, bool *more, tb_error *error)
{
    batch b;
    *more = false;
    tb_status status = TB_OK;
    if (fleet->connection == NULL) status = connect_sender(fleet, error);
    if (status == TB_OK) status = compare_clocks(fleet, error);
    if (status == TB_OK) status = db_outbox_list(fleet->store, b.entries, BATCH, &b.count, error);
    if (status != TB_OK || b.count == 0) return status;
    status = send_entries(fleet, b.entries, b.count, error);
    if (status == TB_INVALID_ARGUMENT) {
        status = send_singly(fleet, &b, error);
    } else if (status == TB_OK) {
        status = db_outbox_acknowledge(fleet->store, b.entries, b.count, error);
        if (status == TB_OK) atomic_fetch_add(&fleet->sent, b.count);
    }
    *more = status == TB_OK && b.count == BATCH;
    return status;
}

/* ---- the thread ---- */

static void measure(db_fleet *fleet)
{
    db_outbox_measure now;
    if (db_outbox_measure_now(fleet->store, &now, NULL) != TB_OK) return;
    atomic_store(&fleet->waiting, now.length);
    atomic_store(&fleet->refused, now.refused);
    atomic_store(&fleet->oldest_us, now.oldest_us);
}

/* Logs the change between working and failing, and sets the pause until the next attempt. */
static void note(db_fleet *fleet, tb_status status, const tb_error *error)
{
    if (status == TB_OK) {
        if (fleet->failing)
            say(fleet, TB_LOG_INFO, "the fleet's database takes rows again, %lld wait",
                (long long)atomic_load(&fleet->waiting));
        fleet->failing = false;
        fleet->pause_seconds = FIRST_PAUSE_S;
        return;
    }
    disconnect(&fleet->connection);
    if (atomic_load(&fleet->stop)) return;
    atomic_fetch_add(&fleet->failures, 1);
    if (!fleet->failing)
        say(fleet, TB_LOG_ERROR,
            "the fleet's database takes no rows; they wait in the store, tried every %g to %g s: "
            "%s",
            FIRST_PAUSE_S, LONGEST_PAUSE_S, error->message);
    else
        fleet->pause_seconds =
            fleet->pause_seconds < LONGEST_PAUSE_S / 2 ? 2 * fleet->pause_seconds : LONGEST_PAUSE_S;
    fleet->failing = true;
}

/* Waits; true when the fleet closes. */
static bool pause_sender(db_fleet *fleet, double seconds)
{
    const int64_t end_ns = db_monotonic_ns() + (int64_t)(seconds * 1e9);
    const struct timespec end = {.tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000};
    pthread_mutex_lock(&fleet->mutex);
    while (!fleet->closing && pthread_cond_timedwait(&fleet->wake, &fleet->mutex, &end) == 0) {
    }
    const bool closing = fleet->closing;
    pthread_mutex_unlock(&fleet->mutex);
    return closing;
}

static void *send_all(void *context)
{
    db_fleet *fleet = context;
    bool more = false, closing = false;
    do {
        tb_error error = {0};
        const tb_status status = send_batch(fleet, &more, &error);
        measure(fleet);
        note(fleet, status, &error);
        if (!more) closing = pause_sender(fleet, status == TB_OK ? IDLE_S : fleet->pause_seconds);
    } while (!closing);

    /* rows of the drain, unless the database is away */
    for (more = !fleet->failing; more && !atomic_load(&fleet->stop);) {
        tb_error error = {0};
        if (send_batch(fleet, &more, &error) != TB_OK) break;
    }
    return NULL;
}

/* ---- life ---- */

static tb_status make_texts(db_fleet *fleet, tb_error *error)
{
    fleet->create[0] = fleet_sql_create(&FLEET_RUNS);
    fleet->create[1] = fleet_sql_create(&FLEET_BENCHMARKS);
    fleet->insert[0] = fleet_sql_insert(&FLEET_RUNS);
    fleet->insert[1] = fleet_sql_insert(&FLEET_BENCHMARKS);
    fleet->select_runs = fleet_sql_select(
        &FLEET_RUNS,
        "(start_time_us, id) < ($1::bigint, $2::text) AND ($3::bigint = 0 OR kind = $3::bigint) "
        "AND ($4::text = '' OR scene = $4) AND ($5::text IS NULL OR owner = $5)",
        6);
    fleet->select_benchmarks = fleet_sql_select(
        &FLEET_BENCHMARKS,
        "(time_us, id) < ($1::bigint, $2::text) AND ($3::text = '' OR name = $3)", 4);
    fleet->find_run = fleet_sql_select(
        &FLEET_RUNS, "id >= $1::text AND id <= $2::text AND ($3::text IS NULL OR owner = $3)", 4);
    const bool made = fleet->create[0] != NULL && fleet->create[1] != NULL &&
                      fleet->insert[0] != NULL && fleet->insert[1] != NULL &&
                      fleet->select_runs != NULL && fleet->select_benchmarks != NULL &&
                      fleet->find_run != NULL;
    return made ? TB_OK : tb_fail_memory(error, 0, "the fleet's statements");
}

tb_status db_fleet_create(db *store, const db_fleet_options *options, db_fleet **created,
                          tb_error *error)
{
    *created = NULL;
    tb_status status = db_postgres_load(error);
    if (status != TB_OK) return status;
    if (strlen(options->url) >= URL_SIZE)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "url", "the fleet's URL is too long");
    db_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL) return tb_fail_memory(error, sizeof *fleet, "the fleet");
    fleet->store = store;
    snprintf(fleet->url, sizeof fleet->url, "%s", options->url);
    snprintf(fleet->node, sizeof fleet->node, "%s", options->node);
    fleet->log = options->log;
    fleet->log_context = options->log_context;
    fleet->pause_seconds = FIRST_PAUSE_S;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&fleet->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&fleet->mutex, NULL);
    pthread_mutex_init(&fleet->lists, NULL);
    status = make_texts(fleet, error);
    if (status == TB_OK) {
        fleet->started = pthread_create(&fleet->thread, NULL, send_all, fleet) == 0;
        if (!fleet->started)
            status = tb_fail(error, TB_RESOURCE_EXHAUSTED, "no thread for the fleet's rows");
    }
    if (status != TB_OK) {
        db_fleet_destroy(fleet);
        return status;
    }
    *created = fleet;
    return TB_OK;
}

/* Ends the thread: at once where the database is away, else after the farewell at the latest. */
static void end_thread(db_fleet *fleet)
{
    pthread_mutex_lock(&fleet->mutex);
    fleet->closing = true;
    pthread_cond_signal(&fleet->wake);
    pthread_mutex_unlock(&fleet->mutex);
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)FAREWELL_S;
    if (pthread_clockjoin_np(fleet->thread, NULL, CLOCK_MONOTONIC, &end) == 0) return;
    atomic_store(&fleet->stop, true);
    pthread_join(fleet->thread, NULL);
}

void db_fleet_destroy(db_fleet *fleet)
{
    if (fleet == NULL) return;
    if (fleet->started) end_thread(fleet);
    disconnect(&fleet->connection);
    disconnect(&fleet->reader);
    for (int i = 0; i < 2; i++) {
        free(fleet->create[i]);
        free(fleet->insert[i]);
    }
    free(fleet->select_runs);
    free(fleet->select_benchmarks);
    free(fleet->find_run);
    pthread_mutex_destroy(&fleet->mutex);
    pthread_mutex_destroy(&fleet->lists);
    pthread_cond_destroy(&fleet->wake);
    free(fleet);
}

db_fleet_counters db_fleet_count(const db_fleet *fleet)
{
    const int64_t since_us = atomic_load(&fleet->oldest_us);
    const double age = since_us > 0 ? (double)(db_utc_us() - since_us) * 1e-6 : 0;
    return (db_fleet_counters){.waiting = atomic_load(&fleet->waiting),
                               .refused = atomic_load(&fleet->refused),
                               .sent = atomic_load(&fleet->sent),
                               .failures = atomic_load(&fleet->failures),
                               .skew_seconds = 1e-6 * (double)atomic_load(&fleet->skew_us),
                               .oldest_seconds = age > 0 ? age : 0};
}

/* ---- lists ---- */

/* Place in a list: time and id of the last row that was given, behind a hash of list and filter. */
typedef struct place {
    uint32_t filter;
    char time[21], id[2 * sizeof(db_id) + 1];
} place;

static void print_place(const place *p, char token[DB_TOKEN_SIZE])
{
    snprintf(token, DB_TOKEN_SIZE, "%08x%s.%s", p->filter, p->id, p->time);
}

static tb_status parse_place(place *p, const char *token, tb_error *error)
{
    char expected[DB_TOKEN_SIZE] = "";
    snprintf(p->time, sizeof p->time, "%lld", (long long)INT64_MAX);
    snprintf(p->id, sizeof p->id, "g"); /* beyond every hexadecimal text */
    if (token[0] == '\0') return TB_OK;
    place given = {.filter = p->filter};
    if (strlen(token) < DB_TOKEN_SIZE && sscanf(token + (strlen(token) < 8 ? strlen(token) : 8),
                                                "%32[0-9a-f].%20[0-9]", given.id, given.time) == 2)
        print_place(&given, expected);
    if (strcmp(expected, token) != 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "page_token",
                             "page_token '%.40s' is not one that this list gave under this filter",
                             token);
    *p = given;
    return TB_OK;
}

/* Asks by the readers' connection, which is made at the first use and after a failure. */
static tb_status ask(db_fleet *fleet, const char *sql, int count, const char *const *values,
                     db_postgres_rows **rows, tb_error *error)
{
    tb_status status = TB_OK;
    pthread_mutex_lock(&fleet->lists);
    const int64_t end_ns = db_monotonic_ns() + (int64_t)(ANSWER_S * 1e9);
    for (bool again = true; again;) {
        const bool kept = fleet->reader != NULL;
        double left = 1e-9 * (double)(end_ns - db_monotonic_ns());
        status = TB_OK;
        if (!kept)
            status = db_postgres_connect(fleet->url, left, &fleet->stop, &fleet->reader, error);
        left = 1e-9 * (double)(end_ns - db_monotonic_ns());
        if (status == TB_OK)
            status = db_postgres_ask(fleet->reader, sql, count, values, left, rows, error);
        if (fleet->reader != NULL && !db_postgres_alive(fleet->reader)) disconnect(&fleet->reader);
        /* a connection that was kept may have ended meanwhile, which shows at once */
        again = status == TB_UNAVAILABLE && kept && db_monotonic_ns() < end_ns - RETRY_NS;
    }
    pthread_mutex_unlock(&fleet->lists);
    if (status == TB_OK || error == NULL) return status;
    char reason[TB_ERROR_MESSAGE_SIZE];
    snprintf(reason, sizeof reason, "%s", error->message);
    /* clients repeat UNAVAILABLE calls at once, which would not help here */
    if (status == TB_UNAVAILABLE) status = TB_FAILED_PRECONDITION;
    return tb_fail(error, status, "the fleet's database: %.300s", reason);
}

static tb_status list(db_fleet *fleet, const fleet_table *table, const char *sql, place *p,
                      int count, const char **values, void *rows, int32_t capacity, int32_t *number,
                      char next[DB_TOKEN_SIZE], tb_error *error)
{
    char limit[16];
    db_postgres_rows *answer = NULL;
    snprintf(limit, sizeof limit, "%d", (int)capacity + 1);
    values[0] = p->time;
    values[1] = p->id;
    values[count - 1] = limit;
    tb_status status = ask(fleet, sql, count, values, &answer, error);
    if (status != TB_OK) return status;
    const int found = db_postgres_count(answer);
    while (*number < found && *number < capacity && status == TB_OK) {
        char *row = (char *)rows + (size_t)*number * table->row_size;
        status = fleet_row_read(table, answer, *number, row, error);
        if (status != TB_OK) break;
        snprintf(p->time, sizeof p->time, "%lld",
                 (long long)*(const int64_t *)(const void *)(row + table->time_place));
        fleet_hex((const uint8_t *)row + table->id_place, sizeof(db_id), p->id);
        ++*number;
    }
    if (status == TB_OK && found > capacity) print_place(p, next);
    db_postgres_free(answer);
    return status;
}

tb_status db_fleet_list_runs(db_fleet *fleet, const db_run_filter *filter, const char *token,
                             db_fleet_run *rows, int32_t capacity, int32_t *count,
                             char next[DB_TOKEN_SIZE], tb_error *error)
{
    char kind[16], scene[2 * sizeof(db_sha256) + 1] = "";
    snprintf(kind, sizeof kind, "%d", (int)filter->kind);
    if (filter->scene != NULL) fleet_hex(filter->scene->bytes, sizeof(db_sha256), scene);
    place p = {.filter = db_page_hash(0, "fleet's runs", 12)};
    p.filter = db_page_hash(p.filter, kind, strlen(kind) + 1);
    p.filter = db_page_hash(p.filter, scene, sizeof scene);
    if (filter->owner != NULL)
        p.filter = db_page_hash(p.filter, filter->owner, strlen(filter->owner) + 1);
    *count = 0;
    tb_status status = parse_place(&p, token, error);
    next[0] = '\0'; /* may be the token's own memory */
    const char *values[] = {NULL, NULL, kind, scene, filter->owner, NULL};
    if (status == TB_OK)
        status = list(fleet, &FLEET_RUNS, fleet->select_runs, &p, 6, values, rows, capacity, count,
                      next, error);
    if (status != TB_OK) {
        for (int32_t i = 0; i < *count; i++) free((void *)(uintptr_t)rows[i].run.options_json);
        *count = 0;
    }
    return status;
}

tb_status db_fleet_find_run(db_fleet *fleet, const db_id *lower, const db_id *upper,
                            const char *owner, db_fleet_run *run, int32_t *count, tb_error *error)
{
    char first[2 * sizeof(db_id) + 1], last[2 * sizeof(db_id) + 1];
    db_postgres_rows *answer = NULL;
    fleet_hex(lower->bytes, sizeof(db_id), first);
    fleet_hex(upper->bytes, sizeof(db_id), last);
    const char *const values[] = {first, last, owner, "2"};
    *count = 0;
    tb_status status = ask(fleet, fleet->find_run, 4, values, &answer, error);
    if (status != TB_OK) return status;
    *count = db_postgres_count(answer);
    if (*count > 0) status = fleet_row_read(&FLEET_RUNS, answer, 0, run, error);
    db_postgres_free(answer);
    return status;
}

tb_status db_fleet_list_benchmarks(db_fleet *fleet, const char *name, const char *token,
                                   db_fleet_benchmark *rows, int32_t capacity, int32_t *count,
                                   char next[DB_TOKEN_SIZE], tb_error *error)
{
    place p = {.filter = db_page_hash(0, "fleet's benchmarks", 18)};
    p.filter = db_page_hash(p.filter, name, strlen(name) + 1);
    *count = 0;
    tb_status status = parse_place(&p, token, error);
    next[0] = '\0'; /* may be the token's own memory */
    const char *values[] = {NULL, NULL, name, NULL};
    if (status == TB_OK)
        status = list(fleet, &FLEET_BENCHMARKS, fleet->select_benchmarks, &p, 4, values, rows,
                      capacity, count, next, error);
    if (status != TB_OK) {
        for (int32_t i = 0; i < *count; i++) free((void *)(uintptr_t)rows[i].benchmark.samples);
        *count = 0;
    }
    return status;
}
