/* Systems of the stored iterations: random ones, and those of contact problems. */
#include "solve/stored/stored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "contact/prox.h"

tb_status tb_stored_check_memory(double bytes, const char *what, tb_error *error)
{
    const double there = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (bytes <= there) return TB_OK;
    return tb_fail(error, TB_RESOURCE_EXHAUSTED, "%s needs %.0f bytes, and %.0f are free", what,
                   bytes, there);
}

void tb_prox_system_destroy(tb_prox_system *system)
{
    if (!system) return;
    free(system->row_start);
    free(system->column);
    free(system->value);
    free(system->d);
    free(system->mu);
    free(system);
}

int32_t tb_prox_system_contacts(const tb_prox_system *system)
{
    return system->contacts;
}

int64_t tb_prox_system_blocks(const tb_prox_system *system)
{
    return system->blocks;
}

void tb_stored_start_sparse(const tb_prox_system *system, int32_t group, const double *lambda,
                            double *sum)
{
    memset(sum, 0, 3 * (size_t)system->contacts * sizeof *sum);
    for (int32_t r = 0; r < system->contacts; r++)
        for (int32_t b = system->row_start[r]; b < system->row_start[r + 1]; b++) {
            if (system->column[b] < r / group * group) continue;
            for (int e = 0; e < 9; e++)
                sum[3 * (int64_t)r + e / 3] += system->value[9 * (int64_t)b + e] *
                                               lambda[3 * (int64_t)system->column[b] + e % 3];
        }
}

static tb_status make_system(int32_t contacts, int64_t blocks, tb_prox_system **made,
                             tb_error *error)
{
    const size_t rows = (size_t)contacts, count = (size_t)blocks;
    const double bytes = (double)blocks * (9 * sizeof(double) + sizeof(int32_t));
    *made = NULL;
    if (blocks > INT32_MAX)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "contacts",
                             "T would have %lld blocks of 3 x 3, that is %.0f bytes",
                             (long long)blocks, bytes);
    tb_status status = tb_stored_check_memory(bytes, "T", error);
    if (status != TB_OK) return status;
    tb_prox_system *system = calloc(1, sizeof *system);
    if (!system) return tb_fail_memory(error, sizeof *system, "a system");
    system->contacts = contacts;
    system->blocks = blocks;
    system->row_start = calloc(rows + 1, sizeof *system->row_start);
    system->column = calloc(count, sizeof *system->column);
    system->value = calloc(9 * count, sizeof *system->value);
    system->d = calloc(3 * rows, sizeof *system->d);
    system->mu = calloc(rows, sizeof *system->mu);
    if (!system->row_start || !system->column || !system->value || !system->d || !system->mu) {
        tb_prox_system_destroy(system);
        return tb_fail_memory(error, (size_t)bytes, "T");
    }
    *made = system;
    return TB_OK;
}

/* G in `value` and c in `d` become T = I - R^-1 G and -R^-1 c (4.43: both tangents share one r). */
static tb_status scale_system(tb_prox_system *system, double alpha, tb_error *error)
{
    for (int32_t r = 0; r < system->contacts; r++) {
        const double *diagonal = NULL;
        for (int32_t b = system->row_start[r]; b < system->row_start[r + 1]; b++)
            if (system->column[b] == r) diagonal = system->value + 9 * (int64_t)b;
        if (!diagonal || !(diagonal[0] > 0) || !(fmax(diagonal[4], diagonal[8]) > 0))
            return tb_fail(error, TB_INVALID_ARGUMENT,
                           "contact %d has no positive diagonal in G: nothing it touches can move",
                           (int)r);
        const double tangent = alpha / fmax(diagonal[4], diagonal[8]);
        const double factor[3] = {alpha / diagonal[0], tangent, tangent};
        for (int32_t b = system->row_start[r]; b < system->row_start[r + 1]; b++)
            for (int e = 0; e < 9; e++) {
                double *t = &system->value[9 * (int64_t)b + e];
                *t = (system->column[b] == r && e % 4 == 0) - factor[e / 3] * *t;
            }
        for (int k = 0; k < 3; k++) system->d[3 * (int64_t)r + k] *= -factor[k];
    }
    return TB_OK;
}

static tb_status check_alpha(double alpha, tb_error *error)
{
    if (alpha > 0 && alpha <= 2) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "alpha",
                         "alpha must be above 0 and at most 2, not %g", alpha);
}

/* ---- random ---- */

/* A block of G: of the pair's own stream, so that (i, j) and (j, i) are each other's transpose. */
static void random_block(uint64_t seed, int32_t i, int32_t j, int32_t contacts, double *block)
{
    const int32_t low = i < j ? i : j, high = i < j ? j : i;
    tb_random random = tb_random_stream(seed, (uint64_t)low * (uint64_t)contacts + (uint64_t)high);
    for (int e = 0; e < 9; e++) {
        const double x = 2 * tb_random_uniform(&random) - 1;
        block[i <= j ? e : 3 * (e % 3) + e / 3] = x;
    }
    if (i != j) return;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < a; b++) block[3 * a + b] = block[3 * b + a];
    /* a row's entries off the diagonal add up to half of this on average */
    for (int a = 0; a < 3; a++) block[4 * a] = 3.0 * contacts;
}

