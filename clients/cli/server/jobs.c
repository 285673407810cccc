/* tribo jobs: grasp jobs of a daemon, their progress, their results and their trajectories. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/names.h"
#include "remote/remote.h"
#include "tribo/v1/grasp.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"

enum { RESULTS_AT_ONCE = 500 };

static const args_command COMMAND = {
    .name = "jobs",
    .operands = "[show ID | cancel ID | trajectory ID GRASP]",
    .description =
        "Lists grasp jobs of a daemon, newest first: those of 'tribo grasp --submit' and of\n"
        "SubmitGrasps. 'show' prints a job's progress and its results so far, 'cancel' ends it; "
        "its\n"
        "results stay. 'trajectory' gives the motion of a trial that the job was asked to keep "
        "('tribo grasp\n"
        "--submit --trajectories'), as one row a frame: time, then position and orientation (w x y "
        "z) of each\n"
        "body. An ID may be cut to a unique beginning.\n",
    .examples = "  tribo jobs\n"
                "  tribo jobs show 3f2a --json\n"
                "  tribo jobs cancel 3f2a\n"
                "  tribo jobs trajectory 3f2a 17 --out trial.csv\n",
    .minimum_operands = 0,
    .maximum_operands = 3};

static const char *status_word(Tribo__V1__GraspJobStatus status)
{
    static const char *const WORDS[] = {"?", "running", "done", "cancelled", "failed"};
    return WORDS[(unsigned)status < 5 ? (unsigned)status : 0];
}

static const char *verdict_word(Tribo__V1__GraspVerdict verdict)
{
    static const char *const WORDS[] = {"?",        "held",     "slipped",    "dropped",
                                        "collided", "diverged", "uncertified"};
    return WORDS[(unsigned)verdict < 7 ? (unsigned)verdict : 0];
}

static json_t *job_json(const Tribo__V1__GraspJobInfo *job)
{
    json_t *object = json_object();
    json_object_set_new(object, "id", json_text(job->id));
    json_object_set_new(object, "status", json_string(status_word(job->status)));
    json_object_set_new(object, "owner", json_text(job->owner));
    json_object_set_new(object, "label", json_text(job->label));
    json_object_set_new(object, "number_of_grasps", json_integer(job->grasps));
    json_object_set_new(object, "grasps_done", json_integer(job->grasps_done));
    json_object_set_new(object, "grasps_held", json_integer(job->grasps_held));
    json_object_set_new(object, "trials_uncertified", json_integer(job->trials_uncertified));
    json_object_set_new(object, "create_time_us", json_integer(job->create_time_us));
    json_object_set_new(object, "end_time_us", json_integer(job->end_time_us));
    json_object_set_new(object, "trajectories", json_integer(job->trajectories));
    json_object_set_new(object, "trajectory_bytes", json_integer(job->trajectory_bytes));
    json_object_set_new(object, "trajectories_left_out", json_integer(job->trajectories_left_out));
    if (job->message[0] != '\0') json_object_set_new(object, "message", json_text(job->message));
    return object;
}

static void print_job(const Tribo__V1__GraspJobInfo *job)
{
    char created[32];
    printf("%s  %-9s %s %7d of %-7d %7d %11d  %s\n", job->id, status_word(job->status),
           remote_time(job->create_time_us, created), (int)job->grasps_done, (int)job->grasps,
           (int)job->grasps_held, (int)job->trials_uncertified, job->label);
    if (job->message[0] != '\0') printf("message  %s\n", job->message);
}

static void print_header(void)
{
    printf("%-32s  %-9s %-19s %18s %7s %11s  %s\n", "job", "status", "submitted (UTC)", "done",
           "held", "uncertified", "label");
}

static tb_status list(tbc_client *client, bool json, tb_error *error)
{
    char token[256] = "";
    int64_t count = 0;
    do {
        Tribo__V1__ListGraspJobsRequest request = TRIBO__V1__LIST_GRASP_JOBS_REQUEST__INIT;
        Tribo__V1__ListGraspJobsResponse *page = NULL;
        request.page_token = token;
        const tb_status status = TBC_CALL(client, "tribo.v1.Grasp/ListGraspJobs", &request,
                                          list_grasp_jobs_response, &page, error);
        if (status != TB_OK) return status;
        for (size_t i = 0; i < page->n_jobs; i++, count++) {
            if (!json && count == 0) print_header();
            if (json)
                json_print(stdout, job_json(page->jobs[i]));
            else
                print_job(page->jobs[i]);
        }
        snprintf(token, sizeof token, "%s", page->next_page_token);
        tbc_free(page);
    } while (token[0] != '\0' && !interrupt_requested());
    if (!json && count == 0) printf("no jobs\n");
    return TB_OK;
}

static void print_result(const Tribo__V1__GraspResult *r, bool json, bool first)
{
    const char *reason = r->reason != NULL ? r->reason->text : "";
    if (!json) {
        printf("%5d %-14.14s %-11s %s\n", (int)r->index, r->name, verdict_word(r->verdict), reason);
        return;
    }
    json_t *object = json_object();
    json_object_set_new(object, "grasp", json_integer(r->index));
    json_object_set_new(object, "name", json_text(r->name));
    json_object_set_new(object, "outcome", json_string(verdict_word(r->verdict)));
    json_object_set_new(object, "reason", json_text(reason));
    json_object_set_new(object, "success", json_finite(r->success));
    json_object_set_new(object, "success_lower", json_finite(r->success_lower));
    json_object_set_new(object, "success_upper", json_finite(r->success_upper));
    json_object_set_new(object, "uncertified", json_integer(r->uncertified));
    json_object_set_new(object, "slip", json_finite(r->slip));
    json_object_set_new(object, "epsilon", json_finite(r->epsilon_quality));
    json_object_set_new(object, "weakest_margin", json_finite(r->weakest_margin));
    fputs(first ? "\n" : ",\n", stdout);
    json_write(stdout, object);
}

/* The job's row, then its results, a few at a time. */
static tb_status show(tbc_client *client, const char *id, bool json, tb_error *error)
{
    int32_t count = 0;
    for (bool more = true; more && !interrupt_requested();) {
        Tribo__V1__GetGraspJobRequest request = TRIBO__V1__GET_GRASP_JOB_REQUEST__INIT;
        Tribo__V1__GetGraspJobResponse *answer = NULL;
        request.id = (char *)(uintptr_t)id;
        request.first_result = count;
        request.maximum_results = RESULTS_AT_ONCE;
        const tb_status status = TBC_CALL(client, "tribo.v1.Grasp/GetGraspJob", &request,
                                          get_grasp_job_response, &answer, error);
        if (status != TB_OK) return status;
        if (count == 0 && json) {
            fputs("{\"job\":", stdout);
            json_write(stdout, job_json(answer->job));
            fputs(",\"grasps\":[", stdout);
        } else if (count == 0) {
            print_header();
            print_job(answer->job);
            if (answer->job->trajectories + answer->job->trajectories_left_out > 0)
                printf("%d trajectories stored, %lld bytes; %d left out\n",
                       (int)answer->job->trajectories, (long long)answer->job->trajectory_bytes,
                       (int)answer->job->trajectories_left_out);
        }
        for (size_t i = 0; i < answer->n_results; i++)
            print_result(answer->results[i], json, count++ == 0);
        more = answer->n_results > 0;
        tbc_free(answer);
    }
    if (json) fputs("\n]}\n", stdout);
    return TB_OK;
}

