/* The contact of two bodies, or of a body and an obstacle, in one cell of the grid (Litven, section 4.1.2). The
 * loops over cells are in grid/contact.c and, on a card, in gpu/grid.
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
#ifndef TB_SOFT_NODES_TOUCH_H
#define TB_SOFT_NODES_TOUCH_H

#include "grid/nodes/space.h"

/* A cell in contact. The programs take cells in the order of their keys. */
typedef struct tb_soft_contact {
    uint64_t key;    /* cell and pair, ascending */
    int32_t cell;    /* number of its lowest node */
    int32_t a, b;    /* bodies; b >= number_of_bodies: obstacle b - number_of_bodies */
    uint32_t active; /* bit 0: alpha is 0; bits 1 to 4: facets that hold with equality */
    double area;     /* m^2 */
    double gap;      /* m, negative: overlap */
    double point[3], normal[3], tangent[2][3]; /* m; unit, from b to a */
    double weights[2][8];  /* of the corners in the velocity of a and of b; each sums to 1 */
    double alpha, beta[2]; /* N s, on a along normal and tangents */
} tb_soft_contact;

/* One of the two things that may touch. */
typedef struct tb_soft_side {
    const tb_soft_field *field; /* of a body; NULL: an obstacle */
    const tb_soft_solid *solid; /* a body's shape at the start; an obstacle where it is now */
    double density;             /* kg/m^3, of a body */
    bool moves;                 /* impulses move the obstacle */
} tb_soft_side;

/* of the smallest spacing: gaps below it are constraints, with the gap over dt on their right side */
static const double TB_SOFT_GAP_MARGIN = 0.25;
/* of the square of the smallest spacing: smaller pieces of a surface are not constraints. They lie
 * at the same nodes as their neighbours, and more constraints than nodes would be linearly
 * dependent */
static const double TB_SOFT_SMALLEST_AREA = 0.05;
/* Of a full cell's mass. Nodes with less hardly take part in the velocity at a surface: they would
 * take the whole impulse and leave the body its velocity. */
static const double TB_SOFT_LIGHT_MASS = 0.05;
/* of the smallest spacing: half of the length over which an obstacle's normal is measured */
static const double TB_SOFT_NORMAL_STEP = 0.01;
/* the gap, the sides of two shapes that do not face the other, and the back of a box; a quadrilateral has
 * one corner more after every clip */
enum {
    TB_SOFT_MOST_LIMITS = 2 + 2 * (TB_SOFT_SIDES - 1),
    TB_SOFT_MOST_CORNERS = 4 + TB_SOFT_MOST_LIMITS
};
/* of the cosine between the gradients of two distances: below it, one side faces the other */
static const double TB_SOFT_FACING = -0.5;

/* Fields that clip a surface, at the corners of a cell: the gap less the margin; the sides of shapes that
 * end the surface. Each is negative where the surface is. */
typedef struct tb_soft_limits {
    double at[TB_SOFT_MOST_LIMITS][8];
    int count;
} tb_soft_limits;

typedef struct tb_soft_polygon {
    double u[TB_SOFT_MOST_CORNERS][3], limit[TB_SOFT_MOST_LIMITS][TB_SOFT_MOST_CORNERS];
    int count;
} tb_soft_polygon;

/* Where the line from corner a to b of a cell crosses psi = 0. */
TB_FN void tb_soft_add_crossing(tb_soft_polygon *p, int a, int b, const double psi[8],
                                const tb_soft_limits *l)
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
TB_FN void tb_soft_cut_tetrahedron(const int corner[4], const double psi[8],
                                   const tb_soft_limits *l, tb_soft_polygon *p)
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
        tb_soft_add_crossing(p, in[0], out[0], psi, l);
        tb_soft_add_crossing(p, in[0], out[1], psi, l);
        tb_soft_add_crossing(p, in[1], out[1], psi, l);
        tb_soft_add_crossing(p, in[1], out[0], psi, l);
    } else if (n == 1 || n == 3) {
        const int *many = n == 1 ? out : in, lone = n == 1 ? in[0] : out[0];
        for (int i = 0; i < 3; i++) tb_soft_add_crossing(p, lone, many[i], psi, l);
    }
}

