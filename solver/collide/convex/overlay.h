/* Overlays of two patches along a common normal: the contact points of a convex pair.
 *
 * Every function takes the patch of A and that of B in either role, writes the points of their
 * overlap with the gap between both surfaces along the normal, and keeps those within the
 * margin. */
#ifndef TB_COLLIDE_OVERLAY_H
#define TB_COLLIDE_OVERLAY_H

#include "collide/convex/patch.h"

enum { TB_OVERLAY_POINTS = 160 };

typedef struct tb_overlay {
    tb_vec3 normal; /* unit, from A to B */
    tb_real margin;
    int count;
    tb_contact_point points[TB_OVERLAY_POINTS];
} tb_overlay;

/* Adds a point that lies on the surface of A (on_b: B) at p, with features of the patch that it
 * lies on and of the other. */
TB_FN_LARGE void tb_overlay_add(tb_overlay *o, tb_vec3 p, int on_b, tb_real gap, uint32_t own,
                                uint32_t other)
{
    if (!(gap <= o->margin) || o->count >= TB_OVERLAY_POINTS) return;
    if (on_b)
        tb_contact_set_b(&o->points[o->count++], o->normal, p, gap, tb_feature(other, own));
    else
        tb_contact_set_a(&o->points[o->count++], o->normal, p, gap, tb_feature(own, other));
}

/* Height of p, a point of the patch that is not `base`, over base's plane along the normal.
 * out: the normal, outward from base. */
TB_FN tb_real tb_overlay_height(const tb_patch *base, tb_vec3 out, tb_vec3 p)
{
    return tb_v3_dot(base->normal,
                     tb_v3_sub(p, base->kind == TB_PATCH_DISC ? base->centre : base->p[0])) /
           tb_v3_dot(base->normal, out);
}

/* Side k of a polygon in the plane spanned by t1, t2 around `origin`; turn -1 if it runs clockwise
 * there. 0 if the side has no length. */
TB_FN int tb_overlay_side(const tb_patch *polygon, int k, tb_vec3 origin, tb_vec3 t1, tb_vec3 t2,
                          tb_real turn, tb_clip_side *side)
{
    const int next = k + 1 < polygon->count ? k + 1 : 0;
    const tb_vec3 p = tb_v3_sub(polygon->p[k], origin);
    const tb_vec3 e = tb_v3_sub(polygon->p[next], polygon->p[k]);
    const tb_vec3 along = tb_v3(tb_v3_dot(e, t1), tb_v3_dot(e, t2), 0);
    const tb_vec3 unit = tb_v3_normalize(along, tb_v3(0, 0, 0));
    side->nu = turn * unit.y;
    side->nv = -turn * unit.x;
    side->d = side->nu * tb_v3_dot(p, t1) + side->nv * tb_v3_dot(p, t2);
    side->edge = tb_feature_edge(polygon->id[k], polygon->id[next]);
    return unit.x != 0 || unit.y != 0;
}

/* size of a patch, for tolerances */
TB_FN tb_real tb_patch_size(const tb_patch *p)
{
    if (p->kind == TB_PATCH_DISC) return 2 * p->radius;
    tb_real most = 0;
    for (int k = 1; k < p->count; k++) {
        const tb_vec3 d = tb_v3_sub(p->p[k], p->p[0]);
        most = tb_max(most, tb_abs(d.x) + tb_abs(d.y) + tb_abs(d.z));
    }
    return most;
}

