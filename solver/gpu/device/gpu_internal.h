/* Structures shared by the host's side and the kernels of the GPU backend, in both languages.
 *
 * A batch is one block on the card, a tb_gpu_world for each world, which points at the world's
 * device copy: its numbers and contacts. One launch takes every world through all its remaining
 * steps, or as many as choose.c allows, without the host in between. A world stopped by a capacity
 * stays at its last good step and stores the capacity that it needs. */
#ifndef TB_GPU_INTERNAL_H
#define TB_GPU_INTERNAL_H

#include <cuda_runtime_api.h>

#include "step/step.h"

/* One world of a batch. Pointers are the card's. */
typedef struct tb_gpu_world {
    tb_state state;
    tb_certificate merged;          /* of the steps taken so far in this call */
    tb_contact_record *contacts[2]; /* `contact_capacity` records each, for the steps to come */
    int32_t contact_capacity;
    int32_t steps_left;
    tb_course course; /* the remaining steps are the last of its steps; 0 steps: no course */
    /* OK; RESOURCE_EXHAUSTED: a capacity, see below; UNSUPPORTED, with steps left: the kernel of
     * small worlds leaves the next step to the general ones; else the failure that ended the world */
    tb_status status;
    int32_t contacts_needed; /* at least this many; 0: contacts were not the cause */
    size_t arena_needed;     /* likewise, bytes */
} tb_gpu_world;

/* The parts of a step, a kernel each. */
enum {
    TB_GPU_KERNEL_BEGIN,
    TB_GPU_KERNEL_DETECT,
    TB_GPU_KERNEL_SOLVE,
    TB_GPU_KERNEL_END,
    TB_GPU_KERNELS
};

/* Where the solves of a step overlap the next step of other worlds (steps.c): of a group's solves
 * in this call, how many blocks have begun and how many are done. STOPPED: tb_gpu_launch.stop, as the
 * first part of the last step or of this one has seen it. */
enum { TB_GPU_BEGUN, TB_GPU_DONE, TB_GPU_STOPPED, TB_GPU_COUNTS };

/* Worlds of a warp wait for each other, so like solves share warps: by which way they begin, how
 * many contacts they have and how many iterations the last one took, as far as these tell (see
 * step_kernel.h). How many there are of each kind is counted in a step's first part and cleared
 * when its solves begin, since while some of them go on the next step counts. */
enum { TB_GPU_WAYS = 2, TB_GPU_SIZES = 8, TB_GPU_LENGTHS = 8 };
enum { TB_GPU_KINDS = TB_GPU_WAYS * TB_GPU_SIZES * TB_GPU_LENGTHS };

/* Groups of worlds that take turns in a step, and the counters of each group: TB_GPU_COUNTS,
 * kinds. */
enum { TB_GPU_GROUPS = 2, TB_GPU_GROUP_COUNTS = (int)TB_GPU_COUNTS + (int)TB_GPU_KINDS };

/* In tb_gpu_launch.alone: the kernel of small worlds (warp_fits.h), or that of piles, and not the general
 * one. */
enum { TB_GPU_ALONE_BY_WARP = 2, TB_GPU_ALONE_BY_PILE };

/* One launch. Options are the caller's, without names and functions of the host. */
typedef struct tb_gpu_launch {
    tb_gpu_world *worlds;
    int32_t number_of_worlds;
    int32_t slots;                 /* worlds that are stepped at once; each has memory of its own */
    int32_t first;                 /* world of slot 0 */
    int32_t step;                  /* of this call */
    int32_t steps;                 /* the most that a world takes in this launch */
    int32_t lanes[TB_GPU_KERNELS]; /* of a world: powers of two, up to TB_GPU_BLOCK_THREADS; all
                                    alike where worlds go alone */
    int32_t solver;                /* tb_solver_number */
    int32_t alone;     /* one kernel takes each world through all its steps; see above */
    bool tables_stand; /* the arenas have the tables of small worlds (batch.h) */
    int32_t overlap;   /* blocks of solves that others do not wait for; 0: they wait */
    int32_t fast;      /* bytes of fast memory for a world's factor */
    int32_t groups;    /* of worlds, 1 without overlap */
    int32_t *counts;   /* TB_GPU_GROUPS x TB_GPU_GROUP_COUNTS, zero; or a time (launch_time.h) */
    int32_t *kinds;    /* TB_GPU_KINDS, zero; NULL: solves go by their slots */
    int32_t *order;    /* slots by kinds */
    unsigned char *arenas;
    size_t arena_size;
    /* contacts are looked for beside the begin (step_begin.cu), in memory as large as the arenas */
    bool searches_beside;
    unsigned char *searches;
    tb_step_options options;
    /* pinned memory of the host: once it is not 0, a world begins at most one more step, but each makes
     * the first step of the launch; NULL: the launch goes to its end. Small worlds and piles do not read it. */
    const volatile int32_t *stop;
    int32_t wide; /* solves go to the kernel of wide worlds first */
    /* a world that has no more contacts begins no step, since another kernel goes on with it; 0: each does */
    int32_t crowded;
} tb_gpu_launch;