static tb_status cancel(tbc_client *client, const char *id, bool json, tb_error *error)
{
    Tribo__V1__CancelGraspJobRequest request = TRIBO__V1__CANCEL_GRASP_JOB_REQUEST__INIT;
    Tribo__V1__CancelGraspJobResponse *answer = NULL;
    request.id = (char *)(uintptr_t)id;
    const tb_status status = TBC_CALL(client, "tribo.v1.Grasp/CancelGraspJob", &request,
                                      cancel_grasp_job_response, &answer, error);
    if (status != TB_OK) return status;
    if (json) {
        json_print(stdout, job_json(answer->job));
    } else {
        print_header();
        print_job(answer->job);
    }
    tbc_free(answer);
    return TB_OK;
}

/* ---- trajectories ---- */

enum { POSE_NUMBERS = 7 };

/* A trial's frames with the names of the scene's bodies. */
typedef struct film {
    Tribo__V1__GetGraspTrajectoryResponse *answer;
    Tribo__V1__GetSceneResponse *scene;
    const unsigned char *times, *poses; /* float64: frames; float32: frames x bodies x 7 */
    size_t frames, bodies;
} film;

static double time_of(const film *f, size_t frame)
{
    double time;
    memcpy(&time, f->times + frame * sizeof time, sizeof time);
    return time;
}

