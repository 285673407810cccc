/* Messages of a compiled scene: see scene_message.h. Numbers are copied into the answer's memory,
 * names are the model's own. */
#include "wire/scene_message.h"

#include <string.h>

#include "base/error.h"

static char *lend(const char *text)
{
    return (char *)(uintptr_t)text; /* protobuf-c only reads it */
}

/* Pointers to `count` zeroed structs of `size` bytes, each of which begins with its message. */
static void **take_list(td_wire *wire, int32_t count, size_t size)
{
    unsigned char *items = td_wire_take(wire, (size_t)count * size);
    void **pointers = td_wire_take(wire, (size_t)count * sizeof *pointers);
    if (items == NULL || pointers == NULL) return NULL;
    for (int32_t i = 0; i < count; i++) pointers[i] = items + (size_t)i * size;
    return pointers;
}

/* A pose message with the arrays that it points to. */
typedef struct pose {
    Tribo__V1__Pose message;
    double position[3], orientation[4];
} pose;

static Tribo__V1__Pose *fill_pose(pose *p, const double position[3], const double orientation[4])
{
    tribo__v1__pose__init(&p->message);
    memcpy(p->position, position, sizeof p->position);
    memcpy(p->orientation, orientation, sizeof p->orientation);
    p->message.position = p->position;
    p->message.n_position = 3;
    p->message.orientation = p->orientation;
    p->message.n_orientation = 4;
    return &p->message;
}

char **td_wire_names(td_wire *wire, const tb_model *model, tb_handle_kind kind, int32_t n,
                     size_t *number)
{
    char **names = td_wire_take(wire, (size_t)n * sizeof *names);
    if (names == NULL) return NULL;
    for (int32_t i = 0; i < n; i++) names[i] = lend(tb_model_thing_name(model, kind, i));
    *number = (size_t)n;
    return names;
}

/* ---- bodies and joints ---- */

static Tribo__V1__BodyInfo **bodies_of(td_wire *wire, const tb_model *model, int32_t n)
{
    typedef struct body {
        Tribo__V1__BodyInfo message;
        tb_body_info info;
        pose pose;
    } body;
    body **bodies = (body **)take_list(wire, n, sizeof **bodies);
    for (int32_t i = 0; bodies != NULL && i < n; i++) {
        Tribo__V1__BodyInfo *m = &bodies[i]->message;
        tb_body_info *info = &bodies[i]->info;
        tribo__v1__body_info__init(m);
        tb_model_body_info(model, i, info);
        m->name = lend(tb_model_thing_name(model, TB_HANDLE_BODY, i));
        m->parent = i == 0 ? -1 : info->parent;
        m->mass = info->mass;
        m->com = info->com;
        m->n_com = 3;
        m->inertia = info->inertia;
        m->n_inertia = 6;
        m->pose = fill_pose(&bodies[i]->pose, info->position, info->orientation);
        m->kinematic = info->kinematic;
    }
    return (Tribo__V1__BodyInfo **)bodies;
}

static const char *joint_type(tb_joint_type type)
{
    switch (type) {
    case TB_JOINT_HINGE: return "hinge";
    case TB_JOINT_SLIDE: return "slide";
    case TB_JOINT_BALL: return "ball";
    case TB_JOINT_FREE: return "free";
    case TB_JOINT_PLANAR: return "planar";
    default: return "fixed";
    }
}

static Tribo__V1__JointInfo **joints_of(td_wire *wire, const tb_model *model, int32_t n)
{
    typedef struct joint {
        Tribo__V1__JointInfo message;
        tb_joint_info info;
    } joint;
    joint **joints = (joint **)take_list(wire, n, sizeof **joints);
    for (int32_t i = 0; joints != NULL && i < n; i++) {
        Tribo__V1__JointInfo *m = &joints[i]->message;
        tb_joint_info *info = &joints[i]->info;
        tribo__v1__joint_info__init(m);
        tb_model_joint_info(model, i, info);
        m->name = lend(tb_model_thing_name(model, TB_HANDLE_JOINT, i));
        m->body = info->body;
        m->type = lend(joint_type(info->type));
        m->coordinate = info->coordinate;
        m->dof = info->dof;
        m->limited = info->limited;
        m->lower = info->lower;
        m->upper = info->upper;
        m->position = info->position;
        m->n_position = 3;
        const bool has_axis = info->type == TB_JOINT_HINGE || info->type == TB_JOINT_SLIDE;
        m->axis = info->axis;
        m->n_axis = has_axis ? 3 : 0;
    }
    return (Tribo__V1__JointInfo **)joints;
}

/* ---- shapes ---- */

