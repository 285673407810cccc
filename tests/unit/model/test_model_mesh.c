/* Hulls, triangle meshes and their mass: topology, kinds of edges, trees, degenerate input. */
#include "model_util.h"

static const double PI = 3.141592653589793;

/* ---- mass ---- */

START_TEST(a_tetrahedron_has_its_exact_moments)
{
    /* corner tetrahedron of side 1, moved far away: volume 1/6, com 1/4, xx = 1/40 about it */
    double v[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const int32_t t[12] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};
    for (int i = 0; i < 12; i++) v[i] += 100;
    const tb_mass_properties p = tb_mesh_mass_properties(v, 4, t, 4, TB_MESH_INERTIA_EXACT);
    TEST_NEAR(p.volume, 1.0 / 6, 1e-13);
    for (int k = 0; k < 3; k++) TEST_NEAR(p.com[k], 100.25, 1e-12);
    for (int k = 0; k < 3; k++) TEST_NEAR(p.inertia[k], 1.0 / 80, 1e-13);
    for (int k = 3; k < 6; k++) TEST_NEAR(p.inertia[k], 1.0 / 480, 1e-13);
}
END_TEST

/* A torus of rings: converges to the smooth one with the square of the number of facets. */
static void torus(int rings, int sides, double R, double r, double *v, int32_t *t)
{
    for (int i = 0; i < rings; i++)
        for (int j = 0; j < sides; j++) {
            const double a = 2 * PI * i / rings, b = 2 * PI * j / sides;
            double *p = v + 3 * (i * sides + j);
            p[0] = (R + r * cos(b)) * cos(a);
            p[1] = (R + r * cos(b)) * sin(a);
            p[2] = r * sin(b);
            const int32_t q[4] = {i * sides + j, (i + 1) % rings * sides + j,
                                  (i + 1) % rings * sides + (j + 1) % sides,
                                  i * sides + (j + 1) % sides};
            int32_t *at = t + 6 * (i * sides + j);
            at[0] = q[0], at[1] = q[1], at[2] = q[2], at[3] = q[0], at[4] = q[2], at[5] = q[3];
        }
}

START_TEST(a_torus_has_the_moments_of_a_torus)
{
    enum { RINGS = 400, SIDES = 200 };
    const double R = 1, r = 0.3;
    double *v = malloc(sizeof(double) * 3 * RINGS * SIDES);
    int32_t *t = malloc(sizeof(int32_t) * 6 * RINGS * SIDES);
    torus(RINGS, SIDES, R, r, v, t);
    const tb_mass_properties p =
        tb_mesh_mass_properties(v, RINGS * SIDES, t, 2 * RINGS * SIDES, TB_MESH_INERTIA_EXACT);
    const double volume = 2 * PI * PI * R * r * r;
    TEST_NEAR_RELATIVE(p.volume, volume, 5e-4);
    TEST_NEAR_RELATIVE(p.inertia[2] / p.volume, R * R + 0.75 * r * r, 5e-4);
    TEST_NEAR_RELATIVE(p.inertia[0] / p.volume, 0.5 * R * R + 0.625 * r * r, 5e-4);
    const tb_mass_properties s =
        tb_mesh_mass_properties(v, RINGS * SIDES, t, 2 * RINGS * SIDES, TB_MESH_INERTIA_SHELL);
    TEST_NEAR_RELATIVE(s.mass, 4 * PI * PI * R * r, 5e-4);
    TEST_NEAR_RELATIVE(s.inertia[2] / s.mass, R * R + 1.5 * r * r, 5e-4);
    free(v);
    free(t);
}
END_TEST

START_TEST(all_kinds_of_mesh_inertia_agree_on_a_box)
{
    static const double half[3] = {1, 2, 3};
    double v[24];
    int32_t t[36];
    box_mesh(half, v, t);
    for (int kind = 0; kind < 3; kind++) {
        tb_error error = {0};
        tb_mass_properties p;
        tb_mesh_def def = tb_mesh_defaults();
        def.name = "";
        def.vertices = v;
        def.number_of_vertices = 8;
        def.triangles = t;
        def.number_of_triangles = 12;
        def.inertia = (tb_mesh_inertia)kind;
        TEST_OK(tb_mesh_asset_mass(&def, &p, &error), &error);
        TEST_NEAR(p.mass, 48, 1e-13);
        TEST_NEAR(p.inertia[0], 48 * 13.0 / 3, 1e-12);
        TEST_NEAR(p.inertia[3], 0, 1e-12);
    }
}
END_TEST

