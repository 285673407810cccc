/* Runs and benchmarks of the store as messages of the wire. */
#ifndef SERVER_RUN_MESSAGE_H
#define SERVER_RUN_MESSAGE_H

#include "db/db.h"
#include "db/fleet/fleet.h"
#include "session/catalog.h"

#include "tribo/v1/runs.pb-c.h"

/* A run with everything that its message points at. `row.options_json` is freed with it. */
typedef struct td_run {
    db_run row;
    char id[33], scene[TD_SHA256_TEXT];
    char node
        [DB_FLEET_NODE_SIZE]; /* where the fleet's database has it from; "": this daemon's own */
    Tribo__V1__Run message;
    Tribo__V1__Certificate certificate;
} td_run;

/* Fills texts and message from the row; they live as long as the struct stays where it is. */
void td_run_describe(td_run *);
void td_run_clear(td_run *);
/* A run of this daemon that the caller may see, by its id or the first digits of it; `field` names the
 * id. */
tb_status td_run_find(const td_call *, const char *id, const char *field, td_run *, tb_error *);

/* FAILED_PRECONDITION where this daemon has no fleet's database. */
tb_status td_run_needs_fleet(const td_call *, tb_error *);

/* A message that borrows the memory of a stored certificate. */
void td_run_certificate(const db_certificate *, Tribo__V1__Certificate *);

/* A benchmark in the same way. `row.samples` is freed with it. */
typedef struct td_benchmark {
    db_benchmark row;
    char id[33];
    char node[DB_FLEET_NODE_SIZE];
    Tribo__V1__Benchmark message;
} td_benchmark;

void td_benchmark_describe(td_benchmark *);
void td_benchmark_clear(td_benchmark *);

/* ---- one page of a list in the store ---- */

typedef struct td_page_source {
    size_t row_bytes;
    int32_t rows_at_once;
    /* Reads at most `most` rows from `token` on; `next` begins with '\0' after the last row. */
    tb_status (*list)(const td_call *, const void *query, const char *token, void *rows,
                      int32_t most, int32_t *count, char next[DB_TOKEN_SIZE], tb_error *);
    /* Adds a row to the page, which then owns its memory. Returns the bytes of its message. */
    size_t (*add)(void *page, const void *row);
} td_page_source;

/* Reads at most `size` rows. The page ends early once it is as large as a chunk, so that the answer
 * to a large page size stays one that every client takes. `next` gets the token of the next page, or begins with '\0'. */
tb_status td_page_read(const td_call *, const td_page_source *, const void *query,
                       const char *token, int32_t size, void *page, char next[DB_TOKEN_SIZE],
                       tb_error *);

#endif
