/* What the files of the mesh half share. */
#ifndef TB_MESH_INTERNAL_H
#define TB_MESH_INTERNAL_H

#include "base/team.h"
#include "collide/convex/convex_pair.h"
#include "collide/mesh/mesh_pair.h"

/* Points as they are found, before neighbouring triangles are compared. */
typedef struct tb_mesh_points {
    tb_mesh_contact *items;
    int32_t count, capacity;
    tb_arena *arena;
    bool failed; /* the arena refused */
} tb_mesh_points;

/* Room for `count` more, or NULL; the caller adds to `count` what it wrote. */
#define tb_mesh_points_room TB_SYMBOL(tb_mesh_points_room)
TB_EXTERN tb_mesh_contact *tb_mesh_points_room(tb_mesh_points *points, int32_t count);

/* corners of the polygon that stands for a round cap */
enum { TB_MESH_DISC_CORNERS = 16 };

/* what a mesh is held against */
typedef enum tb_mesh_kind { TB_MESH_ON_PLANE, TB_MESH_ON_CONVEX, TB_MESH_ON_MESH } tb_mesh_kind;

/* One pair at work. */
typedef struct tb_mesh_job {
    tb_mesh_kind kind;
    const tb_posed_shape *other; /* the shape that is not `view`'s mesh */
    tb_vec3 origin; /* m, world: that shape's position, or the mesh's against a plane */
    tb_mesh_view view;
    const tb_mesh_view *other_view; /* if it is a mesh too */
    tb_mat33 rotation;              /* likewise: its frame in that of `view`'s mesh */
    double shift[3];                /* m */
    tb_core core;                   /* of `other`, unless it is a mesh */
    tb_vec3 centre;                 /* m: a point inside `other`, or of its plane */
    tb_polytope polytope;           /* boxes and hulls; one triangle at a time of a mesh */
    bool polyhedral;                /* that `polytope` holds */
    int32_t largest;                /* corners of its largest face */
    tb_epa *room;                   /* scratch of cores that overlap, or NULL */
    bool wants_room;                /* it was missed: the last triangle has to be done again */
    tb_real margin, noise;          /* m */
    double lower[3], upper[3];      /* box of `other` in the mesh's frame, with the margin */
    tb_mesh_corner *from, *to;      /* clipping: room for the largest face and 8 */
    tb_mesh_points points;
    bool behind; /* some triangle has the centre behind it */
    uint32_t flags;
} tb_mesh_job;

/* A job with what it stands on, from the question to the answer. */
typedef struct tb_mesh_task {
    tb_mesh_job job;
    const tb_posed_shape *shape; /* the mesh or height field */
    bool flip;                   /* it is the second of the pair */
    tb_mesh_view other_view;
    tb_triangle_mesh parts[2]; /* of height fields */
    const int32_t *names;      /* of the triangles of the first part, or NULL */
} tb_mesh_task;

/* ---- the stages of a pair ----
 *
 * In this order; a task stays where it is. The processor goes through them in tb_collide_mesh, a
 * team of lanes with many pairs at once in mesh_team.c. */

/* All that needs no memory. */
#define tb_mesh_begin TB_SYMBOL(tb_mesh_begin)
TB_EXTERN void tb_mesh_begin(tb_mesh_task *task, const tb_posed_shape *a, const tb_posed_shape *b,
                             tb_real margin);
/* The triangles, which height fields make first. False where the arena refused. */
#define tb_mesh_parts TB_SYMBOL(tb_mesh_parts)
TB_EXTERN bool tb_mesh_parts(tb_mesh_task *task, tb_arena *arena);
/* Makes `polytope` of a box or hull. A team calls it together: all take the same memory, and what is
 * written is for all after the next sync. False where the arena refused. */
#define tb_mesh_solid TB_SYMBOL(tb_mesh_solid)
TB_EXTERN bool tb_mesh_solid(tb_mesh_job *j, tb_arena *arena);
/* Room for clipping; false where `points.arena` refused. */
#define tb_mesh_job_buffers TB_SYMBOL(tb_mesh_job_buffers)
TB_EXTERN bool tb_mesh_job_buffers(tb_mesh_job *j);

/* Two nodes of trees, or two triangles; b of the other mesh, 0 where there is none. */
typedef struct tb_mesh_place {
    int32_t a, b;
} tb_mesh_place;

