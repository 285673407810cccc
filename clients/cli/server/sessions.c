/* tribo sessions: lists a daemon's open sessions, ends or follows one. */
#include <stdio.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "remote/remote.h"
#include "tribo/v1/simulation.pb-c.h"

static const args_command COMMAND = {
    .name = "sessions",
    .operands = "[delete ID... | watch ID]",
    .description = "Lists the sessions on a daemon, newest first; deletes some; or follows one: a\n"
                   "line for every state that arrives, until the session ends.\n",
    .examples = "  tribo sessions\n"
                "  tribo sessions --server robot7:7410 --json\n"
                "  tribo sessions delete 0123456789abcdef0123456789abcdef\n"
                "  tribo sessions watch 0123456789abcdef0123456789abcdef\n",
    .minimum_operands = 0,
    .maximum_operands = 1000};

static const char *const STATUSES[] = {"?", "active", "paused"};
static const char *const EVENTS[] = {"state",   "deleted",     "expired", "evicted",
                                     "drained", "device lost", "paused"};

static json_t *session_json(const Tribo__V1__SessionInfo *s)
{
    json_t *object = json_object();
    json_object_set_new(object, "session_id", json_text(s->session_id));
    json_object_set_new(object, "scene_id", json_text(s->scene_id));
    json_object_set_new(object, "owner", json_text(s->owner));
    json_object_set_new(object, "label", json_text(s->label));
    json_object_set_new(object, "status",
                        json_string((unsigned)s->status < 3 ? STATUSES[s->status] : "?"));
    json_object_set_new(object, "worlds", json_integer(s->worlds));
    json_object_set_new(object, "steps", json_integer(s->steps));
    json_object_set_new(object, "time", json_finite(s->time));
    json_object_set_new(object, "create_time_us", json_integer(s->create_time_us));
    json_object_set_new(object, "expire_time_us", json_integer(s->expire_time_us));
    json_object_set_new(object, "device", json_text(s->device));
    return object;
}

static void print_session(const Tribo__V1__SessionInfo *s)
{
    char created[32];
    printf("%s  %-7s %7d %12lld %10.3f  %s  %-16.16s %.12s %s\n", s->session_id,
           (unsigned)s->status < 3 ? STATUSES[s->status] : "?", (int)s->worlds, (long long)s->steps,
           s->time, remote_time(s->create_time_us, created), s->owner, s->scene_id, s->label);
}

static tb_status list(tbc_client *client, bool json, tb_error *error)
{
    char token[256] = "";
    int64_t count = 0;
    do {
        Tribo__V1__ListSessionsRequest request = TRIBO__V1__LIST_SESSIONS_REQUEST__INIT;
        Tribo__V1__ListSessionsResponse *page = NULL;
        request.page_token = token;
        request.page_size = 1000;
        const tb_status status = TBC_CALL(client, "tribo.v1.Simulation/ListSessions", &request,
                                          list_sessions_response, &page, error);
        if (status != TB_OK) return status;
        if (!json && count == 0 && page->n_sessions > 0)
            printf("%-32s  %-7s %7s %12s %10s  %-19s  %-16s %-12s %s\n", "session", "status",
                   "worlds", "steps", "time (s)", "created (UTC)", "owner", "scene", "label");
        for (size_t i = 0; i < page->n_sessions; i++, count++) {
            if (json)
                json_print(stdout, session_json(page->sessions[i]));
            else
                print_session(page->sessions[i]);
        }
        snprintf(token, sizeof token, "%s", page->next_page_token);
        tbc_free(page);
    } while (token[0] != '\0' && !interrupt_requested());
    if (!json && count == 0) printf("no sessions\n");
    return TB_OK;
}

static tb_status delete_sessions(tbc_client *client, char **ids, int count, tb_error *error)
{
    for (int i = 0; i < count; i++) {
        Tribo__V1__DeleteSessionRequest request = TRIBO__V1__DELETE_SESSION_REQUEST__INIT;
        Tribo__V1__DeleteSessionResponse *answer = NULL;
        request.session_id = ids[i];
        const tb_status status = TBC_CALL(client, "tribo.v1.Simulation/DeleteSession", &request,
                                          delete_session_response, &answer, error);
        tbc_free(answer);
        if (status != TB_OK) return status;
        printf("deleted %s\n", ids[i]);
    }
    return TB_OK;
}

static tb_status watch(tbc_client *client, const char *id, tb_error *error)
{
    Tribo__V1__WatchRequest request = TRIBO__V1__WATCH_REQUEST__INIT;
    tbc_stream *stream = NULL;
    request.session_id = (char *)(uintptr_t)id;
    tb_status status = tbc_stream_open(client, "tribo.v1.Simulation/Watch",
                                       &tribo__v1__watch_response__descriptor, 0, &stream, error);
    if (status == TB_OK) tbc_stream_send(stream, &request.base, NULL);
    if (status == TB_OK) tbc_stream_half_close(stream, NULL);
    while (status == TB_OK) {
        ProtobufCMessage *message = NULL;
        status = tbc_stream_receive(stream, &message, error);
        if (status != TB_OK || message == NULL) break;
        const Tribo__V1__WatchResponse *w = (const void *)message;
        if (w->event == 0 && w->state != NULL)
            printf("step %lld  time %.6f s%s\n", (long long)w->state->steps, w->state->time,
                   w->skipped > 0 ? "  (states were skipped)" : "");
        else
            printf("%s%s%s\n", (unsigned)w->event < 7 ? EVENTS[w->event] : "?",
                   w->message[0] != '\0' ? ": " : "", w->message);
        fflush(stdout);
        tbc_free(message);
    }
    tbc_stream_close(stream);
    return status;
}

int command_sessions(int argc, char **argv)
{
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    bool json = false;
    remote_option_list(&remote, connection);
    const args_option own[] = {
        {"json", NULL, "one JSON object a line", ARGS_FLAG, &json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", own}, {"the daemon", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    const char *verb = operands > 0 ? argv[1] : "list";
    const bool deletes = strcmp(verb, "delete") == 0, watches = strcmp(verb, "watch") == 0;
    const char *wrong = NULL;
    if (!deletes && !watches && strcmp(verb, "list") != 0)
        wrong = "is no action; there are list, delete ID... and watch ID";
    else if (deletes && operands < 2)
        wrong = "needs the ID of a session, or several";
    else if (watches && operands != 2)
        wrong = "needs the ID of one session";
    else if (!deletes && !watches && operands > 1)
        wrong = "takes no operands";
    if (wrong != NULL) {
        args_complain(COMMAND.name, "'%s' %s", verb, wrong);
        return CLI_USAGE;
    }

    tb_error error = {0};
    tbc_client *client = NULL;
    /* following a session waits for the daemon: Ctrl-C just ends it */
    if (!watches) interrupt_watch();
    tb_status status = remote_connect(&remote, &client, &error);
    if (status == TB_OK)
        status = deletes   ? delete_sessions(client, argv + 2, operands - 1, &error)
                 : watches ? watch(client, argv[2], &error)
                           : list(client, json, &error);
    tbc_disconnect(client);
    if (status != TB_OK) cli_complain(&error);
    return cli_exit_code(status);
}
