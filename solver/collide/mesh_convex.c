/* A mesh against a convex shape or a plane: the walk over its tree, and the way out for a shape
 * whose centre lies inside the mesh. */
#include "collide/mesh_internal.h"

/* Adds the points of every triangle whose box meets that of the other shape. */
TB_STATIC void meet_triangles(tb_mesh_job *j)
{
    const tb_triangle_mesh *mesh = j->view.mesh;
    int32_t *stack = TB_ARENA_ARRAY(j->points.arena, int32_t, mesh->number_of_nodes + 1);
    if (!stack) {
        j->points.failed = true;
        return;
    }
    int32_t depth = 0;
    if (mesh->number_of_nodes > 0) stack[depth++] = 0;
    while (depth > 0 && !j->points.failed) {
        const int32_t i = stack[--depth];
        const tb_tree_node *node = &mesh->nodes[i];
        if (tb_mesh_boxes_apart(node->lower, node->upper, j->lower, j->upper)) continue;
        if (node->right) {
            stack[depth++] = node->right;
            stack[depth++] = i + 1;
            continue;
        }
        for (int32_t k = 0; k < node->count; k++) {
            const int32_t t = mesh->tree_triangles[node->first + k];
            double lower[3], upper[3];
            tb_mesh_triangle_bounds(mesh, t, lower, upper);
            if (tb_mesh_boxes_apart(lower, upper, j->lower, j->upper)) continue;
            tb_mesh_triangle triangle;
            tb_mesh_triangle_load(&j->view, t, &triangle);
            if (j->polyhedral)
                tb_mesh_triangle_and_polytope(j, &triangle);
            else
                tb_mesh_triangle_and_round(j, &triangle);
        }
    }
}

/* ---- a centre inside the mesh ---- */

typedef struct nearest_triangle {
    tb_vec3 centre, point;
    tb_real distance, height; /* height: over the triangle's plane */
    tb_mesh_triangle triangle;
    bool found;
} nearest_triangle;

TB_STATIC void nearest_try(nearest_triangle *n, const tb_mesh_triangle *t, tb_real noise)
{
    tb_real w[3];
    const tb_vec3 toward =
        tb_nearest_triangle(tb_v3_sub(t->v[0], n->centre), tb_v3_sub(t->v[1], n->centre),
                            tb_v3_sub(t->v[2], n->centre), w);
    const tb_real distance = tb_v3_length(toward);
    const tb_real height = tb_v3_dot(t->normal, n->centre) - t->offset;
    /* where several share the nearest point, the one most across the way tells inside
     * from outside */
    if (n->found && distance > n->distance + noise) return;
    if (n->found && distance > n->distance - noise && tb_abs(height) <= tb_abs(n->height)) return;
    n->found = true;
    n->distance = distance;
    n->height = height;
    n->point = tb_v3_add(n->centre, toward);
    n->triangle = *t;
}

/* The piece of surface nearest to the shape's centre, among all near the shape. */
TB_STATIC nearest_triangle nearest_of(tb_mesh_job *j)
{
    nearest_triangle n;
    n.found = false;
    n.centre = j->centre;
    n.distance = n.height = 0;
    const tb_triangle_mesh *mesh = j->view.mesh;
    for (int32_t i = 0; i < mesh->number_of_nodes;) {
        const tb_tree_node *node = &mesh->nodes[i];
        /* depth first: a left child follows its parent, and a subtree is skipped by its
         * leaves' boxes */
        if (node->right == 0 && !tb_mesh_boxes_apart(node->lower, node->upper, j->lower, j->upper))
            for (int32_t k = 0; k < node->count; k++) {
                tb_mesh_triangle t;
                tb_mesh_triangle_load(&j->view, mesh->tree_triangles[node->first + k], &t);
                nearest_try(&n, &t, j->noise);
            }
        i++;
    }
    return n;
}

