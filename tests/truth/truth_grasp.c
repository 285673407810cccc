/* A held object stays held: after a second of settling its velocity is zero, to the last bits.
 *
 * Source: Coulomb's law. A body held by n pads of force F each needs mu n F >= m g and then has
 * velocity zero, not a creep of micrometres per second as with regularised friction. The
 * jaw-and-mug scene is the one on which other simulators are timed: 0.3 kg, 20 N fingers,
 * mu 0.6. */
#include "common_truth.h"

/* A finger of `side` -1 or +1: a pad box on a slide along x, pushed inward by a motor. */
static tb_handle finger(truth *t, double side, double gap, tb_surface surface)
{
    tb_error error;
    tb_handle body, slide;
    tb_body_def def = tb_body_defaults();
    def.position[0] = side * (gap + 0.01);
    def.position[2] = 0.2;
    TEST_OK(tb_scene_add_body(t->scene, &def, &body, &error), &error);
    tb_joint_def joint = tb_joint_defaults();
    joint.type = TB_JOINT_SLIDE;
    joint.body = body;
    joint.axis[0] = -side, joint.axis[1] = joint.axis[2] = 0;
    joint.damping = 20;
    TEST_OK(tb_scene_add_joint(t->scene, &joint, &slide, &error), &error);
    tb_shape_def pad = tb_shape_defaults();
    pad.type = TB_SHAPE_BOX;
    pad.body = body;
    pad.size[0] = 0.01, pad.size[1] = 0.012, pad.size[2] = 0.012;
    pad.mass = 0.05;
    pad.surface = surface;
    TEST_OK(tb_scene_add_shape(t->scene, &pad, NULL, &error), &error);
    tb_actuator_def motor = tb_actuator_defaults();
    motor.target = slide;
    TEST_OK(tb_scene_add_actuator(t->scene, &motor, NULL, &error), &error);
    return body;
}

START_TEST(held_capsule_does_not_creep)
{
    const double forces[4] = {12, 20, 40, 60};
    double worst = 0, dropped = 0;
    for (int k = 0; k < 4; k++) {
        truth t = truth_begin(GRAVITY, 2e-3);
        const tb_surface s = truth_surface(0.7, 0);
        const double lying[4] = {sqrt(0.5), sqrt(0.5), 0, 0}; /* along y */
        truth_body(&t, "capsule", TB_SHAPE_CAPSULE, (const double[3]){0.015, 0.03}, 0.045,
                   (const double[3]){0, 0, 0.2}, lying, s);
        finger(&t, -1, 0.0151, s);
        finger(&t, +1, 0.0151, s);
        truth_start(&t);
        tb_error error;
        for (int a = 0; a < 2; a++)
            TEST_OK(tb_state_set_control(t.state, a, forces[k], &error), &error);
        truth_run(&t, 500);
        for (int i = 0; i < 500; i++) {
            truth_run(&t, 1);
            const tb_body_motion m = truth_motion(&t, "capsule");
            for (int n = 0; n < 3; n++) {
                worst = fmax(worst, fabs(m.linear_velocity[n]));
                worst = fmax(worst, 0.015 * fabs(m.angular_velocity[n]));
            }
            dropped = fmax(dropped, fabs(m.position[2] - 0.2));
        }
        truth_end(&t);
    }
    TRUTH_CHECK("held capsule, 12 to 60 N: speed after 1 s, m/s", worst, 1e-12);
    TRUTH_CHECK("held capsule: way while it was gripped, m", dropped, 1e-3);
}
END_TEST

START_TEST(capsule_falls_where_friction_is_too_weak)
{
    truth t = truth_begin(GRAVITY, 2e-3);
    const tb_surface s = truth_surface(0.7, 0);
    const double lying[4] = {sqrt(0.5), sqrt(0.5), 0, 0};
    truth_body(&t, "capsule", TB_SHAPE_CAPSULE, (const double[3]){0.015, 0.03}, 0.045,
               (const double[3]){0, 0, 0.2}, lying, s);
    finger(&t, -1, 0.0151, s);
    finger(&t, +1, 0.0151, s);
    truth_start(&t);
    tb_error error;
    const double force = 0.9 * 0.045 * GRAVITY / (2 * 0.7);
    for (int a = 0; a < 2; a++) TEST_OK(tb_state_set_control(t.state, a, force, &error), &error);
    truth_run(&t, 500);
    TRUTH_CHECK("capsule gripped at 0.9 of what it needs: height left, m",
                truth_motion(&t, "capsule").position[2], 0.15);
    truth_end(&t);
}
END_TEST

/* Writes the scene by its generator into a folder of its own and loads it. */
static tb_model *load_jaw_mug(void)
{
    const char *build = getenv("TRIBO_BUILD");
    if (build == NULL) build = "build";
    char folder[] = "/tmp/truth_grasp_XXXXXX", command[1024], path[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "'%s/tests/data/jaw_mug' %s > /dev/null", build, folder);
    ck_assert_msg(system(command) == 0, "%s failed", command);
    snprintf(path, sizeof path, "%s/jaw_mug.xml", folder);
    tb_error error;
    tb_model *model = NULL;
    TEST_OK(tb_model_load(path, NULL, &model, &error), &error);
    remove(path);
    remove(folder);
    return model;
}

START_TEST(held_mug_does_not_creep)
{
    truth t;
    memset(&t, 0, sizeof t);
    t.model = load_jaw_mug();
    t.options = tb_step_defaults();
    t.options.solve.tolerance = 1e-12;
    t.options.solve.maximum_iterations = 5000;
    tb_error error;
    TEST_OK(tb_state_create(t.model, &t.state, &error), &error);
    TEST_OK(tb_stepper_create(&t.options, &t.stepper, &error), &error);

    /* close for a second, lift to 0.2 m within the next, settle for a second, then hold */
    const int32_t lift = tb_model_find(t.model, TB_HANDLE_ACTUATOR, "lift");
    const int32_t fingers[2] = {tb_model_find(t.model, TB_HANDLE_ACTUATOR, "close-1"),
                                tb_model_find(t.model, TB_HANDLE_ACTUATOR, "close+1")};
    for (int a = 0; a < 2; a++)
        TEST_OK(tb_state_set_control(t.state, fingers[a], 20, &error), &error);
    double worst = 0;
    for (int i = 0; i < 2000; i++) {
        const double time = 2e-3 * i;
        const double height = 0.2 * fmin(fmax(time - 1, 0), 1);
        TEST_OK(tb_state_set_control(t.state, lift, height, &error), &error);
        truth_run(&t, 1);
        if (time < 3) continue;
        /* the servo itself still creeps up by its time constant of 60 ms: against the palm, then */
        const tb_body_motion m = truth_motion(&t, "mug"), palm = truth_motion(&t, "palm");
        for (int n = 0; n < 3; n++)
            worst = fmax(worst, fabs(m.linear_velocity[n] - palm.linear_velocity[n]));
    }
    TRUTH_CHECK("held mug, 20 N: slip after 1 s of settling, m/s", worst, 1e-12);
    TRUTH_CHECK("held mug: height missing, m", 0.195 - truth_motion(&t, "mug").position[2], 0);
    truth_end(&t);
}
END_TEST

TEST_MAIN(held_capsule_does_not_creep, capsule_falls_where_friction_is_too_weak,
          held_mug_does_not_creep)
