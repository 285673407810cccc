/* Solves a contact problem of up to 36 dofs by one warp: a few sweeps, then semismooth Newton on the
 * exact cone inside a proximal point method.
 *
 * The method is that of solve/newton/newton.c, with its line search, its merit and its rules for
 * epsilon: Newton on lambda - prox_C(p - xi(lambda) / w), whose step follows from a system of the
 * dofs,
 *
 *     (I + Y' K Y) ds = Y' (prox_C(p - xi / w) - lambda),      K = prox_C' / w,
 *     dlambda = prox_C(p - xi / w) - lambda - K Y ds,
 *
 * and p moves on when the merit has fallen to a tenth. Here the matrix lies in shared memory, where
 * a lane owns the rows of its dofs; rows of Y stay sparse and in global memory, and the lanes take
 * blocks or dofs in turns. Matrix and step are in working precision, impulses, velocities and the
 * residual in double, so that no round goes on from rounded velocities.
 *
 * The start is judged first; sweeps follow, which cost less than a step of Newton's. */
#ifndef TB_GPU_WIDE_SOLVE_H
#define TB_GPU_WIDE_SOLVE_H

#include "base/team.h"
#include "contact/judge.h"
#include "solve/newton/law_slope.h"
#include "solve/solve.h"

enum {
    WIDE_MOST_DOFS = 36, /* TB_GPU_WIDE_DOFS */
    WIDE_STRIDE =
        WIDE_MOST_DOFS + 1, /* of the matrix: odd, so that its rows lie in different banks */
    WIDE_MOST_ROWS = 112,
    WIDE_MOST_BLOCKS = 80,
    WIDE_BLOCK_ROWS = 4,
    WIDE_MOST_COLUMNS = 1024 /* of all blocks */
};

/* A block: its dofs as bits, and where its columns begin in the list of all. */
typedef struct wide_block {
    uint64_t dofs;
    int32_t value;         /* of problem->values */
    uint16_t column, row;  /* first ones */
    uint8_t rows, columns; /* their numbers */
    uint8_t moves;         /* K is not zero */
    tb_real weight;        /* mean of G's diagonal */
} wide_block;

/* In shared memory. */
typedef struct TB_ALIGNED(16) wide_memory {
    double lambda[WIDE_MOST_ROWS], x[WIDE_MOST_ROWS]; /* impulses of the iterate; its velocities */
    double p[WIDE_MOST_ROWS];                         /* impulses that the proximal term pulls to */
    double s[WIDE_MOST_DOFS];                         /* Y' lambda */
    union {
        double answers[2 * WIDE_MOST_ROWS]; /* see wide_answer and wide_xi */
        tb_real matrix[WIDE_MOST_DOFS * WIDE_STRIDE];
    };
    tb_real right[WIDE_MOST_DOFS];               /* side of the system, and its solution ds */
    tb_real step[WIDE_MOST_ROWS];                /* of the impulses: the lack, then Newton's */
    tb_real change[WIDE_MOST_ROWS];              /* of the velocities by the step */
    tb_real k[WIDE_MOST_ROWS * WIDE_BLOCK_ROWS]; /* K, a row's numbers after another */
    wide_block blocks[WIDE_MOST_BLOCKS];
    uint8_t columns[WIDE_MOST_COLUMNS]; /* the dof of each column */
    uint8_t block_of[WIDE_MOST_ROWS];
} wide_memory;

typedef struct wide_solve {
    const tb_problem *problem;
    wide_memory *m;
    double tolerance;
    double inverse_norm; /* of c */
    double residual;     /* of the answer */
    tb_real epsilon;     /* weight of the proximal term, as a share of G's diagonal */
    int32_t steps, sweeps;
} wide_solve;