/* Polygon `inc` over polygon `ref`; ref_is_b: ref belongs to B. */
TB_FN_LARGE void tb_overlay_polygons(tb_overlay *o, const tb_patch *ref, int ref_is_b,
                                     const tb_patch *inc)
{
    tb_clip_ring ring;
    tb_vec3 t1, t2;
    const tb_vec3 out = ref_is_b ? tb_v3_negate(o->normal) : o->normal;
    const tb_vec3 origin = ref->p[0];
    tb_v3_tangents(out, &t1, &t2);
    for (int k = 0; k < inc->count; k++) {
        tb_clip_point *c = &ring.points[k];
        const tb_vec3 d = tb_v3_sub(inc->p[k], origin);
        c->u = tb_v3_dot(d, t1);
        c->v = tb_v3_dot(d, t2);
        c->height = tb_v3_dot(d, out);
        c->reference = ref->face;
        c->incident = TB_FEATURE_VERTEX | inc->id[k];
        c->edge = tb_feature_edge(inc->id[k], inc->id[k + 1 < inc->count ? k + 1 : 0]);
        c->cut = 0;
    }
    const tb_real slack = TB_COLLIDE_FLAT * tb_patch_size(ref);
    tb_clip_ring_close(&ring, inc->count);
    for (int k = 0; k < ref->count && ring.count > 0; k++) {
        tb_clip_side side;
        if (!tb_overlay_side(ref, k, origin, t1, t2, 1, &side)) continue;
        tb_clip_ring_cut(&ring, &side, inc->face, slack);
    }
    for (int k = 0, place = ring.first; k < ring.count; k++, place = ring.next[place]) {
        const tb_clip_point *c = &ring.points[place];
        const tb_vec3 foot = tb_v3_add_scaled(tb_v3_add_scaled(origin, t1, c->u), t2, c->v);
        tb_overlay_add(o, foot, ref_is_b, c->height, c->reference, c->incident);
    }
}

/* Parameters where a line p + t d crosses a circle about the origin of the plane;
 * 0 if it does not. */
TB_FN int tb_circle_crossing(tb_real px, tb_real py, tb_real dx, tb_real dy, tb_real radius,
                             tb_real *low, tb_real *high)
{
    const tb_real a = dx * dx + dy * dy, b = px * dx + py * dy;
    if (!(a > 0)) return 0;
    /* distance of the line from the centre, without the cancellation of b^2 - a c */
    const tb_real cross = px * dy - py * dx;
    const tb_real rest = radius * radius * a - cross * cross;
    if (!(rest > 0)) return 0;
    const tb_real root = tb_sqrt(rest);
    *low = (-b - root) / a;
    *high = (-b + root) / a;
    return 1;
}

/* Whether p lies over polygon or disc `ref`, seen along the unit direction `out`. */
TB_FN int tb_overlay_over(const tb_patch *ref, tb_vec3 out, tb_vec3 p)
{
    const tb_real slack = TB_COLLIDE_FLAT * tb_patch_size(ref);
    if (ref->kind == TB_PATCH_DISC) {
        tb_vec3 d = tb_v3_sub(p, ref->centre);
        d = tb_v3_add_scaled(d, out, -tb_v3_dot(d, out));
        return tb_v3_length(d) <= ref->radius + slack;
    }
    tb_vec3 t1, t2;
    const tb_vec3 d = tb_v3_sub(p, ref->p[0]);
    tb_v3_tangents(out, &t1, &t2);
    const tb_real u = tb_v3_dot(d, t1), v = tb_v3_dot(d, t2);
    for (int k = 0; k < ref->count; k++) {
        tb_clip_side side;
        if (!tb_overlay_side(ref, k, ref->p[0], t1, t2, 1, &side)) continue;
        if (side.nu * u + side.nv * v - side.d > slack) return 0;
    }
    return 1;
}

