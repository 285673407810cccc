/* Runs a scene of soft bodies and writes its files. See run_soft.h. */
#include "run/run_soft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/plot.h"
#include "tribo_soft.h"

enum { SCENE_LIMIT = 1 << 24, MOST_FRAMES = 50, MOST_STEPS = 2000000000, PATH_SIZE = 4096 };

typedef struct soft_run {
    const run_soft_request *request;
    tb_model *model;
    tb_state **states; /* the worlds; reports are about the first one */
    tb_certificate *certificates;
    int32_t number_of_worlds;
    tb_stepper *stepper;
    tb_soft_world *world; /* of the first state */
    tb_soft_info info;
    tb_soft_certificate last, whole;
    tb_certificate rigid; /* of all steps, of all bodies */
    int64_t steps, done;
    double seconds;
    FILE *table; /* --record FILE.csv */
    FILE *list;  /* --record FILE.pvd */
    int32_t frames;
    plot plot;
    tb_error error;
} soft_run;

bool run_soft_takes(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    tb_error error;
    bool taken = false;
    if (path == NULL || files_has_extension(path, ".mjz")) return false;
    if (files_read(path, SCENE_LIMIT, &text, &size, &error) == TB_OK)
        taken = tb_soft_is_scene(text, size);
    free(text);
    return taken;
}

/* ---- opening ---- */

/* The contact method of --solver. */
static tb_status choose_contact(soft_run *r, const char *solver)
{
    static const char *const names[] = {"schurpa", "direct", "newton"};
    if (solver == NULL) return TB_OK;
    for (int i = 0; i < 3; i++) {
        if (strcmp(solver, names[i]) != 0) continue;
        for (int32_t w = 0; w < r->number_of_worlds; w++)
            tb_soft_world_choose_contact(tb_state_soft_world(r->states[w]),
                                         (tb_soft_contact_method)i);
        return TB_OK;
    }
    return cli_fail(&r->error, TB_INVALID_ARGUMENT, "--solver", 0, "solver",
                    "soft bodies take schurpa, direct and newton, not '%s'", solver);
}

/* Copies of the first world. */
static tb_status open_copies(soft_run *r, int64_t worlds)
{
    r->states = calloc((size_t)worlds, sizeof(tb_state *));
    r->certificates = calloc((size_t)worlds, sizeof *r->certificates);
    if (r->states == NULL || r->certificates == NULL)
        return cli_fail(&r->error, TB_RESOURCE_EXHAUSTED, "", 0, "worlds",
                        "no memory for %lld worlds", (long long)worlds);
    tb_status status = tb_state_create(r->model, &r->states[0], &r->error);
    if (status == TB_OK) r->number_of_worlds = 1;
    while (status == TB_OK && r->number_of_worlds < worlds) {
        status = tb_state_fork(r->states[0], &r->states[r->number_of_worlds], &r->error);
        if (status == TB_OK) r->number_of_worlds++;
    }
    return status;
}

static tb_status open_world(soft_run *r)
{
    const simulation_options *o = r->request->options;
    tb_import_options import = tb_import_defaults();
    tb_step_options step = tb_step_defaults();
    importing folders = o->import;
    step.threads = (int32_t)o->threads;
    step.dt = o->dt;
    device_apply(&o->device, &step);
    tb_status status = importing_fill(&folders, &import, &r->error);
    if (status == TB_OK) status = tb_model_load(o->path, &import, &r->model, &r->error);
    importing_free(&folders);
    if (status == TB_OK) status = open_copies(r, o->worlds);
    if (status == TB_OK) status = tb_stepper_create(&step, &r->stepper, &r->error);
    if (status != TB_OK) return status;
    r->world = tb_state_soft_world(r->states[0]);
    tb_soft_world_info(r->world, &r->info);
    if (o->dt > 0) r->info.dt = o->dt;
    return choose_contact(r, o->solver);
}

