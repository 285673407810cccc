/* tribo bench modelica: the tables of Göteman and Roxling again, one core beside the card.
 *
 * Each row calls a function of tests/data/modelica on the processor and on the card with the same
 * inputs, compares the outputs, and prints the thesis's figures behind. Times are of whole calls,
 * transfers included, the fastest of a few after a first one. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_thesis.h"
#include "common/function_values.h"
#include "common/args.h"
#include "common/cli.h"
#include "common/files.h"
#include "common/json.h"
#include "common/plot.h"
#include "tribo_function.h"

enum { SOURCE_LIMIT = 1 << 20, MOST_VALUES = 12 };

static const args_command COMMAND = {
    .name = "bench",
    .operands = "modelica",
    .description =
        "Runs the tables of Göteman and Roxling again: functions of Modelica on one core "
        "and on a card.\nFigures of the thesis stand in parentheses; without a card its "
        "columns are empty.\n",
    .examples = "  tribo bench modelica\n"
                "  tribo bench modelica --table matmul --json\n"
                "  tribo bench modelica --plot tables.svg\n",
    .minimum_operands = 1,
    .maximum_operands = 1};

typedef struct modelica_bench {
    const char *models, *table, *picture;
    bool json;
    plot plot;
    int64_t steps;
    int failed;
} modelica_bench;

/* One comparison: times in s, 0 where there is no card. */
typedef struct row {
    char name[64];
    double cpu, gpu, first, kernel, difference;
    double thesis_cpu, thesis_gpu, thesis_speedup; /* 0: not in the thesis */
    int64_t rounds;                                /* calls that the times are multiplied by */
} row;

/* ---- calls ---- */

static tb_function_program *load(modelica_bench *b, const char *file)
{
    char path[4096], *text = NULL;
    size_t size = 0;
    tb_error error = {0};
    tb_function_program *program = NULL;
    snprintf(path, sizeof path, "%s/%s", b->models, file);
    tb_status status = files_read(path, SOURCE_LIMIT, &text, &size, &error);
    if (status == TB_OK) status = tb_function_compile(text, size, path, &program, NULL, &error);
    free(text);
    if (status != TB_OK) {
        cli_complain(&error);
        b->failed++;
    }
    return program;
}

/* the fastest of a few calls on a backend, and the outputs of the last; false: it failed */
static bool time_calls(const tb_function_program *program, int32_t function,
                       tb_function_backend backend, const tb_function_value *inputs,
                       tb_function_value *outputs, int32_t count, row *r, tb_error *error)
{
    tb_function_options options = tb_function_defaults();
    tb_function_timing timing;
    double best = DBL_MAX, spent = 0;
    options.backend = backend;
    options.seconds = 600;
    options.memory_bytes = UINT64_C(8) << 30;
    for (int k = 0; k < 12 && (k < 2 || spent < 0.3); k++) {
        for (int32_t i = 0; i < count; i++) tb_function_value_free(&outputs[i]);
        if (tb_function_call(program, function, &options, inputs, outputs, &timing, error) != TB_OK)
            return false;
        if (k == 0 && backend == TB_FUNCTION_GPU)
            r->first = timing.seconds + timing.compile_seconds;
        if (timing.seconds < best) r->kernel = timing.kernel_seconds;
        best = timing.seconds < best ? timing.seconds : best;
        spent += timing.seconds;
    }
    if (backend == TB_FUNCTION_GPU)
        r->gpu = best * (double)r->rounds;
    else
        r->cpu = best * (double)r->rounds;
    return true;
}

static void draw_row(modelica_bench *b, const row *r)
{
    const bool card = r->gpu > 0;
    const double values[] = {r->cpu, card ? r->gpu : NAN, card ? r->cpu / r->gpu : NAN,
                             r->thesis_speedup > 0 ? r->thesis_speedup : NAN};
    if (b->picture != NULL) plot_sample(&b->plot, b->plot.samples + 1, values);
}

