/* Rows of grasp jobs as messages. */
#ifndef SERVER_GRASP_JOB_ROWS_H
#define SERVER_GRASP_JOB_ROWS_H

#include "db/db.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "tribo/v1/grasp.pb-c.h"

typedef struct td_grasp_job_row {
    db_grasp_job row;
    Tribo__V1__GraspJobInfo message; /* borrows the row */
    char id[33];
} td_grasp_job_row;

/* Fills the message from the row. */
void td_grasp_job_describe(td_grasp_job_row *);
/* A job that the caller may see, by its id or a unique beginning of it. NOT_FOUND, INVALID_ARGUMENT. */
tb_status td_grasp_job_find(const td_call *, const char *text, td_grasp_job_row *, tb_error *);
/* Stops a job that runs in this process (grasp_jobs.c). */
void td_grasp_jobs_cancel(td_server *, const db_id *);

#endif
