/* MJCF spatial tendons: paths through sites, around spheres and cylinders, over pulleys. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"
#include "model/model_internal.h"
#include "model/tendon_path.h"

static const mjcf_words SITE = {.used = "site"};
static const mjcf_words ROUND = {.used = "geom sidesite"};
static const mjcf_words PULLEY = {.used = "divisor"};

tb_status mjcf_note_round(mjcf *m, const tb_shape_def *def, tb_shape_type type,
                          const mjcf_pose *pose)
{
    if (def->name == NULL) return TB_OK;
    if (tb_names_find(&m->names, TB_HANDLE_SHAPE, def->name) >= 0) return TB_OK;
    MJCF_TRY(mjcf_grow(m, (void **)&m->rounds, m->number_of_rounds, &m->round_capacity,
                       sizeof *m->rounds));
    m->rounds[m->number_of_rounds] =
        (mjcf_round){.body = def->body, .type = type, .pose = *pose, .radius = def->size[0]};
    if (!tb_names_insert(&m->names, TB_HANDLE_SHAPE, def->name, m->number_of_rounds))
        return tb_fail_memory(m->error, strlen(def->name), "a name");
    m->number_of_rounds++;
    return TB_OK;
}

/* ---- the path ---- */

static tb_status find_site(mjcf *m, const xmlNode *node, const char *attribute,
                           const tb_site_def **site)
{
    const char *name = NULL;
    MJCF_TRY(mjcf_reference(m, node, attribute, &name));
    const tb_handle handle = tb_scene_find(m->scene, TB_HANDLE_SITE, name);
    if (tb_handle_is_none(handle))
        return tb_xml_fail(m->error, TB_NOT_FOUND, node, attribute, "there is no site '%.100s'",
                           name);
    *site = &m->sites[scene_index(handle)];
    return TB_OK;
}

static tb_status read_site(mjcf *m, const xmlNode *node, tb_tendon_point *point)
{
    const tb_site_def *site = NULL;
    MJCF_TRY(mjcf_check_attributes(m, node, &SITE));
    MJCF_TRY(find_site(m, node, "site", &site));
    point->body = site->body;
    memcpy(point->position, site->position, sizeof point->position);
    return TB_OK;
}

static tb_status read_round(mjcf *m, const xmlNode *node, tb_tendon_point *point)
{
    const char *name = NULL;
    MJCF_TRY(mjcf_check_attributes(m, node, &ROUND));
    MJCF_TRY(mjcf_reference(m, node, "geom", &name));
    const int32_t index = tb_names_find(&m->names, TB_HANDLE_SHAPE, name);
    if (index < 0)
        return tb_xml_fail(m->error, TB_NOT_FOUND, node, "geom", "there is no geom '%.100s'", name);
    const mjcf_round *round = &m->rounds[index];
    if (round->type != TB_SHAPE_SPHERE && round->type != TB_SHAPE_CYLINDER)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "geom",
                           "geom '%.100s' is neither sphere nor cylinder", name);
    point->kind = round->type == TB_SHAPE_SPHERE ? TB_TENDON_SPHERE : TB_TENDON_CYLINDER;
    point->body = round->body;
    tb_v3_store(point->position, round->pose.position);
    tb_q_store(point->orientation, round->pose.orientation);
    point->radius = round->radius;
    if (tb_xml_attribute(node, "sidesite") == NULL) return TB_OK;
    const tb_site_def *side = NULL;
    MJCF_TRY(find_site(m, node, "sidesite", &side));
    point->has_side = true;
    point->side_body = side->body;
    memcpy(point->side, side->position, sizeof point->side);
    return TB_OK;
}

static tb_status read_pulley(mjcf *m, const xmlNode *node, tb_tendon_point *point)
{
    const char *text = NULL;
    point->kind = TB_TENDON_PULLEY;
    MJCF_TRY(mjcf_check_attributes(m, node, &PULLEY));
    MJCF_TRY(tb_xml_require(node, "divisor", &text, m->error));
    MJCF_TRY(tb_xml_number(node, "divisor", &point->divisor, m->error));
    if (!(point->divisor > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "divisor",
                           "divisor is %g, not positive", point->divisor);
    return TB_OK;
}

tb_status mjcf_read_path(mjcf *m, const xmlNode *node, mjcf_tendon *tendon)
{
    int32_t count = 0;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) count++;
    if (count < 2)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                           "a spatial tendon of fewer than two points");
    tendon->points = calloc((size_t)count, sizeof *tendon->points);
    if (tendon->points == NULL) return tb_fail_memory(m->error, (size_t)count, "a tendon");
    tendon->def.number_of_points = count;
    tb_tendon_point *point = tendon->points;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c), point++) {
        *point = tb_tendon_point_defaults();
        if (tb_xml_is(c, "site"))
            MJCF_TRY(read_site(m, c, point));
        else if (tb_xml_is(c, "geom"))
            MJCF_TRY(read_round(m, c, point));
        else if (tb_xml_is(c, "pulley"))
            MJCF_TRY(read_pulley(m, c, point));
        else
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                               "unknown element in 'spatial'");
    }
    return TB_OK;
}