/* Number `k` of a body's pose. */
static double number_of(const film *f, size_t frame, size_t body, size_t k)
{
    float number;
    const size_t index = (frame * f->bodies + body) * POSE_NUMBERS + k;
    memcpy(&number, f->poses + index * sizeof number, sizeof number);
    return (double)number;
}

static tb_status fetch_film(tbc_client *client, const char *id, int32_t grasp, int32_t copy,
                            film *f, tb_error *error)
{
    Tribo__V1__GetGraspTrajectoryRequest request = TRIBO__V1__GET_GRASP_TRAJECTORY_REQUEST__INIT;
    Tribo__V1__GetSceneRequest ask = TRIBO__V1__GET_SCENE_REQUEST__INIT;
    request.id = (char *)(uintptr_t)id;
    request.grasp = grasp;
    request.copy = copy;
    tb_status status = TBC_CALL(client, "tribo.v1.Grasp/GetGraspTrajectory", &request,
                                get_grasp_trajectory_response, &f->answer, error);
    if (status != TB_OK) return status;
    ask.scene_id = f->answer->scene_id;
    status = TBC_CALL(client, "tribo.v1.Simulation/GetScene", &ask, get_scene_response, &f->scene,
                      error);
    if (status != TB_OK) return status;
    const Tribo__V1__GraspTrajectory *t = f->answer->trajectory;
    const bool whole = t != NULL && t->times != NULL && t->poses != NULL && t->poses->n_shape == 3;
    f->bodies = f->scene->n_bodies;
    f->frames = whole ? t->times->data.len / sizeof(double) : 0;
    const size_t size = f->frames * f->bodies * POSE_NUMBERS * sizeof(float);
    if (!whole || f->frames == 0 || t->poses->data.len != size)
        return cli_fail(error, TB_DATA_LOSS, "", 0, NULL, "the daemon sent a damaged trajectory");
    f->times = t->times->data.data;
    f->poses = t->poses->data.data;
    return TB_OK;
}

static const char *body_name(const film *f, size_t body, char buffer[32])
{
    const char *name = f->scene->bodies[body]->name;
    if (name[0] != '\0') return name;
    snprintf(buffer, 32, body == 0 ? "world" : "body%zu", body);
    return buffer;
}

static void write_csv(const film *f, FILE *file)
{
    static const char *const PARTS[POSE_NUMBERS] = {".x", ".y", ".z", ".qw", ".qx", ".qy", ".qz"};
    char buffer[32];
    fputs("time", file);
    for (size_t b = 1; b < f->bodies; b++)
        for (int k = 0; k < POSE_NUMBERS; k++)
            name_write_csv(file, body_name(f, b, buffer), PARTS[k]);
    fputc('\n', file);
    for (size_t i = 0; i < f->frames; i++) {
        fprintf(file, "%.17g", time_of(f, i));
        for (size_t b = 1; b < f->bodies; b++)
            for (size_t k = 0; k < POSE_NUMBERS; k++) fprintf(file, ",%.9g", number_of(f, i, b, k));
        fputc('\n', file);
    }
}

