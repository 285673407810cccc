/* See warp_fits.h. */
#include "gpu/batch/small/warp_fits.h"

#include <math.h>
#include <string.h>

#include "step/stages/contact_terms.h"

/* Room of a kernel: as warp_solve.h and warp_keep.h have it. */
typedef struct room {
    int32_t dofs, coordinates, bodies, trees;
    int32_t dofs_of_tree; /* at most */
} room;
static const room SMALL = {10, 16, 6, 10, 10}, PILE = {36, 42, 8, 6, 6};
enum {
    MOST_SHAPES = 32, /* that collide */
    MOST_SLIDES = 32, /* the last slide is one of so many first dofs */
    MOST_ACTUATORS = 6,
    MOST_JOINT_ROWS = 16
};

bool tb_gpu_warp_knows(tb_law law)
{
    return law == TB_LAW_UNILATERAL || law == TB_LAW_COULOMB;
}

static bool slides(const tb_surface *surface)
{
    return tb_gpu_warp_knows(tb_contact_law(surface)) && surface->tangential_restitution == 0;
}

/* Every surface that two shapes may touch with: no spin, no rolling, no conveyor. A pair of shapes
 * has at most the larger of each number of both (tb_model_pair_surface), so that two surfaces that
 * slide may spin together; the largest of each number over all shapes covers every pair. */
static bool all_slide(const tb_model *m)
{
    tb_surface any = {.kind = TB_CONTACT_FRICTIONLESS};
    for (int32_t i = 0; i < m->number_of_pairs; i++)
        if (!slides(&m->pairs[i].surface)) return false;
    for (int32_t i = 0; i < m->number_of_colliding_shapes; i++) {
        const tb_model_shape *shape = &m->shapes[m->colliding_shapes[i]];
        const tb_surface *own = &shape->surface;
        if (!slides(own) || shape->conveys) return false;
        if (own->kind > any.kind) any.kind = own->kind;
        any.friction = fmax(any.friction, own->friction);
        any.rolling_length = fmax(any.rolling_length, own->rolling_length);
        if (own->friction > 0) any.spin_radius = fmax(any.spin_radius, own->spin_radius);
    }
    return slides(&any);
}

/* Hulls, meshes and height fields. A pair of hulls is searched by one lane: the warps of a processor do so
 * one by one and each brings its own code, while the general kernel of contacts has all of them in the same
 * code at once. */
static bool has_facets(const tb_model *m)
{
    for (int32_t i = 0; i < m->number_of_colliding_shapes; i++) {
        const tb_shape_type type = m->shapes[m->colliding_shapes[i]].type;
        if (type == TB_SHAPE_CONVEX || type >= TB_SHAPE_MESH) return true;
    }
    return false;
}

static bool is_plain(const tb_model *m, const tb_model_joint *joint)
{
    const int32_t end = joint->dof + tb_joint_dofs(joint->type);
    for (int32_t i = joint->dof; i < end; i++)
        if (m->dofs[i].armature != 0 || m->dofs[i].damping != 0 || m->dofs[i].dry_friction != 0)
            return false;
    return joint->stiffness == 0;
}

/* A single free body that nothing holds or damps, or slides on the world. */
static bool is_simple(const tb_model *m, const tb_model_tree *tree)
{
    if (tree->single_free) return true;
    const tb_model_joint *first = &m->joints[tree->joint];
    if (first->type == TB_JOINT_FREE)
        return tree->number_of_joints == 1 && tree->number_of_bodies == 1 && is_plain(m, first);
    if (m->bodies[m->bodies[tree->body].parent].fixed_to != 0) return false;
    for (int32_t j = tree->joint; j < tree->joint + tree->number_of_joints; j++)
        if (m->joints[j].type != TB_JOINT_SLIDE) return false;
    return true;
}

/* Pushes a slide by a force that is affine in its length and speed, without a memory of its own. */
static bool is_affine(const tb_model *m, const tb_model_actuator *a)
{
    return a->transmission == TB_TRANSMISSION_FIXED && a->joint >= 0 &&
           m->joints[a->joint].type == TB_JOINT_SLIDE && !a->disabled && !a->is_input &&
           a->number_of_inputs == 0 && a->activation < 0 && a->slew < 0 && a->integral < 0 &&
           a->past < 0 && a->period == 0 && a->orientation == TB_ORIENTATION_NONE &&
           a->gain_curve == TB_CURVE_AFFINE && a->bias_curve == TB_CURVE_AFFINE;
}

/* A tree that the kernel has room for. */
static bool tree_fits(const tb_model *m, const tb_model_tree *tree, const room *most)
{
    const bool is_free = m->joints[tree->joint].type == TB_JOINT_FREE;
    return is_simple(m, tree) && tree->number_of_dofs <= most->dofs_of_tree &&
           (is_free || tree->dof + tree->number_of_dofs <= MOST_SLIDES);
}

static bool motion_fits(const tb_model *m, const room *most)
{
    for (int32_t t = 0; t < m->number_of_trees; t++)
        if (!tree_fits(m, &m->trees[t], most)) return false;
    for (int32_t a = 0; a < m->number_of_actuators; a++)
        if (!is_affine(m, &m->actuators[a])) return false;
    const int32_t rows =
        m->number_of_actuators + m->number_of_dry_dofs + 2 * m->number_of_limited_joints;
    return m->number_of_dofs <= most->dofs && m->number_of_coordinates <= most->coordinates &&
           m->number_of_trees <= most->trees && m->number_of_bodies <= most->bodies &&
           rows <= MOST_JOINT_ROWS && m->number_of_colliding_shapes <= MOST_SHAPES &&
           m->number_of_actuators <= MOST_ACTUATORS && m->number_of_kinematic_bodies == 0 &&
           !m->has_polynomials && !m->compensates_gravity && !m->has_joint_forces;
}

static bool options_fit(const tb_step_options *options)
{
    const tb_solve_options *solve = &options->solve;
    return strcmp(solve->solver, "auto") == 0 && solve->stop == TB_STOP_RESIDUAL &&
           solve->warm_start && options->scheme == TB_SCHEME_STEWART_TRINKLE &&
           !options->report_energy;
}

static bool fits(const tb_model *m, const tb_step_options *options, const room *most)
{
    return options_fit(options) && motion_fits(m, most) && m->number_of_equalities == 0 &&
           m->number_of_tendons == 0 && m->number_of_fluids == 0 && !m->has_adhesion &&
           m->number_of_past_velocities == 0 && m->number_of_sleep_numbers == 0 && !has_facets(m) &&
           all_slide(m);
}

bool tb_gpu_warp_fits(const tb_model *model, const tb_step_options *options)
{
    return fits(model, options, &SMALL);
}

bool tb_gpu_pile_fits(const tb_model *model, const tb_step_options *options)
{
    return fits(model, options, &PILE);
}
