/* tribo top: a daemon at a glance, again and again. */
#include <float.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/json.h"
#include "common/progress.h"
#include "remote/remote.h"
#include "tribo/v1/simulation.pb-c.h"

static const args_command COMMAND = {
    .name = "top",
    .operands = "",
    .description =
        "Shows a daemon's devices and its busiest sessions, and refreshes until Ctrl-C.\n"
        "Into a file or pipe it writes once, after one interval; so it does as JSON.\n",
    .examples = "  tribo top\n"
                "  tribo top --server robot7:7410 --interval 0.5\n"
                "  tribo top --json\n",
    .minimum_operands = 0,
    .maximum_operands = 0};

enum { ROWS = 20, REMEMBERED = 4096 };

/* Steps of a session at the last refresh, to compute its speed. */
typedef struct seen {
    char id[33];
    int64_t steps;
} seen;

typedef struct row {
    const Tribo__V1__SessionInfo *session;
    double speed; /* world steps a second */
} row;

typedef struct top {
    tbc_client *client;
    const char *address;
    bool json;
    seen seen[REMEMBERED];
    int32_t number_seen;
    double looked; /* s */
} top;

static double speed_since(const top *t, const Tribo__V1__SessionInfo *session, double seconds)
{
    for (int32_t i = 0; i < t->number_seen && seconds > 0; i++)
        if (strcmp(t->seen[i].id, session->session_id) == 0)
            return (double)(session->steps - t->seen[i].steps) * session->worlds / seconds;
    return 0;
}

/* Keeps the fastest sessions in falling order. */
static void insert(row rows[ROWS], int *count, row r)
{
    int at = *count < ROWS ? (*count)++ : ROWS;
    while (at > 0 && rows[at - 1].speed < r.speed) {
        if (at < ROWS) rows[at] = rows[at - 1];
        at--;
    }
    if (at < ROWS) rows[at] = r;
}

static void print_json(const Tribo__V1__GetServerInfoResponse *info, const row rows[ROWS],
                       int count, double total)
{
    json_t *object = json_object(), *devices = json_array(), *sessions = json_array();
    json_object_set_new(object, "version", json_text(info->version));
    json_object_set_new(object, "build", json_text(info->build));
    json_object_set_new(object, "draining", json_boolean(info->draining));
    json_object_set_new(object, "world_steps_per_second", json_finite(total));
    for (size_t i = 0; i < info->n_devices; i++) {
        json_t *device = json_object();
        json_object_set_new(device, "name", json_text(info->devices[i]->name));
        json_object_set_new(device, "description", json_text(info->devices[i]->description));
        json_object_set_new(device, "queued", json_integer(info->devices[i]->queued));
        json_array_append_new(devices, device);
    }
    for (int i = 0; i < count; i++) {
        const Tribo__V1__SessionInfo *s = rows[i].session;
        json_t *session = json_object();
        json_object_set_new(session, "session_id", json_text(s->session_id));
        json_object_set_new(session, "world_steps_per_second", json_finite(rows[i].speed));
        json_object_set_new(session, "worlds", json_integer(s->worlds));
        json_object_set_new(session, "steps", json_integer(s->steps));
        json_object_set_new(session, "time", json_finite(s->time));
        json_object_set_new(session, "owner", json_text(s->owner));
        json_object_set_new(session, "label", json_text(s->label));
        json_array_append_new(sessions, session);
    }
    json_object_set_new(object, "devices", devices);
    json_object_set_new(object, "sessions", sessions);
    json_print(stdout, object);
}

static void print_server(const top *t, const Tribo__V1__GetServerInfoResponse *info, double total)
{
    printf("tribod %s at %s, build %s%s\n", info->version, t->address, info->build,
           info->draining ? ", DRAINING" : "");
    printf("%d sessions, %.4g world steps/s\n", (int)info->sessions, total);
    for (size_t i = 0; i < info->n_devices; i++)
        printf("%-8s %s, %d waiting\n", info->devices[i]->name, info->devices[i]->description,
               (int)info->devices[i]->queued);
}

/* One screen. Nothing is kept of the answer but the numbers of steps. */
static tb_status look(top *t, bool first, bool screen, tb_error *error)
{
    Tribo__V1__GetServerInfoRequest ask = TRIBO__V1__GET_SERVER_INFO_REQUEST__INIT;
    Tribo__V1__GetServerInfoResponse *info = NULL;
    Tribo__V1__ListSessionsRequest request = TRIBO__V1__LIST_SESSIONS_REQUEST__INIT;
    Tribo__V1__ListSessionsResponse *page = NULL;
    request.page_size = 1000;
    tb_status status = TBC_CALL(t->client, "tribo.v1.Simulation/GetServerInfo", &ask,
                                get_server_info_response, &info, error);
    if (status == TB_OK)
        status = TBC_CALL(t->client, "tribo.v1.Simulation/ListSessions", &request,
                          list_sessions_response, &page, error);
    if (status != TB_OK) goto done;

    const double now = progress_clock(), seconds = now - t->looked;
    row rows[ROWS];
    int count = 0;
    double total = 0;
    for (size_t i = 0; i < page->n_sessions; i++) {
        const row r = {page->sessions[i], speed_since(t, page->sessions[i], seconds)};
        total += r.speed;
        insert(rows, &count, r);
    }
    t->looked = now;
    t->number_seen = 0;
    for (size_t i = 0; i < page->n_sessions && t->number_seen < REMEMBERED; i++) {
        seen *s = &t->seen[t->number_seen++];
        snprintf(s->id, sizeof s->id, "%s", page->sessions[i]->session_id);
        s->steps = page->sessions[i]->steps;
    }
    if (first && !screen) goto done; /* speeds need two looks */
    if (t->json) {
        print_json(info, rows, count, total);
        goto done;
    }

    if (screen) printf("\033[H\033[J");
    print_server(t, info, total);
    if (count > 0)
        printf("\n%-32s %12s %7s %12s %10s  %-16s %s\n", "session", "world steps/s", "worlds",
               "steps", "time (s)", "owner", "label");
    for (int i = 0; i < count; i++)
        printf("%s %12.4g %7d %12lld %10.3f  %-16.16s %s\n", rows[i].session->session_id,
               rows[i].speed, (int)rows[i].session->worlds, (long long)rows[i].session->steps,
               rows[i].session->time, rows[i].session->owner, rows[i].session->label);
    if (page->next_page_token[0] != '\0') printf("(of more than a thousand sessions)\n");
    fflush(stdout);
done:
    tbc_free(info);
    tbc_free(page);
    return status;
}

int command_top(int argc, char **argv)
{
    static top t;
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    double interval = 1;
    remote_option_list(&remote, connection);
    const args_option own[] = {
        {"json", NULL, "print one JSON object", ARGS_FLAG, &t.json, 0, 0, NULL},
        {"interval", "S", "between two looks (1)", ARGS_NUMBER, &interval, 0.05, 3600, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", own}, {"the daemon", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;

    tb_error error = {0};
    const bool screen = isatty(STDOUT_FILENO) && !t.json;
    t.address = remote_address(&remote);
    tb_status status = remote_connect(&remote, &t.client, &error);
    for (int i = 0; status == TB_OK && (screen || i < 2); i++) {
        status = look(&t, i == 0, screen, &error);
        const struct timespec pause = {(time_t)interval,
                                       (long)((interval - (double)(time_t)interval) * 1e9)};
        if (status == TB_OK && (screen || i == 0)) nanosleep(&pause, NULL);
    }
    tbc_disconnect(t.client);
    if (status != TB_OK) cli_complain(&error);
    return cli_exit_code(status);
}