/* As in solve/newton/newton.c. */
static const double WIDE_STEP_PRICE = 4; /* of a step of Newton's, in sweeps */
static const tb_real WIDE_FIRST_EPSILON = TB_R(0.1), WIDE_LARGEST_EPSILON = 10;
static const tb_real WIDE_LEAST_EPSILON = TB_R(1e-5);
static const tb_real WIDE_GROWTH = TB_R(4), WIDE_SHRINK = TB_R(0.1);
static const double WIDE_CONTRACTION = 0.1, WIDE_DECREASE = 1e-4;
static const double WIDE_COLD = 0.02; /* a start beyond is swept first */
enum { WIDE_STEPS = 100, WIDE_SWEEPS = 400 /* of a step, until it is left to others */ };
enum { WIDE_AT_A_TIME = 4 /* numbers that are loaded before the first of them is stored */ };
enum { WIDE_STEPS_OF_ROUND = 12, WIDE_FEW_STEPS = 8, WIDE_SHORTENINGS = 8, WIDE_BURST = 6 };
enum { WIDE_FAILURES = 2 /* in a row, before sweeps */ };

/* The iterate in its laws' sets, which is judged, until the next system takes its place. */
TB_STATIC double *wide_answer(wide_memory *m)
{
    return m->answers;
}

/* Its velocities. */
TB_STATIC double *wide_xi(wide_memory *m)
{
    return m->answers + WIDE_MOST_ROWS;
}

TB_STATIC const tb_block *wide_law(const wide_solve *w, int32_t block)
{
    return &w->problem->blocks[block];
}

TB_STATIC const tb_real *wide_values(const wide_solve *w, const wide_block *b, int32_t row)
{
    return w->problem->values + b->value + row * b->columns;
}

TB_STATIC tb_real wide_compliance(const wide_solve *w, int32_t row)
{
    return w->problem->compliance ? w->problem->compliance[row] : TB_R(0);
}

/* The place of a dof among a block's columns, -1: it is none of them. */
TB_STATIC int32_t wide_place(uint64_t dofs, int32_t dof)
{
    if (!(dofs >> dof & 1)) return -1;
    const uint64_t before = dofs & (((uint64_t)1 << dof) - 1);
    return tb_count_bits((uint32_t)before) + tb_count_bits((uint32_t)(before >> 32));
}

/* ---- loading ---- */

/* Whether the problem has a size and laws that this solve takes. */
TB_STATIC bool wide_fits(const tb_problem *problem)
{
    int32_t columns = 0;
    bool fits = problem->number_of_dofs <= WIDE_MOST_DOFS &&
                problem->number_of_rows <= WIDE_MOST_ROWS &&
                problem->number_of_blocks <= WIDE_MOST_BLOCKS && problem->values != NULL;
    TB_EACH (b, fits ? problem->number_of_blocks : 0) {
        columns += problem->blocks[b].width;
        fits = fits && problem->blocks[b].rows <= WIDE_BLOCK_ROWS;
    }
    (void)tb_team_before(columns, &columns);
    return tb_team_all(fits && columns <= WIDE_MOST_COLUMNS);
}

/* The runs of dofs of a block, as bits and as the dof of each column; ascending. */
TB_STATIC void wide_put_columns(const tb_problem *problem, const tb_block *block, uint8_t *columns,
                                wide_block *to)
{
    const tb_segment *run = problem->segments + block->segment;
    to->dofs = 0;
    TB_ROLLED
    for (int32_t k = 0; k < block->segments; k++) {
        TB_ROLLED
        for (int32_t i = 0; i < run[k].count; i++) {
            *columns++ = (uint8_t)(run[k].dof + i);
            to->dofs |= (uint64_t)1 << (run[k].dof + i);
        }
    }
}

/* The weight of a block from the diagonal of its part of the Delassus matrix. */
TB_STATIC void wide_weigh(const wide_solve *w, const tb_block *block, wide_block *to)
{
    tb_real sum = 0;
    TB_ROLLED
    for (int32_t r = 0; r < block->rows; r++)
        sum += tb_block_row_square(w->problem->values, block, r);
    to->weight = sum / TB_R(block->rows);
}

