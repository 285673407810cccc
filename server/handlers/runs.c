/* Handlers of runs: ListRuns, GetRun, CompareRuns. Owners see their own runs, administrators all;
 * another owner's run gives NOT_FOUND, as an unknown id does. A worker reads the store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "handlers/handlers.h"
#include "call/offload.h"
#include "handlers/run_message.h"
#include "session/session.h"

/* Owner of the runs that the caller may see; NULL: all owners. */
static const char *visible_owner(const td_call *call)
{
    return call->caller.scope >= TD_SCOPE_ADMIN ? NULL : call->caller.name;
}

/* ---- ListRuns ---- */

static tb_status read_filter(const td_call *call, const Tribo__V1__ListRunsRequest *message,
                             db_run_filter *filter, db_sha256 *scene, tb_error *error)
{
    *filter = (db_run_filter){.kind = (int32_t)message->kind, .owner = visible_owner(call)};
    if (protobuf_c_enum_descriptor_get_value(&tribo__v1__run_kind__descriptor, filter->kind) ==
        NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "kind", "kind is %d, which is none",
                             filter->kind);
    if (message->scene_id[0] == '\0') return TB_OK;
    if (!td_sha256_parse(message->scene_id, scene))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "scene_id",
                             "scene_id is '%.80s', expected 64 lower-case hexadecimal digits",
                             message->scene_id);
    filter->scene = scene;
    return TB_OK;
}

/* Runs of a page. A run does not move once it is described: its message points at it. */
typedef struct run_page {
    td_run *runs;
    Tribo__V1__Run **pointers;
    int32_t count;
    char next[DB_TOKEN_SIZE];
} run_page;

static void clear_page(run_page *page)
{
    for (int32_t i = 0; i < page->count; i++) td_run_clear(&page->runs[i]);
    free(page->runs);
    free(page->pointers);
}

static tb_status list_rows(const td_call *call, const void *query, const char *token, void *rows,
                           int32_t most, int32_t *count, char next[DB_TOKEN_SIZE], tb_error *error)
{
    return db_list_runs(call->server->db, query, token, rows, most, count, next, error);
}

static size_t add_run(void *context, const void *row)
{
    run_page *page = context;
    td_run *run = &page->runs[page->count];
    run->row = *(const db_run *)row;
    td_run_describe(run);
    page->pointers[page->count++] = &run->message;
    return protobuf_c_message_get_packed_size(&run->message.base);
}

static tb_status list_fleet_rows(const td_call *call, const void *query, const char *token,
                                 void *rows, int32_t most, int32_t *count, char next[DB_TOKEN_SIZE],
                                 tb_error *error)
{
    return db_fleet_list_runs(call->server->fleet, query, token, rows, most, count, next, error);
}

static size_t add_fleet_run(void *context, const void *row)
{
    run_page *page = context;
    const db_fleet_run *listed = row;
    memcpy(page->runs[page->count].node, listed->node, sizeof listed->node);
    return add_run(context, &listed->run);
}

static tb_status read_page(const td_call *call, bool fleet, const db_run_filter *filter,
                           const char *token, int32_t size, run_page *page, tb_error *error)
{
    static const td_page_source RUNS = {
        .row_bytes = sizeof(db_run), .rows_at_once = 50, .list = list_rows, .add = add_run};
    static const td_page_source FLEET_RUNS = {.row_bytes = sizeof(db_fleet_run),
                                              .rows_at_once = 50,
                                              .list = list_fleet_rows,
                                              .add = add_fleet_run};
    page->runs = calloc((size_t)size, sizeof *page->runs);
    page->pointers = calloc((size_t)size, sizeof(Tribo__V1__Run *));
    if (page->runs == NULL || page->pointers == NULL)
        return tb_fail_memory(error, (size_t)size * sizeof *page->runs, "a list");
    return td_page_read(call, fleet ? &FLEET_RUNS : &RUNS, filter, token, size, page, page->next,
                        error);
}

