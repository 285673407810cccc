/* tribo runs: runs of a daemon, with their residuals and speed. */
#include <stdio.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "remote/remote.h"
#include "simulation/report.h"
#include "tribo/v1/runs.pb-c.h"

static const args_command COMMAND = {
    .name = "runs",
    .operands = "[show ID | compare ID ID | benchmarks]",
    .description = "Lists the runs of a daemon, newest first: sessions, grasp jobs, problems.\n"
                   "'show' tells everything about one run, 'compare' sets two side by side,\n"
                   "'benchmarks' lists recorded measurements.\n",
    .examples = "  tribo runs --limit 20\n"
                "  tribo runs --fleet --limit 20\n"
                "  tribo runs show 0123456789abcdef0123456789abcdef\n"
                "  tribo runs compare ID ID\n"
                "  tribo runs benchmarks --json\n",
    .minimum_operands = 0,
    .maximum_operands = 3};

static const char *const KINDS[] = {"?", "session", "grasps", "solve"};
static const char *const STATUSES[] = {"?",      "running",   "done",
                                       "failed", "cancelled", "interrupted"};

static const char *word(const char *const *words, unsigned count, unsigned index)
{
    return words[index < count ? index : 0];
}

static double run_seconds(const Tribo__V1__Run *run)
{
    return run->end_time_us > 0 ? (double)(run->end_time_us - run->start_time_us) * 1e-6 : 0;
}

/* The name of the node is given of runs from a fleet's database alone. */
static json_t *run_json(const Tribo__V1__Run *run)
{
    json_t *object = json_object();
    json_object_set_new(object, "run_id", json_text(run->run_id));
    json_object_set_new(object, "kind", json_string(word(KINDS, 4, (unsigned)run->kind)));
    json_object_set_new(object, "status", json_string(word(STATUSES, 6, (unsigned)run->status)));
    if (run->node[0] != '\0') json_object_set_new(object, "node", json_text(run->node));
    json_object_set_new(object, "owner", json_text(run->owner));
    json_object_set_new(object, "label", json_text(run->label));
    json_object_set_new(object, "scene_id", json_text(run->scene_id));
    json_object_set_new(object, "build", json_text(run->build));
    json_object_set_new(object, "device", json_text(run->device));
    json_object_set_new(object, "start_time_us", json_integer(run->start_time_us));
    json_object_set_new(object, "end_time_us", json_integer(run->end_time_us));
    json_object_set_new(object, "worlds", json_integer(run->worlds));
    json_object_set_new(object, "steps", json_integer(run->steps));
    json_object_set_new(object, "compute_seconds",
                        json_finite((double)run->compute_time_us * 1e-6));
    json_object_set_new(object, "grasps", json_integer(run->grasps));
    json_object_set_new(object, "grasps_held", json_integer(run->grasps_held));
    if (run->certificate != NULL) {
        json_object_set_new(object, "residual", json_finite(run->certificate->residual));
        json_object_set_new(object, "penetration", json_finite(run->certificate->penetration));
    }
    if (run->message[0] != '\0') json_object_set_new(object, "message", json_text(run->message));
    return object;
}

/* A run with its summaries and events. */
static json_t *history_json(const Tribo__V1__GetRunResponse *answer)
{
    json_t *object = run_json(answer->run), *events = json_array(), *summaries = json_array();
    for (size_t i = 0; i < answer->n_events; i++) {
        json_t *event = json_object();
        json_object_set_new(event, "time_us", json_integer(answer->events[i]->time_us));
        json_object_set_new(event, "kind", json_text(answer->events[i]->kind));
        json_object_set_new(event, "message", json_text(answer->events[i]->message));
        json_array_append_new(events, event);
    }
    for (size_t i = 0; i < answer->n_summaries; i++) {
        const Tribo__V1__StepSummary *s = answer->summaries[i];
        json_t *summary = json_object();
        json_object_set_new(summary, "step", json_integer(s->step));
        json_object_set_new(summary, "steps", json_integer(s->steps));
        json_object_set_new(summary, "time_us", json_integer(s->time_us));
        if (s->certificate != NULL) {
            json_object_set_new(summary, "residual", json_finite(s->certificate->residual));
            json_object_set_new(summary, "penetration", json_finite(s->certificate->penetration));
            json_object_set_new(summary, "iterations", json_integer(s->certificate->iterations));
        }
        json_array_append_new(summaries, summary);
    }
    json_object_set_new(object, "options", json_text(answer->run->options_json));
    json_object_set_new(object, "events", events);
    json_object_set_new(object, "summaries", summaries);
    return object;
}

static void print_header(bool fleet)
{
    if (fleet) printf("%-16s ", "node");
    printf("%-32s  %-7s %-11s %-19s %10s %7s %12s %9s  %s\n", "run", "kind", "status",
           "started (UTC)", "took", "worlds", "steps", "residual", "label");
}

