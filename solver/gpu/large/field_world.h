/* Which worlds of a call go to field mode, and one of them on its way through it: its twin is where
 * it stands (twin.h), so a large world that is stepped again and again does not travel. */
#ifndef TB_GPU_FIELD_WORLD_H
#define TB_GPU_FIELD_WORLD_H

#include "gpu/large/field_run.h"
#include "gpu/device/twin.h"

/* Whether the state's world is large, and one of those that field mode takes (tb_field_refuses). */
bool tb_gpu_field_takes(const tb_state *state, const tb_step_options *options);

/* Steps the world. DIVERGED is no failure here: it stands in the state and the certificate. */
tb_status tb_gpu_field_step(tb_gpu_device *device, tb_gpu_twins *twins, tb_gpu_field *field,
                            const tb_model *image, tb_state *state, const tb_step_options *options,
                            int32_t steps, tb_certificate *certificate, uint64_t *copied_bytes,
                            tb_error *error);

#endif
