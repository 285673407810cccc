/* Cells in contact: one constraint a cell and pair (Litven, section 4.1.2).
 *
 * The contact surface of two bodies is where the distances phi to both are equal. In a cell it is cut
 * from six tetrahedra, clipped to the part where the gap phi_a + phi_b is below a margin, and carries
 * the integrals of the trilinear functions. Distances in the reference configuration become lengths in
 * the world through the gradient of phi(X(x)).
 *
 * Near the edge of a shape with several sides the distance is not linear in a cell, and its sign would round
 * the edge off: there phi is the distance to the side that faces the other body, and the surface is
 * clipped to the inside of the other sides. A box that is no soft body has six such sides, each with
 * the distance to its own plane: beyond the middle of a thin wall the nearest side is the wrong one. */
#include <stdlib.h>
#include <string.h>

#include "grid/grid_internal.h"

/* of the smallest spacing: gaps below it are constraints, with the gap over dt on their right side */
static const double GAP_MARGIN = 0.25;
/* of the square of the smallest spacing: smaller pieces of a surface are not constraints. They lie
 * at the same nodes as their neighbours, and more constraints than nodes would be linearly
 * dependent */
static const double SMALLEST_AREA = 0.05;
/* Of a full cell's mass. Nodes with less hardly take part in the velocity at a surface: they would
 * take the whole impulse and leave the body its velocity. */
static const double LIGHT_MASS = 0.05;
/* of the smallest spacing: half of the length over which an obstacle's normal is measured */
static const double NORMAL_STEP = 0.01;
/* the gap, the sides of two shapes that do not face the other, and the back of a box; a quadrilateral has
 * one corner more after every clip */
enum { MOST_LIMITS = 2 + 2 * (TB_SOFT_SIDES - 1), MOST_CORNERS = 4 + MOST_LIMITS };
/* of the cosine between the gradients of two distances: below it, one side faces the other */
static const double FACING = -0.5;

/* Fields that clip a surface, at the corners of a cell: the gap less the margin; the sides of shapes that
 * end the surface. Each is negative where the surface is. */
typedef struct limits {
    double at[MOST_LIMITS][8];
    int count;
} limits;

typedef struct polygon {
    double u[MOST_CORNERS][3], limit[MOST_LIMITS][MOST_CORNERS];
    int count;
} polygon;

/* Where the line from corner a to b of a cell crosses psi = 0. */
static void add_crossing(polygon *p, int a, int b, const double psi[8], const limits *l)
{
    const double t = psi[a] / (psi[a] - psi[b]);
    double *u = p->u[p->count];
    for (int i = 0; i < 3; i++) {
        const double from = a >> i & 1, to = b >> i & 1;
        u[i] = from + t * (to - from);
    }
    for (int i = 0; i < l->count; i++)
        p->limit[i][p->count] = l->at[i][a] + t * (l->at[i][b] - l->at[i][a]);
    p->count++;
}

/* The surface psi = 0 in one tetrahedron. */
static void cut_tetrahedron(const int corner[4], const double psi[8], const limits *l, polygon *p)
{
    int in[4], out[4], n = 0, rest = 0;
    p->count = 0;
    for (int i = 0; i < 4; i++) {
        if (psi[corner[i]] < 0)
            in[n++] = corner[i];
        else
            out[rest++] = corner[i];
    }
    if (n == 2) {
        add_crossing(p, in[0], out[0], psi, l);
        add_crossing(p, in[0], out[1], psi, l);
        add_crossing(p, in[1], out[1], psi, l);
        add_crossing(p, in[1], out[0], psi, l);
    } else if (n == 1 || n == 3) {
        const int *many = n == 1 ? out : in, lone = n == 1 ? in[0] : out[0];
        for (int i = 0; i < 3; i++) add_crossing(p, lone, many[i], psi, l);
    }
}

/* Adds the point of p's edge from corner i to `next` at the part t of the edge. */
static void add_between(polygon *q, const polygon *p, int i, int next, double t, int count)
{
    for (int a = 0; a < 3; a++) q->u[q->count][a] = p->u[i][a] + t * (p->u[next][a] - p->u[i][a]);
    for (int l = 0; l < count; l++)
        q->limit[l][q->count] = p->limit[l][i] + t * (p->limit[l][next] - p->limit[l][i]);
    q->count++;
}

