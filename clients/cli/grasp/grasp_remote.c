/* tribo grasp with a daemon: sends the request as EvaluateGrasps and prints the response in the
 * same report. The report omits data that the protocol does not carry (bodies and margins of single
 * contacts). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "grasp/grasp.h"
#include "common/interrupt.h"
#include "remote/remote_session.h"
#include "tribo/v1/grasp.pb-c.h"

/* An uploaded file and the files that it refers to. */
typedef struct asset {
    char sha256[65];
    tbc_files files;
    Tribo__V1__SceneFile *entries, **pointers;
    Tribo__V1__GraspAsset message;
} asset;

typedef struct outgoing {
    asset hand, object;
    Tribo__V1__Pose tool, *poses;
    Tribo__V1__GraspPose *grasps, **grasp_pointers;
    Tribo__V1__ShakeMotion shakes[GRASP_SHAKES], *shake_pointers[GRASP_SHAKES];
} outgoing;

static tb_status no_memory(tb_error *error)
{
    return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for the request");
}

/* ---- the request ---- */

static tb_status upload(tbc_client *client, const char *path, const grasp_options *options,
                        asset *a, tb_error *error)
{
    tb_import_options import = tb_import_defaults();
    importing folders = options->import;
    tb_status status = importing_fill(&folders, &import, error);
    if (status == TB_OK)
        status = tbc_upload_model(client, path, import.package_path, a->sha256, &a->files, error);
    importing_free(&folders);
    if (status != TB_OK) return status;
    const size_t count = (size_t)a->files.count;
    a->entries = calloc(count + 1, sizeof *a->entries);
    a->pointers = calloc(count + 1, sizeof(void *));
    if (a->entries == NULL || a->pointers == NULL) return no_memory(error);
    for (size_t i = 0; i < count; i++) {
        tribo__v1__scene_file__init(&a->entries[i]);
        a->entries[i].path = a->files.references[i];
        a->entries[i].sha256 = a->files.sha256[i];
        a->pointers[i] = &a->entries[i];
    }
    const char *slash = strrchr(path, '/');
    tribo__v1__grasp_asset__init(&a->message);
    a->message.main_case = TRIBO__V1__GRASP_ASSET__MAIN_SHA256;
    a->message.sha256 = a->sha256;
    a->message.path = (char *)(uintptr_t)(slash != NULL ? slash + 1 : path);
    a->message.n_files = count;
    a->message.files = a->pointers;
    a->message.balance_inertia = options->import.balance_inertia;
    return TB_OK;
}

static void free_asset(asset *a)
{
    tbc_files_free(&a->files);
    free(a->entries);
    free(a->pointers);
}

static double *numbers(const double *values)
{
    return (double *)(uintptr_t)values; /* messages that are only packed are not written to */
}

static void fill_pose(Tribo__V1__Pose *to, const double position[3], const double orientation[4])
{
    tribo__v1__pose__init(to);
    to->n_position = 3;
    to->position = numbers(position);
    to->n_orientation = 4;
    to->orientation = numbers(orientation);
}

static tb_status fill_poses(outgoing *o, const grasp_task *task, tb_error *error)
{
    const size_t n = (size_t)task->number_of_poses;
    static char unnamed[] = "";
    o->poses = calloc(n + 1, sizeof *o->poses);
    o->grasps = calloc(n + 1, sizeof *o->grasps);
    o->grasp_pointers = calloc(n + 1, sizeof(void *));
    if (o->poses == NULL || o->grasps == NULL || o->grasp_pointers == NULL) return no_memory(error);
    for (size_t i = 0; i < n; i++) {
        const tb_grasp_pose *pose = &task->poses[i];
        fill_pose(&o->poses[i], pose->position, pose->orientation);
        tribo__v1__grasp_pose__init(&o->grasps[i]);
        o->grasps[i].name = pose->name != NULL ? (char *)(uintptr_t)pose->name : unnamed;
        o->grasps[i].pose = &o->poses[i];
        o->grasps[i].force = pose->force;
        o->grasp_pointers[i] = &o->grasps[i];
    }
    return TB_OK;
}

