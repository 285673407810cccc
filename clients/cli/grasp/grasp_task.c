/* From the command line of tribo grasp to a request. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "grasp/grasp.h"

/* of an object that comes without a surface */
static const double DEFAULT_FRICTION = 0.7, DEFAULT_SPIN_M = 0.005;
/* candidates drawn for each sample of a known hand; some of them collide */
enum { CANDIDATES = 4, MOST_CANDIDATES = 1000000 };
static const int64_t SLICE_NS = 50000000;

tb_status grasp_numbers(const char *option, const char *text, int32_t least, int32_t most,
                        double *numbers, int32_t *count, tb_error *error)
{
    int32_t n = 0;
    for (const char *p = text;;) {
        while (*p == ' ' || *p == ',' || *p == '\t') p++;
        if (*p == '\0') break;
        char *end;
        const double x = strtod(p, &end);
        if (end == p || !isfinite(x))
            return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, option, "%s: '%.40s' is no number",
                            option, p);
        if (n == most)
            return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, option,
                            "%s: more than %d numbers in '%.60s'", option, (int)most, text);
        numbers[n++] = x;
        p = end;
    }
    if (n < least)
        return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, option,
                        "%s: %d numbers in '%.60s', not %d", option, (int)n, text, (int)least);
    if (count != NULL) *count = n;
    return TB_OK;
}

/* ---- files ---- */

static void warn(void *context, tb_log_level level, const char *message)
{
    (void)context;
    if (level >= TB_LOG_WARNING) fprintf(stderr, "tribo: warning: %s\n", message);
}

tb_status grasp_task_load(const grasp_options *o, const char *path, bool fixed, tb_scene **scene,
                          tb_error *error)
{
    tb_import_options options = tb_import_defaults();
    importing import = o->import;
    tb_status status = importing_fill(&import, &options, error);
    options.fixed_base = fixed;
    if (o->density > 0) options.density = o->density;
    if (!o->quiet) options.log = (tb_log){warn, NULL};
    if (status == TB_OK) status = tb_scene_load(path, &options, scene, error);
    importing_free(&import);
    return status;
}

static bool is_mesh(const char *path)
{
    return files_has_extension(path, ".obj") || files_has_extension(path, ".stl");
}

/* ---- the hand ---- */

/* Cuts the names at the commas. */
static tb_status split_names(grasp_task *t, const char *text, tb_error *error)
{
    int32_t count = 1;
    for (const char *p = text; *p != '\0'; p++) count += *p == ',';
    t->closing_text = strdup(text);
    t->closing = calloc((size_t)count, sizeof *t->closing);
    t->open = calloc((size_t)count, sizeof *t->open);
    t->close = calloc((size_t)count, sizeof *t->close);
    if (t->closing_text == NULL || t->closing == NULL || t->open == NULL || t->close == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
    char *name = t->closing_text;
    for (int32_t i = 0; i < count; i++) {
        char *next = strchr(name, ',');
        if (next != NULL) *next++ = '\0';
        t->closing[i] = name;
        name = next;
    }
    t->request.hand.closing = t->closing;
    t->request.hand.number_of_closing = count;
    return TB_OK;
}

tb_status grasp_task_hand(const grasp_options *o, grasp_task *t, tb_error *error)
{
    tb_grasp_hand *hand = &t->request.hand;
    hand->overlaps = (tb_overlap_policy)o->import.overlaps;
    hand->profile = o->profile;
    double tool[7] = {0, 0, 0, 1, 0, 0, 0};
    int32_t numbers = 0;
    tb_status status = TB_OK;
    if ((o->open != NULL || o->close != NULL) && o->closing == NULL)
        return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, "closing",
                        "--open and --close need the actuators' names by --closing");
    if (o->closing != NULL) status = split_names(t, o->closing, error);
    const int32_t n = hand->number_of_closing;
    if (status == TB_OK && o->open != NULL) {
        status = grasp_numbers("--open", o->open, n, n, t->open, NULL, error);
        hand->open_controls = t->open;
    }
    if (status == TB_OK && o->close != NULL) {
        status = grasp_numbers("--close", o->close, n, n, t->close, NULL, error);
        hand->close_controls = t->close;
    }
    if (status == TB_OK && o->tool != NULL)
        status = grasp_numbers("--tool", o->tool, 3, 7, tool, &numbers, error);
    if (status == TB_OK && numbers != 0 && numbers != 3 && numbers != 7)
        status = cli_fail(error, TB_INVALID_ARGUMENT, "", 0, "tool",
                          "--tool: %d numbers, not 3 or 7", (int)numbers);
    memcpy(hand->tool_position, tool, sizeof hand->tool_position);
    memcpy(hand->tool_orientation, tool + 3, sizeof hand->tool_orientation);
    return status;
}

