/* The text form of contact problems: numbers separated by white space.
 *
 *     local:  d, nc, W, q (d nc), mu (nc)          u = W r + q
 *     global: d, nc, M, H, q (dofs), b (d nc), mu (nc)      M v = q + H r,  u = H' v + b
 *
 * A matrix begins with its storage kind, rows, columns. Kind 0 repeats rows and columns and gives
 * all numbers column-major. Kind 1 gives sparse blocks by compressed block rows. Kind 2 is
 * CSparse's output: compressed columns or triplets. Older files end with one more number. Which of the two forms a file has is seen
 * from M's size, or, where M is as large as W would be, from how many numbers follow it. */
#include "contact/files/problem_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *path, *text, *at, *end;
    tb_error *error;
} reader;

static int line_of(const reader *r)
{
    int line = 1;
    for (const char *c = r->text; c < r->at; c++)
        if (*c == '\n') line++;
    return line;
}

static void skip_space(reader *r)
{
    while (r->at < r->end && (unsigned char)*r->at <= ' ' && *r->at != '\0') r->at++;
}

static tb_status bad(const reader *r, const char *what, const char *why)
{
    return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->path, line_of(r), what, "%s: %s", what,
                        why);
}

static tb_status read_number(reader *r, const char *what, double *number)
{
    if (!tb_budget_holds()) return tb_budget_check(r->error);
    skip_space(r);
    if (r->at >= r->end) return bad(r, what, "the file ends before it");
    if (!tb_parse_number(&r->at, number)) return bad(r, what, "a number is expected");
    if (!(fabs(*number) <= DBL_MAX)) return bad(r, what, "the number is not finite");
    return TB_OK;
}

static tb_status read_count(reader *r, const char *what, int32_t largest, int32_t *count)
{
    double number = 0;
    const tb_status status = read_number(r, what, &number);
    if (status != TB_OK) return status;
    if (!(number >= 0) || number > largest || number != floor(number))
        return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->path, line_of(r), what,
                            "%s is %.17g; a whole number from 0 to %d is expected", what, number,
                            largest);
    *count = (int32_t)number;
    return TB_OK;
}

/* every number takes two characters at least: a count beyond that is wrong,
 * and asks for no memory */
static tb_status check_room(const reader *r, const char *what, double numbers)
{
    if (numbers > ((double)(r->end - r->at) + 1) / 2)
        return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->path, line_of(r), what,
                            "%s should have %.0f numbers, more than are left in the file", what,
                            numbers);
    return tb_problem_check_memory((size_t)numbers * sizeof(double), r->error);
}

static tb_status read_vector(reader *r, const char *what, int32_t n, double **vector)
{
    tb_status status = check_room(r, what, n);
    if (status != TB_OK) return status;
    double *x = malloc((size_t)n * sizeof *x + 1);
    if (!x) return tb_fail_memory(r->error, (size_t)n * sizeof *x, what);
    for (int32_t i = 0; status == TB_OK && i < n; i++) status = read_number(r, what, &x[i]);
    if (status == TB_OK)
        *vector = x;
    else
        free(x);
    return status;
}

static tb_status read_counts(reader *r, const char *what, int32_t n, int32_t largest,
                             int32_t **counts)
{
    tb_status status = check_room(r, what, n);
    if (status != TB_OK) return status;
    int32_t *x = malloc((size_t)n * sizeof *x + 1);
    if (!x) return tb_fail_memory(r->error, (size_t)n * sizeof *x, what);
    for (int32_t i = 0; status == TB_OK && i < n; i++) status = read_count(r, what, largest, &x[i]);
    if (status == TB_OK)
        *counts = x;
    else
        free(x);
    return status;
}

