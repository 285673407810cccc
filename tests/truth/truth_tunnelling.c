/* A finger that closes at 3 m/s moves 6 mm in a step of 2 ms and still does not pass a wall of
 * 3 mm.
 *
 * Source: the impenetrability of rigid bodies. The wall is a box or a closed mesh of the same size,
 * fixed or free and heavy; the finger a sphere, box, capsule or convex hull, free or on a slide
 * with a motor behind it. It starts at 40 distances that are no multiples of the step's way. */
#include "common_truth.h"

#define SPEED     3.0    /* m/s */
#define HALF_WALL 1.5e-3 /* m */

static void add_mesh_wall(truth *t, const tb_shape_def *wall)
{
    tb_error error;
    double v[8][3];
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 3; i++) v[k][i] = wall->size[i] * (k >> i & 1 ? 1 : -1);
    static const int32_t triangles[12][3] = {{0, 2, 1}, {1, 2, 3}, {4, 5, 6}, {5, 7, 6},
                                             {0, 1, 4}, {1, 5, 4}, {2, 6, 3}, {3, 6, 7},
                                             {0, 4, 2}, {2, 4, 6}, {1, 3, 5}, {3, 7, 5}};
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.vertices = v[0];
    mesh.number_of_vertices = 8;
    mesh.triangles = triangles[0];
    mesh.number_of_triangles = 12;
    tb_shape_def shape = *wall;
    shape.type = TB_SHAPE_MESH;
    TEST_OK(tb_scene_add_mesh(t->scene, &mesh, &shape.asset, &error), &error);
    TEST_OK(tb_scene_add_shape(t->scene, &shape, NULL, &error), &error);
}

/* How far the finger's surface came beyond the wall's near face, m. */
static double passed(tb_shape_type finger, bool mesh_wall, tb_scheme scheme, double distance)
{
    tb_error error;
    truth t = truth_begin(0, 2e-3);
    t.options.scheme = scheme;
    t.options.solve.tolerance = 1e-9;
    tb_shape_def wall = tb_shape_defaults();
    wall.type = TB_SHAPE_BOX;
    wall.size[0] = HALF_WALL, wall.size[1] = wall.size[2] = 0.1;
    if (mesh_wall)
        add_mesh_wall(&t, &wall);
    else
        TEST_OK(tb_scene_add_shape(t.scene, &wall, NULL, &error), &error);
    const double size[3] = {0.008, 0.008, 0.008};
    const double x = -HALF_WALL - size[0] - distance;
    truth_body(&t, "finger", finger, size, 0.05, (const double[3]){x, 0, 0}, NULL,
               truth_surface(0.5, 0));
    truth_start(&t);
    truth_set_velocity(&t, "finger", (const double[3]){SPEED}, (const double[3]){0});
    double deepest = -1;
    for (int i = 0; i < 40; i++) {
        truth_run(&t, 1);
        deepest = fmax(deepest, truth_motion(&t, "finger").position[0] + size[0] + HALF_WALL);
    }
    truth_end(&t);
    return deepest;
}

static double worst(tb_scheme scheme)
{
    const tb_shape_type fingers[3] = {TB_SHAPE_SPHERE, TB_SHAPE_BOX, TB_SHAPE_CAPSULE};
    double most = -1;
    for (int f = 0; f < 3; f++)
        for (int mesh = 0; mesh < 2; mesh++)
            for (int k = 0; k < 40; k++)
                most = fmax(most, passed(fingers[f], mesh == 1, scheme, 2e-3 + 0.77e-3 * k));
    return most;
}

START_TEST(stewart_trinkle_stops_the_finger_at_the_surface)
{
    TRUTH_CHECK("finger at 3 m/s, Stewart-Trinkle: beyond the near face, m",
                worst(TB_SCHEME_STEWART_TRINKLE), 1e-5);
}
END_TEST

START_TEST(moreau_stops_the_finger_within_half_a_step)
{
    /* the midpoint rule sees the contact half a step late: at most 3 mm deep,
     * never out at the back */
    TRUTH_CHECK("finger at 3 m/s, Moreau: beyond the near face, m", worst(TB_SCHEME_MOREAU),
                SPEED * 1e-3 + 1e-5);
}
END_TEST

START_TEST(driven_finger_stays_before_the_wall)
{
    /* a motor of 40 N behind a slide: the finger arrives fast and then presses on */
    tb_error error;
    truth t = truth_begin(0, 2e-3);
    tb_shape_def wall = tb_shape_defaults();
    wall.type = TB_SHAPE_BOX;
    wall.size[0] = HALF_WALL, wall.size[1] = wall.size[2] = 0.1;
    TEST_OK(tb_scene_add_shape(t.scene, &wall, NULL, &error), &error);
    tb_body_def body = tb_body_defaults();
    body.name = "finger";
    body.position[0] = -0.2;
    tb_handle handle, slide;
    TEST_OK(tb_scene_add_body(t.scene, &body, &handle, &error), &error);
    tb_joint_def joint = tb_joint_defaults();
    joint.type = TB_JOINT_SLIDE;
    joint.body = handle;
    joint.axis[0] = 1, joint.axis[1] = joint.axis[2] = 0;
    TEST_OK(tb_scene_add_joint(t.scene, &joint, &slide, &error), &error);
    tb_shape_def pad = tb_shape_defaults();
    pad.type = TB_SHAPE_BOX;
    pad.body = handle;
    pad.mass = 0.05;
    pad.size[0] = pad.size[1] = pad.size[2] = 0.008;
    TEST_OK(tb_scene_add_shape(t.scene, &pad, NULL, &error), &error);
    tb_actuator_def motor = tb_actuator_defaults();
    motor.target = slide;
    TEST_OK(tb_scene_add_actuator(t.scene, &motor, NULL, &error), &error);
    truth_start(&t);
    TEST_OK(tb_state_set_control(t.state, 0, 40, &error), &error);
    double deepest = -1, fastest = 0;
    for (int i = 0; i < 200; i++) {
        truth_run(&t, 1);
        const tb_body_motion m = truth_motion(&t, "finger");
        deepest = fmax(deepest, m.position[0] + 0.008 + HALF_WALL);
        fastest = fmax(fastest, m.linear_velocity[0]);
    }
    TRUTH_CHECK("driven finger: beyond the near face, m", deepest, 1e-5);
    TRUTH_CHECK("driven finger: 3 m/s over its largest speed", 3 / fastest, 1);
    truth_end(&t);
}
END_TEST

TEST_MAIN(stewart_trinkle_stops_the_finger_at_the_surface,
          moreau_stops_the_finger_within_half_a_step, driven_finger_stays_before_the_wall)
