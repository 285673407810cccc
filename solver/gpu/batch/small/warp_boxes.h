/* Box against box by eight lanes, or by four where there are many pairs: the face contacts of
 * collide/convex/box_box.h without branches and without arrays that are indexed, which a card would keep in
 * memory. The corners of the overlap of two rectangles are 24 candidates, three or six a lane: four
 * corners of the incident face, four corners of the reference face, sixteen crossings of the one's edges
 * with the other's sides. Their order does not depend on the number of lanes. A point has the feature
 * that clipping gives it. Edge over edge, and features that do not lie over each other, are
 * the general method's. */
#ifndef TB_GPU_WARP_BOXES_H
#define TB_GPU_WARP_BOXES_H

#include "collide/convex/box_box.h"

enum {
    WARP_BOX_LANES = 8, /* of a pair */
    WARP_BOX_LANES_OF_MANY = 4,
    WARP_BOX_CANDIDATES = 24,
    WARP_BOX_CORNERS = 8
};

TB_FN tb_real pick(int i, tb_real a, tb_real b, tb_real c)
{
    return i == 0 ? a : (i == 1 ? b : c);
}

TB_FN int next_axis(int axis)
{
    return axis == 2 ? 0 : axis + 1;
}

/* The reference face and the incident face in its frame: height along the normal, u and v along the
 * face. */
typedef struct box_faces {
    tb_real half_u, half_v;         /* m, of the reference face */
    tb_real u, v, height;           /* the incident face's centre over the reference face */
    tb_real uu, uv, vu, vv, hu, hv; /* its half edges */
    tb_vec3 origin, normal, along_u, along_v; /* of the reference face, world; the normal outward */
    tb_real separation, tie;
    int axis, incident;
    bool positive, incident_positive; /* sides of both faces */
    bool swapped;                     /* the reference box is B */
    bool near;                        /* the faces may be within the margin */
    bool general;                     /* the general method decides */
} box_faces;

/* Separation along the axis of two crossed edges. */
TB_TEAM_FN tb_real edge_separation(const tb_real *q, const tb_vec3 *t, const tb_posed_shape *a,
                                   const tb_posed_shape *b, int e)
{
    const int i = e / 3, j = e - 3 * i, k = next_axis(i), l = next_axis(k);
    const tb_real qi =
        pick(i, pick(j, q[0], q[1], q[2]), pick(j, q[3], q[4], q[5]), pick(j, q[6], q[7], q[8]));
    const tb_real qk =
        pick(k, pick(j, q[0], q[1], q[2]), pick(j, q[3], q[4], q[5]), pick(j, q[6], q[7], q[8]));
    const tb_real ql =
        pick(l, pick(j, q[0], q[1], q[2]), pick(j, q[3], q[4], q[5]), pick(j, q[6], q[7], q[8]));
    const int m = next_axis(j), o = next_axis(m);
    const tb_real wm = tb_abs(
        pick(i, pick(m, q[0], q[1], q[2]), pick(m, q[3], q[4], q[5]), pick(m, q[6], q[7], q[8])));
    const tb_real wo = tb_abs(
        pick(i, pick(o, q[0], q[1], q[2]), pick(o, q[3], q[4], q[5]), pick(o, q[6], q[7], q[8])));
    (void)qi;
    const tb_real length2 = qk * qk + ql * ql;
    const tb_real s = tb_abs(tb_v3_at(*t, l) * qk - tb_v3_at(*t, k) * ql) -
                      (tb_v3_at(a->size, k) * tb_abs(ql) + tb_v3_at(a->size, l) * tb_abs(qk) +
                       tb_v3_at(b->size, m) * wo + tb_v3_at(b->size, o) * wm);
    if (!(length2 > TB_COLLIDE_PARALLEL * TB_COLLIDE_PARALLEL)) return -TB_REAL_MAX;
    return s / tb_sqrt(length2);
}

/* Whether a face of either box alone shows that they are farther apart than the margin, with the
 * arithmetic of find_faces. */
