/* lemke: complementary pivoting on planar contacts, the part that PATH plays in Betz's thesis.
 *
 * The contacts' law as a linear complementarity problem (his 2.36 with the velocities
 * eliminated, E and
 * U_mu restored): z = (p_n, p_f+, p_f-, sigma) per contact with friction, p_n alone without,
 *
 *     rho_n  =  G_nn p_n + G_nf (p_f+ - p_f-) + c_n
 *     rho_f+ =  G_fn p_n + G_ff (p_f+ - p_f-) + c_f + sigma
 *     rho_f- = -G_fn p_n - G_ff (p_f+ - p_f-) - c_f + sigma        0 <= w  orthogonal to  z >= 0
 *     s      =  mu p_n - p_f+ - p_f-
 *
 * In the plane this is the exact law. The matrix is copositive, and Lemke's path ends in a solution
 * where the contacts can be satisfied at all (Stewart and Trinkle 1996; Cottle, Pang, Stone, The
 * Linear Complementarity Problem, 4.4). A dense tableau of basic rows over nonbasic columns is
 * pivoted; q is perturbed by a small part of its size so that no tie remains, and at the end the
 * basis is solved once more for the q that was given. */
#include "solve/solve.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

enum { LEMKE_MOST_PAIRS = 30000 }; /* a dense tableau of 7.2 GB */
/* Of the largest |q|. Redundant contacts let one perturbation end in a basis that rounding has
 * spoilt;
 * the next one goes another way. */
static const double LEMKE_PERTURBATION[] = {1e-9, 1e-7, 1e-8, 1e-6};
enum { LEMKE_ATTEMPTS = sizeof LEMKE_PERTURBATION / sizeof LEMKE_PERTURBATION[0] };
static const double LEMKE_SMALLEST_PIVOT = 1e-10;

#define tb_lemke TB_SYMBOL(tb_lemke)
typedef struct tb_lemke {
    const tb_problem *problem;
    int32_t n;         /* complementary pairs */
    const tb_real *g;  /* rows x rows */
    double *m, *q;     /* n x n and n: w = m z + q */
    double *table;     /* n x (n + 2): nonbasic columns, z0's last but one, then the values */
    int32_t *basic;    /* n: variable of each row; w_i is i, z_i is n + i, z0 is 2 n */
    int32_t *nonbasic; /* n + 1 */
    double *z;         /* n */
    int32_t pivots;
} tb_lemke;

/* ---- the problem ---- */

TB_STATIC int32_t lemke_size(const tb_block *block)
{
    return block->law == TB_LAW_PLANAR && block->mu > 0 ? 4 : 1;
}

/* Effect of a variable: the row of G that it pushes, with its sign; 0: sigma. */
typedef struct lemke_push {
    int32_t row;
    double sign;
} lemke_push;

TB_STATIC lemke_push lemke_variable(const tb_block *block, int32_t k)
{
    static const double SIGNS[4] = {1, 1, -1, 0};
    return (lemke_push){block->row + (k > 0), SIGNS[k]};
}

/* Columns that one block's variables give all rows of the program. */
TB_STATIC void lemke_fill(tb_lemke *l)
{
    const tb_problem *p = l->problem;
    const int64_t rows = p->number_of_rows;
    for (int32_t b = 0, i = 0; b < p->number_of_blocks; i += lemke_size(&p->blocks[b]), b++)
        for (int32_t k = 0; k < lemke_size(&p->blocks[b]); k++) {
            const tb_block *own = &p->blocks[b];
            const lemke_push to = lemke_variable(own, k);
            double *line = l->m + (int64_t)(i + k) * l->n;
            l->q[i + k] = to.sign * (double)p->c[to.row];
            if (k == 3) { /* s = mu p_n - p_f+ - p_f- */
                line[i] = (double)own->mu;
                line[i + 1] = line[i + 2] = -1;
                continue;
            }
            for (int32_t c = 0, j = 0; c < p->number_of_blocks; j += lemke_size(&p->blocks[c]), c++)
                for (int32_t h = 0; h < lemke_size(&p->blocks[c]); h++) {
                    const lemke_push from = lemke_variable(&p->blocks[c], h);
                    line[j + h] = to.sign * from.sign * (double)l->g[to.row * rows + from.row];
                }
            if (k > 0) line[i + 3] = 1;
        }
}