static tb_status count_steps(soft_run *r)
{
    const double time = r->request->time > 0 ? r->request->time : 1;
    const double steps =
        r->request->steps >= 0 ? (double)r->request->steps : rint(time / r->info.dt);
    if (!(steps <= MOST_STEPS))
        return cli_fail(&r->error, TB_INVALID_ARGUMENT, "--time", 0, "time",
                        "%g s are more than %d steps", time, MOST_STEPS);
    r->steps = (int64_t)steps;
    return TB_OK;
}

static tb_status begin_outputs(soft_run *r)
{
    const char *record = r->request->record_path, *figure = r->request->plot_path;
    const char *const inputs[] = {r->request->options->path};
    const char *const outputs[] = {record, figure};
    char title[160];
    tb_status status = files_check_outputs(inputs, 1, outputs, 2, &r->error);
    if (status == TB_OK && record != NULL) {
        const bool list = files_has_extension(record, ".pvd");
        if (!list && !files_has_extension(record, ".csv"))
            return cli_fail(&r->error, TB_INVALID_ARGUMENT, record, 0, "record",
                            "soft bodies are recorded as .csv or .pvd");
        status = files_create(record, list ? &r->list : &r->table, &r->error);
    }
    if (status == TB_OK && figure != NULL) status = plot_check_path(figure, &r->error);
    if (status != TB_OK || figure == NULL) return status;
    snprintf(title, sizeof title, "%.80s, dt %g s", r->info.name, r->info.dt);
    status = plot_begin(&r->plot, title, "time (s)", &r->error);
    if (status != TB_OK) return status;
    int32_t panel = plot_add_panel(&r->plot, "energy (J)", false, false);
    plot_add_series(&r->plot, panel, "kinetic");
    plot_add_series(&r->plot, panel, "elastic");
    plot_add_series(&r->plot, panel, "potential");
    plot_add_series(&r->plot, panel, "sum");
    panel = plot_add_panel(&r->plot, "contacts", false, false);
    plot_add_series(&r->plot, panel, "cells");
    plot_add_series(&r->plot, panel, "free, normal");
    plot_add_series(&r->plot, panel, "free, friction");
    panel = plot_add_panel(&r->plot, "iterations", false, true);
    plot_add_series(&r->plot, panel, "normal");
    plot_add_series(&r->plot, panel, "friction");
    plot_add_series(&r->plot, panel, "projections");
    panel = plot_add_panel(&r->plot, "warm share", false, false);
    plot_add_series(&r->plot, panel, "normal");
    plot_add_series(&r->plot, panel, "friction");
    return TB_OK;
}

/* ---- one step ---- */

/* Part of the solution's active constraints that the first set had; 1 if there are none. */
static double share(const tb_soft_program_counts *c)
{
    return c->active > 0 ? (double)c->warm / c->active : 1;
}

static void put_row(soft_run *r)
{
    const tb_soft_certificate *c = &r->last;
    const tb_soft_program_counts *n = &c->normal, *t = &c->tangential;
    if (r->done == 1)
        fprintf(r->table,
                "time,substeps,kinetic,elastic,potential,damped,momentum_error,smallest_volume,"
                "courant,wave,contacts,projections,cone_error,penetration,"
                "normal_variables,normal_free,normal_half_bandwidth,normal_iterations,"
                "normal_solves,normal_factorizations,normal_resets,normal_warm,normal_seconds,"
                "friction_variables,friction_free,friction_half_bandwidth,friction_iterations,"
                "friction_solves,friction_factorizations,friction_resets,friction_warm,"
                "friction_seconds\n");
    fprintf(r->table, "%.17g,%d,%.17g,%.17g,%.17g,%.17g,%.3g,%.17g,%.6g,%.6g,%d,%d,%.6g,%.6g",
            c->time, (int)c->substeps, c->kinetic, c->elastic, c->potential, c->damped,
            c->momentum_error, c->smallest_volume, c->courant, c->wave, (int)c->contacts,
            (int)c->projections, c->cone_error, c->penetration);
    for (int i = 0; i < 2; i++) {
        const tb_soft_program_counts *p = i == 0 ? n : t;
        fprintf(r->table, ",%d,%d,%d,%d,%d,%d,%d,%.6g,%.6g", (int)p->variables,
                (int)p->free_variables, (int)p->half_bandwidth, (int)p->iterations, (int)p->solves,
                (int)p->factorizations, (int)p->resets, share(p), p->seconds);
    }
    fputc('\n', r->table);
}

