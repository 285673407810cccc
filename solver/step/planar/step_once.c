/* One step of a planar world: contacts of its beginning, one problem, one solve, one way on. */
#include "step/planar/islands.h"

#include "base/parallel.h"

#include <math.h>
#include <string.h>

struct tb_planar_stepping {
    const tb_step_options *options;
    tb_arena *arena;
    double dt;
    double horizon;  /* s, in which a gap may close */
    int32_t threads; /* that the stages of one world may use */
    tb_planar_world world;
    double *free_velocity; /* bodies x 3, after the step if no contact pushed */
    double *scale;         /* bodies x 3: M^-1/2 */
    tb_planar_contact *contacts;
    int32_t number_of_contacts;
    tb_problem problem;
    tb_block *blocks;
    tb_segment *segments;
    double *values, *c, *warm, *speeds;
    uint8_t *statuses;
    tb_solution solution;
    tb_planar_islands islands;
    double history[TB_HISTORY_NUMBERS];
    double *before; /* bodies x 3: velocities */
};
typedef tb_planar_stepping stepping;

/* ---- forces before contacts ---- */

static double along(const double axis[3], const double v[3])
{
    return axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2];
}

/* Force (N) at the centre of mass and torque (N m) on a body by the caller's applied forces. */
static void applied_force(const tb_planar_world *w, const tb_planar_body *b, const tb_state *state,
                          double f[3])
{
    const double *wrench = state->wrenches + 6 * (int64_t)b->body;
    const double c = cos(b->angle), s = sin(b->angle);
    const tb_planar_vec lever = {c * b->lever.x - s * b->lever.y, s * b->lever.x + c * b->lever.y};
    const double det = b->slides[0][0] * b->slides[1][1] - b->slides[0][1] * b->slides[1][0];
    const double *a = state->applied;
    /* S^-T of the slides' forces acts at the anchor */
    const double x = (b->slides[1][1] * a[b->dof[0]] - b->slides[1][0] * a[b->dof[1]]) / det;
    const double y = (b->slides[0][0] * a[b->dof[1]] - b->slides[0][1] * a[b->dof[0]]) / det;
    f[0] = x + along(w->axis[0], wrench);
    f[1] = y + along(w->axis[1], wrench);
    f[2] = b->turn * a[b->dof[2]] - (lever.x * y - lever.y * x) + along(w->normal, wrench + 3);
}

static void find_free_velocities(stepping *s, const tb_state *state)
{
    const tb_planar_world *w = &s->world;
    const double *g = w->model->gravity;
    for (int32_t i = 0; i < w->number_of_bodies; i++) {
        const tb_planar_body *b = &w->bodies[i];
        const double weight = 1 - w->model->bodies[b->body].gravity_compensation;
        const double inverse[3] = {b->inverse_mass, b->inverse_mass, b->inverse_inertia};
        const double fall[3] = {weight * along(w->axis[0], g), weight * along(w->axis[1], g), 0};
        double f[3];
        applied_force(w, b, state, f);
        for (int k = 0; k < 3; k++) {
            s->free_velocity[3 * i + k] = b->velocity[k] + s->dt * (fall[k] + inverse[k] * f[k]);
            s->scale[3 * i + k] = sqrt(inverse[k]);
        }
    }
}

/* ---- rows ---- */

/* mu of a pair: the shape of higher priority decides, else the larger. */
static double friction_of(const tb_model *m, int32_t a, int32_t b)
{
    const tb_model_shape *p = &m->shapes[a], *q = &m->shapes[b];
    const double mp = p->surface.kind == TB_CONTACT_FRICTIONLESS ? 0 : p->surface.friction;
    const double mq = q->surface.kind == TB_CONTACT_FRICTIONLESS ? 0 : q->surface.friction;
    if (p->priority != q->priority) return p->priority > q->priority ? mp : mq;
    return fmax(mp, mq);
}