/* Segment `inc` over polygon or disc `ref`. */
TB_FN_LARGE void tb_overlay_segment(tb_overlay *o, const tb_patch *ref, int ref_is_b,
                                    const tb_patch *inc)
{
    const tb_vec3 out = ref_is_b ? tb_v3_negate(o->normal) : o->normal;
    const tb_vec3 origin = ref->kind == TB_PATCH_DISC ? ref->centre : ref->p[0];
    tb_vec3 t1, t2;
    tb_v3_tangents(out, &t1, &t2);
    const tb_vec3 p = tb_v3_sub(inc->p[0], origin), e = tb_v3_sub(inc->p[1], inc->p[0]);
    const tb_real pu = tb_v3_dot(p, t1), pv = tb_v3_dot(p, t2);
    const tb_real eu = tb_v3_dot(e, t1), ev = tb_v3_dot(e, t2);
    const tb_real slack = TB_COLLIDE_FLAT * tb_patch_size(ref);
    tb_real t[2] = {0, 1};
    uint32_t inc_id[2] = {TB_FEATURE_VERTEX | inc->id[0], TB_FEATURE_VERTEX | inc->id[1]};
    uint32_t ref_id[2] = {ref->face, ref->face};
    const uint32_t own_edge = tb_feature_edge(inc->id[0], inc->id[1]);

    if (ref->kind == TB_PATCH_DISC) {
        tb_real low, high;
        if (!tb_circle_crossing(pu, pv, eu, ev, ref->radius + slack, &low, &high)) {
            if (!(pu * pu + pv * pv <= ref->radius * ref->radius)) return;
            low = 0, high = 1; /* a segment without length over the disc */
        }
        const uint32_t rim = TB_FEATURE_EDGE | ((ref->face & 1u) << 1);
        if (low > 0) t[0] = low, inc_id[0] = own_edge, ref_id[0] = rim;
        if (high < 1) t[1] = high, inc_id[1] = own_edge, ref_id[1] = rim | 1u;
    }
    for (int k = 0; ref->kind == TB_PATCH_POLYGON && k < ref->count; k++) {
        tb_clip_side side;
        if (!tb_overlay_side(ref, k, origin, t1, t2, 1, &side)) continue;
        const tb_real d0 = side.nu * pu + side.nv * pv - side.d;
        const tb_real d1 = side.nu * (pu + eu) + side.nv * (pv + ev) - side.d;
        if (d0 > slack && d1 > slack) return;
        if (d0 > slack || d1 > slack) {
            const int end = d0 > slack ? 0 : 1;
            const tb_real at = d0 / (d0 - d1);
            if (end ? at < t[1] : at > t[0]) {
                t[end] = at;
                inc_id[end] = own_edge;
                ref_id[end] = side.edge;
            }
        }
    }
    if (!(t[0] <= t[1])) return;
    for (int end = 0; end < 2; end++) {
        if (end == 1 && t[1] - t[0] <= TB_COLLIDE_FLAT && inc_id[1] == own_edge) break;
        const tb_vec3 q = tb_v3_add_scaled(inc->p[0], e, t[end]);
        tb_overlay_add(o, q, !ref_is_b, tb_v3_dot(out, tb_v3_sub(q, origin)), inc_id[end],
                       ref_id[end]);
    }
}

/* The four fixed points of a disc, and the point of its rim nearest to the other plane unless
 * the two are level. Returns their number (4 or 5), in *x and *y of the disc's axes; id:
 * features. */
TB_FN int tb_disc_points(const tb_patch *disc, tb_vec3 other_normal, tb_real x[5], tb_real y[5],
                         uint32_t id[5])
{
    for (int k = 0; k < 4; k++) {
        const tb_real at = k & 1 ? -disc->radius : disc->radius;
        x[k] = k & 2 ? TB_R(0) : at;
        y[k] = k & 2 ? at : TB_R(0);
        id[k] = TB_FEATURE_VERTEX | disc->id[k];
    }
    /* the other plane's outward normal points back, so the plane rises along its own tilt */
    const tb_real mx = -tb_v3_dot(other_normal, disc->ax), my = -tb_v3_dot(other_normal, disc->ay);
    const tb_real tilt = tb_sqrt(mx * mx + my * my);
    if (!(tilt > TB_COLLIDE_FLAT)) return 4;
    const tb_real dx = mx / tilt, dy = my / tilt;
    if (tb_min(tb_abs(dx), tb_abs(dy)) < TB_R(1e-4)) return 4;
    x[4] = disc->radius * dx;
    y[4] = disc->radius * dy;
    id[4] = TB_FEATURE_EDGE | (disc->face & 1u);
    return 5;
}

/* A disc and a polygon. All computations are in the disc's plane, onto which the polygon is
 * projected. */
