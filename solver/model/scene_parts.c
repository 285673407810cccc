/* The scene builder, second half: assets, tendons, actuators, equalities, pairs, excludes,
 * keyframes. These refer to bodies, joints and shapes, and own arrays. */
#include "model/model_internal.h"

#include <string.h>

/* ---- defaults ---- */

tb_mesh_def tb_mesh_defaults(void)
{
    tb_mesh_def def = {0};
    return def;
}

tb_height_field_def tb_height_field_defaults(void)
{
    tb_height_field_def def = {0};
    def.half_x = def.half_y = 1;
    return def;
}

tb_tendon_def tb_tendon_defaults(void)
{
    tb_tendon_def def = {0};
    return def;
}

tb_tendon_point tb_tendon_point_defaults(void)
{
    tb_tendon_point point = {.kind = TB_TENDON_SITE, .orientation = {1}};
    return point;
}

tb_equality_def tb_equality_defaults(void)
{
    tb_equality_def def = {0};
    def.orientation[0] = 1;
    def.polynomial[1] = 1;
    return def;
}

tb_pair_def tb_pair_defaults(void)
{
    tb_pair_def def = {0};
    def.surface = tb_surface_defaults();
    return def;
}

tb_keyframe_def tb_keyframe_defaults(void)
{
    tb_keyframe_def def = {0};
    return def;
}

/* ---- common ---- */

/* Reserves an entry and copies the name: the last step that can fail in every function of this
 * file. */
static tb_status enter(tb_scene *scene, void *items, int32_t count, int32_t *capacity, size_t size,
                       tb_handle_kind kind, const char *name, const char **kept, tb_error *error)
{
    const tb_status status = tb_scene_reserve(items, count, capacity, size, kind, error);
    if (status != TB_OK) return status;
    return tb_scene_enter_name(scene, kind, name, count, kept, error);
}

static void give_handle(const tb_scene *scene, tb_handle_kind kind, int32_t index,
                        tb_handle *handle)
{
    if (handle != NULL) *handle = tb_handle_make(kind, scene->owner, index);
}

/* A copy in the scene's memory; *status receives a failure. NULL for no items. */
static void *keep(tb_scene *scene, const void *items, int32_t count, size_t size, tb_status *status,
                  tb_error *error)
{
    if (*status != TB_OK || count == 0) return NULL;
    void *copy = tb_arena_take_array(&scene->data, (size_t)count, size);
    if (copy == NULL)
        *status = tb_fail_memory(error, (size_t)count * size, "array");
    else
        memcpy(copy, items, (size_t)count * size);
    return copy;
}

/* A checked array of numbers in the scene's memory. */
static double *keep_numbers(tb_scene *scene, tb_check *check, const char *field,
                            const double *numbers, int32_t count)
{
    if (check->status == TB_OK && count > 0 && numbers == NULL)
        tb_check_fail(check, field, "is missing");
    double *copy = keep(scene, numbers, count, sizeof *numbers, &check->status, check->error);
    if (copy != NULL) tb_check_numbers(check, field, copy, count);
    return copy;
}

/* ---- assets ---- */

static void check_triangles(tb_check *check, const tb_mesh_def *def)
{
    if (def->number_of_triangles < 0 || def->number_of_triangles > TB_MESH_LIMIT)
        tb_check_fail(check, "number_of_triangles", "%d is out of range",
                      (int)def->number_of_triangles);
    if (def->number_of_triangles > 0 && def->triangles == NULL)
        tb_check_fail(check, "triangles", "are missing");
    if (check->status != TB_OK) return;
    for (int32_t i = 0; i < 3 * def->number_of_triangles; i++)
        if (def->triangles[i] < 0 || def->triangles[i] >= def->number_of_vertices) {
            tb_check_fail(check, "triangles", "[%d] uses vertex %d of %d", (int)(i / 3),
                          (int)def->triangles[i], (int)def->number_of_vertices);
            return;
        }
}

