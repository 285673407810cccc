/* tribo function: compiles functions of Modelica and calls them, here or on a daemon. */
#include "function/function.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "common/json.h"

enum { SOURCE_LIMIT = 16 << 20 };

static const args_command COMMAND = {
    .name = "function",
    .operands = "compile|call|integrate FILE.mo | forget SESSION",
    .description =
        "Compiles the functions of a Modelica 3.6 source, or calls one of them. An input is a "
        "number,\n"
        "true, false or an array in a file of NumPy; an output without a file is printed if it is "
        "a\n"
        "scalar. Functions with annotation(gpuFunction = true) run on a card where there is one.\n"
        "integrate prints the source with a function more: it steps x' = f(x, ...) with the\n"
        "states in the first inputs of f and their rates in its outputs.\n"
        "A daemon keeps arrays between calls of one session, on its card if the call ran there, "
        "until\n"
        "forget, or ten minutes after the last call that named them.\n",
    .examples = "  tribo function compile heat.mo\n"
                "  tribo function call heat.mo --function step --input u=u.npy --input dt=0.25 "
                "--output v=v.npy\n"
                "  tribo function call heat.mo --function step --backend interpreter --input "
                "u=u.npy\n"
                "  tribo function call heat.mo --function step --input u=u.npy --server "
                "robot7:7410\n"
                "  tribo function call heat.mo --input u=u.npy --keep v=field --session mine "
                "--server robot7:7410\n"
                "  tribo function call heat.mo --input u=kept:field --keep v=field --session mine "
                "--server robot7:7410\n"
                "  tribo function forget mine --server robot7:7410\n"
                "  tribo function integrate heat.mo --function rates --method implicit_euler "
                ">heat_steps.mo\n",
    .minimum_operands = 2,
    .maximum_operands = 2};

const char *function_split(const char *option, const char *text, char *name, size_t size)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || (size_t)(equals - text) >= size) {
        args_complain(COMMAND.name, "--%s '%s': expected NAME=VALUE", option, text);
        return NULL;
    }
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return equals + 1;
}

tb_status function_load(function_job *job, tb_function_program **program)
{
    tb_error error = {0};
    tb_function_fault fault = {0};
    char *text = NULL;
    size_t size = 0;
    tb_status status = files_read(job->path, SOURCE_LIMIT, &text, &size, &error);
    if (status == TB_OK)
        status = tb_function_compile(text, size, job->path, program, &fault, &error);
    job->source = text;
    if (status == TB_OK) return TB_OK;
    if (job->json) {
        json_t *object = json_error(&error);
        json_object_set_new(object, "column", json_integer(fault.column));
        json_print(stdout, object);
    }
    cli_complain(&error);
    if (fault.caret[0] != '\0') fprintf(stderr, "%s\n", fault.caret);
    return status;
}

/* ---- compile ---- */

static const char *type_text(const tb_function_argument *a, char *text, size_t size)
{
    static const char *const NAMES[] = {"Real", "Integer", "Boolean"};
    char sizes[2 * TB_FUNCTION_RANK + 2] = "";
    for (int32_t d = 0; d < a->rank; d++) strcat(sizes, d == 0 ? "[:" : ",:");
    snprintf(text, size, "%s%s%s", NAMES[a->type], sizes, a->rank > 0 ? "]" : "");
    return text;
}

static void print_function(const tb_function_program *program, int32_t function, bool json)
{
    tb_function_info info;
    char text[64], *report = NULL;
    tb_function_describe(program, function, &info);
    json_t *object = json_object(), *lists[2] = {json_array(), json_array()};
    if (!json) printf("%s%s\n", info.name, info.on_card ? "  (card)" : "");
    for (int32_t k = 0; k < info.inputs + info.outputs; k++) {
        tb_function_argument a;
        tb_function_describe_argument(program, function, k, &a);
        const bool output = k >= info.inputs;
        type_text(&a, text, sizeof text);
        json_t *entry = json_object();
        json_object_set_new(entry, "name", json_text(a.name));
        json_object_set_new(entry, "type", json_text(text));
        if (!output) json_object_set_new(entry, "optional", json_boolean(a.optional));
        json_array_append_new(lists[output], entry);
        if (!json)
            printf("  %-6s  %-14s  %s%s\n", output ? "output" : "input", text, a.name,
                   a.optional ? "  (optional)" : "");
    }
    if (info.on_card && tb_function_report(program, function, &report, NULL) == TB_OK) {
        if (!json) printf("%s", report);
        json_object_set_new(object, "loops", json_text(report));
    }
    free(report);
    json_object_set_new(object, "function", json_text(info.name));
    json_object_set_new(object, "card", json_boolean(info.on_card));
    json_object_set_new(object, "inputs", lists[0]);
    json_object_set_new(object, "outputs", lists[1]);
    if (json)
        json_print(stdout, object);
    else
        json_decref(object);
}

