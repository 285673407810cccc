/* Triangle meshes and height fields against everything: the pair, its room and its points.
 *
 * A pair is looked at from the other shape's position, in world axes. The tree gives the triangles
 * near it (mesh_convex.c, mesh_mesh.c), each triangle its points (mesh_triangle.c), and
 * mesh_reduce.c makes manifolds of them. The surface is one-sided: what lies behind a triangle is
 * not pushed by it, so a thin wall pushes to the side that was touched. Only where the shape's
 * centre itself lies inside the mesh does the nearest piece of surface push it out. */
#include "collide/mesh_internal.h"

TB_STATIC tb_mesh_view view_of(const tb_triangle_mesh *mesh, const tb_pose *pose, tb_vec3 origin)
{
    tb_mesh_view v;
    v.mesh = mesh;
    v.rotation = pose->rotation;
    const tb_vec3 o = tb_m33_tmul_v3(&pose->rotation, tb_v3_sub(origin, pose->position));
    v.origin[0] = (double)o.x;
    v.origin[1] = (double)o.y;
    v.origin[2] = (double)o.z;
    return v;
}

/* The box of a convex shape along the mesh's axes, by its extreme points. */
TB_STATIC void job_bounds(tb_mesh_job *j)
{
    for (int axis = 0; axis < 3; axis++) {
        const tb_vec3 along = tb_m33_column(&j->view.rotation, axis);
        uint32_t id;
        const tb_vec3 top = tb_core_support(&j->core, along, &id);
        const tb_vec3 bottom = tb_core_support(&j->core, tb_v3_negate(along), &id);
        const tb_real grow = j->core.radius + j->margin;
        j->lower[axis] = j->view.origin[axis] + (double)(tb_v3_dot(bottom, along) - grow);
        j->upper[axis] = j->view.origin[axis] + (double)(tb_v3_dot(top, along) + grow);
    }
}

TB_EXTERN bool tb_mesh_job_buffers(tb_mesh_job *j, int32_t largest_face)
{
    const size_t room =
        (size_t)(largest_face > TB_MESH_DISC_CORNERS ? largest_face : TB_MESH_DISC_CORNERS) + 8;
    j->from = TB_ARENA_ARRAY(j->points.arena, tb_mesh_corner, room);
    j->to = TB_ARENA_ARRAY(j->points.arena, tb_mesh_corner, room);
    return j->from && j->to;
}

TB_STATIC bool mesh_like(const tb_posed_shape *s)
{
    return s->type == TB_SHAPE_MESH || s->type == TB_SHAPE_HEIGHT_FIELD;
}

/* The mesh of a shape; of a height field the part inside a box of its frame. */
TB_STATIC const tb_triangle_mesh *mesh_of(const tb_posed_shape *s, const double lower[3],
                                          const double upper[3], tb_arena *arena,
                                          tb_triangle_mesh *part, const int32_t **names)
{
    if (s->type == TB_SHAPE_MESH) return s->mesh;
    return tb_field_part(s->field, lower, upper, arena, part, names) ? part : NULL;
}

/* The box of a mesh or a whole height field. */
TB_STATIC void bounds_of(const tb_posed_shape *s, double lower[3], double upper[3])
{
    for (int k = 0; k < 3; k++) {
        if (s->type == TB_SHAPE_MESH) {
            lower[k] = s->mesh->lower[k];
            upper[k] = s->mesh->upper[k];
        } else {
            const double half = k == 0 ? s->field->half_x : s->field->half_y;
            lower[k] = k < 2 ? -half : -s->field->base;
            upper[k] = k < 2 ? half : s->field->highest;
        }
    }
}

/* The box of mesh-like b in the frame of a, with the margin. */
TB_STATIC void bounds_in(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                         double lower[3], double upper[3])
{
    double box_lower[3], box_upper[3];
    bounds_of(b, box_lower, box_upper);
    const tb_pose relative = tb_pose_relative(&a->pose, &b->pose);
    double shift[3];
    tb_v3_store(shift, relative.position);
    tb_mesh_carry_box(&relative.rotation, shift, box_lower, box_upper, (double)margin, lower,
                      upper);
}

/* Length below which rounding hides differences: of both sizes and of how far they lie from their
 * frames' origins. */
TB_STATIC tb_real noise_of(const tb_mesh_job *j)
{
    double size = 0;
    for (int k = 0; k < 3; k++) size = fmax(size, j->upper[k] - j->lower[k]);
    const tb_vec3 p = j->origin;
    const double far = fmax(fabs((double)p.x), fmax(fabs((double)p.y), fabs((double)p.z)));
    return TB_R(size) * TB_MESH_LENGTH + TB_R(far) * TB_REAL_EPSILON * 4;
}

