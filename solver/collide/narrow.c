/* The narrow phase of one pair: dispatches on the types of the two shapes. The mathematics is in
 * the headers. */
#include "collide/convex/box_box.h"
#include "collide/convex/capsule_box.h"
#include "collide/convex/convex_pair.h"
#include "collide/convex/plane_pairs.h"
#include "collide/convex/round_pairs.h"

TB_STATIC int32_t collide_plane(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                tb_contact_point *points)
{
    switch (b->type) {
    case TB_SHAPE_SPHERE: return tb_plane_sphere(a, b, margin, points);
    case TB_SHAPE_CAPSULE: return tb_plane_capsule(a, b, margin, points);
    case TB_SHAPE_CYLINDER: return tb_plane_cylinder(a, b, margin, points);
    case TB_SHAPE_BOX: return tb_plane_box(a, b, margin, points);
    case TB_SHAPE_ELLIPSOID: return tb_plane_ellipsoid(a, b, margin, points);
    case TB_SHAPE_CONVEX: return tb_plane_convex(a, b, margin, points);
    default: return 0; /* two planes never count as touching: both are static */
    }
}

TB_STATIC int32_t collide_sphere(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                 tb_contact_point *points, uint32_t *flags)
{
    switch (b->type) {
    case TB_SHAPE_SPHERE: return tb_sphere_sphere(a, b, margin, points, flags);
    case TB_SHAPE_CAPSULE: return tb_sphere_capsule(a, b, margin, points, flags);
    case TB_SHAPE_CYLINDER: return tb_sphere_cylinder(a, b, margin, points, flags);
    case TB_SHAPE_BOX: return tb_sphere_box(a, b, margin, points);
    case TB_SHAPE_ELLIPSOID: return tb_sphere_ellipsoid(a, b, margin, points, flags);
    default: return TB_COLLIDE_GENERAL;
    }
}

/* The points of two shapes by a method for their types, a->type <= b->type; or
 * TB_COLLIDE_GENERAL. */
TB_STATIC int32_t collide_by_types(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                   tb_contact_point *points, uint32_t *flags)
{
    if (a->type == TB_SHAPE_PLANE) return collide_plane(a, b, margin, points);
    if (a->type == TB_SHAPE_SPHERE) return collide_sphere(a, b, margin, points, flags);
    if (a->type == TB_SHAPE_CAPSULE && b->type == TB_SHAPE_CAPSULE)
        return tb_capsule_capsule(a, b, margin, points, flags);
    if (a->type == TB_SHAPE_CAPSULE && b->type == TB_SHAPE_CYLINDER)
        return tb_capsule_cylinder(a, b, margin, points);
    if (a->type == TB_SHAPE_CAPSULE && b->type == TB_SHAPE_BOX)
        return tb_capsule_box(a, b, margin, points, flags);
    if (a->type == TB_SHAPE_BOX && b->type == TB_SHAPE_BOX)
        return tb_box_box(a, b, margin, points, flags);
    return TB_COLLIDE_GENERAL;
}

/* a->type <= b->type */
TB_STATIC int32_t collide_ordered(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                  tb_contact_point *points, uint32_t *flags, tb_epa *room,
                                  tb_search *search)
{
    if (!search || search->next == TB_SEARCH_FACES) {
        const int32_t count = collide_by_types(a, b, margin, points, flags);
        if (count != TB_COLLIDE_GENERAL) return count;
        /* the search may lie among points that have been written meanwhile */
        if (search) search->next = TB_SEARCH_FACES;
    }
    /* the only call, so that lanes with pairs of all types go through it together */
    return tb_convex_contacts(a, b, margin, points, flags, room, search);
}

TB_EXTERN int32_t tb_collide_convex_stage(const tb_posed_shape *a, const tb_posed_shape *b,
                                          tb_real margin,
                                          tb_contact_point points[TB_MANIFOLD_POINTS],
                                          uint32_t *flags, tb_epa *room, tb_search *search)
{
    /* one call for both orders, so that lanes of either go through it together */
    const bool mirrored = a->type > b->type;
    const int32_t count =
        collide_ordered(mirrored ? b : a, mirrored ? a : b, margin, points, flags, room, search);
    if (!mirrored) return count;
    tb_contact_mirror(points, count);
    for (int32_t i = 0; i < count; i++)
        points[i].feature = (points[i].feature << 32) | (points[i].feature >> 32);
    return count;
}

