/* Adds a compiled model to a scene: see merge.h.
 *
 * The model's canonical bytes give its scene in the model's own numbering; the builder adds
 * every definition of that scene again, with mapped references. */
#include "model/merge.h"
#include "model/model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 2 * TB_NAME_LENGTH_LIMIT };

/* State of a merge. Handles by index in `from`; zeroed: left out. */
typedef struct merge {
    tb_scene *into, *from;
    const tb_model *model;
    const tb_merge_def *def;
    tb_error *error;
    tb_handle *bodies, *joints, *shapes, *meshes, *height_fields, *tendons, *sites, *actuators;
    double shift[3]; /* m, shift of the elements on the base, by recentring */
    char name[NAME_SIZE];
} merge;

tb_merge_def tb_merge_defaults(void)
{
    tb_merge_def def = {0};
    def.orientation[0] = 1;
    def.friction = -1;
    def.mass_scale = 1;
    return def;
}

static const char *prefixed(merge *m, const char *name)
{
    if (name == NULL || name[0] == 0) return NULL;
    if (m->def->prefix == NULL) return name;
    snprintf(m->name, sizeof m->name, "%s%s", m->def->prefix, name);
    return m->name;
}

static bool is_base(const merge *m, tb_handle body)
{
    return m->def->base > 0 && scene_index(body) + 1 == m->def->base;
}

/* The scene's body for a handle of `from`; the world maps to the parent. */
static tb_handle body_of(const merge *m, tb_handle handle)
{
    return tb_handle_is_none(handle) ? m->def->parent : m->bodies[scene_index(handle)];
}

static bool take_maps(merge *m)
{
    const tb_scene *s = m->from;
    m->bodies = calloc((size_t)s->number_of_bodies + 1, sizeof *m->bodies);
    m->joints = calloc((size_t)s->number_of_joints + 1, sizeof *m->joints);
    m->shapes = calloc((size_t)s->number_of_shapes + 1, sizeof *m->shapes);
    m->meshes = calloc((size_t)s->number_of_meshes + 1, sizeof *m->meshes);
    m->height_fields = calloc((size_t)s->number_of_height_fields + 1, sizeof *m->height_fields);
    m->tendons = calloc((size_t)s->number_of_tendons + 1, sizeof *m->tendons);
    m->sites = calloc((size_t)s->number_of_sites + 1, sizeof *m->sites);
    m->actuators = calloc((size_t)s->number_of_actuators + 1, sizeof *m->actuators);
    return m->bodies != NULL && m->joints != NULL && m->shapes != NULL && m->meshes != NULL &&
           m->height_fields != NULL && m->tendons != NULL && m->sites != NULL &&
           m->actuators != NULL;
}

static void free_maps(merge *m)
{
    free(m->bodies);
    free(m->joints);
    free(m->shapes);
    free(m->meshes);
    free(m->height_fields);
    free(m->tendons);
    free(m->sites);
    free(m->actuators);
    tb_scene_destroy(m->from);
}

/* ---- bodies, joints ---- */

static tb_status add_bodies(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_bodies && status == TB_OK; i++) {
        const scene_body *from = &s->bodies[i];
        const tb_model_body *compiled = &m->model->bodies[i + 1];
        tb_body_def def = tb_body_defaults();
        def.name = prefixed(m, from->name);
        def.parent = from->parent < 0 ? m->def->parent : m->bodies[from->parent];
        memcpy(def.position, from->position, sizeof def.position);
        memcpy(def.orientation, from->orientation, sizeof def.orientation);
        def.kinematic = from->kinematic && tb_handle_is_none(def.parent);
        def.gravity_compensation = from->gravity_compensation;
        def.sleep = from->sleep;
        def.has_inertia = compiled->mass > 0;
        def.mass = m->def->mass_scale * compiled->mass;
        memcpy(def.com, compiled->com, sizeof def.com);
        for (int k = 0; k < 6; k++) def.inertia[k] = m->def->mass_scale * compiled->inertia[k];
        if (m->def->base == i + 1) {
            tb_q_store(def.orientation, tb_q_load(m->def->orientation));
            const tb_vec3 shift = tb_q_rotate(tb_q_load(def.orientation), tb_v3_load(m->shift));
            for (int k = 0; k < 3; k++) {
                def.position[k] = m->def->position[k] - tb_v3_at(shift, k);
                def.com[k] += m->shift[k];
            }
            if (m->def->recentre) memset(def.com, 0, sizeof def.com);
        }
        status = tb_scene_add_body(m->into, &def, &m->bodies[i], m->error);
    }
    return status;
}