/* Keeps the part of a polygon where every one of its `count` limits is negative. */
static void clip(polygon *p, int count)
{
    for (int l = 0; l < count; l++) {
        polygon q = {.count = 0};
        for (int i = 0; i < p->count; i++) {
            const int next = (i + 1) % p->count;
            const double here = p->limit[l][i], there = p->limit[l][next];
            if (here <= 0) add_between(&q, p, i, next, 0, count);
            if ((here < 0 && there > 0) || (here > 0 && there < 0))
                add_between(&q, p, i, next, here / (here - there), count);
        }
        *p = q;
    }
}

/* integrals over the surface in a cell */
typedef struct surface {
    double area, gap, point[3], shape[8];
} surface;

/* Adds a polygon, as triangles from its first corner. */
static void add_polygon(surface *s, const polygon *p, const double h[3])
{
    for (int t = 1; t + 1 < p->count; t++) {
        const double *x = p->u[0], *y = p->u[t], *z = p->u[t + 1];
        double e[3], f[3], c[3], n[3];
        for (int a = 0; a < 3; a++) {
            e[a] = (y[a] - x[a]) * h[a];
            f[a] = (z[a] - x[a]) * h[a];
            c[a] = (x[a] + y[a] + z[a]) / 3;
        }
        for (int a = 0; a < 3; a++)
            n[a] = 0.5 * (e[(a + 1) % 3] * f[(a + 2) % 3] - e[(a + 2) % 3] * f[(a + 1) % 3]);
        const double area = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        s->area += area;
        s->gap += area * (p->limit[0][0] + p->limit[0][t] + p->limit[0][t + 1]) / 3;
        for (int a = 0; a < 3; a++) s->point[a] += area * c[a];
        for (int k = 0; k < 8; k++) s->shape[k] += area * tb_soft_shape(k, c);
    }
}

/* Reference distances at the corners become lengths in the world, by the slope of their field. */
static void to_lengths(const tb_soft_world *w, double depth[8])
{
    const double *h = w->scene.lattice.spacing, mid[3] = {0.5, 0.5, 0.5};
    double slope2 = 0;
    for (int a = 0; a < 3; a++) {
        double slope = 0;
        for (int c = 0; c < 8; c++) slope += tb_soft_slope(c, a, mid) / h[a] * depth[c];
        slope2 += slope * slope;
    }
    /* near an edge differences of the distance are smaller than its slope */
    const double slope = tb_max(0.25, tb_min(sqrt(slope2), 4.0));
    for (int c = 0; c < 8; c++) depth[c] /= slope;
}

/* The scalar product of the gradients of two fields, over their lengths. */
static double cosine(const tb_soft_world *w, const double p[8], const double q[8])
{
    const double *h = w->scene.lattice.spacing, mid[3] = {0.5, 0.5, 0.5};
    double pq = 0, pp = 0, qq = 0;
    for (int a = 0; a < 3; a++) {
        double x = 0, y = 0;
        for (int c = 0; c < 8; c++) {
            x += tb_soft_slope(c, a, mid) / h[a] * p[c];
            y += tb_soft_slope(c, a, mid) / h[a] * q[c];
        }
        pq += x * y;
        pp += x * x;
        qq += y * y;
    }
    return pp > 0 && qq > 0 ? pq / sqrt(pp * qq) : 0;
}

/* `face` of an obstacle that is a box, before any other. *normal: of its side, out of the box; unchanged if no side faces
 * the body. */
static void face_of_box(const tb_soft_world *w, const tb_soft_solid *box, const int32_t at[3],
                        const double other[8], double depth[8], limits *l, tb_vec3 *normal)
{
    double side[3][8], least = FACING, sign = 0;
    int facing = -1;
    for (int c = 0; c < 8; c++) {
        double x[3];
        for (int a = 0; a < 3; a++) x[a] = tb_soft_coordinate(w, a, at[a] + (c >> a & 1));
        const tb_vec3 local = tb_pose_inverse_point(&box->pose, tb_v3_load(x));
        side[0][c] = local.x, side[1][c] = local.y, side[2][c] = local.z;
    }
    for (int s = 0; s < 3; s++) {
        const double angle = cosine(w, side[s], other);
        if (-fabs(angle) < least) least = -fabs(angle), facing = s, sign = angle < 0 ? 1 : -1;
    }
    if (facing < 0) return;
    for (int s = 0; s < 3; s++)
        for (int c = 0; c < 8; c++) {
            double *end = l->at[l->count + s] + c;
            *end = fabs(side[s][c]) - box->size[s];
            if (s != facing) continue;
            depth[c] = sign * side[s][c] - box->size[s];
            *end = -sign * side[s][c] - box->size[s]; /* behind the back */
        }
    l->count += 3;
    *normal = tb_v3(sign * box->pose.rotation.m[facing], sign * box->pose.rotation.m[3 + facing],
                    sign * box->pose.rotation.m[6 + facing]);
}

