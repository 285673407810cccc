/* Parts of convex cores, and the common normal of two of them.
 *
 * GJK and EPA give the normal of curved shapes to about half the digits, and the nearest parts:
 * corners, edges, rims, sides. For two parts the normal solves a smooth equation: the line
 * between their extreme points along n is parallel to n, except for components along edges.
 * Newton's method takes a few steps, because a part, unlike its shape, has no kinks. The
 * solution is valid if both parts are extreme in their shapes along it. */
#ifndef TB_COLLIDE_PARTS_H
#define TB_COLLIDE_PARTS_H

#include "collide/convex/epa.h"
#include "collide/convex/faces.h"

typedef enum tb_part_kind {
    TB_PART_WHOLE, /* an ellipsoid */
    TB_PART_POINT, /* at p */
    TB_PART_RIM,   /* of a cap of a cylinder with its middle at p */
    TB_PART_EDGE,  /* from p along u for `length` */
    TB_PART_SIDE   /* of a cylinder: lines along u, from p in the middle of cap 0 for `length` */
} tb_part_kind;

typedef struct tb_part {
    tb_part_kind kind;
    tb_vec3 p, u;
    tb_real length;
} tb_part;

enum { TB_CORE_PARTS = 6 };

TB_FN int tb_part_straight(const tb_part *part)
{
    return part->kind == TB_PART_EDGE || part->kind == TB_PART_SIDE;
}

TB_FN void tb_part_set(tb_part *part, tb_part_kind kind, tb_vec3 p, tb_vec3 along)
{
    part->kind = kind;
    part->p = p;
    part->length = tb_v3_length(along);
    part->u = tb_v3_normalize(along, tb_v3(0, 0, 0));
}

/* whether two vertices have an edge between them, and not a diagonal of a face */
TB_FN int tb_core_joined(const tb_core *core, uint32_t i, uint32_t j)
{
    const uint32_t differ = i ^ j;
    if (core->type == TB_SHAPE_BOX) return differ == 1 || differ == 2 || differ == 4;
    if (core->type != TB_SHAPE_CONVEX || !core->hull->neighbour_start) return 1;
    for (int32_t k = core->hull->neighbour_start[i]; k < core->hull->neighbour_start[i + 1]; k++)
        if (core->hull->neighbours[k] == (int32_t)j) return 1;
    return 0;
}

/* The parts of one core that have vertices in the simplex, straight ones first. */
TB_FN_LARGE int tb_core_parts(const tb_core *core, const tb_simplex *s, int of_b,
                              tb_part parts[TB_CORE_PARTS])
{
    const tb_vec3 none = tb_v3(0, 0, 0);
    if (core->type == TB_SHAPE_ELLIPSOID) {
        tb_part_set(&parts[0], TB_PART_WHOLE, core->centre, none);
        return 1;
    }
    uint32_t ids[3];
    tb_vec3 points[3];
    int n = 0, count = 0;
    for (int k = 0; k < s->count && n < 3; k++) {
        const uint32_t id = of_b ? s->v[k].id_b : s->v[k].id_a;
        int known = 0;
        while (known < n && ids[known] != id) known++;
        if (known < n) continue;
        ids[n] = id;
        points[n++] = of_b ? s->v[k].b : s->v[k].a;
    }
    if (core->type == TB_SHAPE_CYLINDER) {
        const tb_vec3 half = tb_v3_scale(tb_m33_column(core->rotation, 2), core->size.y);
        const tb_vec3 low = tb_v3_sub(core->centre, half), high = tb_v3_add(core->centre, half);
        tb_part_set(&parts[count++], TB_PART_SIDE, low, tb_v3_scale(half, 2));
        for (int k = 0; k < n; k++)
            tb_part_set(&parts[count++], TB_PART_RIM, ids[k] ? high : low, none);
        return count;
    }
    for (int k = 0; k < n; k++) {
        const int next = k + 1 < n ? k + 1 : 0;
        if ((n == 3 || (n == 2 && k == 0)) && tb_core_joined(core, ids[k], ids[next]))
            tb_part_set(&parts[count++], TB_PART_EDGE, points[k],
                        tb_v3_sub(points[next], points[k]));
    }
    for (int k = 0; k < n; k++) tb_part_set(&parts[count++], TB_PART_POINT, points[k], none);
    return count;
}

/* point of the part farthest along n; for a straight part perpendicular to n, its first point */
TB_FN_LARGE tb_vec3 tb_part_support(const tb_part *part, tb_core *core, tb_vec3 n)
{
    uint32_t id;
    if (part->kind == TB_PART_WHOLE) return tb_core_support(core, n, &id);
    if (part->kind == TB_PART_POINT || part->kind == TB_PART_EDGE) return part->p;
    const tb_vec3 axis = tb_m33_column(core->rotation, 2);
    const tb_vec3 across = tb_v3_add_scaled(n, axis, -tb_v3_dot(n, axis));
    return tb_v3_add_scaled(part->p, tb_v3_normalize(across, tb_v3(0, 0, 0)), core->size.x);
}

