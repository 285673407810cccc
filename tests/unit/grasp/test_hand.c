/* Hands: which end of a range opens, which actuators close, values of a profile, warnings; and
 * the reasons of trials. */
#include "test_util.h"

#include "grasp/grasp.h"

static tb_error error;

static tb_scene *mjcf(const char *text)
{
    tb_scene *scene = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), NULL, NULL, &scene, &error), &error);
    return scene;
}

/* A jaw like Panda's in robosuite: one finger opens upwards in its range, the other downwards; a
 * wrist that moves both fingers is no part of closing. %s: actuators, tendons, equalities. */
static const char JAW[] =
    "<mujoco><worldbody><body name='palm'>"
    "<geom type='box' size='0.02 0.06 0.01' pos='0 0 -0.02' mass='0.5'/>"
    "<body name='wrist'><joint name='wrist' axis='0 0 1' range='-30 30' damping='1'/>"
    "<inertial pos='0 0 0' mass='0.1' diaginertia='1e-3 1e-3 1e-3'/>"
    "<body name='left'><joint name='finger_joint1' type='slide' axis='0 1 0' range='0 0.04'"
    " damping='10'/><geom type='box' size='0.01 0.004 0.02' pos='0 0.004 0.04' mass='0.05'/></body>"
    "<body name='right'><joint name='finger_joint2' type='slide' axis='0 1 0' range='-0.04 0'"
    " damping='10'/><geom type='box' size='0.01 0.004 0.02' pos='0 -0.004 0.04' mass='0.05'/>"
    "</body></body></body></worldbody>%s</mujoco>";
static const char TWO_SERVOS[] =
    "<actuator><position name='turn' joint='wrist' kp='10' ctrlrange='-0.5 0.5'/>"
    "<position name='one' joint='finger_joint1' kp='1000' ctrlrange='0 0.04'"
    " forcerange='-20 20'/>"
    "<position name='two' joint='finger_joint2' kp='1000' ctrlrange='-0.04 0'"
    " forcerange='-20 20'/></actuator>";
static const char ONE_TENDON[] =
    "<tendon><fixed name='both'><joint joint='finger_joint1' coef='1'/>"
    "<joint joint='finger_joint2' coef='-1'/></fixed></tendon><equality><joint"
    " joint1='finger_joint1' joint2='finger_joint2' polycoef='0 -1 0 0 0'/></equality><actuator>"
    "<position name='turn' joint='wrist' kp='10' ctrlrange='-0.5 0.5'/>"
    "<position name='jaw' tendon='both' kp='500' ctrlrange='0 0.08'/></actuator>";
static const char ONE_LEADS[] =
    "<equality><joint joint1='finger_joint2' joint2='finger_joint1' polycoef='0 -1 0 0 0'/>"
    "</equality><actuator><position name='turn' joint='wrist' kp='10' ctrlrange='-0.5 0.5'/>"
    "<position name='lead' joint='finger_joint1' kp='1000' ctrlrange='0 0.04'/></actuator>";
static const char BLOCK[] =
    "<mujoco><worldbody><body name='block'><freejoint/>"
    "<geom type='box' size='0.015 0.02 0.03' mass='0.1' friction='0.8 0 0'/></body></worldbody>"
    "</mujoco>";

static tb_scene *jaw(const char *rest)
{
    char text[4096];
    snprintf(text, sizeof text, JAW, rest);
    return mjcf(text);
}

static const tb_hand_control *control_of(const tb_hand_info *info, const char *name)
{
    for (int32_t i = 0; i < info->number_of_controls; i++)
        if (strcmp(info->controls[i].actuator, name) == 0) return &info->controls[i];
    ck_abort_msg("no actuator %s", name);
    return NULL;
}

static void check_control(const tb_hand_info *info, const char *name, double open, double close,
                          tb_control_source source)
{
    const tb_hand_control *c = control_of(info, name);
    TEST_NEAR(c->open, open, 1e-12);
    TEST_NEAR(c->close, close, 1e-12);
    ck_assert_int_eq((int)c->source, (int)source);
}

