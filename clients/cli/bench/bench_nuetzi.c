/* Nützi's tables, and the sampled sphere scene of section 6.2 on the processor. */
#include <math.h>
#include <stdio.h>
#include <string.h>

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

const thesis_entry thesis_nuetzi[] = {
    {"variants", "time of an iteration of each variant, random systems (6.1)", false,
     nuetzi_fill_variants},
    {"crosscheck", "each variant on the device and on the processor (3.7.1)", false,
     nuetzi_fill_crosscheck},
    {"spheres", "the sampled sphere scene of section 6.2, processor", true, fill_spheres},
    {NULL, NULL, false, NULL}};
