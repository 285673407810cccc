/* Anderson acceleration; see the header. */
#include "solve/sweep/accelerate.h"

#include <string.h>

/* sweeps between two jumps; plain sweeps damp the errors of a jump */
static const int32_t PERIOD = 2;
/* most plain sweeps between jumps, after many that failed in a row */
static const int32_t LONGEST_PAUSE = 64;
/* added to the diagonal of the Gram matrix, relative to its largest number */
static const double REGULARIZATION = 1e-14;

/* weights: the diagonal of G */
TB_STATIC void weigh_rows(tb_acceleration *a, const tb_problem *problem)
{
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        tb_real g[TB_BLOCK_ROWS * TB_BLOCK_ROWS];
        tb_problem_local_block(problem, b, g);
        for (int i = 0; i < block->rows; i++)
            a->weight[block->row + i] = tb_abs(g[i * block->rows + i]);
    }
    tb_team_sync();
}

TB_EXTERN tb_status tb_accelerate_prepare(tb_acceleration *a, const tb_problem *problem,
                                          int32_t depth, tb_arena *scratch)
{
    const int32_t n = problem->number_of_rows;
    memset(a, 0, sizeof *a);
    a->rows = n;
    a->depth = depth < TB_ACCELERATION_DEPTH ? depth : TB_ACCELERATION_DEPTH;
    a->weight = TB_ARENA_ARRAY(scratch, tb_real, n);
    a->x = TB_ARENA_ARRAY(scratch, tb_real, n);
    a->g = TB_ARENA_ARRAY(scratch, tb_real, n);
    a->f = TB_ARENA_ARRAY(scratch, tb_real, n);
    a->dg = TB_ARENA_ARRAY(scratch, tb_real, (size_t)n * (size_t)a->depth);
    a->df = TB_ARENA_ARRAY(scratch, tb_real, (size_t)n * (size_t)a->depth);
    a->gram = TB_ARENA_ARRAY(scratch, double, a->depth * a->depth);
    a->along = TB_ARENA_ARRAY(scratch, double, a->depth);
    if (!a->weight || !a->x || !a->g || !a->f || !a->dg || !a->df || !a->gram || !a->along)
        return TB_RESOURCE_EXHAUSTED;
    tb_accelerate_restart(a);
    a->pause = 1;
    a->smallest = DBL_MAX;
    a->safe = TB_ARENA_ARRAY(scratch, tb_real, n);
    if (!a->safe) return TB_RESOURCE_EXHAUSTED;
    weigh_rows(a, problem);
    return TB_OK;
}

TB_EXTERN void tb_accelerate_restart(tb_acceleration *a)
{
    a->count = a->oldest = 0;
    a->primed = a->jumped = false;
}

TB_EXTERN void tb_accelerate_begin(tb_acceleration *a, const tb_real *lambda)
{
    tb_team_copy(a->x, lambda, (size_t)a->rows * sizeof(tb_real));
    tb_team_sync();
}

TB_CALLED double dot(const tb_real *x, const tb_real *y, int32_t n)
{
    double a = 0, b = 0;
    int32_t i = 0;
    for (; i + 1 < n; i += 2) {
        a += (double)x[i] * (double)y[i];
        b += (double)x[i + 1] * (double)y[i + 1];
    }
    if (i < n) a += (double)x[i] * (double)y[i];
    return a + b;
}

/* the newest differences take the oldest's place, with their row of the Gram matrix */
TB_STATIC void remember_sweep(tb_acceleration *a, const tb_real *lambda)
{
    const int32_t n = a->rows;
    int32_t slot = a->count;
    if (a->count < a->depth) {
        a->count++;
    } else {
        slot = a->oldest;
        a->oldest = (a->oldest + 1) % a->depth;
    }
    tb_real *df = a->df + (int64_t)slot * n, *dg = a->dg + (int64_t)slot * n;
    TB_EACH (i, n) {
        const tb_real f = a->weight[i] * (lambda[i] - a->x[i]);
        df[i] = f - a->f[i];
        dg[i] = lambda[i] - a->g[i];
        a->f[i] = f;
        a->g[i] = lambda[i];
    }
    tb_team_sync();
    TB_EACH (k, a->count) {
        const double product = dot(df, a->df + (int64_t)k * n, n);
        a->gram[slot * a->depth + k] = product;
        a->gram[k * a->depth + slot] = product;
    }
    tb_team_sync();
}

