/* The outbox: runs and benchmarks that wait to be sent to the database of a fleet (fleet/).
 *
 * Triggers of the schema note each row in the transaction that writes it. The sender lists the
 * outbox, reads each row, sends it, and acknowledges it. An entry that changed after it was listed has
 * a later sequence, so the acknowledgement leaves it in the outbox. Retention keeps runs that wait. */
#ifndef DB_OUTBOX_H
#define DB_OUTBOX_H

#include "db.h"

enum { DB_OUTBOX_RUN = 1, DB_OUTBOX_BENCHMARK = 2 };

typedef struct db_outbox_entry {
    int64_t sequence;
    int32_t kind;
    db_id id;
} db_outbox_entry;

/* Names the database that the rows go to by its identity. Where the store sent to another one before,
 * or to none, all runs and benchmarks enter the outbox; *filled is true then. Waits for the commit. */
tb_status db_outbox_aim(db *, const char *target, bool *filled, tb_error *);

/* The oldest entries that no database refused. */
tb_status db_outbox_list(db *, db_outbox_entry *, int32_t capacity, int32_t *count, tb_error *);
/* Deletes entries that have not changed since they were listed. Waits for the commit. */
tb_status db_outbox_acknowledge(db *, const db_outbox_entry *, int32_t count, tb_error *);
/* Sets an entry aside until the next start or the next change of its row. Waits for the commit. */
tb_status db_outbox_refuse(db *, const db_outbox_entry *, const char *message, tb_error *);

typedef struct db_outbox_measure {
    int64_t length, refused; /* entries to be sent; entries set aside */
    int64_t oldest_us;       /* UTC, since when the oldest to be sent waits; 0: none */
} db_outbox_measure;

tb_status db_outbox_measure_now(db *, db_outbox_measure *, tb_error *);

/* NOT_FOUND. The caller frees the samples. */
tb_status db_get_benchmark(db *, const db_id *, db_benchmark *, tb_error *);

#endif