tb_status tb_scene_add_mesh(tb_scene *scene, const tb_mesh_def *def, tb_handle *handle,
                            tb_error *error)
{
    const int32_t index = scene->number_of_meshes;
    tb_mesh_def mesh = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_MESH, def->name, index, error);
    const tb_arena_mark mark = tb_arena_get_mark(&scene->data);
    if (def->number_of_vertices < 3 || def->number_of_vertices > TB_MESH_LIMIT)
        tb_check_fail(&check, "number_of_vertices", "must be 3 to %d, not %d", (int)TB_MESH_LIMIT,
                      (int)def->number_of_vertices);
    if ((unsigned)def->inertia > TB_MESH_INERTIA_SHELL)
        tb_check_fail(&check, "inertia", "%d is none", (int)def->inertia);
    if (def->most_hull_vertices != 0 && def->most_hull_vertices < 4)
        tb_check_fail(&check, "most_hull_vertices", "is %d, neither 0 nor at least 4",
                      (int)def->most_hull_vertices);
    check_triangles(&check, def);
    tb_check_name(&check, scene);
    if (check.status == TB_OK) {
        mesh.vertices =
            keep_numbers(scene, &check, "vertices", def->vertices, 3 * def->number_of_vertices);
        mesh.triangles = keep(scene, def->triangles, 3 * def->number_of_triangles, sizeof(int32_t),
                              &check.status, error);
    }
    if (check.status == TB_OK)
        check.status = enter(scene, &scene->meshes, index, &scene->mesh_capacity, sizeof mesh,
                             TB_HANDLE_MESH, def->name, &mesh.name, error);
    if (check.status != TB_OK) {
        tb_arena_return_to(&scene->data, mark);
        return check.status;
    }
    scene->meshes[index] = mesh;
    scene->number_of_meshes++;
    give_handle(scene, TB_HANDLE_MESH, index, handle);
    return TB_OK;
}

tb_status tb_scene_add_height_field(tb_scene *scene, const tb_height_field_def *def,
                                    tb_handle *handle, tb_error *error)
{
    const int32_t index = scene->number_of_height_fields;
    tb_height_field_def field = *def;
    double *heights = NULL;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_HEIGHT_FIELD, def->name, index, error);
    const tb_arena_mark mark = tb_arena_get_mark(&scene->data);
    if (def->rows < 2 || def->rows > TB_MESH_LIMIT)
        tb_check_fail(&check, "rows", "must be at least 2, but is %d", (int)def->rows);
    else if (def->columns < 2 || def->columns > TB_MESH_LIMIT / def->rows)
        tb_check_fail(&check, "columns",
                      "must be at least 2 and rows x columns at most %d: %d x %d",
                      (int)TB_MESH_LIMIT, (int)def->rows, (int)def->columns);
    tb_check_positive(&check, "half_x", &field.half_x, 1);
    tb_check_positive(&check, "half_y", &field.half_y, 1);
    tb_check_not_negative(&check, "base", &field.base, 1);
    tb_check_name(&check, scene);
    if (check.status == TB_OK)
        heights = keep_numbers(scene, &check, "heights", def->heights, def->rows * def->columns);
    if (check.status == TB_OK)
        tb_check_not_negative(&check, "heights", heights, def->rows * def->columns);
    field.heights = heights;
    if (check.status == TB_OK)
        check.status = enter(scene, &scene->height_fields, index, &scene->height_field_capacity,
                             sizeof field, TB_HANDLE_HEIGHT_FIELD, def->name, &field.name, error);
    if (check.status != TB_OK) {
        tb_arena_return_to(&scene->data, mark);
        return check.status;
    }
    scene->height_fields[index] = field;
    scene->number_of_height_fields++;
    give_handle(scene, TB_HANDLE_HEIGHT_FIELD, index, handle);
    return TB_OK;
}

/* ---- tendons ---- */

/* Index of a hinge or slide joint. */
static int32_t check_scalar_joint(tb_check *check, const tb_scene *scene, const char *field,
                                  tb_handle handle, bool optional)
{
    int32_t joint = -1;
    tb_check_handle(check, scene, field, handle, TB_HANDLE_JOINT, optional, &joint);
    if (check->status != TB_OK || joint < 0) return joint;
    if (scene->joints[joint].type != TB_JOINT_HINGE && scene->joints[joint].type != TB_JOINT_SLIDE)
        tb_check_fail(check, field, "must be a hinge or slide joint");
    return joint;
}

