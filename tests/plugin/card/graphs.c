/* Graphs of the played card: requests to a stream under capture are kept, and done when the
 * graph is launched. TRIBO_TEST_NO_GRAPHS=1 has none: a capture is refused, and the caller works
 * without. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "played.h"

enum { STREAMS = 16 };

struct work {
    struct work *next;
    played_work *function;
    unsigned char argument[];
};

/* A capture and its graph. */
struct played_graph {
    struct work *first, **last;
    cudaStream_t streams[STREAMS]; /* that take part */
    int count;
};

struct played_exec {
    struct work *first;
};

static struct work *work_of(played_work *function, const void *argument, size_t bytes)
{
    struct work *w = calloc(1, sizeof *w + bytes);
    if (w == NULL) abort();
    w->function = function;
    memcpy(w->argument, argument, bytes);
    return w;
}

static void free_work(struct work *first)
{
    for (struct work *w = first, *next; w != NULL; w = next) {
        next = w->next;
        free(w);
    }
}

bool played_kept(cudaStream_t stream, played_work *function, const void *argument, size_t bytes)
{
    struct played_graph *graph = played_capture_of(stream);
    if (graph == NULL) return false;
    *graph->last = work_of(function, argument, bytes);
    graph->last = &(*graph->last)->next;
    return true;
}

void played_join(struct played_graph *graph, cudaStream_t stream)
{
    if (graph == NULL || played_capture_of(stream) == graph) return;
    if (graph->count == STREAMS) abort();
    graph->streams[graph->count++] = stream;
    played_set_capture(stream, graph);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    const char *none = getenv("TRIBO_TEST_NO_GRAPHS");
    (void)mode;
    if (none != NULL || played_capture_of(stream) != NULL) return cudaErrorInvalidValue;
    struct played_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) return cudaErrorMemoryAllocation;
    graph->last = &graph->first;
    played_join(graph, stream);
    return played_use(stream);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = played_capture_of(stream);
    if (*graph == NULL || (*graph)->streams[0] != stream) return cudaErrorInvalidValue;
    for (int i = 0; i < (*graph)->count; i++) played_set_capture((*graph)->streams[i], NULL);
    return played_state();
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    *exec = calloc(1, sizeof **exec);
    if (*exec == NULL) return cudaErrorMemoryAllocation;
    (*exec)->first = graph->first;
    graph->first = NULL;
    return played_state();
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t result = played_use(stream);
    played_count_launch();
    for (struct work *w = exec->first; w != NULL && result == cudaSuccess; w = w->next)
        result = w->function(w->argument);
    return result;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    free_work(graph->first);
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    free_work(exec->first);
    free(exec);
    return cudaSuccess;
}
