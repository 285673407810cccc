/* See device_copy.h. */
#include "gpu/device/device_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { EVICTED_AT_ONCE = 64 };
static const size_t ROOM_ALIGNMENT = 64;

/* ---- places ---- */

static size_t rooms_begin(size_t numbers)
{
    return (numbers * sizeof(double) + ROOM_ALIGNMENT - 1) / ROOM_ALIGNMENT * ROOM_ALIGNMENT;
}

static size_t place_bytes(size_t numbers, int32_t capacity)
{
    return rooms_begin(numbers) + 2 * (size_t)capacity * sizeof(tb_contact_record);
}

double *tb_gpu_device_copy_numbers(const tb_gpu_device_copy *device_copy)
{
    return device_copy->place.memory;
}

static tb_contact_record *room_in(void *memory, size_t numbers, int32_t capacity, int32_t current)
{
    unsigned char *rooms = (unsigned char *)memory + rooms_begin(numbers);
    return (tb_contact_record *)(void *)rooms + (int64_t)current * capacity;
}

tb_contact_record *tb_gpu_device_copy_contacts(const tb_gpu_device_copy *device_copy,
                                               int32_t current)
{
    return room_in(device_copy->place.memory, device_copy->number_of_numbers, device_copy->capacity,
                   current);
}

/* Of a device copy's content, as it is swapped out: numbers, then contacts. */
static size_t content_bytes(const tb_gpu_device_copy *device_copy)
{
    return device_copy->number_of_numbers * sizeof(double) +
           (size_t)device_copy->contacts * sizeof(tb_contact_record);
}

/* ---- the list by use ---- */

static void unlink_device_copy(tb_gpu_device_copies *device_copies, tb_gpu_device_copy *device_copy)
{
    *(device_copy->newer != NULL ? &device_copy->newer->older : &device_copies->newest) =
        device_copy->older;
    *(device_copy->older != NULL ? &device_copy->older->newer : &device_copies->oldest) =
        device_copy->newer;
    device_copy->newer = device_copy->older = NULL;
}

static void link_newest(tb_gpu_device_copies *device_copies, tb_gpu_device_copy *device_copy)
{
    device_copy->newer = NULL;
    device_copy->older = device_copies->newest;
    *(device_copy->older != NULL ? &device_copy->older->newer : &device_copies->oldest) =
        device_copy;
    device_copies->newest = device_copy;
}

/* ---- copies ---- */

/* Copies of one transfer that are collected so far, and the bytes of staging memory that they
 * take. */
typedef struct copying {
    tb_gpu_copy *list;
    int32_t count;
    unsigned char *staging;
    size_t used;
} copying;

tb_status tb_gpu_reserve_copies(tb_gpu_device *device, tb_gpu_buffer *list, int64_t count,
                                tb_error *error)
{
    return tb_gpu_reserve_pinned(device, list, (size_t)count * sizeof(tb_gpu_copy), error);
}

static tb_status begin_copies(tb_gpu_device_copies *device_copies, int64_t count, size_t bytes,
                              copying *c, tb_error *error)
{
    tb_status status = tb_gpu_device_enter(&device_copies->device, error);
    if (status == TB_OK)
        status = tb_gpu_reserve_copies(&device_copies->device, &device_copies->list, count, error);
    if (status == TB_OK)
        status =
            tb_gpu_reserve_pinned(&device_copies->device, &device_copies->staging, bytes, error);
    *c = (copying){.list = device_copies->list.memory, .staging = device_copies->staging.memory};
    return status;
}

static void add_copy(copying *c, void *to, const void *from, size_t bytes)
{
    if (bytes == 0) return;
    c->list[c->count++] = (tb_gpu_copy){.from = from, .to = to, .bytes = (int64_t)bytes};
}

static unsigned char *stage(copying *c, size_t bytes)
{
    unsigned char *at = c->staging + c->used;
    c->used += bytes;
    return at;
}

