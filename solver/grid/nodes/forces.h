/* One node or cell of a body on the grid: stress, the change of velocity by it, momentum and energy. The
 * loops are in grid/forces.c and, on a card, in gpu/grid. */
#ifndef TB_SOFT_NODES_FORCES_H
#define TB_SOFT_NODES_FORCES_H

#include "grid/nodes/space.h"

/* Forces of stress in the cell above node n on its corners (24, N), and the cell's part of the sums.
 * False, and zero forces, if the cell is empty. */
TB_FN bool tb_soft_stress_cell(const tb_soft_space *s, const tb_soft_field *f,
                               const tb_soft_material *m, int32_t n, double *force,
                               tb_soft_sums *sums)
{
    const double *octant = f->octant + 8 * (int64_t)n;
    double X[24], v[24];
    bool gathered = false;
    for (int i = 0; i < 24; i++) force[i] = 0;
    for (int o = 0; o < 8; o++) {
        if (!(octant[o] > 0)) continue;
        if (!gathered) {
            tb_soft_corner_values(s, f->X, n, X);
            tb_soft_corner_values(s, f->v, n, v);
            gathered = true;
        }
        const double *slope = s->tables.slope[o];
        const tb_mat33 g = tb_soft_gradient(X, slope), l = tb_soft_gradient(v, slope);
        tb_soft_stress stress;
        const double j = tb_soft_stress_of(m, &g, &l, &stress);
        const double undeformed = octant[o] / m->density, volume = undeformed * j;
        sums->smallest = tb_min(sums->smallest, j);
        sums->elastic += undeformed * stress.energy;
        sums->damped_power += volume * stress.dissipation;
        sums->stiffness = tb_max(sums->stiffness, stress.stiffness);
        for (int c = 0; c < 8; c++) {
            const double *d = slope + 3 * c;
            for (int a = 0; a < 3; a++)
                force[3 * c + a] -=
                    volume * (stress.sigma.m[3 * a] * d[0] + stress.sigma.m[3 * a + 1] * d[1] +
                              stress.sigma.m[3 * a + 2] * d[2]);
        }
    }
    return gathered;
}

/* v <- v + dt (force / mass + g) at a node with mass; cell_force: nodes x 24. */
TB_FN void tb_soft_accelerate_node(const tb_soft_space *s, const tb_soft_field *f,
                                   const double *cell_force, double dt, const int32_t at[3],
                                   int32_t n)
{
    double force[3] = {0, 0, 0};
    if (f->layer[n] != 0) return;
    for (int c = 0; c < 8; c++) {
        int32_t cell;
        if (!tb_soft_cell_below(s, f, at, c, &cell)) continue;
        const double *from = cell_force + 24 * (int64_t)cell + 3 * c;
        for (int a = 0; a < 3; a++) force[a] += from[a];
    }
    for (int a = 0; a < 3; a++)
        f->v[3 * (int64_t)n + a] += dt * (force[a] / f->mass[n] + s->gravity[a]);
}

/* Mass, momentum, kinetic and potential energy, and speed of a node; false: it has no mass. */
TB_FN bool tb_soft_node_momentum(const tb_soft_space *s, const tb_soft_field *f,
                                 const int32_t at[3], int32_t n, tb_soft_sums *sums)
{
    const double *h = s->lattice.spacing;
    const double m = f->mass[n], *v = f->v + 3 * (int64_t)n;
    double x[3];
    if (f->layer[n] != 0) return false;
    tb_soft_place_of(s, at, x);
    sums->mass = m;
    for (int a = 0; a < 3; a++) {
        const int b = (a + 1) % 3, c = (a + 2) % 3;
        sums->moment[a] = m * x[a];
        sums->momentum[a] = m * v[a];
        sums->angular[a] = m * (x[b] * v[c] - x[c] * v[b]);
        sums->inertia[a] = m * (x[b] * x[b] + x[c] * x[c]);
        sums->inertia[3 + a] = -(m * x[a == 2] * x[a == 0 ? 1 : 2]);
        sums->kinetic += 0.5 * m * v[a] * v[a];
        sums->potential -= m * s->gravity[a] * x[a];
    }
    sums->speed = tb_abs(v[0]) / h[0] + tb_abs(v[1]) / h[1] + tb_abs(v[2]) / h[2];
    /* not finite: no step is short enough */
    if (!(sums->kinetic <= 1e300)) sums->speed = 1e300;
    return true;
}

#endif
