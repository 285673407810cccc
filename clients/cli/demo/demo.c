/* tribo demo: plays the grasps and reports for each if the hand held the mug, the mug's slip, the
 * forces, and the residuals of the steps. */
#include "demo/demo.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/plot.h"
#include "simulation/report.h"
#include "simulation/simulation.h"

static const double MICROMETRES = 1e6;
static const double STANDARD_GRAVITY = 9.81; /* m/s^2, of the scene */

static const args_command COMMAND = {
    .name = "demo",
    .operands = "",
    .description =
        "A parallel-jaw hand grasps a mug in several ways, all side by side: it closes with force, "
        "lifts\n"
        "the mug by 0.2 m, shakes it along x, y and z and about two axes, comes to rest and holds "
        "it for\n"
        "a second. Slip is the largest way of a point of the mug relative to the fingers. Some "
        "grasps\n"
        "must fail: not every force carries a mug. Every grasp is a keyframe of grasp.xml.\n",
    .examples = "  tribo demo\n"
                "  tribo demo --friction 0.3\n"
                "  tribo demo --force 40 --tolerance 1e-12\n"
                "  tribo demo --json --out /tmp\n",
    .minimum_operands = 0,
    .maximum_operands = 0};

typedef struct demo_run {
    demo_options options;
    const char *data, *out;
    double friction;
    bool json, quiet;
    demo demo;
    plot plot;
    FILE *csv;
    char folder[PATH_MAX / 2], csv_path[PATH_MAX], plot_path[PATH_MAX];
    double seconds;
    tb_error error;
} demo_run;

/* ---- the files it writes ---- */

static tb_status open_files(demo_run *r)
{
    const demo *d = &r->demo;
    const char *out = r->out != NULL ? r->out : r->folder;
    snprintf(r->csv_path, sizeof r->csv_path, "%s/grasps.csv", out);
    snprintf(r->plot_path, sizeof r->plot_path, "%s/grasps.svg", out);
    tb_status status = files_create(r->csv_path, &r->csv, &r->error);
    if (status == TB_OK)
        status = plot_begin(&r->plot, "grasps: lift, shake, hold", "time (s)", &r->error);
    if (status != TB_OK) return status;

    plot_add_panel(&r->plot, "mug's height above where it stood (m)", false, false);
    plot_add_panel(&r->plot, "way of the mug in the fingers since they closed (m)", true, true);
    plot_add_panel(&r->plot, "residual of each step", true, true);
    fprintf(r->csv, "time");
    for (int32_t i = 0; i < d->count; i++) {
        const char *name = d->grasps[i].name;
        for (int32_t k = 0; k < r->plot.panels; k++) plot_add_series(&r->plot, k, name);
        fprintf(r->csv,
                ",%s.height,%s.slip,%s.force_left,%s.force_right,%s.residual,%s.penetration", name,
                name, name, name, name, name);
    }
    fprintf(r->csv, "\n");
    return TB_OK;
}

static bool note_step(void *context, const demo *d, double time)
{
    demo_run *r = context;
    double values[3 * DEMO_GRASPS];
    fprintf(r->csv, "%.9g", time);
    for (int32_t i = 0; i < d->count; i++) {
        const demo_grasp *g = &d->grasps[i];
        values[i] = g->height;
        values[d->count + i] = g->slip;
        values[2 * d->count + i] = g->last.residual;
        fprintf(r->csv, ",%.9g,%.9g,%.6g,%.6g,%.3g,%.6g", g->height, g->slip, g->force[0],
                g->force[1], g->last.residual, g->last.penetration);
    }
    fprintf(r->csv, "\n");
    plot_sample(&r->plot, time, values);
    return !ferror(r->csv);
}

/* ---- reports ---- */

