/* Clipping of a convex polyhedron by half-spaces, and the moments of the rest.
 *
 * The polyhedron is a list of faces, each a loop of vertex numbers, counter-clockwise seen from
 * outside. A cut classifies every vertex once, by the sign of one distance; both faces of an edge
 * therefore agree about it, and the result is a closed surface whatever the rounding of the
 * distances. A wrong sign moves the surface by the rounding error of one distance and no more, so
 * that flat, touching and coplanar faces need no special case.
 *
 * Volume, centroid and area vectors are sums over the triangles of the loops, about a vertex of the
 * polyhedron (Göteman and Roxling 2015, chapter 6; signed tetrahedra). */
#ifndef TB_CONVEX_CLIP_H
#define TB_CONVEX_CLIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vector.h"

/* Room and content; the caller supplies the arrays. Faces with tag >= 0 belong to the polyhedron
 * itself, faces with tag < 0 were made by a cut with that tag. */
typedef struct tb_clip {
    tb_vec3 *vertices; /* most_vertices, m */
    double *distances; /* most_vertices, scratch of a cut */
    int32_t *map;      /* most_vertices, scratch of a cut */
    int32_t *loops;    /* most_loops: vertex numbers, face after face */
    int32_t *spare;    /* most_loops, scratch of a cut */
    int32_t *starts;   /* most_faces + 1, into loops */
    int32_t *tags;     /* most_faces */
    int32_t *edges;    /* 4 x most_faces: edges that a cut crosses */
    int32_t most_vertices, most_loops, most_faces;
    int32_t number_of_vertices, number_of_faces;
    bool overflow; /* a cut found no room; the content is no longer a polyhedron */
} tb_clip;

/* Room that any sequence of cuts by `faces` half-spaces or faces needs: a convex polyhedron of F
 * faces has at most 2 F - 4 vertices and 6 F - 12 entries in its loops; a cut in progress has both
 * old and new ones. */
TB_FN int32_t tb_clip_vertices(int32_t faces)
{
    return 4 * faces + 32;
}

TB_FN int32_t tb_clip_loops(int32_t faces)
{
    return 8 * faces + 64;
}

/* Bytes of one block that holds the arrays of a tb_clip for `faces` faces. */
TB_FN size_t tb_clip_bytes(int32_t faces)
{
    const size_t vertices = (size_t)tb_clip_vertices(faces), loops = (size_t)tb_clip_loops(faces);
    return vertices * (sizeof(tb_vec3) + sizeof(double) + sizeof(int32_t)) +
           (2 * loops + 6 * ((size_t)faces + 8)) * sizeof(int32_t);
}

/* Lays the arrays out in a block of tb_clip_bytes(faces), aligned to 8 bytes. */
TB_FN void tb_clip_place(tb_clip *c, void *block, int32_t faces)
{
    c->most_vertices = tb_clip_vertices(faces);
    c->most_loops = tb_clip_loops(faces);
    c->most_faces = faces + 7;
    c->vertices = (tb_vec3 *)block;
    c->distances = (double *)(c->vertices + c->most_vertices);
    c->map = (int32_t *)(c->distances + c->most_vertices);
    c->loops = c->map + c->most_vertices;
    c->spare = c->loops + c->most_loops;
    c->starts = c->spare + c->most_loops;
    c->tags = c->starts + c->most_faces + 1;
    c->edges = c->tags + c->most_faces;
    c->number_of_vertices = c->number_of_faces = 0;
    c->overflow = false;
}

/* The number of the new vertex on the edge from `inside` to `outside`, made at its first use. The
 * list `edges` has (inside, outside, vertex, next of the cap) for each crossed edge. */
TB_FN int32_t tb_clip_cross(tb_clip *c, int32_t inside, int32_t outside, int32_t *crossed)
{
    for (int32_t i = 0; i < *crossed; i++)
        if (c->edges[4 * i] == inside && c->edges[4 * i + 1] == outside) return i;
    if (*crossed >= c->most_faces || c->number_of_vertices >= c->most_vertices) {
        c->overflow = true;
        return 0;
    }
    const double a = c->distances[inside], b = c->distances[outside];
    int32_t *edge = c->edges + 4 * *crossed;
    edge[0] = inside;
    edge[1] = outside;
    edge[2] = c->number_of_vertices++;
    edge[3] = -1;
    c->distances[edge[2]] = 0;
    c->vertices[edge[2]] = tb_v3_lerp(c->vertices[inside], c->vertices[outside], TB_R(a / (a - b)));
    return (*crossed)++;
}

/* Appends the part of one face that is kept; returns the new end of the loops. */
TB_FN int32_t tb_clip_face(tb_clip *c, int32_t first, int32_t end, int32_t used, int32_t *crossed)
{
    int32_t start = first;
    while (start < end && c->distances[c->loops[start]] > 0) start++;
    if (start == end) return used;
    int32_t leaves = -1, k = start;
    do {
        const int32_t a = c->loops[k];
        k = k + 1 == end ? first : k + 1;
        const int32_t b = c->loops[k];
        const bool in_a = !(c->distances[a] > 0), in_b = !(c->distances[b] > 0);
        if (used + 2 > c->most_loops) {
            c->overflow = true;
            return used;
        }
        if (in_a) c->spare[used++] = a;
        if (in_a == in_b) continue;
        const int32_t edge =
            in_a ? tb_clip_cross(c, a, b, crossed) : tb_clip_cross(c, b, a, crossed);
        if (c->overflow) return used;
        c->spare[used++] = c->edges[4 * edge + 2];
        if (in_a)
            leaves = edge;
        else
            c->edges[4 * edge + 3] = leaves; /* the cap runs against the face */
    } while (k != start);
    return used;
}