TB_FN bool warp_boxes_apart(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin)
{
    const tb_real *ma = a->pose.rotation.m, *mb = b->pose.rotation.m;
    const tb_vec3 apart = tb_v3_sub(b->pose.position, a->pose.position);
    const tb_vec3 t = tb_m33_tmul_v3(&a->pose.rotation, apart);
    const tb_vec3 u = tb_m33_tmul_v3(&b->pose.rotation, apart);
    tb_real along_b[3] = {0, 0, 0}, most = -TB_REAL_MAX;
    for (int i = 0; i < 3; i++) {
        tb_real along = 0;
        for (int j = 0; j < 3; j++) {
            const tb_real q = tb_abs(ma[i] * mb[j] + ma[3 + i] * mb[3 + j] + ma[6 + i] * mb[6 + j]);
            along += tb_v3_at(b->size, j) * q;
            along_b[j] += tb_v3_at(a->size, i) * q;
        }
        most = tb_max(most, tb_abs(tb_v3_at(t, i)) - tb_v3_at(a->size, i) - along);
    }
    for (int j = 0; j < 3; j++)
        most = tb_max(most, tb_abs(tb_v3_at(u, j)) - tb_v3_at(b->size, j) - along_b[j]);
    return most > margin;
}

/* Which faces meet, by the fifteen axes. */
TB_TEAM_FN box_faces find_faces(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                int32_t own, int32_t lanes)
{
    box_faces f;
    const tb_real *ma = a->pose.rotation.m, *mb = b->pose.rotation.m;
    const tb_vec3 apart = tb_v3_sub(b->pose.position, a->pose.position);
    const tb_vec3 t = tb_m33_tmul_v3(&a->pose.rotation, apart);
    const tb_vec3 u = tb_m33_tmul_v3(&b->pose.rotation, apart);
    tb_real q[9];
    f.tie =
        TB_COLLIDE_TIE * (a->size.x + a->size.y + a->size.z + b->size.x + b->size.y + b->size.z);
    tb_real best_a = -TB_REAL_MAX, best_b = -TB_REAL_MAX;
    int face_a = 0, face_b = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            q[3 * i + j] = ma[i] * mb[j] + ma[3 + i] * mb[3 + j] + ma[6 + i] * mb[6 + j];
    for (int i = 0; i < 3; i++) {
        const tb_real s = tb_abs(tb_v3_at(t, i)) - tb_v3_at(a->size, i) -
                          (b->size.x * tb_abs(q[3 * i]) + b->size.y * tb_abs(q[3 * i + 1]) +
                           b->size.z * tb_abs(q[3 * i + 2]));
        if (s > best_a + f.tie) best_a = s, face_a = i;
    }
    for (int j = 0; j < 3; j++) {
        const tb_real s = tb_abs(tb_v3_at(u, j)) - tb_v3_at(b->size, j) -
                          (a->size.x * tb_abs(q[j]) + a->size.y * tb_abs(q[3 + j]) +
                           a->size.z * tb_abs(q[6 + j]));
        if (s > best_b + f.tie) best_b = s, face_b = j;
    }
    const tb_real best_face = tb_max(best_a, best_b);
    f.near = best_face <= margin;
    tb_real best_edge = -TB_REAL_MAX;
    TB_ROLLED
    for (int e = own; e < 9; e += lanes)
        best_edge = tb_max(best_edge, edge_separation(q, &t, a, b, e));
    TB_ROLLED
    for (int32_t step = lanes / 2; step > 0; step /= 2)
        best_edge = tb_max(best_edge, tb_team_take_real(best_edge, tb_team_lane() ^ step));
    f.near = f.near && best_edge <= margin;
    const bool same_centre = apart.x == 0 && apart.y == 0 && apart.z == 0;
    f.general = f.near && (best_edge > best_face + f.tie || same_centre);

    /* from the reference box */
    f.swapped = !(best_a + f.tie >= best_b);
    f.separation = f.swapped ? best_b : best_a;
    const int axis = f.axis = f.swapped ? face_b : face_a;
    const int iu = next_axis(axis), iv = next_axis(iu);
    const tb_posed_shape *r = f.swapped ? b : a;
    const tb_vec3 way = f.swapped ? tb_v3_negate(u) : t;
    const tb_vec3 hi = f.swapped ? a->size : b->size;
    tb_real c[9]; /* reference axes against incident ones */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) c[3 * i + j] = f.swapped ? q[3 * j + i] : q[3 * i + j];