START_TEST(a_mesh_turned_inside_out_has_no_mass)
{
    static const double half[3] = {1, 1, 1};
    const tb_handle none = {0};
    tb_error error = {0};
    double v[24];
    int32_t t[36];
    tb_handle asset;
    box_mesh(half, v, t);
    for (int i = 0; i < 12; i++) {
        const int32_t swap = t[3 * i];
        t[3 * i] = t[3 * i + 1];
        t[3 * i + 1] = swap;
    }
    tb_scene *scene = new_scene();
    tb_mesh_def def = tb_mesh_defaults();
    def.vertices = v;
    def.number_of_vertices = 8;
    def.triangles = t;
    def.number_of_triangles = 12;
    TEST_OK(tb_scene_add_mesh(scene, &def, &asset, &error), &error);
    tb_shape_def shape = tb_shape_defaults();
    shape.name = "inverted";
    shape.type = TB_SHAPE_MESH;
    shape.asset = asset;
    shape.body = add_body(scene, none, "body");
    add_joint(scene, shape.body, TB_JOINT_FREE, NULL);
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    compile_fails(scene, TB_INVALID_ARGUMENT, "asset", "inverted");
    tb_scene_destroy(scene);
}
END_TEST

/* ---- hulls ---- */

/* Each corner of a face turns left about its normal. */
static bool is_counter_clockwise(const tb_hull *hull, int f)
{
    const int first = hull->face_start[f], n = hull->face_start[f + 1] - first;
    bool left = n >= 3;
    for (int i = 0; i < n; i++) {
        const double *a = hull->vertices + 3 * hull->face_vertices[first + i];
        const double *b = hull->vertices + 3 * hull->face_vertices[first + (i + 1) % n];
        const double *c = hull->vertices + 3 * hull->face_vertices[first + (i + 2) % n];
        const tb_vec3 cross = tb_v3_cross(tb_v3_sub(tb_v3_load(b), tb_v3_load(a)),
                                          tb_v3_sub(tb_v3_load(c), tb_v3_load(b)));
        left = left && tb_v3_dot(cross, tb_v3_load(hull->planes + 4 * f)) > 0;
    }
    return left;
}

static bool face_walks(const tb_hull *hull, int f, int from, int to)
{
    const int first = hull->face_start[f], n = hull->face_start[f + 1] - first;
    bool found = false;
    for (int i = 0; i < n; i++)
        found = found || (hull->face_vertices[first + i] == from &&
                          hull->face_vertices[first + (i + 1) % n] == to);
    return found;
}

static bool is_neighbour(const tb_hull *hull, int from, int to)
{
    bool found = false;
    for (int i = hull->neighbour_start[from]; i < hull->neighbour_start[from + 1]; i++)
        found = found || hull->neighbours[i] == to;
    return found;
}

/* Sums up before it asserts: libcheck's assertions are slow. */
static void check_hull(const tb_hull *hull, const double *points, int count, double tolerance)
{
    double outside = -INFINITY;
    bool turns = true, walks = true, neighbours = true;
    for (int f = 0; f < hull->number_of_faces; f++) {
        const double *plane = hull->planes + 4 * f;
        for (int i = 0; i < count; i++) {
            const double *p = points + 3 * i;
            outside = fmax(outside, plane[0] * p[0] + plane[1] * p[1] + plane[2] * p[2] - plane[3]);
        }
        turns = turns && is_counter_clockwise(hull, f);
    }
    for (int e = 0; e < hull->number_of_edges; e++) {
        const int32_t *edge = hull->edges + 4 * e;
        walks = walks && face_walks(hull, edge[2], edge[0], edge[1]) &&
                face_walks(hull, edge[3], edge[1], edge[0]);
        neighbours = neighbours && is_neighbour(hull, edge[0], edge[1]) &&
                     is_neighbour(hull, edge[1], edge[0]);
    }
    ck_assert_int_eq(hull->number_of_vertices - hull->number_of_edges + hull->number_of_faces, 2);
    ck_assert_int_eq(hull->number_of_face_indices, 2 * hull->number_of_edges);
    ck_assert_int_eq(hull->neighbour_start[hull->number_of_vertices], 2 * hull->number_of_edges);
    ck_assert(turns && walks && neighbours);
    TEST_NEAR(fmax(outside, 0), 0, tolerance);
}

