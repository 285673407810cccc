/* The step as a card runs it, compiled as C++ for this machine: see device_world.cc. */
#ifndef DEVICE_WORLD_H
#define DEVICE_WORLD_H

#include "step/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step of a state. */
typedef struct device_job {
    tb_state *state;
    const tb_step_options *options;
    const tb_course *course; /* of which it makes one step; NULL: none */
    int32_t step;            /* of that */
    int32_t solver;
    void *memory;
    size_t bytes;  /* of it */
    void *search;  /* as much, of a search beside the begin of the step; NULL: none */
    bool late;     /* it comes after the begin */
    bool found;    /* the step's contacts are those of that search */
    size_t wanted; /* bytes that it requested at once */
} device_job;

/* tb_world_step of the job, part by part. */
#define device_world_step TB_SYMBOL(device_world_step)
tb_status device_world_step(device_job *job, tb_certificate *certificate);

/* The same by a team of `lanes` lanes, played by threads: see team_world.cc. One at a time. */
#define team_world_step TB_SYMBOL(team_world_step)
tb_status team_world_step(device_job *job, int32_t lanes, tb_certificate *certificate);

/* How the solve of a wide world went. */
typedef struct wide_told {
    bool left;      /* to the general solvers */
    bool recovers;  /* positions have recovered, too */
    bool lacking;   /* it has impulses, and is left all the same */
    int32_t pauses; /* how often it paused */
} wide_told;

/* The same by a warp, whose solve is that of wide worlds (gpu/batch/step_wide.cu) where it takes the step, and
 * pauses after `slice` steps and sweeps; 0: it does not pause. */
#define wide_world_step TB_SYMBOL(wide_world_step)
tb_status wide_world_step(device_job *job, int32_t slice, wide_told *told,
                          tb_certificate *certificate);

/* The same by the kernel of small worlds, a warp a world: see warp_world.cc. UNSUPPORTED: it leaves the
 * step to the general kernel. */
#define warp_world_step TB_SYMBOL(warp_world_step)
tb_status warp_world_step(device_job *job, tb_certificate *certificate);

/* The same by the kernel of piles. */
#define pile_world_step TB_SYMBOL(pile_world_step)
tb_status pile_world_step(device_job *job, tb_certificate *certificate);

#ifdef __cplusplus
}
#endif

#endif
