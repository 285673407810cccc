/* Betz's tables: accelerations on a slope, the Friction Angle scenes, Lemke against the prox sweeps, and
 * the Large Group timings. Lengths are in cm, as in the thesis. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/interrupt.h"
#include "common/progress.h"
#include "bench/thesis.h"

static const double CM = 100;                /* of a metre */
static const double THESIS_TOLERANCE = 1e-8; /* m/s: 1e-6 cm/s */

/* A world by the planar scheme and one solver. */
typedef struct betz_world {
    tb_model *model;
    tb_state *state;
    tb_stepper *stepper;
} betz_world;

static void betz_world_close(betz_world *w)
{
    tb_stepper_destroy(w->stepper);
    tb_state_destroy(w->state);
    tb_model_destroy(w->model);
}

/* The thesis's way to solve: cold, Jacobi's r, the one-sided test; `lemke` to a residual of 1e-9. */
static tb_step_options betz_thesis_step(const char *solver, int32_t iterations, double omega)
{
    tb_step_options step = tb_step_defaults();
    step.scheme = TB_SCHEME_PLANAR;
    step.solve.solver = solver;
    step.solve.warm_start = false;
    step.solve.stop = TB_STOP_ONE_SIDED;
    step.solve.tolerance = THESIS_TOLERANCE;
    step.solve.maximum_iterations = iterations;
    step.solve.omega = omega;
    if (strcmp(solver, "lemke") == 0) {
        step.solve.stop = TB_STOP_RESIDUAL;
        step.solve.tolerance = 1e-9;
        step.solve.maximum_iterations = 100000;
    }
    return step;
}

/* Options that solve until the certificate's residual meets the tolerance. */
static tb_step_options exact_step(const char *solver, double tolerance, int32_t iterations)
{
    tb_step_options step = tb_step_defaults();
    step.scheme = TB_SCHEME_PLANAR;
    step.solve.solver = solver;
    step.solve.tolerance = tolerance;
    step.solve.maximum_iterations = iterations;
    return step;
}

static tb_status betz_world_open(betz_world *w, const char *scene, const tb_step_options *step,
                                 tb_error *error)
{
    memset(w, 0, sizeof *w);
    tb_status status = thesis_load(scene, &w->model, error);
    if (status == TB_OK) status = tb_state_create(w->model, &w->state, error);
    if (status == TB_OK) status = tb_stepper_create(step, &w->stepper, error);
    return status;
}

static bool asked_for(const thesis_options *o, const char *scene)
{
    return o->scene == NULL || strcmp(o->scene, scene) == 0;
}

/* ---- accelerations ---- */

static const struct {
    const char *scene;
    double angle, mu;
} SLIDES[] = {{"betz_slide_5_mu0", 0.09, 0},
              {"betz_slide_5_mu0.1", 0.09, 0.1},
              {"betz_slide_10_mu0", 0.18, 0},
              {"betz_slide_10_mu0.1", 0.18, 0.1},
              {"betz_slide_10_mu0.2", 0.18, 0.2}};
static const char *const METHODS[] = {"prox_serial", "prox_cuda", "lemke"};
enum { SLIDES_COUNT = sizeof SLIDES / sizeof SLIDES[0], METHODS_COUNT = 3 };

/* cm/s^2 down the slope, over the steps from the 51st to the 100th. */
static tb_status acceleration(const char *scene, const char *solver, double angle, double *result,
                              double *residual, tb_error *error)
{
    betz_world w;
    tb_body_motion from, to;
    tb_certificate certificate = {0};
    const tb_step_options step = exact_step(solver, 1e-9, 100000);
    tb_status status = betz_world_open(&w, scene, &step, error);
    const int32_t body = status == TB_OK ? tb_model_find(w.model, TB_HANDLE_BODY, "body") : 0;
    if (status == TB_OK) status = tb_step(w.stepper, w.state, 50, NULL, error);
    if (status == TB_OK) status = tb_state_body_motion(w.state, body, &from);
    if (status == TB_OK) status = tb_step(w.stepper, w.state, 50, &certificate, error);
    if (status == TB_OK) status = tb_state_body_motion(w.state, body, &to);
    if (status == TB_OK) {
        const double seconds = 50 * tb_model_dt(w.model);
        const double dx = to.linear_velocity[0] - from.linear_velocity[0];
        const double dz = to.linear_velocity[2] - from.linear_velocity[2];
        *result = CM * (dx * cos(angle) - dz * sin(angle)) / seconds;
        *residual = fmax(*residual, certificate.residual);
    }
    betz_world_close(&w);
    return status;
}