static bool warns(const tb_hand *hand, const char *words)
{
    for (int32_t i = 0; i < tb_hand_number_of_warnings(hand); i++)
        if (strstr(tb_hand_warning(hand, i), words) != NULL) return true;
    return false;
}

START_TEST(the_end_that_moves_the_fingertips_apart_opens)
{
    static const char *const RESTS[] = {TWO_SERVOS, ONE_TENDON, ONE_LEADS};
    for (int i = 0; i < 3; i++) {
        tb_grasp_hand from = tb_grasp_defaults().hand;
        tb_scene *scene = jaw(RESTS[i]);
        tb_hand *hand = NULL;
        from.scene = scene;
        TEST_OK(tb_hand_create(&from, &hand, &error), &error);
        const tb_hand_info *info = tb_hand_describe(hand);
        check_control(info, "turn", 0, 0, TB_CONTROL_IDLE);
        if (i == 0) {
            check_control(info, "one", 0.04, 0, TB_CONTROL_MOTION);
            check_control(info, "two", -0.04, 0, TB_CONTROL_MOTION);
        }
        if (i == 1) check_control(info, "jaw", 0.08, 0, TB_CONTROL_MOTION);
        if (i == 2) check_control(info, "lead", 0.04, 0, TB_CONTROL_MOTION);
        TEST_NEAR(info->axis[1], 1, 1e-3);
        TEST_NEAR(info->opening, 0.08, 2e-3);
        ck_assert_int_eq(info->number_of_tips, 2);
        ck_assert(!warns(hand, "one-sided"));
        /* along the closing axis the open hand is as wide as its fingers' outer faces */
        static const double Y[3] = {0, 1, 0};
        double widest = 0;
        for (int32_t s = 0; s < tb_hand_number_of_shapes(hand); s++)
            if (strcmp(tb_hand_shape_body(hand, s), "left") == 0)
                widest = tb_hand_support(hand, s, false, Y);
        TEST_NEAR(widest, 0.048, 1e-3);
        tb_hand_destroy(hand);
        tb_scene_destroy(scene);
    }
}
END_TEST