/* Writes one file of a frame beside the .pvd and its line in the list. */
static tb_status put_part(soft_run *r, bool volume)
{
    const char *record = r->request->record_path, *slash = strrchr(record, '/');
    const int stem = (int)(strlen(record) - 4);
    char path[PATH_SIZE];
    unsigned char *text = NULL;
    size_t size = 0;
    FILE *file = NULL;
    const int length =
        snprintf(path, sizeof path, "%.*s_%s_%04d.%s", stem, record, volume ? "volume" : "surface",
                 (int)r->frames, volume ? "vtu" : "vtp");
    if (length < 0 || length >= PATH_SIZE)
        return cli_fail(&r->error, TB_INVALID_ARGUMENT, "--record", 0, "record",
                        "the path is too long");
    tb_status status = tb_soft_world_vtk(r->world, volume, &text, &size, &r->error);
    if (status == TB_OK) status = files_create(path, &file, &r->error);
    if (status == TB_OK) {
        fwrite(text, 1, size, file);
        status = files_close(file, path, &r->error);
        fprintf(r->list, "<DataSet timestep=\"%.9g\" part=\"%d\" file=\"%s\"/>\n",
                tb_soft_world_time(r->world), volume ? 0 : 1,
                slash != NULL ? path + (slash + 1 - record) : path);
    }
    tb_bytes_destroy(text);
    return status;
}

static tb_status put_frame(soft_run *r)
{
    if (r->frames == 0)
        fprintf(r->list, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n"
                         "<Collection>\n");
    tb_status status = put_part(r, true);
    if (status == TB_OK) status = put_part(r, false);
    r->frames++;
    return status;
}

static tb_status record_step(soft_run *r)
{
    const tb_soft_certificate *c = &r->last;
    if (r->table != NULL) put_row(r);
    if (r->request->plot_path != NULL) {
        const double values[] = {c->kinetic,
                                 c->elastic,
                                 c->potential,
                                 c->kinetic + c->elastic + c->potential,
                                 c->contacts,
                                 c->normal.free_variables,
                                 c->tangential.free_variables,
                                 c->normal.iterations,
                                 c->tangential.iterations,
                                 c->projections,
                                 share(&c->normal),
                                 share(&c->tangential)};
        plot_sample(&r->plot, c->time, values);
    }
    /* MOST_FRAMES frames, evenly over the steps, with the last one */
    const int64_t frames = r->steps < MOST_FRAMES ? r->steps : MOST_FRAMES;
    if (r->list != NULL && r->done * frames / r->steps > (r->done - 1) * frames / r->steps)
        return put_frame(r);
    return TB_OK;
}

static tb_status step_all(soft_run *r)
{
    progress bar = progress_begin("stepping", (double)r->steps, r->request->options->quiet);
    tb_status status = r->list != NULL ? put_frame(r) : TB_OK;
    while (status == TB_OK && r->done < r->steps) {
        const double start = progress_clock();
        status = tb_step_batch(r->stepper, r->states, r->number_of_worlds, 1, r->certificates,
                               &r->error);
        r->seconds += progress_clock() - start;
        if (status != TB_OK) break;
        r->done++;
        tb_state_soft_certificate(r->states[0], &r->last);
        tb_soft_certificate_merge(&r->whole, &r->last);
        for (int32_t w = 0; w < r->number_of_worlds; w++)
            tb_certificate_merge(&r->rigid, &r->certificates[w]);
        status = record_step(r);
        progress_update(&bar, (double)r->done);
        if (status == TB_OK && interrupt_requested())
            status = cli_fail(&r->error, TB_CANCELLED, r->request->options->path, 0, NULL,
                              "interrupted after %lld steps", (long long)r->done);
    }
    progress_end(&bar);
    return status;
}

