/* One node of a body on the grid: transport of X and v by v (Litven, section 4.1), and the repair of
 * momentum. The loops are in grid/transport.c and, on a card, in gpu/grid. */
#ifndef TB_SOFT_NODES_MOTION_H
#define TB_SOFT_NODES_MOTION_H

#include "grid/nodes/space.h"

/* Nodes x 3: results of a stage of transport, and X and v before the first of two stages. */
typedef struct tb_soft_stages {
    double *next_X, *next_v, *first_X, *first_v;
} tb_soft_stages;

/* The result of a stage at a node; second: the second of two stages. The velocity that carries is that of
 * the substep in both. */
TB_FN void tb_soft_advect_node(const tb_soft_space *s, const tb_soft_field *f,
                               const tb_soft_stages *r, double dt, bool second, int32_t n)
{
    const int64_t at = 3 * (int64_t)n;
    const int64_t stride[3] = {3 * s->stride[0], 3 * s->stride[1], 3 * s->stride[2]};
    const double *h = s->lattice.spacing;
    if (f->layer[n] != 0) return;
    const double *carrier = second ? r->first_v + at : f->v + at;
    for (int c = 0; c < 3; c++) {
        const double rate_X =
            tb_soft_advection_rate(f->X + at + c, stride, carrier, h, s->advection);
        const double rate_v =
            tb_soft_advection_rate(f->v + at + c, stride, carrier, h, s->advection);
        r->next_X[at + c] = f->X[at + c] - dt * rate_X;
        r->next_v[at + c] = f->v[at + c] - dt * rate_v;
    }
}

/* Takes over a stage's result; after the second one, the mean of it and the start. */
TB_FN void tb_soft_adopt_node(const tb_soft_field *f, const tb_soft_stages *r, bool second,
                              int32_t n)
{
    if (f->layer[n] != 0) return;
    for (int64_t at = 3 * (int64_t)n; at < 3 * (int64_t)n + 3; at++) {
        if (second) {
            f->X[at] = 0.5 * (r->first_X[at] + r->next_X[at]);
            f->v[at] = 0.5 * (r->first_v[at] + r->next_v[at]);
        } else {
            r->first_X[at] = f->X[at];
            r->first_v[at] = f->v[at];
            f->X[at] = r->next_X[at];
            f->v[at] = r->next_v[at];
        }
    }
}

/* ---- repair ---- */

typedef struct tb_soft_repair {
    double centre[3], linear[3], angular[3];
} tb_soft_repair;

/* The rigid velocity that restores a body's momentum, from `now` to its earlier value. */
TB_FN tb_soft_repair tb_soft_repair_of(const tb_soft_sums *was, const tb_soft_sums *now)
{
    tb_soft_repair r;
    double error[3], turn[3];
    for (int a = 0; a < 3; a++) {
        r.centre[a] = now->moment[a] / now->mass;
        error[a] = was->momentum[a] - now->momentum[a];
        r.linear[a] = error[a] / now->mass;
    }
    tb_mat33 inertia = tb_m33_symmetric(now->inertia), inverse;
    const double *c = r.centre, square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2];
    for (int a = 0; a < 3; a++) {
        const int b = (a + 1) % 3, d = (a + 2) % 3;
        turn[a] = was->angular[a] - now->angular[a] - (c[b] * error[d] - c[d] * error[b]);
        for (int e = 0; e < 3; e++)
            inertia.m[3 * a + e] -= now->mass * ((a == e ? square : 0) - c[a] * c[e]);
    }
    memset(r.angular, 0, sizeof r.angular);
    if (tb_m33_inverse(&inertia, &inverse) > 0)
        tb_v3_store(r.angular, tb_m33_mul_v3(&inverse, tb_v3_load(turn)));
    return r;
}

TB_FN void tb_soft_repair_node(const tb_soft_space *s, const tb_soft_field *f,
                               const tb_soft_repair *r, const int32_t at[3], int32_t n)
{
    double x[3], *v = f->v + 3 * (int64_t)n;
    if (f->layer[n] != 0) return;
    tb_soft_place_of(s, at, x);
    const double d[3] = {x[0] - r->centre[0], x[1] - r->centre[1], x[2] - r->centre[2]};
    for (int a = 0; a < 3; a++) {
        const int b = (a + 1) % 3, c = (a + 2) % 3;
        v[a] += r->linear[a] + r->angular[b] * d[c] - r->angular[c] * d[b];
    }
}

#endif
