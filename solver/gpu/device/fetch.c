/* Bringing worlds from a card to the host: see device_copy.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/parallel.h"
#include "gpu/device/device_copy.h"

/* Bytes that are on their way at once, and worlds that are worth waking threads for. */
static const size_t PIECE_BYTES = (size_t)64 << 20;
enum { PARALLEL_WORLDS = 512 };

/* One world in the staging: its numbers, if they are wanted, then its contacts. */
typedef struct wanted {
    tb_state *state;
    const unsigned char *from; /* pinned, or swapped out */
    bool numbers, contacts;
} wanted;

typedef struct piece {
    wanted *worlds;
    int32_t count;
} piece;

static size_t bytes_of(const wanted *w, const tb_gpu_device_copy *device_copy)
{
    return (w->numbers ? device_copy->number_of_numbers * sizeof(double) : 0) +
           (w->contacts ? (size_t)device_copy->contacts * sizeof(tb_contact_record) : 0);
}

static wanted want_of(tb_state *state, uint32_t parts)
{
    const uint32_t newer = state->device_newer;
    return (wanted){.state = state,
                    .numbers = (newer & parts & TB_PARTS_NUMBERS) != 0,
                    .contacts = (newer & parts & TB_STATE_CONTACTS) != 0};
}

/* Chooses the first states, up to a piece's bytes, and reserves memory for their contacts.
 * Returns how many were examined, and the bytes to copy. */
static tb_status choose(piece *p, tb_state *const *states, int32_t worlds, uint32_t parts,
                        int32_t *seen, size_t *bytes, tb_error *error)
{
    int32_t i = 0;
    p->count = 0;
    *bytes = 0;
    for (; i < worlds && *bytes < PIECE_BYTES; i++) {
        const wanted w = want_of(states[i], parts);
        const tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(states[i]);
        if (!w.numbers && !w.contacts) continue;
        if (w.contacts && tb_state_replace_contacts(states[i], device_copy->contacts) != TB_OK)
            return tb_fail_memory(error, 0, "a world's contacts");
        p->worlds[p->count++] = w;
        *bytes += device_copy->swapped == NULL ? bytes_of(&w, device_copy) : 0;
    }
    *seen = i;
    return TB_OK;
}

static void list_copies(piece *p, tb_gpu_copy *list, int32_t *count, unsigned char *staging)
{
    for (int32_t i = 0; i < p->count; i++) {
        wanted *w = &p->worlds[i];
        const tb_gpu_device_copy *t = tb_gpu_device_copy_of(w->state);
        const size_t numbers = t->number_of_numbers * sizeof(double);
        if (t->swapped != NULL) {
            w->from = t->swapped + (w->numbers ? 0 : numbers);
            continue;
        }
        w->from = staging;
        if (w->numbers) {
            list[(*count)++] =
                (tb_gpu_copy){tb_gpu_device_copy_numbers(t), staging, (int64_t)numbers};
            staging += numbers;
        }
        if (w->contacts && t->contacts > 0) {
            const size_t size = (size_t)t->contacts * sizeof(tb_contact_record);
            list[(*count)++] =
                (tb_gpu_copy){tb_gpu_device_copy_contacts(t, t->current), staging, (int64_t)size};
            staging += size;
        }
    }
}

/* Stores only parts that the device has newer: the host may have set others since. */
static void unpack(void *context, int32_t i, int32_t thread)
{
    (void)thread;
    const piece *p = context;
    const wanted *w = &p->worlds[i];
    tb_state *s = w->state;
    tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(s);
    const unsigned char *from = w->from;
    if (w->numbers) {
        size_t first[TB_ARRAYS + 1];
        tb_state_arrays(s, first);
        for (int a = 0; a < TB_ARRAYS; a++)
            if (s->device_newer & (1u << a))
                memcpy(s->numbers + first[a], (const double *)(const void *)from + first[a],
                       (first[a + 1] - first[a]) * sizeof(double));
        from += s->number_of_numbers * sizeof(double);
        s->device_newer &= ~(uint32_t)TB_PARTS_NUMBERS;
    }
    if (w->contacts) {
        if (device_copy->contacts > 0)
            memcpy(s->contacts, from, (size_t)device_copy->contacts * sizeof(tb_contact_record));
        s->number_of_contacts = device_copy->contacts;
        s->device_newer &= ~(uint32_t)TB_STATE_CONTACTS;
    }
    if (s->device_newer == 0 && device_copy->references == 1) device_copy->dirty = false;
}

static tb_status fetch_piece(tb_gpu_device_copies *device_copies, piece *p, size_t bytes,
                             tb_error *error)
{
    tb_gpu_device *d = &device_copies->device;
    int32_t count = 0;
    tb_status status = tb_gpu_device_enter(d, error);
    if (status == TB_OK) status = tb_gpu_reserve_pinned(d, &device_copies->staging, bytes, error);
    if (status == TB_OK)
        status = tb_gpu_reserve_copies(d, &device_copies->list, 2 * (int64_t)p->count, error);
    if (status != TB_OK) return status;
    list_copies(p, device_copies->list.memory, &count, device_copies->staging.memory);
    if (count > 0) {
        status = tb_gpu_mark(d, 0, error);
        if (status == TB_OK)
            status =
                tb_gpu_check(d, tb_gpu_start_copies(device_copies->list.memory, count, d->stream),
                             "fetching worlds", error);
        if (status == TB_OK) status = tb_gpu_mark(d, 1, error);
        if (status == TB_OK) status = tb_gpu_wait(d, "fetching worlds", error);
        if (status == TB_OK)
            status = tb_gpu_elapsed(d, 0, 1, &device_copies->use.copy_seconds, error);
        if (status != TB_OK) return status;
    }
    tb_parallel_for(p->count, 64, p->count < PARALLEL_WORLDS ? 1 : device_copies->threads, unpack,
                    p);
    device_copies->use.fetches++;
    device_copies->use.copied_bytes += bytes;
    return TB_OK;
}

/* States of one card. */
static tb_status fetch_all(tb_gpu_device_copies *device_copies, tb_state *const *states,
                           int32_t worlds, uint32_t parts, tb_error *error)
{
    wanted one;
    piece p = {.worlds = worlds == 1 ? &one : malloc((size_t)worlds * sizeof *p.worlds)};
    if (p.worlds == NULL)
        return tb_fail_memory(error, (size_t)worlds * sizeof *p.worlds, "worlds on their way");
    tb_status status = TB_OK;
    pthread_mutex_lock(&device_copies->lock);
    for (int32_t first = 0, seen = 0; first < worlds && status == TB_OK; first += seen) {
        size_t bytes = 0;
        status = choose(&p, states + first, worlds - first, parts, &seen, &bytes, error);
        if (status == TB_OK && p.count > 0) status = fetch_piece(device_copies, &p, bytes, error);
    }
    pthread_mutex_unlock(&device_copies->lock);
    if (p.worlds != &one) free(p.worlds);
    return status;
}

tb_status tb_gpu_device_copies_fetch(tb_state *const *states, int32_t worlds, uint32_t parts,
                                     tb_error *error)
{
    for (int32_t i = 0, end; i < worlds; i = end) {
        tb_gpu_device_copies *device_copies = tb_gpu_device_copy_of(states[i])->device_copies;
        for (end = i + 1;
             end < worlds && tb_gpu_device_copy_of(states[end])->device_copies == device_copies;)
            end++;
        const tb_status status = fetch_all(device_copies, states + i, end - i, parts, error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}
