/* The patch of a convex shape that faces a direction: a point, a segment, a disc or a polygon.
 * Two shapes touch along a common normal on the overlap of their patches. */
#ifndef TB_COLLIDE_PATCH_H
#define TB_COLLIDE_PATCH_H

#include "collide/convex/box_box.h"
#include "collide/convex/closest.h"

typedef enum tb_patch_kind {
    TB_PATCH_POINT,
    TB_PATCH_SEGMENT,
    TB_PATCH_DISC,
    TB_PATCH_POLYGON /* counter-clockwise seen from outside */
} tb_patch_kind;

typedef struct tb_patch {
    tb_patch_kind kind;
    int count;                 /* corners; DISC: its four fixed points */
    tb_vec3 p[TB_CLIP_FACE];   /* m, on the surface, relative to the common origin */
    uint32_t id[TB_CLIP_FACE]; /* numbers of the vertices, without their kind */
    uint32_t face;             /* feature of the whole patch */
    tb_vec3 normal;            /* unit, outward: DISC and POLYGON */
    tb_vec3 centre, ax, ay;    /* DISC: middle and unit axes in its plane */
    tb_real radius;            /* DISC */
} tb_patch;

/* A vertical capsule counts as a point: cosine above which the upper end is dropped. */
#define TB_PATCH_UPRIGHT TB_R(0.8)

TB_FN void tb_patch_box(const tb_core *core, tb_vec3 d, tb_patch *p)
{
    const tb_real h[3] = {core->size.x, core->size.y, core->size.z};
    const tb_real c[3] = {d.x, d.y, d.z};
    int axis = 0;
    if (tb_abs(d.y) > tb_abs(d.x) + TB_COLLIDE_FLAT) axis = 1;
    if (tb_abs(d.z) > tb_abs(c[axis]) + TB_COLLIDE_FLAT) axis = 2;
    const int positive = c[axis] > 0;
    const tb_vec3 column = tb_m33_column(core->rotation, axis);
    p->kind = TB_PATCH_POLYGON;
    p->normal = positive ? column : tb_v3_negate(column);
    p->face = tb_box_face_feature(axis, positive);
    p->count = 4;
    for (int k = 0; k < 4; k++) {
        const uint32_t corner = tb_box_face_corner(axis, positive, k);
        const tb_vec3 local =
            tb_v3(corner & 1 ? h[0] : -h[0], corner & 2 ? h[1] : -h[1], corner & 4 ? h[2] : -h[2]);
        p->p[k] = tb_v3_add(core->centre, tb_m33_mul_v3(core->rotation, local));
        p->id[k] = corner;
    }
}

TB_FN void tb_patch_hull(const tb_core *core, tb_vec3 d, tb_patch *p)
{
    const tb_hull *hull = core->hull;
    const int32_t f = tb_hull_face_towards(hull, d, core->last);
    const int32_t start = hull->face_start[f], size = hull->face_start[f + 1] - start;
    const int32_t stride = 1 + (size - 1) / TB_CLIP_FACE; /* larger faces are thinned */
    p->kind = TB_PATCH_POLYGON;
    p->normal = tb_m33_mul_v3(core->rotation, tb_v3_load(&hull->planes[4 * f]));
    p->face = TB_FEATURE_FACE | (uint32_t)f;
    p->count = 0;
    for (int32_t k = 0; k < size; k += stride) {
        const int32_t v = hull->face_vertices[start + k];
        p->id[p->count] = (uint32_t)v;
        p->p[p->count++] = tb_v3_add(
            core->centre, tb_m33_mul_v3(core->rotation, tb_v3_load(&hull->vertices[3 * v])));
    }
}

/* both rims' lowest points, or a cap */
TB_FN void tb_patch_cylinder(const tb_core *core, tb_vec3 d, tb_patch *p)
{
    const tb_real radius = core->size.x, half = core->size.y;
    const tb_vec3 axis = tb_m33_column(core->rotation, 2);
    const tb_vec3 ax = tb_m33_column(core->rotation, 0), ay = tb_m33_column(core->rotation, 1);
    if (tb_abs(d.z) > TB_PATCH_CAP) {
        const uint32_t cap = d.z > 0 ? 1u : 0u;
        const tb_real side = cap ? TB_R(1) : TB_R(-1);
        p->kind = TB_PATCH_DISC;
        p->normal = tb_v3_scale(axis, side);
        p->centre = tb_v3_add_scaled(core->centre, axis, side * half);
        p->ax = ax;
        p->ay = ay;
        p->radius = radius;
        p->face = TB_FEATURE_FACE | cap;
        p->count = 4;
        for (uint32_t k = 0; k < 4; k++) {
            p->p[k] = tb_v3_add_scaled(p->centre, k & 2 ? ay : ax, k & 1 ? -radius : radius);
            p->id[k] = (cap << 2) | k;
        }
        return;
    }
    const tb_vec3 u = tb_v3_normalize(tb_v3(d.x, d.y, 0), tb_v3(1, 0, 0));
    const tb_vec3 radial = tb_v3_add(tb_v3_scale(ax, u.x), tb_v3_scale(ay, u.y));
    const tb_vec3 foot = tb_v3_add_scaled(core->centre, radial, radius);
    p->kind = TB_PATCH_SEGMENT;
    p->count = 2;
    p->face = TB_FEATURE_FACE | 2;
    for (uint32_t k = 0; k < 2; k++) {
        p->p[k] = tb_v3_add_scaled(foot, axis, k ? half : -half);
        p->id[k] = 8 + k;
    }
}

