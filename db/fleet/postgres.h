/* A connection to PostgreSQL by libpq, which is loaded when a fleet is configured: a daemon without a
 * fleet needs no such library.
 *
 * Every call has a deadline and looks at a flag meanwhile, so that a database that does not answer
 * holds up neither a caller nor the end of the daemon. Errors of the connection are UNAVAILABLE;
 * INVALID_ARGUMENT reports values that the database cannot store (SQLSTATE classes 22 and 23),
 * FAILED_PRECONDITION for everything else that it refuses. No message holds a password. */
#ifndef DB_FLEET_POSTGRES_H
#define DB_FLEET_POSTGRES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "tribo.h"

typedef struct db_postgres db_postgres;
typedef struct db_postgres_rows db_postgres_rows;

/* FAILED_PRECONDITION where this build has no PostgreSQL or libpq cannot be loaded. */
tb_status db_postgres_load(tb_error *);

/* Connects to a URL, postgresql://USER@HOST:PORT/DATABASE; parts that the URL leaves out come from
 * libpq's variables and files (PGPASSWORD, PGPASSFILE). `stop` is borrowed; true ends waiting. */
tb_status db_postgres_connect(const char *url, double seconds, const atomic_bool *stop,
                              db_postgres **, tb_error *);
void db_postgres_close(db_postgres *);
/* False once the connection failed: connect again. */
bool db_postgres_alive(const db_postgres *);

/* Runs one statement with text parameters (NULL: SQL NULL). */
tb_status db_postgres_ask(db_postgres *, const char *sql, int count, const char *const *values,
                          double seconds, db_postgres_rows **, tb_error *);
/* Runs several statements without parameters in one transaction. */
tb_status db_postgres_run(db_postgres *, const char *sql, double seconds, tb_error *);

int db_postgres_count(const db_postgres_rows *);
/* Text of a value; NULL for SQL NULL. */
const char *db_postgres_value(const db_postgres_rows *, int row, int column);
void db_postgres_free(db_postgres_rows *);

#endif