/* The triangle of another mesh that is looked at, as a polytope with one face. */
typedef struct tb_mesh_facing {
    int32_t index; /* -1: none yet */
    tb_mesh_triangle triangle;
    int32_t edges[6];
    tb_vec3 edge_normals[6];
} tb_mesh_facing;

/* The box of one triangle of the other mesh in the frame of the first. */
typedef struct tb_mesh_reach {
    int32_t index; /* -1: none yet */
    double lower[3], upper[3];
} tb_mesh_reach;

/* What comes of two nodes: 0: they are apart; 1: two leaves that may meet; 2: their two halves, in
 * order. */
#define tb_mesh_descend TB_SYMBOL(tb_mesh_descend)
TB_EXTERN int tb_mesh_descend(const tb_mesh_job *j, tb_mesh_place nodes, tb_mesh_place next[2]);
/* How many pairs of triangles two leaves have, and whether the k-th of them may meet. */
#define tb_mesh_leaf_size TB_SYMBOL(tb_mesh_leaf_size)
TB_EXTERN int32_t tb_mesh_leaf_size(const tb_mesh_job *j, tb_mesh_place leaves);
#define tb_mesh_leaf_meets TB_SYMBOL(tb_mesh_leaf_meets)
TB_EXTERN bool tb_mesh_leaf_meets(const tb_mesh_job *j, tb_mesh_place leaves, int32_t k,
                                  tb_mesh_reach *reach, tb_mesh_place *triangles);
/* Adds the points of a triangle against the other shape or its triangle: what it adds is a function
 * of these alone, whatever was looked at before. */
#define tb_mesh_meet TB_SYMBOL(tb_mesh_meet)
TB_EXTERN void tb_mesh_meet(tb_mesh_job *j, tb_mesh_facing *facing, tb_mesh_place triangles);
/* Adds the points of all triangles that may meet, in the order of the tree. */
#define tb_mesh_walk TB_SYMBOL(tb_mesh_walk)
TB_EXTERN void tb_mesh_walk(tb_mesh_job *j);

/* How a triangle lies to the centre of a convex shape. */
typedef struct tb_mesh_nearest {
    tb_real distance, height; /* m; height: over the triangle's plane */
    int32_t triangle;         /* -1: none */
} tb_mesh_nearest;

#define tb_mesh_near_centre TB_SYMBOL(tb_mesh_near_centre)
TB_EXTERN tb_mesh_nearest tb_mesh_near_centre(const tb_mesh_job *j, int32_t triangle);
/* Keeps the nearer of two: where several share the nearest point, the one most across the way tells
 * inside from outside. */
TB_FN void tb_mesh_nearer(tb_mesh_nearest *best, const tb_mesh_nearest *other, tb_real noise)
{
    const bool farther = other->distance > best->distance + noise;
    const bool level =
        other->distance > best->distance - noise && tb_abs(other->height) <= tb_abs(best->height);
    if (best->triangle < 0 || !(farther || level)) *best = *other;
}
/* Where the centre lies inside the mesh: points that push the shape out through the surface nearest
 * to it, in place of all others. False where it does not, or memory is refused. */
#define tb_mesh_push_out TB_SYMBOL(tb_mesh_push_out)
TB_EXTERN bool tb_mesh_push_out(tb_mesh_job *j, const tb_mesh_nearest *nearest);

/* ---- points of one triangle ---- */

/* Adds the points of one triangle: against `polytope`, which may be a triangle of another mesh, and
 * against a round core. Both note in `behind` that the centre is behind a triangle that is met. */
#define tb_mesh_triangle_and_polytope TB_SYMBOL(tb_mesh_triangle_and_polytope)
TB_EXTERN void tb_mesh_triangle_and_polytope(tb_mesh_job *j, const tb_mesh_triangle *t);
#define tb_mesh_triangle_and_round TB_SYMBOL(tb_mesh_triangle_and_round)
TB_EXTERN void tb_mesh_triangle_and_round(tb_mesh_job *j, const tb_mesh_triangle *t);

/* Adds the points along the triangle's own normal, of what the shape turns to it. lowest: the
 * vertex of `polytope` that is farthest against that normal. */
#define tb_mesh_polytope_on_triangle TB_SYMBOL(tb_mesh_polytope_on_triangle)
TB_EXTERN void tb_mesh_polytope_on_triangle(tb_mesh_job *j, const tb_mesh_triangle *t,
                                            int32_t lowest);
