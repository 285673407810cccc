/* Contact problems without a world: loading by content, describing, saving; and writing a live
 * problem.
 *
 * A problem is kept in the local form, u = W r + q, with W exactly as in the file: symmetric or
 * not, to all its digits. A file in global form is reduced on loading and saved in local form. */
#include "contact/files/problem_file.h"

#include <stdlib.h>
#include <string.h>

void tb_raw_matrix_free(tb_raw_matrix *matrix)
{
    free(matrix->dense);
    free(matrix->entries);
    memset(matrix, 0, sizeof *matrix);
}

tb_status tb_raw_matrix_add(tb_raw_matrix *matrix, int32_t row, int32_t column, double value,
                            tb_error *error)
{
    if (matrix->count == matrix->capacity) {
        const int64_t capacity =
            matrix->capacity < 64 ? 64 : matrix->capacity + matrix->capacity / 2;
        if (capacity > TB_PROBLEM_FILE_ENTRIES)
            return tb_fail(error, TB_RESOURCE_EXHAUSTED, "matrix with more than %d entries",
                           TB_PROBLEM_FILE_ENTRIES);
        const size_t bytes = (size_t)capacity * sizeof(tb_entry);
        const tb_status status = tb_problem_check_memory(
            (size_t)(capacity - matrix->capacity) * sizeof(tb_entry), error);
        if (status != TB_OK) return status;
        tb_entry *entries = realloc(matrix->entries, bytes);
        if (!entries) return tb_fail_memory(error, bytes, "matrix entries");
        matrix->entries = entries;
        matrix->capacity = capacity;
    }
    matrix->entries[matrix->count++] = (tb_entry){row, column, value};
    return TB_OK;
}

void tb_raw_problem_free(tb_raw_problem *raw)
{
    tb_raw_matrix_free(&raw->w);
    tb_raw_matrix_free(&raw->h);
    free(raw->q);
    free(raw->f);
    free(raw->mu);
    memset(raw, 0, sizeof *raw);
}

static tb_status check_finite(const double *x, int64_t n, const char *what, const char *path,
                              tb_error *error)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i]) <= DBL_MAX))
            return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, what,
                                "number %lld of %s is not finite", (long long)i, what);
    return TB_OK;
}

static tb_status check_matrix(const tb_raw_matrix *m, const char *what, const char *path,
                              tb_error *error)
{
    if (m->dense) return check_finite(m->dense, (int64_t)m->rows * m->columns, what, path, error);
    for (int64_t k = 0; k < m->count; k++) {
        const tb_entry e = m->entries[k];
        if (e.row < 0 || e.row >= m->rows || e.column < 0 || e.column >= m->columns)
            return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, what,
                                "%s has an entry at (%d, %d), outside of its %d x %d", what, e.row,
                                e.column, m->rows, m->columns);
        if (!(fabs(e.value) <= DBL_MAX))
            return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, what,
                                "%s has an entry at (%d, %d) that is not finite", what, e.row,
                                e.column);
    }
    return TB_OK;
}

tb_status tb_raw_problem_check(const tb_raw_problem *raw, const char *path, tb_error *error)
{
    const int64_t rows = (int64_t)raw->dimension * raw->contacts;
    if ((raw->dimension != 2 && raw->dimension != 3) || raw->contacts < 0 ||
        rows > TB_PROBLEM_FILE_ROWS)
        return tb_fail_file(
            error, TB_INVALID_ARGUMENT, path, 0, "dimension",
            "%d contacts in dimension %d: the dimension must be 2 or 3 and the rows "
            "at most %d",
            raw->contacts, raw->dimension, TB_PROBLEM_FILE_ROWS);
    if (raw->w.rows != raw->w.columns)
        return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, raw->global ? "M" : "W",
                            "%s is %d x %d and not square", raw->global ? "M" : "W", raw->w.rows,
                            raw->w.columns);
    if (!raw->global && raw->w.rows != rows)
        return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, "W",
                            "W has %d rows, %d contacts need %lld", raw->w.rows, raw->contacts,
                            (long long)rows);
    if (raw->global && (raw->h.rows != raw->w.rows || raw->h.columns != rows))
        return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, "H",
                            "H is %d x %d, M with %d rows and %d contacts need %d x %lld",
                            raw->h.rows, raw->h.columns, raw->w.rows, raw->contacts, raw->w.rows,
                            (long long)rows);
    tb_status status = check_matrix(&raw->w, raw->global ? "M" : "W", path, error);
    if (status == TB_OK && raw->global) status = check_matrix(&raw->h, "H", path, error);
    if (status == TB_OK && raw->global)
        status = check_finite(raw->f, raw->w.rows, "f", path, error);
    if (status == TB_OK) status = check_finite(raw->q, rows, "q", path, error);
    if (status == TB_OK) status = check_finite(raw->mu, raw->contacts, "mu", path, error);
    for (int32_t i = 0; status == TB_OK && i < raw->contacts; i++)
        if (raw->mu[i] < 0)
            status = tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, "mu",
                                  "mu of contact %d is %g and negative", i, raw->mu[i]);
    return status;
}

