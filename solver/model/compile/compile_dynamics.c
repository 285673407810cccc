/* Compiles data for the dynamics: checks that the mass matrix is invertible, and computes the
 * constant inverses of single free bodies.
 *
 * A massless body is valid if its descendants give inertia to every motion of its joints. The
 * check is therefore not on masses but on the articulated-body inertias of the described pose
 * (Featherstone, Rigid Body Dynamics Algorithms, ch. 7): every joint's block D = S' I_A S +
 * armature must be positive definite. Inertias are in world axes about the origin of their body,
 * and are moved to the parent's. */
#include "model/model_internal.h"

#include <string.h>

/* Pivots of D below this fraction of their largest summand count as zero. */
#define SMALLEST_PIVOT 1e-12

/* Rows and columns 0 to 2 are rotation, 3 to 5 translation of the reference point. */
typedef struct spatial_inertia {
    double m[36];
} spatial_inertia;

static void add_rigid(spatial_inertia *into, const tb_model_body *body, const tb_pose *pose,
                      tb_vec3 reference)
{
    double about[6], d[3];
    tb_inertia_rotate(pose->rotation.m, body->inertia, about);
    tb_v3_store(d, tb_v3_sub(tb_pose_point(pose, tb_v3_load(body->com)), reference));
    tb_inertia_add_offset(about, body->mass, d);
    const tb_mat33 rotation = tb_m33_symmetric(about);
    const double h[3] = {body->mass * d[0], body->mass * d[1], body->mass * d[2]};
    const double skew[9] = {0, -h[2], h[1], h[2], 0, -h[0], -h[1], h[0], 0};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            into->m[6 * i + j] += rotation.m[3 * i + j];
            into->m[6 * i + 3 + j] += skew[3 * i + j];
            into->m[6 * (i + 3) + j] += skew[3 * j + i];
        }
        into->m[6 * (i + 3) + 3 + i] += body->mass;
    }
}

/* Moves the reference point by -r (the old point is then at r) and adds the result. With blocks
 * A (rotation), B, C (translation) and S = r x: A - B S + S B' - S C S, B + S C, C. */
static void add_moved(spatial_inertia *into, const spatial_inertia *from, tb_vec3 r)
{
    tb_mat33 s = {{0, -r.z, r.y, r.z, 0, -r.x, -r.y, r.x, 0}}, a, b, c;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            a.m[3 * i + j] = from->m[6 * i + j];
            b.m[3 * i + j] = from->m[6 * i + 3 + j];
            c.m[3 * i + j] = from->m[6 * (i + 3) + 3 + j];
        }
    const tb_mat33 sc = tb_m33_mul(&s, &c), scs = tb_m33_mul(&sc, &s), bs = tb_m33_mul(&b, &s);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            /* S B' is the transpose of -(B S) */
            into->m[6 * i + j] +=
                a.m[3 * i + j] - bs.m[3 * i + j] - bs.m[3 * j + i] - scs.m[3 * i + j];
            into->m[6 * i + 3 + j] += b.m[3 * i + j] + sc.m[3 * i + j];
            into->m[6 * (i + 3) + j] += b.m[3 * j + i] + sc.m[3 * j + i];
            into->m[6 * (i + 3) + 3 + j] += c.m[3 * i + j];
        }
}

/* Motion of unit velocity of the joint's dof number k: rotation, then velocity of the reference
 * point. */
static void motion_of(const tb_model_joint *joint, const tb_pose *pose, int k, tb_vec3 reference,
                      double s[6])
{
    tb_vec3 w = tb_v3(0, 0, 0), v = tb_v3(0, 0, 0);
    const tb_vec3 unit = tb_v3(k % 3 == 0, k % 3 == 1, k % 3 == 2);
    const tb_vec3 axis = tb_m33_mul_v3(&pose->rotation, tb_v3_load(joint->axis));
    switch (joint->type) {
    case TB_JOINT_SLIDE: v = axis; break;
    case TB_JOINT_HINGE: w = axis; break;
    case TB_JOINT_BALL: w = tb_m33_mul_v3(&pose->rotation, unit); break;
    default: /* free: world translation, body rotation */
        if (k < 3)
            v = unit;
        else
            w = tb_m33_mul_v3(&pose->rotation, unit);
    }
    const tb_vec3 anchor = tb_pose_point(pose, tb_v3_load(joint->position));
    v = tb_v3_add(v, tb_v3_cross(w, tb_v3_sub(reference, anchor)));
    tb_v3_store(s, w);
    tb_v3_store(s + 3, v);
}

