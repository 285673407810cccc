/* Finds the triangles of a mesh that may meet the other shape: walks down its tree, or down both
 * trees for two meshes, and passes each triangle to the narrow phase.
 *
 * Each step of the walk is independent, so one lane can go depth first, and many lanes level by
 * level: both find the same triangles in the same order. */
#include "collide/mesh/mesh_internal.h"

/* Lengths of rounding by which a point may lie beyond its triangle. */
#define BALL_NOISES TB_R(64)

/* ---- trees ---- */

/* The plane of `other` in the pair's coordinates. */
typedef struct ground {
    tb_vec3 up, local; /* unit; the second in the mesh's frame */
    tb_real offset;    /* m */
} ground;

TB_STATIC ground ground_of(const tb_mesh_job *j)
{
    ground g;
    g.up = tb_m33_column(&j->other->pose.rotation, 2);
    g.local = tb_m33_tmul_v3(&j->view.rotation, g.up);
    g.offset = tb_v3_dot(g.up, j->centre);
    return g;
}

/* Whether a box lies over the plane by more than the margin. */
TB_STATIC bool over_plane(const tb_mesh_job *j, const tb_tree_node *node)
{
    const ground g = ground_of(j);
    tb_real lowest = -g.offset;
    for (int k = 0; k < 3; k++) {
        const tb_real s = tb_v3_at(g.local, k);
        lowest += s * TB_R((s > 0 ? node->lower[k] : node->upper[k]) - j->view.origin[k]);
    }
    return lowest > j->margin + j->noise;
}

TB_STATIC double size_of(const tb_tree_node *node)
{
    double size = 0;
    for (int k = 0; k < 3; k++) size += node->upper[k] - node->lower[k];
    return size;
}

/* Both trees at once, the larger box first. */
TB_STATIC int descend_both(const tb_mesh_job *j, tb_mesh_index_pair nodes,
                           tb_mesh_index_pair next[2])
{
    const tb_triangle_mesh *mesh = j->other_view->mesh;
    if (nodes.b >= mesh->number_of_nodes) return 0;
    const tb_tree_node *a = &j->view.mesh->nodes[nodes.a], *b = &mesh->nodes[nodes.b];
    double lower[3], upper[3];
    tb_mesh_carry_box(&j->rotation, j->shift, b->lower, b->upper, (double)j->margin, lower, upper);
    if (tb_mesh_boxes_apart(a->lower, a->upper, lower, upper)) return 0;
    if (!a->right && !b->right) return 1;
    next[0] = next[1] = nodes;
    if (a->right && (!b->right || size_of(a) >= size_of(b))) {
        next[0].a = nodes.a + 1;
        next[1].a = a->right;
    } else {
        next[0].b = nodes.b + 1;
        next[1].b = b->right;
    }
    return 2;
}

TB_EXTERN int tb_mesh_descend(const tb_mesh_job *j, tb_mesh_index_pair nodes,
                              tb_mesh_index_pair next[2])
{
    const tb_triangle_mesh *mesh = j->view.mesh;
    if (nodes.a >= mesh->number_of_nodes) return 0;
    if (j->kind == TB_MESH_ON_MESH) return descend_both(j, nodes, next);
    const tb_tree_node *node = &mesh->nodes[nodes.a];
    if (j->kind == TB_MESH_ON_PLANE
            ? over_plane(j, node)
            : tb_mesh_boxes_apart(node->lower, node->upper, j->lower, j->upper))
        return 0;
    if (!node->right) return 1;
    next[0] = TB_VALUE(tb_mesh_index_pair){nodes.a + 1, 0};
    next[1] = TB_VALUE(tb_mesh_index_pair){node->right, 0};
    return 2;
}

TB_EXTERN int32_t tb_mesh_leaf_size(const tb_mesh_job *j, tb_mesh_index_pair leaves)
{
    const int32_t count = j->view.mesh->nodes[leaves.a].count;
    return j->kind == TB_MESH_ON_MESH ? count * j->other_view->mesh->nodes[leaves.b].count : count;
}

