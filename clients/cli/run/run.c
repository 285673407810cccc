/* tribo run: steps a model and says how exact the steps were. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "run/planar_draw.h"
#include "run/record.h"
#include "simulation/report.h"
#include "run/run_plot.h"
#include "run/run_soft.h"
#include "simulation/simulation.h"

static const double DEFAULT_TIME_S = 1;
enum { MOST_STEPS = 2000000000 };

typedef struct run {
    simulation_options options;
    remote_options remote;
    int64_t steps;
    double time;
    const char *controls_path, *record_path, *plot_path, *draw_path;
    bool json;

    simulation simulation;
    name_list bodies, joints, actuators;
    control_table controls;
    record *recording;
    run_plot plot;
    tb_error error;
    tb_status watch_status;
} run;

static const args_command COMMAND = {
    .name = "run",
    .operands = "MODEL",
    .description =
        "Steps a model (MJCF, URDF, MJZ, a mesh) and prints where things end and the certificate: "
        "how\n"
        "exact the worst step was. Things without a name are called body1, joint1, actuator1.\n"
        "A scene of soft bodies (<soft>) takes --solver schurpa, direct or newton, and is "
        "recorded\n"
        "as .csv (a row a step) or .pvd (at most 50 frames for ParaView).\n"
        "A controls file is CSV with the header 'time,ACTUATOR,...'; a row holds until the next "
        "time.\n",
    .examples = "  tribo run grasp.xml --time 2\n"
                "  tribo run grasp.xml --controls lift.csv --record lift.csv --plot lift.svg\n"
                "  tribo run pile.xml --steps 500 --dt 0.001 --tolerance 1e-10 --json\n"
                "  tribo run pile.xml --scheme planar --time 3 --draw pile.svg\n"
                "  tribo run nine_cylinders.xml --steps 100 --record nine.pvd --plot nine.svg\n"
                "  tribo run hand.urdf --package-path ~/robots --worlds 64 --threads 4\n"
                "  tribo run grasp.xml --server robot7:7410 --json\n"
                "  tribo run pile.xml --worlds 4096 --server robot7:7410 --backend gpu\n",
    .minimum_operands = 1,
    .maximum_operands = 1};

/* ---- the run ---- */

static bool watch(void *context, simulation *s)
{
    run *r = context;
    if (r->plot_path != NULL) run_plot_sample(&r->plot, s);
    if (r->recording != NULL) r->watch_status = record_step(r->recording, s, &r->error);
    return r->watch_status == TB_OK;
}

static tb_status load_controls(run *r)
{
    char *text = NULL;
    size_t size = 0;
    tb_status status = files_read(r->controls_path, CONTROLS_FILE_LIMIT, &text, &size, &r->error);
    if (status != TB_OK) return status;
    status = controls_parse(text, size, r->controls_path, (const char *const *)r->actuators.names,
                            r->actuators.count, &r->controls, &r->error);
    free(text);
    return status;
}

static tb_status prepare(run *r)
{
    const tb_model *model = NULL;
    const char *const inputs[] = {r->options.path, r->controls_path};
    const char *const outputs[] = {r->record_path, r->plot_path, r->draw_path};
    tb_status status = files_check_outputs(inputs, 2, outputs, 3, &r->error);
    if (status == TB_OK && r->draw_path != NULL) status = plot_check_path(r->draw_path, &r->error);
    if (status == TB_OK && r->plot_path != NULL) status = plot_check_path(r->plot_path, &r->error);
    if (status == TB_OK) status = simulation_open(&r->options, &r->simulation, &r->error);
    if (status != TB_OK) return status;
    model = r->simulation.model;
    status = name_list_create(model, TB_HANDLE_BODY, &r->bodies, &r->error);
    if (status == TB_OK) status = name_list_create(model, TB_HANDLE_JOINT, &r->joints, &r->error);
    if (status == TB_OK)
        status = name_list_create(model, TB_HANDLE_ACTUATOR, &r->actuators, &r->error);
    if (status == TB_OK && r->controls_path != NULL) status = load_controls(r);
    if (status == TB_OK && r->record_path != NULL)
        status = record_open(r->record_path, &r->simulation, &r->bodies, &r->joints, &r->recording,
                             &r->error);
    if (status == TB_OK && r->plot_path != NULL)
        status = run_plot_begin(&r->plot, &r->simulation, r->options.path, &r->bodies, &r->joints,
                                &r->error);
    return status;
}

