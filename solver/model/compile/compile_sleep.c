/* Which trees may sleep, and which sleep and wake together.
 *
 * Equalities, tendons, actuators and elastic simplices couple trees at any distance, so that their trees are one group for
 * good; contacts couple trees for a while, and the step finds these groups itself. A tree never
 * sleeps where the input of a step is not all that pushes it: an activation moves on by itself, and
 * a loop or a tendon to a kinematic body pulls without a contact. Nothing sleeps in a scene with
 * adhesion, which pulls across gaps, or with soft bodies. */
#include "model/model_internal.h"

/* The root of a tree's group; shortens the way there. */
static int32_t root_of(tb_model_tree *trees, int32_t t)
{
    while (trees[t].sleep_group != t)
        t = trees[t].sleep_group = trees[trees[t].sleep_group].sleep_group;
    return t;
}

/* Joins a tree to the group of `*first`, which is the first tree that is given; -1: none yet. */
static void join(tb_compiler *c, int32_t tree, int32_t *first)
{
    if (tree < 0) return;
    if (*first < 0) *first = tree;
    const int32_t a = root_of(c->trees, *first), b = root_of(c->trees, tree);
    c->trees[a > b ? a : b].sleep_group = a > b ? b : a;
}

static void join_dofs(tb_compiler *c, const int32_t *dofs, int32_t count, int32_t *first)
{
    for (int32_t i = 0; i < count; i++) join(c, c->dofs[dofs[i]].tree, first);
}

static bool is_on_kinematic(const tb_compiler *c, int32_t body)
{
    return c->bodies[body].tree < 0 && c->bodies[c->bodies[body].fixed_to].kinematic >= 0;
}

/* The first tree that a tendon moves. */
static int32_t join_tendon(tb_compiler *c, int32_t tendon)
{
    const tb_model *m = c->model;
    const tb_model_tendon *t = &m->tendons[tendon];
    int32_t first = -1;
    bool pulls = false;
    join_dofs(c, m->tendon_dofs + t->first, t->count, &first);
    for (int32_t i = 0; i < t->number_of_points; i++)
        pulls = pulls || is_on_kinematic(c, m->tendon_points[t->first_point + i].body);
    if (pulls && first >= 0) c->trees[first].sleep = TB_SLEEP_NEVER;
    return first;
}

static int32_t join_actuator(tb_compiler *c, int32_t actuator, const int32_t *tendons)
{
    const tb_model *m = c->model;
    const tb_model_actuator *a = &m->actuators[actuator];
    int32_t first = -1;
    if (a->joint >= 0) join(c, c->dofs[m->joints[a->joint].dof].tree, &first);
    if (a->tendon >= 0) join(c, tendons[a->tendon], &first);
    join_dofs(c, m->moment_dofs + a->moment, a->number_of_moments, &first);
    const bool moves_on = a->activation >= 0 || a->integral >= 0 || a->slew >= 0 || a->past >= 0;
    if (moves_on && first >= 0) c->trees[first].sleep = TB_SLEEP_NEVER;
    return first;
}

static int32_t join_equality(tb_compiler *c, int32_t equality, const int32_t *tendons)
{
    const tb_model *m = c->model;
    const tb_model_equality *e = &m->equalities[equality];
    const int32_t ends[2] = {e->a, e->b};
    int32_t first = -1;
    bool pulls = false;
    for (int k = 0; k < 2; k++) {
        if (ends[k] < 0) continue;
        if (e->type == TB_EQUALITY_JOINT) {
            join(c, c->dofs[m->joints[ends[k]].dof].tree, &first);
        } else if (e->type == TB_EQUALITY_TENDON) {
            join(c, tendons[ends[k]], &first);
        } else {
            join(c, c->bodies[ends[k]].tree, &first);
            pulls = pulls || is_on_kinematic(c, ends[k]);
        }
    }
    if (pulls && first >= 0) c->trees[first].sleep = TB_SLEEP_NEVER;
    return first;
}

static int32_t join_elastic(tb_compiler *c, int32_t elastic)
{
    const tb_model_elastic *e = &c->model->elastics[elastic];
    int32_t first = -1;
    bool pulls = false;
    for (int32_t i = 0; i < e->corners; i++) {
        join(c, c->bodies[e->bodies[i]].tree, &first);
        pulls = pulls || is_on_kinematic(c, e->bodies[i]);
    }
    if (pulls && first >= 0) c->trees[first].sleep = TB_SLEEP_NEVER;
    return first;
}

/* Controls of an actuator's inputs push the actuator's tree. */
static void share_inputs(const tb_model *m, int32_t *actuators)
{
    for (int32_t i = 0; i < m->number_of_actuators; i++)
        for (int32_t k = 1; k <= m->actuators[i].number_of_inputs; k++)
            if (actuators[i + k] < 0) actuators[i + k] = actuators[i];
}

tb_status tb_compile_sleep(tb_compiler *c)
{
    tb_model *m = c->model;
    const int32_t trees = m->number_of_trees;
    const int32_t tendons = m->number_of_tendons, actuators = m->number_of_actuators;
    m->sleep_tolerance = c->scene->options.sleep_tolerance;
    if (!(m->sleep_tolerance > 0) || trees == 0 || m->has_adhesion || m->soft != NULL) return TB_OK;
    const int32_t equalities = m->number_of_equalities;
    const int32_t count = tendons + actuators + equalities + m->number_of_elastics;
    int32_t *first = TB_ARENA_ARRAY(&m->arena, int32_t, count + 1);
    if (first == NULL) return tb_fail_memory(c->error, (size_t)count * sizeof *first, "sleep");
    for (int32_t t = 0; t < trees; t++) {
        c->trees[t].sleep_group = t;
        c->trees[t].sleep = c->scene->bodies[c->scene_body[c->trees[t].body]].sleep;
    }
    for (int32_t i = 0; i < tendons; i++) first[i] = join_tendon(c, i);
    for (int32_t i = 0; i < actuators; i++) first[tendons + i] = join_actuator(c, i, first);
    share_inputs(m, first + tendons);
    for (int32_t i = 0; i < equalities; i++)
        first[tendons + actuators + i] = join_equality(c, i, first);
    for (int32_t i = 0; i < m->number_of_elastics; i++)
        first[tendons + actuators + equalities + i] = join_elastic(c, i);
    for (int32_t t = 0; t < trees; t++) c->trees[t].sleep_group = root_of(c->trees, t);
    m->first_trees = first;
    m->number_of_first_trees = count;
    m->number_of_sleep_numbers =
        TB_SLEEP_HEADER + TB_SLEEP_OF_TREE * trees + m->number_of_kinematic_bodies;
    return TB_OK;
}