/* The blocks and the start. */
TB_STATIC void wide_load(wide_solve *w, const tb_real *lambda, const tb_real *fine)
{
    const tb_problem *problem = w->problem;
    wide_memory *m = w->m;
    int32_t done = 0;
    TB_ROLLED
    for (int32_t base = 0; base < problem->number_of_blocks; base += tb_team_lanes()) {
        const int32_t b = base + tb_team_lane();
        const bool is = b < problem->number_of_blocks;
        const tb_block *block = &problem->blocks[is ? b : 0];
        int32_t all;
        const int32_t column = done + tb_team_before(is ? block->width : 0, &all);
        done += all;
        if (!is) continue;
        wide_block *to = &m->blocks[b];
        to->value = (int32_t)block->value;
        to->column = (uint16_t)column;
        to->row = (uint16_t)block->row;
        to->rows = (uint8_t)block->rows;
        to->columns = (uint8_t)block->width;
        wide_put_columns(problem, block, m->columns + column, to);
        wide_weigh(w, block, to);
        for (int32_t r = 0; r < block->rows; r++) m->block_of[block->row + r] = (uint8_t)b;
    }
    TB_EACH (r, problem->number_of_rows) m->lambda[r] = tb_impulse_at(lambda, fine, r);
    tb_team_sync();
}

/* ---- judging ---- */

/* The projection x of z in double, from the one in working precision, `near` of `from`, which is z's:
 * rows that it has not moved are z's own, and friction on the rim of its disk keeps the direction of z. */
TB_STATIC void wide_refine(const tb_block *block, const double *z, const tb_real *from,
                           const tb_real *near, double *x)
{
    TB_ROLLED
    for (int32_t r = 0; r < block->rows; r++) x[r] = near[r] == from[r] ? z[r] : (double)near[r];
    if (block->law != TB_LAW_COULOMB || (near[1] == from[1] && near[2] == from[2])) return;
    const double length2 = z[1] * z[1] + z[2] * z[2], radius = (double)block->mu * x[0];
    if (!(length2 > 0)) return;
    const double f = ((double)near[1] * z[1] + (double)near[2] * z[2]) / length2;
    const double reached2 = f * f * length2; /* near the radius: a step of Newton's for the root */
    const double scale = reached2 > 0 ? 0.5 * f * (1 + radius * radius / reached2) : 0;
    x[1] = scale * z[1];
    x[2] = scale * z[2];
}

/* s = Y' lambda: a lane sums a dof over all blocks. */
TB_STATIC void wide_whiten(const wide_solve *w, const double *lambda)
{
    wide_memory *m = w->m;
    TB_EACH (dof, w->problem->number_of_dofs) {
        double sum = 0;
        TB_ROLLED
        for (int32_t b = 0; b < w->problem->number_of_blocks; b++) {
            const wide_block *block = &m->blocks[b];
            const int32_t place = wide_place(block->dofs, dof);
            if (place < 0) continue;
            const tb_real *y = wide_values(w, block, 0) + place;
            TB_ROLLED
            for (int32_t r = 0; r < block->rows; r++)
                sum += lambda[block->row + r] * (double)y[r * block->columns];
        }
        m->s[dof] = sum;
    }
    tb_team_sync();
}

/* Velocities of all rows from s: a lane takes rows. */
TB_STATIC void wide_find_velocities(const wide_solve *w, const double *lambda, double *to)
{
    const wide_memory *m = w->m;
    TB_EACH (row, w->problem->number_of_rows) {
        const wide_block *block = &m->blocks[m->block_of[row]];
        const uint8_t *dofs = m->columns + block->column;
        const tb_real *y = wide_values(w, block, row - block->row);
        double x = (double)w->problem->c[row];
        TB_UNROLLED
        for (int32_t k = 0; k < block->columns; k++) x += (double)y[k] * m->s[dofs[k]];
        to[row] = x + (double)wide_compliance(w, row) * lambda[row];
    }
    tb_team_sync();
}

