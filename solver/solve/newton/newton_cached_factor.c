/* Newton's system solved by the factor of an earlier solve.
 *
 * A world with few dofs keeps, from one time step to the next, the inverse of the last factored
 * matrix, whatever its contacts were, and the ratio of its weights w to the diagonal. It
 * preconditions GMRES (Saad and Schultz, SIAM J. Sci. Stat. Comput. 7, 1986) on the matrix as it
 * is, from the right, so that the residual is the true one; only an answer whose residual the
 * tolerance does not see is taken, else the matrix is factored anew, and that factor stays.
 *
 * A factor of 1 + Y D' Y' ages as the rows of Y move by the root of their weight, and an impact
 * changes the weight itself, since a start far from the tolerance gets a weak proximal term. With
 * another weight, GMRES needs more iterations. So a solve takes the factor's own weight if that is
 * within a decade below the one it would choose; most such solves then succeed with one or two
 * iterations, and unchanged statuses need one. tests/bench/results/README.md, "Cached factor of
 * Newton", has the figures. */
#include "solve/newton/newton_system.h"

#include "base/team.h"

enum { MOST_VECTORS = 3 }; /* together they cost about as much as a factorization */
/* a weaker pull needs more vectors than that */
static const double LEAST_WEIGHT = 1e-6;
/* of the chosen weight: a weaker proximal term serves as well */
static const double LEAST_WEIGHT_RATIO = 0.1;
/* of a new factor: later solves that choose a smaller weight can use it */
static const double NEW_WEIGHT_RATIO = 0.3;

