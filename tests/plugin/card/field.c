/* The card that the processor plays has no field mode: tests/unit/field_played.cc plays that. */
#include "gpu/field_world.h"

bool tb_gpu_field_takes(const tb_state *state, const tb_step_options *options)
{
    (void)state;
    (void)options;
    return false;
}

tb_status tb_gpu_field_step(tb_gpu_device *device, tb_gpu_twins *twins, tb_gpu_field *field,
                            const tb_model *image, tb_state *state, const tb_step_options *options,
                            int32_t steps, tb_certificate *certificate, uint64_t *copied_bytes,
                            tb_error *error)
{
    (void)device, (void)twins, (void)field, (void)image, (void)state, (void)options, (void)steps;
    (void)certificate, (void)copied_bytes;
    return tb_fail(error, TB_INTERNAL, "there is no field mode here");
}

void tb_gpu_field_destroy(tb_gpu_field *field, tb_gpu_device *device)
{
    (void)field, (void)device;
}