/* Adds the point of p's edge from corner i to `next` at the part t of the edge. */
TB_FN void tb_soft_add_between(tb_soft_polygon *q, const tb_soft_polygon *p, int i, int next,
                               double t, int count)
{
    for (int a = 0; a < 3; a++) q->u[q->count][a] = p->u[i][a] + t * (p->u[next][a] - p->u[i][a]);
    for (int l = 0; l < count; l++)
        q->limit[l][q->count] = p->limit[l][i] + t * (p->limit[l][next] - p->limit[l][i]);
    q->count++;
}

/* Keeps the part of a polygon where every one of its `count` limits is negative. */
TB_FN void tb_soft_clip(tb_soft_polygon *p, int count)
{
    for (int l = 0; l < count; l++) {
        tb_soft_polygon q;
        int outside = 0;
        for (int i = 0; i < p->count; i++) outside += p->limit[l][i] > 0;
        if (outside == 0) continue;
        q.count = 0;
        for (int i = 0; i < p->count; i++) {
            const int next = (i + 1) % p->count;
            const double here = p->limit[l][i], there = p->limit[l][next];
            if (here <= 0) tb_soft_add_between(&q, p, i, next, 0, count);
            if ((here < 0 && there > 0) || (here > 0 && there < 0))
                tb_soft_add_between(&q, p, i, next, here / (here - there), count);
        }
        *p = q;
    }
}

/* integrals over the surface in a cell */
typedef struct tb_soft_cut {
    double area, gap, point[3], shape[8];
} tb_soft_cut;

/* Adds a polygon, as triangles from its first corner. */
TB_FN void tb_soft_add_polygon(tb_soft_cut *s, const tb_soft_polygon *p, const double h[3])
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
TB_FN void tb_soft_to_lengths(const tb_soft_space *s, double depth[8])
{
    const double *at_centre = s->tables.slope[8];
    double slope2 = 0, gradient[3] = {0, 0, 0};
    for (int c = 0; c < 8; c++)
        for (int a = 0; a < 3; a++) gradient[a] += at_centre[3 * c + a] * depth[c];
    for (int a = 0; a < 3; a++) slope2 += gradient[a] * gradient[a];
    /* near an edge differences of the distance are smaller than its slope */
    const double slope = tb_max(0.25, tb_min(sqrt(slope2), 4.0));
    for (int c = 0; c < 8; c++) depth[c] /= slope;
}

/* The scalar product of the gradients of two fields, over their lengths. */
TB_FN double tb_soft_cosine(const tb_soft_space *s, const double p[8], const double q[8])
{
    const double *at_centre = s->tables.slope[8];
    double pq = 0, pp = 0, qq = 0, x[3] = {0, 0, 0}, y[3] = {0, 0, 0};
    for (int c = 0; c < 8; c++)
        for (int a = 0; a < 3; a++) {
            x[a] += at_centre[3 * c + a] * p[c];
            y[a] += at_centre[3 * c + a] * q[c];
        }
    for (int a = 0; a < 3; a++) {
        pq += x[a] * y[a];
        pp += x[a] * x[a];
        qq += y[a] * y[a];
    }
    return pp > 0 && qq > 0 ? pq / sqrt(pp * qq) : 0;
}

/* Place of corner c of the cell at `at`. */
TB_FN void tb_soft_corner_place(const tb_soft_space *s, const int32_t at[3], int c, double x[3])
{
    for (int a = 0; a < 3; a++) x[a] = tb_soft_place(s, a, at[a] + (c >> a & 1));
}

/* tb_soft_face of an obstacle that is a box, before any other. *normal: of its side, out of the box; unchanged if no
 * side faces the body. */
