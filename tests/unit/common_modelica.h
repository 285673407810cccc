/* Helpers of the tests of Modelica functions. */
#ifndef COMMON_MODELICA_H
#define COMMON_MODELICA_H

#include "tribo_function.h"

/* Has the driver and NVRTC found by their names: of a card that is played. Gives NVRTC's handle. */
void *play_card(void);
/* Arrays of base + noise (-0.5 ... 0.5), the same each time, and scalars. */
tb_function_value real_array(int32_t rank, const int64_t *size, double base, double noise);
tb_function_value grid(int64_t m, int64_t n, double base, double noise);
tb_function_value line_of(int64_t n, double base);
tb_function_value number(double x);
tb_function_value whole(int64_t x);
/* NULL, with the error filled, if the text is refused. */
tb_function_program *compile_text(const char *text, tb_error *error);
/* Calls a function by name with a fresh cache of its own; inputs may be NULL for none. */
tb_status call_on(const tb_function_program *program, const char *name, tb_function_backend backend,
                  const tb_function_value *inputs, tb_function_value *outputs, tb_error *error);
long long value_count(const tb_function_value *value);
/* An element of any type. */
double value_at(const tb_function_value *value, long long index);

#endif