/* Judges the iterate, brought into the laws' sets. Where it lies in them, its velocities are those
 * of the answer, without the rounding of the steps. */
TB_STATIC void wide_judge(wide_solve *w)
{
    wide_memory *m = w->m;
    bool moved = false;
    double own = 0;
    TB_EACH (b, w->problem->number_of_blocks) {
        const tb_block *block = wide_law(w, b);
        tb_real x[TB_BLOCK_ROWS] = {0}, z[TB_BLOCK_ROWS] = {0};
        TB_ROLLED
        for (int32_t r = 0; r < block->rows; r++) x[r] = z[r] = TB_R(m->lambda[block->row + r]);
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper, x);
        wide_refine(block, m->lambda + block->row, z, x, wide_answer(m) + block->row);
        TB_ROLLED
        for (int32_t r = 0; r < block->rows; r++) moved = moved || x[r] != z[r];
    }
    tb_team_sync();
    wide_whiten(w, wide_answer(m));
    wide_find_velocities(w, wide_answer(m), wide_xi(m));
    TB_EACH (b, w->problem->number_of_blocks) {
        const tb_block *block = wide_law(w, b);
        own += tb_block_natural(block, wide_answer(m) + block->row, wide_xi(m) + block->row);
    }
    w->residual = sqrt(tb_team_total(own)) * w->inverse_norm;
    const bool keeps = !tb_team_any(moved);
    tb_team_sync();
    if (keeps)
        TB_EACH (r, w->problem->number_of_rows) m->x[r] = wide_xi(m)[r];
    tb_team_sync();
}

/* The answer as the iterate. */
TB_STATIC void wide_take_answer(const wide_solve *w)
{
    TB_EACH (r, w->problem->number_of_rows) {
        w->m->lambda[r] = wide_answer(w->m)[r];
        w->m->x[r] = wide_xi(w->m)[r];
    }
    tb_team_sync();
}

/* ---- sweeps ---- */

/* Numbers of a block that all its sweeps need, in the place of its K: 1 / G and the rate along tangents,
 * by the trace of G there; G between the normal row and the tangents. */
TB_STATIC void wide_prepare_sweeps(const wide_solve *w)
{
    wide_memory *m = w->m;
    TB_EACH (b, w->problem->number_of_blocks) {
        const wide_block *block = &m->blocks[b];
        const tb_real *y = wide_values(w, block, 0);
        tb_real g[TB_BLOCK_ROWS] = {0}, trace = 0;
        TB_ROLLED
        for (int32_t r = 0; r < block->rows; r++) {
            const tb_real *other = wide_values(w, block, r);
            TB_UNROLLED
            for (int32_t k = 0; k < block->columns; k++) {
                g[r] += y[k] * other[k];
                if (r > 0) trace += other[k] * other[k];
            }
        }
        tb_real *to = m->k + WIDE_BLOCK_ROWS * block->row;
        const tb_real own = g[0] + wide_compliance(w, block->row);
        for (int32_t r = 1; r < WIDE_BLOCK_ROWS; r++)
            if (r < block->rows) to[r] = g[r];
        to[0] = own > 0 ? 1 / own : TB_R(0);
        m->change[block->row] = trace > 0 ? 1 / trace : TB_R(0);
    }
    tb_team_sync();
}

