/* Sleep within a step of one world: which trees the step leaves out, which wake, which fall asleep.
 *
 * Trees that touch, or that an equality, a tendon or an actuator couples, are an island, and an
 * island sleeps and wakes as a whole. It falls asleep where all its trees have been slower than the
 * model's tolerance for SLOW_STEPS steps and the last solve has reached its own tolerance. Its
 * velocities become 0, and its contacts and impulses stay as they are; in later steps it has no
 * rows, no contact is looked for within it or with what cannot move, and its coordinates keep every
 * bit. It wakes where an input of one of its trees changes, where a kinematic body that it touches
 * moves, and where a body that moves comes so near that the step wants contacts of the pair. That
 * is known only after detection, so the step then begins again.
 *
 * The dynamics of trees that sleep are computed all the same, because they cost little. */
#include <math.h>
#include <string.h>

#include "step/stages/stages.h"

#ifndef TB_DEVICE

enum { SLOW_STEPS = 10 };

/* ---- islands ---- */

TB_STATIC int32_t root_of(int32_t *island, int32_t tree)
{
    while (island[tree] != tree) tree = island[tree] = island[island[tree]];
    return tree;
}

TB_STATIC void join_trees(int32_t *island, int32_t a, int32_t b)
{
    const int32_t one = root_of(island, a), other = root_of(island, b);
    island[one > other ? one : other] = one > other ? other : one;
}

TB_STATIC int32_t tree_of_shape(const tb_model *m, int32_t shape)
{
    return m->bodies[m->shapes[shape].body].tree;
}

/* The kinematic body that a shape without a tree is fixed to, -1: none. */
TB_STATIC int32_t kinematic_of_shape(const tb_model *m, int32_t shape)
{
    return m->bodies[m->bodies[m->shapes[shape].body].fixed_to].kinematic;
}

/* Joins the trees of all contacts and groups; `stirred` of the island's root becomes true where
 * a kinematic body that moves touches it, if it is wanted. */
TB_STATIC void find_islands(const tb_world *w, const tb_contact_record *records, int32_t count)
{
    const tb_model *m = w->model;
    int32_t *island = w->sleep->island;
    for (int32_t t = 0; t < m->number_of_trees; t++) island[t] = m->trees[t].sleep_group;
    for (int32_t i = 0; i < count; i++) {
        const int32_t a = tree_of_shape(m, records[i].shape_a);
        const int32_t b = tree_of_shape(m, records[i].shape_b);
        if (a >= 0 && b >= 0) join_trees(island, a, b);
    }
}

/* The tree that a contact with a kinematic body that moves would wake, -1: the contact is none. */
TB_STATIC int32_t pushed_tree(const tb_world *w, const tb_contact_record *record)
{
    const tb_model *m = w->model;
    const int32_t a = tree_of_shape(m, record->shape_a), b = tree_of_shape(m, record->shape_b);
    if ((a < 0) == (b < 0)) return -1;
    const int32_t kinematic = kinematic_of_shape(m, a < 0 ? record->shape_a : record->shape_b);
    return kinematic >= 0 && !w->sleep->still[kinematic] ? (a < 0 ? b : a) : -1;
}

/* Wakes the islands of the trees that are marked. */
TB_STATIC void wake(const tb_world *w, const bool *marked)
{
    int32_t *island = w->sleep->island;
    const int32_t trees = w->model->number_of_trees;
    bool *asleep = w->sleep->asleep; /* by root, until it is filled: the island stays asleep */
    for (int32_t t = 0; t < trees; t++) asleep[t] = true;
    for (int32_t t = 0; t < trees; t++)
        if (marked[t]) asleep[root_of(island, t)] = false;
    for (int32_t t = 0; t < trees; t++)
        if (!asleep[root_of(island, t)] && tb_sleep_is_asleep(w->home, t))
            tb_sleep_of(w->home, t)->slow_steps = 0;
}

/* ---- the beginning of a step ---- */

TB_STATIC tb_sleep_of_world *take_sleep(const tb_world *w)
{
    const tb_model *m = w->model;
    const int32_t trees = m->number_of_trees;
    tb_sleep_of_world *s = TB_ARENA_ZEROED(w->arena, tb_sleep_of_world, 1);
    if (!s) return NULL;
    s->asleep = TB_ARENA_ZEROED(w->arena, bool, trees);
    s->touched = TB_ARENA_ZEROED(w->arena, bool, trees);
    s->falls = TB_ARENA_ZEROED(w->arena, bool, trees);
    s->still = TB_ARENA_ZEROED(w->arena, bool, m->number_of_kinematic_bodies + 1);
    s->island = TB_ARENA_ARRAY(w->arena, int32_t, trees);
    s->inputs = TB_ARENA_ARRAY(w->arena, double, trees);
    const bool all = s->asleep && s->touched && s->falls && s->still && s->island && s->inputs;
    return all ? s : NULL;
}