static tb_status fill_slide(const thesis_options *o, thesis_table *t, tb_error *error)
{
    for (int k = 0; k < METHODS_COUNT; k++) thesis_add_column(t, METHODS[k], "cm/s^2");
    tb_status status = TB_OK;
    for (int i = 0; i < SLIDES_COUNT && status == TB_OK; i++) {
        if (!asked_for(o, SLIDES[i].scene)) continue;
        thesis_row *row = thesis_add_row(t, SLIDES[i].scene);
        const double drive = tan(SLIDES[i].angle) > SLIDES[i].mu
                                 ? sin(SLIDES[i].angle) - SLIDES[i].mu * cos(SLIDES[i].angle)
                                 : 0;
        row->residual = 0;
        for (int k = 0; k < METHODS_COUNT && status == TB_OK; k++) {
            row->thesis[k] = CM * 9.81 * drive;
            status = acceleration(SLIDES[i].scene, METHODS[k], SLIDES[i].angle, &row->here[k],
                                  &row->residual, error);
        }
    }
    thesis_note(t, "beside them: g (sin a - mu cos a), the theoretical acceleration");
    return status;
}

/* ---- Friction Angle ---- */

static const struct {
    const char *scene;
    double serial_omega, cuda_omega; /* as its figures have */
} ANGLES[] = {{"betz_angle_hexagon_5_mu0", 0.5, 0.5},    {"betz_angle_octagon_5_mu0", 0.5, 0.25},
              {"betz_angle_hexagon_10_mu0", 0.5, 0.5},   {"betz_angle_octagon_10_mu0", 0.25, 0.25},
              {"betz_angle_hexagon_5_mu0.1", 0.5, 0.5},  {"betz_angle_octagon_5_mu0.1", 0.5, 0.25},
              {"betz_angle_hexagon_10_mu0.1", 0.5, 0.5}, {"betz_angle_octagon_10_mu0.1", 0.5, 0.25},
              {"betz_angle_hexagon_5_mu0.2", 0.5, 0.5},  {"betz_angle_octagon_5_mu0.2", 0.5, 0.25},
              {"betz_angle_hexagon_10_mu0.2", 0.5, 0.5}, {"betz_angle_octagon_10_mu0.2", 0.5, 0.25},
              {"betz_angle_hexagon_5_mu0.5", 0.5, 0.5},  {"betz_angle_octagon_5_mu0.5", 0.5, 0.25},
              {"betz_angle_hexagon_10_mu0.5", 0.5, 0.5}, {"betz_angle_octagon_10_mu0.5", 0.5, 0.25},
              {"betz_angle_hexagon_5_mu1", 0.5, 0.5},    {"betz_angle_octagon_5_mu1", 0.5, 0.25},
              {"betz_angle_hexagon_10_mu1", 0.5, 0.5},   {"betz_angle_octagon_10_mu1", 0.5, 0.25}};
enum { ANGLES_COUNT = sizeof ANGLES / sizeof ANGLES[0], ANGLE_STEPS = 200 };

/* X (cm) of bodies 17 and 209 at the end. */
static tb_status angle_ends(const char *scene, const tb_step_options *step, int32_t steps,
                            double ends[2], double *residual, tb_error *error)
{
    betz_world w;
    tb_certificate certificate = {0};
    static const char *const BODIES[] = {"17", "209"};
    tb_status status = betz_world_open(&w, scene, step, error);
    if (status == TB_OK) status = tb_step(w.stepper, w.state, steps, &certificate, error);
    for (int k = 0; k < 2 && status == TB_OK; k++) {
        tb_body_motion motion;
        status = tb_state_body_motion(w.state, tb_model_find(w.model, TB_HANDLE_BODY, BODIES[k]),
                                      &motion);
        ends[k] = CM * motion.position[0];
    }
    *residual = fmax(*residual, certificate.residual);
    betz_world_close(&w);
    return status;
}

