/* Scenes for the tests of the GPU backend, and the way to it. Where there is no card, a test says
 * so in a line that begins with SKIPPED. */
#ifndef GPU_UTIL_H
#define GPU_UTIL_H

#include <unistd.h>

#include "backend/backend.h"
#include "model_util.h"
#include "step/step.h"

/* The build folder, named by run_all.sh; else the folder of this program. */
static inline const char *build_folder(void)
{
    static char self[512];
    const char *folder = getenv("TRIBO_BUILD");
    if (folder != NULL) return folder;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt((int)length, 0);
    char *tests = strstr(self, "/tests/unit/");
    ck_assert_ptr_nonnull(tests);
    *tests = '\0';
    return self;
}

/* False, with a SKIPPED line, if there is no card. */
static inline bool gpu_is_there(const char *test)
{
    char path[1024];
    tb_backend_info info;
    snprintf(path, sizeof path, "%s/libtribo_gpu.so", build_folder());
    ck_assert_int_eq(setenv("TRIBO_GPU_PLUGIN", path, 0), 0);
    TEST_OK(tb_backend_describe(TB_BACKEND_GPU, &info), NULL);
    if (info.devices > 0) return true;
    printf("SKIPPED %s: no GPU: %s\n", test, info.reason);
    return false;
}

/* Fixes how the card that was found spreads the worlds of later calls (backend.h). */
static inline void fix_schedule(tb_backend_schedule schedule)
{
    tb_error error = {0};
    const tb_backend *gpu = NULL;
    TEST_OK(tb_backend_find(TB_BACKEND_GPU, &gpu, &error), &error);
    ck_assert(gpu->fix_schedule != NULL);
    gpu->fix_schedule(&schedule);
}

static inline void choose_schedule(void)
{
    fix_schedule(tb_backend_schedule_chosen());
}

/* solver: NULL: the default */
static inline tb_stepper *stepper_with(tb_backend_choice backend, tb_precision precision,
                                       const char *solver)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    if (solver != NULL) options.solve.solver = solver;
    options.backend = backend;
    options.precision = precision;
    options.threads = backend == TB_BACKEND_GPU ? 0 : 1;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

static inline tb_stepper *stepper_on(tb_backend_choice backend, tb_precision precision)
{
    return stepper_with(backend, precision, NULL);
}

