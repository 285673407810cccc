/* A step request's way: see session_step.h. */
#include "session/session_step.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schedule/priority.h"
#include "schedule/scheduler_internal.h"

/* An answer that takes longer to pack than a thread takes to wake is packed by a worker. */
enum { HEAVY_BYTES = 128 << 10 };

/* Removes the step from the estimate for later steps of its session. */
static void unbook(td_step *step)
{
    td_session *s = step->job.session;
    if (!step->booked) return;
    step->booked = false;
    atomic_fetch_sub(&s->open_steps_ns, step->booked_ns);
    atomic_fetch_sub(&s->open_steps, 1);
}

static void free_step(td_step *step)
{
    td_session_job_release(&step->job);
    free(step->chosen);
    free(step->chosen_certificates);
    free(step);
}

/* ---- before the device ---- */

static void answer_on_worker(void *context)
{
    td_step *step = context;
    step->answer(step);
}

/* Passes a heavy answer to a worker; false if this thread has to answer. */
static bool answer_aside(td_step *step)
{
    tb_error ignored;
    const td_session *s = step->job.session;
    td_workers *workers = s->all->server->workers;
    bool heavy = step->job.status == TB_OK && td_step_bytes(step) > HEAVY_BYTES;
    if (step->job.status == TB_OK && atomic_load(&s->all->watching) > 0) {
        /* watchers get theirs from the same thread */
        const td_wire_want state = {.state = true, .bodies = true, .evaluations = true};
        const size_t world = td_wire_world_bytes(s->states[0], state);
        heavy = heavy || world * (size_t)s->worlds > HEAVY_BYTES;
    }
    return heavy && td_workers_post(workers, answer_on_worker, step, &ignored) == TB_OK;
}

typedef struct inputs {
    td_wire_rows controls, forces, wrenches, kinematic;
} inputs;

/* Whether every kinematic body has an orientation: everything is checked before anything is set. */
static tb_status check_orientations(td_wire_rows rows, int32_t worlds, int32_t bodies,
                                    tb_error *error)
{
    for (int32_t w = 0; w < worlds && rows.numbers != NULL; w++) {
        for (int32_t b = 0; b < bodies; b++) {
            const double *q = td_wire_row(rows, w) + TD_KINEMATIC_NUMBERS * b + 3;
            if (!(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] > 1e-20))
                return tb_fail_field(error, TB_INVALID_ARGUMENT, "kinematic",
                                     "kinematic: the orientation of body %d in world %d is 0",
                                     (int)b, (int)w);
        }
        if (rows.stride == 0) break; /* one row for all */
    }
    return TB_OK;
}

static tb_status read_inputs(td_step *step, td_wire *wire, const tb_model_counts *n, inputs *in)
{
    const int32_t worlds = step->job.session->worlds;
    const Tribo__V1__StepRequest *m = step->message;
    tb_error *error = &step->job.error;
    const td_wire_pair *pairs = NULL; /* unknown names are refused before the step */
    int32_t number_of_pairs = 0;
    tb_status status = td_wire_find_pairs(wire, step->job.session->scene->model, m->want, &pairs,
                                          &number_of_pairs, error);
    if (status == TB_OK) status = td_wire_read_mask(m->mask, "mask", worlds, &step->mask, error);
    if (status == TB_OK)
        status = td_wire_read_rows(wire, m->controls, "controls", worlds, n->actuators,
                                   &in->controls, error);
    if (status == TB_OK)
        status = td_wire_read_rows(wire, m->forces, "forces", worlds, n->dofs, &in->forces, error);
    if (status == TB_OK)
        status = td_wire_read_tables(wire, m->wrenches, "wrenches", worlds, n->bodies, 6,
                                     &in->wrenches, error);
    if (status == TB_OK)
        status = td_wire_read_tables(wire, m->kinematic, "kinematic", worlds, n->kinematic_bodies,
                                     TD_KINEMATIC_NUMBERS, &in->kinematic, error);
    if (status == TB_OK)
        status = check_orientations(in->kinematic, worlds, n->kinematic_bodies, error);
    return status;
}

