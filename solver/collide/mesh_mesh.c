/* A mesh against a mesh: both trees at once, and each triangle of the other mesh as a polytope with
 * one face. */
#include "collide/mesh_internal.h"

/* the one face of a triangle */
TB_TABLE int32_t face_start[2] = {0, 3}, face_corners[3] = {0, 1, 2};

/* Two nodes that may meet. */
typedef struct node_pair {
    int32_t a, b;
} node_pair;

/* The triangle of another mesh as a polytope with one face. */
typedef struct triangle_polytope {
    tb_mesh_triangle triangle;
    int32_t edges[6];
    tb_vec3 edge_normals[6];
} triangle_polytope;

TB_STATIC void polytope_of_triangle(tb_mesh_job *j, triangle_polytope *p, const tb_mesh_view *view,
                                    int32_t index)
{
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

TB_STATIC void collide_leaves(tb_mesh_job *j, const tb_mesh_view *view, const tb_tree_node *a,
                              const tb_tree_node *b, const tb_mat33 *rotation,
                              const double shift[3])
{
    const tb_triangle_mesh *mesh_a = j->view.mesh, *mesh_b = view->mesh;
    for (int32_t q = 0; q < b->count && !j->points.failed; q++) {
        const int32_t tb = mesh_b->tree_triangles[b->first + q];
        double lower[3], upper[3];
        tb_mesh_triangle_bounds(mesh_b, tb, lower, upper);
        tb_mesh_carry_box(rotation, shift, lower, upper, (double)j->margin, j->lower, j->upper);
        if (tb_mesh_boxes_apart(a->lower, a->upper, j->lower, j->upper)) continue;
        triangle_polytope p;
        polytope_of_triangle(j, &p, view, tb);
        for (int32_t k = 0; k < a->count; k++) {
            const int32_t ta = mesh_a->tree_triangles[a->first + k];
            tb_mesh_triangle_bounds(mesh_a, ta, lower, upper);
            if (tb_mesh_boxes_apart(lower, upper, j->lower, j->upper)) continue;
            tb_mesh_triangle t;
            tb_mesh_triangle_load(&j->view, ta, &t);
            const int32_t before = j->points.count;
            tb_mesh_triangle_and_polytope(j, &t);
            /* the other mesh's triangle goes into the name, four corners to a triangle */
            for (int32_t i = before; i < j->points.count; i++)
                j->points.items[i].feature = ((uint32_t)tb << 2) | (j->points.items[i].feature & 3);
        }
    }
}

/* Both trees at once, the larger box first. */
TB_EXTERN void tb_mesh_against_mesh(tb_mesh_job *j, const tb_mesh_view *view)
{
    const tb_triangle_mesh *a = j->view.mesh, *b = view->mesh;
    const tb_mat33 back = tb_m33_transpose(&j->view.rotation);
    const tb_mat33 rotation = tb_m33_mul(&back, &view->rotation);
    double shift[3];
    for (int k = 0; k < 3; k++) {
        shift[k] = j->view.origin[k];
        for (int c = 0; c < 3; c++) shift[k] -= (double)rotation.m[3 * k + c] * view->origin[c];
    }
    int32_t capacity = 256, depth = 0;
    node_pair *stack = TB_ARENA_ARRAY(j->points.arena, node_pair, capacity);
    if (!stack || a->number_of_nodes == 0 || b->number_of_nodes == 0) {
        j->points.failed = !stack;
        return;
    }
    stack[depth++] = TB_VALUE(node_pair){0, 0};
    while (depth > 0 && !j->points.failed) {
        const node_pair p = stack[--depth];
        const tb_tree_node *na = &a->nodes[p.a], *nb = &b->nodes[p.b];
        double lower[3], upper[3];
        tb_mesh_carry_box(&rotation, shift, nb->lower, nb->upper, (double)j->margin, lower, upper);
        if (tb_mesh_boxes_apart(na->lower, na->upper, lower, upper)) continue;
        if (!na->right && !nb->right) {
            collide_leaves(j, view, na, nb, &rotation, shift);
            continue;
        }
        if (depth + 2 > capacity) {
            node_pair *grown = TB_ARENA_ARRAY(j->points.arena, node_pair, 2 * capacity);
            if (!grown) {
                j->points.failed = true;
                return;
            }
            for (int32_t i = 0; i < depth; i++) grown[i] = stack[i];
            stack = grown;
            capacity *= 2;
        }
        double size_a = 0, size_b = 0;
        for (int k = 0; k < 3; k++) {
            size_a += na->upper[k] - na->lower[k];
            size_b += nb->upper[k] - nb->lower[k];
        }
        if (na->right && (!nb->right || size_a >= size_b)) {
            stack[depth++] = TB_VALUE(node_pair){na->right, p.b};
            stack[depth++] = TB_VALUE(node_pair){p.a + 1, p.b};
        } else {
            stack[depth++] = TB_VALUE(node_pair){p.a, nb->right};
            stack[depth++] = TB_VALUE(node_pair){p.a, p.b + 1};
        }
    }
}
