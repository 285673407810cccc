/* See twin.h. */
#include "gpu/device/twin.h"

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

double *tb_gpu_twin_numbers(const tb_gpu_twin *twin)
{
    return twin->place.memory;
}

static tb_contact_record *room_in(void *memory, size_t numbers, int32_t capacity, int32_t side)
{
    unsigned char *rooms = (unsigned char *)memory + rooms_begin(numbers);
    return (tb_contact_record *)(void *)rooms + (int64_t)side * capacity;
}

tb_contact_record *tb_gpu_twin_room(const tb_gpu_twin *twin, int32_t side)
{
    return room_in(twin->place.memory, twin->number_of_numbers, twin->capacity, side);
}

/* Of a twin's content, as it is swapped out: numbers, then contacts. */
static size_t content_bytes(const tb_gpu_twin *twin)
{
    return twin->number_of_numbers * sizeof(double) +
           (size_t)twin->contacts * sizeof(tb_contact_record);
}

/* ---- the list by use ---- */

static void unlink_twin(tb_gpu_twins *twins, tb_gpu_twin *twin)
{
    *(twin->newer != NULL ? &twin->newer->older : &twins->newest) = twin->older;
    *(twin->older != NULL ? &twin->older->newer : &twins->oldest) = twin->newer;
    twin->newer = twin->older = NULL;
}

static void link_newest(tb_gpu_twins *twins, tb_gpu_twin *twin)
{
    twin->newer = NULL;
    twin->older = twins->newest;
    *(twin->older != NULL ? &twin->older->newer : &twins->oldest) = twin;
    twins->newest = twin;
}

/* ---- copies ---- */

/* What is to be copied, and bytes of the staging that it takes. */
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