static tb_status begin_plot(modelica_bench *b, tb_error *error)
{
    tb_status status = plot_check_path(b->picture, error);
    if (status == TB_OK)
        status = plot_begin(&b->plot, "tribo bench modelica: one core and a card",
                            "row of the tables", error);
    if (status != TB_OK) return status;
    const int32_t seconds = plot_add_panel(&b->plot, "seconds", true, false);
    plot_add_series(&b->plot, seconds, "one core");
    plot_add_series(&b->plot, seconds, "card");
    const int32_t speedup = plot_add_panel(&b->plot, "speed-up", true, false);
    plot_add_series(&b->plot, speedup, "here");
    plot_add_series(&b->plot, speedup, "thesis");
    return TB_OK;
}

static void print_row(const modelica_bench *b, const char *table, const row *r)
{
    const double speedup = r->gpu > 0 ? r->cpu / r->gpu : 0;
    if (b->json) {
        json_t *object = json_object();
        json_object_set_new(object, "table", json_string(table));
        json_object_set_new(object, "row", json_string(r->name));
        json_object_set_new(object, "cpu_seconds", json_finite(r->cpu));
        json_object_set_new(object, "gpu_seconds", json_finite(r->gpu));
        json_object_set_new(object, "kernel_seconds", json_finite(r->kernel));
        json_object_set_new(object, "first_call_seconds", json_finite(r->first));
        json_object_set_new(object, "speedup", json_finite(speedup));
        json_object_set_new(object, "difference", json_finite(r->difference));
        json_object_set_new(object, "thesis_speedup", json_finite(r->thesis_speedup));
        json_print(stdout, object);
        return;
    }
    printf("%-8s %-22s %11.6f s", table, r->name, r->cpu);
    if (r->gpu > 0)
        printf(" %11.6f s %8.1fx  differs %.1e  first %.2f s", r->gpu, speedup, r->difference,
               r->first);
    if (r->thesis_cpu > 0) printf("  (%g s, %g s,", r->thesis_cpu, r->thesis_gpu);
    if (r->thesis_speedup > 0)
        printf("%s%.2fx)", r->thesis_cpu > 0 ? " " : "  (", r->thesis_speedup);
    printf("\n");
    fflush(stdout);
}

/* Measures a row; takes the inputs. */
static void measure(modelica_bench *b, const char *table, const tb_function_program *program,
                    const char *name, tb_function_value *inputs, int32_t count, row *r)
{
    tb_function_value on_cpu[MOST_VALUES] = {{0}}, on_gpu[MOST_VALUES] = {{0}};
    tb_function_info info;
    tb_error error = {0};
    const int32_t function = tb_function_find(program, name);
    tb_function_describe(program, function, &info);
    if (r->rounds == 0) r->rounds = 1;
    bool good =
        time_calls(program, function, TB_FUNCTION_CPU, inputs, on_cpu, info.outputs, r, &error);
    if (good &&
        !time_calls(program, function, TB_FUNCTION_GPU, inputs, on_gpu, info.outputs, r, &error)) {
        good = error.status == TB_UNAVAILABLE;
        r->gpu = 0;
    } else if (good) {
        for (int32_t k = 0; k < info.outputs; k++)
            if (on_cpu[k].type == TB_FUNCTION_REAL)
                r->difference = fmax(r->difference, bench_furthest(&on_cpu[k], &on_gpu[k]));
    }
    if (good) {
        print_row(b, table, r);
        draw_row(b, r);
    } else {
        cli_complain(&error);
        b->failed++;
    }
    for (int32_t k = 0; k < count; k++) tb_function_value_free(&inputs[k]);
    for (int32_t k = 0; k < MOST_VALUES; k++) {
        tb_function_value_free(&on_cpu[k]);
        tb_function_value_free(&on_gpu[k]);
    }
}

/* ---- tables ---- */