/* kind 0: rows, columns once more, then column-major */
static tb_status read_dense(reader *r, const char *what, tb_raw_matrix *m)
{
    int32_t rows = 0, columns = 0;
    tb_status status = read_count(r, what, TB_PROBLEM_FILE_ROWS, &rows);
    if (status == TB_OK) status = read_count(r, what, TB_PROBLEM_FILE_ROWS, &columns);
    if (status != TB_OK) return status;
    if (rows != m->rows || columns != m->columns)
        return bad(r, what, "its dense numbers have another size than its head");
    status = check_room(r, what, (double)rows * columns);
    if (status != TB_OK) return status;
    const size_t bytes = (size_t)rows * (size_t)columns * sizeof(double);
    m->dense = malloc(bytes + 1);
    if (!m->dense) return tb_fail_memory(r->error, bytes, what);
    for (int32_t j = 0; j < columns; j++)
        for (int32_t i = 0; i < rows; i++) {
            status = read_number(r, what, &m->dense[(int64_t)i * columns + j]);
            if (status != TB_OK) return status;
        }
    return TB_OK;
}

/* end indices of block rows or columns: they grow and end at the matrix's size */
static bool ends_are_good(const int32_t *ends, int32_t blocks, int32_t size)
{
    for (int32_t i = 0; i < blocks; i++)
        if (ends[i] < (i > 0 ? ends[i - 1] : 0)) return false;
    return blocks > 0 ? ends[blocks - 1] == size : size == 0;
}

/* kind 1: blocks by compressed block rows, each column-major */
static tb_status read_blocks(reader *r, const char *what, tb_raw_matrix *m)
{
    int32_t blocks = 0, block_rows = 0, block_columns = 0, filled1 = 0, filled2 = 0;
    int32_t *row_end = NULL, *column_end = NULL, *start = NULL, *index = NULL;
    const int32_t most = TB_PROBLEM_FILE_ROWS;
    tb_status status = read_count(r, what, most, &blocks);
    if (status == TB_OK) status = read_count(r, what, most, &block_rows);
    if (status == TB_OK) status = read_count(r, what, most, &block_columns);
    if (status == TB_OK) status = read_counts(r, what, block_rows, m->rows, &row_end);
    if (status == TB_OK) status = read_counts(r, what, block_columns, m->columns, &column_end);
    if (status == TB_OK) status = read_count(r, what, most, &filled1);
    if (status == TB_OK) status = read_count(r, what, most, &filled2);
    if (status == TB_OK) status = read_counts(r, what, filled1, blocks, &start);
    if (status == TB_OK) status = read_counts(r, what, filled2, block_columns, &index);
    if (status != TB_OK) goto done;
    if (!ends_are_good(row_end, block_rows, m->rows) ||
        !ends_are_good(column_end, block_columns, m->columns) || filled2 < blocks ||
        filled1 < block_rows + 1 || start[0] != 0 || start[block_rows] != blocks) {
        status = bad(r, what, "its block structure contradicts itself");
        goto done;
    }
    for (int32_t i = 0; i < block_rows; i++) {
        if (start[i + 1] < start[i] || start[i + 1] > blocks) {
            status = bad(r, what, "its row pointers do not grow");
            goto done;
        }
        const int32_t row = i > 0 ? row_end[i - 1] : 0, rows = row_end[i] - row;
        for (int32_t k = start[i]; k < start[i + 1]; k++) {
            if (index[k] >= block_columns) {
                status = bad(r, what, "a block stands outside of its columns");
                goto done;
            }
            const int32_t column = index[k] > 0 ? column_end[index[k] - 1] : 0;
            const int32_t columns = column_end[index[k]] - column;
            double counter, value;
            status = read_number(r, what, &counter);
            if (status == TB_OK) status = check_room(r, what, (double)rows * columns);
            if (status != TB_OK) goto done;
            for (int32_t q = 0; q < columns; q++)
                for (int32_t p = 0; p < rows; p++) {
                    status = read_number(r, what, &value);
                    if (status == TB_OK)
                        status = tb_raw_matrix_add(m, row + p, column + q, value, r->error);
                    if (status != TB_OK) goto done;
                }
        }
    }
done:
    free(row_end);
    free(column_end);
    free(start);
    free(index);
    return status;
}

