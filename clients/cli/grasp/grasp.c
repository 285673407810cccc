/* tribo grasp: many grasps of one object by one hand, each with perturbed copies. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "grasp/grasp.h"
#include "common/interrupt.h"
#include "simulation/simulation.h"

static const int64_t SLICE_NS = 50000000;
enum { MOST_POSES = 1000000, MOST_COPIES = 1000000 };

static const args_command COMMAND = {
    .name = "grasp",
    .operands = "",
    .description =
        "Plays grasps: the hand approaches each pose, closes, lifts the object off a table, shakes "
        "it if\n"
        "asked, and holds it. Poses place the tool frame of the hand in the object's frame; they "
        "come\n"
        "from a file (CSV with columns name, x, y, z, qw, qx, qy, qz, force; or a JSON array) or "
        "are\n"
        "sampled: pairs of surface points that lie in each other's friction cones, for a known "
        "hand "
        "no wider\nthan its opening and with the open hand above the table. With --perturb "
        "every\n"
        "grasp has copies whose pose, friction and mass vary; the fraction held comes with its "
        "Wilson\n"
        "interval. epsilon is the largest disturbance, from any direction, that unit finger forces "
        "resist\n"
        "(Ferrari and Canny). The hand's base is carried; joints of its base are left out.\n"
        "A grasp that is not held tells its reason. A trial of which a step that counts missed "
        "the\n"
        "tolerance is 'uncertified': it has no verdict, is no part of the fraction held, and the "
        "command\nends with exit code 3, as it does when a trial diverges.\n",
    .examples =
        "  tribo grasp --hand hand.xml --object mug.obj --approach 0,0,-1 --sample 20\n"
        "  tribo grasp --hand panda_gripper.xml --profile panda --object hammer.obj --sample 200 "
        "--json\n"
        "  tribo grasp --hand hand.xml --object mug.obj --poses poses.csv --force 20 --shake\n"
        "  tribo grasp --hand hand.xml --object mug.obj --approach 0,0,-1 --sample 10 \\\n"
        "      --perturb 100 --seed 1 --record trials.csv --plot grasps.svg\n"
        "  tribo grasp --hand shadow.xml --object ball.xml --poses poses.json \\\n"
        "      --closing FF,MF,TH --open 0,0,0 --close 1.5,1.5,1 --json\n"
        "  tribo grasp --hand hand.xml --object mug.obj --sample 20 --server robot7:7410\n"
        "  tribo grasp --hand hand.xml --object mug.obj --sample 10000 --server robot7:7410 "
        "--submit \\\n"
        "      --trajectories dropped,slipped\n"
        "  tribo grasp --hand hand.xml --object mug.obj --convex --sample 100 --perturb 100 \\\n"
        "      --backend gpu\n",
    .minimum_operands = 0,
    .maximum_operands = 0};

static grasp_options defaults(void)
{
    const tb_grasp_request r = tb_grasp_defaults();
    return (grasp_options){.device = device_defaults(),
                           .perturb = 1,
                           .close_seconds = r.protocol.close_seconds,
                           .lift = r.protocol.lift,
                           .lift_seconds = r.protocol.lift_seconds,
                           .hold = r.protocol.hold_seconds,
                           .slip_limit = r.protocol.slip_limit,
                           .position_noise = 0.003,
                           .angle_noise = 0.05,
                           .friction_noise = 0.1,
                           .mass_noise = 0.1,
                           .confidence = r.confidence};
}

/* Checks combinations of options. */
static bool is_whole(const grasp_options *o, bool remote)
{
    const char *objection = remote ? device_objection(&o->device) : NULL;
    if (o->hand == NULL || o->object == NULL)
        args_complain(COMMAND.name, "--hand and --object are needed");
    else if ((o->poses != NULL) == (o->sample > 0))
        args_complain(COMMAND.name, "poses are needed: by --poses FILE or by --sample N");
    else if (objection != NULL)
        args_complain(COMMAND.name, "%s", objection);
    else if (o->submit && !remote)
        args_complain(COMMAND.name, "--submit needs a daemon: --server HOST:PORT");
    else if (o->trajectories != NULL && !o->submit)
        args_complain(COMMAND.name, "--trajectories are kept by jobs: with --submit");
    else if (simulation_check_solver(COMMAND.name, o->solver))
        return true;
    return false;
}

/* ---- playing ---- */

