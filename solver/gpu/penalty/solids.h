/* Worlds of solids by the volume law on a GPU: the structures that the host and the kernel share. */
#ifndef TB_GPU_SOLIDS_H
#define TB_GPU_SOLIDS_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "gpu/device/device.h"
#include "penalty/card/solids.h"

enum { TB_GPU_SOLIDS_THREADS = 128, TB_GPU_SOLIDS_MEETING = 32 };

/* Pointers of the card; N: worlds x bodies. */
typedef struct tb_gpu_solids {
    tb_solids_scene scene;
    tb_volume_method method;
    tb_solids_room room;
    int32_t worlds, steps;
    int32_t teams, blocks, threads; /* blocks of a team, threads of a block */
    double *y;                      /* N x 14 */
    double *point;                  /* N x 14 */
    double *slopes;                 /* stages x N x 14 */
    const double *forces;           /* N x 12 */
    double *deepest;                /* N */
    int32_t *step_contacts;         /* worlds x steps; zero at first */
    int32_t *diverged;              /* worlds; above all steps at first */
    int32_t *degenerate;            /* worlds; zero at first */
    char *team_memory, *lane_memory;
    size_t team_bytes, lane_bytes;
    unsigned *meetings; /* teams x 32, zero at first */
    int32_t *needed;    /* 4: pairs, fragments, vertices, faces that had no room; zero at first */
} tb_gpu_solids;

#ifdef __cplusplus
extern "C" {
#endif
/* Blocks of `threads` that a multiprocessor holds at once. */
cudaError_t tb_gpu_solids_resident(int threads, int *blocks);
/* Begins all steps on the stream and does not wait. */
cudaError_t tb_gpu_start_solids(const tb_gpu_solids *solids, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
