/* Fuzz target: Modelica sources of strangers. Compiled functions are called by the interpreter,
 * with small inputs, under narrow limits; generated C and CUDA are made and not run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modelica/card/kernels.h"
#include "modelica/function.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 4, SIDE = 3 };

/* a small value of the argument's type and rank */
static tb_function_value small_value(const tb_function_argument *a)
{
    tb_function_value value = {.type = a->type, .rank = a->rank};
    size_t count = 1;
    if (a->rank > 4) return value;
    for (int32_t d = 0; d < a->rank; d++) {
        value.size[d] = SIDE;
        count *= SIDE;
    }
    value.data = calloc(count, 8);
    for (size_t k = 0; value.data != NULL && k < count; k++) {
        if (a->type == TB_FUNCTION_REAL) ((double *)value.data)[k] = (double)k - 1;
        if (a->type == TB_FUNCTION_INTEGER) ((int64_t *)value.data)[k] = (int64_t)k + 1;
    }
    return value;
}

static void call(const tb_function_program *program, int32_t function)
{
    tb_function_info info;
    tb_error error;
    tb_function_options options = tb_function_defaults();
    options.backend = TB_FUNCTION_INTERPRETER;
    options.seconds = 0.02;
    options.memory_bytes = 1 << 20;
    tb_function_describe(program, function, &info);
    const size_t count = (size_t)(info.inputs + info.outputs) + 1;
    tb_function_value *values = calloc(count, sizeof *values);
    if (values == NULL) return;
    for (int32_t k = 0; k < info.inputs; k++) {
        tb_function_argument a;
        tb_function_describe_argument(program, function, k, &a);
        if (!a.optional) values[k] = small_value(&a);
    }
    tb_function_call(program, function, &options, values, values + info.inputs, NULL, &error);
    for (size_t k = 0; k < count; k++) tb_function_value_free(&values[k]);
    free(values);
}

/* the text of all functions as C, and of the kernels of those marked for a card as CUDA */
static void generate(const mo_program *program)
{
    mo_text c = {0}, cuda = {0};
    mo_kernel **kernels = calloc((size_t)program->count, sizeof *kernels);
    if (tb_mo_emit_c(program, &c, NULL) != TB_OK || kernels == NULL) abort();
    for (int32_t k = 0; k < program->count; k++) {
        const mo_function *f = program->functions[k];
        kernels[k] = calloc((size_t)tb_mo_kernel_count(f) + 1, sizeof **kernels);
        if (kernels[k] == NULL) abort();
        tb_mo_list_kernels(f, kernels[k]);
    }
    if (tb_mo_emit_cuda(program, kernels, &cuda, NULL) != TB_OK) abort();
    for (int32_t k = 0; k < program->count; k++) free(kernels[k]);
    free(kernels);
    tb_bytes_free(&c.bytes);
    tb_bytes_free(&cuda.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_error error;
    tb_function_fault fault;
    tb_function_program *program = NULL;
    const tb_status status =
        tb_function_compile((const char *)data, size, "fuzz.mo", &program, &fault, &error);
    if (status != TB_OK && strncmp(error.message, "fuzz.mo:", 8) != 0) abort();
    for (int32_t k = 0; program != NULL && k < tb_function_count(program) && k < CALLS; k++) {
        char *report = NULL;
        call(program, k);
        tb_function_report(program, k, &report, NULL);
        free(report);
    }
    if (program != NULL) generate(&program->program);
    tb_function_destroy(program);
    return 0;
}
