/* Arrays that calls of functions keep for later calls. A table, searched from end to end: it holds some
 * hundred entries at most, and a search takes less time than a message. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "call/memory.h"
#include "ops/clock.h"
#include "ops/config.h"
#include "ops/daemon.h"
#include "session/programs.h"

enum { MOST_ARRAYS = 1024, CALLER_BYTES = 128 };

typedef struct entry {
    char caller[CALLER_BYTES], session[TD_ARRAY_NAME + 1], name[TD_ARRAY_NAME + 1];
    tb_function_array *array;
    uint64_t bytes;
    uint64_t used;   /* order of the last uses, by a counter */
    int64_t used_us; /* of the steady clock */
} entry;

struct td_arrays {
    td_server *server;
    pthread_mutex_t lock;
    uint64_t uses, bytes;
    int32_t count;
    entry entries[MOST_ARRAYS];
};

tb_status td_arrays_create(td_server *server, td_arrays **made, tb_error *error)
{
    *made = calloc(1, sizeof **made);
    if (*made == NULL) return tb_fail_memory(error, sizeof **made, "the kept arrays");
    (*made)->server = server;
    pthread_mutex_init(&(*made)->lock, NULL);
    return TB_OK;
}

/* Takes an entry out of the table; the caller holds the lock. */
static void drop(td_arrays *all, entry *e)
{
    td_memory_give_back(all->server, e->caller, e->bytes);
    tb_function_array_release(e->array);
    all->bytes -= e->bytes;
    *e = all->entries[--all->count];
}

void td_arrays_destroy(td_arrays *all)
{
    if (all == NULL) return;
    while (all->count > 0) drop(all, &all->entries[0]);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

tb_status td_arrays_check(const td_array_key *key, tb_error *error)
{
    const char *const texts[] = {key->session, key->name};
    static const char *const FIELDS[] = {"session", "kept"};
    for (int k = 0; k < 2; k++)
        if (texts[k][0] == '\0' || strlen(texts[k]) > TD_ARRAY_NAME)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, FIELDS[k],
                                 "the %s of a kept array has %zu characters, expected 1 to %d",
                                 k == 0 ? "session" : "name", strlen(texts[k]), TD_ARRAY_NAME);
    return TB_OK;
}

static bool is_of(const entry *e, const td_array_key *key)
{
    return strcmp(e->session, key->session) == 0 &&
           strncmp(e->caller, key->caller, CALLER_BYTES - 1) == 0 &&
           (key->name == NULL || strcmp(e->name, key->name) == 0);
}

/* the longest unused array of a caller, or of all for NULL; under the lock */
static entry *oldest_of(td_arrays *all, const char *caller)
{
    entry *oldest = NULL;
    for (int32_t k = 0; k < all->count; k++) {
        entry *e = &all->entries[k];
        if (caller != NULL && strncmp(e->caller, caller, CALLER_BYTES - 1) != 0) continue;
        if (oldest == NULL || e->used < oldest->used) oldest = e;
    }
    return oldest;
}

static uint64_t bytes_of(const td_arrays *all, const char *caller)
{
    uint64_t bytes = 0;
    for (int32_t k = 0; k < all->count; k++)
        if (strncmp(all->entries[k].caller, caller, CALLER_BYTES - 1) == 0)
            bytes += all->entries[k].bytes;
    return bytes;
}

/* Makes room for an array: a caller has at most half of the limit. Under the lock. */
static tb_status make_room(td_arrays *all, const char *caller, uint64_t bytes, tb_error *error)
{
    const uint64_t limit = (uint64_t)all->server->config->kept_array_bytes, share = limit / 2;
    if (bytes > share)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "keep",
                             "an array to keep has %llu bytes, a caller may keep %llu",
                             (unsigned long long)bytes, (unsigned long long)share);
    while (bytes_of(all, caller) > share - bytes) drop(all, oldest_of(all, caller));
    while (all->bytes > limit - bytes || all->count == MOST_ARRAYS) drop(all, oldest_of(all, NULL));
    for (;;) {
        const tb_status status =
            td_memory_take(all->server, caller, bytes, "the kept array", error);
        entry *oldest = status != TB_OK ? oldest_of(all, caller) : NULL;
        if (oldest == NULL) return status;
        drop(all, oldest);
    }
}

