/* Contact problems in the FCLIB layout of HDF5 (Acary, Brémond, Huber: FCLIB, RT-0444).
 *
 *     /fclib_local:   W, vectors q, mu, spacedim              u = W r + q
 *     /fclib_global:  M, H, vectors f, w, mu, spacedim        M v = f + H r,  u = H' v + w
 *
 * A matrix is a group of m, n, nz, nzmax, p, i, x as CSparse has it: nz = -1 compressed columns, -2
 * compressed rows, else nz triplets. Problems with bilateral rows beside the contacts (V, R, s; G,
 * b) are refused.
 *
 * HDF5's error printing is switched off; errors become statuses. Debian's serial build of it takes
 * one thread at a time, so one lock guards all calls. */
#include "contact/files/problem_file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contact/files/hdf5_once.h"

static pthread_mutex_t hdf5 = PTHREAD_MUTEX_INITIALIZER;

static tb_status bad(const char *path, const char *what, const char *why, tb_error *error)
{
    return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, what, "%s: %s", what, why);
}

static bool exists(hid_t where, const char *name)
{
    return H5Lexists(where, name, H5P_DEFAULT) > 0;
}

/* All numbers of a dataset as `type`, which has `size` bytes; at least one. Heap. */
static tb_status read_set(hid_t group, const char *name, hid_t type, size_t size, const char *path,
                          void **numbers, int64_t *count, tb_error *error)
{
    tb_status status = TB_OK;
    void *base = NULL;
    const hid_t set = exists(group, name) ? H5Dopen2(group, name, H5P_DEFAULT) : -1;
    const hid_t space = set >= 0 ? H5Dget_space(set) : -1;
    const hssize_t n = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    if (n < 0) {
        status = bad(path, name, "there is no such dataset", error);
    } else if (n > TB_PROBLEM_FILE_ENTRIES) {
        status = tb_fail_file(error, TB_RESOURCE_EXHAUSTED, path, 0, name,
                              "%s has %lld numbers; %d are the most", name, (long long)n,
                              TB_PROBLEM_FILE_ENTRIES);
    } else {
        status = tb_problem_check_memory((size_t)n * size, error);
    }
    if (status == TB_OK) {
        base = malloc((size_t)n * size + 1);
        if (!base)
            status = tb_fail_memory(error, (size_t)n * size, name);
        else if (n > 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, base) < 0)
            status = bad(path, name, "it cannot be read as numbers", error);
    }
    if (space >= 0) H5Sclose(space);
    if (set >= 0) H5Dclose(set);
    if (status != TB_OK) {
        free(base);
        return status;
    }
    *numbers = base;
    *count = (int64_t)n;
    return TB_OK;
}

static tb_status read_doubles(hid_t group, const char *name, int64_t expected, const char *path,
                              double **x, tb_error *error)
{
    void *base = NULL;
    int64_t count = 0;
    const tb_status status =
        read_set(group, name, H5T_NATIVE_DOUBLE, sizeof(double), path, &base, &count, error);
    if (status != TB_OK) return status;
    if (expected >= 0 && count != expected) {
        free(base);
        return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, name,
                            "%s has %lld numbers instead of %lld", name, (long long)count,
                            (long long)expected);
    }
    *x = base;
    return TB_OK;
}

static tb_status read_whole(hid_t group, const char *name, const char *path, int32_t *number,
                            tb_error *error)
{
    void *base = NULL;
    int64_t count = 0;
    tb_status status =
        read_set(group, name, H5T_NATIVE_INT32, sizeof(int32_t), path, &base, &count, error);
    if (status == TB_OK && count < 1) status = bad(path, name, "it is empty", error);
    if (status == TB_OK) *number = ((const int32_t *)base)[0];
    free(base);
    return status;
}

/* compressed columns (or rows): pointers into the entries, one more than there are columns */
static tb_status add_compressed(tb_raw_matrix *m, bool by_columns, const int32_t *p,
                                int64_t pointers, const int32_t *i, const double *x,
                                int64_t entries, const char *name, const char *path,
                                tb_error *error)
{
    const int32_t lines = by_columns ? m->columns : m->rows;
    if (pointers < (int64_t)lines + 1 || p[0] != 0)
        return bad(path, name, "its pointers do not fit its size", error);
    for (int32_t j = 0; j < lines; j++) {
        if (p[j + 1] < p[j] || p[j + 1] > entries)
            return bad(path, name, "its pointers do not grow", error);
        for (int32_t k = p[j]; k < p[j + 1]; k++) {
            const int32_t row = by_columns ? i[k] : j, column = by_columns ? j : i[k];
            const tb_status status = tb_raw_matrix_add(m, row, column, x[k], error);
            if (status != TB_OK) return status;
        }
    }
    return TB_OK;
}

