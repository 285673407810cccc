/* tribo bench: the cost of a step on this machine, in ratios that carry over to other machines. */
#include "bench/bench.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/args.h"
#include "bench/bench_schurpa.h"
#include "bench/bench_thesis.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/progress.h"
#include "simulation/report.h"
#include "simulation/simulation.h"

enum { GROWTH_SWEEPS = 20, THREAD_WORLDS = 32, SETTLING_STEPS = 5, MOST_WORLDS = 64 };

static const args_command COMMAND = {
    .name = "bench",
    .operands = "[NAME] [MODEL]",
    .description =
        "Runs small benchmarks and prints medians, the smallest and the largest of all repeats, "
        "and\n"
        "ratios to the first case. Without a name all run that need no model.\n"
        "  spheres   cubic piles of 64 to 4,096 touching spheres, a fixed number of sweeps a step\n"
        "  solvers   every solver, a pile of 216 spheres to a residual of 1e-8, cold\n"
        "  threads   32 worlds of 27 spheres on 1, 2 and all processors\n"
        "  schurpa   active sets on quadratic programs with a band: one factorization and borders\n"
        "            against one an iteration (Litven's table 7.1: --n 8000 --half-bandwidth "
        "1000)\n"
        "  model     steps of a MODEL of yours, from its second simulated second on\n"
        "  betz, poulsen, nuetzi, goteman, litven   tables of these theses beside their figures: "
        "see "
        "'tribo "
        "bench betz --help'\n"
        "  modelica  functions of Modelica on one core and on a card, beside the figures of "
        "Göteman "
        "and Roxling\n",
    .examples = "  tribo bench\n"
                "  tribo bench spheres --repeats 21 --json\n"
                "  tribo bench schurpa --n 8000 --half-bandwidth 1000 --repeats 1\n"
                "  tribo bench model grasp.xml\n",
    .minimum_operands = 0,
    .maximum_operands = 2};

/* One case's worlds, ready to be stepped. */
typedef struct bench_run {
    tb_model *model;
    tb_stepper *stepper;
    tb_state *worlds[MOST_WORLDS];
    int32_t number_of_worlds;
    int32_t steps; /* of one repeat */
    tb_certificate certificate;
} bench_run;

static void run_close(bench_run *run)
{
    for (int32_t i = 0; i < run->number_of_worlds; i++) tb_state_destroy(run->worlds[i]);
    tb_stepper_destroy(run->stepper);
    tb_model_destroy(run->model);
    memset(run, 0, sizeof *run);
}

/* Takes the model. Steps the worlds until contacts have formed and memory is warm. */
static tb_status run_open(bench_run *run, tb_model *model, const tb_step_options *options,
                          int32_t worlds, int32_t settling, int32_t steps, tb_error *error)
{
    memset(run, 0, sizeof *run);
    run->model = model;
    run->steps = steps;
    tb_status status = tb_stepper_create(options, &run->stepper, error);
    for (int32_t i = 0; i < worlds && status == TB_OK; i++) {
        status = tb_state_create(model, &run->worlds[i], error);
        if (status == TB_OK) run->number_of_worlds++;
    }
    if (status == TB_OK)
        status = tb_step_batch(run->stepper, run->worlds, worlds, settling, NULL, error);
    if (status == TB_OK)
        status = tb_step(run->stepper, run->worlds[0], 1, &run->certificate, error);
    if (status != TB_OK) run_close(run);
    return status;
}

static double run_time(void *context, tb_error *error)
{
    bench_run *run = context;
    const double start = progress_clock();
    const tb_status status =
        tb_step_batch(run->stepper, run->worlds, run->number_of_worlds, run->steps, NULL, error);
    return status == TB_OK ? progress_clock() - start : -1;
}

/* ---- the benchmarks: each sets up its cases ---- */

