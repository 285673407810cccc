/* The scene builder: creation, options, bodies, joints, shapes, sites; names and warnings.
 *
 * The builder checks every definition when it is added, so an error points at the call that
 * caused it. A scene is therefore valid, except for faults that only the whole scene shows (see
 * compile.c). */
#include "base/budget.h"
#include "model/model_internal.h"
#include "model/soft.h"

#include <stdlib.h>
#include <string.h>

/* ---- defaults ---- */

tb_scene_def tb_scene_defaults(void)
{
    tb_scene_def def = {0};
    def.gravity[2] = -9.81;
    def.dt = 0.002;
    def.filter_parent = true;
    def.inertia_groups[1] = 5;
    return def;
}

tb_body_def tb_body_defaults(void)
{
    tb_body_def def = {0};
    def.orientation[0] = 1;
    def.inertia_frame[0] = 1;
    return def;
}

tb_joint_def tb_joint_defaults(void)
{
    tb_joint_def def = {0};
    def.type = TB_JOINT_HINGE;
    def.axis[2] = 1;
    return def;
}

tb_surface tb_surface_defaults(void)
{
    tb_surface surface = {0};
    surface.kind = TB_CONTACT_COULOMB;
    surface.friction = 1;
    return surface;
}

tb_volume_constants tb_volume_constants_defaults(void)
{
    /* the thesis's; it prints none for c_s: here balls of 1 m and 1000 kg/m^3 touch for 0.09 s */
    return (tb_volume_constants){.elasticity = 1e7,
                                 .damping = 0.3,
                                 .sliding_velocity = 0.1,
                                 .static_friction = 0.6,
                                 .kinetic_friction = 0.3,
                                 .rotation_damping = 0.02,
                                 .sphere_stiffness = 3e5};
}

tb_shape_def tb_shape_defaults(void)
{
    tb_shape_def def = {0};
    def.type = TB_SHAPE_SPHERE;
    def.orientation[0] = 1;
    def.density = 1000;
    def.mass = -1;
    def.surface = tb_surface_defaults();
    def.category = 1;
    def.mask = 1;
    def.volume_constants = tb_volume_constants_defaults();
    return def;
}

tb_site_def tb_site_defaults(void)
{
    tb_site_def def = {0};
    def.orientation[0] = 1;
    return def;
}

/* ---- life ---- */

static tb_status check_options(tb_scene_def *options, tb_error *error)
{
    tb_check check = tb_check_begin(TB_HANDLE_NONE, NULL, 0, error);
    const char *why = "";
    if (options->name != NULL && !tb_name_is_valid(options->name, &why))
        tb_check_fail(&check, "name", "%s", why);
    tb_check_numbers(&check, "gravity", options->gravity, 3);
    tb_check_not_negative(&check, "density", &options->density, 1);
    tb_check_not_negative(&check, "viscosity", &options->viscosity, 1);
    tb_check_numbers(&check, "wind", options->wind, 3);
    tb_check_not_negative(&check, "sleep_tolerance", &options->sleep_tolerance, 1);
    tb_check_positive(&check, "dt", &options->dt, 1);
    tb_check_not_negative(&check, "minimum_mass", &options->minimum_mass, 1);
    tb_check_not_negative(&check, "minimum_inertia", &options->minimum_inertia, 1);
    tb_check_not_negative(&check, "total_mass", &options->total_mass, 1);
    if ((unsigned)options->inertia_source > TB_INERTIA_GIVEN)
        tb_check_fail(&check, "inertia_source", "%d is none", (int)options->inertia_source);
    return check.status;
}

tb_status tb_scene_set_options(tb_scene *scene, const tb_scene_def *def, tb_error *error)
{
    tb_scene_def options = *def;
    const tb_status status = check_options(&options, error);
    if (status != TB_OK) return status;
    options.name = tb_names_keep(&scene->names, def->name != NULL ? def->name : "");
    if (options.name == NULL) return tb_fail_memory(error, strlen(def->name) + 1, "name");
    scene->options = options;
    return TB_OK;
}