static tb_status read_matrix(hid_t where, const char *name, const char *path, tb_raw_matrix *m,
                             tb_error *error)
{
    int32_t nz = 0, *p = NULL, *i = NULL;
    double *x = NULL;
    int64_t pointers = 0, indices = 0, entries = 0;
    void *base = NULL;
    const hid_t group = exists(where, name) ? H5Gopen2(where, name, H5P_DEFAULT) : -1;
    if (group < 0) return bad(path, name, "there is no such matrix", error);

    tb_status status = read_whole(group, "m", path, &m->rows, error);
    if (status == TB_OK) status = read_whole(group, "n", path, &m->columns, error);
    if (status == TB_OK) status = read_whole(group, "nz", path, &nz, error);
    if (status == TB_OK)
        status = read_set(group, "p", H5T_NATIVE_INT32, sizeof *p, path, &base, &pointers, error);
    if (status == TB_OK) {
        p = base;
        status = read_set(group, "i", H5T_NATIVE_INT32, sizeof *i, path, &base, &indices, error);
    }
    if (status == TB_OK) {
        i = base;
        status = read_set(group, "x", H5T_NATIVE_DOUBLE, sizeof *x, path, &base, &entries, error);
    }
    if (status != TB_OK) goto done;
    x = base;
    if (m->rows < 0 || m->columns < 0 || m->rows > TB_PROBLEM_FILE_ROWS ||
        m->columns > TB_PROBLEM_FILE_ROWS) {
        status = bad(path, name, "its size is out of range", error);
        goto done;
    }
    if (indices < entries) entries = indices;
    m->kind = 1;
    if (nz >= 0) {
        if (nz > entries || nz > pointers) {
            status = bad(path, name, "it has fewer entries than it says", error);
            goto done;
        }
        /* a triplet: row in i, column in p */
        for (int32_t k = 0; status == TB_OK && k < nz; k++)
            status = tb_raw_matrix_add(m, i[k], p[k], x[k], error);
    } else if (nz == -1 || nz == -2) {
        status = add_compressed(m, nz == -1, p, pointers, i, x, entries, name, path, error);
    } else {
        status = bad(path, name, "its storage (nz) is not known", error);
    }
done:
    free(p);
    free(i);
    free(x);
    H5Gclose(group);
    return status;
}

static tb_status read_problem(hid_t file, const char *path, tb_raw_problem *raw, tb_error *error)
{
    raw->global = exists(file, "fclib_global");
    const char *form = raw->global ? "fclib_global" : "fclib_local";
    const hid_t group = exists(file, form) ? H5Gopen2(file, form, H5P_DEFAULT) : -1;
    if (group < 0)
        return bad(path, "fclib_local", "the file has neither this group nor fclib_global", error);
    hid_t vectors = -1;
    double *mu = NULL;
    int64_t contacts = 0;
    void *base = NULL;

    tb_status status = TB_OK;
    const char *const unknown = raw->global ? "G" : "V";
    if (exists(group, unknown)) {
        status = tb_fail_file(error, TB_UNSUPPORTED, path, 0, unknown,
                              "%s: bilateral rows beside the contacts are not supported", unknown);
        goto done;
    }
    status = read_whole(group, "spacedim", path, &raw->dimension, error);
    if (status == TB_OK) status = read_matrix(group, raw->global ? "M" : "W", path, &raw->w, error);
    if (status == TB_OK && raw->global) status = read_matrix(group, "H", path, &raw->h, error);
    if (status != TB_OK) goto done;
    vectors = exists(group, "vectors") ? H5Gopen2(group, "vectors", H5P_DEFAULT) : -1;
    if (vectors < 0) {
        status = bad(path, "vectors", "there is no such group", error);
        goto done;
    }
    status = read_set(vectors, "mu", H5T_NATIVE_DOUBLE, sizeof *mu, path, &base, &contacts, error);
    if (status != TB_OK) goto done;
    mu = base;
    if (contacts > TB_PROBLEM_FILE_ROWS / 3 || raw->dimension < 2 || raw->dimension > 3) {
        status = bad(path, "mu", "the number of contacts or spacedim is out of range", error);
        goto done;
    }
    raw->contacts = (int32_t)contacts;
    raw->mu = mu;
    mu = NULL;
    const int64_t rows = contacts * raw->dimension;
    status = read_doubles(vectors, raw->global ? "w" : "q", rows, path, &raw->q, error);
    if (status == TB_OK && raw->global)
        status = read_doubles(vectors, "f", raw->w.rows, path, &raw->f, error);
done:
    free(mu);
    if (vectors >= 0) H5Gclose(vectors);
    H5Gclose(group);
    return status;
}

/* HDF5's own error reports, put aside for as long as we work */
typedef struct quiet {
    H5E_auto2_t function;
    void *context;
} quiet;

static quiet be_quiet(void)
{
    quiet q = {0};
    H5Eget_auto2(H5E_DEFAULT, &q.function, &q.context);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return q;
}

static void speak_again(quiet q)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, q.function, q.context);
}

/* A file in memory: HDF5 copies it and touches no disk. */
static hid_t open_image(const char *path, const tb_bytes *bytes)
{
    enum { GROWTH = 1 << 16 };
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = -1;
    if (access >= 0 && H5Pset_fapl_core(access, GROWTH, false) >= 0 &&
        H5Pset_file_image(access, bytes->base, bytes->size) >= 0)
        file = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (access >= 0) H5Pclose(access);
    return file;
}

