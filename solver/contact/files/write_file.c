/* Writing a live contact problem as a file that other programs can read.
 *
 * The files know Coulomb contacts of one dimension only. So bilateral rows are eliminated (with
 * xi_b = 0, lambda_b = -inverse(G_bb)(c_b + G_bc lambda_c), the contacts see G_cc - G_cb
 * inverse(G_bb) G_bc), a frictionless contact becomes one with mu = 0 and tangents that nothing
 * moves, and all other laws are refused. */
#include "contact/files/problem_file.h"

#include <stdlib.h>
#include <string.h>

/* Where every kept row goes in the file, -1 for eliminated ones; dimension and contacts. */
typedef struct layout {
    int32_t dimension, contacts, eliminated;
    int32_t *place; /* of each row of the problem in the file */
    int32_t *gone;  /* rows that are eliminated */
} layout;

static tb_status lay_out(const tb_problem *problem, layout *l, tb_error *error)
{
    l->place = malloc((size_t)problem->number_of_rows * sizeof *l->place + 1);
    l->gone = malloc((size_t)problem->number_of_rows * sizeof *l->gone + 1);
    if (!l->place || !l->gone)
        return tb_fail_memory(error, (size_t)problem->number_of_rows * 8, "rows of the problem");
    l->dimension = 3;
    bool spatial = false, planar = false;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const int32_t law = problem->blocks[b].law;
        spatial = spatial || law == TB_LAW_COULOMB;
        planar = planar || law == TB_LAW_PLANAR;
        if (law == TB_LAW_SPIN || law == TB_LAW_ROLLING || law == TB_LAW_BOX)
            return tb_fail_field(error, TB_UNSUPPORTED, tb_law_name(law),
                                 "block %d has the law '%s', which problem files do not know", b,
                                 tb_law_name(law));
    }
    if (spatial && planar)
        return tb_fail_field(error, TB_UNSUPPORTED, "planar",
                             "a problem file holds planar or spatial contacts, not both");
    if (planar) l->dimension = 2;

    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        for (int32_t i = 0; i < block->rows; i++) {
            const bool gone = block->law == TB_LAW_BILATERAL;
            if (gone) l->gone[l->eliminated++] = block->row + i;
            l->place[block->row + i] = gone ? -1 : l->dimension * l->contacts + i;
        }
        if (block->law != TB_LAW_BILATERAL) l->contacts++;
    }
    return TB_OK;
}

/* g and c without the eliminated rows' freedom: symmetric elimination, one pivot row after the
 * other. Rows that are redundant among themselves have no pivot left and are dropped. */
static void eliminate(double *g, double *c, int32_t n, const layout *l)
{
    for (int32_t k = 0; k < l->eliminated; k++) {
        const int64_t p = l->gone[k];
        const double pivot = g[p * n + p];
        double size = 0;
        for (int32_t j = 0; j < n; j++) size = fmax(size, fabs(g[p * n + j]));
        if (!(fabs(pivot) > 1e-12 * size) || pivot == 0) continue;
        for (int32_t i = 0; i < n; i++) {
            if (i == p) continue;
            const double factor = g[(int64_t)i * n + p] / pivot;
            if (factor == 0) continue;
            for (int32_t j = 0; j < n; j++) g[(int64_t)i * n + j] -= factor * g[p * n + j];
            g[(int64_t)i * n + p] = 0;
            c[i] -= factor * c[p];
        }
    }
}

tb_status tb_problem_write(const tb_problem *problem, const char *path, tb_error *error)
{
    const int32_t n = problem->number_of_rows;
    const size_t square = (size_t)n * (size_t)n;
    layout l = {0};
    tb_raw_problem raw = {0};
    tb_problem_file *file = NULL;
    double *g = NULL, *c = NULL;
    tb_status status = lay_out(problem, &l, error);
    if (status != TB_OK) goto done;
    g = malloc(square * sizeof *g + 1);
    c = malloc((size_t)n * sizeof *c + 1);
    raw.dimension = l.dimension;
    raw.contacts = l.contacts;
    const int32_t rows = l.dimension * l.contacts;
    raw.q = calloc((size_t)rows + 1, sizeof *raw.q);
    raw.mu = calloc((size_t)l.contacts + 1, sizeof *raw.mu);
    if (!g || !c || !raw.q || !raw.mu) {
        status = tb_fail_memory(error, square * sizeof *g, "the Delassus matrix");
        goto done;
    }
    status = tb_problem_delassus(problem, g);
    if (status != TB_OK) goto done;
    if (n > 0) memcpy(c, problem->c, (size_t)n * sizeof *c);
    eliminate(g, c, n, &l);

    /* the remaining contacts, by their index in the file */
    raw.w.rows = raw.w.columns = rows;
    for (int32_t i = 0; i < n; i++) {
        if (l.place[i] < 0) continue;
        raw.q[l.place[i]] = c[i];
        for (int32_t j = 0; j < n; j++) {
            const double value = g[(int64_t)i * n + j];
            if (l.place[j] < 0 || value == 0) continue;
            status = tb_raw_matrix_add(&raw.w, l.place[i], l.place[j], value, error);
            if (status != TB_OK) goto done;
        }
    }
    int32_t contact = 0;
    for (int32_t b = 0; b < problem->number_of_blocks; b++) {
        const tb_block *block = &problem->blocks[b];
        if (block->law == TB_LAW_BILATERAL) continue;
        raw.mu[contact++] = block->law == TB_LAW_UNILATERAL ? 0 : block->mu;
    }
    status = tb_raw_problem_check(&raw, path, error);
    if (status == TB_OK) status = tb_problem_file_make(&raw, path, &file, error);
    if (status == TB_OK) status = tb_problem_save(file, path, error);
done:
    tb_problem_destroy(file);
    tb_raw_problem_free(&raw);
    free(l.place);
    free(l.gone);
    free(g);
    free(c);
    return status;
}
