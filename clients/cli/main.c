/* The command `tribo`: finds the subcommand and calls it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/describe.h"
#include "common/json.h"

static int command_version(int argc, char **argv);
static int command_help(int argc, char **argv);
static int command_completion(int argc, char **argv);
static int command_man(int argc, char **argv);

static const cli_subcommand SUBCOMMANDS[] = {
    {"run", "step a model; certificate, recording, plot", command_run},
    {"solve", "solve contact problem files", command_solve},
    {"info", "content of a model: counts, masses, joints, warnings", command_info},
    {"export", "write the contact problem of a step to a file", command_export},
    {"scene", "named scenes as MJCF: those of the theses and of README", command_scene},
    {"bench", "small benchmarks", command_bench},
    {"function", "compile and call functions of Modelica", command_function},
    {"grasp", "outcome of grasps: held, slipped or dropped, and quality", command_grasp},
    {"hand", "draw a hand: tool frame, closing axis, opening; its controls", command_hand},
    {"demo", "a hand grasps a mug, lifts it and shakes it", command_demo},
    {"sessions", "open sessions of a daemon", command_sessions},
    {"runs", "past runs of a daemon", command_runs},
    {"jobs", "grasp jobs of a daemon: progress, results, cancellation", command_jobs},
    {"top", "a daemon at a glance", command_top},
    {"load", "how many calls a daemon answers, and how fast", command_load},
    {"backup", "copy a daemon's store", command_backup},
    {"version", "version, solvers, backends", command_version},
    {"completion", "completions for bash, zsh or fish", command_completion},
    {"man", "manual pages", command_man},
    {"help", "help on a command", command_help},
};
enum { COUNT = sizeof SUBCOMMANDS / sizeof SUBCOMMANDS[0] };

/* ---- functions shared by the other files ---- */

int cli_exit_code(tb_status status)
{
    switch (status) {
    case TB_OK: return CLI_OK;
    case TB_DIVERGED:
    case TB_NOT_CONVERGED: return CLI_UNSOLVED;
    case TB_CANCELLED: return CLI_INTERRUPTED;
    default: return CLI_FAILED;
    }
}

void cli_complain(const tb_error *error)
{
    fprintf(stderr, "tribo: %s\n",
            error->message[0] != '\0' ? error->message : tb_status_text(error->status));
}

