/* The scene builder refuses invalid values and names the field. */
#include "model_util.h"

static const tb_handle NONE = {0};

/* status, field and thing of a refusal */
static void refused(tb_status status, const tb_error *error, const char *field, const char *word)
{
    TEST_STATUS(status, TB_INVALID_ARGUMENT, error);
    ck_assert_str_eq(error->field, field);
    ck_assert_msg(strstr(error->message, word) != NULL, "'%s' is not in: %s", word, error->message);
}

#define BODY_REFUSED(field_, change)                                                               \
    do {                                                                                           \
        tb_body_def def = tb_body_defaults();                                                      \
        tb_error error = {0};                                                                      \
        tb_handle handle = {7, 7, 7};                                                              \
        def.name = "torso";                                                                        \
        def.has_inertia = true;                                                                    \
        def.mass = def.inertia[0] = def.inertia[1] = def.inertia[2] = 1;                           \
        change;                                                                                    \
        refused(tb_scene_add_body(scene, &def, &handle, &error), &error, field_, "torso");         \
        ck_assert(tb_handle_is_none(handle));                                                      \
    } while (0)

START_TEST(a_wrong_body_is_refused_by_field)
{
    tb_scene *scene = new_scene();
    tb_scene *other = new_scene();
    BODY_REFUSED("position", def.position[1] = NAN);
    BODY_REFUSED("position", def.position[1] = INFINITY);
    BODY_REFUSED("position", def.position[1] = 1e31);
    BODY_REFUSED("orientation", def.orientation[0] = 0);
    BODY_REFUSED("orientation", def.orientation[2] = NAN);
    BODY_REFUSED("mass", def.mass = -1);
    BODY_REFUSED("mass", def.mass = NAN);
    BODY_REFUSED("com", def.com[2] = -INFINITY);
    BODY_REFUSED("inertia_frame", def.inertia_frame[0] = 0);
    BODY_REFUSED("inertia", def.inertia[0] = -1);
    BODY_REFUSED("inertia", def.inertia[0] = 2.1);
    BODY_REFUSED("inertia", def.inertia[3] = 1.5);
    BODY_REFUSED("inertia", def.inertia[5] = NAN);
    BODY_REFUSED("parent", def.parent = add_body(other, NONE, NULL));
    BODY_REFUSED("parent", def.parent = add_shape(scene, NONE, TB_SHAPE_SPHERE, 1, 0, 0));
    BODY_REFUSED("parent", def.parent = tb_handle_make(TB_HANDLE_BODY, scene->owner, 99));
    BODY_REFUSED("kinematic", def.parent = add_body(scene, NONE, NULL); def.kinematic = true);
    add_body(scene, NONE, "torso");
    BODY_REFUSED("name", (void)0);
    ck_assert_int_eq(scene->number_of_bodies, 2);
    tb_scene_destroy(scene);
    tb_scene_destroy(other);
}
END_TEST