tb_status tb_scene_set_soft(tb_scene *scene, const void *bytes, size_t size, tb_error *error)
{
    if (size >= INT32_MAX)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "soft", "soft bodies of %zu bytes",
                             size);
    unsigned char *copy = TB_ARENA_ARRAY(&scene->data, unsigned char, size + 1);
    if (copy == NULL) return tb_fail_memory(error, size, "soft bodies");
    memcpy(copy, bytes, size);
    scene->soft = copy;
    scene->soft_size = size;
    return TB_OK;
}

bool tb_scene_has_soft(const tb_scene *scene)
{
    return scene->soft != NULL;
}

tb_scene_def tb_scene_options(const tb_scene *scene)
{
    return scene->options;
}

tb_status tb_scene_create(const tb_scene_def *def, tb_scene **scene, tb_error *error)
{
    const tb_scene_def defaults = tb_scene_defaults();
    *scene = NULL;
    tb_scene *made = calloc(1, sizeof *made);
    if (made == NULL) return tb_fail_memory(error, sizeof *made, "scene");
    made->owner = tb_handle_owner();
    tb_names_init(&made->names);
    tb_arena_init(&made->data, 0);
    const tb_status status = tb_scene_set_options(made, def != NULL ? def : &defaults, error);
    if (status != TB_OK)
        tb_scene_destroy(made);
    else
        *scene = made;
    return status;
}

void tb_scene_destroy(tb_scene *scene)
{
    if (scene == NULL) return;
    free(scene->bodies);
    free(scene->inertias);
    free(scene->joints);
    free(scene->shapes);
    free(scene->meshes);
    free(scene->height_fields);
    free(scene->sites);
    free(scene->tendons);
    free(scene->actuators);
    free(scene->equalities);
    free(scene->pairs);
    free(scene->elements);
    free(scene->elastics);
    free(scene->excludes);
    free(scene->keyframes);
    free(scene->sensors);
    free(scene->warnings);
    tb_names_destroy(&scene->names);
    tb_arena_destroy(&scene->data);
    free(scene);
}

/* ---- shared by all elements ---- */

tb_status tb_scene_reserve(void *items, int32_t count, int32_t *capacity, size_t size,
                           tb_handle_kind kind, tb_error *error)
{
    void *array = NULL;
    if (!tb_budget_holds()) return tb_budget_check(error);
    if (count >= TB_SCENE_LIMIT)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, tb_handle_kind_name(kind),
                             "a scene holds at most %d things of a kind: this is %s number %d",
                             (int)TB_SCENE_LIMIT, tb_handle_kind_name(kind), (int)count + 1);
    if (count < *capacity) return TB_OK;
    memcpy(&array, items, sizeof array); /* items is the address of a pointer of any type */
    array = tb_grow(array, count + 1, capacity, size);
    if (array == NULL)
        return tb_fail_memory(error, ((size_t)count + 1) * size, tb_handle_kind_name(kind));
    memcpy(items, &array, sizeof array);
    return TB_OK;
}

tb_status tb_scene_enter_name(tb_scene *scene, tb_handle_kind kind, const char *name, int32_t index,
                              const char **kept, tb_error *error)
{
    *kept = "";
    if (name == NULL || name[0] == 0) return TB_OK;
    const char *copy = tb_names_keep(&scene->names, name);
    if (copy == NULL || !tb_names_insert(&scene->names, kind, copy, index))
        return tb_fail_memory(error, strlen(name) + 1, "name");
    *kept = copy;
    return TB_OK;
}

static void give_handle(const tb_scene *scene, tb_handle_kind kind, int32_t index,
                        tb_handle *handle)
{
    if (handle != NULL) *handle = tb_handle_make(kind, scene->owner, index);
}

/* ---- bodies ---- */

static void check_given_inertia(tb_check *check, const tb_scene_def *options, scene_inertia *given)
{
    tb_check_not_negative(check, "mass", &given->mass, 1);
    tb_check_numbers(check, "com", given->com, 3);
    tb_check_quaternion(check, "inertia_frame", given->frame);
    tb_check_numbers(check, "inertia", given->inertia, 6);
    tb_check_inertia(check, options, given);
}