/* Derivative of that point along m, a change of n. */
TB_FN_LARGE tb_vec3 tb_part_slope(const tb_part *part, const tb_core *core, tb_vec3 n, tb_vec3 m)
{
    if (part->kind == TB_PART_POINT || part->kind == TB_PART_EDGE) return tb_v3(0, 0, 0);
    if (part->kind == TB_PART_WHOLE) { /* of R S^2 R'n / |S R'n| */
        const tb_vec3 h = core->size;
        const tb_vec3 d = tb_m33_tmul_v3(core->rotation, n), e = tb_m33_tmul_v3(core->rotation, m);
        const tb_vec3 sd = tb_v3(h.x * d.x, h.y * d.y, h.z * d.z);
        const tb_vec3 se = tb_v3(h.x * e.x, h.y * e.y, h.z * e.z);
        const tb_real length = tb_v3_length(sd);
        if (!(length > 0)) return tb_v3(0, 0, 0);
        const tb_real f = tb_v3_dot(sd, se) / (length * length);
        const tb_vec3 turn = tb_v3_add_scaled(se, sd, -f);
        return tb_m33_mul_v3(core->rotation, tb_v3(h.x * turn.x / length, h.y * turn.y / length,
                                                   h.z * turn.z / length));
    }
    const tb_vec3 axis = tb_m33_column(core->rotation, 2);
    const tb_vec3 across = tb_v3_add_scaled(n, axis, -tb_v3_dot(n, axis));
    const tb_real length = tb_v3_length(across);
    if (!(length > 0)) return tb_v3(0, 0, 0);
    const tb_vec3 round = tb_v3_scale(tb_v3_cross(axis, across), 1 / length);
    return tb_v3_scale(round, core->size.x * tb_v3_dot(round, m) / length);
}

/* sine between n and the axis of a rim; 1 for parts that turn no faster than n */
TB_FN tb_real tb_part_tilt(const tb_part *part, const tb_core *core, tb_vec3 n)
{
    if (part->kind != TB_PART_RIM) return 1;
    return tb_v3_length(tb_v3_cross(n, tb_m33_column(core->rotation, 2)));
}

/* Newton's method on the unit sphere for a normal at which the extreme point w of A's part minus
 * B's has no component along the tangents, only across `edge` if there is one. As n turns by m, the
 * component along t changes by t . Dw m - (w . n) t . m. 0 if it does not converge. */
TB_FN_LARGE int tb_parts_newton(const tb_part *pa, tb_core *a, const tb_part *pb, tb_core *b,
                                const tb_vec3 *edge, tb_vec3 *normal)
{
    const int dimensions = edge ? 1 : 2;
    tb_vec3 n = *normal;
    if (edge) n = tb_v3_normalize(tb_v3_add_scaled(n, *edge, -tb_v3_dot(n, *edge)), n);
    tb_real before = TB_REAL_MAX;
    for (int iteration = 0; iteration < 20; iteration++) {
        tb_vec3 t[2];
        tb_v3_tangents(n, &t[0], &t[1]);
        if (edge) t[0] = tb_v3_cross(n, *edge);
        const tb_vec3 back = tb_v3_negate(n);
        const tb_vec3 w = tb_v3_sub(tb_part_support(pa, a, n), tb_part_support(pb, b, back));
        const tb_real depth = tb_v3_dot(w, n);
        tb_real r[2] = {0, 0}, j[4] = {0, 0, 0, 1};
        for (int d = 0; d < dimensions; d++) {
            r[d] = tb_v3_dot(w, t[d]);
            const tb_vec3 slope = tb_v3_sub(tb_part_slope(pa, a, n, t[d]),
                                            tb_part_slope(pb, b, back, tb_v3_negate(t[d])));
            for (int e = 0; e < dimensions; e++)
                j[2 * e + d] = tb_v3_dot(slope, t[e]) - (d == e ? depth : TB_R(0));
        }
        *normal = n;
        if (tb_abs(r[0]) + tb_abs(r[1]) <= 2 * TB_REAL_EPSILON * tb_v3_length(w)) return 1;
        const tb_real determinant = j[0] * j[3] - j[1] * j[2];
        if (!(tb_abs(determinant) > 0)) return 0;
        const tb_real x0 = (j[1] * r[1] - j[3] * r[0]) / determinant;
        const tb_real x1 = (j[2] * r[0] - j[0] * r[1]) / determinant;
        const tb_real length = tb_sqrt(x0 * x0 + x1 * x1);
        /* at the rounding floor, or diverging */
        if (before < TB_R(1e-3) && length > TB_R(0.5) * before) return 1;
        if (!(length <= TB_REAL_MAX)) return 0;
        /* a rim point moves fast for n near the axis: limit steps to half the remaining angle */
        const tb_real trust = TB_R(0.5) * tb_min(tb_part_tilt(pa, a, n), tb_part_tilt(pb, b, n));
        const tb_real f = length > trust ? trust / length : TB_R(1);
        before = f < 1 ? TB_REAL_MAX : length;
        n = tb_v3_normalize(tb_v3_add_scaled(tb_v3_add_scaled(n, t[0], f * x0), t[1], f * x1), n);
        if (edge) n = tb_v3_normalize(tb_v3_add_scaled(n, *edge, -tb_v3_dot(n, *edge)), n);
    }
    *normal = n;
    return before < TB_R(1e-3);
}

