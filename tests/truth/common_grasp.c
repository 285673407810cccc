/* Builds jaws, pads and objects for the truth cases about grasps. See common_grasp.h. */
#include "common_grasp.h"

static void add_finger(tb_scene *scene, tb_handle palm, int side, double force, double mu)
{
    tb_error error = {0};
    tb_body_def body = tb_body_defaults();
    tb_joint_def joint = tb_joint_defaults();
    tb_shape_def pad = tb_shape_defaults();
    tb_actuator_def motor = tb_actuator_defaults();
    const char *name = side > 0 ? "left" : "right";
    body.name = joint.name = motor.name = name;
    body.parent = palm;
    body.position[1] = side * JAW_OPENING / 2;
    TEST_OK(tb_scene_add_body(scene, &body, &joint.body, &error), &error);
    joint.type = TB_JOINT_SLIDE;
    joint.axis[0] = joint.axis[2] = 0;
    joint.axis[1] = -side;
    joint.limited = true;
    joint.lower = 0;
    joint.upper = JAW_OPENING / 2;
    joint.damping = 20;
    TEST_OK(tb_scene_add_joint(scene, &joint, &motor.target, &error), &error);
    pad.body = joint.body;
    pad.type = TB_SHAPE_BOX;
    pad.size[0] = 0.02;
    pad.size[1] = 0.005;
    pad.size[2] = 0.02;
    pad.position[1] = side * 0.005;
    pad.mass = 0.05;
    pad.surface.friction = mu;
    TEST_OK(tb_scene_add_shape(scene, &pad, NULL, &error), &error);
    motor.control_limited = true;
    motor.control_lower = 0;
    motor.control_upper = force;
    TEST_OK(tb_scene_add_actuator(scene, &motor, NULL, &error), &error);
}

tb_scene *grasp_jaw(double force, double mu)
{
    tb_error error = {0};
    tb_scene *scene;
    tb_handle palm;
    tb_body_def body = tb_body_defaults();
    TEST_OK(tb_scene_create(NULL, &scene, &error), &error);
    body.name = "palm";
    TEST_OK(tb_scene_add_body(scene, &body, &palm, &error), &error);
    add_finger(scene, palm, 1, force, mu);
    add_finger(scene, palm, -1, force, mu);
    return scene;
}

tb_scene *grasp_object(tb_shape_type type, const double size[3], double mass, double mu)
{
    tb_error error = {0};
    tb_scene *scene;
    tb_body_def body = tb_body_defaults();
    tb_joint_def joint = tb_joint_defaults();
    tb_shape_def shape = tb_shape_defaults();
    TEST_OK(tb_scene_create(NULL, &scene, &error), &error);
    body.name = "thing";
    TEST_OK(tb_scene_add_body(scene, &body, &joint.body, &error), &error);
    joint.type = TB_JOINT_FREE;
    TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
    shape.body = joint.body;
    shape.type = type;
    memcpy(shape.size, size, sizeof shape.size);
    shape.mass = mass;
    shape.surface.friction = mu;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    return scene;
}

tb_grasp_request grasp_request(const tb_scene *hand, const tb_scene *object,
                               const tb_grasp_pose *poses, int32_t number_of_poses)
{
    tb_grasp_request request = tb_grasp_defaults();
    request.protocol.close_seconds = 0.4;
    request.hand.scene = hand;
    request.object.scene = object;
    request.poses = poses;
    request.number_of_poses = number_of_poses;
    request.step.threads = 1;
    return request;
}

void grasp_play(const tb_grasp_request *request, int64_t budget,
                void (*take)(void *context, const tb_grasp_result *result), void *context)
{
    tb_error error = {0};
    tb_grasp_job *job;
    bool finished = false;
    int32_t results = 0;
    TEST_OK(tb_grasp_job_create(request, &job, &error), &error);
    while (!finished) {
        TEST_OK(tb_grasp_job_advance(job, budget, &finished, &error), &error);
        for (const tb_grasp_result *r; (r = tb_grasp_job_next(job)) != NULL; results++) {
            ck_assert_int_eq(r->index, results);
            take(context, r);
        }
    }
    ck_assert_int_eq(results, request->number_of_poses);
    tb_grasp_job_destroy(job);
}