static void fill_protocol(outgoing *o, const tb_grasp_request *r, Tribo__V1__GraspProtocol *p)
{
    p->dt = r->step.dt;
    p->n_approach = 3;
    p->approach = numbers(r->protocol.approach);
    p->approach_distance = r->protocol.approach_distance;
    p->approach_speed = r->protocol.approach_speed;
    p->close_seconds = r->protocol.close_seconds;
    p->force = r->protocol.force;
    p->width = r->protocol.width;
    p->lift = r->protocol.lift;
    p->lift_seconds = r->protocol.lift_seconds;
    p->hold_seconds = r->protocol.hold_seconds;
    p->slip_limit = r->protocol.slip_limit;
    for (int32_t i = 0; i < r->protocol.number_of_shakes; i++) {
        const tb_grasp_shake *s = &r->protocol.shakes[i];
        tribo__v1__shake_motion__init(&o->shakes[i]);
        o->shakes[i].n_axis = 3;
        o->shakes[i].axis = numbers(s->axis);
        o->shakes[i].amplitude = s->amplitude;
        o->shakes[i].angle = s->angle;
        o->shakes[i].frequency = s->frequency;
        o->shakes[i].seconds = s->seconds;
        o->shake_pointers[i] = &o->shakes[i];
    }
    p->n_shakes = (size_t)r->protocol.number_of_shakes;
    p->shakes = o->shake_pointers;
}

static void fill_hand(outgoing *o, const tb_grasp_hand *hand, Tribo__V1__GraspHand *to)
{
    const size_t n = (size_t)hand->number_of_closing;
    fill_pose(&o->tool, hand->tool_position, hand->tool_orientation);
    static const Tribo__V1__OverlapPolicy OVERLAPS[] = {
        [TB_OVERLAPS_KEEP] = TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_KEEP,
        [TB_OVERLAPS_IGNORE] = TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_IGNORE,
        [TB_OVERLAPS_ERROR] = TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_ERROR};
    to->asset = &o->hand.message;
    to->overlaps = OVERLAPS[hand->overlaps];
    to->tool = &o->tool;
    if (hand->profile != NULL) to->profile = (char *)(uintptr_t)hand->profile;
    to->n_closing_actuators = n;
    to->closing_actuators = (char **)(uintptr_t)hand->closing;
    to->n_open_controls = hand->open_controls != NULL ? n : 0;
    to->open_controls = numbers(hand->open_controls);
    to->n_close_controls = hand->close_controls != NULL ? n : 0;
    to->close_controls = numbers(hand->close_controls);
}

/* On the wire 0 is the default, here it is 0. */
static tb_status check_zeros(const tb_grasp_protocol *p, tb_error *error)
{
    const struct {
        const char *option;
        double value;
    } ZEROS[] = {{"--lift", p->lift}, {"--hold", p->hold_seconds}, {"--slip-limit", p->slip_limit}};
    for (size_t i = 0; i < sizeof ZEROS / sizeof ZEROS[0]; i++)
        if (ZEROS[i].value == 0)
            return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, ZEROS[i].option + 2,
                            "%s 0 cannot be told to a daemon, which takes it for its default",
                            ZEROS[i].option);
    return TB_OK;
}

/* Calls `send` with the request, whose parts live in this function. */
static tb_status with_request(outgoing *o, const grasp_options *options, const grasp_task *task,
                              tb_status (*send)(void *context,
                                                Tribo__V1__EvaluateGraspsRequest *request,
                                                tb_error *error),
                              void *context, tb_error *error)
{
    const tb_grasp_request *r = &task->request;
    Tribo__V1__EvaluateGraspsRequest request = TRIBO__V1__EVALUATE_GRASPS_REQUEST__INIT;
    Tribo__V1__GraspObject object = TRIBO__V1__GRASP_OBJECT__INIT;
    Tribo__V1__GraspHand hand = TRIBO__V1__GRASP_HAND__INIT;
    Tribo__V1__GraspProtocol protocol = TRIBO__V1__GRASP_PROTOCOL__INIT;
    Tribo__V1__GraspPerturbation perturbation = TRIBO__V1__GRASP_PERTURBATION__INIT;
    Tribo__V1__SolveOptions solve = TRIBO__V1__SOLVE_OPTIONS__INIT;
    char label[] = "tribo grasp", device[DEVICE_NAME];
    object.asset = &o->object.message;
    object.mass = r->object.mass;
    object.density = options->density;
    object.friction = r->object.friction;
    object.convex = r->object.convex;
    object.no_table = r->object.no_table;
    fill_hand(o, &r->hand, &hand);
    fill_protocol(o, r, &protocol);
    perturbation.count = r->perturbation.count;
    perturbation.seed = r->perturbation.seed;
    perturbation.position = r->perturbation.position;
    perturbation.angle = r->perturbation.angle;
    perturbation.friction = r->perturbation.friction;
    perturbation.mass = r->perturbation.mass;
    if (options->solver != NULL) solve.solver = (char *)(uintptr_t)options->solver;
    solve.tolerance = options->tolerance;
    solve.maximum_iterations = (int32_t)options->maximum_iterations;
    request.object = &object;
    request.hand = &hand;
    request.n_poses = (size_t)task->number_of_poses;
    request.poses = o->grasp_pointers;
    request.protocol = &protocol;
    request.perturbation = &perturbation;
    request.solve = &solve;
    request.confidence = r->confidence;
    request.label = label;
    device_name(&options->device, device);
    request.device = device;
    return send(context, &request, error);
}

