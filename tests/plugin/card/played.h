/* The played runtime's side of the played kernels. */
#ifndef PLAYED_H
#define PLAYED_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why nothing works any longer, or cudaSuccess. */
cudaError_t played_state(void);
/* The same, and whether a stream is of the card that was entered. */
cudaError_t played_use(cudaStream_t stream);
/* Takes as long as a launch is to take. */
void played_launch(void);

/* How often the backend has asked the runtime for something, since the process began; for tests,
 * which find it in the plug-in by its name. */
typedef struct played_counts {
    int64_t launches; /* of steps or copies, or of a graph */
    int64_t tables;   /* launches that made tables of models */
    int64_t copies, allocations, waits, events, others;
    int64_t questions; /* whether a stream has work left */
} played_counts;
__attribute__((visibility("default"))) void played_tell(played_counts *counts);
/* For the played kernels: one more. */
void played_count_launch(void);
void played_count_tables(void);

/* ---- captured streams (graphs.c) ---- */

typedef cudaError_t played_work(const void *argument);
/* Whether the stream is captured: then the work is kept for the graph's launches, with a copy of
 * its argument; else it is to be done now. */
bool played_kept(cudaStream_t stream, played_work *function, const void *argument, size_t bytes);
/* The graph that captures a stream, or NULL; and a mark that another stream takes part in it. */
struct played_graph *played_capture_of(cudaStream_t stream);
void played_set_capture(cudaStream_t stream, struct played_graph *graph);
void played_join(struct played_graph *graph, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
