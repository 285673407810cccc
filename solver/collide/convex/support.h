/* Convex shapes as their support functions: the farthest point along a direction.
 *
 * A sphere is a point and a capsule a segment, each with a radius around it; the radius is added in
 * closed form afterwards, so their distances are as exact as those of polytopes. Coordinates are in
 * world axes relative to a common origin near both shapes, so that a scene far from the world's
 * origin loses no digits. */
#ifndef TB_COLLIDE_SUPPORT_H
#define TB_COLLIDE_SUPPORT_H

#include "collide/manifold.h"

typedef struct tb_core {
    tb_shape_type type;
    tb_vec3 size;
    tb_vec3 centre;           /* of the shape frame, relative to the common origin, m */
    tb_vec3 inside;           /* m, a point inside the shape, relative to the common origin */
    const tb_mat33 *rotation; /* shape frame to world axes */
    const tb_hull *hull;
    tb_real radius; /* m, around the core */
    tb_real extent; /* m, largest distance of the core from its inside point: scales tolerances */
    int32_t last;   /* hull: last vertex found, the start of the next climb */
} tb_core;

/* hulls of fewer vertices are scanned, others climbed */
enum { TB_HULL_SCAN = 24 };

TB_FN_LARGE tb_core tb_core_of(const tb_posed_shape *shape, tb_vec3 origin)
{
    tb_core c;
    c.type = shape->type;
    c.size = shape->size;
    c.centre = tb_v3_sub(shape->pose.position, origin);
    c.inside = c.centre;
    c.rotation = &shape->pose.rotation;
    c.hull = shape->hull;
    c.radius = 0;
    c.extent = 0;
    c.last = 0;
    if (shape->type == TB_SHAPE_SPHERE) {
        c.radius = shape->size.x;
    } else if (shape->type == TB_SHAPE_CAPSULE) {
        c.radius = shape->size.x;
        c.extent = shape->size.y;
    } else if (shape->type == TB_SHAPE_CYLINDER) {
        c.extent = shape->size.x + shape->size.y;
    } else if (shape->type == TB_SHAPE_CONVEX) {
        const tb_vec3 middle = tb_v3_load(shape->hull->centre);
        c.inside = tb_v3_add(c.centre, tb_m33_mul_v3(c.rotation, middle));
        for (int k = 0; k < 3; k++) { /* a few vertices estimate the size well enough */
            const int32_t v = (shape->hull->number_of_vertices - 1) * k / 2;
            const tb_vec3 d = tb_v3_sub(tb_v3_load(&shape->hull->vertices[3 * v]), middle);
            c.extent = tb_max(c.extent, tb_abs(d.x) + tb_abs(d.y) + tb_abs(d.z));
        }
    } else {
        c.extent = shape->size.x + shape->size.y + shape->size.z;
    }
    return c;
}

/* whether the core has a curved surface, so that its extreme points move smoothly */
TB_FN int tb_core_curved(const tb_core *core)
{
    return core->type == TB_SHAPE_CYLINDER || core->type == TB_SHAPE_ELLIPSOID;
}

/* The vertex farthest along a local direction. Of equally far vertices a scan prefers `from`,
 * then the first; a climb ends at the first one that it reaches, which depends on the direction
 * alone if the hull has starts. */
