/* Box against box: fifteen axes, then face over face or edge over edge.
 *
 * The largest separation over the face normals and the crossed edges is the exact depth in
 * penetration (Gottschalk, Lin, Manocha, OBBTree, SIGGRAPH 1996); boxes that lie on each other take a
 * face that is nearly as deep (TB_COLLIDE_FACE_DEPTH). For separated boxes it is the
 * distance only if the features of that axis lie over each other; otherwise the general method
 * handles the pair. */
#ifndef TB_COLLIDE_BOX_BOX_H
#define TB_COLLIDE_BOX_BOX_H

#include "collide/convex/clip.h"

TB_FN uint32_t tb_box_face_feature(int axis, int positive)
{
    return TB_FEATURE_FACE | (uint32_t)(2 * axis + (positive ? 1 : 0));
}

/* The k-th of the four corners, counter-clockwise seen from outside, of face (axis, positive):
 * corner number. */
TB_FN uint32_t tb_box_face_corner(int axis, int positive, int k)
{
    const int u = axis == 2 ? 0 : axis + 1, v = axis == 0 ? 2 : axis - 1;
    const int plus_u = positive ? (k == 1 || k == 2) : (k == 2 || k == 3);
    const int plus_v = positive ? (k >= 2) : (k == 1 || k == 2);
    return (uint32_t)(((positive ? 1 : 0) << axis) | (plus_u << u) | (plus_v << v));
}

/* Corners of the incident face in the frame of the reference face. */
typedef struct tb_box_corners {
    tb_real most_u, most_v, lowest; /* largest |u|, |v|; smallest height */
    uint32_t face;                  /* feature of the incident face */
} tb_box_corners;

/* The face of a box of half extents `half` that is most against face (axis, positive) of the
 * reference box, whose height there is `top`; corners: 4. tr, q: as t and q below. */
TB_FN tb_box_corners tb_box_incident(const tb_real half[3], int axis, int positive, tb_real top,
                                     const tb_real tr[3], const tb_real q[9],
                                     tb_clip_point *corners)
{
    const int u = axis == 2 ? 0 : axis + 1, v = axis == 0 ? 2 : axis - 1;
    const tb_real sign = positive ? TB_R(1) : TB_R(-1);

    /* the axis most against the normal; ties by number */
    int inc = 0;
    for (int l = 1; l < 3; l++)
        if (tb_abs(q[3 * axis + l]) > tb_abs(q[3 * axis + inc]) + TB_COLLIDE_FLAT) inc = l;
    const int inc_positive = sign * q[3 * axis + inc] < 0;
    const tb_real inc_sign = inc_positive ? TB_R(1) : TB_R(-1);
    const int iu = inc == 2 ? 0 : inc + 1, iv = inc == 0 ? 2 : inc - 1;

    const tb_real cu = tr[u] + inc_sign * half[inc] * q[3 * u + inc];
    const tb_real cv = tr[v] + inc_sign * half[inc] * q[3 * v + inc];
    const tb_real ch = sign * (tr[axis] + inc_sign * half[inc] * q[3 * axis + inc]) - top;
    const tb_real uu = half[iu] * q[3 * u + iu], uv = half[iv] * q[3 * u + iv];
    const tb_real vu = half[iu] * q[3 * v + iu], vv = half[iv] * q[3 * v + iv];
    const tb_real hu = sign * half[iu] * q[3 * axis + iu], hv = sign * half[iv] * q[3 * axis + iv];
    tb_box_corners all;
    all.most_u = all.most_v = 0;
    all.lowest = TB_REAL_MAX;
    all.face = tb_box_face_feature(inc, inc_positive);
    for (int k = 0; k < 4; k++) {
        tb_clip_point *c = &corners[k];
        const uint32_t corner = tb_box_face_corner(inc, inc_positive, k);
        const uint32_t next = tb_box_face_corner(inc, inc_positive, k == 3 ? 0 : k + 1);
        const tb_real su = (corner >> iu) & 1 ? TB_R(1) : TB_R(-1);
        const tb_real sv = (corner >> iv) & 1 ? TB_R(1) : TB_R(-1);
        c->u = cu + (su * uu + sv * uv);
        c->v = cv + (su * vu + sv * vv);
        c->height = ch + (su * hu + sv * hv);
        c->reference = tb_box_face_feature(axis, positive);
        c->incident = TB_FEATURE_VERTEX | corner;
        c->edge = tb_feature_edge(corner, next);
        c->cut = 0;
        all.most_u = tb_max(all.most_u, tb_abs(c->u));
        all.most_v = tb_max(all.most_v, tb_abs(c->v));
        all.lowest = tb_min(all.lowest, c->height);
    }
    return all;
}