TB_FN_LARGE void tb_overlay_disc_polygon(tb_overlay *o, const tb_patch *disc, int disc_is_b,
                                         const tb_patch *polygon)
{
    const tb_vec3 out = disc_is_b ? tb_v3_negate(o->normal) : o->normal;
    const tb_real slack = TB_COLLIDE_FLAT * disc->radius;
    const uint32_t rim = TB_FEATURE_EDGE | ((disc->face & 1u) << 1);
    tb_real x[TB_CLIP_FACE], y[TB_CLIP_FACE], gap[TB_CLIP_FACE];
    for (int k = 0; k < polygon->count; k++) {
        gap[k] = tb_overlay_height(disc, out, polygon->p[k]);
        const tb_vec3 foot = tb_v3_sub(tb_v3_add_scaled(polygon->p[k], out, -gap[k]), disc->centre);
        x[k] = tb_v3_dot(foot, disc->ax);
        y[k] = tb_v3_dot(foot, disc->ay);
    }
    /* corners over the disc, and where the polygon's sides cross its rim */
    for (int k = 0; k < polygon->count; k++) {
        const int next = k + 1 < polygon->count ? k + 1 : 0;
        const tb_real reach = disc->radius + slack;
        if (x[k] * x[k] + y[k] * y[k] <= reach * reach)
            tb_overlay_add(o, polygon->p[k], !disc_is_b, gap[k], TB_FEATURE_VERTEX | polygon->id[k],
                           disc->face);
        tb_real t[2];
        if (!tb_circle_crossing(x[k], y[k], x[next] - x[k], y[next] - y[k], reach, &t[0], &t[1]))
            continue;
        const uint32_t edge = tb_feature_edge(polygon->id[k], polygon->id[next]);
        const int turned = polygon->id[k] > polygon->id[next];
        for (int i = 0; i < 2; i++)
            if (t[i] > 0 && t[i] < 1)
                tb_overlay_add(o, tb_v3_lerp(polygon->p[k], polygon->p[next], t[i]), !disc_is_b,
                               gap[k] + t[i] * (gap[next] - gap[k]), edge,
                               rim | (uint32_t)(turned ? 1 - i : i));
    }
    /* points of the disc under the polygon */
    tb_real px[5], py[5];
    uint32_t id[5];
    const int count = tb_disc_points(disc, polygon->normal, px, py, id);
    for (int i = 0; i < count; i++) {
        int inside = 1;
        for (int k = 0; k < polygon->count && inside; k++) {
            const int next = k + 1 < polygon->count ? k + 1 : 0;
            const tb_real ex = x[next] - x[k], ey = y[next] - y[k];
            /* the polygon faces the disc, so it runs clockwise there; seen in ax, ay that are
             * right-handed about +Z, cap 0 turns it once more */
            const tb_real turn = disc->face & 1u ? TB_R(-1) : TB_R(1);
            const tb_real left = turn * (ex * (py[i] - y[k]) - ey * (px[i] - x[k]));
            inside = left >= slack * (tb_abs(ex) + tb_abs(ey));
        }
        if (!inside) continue;
        const tb_vec3 p =
            tb_v3_add_scaled(tb_v3_add_scaled(disc->centre, disc->ax, px[i]), disc->ay, py[i]);
        tb_overlay_add(o, p, disc_is_b, tb_overlay_height(polygon, tb_v3_negate(out), p), id[i],
                       polygon->face);
    }
}