int function_compile(function_job *job)
{
    tb_function_program *program = NULL;
    const tb_status status = function_load(job, &program);
    if (status != TB_OK) return cli_exit_code(status);
    for (int32_t k = 0; k < tb_function_count(program); k++) print_function(program, k, job->json);
    tb_function_destroy(program);
    return CLI_OK;
}

int32_t function_choose(const function_job *job, const tb_function_program *program)
{
    const int32_t count = tb_function_count(program);
    const int32_t found = job->function != NULL ? tb_function_find(program, job->function)
                          : count == 1          ? 0
                                                : -1;
    if (found >= 0) return found;
    if (job->function != NULL)
        args_complain("function", "%s has no function '%s'; 'tribo function compile' lists them",
                      job->path, job->function);
    else
        args_complain("function", "%s has %d functions: choose one by --function", job->path,
                      count);
    return -1;
}

/* ---- integrate ---- */

static int function_integrate(function_job *job)
{
    tb_function_program *program = NULL;
    tb_error error = {0};
    char *source = NULL;
    tb_status status = function_load(job, &program);
    if (status != TB_OK) return cli_exit_code(status);
    const int32_t function = function_choose(job, program);
    if (function >= 0)
        status = tb_function_integrator(program, function, (tb_function_method)job->method, &source,
                                        &error);
    if (source != NULL) fputs(source, stdout);
    if (status != TB_OK) cli_complain(&error);
    free(source);
    tb_function_destroy(program);
    return function < 0 ? CLI_USAGE : cli_exit_code(status);
}

/* ---- the command ---- */

int command_function(int argc, char **argv)
{
    static const char *const BACKENDS[] = {"auto", "interpreter", "cpu", "gpu", NULL};
    static const char *const METHODS[] = {"euler", "midpoint", "runge_kutta_4", "implicit_euler",
                                          NULL};
    function_job job = {.seconds = 60, .memory_mib = 2048};
    const args_option options[] = {
        {"function", "NAME", "the function to call (the only one of the source)", ARGS_TEXT,
         &job.function, 0, 0, NULL},
        {"input", "NAME=VALUE",
         "an input: a number, true, false, FILE.npy or kept:NAME; several times", ARGS_LIST,
         &job.inputs, 0, 0, NULL},
        {"output", "NAME=FILE", "write an output to a file of NumPy; several times", ARGS_LIST,
         &job.outputs, 0, 0, NULL},
        {"backend", NULL, "backend that runs it (auto)", ARGS_CHOICE, &job.backend, 0, 0, BACKENDS},
        {"method", NULL, "of integrate (euler)", ARGS_CHOICE, &job.method, 0, 0, METHODS},
        {"seconds", "S", "longest call (60)", ARGS_NUMBER, &job.seconds, DBL_MIN, 1e6, NULL},
        {"memory", "MIB", "arrays of the call (2048)", ARGS_NUMBER, &job.memory_mib, DBL_MIN, 1e7,
         NULL},
        {"json", NULL, "one JSON object a line and nothing else", ARGS_FLAG, &job.json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&job.remote, connection);
    const args_option keeping[] = {
        {"keep", "NAME=AS", "have the daemon keep an input or output array; several times",
         ARGS_LIST, &job.keeps, 0, 0, NULL},
        {"session", "NAME", "of the kept arrays, chosen by you: 1 to 80 characters", ARGS_TEXT,
         &job.session, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    connection[0].help = "have a daemon compile and call: HOST:PORT or unix:PATH";
    const args_group groups[] = {{"options", options},
                                 {"with a daemon", connection},
                                 {"arrays that a daemon keeps", keeping},
                                 {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    job.path = argv[2];
    int code = CLI_USAGE;
    if (strcmp(argv[1], "compile") == 0)
        code = function_compile(&job);
    else if (strcmp(argv[1], "call") == 0)
        code = function_call(&job);
    else if (strcmp(argv[1], "integrate") == 0)
        code = function_integrate(&job);
    else if (strcmp(argv[1], "forget") == 0)
        code = function_forget(&job, job.path);
    else
        args_complain(COMMAND.name, "no action '%s': compile, call, integrate or forget", argv[1]);
    free(job.source);
    return code;
}