/* Eliminates one dof from an articulated inertia: I -= U U' / D. False if D is not positive. A
 * joint of several dofs is eliminated dof by dof, the last first, which is the Cholesky
 * elimination of its block. */
static bool remove_dof(spatial_inertia *inertia, const double s[6], double armature)
{
    double u[6], d = armature, largest = armature;
    for (int i = 0; i < 6; i++) {
        u[i] = 0;
        for (int j = 0; j < 6; j++) {
            u[i] += inertia->m[6 * i + j] * s[j];
            largest = tb_max(largest, fabs(s[i] * inertia->m[6 * i + j] * s[j]));
        }
        d += s[i] * u[i];
    }
    if (!(d > SMALLEST_PIVOT * largest) || !isfinite(d)) return false;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) inertia->m[6 * i + j] -= u[i] * u[j] / d;
    return true;
}

static tb_status check_tree(tb_compiler *c, const tb_model_tree *tree)
{
    const tb_arena_mark mark = tb_arena_get_mark(&c->scratch);
    spatial_inertia *inertias =
        TB_ARENA_ZEROED(&c->scratch, spatial_inertia, tree->number_of_bodies);
    if (inertias == NULL)
        return tb_fail_memory(c->error, (size_t)tree->number_of_bodies * sizeof *inertias,
                              "articulated inertias");
    for (int32_t b = tree->body + tree->number_of_bodies - 1; b >= tree->body; b--) {
        const tb_model_body *body = &c->bodies[b];
        spatial_inertia *own = &inertias[b - tree->body];
        const tb_vec3 reference = c->poses[b].position;
        add_rigid(own, body, &c->poses[b], reference);
        for (int k = body->number_of_dofs - 1; k >= 0; k--) {
            const tb_model_dof *dof = &c->dofs[body->dof + k];
            const tb_model_joint *joint = &c->joints[dof->joint];
            double s[6];
            motion_of(joint, &c->poses[b], body->dof + k - joint->dof, reference, s);
            if (!remove_dof(own, s, dof->armature))
                return tb_fail_field(c->error, TB_INVALID_ARGUMENT, "mass",
                                     "body '%.100s': it moves, but no mass or inertia resists its "
                                     "joints (or two of them make the same motion)",
                                     tb_compile_body_name(c, b));
        }
        if (b > tree->body)
            add_moved(&inertias[body->parent - tree->body], own,
                      tb_v3_sub(reference, c->poses[body->parent].position));
    }
    tb_arena_return_to(&c->scratch, mark);
    return TB_OK;
}

/* Whether the joint has a spring or a damper: implicit ones make M depend on the step. */
static bool has_passive_forces(const tb_compiler *c, int32_t index)
{
    const tb_model_joint *joint = &c->joints[index];
    const tb_model_dof *dof = &c->dofs[joint->dof];
    return joint->stiffness != 0 || joint->stiffness_polynomial[0] != 0 ||
           joint->stiffness_polynomial[1] != 0 || dof->damping != 0 ||
           dof->damping_polynomial[0] != 0 || dof->damping_polynomial[1] != 0;
}