TB_STATIC int32_t collide_either(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                 tb_contact_point *points, uint32_t *flags, tb_epa *room)
{
    return tb_collide_convex_stage(a, b, margin, points, flags, room, NULL);
}

/* Polytopes rolled by a ball have the contacts of the polytopes, with gaps smaller by the radius. */
TB_EXTERN int32_t tb_collide_convex_in(const tb_posed_shape *a, const tb_posed_shape *b,
                                       tb_real margin, tb_contact_point points[TB_MANIFOLD_POINTS],
                                       uint32_t *flags, tb_epa *room)
{
    const tb_real radius_a = tb_rolled_radius(a), radius_b = tb_rolled_radius(b);
    const tb_real radii = radius_a + radius_b;
    const int32_t count = collide_either(a, b, margin + radii, points, flags, room);
    for (int32_t i = 0; radii > 0 && i < count; i++) {
        tb_contact_point *p = &points[i];
        p->point_a = tb_v3_add_scaled(p->point_a, p->normal, radius_a);
        p->point_b = tb_v3_add_scaled(p->point_b, p->normal, -radius_b);
        p->gap -= radii;
    }
    return count;
}

TB_EXTERN int32_t tb_collide_convex(const tb_posed_shape *a, const tb_posed_shape *b,
                                    tb_real margin, tb_contact_point points[TB_MANIFOLD_POINTS],
                                    uint32_t *flags)
{
    tb_epa room;
    return tb_collide_convex_in(a, b, margin, points, flags, &room);
}

#ifndef TB_DEVICE /* on a device a team takes pairs with meshes: mesh_team.c */
TB_EXTERN int32_t tb_collide_pair(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                  tb_contact_point *points, int32_t capacity, tb_arena *scratch,
                                  uint32_t *flags)
{
    if (a->type >= TB_SHAPE_MESH || b->type >= TB_SHAPE_MESH)
        return tb_collide_mesh(a, b, margin, points, capacity, scratch, flags);
    if (capacity >= TB_MANIFOLD_POINTS) return tb_collide_convex(a, b, margin, points, flags);

    tb_contact_point all[TB_MANIFOLD_POINTS];
    const int32_t count = tb_collide_convex(a, b, margin, all, flags);
    for (int32_t i = 0; i < count && i < capacity; i++) points[i] = all[i];
    return count;
}
#endif

/* Plane A against the extreme point of B. */
TB_STATIC tb_real plane_distance(const tb_posed_shape *a, const tb_posed_shape *b, tb_vec3 *normal,
                                 tb_vec3 *point_a, tb_vec3 *point_b)
{
    const tb_vec3 origin = b->pose.position;
    tb_core core = tb_core_of(b, origin);
    uint32_t id;
    *normal = tb_m33_column(&a->pose.rotation, 2);
    const tb_vec3 extreme = tb_core_support(&core, tb_v3_negate(*normal), &id);
    const tb_vec3 lowest = tb_v3_add_scaled(extreme, *normal, -core.radius);
    const tb_real gap = tb_v3_dot(*normal, tb_v3_add(lowest, tb_v3_sub(origin, a->pose.position)));
    *point_b = tb_v3_add(lowest, origin);
    *point_a = tb_v3_add_scaled(*point_b, *normal, -gap);
    return gap;
}