static tb_status set_inputs(tb_state *state, const inputs *in, int32_t w, const tb_model_counts *n,
                            tb_error *error)
{
    tb_status status = TB_OK;
    if (in->controls.numbers != NULL)
        status = tb_state_set_controls(state, td_wire_row(in->controls, w), n->actuators, error);
    if (status == TB_OK && in->forces.numbers != NULL)
        status = tb_state_set_applied_force(state, td_wire_row(in->forces, w), n->dofs, error);
    for (int32_t b = 0; status == TB_OK && in->wrenches.numbers != NULL && b < n->bodies; b++)
        status = tb_state_set_body_wrench(state, b, td_wire_row(in->wrenches, w) + 6 * b, error);
    if (status == TB_OK && in->kinematic.numbers != NULL)
        status = td_session_set_kinematic(state, td_wire_row(in->kinematic, w), error);
    return status;
}

/* Inputs into the worlds of the mask. All inputs are checked before anything is set. */
static tb_status apply_inputs(td_step *step, td_wire *wire)
{
    td_session *s = step->job.session;
    const tb_model_counts counts = tb_model_count(s->scene->model);
    inputs in;
    tb_status status = read_inputs(step, wire, &counts, &in);
    for (int32_t w = 0; w < s->worlds && status == TB_OK; w++)
        if (td_wire_masked_in(step->mask, w))
            status = set_inputs(s->states[w], &in, w, &counts, &step->job.error);
    return status;
}

/* Gathers the worlds of the mask for the device. */
static tb_status choose_worlds(td_step *step)
{
    td_job *job = &step->job;
    td_session *s = job->session;
    const size_t n = (size_t)s->worlds;
    job->states = s->states;
    job->worlds = s->worlds;
    job->certificates = s->certificates;
    if (step->mask == NULL) return TB_OK;
    step->chosen = calloc(n, sizeof(tb_state *));
    step->chosen_certificates = calloc(n, sizeof *step->chosen_certificates);
    if (step->chosen == NULL || step->chosen_certificates == NULL)
        return tb_fail_memory(&job->error, n * sizeof *step->chosen_certificates, "worlds");
    job->worlds = 0;
    for (int32_t w = 0; w < s->worlds; w++)
        if (step->mask[w] != 0) step->chosen[job->worlds++] = s->states[w];
    job->states = step->chosen;
    job->certificates = step->chosen_certificates;
    if (job->worlds > 0) return TB_OK;
    return tb_fail_field(&job->error, TB_INVALID_ARGUMENT, "mask", "mask chooses no world");
}

/* Certificates of the worlds that stepped; those of the others are of their last step. */
static void spread_certificates(td_step *step)
{
    td_session *s = step->job.session;
    int32_t next = 0;
    for (int32_t w = 0; w < s->worlds && step->mask != NULL; w++)
        s->certificates[w] = step->mask[w] != 0 ? step->chosen_certificates[next++]
                                                : *tb_state_certificate(s->states[w]);
}

/* Refuses a step with an answer over the limit before it is computed. */
static tb_status check_size(td_step *step)
{
    const td_config *config = step->job.session->all->server->config;
    const uint64_t bytes = td_step_bytes(step);
    if (step->job.call->method->server_streaming || bytes <= config->message_bytes) return TB_OK;
    return tb_fail_field(&step->job.error, TB_RESOURCE_EXHAUSTED, "want",
                         "the answer would have about %llu bytes, a message at most %llu; "
                         "StepStream sends it in pieces",
                         (unsigned long long)bytes, (unsigned long long)config->message_bytes);
}

static void on_done(td_job *job)
{
    td_step *step = (td_step *)job;
    td_session *s = job->session;
    if (job->status == TB_ABORTED)
        td_session_tell(s, TRIBO__V1__SESSION_EVENT__SESSION_EVENT_DEVICE_LOST,
                        "the device failed; the session comes back from its last checkpoint", true);
    if (job->status == TB_CANCELLED && atomic_load(&s->stop))
        job->status = tb_fail(&job->error, TB_ABORTED,
                              "the session ended after %d of %d steps of this request",
                              job->steps_done, job->steps);
    if (step->chosen != NULL) spread_certificates(step);
    if (job->status == TB_OK) job->status = td_session_fetch(s, step->want, &job->error);
    if (step->mask == NULL) s->step_estimate_ns = job->step_estimate_ns; /* of all worlds */
    unbook(step); /* before the answer: its receiver may send the next step at once */
    if (job->steps_done > 0) {
        td_session_account(s, job->certificates, job->worlds, job->steps_done, job->compute_ns);
        td_session_renew(s);
    }
    if (!answer_aside(step)) step->answer(step);
}

