/* Shapes that overlap in the first pose: the pairs that the filters leave, their depths, whether
 * the joints part them, and each policy's result. */
#include "test_util.h"

#include "model/merge.h"
#include "model/model.h"

static tb_error error;

static tb_status load_as(const char *text, tb_overlap_policy policy, const char *keyframe,
                         tb_model **model)
{
    tb_scene *scene = NULL;
    memset(&error, 0, sizeof error);
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "t.xml", NULL, &scene, &error), &error);
    const tb_status status = tb_scene_compile_apart(scene, policy, keyframe, model, &error);
    tb_scene_destroy(scene);
    return status;
}

/* Overlaps of a model's reference pose with 64 samples; the caller frees them. */
static int32_t list(const tb_model *model, tb_overlap **overlaps)
{
    tb_state *state;
    int32_t count;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_state_overlaps(state, 1e-6, 64, overlaps, &count, &error), &error);
    tb_state_destroy(state);
    return count;
}

static bool warns(const tb_model *model, const char *words)
{
    for (int32_t i = 0; i < tb_model_count(model).warnings; i++)
        if (strstr(tb_model_warning(model, i), words) != NULL) return true;
    return false;
}

static bool collide(const tb_model *model, const char *a, const char *b)
{
    return tb_model_shapes_collide(model, tb_model_find(model, TB_HANDLE_SHAPE, a),
                                   tb_model_find(model, TB_HANDLE_SHAPE, b));
}

/* An arm of three links: the tip's ball (radius 0.05) lies 0.03 from the base's (radius 0.04) in
 * the first pose, about 0.06 deep. The elbow parts them when `range` is wide. `more` is added to
 * the world. */
#define BALL(name, x, r)                                                                           \
    "<geom name='" name "' type='sphere' size='" r "' pos='" x " 0 0' mass='1'/>"
#define ARM(range, more)                                                                           \
    "<mujoco><compiler angle='radian'/><worldbody><body name='base'>" BALL(                        \
        "base", "0",                                                                               \
        ".04") "<body name='upper'><joint name='shoulder' axis='0 0 1' range='-1 1' "              \
               "limited='true'/>" BALL("upper", "1",                                               \
                                       ".01") "<body name='tip' pos='1 0 0'><joint name='elbow' "  \
                                              "axis='0 0 1' limited='true' range='" range          \
                                              "'/>" BALL("tip", "-.97",                            \
                                                         ".05") "</body></body></body>" more       \
                                                                "</worldbody></mujoco>"

START_TEST(the_depth_is_that_of_the_narrow_phase)
{
    tb_model *model;
    tb_overlap *overlaps;
    TEST_OK(load_as(ARM("-1 1", ""), TB_OVERLAPS_KEEP, NULL, &model), &error);
    ck_assert_int_eq(list(model, &overlaps), 1);
    TEST_NEAR(overlaps[0].depth, 0.04 + 0.05 - 0.03, 1e-12);
    ck_assert_int_eq(overlaps[0].joints, 2);
    ck_assert(overlaps[0].linked);
    ck_assert(!overlaps[0].persists);
    TEST_NEAR(overlaps[0].least_depth, 0, 0);
    tb_overlaps_destroy(overlaps);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_pair_that_no_joint_parts_persists)
{
    tb_model *model;
    tb_overlap *overlaps;
    /* at +-0.04 rad the tip is off by 0.0388 m, so 0.09 - |(0.03, 0.0388)| = 0.0410 m are left */
    TEST_OK(load_as(ARM("-.04 .04", ""), TB_OVERLAPS_KEEP, NULL, &model), &error);
    ck_assert_int_eq(list(model, &overlaps), 1);
    ck_assert(overlaps[0].persists);
    const double x = 1 - 0.97 * cos(0.04), y = 0.97 * sin(0.04);
    TEST_NEAR(overlaps[0].least_depth, 0.09 - sqrt(x * x + y * y), 1e-12);
    tb_overlaps_destroy(overlaps);
    tb_model_destroy(model);
}
END_TEST

START_TEST(parents_and_welded_neighbours_are_not_listed)
{
    /* MuJoCo fuses welded bodies before it looks for parents: the lid is welded to the child of the
     * cart's child, so lid and child are one body, and the cart is the parent of both */
    static const char
        *const TEXT = "<mujoco><worldbody><body name='cart'><freejoint/>" BALL("cart", "0", ".1") "<body name='child'><joint axis='0 0 1'/>" BALL(
            "child", "0",
            ".1") "<body name='lid'>" BALL("lid", "0",
                                           ".1") "</body></body>"
                                                 "<body name='plate'>" BALL(
                                                     "plate", "0",
                                                     ".1") "</body></body></worldbody></mujoco>";
    tb_model *model;
    tb_overlap *overlaps;
    TEST_OK(load_as(TEXT, TB_OVERLAPS_KEEP, NULL, &model), &error);
    ck_assert_int_eq(list(model, &overlaps), 0);
    ck_assert_ptr_null(overlaps);
    ck_assert_int_eq(tb_model_count(model).warnings, 0);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_parent_welded_to_the_world_collides_and_is_listed)
{
    /* the static exception: as MuJoCo has it, a link collides with the world it hangs on */
    static const char *const TEXT = "<mujoco><worldbody><body name='base'>" BALL(
        "base", "0",
        ".1") "<body name='link'><joint axis='0 0 1'/>" BALL("link", "0",
                                                             ".1") "</body></body></worldbody></"
                                                                   "mujoco>";
    tb_model *model;
    tb_overlap *overlaps;
    TEST_OK(load_as(TEXT, TB_OVERLAPS_KEEP, NULL, &model), &error);
    ck_assert_int_eq(list(model, &overlaps), 1);
    ck_assert_int_eq(overlaps[0].joints, 1);
    ck_assert(overlaps[0].persists);
    ck_assert(warns(model, "'base' of 'base' and 'link' of 'link' overlap by 200 mm"));
    ck_assert(warns(model, "across a joint"));
    tb_overlaps_destroy(overlaps);
    tb_model_destroy(model);
}
END_TEST