/* Makes them and waits. */
static tb_status end_copies(tb_gpu_device_copies *device_copies, const copying *c, tb_error *error)
{
    tb_gpu_device *d = &device_copies->device;
    if (c->count == 0) return TB_OK;
    tb_status status = tb_gpu_mark(d, 0, error);
    if (status == TB_OK)
        status = tb_gpu_check(d, tb_gpu_start_copies(c->list, c->count, d->stream),
                              "copying worlds", error);
    if (status == TB_OK) status = tb_gpu_mark(d, 1, error);
    if (status == TB_OK) status = tb_gpu_wait(d, "copying worlds", error);
    if (status == TB_OK) status = tb_gpu_elapsed(d, 0, 1, &device_copies->use.copy_seconds, error);
    device_copies->use.copied_bytes += c->used;
    return status;
}

static void stage_content(copying *c, const tb_gpu_device_copy *device_copy)
{
    const size_t numbers = device_copy->number_of_numbers * sizeof(double);
    const size_t contacts = (size_t)device_copy->contacts * sizeof(tb_contact_record);
    add_copy(c, stage(c, numbers), tb_gpu_device_copy_numbers(device_copy), numbers);
    add_copy(c, stage(c, contacts), tb_gpu_device_copy_contacts(device_copy, device_copy->current),
             contacts);
}

/* ---- swapping out ---- */

/* Removes device copies from the pool whose content is on the host already. */
static void leave_pool(tb_gpu_device_copies *device_copies, tb_gpu_device_copy *device_copy)
{
    unlink_device_copy(device_copies, device_copy);
    tb_gpu_pool_give(&device_copies->pool, &device_copy->place);
    device_copies->use.evictions++;
}

/* The oldest go, a few at once; false if there is none that may. */
static tb_status evict(tb_gpu_device_copies *device_copies, bool *any, tb_error *error)
{
    tb_gpu_device_copy *chosen[EVICTED_AT_ONCE];
    int32_t n = 0;
    size_t bytes = 0;
    copying c;
    for (tb_gpu_device_copy *t = device_copies->oldest; t != NULL && n < EVICTED_AT_ONCE;
         t = t->newer) {
        if (t->piece == device_copies->piece) break; /* and so are all newer ones */
        chosen[n++] = t;
        bytes += t->dirty ? content_bytes(t) : 0;
    }
    *any = n > 0;
    if (n == 0) return TB_OK;
    tb_status status = begin_copies(device_copies, 2 * (int64_t)n, bytes, &c, error);
    for (int32_t i = 0; i < n && status == TB_OK; i++) {
        if (!chosen[i]->dirty) continue;
        chosen[i]->swapped = malloc(content_bytes(chosen[i]));
        if (chosen[i]->swapped == NULL)
            status =
                tb_fail_memory(error, content_bytes(chosen[i]), "a world that leaves its card");
        else
            stage_content(&c, chosen[i]);
    }
    if (status == TB_OK) status = end_copies(device_copies, &c, error);
    const unsigned char *from = c.staging;
    for (int32_t i = 0; i < n; i++) {
        tb_gpu_device_copy *t = chosen[i];
        if (status != TB_OK) {
            free(t->swapped);
            t->swapped = NULL;
            continue;
        }
        if (t->dirty) {
            memcpy(t->swapped, from, content_bytes(t));
            from += content_bytes(t);
            device_copies->use.worlds_swapped++;
        }
        leave_pool(device_copies, t);
    }
    if (status == TB_OK) tb_gpu_pool_trim(&device_copies->pool, &device_copies->device);
    return status;
}

static tb_status take_place(tb_gpu_device_copies *device_copies, size_t bytes,
                            tb_gpu_allocation *place, tb_error *error)
{
    for (bool any = true;;) {
        tb_error other;
        const tb_status status =
            tb_gpu_pool_take(&device_copies->pool, &device_copies->device, bytes, place, error);
        if (status != TB_RESOURCE_EXHAUSTED) return status;
        const tb_status evicted = evict(device_copies, &any, &other);
        if (evicted != TB_OK && error != NULL) *error = other;
        if (evicted != TB_OK) return evicted;
        if (!any) return status;
    }
}

/* ---- settling ---- */

/* A device copy on the card that this launch works on. */
static void use_device_copy(tb_gpu_device_copies *device_copies, tb_gpu_device_copy *device_copy)
{
    device_copy->piece = device_copies->piece;
    unlink_device_copy(device_copies, device_copy);
    link_newest(device_copies, device_copy);
}

