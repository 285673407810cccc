/* The overlap of two solids from their convex pieces.
 *
 * Every piece of one solid is cut by the planes of every piece of the other that its box meets. The
 * fragments' volumes and moments add up; the area vectors of the faces that came from B add up to the
 * area vector of B's surface inside A, because inner planes appear twice with opposite signs.
 * Fragments that share area on an inner plane belong to one part (Göteman and Roxling 6.6.6 join
 * triangles that share a vertex). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/card/fragments.h"
#include "penalty/overlap.h"

void tb_overlaps_found_free(tb_overlaps_found *found)
{
    free(found->parts);
    free(found->fragments);
    free(found->vertices);
    free(found->seams);
    free(found->faces);
    free(found->clip_block);
    memset(found, 0, sizeof *found);
}

/* Two solids whose fragments are being collected. */
typedef struct meeting {
    tb_solids_meeting pair;
    tb_overlaps_found *found;
    tb_clip clip;
} meeting;

/* ---- fragments ---- */

static bool reserve(tb_overlaps_found *f, int32_t vertices, int32_t seams)
{
    tb_fragment *fragments =
        tb_grow(f->fragments, f->number_of_fragments + 1, &f->fragment_capacity, sizeof *fragments);
    if (fragments) f->fragments = fragments;
    tb_vec3 *grown =
        tb_grow(f->vertices, f->number_of_vertices + vertices, &f->vertex_capacity, sizeof *grown);
    if (grown) f->vertices = grown;
    tb_seam *more = tb_grow(f->seams, f->number_of_seams + seams, &f->seam_capacity, sizeof *more);
    if (more) f->seams = more;
    return fragments && grown && (more || seams == 0);
}

/* The faces of the next fragment that came from B. False if memory is refused. */
static bool keep_faces(meeting *m, const tb_piece *moved, const tb_piece *fixed)
{
    tb_overlaps_found *f = m->found;
    const tb_clip *c = &m->clip;
    const tb_fragment *g = &f->fragments[f->number_of_fragments];
    tb_overlap_face *grown = tb_grow(f->faces, f->number_of_faces + c->number_of_faces,
                                     &f->face_capacity, sizeof *grown);
    if (!grown) return false;
    f->faces = grown;
    for (int32_t k = 0; k < c->number_of_faces; k++) {
        int32_t solid;
        const int32_t cut = tb_meeting_seam(&m->pair, moved, fixed, c->tags[k], &solid);
        if (solid != 1) continue;
        f->faces[f->number_of_faces++] =
            (tb_overlap_face){.vertex = f->number_of_vertices,
                              .number_of_vertices = c->starts[k + 1] - c->starts[k],
                              .fragment = f->number_of_fragments,
                              .cut = cut};
        for (int32_t i = c->starts[k]; i < c->starts[k + 1]; i++)
            f->vertices[f->number_of_vertices++] = f->vertices[g->vertex + c->loops[i]];
    }
    return true;
}

static bool keep_fragment(meeting *m, const tb_piece *moved, const tb_piece *fixed)
{
    tb_overlaps_found *f = m->found;
    const tb_clip *c = &m->clip;
    tb_fragment measured = {0};
    if (!tb_measure_fragment(&m->pair, c, &measured)) return true;
    const int32_t loops = c->starts[c->number_of_faces]; /* of B's faces, and of those on seams */
    if (!reserve(f, c->number_of_vertices + 2 * loops, c->number_of_faces)) return false;
    tb_fragment *g = &f->fragments[f->number_of_fragments];
    *g = measured;
    g->part = f->number_of_fragments;
    g->vertex = f->number_of_vertices;
    g->number_of_vertices = c->number_of_vertices;
    g->seam = f->number_of_seams;
    for (int32_t v = 0; v < c->number_of_vertices; v++)
        f->vertices[f->number_of_vertices++] = tb_pose_point(&m->pair.home, c->vertices[v]);
    if (f->keeps_faces && !keep_faces(m, moved, fixed)) return false;
    for (int32_t k = 0; k < c->number_of_faces; k++) {
        int32_t solid;
        const int32_t cut = tb_meeting_seam(&m->pair, moved, fixed, c->tags[k], &solid);
        if (cut == 0) continue;
        tb_seam *seam = &f->seams[f->number_of_seams++];
        *seam = (tb_seam){.solid = solid,
                          .cut = cut,
                          .vertex = f->number_of_vertices,
                          .number_of_vertices = c->starts[k + 1] - c->starts[k]};
        for (int32_t i = c->starts[k]; i < c->starts[k + 1]; i++)
            f->vertices[f->number_of_vertices++] = f->vertices[g->vertex + c->loops[i]];
    }
    g->number_of_seams = f->number_of_seams - g->seam;
    f->number_of_fragments++;
    return true;
}

