/* Problems as files hold them; private to contact/. Double only. */
#ifndef TB_PROBLEM_FILE_H
#define TB_PROBLEM_FILE_H

#include "base/budget.h"
#include "contact/contact.h"

/* Files larger than these are refused before memory is asked for. */
#define TB_PROBLEM_FILE_BYTES ((size_t)2 << 30)
enum { TB_PROBLEM_FILE_ROWS = 30000000, TB_PROBLEM_FILE_ENTRIES = 400000000 };

/* Takes memory for reading from the thread's budget, which gets it back with the budget's end.
 * Every loop over numbers asks tb_budget_check, so that a reader ends with its caller. */
static inline tb_status tb_problem_check_memory(size_t bytes, tb_error *error)
{
    return tb_budget_take(bytes) ? TB_OK : tb_budget_check(error);
}

/* One number of a sparse matrix. */
typedef struct tb_entry {
    int32_t row, column;
    double value;
} tb_entry;

/* A matrix being read: entries in any order, or dense row-major. Owned (heap). */
typedef struct tb_raw_matrix {
    int32_t rows, columns;
    double *dense;
    tb_entry *entries;
    int64_t count, capacity;
    int32_t kind; /* storage kind of the text form: 0 dense, 1 blocks, 2 compressed columns */
} tb_raw_matrix;

void tb_raw_matrix_free(tb_raw_matrix *matrix);
tb_status tb_raw_matrix_add(tb_raw_matrix *matrix, int32_t row, int32_t column, double value,
                            tb_error *error);

/* Contents of a file, before it is made into a problem. Owned (heap). */
typedef struct tb_raw_problem {
    int32_t dimension, contacts;
    bool global;
    tb_raw_matrix w;    /* local: W; global: M */
    tb_raw_matrix h;    /* global: H, dofs x rows */
    double *q, *f, *mu; /* q: rows (local q, global b); f: dofs (global) */
} tb_raw_problem;

void tb_raw_problem_free(tb_raw_problem *raw);

/* Dimension 2 or 3, counts within the limits, sizes that fit each other. */
tb_status tb_raw_problem_check(const tb_raw_problem *raw, const char *path, tb_error *error);

/* Global to local: W = H' inverse(M) H, q = H' inverse(M) f + b, in place. */
tb_status tb_raw_problem_reduce(tb_raw_problem *raw, const char *path, tb_error *error);

struct tb_problem_file {
    int32_t dimension, contacts;
    bool global; /* the file was in global form; the problem is in local form */
    double asymmetry;
    tb_problem problem; /* all its arrays are owned here (heap) */
    tb_matrix matrix;
    tb_block *blocks;
    double *dense, *value, *c, *mu;
    int32_t *row_start, *column;
};

/* Reads the text form; `text` ends with a zero byte. */
tb_status tb_problem_text_read(const char *path, const char *text, size_t size, tb_raw_problem *raw,
                               tb_error *error);
/* Writes the local text form: kind 0 for a dense W, kind 1 else. */
tb_status tb_problem_text_write(const tb_problem_file *file, const char *path, tb_error *error);

/* bytes: the file's content, or NULL to read it from the path. */
tb_status tb_problem_fclib_read(const char *path, const tb_bytes *bytes, tb_raw_problem *raw,
                                tb_error *error);
tb_status tb_problem_fclib_write(const tb_problem_file *file, const char *path, tb_error *error);

/* Makes the problem; takes nothing from `raw`. */
tb_status tb_problem_file_make(const tb_raw_problem *raw, const char *path, tb_problem_file **made,
                               tb_error *error);

#endif
