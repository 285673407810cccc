/* Memory, launches and the transfer of the control block: shared by steps, warm-up and measurements
 * of a large world. */
#ifndef TB_GPU_LARGE_LAUNCH_H
#define TB_GPU_LARGE_LAUNCH_H

#include "gpu/large/large_run.h"

void tb_gpu_large_forget_graph(tb_gpu_large_world *large);
/* Allocates one memory, lays out its arrays and clears those that may be read before they are
 * written. */
tb_status tb_gpu_large_allocate(tb_gpu_large_world *large, tb_gpu_device *device,
                                tb_gpu_large_memory part, tb_error *error);
/* Between the host and the card; counted. */
tb_status tb_gpu_large_copy(tb_gpu_large_world *large, tb_gpu_device *device, void *to,
                            const void *from, size_t bytes, tb_error *error);
/* Reserves scratch memory of the card for the sorts and prefix sums of these launches. */
tb_status tb_gpu_large_reserve_scratch(tb_gpu_large_world *large, tb_gpu_device *device,
                                       tb_gpu_large_launches work, tb_error *error);
tb_status tb_gpu_large_start(tb_gpu_large_world *large, tb_gpu_device *device,
                             tb_gpu_large_launches work, cudaEvent_t *marks, tb_error *error);
tb_status tb_gpu_large_send_control(tb_gpu_large_world *large, tb_gpu_device *device,
                                    tb_error *error);
/* Fetches the progress into the report; waits for the card. */
tb_status tb_gpu_large_fetch_control(tb_gpu_large_world *large, tb_gpu_device *device,
                                     tb_error *error);

#endif
