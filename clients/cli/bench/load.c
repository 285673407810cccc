/* tribo load: how many calls a daemon answers, and how fast, at rising numbers of callers. */
#include "bench/load_settle.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "remote/remote.h"
#include "simulation/report.h"

static const args_command COMMAND = {
    .name = "load",
    .operands = "[MODEL]",
    .description =
        "Loads a daemon and measures latencies. Each caller has a session of MODEL and steps it;\n"
        "without MODEL the callers ask for the server's info, which is the wire alone. Windows "
        "are\n"
        "repeated until three in a row agree within 10 % in throughput and median, or --windows\n"
        "have passed ('*' then). With --rate the calls come at their times whatever the daemon\n"
        "does, and latencies count from when they were due.\n",
    .examples = "  tribo load grasp.xml --callers 1,2,4,8,16\n"
                "  tribo load grasp.xml --method stream --callers 1\n"
                "  tribo load grasp.xml --rate 2000 --callers 64 --json\n",
    .minimum_operands = 0,
    .maximum_operands = 1};

enum { MOST_LEVELS = 32, MOST_CALLERS = 4096, MOST_WINDOWS = 100 };

typedef struct load_command {
    remote_options remote;
    load_plan plan;
    double window;
    int64_t windows, worlds, steps;
    bool json;
    int32_t levels[MOST_LEVELS];
    int number_of_levels;
} load_command;

static bool parse_levels(load_command *l, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        char *end = NULL;
        const long value = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || value < 1 || value > MOST_CALLERS ||
            l->number_of_levels == MOST_LEVELS) {
            args_complain(COMMAND.name,
                          "--callers needs up to %d numbers from 1 to %d with commas between "
                          "them, not '%s'",
                          MOST_LEVELS, MOST_CALLERS, text);
            return false;
        }
        l->levels[l->number_of_levels++] = (int32_t)value;
        at = *end == ',' ? end + 1 : end;
    }
    return l->number_of_levels > 0;
}

/* Rate and median of every window, in their order. */
static json_t *history_json(const load_figures *windows, int count)
{
    json_t *history = json_array();
    for (int i = 0; i < count; i++) {
        json_t *window = json_object();
        json_object_set_new(window, "rate", json_finite(windows[i].rate));
        json_object_set_new(window, "median", json_finite(windows[i].p50));
        json_array_append_new(history, window);
    }
    return history;
}

/* Of windows that agree, the last is the result. */
static void print_level(const load_command *l, int32_t callers, const load_figures *all,
                        int windows, bool stable)
{
    const load_figures *f = &all[windows - 1];
    const double world_steps = f->rate * (double)l->plan.steps * l->plan.worlds;
    if (l->json) {
        json_t *object = json_object();
        json_object_set_new(object, "callers", json_integer(callers));
        json_object_set_new(object, "target_rate", json_finite(l->plan.rate));
        json_object_set_new(object, "calls_per_second", json_finite(f->rate));
        json_object_set_new(object, "world_steps_per_second", json_finite(world_steps));
        json_object_set_new(object, "p50", json_finite(f->p50));
        json_object_set_new(object, "p90", json_finite(f->p90));
        json_object_set_new(object, "p99", json_finite(f->p99));
        json_object_set_new(object, "worst", json_finite(f->worst));
        json_object_set_new(object, "calls", json_integer(f->count));
        json_object_set_new(object, "refused", json_integer(f->refused));
        json_object_set_new(object, "failed", json_integer(f->failed));
        json_object_set_new(object, "windows", json_integer(windows));
        json_object_set_new(object, "settled", json_boolean(stable));
        json_object_set_new(object, "history", history_json(all, windows));
        json_print(stdout, object);
    } else {
        char p50[32], p90[32], p99[32], worst[32];
        printf("%7d %11.5g %13.5g %10s %10s %10s %10s %8lld %7lld %4d%s\n", (int)callers, f->rate,
               l->plan.method == LOAD_INFO ? 0 : world_steps,
               report_quantity(f->p50, "s", p50, sizeof p50),
               report_quantity(f->p90, "s", p90, sizeof p90),
               report_quantity(f->p99, "s", p99, sizeof p99),
               report_quantity(f->worst, "s", worst, sizeof worst), (long long)f->refused,
               (long long)f->failed, windows, stable ? "" : "*");
    }
    fflush(stdout);
}

