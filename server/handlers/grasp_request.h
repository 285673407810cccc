/* Converts an EvaluateGrasps request to the library's types. */
#ifndef SERVER_GRASP_REQUEST_H
#define SERVER_GRASP_REQUEST_H

#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"
#include "tribo/v1/grasp.pb-c.h"

/* The library's request with the data that it points at. Names and controls are the message's. */
typedef struct td_grasp_request {
    tb_grasp_request request;
    tb_scene *hand, *object;
    tb_grasp_pose *poses;
    tb_grasp_shake *shakes;
} td_grasp_request;

/* Checks numbers and sizes first, then loads the files (within the budget that is bound: on the pool for uploads).
 * INVALID_ARGUMENT names the field as the wire calls it; NOT_FOUND an asset. */
tb_status td_grasp_request_read(td_server *, const Tribo__V1__EvaluateGraspsRequest *,
                                td_grasp_request *, tb_error *);
void td_grasp_request_free(td_grasp_request *);
/* A result is one message; all of its trials must fit in the message limit. */
tb_status td_grasp_check_copies(const td_config *, const Tribo__V1__EvaluateGraspsRequest *,
                                tb_error *);
/* Memory that a job of the request books, bytes. */
uint64_t td_grasp_memory(const Tribo__V1__EvaluateGraspsRequest *);
/* Parses the files, within the budget that is bound, and makes the job on a device (grasp_evaluate.c). */
tb_status td_grasp_job_make(td_server *, const Tribo__V1__EvaluateGraspsRequest *, tb_grasp_job **,
                            td_device **, uint64_t *pace, tb_error *);
/* Pace key of such requests (pace.h): all members but the poses and their copies. */
uint64_t td_grasp_request_pace(const Tribo__V1__EvaluateGraspsRequest *, const tb_step_options *);
/* The library's name of a field as the wire calls it, in place. */
void td_grasp_rename_field(tb_error *);

#endif
