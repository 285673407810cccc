/* Worlds of many bodies for tests of large worlds on a card. */
#ifndef CARD_SCENES_H
#define CARD_SCENES_H

#include "card_util.h"

static inline tb_surface surface_of(double friction, double rolling)
{
    tb_surface surface = tb_shape_defaults().surface;
    surface.friction = friction;
    if (rolling > 0) {
        surface.kind = TB_CONTACT_ROLLING;
        surface.spin_radius = surface.rolling_length = rolling;
    }
    return surface;
}

/* From 0 to 1. */
static inline double draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / 16777216;
}

static inline void add_free(tb_scene *scene, const tb_body_def *body, tb_shape_def *shape)
{
    tb_error error;
    TEST_OK(tb_scene_add_body(scene, body, &shape->body, &error), &error);
    add_joint(scene, shape->body, TB_JOINT_FREE, NULL);
    TEST_OK(tb_scene_add_shape(scene, shape, NULL, &error), &error);
}

/* Balls in a box of planes, as wide as it is full. rolling: length of rolling and of spinning
 * friction, m, 0: none. */
static inline tb_model *rolling_pile(int32_t count, double friction, double rolling)
{
    tb_error error;
    tb_scene *scene = new_scene();
    const int32_t side = (int32_t)ceil(cbrt((double)count));
    const double radius = 0.05, spacing = 2.02 * radius, width = side * spacing;
    static const double turns[5][3] = {{0, 1, 0}, {1, 0, 1}, {-1, 0, 1}, {-1, 1, 0}, {1, 1, 0}};
    uint32_t seed = 11;
    for (int k = 0; k < 5; k++) {
        tb_shape_def def = tb_shape_defaults();
        def.type = TB_SHAPE_PLANE;
        def.surface = surface_of(friction, rolling);
        if (k == 2) def.position[0] = width;
        if (k == 4) def.position[1] = width;
        def.orientation[0] = cos(turns[k][0] * M_PI / 4);
        def.orientation[1] = turns[k][1] * sin(turns[k][0] * M_PI / 4);
        def.orientation[2] = turns[k][2] * sin(turns[k][0] * M_PI / 4);
        TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
    }
    for (int32_t i = 0; i < count; i++) {
        tb_body_def body = tb_body_defaults();
        tb_shape_def shape = tb_shape_defaults();
        const int32_t at[3] = {i % side, i / side % side, i / side / side};
        for (int k = 0; k < 3; k++) body.position[k] = (at[k] + 0.5) * spacing + 2e-4 * draw(&seed);
        shape.type = TB_SHAPE_SPHERE;
        shape.size[0] = radius;
        shape.surface = surface_of(friction, rolling);
        add_free(scene, &body, &shape);
    }
    return finish(scene);
}

static inline tb_model *pile(int32_t count, double friction)
{
    return rolling_pile(count, friction, 0);
}

static inline tb_model *small_pile(void)
{
    return pile(216, 0);
}

typedef enum basin_kind { MESH_BASIN, FIELD_BASIN, MESHES_BASIN } basin_kind;

/* Wavy ground with a steep rim. */
static inline void add_ground(tb_scene *scene, basin_kind kind, double width, double friction)
{
    enum { SIDE = 17 };
    tb_error error;
    double vertices[3 * SIDE * SIDE], heights[SIDE * SIDE];
    int32_t triangles[6 * (SIDE - 1) * (SIDE - 1)], count = 0;
    tb_shape_def shape = tb_shape_defaults();
    shape.surface.friction = friction;
    for (int32_t i = 0; i < SIDE * SIDE; i++) {
        const double x = (double)(i % SIDE) / (SIDE - 1), y = (double)(i / SIDE) / (SIDE - 1);
        const double out = fmax(fabs(x - 0.5), fabs(y - 0.5));
        const double p[3] = {width * (x - 0.5), width * (y - 0.5),
                             0.05 + 0.02 * sin(20 * x) * cos(17 * y) +
                                 (out > 0.4 ? 8 * width * (out - 0.4) : 0)};
        memcpy(vertices + 3 * i, p, sizeof p);
        heights[i] = p[2];
        if (i % SIDE == SIDE - 1 || i / SIDE == SIDE - 1) continue;
        const int32_t both[6] = {i, i + 1, i + SIDE + 1, i, i + SIDE + 1, i + SIDE};
        memcpy(triangles + 3 * count, both, sizeof both);
        count += 2;
    }
    if (kind == FIELD_BASIN) {
        tb_height_field_def field = tb_height_field_defaults();
        field.heights = heights;
        field.rows = field.columns = SIDE;
        field.half_x = field.half_y = width / 2;
        field.base = 0.1;
        TEST_OK(tb_scene_add_height_field(scene, &field, &shape.asset, &error), &error);
    } else {
        tb_mesh_def mesh = tb_mesh_defaults();
        mesh.vertices = vertices;
        mesh.number_of_vertices = SIDE * SIDE;
        mesh.triangles = triangles;
        mesh.number_of_triangles = count;
        TEST_OK(tb_scene_add_mesh(scene, &mesh, &shape.asset, &error), &error);
    }
    shape.type = kind == FIELD_BASIN ? TB_SHAPE_HEIGHT_FIELD : TB_SHAPE_MESH;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
}

