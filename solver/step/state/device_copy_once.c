/* A state and its device copy (see tb_state in step.h).
 *
 * A device keeps a device copy of each state that it has stepped. Results of a step stay there
 * until a reader needs them, and numbers that the host writes go there with the next step. Both
 * happen by parts, so that new controls for a world do not fetch it first. This file has the host's
 * side, the same for every backend. */
#include "backend/backend.h"
#include "step/step.h"

void tb_state_arrays(const tb_state *state, size_t first[TB_ARRAYS + 1])
{
#define FIRST(NAME, member, length)                                                                \
    first[TB_STATE_NUMBER_##NAME] = (size_t)(state->member - state->numbers);
    TB_STATE_ARRAYS(FIRST)
#undef FIRST
    first[TB_ARRAYS] = state->number_of_numbers;
}

void tb_state_drop_device_copy(tb_state *state)
{
    if (state->device_copy) state->device_copy->backend->release(state->device_copy);
    state->device_copy = NULL;
    state->host_newer = state->device_newer = 0;
}

/* Readers see no change, so the state is logically const. */
tb_status tb_state_sync_to_host(const tb_state *state, uint32_t parts, tb_error *error)
{
    tb_state *s = (tb_state *)(uintptr_t)state;
    if (!(s->device_newer & parts)) return TB_OK;
    return s->device_copy->backend->fetch(&s, 1, parts, error);
}

tb_status tb_states_sync_to_host(tb_state *const *states, int32_t worlds, uint32_t parts,
                                 tb_error *error)
{
    /* stretches that one backend has all of; as a rule that is one */
    for (int32_t i = 0, end; i < worlds; i = end) {
        const tb_device_copy *device_copy = states[i]->device_copy;
        end = i + 1;
        if (!device_copy) continue;
        bool newer = (states[i]->device_newer & parts) != 0;
        for (; end < worlds && states[end]->device_copy &&
               states[end]->device_copy->backend == device_copy->backend;
             end++)
            newer |= (states[end]->device_newer & parts) != 0;
        const tb_status status =
            newer ? device_copy->backend->fetch(states + i, end - i, parts, error) : TB_OK;
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

tb_status tb_states_fetch(tb_state *const *states, int32_t worlds, bool contacts, tb_error *error)
{
    if (worlds < 0 || (worlds > 0 && !states))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "worlds", "%d worlds", worlds);
    return tb_states_sync_to_host(states, worlds, contacts ? TB_STATE_ALL : TB_PARTS_NUMBERS,
                                  error);
}