static void table_matmul(modelica_bench *b)
{
    static const struct {
        int64_t n;
        double cpu, gpu, speedup;
    } ROWS[] = {{50, 0.000453, 0.000438, 1.03},
                {100, 0.00362, 0.0018, 2.01},
                {200, 0.0275, 0.00996, 2.76},
                {500, 0.506, 0.142, 3.56},
                {1000, 6.37, 1.11, 5.74}};
    tb_function_program *program = load(b, "matmul.mo");
    for (size_t k = 0; program != NULL && k < sizeof ROWS / sizeof ROWS[0]; k++) {
        const int64_t n = ROWS[k].n;
        row r = {.thesis_cpu = ROWS[k].cpu,
                 .thesis_gpu = ROWS[k].gpu,
                 .thesis_speedup = ROWS[k].speedup};
        snprintf(r.name, sizeof r.name, "n = %lld", (long long)n);
        tb_function_value inputs[] = {bench_matrix(n, n, 1, 0.5), bench_matrix(n, n, 1, 0.5)};
        measure(b, "4.2", program, "multiply", inputs, 2, &r);
        if (n < 500) continue;
        row again = {.thesis_speedup = ROWS[k].speedup};
        snprintf(again.name, sizeof again.name, "n = %lld, any order", (long long)n);
        tb_function_value same[] = {bench_matrix(n, n, 1, 0.5), bench_matrix(n, n, 1, 0.5)};
        measure(b, "4.2", program, "multiply_in_any_order", same, 2, &again);
    }
    tb_function_destroy(program);
}

static void table_shallow(modelica_bench *b)
{
    static const int64_t SIZES[] = {32, 64, 128, 256}, STEPS[] = {1, 10, 100, 1000, 20000};
    static const double SPEEDUP[5][4] = {{0.36, 0.77, 0.91, 1.00},
                                         {0.46, 0.94, 1.19, 1.42},
                                         {0.77, 1.89, 3.03, 3.19},
                                         {1.01, 3.06, 5.30, 5.12},
                                         {1.09, 3.02, 5.05, 5.20}};
    tb_function_program *program = load(b, "shallow_water.mo");
    for (int s = 0; program != NULL && s < 5; s++)
        for (int k = 0; k < 4; k++) {
            const int64_t n = SIZES[k];
            row r = {.thesis_speedup = SPEEDUP[s][k], .rounds = 20000 / STEPS[s]};
            snprintf(r.name, sizeof r.name, "%lld^2, n_steps %lld", (long long)n,
                     (long long)STEPS[s]);
            /* a stable step of the explicit method: dt < dx / sqrt(2 g H) */
            tb_function_value inputs[] = {bench_matrix(n, n, 0, 1),
                                          bench_matrix(n + 1, n, 0, 0),
                                          bench_matrix(n, n + 1, 0, 0),
                                          bench_number(8),
                                          bench_number(32),
                                          bench_number(1.0 / (double)n),
                                          bench_whole(STEPS[s])};
            measure(b, "4.3", program, "euler", inputs, 7, &r);
        }
    tb_function_destroy(program);
}

static void table_plates(modelica_bench *b)
{
    static const struct {
        int64_t nx, ny;
        double cpu, gpu, speedup;
    } ROWS[] = {{256, 256, 17.2, 12.1, 1.42}, {512, 512, 91.7, 42.9, 2.13},
                {500, 200, 26, 18.1, 1.43},   {1000, 100, 28.6, 20.2, 1.41},
                {2000, 200, 103, 65.2, 1.57}, {200, 2000, 104, 61.3, 1.69}};
    tb_function_program *program = load(b, "cold_plates.mo");
    for (size_t k = 0; program != NULL && k < sizeof ROWS / sizeof ROWS[0]; k++) {
        const int64_t nx = ROWS[k].nx, ny = ROWS[k].ny;
        row r = {.thesis_cpu = ROWS[k].cpu,
                 .thesis_gpu = ROWS[k].gpu,
                 .thesis_speedup = ROWS[k].speedup,
                 .rounds = 1000 / b->steps};
        snprintf(r.name, sizeof r.name, "%lld x %lld", (long long)nx, (long long)ny);
        tb_function_value inputs[] = {bench_matrix(nx, ny, 295, 0), bench_array(1, &nx, 100500, 0),
                                      bench_array(1, &nx, 295, 0), bench_number(1e-7),
                                      bench_whole(b->steps)};
        measure(b, "4.4", program, "simulate", inputs, 5, &r);
    }
    tb_function_destroy(program);
}