/* The ball of a triangle of the other mesh in the frame of the first. */
TB_STATIC tb_mesh_ball ball_of_other(const tb_mesh_job *j, int32_t triangle)
{
    const tb_mesh_ball own = tb_mesh_triangle_ball(j->other_view->mesh, triangle);
    tb_mesh_ball ball = own;
    for (int r = 0; r < 3; r++) {
        ball.centre[r] = j->shift[r];
        for (int c = 0; c < 3; c++)
            ball.centre[r] += (double)j->rotation.m[3 * r + c] * own.centre[c];
    }
    return ball;
}

/* Whether two triangles are farther apart than a contact may be. Points of a pair lie on both of
 * its triangles and are within the margin of each other, so that a pair without any is left out. */
TB_STATIC bool balls_apart(const tb_mesh_job *j, const tb_mesh_ball *a, const tb_mesh_ball *b)
{
    const double reach = a->radius + b->radius + (double)(j->margin + BALL_NOISES * j->noise);
    double square = 0;
    for (int k = 0; k < 3; k++) {
        const double d = b->centre[k] - a->centre[k];
        square += d * d;
    }
    return square > reach * reach;
}

TB_EXTERN bool tb_mesh_leaf_meets(const tb_mesh_job *j, tb_mesh_index_pair leaves, int32_t k,
                                  tb_mesh_reach *reach, tb_mesh_index_pair *triangles)
{
    const tb_triangle_mesh *mesh = j->view.mesh;
    const tb_tree_node *node = &mesh->nodes[leaves.a];
    const double *other_lower = j->lower, *other_upper = j->upper;
    double lower[3], upper[3];
    triangles->b = 0;
    if (j->kind == TB_MESH_ON_MESH) {
        const tb_triangle_mesh *other = j->other_view->mesh;
        const int32_t b = other->tree_triangles[other->nodes[leaves.b].first + k / node->count];
        k %= node->count;
        if (reach->index != b) {
            tb_mesh_triangle_bounds(other, b, lower, upper);
            tb_mesh_carry_box(&j->rotation, j->shift, lower, upper, (double)j->margin, reach->lower,
                              reach->upper);
            reach->ball = ball_of_other(j, b);
            reach->index = b;
        }
        other_lower = reach->lower;
        other_upper = reach->upper;
        triangles->b = b;
    }
    triangles->a = mesh->tree_triangles[node->first + k];
    if (j->kind == TB_MESH_ON_PLANE) return true;
    tb_mesh_triangle_bounds(mesh, triangles->a, lower, upper);
    if (tb_mesh_boxes_apart(lower, upper, other_lower, other_upper)) return false;
    if (j->kind != TB_MESH_ON_MESH) return true;
    const tb_mesh_ball ball = tb_mesh_triangle_ball(mesh, triangles->a);
    return !balls_apart(j, &ball, &reach->ball);
}

/* ---- triangles ---- */

/* the one face of a triangle */
TB_TABLE int32_t face_start[2] = {0, 3}, face_corners[3] = {0, 1, 2};

TB_STATIC void face_triangle(tb_mesh_job *j, tb_mesh_facing *p, int32_t index)
{
    const tb_mesh_view *view = j->other_view;
    p->index = index;
    tb_mesh_triangle_load(view, index, &p->triangle);
    int32_t n = 0;
    for (int32_t k = 0; k < 3; k++) {
        if (!p->triangle.open[k]) continue;
        p->edges[2 * n] = k;
        p->edges[2 * n + 1] = (k + 1) % 3;
        p->edge_normals[2 * n] = p->triangle.normal;
        p->edge_normals[2 * n + 1] = p->triangle.other[k];
        n++;
    }
    const tb_triangle_mesh *mesh = view->mesh;
    double size = 0, middle[3];
    for (int k = 0; k < 3; k++) {
        middle[k] = (mesh->lower[k] + mesh->upper[k]) / 2 - view->origin[k];
        size += mesh->upper[k] - mesh->lower[k];
    }
    j->polytope =
        TB_VALUE(tb_polytope){.number_of_vertices = 3,
                              .number_of_faces = 1,
                              .number_of_edges = n,
                              .vertices = p->triangle.v,
                              .normals = &p->triangle.normal,
                              .offsets = &p->triangle.offset,
                              .face_start = face_start,
                              .face_vertices = face_corners,
                              .edges = p->edges,
                              .edge_normals = p->edge_normals,
                              .centre = tb_m33_mul_v3(&view->rotation, tb_v3_load(middle)),
                              .reach = TB_R(size / 2),
                              .view = view,
                              .triangle = &p->triangle};
}

