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

#include "penalty/convex_clip.h"
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

/* A pair of solids; the pieces of `moved` are cut by the planes of `fixed`, in fixed's frame. */
typedef struct meeting {
    const tb_solid *moved, *fixed;
    tb_pose relative, home; /* moved to fixed, fixed to world */
    bool swapped;           /* moved is B */
    tb_overlaps_found *found;
    tb_clip clip;
} meeting;

static tb_pose relative_pose(const tb_pose *of, const tb_pose *in)
{
    tb_pose r;
    r.rotation = tb_m33_transpose(&in->rotation);
    r.position = tb_m33_mul_v3(&r.rotation, tb_v3_sub(of->position, in->position));
    r.rotation = tb_m33_mul(&r.rotation, &of->rotation);
    return r;
}

static tb_vec3 place(const tb_pose *pose, tb_vec3 x)
{
    return tb_v3_add(pose->position, tb_m33_mul_v3(&pose->rotation, x));
}

/* The box of a turned box. */
static void turn_box(const tb_pose *pose, const double lower[3], const double upper[3],
                     double turned_lower[3], double turned_upper[3])
{
    for (int i = 0; i < 3; i++) {
        double middle = tb_v3_at(pose->position, i), half = 0;
        for (int k = 0; k < 3; k++) {
            const double r = pose->rotation.m[3 * i + k];
            middle += r * (lower[k] + upper[k]) / 2;
            half += fabs(r) * (upper[k] - lower[k]) / 2;
        }
        turned_lower[i] = middle - half;
        turned_upper[i] = middle + half;
    }
}

static bool boxes_meet(const double lower_a[3], const double upper_a[3], const double lower_b[3],
                       const double upper_b[3])
{
    for (int i = 0; i < 3; i++)
        if (lower_a[i] > upper_b[i] || lower_b[i] > upper_a[i]) return false;
    return true;
}

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

static void load_piece(meeting *m, const tb_piece *piece)
{
    const tb_solid *s = m->moved;
    tb_clip *c = &m->clip;
    for (int32_t v = 0; v < piece->number_of_vertices; v++)
        c->vertices[v] =
            place(&m->relative, tb_v3_load(s->vertices + 3 * (size_t)(piece->vertex + v)));
    const int32_t *starts = s->loop_starts + piece->face, first = starts[0];
    for (int32_t f = 0; f < piece->number_of_faces; f++) {
        c->starts[f] = starts[f] - first;
        c->tags[f] = f;
    }
    c->starts[piece->number_of_faces] = starts[piece->number_of_faces] - first;
    memcpy(c->loops, s->loops + first,
           (size_t)c->starts[piece->number_of_faces] * sizeof *c->loops);
    c->number_of_vertices = piece->number_of_vertices;
    c->number_of_faces = piece->number_of_faces;
}

/* The inner plane of a face of the clipped polyhedron, 0 for surface. */
static int32_t seam_of(const meeting *m, const tb_piece *moved, const tb_piece *fixed, int32_t tag,
                       int32_t *solid)
{
    *solid = (tag < 0) != m->swapped;
    return tag < 0 ? m->fixed->cuts[fixed->face - tag - 1] : m->moved->cuts[moved->face + tag];
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
        const int32_t cut = seam_of(m, moved, fixed, c->tags[k], &solid);
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
    const tb_clip_moments moments = tb_clip_measure(c);
    if (!(moments.volume > 0)) return true;
    if (!reserve(f, c->number_of_vertices + c->starts[c->number_of_faces], c->number_of_faces))
        return false;
    tb_fragment *g = &f->fragments[f->number_of_fragments];
    g->volume = moments.volume;
    g->first = tb_v3_add(tb_m33_mul_v3(&m->home.rotation, moments.first),
                         tb_v3_scale(m->home.position, moments.volume));
    g->area = tb_m33_mul_v3(&m->home.rotation, moments.cut_area);
    if (m->swapped) g->area = tb_v3_negate(g->area); /* the whole surface sums to zero */
    g->part = f->number_of_fragments;
    g->vertex = f->number_of_vertices;
    g->number_of_vertices = c->number_of_vertices;
    g->seam = f->number_of_seams;
    for (int32_t v = 0; v < c->number_of_vertices; v++)
        f->vertices[f->number_of_vertices++] = place(&m->home, c->vertices[v]);
    if (f->keeps_faces && !keep_faces(m, moved, fixed)) return false;
    for (int32_t k = 0; k < c->number_of_faces; k++) {
        int32_t solid;
        const int32_t cut = seam_of(m, moved, fixed, c->tags[k], &solid);
        if (cut == 0) continue;
        tb_seam *seam = &f->seams[f->number_of_seams++];
        *seam = (tb_seam){.solid = solid,
                          .cut = cut,
                          .vertex = f->number_of_vertices,
                          .number_of_vertices = c->starts[k + 1] - c->starts[k],
                          .fragment = f->number_of_fragments};
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
    load_piece(m, moved);
    for (int32_t k = 0; k < fixed->number_of_faces; k++) {
        const double *p = m->fixed->planes + 4 * (size_t)(fixed->face + k);
        if (!tb_clip_cut(&m->clip, tb_v3_load(p), p[3], -1 - k)) return !m->clip.overflow;
    }
    return keep_fragment(m, moved, fixed);
}

static bool prepare_clip(meeting *m)
{
    tb_overlaps_found *f = m->found;
    const int32_t faces = m->moved->most_faces + m->fixed->most_faces + 4;
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
    for (int32_t i = 0; i < m->moved->number_of_pieces; i++) {
        const tb_piece *moved = &m->moved->pieces[i];
        double lower[3], upper[3];
        turn_box(&m->relative, moved->lower, moved->upper, lower, upper);
        if (!boxes_meet(lower, upper, m->fixed->lower, m->fixed->upper)) continue;
        for (int32_t k = 0; k < m->fixed->number_of_pieces; k++) {
            const tb_piece *fixed = &m->fixed->pieces[k];
            if (boxes_meet(lower, upper, fixed->lower, fixed->upper) && !clip_pair(m, moved, fixed))
                return false;
        }
    }
    return true;
}

/* ---- parts ---- */

static int32_t root_of(tb_fragment *fragments, int32_t i)
{
    while (fragments[i].part != i) i = fragments[i].part = fragments[fragments[i].part].part;
    return i;
}

/* Whether two convex polygons of one plane share area: no edge of either separates them. */
static bool share_area(const tb_vec3 *a, int32_t na, const tb_vec3 *b, int32_t nb)
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
                inside = fmax(inside, tb_v3_dot(inward, tb_v3_sub(b[k], a[i])));
            /* the share of rounding in a product of lengths */
            if (tb_v3_length2(e) > 0 && inside <= 1e-12 * tb_v3_length2(normal)) return false;
        }
        const tb_vec3 *other = a;
        const int32_t count = na;
        a = b, na = nb, b = other, nb = count;
    }
    return true;
}

