/* Builds mechanisms, and integrates their references by a Runge-Kutta rule. See
 * common_mechanism.h. */
#include "common_mechanism.h"

tb_handle mechanism_body(truth *t, const char *name, tb_handle parent, const double position[3],
                         double mass, const double com[3], const double inertia[3])
{
    tb_error error;
    tb_handle body;
    tb_body_def def = tb_body_defaults();
    def.name = name;
    def.parent = parent;
    memcpy(def.position, position, sizeof def.position);
    def.has_inertia = true;
    def.mass = mass;
    memcpy(def.com, com, sizeof def.com);
    memcpy(def.inertia, inertia, 3 * sizeof(double));
    TEST_OK(tb_scene_add_body(t->scene, &def, &body, &error), &error);
    return body;
}

tb_handle mechanism_add_joint(truth *t, const tb_joint_def *def)
{
    tb_error error;
    tb_handle joint;
    TEST_OK(tb_scene_add_joint(t->scene, def, &joint, &error), &error);
    return joint;
}

tb_handle mechanism_joint(truth *t, const char *name, tb_handle body, tb_joint_type type,
                          const double anchor[3], const double axis[3])
{
    tb_joint_def def = tb_joint_defaults();
    def.name = name;
    def.body = body;
    def.type = type;
    if (anchor != NULL) memcpy(def.position, anchor, sizeof def.position);
    if (axis != NULL) memcpy(def.axis, axis, sizeof def.axis);
    return mechanism_add_joint(t, &def);
}

static tb_joint_info find_joint(const truth *t, const char *name)
{
    const int32_t joint = tb_model_find(t->model, TB_HANDLE_JOINT, name);
    ck_assert_msg(joint >= 0, "no joint '%s'", name);
    tb_joint_info info;
    TEST_OK(tb_model_joint_info(t->model, joint, &info), NULL);
    return info;
}

double joint_coordinate(const truth *t, const char *name)
{
    return tb_state_q(t->state)[find_joint(t, name).coordinate];
}

double joint_velocity(const truth *t, const char *name)
{
    return tb_state_u(t->state)[find_joint(t, name).dof];
}

enum { MOST_NUMBERS = 256 };

void set_joint_coordinate(truth *t, const char *name, double value)
{
    tb_error error;
    double q[MOST_NUMBERS];
    const int32_t count = tb_model_count(t->model).coordinates;
    ck_assert_int_le(count, MOST_NUMBERS);
    memcpy(q, tb_state_q(t->state), (size_t)count * sizeof *q);
    q[find_joint(t, name).coordinate] = value;
    TEST_OK(tb_state_set_q(t->state, q, count, &error), &error);
}

void set_joint_velocity(truth *t, const char *name, double value)
{
    tb_error error;
    double u[MOST_NUMBERS];
    const int32_t count = tb_model_count(t->model).dofs;
    ck_assert_int_le(count, MOST_NUMBERS);
    memcpy(u, tb_state_u(t->state), (size_t)count * sizeof *u);
    u[find_joint(t, name).dof] = value;
    TEST_OK(tb_state_set_u(t->state, u, count, &error), &error);
}

void set_joint_force(truth *t, const char *name, double value)
{
    tb_error error;
    double force[MOST_NUMBERS] = {0};
    const int32_t count = tb_model_count(t->model).dofs;
    ck_assert_int_le(count, MOST_NUMBERS);
    force[find_joint(t, name).dof] = value;
    TEST_OK(tb_state_set_applied_force(t->state, force, count, &error), &error);
}

/* ---- reference solutions ---- */

void reference_run(reference_rate *f, const void *context, int n, double *x, double dt,
                   int64_t steps)
{
    double k[4][32], y[32];
    ck_assert_int_le(n, 32);
    static const double ahead[4] = {0, 0.5, 0.5, 1};
    for (int64_t step = 0; step < steps; step++) {
        for (int stage = 0; stage < 4; stage++) {
            for (int i = 0; i < n; i++)
                y[i] = x[i] + (stage ? dt * ahead[stage] * k[stage - 1][i] : 0);
            f(y, k[stage], context);
        }
        for (int i = 0; i < n; i++)
            x[i] += dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
}

void reference_solve(double *a, double *b, int n)
{
    /* Gauss without pivoting is stable for positive definite matrices */
    for (int k = 0; k < n; k++) {
        ck_assert(a[k * n + k] > 0);
        for (int i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
            b[i] -= factor * b[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) b[k] -= a[k * n + j] * b[j];
        b[k] /= a[k * n + k];
    }
}

void reference_cross(const double a[3], const double b[3], double c[3])
{
    const double r[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                         a[0] * b[1] - a[1] * b[0]};
    memcpy(c, r, sizeof r);
}

double reference_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

void reference_rotate(const double q[4], const double v[3], double r[3])
{
    /* v + 2 w (p x v) + 2 p x (p x v) */
    double first[3], second[3];
    reference_cross(q + 1, v, first);
    reference_cross(q + 1, first, second);
    for (int k = 0; k < 3; k++) r[k] = v[k] + 2 * q[0] * first[k] + 2 * second[k];
}

void reference_unrotate(const double q[4], const double v[3], double r[3])
{
    const double back[4] = {q[0], -q[1], -q[2], -q[3]};
    reference_rotate(back, v, r);
}

void reference_turn(const double q[4], const double w[3], double rate[4])
{
    rate[0] = -0.5 * reference_dot(q + 1, w);
    double across[3];
    reference_cross(q + 1, w, across);
    for (int k = 0; k < 3; k++) rate[1 + k] = 0.5 * (q[0] * w[k] + across[k]);
}

double reference_angle(const double a[4], const double b[4])
{
    /* vector part of conj(a) b */
    double v[3], across[3];
    reference_cross(a + 1, b + 1, across);
    for (int k = 0; k < 3; k++) v[k] = a[0] * b[1 + k] - b[0] * a[1 + k] - across[k];
    const double w = a[0] * b[0] + reference_dot(a + 1, b + 1);
    return 2 * atan2(sqrt(reference_dot(v, v)), fabs(w));
}