tb_status td_arrays_put(td_arrays *all, const td_array_key *key, tb_function_array *array,
                        tb_error *error)
{
    const uint64_t bytes = tb_function_array_bytes(array);
    tb_status status = td_arrays_check(key, error);
    if (status != TB_OK) return status;
    pthread_mutex_lock(&all->lock);
    for (int32_t k = all->count; k-- > 0;)
        if (is_of(&all->entries[k], key)) drop(all, &all->entries[k]);
    status = make_room(all, key->caller, bytes, error);
    if (status == TB_OK) {
        entry *e = &all->entries[all->count++];
        *e = (entry){.array = array, .bytes = bytes, .used = ++all->uses};
        e->used_us = td_clock_steady_us(&all->server->clock);
        snprintf(e->caller, sizeof e->caller, "%s", key->caller);
        snprintf(e->session, sizeof e->session, "%s", key->session);
        snprintf(e->name, sizeof e->name, "%s", key->name);
        tb_function_array_hold(array);
        all->bytes += bytes;
    }
    pthread_mutex_unlock(&all->lock);
    return status;
}

tb_status td_arrays_find(td_arrays *all, const td_array_key *key, tb_function_array **array,
                         tb_error *error)
{
    *array = NULL;
    const tb_status status = td_arrays_check(key, error);
    if (status != TB_OK) return status;
    pthread_mutex_lock(&all->lock);
    for (int32_t k = 0; k < all->count && *array == NULL; k++) {
        entry *e = &all->entries[k];
        if (!is_of(e, key)) continue;
        e->used = ++all->uses;
        e->used_us = td_clock_steady_us(&all->server->clock);
        *array = e->array;
        tb_function_array_hold(*array);
    }
    pthread_mutex_unlock(&all->lock);
    if (*array != NULL) return TB_OK;
    return tb_fail_field(error, TB_NOT_FOUND, "kept",
                         "no array '%s' is kept in session '%s': send it again", key->name,
                         key->session);
}

void td_arrays_forget(td_arrays *all, const td_array_key *key, int32_t *count, uint64_t *bytes)
{
    pthread_mutex_lock(&all->lock);
    for (int32_t k = all->count; k-- > 0;) {
        entry *e = &all->entries[k];
        if (!is_of(e, key)) continue;
        *count += 1;
        *bytes += e->bytes;
        drop(all, e);
    }
    pthread_mutex_unlock(&all->lock);
}

void td_arrays_reap(td_arrays *all)
{
    const int64_t now = td_clock_steady_us(&all->server->clock);
    const double seconds = all->server->config->session_ttl_seconds;
    pthread_mutex_lock(&all->lock);
    for (int32_t k = all->count; k-- > 0;)
        if ((double)(now - all->entries[k].used_us) > 1e6 * seconds) drop(all, &all->entries[k]);
    pthread_mutex_unlock(&all->lock);
}

int32_t td_arrays_list(td_arrays *all, const td_array_key *key, char (*names)[TD_ARRAY_NAME + 1],
                       tb_function_array **list, int32_t most)
{
    int32_t listed = 0;
    pthread_mutex_lock(&all->lock);
    for (uint64_t before = UINT64_MAX; listed < most; listed++) {
        entry *next = NULL;
        for (int32_t k = 0; k < all->count; k++) {
            entry *e = &all->entries[k];
            if (is_of(e, key) && e->used < before && (next == NULL || e->used > next->used))
                next = e;
        }
        if (next == NULL) break;
        before = next->used;
        list[listed] = next->array;
        snprintf(names[listed], sizeof names[listed], "%s", next->name);
        tb_function_array_hold(next->array);
    }
    pthread_mutex_unlock(&all->lock);
    return listed;
}
