/* Prox iterations on a stored matrix T: the structures that the host and the kernels share.
 *
 * T = I - R^-1 G lies by columns, `pitch` numbers apart, or as block CSR of 3 x 3 blocks. Vectors are
 * in contact order: normal, tangent 1, tangent 2 of the first contact, then of the next (Nützi 5.7).
 * All pointers are the card's; numbers have the kernels' precision. */
#ifndef TB_GPU_STORED_H
#define TB_GPU_STORED_H

#include <cuda_runtime_api.h>

#include "step/step.h"

typedef struct tb_gpu_stored {
    int32_t contacts;
    int64_t pitch;  /* numbers from one column of T to the next */
    const void *t;  /* dense T, NULL for the sparse variants */
    const void *d;  /* 3 contacts, N s */
    const void *mu; /* contacts */
    void *old,
        *next;     /* impulses, N s: read and written by a Jacobi iteration; `next` by all others */
    void *sum;     /* t of the SOR variants (Nützi 5.13); the product of the library's gemv */
    void *partial; /* slices x 3 contacts: products of the column slices */
    int32_t slices;            /* of the columns */
    int32_t group;             /* contacts of a diagonal block or of a relaxed group */
    int32_t index;             /* of the block or group of this launch */
    int32_t iterations;        /* of a launch that goes through several */
    int32_t check;             /* the stop test is made at each iteration of this launch */
    uint32_t left_out;         /* tb_prox_part, of TB_GPU_STORED_SOR_A */
    double relative, absolute; /* of the stop test (Nützi 4.49) */
    int32_t *stopped;          /* 1 as long as no element fails the test */
    int32_t *finished;         /* iterations that a launch of several has made */
    unsigned *counters;        /* TB_GPU_STORED_COUNTERS, zero before the first launch */
    void *exchange;            /* slots of the cooperative Full SOR, all bits set before it */
    /* block CSR, and for each group the first block of each row whose column is in the group or
     * behind it */
    const int32_t *row_start, *column, *group_start;
    const void *value;
} tb_gpu_stored;

/* Counters: meetings of blocks, a ticket, finished contacts. */
enum { TB_GPU_STORED_COUNTERS = 32 * 2 };

/* One launch each. Names in brackets are those of the listings. */
typedef enum tb_gpu_stored_step {
    TB_GPU_STORED_GEMV,       /* next = T old + d (matrixVectorMultGPU) */
    TB_GPU_STORED_PROX,       /* next is projected in place (proxGPU) */
    TB_GPU_STORED_CANCEL,     /* the stop test of old and next (cancelCriterionGPU) */
    TB_GPU_STORED_FUSED_126,  /* product and projection (jorProxGPU), 126 rows and 128 threads */
    TB_GPU_STORED_FUSED_192,  /* 192 rows and threads */
    TB_GPU_STORED_ADD,        /* next = sum + d */
    TB_GPU_STORED_ADD_PROX,   /* next = prox(sum + d) */
    TB_GPU_STORED_START,      /* sum = upper part of T old: by group, or with the staircase */
    TB_GPU_STORED_SOR_A,      /* diagonal block `index` (sorProxStepA) */
    TB_GPU_STORED_SOR_B,      /* its columns off the diagonal (sorProxStepB) */
    TB_GPU_STORED_RELAXED_A,  /* group `index` (sorProxRelaxedStepA) */
    TB_GPU_STORED_RELAXED_B,  /* its columns (sorProxRelaxedStepB) */
    TB_GPU_STORED_SPARSE_B,   /* the same on block CSR */
    TB_GPU_STORED_SPARSE_SOR, /* an iteration of the sparse Full SOR */
    TB_GPU_STORED_JOR,        /* `iterations` of JOR in one cooperative launch */
    TB_GPU_STORED_SOR,        /* `iterations` of Full SOR in one cooperative launch */
    TB_GPU_STORED_STEPS
} tb_gpu_stored_step;

enum {
    TB_GPU_STORED_JOR_BLOCKS = 4,    /* blocks of the cooperative JOR on a multiprocessor */
    TB_GPU_STORED_JOR_ROWS = 512,    /* most rows of a tile of its product */
    TB_GPU_STORED_SOR_CONTACTS = 16, /* contacts of a diagonal block of the cooperative Full SOR */
    TB_GPU_STORED_SOR_AHEAD =
        2, /* diagonal blocks whose columns the next ones' solver adds itself */
    TB_GPU_STORED_SOR_FEWEST = TB_GPU_STORED_SOR_AHEAD + 3, /* diagonal blocks that it needs */
    TB_GPU_STORED_SOR_SLOTS = 4 /* kinds of slots, one of each for every row of diagonal blocks */
};

#ifdef __cplusplus
extern "C" {
#endif
/* tb_prox_iterate on a card; the backend's entry. */
tb_status tb_gpu_prox_iterate(const tb_prox_system *system, const tb_prox_options *options,
                              double *lambda, tb_prox_result *result, tb_error *error);

/* Begins a step on the stream and does not wait. `processors` is the card's number. */
TB_BOTH_PRECISIONS(cudaError_t, tb_gpu_start_stored,
                   (const tb_gpu_stored *stored, tb_gpu_stored_step step, int32_t processors,
                    cudaStream_t stream))
#ifdef __cplusplus
}
#endif

#endif
