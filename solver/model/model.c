/* Public getters of a compiled model, and models from their bytes. */
#include "model/canonical.h"

#include <stdlib.h>
#include <string.h>

void tb_model_destroy(tb_model *model)
{
    if (model == NULL) return;
    if (model->name_index != NULL) tb_names_destroy(model->name_index);
    free(model->name_index);
    free(model->bytes);
    tb_arena_destroy(&model->arena);
    free(model);
}

/* ---- information ---- */

tb_model_counts tb_model_count(const tb_model *model)
{
    const tb_model_counts counts = {
        .bodies = model->number_of_bodies,
        .joints = model->number_of_joints,
        .coordinates = model->number_of_coordinates,
        .dofs = model->number_of_dofs,
        .shapes = model->number_of_shapes,
        .meshes = model->number_of_mesh_assets,
        .sites = model->number_of_sites,
        .sensors = model->number_of_sensors,
        .sensor_numbers = model->number_of_sensor_numbers,
        .tendons = model->number_of_tendons,
        .actuators = model->number_of_actuators,
        .activations = model->number_of_activations,
        .equalities = model->number_of_equalities,
        .pairs = model->number_of_pairs,
        .keyframes = model->number_of_keyframes,
        .kinematic_bodies = model->number_of_kinematic_bodies,
        .trees = model->number_of_trees,
        .warnings = model->number_of_warnings,
    };
    return counts;
}

bool tb_model_has_meshes(const tb_model *model)
{
    /* only assets of shapes that can collide are compiled */
    return model->number_of_meshes > 0 || model->number_of_height_fields > 0 ||
           model->number_of_elements > 0 || model->number_of_elastics > 0;
}

const char *tb_model_name(const tb_model *model)
{
    return model->name;
}

double tb_model_dt(const tb_model *model)
{
    return model->dt;
}

void tb_model_gravity(const tb_model *model, double gravity[3])
{
    memcpy(gravity, model->gravity, sizeof model->gravity);
}

double tb_model_total_mass(const tb_model *model)
{
    return model->total_mass;
}

const char *tb_model_warning(const tb_model *model, int32_t index)
{
    return index >= 0 && index < model->number_of_warnings ? model->warnings[index] : "";
}

const char *tb_model_sha256(const tb_model *model)
{
    return model->sha256;
}

const unsigned char *tb_model_bytes(const tb_model *model, size_t *size)
{
    *size = model->bytes_size;
    return model->bytes;
}

int32_t tb_model_find(const tb_model *model, tb_handle_kind kind, const char *name)
{
    if (name == NULL || name[0] == 0) return -1;
    return tb_names_find(model->origin != NULL ? model->origin->name_index : model->name_index,
                         kind, name);
}

const char *tb_model_thing_name(const tb_model *model, tb_handle_kind kind, int32_t index)
{
    if ((unsigned)kind > TB_HANDLE_SENSOR || index < 0 || index >= model->number_of_names[kind])
        return "";
    return model->names[kind][index];
}

tb_status tb_model_body_info(const tb_model *model, int32_t index, tb_body_info *info)
{
    memset(info, 0, sizeof *info);
    if (index < 0 || index >= model->number_of_bodies) return TB_INVALID_ARGUMENT;
    const tb_model_body *body = &model->bodies[index];
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    tb_mat33 axes;
    info->parent = body->parent;
    info->kinematic = body->kinematic >= 0;
    info->mass = body->mass;
    memcpy(info->com, body->com, sizeof info->com);
    memcpy(info->inertia, body->inertia, sizeof info->inertia);
    memcpy(info->position, body->position, sizeof info->position);
    memcpy(info->orientation, body->orientation, sizeof info->orientation);
    tb_m33_eigen(&inertia, info->principal, &axes);
    return TB_OK;
}

tb_status tb_model_joint_info(const tb_model *model, int32_t index, tb_joint_info *info)
{
    memset(info, 0, sizeof *info);
    if (index < 0 || index >= model->number_of_joints) return TB_INVALID_ARGUMENT;
    const tb_model_joint *joint = &model->joints[index];
    info->body = joint->body;
    info->type = joint->type;
    info->coordinate = joint->coordinate;
    info->dof = joint->dof;
    info->coordinates = tb_joint_coordinates(joint->type);
    info->dofs = tb_joint_dofs(joint->type);
    info->limited = joint->limited;
    info->lower = joint->lower;
    info->upper = joint->upper;
    memcpy(info->position, joint->position, sizeof info->position);
    memcpy(info->axis, joint->axis, sizeof info->axis);
    return TB_OK;
}

tb_status tb_model_from_bytes(const unsigned char *bytes, size_t size, tb_model **model,
                              tb_error *error)
{
    unsigned char checksum[TB_CANONICAL_CHECKSUM_SIZE];
    tb_scene *scene = NULL;
    *model = NULL;
    if (bytes == NULL || size < sizeof checksum)
        return tb_fail_field(error, TB_DATA_LOSS, "bytes",
                             "model bytes are damaged: there are only %zu", size);
    const size_t content = size - sizeof checksum;
    tb_canonical_checksum(bytes, content, checksum);
    if (memcmp(checksum, bytes + content, sizeof checksum) != 0)
        return tb_fail_field(error, TB_DATA_LOSS, "bytes",
                             "model bytes are damaged: their checksum is wrong");

    tb_status status = tb_canonical_read(bytes, content, &scene, error);
    if (status == TB_OK) status = tb_scene_compile(scene, model, error);
    tb_scene_destroy(scene);
    if (status == TB_OK &&
        ((*model)->bytes_size != size || memcmp((*model)->bytes, bytes, size) != 0)) {
        tb_model_destroy(*model);
        *model = NULL;
        return tb_fail_field(error, TB_DATA_LOSS, "bytes",
                             "model bytes are damaged: they are not in canonical form");
    }
    /* the builder and the compiler blame an argument; here the bytes are at fault */
    if (status == TB_INVALID_ARGUMENT) {
        if (error != NULL) error->status = TB_DATA_LOSS;
        status = TB_DATA_LOSS;
    }
    return status;
}