/* Appends the faces that close the cut: the cycles of the crossed edges. */
TB_FN int32_t tb_clip_cap(tb_clip *c, int32_t crossed, int32_t tag, int32_t used, int32_t *faces)
{
    for (int32_t i = 0; i < crossed; i++) {
        if (c->edges[4 * i + 3] < 0) continue;
        if (*faces >= c->most_faces) c->overflow = true;
        if (c->overflow) return used;
        c->tags[*faces] = tag;
        c->starts[*faces] = used;
        for (int32_t k = i; c->edges[4 * k + 3] >= 0;) {
            if (used >= c->most_loops) {
                c->overflow = true;
                return used;
            }
            c->spare[used++] = c->edges[4 * k + 2];
            const int32_t next = c->edges[4 * k + 3];
            c->edges[4 * k + 3] = -1;
            k = next;
        }
        (*faces)++;
    }
    return used;
}

/* Leaves out the vertices that no loop uses. */
TB_FN void tb_clip_compact(tb_clip *c, int32_t used)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < c->number_of_vertices; i++) {
        c->map[i] = kept;
        if (c->distances[i] > 0) continue;
        c->vertices[kept++] = c->vertices[i];
    }
    c->number_of_vertices = kept;
    for (int32_t i = 0; i < used; i++) c->spare[i] = c->map[c->spare[i]];
    int32_t *loops = c->loops;
    c->loops = c->spare;
    c->spare = loops;
}

/* Keeps the part with normal . x <= offset; the faces of the cut get `tag`. Returns false if nothing
 * is left, or if there was no room (c->overflow). */
TB_FN bool tb_clip_cut(tb_clip *c, tb_vec3 normal, double offset, int32_t tag)
{
    int32_t outside = 0;
    for (int32_t i = 0; i < c->number_of_vertices; i++) {
        c->distances[i] = (double)tb_v3_dot(normal, c->vertices[i]) - offset;
        outside += c->distances[i] > 0;
    }
    if (outside == 0) return c->number_of_faces > 0;
    if (outside == c->number_of_vertices) {
        c->number_of_vertices = c->number_of_faces = 0;
        return false;
    }
    int32_t used = 0, faces = 0, crossed = 0, end = 0;
    for (int32_t f = 0; f < c->number_of_faces; f++) {
        const int32_t first = f == 0 ? c->starts[0] : end, before = used;
        end = c->starts[f + 1]; /* read before the new start is written over it */
        used = tb_clip_face(c, first, end, used, &crossed);
        if (c->overflow) return false;
        if (used == before) continue;
        c->tags[faces] = c->tags[f];
        c->starts[faces++] = before;
    }
    used = tb_clip_cap(c, crossed, tag, used, &faces);
    if (c->overflow) return false;
    c->starts[faces] = used;
    c->number_of_faces = faces;
    tb_clip_compact(c, used);
    return faces > 0;
}

/* Moments of a polyhedron. */
typedef struct tb_clip_moments {
    double volume;    /* m^3 */
    tb_vec3 first;    /* m^4: volume times centroid, about the frame's origin */
    tb_vec3 cut_area; /* m^2: sum of the area vectors of faces with tag < 0 */
} tb_clip_moments;

TB_FN tb_clip_moments tb_clip_measure(const tb_clip *c)
{
    tb_clip_moments m;
    m.volume = 0;
    m.first = m.cut_area = tb_v3(0, 0, 0);
    if (c->number_of_faces == 0) return m;
    const tb_vec3 origin = c->vertices[0];
    for (int32_t f = 0; f < c->number_of_faces; f++) {
        const int32_t *loop = c->loops + c->starts[f];
        const int32_t corners = c->starts[f + 1] - c->starts[f];
        const tb_vec3 a = tb_v3_sub(c->vertices[loop[0]], origin);
        tb_vec3 area = tb_v3(0, 0, 0);
        for (int32_t k = 1; k + 1 < corners; k++) {
            const tb_vec3 b = tb_v3_sub(c->vertices[loop[k]], origin);
            const tb_vec3 d = tb_v3_sub(c->vertices[loop[k + 1]], origin);
            const tb_vec3 n = tb_v3_cross(tb_v3_sub(b, a), tb_v3_sub(d, a));
            const double six = (double)tb_v3_dot(a, n);
            area = tb_v3_add_scaled(area, n, TB_R(0.5));
            m.volume += six / 6;
            m.first = tb_v3_add_scaled(m.first, tb_v3_add(a, tb_v3_add(b, d)), TB_R(six / 24));
        }
        if (c->tags[f] < 0) m.cut_area = tb_v3_add(m.cut_area, area);
    }
    m.first = tb_v3_add_scaled(m.first, origin, TB_R(m.volume));
    return m;
}

#endif
