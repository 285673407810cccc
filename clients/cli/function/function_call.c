/* tribo function call: inputs from the command line and from files, outputs to files or printed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "function/function.h"
#include "function/npy.h"

static void free_values(function_values *v)
{
    for (int32_t k = 0; v->value != NULL && k < v->info.inputs + v->info.outputs; k++)
        tb_function_value_free(&v->value[k]);
    free(v->argument);
    free(v->value);
    free((void *)v->file);
    free((void *)v->kept);
}

static bool has_extension(const char *text)
{
    return files_has_extension(text, ".npy");
}

/* a scalar as it is written */
static tb_status parse_scalar(const tb_function_argument *a, const char *text,
                              tb_function_value *value, tb_error *error)
{
    char *end = NULL;
    value->type = a->type;
    value->data = calloc(1, 8);
    if (value->data == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, a->name, "no memory");
    errno = 0;
    bool good = false;
    if (a->type == TB_FUNCTION_REAL) {
        *(double *)value->data = strtod(text, &end);
        good = end != text && *end == '\0';
    } else if (a->type == TB_FUNCTION_INTEGER) {
        *(int64_t *)value->data = strtoll(text, &end, 10);
        good = end != text && *end == '\0' && errno == 0;
    } else {
        good = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
        *(uint8_t *)value->data = text[0] == 't';
    }
    static const char *const EXPECTED[] = {"a number", "a whole number", "true or false"};
    if (good) return TB_OK;
    return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, a->name, "input '%s': '%s', expected %s",
                    a->name, text, EXPECTED[a->type]);
}

static int32_t find_argument(const function_values *v, const char *name, int32_t from, int32_t to)
{
    for (int32_t k = from; k < to; k++)
        if (strcmp(v->argument[k].name, name) == 0) return k;
    return -1;
}

/* the beginning of an input that names an array kept by the daemon */
static const char KEPT[] = "kept:";

static tb_status read_input(function_values *v, const char *name, const char *text, tb_error *error)
{
    const int32_t k = find_argument(v, name, 0, v->info.inputs);
    if (k < 0)
        return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, name, "function '%s' has no input '%s'",
                        v->info.name, name);
    const tb_function_argument *a = &v->argument[k];
    if (v->value[k].data != NULL || v->kept[k] != NULL)
        return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, name, "input '%s' is given twice", name);
    if (strncmp(text, KEPT, sizeof KEPT - 1) == 0) {
        v->kept[k] = text + sizeof KEPT - 1;
        return TB_OK;
    }
    if (has_extension(text)) return npy_read(text, a->type, &v->value[k], error);
    if (a->rank > 0)
        return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, name,
                        "input '%s' is an array, expected a file that ends with .npy", name);
    return parse_scalar(a, text, &v->value[k], error);
}

