/* Snapshots in memory alone, oldest first: they end with their session, or when newer ones need the
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/session_internal.h"

/* Limit of all transient snapshots together. */
static const size_t TRANSIENT_BYTES = (size_t)256 << 20;

struct td_transient {
    td_transient *next;
    db_id id, session;
    size_t size;
    unsigned char *bytes;
};

static void free_transient(td_transient *t)
{
    free(t->bytes);
    free(t);
}

tb_status td_transient_keep(td_sessions *all, const db_id *id, const db_id *session,
                            unsigned char *bytes, size_t size, tb_error *error)
{
    td_transient *t = size <= TRANSIENT_BYTES ? calloc(1, sizeof *t) : NULL;
    if (t == NULL) {
        free(bytes);
        if (size > TRANSIENT_BYTES)
            return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                           "the snapshot has %zu bytes, at most %zu are kept in memory", size,
                           TRANSIENT_BYTES);
        return tb_fail_memory(error, sizeof *t, "a snapshot");
    }
    *t = (td_transient){.id = *id, .session = *session, .size = size, .bytes = bytes};
    pthread_mutex_lock(&all->transient_mutex);
    *(all->newest_transient != NULL ? &all->newest_transient->next : &all->oldest_transient) = t;
    all->newest_transient = t;
    all->transient_bytes += size;
    while (all->transient_bytes > TRANSIENT_BYTES) {
        td_transient *oldest = all->oldest_transient;
        all->oldest_transient = oldest->next;
        all->transient_bytes -= oldest->size;
        free_transient(oldest);
    }
    pthread_mutex_unlock(&all->transient_mutex);
    return TB_OK;
}

void td_transients_drop(td_sessions *all, const db_id *session)
{
    pthread_mutex_lock(&all->transient_mutex);
    td_transient **link = &all->oldest_transient;
    all->newest_transient = NULL;
    while (*link != NULL) {
        td_transient *t = *link;
        if (session == NULL || memcmp(&t->session, session, sizeof *session) == 0) {
            *link = t->next;
            all->transient_bytes -= t->size;
            free_transient(t);
        } else {
            all->newest_transient = t;
            link = &t->next;
        }
    }
    pthread_mutex_unlock(&all->transient_mutex);
}

bool td_transient_find(td_sessions *all, const db_id *id, db_id *session, unsigned char **bytes,
                       size_t *size)
{
    *bytes = NULL;
    pthread_mutex_lock(&all->transient_mutex);
    const td_transient *t = all->oldest_transient;
    while (t != NULL && memcmp(&t->id, id, sizeof *id) != 0) t = t->next;
    if (t != NULL) {
        *bytes = malloc(t->size);
        *size = t->size;
        *session = t->session;
        if (*bytes != NULL) memcpy(*bytes, t->bytes, t->size);
    }
    pthread_mutex_unlock(&all->transient_mutex);
    return *bytes != NULL;
}
