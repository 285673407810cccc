/* What the files of the mesh half share. */
#ifndef TB_MESH_INTERNAL_H
#define TB_MESH_INTERNAL_H

#include "collide/convex_pair.h"
#include "collide/mesh_pair.h"

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

/* One pair at work. */
typedef struct tb_mesh_job {
    const tb_posed_shape *other; /* the shape that is not `view`'s mesh */
    tb_vec3 origin; /* m, world: that shape's position, or the mesh's against a plane */
    tb_mesh_view view;
    tb_core core;              /* of `other`, unless it is a mesh */
    tb_vec3 centre;            /* m: a point inside `other`, or of its plane */
    tb_polytope polytope;      /* boxes and hulls; one triangle at a time of a mesh */
    bool polyhedral;           /* that `polytope` holds */
    tb_epa *room;              /* scratch of cores that overlap */
    tb_real margin, noise;     /* m */
    double lower[3], upper[3]; /* box of `other` in the mesh's frame, with the margin */
    tb_mesh_corner *from, *to; /* clipping: room for the largest face and 8 */
    tb_mesh_points points;
    bool behind; /* some triangle has the centre behind it */
    uint32_t flags;
} tb_mesh_job;

/* Room for clipping faces of up to so many corners; false where the arena refused. */
#define tb_mesh_job_buffers TB_SYMBOL(tb_mesh_job_buffers)
TB_EXTERN bool tb_mesh_job_buffers(tb_mesh_job *j, int32_t largest_face);

/* Makes `polytope` of the box or hull that `core` is, with the buffers for its faces; false where
 * the arena refused. */
#define tb_mesh_solid_of_box TB_SYMBOL(tb_mesh_solid_of_box)
TB_EXTERN bool tb_mesh_solid_of_box(tb_mesh_job *j);
#define tb_mesh_solid_of_hull TB_SYMBOL(tb_mesh_solid_of_hull)
TB_EXTERN bool tb_mesh_solid_of_hull(tb_mesh_job *j);

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

/* Adds the points of the whole mesh against the other side; a refusing arena sets
 * `points.failed`. */
#define tb_mesh_against_convex TB_SYMBOL(tb_mesh_against_convex)
TB_EXTERN void tb_mesh_against_convex(tb_mesh_job *j);
#define tb_mesh_against_plane TB_SYMBOL(tb_mesh_against_plane)
TB_EXTERN void tb_mesh_against_plane(tb_mesh_job *j);
#define tb_mesh_against_mesh TB_SYMBOL(tb_mesh_against_mesh)
TB_EXTERN void tb_mesh_against_mesh(tb_mesh_job *j, const tb_mesh_view *view);

/* Who touches whom: the mesh, and what else is known of the other side. */
typedef struct tb_mesh_pair {
    const tb_mesh_view *view;
    const tb_mesh_view
        *other; /* if it is a mesh too, else NULL; features are then triangle << 2 | corner */
    const tb_polytope *solid; /* if it is a box or a hull, else NULL */
} tb_mesh_pair;

/* Compares the points of all triangles and keeps what a manifold needs: drops what only one
 * triangle by itself could believe, merges, reduces every region of one normal to at most
 * TB_MANIFOLD_POINTS. The points that are kept stand first, in order; returns how many, -1 where
 * the arena refused. noise: m. */
#define tb_mesh_reduce TB_SYMBOL(tb_mesh_reduce)
TB_EXTERN int32_t tb_mesh_reduce(tb_mesh_points *points, const tb_mesh_pair *pair, tb_real noise);

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