#define ROW(i, j) pick(i, c[j], c[3 + (j)], c[6 + (j)])
    const tb_real n0 = ROW(axis, 0), n1 = ROW(axis, 1), n2 = ROW(axis, 2);
    const tb_real u0 = ROW(iu, 0), u1 = ROW(iu, 1), u2 = ROW(iu, 2);
    const tb_real v0 = ROW(iv, 0), v1 = ROW(iv, 1), v2 = ROW(iv, 2);
#undef ROW
    f.positive = tb_v3_at(way, axis) > 0;
    const tb_real sign = f.positive ? TB_R(1) : TB_R(-1);
    int incident = tb_abs(n1) > tb_abs(n0) + TB_COLLIDE_FLAT ? 1 : 0;
    if (tb_abs(n2) > pick(incident, tb_abs(n0), tb_abs(n1), 0) + TB_COLLIDE_FLAT) incident = 2;
    const int ju = next_axis(incident), jv = next_axis(ju);
    f.incident = incident;
    f.incident_positive = sign * pick(incident, n0, n1, n2) < 0;
    const tb_real side = f.incident_positive ? TB_R(1) : TB_R(-1);
    const tb_real half = tb_v3_at(hi, incident) * side;
    const tb_real half_ju = tb_v3_at(hi, ju), half_jv = tb_v3_at(hi, jv);
    f.half_u = tb_v3_at(r->size, iu);
    f.half_v = tb_v3_at(r->size, iv);
    f.u = tb_v3_at(way, iu) + half * pick(incident, u0, u1, u2);
    f.v = tb_v3_at(way, iv) + half * pick(incident, v0, v1, v2);
    f.height =
        sign * (tb_v3_at(way, axis) + half * pick(incident, n0, n1, n2)) - tb_v3_at(r->size, axis);
    f.uu = half_ju * pick(ju, u0, u1, u2), f.uv = half_jv * pick(jv, u0, u1, u2);
    f.vu = half_ju * pick(ju, v0, v1, v2), f.vv = half_jv * pick(jv, v0, v1, v2);
    f.hu = sign * half_ju * pick(ju, n0, n1, n2);
    f.hv = sign * half_jv * pick(jv, n0, n1, n2);
    const tb_real *m = r->pose.rotation.m;
    f.normal = tb_v3(sign * pick(axis, m[0], m[1], m[2]), sign * pick(axis, m[3], m[4], m[5]),
                     sign * pick(axis, m[6], m[7], m[8]));
    f.along_u =
        tb_v3(pick(iu, m[0], m[1], m[2]), pick(iu, m[3], m[4], m[5]), pick(iu, m[6], m[7], m[8]));
    f.along_v =
        tb_v3(pick(iv, m[0], m[1], m[2]), pick(iv, m[3], m[4], m[5]), pick(iv, m[6], m[7], m[8]));
    f.origin = tb_v3_add_scaled(r->pose.position, f.normal, tb_v3_at(r->size, axis));
    return f;
}

/* A corner of the incident face over the reference face, and the sides of that which it lies beyond. */
typedef struct box_corner {
    tb_real u, v, height;
    uint32_t vertex, beyond;
} box_corner;

/* A candidate: a point over the reference face, and whether the overlap has it. */
typedef struct box_candidate {
    tb_real u, v, height;
    uint32_t reference, incident;
    bool is;
} box_candidate;