/* One block. Eight lanes sum a row each. */
TB_STATIC void wide_sweep_block(const wide_solve *w, int32_t b)
{
    enum { LANES = 8 };
    wide_memory *m = w->m;
    const wide_block *block = &m->blocks[b];
    const tb_block *law = wide_law(w, b);
    const uint8_t *dofs = m->columns + block->column;
    const int32_t row = block->row, n = block->rows, width = block->columns;
    const int32_t own = tb_team_lane() / LANES;
    tb_real g = own < n ? w->problem->c[row + own] : TB_R(0), sum = 0;
    TB_ROLLED
    for (int32_t k = tb_team_lane() % LANES; own < n && k < width; k += LANES)
        sum += wide_values(w, block, own)[k] * m->right[dofs[k]];
    for (int32_t step = LANES / 2; step > 0; step /= 2)
        sum += tb_team_take_real(sum, tb_team_lane() ^ step);
    g += sum;
    tb_real x[TB_BLOCK_ROWS] = {0}, before[TB_BLOCK_ROWS] = {0};
    const tb_real *coupling = m->k + WIDE_BLOCK_ROWS * row, rate = m->change[row];
    for (int32_t r = 0; r < WIDE_BLOCK_ROWS; r++) {
        const tb_real of_row = tb_team_take_real(g, r * LANES);
        const tb_real lambda = r < n ? TB_R(wide_answer(m)[row + r]) : TB_R(0);
        before[r] = x[r] = lambda;
        if (r == 0) {
            x[0] -= coupling[0] * (of_row + wide_compliance(w, row) * lambda);
            if (law->law != TB_LAW_BILATERAL)
                x[0] = tb_clamp(x[0], law->law == TB_LAW_BOX ? law->lower : TB_R(0),
                                law->law == TB_LAW_BOX ? law->upper : TB_REAL_MAX);
        } else if (r < n) {
            const tb_real e = wide_compliance(w, row + r);
            x[r] -=
                rate / (1 + rate * e) * (of_row + coupling[r] * (x[0] - before[0]) + e * lambda);
        }
    }
    if (n > 1) tb_prox_block(law->law, n, law->mu, law->lower, law->upper, x);
    tb_team_sync(); /* all have read the impulses and velocities */
    TB_EACH (k, width) {
        const tb_real *y = wide_values(w, block, 0) + k;
        tb_real change = 0;
        for (int32_t r = 0; r < WIDE_BLOCK_ROWS; r++)
            if (r < n) change += y[r * width] * (x[r] - before[r]);
        m->right[dofs[k]] += change;
    }
    if (TB_LEADER)
        for (int32_t r = 0; r < WIDE_BLOCK_ROWS; r++)
            if (r < n) wide_answer(m)[row + r] = (double)x[r];
    tb_team_sync();
}

/* A burst of sweeps from the answer, which the iterate becomes. */
TB_STATIC void wide_sweep(wide_solve *w)
{
    wide_memory *m = w->m;
    wide_prepare_sweeps(w);
    TB_EACH (i, w->problem->number_of_dofs) m->right[i] = TB_R(m->s[i]);
    tb_team_sync();
    TB_ROLLED
    for (int32_t turn = 0; turn < WIDE_BURST; turn++) TB_ROLLED
    for (int32_t b = 0; b < w->problem->number_of_blocks; b++) wide_sweep_block(w, b);
    w->sweeps += WIDE_BURST;
    TB_EACH (r, w->problem->number_of_rows) m->lambda[r] = wide_answer(m)[r];
    tb_team_sync();
    wide_judge(w);
    wide_take_answer(w);
}

/* ---- Newton's step ---- */

/* The square of w (lambda - prox_C(p - xi / w)), a velocity, of a block whose iterate has gone
 * `length` of the step; with `keep`, the lack prox - lambda and K for a step from there. */
