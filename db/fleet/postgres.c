/* See postgres.h. TB_POSTGRES says that libpq's header was there when this was compiled. */
#include "db/fleet/postgres.h"

#include "base/error.h"

#ifdef TB_POSTGRES

#include <dlfcn.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_internal.h"

/* ---- the library ---- */

#define FUNCTIONS(X)                                                                               \
    X(PQconnectStartParams)                                                                        \
    X(PQconnectPoll)                                                                               \
    X(PQsetnonblocking)                                                                            \
    X(PQstatus)                                                                                    \
    X(PQsocket)                                                                                    \
    X(PQerrorMessage)                                                                              \
    X(PQfinish)                                                                                    \
    X(PQsendQuery)                                                                                 \
    X(PQsendQueryParams)                                                                           \
    X(PQflush)                                                                                     \
    X(PQconsumeInput)                                                                              \
    X(PQisBusy)                                                                                    \
    X(PQgetResult)                                                                                 \
    X(PQresultStatus)                                                                              \
    X(PQresultErrorField)                                                                          \
    X(PQresultErrorMessage)                                                                        \
    X(PQntuples)                                                                                   \
    X(PQgetisnull)                                                                                 \
    X(PQgetvalue)                                                                                  \
    X(PQclear)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} pq;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char load_failure[256];