static inline tb_state *state_of(const tb_model *model)
{
    tb_error error;
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

/* ---- scenes ---- */

static inline void place(tb_scene *scene, tb_shape_type type, const double position[3],
                         const double size[3], tb_handle asset)
{
    tb_error error;
    tb_body_def body = tb_body_defaults();
    tb_shape_def shape = tb_shape_defaults();
    memcpy(body.position, position, sizeof body.position);
    TEST_OK(tb_scene_add_body(scene, &body, &shape.body, &error), &error);
    add_joint(scene, shape.body, TB_JOINT_FREE, NULL);
    shape.type = type;
    shape.asset = asset;
    if (size != NULL) memcpy(shape.size, size, sizeof shape.size);
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
}

static inline tb_scene *floor_scene(void)
{
    const tb_handle none = {0};
    tb_scene *scene = new_scene();
    tb_scene_def options = tb_scene_options(scene);
    options.dt = 1e-3;
    tb_error error;
    TEST_OK(tb_scene_set_options(scene, &options, &error), &error);
    add_shape(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    return scene;
}

static inline tb_model *finish(tb_scene *scene)
{
    tb_model *model = compile(scene);
    tb_scene_destroy(scene);
    return model;
}

/* Balls side by side that fall a little and settle, each on its own. */
static inline tb_model *spheres(void)
{
    static const double size[3] = {0.05, 0, 0};
    const tb_handle none = {0};
    tb_scene *scene = floor_scene();
    for (int i = 0; i < 8; i++)
        place(scene, TB_SHAPE_SPHERE, (const double[]){0.2 * (i % 4), 0.2 * (i / 4), 0.06}, size,
              none);
    return finish(scene);
}

static inline tb_model *stack(int number_of_boxes)
{
    static const double size[3] = {0.1, 0.1, 0.1};
    const tb_handle none = {0};
    tb_scene *scene = floor_scene();
    for (int i = 0; i < number_of_boxes; i++)
        place(scene, TB_SHAPE_BOX, (const double[]){0, 0, 0.1 + 0.2 * i}, size, none);
    return finish(scene);
}

/* Turns the boxes of a stack, each about the vertical axis, so that faces meet in eight points. */
static inline void turn_boxes(tb_state *state)
{
    double q[64];
    tb_error error;
    const int32_t coordinates = tb_model_count(tb_state_model(state)).coordinates;
    memcpy(q, tb_state_q(state), (size_t)coordinates * sizeof *q);
    for (int32_t i = 0; 7 * i < coordinates; i++) {
        q[7 * i + 3] = cos(0.2 * i);
        q[7 * i + 6] = sin(0.2 * i);
    }
    TEST_OK(tb_state_set_q(state, q, coordinates, &error), &error);
}

static inline tb_model *boxes(void)
{
    return stack(4);
}

/* Five boxes in a stack, beside a ball that hangs on a hinge: no pile has hinges. */
static inline tb_model *boxes_and_pendulum(void)
{
    static const double size[3] = {0.1, 0.1, 0.1};
    const tb_handle none = {0};
    tb_error error;
    tb_scene *scene = floor_scene();
    for (int i = 0; i < 5; i++)
        place(scene, TB_SHAPE_BOX, (const double[]){0, 0, 0.1 + 0.2 * i}, size, none);
    tb_body_def body = tb_body_defaults();
    tb_shape_def shape = tb_shape_defaults();
    body.position[0] = body.position[2] = 1;
    TEST_OK(tb_scene_add_body(scene, &body, &shape.body, &error), &error);
    tb_joint_def hinge = tb_joint_defaults();
    hinge.body = shape.body;
    hinge.type = TB_JOINT_HINGE;
    hinge.axis[0] = hinge.axis[2] = 0, hinge.axis[1] = 1;
    TEST_OK(tb_scene_add_joint(scene, &hinge, NULL, &error), &error);
    shape.type = TB_SHAPE_SPHERE;
    shape.size[0] = 0.05;
    shape.position[0] = 0.2;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    return finish(scene);
}

/* Uneven boxes that turn about no axis of theirs: every step has angles. */
static inline tb_model *tumbling(void)
{
    static const double size[3] = {0.1, 0.05, 0.02};
    const tb_handle none = {0};
    tb_scene *scene = floor_scene();
    for (int i = 0; i < 3; i++)
        place(scene, TB_SHAPE_BOX, (const double[]){0.5 * i, 0, 8}, size, none);
    return finish(scene);
}

/* One of each convex shape on the floor, and a hull. */
static inline tb_model *round_things(void)
{
    static const double half[3] = {0.06, 0.05, 0.04};
    const tb_handle none = {0};
    tb_error error;
    double vertices[24];
    int32_t triangles[36];
    tb_handle asset;
    tb_scene *scene = floor_scene();
    place(scene, TB_SHAPE_CAPSULE, (const double[]){0, 0, 0.16}, (const double[]){0.05, 0.1, 0},
          none);
    place(scene, TB_SHAPE_CYLINDER, (const double[]){0.3, 0, 0.08}, (const double[]){0.05, 0.08, 0},
          none);
    place(scene, TB_SHAPE_ELLIPSOID, (const double[]){0.6, 0, 0.05},
          (const double[]){0.08, 0.06, 0.045}, none);
    box_mesh(half, vertices, triangles);
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.vertices = vertices;
    mesh.number_of_vertices = 8;
    mesh.triangles = triangles;
    mesh.number_of_triangles = 12;
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &asset, &error), &error);
    place(scene, TB_SHAPE_CONVEX, (const double[]){0.9, 0, 0.045}, NULL, asset);
    place(scene, TB_SHAPE_CONVEX, (const double[]){0.9, 0, 0.13}, NULL, asset);
    return finish(scene);
}

/* Triangle meshes: a block on a block, and a ball and a box beside on a fixed plate of
 * triangles. A triangle of a side is missing, so that the meshes are no polytopes. */
static inline tb_model *meshes(void)
{
    static const double half[3] = {0.06, 0.05, 0.04}, plate_half[3] = {0.4, 0.4, 0.02};
    const tb_handle none = {0};
    tb_error error;
    double vertices[24];
    int32_t triangles[36];
    tb_handle block;
    tb_mesh_def mesh = tb_mesh_defaults();
    tb_shape_def plate = tb_shape_defaults();
    tb_scene *scene = floor_scene();
    mesh.vertices = vertices;
    mesh.number_of_vertices = 8;
    mesh.triangles = triangles + 3;
    mesh.number_of_triangles = 11;
    mesh.inertia = TB_MESH_INERTIA_SHELL;
    box_mesh(plate_half, vertices, triangles);
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &plate.asset, &error), &error);
    box_mesh(half, vertices, triangles);
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &block, &error), &error);
    plate.type = TB_SHAPE_MESH;
    plate.position[2] = 0.02;
    TEST_OK(tb_scene_add_shape(scene, &plate, NULL, &error), &error);
    place(scene, TB_SHAPE_MESH, (const double[]){0.01, 0.02, 0.081}, NULL, block);
    place(scene, TB_SHAPE_MESH, (const double[]){0.02, 0.01, 0.163}, NULL, block);
    place(scene, TB_SHAPE_SPHERE, (const double[]){0.25, 0.1, 0.091}, (const double[]){0.05, 0, 0},
          none);
    place(scene, TB_SHAPE_BOX, (const double[]){-0.25, 0.1, 0.091},
          (const double[]){0.05, 0.05, 0.05}, none);
    return finish(scene);
}

