/* tribo solve: contact problem files, each solved from zero and judged by the field's residual. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/progress.h"
#include "simulation/report.h"
#include "simulation/simulation.h"
#include "tribo/v1/solve.pb-c.h"

/* The literature's tolerance of a solved problem, and enough sweeps for the stubborn files. */
static const double DEFAULT_TOLERANCE = 1e-8;
enum { DEFAULT_ITERATIONS = 100000, ALL_OPERANDS = 1 << 20, REMOTE_FILE_LIMIT = 1 << 30 };

static const args_command COMMAND = {
    .name = "solve",
    .operands = "FILE...",
    .description =
        "Solves contact problems (text or FCLIB HDF5; W q mu, or M H q b mu) from zero and prints "
        "one\n"
        "line for each. The residual is the natural map at rho = 1 in De Saxce's form over ||q||,\n"
        "computed in double from the file's numbers, whatever the solver believed. On a GPU, "
        "full-sor\n"
        "iterates on the stored T; where its convergence is too slow, the CPU solves instead, and "
        "the\n"
        "line names its solver. A file that "
        "cannot\n"
        "be read makes the exit code 1, else one that is not solved makes it 3. 'tribo version' "
        "lists\n"
        "the solvers.\n",
    .examples = "  tribo solve pile.dat\n"
                "  tribo solve *.hdf5 --tolerance 1e-10 --max-iterations 1000000\n"
                "  tribo solve --solver jor --storage dense --json problems/*.dat\n"
                "  tribo solve pile.dat --backend gpu\n"
                "  tribo solve pile.dat --server robot7:7410\n",
    .minimum_operands = 1,
    .maximum_operands = ALL_OPERANDS};

typedef struct solve {
    tb_solve_options options;
    device_options device;
    tbc_client *client; /* a daemon solves; NULL: here */
    bool json;
    bool unread, unsolved;
} solve;

/* A file name that fits its column: its end says more than its beginning. */
static void print_name(const char *path, int width)
{
    const int length = (int)strlen(path);
    if (length > width)
        printf("...%s", path + length - (width - 3));
    else
        printf("%-*s", width, path);
}

static void print_failure(solve *s, const char *path, const tb_error *error)
{
    s->unread = true;
    if (s->json) {
        json_t *object = json_error(error);
        json_object_set_new(object, "file", json_text(path));
        json_print(stdout, object);
    }
    fflush(stdout);
    cli_complain(error);
}

static void print_result(solve *s, const char *path, const tb_problem_info *info,
                         const tb_problem_result *result)
{
    if (result->status != TB_OK) s->unsolved = true;
    if (s->json) {
        json_t *object = json_object();
        json_object_set_new(object, "file", json_text(path));
        json_object_set_new(object, "contacts", json_integer(info->contacts));
        json_object_set_new(object, "solver", json_text(result->solver));
        json_object_set_new(object, "backend", json_string(result->on_gpu ? "gpu" : "cpu"));
        json_object_set_new(object, "status", json_string(tb_status_name(result->status)));
        json_object_set_new(object, "residual", json_finite(result->residual));
        json_object_set_new(object, "iterations", json_integer(result->iterations));
        json_object_set_new(object, "seconds", json_finite(result->seconds));
        json_object_set_new(object, "dimension", json_integer(info->dimension));
        json_object_set_new(object, "global", json_boolean(info->global));
        json_object_set_new(object, "asymmetry", json_finite(info->asymmetry));
        if (result->cycle > 0) json_object_set_new(object, "cycle", json_integer(result->cycle));
        json_print(stdout, object);
    } else {
        char seconds[32];
        print_name(path, 44);
        printf(" %8d  %-10s %-14s %9.2e %10d %10s\n", (int)info->contacts, result->solver,
               tb_status_name(result->status), result->residual, (int)result->iterations,
               report_quantity(result->seconds, "s", seconds, sizeof seconds));
    }
    fflush(stdout);
}

