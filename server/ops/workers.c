/* A bounded queue and the threads that empty it. */
#include "ops/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "ops/clock.h"

typedef struct work_item {
    void (*work)(void *context);
    void *context;
    int64_t posted_ns;
} work_item;

struct td_workers {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    work_item *items; /* ring of `capacity` */
    int capacity, first, count;
    bool ending;
    pthread_t *threads;
    int number_of_threads;
};

/* Takes items until the queue is empty and the end was announced. */
static void *run(void *context)
{
    td_workers *workers = context;
    pthread_mutex_lock(&workers->mutex);
    for (;;) {
        while (workers->count == 0 && !workers->ending)
            pthread_cond_wait(&workers->changed, &workers->mutex);
        if (workers->count == 0) break;
        const work_item item = workers->items[workers->first];
        workers->first = (workers->first + 1) % workers->capacity;
        workers->count--;
        pthread_mutex_unlock(&workers->mutex);
        item.work(item.context);
        pthread_mutex_lock(&workers->mutex);
    }
    pthread_mutex_unlock(&workers->mutex);
    return NULL;
}

static tb_status fail_argument(tb_error *error, const char *name, int value)
{
    return tb_fail_field(error, TB_INVALID_ARGUMENT, name, "%s is %d and must be above 0", name,
                         value);
}

tb_status td_workers_create(int threads, int queue_length, td_workers **created, tb_error *error)
{
    *created = NULL;
    if (threads < 1) return fail_argument(error, "threads", threads);
    if (queue_length < 1) return fail_argument(error, "queue_length", queue_length);
    td_workers *workers = calloc(1, sizeof *workers);
    if (workers == NULL) return tb_fail_memory(error, sizeof *workers, "workers");
    workers->capacity = queue_length;
    workers->items = calloc((size_t)queue_length, sizeof *workers->items);
    workers->threads = calloc((size_t)threads, sizeof *workers->threads);
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->changed, NULL);
    if (workers->items == NULL || workers->threads == NULL) {
        td_workers_destroy(workers);
        return tb_fail_memory(error, (size_t)queue_length * sizeof(work_item), "workers");
    }
    while (workers->number_of_threads < threads) {
        pthread_t *thread = &workers->threads[workers->number_of_threads];
        if (pthread_create(thread, NULL, run, workers) != 0) {
            td_workers_destroy(workers);
            return tb_fail(error, TB_RESOURCE_EXHAUSTED, "cannot start %d worker threads", threads);
        }
        pthread_setname_np(*thread, "worker");
        workers->number_of_threads++;
    }
    *created = workers;
    return TB_OK;
}

tb_status td_workers_post(td_workers *workers, void (*work)(void *context), void *context,
                          tb_error *error)
{
    pthread_mutex_lock(&workers->mutex);
    const bool full = workers->count == workers->capacity;
    if (!full) {
        const int last = (workers->first + workers->count) % workers->capacity;
        workers->items[last] =
            (work_item){.work = work, .context = context, .posted_ns = td_monotonic_ns()};
        workers->count++;
        pthread_cond_signal(&workers->changed);
    }
    pthread_mutex_unlock(&workers->mutex);
    if (!full) return TB_OK;
    return tb_fail(error, TB_RESOURCE_EXHAUSTED, "the queue of the workers is full (%d jobs)",
                   workers->capacity);
}

td_workers_use td_workers_measure(td_workers *workers)
{
    td_workers_use use = {0};
    pthread_mutex_lock(&workers->mutex);
    use.waiting = workers->count;
    const int64_t oldest = use.waiting > 0 ? workers->items[workers->first].posted_ns : 0;
    pthread_mutex_unlock(&workers->mutex);
    if (use.waiting > 0) use.oldest_seconds = 1e-9 * (double)(td_monotonic_ns() - oldest);
    return use;
}

int td_workers_count(const td_workers *workers)
{
    return workers->number_of_threads;
}

void td_workers_destroy(td_workers *workers)
{
    if (workers == NULL) return;
    pthread_mutex_lock(&workers->mutex);
    workers->ending = true;
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->mutex);
    for (int i = 0; i < workers->number_of_threads; i++) pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->changed);
    pthread_mutex_destroy(&workers->mutex);
    free(workers->items);
    free(workers->threads);
    free(workers);
}
