/* Poulsen's sweeps on a GPU: the structures that the host and the kernel share. */
#ifndef TB_GPU_ROWS_H
#define TB_GPU_ROWS_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "solve/coloured/block_rows_sweep.h"

enum { TB_GPU_ROWS_BLOCKS = 2 }; /* blocks of threads on a multiprocessor */

/* Pointers of the card. */
typedef struct tb_gpu_rows {
    tb_row_run run;
    double *before
        [2]; /* contacts x 4: impulses before the iteration, alternating; first those of `run` */
    unsigned long long *largest; /* 3: bits of the largest change, used by turns; zero at first */
    unsigned *meeting;           /* 32, zero at first */
    tb_row_outcome *outcome;
} tb_gpu_rows;

#ifdef __cplusplus
extern "C" {
#endif
/* The backend's entry. */
tb_status tb_gpu_rows_iterate(int32_t device, const tb_row_run *run, tb_row_outcome *outcome,
                              tb_error *error);
/* Begins all iterations on the stream and does not wait. */
cudaError_t tb_gpu_start_rows(const tb_gpu_rows *rows, int32_t processors, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
