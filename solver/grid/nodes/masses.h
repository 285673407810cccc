/* One node or cell of a body on the grid: its mass from the reference map, and the extrapolation of a field
 * to the layers around the body. The loops are in grid/field.c and, on a card, in gpu/grid. */
#ifndef TB_SOFT_NODES_MASSES_H
#define TB_SOFT_NODES_MASSES_H

#include "grid/nodes/space.h"

/* Occupied parts of a cell's octants. X is trilinear, so its values on the cell lie among those at the
 * corners, and the distance changes by no more than X does. Each side of the shape cuts on its own:
 * near an edge the distance itself is not linear, and the parts of two sides multiply. */
TB_FN_LARGE void tb_soft_occupy_cell(const tb_soft_solid *shape, const double X[24],
                                     double parts[8])
{
    double centre[3] = {0, 0, 0}, reach = 0, side[27][TB_SOFT_SIDES];
    int sides = 1;
    for (int c = 0; c < 8; c++)
        for (int a = 0; a < 3; a++) centre[a] += 0.125 * X[3 * c + a];
    for (int c = 0; c < 8; c++) {
        double square = 0;
        for (int a = 0; a < 3; a++)
            square += (X[3 * c + a] - centre[a]) * (X[3 * c + a] - centre[a]);
        reach = tb_max(reach, square);
    }
    const double middle = tb_soft_distance(shape, centre);
    for (int o = 0; o < 8; o++) parts[o] = middle * middle < reach || middle < 0 ? 1 : 0;
    if (middle * middle >= reach) return;
    for (int p = 0; p < 27; p++) {
        /* a corner, or the middle of an edge, a face or the cell: the mean of the corners at the ends */
        const int place[3] = {p % 3, p / 3 % 3, p / 9};
        double x[3] = {0, 0, 0}, share = 1;
        for (int a = 0; a < 3; a++) share *= place[a] == 1 ? 0.5 : 1;
        for (int c = 0; c < 8; c++) {
            bool taken = true;
            for (int a = 0; a < 3; a++)
                taken = taken && (place[a] == 1 || place[a] == 2 * (c >> a & 1));
            for (int a = 0; a < 3 && taken; a++) x[a] += share * X[3 * c + a];
        }
        sides = tb_soft_sides(shape, x, side[p]);
    }
    for (int o = 0; o < 8; o++)
        for (int s = 0; s < sides; s++) {
            double corner[8];
            for (int c = 0; c < 8; c++)
                corner[c] = side[(o & 1) + (c & 1) + 3 * ((o >> 1 & 1) + (c >> 1 & 1)) +
                                 9 * ((o >> 2 & 1) + (c >> 2 & 1))][s];
            parts[o] *= tb_soft_cube_part(corner, o);
        }
}

/* Masses of the octants of the cell above a node, before they are scaled: the density follows the volume,
 * rho = rho0 det(grad X). Returns their sum. */
TB_FN double tb_soft_weigh_cell(const tb_soft_space *s, const tb_soft_field *f,
                                const tb_soft_solid *shape, double density, const int32_t at[3],
                                int32_t n)
{
    /* Occupied part of an octant below which it has no mass: a face that lies in a plane of the grid but
     * for rounding would give its outer nodes a life of their own. */
    const double SMALLEST_PART = 1e-5;
    const double *h = s->lattice.spacing, volume = h[0] * h[1] * h[2] / 8;
    double X[24], parts[8], sum = 0, *octant = f->octant + 8 * (int64_t)n;
    for (int o = 0; o < 8; o++) octant[o] = 0;
    if (at[0] + 1 >= f->upper[0] || at[1] + 1 >= f->upper[1] || at[2] + 1 >= f->upper[2] ||
        !tb_soft_cell_is_valid(s, f, n))
        return 0;
    tb_soft_corner_values(s, f->X, n, X);
    tb_soft_occupy_cell(shape, X, parts);
    for (int o = 0; o < 8; o++) {
        if (!(parts[o] > SMALLEST_PART)) continue;
        const tb_mat33 g = tb_soft_gradient(X, s->tables.slope[o]);
        octant[o] = density * volume * parts[o] * tb_max(tb_m33_determinant(&g), 0.0);
        sum += octant[o];
    }
    return sum;
}

