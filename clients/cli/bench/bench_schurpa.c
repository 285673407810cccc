/* The experiment of Litven's section 7.1. A random program with a band and x >= 0 is solved once;
 * then the first delta bounds of the solution's set are flipped and both methods start from that
 * set. The methods alternate, so that other load on the machine affects both. */
#include "bench/bench_schurpa.h"
#include "tribo_qp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/progress.h"

enum { MOST_DELTAS = BENCH_SCHURPA_DELTAS, DELTA_STEP = 10, METHODS = 2 };

static const char *const METHOD_NAMES[METHODS] = {"DIRECT", "SCHURPA"};

/* Measurements of one method from one start. */
typedef struct measure {
    tb_qp_result result;          /* of the last turn */
    double factor[BENCH_REPEATS]; /* s */
    double solve[BENCH_REPEATS];  /* s */
    double total[BENCH_REPEATS];  /* s */
    bool same;                    /* the solve ended in the set of the first solution */
} measure;

typedef struct experiment {
    const bench_schurpa_options *options;
    tb_qp_program program;
    double *hessian, *f, *value, *b, *x, *lambda;
    int32_t *row_start, *column;
    uint8_t *solution, *active;
    int32_t deltas[MOST_DELTAS], number_of_deltas;
    measure (*measures)[METHODS]; /* MOST_DELTAS */
    tb_qp_result cold;
    progress bar;
    double done;
} experiment;

static void close_experiment(experiment *e)
{
    void *const memory[] = {e->hessian,   e->f,      e->value,    e->b,      e->x,       e->lambda,
                            e->row_start, e->column, e->solution, e->active, e->measures};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) free(memory[i]);
}

static tb_status open_experiment(experiment *e, tb_error *error)
{
    const bench_schurpa_options *o = e->options;
    const size_t n = (size_t)o->n;
    e->hessian = malloc(n * ((size_t)o->half_bandwidth + 1) * sizeof *e->hessian);
    e->f = malloc(n * sizeof *e->f);
    e->value = malloc(n * sizeof *e->value);
    e->b = calloc(n, sizeof *e->b);
    e->x = malloc(n * sizeof *e->x);
    e->lambda = malloc(n * sizeof *e->lambda);
    e->row_start = malloc((n + 1) * sizeof *e->row_start);
    e->column = malloc(n * sizeof *e->column);
    e->solution = calloc(n, 1);
    e->active = calloc(n, 1);
    e->measures = calloc(MOST_DELTAS, sizeof *e->measures);
    if (!e->hessian || !e->f || !e->value || !e->b || !e->x || !e->lambda || !e->row_start ||
        !e->column || !e->solution || !e->active || !e->measures)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL,
                        "a program of %d variables with a half-bandwidth of %d needs more memory",
                        (int)o->n, (int)o->half_bandwidth);
    for (int32_t i = 0; i < o->n; i++) { /* -x_i <= 0 */
        e->row_start[i] = e->column[i] = i;
        e->value[i] = -1;
    }
    e->row_start[o->n] = o->n;
    e->program = (tb_qp_program){.n = o->n,
                                 .half_bandwidth = o->half_bandwidth,
                                 .hessian = e->hessian,
                                 .f = e->f,
                                 .constraints = o->n,
                                 .row_start = e->row_start,
                                 .column = e->column,
                                 .value = e->value,
                                 .b = e->b};
    for (int32_t k = 0; k < MOST_DELTAS; k++)
        if (o->delta < 0 && k * DELTA_STEP <= o->n)
            e->deltas[e->number_of_deltas++] = k * DELTA_STEP;
    if (o->delta >= 0) e->deltas[e->number_of_deltas++] = o->delta;
    const double runs = (double)e->number_of_deltas * METHODS * o->repeats;
    e->bar = progress_begin("schurpa", runs + 2, false);
    return tb_qp_random(o->n, o->half_bandwidth, o->seed, e->hessian, e->f, error);
}

static tb_status advance(experiment *e, tb_error *error)
{
    progress_update(&e->bar, ++e->done);
    return interrupt_requested() ? cli_fail(error, TB_CANCELLED, "", 0, NULL, "interrupted")
                                 : TB_OK;
}

