/* Sleep, as far as a state alone shows it.
 *
 * Numbers of a state: after how many steps they were written, plus 1 (0: never); the energy of a
 * world that sleeps as a whole, and whether it is known; the closure error of the last step that
 * computed one; how many gaps the last step could not close; three numbers a tree; a hash of the
 * pose and velocity of each kinematic body.
 *
 * A tree that sleeps has no velocity, and its contacts and impulses are those of its last step. It
 * wakes where anything that pushes it has changed, which a hash of its inputs shows whoever changed
 * them: a setter, a course, a restored snapshot. A hash keeps 53 bits, which a double holds. */
#include <string.h>

#include "step/step.h"

enum { WRITTEN_AFTER, ENERGY, ENERGY_IS_KNOWN, CLOSURE_ERROR, OPEN_GAPS };
static const uint64_t HASH_START = 0xcbf29ce484222325u;

bool tb_sleep_is_current(const tb_state *state)
{
    return state->sleep[WRITTEN_AFTER] == (double)state->steps + 1;
}

void tb_sleep_is_written(tb_state *state)
{
    state->sleep[WRITTEN_AFTER] = (double)state->steps + 1;
}

bool tb_sleep_is_asleep(const tb_state *state, int32_t tree)
{
    return tb_sleep_of(state, tree)->slow_steps < 0;
}

/* ---- inputs ---- */

