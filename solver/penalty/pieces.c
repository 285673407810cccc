/* Decomposition of a closed surface into convex pieces.
 *
 * A cell is a convex polyhedron and the parts of the surface inside it. While some surface lies in
 * front of another part's plane, that plane divides the cell; the plane that splits the fewest
 * triangles is taken. A cell whose surface lies behind all its own planes is convex inside, and its
 * solid part is the cell cut by these planes. Planes equal to rounding count as one, so that flat
 * faces of many triangles stay whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/convex_clip.h"
#include "penalty/solid.h"

enum { CANDIDATES = 24, DEEPEST = 200 };

/* Planes nearer than this share of the solid's size are one. */
#define SAME_PLANE 1e-10
/* Pieces smaller than this share of the box are left out; so large may the missing volume be. */
#define SMALLEST_PIECE   1e-14
#define VOLUME_TOLERANCE 1e-9

typedef struct polygon {
    tb_vec3 corners[3];
    int32_t plane;
} polygon;

typedef struct cutter {
    tb_solid *solid;
    double *planes; /* distinct planes of the surface, x 4 */
    int32_t number_of_planes, plane_capacity;
    double size, epsilon; /* m */
    int32_t *inner;       /* from 1: planes that divided cells */
    int32_t number_of_inner, inner_capacity;
    int32_t piece_capacity, vertex_capacity, plane_room, cut_room, start_room, loop_capacity;
    int32_t number_of_vertices, number_of_loops;
    double volume;
    bool no_memory, failed;
} cutter;

typedef struct cell {
    tb_clip clip;
    void *block;
    polygon *polygons;
    int32_t count, capacity;
} cell;

static double side(const double plane[4], tb_vec3 x)
{
    return plane[0] * x.x + plane[1] * x.y + plane[2] * x.z - plane[3];
}

/* ---- planes ---- */

/* The number of the plane through a triangle; planes that all corners lie on are reused. */
static int32_t plane_of(cutter *c, const tb_vec3 corner[3])
{
    const tb_vec3 n = tb_v3_normalize(
        tb_v3_cross(tb_v3_sub(corner[1], corner[0]), tb_v3_sub(corner[2], corner[0])),
        tb_v3(0, 0, 0));
    for (int32_t i = 0; i < c->number_of_planes; i++) {
        const double *p = c->planes + 4 * i;
        if (p[0] * n.x + p[1] * n.y + p[2] * n.z < 1 - 1e-9) continue;
        if (fabs(side(p, corner[0])) <= c->epsilon && fabs(side(p, corner[1])) <= c->epsilon &&
            fabs(side(p, corner[2])) <= c->epsilon)
            return i;
    }
    double *grown =
        tb_grow(c->planes, c->number_of_planes + 1, &c->plane_capacity, 4 * sizeof(double));
    if (!grown) {
        c->no_memory = true;
        return 0;
    }
    c->planes = grown;
    double *p = c->planes + 4 * c->number_of_planes;
    p[0] = n.x, p[1] = n.y, p[2] = n.z;
    p[3] = tb_v3_dot(n, corner[0]);
    return c->number_of_planes++;
}

/* ---- cells ---- */

static bool cell_room(cutter *c, cell *x, int32_t faces)
{
    memset(x, 0, sizeof *x);
    x->block = malloc(tb_clip_bytes(faces));
    if (!x->block) c->no_memory = true;
    if (x->block) tb_clip_place(&x->clip, x->block, faces);
    return x->block != NULL;
}

static void cell_free(cell *x)
{
    free(x->block);
    free(x->polygons);
    memset(x, 0, sizeof *x);
}

/* Copies the polyhedron of a cell into one with room for `more` faces more. */
static bool cell_copy(cutter *c, const cell *from, int32_t more, cell *to)
{
    const tb_clip *a = &from->clip;
    if (!cell_room(c, to, a->number_of_faces + more)) return false;
    tb_clip *b = &to->clip;
    const int32_t used = a->starts[a->number_of_faces];
    if (a->number_of_vertices > b->most_vertices || used > b->most_loops) {
        c->failed = true;
        return false;
    }
    memcpy(b->vertices, a->vertices, (size_t)a->number_of_vertices * sizeof *a->vertices);
    memcpy(b->loops, a->loops, (size_t)used * sizeof *a->loops);
    memcpy(b->starts, a->starts, ((size_t)a->number_of_faces + 1) * sizeof *a->starts);
    memcpy(b->tags, a->tags, (size_t)a->number_of_faces * sizeof *a->tags);
    b->number_of_vertices = a->number_of_vertices;
    b->number_of_faces = a->number_of_faces;
    return true;
}

