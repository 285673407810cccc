/* Collision detection: pairs of shapes that may touch, with contact points, normals and gaps.
 *
 * The two phases are independent. The broad phase turns boxes into pairs; the narrow phase turns
 * a pair of posed shapes into contact points. Neither keeps state between steps. The feature id
 * of a point depends on the shapes' topology alone, so the contact cache finds the impulse of
 * the last step by it. */
#ifndef TB_COLLIDE_H
#define TB_COLLIDE_H

#include "base/base.h"
#include "model/model.h"

/* ---- narrow phase ---- */

/* One shape at one instant. Borrows the model's geometry. */
typedef struct tb_posed_shape {
    tb_shape_type type;
    tb_vec3 size;        /* m, see tb_shape_type; CONVEX: radius of a ball rolled over it */
    tb_pose pose;        /* shape frame in the world */
    const tb_hull *hull; /* TB_SHAPE_CONVEX */
    const tb_triangle_mesh *mesh; /* TB_SHAPE_MESH */
    const tb_height_field *field; /* TB_SHAPE_HEIGHT_FIELD */
} tb_posed_shape;

/* Radius of the ball that is rolled over a polytope, m; 0 for other shapes. */
TB_FN tb_real tb_rolled_radius(const tb_posed_shape *shape)
{
    return shape->type == TB_SHAPE_CONVEX ? shape->size.x : 0;
}

typedef struct tb_contact_point {
    tb_vec3 normal;   /* unit, from A to B, world */
    tb_vec3 point_a;  /* m, on the surface of A, world */
    tb_vec3 point_b;  /* m, on the surface of B: point_a + gap normal */
    tb_real gap;      /* m, negative in penetration */
    uint64_t feature; /* stable while the same features touch; unique within the pair */
} tb_contact_point;

enum {
    TB_MANIFOLD_POINTS = 8,   /* most points of one convex pair */
    TB_CONTACT_DEGENERATE = 1 /* flag: a point had no well-defined normal and has a fallback */
};

/* All contact points of a pair with gap <= margin. Writes at most `capacity` points and returns
 * the total number: if that is larger, the caller grows the array and calls again. Convex pairs
 * give at most TB_MANIFOLD_POINTS; meshes and height fields any number (each face region reduced
 * to a manifold). The order of points is a function of the input alone. `flags` gets
 * TB_CONTACT_DEGENERATE or'ed in. Mesh pairs use `scratch` and return it to its mark. Returns -1
 * if scratch memory is refused. */
#define tb_collide_pair TB_SYMBOL(tb_collide_pair)
TB_EXTERN int32_t tb_collide_pair(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                  tb_contact_point *points, int32_t capacity, tb_arena *scratch,
                                  uint32_t *flags);

/* The same for convex pairs (neither shape a MESH or HEIGHT_FIELD); mesh pairs also use it per
 * triangle, with the triangle as a flat hull. */
#define tb_collide_convex TB_SYMBOL(tb_collide_convex)
TB_EXTERN int32_t tb_collide_convex(const tb_posed_shape *a, const tb_posed_shape *b,
                                    tb_real margin, tb_contact_point points[TB_MANIFOLD_POINTS],
                                    uint32_t *flags);

/* The same with the caller's scratch for shapes that overlap, so that many pairs can share it.
 * With NULL, a pair that needs scratch gives TB_COLLIDE_NO_ROOM and no points. */
typedef struct tb_epa tb_epa;
enum { TB_COLLIDE_NO_ROOM = -1 };
#define tb_collide_convex_in TB_SYMBOL(tb_collide_convex_in)
TB_EXTERN int32_t tb_collide_convex_in(const tb_posed_shape *a, const tb_posed_shape *b,
                                       tb_real margin, tb_contact_point points[TB_MANIFOLD_POINTS],
                                       uint32_t *flags, tb_epa *room);

/* The same stage by stage, so that lanes whose pairs are in the same stage go together: after
 * TB_COLLIDE_WAITS the caller asks again with the same search. A search begins with TB_SEARCH_FACES, and may lie where
 * the points will be. The last stage, of shapes that overlap, begins and waits again until there is a room. */
typedef struct tb_search tb_search;
enum { TB_COLLIDE_WAITS = -2 };
#define tb_collide_convex_stage TB_SYMBOL(tb_collide_convex_stage)
TB_EXTERN int32_t tb_collide_convex_stage(const tb_posed_shape *a, const tb_posed_shape *b,
                                          tb_real margin,
                                          tb_contact_point points[TB_MANIFOLD_POINTS],
                                          uint32_t *flags, tb_epa *room, tb_search *search);

/* The same for mesh pairs: at least one shape is a MESH or HEIGHT_FIELD. Contract of
 * tb_collide_pair. */
#define tb_collide_mesh TB_SYMBOL(tb_collide_mesh)
TB_EXTERN int32_t tb_collide_mesh(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                  tb_contact_point *points, int32_t capacity, tb_arena *scratch,
                                  uint32_t *flags);

#ifdef TB_DEVICE
/* The same for many pairs by a team of lanes (base/team.h), with the results of tb_collide_mesh.
 * The arena holds the points pair after pair; the questions are in shared memory.
 * RESOURCE_EXHAUSTED if memory is refused. */
typedef struct tb_mesh_question {
    const tb_posed_shape *a, *b;
    tb_real margin; /* m */
    /* the answer */
    tb_contact_point *points;
    int32_t first, count; /* index of the first point among the points of all pairs */
} tb_mesh_question;

