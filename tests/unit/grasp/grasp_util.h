/* A jaw, a block, and jobs that try the jaw on the block, for the tests of grasps. */
#ifndef GRASP_UTIL_H
#define GRASP_UTIL_H

#include "grasp/grasp.h"
#include "test_util.h"

static tb_error error;

static inline tb_scene *mjcf(const char *text)
{
    tb_scene *scene = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), NULL, NULL, &scene, &error), &error);
    return scene;
}

/* A jaw whose base has joints of its own, like hands with an arm's last axes. */
static const char JAW[] =
    "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/>"
    "<body name='hand' pos='0.3 0.2 0.1'><joint name='x' type='slide' axis='1 0 0'/>"
    "<joint name='lift' type='slide' axis='0 0 1'/>"
    "<geom name='palm' type='box' size='0.02 0.06 0.01' pos='0 0 0.06' mass='0.5'/>"
    "<body name='left' pos='0 0.05 0'><joint name='left' type='slide' axis='0 -1 0'"
    " range='-0.02 0.05'/><geom type='box' size='0.02 0.005 0.02' pos='0 0.005 0' mass='0.05'/>"
    "</body><body name='right' pos='0 -0.05 0'><joint name='right' type='slide' axis='0 1 0'"
    " range='-0.02 0.05'/><geom type='box' size='0.02 0.005 0.02' pos='0 -0.005 0' mass='0.05'/>"
    "</body></body></worldbody><actuator><position name='lift' joint='lift' kp='1000'/>"
    "<motor name='left' joint='left' ctrlrange='0 10'/>"
    "<motor name='right' joint='right' ctrlrange='0 10'/></actuator></mujoco>";
static const char BLOCK[] =
    "<mujoco><worldbody><body name='block' pos='9 9 9'><freejoint/>"
    "<geom type='box' size='0.02 0.045 0.02' pos='0 0.001 0' mass='0.1'/></body>"
    "</worldbody></mujoco>";

static inline tb_grasp_request request_of(tb_scene *hand, tb_scene *object,
                                          const tb_grasp_pose *pose)
{
    tb_grasp_request r = tb_grasp_defaults();
    r.hand.scene = hand;
    r.object.scene = object;
    r.poses = pose;
    r.number_of_poses = 1;
    r.step.threads = 1;
    return r;
}

static inline void free_request(tb_grasp_request *r)
{
    tb_scene_destroy((tb_scene *)(uintptr_t)r->hand.scene);
    tb_scene_destroy((tb_scene *)(uintptr_t)r->object.scene);
}

static inline tb_grasp_pose pose_at(double x, double y, double z)
{
    tb_grasp_pose pose = tb_grasp_pose_defaults();
    pose.position[0] = x;
    pose.position[1] = y;
    pose.position[2] = z;
    return pose;
}

static inline void keep(void *context, const tb_grasp_result *result)
{
    *(tb_grasp_trial *)context = result->trials[0];
}

static inline void play(const tb_grasp_request *r, void (*take)(void *, const tb_grasp_result *),
                        void *context)
{
    tb_grasp_job *job;
    bool finished = false;
    memset(&error, 0, sizeof error);
    TEST_OK(tb_grasp_job_create(r, &job, &error), &error);
    while (!finished) {
        TEST_OK(tb_grasp_job_advance(job, 10000000, &finished, &error), &error);
        for (const tb_grasp_result *g; (g = tb_grasp_job_next(job)) != NULL;) take(context, g);
    }
    tb_grasp_job_destroy(job);
}

#endif
