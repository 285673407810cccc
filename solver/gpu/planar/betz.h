/* Betz's sweeps on a card: the structures that the host and the kernel share. */
#ifndef TB_GPU_BETZ_H
#define TB_GPU_BETZ_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "solve/planar/betz_batch.h"

enum {
    TB_GPU_BETZ_SHARED = 200 << 10, /* bytes of a block of threads for its contacts */
    TB_GPU_BETZ_THREADS = 256,
    TB_GPU_BETZ_BLOCKS = 1,   /* blocks of threads on a multiprocessor */
    TB_GPU_BETZ_COUNTERS = 64 /* unsigned numbers of a team: its meeting, two votes */
};

/* Pointers of the card. */
typedef struct tb_gpu_betz {
    tb_betz_batch batch;
    double *s, *r;      /* dofs; rows */
    double *work;       /* of mprgp: TB_MPRGP_ARRAYS arrays of rows */
    uint8_t *flags;     /* blocks */
    unsigned *counters; /* teams x TB_GPU_BETZ_COUNTERS, zero before the launch */
    int32_t team;       /* blocks of threads that share an island */
} tb_gpu_betz;

#ifdef __cplusplus
extern "C" {
#endif
/* The backend's entries. */
tb_status tb_gpu_planar_open(int32_t device, void **context, tb_error *error);
tb_status tb_gpu_planar_sweep(void *context, const tb_betz_batch *batch, bool fresh,
                              tb_error *error);
void tb_gpu_planar_close(void *context);

/* Begins the sweeps on the stream and does not wait: `teams` teams at once, all of them on the card. */
cudaError_t tb_gpu_start_betz(const tb_gpu_betz *betz, int32_t teams, cudaStream_t stream);
/* The same for products of mprgp: a block of threads for each island. */
cudaError_t tb_gpu_start_mprgp(const tb_gpu_betz *betz, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