START_TEST(names_must_be_text)
{
    static const char *const bad[] = {"a\nb", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82"};
    tb_scene *scene = new_scene();
    tb_body_def def = tb_body_defaults();
    tb_error error = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        def.name = bad[i];
        refused(tb_scene_add_body(scene, &def, NULL, &error), &error, "name", "name");
    }
    char *endless = malloc(10001);
    memset(endless, 'x', 10000);
    endless[10000] = 0;
    def.name = endless;
    refused(tb_scene_add_body(scene, &def, NULL, &error), &error, "name", "4096");
    free(endless);
    def.name = "Gr\xc3\xbc\xc3\x9f Gott \xe2\x82\xac \xf0\x9f\xa4\x96";
    TEST_OK(tb_scene_add_body(scene, &def, NULL, &error), &error);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(an_inertia_that_breaks_the_triangle_inequality_passes_if_it_is_balanced)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_scene_def options = tb_scene_defaults();
    options.balance_inertia = true;
    TEST_OK(tb_scene_create(&options, &scene, &error), &error);
    tb_body_def def = tb_body_defaults();
    def.has_inertia = true;
    def.mass = def.inertia[0] = def.inertia[1] = 1;
    def.inertia[2] = 4;
    TEST_OK(tb_scene_add_body(scene, &def, NULL, &error), &error);
    tb_model *model = compile(scene);
    TEST_NEAR(model->bodies[1].inertia[0], 2, 1e-15);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(a_flat_plate_is_no_broken_inertia)
{
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_body_def def = tb_body_defaults();
    def.has_inertia = true;
    def.mass = 1;
    def.inertia[0] = 0.1, def.inertia[1] = 0.2, def.inertia[2] = 0.1 + 0.2 + 1e-16;
    TEST_OK(tb_scene_add_body(scene, &def, NULL, &error), &error);
    tb_scene_destroy(scene);
}
END_TEST

#define JOINT_REFUSED(field_, change)                                                              \
    do {                                                                                           \
        tb_joint_def def = tb_joint_defaults();                                                    \
        tb_error error = {0};                                                                      \
        def.name = "elbow";                                                                        \
        def.body = body;                                                                           \
        change;                                                                                    \
        refused(tb_scene_add_joint(scene, &def, NULL, &error), &error, field_, "elbow");           \
    } while (0)

START_TEST(a_wrong_joint_is_refused_by_field)
{
    tb_scene *scene = new_scene();
    const tb_handle body = add_body(scene, NONE, "body");
    JOINT_REFUSED("type", def.type = (tb_joint_type)77);
    JOINT_REFUSED("body", def.body = NONE);
    JOINT_REFUSED("axis", def.axis[2] = 0);
    JOINT_REFUSED("axis", def.axis[0] = NAN);
    JOINT_REFUSED("position", def.position[0] = NAN);
    JOINT_REFUSED("limits", def.limited = true; def.lower = 1; def.upper = 0);
    JOINT_REFUSED("limits", def.limited = true; def.upper = INFINITY);
    JOINT_REFUSED("limits", def.type = TB_JOINT_BALL; def.limited = true; def.upper = -1);
    JOINT_REFUSED("limited", def.type = TB_JOINT_FREE; def.limited = true);
    JOINT_REFUSED("stiffness", def.stiffness = -1);
    JOINT_REFUSED("damping", def.damping = -1);
    JOINT_REFUSED("damping", def.damping = NAN);
    JOINT_REFUSED("dry_friction", def.dry_friction = -1);
    JOINT_REFUSED("armature", def.armature = -1);
    JOINT_REFUSED("reference", def.reference = NAN);
    JOINT_REFUSED("spring_reference", def.spring_reference = INFINITY);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(joints_combine_as_in_mjcf)
{
    tb_scene *scene = new_scene();
    tb_handle body = add_body(scene, NONE, "one");
    add_joint(scene, body, TB_JOINT_HINGE, NULL);
    JOINT_REFUSED("type", def.type = TB_JOINT_FREE);
    add_joint(scene, body, TB_JOINT_SLIDE, NULL);
    add_joint(scene, body, TB_JOINT_BALL, NULL);
    JOINT_REFUSED("type", def.type = TB_JOINT_HINGE);
    JOINT_REFUSED("type", def.type = TB_JOINT_PLANAR);
    add_joint(scene, body, TB_JOINT_SLIDE, NULL);
    JOINT_REFUSED("type", def.type = TB_JOINT_SLIDE);
    body = add_body(scene, body, "nested");
    JOINT_REFUSED("type", def.type = TB_JOINT_FREE);
    body = add_body(scene, NONE, "flying");
    add_joint(scene, body, TB_JOINT_FREE, NULL);
    add_joint(scene, body, TB_JOINT_FIXED, NULL);
    JOINT_REFUSED("type", def.type = TB_JOINT_HINGE);

    tb_error added = {0};
    tb_body_def puppet = tb_body_defaults();
    puppet.kinematic = true;
    TEST_OK(tb_scene_add_body(scene, &puppet, &body, &added), &added);
    JOINT_REFUSED("body", def.type = TB_JOINT_HINGE);
    tb_scene_destroy(scene);
}
END_TEST

#define SHAPE_REFUSED(field_, change)                                                              \
    do {                                                                                           \
        tb_shape_def def = tb_shape_defaults();                                                    \
        tb_error error = {0};                                                                      \
        def.name = "fingertip";                                                                    \
        def.size[0] = def.size[1] = def.size[2] = 1;                                               \
        change;                                                                                    \
        refused(tb_scene_add_shape(scene, &def, NULL, &error), &error, field_, "fingertip");       \
    } while (0)

START_TEST(a_wrong_shape_is_refused_by_field)
{
    static const double points[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    tb_scene *scene = new_scene();
    tb_error added = {0};
    tb_handle cloud;
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.vertices = points;
    mesh.number_of_vertices = 4;
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &cloud, &added), &added);
    SHAPE_REFUSED("type", def.type = (tb_shape_type)-1);
    SHAPE_REFUSED("size", def.size[0] = 0);
    SHAPE_REFUSED("size", def.size[0] = -1);
    SHAPE_REFUSED("size", def.size[0] = NAN);
    SHAPE_REFUSED("size", def.type = TB_SHAPE_BOX; def.size[2] = 0);
    SHAPE_REFUSED("size", def.type = TB_SHAPE_CYLINDER; def.size[1] = 0);
    SHAPE_REFUSED("size", def.type = TB_SHAPE_CAPSULE; def.size[1] = -1);
    SHAPE_REFUSED("asset", def.type = TB_SHAPE_CONVEX);
    SHAPE_REFUSED("asset", def.type = TB_SHAPE_MESH; def.asset = cloud);
    SHAPE_REFUSED("asset", def.type = TB_SHAPE_HEIGHT_FIELD; def.asset = cloud);
    SHAPE_REFUSED("position", def.position[0] = NAN);
    SHAPE_REFUSED("orientation", def.orientation[0] = 0);
    SHAPE_REFUSED("density", def.density = -1);
    SHAPE_REFUSED("density", def.density = INFINITY);
    SHAPE_REFUSED("mass", def.mass = NAN);
    SHAPE_REFUSED("surface.kind", def.surface.kind = (tb_contact_kind)2);
    SHAPE_REFUSED("surface.friction", def.surface.friction = -0.1);
    SHAPE_REFUSED("surface.friction", def.surface.friction = NAN);
    SHAPE_REFUSED("surface.restitution", def.surface.restitution = 1.1);
    SHAPE_REFUSED("surface.tangential_restitution", def.surface.tangential_restitution = 1.1);
    SHAPE_REFUSED("surface.spin_radius", def.surface.spin_radius = -1);
    SHAPE_REFUSED("surface.rolling_length", def.surface.rolling_length = -1);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(wrong_assets_are_refused_by_field)
{
    static const double heights[4] = {0, 1, 2, -1};
    double points[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const int32_t triangles[6] = {0, 1, 2, 0, 1, 4};
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.name = "mug";
    mesh.vertices = points;
    mesh.number_of_vertices = 2;
    refused(tb_scene_add_mesh(scene, &mesh, NULL, &error), &error, "number_of_vertices", "mug");
    mesh.number_of_vertices = 4;
    mesh.triangles = triangles;
    mesh.number_of_triangles = 2;
    refused(tb_scene_add_mesh(scene, &mesh, NULL, &error), &error, "triangles", "vertex 4 of 4");
    mesh.number_of_triangles = -1;
    refused(tb_scene_add_mesh(scene, &mesh, NULL, &error), &error, "number_of_triangles", "mug");
    mesh.number_of_triangles = 1;
    points[7] = NAN;
    refused(tb_scene_add_mesh(scene, &mesh, NULL, &error), &error, "vertices", "mug");

    tb_height_field_def field = tb_height_field_defaults();
    field.name = "hills";
    field.heights = heights;
    field.rows = field.columns = 2;
    refused(tb_scene_add_height_field(scene, &field, NULL, &error), &error, "heights", "hills");
    field.columns = 1;
    refused(tb_scene_add_height_field(scene, &field, NULL, &error), &error, "columns", "hills");
    field.rows = INT32_MAX;
    refused(tb_scene_add_height_field(scene, &field, NULL, &error), &error, "rows", "hills");
    field.rows = 2;
    field.columns = 2;
    field.half_y = 0;
    refused(tb_scene_add_height_field(scene, &field, NULL, &error), &error, "half_y", "hills");
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(wrong_parts_are_refused_by_field)
{
    tb_scene *scene = new_scene();
    tb_error error = {0};
    const tb_handle body = add_body(scene, NONE, "body");
    const tb_handle ball = add_joint(scene, body, TB_JOINT_BALL, "ball");
    const tb_handle nested = add_body(scene, body, "nested");
    const tb_handle hinge = add_joint(scene, nested, TB_JOINT_HINGE, "hinge");
    const tb_handle planar = add_joint(scene, nested, TB_JOINT_PLANAR, "planar");
    const tb_handle shape = add_shape(scene, body, TB_SHAPE_SPHERE, 1, 0, 0);
    const double one = 1, bad = NAN;

    tb_tendon_def tendon = tb_tendon_defaults();
    tendon.name = "cord";
    refused(tb_scene_add_tendon(scene, &tendon, NULL, &error), &error, "joints", "cord");
    tendon.number_of_joints = 1;
    tendon.joints = &ball;
    tendon.coefficients = &one;
    refused(tb_scene_add_tendon(scene, &tendon, NULL, &error), &error, "joints", "hinge or slide");
    tendon.joints = &hinge;
    tendon.coefficients = &bad;
    refused(tb_scene_add_tendon(scene, &tendon, NULL, &error), &error, "coefficients", "cord");
    tendon.coefficients = &one;
    tendon.damping = -1;
    refused(tb_scene_add_tendon(scene, &tendon, NULL, &error), &error, "damping", "cord");

    tb_actuator_def motor = tb_actuator_defaults();
    motor.name = "motor";
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "target", "motor");
    motor.target = planar;
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "target", "planar");
    motor.target = hinge;
    motor.gear[0] = INFINITY;
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "gear", "motor");
    motor.gear[0] = 1;
    motor.force_limited = true;
    motor.force_lower = 1;
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "force limits", "motor");
    motor.force_limited = false;
    motor.activation = TB_ACTIVATION_FILTER;
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "time_constant", "motor");
    motor.activation = TB_ACTIVATION_CURRENT;
    motor.time_constant = 1;
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "resistance", "motor");
    motor.resistance = 1;
    motor.bias[2] = -1;
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "gain", "of a current");
    motor.bias[2] = 0;
    motor.activation_limited = true;
    motor.activation_upper = 1;
    refused(tb_scene_add_actuator(scene, &motor, NULL, &error), &error, "activation limits",
            "motor");

    tb_equality_def equality = tb_equality_defaults();
    equality.name = "loop";
    refused(tb_scene_add_equality(scene, &equality, NULL, &error), &error, "b", "same");
    equality.type = TB_EQUALITY_JOINT;
    equality.a = ball;
    refused(tb_scene_add_equality(scene, &equality, NULL, &error), &error, "a", "hinge or slide");
    equality.a = body;
    refused(tb_scene_add_equality(scene, &equality, NULL, &error), &error, "a", "loop");

    tb_pair_def pair = tb_pair_defaults();
    pair.name = "pair";
    pair.a = pair.b = shape;
    refused(tb_scene_add_pair(scene, &pair, NULL, &error), &error, "b", "same");
    pair.b = body;
    refused(tb_scene_add_pair(scene, &pair, NULL, &error), &error, "b", "pair");
    refused(tb_scene_add_exclude(scene, body, shape, &error), &error, "body_b", "exclude");

    tb_keyframe_def key = tb_keyframe_defaults();
    key.name = "home";
    key.q = &bad;
    key.number_of_q = 1;
    refused(tb_scene_add_keyframe(scene, &key, NULL, &error), &error, "q", "home");
    key.q = &one;
    key.number_of_q = -5;
    refused(tb_scene_add_keyframe(scene, &key, NULL, &error), &error, "q", "home");
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(wrong_options_are_refused_by_field)
{
    static const struct {
        size_t offset;
        const char *field;
    } fields[] = {{offsetof(tb_scene_def, dt), "dt"},
                  {offsetof(tb_scene_def, gravity), "gravity"},
                  {offsetof(tb_scene_def, minimum_mass), "minimum_mass"},
                  {offsetof(tb_scene_def, minimum_inertia), "minimum_inertia"},
                  {offsetof(tb_scene_def, total_mass), "total_mass"}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        tb_scene_def def = tb_scene_defaults();
        tb_scene *scene = NULL;
        tb_error error = {0};
        const double bad = NAN;
        memcpy((char *)&def + fields[i].offset, &bad, sizeof bad);
        refused(tb_scene_create(&def, &scene, &error), &error, fields[i].field, "finite");
        ck_assert_ptr_null(scene);
    }
}
END_TEST