bool tb_tree_invert(tb_model_tree *tree, const tb_model_body *body, double armature)
{
    tb_mat33 inertia = tb_m33_symmetric(body->inertia), inverse;
    for (int i = 0; i < 3; i++) inertia.m[4 * i] += armature;
    if (tb_m33_inverse(&inertia, &inverse) == 0) return false;
    for (int i = 0; i < 3; i++) /* symmetric to the last bit */
        for (int j = 0; j < i; j++) inverse.m[3 * i + j] = inverse.m[3 * j + i];
    tb_mat33 root = inverse;
    if (tb_cholesky(root.m, 3, 3) != 3) return false;
    root.m[1] = root.m[2] = root.m[5] = 0;
    tree->inverse_mass = 1 / (body->mass + armature);
    tree->inverse_mass_root = sqrt(tree->inverse_mass);
    memcpy(tree->inverse_inertia, inverse.m, sizeof tree->inverse_inertia);
    memcpy(tree->inverse_root, root.m, sizeof tree->inverse_root);
    return true;
}

/* Recognizes a single free body whose mass matrix is constant. */
static void set_single_free(tb_compiler *c, tb_model_tree *tree)
{
    tb_model_body *body = &c->bodies[tree->body];
    if (tree->number_of_bodies != 1 || body->number_of_joints != 1 ||
        c->joints[body->joint].type != TB_JOINT_FREE)
        return;
    if (c->model->number_of_fluids > 0 || has_passive_forces(c, body->joint)) return;

    /* a centre within rounding of the origin counts as the origin: 1e-12 of the radius of
     * gyration */
    const double gyration2 = (body->inertia[0] + body->inertia[1] + body->inertia[2]) / body->mass;
    const tb_vec3 com = tb_v3_load(body->com);
    if (!(tb_v3_length2(com) <= 1e-24 * gyration2)) return;
    memset(body->com, 0, sizeof body->com);

    tree->single_free = tb_tree_invert(tree, body, c->dofs[tree->dof].armature);
}

/* A free joint has no limits, even if its definition sets them. */
static bool has_limits(const tb_model_joint *joint)
{
    return joint->limited && (joint->type == TB_JOINT_HINGE || joint->type == TB_JOINT_SLIDE ||
                              joint->type == TB_JOINT_BALL);
}

/* Builds lists of rare elements, so that a step does not search many free bodies. */
static tb_status add_lists(tb_compiler *c)
{
    tb_model *model = c->model;
    int32_t *trees = TB_ARENA_ARRAY(&model->arena, int32_t, model->number_of_trees);
    int32_t *dofs = TB_ARENA_ARRAY(&model->arena, int32_t, model->number_of_dofs);
    int32_t *joints = TB_ARENA_ARRAY(&model->arena, int32_t, model->number_of_joints);
    if (trees == NULL || dofs == NULL || joints == NULL)
        return tb_fail_memory(c->error, (size_t)model->number_of_dofs * sizeof *dofs, "trees");
    model->jointed_trees = trees;
    model->dry_dofs = dofs;
    model->limited_joints = joints;
    for (int32_t t = 0; t < model->number_of_trees; t++)
        if (!c->trees[t].single_free) trees[model->number_of_jointed_trees++] = t;
    for (int32_t i = 0; i < model->number_of_dofs; i++)
        if (c->dofs[i].dry_friction > 0) dofs[model->number_of_dry_dofs++] = i;
    for (int32_t j = 0; j < model->number_of_joints; j++)
        if (has_limits(&c->joints[j])) joints[model->number_of_limited_joints++] = j;
    return TB_OK;
}

