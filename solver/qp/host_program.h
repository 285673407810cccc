/* Quadratic programs of a caller on the processor: one table of functions for each precision. */
#ifndef TB_QP_HOST_PROGRAM_H
#define TB_QP_HOST_PROGRAM_H

#include "base/arena.h"
#include "tribo_qp.h"

typedef struct tb_qp_host_calls {
    /* Makes a program in the arena; the numbers of `program` must outlive it. UNSUPPORTED if no
     * saddle system of the options takes its rows, RESOURCE_EXHAUSTED if memory is refused. */
    tb_status (*open)(const tb_qp_program *program, const tb_qp_options *options, tb_arena *arena,
                      void **host);
    /* The contract of tb_qp_solver_solve, without messages. */
    tb_status (*solve)(void *host, const double *f, const double *b, uint8_t *active, double *x,
                       double *lambda, tb_qp_result *result);
    /* Drops the factorization and the warm start. */
    void (*forget)(void *host);
} tb_qp_host_calls;

/* in double and in float (program.c) */
extern const tb_qp_host_calls tb_qp_host_calls_of_double, tb_qp_host_calls_of_float;

#endif
