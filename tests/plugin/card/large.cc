// Large-world mode of the card that the processor plays: the host's side is the backend's own, the
// stages are those of a card with one lane. Compiled as double and, with TB_SINGLE, as float.
#include "gpu/large/large_mesh_unit.h"

#include "gpu/large/large_calls.h"
#include "played.h"

#include "../../unit/gpu/large_stages_played.h"

#include "large.h"

#ifndef TB_SINGLE
int64_t played_large_imports;
#endif

namespace
{

cudaError_t measure(const void *large, tb_gpu_large_launches what, size_t *bytes)
{
    (void)large, (void)what;
    *bytes = 0;
    return played_state();
}

enum { COLOURS = TB_GPU_LARGE_SWEEPS + 1 };

// A request to a stream: done now, or with every launch of the graph that captures it.
struct job {
    tb_large_world large;
    int32_t what; // tb_gpu_large_launches or COLOURS
    int32_t sweeps, colours;
};

void play_colours(const job *j)
{
    for (int32_t n = 0; n < j->sweeps; n++)
        for (int32_t colour = 0; colour < j->colours; colour++)
            tb_large_stage_one_colour(&j->large, colour);
}

cudaError_t play(const void *argument)
{
    const job *j = (const job *)argument;
    const tb_large_world *f = &j->large;
    if (played_state() != cudaSuccess) return played_state();
    switch (j->what) {
    case TB_GPU_LARGE_STEP: play_step(f); break;
    case TB_GPU_LARGE_TAKE_RECORDS:
        if (!tb_large_idles(f)) played_large_imports++;
        play_take_records(f);
        break;
    case TB_GPU_LARGE_WRITE_RECORDS: play_write_records(f); break;
    case TB_GPU_LARGE_SWEEPS: tb_large_stage_sweep(f); break;
    default: play_colours(j); break;
    }
    return played_state();
}

cudaError_t ask(const void *large, int32_t what, int32_t sweeps, int32_t colours,
                cudaStream_t stream)
{
    const job j = {*(const tb_large_world *)large, what, sweeps, colours};
    return played_kept(stream, play, &j, sizeof j) ? cudaSuccess : play(&j);
}

cudaError_t start_work(const void *large, tb_gpu_large_launches what, void *scratch, size_t bytes,
                       cudaStream_t stream, cudaEvent_t *marks)
{
    (void)scratch, (void)bytes, (void)marks;
    return ask(large, what, 0, 0, stream);
}

cudaError_t start_colours(const void *large, int32_t sweeps, int32_t colours, int32_t units,
                          cudaStream_t stream)
{
    (void)units;
    return ask(large, COLOURS, sweeps, colours, stream);
}

} // namespace

extern "C" {
#define tb_gpu_large_kernels_here TB_SYMBOL(tb_gpu_large_kernels)
extern const tb_gpu_large_calls tb_gpu_large_kernels_here;
const tb_gpu_large_calls tb_gpu_large_kernels_here = {TB_GPU_LARGE_CALLS};
}