static tb_status run_level(load_command *l, tbc_client *client, int32_t callers, tb_error *error)
{
    load *running = NULL;
    load_figures f[MOST_WINDOWS];
    int count = 0;
    bool stable = false;
    l->plan.callers = callers;
    tb_status status = load_start(client, &l->plan, &running, error);
    while (status == TB_OK && count < l->windows && !stable && !interrupt_requested()) {
        load_window window;
        status = load_measure(running, l->window, &window, error);
        if (status == TB_OK) f[count++] = load_summarize(&window);
        load_window_free(&window);
        stable = load_settled(f, count);
    }
    load_stop(running);
    if (status == TB_OK && count > 0) print_level(l, callers, f, count, stable);
    return status;
}

int command_load(int argc, char **argv)
{
    static const char *const METHODS[] = {"step", "stream", "info", NULL};
    load_command l = {.window = 1, .windows = 20, .worlds = 1, .steps = 1};
    args_option connection[REMOTE_OPTIONS];
    const char *levels = "1,2,4,8,16";
    int method = LOAD_STEP;
    remote_option_list(&l.remote, connection);
    const args_option own[] = {
        {"callers", "N,N,...", "numbers of callers, one after the other (1,2,4,8,16)", ARGS_TEXT,
         &levels, 0, 0, NULL},
        {"method", "NAME", "method that they call", ARGS_CHOICE, &method, 0, 0, METHODS},
        {"rate", "R", "open loop: calls a second of all callers (closed loop)", ARGS_NUMBER,
         &l.plan.rate, 0, 1e7, NULL},
        {"worlds", "N", "worlds of each session (1)", ARGS_INTEGER, &l.worlds, 1, 1000000, NULL},
        {"steps", "N", "steps of each call (1)", ARGS_INTEGER, &l.steps, 1, 1000000, NULL},
        {"window", "S", "length of a measurement (1)", ARGS_NUMBER, &l.window, 0.01, 3600, NULL},
        {"windows", "N", "most of each level (20)", ARGS_INTEGER, &l.windows, 1, MOST_WINDOWS,
         NULL},
        {"json", NULL, "one JSON object a line", ARGS_FLAG, &l.json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", own}, {"the daemon", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    if (!parse_levels(&l, levels)) return CLI_USAGE;

    char scene[65] = "";
    tb_error error = {0};
    tbc_client *client = NULL;
    interrupt_watch();
    /* a refusal is a figure here, not something to be tried again */
    l.remote.attempts = 1;
    l.plan.method = operands == 0 ? LOAD_INFO : (load_method)method;
    l.plan.worlds = (int32_t)l.worlds;
    l.plan.steps = (int32_t)l.steps;
    l.plan.scene_id = scene;
    tb_status status = remote_connect(&l.remote, &client, &error);
    if (status == TB_OK && operands > 0)
        status = tbc_load_scene(client, argv[1], NULL, scene, &error);
    if (status == TB_OK && !l.json)
        printf("%7s %11s %13s %10s %10s %10s %10s %8s %7s %s\n", "callers", "calls/s",
               "world steps/s", "p50", "p90", "p99", "worst", "refused", "failed", "windows");
    for (int i = 0; i < l.number_of_levels && status == TB_OK && !interrupt_requested(); i++)
        status = run_level(&l, client, l.levels[i], &error);
    tbc_disconnect(client);
    if (status == TB_OK && interrupt_requested())
        status = cli_fail(&error, TB_CANCELLED, "", 0, NULL, "interrupted");
    if (status != TB_OK) cli_complain(&error);
    return cli_exit_code(status);
}