/* Points on the sides of a box, rounded to floats, turned and moved away, come out as a box. */
START_TEST(a_sampled_box_has_six_faces)
{
    const double half[3] = {0.5, 0.2, 0.05};
    tb_random random = tb_random_stream(7, 1);
    double p[3 * 308];
    for (int turn = 0; turn < 20; turn++) {
        const tb_quaternion q =
            tb_q_normalize(tb_q(tb_random_normal(&random), tb_random_normal(&random),
                                tb_random_normal(&random), tb_random_normal(&random)));
        for (int i = 0; i < 308; i++) {
            double x[3];
            for (int k = 0; k < 3; k++)
                x[k] = i < 8 ? ((i >> k & 1) ? half[k] : -half[k])
                             : tb_random_between(&random, -half[k], half[k]);
            if (i >= 8) x[i % 3] = (i & 8) ? half[i % 3] : -half[i % 3];
            const tb_vec3 moved =
                tb_v3_add(tb_q_rotate(q, tb_v3_load(x)), tb_v3(turn & 1 ? 1 : 0, 0, 0));
            p[3 * i] = (float)moved.x, p[3 * i + 1] = (float)moved.y, p[3 * i + 2] = (float)moved.z;
        }
        tb_arena arena;
        tb_error error = {0};
        tb_hull hull;
        tb_arena_init(&arena, 0);
        TEST_OK(tb_hull_build(p, 308, &arena, &hull, &error), &error);
        ck_assert_int_eq(hull.number_of_vertices, 8);
        ck_assert_int_eq(hull.number_of_edges, 12);
        ck_assert_int_eq(hull.number_of_faces, 6);
        check_hull(&hull, p, 308, 1e-6);
        tb_arena_destroy(&arena);
    }
}
END_TEST

START_TEST(prisms_tiny_and_huge_keep_their_faces)
{
    static const double scales[] = {1e-6, 1, 1e3};
    for (int s = 0; s < 3; s++)
        for (int n = 3; n < 64; n++) {
            double p[6 * 64];
            for (int i = 0; i < n; i++)
                for (int side = 0; side < 2; side++) {
                    double *at = p + 6 * i + 3 * side;
                    at[0] = scales[s] * cos(2 * PI * i / n);
                    at[1] = scales[s] * sin(2 * PI * i / n);
                    at[2] = scales[s] * (side ? 1 : -1);
                }
            tb_arena arena;
            tb_error error = {0};
            tb_hull hull;
            tb_arena_init(&arena, 0);
            TEST_OK(tb_hull_build(p, 2 * n, &arena, &hull, &error), &error);
            ck_assert_int_eq(hull.number_of_faces, n + 2);
            check_hull(&hull, p, 2 * n, 1e-12 * scales[s]);
            tb_arena_destroy(&arena);
        }
}
END_TEST

