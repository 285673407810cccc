/* Worlds of many shapes on meshes and height fields, for the tests of large-world mode. */
#ifndef LARGE_SURFACES_H
#define LARGE_SURFACES_H

#include "large_scenes.h"

enum { SURFACE_SIDE = 13 };     /* vertices along an edge of a ground */
static const double TILT = 0.1; /* of a ground, rad */

/* Heights of rough ground, at least 0. */
static inline double ground_height(double x, double y)
{
    return 0.06 * (2 + sin(7 * x + 1) + cos(5 * y - 3 * x));
}

/* Adds a mesh asset and a shape of it to the body. */
static inline void add_mesh(tb_scene *scene, tb_handle body, const double *vertices,
                            int32_t number_of_vertices, const int32_t *triangles,
                            int32_t number_of_triangles)
{
    tb_error error;
    tb_mesh_def mesh = tb_mesh_defaults();
    tb_shape_def shape = tb_shape_defaults();
    mesh.vertices = vertices;
    mesh.number_of_vertices = number_of_vertices;
    mesh.triangles = triangles;
    mesh.number_of_triangles = number_of_triangles;
    mesh.inertia = TB_MESH_INERTIA_SHELL;
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &shape.asset, &error), &error);
    shape.body = body;
    shape.type = TB_SHAPE_MESH;
    set_surface(&shape.surface);
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
}

/* A grid of triangles through points of (u, v) in 0 to 1 each. */
typedef void surface_point(double u, double v, double point[3]);

static inline void add_sheet(tb_scene *scene, tb_handle body, surface_point *at, int32_t side)
{
    double *vertices = calloc((size_t)(3 * side * side), sizeof *vertices);
    int32_t *triangles = calloc((size_t)(6 * side * side), sizeof *triangles), count = 0;
    for (int32_t i = 0; i < side * side; i++)
        at((double)(i % side) / (side - 1), (double)(i / side) / (side - 1), vertices + 3 * i);
    for (int32_t y = 0; y + 1 < side; y++)
        for (int32_t x = 0; x + 1 < side; x++) {
            const int32_t a = y * side + x, b = a + 1, c = a + side, d = c + 1;
            const int32_t both[6] = {a, b, d, a, d, c};
            memcpy(triangles + 3 * count, both, sizeof both);
            count += 2;
        }
    add_mesh(scene, body, vertices, side * side, triangles, count);
    free(vertices);
    free(triangles);
}

static inline void on_rough_ground(double u, double v, double p[3])
{
    p[0] = 1.6 * u - 0.8, p[1] = 1.6 * v - 0.8;
    p[2] = ground_height(p[0], p[1]) - 0.2;
}

static inline void on_funnel(double u, double v, double p[3])
{
    p[0] = 1.6 * u - 0.8, p[1] = 1.6 * v - 0.8;
    const double r = fmax(fabs(p[0]), fabs(p[1]));
    p[2] = r > 0.35 ? 1.5 * (r - 0.35) : 0;
}

/* A body that nothing moves, tilted about an axis in the plane. */
static inline tb_handle tilted_body(tb_scene *scene, double angle, bool kinematic)
{
    tb_error error;
    tb_handle handle;
    tb_body_def body = tb_body_defaults();
    body.orientation[0] = cos(angle / 2);
    body.orientation[1] = 0.6 * sin(angle / 2);
    body.orientation[2] = 0.8 * sin(angle / 2);
    body.kinematic = kinematic;
    TEST_OK(tb_scene_add_body(scene, &body, &handle, &error), &error);
    return handle;
}

static inline void add_field(tb_scene *scene, tb_handle body)
{
    tb_error error;
    double heights[SURFACE_SIDE * SURFACE_SIDE];
    tb_height_field_def field = tb_height_field_defaults();
    tb_shape_def shape = tb_shape_defaults();
    field.heights = heights;
    field.rows = field.columns = SURFACE_SIDE;
    field.half_x = field.half_y = 0.8;
    field.base = 0.1;
    for (int i = 0; i < SURFACE_SIDE * SURFACE_SIDE; i++)
        heights[i] = ground_height(1.6 * (i % SURFACE_SIDE) / (SURFACE_SIDE - 1) - 0.8,
                                   1.6 * (i / SURFACE_SIDE) / (SURFACE_SIDE - 1) - 0.8);
    TEST_OK(tb_scene_add_height_field(scene, &field, &shape.asset, &error), &error);
    shape.body = body;
    shape.type = TB_SHAPE_HEIGHT_FIELD;
    shape.position[2] = -0.2;
    set_surface(&shape.surface);
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
}