static tb_status send_request(void *context, Tribo__V1__EvaluateGraspsRequest *request,
                              tb_error *error)
{
    tbc_stream *stream = context;
    const tb_status status = tbc_stream_send(stream, &request->base, error);
    /* receive returns the reason of a failed send */
    if (status == TB_OK) tbc_stream_half_close(stream, NULL);
    return TB_OK;
}

/* ---- a job ---- */

typedef struct submission {
    tbc_client *client;
    Tribo__V1__GraspTrajectoryOptions *trajectories; /* NULL: none are kept */
    char id[40];
} submission;

static tb_status send_job(void *context, Tribo__V1__EvaluateGraspsRequest *grasps, tb_error *error)
{
    submission *s = context;
    Tribo__V1__SubmitGraspsRequest request = TRIBO__V1__SUBMIT_GRASPS_REQUEST__INIT;
    Tribo__V1__SubmitGraspsResponse *answer = NULL;
    grasps->trajectories = s->trajectories;
    request.grasps = grasps;
    const tb_status status = TBC_CALL(s->client, "tribo.v1.Grasp/SubmitGrasps", &request,
                                      submit_grasps_response, &answer, error);
    if (status != TB_OK) return status;
    snprintf(s->id, sizeof s->id, "%s", answer->job != NULL ? answer->job->id : "");
    tbc_free(answer);
    return TB_OK;
}

/* Reads "dropped,slipped", "3,17" or "all" into a message; the caller frees its two arrays. */
static tb_status read_trajectories(const char *text, Tribo__V1__GraspTrajectoryOptions *m,
                                   tb_error *error)
{
    enum { VERDICTS = TB_GRASP_UNCERTIFIED + 1 };
    const size_t most = strlen(text) + VERDICTS;
    m->grasps = calloc(most, sizeof *m->grasps);
    m->verdicts = calloc(most, sizeof *m->verdicts);
    if (m->grasps == NULL || m->verdicts == NULL) return no_memory(error);
    for (const char *at = text; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        char *end = NULL;
        const long index = strtol(at, &end, 10);
        const bool all = length == 3 && strncmp(at, "all", 3) == 0;
        bool known = all;
        for (int v = 0; v < VERDICTS; v++) {
            const char *name = tb_grasp_verdict_name((tb_grasp_verdict)v);
            if (!all && (strlen(name) != length || strncmp(at, name, length) != 0)) continue;
            m->verdicts[m->n_verdicts++] =
                (Tribo__V1__GraspVerdict)(v + TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_HELD);
            known = true;
        }
        if (!known && length > 0 && end == at + length && index >= 0 && index <= INT32_MAX) {
            m->grasps[m->n_grasps++] = (int32_t)index;
            known = true;
        }
        if (!known)
            return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, "trajectories",
                            "--trajectories: '%.*s' is no verdict and no index of a grasp",
                            (int)length, at);
        at += length + (at[length] == ',');
    }
    return TB_OK;
}

static void free_outgoing(outgoing *o)
{
    free_asset(&o->hand);
    free_asset(&o->object);
    free(o->poses);
    free(o->grasps);
    free(o->grasp_pointers);
}

