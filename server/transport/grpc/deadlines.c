/* Calls by the time of their deadline: a binary heap a loop, the soonest at its top. */
#include <stdlib.h>

#include "base/error.h"
#include "transport/grpc/grpc_internal.h"

static void place(rpc_loop *loop, size_t at, rpc_call *call)
{
    loop->deadlines[at] = call;
    call->heap_index = at + 1;
}

static bool sooner(const rpc_call *a, const rpc_call *b)
{
    return a->base.deadline_ns < b->base.deadline_ns;
}

static void rise(rpc_loop *loop, size_t at, rpc_call *call)
{
    for (; at > 0 && sooner(call, loop->deadlines[(at - 1) / 2]); at = (at - 1) / 2)
        place(loop, at, loop->deadlines[(at - 1) / 2]);
    place(loop, at, call);
}

static void sink(rpc_loop *loop, size_t at, rpc_call *call)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= loop->deadline_count) break;
        if (child + 1 < loop->deadline_count &&
            sooner(loop->deadlines[child + 1], loop->deadlines[child]))
            child++;
        if (!sooner(loop->deadlines[child], call)) break;
        place(loop, at, loop->deadlines[child]);
        at = child;
    }
    place(loop, at, call);
}

bool rpc_deadline_add(rpc_call *call)
{
    rpc_loop *loop = call->loop;
    if (call->base.deadline_ns == INT64_MAX) return true;
    if (loop->deadline_count == loop->deadline_capacity) {
        const size_t capacity = loop->deadline_capacity == 0 ? 64 : 2 * loop->deadline_capacity;
        rpc_call **grown = realloc(loop->deadlines, capacity * sizeof *grown);
        if (grown == NULL) return false;
        loop->deadlines = grown;
        loop->deadline_capacity = capacity;
    }
    rise(loop, loop->deadline_count++, call);
    return true;
}

void rpc_deadline_remove(rpc_call *call)
{
    rpc_loop *loop = call->loop;
    if (call->heap_index == 0) return;
    const size_t at = call->heap_index - 1;
    call->heap_index = 0;
    rpc_call *last = loop->deadlines[--loop->deadline_count];
    if (last == call) return;
    if (at > 0 && sooner(last, loop->deadlines[(at - 1) / 2]))
        rise(loop, at, last);
    else
        sink(loop, at, last);
}

int64_t rpc_deadlines_run(rpc_loop *loop, int64_t now)
{
    tb_error error = {0};
    while (loop->deadline_count > 0) {
        rpc_call *call = loop->deadlines[0];
        if (call->base.deadline_ns > now) return call->base.deadline_ns;
        rpc_deadline_remove(call);
        tb_fail(&error, TB_DEADLINE_EXCEEDED, "the deadline passed before the answer was there");
        rpc_call_abort(call, &error, 0);
    }
    return INT64_MAX;
}