/* Bytes to be copied, a multiple of 8 and aligned so: from and to the card's memory or pinned
 * memory of the host. */
typedef struct tb_gpu_copy {
    const void *from;
    void *to;
    int64_t bytes;
} tb_gpu_copy;

/* A block of steps is one warp, so that a few worlds still spread over all processors.
 * TB_GPU_BLOCKS_AT_ONCE of them fit a processor: with more registers a lane, too few warps would
 * hide each other's memory latency. */
enum { TB_GPU_BLOCK_THREADS = 32, TB_GPU_BLOCKS_AT_ONCE = 16, TB_GPU_COPY_THREADS = 128 };

/* Contacts of a world at most in the kernels of small worlds and of piles. */
enum { TB_GPU_WARP_CONTACTS = 32 };

/* Dofs of a world that the kernel of wide worlds takes (wide/wide_solve.h). */
enum { TB_GPU_WIDE_DOFS = 36 };

/* Shared memory that a launch gives a block at most: TB_GPU_BLOCKS_AT_ONCE of them, each with 1 KiB
 * that is not its own and 3 KiB that sweeps have, find room in 227 KiB. */
enum { TB_GPU_MOST_NEAR_BYTES = 10 << 10 };

#ifdef __cplusplus
extern "C" {
#endif
/* Functions that start kernels on the stream and do not wait: a part of one step of some worlds... */
#define TB_GPU_START_PARTS(X) X(begin) X(detect) X(solve) X(end)
#define TB_GPU_START_KERNEL(part)                                                                  \
    TB_BOTH_PRECISIONS(cudaError_t, tb_gpu_start_##part,                                           \
                       (const tb_gpu_launch *launch, cudaStream_t stream))
TB_GPU_START_PARTS(TB_GPU_START_KERNEL)
/* ... impulses by another kernel, for the solver `staggered`... */
TB_GPU_START_KERNEL(staggered)
/* ... all steps of all worlds of a launch by one kernel, for few... */
TB_GPU_START_KERNEL(alone)
/* ... the same of worlds that tb_gpu_warp_fits, which leaves hard steps to `alone`... */
TB_GPU_START_KERNEL(warp)
/* ... of worlds that tb_gpu_pile_fits, likewise... */
TB_GPU_START_KERNEL(pile)
/* ... the solves of worlds of up to 36 dofs, which leaves some to `solve`... */
TB_GPU_START_KERNEL(wide)
/* ... or all steps of all; `sides` are needed where solves overlap. */
struct tb_gpu_side_streams;
TB_BOTH_PRECISIONS(cudaError_t, tb_gpu_start_steps,
                   (const tb_gpu_launch *launch, const struct tb_gpu_side_streams *sides,
                    cudaStream_t stream))
/* Waits until this many blocks of solves have begun and all but the launch's overlap have ended,
 * and a little longer for these; 0 blocks: no wait. */
cudaError_t tb_gpu_start_solve_barrier(const tb_gpu_launch *launch, int32_t begun,
                                       cudaStream_t stream);
/* Any number of copies, side by side; the list is pinned memory. */
cudaError_t tb_gpu_start_copies(const tb_gpu_copy *copies, int32_t count, cudaStream_t stream);
/* Runs every kernel once over nothing, so that its code and stack are loaded. */
TB_BOTH_PRECISIONS(cudaError_t, tb_gpu_warm_steps, (cudaStream_t stream))
#ifdef __cplusplus
}
#endif

#endif