/* ---- the rest ---- */

static void set_shakes(grasp_task *t)
{
    for (int i = 0; i < GRASP_SHAKES; i++) {
        tb_grasp_shake *s = &t->shakes[i];
        *s = tb_grasp_shake_defaults();
        memset(s->axis, 0, sizeof s->axis);
        s->axis[i % 3] = 1;
        s->amplitude = i < 3 ? 0.01 : 0;
        s->angle = i < 3 ? 0 : 0.2;
        s->frequency = 3;
    }
    t->request.protocol.shakes = t->shakes;
    t->request.protocol.number_of_shakes = GRASP_SHAKES;
}

static tb_status set_protocol(const grasp_options *o, grasp_task *t, tb_error *error)
{
    tb_grasp_request *r = &t->request;
    r->object.mass = o->mass;
    r->object.friction = o->friction > 0 ? o->friction : 0;
    if (o->friction == 0 && is_mesh(o->object)) {
        r->object.own_friction = DEFAULT_FRICTION;
        r->object.own_spin = DEFAULT_SPIN_M;
    }
    r->object.convex = o->convex;
    r->object.no_table = o->no_table;
    r->protocol.approach_distance = o->approach_distance;
    r->protocol.close_seconds = o->close_seconds;
    r->protocol.force = o->force;
    r->protocol.width = o->width;
    r->protocol.lift = o->lift;
    r->protocol.lift_seconds = o->lift_seconds;
    r->protocol.hold_seconds = o->hold;
    r->protocol.slip_limit = o->slip_limit;
    if (o->shake) set_shakes(t);
    r->perturbation = (tb_grasp_perturbation){.count = (int32_t)o->perturb,
                                              .seed = (uint64_t)o->seed,
                                              .position = o->position_noise,
                                              .angle = o->angle_noise,
                                              .friction = o->friction_noise,
                                              .mass = o->mass_noise};
    r->confidence = o->confidence;
    r->step.dt = o->dt;
    r->step.threads = (int32_t)o->threads;
    device_apply(&o->device, &r->step);
    if (o->solver != NULL) r->step.solve.solver = o->solver;
    if (o->tolerance > 0) r->step.solve.tolerance = o->tolerance;
    if (o->maximum_iterations > 0)
        r->step.solve.maximum_iterations = (int32_t)o->maximum_iterations;
    if (o->approach == NULL) return TB_OK;
    return grasp_numbers("--approach", o->approach, 3, 3, r->protocol.approach, NULL, error);
}

/* Samples for a hand that a profile knows: no wider than its opening, no thinner than what it leaves
 * open when it is closed, and above the table. */
static tb_status consider_hand(const grasp_options *o, grasp_task *t, tb_grasp_sampling *s,
                               tb_error *error)
{
    tb_grasp_hand from = t->request.hand;
    from.scene = t->hand;
    const tb_status status = tb_hand_create(&from, &t->known, error);
    if (status != TB_OK) return status;
    const double opening = tb_hand_describe(t->known)->opening;
    if (o->opening == 0 && opening > 0) s->opening = opening;
    const double least = tb_hand_describe(t->known)->least_opening;
    if (least < s->opening) s->least_opening = least;
    if (!o->no_table) s->hand = t->known;
    return TB_OK;
}

/* Keeps the first `count` poses in which the open hand is free of the object and the table. The
 * trials last until the fingers begin to close. */
