/* The search of a step, by a team of its own beside the begin of the step (gpu/batch/step_begin.cu). After world.c in
 * a card's unit of sources, whose functions it uses. */
#ifdef TB_DEVICE

#include "step/stages/detect/near_list.h"

TB_EXTERN void tb_step_search(tb_stepping *stepping, const tb_state *state, const double *kinematic,
                              const tb_step_options *options, tb_workspace *workspace,
                              tb_found *found)
{
    tb_world *w = &stepping->world;
    tb_team_clear(w, sizeof *w);
    tb_team_sync();
    if (TB_LEADER) open_world(w, state, options, workspace);
    fetch_state(state);
    tb_team_sync();
    tb_arena_reset(w->arena);
    found->status = tb_world_pose(w, kinematic);
    if (found->status == TB_OK) tb_world_search(w, found);
}

#endif
