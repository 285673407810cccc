/* Compiles the tree: the model's numbering, its joints and dofs, and the described pose.
 *
 * Bodies are numbered depth first and children in the order in which they were added, as MuJoCo
 * numbers them. Joints, shapes and sites are grouped by body in that order. Two descriptions of
 * the same scene in different order therefore compile to the same model, with the same canonical
 * bytes. */
#include "model/model_internal.h"

#include <string.h>

/* ---- numbering ---- */

/* Depth-first order without recursion: chains may be 100,000 bodies long. */
static tb_status order_bodies(tb_compiler *c)
{
    const tb_scene *scene = c->scene;
    const int32_t n = scene->number_of_bodies;
    int32_t *first = TB_ARENA_ARRAY(&c->scratch, int32_t, n + 1); /* child, by scene index + 1 */
    int32_t *last = TB_ARENA_ARRAY(&c->scratch, int32_t, n + 1);
    int32_t *next = TB_ARENA_ARRAY(&c->scratch, int32_t, n + 1); /* sibling */
    if (first == NULL || last == NULL || next == NULL)
        return tb_fail_memory(c->error, (size_t)n * sizeof *first, "body order");
    for (int32_t i = 0; i <= n; i++) first[i] = last[i] = next[i] = -1;
    for (int32_t i = 0; i < n; i++) {
        const int32_t parent = scene->bodies[i].parent + 1;
        if (first[parent] < 0)
            first[parent] = i;
        else
            next[last[parent] + 1] = i;
        last[parent] = i;
    }

    int32_t count = 0, at = -1;
    c->scene_body[count++] = -1;
    while (true) {
        int32_t to = first[at + 1];
        while (to < 0 && at >= 0) { /* no child: the next sibling of the nearest ancestor that
                                       has one */
            to = next[at + 1];
            if (to < 0) at = scene->bodies[at].parent;
        }
        if (to < 0) break;
        c->model_body[to] = count;
        c->scene_body[count++] = to;
        at = to;
    }
    c->model->number_of_bodies = count;
    return TB_OK;
}

/* Groups `count` elements by their body (model index), stably: sorted receives their scene
 * indices, start the first of each body. */
static void group_by_body(const int32_t *body, int32_t count, int32_t bodies, int32_t *start,
                          int32_t *sorted)
{
    memset(start, 0, ((size_t)bodies + 1) * sizeof *start);
    for (int32_t i = 0; i < count; i++) start[body[i] + 1]++;
    for (int32_t b = 0; b < bodies; b++) start[b + 1] += start[b];
    for (int32_t i = 0; i < count; i++) sorted[start[body[i]]++] = i;
    for (int32_t b = bodies; b > 0; b--) start[b] = start[b - 1];
    start[0] = 0;
}

static int32_t body_of(const tb_compiler *c, tb_handle body)
{
    return tb_handle_is_none(body) ? 0 : c->model_body[scene_index(body)];
}

tb_status tb_compile_order(tb_compiler *c)
{
    const tb_scene *scene = c->scene;
    const int32_t bodies = scene->number_of_bodies + 1;
    const int32_t shapes = scene->number_of_shapes, joints = scene->number_of_joints;
    const int32_t sites = scene->number_of_sites;
    const int32_t most = tb_max(shapes, tb_max(joints, sites)) > 0
                             ? (int32_t)tb_max(shapes, tb_max(joints, sites))
                             : 1;
    tb_arena *arena = &c->scratch;
    c->scene_body = TB_ARENA_ARRAY(arena, int32_t, bodies);
    c->model_body = TB_ARENA_ARRAY(arena, int32_t, bodies);
    c->body_shapes = TB_ARENA_ARRAY(arena, int32_t, bodies + 1);
    c->body_joints = TB_ARENA_ARRAY(arena, int32_t, bodies + 1);
    c->scene_shape = TB_ARENA_ARRAY(arena, int32_t, shapes);
    c->model_shape = TB_ARENA_ARRAY(arena, int32_t, shapes);
    c->scene_joint = TB_ARENA_ARRAY(arena, int32_t, joints);
    c->model_joint = TB_ARENA_ARRAY(arena, int32_t, joints);
    c->scene_site = TB_ARENA_ARRAY(arena, int32_t, sites);
    int32_t *body = TB_ARENA_ARRAY(arena, int32_t, most);
    int32_t *start = TB_ARENA_ARRAY(arena, int32_t, bodies + 1);
    if (!c->scene_body || !c->model_body || !c->body_shapes || !c->body_joints || !c->scene_shape ||
        !c->model_shape || !c->scene_joint || !c->model_joint || !c->scene_site || !body || !start)
        return tb_fail_memory(c->error, (size_t)bodies * sizeof *body, "model order");
    const tb_status status = order_bodies(c);
    if (status != TB_OK) return status;

    for (int32_t i = 0; i < joints; i++) body[i] = body_of(c, scene->joints[i].body);
    group_by_body(body, joints, bodies, c->body_joints, c->scene_joint);
    for (int32_t i = 0; i < shapes; i++) body[i] = body_of(c, scene->shapes[i].body);
    group_by_body(body, shapes, bodies, c->body_shapes, c->scene_shape);
    for (int32_t i = 0; i < shapes; i++) c->model_shape[c->scene_shape[i]] = i;
    for (int32_t i = 0; i < sites; i++) body[i] = body_of(c, scene->sites[i].body);
    group_by_body(body, sites, bodies, start, c->scene_site);
    return TB_OK;
}