static tb_status add_joints(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_joints && status == TB_OK; i++) {
        tb_joint_def def = s->joints[i];
        if (is_base(m, def.body)) continue;
        def.name = prefixed(m, def.name);
        def.body = body_of(m, def.body);
        status = tb_scene_add_joint(m->into, &def, &m->joints[i], m->error);
    }
    return status;
}

/* ---- assets, shapes, sites ---- */

static tb_status add_assets(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_meshes && status == TB_OK; i++) {
        tb_mesh_def def = s->meshes[i];
        def.name = prefixed(m, def.name);
        status = tb_scene_add_mesh(m->into, &def, &m->meshes[i], m->error);
    }
    for (int32_t i = 0; i < s->number_of_height_fields && status == TB_OK; i++) {
        tb_height_field_def def = s->height_fields[i];
        def.name = prefixed(m, def.name);
        status = tb_scene_add_height_field(m->into, &def, &m->height_fields[i], m->error);
    }
    return status;
}

static bool stays_behind(const merge *m, const tb_shape_def *shape)
{
    if (!tb_handle_is_none(shape->body)) return false;
    const bool ground = shape->type == TB_SHAPE_PLANE || shape->type == TB_SHAPE_HEIGHT_FIELD;
    return !m->def->world_shapes || (ground && !tb_handle_is_none(m->def->parent));
}

static tb_status add_shapes(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_shapes && status == TB_OK; i++) {
        tb_shape_def def = s->shapes[i];
        if (stays_behind(m, &def)) continue;
        if (is_base(m, def.body))
            for (int k = 0; k < 3; k++) def.position[k] += m->shift[k];
        def.name = prefixed(m, def.name);
        def.body = body_of(m, def.body);
        if (def.type == TB_SHAPE_HEIGHT_FIELD)
            def.asset = m->height_fields[scene_index(def.asset)];
        else if (!tb_handle_is_none(def.asset))
            def.asset = m->meshes[scene_index(def.asset)];
        if (m->def->convex && def.type == TB_SHAPE_MESH) def.type = TB_SHAPE_CONVEX;
        if (m->def->friction >= 0) def.surface.friction = m->def->friction;
        if (m->def->friction > 0 && m->def->spin > 0 && def.surface.kind < TB_CONTACT_SPIN) {
            def.surface.kind = TB_CONTACT_SPIN;
            /* the torque is at most 2/3 mu spin_radius lambda_n */
            def.surface.spin_radius = 1.5 * m->def->spin / m->def->friction;
        }
        status = tb_scene_add_shape(m->into, &def, &m->shapes[i], m->error);
    }
    for (int32_t i = 0; i < s->number_of_sites && status == TB_OK; i++) {
        tb_site_def def = s->sites[i];
        if (is_base(m, def.body))
            for (int k = 0; k < 3; k++) def.position[k] += m->shift[k];
        def.name = prefixed(m, def.name);
        def.body = body_of(m, def.body);
        status = tb_scene_add_site(m->into, &def, &m->sites[i], m->error);
    }
    return status;
}

/* ---- tendons, actuators, equalities ---- */

/* Maps a position on a body of `from` to the scene. */
static void move_place(const merge *m, tb_handle *body, double position[3])
{
    if (is_base(m, *body))
        for (int k = 0; k < 3; k++) position[k] += m->shift[k];
    *body = body_of(m, *body);
}

static tb_status add_spatial(merge *m, int32_t tendon)
{
    tb_tendon_def def = m->from->tendons[tendon];
    const size_t count = (size_t)def.number_of_points;
    tb_tendon_point *points = calloc(count, sizeof *points);
    if (points == NULL) return tb_fail_memory(m->error, count * sizeof *points, "a tendon");
    memcpy(points, def.points, count * sizeof *points);
    for (size_t k = 0; k < count; k++) {
        if (points[k].kind == TB_TENDON_PULLEY) continue;
        move_place(m, &points[k].body, points[k].position);
        if (points[k].has_side) move_place(m, &points[k].side_body, points[k].side);
    }
    def.name = prefixed(m, def.name);
    def.points = points;
    const tb_status status = tb_scene_add_tendon(m->into, &def, &m->tendons[tendon], m->error);
    free(points);
    return status;
}

