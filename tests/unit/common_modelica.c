/* Helpers of the tests of Modelica functions. */
#include "common_modelica.h"

#include <string.h>

tb_function_program *compile_text(const char *text, tb_error *error)
{
    tb_function_program *program = NULL;
    tb_function_compile(text, strlen(text), "test.mo", &program, NULL, error);
    return program;
}

tb_status call_on(const tb_function_program *program, const char *name, tb_function_backend backend,
                  const tb_function_value *inputs, tb_function_value *outputs, tb_error *error)
{
    tb_function_options options = tb_function_defaults();
    options.backend = backend;
    options.seconds = 20;
    options.cache = ""; /* nothing outside of the test */
    return tb_function_call(program, tb_function_find(program, name), &options, inputs, outputs,
                            NULL, error);
}

long long value_count(const tb_function_value *value)
{
    long long count = value->data != NULL;
    for (int32_t d = 0; d < value->rank; d++) count *= value->size[d];
    return count;
}

double value_at(const tb_function_value *value, long long index)
{
    if (value->type == TB_FUNCTION_REAL) return ((const double *)value->data)[index];
    if (value->type == TB_FUNCTION_INTEGER) return (double)((const int64_t *)value->data)[index];
    return ((const uint8_t *)value->data)[index];
}
