/* Programs on a card whose numbers kernels write there. */
#ifndef TB_GPU_PREPARED_H
#define TB_GPU_PREPARED_H

#include "gpu/device/device.h"
#include "gpu/qp/program.h"
#include "qp/facet_coordinates.h"

/* A program of bounds, in double. Kernels write its f, b, active, value, first and of (of `numbers`, on the card) before a
 * launch and read x and active after it. Opens as tb_gpu_program_open and is closed as such. */
tb_status tb_gpu_program_prepare(const tb_qp_card_program *program, const tb_qp_options *options,
                                 void **context, const tb_gpu_program **numbers, tb_error *error);
/* A launch on the device's stream; waits for it. Statuses of tb_qp_solver_solve. */
tb_status tb_gpu_program_run(void *context, tb_gpu_device *device, tb_qp_result *result,
                             tb_error *error);

#endif