static tb_status read_file(const char *path, const tb_bytes *bytes, tb_raw_problem *raw,
                           tb_error *error)
{
    const quiet q = be_quiet();
    tb_status status = TB_OK;
    const hid_t file =
        bytes != NULL ? open_image(path, bytes) : H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) {
        status = tb_fail_file(error, TB_DATA_LOSS, path, 0, NULL, "HDF5 cannot open the file");
    } else {
        status = read_problem(file, path, raw, error);
        H5Fclose(file);
    }
    speak_again(q);
    return status;
}

tb_status tb_problem_fclib_read(const char *path, const tb_bytes *bytes, tb_raw_problem *raw,
                                tb_error *error)
{
    pthread_mutex_lock(&hdf5);
    tb_status status = tb_hdf5_load(error);
    if (status == TB_OK) status = read_file(path, bytes, raw, error);
    pthread_mutex_unlock(&hdf5);
    return status;
}

/* ---- writing ---- */

static bool write_set(hid_t group, const char *name, hid_t type, int64_t count, const void *numbers)
{
    const hsize_t size = (hsize_t)count;
    const hid_t space = H5Screate_simple(1, &size, NULL);
    const hid_t set =
        space >= 0 ? H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                   : -1;
    const bool ok = set >= 0 && (count == 0 ||
                                 H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    if (set >= 0) H5Dclose(set);
    if (space >= 0) H5Sclose(space);
    return ok;
}

static bool write_whole(hid_t group, const char *name, int32_t number)
{
    return write_set(group, name, H5T_NATIVE_INT32, 1, &number);
}

/* compressed rows (nz = -2), as the problem has them; a dense W with all its numbers */
static bool write_matrix(hid_t where, const tb_matrix *m)
{
    const int64_t entries = m->dense      ? (int64_t)m->rows * m->columns
                            : m->rows > 0 ? m->row_start[m->rows]
                                          : 0;
    if (entries > TB_PROBLEM_FILE_ENTRIES) return false;
    const hid_t group = H5Gcreate2(where, "W", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int32_t *start = malloc(((size_t)m->rows + 1) * sizeof *start);
    int32_t *column = malloc((size_t)entries * sizeof *column + 1);
    bool ok = group >= 0 && start && column;
    if (ok) {
        for (int32_t i = 0; i <= m->rows; i++)
            start[i] = m->dense ? i * m->columns : m->row_start[i];
        for (int64_t k = 0; k < entries; k++)
            column[k] = m->dense ? (int32_t)(k % m->columns) : m->column[k];
        ok = write_whole(group, "m", m->rows) && write_whole(group, "n", m->columns) &&
             write_whole(group, "nz", -2) && write_whole(group, "nzmax", (int32_t)entries) &&
             write_set(group, "p", H5T_NATIVE_INT32, (int64_t)m->rows + 1, start) &&
             write_set(group, "i", H5T_NATIVE_INT32, entries, column) &&
             write_set(group, "x", H5T_NATIVE_DOUBLE, entries, m->dense ? m->dense : m->value);
    }
    free(start);
    free(column);
    if (group >= 0) H5Gclose(group);
    return ok;
}

static bool write_text(hid_t group, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(text) + 1);
    const hid_t set = H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const bool ok = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0;
    if (set >= 0) H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
    return ok;
}

static tb_status write_file(const tb_problem_file *file, const char *path, tb_error *error)
{
    const quiet q = be_quiet();
    const hid_t out = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t local =
        out >= 0 ? H5Gcreate2(out, "fclib_local", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) : -1;
    const hid_t vectors =
        local >= 0 ? H5Gcreate2(local, "vectors", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) : -1;
    const hid_t info =
        local >= 0 ? H5Gcreate2(local, "info", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) : -1;
    const int64_t rows = (int64_t)file->dimension * file->contacts;
    bool ok = vectors >= 0 && info >= 0 && write_whole(local, "spacedim", file->dimension) &&
              write_matrix(local, &file->matrix) &&
              write_set(vectors, "q", H5T_NATIVE_DOUBLE, rows, file->c) &&
              write_set(vectors, "mu", H5T_NATIVE_DOUBLE, file->contacts, file->mu) &&
              write_text(info, "title", "frictional contact problem") &&
              write_text(info, "description", "written by libtribo " TB_VERSION) &&
              write_text(info, "math_info", "u = W r + q, exact Coulomb law");
    if (info >= 0) H5Gclose(info);
    if (vectors >= 0) H5Gclose(vectors);
    if (local >= 0) H5Gclose(local);
    if (out >= 0 && H5Fclose(out) < 0) ok = false;
    speak_again(q);
    if (!ok) return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, NULL, "cannot be written");
    return TB_OK;
}

tb_status tb_problem_fclib_write(const tb_problem_file *file, const char *path, tb_error *error)
{
    pthread_mutex_lock(&hdf5);
    tb_status status = tb_hdf5_load(error);
    if (status == TB_OK) status = write_file(file, path, error);
    pthread_mutex_unlock(&hdf5);
    return status;
}