/* Whether the state's device copy must move, and where. */
static tb_status settle_one(tb_gpu_device_copies *device_copies, tb_gpu_move *m, tb_error *error)
{
    tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(m->state);
    const bool own = device_copy != NULL && device_copy->references == 1;
    m->fresh = (tb_gpu_allocation){0};
    m->made = NULL;
    if (own && device_copy->place.memory != NULL && device_copy->capacity >= m->capacity) {
        use_device_copy(device_copies, device_copy);
        return TB_OK;
    }
    /* the source of the copy keeps its allocation until the copy has ended */
    if (device_copy != NULL && device_copy->place.memory != NULL)
        use_device_copy(device_copies, device_copy);
    const tb_status status = take_place(
        device_copies, place_bytes(m->state->number_of_numbers, m->capacity), &m->fresh, error);
    if (status != TB_OK || own) return status;
    m->made = calloc(1, sizeof *m->made);
    if (m->made != NULL) return TB_OK;
    tb_gpu_pool_give(&device_copies->pool, &m->fresh);
    return tb_fail_memory(error, sizeof *m->made, "a world on a card");
}

static void unsettle(tb_gpu_device_copies *device_copies, tb_gpu_move *moves, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        tb_gpu_pool_give(&device_copies->pool, &moves[i].fresh);
        free(moves[i].made);
        moves[i].made = NULL;
    }
}

/* Copies each moved piece to its destination. */
static tb_status copy_moved(tb_gpu_device_copies *device_copies, const tb_gpu_move *moves,
                            int32_t count, tb_error *error)
{
    int64_t n = 0;
    size_t bytes = 0;
    copying c;
    for (int32_t i = 0; i < count; i++) {
        const tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(moves[i].state);
        if (moves[i].fresh.memory == NULL || device_copy == NULL) continue;
        n++;
        bytes += device_copy->swapped != NULL ? content_bytes(device_copy) : 0;
    }
    if (n == 0) return TB_OK;
    const tb_status status = begin_copies(device_copies, 2 * n, bytes, &c, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < count; i++) {
        const tb_gpu_move *m = &moves[i];
        const tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(m->state);
        if (m->fresh.memory == NULL || device_copy == NULL) continue;
        const size_t numbers = device_copy->number_of_numbers * sizeof(double);
        const size_t contacts = (size_t)device_copy->contacts * sizeof(tb_contact_record);
        void *room = room_in(m->fresh.memory, device_copy->number_of_numbers, m->capacity, 0);
        if (device_copy->swapped != NULL) {
            unsigned char *from = stage(&c, numbers + contacts);
            memcpy(from, device_copy->swapped, numbers + contacts);
            add_copy(&c, m->fresh.memory, from, numbers);
            add_copy(&c, room, from + numbers, contacts);
        } else if (device_copy->place.memory != NULL) {
            add_copy(&c, m->fresh.memory, tb_gpu_device_copy_numbers(device_copy), numbers);
            add_copy(&c, room, tb_gpu_device_copy_contacts(device_copy, device_copy->current),
                     contacts);
            device_copies->use.moves++;
        }
    }
    return end_copies(device_copies, &c, error);
}

static void forget_swapped(tb_gpu_device_copies *device_copies, tb_gpu_device_copy *device_copy)
{
    if (device_copy->swapped == NULL) return;
    free(device_copy->swapped);
    device_copy->swapped = NULL;
    device_copies->use.worlds_swapped--;
}

/* The last state has left it. */
static void destroy(tb_gpu_device_copies *device_copies, tb_gpu_device_copy *device_copy)
{
    if (device_copy->place.memory != NULL) unlink_device_copy(device_copies, device_copy);
    tb_gpu_pool_give(&device_copies->pool, &device_copy->place);
    forget_swapped(device_copies, device_copy);
    free(device_copy);
    device_copies->count--;
}

