/* URDF: links, joints and surfaces as imported. */
#include "urdf_util.h"

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
            "<link name='a'><contact><lateral_friction value='0.4'/><restitution "
            "value='0.5'/><tangential_restitution value='0.25'/>"
            "<rolling_friction value='0.01'/><spinning_friction value='0.02'/></contact>" COLLISION(
                "sphere radius='1'") "</link>"),
        true);
    const tb_surface *s = &model->shapes[0].surface;
    ck_assert_int_eq(s->kind, TB_CONTACT_ROLLING);
    TEST_NEAR(s->friction, 0.4, 0);
    TEST_NEAR(s->restitution, 0.5, 0);
    TEST_NEAR(s->tangential_restitution, 0.25, 0);
    TEST_NEAR(s->rolling_length, 0.01, 0);
    TEST_NEAR(2.0 / 3 * s->friction * s->spin_radius, 0.02, 1e-15);
    tb_model_destroy(model);
}
END_TEST

START_TEST(an_arm_does_not_collide_with_its_base)
{
    /* base and cover are one group, so are upper and lamp; the tip is further on */
#define BALL(name) "<link name='" name "'>" MASS COLLISION("sphere radius='1'") "</link>"
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

TEST_MAIN(an_inertial_is_placed_and_turned, roll_pitch_and_yaw_turn_about_fixed_axes,
          a_quaternion_may_stand_for_the_angles, every_kind_of_joint_is_made,
          motors_bear_the_joint_s_name_and_effort, a_mimic_is_a_coupling_and_has_no_motor,
          the_root_is_fixed_or_free, a_floating_link_floats_in_the_world, every_geometry_is_made,
          a_contact_element_gives_the_surface, an_arm_does_not_collide_with_its_base)
