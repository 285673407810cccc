/* A cache of immutable objects by digest. Referenced objects stay; unreferenced ones stay until
 * they exceed the memory limit and are then evicted, least recently used first. */
#ifndef SERVER_CACHE_H
#define SERVER_CACHE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { TD_CACHE_BUCKETS = 1024 };

/* Embedded as the first member of a cached object. */
typedef struct td_cached td_cached;
struct td_cached {
    char key[65];
    size_t bytes; /* that it takes, about */
    int32_t references;
    td_cached *next;          /* in its bucket */
    td_cached *newer, *older; /* among the idle ones */
};

typedef struct td_cache {
    pthread_mutex_t mutex;
    td_cached *buckets[TD_CACHE_BUCKETS];
    td_cached *newest, *oldest; /* idle */
    size_t idle_bytes, idle_limit;
    void (*destroy)(td_cached *);
} td_cache;

void td_cache_init(td_cache *, size_t idle_limit, void (*destroy)(td_cached *));
void td_cache_destroy(td_cache *); /* with all it holds */
/* Held for the caller; NULL if there is none. */
td_cached *td_cache_find(td_cache *, const char *key);
/* Takes over an entry and returns it, or the equal one that was there already; held. */
td_cached *td_cache_add(td_cache *, td_cached *);
void td_cache_hold(td_cache *, td_cached *);
void td_cache_release(td_cache *, td_cached *);

#endif
