/* Parallel loops by OpenMP: see parallel.h.
 *
 * Inside a parallel region a loop runs in its calling thread: a batch of worlds is parallel over
 * the worlds, and the loops of each world gain nothing from more threads. */
#include "base/parallel.h"

#include <omp.h>

/* OpenMP ends the process when it cannot start a thread. This limit is above the processors of a
 * machine and keeps the stacks, 8 MB each, within the address space. */
enum { THREAD_LIMIT = 512 };

int32_t tb_parallel_threads(int32_t threads)
{
    if (omp_in_parallel()) return 1;
    /* OpenMP's default is all processors, or OMP_NUM_THREADS */
    const int32_t wanted = threads > 0 ? threads : (int32_t)omp_get_max_threads();
    if (wanted < 1) return 1;
    return wanted < THREAD_LIMIT ? wanted : THREAD_LIMIT;
}

void tb_parallel_for(int32_t count, int32_t grain, int32_t threads, tb_parallel_function *function,
                     void *context)
{
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    const int32_t chunks = (count - 1) / grain + 1;
    int32_t team = tb_parallel_threads(threads);
    if (team > chunks) team = chunks;

    if (team == 1) {
        for (int32_t i = 0; i < count; i++) function(context, i, 0);
        return;
    }

#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        const int32_t thread = (int32_t)omp_get_thread_num();
        const int32_t first = chunk * grain; /* below count: no overflow */
        const int32_t last = count - first > grain ? first + grain : count;
        for (int32_t i = first; i < last; i++) function(context, i, thread);
    }
}