/* The bars of a parallelogram end before the fingertips and stand between them. */
START_TEST(bars_of_a_linkage_are_no_fingertips)
{
    static const char LINKAGE[] =
        "<mujoco><default><joint damping='0.05' armature='1e-4'/></default><worldbody>"
        "<body name='palm'><geom type='box' size='0.02 0.06 0.01' pos='0 0 -0.02' mass='0.5'/>"
        "<body name='left' pos='0 0.05 0'><joint name='left' axis='1 0 0' range='0 0.6'/>"
        "<geom type='box' size='0.01 0.004 0.05' pos='0 0 0.05' mass='0.05'/></body>"
        "<body name='left_bar' pos='0 0.03 0'><joint name='left_bar' axis='1 0 0' range='0 0.6'/>"
        "<geom type='box' size='0.005 0.002 0.02' pos='0 0 0.02' mass='0.02'/></body>"
        "<body name='right' pos='0 -0.05 0'><joint name='right' axis='-1 0 0' range='0 0.6'/>"
        "<geom type='box' size='0.01 0.004 0.05' pos='0 0 0.05' mass='0.05'/></body>"
        "<body name='right_bar' pos='0 -0.03 0'><joint name='right_bar' axis='-1 0 0'"
        " range='0 0.6'/><geom type='box' size='0.005 0.002 0.02' pos='0 0 0.02' mass='0.02'/>"
        "</body></body></worldbody><equality>"
        "<joint joint1='left_bar' joint2='left'/><joint joint1='right_bar' joint2='right'/>"
        "</equality><actuator>"
        "<position name='one' joint='left' kp='5' kv='0.2' ctrlrange='0 0.6'/>"
        "<position name='two' joint='right' kp='5' kv='0.2' ctrlrange='0 "
        "0.6'/></actuator></mujoco>";
    tb_grasp_hand from = tb_grasp_defaults().hand;
    tb_scene *scene = mjcf(LINKAGE);
    tb_hand *hand = NULL;
    from.scene = scene;
    TEST_OK(tb_hand_create(&from, &hand, &error), &error);
    const tb_hand_info *info = tb_hand_describe(hand);
    ck_assert_int_eq(info->number_of_tips, 2);
    ck_assert_str_eq(info->tips[0].body, "left");
    ck_assert_str_eq(info->tips[1].body, "right");
    TEST_NEAR(info->axis[1], 1, 1e-3);
    TEST_NEAR(info->opening, 0.092, 1e-3); /* of the fingers; of the bars it is 0.056 */
    ck_assert(!warns(hand, "one-sided"));
    tb_hand_destroy(hand);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(hands_that_close_from_one_side_are_warned_of)
{
    static const char *const ONE[1] = {"one"}, *const BOTH[2] = {"one", "two"};
    static const double SAME_OPEN[2] = {0.04, 0}, SAME_CLOSE[2] = {0, -0.04};
    tb_grasp_hand from = tb_grasp_defaults().hand;
    tb_scene *scene = jaw(TWO_SERVOS);
    tb_hand *hand = NULL;
    from.scene = scene;
    from.closing = ONE;
    from.number_of_closing = 1;
    TEST_OK(tb_hand_create(&from, &hand, &error), &error);
    ck_assert(warns(hand, "one-sided: closing moves 'left'"));
    check_control(tb_hand_describe(hand), "one", 0.04, 0, TB_CONTROL_MOTION);
    check_control(tb_hand_describe(hand), "two", 0, 0, TB_CONTROL_IDLE);
    tb_hand_destroy(hand);
    /* both fingers in the same sense, as the caller says */
    from.closing = BOTH;
    from.number_of_closing = 2;
    from.open_controls = SAME_OPEN;
    from.close_controls = SAME_CLOSE;
    TEST_OK(tb_hand_create(&from, &hand, &error), &error);
    ck_assert(warns(hand, "one-sided: the fingertips are"));
    check_control(tb_hand_describe(hand), "two", 0, -0.04, TB_CONTROL_REQUEST);
    tb_hand_destroy(hand);
    tb_scene_destroy(scene);
}
END_TEST

/* ---- hands that jam ---- */

static tb_hand *hand_of(tb_scene *scene)
{
    tb_grasp_hand from = tb_grasp_defaults().hand;
    tb_hand *hand = NULL;
    from.scene = scene;
    TEST_OK(tb_hand_create(&from, &hand, &error), &error);
    return hand;
}

/* Motors of 20 N beside a dry friction of 1 N, and of 15 N: a servo of 1 kN/m that is 15 mm from its
 * target pushes no more, so the fingers stop there. */
START_TEST(hands_that_dry_friction_holds_are_warned_of)
{
    static const char HAND[] =
        "<mujoco><default><joint type='slide' damping='10' frictionloss='%s'/></default><worldbody>"
        "<body name='palm'><geom type='box' size='0.02 0.06 0.01' pos='0 0 -0.02' mass='0.5'/>"
        "<body name='left'><joint name='a' axis='0 1 0' range='0 0.04'/>"
        "<geom type='box' size='0.01 0.004 0.02' pos='0 0.004 0.04' mass='0.05'/></body>"
        "<body name='right'><joint name='b' axis='0 1 0' range='-0.04 0'/>"
        "<geom type='box' size='0.01 0.004 0.02' pos='0 -0.004 0.04' mass='0.05'/></body></body>"
        "</worldbody><actuator>"
        "<position name='one' joint='a' kp='1000' ctrlrange='0 0.04' forcerange='-20 20'/>"
        "<position name='two' joint='b' kp='1000' ctrlrange='-0.04 0' forcerange='-20 20'/>"
        "</actuator></mujoco>";
    static const char *const FRICTION[] = {"0", "1", "15"};
    for (int i = 0; i < 3; i++) {
        char text[2048];
        snprintf(text, sizeof text, HAND, FRICTION[i]);
        tb_scene *scene = mjcf(text);
        tb_hand *hand = hand_of(scene);
        ck_assert_int_eq(warns(hand, "do not overcome the dry friction"), i == 2);
        ck_assert(!warns(hand, "block each other"));
        tb_hand_destroy(hand);
        tb_scene_destroy(scene);
    }
}
END_TEST

/* A hook of one finger that stands in the way of the other one's heel. %s: its place. */
START_TEST(hands_whose_links_block_each_other_are_warned_of)
{
    static const char HAND[] =
        "<mujoco><default><joint type='slide' damping='10'/></default><worldbody>"
        "<body name='palm'><geom type='box' size='0.02 0.06 0.01' pos='0 0 -0.03' mass='0.5'/>"
        "<body name='slide1' pos='0 0.04 0'><joint name='a' axis='0 1 0' range='-0.04 0'/>"
        "<geom type='box' size='0.01 0.003 0.005' pos='0 0.003 0' mass='0.02'/>"
        "<body name='left'><geom type='box' size='0.01 0.004 0.02' pos='0 0.004 0.04' mass='0.05'/>"
        "</body></body>"
        "<body name='slide2' pos='0 -0.04 0'><joint name='b' axis='0 1 0' range='0 0.04'/>"
        "<geom type='box' size='0.01 0.002 0.005' pos='0 %s 0' mass='0.02'/>"
        "<body name='right'><geom type='box' size='0.01 0.004 0.02' pos='0 -0.004 0.04'"
        " mass='0.05'/></body></body></body></worldbody><actuator>"
        "<position name='one' joint='a' kp='1000' ctrlrange='-0.04 0' forcerange='-20 20'/>"
        "<position name='two' joint='b' kp='1000' ctrlrange='0 0.04' forcerange='-20 20'/>"
        "</actuator></mujoco>";
    static const char *const PLACES[] = {"-0.03", "0.02"};
    for (int i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof text, HAND, PLACES[i]);
        tb_scene *scene = mjcf(text);
        tb_grasp_hand from = tb_grasp_defaults().hand;
        static const double OPEN[2] = {0, 0}, CLOSE[2] = {-0.04, 0.04};
        static const char *const BOTH[2] = {"one", "two"};
        tb_hand *hand = NULL;
        from.scene = scene;
        from.closing = BOTH;
        from.number_of_closing = 2;
        from.open_controls = OPEN;
        from.close_controls = CLOSE;
        TEST_OK(tb_hand_create(&from, &hand, &error), &error);
        ck_assert_int_eq(warns(hand, "links 'slide1' and 'slide2' block each other"), i == 1);
        ck_assert(!warns(hand, "dry friction"));
        tb_hand_destroy(hand);
        tb_scene_destroy(scene);
    }
}
END_TEST