tb_status tb_scene_add_body(tb_scene *scene, const tb_body_def *def, tb_handle *handle,
                            tb_error *error)
{
    const int32_t index = scene->number_of_bodies;
    tb_status status = TB_OK;
    scene_body body = {0};
    scene_inertia given = {0};
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    /* check a copy */
    tb_check check = tb_check_begin(TB_HANDLE_BODY, def->name, index, error);
    memcpy(body.position, def->position, sizeof body.position);
    memcpy(body.orientation, def->orientation, sizeof body.orientation);
    body.kinematic = def->kinematic;
    body.gravity_compensation = def->gravity_compensation;
    body.sleep = def->sleep;
    if ((unsigned)def->sleep > TB_SLEEP_INIT)
        tb_check_fail(&check, "sleep", "%d is none", (int)def->sleep);
    body.inertia = -1;
    tb_check_handle(&check, scene, "parent", def->parent, TB_HANDLE_BODY, true, &body.parent);
    tb_check_numbers(&check, "position", body.position, 3);
    tb_check_quaternion(&check, "orientation", body.orientation);
    tb_check_numbers(&check, "gravity_compensation", &body.gravity_compensation, 1);
    if (body.kinematic && body.parent >= 0)
        tb_check_fail(&check, "kinematic", "bodies must be children of the world");
    if (def->has_inertia) {
        given.mass = def->mass;
        memcpy(given.com, def->com, sizeof given.com);
        memcpy(given.frame, def->inertia_frame, sizeof given.frame);
        memcpy(given.inertia, def->inertia, sizeof given.inertia);
        check_given_inertia(&check, &scene->options, &given);
    }
    tb_check_name(&check, scene);
    if (check.status != TB_OK) return check.status;

    /* keep it */
    status = tb_scene_reserve(&scene->bodies, index, &scene->body_capacity, sizeof body,
                              TB_HANDLE_BODY, error);
    if (status == TB_OK && def->has_inertia)
        status = tb_scene_reserve(&scene->inertias, scene->number_of_inertias,
                                  &scene->inertia_capacity, sizeof given, TB_HANDLE_BODY, error);
    if (status == TB_OK)
        status = tb_scene_enter_name(scene, TB_HANDLE_BODY, def->name, index, &body.name, error);
    if (status != TB_OK) return status;
    if (def->has_inertia) {
        body.inertia = scene->number_of_inertias++;
        scene->inertias[body.inertia] = given;
    }
    scene->bodies[index] = body;
    scene->number_of_bodies++;
    give_handle(scene, TB_HANDLE_BODY, index, handle);
    return TB_OK;
}

/* ---- joints ---- */

/* The rules about several joints on one body, which are MJCF's: a free joint is the only one, no
 * rotation follows a ball, at most six dofs. */
static void check_combination(tb_check *check, scene_body *body, tb_joint_type type)
{
    static const int dofs[] = {[TB_JOINT_FIXED] = 0, [TB_JOINT_HINGE] = 1, [TB_JOINT_SLIDE] = 1,
                               [TB_JOINT_BALL] = 3,  [TB_JOINT_FREE] = 6,  [TB_JOINT_PLANAR] = 3};
    if (check->status != TB_OK || type == TB_JOINT_FIXED) return;
    if (body->has_free || (type == TB_JOINT_FREE && body->number_of_dofs > 0))
        tb_check_fail(check, "type", "free must be the only joint of its body");
    else if (type == TB_JOINT_FREE && body->parent >= 0)
        tb_check_fail(check, "type", "free is for children of the world only");
    else if (body->has_ball && type != TB_JOINT_SLIDE)
        tb_check_fail(check, "type", "must not rotate after a ball joint on the same body");
    else if (body->number_of_dofs + dofs[type] > 6)
        tb_check_fail(check, "type", "gives its body more than 6 degrees of freedom");
    if (check->status != TB_OK) return;
    body->number_of_dofs = (uint8_t)(body->number_of_dofs + dofs[type]);
    body->has_free = body->has_free || type == TB_JOINT_FREE;
    body->has_ball = body->has_ball || type == TB_JOINT_BALL;
}

