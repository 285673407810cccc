/* Shared by every truth case: a scene built in a few lines, a run, and a line in the truth table.
 *
 * A case states its source above its test, measures one number an expectation, and reports it by
 * TRUTH_CHECK, which prints `TRUTH case | measured | limit` and fails above the limit. */
#ifndef COMMON_TRUTH_H
#define COMMON_TRUTH_H

#include "../unit/test_util.h"

#define GRAVITY 9.81 /* m/s^2 */

/* measured <= limit, printed for the table; NaN fails */
#define TRUTH_CHECK(name, measured, limit)                                                         \
    do {                                                                                           \
        const double truth_m_ = (double)(measured), truth_l_ = (double)(limit);                    \
        printf("TRUTH %-58s | %.3g | %.3g\n", (name), truth_m_, truth_l_);                         \
        fflush(stdout);                                                                            \
        ck_assert_msg(truth_m_ <= truth_l_, "%s: %.17g is above %.17g", (name), truth_m_,          \
                      truth_l_);                                                                   \
    } while (0)

/* A scene under construction, then a world. Everything checks itself and fails the test. */
typedef struct truth {
    tb_scene *scene;
    tb_model *model;
    tb_state *state;
    tb_stepper *stepper;
    tb_step_options options;
    tb_certificate worst; /* of all steps so far */
} truth;

/* An empty scene with gravity along -z (m/s^2; 0 for none) and a step of dt (s). Options are the
 * defaults but for a tolerance of 1e-12 and 5,000 iterations. */
truth truth_begin(double gravity, double dt);

/* A plane with unit normal (nx, ny, nz) through the origin, fixed to the world. */
tb_handle truth_plane(truth *t, double nx, double ny, double nz, tb_surface surface);

/* A free body at a position with one shape of its name and the given mass (kg);
 * orientation NULL: none. */
tb_handle truth_body(truth *t, const char *name, tb_shape_type type, const double size[3],
                     double mass, const double position[3], const double orientation[4],
                     tb_surface surface);

/* Coulomb friction mu, restitution e. */
tb_surface truth_surface(double mu, double e);

/* Compiles the scene and makes state and stepper from t->options. */
void truth_start(truth *t);

/* Steps; merges certificates; fails the test unless every step is OK
 * or (if allowed) NOT_CONVERGED. */
void truth_run(truth *t, int32_t steps);

/* Motion of a body by name. */
tb_body_motion truth_motion(const truth *t, const char *name);

/* Sets the velocity of a free body by name: linear (m/s, world), angular (rad/s, body axes). */
void truth_set_velocity(truth *t, const char *name, const double linear[3],
                        const double angular[3]);

/* Sets pose of a free body by name. */
void truth_set_pose(truth *t, const char *name, const double position[3],
                    const double orientation[4]);

void truth_end(truth *t);

#endif