START_TEST(things_are_found_by_name_and_kind)
{
    tb_scene *scene = rich_scene();
    const tb_handle arm = tb_scene_find(scene, TB_HANDLE_BODY, "arm");
    ck_assert_int_eq(arm.kind, TB_HANDLE_BODY);
    ck_assert_int_eq(arm.index, 3);
    ck_assert(tb_handle_is_none(tb_scene_find(scene, TB_HANDLE_JOINT, "arm")));
    ck_assert(tb_handle_is_none(tb_scene_find(scene, TB_HANDLE_BODY, "leg")));
    ck_assert(tb_handle_is_none(tb_scene_find(scene, TB_HANDLE_BODY, NULL)));
    ck_assert_int_eq(tb_scene_number_of_warnings(scene), 1);
    ck_assert_str_eq(tb_scene_warning(scene, 0), "something was ignored");
    ck_assert_str_eq(tb_scene_warning(scene, 1), "");
    ck_assert_str_eq(tb_scene_options(scene).name, "rich");
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(ten_million_bodies_are_refused_at_the_limit)
{
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_status status = TB_OK;
    const tb_body_def def = tb_body_defaults();
    int added = 0;
    for (; added < 10000000 && status == TB_OK; added++)
        status = tb_scene_add_body(scene, &def, NULL, &error);
    TEST_STATUS(status, TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_int_eq(added, TB_SCENE_LIMIT + 1);
    ck_assert_ptr_nonnull(strstr(error.message, "4000000"));
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(a_wrong_body_is_refused_by_field, names_must_be_text,
          an_inertia_that_breaks_the_triangle_inequality_passes_if_it_is_balanced,
          a_flat_plate_is_no_broken_inertia, a_wrong_joint_is_refused_by_field,
          joints_combine_as_in_mjcf, a_wrong_shape_is_refused_by_field,
          wrong_assets_are_refused_by_field, wrong_parts_are_refused_by_field,
          wrong_options_are_refused_by_field, things_are_found_by_name_and_kind,
          ten_million_bodies_are_refused_at_the_limit)
