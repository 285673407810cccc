/* Small calls as CUDA graphs: headers there, steps, headers back as one piece of work.
 *
 * A call for one world puts three pieces of work on the stream, and each start takes about as long as
 * a copy. The pieces are the same in every call of a kind (options, number of worlds): the same
 * buffers, options and sizes. So the first call of a kind captures them as a graph, later calls launch
 * the graph, and the graph that was used least recently goes when there are too many. */
#ifndef TB_GPU_GRAPH_H
#define TB_GPU_GRAPH_H

#include "gpu/device/side_streams.h"

enum { TB_GPU_GRAPHS = 16 };

/* A call to the card. */
typedef struct tb_gpu_call {
    tb_gpu_launch launch;
    const tb_gpu_side_streams *side_streams;
    bool single; /* precision */
    void *staging;
    void *block;
    /* the device's count of buffers: a graph refers to the allocations of its capture, so a buffer
     * that was allocated anew at the same address needs another graph */
    int64_t buffers;
    /* bytes of both: inputs of courses, headers, outputs of courses; the first two go to the card, the
     * last two come back */
    size_t inputs, headers, outputs;
} tb_gpu_call;

typedef struct tb_gpu_graphs {
    struct tb_gpu_graph {
        tb_gpu_call call;
        cudaGraphExec_t exec; /* NULL: empty */
        int64_t last_use;
    } graphs[TB_GPU_GRAPHS];
    int64_t uses, captures;
    bool off; /* the runtime has none */
} tb_gpu_graphs;

/* Copies the options that kernels read into a call that has been cleared. Names and functions of the
 * host stay out, and the bytes between the fields stay zero: equal options have equal bytes. */
void tb_gpu_call_set_options(tb_gpu_call *call, const tb_step_options *options);

/* Starts the call's copies and steps on the stream: from the graph of this kind of call, captured if
 * there is none. */
tb_status tb_gpu_graph_start(tb_gpu_graphs *graphs, tb_gpu_device *device, const tb_gpu_call *call,
                             tb_error *error);
/* The same without a graph. */
cudaError_t tb_gpu_call_start(const tb_gpu_call *call, cudaStream_t stream);
void tb_gpu_graphs_destroy(tb_gpu_graphs *graphs);

#endif