static tb_status fill_angle(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : ANGLE_STEPS;
    static const char *const COLUMNS[] = {"lemke_17",     "prox_serial_17",  "prox_cuda_17",
                                          "lemke_209",    "prox_serial_209", "prox_cuda_209",
                                          "as_listed_17", "as_listed_209"};
    for (int k = 0; k < 8; k++) thesis_add_column(t, COLUMNS[k], "cm");
    tb_status status = TB_OK;
    progress bar = progress_begin("angle", ANGLES_COUNT, false);
    for (int i = 0; i < ANGLES_COUNT && status == TB_OK; i++) {
        const char *scene = ANGLES[i].scene;
        if (interrupt_requested()) status = TB_CANCELLED;
        if (status != TB_OK || !asked_for(o, scene)) continue;
        thesis_row *row = thesis_add_row(t, scene);
        double ends[2] = {NAN, NAN};
        row->residual = 0;
        tb_step_options step = betz_thesis_step("lemke", 0, 0);
        status = angle_ends(scene, &step, steps, ends, &row->residual, error);
        row->here[0] = ends[0];
        row->here[3] = ends[1];
        for (int k = 0; k < 3 && status == TB_OK; k++) {
            const bool serial = k == 0;
            step = betz_thesis_step(serial ? "prox_serial" : "prox_cuda", 500,
                                    serial ? ANGLES[i].serial_omega : ANGLES[i].cuda_omega);
            step.solve.as_listed = k == 2;
            status = angle_ends(scene, &step, steps, ends, &row->residual, error);
            row->here[k == 2 ? 6 : 1 + k] = ends[0];
            row->here[k == 2 ? 7 : 4 + k] = ends[1];
        }
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    thesis_note(t, "X after %d steps of 0.01 s; the thesis has curves, whose numbers are lost",
                (int)steps);
    return status;
}

/* ---- Lemke against the prox sweeps ---- */

/* Steps the same state by both, goes on from Lemke's, and notes the largest difference of a velocity. */
static tb_status compare_steps(const char *scene, const char *solver, int32_t steps,
                               thesis_row *row, tb_error *error)
{
    betz_world w;
    tb_stepper *prox = NULL;
    const tb_step_options lemke = exact_step("lemke", 1e-11, 100000);
    const tb_step_options other = exact_step(solver, 1e-11, 20000);
    tb_status status = betz_world_open(&w, scene, &lemke, error);
    if (status == TB_OK) status = tb_stepper_create(&other, &prox, error);
    double worst = 0, both = 0;
    for (int32_t i = 0; i < steps && status == TB_OK; i++) {
        tb_state *fork = NULL;
        tb_certificate a, b;
        status = tb_state_fork(w.state, &fork, error);
        if (status == TB_OK) status = tb_step(prox, fork, 1, &b, error);
        if (status == TB_OK) status = tb_step(w.stepper, w.state, 1, &a, error);
        if (status == TB_OK && a.status == TB_OK && b.status == TB_OK) {
            const double *u = tb_state_u(w.state), *v = tb_state_u(fork);
            for (int32_t k = 0; k < tb_model_count(w.model).dofs; k++)
                worst = fmax(worst, fabs(u[k] - v[k]));
            both++;
        }
        row->residual = fmax(row->residual, fmax(a.residual, b.residual));
        tb_state_destroy(fork);
        if (interrupt_requested()) status = TB_CANCELLED;
    }
    row->here[0] = steps;
    row->here[1] = both;
    row->here[2] = worst;
    tb_stepper_destroy(prox);
    betz_world_close(&w);
    return status;
}

static tb_status fill_lemke(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const SCENES[] = {"betz_angle_hexagon_5_mu0", "betz_angle_hexagon_10_mu0.1",
                                         "betz_angle_octagon_5_mu0.2",
                                         "betz_angle_hexagon_5_mu0.5"};
    thesis_add_column(t, "steps", "");
    thesis_add_column(t, "both_ended", "");
    thesis_add_column(t, "difference", "m/s, rad/s");
    tb_status status = TB_OK;
    for (int i = 0; i < 4 && status == TB_OK; i++) {
        if (!asked_for(o, SCENES[i])) continue;
        thesis_row *row = thesis_add_row(t, SCENES[i]);
        row->residual = 0;
        status = compare_steps(SCENES[i], o->solver != NULL ? o->solver : "sor",
                               o->steps > 0 ? (int32_t)o->steps : 100, row, error);
    }
    return status;
}

/* ---- Large Group ---- */

enum { GROUP_SECONDS = 8 };
static const struct {
    const char *scene;
    double serial[GROUP_SECONDS];
} GROUPS[] = {
    {"betz_group_525", {11.41, 27.66, 57.18, 90.99, 123.56, 157.99, 190.39, 223.72}},
    {"betz_group_2100", {141.58, 301.27, 514.66, 748.04, 975.52, 1209.98, 1438.82, 1676.72}},
    {"betz_group_5250", {793.83, 1637.43, 2604.77, 3619.76, 4626.20, 5650.33, 6657.56, 7686.46}}};

static const double GROUP_OMEGA = 0.25; /* the thesis's: 0.5 diverges */
enum { GROUP_ITERATIONS = 20000 };

/* newton does not run on a card in the plane. */
static const char *group_solver(const thesis_options *o)
{
    return o->solver != NULL ? o->solver : o->backend == TB_BACKEND_GPU ? "mprgp" : "newton";
}

/* Whether the thesis's settings are asked for: by the name of one of its solvers. */
static bool is_faithful(const thesis_options *o)
{
    return o->solver != NULL && strncmp(o->solver, "prox_", 5) == 0;
}

static tb_status time_group(const thesis_options *o, int g, thesis_row *row, tb_error *error)
{
    betz_world w;
    tb_certificate all = {0}, one;
    const char *solver = group_solver(o);
    tb_step_options step = is_faithful(o) ? betz_thesis_step(solver, 2000, GROUP_OMEGA)
                                          : exact_step(solver, 1e-6, GROUP_ITERATIONS);
    if (o->backend == TB_BACKEND_GPU) {
        step.backend = TB_BACKEND_GPU;
        step.solve.omega = GROUP_OMEGA;
    }
    step.threads = step.solve.threads = (int32_t)o->threads;
    tb_status status = betz_world_open(&w, GROUPS[g].scene, &step, error);
    const int32_t a_second = status == TB_OK ? (int32_t)lrint(1 / tb_model_dt(w.model)) : 1;
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : GROUP_SECONDS * a_second;
    double seconds = 0;
    int32_t failed = 0, most = 0;
    progress bar = progress_begin(GROUPS[g].scene, steps, false);
    for (int32_t i = 0; i < steps && status == TB_OK; i++) {
        const double start = progress_clock();
        status = tb_step(w.stepper, w.state, 1, &one, error);
        seconds += progress_clock() - start;
        if (status == TB_OK) tb_certificate_merge(&all, &one);
        failed += one.status != TB_OK;
        if (one.contacts > most) most = one.contacts;
        if ((i + 1) % a_second == 0) row->here[(i + 1) / a_second - 1] = seconds;
        if (interrupt_requested()) status = TB_CANCELLED;
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    for (int k = 0; k < GROUP_SECONDS; k++) row->thesis[k] = GROUPS[g].serial[k];
    row->here[GROUP_SECONDS] = all.residual;
    row->here[GROUP_SECONDS + 1] = failed;
    row->here[GROUP_SECONDS + 2] = most;
    row->here[GROUP_SECONDS + 3] = 1e3 * all.penetration;
    row->residual = all.residual;
    row->iterations = all.iterations;
    betz_world_close(&w);
    return status;
}

static tb_status fill_group(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const COLUMNS[GROUP_SECONDS] = {"1s", "2s", "3s", "4s",
                                                       "5s", "6s", "7s", "8s"};
    for (int k = 0; k < GROUP_SECONDS; k++) thesis_add_column(t, COLUMNS[k], "s");
    thesis_add_column(t, "worst_residual", "");
    thesis_add_column(t, "unconverged", "steps");
    thesis_add_column(t, "contacts", "most");
    thesis_add_column(t, "penetration", "mm");
    tb_status status = TB_OK;
    for (int g = 0; g < 3 && status == TB_OK; g++) {
        if (!asked_for(o, GROUPS[g].scene)) continue;
        status = time_group(o, g, thesis_add_row(t, GROUPS[g].scene), error);
    }
    thesis_note(t, "seconds after each simulated second, collision detection included; beside them "
                   "proxSerial's. PATH took 424.71 and 11320.3 s for 8 s of 525 and 2100");
    thesis_note(
        t, "solver %s on the %s%s", group_solver(o),
        o->backend == TB_BACKEND_GPU ? "card" : "processor",
        is_faithful(o)
            ? ", cold, omega 0.25, at most 2000 sweeps, one-sided 1e-6 cm/s as in the thesis"
            : ", warm, residual 1e-6, at most 20000 iterations");
    return status;
}

/* ---- curves over time: figures 4.6 to 4.33 for one scene ---- */

enum { SWEEPS = 500, CURVE_STEPS = 200, MOST_ROWS = 40, CURVES = 5, COLUMNS_OF_BODY = CURVES };

static const struct {
    const char *column_17, *column_209, *solver;
    double omega;
    bool as_listed;
} CURVE[CURVES] = {{"lemke_17", "lemke_209", "lemke", 0, false},
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
    tb_step_options step = betz_thesis_step(CURVE[method].solver, SWEEPS, CURVE[method].omega);
    step.solve.as_listed = CURVE[method].as_listed;
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

static tb_status fill_curves(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const char *scene = o->scene != NULL ? o->scene : "betz_angle_hexagon_5_mu0.1";
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : CURVE_STEPS;
    t->row_key = "time";
    for (int k = 0; k < CURVES; k++) thesis_add_series(t, CURVE[k].column_17, "cm", "X of body 17");
    for (int k = 0; k < CURVES; k++)
        thesis_add_series(t, CURVE[k].column_209, "cm", "X of body 209");
    thesis_add_series(t, "lemke_theta", "rad", "theta of body 17");
    thesis_add_series(t, "serial_theta", "rad", "theta of body 17");
    for (int r = 0; r < MOST_ROWS && r < steps; r++) thesis_add_row(t, "");
    tb_status status = TB_OK;
    for (int k = 0; k < CURVES && status == TB_OK; k++)
        status = fill_method(scene, k, steps, t, error);
    if (status != TB_OK && status != TB_CANCELLED) t->rows = 0;
    thesis_note(t, "%s, cold, at most %d sweeps; the thesis has curves, whose numbers are lost",
                scene, SWEEPS);
    return status;
}

/* ---- the card beside the processor ---- */

/* Steps both from the start; the largest distance of a body's place (m), and the two places of that body.
 * are. */
static tb_status compare_backends(const char *scene, const tb_step_options *step, int32_t steps,
                                  thesis_row *row, tb_error *error)
{
    betz_world w[2] = {{0}};
    tb_certificate certificate = {0};
    double worst = 0;
    tb_status status = TB_OK;
    for (int k = 0; k < 2 && status == TB_OK; k++) {
        tb_step_options own = *step;
        own.backend = k == 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU;
        status = betz_world_open(&w[k], scene, &own, error);
        const double start = progress_clock();
        if (status == TB_OK) status = tb_step(w[k].stepper, w[k].state, steps, &certificate, error);
        row->here[1 + k] = progress_clock() - start;
        row->residual = fmax(row->residual, certificate.residual);
    }
    const int32_t bodies = status == TB_OK ? tb_model_count(w[0].model).bodies : 0;
    for (int32_t b = 1; b < bodies; b++) {
        tb_body_motion here, there;
        double square = 0;
        if (tb_state_body_motion(w[0].state, b, &here) != TB_OK ||
            tb_state_body_motion(w[1].state, b, &there) != TB_OK)
            continue;
        for (int i = 0; i < 3; i++) square += pow(here.position[i] - there.position[i], 2);
        worst = fmax(worst, sqrt(square));
    }
    if (status == TB_OK) row->here[0] = worst;
    if (status == TB_OK)
        row->here[3] = tb_state_hash(w[0].state) == tb_state_hash(w[1].state) ? 1 : 0;
    betz_world_close(&w[0]);
    betz_world_close(&w[1]);
    return status;
}

static tb_status fill_card(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const SOLVERS[] = {"prox_serial", "prox_cuda", "mprgp"};
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : ANGLE_STEPS;
    thesis_add_column(t, "distance", "m");
    thesis_add_column(t, "processor", "s");
    thesis_add_column(t, "gpu", "s");
    thesis_add_column(t, "same_bytes", "");
    tb_status status = TB_OK;
    progress bar = progress_begin("card", ANGLES_COUNT, o->json);
    for (int i = 0; i < ANGLES_COUNT && status == TB_OK; i++) {
        for (int k = 0; k < 3 && status == TB_OK && asked_for(o, ANGLES[i].scene); k++) {
            char label[THESIS_LABEL];
            const tb_step_options step =
                k == 2 ? exact_step(SOLVERS[k], 1e-8, GROUP_ITERATIONS)
                       : betz_thesis_step(SOLVERS[k], 500,
                                          k == 0 ? ANGLES[i].serial_omega : ANGLES[i].cuda_omega);
            snprintf(label, sizeof label, "%s, %s", ANGLES[i].scene, SOLVERS[k]);
            thesis_row *row = thesis_add_row(t, label);
            row->residual = 0;
            status = compare_backends(ANGLES[i].scene, &step, steps, row, error);
            if (interrupt_requested()) status = TB_CANCELLED;
        }
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    thesis_note(t,
                "the farthest body after %d steps of 0.01 s by the thesis's settings, and by mprgp "
                "to 1e-8; the thesis ends within 0.5 cm of PATH at best",
                (int)steps);
    return status;
}

/* ---- many worlds at once ---- */

static tb_status time_worlds(const thesis_options *o, int32_t worlds, int32_t steps,
                             thesis_row *row, tb_error *error)
{
    betz_world w;
    tb_state **states = calloc((size_t)worlds, sizeof *states);
    tb_step_options step = betz_thesis_step("prox_cuda", 500, 0.5);
    step.threads = (int32_t)o->threads;
    step.backend = (tb_backend_choice)o->backend;
    tb_status status = betz_world_open(&w, "betz_angle_hexagon_5_mu0.1", &step, error);
    if (status == TB_OK && states == NULL)
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for %d worlds",
                          (int)worlds);
    /* the bodies fall first */
    if (status == TB_OK) status = tb_step(w.stepper, w.state, 60, NULL, error);
    for (int32_t i = 0; i < worlds && status == TB_OK; i++)
        status = tb_state_fork(w.state, &states[i], error);
    const double start = progress_clock();
    if (status == TB_OK) status = tb_step_batch(w.stepper, states, worlds, steps, NULL, error);
    row->here[0] = progress_clock() - start;
    row->here[1] = worlds * (double)steps / row->here[0];
    for (int32_t i = 0; i < worlds && states != NULL; i++) tb_state_destroy(states[i]);
    free(states);
    betz_world_close(&w);
    return status;
}

static tb_status fill_worlds(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const int32_t WORLDS[] = {1, 16, 256};
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : 20;
    t->row_key = "worlds";
    thesis_add_column(t, "time", "s");
    thesis_add_column(t, "world_steps", "1/s");
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof WORLDS / sizeof WORLDS[0] && status == TB_OK; i++) {
        char label[THESIS_LABEL];
        snprintf(label, sizeof label, "%d", (int)WORLDS[i]);
        status = time_worlds(o, WORLDS[i], steps, thesis_add_row(t, label), error);
        if (interrupt_requested()) status = TB_CANCELLED;
    }
    thesis_note(t,
                "%d steps of betz_angle_hexagon_5_mu0.1 by prox_cuda, 25 bodies a world, on the %s",
                (int)steps, o->backend == TB_BACKEND_GPU ? "card" : "processor");
    return status;
}

const thesis_entry thesis_betz[] = {
    {"slide", "accelerations of one hexagon down a slope", false, fill_slide},
    {"angle", "Friction Angle (figures 4.6 to 4.33), where bodies 17 and 209 end", true,
     fill_angle},
    {"curves", "X over time in one of its scenes, theta of 17 (figures 4.6 to 4.33)", true,
     fill_curves},
    {"card", "Friction Angle on the processor and on the card", true, fill_card},
    {"worlds", "many Friction Angle worlds at once", true, fill_worlds},
    {"lemke", "Lemke against the prox sweeps on the same steps", true, fill_lemke},
    {"group", "Large Group (tables 4.3 to 4.5), seconds of computing", true, fill_group},
    {NULL, NULL, false, NULL}};
