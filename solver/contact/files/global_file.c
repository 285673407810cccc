/* From the global to the local form: M v = f + H r, u = H' v + b becomes u = W r + q with
 *
 *     W = H' inverse(M) H,    q = H' inverse(M) f + b.
 *
 * M couples few dofs (a body, a tree), so it is split into its connected parts and each is
 * factorized dense: by Cholesky where it is symmetric, so that W comes out symmetric to the last
 * bit, else by LU with pivots. Only columns of H that touch a part contribute,
 * and W stays sparse. */
#include "contact/files/problem_file.h"

#include <stdlib.h>
#include <string.h>

/* a part larger than this would take minutes and gigabytes as a dense matrix */
enum { LARGEST_PART = 6000 };

/* union-find with path halving */
static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join(int32_t *parent, int32_t a, int32_t b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static tb_status dense_to_entries(tb_raw_matrix *m, tb_error *error)
{
    if (!m->dense) return TB_OK;
    for (int32_t i = 0; i < m->rows; i++)
        for (int32_t j = 0; j < m->columns; j++) {
            const double value = m->dense[(int64_t)i * m->columns + j];
            if (value == 0) continue;
            const tb_status status = tb_raw_matrix_add(m, i, j, value, error);
            if (status != TB_OK) return status;
        }
    free(m->dense);
    m->dense = NULL;
    return TB_OK;
}

/* ---- dense factorizations, n x n row-major, in place ---- */

static bool lu(double *a, int32_t n, int32_t *pivot)
{
    for (int32_t k = 0; k < n; k++) {
        if (!tb_budget_holds()) return false;
        int32_t best = k;
        for (int32_t i = k + 1; i < n; i++)
            if (fabs(a[(int64_t)i * n + k]) > fabs(a[(int64_t)best * n + k])) best = i;
        pivot[k] = best;
        double *top = a + (int64_t)k * n;
        if (best != k)
            for (int32_t j = 0; j < n; j++) {
                const double swap = top[j];
                top[j] = a[(int64_t)best * n + j];
                a[(int64_t)best * n + j] = swap;
            }
        if (top[k] == 0) return false;
        for (int32_t i = k + 1; i < n; i++) {
            double *row = a + (int64_t)i * n;
            const double factor = row[k] / top[k];
            row[k] = factor;
            if (factor != 0)
                for (int32_t j = k + 1; j < n; j++) row[j] -= factor * top[j];
        }
    }
    return true;
}

static void lu_solve(const double *a, int32_t n, const int32_t *pivot, double *x)
{
    for (int32_t k = 0; k < n; k++) {
        const double swap = x[k];
        x[k] = x[pivot[k]];
        x[pivot[k]] = swap;
    }
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < i; k++) x[i] -= a[(int64_t)i * n + k] * x[k];
    for (int32_t i = n - 1; i >= 0; i--) {
        for (int32_t k = i + 1; k < n; k++) x[i] -= a[(int64_t)i * n + k] * x[k];
        x[i] /= a[(int64_t)i * n + i];
    }
}

/* ---- parts ---- */

typedef struct parts {
    int32_t count;
    int32_t *part;              /* of each dof */
    int32_t *place;             /* of each dof within its part */
    int32_t *size;              /* of each part */
    int64_t *m_start, *h_start; /* part by part, into the sorted entries */
    tb_entry *m, *h;            /* entries sorted by part; h by column within a part */
} parts;

static void parts_free(parts *p)
{
    free(p->part);
    free(p->place);
    free(p->size);
    free(p->m_start);
    free(p->h_start);
    free(p->m);
    free(p->h);
}