/* ---- reports ---- */

static json_t *program_json(const tb_soft_program_counts *p)
{
    json_t *o = json_object();
    json_object_set_new(o, "variables", json_integer(p->variables));
    json_object_set_new(o, "half_bandwidth", json_integer(p->half_bandwidth));
    json_object_set_new(o, "free", json_integer(p->free_variables));
    json_object_set_new(o, "iterations", json_integer(p->iterations));
    json_object_set_new(o, "solves", json_integer(p->solves));
    json_object_set_new(o, "factorizations", json_integer(p->factorizations));
    json_object_set_new(o, "resets", json_integer(p->resets));
    json_object_set_new(o, "fallbacks", json_integer(p->fallbacks));
    json_object_set_new(o, "warm_share", json_finite(share(p)));
    json_object_set_new(o, "residual", json_finite(p->residual));
    json_object_set_new(o, "factor_seconds", json_finite(p->factor_seconds));
    json_object_set_new(o, "solve_seconds", json_finite(p->solve_seconds));
    json_object_set_new(o, "seconds", json_finite(p->seconds));
    return o;
}

static void print_json(const soft_run *r, tb_status status)
{
    const tb_soft_certificate *c = &r->whole;
    json_t *o = json_object(), *k = json_object();
    json_object_set_new(o, "scene", json_text(r->info.name));
    json_object_set_new(o, "steps", json_integer(r->done));
    json_object_set_new(o, "dt", json_finite(r->info.dt));
    json_object_set_new(o, "time", json_finite(tb_soft_world_time(r->world)));
    json_object_set_new(o, "seconds", json_finite(r->seconds));
    json_object_set_new(o, "worlds", json_integer(r->number_of_worlds));
    json_object_set_new(o, "bodies", json_integer(r->info.bodies));
    json_object_set_new(o, "status",
                        json_string(tb_status_name(status != TB_OK ? status : c->status)));
    if (status != TB_OK) json_object_set_new(o, "message", json_text(r->error.message));
    json_object_set_new(k, "substeps", json_integer(c->substeps));
    json_object_set_new(k, "courant", json_finite(c->courant));
    json_object_set_new(k, "wave", json_finite(c->wave));
    json_object_set_new(k, "smallest_volume", json_finite(c->smallest_volume));
    json_object_set_new(k, "kinetic", json_finite(c->kinetic));
    json_object_set_new(k, "elastic", json_finite(c->elastic));
    json_object_set_new(k, "potential", json_finite(c->potential));
    json_object_set_new(k, "damped", json_finite(c->damped));
    json_object_set_new(k, "contact_work", json_finite(c->contact_work));
    json_object_set_new(k, "pushed", json_finite(c->pushed));
    json_object_set_new(k, "momentum", json_vector(c->momentum, 3));
    json_object_set_new(k, "angular_momentum", json_vector(c->angular, 3));
    json_object_set_new(k, "momentum_error", json_finite(c->momentum_error));
    json_object_set_new(k, "transport_repair", json_finite(c->transport_repair));
    json_object_set_new(k, "mass_error", json_finite(c->mass_error));
    json_object_set_new(k, "contacts", json_integer(c->contacts));
    json_object_set_new(k, "projections", json_integer(c->projections));
    json_object_set_new(k, "cone_error", json_finite(c->cone_error));
    json_object_set_new(k, "penetration", json_finite(c->penetration));
    json_object_set_new(k, "prediction_error", json_finite(c->prediction_error));
    json_object_set_new(k, "bytes", json_finite(c->bytes));
    json_object_set_new(k, "normal", program_json(&c->normal));
    json_object_set_new(k, "friction", program_json(&c->tangential));
    json_object_set_new(o, "certificate", k);
    json_print(stdout, o);
}