/* ---- pivoting ---- */

/* w - m z - z0 = q, all w basic; values perturbed. */
TB_STATIC void lemke_begin(tb_lemke *l, int32_t attempt)
{
    const int64_t n = l->n, width = n + 2;
    double largest = 0;
    tb_random random = tb_random_stream(1965, (uint64_t)attempt);
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(l->q[i]));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) l->table[i * width + j] = l->m[i * n + j];
        l->table[i * width + n] = 1;
        l->table[i * width + n + 1] =
            l->q[i] + LEMKE_PERTURBATION[attempt] * largest * (1 + tb_random_uniform(&random));
        l->basic[i] = (int32_t)i;
        l->nonbasic[i] = (int32_t)(n + i);
    }
    l->nonbasic[n] = (int32_t)(2 * n);
}

/* basic = table . nonbasic + value: exchanges the basic variable of `row` with that of `column`. */
TB_STATIC void lemke_exchange(tb_lemke *l, int32_t row, int32_t column)
{
    const int64_t n = l->n, width = n + 2;
    double *own = l->table + row * width;
    const double pivot = own[column];
    own[column] = -1;
    for (int64_t j = 0; j < width; j++) own[j] /= -pivot;
    for (int64_t i = 0; i < n; i++) {
        double *line = l->table + i * width;
        const double factor = line[column];
        if (i == row || factor == 0) continue;
        line[column] = 0;
        for (int64_t j = 0; j < width; j++) line[j] += factor * own[j];
    }
    const int32_t left = l->basic[row];
    l->basic[row] = l->nonbasic[column];
    l->nonbasic[column] = left;
    l->pivots++;
}

/* The row whose value reaches zero first while `column` grows, -1 if none. Among equals, the row
 * with the largest pivot; z0 before all. */
TB_STATIC int32_t lemke_leaving(const tb_lemke *l, int32_t column)
{
    const int64_t n = l->n, width = n + 2;
    double least = INFINITY, best = 0;
    int32_t row = -1;
    for (int64_t i = 0; i < n; i++) {
        const double slope = l->table[i * width + column];
        if (!(slope < -LEMKE_SMALLEST_PIVOT)) continue;
        const double ratio = fmax(l->table[i * width + n + 1], 0) / -slope;
        const bool same = fabs(ratio - least) <= 1e-14 * fabs(least);
        if (!(ratio < least || same)) continue;
        if (same && !(-slope > best) && l->basic[i] != 2 * l->n) continue;
        if (ratio < least) least = ratio;
        best = l->basic[i] == 2 * l->n ? INFINITY : -slope;
        row = (int32_t)i;
    }
    return row;
}

TB_STATIC int32_t lemke_column_of(const tb_lemke *l, int32_t variable)
{
    for (int32_t j = 0; j <= l->n; j++)
        if (l->nonbasic[j] == variable) return j;
    return -1;
}

/* OK where z0 has left the basis. */
TB_STATIC tb_status lemke_pivot(tb_lemke *l, const tb_solve_options *o)
{
    const int64_t n = l->n, width = n + 2;
    int32_t row = -1;
    double lowest = 0;
    for (int64_t i = 0; i < n; i++)
        if (l->table[i * width + n + 1] < lowest) {
            lowest = l->table[i * width + n + 1];
            row = (int32_t)i;
        }
    if (row < 0) return TB_OK;
    int32_t left = l->basic[row];
    lemke_exchange(l, row, (int32_t)n);
    const int32_t most = o->maximum_iterations;
    for (int32_t k = 0; k < most; k++) {
        if (o->cancelled && o->cancelled(o->cancelled_context)) return TB_CANCELLED;
        const int32_t column = lemke_column_of(l, left < l->n ? left + l->n : left - l->n);
        row = lemke_leaving(l, column);
        if (row < 0) return TB_NOT_CONVERGED; /* a ray */
        left = l->basic[row];
        lemke_exchange(l, row, column);
        if (left == 2 * l->n) return TB_OK;
    }
    return TB_NOT_CONVERGED;
}

