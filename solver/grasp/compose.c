/* From a request to a plan: hand, object and table in one compiled world. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

static const double DEFAULT_DT = 0.002; /* s */
enum { STEPS_AT_ONCE = 16 };

tb_status grasp_plan_warn(tb_grasp_plan *plan, tb_error *error, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const int32_t n = plan->number_of_warnings;
    if (n == plan->warning_capacity) {
        char **grown = tb_grow(plan->warnings, n + 1, &plan->warning_capacity, sizeof *grown);
        if (grown == NULL) return tb_fail_memory(error, 0, "a warning");
        plan->warnings = grown;
    }
    plan->warnings[n] = strdup(text);
    if (plan->warnings[n] == NULL) return tb_fail_memory(error, 0, "a warning");
    plan->number_of_warnings++;
    return TB_OK;
}

/* ---- copies of the caller's arrays ---- */

static tb_status keep_poses(const tb_grasp_request *request, tb_grasp_plan *plan, tb_error *error)
{
    plan->poses = calloc((size_t)request->number_of_poses, sizeof *plan->poses);
    if (plan->poses == NULL) return tb_fail_memory(error, 0, "poses");
    for (int32_t i = 0; i < request->number_of_poses; i++) {
        tb_grasp_pose *pose = &plan->poses[i];
        *pose = request->poses[i];
        plan->number_of_poses = i + 1;
        pose->name = strdup(pose->name != NULL ? pose->name : "");
        if (pose->name == NULL) return tb_fail_memory(error, 0, "poses");
    }
    return TB_OK;
}

static tb_status keep_protocol(const tb_grasp_request *request, tb_grasp_plan *plan,
                               tb_error *error)
{
    plan->protocol = request->protocol;
    plan->protocol.shakes = NULL;
    const size_t n = (size_t)request->protocol.number_of_shakes;
    tb_grasp_shake *shakes = calloc(n + 1, sizeof *shakes);
    plan->shake_ends = calloc(n + 1, sizeof *plan->shake_ends);
    if (n > 0 && shakes != NULL) memcpy(shakes, request->protocol.shakes, n * sizeof *shakes);
    plan->protocol.shakes = shakes;
    if (shakes == NULL || plan->shake_ends == NULL) return tb_fail_memory(error, 0, "shakes");
    const tb_vec3 up = tb_v3(0, 0, 1);
    for (size_t i = 0; i < n; i++)
        tb_v3_store(shakes[i].axis, tb_v3_normalize(tb_v3_load(shakes[i].axis), up));
    tb_v3_store(plan->protocol.approach,
                tb_v3_normalize(tb_v3_load(request->protocol.approach), up));
    return TB_OK;
}

void grasp_plan_options(const tb_grasp_request *request, tb_grasp_plan *plan)
{
    plan->step = request->step;
    plan->step.threads = plan->step.solve.threads = 1;
    snprintf(plan->solver, sizeof plan->solver, "%s",
             request->step.solve.solver != NULL ? request->step.solve.solver : "");
    plan->step.solve.solver = plan->solver;
    plan->dt = request->step.dt > 0 ? request->step.dt : DEFAULT_DT;
    plan->step.dt = plan->dt;
    plan->perturbation = request->perturbation;
    plan->confidence = request->confidence;
    plan->object_frame = grasp_frame_make(request->object.position, request->object.orientation);
}

/* ---- the object ---- */

tb_status grasp_object_root(const tb_model *file, int32_t *root, tb_error *error)
{
    int32_t roots = 0;
    for (int32_t b = 1; b < file->number_of_bodies; b++) {
        if (file->bodies[b].parent != 0) continue;
        roots++;
        *root = b;
    }
    if (roots == 1) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "object",
                         "the object has %d bodies on the world, not one", (int)roots);
}

/* The body that is grasped, if it can move freely. */
static tb_status find_object(const tb_model *file, tb_grasp_plan *plan, int32_t *root,
                             tb_error *error)
{
    int32_t shapes = 0;
    const tb_status status = grasp_object_root(file, root, error);
    if (status != TB_OK) return status;
    const tb_model_body *body = &file->bodies[*root];
    const bool free_body =
        body->number_of_joints == 1 && file->joints[body->joint].type == TB_JOINT_FREE;
    if (body->number_of_joints > 0 && !free_body)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "object",
                             "the object's body '%.80s' has joints other than a free one",
                             tb_model_thing_name(file, TB_HANDLE_BODY, *root));
    for (int32_t s = 0; s < file->number_of_shapes; s++) shapes += file->shapes[s].body == 0;
    if (shapes > 0)
        return grasp_plan_warn(plan, error,
                               "%d shapes that the object's file has fixed to the world are left "
                               "out",
                               (int)shapes);
    return TB_OK;
}

