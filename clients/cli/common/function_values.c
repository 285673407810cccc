#include "common/function_values.h"

#include <math.h>
#include <stdlib.h>

tb_function_value bench_array(int32_t rank, const int64_t *size, double base, double noise)
{
    tb_function_value value = {.type = TB_FUNCTION_REAL, .rank = rank};
    size_t count = 1;
    uint32_t seed = 12345;
    for (int32_t d = 0; d < rank; d++) {
        value.size[d] = size[d];
        count *= (size_t)size[d];
    }
    double *data = malloc(count * sizeof *data + 1);
    for (size_t k = 0; k < count; k++) {
        seed = seed * 1664525u + 1013904223u;
        data[k] = base + noise * ((double)(seed >> 8) / 16777216.0 - 0.5);
    }
    value.data = data;
    return value;
}

tb_function_value bench_matrix(int64_t rows, int64_t columns, double base, double noise)
{
    return bench_array(2, (int64_t[]){rows, columns}, base, noise);
}

tb_function_value bench_number(double x)
{
    return bench_array(0, NULL, x, 0);
}

tb_function_value bench_whole(int64_t x)
{
    int64_t *data = malloc(sizeof *data);
    *data = x;
    return (tb_function_value){.type = TB_FUNCTION_INTEGER, .data = data};
}

double bench_furthest(const tb_function_value *p, const tb_function_value *q)
{
    double most = 0;
    size_t count = 1;
    const double *x = p->data, *y = q->data;
    for (int32_t d = 0; d < p->rank; d++) count *= (size_t)p->size[d];
    for (size_t k = 0; k < count; k++) {
        const double scale = fabs(x[k]) > 1 ? fabs(x[k]) : 1;
        most = fmax(most, fabs(x[k] - y[k]) / scale);
    }
    return most;
}