/* Points of `cut` over face (axis, positive) of box r, as contacts; swapped, *least: as below. */
TB_FN int tb_box_write_contacts(const tb_posed_shape *r, int axis, int positive, tb_real top,
                                const tb_clip_point *cut, int count, int swapped, tb_real margin,
                                tb_contact_point *points, tb_real *least)
{
    const int u = axis == 2 ? 0 : axis + 1, v = axis == 0 ? 2 : axis - 1;
    const tb_real sign = positive ? TB_R(1) : TB_R(-1);
    const tb_vec3 un = tb_v3_scale(tb_m33_column(&r->pose.rotation, axis), sign);
    const tb_vec3 au = tb_m33_column(&r->pose.rotation, u);
    const tb_vec3 av = tb_m33_column(&r->pose.rotation, v);
    const tb_vec3 n = swapped ? tb_v3_negate(un) : un;
    const tb_vec3 origin = tb_v3_add_scaled(r->pose.position, un, top);
    /* more points than the manifold holds are reduced in a spare array */
    tb_contact_point spare[16], *all = count > TB_MANIFOLD_POINTS ? spare : points;
    int written = 0;
    for (int k = 0; k < count; k++) {
        const tb_clip_point *c = &cut[k];
        *least = tb_min(*least, c->height);
        if (!(c->height <= margin)) continue;
        const tb_vec3 foot = tb_v3_add_scaled(tb_v3_add_scaled(origin, au, c->u), av, c->v);
        if (swapped)
            tb_contact_set_b(&all[written++], n, foot, c->height,
                             tb_feature(c->incident, c->reference));
        else
            tb_contact_set_a(&all[written++], n, foot, c->height,
                             tb_feature(c->reference, c->incident));
    }
    if (all == points) return written;
    written = tb_manifold_reduce(all, written);
    for (int k = 0; k < written; k++) points[k] = all[k];
    return written;
}

/* Clips the face of box `i` that faces face (axis, positive) of box `r`, and writes the
 * contacts. t: centre of i minus centre of r in r's axes. q: r's axes against i's, q[3 k + l] =
 * r_k . i_l. swapped: r is shape B. Returns the number of points with gap <= margin; *least is
 * the smallest gap. */
TB_FN_LARGE int tb_box_face_contacts(const tb_posed_shape *r, const tb_posed_shape *i, int axis,
                                     int positive, tb_vec3 t, const tb_real q[9], int swapped,
                                     tb_real margin, tb_contact_point *points, tb_real *least)
{
    const tb_real hr[3] = {r->size.x, r->size.y, r->size.z};
    const tb_real hi[3] = {i->size.x, i->size.y, i->size.z};
    const tb_real tr[3] = {t.x, t.y, t.z};
    const int u = axis == 2 ? 0 : axis + 1, v = axis == 0 ? 2 : axis - 1;
    tb_clip_point buffer[2][16];
    const tb_box_corners corners = tb_box_incident(hi, axis, positive, hr[axis], tr, q, buffer[0]);
    *least = TB_REAL_MAX;
    if (!(corners.lowest <= margin)) return 0;

    /* cut by the sides of the reference face that it extends beyond */
    const tb_real slack = TB_COLLIDE_FLAT * (hr[u] + hr[v]);
    int count = 4, at = 0;
    for (int s = 0; s < 4 && count > 0; s++) {
        const int along = s >> 1, plus = s & 1;
        if (!((along ? corners.most_v : corners.most_u) > hr[along ? v : u] + slack)) continue;
        tb_clip_side side;
        side.nu = along ? TB_R(0) : (plus ? TB_R(1) : TB_R(-1));
        side.nv = along ? (plus ? TB_R(1) : TB_R(-1)) : TB_R(0);
        side.d = hr[along ? v : u];
        const uint32_t base = (uint32_t)(((positive ? 1 : 0) << axis) | (plus << (along ? v : u)));
        side.edge = tb_feature_edge(base, base | (1u << (along ? u : v)));
        count = tb_clip_by_side(buffer[at], count, &side, corners.face, slack, buffer[1 - at], 16);
        at = 1 - at;
    }
    return tb_box_write_contacts(r, axis, positive, hr[axis], buffer[at], count, swapped, margin,
                                 points, least);
}

/* Edge along axis i of A over edge along axis j of B, with the unit normal from A to B in A's
 * axes. */
