/* Channels between kernel threads, as C++CSP has them: bounded buffers of messages of one size.
 *
 * Any number of threads may send and receive (Any2One, One2Any). Where each sender has a channel of
 * its own, a guard tells the one receiver that some channel of a set has a message, so that senders
 * share no lock. */
#ifndef TB_CHANNEL_H
#define TB_CHANNEL_H

#include <pthread.h>
#include <semaphore.h>

#include "base/base.h"

/* Counts the messages of a set of channels. */
typedef struct tb_guard {
    sem_t messages;
} tb_guard;

typedef struct tb_channel {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    tb_guard *guard; /* notified of each message; NULL: none. Borrowed */
    size_t size;     /* bytes of a message */
    int32_t capacity, first, count;
    bool poisoned;        /* nothing more is sent */
    unsigned char *slots; /* capacity x size; NULL: not created */
} tb_channel;

bool tb_guard_create(tb_guard *guard);
void tb_guard_destroy(tb_guard *guard);

/* False without memory. A zeroed channel may be destroyed. */
bool tb_channel_create(tb_channel *channel, size_t size, int32_t capacity, tb_guard *guard);
void tb_channel_destroy(tb_channel *channel);

/* Waits while the buffer is full, or empty. False, and no message, where it is empty and
 * poisoned. */
void tb_channel_send(tb_channel *channel, const void *message);
bool tb_channel_receive(tb_channel *channel, void *message);
/* Ends the channel: whoever receives gets what is buffered, and then no more. */
void tb_channel_poison(tb_channel *channel);

/* False, and nothing done, where the wait would begin. Not for channels with a guard. */
bool tb_channel_try_send(tb_channel *channel, const void *message);
bool tb_channel_try_receive(tb_channel *channel, void *message);

/* Receives from any of `count` channels of one guard, each `stride` bytes behind the one before; looks
 * first at *next, and leaves there the one behind the channel that had a message. */
void tb_guard_receive(tb_guard *guard, tb_channel *channels, size_t stride, int32_t count,
                      int32_t *next, void *message);

#endif