static uint64_t mix(uint64_t hash, const double *numbers, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, &numbers[i], sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The kinematic body that carries a tree, -1: none. */
static int32_t carrier_of(const tb_model *m, const tb_model_tree *tree)
{
    return m->bodies[m->bodies[m->bodies[tree->body].parent].fixed_to].kinematic;
}

static uint64_t hash_of_tree(const tb_state *s, const tb_model_tree *tree)
{
    const int32_t carrier = carrier_of(s->model, tree);
    uint64_t hash = mix(HASH_START, s->q + tree->coordinate, tree->number_of_coordinates);
    hash = mix(hash, s->u + tree->dof, tree->number_of_dofs);
    hash = mix(hash, s->applied + tree->dof, tree->number_of_dofs);
    hash = mix(hash, s->wrenches + 6 * (size_t)tree->body, 6 * tree->number_of_bodies);
    if (carrier < 0) return hash;
    return mix(hash, s->kinematic + TB_KINEMATIC_NUMBERS * (size_t)carrier, TB_KINEMATIC_NUMBERS);
}

/* The bits of a hash that a double holds. */
static double number_of(uint64_t hash)
{
    return (double)(hash >> 11);
}

void tb_sleep_inputs(const tb_state *state, double *inputs, int32_t stride)
{
    const tb_model *m = state->model;
    for (int32_t t = 0; t < m->number_of_trees; t++)
        inputs[stride * t] = number_of(hash_of_tree(state, &m->trees[t]));
    for (int32_t a = 0; a < m->number_of_actuators; a++) {
        const int32_t tree = m->first_trees[m->number_of_tendons + a];
        const double both[2] = {state->controls[a], (double)a};
        if (tree < 0) continue;
        inputs[stride * tree] = number_of(mix((uint64_t)inputs[stride * tree], both, 2));
    }
}

/* ---- kinematic bodies ---- */

static double *hash_of_kinematic(const tb_state *s, int32_t kinematic)
{
    return s->sleep + TB_SLEEP_HEADER + TB_SLEEP_OF_TREE * s->model->number_of_trees + kinematic;
}

static double place_of(const tb_state *s, int32_t kinematic)
{
    const double *numbers = s->kinematic + TB_KINEMATIC_NUMBERS * (size_t)kinematic;
    return number_of(mix(HASH_START, numbers, TB_KINEMATIC_NUMBERS));
}

bool tb_sleep_is_still(const tb_state *state, int32_t kinematic)
{
    const double *velocity = state->kinematic + TB_KINEMATIC_NUMBERS * (size_t)kinematic + 7;
    for (int k = 0; k < 6; k++)
        if (velocity[k] != 0) return false;
    return *hash_of_kinematic(state, kinematic) == place_of(state, kinematic);
}

/* ---- after a step ---- */

static void stamp(tb_state *s)
{
    tb_sleep_is_written(s);
    for (int32_t k = 0; k < s->model->number_of_kinematic_bodies; k++)
        *hash_of_kinematic(s, k) = place_of(s, k);
}

void tb_sleep_close(tb_state *state, const bool *asleep, const double *inputs,
                    const tb_certificate *certificate)
{
    for (int32_t t = 0; t < state->model->number_of_trees; t++)
        if (asleep && asleep[t])
            *tb_sleep_of(state, t) = (tb_sleeper){TB_ASLEEP, inputs[t], certificate->residual};
    state->sleep[ENERGY_IS_KNOWN] = 0;
    state->sleep[CLOSURE_ERROR] = certificate->closure_error;
    state->sleep[OPEN_GAPS] = certificate->faults;
    stamp(state);
}

bool tb_sleep_has_open_gaps(const tb_state *state)
{
    return state->sleep[OPEN_GAPS] > 0;
}

static bool sleeps(const tb_state *s, int32_t shape)
{
    const int32_t tree = s->model->bodies[s->model->shapes[shape].body].tree;
    return tree >= 0 && tb_sleep_is_asleep(s, tree);
}

void tb_sleep_certify(const tb_state *state, tb_certificate *certificate)
{
    tb_certificate *c = certificate;
    for (int32_t t = 0; t < state->model->number_of_trees; t++) {
        if (!tb_sleep_is_asleep(state, t)) continue;
        c->asleep++;
        if (tb_sleep_of(state, t)->residual > c->residual)
            c->residual = tb_sleep_of(state, t)->residual;
    }
    c->contacts = state->number_of_contacts;
    for (int32_t i = 0; c->asleep > 0 && i < state->number_of_contacts; i++) {
        const tb_contact_record *r = &state->contacts[i];
        if (-r->gap > c->penetration && (sleeps(state, r->shape_a) || sleeps(state, r->shape_b)))
            c->penetration = -r->gap;
    }
}

void tb_sleep_wake_all(tb_state *state)
{
    if (state->model->number_of_sleep_numbers > 0) state->sleep[WRITTEN_AFTER] = 0;
}

/* A group whose every tree begins asleep, and at rest. */
static bool begins_asleep(const tb_state *s, int32_t group)
{
    const tb_model *m = s->model;
    for (int32_t t = group; t < m->number_of_trees; t++) {
        const tb_model_tree *tree = &m->trees[t];
        if (tree->sleep_group != group) continue;
        if (tree->sleep != TB_SLEEP_INIT) return false;
        for (int32_t i = 0; i < tree->number_of_dofs; i++)
            if (s->u[tree->dof + i] != 0) return false;
    }
    return true;
}

void tb_sleep_reset(tb_state *state)
{
    const tb_model *m = state->model;
    if (m->number_of_sleep_numbers == 0) return;
    bool any = false;
    for (int32_t t = 0; t < m->number_of_trees; t++) {
        const int32_t group = m->trees[t].sleep_group; /* the smallest of its trees */
        const bool asleep = t == group
                                ? m->trees[t].sleep == TB_SLEEP_INIT && begins_asleep(state, t)
                                : tb_sleep_is_asleep(state, group);
        *tb_sleep_of(state, t) = (tb_sleeper){asleep ? TB_ASLEEP : 0, 0, 0};
        any = any || asleep;
    }
    state->sleep[ENERGY_IS_KNOWN] = 0;
    state->sleep[CLOSURE_ERROR] = -1;
    state->sleep[OPEN_GAPS] = 0;
    state->sleep[WRITTEN_AFTER] = 0;
    if (!any) return;
    tb_sleep_inputs(state, &tb_sleep_of(state, 0)->inputs, TB_SLEEP_OF_TREE);
    stamp(state);
}

/* ---- a world that sleeps as a whole ---- */

/* Whether the inputs of every tree are those with which it fell asleep. */
static bool inputs_are_kept(const tb_state *s, tb_arena *arena)
{
    double *inputs = TB_ARENA_ARRAY(arena, double, s->model->number_of_trees);
    if (!inputs) return false;
    tb_sleep_inputs(s, inputs, 1);
    for (int32_t t = 0; t < s->model->number_of_trees; t++)
        if (inputs[t] != tb_sleep_of(s, t)->inputs) return false;
    return true;
}

bool tb_sleep_rests(const tb_state *state, tb_arena *arena)
{
    const tb_model *m = state->model;
    if (m->number_of_sleep_numbers == 0 || state->status != TB_OK || m->number_of_activations > 0 ||
        !tb_sleep_is_current(state))
        return false;
    if (m->number_of_equalities > 0 && state->sleep[CLOSURE_ERROR] < 0) return false;
    for (int32_t t = 0; t < m->number_of_trees; t++)
        if (!tb_sleep_is_asleep(state, t)) return false;
    for (int32_t k = 0; k < m->number_of_kinematic_bodies; k++)
        if (!tb_sleep_is_still(state, k)) return false;
    tb_arena_reset(arena);
    return inputs_are_kept(state, arena);
}

void tb_sleep_rest(tb_state *state, double dt, bool report_energy, tb_arena *arena,
                   tb_certificate *certificate)
{
    double *known = state->sleep;
    tb_certificate c = {.status = TB_OK};
    memcpy(state->past_u, state->u,
           (size_t)state->model->number_of_past_velocities * sizeof(double));
    state->steps++;
    state->time += dt;
    known[WRITTEN_AFTER] = (double)state->steps + 1;
    c.step = state->steps;
    c.time = state->time;
    c.closure_error = known[CLOSURE_ERROR] > 0 ? known[CLOSURE_ERROR] : 0;
    tb_sleep_certify(state, &c);
    if (report_energy && known[ENERGY_IS_KNOWN] == 0) {
        tb_arena_reset(arena);
        known[ENERGY] = tb_world_energy(state, arena);
        known[ENERGY_IS_KNOWN] = 1;
    }
    if (report_energy) c.energy = known[ENERGY];
    *certificate = state->certificate = c;
}