static void list_runs(td_call *call, td_request *request)
{
    const Tribo__V1__ListRunsRequest *message =
        (const Tribo__V1__ListRunsRequest *)request->message;
    run_page page = {0};
    db_run_filter filter;
    db_sha256 scene;
    int32_t size = 0;
    tb_error error = {0};
    tb_status status = td_page_size(message->page_size, &size, &error);
    if (status == TB_OK) status = read_filter(call, message, &filter, &scene, &error);
    if (status == TB_OK && message->fleet) status = td_run_needs_fleet(call, &error);
    if (status == TB_OK)
        status = read_page(call, message->fleet, &filter, message->page_token, size, &page, &error);
    if (status == TB_OK) {
        Tribo__V1__ListRunsResponse response = TRIBO__V1__LIST_RUNS_RESPONSE__INIT;
        response.runs = page.pointers;
        response.n_runs = (size_t)page.count;
        response.next_page_token = page.next;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    clear_page(&page);
    td_request_free(request);
}

void td_runs_list_runs(td_call *call, td_request *request)
{
    td_offload(call, request, list_runs);
}

/* ---- one run ---- */

tb_status td_run_find(const td_call *call, const char *id_text, const char *field, td_run *run,
                      tb_error *error)
{
    db_id id = {0}, lower, upper;
    int32_t count = 1;
    tb_status status = TB_OK;
    if (!td_id_parse(id_text, &id)) {
        if (!td_id_range(id_text, &lower, &upper, sizeof id))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                                 "%s is '%.80s', expected 32 lower-case hexadecimal digits, or the "
                                 "first %d or more",
                                 field, id_text, TD_ID_PREFIX_DIGITS);
        status = db_find_run(call->server->db, &lower, &upper, &id, &count, error);
        if (status == TB_OK && count > 1)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                                 "%s begins the ids of several runs", id_text);
        if (status == TB_OK && count == 0) status = TB_NOT_FOUND;
    }
    const char *owner = visible_owner(call);
    if (status == TB_OK) status = db_get_run(call->server->db, &id, &run->row, error);
    if (status == TB_OK && owner != NULL && strcmp(owner, run->row.owner) != 0) {
        td_run_clear(run);
        status = TB_NOT_FOUND;
    }
    if (status == TB_NOT_FOUND)
        return tb_fail_field(error, TB_NOT_FOUND, field, "there is no run %s", id_text);
    if (status == TB_OK) td_run_describe(run);
    return status;
}

/* The same, and where this daemon does not have the run, as the fleet's database has it. */
static tb_status find_anywhere(const td_call *call, const char *id_text, const char *field,
                               td_run *run, tb_error *error)
{
    db_id lower, upper;
    db_fleet_run found = {0};
    int32_t count = 0;
    tb_status status = td_run_find(call, id_text, field, run, error);
    if (status != TB_NOT_FOUND || call->server->fleet == NULL) return status;
    if (td_id_parse(id_text, &lower))
        upper = lower;
    else
        td_id_range(id_text, &lower, &upper, sizeof lower);
    status = db_fleet_find_run(call->server->fleet, &lower, &upper, visible_owner(call), &found,
                               &count, error);
    if (status == TB_OK && count == 0)
        status = tb_fail_field(error, TB_NOT_FOUND, field, "the fleet has no run %s", id_text);
    if (status == TB_OK && count > 1)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                               "%s begins the ids of several runs of the fleet", id_text);
    run->row = found.run;
    memcpy(run->node, found.node, sizeof run->node);
    if (status == TB_OK) td_run_describe(run);
    return status;
}

/* ---- GetRun ---- */

enum { USUAL_SUMMARIES = 100, MOST_SUMMARIES = 1000, MOST_EVENTS = 1000 };

/* Summaries and events of a run, with their messages. */
typedef struct history {
    db_step_summary *summaries;
    db_event *events;
    Tribo__V1__StepSummary *summary_messages;
    Tribo__V1__Certificate *certificates;
    Tribo__V1__RunEvent *event_messages;
    Tribo__V1__StepSummary **summary_pointers;
    Tribo__V1__RunEvent **event_pointers;
    int32_t number_of_summaries, number_of_events;
} history;

static void clear_history(history *h)
{
    free(h->summaries);
    free(h->events);
    free(h->summary_messages);
    free(h->certificates);
    free(h->event_messages);
    free(h->summary_pointers);
    free(h->event_pointers);
}

static bool allocate_history(history *h, int32_t summaries)
{
    const size_t n = (size_t)summaries, m = MOST_EVENTS;
    h->summaries = calloc(n, sizeof *h->summaries);
    h->events = calloc(m, sizeof *h->events);
    h->summary_messages = calloc(n, sizeof *h->summary_messages);
    h->certificates = calloc(n, sizeof *h->certificates);
    h->event_messages = calloc(m, sizeof *h->event_messages);
    h->summary_pointers = calloc(n, sizeof(Tribo__V1__StepSummary *));
    h->event_pointers = calloc(m, sizeof(Tribo__V1__RunEvent *));
    return h->summaries != NULL && h->events != NULL && h->summary_messages != NULL &&
           h->certificates != NULL && h->event_messages != NULL && h->summary_pointers != NULL &&
           h->event_pointers != NULL;
}