static void table_airflow(modelica_bench *b)
{
    tb_function_program *program = load(b, "airflow.mo");
    row r = {.thesis_speedup = 2.48 / 2.42};
    const int64_t size[3] = {96, 96, 96};
    snprintf(r.name, sizeof r.name, "96^3 cells");
    tb_function_value inputs[] = {bench_array(3, size, 295, 10), bench_array(3, size, 0, 1),
                                  bench_array(3, size, 0, 1), bench_array(3, size, 0, 1),
                                  bench_number(0.1)};
    if (program != NULL) measure(b, "3.1", program, "flows", inputs, 5, &r);
    tb_function_destroy(program);
}

static void table_stam(modelica_bench *b)
{
    static const int64_t SIZES[] = {128, 256, 512};
    tb_function_program *program = load(b, "stam.mo");
    for (int k = 0; program != NULL && k < 3; k++) {
        const int64_t n = SIZES[k] + 2;
        row r = {.thesis_speedup = SIZES[k] >= 256 ? 5 : 0};
        snprintf(r.name, sizeof r.name, "two of %lld^2, 10 steps", (long long)SIZES[k]);
        tb_function_value inputs[] = {bench_matrix(n, n, 0, 0.1),
                                      bench_matrix(n, n, 0, 0.1),
                                      bench_matrix(n, n, 1, 1),
                                      bench_matrix(n, n, 0, 0.1),
                                      bench_matrix(n, n, 0, 0.1),
                                      bench_matrix(n, n, 1, 1),
                                      bench_whole(10)};
        measure(b, "Stam", program, "coupled", inputs, 7, &r);
    }
    tb_function_destroy(program);
}

int command_bench_modelica(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(modelica_bench *b);
    } TABLES[] = {{"matmul", table_matmul},
                  {"shallow", table_shallow},
                  {"plates", table_plates},
                  {"airflow", table_airflow},
                  {"stam", table_stam}};
    modelica_bench b = {.models = "tests/data/modelica", .steps = 1000};
    const args_option options[] = {
        {"table", "NAME", "matmul, shallow, plates, airflow or stam (all)", ARGS_TEXT, &b.table, 0,
         0, NULL},
        {"models", "FOLDER", "where the models are (tests/data/modelica)", ARGS_TEXT, &b.models, 0,
         0, NULL},
        {"steps", "N", "of a call of the cold plates; its times are scaled to 1000 (1000)",
         ARGS_INTEGER, &b.steps, 1, 1000, NULL},
        {"json", NULL, "one JSON object a row", ARGS_FLAG, &b.json, 0, 0, NULL},
        {"plot", "FILE.svg", "draw times and speed-ups of all rows", ARGS_TEXT, &b.picture, 0, 0,
         NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    tb_error error = {0};
    bool found = false;
    if (b.picture != NULL && begin_plot(&b, &error) != TB_OK) {
        args_complain(COMMAND.name, "%s", error.message);
        return CLI_USAGE;
    }
    if (!b.json) printf("%-8s %-22s %13s %13s\n", "table", "row", "one core", "card");
    for (size_t k = 0; k < sizeof TABLES / sizeof TABLES[0]; k++) {
        if (b.table != NULL && strcmp(b.table, TABLES[k].name) != 0) continue;
        found = true;
        TABLES[k].run(&b);
    }
    if (!found) {
        args_complain(COMMAND.name, "no table '%s': matmul, shallow, plates, airflow or stam",
                      b.table);
        return CLI_USAGE;
    }
    if (b.picture != NULL && plot_write(&b.plot, b.picture, &error) != TB_OK) {
        cli_complain(&error);
        b.failed++;
    }
    plot_free(&b.plot);
    return b.failed > 0 ? CLI_FAILED : CLI_OK;
}
