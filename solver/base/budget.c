/* See budget.h. */
#include "base/budget.h"

#include <malloc.h>
#include <stdlib.h>
#include <time.h>

enum { CHECKS_A_LOOK = 1024 };

static _Thread_local tb_budget *bound;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void tb_budget_bind(tb_budget *budget)
{
    budget->taken_bytes = budget->wanted_bytes = 0;
    budget->checks = 0;
    budget->status = TB_OK;
    budget->end_ns = budget->seconds > 0 ? now_ns() + (int64_t)(budget->seconds * 1e9) : INT64_MAX;
    bound = budget;
}

void tb_budget_release(void)
{
    bound = NULL;
}

bool tb_budget_holds(void)
{
    tb_budget *b = bound;
    if (b == NULL) return true;
    if (b->status != TB_OK) return false;
    if (b->checks++ % CHECKS_A_LOOK != 0) return true;
    if (b->stop != NULL && b->stop(b->context))
        b->status = TB_CANCELLED;
    else if (b->end_ns != INT64_MAX && now_ns() > b->end_ns)
        b->status = TB_RESOURCE_EXHAUSTED;
    return b->status == TB_OK;
}

tb_status tb_budget_check(tb_error *error)
{
    return tb_budget_holds() ? TB_OK : tb_budget_fail(bound, error);
}

bool tb_budget_take(size_t bytes)
{
    tb_budget *b = bound;
    if (b == NULL) return true;
    if (b->status != TB_OK) return false;
    if (b->memory_bytes != 0 &&
        (bytes > b->memory_bytes || b->taken_bytes > b->memory_bytes - bytes)) {
        b->wanted_bytes = bytes > SIZE_MAX - b->taken_bytes ? SIZE_MAX : b->taken_bytes + bytes;
        b->status = TB_RESOURCE_EXHAUSTED;
        return false;
    }
    b->taken_bytes += bytes;
    return true;
}

void tb_budget_give_back(size_t bytes)
{
    /* memory from before the budget was bound may come back, too */
    if (bound != NULL)
        bound->taken_bytes -= bytes < bound->taken_bytes ? bytes : bound->taken_bytes;
}

tb_status tb_budget_fail(const tb_budget *b, tb_error *error)
{
    if (b == NULL || b->status == TB_OK) return TB_OK;
    if (b->status == TB_CANCELLED)
        return tb_fail(error, TB_CANCELLED, "the caller or the server no longer wants the scene");
    if (b->wanted_bytes > 0)
        return tb_fail(error, b->status,
                       "reading takes %zu bytes of memory or more, and %zu are allowed",
                       b->wanted_bytes, b->memory_bytes);
    return tb_fail(error, b->status, "reading takes longer than the %g s that are allowed",
                   b->seconds);
}

void *tb_budget_malloc(size_t bytes)
{
    if (!tb_budget_holds()) return NULL;
    void *memory = malloc(bytes);
    if (memory == NULL || tb_budget_take(malloc_usable_size(memory))) return memory;
    free(memory);
    return NULL;
}

void tb_budget_free(void *memory)
{
    if (memory != NULL) tb_budget_give_back(malloc_usable_size(memory));
    free(memory);
}
