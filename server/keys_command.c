/* Keys from the command line. */
#include "keys_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../db/db.h"
#include "auth.h"
#include "base/error.h"
#include "base/file.h"

enum { QUEUE_LENGTH = 16 };

/* Opens the store alone, or else beside the daemon that holds it. A first key may make it; to list or
 * end keys there must be one. */
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
    options.beside = true;
    return db_open(&options, store, error);
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

static tb_status parse_rate(const char *text, double *rate, tb_error *error)
{
    const char *end = text;
    *rate = 0;
    if (text == NULL) return TB_OK;
    if (tb_parse_number(&end, rate) && *end == '\0' && *rate >= 0 && *rate <= 1e9) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "rate",
                         "--rate '%s' must be a number from 0 to 1e9", text);
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

tb_status td_key_create(const td_config *config, const char *name, const td_key_request *request,
                        tb_error *error)
{
    struct db *store = NULL;
    td_scope scope = TD_SCOPE_NONE;
    double rate = 0;
    int32_t sessions = 0;
    char key[128];
    tb_status status = parse_scope(request->scope, &scope, error);
    if (status == TB_OK) status = parse_rate(request->rate, &rate, error);
    if (status == TB_OK) status = parse_sessions(request->sessions, &sessions, error);
    if (status == TB_OK) status = open_store(config, false, &store, error);
    if (status != TB_OK) return status;
    status = td_auth_create_key(store, name, scope, rate, sessions, key, error);
    db_close(store);
    if (status != TB_OK) return status;
    printf("%s\n", key);
    explicit_bzero(key, sizeof key);
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

static void print_key(const db_api_key *key)
{
    static const char *const NAMES[] = {"none", "read", "run", "admin"};
    const time_t seconds = (time_t)(key->create_time_us / 1000000);
    struct tm utc;
    char time_text[32];
    gmtime_r(&seconds, &utc);
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    const bool known = key->scope >= 0 && key->scope <= TD_SCOPE_ADMIN;
    printf("%-8s %-5s %-7s %8g %8d  %s  %s\n", key->id, known ? NAMES[key->scope] : "?",
           key->revoked ? "revoked" : "valid", key->calls_per_second, (int)key->sessions, time_text,
           key->name);
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
        printf("%-8s %-5s %-7s %8s %8s  %-20s  %s\n", "id", "scope", "state", "calls/s", "sessions",
               "created", "name");
    for (int32_t i = 0; status == TB_OK && i < count; i++) print_key(&keys[i]);
    free(keys);
    return status;
}
