/* Channels by a mutex and two conditions: see channel.h. */
#include "solve/coloured/csp/channel.h"

#include <stdlib.h>
#include <string.h>

bool tb_guard_create(tb_guard *guard)
{
    return sem_init(&guard->messages, 0, 0) == 0;
}

void tb_guard_destroy(tb_guard *guard)
{
    sem_destroy(&guard->messages);
}

bool tb_channel_create(tb_channel *c, size_t size, int32_t capacity, tb_guard *guard)
{
    memset(c, 0, sizeof *c);
    c->slots = calloc((size_t)capacity, size);
    if (!c->slots) return false;
    c->size = size;
    c->capacity = capacity;
    c->guard = guard;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->filled, NULL);
    pthread_cond_init(&c->emptied, NULL);
    return true;
}

void tb_channel_destroy(tb_channel *c)
{
    if (!c->slots) return;
    pthread_cond_destroy(&c->emptied);
    pthread_cond_destroy(&c->filled);
    pthread_mutex_destroy(&c->lock);
    free(c->slots);
    c->slots = NULL;
}

/* Puts a message into the buffer, which has room. Caller holds the lock. */
static void put(tb_channel *c, const void *message)
{
    const int32_t slot = (c->first + c->count) % c->capacity;
    memcpy(c->slots + (size_t)slot * c->size, message, c->size);
    c->count++;
    pthread_cond_signal(&c->filled);
}

/* Takes the oldest message; there is one. Caller holds the lock. */
static void take(tb_channel *c, void *message)
{
    memcpy(message, c->slots + (size_t)c->first * c->size, c->size);
    c->first = (c->first + 1) % c->capacity;
    c->count--;
    pthread_cond_signal(&c->emptied);
}

void tb_channel_send(tb_channel *c, const void *message)
{
    pthread_mutex_lock(&c->lock);
    while (c->count == c->capacity) pthread_cond_wait(&c->emptied, &c->lock);
    put(c, message);
    pthread_mutex_unlock(&c->lock);
    if (c->guard) sem_post(&c->guard->messages);
}

bool tb_channel_receive(tb_channel *c, void *message)
{
    pthread_mutex_lock(&c->lock);
    while (c->count == 0 && !c->poisoned) pthread_cond_wait(&c->filled, &c->lock);
    const bool any = c->count > 0;
    if (any) take(c, message);
    pthread_mutex_unlock(&c->lock);
    return any;
}

void tb_channel_poison(tb_channel *c)
{
    pthread_mutex_lock(&c->lock);
    c->poisoned = true;
    pthread_cond_broadcast(&c->filled);
    pthread_mutex_unlock(&c->lock);
}

bool tb_channel_try_send(tb_channel *c, const void *message)
{
    pthread_mutex_lock(&c->lock);
    const bool room = c->count < c->capacity;
    if (room) put(c, message);
    pthread_mutex_unlock(&c->lock);
    return room;
}

bool tb_channel_try_receive(tb_channel *c, void *message)
{
    pthread_mutex_lock(&c->lock);
    const bool any = c->count > 0;
    if (any) take(c, message);
    pthread_mutex_unlock(&c->lock);
    return any;
}

void tb_guard_receive(tb_guard *guard, tb_channel *channels, size_t stride, int32_t count,
                      int32_t *next, void *message)
{
    while (sem_wait(&guard->messages) != 0) continue; /* a signal's handler has run */
    /* the guard has counted a message that no other receiver takes, so a turn finds one */
    for (int32_t i = *next;; i = (i + 1) % count) {
        tb_channel *c = (tb_channel *)(void *)((char *)channels + (size_t)i * stride);
        if (!tb_channel_try_receive(c, message)) continue;
        *next = (i + 1) % count;
        return;
    }
}
