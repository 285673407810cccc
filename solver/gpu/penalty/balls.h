/* Worlds of balls by the volume law on a GPU: the structures that the host and the kernel share. */
#ifndef TB_GPU_BALLS_H
#define TB_GPU_BALLS_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "penalty/card/balls.h"

enum {
    TB_GPU_BALLS_THREADS = 128,
    TB_GPU_BALLS_ALONE =
        1024, /* a world of up to so many shapes is a block's own if there are many */
    TB_GPU_BALLS_SCANNED =
        128,               /* a world of its own block: up to so many shapes have no hash table */
    TB_GPU_BALLS_SLOTS = 4 /* of the hash table for each shape, at least half of them free */
};

/* Pointers of the card; N: worlds x bodies, S: worlds x shapes. */
typedef struct tb_gpu_balls {
    tb_balls_scene scene;
    tb_volume_method method;
    int32_t worlds, steps;
    bool alone;                /* a block has worlds of its own and waits for no other */
    bool scans;                /* partners are found without the hash table */
    uint32_t slots;            /* of a world's table, a power of two */
    double *y;                 /* N x 14 */
    double *point;             /* N x 14 */
    double *slopes;            /* stages x N x 14 */
    const double *forces;      /* N x 12 */
    double *seen;              /* 2 x S x 12: used by turns */
    unsigned long long *heads; /* 2 x worlds x slots: evaluation, first shape; zero at first */
    int32_t *next;             /* 2 x S: the next shape of a slot, -1: none */
    double *deepest;           /* N */
    int32_t *step_contacts;    /* worlds x steps; zero at first */
    int32_t *diverged;         /* worlds; above all steps at first */
    int32_t *degenerate;       /* worlds; zero at first */
    unsigned *meeting;         /* 32, zero at first */
} tb_gpu_balls;

#ifdef __cplusplus
extern "C" {
#endif
/* Begins all steps on the stream and does not wait. */
cudaError_t tb_gpu_start_balls(const tb_gpu_balls *balls, int32_t processors, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
