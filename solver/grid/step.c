/* A step: substeps of forces, contact and transport, and the certificate. */
#include <string.h>

#include "grid/card/steps.h"
#include "grid/grid_internal.h"

/* Parts of the stability limits that a substep uses: of the sum over axes of |v| dt / h, for which
 * upwind differences are stable up to 1, and of the longest stable elastic step. */
static const double COURANT_LIMIT = 0.5, WAVE_LIMIT = 0.9;

/* Bytes of a substep at a node, where every pass reads and writes the arrays that the pass before it has
 * changed elsewhere, and nothing twice. X and v: 24 each, mass and depth: 8 each, octants: 64.
 *   forces     reads X, v, octants, mass; writes v                       144
 *   transport  two stages: X, v in and out; X, v of both in, X, v out    240
 *   masses     reads X; writes octants, mass, depth                      104
 *   repair     reads v, mass; writes v                                    56 */
static const double BYTES_OF_NODE = 144 + 240 + 104 + 56;
/* of the search for contacts, at a cell and body: layer and depth */
static const double BYTES_OF_CELL = 1 + 8;

/* Bytes of the fields in all boxes and of the search for contacts: a floor of a substep for any program whose
 * passes share memory alone. */
static double least_bytes(const tb_soft_world *w)
{
    const int32_t bodies = w->scene.number_of_bodies;
    double nodes = 0, cells = 0;
    for (int32_t a = 0; a < bodies; a++) {
        const tb_soft_field *f = w->fields + a;
        nodes += (double)(f->upper[0] - f->lower[0]) * (f->upper[1] - f->lower[1]) *
                 (f->upper[2] - f->lower[2]);
        for (int32_t b = a + 1; b < bodies + w->scene.number_of_obstacles; b++) {
            int32_t low[3], high[3];
            if (tb_soft_pair_may_touch(w, a, b, low, high))
                cells += (double)(high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]) *
                         (b < bodies ? 2 : 1);
        }
    }
    return BYTES_OF_NODE * nodes + BYTES_OF_CELL * cells;
}

/* Sums of a body's present fields, which a card has kept. */
static tb_soft_sums momentum_of(tb_soft_world *w, int32_t body)
{
    if (w->card != NULL) return w->card->outcomes[body].momentum;
    return w->momenta_known ? w->momenta[body] : tb_soft_momentum_pass(w, body);
}

/* Sums of all bodies' present fields, until forces change them. */
static void know_momenta(tb_soft_world *w)
{
    if (w->card != NULL || w->momenta_known) return;
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++)
        w->momenta[b] = tb_soft_momentum_pass(w, b);
    w->momenta_known = true;
}

/* Longest step (s) of the body's waves at the stiffness of its last stress. */
static double wave_step(const tb_soft_world *w, int32_t body)
{
    const tb_soft_material *m = &w->scene.bodies[body].material;
    const double rate2 =
        tb_soft_rate2(w->scene.lattice.spacing) * w->fields[body].stiffness / m->density;
    return tb_soft_longest_step(rate2, m->damping);
}

tb_status tb_soft_count_substeps(tb_soft_world *w, double rest, int32_t done, int32_t *count,
                                 tb_error *error)
{
    double most = 1;
    know_momenta(w);
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        const double speed = momentum_of(w, b).speed;
        if (speed >= 1e300)
            return tb_fail(error, TB_DIVERGED, "body '%s' has velocities that are not finite",
                           w->scene.bodies[b].name);
        most = tb_max(most, rest * speed / COURANT_LIMIT);
        most = tb_max(most, rest / (WAVE_LIMIT * wave_step(w, b)));
    }
    if (most > w->scene.options.most_substeps - done)
        return tb_fail_field(
            error, TB_FAILED_PRECONDITION, "timestep",
            "a step of %g s needs %.0f substeps (waves or particles cross too much "
            "of a cell); %d are allowed",
            w->scene.options.dt, done + ceil(most), w->scene.options.most_substeps);
    *count = (int32_t)ceil(most - 1e-9);
    return TB_OK;
}

/* Keeps each body the layers away from the grid's faces. */
static tb_status check_room(const tb_soft_world *w, tb_error *error)
{
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        const int32_t axis = w->fields[b].outside;
        if (axis != 0)
            return tb_fail_field(error, TB_FAILED_PRECONDITION, "grid",
                                 "body '%s' leaves the grid along %c at %g s: it needs %d nodes "
                                 "on every side",
                                 w->scene.bodies[b].name, 'w' + axis, w->time, TB_SOFT_LAYERS);
    }
    return TB_OK;
}