TB_FN_LARGE int tb_box_edge_contact(const tb_posed_shape *a, const tb_posed_shape *b, int i, int j,
                                    tb_vec3 normal, tb_real gap, tb_vec3 t, const tb_real q[9],
                                    tb_real margin, tb_contact_point *points)
{
    const tb_real ha[3] = {a->size.x, a->size.y, a->size.z};
    const tb_real hb[3] = {b->size.x, b->size.y, b->size.z};
    const tb_real n[3] = {normal.x, normal.y, normal.z};
    const tb_real tr[3] = {t.x, t.y, t.z};

    /* middles of both edges in A's axes, and the corners at their - ends */
    tb_real pa[3], pb[3] = {tr[0], tr[1], tr[2]};
    uint32_t corner_a = 0, corner_b = 0;
    for (int k = 0; k < 3; k++) {
        pa[k] = k == i ? TB_R(0) : (n[k] > 0 ? ha[k] : -ha[k]);
        if (k != i && n[k] > 0) corner_a |= 1u << k;
    }
    for (int l = 0; l < 3; l++) {
        if (l == j) continue;
        const tb_real along = n[0] * q[l] + n[1] * q[3 + l] + n[2] * q[6 + l];
        const tb_real side = along > 0 ? -hb[l] : hb[l];
        if (!(along > 0)) corner_b |= 1u << l;
        for (int k = 0; k < 3; k++) pb[k] += side * q[3 * k + l];
    }
    /* nearest points of the two lines: pa + s e_i, pb + r (column j) */
    const tb_real cosine = q[3 * i + j];
    const tb_real d[3] = {pb[0] - pa[0], pb[1] - pa[1], pb[2] - pa[2]};
    const tb_real da = d[i], db = d[0] * q[j] + d[1] * q[3 + j] + d[2] * q[6 + j];
    const tb_real s = (da - cosine * db) / (1 - cosine * cosine);
    const tb_real r = cosine * s - db;
    const tb_real slack = TB_COLLIDE_FLAT * (ha[i] + hb[j]);
    if (tb_abs(s) > ha[i] + slack || tb_abs(r) > hb[j] + slack) return TB_COLLIDE_GENERAL;
    if (!(gap <= margin)) return 0;
    pa[i] = tb_clamp(s, -ha[i], ha[i]);
    tb_contact_set_a(points, tb_m33_mul_v3(&a->pose.rotation, normal),
                     tb_pose_point(&a->pose, tb_v3(pa[0], pa[1], pa[2])), gap,
                     tb_feature(tb_feature_edge(corner_a, corner_a | (1u << i)),
                                tb_feature_edge(corner_b, corner_b | (1u << j))));
    return 1;
}

/* The crossed edges with the largest separation: edge i of A, j of B. */
typedef struct tb_box_crossing {
    tb_real separation, length; /* m; length of the cross product of both axes */
    int i, j;
} tb_box_crossing;

/* In A's axes e_i x q_j has the two components -q_k, q_l (cyclic). q, w, t: as in tb_box_box. False
 * if an axis separates the boxes by more than the margin. */
TB_FN bool tb_box_cross_edges(const tb_real ha[3], const tb_real hb[3], const tb_real t[3],
                              const tb_real q[9], const tb_real w[9], tb_real margin, tb_real tie,
                              tb_box_crossing *best)
{
    best->separation = -TB_REAL_MAX;
    best->length = 1;
    best->i = best->j = 0;
    for (int i = 0; i < 3; i++) {
        const int k = i == 2 ? 0 : i + 1, l = i == 0 ? 2 : i - 1;
        for (int j = 0; j < 3; j++) {
            const int m = j == 2 ? 0 : j + 1, o = j == 0 ? 2 : j - 1;
            const tb_real length2 = q[3 * k + j] * q[3 * k + j] + q[3 * l + j] * q[3 * l + j];
            if (!(length2 > TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL)) continue;
            /* axis . t = t_l q_kj - t_k q_lj; extents by A's k, l and B's m, o (w of row i) */
            const tb_real s = tb_abs(t[l] * q[3 * k + j] - t[k] * q[3 * l + j]) -
                              (ha[k] * w[3 * l + j] + ha[l] * w[3 * k + j] + hb[m] * w[3 * i + o] +
                               hb[o] * w[3 * i + m]);
            if (s > 0 && s * s > length2 * margin * margin) return false;
            const tb_real length = tb_sqrt(length2);
            const tb_real separation = s / length;
            if (separation > best->separation + tie) {
                best->separation = separation;
                best->length = length;
                best->i = i;
                best->j = j;
            }
        }
    }
    return true;
}

/* The unit normal of crossed edges from A to B, in A's axes. t: centre of B minus centre of A there. q:
 * as in tb_box_box. */
TB_FN tb_vec3 tb_box_crossed_normal(const tb_box_crossing *edge, tb_vec3 t, const tb_real q[9])
{
    const int k = edge->i == 2 ? 0 : edge->i + 1, l = edge->i == 0 ? 2 : edge->i - 1;
    tb_real n[3] = {0, 0, 0};
    n[k] = -q[3 * l + edge->j] / edge->length;
    n[l] = q[3 * k + edge->j] / edge->length;
    if (n[0] * t.x + n[1] * t.y + n[2] * t.z < 0) n[k] = -n[k], n[l] = -n[l];
    return tb_v3(n[0], n[1], n[2]);
}