static tb_status solve_once(experiment *e, tb_qp_method method, tb_qp_result *result,
                            tb_error *error)
{
    tb_qp_options options = tb_qp_defaults();
    options.method = method;
    options.precision = e->options->precision;
    options.backend = e->options->backend;
    options.system = e->options->lapack && method == TB_QP_PDAS ? TB_QP_BOUNDS_BAND : TB_QP_BOUNDS;
    const tb_status status =
        tb_qp_program_solve(&e->program, &options, e->active, e->x, e->lambda, result, error);
    if (status != TB_OK || result->status == TB_OK) return status;
    return cli_fail(error, result->status, "", 0, NULL,
                    "%s ended after %d iterations with a KKT residual of %.3g",
                    METHOD_NAMES[method], (int)result->iterations, result->kkt.relative);
}

static tb_status run_experiment(experiment *e, tb_error *error)
{
    const size_t n = (size_t)e->options->n;
    tb_status status = advance(e, error);
    if (status == TB_OK) status = solve_once(e, TB_QP_PDAS, &e->cold, error);
    memcpy(e->solution, e->active, n);
    if (status == TB_OK) status = advance(e, error);
    for (int32_t turn = 0; turn < e->options->repeats; turn++)
        for (int32_t d = 0; d < e->number_of_deltas; d++)
            for (int method = 0; method < METHODS && status == TB_OK; method++) {
                measure *m = &e->measures[d][method];
                memcpy(e->active, e->solution, n);
                for (int32_t i = 0; i < e->deltas[d]; i++) e->active[i] = !e->active[i];
                status = solve_once(e, (tb_qp_method)method, &m->result, error);
                m->factor[turn] = m->result.factor_seconds;
                m->solve[turn] = m->result.solve_seconds;
                m->total[turn] = m->result.seconds;
                m->same = memcmp(e->active, e->solution, n) == 0;
                if (status == TB_OK) status = advance(e, error);
            }
    return status;
}

/* ---- reports ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const double *numbers, int32_t count)
{
    double sorted[BENCH_REPEATS];
    memcpy(sorted, numbers, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static double speedup(const experiment *e, int32_t d)
{
    double ratios[BENCH_REPEATS];
    const measure *m = e->measures[d];
    for (int32_t turn = 0; turn < e->options->repeats; turn++)
        ratios[turn] = m[TB_QP_SCHURPA].total[turn] > 0
                           ? m[TB_QP_PDAS].total[turn] / m[TB_QP_SCHURPA].total[turn]
                           : 0;
    return median_of(ratios, e->options->repeats);
}

static const char *precision_name(const experiment *e)
{
    return e->options->precision == TB_FLOAT ? "single" : "double";
}

/* The device that solves; "" for the processor. */
static const char *device_name(const experiment *e, tb_device_info *info)
{
    if (tb_device_describe(e->options->backend, 0, info, NULL) != TB_OK) info->name[0] = '\0';
    return info->name;
}

static void print_measure(const experiment *e, const measure *m)
{
    const int32_t turns = e->options->repeats;
    printf("  %9.3f %3d %9.3f %4d %9.3f", 1e3 * median_of(m->factor, turns),
           (int)m->result.factorizations, 1e3 * median_of(m->solve, turns), (int)m->result.solves,
           1e3 * median_of(m->total, turns));
}

static void print_text(const experiment *e)
{
    const bench_schurpa_options *o = e->options;
    tb_device_info device;
    printf("n %d, half-bandwidth %d, %s, %d of %d bounds active at the solution; "
           "ms, medians of %d; %s\n",
           (int)o->n, (int)o->half_bandwidth, precision_name(e), (int)e->cold.active, (int)o->n,
           (int)o->repeats, device_name(e, &device));
    printf("%5s  %-9s  %-38s  %-38s  %7s  %s\n", "", "iterat.", "SCHURPA",
           o->lapack ? "DIRECT (LAPACK)" : "DIRECT", "DIRECT/", "KKT residual");
    printf("%5s  %4s %4s  %9s %3s %9s %4s %9s  %9s %3s %9s %4s %9s  %7s  %8s %8s\n", "delta",
           "SCH.", "DIR.", "f", "#f", "s", "#s", "t", "f", "#f", "s", "#s", "t", "SCHURPA",
           "SCHURPA", "DIRECT");
    bool same = true;
    for (int32_t d = 0; d < e->number_of_deltas; d++) {
        const measure *direct = &e->measures[d][TB_QP_PDAS];
        const measure *border = &e->measures[d][TB_QP_SCHURPA];
        printf("%5d  %4d %4d", (int)e->deltas[d], (int)border->result.iterations,
               (int)direct->result.iterations);
        print_measure(e, border);
        print_measure(e, direct);
        printf("  %7.2f  %8.1e %8.1e\n", speedup(e, d), border->result.kkt.relative,
               direct->result.kkt.relative);
        same = same && border->same && direct->same;
    }
    printf("f: factoring, s: solving, t: all; #f factorizations, #s right-hand sides\n");
    printf("all ended in the same set: %s\n", same ? "yes" : "no");
}