static void commit(tb_gpu_device_copies *device_copies, tb_gpu_move *m)
{
    tb_state *s = m->state;
    tb_gpu_device_copy *device_copy = tb_gpu_device_copy_of(s);
    if (m->fresh.memory == NULL) return;
    const bool filled =
        device_copy != NULL && (device_copy->place.memory != NULL || device_copy->swapped != NULL);
    if (m->made != NULL) { /* the others keep the shared copy */
        *m->made = (tb_gpu_device_copy){.head = {device_copies->backend},
                                        .device_copies = device_copies,
                                        .references = 1,
                                        .dirty = device_copy != NULL && device_copy->dirty,
                                        .contacts = device_copy != NULL ? device_copy->contacts : 0,
                                        .number_of_numbers = s->number_of_numbers};
        if (device_copy != NULL && --device_copy->references == 0)
            destroy(device_copies, device_copy);
        device_copy = m->made;
        m->made = NULL;
        s->device_copy = &device_copy->head;
        device_copies->count++;
    } else {
        if (device_copy->place.memory != NULL) unlink_device_copy(device_copies, device_copy);
        tb_gpu_pool_give(&device_copies->pool, &device_copy->place);
        forget_swapped(device_copies, device_copy);
    }
    device_copy->place = m->fresh;
    device_copy->capacity = m->capacity;
    device_copy->current = 0;
    device_copy->piece = device_copies->piece;
    link_newest(device_copies, device_copy);
    m->fresh = (tb_gpu_allocation){0};
    if (filled) return;
    s->host_newer = TB_STATE_ALL; /* the host has everything */
    s->device_newer = 0;
}

tb_status tb_gpu_device_copies_settle(tb_gpu_device_copies *device_copies, tb_gpu_move *moves,
                                      int32_t count, int32_t *settled, tb_error *error)
{
    int32_t n = 0;
    tb_status status = TB_OK;
    pthread_mutex_lock(&device_copies->lock);
    device_copies->piece++;
    status = tb_gpu_device_enter(&device_copies->device, error);
    while (n < count && status == TB_OK) {
        status = settle_one(device_copies, &moves[n], error);
        n += status == TB_OK;
    }
    if (status == TB_RESOURCE_EXHAUSTED && n > 0) status = TB_OK;
    if (status == TB_OK) status = copy_moved(device_copies, moves, n, error);
    if (status != TB_OK)
        unsettle(device_copies, moves, n);
    else
        for (int32_t i = 0; i < n; i++) commit(device_copies, &moves[i]);
    *settled = n;
    pthread_mutex_unlock(&device_copies->lock);
    return status;
}

/* ---- sharing and leaving ---- */

void tb_gpu_device_copy_share(tb_device_copy *shared)
{
    tb_gpu_device_copy *device_copy = (tb_gpu_device_copy *)(void *)shared;
    pthread_mutex_lock(&device_copy->device_copies->lock);
    device_copy->references++;
    pthread_mutex_unlock(&device_copy->device_copies->lock);
}

void tb_gpu_device_copy_release(tb_device_copy *released)
{
    tb_gpu_device_copy *device_copy = (tb_gpu_device_copy *)(void *)released;
    tb_gpu_device_copies *device_copies = device_copy->device_copies;
    pthread_mutex_lock(&device_copies->lock);
    if (--device_copy->references == 0) destroy(device_copies, device_copy);
    const bool empty = device_copies->count == 0 && device_copies->contexts == 0;
    void (*tell)(int32_t) = device_copies->empty;
    const int32_t device = device_copies->device.index;
    pthread_mutex_unlock(&device_copies->lock);
    if (empty) tell(device);
}

/* ---- life ---- */

tb_status tb_gpu_device_copies_open(tb_gpu_device_copies *device_copies, int32_t device,
                                    uint64_t limit, tb_error *error)
{
    pthread_mutex_init(&device_copies->lock, NULL);
    device_copies->pool.limit = limit;
    return tb_gpu_device_open(device, &device_copies->device, error);
}

void tb_gpu_device_copies_close(tb_gpu_device_copies *device_copies)
{
    tb_gpu_pool_destroy(&device_copies->pool, &device_copies->device);
    tb_gpu_release_pinned(&device_copies->device, &device_copies->list);
    tb_gpu_release_pinned(&device_copies->device, &device_copies->staging);
    tb_gpu_device_close(&device_copies->device);
    pthread_mutex_destroy(&device_copies->lock);
}
