/* Tables of the theses, reproduced: tribo bench betz|poulsen|nuetzi|goteman|litven.
 *
 * A table has rows with a label and columns with two numbers each: the measured number and the
 * thesis's (NAN: none). It is printed as text with the thesis's numbers in parentheses, as one JSON
 * object a row, drawn as SVG, and recorded in a daemon's store. */
#ifndef CLI_THESIS_H
#define CLI_THESIS_H

#include <jansson.h>

#include "common/args.h"
#include "remote/remote.h"
#include "tribo.h"

enum { THESIS_COLUMNS = 17, THESIS_ROWS = 120, THESIS_LABEL = 48 };

typedef struct thesis_column {
    const char *name, *unit; /* "seconds", "s"; "" for counts */
    const char *panel;       /* of the drawing, shared by series; NULL: its own */
} thesis_column;

typedef struct thesis_row {
    char label[THESIS_LABEL];
    double here[THESIS_COLUMNS], thesis[THESIS_COLUMNS];
    double residual;   /* of the worst step; NAN: not measured */
    double iterations; /* likewise */
    json_t *more;      /* an object with further members of the row's JSON, or NULL; the table's */
} thesis_row;

typedef struct thesis_table {
    const char *bench, *name; /* "betz", "group" */
    const char *title;        /* the heading: scene, units, source */
    const char *row_key;      /* "scene": the label's name in JSON */
    int columns, rows;
    thesis_column column[THESIS_COLUMNS];
    thesis_row row[THESIS_ROWS];
    char notes[6][160]; /* lines below the text, "" past the last */
} thesis_table;

/* Options shared by the commands. */
typedef struct thesis_options {
    const char *table; /* NULL: all that are quick */
    bool json;
    const char *plot;  /* FILE.svg, or NULL */
    bool server;       /* record by the daemon of `remote` */
    const char *store; /* or in this data folder; NULL: not */
    remote_options remote;
    int backend; /* tb_backend_choice */
    int sets;    /* tb_soft_first_sets, of soft bodies */
    int64_t threads, steps, repeats;
    int64_t contacts; /* of random systems; 0: the table's own */
    const char *solver, *scene;
} thesis_options;

/* A table that can be asked for. `fill` measures; it finds columns and rows empty. */
typedef struct thesis_entry {
    const char *name, *summary;
    bool slow; /* only run when it is named */
    tb_status (*fill)(const thesis_options *options, thesis_table *table, tb_error *error);
} thesis_entry;

/* Lists that end with a NULL name. */
extern const thesis_entry thesis_betz[], thesis_poulsen[], thesis_nuetzi[], thesis_goteman[],
    thesis_litven[];

/* A new column, one that shares a panel of the drawing, or a row; rows begin with NAN in every place. */
void thesis_add_column(thesis_table *table, const char *name, const char *unit);
void thesis_add_series(thesis_table *table, const char *name, const char *unit, const char *panel);
thesis_row *thesis_add_row(thesis_table *table, const char *label);
void thesis_note(thesis_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void thesis_print(const thesis_table *table, const thesis_options *options);
tb_status thesis_draw(const thesis_table *table, const char *path, tb_error *error);
tb_status thesis_record(const thesis_table *table, const thesis_options *options, tb_error *error);
void thesis_free(thesis_table *table);

/* The named scene, compiled. */
tb_status thesis_load(const char *scene, tb_model **model, tb_error *error);

#endif