/* The k-th corner of the incident face. */
TB_FN box_corner incident_corner(const box_faces *f, tb_real slack, int k)
{
    box_corner c;
    c.vertex = tb_box_face_corner(f->incident, f->incident_positive, k);
    const int ju = next_axis(f->incident), jv = next_axis(ju);
    const tb_real su = (c.vertex >> ju) & 1 ? TB_R(1) : TB_R(-1);
    const tb_real sv = (c.vertex >> jv) & 1 ? TB_R(1) : TB_R(-1);
    c.u = f->u + (su * f->uu + sv * f->uv);
    c.v = f->v + (su * f->vu + sv * f->vv);
    c.height = f->height + (su * f->hu + sv * f->hv);
    c.beyond = (uint32_t)(c.u > f->half_u + slack) | (uint32_t)(-c.u > f->half_u + slack) << 1 |
               (uint32_t)(c.v > f->half_v + slack) << 2 | (uint32_t)(-c.v > f->half_v + slack) << 3;
    return c;
}

/* The corner that another lane of the pair holds. */
TB_TEAM_FN box_corner take_corner(const box_corner *own, int32_t from)
{
    enum { BEYOND = 8 }; /* vertices are below */
    box_corner c;
    c.u = tb_team_take_real(own->u, from);
    c.v = tb_team_take_real(own->v, from);
    c.height = tb_team_take_real(own->height, from);
    const uint32_t both =
        (uint32_t)tb_team_take_real(TB_R(own->vertex + BEYOND * own->beyond), from);
    c.vertex = both % BEYOND;
    c.beyond = both / BEYOND;
    return c;
}

/* Vertex of the reference box on its face, at signs of u and v. */
TB_FN uint32_t reference_corner(const box_faces *f, int plus_u, int plus_v)
{
    const int iu = next_axis(f->axis), iv = next_axis(iu);
    return (uint32_t)((f->positive ? 1 : 0) << f->axis | plus_u << iu | plus_v << iv);
}

/* Corners: the first four those of the incident face, the others those of the reference face. */
TB_FN box_candidate corner_candidate(const box_faces *f, const box_corner *corner, int k)
{
    box_candidate c;
    const int plus_u = k & 1, plus_v = (k >> 1) & 1;
    const bool incident = k < 4;
    const tb_real det = f->uu * f->vv - f->uv * f->vu;
    const tb_real u = plus_u ? f->half_u : -f->half_u, v = plus_v ? f->half_v : -f->half_v;
    const tb_real x = u - f->u, y = v - f->v, flat = TB_COLLIDE_NOISE * f->half_u * f->half_v;
    const tb_real inverse = tb_abs(det) > flat ? 1 / det : TB_R(0);
    const tb_real a = (x * f->vv - y * f->uv) * inverse, b = (f->uu * y - f->vu * x) * inverse;
    c.u = incident ? corner->u : u;
    c.v = incident ? corner->v : v;
    c.height = incident ? corner->height : f->height + a * f->hu + b * f->hv;
    c.reference = incident ? tb_box_face_feature(f->axis, f->positive)
                           : TB_FEATURE_VERTEX | reference_corner(f, plus_u, plus_v);
    c.incident = incident ? TB_FEATURE_VERTEX | corner->vertex
                          : tb_box_face_feature(f->incident, f->incident_positive);
    c.is = incident ? corner->beyond == 0 : inverse != 0 && tb_abs(a) < 1 && tb_abs(b) < 1;
    return c;
}

/* Where an edge of the incident face, between two of its corners, crosses side s of the reference
 * face. */
TB_FN box_candidate edge_candidate(const box_faces *f, tb_real slack, const box_corner *from,
                                   const box_corner *to, int s)
{
    box_candidate c;
    const int along = s >> 1, plus = !(s & 1); /* side s is bit s of `beyond` */
    const tb_real d = (along ? f->half_v : f->half_u);
    const tb_real sign = plus ? TB_R(1) : TB_R(-1);
    const tb_real d0 = sign * (along ? from->v : from->u) - d;
    const tb_real d1 = sign * (along ? to->v : to->u) - d;

    /* from the inner end, like clipping */
    const bool in0 = !(from->beyond >> s & 1), in1 = !(to->beyond >> s & 1);
    const tb_real din = in0 ? d0 : d1, dout = in0 ? d1 : d0, gap = din - dout;
    const tb_real x = tb_clamp(gap != 0 ? din / gap : TB_R(0), 0, 1);
    const tb_real u = in0 ? from->u : to->u, v = in0 ? from->v : to->v;
    const tb_real height = in0 ? from->height : to->height;
    c.u = u + x * ((in0 ? to->u : from->u) - u);
    c.v = v + x * ((in0 ? to->v : from->v) - v);
    c.height = height + x * ((in0 ? to->height : from->height) - height);
    c.is =
        in0 != in1 && (along ? tb_abs(c.u) <= f->half_u + slack : tb_abs(c.v) <= f->half_v + slack);
    const uint32_t base = along ? reference_corner(f, 0, plus) : reference_corner(f, plus, 0);
    const uint32_t end = along ? reference_corner(f, 1, plus) : reference_corner(f, plus, 1);
    c.reference = tb_feature_edge(base, end);
    c.incident = tb_feature_edge(from->vertex, to->vertex);
    return c;
}