static tb_status begin_copies(tb_gpu_twins *twins, int64_t count, size_t bytes, copying *c,
                              tb_error *error)
{
    tb_status status = tb_gpu_device_enter(&twins->device, error);
    if (status == TB_OK) status = tb_gpu_reserve_copies(&twins->device, &twins->list, count, error);
    if (status == TB_OK)
        status = tb_gpu_reserve_pinned(&twins->device, &twins->staging, bytes, error);
    *c = (copying){.list = twins->list.memory, .staging = twins->staging.memory};
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
static tb_status end_copies(tb_gpu_twins *twins, const copying *c, tb_error *error)
{
    tb_gpu_device *d = &twins->device;
    if (c->count == 0) return TB_OK;
    tb_status status = tb_gpu_mark(d, 0, error);
    if (status == TB_OK)
        status = tb_gpu_check(d, tb_gpu_start_copies(c->list, c->count, d->stream),
                              "copying worlds", error);
    if (status == TB_OK) status = tb_gpu_mark(d, 1, error);
    if (status == TB_OK) status = tb_gpu_wait(d, "copying worlds", error);
    if (status == TB_OK) status = tb_gpu_elapsed(d, 0, 1, &twins->use.copy_seconds, error);
    twins->use.copied_bytes += c->used;
    return status;
}

static void stage_content(copying *c, const tb_gpu_twin *twin)
{
    const size_t numbers = twin->number_of_numbers * sizeof(double);
    const size_t contacts = (size_t)twin->contacts * sizeof(tb_contact_record);
    add_copy(c, stage(c, numbers), tb_gpu_twin_numbers(twin), numbers);
    add_copy(c, stage(c, contacts), tb_gpu_twin_room(twin, twin->side), contacts);
}

/* ---- swapping out ---- */

/* Takes twins out of the pool whose content is on the host by now. */
static void leave_pool(tb_gpu_twins *twins, tb_gpu_twin *twin)
{
    unlink_twin(twins, twin);
    tb_gpu_pool_give(&twins->pool, &twin->place);
    twins->use.evictions++;
}

/* The oldest go, a few at once; false if there is none that may. */
static tb_status evict(tb_gpu_twins *twins, bool *any, tb_error *error)
{
    tb_gpu_twin *chosen[EVICTED_AT_ONCE];
    int32_t n = 0;
    size_t bytes = 0;
    copying c;
    for (tb_gpu_twin *t = twins->oldest; t != NULL && n < EVICTED_AT_ONCE; t = t->newer) {
        if (t->piece == twins->piece) break; /* and so are all newer ones */
        chosen[n++] = t;
        bytes += t->dirty ? content_bytes(t) : 0;
    }
    *any = n > 0;
    if (n == 0) return TB_OK;
    tb_status status = begin_copies(twins, 2 * (int64_t)n, bytes, &c, error);
    for (int32_t i = 0; i < n && status == TB_OK; i++) {
        if (!chosen[i]->dirty) continue;
        chosen[i]->swapped = malloc(content_bytes(chosen[i]));
        if (chosen[i]->swapped == NULL)
            status =
                tb_fail_memory(error, content_bytes(chosen[i]), "a world that leaves its card");
        else
            stage_content(&c, chosen[i]);
    }
    if (status == TB_OK) status = end_copies(twins, &c, error);
    const unsigned char *from = c.staging;
    for (int32_t i = 0; i < n; i++) {
        tb_gpu_twin *t = chosen[i];
        if (status != TB_OK) {
            free(t->swapped);
            t->swapped = NULL;
            continue;
        }
        if (t->dirty) {
            memcpy(t->swapped, from, content_bytes(t));
            from += content_bytes(t);
            twins->use.worlds_swapped++;
        }
        leave_pool(twins, t);
    }
    if (status == TB_OK) tb_gpu_pool_trim(&twins->pool, &twins->device);
    return status;
}

static tb_status take_place(tb_gpu_twins *twins, size_t bytes, tb_gpu_place *place, tb_error *error)
{
    for (bool any = true;;) {
        tb_error other;
        const tb_status status =
            tb_gpu_pool_take(&twins->pool, &twins->device, bytes, place, error);
        if (status != TB_RESOURCE_EXHAUSTED) return status;
        const tb_status evicted = evict(twins, &any, &other);
        if (evicted != TB_OK && error != NULL) *error = other;
        if (evicted != TB_OK) return evicted;
        if (!any) return status;
    }
}

/* ---- settling ---- */

/* A twin on the card that this launch works on. */
static void use_twin(tb_gpu_twins *twins, tb_gpu_twin *twin)
{
    twin->piece = twins->piece;
    unlink_twin(twins, twin);
    link_newest(twins, twin);
}

/* Whether the state's twin must move, and where. */
static tb_status settle_one(tb_gpu_twins *twins, tb_gpu_move *m, tb_error *error)
{
    tb_gpu_twin *twin = tb_gpu_twin_of(m->state);
    const bool own = twin != NULL && twin->references == 1;
    m->fresh = (tb_gpu_place){0};
    m->made = NULL;
    if (own && twin->place.memory != NULL && twin->capacity >= m->capacity) {
        use_twin(twins, twin);
        return TB_OK;
    }
    /* what it comes from stays where it is until it has been copied */
    if (twin != NULL && twin->place.memory != NULL) use_twin(twins, twin);
    const tb_status status =
        take_place(twins, place_bytes(m->state->number_of_numbers, m->capacity), &m->fresh, error);
    if (status != TB_OK || own) return status;
    m->made = calloc(1, sizeof *m->made);
    if (m->made != NULL) return TB_OK;
    tb_gpu_pool_give(&twins->pool, &m->fresh);
    return tb_fail_memory(error, sizeof *m->made, "a world on a card");
}

static void unsettle(tb_gpu_twins *twins, tb_gpu_move *moves, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        tb_gpu_pool_give(&twins->pool, &moves[i].fresh);
        free(moves[i].made);
        moves[i].made = NULL;
    }
}

/* Copies what moves to where it moves. */
static tb_status copy_moved(tb_gpu_twins *twins, const tb_gpu_move *moves, int32_t count,
                            tb_error *error)
{
    int64_t n = 0;
    size_t bytes = 0;
    copying c;
    for (int32_t i = 0; i < count; i++) {
        const tb_gpu_twin *twin = tb_gpu_twin_of(moves[i].state);
        if (moves[i].fresh.memory == NULL || twin == NULL) continue;
        n++;
        bytes += twin->swapped != NULL ? content_bytes(twin) : 0;
    }
    if (n == 0) return TB_OK;
    const tb_status status = begin_copies(twins, 2 * n, bytes, &c, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < count; i++) {
        const tb_gpu_move *m = &moves[i];
        const tb_gpu_twin *twin = tb_gpu_twin_of(m->state);
        if (m->fresh.memory == NULL || twin == NULL) continue;
        const size_t numbers = twin->number_of_numbers * sizeof(double);
        const size_t contacts = (size_t)twin->contacts * sizeof(tb_contact_record);
        void *room = room_in(m->fresh.memory, twin->number_of_numbers, m->capacity, 0);
        if (twin->swapped != NULL) {
            unsigned char *from = stage(&c, numbers + contacts);
            memcpy(from, twin->swapped, numbers + contacts);
            add_copy(&c, m->fresh.memory, from, numbers);
            add_copy(&c, room, from + numbers, contacts);
        } else if (twin->place.memory != NULL) {
            add_copy(&c, m->fresh.memory, tb_gpu_twin_numbers(twin), numbers);
            add_copy(&c, room, tb_gpu_twin_room(twin, twin->side), contacts);
            twins->use.moves++;
        }
    }
    return end_copies(twins, &c, error);
}

