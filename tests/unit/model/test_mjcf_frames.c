/* Poses in MJCF: every way to say an orientation, end points, frames and replicates. */
#include "mjcf_util.h"

START_TEST(every_form_of_orientation_is_read)
{
    mjcf_case c = mjcf_load(WORLD("<geom name='q' size='1' quat='1 2 3 4'/>"
                                  "<geom name='a' size='1' axisangle='0 0 2 90'/>"
                                  "<geom name='x' size='1' xyaxes='0 1 0 -1 1 0'/>"
                                  "<geom name='z' size='1' zaxis='1 0 0'/>"
                                  "<geom name='down' size='1' zaxis='0 0 -1'/>"
                                  "<geom name='none' size='1'/>"));
    const double h = sqrt(0.5);
    mjcf_near_quaternion(mjcf_shape(&c, "q")->orientation, 1, 2, 3, 4);
    mjcf_near_quaternion(mjcf_shape(&c, "a")->orientation, h, 0, 0, h);
    mjcf_near_quaternion(mjcf_shape(&c, "x")->orientation, h, 0, 0, h);
    mjcf_near_quaternion(mjcf_shape(&c, "z")->orientation, h, 0, h, 0);
    mjcf_near_quaternion(mjcf_shape(&c, "down")->orientation, 0, 1, 0, 0);
    mjcf_near_quaternion(mjcf_shape(&c, "none")->orientation, 1, 0, 0, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(euler_angles_follow_the_sequence_inside_and_outside)
{
    /* MuJoCo's quaternions for 10, 20, 30 degrees */
    static const struct {
        const char *sequence;
        double q[4];
    } CASES[] = {
        {"xyz", {0.94371436, 0.12767944, 0.14487813, 0.26853582}},
        {"XYZ", {0.95154852, 0.03813458, 0.18930786, 0.23929834}},
        {"zyx", {0.95154852, 0.23929834, 0.18930786, 0.03813458}},
        {"ZyX", {0.95154852, 0.23929834, 0.14487813, 0.12767944}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (int radians = 0; radians < 2; radians++) {
            char text[400];
            snprintf(
                text, sizeof text,
                "<mujoco><compiler eulerseq='%s' angle='%s'/><worldbody><geom name='g' size='1' "
                "euler='%s'/></worldbody></mujoco>",
                CASES[i].sequence, radians ? "radian" : "degree",
                radians ? "0.17453292519943295 0.3490658503988659 0.5235987755982988" : "10 20 30");
            mjcf_case c = mjcf_load(text);
            for (int k = 0; k < 4; k++)
                TEST_NEAR(mjcf_shape(&c, "g")->orientation[k], CASES[i].q[k], 1e-8);
            mjcf_free(&c);
        }
}
END_TEST

START_TEST(end_points_give_pose_and_length)
{
    mjcf_case c =
        mjcf_load(WORLD("<geom name='c' type='capsule' size='.1' fromto='0 0 0 1 0 0'/>"
                        "<geom name='y' type='cylinder' size='.1 9' fromto='0 0 1 0 0 5'/>"
                        "<geom name='b' type='box' size='.1 .2 .3' fromto='0 0 0 0 0 2'/>"
                        "<geom name='e' type='ellipsoid' size='.1' fromto='0 2 0 0 0 0' "
                        "euler='1 2 3'/>"));
    const tb_model_shape *s = mjcf_shape(&c, "c");
    MJCF_NEAR3(s->position, 0.5, 0, 0);
    MJCF_NEAR3(s->size, 0.1, 0.5, 0);
    mjcf_near_quaternion(s->orientation, sqrt(0.5), 0, -sqrt(0.5), 0);
    s = mjcf_shape(&c, "y");
    MJCF_NEAR3(s->position, 0, 0, 3);
    MJCF_NEAR3(s->size, 0.1, 2, 0);
    s = mjcf_shape(&c, "b");
    MJCF_NEAR3(s->position, 0, 0, 1);
    MJCF_NEAR3(s->size, 0.1, 0.1, 1);
    s = mjcf_shape(&c, "e");
    MJCF_NEAR3(s->position, 0, 1, 0);
    MJCF_NEAR3(s->size, 0.1, 0.1, 1);
    mjcf_near_quaternion(s->orientation, sqrt(0.5), -sqrt(0.5), 0, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(frames_move_their_children_and_leave_nothing)
{
    mjcf_case c = mjcf_load(MJCF(
        "<default><default class='a'><geom size='2'/></default></default><worldbody>"
        "<frame pos='1 0 0'><body name='b' pos='0 0 1'><frame pos='0 0 1' euler='90 0 0' "
        "childclass='a'><joint name='j' pos='1 0 0' axis='0 1 0'/><geom name='g' pos='0 1 0'/>"
        "<site name='s' pos='0 0 1'/><frame pos='0 1 0'><body name='d' pos='0 0 1'><geom name='h'/>"
        "</body></frame></frame></body></frame></worldbody>"));
    ck_assert_int_eq(c.model->number_of_bodies, 3);
    MJCF_NEAR3(mjcf_body(&c, "b")->position, 1, 0, 1);
    MJCF_NEAR3(mjcf_joint_of(&c, "j")->position, 1, 0, 1);
    MJCF_NEAR3(mjcf_joint_of(&c, "j")->axis, 0, 0, 1);
    MJCF_NEAR3(mjcf_shape(&c, "g")->position, 0, 0, 2);
    MJCF_NEAR3(c.model->sites[0].position, 0, -1, 1);
    MJCF_NEAR3(mjcf_body(&c, "d")->position, 0, -1, 2);
    TEST_NEAR(mjcf_shape(&c, "h")->size[0], 2, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(replicas_step_from_one_to_the_next_and_are_numbered)
{
    mjcf_case c =
        mjcf_load(WORLD("<body pos='1 0 0' euler='0 0 30'><replicate count='4' offset='.5 0 1' "
                        "euler='0 0 90'><geom pos='1 0 0' name='g' size='.1'/></replicate></body>"
                        "<replicate count='11' sep='-'><geom name='h' size='.1'/></replicate>"));
    MJCF_NEAR3(mjcf_shape(&c, "g0")->position, 1, 0, 0);
    MJCF_NEAR3(mjcf_shape(&c, "g1")->position, 0.5, 1, 1);
    MJCF_NEAR3(mjcf_shape(&c, "g2")->position, -0.5, 0.5, 2);
    MJCF_NEAR3(mjcf_shape(&c, "g3")->position, 0, -0.5, 3);
    mjcf_near_quaternion(mjcf_shape(&c, "g3")->orientation, sqrt(0.5), 0, 0, -sqrt(0.5));
    mjcf_index(&c, TB_HANDLE_SHAPE, "h-00");
    mjcf_index(&c, TB_HANDLE_SHAPE, "h-10");
    mjcf_free(&c);

    /* angles are multiplied, not rotations: MuJoCo's third copy */
    c = mjcf_load(WORLD("<replicate count='3' offset='0 0 1' euler='7.91 86.8 12.5'>"
                        "<geom name='g' size='1'/></replicate>"));
    const double *q = mjcf_shape(&c, "g2")->orientation;
    TEST_NEAR(q[0], 0.02424, 1e-5);
    TEST_NEAR(q[1], 0.22155, 1e-5);
    TEST_NEAR(q[2], 0.96384, 1e-5);
    TEST_NEAR(q[3], 0.14611, 1e-5);
    mjcf_free(&c);
}
END_TEST

START_TEST(what_refers_to_replicas_is_made_as_often)
{
    mjcf_case c = mjcf_load(
        MJCF("<worldbody><replicate count='2' offset='0 0 1'><body name='b'><joint name='j'/>"
             "<geom name='g' size='.1'/><body name='c'><joint name='k'/><geom name='h' size='.2'/>"
             "</body></body></replicate><body name='z'><joint name='jz'/><geom size='1'/></body>"
             "</worldbody><actuator><motor name='m' joint='j'/><motor name='mz' joint='jz'/>"
             "<position name='n' joint='k'/></actuator><tendon><fixed name='t'>"
             "<joint joint='j' coef='1'/><joint joint='k' coef='2'/></fixed></tendon>"
             "<equality><joint joint1='j' joint2='k'/></equality>"
             "<contact><exclude body1='world' body2='c'/><pair geom1='g' geom2='h'/></contact>"));
    static const char *const ACTUATORS[] = {"mz", "m0", "n0", "m1", "n1"};
    ck_assert_int_eq(c.model->number_of_actuators, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(tb_model_thing_name(c.model, TB_HANDLE_ACTUATOR, i), ACTUATORS[i]);
    static const char *const BODIES[] = {"world", "b0", "c0", "b1", "c1", "z"};
    for (int i = 1; i < 6; i++)
        ck_assert_str_eq(tb_model_thing_name(c.model, TB_HANDLE_BODY, i), BODIES[i]);
    ck_assert_int_eq(c.model->number_of_tendons, 2);
    ck_assert_int_eq(c.model->number_of_equalities, 2);
    ck_assert_int_eq(c.model->number_of_excludes, 2);
    ck_assert_int_eq(c.model->number_of_pairs, 2);
    ck_assert_int_eq(c.model->equalities[1].a, mjcf_index(&c, TB_HANDLE_JOINT, "j1"));
    mjcf_free(&c);
}
END_TEST

START_TEST(contacts_and_tendons_may_join_a_replica_to_the_rest)
{
    mjcf_case c = mjcf_load(MJCF(
        "<worldbody><site name='a'/><body name='o'><joint name='jo'/><geom name='h' size='.1'/>"
        "</body><replicate count='3' offset='1 0 0'><body name='b'><joint name='j'/>"
        "<geom name='g' size='.1'/><site name='s'/></body></replicate></worldbody>"
        "<tendon><fixed name='t'><joint joint='jo' coef='1'/><joint joint='j' coef='2'/></fixed>"
        "<spatial name='p'><site site='a'/><site site='s'/></spatial></tendon>"
        "<contact><exclude body1='o' body2='b'/><pair geom1='h' geom2='g'/></contact>"));
    static const char *const TENDONS[] = {"t0", "p0", "t1", "p1", "t2", "p2"};
    ck_assert_int_eq(c.model->number_of_tendons, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(tb_model_thing_name(c.model, TB_HANDLE_TENDON, i), TENDONS[i]);
    ck_assert_int_eq(c.model->number_of_excludes, 3);
    ck_assert_int_eq(c.model->number_of_pairs, 3);
    mjcf_free(&c);

    /* not so equalities: MuJoCo leaves this one out without a word */
    mjcf_refuses(MJCF("<worldbody><body><joint name='jo'/><geom size='.1'/></body>"
                      "<replicate count='3' offset='1 0 0'><body><joint name='j'/><geom size='.1'/>"
                      "</body></replicate></worldbody><equality><joint joint1='jo' joint2='j'/>"
                      "</equality>"),
                 TB_NOT_FOUND, 1, "there is no joint 'j'");
}
END_TEST

START_TEST(suffixes_of_nested_replicas_begin_inside)
{
    mjcf_case c = mjcf_load(
        MJCF("<worldbody><replicate count='2' sep='-' offset='0 0 1'>"
             "<replicate count='2' sep='_' offset='1 0 0'><body name='b'><joint name='j'/>"
             "<geom size='.1'/></body></replicate><body name='o'><joint name='jo'/>"
             "<geom size='.1'/></body></replicate></worldbody><actuator>"
             "<motor name='a' joint='j'/><motor name='ao' joint='jo'/></actuator>"));
    static const char *const ACTUATORS[] = {"ao-0", "a_0-0", "a_1-0", "ao-1", "a_0-1", "a_1-1"};
    ck_assert_int_eq(c.model->number_of_actuators, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(tb_model_thing_name(c.model, TB_HANDLE_ACTUATOR, i), ACTUATORS[i]);
    MJCF_NEAR3(mjcf_body(&c, "b_1-1")->position, 1, 0, 1);
    mjcf_free(&c);
}
END_TEST

START_TEST(poses_that_make_no_sense_are_refused)
{
    mjcf_refuses(WORLD("\n<geom size='1' euler='1 2 3' quat='1 0 0 0'/>"), TB_INVALID_ARGUMENT, 2,
                 "geom: more than one of quat");
    mjcf_refuses(WORLD("<geom size='1' quat='0 0 0 0'/>"), TB_INVALID_ARGUMENT, 1, "quat is zero");
    mjcf_refuses(WORLD("<geom size='1' quat='1 0 0'/>"), TB_INVALID_ARGUMENT, 1,
                 "is not 4 numbers");
    mjcf_refuses(WORLD("<geom size='1' axisangle='0 0 0 1'/>"), TB_INVALID_ARGUMENT, 1,
                 "axisangle has no direction");
    mjcf_refuses(WORLD("<geom size='1' zaxis='0 0 0'/>"), TB_INVALID_ARGUMENT, 1,
                 "zaxis has no direction");
    mjcf_refuses(WORLD("<geom size='1' xyaxes='1 0 0 2 0 0'/>"), TB_INVALID_ARGUMENT, 1,
                 "xyaxes has no direction");
    mjcf_refuses(MJCF("<compiler eulerseq='xyw'/>"), TB_INVALID_ARGUMENT, 1, "eulerseq=\"xyw\"");
    mjcf_refuses(WORLD("<geom size='1' type='capsule' fromto='1 1 1 1 1 1'/>"), TB_INVALID_ARGUMENT,
                 1, "coincide");
    mjcf_refuses(WORLD("<geom size='1' fromto='0 0 0 1 1 1'/>"), TB_INVALID_ARGUMENT, 1,
                 "fromto is for capsules");
    mjcf_refuses(WORLD("<frame scale='2'/>"), TB_UNSUPPORTED, 1, "frame: scaled frames");
    mjcf_refuses(WORLD("<frame massscale='2'/>"), TB_UNSUPPORTED, 1, "scaled frames");
    mjcf_refuses(WORLD("<replicate count='0'/>"), TB_INVALID_ARGUMENT, 1, "count is 0");
    mjcf_refuses(WORLD("<replicate count='2'><joint/></replicate>"), TB_INVALID_ARGUMENT, 1,
                 "cannot be replicated without their body");
    mjcf_refuses(
        WORLD("<replicate count='1000'><replicate count='1000'><geom size='1'/></replicate>"
              "</replicate>"),
        TB_RESOURCE_EXHAUSTED, 1, "replicas");
}
END_TEST

TEST_MAIN(every_form_of_orientation_is_read, euler_angles_follow_the_sequence_inside_and_outside,
          end_points_give_pose_and_length, frames_move_their_children_and_leave_nothing,
          replicas_step_from_one_to_the_next_and_are_numbered,
          what_refers_to_replicas_is_made_as_often,
          contacts_and_tendons_may_join_a_replica_to_the_rest,
          suffixes_of_nested_replicas_begin_inside, poses_that_make_no_sense_are_refused)