/* Many contacts: more than a world of a new model has memory for. */
static inline tb_model *crowd(void)
{
    static const double size[3] = {0.05, 0.05, 0.05};
    const tb_handle none = {0};
    tb_scene *scene = floor_scene();
    for (int i = 0; i < 36; i++)
        place(scene, TB_SHAPE_BOX, (const double[]){0.2 * (i % 6), 0.2 * (i / 6), 0.05}, size,
              none);
    return finish(scene);
}

/* Three links on hinges. As an arm it has servos, damping and a limit, swings from its rest and
 * comes to lie on the floor; as a pendulum it hangs high and has nothing but gravity. */
static inline tb_model *links(bool pendulum)
{
    tb_error error;
    tb_scene *scene = floor_scene();
    tb_handle parent = {0};
    for (int i = 0; i < 3; i++) {
        tb_body_def body = tb_body_defaults();
        tb_joint_def hinge = tb_joint_defaults();
        tb_shape_def link = tb_shape_defaults();
        tb_actuator_def servo = tb_actuator_defaults();
        body.parent = parent;
        body.position[i == 0 ? 2 : 0] = i > 0 ? 0.3 : (pendulum ? 2 : 0.25);
        TEST_OK(tb_scene_add_body(scene, &body, &parent, &error), &error);
        hinge.body = parent;
        hinge.type = TB_JOINT_HINGE;
        hinge.axis[0] = 0, hinge.axis[1] = 1, hinge.axis[2] = i == 1 ? 0.5 : 0;
        hinge.damping = pendulum ? 0 : 0.05;
        hinge.limited = !pendulum && i == 2;
        hinge.lower = -1, hinge.upper = 1;
        TEST_OK(tb_scene_add_joint(scene, &hinge, &servo.target, &error), &error);
        link.type = TB_SHAPE_CAPSULE;
        link.body = parent;
        link.position[0] = 0.15;
        link.orientation[0] = link.orientation[2] = sqrt(0.5);
        link.size[0] = 0.03, link.size[1] = 0.12;
        TEST_OK(tb_scene_add_shape(scene, &link, NULL, &error), &error);
        if (pendulum) continue;
        tb_actuator_position_servo(&servo, 3, 0.2);
        servo.force_limited = true;
        servo.force_lower = -2, servo.force_upper = 2;
        TEST_OK(tb_scene_add_actuator(scene, &servo, NULL, &error), &error);
    }
    return finish(scene);
}

static inline tb_model *arm(void)
{
    return links(false);
}

static inline tb_model *pendulum(void)
{
    return links(true);
}

/* A generated scene: jaw and mug; the hand and the mug of grasp.xml. */
static inline tb_model *generated(const char *program, const char *file)
{
    char command[1400], path[1100], folder[] = "/tmp/tribo_gpu_XXXXXX";
    tb_error error;
    tb_model *model = NULL;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command,
             "'%s/tests/data/mug' %s 1 >/dev/null; '%s/tests/data/%s' %s >/dev/null",
             build_folder(), folder, build_folder(), program, folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    TEST_OK(tb_model_load(path, NULL, &model, &error), &error);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    return model;
}

static inline tb_model *jaw_and_mug(void)
{
    return generated("jaw_mug", "jaw_mug.xml");
}

static inline tb_model *hand_and_mug(void)
{
    return generated("hand", "grasp.xml");
}

/* ---- inputs ---- */

static inline void set_actuator(tb_state *state, const char *actuator, double value)
{
    tb_error error;
    const int32_t index = tb_model_find(tb_state_model(state), TB_HANDLE_ACTUATOR, actuator);
    TEST_OK(tb_state_set_control(state, index, value, &error), &error);
}

static inline void close_jaw(tb_state *state)
{
    set_actuator(state, "close-1", 20);
    set_actuator(state, "close+1", 20);
}

/* A keyframe is a grasp, hand open and in place. */
static inline void begin_grasp(tb_state *state)
{
    tb_error error;
    TEST_OK(tb_state_reset(state, 0, &error), &error);
}

#endif