TB_STATIC double wide_merit_block(const wide_solve *w, int32_t b, tb_real length, bool keep)
{
    wide_memory *m = w->m;
    wide_block *own = &m->blocks[b];
    const tb_block *block = wide_law(w, b);
    const tb_real weight = w->epsilon * own->weight, rho = weight > 0 ? 1 / weight : TB_R(0);
    const int32_t n = own->rows, row = own->row;
    double from[TB_BLOCK_ROWS] = {0}, to[TB_BLOCK_ROWS] = {0}, lambda[TB_BLOCK_ROWS] = {0};
    tb_real z[TB_BLOCK_ROWS] = {0}, x[TB_BLOCK_ROWS] = {0}, iterate[TB_BLOCK_ROWS] = {0};
    tb_real d[TB_BLOCK_ROWS * TB_BLOCK_ROWS] = {0};
    TB_ROLLED
    for (int32_t r = 0; r < n; r++) {
        const double way = (double)length;
        const double xi = m->x[row + r] + way * (double)m->change[row + r];
        lambda[r] = m->lambda[row + r] + way * (double)m->step[row + r];
        iterate[r] = TB_R(lambda[r]);
        from[r] = m->p[row + r] - (double)rho * xi;
        x[r] = z[r] = TB_R(from[r]);
    }
    if (keep)
        (void)tb_law_slope(block, z, iterate, x, d);
    else
        tb_prox_block(block->law, n, block->mu, block->lower, block->upper, x);
    wide_refine(block, from, z, x, to);
    double sum = 0;
    TB_ROLLED
    for (int32_t r = 0; r < n; r++) {
        const tb_real lack = TB_R(to[r] - lambda[r]);
        sum += (double)(weight * lack) * (double)(weight * lack);
        if (!keep) continue;
        const tb_real scale = 1 / (1 + d[r * n + r] * rho * wide_compliance(w, row + r));
        m->step[row + r] = lack * scale;
        TB_ROLLED
        for (int32_t k = 0; k < n; k++)
            m->k[WIDE_BLOCK_ROWS * (row + r) + k] = d[r * n + k] * rho * scale;
    }
    if (keep) own->moves = weight > 0;
    return sum;
}

TB_STATIC double wide_merit(const wide_solve *w, tb_real length, bool keep)
{
    double own = 0;
    TB_EACH (b, w->problem->number_of_blocks) own += wide_merit_block(w, b, length, keep);
    const double sum = tb_team_total(own);
    tb_team_sync();
    return sum <= DBL_MAX ? sqrt(sum) : DBL_MAX;
}

/* One block's part of a dof's row of I + Y' K Y. */
TB_STATIC void wide_add_block(const wide_solve *w, const wide_block *block, int32_t place,
                              tb_real *matrix)
{
    const wide_memory *m = w->m;
    const int32_t n = block->rows, width = block->columns;
    const uint8_t *dofs = m->columns + block->column;
    const tb_real *y = wide_values(w, block, 0);
    tb_real a[TB_BLOCK_ROWS] = {0};
    TB_ROLLED
    for (int32_t r = 0; r < n; r++) {
        const tb_real own = y[r * width + place];
        const tb_real *k = m->k + WIDE_BLOCK_ROWS * (block->row + r);
        for (int32_t j = 0; j < WIDE_BLOCK_ROWS; j++)
            if (j < n) a[j] += own * k[j];
    }
    TB_ROLLED
    for (int32_t first = 0; first < width; first += WIDE_AT_A_TIME) {
        tb_real sum[WIDE_AT_A_TIME];
        for (int32_t i = 0; i < WIDE_AT_A_TIME; i++) {
            const int32_t k = first + i < width ? first + i : width - 1;
            sum[i] = a[0] * y[k];
            for (int32_t r = 1; r < WIDE_BLOCK_ROWS; r++)
                if (r < n) sum[i] += a[r] * y[r * width + k];
            sum[i] += matrix[dofs[k]];
        }
        for (int32_t i = 0; i < WIDE_AT_A_TIME; i++)
            if (first + i < width) matrix[dofs[first + i]] = sum[i];
    }
}

TB_STATIC void wide_assemble(const wide_solve *w)
{
    wide_memory *m = w->m;
    const int32_t dofs = w->problem->number_of_dofs;
    TB_EACH (dof, dofs) {
        tb_real *matrix = m->matrix + dof * WIDE_STRIDE, right = 0;
        for (int32_t i = 0; i < dofs; i++) matrix[i] = TB_R(i == dof);
        TB_ROLLED
        for (int32_t b = 0; b < w->problem->number_of_blocks; b++) {
            const wide_block *block = &m->blocks[b];
            const int32_t place = wide_place(block->dofs, dof);
            if (place < 0) continue;
            const tb_real *y = wide_values(w, block, 0) + place;
            TB_ROLLED
            for (int32_t r = 0; r < block->rows; r++)
                right += y[r * block->columns] * m->step[block->row + r];
            if (block->moves) wide_add_block(w, block, place, matrix);
        }
        m->right[dof] = right;
    }
    tb_team_sync();
}

