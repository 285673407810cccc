/* MJCF contact pairs, excludes, equalities, tendons and keyframes. */
#include "mjcf_util.h"
#include "step/step.h"

/* two balls, a site each, a site in the world, and a section */
#define BALLS(section)                                                                             \
    MJCF("<worldbody><site name='w' pos='1 2 3' euler='10 20 30'/><body name='a' pos='0 0 1' "     \
         "euler='90 0 0'><freejoint/><geom name='ga' size='1' friction='.3' condim='4'/>"          \
         "<site name='s' pos='.1 .2 .3' euler='30 0 0'/></body><body name='b' pos='0 1 1' "        \
         "euler='0 90 0'><freejoint/><geom name='gb' size='1'/></body></worldbody>" section)

START_TEST(pairs_have_surfaces_of_their_own)
{
    mjcf_case c = mjcf_load(BALLS("<contact><pair name='p' geom1='ga' geom2='gb'/></contact>"));
    const tb_model_pair *p = &c.model->pairs[0];
    TEST_NEAR(p->surface.friction, 1, 0);
    ck_assert_int_eq(p->surface.kind, TB_CONTACT_COULOMB);
    mjcf_free(&c);
    c = mjcf_load(BALLS("<default><pair condim='4'/></default><contact><pair geom1='ga' geom2='gb' "
                        "friction='.5 .5 .01'/><exclude body1='world' body2='b'/>"
                        "<exclude body1='a' body2='a'/></contact>"));
    p = &c.model->pairs[0];
    TEST_NEAR(p->surface.friction, 0.5, 0);
    TEST_NEAR(2.0 / 3.0 * p->surface.friction * p->surface.spin_radius, 0.01, 1e-15);
    mjcf_case one =
        mjcf_load(BALLS("<contact><pair geom1='ga' geom2='gb' friction='.3'/></contact>"));
    TEST_NEAR(one.model->pairs[0].surface.friction, 0.3, 0);
    ck_assert_ptr_nonnull(strstr(one.model->warnings[0], "both tangents"));
    mjcf_free(&one);
    mjcf_refuses(BALLS("<contact><pair geom1='ga' geom2='gb' friction='.5 .4'/></contact>"),
                 TB_UNSUPPORTED, 1, "two different sliding coefficients");
    ck_assert_int_eq(c.model->number_of_excludes, 1);
    ck_assert_int_eq(c.model->excludes[0].a, 0);
    mjcf_free(&c);
}
END_TEST

#define LAW(name, data) "<custom><text name='" name "' data='" data "'/></custom>"

/* `custom` has the constants of the volume law; a geom's own come last, wherever they are. */
START_TEST(custom_texts_give_constants_of_the_volume_law)
{
    mjcf_case c = mjcf_load(BALLS(LAW("volume_law:ga", "damping=0.5  joined=1") LAW(
        "volume_law", "elasticity=1e6 damping=.1 sphere_stiffness=0") LAW("other", "a=b")));
    const tb_volume_constants *all = c.model->volume_constants,
                              *a = &all[tb_model_find(c.model, TB_HANDLE_SHAPE, "ga")],
                              *b = &all[tb_model_find(c.model, TB_HANDLE_SHAPE, "gb")];
    TEST_NEAR(a->elasticity, 1e6, 0);
    TEST_NEAR(a->damping, 0.5, 0);
    ck_assert(a->joined && !b->joined);
    TEST_NEAR(b->damping, 0.1, 0);
    TEST_NEAR(b->sphere_stiffness, 0, 0);
    TEST_NEAR(b->static_friction, 0.6, 0);
    mjcf_free(&c);
    c = mjcf_load(BALLS(""));
    ck_assert_ptr_null(c.model->volume_constants);
    mjcf_free(&c);
    mjcf_refuses(BALLS(LAW("volume_law:gc", "damping=1")), TB_NOT_FOUND, 1,
                 "there is no geom 'gc'");
    mjcf_refuses(BALLS(LAW("volume_law", "damp=1")), TB_INVALID_ARGUMENT, 1, "'damp=1' is no");
    mjcf_refuses(BALLS(LAW("volume_law", "damping=x")), TB_INVALID_ARGUMENT, 1,
                 "'damping=x' is no");
    mjcf_refuses(BALLS(LAW("volume_law", "damping")), TB_INVALID_ARGUMENT, 1, "'damping' is no");
    mjcf_refuses(BALLS(LAW("volume_law", "joined=2")), TB_INVALID_ARGUMENT, 1, "'joined=2' is no");
    mjcf_refuses(BALLS(LAW("volume_law", "elasticity=-1")), TB_INVALID_ARGUMENT, 1, "elasticity");
}
END_TEST

