/* Nützi's tables, and the sampled sphere scene of section 6.2 on the processor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/interrupt.h"
#include "common/progress.h"
#include "bench/thesis.h"
#include "bench/bench_nuetzi_random.h"

enum { SAMPLES = 10, SAMPLE_STEPS = 55, MOST_SWEEPS = 5000 };
static const double JOR_ALPHA = 0.35, STOP_TOLERANCE = 1e-7;

/* One step of a copy by a method of the thesis, cold: its sweeps and its seconds. */
static tb_status sample(const tb_state *state, const char *solver, double omega, double *iterations,
                        double *seconds, double *contacts, tb_error *error)
{
    tb_step_options step = tb_step_defaults();
    tb_stepper *stepper = NULL;
    tb_state *fork = NULL;
    tb_certificate certificate = {0};
    step.scheme = TB_SCHEME_MOREAU;
    step.solve.solver = solver;
    step.solve.omega = omega;
    step.solve.stop = TB_STOP_NORM;
    step.solve.tolerance = STOP_TOLERANCE;
    step.solve.maximum_iterations = MOST_SWEEPS;
    step.solve.warm_start = false;
    step.solve.local_solve = false;
    step.solve.maximum_halvings = 0;
    tb_status status = tb_stepper_create(&step, &stepper, error);
    if (status == TB_OK) status = tb_state_fork(state, &fork, error);
    const double start = progress_clock();
    if (status == TB_OK) status = tb_step(stepper, fork, 1, &certificate, error);
    *seconds = progress_clock() - start;
    *iterations = certificate.iterations;
    *contacts = certificate.contacts;
    tb_state_destroy(fork);
    tb_stepper_destroy(stepper);
    return status;
}

