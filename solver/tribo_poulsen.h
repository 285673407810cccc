/* libtribo: Poulsen's parallel solvers on his ball grids and ball piles (A Parallel Gauss-Seidel Method for
 * Computing Contact Forces, DIKU 2010). Conventions, statuses and errors are those of tribo.h. */
#ifndef TRIBO_POULSEN_H
#define TRIBO_POULSEN_H

#include "tribo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Order of a Gauss-Seidel iteration. */
typedef enum tb_poulsen_colouring {
    TB_POULSEN_SEQUENTIAL, /* contact order, on one thread */
    TB_POULSEN_RELAXED,    /* first-free colours; small ones merged into an unsafe one, the last */
    TB_POULSEN_RIGID,      /* first-free colours, all safe */
    TB_POULSEN_BALANCED,   /* colours of one size */
    TB_POULSEN_NAIVE       /* by CSP alone: each worker sweeps its range by its own w */
} tb_poulsen_colouring;

/* Division of an iteration between threads. */
typedef enum tb_poulsen_processes {
    TB_POULSEN_LOOPS,  /* OpenMP loops over shared arrays */
    TB_POULSEN_CSP,    /* processes joined by channels: an accumulator, and workers that have
                          contacts of their own (sections 6.2, 6.3, 7.1 and 7.2) */
    TB_POULSEN_EXTREME /* likewise, a contact is a task that a dispatcher sends to any worker
                          (section 6.1) */
} tb_poulsen_processes;

typedef enum tb_poulsen_extreme {
    TB_EXTREME_DATA,       /* messages hold the numbers of a task */
    TB_EXTREME_POINTERS,   /* messages hold pointers to them */
    TB_EXTREME_ONE_THREAD, /* likewise, and dispatcher and accumulator take turns in one thread */
    TB_EXTREME_MERGED      /* likewise, and they are one process */
} tb_poulsen_extreme;

/* Steps by which Poulsen improves the processes. Steps named by w improve factorized Jacobi. */
typedef struct tb_poulsen_csp {
    tb_poulsen_extreme extreme;
    bool compressed; /* a worker's update of w holds the bodies of its contacts, not all */
    bool double_w;   /* the accumulator adds to another w than the one that workers read */
    bool lookahead;  /* a worker begins the next iteration before the accumulator allows it, by a w
                          that has its own changes alone; results depend on the time it takes */
    int32_t page;    /* contacts of a message; 0: all of the worker */
    bool own_channels; /* a channel from each worker and a guard; false: one channel of all */
    int32_t
        subtasks; /* T: parts into which a worker's blocks are cut; 1: one range a worker; 0: 100,
                          with few contacts at least 10 */
    bool single;  /* T and impulses of Jacobi in float */
    bool poison;  /* channels end the workers, instead of a status in a last message */
} tb_poulsen_csp;

typedef struct tb_poulsen_options {
    bool jacobi;        /* false: Gauss-Seidel */
    tb_storage storage; /* FACTORIZED, DENSE (block-row A) or T (block-row T = 1 - R A) */
    tb_poulsen_colouring colouring;
    bool unsafe_first; /* RELAXED by LOOPS on the CPU: the unsafe colour is not the last */
    int32_t colours;   /* BALANCED; 0: the largest degree of a contact */
    double r;          /* kg, the r of every row */
    double nu;         /* factor on r after a growth of epsilon */
    int32_t tries;     /* reductions of r before the solve ends; 0: growth of epsilon is ignored */
    int32_t iterations;
    double gamma;    /* the solve ends once result gamma is at most this; 0: never */
    int32_t threads; /* 0: all processors; by LOOPS results are the same bytes on any number,
                                  by processes it is the number of workers */
    tb_backend_choice backend; /* GPU: all iterations in one launch, to the CPU's bytes; neither the
                                  sequential order nor gamma. AUTO is the CPU */
    int32_t device;            /* of the backend */
    uint64_t memory_limit;     /* bytes, largest size of A or T; 0: the machine's memory */
    tb_poulsen_processes processes;
    tb_poulsen_csp csp; /* of processes other than LOOPS */
} tb_poulsen_options;

/* Factorized, sequential, r = 5 kg, nu 0.5, 5 tries, 50 iterations, one thread; csp: compressed
 * updates, two w, pages of 64 contacts, a channel for each worker. */
tb_poulsen_options tb_poulsen_defaults(void);

typedef struct tb_poulsen_result {
    int32_t iterations, reductions, colours;
    double epsilon; /* N s, largest change of an impulse in the last iteration */
    double gamma;   /* 1/2 || prox(lambda - 100 (A lambda + b)) - lambda ||^2 */
    double r;       /* kg, final value */
    double ahead;   /* share of contacts solved by lookahead */
    /* of CSP: share of the workers' time in which they wait for orders; standard deviation over mean
     * of the times of a worker's tasks, the largest; seconds to end the workers */
    double waited, jitter, shutdown_seconds;
    double setup_seconds, seconds; /* colouring and A or T; iterations */
    uint64_t matrix_bytes;         /* of A or T */
    uint64_t hash;                 /* of the impulses' bytes */
} tb_poulsen_result;

/* Solves a scene's contacts once, from zero impulses. NOT_FOUND: not a scene of Poulsen's;
 * INVALID_ARGUMENT names the option, including too small a number of colours;
 * RESOURCE_EXHAUSTED names the bytes of A or T. */
tb_status tb_poulsen_solve(const char *scene, const tb_poulsen_options *options,
                           tb_poulsen_result *result, tb_error *error);

#ifdef __cplusplus
}
#endif

#endif