/* Sends the file to the daemon, which parses it again. */
static tb_status solve_remote(solve *s, const char *path, tb_problem_result *result,
                              tb_error *error)
{
    Tribo__V1__SolveOptions options = TRIBO__V1__SOLVE_OPTIONS__INIT;
    Tribo__V1__SolveProblemRequest request = TRIBO__V1__SOLVE_PROBLEM_REQUEST__INIT;
    Tribo__V1__SolveProblemResponse *answer = NULL;
    char *bytes = NULL;
    size_t size = 0;
    tb_status status = files_read(path, REMOTE_FILE_LIMIT, &bytes, &size, error);
    if (status != TB_OK) return status;
    const char *slash = strrchr(path, '/');
    options.solver = (char *)(uintptr_t)s->options.solver;
    options.tolerance = s->options.tolerance;
    options.maximum_iterations = s->options.maximum_iterations;
    options.omega = s->options.omega;
    options.colouring = (Tribo__V1__Colouring)(s->options.colouring + 1);
    options.colours = s->options.colours;
    request.source_case = TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_DATA;
    request.data.len = size;
    request.data.data = (uint8_t *)bytes;
    request.name = (char *)(uintptr_t)(slash != NULL ? slash + 1 : path);
    request.options = &options;
    status = TBC_CALL(s->client, "tribo.v1.Solve/SolveProblem", &request, solve_problem_response,
                      &answer, error);
    free(bytes);
    if (status != TB_OK) return status;
    *result = (tb_problem_result){
        .residual = answer->residual, .iterations = answer->iterations, .seconds = answer->seconds};
    snprintf(result->solver, sizeof result->solver, "%s", answer->solver);
    switch (answer->outcome) {
    case TRIBO__V1__OUTCOME__OUTCOME_OK: result->status = TB_OK; break;
    case TRIBO__V1__OUTCOME__OUTCOME_DIVERGED: result->status = TB_DIVERGED; break;
    default: result->status = TB_NOT_CONVERGED; break;
    }
    tbc_free(answer);
    return TB_OK;
}

static tb_backend_choice backend_of(const solve *s)
{
    return s->device.backend == DEVICE_NOT_GIVEN ? TB_BACKEND_CPU
                                                 : (tb_backend_choice)s->device.backend;
}

static int32_t device_of(const solve *s)
{
    return s->device.index == DEVICE_NOT_GIVEN ? 0 : (int32_t)s->device.index;
}

static void solve_file(solve *s, const char *path)
{
    tb_error error = {0};
    tb_problem_file *file = NULL;
    tb_problem_result result = {0};
    tb_status status = tb_problem_load(path, &file, &error);
    if (status == TB_OK) {
        const tb_problem_info info = tb_problem_describe(file);
        status = s->client != NULL ? solve_remote(s, path, &result, &error)
                                   : tb_problem_solve_on(file, backend_of(s), device_of(s),
                                                         &s->options, NULL, NULL, &result, &error);
        /* unsolved is a result: it says how far the solver came */
        if (status == TB_OK || status == TB_NOT_CONVERGED || status == TB_DIVERGED) {
            if (result.status == TB_OK) result.status = status;
            print_result(s, path, &info, &result);
            status = TB_OK;
        }
    }
    if (status != TB_OK) print_failure(s, path, &error);
    tb_problem_destroy(file);
}

static bool is_interrupted(void *context)
{
    (void)context;
    return interrupt_requested();
}

