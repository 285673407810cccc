/* See pool.h. */
#include "call/pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "ops/clock.h"

typedef struct pool_job {
    struct pool_job *next;
    struct pool_caller *caller;
    void (*work)(void *context);
    void *context;
    int64_t posted_ns;
} pool_job;

/* A caller with jobs; freed with the last of them. */
typedef struct pool_caller {
    struct pool_caller *next;
    char name[TD_POOL_CALLER_SIZE];
    pool_job *first, *last;
    int32_t waiting, running;
    uint64_t served; /* turn in which a job of this caller was last taken */
} pool_caller;

struct td_pool {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char name[16];
    int32_t queue_length, per_caller;
    int niceness;
    pool_caller *callers;
    int32_t waiting, running;
    uint64_t turns;
    bool ending;
    pthread_t *threads;
    int32_t number_of_threads;
};

/* ---- the queue, under the mutex ---- */

static pool_caller *find_caller(td_pool *pool, const char *name)
{
    pool_caller *c = pool->callers;
    while (c != NULL && strcmp(c->name, name) != 0) c = c->next;
    if (c != NULL || (c = calloc(1, sizeof *c)) == NULL) return c;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->next = pool->callers;
    pool->callers = c;
    return c;
}

static void drop_if_idle(td_pool *pool, pool_caller *caller)
{
    if (caller->waiting > 0 || caller->running > 0) return;
    pool_caller **link = &pool->callers;
    while (*link != caller) link = &(*link)->next;
    *link = caller->next;
    free(caller);
}

static pool_job *take_next(td_pool *pool)
{
    pool_caller *next = NULL;
    for (pool_caller *c = pool->callers; c != NULL; c = c->next) {
        if (c->first == NULL) continue;
        if (next == NULL || c->running < next->running ||
            (c->running == next->running && c->served < next->served))
            next = c;
    }
    if (next == NULL) return NULL;
    pool_job *job = next->first;
    next->first = job->next;
    if (next->first == NULL) next->last = NULL;
    next->waiting--;
    next->running++;
    next->served = ++pool->turns;
    pool->waiting--;
    pool->running++;
    return job;
}

/* ---- threads ---- */

static void *run(void *context)
{
    td_pool *pool = context;
    /* on Linux the priority is a thread's own; without it the pool only shares as others do */
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + pool->niceness);
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        pool_job *job = take_next(pool);
        if (job == NULL && pool->ending) break;
        if (job == NULL) {
            pthread_cond_wait(&pool->changed, &pool->mutex);
            continue;
        }
        pthread_mutex_unlock(&pool->mutex);
        job->work(job->context);
        pthread_mutex_lock(&pool->mutex);
        job->caller->running--;
        pool->running--;
        drop_if_idle(pool, job->caller);
        free(job);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

tb_status td_pool_create(const td_pool_options *options, td_pool **created, tb_error *error)
{
    *created = NULL;
    if (options->threads < 1 || options->queue_length < 1 || options->per_caller < 1)
        return tb_fail_field(
            error, TB_INVALID_ARGUMENT, "threads", "a pool of %d threads with %d jobs, %d a caller",
            (int)options->threads, (int)options->queue_length, (int)options->per_caller);
    td_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) return tb_fail_memory(error, sizeof *pool, "a pool");
    snprintf(pool->name, sizeof pool->name, "%s", options->name);
    pool->queue_length = options->queue_length;
    pool->per_caller = options->per_caller;
    pool->niceness = options->niceness;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->threads = calloc((size_t)options->threads, sizeof *pool->threads);
    tb_status status =
        pool->threads != NULL ? TB_OK : tb_fail_memory(error, sizeof *pool->threads, "a pool");
    while (status == TB_OK && pool->number_of_threads < options->threads) {
        pthread_t *thread = &pool->threads[pool->number_of_threads];
        if (pthread_create(thread, NULL, run, pool) != 0)
            status = tb_fail(error, TB_RESOURCE_EXHAUSTED, "cannot start %d threads of '%s'",
                             (int)options->threads, pool->name);
        else
            pthread_setname_np(*thread, pool->name), pool->number_of_threads++;
    }
    if (status == TB_OK)
        *created = pool;
    else
        td_pool_destroy(pool);
    return status;
}

tb_status td_pool_post(td_pool *pool, const char *caller, void (*work)(void *context),
                       void *context, tb_error *error)
{
    tb_status status = TB_OK;
    pool_job *job = malloc(sizeof *job);
    if (job == NULL) return tb_fail_memory(error, sizeof *job, "a job");
    *job = (pool_job){.work = work, .context = context, .posted_ns = td_monotonic_ns()};
    pthread_mutex_lock(&pool->mutex);
    pool_caller *c = pool->ending ? NULL : find_caller(pool, caller);
    if (pool->ending) {
        status = tb_fail(error, TB_UNAVAILABLE, "the server is stopping");
    } else if (c == NULL) {
        status = tb_fail_memory(error, sizeof *c, "a job");
    } else if (c->waiting >= pool->per_caller) {
        status = tb_fail(error, TB_RESOURCE_EXHAUSTED,
                         "%d requests of %s wait to be parsed already", (int)c->waiting, c->name);
    } else if (pool->waiting >= pool->queue_length) {
        status = tb_fail(error, TB_RESOURCE_EXHAUSTED, "%d requests wait to be parsed already",
                         (int)pool->waiting);
        drop_if_idle(pool, c);
    } else {
        job->caller = c;
        *(c->last != NULL ? &c->last->next : &c->first) = job;
        c->last = job;
        c->waiting++;
        pool->waiting++;
        pthread_cond_signal(&pool->changed);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (status != TB_OK) free(job);
    return status;
}

td_pool_use td_pool_measure(td_pool *pool)
{
    td_pool_use use = {0};
    int64_t oldest = INT64_MAX;
    pthread_mutex_lock(&pool->mutex);
    use.waiting = pool->waiting;
    use.running = pool->running;
    for (const pool_caller *c = pool->callers; c != NULL; c = c->next)
        if (c->first != NULL && c->first->posted_ns < oldest) oldest = c->first->posted_ns;
    pthread_mutex_unlock(&pool->mutex);
    if (oldest != INT64_MAX) use.oldest_seconds = 1e-9 * (double)(td_monotonic_ns() - oldest);
    return use;
}

void td_pool_stop(td_pool *pool)
{
    if (pool == NULL) return;
    pthread_mutex_lock(&pool->mutex);
    pool->ending = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
    for (int32_t i = 0; i < pool->number_of_threads; i++) pthread_join(pool->threads[i], NULL);
    pool->number_of_threads = 0;
}

void td_pool_destroy(td_pool *pool)
{
    if (pool == NULL) return;
    td_pool_stop(pool);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->threads);
    free(pool);
}
