/* Shared declarations of the mesh narrow phase. */
#ifndef TB_MESH_INTERNAL_H
#define TB_MESH_INTERNAL_H

#include "base/team.h"
#include "collide/convex/convex_pair.h"
#include "collide/mesh/mesh_pair.h"

/* Raw points, before neighbouring triangles are compared. */
typedef struct tb_mesh_points {
    tb_mesh_contact *items;
    int32_t count, capacity;
    tb_arena *arena;
    bool failed; /* the arena refused */
} tb_mesh_points;

/* Reserves `count` more points, or NULL; the caller adds the written number to `count`. */
#define tb_mesh_points_reserve TB_SYMBOL(tb_mesh_points_reserve)
TB_EXTERN tb_mesh_contact *tb_mesh_points_reserve(tb_mesh_points *points, int32_t count);

/* corners of the polygon that replaces a round cap */
enum { TB_MESH_DISC_CORNERS = 16 };

/* the other shape of a mesh pair */
typedef enum tb_mesh_kind { TB_MESH_ON_PLANE, TB_MESH_ON_CONVEX, TB_MESH_ON_MESH } tb_mesh_kind;

/* State of one pair. */
typedef struct tb_mesh_job {
    tb_mesh_kind kind;
    const tb_posed_shape *other; /* the shape that is not `view`'s mesh */
    tb_vec3 origin; /* m, world: that shape's position, or the mesh's against a plane */
    tb_mesh_view view;
    const tb_mesh_view *other_view; /* the other mesh, or NULL */
    tb_mat33 rotation;              /* frame of the other mesh in the frame of `view`'s mesh */
    double shift[3];                /* m */
    tb_core core;                   /* of `other`, unless it is a mesh */
    tb_vec3 centre;                 /* m: a point inside `other`, or on its plane */
    tb_polytope polytope;           /* boxes and hulls; one triangle at a time of a mesh */
    bool polyhedral;                /* `polytope` is valid */
    int32_t largest;                /* corners of the polytope's largest face */
    tb_epa *room;                   /* scratch of cores that overlap, or NULL */
    bool wants_room;                /* the scratch was missing: the last triangle must be
                                       repeated */
    tb_real margin, noise;          /* m */
    double lower[3], upper[3];      /* box of `other` in the mesh's frame, with the margin */
    tb_mesh_corner *from, *to;      /* clipping buffers: corners of the largest face plus 8 */
    tb_mesh_points points;
    bool behind; /* the centre is behind a triangle */
    uint32_t flags;
} tb_mesh_job;

/* A job with its input and its memory. */
typedef struct tb_mesh_task {
    tb_mesh_job job;
    const tb_posed_shape *shape; /* the mesh or height field */
    bool flip;                   /* the mesh is the second shape of the pair */
    tb_mesh_view other_view;
    tb_triangle_mesh parts[2]; /* of height fields */
    const int32_t *names;      /* numbers of the first part's triangles, or NULL */
} tb_mesh_task;

/* ---- the stages of a pair ----
 *
 * Called in this order; a task must not move in memory. The CPU runs the stages in
 * tb_collide_mesh; mesh_team.c runs them for many pairs with a team of lanes. */

/* The stage without allocations. */
#define tb_mesh_begin TB_SYMBOL(tb_mesh_begin)
TB_EXTERN void tb_mesh_begin(tb_mesh_task *task, const tb_posed_shape *a, const tb_posed_shape *b,
                             tb_real margin);
/* Prepares the triangles; a height field builds them. False if the arena refuses. */
#define tb_mesh_parts TB_SYMBOL(tb_mesh_parts)
TB_EXTERN bool tb_mesh_parts(tb_mesh_task *task, tb_arena *arena);
/* Makes `polytope` of a box or hull. All lanes of a team call it together: they take the same
 * memory, and see its content after the next sync. False if the arena refuses. */
#define tb_mesh_solid TB_SYMBOL(tb_mesh_solid)
TB_EXTERN bool tb_mesh_solid(tb_mesh_job *j, tb_arena *arena);
/* Allocates the clipping buffers; false if `points.arena` refuses. */
#define tb_mesh_job_buffers TB_SYMBOL(tb_mesh_job_buffers)
TB_EXTERN bool tb_mesh_job_buffers(tb_mesh_job *j);

