/* Declarations shared by the files of admission: the form of keys, and rationing by token
 * buckets. */
#ifndef SERVER_AUTH_INTERNAL_H
#define SERVER_AUTH_INTERNAL_H

#include <stdint.h>

#include "db/db.h"

#define TD_KEY_PREFIX "tribo_"
#define TD_ANONYMOUS  "anonymous"
enum { TD_KEY_ID_DIGITS = 8 };

/* Fills at a rate, up to a burst; a zeroed one is full at first use. */
typedef struct td_bucket {
    double tokens;
    int64_t filled_ns; /* monotonic, when `tokens` was right; 0: never used */
} td_bucket;

/* Takes one token: 0, or the seconds until there is one. */
double td_bucket_take(td_bucket *, double per_second, double burst, int64_t now_ns);

enum { TD_BUCKET_SETS = 256, TD_BUCKET_WAYS = 4 };

/* Buckets by name, of bounded number: the least recently used one is replaced. */
typedef struct td_bucket_table {
    struct {
        uint64_t name; /* its keyed hash */
        td_bucket bucket;
    } entries[TD_BUCKET_SETS][TD_BUCKET_WAYS];
} td_bucket_table;

/* The bucket of a name, made at first use; valid until the next call. `secret` holds 32 bytes. */
td_bucket *td_bucket_find(td_bucket_table *, const char *name, const uint8_t *secret);

/* ---- the audit of refused keys (auth_audit.c) ---- */

enum { TD_AUDIT_ROWS = 64 };

/* Refusals not yet written to the store, one row for each key, peer and reason. Refusals beyond the
 * table share one row. */
typedef struct td_audit {
    db_key_refusal rows[TD_AUDIT_ROWS];
    int32_t count;
} td_audit;

void td_audit_note(td_audit *, const char *key, const char *peer, const char *reason,
                   int64_t utc_us);
/* Puts the rows. Rows that the store refuses are lost; the log has them. */
void td_audit_store(const td_audit *, struct db *);

#endif