START_TEST(connects_join_points_or_sites)
{
    mjcf_case c =
        mjcf_load(BALLS("<equality><connect body1='a' body2='b' anchor='1 0 0'/>"
                        "<connect body1='a' anchor='1 0 0'/><connect site1='w' site2='s'/>"
                        "</equality>"));
    const tb_model_equality *e = c.model->equalities;
    ck_assert_int_eq(e[0].type, TB_EQUALITY_CONNECT);
    MJCF_NEAR3(e[0].anchor_a, 1, 0, 0);
    MJCF_NEAR3(e[0].anchor_b, 0, -1, 1);
    ck_assert_int_eq(e[1].b, 0);
    MJCF_NEAR3(e[1].anchor_b, 1, 0, 1);
    ck_assert_int_eq(e[2].a, 0);
    MJCF_NEAR3(e[2].anchor_a, 1, 2, 3);
    MJCF_NEAR3(e[2].anchor_b, 0.1, 0.2, 0.3);
    mjcf_free(&c);
}
END_TEST

START_TEST(welds_keep_a_pose)
{
    mjcf_case c = mjcf_load(BALLS(
        "<equality><weld body1='a' body2='b' anchor='1 0 0'/>"
        "<weld body1='a' body2='b' relpose='1 2 3 1 1 0 0' anchor='.1 .2 .3'/>"
        "<weld site1='w' site2='s' active='false'/><weld body1='a' torquescale='0'/></equality>"));
    const tb_model_equality *e = c.model->equalities;
    /* MuJoCo: the anchor (1 0 0) of b lies at (0 -1 -1) in a */
    ck_assert_int_eq(e[0].a, mjcf_index(&c, TB_HANDLE_BODY, "b"));
    MJCF_NEAR3(e[0].anchor_a, 1, 0, 0);
    MJCF_NEAR3(e[0].anchor_b, 0, -1, -1);
    mjcf_near_quaternion(e[0].orientation, .5, .5, -.5, .5);
    ck_assert_int_eq(e[1].a, mjcf_index(&c, TB_HANDLE_BODY, "a"));
    MJCF_NEAR3(e[1].anchor_a, 1, 2, 3);
    MJCF_NEAR3(e[1].anchor_b, 0.1, 0.2, 0.3);
    mjcf_near_quaternion(e[1].orientation, 1, 1, 0, 0);
    /* (10 20 30) in the world times the inverse of 30 about x */
    ck_assert(e[2].disabled);
    mjcf_near_quaternion(e[2].orientation, 0.94460395, -0.12092238, 0.07043934, 0.2968829);
    ck_assert_int_eq(e[3].type, TB_EQUALITY_CONNECT);
    mjcf_free(&c);
}
END_TEST

/* two hinges, a tendon over both, and a section */
#define HINGES(section)                                                                            \
    MJCF("<compiler angle='radian'/><worldbody><body><joint name='j' ref='1' springref='.5' "      \
         "range='-1 2'/><geom size='1'/><body><joint name='k' springref='.25'/><geom size='1'/>"   \
         "</body></body></worldbody>" section)
#define TENDON(attributes)                                                                         \
    "<tendon><fixed name='t' " attributes                                                          \
    "><joint joint='j' coef='2'/><joint joint='k' coef='-4'/>"                                     \
    "</fixed></tendon>"

START_TEST(joints_and_tendons_follow_polynomials)
{
    mjcf_case c =
        mjcf_load(HINGES(TENDON("") "<equality><joint joint1='j' joint2='k' "
                                    "polycoef='1 2 3'/><joint joint1='k' polycoef='.5 7'/>"
                                    "<tendon tendon1='t'/></equality>"));
    const tb_model_equality *e = c.model->equalities;
    ck_assert_int_eq(e[0].type, TB_EQUALITY_JOINT);
    TEST_NEAR(e[0].polynomial[1], 2, 0);
    TEST_NEAR(e[0].polynomial[2], 3, 0);
    TEST_NEAR(e[0].polynomial[3], 0, 0);
    TEST_NEAR(e[0].reference_a, 1, 0);
    TEST_NEAR(e[1].polynomial[0], 0.5, 0);
    TEST_NEAR(e[1].polynomial[1], 0, 0);
    ck_assert_int_eq(e[1].b, -1);
    ck_assert_int_eq(e[2].type, TB_EQUALITY_TENDON);
    mjcf_free(&c);
}
END_TEST

