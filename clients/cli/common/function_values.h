/* Inputs of Modelica functions in benchmarks. */
#ifndef COMMON_FUNCTION_VALUES_H
#define COMMON_FUNCTION_VALUES_H

#include "tribo_function.h"

/* An array of Real: base + noise (-0.5 ... 0.5), the same numbers each time. The caller frees the value. */
tb_function_value bench_array(int32_t rank, const int64_t *size, double base, double noise);
tb_function_value bench_matrix(int64_t rows, int64_t columns, double base, double noise);
/* A scalar Real, a scalar Integer. */
tb_function_value bench_number(double x);
tb_function_value bench_whole(int64_t x);
/* The largest difference of two arrays of Real of one shape, relative where elements are above 1. */
double bench_furthest(const tb_function_value *p, const tb_function_value *q);

#endif
