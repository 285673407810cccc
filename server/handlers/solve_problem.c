/* The handler of SolveProblem: a contact problem's file in, impulses and a residual out.
 *
 * The file is parsed on the pool for uploads, within its budget; then it is solved on a worker and
 * not on the device's thread: a problem cannot be cut into slices, and one that takes seconds must
 * not hold up the sessions. The client's leaving and the deadline end it between sweeps, the number
 * of sweeps is bounded, and one worker stays free for others. The answer is sent when the run's row
 * is durable. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "session/catalog.h"
#include "handlers/handlers.h"
#include "session/job_run.h"
#include "call/memory.h"
#include "session/session.h"
#include "session/uploads.h"
#include "wire/wire.h"

#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/solve.pb-c.h"

static const double RETRY_AFTER_S = 1;
/* The literature's tolerance of a solved problem, and enough sweeps for stubborn files. */
static const double DEFAULT_TOLERANCE = 1e-8;
enum { DEFAULT_ITERATIONS = 100000 };

/* A problem during its solve, then its response until the run's row is durable. */
typedef struct solving {
    td_call *call;
    td_server *server;
    tb_problem_file *file;
    tb_problem_info info;
    tb_problem_result result;
    double *reactions, *velocities; /* rows; NULL: not wanted */
    tb_solve_options options;
    uint64_t memory_bytes; /* booked */
    bool want_solution;
    db_run run;
    tb_status status;
    tb_error error;
    double retry_after;
} solving;

static void free_solving(solving *s)
{
    tb_problem_destroy(s->file);
    if (s->memory_bytes > 0) td_memory_give_back(s->server, s->run.owner, s->memory_bytes);
    free(s->reactions);
    free(s->velocities);
    free((void *)(uintptr_t)s->run.options_json);
    free(s);
}

static bool is_cancelled(void *context)
{
    return !td_call_wanted(context, td_monotonic_ns());
}

/* ---- reading ---- */

/* Memory of the problem and its solver: the parsed numbers, the solver's copy, and some for each
 * row. */
static tb_status book_memory(solving *s, size_t read_bytes, tb_error *error)
{
    enum { ROW_BYTES = 256 };
    s->info = tb_problem_describe(s->file);
    const uint64_t bytes = 2 * (uint64_t)read_bytes + ROW_BYTES * (uint64_t)s->info.rows;
    const tb_status status = td_memory_take(s->server, s->run.owner, bytes, "the problem", error);
    if (status == TB_OK) s->memory_bytes = bytes;
    return status;
}

static tb_status load(solving *s, const Tribo__V1__SolveProblemRequest *m, tb_error *error)
{
    td_catalog *catalog = s->server->catalog;
    const td_asset *asset = NULL;
    const unsigned char *bytes = m->data.data;
    size_t size = m->data.len;
    const char *name = m->name;
    if (m->source_case == TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_SHA256) {
        const tb_status status = td_catalog_asset(catalog, m->sha256, &asset, error);
        if (status != TB_OK) return status;
        bytes = asset->bytes;
        size = asset->size;
        if (name[0] == '\0') name = asset->name;
    } else if (m->source_case != TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_DATA) {
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "source",
                             "the request has neither data nor sha256");
    }
    tb_budget budget = td_upload_budget(s->call);
    tb_budget_bind(&budget);
    tb_status status =
        tb_problem_load_memory(bytes, size, name[0] != '\0' ? name : "problem", &s->file, error);
    tb_budget_release();
    status = td_upload_failure(s->call, &budget, status, error);
    s->run.scene = td_sha256_of(bytes, size); /* the problem takes the model's place */
    td_asset_release(catalog, asset);
    /* whatever is wrong with the file, it is the caller's file */
    if (status == TB_DATA_LOSS) error->status = status = TB_INVALID_ARGUMENT;
    if (status != TB_OK && error->field[0] == '\0')
        snprintf(error->field, sizeof error->field, "data");
    if (status == TB_OK) status = book_memory(s, budget.taken_bytes, error);
    return status;
}