static void run_step(td_job *job)
{
    td_step *step = (td_step *)job;
    td_session *s = job->session;
    /* a stream that an earlier request ended takes no further steps */
    if (atomic_load(&job->call->finished))
        job->status = tb_fail(&job->error, TB_CANCELLED, "the stream has ended");
    else
        job->status = check_size(step);
    if (job->status == TB_OK) {
        td_wire wire = td_wire_borrow(s->all);
        job->status = apply_inputs(step, &wire);
        td_wire_return(s->all, &wire);
    }
    if (job->status == TB_OK) job->status = choose_worlds(step);
    if (job->status == TB_OK) {
        td_session_keep_evaluations(s);
        job->options = s->options;
        job->step_estimate_ns = s->step_estimate_ns;
        job->pace = s->pace;
        job->stop = &s->stop;
        job->done = on_done;
        /* once it is accepted, the step may be done and gone before this returns */
        if (td_scheduler_submit(s->device->scheduler, job) == TB_OK) return;
    }
    step->answer(step);
}

static void refuse_step(td_job *job, const tb_error *error)
{
    td_step *step = (td_step *)job;
    /* without the turn, only the answer may be sent */
    job->status = error->status;
    job->error = *error;
    job->run = NULL;
    step->answer(step);
}

/* ---- its beginning and end ---- */

static tb_status read_step(td_step *step, tb_error *error)
{
    const Tribo__V1__StepRequest *m = step->message;
    const td_config *config = step->job.call->server->config;
    step->job.steps = m->steps == 0 ? 1 : m->steps;
    if (step->job.steps < 1 || step->job.steps > config->steps_per_request)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "steps",
                             "steps is %d, expected 1 to %d, or 0 for 1", m->steps,
                             config->steps_per_request);
    const tb_status status =
        td_priority_read(step->job.call, m->priority, &step->job.priority, error);
    if (status != TB_OK) return status;
    return td_wire_read_want(m->want, &step->want, error);
}

td_step *td_step_create(td_call *call, td_request *request, const Tribo__V1__StepRequest *message,
                        td_session *session, void (*answer_step)(td_step *), tb_error *error)
{
    td_step *step = calloc(1, sizeof *step);
    if (step == NULL) {
        tb_fail_memory(error, sizeof *step, "a request");
        td_request_free(request);
        return NULL;
    }
    step->message = message;
    step->answer = answer_step;
    td_job *job = &step->job;
    job->call = call;
    job->session = session;
    job->request = request;
    job->client = &call->caller;
    /* a step that waits for its turn runs on a thread with other work, and more steps may follow: a
     * thread's computation for other callers must be bounded */
    job->at_once = call->at_leisure;
    job->patient = call->method->client_streaming;
    job->run = run_step;
    job->refuse = refuse_step;
    job->needs_worlds = job->light = true;
    td_call_hold(call);
    td_session_hold(session);
    if (read_step(step, error) == TB_OK) return step;
    free_step(step);
    return NULL;
}

/* Refuses a step that would wait too long behind others of its session. A stream's steps wait: the
 * stream accepts no more than its window. */