static Tribo__V1__ShapeType shape_type(tb_shape_type type)
{
    switch (type) {
    case TB_SHAPE_PLANE: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_PLANE;
    case TB_SHAPE_SPHERE: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_SPHERE;
    case TB_SHAPE_CAPSULE: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_CAPSULE;
    case TB_SHAPE_CYLINDER: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_CYLINDER;
    case TB_SHAPE_BOX: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_BOX;
    case TB_SHAPE_ELLIPSOID: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_ELLIPSOID;
    case TB_SHAPE_CONVEX: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_CONVEX;
    case TB_SHAPE_MESH: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_MESH;
    default: return TRIBO__V1__SHAPE_TYPE__SHAPE_TYPE_HEIGHT_FIELD;
    }
}

static Tribo__V1__ShapeInfo **shapes_of(td_wire *wire, const tb_model *model,
                                        td_wire_digest *digests, const tb_model_counts *n)
{
    typedef struct shape {
        Tribo__V1__ShapeInfo message;
        tb_shape_info info;
        pose pose;
    } shape;
    shape **shapes = (shape **)take_list(wire, n->shapes, sizeof **shapes);
    for (int32_t i = 0; shapes != NULL && i < n->shapes; i++) {
        Tribo__V1__ShapeInfo *m = &shapes[i]->message;
        tb_shape_info *info = &shapes[i]->info;
        tribo__v1__shape_info__init(m);
        tb_model_shape_info(model, i, info);
        m->name = lend(tb_model_thing_name(model, TB_HANDLE_SHAPE, i));
        m->type = shape_type(info->type);
        m->body = info->body;
        m->pose = fill_pose(&shapes[i]->pose, info->position, info->orientation);
        m->size = info->size;
        m->n_size = 3;
        m->collides = info->collides;
        m->group = info->group;
        m->colour = info->colour;
        m->n_colour = info->has_colour ? 4 : 0;
        m->material = lend(info->material);
        m->friction = info->friction;
        m->restitution = info->restitution;
        m->tangential_restitution = info->tangential_restitution;
        if (info->mesh >= 0) m->mesh_sha256 = lend(digests[info->mesh]);
        if (info->height_field >= 0) m->mesh_sha256 = lend(digests[n->meshes + info->height_field]);
    }
    return (Tribo__V1__ShapeInfo **)shapes;
}

static Tribo__V1__MeshInfo **meshes_of(td_wire *wire, const tb_model *model,
                                       td_wire_digest *digests, int32_t meshes, int32_t fields)
{
    const int32_t n = meshes + fields;
    Tribo__V1__MeshInfo **list = (Tribo__V1__MeshInfo **)take_list(wire, n, sizeof **list);
    for (int32_t i = 0; list != NULL && i < n; i++) {
        const tb_handle_kind kind = i < meshes ? TB_HANDLE_MESH : TB_HANDLE_HEIGHT_FIELD;
        tribo__v1__mesh_info__init(list[i]);
        list[i]->sha256 = lend(digests[i]);
        list[i]->name = lend(tb_model_thing_name(model, kind, i < meshes ? i : i - meshes));
        if (i < meshes) tb_model_mesh_size(model, i, &list[i]->vertices, &list[i]->triangles);
    }
    return list;
}

/* ---- actuators, sites and tendons ---- */

static const char *kind_name(tb_handle_kind kind)
{
    switch (kind) {
    case TB_HANDLE_JOINT: return "joint";
    case TB_HANDLE_TENDON: return "tendon";
    case TB_HANDLE_SITE: return "site";
    case TB_HANDLE_SHAPE: return "shape";
    case TB_HANDLE_ACTUATOR: return "actuator";
    case TB_HANDLE_NONE: return "";
    default: return "body";
    }
}

static Tribo__V1__ActuatorInfo **actuators_of(td_wire *wire, const tb_model *model, int32_t n)
{
    typedef struct actuator {
        Tribo__V1__ActuatorInfo message;
        tb_actuator_info info;
    } actuator;
    actuator **actuators = (actuator **)take_list(wire, n, sizeof **actuators);
    for (int32_t i = 0; actuators != NULL && i < n; i++) {
        Tribo__V1__ActuatorInfo *m = &actuators[i]->message;
        tb_actuator_info *info = &actuators[i]->info;
        tribo__v1__actuator_info__init(m);
        tb_model_actuator_info(model, i, info);
        m->name = lend(tb_model_thing_name(model, TB_HANDLE_ACTUATOR, i));
        m->target_kind = lend(kind_name(info->target_kind));
        m->target = info->target;
        m->control_limited = info->control_limited;
        m->control_lower = info->control_lower;
        m->control_upper = info->control_upper;
        m->force_limited = info->force_limited;
        m->force_lower = info->force_lower;
        m->force_upper = info->force_upper;
        m->gear = info->gear;
        m->n_gear = 6;
    }
    return (Tribo__V1__ActuatorInfo **)actuators;
}