/* ---- the end ---- */

/* a x = b of order k by Gauss with row exchanges; false where a is singular. */
TB_STATIC bool lemke_gauss(double *a, double *b, int32_t k)
{
    for (int32_t i = 0; i < k; i++) {
        int32_t p = i;
        for (int32_t r = i + 1; r < k; r++)
            if (fabs(a[(int64_t)r * k + i]) > fabs(a[(int64_t)p * k + i])) p = r;
        if (!(fabs(a[(int64_t)p * k + i]) > 1e-13)) return false;
        for (int32_t j = 0; j < k && p != i; j++) {
            const double t = a[(int64_t)p * k + j];
            a[(int64_t)p * k + j] = a[(int64_t)i * k + j];
            a[(int64_t)i * k + j] = t;
        }
        const double t = b[p];
        b[p] = b[i];
        b[i] = t;
        for (int32_t r = i + 1; r < k; r++) {
            const double f = a[(int64_t)r * k + i] / a[(int64_t)i * k + i];
            if (f == 0) continue;
            for (int32_t j = i; j < k; j++) a[(int64_t)r * k + j] -= f * a[(int64_t)i * k + j];
            b[r] -= f * b[i];
        }
    }
    for (int32_t i = k - 1; i >= 0; i--) {
        for (int32_t j = i + 1; j < k; j++) b[i] -= a[(int64_t)i * k + j] * b[j];
        b[i] /= a[(int64_t)i * k + i];
    }
    return true;
}

/* z of the final basis for the q that was given: m_BB z_B = -q_B, else the perturbed values. The
 * table's
 * memory is used up. */
TB_STATIC void lemke_finish(tb_lemke *l, int32_t *which)
{
    const int64_t n = l->n, width = n + 2;
    int32_t k = 0;
    memset(l->z, 0, (size_t)n * sizeof *l->z);
    for (int64_t i = 0; i < n; i++)
        if (l->basic[i] >= n && l->basic[i] < 2 * n) {
            which[k++] = l->basic[i] - l->n;
            l->z[l->basic[i] - n] = fmax(l->table[i * width + n + 1], 0);
        }
    double *a = l->table, *b = l->table + (int64_t)k * k;
    for (int32_t i = 0; i < k; i++) {
        for (int32_t j = 0; j < k; j++) a[(int64_t)i * k + j] = l->m[which[i] * n + which[j]];
        b[i] = -l->q[which[i]];
    }
    if (!lemke_gauss(a, b, k)) return;
    for (int32_t i = 0; i < k; i++) l->z[which[i]] = fmax(b[i], 0);
}

TB_STATIC void lemke_impulses(const tb_lemke *l, tb_real *lambda)
{
    const tb_problem *p = l->problem;
    for (int32_t b = 0, i = 0; b < p->number_of_blocks; i += lemke_size(&p->blocks[b]), b++) {
        const tb_block *block = &p->blocks[b];
        lambda[block->row] = TB_R(l->z[i]);
        if (block->rows < 2) continue;
        lambda[block->row + 1] = lemke_size(block) == 4 ? TB_R(l->z[i + 1] - l->z[i + 2]) : 0;
    }
}