static void join_fragments(tb_overlaps_found *f)
{
    for (int32_t i = 0; i < f->number_of_seams; i++) {
        const tb_seam *a = &f->seams[i];
        if (a->cut < 0) continue;
        for (int32_t k = 0; k < f->number_of_seams; k++) {
            const tb_seam *b = &f->seams[k];
            if (b->cut != -a->cut || b->solid != a->solid) continue;
            const int32_t x = root_of(f->fragments, a->fragment),
                          y = root_of(f->fragments, b->fragment);
            if (x == y || !share_area(f->vertices + a->vertex, a->number_of_vertices,
                                      f->vertices + b->vertex, b->number_of_vertices))
                continue;
            f->fragments[x > y ? x : y].part = x > y ? y : x;
        }
    }
}

/* (6.4): extent of the part's vertices along its normal. */
static double depth_of(const tb_overlaps_found *f, int32_t root, tb_vec3 area)
{
    const tb_vec3 normal = tb_v3_normalize(area, tb_v3(0, 0, 0));
    double lowest = INFINITY, highest = -INFINITY;
    for (int32_t i = 0; i < f->number_of_fragments; i++) {
        const tb_fragment *g = &f->fragments[i];
        if (g->part != root) continue;
        for (int32_t v = g->vertex; v < g->vertex + g->number_of_vertices; v++) {
            const double x = tb_v3_dot(normal, f->vertices[v]);
            lowest = fmin(lowest, x);
            highest = fmax(highest, x);
        }
    }
    return highest > lowest ? highest - lowest : 0;
}

static bool gather_parts(tb_overlaps_found *f)
{
    for (int32_t i = 0; i < f->number_of_fragments; i++)
        f->fragments[i].part = root_of(f->fragments, i);
    for (int32_t i = 0; i < f->number_of_fragments; i++) {
        if (f->fragments[i].part != i) continue;
        tb_overlap_part *grown =
            tb_grow(f->parts, f->number_of_parts + 1, &f->part_capacity, sizeof *grown);
        if (!grown) return false;
        f->parts = grown;
        tb_overlap_part *part = &f->parts[f->number_of_parts++];
        tb_vec3 first = tb_v3(0, 0, 0);
        *part = (tb_overlap_part){0};
        for (int32_t k = i; k < f->number_of_fragments; k++) {
            tb_fragment *g = &f->fragments[k];
            if (g->part != i) continue;
            g->number = f->number_of_parts - 1;
            part->volume += g->volume;
            first = tb_v3_add(first, g->first);
            part->area = tb_v3_add(part->area, g->area);
        }
        part->centroid = tb_v3_scale(first, 1 / part->volume);
        part->depth = depth_of(f, i, part->area);
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
            !share_area(f->vertices + polygon.vertex, polygon.number_of_vertices,
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
    /* the solid with planes alone stays, else the one with fewer pieces moves */
    const bool swapped =
        a->half_space || (!b->half_space && b->number_of_pieces < a->number_of_pieces);
    meeting m = {.moved = swapped ? b : a,
                 .fixed = swapped ? a : b,
                 .relative =
                     swapped ? relative_pose(pose_b, pose_a) : relative_pose(pose_a, pose_b),
                 .home = swapped ? *pose_a : *pose_b,
                 .swapped = swapped,
                 .found = found};
    if (m.moved->half_space) return TB_OK;
    if (!prepare_clip(&m) || !find_fragments(&m))
        return tb_fail_memory(error, 0, "the overlap of two solids");
    if (split)
        join_fragments(found);
    else
        for (int32_t i = 0; i < found->number_of_fragments; i++) found->fragments[i].part = 0;
    return gather_parts(found) && (!found->keeps_faces || open_faces(found))
               ? TB_OK
               : tb_fail_memory(error, 0, "the overlap of two solids");
}