static Tribo__V1__SiteInfo **sites_of(td_wire *wire, const tb_model *model, int32_t n)
{
    typedef struct site {
        Tribo__V1__SiteInfo message;
        pose pose;
    } site;
    site **sites = (site **)take_list(wire, n, sizeof **sites);
    for (int32_t i = 0; sites != NULL && i < n; i++) {
        Tribo__V1__SiteInfo *m = &sites[i]->message;
        tb_site_info info;
        tribo__v1__site_info__init(m);
        tb_model_site_info(model, i, &info);
        m->name = lend(tb_model_thing_name(model, TB_HANDLE_SITE, i));
        m->body = info.body;
        m->pose = fill_pose(&sites[i]->pose, info.position, info.orientation);
    }
    return (Tribo__V1__SiteInfo **)sites;
}

static Tribo__V1__TendonInfo **tendons_of(td_wire *wire, const tb_model *model, int32_t n)
{
    Tribo__V1__TendonInfo **tendons =
        (Tribo__V1__TendonInfo **)take_list(wire, n, sizeof **tendons);
    for (int32_t i = 0; tendons != NULL && i < n; i++) {
        Tribo__V1__TendonInfo *m = tendons[i];
        tribo__v1__tendon_info__init(m);
        const int32_t count = tb_model_tendon_waypoints(model, i, NULL, 0);
        if (count == 0) continue;
        tb_tendon_waypoint *places = td_wire_take(wire, (size_t)count * sizeof *places);
        m->bodies = td_wire_take(wire, (size_t)count * sizeof *m->bodies);
        m->positions = td_wire_take(wire, 3 * (size_t)count * sizeof *m->positions);
        if (places == NULL || m->bodies == NULL || m->positions == NULL) continue;
        tb_model_tendon_waypoints(model, i, places, count);
        m->n_bodies = (size_t)count;
        m->n_positions = 3 * (size_t)count;
        for (int32_t k = 0; k < count; k++) {
            m->bodies[k] = places[k].body;
            memcpy(m->positions + 3 * k, places[k].position, sizeof places[k].position);
        }
    }
    return tendons;
}

/* ---- sensors ---- */

/* Unit of a sensor's numbers; of a hinge and of a slide they differ. "": none, or that of a tendon. */
static const char *sensor_unit(const tb_model *model, const tb_sensor_info *sensor)
{
    tb_joint_info joint = {.type = TB_JOINT_HINGE};
    if (sensor->object_kind == TB_HANDLE_JOINT) tb_model_joint_info(model, sensor->object, &joint);
    const bool slides = joint.type == TB_JOINT_SLIDE;
    switch (sensor->type) {
    case TB_SENSOR_JOINT_POSITION: return slides ? "m" : "rad";
    case TB_SENSOR_JOINT_VELOCITY: return slides ? "m/s" : "rad/s";
    case TB_SENSOR_JOINT_LIMIT_FORCE: return slides ? "N" : "N m";
    case TB_SENSOR_FRAME_POSITION:
    case TB_SENSOR_SUBTREE_COM: return "m";
    case TB_SENSOR_FRAME_LINEAR_VELOCITY:
    case TB_SENSOR_SUBTREE_VELOCITY:
    case TB_SENSOR_VELOCIMETER: return "m/s";
    case TB_SENSOR_BALL_VELOCITY:
    case TB_SENSOR_FRAME_ANGULAR_VELOCITY:
    case TB_SENSOR_GYRO: return "rad/s";
    case TB_SENSOR_FRAME_LINEAR_ACCELERATION:
    case TB_SENSOR_ACCELEROMETER: return "m/s^2";
    case TB_SENSOR_FRAME_ANGULAR_ACCELERATION: return "rad/s^2";
    case TB_SENSOR_SUBTREE_ANGULAR_MOMENTUM: return "N m s";
    case TB_SENSOR_FORCE:
    case TB_SENSOR_TOUCH: return "N";
    case TB_SENSOR_TORQUE: return "N m";
    case TB_SENSOR_CLOCK: return "s";
    default: return "";
    }
}