static tb_status set_up_spheres(bench *b, bench_run *runs, tb_error *error)
{
    static const int SIDES[] = {4, 8, 12, 16};
    tb_step_options options = tb_step_defaults();
    options.threads = 1;
    options.solve.threads = 1;
    options.solve.tolerance = DBL_MIN; /* never reached: every step makes all sweeps */
    options.solve.maximum_iterations = GROWTH_SWEEPS;
    b->unit = "s per contact and sweep";
    for (int i = 0; i < 4; i++) {
        tb_model *model = NULL;
        tb_status status = bench_pile(SIDES[i], &model, error);
        if (status == TB_OK)
            status = run_open(&runs[i], model, &options, 1, SETTLING_STEPS, 2, error);
        if (status != TB_OK) return status;
        bench_case *c = &b->list[b->cases++];
        const double contacts = runs[i].certificate.contacts > 0 ? runs[i].certificate.contacts : 1;
        snprintf(c->label, sizeof c->label, "%d spheres, %.0f contacts",
                 SIDES[i] * SIDES[i] * SIDES[i], contacts);
        c->size = contacts;
        c->amount = contacts * GROWTH_SWEEPS * runs[i].steps;
        c->context = &runs[i];
    }
    return TB_OK;
}

static tb_status set_up_solvers(bench *b, bench_run *runs, tb_error *error)
{
    b->unit = "s a step";
    for (int i = 0; tb_solver_name(i) != NULL && i < BENCH_CASES; i++) {
        tb_step_options options = tb_step_defaults();
        options.threads = 1;
        options.solve.threads = 1;
        options.solve.solver = tb_solver_name(i);
        options.solve.tolerance = 1e-8;
        options.solve.warm_start = false;
        options.solve.maximum_iterations = 20000;
        tb_model *model = NULL;
        tb_status status = bench_pile(6, &model, error);
        if (status == TB_OK)
            status = run_open(&runs[i], model, &options, 1, SETTLING_STEPS, 2, error);
        if (status == TB_UNSUPPORTED) continue; /* a solver for the plane */
        if (status != TB_OK) return status;
        bench_case *c = &b->list[b->cases++];
        snprintf(c->label, sizeof c->label, "%s, %d contacts", tb_solver_name(i),
                 (int)runs[i].certificate.contacts);
        c->amount = runs[i].steps;
        c->context = &runs[i];
    }
    return TB_OK;
}

static tb_status set_up_threads(bench *b, bench_run *runs, tb_error *error)
{
    static const int32_t THREADS[] = {1, 2, 0};
    b->unit = "s a step of a world";
    for (int i = 0; i < 3; i++) {
        tb_step_options options = tb_step_defaults();
        options.threads = THREADS[i];
        options.solve.threads = THREADS[i];
        tb_model *model = NULL;
        tb_status status = bench_pile(3, &model, error);
        if (status == TB_OK)
            status = run_open(&runs[i], model, &options, THREAD_WORLDS, SETTLING_STEPS, 10, error);
        if (status != TB_OK) return status;
        bench_case *c = &b->list[b->cases++];
        if (THREADS[i] > 0)
            snprintf(c->label, sizeof c->label, "%d thread%s", (int)THREADS[i],
                     THREADS[i] > 1 ? "s" : "");
        else
            snprintf(c->label, sizeof c->label, "all processors");
        c->amount = (double)runs[i].steps * THREAD_WORLDS;
        c->context = &runs[i];
    }
    return TB_OK;
}

static tb_status set_up_model(bench *b, bench_run *runs, const char *path, tb_error *error)
{
    tb_model *model = NULL;
    tb_status status = simulation_load_model(path, NULL, NULL, true, &model, error);
    if (status != TB_OK) return status;
    tb_step_options options = tb_step_defaults();
    options.threads = 1;
    options.solve.threads = 1;
    const double settling = fmin(rint(1 / tb_model_dt(model)), 100000);
    status = run_open(&runs[0], model, &options, 1, (int32_t)settling, 100, error);
    if (status != TB_OK) return status;
    bench_case *c = &b->list[b->cases++];
    snprintf(c->label, sizeof c->label, "%d contacts, %d rows", (int)runs[0].certificate.contacts,
             (int)runs[0].certificate.rows);
    b->unit = "s a step";
    c->amount = runs[0].steps;
    c->context = &runs[0];
    return TB_OK;
}