static void describe_history(history *h)
{
    for (int32_t i = 0; i < h->number_of_summaries; i++) {
        const db_step_summary *row = &h->summaries[i];
        Tribo__V1__StepSummary *message = h->summary_pointers[i] = &h->summary_messages[i];
        tribo__v1__step_summary__init(message);
        message->step = row->step;
        message->time_us = row->time_us;
        message->steps = row->steps;
        message->certificate = &h->certificates[i];
        td_run_certificate(&row->certificate, &h->certificates[i]);
    }
    for (int32_t i = 0; i < h->number_of_events; i++) {
        db_event *row = &h->events[i];
        Tribo__V1__RunEvent *message = h->event_pointers[i] = &h->event_messages[i];
        tribo__v1__run_event__init(message);
        message->time_us = row->time_us;
        message->kind = row->kind;
        message->message = row->message;
    }
}

static tb_status read_history(db *store, const db_id *id, int32_t summaries, history *h,
                              tb_error *error)
{
    if (!allocate_history(h, summaries))
        return tb_fail_memory(error, (size_t)summaries * sizeof *h->summaries, "a run's history");
    tb_status status =
        db_list_step_summaries(store, id, h->summaries, summaries, &h->number_of_summaries, error);
    if (status == TB_OK)
        status = db_list_events(store, id, h->events, MOST_EVENTS, &h->number_of_events, error);
    if (status == TB_OK) describe_history(h);
    return status;
}

static void get_run(td_call *call, td_request *request)
{
    const Tribo__V1__GetRunRequest *message = (const Tribo__V1__GetRunRequest *)request->message;
    const int32_t asked = message->maximum_summaries;
    const int32_t summaries = asked == 0 ? USUAL_SUMMARIES : asked;
    td_run run = {0};
    history h = {0};
    tb_error error = {0};
    tb_status status = TB_OK;
    if (asked < 0 || asked > MOST_SUMMARIES)
        status = tb_fail_field(&error, TB_INVALID_ARGUMENT, "maximum_summaries",
                               "maximum_summaries is %d, expected 0 to %d", asked, MOST_SUMMARIES);
    if (status == TB_OK) status = find_anywhere(call, message->run_id, "run_id", &run, &error);
    /* the fleet's database has no histories */
    if (status == TB_OK && run.node[0] == '\0')
        status = read_history(call->server->db, &run.row.id, summaries, &h, &error);
    if (status == TB_OK) {
        Tribo__V1__GetRunResponse response = TRIBO__V1__GET_RUN_RESPONSE__INIT;
        response.run = &run.message;
        response.summaries = h.summary_pointers;
        response.n_summaries = (size_t)h.number_of_summaries;
        response.events = h.event_pointers;
        response.n_events = (size_t)h.number_of_events;
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    clear_history(&h);
    td_run_clear(&run);
    td_request_free(request);
}

void td_runs_get_run(td_call *call, td_request *request)
{
    td_offload(call, request, get_run);
}

/* ---- CompareRuns ---- */

/* b over a; 0 where that says nothing. */
static double ratio(double a, double b)
{
    const double quotient = b / a;
    return a > 0 && isfinite(quotient) ? quotient : 0;
}

static double steps_per_second(const db_run *run)
{
    return run->compute_time_us > 0 ? (double)run->steps / ((double)run->compute_time_us * 1e-6)
                                    : 0;
}

static void compare_runs(td_call *call, td_request *request)
{
    const Tribo__V1__CompareRunsRequest *message =
        (const Tribo__V1__CompareRunsRequest *)request->message;
    td_run a = {0}, b = {0};
    tb_error error = {0};
    tb_status status = find_anywhere(call, message->run_id_a, "run_id_a", &a, &error);
    if (status == TB_OK) status = find_anywhere(call, message->run_id_b, "run_id_b", &b, &error);
    if (status == TB_OK) {
        Tribo__V1__CompareRunsResponse response = TRIBO__V1__COMPARE_RUNS_RESPONSE__INIT;
        response.a = &a.message;
        response.b = &b.message;
        response.same_scene = memcmp(&a.row.scene, &b.row.scene, sizeof a.row.scene) == 0;
        response.same_options = strcmp(a.message.options_json, b.message.options_json) == 0;
        response.same_build = strcmp(a.row.build, b.row.build) == 0;
        response.steps_per_second_ratio = ratio(steps_per_second(&a.row), steps_per_second(&b.row));
        response.residual_ratio = ratio(a.row.certificate.residual, b.row.certificate.residual);
        td_call_reply(call, &response.base);
    } else {
        td_call_fail(call, &error);
    }
    td_run_clear(&a);
    td_run_clear(&b);
    td_request_free(request);
}

void td_runs_compare_runs(td_call *call, td_request *request)
{
    td_offload(call, request, compare_runs);
}
