/* The scene builder: sensors, and the table of their types. */
#include <string.h>

#include "model/model_internal.h"

/* Word of MJCF, numbers and kind of object (BODY: of a frame also SHAPE and SITE). */
typedef struct type_row {
    const char *name;
    int32_t numbers;
    tb_handle_kind object;
} type_row;

static const type_row TYPES[TB_SENSOR_TYPES] = {
    [TB_SENSOR_JOINT_POSITION] = {"jointpos", 1, TB_HANDLE_JOINT},
    [TB_SENSOR_JOINT_VELOCITY] = {"jointvel", 1, TB_HANDLE_JOINT},
    [TB_SENSOR_JOINT_LIMIT_FORCE] = {"jointlimitfrc", 1, TB_HANDLE_JOINT},
    [TB_SENSOR_BALL_ORIENTATION] = {"ballquat", 4, TB_HANDLE_JOINT},
    [TB_SENSOR_BALL_VELOCITY] = {"ballangvel", 3, TB_HANDLE_JOINT},
    [TB_SENSOR_TENDON_POSITION] = {"tendonpos", 1, TB_HANDLE_TENDON},
    [TB_SENSOR_TENDON_VELOCITY] = {"tendonvel", 1, TB_HANDLE_TENDON},
    [TB_SENSOR_ACTUATOR_POSITION] = {"actuatorpos", 1, TB_HANDLE_ACTUATOR},
    [TB_SENSOR_ACTUATOR_VELOCITY] = {"actuatorvel", 1, TB_HANDLE_ACTUATOR},
    [TB_SENSOR_ACTUATOR_FORCE] = {"actuatorfrc", 1, TB_HANDLE_ACTUATOR},
    [TB_SENSOR_FRAME_POSITION] = {"framepos", 3, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_ORIENTATION] = {"framequat", 4, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_X_AXIS] = {"framexaxis", 3, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_Y_AXIS] = {"frameyaxis", 3, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_Z_AXIS] = {"framezaxis", 3, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_LINEAR_VELOCITY] = {"framelinvel", 3, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_ANGULAR_VELOCITY] = {"frameangvel", 3, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_LINEAR_ACCELERATION] = {"framelinacc", 3, TB_HANDLE_BODY},
    [TB_SENSOR_FRAME_ANGULAR_ACCELERATION] = {"frameangacc", 3, TB_HANDLE_BODY},
    [TB_SENSOR_SUBTREE_COM] = {"subtreecom", 3, TB_HANDLE_BODY},
    [TB_SENSOR_SUBTREE_VELOCITY] = {"subtreelinvel", 3, TB_HANDLE_BODY},
    [TB_SENSOR_SUBTREE_ANGULAR_MOMENTUM] = {"subtreeangmom", 3, TB_HANDLE_BODY},
    [TB_SENSOR_ACCELEROMETER] = {"accelerometer", 3, TB_HANDLE_SITE},
    [TB_SENSOR_VELOCIMETER] = {"velocimeter", 3, TB_HANDLE_SITE},
    [TB_SENSOR_GYRO] = {"gyro", 3, TB_HANDLE_SITE},
    [TB_SENSOR_FORCE] = {"force", 3, TB_HANDLE_SITE},
    [TB_SENSOR_TORQUE] = {"torque", 3, TB_HANDLE_SITE},
    [TB_SENSOR_TOUCH] = {"touch", 1, TB_HANDLE_SITE},
    [TB_SENSOR_CLOCK] = {"clock", 1, TB_HANDLE_NONE},
};

static bool is_type(tb_sensor_type type)
{
    return (unsigned)type < TB_SENSOR_TYPES;
}

const char *tb_sensor_type_name(tb_sensor_type type)
{
    return is_type(type) ? TYPES[type].name : "";
}

int32_t tb_sensor_type_numbers(tb_sensor_type type)
{
    return is_type(type) ? TYPES[type].numbers : 0;
}

tb_handle_kind tb_sensor_type_object(tb_sensor_type type)
{
    return is_type(type) ? TYPES[type].object : TB_HANDLE_NONE;
}

tb_sensor_def tb_sensor_defaults(void)
{
    const tb_sensor_def def = {.type = TB_SENSOR_CLOCK};
    return def;
}

static bool is_frame(tb_sensor_type type)
{
    return type >= TB_SENSOR_FRAME_POSITION && type <= TB_SENSOR_FRAME_ANGULAR_ACCELERATION;
}

static bool is_kind_of_frame(int kind)
{
    return kind == TB_HANDLE_BODY || kind == TB_HANDLE_SHAPE || kind == TB_HANDLE_SITE;
}

/* A body (none: the world), shape or site. */
static void check_frame(tb_check *check, const tb_scene *scene, const char *field, tb_handle end,
                        bool *at_com)
{
    int32_t index;
    if (end.kind != TB_HANDLE_NONE && !is_kind_of_frame(end.kind))
        tb_check_fail(check, field, "must be a body, a shape or a site");
    if (!tb_handle_is_none(end))
        tb_check_handle(check, scene, field, end, (tb_handle_kind)end.kind, false, &index);
    *at_com = *at_com && end.kind == TB_HANDLE_BODY && !tb_handle_is_none(end);
}