static void print_program(const char *name, const tb_soft_program_counts *p)
{
    printf("%-9s at most %d variables, %d free, half-bandwidth %d, %d iterations; %d solves, "
           "%d factorizations, %d resets; warm %.2f; %.3g s\n",
           name, (int)p->variables, (int)p->free_variables, (int)p->half_bandwidth,
           (int)p->iterations, (int)p->solves, (int)p->factorizations, (int)p->resets, share(p),
           p->seconds);
}

static void print_text(const soft_run *r)
{
    const tb_soft_certificate *c = &r->whole;
    if (r->number_of_worlds > 1)
        printf("%d worlds: %.4g world steps/s; the first one:\n", (int)r->number_of_worlds,
               r->seconds > 0 ? (double)r->done * r->number_of_worlds / r->seconds : 0);
    printf("%s: %lld steps of %g s in %.3g s, %d substeps, grid %d x %d x %d, %d bodies\n",
           r->request->options->path, (long long)r->done, r->info.dt, r->seconds, (int)c->substeps,
           (int)r->info.nodes[0], (int)r->info.nodes[1], (int)r->info.nodes[2],
           (int)r->info.bodies);
    printf("energy    kinetic %.6g J, elastic %.6g J, potential %.6g J; damped %.6g J\n",
           c->kinetic, c->elastic, c->potential, c->damped);
    printf("momentum  %.6g %.6g %.6g kg m/s, unexplained %.2g\n", c->momentum[0], c->momentum[1],
           c->momentum[2], c->momentum_error);
    printf("limits    courant %.3g, wave %.3g, smallest det F %.4g\n", c->courant, c->wave,
           c->smallest_volume);
    printf("contact   %d cells, %d projections, overlap %.3g m, off the circular cone %.3g N s\n",
           (int)c->contacts, (int)c->projections, c->penetration, c->cone_error);
    if (tb_model_count(r->model).dofs > 0)
        printf("rigid     residual %.2g, velocities off those of the soft step by %.2g m/s\n",
               r->rigid.residual, c->prediction_error);
    print_program("normal", &c->normal);
    print_program("friction", &c->tangential);
}

/* Completes the outputs, whole or not. */
static tb_status finish_outputs(soft_run *r, tb_error *error)
{
    tb_status status = TB_OK;
    const char *record = r->request->record_path;
    if (r->list != NULL) fprintf(r->list, "</Collection>\n</VTKFile>\n");
    if (r->list != NULL || r->table != NULL)
        status = files_close(r->list != NULL ? r->list : r->table, record, error);
    if (status == TB_OK && r->request->plot_path != NULL)
        status = plot_write(&r->plot, r->request->plot_path, error);
    return status;
}

int run_soft(const run_soft_request *request)
{
    soft_run r = {.request = request};
    tb_error closing = {0};
    tb_status status = open_world(&r);
    if (status == TB_OK) status = count_steps(&r);
    if (status == TB_OK) status = begin_outputs(&r);
    if (status == TB_OK) {
        interrupt_watch();
        status = step_all(&r);
        const tb_status written = finish_outputs(&r, &closing);
        if (status == TB_OK && written != TB_OK) status = written, r.error = closing;
        if (request->json)
            print_json(&r, status);
        else if (!request->options->quiet)
            print_text(&r);
    } else {
        files_abandon(r.list != NULL ? r.list : r.table, request->record_path);
        if (request->json) json_print(stdout, json_error(&r.error));
    }
    fflush(stdout);
    if (status != TB_OK) cli_complain(&r.error);
    const tb_status solved = r.whole.status != TB_OK ? r.whole.status : r.rigid.status;
    const int code = cli_exit_code(status != TB_OK ? status : solved);
    plot_free(&r.plot);
    tb_stepper_destroy(r.stepper);
    for (int32_t w = 0; w < r.number_of_worlds; w++) tb_state_destroy(r.states[w]);
    free(r.states);
    free(r.certificates);
    tb_model_destroy(r.model);
    return code;
}
