/* Memory of a step on a device: an arena over one fixed block, and contact records in the memory
 * that their state has.
 *
 * Nothing can be allocated in the middle of a step there. So a request that does not fit is counted
 * as if it did and refused; the step ends with RESOURCE_EXHAUSTED and leaves its state as it was
 * (tb_world_step); and the host reads the request, enlarges the memory and repeats the step. */
#ifndef TB_GPU_DEVICE_MEMORY_H
#define TB_GPU_DEVICE_MEMORY_H

#include <string.h>

#include "base/team.h"
#include "step/step.h"

/* ---- the arena ----
 *
 * A team has one account of its world's one block, which its leader keeps: all lanes take the same
 * pieces in the same order, and others than it read there only between syncs. A lane that works
 * alone for a while, its leader for all, says so in the account (or in a copy of it:
 * tb_arena_alone), or it would wait for lanes that are elsewhere. */

/* An arena over `bytes` at `memory`, which is aligned to TB_ARENA_ALIGNMENT. `peak` is the
 * largest request: larger than `capacity` after a refusal. */
TB_FN void tb_arena_over(tb_arena *arena, void *memory, size_t bytes)
{
    arena->current = (tb_arena_block *)memory;
    arena->used = arena->peak = 0;
    arena->capacity = bytes;
    arena->lanes = TB_ARENA_OF_TEAM;
    arena->limit = bytes;
}

/* The rest of the arena for one lane; its pieces are free again when the team continues. */
TB_FN tb_arena tb_arena_alone(const tb_arena *arena)
{
    tb_arena alone = *arena;
    alone.lanes = TB_ARENA_OF_ONE_LANE;
    return alone;
}

/* Takes `bytes` and returns the bytes taken before: the leader updates the account and shares
 * the number. The other lanes read nothing that changes, so that one sync is enough. */
TB_STATIC size_t arena_account(tb_arena *arena, size_t bytes)
{
    const bool together = arena->lanes == TB_ARENA_OF_TEAM;
    size_t taken = 0;
    if (!together || TB_LEADER) {
        taken = arena->used;
        const size_t used = taken + bytes;
        arena->used = used;
        if (used > arena->peak) arena->peak = used;
    }
    if (together) {
        tb_team_sync();
        tb_team_share(&taken, sizeof taken);
    }
    return taken;
}

/* Sets the account to `used` after all lanes have read it; all read it again when it is set. */
TB_STATIC void arena_account_again(tb_arena *arena, size_t used)
{
    const bool together = arena->lanes == TB_ARENA_OF_TEAM;
    if (together) tb_team_sync();
    if (!together || TB_LEADER) arena->used = used;
    if (together) tb_team_sync();
}

TB_STATIC inline void *arena_take(tb_arena *arena, size_t bytes)
{
    const size_t unit = TB_ARENA_ALIGNMENT, capacity = arena->capacity;
    unsigned char *memory = (unsigned char *)arena->current;
    if (bytes > SIZE_MAX / 4) return NULL;
    const size_t size = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
    const size_t taken = arena_account(arena, size);
    return taken <= capacity && size <= capacity - taken ? memory + taken : NULL;
}

TB_EXTERN void *tb_arena_take(tb_arena *arena, size_t bytes)
{
    return arena_take(arena, bytes);
}

TB_EXTERN void *tb_arena_take_array(tb_arena *arena, size_t count, size_t size)
{
    /* a division is long there, and hardly ever needed */
    if ((count | size) >> 32 != 0 && size != 0 && count > SIZE_MAX / size) return NULL;
    return arena_take(arena, count * size);
}

TB_EXTERN void *tb_arena_take_zeroed(tb_arena *arena, size_t count, size_t size)
{
    void *memory = tb_arena_take_array(arena, count, size);
    if (!memory) return NULL;
    if (arena->lanes == TB_ARENA_OF_ONE_LANE) {
        memset(memory, 0, count * size);
        return memory;
    }
    tb_team_clear(memory, count * size);
    tb_team_sync();
    return memory;
}
#ifdef TB_DEVICE /* arena.h has those of a processor */
TB_STATIC inline tb_arena_pieces tb_arena_begin(tb_arena *arena)
{
    return TB_VALUE(tb_arena_pieces){arena, arena->used, arena->peak};
}

TB_STATIC inline void *tb_arena_piece(tb_arena_pieces *pieces, size_t count, size_t size)
{
    const size_t unit = TB_ARENA_ALIGNMENT, bytes = count * size, taken = pieces->used;
    pieces->used += bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
    if (pieces->used > pieces->peak) pieces->peak = pieces->used;
    return pieces->used <= pieces->arena->capacity ? (unsigned char *)pieces->arena->current + taken
                                                   : NULL;
}

TB_STATIC inline void tb_arena_end(const tb_arena_pieces *pieces)
{
    tb_arena *arena = pieces->arena;
    const bool together = arena->lanes == TB_ARENA_OF_TEAM;
    if (together) tb_team_sync(); /* all have read the account */
    if (!together || TB_LEADER) {
        arena->used = pieces->used;
        arena->peak = pieces->peak;
    }
    if (together) tb_team_sync();
}
#endif
TB_EXTERN void tb_arena_reset(tb_arena *arena)
{
    arena_account_again(arena, 0);
}

/* Of a team it is the leader's that counts. */
TB_EXTERN tb_arena_mark tb_arena_get_mark(const tb_arena *arena)
{
    tb_arena_mark mark;
    mark.block = arena->current;
    mark.offset = mark.used = arena->lanes != TB_ARENA_OF_TEAM || TB_LEADER ? arena->used : 0;
    return mark;
}

/* Waits until all lanes are done with memory that others may overwrite. */
TB_EXTERN void tb_arena_return_to(tb_arena *arena, tb_arena_mark mark)
{
    arena_account_again(arena, mark.used);
}

/* ---- contact records ---- */

/* Both blocks of a state are its own here: forks are copies. For one lane of a team. */
TB_EXTERN tb_status tb_state_reserve_next(tb_state *state, int32_t count)
{
    if (count <= state->next_capacity) return TB_OK;
    if (count > state->next_wanted) state->next_wanted = count;
    return TB_RESOURCE_EXHAUSTED;
}

TB_EXTERN void tb_state_take_next(tb_state *state, int32_t count)
{
    tb_contact_record *old = state->contacts;
    const int32_t capacity = state->contact_capacity;
    state->contacts = state->next_contacts;
    state->contact_capacity = state->next_capacity;
    state->number_of_contacts = count;
    state->next_contacts = old;
    state->next_capacity = capacity;
}

#endif