/* Connects, uploads the files and packs the poses. */
static tb_status prepare(const remote_options *remote, const grasp_options *options,
                         const grasp_task *task, outgoing *o, tbc_client **client, tb_error *error)
{
    tb_status status = check_zeros(&task->request.protocol, error);
    if (status == TB_OK) status = remote_connect(remote, client, error);
    if (status == TB_OK) status = upload(*client, options->hand, options, &o->hand, error);
    if (status == TB_OK) status = upload(*client, options->object, options, &o->object, error);
    return status == TB_OK ? fill_poses(o, task, error) : status;
}

tb_status grasp_submit(const remote_options *remote, const grasp_options *options,
                       const grasp_task *task, tb_error *error)
{
    outgoing o = {.tool = TRIBO__V1__POSE__INIT};
    submission s = {0};
    Tribo__V1__GraspTrajectoryOptions kept = TRIBO__V1__GRASP_TRAJECTORY_OPTIONS__INIT;
    tb_status status = TB_OK;
    if (options->trajectories != NULL) {
        s.trajectories = &kept;
        status = read_trajectories(options->trajectories, &kept, error);
    }
    if (status == TB_OK) status = prepare(remote, options, task, &o, &s.client, error);
    if (status == TB_OK) status = with_request(&o, options, task, send_job, &s, error);
    if (status == TB_OK && options->json) {
        json_t *object = json_object();
        json_object_set_new(object, "id", json_text(s.id));
        json_object_set_new(object, "number_of_grasps", json_integer(task->number_of_poses));
        json_print(stdout, object);
    } else if (status == TB_OK) {
        printf("%s\n", s.id);
    }
    free(kept.grasps);
    free(kept.verdicts);
    tbc_disconnect(s.client);
    free_outgoing(&o);
    return status;
}

/* ---- the results ---- */

static tb_grasp_verdict read_verdict(Tribo__V1__GraspVerdict v)
{
    switch (v) {
    case TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_HELD: return TB_GRASP_HELD;
    case TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_SLIPPED: return TB_GRASP_SLIPPED;
    case TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_COLLIDED: return TB_GRASP_COLLIDED;
    case TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_DIVERGED: return TB_GRASP_DIVERGED;
    case TRIBO__V1__GRASP_VERDICT__GRASP_VERDICT_UNCERTIFIED: return TB_GRASP_UNCERTIFIED;
    default: return TB_GRASP_DROPPED;
    }
}

static tb_grasp_stage read_stage(Tribo__V1__GraspStage s)
{
    switch (s) {
    case TRIBO__V1__GRASP_STAGE__GRASP_STAGE_CLOSING: return TB_GRASP_CLOSING;
    case TRIBO__V1__GRASP_STAGE__GRASP_STAGE_LIFT: return TB_GRASP_LIFT;
    case TRIBO__V1__GRASP_STAGE__GRASP_STAGE_SHAKING: return TB_GRASP_SHAKING;
    case TRIBO__V1__GRASP_STAGE__GRASP_STAGE_HOLD: return TB_GRASP_HOLD;
    default: return TB_GRASP_APPROACH;
    }
}

/* Names are the message's. */
static void read_reason(const Tribo__V1__GraspReason *from, tb_grasp_reason *to)
{
    if (from == NULL) return;
    to->stage = read_stage(from->stage);
    to->time = from->time;
    if (from->hand_body[0] != '\0') {
        to->hand_body = from->hand_body;
        to->other_body = from->other_body;
    }
    to->depth = from->depth;
    if (from->n_point == 3) memcpy(to->point, from->point, sizeof to->point);
    to->margin = from->margin;
    to->slide_time = from->slide_time;
    to->grip = from->grip;
    to->press = from->press;
    to->lean = from->lean;
    if (from->tool != NULL && from->tool->n_position == 3)
        memcpy(to->position, from->tool->position, sizeof to->position);
    if (from->tool != NULL && from->tool->n_orientation == 4)
        memcpy(to->orientation, from->tool->orientation, sizeof to->orientation);
    to->residual = from->residual;
    to->apparent = read_verdict(from->apparent);
}

