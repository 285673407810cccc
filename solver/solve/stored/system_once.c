/* Systems of the stored iterations: random ones, and systems of contact problems. */
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

/* A problem whose rows are padded to three a contact. Contacts in the plane and frictionless
 * contacts have fewer; a padding row couples with no other and keeps an impulse of zero. */
typedef struct stored_source {
    const tb_problem *problem;
    tb_matrix matrix; /* G, where the problem has it as rows of Y: dense, of this struct */
    const tb_matrix *g;
    double *dense;
    int32_t *place; /* rows: 3 times the contact, plus normal, tangent 1 or 2 */
    uint8_t *mark;  /* contacts */
} stored_source;

static double entry_of(const tb_matrix *g, int32_t row, int32_t column)
{
    if (g->dense) return g->dense[(int64_t)row * g->columns + column];
    for (int32_t k = g->row_start[row]; k < g->row_start[row + 1]; k++)
        if (g->column[k] == column) return g->value[k];
    return 0;
}

/* Marks the contacts that contact `r` is coupled with, itself among them; returns their number. */
static int32_t mark_columns(const stored_source *source, int32_t r)
{
    const tb_matrix *g = source->g;
    const tb_block *block = &source->problem->blocks[r];
    int32_t count = 0;
    memset(source->mark, 0, (size_t)source->problem->number_of_blocks);
    source->mark[r] = 1;
    for (int32_t row = block->row; row < block->row + block->rows; row++) {
        if (g->dense) {
            for (int32_t c = 0; c < g->columns; c++)
                if (g->dense[(int64_t)row * g->columns + c] != 0)
                    source->mark[source->place[c] / 3] = 1;
        } else {
            for (int32_t k = g->row_start[row]; k < g->row_start[row + 1]; k++)
                if (g->value[k] != 0) source->mark[source->place[g->column[k]] / 3] = 1;
        }
    }
    for (int32_t c = 0; c < source->problem->number_of_blocks; c++) count += source->mark[c];
    return count;
}

static tb_status check_laws(const tb_problem *problem, tb_error *error)
{
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const int32_t law = problem->blocks[b].law;
        if (law != TB_LAW_COULOMB && law != TB_LAW_PLANAR && law != TB_LAW_UNILATERAL)
            return tb_fail_field(error, TB_UNSUPPORTED, "law",
                                 "block %d is no contact but %s: a stored T has contacts only",
                                 (int)b, tb_law_name(law));
    }
    return TB_OK;
}

static void close_source(stored_source *source)
{
    free(source->dense);
    free(source->place);
    free(source->mark);
}

static tb_status open_source(const tb_problem *problem, stored_source *source, tb_error *error)
{
    const size_t rows = (size_t)problem->number_of_rows;
    *source = (stored_source){.problem = problem, .g = problem->matrix};
    source->place = malloc((rows + 1) * sizeof *source->place);
    source->mark = malloc((size_t)problem->number_of_blocks + 1);
    if (!source->place || !source->mark)
        return tb_fail_memory(error, rows * sizeof *source->place, "a system");
    for (int32_t b = 0; b < problem->number_of_blocks; b++)
        for (int32_t k = 0; k < problem->blocks[b].rows; k++)
            source->place[problem->blocks[b].row + k] = 3 * b + k;
    if (source->g && !problem->compliance) return TB_OK;
    tb_status status =
        tb_stored_check_memory((double)rows * (double)rows * sizeof(double), "G", error);
    if (status != TB_OK) return status;
    source->dense = malloc(rows * rows * sizeof *source->dense + 1);
    if (!source->dense) return tb_fail_memory(error, rows * rows * sizeof *source->dense, "G");
    status = tb_problem_delassus(problem, source->dense);
    source->matrix = (tb_matrix){.rows = problem->number_of_rows,
                                 .columns = problem->number_of_rows,
                                 .dense = source->dense};
    source->g = &source->matrix;
    return status;
}

/* The block of G of contacts r and c. A padded row gets the contact's own normal entry on the
 * diagonal, so that it has an r. */
static void fill_block(const stored_source *source, int32_t r, int32_t c, double *value)
{
    const tb_block *row = &source->problem->blocks[r], *column = &source->problem->blocks[c];
    memset(value, 0, 9 * sizeof *value);
    for (int32_t i = 0; i < row->rows; i++)
        for (int32_t j = 0; j < column->rows; j++)
            value[3 * i + j] = entry_of(source->g, row->row + i, column->row + j);
    for (int32_t i = row->rows; r == c && i < 3; i++) value[4 * i] = value[4 * (row->rows - 1)];
}

static tb_status fill_system(const stored_source *source, tb_prox_system **made, tb_error *error)
{
    const tb_problem *problem = source->problem;
    const int32_t contacts = problem->number_of_blocks;
    int64_t blocks = 0;
    for (int32_t r = 0; r < contacts; r++) blocks += mark_columns(source, r);
    const tb_status status = make_system(contacts, blocks, made, error);
    if (status != TB_OK) return status;
    tb_prox_system *system = *made;
    int32_t at = 0;
    for (int32_t r = 0; r < contacts; r++) {
        const tb_block *block = &problem->blocks[r];
        mark_columns(source, r);
        for (int32_t c = 0; c < contacts; c++) {
            if (!source->mark[c]) continue;
            system->column[at] = c;
            fill_block(source, r, c, system->value + 9 * (int64_t)at++);
        }
        system->row_start[r + 1] = at;
        system->mu[r] = block->rows > 1 ? block->mu : 0;
        for (int32_t k = 0; k < block->rows; k++)
            system->d[3 * (int64_t)r + k] = problem->c[block->row + k];
    }
    return TB_OK;
}

tb_status tb_stored_system_of(const tb_problem *problem, double alpha, tb_prox_system **made,
                              tb_error *error)
{
    stored_source source = {0};
    *made = NULL;
    tb_status status = check_alpha(alpha, error);
    if (status == TB_OK) status = check_laws(problem, error);
    if (status == TB_OK) status = open_source(problem, &source, error);
    if (status == TB_OK) status = fill_system(&source, made, error);
    close_source(&source);
    if (status == TB_OK) status = scale_system(*made, alpha, error);
    if (status == TB_OK) return status;
    tb_prox_system_destroy(*made);
    *made = NULL;
    return status;
}

tb_status tb_prox_system_of_problem(const tb_problem_file *file, double alpha,
                                    tb_prox_system **made, tb_error *error)
{
    return tb_stored_system_of(tb_problem_file_local(file), alpha, made, error);
}