/* False if memory is refused. */
static bool clip_pair(meeting *m, const tb_piece *moved, const tb_piece *fixed)
{
    if (!tb_clip_pieces(&m->pair, moved, fixed, &m->clip)) return !m->clip.overflow;
    return keep_fragment(m, moved, fixed);
}

static bool prepare_clip(meeting *m)
{
    tb_overlaps_found *f = m->found;
    const int32_t faces = tb_meeting_faces(m->pair.moved, m->pair.fixed);
    const size_t bytes = tb_clip_bytes(faces);
    if (bytes > f->clip_bytes) {
        free(f->clip_block);
        f->clip_block = malloc(bytes);
        f->clip_bytes = f->clip_block ? bytes : 0;
    }
    if (f->clip_block) tb_clip_place(&m->clip, f->clip_block, faces);
    return f->clip_block != NULL;
}

static bool find_fragments(meeting *m)
{
    const tb_solid *all = m->pair.moved, *by = m->pair.fixed;
    for (int32_t i = 0; i < all->number_of_pieces; i++) {
        const tb_piece *moved = &all->pieces[i];
        double lower[3], upper[3];
        tb_law_turn_box(&m->pair.relative, moved->lower, moved->upper, lower, upper);
        if (!tb_corners_meet(lower, upper, by->lower, by->upper)) continue;
        for (int32_t k = 0; k < by->number_of_pieces; k++) {
            const tb_piece *fixed = &by->pieces[k];
            if (tb_corners_meet(lower, upper, fixed->lower, fixed->upper) &&
                !clip_pair(m, moved, fixed))
                return false;
        }
    }
    return true;
}

/* ---- parts ---- */

static bool gather_parts(tb_overlaps_found *f)
{
    tb_settle_roots(f->fragments, f->number_of_fragments);
    for (int32_t i = 0; i < f->number_of_fragments; i++) {
        if (f->fragments[i].part != i) continue;
        tb_overlap_part *grown =
            tb_grow(f->parts, f->number_of_parts + 1, &f->part_capacity, sizeof *grown);
        if (!grown) return false;
        f->parts = grown;
        f->parts[f->number_of_parts] =
            tb_part_of(f->fragments, f->number_of_fragments, i, f->vertices, f->number_of_parts);
        f->number_of_parts++;
    }
    return true;
}

/* ---- B's surface ---- */

/* Twice the area vector of a polygon. */
static tb_vec3 twice_area(const tb_vec3 *v, int32_t count)
{
    tb_vec3 sum = tb_v3(0, 0, 0);
    for (int32_t i = 1; i + 1 < count; i++)
        sum = tb_v3_add(sum, tb_v3_cross(tb_v3_sub(v[i], v[0]), tb_v3_sub(v[i + 1], v[0])));
    return sum;
}

/* Appends the part of a polygon where `towards` has no negative product with x - at. */
static bool cut_polygon(tb_overlaps_found *f, const tb_overlap_face *polygon, tb_vec3 at,
                        tb_vec3 towards, tb_overlap_face *part)
{
    const int32_t count = polygon->number_of_vertices;
    tb_vec3 *grown =
        tb_grow(f->vertices, f->number_of_vertices + 2 * count, &f->vertex_capacity, sizeof *grown);
    if (!grown) return false;
    f->vertices = grown;
    const tb_vec3 *v = f->vertices + polygon->vertex;
    *part = *polygon;
    part->vertex = f->number_of_vertices;
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 a = v[i], b = v[i + 1 == count ? 0 : i + 1];
        const double da = tb_v3_dot(towards, tb_v3_sub(a, at));
        const double db = tb_v3_dot(towards, tb_v3_sub(b, at));
        if (da >= 0) f->vertices[f->number_of_vertices++] = a;
        if ((da > 0 && db < 0) || (da < 0 && db > 0))
            f->vertices[f->number_of_vertices++] = tb_v3_lerp(a, b, da / (da - db));
    }
    part->number_of_vertices = f->number_of_vertices - part->vertex;
    return true;
}