/* Chains of dofs from each dof to its root; a chain is one longer than the parent's. */
static tb_status add_chains(tb_compiler *c)
{
    tb_model *m = c->model;
    const int32_t dofs = m->number_of_dofs;
    int32_t *start = TB_ARENA_ARRAY(&m->arena, int32_t, dofs + 1);
    if (start == NULL) return tb_fail_memory(c->error, (size_t)dofs * sizeof *start, "chains");
    int64_t total = 0;
    m->longest_chain = 0;
    for (int32_t i = 0; i < dofs; i++) {
        const int32_t parent = c->dofs[i].parent;
        const int32_t above = parent < 0 ? 0 : start[parent + 1] - start[parent];
        const int32_t length = c->trees[c->dofs[i].tree].single_free ? 0 : above + 1;
        start[i] = (int32_t)total;
        start[i + 1] = (int32_t)(total += length);
        if (length > m->longest_chain) m->longest_chain = length;
        if (total > INT32_MAX) return tb_fail_memory(c->error, (size_t)total, "chains");
    }
    int32_t *chains = TB_ARENA_ARRAY(&m->arena, int32_t, total);
    if (chains == NULL) return tb_fail_memory(c->error, (size_t)total * sizeof *chains, "chains");
    for (int32_t i = 0; i < dofs; i++) {
        int32_t *dof = chains + start[i];
        for (int32_t k = i; dof < chains + start[i + 1]; k = c->dofs[k].parent) *dof++ = k;
    }
    for (int32_t i = 0; i < dofs; i++) c->dofs[i].end = i + 1;
    for (int32_t i = dofs - 1; i >= 0; i--) { /* depth first: a dof's are behind it, without gaps */
        const int32_t parent = c->dofs[i].parent;
        if (parent >= 0 && c->dofs[parent].end < c->dofs[i].end)
            c->dofs[parent].end = c->dofs[i].end;
    }
    for (int32_t i = dofs - 1; i >= 0; i--) {
        const int32_t next = i + 1, end = c->dofs[i].end;
        c->dofs[i].last = next < end && c->dofs[next].end == end ? c->dofs[next].last : i;
    }
    start[dofs] = m->number_of_chain_dofs = (int32_t)total;
    m->chain_start = start;
    m->chains = chains;
    return TB_OK;
}

/* Sorts `count` items by their key, stably. keys: below `most`; items with a negative key are left out.
 * *start: most + 1 first places in *items. */
static tb_status sort_by_key(tb_compiler *c, const int32_t *keys, int32_t count, int32_t most,
                             const int32_t **start, const int32_t **items)
{
    tb_arena *arena = &c->model->arena;
    int32_t *first = TB_ARENA_ZEROED(arena, int32_t, most + 1);
    int32_t *sorted = TB_ARENA_ZEROED(arena, int32_t, count);
    if (first == NULL || sorted == NULL)
        return tb_fail_memory(c->error, (size_t)count * sizeof *sorted, "levels");
    for (int32_t i = 0; i < count; i++)
        if (keys[i] >= 0) first[keys[i] + 1]++;
    for (int32_t k = 0; k < most; k++) first[k + 1] += first[k];
    for (int32_t i = 0; i < count; i++)
        if (keys[i] >= 0) sorted[first[keys[i]]++] = i;
    for (int32_t k = most; k > 0; k--) first[k] = first[k - 1];
    first[0] = 0;
    *start = first;
    *items = sorted;
    return TB_OK;
}

/* Orders in which a card deals out bodies and dofs. */
static tb_status add_orders(tb_compiler *c)
{
    tb_model *m = c->model;
    const int32_t bodies = m->number_of_bodies, dofs = m->number_of_dofs;
    int32_t *keys = TB_ARENA_ARRAY(&c->scratch, int32_t, bodies > dofs ? bodies : dofs);
    if (keys == NULL) return tb_fail_memory(c->error, (size_t)bodies * sizeof *keys, "levels");
    for (int32_t b = 0; b < bodies; b++) keys[b] = c->bodies[b].level;
    const tb_status status =
        sort_by_key(c, keys, bodies, m->number_of_levels, &m->level_start, &m->level_bodies);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < dofs; i++) keys[i] = m->chain_start[i + 1] - m->chain_start[i] - 1;
    return sort_by_key(c, keys, dofs, m->longest_chain, &m->depth_start, &m->depth_dofs);
}

tb_status tb_compile_dynamics(tb_compiler *c)
{
    for (int32_t t = 0; t < c->model->number_of_trees; t++) {
        const tb_status status = check_tree(c, &c->trees[t]);
        if (status != TB_OK) return status;
        set_single_free(c, &c->trees[t]);
    }
    tb_status status = add_lists(c);
    if (status == TB_OK) status = add_chains(c);
    return status == TB_OK ? add_orders(c) : status;
}