static void load(void)
{
    void *object = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    const char *missing = object == NULL ? dlerror() : NULL;
    /* POSIX lets dlsym's pointer be a function's, which ISO C cannot say by a cast */
#define FIND(name)                                                                                 \
    if (missing == NULL) {                                                                         \
        *(void **)&pq.name = dlsym(object, #name);                                                 \
        if (pq.name == NULL) missing = "it has no function " #name;                                \
    }
    FUNCTIONS(FIND)
#undef FIND
    if (missing != NULL) snprintf(load_failure, sizeof load_failure, "%s", missing);
}

tb_status db_postgres_load(tb_error *error)
{
    pthread_once(&once, load);
    if (load_failure[0] == '\0') return TB_OK;
    return tb_fail(error, TB_FAILED_PRECONDITION,
                   "PostgreSQL needs libpq.so.5 (package libpq5), which cannot be loaded: %s",
                   load_failure);
}

/* ---- waiting ---- */

struct db_postgres {
    PGconn *handle;
    const atomic_bool *stop;
    bool broken; /* an answer did not come in time: its rest would be taken for the next one's */
};

/* Waits until the socket is ready; UNAVAILABLE at the deadline or after a request to stop. */
static tb_status wait_for_socket(db_postgres *c, short events, int64_t deadline_ns, tb_error *error)
{
    enum { TURN_MS = 100 };
    for (;;) {
        const int64_t left_ms = (deadline_ns - db_monotonic_ns()) / 1000000;
        struct pollfd wanted = {.fd = pq.PQsocket(c->handle), .events = events};
        if (atomic_load(c->stop)) return tb_fail(error, TB_UNAVAILABLE, "the daemon ends");
        if (left_ms <= 0)
            return tb_fail(error, TB_UNAVAILABLE, "the database does not answer in time");
        if (poll(&wanted, 1, left_ms < TURN_MS ? (int)left_ms + 1 : TURN_MS) > 0) return TB_OK;
    }
}

/* The first line of libpq's message. */
static tb_status fail(tb_error *error, tb_status status, const char *text)
{
    while (*text == '\n') text++;
    return tb_fail(error, status, "%.*s", (int)strcspn(text, "\n"), text);
}

static int64_t deadline_in(double seconds)
{
    return db_monotonic_ns() + (int64_t)(seconds * 1e9);
}

/* ---- connections ---- */

static tb_status finish_connecting(db_postgres *c, int64_t deadline_ns, tb_error *error)
{
    for (PostgresPollingStatusType step = PGRES_POLLING_WRITING;;
         step = pq.PQconnectPoll(c->handle)) {
        if (step == PGRES_POLLING_OK) break;
        if (step == PGRES_POLLING_FAILED || pq.PQstatus(c->handle) == CONNECTION_BAD)
            return fail(error, TB_UNAVAILABLE, pq.PQerrorMessage(c->handle));
        const tb_status status = wait_for_socket(
            c, step == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_ns, error);
        if (status != TB_OK) return status;
    }
    if (pq.PQsetnonblocking(c->handle, 1) != 0)
        return fail(error, TB_UNAVAILABLE, pq.PQerrorMessage(c->handle));
    return TB_OK;
}

tb_status db_postgres_connect(const char *url, double seconds, const atomic_bool *stop,
                              db_postgres **connected, tb_error *error)
{
    static const char *const KEYS[] = {"dbname", "fallback_application_name", "client_encoding",
                                       NULL};
    const char *const values[] = {url, "tribod", "UTF8", NULL};
    *connected = NULL;
    tb_status status = db_postgres_load(error);
    if (status != TB_OK) return status;
    db_postgres *c = calloc(1, sizeof *c);
    if (c == NULL) return tb_fail_memory(error, sizeof *c, "a connection");
    c->stop = stop;
    c->handle = pq.PQconnectStartParams(KEYS, values, 1);
    status = c->handle != NULL ? finish_connecting(c, deadline_in(seconds), error)
                               : tb_fail_memory(error, 0, "a connection");
    if (status == TB_OK) {
        *connected = c;
    } else {
        db_postgres_close(c);
    }
    return status;
}

void db_postgres_close(db_postgres *c)
{
    if (c == NULL) return;
    if (c->handle != NULL) pq.PQfinish(c->handle);
    free(c);
}

bool db_postgres_alive(const db_postgres *c)
{
    return !c->broken && pq.PQstatus(c->handle) == CONNECTION_OK;
}

/* ---- statements ---- */

struct db_postgres_rows {
    PGresult *result;
};

static tb_status flush(db_postgres *c, int64_t deadline_ns, tb_error *error)
{
    for (int left; (left = pq.PQflush(c->handle)) != 0;) {
        if (left < 0) return fail(error, TB_UNAVAILABLE, pq.PQerrorMessage(c->handle));
        const tb_status status = wait_for_socket(c, POLLIN | POLLOUT, deadline_ns, error);
        if (status != TB_OK) return status;
        if (!pq.PQconsumeInput(c->handle))
            return fail(error, TB_UNAVAILABLE, pq.PQerrorMessage(c->handle));
    }
    return TB_OK;
}

/* The next result of the statement that was sent; NULL at its end. */
static tb_status next_result(db_postgres *c, int64_t deadline_ns, PGresult **result,
                             tb_error *error)
{
    while (pq.PQisBusy(c->handle)) {
        const tb_status status = wait_for_socket(c, POLLIN, deadline_ns, error);
        if (status != TB_OK) return status;
        if (!pq.PQconsumeInput(c->handle))
            return fail(error, TB_UNAVAILABLE, pq.PQerrorMessage(c->handle));
    }
    *result = pq.PQgetResult(c->handle);
    return TB_OK;
}

static tb_status judge(const db_postgres *c, const PGresult *result, tb_error *error)
{
    const ExecStatusType outcome = pq.PQresultStatus(result);
    if (outcome == PGRES_TUPLES_OK || outcome == PGRES_COMMAND_OK) return TB_OK;
    const char *code = pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = pq.PQresultErrorMessage(result);
    if (code == NULL || pq.PQstatus(c->handle) != CONNECTION_OK)
        return fail(error, TB_UNAVAILABLE, text);
    const bool value = strncmp(code, "22", 2) == 0 || strncmp(code, "23", 2) == 0;
    return fail(error, value ? TB_INVALID_ARGUMENT : TB_FAILED_PRECONDITION, text);
}

/* Takes all results of the sent statements. The last one with rows goes to *kept; the first failure counts. */
static tb_status take_results(db_postgres *c, int64_t deadline_ns, PGresult **kept, tb_error *error)
{
    tb_status status = TB_OK;
    for (;;) {
        PGresult *result = NULL;
        tb_error fault = {0};
        const tb_status arrived = next_result(c, deadline_ns, &result, &fault);
        if (arrived != TB_OK) {
            c->broken = true;
            if (status == TB_OK && error != NULL) *error = fault;
            return status != TB_OK ? status : arrived;
        }
        if (result == NULL) return status;
        if (status == TB_OK) status = judge(c, result, error);
        if (*kept != NULL) pq.PQclear(*kept);
        *kept = result;
    }
}

tb_status db_postgres_ask(db_postgres *c, const char *sql, int count, const char *const *values,
                          double seconds, db_postgres_rows **rows, tb_error *error)
{
    const int64_t deadline = deadline_in(seconds);
    PGresult *kept = NULL;
    *rows = NULL;
    const int sent = count > 0
                         ? pq.PQsendQueryParams(c->handle, sql, count, NULL, values, NULL, NULL, 0)
                         : pq.PQsendQuery(c->handle, sql);
    tb_status status = sent ? TB_OK : fail(error, TB_UNAVAILABLE, pq.PQerrorMessage(c->handle));
    if (status == TB_OK) status = flush(c, deadline, error);
    if (status != TB_OK) c->broken = true;
    if (status == TB_OK) status = take_results(c, deadline, &kept, error);
    if (status == TB_OK) {
        *rows = calloc(1, sizeof **rows);
        if (*rows == NULL) status = tb_fail_memory(error, sizeof **rows, "an answer");
    }
    if (status == TB_OK)
        (*rows)->result = kept;
    else if (kept != NULL)
        pq.PQclear(kept);
    return status;
}

tb_status db_postgres_run(db_postgres *c, const char *sql, double seconds, tb_error *error)
{
    db_postgres_rows *rows = NULL;
    const tb_status status = db_postgres_ask(c, sql, 0, NULL, seconds, &rows, error);
    db_postgres_free(rows);
    return status;
}

int db_postgres_count(const db_postgres_rows *rows)
{
    return pq.PQntuples(rows->result);
}

const char *db_postgres_value(const db_postgres_rows *rows, int row, int column)
{
    return pq.PQgetisnull(rows->result, row, column) ? NULL
                                                     : pq.PQgetvalue(rows->result, row, column);
}

void db_postgres_free(db_postgres_rows *rows)
{
    if (rows == NULL) return;
    pq.PQclear(rows->result);
    free(rows);
}

#else

tb_status db_postgres_load(tb_error *error)
{
    return tb_fail(error, TB_FAILED_PRECONDITION,
                   "this build has no PostgreSQL: libpq's header (package libpq-dev) was not there "
                   "when it was made");
}

tb_status db_postgres_connect(const char *url, double seconds, const atomic_bool *stop,
                              db_postgres **connected, tb_error *error)
{
    (void)url, (void)seconds, (void)stop;
    *connected = NULL;
    return db_postgres_load(error);
}

tb_status db_postgres_ask(db_postgres *c, const char *sql, int count, const char *const *values,
                          double seconds, db_postgres_rows **rows, tb_error *error)
{
    (void)c, (void)sql, (void)count, (void)values, (void)seconds;
    *rows = NULL;
    return db_postgres_load(error);
}

tb_status db_postgres_run(db_postgres *c, const char *sql, double seconds, tb_error *error)
{
    (void)c, (void)sql, (void)seconds;
    return db_postgres_load(error);
}

void db_postgres_close(db_postgres *c)
{
    (void)c;
}

bool db_postgres_alive(const db_postgres *c)
{
    (void)c;
    return false;
}

int db_postgres_count(const db_postgres_rows *rows)
{
    (void)rows;
    return 0;
}

const char *db_postgres_value(const db_postgres_rows *rows, int row, int column)
{
    (void)rows, (void)row, (void)column;
    return NULL;
}

void db_postgres_free(db_postgres_rows *rows)
{
    (void)rows;
}

#endif