static json_t *measure_json(const experiment *e, const measure *m)
{
    const int32_t turns = e->options->repeats;
    json_t *object = json_object();
    json_object_set_new(object, "iterations", json_integer(m->result.iterations));
    json_object_set_new(object, "factorizations", json_integer(m->result.factorizations));
    json_object_set_new(object, "solves", json_integer(m->result.solves));
    json_object_set_new(object, "batches", json_integer(m->result.batches));
    json_object_set_new(object, "resets", json_integer(m->result.resets));
    json_object_set_new(object, "refinements", json_integer(m->result.refinements));
    json_object_set_new(object, "factor_seconds", json_finite(median_of(m->factor, turns)));
    json_object_set_new(object, "solve_seconds", json_finite(median_of(m->solve, turns)));
    json_object_set_new(object, "seconds", json_finite(median_of(m->total, turns)));
    json_object_set_new(object, "kkt_residual", json_finite(m->result.kkt.relative));
    json_object_set_new(object, "same_set", json_boolean(m->same));
    return object;
}

static void print_json(const experiment *e)
{
    const bench_schurpa_options *o = e->options;
    tb_device_info device;
    json_t *object = json_object(), *rows = json_array();
    json_object_set_new(object, "benchmark", json_text("schurpa"));
    json_object_set_new(object, "n", json_integer(o->n));
    json_object_set_new(object, "half_bandwidth", json_integer(o->half_bandwidth));
    json_object_set_new(object, "precision", json_text(precision_name(e)));
    json_object_set_new(object, "device", json_text(device_name(e, &device)));
    json_object_set_new(object, "direct_factors_by", json_text(o->lapack ? "lapack" : "blocks"));
    json_object_set_new(object, "seed", json_integer((json_int_t)o->seed));
    json_object_set_new(object, "repeats", json_integer(o->repeats));
    json_object_set_new(object, "active", json_integer(e->cold.active));
    for (int32_t d = 0; d < e->number_of_deltas; d++) {
        json_t *row = json_object();
        json_object_set_new(row, "delta", json_integer(e->deltas[d]));
        json_object_set_new(row, "schurpa", measure_json(e, &e->measures[d][TB_QP_SCHURPA]));
        json_object_set_new(row, "direct", measure_json(e, &e->measures[d][TB_QP_PDAS]));
        json_object_set_new(row, "speedup", json_finite(speedup(e, d)));
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "rows", rows);
    json_print(stdout, object);
}

tb_status bench_schurpa_measure(const bench_schurpa_options *options,
                                bench_schurpa_times times[BENCH_SCHURPA_DELTAS], int32_t *count,
                                tb_error *error)
{
    experiment e = {.options = options};
    const int32_t turns = options->repeats;
    tb_status status = open_experiment(&e, error);
    if (status == TB_OK) status = run_experiment(&e, error);
    progress_end(&e.bar);
    *count = status == TB_OK ? e.number_of_deltas : 0;
    for (int32_t d = 0; d < *count; d++) {
        times[d] = (bench_schurpa_times){.delta = e.deltas[d]};
        for (int direct = 0; direct < METHODS; direct++) {
            const measure *m = &e.measures[d][direct ? TB_QP_PDAS : TB_QP_SCHURPA];
            times[d].factor[direct] = median_of(m->factor, turns);
            times[d].solve[direct] = median_of(m->solve, turns);
            times[d].total[direct] = median_of(m->total, turns);
            times[d].residual = fmax(times[d].residual, m->result.kkt.relative);
            if (!direct) times[d].iterations = m->result.iterations;
        }
    }
    close_experiment(&e);
    return status;
}

tb_status bench_schurpa(const bench_schurpa_options *options, tb_error *error)
{
    experiment e = {.options = options};
    tb_status status = open_experiment(&e, error);
    if (status == TB_OK) status = run_experiment(&e, error);
    progress_end(&e.bar);
    if (status == TB_OK && options->json) print_json(&e);
    if (status == TB_OK && !options->json) print_text(&e);
    fflush(stdout);
    close_experiment(&e);
    return status;
}