/* The fingertips of the file's first pose overlap by 2 mm; those of the open hand, with which a grasp
 * begins, are 78 mm apart. A finger's heel that is 5 mm inside the palm stays there. */
START_TEST(overlaps_are_those_of_the_open_hand)
{
    static const char HAND[] =
        "<mujoco><default><joint type='slide' damping='10'/></default><worldbody>"
        "<body name='palm'><geom type='box' size='0.02 0.06 0.01' pos='0 0 -0.02' mass='0.5'/>"
        "<body name='slide'><joint name='a' axis='0 1 0' range='0 0.04'/>"
        "<inertial pos='0 0 0' mass='0.01' diaginertia='1e-5 1e-5 1e-5'/><body name='left'>"
        "<joint name='c' axis='0 1 0' stiffness='10000'/>"
        "<geom type='box' size='0.01 0.005 0.02' pos='0 0.004 0.04' mass='0.05'/>"
        "<geom type='box' size='0.01 0.004 0.005' pos='0 0.004 %s' mass='0.01'/></body></body>"
        "<body name='right'><joint name='b' axis='0 1 0' range='-0.04 0'/>"
        "<geom type='box' size='0.01 0.005 0.02' pos='0 -0.004 0.04' mass='0.05'/></body></body>"
        "</worldbody><actuator>"
        "<position name='one' joint='a' kp='1000' ctrlrange='0 0.04'/>"
        "<position name='two' joint='b' kp='1000' ctrlrange='-0.04 0'/></actuator></mujoco>";
    for (int i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof text, HAND, i == 0 ? "0.005" : "-0.01");
        tb_scene *scene = mjcf(text);
        tb_hand *hand = hand_of(scene);
        ck_assert_int_eq(warns(hand, "overlap by"), i == 1);
        tb_hand_destroy(hand);
        tb_grasp_hand from = tb_grasp_defaults().hand;
        from.scene = scene;
        from.overlaps = TB_OVERLAPS_ERROR;
        const tb_status status = tb_hand_create(&from, &hand, &error);
        ck_assert_int_eq(status, i == 0 ? TB_OK : TB_FAILED_PRECONDITION);
        tb_hand_destroy(hand);
        tb_scene_destroy(scene);
    }
}
END_TEST