/* Appends the parts of a polygon that no face from `next` on covers from the other side of its inner plane:
 * B's surface. Polygons of less than `least` area (m^2, twice) are rounding. */
static bool open_polygon(tb_overlaps_found *f, tb_overlap_face polygon, int32_t next, int32_t faces,
                         double least)
{
    if (polygon.number_of_vertices < 3 ||
        !(tb_v3_length(twice_area(f->vertices + polygon.vertex, polygon.number_of_vertices)) >
          least))
        return true;
    for (int32_t i = next; i < faces && polygon.cut != 0; i++) {
        const tb_overlap_face q = f->faces[i];
        if (q.cut != -polygon.cut ||
            f->fragments[q.fragment].part != f->fragments[polygon.fragment].part ||
            !tb_share_area(f->vertices + polygon.vertex, polygon.number_of_vertices,
                           f->vertices + q.vertex, q.number_of_vertices))
            continue;
        const tb_vec3 normal = twice_area(f->vertices + q.vertex, q.number_of_vertices);
        for (int32_t k = 0; k < q.number_of_vertices; k++) {
            const tb_vec3 at = f->vertices[q.vertex + k];
            const tb_vec3 to = f->vertices[q.vertex + (k + 1 == q.number_of_vertices ? 0 : k + 1)];
            const tb_vec3 inward = tb_v3_cross(normal, tb_v3_sub(to, at));
            tb_overlap_face outside, inside;
            if (!cut_polygon(f, &polygon, at, tb_v3_negate(inward), &outside) ||
                !open_polygon(f, outside, i + 1, faces, least) ||
                !cut_polygon(f, &polygon, at, inward, &inside))
                return false;
            polygon = inside;
        }
        return true; /* q covers the rest */
    }
    tb_overlap_face *grown =
        tb_grow(f->faces, f->number_of_faces + 1, &f->face_capacity, sizeof *grown);
    if (!grown) return false;
    f->faces = grown;
    f->faces[f->number_of_faces++] = polygon;
    return true;
}

/* Leaves the polygons of B's surface of the faces that came from B. An inner plane of B may hold surface
 * too, where no other piece lies behind it. */
static bool open_faces(tb_overlaps_found *f)
{
    const int32_t faces = f->number_of_faces;
    for (int32_t i = 0; i < faces; i++) {
        const tb_overlap_face face = f->faces[i];
        const tb_vec3 area = twice_area(f->vertices + face.vertex, face.number_of_vertices);
        if (!open_polygon(f, face, 0, faces, 1e-12 * tb_v3_length(area))) return false;
    }
    f->number_of_faces -= faces;
    if (f->number_of_faces > 0)
        memmove(f->faces, f->faces + faces, (size_t)f->number_of_faces * sizeof *f->faces);
    return true;
}

tb_status tb_solids_overlap(const tb_solid *a, const tb_pose *pose_a, const tb_solid *b,
                            const tb_pose *pose_b, bool split, tb_overlaps_found *found,
                            tb_error *error)
{
    found->number_of_parts = found->number_of_fragments = 0;
    found->number_of_vertices = found->number_of_seams = found->number_of_faces = 0;
    meeting m = {.pair = tb_meet_solids(a, pose_a, b, pose_b), .found = found};
    if (m.pair.moved->half_space) return TB_OK;
    if (!prepare_clip(&m) || !find_fragments(&m))
        return tb_fail_memory(error, 0, "the overlap of two solids");
    if (split)
        tb_join_fragments(found->fragments, found->number_of_fragments, found->seams,
                          found->vertices);
    else
        for (int32_t i = 0; i < found->number_of_fragments; i++) found->fragments[i].part = 0;
    return gather_parts(found) && (!found->keeps_faces || open_faces(found))
               ? TB_OK
               : tb_fail_memory(error, 0, "the overlap of two solids");
}