tb_status cli_fail(tb_error *error, tb_status status, const char *file, int line, const char *field,
                   const char *format, ...)
{
    if (error == NULL) return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    error->line = line;
    snprintf(error->file, sizeof error->file, "%s", file);
    if (field != NULL) snprintf(error->field, sizeof error->field, "%s", field);

    const size_t size = sizeof error->message;
    int used = 0;
    if (file[0] != '\0' && line > 0)
        used = snprintf(error->message, size, "%s:%d: ", file, line);
    else if (file[0] != '\0')
        used = snprintf(error->message, size, "%s: ", file);
    if (used < 0 || (size_t)used >= size) return status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message + used, size - (size_t)used, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- version and help ---- */

/* Backends, and devices of each, or why there are none. */
static json_t *list_backends(bool json)
{
    json_t *backends = json_array();
    tb_backend_info info;
    if (!json) printf("\nbackends:\n");
    for (int b = 0; tb_backend_describe((tb_backend_choice)b, &info) == TB_OK; b++) {
        json_t *object = json_object(), *devices = json_array();
        json_object_set_new(object, "name", json_text(info.name));
        json_object_set_new(object, "devices", devices);
        json_array_append_new(backends, object);
        if (info.devices == 0) json_object_set_new(object, "reason", json_text(info.reason));
        if (info.devices == 0 && !json) printf("  %-12s none: %s\n", info.name, info.reason);
        for (int32_t d = 0; d < info.devices; d++) {
            tb_device_info device;
            if (tb_device_describe((tb_backend_choice)b, d, &device, NULL) != TB_OK) continue;
            json_t *entry = json_object();
            json_object_set_new(entry, "name", json_text(device.name));
            json_object_set_new(entry, "driver", json_text(device.driver));
            json_object_set_new(entry, "architecture", json_text(device.architecture));
            json_object_set_new(entry, "processors", json_integer(device.processors));
            json_object_set_new(entry, "memory_bytes", json_integer((json_int_t)device.memory));
            json_array_append_new(devices, entry);
            if (!json)
                printf("  %-12s %s%s%s, %d processors\n", info.name, device.name,
                       *device.driver ? ", driver " : "", device.driver, device.processors);
        }
    }
    return backends;
}

static int command_version(int argc, char **argv)
{
    static const args_command COMMAND = {.name = "version",
                                         .operands = "",
                                         .description =
                                             "Prints the version, solvers and backends.\n",
                                         .examples = "  tribo version\n"
                                                     "  tribo version --json\n"};
    bool json = false;
    const args_option options[] = {
        {"json", NULL, "print one JSON object", ARGS_FLAG, &json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;

    json_t *solvers = json_array();
    if (!json) printf("tribo %s\n\nsolvers:\n", TB_VERSION);
    for (int32_t i = 0; tb_solver_name(i) != NULL; i++) {
        json_array_append_new(solvers, json_text(tb_solver_name(i)));
        if (!json) printf("  %-12s %s\n", tb_solver_name(i), tb_solver_summary(i));
    }
    json_t *integrators = json_array();
    if (!json) printf("\nintegrators of --contact volume:\n");
    for (int32_t i = 0; tb_integrator_name(i) != NULL; i++) {
        json_array_append_new(integrators, json_text(tb_integrator_name(i)));
        if (!json) printf("  %-12s %s\n", tb_integrator_name(i), tb_integrator_summary(i));
    }
    json_t *object = json_object();
    json_object_set_new(object, "version", json_string(TB_VERSION));
    json_object_set_new(object, "solvers", solvers);
    json_object_set_new(object, "integrators", integrators);
    json_object_set_new(object, "backends", list_backends(json));
    if (json)
        json_print(stdout, object);
    else
        json_decref(object);
    return CLI_OK;
}

static void print_overview(FILE *file)
{
    fprintf(file,
            "tribo %s: contact dynamics with the exact Coulomb law\n\n"
            "usage: tribo COMMAND [options] ...\n\n",
            TB_VERSION);
    for (int i = 0; i < COUNT; i++)
        fprintf(file, "  %-11s %s\n", SUBCOMMANDS[i].name, SUBCOMMANDS[i].summary);
    fprintf(file, "\nexamples:\n"
                  "  tribo demo\n"
                  "  tribo run scene.xml --time 2 --plot scene.svg\n"
                  "  tribo solve problem.dat\n"
                  "\n'tribo help COMMAND' and 'tribo COMMAND --help' say more.\n");
}

static const cli_subcommand *find_subcommand(const char *name)
{
    const char *names[COUNT + 1] = {NULL};
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(SUBCOMMANDS[i].name, name) == 0) return &SUBCOMMANDS[i];
        names[i] = SUBCOMMANDS[i].name;
    }
    const char *nearest = args_nearest(name, names);
    if (nearest != NULL)
        fprintf(stderr, "tribo: no command '%s'; did you mean '%s'?\n", name, nearest);
    else
        fprintf(stderr, "tribo: no command '%s'; 'tribo --help' lists them\n", name);
    return NULL;
}

/* Commands with options of their own: `help` has none. */
enum { DESCRIBED = COUNT - 1 };

static int command_completion(int argc, char **argv)
{
    static const args_command COMMAND = {
        .name = "completion",
        .operands = "SHELL",
        .description = "Prints completions of commands, options and their choices for bash, zsh or "
                       "fish.\n",
        .examples = "  tribo completion bash > ~/.local/share/bash-completion/completions/tribo\n"
                    "  tribo completion zsh > ~/.zfunc/_tribo\n"
                    "  tribo completion fish > ~/.config/fish/completions/tribo.fish\n",
        .minimum_operands = 1,
        .maximum_operands = 1};
    const args_option options[] = {{NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {NULL, NULL}};
    static const char *const SHELLS[] = {"bash", "zsh", "fish", NULL};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    for (int i = 0; SHELLS[i] != NULL; i++)
        if (strcmp(argv[1], SHELLS[i]) == 0) {
            cli_print_completion(argv[1], SUBCOMMANDS, DESCRIBED);
            return CLI_OK;
        }
    args_complain("completion", "no shell '%s' is known; there are bash, zsh and fish", argv[1]);
    return CLI_USAGE;
}

static int command_man(int argc, char **argv)
{
    static const args_command COMMAND = {.name = "man",
                                         .operands = "[COMMAND]",
                                         .description =
                                             "Prints the manual page of tribo or of one of its "
                                             "commands as roff.\n",
                                         .examples = "  tribo man | man -l -\n"
                                                     "  tribo man run > tribo-run.1\n",
                                         .maximum_operands = 1};
    const args_option options[] = {{NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    const cli_subcommand *command = operands > 0 ? find_subcommand(argv[1]) : NULL;
    if (operands > 0 && (command == NULL || command->function == command_help)) return CLI_USAGE;
    cli_print_manual(command, SUBCOMMANDS, COUNT);
    return CLI_OK;
}

static int command_help(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "help") == 0 || argv[1][0] == '-') {
        print_overview(stdout);
        return CLI_OK;
    }
    const cli_subcommand *command = find_subcommand(argv[1]);
    if (command == NULL) return CLI_USAGE;
    char name[32], help[] = "--help";
    snprintf(name, sizeof name, "%s", command->name);
    char *arguments[] = {name, help, NULL};
    return command->function(2, arguments);
}

int main(int argc, char **argv)
{
    int code = CLI_USAGE;
    if (argc < 2) {
        print_overview(stderr);
    } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview(stdout);
        code = CLI_OK;
    } else {
        char version[] = "version";
        if (strcmp(argv[1], "--version") == 0) argv[1] = version;
        const cli_subcommand *command = find_subcommand(argv[1]);
        if (command != NULL) code = command->function(argc - 1, argv + 1);
    }

    /* a full disk or a closed pipe is a failure like any other */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == CLI_OK) {
        fprintf(stderr, "tribo: output could not be written: %s\n", strerror(errno));
        code = CLI_FAILED;
    }
    return code;
}