/* Fingers that stop 10 mm apart hold nothing thinner: no sample asks for it. */
START_TEST(samples_are_no_thinner_than_the_closed_hand)
{
    enum { COUNT = 30 };
    static tb_grasp_pose poses[COUNT];
    static const char STOPPED[] =
        "<mujoco><default><joint type='slide' damping='10'/></default><worldbody>"
        "<body name='palm'><geom type='box' size='0.02 0.06 0.01' pos='0 0 -0.02' mass='0.5'/>"
        "<body name='left'><joint name='a' axis='0 1 0' range='0.005 0.04'/>"
        "<geom type='box' size='0.01 0.004 0.02' pos='0 0.004 0.04' mass='0.05'/></body>"
        "<body name='right'><joint name='b' axis='0 1 0' range='-0.04 -0.005'/>"
        "<geom type='box' size='0.01 0.004 0.02' pos='0 -0.004 0.04' mass='0.05'/></body></body>"
        "</worldbody><actuator>"
        "<position name='one' joint='a' kp='1000' ctrlrange='0.005 0.04'/>"
        "<position name='two' joint='b' kp='1000' ctrlrange='-0.04 -0.005'/></actuator></mujoco>";
    static const char PLATE[] = /* 6 mm thin, 20 and 30 mm wide */
        "<mujoco><worldbody><body name='plate'><freejoint/>"
        "<geom type='box' size='0.01 0.003 0.015' mass='0.1'/></body></worldbody></mujoco>";
    tb_scene *scene = mjcf(STOPPED), *plate = mjcf(PLATE);
    tb_hand *hand = hand_of(scene);
    int32_t found = 0, thin = 0;
    TEST_NEAR(tb_hand_describe(hand)->opening, 0.08, 1e-3);
    TEST_NEAR(tb_hand_describe(hand)->least_opening, 0.01, 1e-3);
    tb_grasp_sampling s = tb_grasp_sampling_defaults();
    s.count = COUNT;
    for (int i = 0; i < 2; i++) {
        s.least_opening = i == 0 ? 0 : tb_hand_describe(hand)->least_opening;
        TEST_OK(tb_grasp_sample(plate, &s, poses, &found, &error), &error);
        ck_assert_int_gt(found, 0);
        thin = 0;
        for (int32_t k = 0; k < found; k++) {
            const tb_quaternion q = tb_q_load(poses[k].orientation);
            thin += fabs(tb_q_rotate(q, tb_v3(0, 1, 0)).y) > 0.9; /* across the thin side */
        }
        ck_assert_int_eq(thin > 0, i == 0);
    }
    s.least_opening = s.opening;
    ck_assert_int_eq(tb_grasp_sample(plate, &s, poses, &found, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "sampling.least_opening");
    tb_hand_destroy(hand);
    tb_scene_destroy(scene);
    tb_scene_destroy(plate);
}
END_TEST

START_TEST(profiles_are_found_by_joints)
{
    tb_grasp_hand from = tb_grasp_defaults().hand;
    tb_scene *scene = jaw(TWO_SERVOS), *block = mjcf(BLOCK);
    tb_hand *hand = NULL;
    int32_t count = 0;
    while (tb_hand_profile_name(count) != NULL) count++;
    ck_assert_int_eq(count, 8);
    ck_assert_str_eq(tb_hand_profile_match(scene), "panda");
    ck_assert_ptr_null(tb_hand_profile_match(block));
    from.scene = scene;
    from.profile = "panda";
    TEST_OK(tb_hand_create(&from, &hand, &error), &error);
    const tb_hand_info *info = tb_hand_describe(hand);
    ck_assert_str_eq(info->profile, "panda");
    ck_assert_str_eq(info->base, "palm");
    TEST_NEAR(info->tool_position[2], 0.045, 1e-12);
    TEST_NEAR(info->axis[1], 1, 1e-3);
    tb_hand_destroy(hand);
    /* a tool of the caller's is in the profile's frame */
    from.tool_position[2] = -0.01;
    TEST_OK(tb_hand_create(&from, &hand, &error), &error);
    TEST_NEAR(tb_hand_describe(hand)->tool_position[2], 0.035, 1e-12);
    tb_hand_destroy(hand);
    from.profile = "shadow";
    ck_assert_int_eq(tb_hand_create(&from, &hand, &error), TB_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "hand.profile");
    from.profile = "claw";
    ck_assert_int_eq(tb_hand_create(&from, &hand, &error), TB_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "panda, robotiq_2f85"));
    tb_scene_destroy(scene);
    tb_scene_destroy(block);
}
END_TEST