/* mu of the object's and the table's surfaces; 0: as the scene says. */
static double surface_friction(const tb_grasp_request *request)
{
    const tb_grasp_object *o = &request->object;
    return o->friction > 0 ? o->friction : o->own_friction;
}

static tb_status add_object(tb_scene *scene, const tb_grasp_request *request, const tb_model *file,
                            tb_grasp_plan *plan, tb_error *error)
{
    tb_merge_def merge = tb_merge_defaults();
    tb_status status = find_object(file, plan, &merge.base, error);
    if (status != TB_OK) return status;
    if (!(file->total_mass > 0))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "object", "the object has no mass");
    merge.prefix = "object/";
    merge.convex = request->object.convex;
    merge.recentre = file->number_of_bodies == 2;
    if (surface_friction(request) > 0) merge.friction = surface_friction(request);
    if (!(request->object.friction > 0)) merge.spin = request->object.own_spin;
    if (request->object.mass > 0) merge.mass_scale = request->object.mass / file->total_mass;
    tb_v3_store(merge.position, plan->object_frame.position);
    tb_q_store(merge.orientation, plan->object_frame.orientation);
    plan->object_mass = merge.mass_scale * file->total_mass;
    if (merge.recentre) plan->object_origin = tb_v3_load(file->bodies[merge.base].com);

    /* the object's root is the first body after the hand */
    plan->object = plan->hand_end;
    plan->object_end = plan->object + file->number_of_bodies - 1;
    status = tb_scene_add_model(scene, file, &merge, error);
    if (status == TB_OK) status = tb_scene_free_body(scene, plan->object - 1, "object", error);
    return status;
}

/* ---- the world ---- */

/* Lowest point of the object in its initial pose, m. */
static double lowest(const tb_grasp_plan *plan, const tb_body_motion *motions)
{
    const tb_model *m = plan->model;
    double bottom = INFINITY;
    for (int32_t s = 0; s < m->number_of_shapes; s++) {
        const int32_t b = m->shapes[s].body;
        if (b < plan->object || b >= plan->object_end) continue;
        if (m->shapes[s].category == 0 && m->shapes[s].mask == 0) continue;
        const grasp_frame frame = grasp_frame_of(&motions[b]);
        bottom = fmin(bottom, -grasp_support(m, s, &frame, tb_v3(0, 0, -1)));
    }
    return bottom;
}

/* Measures the compiled object: its extent and its surface. */
static tb_status measure_object(tb_grasp_plan *plan, tb_error *error)
{
    const tb_model *m = plan->model;
    tb_state *state = NULL;
    tb_body_motion *motions = calloc((size_t)m->number_of_bodies, sizeof *motions);
    tb_status status = motions == NULL ? tb_fail_memory(error, 0, "an object") : TB_OK;
    if (status == TB_OK) status = tb_state_create(m, &state, error);
    if (status == TB_OK) status = tb_state_body_motions(state, motions);
    if (status == TB_OK) {
        const tb_vec3 com = tb_v3_load(motions[plan->object].com);
        plan->table_height = lowest(plan, motions);
        plan->object_radius = plan->object_friction = 0;
        for (int32_t s = 0; s < m->number_of_shapes; s++) {
            const int32_t b = m->shapes[s].body;
            if (b < plan->object || b >= plan->object_end) continue;
            const grasp_frame frame = grasp_frame_of(&motions[b]);
            const double reach = grasp_reach(m, s, grasp_frame_in(&frame, com));
            plan->object_radius = fmax(plan->object_radius, reach);
            plan->object_friction = fmax(plan->object_friction, m->shapes[s].surface.friction);
        }
        if (!(plan->object_radius > 0) || !isfinite(plan->table_height))
            status = tb_fail_field(error, TB_INVALID_ARGUMENT, "object",
                                   "the object has no shapes that collide");
    }
    tb_state_destroy(state);
    free(motions);
    return status;
}

static tb_status add_table(tb_scene *scene, const tb_grasp_request *request,
                           const tb_grasp_plan *plan, tb_error *error)
{
    tb_shape_def def = tb_shape_defaults();
    def.name = "table";
    def.type = TB_SHAPE_PLANE;
    def.position[2] = plan->table_height;
    def.surface.friction =
        surface_friction(request) > 0 ? surface_friction(request) : plan->object_friction;
    return tb_scene_add_shape(scene, &def, NULL, error);
}

/* Builds hand (NULL: none), object and table into one world. The table's height needs the compiled
 * object, so with a table this function runs again. */