#define tb_collide_meshes TB_SYMBOL(tb_collide_meshes)
TB_EXTERN tb_status tb_collide_meshes(tb_mesh_question *asked, int32_t number, tb_arena *arena,
                                      uint32_t *flags);
#endif

/* Signed distance of two convex shapes with witness points, by GJK and EPA: used by every pair
 * without a closed form, and the test oracle of the others. Returns the gap; normal from A to B. */
#define tb_convex_distance TB_SYMBOL(tb_convex_distance)
TB_EXTERN tb_real tb_convex_distance(const tb_posed_shape *a, const tb_posed_shape *b,
                                     tb_vec3 *normal, tb_vec3 *point_a, tb_vec3 *point_b,
                                     uint32_t *flags);

/* World-axis box of a posed shape, not enlarged.
 * Planes and unbounded shapes give +-TB_REAL_MAX / 4. */
typedef struct tb_box {
    tb_vec3 lower, upper;
} tb_box;

#define tb_shape_box TB_SYMBOL(tb_shape_box)
TB_EXTERN tb_box tb_shape_box(const tb_posed_shape *shape);

/* Whether that box is found by climbs over the vertices of a hull ... */
#define tb_shape_is_climbed TB_SYMBOL(tb_shape_is_climbed)
TB_EXTERN bool tb_shape_is_climbed(const tb_posed_shape *shape);
/* ... one for each of its bounds, k: lower.x, y, z, then the upper ones. */
#define tb_hull_bound TB_SYMBOL(tb_hull_bound)
TB_EXTERN tb_real tb_hull_bound(const tb_posed_shape *shape, int32_t k);

/* A box that contains the shape: for a hull, the box of its bounding box, without reading
 * vertices. *tight: the result equals tb_shape_box. */
#define tb_shape_loose_box TB_SYMBOL(tb_shape_loose_box)
TB_EXTERN tb_box tb_shape_loose_box(const tb_posed_shape *shape, bool *tight);

/* Closed boxes: touching counts as overlap. */
TB_FN bool tb_box_overlap(const tb_box *a, const tb_box *b)
{
    return a->lower.x <= b->upper.x && b->lower.x <= a->upper.x && a->lower.y <= b->upper.y &&
           b->lower.y <= a->upper.y && a->lower.z <= b->upper.z && b->lower.z <= a->upper.z;
}

/* The same without branches, for unpredictable pairs. */
TB_FN bool tb_box_overlap_likely(const tb_box *a, const tb_box *b)
{
    return (a->lower.x <= b->upper.x) & (b->lower.x <= a->upper.x) & (a->lower.y <= b->upper.y) &
           (b->lower.y <= a->upper.y) & (a->lower.z <= b->upper.z) & (b->lower.z <= a->upper.z);
}

/* Whether the box is finite and lower <= upper. */
TB_FN bool tb_box_valid(const tb_box *b)
{
    return (b->lower.x >= -TB_REAL_MAX) & (b->lower.y >= -TB_REAL_MAX) &
           (b->lower.z >= -TB_REAL_MAX) & (b->upper.x <= TB_REAL_MAX) &
           (b->upper.y <= TB_REAL_MAX) & (b->upper.z <= TB_REAL_MAX) & (b->lower.x <= b->upper.x) &
           (b->lower.y <= b->upper.y) & (b->lower.z <= b->upper.z);
}

/* ---- broad phase ---- */

typedef struct tb_pair {
    int32_t a, b; /* a < b */
} tb_pair;

/* Returns whether a pair of boxes may collide (masks, same body, excludes). Must be pure; the
 * order of calls is arbitrary. */
typedef bool tb_pair_filter(const void *context, int32_t a, int32_t b);

/* Every pair of overlapping boxes (closed) that passes the filter (NULL: all), a < b, sorted by
 * (a, b), without duplicates, taken from the arena; *pairs and *count are set. Sorted Morton
 * intervals (Göteman and Roxling 3.8, A9 to A12): 21 bits an axis, cell size from the boxes'
 * statistics, 1 to 8 intervals a box. Boxes far larger than a cell are tested against all others
 * instead. Few boxes are tested by brute force, which is faster; the result is the same.
 * RESOURCE_EXHAUSTED if the arena refuses; INVALID_ARGUMENT for boxes that are not finite. */
#define tb_broad_phase TB_SYMBOL(tb_broad_phase)
TB_EXTERN tb_status tb_broad_phase(const tb_box *boxes, int32_t number_of_boxes,
                                   tb_pair_filter *filter, const void *context, int32_t threads,
                                   tb_arena *arena, tb_pair **pairs, int32_t *count);

/* The test oracle: the same by comparing every box with every other. */
#define tb_broad_phase_brute TB_SYMBOL(tb_broad_phase_brute)
TB_EXTERN tb_status tb_broad_phase_brute(const tb_box *boxes, int32_t number_of_boxes,
                                         tb_pair_filter *filter, const void *context,
                                         tb_arena *arena, tb_pair **pairs, int32_t *count);

/* The intervals of one box, for tests and benchmarks: writes up to 8 (start, end) codes, returns
 * their number. cell: edge of the smallest cell, m; origin: corner of the grid. */
#define tb_morton_intervals TB_SYMBOL(tb_morton_intervals)
TB_EXTERN int32_t tb_morton_intervals(const tb_box *box, tb_vec3 origin, tb_real cell,
                                      uint64_t start[8], uint64_t end[8]);

#endif