static int by_row_and_column(const void *a, const void *b)
{
    const tb_entry *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

/* entries to compressed rows, sums where several have one place */
static tb_status compress(tb_problem_file *file, const tb_raw_matrix *w, tb_error *error)
{
    const size_t count = (size_t)w->count;
    const tb_status room = tb_problem_check_memory(count * (sizeof(tb_entry) + 12), error);
    if (room != TB_OK) return room;
    tb_entry *sorted = malloc(count * sizeof *sorted + 1);
    file->row_start = calloc((size_t)w->rows + 1, sizeof *file->row_start);
    file->column = malloc(count * sizeof *file->column + 1);
    file->value = malloc(count * sizeof *file->value + 1);
    if (!sorted || !file->row_start || !file->column || !file->value) {
        free(sorted);
        return tb_fail_memory(error, count * sizeof *sorted, "W");
    }
    if (count > 0) memcpy(sorted, w->entries, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_row_and_column);
    int32_t kept = 0;
    for (size_t k = 0; k < count; k++) {
        const tb_entry e = sorted[k];
        if (k > 0 && sorted[k - 1].row == e.row && sorted[k - 1].column == e.column) {
            file->value[kept - 1] += e.value;
            continue;
        }
        file->column[kept] = e.column;
        file->value[kept] = e.value;
        kept++;
        file->row_start[e.row + 1] = kept;
    }
    for (int32_t i = 0; i < w->rows; i++)
        if (file->row_start[i + 1] < file->row_start[i])
            file->row_start[i + 1] = file->row_start[i];
    free(sorted);
    return TB_OK;
}

/* W_ij by a binary search in row i */
static double entry_at(const tb_matrix *m, int32_t i, int32_t j)
{
    if (m->dense) return m->dense[(int64_t)i * m->columns + j];
    int32_t low = m->row_start[i], high = m->row_start[i + 1];
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (m->column[middle] < j)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->row_start[i + 1] && m->column[low] == j ? m->value[low] : 0;
}

static double asymmetry(const tb_matrix *m)
{
    double difference = 0, size = 0;
    for (int32_t i = 0; i < m->rows; i++) {
        const int32_t from = m->dense ? 0 : m->row_start[i];
        const int32_t to = m->dense ? m->columns : m->row_start[i + 1];
        for (int32_t k = from; k < to; k++) {
            const int32_t j = m->dense ? k : m->column[k];
            const double a = m->dense ? m->dense[(int64_t)i * m->columns + k] : m->value[k];
            const double d = a - entry_at(m, j, i);
            /* an entry without a partner contributes both halves of the difference */
            const bool partner = m->dense || entry_at(m, j, i) != 0;
            difference += partner ? d * d : 2 * d * d;
            size += a * a;
        }
    }
    return size > 0 ? sqrt(difference / size) : 0;
}

tb_status tb_problem_file_make(const tb_raw_problem *raw, const char *path, tb_problem_file **made,
                               tb_error *error)
{
    (void)path;
    const int32_t rows = raw->dimension * raw->contacts;
    tb_problem_file *file = calloc(1, sizeof *file);
    if (!file) return tb_fail_memory(error, sizeof *file, "problem");
    file->dimension = raw->dimension;
    file->contacts = raw->contacts;
    file->global = raw->global;

    tb_status status = TB_OK;
    const size_t row_bytes = (size_t)rows * sizeof(double) + 1;
    file->c = malloc(row_bytes);
    file->mu = malloc((size_t)raw->contacts * sizeof(double) + 1);
    file->blocks = calloc((size_t)raw->contacts + 1, sizeof *file->blocks);
    if (!file->c || !file->mu || !file->blocks) {
        status = tb_fail_memory(error, row_bytes, "problem");
        goto done;
    }
    if (rows > 0) memcpy(file->c, raw->q, (size_t)rows * sizeof(double));
    if (raw->contacts > 0) memcpy(file->mu, raw->mu, (size_t)raw->contacts * sizeof(double));
    for (int32_t b = 0; b < raw->contacts; b++)
        file->blocks[b] = (tb_block){
            .law = raw->dimension == 3 ? TB_LAW_COULOMB : TB_LAW_PLANAR,
            .row = raw->dimension * b,
            .rows = raw->dimension,
            .mu = raw->mu[b],
        };

    file->matrix = (tb_matrix){.rows = rows, .columns = rows};
    if (raw->w.dense) {
        const size_t bytes = (size_t)rows * (size_t)rows * sizeof(double);
        status = tb_problem_check_memory(bytes, error);
        if (status != TB_OK) goto done;
        file->dense = malloc(bytes + 1);
        if (!file->dense) {
            status = tb_fail_memory(error, bytes, "W");
            goto done;
        }
        if (bytes > 0) memcpy(file->dense, raw->w.dense, bytes);
        file->matrix.dense = file->dense;
    } else {
        status = compress(file, &raw->w, error);
        if (status != TB_OK) goto done;
        file->matrix.row_start = file->row_start;
        file->matrix.column = file->column;
        file->matrix.value = file->value;
    }
    file->asymmetry = asymmetry(&file->matrix);
    file->problem = (tb_problem){
        .number_of_blocks = raw->contacts,
        .number_of_rows = rows,
        .blocks = file->blocks,
        .matrix = &file->matrix,
        .c = file->c,
    };
done:
    if (status != TB_OK) {
        tb_problem_destroy(file);
        file = NULL;
    }
    *made = file;
    return status;
}

void tb_problem_destroy(tb_problem_file *file)
{
    if (!file) return;
    free(file->blocks);
    free(file->dense);
    free(file->value);
    free(file->c);
    free(file->mu);
    free(file->row_start);
    free(file->column);
    free(file);
}

static bool is_hdf5(const tb_bytes *bytes)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    return bytes->size >= 8 && memcmp(bytes->base, signature, 8) == 0;
}