static Tribo__V1__SensorInfo **sensors_of(td_wire *wire, const tb_model *model, int32_t n)
{
    Tribo__V1__SensorInfo **sensors =
        (Tribo__V1__SensorInfo **)take_list(wire, n, sizeof **sensors);
    for (int32_t i = 0; sensors != NULL && i < n; i++) {
        Tribo__V1__SensorInfo *m = sensors[i];
        tb_sensor_info info;
        tribo__v1__sensor_info__init(m);
        tb_model_sensor_info(model, i, &info);
        m->name = lend(tb_model_thing_name(model, TB_HANDLE_SENSOR, i));
        m->type = lend(tb_sensor_type_name(info.type));
        m->object_kind = lend(kind_name(info.object_kind));
        m->object = info.object;
        m->first = info.first;
        m->numbers = info.numbers;
        m->unit = lend(sensor_unit(model, &info));
    }
    return sensors;
}

/* ---- the scene ---- */

void td_wire_scene(td_wire *wire, const tb_model *model, td_wire_digest *digests,
                   Tribo__V1__GetSceneResponse *r)
{
    const tb_model_counts n = tb_model_count(model);
    const int32_t fields = tb_model_number_of_height_fields(model);
    r->bodies = bodies_of(wire, model, n.bodies);
    r->n_bodies = (size_t)n.bodies;
    r->joints = joints_of(wire, model, n.joints);
    r->n_joints = (size_t)n.joints;
    r->shape_infos = shapes_of(wire, model, digests, &n);
    r->n_shape_infos = (size_t)n.shapes;
    r->actuator_infos = actuators_of(wire, model, n.actuators);
    r->n_actuator_infos = (size_t)n.actuators;
    r->sites = sites_of(wire, model, n.sites);
    r->n_sites = (size_t)n.sites;
    r->tendon_infos = tendons_of(wire, model, n.tendons);
    r->n_tendon_infos = (size_t)n.tendons;
    r->sensors = sensors_of(wire, model, n.sensors);
    r->n_sensors = (size_t)n.sensors;
    r->meshes = meshes_of(wire, model, digests, n.meshes, fields);
    r->n_meshes = (size_t)(n.meshes + fields);
    r->shapes = td_wire_names(wire, model, TB_HANDLE_SHAPE, n.shapes, &r->n_shapes);
    r->actuators = td_wire_names(wire, model, TB_HANDLE_ACTUATOR, n.actuators, &r->n_actuators);
    r->keyframes = td_wire_names(wire, model, TB_HANDLE_KEYFRAME, n.keyframes, &r->n_keyframes);
    r->tendons = td_wire_names(wire, model, TB_HANDLE_TENDON, n.tendons, &r->n_tendons);
}

/* ---- assets ---- */

static void lend_triangles(td_wire *wire, const tb_triangles *t, Tribo__V1__Array **vertices,
                           Tribo__V1__Array **triangles)
{
    *vertices = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32, t->vertices,
                              t->number_of_vertices, 3);
    *triangles = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32, t->triangles,
                               t->number_of_triangles, 3);
}

tb_status td_wire_mesh(td_wire *wire, const tb_model *model, int32_t mesh,
                       tb_triangles triangles[2], Tribo__V1__MeshGeometry **out, tb_error *error)
{
    Tribo__V1__MeshGeometry *m = td_wire_take(wire, sizeof *m);
    if (m == NULL) return tb_fail_memory(error, sizeof *m, "a mesh");
    tribo__v1__mesh_geometry__init(m);
    tb_status status = tb_model_mesh(model, mesh, false, &triangles[0], error);
    if (status != TB_OK) return status;
    lend_triangles(wire, &triangles[0], &m->vertices, &m->triangles);
    status = tb_model_mesh(model, mesh, true, &triangles[1], error);
    if (status == TB_OK)
        lend_triangles(wire, &triangles[1], &m->hull_vertices, &m->hull_triangles);
    else if (status != TB_NOT_FOUND)
        return status;
    *out = m;
    return wire->failed ? tb_fail_memory(error, 0, "a mesh") : TB_OK;
}

tb_status td_wire_height_field(td_wire *wire, const tb_model *model, int32_t field, float **heights,
                               Tribo__V1__HeightFieldGeometry **out, tb_error *error)
{
    tb_height_field_def def;
    Tribo__V1__HeightFieldGeometry *m = td_wire_take(wire, sizeof *m);
    if (m == NULL) return tb_fail_memory(error, sizeof *m, "a height field");
    tribo__v1__height_field_geometry__init(m);
    const tb_status status = tb_model_height_field(model, field, &def, heights, error);
    if (status != TB_OK) return status;
    m->heights = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32, *heights, def.rows,
                               def.columns);
    m->half_x = def.half_x;
    m->half_y = def.half_y;
    m->thickness = def.base;
    *out = m;
    return wire->failed ? tb_fail_memory(error, 0, "a height field") : TB_OK;
}