/* W of one direction for one body (2.6), whitened; returns W' v of its free velocity. */
static double fill(const stepping *s, int32_t body, double sign, tb_planar_vec d, tb_planar_vec at,
                   double *y)
{
    const tb_planar_vec centre = s->world.bodies[body].centre;
    const double *v = s->free_velocity + 3 * body, *scale = s->scale + 3 * body;
    const double w[3] = {sign * d.x, sign * d.y,
                         sign * ((at.x - centre.x) * d.y - (at.y - centre.y) * d.x)};
    double speed = 0;
    for (int k = 0; k < 3; k++) {
        y[k] = scale[k] * w[k];
        speed += w[k] * v[k];
    }
    return speed;
}

/* The side, 0 or 1, whose body has the lower index: its numbers come first. */
static int first_side(const tb_planar_shape *a, const tb_planar_shape *b)
{
    return a->owner >= 0 && (b->owner < 0 || a->owner < b->owner) ? 0 : 1;
}

/* Appends a contact's block behind the last one. */
static void add_block(stepping *s, const tb_planar_contact *contact)
{
    const tb_planar_world *w = &s->world;
    tb_problem *p = &s->problem;
    const tb_planar_shape *a = &w->shapes[contact->a], *b = &w->shapes[contact->b];
    const double mu = friction_of(w->model, a->shape, b->shape);
    const int32_t owner[2] = {a->owner, b->owner};
    tb_block *block = &s->blocks[p->number_of_blocks];
    const tb_block *last = block - 1;
    *block = (tb_block){.law = mu > 0 ? TB_LAW_PLANAR : TB_LAW_UNILATERAL,
                        .row = p->number_of_rows,
                        .rows = mu > 0 ? 2 : 1,
                        .mu = mu,
                        .segment = p->number_of_blocks ? last->segment + last->segments : 0,
                        .value = p->number_of_blocks ? last->value + last->rows * last->width : 0};
    const int first = first_side(a, b);
    for (int k = 0; k < 2; k++) {
        const int side = k == 0 ? first : 1 - first;
        if (owner[side] < 0) continue;
        s->segments[block->segment + block->segments++] = (tb_segment){3 * owner[side], 3};
        block->width += 3;
    }
    p->number_of_blocks++;
    p->number_of_rows += block->rows;
}

/* The listing of proxCUDA adds the gap and not gap / h: contacts look a second ahead. */
static double horizon_of(const stepping *s)
{
    const tb_solve_options *o = &s->options->solve;
    return o->as_listed && strcmp(o->solver, "prox_cuda") == 0 ? 1 : s->dt;
}

/* Rows and c of contact i, whose block has its place. */
static void fill_block(void *context, int32_t i, int32_t thread)
{
    const stepping *s = context;
    const tb_planar_contact *contact = &s->contacts[i];
    const tb_block *block = &s->blocks[i];
    const tb_planar_shape *a = &s->world.shapes[contact->a], *b = &s->world.shapes[contact->b];
    const tb_planar_vec n = contact->normal, t = {n.y, -n.x};
    const double half = contact->gap / 2;
    const int32_t owner[2] = {a->owner, b->owner};
    const tb_planar_vec at[2] = {{contact->point.x - half * n.x, contact->point.y - half * n.y},
                                 {contact->point.x + half * n.x, contact->point.y + half * n.y}};
    const int first = first_side(a, b);
    (void)thread;
    for (int32_t r = 0; r < block->rows; r++) {
        double *y = s->values + block->value + r * block->width;
        double *c = &s->c[block->row + r];
        *c = r == 0 ? contact->gap / s->horizon : 0;
        for (int k = 0; k < 2; k++) {
            const int side = k == 0 ? first : 1 - first;
            if (owner[side] < 0) continue;
            *c += fill(s, owner[side], side == 0 ? -1 : 1, r == 0 ? n : t, at[side], y);
            y += 3;
        }
    }
}

enum { CONTACTS_AT_ONCE = 128 };