START_TEST(points_without_a_hull_are_refused)
{
    static const double flat[15] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0.5, 0.5, 0};
    static const double same[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    double bad[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, NAN};
    tb_arena arena;
    tb_hull hull;
    tb_error error = {0};
    tb_arena_init(&arena, 0);
    TEST_STATUS(tb_hull_build(flat, 5, &arena, &hull, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "plane"));
    TEST_STATUS(tb_hull_build(same, 4, &arena, &hull, &error), TB_INVALID_ARGUMENT, &error);
    TEST_STATUS(tb_hull_build(flat, 3, &arena, &hull, &error), TB_INVALID_ARGUMENT, &error);
    TEST_STATUS(tb_hull_build(bad, 4, &arena, &hull, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "vertices");
    tb_arena_destroy(&arena);
}
END_TEST

/* ---- triangle meshes ---- */

START_TEST(a_soup_of_triangles_becomes_a_box_with_neighbours)
{
    static const double half[3] = {1, 2, 3};
    double v[24], soup[108];
    int32_t t[36], index[36];
    box_mesh(half, v, t);
    for (int i = 0; i < 36; i++) {
        memcpy(soup + 3 * i, v + 3 * t[i], 3 * sizeof *v);
        index[i] = i;
    }
    tb_arena arena;
    tb_error error = {0};
    tb_triangle_mesh mesh;
    tb_arena_init(&arena, 0);
    TEST_OK(tb_triangle_mesh_build(soup, 36, index, 12, &arena, &mesh, &error), &error);
    ck_assert_int_eq(mesh.number_of_vertices, 8);
    ck_assert_int_eq(mesh.number_of_tree_triangles, 12);
    int flat = 0, convex = 0;
    for (int i = 0; i < 36; i++) {
        const int other = mesh.adjacent[i];
        ck_assert_int_ge(other, 0);
        bool back = false;
        for (int k = 0; k < 3; k++) back = back || mesh.adjacent[3 * other + k] == i / 3;
        ck_assert(back);
        flat += mesh.edge_kind[i] == TB_EDGE_FLAT;
        convex += mesh.edge_kind[i] == TB_EDGE_CONVEX;
    }
    ck_assert_int_eq(flat, 12);
    ck_assert_int_eq(convex, 24);
    for (int k = 0; k < 3; k++) {
        TEST_NEAR(mesh.lower[k], -half[k], 0);
        TEST_NEAR(mesh.upper[k], half[k], 0);
    }
    tb_arena_destroy(&arena);
}
END_TEST

START_TEST(edges_know_valleys_ridges_borders_and_needles)
{
    /* two floors that meet along x = 0; the right one rises, lies flat or falls */
    static const tb_edge_kind kinds[3] = {TB_EDGE_CONCAVE, TB_EDGE_FLAT, TB_EDGE_CONVEX};
    for (int i = 0; i < 3; i++) {
        const double v[12] = {0, 0, 0, 0, 1, 0, -1, 0, 0, 1, 0, 0.2 * (1 - i)};
        static const int32_t t[9] = {0, 1, 2, 1, 0, 3, 0, 0, 1}; /* the third has no area */
        tb_arena arena;
        tb_error error = {0};
        tb_triangle_mesh mesh;
        tb_arena_init(&arena, 0);
        TEST_OK(tb_triangle_mesh_build(v, 4, t, 2, &arena, &mesh, &error), &error);
        ck_assert_int_eq(mesh.edge_kind[0], kinds[i]);
        ck_assert_int_eq(mesh.edge_kind[3], kinds[i]);
        ck_assert_int_eq(mesh.edge_kind[1], TB_EDGE_BOUNDARY);
        TEST_OK(tb_triangle_mesh_build(v, 4, t, 3, &arena, &mesh, &error), &error);
        ck_assert_int_eq(mesh.number_of_triangles, 3);
        ck_assert_int_eq(mesh.number_of_tree_triangles, 2);
        TEST_NEAR(mesh.normals[6], 0, 0);
        tb_arena_destroy(&arena);
    }
}
END_TEST

START_TEST(an_edge_looks_through_a_triangle_without_area)
{
    /* (0,0) (2,0) below, a needle with its third corner in the middle of that edge,
     * two triangles above */
    static const double v[15] = {0, 0, 0, 2, 0, 0, 1, -1, 0, 1, 0, 0, 1, 1, 0};
    static const int32_t t[12] = {0, 2, 1, 0, 1, 3, 0, 3, 4, 3, 1, 4};
    tb_arena arena;
    tb_error error = {0};
    tb_triangle_mesh mesh;
    tb_arena_init(&arena, 0);
    TEST_OK(tb_triangle_mesh_build(v, 5, t, 4, &arena, &mesh, &error), &error);
    ck_assert_int_eq(mesh.number_of_tree_triangles, 3);
    ck_assert_int_eq(mesh.edge_kind[2], TB_EDGE_FLAT); /* (1, 0) of the first */
    tb_arena_destroy(&arena);
}
END_TEST

/* edge: 3 triangle + edge */
static void check_edge(const tb_triangle_mesh *mesh, int32_t edge, int32_t across,
                       tb_edge_kind kind)
{
    ck_assert_int_eq(mesh->adjacent[edge], across);
    ck_assert_int_eq(mesh->edge_kind[edge], kind);
}

START_TEST(needles_on_a_shared_edge_leave_it_shared)
{
    /* two triangles on the edge from 0 to 1, and needles of every sort on it; 4 is its middle */
    static const double v[15] = {0, 0, 0, 2, 0, 0, 1, -1, 0, 1, 1, 0, 1, 0, 0};
    static const int32_t needles[8][3] = {{0, 1, 4}, {1, 0, 4}, {4, 0, 1}, {4, 1, 0},
                                          {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 4, 1}};
    for (int pairs = 0; pairs < 64; pairs++)
        for (int32_t first = 0; first <= 2; first += 2) { /* of the triangles with area */
            int32_t t[12];
            memcpy(t + 3 * first, (const int32_t[]){0, 2, 1, 0, 1, 3}, 6 * sizeof *t);
            memcpy(t + 6 - 3 * first, needles[pairs % 8], 3 * sizeof *t);
            memcpy(t + 9 - 3 * first, needles[pairs / 8], 3 * sizeof *t);
            tb_arena arena;
            tb_error error = {0};
            tb_triangle_mesh mesh;
            tb_arena_init(&arena, 0);
            TEST_OK(tb_triangle_mesh_build(v, 5, t, 4, &arena, &mesh, &error), &error);
            ck_assert_int_eq(mesh.number_of_tree_triangles, 2);
            check_edge(&mesh, 3 * first + 2, first + 1, TB_EDGE_FLAT);
            check_edge(&mesh, 3 * first + 3, first, TB_EDGE_FLAT);
            check_edge(&mesh, 3 * first, -1, TB_EDGE_BOUNDARY);
            check_edge(&mesh, 3 * first + 4, -1, TB_EDGE_BOUNDARY);
            tb_arena_destroy(&arena);
        }
}
END_TEST

START_TEST(an_edge_looks_across_a_needle_not_along_it)
{
    /* one triangle below, two above that share the middle of its edge, the needle between them
     * and another that is folded; the upper two rise, lie flat or fall */
    static const tb_edge_kind kinds[3] = {TB_EDGE_CONCAVE, TB_EDGE_FLAT, TB_EDGE_CONVEX};
    static const int32_t needle[3] = {0, 1, 3};
    for (int i = 0; i < 3; i++)
        for (int turn = 0; turn < 3; turn++) {
            const double v[15] = {0, 0, 0, 2, 0, 0, 1, -1, 0, 1, 0, 0, 1, 1, 0.2 * (1 - i)};
            int32_t t[15] = {0, 2, 1, 0, 3, 4, 3, 1, 4, 0, 0, 1};
            for (int k = 0; k < 3; k++) t[12 + k] = needle[(turn + k) % 3];
            tb_arena arena;
            tb_error error = {0};
            tb_triangle_mesh mesh;
            tb_arena_init(&arena, 0);
            TEST_OK(tb_triangle_mesh_build(v, 5, t, 5, &arena, &mesh, &error), &error);
            ck_assert(mesh.adjacent[2] == 1 || mesh.adjacent[2] == 2);
            ck_assert_int_eq(mesh.edge_kind[2], kinds[i]);
            check_edge(&mesh, 3, 0, kinds[i]);
            check_edge(&mesh, 6, 0, kinds[i]);
            check_edge(&mesh, 4, 2, TB_EDGE_FLAT);
            tb_arena_destroy(&arena);
        }
}
END_TEST

/* Depth of the tree below a node; adds up the nodes, and the corners that lie outside of their
 * leaf. */
static int depth_below(const tb_triangle_mesh *mesh, int32_t node, int32_t *visited, int *outside)
{
    const tb_tree_node *n = &mesh->nodes[node];
    ++*visited;
    if (n->right == 0) {
        for (int32_t i = n->first; i < n->first + n->count; i++)
            for (int k = 0; k < 3; k++) {
                const int32_t vertex = mesh->triangles[3 * mesh->tree_triangles[i] + k];
                for (int x = 0; x < 3; x++)
                    *outside += mesh->vertices[3 * vertex + x] < n->lower[x] ||
                                mesh->vertices[3 * vertex + x] > n->upper[x];
            }
        return 1;
    }
    const int left = depth_below(mesh, node + 1, visited, outside);
    const int right = depth_below(mesh, n->right, visited, outside);
    return 1 + (left > right ? left : right);
}

START_TEST(the_tree_holds_every_triangle_and_stays_shallow)
{
    enum { RINGS = 120, SIDES = 60 };
    double *v = malloc(sizeof(double) * 3 * RINGS * SIDES);
    int32_t *t = malloc(sizeof(int32_t) * 6 * RINGS * SIDES), visited = 0;
    torus(RINGS, SIDES, 1, 0.3, v, t);
    for (int i = 0; i < RINGS * SIDES; i++) v[3 * i] *= exp(0.2 * (i % 97)); /* very uneven */
    tb_arena arena;
    tb_error error = {0};
    tb_triangle_mesh mesh;
    tb_arena_init(&arena, 0);
    TEST_OK(tb_triangle_mesh_build(v, RINGS * SIDES, t, 2 * RINGS * SIDES, &arena, &mesh, &error),
            &error);
    bool *seen = calloc(2 * RINGS * SIDES, sizeof *seen);
    int repeated = 0;
    for (int i = 0; i < mesh.number_of_tree_triangles; i++) {
        repeated += seen[mesh.tree_triangles[i]];
        seen[mesh.tree_triangles[i]] = true;
    }
    ck_assert_int_eq(repeated, 0);
    ck_assert_int_eq(mesh.number_of_tree_triangles, 2 * RINGS * SIDES);
    int outside = 0;
    const int depth = depth_below(&mesh, 0, &visited, &outside);
    ck_assert_int_eq(outside, 0);
    ck_assert_int_eq(visited, mesh.number_of_nodes);
    ck_assert_int_le(depth, 35);
    free(seen);
    free(v);
    free(t);
    tb_arena_destroy(&arena);
}
END_TEST

/* ---- meshes that are polytopes ---- */

/* Adds a box to a mesh, outwards (1) or inwards (-1). */
static void add_box(double *v, int32_t *points, int32_t *t, int32_t *triangles, double x, int side)
{
    static const double half[3] = {0.1, 0.2, 0.3};
    int32_t own[36];
    box_mesh(half, v + 3 * *points, own);
    for (int i = 0; i < 8; i++) v[3 * (*points + i)] += x;
    for (int i = 0; i < 36; i++)
        t[3 * *triangles + i] = own[side > 0 || i % 3 == 0 ? i : i + 3 - 2 * (i % 3)] + *points;
    *points += 8;
    *triangles += 12;
}

static bool is_polytope(const double *v, int32_t points, const int32_t *t, int32_t triangles)
{
    tb_arena arena;
    tb_error error = {0};
    tb_triangle_mesh mesh;
    tb_hull hull;
    bool convex = false;
    tb_arena_init(&arena, 0);
    TEST_OK(tb_triangle_mesh_build(v, points, t, triangles, &arena, &mesh, &error), &error);
    TEST_OK(tb_triangle_mesh_hull(&mesh, &arena, &hull, &convex, &error), &error);
    if (convex) ck_assert_int_le(hull.number_of_vertices, points);
    tb_arena_destroy(&arena);
    return convex;
}

START_TEST(closed_convex_meshes_are_polytopes)
{
    double v[3 * 32];
    int32_t t[3 * 64], points = 0, triangles = 0;
    add_box(v, &points, t, &triangles, 0, 1);
    ck_assert(is_polytope(v, 8, t, 12));
    ck_assert_msg(!is_polytope(v, 8, t, 11), "an open mesh");
    add_box(v, &points, t, &triangles, 1, 1);
    ck_assert_msg(!is_polytope(v, 16, t, 24), "two boxes apart");
    for (int i = 8; i < 16; i++) v[3 * i] = v[3 * (i - 8)];
    ck_assert_msg(!is_polytope(v, 16, t, 24), "the same box twice");
    for (int i = 24; i < 48; i++) v[i] *= 0.5;
    ck_assert_msg(!is_polytope(v, 16, t, 24), "a box in a box");
    points = triangles = 0;
    add_box(v, &points, t, &triangles, 0, -1);
    ck_assert_msg(!is_polytope(v, 8, t, 12), "a room");
    static const double flat[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0};
    static const int32_t sheet[12] = {0, 1, 2, 1, 3, 2, 0, 2, 1, 1, 2, 3};
    ck_assert_msg(!is_polytope(flat, 4, sheet, 4), "a sheet with two sides");

    /* a pyramid of four triangles on a side: the apex in the plane, out of it, into it */
    for (int i = 0; i < 3; i++) {
        points = triangles = 0;
        add_box(v, &points, t, &triangles, 0, 1);
        const double apex[3] = {0, 0, 0.3 + 0.05 * (i == 1) - 0.01 * (i == 2)};
        static const int32_t side[12] = {4, 5, 8, 5, 7, 8, 7, 6, 8, 6, 4, 8};
        memcpy(v + 24, apex, sizeof apex);
        memcpy(t + 30, side, sizeof side);
        ck_assert_msg(is_polytope(v, 9, t, 14) == (i < 2), "apex %d", i);
    }
}
END_TEST

/* A box of triangles, with the radius of a ball around it, over a plane and a fixed ball. */
static tb_model *falling_box(tb_shape_type type, double radius)
{
    static const double half[3] = {0.1, 0.2, 0.15};
    tb_scene *scene = new_scene();
    tb_error error = {0};
    double v[24];
    int32_t t[36];
    tb_mesh_def mesh = tb_mesh_defaults();
    tb_shape_def plane = tb_shape_defaults(), shape = tb_shape_defaults();
    tb_body_def body = tb_body_defaults();
    tb_joint_def joint = tb_joint_defaults();
    box_mesh(half, v, t);
    mesh.vertices = v, mesh.number_of_vertices = 8;
    mesh.triangles = t, mesh.number_of_triangles = 12;
    plane.type = TB_SHAPE_PLANE;
    TEST_OK(tb_scene_add_shape(scene, &plane, NULL, &error), &error);
    plane.type = TB_SHAPE_SPHERE;
    plane.size[0] = 0.05;
    plane.position[0] = 0.08;
    TEST_OK(tb_scene_add_shape(scene, &plane, NULL, &error), &error);
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &shape.asset, &error), &error);
    body.position[2] = 0.4;
    TEST_OK(tb_scene_add_body(scene, &body, &shape.body, &error), &error);
    joint.type = TB_JOINT_FREE;
    joint.body = shape.body;
    TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
    shape.type = type;
    shape.size[0] = radius;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    tb_model *model = NULL;
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* The pose of the box after `steps`. */
static void fall(const tb_model *model, int steps, double q[7], double *penetration)
{
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate certificate;
    tb_error error = {0};
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_step(stepper, state, steps, &certificate, &error), &error);
    ck_assert_int_eq(certificate.status, TB_OK);
    memcpy(q, tb_state_q(state), 7 * sizeof *q);
    *penetration = certificate.penetration;
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
}