#define tb_mesh_round_on_triangle TB_SYMBOL(tb_mesh_round_on_triangle)
TB_EXTERN void tb_mesh_round_on_triangle(tb_mesh_job *j, const tb_mesh_triangle *t);

/* Points that one triangle can add at most, with the room that is asked for while they are made: two
 * faces of the polytope, each clipped by three sides, and corners of their own. */
TB_FN int32_t tb_mesh_most_points(const tb_mesh_job *j)
{
    return j->polyhedral ? 2 * j->largest + 12 : TB_MESH_DISC_CORNERS + 8;
}

/* ---- manifolds ---- */

/* Who touches whom: the mesh, and what else is known of the other side. */
typedef struct tb_mesh_pair {
    const tb_mesh_view *view;
    const tb_mesh_view
        *other; /* if it is a mesh too, else NULL; features are then triangle << 2 | corner */
    const tb_polytope *solid; /* if it is a box or a hull, else NULL */
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

/* For so many points; false where the arena refused. */
#define tb_mesh_desk_take TB_SYMBOL(tb_mesh_desk_take)
TB_EXTERN bool tb_mesh_desk_take(tb_mesh_desk *desk, int32_t points, tb_arena *arena);
/* The part of it for points from number `first` on. */
#define tb_mesh_desk_part TB_SYMBOL(tb_mesh_desk_part)
TB_EXTERN tb_mesh_desk tb_mesh_desk_part(const tb_mesh_desk *desk, int32_t first);

/* Compares the points of all triangles: drops what only one triangle by itself could believe, and
 * divides what is left into regions of one normal. Returns the number of these. noise: m. */
#define tb_mesh_group TB_SYMBOL(tb_mesh_group)
TB_EXTERN int32_t tb_mesh_group(tb_mesh_contact *points, int32_t count, const tb_mesh_pair *pair,
                                tb_real noise, const tb_mesh_desk *desk);
/* Points of one region after that. */
#define tb_mesh_region_size TB_SYMBOL(tb_mesh_region_size)
TB_EXTERN int32_t tb_mesh_region_size(const tb_mesh_desk *desk, int32_t number);
/* Chooses what the manifold of a region needs, TB_MANIFOLD_POINTS of its points at most. together:
 * all lanes of a team call it for the same one. */
#define tb_mesh_choose TB_SYMBOL(tb_mesh_choose)
TB_EXTERN void tb_mesh_choose(const tb_mesh_contact *points, tb_real noise,
                              const tb_mesh_desk *desk, int32_t number, bool together);
/* Puts the manifolds of so many regions into desk->result, in order; returns how many points. */
#define tb_mesh_gather TB_SYMBOL(tb_mesh_gather)
TB_EXTERN int32_t tb_mesh_gather(const tb_mesh_contact *points, const tb_mesh_desk *desk,
                                 int32_t number);
/* One of these points as the pair's. */
#define tb_mesh_point TB_SYMBOL(tb_mesh_point)
TB_EXTERN tb_contact_point tb_mesh_point(const tb_mesh_task *task, const tb_mesh_contact *c);

/* The part of a height field inside a box of its frame (and a ring of cells around it), as a mesh
 * from the arena: the surface, and where the part reaches them the sides and the bottom. Triangle
 * numbers are those of the part; `names` gets the numbers in the whole field. False where the
 * arena refused. */
#define tb_field_part TB_SYMBOL(tb_field_part)
TB_EXTERN bool tb_field_part(const tb_height_field *field, const double lower[3],
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

/* The box of a triangle in its mesh's frame. */
TB_FN void tb_mesh_triangle_bounds(const tb_triangle_mesh *mesh, int32_t t, double lower[3],
                                   double upper[3])
{
    const int32_t *v = &mesh->triangles[3 * t];
    for (int k = 0; k < 3; k++) {
        const double a = mesh->vertices[3 * v[0] + k], b = mesh->vertices[3 * v[1] + k];
        const double c = mesh->vertices[3 * v[2] + k];
        lower[k] = fmin(a, fmin(b, c));
        upper[k] = fmax(a, fmax(b, c));
    }
}

/* The box of a box in another frame, where it is turned by `rotation` and moved by `shift`; `grow`
 * (m) is added on every side. */
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

#endif