tb_status tb_scene_add_tendon(tb_scene *scene, const tb_tendon_def *def, tb_handle *handle,
                              tb_error *error)
{
    const int32_t index = scene->number_of_tendons;
    tb_tendon_def tendon = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_TENDON, def->name, index, error);
    const tb_arena_mark mark = tb_arena_get_mark(&scene->data);
    const bool spatial = def->number_of_points != 0;
    if (spatial)
        tendon.points = tb_scene_keep_path(scene, &check, def);
    else if (def->number_of_joints < 1 || def->number_of_joints > TB_SCENE_LIMIT)
        tb_check_fail(&check, "joints", "must be at least one, but number %d",
                      (int)def->number_of_joints);
    else if (def->joints == NULL)
        tb_check_fail(&check, "joints", "are missing");
    for (int32_t i = 0; check.status == TB_OK && i < def->number_of_joints; i++)
        check_scalar_joint(&check, scene, "joints", def->joints[i], false);
    tb_check_bounds(&check, "limits", def->limited, &tendon.lower, &tendon.upper);
    tb_check_not_negative(&check, "stiffness", &tendon.stiffness, 1);
    tb_check_not_negative(&check, "damping", &tendon.damping, 1);
    tb_check_not_negative(&check, "dry_friction", &tendon.dry_friction, 1);
    tb_check_not_negative(&check, "armature", &tendon.armature, 1);
    tb_check_bounds(&check, "spring_lower", true, &tendon.spring_lower, &tendon.spring_upper);
    tb_check_numbers(&check, "stiffness_polynomial", tendon.stiffness_polynomial, 2);
    tb_check_numbers(&check, "damping_polynomial", tendon.damping_polynomial, 2);
    tb_check_bounds(&check, "actuator_force_limited", tendon.actuator_force_limited,
                    &tendon.actuator_force_lower, &tendon.actuator_force_upper);
    tb_check_name(&check, scene);
    if (check.status == TB_OK) {
        tendon.coefficients =
            keep_numbers(scene, &check, "coefficients", def->coefficients, def->number_of_joints);
        tendon.joints = keep(scene, def->joints, def->number_of_joints, sizeof *def->joints,
                             &check.status, error);
    }
    if (check.status == TB_OK)
        check.status = enter(scene, &scene->tendons, index, &scene->tendon_capacity, sizeof tendon,
                             TB_HANDLE_TENDON, def->name, &tendon.name, error);
    if (check.status != TB_OK) {
        tb_arena_return_to(&scene->data, mark);
        return check.status;
    }
    scene->tendons[index] = tendon;
    scene->number_of_tendons++;
    give_handle(scene, TB_HANDLE_TENDON, index, handle);
    return TB_OK;
}

/* ---- equalities ---- */

static void check_ends(tb_check *check, const tb_scene *scene, const tb_equality_def *def)
{
    int32_t a = -1, b = -1;
    switch (def->type) {
    case TB_EQUALITY_CONNECT:
    case TB_EQUALITY_WELD:
        tb_check_handle(check, scene, "a", def->a, TB_HANDLE_BODY, true, &a);
        tb_check_handle(check, scene, "b", def->b, TB_HANDLE_BODY, true, &b);
        break;
    case TB_EQUALITY_JOINT:
        a = check_scalar_joint(check, scene, "a", def->a, false);
        b = check_scalar_joint(check, scene, "b", def->b, true);
        break;
    case TB_EQUALITY_TENDON:
        tb_check_handle(check, scene, "a", def->a, TB_HANDLE_TENDON, false, &a);
        tb_check_handle(check, scene, "b", def->b, TB_HANDLE_TENDON, true, &b);
        break;
    default: tb_check_fail(check, "type", "%d is none", (int)def->type);
    }
    if (a == b) tb_check_fail(check, "b", "must not be the same as a");
}

tb_status tb_scene_add_equality(tb_scene *scene, const tb_equality_def *def, tb_handle *handle,
                                tb_error *error)
{
    const int32_t index = scene->number_of_equalities;
    tb_equality_def equality = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_EQUALITY, def->name, index, error);
    check_ends(&check, scene, def);

    /* clear fields that the type does not use, so that equal models have equal bytes */
    const bool bodies = def->type == TB_EQUALITY_CONNECT || def->type == TB_EQUALITY_WELD;
    equality.has_anchor_b = bodies && def->has_anchor_b;
    equality.has_orientation = def->type == TB_EQUALITY_WELD && def->has_orientation;
    if (!bodies) memset(equality.anchor_a, 0, sizeof equality.anchor_a);
    if (!equality.has_anchor_b) memset(equality.anchor_b, 0, sizeof equality.anchor_b);
    if (!equality.has_orientation) memcpy(equality.orientation, (double[4]){1}, sizeof(double[4]));
    if (bodies) memset(equality.polynomial, 0, sizeof equality.polynomial);

    tb_check_numbers(&check, "anchor_a", equality.anchor_a, 3);
    tb_check_numbers(&check, "anchor_b", equality.anchor_b, 3);
    tb_check_quaternion(&check, "orientation", equality.orientation);
    tb_check_numbers(&check, "polynomial", equality.polynomial, 5);
    tb_check_name(&check, scene);
    if (check.status != TB_OK) return check.status;

    const tb_status status =
        enter(scene, &scene->equalities, index, &scene->equality_capacity, sizeof equality,
              TB_HANDLE_EQUALITY, def->name, &equality.name, error);
    if (status != TB_OK) return status;
    scene->equalities[index] = equality;
    scene->number_of_equalities++;
    give_handle(scene, TB_HANDLE_EQUALITY, index, handle);
    return TB_OK;
}