static int by_column(const void *a, const void *b)
{
    const tb_entry *x = a, *y = b;
    if (x->column != y->column) return x->column < y->column ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* entries grouped by the part of their row; NULL where memory is refused */
static tb_entry *group(const tb_raw_matrix *m, const int32_t *part, int32_t count, int64_t *start)
{
    tb_entry *sorted = malloc((size_t)m->count * sizeof *sorted + 1);
    if (!sorted) return NULL;
    for (int64_t k = 0; k < m->count; k++) start[part[m->entries[k].row] + 2]++;
    for (int32_t i = 0; i < count; i++) start[i + 2] += start[i + 1];
    for (int64_t k = 0; k < m->count; k++)
        sorted[start[part[m->entries[k].row] + 1]++] = m->entries[k];
    return sorted;
}

static tb_status split(const tb_raw_problem *raw, parts *p, tb_error *error)
{
    const int32_t n = raw->w.rows;
    p->part = calloc((size_t)n + 1, sizeof *p->part);
    p->place = calloc((size_t)n + 1, sizeof *p->place);
    p->size = calloc((size_t)n + 1, sizeof *p->size);
    p->m_start = calloc((size_t)n + 2, sizeof *p->m_start);
    p->h_start = calloc((size_t)n + 2, sizeof *p->h_start);
    if (!p->part || !p->place || !p->size || !p->m_start || !p->h_start)
        return tb_fail_memory(error, (size_t)n * 32, "parts of M");

    /* the smallest dof of a part is its root: parts come in the order of their dofs */
    int32_t *parent = p->place;
    for (int32_t i = 0; i < n; i++) parent[i] = i;
    for (int64_t k = 0; k < raw->w.count; k++)
        join(parent, raw->w.entries[k].row, raw->w.entries[k].column);
    for (int32_t i = 0; i < n; i++) {
        const int32_t root = root_of(parent, i);
        p->part[i] = root == i ? p->count++ : p->part[root];
    }
    for (int32_t i = 0; i < n; i++) p->place[i] = p->size[p->part[i]]++;

    p->m = group(&raw->w, p->part, p->count, p->m_start);
    p->h = group(&raw->h, p->part, p->count, p->h_start);
    if (!p->m || !p->h) return tb_fail_memory(error, (size_t)raw->h.count * 16, "parts of H");
    for (int32_t i = 0; i < p->count; i++) {
        const int64_t from = p->h_start[i], to = p->h_start[i + 1];
        qsort(p->h + from, (size_t)(to - from), sizeof *p->h, by_column);
    }
    return TB_OK;
}

/* y <- inverse(a) x for `count` columns x of n numbers, one after another; or, where a is symmetric
 * and positive definite, half of it, y = inverse(L) x. W = left' y either way. False where a is
 * singular. */
static bool solve_columns(const double *a, int32_t n, const double *x, int32_t count,
                          double *factor, int32_t *pivot, double *y, const double **left)
{
    const size_t square = (size_t)n * (size_t)n * sizeof *a;
    bool symmetric = true;
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < i; j++)
            symmetric = symmetric && a[(int64_t)i * n + j] == a[(int64_t)j * n + i];
    memcpy(factor, a, square);
    memcpy(y, x, (size_t)n * (size_t)count * sizeof *y);
    if (symmetric && tb_cholesky(factor, n, n) == n) {
        /* both sides by half: W = (inverse(L) H)' (inverse(L) H) */
        for (int32_t j = 0; j < count; j++) tb_cholesky_forward(factor, n, n, y + (int64_t)j * n);
        *left = y;
        return true;
    }
    memcpy(factor, a, square);
    if (!lu(factor, n, pivot)) return false;
    for (int32_t j = 0; j < count; j++) lu_solve(factor, n, pivot, y + (int64_t)j * n);
    *left = x;
    return true;
}

/* adds left' y to W, and its last column, that of f, to q; name: columns of W */
static tb_status add_share(const double *left, const double *y, int32_t n, int32_t columns,
                           const int32_t *name, tb_raw_matrix *w, double *q, tb_error *error)
{
    for (int32_t i = 0; i < columns; i++) {
        for (int32_t j = 0; j <= columns; j++) {
            double sum = 0;
            for (int32_t k = 0; k < n; k++) sum += left[(int64_t)i * n + k] * y[(int64_t)j * n + k];
            if (j == columns) {
                q[name[i]] += sum;
                continue;
            }
            const tb_status status = tb_raw_matrix_add(w, name[i], name[j], sum, error);
            if (status != TB_OK) return status;
        }
    }
    return TB_OK;
}