TB_FN void tb_soft_face_of_box(const tb_soft_space *s, const tb_soft_solid *box,
                               const int32_t at[3], const double other[8], double depth[8],
                               tb_soft_limits *l, tb_vec3 *normal)
{
    double side[3][8], least = TB_SOFT_FACING, sign = 0;
    int facing = -1;
    for (int c = 0; c < 8; c++) {
        double x[3];
        tb_soft_corner_place(s, at, c, x);
        const tb_vec3 local = tb_pose_inverse_point(&box->pose, tb_v3_load(x));
        side[0][c] = local.x, side[1][c] = local.y, side[2][c] = local.z;
    }
    for (int i = 0; i < 3; i++) {
        const double angle = tb_soft_cosine(s, side[i], other);
        if (-tb_abs(angle) < least) least = -tb_abs(angle), facing = i, sign = angle < 0 ? 1 : -1;
    }
    if (facing < 0) return;
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 8; c++) {
            double *end = l->at[l->count + i] + c;
            *end = tb_abs(side[i][c]) - box->size[i];
            if (i != facing) continue;
            depth[c] = sign * side[i][c] - box->size[i];
            *end = -sign * side[i][c] - box->size[i]; /* behind the back */
        }
    l->count += 3;
    *normal = tb_v3(sign * box->pose.rotation.m[facing], sign * box->pose.rotation.m[3 + facing],
                    sign * box->pose.rotation.m[6 + facing]);
}

/* Replaces the lengths to a body by those to its side that faces the other one, whose lengths are `other`;
 * its other sides become limits. If no side is known to face it, the lengths stay. */
TB_FN void tb_soft_face(const tb_soft_space *s, const tb_soft_side *who, int32_t n,
                        const double other[8], double depth[8], tb_soft_limits *l)
{
    double side[TB_SOFT_SIDES][8], least = TB_SOFT_FACING;
    int sides = 0, facing = -1;
    if (who->field == NULL) return;
    for (int c = 0; c < 8; c++) {
        double at[TB_SOFT_SIDES];
        sides =
            tb_soft_sides(who->solid, who->field->X + 3 * (int64_t)tb_soft_corner_of(s, n, c), at);
        for (int i = 0; i < sides; i++) side[i][c] = at[i];
    }
    if (sides == 1) return;
    for (int i = 0; i < sides; i++) {
        const double angle = tb_soft_cosine(s, side[i], other);
        if (angle < least) least = angle, facing = i;
    }
    if (facing < 0) return;
    for (int c = 0; c < 8; c++) depth[c] = side[facing][c];
    tb_soft_to_lengths(s, depth);
    for (int i = 0; i < sides; i++) {
        if (i == facing || l->count == TB_SOFT_MOST_LIMITS) continue;
        for (int c = 0; c < 8; c++) l->at[l->count][c] = side[i][c];
        l->count++;
    }
}

/* A side of a pair in one cell: lengths to it at the corners. */
TB_FN void tb_soft_lengths_to(const tb_soft_space *s, const tb_soft_side *who, int32_t n,
                              const int32_t at[3], double depth[8])
{
    for (int c = 0; c < 8; c++) {
        double x[3];
        if (who->field != NULL) {
            depth[c] = who->field->depth[tb_soft_corner_of(s, n, c)];
            continue;
        }
        tb_soft_corner_place(s, at, c, x);
        depth[c] = tb_soft_distance(who->solid, x);
    }
    tb_soft_to_lengths(s, depth);
}

/* Weights of the corners in one side's velocity at the surface; false if none has mass. *movable
 * becomes true if a corner may move. */
TB_FN bool tb_soft_weigh(const tb_soft_space *s, const tb_soft_side *who, int32_t n,
                         const double shape[8], double weights[8], bool *movable)
{
    const double *h = s->lattice.spacing;
    double sum = 0;
    for (int c = 0; c < 8; c++) {
        weights[c] = shape[c];
        if (who->field != NULL) {
            const int32_t corner = tb_soft_corner_of(s, n, c);
            const double mass = who->field->mass[corner];
            const double light = TB_SOFT_LIGHT_MASS * who->density * (h[0] * h[1] * h[2]);
            const uint8_t *held = who->field->held;
            weights[c] *= mass / (mass + light);
            if (weights[c] > 0 && !(held != NULL && held[corner])) *movable = true;
        } else if (who->moves) {
            *movable = true;
        }
        sum += weights[c];
    }
    for (int c = 0; c < 8; c++) weights[c] /= sum;
    return sum > 1e-6;
}