static tb_status read_options(solving *s, const Tribo__V1__SolveProblemRequest *m,
                              tb_solve_options *options, tb_error *error)
{
    const Tribo__V1__SolveOptions *asked = m->options;
    const tb_status status = td_wire_read_solve_options(asked, "options", options, error);
    if (asked == NULL || asked->tolerance == 0) options->tolerance = DEFAULT_TOLERANCE;
    if (asked == NULL || asked->maximum_iterations == 0)
        options->maximum_iterations = DEFAULT_ITERATIONS;
    options->threads = 1;
    options->cancelled = is_cancelled;
    options->cancelled_context = s->call;
    return status;
}

/* Books memory for the solution and for its response message. */
static tb_status take_solution(solving *s, tb_error *error)
{
    const td_config *config = s->server->config;
    const size_t rows = (size_t)s->info.rows;
    if (!s->want_solution) return TB_OK;
    if (2 * rows * sizeof(double) + 4096 > config->message_bytes)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "want_solution",
                             "the solution has %zu bytes, a message at most %llu",
                             2 * rows * sizeof(double), (unsigned long long)config->message_bytes);
    s->reactions = calloc(rows + 1, sizeof(double));
    s->velocities = calloc(rows + 1, sizeof(double));
    if (s->reactions == NULL || s->velocities == NULL)
        return tb_fail_memory(error, 2 * rows * sizeof(double), "a solution");
    return TB_OK;
}

/* ---- solving ---- */

static tb_status solve(solving *s, tb_error *error)
{
    tb_status status = take_solution(s, error);
    if (status != TB_OK) return status;
    status = tb_problem_solve(s->file, &s->options, s->reactions, s->velocities, &s->result, error);
    /* unsolved is an answer: it says how far the solver came */
    if (status == TB_NOT_CONVERGED || status == TB_DIVERGED) {
        s->result.status = status;
        status = TB_OK;
    }
    if (status == TB_CANCELLED && td_monotonic_ns() >= s->call->deadline_ns)
        status = tb_fail(error, TB_DEADLINE_EXCEEDED, "the deadline passed while it was solved");
    return status;
}

/* ---- answering ---- */

static void send(solving *s)
{
    td_wire wire = {0};
    Tribo__V1__SolveProblemResponse response = TRIBO__V1__SOLVE_PROBLEM_RESPONSE__INIT;
    const Tribo__V1__DataType type = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    response.outcome = td_wire_outcome(s->result.status);
    response.residual = s->result.residual;
    response.iterations = s->result.iterations;
    response.seconds = s->result.seconds;
    response.solver = s->result.solver;
    response.contacts = s->info.contacts;
    response.dimension = s->info.dimension;
    if (s->want_solution) {
        const int32_t rows = s->info.contacts, columns = s->info.dimension;
        response.reactions = td_wire_array(&wire, type, s->reactions, rows, columns);
        response.velocities = td_wire_array(&wire, type, s->velocities, rows, columns);
    }
    if (!wire.failed) {
        td_call_reply(s->call, &response.base);
    } else {
        tb_error error;
        tb_fail_memory(&error, 0, "an answer");
        td_call_fail(s->call, &error);
    }
    td_wire_destroy(&wire);
}

/* On the store's writer thread, or at once if the store took nothing. */
static void on_stored(void *context, tb_status status, const tb_error *error)
{
    solving *s = context;
    td_call *call = s->call;
    if (s->status == TB_OK && status != TB_OK) {
        s->status = status;
        if (error != NULL) s->error = *error;
    }
    if (s->status == TB_OK)
        send(s);
    else
        td_call_finish(call, s->status, &s->error, s->retry_after);
    free_solving(s);
    td_call_release(call);
}

