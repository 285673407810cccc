/* The handler of SolveProblem: a contact problem's file in, impulses and a residual out.
 *
 * It runs on a worker and not on the device's thread: a problem cannot be cut into slices, and
 * one that takes seconds must not hold up the sessions. Its iterations are bounded instead. The
 * file goes to the library's reader through a memory file, since HDF5 wants a file of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../db/db.h"
#include "base/error.h"
#include "catalog.h"
#include "handlers.h"
#include "job_run.h"
#include "offload.h"
#include "wire.h"

#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/solve.pb-c.h"

/* What the literature calls solved, and sweeps enough for stubborn files yet not without end. */
static const double DEFAULT_TOLERANCE = 1e-8;
enum { DEFAULT_ITERATIONS = 100000, MOST_ITERATIONS = 10000000, PATH_SIZE = 64 };

/* One request on its way. */
typedef struct solving {
    td_call *call;
    const Tribo__V1__SolveProblemRequest *request;
    const td_asset *asset;
    const unsigned char *bytes;
    size_t size;
    tb_problem_file *problem;
    tb_problem_info about;
    tb_solve_options options;
    tb_problem_result result;
    double *solution; /* reactions, then velocities: rows each */
} solving;

/* ---- reading ---- */

static tb_status find_bytes(solving *s, tb_error *error)
{
    const Tribo__V1__SolveProblemRequest *m = s->request;
    switch (m->source_case) {
    case TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_DATA:
        s->bytes = m->data.data;
        s->size = m->data.len;
        break;
    case TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_SHA256: {
        const tb_status status =
            td_catalog_asset(s->call->server->catalog, m->sha256, &s->asset, error);
        if (status != TB_OK) return status;
        s->bytes = s->asset->bytes;
        s->size = s->asset->size;
        break;
    }
    default:
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "source",
                             "the request has neither data nor sha256");
    }
    if (s->size > 0) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "data", "the problem's file is empty");
}

/* The library's message names the memory file: the client knows the file by another name. */
static void rename_file(const char *path, const char *name, tb_error *error)
{
    char text[TB_ERROR_MESSAGE_SIZE];
    const char *at = strstr(error->message, path);
    if (at == NULL) return;
    snprintf(text, sizeof text, "%.*s%.128s%s", (int)(at - error->message), error->message, name,
             at + strlen(path));
    memcpy(error->message, text, sizeof text);
    snprintf(error->file, sizeof error->file, "%s", name);
}

static tb_status load(solving *s, tb_error *error)
{
    char path[PATH_SIZE];
    const char *name = s->request->name[0] != '\0' ? s->request->name : "problem";
    const int file = memfd_create("problem", MFD_CLOEXEC);
    if (file < 0) return tb_fail_memory(error, s->size, "the problem's file");
    tb_status status = TB_OK;
    for (size_t done = 0; done < s->size && status == TB_OK;) {
        const ssize_t written = write(file, s->bytes + done, s->size - done);
        if (written > 0)
            done += (size_t)written;
        else
            status = tb_fail_memory(error, s->size, "the problem's file");
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (status == TB_OK) {
        status = tb_problem_load(path, &s->problem, error);
        if (status != TB_OK) rename_file(path, name, error);
        /* whatever is wrong with the file, it is the caller's file */
        if (status == TB_DATA_LOSS || status == TB_NOT_FOUND) {
            error->status = status = TB_INVALID_ARGUMENT;
            snprintf(error->field, sizeof error->field, "data");
        }
    }
    close(file);
    return status;
}

static tb_status read_options(solving *s, tb_error *error)
{
    s->options = tb_solve_defaults();
    s->options.tolerance = DEFAULT_TOLERANCE;
    s->options.maximum_iterations = DEFAULT_ITERATIONS;
    s->options.threads = 1;
    const tb_status status =
        td_wire_read_solve_options(s->request->options, "options", &s->options, error);
    if (status != TB_OK) return status;
    if (s->options.maximum_iterations <= MOST_ITERATIONS) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "options.maximum_iterations",
                         "maximum_iterations is %d, at most %d are made",
                         s->options.maximum_iterations, MOST_ITERATIONS);
}