/* ---- counting ---- */

typedef struct joint_size {
    int joints, coordinates, dofs;
} joint_size;

static joint_size size_of(tb_joint_type type)
{
    static const joint_size sizes[] = {
        [TB_JOINT_FIXED] = {0, 0, 0}, [TB_JOINT_HINGE] = {1, 1, 1}, [TB_JOINT_SLIDE] = {1, 1, 1},
        [TB_JOINT_BALL] = {1, 4, 3},  [TB_JOINT_FREE] = {1, 7, 6},  [TB_JOINT_PLANAR] = {3, 3, 3}};
    return sizes[type];
}

static void count_joints(tb_compiler *c)
{
    tb_model *model = c->model;
    for (int32_t i = 0; i < c->scene->number_of_joints; i++) {
        const joint_size size = size_of(c->scene->joints[c->scene_joint[i]].type);
        c->model_joint[c->scene_joint[i]] = size.joints > 0 ? model->number_of_joints : -1;
        model->number_of_joints += size.joints;
        model->number_of_coordinates += size.coordinates;
        model->number_of_dofs += size.dofs;
    }
}

/* ---- joints and dofs ---- */

/* Indices of the next joint, coordinate and dof. */
typedef struct tree_cursor {
    int32_t joint, coordinate, dof, tree;
    double *q;
} tree_cursor;

static void add_joint(tb_compiler *c, tree_cursor *at, int32_t body_index, const tb_joint_def *def,
                      tb_joint_type type, const double axis[3])
{
    tb_model_body *body = &c->bodies[body_index];
    tb_model_joint *joint = &c->joints[at->joint];
    const joint_size size = size_of(type);
    joint->type = type;
    joint->body = body_index;
    joint->coordinate = at->coordinate;
    joint->dof = at->dof;
    memcpy(joint->position, def->position, sizeof joint->position);
    memcpy(joint->axis, axis, sizeof joint->axis);
    joint->limited = def->limited;
    joint->lower = def->lower;
    joint->upper = def->upper;
    joint->stiffness = def->stiffness;
    joint->spring_reference = def->spring_reference;
    joint->reference = def->reference;
    memcpy(joint->stiffness_polynomial, def->stiffness_polynomial,
           sizeof joint->stiffness_polynomial);
    const double *spring = def->stiffness_polynomial, *damper = def->damping_polynomial;
    if (spring[0] != 0 || spring[1] != 0 || damper[0] != 0 || damper[1] != 0)
        c->model->has_polynomials = true;
    joint->force_limited = def->actuator_force_limited;
    joint->force_lower = def->actuator_force_lower;
    joint->force_upper = def->actuator_force_upper;
    joint->actuators_compensate_gravity = def->actuators_compensate_gravity;

    /* coordinates of the described pose */
    double *q = at->q + at->coordinate;
    if (type == TB_JOINT_FREE) {
        memcpy(q, body->position, sizeof body->position);
        memcpy(q + 3, body->orientation, sizeof body->orientation);
    } else if (type == TB_JOINT_BALL) {
        q[0] = 1;
        q[1] = q[2] = q[3] = 0;
    } else {
        q[0] = def->reference;
    }

    /* a chain of dofs, each the parent of the next */
    for (int i = 0; i < size.dofs; i++) {
        tb_model_dof *dof = &c->dofs[at->dof];
        dof->body = body_index;
        dof->joint = at->joint;
        dof->tree = at->tree;
        dof->parent = body->last_dof;
        dof->armature = def->armature;
        dof->damping = def->damping;
        dof->dry_friction = def->dry_friction;
        memcpy(dof->damping_polynomial, def->damping_polynomial, sizeof dof->damping_polynomial);
        body->last_dof = at->dof++;
    }
    if (body->number_of_joints++ == 0) {
        body->joint = at->joint;
        body->dof = joint->dof;
    }
    body->number_of_dofs += size.dofs;
    at->joint++;
    at->coordinate += size.coordinates;
}

static void add_joints(tb_compiler *c, tree_cursor *at, int32_t body, const tb_joint_def *def)
{
    if (def->type == TB_JOINT_FIXED) return;
    if (def->type != TB_JOINT_PLANAR) {
        add_joint(c, at, body, def, def->type, def->axis);
        return;
    }
    /* two slides across the axis, then a hinge about it */
    tb_vec3 across[2];
    double axis[3];
    tb_v3_tangents(tb_v3_load(def->axis), &across[0], &across[1]);
    for (int i = 0; i < 2; i++) {
        tb_v3_store(axis, across[i]);
        add_joint(c, at, body, def, TB_JOINT_SLIDE, axis);
    }
    add_joint(c, at, body, def, TB_JOINT_HINGE, def->axis);
}

