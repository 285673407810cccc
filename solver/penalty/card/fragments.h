/* Overlaps of two solids from fragments, which are pairs of convex pieces clipped by each other: shared by
 * processor and card (overlap.c says how they make the overlap).
 *
 * Fragments lie in arrays of the caller, their vertices and the faces on inner planes in others; an order
 * of sums is part of the result, and it is the order of the fragments. */
#ifndef TB_FRAGMENTS_H
#define TB_FRAGMENTS_H

#include "penalty/card/body_law.h"
#include "penalty/convex_clip.h"
#include "penalty/overlap.h"

/* A pair of solids; the pieces of `moved` are cut by the planes of `fixed`, in fixed's frame. */
typedef struct tb_solids_meeting {
    const tb_solid *moved, *fixed;
    tb_pose relative, home; /* moved to fixed, fixed to world */
    bool swapped;           /* moved is B */
} tb_solids_meeting;

/* The solid with planes alone stays, else the one with fewer pieces moves. */
TB_FN tb_solids_meeting tb_meet_solids(const tb_solid *a, const tb_pose *pose_a, const tb_solid *b,
                                       const tb_pose *pose_b)
{
    tb_solids_meeting m;
    m.swapped = a->half_space || (!b->half_space && b->number_of_pieces < a->number_of_pieces);
    m.moved = m.swapped ? b : a;
    m.fixed = m.swapped ? a : b;
    m.home = m.swapped ? *pose_a : *pose_b;
    m.relative = m.swapped ? tb_pose_relative(pose_a, pose_b) : tb_pose_relative(pose_b, pose_a);
    return m;
}

/* Whether two boxes, by their corners, share a point. */
TB_FN bool tb_corners_meet(const double lower_a[3], const double upper_a[3],
                           const double lower_b[3], const double upper_b[3])
{
    for (int i = 0; i < 3; i++)
        if (lower_a[i] > upper_b[i] || lower_b[i] > upper_a[i]) return false;
    return true;
}

/* ---- fragments ---- */

/* Faces that a clip of two solids' pieces has at most. */
TB_FN int32_t tb_meeting_faces(const tb_solid *a, const tb_solid *b)
{
    return a->most_faces + b->most_faces + 4;
}

/* Cuts a piece of `moved` by the planes of one of `fixed`. False if nothing is left, or if there was no
 * room (c->overflow). */
TB_FN bool tb_clip_pieces(const tb_solids_meeting *m, const tb_piece *moved, const tb_piece *fixed,
                          tb_clip *c)
{
    const tb_solid *s = m->moved;
    for (int32_t v = 0; v < moved->number_of_vertices; v++)
        c->vertices[v] =
            tb_pose_point(&m->relative, tb_v3_load(s->vertices + 3 * (size_t)(moved->vertex + v)));
    const int32_t *starts = s->loop_starts + moved->face, first = starts[0];
    for (int32_t f = 0; f < moved->number_of_faces; f++) {
        c->starts[f] = starts[f] - first;
        c->tags[f] = f;
    }
    const int32_t loops = starts[moved->number_of_faces] - first;
    c->starts[moved->number_of_faces] = loops;
    for (int32_t i = 0; i < loops; i++) c->loops[i] = s->loops[first + i];
    c->number_of_vertices = moved->number_of_vertices;
    c->number_of_faces = moved->number_of_faces;
    for (int32_t k = 0; k < fixed->number_of_faces; k++) {
        const double *p = m->fixed->planes + 4 * (size_t)(fixed->face + k);
        if (!tb_clip_cut(c, tb_v3_load(p), p[3], -1 - k)) return false;
    }
    return true;
}

/* The inner plane of a face of the clipped polyhedron, 0 for surface; *solid: 0: A's, 1: B's. */
TB_FN int32_t tb_meeting_seam(const tb_solids_meeting *m, const tb_piece *moved,
                              const tb_piece *fixed, int32_t tag, int32_t *solid)
{
    *solid = (tag < 0) != m->swapped;
    return tag < 0 ? m->fixed->cuts[fixed->face - tag - 1] : m->moved->cuts[moved->face + tag];
}

/* Volume and moments of a clipped pair in the world. False without volume. */
TB_FN bool tb_measure_fragment(const tb_solids_meeting *m, const tb_clip *c, tb_fragment *g)
{
    const tb_clip_moments moments = tb_clip_measure(c);
    if (!(moments.volume > 0)) return false;
    g->volume = moments.volume;
    g->first = tb_v3_add(tb_m33_mul_v3(&m->home.rotation, moments.first),
                         tb_v3_scale(m->home.position, moments.volume));
    g->area = tb_m33_mul_v3(&m->home.rotation, moments.cut_area);
    if (m->swapped) g->area = tb_v3_negate(g->area); /* the whole surface sums to zero */
    return true;
}