/* The number of steps that was asked for, as steps or as time. False if there are too many. */
static bool count_steps(run *r)
{
    if (r->steps >= 0) return true;
    const double time = r->time > 0 ? r->time : DEFAULT_TIME_S;
    const double steps = rint(time / r->simulation.dt);
    if (steps > MOST_STEPS) {
        args_complain(COMMAND.name, "%g s are more than %d steps of %g s", time, MOST_STEPS,
                      r->simulation.dt);
        return false;
    }
    r->steps = (int64_t)steps;
    return true;
}

/* ---- reports ---- */

static double world_steps_per_second(const simulation *s)
{
    return s->seconds > 0 ? (double)s->steps * s->number_of_worlds / s->seconds : 0;
}

static void print_json(const run *r, tb_status status)
{
    const simulation *s = &r->simulation;
    const tb_state *state = s->worlds[0];
    json_t *object = json_object();
    json_object_set_new(object, "model_sha256", json_text(tb_model_sha256(s->model)));
    json_object_set_new(object, "steps", json_integer(s->steps));
    json_object_set_new(object, "dt", json_finite(s->dt));
    json_object_set_new(object, "time", json_finite(tb_state_time(state)));
    json_object_set_new(object, "seconds", json_finite(s->seconds));
    const tb_status shown = status != TB_OK ? status : s->merged.status;
    json_object_set_new(object, "status", json_string(tb_status_name(shown)));
    if (status != TB_OK) json_object_set_new(object, "message", json_text(r->error.message));
    json_object_set_new(object, "worlds", json_integer(s->number_of_worlds));
    json_object_set_new(object, "world_steps_per_second", json_finite(world_steps_per_second(s)));
    json_object_set_new(object, "contacts", json_integer(tb_state_number_of_contacts(state)));
    json_object_set_new(object, "bodies", record_bodies(state, &r->bodies));
    json_object_set_new(object, "joints", record_joints(state, &r->joints));
    json_t *certificate = json_certificate(&s->merged, s->report_energy);
    json_object_set_new(certificate, "last_step", json_certificate(&s->last, s->report_energy));
    json_object_set_new(object, "certificate", certificate);
    json_print(stdout, object);
}

static void print_text(const run *r)
{
    const simulation *s = &r->simulation;
    const double simulated = (double)s->steps * s->dt;
    char took[32];
    printf("%s: %lld steps of %g s = %g s in %s", r->options.path, (long long)s->steps, s->dt,
           simulated, report_quantity(s->seconds, "s", took, sizeof took));
    if (s->seconds > 0) printf(", %.3g times real time", simulated / s->seconds);
    if (s->number_of_worlds > 1)
        printf("\n%d worlds: %.4g world steps/s", (int)s->number_of_worlds,
               world_steps_per_second(s));
    printf("\nmodel %.12s\n", tb_model_sha256(s->model));
    report_state(s, &r->bodies, &r->joints);
    report_certificate(s);
    if (r->record_path != NULL) printf("recorded in %s\n", r->record_path);
    if (r->plot_path != NULL) printf("plotted in %s\n", r->plot_path);
    if (r->draw_path != NULL) printf("drawn in %s\n", r->draw_path);
}

/* Steps, then writes the requested outputs, complete or not. */
static int execute(run *r)
{
    const bool watched = r->recording != NULL || r->plot_path != NULL;
    tb_error closing = {0};
    interrupt_watch();
    progress bar = progress_begin("stepping", (double)r->steps, r->options.quiet);
    tb_status status =
        simulation_run(&r->simulation, r->steps, r->controls.rows > 0 ? &r->controls : NULL,
                       watched ? watch : NULL, r, &bar, &r->error);
    progress_end(&bar);
    if (status == TB_DIVERGED) {
        const tb_error told = r->error;
        cli_fail(&r->error, status, r->options.path, 0, NULL, "%s", told.message);
    }
    if (status == TB_OK) status = r->watch_status;

    /* partial results are results: files are finished in any case */
    tb_status written = record_close(r->recording, &closing);
    r->recording = NULL;
    if (written == TB_OK && r->plot_path != NULL)
        written = plot_write(&r->plot.plot, r->plot_path, &closing);
    if (written == TB_OK && r->draw_path != NULL)
        written = planar_draw(r->simulation.model, r->simulation.worlds[0], r->simulation.dt,
                              r->options.path, r->draw_path, &closing);
    if (status == TB_OK && written != TB_OK) {
        status = written;
        r->error = closing;
    }

    if (r->json)
        print_json(r, status);
    else if (!r->options.quiet)
        print_text(r);
    if (status != TB_OK) {
        fflush(stdout);
        cli_complain(&r->error);
        return cli_exit_code(status);
    }
    /* status not reported yet */
    const tb_status solved = r->simulation.merged.status;
    if (solved != TB_OK && r->options.quiet && !r->json)
        fprintf(stderr, "tribo: %s: %s\n", r->options.path, tb_status_text(solved));
    return cli_exit_code(solved);
}

