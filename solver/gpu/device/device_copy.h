/* Device copies of the host's states: worlds that stay on a card between calls.
 *
 * A device copy holds a state's numbers and two buffers for contacts in the card's pool. Steps
 * write them, and readers fetch the arrays that they ask for. Forks share a device copy; stepping
 * one of them clones it on the card first. A full pool swaps the least recently stepped worlds out
 * to host memory, which costs time and changes no result.
 *
 * The thread that launches steps owns the card. Other threads read, fork and destroy states
 * meanwhile, so device copies have a lock, which is never held while a kernel of steps runs, and a
 * stream of their own, so that no reader waits for a kernel. The state of a device copy in a launch
 * belongs to that launch alone. */
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
    int32_t references;      /* states */
    int64_t piece;           /* last launch that used it; the present launch keeps it on the card */
    tb_gpu_allocation place; /* no memory: swapped out, or the host has all */
    unsigned char *swapped;  /* its numbers, then its contacts; NULL: not swapped out */
    bool dirty;              /* the host's arrays of some state may be older */
    int32_t current;         /* contact buffer that holds the contacts, 0 or 1 */
    int32_t contacts, capacity;
    size_t number_of_numbers;
    struct tb_gpu_device_copy *newer, *older; /* neighbours in the pool's list, by last launch */
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

/* Allocations and clones that a state needs before a launch: filled by settle, carried out by
 * commit. */
typedef struct tb_gpu_move {
    tb_state *state;
    int32_t capacity;         /* contacts that each room must take at least */
    tb_gpu_allocation fresh;  /* where its device copy moves; no memory: it stays */
    tb_gpu_device_copy *made; /* for a state that has none, or shares one */
} tb_gpu_move;

tb_status tb_gpu_device_copies_open(tb_gpu_device_copies *device_copies, int32_t device,
                                    uint64_t limit, tb_error *error);
void tb_gpu_device_copies_close(tb_gpu_device_copies *device_copies);

/* Makes sure that the states' device copies are on the card, unshared and large enough: as many
 * of `moves`, from the first on, as fit, at least one. Begins a launch, which keeps them there.
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