static tb_status assemble(stepping *s, tb_error *error)
{
    const size_t most = (size_t)s->number_of_contacts;
    s->blocks = TB_ARENA_ARRAY(s->arena, tb_block, most);
    s->segments = TB_ARENA_ARRAY(s->arena, tb_segment, 2 * most);
    s->values = TB_ARENA_ARRAY(s->arena, double, 12 * most);
    s->c = TB_ARENA_ARRAY(s->arena, double, 2 * most);
    if (!s->blocks || !s->segments || !s->values || !s->c)
        return tb_fail_memory(error, 0, "a step's contacts");
    s->problem = (tb_problem){.number_of_dofs = 3 * s->world.number_of_bodies,
                              .blocks = s->blocks,
                              .segments = s->segments,
                              .values = s->values,
                              .c = s->c};
    for (int32_t i = 0; i < s->number_of_contacts; i++) add_block(s, &s->contacts[i]);
    s->horizon = horizon_of(s);
    tb_parallel_for(s->number_of_contacts, CONTACTS_AT_ONCE, s->threads, fill_block, s);
    return TB_OK;
}

/* ---- the solve ---- */

/* Impulses and statuses of the last step's contacts; both lists are sorted by shapes. */
static void find_warm(stepping *s, const tb_state *state)
{
    int32_t from = 0;
    for (int32_t i = 0; i < s->number_of_contacts; i++) {
        const tb_planar_contact *c = &s->contacts[i];
        const int32_t a = s->world.shapes[c->a].shape, b = s->world.shapes[c->b].shape;
        const int32_t row = s->blocks[i].row;
        s->statuses[i] = TB_STATUS_UNKNOWN;
        s->speeds[i] = 0;
        for (int32_t k = 0; k < s->blocks[i].rows; k++) s->warm[row + k] = 0;
        const tb_contact_record *r = state->contacts;
        while (from < state->number_of_contacts &&
               (r[from].shape_a < a || (r[from].shape_a == a && r[from].shape_b < b)))
            from++;
        for (int32_t k = from;
             k < state->number_of_contacts && r[k].shape_a == a && r[k].shape_b == b; k++) {
            if (r[k].feature != c->feature) continue;
            for (int32_t j = 0; j < s->blocks[i].rows; j++) s->warm[row + j] = r[k].impulse[j];
            s->statuses[i] = (uint8_t)r[k].status;
            s->speeds[i] = fabs(r[k].velocity[1]);
        }
    }
}

static tb_status open_solve(stepping *s, const tb_state *state, tb_error *error)
{
    const size_t rows = (size_t)s->problem.number_of_rows, blocks = (size_t)s->number_of_contacts;
    const size_t dofs = (size_t)s->problem.number_of_dofs;
    tb_solution *x = &s->solution;
    *x = (tb_solution){.lambda = TB_ARENA_ZEROED(s->arena, double, rows),
                       .xi = TB_ARENA_ZEROED(s->arena, double, rows),
                       .whitened = TB_ARENA_ZEROED(s->arena, double, dofs),
                       .statuses = TB_ARENA_ZEROED(s->arena, uint8_t, blocks)};
    s->warm = TB_ARENA_ARRAY(s->arena, double, rows);
    s->speeds = TB_ARENA_ARRAY(s->arena, double, blocks);
    s->statuses = TB_ARENA_ARRAY(s->arena, uint8_t, blocks);
    if (!x->lambda || !x->xi || !x->whitened || !x->statuses || !s->warm || !s->speeds ||
        !s->statuses)
        return tb_fail_memory(error, 0, "a step's solution");
    if (rows == 0) return TB_OK;
    find_warm(s, state);
    const tb_planar_solve from = {.options = &s->options->solve,
                                  .warm = s->warm,
                                  .statuses = s->statuses,
                                  .speeds = s->speeds,
                                  .history = (tb_solve_history *)(void *)s->history};
    const tb_status status = tb_planar_islands_make(&s->problem, &from, s->arena, &s->islands);
    return status == TB_OK ? status : tb_fail_memory(error, 0, "the islands of a step");
}