/* ---- reports ---- */

static void print_text(const bench *b)
{
    printf("%s: %s, median (smallest to largest) of %d\n", b->name, b->unit, b->repeats);
    for (int i = 0; i < b->cases; i++) {
        const bench_summary t = bench_time(b, i), r = bench_ratio(b, i);
        char median[32], low[32], high[32];
        printf("  %-32s %9s (%s to %s)", b->list[i].label,
               report_quantity(t.median, "s", median, sizeof median),
               report_quantity(t.low, "s", low, sizeof low),
               report_quantity(t.high, "s", high, sizeof high));
        if (i > 0) printf(", ratio %.3g (%.3g to %.3g)", r.median, r.low, r.high);
        printf("\n");
    }
    if (b->exponent > 0) printf("  time grows with contacts to the power of %.3f\n", b->exponent);
}

static json_t *summary_json(bench_summary s)
{
    json_t *object = json_object();
    json_object_set_new(object, "median", json_finite(s.median));
    json_object_set_new(object, "low", json_finite(s.low));
    json_object_set_new(object, "high", json_finite(s.high));
    return object;
}

static void print_json(const bench *b)
{
    json_t *object = json_object(), *cases = json_array();
    json_object_set_new(object, "benchmark", json_text(b->name));
    json_object_set_new(object, "unit", json_text(b->unit));
    json_object_set_new(object, "repeats", json_integer(b->repeats));
    if (b->exponent > 0) json_object_set_new(object, "exponent", json_finite(b->exponent));
    for (int i = 0; i < b->cases; i++) {
        json_t *one = json_object();
        json_object_set_new(one, "label", json_text(b->list[i].label));
        if (b->list[i].size > 0) json_object_set_new(one, "contacts", json_finite(b->list[i].size));
        json_object_set_new(one, "time", summary_json(bench_time(b, i)));
        json_object_set_new(one, "ratio", summary_json(bench_ratio(b, i)));
        json_array_append_new(cases, one);
    }
    json_object_set_new(object, "cases", cases);
    json_print(stdout, object);
}

static const char *const NAMES[] = {"spheres", "solvers", "threads", "schurpa", "model", NULL};
enum { SPHERES, SOLVERS, THREADS, SCHURPA, MODEL };

static tb_status run_one(int which, const char *path, int repeats, bool json, tb_error *error)
{
    bench b = {.name = NAMES[which], .repeats = repeats};
    bench_run runs[BENCH_CASES];
    memset(runs, 0, sizeof runs);
    tb_status status = TB_OK;
    switch (which) {
    case SPHERES: status = set_up_spheres(&b, runs, error); break;
    case SOLVERS: status = set_up_solvers(&b, runs, error); break;
    case THREADS: status = set_up_threads(&b, runs, error); break;
    case MODEL: status = set_up_model(&b, runs, path, error); break;
    }
    if (status == TB_OK) status = bench_measure(&b, run_time, error);
    if (status == TB_OK && which == SPHERES) b.exponent = bench_exponent(&b);
    if (status == TB_OK && json) print_json(&b);
    if (status == TB_OK && !json) print_text(&b);
    fflush(stdout);
    for (int i = 0; i < BENCH_CASES; i++) run_close(&runs[i]);
    return status;
}

