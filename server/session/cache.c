/* The cache of the catalog: see cache.h. */
#include "session/cache.h"

#include <string.h>

void td_cache_init(td_cache *cache, size_t idle_limit, void (*destroy)(td_cached *))
{
    *cache = (td_cache){.idle_limit = idle_limit, .destroy = destroy};
    pthread_mutex_init(&cache->mutex, NULL);
}

void td_cache_destroy(td_cache *cache)
{
    for (int i = 0; i < TD_CACHE_BUCKETS; i++)
        for (td_cached *e = cache->buckets[i]; e != NULL;) {
            td_cached *next = e->next;
            cache->destroy(e);
            e = next;
        }
    pthread_mutex_destroy(&cache->mutex);
}

/* Keys are digests in hexadecimal: any few digits of them are a good hash. */
static td_cached **bucket_of(td_cache *cache, const char *key)
{
    uint32_t hash = 0;
    for (int i = 0; i < 4 && key[i] != '\0'; i++) hash = hash * 31 + (unsigned char)key[i];
    return &cache->buckets[hash % TD_CACHE_BUCKETS];
}

static td_cached *look_up(td_cache *cache, const char *key)
{
    td_cached *e = *bucket_of(cache, key);
    while (e != NULL && strcmp(e->key, key) != 0) e = e->next;
    return e;
}

static void leave_idle(td_cache *cache, td_cached *e)
{
    *(e->newer != NULL ? &e->newer->older : &cache->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &cache->oldest) = e->newer;
    e->newer = e->older = NULL;
    cache->idle_bytes -= e->bytes;
}

static void become_idle(td_cache *cache, td_cached *e)
{
    e->older = cache->newest;
    e->newer = NULL;
    *(e->older != NULL ? &e->older->newer : &cache->oldest) = e;
    cache->newest = e;
    cache->idle_bytes += e->bytes;
}

static void hold(td_cache *cache, td_cached *e)
{
    if (e->references++ == 0) leave_idle(cache, e);
}

/* The oldest idle entry, taken out, while they take more than they may; else NULL. */
static td_cached *take_surplus(td_cache *cache)
{
    td_cached *e = cache->oldest;
    if (e == NULL || cache->idle_bytes <= cache->idle_limit) return NULL;
    leave_idle(cache, e);
    td_cached **link = bucket_of(cache, e->key);
    while (*link != e) link = &(*link)->next;
    *link = e->next;
    return e;
}

td_cached *td_cache_find(td_cache *cache, const char *key)
{
    pthread_mutex_lock(&cache->mutex);
    td_cached *e = look_up(cache, key);
    if (e != NULL) hold(cache, e);
    pthread_mutex_unlock(&cache->mutex);
    return e;
}

td_cached *td_cache_add(td_cache *cache, td_cached *entry)
{
    pthread_mutex_lock(&cache->mutex);
    td_cached *e = look_up(cache, entry->key);
    if (e != NULL) {
        hold(cache, e);
    } else {
        e = entry;
        e->references = 1;
        e->newer = e->older = NULL;
        td_cached **bucket = bucket_of(cache, e->key);
        e->next = *bucket;
        *bucket = e;
    }
    pthread_mutex_unlock(&cache->mutex);
    if (e != entry) cache->destroy(entry);
    return e;
}

void td_cache_hold(td_cache *cache, td_cached *entry)
{
    pthread_mutex_lock(&cache->mutex);
    hold(cache, entry);
    pthread_mutex_unlock(&cache->mutex);
}

void td_cache_release(td_cache *cache, td_cached *entry)
{
    td_cached *surplus = NULL;
    pthread_mutex_lock(&cache->mutex);
    if (--entry->references == 0) {
        become_idle(cache, entry);
        for (td_cached *e; (e = take_surplus(cache)) != NULL;) {
            e->next = surplus;
            surplus = e;
        }
    }
    pthread_mutex_unlock(&cache->mutex);
    while (surplus != NULL) {
        td_cached *next = surplus->next;
        cache->destroy(surplus);
        surplus = next;
    }
}