/* Corners of a triangle near or below the plane. */
TB_STATIC void corners_on_plane(tb_mesh_job *j, int32_t triangle)
{
    const ground g = ground_of(j);
    for (int32_t k = 0; k < 3; k++) {
        const int32_t v = j->view.mesh->triangles[3 * triangle + k];
        const tb_vec3 x = tb_mesh_vertex(&j->view, v);
        const tb_real gap = tb_v3_dot(g.up, x) - g.offset;
        if (gap > j->margin) continue;
        tb_mesh_contact *c = tb_mesh_points_reserve(&j->points, 1);
        if (!c) return;
        c->normal = tb_v3_negate(g.up);
        c->on_mesh = x;
        c->on_shape = tb_v3_add_scaled(x, g.up, -gap);
        c->gap = gap;
        c->height = 0;
        c->triangle = v; /* the corner's index is the feature id on a plane */
        c->feature = 0;
        c->code = TB_CODE_CORNER;
        c->of_face = c->cut = c->witness = false;
        c->instead_of = -1;
        j->points.count++;
    }
}

TB_EXTERN void tb_mesh_meet(tb_mesh_job *j, tb_mesh_facing *facing, tb_mesh_index_pair triangles)
{
    if (j->kind == TB_MESH_ON_PLANE) {
        corners_on_plane(j, triangles.a);
        return;
    }
    tb_mesh_triangle t;
    tb_mesh_triangle_load(&j->view, triangles.a, &t);
    if (!j->polyhedral) {
        tb_mesh_triangle_and_round(j, &t);
        return;
    }
    if (j->kind == TB_MESH_ON_MESH && facing->index != triangles.b)
        face_triangle(j, facing, triangles.b);
    const int32_t before = j->points.count;
    tb_mesh_triangle_and_polytope(j, &t);
    /* the feature id includes the other mesh's triangle, four corners to a triangle */
    for (int32_t i = before; i < j->points.count && j->kind == TB_MESH_ON_MESH; i++)
        j->points.items[i].feature =
            ((uint32_t)triangles.b << 2) | (j->points.items[i].feature & 3);
}

/* ---- one lane ---- */

#ifndef TB_DEVICE /* there: mesh_team.c */

TB_EXTERN void tb_mesh_walk(tb_mesh_job *j)
{
    tb_arena *arena = j->points.arena;
    int32_t capacity = 256, depth = 0;
    tb_mesh_facing facing;
    tb_mesh_reach reach;
    facing.index = reach.index = -1;
    tb_mesh_index_pair *stack = TB_ARENA_ARRAY(arena, tb_mesh_index_pair, capacity);
    if (stack) stack[depth++] = TB_VALUE(tb_mesh_index_pair){0, 0};
    j->points.failed = j->points.failed || !stack;
    while (depth > 0 && !j->points.failed) {
        const tb_mesh_index_pair nodes = stack[--depth];
        tb_mesh_index_pair next[2], triangles;
        const int found = tb_mesh_descend(j, nodes, next);
        if (found == 1) {
            const int32_t size = tb_mesh_leaf_size(j, nodes);
            for (int32_t k = 0; k < size && !j->points.failed; k++)
                if (tb_mesh_leaf_meets(j, nodes, k, &reach, &triangles))
                    tb_mesh_meet(j, &facing, triangles);
        }
        if (found < 2) continue;
        if (depth + 2 > capacity) {
            tb_mesh_index_pair *grown = TB_ARENA_ARRAY(arena, tb_mesh_index_pair, 2 * capacity);
            j->points.failed = !grown;
            if (!grown) return;
            for (int32_t i = 0; i < depth; i++) grown[i] = stack[i];
            stack = grown;
            capacity *= 2;
        }
        stack[depth++] = next[1];
        stack[depth++] = next[0];
    }
}

#endif