/* The contact's normal, from b to a, of the surface in the middle between two bodies: its gradient at
 * the cell's centre. */
TB_FN tb_vec3 tb_soft_normal_between(const double psi[8], const double h[3])
{
    double g[3] = {0, 0, 0};
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 8; c++) g[a] += ((c >> a & 1) ? -psi[c] : psi[c]) / h[a];
    return tb_v3_normalize(tb_v3_load(g), tb_v3(0, 0, 1));
}

/* An obstacle's own normal at a point near its surface: differences over a small part of a cell, since
 * an obstacle may be thinner than one. */
TB_FN tb_vec3 tb_soft_normal_of(const tb_soft_solid *obstacle, const double point[3], double least)
{
    double g[3];
    for (int a = 0; a < 3; a++) {
        double x[3] = {point[0], point[1], point[2]};
        x[a] = point[a] + TB_SOFT_NORMAL_STEP * least;
        g[a] = tb_soft_distance(obstacle, x);
        x[a] = point[a] - TB_SOFT_NORMAL_STEP * least;
        g[a] -= tb_soft_distance(obstacle, x);
    }
    return tb_v3_normalize(tb_v3_load(g), tb_v3(0, 0, 1));
}

/* Whether a body's inside begins behind a point of the surface: at `reach` from it along `sign`
 * times the normal. False for a body that is near only sideways. */
TB_FN bool tb_soft_lies_behind(const tb_soft_space *s, const tb_soft_side *who,
                               const tb_soft_contact *c, double sign, double reach)
{
    const tb_soft_lattice *l = &s->lattice;
    int32_t at[3];
    double u[3], depth = 0;
    if (who->field == NULL) return true;
    for (int a = 0; a < 3; a++) {
        const double x = (c->point[a] + sign * reach * c->normal[a] - l->origin[a]) / l->spacing[a];
        at[a] = (int32_t)floor(x);
        u[a] = x - at[a];
        if (at[a] < 0 || at[a] + 1 >= l->nodes[a]) return false;
    }
    const int32_t n = tb_soft_number(s, at[0], at[1], at[2]);
    if (!tb_soft_cell_is_valid(s, who->field, n)) return false;
    for (int k = 0; k < 8; k++)
        depth += tb_soft_shape(k, u) * who->field->depth[tb_soft_corner_of(s, n, k)];
    return depth < 0;
}

/* Whether two sides with these lengths at the corners of a cell come near enough to touch in it. */
TB_FN bool tb_soft_comes_near(const tb_soft_space *s, const double da[8], const double db[8])
{
    const double *h = s->lattice.spacing;
    const double margin = TB_SOFT_GAP_MARGIN * tb_min(h[0], tb_min(h[1], h[2]));
    double nearest = 1e300;
    for (int c = 0; c < 8; c++) nearest = tb_min(nearest, da[c] + db[c]);
    return !(nearest > margin + h[0] + h[1] + h[2]);
}

/* The contact of two sides that come near each other in a cell, without its key and the numbers of the sides;
 * false if there is none. Side a is a body. da, db: lengths to the sides at the corners; changed. */