tb_status tb_prox_system_random(int32_t contacts, uint64_t seed, double alpha,
                                tb_prox_system **made, tb_error *error)
{
    *made = NULL;
    if (contacts < 1)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "contacts",
                             "a system needs a contact, not %d", (int)contacts);
    tb_status status = check_alpha(alpha, error);
    if (status == TB_OK) status = make_system(contacts, (int64_t)contacts * contacts, made, error);
    if (status != TB_OK) return status;
    tb_prox_system *system = *made;
    tb_random random = tb_random_stream(seed, UINT64_MAX);
    for (int32_t r = 0; r < contacts; r++) {
        for (int32_t j = 0; j < contacts; j++) {
            const int64_t b = (int64_t)r * contacts + j;
            system->column[b] = j;
            random_block(seed, r, j, contacts, system->value + 9 * b);
        }
        system->row_start[r + 1] = (r + 1) * contacts;
        system->mu[r] = 0.5;
        system->d[3 * (int64_t)r] = 1.2 * tb_random_uniform(&random) - 1;
        for (int k = 1; k < 3; k++)
            system->d[3 * (int64_t)r + k] = 2 * tb_random_uniform(&random) - 1;
    }
    status = scale_system(system, alpha, error);
    if (status == TB_OK) return status;
    tb_prox_system_destroy(system);
    *made = NULL;
    return status;
}

/* ---- of a contact problem ---- */

static double entry_of(const tb_matrix *g, int32_t row, int32_t column)
{
    if (g->dense) return g->dense[(int64_t)row * g->columns + column];
    for (int32_t k = g->row_start[row]; k < g->row_start[row + 1]; k++)
        if (g->column[k] == column) return g->value[k];
    return 0;
}

/* Marks the contacts that row `r` of blocks couples, in `mark`; returns their number. */
static int32_t mark_columns(const tb_matrix *g, int32_t r, uint8_t *mark)
{
    int32_t count = 0;
    memset(mark, 0, (size_t)(g->columns / 3));
    for (int32_t row = 3 * r; row < 3 * r + 3; row++) {
        if (g->dense) {
            for (int32_t c = 0; c < g->columns; c++)
                if (g->dense[(int64_t)row * g->columns + c] != 0) mark[c / 3] = 1;
        } else {
            for (int32_t k = g->row_start[row]; k < g->row_start[row + 1]; k++)
                if (g->value[k] != 0) mark[g->column[k] / 3] = 1;
        }
    }
    for (int32_t c = 0; c < g->columns / 3; c++) count += mark[c];
    return count;
}

static tb_status check_laws(const tb_problem *problem, tb_error *error)
{
    if (!problem->matrix)
        return tb_fail(error, TB_UNSUPPORTED, "a stored T needs a problem that gives its G");
    for (int32_t b = 0; b < problem->number_of_blocks; b++)
        if (problem->blocks[b].law != TB_LAW_COULOMB || problem->blocks[b].row != 3 * b)
            return tb_fail_field(error, TB_UNSUPPORTED, "law",
                                 "block %d is no Coulomb contact of three rows but %s", (int)b,
                                 tb_law_name(problem->blocks[b].law));
    return TB_OK;
}

static tb_status fill_system(const tb_problem *problem, uint8_t *mark, tb_prox_system **made,
                             tb_error *error)
{
    const tb_matrix *g = problem->matrix;
    const int32_t contacts = problem->number_of_blocks;
    int64_t blocks = 0;
    for (int32_t r = 0; r < contacts; r++) blocks += mark_columns(g, r, mark);
    const tb_status status = make_system(contacts, blocks, made, error);
    if (status != TB_OK) return status;
    tb_prox_system *system = *made;
    int32_t at = 0;
    for (int32_t r = 0; r < contacts; r++) {
        mark_columns(g, r, mark);
        for (int32_t c = 0; c < contacts; c++) {
            if (!mark[c]) continue;
            system->column[at] = c;
            for (int e = 0; e < 9; e++)
                system->value[9 * (int64_t)at + e] = entry_of(g, 3 * r + e / 3, 3 * c + e % 3);
            at++;
        }
        system->row_start[r + 1] = at;
        system->mu[r] = problem->blocks[r].mu;
        for (int k = 0; k < 3; k++) system->d[3 * (int64_t)r + k] = problem->c[3 * (int64_t)r + k];
    }
    return TB_OK;
}

tb_status tb_prox_system_of_problem(const tb_problem_file *file, double alpha,
                                    tb_prox_system **made, tb_error *error)
{
    const tb_problem *problem = tb_problem_file_local(file);
    *made = NULL;
    tb_status status = check_alpha(alpha, error);
    if (status == TB_OK) status = check_laws(problem, error);
    if (status != TB_OK) return status;
    uint8_t *mark = malloc((size_t)problem->number_of_blocks + 1);
    if (!mark) return tb_fail_memory(error, (size_t)problem->number_of_blocks, "a system");
    status = fill_system(problem, mark, made, error);
    free(mark);
    if (status == TB_OK) status = scale_system(*made, alpha, error);
    if (status == TB_OK) return status;
    tb_prox_system_destroy(*made);
    *made = NULL;
    return status;
}