static tb_status apply_forces(tb_soft_world *w, double dt, tb_soft_certificate *c, tb_error *error)
{
    const bool on_card = w->card != NULL;
    if (on_card) {
        w->failed = true; /* until the substep is whole */
        const tb_status status = tb_soft_card_do(w, TB_SOFT_CARD_FORCES, dt, error);
        if (status != TB_OK) return status;
    }
    w->energy = 0;
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        const tb_soft_sums stress =
            on_card ? w->card->outcomes[b].stress : tb_soft_stress_pass(w, b);
        c->smallest_volume = tb_min(c->smallest_volume, stress.smallest);
        if (!(stress.smallest > 0)) {
            w->momenta_known = false;
            return tb_fail(error, TB_DIVERGED, "body '%s' is folded at %g s: det F is not positive",
                           w->scene.bodies[b].name, w->time);
        }
        w->failed = true; /* until the substep is whole */
        w->fields[b].stiffness = stress.stiffness;
        w->energy += momentum_of(w, b).kinetic + stress.elastic;
        c->damped += dt * stress.damped_power;
        c->courant = tb_max(c->courant, dt * momentum_of(w, b).speed);
        c->wave = tb_max(c->wave, dt / wave_step(w, b));
        if (on_card)
            tb_soft_card_receive(w, b);
        else
            tb_soft_accelerate(w, b, dt);
    }
    w->momenta_known = false;
    return TB_OK;
}

/* Mass and momentum of the bodies that are not clamped. */
static double free_momentum(tb_soft_world *w, double momentum[3])
{
    double mass = 0;
    memset(momentum, 0, 3 * sizeof *momentum);
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        if (w->fields[b].held != NULL) continue;
        const tb_soft_sums s = momentum_of(w, b);
        mass += s.mass;
        for (int a = 0; a < 3; a++) momentum[a] += s.momentum[a];
    }
    return mass;
}

/* Contact impulses. */
static tb_status touch(tb_soft_world *w, double dt, tb_soft_certificate *c, tb_error *error)
{
    tb_soft_contact *contacts = NULL;
    int32_t count = 0;
    bool solved = false;
    if (w->card != NULL) {
        const tb_status there = tb_soft_card_solve_contacts(w, dt, c, &solved, error);
        if (there != TB_OK || solved) return there;
    }
    tb_status status = w->card != NULL ? tb_soft_card_find_contacts(w, &contacts, &count, error)
                                       : tb_soft_find_contacts(w, &contacts, &count, error);
    if (status == TB_OK) status = tb_soft_solve_contacts(w, dt, contacts, count, c, error);
    return status;
}

static tb_status carry(tb_soft_world *w, double dt, tb_soft_certificate *c, tb_error *error)
{
    if (w->card == NULL) {
        for (int32_t b = 0; b < w->scene.number_of_bodies; b++) tb_soft_transport(w, b, dt, c);
        return TB_OK;
    }
    const tb_status status = tb_soft_card_do(w, TB_SOFT_CARD_TRANSPORT, dt, error);
    for (int32_t b = 0; status == TB_OK && b < w->scene.number_of_bodies; b++) {
        const tb_soft_card_outcome *o = w->card->outcomes + b;
        c->mass_error = tb_max(c->mass_error, o->mass_error);
        c->transport_repair =
            tb_max(c->transport_repair, tb_v3_length(tb_v3_load(o->repair.linear)));
    }
    return status;
}

static tb_status substep(tb_soft_world *w, double dt, tb_soft_certificate *c, tb_error *error)
{
    tb_arena_reset(&w->step);
    double before[3], after[3], square = 0;
    const double bytes = least_bytes(w), programs = c->normal.bytes + c->tangential.bytes;
    const double mass = free_momentum(w, before);
    memset(w->external, 0, sizeof w->external);
    tb_status status = check_room(w, error);
    if (status == TB_OK) {
        tb_soft_partners_begin(w, dt);
        if (w->card == NULL) tb_soft_clamps_take(w);
        status = apply_forces(w, dt, c, error);
    }
    if (status == TB_OK) status = touch(w, dt, c, error);
    if (status == TB_OK) {
        tb_soft_partners_end(w, dt);
        status = carry(w, dt, c, error);
    }
    if (status != TB_OK) return status;
    know_momenta(w);
    free_momentum(w, after);
    for (int a = 0; a < 3; a++) {
        const double error_a =
            after[a] - before[a] - dt * mass * w->scene.gravity[a] - w->external[a];
        square += error_a * error_a;
    }
    c->momentum_error = tb_max(c->momentum_error, sqrt(square));
    w->time += dt;
    w->last_dt = dt;
    w->failed = false;
    c->substeps++;
    c->bytes += bytes + c->normal.bytes + c->tangential.bytes - programs;
    return TB_OK;
}