/* moves behind `word` if it comes next */
static bool take_word(reader *r, const char *word)
{
    skip_space(r);
    const size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static void skip_line(reader *r)
{
    while (r->at < r->end && *r->at != '\n') r->at++;
}

/* The entries of a CSparse matrix of triplets: "row column : value" each. */
static tb_status read_triplets(reader *r, const char *what, int32_t count, tb_raw_matrix *m)
{
    for (int32_t k = 0; k < count; k++) {
        int32_t row = 0, column = 0;
        double value = 0;
        tb_status status = read_count(r, what, m->rows, &row);
        if (status == TB_OK) status = read_count(r, what, m->columns, &column);
        if (status == TB_OK && !take_word(r, ":")) status = bad(r, what, "':' is expected");
        if (status == TB_OK) status = read_number(r, what, &value);
        if (status == TB_OK) status = tb_raw_matrix_add(m, row, column, value, r->error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* kind 2: the print of a CSparse matrix, of compressed columns or of triplets */
static tb_status read_csparse(reader *r, const char *what, tb_raw_matrix *m)
{
    int32_t rows = 0, columns = 0, most = 0, count = 0, column = -1, left = 0;
    if (r->at < r->end && !take_word(r, "CSparse")) {
        /* newer prints say first how the matrix is compressed */
        int32_t form = 0;
        const tb_status status = read_count(r, what, 9, &form);
        if (status != TB_OK) return status;
        if (!take_word(r, "CSparse"))
            return bad(r, what, "the print of a CSparse matrix is expected");
    }
    skip_line(r);
    const bool triplets = take_word(r, "triplet:");
    tb_status status = read_count(r, what, TB_PROBLEM_FILE_ROWS, &rows);
    if (status == TB_OK && !take_word(r, "-by-")) status = bad(r, what, "'-by-' is expected");
    if (status == TB_OK) status = read_count(r, what, TB_PROBLEM_FILE_ROWS, &columns);
    if (status == TB_OK && !take_word(r, ", nzmax:")) status = bad(r, what, "nzmax is expected");
    if (status == TB_OK) status = read_count(r, what, TB_PROBLEM_FILE_ENTRIES, &most);
    if (status == TB_OK && !take_word(r, "nnz:")) status = bad(r, what, "nnz is expected");
    if (status == TB_OK) status = read_count(r, what, TB_PROBLEM_FILE_ENTRIES, &count);
    if (status != TB_OK) return status;
    if (rows != m->rows || columns != m->columns)
        return bad(r, what, "its print has another size than its head");
    skip_line(r);
    if (triplets) return read_triplets(r, what, count, m);
    for (int32_t k = 0; k < count; k++) {
        while (left == 0) {
            int32_t from = 0, to = 0;
            if (!take_word(r, "col")) return bad(r, what, "a column is expected");
            status = read_count(r, what, columns, &column);
            if (status == TB_OK && !take_word(r, ": locations"))
                status = bad(r, what, "a column's locations are expected");
            if (status == TB_OK) status = read_count(r, what, count, &from);
            if (status == TB_OK && !take_word(r, "to")) status = bad(r, what, "'to' is expected");
            double last = 0; /* an empty column counts to one less than its start */
            if (status == TB_OK) status = read_number(r, what, &last);
            if (status != TB_OK) return status;
            if (!(last >= -1) || last > count)
                return bad(r, what, "a column's locations are wrong");
            to = (int32_t)last;
            left = to >= from ? to - from + 1 : 0;
        }
        int32_t row = 0;
        double value = 0;
        status = read_count(r, what, rows, &row);
        if (status == TB_OK && !take_word(r, ":")) status = bad(r, what, "':' is expected");
        if (status == TB_OK) status = read_number(r, what, &value);
        if (status == TB_OK) status = tb_raw_matrix_add(m, row, column, value, r->error);
        if (status != TB_OK) return status;
        left--;
    }
    /* columns without entries may follow */
    while (take_word(r, "col")) skip_line(r);
    return TB_OK;
}

static tb_status read_matrix(reader *r, const char *what, tb_raw_matrix *m)
{
    tb_status status = read_count(r, what, 1000, &m->kind);
    if (status == TB_OK) status = read_count(r, what, TB_PROBLEM_FILE_ROWS, &m->rows);
    if (status == TB_OK) status = read_count(r, what, TB_PROBLEM_FILE_ROWS, &m->columns);
    if (status != TB_OK) return status;
    switch (m->kind) {
    case 0: return read_dense(r, what, m);
    case 1: return read_blocks(r, what, m);
    case 2: return read_csparse(r, what, m);
    default:
        return tb_fail_file(
            r->error, TB_UNSUPPORTED, r->path, line_of(r), what,
            "%s has storage kind %d; 0 (dense), 1 (blocks) and 2 (CSparse) are known", what,
            m->kind);
    }
}

/* how many numbers follow, up to `most` */
static int64_t numbers_left(const reader *r, int64_t most)
{
    int64_t count = 0;
    for (const char *c = r->at; c < r->end && count <= most;) {
        while (c < r->end && (unsigned char)*c <= ' ') c++;
        if (c >= r->end) break;
        count++;
        while (c < r->end && (unsigned char)*c > ' ') c++;
    }
    return count;
}

tb_status tb_problem_text_read(const char *path, const char *text, size_t size, tb_raw_problem *raw,
                               tb_error *error)
{
    reader r = {.path = path, .text = text, .at = text, .end = text + size, .error = error};
    tb_status status = read_count(&r, "dimension", 3, &raw->dimension);
    if (status == TB_OK && raw->dimension < 2)
        status = bad(&r, "dimension", "the dimension must be 2 or 3");
    if (status == TB_OK)
        status = read_count(&r, "number of contacts", TB_PROBLEM_FILE_ROWS / 3, &raw->contacts);
    if (status == TB_OK) status = read_matrix(&r, "first matrix", &raw->w);
    if (status != TB_OK) return status;

    const int32_t rows = raw->dimension * raw->contacts;
    const int64_t local = (int64_t)rows + raw->contacts;
    raw->global = raw->w.rows != rows || numbers_left(&r, local + 2) > local + 1;
    if (raw->global) {
        status = read_matrix(&r, "H", &raw->h);
        if (status == TB_OK) status = read_vector(&r, "q", raw->w.rows, &raw->f);
        if (status == TB_OK) status = read_vector(&r, "b", rows, &raw->q);
    } else {
        status = read_vector(&r, "q", rows, &raw->q);
    }
    if (status == TB_OK) status = read_vector(&r, "mu", raw->contacts, &raw->mu);
    if (status != TB_OK) return status;

    /* older files: one number more; anything else is not such a file */
    double extra;
    skip_space(&r);
    if (r.at < r.end) status = read_number(&r, "number after mu", &extra);
    skip_space(&r);
    if (status == TB_OK && r.at < r.end) status = bad(&r, "end of file", "more follows after mu");
    return status;
}

/* ---- writing ---- */

typedef struct writer {
    tb_bytes bytes;
    tb_status status;
} writer;

static void put(writer *w, const char *format, double number)
{
    char text[40];
    const int n = snprintf(text, sizeof text, format, number);
    /* a locale may have put a comma in the number's place for a point */
    for (int i = 0; i < n; i++)
        if (text[i] == ',') text[i] = '.';
    if (w->status == TB_OK) w->status = tb_bytes_append(&w->bytes, text, (size_t)n);
}

static void put_count(writer *w, int64_t count)
{
    char text[32];
    const int n = snprintf(text, sizeof text, "%lld\n", (long long)count);
    if (w->status == TB_OK) w->status = tb_bytes_append(&w->bytes, text, (size_t)n);
}

static void put_vector(writer *w, const double *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++) put(w, i + 1 < n ? "%.17g " : "%.17g\n", x[i]);
}

/* block columns that block row i touches, marked by i + 1 in `seen`; their number */
static int32_t touched(const tb_matrix *m, int32_t d, int32_t i, int32_t *seen, int32_t *list)
{
    int32_t count = 0;
    for (int32_t row = d * i; row < d * (i + 1); row++)
        for (int32_t k = m->row_start[row]; k < m->row_start[row + 1]; k++) {
            const int32_t j = m->column[k] / d;
            if (seen[j] == i + 1) continue;
            seen[j] = i + 1;
            list[count++] = j;
        }
    return count;
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* kind 1 with one block for each pair of contacts that share a number */
static void put_blocks(writer *w, const tb_problem_file *file)
{
    const tb_matrix *m = &file->matrix;
    const int32_t d = file->dimension, n = file->contacts;
    int32_t *seen = calloc((size_t)n + 1, sizeof *seen),
            *list = malloc(((size_t)n + 1) * sizeof *list);
    int32_t *start = malloc(((size_t)n + 1) * sizeof *start);
    if (!seen || !list || !start) {
        w->status = TB_RESOURCE_EXHAUSTED;
        goto done;
    }
    start[0] = 0;
    for (int32_t i = 0; i < n; i++) start[i + 1] = start[i] + touched(m, d, i, seen, list);
    put_count(w, start[n]);
    put_count(w, n);
    put_count(w, n);
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < n; i++) put_count(w, (int64_t)d * (i + 1));
    put_count(w, n + 1);
    put_count(w, start[n]);
    for (int32_t i = 0; i <= n; i++) put_count(w, start[i]);
    memset(seen, 0, ((size_t)n + 1) * sizeof *seen);
    for (int32_t i = 0; i < n; i++) {
        const int32_t count = touched(m, d, i, seen, list);
        qsort(list, (size_t)count, sizeof *list, ascending);
        for (int32_t k = 0; k < count; k++) put_count(w, list[k]);
    }
    memset(seen, 0, ((size_t)n + 1) * sizeof *seen);
    int64_t counter = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t count = touched(m, d, i, seen, list);
        qsort(list, (size_t)count, sizeof *list, ascending);
        for (int32_t k = 0; k < count; k++) {
            double block[9] = {0};
            for (int32_t p = 0; p < d; p++)
                for (int32_t e = m->row_start[d * i + p]; e < m->row_start[d * i + p + 1]; e++)
                    if (m->column[e] / d == list[k])
                        block[(m->column[e] % d) * d + p] = m->value[e];
            put_count(w, counter++);
            put_vector(w, block, d * d);
        }
    }
done:
    free(seen);
    free(list);
    free(start);
}

tb_status tb_problem_text_write(const tb_problem_file *file, const char *path, tb_error *error)
{
    const int32_t rows = file->dimension * file->contacts;
    writer w = {.status = TB_OK};
    put_count(&w, file->dimension);
    put_count(&w, file->contacts);
    put_count(&w, file->dense ? 0 : 1);
    put_count(&w, rows);
    put_count(&w, rows);
    if (file->dense) {
        put_count(&w, rows);
        put_count(&w, rows);
        for (int32_t j = 0; j < rows; j++)
            for (int32_t i = 0; i < rows; i++)
                put(&w, i + 1 < rows ? "%.17g " : "%.17g\n", file->dense[(int64_t)i * rows + j]);
    } else {
        put_blocks(&w, file);
    }
    put_vector(&w, file->c, rows);
    put_vector(&w, file->mu, file->contacts);
    tb_status status = w.status;
    if (status != TB_OK)
        tb_fail(error, status, "no memory to write %s", path);
    else
        status = tb_file_write(path, w.bytes.base, w.bytes.size, error);
    tb_bytes_free(&w.bytes);
    return status;
}