static void clean_up(run *r)
{
    record_abandon(r->recording);
    plot_free(&r->plot.plot);
    controls_free(&r->controls);
    name_list_free(&r->bodies);
    name_list_free(&r->joints);
    name_list_free(&r->actuators);
    simulation_close(&r->simulation);
}

int command_run(int argc, char **argv)
{
    run r = {.options = simulation_defaults(), .steps = -1};
    args_option shared[SIMULATION_OPTIONS];
    simulation_option_list(&r.options, shared);
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&r.remote, connection);
    connection[0].help = "have a daemon step: HOST:PORT or unix:PATH";
    bool no_energy = false;
    const args_option own[] = {
        {"steps", "N", "number of steps", ARGS_INTEGER, &r.steps, 0, MOST_STEPS, NULL},
        {"time", "S", "simulated seconds, where --steps is not given (1)", ARGS_NUMBER, &r.time,
         DBL_MIN, 1e9, NULL},
        {"controls", "FILE.csv", "controls of the actuators", ARGS_TEXT, &r.controls_path, 0, 0,
         NULL},
        {"record", "FILE", "write every step: .csv or .jsonl; soft bodies: .csv or .pvd", ARGS_TEXT,
         &r.record_path, 0, 0, NULL},
        {"plot", "FILE.svg", "draw heights, joints and residual", ARGS_TEXT, &r.plot_path, 0, 0,
         NULL},
        {"draw", "FILE.svg", "draw the last pose of a planar world and its contact forces",
         ARGS_TEXT, &r.draw_path, 0, 0, NULL},
        {"json", NULL, "print one JSON object and nothing else", ARGS_FLAG, &r.json, 0, 0, NULL},
        {"quiet", NULL, "print errors only (and --json)", ARGS_FLAG, &r.options.quiet, 0, 0, NULL},
        {"no-energy", NULL, "leave energies out, which saves a few percent", ARGS_FLAG, &no_energy,
         0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", own},
                                 {"how it is stepped", shared},
                                 {"with a daemon", connection},
                                 {NULL, NULL}};

    int operands = 0;
    switch (args_parse(&COMMAND, groups, argc, argv, &operands)) {
    case ARGS_HELPED: return CLI_OK;
    case ARGS_WRONG: return CLI_USAGE;
    case ARGS_READY: break;
    }
    r.options.path = argv[1];
    const bool soft = run_soft_takes(r.options.path);
    if (soft && r.remote.address != NULL) {
        args_complain(COMMAND.name, "--server takes no scene of soft bodies: a session of a client "
                                    "(clients/python) steps it in a daemon");
        return CLI_USAGE;
    }
    if (soft) {
        const run_soft_request request = {.options = &r.options,
                                          .steps = r.steps,
                                          .time = r.time,
                                          .record_path = r.record_path,
                                          .plot_path = r.plot_path,
                                          .json = r.json};
        return run_soft(&request);
    }
    if (!simulation_check_law(COMMAND.name, &r.options)) return CLI_USAGE;
    if (r.draw_path != NULL && r.options.scheme != TB_SCHEME_PLANAR) {
        args_complain(COMMAND.name, "--draw goes with --scheme planar");
        return CLI_USAGE;
    }
    if (r.remote.address != NULL) r.options.remote = &r.remote;
    r.options.report_energy = !no_energy;
    const simulation_options usual = simulation_defaults();
    if (r.options.remote != NULL &&
        (r.options.storage != usual.storage || r.options.r_strategy != usual.r_strategy)) {
        args_complain(COMMAND.name, "a daemon chooses --storage and --r itself");
        return CLI_USAGE;
    }
    const char *objection = r.options.remote != NULL ? device_objection(&r.options.device) : NULL;
    if (objection != NULL) {
        args_complain(COMMAND.name, "%s", objection);
        return CLI_USAGE;
    }

    int code;
    const tb_status status = prepare(&r);
    if (status != TB_OK) {
        if (r.json) json_print(stdout, json_error(&r.error));
        cli_complain(&r.error);
        code = cli_exit_code(status);
    } else {
        code = count_steps(&r) ? execute(&r) : CLI_USAGE;
    }
    clean_up(&r);
    return code;
}