static tb_status add_tendons(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_tendons && status == TB_OK; i++) {
        tb_tendon_def def = s->tendons[i];
        if (def.number_of_points > 0) {
            status = add_spatial(m, i);
            continue;
        }
        tb_handle *joints = calloc((size_t)def.number_of_joints + 1, sizeof *joints);
        if (joints == NULL) return tb_fail_memory(m->error, 0, "a tendon");
        bool whole = true;
        for (int32_t k = 0; k < def.number_of_joints; k++) {
            joints[k] = m->joints[scene_index(def.joints[k])];
            whole = whole && !tb_handle_is_none(joints[k]);
        }
        def.name = prefixed(m, def.name);
        def.joints = joints;
        if (whole) status = tb_scene_add_tendon(m->into, &def, &m->tendons[i], m->error);
        free(joints);
    }
    return status;
}

static tb_handle target_of(const merge *m, tb_handle handle)
{
    const tb_handle none = {0};
    if (tb_handle_is_none(handle)) return none;
    switch (handle.kind) {
    case TB_HANDLE_TENDON: return m->tendons[scene_index(handle)];
    case TB_HANDLE_SITE: return m->sites[scene_index(handle)];
    case TB_HANDLE_BODY: return m->bodies[scene_index(handle)];
    default: return m->joints[scene_index(handle)];
    }
}

static tb_status add_actuators(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_actuators && status == TB_OK; i++) {
        tb_actuator_def def = s->actuators[i];
        def.name = prefixed(m, def.name);
        def.target = target_of(m, def.target);
        def.reference = target_of(m, def.reference);
        const bool kept = !tb_handle_is_none(def.target);
        if (m->def->actuators != NULL)
            m->def->actuators[i] = kept ? m->into->number_of_actuators : -1;
        if (kept) status = tb_scene_add_actuator(m->into, &def, &m->actuators[i], m->error);
    }
    return status;
}

static tb_status add_equalities(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_equalities && status == TB_OK; i++) {
        tb_equality_def def = s->equalities[i];
        const bool bodies = def.type == TB_EQUALITY_CONNECT || def.type == TB_EQUALITY_WELD;
        const bool has_b = !tb_handle_is_none(def.b);
        if (bodies) {
            /* the base has a new pose, so its old pose relative to the world is meaningless */
            if (m->def->base > 0 && (tb_handle_is_none(def.a) || !has_b)) continue;
            def.a = body_of(m, def.a);
            def.b = body_of(m, def.b);
        } else {
            def.a = target_of(m, def.a);
            def.b = target_of(m, def.b);
            if (tb_handle_is_none(def.a) || (has_b && tb_handle_is_none(def.b))) continue;
        }
        def.name = prefixed(m, def.name);
        status = tb_scene_add_equality(m->into, &def, NULL, m->error);
    }
    return status;
}

/* Maps an object of a sensor; false if the merge has left it out. A clock has none; the frame of
 * the model's world becomes the parent's. */
static bool map_object(const merge *m, tb_sensor_type type, tb_handle *object)
{
    if (type == TB_SENSOR_CLOCK) return true;
    if (tb_handle_is_none(*object)) {
        *object = m->def->parent;
        return true;
    }
    switch (object->kind) {
    case TB_HANDLE_ACTUATOR: *object = m->actuators[scene_index(*object)]; break;
    case TB_HANDLE_SHAPE: *object = m->shapes[scene_index(*object)]; break;
    default: *object = target_of(m, *object);
    }
    return !tb_handle_is_none(*object);
}

static tb_status add_sensors(merge *m)
{
    const tb_scene *s = m->from;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_sensors && status == TB_OK; i++) {
        tb_sensor_def def = s->sensors[i];
        if (!map_object(m, def.type, &def.object)) continue;
        if (def.has_reference && !map_object(m, def.type, &def.reference)) continue;
        def.name = prefixed(m, def.name);
        status = tb_scene_add_sensor(m->into, &def, NULL, m->error);
    }
    return status;
}

static tb_status add_elastics(merge *m)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < m->from->number_of_elastics && status == TB_OK; i++) {
        tb_elastic_def def = m->from->elastics[i];
        bool whole = true;
        for (int k = 0; k < 4; k++) {
            if (tb_handle_is_none(def.sites[k])) continue;
            def.sites[k] = m->sites[scene_index(def.sites[k])];
            whole = whole && !tb_handle_is_none(def.sites[k]);
        }
        if (whole) status = tb_scene_add_elastic(m->into, &def, m->error);
    }
    return status;
}

