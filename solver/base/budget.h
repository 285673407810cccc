/* Budgets: limits of time and memory for reading and compiling one scene.
 *
 * Scenes come from untrusted clients, and a short text can cause much computation. A budget is
 * thread-local, like errno, so importers pass no extra parameter. The caller binds a budget
 * around a load; loops over elements and points call tb_budget_check; arenas and growing arrays
 * charge their memory to the budget. A thread without a budget has no limit. An exhausted budget
 * stays exhausted: every later check fails in the same way, and tb_budget_fail gives the cause. */
#ifndef TB_BUDGET_H
#define TB_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tb_budget {
    double seconds;      /* s of the monotonic clock since tb_budget_bind; 0: no limit */
    size_t memory_bytes; /* largest total held at one time; 0: no limit */
    /* Returns whether the caller cancels the load; called every few thousand checks; NULL:
     * never. */
    bool (*stop)(void *context);
    void *context;

    /* filled while bound */
    size_t taken_bytes, wanted_bytes; /* wanted: `taken` plus a refused request */
    int64_t end_ns;
    uint32_t checks;
    tb_status status; /* OK, or the status that ended the budget */
} tb_budget;

/* Binds a budget to this thread until tb_budget_release; the caller fills the first part. Budgets
 * do not nest. */
void tb_budget_bind(tb_budget *budget);
void tb_budget_release(void);

/* Whether the thread may continue. Cheap: reads the clock once in 1024 calls. */
bool tb_budget_holds(void);
/* The same as a status: CANCELLED or RESOURCE_EXHAUSTED. */
tb_status tb_budget_check(tb_error *error);
/* Charges memory to the thread's budget before the caller allocates it. False: the request
 * exceeds the rest, and the budget has ended. */
bool tb_budget_take(size_t bytes);
void tb_budget_give_back(size_t bytes);
/* The failure that ended the budget, with its message in `error`; OK while the budget lasts. */
tb_status tb_budget_fail(const tb_budget *budget, tb_error *error);

/* malloc and free that charge the budget, for libraries that take an allocator. */
void *tb_budget_malloc(size_t bytes);
void tb_budget_free(void *memory);

#endif