/* Pushes the shape out through the surface nearest to its centre, if that is inside. */
TB_STATIC void push_out(tb_mesh_job *j)
{
    const nearest_triangle n = nearest_of(j);
    if (!n.found || n.height >= 0) return;

    const tb_mesh_triangle *t = &n.triangle;
    tb_vec3 d = tb_v3_normalize(tb_v3_sub(n.point, j->centre), t->normal);
    if (n.distance <= 16 * j->noise || tb_v3_dot(d, t->normal) > TB_R(0.99)) d = t->normal;
    j->points.count = 0;
    if (tb_mesh_same_direction(d, t->normal)) {
        if (j->polyhedral) {
            int32_t lowest = 0;
            for (int32_t v = 1; v < j->polytope.number_of_vertices; v++)
                if (tb_v3_dot(d, j->polytope.vertices[v]) <
                    tb_v3_dot(d, j->polytope.vertices[lowest]))
                    lowest = v;
            tb_mesh_polytope_on_triangle(j, t, lowest);
        } else {
            tb_mesh_round_on_triangle(j, t);
        }
        for (int32_t i = 0; i < j->points.count; i++) j->points.items[i].cut = false;
        if (j->points.count > 0) return;
    }
    tb_mesh_contact *c = tb_mesh_points_room(&j->points, 1);
    if (!c) return;
    uint32_t id;
    const tb_vec3 lowest =
        tb_v3_add_scaled(tb_core_support(&j->core, tb_v3_negate(d), &id), d, -j->core.radius);
    c->normal = d;
    c->on_shape = lowest;
    c->gap = tb_v3_dot(d, tb_v3_sub(lowest, n.point));
    c->on_mesh = tb_v3_add_scaled(lowest, d, -c->gap);
    c->height = tb_v3_dot(d, n.point);
    c->triangle = t->index;
    c->feature = id;
    c->code = TB_CODE_INSIDE;
    c->of_face = c->cut = c->witness = false;
    c->instead_of = -1;
    j->points.count++;
}

/* ---- kinds of pairs ---- */

TB_EXTERN void tb_mesh_against_convex(tb_mesh_job *j)
{
    meet_triangles(j);
    if (j->behind && !j->points.failed) push_out(j);
}

/* Corners of the mesh near or below a plane. */
TB_EXTERN void tb_mesh_against_plane(tb_mesh_job *j)
{
    const tb_triangle_mesh *mesh = j->view.mesh;
    const tb_vec3 up = tb_m33_column(&j->other->pose.rotation, 2);
    const tb_vec3 local = tb_m33_tmul_v3(&j->view.rotation, up);
    const tb_real offset = tb_v3_dot(up, j->centre);
    for (int32_t i = 0; i < mesh->number_of_nodes; i++) {
        const tb_tree_node *node = &mesh->nodes[i];
        if (node->right) continue;
        tb_real lowest = -offset;
        for (int k = 0; k < 3; k++) {
            const tb_real s = tb_v3_at(local, k);
            lowest += s * TB_R((s > 0 ? node->lower[k] : node->upper[k]) - j->view.origin[k]);
        }
        if (lowest > j->margin + j->noise) continue;
        for (int32_t k = 0; k < 3 * node->count; k++) {
            const int32_t t = mesh->tree_triangles[node->first + k / 3];
            const int32_t v = mesh->triangles[3 * t + k % 3];
            const tb_vec3 x = tb_mesh_vertex(&j->view, v);
            const tb_real gap = tb_v3_dot(up, x) - offset;
            if (gap > j->margin) continue;
            tb_mesh_contact *c = tb_mesh_points_room(&j->points, 1);
            if (!c) return;
            c->normal = tb_v3_negate(up);
            c->on_mesh = x;
            c->on_shape = tb_v3_add_scaled(x, up, -gap);
            c->gap = gap;
            c->height = 0;
            c->triangle = v; /* a corner of a mesh on a plane is named by itself */
            c->feature = 0;
            c->code = TB_CODE_CORNER;
            c->of_face = c->cut = c->witness = false;
            c->instead_of = -1;
            j->points.count++;
        }
    }
}