static tb_status play(const grasp_options *o, grasp_task *task, grasp_report *report,
                      tb_error *error)
{
    tb_grasp_job *job = NULL;
    bool finished = false;
    const double start = progress_clock();
    tb_status status = tb_grasp_job_create(&task->request, &job, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < tb_grasp_job_number_of_warnings(job); i++)
        grasp_report_warn(report, tb_grasp_job_warning(job, i));
    grasp_report_hand(report, tb_grasp_job_hand(job));
    const tb_grasp_progress whole = tb_grasp_job_progress(job);
    progress bar = progress_begin("grasping", (double)whole.trials, o->quiet);
    while (!finished && status == TB_OK && !interrupt_requested()) {
        status = tb_grasp_job_advance(job, SLICE_NS, &finished, error);
        const tb_grasp_progress now = tb_grasp_job_progress(job);
        for (const tb_grasp_result *r; (r = tb_grasp_job_next(job)) != NULL;) {
            progress_end(&bar);
            grasp_report_add(report, r, &task->poses[r->index]);
        }
        progress_update(&bar, (double)now.trials_done);
    }
    progress_end(&bar);
    const tb_grasp_progress last = tb_grasp_job_progress(job);
    tb_error closing = {0};
    const tb_status written = grasp_report_end(report, &last, progress_clock() - start,
                                               tb_model_sha256(tb_grasp_job_model(job)), &closing);
    if (status == TB_OK && written != TB_OK) {
        status = written;
        *error = closing;
    }
    if (status == TB_OK && !finished)
        status = cli_fail(error, TB_CANCELLED, "", 0, NULL, "interrupted after %lld of %lld trials",
                          (long long)last.trials_done, (long long)last.trials);
    tb_grasp_job_destroy(job);
    return status;
}

/* Plays, submits or leaves to a daemon the grasps of the options; the exit code. */
static int carry_out(const grasp_options *o, const remote_options *remote)
{
    grasp_task task;
    grasp_report *report = NULL;
    tb_error error = {0};
    interrupt_watch();
    tb_status status = grasp_task_open(o, &task, &error);
    if (status == TB_OK && o->submit) {
        status = grasp_submit(remote, o, &task, &error);
        grasp_task_close(&task);
        if (status == TB_OK) return CLI_OK;
        cli_complain(&error);
        return cli_exit_code(status);
    }
    if (status == TB_OK)
        status = grasp_report_begin(o, task.request.perturbation.count, &report, &error);
    if (status == TB_OK)
        status = remote->address != NULL ? grasp_play_remote(remote, o, &task, report, &error)
                                         : play(o, &task, report, &error);
    /* the report is complete; a trial without a verdict fails the command */
    if (status == TB_OK && !grasp_report_certified(report, &error)) status = error.status;
    grasp_report_free(report);
    grasp_task_close(&task);
    if (status == TB_OK) return CLI_OK;
    fflush(stdout);
    cli_complain(&error);
    return cli_exit_code(status);
}

