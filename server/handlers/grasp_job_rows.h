/* Rows of grasp jobs as messages. */
#ifndef SERVER_GRASP_JOB_ROWS_H
#define SERVER_GRASP_JOB_ROWS_H

#include "db/db.h"
#include "ops/daemon.h"
#include "tribo/v1/grasp.pb-c.h"

typedef struct td_grasp_job_row {
    db_grasp_job row;
    Tribo__V1__GraspJobInfo message; /* borrows the row */
    char id[33];
} td_grasp_job_row;

/* Fills the message from the row. */
void td_grasp_job_describe(td_grasp_job_row *);
/* Stops a job that runs in this process (grasp_jobs.c). */
void td_grasp_jobs_cancel(td_server *, const db_id *);

#endif
