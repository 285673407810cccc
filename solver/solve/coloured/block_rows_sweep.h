/* One contact and one body of Poulsen's sweeps, in double, shared by the processor's threads and
 * a GPU. Sums run in a fixed order, so both give the same bytes. */
#ifndef TB_BLOCK_ROWS_SWEEP_H
#define TB_BLOCK_ROWS_SWEEP_H

#include "contact/prox.h"
#include "solve/coloured/block_rows.h"

/* Arrays of a sweep. */
typedef struct tb_row_sweep {
    int32_t contacts, bodies;
    const int32_t *a, *b;          /* contacts: bodies */
    const double *y;               /* contacts x 2 sides x 4 x 6 */
    const double *free;            /* contacts x 4, m/s: b of A lambda + b */
    double mu, r;                  /* r: N s per m/s */
    int32_t storage;               /* tb_storage */
    double *lambda, *next;         /* contacts x 4, N s */
    double *w;                     /* bodies x 6: Y' lambda, factorized */
    const int64_t *start;          /* contacts + 1: first block of each row of A or T */
    const int32_t *column;         /* blocks */
    double *block;                 /* blocks x 16 */
    const int32_t *of_body, *edge; /* bodies + 1; contacts of each body, ascending */
} tb_row_sweep;

TB_FN const double *tb_row_side(const tb_row_sweep *s, int32_t k, int i)
{
    return s->y + ((int64_t)k * 2 + i) * TB_SIDE_NUMBERS;
}

TB_FN int32_t tb_row_body(const tb_row_sweep *s, int32_t k, int i)
{
    return i == 0 ? s->a[k] : s->b[k];
}

/* velocity = Y_k w + b_k, m/s; w: of the contact's two bodies */
TB_FN void tb_row_velocity_by(const tb_row_sweep *s, int32_t k, const double *const w[2],
                              double v[TB_CONTACT_ROWS])
{
    for (int r = 0; r < TB_CONTACT_ROWS; r++) v[r] = s->free[(int64_t)TB_CONTACT_ROWS * k + r];
    for (int i = 0; i < 2; i++) {
        const double *y = tb_row_side(s, k, i);
        for (int r = 0; r < TB_CONTACT_ROWS; r++)
            for (int d = 0; d < TB_BODY_DOFS; d++) v[r] += y[r * TB_BODY_DOFS + d] * w[i][d];
    }
}

/* likewise, by the sweep's w */
TB_FN void tb_row_velocity(const tb_row_sweep *s, int32_t k, double v[TB_CONTACT_ROWS])
{
    const double *const w[2] = {s->w + (int64_t)TB_BODY_DOFS * tb_row_body(s, k, 0),
                                s->w + (int64_t)TB_BODY_DOFS * tb_row_body(s, k, 1)};
    tb_row_velocity_by(s, k, w, v);
}

/* v += row k of A or T times lambda */
TB_FN void tb_row_times(const tb_row_sweep *s, int32_t k, double v[TB_CONTACT_ROWS])
{
    for (int64_t j = s->start[k]; j < s->start[k + 1]; j++) {
        const double *block = s->block + TB_BLOCK_NUMBERS * j;
        const double *x = s->lambda + (int64_t)TB_CONTACT_ROWS * s->column[j];
        for (int r = 0; r < TB_CONTACT_ROWS; r++)
            for (int c = 0; c < TB_CONTACT_ROWS; c++) v[r] += block[r * TB_CONTACT_ROWS + c] * x[c];
    }
}

/* z = lambda - R (A lambda + b), before its projection */
TB_FN void tb_row_trial(const tb_row_sweep *s, int32_t k, double z[TB_CONTACT_ROWS])
{
    const double *own = s->lambda + (int64_t)TB_CONTACT_ROWS * k;
    const double *b = s->free + (int64_t)TB_CONTACT_ROWS * k;
    if (s->storage == TB_STORAGE_T) {
        for (int r = 0; r < TB_CONTACT_ROWS; r++) z[r] = -s->r * b[r];
        tb_row_times(s, k, z);
        return;
    }
    double v[TB_CONTACT_ROWS];
    if (s->storage == TB_STORAGE_DENSE) {
        for (int r = 0; r < TB_CONTACT_ROWS; r++) v[r] = b[r];
        tb_row_times(s, k, v);
    } else {
        tb_row_velocity(s, k, v);
    }
    for (int r = 0; r < TB_CONTACT_ROWS; r++) z[r] = own[r] - s->r * v[r];
}