/* Two tree nodes, or two triangles; b belongs to the other mesh, 0 without one. */
typedef struct tb_mesh_index_pair {
    int32_t a, b;
} tb_mesh_index_pair;

/* The current triangle of the other mesh, as a polytope with one face. */
typedef struct tb_mesh_facing {
    int32_t index; /* -1: none yet */
    tb_mesh_triangle triangle;
    int32_t edges[6];
    tb_vec3 edge_normals[6];
} tb_mesh_facing;

/* A ball around a triangle: around its centroid, through its farthest corner. */
typedef struct tb_mesh_ball {
    double centre[3], radius; /* m */
} tb_mesh_ball;

/* The box and the ball of one triangle of the other mesh in the frame of the first. */
typedef struct tb_mesh_reach {
    int32_t index; /* -1: none yet */
    double lower[3], upper[3];
    tb_mesh_ball ball;
} tb_mesh_reach;

/* Result of descending a pair of nodes: 0: they are apart; 1: two leaves that may meet; 2: their
 * two halves, in order. */
#define tb_mesh_descend TB_SYMBOL(tb_mesh_descend)
TB_EXTERN int tb_mesh_descend(const tb_mesh_job *j, tb_mesh_index_pair nodes,
                              tb_mesh_index_pair next[2]);
/* Number of triangle pairs of two leaves, and whether the k-th pair may meet. */
#define tb_mesh_leaf_size TB_SYMBOL(tb_mesh_leaf_size)
TB_EXTERN int32_t tb_mesh_leaf_size(const tb_mesh_job *j, tb_mesh_index_pair leaves);
#define tb_mesh_leaf_meets TB_SYMBOL(tb_mesh_leaf_meets)
TB_EXTERN bool tb_mesh_leaf_meets(const tb_mesh_job *j, tb_mesh_index_pair leaves, int32_t k,
                                  tb_mesh_reach *reach, tb_mesh_index_pair *triangles);
/* Adds the points of a triangle against the other shape or its triangle. The points depend on
 * these two alone, not on earlier calls. */
#define tb_mesh_meet TB_SYMBOL(tb_mesh_meet)
TB_EXTERN void tb_mesh_meet(tb_mesh_job *j, tb_mesh_facing *facing, tb_mesh_index_pair triangles);
/* Adds the points of all triangles that may meet, in the order of the tree. */
#define tb_mesh_walk TB_SYMBOL(tb_mesh_walk)
TB_EXTERN void tb_mesh_walk(tb_mesh_job *j);

/* Position of the centre of a convex shape relative to a triangle. */
typedef struct tb_mesh_nearest {
    tb_real distance, height; /* m; height: over the triangle's plane */
    int32_t triangle;         /* -1: none */
} tb_mesh_nearest;

#define tb_mesh_near_centre TB_SYMBOL(tb_mesh_near_centre)
TB_EXTERN tb_mesh_nearest tb_mesh_near_centre(const tb_mesh_job *j, int32_t triangle);
/* Keeps the nearer of two triangles. Of triangles that share the nearest point, the one most
 * perpendicular to the direction decides inside or outside. */
TB_FN void tb_mesh_nearer(tb_mesh_nearest *best, const tb_mesh_nearest *other, tb_real noise)
{
    const bool farther = other->distance > best->distance + noise;
    const bool level =
        other->distance > best->distance - noise && tb_abs(other->height) <= tb_abs(best->height);
    if (best->triangle < 0 || !(farther || level)) *best = *other;
}
/* If the centre lies inside the mesh, replaces all points by points that push the shape out
 * through the nearest surface. False if the centre is outside, or memory is refused. */
#define tb_mesh_push_out TB_SYMBOL(tb_mesh_push_out)
TB_EXTERN bool tb_mesh_push_out(tb_mesh_job *j, const tb_mesh_nearest *nearest);

/* ---- points of one triangle ---- */

/* Adds the points of one triangle: against `polytope`, which may be a triangle of another mesh, and
 * against a round core. Both set `behind` if the centre is behind a triangle in contact. */