/* Wakes what an input or a kinematic body pushes. */
TB_STATIC void wake_pushed(const tb_world *w)
{
    const tb_model *m = w->model;
    const tb_state *state = w->state;
    bool *pushed = w->sleep->touched, any = false;
    tb_sleep_inputs(state, w->sleep->inputs, 1);
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        pushed[t] =
            tb_sleep_is_asleep(state, t) && w->sleep->inputs[t] != tb_sleep_of(state, t)->inputs;
        any = any || pushed[t];
    }
    for (int32_t i = 0; m->number_of_kinematic_bodies > 0 && i < state->number_of_contacts; i++) {
        const int32_t tree = pushed_tree(w, &state->contacts[i]);
        if (tree < 0 || !tb_sleep_is_asleep(state, tree)) continue;
        pushed[tree] = any = true;
    }
    if (any) {
        find_islands(w, state->contacts, state->number_of_contacts);
        wake(w, pushed);
    }
    memset(pushed, 0, (size_t)m->number_of_trees * sizeof *pushed);
}

TB_EXTERN bool tb_sleep_open(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    w->sleep = NULL;
    if (!w->home || m->number_of_sleep_numbers == 0) return true;
    w->sleep = take_sleep(w);
    if (!w->sleep) return false;
    for (int32_t k = 0; k < m->number_of_kinematic_bodies; k++)
        w->sleep->still[k] = tb_sleep_is_still(w->state, k);
    if (tb_sleep_is_current(w->state))
        wake_pushed(w);
    else
        for (int32_t t = 0; t < m->number_of_trees; t++) tb_sleep_of(w->home, t)->slow_steps = 0;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        w->sleep->asleep[t] = tb_sleep_is_asleep(w->state, t);
        w->sleep->any = w->sleep->any || w->sleep->asleep[t];
    }
    return true;
}

/* ---- detection ---- */

TB_EXTERN bool tb_sleep_moves(const tb_world *world, int32_t shape)
{
    const tb_model *m = world->model;
    const int32_t tree = tree_of_shape(m, shape), kinematic = kinematic_of_shape(m, shape);
    if (tree >= 0) return !world->sleep->asleep[tree];
    return kinematic >= 0 && !world->sleep->still[kinematic];
}

TB_EXTERN bool tb_sleep_touch(tb_world *world, int32_t shape_a, int32_t shape_b)
{
    tb_sleep_of_world *s = world->sleep;
    if (!s || !s->any) return false;
    const int32_t trees[2] = {tree_of_shape(world->model, shape_a),
                              tree_of_shape(world->model, shape_b)};
    bool wakes = false;
    for (int k = 0; k < 2; k++) {
        if (trees[k] < 0 || !s->asleep[trees[k]]) continue;
        s->touched[trees[k]] = s->wakes = wakes = true;
    }
    return wakes;
}

TB_EXTERN void tb_sleep_wake_touched(tb_world *world)
{
    const tb_state *state = world->state;
    find_islands(world, state->contacts, state->number_of_contacts);
    wake(world, world->sleep->touched);
}

/* ---- falling asleep ---- */

/* Whether a tree is slow before and after the step, and its positions recover no faster. */
TB_STATIC bool is_slow(const tb_world *w, const tb_model_tree *tree, const tb_real *recovery)
{
    const tb_real most = TB_R(w->model->sleep_tolerance);
    for (int32_t i = tree->dof; i < tree->dof + tree->number_of_dofs; i++)
        if (!(tb_abs(w->u[i]) <= most && tb_abs(w->u_end[i]) <= most) ||
            (recovery && !(tb_abs(recovery[i]) <= most)))
            return false;
    return true;
}

/* Counts the slow steps of each tree that is awake; a step counts that reached its tolerance and left
 * no gap open, for a certificate has to tell of one in every step. */
TB_STATIC void count_slow_steps(const tb_world *w, const tb_recovered *recovered, bool converged)
{
    const tb_model *m = w->model;
    const tb_real *recovery = recovered->velocity;
    const bool counts = converged && recovered->faults == 0 && !tb_sleep_has_open_gaps(w->state);
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        double *steps = &tb_sleep_of(w->home, t)->slow_steps;
        if (w->sleep->asleep[t]) continue;
        const bool slow = counts && tree->sleep != TB_SLEEP_NEVER && is_slow(w, tree, recovery);
        *steps = slow ? fmin(*steps + 1, SLOW_STEPS) : 0;
    }
}

/* Contacts of the last step that sleep. */
TB_STATIC bool contact_sleeps(const tb_world *w, const tb_contact_record *record)
{
    const tb_model *m = w->model;
    return tb_world_leaves_out(w, tree_of_shape(m, record->shape_a)) ||
           tb_world_leaves_out(w, tree_of_shape(m, record->shape_b));
}