TB_FN_LARGE bool tb_soft_touch_within(const tb_soft_space *s, const tb_soft_side *a,
                                      const tb_soft_side *b, const int32_t at[3], double da[8],
                                      double db[8], tb_soft_contact *contact)
{
    const double *h = s->lattice.spacing;
    const double least = tb_min(h[0], tb_min(h[1], h[2])), margin = TB_SOFT_GAP_MARGIN * least;
    const int32_t n = tb_soft_number(s, at[0], at[1], at[2]);
    const bool obstacle = b->field == NULL;
    double psi[8], nearest = 1e300;
    tb_soft_limits limit;
    int negative = 0;
    const double first[8] = {da[0], da[1], da[2], da[3], da[4], da[5], da[6], da[7]};
    tb_vec3 normal = tb_v3(0, 0, 0);
    limit.count = 1;
    if (obstacle && b->solid->kind == TB_SOFT_BOX)
        tb_soft_face_of_box(s, b->solid, at, first, db, &limit, &normal);
    tb_soft_face(s, a, n, db, da, &limit);
    tb_soft_face(s, b, n, first, db, &limit);
    for (int c = 0; c < 8; c++) {
        psi[c] = 0.5 * (da[c] - db[c]);
        limit.at[0][c] = da[c] + db[c] - margin;
        negative += psi[c] < 0;
        nearest = tb_min(nearest, limit.at[0][c]);
    }
    if (negative == 0 || negative == 8 || nearest > 0) return false;
    tb_soft_cut cut;
    memset(&cut, 0, sizeof cut);
    for (int t = 0; t < TB_SOFT_TETRAHEDRA; t++) {
        int corner[4];
        tb_soft_polygon p;
        tb_soft_tetrahedron(t, (at[0] & 1) | (at[1] & 1) << 1 | (at[2] & 1) << 2, corner);
        tb_soft_cut_tetrahedron(corner, psi, &limit, &p);
        tb_soft_clip(&p, limit.count);
        tb_soft_add_polygon(&cut, &p, h);
    }
    if (!(cut.area > TB_SOFT_SMALLEST_AREA * least * least)) return false;
    memset(contact, 0, sizeof *contact);
    for (int c = 0; c < 8; c++) cut.shape[c] /= cut.area;
    bool movable = false;
    if (!tb_soft_weigh(s, a, n, cut.shape, contact->weights[0], &movable) ||
        !tb_soft_weigh(s, b, n, cut.shape, contact->weights[1], &movable) || !movable)
        return false;
    contact->cell = n;
    contact->area = cut.area;
    contact->gap = cut.gap / cut.area + margin;
    for (int i = 0; i < 3; i++)
        contact->point[i] = tb_soft_place(s, i, at[i]) + cut.point[i] / cut.area * h[i];
    if (!obstacle)
        normal = tb_soft_normal_between(psi, h);
    else if (tb_v3_dot(normal, normal) == 0)
        normal = tb_soft_normal_of(b->solid, contact->point, least);
    tb_vec3 t1, t2;
    tb_v3_tangents(normal, &t1, &t2);
    tb_v3_store(contact->normal, normal);
    tb_v3_store(contact->tangent[0], t1);
    tb_v3_store(contact->tangent[1], t2);
    const double reach = margin + 0.5 * tb_abs(contact->gap);
    return tb_soft_lies_behind(s, a, contact, 1, reach) &&
           tb_soft_lies_behind(s, b, contact, -1, reach);
}

/* The contact of two sides in a cell, as tb_soft_touch_within. */
TB_FN bool tb_soft_touch(const tb_soft_space *s, const tb_soft_side *a, const tb_soft_side *b,
                         const int32_t at[3], tb_soft_contact *contact)
{
    const int32_t n = tb_soft_number(s, at[0], at[1], at[2]);
    double da[8], db[8];
    if (!tb_soft_cell_is_valid(s, a->field, n)) return false;
    if (b->field != NULL && !tb_soft_cell_is_valid(s, b->field, n)) return false;
    tb_soft_lengths_to(s, a, n, at, da);
    tb_soft_lengths_to(s, b, n, at, db);
    return tb_soft_comes_near(s, da, db) && tb_soft_touch_within(s, a, b, at, da, db, contact);
}

/* The place of a contact among all: cells by x, then y, then z (Litven 5.1), then pairs. `bodies` and
 * `things`: numbers of bodies, and of bodies and obstacles. */
TB_FN uint64_t tb_soft_contact_key(const tb_soft_space *s, const int32_t at[3], int32_t a,
                                   int32_t b, int32_t bodies, int32_t things)
{
    const int32_t *nodes = s->lattice.nodes;
    const uint64_t cell =
        ((uint64_t)at[0] * (uint64_t)nodes[1] + (uint64_t)at[1]) * (uint64_t)nodes[2] +
        (uint64_t)at[2];
    return cell * ((uint64_t)bodies * (uint64_t)things) + (uint64_t)a * (uint64_t)things +
           (uint64_t)b;
}

#endif