START_TEST(without_the_parent_filter_neighbours_are_listed)
{
    static const char *const TEXT =
        "<mujoco><option><flag filterparent='disable'/></option><worldbody>"
        "<body name='cart'><freejoint/>" BALL(
            "cart", "0",
            ".1") "<body name='child'><joint axis='0 0 1'/>" BALL("child", "0",
                                                                  ".1") "</body></body></"
                                                                        "worldbody></mujoco>";
    tb_model *model;
    tb_overlap *overlaps;
    TEST_OK(load_as(TEXT, TB_OVERLAPS_KEEP, NULL, &model), &error);
    ck_assert_int_eq(list(model, &overlaps), 1);
    ck_assert(overlaps[0].linked);
    tb_overlaps_destroy(overlaps);
    tb_model_destroy(model);
}
END_TEST

START_TEST(ignore_leaves_links_out_and_keeps_a_sunken_mug)
{
    static const char *const TEXT =
        ARM("-1 1", "<body name='table' pos='3 0 -1'><geom name='table' type='box' size='1 1 1'/>"
                    "</body><body name='mug' pos='3 0 .099'><freejoint/>"
                    "<geom name='mug' type='box' size='.1 .1 .1'/></body>");
    tb_model *kept, *model;
    tb_overlap *overlaps;
    TEST_OK(load_as(TEXT, TB_OVERLAPS_KEEP, NULL, &kept), &error);
    TEST_OK(load_as(TEXT, TB_OVERLAPS_IGNORE, NULL, &model), &error);
    ck_assert(collide(kept, "base", "tip"));
    ck_assert(!collide(model, "base", "tip"));
    ck_assert(collide(model, "mug", "table"));
    ck_assert(collide(model, "mug", "tip"));
    ck_assert(warns(model, "'base' of 'base' and 'tip' of 'tip' overlap by 60 mm"));
    ck_assert(warns(model, "do not collide"));
    ck_assert(warns(model, "'table' of 'table' and 'mug' of 'mug' overlap by 1 mm"));
    ck_assert_int_eq(list(model, &overlaps), 1);
    TEST_NEAR(overlaps[0].depth, 1e-3, 1e-12);
    tb_overlaps_destroy(overlaps);

    /* another model, with bytes that give it back */
    tb_model *again;
    size_t size;
    ck_assert_str_ne(tb_model_sha256(kept), tb_model_sha256(model));
    const unsigned char *bytes = tb_model_bytes(model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_str_eq(tb_model_sha256(again), tb_model_sha256(model));
    ck_assert(!collide(again, "base", "tip"));
    tb_model_destroy(again);
    tb_model_destroy(model);
    tb_model_destroy(kept);
}
END_TEST

START_TEST(a_pair_left_out_stays_out_when_the_model_is_merged)
{
    tb_model *model, *merged;
    tb_scene *scene;
    const tb_scene_def def = tb_scene_defaults();
    tb_merge_def merge = tb_merge_defaults();
    merge.prefix = "p/";
    TEST_OK(load_as(ARM("-1 1", ""), TB_OVERLAPS_IGNORE, NULL, &model), &error);
    TEST_OK(tb_scene_create(&def, &scene, &error), &error);
    TEST_OK(tb_scene_add_model(scene, model, &merge, &error), &error);
    TEST_OK(tb_scene_compile(scene, &merged, &error), &error);
    ck_assert(!collide(merged, "p/base", "p/tip"));
    ck_assert(collide(model, "base", "upper") == collide(merged, "p/base", "p/upper"));
    tb_model_destroy(merged);
    tb_scene_destroy(scene);
    tb_model_destroy(model);
}
END_TEST

START_TEST(error_names_the_deepest_pair)
{
    tb_model *model;
    TEST_STATUS(load_as(ARM("-1 1", ""), TB_OVERLAPS_ERROR, NULL, &model), TB_FAILED_PRECONDITION,
                NULL);
    ck_assert_ptr_null(model);
    ck_assert_str_eq(error.field, "overlaps");
    ck_assert_ptr_nonnull(strstr(error.message, "'base' of 'base' and 'tip' of 'tip'"));
    ck_assert_ptr_nonnull(strstr(error.message, "60 mm"));
}
END_TEST

START_TEST(a_keyframe_can_be_the_first_pose)
{
    static const char *const TEXT =
        "<mujoco><compiler angle='radian'/><worldbody><body name='a'><joint name='x' type='slide' "
        "axis='1 0 0'/>" BALL(
            "a", "0",
            ".1") "</body><body name='b' pos='1 0 0'><joint name='y' "
                  "type='slide' axis='1 0 0'/>" BALL(
                      "b", "0",
                      ".1") "</body></worldbody>"
                            "<keyframe><key name='near' qpos='.9 0'/></keyframe></mujoco>";
    tb_model *model;
    TEST_OK(load_as(TEXT, TB_OVERLAPS_ERROR, NULL, &model), &error);
    tb_model_destroy(model);
    TEST_STATUS(load_as(TEXT, TB_OVERLAPS_ERROR, "near", &model), TB_FAILED_PRECONDITION, NULL);
    ck_assert_ptr_nonnull(strstr(error.message, "100 mm"));
    TEST_STATUS(load_as(TEXT, TB_OVERLAPS_ERROR, "0", &model), TB_FAILED_PRECONDITION, NULL);
    TEST_STATUS(load_as(TEXT, TB_OVERLAPS_KEEP, "far", &model), TB_NOT_FOUND, NULL);
    TEST_STATUS(load_as(TEXT, TB_OVERLAPS_KEEP, "1", &model), TB_NOT_FOUND, NULL);
}
END_TEST

START_TEST(mimicking_joints_follow_in_the_samples)
{
    /* both fingers move together, so that their pads keep their overlap wherever the grip goes */
    static const char *const TEXT =
        "<mujoco><worldbody><body name='hand'>"
        "<body name='left'><joint name='l' type='slide' axis='1 0 0' limited='true' range='0 "
        "1'/>" BALL("left", "0", ".1") "</body><body name='right'><joint name='r' type='slide' "
                                       "axis='1 0 0' limited='true' range='0 1'/>" BALL(
                                           "right", ".15",
                                           ".1") "</body></body>"
                                                 "</worldbody><equality><joint joint1='r' "
                                                 "joint2='l' polycoef='0 1 0 0 0'/></equality>"
                                                 "</mujoco>";
    tb_model *model;
    tb_overlap *overlaps;
    TEST_OK(load_as(TEXT, TB_OVERLAPS_KEEP, NULL, &model), &error);
    ck_assert_int_eq(list(model, &overlaps), 1);
    TEST_NEAR(overlaps[0].least_depth, 0.05, 1e-12);
    ck_assert(overlaps[0].persists);
    tb_overlaps_destroy(overlaps);
    tb_model_destroy(model);
}
END_TEST

START_TEST(many_pairs_are_counted)
{
    char text[6000];
    int n = snprintf(text, sizeof text, "<mujoco><worldbody>");
    for (int i = 0; i < 6; i++) /* 15 pairs, each a little less deep than the one before */
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "<body pos='0 0 %g'><freejoint/><geom type='sphere' size='.1'/></body>",
                      0.001 * i * i);
    snprintf(text + n, sizeof text - (size_t)n, "</worldbody></mujoco>");
    tb_model *model;
    TEST_OK(load_as(text, TB_OVERLAPS_KEEP, NULL, &model), &error);
    ck_assert_int_eq(tb_model_count(model).warnings, 9);
    ck_assert(warns(model, "number 0 of '' and number 1 of ''"));
    ck_assert(warns(model, "7 more pairs of shapes overlap less"));
    tb_model_destroy(model);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    tb_model *model;
    tb_state *state;
    tb_overlap *overlaps;
    int32_t count;
    TEST_OK(load_as(ARM("-1 1", ""), TB_OVERLAPS_KEEP, NULL, &model), &error);
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_STATUS(tb_state_overlaps(state, -1, 0, &overlaps, &count, &error), TB_INVALID_ARGUMENT,
                NULL);
    ck_assert_str_eq(error.field, "slop");
    TEST_STATUS(tb_state_overlaps(state, 0, -1, &overlaps, &count, &error), TB_INVALID_ARGUMENT,
                NULL);
    ck_assert_str_eq(error.field, "samples");
    tb_state_destroy(state);
    tb_model_destroy(model);
    TEST_STATUS(load_as(ARM("-1 1", ""), (tb_overlap_policy)7, NULL, &model), TB_INVALID_ARGUMENT,
                NULL);
    ck_assert_str_eq(error.field, "overlaps");
}
END_TEST

TEST_MAIN(the_depth_is_that_of_the_narrow_phase, a_pair_that_no_joint_parts_persists,
          parents_and_welded_neighbours_are_not_listed,
          a_parent_welded_to_the_world_collides_and_is_listed,
          without_the_parent_filter_neighbours_are_listed,
          ignore_leaves_links_out_and_keeps_a_sunken_mug,
          a_pair_left_out_stays_out_when_the_model_is_merged, error_names_the_deepest_pair,
          a_keyframe_can_be_the_first_pose, mimicking_joints_follow_in_the_samples,
          many_pairs_are_counted, what_makes_no_sense_is_refused)
