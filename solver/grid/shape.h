/* Signed distances of the shapes that soft bodies and obstacles have at rest: negative inside, m.
 *
 * A shape has a pose: a point x of the world is R' (x - p) in the shape's frame. Axes of cylinders and
 * capsules are the frame's z. The distance changes by at most |dx|, which the cut of cells uses. */
#ifndef TB_SOFT_SHAPE_H
#define TB_SOFT_SHAPE_H

#include "grid/mesh/samples.h"

typedef enum tb_soft_shape_kind {
    TB_SOFT_BOX,       /* size: half lengths */
    TB_SOFT_SPHERE,    /* size[0]: radius */
    TB_SOFT_CYLINDER,  /* size[0]: radius, size[1]: half length */
    TB_SOFT_CAPSULE,   /* size[0]: radius, size[1]: half length of the axis */
    TB_SOFT_PLANE,     /* the half-space z <= 0; obstacles only */
    TB_SOFT_ELLIPSOID, /* size: semi-axes; obstacles only */
    TB_SOFT_HULL,      /* a convex polyhedron; size: half lengths of its box; obstacles only */
    TB_SOFT_MESH       /* a closed mesh (mesh/mesh.h); size: half lengths of its box; bodies only */
} tb_soft_shape_kind;

typedef struct tb_soft_solid {
    tb_soft_shape_kind kind;
    double size[3]; /* m */
    tb_pose pose;
    /* of a hull, borrowed: outward normal n and offset d with n.x = d a face; its box's centre */
    const double *planes;
    int32_t number_of_planes;
    double middle[3];        /* m; of a mesh, too */
    tb_soft_samples samples; /* of a mesh, borrowed */
    double volume;           /* m^3, of a mesh */
} tb_soft_solid;

enum { TB_SOFT_SIDES = 3 };

/* Signed distances to the smooth sides whose intersection the shape is: three pairs of a box's faces,
 * a cylinder's wall and ends, else one. Returns how many. */
TB_FN int tb_soft_sides(const tb_soft_solid *s, const double world[3], double side[3])
{
    const tb_vec3 x = tb_pose_inverse_point(&s->pose, tb_v3_load(world));
    const double *size = s->size;
    switch (s->kind) {
    case TB_SOFT_BOX:
        side[0] = tb_abs(x.x) - size[0];
        side[1] = tb_abs(x.y) - size[1];
        side[2] = tb_abs(x.z) - size[2];
        return 3;
    case TB_SOFT_SPHERE: side[0] = tb_v3_length(x) - size[0]; return 1;
    case TB_SOFT_CYLINDER:
        side[0] = sqrt(x.x * x.x + x.y * x.y) - size[0];
        side[1] = tb_abs(x.z) - size[1];
        return 2;
    case TB_SOFT_CAPSULE: {
        const double along = x.z - tb_max(-size[1], tb_min(x.z, size[1]));
        side[0] = sqrt(x.x * x.x + x.y * x.y + along * along) - size[0];
        return 1;
    }
    case TB_SOFT_ELLIPSOID: {
        /* f / |grad f| of the level set f = |x / a| - 1, times |x / a|: exact to first order at
         * the surface */
        const tb_vec3 p = tb_v3(x.x / size[0], x.y / size[1], x.z / size[2]);
        const tb_vec3 g = tb_v3(p.x / size[0], p.y / size[1], p.z / size[2]);
        const double level = tb_v3_length(p), slope = tb_v3_length(g);
        const double least = tb_min(size[0], tb_min(size[1], size[2]));
        side[0] = slope > 0 ? level * (level - 1) / slope : -least;
        return 1;
    }
    case TB_SOFT_HULL:
        side[0] = -1e300;
        for (int32_t i = 0; i < s->number_of_planes; i++) {
            const double *n = s->planes + 4 * i;
            side[0] = tb_max(side[0], n[0] * x.x + n[1] * x.y + n[2] * x.z - n[3]);
        }
        return 1;
    case TB_SOFT_MESH: side[0] = tb_soft_sample(&s->samples, x); return 1;
    case TB_SOFT_PLANE: break;
    }
    side[0] = x.z;
    return 1;
}

/* The distance to the shape: sides are orthogonal where they meet. */
TB_FN double tb_soft_distance(const tb_soft_solid *s, const double world[3])
{
    double side[TB_SOFT_SIDES], inside = -1e300, outside = 0;
    const int n = tb_soft_sides(s, world, side);
    for (int i = 0; i < n; i++) {
        inside = tb_max(inside, side[i]);
        outside += tb_max(side[i], 0.0) * tb_max(side[i], 0.0);
    }
    return inside > 0 ? sqrt(outside) : inside;
}

/* m^3 */
TB_FN double tb_soft_volume(const tb_soft_solid *s)
{
    const double pi = 3.14159265358979323846, *size = s->size;
    switch (s->kind) {
    case TB_SOFT_BOX: return 8 * size[0] * size[1] * size[2];
    case TB_SOFT_SPHERE: return 4 * pi / 3 * size[0] * size[0] * size[0];
    case TB_SOFT_CYLINDER: return 2 * pi * size[0] * size[0] * size[1];
    case TB_SOFT_CAPSULE: return pi * size[0] * size[0] * (2 * size[1] + 4.0 / 3 * size[0]);
    case TB_SOFT_MESH: return s->volume;
    case TB_SOFT_PLANE:
    case TB_SOFT_ELLIPSOID:
    case TB_SOFT_HULL: break;
    }
    return 0;
}

#endif
