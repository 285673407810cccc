/* Helpers of the tests of Modelica functions. */
#ifndef COMMON_MODELICA_H
#define COMMON_MODELICA_H

#include "tribo_function.h"

/* NULL, with the error filled, if the text is refused. */
tb_function_program *compile_text(const char *text, tb_error *error);
/* Calls a function by name with a fresh cache of its own; inputs may be NULL for none. */
tb_status call_on(const tb_function_program *program, const char *name, tb_function_backend backend,
                  const tb_function_value *inputs, tb_function_value *outputs, tb_error *error);
long long value_count(const tb_function_value *value);
/* An element of any type. */
double value_at(const tb_function_value *value, long long index);

#endif
