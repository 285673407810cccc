/* A piece of a batch on its way to the card, through one launch, and back.
 *
 * The worlds' numbers and contacts lie on the card (device_copy.h). Every launch moves a header of each
 * world (tb_gpu_world), with the inputs of courses before the headers and their outputs behind, as one
 * pinned block there and back. Parts that the host has newer go there first, from the same block. */
#ifndef TB_GPU_BATCH_H
#define TB_GPU_BATCH_H

#include "gpu/batch/call.h"
#include "gpu/batch/choose.h"
#include "gpu/device/device.h"
#include "gpu/device/gpu_internal.h"
#include "gpu/device/model_cache.h"
#include "gpu/device/device_copy.h"

/* One world of a call. */
/* Kernels by which a world goes: its model and its contacts decide, never the other worlds of the batch. In the order
 * in which worlds of a call are launched. */
typedef enum tb_gpu_way {
    TB_GPU_ONE_GENERAL, /* a small world or a pile whose next step is left to the general ones */
    TB_GPU_BY_WARP,     /* that of small worlds (warp_fits.h) */
    TB_GPU_BY_PILE,     /* that of piles */
    TB_GPU_CROWDED,     /* one with too many contacts: the general ones until it has fewer */
    TB_GPU_GENERAL,
    TB_GPU_WORLD_WAYS
} tb_gpu_way;

typedef struct tb_gpu_task {
    tb_state *state; /* the host's */
    tb_gpu_model *model;
    const tb_course *course; /* the caller's; NULL: none */
    tb_certificate merged;
    int32_t steps_left;
    tb_status status; /* of the world */
    tb_gpu_way way;   /* of its next steps */
    tb_gpu_way usual; /* of its model */
    /* in the piece: indices of its first byte to upload and of its first copy */
    size_t bytes_at;
    int32_t copies_at;
    size_t inputs_at, outputs_at; /* first of its course's rows of steps that are left */
    int32_t contacts_needed;
    size_t arena_needed;
} tb_gpu_task;

/* Tables of models that the last launch of the kernel of small worlds or of piles left in the arenas
 * (small/warp_kernel.h). The next one makes them again only where the arenas, the options or the model of
 * a slot have changed. */
typedef struct tb_gpu_tables {
    int32_t slots;   /* whose models are known; 0: there are no tables */
    int32_t kernel;  /* tb_gpu_launch.alone */
    int64_t *models; /* by slot: number of the model (model_cache.h) */
    size_t arena_size;
    tb_step_options options;
} tb_gpu_tables;

typedef struct tb_gpu_batch {
    tb_gpu_device device; /* with the launches' stream */
    tb_gpu_device_copies *device_copies;
    tb_gpu_models models;
    tb_gpu_side_streams side_streams; /* of large calls */
    tb_gpu_task *tasks;
    tb_gpu_move *moves;
    int32_t capacity;   /* tasks, moves, models of tables */
    int32_t *pending;   /* capacity: tasks with steps left */
    int32_t threads;    /* that pack and unpack */
    int32_t processors; /* of the card */
    uint64_t memory;    /* of the card, bytes */
    tb_backend_schedule schedule;
    tb_gpu_buffer staging, list; /* pinned */
    tb_gpu_buffer stop;          /* pinned: tb_gpu_launch.stop of a caller that may cancel */
    tb_gpu_buffer block, arenas; /* on the card */
    tb_gpu_tables tables;        /* in the arenas */
    int64_t regrowths, launches, uploads;
    uint64_t copied_bytes;
    double copy_seconds, compute_seconds;
} tb_gpu_batch;

/* The way of a task's next step, which the world's model and its contacts decide. */
tb_gpu_way tb_gpu_next_way(const tb_gpu_task *task);

/* Takes these tasks as far as their steps and capacities allow in one launch: as many of `count`,
 * from the first on, as the card has room for and go the way of the first, at least one; `*taken`
 * says how many. A failure is the card's or the host's memory, before any work has begun: then no
 * state has changed; or the loss of the card, and with it of all worlds there. A
 * world's own result is in its task. */
tb_status tb_gpu_batch_run(tb_gpu_batch *batch, const tb_step_options *options,
                           const int32_t *pending, int32_t count, int32_t *taken, tb_error *error);

#endif