START_TEST(fixed_tendons_have_springs_and_limits)
{
    mjcf_case c =
        mjcf_load(HINGES(TENDON("range='-1 1' stiffness='2' damping='3' frictionloss='4'")));
    const tb_model_tendon *t = &c.model->tendons[0];
    ck_assert(t->limited);
    TEST_NEAR(t->stiffness, 2, 0);
    TEST_NEAR(t->damping, 3, 0);
    TEST_NEAR(t->dry_friction, 4, 0);
    TEST_NEAR(t->spring_lower, 2 * 0.5 - 4 * 0.25, 1e-15);
    TEST_NEAR(t->spring_upper, t->spring_lower, 0);
    TEST_NEAR(c.model->tendon_coefficients[t->first + 1], -4, 0);
    mjcf_free(&c);
    c = mjcf_load(
        HINGES("<default><tendon stiffness='2'/></default>" TENDON("springlength='-1 2'")));
    TEST_NEAR(c.model->tendons[0].spring_lower, -1, 0);
    TEST_NEAR(c.model->tendons[0].spring_upper, 2, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(keyframes_may_be_shorter_than_the_model)
{
    mjcf_case c = mjcf_load(MJCF(
        "<worldbody><body pos='1 2 3' quat='0 1 0 0'><freejoint/><geom size='1'/></body>"
        "<body><joint name='j' type='slide' ref='.5'/><geom size='1'/><body><joint type='ball'/>"
        "<geom size='1'/></body></body><body mocap='true' pos='0 0 9'/></worldbody>"
        "<actuator><motor joint='j'/><intvelocity joint='j'/></actuator>"
        "<keyframe><key name='a' time='2' qpos='7 8' qvel='1' ctrl='4'/><key name='b'/>"
        "<key name='c' act='.5' mpos='1 2 3' mquat='0 0 2 0'/></keyframe>"));
    ck_assert_int_eq(c.model->number_of_keyframes, 3);
    const tb_model_keyframe *k = &c.model->keyframes[mjcf_index(&c, TB_HANDLE_KEYFRAME, "a")];
    static const double Q[] = {7, 8, 3, 0, 1, 0, 0, 0.5, 1, 0, 0, 0};
    for (int i = 0; i < 12; i++) TEST_NEAR(k->q[i], Q[i], 0);
    TEST_NEAR(k->time, 2, 0);
    TEST_NEAR(k->u[0], 1, 0);
    TEST_NEAR(k->u[5], 0, 0);
    TEST_NEAR(k->controls[0], 4, 0);
    TEST_NEAR(k->activations[0], 0, 0);
    static const double DESCRIBED[] = {0, 0, 9, 1, 0, 0, 0}, TOLD[] = {1, 2, 3, 0, 0, 1, 0};
    for (int i = 0; i < 7; i++) TEST_NEAR(k->kinematic[i], DESCRIBED[i], 0);
    k = &c.model->keyframes[mjcf_index(&c, TB_HANDLE_KEYFRAME, "c")];
    for (int i = 0; i < 7; i++) TEST_NEAR(k->kinematic[i], TOLD[i], 0);
    TEST_NEAR(k->activations[0], 0.5, 0);
    mjcf_free(&c);

    /* a state takes all of it */
    c = mjcf_load(
        MJCF("<worldbody><body><joint name='j'/><geom size='1'/></body><body mocap='true' "
             "pos='0 0 9'/></worldbody><actuator><intvelocity joint='j'/></actuator>"
             "<keyframe><key act='.5' mpos='1 2 3'/></keyframe>"));
    tb_state *state = NULL;
    TEST_OK(tb_state_create(c.model, &state, &c.error), &c.error);
    TEST_OK(tb_state_reset(state, 0, &c.error), &c.error);
    TEST_NEAR(state->activations[0], 0.5, 0);
    TEST_NEAR(state->kinematic[2], 3, 0);
    tb_state_destroy(state);
    mjcf_free(&c);
}
END_TEST

START_TEST(relations_that_make_no_sense_are_refused)
{
#define EQUALITY(text) BALLS("<equality>" text "</equality>")
#define CONTACT(text)  BALLS("<contact>" text "</contact>")
    static const struct {
        const char *text;
        tb_status status;
        const char *words;
    } CASES[] = {
        {CONTACT("<pair geom1='ga' geom2='x'/>"), TB_NOT_FOUND, "pair: there is no geom 'x'"},
        {CONTACT("<pair geom1='ga'/>"), TB_INVALID_ARGUMENT, "'geom2' is missing"},
        {CONTACT("<pair geom1='ga' geom2='gb' condim='5'/>"), TB_INVALID_ARGUMENT, "condim is 5"},
        {CONTACT("<pair geom1='ga' geom2='gb' condim='6' friction='1 1 1 .1 .2'/>"), TB_UNSUPPORTED,
         "two different rolling"},
        {CONTACT("<pair geom1='ga' geom2='gb' adhesion='-2'/>"), TB_INVALID_ARGUMENT, "adhesion"},
        {CONTACT("<pair geom1='ga' geom2='gb' tangential_restitution='2'/>"), TB_INVALID_ARGUMENT,
         "tangential_restitution is 2"},
        {CONTACT("<exclude body1='a'/>"), TB_INVALID_ARGUMENT, "'body2' is missing"},
        {CONTACT("<exclude body1='a' body2='x'/>"), TB_NOT_FOUND, "there is no body 'x'"},
        {CONTACT("<glue/>"), TB_INVALID_ARGUMENT, "glue: unknown element in 'contact'"},
        {EQUALITY("<connect body1='a'/>"), TB_INVALID_ARGUMENT, "'anchor' is missing"},
        {EQUALITY("<connect anchor='1 0 0'/>"), TB_INVALID_ARGUMENT, "'body1' is missing"},
        {EQUALITY("<connect body1='a' body2='a' anchor='1 0 0'/>"), TB_INVALID_ARGUMENT,
         "the same"},
        {EQUALITY("<connect site1='s'/>"), TB_INVALID_ARGUMENT, "'site2' is missing"},
        {EQUALITY("<connect site1='s' site2='x'/>"), TB_NOT_FOUND, "there is no site 'x'"},
        {EQUALITY("<weld site1='s' site2='w' body1='a'/>"), TB_INVALID_ARGUMENT,
         "body1 stands beside"},
        {EQUALITY("<weld body1='a' relpose='1 2 3'/>"), TB_INVALID_ARGUMENT, "is not 7 numbers"},
        {EQUALITY("<flex flex='f'/>"), TB_UNSUPPORTED, "flex: equalities of this kind"},
        {EQUALITY("<bolt/>"), TB_INVALID_ARGUMENT, "bolt: unknown element"},
        {HINGES("<equality><joint joint2='k'/></equality>"), TB_INVALID_ARGUMENT,
         "'joint1' is missing"},
        {HINGES("<equality><joint joint1='j' joint2='j'/></equality>"), TB_INVALID_ARGUMENT,
         "the same"},
        {HINGES("<equality><joint joint1='x'/></equality>"), TB_NOT_FOUND, "there is no joint 'x'"},
        {HINGES("<equality><tendon tendon1='x'/></equality>"), TB_NOT_FOUND,
         "there is no tendon 'x'"},
        {HINGES("<tendon><spatial/></tendon>"), TB_INVALID_ARGUMENT, "fewer than two points"},
        {HINGES("<tendon><fixed/></tendon>"), TB_INVALID_ARGUMENT, "a tendon without joints"},
        {HINGES("<tendon><fixed><joint joint='x' coef='1'/></fixed></tendon>"), TB_NOT_FOUND,
         "there is no joint 'x'"},
        {HINGES("<tendon><fixed><joint joint='j'/></fixed></tendon>"), TB_INVALID_ARGUMENT,
         "'coef' is missing"},
        {HINGES(TENDON("springlength='2 1'")), TB_INVALID_ARGUMENT, "springlength is 2 to 1"},
        {HINGES(TENDON("springyield='2'")), TB_UNSUPPORTED, "springyield=\"2\""},
        {HINGES(TENDON("") TENDON("")), TB_INVALID_ARGUMENT, "'t' is used twice"},
        {HINGES("<keyframe><key qpos='1 2 3'/></keyframe>"), TB_INVALID_ARGUMENT,
         "key: qpos has 3 numbers, more than the model's 2"},
        {HINGES("<keyframe><frame/></keyframe>"), TB_INVALID_ARGUMENT, "frame: unknown element"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        mjcf_refuses(CASES[i].text, CASES[i].status, 1, CASES[i].words);
}
END_TEST

TEST_MAIN(pairs_have_surfaces_of_their_own, custom_texts_give_constants_of_the_volume_law,
          connects_join_points_or_sites, welds_keep_a_pose, joints_and_tendons_follow_polynomials,
          fixed_tendons_have_springs_and_limits, keyframes_may_be_shorter_than_the_model,
          relations_that_make_no_sense_are_refused)
