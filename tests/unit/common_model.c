/* See model_util.h. */
#include "model_util.h"

static void add_parts(tb_scene *scene, tb_handle hinge, tb_handle slide, tb_handle arm,
                      tb_handle ball)
{
    tb_error error = {0};
    const tb_handle joints[2] = {hinge, slide};
    const double coefficients[2] = {1, -0.5};
    tb_handle tendon;
    tb_tendon_def cord = tb_tendon_defaults();
    cord.name = "cord";
    cord.joints = joints;
    cord.coefficients = coefficients;
    cord.number_of_joints = 2;
    TEST_OK(tb_scene_add_tendon(scene, &cord, &tendon, &error), &error);

    tb_actuator_def motor = tb_actuator_defaults();
    motor.name = "motor";
    motor.target = hinge;
    motor.activation = TB_ACTIVATION_FILTER;
    motor.time_constant = 0.1;
    motor.force_limited = true;
    motor.force_lower = -20;
    motor.force_upper = 20;
    TEST_OK(tb_scene_add_actuator(scene, &motor, NULL, &error), &error);
    motor = tb_actuator_defaults();
    motor.target = tendon;
    tb_actuator_position_servo(&motor, 100, 2);
    TEST_OK(tb_scene_add_actuator(scene, &motor, NULL, &error), &error);

    tb_equality_def equality = tb_equality_defaults();
    equality.name = "mimic";
    equality.type = TB_EQUALITY_JOINT;
    equality.a = slide;
    equality.b = hinge;
    TEST_OK(tb_scene_add_equality(scene, &equality, NULL, &error), &error);
    equality = tb_equality_defaults();
    equality.type = TB_EQUALITY_WELD;
    equality.a = arm;
    equality.b = ball;
    equality.anchor_a[0] = 0.25;
    TEST_OK(tb_scene_add_equality(scene, &equality, NULL, &error), &error);
}

static void add_assets(tb_scene *scene, tb_handle body)
{
    static const double half[3] = {0.1, 0.2, 0.3};
    static const double heights[6] = {0, 0.1, 0, 0.2, 0, 0.1};
    tb_error error = {0};
    double vertices[24];
    int32_t triangles[36];
    tb_handle asset;
    box_mesh(half, vertices, triangles);
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.name = "block";
    mesh.vertices = vertices;
    mesh.number_of_vertices = 8;
    mesh.triangles = triangles;
    mesh.number_of_triangles = 12;
    mesh.most_hull_vertices = 8; /* all; with a bound, the mesh collides as its triangles */
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &asset, &error), &error);
    tb_shape_def shape = tb_shape_defaults();
    shape.body = body;
    shape.asset = asset;
    shape.type = TB_SHAPE_CONVEX;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    shape.type = TB_SHAPE_MESH;
    shape.name = "mesh";
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);

    tb_height_field_def field = tb_height_field_defaults();
    field.name = "hills";
    field.heights = heights;
    field.rows = 2;
    field.columns = 3;
    TEST_OK(tb_scene_add_height_field(scene, &field, &asset, &error), &error);
    shape = tb_shape_defaults();
    shape.type = TB_SHAPE_HEIGHT_FIELD;
    shape.asset = asset;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
}

tb_scene *rich_scene(void)
{
    static const double q[] = {1, 2, 3, 1, 0, 0, 0, 0.5, 0.25, 0.1, 0.2, 0.3, 1, 0, 0, 0};
    const tb_handle none = {0};
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_scene_def options = tb_scene_options(scene);
    options.name = "rich";
    TEST_OK(tb_scene_set_options(scene, &options, &error), &error);

    const tb_handle floor = add_shape(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    const tb_handle ball = add_ball(scene, "ball");
    const tb_handle base = add_body(scene, none, "base");
    const tb_handle arm = add_body(scene, base, "arm");
    const tb_handle hand = add_body(scene, arm, "hand");
    const tb_handle hinge = add_joint(scene, arm, TB_JOINT_HINGE, "elbow");
    const tb_handle slide = add_joint(scene, arm, TB_JOINT_SLIDE, "rail");
    add_joint(scene, hand, TB_JOINT_PLANAR, "wrist");
    const tb_handle thumb = add_body(scene, hand, "tip of the thumb");
    add_joint(scene, thumb, TB_JOINT_BALL, "thumb");
    add_shape(scene, thumb, TB_SHAPE_ELLIPSOID, 0.1, 0.2, 0.3);
    const tb_handle box = add_shape(scene, arm, TB_SHAPE_BOX, 0.1, 0.2, 0.3);
    add_shape(scene, hand, TB_SHAPE_CYLINDER, 0.1, 0.2, 0);
    add_assets(scene, hand);
    add_parts(scene, hinge, slide, arm, ball);

    tb_body_def given = tb_body_defaults();
    given.name = "puppet";
    given.kinematic = true;
    given.has_inertia = true;
    given.mass = 2;
    given.inertia[0] = given.inertia[1] = given.inertia[2] = 0.5;
    TEST_OK(tb_scene_add_body(scene, &given, NULL, &error), &error);
    tb_site_def site = tb_site_defaults();
    site.name = "tip";
    site.body = hand;
    TEST_OK(tb_scene_add_site(scene, &site, NULL, &error), &error);
    tb_pair_def pair = tb_pair_defaults();
    pair.a = box;
    pair.b = floor;
    pair.surface.friction = 0.3;
    TEST_OK(tb_scene_add_pair(scene, &pair, NULL, &error), &error);
    TEST_OK(tb_scene_add_exclude(scene, ball, hand, &error), &error);
    tb_keyframe_def key = tb_keyframe_defaults();
    key.name = "home";
    key.q = q;
    key.number_of_q = 16;
    TEST_OK(tb_scene_add_keyframe(scene, &key, NULL, &error), &error);
    TEST_OK(tb_scene_warn(scene, "something was ignored", &error), &error);
    return scene;
}