TB_STATIC int32_t write_points(const tb_mesh_job *j, const int32_t *names, bool flip,
                               tb_contact_point *points, int32_t capacity)
{
    for (int32_t i = 0; i < j->points.count && i < capacity; i++) {
        const tb_mesh_contact *c = &j->points.items[i];
        tb_contact_point *p = &points[i];
        const tb_vec3 on_mesh = tb_v3_add(c->on_mesh, j->origin);
        p->normal = flip ? tb_v3_negate(c->normal) : c->normal;
        p->gap = c->gap;
        if (flip) {
            p->point_b = on_mesh;
            p->point_a = tb_v3_add_scaled(on_mesh, c->normal, c->gap);
        } else {
            p->point_a = on_mesh;
            p->point_b = tb_v3_add_scaled(on_mesh, c->normal, c->gap);
        }
        const uint32_t triangle = (uint32_t)(names ? names[c->triangle] : c->triangle);
        p->feature = (uint64_t)triangle << 36 | (uint64_t)(c->feature & 0xFFFFFFF) << 8 | c->code;
    }
    return j->points.count;
}

TB_EXTERN int32_t tb_collide_mesh(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                  tb_contact_point *points, int32_t capacity, tb_arena *scratch,
                                  uint32_t *flags)
{
    const tb_arena_mark mark = tb_arena_get_mark(scratch);
    const bool flip = !mesh_like(a);
    const tb_posed_shape *shape = flip ? b : a;
    tb_mesh_job j = {.other = flip ? a : b, .margin = margin};
    j.points.arena = scratch;
    const tb_vec3 origin = (j.other->type == TB_SHAPE_PLANE ? shape : j.other)->pose.position;
    j.origin = origin;
    tb_triangle_mesh part_a, part_b;
    tb_mesh_view other_view;
    tb_mesh_pair pair = {.view = &j.view};
    const int32_t *names = NULL;
    int32_t count = -1;

    if (j.other->type == TB_SHAPE_PLANE) {
        double lower[3], upper[3];
        bounds_of(shape, lower, upper);
        const tb_triangle_mesh *mesh = mesh_of(shape, lower, upper, scratch, &part_a, &names);
        if (!mesh) goto done;
        j.view = view_of(mesh, &shape->pose, origin);
        for (int k = 0; k < 3; k++) j.lower[k] = lower[k], j.upper[k] = upper[k];
        j.noise = noise_of(&j);
        j.centre = tb_v3_sub(j.other->pose.position, origin);
        names = NULL;
        tb_mesh_against_plane(&j);
    } else if (mesh_like(j.other)) {
        double lower[3], upper[3];
        bounds_in(shape, j.other, margin, j.lower, j.upper);
        bounds_in(j.other, shape, margin, lower, upper);
        const int32_t *names_b = NULL;
        const tb_triangle_mesh *mesh = mesh_of(shape, j.lower, j.upper, scratch, &part_a, &names);
        const tb_triangle_mesh *mesh_b = mesh_of(j.other, lower, upper, scratch, &part_b, &names_b);
        if (!mesh || !mesh_b) goto done;
        j.view = view_of(mesh, &shape->pose, origin);
        other_view = view_of(mesh_b, &j.other->pose, origin);
        pair.other = &other_view;
        j.noise = noise_of(&j);
        j.polyhedral = true;
        j.room = TB_ARENA_ARRAY(scratch, tb_epa, 1);
        if (!j.room || !tb_mesh_job_buffers(&j, 3)) goto done;
        tb_mesh_against_mesh(&j, &other_view);
    } else {
        j.core = tb_core_of(j.other, origin);
        j.centre = j.core.inside;
        j.view = view_of(NULL, &shape->pose, origin);
        job_bounds(&j);
        j.noise = noise_of(&j);
        const tb_triangle_mesh *mesh = mesh_of(shape, j.lower, j.upper, scratch, &part_a, &names);
        if (!mesh) goto done;
        j.view.mesh = mesh;
        j.polyhedral = j.other->type == TB_SHAPE_BOX ||
                       (j.other->type == TB_SHAPE_CONVEX && j.core.hull->number_of_faces > 0);
        const bool room = !j.polyhedral ? tb_mesh_job_buffers(&j, TB_MESH_DISC_CORNERS)
                          : j.other->type == TB_SHAPE_BOX ? tb_mesh_solid_of_box(&j)
                                                          : tb_mesh_solid_of_hull(&j);
        j.room = TB_ARENA_ARRAY(scratch, tb_epa, 1);
        if (!room || !j.room) goto done;
        if (j.polyhedral) pair.solid = &j.polytope;
        tb_mesh_against_convex(&j);
    }
    if (tb_mesh_reduce(&j.points, &pair, j.noise) < 0) goto done;
    *flags |= j.flags;
    count = write_points(&j, names, flip, points, capacity);
done:
    tb_arena_return_to(scratch, mark);
    return count;
}