static void check_joint(tb_check *check, tb_sensor_type type, tb_joint_type joint)
{
    const bool ball = type == TB_SENSOR_BALL_ORIENTATION || type == TB_SENSOR_BALL_VELOCITY;
    if (type == TB_SENSOR_JOINT_LIMIT_FORCE && joint == TB_JOINT_BALL) return;
    if (ball ? joint != TB_JOINT_BALL : joint != TB_JOINT_HINGE && joint != TB_JOINT_SLIDE)
        tb_check_fail(check, "object", ball ? "must be a ball joint" : "must be a hinge or slide");
}

static void check_actuator(tb_check *check, const tb_scene *scene, tb_sensor_type type,
                           int32_t index)
{
    const tb_handle target = scene->actuators[index].target;
    const bool simple = target.kind == TB_HANDLE_TENDON ||
                        (target.kind == TB_HANDLE_JOINT &&
                         (scene->joints[scene_index(target)].type == TB_JOINT_HINGE ||
                          scene->joints[scene_index(target)].type == TB_JOINT_SLIDE));
    if (type != TB_SENSOR_ACTUATOR_FORCE && !simple)
        tb_check_fail(check, "object", "must act on a hinge, a slide or a tendon");
}

static void check_object(tb_check *check, const tb_scene *scene, tb_sensor_def *s)
{
    const tb_handle_kind kind = TYPES[s->type].object;
    int32_t index = -1;
    if (kind == TB_HANDLE_NONE) {
        if (!tb_handle_is_none(s->object)) tb_check_fail(check, "object", "a clock has none");
        return;
    }
    if (is_frame(s->type)) {
        check_frame(check, scene, "object", s->object, &s->object_at_com);
        return;
    }
    s->object_at_com = false;
    tb_check_handle(check, scene, "object", s->object, kind, kind == TB_HANDLE_BODY, &index);
    if (check->status != TB_OK) return;
    if (kind == TB_HANDLE_JOINT) check_joint(check, s->type, scene->joints[index].type);
    if (kind == TB_HANDLE_ACTUATOR) check_actuator(check, scene, s->type, index);
}

static void check_reference(tb_check *check, const tb_scene *scene, tb_sensor_def *s)
{
    if (!s->has_reference) {
        memset(&s->reference, 0, sizeof s->reference);
        s->reference_at_com = false;
        return;
    }
    if (!is_frame(s->type) || s->type > TB_SENSOR_FRAME_ANGULAR_VELOCITY)
        tb_check_fail(check, "reference", "has no meaning for this type of sensor");
    check_frame(check, scene, "reference", s->reference, &s->reference_at_com);
}

static void check_zone(tb_check *check, tb_sensor_def *s)
{
    if (s->type != TB_SENSOR_TOUCH) {
        s->zone_type = (tb_shape_type)0;
        memset(s->zone_size, 0, sizeof s->zone_size);
        return;
    }
    if (s->zone_type < TB_SHAPE_SPHERE || s->zone_type > TB_SHAPE_ELLIPSOID)
        tb_check_fail(check, "zone_type", "must be a sphere, capsule, cylinder, box or ellipsoid");
    const int numbers = s->zone_type == TB_SHAPE_SPHERE                                      ? 1
                        : s->zone_type == TB_SHAPE_BOX || s->zone_type == TB_SHAPE_ELLIPSOID ? 3
                                                                                             : 2;
    for (int k = numbers; k < 3; k++) s->zone_size[k] = 0;
    tb_check_positive(check, "zone_size", s->zone_size, numbers);
}

tb_status tb_scene_add_sensor(tb_scene *scene, const tb_sensor_def *def, tb_handle *handle,
                              tb_error *error)
{
    const int32_t index = scene->number_of_sensors;
    tb_sensor_def sensor = *def;
    if (handle != NULL) memset(handle, 0, sizeof *handle);

    tb_check check = tb_check_begin(TB_HANDLE_SENSOR, def->name, index, error);
    if (!is_type(sensor.type)) tb_check_fail(&check, "type", "is unknown");
    if (check.status == TB_OK) {
        check_object(&check, scene, &sensor);
        check_reference(&check, scene, &sensor);
        check_zone(&check, &sensor);
    }
    tb_check_not_negative(&check, "cutoff", &sensor.cutoff, 1);
    tb_check_name(&check, scene);
    if (check.status != TB_OK) return check.status;

    tb_status status = tb_scene_reserve(&scene->sensors, index, &scene->sensor_capacity,
                                        sizeof sensor, TB_HANDLE_SENSOR, error);
    if (status == TB_OK)
        status =
            tb_scene_enter_name(scene, TB_HANDLE_SENSOR, def->name, index, &sensor.name, error);
    if (status != TB_OK) return status;
    scene->sensors[index] = sensor;
    scene->number_of_sensors++;
    if (handle != NULL) *handle = tb_handle_make(TB_HANDLE_SENSOR, scene->owner, index);
    return TB_OK;
}