/* Copies row i of an n x width array; zeros where it has none. */
static void read_row(const Tribo__V1__Array *from, size_t i, size_t width, double *to)
{
    const size_t bytes = width * sizeof(double);
    memset(to, 0, bytes);
    if (from != NULL && from->data.len >= (i + 1) * bytes)
        memcpy(to, from->data.data + i * bytes, bytes);
}

static tb_status add_result(const Tribo__V1__GraspResult *m, const grasp_task *task,
                            grasp_report *report, tb_grasp_progress *done, tb_error *error)
{
    const size_t contacts = m->wrenches != NULL ? m->wrenches->data.len / (6 * sizeof(double)) : 0;
    tb_grasp_trial *trials = calloc(m->n_trials + 1, sizeof *trials);
    tb_grasp_contact *touches = calloc(contacts + 1, sizeof *touches);
    tb_grasp_finger *fingers = calloc(m->n_finger_names + 1, sizeof *fingers);
    tb_status status = TB_OK;
    if (trials == NULL || touches == NULL || fingers == NULL) {
        status = no_memory(error);
    } else if (m->index < 0 || m->index >= task->number_of_poses || m->n_trials == 0 ||
               m->n_finger_names != m->n_finger_forces) {
        status = cli_fail(error, TB_DATA_LOSS, "", 0, NULL, "the daemon sent a damaged result");
    } else {
        tb_grasp_result g = {.index = m->index,
                             .name = m->name,
                             .trials = trials,
                             .number_of_trials = (int32_t)m->n_trials,
                             .uncertified = m->uncertified,
                             .success = m->success,
                             .lower = m->success_lower,
                             .upper = m->success_upper,
                             .slip = m->slip,
                             .contacts = touches,
                             .fingers = fingers,
                             .number_of_contacts = (int32_t)contacts,
                             .number_of_fingers = (int32_t)m->n_finger_names,
                             .radius = m->object_radius,
                             .epsilon = m->epsilon_quality,
                             .volume = m->volume_quality,
                             .margin = m->weakest_margin};
        for (size_t i = 0; i < m->n_trials; i++) {
            const Tribo__V1__GraspTrial *t = m->trials[i];
            trials[i] =
                (tb_grasp_trial){.verdict = read_verdict(t->verdict),
                                 .slip = t->slip,
                                 .drop_time = t->drop_time,
                                 .friction = t->friction,
                                 .mass = t->mass,
                                 .steps = t->certificate != NULL ? t->certificate->step : 0};
            if (t->certificate != NULL)
                remote_read_certificate(t->certificate, &trials[i].certificate);
            read_reason(t->reason, &trials[i].reason);
            done->trials_held += trials[i].verdict == TB_GRASP_HELD;
            done->trials_uncertified += trials[i].verdict == TB_GRASP_UNCERTIFIED;
        }
        done->trials_done += (int64_t)m->n_trials;
        for (size_t i = 0; i < contacts; i++) {
            read_row(m->contact_positions, i, 3, touches[i].position);
            read_row(m->contact_normals, i, 3, touches[i].normal);
            read_row(m->wrenches, i, 6, touches[i].wrench);
            read_row(m->contact_frictions, i, 3, touches[i].friction);
        }
        if (m->n_approach == 3) memcpy(g.approach, m->approach, sizeof g.approach);
        if (m->n_object_centre == 3) memcpy(g.centre, m->object_centre, sizeof g.centre);
        for (size_t i = 0; i < m->n_finger_names; i++)
            fingers[i] = (tb_grasp_finger){m->finger_names[i], m->finger_forces[i]};
        if (m->certificate != NULL) remote_read_certificate(m->certificate, &g.certificate);
        grasp_report_add(report, &g, &task->poses[m->index]);
    }
    free(trials);
    free(touches);
    free(fingers);
    return status;
}

static tb_control_source read_source(Tribo__V1__ControlSource s)
{
    switch (s) {
    case TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_REQUEST: return TB_CONTROL_REQUEST;
    case TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_PROFILE: return TB_CONTROL_PROFILE;
    case TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_KEYFRAME: return TB_CONTROL_KEYFRAME;
    case TRIBO__V1__CONTROL_SOURCE__CONTROL_SOURCE_MOTION: return TB_CONTROL_MOTION;
    default: return TB_CONTROL_IDLE;
    }
}