enum { JACK_PARTS = 3 }; /* pieces of an edge of the octahedron that a jack is made from */

/* Number of the vertex at integer coordinates whose absolute values sum to JACK_PARTS; added if new. */
static inline int32_t jack_vertex(double *vertices, int32_t (*places)[3], int32_t *count,
                                  const int32_t at[3])
{
    for (int32_t i = 0; i < *count; i++)
        if (memcmp(places[i], at, sizeof places[i]) == 0) return i;
    memcpy(places[*count], at, sizeof places[*count]);
    const double length = sqrt((double)(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]));
    double fourth = 0;
    for (int k = 0; k < 3; k++) fourth += pow(at[k] / length, 4);
    for (int k = 0; k < 3; k++) vertices[3 * *count + k] = 0.07 * fourth * at[k] / length;
    return (*count)++;
}

/* Adds a mesh with six arms to the body: not convex, and its centre of mass is its origin. */
static inline void add_jack(tb_scene *scene, tb_handle body)
{
    enum { MOST = 4 * JACK_PARTS * JACK_PARTS + 2 };
    double vertices[3 * MOST];
    int32_t places[MOST][3], triangles[24 * JACK_PARTS * JACK_PARTS], count = 0, n = 0;
    for (int octant = 0; octant < 8; octant++) {
        const int32_t x = octant & 1 ? -1 : 1, y = octant & 2 ? -1 : 1, z = octant & 4 ? -1 : 1;
        const bool mirrored = x * y * z < 0;
        for (int32_t i = 0; i < JACK_PARTS; i++)
            for (int32_t j = 0; i + j < JACK_PARTS; j++)
                for (int32_t up = 0; up < (i + j + 1 < JACK_PARTS ? 2 : 1); up++) {
                    const int32_t corners[3][2] = {{i + up, j + up}, {i + 1, j}, {i, j + 1}};
                    int32_t *t = triangles + 3 * n++;
                    for (int c = 0; c < 3; c++) {
                        const int32_t *p = corners[c];
                        const int32_t at[3] = {x * p[0], y * p[1], z * (JACK_PARTS - p[0] - p[1])};
                        t[(mirrored != (up == 1)) && c > 0 ? 3 - c : c] =
                            jack_vertex(vertices, places, &count, at);
                    }
                }
    }
    add_mesh(scene, body, vertices, count, triangles, n);
}

typedef enum ground_kind { ROUGH, FUNNEL, FIELD, MOVED } ground_kind;

/* One of every convex shape, or balls alone, `height` (m) over a tilted ground. */
static inline tb_model *grounded(ground_kind base, bool balls, double mu, int32_t count,
                                 double height)
{
    static const tb_shape_type types[] = {TB_SHAPE_SPHERE,   TB_SHAPE_BOX,       TB_SHAPE_CAPSULE,
                                          TB_SHAPE_CYLINDER, TB_SHAPE_ELLIPSOID, TB_SHAPE_CONVEX};
    static const double half[3] = {0.045, 0.035, 0.03};
    uint32_t seed = 17 + (uint32_t)base;
    friction = mu;
    tb_error error;
    tb_scene *scene = new_scene();
    const tb_handle ground = tilted_body(scene, base == FUNNEL ? 0 : TILT, base == MOVED);
    double corners[24];
    tb_mesh_def hull = tb_mesh_defaults();
    tb_handle asset;
    if (base == FIELD)
        add_field(scene, ground);
    else
        add_sheet(scene, ground, base == FUNNEL ? on_funnel : on_rough_ground, SURFACE_SIDE);
    for (int v = 0; v < 8; v++)
        for (int k = 0; k < 3; k++)
            corners[3 * v + k] = (v >> k & 1 ? half[k] : -half[k]) * (v == 0 || v == 7 ? 0.7 : 1);
    hull.vertices = corners;
    hull.number_of_vertices = 8;
    TEST_OK(tb_scene_add_mesh(scene, &hull, &asset, &error), &error);
    for (int k = 0; k < count; k++) {
        double p[3] = {0.17 * (k % 6) - 0.43 + 0.03 * noise(&seed),
                       0.17 * (k / 6 % 6) - 0.43 + 0.03 * noise(&seed), height + 0.18 * (k / 36)};
        if (base != FUNNEL) p[2] += ground_height(p[0], p[1]) - 0.2;
        if (base != FUNNEL) p[2] += TILT * (0.6 * p[1] - 0.8 * p[0]);
        tb_body_def body = tb_body_defaults();
        tb_shape_def shape = tb_shape_defaults();
        const double turn = 3 * noise(&seed);
        memcpy(body.position, p, sizeof p);
        body.orientation[0] = cos(turn / 2);
        body.orientation[1] = 0.6 * sin(turn / 2);
        body.orientation[3] = 0.8 * sin(turn / 2);
        TEST_OK(tb_scene_add_body(scene, &body, &shape.body, &error), &error);
        add_joint(scene, shape.body, TB_JOINT_FREE, NULL);
        shape.type = balls ? TB_SHAPE_SPHERE : types[k % 6];
        set_surface(&shape.surface);
        shape.size[0] = 0.045, shape.size[1] = 0.035, shape.size[2] = 0.03;
        if (shape.type == TB_SHAPE_CONVEX) shape.asset = asset;
        if (shape.type == TB_SHAPE_CONVEX) memset(shape.size, 0, sizeof shape.size);
        TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    }
    return finish(scene);
}