/* A problem from a file's content; `on_disk`: HDF5 may read it again from there. */
static tb_status parse(const tb_bytes *bytes, const char *path, bool on_disk,
                       tb_problem_file **file, tb_error *error)
{
    tb_raw_problem raw = {0};
    tb_status status =
        is_hdf5(bytes)
            ? tb_problem_fclib_read(path, on_disk ? NULL : bytes, &raw, error)
            : tb_problem_text_read(path, (const char *)bytes->base, bytes->size, &raw, error);
    if (status == TB_OK) status = tb_raw_problem_check(&raw, path, error);
    if (status == TB_OK && raw.global) status = tb_raw_problem_reduce(&raw, path, error);
    if (status == TB_OK) status = tb_problem_file_make(&raw, path, file, error);
    tb_raw_problem_free(&raw);
    return status;
}

tb_status tb_problem_load(const char *path, tb_problem_file **file, tb_error *error)
{
    if (file) *file = NULL;
    if (!path || !file)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, path ? "file" : "path", "%s is missing",
                             path ? "the place for the problem" : "the path");
    tb_bytes bytes = {0};
    tb_status status = tb_file_read(path, TB_PROBLEM_FILE_BYTES, &bytes, error);
    if (status == TB_OK) status = parse(&bytes, path, is_hdf5(&bytes), file, error);
    tb_bytes_free(&bytes);
    return status;
}

tb_status tb_problem_load_memory(const void *bytes, size_t size, const char *name,
                                 tb_problem_file **file, tb_error *error)
{
    if (file) *file = NULL;
    if ((!bytes && size > 0) || !file)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, file ? "bytes" : "file", "%s is missing",
                             file ? "the file's content" : "the place for the problem");
    if (!name) name = "(memory)";
    if (size > TB_PROBLEM_FILE_BYTES)
        return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, name, 0, NULL,
                            "%zu bytes are more than the %zu that are allowed", size,
                            (size_t)TB_PROBLEM_FILE_BYTES);
    /* the reader of texts counts on a zero behind the last byte */
    tb_bytes copy = {0};
    tb_status status = tb_bytes_append(&copy, bytes, size);
    if (status == TB_OK)
        status = parse(&copy, name, false, file, error);
    else
        tb_fail_memory(error, size, name);
    tb_bytes_free(&copy);
    return status;
}

tb_status tb_problem_save(const tb_problem_file *file, const char *path, tb_error *error)
{
    if (!file || !path)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, file ? "path" : "file", "%s is missing",
                             file ? "the path" : "the problem");
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".dat") == 0) return tb_problem_text_write(file, path, error);
    if (dot && (strcmp(dot, ".hdf5") == 0 || strcmp(dot, ".h5") == 0))
        return tb_problem_fclib_write(file, path, error);
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "path",
                         "problems are written as .dat or .hdf5, not as '%s'", path);
}

tb_problem_info tb_problem_describe(const tb_problem_file *file)
{
    if (!file) return (tb_problem_info){0};
    return (tb_problem_info){
        .dimension = file->dimension,
        .contacts = file->contacts,
        .rows = file->dimension * file->contacts,
        .global = file->global,
        .dense = file->dense != NULL,
        .asymmetry = file->asymmetry,
    };
}

const tb_problem *tb_problem_file_local(const tb_problem_file *file)
{
    return &file->problem;
}