/* ---- reasons ---- */

enum { MOST = 4 };

typedef struct kept {
    tb_grasp_verdict verdict;
    tb_grasp_reason reason;
    char hand_body[64], other_body[64], text[TB_GRASP_TEXT_SIZE];
    int32_t uncertified;
    int64_t steps;
    double success;
} kept;

static void copy_name(char to[64], const char *from)
{
    snprintf(to, 64, "%s", from != NULL ? from : "");
}

/* Plays the poses with the jaw on an object. */
static void play_on(const char *object, tb_grasp_request *r, const tb_grasp_pose *poses,
                    int32_t count, kept *results)
{
    tb_scene *hand = jaw(TWO_SERVOS), *block = mjcf(object);
    tb_grasp_job *job = NULL;
    bool finished = false;
    r->hand.scene = hand;
    r->hand.profile = "panda";
    r->object.scene = block;
    r->poses = poses;
    r->number_of_poses = count;
    r->step.threads = 1;
    TEST_OK(tb_grasp_job_create(r, &job, &error), &error);
    check_control(tb_grasp_job_hand(job), "two", -0.04, 0, TB_CONTROL_MOTION);
    while (!finished) TEST_OK(tb_grasp_job_advance(job, 10000000, &finished, &error), &error);
    for (const tb_grasp_result *g; (g = tb_grasp_job_next(job)) != NULL;) {
        kept *k = &results[g->index];
        k->verdict = g->trials[0].verdict;
        k->reason = g->trials[0].reason;
        k->uncertified = g->uncertified;
        k->steps = g->trials[0].steps;
        k->success = g->success;
        copy_name(k->hand_body, k->reason.hand_body);
        copy_name(k->other_body, k->reason.other_body);
        tb_grasp_explain(&g->trials[0], k->text, sizeof k->text);
    }
    tb_grasp_job_destroy(job);
    tb_scene_destroy(hand);
    tb_scene_destroy(block);
}

static void play(tb_grasp_request *r, const tb_grasp_pose *poses, int32_t count, kept *results)
{
    play_on(BLOCK, r, poses, count, results);
}

/* The tool frame upside down, at this place in the block's frame. */
static tb_grasp_pose above(double x, double y, double z)
{
    tb_grasp_pose pose = tb_grasp_pose_defaults();
    pose.position[0] = x;
    pose.position[1] = y;
    pose.position[2] = z;
    pose.orientation[0] = 0;
    pose.orientation[1] = 1;
    return pose;
}