/* one part's share of W and q */
static tb_status reduce_part(const tb_raw_problem *raw, const parts *p, int32_t part,
                             const double *f, tb_raw_matrix *w, double *q, const char *path,
                             tb_error *error)
{
    const int32_t n = p->size[part];
    const tb_entry *h = p->h + p->h_start[part];
    const int64_t count = p->h_start[part + 1] - p->h_start[part];
    int32_t columns = 0;
    for (int64_t k = 0; k < count; k++) columns += k == 0 || h[k].column != h[k - 1].column;
    if (n > LARGEST_PART)
        return tb_fail_file(error, TB_UNSUPPORTED, path, 0, "M",
                            "M couples %d dofs in one part; %d are the most", n, LARGEST_PART);

    const size_t square = (size_t)n * (size_t)n, side = (size_t)n * ((size_t)columns + 1);
    tb_status status = tb_budget_check(error);
    if (status == TB_OK)
        status = tb_problem_check_memory((square + side) * 2 * sizeof(double), error);
    if (status != TB_OK) return status;
    double *a = calloc(square + 1, sizeof *a), *factor = malloc((square + 1) * sizeof *factor);
    double *x = calloc(side + 1, sizeof *x), *y = malloc((side + 1) * sizeof *y);
    int32_t *name = malloc(((size_t)columns + 1) * sizeof *name);
    int32_t *pivot = malloc(((size_t)n + 1) * sizeof *pivot);
    if (!a || !factor || !x || !y || !name || !pivot) {
        status = tb_fail_memory(error, (square + side) * 2 * sizeof *a, "a part of M");
        goto done;
    }

    /* the part of M, the columns of H that touch it, and f as one more column */
    for (int64_t k = p->m_start[part]; k < p->m_start[part + 1]; k++)
        a[(int64_t)p->place[p->m[k].row] * n + p->place[p->m[k].column]] += p->m[k].value;
    int32_t column = -1;
    for (int64_t k = 0; k < count; k++) {
        if (k == 0 || h[k].column != h[k - 1].column) name[++column] = h[k].column;
        x[(int64_t)column * n + p->place[h[k].row]] += h[k].value;
    }
    for (int32_t i = 0; i < raw->w.rows; i++)
        if (p->part[i] == part) x[(int64_t)columns * n + p->place[i]] = f[i];

    const double *left = NULL;
    if (!solve_columns(a, n, x, columns + 1, factor, pivot, y, &left)) {
        status = tb_budget_check(error);
        if (status != TB_OK) goto done;
        status = tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, "M", "M is singular");
        goto done;
    }
    status = add_share(left, y, n, columns, name, w, q, error);
done:
    free(a);
    free(factor);
    free(x);
    free(y);
    free(name);
    free(pivot);
    tb_budget_give_back((square + side) * 2 * sizeof(double));
    return status;
}

tb_status tb_raw_problem_reduce(tb_raw_problem *raw, const char *path, tb_error *error)
{
    parts p = {0};
    tb_raw_matrix w = {.rows = raw->h.columns, .columns = raw->h.columns};
    tb_status status = dense_to_entries(&raw->w, error);
    if (status == TB_OK) status = dense_to_entries(&raw->h, error);
    if (status == TB_OK) status = split(raw, &p, error);
    for (int32_t i = 0; status == TB_OK && i < p.count; i++)
        status = reduce_part(raw, &p, i, raw->f, &w, raw->q, path, error);
    parts_free(&p);
    if (status != TB_OK) {
        tb_raw_matrix_free(&w);
        return status;
    }
    tb_raw_matrix_free(&raw->w);
    raw->w = w;
    return TB_OK;
}