/* ---- bodies and trees ---- */

static void start_tree(tb_compiler *c, const tree_cursor *at, int32_t body)
{
    tb_model_tree *tree = &c->trees[at->tree];
    memset(tree, 0, sizeof *tree);
    tree->body = body;
    tree->joint = at->joint;
    tree->coordinate = at->coordinate;
    tree->dof = at->dof;
}

static void add_body(tb_compiler *c, tree_cursor *at, int32_t index)
{
    const scene_body *from = &c->scene->bodies[c->scene_body[index]];
    tb_model_body *body = &c->bodies[index];
    memset(body, 0, sizeof *body);
    body->parent = from->parent < 0 ? 0 : c->model_body[from->parent];
    const tb_model_body *parent = &c->bodies[body->parent];
    memcpy(body->position, from->position, sizeof body->position);
    memcpy(body->orientation, from->orientation, sizeof body->orientation);
    body->gravity_compensation = from->gravity_compensation;
    body->joint = body->dof = -1;
    body->last_dof = parent->last_dof;
    body->kinematic = from->kinematic ? c->model->number_of_kinematic_bodies++ : -1;
    body->level = from->kinematic ? 0 : parent->level + 1;
    if (body->level >= c->model->number_of_levels) c->model->number_of_levels = body->level + 1;

    const tree_cursor before = *at;
    body->tree = parent->tree;
    if (parent->tree < 0 && from->number_of_dofs > 0) {
        start_tree(c, at, index);
        body->tree = at->tree;
    }
    const int32_t new_tree = at->tree;
    at->tree = body->tree; /* for the dofs */
    for (int32_t i = c->body_joints[index]; i < c->body_joints[index + 1]; i++)
        add_joints(c, at, index, &c->scene->joints[c->scene_joint[i]]);
    at->tree = body->tree == new_tree ? new_tree + 1 : new_tree;
    body->fixed_to = body->number_of_dofs > 0 || from->kinematic ? index : parent->fixed_to;
    if (body->tree >= 0) {
        tb_model_tree *tree = &c->trees[body->tree];
        tree->number_of_bodies++;
        tree->number_of_joints += at->joint - before.joint;
        tree->number_of_coordinates += at->coordinate - before.coordinate;
        tree->number_of_dofs += at->dof - before.dof;
    }

    const tb_pose local = {tb_v3_load(body->position), tb_q_matrix(tb_q_load(body->orientation))};
    c->poses[index] = tb_pose_mul(&c->poses[body->parent], &local);
}

static void add_world(tb_compiler *c)
{
    tb_model_body *world = &c->bodies[0];
    memset(world, 0, sizeof *world);
    world->parent = 0;
    world->tree = world->joint = world->dof = world->last_dof = world->kinematic = -1;
    world->orientation[0] = 1;
    c->model->number_of_levels = 1;
    c->poses[0] = tb_pose_identity();
}

tb_status tb_compile_tree(tb_compiler *c)
{
    tb_model *model = c->model;
    tb_arena *arena = &model->arena;
    count_joints(c);
    const int32_t bodies = model->number_of_bodies, joints = model->number_of_joints;
    int32_t *kinematic = TB_ARENA_ARRAY(arena, int32_t, bodies);
    c->bodies = TB_ARENA_ARRAY(arena, tb_model_body, bodies);
    c->joints = TB_ARENA_ZEROED(arena, tb_model_joint, joints);
    c->dofs = TB_ARENA_ARRAY(arena, tb_model_dof, model->number_of_dofs);
    c->trees = TB_ARENA_ARRAY(arena, tb_model_tree, bodies);
    c->poses = TB_ARENA_ARRAY(&c->scratch, tb_pose, bodies);
    double *q = TB_ARENA_ARRAY(arena, double, model->number_of_coordinates);
    if (!kinematic || !c->bodies || !c->joints || !c->dofs || !c->trees || !c->poses || !q)
        return tb_fail_memory(c->error, (size_t)bodies * sizeof *c->bodies, "bodies");

    tree_cursor at = {0, 0, 0, 0, q};
    add_world(c);
    for (int32_t i = 1; i < bodies; i++) {
        add_body(c, &at, i);
        if (c->bodies[i].kinematic >= 0) kinematic[c->bodies[i].kinematic] = i;
        if (!isfinite(tb_v3_length2(c->poses[i].position)))
            return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "position",
                                 "body '%.100s': lies too far away for a number",
                                 tb_compile_body_name(c, i));
    }
    model->number_of_trees = at.tree;
    model->bodies = c->bodies;
    model->joints = c->joints;
    model->dofs = c->dofs;
    model->trees = c->trees;
    model->q_reference = q;
    model->kinematic_bodies = kinematic;
    return TB_OK;
}