static tb_status finish_solve(stepping *s, tb_error *error)
{
    if (s->problem.number_of_rows == 0) return TB_OK;
    const tb_status status = tb_planar_islands_finish(&s->islands, s->arena, &s->solution);
    if (status == TB_OK || status == TB_CANCELLED) return status;
    return tb_fail(error, status, "solver '%s': %s", s->options->solve.solver,
                   tb_status_text(status));
}

/* ---- the way on ---- */

static bool advance(stepping *s)
{
    bool finite = true;
    for (int32_t i = 0; i < s->world.number_of_bodies; i++) {
        tb_planar_body *b = &s->world.bodies[i];
        for (int k = 0; k < 3; k++) {
            b->velocity[k] =
                s->free_velocity[3 * i + k] + s->scale[3 * i + k] * s->solution.whitened[3 * i + k];
            finite = finite && isfinite(b->velocity[k]);
        }
        b->centre.x += s->dt * b->velocity[0];
        b->centre.y += s->dt * b->velocity[1];
        b->angle += s->dt * b->velocity[2];
        finite = finite && isfinite(b->centre.x) && isfinite(b->centre.y) && isfinite(b->angle);
    }
    return finite;
}

static void to_world(const tb_planar_world *w, tb_planar_vec v, double out[3])
{
    for (int i = 0; i < 3; i++) out[i] = v.x * w->axis[0][i] + v.y * w->axis[1][i];
}

/* A step whose contacts a state takes over. */
typedef struct remembered {
    const stepping *step;
    tb_contact_record *records;
} remembered;

static void remember_contact(void *context, int32_t i, int32_t thread)
{
    const remembered *to = context;
    const stepping *s = to->step;
    const tb_planar_contact *c = &s->contacts[i];
    const tb_block *block = &s->blocks[i];
    tb_contact_record *r = &to->records[i];
    (void)thread;
    memset(r, 0, sizeof *r);
    r->shape_a = s->world.shapes[c->a].shape;
    r->shape_b = s->world.shapes[c->b].shape;
    r->feature = c->feature;
    to_world(&s->world, c->point, r->position);
    to_world(&s->world, c->normal, r->normal);
    to_world(&s->world, (tb_planar_vec){c->normal.y, -c->normal.x}, r->tangent1);
    memcpy(r->tangent2, s->world.normal, sizeof r->tangent2);
    r->gap = c->gap;
    r->kind = block->rows > 1 ? TB_CONTACT_COULOMB : TB_CONTACT_FRICTIONLESS;
    r->status = s->solution.statuses[i];
    for (int32_t k = 0; k < block->rows; k++) {
        r->impulse[k] = s->solution.lambda[block->row + k];
        r->velocity[k] = s->solution.xi[block->row + k];
    }
    r->velocity[0] -= c->gap / s->horizon;
}

static tb_status remember(const stepping *s, tb_state *state, tb_error *error)
{
    const tb_status status = tb_state_reserve_next(state, s->number_of_contacts);
    if (status != TB_OK) return tb_fail_memory(error, 0, "a step's contacts");
    remembered to = {.step = s, .records = state->next_contacts};
    tb_parallel_for(s->number_of_contacts, CONTACTS_AT_ONCE, s->threads, remember_contact, &to);
    tb_state_take_next(state, s->number_of_contacts);
    return TB_OK;
}