/* ---- solving and answering ---- */

static tb_status solve(solving *s, tb_error *error)
{
    s->about = tb_problem_describe(s->problem);
    const size_t rows = (size_t)s->about.rows;
    s->solution = calloc(2 * rows + 1, sizeof *s->solution);
    if (s->solution == NULL) return tb_fail_memory(error, 2 * rows * sizeof(double), "a solution");
    const tb_status status = tb_problem_solve(s->problem, &s->options, s->solution,
                                              s->solution + rows, &s->result, error);
    /* unsolved is an answer: it says how far the solver came */
    if (status != TB_OK && status != TB_NOT_CONVERGED && status != TB_DIVERGED) return status;
    if (s->result.status == TB_OK) s->result.status = status;
    return TB_OK;
}

static void answer(solving *s)
{
    td_wire wire = {0};
    Tribo__V1__SolveProblemResponse m = TRIBO__V1__SOLVE_PROBLEM_RESPONSE__INIT;
    m.outcome = td_wire_outcome(s->result.status);
    m.residual = s->result.residual;
    m.iterations = s->result.iterations;
    m.seconds = s->result.seconds;
    m.solver = s->result.solver;
    m.contacts = s->about.contacts;
    m.dimension = s->about.dimension;
    if (s->request->want_solution) {
        const int64_t rows = s->about.contacts, columns = s->about.dimension;
        m.reactions = td_wire_array(&wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, s->solution,
                                    rows, columns);
        m.velocities = td_wire_array(&wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64,
                                     s->solution + s->about.rows, rows, columns);
    }
    tb_error error = {0};
    if (wire.failed) {
        tb_fail_memory(&error, 0, "the answer");
        td_call_fail(s->call, &error);
    } else {
        td_call_reply(s->call, &m.base);
    }
    td_wire_destroy(&wire);
}

/* What ran, for those who look it up later. */
static void put_run(const solving *s, db_run *run)
{
    td_server *server = s->call->server;
    tb_error error = {0};
    char *options = NULL;
    if (s->request->options != NULL) options = td_job_run_options(&s->request->options->base);
    run->options_json = options;
    run->scene = td_sha256_of(s->bytes, s->size);
    run->worlds = 1;
    run->certificate.outcome = (int32_t)td_wire_outcome(s->result.status);
    run->certificate.residual = s->result.residual;
    run->certificate.contacts = s->about.contacts;
    run->certificate.rows = s->about.rows;
    run->certificate.iterations = s->result.iterations;
    memcpy(run->certificate.solver, s->result.solver, sizeof run->certificate.solver);
    td_job_run_end(server, TB_OK, NULL, (int64_t)(s->result.seconds * 1e9), run);
    if (db_put_run(server->db, run, NULL, NULL, &error) != TB_OK)
        td_log_write(server->log, TB_LOG_WARNING, "run.lost", "kind=solve reason=\"%s\"",
                     error.message);
    free(options);
}

static void work(td_call *call, td_request *request)
{
    tb_error error = {0};
    db_run run;
    solving s = {.call = call, .request = (const void *)request->message};
    td_job_run_begin(call, TRIBO__V1__RUN_KIND__RUN_KIND_SOLVE, s.request->name, &run);
    tb_status status = find_bytes(&s, &error);
    if (status == TB_OK) status = read_options(&s, &error);
    if (status == TB_OK) status = load(&s, &error);
    if (status == TB_OK && !td_call_wanted(call, td_monotonic_ns()))
        status = tb_fail(&error, TB_CANCELLED, "nobody waits for the answer any more");
    if (status == TB_OK) status = solve(&s, &error);
    if (status == TB_OK) {
        put_run(&s, &run);
        answer(&s);
    } else {
        td_call_fail(call, &error);
    }
    free(s.solution);
    tb_problem_destroy(s.problem);
    if (s.asset != NULL) td_asset_release(call->server->catalog, s.asset);
    td_request_free(request);
}

void td_solve_solve_problem(td_call *call, td_request *request)
{
    td_offload(call, request, work);
}