static void check_joint(tb_check *check, tb_joint_def *joint)
{
    const bool scalar = joint->type == TB_JOINT_HINGE || joint->type == TB_JOINT_SLIDE;
    tb_check_numbers(check, "position", joint->position, 3);
    if (scalar || joint->type == TB_JOINT_PLANAR) {
        tb_check_axis(check, "axis", joint->axis);
    } else {
        /* the other types ignore the axis; the canonical form has Z */
        joint->axis[0] = joint->axis[1] = 0;
        joint->axis[2] = 1;
    }
    if (joint->type == TB_JOINT_FREE) memset(joint->position, 0, sizeof joint->position);
    if (joint->limited && !scalar && joint->type != TB_JOINT_BALL)
        tb_check_fail(check, "limited", "is for hinge, slide and ball joints only");
    if (joint->type == TB_JOINT_BALL) joint->lower = 0;
    tb_check_bounds(check, "limits", joint->limited, &joint->lower, &joint->upper);
    tb_check_not_negative(check, "stiffness", &joint->stiffness, 1);
    tb_check_not_negative(check, "damping", &joint->damping, 1);
    tb_check_not_negative(check, "dry_friction", &joint->dry_friction, 1);
    tb_check_not_negative(check, "armature", &joint->armature, 1);
    tb_check_numbers(check, "stiffness_polynomial", joint->stiffness_polynomial, 2);
    tb_check_numbers(check, "damping_polynomial", joint->damping_polynomial, 2);
    if (!scalar) joint->actuator_force_limited = false;
    if (!joint->actuator_force_limited)
        joint->actuator_force_lower = joint->actuator_force_upper = 0;
    tb_check_bounds(check, "actuator_force_limited", joint->actuator_force_limited,
                    &joint->actuator_force_lower, &joint->actuator_force_upper);
    if (!scalar) joint->reference = joint->spring_reference = 0;
    tb_check_numbers(check, "spring_reference", &joint->spring_reference, 1);
    tb_check_numbers(check, "reference", &joint->reference, 1);
}

tb_status tb_scene_add_joint(tb_scene *scene, const tb_joint_def *def, tb_handle *handle,
                             tb_error *error)
{
    const int32_t index = scene->number_of_joints;
    int32_t body_index = -1;
    scene_body body = {0};
    tb_joint_def joint = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_JOINT, def->name, index, error);
    if ((unsigned)def->type > TB_JOINT_PLANAR)
        tb_check_fail(&check, "type", "%d is none", (int)def->type);
    if (tb_handle_is_none(def->body))
        tb_check_fail(&check, "body", "is missing: the world has no joints");
    tb_check_handle(&check, scene, "body", def->body, TB_HANDLE_BODY, false, &body_index);
    if (check.status == TB_OK) {
        body = scene->bodies[body_index];
        if (body.kinematic) tb_check_fail(&check, "body", "is kinematic and can have no joints");
        check_combination(&check, &body, def->type);
    }
    check_joint(&check, &joint);
    tb_check_name(&check, scene);
    if (check.status != TB_OK) return check.status;

    tb_status status = tb_scene_reserve(&scene->joints, index, &scene->joint_capacity, sizeof joint,
                                        TB_HANDLE_JOINT, error);
    if (status == TB_OK)
        status = tb_scene_enter_name(scene, TB_HANDLE_JOINT, def->name, index, &joint.name, error);
    if (status != TB_OK) return status;
    scene->joints[index] = joint;
    scene->bodies[body_index] = body;
    scene->number_of_joints++;
    give_handle(scene, TB_HANDLE_JOINT, index, handle);
    return TB_OK;
}

/* ---- shapes and sites ---- */

