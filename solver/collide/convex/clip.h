/* Clipping of two faces: the overlap of two convex polygons, one of each shape.
 *
 * The reference face gives the contact normal. The incident face of the other shape is projected
 * along it and cut by the sides of the reference face (Sutherland and Hodgman, Reentrant Polygon
 * Clipping, CACM 1974). Kept corners retain their exact height over the reference face; new
 * corners carry the ids of the features that cross there. */
#ifndef TB_COLLIDE_CLIP_H
#define TB_COLLIDE_CLIP_H

#include "collide/manifold.h"

enum { TB_CLIP_FACE = 64, TB_CLIP_POINTS = 2 * TB_CLIP_FACE };

/* A corner over the reference face: u, v along it, height over it. */
typedef struct tb_clip_point {
    tb_real u, v, height;
    uint32_t reference, incident; /* features of both shapes */
    uint32_t edge;                /* the incident edge that leaves this corner; 0: a cut */
    uint32_t cut;                 /* if a cut: the reference edge along which it runs */
} tb_clip_point;

/* A side of the reference face: inside is nu u + nv v <= d. */
typedef struct tb_clip_side {
    tb_real nu, nv, d;
    uint32_t edge; /* its feature */
} tb_clip_side;

/* feature where two cuts along reference edges meet: their common vertex, else the pair of edges */
TB_FN uint32_t tb_clip_corner(uint32_t edge_a, uint32_t edge_b)
{
    const uint32_t a0 = edge_a & 0x7FFFu, a1 = (edge_a >> 15) & 0x7FFFu;
    const uint32_t b0 = edge_b & 0x7FFFu, b1 = (edge_b >> 15) & 0x7FFFu;
    if (a0 == b0 || a0 == b1) return TB_FEATURE_VERTEX | a0;
    if (a1 == b0 || a1 == b1) return TB_FEATURE_VERTEX | a1;
    return (edge_a ^ (edge_b << 7)) | TB_FEATURE_EDGE;
}

/* Cuts a polygon by one side; `from` and `to` are different buffers, `to` of `capacity` points.
 * Returns the new count. face: feature of the incident face.
 * slack: points outside by up to this count as inside. */
TB_FN_LARGE int tb_clip_by_side(const tb_clip_point *from, int count, const tb_clip_side *side,
                                uint32_t face, tb_real slack, tb_clip_point *to, int capacity)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        const tb_clip_point *p = &from[i], *q = &from[i + 1 < count ? i + 1 : 0];
        const tb_real dp = side->nu * p->u + side->nv * p->v - side->d;
        const tb_real dq = side->nu * q->u + side->nv * q->v - side->d;
        const int p_in = dp <= slack, q_in = dq <= slack;
        if (p_in && n < capacity) to[n++] = *p;
        if (p_in == q_in || n >= capacity) continue;

        /* the crossing, computed from the inner end so that both directions agree */
        const tb_clip_point *in = p_in ? p : q, *out = p_in ? q : p;
        const tb_real d_in = p_in ? dp : dq, d_out = p_in ? dq : dp;
        const tb_real f = tb_clamp(d_in / (d_in - d_out), 0, 1);
        tb_clip_point *c = &to[n];
        c->u = in->u + f * (out->u - in->u);
        c->v = in->v + f * (out->v - in->v);
        c->height = in->height + f * (out->height - in->height);
        if (p->edge) {
            c->reference = side->edge;
            c->incident = p->edge;
        } else {
            c->reference = tb_clip_corner(p->cut, side->edge);
            c->incident = face;
        }
        /* leaving: from here along the side; entering: on along the old edge */
        c->edge = p_in ? 0 : p->edge;
        c->cut = p_in ? side->edge : p->cut;
        n++;
    }
    return n;
}

#endif