START_TEST(every_verdict_has_its_reason)
{
    tb_grasp_pose poses[MOST] = {above(0, 0, 0.01), above(0, 0.03, 0.01), above(0, 0, -0.03),
                                 above(0, 0, 0.01)};
    tb_grasp_request r = tb_grasp_defaults();
    kept k[MOST] = {0};
    poses[3].force =
        1.2; /* N: friction carries 2 N at most, the block weighs 1 N; then it is shaken */
    tb_grasp_shake shake = tb_grasp_shake_defaults();
    shake.amplitude = 0.05;
    shake.frequency = 5;
    r.protocol.shakes = &shake;
    r.protocol.number_of_shakes = 1;
    play(&r, poses, MOST, k);
    ck_assert_msg(k[0].verdict == TB_GRASP_HELD, "%s", k[0].text);
    ck_assert_int_eq(k[0].reason.stage, TB_GRASP_HOLD);

    /* a finger inside the block: 2 cm of way in its 4 cm, the block's face at 2 cm */
    ck_assert_msg(k[1].verdict == TB_GRASP_COLLIDED, "%s", k[1].text);
    ck_assert_str_eq(k[1].other_body, "block");
    ck_assert_str_eq(k[1].hand_body, "left");
    ck_assert_int_eq(k[1].reason.stage, TB_GRASP_APPROACH);
    ck_assert(k[1].reason.depth > 1e-3 && k[1].reason.depth < 0.04);
    TEST_NEAR(k[1].reason.position[1], 0.03, 1e-3);
    ck_assert_ptr_nonnull(strstr(k[1].text, "mm inside 'block'"));

    /* the fingers below the table's height */
    ck_assert_msg(k[2].verdict == TB_GRASP_COLLIDED, "%s", k[2].text);
    ck_assert_str_eq(k[2].other_body, "table");
    TEST_NEAR(k[2].reason.position[2], -0.03, 1e-3);

    /* the weak grasp loses it in a shake, by a finger's contact with the block */
    ck_assert_msg(k[3].verdict == TB_GRASP_DROPPED || k[3].verdict == TB_GRASP_SLIPPED, "%s",
                  k[3].text);
    ck_assert(strcmp(k[3].hand_body, "left") == 0 || strcmp(k[3].hand_body, "right") == 0);
    ck_assert_str_eq(k[3].other_body, "block");
    ck_assert(k[3].reason.slide_time > 0 && k[3].reason.slide_time <= k[3].reason.time);
    ck_assert(k[3].reason.margin >= 0 && k[3].reason.margin <= 1);
    ck_assert_ptr_nonnull(strstr(k[3].text, "the contact of '"));
    TEST_NEAR(k[3].reason.grip, 2.4, 0.1);
    TEST_NEAR(k[3].reason.press, 0, 0.1);
    TEST_NEAR(k[3].reason.lean, 0, 1e-3);
    ck_assert_ptr_nonnull(strstr(k[3].text, "grip of 2.4 N on 0.1 kg"));
}
END_TEST

/* Fingers that close on the leaning sides of a wedge press it on the table and slide off. */
START_TEST(the_grip_tells_how_far_faces_lean)
{
    static const char WEDGE[] =
        "<mujoco><asset><mesh name='w' vertex='-.03 -.02 -.03 -.03 .02 -.03 -.03 0 .03 "
        ".03 -.02 -.03 .03 .02 -.03 .03 0 .03'/></asset><worldbody><body name='wedge'><freejoint/>"
        "<geom type='mesh' mesh='w' mass='.1'/></body></worldbody></mujoco>";
    const tb_grasp_pose pose = above(0, 0, 0.02);
    tb_grasp_request r = tb_grasp_defaults();
    kept k[1] = {0};
    r.object.friction = 0.2; /* the sides lean by 1 : 3 */
    play_on(WEDGE, &r, &pose, 1, k);
    ck_assert_msg(k[0].verdict == TB_GRASP_DROPPED, "%s", k[0].text);
    TEST_NEAR(k[0].reason.lean, atan(1.0 / 3), 1e-3);
    /* each face pushes down by its force times sin(lean), and friction holds back no more than mu
     * cos(lean) of it */
    const double grip = k[0].reason.grip, lean = k[0].reason.lean;
    ck_assert_msg(grip > 1, "grip %g N", grip);
    ck_assert(k[0].reason.press > grip * (sin(lean) - 0.2 * cos(lean)) - 1e-3);
    ck_assert(k[0].reason.press < grip * (sin(lean) + 0.2 * cos(lean)) + 1e-3);
    ck_assert_ptr_nonnull(strstr(k[0].text, "pressed on the table"));
    ck_assert_ptr_nonnull(strstr(k[0].text, "lean by 18 degrees"));
}
END_TEST