int command_grasp(int argc, char **argv)
{
    grasp_options o = defaults();
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&remote, connection);
    connection[0].help = "have a daemon play: HOST:PORT or unix:PATH";
    args_option device[DEVICE_OPTIONS];
    device_option_list(&o.device, device);
    args_option import[IMPORTING_OPTIONS];
    importing_option_list(&o.import, import);
    const args_option what[] = {
        {"hand", "FILE", "MJCF or URDF model of the hand", ARGS_TEXT, &o.hand, 0, 0, NULL},
        {"object", "FILE", "mesh (OBJ, STL, DAE, MSH), or a model of one body (MJCF, URDF)",
         ARGS_TEXT, &o.object, 0, 0, NULL},
        {"poses", "FILE", "poses of the tool frame in the object's frame: .csv or .json", ARGS_TEXT,
         &o.poses, 0, 0, NULL},
        {"sample", "N", "sample N antipodal poses instead", ARGS_INTEGER, &o.sample, 1, MOST_POSES,
         NULL},
        {"opening", "M", "widest pair of points to sample (a profile: the hand's opening; 0.08)",
         ARGS_NUMBER, &o.opening, DBL_MIN, 10, NULL},
        {"axis", "X,Y,Z", "closing direction in the tool frame, to sample (0,1,0)", ARGS_TEXT,
         &o.axis, 0, 0, NULL},
        {"mass", "KG", "of the object, instead of its own", ARGS_NUMBER, &o.mass, DBL_MIN, 1e6,
         NULL},
        {"density", "RHO", "kg/m^3, of a mesh (1000)", ARGS_NUMBER, &o.density, DBL_MIN, 1e6, NULL},
        {"friction", "MU", "of every contact (as the models say, a mesh and the table 0.7)",
         ARGS_NUMBER, &o.friction, DBL_MIN, 100, NULL},
        {"convex", NULL, "meshes collide as their convex hulls", ARGS_FLAG, &o.convex, 0, 0, NULL},
        {"no-table", NULL, "the object floats until the lift begins", ARGS_FLAG, &o.no_table, 0, 0,
         NULL},
        import[0],
        import[1],
        import[2],
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_option hand[] = {
        {"profile", "NAME",
         "a known hand, which gives tool frame and controls: panda, robotiq_2f85, robotiq_3f, "
         "shadow, allegro, leap, barrett, jaco",
         ARGS_TEXT, &o.profile, 0, 0, NULL},
        {"closing", "NAMES", "actuators that close the hand (all that move the fingertips apart)",
         ARGS_TEXT, &o.closing, 0, 0, NULL},
        {"open", "NUMBERS", "their controls when it is open", ARGS_TEXT, &o.open, 0, 0, NULL},
        {"close", "NUMBERS", "their controls when it is closed", ARGS_TEXT, &o.close, 0, 0, NULL},
        {"tool", "X,Y,Z[,Q]", "tool frame in the hand's base frame, or in the profile's", ARGS_TEXT,
         &o.tool, 0, 0, NULL},
        {"approach", "X,Y,Z", "the way the hand comes, tool frame (0,0,1)", ARGS_TEXT, &o.approach,
         0, 0, NULL},
        {"approach-distance", "M", "how far it comes (0)", ARGS_NUMBER, &o.approach_distance, 0,
         100, NULL},
        {"force", "N", "largest force of each closing actuator", ARGS_NUMBER, &o.force, DBL_MIN,
         1e6, NULL},
        {"width", "M", "stop the fingers of a jaw at this distance", ARGS_NUMBER, &o.width, DBL_MIN,
         10, NULL},
        {"close-time", "S", "to close (as long as the hand takes, 0.4 to 1)", ARGS_NUMBER,
         &o.close_seconds, DBL_MIN, 1000, NULL},
        {"lift", "M", "height of the lift (0.1)", ARGS_NUMBER, &o.lift, 0, 100, NULL},
        {"lift-time", "S", "to lift (0.4)", ARGS_NUMBER, &o.lift_seconds, DBL_MIN, 1000, NULL},
        {"shake", NULL, "shake along and about x, y and z", ARGS_FLAG, &o.shake, 0, 0, NULL},
        {"hold", "S", "to hold at the end (0.5)", ARGS_NUMBER, &o.hold, 0, 1000, NULL},
        {"slip-limit", "M", "more than this is no hold (0.005)", ARGS_NUMBER, &o.slip_limit, 0, 10,
         NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_option chance[] = {
        {"perturb", "N", "copies of each grasp; the first is not perturbed (1)", ARGS_INTEGER,
         &o.perturb, 1, MOST_COPIES, NULL},
        {"seed", "S", "of samples and perturbations (0)", ARGS_INTEGER, &o.seed, 0, 9e15, NULL},
        {"position-noise", "M", "standard deviation (0.003)", ARGS_NUMBER, &o.position_noise, 0, 10,
         NULL},
        {"angle-noise", "RAD", "standard deviation (0.05)", ARGS_NUMBER, &o.angle_noise, 0, 10,
         NULL},
        {"friction-noise", "R", "relative standard deviation (0.1)", ARGS_NUMBER, &o.friction_noise,
         0, 10, NULL},
        {"mass-noise", "R", "relative standard deviation (0.1)", ARGS_NUMBER, &o.mass_noise, 0, 10,
         NULL},
        {"confidence", "P", "of the interval (0.95)", ARGS_NUMBER, &o.confidence, 0.01, 0.999999,
         NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_option how[] = {
        {"dt", "S", "time step (0.002)", ARGS_NUMBER, &o.dt, DBL_MIN, 1, NULL},
        {"solver", "NAME", "contact solver", ARGS_TEXT, &o.solver, 0, 0, NULL},
        {"tolerance", "X", "residual at which a step counts as solved", ARGS_NUMBER, &o.tolerance,
         DBL_MIN, 1, NULL},
        {"max-iterations", "N", "sweeps of one step", ARGS_INTEGER, &o.maximum_iterations, 1,
         1000000000, NULL},
        device[0],
        device[1],
        {"threads", "N", "worlds side by side (all processors)", ARGS_INTEGER, &o.threads, 1, 512,
         NULL},
        {"record", "FILE.csv", "write every trial", ARGS_TEXT, &o.record, 0, 0, NULL},
        {"plot", "FILE.svg", "draw success, slip and quality", ARGS_TEXT, &o.plot, 0, 0, NULL},
        {"submit", NULL, "leave a job to the daemon and print its id; see 'tribo jobs'", ARGS_FLAG,
         &o.submit, 0, 0, NULL},
        {"trajectories", "LIST",
         "with --submit: verdicts, indices of grasps, or all, whose trajectories the job keeps",
         ARGS_TEXT, &o.trajectories, 0, 0, NULL},
        {"json", NULL, "one JSON object, its grasps as they come", ARGS_FLAG, &o.json, 0, 0, NULL},
        {"quiet", NULL, "print errors only (and --json)", ARGS_FLAG, &o.quiet, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {
        {"the object", what},         {"the hand and its path", hand}, {"chance", chance},
        {"protocol and output", how}, {"with a daemon", connection},   {NULL, NULL}};
    int operands = 0;
    switch (args_parse(&COMMAND, groups, argc, argv, &operands)) {
    case ARGS_HELPED: return CLI_OK;
    case ARGS_WRONG: return CLI_USAGE;
    case ARGS_READY: break;
    }
    if (!is_whole(&o, remote.address != NULL)) return CLI_USAGE;
    return carry_out(&o, &remote);
}
