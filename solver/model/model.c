/* Questions to a compiled model, and the rules about which shapes may touch. */
#include "model/model_internal.h"

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

tb_status tb_model_load(const char *path, const tb_import_options *options, tb_model **model,
                        tb_error *error)
{
    tb_scene *scene = NULL;
    *model = NULL;
    tb_status status = tb_scene_load(path, options, &scene, error);
    if (status == TB_OK) status = tb_scene_compile(scene, model, error);
    tb_scene_destroy(scene);
    return status;
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
    return name == NULL || name[0] == 0 ? -1 : tb_names_find(model->name_index, kind, name);
}

const char *tb_model_thing_name(const tb_model *model, tb_handle_kind kind, int32_t index)
{
    if ((unsigned)kind > TB_HANDLE_KEYFRAME || index < 0 || index >= model->number_of_names[kind])
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
    return TB_OK;
}

/* ---- which shapes may touch ---- */

const tb_model_pair *tb_model_find_pair(const tb_model *model, int32_t a, int32_t b)
{
    const int32_t lower = a < b ? a : b, upper = a < b ? b : a;
    int32_t first = model->shape_pair_start[lower], end = model->shape_pair_start[lower + 1];
    while (first < end) {
        const int32_t middle = first + (end - first) / 2;
        if (model->pairs[middle].b < upper)
            first = middle + 1;
        else
            end = middle;
    }
    return first < model->shape_pair_start[lower + 1] && model->pairs[first].b == upper
               ? &model->pairs[first]
               : NULL;
}

static bool is_excluded(const tb_model *model, int32_t body_a, int32_t body_b)
{
    const int32_t a = body_a < body_b ? body_a : body_b, b = body_a < body_b ? body_b : body_a;
    int32_t first = 0, end = model->number_of_excludes;
    while (first < end) {
        const int32_t middle = first + (end - first) / 2;
        const tb_model_exclude *e = &model->excludes[middle];
        if (e->a < a || (e->a == a && e->b < b))
            first = middle + 1;
        else
            end = middle;
    }
    return first < model->number_of_excludes && model->excludes[first].a == a &&
           model->excludes[first].b == b;
}

bool tb_model_shapes_collide(const tb_model *model, int32_t a, int32_t b)
{
    const tb_model_filter *p = &model->filters[a], *q = &model->filters[b];

    /* no joint between the two, or none that can give way: nothing to solve for, listed or not */
    if (p->root == q->root) return false;
    if (!p->moves && !q->moves) return false;
    if (model->number_of_pairs > 0 && tb_model_find_pair(model, a, b) != NULL) return true;
    if (!(p->category & q->mask) && !(q->category & p->mask)) return false;

    /* parent and child, bodies fixed to each other counting as one */
    if (p->above == q->root || q->above == p->root) return false;
    return model->number_of_excludes == 0 ||
           !is_excluded(model, model->shapes[a].body, model->shapes[b].body);
}

tb_surface tb_model_pair_surface(const tb_model *model, int32_t a, int32_t b)
{
    const tb_model_pair *listed =
        model->number_of_pairs > 0 ? tb_model_find_pair(model, a, b) : NULL;
    if (listed != NULL) return listed->surface;
    const tb_surface *p = &model->shapes[a].surface, *q = &model->shapes[b].surface;
    tb_surface surface;
    surface.kind = p->kind > q->kind ? p->kind : q->kind;
    surface.friction = tb_max(p->friction, q->friction);
    surface.restitution = tb_max(p->restitution, q->restitution);
    /* the larger torque counts, and a torque is friction times radius */
    const double torque = tb_max(p->friction * p->spin_radius, q->friction * q->spin_radius);
    surface.spin_radius = surface.friction > 0 ? torque / surface.friction : 0;
    surface.rolling_length = tb_max(p->rolling_length, q->rolling_length);
    return surface;
}