/* A node has the mass of the octants around it, weighted by its shape function at their centres. */
TB_FN double tb_soft_node_mass(const tb_soft_space *s, const tb_soft_field *f, const int32_t at[3])
{
    double mass = 0;
    for (int c = 0; c < 8; c++) {
        int32_t cell;
        if (!tb_soft_cell_below(s, f, at, c, &cell)) continue;
        const double *octant = f->octant + 8 * (int64_t)cell;
        for (int o = 0; o < 8; o++) mass += s->tables.share[o][c] * octant[o];
    }
    return mass;
}

/* ---- layers ---- */

/* Whether a node has all nodes within one step along every axis in the box. */
TB_FN bool tb_soft_is_interior(const tb_soft_field *f, const int32_t at[3])
{
    bool interior = true;
    for (int a = 0; a < 3; a++)
        interior = interior && at[a] > f->lower[a] && at[a] + 1 < f->upper[a];
    return interior;
}

/* Whether another node within one step along every axis, in the box, has layer `layer`. */
TB_FN bool tb_soft_touches_layer(const tb_soft_space *s, const tb_soft_field *f,
                                 const int32_t at[3], int layer)
{
    if (tb_soft_is_interior(f, at)) {
        const uint8_t *near =
            f->layer + tb_soft_number(s, at[0], at[1], at[2]) - s->stride[1] - s->stride[2] - 1;
        for (int z = 0; z < 3; z++, near += s->stride[2])
            for (int y = 0; y < 3; y++)
                for (int x = 0; x < 3; x++)
                    if (near[y * s->stride[1] + x] == layer) return true;
        return false;
    }
    for (int32_t z = at[2] - 1; z <= at[2] + 1; z++)
        for (int32_t y = at[1] - 1; y <= at[1] + 1; y++)
            for (int32_t x = at[0] - 1; x <= at[0] + 1; x++)
                if (x >= f->lower[0] && y >= f->lower[1] && z >= f->lower[2] && x < f->upper[0] &&
                    y < f->upper[1] && z < f->upper[2] &&
                    f->layer[tb_soft_number(s, x, y, z)] == layer)
                    return true;
    return false;
}

/* The box of the valid nodes, from that of the nodes with mass, which is [lower, upper). */
TB_FN void tb_soft_enlarge_box(const tb_soft_space *s, tb_soft_field *f, const int32_t lower[3],
                               const int32_t upper[3])
{
    f->outside = 0;
    for (int a = 0; a < 3; a++) {
        const int32_t begin = lower[a] - TB_SOFT_LAYERS, end = upper[a] + TB_SOFT_LAYERS;
        const int32_t nodes = s->lattice.nodes[a];
        if (begin < 0 || end > nodes) f->outside = a + 1;
        f->lower[a] = begin > 0 ? begin : 0;
        f->upper[a] = end < nodes ? end : nodes;
    }
}

/* ---- extrapolation ---- */

/* kg, of the cell above node n */
TB_FN double tb_soft_cell_mass(const tb_soft_field *f, int64_t n)
{
    double mass = 0;
    for (int o = 0; o < 8; o++) mass += f->octant[8 * n + o];
    return mass;
}

/* The gradient of q at a node of layer 0: the mean of the cells around the node, weighted by their masses,
 * so that slivers of material decide nothing. cell_mass: tb_soft_cell_mass of each node's cell; NULL: it
 * is summed here. */
TB_FN void tb_soft_node_slope(const tb_soft_space *s, const tb_soft_field *f,
                              const double *cell_mass, const double *q, const int32_t at[3],
                              double slope[9])
{
    double whole = 0;
    for (int a = 0; a < 9; a++) slope[a] = 0;
    for (int c = 0; c < 8; c++) {
        const int32_t cell =
            tb_soft_number(s, at[0] - (c & 1), at[1] - (c >> 1 & 1), at[2] - (c >> 2 & 1));
        double values[24];
        const double mass = cell_mass != NULL ? cell_mass[cell] : tb_soft_cell_mass(f, cell);
        if (!(mass > 0)) continue;
        tb_soft_corner_values(s, q, cell, values);
        const tb_mat33 g = tb_soft_gradient(values, s->tables.slope[8]);
        for (int a = 0; a < 9; a++) slope[a] += mass * g.m[a];
        whole += mass;
    }
    for (int a = 0; a < 9; a++) slope[a] /= whole;
}