TB_EXTERN tb_real tb_convex_distance(const tb_posed_shape *a, const tb_posed_shape *b,
                                     tb_vec3 *normal, tb_vec3 *point_a, tb_vec3 *point_b,
                                     uint32_t *flags)
{
    const tb_real radius_a = tb_rolled_radius(a), radius_b = tb_rolled_radius(b);
    tb_real gap = TB_REAL_MAX / 4;
    if (a->type == TB_SHAPE_PLANE && b->type == TB_SHAPE_PLANE) {
        *normal = tb_m33_column(&a->pose.rotation, 2);
        *point_a = a->pose.position;
        *point_b = b->pose.position;
    } else if (a->type == TB_SHAPE_PLANE) {
        gap = plane_distance(a, b, normal, point_a, point_b);
    } else if (b->type == TB_SHAPE_PLANE) {
        gap = plane_distance(b, a, normal, point_b, point_a);
        *normal = tb_v3_negate(*normal);
    } else {
        const tb_vec3 origin = a->pose.position;
        tb_core core_a = tb_core_of(a, origin), core_b = tb_core_of(b, origin);
        tb_closest c;
        tb_epa room;
        tb_closest_find(&core_a, &core_b, tb_sqrt(TB_REAL_MAX) / 8, &c, &room);
        if (c.degenerate) *flags |= TB_CONTACT_DEGENERATE;
        gap = c.separation - core_a.radius - core_b.radius;
        *normal = c.normal;
        *point_a = tb_v3_add(origin, tb_v3_add_scaled(c.on_a, c.normal, core_a.radius));
        *point_b = tb_v3_add_scaled(*point_a, c.normal, gap);
    }
    *point_a = tb_v3_add_scaled(*point_a, *normal, radius_a);
    *point_b = tb_v3_add_scaled(*point_b, *normal, -radius_b);
    return gap - radius_a - radius_b;
}

TB_EXTERN bool tb_shape_is_climbed(const tb_posed_shape *shape)
{
    return shape->type == TB_SHAPE_CONVEX && shape->hull->number_of_vertices >= TB_HULL_SCAN;
}

TB_EXTERN tb_real tb_hull_bound(const tb_posed_shape *shape, int32_t k)
{
    const tb_real *m = shape->pose.rotation.m + 3 * (k % 3), r = tb_rolled_radius(shape);
    const tb_vec3 axis = tb_v3(m[0], m[1], m[2]);
    const int32_t far = tb_hull_support(shape->hull, k < 3 ? tb_v3_negate(axis) : axis, 0);
    const tb_real bound = tb_v3_at(shape->pose.position, k % 3) +
                          tb_v3_dot(axis, tb_v3_load(&shape->hull->vertices[3 * far]));
    if (!(r > 0)) return bound;
    return k < 3 ? bound - r : bound + r;
}

TB_STATIC tb_box box_by_climbs(const tb_posed_shape *shape)
{
    tb_real bounds[6];
    TB_ROLLED
    for (int32_t k = 0; k < 6; k++) bounds[k] = tb_hull_bound(shape, k);
    tb_box box;
    box.lower = tb_v3(bounds[0], bounds[1], bounds[2]);
    box.upper = tb_v3(bounds[3], bounds[4], bounds[5]);
    return box;
}

/* The box of a box about `middle` (shape frame). */
TB_STATIC tb_box box_of_box(const tb_pose *pose, tb_vec3 middle, tb_vec3 s)
{
    const tb_real *m = pose->rotation.m;
    const tb_vec3 centre = tb_pose_point(pose, middle);
    const tb_vec3 half = tb_v3(tb_abs(m[0]) * s.x + tb_abs(m[1]) * s.y + tb_abs(m[2]) * s.z,
                               tb_abs(m[3]) * s.x + tb_abs(m[4]) * s.y + tb_abs(m[5]) * s.z,
                               tb_abs(m[6]) * s.x + tb_abs(m[7]) * s.y + tb_abs(m[8]) * s.z);
    tb_box box;
    box.lower = tb_v3_sub(centre, half);
    box.upper = tb_v3_add(centre, half);
    return box;
}

/* A box of a polytope with the radius of the ball around it. */
TB_STATIC tb_box box_with_radius(tb_box box, const tb_posed_shape *shape)
{
    const tb_real r = tb_rolled_radius(shape);
    if (!(r > 0)) return box;
    const tb_vec3 thick = tb_v3(r, r, r);
    box.lower = tb_v3_sub(box.lower, thick);
    box.upper = tb_v3_add(box.upper, thick);
    return box;
}

