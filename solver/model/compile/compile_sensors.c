/* Compiles sensors: objects and references in the model's numbering, and where their numbers lie. */
#include <string.h>

#include "model/model_internal.h"

/* Index of a scene's element in the model's numbering; 0, the world, for none. */
static int32_t model_index(const tb_compiler *c, tb_handle handle)
{
    const int32_t index = scene_index(handle);
    if (index < 0) return 0;
    switch (handle.kind) {
    case TB_HANDLE_BODY: return c->model_body[index];
    case TB_HANDLE_JOINT: return c->model_joint[index];
    case TB_HANDLE_SHAPE: return c->model_shape[index];
    case TB_HANDLE_SITE:
        for (int32_t i = 0; i < c->model->number_of_sites; i++)
            if (c->scene_site[i] == index) return i;
        return -1;
    default: return index; /* tendons and actuators keep their order */
    }
}

static tb_model_frame frame_of(const tb_compiler *c, tb_handle handle, bool at_com)
{
    tb_model_frame frame = {.orientation = {1, 0, 0, 0}};
    const int32_t index = model_index(c, handle);
    if (handle.kind == TB_HANDLE_SHAPE) {
        const tb_model_shape *shape = &c->shapes[index];
        frame.body = shape->body;
        memcpy(frame.position, shape->position, sizeof frame.position);
        memcpy(frame.orientation, shape->orientation, sizeof frame.orientation);
    } else if (handle.kind == TB_HANDLE_SITE) {
        const tb_model_site *site = &c->model->sites[index];
        frame.body = site->body;
        memcpy(frame.position, site->position, sizeof frame.position);
        memcpy(frame.orientation, site->orientation, sizeof frame.orientation);
    } else {
        frame.body = index;
        if (at_com) memcpy(frame.position, c->bodies[index].com, sizeof frame.position);
    }
    return frame;
}

static bool needs_acceleration(tb_sensor_type type)
{
    return type == TB_SENSOR_FRAME_LINEAR_ACCELERATION ||
           type == TB_SENSOR_FRAME_ANGULAR_ACCELERATION || type == TB_SENSOR_ACCELEROMETER ||
           type == TB_SENSOR_FORCE || type == TB_SENSOR_TORQUE;
}

tb_status tb_compile_sensors(tb_compiler *c)
{
    tb_model *m = c->model;
    const int32_t count = c->scene->number_of_sensors;
    tb_model_sensor *sensors = TB_ARENA_ZEROED(&m->arena, tb_model_sensor, count);
    if (sensors == NULL)
        return tb_fail_memory(c->error, (size_t)count * sizeof *sensors, "sensors");
    for (int32_t i = 0; i < count; i++) {
        const tb_sensor_def *def = &c->scene->sensors[i];
        const tb_handle_kind kind = tb_sensor_type_object(def->type);
        tb_model_sensor *s = &sensors[i];
        s->type = def->type;
        s->object_kind = kind == TB_HANDLE_BODY && !tb_handle_is_none(def->object)
                             ? (tb_handle_kind)def->object.kind
                             : kind;
        s->object = kind == TB_HANDLE_NONE ? -1 : model_index(c, def->object);
        if (kind == TB_HANDLE_BODY || kind == TB_HANDLE_SITE)
            s->of = frame_of(c, def->object, def->object_at_com);
        s->has_reference = def->has_reference;
        if (def->has_reference) s->relative = frame_of(c, def->reference, def->reference_at_com);
        s->cutoff = def->cutoff;
        s->zone_type = def->zone_type;
        memcpy(s->zone_size, def->zone_size, sizeof s->zone_size);
        s->first = m->number_of_sensor_numbers;
        s->numbers = tb_sensor_type_numbers(def->type);
        m->number_of_sensor_numbers += s->numbers;
        if (needs_acceleration(def->type)) m->number_of_past_velocities = m->number_of_dofs;
    }
    m->sensors = sensors;
    m->number_of_sensors = count;
    return TB_OK;
}