static tb_status add_hand(const Tribo__V1__HandInfo *m, grasp_report *report, tb_error *error)
{
    if (m == NULL) return TB_OK;
    tb_hand_control *controls = calloc(m->n_controls + 1, sizeof *controls);
    if (controls == NULL) return no_memory(error);
    tb_hand_info hand = {.profile = m->profile,
                         .base = m->base_body,
                         .opening = m->opening,
                         .least_opening = m->least_opening,
                         .controls = controls,
                         .number_of_controls = (int32_t)m->n_controls};
    if (m->tool != NULL && m->tool->n_position == 3 && m->tool->n_orientation == 4) {
        memcpy(hand.tool_position, m->tool->position, sizeof hand.tool_position);
        memcpy(hand.tool_orientation, m->tool->orientation, sizeof hand.tool_orientation);
    }
    if (m->n_axis == 3) memcpy(hand.axis, m->axis, sizeof hand.axis);
    for (size_t i = 0; i < m->n_controls; i++)
        controls[i] = (tb_hand_control){m->controls[i]->actuator, m->controls[i]->open,
                                        m->controls[i]->close, read_source(m->controls[i]->source)};
    grasp_report_hand(report, &hand);
    free(controls);
    return TB_OK;
}

static tb_status receive(tbc_stream *stream, const grasp_options *options, const grasp_task *task,
                         grasp_report *report, tb_grasp_progress *done, char sha256[65],
                         tb_error *error)
{
    const double copies = task->request.perturbation.count;
    bool finished = false;
    tb_status status = TB_OK;
    progress bar = progress_begin("grasping", task->number_of_poses * copies, options->quiet);
    while (status == TB_OK && !interrupt_requested()) {
        ProtobufCMessage *message = NULL;
        status = tbc_stream_receive(stream, &message, error);
        if (status != TB_OK || message == NULL) break;
        const Tribo__V1__EvaluateGraspsResponse *e = (const void *)message;
        if (e->event_case == TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_RESULT) {
            progress_end(&bar);
            status = add_result(e->result, task, report, done, error);
        } else if (e->event_case == TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_PROGRESS) {
            progress_update(&bar, e->progress->grasps_done * copies);
        } else if (e->event_case == TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_SUMMARY) {
            finished = true;
            done->world_steps_done = e->summary->world_steps;
            status = add_hand(e->summary->hand, report, error);
            snprintf(sha256, 65, "%s", e->summary->object_sha256);
            for (size_t i = 0; i < e->summary->n_warnings; i++)
                grasp_report_warn(report, e->summary->warnings[i]);
        }
        tbc_free(message);
    }
    progress_end(&bar);
    if (status == TB_OK && !finished)
        status = interrupt_requested()
                     ? cli_fail(error, TB_CANCELLED, "", 0, NULL, "interrupted after %lld trials",
                                (long long)done->trials_done)
                     : cli_fail(error, TB_DATA_LOSS, "", 0, NULL, "the results have no end");
    return status;
}

tb_status grasp_play_remote(const remote_options *remote, const grasp_options *options,
                            const grasp_task *task, grasp_report *report, tb_error *error)
{
    outgoing o = {.tool = TRIBO__V1__POSE__INIT};
    tbc_client *client = NULL;
    tbc_stream *stream = NULL;
    tb_grasp_progress done = {0};
    char sha256[65] = "";
    const double start = progress_clock();
    tb_status status = prepare(remote, options, task, &o, &client, error);
    if (status == TB_OK)
        status =
            tbc_stream_open(client, "tribo.v1.Grasp/EvaluateGrasps",
                            &tribo__v1__evaluate_grasps_response__descriptor, 0, &stream, error);
    if (status == TB_OK) status = with_request(&o, options, task, send_request, stream, error);
    if (status == TB_OK) status = receive(stream, options, task, report, &done, sha256, error);
    tb_error closing = {0};
    /* a call that was refused has no results to sum up */
    if (status == TB_OK || done.trials_done > 0) {
        const tb_status written =
            grasp_report_end(report, &done, progress_clock() - start, sha256, &closing);
        if (status == TB_OK && written != TB_OK) {
            status = written;
            *error = closing;
        }
    }
    tbc_stream_close(stream);
    tbc_disconnect(client);
    free_outgoing(&o);
    return status;
}
