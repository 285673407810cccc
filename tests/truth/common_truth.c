/* Builds scenes, runs them and prints the truth table. See common_truth.h. */
#include "common_truth.h"

truth truth_begin(double gravity, double dt)
{
    truth t;
    memset(&t, 0, sizeof t);
    tb_error error;
    tb_scene_def def = tb_scene_defaults();
    def.gravity[0] = def.gravity[1] = 0;
    def.gravity[2] = -gravity;
    def.dt = dt;
    TEST_OK(tb_scene_create(&def, &t.scene, &error), &error);
    t.options = tb_step_defaults();
    t.options.solve.tolerance = 1e-12;
    t.options.solve.maximum_iterations = 5000;
    return t;
}

tb_surface truth_surface(double mu, double e)
{
    tb_surface s = tb_surface_defaults();
    s.friction = mu;
    s.restitution = e;
    return s;
}

/* quaternion that turns +z into n */
static void upright(const double n[3], double q[4])
{
    const double length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const double z = n[2] / length;
    if (z < -1 + 1e-12) {
        q[0] = q[2] = q[3] = 0;
        q[1] = 1;
        return;
    }
    const double w = sqrt((1 + z) / 2);
    q[0] = w;
    q[1] = -n[1] / length / (2 * w);
    q[2] = n[0] / length / (2 * w);
    q[3] = 0;
}

tb_handle truth_plane(truth *t, double nx, double ny, double nz, tb_surface surface)
{
    tb_error error;
    tb_handle handle;
    tb_shape_def def = tb_shape_defaults();
    def.type = TB_SHAPE_PLANE;
    def.surface = surface;
    upright((const double[3]){nx, ny, nz}, def.orientation);
    TEST_OK(tb_scene_add_shape(t->scene, &def, &handle, &error), &error);
    return handle;
}

tb_handle truth_body(truth *t, const char *name, tb_shape_type type, const double size[3],
                     double mass, const double position[3], const double orientation[4],
                     tb_surface surface)
{
    tb_error error;
    tb_handle body;
    tb_body_def def = tb_body_defaults();
    def.name = name;
    memcpy(def.position, position, sizeof def.position);
    if (orientation != NULL) memcpy(def.orientation, orientation, sizeof def.orientation);
    TEST_OK(tb_scene_add_body(t->scene, &def, &body, &error), &error);

    tb_joint_def joint = tb_joint_defaults();
    joint.type = TB_JOINT_FREE;
    joint.body = body;
    TEST_OK(tb_scene_add_joint(t->scene, &joint, NULL, &error), &error);

    tb_shape_def shape = tb_shape_defaults();
    shape.name = name;
    shape.type = type;
    shape.body = body;
    memcpy(shape.size, size, sizeof shape.size);
    shape.mass = mass;
    shape.surface = surface;
    TEST_OK(tb_scene_add_shape(t->scene, &shape, NULL, &error), &error);
    return body;
}

void truth_start(truth *t)
{
    tb_error error;
    TEST_OK(tb_scene_compile(t->scene, &t->model, &error), &error);
    TEST_OK(tb_state_create(t->model, &t->state, &error), &error);
    TEST_OK(tb_stepper_create(&t->options, &t->stepper, &error), &error);
}

void truth_run(truth *t, int32_t steps)
{
    tb_error error;
    tb_certificate certificate;
    TEST_OK(tb_step(t->stepper, t->state, steps, &certificate, &error), &error);
    tb_certificate_merge(&t->worst, &certificate);
}

static int32_t body_index(const truth *t, const char *name)
{
    const int32_t body = tb_model_find(t->model, TB_HANDLE_BODY, name);
    ck_assert_msg(body >= 0, "no body '%s'", name);
    return body;
}

tb_body_motion truth_motion(const truth *t, const char *name)
{
    tb_body_motion motion;
    TEST_OK(tb_state_body_motion(t->state, body_index(t, name), &motion), NULL);
    return motion;
}

/* first coordinate and dof of a free body */
static tb_joint_info free_joint(const truth *t, const char *name)
{
    const int32_t body = body_index(t, name);
    const int32_t joints = tb_model_count(t->model).joints;
    tb_joint_info info;
    for (int32_t j = 0; j < joints; j++) {
        TEST_OK(tb_model_joint_info(t->model, j, &info), NULL);
        if (info.body == body && info.type == TB_JOINT_FREE) return info;
    }
    ck_abort_msg("body '%s' has no free joint", name);
    return info;
}

void truth_set_velocity(truth *t, const char *name, const double linear[3], const double angular[3])
{
    tb_error error;
    const int32_t dofs = tb_model_count(t->model).dofs;
    const tb_joint_info joint = free_joint(t, name);
    double *u = malloc((size_t)dofs * sizeof *u);
    ck_assert_ptr_nonnull(u);
    memcpy(u, tb_state_u(t->state), (size_t)dofs * sizeof *u);
    memcpy(u + joint.dof, linear, 3 * sizeof *u);
    memcpy(u + joint.dof + 3, angular, 3 * sizeof *u);
    TEST_OK(tb_state_set_u(t->state, u, dofs, &error), &error);
    free(u);
}

void truth_set_pose(truth *t, const char *name, const double position[3],
                    const double orientation[4])
{
    tb_error error;
    const int32_t coordinates = tb_model_count(t->model).coordinates;
    const tb_joint_info joint = free_joint(t, name);
    double *q = malloc((size_t)coordinates * sizeof *q);
    ck_assert_ptr_nonnull(q);
    memcpy(q, tb_state_q(t->state), (size_t)coordinates * sizeof *q);
    memcpy(q + joint.coordinate, position, 3 * sizeof *q);
    memcpy(q + joint.coordinate + 3, orientation, 4 * sizeof *q);
    TEST_OK(tb_state_set_q(t->state, q, coordinates, &error), &error);
    free(q);
}

void truth_end(truth *t)
{
    tb_stepper_destroy(t->stepper);
    tb_state_destroy(t->state);
    tb_model_destroy(t->model);
    tb_scene_destroy(t->scene);
    memset(t, 0, sizeof *t);
}
