/* A piece of a batch on its way to the card, through one launch, and back.
 *
 * Worlds are packed into one pinned block: a tb_gpu_world each, then all numbers, then all contacts
 * in use. The card has a block of the same form, so that one copy brings everything; on the way
 * back contacts are gathered first, since each world has written its own into room of its own. */
#ifndef TB_GPU_BATCH_H
#define TB_GPU_BATCH_H

#include "device.h"
#include "gpu_internal.h"
#include "model_cache.h"

/* One world of a call. */
typedef struct tb_gpu_task {
    tb_state *state; /* the host's */
    tb_gpu_model *model;
    tb_certificate merged;
    int32_t steps_left;
    tb_status status; /* of the world */
    /* in the piece: first of its numbers, its contacts on the way there, its room for contacts */
    int64_t numbers_at, contacts_at, room_at;
    int32_t contacts_needed;
    size_t arena_needed;
} tb_gpu_task;

typedef struct tb_gpu_batch {
    tb_gpu_device device;
    tb_gpu_models models;
    tb_gpu_task *tasks;
    int32_t capacity;    /* tasks */
    int32_t *pending;    /* capacity: tasks with steps left */
    int32_t threads;     /* that pack and unpack */
    int32_t processors;  /* of the card */
    int32_t stride;      /* lanes a world; 0: by the number of worlds */
    size_t memory_limit; /* bytes that one piece may take on the card */
    tb_gpu_buffer staging, staged_contacts, staged_offsets; /* pinned */
    tb_gpu_buffer block, room, gathered, offsets, arenas;   /* on the card */
    int64_t regrowths;
    uint64_t copied_bytes;
    double copy_seconds, compute_seconds;
} tb_gpu_batch;

/* How many of `count` pending tasks, from the first on, one piece takes. At least one. */
int32_t tb_gpu_batch_piece(const tb_gpu_batch *batch, const int32_t *pending, int32_t count);

/* Takes these tasks as far as their steps and capacities allow in one launch, and their states
 * along. A failure is the card's or the host's memory: then no state of the piece has changed. What
 * happened to a world stands in its task. */
tb_status tb_gpu_batch_run(tb_gpu_batch *batch, const tb_step_options *options,
                           const int32_t *pending, int32_t count, tb_error *error);

#endif
