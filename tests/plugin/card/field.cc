// Field mode of the card that the processor plays: the host's side is the backend's own, the stages
// are those of a card with one lane. Compiled as double and, with TB_SINGLE, as float.
#include "gpu/field_unit.h"

#include "gpu/field_calls.h"
#include "played.h"

#include "../../unit/field_stages_played.h"

#include "field.h"

#ifndef TB_SINGLE
int64_t played_field_imports;
#endif

namespace
{

cudaError_t measure(const void *field, tb_gpu_field_work what, size_t *bytes)
{
    (void)field, (void)what;
    *bytes = 0;
    return played_state();
}

cudaError_t start_work(const void *field, tb_gpu_field_work what, void *scratch, size_t bytes,
                       cudaStream_t stream, cudaEvent_t *marks)
{
    const tb_field *f = (const tb_field *)field;
    (void)scratch, (void)bytes, (void)stream, (void)marks;
    if (played_state() != cudaSuccess) return played_state();
    switch (what) {
    case TB_GPU_FIELD_STEP: play_step(f); break;
    case TB_GPU_FIELD_TAKE_RECORDS:
        if (f->control->halted != TB_FIELD_IDLE) played_field_imports++;
        play_take_records(f);
        break;
    case TB_GPU_FIELD_SWEEPS: tb_field_stage_sweep(f); break;
    default: play_write_records(f); break;
    }
    return played_state();
}

/* only measurements ask for it */
cudaError_t start_colours(const void *field, int32_t sweeps, int32_t colours, int32_t units,
                          cudaStream_t stream)
{
    (void)field, (void)sweeps, (void)colours, (void)units, (void)stream;
    return cudaErrorInvalidValue;
}

} // namespace

extern "C" {
#define tb_gpu_field_kernels_here TB_SYMBOL(tb_gpu_field_kernels)
extern const tb_gpu_field_calls tb_gpu_field_kernels_here;
const tb_gpu_field_calls tb_gpu_field_kernels_here = {TB_GPU_FIELD_CALLS};
}