/* Sizes by type; unused sizes become 0. */
static void check_size(tb_check *check, tb_shape_def *shape)
{
    int used = 0;
    switch (shape->type) {
    case TB_SHAPE_SPHERE:
    case TB_SHAPE_MESH: used = 1; break;
    case TB_SHAPE_CAPSULE:
    case TB_SHAPE_CYLINDER: used = 2; break;
    case TB_SHAPE_BOX:
    case TB_SHAPE_ELLIPSOID: used = 3; break;
    default: break;
    }
    for (int i = used; i < 3; i++) shape->size[i] = 0;
    if (shape->type == TB_SHAPE_CAPSULE) { /* the segment may be a point */
        tb_check_positive(check, "size", shape->size, 1);
        tb_check_not_negative(check, "size", shape->size + 1, 1);
    } else if (shape->type == TB_SHAPE_MESH) {
        tb_check_not_negative(check, "size", shape->size, 1);
    } else {
        tb_check_positive(check, "size", shape->size, used);
    }
}

static void check_asset(tb_check *check, const tb_scene *scene, tb_shape_def *shape)
{
    int32_t asset = -1;
    if (shape->type == TB_SHAPE_CONVEX || shape->type == TB_SHAPE_MESH)
        tb_check_handle(check, scene, "asset", shape->asset, TB_HANDLE_MESH, false, &asset);
    else if (shape->type == TB_SHAPE_HEIGHT_FIELD)
        tb_check_handle(check, scene, "asset", shape->asset, TB_HANDLE_HEIGHT_FIELD, false, &asset);
    else
        memset(&shape->asset, 0, sizeof shape->asset);
    if (check->status == TB_OK && shape->type == TB_SHAPE_MESH &&
        scene->meshes[asset].number_of_triangles == 0)
        tb_check_fail(check, "asset", "has no triangles (a convex shape needs none)");
}

tb_status tb_scene_add_shape(tb_scene *scene, const tb_shape_def *def, tb_handle *handle,
                             tb_error *error)
{
    const int32_t index = scene->number_of_shapes;
    int32_t body = -1;
    tb_shape_def shape = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_SHAPE, def->name, index, error);
    if ((unsigned)def->type > TB_SHAPE_HEIGHT_FIELD)
        tb_check_fail(&check, "type", "%d is none", (int)def->type);
    tb_check_handle(&check, scene, "body", def->body, TB_HANDLE_BODY, true, &body);
    tb_check_numbers(&check, "position", shape.position, 3);
    tb_check_quaternion(&check, "orientation", shape.orientation);
    check_size(&check, &shape);
    check_asset(&check, scene, &shape);
    tb_check_not_negative(&check, "density", &shape.density, 1);
    tb_check_numbers(&check, "mass", &shape.mass, 1);
    if (shape.mass < 0) shape.mass = -1;
    if (!shape.fluid_ellipsoid)
        memset(shape.fluid_coefficients, 0, sizeof shape.fluid_coefficients);
    tb_check_numbers(&check, "fluid_coefficients", shape.fluid_coefficients, 5);
    tb_check_numbers(&check, "surface_velocity", shape.surface_velocity, 6);
    if (shape.fluid_ellipsoid && (shape.type < TB_SHAPE_SPHERE || shape.type > TB_SHAPE_ELLIPSOID))
        tb_check_fail(&check, "fluid_ellipsoid",
                      "is for spheres, capsules, cylinders, boxes and ellipsoids only");
    tb_check_surface(&check, &shape.surface);
    if (!shape.has_volume_constants) shape.volume_constants = tb_volume_constants_defaults();
    tb_check_volume_constants(&check, &shape.volume_constants);
    tb_check_name(&check, scene);
    tb_scene_keep_look(scene, &check, &shape);
    if (check.status != TB_OK) return check.status;

    tb_status status = tb_scene_reserve(&scene->shapes, index, &scene->shape_capacity, sizeof shape,
                                        TB_HANDLE_SHAPE, error);
    if (status == TB_OK)
        status = tb_scene_enter_name(scene, TB_HANDLE_SHAPE, def->name, index, &shape.name, error);
    if (status != TB_OK) return status;
    scene->shapes[index] = shape;
    scene->number_of_shapes++;
    give_handle(scene, TB_HANDLE_SHAPE, index, handle);
    return TB_OK;
}