/* The patch that faces the unit direction `out`. */
TB_FN_LARGE void tb_patch_of(tb_core *core, tb_vec3 out, tb_patch *p)
{
    const tb_vec3 d = tb_m33_tmul_v3(core->rotation, out);
    p->normal = out;
    if (core->type == TB_SHAPE_BOX) {
        tb_patch_box(core, d, p);
    } else if (core->type == TB_SHAPE_CONVEX && core->hull->number_of_faces > 0) {
        tb_patch_hull(core, d, p);
    } else if (core->type == TB_SHAPE_CYLINDER) {
        tb_patch_cylinder(core, d, p);
    } else if (core->type == TB_SHAPE_CAPSULE && tb_abs(d.z) < TB_PATCH_UPRIGHT) {
        const tb_vec3 axis = tb_m33_column(core->rotation, 2);
        const tb_vec3 foot = tb_v3_add_scaled(core->centre, out, core->radius);
        p->kind = TB_PATCH_SEGMENT;
        p->count = 2;
        p->face = TB_FEATURE_FACE;
        for (uint32_t k = 0; k < 2; k++) {
            p->p[k] = tb_v3_add_scaled(foot, axis, k ? core->size.y : -core->size.y);
            p->id[k] = k;
        }
    } else {
        uint32_t id;
        const tb_vec3 s = tb_core_support(core, out, &id);
        p->kind = TB_PATCH_POINT;
        p->count = 1;
        p->face = TB_FEATURE_SURFACE;
        p->p[0] = tb_v3_add_scaled(s, out, core->radius);
        p->id[0] = id;
    }
}

/* The edge of the core that is extreme along `out` and perpendicular to it: 0 if only a point is
 * extreme. */
TB_FN_LARGE int tb_patch_edge(tb_core *core, tb_vec3 out, tb_patch *p)
{
    const tb_vec3 d = tb_m33_tmul_v3(core->rotation, out);
    uint32_t id = 0;
    const tb_vec3 s = tb_core_support(core, out, &id);
    p->kind = TB_PATCH_SEGMENT;
    p->count = 2;
    p->face = TB_FEATURE_SURFACE;
    p->normal = out;
    if (core->type == TB_SHAPE_CAPSULE || core->type == TB_SHAPE_CYLINDER) {
        if (!(tb_abs(d.z) < TB_COLLIDE_SIDE_BY_SIDE)) return 0;
        tb_patch_of(core, out, p);
        return 1;
    }
    if (core->type == TB_SHAPE_BOX) {
        const tb_real c[3] = {tb_abs(d.x), tb_abs(d.y), tb_abs(d.z)};
        const int axis = c[0] <= c[1] && c[0] <= c[2] ? 0 : (c[1] <= c[2] ? 1 : 2);
        if (!(c[axis] < TB_COLLIDE_SIDE_BY_SIDE)) return 0;
        const tb_vec3 along = tb_m33_column(core->rotation, axis);
        const uint32_t bit = 1u << axis;
        const tb_real length = 2 * tb_v3_at(core->size, axis);
        p->p[0] = id & bit ? tb_v3_add_scaled(s, along, -length) : s;
        p->p[1] = id & bit ? s : tb_v3_add_scaled(s, along, length);
        p->id[0] = id & ~bit;
        p->id[1] = id | bit;
        return 1;
    }
    if (core->type != TB_SHAPE_CONVEX || !core->hull->neighbour_start) return 0;
    const double *from = &core->hull->vertices[3 * id];
    int32_t best = -1;
    tb_real least = TB_COLLIDE_SIDE_BY_SIDE;
    for (int32_t k = core->hull->neighbour_start[id]; k < core->hull->neighbour_start[id + 1];
         k++) {
        const int32_t v = core->hull->neighbours[k];
        const tb_vec3 e = tb_v3_sub(tb_v3_load(&core->hull->vertices[3 * v]), tb_v3_load(from));
        const tb_real sine = tb_abs(tb_v3_dot(d, tb_v3_normalize(e, d)));
        if (sine < least) least = sine, best = v;
    }
    if (best < 0) return 0;
    const tb_vec3 other = tb_v3_add(
        core->centre, tb_m33_mul_v3(core->rotation, tb_v3_load(&core->hull->vertices[3 * best])));
    const int first = id < (uint32_t)best;
    p->p[0] = first ? s : other;
    p->p[1] = first ? other : s;
    p->id[0] = first ? id : (uint32_t)best;
    p->id[1] = first ? (uint32_t)best : id;
    return 1;
}

#endif