static tb_status add_filters(merge *m)
{
    const tb_scene *s = m->from;
    int32_t groups = 0; /* that are taken */
    for (int32_t i = 0; i < m->into->number_of_elements; i++)
        if (m->into->elements[i].group > groups) groups = m->into->elements[i].group;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->number_of_pairs && status == TB_OK; i++) {
        tb_pair_def def = s->pairs[i];
        def.a = m->shapes[scene_index(def.a)];
        def.b = m->shapes[scene_index(def.b)];
        if (tb_handle_is_none(def.a) || tb_handle_is_none(def.b)) continue;
        def.name = prefixed(m, def.name);
        if (m->def->friction >= 0) def.surface.friction = m->def->friction;
        status = tb_scene_add_pair(m->into, &def, NULL, m->error);
    }
    for (int32_t i = 0; i < s->number_of_elements && status == TB_OK; i++) {
        tb_element_def def = s->elements[i];
        bool whole = true;
        if (def.group > 0) def.group += groups;
        for (int32_t k = 0; k < def.corners; k++) {
            def.balls[k] = m->shapes[scene_index(def.balls[k])];
            whole = whole && !tb_handle_is_none(def.balls[k]);
        }
        if (whole) status = tb_scene_add_element(m->into, &def, m->error);
    }
    for (int32_t i = 0; i < s->number_of_excludes && status == TB_OK; i++) {
        const scene_exclude *e = &s->excludes[i];
        if (e->shapes) {
            const tb_handle p = m->shapes[e->a], q = m->shapes[e->b];
            if (!tb_handle_is_none(p) && !tb_handle_is_none(q))
                status = tb_scene_exclude_shapes(m->into, p, q, m->error);
            continue;
        }
        const tb_handle a = e->a < 0 ? m->def->parent : m->bodies[e->a];
        const tb_handle b = e->b < 0 ? m->def->parent : m->bodies[e->b];
        if (a.index == b.index) continue;
        status = tb_scene_add_exclude(m->into, a, b, m->error);
    }
    return status;
}

tb_status tb_scene_add_model(tb_scene *scene, const tb_model *model, const tb_merge_def *def,
                             tb_error *error)
{
    merge m = {.into = scene, .model = model, .def = def, .error = error};
    if (model->soft != NULL)
        return tb_fail_field(error, TB_UNSUPPORTED, "soft",
                             "'%s' has soft bodies, which cannot be merged into another scene",
                             model->name);
    tb_status status = tb_canonical_read(
        model->bytes, model->bytes_size - TB_CANONICAL_CHECKSUM_SIZE, &m.from, error);
    if (status != TB_OK) return status;
    if (!take_maps(&m)) status = tb_fail_memory(error, 0, "a merge of scenes");
    if (def->base > 0 && def->recentre)
        for (int k = 0; k < 3; k++) m.shift[k] = -model->bodies[def->base].com[k];
    if (status == TB_OK) status = add_bodies(&m);
    if (status == TB_OK) status = add_joints(&m);
    if (status == TB_OK) status = add_assets(&m);
    if (status == TB_OK) status = add_shapes(&m);
    if (status == TB_OK) status = add_tendons(&m);
    if (status == TB_OK) status = add_actuators(&m);
    if (status == TB_OK) status = add_equalities(&m);
    if (status == TB_OK) status = add_elastics(&m);
    if (status == TB_OK) status = add_filters(&m);
    if (status == TB_OK) status = add_sensors(&m);
    free_maps(&m);
    return status;
}

tb_status tb_scene_stop_slide(tb_scene *scene, int32_t body, int32_t nth, double lower,
                              double upper, tb_error *error)
{
    for (int32_t j = 0; j < scene->number_of_joints; j++) {
        tb_joint_def *joint = &scene->joints[j];
        if (scene_index(joint->body) != body || joint->type != TB_JOINT_SLIDE || nth-- > 0)
            continue;
        joint->limited = true;
        joint->lower = lower;
        joint->upper = upper;
        return TB_OK;
    }
    return tb_fail(error, TB_NOT_FOUND, "body %d has no such slide", (int)body);
}

tb_status tb_scene_free_body(tb_scene *scene, int32_t body, const char *name, tb_error *error)
{
    tb_joint_def def = tb_joint_defaults();
    def.name = name;
    def.body = tb_handle_make(TB_HANDLE_BODY, scene->owner, body);
    def.type = TB_JOINT_FREE;
    return tb_scene_add_joint(scene, &def, NULL, error);
}
