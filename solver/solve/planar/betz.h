/* Betz's prox sweeps for contacts in the plane (Solving Rigid Multibody Physics Dynamics Using
 * Proximal Point Functions on the GPU, RPI 2011, sections 3.2 and 3.4), one contact or one dof at a
 * time.
 *
 * His kernels calculateR, solveNormal, solveFriction and updateBodyNu, on whitened velocities: with
 * Y = M^-1/2 W and s = Y p, the velocity of a row is Y_row . s + c, where c holds the free velocity
 * and, of a normal, gap / h. All of a sweep's contacts see the velocities of the sweep before it,
 * so their order does not matter, and a card may give every contact a thread. */
#ifndef TB_BETZ_H
#define TB_BETZ_H

#include "solve/solve.h"

enum {
    TB_BETZ_NORMAL_CONVERGED = 1,   /* rho_n > -tolerance */
    TB_BETZ_FRICTION_CONVERGED = 2, /* p_n = 0, |rho_f| < tolerance, or p_f was clamped */
    TB_BETZ_OVER_LIMIT = 4          /* the trial p_n exceeded the limit */
};

/* One solve. Arrays from the solver's scratch. */
#define tb_betz TB_SYMBOL(tb_betz)
typedef struct tb_betz {
    const tb_problem *problem;
    tb_real *p;           /* rows, N s */
    tb_real *s;           /* dofs: Y p */
    tb_real *r;           /* rows, kg */
    uint8_t *flags;       /* blocks */
    int32_t *start;       /* dofs + 1: first of the dof's numbers of Y in ... */
    int32_t *row;         /* ... the row of each, and ... */
    tb_real *coefficient; /* ... the number itself */
    tb_real tolerance;
    tb_real limit; /* N s, of p_n; 0: none */
    bool freeze;   /* a normal that has converged keeps its impulse while rho_n > -tolerance */
} tb_betz;

/* rho of a row: Y_row . s + c, m/s. */
TB_FN tb_real tb_betz_rho(const tb_betz *z, const tb_block *block, int32_t k)
{
    const tb_problem *problem = z->problem;
    const tb_real *y = problem->values + block->value + (int64_t)k * block->width;
    tb_real rho = problem->c[block->row + k];
    for (int32_t i = 0; i < block->segments; i++) {
        const tb_segment run = problem->segments[block->segment + i];
        for (int32_t j = 0; j < run.count; j++) rho += *y++ * z->s[run.dof + j];
    }
    return rho;
}

/* r = omega / G_ii (2.53, G_ii by his 3.7), or omega for all (2.52); 0 where nothing can move. */
TB_FN void tb_betz_calculate_r(const tb_betz *z, int32_t b, tb_real omega, bool richardson)
{
    const tb_block *block = &z->problem->blocks[b];
    for (int32_t k = 0; k < block->rows; k++) {
        const tb_real g = tb_block_row_square(z->problem->values, block, k);
        z->r[block->row + k] = g > 0 ? (richardson ? omega : omega / g) : 0;
    }
}

/* p_n = max(0, p_n - r_n rho_n) (2.49). */
TB_FN void tb_betz_solve_normal(const tb_betz *z, int32_t b)
{
    const tb_block *block = &z->problem->blocks[b];
    const tb_real rho = tb_betz_rho(z, block, 0);
    const bool was = (z->flags[b] & TB_BETZ_NORMAL_CONVERGED) != 0, is = rho > -z->tolerance;
    if (z->freeze && was && is) return;
    tb_real p = z->p[block->row] - z->r[block->row] * rho;
    if (!(p > 0)) p = 0;
    z->flags[b] = (uint8_t)((z->flags[b] & ~(TB_BETZ_NORMAL_CONVERGED | TB_BETZ_OVER_LIMIT)) |
                            (is ? TB_BETZ_NORMAL_CONVERGED : 0) |
                            (z->limit > 0 && p > z->limit ? TB_BETZ_OVER_LIMIT : 0));
    z->p[block->row] = p;
}

/* p_f = clamp(p_f - r_f rho_f, -mu p_n, mu p_n) by the new p_n (2.50). */
TB_FN void tb_betz_solve_friction(const tb_betz *z, int32_t b, tb_real mu)
{
    const tb_block *block = &z->problem->blocks[b];
    if (block->rows < 2) {
        z->flags[b] |= TB_BETZ_FRICTION_CONVERGED;
        return;
    }
    const int32_t row = block->row + 1;
    const tb_real bound = mu * z->p[block->row];
    const tb_real rho = tb_betz_rho(z, block, 1);
    tb_real p = z->p[row] - z->r[row] * rho;
    bool converged = z->p[block->row] <= 0 || tb_abs(rho) < z->tolerance;
    if (p < -bound || p > bound) {
        p = p < 0 ? -bound : bound;
        converged = true;
    }
    z->flags[b] = (uint8_t)((z->flags[b] & ~TB_BETZ_FRICTION_CONVERGED) |
                            (converged ? TB_BETZ_FRICTION_CONVERGED : 0));
    z->p[row] = p;
}

/* updateBodyNu: one dof's s, summed in the order of the contacts on every thread. */
TB_FN void tb_betz_update_dof(const tb_betz *z, int32_t dof)
{
    tb_real sum = 0;
    for (int32_t i = z->start[dof]; i < z->start[dof + 1]; i++)
        sum += z->coefficient[i] * z->p[z->row[i]];
    z->s[dof] = sum;
}

/* One block of Gauss-Seidel (2.54): its bodies are brought up to date at once. */
TB_FN void tb_betz_move(const tb_betz *z, const tb_block *block, int32_t k, tb_real change)
{
    const tb_problem *problem = z->problem;
    const tb_real *y = problem->values + block->value + (int64_t)k * block->width;
    for (int32_t i = 0; i < block->segments; i++) {
        const tb_segment run = problem->segments[block->segment + i];
        for (int32_t j = 0; j < run.count; j++) z->s[run.dof + j] += *y++ * change;
    }
}

TB_FN void tb_betz_solve_in_turn(const tb_betz *z, int32_t b)
{
    const tb_block *block = &z->problem->blocks[b];
    const tb_real normal = z->p[block->row];
    tb_betz_solve_normal(z, b);
    tb_betz_move(z, block, 0, z->p[block->row] - normal);
    if (block->rows < 2) {
        z->flags[b] |= TB_BETZ_FRICTION_CONVERGED;
        return;
    }
    const tb_real friction = z->p[block->row + 1];
    tb_betz_solve_friction(z, b, block->mu);
    tb_betz_move(z, block, 1, z->p[block->row + 1] - friction);
}

#endif