static void end(solving *s)
{
    tb_error failure = {0};
    const tb_problem_result *r = &s->result;
    td_job_run_end(s->server, s->status, &s->error, (int64_t)(r->seconds * 1e9), &s->run);
    s->run.worlds = 1;
    s->run.certificate = (db_certificate){.outcome = (int32_t)td_wire_outcome(r->status),
                                          .residual = r->residual,
                                          .contacts = s->info.contacts,
                                          .rows = s->info.rows,
                                          .iterations = r->iterations};
    memcpy(s->run.certificate.solver, r->solver, sizeof s->run.certificate.solver);
    td_call_hold(s->call);
    const tb_status stored = db_put_run(s->server->db, &s->run, on_stored, s, &failure);
    if (stored != TB_OK) on_stored(s, stored, &failure);
}

/* The run's record of the request: all but the file. */
static char *options_json(const Tribo__V1__SolveProblemRequest *m)
{
    Tribo__V1__SolveProblemRequest kept = *m;
    kept.source_case = TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE__NOT_SET;
    kept.data = (ProtobufCBinaryData){0};
    return td_job_run_options(&kept.base);
}

/* Bound on concurrent solves: it leaves workers free for requests that take milliseconds. */
static int solving_at_once(const td_server *server)
{
    const int workers = td_workers_count(server->workers);
    return workers > 1 ? workers - 1 : 1;
}

/* On a worker: solves the parsed problem. */
static void solve_and_end(void *context)
{
    solving *s = context;
    td_server *server = s->server;
    td_call *call = s->call;
    s->status = solve(s, &s->error);
    end(s);
    atomic_fetch_sub(&server->solving, 1);
    td_call_release(call);
}

/* Gives the problem to a worker, which may free it before this returns; keeps the call until the
 * problem has ended. */
static void hand_over(solving *s)
{
    td_call *call = s->call;
    tb_error error = {0};
    td_call_hold(call);
    const tb_status status = td_workers_post(s->server->workers, solve_and_end, s, &error);
    if (status == TB_OK) return;
    s->status = status;
    s->error = error;
    s->retry_after = RETRY_AFTER_S;
    atomic_fetch_sub(&s->server->solving, 1);
    end(s);
    td_call_release(call);
}

/* On the pool for uploads: reads the file. */
static void begin(td_call *call, td_request *request)
{
    const Tribo__V1__SolveProblemRequest *m =
        (const Tribo__V1__SolveProblemRequest *)request->message;
    tb_error error = {0};
    tb_status status = TB_OK;
    solving *s = calloc(1, sizeof *s);
    const int most = solving_at_once(call->server);
    if (atomic_fetch_add(&call->server->solving, 1) >= most)
        status =
            tb_fail(&error, TB_RESOURCE_EXHAUSTED, "%d problems are being solved already", most);
    else if (s == NULL)
        status = tb_fail_memory(&error, sizeof *s, "a problem");
    if (status != TB_OK) {
        free(s);
        td_request_free(request);
        td_call_finish(call, status, &error, RETRY_AFTER_S);
        atomic_fetch_sub(&call->server->solving, 1);
    } else {
        s->call = call;
        s->server = call->server;
        s->want_solution = m->want_solution;
        td_job_run_begin(call, td_device_cpu(call->server), TRIBO__V1__RUN_KIND__RUN_KIND_SOLVE,
                         m->name, &s->run);
        s->run.options_json = options_json(m);
        s->status = read_options(s, m, &s->options, &s->error);
        if (s->status == TB_OK) s->status = load(s, m, &s->error);
        td_request_free(request);
        if (s->status == TB_OK) {
            hand_over(s);
            return;
        }
        end(s);
        atomic_fetch_sub(&call->server->solving, 1);
    }
}

void td_solve_solve_problem(td_call *call, td_request *request)
{
    tb_error error = {0};
    if (!atomic_load(&call->server->draining)) {
        td_upload(call, request, begin);
        return;
    }
    td_request_free(request);
    tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
    td_call_fail(call, &error);
}