/* Which of the pair's lanes say so. */
TB_TEAM_FN uint32_t box_ballot(bool own, int32_t lanes)
{
    return tb_team_ballot(own) >> (tb_team_lane() & ~(lanes - 1)) & ((1u << lanes) - 1);
}

/* Writes a point where the candidate is one, behind those that are there; returns their number. */
TB_TEAM_FN int put_candidate(const box_faces *f, const box_candidate *c, tb_real margin,
                             int32_t own, int32_t lanes, int count, tb_contact_point *points)
{
    const bool is = f->near && !f->general && c->is && c->height <= margin;
    const uint32_t bits = box_ballot(is, lanes);
    const int at = count + tb_count_bits(bits & ((1u << own) - 1));
    if (is && at < TB_MANIFOLD_POINTS) {
        const tb_vec3 foot =
            tb_v3_add_scaled(tb_v3_add_scaled(f->origin, f->along_u, c->u), f->along_v, c->v);
        if (f->swapped)
            tb_contact_set_b(&points[at], tb_v3_negate(f->normal), foot, c->height,
                             tb_feature(c->incident, c->reference));
        else
            tb_contact_set_a(&points[at], f->normal, foot, c->height,
                             tb_feature(c->reference, c->incident));
    }
    return count + tb_count_bits(bits);
}

/* Contact points of two boxes by `lanes` lanes, all of which call it, with pairs or without (`is`).
 * WARP_BOX_GENERAL: the general method decides. Returns the number of points. */
enum { WARP_BOX_GENERAL = -1 };

TB_TEAM_FN int warp_box_box(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                            bool is, int32_t lanes, tb_contact_point *points)
{
    const int32_t own = tb_team_lane() & (lanes - 1), first = tb_team_lane() - own;
    box_faces f = find_faces(a, b, margin, own, lanes);
    f.near = f.near && is;
    const tb_real slack = TB_COLLIDE_FLAT * (f.half_u + f.half_v);
    const box_corner corner = incident_corner(&f, slack, own & 3);
    tb_real least = TB_REAL_MAX;
    int count = 0;
    TB_ROLLED
    for (int turn = 0; turn < WARP_BOX_CANDIDATES; turn += lanes) {
        box_candidate c;
        if (turn < WARP_BOX_CORNERS) {
            c = corner_candidate(&f, &corner, turn + own);
        } else {
            const int edge = (turn - WARP_BOX_CORNERS + own) >> 2;
            const box_corner from = take_corner(&corner, first + edge);
            const box_corner to = take_corner(&corner, first + ((edge + 1) & 3));
            c = edge_candidate(&f, slack, &from, &to, own & 3);
        }
        least = c.is ? tb_min(least, c.height) : least;
        count = put_candidate(&f, &c, margin, own, lanes, count, points);
    }
    TB_ROLLED
    for (int32_t step = lanes / 2; step > 0; step /= 2)
        least = tb_min(least, tb_team_take_real(least, tb_team_lane() ^ step));
    if (!f.near) return 0;
    if (f.general || least > f.separation + 4 * f.tie || count > TB_MANIFOLD_POINTS)
        return WARP_BOX_GENERAL;
    return count;
}

#endif
