// The physics as a card compiles it, for the processor: the same unit of sources, in C++, with a
// card's memory and errors. Compiled twice, as double and with TB_SINGLE as float.
#include "gpu/physics.h"

#include "device_world.h"

tb_status device_world_step(tb_state *state, const tb_step_options *options, int32_t solver,
                            void *memory, size_t bytes, size_t *wanted, tb_certificate *certificate)
{
    tb_workspace workspace;
    tb_arena_over(&workspace.arena, memory, bytes);
    workspace.threads = 1;
    workspace.solver = solver;
    const tb_status status = tb_world_step(state, options, &workspace, certificate, NULL);
    *wanted = workspace.arena.peak;
    return status;
}
