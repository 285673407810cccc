/* A signed distance that was measured at the nodes of a lattice of cubes: negative inside, m.
 *
 * Between nodes it is trilinear. Outside of the lattice the distance to the lattice's box is added to
 * the value at its nearest point. */
#ifndef TB_SOFT_SAMPLES_H
#define TB_SOFT_SAMPLES_H

#include "base/vector.h"

typedef struct tb_soft_samples {
    const double *distance; /* nodes, x fastest, m */
    int32_t nodes[3];       /* at least 2 along each axis */
    double origin[3], step; /* m: of node (0, 0, 0); edge of a cube */
} tb_soft_samples;

TB_FN double tb_soft_sample(const tb_soft_samples *s, tb_vec3 point)
{
    const double x[3] = {point.x, point.y, point.z};
    int64_t at[3];
    double u[3], beyond2 = 0, sum = 0;
    for (int a = 0; a < 3; a++) {
        const double last = s->nodes[a] - 1, t = (x[a] - s->origin[a]) / s->step;
        const double inside = tb_max(0.0, tb_min(t, last));
        const double out = (t - inside) * s->step;
        beyond2 += out * out;
        at[a] = (int64_t)tb_min(inside, last - 1);
        u[a] = inside - (double)at[a];
    }
    const int64_t stride[3] = {1, s->nodes[0], (int64_t)s->nodes[0] * s->nodes[1]};
    const double *q = s->distance + at[0] + at[1] * stride[1] + at[2] * stride[2];
    for (int c = 0; c < 8; c++) {
        double weight = 1;
        int64_t place = 0;
        for (int a = 0; a < 3; a++) {
            weight *= (c >> a & 1) ? u[a] : 1 - u[a];
            place += (c >> a & 1) ? stride[a] : 0;
        }
        sum += weight * q[place];
    }
    return sum + sqrt(beyond2);
}

#endif