tb_status tb_soft_finish(tb_soft_world *w, tb_soft_certificate *c, tb_error *error)
{
    tb_status status = tb_soft_card_bring(w, error);
    if (status == TB_OK && w->card != NULL)
        status = tb_soft_card_do(w, TB_SOFT_CARD_MEASURE, 0, error);
    c->time = w->time;
    c->contacts = w->number_of_contacts;
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        const tb_soft_sums s = momentum_of(w, b);
        const tb_soft_sums e =
            w->card != NULL ? w->card->outcomes[b].stress : tb_soft_stress_pass(w, b);
        c->kinetic += s.kinetic;
        c->potential += s.potential;
        c->elastic += e.elastic;
        c->smallest_volume = tb_min(c->smallest_volume, e.smallest);
        for (int a = 0; a < 3; a++) {
            c->momentum[a] += s.momentum[a];
            c->angular[a] += s.angular[a];
        }
    }
    return status;
}

static tb_status check_whole(const tb_soft_world *w, tb_error *error)
{
    if (!w->failed) return TB_OK;
    return tb_fail(error, TB_FAILED_PRECONDITION,
                   "the world failed inside of a step: restore a state first");
}

tb_status tb_soft_advance(tb_soft_world *w, double dt, tb_soft_certificate *c, tb_error *error)
{
    const double start = w->time;
    int32_t done = 0, count = 1;
    tb_status status = check_whole(w, error);
    if (status == TB_OK) status = tb_soft_card_bring(w, error);
    while (status == TB_OK && count > 0) {
        const double rest = start + dt - w->time;
        status = tb_soft_count_substeps(w, rest, done, &count, error);
        if (status == TB_OK) status = substep(w, rest / count, c, error);
        done++;
        count--;
    }
    if (status == TB_OK) w->time = start + dt;
    return status;
}

tb_status tb_soft_step(tb_soft_world *w, int32_t steps, tb_soft_certificate *certificate,
                       tb_error *error)
{
    tb_soft_certificate c = {.smallest_volume = 1e300};
    tb_status status = check_whole(w, error);
    if (status != TB_OK) return status;
    w->momenta_known = false;
    for (int32_t s = 0; status == TB_OK && s < steps; s++)
        status = tb_soft_advance(w, w->scene.options.dt, &c, error);
    tb_error ignored;
    const tb_status measured = tb_soft_finish(w, &c, status == TB_OK ? error : &ignored);
    if (status == TB_OK) status = measured;
    if (certificate != NULL) *certificate = c;
    return status;
}

static void merge_counts(tb_soft_program_counts *w, const tb_soft_program_counts *n)
{
    w->variables = n->variables > w->variables ? n->variables : w->variables;
    w->half_bandwidth =
        n->half_bandwidth > w->half_bandwidth ? n->half_bandwidth : w->half_bandwidth;
    w->free_variables =
        n->free_variables > w->free_variables ? n->free_variables : w->free_variables;
    w->iterations = n->iterations > w->iterations ? n->iterations : w->iterations;
    w->solves += n->solves;
    w->factorizations += n->factorizations;
    w->resets += n->resets;
    w->bytes += n->bytes;
    w->fallbacks += n->fallbacks;
    w->warm += n->warm;
    w->active += n->active;
    w->residual = tb_max(w->residual, n->residual);
    w->factor_seconds += n->factor_seconds;
    w->solve_seconds += n->solve_seconds;
    w->seconds += n->seconds;
}

void tb_soft_certificate_merge(tb_soft_certificate *w, const tb_soft_certificate *n)
{
    tb_soft_certificate m = *n;
    if (w->substeps == 0) {
        *w = m;
        return;
    }
    m.status = w->status != TB_OK ? w->status : n->status;
    m.substeps += w->substeps;
    m.courant = tb_max(w->courant, n->courant);
    m.wave = tb_max(w->wave, n->wave);
    m.smallest_volume = tb_min(w->smallest_volume, n->smallest_volume);
    m.damped += w->damped;
    m.contact_work += w->contact_work;
    m.pushed += w->pushed;
    m.momentum_error = tb_max(w->momentum_error, n->momentum_error);
    m.transport_repair = tb_max(w->transport_repair, n->transport_repair);
    m.mass_error = tb_max(w->mass_error, n->mass_error);
    m.projections = n->projections > w->projections ? n->projections : w->projections;
    m.cone_error = tb_max(w->cone_error, n->cone_error);
    m.penetration = tb_max(w->penetration, n->penetration);
    m.prediction_error = tb_max(w->prediction_error, n->prediction_error);
    m.bytes += w->bytes;
    m.normal = w->normal;
    m.tangential = w->tangential;
    merge_counts(&m.normal, &n->normal);
    merge_counts(&m.tangential, &n->tangential);
    *w = m;
}
