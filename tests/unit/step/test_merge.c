/* Merging of redundant contact points: which points become one, and the exactness of the answer that the
 * fewer points give to the problem of all. */
#include "test_util.h"

#include <math.h>
#include <unistd.h>

#include "step/stages/stages.h"

enum { MOST_STEPS = 2000, MOST_POINTS = 64, MOST_ROWS = 256 };

static const double SHARE = 3e-3; /* of the radius of gyration: 1e-4 m of the mug */

static tb_model *model_of(const char *text)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "scene.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static tb_stepper *stepper_of(double merge, double tolerance, tb_precision precision)
{
    tb_error error = {0};
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.contact_merge = merge;
    options.precision = precision;
    options.solve.tolerance = tolerance;
    options.solve.maximum_iterations = 5000;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

static tb_state *state_of(const tb_model *model)
{
    tb_error error = {0};
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

/* Number of contacts after the given number of steps. */
static int32_t contacts_of(const char *text, double merge, int32_t steps)
{
    tb_error error = {0};
    tb_model *model = model_of(text);
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of(merge, 1e-9, TB_DOUBLE);
    TEST_OK(tb_step(stepper, state, steps, NULL, &error), &error);
    const int32_t contacts = tb_state_number_of_contacts(state);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return contacts;
}

/* ---- which points ---- */

/* A slab of two halves: 8 corners, of which 4 are at the seam in pairs. `more` belongs to the second. */
static void write_slab(char *text, size_t size, const char *more, double gap)
{
    snprintf(text, size,
             "<mujoco><option timestep='0.002'/><worldbody><geom type='plane' size='1 1 1'/>"
             "<body pos='0 0 0.02'><freejoint/>"
             "<geom type='box' size='0.05 0.04 0.02' pos='-0.05 0 0' mass='1'/>"
             "<geom type='box' size='0.05 0.04 0.02' pos='%.9f 0 0' mass='1' %s/>"
             "</body></worldbody></mujoco>",
             0.05 + gap, more);
}

START_TEST(points_of_a_seam_become_one_and_corners_stay)
{
    char text[1024];
    write_slab(text, sizeof text, "", 0);
    ck_assert_int_eq(contacts_of(text, 0, 50), 8);
    ck_assert_int_eq(contacts_of(text, SHARE, 50), 6);
    /* within the distance, and beyond it: the radius of gyration is about 0.045 m */
    write_slab(text, sizeof text, "", 1e-4);
    ck_assert_int_eq(contacts_of(text, SHARE, 50), 6);
    write_slab(text, sizeof text, "", 3e-4);
    ck_assert_int_eq(contacts_of(text, SHARE, 50), 8);
}
END_TEST

START_TEST(points_of_other_surfaces_and_normals_stay)
{
    char text[1024];
    write_slab(text, sizeof text, "friction='1.5 0 0'", 0); /* above the plane's own */
    ck_assert_int_eq(contacts_of(text, SHARE, 50), 8);
    /* a ball in the corner of a wall and the floor, both of the world: its points have other normals;
     * and two plates of different bodies that end at the same seam */
    static const char CORNER[] = "<mujoco><worldbody><geom type='plane' size='1 1 1'/>"
                                 "<geom type='plane' size='1 1 1' pos='0.001 0 0' euler='0 -90 0'/>"
                                 "<body pos='-0.0001 0 0.001'><freejoint/><geom type='sphere' "
                                 "size='0.001' mass='0.1'/></body>"
                                 "</worldbody></mujoco>";
    ck_assert_int_eq(contacts_of(CORNER, 0.1, 1), contacts_of(CORNER, 0, 1));
    static const char PLATES[] = "<mujoco><worldbody><geom type='plane' size='1 1 1'/>"
                                 "<body pos='-0.05 0 0.02'><freejoint/><geom type='box' size='0.05 "
                                 "0.04 0.02' mass='1'/></body>"
                                 "<body pos='0.0501 0 0.02'><freejoint/><geom type='box' "
                                 "size='0.05 0.04 0.02' mass='1'/></body>"
                                 "</worldbody></mujoco>";
    ck_assert_int_eq(contacts_of(PLATES, SHARE, 20), contacts_of(PLATES, 0, 20));
}
END_TEST

/* Eleven pins in a row, each nearer to the next than the distance, four distances long: chains of near
 * points do not collapse, and the ends of the row keep a point within the distance. */
START_TEST(a_row_of_near_points_keeps_its_ends)
{
    char text[4096];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "<mujoco><option timestep='0.002'/><worldbody><geom type='plane' size='1 1 1'/>"
        "<body pos='0 0 0.05'><freejoint/><geom type='box' size='0.05 0.05 0.02' mass='1'/>"
        "<geom type='sphere' size='0.005' pos='-0.04 0.03 -0.045' mass='0'/>"
        "<geom type='sphere' size='0.005' pos='-0.04 -0.03 -0.045' mass='0'/>");
    for (int i = 0; i < 11; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "<geom type='sphere' size='0.005' pos='%.6f 0 -0.045' mass='0'/>",
                               0.04 + 4e-5 * i);
    snprintf(text + at, sizeof text - at, "</body></worldbody></mujoco>");
    tb_error error = {0};
    tb_model *model = model_of(text);
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of(SHARE, 1e-9, TB_DOUBLE);
    TEST_OK(tb_step(stepper, state, 20, NULL, &error), &error);
    double first = 1, last = -1;
    int32_t row = 0;
    for (int32_t i = 0; i < tb_state_number_of_contacts(state); i++) {
        tb_contact_info c;
        TEST_OK(tb_state_contact(state, i, &c), NULL);
        if (c.position[0] < 0) continue;
        first = fmin(first, c.position[0]);
        last = fmax(last, c.position[0]);
        row++;
    }
    ck_assert_int_ge(row, 3);
    ck_assert_int_lt(row, 11);
    ck_assert_double_lt(first, 0.04 + 1.2e-4);
    ck_assert_double_gt(last, 0.04 + 4e-4 - 1.2e-4);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* ---- jaw and mug ---- */

static tb_model *jaw_and_mug(void)
{
    const char *build = getenv("TRIBO_BUILD");
    char folder[] = "/tmp/test_merge_XXXXXX", command[1024], path[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "'%s/tests/data/jaw_mug' %s > /dev/null",
             build ? build : "build", folder);
    ck_assert_msg(system(command) == 0, "%s failed", command);
    snprintf(path, sizeof path, "%s/jaw_mug.xml", folder);
    tb_error error = {0};
    tb_model *model = NULL;
    TEST_OK(tb_model_load(path, NULL, &model, &error), &error);
    remove(path);
    remove(folder);
    return model;
}

/* Closes for a second, lifts until two, and holds. */
static void command(tb_state *state, int32_t step)
{
    tb_error error = {0};
    const tb_model *m = tb_state_model(state);
    const double height = 0.2 * fmin(fmax(2e-3 * step - 1, 0), 1);
    TEST_OK(
        tb_state_set_control(state, tb_model_find(m, TB_HANDLE_ACTUATOR, "lift"), height, &error),
        &error);
    TEST_OK(
        tb_state_set_control(state, tb_model_find(m, TB_HANDLE_ACTUATOR, "close-1"), 20, &error),
        &error);
    TEST_OK(
        tb_state_set_control(state, tb_model_find(m, TB_HANDLE_ACTUATOR, "close+1"), 20, &error),
        &error);
}

/* The next step of the state as far as its solve, the state untouched. */
static void detect(tb_stepping *s, tb_state *state, const tb_step_options *options,
                   tb_workspace *workspace)
{
    tb_error error = {0};
    tb_certificate certificate;
    TEST_OK(tb_step_begin(s, state, options, workspace, &certificate, &error), &error);
    TEST_OK(tb_step_detect(s, &certificate, &error), &error);
}

/* Whether two blocks have the same rows. */
static bool same_block(const tb_world *a, int32_t i, const tb_world *b, int32_t k)
{
    const tb_block *x = &a->blocks[i], *y = &b->blocks[k];
    return x->width == y->width && x->rows == y->rows &&
           memcmp(a->c + x->row, b->c + y->row, (size_t)x->rows * sizeof *a->c) == 0 &&
           memcmp(a->values + x->value, b->values + y->value,
                  (size_t)x->rows * (size_t)x->width * sizeof *a->values) == 0;
}

/* The residual of the problem of all points at the answer that the merged points have, the points left
 * out bearing nothing. */
static double residual_of_all(const tb_world *all, const tb_world *merged, const tb_real *lambda,
                              tb_arena *scratch)
{
    tb_real spread[MOST_ROWS] = {0};
    ck_assert_int_le(all->number_of_rows, MOST_ROWS);
    for (int32_t k = 0; k < merged->number_of_blocks; k++) {
        int32_t i = 0;
        while (i < all->number_of_blocks && !same_block(all, i, merged, k)) i++;
        ck_assert_int_lt(i, all->number_of_blocks);
        for (int32_t r = 0; r < merged->blocks[k].rows; r++)
            spread[all->blocks[i].row + r] = lambda[merged->blocks[k].row + r];
    }
    const tb_problem problem = tb_world_problem(all);
    tb_residuals residuals;
    TEST_OK(tb_problem_residuals(&problem, spread, scratch, NULL, &residuals), NULL);
    return residuals.natural;
}

/* Every step of a whole grasp: the merged answer, within 1e-9 of its own problem, as an answer to the
 * problem of all points. It is one but where the pads strike: there the gaps of merged points differ. */
START_TEST(the_answer_of_merged_points_solves_the_problem_of_all)
{
    tb_error error = {0};
    tb_model *model = jaw_and_mug();
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_of(SHARE, 1e-9, TB_DOUBLE);
    tb_workspace of_all = {.threads = 1}, of_merged = {.threads = 1}, scratch = {.threads = 1};
    tb_step_options options = tb_stepper_options(stepper), unmerged = options;
    unmerged.contact_merge = 0;
    double worst = 0;
    int32_t all_contacts = 0, merged_contacts = 0, inexact = 0;
    for (int32_t step = 0; step < MOST_STEPS; step++) {
        tb_stepping all, merged;
        command(state, step);
        detect(&merged, state, &options, &of_merged);
        TEST_OK(tb_step_solve(&merged, &error), &error);
        detect(&all, state, &unmerged, &of_all);
        tb_arena_reset(&scratch.arena);
        const double residual =
            residual_of_all(&all.world, &merged.world, merged.solution.lambda, &scratch.arena);
        all_contacts += all.world.number_of_contacts;
        merged_contacts += merged.world.number_of_contacts;
        worst = fmax(worst, residual);
        inexact += residual > 2e-9;
        TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
    }
    printf(
        "contacts a step %.2f, merged %.2f; residual of all: worst %.3g, above 2e-9 in %d steps\n",
        (double)all_contacts / MOST_STEPS, (double)merged_contacts / MOST_STEPS, worst, inexact);
    ck_assert_int_lt(merged_contacts, all_contacts * 6 / 10);
    ck_assert_int_le(inexact, 2);
    ck_assert_double_le(worst, 1e-2);
    tb_arena_destroy(&of_all.arena);
    tb_arena_destroy(&of_merged.arena);
    tb_arena_destroy(&scratch.arena);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

/* The grasp with and without merging: the mug is held at the same height, and slips in neither. */
START_TEST(a_held_mug_is_held_the_same)
{
    tb_error error = {0};
    tb_model *model = jaw_and_mug();
    const int32_t mug = tb_model_find(model, TB_HANDLE_BODY, "mug"),
                  palm = tb_model_find(model, TB_HANDLE_BODY, "palm");
    double height[2], slip[2] = {0, 0};
    int32_t contacts[2];
    for (int k = 0; k < 2; k++) {
        tb_state *state = state_of(model);
        tb_stepper *stepper = stepper_of(k ? SHARE : 0, 1e-12, TB_DOUBLE);
        for (int32_t step = 0; step < MOST_STEPS; step++) {
            command(state, step);
            TEST_OK(tb_step(stepper, state, 1, NULL, &error), &error);
            tb_body_motion m, p;
            TEST_OK(tb_state_body_motion(state, mug, &m), NULL);
            TEST_OK(tb_state_body_motion(state, palm, &p), NULL);
            height[k] = m.position[2];
            if (step >= 1500)
                for (int i = 0; i < 3; i++)
                    slip[k] = fmax(slip[k], fabs(m.linear_velocity[i] - p.linear_velocity[i]));
        }
        contacts[k] = tb_state_number_of_contacts(state);
        tb_stepper_destroy(stepper);
        tb_state_destroy(state);
    }
    printf("contacts %d, merged %d; heights differ by %.3g m; slip %.3g and %.3g m/s\n",
           contacts[0], contacts[1], fabs(height[0] - height[1]), slip[0], slip[1]);
    ck_assert_int_lt(contacts[1], contacts[0]);
    ck_assert_double_le(fabs(height[0] - height[1]), 1e-6);
    ck_assert_double_le(slip[0], 1e-12);
    ck_assert_double_le(slip[1], 1e-12);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(points_of_a_seam_become_one_and_corners_stay, points_of_other_surfaces_and_normals_stay,
          a_row_of_near_points_keeps_its_ends,
          the_answer_of_merged_points_solves_the_problem_of_all, a_held_mug_is_held_the_same)