/* Two discs: fixed points of each over the other, and crossings of the rims. */
TB_FN_LARGE void tb_overlay_discs(tb_overlay *o, const tb_patch *a, const tb_patch *b)
{
    const tb_real slack = TB_COLLIDE_FLAT * (a->radius + b->radius);
    for (int side = 0; side < 2; side++) {
        const tb_patch *own = side ? b : a, *other = side ? a : b;
        const tb_vec3 back = side ? o->normal : tb_v3_negate(o->normal); /* outward of the other */
        tb_real x[5], y[5];
        uint32_t id[5];
        const int count = tb_disc_points(own, other->normal, x, y, id);
        for (int i = 0; i < count; i++) {
            const tb_vec3 p =
                tb_v3_add_scaled(tb_v3_add_scaled(own->centre, own->ax, x[i]), own->ay, y[i]);
            const tb_real gap = tb_overlay_height(other, back, p);
            const tb_vec3 foot = tb_v3_sub(tb_v3_add_scaled(p, back, -gap), other->centre);
            /* equal discs over each other: only A's points are used */
            const tb_real reach = other->radius + (side ? -slack : slack);
            if (tb_v3_length2(foot) <= reach * reach)
                tb_overlay_add(o, p, side, gap, id[i], other->face);
        }
    }
    /* crossings of the rims: of circles in A's plane, then refined by Newton's method for B's
     * tilt */
    const tb_real h = tb_overlay_height(a, o->normal, b->centre);
    const tb_vec3 c = tb_v3_sub(tb_v3_add_scaled(b->centre, o->normal, -h), a->centre);
    const tb_real d2 = tb_v3_length2(c), d = tb_sqrt(d2);
    if (!(d > slack)) return;
    const tb_real along = (d2 + a->radius * a->radius - b->radius * b->radius) / (2 * d);
    if (tb_abs(along) > a->radius * TB_R(1.2)) return;
    const tb_real across = tb_sqrt(tb_max(0, a->radius * a->radius - along * along));
    const tb_vec3 u = tb_v3_scale(c, 1 / d), v = tb_v3_cross(a->normal, u);
    const tb_vec3 back = tb_v3_negate(o->normal);
    for (uint32_t k = 0; k < 2; k++) {
        tb_real angle = tb_atan2(k ? -across : across, along), miss = TB_REAL_MAX, gap = 0;
        tb_vec3 p = a->centre;
        for (int iteration = 0; iteration < 12; iteration++) {
            const tb_real x = a->radius * tb_cos(angle), y = a->radius * tb_sin(angle);
            p = tb_v3_add_scaled(tb_v3_add_scaled(a->centre, u, x), v, y);
            gap = tb_overlay_height(b, back, p);
            const tb_vec3 foot = tb_v3_sub(tb_v3_add_scaled(p, back, -gap), b->centre);
            miss = tb_v3_length2(foot) - b->radius * b->radius;
            /* along the rim, kept in B's plane */
            const tb_vec3 t = tb_v3_add_scaled(tb_v3_scale(v, x), u, -y);
            const tb_vec3 slide =
                tb_v3_add_scaled(t, back, -tb_v3_dot(b->normal, t) / tb_v3_dot(b->normal, back));
            const tb_real slope = 2 * tb_v3_dot(foot, slide);
            if (tb_abs(miss) <= 8 * TB_REAL_EPSILON * b->radius * b->radius || slope == 0) break;
            angle -= tb_clamp(miss / slope, TB_R(-0.3), TB_R(0.3));
        }
        if (!(tb_abs(miss) <= TB_COLLIDE_FLAT * b->radius * b->radius)) continue;
        tb_overlay_add(o, p, 0, gap, TB_FEATURE_EDGE | (2u + (a->face & 1u)),
                       TB_FEATURE_EDGE | (4u + (k << 1) + (b->face & 1u)));
    }
}

/* Parallel edges: both ends of their common stretch. No points if they cross or only touch. */
TB_FN_LARGE void tb_overlay_edges(tb_overlay *o, const tb_patch *a, const tb_patch *b)
{
    const tb_vec3 ea = tb_v3_sub(a->p[1], a->p[0]), eb = tb_v3_sub(b->p[1], b->p[0]);
    const tb_real la = tb_v3_length(ea), lb = tb_v3_length(eb);
    if (!(la > 0 && lb > 0)) return;
    if (!(tb_v3_length(tb_v3_cross(ea, eb)) <= TB_COLLIDE_SIDE_BY_SIDE * la * lb)) return;
    const tb_vec3 u = tb_v3_scale(ea, 1 / la);
    const int same = tb_v3_dot(ea, eb) > 0;
    const int b0 = same ? 0 : 1, b1 = same ? 1 : 0; /* B's ends in A's sense */
    const tb_real s0 = tb_v3_dot(u, tb_v3_sub(b->p[b0], a->p[0]));
    const tb_real s1 = tb_v3_dot(u, tb_v3_sub(b->p[b1], a->p[0]));
    const tb_real low = tb_max(0, s0), high = tb_min(la, s1);
    if (!(high - low > TB_COLLIDE_FLAT * (la + lb)) || !(s1 > s0)) return;
    const uint32_t edge_a = tb_feature_edge(a->id[0], a->id[1]);
    const uint32_t edge_b = tb_feature_edge(b->id[0], b->id[1]);
    for (int end = 0; end < 2; end++) {
        const tb_real s = end ? high : low;
        const int of_a = end ? s1 >= la : s0 <= 0;
        const tb_vec3 pa = tb_v3_add_scaled(a->p[0], u, s);
        const tb_vec3 pb = tb_v3_lerp(b->p[b0], b->p[b1], tb_clamp((s - s0) / (s1 - s0), 0, 1));
        const tb_real gap = tb_v3_dot(o->normal, tb_v3_sub(pb, pa));
        tb_overlay_add(o, pa, 0, gap, of_a ? TB_FEATURE_VERTEX | a->id[end] : edge_a,
                       of_a ? edge_b : TB_FEATURE_VERTEX | b->id[end ? b1 : b0]);
    }
}

#endif