/* Neighbours of a node: 6 across faces, 12 across edges, 8 across corners. */
enum { TB_SOFT_FACES_END = 6, TB_SOFT_EDGES_END = 18, TB_SOFT_NEIGHBOURS = 26 };

TB_FN void tb_soft_neighbour(int number, int32_t step[3])
{
    const int8_t steps[TB_SOFT_NEIGHBOURS][3] = {
        {-1, 0, 0},  {1, 0, 0},   {0, -1, 0}, {0, 1, 0},   {0, 0, -1},   {0, 0, 1},   {-1, -1, 0},
        {1, -1, 0},  {-1, 1, 0},  {1, 1, 0},  {-1, 0, -1}, {1, 0, -1},   {-1, 0, 1},  {1, 0, 1},
        {0, -1, -1}, {0, 1, -1},  {0, -1, 1}, {0, 1, 1},   {-1, -1, -1}, {1, -1, -1}, {-1, 1, -1},
        {1, 1, -1},  {-1, -1, 1}, {1, -1, 1}, {-1, 1, 1},  {1, 1, 1}};
    for (int a = 0; a < 3; a++) step[a] = steps[number][a];
}

/* The nearest neighbours of a node in the layer before its own, as bits by their numbers. */
TB_FN uint32_t tb_soft_nearest_neighbours(const tb_soft_space *s, const tb_soft_field *f, int layer,
                                          const int32_t at[3], int64_t n)
{
    const bool interior = tb_soft_is_interior(f, at);
    uint32_t found = 0;
    for (int b = 0; b < TB_SOFT_NEIGHBOURS; b++) {
        int32_t o[3];
        if ((b == TB_SOFT_FACES_END || b == TB_SOFT_EDGES_END) && found != 0) break;
        bool inside = true;
        tb_soft_neighbour(b, o);
        for (int a = 0; a < 3 && !interior; a++)
            inside = inside && at[a] + o[a] >= f->lower[a] && at[a] + o[a] < f->upper[a];
        const int64_t m = n + o[0] + o[1] * s->stride[1] + o[2] * s->stride[2];
        if (inside && f->layer[m] == layer - 1) found |= (uint32_t)1 << b;
    }
    return found;
}

/* q and its gradient at a node of a layer: the mean of the values that its nearest neighbours in
 * the layer before extrapolate by their own gradients (slopes, nodes x 9). Affine fields are extended
 * exactly. */
TB_FN void tb_soft_extend_by(const tb_soft_space *s, const tb_soft_field *f, double *q,
                             double *slopes, int layer, uint32_t neighbours, int64_t n)
{
    const double *h = s->lattice.spacing;
    double value[3] = {0, 0, 0}, slope[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0}, whole = 0;
    for (int b = 0; neighbours >> b != 0; b++) {
        int32_t o[3];
        if (!(neighbours >> b & 1)) continue;
        tb_soft_neighbour(b, o);
        const int64_t m = n + o[0] + o[1] * s->stride[1] + o[2] * s->stride[2];
        const double weight = layer == 1 ? f->mass[m] : 1, *g = slopes + 9 * m;
        const double d[3] = {-o[0] * h[0], -o[1] * h[1], -o[2] * h[2]};
        for (int c = 0; c < 3; c++)
            value[c] += weight * (q[3 * m + c] + g[3 * c] * d[0] + g[3 * c + 1] * d[1] +
                                  g[3 * c + 2] * d[2]);
        for (int c = 0; c < 9; c++) slope[c] += weight * g[c];
        whole += weight;
    }
    for (int c = 0; c < 3; c++) q[3 * n + c] = value[c] / whole;
    for (int c = 0; c < 9; c++) slopes[9 * n + c] = slope[c] / whole;
}

/* tb_soft_extend_by of the neighbours that tb_soft_nearest_neighbours finds. */
TB_FN void tb_soft_extend_node(const tb_soft_space *s, const tb_soft_field *f, double *q,
                               double *slopes, int layer, const int32_t at[3], int64_t n)
{
    tb_soft_extend_by(s, f, q, slopes, layer, tb_soft_nearest_neighbours(s, f, layer, at, n), n);
}

#endif
