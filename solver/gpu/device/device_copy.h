/* Worlds that stay on a card between calls: the device copies of the host's states.
 *
 * A device copy is a state's numbers and two rooms for contacts in the card's pool. Steps write them there,
 * and readers fetch what they ask for. Forks share a device copy until one of them is stepped, which gets
 * a copy made on the card. Where the pool has no room, the worlds that nobody has stepped for the
 * longest time are swapped out to the host's memory; nobody notices but by the time it takes.
 *
 * Who launches steps has the card for itself, but states are read, forked and destroyed by any
 * thread meanwhile. So device copies have a lock, which is never held while a kernel of steps runs, and a
 * stream of their own, so that no reader waits for one. A device copy that a launch works on belongs to a
 * state whose turn it is, and nobody else touches that state. */
#ifndef TB_GPU_DEVICE_COPY_H
#define TB_GPU_DEVICE_COPY_H

#include <pthread.h>

#include "backend/backend.h"
#include "gpu/device/gpu_internal.h"
#include "gpu/device/pool.h"

typedef struct tb_gpu_device_copies tb_gpu_device_copies;

typedef struct tb_gpu_device_copy {
    tb_device_copy head; /* first */
    tb_gpu_device_copies *device_copies;
    int32_t references; /* states */
    int64_t piece;      /* launch that used it last: that of the one under way keeps it there */
    tb_gpu_allocation place; /* no memory: it is swapped out, or the host has everything */
    unsigned char *swapped;  /* its numbers, then its contacts; NULL: not swapped out */
    bool dirty;              /* some state's host may lack something */
    int32_t current;         /* room that the contacts are in, 0 or 1 */
    int32_t contacts, capacity;
    size_t number_of_numbers;
    struct tb_gpu_device_copy *newer, *older; /* of those in the pool, by their last launch */
} tb_gpu_device_copy;

struct tb_gpu_device_copies {
    pthread_mutex_t lock;
    tb_gpu_device device; /* the card, with the readers' stream */
    tb_gpu_pool pool;
    tb_gpu_device_copy *newest, *oldest;
    int64_t piece;               /* number of the launch under way */
    int32_t threads;             /* that pack and unpack */
    tb_gpu_buffer list, staging; /* pinned: copies to make, bytes on their way */
    int32_t contexts;            /* that step here */
    int64_t count;               /* device copies */
    void (*empty)(
        int32_t device); /* neither contexts nor device copies are left; called without the lock */
    const struct tb_backend *backend;
    tb_device_use use;
};

/* What a state needs before a launch: filled by settle, carried out by commit. */
typedef struct tb_gpu_move {
    tb_state *state;
    int32_t capacity;         /* contacts that each room must take at least */
    tb_gpu_allocation fresh;  /* where its device copy moves; no memory: it stays */
    tb_gpu_device_copy *made; /* for a state that has none, or shares one */
} tb_gpu_move;

tb_status tb_gpu_device_copies_open(tb_gpu_device_copies *device_copies, int32_t device,
                                    uint64_t limit, tb_error *error);
void tb_gpu_device_copies_close(tb_gpu_device_copies *device_copies);

/* Sees to it that the states' device copies are on the card, their own and large enough: as many of `moves`,
 * from the first on, as there is room for, at least one. Begins a launch, which keeps them there.
 * On failure nothing has changed. Takes the lock. */
tb_status tb_gpu_device_copies_settle(tb_gpu_device_copies *device_copies, tb_gpu_move *moves,
                                      int32_t count, int32_t *settled, tb_error *error);

/* Addresses on the card. */
double *tb_gpu_device_copy_numbers(const tb_gpu_device_copy *device_copy);
tb_contact_record *tb_gpu_device_copy_contacts(const tb_gpu_device_copy *device_copy,
                                               int32_t current);
static inline tb_gpu_device_copy *tb_gpu_device_copy_of(const tb_state *state)
{
    return (tb_gpu_device_copy *)(void *)state->device_copy;
}

/* See tb_backend. They take the lock. */
tb_status tb_gpu_device_copies_fetch(tb_state *const *states, int32_t worlds, uint32_t parts,
                                     tb_error *error);
void tb_gpu_device_copy_share(tb_device_copy *device_copy);
void tb_gpu_device_copy_release(tb_device_copy *device_copy);

/* Room in a pinned list of copies, and its start on a stream. */
tb_status tb_gpu_reserve_copies(tb_gpu_device *device, tb_gpu_buffer *list, int64_t count,
                                tb_error *error);

#endif
