/* tb_symgbmm (C = B A, B a symmetric band; tribo_qp.h): chooses card or processor, and has the
 * processor's product. */
#include "qp/band.h"
#include "backend/backend.h"
#include "base/base.h"

#include <time.h>

void tb_band_multiply_f32(const float *a, int32_t n, int32_t half_bandwidth, int32_t columns,
                          const float *x, int64_t stride, float *y, int64_t y_stride);

static double symgbmm_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *as_floats(tb_arena *arena, const double *from, size_t count)
{
    float *to = TB_ARENA_ARRAY(arena, float, count);
    for (size_t i = 0; i < count && to; i++) to[i] = (float)from[i];
    return to;
}

static tb_status multiply_here(tb_precision precision, int32_t n, int32_t half_bandwidth,
                               int32_t columns, const double *band, const double *a, double *c,
                               double *seconds, tb_error *error)
{
    const size_t entries = (size_t)n * ((size_t)half_bandwidth + 1);
    const size_t numbers = (size_t)n * (size_t)columns;
    if (precision == TB_DOUBLE) {
        const double start = symgbmm_clock();
        tb_band_multiply(band, n, half_bandwidth, columns, a, n, c, n);
        *seconds = symgbmm_clock() - start;
        return TB_OK;
    }
    tb_arena arena;
    tb_arena_init(&arena, 0);
    const float *own_band = as_floats(&arena, band, entries),
                *own_a = as_floats(&arena, a, numbers);
    float *own_c = TB_ARENA_ARRAY(&arena, float, numbers);
    tb_status status = TB_OK;
    if (own_band && own_a && own_c) {
        const double start = symgbmm_clock();
        tb_band_multiply_f32(own_band, n, half_bandwidth, columns, own_a, n, own_c, n);
        *seconds = symgbmm_clock() - start;
        for (size_t i = 0; i < numbers; i++) c[i] = (double)own_c[i];
    } else {
        status = tb_fail_memory(error, (entries + 2 * numbers) * sizeof(float), "a product");
    }
    tb_arena_destroy(&arena);
    return status;
}

tb_status tb_symgbmm(tb_symgbmm_variant variant, tb_precision precision, int32_t device, int32_t n,
                     int32_t half_bandwidth, int32_t columns, const double *band, const double *a,
                     double *c, double *seconds, tb_error *error)
{
    const struct {
        const char *field;
        bool fine;
    } checks[] = {
        {"variant", variant >= TB_SYMGBMM_HOST && variant <= TB_SYMGBMM_GEMM},
        {"precision", precision == TB_DOUBLE || precision == TB_FLOAT},
        {"device", device >= 0},
        {"n", n >= 1 && n <= INT32_MAX / 2},
        {"half_bandwidth", half_bandwidth >= 0 && half_bandwidth < n},
        {"columns", columns >= 1 && columns <= INT32_MAX / n},
        {"band", band != NULL},
        {"a", a != NULL},
        {"c", c != NULL},
    };
    for (size_t k = 0; k < sizeof checks / sizeof checks[0]; k++)
        if (!checks[k].fine)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, checks[k].field,
                                 "%s makes no sense for a product with a band", checks[k].field);
    double taken = 0;
    if (!seconds) seconds = &taken;
    if (variant == TB_SYMGBMM_HOST)
        return multiply_here(precision, n, half_bandwidth, columns, band, a, c, seconds, error);
    const tb_backend *backend = NULL;
    const tb_status status = tb_backend_find(TB_BACKEND_GPU, &backend, error);
    if (status != TB_OK) return status;
    if (!backend->symgbmm)
        return tb_fail_field(error, TB_UNSUPPORTED, "variant", "backend '%s' has no products",
                             backend->name);
    return backend->symgbmm(variant, precision, device, n, half_bandwidth, columns, band, a, c,
                            seconds, error);
}