/* dw by elimination: the diagonal holds the proximal term's one, so no pivot is looked for. */
TB_STATIC void wide_eliminate(const wide_solve *w)
{
    wide_memory *m = w->m;
    const int32_t n = w->problem->number_of_dofs;
    TB_ROLLED
    for (int32_t k = 0; k + 1 < n; k++) {
        const tb_real *pivot = m->matrix + k * WIDE_STRIDE;
        const tb_real inverse = 1 / pivot[k], right = m->right[k];
        TB_EACH (i, n - k - 1) {
            tb_real *row = m->matrix + (k + 1 + i) * WIDE_STRIDE;
            const tb_real factor = row[k] * inverse;
            if (factor == 0) continue;
            int32_t j = k + 1;
            TB_ROLLED
            for (; j + WIDE_AT_A_TIME <= n; j += WIDE_AT_A_TIME) {
                tb_real own[WIDE_AT_A_TIME];
                for (int32_t q = 0; q < WIDE_AT_A_TIME; q++)
                    own[q] = row[j + q] - factor * pivot[j + q];
                for (int32_t q = 0; q < WIDE_AT_A_TIME; q++) row[j + q] = own[q];
            }
            TB_ROLLED
            for (; j < n; j++) row[j] -= factor * pivot[j];
            m->right[k + 1 + i] -= factor * right;
        }
        tb_team_sync();
    }
    TB_ROLLED
    for (int32_t k = n - 1; k >= 0; k--) {
        const tb_real x = m->right[k] / m->matrix[k * WIDE_STRIDE + k];
        TB_EACH (i, k) m->right[i] -= m->matrix[i * WIDE_STRIDE + k] * x;
        tb_team_sync();
        if (TB_LEADER) m->right[k] = x;
    }
    tb_team_sync();
}

/* The step of the impulses and of their velocities from ds: a lane takes rows, then blocks. */
TB_STATIC void wide_expand(const wide_solve *w)
{
    wide_memory *m = w->m;
    TB_EACH (row, w->problem->number_of_rows) {
        const wide_block *block = &m->blocks[m->block_of[row]];
        const uint8_t *dofs = m->columns + block->column;
        const tb_real *y = wide_values(w, block, row - block->row);
        tb_real u = 0;
        TB_UNROLLED
        for (int32_t k = 0; k < block->columns; k++) u += y[k] * m->right[dofs[k]];
        m->change[row] = u;
    }
    tb_team_sync();
    TB_EACH (row, w->problem->number_of_rows) {
        const wide_block *block = &m->blocks[m->block_of[row]];
        tb_real step = m->step[row];
        TB_ROLLED
        for (int32_t k = 0; k < block->rows && block->moves; k++)
            step -= m->k[WIDE_BLOCK_ROWS * row + k] * m->change[block->row + k];
        m->step[row] = step;
    }
    tb_team_sync();
    TB_EACH (row, w->problem->number_of_rows)
        m->change[row] += wide_compliance(w, row) * m->step[row];
    tb_team_sync();
}

/* Goes along the step, shortened until the merit falls; false: it does not. */
TB_STATIC bool wide_search_line(const wide_solve *w, double merit)
{
    wide_memory *m = w->m;
    tb_real length = 1;
    TB_ROLLED
    for (int k = 0; k < WIDE_SHORTENINGS; k++, length /= 2) {
        if (!(wide_merit(w, length, false) <= merit * (1 - WIDE_DECREASE * (double)length)))
            continue;
        TB_EACH (r, w->problem->number_of_rows) {
            m->lambda[r] += (double)length * (double)m->step[r];
            m->x[r] += (double)length * (double)m->change[r];
        }
        tb_team_sync();
        return true;
    }
    return false;
}

