/* Budgets: how much time and memory the reading and compiling of one scene may take.
 *
 * Scenes come from strangers, and short texts can ask for much work. A budget belongs to the thread
 * that reads, as errno does, so that importers hand no further parameter down: whoever loads a
 * scene for somebody else binds a budget around the call, loops over elements and points ask
 * tb_budget_check, and arenas and growing arrays take their memory from the budget. A thread
 * without a budget is never stopped. A budget that is used up stays so: every later question fails
 * in the same way, and tb_budget_fail says why. */
#ifndef TB_BUDGET_H
#define TB_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tb_budget {
    double seconds;      /* of the monotonic clock from tb_budget_bind on; 0: no limit */
    size_t memory_bytes; /* taken at once; 0: no limit */
    /* Whether the work is no longer wanted; asked every few thousand checks; NULL: never. */
    bool (*stop)(void *context);
    void *context;

    /* filled while bound */
    size_t taken_bytes, wanted_bytes; /* wanted: what `taken` would be after a refused request */
    int64_t end_ns;
    uint32_t checks;
    tb_status status; /* OK, or how the budget ended */
} tb_budget;

/* Binds a budget to this thread until tb_budget_release; the caller fills the first part. Budgets
 * do not nest. */
void tb_budget_bind(tb_budget *budget);
void tb_budget_release(void);

/* Whether the thread's work may go on. Cheap: looks at the clock once in 1024 calls. */
bool tb_budget_holds(void);
/* The same as a status: CANCELLED or RESOURCE_EXHAUSTED. */
tb_status tb_budget_check(tb_error *error);
/* Takes memory from the thread's budget, before it is asked from the system. False: it is more than
 * is left, and the budget has ended. */
bool tb_budget_take(size_t bytes);
void tb_budget_give_back(size_t bytes);
/* The failure that ended the budget, with its message in `error`; OK while the budget lasts. */
tb_status tb_budget_fail(const tb_budget *budget, tb_error *error);

/* malloc and free that take from the budget, for libraries that ask for an allocator. */
void *tb_budget_malloc(size_t bytes);
void tb_budget_free(void *memory);

#endif
