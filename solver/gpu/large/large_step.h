/* Chooses the large worlds of a call and steps one: its device copy holds its state
 * (device_copy.h), so a large world that is stepped again and again is not copied. */
#ifndef TB_GPU_LARGE_STEP_H
#define TB_GPU_LARGE_STEP_H

#include "gpu/large/large_run.h"
#include "gpu/device/device_copy.h"

/* True if the state's world is large, with at least so many shapes that collide (0: the usual number), and
 * supported (tb_large_refuses). */
bool tb_gpu_large_takes(const tb_state *state, const tb_step_options *options, int32_t shapes);

/* Steps the world. DIVERGED is not a failure here: the state and the certificate report it. */
tb_status tb_gpu_large_step(tb_gpu_device *device, tb_gpu_device_copies *device_copies,
                            tb_gpu_large_world *large, const tb_model *image, tb_state *state,
                            const tb_step_options *options, int32_t steps,
                            tb_certificate *certificate, uint64_t *copied_bytes, tb_error *error);

#endif