static void print_run(const Tribo__V1__Run *run, bool fleet)
{
    char started[32], took[32];
    if (fleet) printf("%-16s ", run->node[0] != '\0' ? run->node : "-");
    printf("%s  %-7s %-11s %s %10s %7lld %12lld %9.2e  %s\n", run->run_id,
           word(KINDS, 4, (unsigned)run->kind), word(STATUSES, 6, (unsigned)run->status),
           remote_time(run->start_time_us, started),
           run->end_time_us > 0 ? report_quantity(run_seconds(run), "s", took, sizeof took) : "-",
           (long long)run->worlds, (long long)run->steps,
           run->certificate != NULL ? run->certificate->residual : 0, run->label);
}

static tb_status list(tbc_client *client, bool fleet, int64_t limit, bool json, tb_error *error)
{
    char token[256] = "";
    int64_t count = 0;
    do {
        Tribo__V1__ListRunsRequest request = TRIBO__V1__LIST_RUNS_REQUEST__INIT;
        Tribo__V1__ListRunsResponse *page = NULL;
        request.page_token = token;
        request.fleet = fleet;
        request.page_size = (int32_t)(limit - count < 1000 ? limit - count : 1000);
        const tb_status status =
            TBC_CALL(client, "tribo.v1.Runs/ListRuns", &request, list_runs_response, &page, error);
        if (status != TB_OK) return status;
        if (!json && count == 0 && page->n_runs > 0) print_header(fleet);
        for (size_t i = 0; i < page->n_runs; i++, count++) {
            if (json)
                json_print(stdout, run_json(page->runs[i]));
            else
                print_run(page->runs[i], fleet);
        }
        snprintf(token, sizeof token, "%s", page->next_page_token);
        tbc_free(page);
    } while (token[0] != '\0' && count < limit && !interrupt_requested());
    if (!json && count == 0) printf("no runs\n");
    return TB_OK;
}

static tb_status show(tbc_client *client, const char *id, bool json, tb_error *error)
{
    Tribo__V1__GetRunRequest request = TRIBO__V1__GET_RUN_REQUEST__INIT;
    Tribo__V1__GetRunResponse *answer = NULL;
    char time[32];
    request.run_id = (char *)(uintptr_t)id;
    const tb_status status =
        TBC_CALL(client, "tribo.v1.Runs/GetRun", &request, get_run_response, &answer, error);
    if (status != TB_OK) return status;
    if (json) {
        json_print(stdout, history_json(answer));
    } else {
        const Tribo__V1__Run *run = answer->run;
        print_header(run->node[0] != '\0');
        print_run(run, run->node[0] != '\0');
        printf("scene    %s\nowner    %s\nbuild    %s\ndevice   %s\noptions  %s\n", run->scene_id,
               run->owner, run->build, run->device, run->options_json);
        if (run->grasps > 0)
            printf("grasps   %lld, %lld held\n", (long long)run->grasps,
                   (long long)run->grasps_held);
        if (run->message[0] != '\0') printf("message  %s\n", run->message);
        for (size_t i = 0; i < answer->n_events; i++)
            printf("  %s  %-12s %s\n", remote_time(answer->events[i]->time_us, time),
                   answer->events[i]->kind, answer->events[i]->message);
        for (size_t i = 0; i < answer->n_summaries; i++) {
            const Tribo__V1__StepSummary *s = answer->summaries[i];
            printf("  step %-12lld residual %9.2e  penetration %9.2e m  iterations %d\n",
                   (long long)s->step, s->certificate != NULL ? s->certificate->residual : 0,
                   s->certificate != NULL ? s->certificate->penetration : 0,
                   s->certificate != NULL ? (int)s->certificate->iterations : 0);
        }
    }
    tbc_free(answer);
    return TB_OK;
}

static tb_status compare(tbc_client *client, char **ids, bool json, tb_error *error)
{
    Tribo__V1__CompareRunsRequest request = TRIBO__V1__COMPARE_RUNS_REQUEST__INIT;
    Tribo__V1__CompareRunsResponse *answer = NULL;
    request.run_id_a = ids[0];
    request.run_id_b = ids[1];
    const tb_status status = TBC_CALL(client, "tribo.v1.Runs/CompareRuns", &request,
                                      compare_runs_response, &answer, error);
    if (status != TB_OK) return status;
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "a", run_json(answer->a));
        json_object_set_new(object, "b", run_json(answer->b));
        json_object_set_new(object, "same_scene", json_boolean(answer->same_scene));
        json_object_set_new(object, "same_options", json_boolean(answer->same_options));
        json_object_set_new(object, "same_build", json_boolean(answer->same_build));
        json_object_set_new(object, "steps_per_second_ratio",
                            json_finite(answer->steps_per_second_ratio));
        json_object_set_new(object, "residual_ratio", json_finite(answer->residual_ratio));
        json_print(stdout, object);
    } else {
        const bool fleet = answer->a->node[0] != '\0' || answer->b->node[0] != '\0';
        print_header(fleet);
        print_run(answer->a, fleet);
        print_run(answer->b, fleet);
        printf("%s scene, %s options, %s build\n", answer->same_scene ? "same" : "another",
               answer->same_options ? "same" : "other", answer->same_build ? "same" : "another");
        printf("second over first: steps/s %.3g, residual %.3g\n", answer->steps_per_second_ratio,
               answer->residual_ratio);
    }
    tbc_free(answer);
    return TB_OK;
}

