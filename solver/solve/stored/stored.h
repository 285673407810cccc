/* Prox iterations on a stored T (Nützi, chapter 5): the system, the variants, the processor's
 * loops.
 *
 * The loops go through T in the order of the card's kernels, with products and sums rounded
 * separately, so that both give the same bytes. `jor` and `full-sor` are exempt: a card cuts their
 * sums into slices. */
#ifndef TB_STORED_H
#define TB_STORED_H

#include "contact/contact.h"

/* Which iteration a variant makes, and how a card goes about it. */
typedef enum tb_stored_form {
    TB_STORED_LIBRARY,       /* JOR: a BLAS product, an addition, a projection */
    TB_STORED_LIBRARY_FUSED, /* JOR: a BLAS product; addition and projection in one */
    TB_STORED_SPLIT,         /* JOR: product, projection, stop test */
    TB_STORED_FUSED,         /* JOR: product and projection in one, `group` rows a block */
    TB_STORED_CORES,         /* JOR: the processor's threads */
    TB_STORED_ALL_IN_ONE,    /* JOR: all iterations in one launch */
    TB_STORED_FULL,          /* SOR: steps A and B by turns, `group` contacts a diagonal block */
    TB_STORED_FULL_IN_ONE,   /* SOR: all iterations in one launch */
    TB_STORED_RELAXED,       /* Jacobi within `group` contacts, Gauss-Seidel between the groups */
    TB_STORED_SPARSE_FULL,   /* SOR on block CSR */
    TB_STORED_SPARSE_RELAXED /* relaxed on block CSR */
} tb_stored_form;

typedef struct tb_stored_variant {
    const char *name, *summary;
    tb_stored_form form;
    int32_t group; /* contacts; larger than a system: all of them */
    bool padded;   /* columns begin at whole sectors of a card's memory */
} tb_stored_variant;

/* NULL: no such name. */
const tb_stored_variant *tb_stored_variant_find(const char *name);
/* Whether the form reads T from block CSR. */
bool tb_stored_is_sparse(tb_stored_form form);

/* T in blocks of 3 x 3, rows of blocks compressed, columns ascending. */
struct tb_prox_system {
    int32_t contacts;
    int64_t blocks;
    int32_t *row_start; /* contacts + 1 */
    int32_t *column;    /* blocks */
    double *value;      /* blocks x 9, a block by rows */
    double *d;          /* contacts x 3, N s */
    double *mu;         /* contacts */
};

/* OK, or RESOURCE_EXHAUSTED if the machine has less free memory. */
tb_status tb_stored_check_memory(double bytes, const char *what, tb_error *error);

/* The system of a problem of contacts; the contract of tb_prox_system_of_problem. */
tb_status tb_stored_system_of(const tb_problem *problem, double alpha, tb_prox_system **made,
                              tb_error *error);

/* ---- the processor's loops, in both precisions ---- */

/* Iterates from `lambda` (3 numbers a contact, N s), which receives the result, and fills the
 * result's iterations, converged and seconds. RESOURCE_EXHAUSTED, without a message. */
TB_BOTH_PRECISIONS(tb_status, tb_stored_solve,
                   (const tb_prox_system *system, const tb_stored_variant *variant,
                    const tb_prox_options *options, double *lambda, tb_prox_result *result))

/* sum (3 numbers a contact) = the upper part of T by groups of contacts times lambda: where the
 * sparse relaxed iteration begins. */
void tb_stored_start_sparse(const tb_prox_system *system, int32_t group, const double *lambda,
                            double *sum);

#endif