/* Replaces the lengths to a body by those to its side that faces the other one, whose lengths are `other`;
 * its other sides become limits. If no side is known to face it, the lengths stay. */
static void face(const tb_soft_world *w, int32_t who, int32_t n, const double other[8],
                 double depth[8], limits *l)
{
    double side[TB_SOFT_SIDES][8], least = FACING;
    int sides = 0, facing = -1;
    if (who >= w->scene.number_of_bodies) return;
    for (int c = 0; c < 8; c++) {
        double at[TB_SOFT_SIDES];
        sides = tb_soft_sides(&w->scene.bodies[who].shape,
                              w->fields[who].X + 3 * (size_t)tb_soft_corner(w, n, c), at);
        for (int s = 0; s < sides; s++) side[s][c] = at[s];
    }
    if (sides == 1) return;
    for (int s = 0; s < sides; s++) {
        const double angle = cosine(w, side[s], other);
        if (angle < least) least = angle, facing = s;
    }
    if (facing < 0) return;
    memcpy(depth, side[facing], sizeof side[facing]);
    to_lengths(w, depth);
    for (int s = 0; s < sides; s++)
        if (s != facing && l->count < MOST_LIMITS)
            memcpy(l->at[l->count++], side[s], sizeof side[s]);
}

/* A side of a pair in one cell: lengths to it at the corners. */
static void depths_of(const tb_soft_world *w, int32_t who, int32_t n, const int32_t at[3],
                      double depth[8])
{
    for (int c = 0; c < 8; c++) {
        if (who < w->scene.number_of_bodies) {
            depth[c] = w->fields[who].depth[tb_soft_corner(w, n, c)];
            continue;
        }
        double x[3];
        for (int a = 0; a < 3; a++) x[a] = tb_soft_coordinate(w, a, at[a] + (c >> a & 1));
        depth[c] = tb_soft_distance(w->now + (who - w->scene.number_of_bodies), x);
    }
    to_lengths(w, depth);
}

/* Weights of the corners in one side's velocity at the surface; false if none has mass. *movable
 * becomes true if a corner may move. */
static bool weigh(const tb_soft_world *w, int32_t who, int32_t n, const double shape[8],
                  double weights[8], bool *movable)
{
    double sum = 0;
    for (int c = 0; c < 8; c++) {
        weights[c] = shape[c];
        if (who < w->scene.number_of_bodies) {
            const double mass = w->fields[who].mass[tb_soft_corner(w, n, c)];
            const double light =
                LIGHT_MASS * w->scene.bodies[who].material.density * tb_soft_cell_volume(w);
            weights[c] *= mass / (mass + light);
            const uint8_t *held = w->fields[who].held;
            if (weights[c] > 0 && !(held != NULL && held[tb_soft_corner(w, n, c)])) *movable = true;
        } else {
            const int32_t rigid = w->scene.obstacles[who - w->scene.number_of_bodies].rigid;
            if (rigid > 0 && w->rigid[rigid - 1].moves) *movable = true;
        }
        sum += weights[c];
    }
    for (int c = 0; c < 8; c++) weights[c] /= sum;
    return sum > 1e-6;
}

/* The contact's normal, from b to a, of the surface in the middle between two bodies: its gradient at
 * the cell's centre. */
static tb_vec3 normal_between(const double psi[8], const double h[3])
{
    double g[3] = {0};
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 8; c++) g[a] += ((c >> a & 1) ? -psi[c] : psi[c]) / h[a];
    return tb_v3_normalize(tb_v3_load(g), tb_v3(0, 0, 1));
}

/* An obstacle's own normal at a point near its surface: differences over a small part of a cell, since
 * an obstacle may be thinner than one. */
static tb_vec3 normal_of(const tb_soft_solid *obstacle, const double point[3], double least)
{
    double g[3];
    for (int a = 0; a < 3; a++) {
        double x[3] = {point[0], point[1], point[2]};
        x[a] = point[a] + NORMAL_STEP * least;
        g[a] = tb_soft_distance(obstacle, x);
        x[a] = point[a] - NORMAL_STEP * least;
        g[a] -= tb_soft_distance(obstacle, x);
    }
    return tb_v3_normalize(tb_v3_load(g), tb_v3(0, 0, 1));
}