/* whether p lies beside a straight part, not beyond its ends */
TB_FN int tb_part_beside(const tb_part *part, tb_vec3 p)
{
    if (!tb_part_straight(part)) return 1;
    const tb_real s = tb_v3_dot(part->u, tb_v3_sub(p, part->p));
    const tb_real slack = TB_COLLIDE_FLAT * part->length;
    return s >= -slack && s <= part->length + slack;
}

/* The common normal of two parts, from a guess, with the nearest points. Returns 1 if the normal
 * is valid: both parts are extreme in their shapes and the points lie on the parts; *normal and
 * *separation are set if Newton's method converged. */
TB_FN_LARGE int tb_parts_normal(const tb_part *pa, tb_core *a, const tb_part *pb, tb_core *b,
                                tb_vec3 *normal, tb_real *separation, tb_vec3 *on_a, tb_vec3 *on_b)
{
    const int straight_a = tb_part_straight(pa), straight_b = tb_part_straight(pb);
    tb_vec3 n = *normal;
    int crossed = 0, parallel = 0;
    if (straight_a && straight_b) {
        const tb_vec3 cross = tb_v3_cross(pa->u, pb->u);
        parallel = tb_v3_length2(cross) <= TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL;
        crossed = !parallel;
        if (crossed) n = tb_v3_normalize(cross, n);
        if (tb_v3_dot(n, *normal) < 0) n = tb_v3_negate(n);
    }
    if (!crossed &&
        !tb_parts_newton(pa, a, pb, b, straight_a ? &pa->u : (straight_b ? &pb->u : 0), &n))
        return 0;
    const tb_vec3 back = tb_v3_negate(n);
    const tb_vec3 sa = tb_part_support(pa, a, n), sb = tb_part_support(pb, b, back);
    const tb_real reduced = tb_v3_dot(n, tb_v3_sub(sb, sa));
    const tb_real full = tb_core_separation(a, b, n);
    *normal = n;
    *separation = full;

    tb_real level = 0; /* a straight part that is not quite level uses its first point */
    if (straight_a) level += tb_abs(tb_v3_dot(n, pa->u)) * pa->length;
    if (straight_b) level += tb_abs(tb_v3_dot(n, pb->u)) * pb->length;
    const tb_real noise = TB_COLLIDE_NOISE * 4 * (a->extent + b->extent);
    if (tb_abs(full - reduced) > noise + 2 * level) return 0;
    if (level > TB_COLLIDE_FLAT * (a->extent + b->extent)) return 0;

    if (parallel) { /* in the middle of their common stretch */
        const tb_real from = tb_v3_dot(pa->u, tb_v3_sub(pb->p, pa->p));
        const tb_real to = from + tb_v3_dot(pa->u, pb->u) * pb->length;
        const tb_real low = tb_max(0, tb_min(from, to)),
                      high = tb_min(pa->length, tb_max(from, to));
        if (!(low <= high)) return 0;
        *on_a = tb_v3_add_scaled(sa, pa->u, TB_R(0.5) * (low + high));
        *on_b = tb_v3_add_scaled(*on_a, n, full);
        return 1;
    }
    if (crossed) {
        const tb_vec3 d = tb_v3_sub(sb, sa);
        const tb_real cosine = tb_v3_dot(pa->u, pb->u);
        const tb_real da = tb_v3_dot(d, pa->u), db = tb_v3_dot(d, pb->u);
        const tb_real s = (da - cosine * db) / (1 - cosine * cosine);
        *on_a = tb_v3_add_scaled(sa, pa->u, s);
        *on_b = tb_v3_add_scaled(*on_a, n, full);
    } else if (straight_a) {
        *on_b = sb;
        *on_a = tb_v3_add_scaled(sb, n, -full);
    } else {
        *on_a = sa;
        *on_b = tb_v3_add_scaled(sa, n, full);
    }
    return tb_part_beside(pa, *on_a) && tb_part_beside(pb, *on_b);
}

#endif
