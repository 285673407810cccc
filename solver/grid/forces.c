/* Forces of stress on nodes, and the mass, momentum and energy of a body.
 *
 * The stress is constant in an octant. The force on a node is the sum of -V sigma grad phi over the
 * octants around it; for one stress a cell that is the flux through the faces of the node's control
 * volume (Litven 4.1). The gradients of the shape functions add up to zero, so the forces do. */
#include <string.h>

#include "grid/grid_internal.h"

static void stress_cell(tb_soft_world *w, int32_t body, int32_t n, tb_soft_sums *sums)
{
    const tb_soft_field *f = w->fields + body;
    const tb_soft_material *m = &w->scene.bodies[body].material;
    const double *octant = f->octant + 8 * (size_t)n;
    double *force = w->cell_force + 24 * (size_t)n, X[24], v[24];
    bool gathered = false;
    memset(force, 0, 24 * sizeof *force);
    for (int o = 0; o < 8; o++) {
        if (!(octant[o] > 0)) continue;
        if (!gathered) {
            tb_soft_gather(w, f->X, n, X);
            tb_soft_gather(w, f->v, n, v);
            gathered = true;
        }
        const double *slope = w->tables.slope[o];
        const tb_mat33 g = tb_soft_gradient(X, slope), l = tb_soft_gradient(v, slope);
        tb_soft_stress s;
        const double j = tb_soft_stress_of(m, &g, &l, &s);
        const double undeformed = octant[o] / m->density, volume = undeformed * j;
        sums->smallest = tb_min(sums->smallest, j);
        sums->elastic += undeformed * s.energy;
        sums->damped_power += volume * s.dissipation;
        sums->stiffness = tb_max(sums->stiffness, s.stiffness);
        for (int c = 0; c < 8; c++) {
            const double *d = slope + 3 * c;
            for (int a = 0; a < 3; a++)
                force[3 * c + a] -=
                    volume * (s.sigma.m[3 * a] * d[0] + s.sigma.m[3 * a + 1] * d[1] +
                              s.sigma.m[3 * a + 2] * d[2]);
        }
    }
}

static void stress_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                         void *context)
{
    const tb_soft_field *f = w->fields + body;
    (void)context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) stress_cell(w, body, n, sums);
}

tb_soft_sums tb_soft_stress_pass(tb_soft_world *w, int32_t body)
{
    return tb_soft_planes(w, body, stress_plane, NULL);
}

static void accelerate_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                             void *context)
{
    const double dt = *(const double *)context, *g = w->scene.gravity;
    tb_soft_field *f = w->fields + body;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        double force[3] = {0};
        if (f->layer[n] != 0) continue;
        for (int c = 0; c < 8; c++) {
            const int32_t x = i - (c & 1), y = j - (c >> 1 & 1), z = k - (c >> 2 & 1);
            if (x < f->lower[0] || y < f->lower[1] || z < f->lower[2]) continue;
            const double *from = w->cell_force + 24 * (size_t)tb_soft_node(w, x, y, z) + 3 * c;
            for (int a = 0; a < 3; a++) force[a] += from[a];
        }
        for (int a = 0; a < 3; a++)
            f->v[3 * (size_t)n + (size_t)a] += dt * (force[a] / f->mass[n] + g[a]);
    }
}

void tb_soft_accelerate(tb_soft_world *w, int32_t body, double dt)
{
    tb_soft_planes(w, body, accelerate_plane, &dt);
    tb_soft_clamps_hold(w, body);
}

static void momentum_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *s,
                           void *context)
{
    const tb_soft_field *f = w->fields + body;
    const double *h = w->scene.lattice.spacing;
    (void)context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const double m = f->mass[n], *v = f->v + 3 * (size_t)n;
        const double x[3] = {tb_soft_coordinate(w, 0, i), tb_soft_coordinate(w, 1, j),
                             tb_soft_coordinate(w, 2, k)};
        if (f->layer[n] != 0) continue;
        s->mass += m;
        for (int a = 0; a < 3; a++) {
            const int b = (a + 1) % 3, c = (a + 2) % 3;
            s->moment[a] += m * x[a];
            s->momentum[a] += m * v[a];
            s->angular[a] += m * (x[b] * v[c] - x[c] * v[b]);
            s->inertia[a] += m * (x[b] * x[b] + x[c] * x[c]);
            s->inertia[3 + a] -= m * x[a == 2] * x[a == 0 ? 1 : 2];
            s->kinetic += 0.5 * m * v[a] * v[a];
            s->potential -= m * w->scene.gravity[a] * x[a];
        }
        s->speed = tb_max(s->speed, fabs(v[0]) / h[0] + fabs(v[1]) / h[1] + fabs(v[2]) / h[2]);
        if (!(s->kinetic <= 1e300)) s->speed = 1e300; /* not finite: no step is short enough */
    }
}

tb_soft_sums tb_soft_momentum_pass(tb_soft_world *w, int32_t body)
{
    return tb_soft_planes(w, body, momentum_plane, NULL);
}