/* w, of one body of the contact, after a change of the contact's impulses */
TB_FN void tb_row_push_to(const tb_row_sweep *s, int32_t k, int i,
                          const double change[TB_CONTACT_ROWS], double *w)
{
    const double *y = tb_row_side(s, k, i);
    for (int r = 0; r < TB_CONTACT_ROWS; r++)
        for (int d = 0; d < TB_BODY_DOFS; d++) w[d] += y[r * TB_BODY_DOFS + d] * change[r];
}

/* likewise, in the sweep's w */
TB_FN void tb_row_push(const tb_row_sweep *s, int32_t k, int i,
                       const double change[TB_CONTACT_ROWS])
{
    tb_row_push_to(s, k, i, change, s->w + (int64_t)TB_BODY_DOFS * tb_row_body(s, k, i));
}

/* Solves contact k: in place, where bodies follow at once, or into `next`. Returns the larger of
 * `epsilon` and the largest change of an impulse, N s. */
TB_FN double tb_row_solve(const tb_row_sweep *s, int32_t k, bool in_place, double epsilon)
{
    double z[TB_CONTACT_ROWS], change[TB_CONTACT_ROWS];
    double *old = s->lambda + (int64_t)TB_CONTACT_ROWS * k;
    double *to = in_place ? old : s->next + (int64_t)TB_CONTACT_ROWS * k;
    tb_row_trial(s, k, z);
    tb_prox_block(TB_LAW_SPIN, TB_CONTACT_ROWS, s->mu, 0, 0, z);
    for (int r = 0; r < TB_CONTACT_ROWS; r++) {
        change[r] = z[r] - old[r];
        if (tb_abs(change[r]) > epsilon) epsilon = tb_abs(change[r]);
    }
    for (int r = 0; r < TB_CONTACT_ROWS; r++) to[r] = z[r];
    if (!in_place || s->storage != TB_STORAGE_FACTORIZED) return epsilon;
    tb_row_push(s, k, 0, change);
    tb_row_push(s, k, 1, change);
    return epsilon;
}

/* w of body m afresh, in contact order */
TB_FN void tb_row_sum_body(const tb_row_sweep *s, int32_t m)
{
    double *w = s->w + (int64_t)TB_BODY_DOFS * m;
    for (int d = 0; d < TB_BODY_DOFS; d++) w[d] = 0;
    for (int32_t j = s->of_body[m]; j < s->of_body[m + 1]; j++) {
        const int32_t k = s->edge[j];
        const double *y = tb_row_side(s, k, s->a[k] == m ? 0 : 1);
        const double *x = s->lambda + (int64_t)TB_CONTACT_ROWS * k;
        for (int r = 0; r < TB_CONTACT_ROWS; r++)
            for (int d = 0; d < TB_BODY_DOFS; d++) w[d] += y[r * TB_BODY_DOFS + d] * x[r];
    }
}

/* Row k of T for R times nu, from that for R (Poulsen 3.6) */
TB_FN void tb_row_rescale(const tb_row_sweep *s, int32_t k, double nu)
{
    for (int64_t j = s->start[k]; j < s->start[k + 1]; j++) {
        double *block = s->block + TB_BLOCK_NUMBERS * j;
        for (int i = 0; i < TB_BLOCK_NUMBERS; i++) block[i] *= nu;
        for (int r = 0; r < TB_CONTACT_ROWS && s->column[j] == k; r++)
            block[r * TB_CONTACT_ROWS + r] += 1 - nu;
    }
}

/* gamma = 1/2 || prox(lambda - 100 (A lambda + b)) - lambda ||^2, by bodies in every storage form: writes
 * w. */
double tb_row_quality(const tb_row_sweep *sweep);

/* The whole of a solve for a GPU. Borrowed; on the GPU its pointers are the GPU's. */
typedef struct tb_row_run {
    tb_row_sweep sweep;                  /* lambda: where it begins and ends */
    int64_t blocks;                      /* of A or T */
    int32_t colours;                     /* 0: Jacobi */
    int32_t unsafe;                      /* 1: the last colour's contacts may share bodies */
    const int32_t *colour_start, *order; /* colours + 1; contacts */
    /* bodies of the unsafe colour, and each one's contacts there, ascending: factorized only */
    int32_t unsafe_bodies;
    const int32_t *unsafe_body, *unsafe_start, *unsafe_edge;
    int32_t iterations, tries; /* tries: see tb_poulsen_options */
    double nu;
} tb_row_run;

/* Results of a sweep beside the impulses. */
typedef struct tb_row_outcome {
    int32_t iterations, reductions;
    double epsilon, r;
    double seconds; /* of the iterations; filled by the host */
} tb_row_outcome;

#endif