/* gamma minimizing |f - sum gamma_k df_k|: normal equations, scaled to a unit diagonal */
TB_STATIC bool combination(const tb_acceleration *a, double *gamma)
{
    const int32_t m = a->count;
    double l[TB_ACCELERATION_DEPTH][TB_ACCELERATION_DEPTH], scale[TB_ACCELERATION_DEPTH];
    TB_ROLLED
    for (int32_t i = 0; i < m; i++) {
        const double diagonal = a->gram[i * a->depth + i];
        if (!(diagonal > 0) || !(diagonal <= DBL_MAX)) return false;
        scale[i] = 1 / sqrt(diagonal);
    }
    TB_EACH (i, m) a->along[i] = dot(a->f, a->df + (int64_t)i * a->rows, a->rows);
    tb_team_sync();
    for (int32_t i = 0; i < m; i++) gamma[i] = scale[i] * a->along[i];
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j <= i; j++) {
            double sum = a->gram[i * a->depth + j] * scale[i] * scale[j];
            if (i == j) sum += REGULARIZATION;
            TB_ROLLED
            for (int32_t k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
            if (j < i) {
                l[i][j] = sum / l[j][j];
            } else {
                if (!(sum > REGULARIZATION / 4)) return false;
                l[i][i] = sqrt(sum);
            }
        }
    }
    for (int32_t i = 0; i < m; i++) {
        TB_ROLLED
        for (int32_t k = 0; k < i; k++) gamma[i] -= l[i][k] * gamma[k];
        gamma[i] /= l[i][i];
    }
    for (int32_t i = m - 1; i >= 0; i--) {
        TB_ROLLED
        for (int32_t k = i + 1; k < m; k++) gamma[i] -= l[k][i] * gamma[k];
        gamma[i] /= l[i][i];
    }
    for (int32_t i = 0; i < m; i++) {
        gamma[i] *= scale[i];
        if (!(fabs(gamma[i]) <= DBL_MAX)) return false;
    }
    return true;
}

TB_EXTERN bool tb_accelerate_step(tb_acceleration *a, const tb_problem *problem, tb_real *lambda)
{
    const int32_t n = a->rows;

    /* how large the change is; a jump that enlarged it is taken back */
    double size = 0;
    for (int32_t i = 0; i < n; i++) {
        const double f = (double)(a->weight[i] * (lambda[i] - a->x[i]));
        size += f * f;
    }
    size = sqrt(size);
    tb_team_sync();
    if (a->jumped && !(size <= a->smallest)) {
        tb_team_copy(lambda, a->safe, (size_t)n * sizeof(tb_real));
        tb_team_sync();
        tb_accelerate_restart(a);
        a->plain = a->pause;
        a->pause = 2 * a->pause < LONGEST_PAUSE ? 2 * a->pause : LONGEST_PAUSE;
        return true;
    }
    if (a->jumped && a->pause > 1) a->pause /= 2;
    const bool was_jump = a->jumped;
    a->jumped = false;
    if (size <= a->smallest || !was_jump) {
        a->smallest = size;
        tb_team_copy(a->safe, lambda, (size_t)n * sizeof(tb_real));
    }
    if (!a->primed) {
        TB_EACH (i, n) {
            a->f[i] = a->weight[i] * (lambda[i] - a->x[i]);
            a->g[i] = lambda[i];
        }
        tb_team_sync();
        a->primed = true;
        return false;
    }
    remember_sweep(a, lambda);
    if (a->plain > 0) {
        a->plain--;
        return false;
    }
    a->plain = PERIOD - 1;
    double gamma[TB_ACCELERATION_DEPTH];
    if (!combination(a, gamma)) {
        tb_accelerate_restart(a);
        return false;
    }
    for (int32_t k = 0; k < a->count; k++) {
        const tb_real *dg = a->dg + (int64_t)k * n;
        const tb_real factor = TB_R(gamma[k]);
        TB_EACH (i, n) lambda[i] -= factor * dg[i];
    }
    tb_team_sync();
    TB_EACH (b, problem->number_of_blocks) {
        const tb_block *block = &problem->blocks[b];
        tb_prox_block(block->law, block->rows, block->mu, block->lower, block->upper,
                      lambda + block->row);
    }
    tb_team_sync();
    a->jumped = true;
    return true;
}