static tb_status open_values(const tb_function_program *program, int32_t function,
                             function_values *v, tb_error *error)
{
    tb_function_describe(program, function, &v->info);
    const int32_t count = v->info.inputs + v->info.outputs;
    v->argument = calloc((size_t)count + 1, sizeof *v->argument);
    v->value = calloc((size_t)count + 1, sizeof *v->value);
    v->file = calloc((size_t)count + 1, sizeof *v->file);
    v->kept = calloc((size_t)count + 1, sizeof *v->kept);
    if (v->argument == NULL || v->value == NULL || v->file == NULL || v->kept == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
    for (int32_t k = 0; k < count; k++)
        tb_function_describe_argument(program, function, k, &v->argument[k]);
    return TB_OK;
}

/* Notes the arguments that the daemon keeps; a usage error is told at once. */
static int read_keeps(const function_job *job, function_values *v, tb_error *error)
{
    const int32_t count = v->info.inputs + v->info.outputs;
    char name[TB_FUNCTION_NAME_SIZE];
    for (int k = 0; k < job->keeps.count; k++) {
        const char *text = function_split("keep", job->keeps.item[k], name, sizeof name);
        if (text == NULL) return CLI_USAGE;
        const int32_t argument = find_argument(v, name, 0, count);
        if (argument < 0) {
            cli_fail(error, TB_INVALID_ARGUMENT, "", 0, name,
                     "function '%s' has no input or output '%s'", v->info.name, name);
            return CLI_FAILED;
        }
        v->kept[argument] = text;
    }
    bool any = false;
    for (int32_t k = 0; k < count; k++) any = any || v->kept[k] != NULL;
    if (any && (job->remote.address == NULL || job->session == NULL)) {
        args_complain("function",
                      "arrays are kept by a daemon: --server and --session are missing");
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* Reads the inputs and notes the outputs' files; usage errors are said at once. */
static int read_command_line(const function_job *job, function_values *v, tb_error *error)
{
    char name[TB_FUNCTION_NAME_SIZE];
    for (int k = 0; k < job->inputs.count; k++) {
        const char *text = function_split("input", job->inputs.item[k], name, sizeof name);
        if (text == NULL) return CLI_USAGE;
        if (read_input(v, name, text, error) != TB_OK) return CLI_FAILED;
    }
    for (int k = 0; k < job->outputs.count; k++) {
        const char *text = function_split("output", job->outputs.item[k], name, sizeof name);
        if (text == NULL) return CLI_USAGE;
        const int32_t output =
            find_argument(v, name, v->info.inputs, v->info.inputs + v->info.outputs);
        if (output < 0) {
            cli_fail(error, TB_INVALID_ARGUMENT, "", 0, name, "function '%s' has no output '%s'",
                     v->info.name, name);
            return CLI_FAILED;
        }
        v->file[output] = text;
    }
    return read_keeps(job, v, error);
}

static json_t *json_scalar(const tb_function_value *value)
{
    if (value->type == TB_FUNCTION_REAL) return json_finite(*(const double *)value->data);
    if (value->type == TB_FUNCTION_INTEGER) return json_integer(*(const int64_t *)value->data);
    return json_boolean(*(const uint8_t *)value->data);
}

static void print_scalar(const char *name, const tb_function_value *value)
{
    if (value->type == TB_FUNCTION_REAL)
        printf("%s = %.17g\n", name, *(const double *)value->data);
    else if (value->type == TB_FUNCTION_INTEGER)
        printf("%s = %lld\n", name, (long long)*(const int64_t *)value->data);
    else
        printf("%s = %s\n", name, *(const uint8_t *)value->data ? "true" : "false");
}

static tb_status report(const function_job *job, const function_values *v,
                        const tb_function_timing *timing, tb_error *error)
{
    json_t *object = json_object(), *outputs = json_object();
    tb_status status = TB_OK;
    for (int32_t k = v->info.inputs; k < v->info.inputs + v->info.outputs; k++) {
        const tb_function_value *value = &v->value[k];
        const char *name = v->argument[k].name;
        if (v->file[k] != NULL && status == TB_OK) status = npy_write(v->file[k], value, error);
        json_t *entry = json_object(), *shape = json_array();
        for (int32_t d = 0; d < value->rank; d++)
            json_array_append_new(shape, json_integer(value->size[d]));
        json_object_set_new(entry, "shape", shape);
        if (value->rank == 0) json_object_set_new(entry, "value", json_scalar(value));
        if (v->file[k] != NULL) json_object_set_new(entry, "file", json_text(v->file[k]));
        if (v->kept[k] != NULL) json_object_set_new(entry, "kept", json_text(v->kept[k]));
        json_object_set_new(outputs, name, entry);
        if (job->json) continue;
        if (value->rank == 0) print_scalar(name, value);
        for (int32_t d = 0; d < value->rank; d++)
            printf("%s%lld", d == 0 ? name : " x ", (long long)value->size[d]);
        if (value->rank > 0)
            printf("%s%s%s%s\n", v->kept[k] ? " kept as " : "", v->kept[k] ? v->kept[k] : "",
                   v->file[k] ? " to " : "", v->file[k] ? v->file[k] : "");
    }
    json_object_set_new(object, "function", json_text(v->info.name));
    json_object_set_new(object, "backend", json_text(tb_function_backend_name(timing->backend)));
    json_object_set_new(object, "compile_seconds", json_finite(timing->compile_seconds));
    json_object_set_new(object, "seconds", json_finite(timing->seconds));
    json_object_set_new(object, "kernel_seconds", json_finite(timing->kernel_seconds));
    json_object_set_new(object, "launches", json_integer(timing->launches));
    json_object_set_new(object, "outputs", outputs);
    if (job->json && status == TB_OK)
        json_print(stdout, object);
    else
        json_decref(object);
    return status;
}

static bool is_interrupted(void *context)
{
    (void)context;
    return interrupt_requested();
}

static int call(const function_job *job, const tb_function_program *program, int32_t function)
{
    function_values v = {0};
    tb_error error = {0};
    tb_function_timing timing = {0};
    tb_function_options options = tb_function_defaults();
    options.backend = (tb_function_backend)job->backend;
    options.seconds = job->seconds;
    options.memory_bytes = (uint64_t)(job->memory_mib * 1048576);
    options.cancelled = is_interrupted;
    tb_status status = open_values(program, function, &v, &error);
    int code = status == TB_OK ? read_command_line(job, &v, &error) : CLI_FAILED;
    if (code == CLI_OK) {
        interrupt_watch();
        status = job->remote.address != NULL
                     ? function_call_remote(job, &v, &timing, &error)
                     : tb_function_call(program, function, &options, v.value,
                                        v.value + v.info.inputs, &timing, &error);
        if (status == TB_OK) status = report(job, &v, &timing, &error);
        code = cli_exit_code(status);
    }
    if (code != CLI_OK && code != CLI_USAGE) {
        if (job->json) json_print(stdout, json_error(&error));
        cli_complain(&error);
    }
    free_values(&v);
    return code;
}

int function_call(function_job *job)
{
    tb_function_program *program = NULL;
    const tb_status status = function_load(job, &program);
    if (status != TB_OK) return cli_exit_code(status);
    const int32_t function = function_choose(job, program);
    const int code = function >= 0 ? call(job, program, function) : CLI_USAGE;
    tb_function_destroy(program);
    return code;
}
