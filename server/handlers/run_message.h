/* Runs and benchmarks of the store as messages of the wire. */
#ifndef SERVER_RUN_MESSAGE_H
#define SERVER_RUN_MESSAGE_H

#include "db/db.h"
#include "session/catalog.h"

#include "tribo/v1/runs.pb-c.h"

/* A run with everything that its message points at. `row.options_json` is freed with it. */
typedef struct td_run {
    db_run row;
    char id[33], scene[TD_SHA256_TEXT];
    Tribo__V1__Run message;
    Tribo__V1__Certificate certificate;
} td_run;

/* Fills texts and message from the row; they live as long as the struct stays where it is. */
void td_run_describe(td_run *);
void td_run_clear(td_run *);
/* A run that the caller may see, by its id or the first digits of it; `field` names the id. */
tb_status td_run_find(const td_call *, const char *id, const char *field, td_run *, tb_error *);

/* A message that borrows the memory of a stored certificate. */
void td_run_certificate(const db_certificate *, Tribo__V1__Certificate *);

/* A benchmark in the same way. `row.samples` is freed with it. */
typedef struct td_benchmark {
    db_benchmark row;
    char id[33];
    Tribo__V1__Benchmark message;
} td_benchmark;

void td_benchmark_describe(td_benchmark *);
void td_benchmark_clear(td_benchmark *);

#endif
