/* The lanes that step one world together.
 *
 * On a card several lanes can take one world: a team. All of them run the same functions with the
 * same arguments, so what a function computes into its own variables every lane has; what lies in
 * memory that they share (arrays of the arena, the state) is written by one lane only and read by
 * others after the next tb_team_sync. Three forms say who works:
 *
 *     TB_EACH(i, n) { ... }         the indices of a loop dealt out among the lanes; an index must
 *                                   read nothing that another index of the loop writes
 *     if (TB_LEADER) { ... }        one lane for all: what must be done in order
 *     otherwise                     every lane, in its own variables (taking arrays from the arena
 *                                   too: each lane keeps the same account)
 *
 * and tb_team_sync() stands between a write and a read by others, reached by all lanes alike.
 * tb_team_share hands the leader's bytes to the others' variables. Sums over a loop that was dealt
 * out are taken in the order of its indices, so bytes do not depend on how many lanes there are.
 *
 * A processor's thread is a team of one: the loops are plain loops there, and syncs are nothing. */
#ifndef TB_TEAM_H
#define TB_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/device.h"

#if defined(TB_DEVICE) && defined(__CUDACC__)

/* Blocks are one warp: x counts the lanes of a world (a power of two), y the worlds. */
static __device__ inline int32_t tb_team_lane(void)
{
    return (int32_t)threadIdx.x;
}

static __device__ inline int32_t tb_team_lanes(void)
{
    return (int32_t)blockDim.x;
}

static __device__ inline unsigned tb_team_mask(void)
{
    const unsigned lanes = blockDim.x;
    return lanes == 32 ? ~0u : ((1u << lanes) - 1) << (threadIdx.y * lanes);
}

static __device__ inline void tb_team_sync(void)
{
    __syncwarp(tb_team_mask());
}

/* The leader's `bytes` (a multiple of four, aligned so) to every lane's own `data`. */
static __device__ inline void tb_team_share(void *data, size_t bytes)
{
    unsigned *words = (unsigned *)data;
    const unsigned mask = tb_team_mask();
    for (size_t k = 0; k < bytes / 4; k++)
        words[k] = __shfl_sync(mask, words[k], 0, (int)blockDim.x);
}

#elif defined(TB_TEAM_PLAYED) /* threads of a test play the lanes of a card */

int32_t tb_team_lane(void);
int32_t tb_team_lanes(void);
void tb_team_sync(void);
void tb_team_share(void *data, size_t bytes);

#else

TB_FN int32_t tb_team_lane(void)
{
    return 0;
}

TB_FN int32_t tb_team_lanes(void)
{
    return 1;
}

TB_FN void tb_team_sync(void)
{
}

TB_FN void tb_team_share(void *data, size_t bytes)
{
    (void)data;
    (void)bytes;
}

#endif

#define TB_EACH(i, n) for (int32_t i = tb_team_lane(); i < (n); i += tb_team_lanes())
#define TB_LEADER     (tb_team_lane() == 0)

#endif
