// Field mode of the card that the processor plays: the host's side is the backend's own, the stages
// are those of a card with one lane. Compiled as double and, with TB_SINGLE, as float.
#include "gpu/large/field_unit.h"

#include "gpu/large/field_calls.h"
#include "played.h"

#include "../../unit/gpu/field_stages_played.h"

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

enum { COLOURS = TB_GPU_FIELD_SWEEPS + 1 };

// What is asked of a stream: done now, or with every launch of the graph that captures it.
struct job {
    tb_field field;
    int32_t what; // tb_gpu_field_work or COLOURS
    int32_t sweeps, colours;
};

void play_colours(const job *j)
{
    for (int32_t n = 0; n < j->sweeps; n++)
        for (int32_t colour = 0; colour < j->colours; colour++)
            tb_field_stage_one_colour(&j->field, colour);
}

cudaError_t play(const void *argument)
{
    const job *j = (const job *)argument;
    const tb_field *f = &j->field;
    if (played_state() != cudaSuccess) return played_state();
    switch (j->what) {
    case TB_GPU_FIELD_STEP: play_step(f); break;
    case TB_GPU_FIELD_TAKE_RECORDS:
        if (!tb_field_idles(f)) played_field_imports++;
        play_take_records(f);
        break;
    case TB_GPU_FIELD_WRITE_RECORDS: play_write_records(f); break;
    case TB_GPU_FIELD_SWEEPS: tb_field_stage_sweep(f); break;
    default: play_colours(j); break;
    }
    return played_state();
}

cudaError_t ask(const void *field, int32_t what, int32_t sweeps, int32_t colours,
                cudaStream_t stream)
{
    const job j = {*(const tb_field *)field, what, sweeps, colours};
    return played_kept(stream, play, &j, sizeof j) ? cudaSuccess : play(&j);
}

cudaError_t start_work(const void *field, tb_gpu_field_work what, void *scratch, size_t bytes,
                       cudaStream_t stream, cudaEvent_t *marks)
{
    (void)scratch, (void)bytes, (void)marks;
    return ask(field, what, 0, 0, stream);
}

cudaError_t start_colours(const void *field, int32_t sweeps, int32_t colours, int32_t units,
                          cudaStream_t stream)
{
    (void)units;
    return ask(field, COLOURS, sweeps, colours, stream);
}

} // namespace

extern "C" {
#define tb_gpu_field_kernels_here TB_SYMBOL(tb_gpu_field_kernels)
extern const tb_gpu_field_calls tb_gpu_field_kernels_here;
const tb_gpu_field_calls tb_gpu_field_kernels_here = {TB_GPU_FIELD_CALLS};
}