#define tb_mesh_triangle_and_polytope TB_SYMBOL(tb_mesh_triangle_and_polytope)
TB_EXTERN void tb_mesh_triangle_and_polytope(tb_mesh_job *j, const tb_mesh_triangle *t);
#define tb_mesh_triangle_and_round TB_SYMBOL(tb_mesh_triangle_and_round)
TB_EXTERN void tb_mesh_triangle_and_round(tb_mesh_job *j, const tb_mesh_triangle *t);

/* Adds the points along the triangle's own normal, on the shape's features that face the
 * triangle. lowest: the vertex of `polytope` that is farthest against that normal. */
#define tb_mesh_polytope_on_triangle TB_SYMBOL(tb_mesh_polytope_on_triangle)
TB_EXTERN void tb_mesh_polytope_on_triangle(tb_mesh_job *j, const tb_mesh_triangle *t,
                                            int32_t lowest);
#define tb_mesh_round_on_triangle TB_SYMBOL(tb_mesh_round_on_triangle)
TB_EXTERN void tb_mesh_round_on_triangle(tb_mesh_job *j, const tb_mesh_triangle *t);

/* Largest number of points of one triangle, including temporary ones: two faces of the polytope,
 * each clipped by three sides, plus the triangle's corners. */
TB_FN int32_t tb_mesh_most_points(const tb_mesh_job *j)
{
    return j->polyhedral ? 2 * j->largest + 12 : TB_MESH_DISC_CORNERS + 8;
}

/* ---- manifolds ---- */

/* The mesh of a pair, and the known data of the other shape. */
typedef struct tb_mesh_pair {
    const tb_mesh_view *view;
    const tb_mesh_view
        *other; /* the other mesh, else NULL; features are then triangle << 2 | corner */
    const tb_polytope *solid; /* the other box or hull, else NULL */
} tb_mesh_pair;

TB_FN tb_mesh_pair tb_mesh_pair_of(const tb_mesh_task *task)
{
    const tb_mesh_job *j = &task->job;
    tb_mesh_pair pair;
    pair.view = &j->view;
    pair.other = j->other_view;
    pair.solid = j->kind == TB_MESH_ON_CONVEX && j->polyhedral ? &j->polytope : NULL;
    return pair;
}

/* Scratch for the points of a pair. */
typedef struct tb_mesh_region tb_mesh_region;
typedef struct tb_mesh_spot tb_mesh_spot;
typedef struct tb_mesh_desk {
    tb_mesh_region *regions; /* points */
    int32_t *next;           /* points */
    tb_mesh_spot *spots;     /* points */
    tb_mesh_spot *hull;      /* 2 x points */
    tb_mesh_contact *result; /* points */
} tb_mesh_desk;

/* Allocates the scratch for `count` points; false if the arena refuses. */
#define tb_mesh_desk_take TB_SYMBOL(tb_mesh_desk_take)
TB_EXTERN bool tb_mesh_desk_take(tb_mesh_desk *desk, int32_t points, tb_arena *arena);
/* The part of the scratch for the points from `first` on. */
#define tb_mesh_desk_part TB_SYMBOL(tb_mesh_desk_part)
TB_EXTERN tb_mesh_desk tb_mesh_desk_part(const tb_mesh_desk *desk, int32_t first);

/* Compares the points of all triangles: drops points that the neighbouring triangles rule out,
 * and divides the rest into regions of one normal. Returns the number of regions. noise: m. */
#define tb_mesh_group TB_SYMBOL(tb_mesh_group)
TB_EXTERN int32_t tb_mesh_group(tb_mesh_contact *points, int32_t count, const tb_mesh_pair *pair,
                                tb_real noise, const tb_mesh_desk *desk);
/* Number of points of one region after tb_mesh_group. */
#define tb_mesh_region_size TB_SYMBOL(tb_mesh_region_size)
TB_EXTERN int32_t tb_mesh_region_size(const tb_mesh_desk *desk, int32_t number);
/* Selects the manifold of a region, at most TB_MANIFOLD_POINTS points. together: all lanes of a
 * team call it for the same region. */
#define tb_mesh_choose TB_SYMBOL(tb_mesh_choose)
TB_EXTERN void tb_mesh_choose(const tb_mesh_contact *points, tb_real noise,
                              const tb_mesh_desk *desk, int32_t number, bool together);
/* Copies the manifolds of `count` regions into desk->result, in order; returns the number of
 * points. */