/* ---- lengths of rest ---- */

/* Moves a pose as a hinge or a slide moves to its spring reference. Other joints keep their
 * described pose. */
static void move_joint(const tb_joint_def *joint, mjcf_pose *pose)
{
    const double way = joint->spring_reference - joint->reference;
    const tb_vec3 axis = tb_v3_load(joint->axis), offset = tb_v3_load(joint->position);
    if (joint->type == TB_JOINT_SLIDE)
        pose->position =
            tb_v3_add_scaled(pose->position, tb_q_rotate(pose->orientation, axis), way);
    if (joint->type != TB_JOINT_HINGE) return;
    const tb_vec3 anchor = tb_v3_add(pose->position, tb_q_rotate(pose->orientation, offset));
    const tb_quaternion turn = tb_q_from_rotation_vector(tb_v3_scale(axis, way));
    pose->orientation = tb_q_normalize(tb_q_mul(pose->orientation, turn));
    pose->position = tb_v3_sub(anchor, tb_q_rotate(pose->orientation, offset));
}

/* Poses of the world and of all bodies with hinges and slides at their spring references. */
static void find_rest_poses(const tb_scene *scene, mjcf_pose *at, tb_pose *poses)
{
    at[0] = mjcf_pose_identity();
    poses[0] = tb_pose_identity();
    for (int32_t b = 0; b < scene->number_of_bodies; b++) {
        const scene_body *body = &scene->bodies[b];
        const mjcf_pose local = {tb_v3_load(body->position), tb_q_load(body->orientation)};
        at[b + 1] = mjcf_pose_mul(&at[body->parent + 1], &local);
        for (int32_t j = 0; body->number_of_dofs > 0 && j < scene->number_of_joints; j++)
            if (scene_index(scene->joints[j].body) == b) move_joint(&scene->joints[j], &at[b + 1]);
        poses[b + 1].position = at[b + 1].position;
        poses[b + 1].rotation = tb_q_matrix(at[b + 1].orientation);
    }
}

static tb_status rest(mjcf *m, mjcf_tendon *tendon, const tb_pose *poses)
{
    const int32_t count = tendon->def.number_of_points;
    tb_model_tendon_point *points = calloc((size_t)count, sizeof *points);
    if (points == NULL) return tb_fail_memory(m->error, (size_t)count, "a tendon");
    for (int32_t i = 0; i < count; i++) {
        const tb_tendon_point *from = &tendon->points[i];
        const tb_mat33 rotation = tb_q_matrix(tb_q_load(from->orientation));
        points[i] = (tb_model_tendon_point){.kind = from->kind,
                                            .body = scene_index(from->body) + 1,
                                            .radius = from->radius,
                                            .divisor = from->divisor};
        memcpy(points[i].position, from->position, sizeof points[i].position);
        memcpy(points[i].rotation, rotation.m, sizeof points[i].rotation);
        memcpy(points[i].side, from->side, sizeof points[i].side);
        points[i].side_body = from->has_side ? scene_index(from->side_body) + 1 : -1;
    }
    tendon->def.spring_lower = tb_tendon_path_length(points, count, poses);
    tendon->def.spring_upper = tendon->def.spring_lower;
    free(points);
    return TB_OK;
}

tb_status mjcf_rest_tendons(mjcf *m)
{
    bool any = false;
    for (int32_t i = 0; i < m->number_of_tendons; i++) any = any || m->tendons[i].rests_by_joints;
    if (!any) return TB_OK;
    const size_t bodies = (size_t)m->scene->number_of_bodies + 1;
    mjcf_pose *at = calloc(bodies, sizeof *at);
    tb_pose *poses = calloc(bodies, sizeof *poses);
    tb_status status = TB_OK;
    if (at == NULL || poses == NULL) status = tb_fail_memory(m->error, bodies, "poses");
    if (status == TB_OK) find_rest_poses(m->scene, at, poses);
    for (int32_t i = 0; i < m->number_of_tendons && status == TB_OK; i++)
        if (m->tendons[i].rests_by_joints) status = rest(m, &m->tendons[i], poses);
    free(at);
    free(poses);
    return status;
}
