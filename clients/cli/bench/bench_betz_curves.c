/* Betz's figures 4.6 to 4.33 for one scene: X of bodies 17 and 209 over time, and theta of 17 (4.16), by
 * Lemke's pivoting in the place of PATH and by the thesis's sweeps at both of its relaxations. */
#include <math.h>
#include <stdio.h>

#include "bench/bench_betz.h"
#include "common/cli.h"
#include "common/interrupt.h"

enum { SWEEPS = 500, STEPS = 200, MOST_ROWS = 40, METHODS = 5, COLUMNS_OF_BODY = METHODS };
static const double CM = 100; /* of a metre */

static const struct {
    const char *column_17, *column_209, *solver;
    double omega;
    bool as_listed;
} METHOD[METHODS] = {{"lemke_17", "lemke_209", "lemke", 0, false},
                     {"serial_0.5_17", "serial_0.5_209", "prox_serial", 0.5, false},
                     {"serial_0.25_17", "serial_0.25_209", "prox_serial", 0.25, false},
                     {"cuda_0.5_17", "cuda_0.5_209", "prox_cuda", 0.5, false},
                     {"as_listed_17", "as_listed_209", "prox_cuda", 0.5, true}};

/* The angle (rad) of a body in the plane: about -y. */
static double angle_of(const tb_body_motion *m)
{
    return 2 * atan2(-m->orientation[2], m->orientation[0]);
}

/* One method's column of each body in all rows; theta of 17 by Lemke and by the sweeps at 0.5. */
static tb_status fill_method(const char *scene, int method, int32_t steps, thesis_table *t,
                             tb_error *error)
{
    betz_world w;
    tb_step_options step = betz_thesis_step(METHOD[method].solver, SWEEPS, METHOD[method].omega);
    step.solve.as_listed = METHOD[method].as_listed;
    tb_status status = betz_world_open(&w, scene, &step, error);
    const int32_t first = status == TB_OK ? tb_model_find(w.model, TB_HANDLE_BODY, "17") : 0;
    const int32_t last = status == TB_OK ? tb_model_find(w.model, TB_HANDLE_BODY, "209") : 0;
    if (status == TB_OK && (first < 0 || last < 0))
        status = cli_fail(error, TB_INVALID_ARGUMENT, "", 0, "--scene",
                          "%s has no bodies '17' and '209'", scene);
    for (int r = 0; r < t->rows && status == TB_OK; r++) {
        const int32_t from = (int32_t)((int64_t)steps * r / t->rows);
        const int32_t to = (int32_t)((int64_t)steps * (r + 1) / t->rows);
        tb_body_motion near, far;
        thesis_row *row = &t->row[r];
        if (interrupt_requested()) status = TB_CANCELLED;
        if (status == TB_OK) status = tb_step(w.stepper, w.state, to - from, NULL, error);
        if (status == TB_OK) status = tb_state_body_motion(w.state, first, &near);
        if (status == TB_OK) status = tb_state_body_motion(w.state, last, &far);
        if (status != TB_OK) break;
        row->here[method] = CM * near.position[0];
        row->here[COLUMNS_OF_BODY + method] = CM * far.position[0];
        if (method < 2) row->here[2 * COLUMNS_OF_BODY + method] = angle_of(&near);
        if (method == 0) snprintf(row->label, sizeof row->label, "%.2f s", tb_state_time(w.state));
    }
    betz_world_close(&w);
    return status;
}

tb_status betz_fill_curves(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const char *scene = o->scene != NULL ? o->scene : "betz_angle_hexagon_5_mu0.1";
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : STEPS;
    t->row_key = "time";
    for (int k = 0; k < METHODS; k++)
        thesis_add_series(t, METHOD[k].column_17, "cm", "X of body 17");
    for (int k = 0; k < METHODS; k++)
        thesis_add_series(t, METHOD[k].column_209, "cm", "X of body 209");
    thesis_add_series(t, "lemke_theta", "rad", "theta of body 17");
    thesis_add_series(t, "serial_theta", "rad", "theta of body 17");
    for (int r = 0; r < MOST_ROWS && r < steps; r++) thesis_add_row(t, "");
    tb_status status = TB_OK;
    for (int k = 0; k < METHODS && status == TB_OK; k++)
        status = fill_method(scene, k, steps, t, error);
    if (status != TB_OK && status != TB_CANCELLED) t->rows = 0;
    thesis_note(t, "%s, cold, at most %d sweeps; the thesis has curves, whose numbers are lost",
                scene, SWEEPS);
    return status;
}