static void cell_add(cutter *c, cell *x, const tb_vec3 corners[3], int32_t plane)
{
    polygon *grown = tb_grow(x->polygons, x->count + 1, &x->capacity, sizeof *grown);
    if (!grown) {
        c->no_memory = true;
        return;
    }
    x->polygons = grown;
    polygon *p = &x->polygons[x->count++];
    memcpy(p->corners, corners, sizeof p->corners);
    p->plane = plane;
}

/* The box of the solid, a little larger, as the first cell. */
static bool first_cell(cutter *c, cell *x)
{
    static const int32_t FACES[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                        {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
    if (!cell_room(c, x, 16)) return false;
    const double *lo = c->solid->lower, *hi = c->solid->upper, margin = 0.01 * c->size;
    for (int32_t i = 0; i < 8; i++)
        x->clip.vertices[i] =
            tb_v3(i & 1 ? hi[0] + margin : lo[0] - margin, i & 2 ? hi[1] + margin : lo[1] - margin,
                  i & 4 ? hi[2] + margin : lo[2] - margin);
    for (int32_t f = 0; f < 6; f++) {
        x->clip.starts[f] = 4 * f;
        x->clip.tags[f] = 0;
        memcpy(x->clip.loops + 4 * f, FACES[f], sizeof FACES[f]);
    }
    x->clip.starts[6] = 24;
    x->clip.number_of_faces = 6;
    x->clip.number_of_vertices = 8;
    return true;
}

/* ---- dividing ---- */

/* Bits: 1 a corner in front, 2 a corner behind. */
static int32_t sides_of(const cutter *c, const polygon *p, const double plane[4])
{
    int32_t sides = 0;
    for (int k = 0; k < 3; k++) {
        const double d = side(plane, p->corners[k]);
        sides |= d > c->epsilon ? 1 : (d < -c->epsilon ? 2 : 0);
    }
    return sides;
}

/* The plane that divides a cell, -1 if no surface lies in front of any plane: then it is convex. */
static int32_t choose_plane(const cutter *c, const cell *x)
{
    int32_t best = -1, tried = 0;
    double best_cost = INFINITY;
    /* polygons in a fixed scattered order, so that candidates come from everywhere */
    const int32_t stride = x->count > CANDIDATES ? x->count / CANDIDATES : 1;
    for (int32_t offset = 0; offset < stride; offset++) {
        for (int32_t i = offset; i < x->count; i += stride) {
            const int32_t plane = x->polygons[i].plane;
            if (plane == best) continue;
            int32_t front = 0, back = 0, split = 0;
            for (int32_t k = 0; k < x->count; k++) {
                const int32_t s = sides_of(c, &x->polygons[k], c->planes + 4 * plane);
                front += s & 1;
                back += s >> 1;
                split += s == 3;
            }
            if (front == 0) continue;
            tried++;
            const double cost = 8.0 * split + abs(front - back);
            if (cost < best_cost) best_cost = cost, best = plane;
        }
        if (tried >= CANDIDATES) break;
    }
    return best;
}

/* The parts of a triangle in front of a plane and behind it, as triangles. */
static void split_polygon(cutter *c, const polygon *p, const double plane[4], cell *front,
                          cell *back)
{
    tb_vec3 loops[2][4];
    int32_t count[2] = {0, 0};
    for (int k = 0; k < 3; k++) {
        const tb_vec3 a = p->corners[k], b = p->corners[(k + 1) % 3];
        const double da = side(plane, a), db = side(plane, b);
        const int sa = da > c->epsilon ? 1 : (da < -c->epsilon ? -1 : 0);
        const int sb = db > c->epsilon ? 1 : (db < -c->epsilon ? -1 : 0);
        if (sa >= 0) loops[0][count[0]++] = a;
        if (sa <= 0) loops[1][count[1]++] = a;
        if (sa * sb >= 0) continue;
        const tb_vec3 v = tb_v3_lerp(a, b, da / (da - db));
        loops[0][count[0]++] = v;
        loops[1][count[1]++] = v;
    }
    for (int s = 0; s < 2; s++)
        for (int32_t k = 1; k + 1 < count[s]; k++) {
            const tb_vec3 corners[3] = {loops[s][0], loops[s][k], loops[s][k + 1]};
            cell_add(c, s == 0 ? front : back, corners, p->plane);
        }
}

static void divide_surface(cutter *c, const cell *x, int32_t plane, cell *front, cell *back)
{
    for (int32_t i = 0; i < x->count; i++) {
        const polygon *p = &x->polygons[i];
        if (p->plane == plane) continue; /* the polygon bounds the new cells */
        switch (sides_of(c, p, c->planes + 4 * plane)) {
        case 1: cell_add(c, front, p->corners, p->plane); break;
        case 2: cell_add(c, back, p->corners, p->plane); break;
        case 3: split_polygon(c, p, c->planes + 4 * plane, front, back); break;
        default: break; /* in the plane, seen from the other side */
        }
    }
}

/* ---- pieces ---- */

static bool reserve_piece(cutter *c, const tb_clip *k)
{
    tb_solid *s = c->solid;
    const int32_t used = k->starts[k->number_of_faces];
#define GROW(array, count, capacity, type, width)                                                  \
    do {                                                                                           \
        type *grown = tb_grow(array, count, capacity, (width) * sizeof(type));                     \
        if (!grown) return false;                                                                  \
        array = grown;                                                                             \
    } while (0)
    GROW(s->pieces, s->number_of_pieces + 1, &c->piece_capacity, tb_piece, 1);
    GROW(s->vertices, c->number_of_vertices + k->number_of_vertices, &c->vertex_capacity, double,
         3);
    GROW(s->planes, s->number_of_faces + k->number_of_faces, &c->plane_room, double, 4);
    GROW(s->cuts, s->number_of_faces + k->number_of_faces, &c->cut_room, int32_t, 1);
    GROW(s->loop_starts, s->number_of_faces + k->number_of_faces + 1, &c->start_room, int32_t, 1);
    GROW(s->loops, c->number_of_loops + used, &c->loop_capacity, int32_t, 1);
#undef GROW
    return true;
}

/* The plane of a face from its loop: Newell's normal and the mean offset. */
static void face_plane(const tb_clip *k, int32_t f, double plane[4])
{
    const int32_t *loop = k->loops + k->starts[f], n = k->starts[f + 1] - k->starts[f];
    const tb_vec3 o = k->vertices[loop[0]];
    tb_vec3 area = tb_v3(0, 0, 0);
    for (int32_t i = 1; i + 1 < n; i++)
        area = tb_v3_add(area, tb_v3_cross(tb_v3_sub(k->vertices[loop[i]], o),
                                           tb_v3_sub(k->vertices[loop[i + 1]], o)));
    area = tb_v3_normalize(area, tb_v3(0, 0, 0));
    tb_v3_store(plane, area);
    plane[3] = tb_v3_dot(area, o);
}

/* tags of faces: 0 box, -1 - 2 p surface plane p, -2 - 2 k and +k sides of an inner plane */
static void store_face(cutter *c, const tb_clip *k, int32_t f)
{
    tb_solid *s = c->solid;
    const int32_t face = s->number_of_faces++, tag = k->tags[f];
    double *plane = s->planes + 4 * face;
    const bool is_surface = tag < 0 && tag % 2 != 0;
    const int32_t cut = tag >= 0 ? tag : (is_surface ? 0 : (tag + 2) / 2);
    s->cuts[face] = cut;
    if (tag == 0)
        face_plane(k, f, plane);
    else
        memcpy(plane, c->planes + 4 * (is_surface ? (-tag - 1) / 2 : c->inner[abs(cut)]),
               4 * sizeof *plane);
    for (int i = 0; i < 4 && cut < 0; i++) plane[i] = -plane[i];
    s->loop_starts[face] = c->number_of_loops;
    for (int32_t i = k->starts[f]; i < k->starts[f + 1]; i++)
        s->loops[c->number_of_loops++] = k->loops[i];
    s->loop_starts[face + 1] = c->number_of_loops;
}

static void store_piece(cutter *c, const tb_clip *k)
{
    tb_solid *s = c->solid;
    const double volume = tb_clip_measure(k).volume;
    if (!(volume > SMALLEST_PIECE * c->size * c->size * c->size)) return;
    if (!reserve_piece(c, k)) {
        c->no_memory = true;
        return;
    }
    c->volume += volume;
    tb_piece *piece = &s->pieces[s->number_of_pieces++];
    *piece = (tb_piece){.vertex = c->number_of_vertices,
                        .number_of_vertices = k->number_of_vertices,
                        .face = s->number_of_faces,
                        .number_of_faces = k->number_of_faces};
    for (int i = 0; i < 3; i++) piece->lower[i] = INFINITY, piece->upper[i] = -INFINITY;
    for (int32_t v = 0; v < k->number_of_vertices; v++) {
        double *x = s->vertices + 3 * c->number_of_vertices++;
        tb_v3_store(x, k->vertices[v]);
        for (int i = 0; i < 3; i++) {
            piece->lower[i] = fmin(piece->lower[i], x[i]);
            piece->upper[i] = fmax(piece->upper[i], x[i]);
        }
    }
    for (int32_t f = 0; f < k->number_of_faces; f++) store_face(c, k, f);
    if (k->number_of_faces > s->most_faces) s->most_faces = k->number_of_faces;
}

/* The solid part of a cell that is convex inside. */
static void finish_cell(cutter *c, const cell *x)
{
    cell rest;
    uint8_t *seen = calloc((size_t)c->number_of_planes + 1, 1);
    int32_t distinct = 0;
    for (int32_t i = 0; i < x->count && seen; i++) {
        distinct += !seen[x->polygons[i].plane];
        seen[x->polygons[i].plane] = 1;
    }
    if (seen && cell_copy(c, x, distinct + 4, &rest)) {
        bool left = true;
        for (int32_t i = 0; i < x->count && left; i++) {
            const int32_t p = x->polygons[i].plane;
            if (seen[p] == 2) continue;
            seen[p] = 2;
            const double *plane = c->planes + 4 * p;
            left = tb_clip_cut(&rest.clip, tb_v3_load(plane), plane[3], -1 - 2 * p);
        }
        if (rest.clip.overflow) c->failed = true;
        if (left) store_piece(c, &rest.clip);
        cell_free(&rest);
    } else if (!seen) {
        c->no_memory = true;
    }
    free(seen);
}

/* The number of a plane that divides a cell, from 1; 0 if memory is refused. */
static int32_t add_inner(cutter *c, int32_t plane)
{
    int32_t *grown = tb_grow(c->inner, c->number_of_inner + 2, &c->inner_capacity, sizeof *grown);
    if (!grown) {
        c->no_memory = true;
        return 0;
    }
    c->inner = grown;
    c->inner[++c->number_of_inner] = plane;
    return c->number_of_inner;
}

/* Frees the cell. */
static void divide(cutter *c, cell *x, int32_t depth)
{
    const int32_t plane = depth < DEEPEST ? choose_plane(c, x) : -1;
    if (plane < 0 || c->no_memory || c->failed) {
        if (depth >= DEEPEST) c->failed = true;
        if (!c->no_memory && !c->failed) finish_cell(c, x);
        cell_free(x);
        return;
    }
    cell front = {0}, back = {0};
    const int32_t inner = add_inner(c, plane);
    if (inner > 0 && cell_copy(c, x, 4, &front) && cell_copy(c, x, 4, &back)) {
        const double *p = c->planes + 4 * plane;
        const tb_vec3 n = tb_v3_load(p);
        const bool has_front = tb_clip_cut(&front.clip, tb_v3_negate(n), -p[3], -2 - 2 * inner);
        const bool has_back = tb_clip_cut(&back.clip, n, p[3], inner);
        divide_surface(c, x, plane, &front, &back);
        /* the space behind the plane's own triangles is solid, unless another surface follows */
        if (has_front && front.count > 0) divide(c, &front, depth + 1);
        if (has_back) divide(c, &back, depth + 1);
    }
    cell_free(&front);
    cell_free(&back);
    cell_free(x);
}

static tb_status find_pieces(cutter *c, const char *name, tb_error *error)
{
    tb_solid *s = c->solid;
    cell x;
    if (!first_cell(c, &x)) return tb_fail_memory(error, 0, "pieces of a solid");
    for (int32_t t = 0; t < s->surface.number_of_triangles && !c->no_memory; t++) {
        tb_vec3 corners[3];
        for (int k = 0; k < 3; k++)
            corners[k] = tb_v3_load(s->surface.vertices + 3 * s->surface.triangles[3 * t + k]);
        cell_add(c, &x, corners, plane_of(c, corners));
    }
    if (c->no_memory)
        cell_free(&x);
    else
        divide(c, &x, 0);
    if (c->no_memory) return tb_fail_memory(error, 0, "pieces of a solid");
    const double volume = tb_surface_mesh_volume(&s->surface);
    if (!c->failed && s->number_of_pieces > 0 &&
        fabs(c->volume - volume) <= VOLUME_TOLERANCE * fabs(volume))
        return TB_OK;
    return tb_fail_field(error, TB_UNSUPPORTED, name,
                         "'%s' has no convex pieces: they hold %.9g m3 of the surface's %.9g m3",
                         name, c->volume, volume);
}

tb_status tb_solid_of_mesh(tb_surface_mesh *surface, const char *name, tb_solid *solid,
                           tb_error *error)
{
    memset(solid, 0, sizeof *solid);
    solid->surface = *surface;
    memset(surface, 0, sizeof *surface);
    const tb_surface_mesh *m = &solid->surface;
    for (int i = 0; i < 3; i++) solid->lower[i] = INFINITY, solid->upper[i] = -INFINITY;
    for (int32_t v = 0; v < m->number_of_vertices; v++)
        for (int i = 0; i < 3; i++) {
            solid->lower[i] = fmin(solid->lower[i], m->vertices[3 * v + i]);
            solid->upper[i] = fmax(solid->upper[i], m->vertices[3 * v + i]);
        }
    cutter c = {.solid = solid};
    for (int i = 0; i < 3; i++) c.size = fmax(c.size, solid->upper[i] - solid->lower[i]);
    c.epsilon = SAME_PLANE * c.size;
    tb_status status = TB_OK;
    if (m->number_of_triangles < 4 || !(tb_surface_mesh_volume(m) > 0))
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, name, "'%s' has no volume", name);
    else
        status = find_pieces(&c, name, error);
    free(c.planes);
    free(c.inner);
    if (status != TB_OK) tb_solid_free(solid);
    return status;
}

tb_status tb_solid_of_half_space(tb_solid *solid, tb_error *error)
{
    memset(solid, 0, sizeof *solid);
    solid->pieces = calloc(1, sizeof *solid->pieces);
    solid->planes = calloc(4, sizeof *solid->planes);
    solid->cuts = calloc(1, sizeof *solid->cuts);
    solid->loop_starts = calloc(2, sizeof *solid->loop_starts);
    if (!solid->pieces || !solid->planes || !solid->cuts || !solid->loop_starts) {
        tb_solid_free(solid);
        return tb_fail_memory(error, sizeof *solid->pieces, "a half-space");
    }
    solid->half_space = true;
    solid->number_of_pieces = solid->number_of_faces = solid->most_faces = 1;
    solid->pieces[0].number_of_faces = 1;
    solid->planes[2] = 1;
    for (int i = 0; i < 3; i++) {
        solid->lower[i] = solid->pieces[0].lower[i] = -INFINITY;
        solid->upper[i] = solid->pieces[0].upper[i] = i == 2 ? 0 : INFINITY;
    }
    return TB_OK;
}

void tb_solid_free(tb_solid *solid)
{
    tb_surface_mesh_free(&solid->surface);
    free(solid->pieces);
    free(solid->vertices);
    free(solid->planes);
    free(solid->cuts);
    free(solid->loop_starts);
    free(solid->loops);
    memset(solid, 0, sizeof *solid);
}