static void certify(const stepping *s, tb_certificate *c)
{
    const tb_solution *x = &s->solution;
    memset(c, 0, sizeof *c);
    c->status = x->status == TB_OK ? TB_OK : TB_NOT_CONVERGED;
    if (x->status != TB_OK) c->flags |= TB_CERTIFICATE_NOT_CONVERGED;
    if (x->halvings) c->flags |= TB_CERTIFICATE_HALVED;
    c->residual = x->residuals.natural;
    c->cone_error = x->residuals.cone;
    c->complementarity_error = x->residuals.complementarity;
    c->contacts = s->number_of_contacts;
    c->rows = s->problem.number_of_rows;
    c->iterations = x->iterations;
    c->linear_solves = x->work.linear_solves;
    c->factorizations = x->work.factorizations;
    c->resets = x->work.resets;
    memcpy(c->solver, x->solver, sizeof c->solver);
    for (int32_t i = 0; i < s->number_of_contacts; i++) {
        c->penetration = fmax(c->penetration, -s->contacts[i].gap);
        if (!s->options->solve.warm_start || s->statuses[i] == TB_STATUS_UNKNOWN) continue;
        c->known_statuses++;
        c->kept_statuses += s->statuses[i] == x->statuses[i];
    }
}

/* Work (J) of contacts over the step, p (W' nu + W' nu') / 2: negative for dissipation, positive
 * where they push penetrations apart. */
static double contact_work(const stepping *s)
{
    const double *before = s->before;
    double work = 0;
    for (int32_t i = 0; i < s->number_of_contacts; i++) {
        const tb_block *block = &s->blocks[i];
        for (int32_t k = 0; k < block->rows; k++) {
            const double *y = s->values + block->value + k * block->width;
            double speed = 0;
            for (int32_t g = 0; g < block->segments; g++)
                for (int32_t d = 0; d < 3; d++) {
                    const int32_t dof = s->segments[block->segment + g].dof + d;
                    const double after = s->world.bodies[dof / 3].velocity[dof % 3];
                    speed += *y++ / s->scale[dof] * (before[dof] + after) / 2;
                }
            work += s->solution.lambda[block->row + k] * speed;
        }
    }
    return work;
}

void tb_planar_kept_destroy(tb_planar_kept *kept)
{
    tb_arena_destroy(&kept->arena);
    memset(kept, 0, sizeof *kept);
}

/* The model as a planar world, read once for all steps of it. */
static tb_status take_world(tb_planar_kept *kept, const tb_model *model, tb_planar_world *world,
                            tb_error *error)
{
    if (!kept->sha256[0] || strcmp(kept->sha256, model->sha256) != 0) {
        kept->sha256[0] = '\0';
        tb_arena_reset(&kept->arena);
        const tb_status status = tb_planar_read(model, &kept->arena, &kept->world, error);
        if (status != TB_OK) return status;
        memcpy(kept->sha256, model->sha256, sizeof kept->sha256);
    }
    *world = kept->world;
    world->model = model; /* the one that was read may be gone */
    return TB_OK;
}

static tb_status prepare(stepping *s, const tb_state *state, const tb_step_options *options,
                         tb_workspace *workspace, tb_planar_kept *kept, tb_error *error)
{
    memset(s, 0, sizeof *s);
    s->options = options;
    s->arena = &workspace->arena;
    s->threads = workspace->threads;
    s->dt = options->dt > 0 ? options->dt : state->model->dt;
    tb_status status = take_world(kept, state->model, &s->world, error);
    if (status != TB_OK) return status;
    const size_t dofs = 3 * (size_t)s->world.number_of_bodies;
    s->free_velocity = TB_ARENA_ARRAY(s->arena, double, dofs);
    s->scale = TB_ARENA_ARRAY(s->arena, double, dofs);
    if (!s->free_velocity || !s->scale) return tb_fail_memory(error, 0, "a planar step");
    tb_planar_place(&s->world, state->q, state->u, s->threads);
    find_free_velocities(s, state);
    for (size_t i = 0; i < dofs; i++)
        if (!isfinite(s->free_velocity[i])) return TB_DIVERGED;
    status = tb_planar_detect(&s->world, s->dt, options->contact_margin, s->threads, s->arena,
                              &s->contacts, &s->number_of_contacts);
    if (status != TB_OK) return tb_fail_memory(error, 0, "contacts");
    return assemble(s, error);
}

