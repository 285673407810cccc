/* tribo grasp: declarations shared by its files. */
#ifndef CLI_GRASP_H
#define CLI_GRASP_H

#include "common/args.h"
#include "simulation/device.h"
#include "simulation/importing.h"
#include "common/json.h"
#include "common/progress.h"
#include "remote/remote.h"
#include "tribo.h"

/* Options of the command line. Texts are borrowed from argv. */
typedef struct grasp_options {
    const char *hand, *object, *poses;
    importing import; /* overlaps: of the hand's links */
    const char *profile, *closing, *open, *close, *tool, *axis, *approach;
    const char *record, *plot, *solver, *trajectories;
    int64_t sample, perturb, seed, threads, maximum_iterations;
    double opening, density, mass, friction, force, width, approach_distance, close_seconds, lift,
        lift_seconds, hold, slip_limit, position_noise, angle_noise, friction_noise, mass_noise,
        confidence, dt, tolerance;
    device_options device;
    bool convex, no_table, shake, submit, json, quiet;
} grasp_options;

enum { GRASP_SHAKES = 6 };

/* A request with all that it borrows. */
typedef struct grasp_task {
    tb_grasp_request request;
    tb_scene *hand, *object;
    tb_hand *known;       /* the hand that samples consider; NULL: none */
    tb_grasp_pose *poses; /* names malloc'ed, may be NULL */
    int32_t number_of_poses;
    tb_grasp_shake shakes[GRASP_SHAKES];
    char *closing_text;   /* names, cut at the commas */
    const char **closing; /* into it */
    double *open, *close;
} grasp_task;

/* ---- grasp_task.c ---- */

/* Loads hand and object, reads or samples poses, fills the request. */
tb_status grasp_task_open(const grasp_options *options, grasp_task *task, tb_error *error);
void grasp_task_close(grasp_task *task);
/* Numbers separated by commas or spaces; `least` to `most` of them, *count (may be NULL). The error
 * names the option. */
tb_status grasp_numbers(const char *option, const char *text, int32_t least, int32_t most,
                        double *numbers, int32_t *count, tb_error *error);

/* Checks a profile's name and fills the hand's controls and tool frame from texts; the arrays are
 * the task's. */
tb_status grasp_task_hand(const grasp_options *options, grasp_task *task, tb_error *error);
/* The scene of the hand's or the object's file. */
tb_status grasp_task_load(const grasp_options *options, const char *path, bool fixed,
                          tb_scene **scene, tb_error *error);

/* ---- hand_draw.c ---- */

/* Draws a hand in the planes of its tool frame, open and closed. */
tb_status hand_draw(FILE *file, const tb_hand *hand, const char *title, tb_error *error);

/* ---- grasp_poses.c ---- */

/* Reads poses: JSON (an array of objects name, position, orientation, force) or CSV with a header
 * of name, x, y, z, qw, qx, qy, qz, force in any order, all but x, y, z optional. */
tb_status grasp_poses_read(const char *path, tb_grasp_pose **poses, int32_t *count,
                           tb_error *error);

/* ---- grasp_report.c ---- */

typedef struct grasp_report grasp_report;

/* Opens the files that the options ask for. */
tb_status grasp_report_begin(const grasp_options *options, int32_t copies, grasp_report **report,
                             tb_error *error);
/* One result as it comes: a line of the table or of JSON, rows of the record, a point of the plot.
 * `pose` is where the tool frame was to be. */
void grasp_report_add(grasp_report *report, const tb_grasp_result *result,
                      const tb_grasp_pose *pose);
/* A warning of the job: printed at once unless the options are quiet, and a member of the JSON. */
void grasp_report_warn(grasp_report *report, const char *warning);
/* The hand with its controls, once it is known. */
void grasp_report_hand(grasp_report *report, const tb_hand_info *hand);
/* False, with an error, if a trial has no verdict or diverged. */
bool grasp_report_certified(const grasp_report *report, tb_error *error);
/* The last lines; writes the files. seconds: of the wall clock. */
tb_status grasp_report_end(grasp_report *report, const tb_grasp_progress *done, double seconds,
                           const char *model_sha256, tb_error *error);
void grasp_report_free(grasp_report *report); /* NULL is fine */

/* A hand as an object of JSON. */
json_t *grasp_json_hand(const tb_hand_info *hand);

/* ---- grasp_remote.c ---- */

/* Submits the grasps as a job of a daemon and prints its id. */
tb_status grasp_submit(const remote_options *remote, const grasp_options *options,
                       const grasp_task *task, tb_error *error);
/* Has a daemon play the grasps and reports them, to the last line. */
tb_status grasp_play_remote(const remote_options *remote, const grasp_options *options,
                            const grasp_task *task, grasp_report *report, tb_error *error);

#endif