int command_bench(int argc, char **argv)
{
    int64_t repeats = 11;
    int64_t n = 1000, half_bandwidth = 125, delta = -1, seed = 1;
    int precision = TB_DOUBLE, direct = 0, backend = TB_BACKEND_CPU;
    bool json = false;
    static const char *const PRECISIONS[] = {"double", "single", NULL};
    static const char *const DIRECTS[] = {"blocks", "lapack", NULL};
    static const char *const BACKENDS[] = {"cpu", "gpu", "auto", NULL};
    const args_option options[] = {
        {"repeats", "N", "of every case (11)", ARGS_INTEGER, &repeats, 1, BENCH_REPEATS, NULL},
        {"json", NULL, "one JSON object a benchmark", ARGS_FLAG, &json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_option of_schurpa[] = {
        {"n", "N", "variables (1000)", ARGS_INTEGER, &n, 1, 1000000, NULL},
        {"half-bandwidth", "N", "of the Hessian (125)", ARGS_INTEGER, &half_bandwidth, 0, 1000000,
         NULL},
        {"delta", "N", "bounds that are wrong at the start (0, 10, ... 50)", ARGS_INTEGER, &delta,
         0, 1000000, NULL},
        {"precision", "NAME", "of the numbers (double)", ARGS_CHOICE, &precision, 0, 0, PRECISIONS},
        {"direct", "NAME", "factorization of DIRECT; SCHURPA always uses blocks (blocks)",
         ARGS_CHOICE, &direct, 0, 0, DIRECTS},
        {"seed", "N", "of the random numbers (1)", ARGS_INTEGER, &seed, 0, INT32_MAX, NULL},
        {"backend", "NAME", "where programs are solved (cpu)", ARGS_CHOICE, &backend, 0, 0,
         BACKENDS},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {
        {"options", options}, {"options of schurpa", of_schurpa}, {NULL, NULL}};
    int operands = 0;
    if (argc > 1 && strcmp(argv[1], "modelica") == 0) return command_bench_modelica(argc, argv);
    if (argc > 1 && bench_thesis_is(argv[1])) return command_bench_thesis(argc, argv);
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;

    int only = -1;
    for (int i = 0; operands > 0 && NAMES[i] != NULL; i++)
        if (strcmp(NAMES[i], argv[1]) == 0) only = i;
    if (operands > 0 && only < 0) {
        const char *nearest = args_nearest(argv[1], NAMES);
        args_complain(COMMAND.name, "no benchmark '%s'; did you mean '%s'?", argv[1],
                      nearest != NULL ? nearest : NAMES[0]);
        return CLI_USAGE;
    }
    if ((only == MODEL) != (operands == 2)) {
        args_complain(COMMAND.name,
                      only == MODEL ? "MODEL is missing" : "only 'model' takes a MODEL");
        return CLI_USAGE;
    }

    if (direct == 1 && backend != TB_BACKEND_CPU) {
        args_complain(COMMAND.name, "--direct lapack is for --backend cpu");
        return CLI_USAGE;
    }
    if (half_bandwidth >= n || delta > n) {
        args_complain(COMMAND.name, half_bandwidth >= n ? "--half-bandwidth must be below --n"
                                                        : "--delta must not be above --n");
        return CLI_USAGE;
    }

    const bench_schurpa_options schurpa = {.n = (int32_t)n,
                                           .half_bandwidth = (int32_t)half_bandwidth,
                                           .delta = (int32_t)delta,
                                           .repeats = (int32_t)repeats,
                                           .seed = (uint64_t)seed,
                                           .precision = (tb_precision)precision,
                                           .backend = (tb_backend_choice)backend,
                                           .lapack = direct == 1,
                                           .json = json};
    tb_error error = {0};
    tb_status status = TB_OK;
    interrupt_watch();
    for (int i = SPHERES; i <= MODEL && status == TB_OK; i++) {
        if (only >= 0 ? i != only : i == MODEL) continue;
        status = i == SCHURPA ? bench_schurpa(&schurpa, &error)
                              : run_one(i, i == MODEL ? argv[2] : NULL, (int)repeats, json, &error);
    }
    if (status != TB_OK) cli_complain(&error);
    return cli_exit_code(status);
}
