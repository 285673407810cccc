/* URDF: links, joints and meshes as imported, and every failure. */
#include "test_util.h"

#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"

static tb_error error;

static tb_status load_as(const char *text, bool fixed_base, tb_scene **scene)
{
    tb_import_options options = tb_import_defaults();
    options.fixed_base = fixed_base;
    memset(&error, 0, sizeof error);
    return tb_scene_load_urdf(text, strlen(text), "/nowhere/t.urdf", &options, scene, &error);
}

static tb_model *compiled(const char *text, bool fixed_base)
{
    tb_scene *scene;
    tb_model *model;
    TEST_OK(load_as(text, fixed_base, &scene), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* Loads, expects a failure with this status at this line whose message contains these words. */
static void check_failure(const char *text, tb_status expected, int line, const char *words)
{
    tb_scene *scene;
    const tb_status status = load_as(text, true, &scene);
    ck_assert_msg(status == expected, "%s\ngave %s (%s)", text, tb_status_name(status),
                  error.message);
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
    ck_assert_int_eq(error.line, line);
    ck_assert_str_eq(error.file, "/nowhere/t.urdf");
    ck_assert_ptr_null(scene);
}

/* Whether the scene of a text warns with these words. */
static bool warns(const char *text, const char *words)
{
    tb_scene *scene;
    bool found = false;
    TEST_OK(load_as(text, true, &scene), &error);
    for (int32_t i = 0; i < tb_scene_number_of_warnings(scene); i++)
        if (strstr(tb_scene_warning(scene, i), words) != NULL) found = true;
    tb_scene_destroy(scene);
    return found;
}

static tb_body_info body_named(const tb_model *model, const char *name)
{
    tb_body_info info;
    const int32_t index = tb_model_find(model, TB_HANDLE_BODY, name);
    ck_assert_msg(index > 0, "there is no body %s", name);
    TEST_OK(tb_model_body_info(model, index, &info), NULL);
    return info;
}

#define ROBOT(inside) "<robot name='r'>\n" inside "\n</robot>"
#define MASS          "<inertial><mass value='2'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
#define LINK(name)    "<link name='" name "'>" MASS "</link>"
#define ENDS(a, b)    "<parent link='" a "'/><child link='" b "'/>"
#define LIMIT         "<limit lower='-1' upper='2' effort='5' velocity='3'/>"
#define HINGE(name, a, b, inside)                                                                  \
    "<joint name='" name "' type='revolute'>" ENDS(a, b) LIMIT inside "</joint>"
/* two links and a joint, with something inside the joint */
#define PAIR(inside) ROBOT(LINK("a") LINK("b") "\n" HINGE("j", "a", "b", inside))

START_TEST(an_inertial_is_placed_and_turned)
{
    tb_model *model = compiled(
        ROBOT(
            LINK("a") "<link name='b'><inertial><origin xyz='1 2 3' rpy='0 0 1.5707963267948966'/>"
                      "<mass value='4'/><inertia ixx='1' iyy='2' izz='2.5' ixy='0.1' ixz='0.2' "
                      "iyz='0.3'/></inertial></link>" HINGE("j", "a", "b", "")),
        true);
    const tb_body_info b = body_named(model, "b");
    /* x' = y, y' = -x: xx and yy change places, xy its sign, (xz, yz) become (-yz, xz) */
    const double expected[6] = {2, 1, 2.5, -0.1, -0.3, 0.2};
    TEST_NEAR(b.mass, 4, 0);
    for (int k = 0; k < 3; k++) TEST_NEAR(b.com[k], k + 1, 0);
    for (int k = 0; k < 6; k++) TEST_NEAR(b.inertia[k], expected[k], 1e-14);
    tb_model_destroy(model);
}
END_TEST

START_TEST(roll_pitch_and_yaw_turn_about_fixed_axes)
{
    tb_model *model = compiled(PAIR("<origin xyz='1 2 3' rpy='0.3 -0.4 0.5'/>"), true);
    tb_state *state;
    tb_body_motion motion;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_state_body_motion(state, tb_model_find(model, TB_HANDLE_BODY, "b"), &motion), NULL);
    /* Rz Ry Rx, first column and last row */
    const tb_mat33 r = tb_q_matrix(tb_q_load(motion.orientation));
    TEST_NEAR(r.m[0], cos(0.5) * cos(-0.4), 1e-14);
    TEST_NEAR(r.m[3], sin(0.5) * cos(-0.4), 1e-14);
    TEST_NEAR(r.m[6], -sin(-0.4), 1e-14);
    TEST_NEAR(r.m[7], cos(-0.4) * sin(0.3), 1e-14);
    TEST_NEAR(r.m[8], cos(-0.4) * cos(0.3), 1e-14);
    for (int k = 0; k < 3; k++) TEST_NEAR(motion.position[k], k + 1, 1e-15);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_quaternion_may_stand_for_the_angles)
{
    tb_model *model = compiled(PAIR("<origin quat_xyzw='0 0 2 2'/>"), true);
    tb_model_destroy(model);
    check_failure(PAIR("<origin quat_xyzw='0 0 0 0'/>"), TB_INVALID_ARGUMENT, 3, "no direction");
}
END_TEST

START_TEST(every_kind_of_joint_is_made)
{
    static const struct {
        const char *type;
        tb_joint_type made;
        int joints, dofs, motors;
    } CASES[] = {{"fixed", TB_JOINT_FIXED, 0, 0, 0},      {"revolute", TB_JOINT_HINGE, 1, 1, 1},
                 {"continuous", TB_JOINT_HINGE, 1, 1, 1}, {"prismatic", TB_JOINT_SLIDE, 1, 1, 1},
                 {"planar", TB_JOINT_SLIDE, 3, 3, 0},     {"floating", TB_JOINT_FREE, 1, 6, 0},
                 {"spherical", TB_JOINT_BALL, 1, 3, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 ROBOT(LINK("a") LINK("b") "<joint name='j' type='%s'>" ENDS("a", "b") LIMIT
                       "<axis xyz='0 3 4'/><dynamics damping='0.5' friction='0.25'/>"
                       "</joint>"),
                 CASES[i].type);
        tb_model *model = compiled(text, true);
        const tb_model_counts counts = tb_model_count(model);
        ck_assert_int_eq(counts.bodies, 3);
        ck_assert_int_eq(counts.joints, CASES[i].joints);
        ck_assert_int_eq(counts.dofs, CASES[i].dofs);
        ck_assert_int_eq(counts.actuators, CASES[i].motors);
        if (CASES[i].joints == 1) {
            const tb_model_joint *joint = &model->joints[0];
            ck_assert_int_eq(joint->type, CASES[i].made);
            const bool bounded = i == 1 || i == 3;
            ck_assert_int_eq(joint->limited, bounded);
            if (bounded) TEST_NEAR(joint->lower, -1, 0);
            if (bounded) TEST_NEAR(joint->upper, 2, 0);
            if (CASES[i].dofs == 1) TEST_NEAR(joint->axis[2], 0.8, 1e-15);
            TEST_NEAR(model->dofs[0].damping, 0.5, 0);
            TEST_NEAR(model->dofs[0].dry_friction, 0.25, 0);
        }
        tb_model_destroy(model);
    }
}
END_TEST

START_TEST(motors_bear_the_joint_s_name_and_effort)
{
    tb_model *model = compiled(PAIR(""), true);
    const int32_t index = tb_model_find(model, TB_HANDLE_ACTUATOR, "j");
    ck_assert_int_eq(index, 0);
    const tb_model_actuator *motor = &model->actuators[0];
    ck_assert(motor->force_limited);
    TEST_NEAR(motor->force_lower, -5, 0);
    TEST_NEAR(motor->force_upper, 5, 0);
    TEST_NEAR(motor->gain[0], 1, 0);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_mimic_is_a_coupling_and_has_no_motor)
{
    tb_model *model =
        compiled(ROBOT(LINK("a") LINK("b") LINK("c") HINGE("j", "a", "b", "")
                           HINGE("k", "b", "c", "<mimic joint='j' multiplier='-2' offset='0.5'/>")),
                 true);
    ck_assert_int_eq(tb_model_count(model).actuators, 1);
    ck_assert_int_eq(tb_model_count(model).equalities, 1);
    const tb_model_equality *e = &model->equalities[0];
    ck_assert_int_eq(e->type, TB_EQUALITY_JOINT);
    ck_assert_int_eq(e->a, tb_model_find(model, TB_HANDLE_JOINT, "k"));
    ck_assert_int_eq(e->b, tb_model_find(model, TB_HANDLE_JOINT, "j"));
    TEST_NEAR(e->polynomial[0], 0.5, 0);
    TEST_NEAR(e->polynomial[1], -2, 0);
    tb_model_destroy(model);

    /* a fixed joint mimics nothing */
    const char *fixed = ROBOT(LINK("a") LINK("b") LINK("c")
                                  HINGE("j", "a", "b", "") "<joint name='k' type='fixed'>" ENDS(
                                      "b", "c") "<mimic joint='j'/></joint>");
    ck_assert(warns(fixed, "is fixed and mimics nothing"));
    model = compiled(fixed, true);
    ck_assert_int_eq(tb_model_count(model).equalities, 0);
    tb_model_destroy(model);
}
END_TEST

START_TEST(the_root_is_fixed_or_free)
{
    tb_model *model = compiled(PAIR(""), true);
    ck_assert_int_eq(tb_model_count(model).dofs, 1);
    tb_model_destroy(model);
    model = compiled(PAIR(""), false);
    ck_assert_int_eq(tb_model_count(model).dofs, 7);
    ck_assert_int_ge(tb_model_find(model, TB_HANDLE_JOINT, "a"), 0);
    tb_model_destroy(model);
    /* a link called world is the world */
    model = compiled(ROBOT("<link name='world'/>" LINK("b") HINGE("j", "world", "b", "")), false);
    ck_assert_int_eq(tb_model_count(model).dofs, 1);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_floating_link_floats_in_the_world)
{
    tb_model *model = compiled(
        ROBOT(LINK("a") LINK("b") LINK("c") HINGE(
            "j", "a", "b",
            "<origin xyz='0 0 1'/>") "<joint name='k' type='floating'>" ENDS("b",
                                                                             "c") "<origin xyz='1 "
                                                                                  "0 0'/></joint>"),
        true);
    const int32_t c = tb_model_find(model, TB_HANDLE_BODY, "c");
    ck_assert_int_eq(model->bodies[c].parent, 0);
    TEST_NEAR(model->bodies[c].position[0], 1, 1e-15);
    TEST_NEAR(model->bodies[c].position[2], 1, 1e-15);
    tb_model_destroy(model);
}
END_TEST

START_TEST(every_geometry_is_made)
{
#define COLLISION(shape)                                                                           \
    "<collision><origin xyz='0 0 1'/><geometry><" shape "/></geometry></collision>"
    tb_model *model = compiled(
        ROBOT("<link name='a'>" COLLISION(
            "plane normal='1 0 0'") "</link><link name='b'>" COLLISION("box size='1 2 3'")
                  COLLISION("cylinder radius='1' length='4'") COLLISION("sphere radius='2'")
                      COLLISION("capsule radius='1' length='4'") MASS
              "</link>" HINGE("j", "a", "b", "")),
        true);
    static const tb_shape_type TYPES[] = {TB_SHAPE_PLANE, TB_SHAPE_BOX, TB_SHAPE_CYLINDER,
                                          TB_SHAPE_SPHERE, TB_SHAPE_CAPSULE};
    static const double SIZES[][3] = {{0}, {0.5, 1, 1.5}, {1, 2, 0}, {2, 0, 0}, {1, 2, 0}};
    ck_assert_int_eq(model->number_of_shapes, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(model->shapes[i].type, TYPES[i]);
        for (int k = 0; k < 3; k++) TEST_NEAR(model->shapes[i].size[k], SIZES[i][k], 0);
        TEST_NEAR(model->shapes[i].position[2], 1, 0);
    }
    /* the plane's normal is its frame's Z */
    TEST_NEAR(model->shapes[0].rotation[2], 1, 1e-15);
    TEST_NEAR(body_named(model, "b").mass, 2, 0);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_contact_element_gives_the_surface)
{
    tb_model *model = compiled(
        ROBOT(
            "<link name='a'><contact><lateral_friction value='0.4'/><restitution value='0.5'/>"
            "<rolling_friction value='0.01'/><spinning_friction value='0.02'/></contact>" COLLISION(
                "sphere radius='1'") "</link>"),
        true);
    const tb_surface *s = &model->shapes[0].surface;
    ck_assert_int_eq(s->kind, TB_CONTACT_ROLLING);
    TEST_NEAR(s->friction, 0.4, 0);
    TEST_NEAR(s->restitution, 0.5, 0);
    TEST_NEAR(s->rolling_length, 0.01, 0);
    TEST_NEAR(2.0 / 3 * s->friction * s->spin_radius, 0.02, 1e-15);
    tb_model_destroy(model);
}
END_TEST

START_TEST(an_arm_does_not_collide_with_its_base)
{
    /* base and cover are one group, so are upper and lamp; the tip is further on */
#define BALL(name)       "<link name='" name "'>" MASS COLLISION("sphere radius='1'") "</link>"
#define WELD(name, a, b) "<joint name='" name "' type='fixed'>" ENDS(a, b) "</joint>"
    tb_model *model =
        compiled(ROBOT(BALL("base") BALL("cover") BALL("upper") BALL("lamp") BALL("tip")
                           WELD("w1", "base", "cover") HINGE("j", "cover", "upper", "")
                               WELD("w2", "upper", "lamp") HINGE("k", "lamp", "tip", "")),
                 true);
    static const struct {
        const char *a, *b;
        bool collide;
    } CASES[] = {{"base", "upper", false}, {"cover", "upper", false}, {"cover", "lamp", false},
                 {"upper", "tip", false},  {"lamp", "tip", false},    {"base", "tip", true},
                 {"cover", "tip", true},   {"base", "cover", false}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int32_t shapes[2] = {-1, -1};
        for (int32_t s = 0; s < model->number_of_shapes; s++) {
            const char *name = tb_model_thing_name(model, TB_HANDLE_BODY, model->shapes[s].body);
            if (strcmp(name, CASES[i].a) == 0) shapes[0] = s;
            if (strcmp(name, CASES[i].b) == 0) shapes[1] = s;
        }
        ck_assert_msg(tb_model_shapes_collide(model, shapes[0], shapes[1]) == CASES[i].collide,
                      "%s and %s", CASES[i].a, CASES[i].b);
    }
    tb_model_destroy(model);
}
END_TEST

START_TEST(links_without_mass_are_looked_after)
{
    /* as MuJoCo has it: a link without <inertial> weighs by its shapes, fixed to another or not */
#define FIXED(inside)                                                                              \
    ROBOT(LINK("a") LINK("b") HINGE("j", "a", "b", "") "<link name='c'>" inside COLLISION(         \
        "box size='1 1 1'") "</link>" WELD("w", "b", "c"))
    tb_model *model = compiled(FIXED(""), true);
    TEST_NEAR(body_named(model, "c").mass, 1000, 1e-9);
    tb_model_destroy(model);
    ck_assert(warns(FIXED(""), "link 'c' has no <inertial>: its collision shapes count at 1000"));

    /* an <inertial> is used as given, zeros too */
#define ZEROS "<inertial><mass value='0'/><inertia ixx='0' iyy='0' izz='0'/></inertial>"
    model = compiled(FIXED(ZEROS), true);
    TEST_NEAR(body_named(model, "c").mass, 0, 0);
    ck_assert_int_eq(tb_model_count(model).warnings, 1); /* the velocity limit */
    tb_model_destroy(model);

    /* moving alone, with shapes: they weigh, and a warning says so */
#define LONE "<link name='b'>" COLLISION("box size='1 1 1'") "</link>" HINGE("j", "a", "b", "")
    model = compiled(ROBOT(LINK("a") LONE), true);
    TEST_NEAR(body_named(model, "b").mass, 1000, 1e-9);
    tb_model_destroy(model);
    ck_assert(warns(ROBOT(LINK("a") LONE), "1000 kg/m^3"));

    /* moving with something that has mass further on: a warning */
#define CHAIN                                                                                      \
    ROBOT(LINK("a") "<link name='b'/>" LINK("c") HINGE("j", "a", "b", "")                          \
              HINGE("k", "b", "c", "<axis xyz='0 1 0'/>"))
    ck_assert(warns(CHAIN, "'b' moves without mass of its own"));
    model = compiled(CHAIN, true);
    ck_assert_int_eq(tb_model_count(model).dofs, 2);
    tb_model_destroy(model);

    /* with nothing: an error that names it */
    check_failure(ROBOT(LINK("a") "\n<link name='b'/>" HINGE("j", "a", "b", "")),
                  TB_INVALID_ARGUMENT, 3, "link 'b' moves but has no mass");
    check_failure(ROBOT(LINK("a") "\n<link name='b'/><link name='c'/>" HINGE("j", "a", "b", "")
                            WELD("w", "b", "c")),
                  TB_INVALID_ARGUMENT, 3, "link 'b' moves but has no mass");
}
END_TEST

START_TEST(what_nobody_knows_is_warned_of_with_its_line)
{
    ck_assert(warns(ROBOT(LINK("a") "\n<wheel/>"),
                    "t.urdf:3: wheel: unknown element <wheel> in <robot>: not read"));
    ck_assert(warns(ROBOT("<link name='a'>\n<colision/></link>"), "t.urdf:3: colision"));
    ck_assert(warns(PAIR("\n<dinamics/>"), "t.urdf:4: dinamics: unknown element"));
    ck_assert(warns(PAIR("<origin pos='0 0 0'/>"), "unknown attribute 'pos' of <origin>"));
    ck_assert(warns(PAIR("<dynamics D='1' damping='1'/>"), "unknown attribute 'D' of <dynamics>"));
    ck_assert(
        warns(ROBOT(LINK("a") "<link name='b'><inertial><mass value='1'/><inertia ixx='1' "
                              "iyy='1' izz='1'/><gravity/></inertial></link>" WELD("w", "a", "b")),
              "<gravity>"));
    /* Drake's joints are not joints */
    ck_assert(warns("<robot name='r' xmlns:drake='http://drake'>" LINK(
                        "a") "<drake:joint name='j' type='screw'/></robot>",
                    "<joint> has no effect"));
    ck_assert(warns(ROBOT(LINK("a") LINK("b") "<joint name='j' type='revolute'>" ENDS(
                        "a", "b") "<limit lower='0' upper='1' effort='-1'/></joint>"),
                    "sign of effort"));
}
END_TEST

START_TEST(mirrored_products_of_inertia_are_read)
{
    static const char *const TEXT =
        ROBOT(LINK("a") "<link name='b'><inertial><mass value='1'/><inertia ixx='1' iyy='2' "
                        "izz='2.5' iyx='0.1' izx='0.2' iyz='0.3'/></inertial></link>" HINGE(
                            "j", "a", "b", ""));
    tb_model *model = compiled(TEXT, true);
    const tb_body_info b = body_named(model, "b");
    const double expected[6] = {1, 2, 2.5, 0.1, 0.2, 0.3};
    for (int k = 0; k < 6; k++) TEST_NEAR(b.inertia[k], expected[k], 1e-15);
    tb_model_destroy(model);
    ck_assert(warns(TEXT, "'iyx' is read as 'ixy'"));
}
END_TEST

START_TEST(texts_around_the_robot_are_passed_over)
{
    static const char *const ROOT = "<robot name='r'>\n<link name='a'/></robot>";
    static const struct {
        const char *before, *behind, *warning;
    } CASES[] = {
        {"<?xml version='0.0' ?>\n", "", "t.urdf:1: the XML declaration names no version 1"},
        {"<?xml version=\"0.0\" encoding='utf-8'?>", "", "names no version 1"},
        {"\n<?xml version='1.0'?>\n", "", "t.urdf:2: the XML declaration does not begin"},
        {"<!-- made <?xml by -->\n<?xml version='1.0'?>\n", "", "t.urdf:2: the XML declaration"},
        {"", "\n\nleft over", "t.urdf:4: the text behind the root element"},
        {"", "<link name='b'/>", "the text behind the root element"},
        {"", "</robot>", "the text behind the root element"},
        {"<?xml version='1.0'?>", "\n<!-- fine -->\n", NULL}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[300];
        snprintf(text, sizeof text, "%s%s%s", CASES[i].before, ROOT, CASES[i].behind);
        tb_model *model = compiled(text, true);
        ck_assert_int_eq(tb_model_count(model).bodies, 2);
        ck_assert_int_eq(tb_model_count(model).warnings, CASES[i].warning != NULL);
        if (CASES[i].warning != NULL) ck_assert(warns(text, CASES[i].warning));
        tb_model_destroy(model);
    }

    /* a zero byte ends the text, as elsewhere; a text that is not whole by then is malformed */
    tb_scene *scene;
    static const char ZERO[] = "<robot name='r'><link name='a'/></robot>\n\0<x";
    TEST_OK(tb_scene_load_urdf(ZERO, sizeof ZERO - 1, "t.urdf", NULL, &scene, &error), &error);
    ck_assert_ptr_nonnull(strstr(tb_scene_warning(scene, 0), "t.urdf:2: a zero byte"));
    tb_scene_destroy(scene);
    static const char CUT[] = "<robot name='r'>\0</robot>";
    TEST_STATUS(tb_scene_load_urdf(CUT, sizeof CUT - 1, "t.urdf", NULL, &scene, &error),
                TB_INVALID_ARGUMENT, NULL);
    ck_assert_ptr_null(scene);
}
END_TEST

START_TEST(several_roots_stand_side_by_side)
{
    static const char *const TEXT =
        ROBOT(LINK("a") LINK("b") HINGE("j", "a", "b", "") "\n" LINK("c"));
    tb_model *model = compiled(TEXT, true);
    ck_assert_int_eq(tb_model_count(model).dofs, 1);
    tb_model_destroy(model);
    model = compiled(TEXT, false);
    ck_assert_int_eq(tb_model_count(model).dofs, 13);
    tb_model_destroy(model);
    ck_assert(warns(TEXT, "t.urdf:3: link: link 'c' is another root beside 'a'"));
}
END_TEST

START_TEST(impossible_inertias_are_balanced_on_request)
{
    static const char *const TEXT =
        ROBOT(LINK("a") "<link name='b'><inertial><mass value='1'/><inertia ixx='1' iyy='1' "
                        "izz='4'/></inertial></link>" HINGE("j", "a", "b", ""));
    tb_import_options options = tb_import_defaults();
    tb_scene *scene;
    tb_model *model;
    options.balance_inertia = true;
    TEST_OK(tb_scene_load_urdf(TEXT, strlen(TEXT), "t.urdf", &options, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    for (int k = 0; k < 3; k++) TEST_NEAR(body_named(model, "b").principal[k], 2, 1e-15);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(the_compiler_of_mujoco_says_where_mass_comes_from)
{
#define WEIGHED(attributes)                                                                        \
    ROBOT("<mujoco><compiler " attributes                                                          \
          "/></mujoco>" LINK("a") "<link name='b'>" MASS COLLISION(                                \
              "box size='.1 .1 .1'") "</link>" HINGE("j", "a", "b", ""))
    tb_model *model = compiled(WEIGHED("inertiafromgeom='auto'"), true);
    TEST_NEAR(body_named(model, "b").mass, 2, 0);
    tb_model_destroy(model);
    model = compiled(WEIGHED("inertiafromgeom='true'"), true);
    TEST_NEAR(body_named(model, "b").mass, 1, 1e-12);
    tb_model_destroy(model);
    model =
        compiled(WEIGHED("inertiafromgeom='false' discardvisual='false' fusestatic='false'"), true);
    TEST_NEAR(body_named(model, "b").mass, 2, 0);
    ck_assert_int_eq(tb_model_count(model).warnings, 1); /* the velocity limit */
    tb_model_destroy(model);
    ck_assert(warns(WEIGHED("speed='fast'"), "unknown attribute 'speed' of <compiler>"));
}
END_TEST

START_TEST(what_has_no_effect_is_said_once)
{
    ck_assert(warns(PAIR("<safety_controller/>"), "<safety_controller> has no effect"));
    ck_assert(warns(PAIR(""), "velocity limits are not enforced"));
    ck_assert(warns(ROBOT(LINK("a") "<transmission/><transmission/><gazebo/>"), "(2 times)"));
    ck_assert(warns(ROBOT(LINK("a") "<x:y xmlns:x='http://x'/>"), "<y> has no effect"));
#define JOINT(type, inside)                                                                        \
    ROBOT(LINK("a") LINK("b") "<joint name='j' type='" type "'>" ENDS("a", "b") inside "</joint>")
    ck_assert(warns(JOINT("revolute", ""), "moves without end"));
    ck_assert(warns(JOINT("revolute", "<limit effort='1'/>"), "neither lower nor upper"));
    ck_assert(warns(JOINT("revolute", "<limit lower='1' upper='-1'/>"), "lower is above upper"));
    ck_assert(warns(JOINT("revolute", "<limit lower='1' upper='1'/>"), "cannot move"));
    ck_assert(warns(JOINT("prismatic", "<limit lower='0' upper='1' effort='0'/>"), "effort is 0"));
    ck_assert(!warns(JOINT("continuous", ""), "moves without end"));
    ck_assert(warns(ROBOT("<link name='a'><contact><inertia_scaling value='3'/></contact></link>"),
                    "inertia_scaling"));
}
END_TEST

START_TEST(the_mujoco_extension_is_read)
{
    const char *thin = ROBOT(
        "<mujoco><compiler balanceinertia='true' boundmass='3' meshdir='x'/>"
        "<option timestep='0.01' gravity='0 0 -1'/></mujoco>" LINK(
            "a") "<link name='b'><inertial><mass value='1'/>"
                 "<inertia ixx='1' iyy='1' izz='4'/></inertial></link>" HINGE("j", "a", "b", ""));
    double gravity[3];
    tb_model *model = compiled(thin, true);
    TEST_NEAR(tb_model_dt(model), 0.01, 0);
    tb_model_gravity(model, gravity);
    TEST_NEAR(gravity[2], -1, 0);
    TEST_NEAR(body_named(model, "b").mass, 3, 0);
    TEST_NEAR(body_named(model, "b").inertia[0], 2, 1e-15);
    tb_model_destroy(model);
}
END_TEST

/* A folder of files for the search of meshes. */
static char folder[] = "/tmp/tribo_urdf_XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(meshes_are_found_scaled_and_shared)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const char *tetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
                              "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
    write_file("robot/meshes/own.obj", tetrahedron);
    write_file("robot/urdf/beside.obj", tetrahedron);
    write_file("others/tool/meshes/tool.obj", tetrahedron);
    write_file("robot/urdf/assets/flat.obj", tetrahedron);
    write_file("others/tool/package.xml", "<package><name>else</name></package>");
    write_file("robot/package.xml", "<package format='2'>\n<name>declared</name></package>");
    static const char *const ADDRESSES[] = {"beside.obj",
                                            "../meshes/own.obj",
                                            "package://robot/meshes/own.obj",
                                            "meshes/own.obj",
                                            "package://meshes/own.obj",
                                            "package://tool/meshes/tool.obj",
                                            "file://beside.obj",
                                            "model://tool/meshes/tool.obj",
                                            "package://gone/far/away/flat.obj",
                                            "package:///tool/meshes/tool.obj",
                                            "package://declared/meshes/own.obj"};
    char path[300], packages[300], text[6000];
    snprintf(path, sizeof path, "%s/robot/urdf/r.urdf", folder);
    snprintf(packages, sizeof packages, "/nowhere:%s/others:", folder);
    tb_import_options options = tb_import_defaults();
    options.package_path = packages;

    /* one by one, then all in one link with the first twice */
    int n = snprintf(text, sizeof text,
                     "<robot name='r'><mujoco><compiler meshdir='assets/'/>"
                     "</mujoco><link name='a'>");
    const size_t count = sizeof ADDRESSES / sizeof ADDRESSES[0];
    for (size_t i = 0; i <= count; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "<collision><geometry><mesh filename='%s' scale='2 2 -2'/></geometry>"
                      "</collision>",
                      ADDRESSES[i % count]);
    n += snprintf(text + n, sizeof text - (size_t)n, "</link></robot>");
    tb_scene *scene;
    tb_model *model;
    TEST_OK(tb_scene_load_urdf(text, (size_t)n, path, &options, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    ck_assert_int_eq(model->number_of_shapes, (int)count + 1);
    ck_assert_int_lt(model->number_of_mesh_assets, (int)count);
    for (int32_t i = 0; i < model->number_of_shapes; i++) {
        ck_assert_int_eq(model->shapes[i].type, TB_SHAPE_CONVEX);
        const tb_hull *hull = &model->hulls[model->shapes[i].asset];
        double lowest = 0, highest = 0;
        for (int32_t v = 0; v < hull->number_of_vertices; v++) {
            lowest = fmin(lowest, hull->vertices[3 * v + 2]);
            highest = fmax(highest, hull->vertices[3 * v]);
        }
        TEST_NEAR(lowest, -2, 0);
        TEST_NEAR(highest, 2, 0);
    }
    tb_scene_destroy(scene);
    tb_model_destroy(model);

    snprintf(text, sizeof text, "rm -r %s", folder);
    ck_assert_int_eq(system(text), 0);
}
END_TEST

START_TEST(every_mistake_is_named_with_its_line)
{
    const tb_status bad = TB_INVALID_ARGUMENT;
    check_failure("", bad, 0, "empty");
    check_failure("<robot>\n<link", bad, 2, "malformed");
    check_failure("<mujoco/>", bad, 1, "not 'robot'");
    check_failure("<robot/>", bad, 1, "no link");
    check_failure("<!DOCTYPE x [<!ENTITY a 'b'>]>\n<robot/>", bad, 1, "DOCTYPE");
    check_failure(ROBOT("<xacro:macro name='m'/>"), TB_UNSUPPORTED, 2, "xacro");
    check_failure(ROBOT("<link name='a'>\n<inertial><mass value='${m}'/></inertial></link>"),
                  TB_UNSUPPORTED, 3, "xacro must be expanded");

    /* names and tree */
    check_failure(ROBOT("<link/>"), bad, 2, "'name' is missing");
    check_failure(ROBOT("<link name=''/>"), bad, 2, "empty");
    check_failure(ROBOT(LINK("a") "\n" LINK("a")), bad, 3, "used twice, first in line 2");
    check_failure(
        ROBOT(LINK("a") LINK("b") LINK("c") HINGE("j", "a", "b", "") "\n" HINGE("j", "b", "c", "")),
        bad, 3, "used twice");
    check_failure(ROBOT(LINK("a") LINK("b") HINGE("j", "a", "b", "") HINGE("k", "b", "a", "")), bad,
                  2, "cycle");
    check_failure(
        ROBOT(LINK("r") "\n" LINK("a") LINK("b") HINGE("j", "a", "b", "") HINGE("k", "b", "a", "")),
        bad, 3, "'a' belongs to a cycle");
    check_failure(ROBOT(LINK("a") HINGE("j", "a", "a", "")), bad, 2, "its own parent");
    check_failure(
        ROBOT(LINK("a") LINK("b") LINK("c") HINGE("j", "a", "c", "") "\n" HINGE("k", "b", "c", "")),
        bad, 3, "already hangs on joint 'j'");
    check_failure(ROBOT(LINK("a") "\n" HINGE("j", "a", "b", "")), TB_NOT_FOUND, 3,
                  "child link 'b' does not exist");
    check_failure(ROBOT(LINK("a") "\n" HINGE("j", "x", "a", "")), TB_NOT_FOUND, 3,
                  "parent link 'x' does not exist");
    check_failure(ROBOT(LINK("a") "<joint name='j' type='fixed'/>"), bad, 2, "<parent> is missing");
    check_failure(ROBOT(LINK("a") "<joint name='j' type='screw'/>"), bad, 2, "screw");
    check_failure(ROBOT(LINK("a") "<joint name='j'/>"), bad, 2, "'type' is missing");

    /* numbers */
    check_failure(PAIR("<origin xyz='0 0'/>"), bad, 3, "not 3 numbers");
    check_failure(PAIR("<origin xyz='0 0 nan'/>"), bad, 3, "finite");
    check_failure(PAIR("<origin/><origin/>"), bad, 3, "more than one <origin>");
    check_failure(PAIR("<axis xyz='0 0 0'/>"), bad, 3, "axis of joint 'j' is zero");
    check_failure(PAIR("<dynamics damping='-1'/>"), bad, 3, "negative");
    check_failure(PAIR("<mimic joint='x'/>"), TB_NOT_FOUND, 3, "mimics 'x', which does not exist");
    check_failure(PAIR("<mimic joint='j'/>"), bad, 3, "mimics itself");
    check_failure(JOINT("planar", "<mimic joint='j'/>"), bad, 2, "not revolute");
    check_failure(ROBOT(LINK("a") LINK("b") LINK("c") WELD("w", "a", "b")
                            HINGE("j", "b", "c", "<mimic joint='w'/>")),
                  bad, 2, "mimics 'w', which is not");

    /* inertia */
#define INERTIAL(inside) ROBOT("<link name='a'>\n<inertial>" inside "</inertial></link>")
    check_failure(INERTIAL(""), bad, 3, "<mass> is missing");
    check_failure(INERTIAL("<mass/>"), bad, 3, "'value' is missing");
    check_failure(INERTIAL("<mass value='-1'/>"), bad, 3, "negative");
    check_failure(INERTIAL("<mass value='1'/><inertia ixx='1' iyy='1'/>"), bad, 3, "'izz'");
    check_failure(INERTIAL("<mass value='1'/><inertia ixx='1' iyy='1' izz='3'/>"), bad, 2,
                  "--balance-inertia, repairs it");
    check_failure(INERTIAL("<mass value='1'/><inertia ixx='1' iyy='1' izz='-1'/>"), bad, 2,
                  "negative principal moment");

    /* shapes */
#define SHAPE(inside)    ROBOT("<link name='a'><collision>\n" inside "</collision></link>")
#define GEOMETRY(inside) SHAPE("<geometry>" inside "</geometry>")
    check_failure(SHAPE(""), bad, 2, "must be one <geometry>");
    check_failure(GEOMETRY(""), bad, 3, "must be one <geometry>");
    check_failure(GEOMETRY("<sphere radius='1'/><sphere radius='1'/>"), bad, 3, "one shape");
    check_failure(SHAPE("<geometry><sphere radius='1'/></geometry>\n<geometry/>"), bad, 4,
                  "more than one <geometry>");
    check_failure(GEOMETRY("<sphere/>"), bad, 3, "'radius' is missing");
    check_failure(GEOMETRY("<sphere radius='0'/>"), bad, 3, "not positive");
    check_failure(GEOMETRY("<box size='1 1'/>"), bad, 3, "not 3 numbers");
    check_failure(GEOMETRY("<cylinder radius='1' length='-1'/>"), bad, 3, "not positive");
    check_failure(GEOMETRY("<plane normal='0 0 0'/>"), bad, 3, "no direction");
    check_failure(GEOMETRY("<torus radius='1'/>"), TB_UNSUPPORTED, 3, "torus");
    check_failure(GEOMETRY("<mesh/>"), bad, 3, "'filename' is missing");
    check_failure(GEOMETRY("<mesh filename='none.obj'/>"), TB_NOT_FOUND, 3, "none.obj");
    check_failure(GEOMETRY("<mesh filename='package://a/none.obj'/>"), TB_NOT_FOUND, 3, "none.obj");
    check_failure(GEOMETRY("<mesh filename='$(find a)/b.obj'/>"), TB_UNSUPPORTED, 3, "xacro");
    check_failure(GEOMETRY("<mesh filename='http://a/b.obj'/>"), TB_UNSUPPORTED, 3, "http://");
    check_failure(GEOMETRY("<mesh filename='none.obj' scale='1 1'/>"), bad, 3, "two numbers");
    check_failure(GEOMETRY("<mesh filename='none.obj' scale='1 0 1'/>"), bad, 3, "zero");
}
END_TEST

START_TEST(a_very_long_chain_is_no_trouble)
{
    enum { LINKS = 20000 };
    char *text = malloc(LINKS * 200), *at = text;
    at += sprintf(at, "<robot name='r'>");
    for (int i = 0; i < LINKS; i++) at += sprintf(at, "<link name='l%d'>" MASS "</link>", i);
    for (int i = 1; i < LINKS; i++)
        at += sprintf(at,
                      "<joint name='j%d' type='fixed'><parent link='l%d'/><child link='l%d'/>"
                      "</joint>",
                      i, i - 1, i);
    sprintf(at, "</robot>");
    tb_scene *scene;
    TEST_OK(load_as(text, true, &scene), &error);
    tb_scene_destroy(scene);
    free(text);
}
END_TEST

TEST_MAIN(an_inertial_is_placed_and_turned, roll_pitch_and_yaw_turn_about_fixed_axes,
          a_quaternion_may_stand_for_the_angles, every_kind_of_joint_is_made,
          motors_bear_the_joint_s_name_and_effort, a_mimic_is_a_coupling_and_has_no_motor,
          the_root_is_fixed_or_free, a_floating_link_floats_in_the_world, every_geometry_is_made,
          a_contact_element_gives_the_surface, an_arm_does_not_collide_with_its_base,
          links_without_mass_are_looked_after, what_nobody_knows_is_warned_of_with_its_line,
          mirrored_products_of_inertia_are_read, texts_around_the_robot_are_passed_over,
          several_roots_stand_side_by_side, impossible_inertias_are_balanced_on_request,
          the_compiler_of_mujoco_says_where_mass_comes_from, what_has_no_effect_is_said_once,
          the_mujoco_extension_is_read, meshes_are_found_scaled_and_shared,
          every_mistake_is_named_with_its_line, a_very_long_chain_is_no_trouble)
