/* Grasp jobs that outlive their client and the process. */
#ifndef SERVER_GRASP_JOBS_H
#define SERVER_GRASP_JOBS_H

#include "ops/daemon.h"

tb_status td_grasp_jobs_create(td_server *, td_grasp_jobs **, tb_error *);
/* Goes on with the jobs that the last process left, on workers. Call it when the devices are ready. */
void td_grasp_jobs_resume(td_server *);
/* After the schedulers have ended. */
void td_grasp_jobs_destroy(td_grasp_jobs *);

#endif
