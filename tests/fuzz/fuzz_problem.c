/* Fuzzes the reader of contact problems in text form. The reader returns a problem, which every
 * solver then solves for at most 30 iterations if the problem has at most 300 rows, or a
 * failure with a message. HDF5 files are left out: the fuzzer would test the parser of the HDF5
 * library alone. */
#include <stdlib.h>
#include <string.h>

#include "contact/files/problem_file.h"
#include "solve/solve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void solve(const tb_problem_file *file)
{
    tb_solve_options options = tb_solve_defaults();
    tb_problem_result result;
    tb_error error = {0};
    options.maximum_iterations = 30;
    for (int32_t i = 0; tb_solver_name(i); i++) {
        options.solver = tb_solver_name(i);
        options.local_solve = i == 0;
        const size_t rows = (size_t)tb_problem_describe(file).rows;
        double *reactions = calloc(rows + 1, sizeof *reactions);
        if (!reactions) return;
        const tb_status status = tb_problem_solve(file, &options, reactions, NULL, &result, &error);
        if (status == TB_UNSUPPORTED && error.message[0] != 0) {
            free(
                reactions); /* this solver needs the factorized form, and a file gives the matrix */
            continue;
        }
        if (status != TB_OK) abort();
        for (size_t k = 0; k < rows; k++)
            if (!(fabs(reactions[k]) <= DBL_MAX)) abort();
        if (!(result.residual <= DBL_MAX)) abort();
        free(reactions);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    tb_raw_problem raw = {0};
    tb_problem_file *file = NULL;
    tb_error error = {0};
    if (!text) return 0;
    if (size > 0) memcpy(text, data, size);
    text[size] = 0;

    tb_status status = tb_problem_text_read("fuzz.dat", text, size, &raw, &error);
    if (status == TB_OK) status = tb_raw_problem_check(&raw, "fuzz.dat", &error);
    if (status == TB_OK && raw.global) status = tb_raw_problem_reduce(&raw, "fuzz.dat", &error);
    if (status == TB_OK) status = tb_problem_file_make(&raw, "fuzz.dat", &file, &error);
    if (status != TB_OK && (error.message[0] == 0 || file)) abort();
    if (status == TB_OK && tb_problem_describe(file).rows <= 300) solve(file);

    tb_problem_destroy(file);
    tb_raw_problem_free(&raw);
    free(text);
    return 0;
}
