/* tribo jobs: grasp jobs of a daemon, their progress and their results. */
#include <stdio.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "remote/remote.h"
#include "tribo/v1/grasp.pb-c.h"

enum { RESULTS_AT_ONCE = 500 };

static const args_command COMMAND = {
    .name = "jobs",
    .operands = "[show ID | cancel ID]",
    .description =
        "Lists grasp jobs of a daemon, newest first: those of 'tribo grasp --submit' and of\n"
        "SubmitGrasps. 'show' prints a job's progress and its results so far, 'cancel' ends it; "
        "its\n"
        "results stay. An ID may be cut to a unique beginning.\n",
    .examples = "  tribo jobs\n"
                "  tribo jobs show 3f2a --json\n"
                "  tribo jobs cancel 3f2a\n",
    .minimum_operands = 0,
    .maximum_operands = 2};

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

int command_jobs(int argc, char **argv)
{
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&remote, connection);
    bool json = false;
    const args_option options[] = {
        {"json", NULL, "JSON in place of tables", ARGS_FLAG, &json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {"the daemon", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    const bool shows = operands == 2 && strcmp(argv[1], "show") == 0;
    const bool cancels = operands == 2 && strcmp(argv[1], "cancel") == 0;
    if (operands != 0 && !shows && !cancels) {
        args_complain(COMMAND.name, "expected nothing, 'show ID' or 'cancel ID'");
        return CLI_USAGE;
    }
    tb_error error = {0};
    tbc_client *client = NULL;
    interrupt_watch();
    tb_status status = remote_connect(&remote, &client, &error);
    if (status == TB_OK)
        status = shows     ? show(client, argv[2], json, &error)
                 : cancels ? cancel(client, argv[2], json, &error)
                           : list(client, json, &error);
    tbc_disconnect(client);
    if (status == TB_OK) return CLI_OK;
    fflush(stdout);
    cli_complain(&error);
    return cli_exit_code(status);
}