/* Whether overlapping boxes lie on each other with a face whose separation is `face`, although crossed
 * edges have the least depth. along: cosine between both normals. */
TB_FN bool tb_box_lies_flat(tb_real face, tb_real crossed, tb_real along)
{
    return crossed < 0 && face >= TB_COLLIDE_FACE_DEPTH * crossed &&
           tb_abs(along) >= TB_COLLIDE_FACE_LEAN;
}

/* Number of points, or TB_COLLIDE_GENERAL. */
TB_FN_LARGE int tb_box_box(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                           tb_contact_point *points, uint32_t *flags)
{
    const tb_real ha[3] = {a->size.x, a->size.y, a->size.z};
    const tb_real hb[3] = {b->size.x, b->size.y, b->size.z};
    const tb_vec3 apart = tb_v3_sub(b->pose.position, a->pose.position);
    const tb_vec3 ta = tb_m33_tmul_v3(&a->pose.rotation, apart);
    const tb_real t[3] = {ta.x, ta.y, ta.z};
    const tb_real *ma = a->pose.rotation.m, *mb = b->pose.rotation.m;
    tb_real q[9], w[9]; /* q: A's axes against B's; w: its absolute values */

    /* the axis number decides near ties, so that rounding does not change the axis */
    const tb_real tie = TB_COLLIDE_TIE * (ha[0] + ha[1] + ha[2] + hb[0] + hb[1] + hb[2]);

    /* faces of A, each with an early out */
    tb_real best_a = -TB_REAL_MAX, best_b = -TB_REAL_MAX;
    int face_a = 0, face_b = 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            q[3 * i + j] = ma[i] * mb[j] + ma[3 + i] * mb[3 + j] + ma[6 + i] * mb[6 + j];
            w[3 * i + j] = tb_abs(q[3 * i + j]);
        }
        const tb_real s =
            tb_abs(t[i]) - ha[i] - (hb[0] * w[3 * i] + hb[1] * w[3 * i + 1] + hb[2] * w[3 * i + 2]);
        if (!(s <= margin)) return 0;
        if (s > best_a + tie) best_a = s, face_a = i;
    }
    const tb_vec3 tb = tb_m33_tmul_v3(&b->pose.rotation, apart);
    const tb_real u[3] = {tb.x, tb.y, tb.z};
    for (int j = 0; j < 3; j++) {
        const tb_real s =
            tb_abs(u[j]) - hb[j] - (ha[0] * w[j] + ha[1] * w[3 + j] + ha[2] * w[6 + j]);
        if (!(s <= margin)) return 0;
        if (s > best_b + tie) best_b = s, face_b = j;
    }

    tb_box_crossing edge;
    const tb_real best_face = tb_max(best_a, best_b);
    if (!tb_box_cross_edges(ha, hb, t, q, w, margin, tie, &edge)) return 0;
    if (!(edge.separation <= margin) && edge.separation > best_face) return 0;

    const bool crossed = edge.separation > best_face + tie, on_a = best_a + tie >= best_b;
    tb_vec3 normal = ta;
    if (crossed) {
        /* side by side they touch along a stretch */
        if (edge.length < TB_COLLIDE_SIDE_BY_SIDE) return TB_COLLIDE_GENERAL;
        normal = tb_box_crossed_normal(&edge, ta, q);
        const tb_real along =
            on_a ? tb_v3_at(normal, face_a)
                 : normal.x * q[face_b] + normal.y * q[3 + face_b] + normal.z * q[6 + face_b];
        if (!tb_box_lies_flat(best_face, edge.separation, along))
            return tb_box_edge_contact(a, b, edge.i, edge.j, normal, edge.separation, ta, q, margin,
                                       points);
    }
    int count;
    tb_real least = 0;
    if (on_a) {
        count = tb_box_face_contacts(a, b, face_a, t[face_a] > 0, ta, q, 0, margin, points, &least);
    } else {
        tb_real p[9];
        for (int i = 0; i < 9; i++) p[i] = q[3 * (i % 3) + i / 3];
        count = tb_box_face_contacts(b, a, face_b, u[face_b] < 0, tb_v3_negate(tb), p, 1, margin,
                                     points, &least);
    }
    if (crossed && !(least <= TB_COLLIDE_FACE_REACH * edge.separation))
        return tb_box_edge_contact(a, b, edge.i, edge.j, normal, edge.separation, ta, q, margin,
                                   points);
    /* the axis gives the distance only if a point of the overlap has that gap */
    if (!crossed && least > (on_a ? best_a : best_b) + 4 * tie) return TB_COLLIDE_GENERAL;
    if (ta.x == 0 && ta.y == 0 && ta.z == 0) *flags |= TB_CONTACT_DEGENERATE;
    return count;
}

#endif