/* Whether a body's inside begins behind a point of the surface: at `reach` from it along `sign`
 * times the normal. False for a body that is near only sideways. */
static bool lies_behind(const tb_soft_world *w, int32_t who, const tb_soft_contact *c, double sign,
                        double reach)
{
    const tb_soft_lattice *l = &w->scene.lattice;
    int32_t at[3];
    double u[3], depth = 0;
    if (who >= w->scene.number_of_bodies) return true;
    for (int a = 0; a < 3; a++) {
        const double x = (c->point[a] + sign * reach * c->normal[a] - l->origin[a]) / l->spacing[a];
        at[a] = (int32_t)floor(x);
        u[a] = x - at[a];
        if (at[a] < 0 || at[a] + 1 >= l->nodes[a]) return false;
    }
    const int32_t n = tb_soft_node(w, at[0], at[1], at[2]);
    if (!tb_soft_cell_valid(w, w->fields + who, n)) return false;
    for (int k = 0; k < 8; k++)
        depth += tb_soft_shape(k, u) * w->fields[who].depth[tb_soft_corner(w, n, k)];
    return depth < 0;
}

/* The contact of a pair in a cell; false if there is none. */
static bool touch(const tb_soft_world *w, int32_t a, int32_t b, const int32_t at[3],
                  tb_soft_contact *contact)
{
    const double *h = w->scene.lattice.spacing;
    const double least = tb_min(h[0], tb_min(h[1], h[2])), margin = GAP_MARGIN * least;
    const int32_t n = tb_soft_node(w, at[0], at[1], at[2]);
    double da[8], db[8], psi[8], nearest = 1e300;
    limits limit = {.count = 1};
    int negative = 0;
    if (!tb_soft_cell_valid(w, w->fields + a, n)) return false;
    if (b < w->scene.number_of_bodies && !tb_soft_cell_valid(w, w->fields + b, n)) return false;
    depths_of(w, a, n, at, da);
    depths_of(w, b, n, at, db);
    for (int c = 0; c < 8; c++) nearest = tb_min(nearest, da[c] + db[c]);
    if (nearest > margin + h[0] + h[1] + h[2]) return false;
    const double first[8] = {da[0], da[1], da[2], da[3], da[4], da[5], da[6], da[7]};
    const int32_t obstacle = b - w->scene.number_of_bodies;
    tb_vec3 normal = tb_v3(0, 0, 0);
    if (obstacle >= 0 && w->now[obstacle].kind == TB_SOFT_BOX)
        face_of_box(w, w->now + obstacle, at, first, db, &limit, &normal);
    face(w, a, n, db, da, &limit);
    face(w, b, n, first, db, &limit);
    nearest = 1e300;
    for (int c = 0; c < 8; c++) {
        psi[c] = 0.5 * (da[c] - db[c]);
        limit.at[0][c] = da[c] + db[c] - margin;
        negative += psi[c] < 0;
        nearest = tb_min(nearest, limit.at[0][c]);
    }
    if (negative == 0 || negative == 8 || nearest > 0) return false;
    surface s = {0};
    for (int t = 0; t < TB_SOFT_TETRAHEDRA; t++) {
        int corner[4];
        polygon p;
        tb_soft_tetrahedron(t, (at[0] & 1) | (at[1] & 1) << 1 | (at[2] & 1) << 2, corner);
        cut_tetrahedron(corner, psi, &limit, &p);
        clip(&p, limit.count);
        add_polygon(&s, &p, h);
    }
    if (!(s.area > SMALLEST_AREA * least * least)) return false;
    memset(contact, 0, sizeof *contact);
    for (int c = 0; c < 8; c++) s.shape[c] /= s.area;
    bool movable = false;
    if (!weigh(w, a, n, s.shape, contact->weights[0], &movable) ||
        !weigh(w, b, n, s.shape, contact->weights[1], &movable) || !movable)
        return false;
    contact->cell = n;
    contact->a = a;
    contact->b = b;
    contact->area = s.area;
    contact->gap = s.gap / s.area + margin;
    for (int i = 0; i < 3; i++)
        contact->point[i] = tb_soft_coordinate(w, i, at[i]) + s.point[i] / s.area * h[i];
    if (obstacle < 0)
        normal = normal_between(psi, h);
    else if (tb_v3_dot(normal, normal) == 0)
        normal = normal_of(w->now + obstacle, contact->point, least);
    tb_vec3 t1, t2;
    tb_v3_tangents(normal, &t1, &t2);
    tb_v3_store(contact->normal, normal);
    tb_v3_store(contact->tangent[0], t1);
    tb_v3_store(contact->tangent[1], t2);
    const double reach = margin + 0.5 * fabs(contact->gap);
    return lies_behind(w, a, contact, 1, reach) && lies_behind(w, b, contact, -1, reach);
}