/* Two sweeps a step do not reach 1e-13: the trial has no verdict, and the fraction leaves it
 * out. */
START_TEST(a_step_above_the_tolerance_costs_the_verdict)
{
    const tb_grasp_pose pose = above(0, 0, 0.01);
    tb_grasp_request r = tb_grasp_defaults();
    kept k[1] = {0};
    r.step.solve.solver = "jor";
    r.step.solve.maximum_iterations = 2;
    r.step.solve.tolerance = 1e-13;
    play(&r, &pose, 1, k);
    ck_assert_msg(k[0].verdict == TB_GRASP_UNCERTIFIED, "%s", k[0].text);
    ck_assert_int_eq(k[0].uncertified, 1);
    ck_assert(k[0].success == 0);
    ck_assert(k[0].reason.residual > 1e-13);
    /* the trial does not go on to its end, 0.5 s or more of 2 ms, without a step that converges */
    ck_assert_ptr_nonnull(strstr(k[0].text, "ended after 20 such steps"));
    ck_assert_int_eq((int)k[0].reason.apparent, (int)TB_GRASP_UNCERTIFIED);
    ck_assert_int_lt((int)k[0].steps, 100);
    ck_assert_ptr_nonnull(strstr(k[0].text, "no verdict"));
    /* a pose that collides needs no step to be certain */
    const tb_grasp_pose inside = above(0, 0.03, 0.01);
    play(&r, &inside, 1, k);
    ck_assert_msg(k[0].verdict == TB_GRASP_COLLIDED, "%s", k[0].text);
    ck_assert_int_eq(k[0].uncertified, 0);
}
END_TEST

/* Samples for a hand keep it above the table. */
START_TEST(samples_for_a_hand_stay_above_the_table)
{
    enum { COUNT = 40 };
    static tb_grasp_pose poses[COUNT];
    tb_grasp_hand from = tb_grasp_defaults().hand;
    tb_scene *scene = jaw(TWO_SERVOS), *block = mjcf(BLOCK);
    tb_hand *hand = NULL;
    int32_t found = 0;
    from.scene = scene;
    from.profile = "panda";
    TEST_OK(tb_hand_create(&from, &hand, &error), &error);
    tb_grasp_sampling s = tb_grasp_sampling_defaults();
    s.count = COUNT;
    s.hand = hand;
    TEST_OK(tb_grasp_sample(block, &s, poses, &found, &error), &error);
    ck_assert_int_eq(found, COUNT);
    for (int i = 0; i < COUNT; i++)
        for (int32_t k = 0; k < tb_hand_number_of_shapes(hand); k++) {
            const tb_quaternion q = tb_q_load(poses[i].orientation);
            double down[3];
            tb_v3_store(down, tb_q_rotate(tb_q_conjugate(q), tb_v3(0, 0, -1)));
            for (int closed = 0; closed < 2; closed++)
                ck_assert(poses[i].position[2] - tb_hand_support(hand, k, closed != 0, down) >=
                          -0.03 - 1e-9);
        }
    tb_hand_destroy(hand);
    tb_scene_destroy(scene);
    tb_scene_destroy(block);
}
END_TEST

TEST_MAIN(the_end_that_moves_the_fingertips_apart_opens, bars_of_a_linkage_are_no_fingertips,
          hands_that_close_from_one_side_are_warned_of, hands_that_dry_friction_holds_are_warned_of,
          hands_whose_links_block_each_other_are_warned_of, overlaps_are_those_of_the_open_hand,
          samples_are_no_thinner_than_the_closed_hand, profiles_are_found_by_joints,
          every_verdict_has_its_reason, the_grip_tells_how_far_faces_lean,
          a_step_above_the_tolerance_costs_the_verdict, samples_for_a_hand_stay_above_the_table)
