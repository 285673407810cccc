/* The grid's nodes and a body's fields at them, for sources that processor and card share.
 *
 * Nodes are numbered x fastest, then y, then z. A cell bears the number of its lowest node. */
#ifndef TB_SOFT_SPACE_H
#define TB_SOFT_SPACE_H

#include <stdbool.h>

#include "grid/cell.h"
#include "grid/material.h"
#include "grid/shape.h"
#include "grid/transport.h"

/* layers of nodes around a body to which X and v are extrapolated; a body keeps that many nodes away
 * from the grid's faces */
enum { TB_SOFT_LAYERS = 3, TB_SOFT_NO_LAYER = 255 };

typedef struct tb_soft_lattice {
    int32_t nodes[3]; /* along x, y, z */
    double origin[3]; /* m, of node (0, 0, 0) */
    double spacing[3];
} tb_soft_lattice;

/* Numbers of a scene that the formulas of nodes need. */
typedef struct tb_soft_space {
    tb_soft_lattice lattice;
    int64_t stride[3]; /* of node numbers, along x, y, z */
    double gravity[3]; /* m/s^2 */
    tb_soft_advection advection;
    tb_soft_tables tables;
} tb_soft_space;

/* A body's fields. nodes x 3 or nodes; valid where `layer` is at most TB_SOFT_LAYERS. */
typedef struct tb_soft_field {
    double *X;      /* m, reference coordinate */
    double *v;      /* m/s */
    double *mass;   /* kg; 0 outside */
    double *depth;  /* m, distance of X from the shape's surface */
    double *octant; /* nodes x 8, kg, of the cell above the node */
    uint8_t *layer; /* 0: the node has mass; 1 to TB_SOFT_LAYERS: steps from one that has */
    uint8_t *held;  /* number of the clamp, from 1; 0: free; NULL: no clamps */
    int32_t lower[3], upper[3]; /* nodes of layers up to TB_SOFT_LAYERS, upper excluded */
    int32_t outside;            /* axis + 1 along which a layer leaves the grid; 0: none does */
    double stiffness;           /* Pa, the bound of material.h, of the last stress */
} tb_soft_field;

TB_FN int32_t tb_soft_number(const tb_soft_space *s, int32_t i, int32_t j, int32_t k)
{
    return (int32_t)(i + s->stride[1] * j + s->stride[2] * k);
}

/* number of corner c of the cell above node n */
TB_FN int32_t tb_soft_corner_of(const tb_soft_space *s, int32_t n, int corner)
{
    return (int32_t)(n + (corner & 1) * s->stride[0] + (corner >> 1 & 1) * s->stride[1] +
                     (corner >> 2 & 1) * s->stride[2]);
}

/* m, of a node along an axis */
TB_FN double tb_soft_place(const tb_soft_space *s, int axis, int32_t i)
{
    return s->lattice.origin[axis] + i * s->lattice.spacing[axis];
}

TB_FN void tb_soft_place_of(const tb_soft_space *s, const int32_t at[3], double x[3])
{
    for (int a = 0; a < 3; a++) x[a] = tb_soft_place(s, a, at[a]);
}

/* whether every corner of the cell above node n has X and v */
TB_FN bool tb_soft_cell_is_valid(const tb_soft_space *s, const tb_soft_field *f, int32_t n)
{
    for (int c = 0; c < 8; c++)
        if (f->layer[tb_soft_corner_of(s, n, c)] == TB_SOFT_NO_LAYER) return false;
    return true;
}

/* corner values of a field of vectors */
TB_FN void tb_soft_corner_values(const tb_soft_space *s, const double *q, int32_t n,
                                 double values[24])
{
    for (int c = 0; c < 8; c++) {
        const double *from = q + 3 * (int64_t)tb_soft_corner_of(s, n, c);
        for (int a = 0; a < 3; a++) values[3 * c + a] = from[a];
    }
}

/* The lowest node of the cell whose corner c is the node; false if it lies below the box. */
TB_FN bool tb_soft_cell_below(const tb_soft_space *s, const tb_soft_field *f, const int32_t at[3],
                              int corner, int32_t *cell)
{
    const int32_t x = at[0] - (corner & 1), y = at[1] - (corner >> 1 & 1),
                  z = at[2] - (corner >> 2 & 1);
    *cell = tb_soft_number(s, x, y, z);
    return x >= f->lower[0] && y >= f->lower[1] && z >= f->lower[2];
}

/* ---- sums over nodes ---- */

/* Sums over the nodes of a body. The first TB_SOFT_ADDED numbers are sums; then come maxima and a
 * minimum. */
typedef struct tb_soft_sums {
    double mass, moment[3], inertia[6]; /* kg; kg m; kg m^2: xx yy zz xy xz yz, about the origin */
    double momentum[3], angular[3];
    double kinetic, elastic, potential, damped_power;
    double scratch;   /* undeformed mass before it is scaled */
    double speed;     /* largest sum over axes of |v| / h, 1/s */
    double stiffness; /* Pa */
    double smallest;  /* det F */
} tb_soft_sums;

/* Order of every sum, so that no result depends on threads or lanes: a run is TB_SOFT_RUN nodes of a row,
 * of which the first has a number along x that TB_SOFT_RUN divides, and is added by halves; runs of a
 * row, rows of a plane and planes are added in order. */
enum { TB_SOFT_ADDED = 21, TB_SOFT_SUMS = 24, TB_SOFT_RUN = 32 };

TB_FN void tb_soft_sums_clear(tb_soft_sums *s)
{
    memset(s, 0, sizeof *s);
    s->smallest = 1e300;
}

/* Number q of two sums: added, or the extreme one. */
TB_FN double tb_soft_sums_join(int q, double a, double b)
{
    if (q < TB_SOFT_ADDED) return a + b;
    return q < TB_SOFT_SUMS - 1 ? tb_max(a, b) : tb_min(a, b);
}

TB_FN void tb_soft_sums_add(tb_soft_sums *whole, const tb_soft_sums *part)
{
    double *to = (double *)whole;
    const double *from = (const double *)part;
    for (int q = 0; q < TB_SOFT_SUMS; q++) to[q] = tb_soft_sums_join(q, to[q], from[q]);
}

#endif