static tb_status keep_free(grasp_task *t, int32_t count, tb_error *error)
{
    tb_grasp_request trial = t->request;
    tb_grasp_job *job = NULL;
    bool finished = false;
    int32_t n = 0;
    trial.hand.scene = t->hand;
    trial.object.scene = t->object;
    trial.poses = t->poses;
    trial.number_of_poses = t->number_of_poses;
    trial.perturbation.count = 1;
    trial.protocol.close_seconds = 1e-9;
    trial.protocol.lift = trial.protocol.lift_seconds = trial.protocol.hold_seconds = 0;
    trial.protocol.number_of_shakes = 0;
    trial.step.backend = TB_BACKEND_CPU;
    tb_status status = tb_grasp_job_create(&trial, &job, error);
    while (status == TB_OK && !finished && n < count) {
        status = tb_grasp_job_advance(job, SLICE_NS, &finished, error);
        for (const tb_grasp_result *r; n < count && (r = tb_grasp_job_next(job)) != NULL;)
            if (r->trials[0].verdict != TB_GRASP_COLLIDED) t->poses[n++] = t->poses[r->index];
    }
    t->number_of_poses = n;
    tb_grasp_job_destroy(job);
    return status;
}

static tb_status sample(const grasp_options *o, grasp_task *t, tb_error *error)
{
    tb_grasp_sampling s = tb_grasp_sampling_defaults();
    s.count = (int32_t)o->sample;
    s.seed = (uint64_t)o->seed;
    if (o->opening > 0) s.opening = o->opening;
    if (o->profile != NULL) {
        const tb_status status = consider_hand(o, t, &s, error);
        if (status != TB_OK) return status;
    }
    if (t->request.object.friction > 0) s.friction = t->request.object.friction;
    if (t->request.object.own_friction > 0) s.friction = t->request.object.own_friction;
    memcpy(s.approach, t->request.protocol.approach, sizeof s.approach);
    if (o->axis != NULL) {
        const tb_status status = grasp_numbers("--axis", o->axis, 3, 3, s.axis, NULL, error);
        if (status != TB_OK) return status;
    }
    if (t->known != NULL) s.count = (int32_t)fmin(s.count * (double)CANDIDATES, MOST_CANDIDATES);
    t->poses = calloc((size_t)s.count, sizeof *t->poses);
    if (t->poses == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for %d poses",
                        (int)s.count);
    tb_status status = tb_grasp_sample(t->object, &s, t->poses, &t->number_of_poses, error);
    if (status == TB_OK && t->known != NULL && t->number_of_poses > 0)
        status = keep_free(t, (int32_t)o->sample, error);
    if (status == TB_OK && t->number_of_poses == 0)
        return cli_fail(error, TB_NOT_FOUND, o->object, 0, NULL,
                        "no two points of the surface lie opposite each other within %g m: see "
                        "--opening and --friction",
                        s.opening);
    return status;
}

tb_status grasp_task_open(const grasp_options *o, grasp_task *t, tb_error *error)
{
    memset(t, 0, sizeof *t);
    t->request = tb_grasp_defaults();
    tb_status status = grasp_task_load(o, o->hand, true, &t->hand, error);
    if (status == TB_OK) status = grasp_task_load(o, o->object, false, &t->object, error);
    if (status == TB_OK) status = grasp_task_hand(o, t, error);
    if (status == TB_OK) status = set_protocol(o, t, error);
    if (status == TB_OK)
        status = o->poses != NULL
                     ? grasp_poses_read(o->poses, &t->poses, &t->number_of_poses, error)
                     : sample(o, t, error);
    t->request.hand.scene = t->hand;
    t->request.object.scene = t->object;
    t->request.poses = t->poses;
    t->request.number_of_poses = t->number_of_poses;
    return status;
}

void grasp_task_close(grasp_task *t)
{
    for (int32_t i = 0; i < t->number_of_poses; i++) free((char *)t->poses[i].name);
    free(t->poses);
    free(t->closing_text);
    free(t->closing);
    free(t->open);
    free(t->close);
    tb_hand_destroy(t->known);
    tb_scene_destroy(t->hand);
    tb_scene_destroy(t->object);
    memset(t, 0, sizeof *t);
}