static tb_status fill_spheres(const thesis_options *o, thesis_table *t, tb_error *error)
{
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_step_options step = tb_step_defaults();
    step.scheme = TB_SCHEME_MOREAU;
    step.solve.threads = (int32_t)o->threads;
    t->row_key = "sample";
    thesis_add_column(t, "contacts", "");
    thesis_add_column(t, "jor", "sweeps");
    thesis_add_column(t, "sor", "sweeps");
    thesis_add_column(t, "jor_over_sor", "");
    thesis_add_column(t, "sor_time_over_jor", "");
    tb_status status = thesis_load("nuetzi_spheres", &model, error);
    if (status == TB_OK) status = tb_state_create(model, &state, error);
    if (status == TB_OK) status = tb_stepper_create(&step, &stepper, error);
    progress bar = progress_begin("spheres", SAMPLES, false);
    for (int i = 0; i < SAMPLES && status == TB_OK; i++) {
        char label[THESIS_LABEL];
        double jor_seconds = 0, sor_seconds = 0;
        status =
            tb_step(stepper, state, o->steps > 0 ? (int32_t)o->steps : SAMPLE_STEPS, NULL, error);
        if (status != TB_OK) break;
        snprintf(label, sizeof label, "%.3f s", tb_state_time(state));
        thesis_row *row = thesis_add_row(t, label);
        status = sample(state, "jor", JOR_ALPHA, &row->here[1], &jor_seconds, &row->here[0], error);
        if (status == TB_OK)
            status = sample(state, "sor", 1, &row->here[2], &sor_seconds, &row->here[0], error);
        if (row->here[2] > 0) row->here[3] = row->here[1] / row->here[2];
        if (jor_seconds > 0) row->here[4] = sor_seconds / jor_seconds;
        row->thesis[3] = 2;
        if (interrupt_requested()) status = TB_CANCELLED;
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    thesis_note(t,
                "alpha 0.35 and 1, test (4.50) with 1e-7, at most 5000 sweeps, cold; the thesis: "
                "JOR needs at least twice the iterations of Full SOR");
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return status;
}

/* ---- the finalists on sampled problems ---- */

static const struct {
    const char *column, *variant;
    double alpha;
} FINALISTS[] = {{"jor", "sparse-jor", JOR_ALPHA},
                 {"full_sor", "sparse-full-sor", 1},
                 {"relaxed_32", "sparse-relaxed-sor-32", JOR_ALPHA}};
enum { FINALISTS_COUNT = 3, FINALIST_SAMPLES = 40, FINALIST_STEPS = 14 };

/* Sweeps (NAN: more than 5000) and seconds of each finalist on one problem, cold. */
static tb_status iterate_finalists(const tb_problem_file *problem, double *here, double *residual,
                                   tb_error *error)
{
    const size_t numbers = 3 * (size_t)tb_problem_describe(problem).contacts;
    double *lambda = calloc(numbers, sizeof *lambda), seconds[FINALISTS_COUNT];
    tb_status status = TB_OK;
    if (lambda == NULL)
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for impulses");
    for (int k = 0; k < FINALISTS_COUNT && status == TB_OK; k++) {
        tb_prox_system *system = NULL;
        tb_prox_options options = tb_prox_defaults();
        tb_prox_result result = {0};
        options.variant = FINALISTS[k].variant;
        options.iterations = MOST_SWEEPS;
        options.relative = options.absolute = STOP_TOLERANCE;
        memset(lambda, 0, numbers * sizeof *lambda);
        status = tb_prox_system_of_problem(problem, FINALISTS[k].alpha, &system, error);
        if (status == TB_OK) status = tb_prox_iterate(system, &options, lambda, &result, error);
        tb_prox_system_destroy(system);
        seconds[k] = result.seconds;
        if (result.converged) here[1 + k] = result.iterations;
        if (result.converged) *residual = fmax(*residual, result.residual);
        if (interrupt_requested() && status == TB_OK) status = TB_CANCELLED;
    }
    here[4] = here[1] / here[2];
    here[5] = here[1] / here[3];
    here[6] = seconds[1] / seconds[0];
    here[7] = seconds[2] / seconds[0];
    free(lambda);
    return status;
}

/* The problem of the step that comes next, by way of a file. */
static tb_status sample_problem(tb_stepper *stepper, const tb_state *state, const char *path,
                                tb_problem_file **problem, tb_error *error)
{
    tb_status status = tb_export_problem(stepper, state, path, error);
    if (status == TB_OK) status = tb_problem_load(path, problem, error);
    return status;
}

/* Figures 6.5 and 6.6: some 40 problems of the falling spheres, three methods from zero by the same test
 * (4.49). The thesis does not give the relaxed method's alpha: here it is that of JOR. */
static tb_status fill_finalists(const thesis_options *o, thesis_table *t, tb_error *error)
{
    char path[] = "/tmp/tribo-bench-XXXXXX.dat";
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_step_options step = tb_step_defaults();
    step.scheme = TB_SCHEME_MOREAU;
    step.solve.threads = (int32_t)o->threads;
    t->row_key = "sample";
    thesis_add_column(t, "contacts", "");
    for (int k = 0; k < FINALISTS_COUNT; k++) thesis_add_column(t, FINALISTS[k].column, "sweeps");
    thesis_add_column(t, "jor_over_sor", "");
    thesis_add_column(t, "jor_over_relaxed", "");
    thesis_add_column(t, "sor_time_over_jor", "");
    thesis_add_column(t, "relaxed_time_over_jor", "");
    const int file = mkstemps(path, 4);
    if (file < 0) return cli_fail(error, TB_UNAVAILABLE, "", 0, NULL, "%s cannot be written", path);
    close(file);
    tb_status status = thesis_load("nuetzi_spheres", &model, error);
    if (status == TB_OK) status = tb_state_create(model, &state, error);
    if (status == TB_OK) status = tb_stepper_create(&step, &stepper, error);
    progress bar = progress_begin("finalists", FINALIST_SAMPLES, o->json);
    for (int i = 0; i < FINALIST_SAMPLES && status == TB_OK; i++) {
        char label[THESIS_LABEL];
        tb_problem_file *problem = NULL;
        status =
            tb_step(stepper, state, o->steps > 0 ? (int32_t)o->steps : FINALIST_STEPS, NULL, error);
        if (status == TB_OK) status = sample_problem(stepper, state, path, &problem, error);
        if (status != TB_OK) break;
        progress_update(&bar, i + 1);
        const int32_t contacts = tb_problem_describe(problem).contacts;
        snprintf(label, sizeof label, "%.3f s", tb_state_time(state));
        thesis_row *row = contacts > 0 ? thesis_add_row(t, label) : NULL;
        if (row != NULL) {
            row->residual = 0;
            row->here[0] = contacts;
            row->thesis[4] = 2;
            row->thesis[5] = 1;
            status = iterate_finalists(problem, row->here, &row->residual, error);
        }
        tb_problem_destroy(problem);
    }
    progress_end(&bar);
    unlink(path);
    thesis_note(t, "alpha 0.35 for JOR and relaxed, 1 for SOR; test (4.49) with 1e-7, at most 5000 "
                   "sweeps, cold, T in block CSR on the processor");
    thesis_note(t,
                "the thesis: JOR needs twice the iterations of Full SOR and more, and is slower; "
                "relaxed is like JOR");
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return status;
}

const thesis_entry thesis_nuetzi[] = {
    {"variants", "time of an iteration of each variant, random systems (6.1)", false,
     nuetzi_fill_variants},
    {"sizes", "the same for four numbers of contacts (figures 6.1 to 6.3)", true,
     nuetzi_fill_sizes},
    {"breakdown", "parts of an iteration of full-sor-32 (figure 6.4)", false,
     nuetzi_fill_breakdown},
    {"crosscheck", "each variant on the device and on the processor (3.7.1)", false,
     nuetzi_fill_crosscheck},
    {"spheres", "the sampled sphere scene of section 6.2, processor", true, fill_spheres},
    {"finalists", "JOR, Full SOR and Relaxed SOR 32 on its problems (figures 6.5, 6.6)", true,
     fill_finalists},
    {NULL, NULL, false, NULL}};