TB_EXTERN tb_status tb_newton_cached_factor_prepare(tb_newton_system *system, double *numbers)
{
    tb_newton_cached_factor *cached = &system->cached;
    const int64_t dofs = system->problem->number_of_dofs;
    const bool some =
        system->problem->values && dofs > 0 && tb_cached_factor_numbers((int32_t)dofs) > 0;
    cached->numbers = some ? numbers : NULL;
    cached->weight = 0;
    if (!cached->numbers) return TB_OK;
    cached->basis = TB_ARENA_ARRAY(system->arena, tb_real, (MOST_VECTORS + 1) * dofs);
    cached->near = TB_ARENA_ARRAY(system->arena, tb_real, MOST_VECTORS * dofs);
    cached->inverse = TB_ARENA_ARRAY(system->arena, tb_real, dofs * dofs);
    return cached->basis && cached->near && cached->inverse ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

TB_EXTERN double tb_newton_cached_factor_begin(tb_newton_system *system, double weight,
                                               double enough)
{
    tb_newton_cached_factor *cached = &system->cached;
    if (!cached->numbers || weight < LEAST_WEIGHT) return weight;
    const double own = cached->numbers[0];
    cached->weight =
        own <= weight && own >= LEAST_WEIGHT_RATIO * weight ? own : NEW_WEIGHT_RATIO * weight;
    cached->enough = enough;
    tb_team_sync(); /* all have read it */
    return cached->weight;
}

TB_EXTERN void tb_newton_cached_factor_end(tb_newton_system *system)
{
    system->cached.weight = 0;
}

TB_EXTERN void tb_newton_cache_factor(tb_newton_system *system)
{
    tb_newton_cached_factor *cached = &system->cached;
    const int32_t n = system->problem->number_of_dofs;
    if (!cached->numbers || !(cached->weight > 0)) return;
    TB_EACH (i, n * n) cached->inverse[i] = i / n == tb_newton_row_of_dof(system, i % n) ? 1 : 0;
    tb_team_sync();
    tb_block_lu_solve_columns(&system->lu, cached->inverse, n);
    TB_EACH (i, n * n)
        cached->numbers[1 + i] =
            (double)cached->inverse[tb_newton_row_of_dof(system, i / n) * n + i % n];
    if (TB_LEADER) cached->numbers[0] = cached->weight;
    tb_team_sync();
}

/* ---- GMRES ---- */

/* The triangle of Givens' rotations, and the rotated right side. */
#define givens_triangle TB_SYMBOL(givens_triangle)
typedef struct givens_triangle {
    double h[MOST_VECTORS + 1][MOST_VECTORS];
    double cosine[MOST_VECTORS], sine[MOST_VECTORS], right[MOST_VECTORS + 1];
} givens_triangle;

TB_CALLED double basis_dot(const tb_real *a, const tb_real *b, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    tb_team_sync(); /* all have read them */
    return sum;
}

/* Column m of the triangle, from a product that is made orthogonal to the basis. False where there
 * is nothing new. */
TB_STATIC bool extend_basis(tb_newton_system *system, givens_triangle *t, int32_t m)
{
    const int32_t n = system->problem->number_of_dofs;
    tb_real *own = system->cached.basis + (m + 1) * n;
    for (int32_t i = 0; i <= m; i++) {
        const tb_real *u = system->cached.basis + i * n;
        t->h[i][m] = basis_dot(u, own, n);
        TB_EACH (k, n) own[k] -= TB_R(t->h[i][m]) * u[k];
        tb_team_sync();
    }
    const double length = tb_newton_length(own, n);
    for (int32_t i = 0; i < m; i++) {
        const double above = t->h[i][m], below = t->h[i + 1][m];
        t->h[i][m] = t->cosine[i] * above + t->sine[i] * below;
        t->h[i + 1][m] = t->cosine[i] * below - t->sine[i] * above;
    }
    const double radius = sqrt(t->h[m][m] * t->h[m][m] + length * length);
    if (!(radius > 0)) return false;
    t->cosine[m] = t->h[m][m] / radius;
    t->sine[m] = length / radius;
    t->h[m][m] = radius;
    t->right[m + 1] = -t->sine[m] * t->right[m];
    t->right[m] *= t->cosine[m];
    TB_EACH (k, n) own[k] = length > 0 ? TB_R((double)own[k] / length) : 0;
    tb_team_sync();
    return true;
}

/* ds from the m vectors that are near. */
TB_STATIC void sum_near(tb_newton_system *system, const givens_triangle *t, int32_t m)
{
    const int32_t n = system->problem->number_of_dofs;
    double y[MOST_VECTORS];
    for (int32_t i = m - 1; i >= 0; i--) {
        y[i] = t->right[i];
        for (int32_t k = i + 1; k < m; k++) y[i] -= t->h[i][k] * y[k];
        y[i] /= t->h[i][i];
    }
    TB_EACH (k, n) {
        double sum = 0;
        for (int32_t i = 0; i < m; i++) sum += y[i] * (double)system->cached.near[i * n + k];
        system->ds[k] = TB_R(sum);
    }
    tb_team_sync();
}

TB_EXTERN bool tb_newton_cached_factor_solve(tb_newton_system *system)
{
    const tb_newton_cached_factor *cached = &system->cached;
    const int32_t n = system->problem->number_of_dofs;
    if (!cached->numbers || !(cached->weight > 0) || cached->weight != cached->numbers[0])
        return false;
    givens_triangle t;
    const double length = tb_newton_length(system->ds, n);
    if (!(length > 0) || !(length <= DBL_MAX)) return false;
    TB_EACH (k, n) cached->basis[k] = TB_R((double)system->ds[k] / length);
    tb_team_sync();
    t.right[0] = length;
    int32_t m = 0;
    while (m < MOST_VECTORS && !(fabs(t.right[m]) <= cached->enough)) {
        const tb_real *v = cached->basis + m * n;
        tb_real *near = cached->near + m * n;
        TB_EACH (i, n) {
            double sum = 0;
            TB_ROLLED
            for (int32_t k = 0; k < n; k++) sum += cached->numbers[1 + i * n + k] * (double)v[k];
            near[i] = TB_R(sum);
        }
        tb_team_sync();
        tb_newton_product(system, near, cached->basis + (m + 1) * n);
        if (!extend_basis(system, &t, m)) return false;
        m++;
    }
    if (!(fabs(t.right[m]) <= cached->enough)) return false;
    sum_near(system, &t, m);
    return true;
}
