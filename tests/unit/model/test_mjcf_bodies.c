/* MJCF bodies, joints and defaults. */
#include "mjcf_util.h"

static const double DEGREE = 3.14159265358979323846 / 180;

START_TEST(classes_inherit_and_the_nearest_word_counts)
{
    mjcf_case c = mjcf_load(
        MJCF("<default><geom size='.1 .2 .3' friction='.7'/><default class='a'>"
             "<geom type='box' friction='.5'/><default class='b'><geom size='.9'/></default>"
             "</default></default><default><geom condim='1'/></default><worldbody>"
             "<body childclass='a'><geom name='a'/><geom name='b' class='b'/>"
             "<geom name='m' class='main'/><geom name='own' size='.4' friction='.1'/>"
             "<body childclass='b'><geom name='inner'/></body></body></worldbody>"));
    ck_assert_int_eq(mjcf_shape(&c, "a")->type, TB_SHAPE_BOX);
    MJCF_NEAR3(mjcf_shape(&c, "a")->size, 0.1, 0.2, 0.3);
    MJCF_NEAR3(mjcf_shape(&c, "b")->size, 0.9, 0.2, 0.3);
    MJCF_NEAR3(mjcf_shape(&c, "inner")->size, 0.9, 0.2, 0.3);
    TEST_NEAR(mjcf_shape(&c, "b")->surface.friction, 0.5, 0);
    ck_assert_int_eq(mjcf_shape(&c, "m")->type, TB_SHAPE_SPHERE);
    TEST_NEAR(mjcf_shape(&c, "m")->surface.friction, 0.7, 0);
    ck_assert_int_eq(mjcf_shape(&c, "m")->surface.kind, TB_CONTACT_FRICTIONLESS);
    MJCF_NEAR3(mjcf_shape(&c, "own")->size, 0.4, 0.2, 0.3);
    TEST_NEAR(mjcf_shape(&c, "own")->surface.friction, 0.1, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(an_orientation_replaces_another_form_from_a_default)
{
    mjcf_case c = mjcf_load(MJCF("<default><geom euler='90 0 0' size='1'/></default><worldbody>"
                                 "<geom name='g' quat='0 0 0 1'/><geom name='h'/></worldbody>"));
    mjcf_near_quaternion(mjcf_shape(&c, "g")->orientation, 0, 0, 0, 1);
    mjcf_near_quaternion(mjcf_shape(&c, "h")->orientation, 1, 1, 0, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(classes_that_make_no_sense_are_refused)
{
    mjcf_refuses(WORLD("<geom size='1' class='nope'/>"), TB_NOT_FOUND, 1,
                 "no default class 'nope'");
    mjcf_refuses(WORLD("<body childclass='nope'/>"), TB_NOT_FOUND, 1, "no default class 'nope'");
    mjcf_refuses(MJCF("<default><default><geom/></default></default>"), TB_INVALID_ARGUMENT, 1,
                 "attribute 'class' is missing");
    mjcf_refuses(MJCF("<default><default class='a'/><default class='a'/></default>"),
                 TB_INVALID_ARGUMENT, 1, "'a' is defined twice");
    mjcf_refuses(MJCF("<default/>\n<default class='b'/>"), TB_INVALID_ARGUMENT, 2,
                 "stands outside of class 'main'");
    mjcf_refuses(MJCF("<default><wheel/></default>"), TB_INVALID_ARGUMENT, 1,
                 "wheel: unknown element in 'default'");
    mjcf_refuses(MJCF("<default>\n<geom colour='1'/></default><worldbody><geom size='1'/>"
                      "</worldbody>"),
                 TB_INVALID_ARGUMENT, 2, "geom: unknown attribute 'colour'");
}
END_TEST

START_TEST(joints_have_mujocos_units_and_limits)
{
    mjcf_case c = mjcf_load(WORLD(
        "<body><joint name='h' axis='0 3 0' pos='1 2 3' range='-10 20' ref='3' springref='4' "
        "stiffness='5' damping='6' armature='.7' frictionloss='.8'/><joint name='s' "
        "type='slide' range='-1 60' ref='3' springref='4'/><geom size='1'/><body>"
        "<joint name='b' type='ball' range='0 60'/><geom size='1'/></body></body>"
        "<body pos='1 2 3'><joint name='f' type='free' range='-1 60' damping='2'/>"
        "<geom size='1'/></body><body><freejoint name='g'/><geom size='1'/></body>"
        "<body><joint name='back' range='20 -10'/><joint name='off' range='1 2' limited='false' "
        "axis='1 0 0'/><geom size='1'/></body>"));
    const tb_model_joint *h = mjcf_joint_of(&c, "h"), *s = mjcf_joint_of(&c, "s");
    MJCF_NEAR3(h->axis, 0, 1, 0);
    MJCF_NEAR3(h->position, 1, 2, 3);
    TEST_NEAR(h->lower, -10 * DEGREE, 1e-15);
    TEST_NEAR(h->upper, 20 * DEGREE, 1e-15);
    TEST_NEAR(h->reference, 3 * DEGREE, 1e-15);
    TEST_NEAR(h->spring_reference, 4 * DEGREE, 1e-15);
    TEST_NEAR(h->stiffness, 5, 0);
    TEST_NEAR(c.model->dofs[h->dof].damping, 6, 0);
    TEST_NEAR(c.model->dofs[h->dof].armature, 0.7, 0);
    TEST_NEAR(c.model->dofs[h->dof].dry_friction, 0.8, 0);
    TEST_NEAR(s->upper, 60, 0);
    TEST_NEAR(s->spring_reference, 4, 0);
    ck_assert(mjcf_joint_of(&c, "b")->limited);
    TEST_NEAR(mjcf_joint_of(&c, "b")->upper, 60 * DEGREE, 1e-15);
    ck_assert(!mjcf_joint_of(&c, "f")->limited);
    TEST_NEAR(c.model->dofs[mjcf_joint_of(&c, "f")->dof].damping, 2, 0);
    ck_assert_int_eq(mjcf_joint_of(&c, "g")->type, TB_JOINT_FREE);
    ck_assert(!mjcf_joint_of(&c, "back")->limited);
    ck_assert(!mjcf_joint_of(&c, "off")->limited);
    mjcf_free(&c);

    c = mjcf_load(
        MJCF("<compiler angle='radian'/><default><joint damping='3' type='slide'/></default>"
             "<worldbody>" PENDULUM("type='hinge' range='-1 2'") "<body><freejoint name='f'/><geom "
                                                                 "size='1'/></body></worldbody>"));
    TEST_NEAR(mjcf_joint_of(&c, "j")->upper, 2, 0);
    TEST_NEAR(c.model->dofs[mjcf_joint_of(&c, "f")->dof].damping, 0, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(a_springdamper_uses_the_inertia_that_the_joint_feels)
{
    mjcf_case c = mjcf_load(WORLD(PENDULUM("springdamper='0.5 0.7' armature='.3'")));
    TEST_NEAR_RELATIVE(mjcf_joint_of(&c, "j")->stiffness, 5.66323493, 1e-8);
    TEST_NEAR_RELATIVE(c.model->dofs[0].damping, 2.77498512, 1e-8);
    mjcf_free(&c);
    c = mjcf_load(WORLD("<body><joint type='ball' name='j' springdamper='0.5 0.7' armature='.3'/>"
                        "<geom type='box' size='.1 .2 .3' pos='.3 0 0'/></body>"));
    TEST_NEAR_RELATIVE(mjcf_joint_of(&c, "j")->stiffness, 31.99433555, 1e-8);
    TEST_NEAR_RELATIVE(c.model->dofs[0].damping, 15.67722442, 1e-8);
    mjcf_free(&c);
}
END_TEST

START_TEST(joints_that_make_no_sense_are_refused)
{
    mjcf_refuses(
        MJCF("<compiler autolimits='false'/><worldbody>" PENDULUM("range='0 1'") "</worldbody>"),
        TB_INVALID_ARGUMENT, 1, "joint 'j': range is given without limited");
    mjcf_refuses(WORLD(PENDULUM("limited='true'")), TB_INVALID_ARGUMENT, 1,
                 "the first must be smaller");
    mjcf_refuses(WORLD(PENDULUM("type='ball' range='-1 60'")), TB_INVALID_ARGUMENT, 1, "not at 0");
    mjcf_refuses(WORLD(PENDULUM("axis='0 0 0'")), TB_INVALID_ARGUMENT, 1, "axis has no direction");
    mjcf_refuses(WORLD(PENDULUM("type='screw'")), TB_INVALID_ARGUMENT, 1, "type=\"screw\"");
    mjcf_refuses(WORLD(PENDULUM("springyield='1'")), TB_UNSUPPORTED, 1, "springyield=\"1\"");
    mjcf_refuses(WORLD(PENDULUM("stiffness='1 2 3 4'")), TB_INVALID_ARGUMENT, 1, "stiffness");
    mjcf_refuses(WORLD(PENDULUM("springdamper='1 0'")), TB_INVALID_ARGUMENT, 1, "springdamper");
    mjcf_refuses(WORLD(PENDULUM("stiffness='-1'")), TB_INVALID_ARGUMENT, 1, "stiffness");
    mjcf_refuses(WORLD("<joint/>"), TB_INVALID_ARGUMENT, 1, "the world has no joints");
    mjcf_refuses(WORLD("<body><joint name='a'/>\n<joint name='a'/><geom size='1'/></body>"),
                 TB_INVALID_ARGUMENT, 2, "'a' is used twice");
    mjcf_refuses(WORLD("<body><geom size='1'/><body>\n<freejoint/><geom size='1'/></body></body>"),
                 TB_INVALID_ARGUMENT, 2, "freejoint");
}
END_TEST

START_TEST(mass_is_given_or_from_geoms)
{
    mjcf_case c = mjcf_load(WORLD("<body name='a'><joint/><inertial pos='1 2 3' mass='2' "
                                  "diaginertia='1 2 2.5' euler='0 0 90'/><geom size='1'/></body>"
                                  "<body name='b'><joint/><inertial pos='0 0 0' mass='1' "
                                  "fullinertia='3 2 2 .1 .2 .3'/></body>"
                                  "<body name='c'><joint/><geom size='.1'/></body>"));
    const tb_model_body *a = mjcf_body(&c, "a"), *b = mjcf_body(&c, "b");
    TEST_NEAR(a->mass, 2, 0);
    MJCF_NEAR3(a->com, 1, 2, 3);
    MJCF_NEAR3(a->inertia, 2, 1, 2.5);
    MJCF_NEAR3(b->inertia, 3, 2, 2);
    MJCF_NEAR3(b->inertia + 3, 0.1, 0.2, 0.3);
    TEST_NEAR_RELATIVE(mjcf_body(&c, "c")->mass, 4.1887902047863905, 1e-14);
    mjcf_free(&c);

    c = mjcf_load(MJCF("<compiler inertiafromgeom='true' inertiagrouprange='1 2'/><worldbody>"
                       "<body name='a'><joint/><inertial pos='1 2 3' mass='2' diaginertia='1 1 1'/>"
                       "<geom size='.1' group='1'/><geom size='1' group='3'/></body></worldbody>"));
    TEST_NEAR_RELATIVE(mjcf_body(&c, "a")->mass, 4.1887902047863905, 1e-14);
    mjcf_free(&c);

    c = mjcf_load(MJCF("<compiler settotalmass='10'/><worldbody>" PENDULUM("") "</worldbody>"));
    TEST_NEAR_RELATIVE(mjcf_body(&c, "p")->mass, 10, 1e-14);
    mjcf_free(&c);
    c = mjcf_load(
        MJCF("<compiler boundmass='10' boundinertia='1'/><worldbody>" PENDULUM("") "</worldbody>"));
    TEST_NEAR_RELATIVE(mjcf_body(&c, "p")->mass, 10, 1e-14);
    TEST_NEAR(mjcf_body(&c, "p")->inertia[0], 1, 1e-14);
    mjcf_free(&c);
    c = mjcf_load(MJCF("<compiler balanceinertia='true'/><worldbody><body name='a'><joint/>"
                       "<inertial pos='0 0 0' mass='1' diaginertia='1 1 4'/></body></worldbody>"));
    MJCF_NEAR3(mjcf_body(&c, "a")->inertia, 2, 2, 2);
    mjcf_free(&c);
}
END_TEST

START_TEST(bodies_that_make_no_sense_are_refused)
{
    mjcf_refuses(WORLD("<body>\n<inertial pos='0 0 0' mass='-1' diaginertia='1 1 1'/></body>"),
                 TB_INVALID_ARGUMENT, 2, "inertial: mass is -1 kg");
    mjcf_refuses(
        WORLD("<body><joint/>\n<inertial pos='0 0 0' mass='1' diaginertia='1 1 4'/></body>"),
        TB_INVALID_ARGUMENT, 2, "inertia");
    mjcf_refuses(WORLD("<body><inertial mass='1' diaginertia='1 1 1'/></body>"),
                 TB_INVALID_ARGUMENT, 1, "'pos' is missing");
    mjcf_refuses(WORLD("<body><inertial pos='0 0 0' diaginertia='1 1 1'/></body>"),
                 TB_INVALID_ARGUMENT, 1, "'mass' is missing");
    mjcf_refuses(WORLD("<body><inertial pos='0 0 0' mass='1' fullinertia='1 1 1 0 0 0' "
                       "euler='1 2 3'/></body>"),
                 TB_INVALID_ARGUMENT, 1, "fullinertia stands beside");
    mjcf_refuses(WORLD("<body><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>\n"
                       "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body>"),
                 TB_INVALID_ARGUMENT, 2, "a second inertial");
    mjcf_refuses(WORLD("<body gravcomp='half'><geom size='1'/></body>"), TB_INVALID_ARGUMENT, 1,
                 "gravcomp");
    mjcf_refuses(WORLD("<body name='a'/>\n<body name='a'/>"), TB_INVALID_ARGUMENT, 2, "body 'a'");
    mjcf_refuses(WORLD("<body mocap='true'><joint/><geom size='1'/></body>"), TB_INVALID_ARGUMENT,
                 1, "kinematic");
    static const char *const ELEMENTS[] = {"composite", "plugin"};
    for (int i = 0; i < 2; i++) {
        char text[100];
        snprintf(text, sizeof text, WORLD("<body>\n\n<%s/></body>"), ELEMENTS[i]);
        mjcf_refuses(text, TB_UNSUPPORTED, 3, "is not supported");
    }
    mjcf_refuses(WORLD("<wheel/>"), TB_INVALID_ARGUMENT, 1,
                 "wheel: unknown element in 'worldbody'");
}
END_TEST

/* A cube as a rigid flex, half 0.1 m under a shell of 0.02 m: it rests on the shell, and a ball on the
 * shell of its top. */
START_TEST(rigid_flexes_are_meshes_with_a_radius)
{
    mjcf_case c = mjcf_load(WORLD(
        "<geom type='plane' size='1 1 1'/><body name='cube' pos='0 0 .125'><freejoint/>"
        "<inertial pos='0 0 0' mass='1' diaginertia='.01 .01 .01'/><flexcomp name='f' "
        "type='direct' "
        "dim='2' rigid='true' radius='.02' scale='.1 .1 .1' "
        "point='-1 -1 -1 1 -1 -1 -1 1 -1 1 1 -1 -1 -1 1 1 -1 1 -1 1 1 1 1 1' "
        "element='0 2 1 1 2 3 4 5 6 5 7 6 0 1 4 1 5 4 2 6 3 3 6 7 0 4 2 2 4 6 1 3 5 3 7 5'>"
        "<contact condim='3' friction='.5'/></flexcomp></body>"
        "<body name='ball' pos='0 0 .3'><freejoint/><geom size='.05' friction='.5'/></body>"));
    tb_error error;
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate certificate;
    tb_step_options options = tb_step_defaults();
    options.dt = 0.002;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(c.model, &state, &error), &error);
    TEST_OK(tb_step(stepper, state, 300, &certificate, &error), &error);
    TEST_NEAR(tb_state_q(state)[2], 0.12, 1e-5);
    TEST_NEAR(tb_state_q(state)[9], 0.12 + 0.12 + 0.05, 2e-5);
    ck_assert(certificate.penetration < 2e-5);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&c);
    mjcf_refuses(WORLD("<body name='b'><geom size='1'/>\n<flexcomp name='f' rigid='true'/></body>"),
                 TB_UNSUPPORTED, 2, "type=\"grid\"");
    mjcf_refuses(WORLD("<body name='b'><geom size='1'/>\n<flexcomp name='f' rigid='true' "
                       "type='direct' point='0 0 0 1 0 0 0 1 0' element='0 1 3'/></body>"),
                 TB_INVALID_ARGUMENT, 2, "element has 3");
}
END_TEST

/* Only a document that enables sleep has it, with MuJoCo's tolerance if it names none. */
START_TEST(bodies_sleep_where_the_document_enables_it)
{
#define SLEEPERS                                                                                   \
    "<worldbody><body sleep='init'><freejoint/><geom size='1'/></body>"                            \
    "<body sleep='never'><freejoint/><geom size='1'/></body></worldbody>"
    mjcf_case c = mjcf_load(MJCF(SLEEPERS));
    ck_assert_int_eq(c.model->number_of_sleep_numbers, 0);
    mjcf_free(&c);
    c = mjcf_load(MJCF("<option sleep_tolerance='.5'><flag sleep='disable'/></option>" SLEEPERS));
    ck_assert_int_eq(c.model->number_of_sleep_numbers, 0);
    mjcf_free(&c);
    c = mjcf_load(MJCF("<option><flag sleep='enable'/></option>" SLEEPERS));
    ck_assert_int_gt(c.model->number_of_sleep_numbers, 0);
    ck_assert(c.model->sleep_tolerance == 1e-4);
    ck_assert_int_eq(c.model->trees[0].sleep, TB_SLEEP_INIT);
    ck_assert_int_eq(c.model->trees[1].sleep, TB_SLEEP_NEVER);
    mjcf_free(&c);
    c = mjcf_load(MJCF("<option sleep_tolerance='.5'><flag sleep='enable'/></option>" SLEEPERS));
    ck_assert(c.model->sleep_tolerance == 0.5);

    /* the model's bytes keep it */
    size_t size = 0;
    tb_model *again = NULL;
    const unsigned char *bytes = tb_model_bytes(c.model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &c.error), &c.error);
    ck_assert(again->sleep_tolerance == 0.5);
    ck_assert_int_eq(again->trees[0].sleep, TB_SLEEP_INIT);
    ck_assert_int_eq(again->trees[1].sleep, TB_SLEEP_NEVER);
    ck_assert_str_eq(again->sha256, c.model->sha256);
    tb_model_destroy(again);
    mjcf_free(&c);
    mjcf_refuses(MJCF("<option sleep_tolerance='-1'/>"), TB_INVALID_ARGUMENT, 1, "less than 0");
    mjcf_refuses(WORLD("<body sleep='deeply'><freejoint/><geom size='1'/></body>"),
                 TB_INVALID_ARGUMENT, 1, "sleep");
}
END_TEST

START_TEST(mocap_bodies_are_kinematic)
{
    mjcf_case c =
        mjcf_load(WORLD("<body name='m' mocap='true' pos='1 2 3'><geom size='1'/></body>"));
    ck_assert_int_eq(c.model->number_of_kinematic_bodies, 1);
    ck_assert_int_ge(mjcf_body(&c, "m")->kinematic, 0);
    mjcf_free(&c);
}
END_TEST

/* a box and a ball, an inertial, a body that says no, a body with a child */
#define ALIGNED                                                                                    \
    "<compiler alignfree='true'/><worldbody>"                                                      \
    "<body name='a' pos='0 0 1' euler='20 30 40'><freejoint/>"                                     \
    "<geom type='box' size='.1 .05 .02' pos='.1 .02 0' euler='10 20 30'/>"                         \
    "<geom size='.05' pos='-.1 0 .05'/><site name='s' pos='.1 .2 .3'/></body>"                     \
    "<body name='b' pos='1 0 1'><freejoint/><inertial pos='.1 0 .1' mass='2' quat='1 .2 .3 .4' "   \
    "diaginertia='.02 .03 .025'/><geom size='.1'/></body>"                                         \
    "<body name='c' pos='2 0 0'><freejoint align='false'/><geom size='.1' pos='0 0 1'/></body>"    \
    "<body name='d' pos='3 0 0'><freejoint/><geom size='.1' pos='0 0 1'/>"                         \
    "<body><geom size='.1'/></body></body></worldbody>"

START_TEST(aligned_bodies_have_the_frame_of_their_inertia)
{
    mjcf_case c = mjcf_load(MJCF(ALIGNED));
    const double *q = c.model->q_reference;
    static const double MUJOCO[] = {0.01701428421770885,
                                    0.01686347684846418,
                                    1.0199891818392717,
                                    -0.4985745417897155,
                                    0.7787309823748467,
                                    0.12873686041230706,
                                    0.3583689497429544,
                                    1.1,
                                    0,
                                    1.1,
                                    0.8804509063256238,
                                    0.1760901812651248,
                                    0.26413527189768715,
                                    0.3521803625302496};
    /* MuJoCo stops turning at moments of 1e-12 kg m^2 */
    for (int i = 0; i < 14; i++) TEST_NEAR(q[i], MUJOCO[i], 1e-9);
    MJCF_NEAR3(mjcf_body(&c, "a")->com, 0, 0, 0);
    TEST_NEAR(mjcf_body(&c, "a")->inertia[0], 0.01742247261930842, 1e-12);
    TEST_NEAR(mjcf_body(&c, "a")->inertia[3], 0, 1e-12);
    MJCF_NEAR3(mjcf_body(&c, "b")->com, 0, 0, 0);
    TEST_NEAR(mjcf_body(&c, "b")->inertia[1], 0.03, 1e-12);
    const tb_model_site *site = &c.model->sites[mjcf_index(&c, TB_HANDLE_SITE, "s")];
    const double at[] = {0.2701028084640863, -0.21404748633338425, 0.03636133571935823};
    for (int i = 0; i < 3; i++) TEST_NEAR(site->position[i], at[i], 1e-9);
    MJCF_NEAR3(q + 14, 2, 0, 0);
    MJCF_NEAR3(q + 21, 3, 0, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(keyframes_mean_the_aligned_frame)
{
    mjcf_case c = mjcf_load(
        MJCF("<worldbody><body><freejoint align='true'/><geom size='.1' pos='0 0 1'/></body>"
             "</worldbody><keyframe><key qpos='1 2 3 1 0 0 0'/></keyframe>"));
    MJCF_NEAR3(c.model->q_reference, 0, 0, 1);
    MJCF_NEAR3(c.model->keyframes[0].q, 1, 2, 3);
    MJCF_NEAR3(c.model->bodies[1].com, 0, 0, 0);
    mjcf_free(&c);
    mjcf_refuses(WORLD("<body><freejoint align='yes'/><geom size='1'/></body>"),
                 TB_INVALID_ARGUMENT, 1, "align");
}
END_TEST

TEST_MAIN(rigid_flexes_are_meshes_with_a_radius, classes_inherit_and_the_nearest_word_counts,
          an_orientation_replaces_another_form_from_a_default,
          classes_that_make_no_sense_are_refused, joints_have_mujocos_units_and_limits,
          a_springdamper_uses_the_inertia_that_the_joint_feels,
          joints_that_make_no_sense_are_refused, mass_is_given_or_from_geoms,
          bodies_that_make_no_sense_are_refused, mocap_bodies_are_kinematic,
          bodies_sleep_where_the_document_enables_it,
          aligned_bodies_have_the_frame_of_their_inertia, keyframes_mean_the_aligned_frame)