tb_status tb_planar_step_begin(tb_state *state, const tb_step_options *options,
                               tb_workspace *workspace, tb_planar_kept *kept,
                               tb_certificate *certificate, tb_planar_stepping **stepping_of,
                               tb_error *error)
{
    memset(certificate, 0, sizeof *certificate);
    if (state->status == TB_DIVERGED) return tb_state_freeze(state, certificate, error);
    tb_arena_reset(&workspace->arena);
    stepping *s = TB_ARENA_ZEROED(&workspace->arena, stepping, 1);
    if (!s) return tb_fail_memory(error, sizeof *s, "a planar step");
    tb_status status = prepare(s, state, options, workspace, kept, error);
    if (status == TB_DIVERGED) return tb_state_freeze(state, certificate, error);
    if (status != TB_OK) return status;
    memcpy(s->history, state->history, sizeof s->history);
    s->before = TB_ARENA_ARRAY(s->arena, double, 3 * (size_t)s->world.number_of_bodies);
    if (!s->before) return tb_fail_memory(error, 0, "a planar step");
    for (int32_t i = 0; i < s->world.number_of_bodies; i++)
        memcpy(s->before + 3 * i, s->world.bodies[i].velocity, sizeof s->world.bodies[i].velocity);
    *stepping_of = s;
    return open_solve(s, state, error);
}

struct tb_planar_islands *tb_planar_step_islands(tb_planar_stepping *s)
{
    return s->problem.number_of_rows > 0 ? &s->islands : NULL;
}

tb_status tb_planar_step_end(tb_planar_stepping *s, tb_state *state, tb_certificate *certificate,
                             tb_error *error)
{
    const bool reported = s->options->report_energy;
    tb_status status = finish_solve(s, error);
    if (status != TB_OK) return status;
    certify(s, certificate);
    if (!advance(s)) return tb_state_freeze(state, certificate, error);
    const double work = reported ? contact_work(s) : 0;
    const double energy = reported ? tb_world_energy(state, s->arena) : 0;
    status = remember(s, state, error);
    if (status != TB_OK) return status;
    memcpy(state->past_u, state->u,
           (size_t)state->model->number_of_past_velocities * sizeof *state->past_u);
    for (int32_t i = 0; i < s->world.number_of_bodies; i++) {
        tb_planar_coordinates(state->model, &s->world.bodies[i], state->q);
        tb_planar_dofs(&s->world.bodies[i], state->u);
    }
    memcpy(state->history, s->history, sizeof s->history);
    state->steps++;
    state->time += s->dt;
    certificate->step = state->steps;
    certificate->time = state->time;
    if (reported) {
        certificate->energy = tb_world_energy(state, s->arena);
        certificate->energy_change = certificate->energy - energy;
        certificate->energy_friction = work;
        certificate->energy_unexplained = certificate->energy_change - work;
    }
    state->certificate = *certificate;
    return TB_OK;
}

tb_status tb_planar_step(tb_state *state, const tb_step_options *options, tb_workspace *workspace,
                         tb_planar_kept *kept, tb_certificate *certificate, tb_error *error)
{
    stepping *s = NULL;
    tb_status status =
        tb_planar_step_begin(state, options, workspace, kept, certificate, &s, error);
    if (status != TB_OK) return status;
    if (tb_planar_step_islands(s))
        status = tb_planar_islands_solve(&s->islands, s->threads, s->arena);
    if (status != TB_OK) return tb_fail_memory(error, 0, "the islands of a step");
    return tb_planar_step_end(s, state, certificate, error);
}

tb_status tb_planar_export(const tb_state *state, const tb_step_options *options,
                           tb_workspace *workspace, const char *path, tb_error *error)
{
    stepping s;
    tb_planar_kept kept = {0};
    tb_arena_reset(&workspace->arena);
    tb_status status = prepare(&s, state, options, workspace, &kept, error);
    if (status == TB_DIVERGED)
        tb_fail(error, status, "the world has diverged");
    else if (status == TB_OK)
        status = tb_problem_write(&s.problem, path, error);
    tb_planar_kept_destroy(&kept);
    return status;
}