/* ---- rounds ---- */

/* How a round ended. */
typedef enum wide_end { WIDE_SOLVED, WIDE_CONTRACTED, WIDE_FAILED } wide_end;

/* The merit of the iterate, with what a step from there needs. */
TB_STATIC double wide_look(const wide_solve *w)
{
    TB_EACH (r, w->problem->number_of_rows) w->m->step[r] = w->m->change[r] = 0;
    tb_team_sync();
    return wide_merit(w, 0, true);
}

/* Newton for one p, from p. */
TB_STATIC wide_end wide_round(wide_solve *w, int32_t *steps)
{
    wide_memory *m = w->m;
    TB_EACH (r, w->problem->number_of_rows) m->p[r] = m->lambda[r];
    tb_team_sync();
    wide_whiten(w, m->lambda);
    wide_find_velocities(w, m->lambda, m->x);
    double merit = wide_look(w);
    const double before = merit;
    TB_ROLLED
    for (*steps = 0; *steps < WIDE_STEPS_OF_ROUND && w->steps < WIDE_STEPS;) {
        w->steps++;
        wide_assemble(w);
        wide_eliminate(w);
        wide_expand(w);
        if (!wide_search_line(w, merit)) return WIDE_FAILED;
        (*steps)++;
        wide_judge(w);
        if (w->residual <= w->tolerance) return WIDE_SOLVED;
        merit = wide_look(w);
        if (merit <= WIDE_CONTRACTION * before) return WIDE_CONTRACTED;
    }
    return WIDE_FAILED;
}

/* From the start to the tolerance; false: it was not reached. */
TB_STATIC bool wide_iterate(wide_solve *w, bool begins_with_sweeps)
{
    int32_t failures = 0, steps;
    wide_judge(w);
    if (w->residual <= w->tolerance) return true;
    wide_take_answer(w);
    if (begins_with_sweeps || w->residual > WIDE_COLD) wide_sweep(w);
    if (w->residual <= w->tolerance) return true;
    w->epsilon = tb_clamp(TB_R(sqrt(w->residual)), WIDE_LEAST_EPSILON, WIDE_FIRST_EPSILON);
    TB_ROLLED
    while (w->residual > w->tolerance && w->steps < WIDE_STEPS && w->sweeps < WIDE_SWEEPS) {
        const wide_end end = wide_round(w, &steps);
        if (end == WIDE_SOLVED) return true;
        if (end == WIDE_CONTRACTED) {
            failures = 0;
            if (steps <= WIDE_FEW_STEPS)
                w->epsilon = tb_max(w->epsilon * WIDE_SHRINK, WIDE_LEAST_EPSILON);
            continue;
        }
        failures++;
        w->epsilon = tb_min(w->epsilon * WIDE_GROWTH, WIDE_LARGEST_EPSILON);
        wide_judge(w);
        if (failures > WIDE_FAILURES) {
            wide_sweep(w);
            w->epsilon = WIDE_FIRST_EPSILON;
            failures = 0;
        }
    }
    return w->residual <= w->tolerance;
}

/* ---- history ---- */

/* By the means of auto.c: whether solves that begin with sweeps have cost less, and what this one has
 * cost. The way that is not taken comes again as its mean fades. */
TB_STATIC bool wide_begins_with_sweeps(const tb_solve_history *h)
{
    return !newton_is_cheapest(h, false);
}

TB_STATIC void wide_learn(const wide_solve *w, bool began_with_sweeps, tb_solve_history *h)
{
    const double newton = WIDE_STEP_PRICE * w->steps;
    if (w->steps + w->sweeps == 0) return;
    if (w->steps > 0) h->newton = learn(h->newton, newton);
    if (began_with_sweeps)
        h->sweeps = learn(h->sweeps, newton + w->sweeps);
    else
        h->sweeps *= HISTORY_DECAY;
}

#endif