TB_STATIC tb_status lemke_take(tb_lemke *l, tb_arena *scratch, tb_real **g, int32_t **which)
{
    const tb_problem *p = l->problem;
    for (int32_t b = 0; b < p->number_of_blocks; b++) {
        const int32_t law = p->blocks[b].law;
        if (law != TB_LAW_PLANAR && law != TB_LAW_UNILATERAL) return TB_UNSUPPORTED;
        if (l->n > INT32_MAX / 2 - 4) return TB_RESOURCE_EXHAUSTED;
        l->n += lemke_size(&p->blocks[b]);
    }
    const size_t n = (size_t)l->n, rows = (size_t)p->number_of_rows;
    if (n > LEMKE_MOST_PAIRS) return TB_RESOURCE_EXHAUSTED;
    *g = TB_ARENA_ARRAY(scratch, tb_real, rows * rows);
    *which = TB_ARENA_ARRAY(scratch, int32_t, n);
    l->m = TB_ARENA_ZEROED(scratch, double, n *n);
    l->q = TB_ARENA_ZEROED(scratch, double, n);
    l->z = TB_ARENA_ZEROED(scratch, double, n);
    l->table = TB_ARENA_ARRAY(scratch, double, n *(n + 2) + n + 1);
    l->basic = TB_ARENA_ARRAY(scratch, int32_t, n);
    l->nonbasic = TB_ARENA_ARRAY(scratch, int32_t, n + 1);
    if (!*g || !*which || !l->m || !l->q || !l->z || !l->table || !l->basic || !l->nonbasic)
        return TB_RESOURCE_EXHAUSTED;
    return tb_problem_delassus(p, *g);
}

TB_STATIC bool lemke_is_finite(const tb_lemke *l)
{
    const int32_t rows = l->problem->number_of_rows;
    for (int32_t i = 0; i < rows; i++)
        if (!tb_all_finite(l->g + (int64_t)i * rows, rows)) return false;
    return tb_all_finite(l->problem->c, rows);
}

/* Attempts until one reaches the tolerance; leaves the best impulses. */
TB_STATIC tb_status lemke_attempt_all(tb_lemke *l, const tb_solve_options *o, tb_arena *scratch,
                                      int32_t *which, tb_solution *solution)
{
    const size_t rows = (size_t)l->problem->number_of_rows;
    double best = DBL_MAX;
    tb_real *lambda = TB_ARENA_ARRAY(scratch, tb_real, rows);
    if (!lambda) return TB_RESOURCE_EXHAUSTED;
    solution->status = TB_NOT_CONVERGED;
    for (int32_t attempt = 0; attempt < LEMKE_ATTEMPTS && solution->status != TB_OK; attempt++) {
        lemke_begin(l, attempt);
        if (lemke_pivot(l, o) == TB_CANCELLED) return TB_CANCELLED;
        lemke_finish(l, which);
        lemke_impulses(l, lambda);
        const tb_status status = tb_problem_judge(l->problem, lambda, NULL, scratch, NULL,
                                                  solution->xi, &solution->residuals);
        if (status != TB_OK) return status;
        if (!(solution->residuals.natural < best)) continue;
        best = solution->residuals.natural;
        memcpy(solution->lambda, lambda, rows * sizeof(tb_real));
        if (best <= o->tolerance) solution->status = TB_OK;
    }
    return TB_OK;
}

TB_EXTERN tb_status tb_solve_lemke(const tb_problem *problem, const tb_solve_options *options,
                                   tb_warm_start *warm, tb_solution *solution)
{
    if (!(options->tolerance >= 0) || options->maximum_iterations < 1) return TB_INVALID_ARGUMENT;
    const tb_arena_mark mark = tb_arena_get_mark(warm->scratch);
    const size_t rows = (size_t)problem->number_of_rows;
    tb_lemke l = {.problem = problem};
    tb_real *g = NULL;
    int32_t *which = NULL;
    solution->halvings = solution->first_check = 0;
    tb_solution_sign(solution, "lemke");
    tb_status status = lemke_take(&l, warm->scratch, &g, &which);
    if (status != TB_OK) goto done;
    l.g = g;
    memset(solution->lambda, 0, rows * sizeof(tb_real));
    solution->status = TB_DIVERGED;
    if (lemke_is_finite(&l)) {
        lemke_fill(&l);
        status = lemke_attempt_all(&l, options, warm->scratch, which, solution);
    }
    if (status != TB_OK) goto done;
    solution->iterations = l.pivots;
    status = tb_problem_judge(problem, solution->lambda, NULL, warm->scratch, solution->whitened,
                              solution->xi, &solution->residuals);
    tb_problem_statuses(problem, solution->lambda, solution->statuses);
done:
    tb_arena_return_to(warm->scratch, mark);
    return status;
}
