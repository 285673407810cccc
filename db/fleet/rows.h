/* Rows of the fleet's tables: one list of columns makes the table, the JSON that is sent and the
 * struct that is read back. */
#ifndef DB_FLEET_ROWS_H
#define DB_FLEET_ROWS_H

#include <jansson.h>

#include "db/fleet/fleet.h"
#include "db/fleet/postgres.h"

typedef struct fleet_column fleet_column;

typedef struct fleet_table {
    const char *name;
    const char *time;  /* the column by which lists are ordered, before id */
    size_t row_size;   /* of the struct */
    size_t time_place; /* of that column's member, an int64_t, and of the id's */
    size_t id_place;
    const fleet_column *columns;
    int32_t number_of_columns;
} fleet_table;

extern const fleet_table FLEET_RUNS, FLEET_BENCHMARKS;

/* Texts of SQL, malloc'ed; NULL without memory. */
char *fleet_sql_create(const fleet_table *);
/* Takes rows as one JSON array, $1. */
char *fleet_sql_insert(const fleet_table *);
/* "SELECT every column FROM table WHERE `condition`, latest first, LIMIT $`limit`". */
char *fleet_sql_select(const fleet_table *, const char *condition, int limit);

/* A row as a JSON object; NULL without memory. */
json_t *fleet_row_json(const fleet_table *, const void *row);
/* Fills a row from the answer to fleet_sql_select. */
tb_status fleet_row_read(const fleet_table *, const db_postgres_rows *, int index, void *row,
                         tb_error *);

/* Lower-case hexadecimal digits with a zero at the end: 2 * size + 1 bytes. */
void fleet_hex(const uint8_t *bytes, size_t size, char *text);

#endif