/* Jacks, and balls between them, over a tilted rough ground of triangles in a half space. */
static inline tb_model *jacks(double mu, int32_t count)
{
    uint32_t seed = 29;
    friction = mu;
    tb_error error;
    tb_scene *scene = new_scene();
    add_wall(scene, 0, 0, 0, 1, 0);
    add_sheet(scene, tilted_body(scene, TILT, false), on_rough_ground, SURFACE_SIDE);
    for (int k = 0; k < count; k++) {
        tb_body_def body = tb_body_defaults();
        tb_handle handle;
        const double turn = 3 * noise(&seed);
        body.position[0] = 0.17 * (k % 4) - 0.26 + 0.03 * noise(&seed);
        body.position[1] = 0.17 * (k / 4 % 4) - 0.26 + 0.03 * noise(&seed);
        body.position[2] = 0.14 + 0.15 * (k / 16);
        body.orientation[0] = cos(turn / 2);
        body.orientation[1] = 0.6 * sin(turn / 2);
        body.orientation[3] = 0.8 * sin(turn / 2);
        TEST_OK(tb_scene_add_body(scene, &body, &handle, &error), &error);
        add_joint(scene, handle, TB_JOINT_FREE, NULL);
        if (k % 3 < 2)
            add_jack(scene, handle);
        else
            add_part(scene, handle, TB_SHAPE_SPHERE, 0.06, 0, 0);
    }
    return finish(scene);
}

/* Balls in a cone of twelve triangles: the lowest touches all of them, and each has a normal of its
 * own. With a box above them sweeps take units of several contacts. */
static inline tb_model *cone(double mu, bool with_box)
{
    enum { SIDES = 12 };
    friction = mu;
    double vertices[3 * (SIDES + 1)] = {0};
    int32_t triangles[3 * SIDES];
    for (int i = 0; i < SIDES; i++) {
        const double angle = 2 * M_PI * i / SIDES;
        vertices[3 * i + 3] = cos(angle), vertices[3 * i + 4] = sin(angle), vertices[3 * i + 5] = 1;
        const int32_t side[3] = {0, 1 + i, 1 + (i + 1) % SIDES};
        memcpy(triangles + 3 * i, side, sizeof side);
    }
    tb_scene *scene = new_scene();
    add_mesh(scene, tilted_body(scene, 0, false), vertices, SIDES + 1, triangles, SIDES);
    const double reach = 0.2 / sin(atan(cos(M_PI / SIDES)));
    for (int i = 0; i < 3; i++)
        place(scene, TB_SHAPE_SPHERE, (const double[]){0.01 * i, 0.02 * i, reach + 0.35 * i},
              i == 0 ? 0.2 : 0.1, 0, 0, 0);
    if (with_box)
        place(scene, TB_SHAPE_BOX, (const double[]){0.1, -0.1, reach + 1}, 0.1, 0.1, 0.1, 0.3);
    return finish(scene);
}

#endif