TB_FN int32_t tb_hull_support(const tb_hull *hull, tb_vec3 local, int32_t from)
{
    const tb_real dx = local.x, dy = local.y, dz = local.z;
    const bool climbs = hull->number_of_vertices >= TB_HULL_SCAN && hull->climb_start;
    int32_t best = climbs && hull->starts ? hull->starts[tb_hull_cell(local, hull->cells)] : from;
    const double *v = &hull->vertices[3 * best];
    tb_real most = dx * TB_R(v[0]) + dy * TB_R(v[1]) + dz * TB_R(v[2]);
    if (!climbs) {
        for (int32_t i = 0; i < hull->number_of_vertices; i++) {
            v = &hull->vertices[3 * i];
            const tb_real s = dx * TB_R(v[0]) + dy * TB_R(v[1]) + dz * TB_R(v[2]);
            if (s > most) most = s, best = i;
        }
        return best;
    }
    /* a linear function on a convex polyhedron has no local maximum but the global one */
    for (int32_t step = 0; step < hull->number_of_vertices; step++) {
        int32_t next = best;
        for (int32_t k = hull->climb_start[best]; k < hull->climb_start[best + 1]; k++) {
            const int32_t i = hull->climbs[k];
            v = &hull->vertices[3 * i];
            const tb_real s = dx * TB_R(v[0]) + dy * TB_R(v[1]) + dz * TB_R(v[2]);
            if (s > most) most = s, next = i;
        }
        if (next == best) break;
        best = next;
    }
    return best;
}

/* The point of the core farthest along `direction` (any length). *id: the vertex;
 * the cap of a cylinder. */
TB_FN_LARGE tb_vec3 tb_core_support(tb_core *core, tb_vec3 direction, uint32_t *id)
{
    *id = 0;
    /* read at once: a card's lane would wait for each of them, and for the rotation a second time */
    const tb_vec3 h = core->size, centre = core->centre;
    const tb_mat33 rotation = *core->rotation;
    if (core->type == TB_SHAPE_SPHERE) return centre;
    const tb_vec3 d = tb_m33_tmul_v3(&rotation, direction);
    tb_vec3 p = tb_v3(0, 0, 0);
    if (core->type == TB_SHAPE_BOX) {
        *id = (d.x > 0 ? 1u : 0u) | (d.y > 0 ? 2u : 0u) | (d.z > 0 ? 4u : 0u);
        p = tb_v3(d.x > 0 ? h.x : -h.x, d.y > 0 ? h.y : -h.y, d.z > 0 ? h.z : -h.z);
    } else if (core->type == TB_SHAPE_CONVEX) {
        core->last = tb_hull_support(core->hull, d, core->last);
        *id = (uint32_t)core->last;
        p = tb_v3_load(&core->hull->vertices[3 * core->last]);
    } else if (core->type == TB_SHAPE_CAPSULE) {
        *id = d.z > 0 ? 1u : 0u;
        p.z = d.z > 0 ? h.y : -h.y;
    } else if (core->type == TB_SHAPE_CYLINDER) {
        const tb_vec3 radial = tb_v3_normalize(tb_v3(d.x, d.y, 0), tb_v3(1, 0, 0));
        *id = d.z > 0 ? 1u : 0u;
        p = tb_v3(h.x * radial.x, h.x * radial.y, d.z > 0 ? h.y : -h.y);
    } else if (core->type == TB_SHAPE_ELLIPSOID) {
        const tb_vec3 u = tb_v3_normalize(tb_v3(h.x * d.x, h.y * d.y, h.z * d.z), tb_v3(0, 0, 0));
        p = tb_v3(h.x * u.x, h.y * u.y, h.z * u.z);
    }
    return tb_v3_add(centre, tb_m33_mul_v3(&rotation, p));
}

/* A vertex of the configuration space obstacle A - B with the points that make it. */
typedef struct tb_vertex {
    tb_vec3 w, a, b; /* w = a - b */
    uint32_t id_a, id_b;
} tb_vertex;

TB_FN tb_vertex tb_cso_support(tb_core *a, tb_core *b, tb_vec3 direction)
{
    tb_vertex v;
    v.a = tb_core_support(a, direction, &v.id_a);
    v.b = tb_core_support(b, tb_v3_negate(direction), &v.id_b);
    v.w = tb_v3_sub(v.a, v.b);
    return v;
}

/* Separation of the cores along a unit normal from A to B: positive if a plane separates them.
 * The signed distance is its largest value over all normals. */
TB_FN tb_real tb_core_separation(tb_core *a, tb_core *b, tb_vec3 normal)
{
    const tb_vertex v = tb_cso_support(a, b, normal);
    return -tb_v3_dot(normal, v.w);
}

#endif