TB_STATIC int32_t count_sleeping_contacts(const tb_world *w)
{
    int32_t count = 0;
    for (int32_t i = 0; w->sleep->any && i < w->state->number_of_contacts; i++)
        count += contact_sleeps(w, &w->state->contacts[i]);
    return count;
}

TB_EXTERN tb_status tb_sleep_choose(tb_world *world, const tb_recovered *recovered, bool converged)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    bool *falls = w->sleep->falls;
    int32_t *island = w->sleep->island;
    count_slow_steps(w, recovered, converged);
    find_islands(w, w->records, w->number_of_contacts);

    /* by the roots of the islands, then for each tree */
    for (int32_t t = 0; t < m->number_of_trees; t++) falls[t] = true;
    for (int32_t t = 0; t < m->number_of_trees; t++)
        if (w->sleep->asleep[t] || tb_sleep_of(w->home, t)->slow_steps < SLOW_STEPS)
            falls[root_of(island, t)] = false;
    for (int32_t i = 0; i < w->number_of_contacts; i++) {
        const int32_t tree = pushed_tree(w, &w->records[i]);
        if (tree >= 0) falls[root_of(island, tree)] = false;
    }
    for (int32_t t = m->number_of_trees - 1; t >= 0; t--) {
        const tb_model_tree *tree = &m->trees[t];
        falls[t] = falls[root_of(island, t)]; /* a root has the smallest index */
        for (int32_t i = tree->dof; falls[t] && i < tree->dof + tree->number_of_dofs; i++)
            w->u_end[i] = 0;
    }
    const int32_t contacts = w->number_of_contacts + count_sleeping_contacts(w);
    if (tb_state_reserve_next(w->home, contacts) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    w->records = w->home->next_contacts;
    w->record_capacity = w->home->next_capacity;
    return TB_OK;
}

/* ---- what a step keeps of the trees that it leaves out ---- */

TB_EXTERN void tb_sleep_clear_rows(const tb_world *world, tb_state *state)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    const tb_row_memory memory = tb_row_memory_layout(m);
    const int32_t *first = m->first_trees;
    for (int32_t r = 0; r < memory.total; r++) {
        int32_t tree;
        if (r < memory.dof_friction)
            tree = m->dofs[m->joints[r / 2].dof].tree;
        else if (r < memory.tendon_rows)
            tree = m->dofs[r - memory.dof_friction].tree;
        else if (r < memory.actuators)
            tree = first[(r - memory.tendon_rows) / TB_TENDON_ROWS];
        else if (r < memory.elastics)
            tree = first[m->number_of_tendons + r - memory.actuators];
        else if (r < memory.equalities)
            tree = first[m->number_of_tendons + m->number_of_actuators + m->number_of_equalities +
                         (r - memory.elastics) / TB_ELASTIC_ROWS];
        else
            tree = first[m->number_of_tendons + m->number_of_actuators +
                         (r - memory.equalities) / TB_EQUALITY_ROWS];
        if (tree >= 0 && w->sleep->asleep[tree]) continue;
        state->row_impulses[r] = state->row_statuses[r] = 0;
    }
}

TB_EXTERN void tb_sleep_commit(const tb_world *world, tb_state *state)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        if (w->sleep->asleep[t]) continue;
        for (int32_t i = tree->coordinate; i < tree->coordinate + tree->number_of_coordinates; i++)
            state->q[i] = (double)w->q[i];
    }
}

/* Whether one contact's pair comes behind another's. */
TB_STATIC bool is_behind(const tb_contact_record *a, const tb_contact_record *b)
{
    return a->shape_a > b->shape_a || (a->shape_a == b->shape_a && a->shape_b > b->shape_b);
}

TB_EXTERN int32_t tb_sleep_keep_contacts(tb_world *world)
{
    const tb_world *w = world;
    const tb_contact_record *last = w->state->contacts;
    tb_contact_record *records = w->records;
    int32_t own = w->number_of_contacts - 1, other = w->state->number_of_contacts - 1;
    const int32_t total = w->number_of_contacts + count_sleeping_contacts(w);

    /* from the back, so that both lists stay sorted and none is overwritten unread */
    for (int32_t to = total - 1; to > own; to--) {
        while (!contact_sleeps(w, &last[other])) other--;
        if (own >= 0 && is_behind(&records[own], &last[other]))
            records[to] = records[own--];
        else
            records[to] = last[other--];
    }
    return total;
}

TB_EXTERN void tb_sleep_end(const tb_world *world, tb_certificate *certificate)
{
    const tb_world *w = world;
    tb_sleep_inputs(w->home, w->sleep->inputs, 1);
    tb_sleep_close(w->home, w->sleep->falls, w->sleep->inputs, certificate);
    tb_sleep_certify(w->home, certificate);
}

#endif