static tb_status check_wait(td_step *step, double needed_ns, double *retry_after, tb_error *error)
{
    td_session *s = step->job.session;
    const td_config *config = s->all->server->config;
    const int64_t now = td_monotonic_ns(), wait = atomic_load(&s->open_steps_ns);
    if (wait > 0 && !step->job.patient && step->job.priority != TD_PRIORITY_LOW) {
        const int64_t limit = td_wait_limit(config, atomic_load(&s->refused_ns), now, needed_ns);
        if (wait > limit) {
            atomic_store(&s->refused_ns, now);
            *retry_after = 1e-9 * ((double)wait - 0.5 * (double)limit);
            td_metrics_add(s->all->server->metrics, TD_METRIC_QUEUE_REFUSED, 1);
            return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                           "the step would wait about %.3g s for others of its session, at most "
                           "%.3g s are allowed; come back in %.3g s",
                           1e-9 * (double)wait, 1e-9 * (double)limit, *retry_after);
        }
    }
    const int64_t deadline = step->job.call->deadline_ns;
    if (deadline == INT64_MAX || wait == 0 || (double)wait + needed_ns <= (double)(deadline - now))
        return TB_OK;
    *retry_after = 1e-9 * (double)wait;
    return tb_fail(error, TB_DEADLINE_EXCEEDED,
                   "the deadline leaves %.3g s, waiting and stepping would take about %.3g s",
                   1e-9 * (double)(deadline - now), 1e-9 * ((double)wait + needed_ns));
}

/* Device time (ns) that the session expects for the call; a call of INT32_MAX steps, of unknown
 * duration, counts as zero. */
static double expected_ns(td_step *step)
{
    td_session *s = step->job.session;
    step->job.step_estimate_ns = s->step_estimate_ns;
    step->job.worlds = s->worlds;
    return (double)step->job.step_estimate_ns * (double)step->job.steps;
}

tb_status td_step_start(td_step *step, double *retry_after, tb_error *error)
{
    td_session *s = step->job.session;
    const double needed = expected_ns(step);
    *retry_after = 0;
    tb_status status = check_wait(step, needed, retry_after, error);
    if (status != TB_OK) {
        free_step(step);
        return status;
    }
    /* a step that comes first is judged by the device; the others have it in their estimate */
    const bool first = atomic_fetch_add(&s->open_steps, 1) == 0;
    if (!first) step->job.patient = true;
    step->booked_ns =
        (int64_t)(needed + (needed > 0 && !first
                                ? td_scheduler_wait_ns(s->device->scheduler, &step->job)
                                : 0));
    step->booked = true;
    atomic_fetch_add(&s->open_steps_ns, step->booked_ns);
    status = td_session_enter(&step->job, error);
    if (status == TB_OK) return TB_OK;
    unbook(step);
    *retry_after = status == TB_RESOURCE_EXHAUSTED ? 0.01 : 0;
    free_step(step);
    return status;
}

void td_step_end(td_step *step)
{
    unbook(step);
    if (step->job.run != NULL) {
        if (step->job.steps_done > 0) td_session_changed(step->job.session);
        td_session_leave(step->job.session);
    }
    free_step(step);
}

/* ---- answers ---- */

uint64_t td_step_bytes(const td_step *step)
{
    const td_session *s = step->job.session;
    uint64_t bytes = 0;
    if (!step->want.contacts) /* all worlds are alike */
        return td_wire_world_bytes(s->states[0], step->want) * (uint64_t)s->worlds;
    for (int32_t w = 0; w < s->worlds; w++) bytes += td_wire_world_bytes(s->states[w], step->want);
    return bytes;
}

bool td_step_fill(td_step *step, td_wire *wire, int32_t first, int32_t count,
                  Tribo__V1__StepResponse *response)
{
    td_session *s = step->job.session;
    const td_job *job = &step->job;
    step->want.dt = td_session_dt(s);
    if (step->want.arrays) {
        const tb_certificate **rows = td_wire_take(wire, (size_t)count * sizeof *rows);
        for (int32_t i = 0; rows != NULL && i < count; i++) rows[i] = &s->certificates[first + i];
        if (rows != NULL)
            response->certificate_arrays = td_wire_certificate_arrays(wire, rows, count);
    } else {
        response->certificates = td_wire_certificates(wire, s->certificates + first, count);
        response->n_certificates = (size_t)count;
    }
    response->state = td_wire_state(wire, s->states + first, count, step->want);
    if (step->want.contacts) {
        response->contacts = td_wire_contacts(wire, s->states + first, count, step->want);
        response->n_contacts = (size_t)count;
    }
    if (!td_session_fill_pairs(s, wire, first, count, step->message->want, response->state))
        return false;
    response->queue_time_us = (job->started_ns - job->queued_ns) / 1000;
    response->compute_time_us = job->compute_ns / 1000;
    return !wire->failed;
}
