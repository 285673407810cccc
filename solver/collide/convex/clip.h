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

/* distance of a corner outside of a side, negative inside */
TB_FN tb_real tb_clip_outside(const tb_clip_side *side, const tb_clip_point *p)
{
    return side->nu * p->u + side->nv * p->v - side->d;
}

/* The corner where a side cuts the polygon between its corners p and q, which lie dp and dq outside
 * of it, one of them within the slack. face: feature of the incident face. */
TB_FN_LARGE void tb_clip_cross(const tb_clip_point *p, const tb_clip_point *q, tb_real dp,
                               tb_real dq, int p_in, const tb_clip_side *side, uint32_t face,
                               tb_clip_point *c)
{
    /* computed from the inner end so that both directions agree */
    const tb_clip_point *in = p_in ? p : q, *out = p_in ? q : p;
    const tb_real d_in = p_in ? dp : dq, d_out = p_in ? dq : dp;
    const tb_real f = tb_clamp(d_in / (d_in - d_out), 0, 1);
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
}

/* Cuts a polygon of few corners by one side; `from` and `to` are different buffers, `to` of
 * `capacity` points. Returns the new count. face: feature of the incident face.
 * slack: points outside by up to this count as inside. */
TB_FN_LARGE int tb_clip_by_side(const tb_clip_point *from, int count, const tb_clip_side *side,
                                uint32_t face, tb_real slack, tb_clip_point *to, int capacity)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        const tb_clip_point *p = &from[i], *q = &from[i + 1 < count ? i + 1 : 0];
        const tb_real dp = tb_clip_outside(side, p), dq = tb_clip_outside(side, q);
        const int p_in = dp <= slack, q_in = dq <= slack;
        if (p_in && n < capacity) to[n++] = *p;
        if (p_in == q_in || n >= capacity) continue;
        tb_clip_cross(p, q, dp, dq, p_in, side, face, &to[n++]);
    }
    return n;
}

/* A polygon of many corners as a ring of places. A side changes only the corners that it cuts off
 * and its two new ones, where a copy of the whole polygon costs more than all tests of corners. */
enum { TB_CLIP_PLACES = TB_CLIP_POINTS + 2, TB_CLIP_NO_PLACE = 255 };
typedef struct tb_clip_ring {
    tb_clip_point points[TB_CLIP_PLACES];
    uint8_t next[TB_CLIP_PLACES];   /* places with a corner: place of the next corner */
    uint8_t unused[TB_CLIP_PLACES]; /* the first number_unused: free places */
    int first;                      /* place of the first corner */
    int count, number_unused;
} tb_clip_ring;

/* Makes a ring of the corners at the first `count` places. */
TB_FN void tb_clip_ring_close(tb_clip_ring *r, int count)
{
    r->first = 0;
    r->count = count;
    r->number_unused = TB_CLIP_PLACES - count;
    for (int k = 0; k < count; k++) r->next[k] = (uint8_t)(k + 1 < count ? k + 1 : 0);
    for (int k = 0; k < r->number_unused; k++) r->unused[k] = (uint8_t)(TB_CLIP_PLACES - 1 - k);
}

/* Cuts a ring by one side, as tb_clip_by_side does: the same corners in the same order. Most corners
 * stay, and their links with them. */
TB_FN_LARGE void tb_clip_ring_cut(tb_clip_ring *r, const tb_clip_side *side, uint32_t face,
                                  tb_real slack)
{
    if (r->count == 0) return;
    const int start = r->first;
    const tb_real d_start = tb_clip_outside(side, &r->points[start]);
    tb_real dp = d_start;
    int p = start, first = -1, last = -1, dropped = TB_CLIP_NO_PLACE, count = 0;
    for (int left = r->count; left > 0; left--) {
        const int q = left > 1 ? r->next[p] : start;
        const tb_real dq = left > 1 ? tb_clip_outside(side, &r->points[q]) : d_start;
        const int p_in = dp <= slack, q_in = dq <= slack;
        if (p_in) {
            if (first < 0) first = p;
            last = p;
            count++;
        } else { /* the place is free once the last corner has met the first */
            r->next[p] = (uint8_t)dropped;
            dropped = p;
        }
        if (p_in != q_in) {
            const int place = r->number_unused > 0 ? r->unused[--r->number_unused] : -1;
            if (place >= 0) {
                tb_clip_cross(&r->points[p], &r->points[q], dp, dq, p_in, side, face,
                              &r->points[place]);
                if (first < 0) first = place;
                if (last >= 0) r->next[last] = (uint8_t)place;
                last = place;
                count++;
            }
            if (q_in && last >= 0) r->next[last] = (uint8_t)q;
        }
        p = q;
        dp = dq;
    }
    while (dropped != TB_CLIP_NO_PLACE) {
        r->unused[r->number_unused++] = (uint8_t)dropped;
        dropped = r->next[dropped];
    }
    if (last >= 0) r->next[last] = (uint8_t)first;
    r->first = first;
    r->count = count;
}

#endif
