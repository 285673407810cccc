/* The audit of refused keys: counted in memory and written to the store about once a second, so that
 * a flood of wrong keys costs a bounded number of rows. */
#include <stdio.h>
#include <string.h>

#include "call/auth_internal.h"

/* The row that counts refusals without a row of their own. */
static const char OTHERS[] = "others";

static db_key_refusal *find_row(td_audit *audit, const char *key, const char *peer,
                                const char *reason)
{
    for (int32_t i = 0; i < audit->count; i++) {
        db_key_refusal *row = &audit->rows[i];
        if (strcmp(row->key, key) == 0 && strcmp(row->peer, peer) == 0 &&
            strcmp(row->reason, reason) == 0)
            return row;
    }
    return NULL;
}

static db_key_refusal *add_row(td_audit *audit, const char *key, const char *peer,
                               const char *reason)
{
    db_key_refusal *row = &audit->rows[audit->count++];
    *row = (db_key_refusal){0};
    snprintf(row->key, sizeof row->key, "%s", key);
    snprintf(row->peer, sizeof row->peer, "%s", peer);
    snprintf(row->reason, sizeof row->reason, "%s", reason);
    return row;
}

void td_audit_note(td_audit *audit, const char *key, const char *peer, const char *reason,
                   int64_t utc_us)
{
    char address[sizeof audit->rows->peer];
    const char *colon = strrchr(peer, ':');
    const int length = colon != NULL ? (int)(colon - peer) : (int)strlen(peer);
    snprintf(address, sizeof address, "%.*s", length, peer);
    db_key_refusal *row = find_row(audit, key, address, reason);
    if (row == NULL && audit->count < TD_AUDIT_ROWS - 1) row = add_row(audit, key, address, reason);
    if (row == NULL) row = find_row(audit, OTHERS, "", "");
    if (row == NULL) row = add_row(audit, OTHERS, "", "");
    if (row->refusals++ == 0) row->first_time_us = utc_us;
    row->last_time_us = utc_us;
}

void td_audit_store(const td_audit *audit, struct db *store)
{
    for (int32_t i = 0; i < audit->count; i++) {
        tb_error ignored;
        if (db_note_key_refusal(store, &audit->rows[i], &ignored) != TB_OK) return;
    }
}