#define tb_mesh_gather TB_SYMBOL(tb_mesh_gather)
TB_EXTERN int32_t tb_mesh_gather(const tb_mesh_contact *points, const tb_mesh_desk *desk,
                                 int32_t number);
/* Converts one of these points to a contact point of the pair. */
#define tb_mesh_point TB_SYMBOL(tb_mesh_point)
TB_EXTERN tb_contact_point tb_mesh_point(const tb_mesh_task *task, const tb_mesh_contact *c);

/* The part of a height field inside a box of its frame (and a ring of cells around it), as a mesh
 * from the arena: the surface, and the sides and the bottom if the part reaches them. Triangle
 * numbers refer to the part; `names` receives the numbers in the whole field. False if the arena
 * refuses. */
#define tb_height_field_part TB_SYMBOL(tb_height_field_part)
TB_EXTERN bool tb_height_field_part(const tb_height_field *field, const double lower[3],
                                    const double upper[3], tb_arena *arena, tb_triangle_mesh *mesh,
                                    const int32_t **names);

/* ---- boxes: lower and upper corners, m ---- */

TB_FN bool tb_mesh_boxes_apart(const double *lower_a, const double *upper_a, const double *lower_b,
                               const double *upper_b)
{
    for (int k = 0; k < 3; k++)
        if (lower_a[k] > upper_b[k] || upper_a[k] < lower_b[k]) return true;
    return false;
}

/* The box of a triangle in its mesh's frame. Comparisons, because a call of fmin costs more. */
TB_FN void tb_mesh_triangle_bounds(const tb_triangle_mesh *mesh, int32_t t, double lower[3],
                                   double upper[3])
{
    const int32_t *v = &mesh->triangles[3 * t];
    for (int k = 0; k < 3; k++) {
        const double a = mesh->vertices[3 * v[0] + k], b = mesh->vertices[3 * v[1] + k];
        const double c = mesh->vertices[3 * v[2] + k];
        const double low = a < b ? a : b, high = a < b ? b : a;
        lower[k] = low < c ? low : c;
        upper[k] = high < c ? c : high;
    }
}

/* The ball around a triangle in its mesh's frame. */
TB_FN tb_mesh_ball tb_mesh_triangle_ball(const tb_triangle_mesh *mesh, int32_t t)
{
    const int32_t *v = &mesh->triangles[3 * t];
    tb_mesh_ball ball;
    double farthest = 0;
    for (int k = 0; k < 3; k++)
        ball.centre[k] = (mesh->vertices[3 * v[0] + k] + mesh->vertices[3 * v[1] + k] +
                          mesh->vertices[3 * v[2] + k]) /
                         3;
    for (int i = 0; i < 3; i++) {
        double square = 0;
        for (int k = 0; k < 3; k++) {
            const double d = mesh->vertices[3 * v[i] + k] - ball.centre[k];
            square += d * d;
        }
        farthest = square > farthest ? square : farthest;
    }
    ball.radius = sqrt(farthest);
    return ball;
}

/* The bounding box of a box in another frame, after `rotation` and `shift`; `grow` (m) is added
 * on every side. */
TB_FN void tb_mesh_carry_box(const tb_mat33 *rotation, const double shift[3], const double *lower,
                             const double *upper, double grow, double out_lower[3],
                             double out_upper[3])
{
    for (int r = 0; r < 3; r++) {
        double centre = shift[r], half = grow;
        for (int c = 0; c < 3; c++) {
            const double m = (double)rotation->m[3 * r + c];
            centre += m * (lower[c] + upper[c]) / 2;
            half += fabs(m) * (upper[c] - lower[c]) / 2;
        }
        out_lower[r] = centre - half;
        out_upper[r] = centre + half;
    }
}

/* The cells of a height field along one axis that overlap an interval, with one more on each side. */
TB_FN void tb_height_field_range(double lower, double upper, double half, int32_t cells,
                                 int32_t *first, int32_t *count)
{
    const double scale = cells / (2 * half);
    const double a = floor((lower + half) * scale) - 1, b = floor((upper + half) * scale) + 2;
    *first = a > 0 ? (a < cells - 1 ? (int32_t)a : cells - 1) : 0;
    const int32_t end = b < cells ? (b > *first + 1 ? (int32_t)b : *first + 1) : cells;
    *count = end - *first;
}

#endif
