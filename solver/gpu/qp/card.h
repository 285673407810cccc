/* Data shared by the blocks that solve one program. */
#ifndef TB_GPU_CARD_H
#define TB_GPU_CARD_H

#include "gpu/qp/band_shape.h"

static const int MAXIMA = 12, BUCKETS = 32,
                 COLUMNS = 32; /* COLUMNS: right-hand sides side by side */

/* Votes of an iteration's blocks; sums of integers, so in any order. */
typedef struct vote {
    int changed, first; /* constraints' variables that change, and the least of them */
    int fresh;          /* of them, the number without a column of their own */
    unsigned long long hash;
    int candidates[BUCKETS]; /* variables by how near they are to a change: 2^-bucket */
} vote;

typedef struct card_control {
    meeting all, chain[CHAINS], workers[CHAINS + 1], ahead[CHAINS + 1];
    vote votes[2];
    int bad;                    /* position of a pivot that is too small; free_count: none */
    int stop;                   /* the launch ends */
    int action, single, cutoff; /* of the manager, see schurpa_sets.h */
    int used;                   /* columns of R that the present border has */
    int fresh_at_start;         /* columns that the first set needs and does not have */
    int singular;               /* the Schur matrix */
    int shifted;                /* whether a bound that holds is not at zero */
    int visits, round;
    double before; /* the residual before a refinement */
    unsigned long long hash;
    double largest[MAXIMA];
    double largest_f, largest_a, largest_b;
    unsigned long long began, marked;
    /* kept from launch to launch: the band's shape, columns of R, solves since the factorization */
    band_shape shape;
    int slots, since_factor;
    int schur_rows, schur_known; /* rows of the Schur matrix, and rows in its factor */
} card_control;

/* Pointers of the card. Vectors of "rows" are in the order of band_shape. */
typedef struct card {
    tb_gpu_program given;
    const tb_real *hessian, *f, *value, *b;
    const int *first, *of;
    card_control *control;

    /* sets, by variable: the constraint that binds it, or -1 */
    int *bound, *base, *next;
    int *slot; /* its column of R, or -1 */
    int *row;  /* of a variable that was free when K0 was factored, or -1 */
    int *free; /* list of free variables */
    int *rank; /* free variables before this one; n + 1 */
    signed char *bucket;
    unsigned long long *visited; /* maximum_iterations + 1 */

    /* K0 */
    tb_real *matrix, *factor, *inverse, *spare; /* tiles; spare: sums of the inverses */
    tb_real *pivots;                            /* rows: the least that a pivot may be */
    tb_real *panel, *other;                     /* rows x COLUMNS, for each panel */
    tb_real *base_solution;                     /* rows */

    /* the border */
    int *slot_variable;      /* limit */
    int *order;              /* limit: slots of the present border */
    tb_real *right, *column; /* limit x rows: U and R = K0^-1 U */
    tb_real *schur;          /* limit x limit: U' R */
    tb_real *lower;          /* limit: the border's unknowns by slot */
    tb_real *shift;          /* limit: U' v of displacements */

    /* the Schur matrix, see schurpa_schur.h; row by row, schur_pitch numbers from row to row */
    int schur_capacity, schur_pitch;
    int *tip;                   /* limit: the last row of a slot, or -1 */
    int *row_slot, *row_on;     /* rows: the slot, and the row that this one pins, or -1 */
    int *depth;                 /* rows: 0 a change, 1 its pin, 2 the pin of that ... */
    tb_real *schur_inverse;     /* rows x rows: X */
    tb_real *schur_pivot;       /* rows: D */
    tb_real *schur_w, *schur_y; /* rows */
    tb_real *schur_number;    /* rows x rows: the matrix; a panel's square becomes A_nn - L_no B' */
    tb_real *schur_magnitude; /* rows: sum of magnitudes on the diagonal */
    tb_real *schur_product, *schur_left; /* TILE x rows: of a panel B or T, and L_no */
    int *block_count;                    /* blocks: fresh columns of each */
    int *block_list;                     /* n: their variables */

    /* answers */
    tb_real *x;
    double *gradient;  /* H x + f */
    double *base_pull; /* f + H x of bounds alone */
    double *partial;   /* blocks x (share + half-bandwidth) */
    double *maxima;    /* blocks x MAXIMA */
} card;

/* Variables of a block: [*from, *to). */
TB_CARD void own_variables(const card *c, int *from, int *to)
{
    const int share = (c->given.n + (int)gridDim.x - 1) / (int)gridDim.x;
    *from = (int)blockIdx.x * share;
    *to = *from + share < c->given.n ? *from + share : c->given.n;
    if (*from > c->given.n) *from = c->given.n;
}

TB_CARD void meet_all(const card *c)
{
    meet(&c->control->all, (int)gridDim.x);
}

/* Element of H for two variables. */
TB_CARD tb_real hessian_at(const card *c, int i, int j)
{
    const int low = i > j ? i : j, high = i > j ? j : i;
    if (low - high > c->given.half_bandwidth) return 0;
    return c->hessian[low - high + (int64_t)high * c->given.stride];
}

#endif