/* Solves files, a line each; the exit code. */
static int solve_files(solve *s, char **names, int files, bool quiet)
{
    if (!s->json)
        printf("%-44s %8s  %-10s %-14s %9s %10s %10s\n", "file", "contacts", "solver", "status",
               "residual", "iterations", "time");
    interrupt_watch();
    progress bar = progress_begin("solving", files, quiet);
    for (int i = 0; i < files && !interrupt_requested(); i++) {
        solve_file(s, names[i]);
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    if (interrupt_requested()) return CLI_INTERRUPTED;
    return s->unread ? CLI_FAILED : s->unsolved ? CLI_UNSOLVED : CLI_OK;
}

int command_solve(int argc, char **argv)
{
    simulation_options shared = simulation_defaults();
    args_option list[SIMULATION_OPTIONS];
    simulation_option_list(&shared, list);
    shared.tolerance = DEFAULT_TOLERANCE;
    shared.maximum_iterations = DEFAULT_ITERATIONS;

    /* the stepping options that apply to a single problem */
    static const char *const WANTED[] = {"solver",  "tolerance", "max-iterations", "omega",
                                         "storage", "r",         "colouring",      "colours",
                                         "threads", "backend",   "device",         NULL};
    solve s = {.options = tb_solve_defaults()};
    args_option options[SIMULATION_OPTIONS + 3];
    char tolerance[64], iterations[64];
    int count = 0;
    snprintf(tolerance, sizeof tolerance, "residual that counts as solved (%g)", DEFAULT_TOLERANCE);
    snprintf(iterations, sizeof iterations, "of the solver, each file (%d)", DEFAULT_ITERATIONS);
    for (int i = 0; list[i].name != NULL; i++)
        for (int k = 0; WANTED[k] != NULL; k++) {
            if (strcmp(list[i].name, WANTED[k]) != 0) continue;
            options[count] = list[i];
            /* defaults differ from a step's */
            if (list[i].target == &shared.tolerance) options[count].help = tolerance;
            if (list[i].target == &shared.maximum_iterations) options[count].help = iterations;
            if (list[i].target == &shared.device.backend)
                options[count].help = "where problems are solved (cpu)";
            count++;
        }
    bool quiet = false;
    options[count++] = (args_option){
        "json", NULL, "one JSON object a line and nothing else", ARGS_FLAG, &s.json, 0, 0, NULL};
    options[count++] =
        (args_option){"quiet", NULL, "no progress bar", ARGS_FLAG, &quiet, 0, 0, NULL};
    options[count] = (args_option){0};
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&remote, connection);
    connection[0].help = "have a daemon solve: HOST:PORT or unix:PATH";
    const args_group groups[] = {{"options", options}, {"with a daemon", connection}, {NULL, NULL}};

    int files = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &files);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    if (!simulation_check_solver(COMMAND.name, shared.solver)) return CLI_USAGE;
    if (shared.solver != NULL) s.options.solver = shared.solver;
    s.options.tolerance = shared.tolerance;
    s.options.maximum_iterations = (int32_t)shared.maximum_iterations;
    s.options.storage = (tb_storage)shared.storage;
    s.options.r_strategy = (tb_r_strategy)shared.r_strategy;
    s.options.colouring = (tb_solve_colouring)shared.colouring;
    s.options.colours = (int32_t)shared.colours;
    s.options.threads = (int32_t)shared.threads;
    if (shared.omega > 0) s.options.omega = shared.omega;
    s.device = shared.device;
    const char *objection = device_objection(&s.device);
    if (objection == NULL && remote.address != NULL && s.device.backend != DEVICE_NOT_GIVEN)
        objection = "a daemon chooses --backend itself";
    if (objection != NULL) {
        args_complain(COMMAND.name, "%s", objection);
        return CLI_USAGE;
    }
    s.options.cancelled = is_interrupted;

    tb_error error = {0};
    const simulation_options usual = simulation_defaults();
    if (remote.address != NULL &&
        (shared.storage != usual.storage || shared.r_strategy != usual.r_strategy)) {
        args_complain(COMMAND.name, "a daemon chooses --storage and --r itself");
        return CLI_USAGE;
    }
    if (remote.address != NULL && remote_connect(&remote, &s.client, &error) != TB_OK) {
        cli_complain(&error);
        return CLI_FAILED;
    }
    const int code = solve_files(&s, argv + 1, files, quiet);
    tbc_disconnect(s.client);
    return code;
}
