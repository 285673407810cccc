/* Rows of runs that are jobs: grasp evaluations and problem files. */
#ifndef SERVER_JOB_RUN_H
#define SERVER_JOB_RUN_H

#include "db/db.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

/* A row that begins now: id, times, owner, label, build and device are filled. */
void td_job_run_begin(const td_call *, const td_device *, int32_t kind, const char *label,
                      db_run *);
/* Its end: status (OK: done, CANCELLED, else failed with the message) and times. */
void td_job_run_end(const td_server *, tb_status, const tb_error *, int64_t compute_ns, db_run *);
void td_job_run_certificate(const tb_certificate *, db_certificate *);
/* The message as canonical protobuf JSON, malloc'ed; NULL if out of memory. */
char *td_job_run_options(const ProtobufCMessage *);

#endif