static tb_status build(const tb_grasp_request *request, tb_grasp_plan *plan, const grasp_hand *hand,
                       const tb_model *object, bool table, tb_error *error)
{
    tb_scene_def def = tb_scene_defaults();
    tb_scene *scene = NULL;
    def.name = "grasp";
    def.dt = plan->dt;
    memcpy(def.gravity, plan->protocol.gravity, sizeof def.gravity);
    plan->carrier = 1;
    plan->hand_end = hand != NULL ? hand->bare->number_of_bodies : plan->carrier;
    tb_model_destroy(plan->model);
    plan->model = NULL;
    tb_status status = tb_scene_create(&def, &scene, error);
    if (status == TB_OK && hand != NULL) status = grasp_hand_add(scene, hand, error);
    if (status == TB_OK) status = add_object(scene, request, object, plan, error);
    if (status == TB_OK && table) status = add_table(scene, request, plan, error);
    if (status == TB_OK) status = tb_scene_compile(scene, &plan->model, error);
    tb_scene_destroy(scene);
    if (status == TB_OK && !table) status = measure_object(plan, error);
    return status;
}

static tb_status check_numbering(tb_grasp_plan *plan, tb_error *error)
{
    const tb_model *m = plan->model;
    const tb_model_body *object = &m->bodies[plan->object];
    plan->object_coordinate = object->joint >= 0 ? m->joints[object->joint].coordinate : -1;
    if (m->number_of_bodies != plan->object_end || m->bodies[plan->carrier].kinematic < 0 ||
        object->parent != 0 || plan->object_coordinate != plan->hand_coordinates)
        return tb_fail(error, TB_INTERNAL, "the parts of a grasp's world are out of order");
    return TB_OK;
}

static tb_status pass_warnings(tb_grasp_plan *plan, const char *whose, const tb_scene *scene,
                               tb_error *error)
{
    tb_status status = TB_OK;
    const int32_t count = tb_scene_number_of_warnings(scene);
    for (int32_t i = 0; i < count && status == TB_OK; i++)
        status = grasp_plan_warn(plan, error, "%s: %.220s", whose, tb_scene_warning(scene, i));
    return status;
}

tb_status grasp_plan_make(const tb_grasp_request *request, tb_grasp_plan *plan, tb_error *error)
{
    grasp_hand hand = {0};
    tb_model *object = NULL, *alone = NULL;
    memset(plan, 0, sizeof *plan);
    grasp_plan_options(request, plan);
    plan->steps_at_once = STEPS_AT_ONCE;
    tb_status status = keep_protocol(request, plan, error);
    if (status == TB_OK) status = keep_poses(request, plan, error);
    if (status == TB_OK) status = pass_warnings(plan, "object", request->object.scene, error);
    if (status == TB_OK) status = grasp_hand_make(request, plan, &hand, error);
    if (status == TB_OK) status = grasp_phases_make(plan, error);
    if (status == TB_OK) status = grasp_warn_of_haste(plan, error);
    if (status == TB_OK) status = tb_scene_compile(request->object.scene, &object, error);
    if (status == TB_OK) status = build(request, plan, &hand, object, false, error);
    plan->table = !request->object.no_table;
    if (status == TB_OK && plan->table) {
        const int32_t warnings = plan->number_of_warnings;
        status = build(request, plan, NULL, object, true, error);
        alone = plan->model;
        plan->model = NULL;
        if (status == TB_OK) status = build(request, plan, &hand, object, true, error);
        while (plan->number_of_warnings > warnings) /* later runs repeat no warning */
            free(plan->warnings[--plan->number_of_warnings]);
        if (status == TB_OK) status = grasp_warn_of_motion(plan, alone, error);
    }
    if (status == TB_OK) status = check_numbering(plan, error);
    grasp_hand_free(&hand);
    tb_model_destroy(object);
    tb_model_destroy(alone);
    if (status != TB_OK) grasp_plan_free(plan);
    return status;
}

void grasp_plan_free(tb_grasp_plan *plan)
{
    for (int32_t i = 0; i < plan->number_of_poses; i++) free((char *)plan->poses[i].name);
    for (int32_t i = 0; i < plan->number_of_warnings; i++) free(plan->warnings[i]);
    free(plan->poses);
    free(plan->filming.poses);
    free(plan->warnings);
    free((tb_grasp_shake *)plan->protocol.shakes);
    free(plan->shake_ends);
    grasp_hand_forget(plan);
    free(plan->open_q);
    free(plan->closed_q);
    free(plan->sources);
    free(plan->controls);
    free(plan->closing);
    free(plan->open);
    free(plan->close);
    tb_model_destroy(plan->model);
    memset(plan, 0, sizeof *plan);
}