static void forget_swapped(tb_gpu_twins *twins, tb_gpu_twin *twin)
{
    if (twin->swapped == NULL) return;
    free(twin->swapped);
    twin->swapped = NULL;
    twins->use.worlds_swapped--;
}

/* The last state has left it. */
static void destroy(tb_gpu_twins *twins, tb_gpu_twin *twin)
{
    if (twin->place.memory != NULL) unlink_twin(twins, twin);
    tb_gpu_pool_give(&twins->pool, &twin->place);
    forget_swapped(twins, twin);
    free(twin);
    twins->count--;
}

static void commit(tb_gpu_twins *twins, tb_gpu_move *m)
{
    tb_state *s = m->state;
    tb_gpu_twin *twin = tb_gpu_twin_of(s);
    if (m->fresh.memory == NULL) return;
    const bool filled = twin != NULL && (twin->place.memory != NULL || twin->swapped != NULL);
    if (m->made != NULL) { /* the others keep what they shared */
        *m->made = (tb_gpu_twin){.head = {twins->backend},
                                 .twins = twins,
                                 .references = 1,
                                 .dirty = twin != NULL && twin->dirty,
                                 .contacts = twin != NULL ? twin->contacts : 0,
                                 .number_of_numbers = s->number_of_numbers};
        if (twin != NULL && --twin->references == 0) destroy(twins, twin);
        twin = m->made;
        m->made = NULL;
        s->twin = &twin->head;
        twins->count++;
    } else {
        if (twin->place.memory != NULL) unlink_twin(twins, twin);
        tb_gpu_pool_give(&twins->pool, &twin->place);
        forget_swapped(twins, twin);
    }
    twin->place = m->fresh;
    twin->capacity = m->capacity;
    twin->side = 0;
    twin->piece = twins->piece;
    link_newest(twins, twin);
    m->fresh = (tb_gpu_place){0};
    if (filled) return;
    s->host_newer = TB_PARTS_ALL; /* the host has everything */
    s->device_newer = 0;
}

tb_status tb_gpu_twins_settle(tb_gpu_twins *twins, tb_gpu_move *moves, int32_t count,
                              int32_t *settled, tb_error *error)
{
    int32_t n = 0;
    tb_status status = TB_OK;
    pthread_mutex_lock(&twins->lock);
    twins->piece++;
    status = tb_gpu_device_enter(&twins->device, error);
    while (n < count && status == TB_OK) {
        status = settle_one(twins, &moves[n], error);
        n += status == TB_OK;
    }
    if (status == TB_RESOURCE_EXHAUSTED && n > 0) status = TB_OK;
    if (status == TB_OK) status = copy_moved(twins, moves, n, error);
    if (status != TB_OK)
        unsettle(twins, moves, n);
    else
        for (int32_t i = 0; i < n; i++) commit(twins, &moves[i]);
    *settled = n;
    pthread_mutex_unlock(&twins->lock);
    return status;
}

/* ---- sharing and leaving ---- */

void tb_gpu_twin_share(tb_device_twin *shared)
{
    tb_gpu_twin *twin = (tb_gpu_twin *)(void *)shared;
    pthread_mutex_lock(&twin->twins->lock);
    twin->references++;
    pthread_mutex_unlock(&twin->twins->lock);
}

void tb_gpu_twin_release(tb_device_twin *released)
{
    tb_gpu_twin *twin = (tb_gpu_twin *)(void *)released;
    tb_gpu_twins *twins = twin->twins;
    pthread_mutex_lock(&twins->lock);
    if (--twin->references == 0) destroy(twins, twin);
    const bool empty = twins->count == 0 && twins->contexts == 0;
    void (*tell)(int32_t) = twins->empty;
    const int32_t device = twins->device.index;
    pthread_mutex_unlock(&twins->lock);
    if (empty) tell(device);
}

/* ---- life ---- */

tb_status tb_gpu_twins_open(tb_gpu_twins *twins, int32_t device, uint64_t limit, tb_error *error)
{
    pthread_mutex_init(&twins->lock, NULL);
    twins->pool.limit = limit;
    return tb_gpu_device_open(device, &twins->device, error);
}

void tb_gpu_twins_close(tb_gpu_twins *twins)
{
    tb_gpu_pool_destroy(&twins->pool, &twins->device);
    tb_gpu_release_pinned(&twins->device, &twins->list);
    tb_gpu_release_pinned(&twins->device, &twins->staging);
    tb_gpu_device_close(&twins->device);
    pthread_mutex_destroy(&twins->lock);
}
