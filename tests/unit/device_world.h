/* The step as a card runs it, compiled as C++ for this machine: see device_world.cc. */
#ifndef DEVICE_WORLD_H
#define DEVICE_WORLD_H

#include "step/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tb_world_step over `bytes` at `memory`. *wanted: what it asked of them at once. */
#define device_world_step TB_SYMBOL(device_world_step)
tb_status device_world_step(tb_state *state, const tb_step_options *options, int32_t solver,
                            void *memory, size_t bytes, size_t *wanted,
                            tb_certificate *certificate);

/* The same by a team of so many lanes, which threads play: see team_world.cc. One at a time. */
#define team_world_step TB_SYMBOL(team_world_step)
tb_status team_world_step(tb_state *state, const tb_step_options *options, int32_t solver,
                          int32_t lanes, void *memory, size_t bytes, size_t *wanted,
                          tb_certificate *certificate);

#ifdef __cplusplus
}
#endif

#endif
