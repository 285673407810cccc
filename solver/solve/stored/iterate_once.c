/* A run of a stored iteration: where it happens, and how exact its result is. */
#include "solve/stored/stored.h"

#include <math.h>
#include <string.h>

#include "contact/prox.h"
#include "backend/backend.h"

tb_prox_options tb_prox_defaults(void)
{
    return (tb_prox_options){.variant = "jor5",
                             .precision = TB_DOUBLE,
                             .backend = TB_BACKEND_CPU,
                             .iterations = 5000,
                             .check_period = 1,
                             .relative = 1e-7,
                             .absolute = 1e-7};
}

/* |lambda - prox(T lambda + d)| / |d| by the blocks, in double; |d| = 0: the numerator. */
static double residual_of(const tb_prox_system *system, const double *lambda)
{
    double sum = 0, size = 0;
    for (int32_t r = 0; r < system->contacts; r++) {
        double x[3];
        for (int k = 0; k < 3; k++) {
            x[k] = system->d[3 * (int64_t)r + k];
            size += x[k] * x[k];
        }
        for (int32_t b = system->row_start[r]; b < system->row_start[r + 1]; b++)
            for (int e = 0; e < 9; e++)
                x[e / 3] += system->value[9 * (int64_t)b + e] *
                            lambda[3 * (int64_t)system->column[b] + e % 3];
        tb_prox_coulomb(x, system->mu[r]);
        for (int k = 0; k < 3; k++) {
            const double off = lambda[3 * (int64_t)r + k] - x[k];
            sum += off * off;
        }
    }
    return size > 0 ? sqrt(sum / size) : sqrt(sum);
}

static tb_status check_options(const tb_prox_options *options, tb_error *error)
{
    const struct {
        const char *field;
        bool fine;
    } checks[] = {
        {"precision", options->precision == TB_DOUBLE || options->precision == TB_FLOAT},
        {"device", options->device >= 0},
        {"threads", options->threads >= 0},
        {"iterations", options->iterations >= 1},
        {"check_period", options->check_period >= 0},
        {"relative", options->relative >= 0},
        {"absolute", options->absolute >= 0},
    };
    for (size_t k = 0; k < sizeof checks / sizeof checks[0]; k++)
        if (!checks[k].fine)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, checks[k].field,
                                 "%s makes no sense for a prox iteration", checks[k].field);
    if (options->variant && tb_stored_variant_find(options->variant)) return TB_OK;
    return tb_fail_field(error, TB_NOT_FOUND, "variant", "there is no prox iteration '%s'",
                         options->variant ? options->variant : "");
}

static tb_status check_parts(const tb_prox_options *options, const tb_stored_variant *variant,
                             tb_error *error)
{
    const uint32_t all =
        TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL | TB_PROX_TANGENTIAL | TB_PROX_WRITES;
    if (options->left_out == 0) return TB_OK;
    if (options->left_out & ~(all | TB_PROX_BARRIERS))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "left_out", "there is no such part");
    if (options->left_out & TB_PROX_BARRIERS && (options->left_out & all) != all)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "left_out",
                             "barriers are left out where all other parts are: threads would race");
    if (variant->form != TB_STORED_FULL)
        return tb_fail_field(error, TB_UNSUPPORTED, "left_out",
                             "parts are left out of full-sor-32 and full-sor-64 only");
    return TB_OK;
}

static tb_status run_here(const tb_prox_system *system, const tb_stored_variant *variant,
                          const tb_prox_options *options, double *lambda, tb_prox_result *result,
                          tb_error *error)
{
    tb_status status =
        tb_stored_check_memory((double)result->bytes, "T as this variant reads it", error);
    if (status != TB_OK) return status;
    status = options->precision == TB_FLOAT
                 ? tb_stored_solve_f32(system, variant, options, lambda, result)
                 : tb_stored_solve(system, variant, options, lambda, result);
    return status == TB_OK ? status
                           : tb_fail_memory(error, (size_t)result->bytes, "T in this variant");
}

tb_status tb_prox_iterate(const tb_prox_system *system, const tb_prox_options *options,
                          double *lambda, tb_prox_result *result, tb_error *error)
{
    memset(result, 0, sizeof *result);
    tb_status status = check_options(options, error);
    if (status != TB_OK) return status;
    const tb_stored_variant *variant = tb_stored_variant_find(options->variant);
    status = check_parts(options, variant, error);
    if (status != TB_OK) return status;
    const int64_t size = options->precision == TB_FLOAT ? sizeof(float) : sizeof(double);
    const int64_t n = 3 * (int64_t)system->contacts;
    result->bytes = tb_stored_is_sparse(variant->form)
                        ? system->blocks * (9 * size + (int64_t)sizeof(int32_t))
                        : n * n * size;
    if (options->backend == TB_BACKEND_GPU && variant->form != TB_STORED_CORES) {
        const tb_backend *backend = NULL;
        status = tb_backend_find(TB_BACKEND_GPU, &backend, error);
        if (status == TB_OK && !backend->prox_iterate)
            status = tb_fail_field(error, TB_UNSUPPORTED, "backend",
                                   "backend '%s' has no stored iterations", backend->name);
        if (status == TB_OK) status = backend->prox_iterate(system, options, lambda, result, error);
    } else {
        status = run_here(system, variant, options, lambda, result, error);
    }
    if (status == TB_OK) result->residual = residual_of(system, lambda);
    return status;
}