/* ---- pairs and excludes ---- */

tb_status tb_scene_add_pair(tb_scene *scene, const tb_pair_def *def, tb_handle *handle,
                            tb_error *error)
{
    const int32_t index = scene->number_of_pairs;
    int32_t a = -1, b = -1;
    tb_pair_def pair = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_PAIR, def->name, index, error);
    tb_check_handle(&check, scene, "a", def->a, TB_HANDLE_SHAPE, false, &a);
    tb_check_handle(&check, scene, "b", def->b, TB_HANDLE_SHAPE, false, &b);
    if (check.status == TB_OK && a == b) tb_check_fail(&check, "b", "must not be the same as a");
    tb_check_surface(&check, &pair.surface);
    tb_check_name(&check, scene);
    if (check.status != TB_OK) return check.status;

    const tb_status status = enter(scene, &scene->pairs, index, &scene->pair_capacity, sizeof pair,
                                   TB_HANDLE_PAIR, def->name, &pair.name, error);
    if (status != TB_OK) return status;
    scene->pairs[index] = pair;
    scene->number_of_pairs++;
    give_handle(scene, TB_HANDLE_PAIR, index, handle);
    return TB_OK;
}

tb_status tb_scene_add_element(tb_scene *scene, const tb_element_def *def, tb_error *error)
{
    static const char *const FIELDS[] = {"balls[0]", "balls[1]", "balls[2]"};
    const int32_t index = scene->number_of_elements;
    int32_t balls[3] = {-1, -1, -1};
    tb_element_def element = {.corners = def->corners, .group = def->group};
    tb_check check = tb_check_begin(TB_HANDLE_PAIR, NULL, index, error);
    if (def->corners != 2 && def->corners != 3)
        tb_check_fail(&check, "corners", "is %d, neither 2 nor 3", (int)def->corners);
    else if (def->group < 0 || def->group > TB_SCENE_LIMIT)
        tb_check_fail(&check, "group", "is %d", (int)def->group);
    for (int32_t i = 0; check.status == TB_OK && i < def->corners; i++) {
        tb_check_handle(&check, scene, FIELDS[i], def->balls[i], TB_HANDLE_SHAPE, false, &balls[i]);
        if (check.status != TB_OK) break;
        element.balls[i] = def->balls[i];
        const tb_shape_def *ball = &scene->shapes[balls[i]], *first = &scene->shapes[balls[0]];
        if (ball->type != TB_SHAPE_SPHERE || ball->size[0] != first->size[0])
            tb_check_fail(&check, FIELDS[i],
                          "is no ball, or has another radius than the first one");
        for (int32_t j = 0; j < i; j++)
            if (balls[j] == balls[i]) tb_check_fail(&check, FIELDS[i], "is given twice");
    }
    if (check.status != TB_OK) return check.status;
    const tb_status status = tb_scene_reserve(&scene->elements, index, &scene->element_capacity,
                                              sizeof element, TB_HANDLE_PAIR, error);
    if (status != TB_OK) return status;
    scene->elements[index] = element;
    scene->number_of_elements++;
    return TB_OK;
}

tb_status tb_scene_add_elastic(tb_scene *scene, const tb_elastic_def *def, tb_error *error)
{
    static const char *const FIELDS[] = {"sites[0]", "sites[1]", "sites[2]", "sites[3]"};
    const int32_t index = scene->number_of_elastics;
    const bool solid = def->kind == TB_ELASTIC_TETRAHEDRON;
    const int corners = def->kind == TB_ELASTIC_TRIANGLE ? 3 : 4;
    int32_t sites[4] = {-1, -1, -1, -1};
    tb_elastic_def elastic = *def;
    tb_check check = tb_check_begin(TB_HANDLE_SITE, NULL, index, error);
    if ((uint32_t)def->kind > TB_ELASTIC_HINGE)
        tb_check_fail(&check, "kind", "is %d", (int)def->kind);
    for (int i = 0; check.status == TB_OK && i < corners; i++) {
        tb_check_handle(&check, scene, FIELDS[i], def->sites[i], TB_HANDLE_SITE, false, &sites[i]);
        for (int j = 0; j < i; j++)
            if (sites[j] == sites[i]) tb_check_fail(&check, FIELDS[i], "is given twice");
    }
    for (int i = corners; i < 4; i++) elastic.sites[i] = (tb_handle){0};
    if (solid) elastic.thickness = 0;
    tb_check_positive(&check, "young", &elastic.young, 1);
    tb_check_not_negative(&check, "poisson", &elastic.poisson, 1);
    if (elastic.poisson >= 0.5)
        tb_check_fail(&check, "poisson", "is %g, not below 1/2", elastic.poisson);
    if (!solid) tb_check_positive(&check, "thickness", &elastic.thickness, 1);
    tb_check_not_negative(&check, "damping", &elastic.damping, 1);
    if (check.status != TB_OK) return check.status;
    const tb_status status = tb_scene_reserve(&scene->elastics, index, &scene->elastic_capacity,
                                              sizeof elastic, TB_HANDLE_SITE, error);
    if (status != TB_OK) return status;
    scene->elastics[index] = elastic;
    scene->number_of_elastics++;
    return TB_OK;
}