/* A block of triangles without one of them, so that it is no polytope. */
static inline tb_handle open_block(tb_scene *scene)
{
    static const double half[3] = {0.05, 0.04, 0.03};
    tb_error error;
    double vertices[24];
    int32_t triangles[36];
    tb_handle asset;
    box_mesh(half, vertices, triangles);
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.vertices = vertices;
    mesh.number_of_vertices = 8;
    mesh.triangles = triangles + 3;
    mesh.number_of_triangles = 11;
    mesh.inertia = TB_MESH_INERTIA_CONVEX;
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &asset, &error), &error);
    return asset;
}

/* Shapes in a basin of triangles or of heights, with MESHES_BASIN meshes among them. */
static inline tb_model *basin(basin_kind kind, int32_t count, double friction)
{
    static const tb_shape_type types[] = {TB_SHAPE_SPHERE, TB_SHAPE_BOX, TB_SHAPE_CAPSULE,
                                          TB_SHAPE_CYLINDER, TB_SHAPE_ELLIPSOID};
    tb_scene *scene = new_scene();
    tb_handle block = {0};
    const int32_t side = (int32_t)ceil(sqrt((double)count / 3));
    uint32_t seed = 5;
    add_ground(scene, kind, 0.15 * side / 0.7, friction);
    if (kind == MESHES_BASIN) block = open_block(scene);
    for (int32_t i = 0; i < count; i++) {
        tb_body_def body = tb_body_defaults();
        tb_shape_def shape = tb_shape_defaults();
        const int32_t at[3] = {i % side, i / side % side, i / side / side};
        for (int k = 0; k < 3; k++)
            body.position[k] = 0.15 * (at[k] - (k < 2 ? 0.5 * (side - 1) : 0)) +
                               0.02 * draw(&seed) + (k == 2 ? 0.16 : 0);
        const double turn = 0.7 * (i % 7);
        body.orientation[0] = cos(turn / 2);
        body.orientation[1] = 0.6 * sin(turn / 2);
        body.orientation[3] = 0.8 * sin(turn / 2);
        shape.type = types[i % 5];
        shape.size[0] = 0.04, shape.size[1] = 0.03, shape.size[2] = 0.03;
        if (kind == MESHES_BASIN && i % 2 == 0) {
            shape.type = TB_SHAPE_MESH;
            shape.asset = block;
            memset(shape.size, 0, sizeof shape.size);
        }
        shape.surface.friction = friction;
        add_free(scene, &body, &shape);
    }
    return finish(scene);
}

/* Balls on a plane that leans, with rolling friction that holds the small ones and lets the large
 * ones roll. */
static inline tb_model *leaning(void)
{
    tb_error error;
    tb_scene *scene = new_scene();
    tb_scene_def options = tb_scene_options(scene);
    tb_shape_def def = tb_shape_defaults();
    options.gravity[0] = 1;
    TEST_OK(tb_scene_set_options(scene, &options, &error), &error);
    def.type = TB_SHAPE_PLANE;
    def.surface = surface_of(0.5, 0.01);
    TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
    def.type = TB_SHAPE_SPHERE;
    for (int i = 0; i < 10; i++) {
        tb_body_def body = tb_body_defaults();
        def.size[0] = 0.05 * (1 + i);
        body.position[1] = 1.2 * i;
        body.position[2] = def.size[0];
        add_free(scene, &body, &def);
    }
    return finish(scene);
}

static inline tb_model *boxes_that_roll(void)
{
    tb_error error;
    tb_scene *scene = new_scene();
    tb_shape_def def = tb_shape_defaults();
    def.type = TB_SHAPE_PLANE;
    def.surface = surface_of(0.5, 0.005);
    TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
    for (int i = 0; i < 36; i++) {
        tb_body_def body = tb_body_defaults();
        body.position[0] = 0.12 * (i % 6), body.position[1] = 0.12 * (i / 6);
        body.position[2] = 0.05;
        def.type = i % 2 ? TB_SHAPE_BOX : TB_SHAPE_SPHERE;
        def.size[0] = def.size[1] = def.size[2] = 0.05;
        add_free(scene, &body, &def);
    }
    return finish(scene);
}

#endif
