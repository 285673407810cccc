/* Chooses the curves of `tribo run --plot` and collects their samples. See run_plot.h. */
#include "run/run_plot.h"

#include <stdio.h>
#include <string.h>

/* One panel for all joints of a type; none where the model has no such joint. */
static void add_joints(run_plot *p, const simulation *s, tb_joint_type type, const char *title,
                       const name_list *bodies, const name_list *joints)
{
    int32_t panel = -1;
    for (int32_t i = 0; i < joints->count; i++) {
        tb_joint_info info;
        if (tb_model_joint_info(s->model, i, &info) != TB_OK || info.type != type) continue;
        const bool height = type == TB_JOINT_FREE;
        const char *name = height ? bodies->names[info.body] : joints->names[i];
        if (panel < 0) panel = plot_add_panel(&p->plot, title, false, false);
        if (plot_add_series(&p->plot, panel, name) < 0) continue;
        p->sources[p->count++] =
            (run_plot_source){.height = height, .index = height ? info.body : info.coordinate};
    }
}

tb_status run_plot_begin(run_plot *p, const simulation *s, const char *path,
                         const name_list *bodies, const name_list *joints, tb_error *error)
{
    char title[160];
    const char *slash = strrchr(path, '/');
    snprintf(title, sizeof title, "%.80s, dt %g s", slash != NULL ? slash + 1 : path, s->dt);
    const tb_status status = plot_begin(&p->plot, title, "time (s)", error);
    if (status != TB_OK) return status;

    p->count = 0;
    add_joints(p, s, TB_JOINT_FREE, "height (m)", bodies, joints);
    add_joints(p, s, TB_JOINT_SLIDE, "slides (m)", bodies, joints);
    add_joints(p, s, TB_JOINT_HINGE, "hinges (rad)", bodies, joints);
    plot_add_series(&p->plot, plot_add_panel(&p->plot, "residual", true, true), "worst residual");
    return TB_OK;
}

void run_plot_sample(run_plot *p, const simulation *s)
{
    const tb_state *state = s->worlds[0];
    double values[PLOT_PANELS * PLOT_SERIES + 1];
    for (int32_t i = 0; i < p->count; i++) {
        const run_plot_source source = p->sources[i];
        tb_body_motion motion = {0};
        if (source.height) tb_state_body_motion(state, source.index, &motion);
        values[i] = source.height ? motion.position[2] : tb_state_q(state)[source.index];
    }
    values[p->count] = s->last.residual;
    plot_sample(&p->plot, tb_state_time(state), values);
}