static tb_status keep_exclude(tb_scene *scene, scene_exclude exclude, tb_error *error)
{
    const int32_t index = scene->number_of_excludes;
    const tb_status status = tb_scene_reserve(&scene->excludes, index, &scene->exclude_capacity,
                                              sizeof exclude, TB_HANDLE_EXCLUDE, error);
    if (status != TB_OK) return status;
    scene->excludes[index] = exclude;
    scene->number_of_excludes++;
    return TB_OK;
}

tb_status tb_scene_add_exclude(tb_scene *scene, tb_handle body_a, tb_handle body_b, tb_error *error)
{
    const int32_t index = scene->number_of_excludes;
    scene_exclude exclude = {-1, -1, false};
    tb_check check = tb_check_begin(TB_HANDLE_EXCLUDE, NULL, index, error);
    tb_check_handle(&check, scene, "body_a", body_a, TB_HANDLE_BODY, true, &exclude.a);
    tb_check_handle(&check, scene, "body_b", body_b, TB_HANDLE_BODY, true, &exclude.b);
    return check.status == TB_OK ? keep_exclude(scene, exclude, error) : check.status;
}

tb_status tb_scene_exclude_shapes(tb_scene *scene, tb_handle shape_a, tb_handle shape_b,
                                  tb_error *error)
{
    scene_exclude exclude = {-1, -1, true};
    tb_check check = tb_check_begin(TB_HANDLE_EXCLUDE, NULL, scene->number_of_excludes, error);
    tb_check_handle(&check, scene, "shape_a", shape_a, TB_HANDLE_SHAPE, false, &exclude.a);
    tb_check_handle(&check, scene, "shape_b", shape_b, TB_HANDLE_SHAPE, false, &exclude.b);
    return check.status == TB_OK ? keep_exclude(scene, exclude, error) : check.status;
}

/* ---- keyframes ---- */

/* One array of a keyframe; the compiler compares its length with the model's. */
static const double *keep_key(tb_scene *scene, tb_check *check, const char *field,
                              const double *numbers, int32_t *count)
{
    if (numbers == NULL) {
        *count = 0;
        return NULL;
    }
    if (*count < 0 || *count > 16 * TB_SCENE_LIMIT)
        tb_check_fail(check, field, "has a count of %d", (int)*count);
    return keep_numbers(scene, check, field, numbers, *count);
}

tb_status tb_scene_add_keyframe(tb_scene *scene, const tb_keyframe_def *def, tb_handle *handle,
                                tb_error *error)
{
    const int32_t index = scene->number_of_keyframes;
    tb_keyframe_def key = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_KEYFRAME, def->name, index, error);
    const tb_arena_mark mark = tb_arena_get_mark(&scene->data);
    tb_check_numbers(&check, "time", &key.time, 1);
    tb_check_name(&check, scene);
    key.q = keep_key(scene, &check, "q", def->q, &key.number_of_q);
    key.u = keep_key(scene, &check, "u", def->u, &key.number_of_u);
    key.controls = keep_key(scene, &check, "controls", def->controls, &key.number_of_controls);
    key.activations =
        keep_key(scene, &check, "activations", def->activations, &key.number_of_activations);
    key.kinematic = keep_key(scene, &check, "kinematic", def->kinematic, &key.number_of_kinematic);
    if (check.status == TB_OK)
        check.status = enter(scene, &scene->keyframes, index, &scene->keyframe_capacity, sizeof key,
                             TB_HANDLE_KEYFRAME, def->name, &key.name, error);
    if (check.status != TB_OK) {
        tb_arena_return_to(&scene->data, mark);
        return check.status;
    }
    scene->keyframes[index] = key;
    scene->number_of_keyframes++;
    give_handle(scene, TB_HANDLE_KEYFRAME, index, handle);
    return TB_OK;
}
