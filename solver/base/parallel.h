/* Parallel loops. The result of an index must not depend on its thread; then no result depends
 * on the number of threads. */
#ifndef TB_PARALLEL_H
#define TB_PARALLEL_H

#include <stdint.h>

/* Processes index `i` in thread `thread` (0 to threads - 1). */
typedef void tb_parallel_function(void *context, int32_t i, int32_t thread);

/* Runs function(context, i, thread) for 0 <= i < count on up to `threads` threads (0: all
 * processors), distributing `grain` consecutive indices at a time. Runs in the calling thread,
 * as thread 0, if one thread suffices or the call is inside another parallel loop. */
void tb_parallel_for(int32_t count, int32_t grain, int32_t threads, tb_parallel_function *function,
                     void *context);

/* The most threads that tb_parallel_for would use for `threads` if called here (0: all
 * processors, or OMP_NUM_THREADS): the size of arrays with one entry per thread. */
int32_t tb_parallel_threads(int32_t threads);

#endif