static void print_grasp(const demo_grasp *g)
{
    char outcome[40], moving[24] = "-", hold[24] = "-", forces[32];
    switch (demo_grasp_outcome(g)) {
    case DEMO_HELD: snprintf(outcome, sizeof outcome, "held"); break;
    case DEMO_MOVED: snprintf(outcome, sizeof outcome, "moved in the hand"); break;
    case DEMO_DROPPED: snprintf(outcome, sizeof outcome, "dropped at %.2f s", g->touched_at); break;
    }
    if (demo_grasp_outcome(g) != DEMO_DROPPED) {
        snprintf(moving, sizeof moving, "%.3g", g->moving_slip * MICROMETRES);
        snprintf(hold, sizeof hold, "%.3g", g->hold_slip * MICROMETRES);
    }
    snprintf(forces, sizeof forces, "%.2f %.2f", g->force[0], g->force[1]);
    printf("%-12.12s %4.3g N  %-17s %11s %11s %13s %8d %9.1e %9.3g\n", g->name, g->command, outcome,
           moving, hold, forces, (int)g->contacts, g->certificate.residual,
           g->certificate.penetration * MICROMETRES);
}

/* The path as seen from the working folder, where it lies in it. */
static const char *from_here(const char *path)
{
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) == NULL) return path;
    const size_t length = strlen(here);
    return strncmp(path, here, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

static void print_text(const demo_run *r)
{
    const demo *d = &r->demo;
    const double simulated = d->count * DEMO_END_S;
    int outcomes[3] = {0};
    tb_step_options options = tb_stepper_options(d->stepper);
    printf("A hand grasps a mug of %.0f g (%.2f N)", 1000 * d->mug_mass,
           STANDARD_GRAVITY * d->mug_mass);
    if (r->data == NULL) printf(", friction %g", r->friction);
    printf(": close, lift 0.2 m, shake, hold 1 s.\n");
    printf("Exact Coulomb contact, dt %g s, %s to a residual of %g.\n\n", d->dt,
           options.solve.solver, options.solve.tolerance);
    printf("%-12s %6s  %-17s %11s %11s %13s %8s %9s %9s\n", "", "", "", "slip (\xc2\xb5m)",
           "slip (\xc2\xb5m)", "force (N)", "", "worst", "deepest");
    printf("%-12s %6s  %-17s %10s %10s %13s %8s %9s %9s\n", "grasp", "closes", "outcome",
           "in motion", "in 1 s hold", "left right", "contacts", "residual", "(\xc2\xb5m)");
    for (int32_t i = 0; i < d->count; i++) {
        print_grasp(&d->grasps[i]);
        outcomes[demo_grasp_outcome(&d->grasps[i])]++;
    }
    char took[32];
    printf("\n%d held, %d moved in the hand, %d dropped; %.3g s simulated in %s.\n",
           outcomes[DEMO_HELD], outcomes[DEMO_MOVED], outcomes[DEMO_DROPPED], simulated,
           report_quantity(r->seconds, "s", took, sizeof took));
    printf("plot   %s\nrecord %s\nscene  %s/grasp.xml\n", from_here(r->plot_path),
           from_here(r->csv_path), from_here(r->folder));
}

static void print_json(const demo_run *r)
{
    static const char *const OUTCOMES[] = {"held", "moved", "dropped"};
    const demo *d = &r->demo;
    json_t *object = json_object(), *grasps = json_object();
    for (int32_t i = 0; i < d->count; i++) {
        const demo_grasp *g = &d->grasps[i];
        json_t *one = json_object();
        json_object_set_new(one, "outcome", json_string(OUTCOMES[demo_grasp_outcome(g)]));
        json_object_set_new(one, "touched_at", json_finite(g->touched_at));
        json_object_set_new(one, "closing_force", json_finite(g->command));
        json_object_set_new(one, "slip_moving", json_finite(g->moving_slip));
        json_object_set_new(one, "slip_hold", json_finite(g->hold_slip));
        json_object_set_new(one, "forces", json_vector(g->force, 2));
        json_object_set_new(one, "contacts", json_integer(g->contacts));
        json_object_set_new(one, "certificate", json_certificate(&g->certificate, false));
        json_object_set_new(grasps, g->name, one);
    }
    json_object_set_new(object, "model_sha256", json_text(tb_model_sha256(d->model)));
    json_object_set_new(object, "dt", json_finite(d->dt));
    json_object_set_new(object, "seconds", json_finite(r->seconds));
    json_object_set_new(object, "grasps", grasps);
    json_object_set_new(object, "plot", json_text(r->plot_path));
    json_object_set_new(object, "record", json_text(r->csv_path));
    json_print(stdout, object);
}

static tb_status play(demo_run *r)
{
    char path[PATH_MAX];
    tb_status status = TB_OK;
    if (r->data != NULL)
        snprintf(r->folder, sizeof r->folder, "%s", r->data);
    else
        status = demo_make_data(r->friction, r->folder, sizeof r->folder, &r->error);
    snprintf(path, sizeof path, "%s/grasp.xml", r->folder);
    if (status == TB_OK) status = demo_open(&r->demo, path, &r->options, &r->error);
    if (status == TB_OK) status = open_files(r);
    if (status != TB_OK) return status;

    interrupt_watch();
    progress bar = progress_begin("grasping", rint(DEMO_END_S / r->demo.dt), r->quiet);
    const double start = progress_clock();
    status = demo_play(&r->demo, note_step, r, &bar, &r->error);
    r->seconds = progress_clock() - start;
    progress_end(&bar);
    return status;
}

int command_demo(int argc, char **argv)
{
    static const char *const SCHEMES[] = {"stewart-trinkle", "moreau", NULL};
    demo_run r = {.friction = 0.7};
    r.options.threads = 1; /* steps are too short for threads to pay */
    r.options.scheme = (int)tb_step_defaults().scheme;
    const args_option options[] = {
        {"friction", "MU", "of hand, mug and floor (0.7)", ARGS_NUMBER, &r.friction, 0, 100, NULL},
        {"force", "N", "closing force of every grasp (the keyframe's)", ARGS_NUMBER,
         &r.options.force, DBL_MIN, 70, NULL},
        {"data", "DIR", "folder with a grasp.xml of yours", ARGS_TEXT, &r.data, 0, 0, NULL},
        {"out", "DIR", "where plot and record go (beside the scene)", ARGS_TEXT, &r.out, 0, 0,
         NULL},
        {"dt", "S", "step in seconds (0.002)", ARGS_NUMBER, &r.options.dt, DBL_MIN, 0.1, NULL},
        {"scheme", "NAME", "time stepping", ARGS_CHOICE, &r.options.scheme, 0, 0, SCHEMES},
        {"solver", "NAME", "contact solver (the library's)", ARGS_TEXT, &r.options.solver, 0, 0,
         NULL},
        {"tolerance", "T", "residual at which the solver stops (1e-10)", ARGS_NUMBER,
         &r.options.tolerance, DBL_MIN, 1, NULL},
        {"threads", "N", "0: all processors (1)", ARGS_INTEGER, &r.options.threads, 0, 4096, NULL},
        {"json", NULL, "print one JSON object", ARGS_FLAG, &r.json, 0, 0, NULL},
        {"quiet", NULL, "no progress bar", ARGS_FLAG, &r.quiet, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    if (!simulation_check_solver(COMMAND.name, r.options.solver)) return CLI_USAGE;

    tb_status status = play(&r);
    if (r.csv != NULL && (status == TB_OK || status == TB_CANCELLED)) {
        tb_status written = files_close(r.csv, r.csv_path, &r.error);
        r.csv = NULL;
        if (written == TB_OK) written = plot_write(&r.plot, r.plot_path, &r.error);
        if (written != TB_OK) status = written;
        if (r.json)
            print_json(&r);
        else
            print_text(&r);
    }
    int code = cli_exit_code(status);
    /* a step that stopped short of the tolerance shows in its residual;
     * a world that broke is a failure */
    for (int32_t i = 0; i < r.demo.count && code == CLI_OK; i++)
        if (r.demo.grasps[i].certificate.status == TB_DIVERGED) code = CLI_UNSOLVED;
    if (status != TB_OK) {
        fflush(stdout);
        cli_complain(&r.error);
    }
    files_abandon(r.csv, r.csv_path);
    plot_free(&r.plot);
    demo_close(&r.demo);
    return code;
}
