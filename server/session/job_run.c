/* See job_run.h. */
#include "session/job_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ops/build.h"
#include "wire/json.h"
#include "schedule/scheduler.h"
#include "session/session.h"
#include "wire/wire.h"

#include "tribo/v1/runs.pb-c.h"

void td_job_run_begin(const td_call *call, const td_device *device, int32_t kind, const char *label,
                      db_run *run)
{
    const td_server *server = call->server;
    memset(run, 0, sizeof *run);
    run->id = td_id_random();
    run->kind = kind;
    run->status = TRIBO__V1__RUN_STATUS__RUN_STATUS_RUNNING;
    snprintf(run->owner, sizeof run->owner, "%s", call->caller.name);
    snprintf(run->label, sizeof run->label, "%s", label);
    snprintf(run->build, sizeof run->build, "%s", td_build());
    snprintf(run->device, sizeof run->device, "%s, %.40s", device->name, device->description);
    run->start_time_us = td_clock_utc_us(&server->clock);
    char id[33];
    td_id_print(&run->id, id);
    td_log_write(server->log, TB_LOG_INFO, "job.begun",
                 "run=%s kind=%s owner=%s label=%s device=%s", id,
                 kind == TRIBO__V1__RUN_KIND__RUN_KIND_SOLVE ? "solve" : "grasp", run->owner,
                 run->label, device->name);
}

void td_job_run_end(const td_server *server, tb_status status, const tb_error *error,
                    int64_t compute_ns, db_run *run)
{
    run->end_time_us = td_clock_utc_us(&server->clock);
    run->compute_time_us = compute_ns / 1000;
    run->status = TRIBO__V1__RUN_STATUS__RUN_STATUS_DONE;
    char id[33];
    td_id_print(&run->id, id);
    td_log_write(server->log, TB_LOG_INFO, "job.ended",
                 "run=%s kind=%s owner=%s status=%s seconds=%.3f", id,
                 run->kind == TRIBO__V1__RUN_KIND__RUN_KIND_SOLVE ? "solve" : "grasp", run->owner,
                 tb_status_name(status), 1e-9 * (double)compute_ns);
    if (status == TB_OK) return;
    run->status = status == TB_CANCELLED || status == TB_DEADLINE_EXCEEDED
                      ? TRIBO__V1__RUN_STATUS__RUN_STATUS_CANCELLED
                      : TRIBO__V1__RUN_STATUS__RUN_STATUS_FAILED;
    snprintf(run->message, sizeof run->message, "%.255s",
             error->message[0] != '\0' ? error->message : tb_status_text(status));
}

void td_job_run_certificate(const tb_certificate *c, db_certificate *row)
{
    *row = (db_certificate){.outcome = c->step > 0 ? (int32_t)td_wire_outcome(c->status) : 0,
                            .step = c->step,
                            .time = c->time,
                            .residual = c->residual,
                            .penetration = c->penetration,
                            .cone_error = c->cone_error,
                            .complementarity_error = c->complementarity_error,
                            .closure_error = c->closure_error,
                            .energy = c->energy,
                            .energy_change = c->energy_change,
                            .contacts = c->contacts,
                            .rows = c->rows,
                            .iterations = c->iterations,
                            .flags = c->flags};
    memcpy(row->solver, c->solver, sizeof row->solver);
}

char *td_job_run_options(const ProtobufCMessage *message)
{
    tb_bytes text = {0};
    tb_error ignored;
    if (td_json_print(&text, message, &ignored) == TB_OK) return (char *)text.base;
    tb_bytes_free(&text);
    return NULL;
}