tb_status tb_scene_set_volume_constants(tb_scene *scene, int32_t shape,
                                        const tb_volume_constants *constants, tb_error *error)
{
    tb_shape_def *def = &scene->shapes[shape];
    tb_volume_constants checked = *constants;
    tb_check check = tb_check_begin(TB_HANDLE_SHAPE, def->name, shape, error);
    tb_check_volume_constants(&check, &checked);
    if (check.status != TB_OK) return check.status;
    def->has_volume_constants = true;
    def->volume_constants = checked;
    return TB_OK;
}

tb_status tb_scene_add_site(tb_scene *scene, const tb_site_def *def, tb_handle *handle,
                            tb_error *error)
{
    const int32_t index = scene->number_of_sites;
    int32_t body = -1;
    tb_site_def site = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_SITE, def->name, index, error);
    tb_check_handle(&check, scene, "body", def->body, TB_HANDLE_BODY, true, &body);
    tb_check_numbers(&check, "position", site.position, 3);
    tb_check_quaternion(&check, "orientation", site.orientation);
    tb_check_name(&check, scene);
    if (check.status != TB_OK) return check.status;

    tb_status status = tb_scene_reserve(&scene->sites, index, &scene->site_capacity, sizeof site,
                                        TB_HANDLE_SITE, error);
    if (status == TB_OK)
        status = tb_scene_enter_name(scene, TB_HANDLE_SITE, def->name, index, &site.name, error);
    if (status != TB_OK) return status;
    scene->sites[index] = site;
    scene->number_of_sites++;
    give_handle(scene, TB_HANDLE_SITE, index, handle);
    return TB_OK;
}

/* ---- names and warnings ---- */

tb_handle tb_scene_find(const tb_scene *scene, tb_handle_kind kind, const char *name)
{
    const tb_handle none = {0};
    const int32_t index = name == NULL ? -1 : tb_names_find(&scene->names, kind, name);
    return index < 0 ? none : tb_handle_make(kind, scene->owner, index);
}

tb_status tb_scene_warn(tb_scene *scene, const char *message, tb_error *error)
{
    tb_status status =
        tb_scene_reserve(&scene->warnings, scene->number_of_warnings, &scene->warning_capacity,
                         sizeof *scene->warnings, TB_HANDLE_NONE, error);
    if (status != TB_OK) return status;
    const char *copy = tb_names_keep(&scene->names, message);
    if (copy == NULL) return tb_fail_memory(error, strlen(message) + 1, "warning");
    scene->warnings[scene->number_of_warnings++] = copy;
    return TB_OK;
}

static bool is_mesh(const tb_shape_def *shape)
{
    return shape->type == TB_SHAPE_MESH || shape->type == TB_SHAPE_HEIGHT_FIELD;
}

bool tb_scene_has_meshes(const tb_scene *scene)
{
    bool found = scene->number_of_elements > 0 || scene->number_of_elastics > 0;
    for (int32_t i = 0; i < scene->number_of_shapes && !found; i++) {
        const tb_shape_def *shape = &scene->shapes[i];
        found = is_mesh(shape) && (shape->category != 0 || shape->mask != 0);
    }
    /* listed pairs collide regardless of masks */
    for (int32_t i = 0; i < scene->number_of_pairs && !found; i++)
        found = is_mesh(&scene->shapes[scene_index(scene->pairs[i].a)]) ||
                is_mesh(&scene->shapes[scene_index(scene->pairs[i].b)]);
    return found;
}

int32_t tb_scene_number_of_warnings(const tb_scene *scene)
{
    return scene->number_of_warnings;
}

const char *tb_scene_warning(const tb_scene *scene, int32_t index)
{
    return index >= 0 && index < scene->number_of_warnings ? scene->warnings[index] : "";
}
