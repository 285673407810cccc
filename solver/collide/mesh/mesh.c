/* Triangle meshes and height fields against every shape: sets up the pair and its memory, and
 * writes its points.
 *
 * A pair uses world axes, with the other shape's position as origin. The tree gives the
 * triangles near that shape (mesh_walk.c), each triangle gives points (mesh_triangle.c), and
 * mesh_reduce.c reduces them to manifolds. The surface is one-sided: a triangle does not push
 * shapes behind it, so a thin wall pushes to the touched side. Only if the shape's centre lies
 * inside the mesh does the nearest surface push it out (mesh_convex.c).
 *
 * A mesh with a radius is its triangles rolled by a ball: the same contacts with gaps smaller by the
 * radius, which is exact while the triangles themselves do not touch. */
#include "collide/mesh/mesh_internal.h"

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

TB_EXTERN bool tb_mesh_job_buffers(tb_mesh_job *j)
{
    const int32_t most = j->largest > TB_MESH_DISC_CORNERS ? j->largest : TB_MESH_DISC_CORNERS;
    j->from = TB_ARENA_ARRAY(j->points.arena, tb_mesh_corner, most + 8);
    j->to = TB_ARENA_ARRAY(j->points.arena, tb_mesh_corner, most + 8);
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
    return tb_height_field_part(s->field, lower, upper, arena, part, names) ? part : NULL;
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

/* Length below which rounding hides differences: relative to both sizes and to the distances
 * from their frames' origins. */
TB_STATIC tb_real noise_of(const tb_mesh_job *j)
{
    double size = 0;
    for (int k = 0; k < 3; k++) size = fmax(size, j->upper[k] - j->lower[k]);
    const tb_vec3 p = j->origin;
    const double far = fmax(fabs((double)p.x), fmax(fabs((double)p.y), fabs((double)p.z)));
    return TB_R(size) * TB_MESH_LENGTH + TB_R(far) * TB_REAL_EPSILON * 4;
}

/* Pose of the second mesh in the frame of the first. */
TB_STATIC void join_frames(tb_mesh_job *j)
{
    const tb_mesh_view *other = j->other_view;
    const tb_mat33 back = tb_m33_transpose(&j->view.rotation);
    j->rotation = tb_m33_mul(&back, &other->rotation);
    for (int k = 0; k < 3; k++) {
        j->shift[k] = j->view.origin[k];
        for (int c = 0; c < 3; c++)
            j->shift[k] -= (double)j->rotation.m[3 * k + c] * other->origin[c];
    }
}

/* Thickness around a mesh's triangles or a polytope; other shapes have none beside their core's. */
TB_STATIC tb_real radius_of(const tb_posed_shape *s)
{
    return s->type == TB_SHAPE_MESH ? s->size.x : tb_rolled_radius(s);
}

TB_EXTERN void tb_mesh_begin(tb_mesh_task *task, const tb_posed_shape *a, const tb_posed_shape *b,
                             tb_real margin)
{
    memset(task, 0, sizeof *task);
    tb_mesh_job *j = &task->job;
    task->flip = !mesh_like(a);
    task->shape = task->flip ? b : a;
    j->other = task->flip ? a : b;
    j->margin = margin + radius_of(a) + radius_of(b);
    j->kind = j->other->type == TB_SHAPE_PLANE ? TB_MESH_ON_PLANE
              : mesh_like(j->other)            ? TB_MESH_ON_MESH
                                               : TB_MESH_ON_CONVEX;
    j->origin = (j->kind == TB_MESH_ON_PLANE ? task->shape : j->other)->pose.position;
    j->view = view_of(NULL, &task->shape->pose, j->origin);
    if (j->kind == TB_MESH_ON_PLANE) {
        bounds_of(task->shape, j->lower, j->upper);
        j->centre = tb_v3_sub(j->other->pose.position, j->origin);
    } else if (j->kind == TB_MESH_ON_MESH) {
        bounds_in(task->shape, j->other, j->margin, j->lower, j->upper);
        task->other_view = view_of(NULL, &j->other->pose, j->origin);
        j->other_view = &task->other_view;
        j->polyhedral = true;
        j->largest = 3;
        join_frames(j);
    } else {
        j->core = tb_core_of(j->other, j->origin);
        j->centre = j->core.inside;
        job_bounds(j);
        j->polyhedral = j->other->type == TB_SHAPE_BOX ||
                        (j->other->type == TB_SHAPE_CONVEX && j->core.hull->number_of_faces > 0);
    }
    j->noise = noise_of(j);
}

TB_EXTERN bool tb_mesh_parts(tb_mesh_task *task, tb_arena *arena)
{
    tb_mesh_job *j = &task->job;
    j->view.mesh = mesh_of(task->shape, j->lower, j->upper, arena, &task->parts[0], &task->names);
    if (j->kind == TB_MESH_ON_PLANE) task->names = NULL; /* corners use other feature ids */
    if (j->kind != TB_MESH_ON_MESH) return j->view.mesh != NULL;
    double lower[3], upper[3];
    const int32_t *names = NULL;
    bounds_in(j->other, task->shape, j->margin, lower, upper);
    task->other_view.mesh = mesh_of(j->other, lower, upper, arena, &task->parts[1], &names);
    return j->view.mesh && task->other_view.mesh;
}

TB_EXTERN tb_contact_point tb_mesh_point(const tb_mesh_task *task, const tb_mesh_contact *c)
{
    tb_contact_point p;
    const tb_real radius = radius_of(task->shape);
    const tb_real gap = c->gap - radius - radius_of(task->job.other);
    const tb_vec3 surface = tb_v3_add_scaled(c->on_mesh, c->normal, radius);
    const tb_vec3 on_mesh = tb_v3_add(surface, task->job.origin);
    const tb_vec3 on_other = tb_v3_add_scaled(on_mesh, c->normal, gap);
    p.normal = task->flip ? tb_v3_negate(c->normal) : c->normal;
    p.point_a = task->flip ? on_other : on_mesh;
    p.point_b = task->flip ? on_mesh : on_other;
    p.gap = gap;
    const uint32_t triangle = (uint32_t)(task->names ? task->names[c->triangle] : c->triangle);
    p.feature = (uint64_t)triangle << 36 | (uint64_t)(c->feature & 0xFFFFFFF) << 8 | c->code;
    return p;
}

#ifndef TB_DEVICE /* there: mesh_team.c */

/* The piece of surface nearest to the shape's centre, among all near the shape. */
TB_STATIC tb_mesh_nearest nearest_of(const tb_mesh_job *j)
{
    tb_mesh_nearest best = {.triangle = -1};
    const tb_triangle_mesh *mesh = j->view.mesh;
    for (int32_t i = 0; i < mesh->number_of_nodes; i++) {
        const tb_tree_node *node = &mesh->nodes[i];
        if (node->right || tb_mesh_boxes_apart(node->lower, node->upper, j->lower, j->upper))
            continue;
        for (int32_t k = 0; k < node->count; k++) {
            const tb_mesh_nearest other =
                tb_mesh_near_centre(j, mesh->tree_triangles[node->first + k]);
            tb_mesh_nearer(&best, &other, j->noise);
        }
    }
    return best;
}

TB_EXTERN int32_t tb_collide_mesh(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                  tb_contact_point *points, int32_t capacity, tb_arena *scratch,
                                  uint32_t *flags)
{
    const tb_arena_mark mark = tb_arena_get_mark(scratch);
    tb_mesh_task task;
    tb_mesh_job *j = &task.job;
    tb_mesh_desk desk;
    int32_t count = -1;
    tb_mesh_begin(&task, a, b, margin);
    j->points.arena = scratch;
    if (!tb_mesh_parts(&task, scratch) || !tb_mesh_solid(j, scratch) || !tb_mesh_job_buffers(j))
        goto done;
    if (j->kind != TB_MESH_ON_PLANE) {
        j->room = TB_ARENA_ARRAY(scratch, tb_epa, 1);
        if (!j->room) goto done;
    }
    tb_mesh_walk(j);
    if (j->kind == TB_MESH_ON_CONVEX && j->behind && !j->points.failed) {
        const tb_mesh_nearest nearest = nearest_of(j);
        (void)tb_mesh_push_out(j, &nearest);
    }
    if (j->points.failed) goto done;
    if (j->points.count > 0) {
        const tb_mesh_pair pair = tb_mesh_pair_of(&task);
        if (!tb_mesh_desk_take(&desk, j->points.count, scratch)) goto done;
        const int32_t regions =
            tb_mesh_group(j->points.items, j->points.count, &pair, j->noise, &desk);
        for (int32_t i = 0; i < regions; i++)
            tb_mesh_choose(j->points.items, j->noise, &desk, i, false);
        count = tb_mesh_gather(j->points.items, &desk, regions);
    } else {
        count = 0;
    }
    *flags |= j->flags;
    for (int32_t i = 0; i < count && i < capacity; i++)
        points[i] = tb_mesh_point(&task, &desk.result[i]);
done:
    tb_arena_return_to(scratch, mark);
    return count;
}

#endif
