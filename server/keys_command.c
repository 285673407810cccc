/* Keys from the command line. */
#include "keys_command.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/db.h"
#include "call/auth.h"
#include "ops/clock.h"
#include "base/error.h"
#include "base/file.h"

enum { QUEUE_LENGTH = 16, KEY_FILE_BYTES = 4096 };

/* Opens the store for this process alone, or else shares it with the daemon that holds it. Creating
 * a key may create the store; listing or revoking keys needs an existing one. */
static tb_status open_store(const td_config *config, bool existing, struct db **store,
                            tb_error *error)
{
    db_options options = {
        .folder = config->data, .queue_length = QUEUE_LENGTH, .existing = existing};
    if (*config->data == '\0')
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "server.data",
                             "keys are kept in the store: --data names its folder");
    const tb_status status = db_open(&options, store, error);
    if (status != TB_FAILED_PRECONDITION) return status;

    /* NOT_FOUND: the first error explains why no store could be made */
    tb_error beside = {.status = TB_OK};
    options.beside = true;
    const tb_status second = db_open(&options, store, &beside);
    if (second == TB_NOT_FOUND) return status;
    *error = beside;
    return second;
}

static tb_status parse_scope(const char *text, td_scope *scope, tb_error *error)
{
    static const char *const NAMES[] = {"none", "read", "run", "admin"};
    for (int i = TD_SCOPE_READ; i <= TD_SCOPE_ADMIN; i++)
        if (strcmp(text, NAMES[i]) == 0) {
            *scope = (td_scope)i;
            return TB_OK;
        }
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "scope",
                         "--scope '%s' must be read, run or admin", text);
}

/* The number of --FLAG; 0 where it was not given. */
static tb_status parse_number(const char *flag, const char *text, double largest, double *number,
                              tb_error *error)
{
    const char *end = text;
    *number = 0;
    if (text == NULL) return TB_OK;
    if (tb_parse_number(&end, number) && *end == '\0' && *number >= 0 && *number <= largest)
        return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, flag,
                         "--%s '%s' must be a number from 0 to %g", flag, text, largest);
}

static tb_status parse_sessions(const char *text, int32_t *sessions, tb_error *error)
{
    char *end;
    *sessions = 0;
    if (text == NULL) return TB_OK;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < 0 || number > 1000000)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sessions",
                             "--sessions '%s' must be a whole number from 0 to 1000000", text);
    *sessions = (int32_t)number;
    return TB_OK;
}

enum { KEY_SIZE = 128 };

/* The key of a file without spaces at its end, such as a mounted secret. */
static tb_status read_key(const char *path, char key[KEY_SIZE], tb_error *error)
{
    tb_bytes file = {0};
    const tb_status status = tb_file_read(path, KEY_FILE_BYTES, &file, error);
    if (status != TB_OK) return status;
    const char *begin = (const char *)file.base;
    size_t size = file.size;
    while (size > 0 && isspace((unsigned char)begin[size - 1])) size--;
    memset(key, 0, KEY_SIZE);
    if (size < KEY_SIZE) memcpy(key, begin, size);
    if (file.size > 0) explicit_bzero(file.base, file.size);
    tb_bytes_free(&file);
    return TB_OK;
}

/* The message names the file, where the key is none. */
static tb_status import_key(struct db *store, const char *name, const td_key_terms *terms,
                            const char *key, const char *path, tb_error *error)
{
    tb_error cause = {0};
    const tb_status status = td_auth_import_key(store, name, terms, key, &cause);
    if (status == TB_INVALID_ARGUMENT)
        return tb_fail_field(error, status, "key", "%.120s: %.300s", path, cause.message);
    if (status != TB_OK) *error = cause;
    return status;
}

