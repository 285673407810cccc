/* One trial of a grasp, played again to be looked at: the same steps as in its job, since no result
 * depends on other worlds or on how steps are divided. A dropped object is followed to the end of
 * the protocol, past the step at which the job's trial ends. */
#include "base/error.h"
#include "grasp/grasp.h"
#include "grasp/replay.h"

typedef struct replay {
    tb_grasp_plan plan;
    grasp_world world;
    tb_stepper *stepper;
    int64_t every; /* steps between two shown states */
    tb_grasp_show *show;
    void *context;
} replay;

static tb_status show(const replay *r, tb_error *error)
{
    const double time = (double)r->world.step * r->plan.dt;
    return r->show(r->context, r->world.state, time, &r->world.steps[0], error);
}

/* A step that nothing judges any more. */
static tb_status fall_on(replay *r, tb_error *error)
{
    grasp_world *world = &r->world;
    grasp_world_plan(world, 1);
    const tb_status status =
        tb_step_courses(r->stepper, &world->state, &world->course, 1, NULL, error);
    world->step++;
    return status;
}

static tb_status play(replay *r, tb_error *error)
{
    const int64_t end = r->plan.phases.end;
    bool done = false;
    tb_status status = show(r, error);
    while (status == TB_OK && r->world.step < end) {
        if (done && r->world.trial.verdict != TB_GRASP_DROPPED) break;
        status =
            done ? fall_on(r, error) : grasp_world_play(&r->world, r->stepper, 1, &done, error);
        const bool last = r->world.step == end || (done && r->world.step % r->every == 0);
        if (status == TB_OK && (last || r->world.step % r->every == 0)) status = show(r, error);
    }
    return status;
}

tb_status tb_grasp_replay(const tb_grasp_request *request, int32_t copy, double interval,
                          tb_grasp_show *show_state, void *context, tb_model **model,
                          tb_error *error)
{
    replay r = {.show = show_state, .context = context};
    *model = NULL;
    tb_status status = grasp_check(request, error);
    if (status == TB_OK && request->number_of_poses != 1)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "poses", "a replay has one pose");
    if (status == TB_OK && (copy < 0 || copy >= request->perturbation.count))
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "copy", "copy is %d, expected 0 to %d",
                               (int)copy, (int)request->perturbation.count - 1);
    if (status != TB_OK) return status;

    status = grasp_plan_make(request, &r.plan, error);
    if (status == TB_OK) {
        r.every = (int64_t)(interval / r.plan.dt + 0.5);
        if (r.every < 1) r.every = 1;
        status = grasp_world_take(&r.plan, &r.world, error);
    }
    if (status == TB_OK) status = tb_stepper_create(&r.plan.step, &r.stepper, error);
    if (status == TB_OK) status = grasp_world_begin(&r.world, 0, copy, error);
    if (status == TB_OK) status = play(&r, error);

    grasp_world_give(&r.world);
    tb_stepper_destroy(r.stepper);
    if (status == TB_OK) {
        *model = r.plan.model;
        r.plan.model = NULL;
    }
    grasp_plan_free(&r.plan);
    return status;
}
