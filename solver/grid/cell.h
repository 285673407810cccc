/* One cell of the grid: trilinear functions at its eight octants, and cuts by a linear surface.
 *
 * Corner k of a cell has the bits (x, y, z) of k: bit 0 is set at the far end in x. So do octants. A
 * field is trilinear between the corners, and everything that is integrated over the body takes one
 * point an octant: the octant's centre, weighted by the octant's occupied volume.
 *
 * Mass and stress of an octant shrink together when the surface leaves little of it. Therefore the
 * ratio of a node's stiffness to its mass has a bound that does not depend on the cut (tb_soft_rate):
 * a sliver of material needs no small time step. */
#ifndef TB_SOFT_CELL_H
#define TB_SOFT_CELL_H

#include "base/vector.h"

enum { TB_SOFT_CORNERS = 8, TB_SOFT_TETRAHEDRA = 6 };

/* the shape function of corner `corner` at the point u, each coordinate from 0 to 1 */
TB_FN double tb_soft_shape(int corner, const double u[3])
{
    double w = 1;
    for (int a = 0; a < 3; a++) w *= (corner >> a & 1) ? u[a] : 1 - u[a];
    return w;
}

/* its derivative along axis a, per cell width */
TB_FN double tb_soft_slope(int corner, int a, const double u[3])
{
    double w = (corner >> a & 1) ? 1.0 : -1.0;
    for (int b = 0; b < 3; b++)
        if (b != a) w *= (corner >> b & 1) ? u[b] : 1 - u[b];
    return w;
}

/* the centre of an octant */
TB_FN void tb_soft_octant(int octant, double u[3])
{
    for (int a = 0; a < 3; a++) u[a] = (octant >> a & 1) ? 0.75 : 0.25;
}

/* Values and gradients of the corners' functions at the octants' centres and the cell's centre. */
typedef struct tb_soft_tables {
    double share[8][8];  /* octant, corner */
    double slope[9][24]; /* octant or 8: the cell's centre; corner and axis, 1/m */
} tb_soft_tables;

TB_FN void tb_soft_tables_fill(tb_soft_tables *t, const double spacing[3])
{
    for (int p = 0; p < 9; p++) {
        double u[3] = {0.5, 0.5, 0.5};
        if (p < 8) tb_soft_octant(p, u);
        for (int c = 0; c < 8; c++) {
            if (p < 8) t->share[p][c] = tb_soft_shape(c, u);
            for (int a = 0; a < 3; a++)
                t->slope[p][3 * c + a] = tb_soft_slope(c, a, u) / spacing[a];
        }
    }
}

/* the gradient of a vector field with corner values q (8 x 3): m[3 c + a] = dq_c/dx_a, for the slopes
 * of a point */
TB_FN tb_mat33 tb_soft_gradient(const double q[24], const double slope[24])
{
    tb_mat33 g;
    for (int i = 0; i < 9; i++) g.m[i] = 0;
    for (int k = 0; k < 8; k++)
        for (int c = 0; c < 3; c++)
            for (int a = 0; a < 3; a++) g.m[3 * c + a] += q[3 * k + c] * slope[3 * k + a];
    return g;
}

/* The square of the fastest mode's rate per square of wave speed, 1/m^2, a bound: in an octant
 * |dv/dx|^2 <= (sum over corners of slope^2 / shape) sum of shape v^2, and the sum over corners is
 * 16 / (3 h^2) a direction. */
TB_FN double tb_soft_rate2(const double spacing[3])
{
    double sum = 0;
    for (int a = 0; a < 3; a++) sum += 16 / (3 * spacing[a] * spacing[a]);
    return sum;
}

/* The longest stable step (s) of symplectic Euler for modes of rate^2 <= rate2 (1/s^2) with damping
 * tau in proportion to stiffness: dt^2 rate2 + 2 dt rate2 tau <= 4. */
TB_FN double tb_soft_longest_step(double rate2, double tau)
{
    if (!(rate2 > 0)) return 1e30;
    const double quotient = 4 / rate2;
    /* sqrt(tau^2 + q) - tau, without cancellation */
    return quotient / (tau + sqrt(tau * tau + quotient));
}

/* corners of tetrahedron t of a cube, all six about the diagonal from corner `from` to the opposite one
 * (Kuhn); neighbours have mirrored diagonals, so that no direction is preferred */
TB_FN void tb_soft_tetrahedron(int t, int from, int corners[4])
{
    const int order[6][2] = {{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 0}, {0, 2}};
    corners[0] = from;
    corners[1] = from ^ 1 << order[t][0];
    corners[2] = corners[1] ^ 1 << order[t][1];
    corners[3] = from ^ 7;
}

/* The part of a tetrahedron's volume where the linear function with corner values p is negative. */
TB_FN double tb_soft_tetrahedron_part(const double p[4])
{
    int in[4], out[4], n = 0, rest = 0;
    for (int i = 0; i < 4; i++) {
        if (p[i] < 0)
            in[n++] = i;
        else
            out[rest++] = i;
    }
    if (n == 0) return 0;
    if (n == 4) return 1;
    if (n == 1 || n == 3) {
        const int lone = n == 1 ? in[0] : out[0];
        double part = 1;
        for (int i = 0; i < 4; i++)
            if (i != lone) part *= p[lone] / (p[lone] - p[i]);
        return n == 1 ? part : 1 - part;
    }
    /* a wedge from edge ab: its three tetrahedra */
    const double a = p[in[0]], b = p[in[1]], c = p[out[0]], d = p[out[1]];
    const double ac = a / (a - c), ad = a / (a - d), bc = b / (b - c), bd = b / (b - d);
    return ac * ad + (1 - ac) * ad * bc + (1 - ad) * bc * bd;
}

/* The part of a cube's volume where p, linear in six tetrahedra between corner values, is negative. */
TB_FN double tb_soft_cube_part(const double p[8], int from)
{
    int negative = 0;
    for (int i = 0; i < 8; i++) negative += p[i] < 0;
    if (negative == 0) return 0;
    if (negative == 8) return 1;
    double part = 0;
    for (int t = 0; t < TB_SOFT_TETRAHEDRA; t++) {
        int c[4];
        tb_soft_tetrahedron(t, from, c);
        const double q[4] = {p[c[0]], p[c[1]], p[c[2]], p[c[3]]};
        part += tb_soft_tetrahedron_part(q);
    }
    return part / (double)TB_SOFT_TETRAHEDRA;
}

#endif