tb_status td_key_create(const td_config *config, const char *name, const td_key_request *request,
                        tb_error *error)
{
    struct db *store = NULL;
    td_key_terms terms = {.scope = TD_SCOPE_NONE};
    char key[KEY_SIZE];
    tb_status status = parse_scope(request->scope, &terms.scope, error);
    if (status == TB_OK)
        status = parse_number("rate", request->rate, 1e9, &terms.calls_per_second, error);
    if (status == TB_OK) status = parse_sessions(request->sessions, &terms.sessions, error);
    if (status == TB_OK) status = parse_number("days", request->days, 36500, &terms.days, error);
    /* before the store, which a first key would make */
    if (status == TB_OK && request->file != NULL) status = read_key(request->file, key, error);
    if (status == TB_OK) status = open_store(config, false, &store, error);
    if (status != TB_OK) return status;
    if (request->file != NULL)
        status = import_key(store, name, &terms, key, request->file, error);
    else
        status = td_auth_create_key(store, name, &terms, key, error);
    db_close(store);
    if (status == TB_OK && request->file == NULL) printf("%s\n", key);
    explicit_bzero(key, sizeof key);
    if (status != TB_OK) return status;
    if (fflush(stdout) != 0)
        return tb_fail(error, TB_INTERNAL, "the key was made but cannot be printed: %s",
                       strerror(errno));
    return TB_OK;
}

tb_status td_key_revoke(const td_config *config, const char *id, tb_error *error)
{
    struct db *store = NULL;
    tb_status status = open_store(config, true, &store, error);
    if (status != TB_OK) return status;
    status = td_auth_revoke_key(store, id, error);
    db_close(store);
    return status;
}

/* "2026-01-31T12:00:00Z"; "never" for 0. */
static const char *print_time(int64_t time_us, char text[32])
{
    const time_t seconds = (time_t)(time_us / 1000000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, 32, time_us != 0 ? "%Y-%m-%dT%H:%M:%SZ" : "never", &utc);
    return text;
}

static void print_key(const db_api_key *key, int64_t now_us)
{
    static const char *const NAMES[] = {"none", "read", "run", "admin"};
    char made[32], end[32], used[32];
    const bool known = key->scope >= 0 && key->scope <= TD_SCOPE_ADMIN;
    const bool expired = key->expire_time_us != 0 && key->expire_time_us <= now_us;
    printf("%-8s %-5s %-7s %8g %8d  %-20s  %-20s  %-20s  %s\n", key->id,
           known ? NAMES[key->scope] : "?",
           key->revoked ? "revoked"
           : expired    ? "expired"
                        : "valid",
           key->calls_per_second, (int)key->sessions, print_time(key->create_time_us, made),
           print_time(key->expire_time_us, end), print_time(key->use_time_us, used), key->name);
}

tb_status td_key_list(const td_config *config, tb_error *error)
{
    enum { CAPACITY = 10000 };
    struct db *store = NULL;
    int32_t count = 0;
    db_api_key *keys = calloc(CAPACITY, sizeof *keys);
    if (keys == NULL) return tb_fail_memory(error, CAPACITY * sizeof *keys, "a list of keys");
    tb_status status = open_store(config, true, &store, error);
    if (status == TB_OK) status = db_list_api_keys(store, keys, CAPACITY, &count, error);
    db_close(store);
    if (status == TB_OK)
        printf("%-8s %-5s %-7s %8s %8s  %-20s  %-20s  %-20s  %s\n", "id", "scope", "state",
               "calls/s", "sessions", "created", "expires", "last used", "name");
    const td_clock clock = td_clock_make();
    const int64_t now_us = td_clock_utc_us(&clock);
    for (int32_t i = 0; status == TB_OK && i < count; i++) print_key(&keys[i], now_us);
    free(keys);
    return status;
}

tb_status td_key_list_refused(const td_config *config, tb_error *error)
{
    struct db *store = NULL;
    int32_t count = 0;
    db_key_refusal *rows = calloc(DB_KEY_REFUSALS, sizeof *rows);
    if (rows == NULL)
        return tb_fail_memory(error, DB_KEY_REFUSALS * sizeof *rows, "a list of refused keys");
    tb_status status = open_store(config, true, &store, error);
    if (status == TB_OK) status = db_list_key_refusals(store, rows, DB_KEY_REFUSALS, &count, error);
    db_close(store);
    if (status == TB_OK)
        printf("%-8s %-8s %8s  %-20s  %-20s  %s\n", "id", "reason", "times", "first", "last",
               "address");
    for (int32_t i = 0; status == TB_OK && i < count; i++) {
        char first[32], last[32];
        printf("%-8s %-8s %8lld  %-20s  %-20s  %s\n", rows[i].key, rows[i].reason,
               (long long)rows[i].refusals, print_time(rows[i].first_time_us, first),
               print_time(rows[i].last_time_us, last), rows[i].peer);
    }
    free(rows);
    return status;
}
