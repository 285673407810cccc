/* Structures shared by the host's side and the kernel of quadratic programs, in both languages.
 *
 * One launch solves one program: all its data lie on the card, and the blocks of the grid go
 * through the whole method together, factorizations, sets, borders and residuals; the host fetches
 * the result. Rows are bounds on single variables. The working memory that a launch of SCHURPA
 * leaves can serve the next one, for another f, b and set. */
#ifndef TB_GPU_PROGRAM_H
#define TB_GPU_PROGRAM_H

#include <cuda_runtime_api.h>

#include "tribo_qp.h"
#include "base/base.h"

typedef struct tb_gpu_program {
    int32_t n, half_bandwidth, constraints, equalities;
    int64_t stride; /* numbers from one column of the hessian to the next, a multiple of 16 */
    /* in working precision; numbers of the hessian's columns behind their band are not read */
    void *hessian, *f, *value, *b;
    int32_t *first, *of; /* constraints of variable j: of[first[j]] ... of[first[j + 1]] */
    uint8_t *active;     /* constraints, in and out */
    double *x, *lambda;  /* out */
    tb_qp_result *result;
    tb_qp_options options; /* tolerance and tie decided */
    int32_t limit;         /* bordered columns */
    int32_t blocks;        /* of the grid, at least TB_GPU_FEWEST_BLOCKS */
    size_t block_memory;   /* bytes of shared memory of one */
    void *work;            /* tb_gpu_program_scratch bytes */
    /* the work holds K0's factorization of the last launch, and its columns: begin from there */
    int32_t again;
} tb_gpu_program;

enum { TB_GPU_FEWEST_BLOCKS = 4, TB_GPU_PROGRAM_THREADS = 256 };

#ifdef __cplusplus
extern "C" {
#endif
/* tb_qp_solver_open, solve, forget and close on a card, for bounds, and the end of a room
 * (qp/facet_coordinates.h); the backend's entries. */
tb_status tb_gpu_program_open(const tb_qp_program *program, const tb_qp_options *options,
                              void **context, tb_error *error);
tb_status tb_gpu_program_solve(void *context, const double *f, const double *b, uint8_t *active,
                               double *x, double *lambda, tb_qp_result *result, tb_error *error);
void tb_gpu_program_forget(void *context);
void tb_gpu_program_close(void *context);
void tb_gpu_program_leave(void *room);

/* Bytes of working memory; `program` needs its sizes, options, limit and blocks. */
TB_BOTH_PRECISIONS(size_t, tb_gpu_program_scratch, (const tb_gpu_program *program))
/* Least shared memory of a block. */
TB_BOTH_PRECISIONS(size_t, tb_gpu_program_memory, (const tb_gpu_program *program))
/* Begins the work on the stream and does not wait. */
TB_BOTH_PRECISIONS(cudaError_t, tb_gpu_start_program,
                   (const tb_gpu_program *program, cudaStream_t stream))
#ifdef __cplusplus
}
#endif

#endif
