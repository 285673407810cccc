/* Memory of the played card that comes back at old addresses, as a driver's may: with
 * TRIBO_TEST_OLD_PLACES set an allocation takes the place that was freed last. Each allocation has a
 * number, so that a graph is caught that copies to or from memory which has been freed since its
 * capture, also where other memory now lies at that address. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "played.h"

enum { PLACES = 64 };
static const size_t PLACE_BYTES = (size_t)16 << 20;

typedef struct place {
    unsigned char *memory;
    int64_t allocation; /* 0: free */
    int64_t freed;      /* when, by the count of allocations and releases */
} place;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place places[PLACES];
static int64_t uses;

/* The free place with memory that was freed last, else one without memory; NULL: all are taken. */
static place *choose(void)
{
    place *chosen = NULL;
    for (int i = 0; i < PLACES; i++) {
        place *p = &places[i];
        if (p->allocation != 0) continue;
        if (chosen == NULL || p->freed > chosen->freed) chosen = p;
    }
    return chosen;
}

void *played_take_place(size_t bytes)
{
    void *memory = NULL;
    if (getenv("TRIBO_TEST_OLD_PLACES") == NULL || bytes > PLACE_BYTES) return NULL;
    pthread_mutex_lock(&lock);
    place *p = choose();
    if (p != NULL && p->memory == NULL) {
        void *fresh = mmap(NULL, PLACE_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        p->memory = fresh == MAP_FAILED ? NULL : fresh;
    }
    if (p != NULL && p->memory != NULL) {
        p->allocation = ++uses;
        memory = p->memory;
    }
    pthread_mutex_unlock(&lock);
    return memory;
}

bool played_give_place(void *memory)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PLACES && !found; i++) {
        place *p = &places[i];
        found = memory != NULL && p->memory == memory;
        if (!found) continue;
        p->allocation = 0;
        p->freed = ++uses;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int64_t played_allocation_at(const void *address)
{
    const unsigned char *at = address;
    int64_t allocation = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PLACES; i++) {
        const place *p = &places[i];
        if (p->memory != NULL && at >= p->memory && at < p->memory + PLACE_BYTES)
            allocation = p->allocation;
    }
    pthread_mutex_unlock(&lock);
    return allocation;
}