static void write_film_json(const film *f, FILE *file)
{
    const Tribo__V1__GraspTrajectory *t = f->answer->trajectory;
    char buffer[32];
    json_t *object = json_object(), *times = json_array(), *bodies = json_object();
    for (size_t i = 0; i < f->frames; i++) json_array_append_new(times, json_finite(time_of(f, i)));
    for (size_t b = 1; b < f->bodies; b++) {
        json_t *rows = json_array();
        for (size_t i = 0; i < f->frames; i++) {
            double row[POSE_NUMBERS];
            for (size_t k = 0; k < POSE_NUMBERS; k++) row[k] = number_of(f, i, b, k);
            json_array_append_new(rows, json_vector(row, POSE_NUMBERS));
        }
        json_object_set_new(bodies, body_name(f, b, buffer), rows);
    }
    json_object_set_new(object, "scene", json_text(f->answer->scene_id));
    json_object_set_new(object, "grasp", json_integer(t->grasp));
    json_object_set_new(object, "copy", json_integer(t->copy));
    json_object_set_new(object, "outcome", json_string(verdict_word(t->verdict)));
    json_object_set_new(object, "times", times);
    json_object_set_new(object, "bodies", bodies);
    json_print(file, object);
}

static tb_status trajectory(tbc_client *client, char **argv, int64_t copy, const char *out,
                            bool json, tb_error *error)
{
    film f = {0};
    FILE *file = NULL;
    char *end = NULL;
    const char *path = out != NULL ? out : "-";
    const long grasp = strtol(argv[3], &end, 10);
    if (*end != '\0' || end == argv[3] || grasp < 0 || grasp > INT32_MAX)
        return cli_fail(error, TB_INVALID_ARGUMENT, "", 0, "grasp",
                        "'%.40s' is no index of a grasp", argv[3]);
    tb_status status = fetch_film(client, argv[2], (int32_t)grasp, (int32_t)copy, &f, error);
    if (status == TB_OK) status = files_create(path, &file, error);
    if (status == TB_OK) {
        if (json)
            write_film_json(&f, file);
        else
            write_csv(&f, file);
        status = files_close(file, path, error);
    }
    tbc_free(f.answer);
    tbc_free(f.scene);
    return status;
}

int command_jobs(int argc, char **argv)
{
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&remote, connection);
    bool json = false;
    int64_t copy = 0;
    const char *out = NULL;
    const args_option options[] = {
        {"copy", "N", "trajectory: of the grasp's perturbed copy N (0: not perturbed)",
         ARGS_INTEGER, &copy, 0, INT32_MAX, NULL},
        {"out", "FILE", "trajectory: write it here (standard output)", ARGS_TEXT, &out, 0, 0, NULL},
        {"json", NULL, "JSON in place of tables", ARGS_FLAG, &json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {"the daemon", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    const bool shows = operands == 2 && strcmp(argv[1], "show") == 0;
    const bool cancels = operands == 2 && strcmp(argv[1], "cancel") == 0;
    const bool films = operands == 3 && strcmp(argv[1], "trajectory") == 0;
    if (operands != 0 && !shows && !cancels && !films) {
        args_complain(COMMAND.name,
                      "expected nothing, 'show ID', 'cancel ID' or 'trajectory ID GRASP'");
        return CLI_USAGE;
    }
    tb_error error = {0};
    tbc_client *client = NULL;
    interrupt_watch();
    tb_status status = remote_connect(&remote, &client, &error);
    if (status == TB_OK)
        status = shows     ? show(client, argv[2], json, &error)
                 : films   ? trajectory(client, argv, copy, out, json, &error)
                 : cancels ? cancel(client, argv[2], json, &error)
                           : list(client, json, &error);
    tbc_disconnect(client);
    if (status == TB_OK) return CLI_OK;
    fflush(stdout);
    cli_complain(&error);
    return cli_exit_code(status);
}