START_TEST(a_convex_mesh_falls_as_its_hull)
{
    double q[3][7], penetration[3];
    tb_model *models[3] = {falling_box(TB_SHAPE_MESH, 0), falling_box(TB_SHAPE_CONVEX, 0),
                           falling_box(TB_SHAPE_MESH, 0.02)};
    ck_assert_int_eq(models[0]->meshes[0].hull, 0);
    ck_assert(tb_model_has_meshes(models[0]) && !tb_model_has_meshes(models[1]));
    for (int i = 0; i < 3; i++) fall(models[i], 300, q[i], &penetration[i]);
    for (int k = 0; k < 7; k++) TEST_NEAR(q[0][k], q[1][k], 0);
    ck_assert_msg(q[0][2] > 0.1 && q[0][2] < 0.2, "%g", q[0][2]);
    /* the ball rolled over the box keeps it 20 mm from plane and ball */
    ck_assert_msg(q[2][2] > q[0][2] + 0.015, "%g over %g", q[2][2], q[0][2]);
    ck_assert_msg(penetration[2] < 1e-3, "%g", penetration[2]);
    for (int i = 0; i < 3; i++) tb_model_destroy(models[i]);
}
END_TEST

TEST_MAIN(closed_convex_meshes_are_polytopes, a_convex_mesh_falls_as_its_hull,
          a_tetrahedron_has_its_exact_moments, a_torus_has_the_moments_of_a_torus,
          all_kinds_of_mesh_inertia_agree_on_a_box, a_mesh_turned_inside_out_has_no_mass,
          a_sampled_box_has_six_faces, prisms_tiny_and_huge_keep_their_faces,
          points_without_a_hull_are_refused, a_soup_of_triangles_becomes_a_box_with_neighbours,
          edges_know_valleys_ridges_borders_and_needles,
          an_edge_looks_through_a_triangle_without_area, needles_on_a_shared_edge_leave_it_shared,
          an_edge_looks_across_a_needle_not_along_it,
          the_tree_holds_every_triangle_and_stays_shallow)