typedef struct collection {
    tb_soft_contact *items;
    int32_t count, capacity;
} collection;

/* Cells along an axis that an obstacle with its margin reaches. */
static void narrow(const tb_soft_world *w, int32_t obstacle, int axis, int32_t lower[3],
                   int32_t upper[3])
{
    double from[3], to[3];
    const double h = w->scene.lattice.spacing[axis], origin = w->scene.lattice.origin[axis];
    tb_soft_bounds(w->now + obstacle, from, to);
    const double first = floor((from[axis] - origin) / h) - 1;
    const double last = floor((to[axis] - origin) / h) + 2;
    if (first > lower[axis]) lower[axis] = (int32_t)tb_min(first, (double)upper[axis]);
    if (last < upper[axis]) upper[axis] = (int32_t)tb_max(last, (double)lower[axis]);
}

void tb_soft_common_cells(const tb_soft_world *w, int32_t a, int32_t b, int32_t lower[3],
                          int32_t upper[3])
{
    const int32_t bodies = w->scene.number_of_bodies;
    for (int i = 0; i < 3; i++) {
        lower[i] = w->fields[a].lower[i];
        upper[i] = w->fields[a].upper[i] - 1;
        if (b >= bodies) {
            narrow(w, b - bodies, i, lower, upper);
            continue;
        }
        if (w->fields[b].lower[i] > lower[i]) lower[i] = w->fields[b].lower[i];
        if (w->fields[b].upper[i] - 1 < upper[i]) upper[i] = w->fields[b].upper[i] - 1;
    }
}

/* Cells of one pair. Cells are ordered by x, then y, then z (Litven 5.1). */
static bool collect_pair(const tb_soft_world *w, int32_t a, int32_t b, collection *all)
{
    const int32_t bodies = w->scene.number_of_bodies, *nodes = w->scene.lattice.nodes;
    const uint64_t pairs = (uint64_t)bodies * (uint64_t)(bodies + w->scene.number_of_obstacles);
    int32_t lower[3], upper[3];
    tb_soft_common_cells(w, a, b, lower, upper);
    for (int32_t i = lower[0]; i < upper[0]; i++)
        for (int32_t j = lower[1]; j < upper[1]; j++)
            for (int32_t k = lower[2]; k < upper[2]; k++) {
                tb_soft_contact contact;
                const int32_t at[3] = {i, j, k};
                if (!touch(w, a, b, at, &contact)) continue;
                if (all->count == all->capacity) {
                    void *grown =
                        tb_grow(all->items, all->count + 1, &all->capacity, sizeof *all->items);
                    if (grown == NULL) return false;
                    all->items = grown;
                }
                contact.key =
                    (((uint64_t)i * (uint64_t)nodes[1] + (uint64_t)j) * (uint64_t)nodes[2] +
                     (uint64_t)k) *
                        pairs +
                    (uint64_t)a * (uint64_t)(bodies + w->scene.number_of_obstacles) + (uint64_t)b;
                all->items[all->count++] = contact;
            }
    return true;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = ((const tb_soft_contact *)a)->key, y = ((const tb_soft_contact *)b)->key;
    return x < y ? -1 : x > y;
}

tb_status tb_soft_find_contacts(tb_soft_world *w, tb_soft_contact **contacts, int32_t *count,
                                tb_error *error)
{
    collection all = {0};
    const int32_t bodies = w->scene.number_of_bodies;
    bool whole = true;
    for (int32_t a = 0; a < bodies; a++)
        for (int32_t b = a + 1; b < bodies + w->scene.number_of_obstacles; b++)
            if (b < bodies || !tb_soft_clamped_to(w, a, b - bodies))
                whole = whole && collect_pair(w, a, b, &all);
    if (all.count > 0) qsort(all.items, (size_t)all.count, sizeof *all.items, by_key);
    *contacts = TB_ARENA_ARRAY(&w->step, tb_soft_contact, all.count);
    if (*contacts != NULL && all.count > 0)
        memcpy(*contacts, all.items, (size_t)all.count * sizeof *all.items);
    *count = all.count;
    free(all.items);
    if (!whole || *contacts == NULL)
        return tb_fail_memory(error, (size_t)all.count * sizeof **contacts, "cells in contact");
    return TB_OK;
}