/* Tight box of a polytope. */
TB_STATIC tb_box box_of_hull(const tb_posed_shape *shape)
{
    if (tb_shape_is_climbed(shape)) return box_by_climbs(shape);
    const tb_real far = TB_REAL_MAX / 4;
    tb_box box;
    box.lower = tb_v3(far, far, far);
    box.upper = tb_v3(-far, -far, -far);
    for (int32_t i = 0; i < shape->hull->number_of_vertices; i++) {
        const tb_vec3 p = tb_pose_point(&shape->pose, tb_v3_load(&shape->hull->vertices[3 * i]));
        box.lower = tb_v3_min(box.lower, p);
        box.upper = tb_v3_max(box.upper, p);
    }
    return box_with_radius(box, shape);
}

TB_EXTERN tb_box tb_shape_box(const tb_posed_shape *shape)
{
    const tb_real *m = shape->pose.rotation.m;
    const tb_real far = TB_REAL_MAX / 4;
    tb_vec3 half = tb_v3(far, far, far);
    tb_vec3 centre = shape->pose.position, s = shape->size;
    tb_box box;
    switch (shape->type) {
    case TB_SHAPE_PLANE: centre = tb_v3(0, 0, 0); break;
    case TB_SHAPE_SPHERE: half = tb_v3(s.x, s.x, s.x); break;
    case TB_SHAPE_CAPSULE:
        half = tb_v3(s.x + s.y * tb_abs(m[2]), s.x + s.y * tb_abs(m[5]), s.x + s.y * tb_abs(m[8]));
        break;
    case TB_SHAPE_CYLINDER:
        half = tb_v3(s.x * tb_sqrt(m[0] * m[0] + m[1] * m[1]) + s.y * tb_abs(m[2]),
                     s.x * tb_sqrt(m[3] * m[3] + m[4] * m[4]) + s.y * tb_abs(m[5]),
                     s.x * tb_sqrt(m[6] * m[6] + m[7] * m[7]) + s.y * tb_abs(m[8]));
        break;
    case TB_SHAPE_ELLIPSOID:
        half = tb_v3(tb_v3_length(tb_v3(m[0] * s.x, m[1] * s.y, m[2] * s.z)),
                     tb_v3_length(tb_v3(m[3] * s.x, m[4] * s.y, m[5] * s.z)),
                     tb_v3_length(tb_v3(m[6] * s.x, m[7] * s.y, m[8] * s.z)));
        break;
    default: {
        tb_vec3 middle = tb_v3(0, 0, 0);
        if (shape->type == TB_SHAPE_CONVEX) return box_of_hull(shape);
        if (shape->type == TB_SHAPE_MESH) {
            const tb_vec3 lower = tb_v3_load(shape->mesh->lower);
            const tb_vec3 upper = tb_v3_load(shape->mesh->upper);
            middle = tb_v3_scale(tb_v3_add(lower, upper), TB_R(0.5));
            const tb_vec3 thick = tb_v3(s.x, s.x, s.x); /* the radius around the triangles */
            s = tb_v3_add(tb_v3_scale(tb_v3_sub(upper, lower), TB_R(0.5)), thick);
        } else if (shape->type == TB_SHAPE_HEIGHT_FIELD) {
            const tb_real high = TB_R(shape->field->highest), low = TB_R(-shape->field->base);
            middle = tb_v3(0, 0, TB_R(0.5) * (high + low));
            s = tb_v3(TB_R(shape->field->half_x), TB_R(shape->field->half_y),
                      TB_R(0.5) * (high - low));
        }
        return box_of_box(&shape->pose, middle, s);
    }
    }
    box.lower = tb_v3_sub(centre, half);
    box.upper = tb_v3_add(centre, half);
    return box;
}

TB_EXTERN tb_box tb_shape_loose_box(const tb_posed_shape *shape, bool *tight)
{
    *tight = shape->type != TB_SHAPE_CONVEX || shape->hull->cells == 0;
    if (*tight) return tb_shape_box(shape);
    const tb_vec3 middle = tb_v3_load(shape->hull->middle), half = tb_v3_load(shape->hull->half);
    return box_with_radius(box_of_box(&shape->pose, middle, half), shape);
}