static tb_status benchmarks(tbc_client *client, bool fleet, int64_t limit, bool json,
                            tb_error *error)
{
    Tribo__V1__ListBenchmarksRequest request = TRIBO__V1__LIST_BENCHMARKS_REQUEST__INIT;
    Tribo__V1__ListBenchmarksResponse *page = NULL;
    request.page_size = (int32_t)(limit < 1000 ? limit : 1000);
    request.fleet = fleet;
    const tb_status status = TBC_CALL(client, "tribo.v1.Runs/ListBenchmarks", &request,
                                      list_benchmarks_response, &page, error);
    if (status != TB_OK) return status;
    if (!json && page->n_benchmarks > 0)
        printf("%-32s %-20s %12s %12s %12s  %-24s %s\n", "benchmark", "metric", "median",
               "quartile", "quartile", "testbed", "build");
    for (size_t i = 0; i < page->n_benchmarks; i++) {
        const Tribo__V1__Benchmark *b = page->benchmarks[i];
        if (json) {
            json_t *object = json_object();
            if (fleet) json_object_set_new(object, "node", json_text(b->node));
            json_object_set_new(object, "name", json_text(b->name));
            json_object_set_new(object, "metric", json_text(b->metric));
            json_object_set_new(object, "unit", json_text(b->unit));
            json_object_set_new(object, "testbed", json_text(b->testbed));
            json_object_set_new(object, "build", json_text(b->build));
            json_object_set_new(object, "median", json_finite(b->median));
            json_object_set_new(object, "lower", json_finite(b->lower));
            json_object_set_new(object, "upper", json_finite(b->upper));
            json_object_set_new(object, "samples", json_integer((json_int_t)b->n_samples));
            json_object_set_new(object, "time_us", json_integer(b->time_us));
            json_print(stdout, object);
        } else {
            printf("%-32s %-20s %12.5g %12.5g %12.5g  %-24.24s %s\n", b->name, b->metric, b->median,
                   b->lower, b->upper, b->testbed, b->build);
        }
    }
    if (!json && page->n_benchmarks == 0) printf("no benchmarks\n");
    tbc_free(page);
    return TB_OK;
}

int command_runs(int argc, char **argv)
{
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    bool json = false, fleet = false;
    int64_t limit = 100;
    remote_option_list(&remote, connection);
    const args_option own[] = {
        {"limit", "N", "most runs to list (100)", ARGS_INTEGER, &limit, 1, 1000000, NULL},
        {"fleet", NULL, "of all daemons of the fleet, from its database", ARGS_FLAG, &fleet, 0, 0,
         NULL},
        {"json", NULL, "one JSON object a line", ARGS_FLAG, &json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", own}, {"the daemon", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;

    static const struct {
        const char *name;
        int operands;
    } VERBS[] = {{"list", 1}, {"show", 2}, {"compare", 3}, {"benchmarks", 1}};
    const char *name = operands > 0 ? argv[1] : "list";
    int verb = 0;
    while (verb < 4 && strcmp(VERBS[verb].name, name) != 0) verb++;
    if (verb == 4) {
        args_complain(COMMAND.name,
                      "'%s' is no action; there are list, show ID, compare ID ID and benchmarks",
                      name);
        return CLI_USAGE;
    }
    if (fleet && (verb == 1 || verb == 2)) {
        args_complain(COMMAND.name, "--fleet belongs to the lists; '%s' asks the daemon of the run",
                      name);
        return CLI_USAGE;
    }
    if (operands > 0 && VERBS[verb].operands != operands) {
        const int ids = VERBS[verb].operands - 1;
        args_complain(COMMAND.name, "'%s' takes %d ID%s, not %d", name, ids, ids == 1 ? "" : "s",
                      operands - 1);
        return CLI_USAGE;
    }

    tb_error error = {0};
    tbc_client *client = NULL;
    interrupt_watch();
    tb_status status = remote_connect(&remote, &client, &error);
    if (status == TB_OK) switch (verb) {
        case 0: status = list(client, fleet, limit, json, &error); break;
        case 1: status = show(client, argv[2], json, &error); break;
        case 2: status = compare(client, argv + 2, json, &error); break;
        default: status = benchmarks(client, fleet, limit, json, &error); break;
        }
    tbc_disconnect(client);
    if (status != TB_OK) cli_complain(&error);
    return cli_exit_code(status);
}