/* ---- parts ---- */

TB_FN int32_t tb_fragment_root(tb_fragment *fragments, int32_t i)
{
    while (fragments[i].part != i) i = fragments[i].part = fragments[fragments[i].part].part;
    return i;
}

/* Whether two convex polygons of one plane share area: no edge of either separates them. */
TB_FN bool tb_share_area(const tb_vec3 *a, int32_t na, const tb_vec3 *b, int32_t nb)
{
    for (int turn = 0; turn < 2; turn++) {
        tb_vec3 normal = tb_v3(0, 0, 0);
        for (int32_t i = 1; i + 1 < na; i++)
            normal =
                tb_v3_add(normal, tb_v3_cross(tb_v3_sub(a[i], a[0]), tb_v3_sub(a[i + 1], a[0])));
        for (int32_t i = 0; i < na; i++) {
            const tb_vec3 e = tb_v3_sub(a[i + 1 == na ? 0 : i + 1], a[i]);
            const tb_vec3 inward = tb_v3_cross(normal, e);
            double inside = 0;
            for (int32_t k = 0; k < nb; k++)
                inside = tb_max(inside, tb_v3_dot(inward, tb_v3_sub(b[k], a[i])));
            /* the share of rounding in a product of lengths */
            if (tb_v3_length2(e) > 0 && inside <= 1e-12 * tb_v3_length2(normal)) return false;
        }
        const tb_vec3 *other = a;
        const int32_t count = na;
        a = b, na = nb, b = other, nb = count;
    }
    return true;
}

/* Joins two fragments if faces of them on one inner plane, from its two sides, share area. */
TB_FN void tb_join_pair(tb_fragment *fragments, int32_t i, int32_t k, const tb_seam *a,
                        const tb_seam *b, const tb_vec3 *vertices)
{
    if (b->cut != -a->cut || b->solid != a->solid) return;
    const int32_t x = tb_fragment_root(fragments, i), y = tb_fragment_root(fragments, k);
    if (x == y || !tb_share_area(vertices + a->vertex, a->number_of_vertices, vertices + b->vertex,
                                 b->number_of_vertices))
        return;
    fragments[x > y ? x : y].part = x > y ? y : x;
}

/* Fragments that share area on an inner plane become one part, whose root is its first fragment. */
TB_FN void tb_join_fragments(tb_fragment *fragments, int32_t count, const tb_seam *seams,
                             const tb_vec3 *vertices)
{
    for (int32_t i = 0; i < count; i++)
        for (int32_t s = 0; s < fragments[i].number_of_seams; s++) {
            const tb_seam *a = &seams[fragments[i].seam + s];
            if (a->cut < 0) continue;
            for (int32_t k = 0; k < count; k++)
                for (int32_t j = 0; j < fragments[k].number_of_seams; j++)
                    tb_join_pair(fragments, i, k, a, &seams[fragments[k].seam + j], vertices);
        }
}

/* Every fragment names the root of its part. */
TB_FN void tb_settle_roots(tb_fragment *fragments, int32_t count)
{
    for (int32_t i = 0; i < count; i++) fragments[i].part = tb_fragment_root(fragments, i);
}

/* (6.4): extent of the part's vertices along its normal. */
TB_FN double tb_part_depth(const tb_fragment *fragments, int32_t count, int32_t root,
                           const tb_vec3 *vertices, tb_vec3 area)
{
    const tb_vec3 normal = tb_v3_normalize(area, tb_v3(0, 0, 0));
    double lowest = TB_REAL_MAX, highest = -TB_REAL_MAX;
    for (int32_t i = root; i < count; i++) {
        const tb_fragment *g = &fragments[i];
        if (g->part != root) continue;
        for (int32_t v = g->vertex; v < g->vertex + g->number_of_vertices; v++) {
            const double x = tb_v3_dot(normal, vertices[v]);
            lowest = tb_min(lowest, x);
            highest = tb_max(highest, x);
        }
    }
    return highest > lowest ? highest - lowest : 0;
}

/* The part of a root; its fragments get the part's number. */
TB_FN tb_overlap_part tb_part_of(tb_fragment *fragments, int32_t count, int32_t root,
                                 const tb_vec3 *vertices, int32_t number)
{
    tb_overlap_part part;
    tb_vec3 first = tb_v3(0, 0, 0);
    part.volume = 0;
    part.area = tb_v3(0, 0, 0);
    for (int32_t k = root; k < count; k++) {
        tb_fragment *g = &fragments[k];
        if (g->part != root) continue;
        g->number = number;
        part.volume += g->volume;
        first = tb_v3_add(first, g->first);
        part.area = tb_v3_add(part.area, g->area);
    }
    part.centroid = tb_v3_scale(first, 1 / part.volume);
    part.depth = tb_part_depth(fragments, count, root, vertices, part.area);
    return part;
}

#endif
