/* Contact and friction impulses of a substep by staggered projections with SCHURPA (Litven, algorithm
 * 4.2), or on the exact cone.
 *
 * (C) min 1/2 a'H^C a + a'(J'M^-1(f* + T b) + u), a >= 0, with u = g/dt where the gap g is open: a contact
 *     may close within the substep and no further. Where bodies overlap by more than a hundredth of a
 *     cell, u = g/T pushes them apart in the time T that a wave of the slower body takes to cross ten
 *     cells.
 * (F) min 1/2 b'H^F b + b'T'M^-1(f* + J a), |b1| + |b2| <= mu a a cell; only cells with an impulse take
 *     part: with mu a = 0 the facets are dependent.
 *
 * Each program is factored at its first working set and keeps the factorization for the projections of
 * the substep, as long as the same cells have impulses. The impulses of the last substep, recalled by
 * their cells, and sweeps over single contacts give the first working sets (warm/sweeps.c).
 *
 * A program that a card does not take, or does not solve to the tolerance, is solved on the processor from
 * the same set, and counted (tb_soft_program_counts.fallbacks). */
#include <string.h>

#include "contact/contact.h"
#include "grid/card/counts.h"
#include "grid/card/steps.h"
#include "grid/nodes/projections.h"
#include "grid/programs.h"
#include "solve/solve.h"

/* One of the two programs. */
typedef struct program {
    tb_qp_program qp;
    const int32_t *number; /* contacts: place in the program or -1 */
    int32_t columns;       /* of a contact */
    tb_qp_options options;
    tb_qp_solver *solver; /* where the options ask for it; NULL: a card does not take the program */
    tb_qp_solver *processor; /* what a card leaves; NULL: nothing yet */
    uint8_t *active, *first; /* rows: last working set, and the first one */
    uint8_t *given;          /* rows: the set that a solve begins with */
    double *x, *lambda, *f, *b;
    tb_soft_program_counts *counts;
} program;

typedef struct projections {
    tb_soft_world *w;
    tb_soft_links links;
    double dt;
    program normal, tangential;
    int32_t *identity;                 /* contacts: their own numbers */
    int32_t *number;                   /* contacts: place in the friction program or -1 */
    int32_t sliding;                   /* cells of that program */
    double *base;                      /* contacts x 3: relative velocities without impulses */
    double *slip;                      /* contacts x 3 */
    double *gap_velocity;              /* contacts, m/s: u of (C) */
    double *old_impulse, *new_impulse; /* places x 3, of friction */
    tb_soft_certificate *c;
    tb_error *error;
} projections;

/* ---- programs ---- */

static bool on_card(const program *q)
{
    return q->options.backend != TB_BACKEND_CPU;
}

static bool is_open(const program *q)
{
    return q->solver != NULL || q->processor != NULL;
}

/* H in the host's memory. */
static tb_status make_hessian(projections *p, program *q)
{
    double *band = NULL;
    const tb_status status = tb_soft_links_hessian(p->w, &p->links, q->number, q->columns,
                                                   q->qp.half_bandwidth, &band, p->error);
    q->qp.hessian = band;
    return status;
}

static tb_status open_on_processor(projections *p, program *q)
{
    tb_qp_options options = q->options;
    options.backend = TB_BACKEND_CPU;
    if (q->qp.hessian == NULL) {
        const tb_status status = make_hessian(p, q);
        if (status != TB_OK) return status;
    }
    return tb_qp_solver_open(&q->qp, &options, &q->processor, p->error);
}

tb_qp_options tb_soft_program_options(const tb_soft_world *w)
{
    const tb_soft_options *o = &w->scene.options;
    tb_qp_options options = tb_qp_defaults();
    options.method = o->contact == TB_SOFT_DIRECT ? TB_QP_PDAS : TB_QP_SCHURPA;
    options.backend = o->programs;
    options.device = o->device;
    options.tolerance = TB_SOFT_PROGRAM_TOLERANCE;
    options.maximum_solves = o->maximum_solves;
    return options;
}

static tb_status open_program(projections *p, program *q, int32_t n, const int32_t *number,
                              int32_t columns)
{
    tb_arena *arena = &p->w->step;
    const bool facets = columns == 2;
    const int32_t rows = facets ? 2 * n : n, entries = facets ? 2 * rows : rows;
    tb_soft_program_counts *counts = q->counts;
    *q = (program){.counts = counts,
                   .number = number,
                   .columns = columns,
                   .options = tb_soft_program_options(p->w)};
    int32_t *start = TB_ARENA_ARRAY(arena, int32_t, rows + 1);
    int32_t *column = TB_ARENA_ARRAY(arena, int32_t, entries);
    double *value = TB_ARENA_ARRAY(arena, double, entries);
    q->active = TB_ARENA_ZEROED(arena, uint8_t, rows);
    q->first = TB_ARENA_ZEROED(arena, uint8_t, rows);
    q->given = TB_ARENA_ZEROED(arena, uint8_t, rows);
    q->x = TB_ARENA_ZEROED(arena, double, n);
    q->f = TB_ARENA_ZEROED(arena, double, n);
    q->b = TB_ARENA_ZEROED(arena, double, rows);
    q->lambda = TB_ARENA_ZEROED(arena, double, rows);
    if (start == NULL || column == NULL || value == NULL || q->active == NULL || q->first == NULL ||
        q->given == NULL || q->x == NULL || q->f == NULL || q->b == NULL || q->lambda == NULL)
        return tb_fail_memory(p->error, 0, "a program of contacts");
    for (int32_t r = 0; r < rows; r++) {
        if (!facets) {
            start[r] = r, column[r] = r, value[r] = -1;
            continue;
        }
        static const double FACETS[4][2] = {{1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
        start[r] = 2 * r;
        for (int k = 0; k < 2; k++) {
            column[2 * r + k] = 2 * (r / 4) + k;
            value[2 * r + k] = FACETS[r % 4][k];
        }
    }
    start[rows] = entries;
    q->qp =
        (tb_qp_program){.n = n,
                        .half_bandwidth = tb_soft_links_half_bandwidth(&p->links, number, columns),
                        .f = q->f,
                        .constraints = rows,
                        .row_start = start,
                        .column = column,
                        .value = value,
                        .b = q->b};
    tb_soft_count_program(counts, n, q->qp.half_bandwidth);
    tb_status status = TB_OK;
    if (on_card(q) && p->w->card != NULL) {
        tb_qp_card_program card = {.program = q->qp, .room = &p->w->card->rooms[columns - 1]};
        status = tb_soft_card_make_hessian(p->w, p->links.contacts, p->links.count, number, columns,
                                           &card, NULL, p->error);
        if (status == TB_OK)
            status = tb_qp_solver_open_on_card(&card, &q->options, &q->solver, p->error);
    } else {
        status = make_hessian(p, q);
        if (status == TB_OK) status = tb_qp_solver_open(&q->qp, &q->options, &q->solver, p->error);
    }
    /* a program that is too large for the card is the processor's */
    if (on_card(q) && (status == TB_UNSUPPORTED || status == TB_RESOURCE_EXHAUSTED))
        return open_on_processor(p, q);
    return status;
}

static void count_solve(program *q, const tb_qp_result *r)
{
    tb_soft_count_solve(q->counts, q->qp.n, q->qp.half_bandwidth, r);
}

/* The same solve on the processor, from the same set. */
static tb_status solve_on_processor(projections *p, program *q, tb_qp_result *r)
{
    tb_status status = q->processor == NULL ? open_on_processor(p, q) : TB_OK;
    q->counts->fallbacks++;
    memcpy(q->active, q->given, (size_t)q->qp.constraints);
    if (status == TB_OK)
        status =
            tb_qp_solver_solve(q->processor, q->f, q->b, q->active, q->x, q->lambda, r, p->error);
    if (status == TB_OK) count_solve(q, r);
    return status;
}

static tb_status solve_program(projections *p, program *q)
{
    tb_qp_result r = {.status = TB_NOT_CONVERGED};
    tb_status status = TB_OK;
    memcpy(q->given, q->active, (size_t)q->qp.constraints);
    if (q->solver != NULL) {
        status =
            tb_qp_solver_solve(q->solver, q->f, q->b, q->active, q->x, q->lambda, &r, p->error);
        if (status == TB_OK) count_solve(q, &r);
    }
    const bool unsolved =
        status == TB_FAILED_PRECONDITION ||
        (status == TB_OK && (r.status != TB_OK || !(r.kkt.relative <= TB_SOFT_PROGRAM_TOLERANCE)));
    if (on_card(q) && unsolved) {
        if (q->solver != NULL) tb_qp_solver_forget(q->solver);
        status = solve_on_processor(p, q, &r);
    }
    if (status != TB_OK) return status;
    q->counts->residual = tb_max(q->counts->residual, r.kkt.relative);
    if (r.status != TB_OK) p->c->status = r.status;
    return TB_OK;
}

/* Closes the program and counts how good its first set was. */
static void close_program(program *q)
{
    if (!is_open(q)) return;
    int32_t active = 0, warm = 0;
    for (int32_t i = 0; i < q->qp.constraints; i++) {
        active += q->active[i] != 0;
        warm += q->active[i] != 0 && q->first[i] != 0;
    }
    tb_soft_count_sets(q->counts, q->qp.n, active, warm);
    tb_qp_solver_close(q->solver);
    tb_qp_solver_close(q->processor);
    q->solver = q->processor = NULL;
}

/* ---- working sets ---- */

/* Contacts that were there in the last substep start from its impulses, and, where no sweep replaces them,
 * from its sets. */
static void recall(const tb_soft_world *w, tb_soft_contact *contacts, int32_t count)
{
    const tb_soft_first_sets sets = w->scene.options.first_sets;
    int32_t old = 0;
    for (int32_t i = 0; i < count && sets != TB_SOFT_SETS_EMPTY; i++) {
        while (old < w->number_of_contacts && w->contacts[old].key < contacts[i].key) old++;
        if (old == w->number_of_contacts || w->contacts[old].key != contacts[i].key) continue;
        contacts[i].alpha = w->contacts[old].alpha;
        contacts[i].beta[0] = w->contacts[old].beta[0];
        contacts[i].beta[1] = w->contacts[old].beta[1];
        if (sets == TB_SOFT_SETS_RECALLED) contacts[i].active = w->contacts[old].active;
    }
}

/* Keeps the contacts for the next substep. */
static tb_status remember(tb_soft_world *w, const tb_soft_contact *contacts, int32_t count,
                          tb_error *error)
{
    if (w->card != NULL) w->card->contacts_there = false;
    w->number_of_contacts = 0;
    tb_arena_reset(&w->history);
    w->contacts = TB_ARENA_ARRAY(&w->history, tb_soft_contact, count);
    if (w->contacts == NULL) return tb_fail_memory(error, 0, "contacts of a substep");
    if (count > 0) memcpy(w->contacts, contacts, (size_t)count * sizeof *contacts);
    w->number_of_contacts = count;
    return TB_OK;
}

/* ---- projections ---- */

/* u of (C) */
static double gap_velocity(const tb_soft_world *w, const tb_soft_contact *c, double dt)
{
    const double *h = w->scene.lattice.spacing, least = tb_min(h[0], tb_min(h[1], h[2]));
    double rate = 1e300;
    for (int side = 0; side < 2; side++) {
        const int32_t who = side == 0 ? c->a : c->b;
        if (who < w->scene.number_of_bodies)
            rate = tb_min(rate, tb_soft_push_rate(w->fields[who].stiffness,
                                                  w->scene.bodies[who].material.density, least));
    }
    return tb_soft_gap_velocity(c->gap, dt, least, rate);
}

/* J: the most by which pushing overlaps apart raises the kinetic energy. At the solution of (C) the
 * impulses change it by -1/2 a'H^C a - a'u, and friction lowers it. */
static double pushed_energy(const projections *p)
{
    tb_soft_run_sum sum = {0};
    for (int32_t i = 0; i < p->links.count; i++)
        tb_soft_run_add(&sum, i, tb_soft_pushed(p->links.contacts[i].alpha, p->gap_velocity[i]));
    return tb_soft_run_end(&sum);
}

/* Impulses and working sets by sweeps. Where overlaps would be given too much energy, all of them are
 * pushed apart more slowly by one factor: a'u grows with u, so the sum falls at least by this factor. */
static tb_status sweep(projections *p)
{
    tb_status status = tb_soft_links_sweep(p->w, &p->links, p->base, p->gap_velocity, p->error);
    const double pushed = pushed_energy(p), most = TB_SOFT_MOST_PUSHED_ENERGY * p->w->energy;
    if (status != TB_OK || pushed <= most) return status;
    for (int32_t i = 0; i < p->links.count; i++)
        if (p->gap_velocity[i] < 0) p->gap_velocity[i] *= most / pushed;
    return tb_soft_links_sweep(p->w, &p->links, p->base, p->gap_velocity, p->error);
}

/* Impulses and working sets to begin with. Sets that are not swept begin the same programs: sweeps say how
 * fast overlaps are pushed apart, and what they found is dropped. */
static tb_status begin(projections *p)
{
    const int32_t n = p->links.count;
    if (p->w->scene.options.first_sets == TB_SOFT_SETS_SWEPT) return sweep(p);
    tb_soft_contact *recalled = TB_ARENA_ARRAY(&p->w->step, tb_soft_contact, n);
    if (recalled == NULL) return tb_fail_memory(p->error, 0, "contacts of a substep");
    memcpy(recalled, p->links.contacts, (size_t)n * sizeof *recalled);
    const tb_status status = sweep(p);
    memcpy(p->links.contacts, recalled, (size_t)n * sizeof *recalled);
    return status;
}

/* Relative velocities with the impulses of one kind. */
static void slip_with(projections *p, bool normal, bool tangential)
{
    memcpy(p->slip, p->base, 3 * (size_t)p->links.count * sizeof(double));
    tb_soft_links_impulses(&p->links, normal, tangential, p->links.impulse);
    tb_soft_links_respond(&p->links, p->links.impulse, p->slip);
}

static tb_status solve_normal(projections *p)
{
    tb_soft_contact *contacts = p->links.contacts;
    slip_with(p, false, true);
    for (int32_t i = 0; i < p->links.count; i++)
        p->normal.f[i] = p->slip[3 * i] + p->gap_velocity[i];
    const tb_status status = solve_program(p, &p->normal);
    for (int32_t i = 0; status == TB_OK && i < p->links.count; i++) {
        contacts[i].alpha = tb_max(p->normal.x[i], 0.0);
        contacts[i].active = (uint8_t)((contacts[i].active & ~1u) | (p->normal.active[i] != 0));
    }
    return status;
}

/* Opens the friction program for the cells that have an impulse now, if they are others than before. */
static tb_status choose_cells(projections *p)
{
    tb_soft_contact *contacts = p->links.contacts;
    double largest = 0;
    int32_t n = 0;
    bool same = is_open(&p->tangential);
    for (int32_t i = 0; i < p->links.count; i++) largest = tb_max(largest, contacts[i].alpha);
    for (int32_t i = 0; i < p->links.count; i++) {
        const bool has = contacts[i].alpha > TB_SOFT_SMALLEST_IMPULSE * largest;
        same = same && has == (p->number[i] >= 0);
        p->number[i] = has ? n++ : -1;
        if (!has) contacts[i].beta[0] = contacts[i].beta[1] = 0;
    }
    if (same) return TB_OK;
    close_program(&p->tangential);
    p->sliding = n;
    if (n == 0) return TB_OK;
    const tb_status status = open_program(p, &p->tangential, 2 * n, p->number, 2);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < p->links.count; i++)
        for (int k = 0; k < 4 && p->number[i] >= 0; k++)
            p->tangential.first[4 * p->number[i] + k] = contacts[i].active >> (1 + k) & 1;
    memcpy(p->tangential.active, p->tangential.first, 4 * (size_t)n);
    return TB_OK;
}

static tb_status solve_tangential(projections *p)
{
    tb_soft_contact *contacts = p->links.contacts;
    const double mu = p->w->scene.options.friction;
    tb_status status = choose_cells(p);
    if (status != TB_OK || p->sliding == 0) return status;
    slip_with(p, true, false);
    for (int32_t i = 0; i < p->links.count; i++) {
        const int32_t at = p->number[i];
        if (at < 0) continue;
        for (int k = 0; k < 2; k++) p->tangential.f[2 * at + k] = p->slip[3 * i + 1 + k];
        for (int k = 0; k < 4; k++) p->tangential.b[4 * at + k] = mu * contacts[i].alpha;
    }
    status = solve_program(p, &p->tangential);
    for (int32_t i = 0; status == TB_OK && i < p->links.count; i++) {
        const int32_t at = p->number[i];
        contacts[i].active &= 1;
        if (at < 0) continue;
        for (int k = 0; k < 2; k++) contacts[i].beta[k] = p->tangential.x[2 * at + k];
        for (int k = 0; k < 4; k++)
            if (p->tangential.active[4 * at + k]) contacts[i].active |= (uint8_t)(2u << k);
    }
    return status;
}

/* Alternates until the friction impulses no longer change (Litven 4.19, with the larger of both as
 * the size). */
static tb_status project(projections *p)
{
    const tb_soft_options *o = &p->w->scene.options;
    double *swap;
    tb_status status = open_program(p, &p->normal, p->links.count, p->identity, 1);
    for (int32_t i = 0; status == TB_OK && i < p->links.count; i++)
        p->normal.active[i] = p->normal.first[i] = p->links.contacts[i].active & 1;
    tb_soft_links_impulses(&p->links, false, true, p->old_impulse);
    for (int32_t s = 1; status == TB_OK; s++) {
        status = solve_normal(p);
        if (status == TB_OK && o->friction > 0) status = solve_tangential(p);
        if (status != TB_OK) break;
        p->c->projections = s > p->c->projections ? s : p->c->projections;
        tb_soft_links_impulses(&p->links, false, true, p->new_impulse);
        const double size =
            tb_max(tb_soft_links_product(&p->links, p->old_impulse, p->old_impulse),
                   tb_soft_links_product(&p->links, p->new_impulse, p->new_impulse));
        for (int32_t i = 0; i < 3 * p->links.places; i++) p->old_impulse[i] -= p->new_impulse[i];
        const double change = tb_soft_links_product(&p->links, p->old_impulse, p->old_impulse);
        if (change <= o->tolerance * size) break;
        if (s == o->most_projections) {
            p->c->status = TB_NOT_CONVERGED;
            break;
        }
        swap = p->old_impulse;
        p->old_impulse = p->new_impulse;
        p->new_impulse = swap;
    }
    close_program(&p->normal);
    close_program(&p->tangential);
    return status;
}

/* ---- the exact cone ---- */

/* The problem of the library's solvers: rows of M^-1/2 W, a block a contact. */
static tb_status exact_problem(projections *p, tb_problem *problem)
{
    tb_arena *arena = &p->w->step;
    const tb_soft_links *l = &p->links;
    const int32_t n = l->count;
    tb_block *blocks = TB_ARENA_ZEROED(arena, tb_block, n);
    tb_segment *segments = TB_ARENA_ZEROED(arena, tb_segment, l->number_of_entries);
    double *values = TB_ARENA_ZEROED(arena, double, 9 * (size_t)l->number_of_entries);
    double *c = TB_ARENA_ZEROED(arena, double, 3 * (size_t)n);
    if (blocks == NULL || segments == NULL || values == NULL || c == NULL)
        return tb_fail_memory(p->error, 0, "the problem of the exact cone");
    for (int32_t e = 0; e < l->number_of_entries; e++) blocks[l->entries[e].contact].segments++;
    int32_t segment = 0;
    for (int32_t i = 0; i < n; i++) {
        tb_block *b = blocks + i;
        b->law = TB_LAW_COULOMB;
        b->row = 3 * i, b->rows = 3;
        b->mu = p->w->scene.options.friction;
        b->segment = segment, b->value = 9 * (int64_t)segment;
        segment += b->segments;
        c[3 * i] = p->base[3 * i] + p->gap_velocity[i];
        c[3 * i + 1] = p->base[3 * i + 1], c[3 * i + 2] = p->base[3 * i + 2];
    }
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *x = l->entries + e;
        const tb_soft_contact *t = l->contacts + x->contact;
        tb_block *b = blocks + x->contact;
        const double scale = sqrt(l->inverse_mass[x->place]);
        const int32_t all = 3 * b->segments;
        segments[b->segment + b->width / 3] = (tb_segment){3 * x->place, 3};
        for (int k = 0; k < 3; k++) {
            double row[3];
            tb_soft_entry_row(x, k == 0 ? t->normal : t->tangent[k - 1], row);
            for (int a = 0; a < 3; a++) values[b->value + k * all + b->width + a] = scale * row[a];
        }
        b->width += 3;
    }
    *problem = (tb_problem){.number_of_blocks = n,
                            .number_of_rows = 3 * n,
                            .number_of_dofs = 3 * l->places,
                            .blocks = blocks,
                            .segments = segments,
                            .values = values,
                            .c = c};
    return TB_OK;
}

static tb_status solve_exactly(projections *p)
{
    tb_arena *arena = &p->w->step;
    const int32_t n = p->links.count;
    tb_problem problem;
    tb_status status = exact_problem(p, &problem);
    double *start = TB_ARENA_ZEROED(arena, double, 3 * (size_t)n);
    tb_solution s = {.lambda = TB_ARENA_ZEROED(arena, double, 3 * (size_t)n),
                     .xi = TB_ARENA_ZEROED(arena, double, 3 * (size_t)n),
                     .statuses = TB_ARENA_ZEROED(arena, uint8_t, n)};
    if (status == TB_OK &&
        (start == NULL || s.lambda == NULL || s.xi == NULL || s.statuses == NULL))
        status = tb_fail_memory(p->error, 0, "impulses of the exact cone");
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < n; i++) {
        start[3 * i] = p->links.contacts[i].alpha;
        for (int k = 0; k < 2; k++) start[3 * i + 1 + k] = p->links.contacts[i].beta[k];
    }
    tb_solve_options options = tb_solve_defaults();
    tb_warm_start warm = {.lambda = start, .scratch = arena};
    status = tb_solve_newton(&problem, &options, &warm, &s);
    if (status != TB_OK) return tb_fail(p->error, status, "newton cannot solve the contacts");
    if (s.status != TB_OK) p->c->status = s.status;
    for (int32_t i = 0; i < n; i++) {
        p->links.contacts[i].alpha = s.lambda[3 * i];
        for (int k = 0; k < 2; k++) p->links.contacts[i].beta[k] = s.lambda[3 * i + 1 + k];
    }
    p->c->projections = s.iterations > p->c->projections ? s.iterations : p->c->projections;
    return TB_OK;
}

/* ---- the result ---- */

/* Largest distance (N s) of a contact's impulses from Coulomb's law with the circular cone. */
static double cone_error(projections *p)
{
    const tb_soft_links *l = &p->links;
    double *diagonal = l->part, worst = 0;
    slip_with(p, true, true);
    memset(diagonal, 0, (size_t)l->count * sizeof *diagonal);
    for (int32_t e = 0; e < l->number_of_entries; e++) {
        const tb_soft_entry *x = l->entries + e;
        double row[3];
        tb_soft_entry_row(x, l->contacts[x->contact].normal, row);
        diagonal[x->contact] += l->inverse_mass[x->place] * tb_soft_dot(row, row);
    }
    for (int32_t i = 0; i < l->count; i++)
        worst =
            tb_max(worst, tb_soft_cone_distance(l->contacts + i, diagonal[i], p->slip + 3 * i,
                                                p->gap_velocity[i], p->w->scene.options.friction));
    return worst;
}

/* Clamps that hold the corners' nodes of a contact. */
static void held_corners(const tb_soft_world *w, const tb_soft_contact *c, uint8_t held[2][8])
{
    for (int side = 0; side < 2; side++) {
        const int32_t who = side == 0 ? c->a : c->b;
        const bool any = who < w->scene.number_of_bodies && w->fields[who].held != NULL;
        for (int k = 0; k < 8; k++)
            held[side][k] = any ? w->fields[who].held[tb_soft_corner(w, c->cell, k)] : 0;
    }
}

/* Rigid bodies get the impulses of the contacts. */
static void push_rigid(tb_soft_world *w, const tb_soft_links *l)
{
    int32_t followed[TB_SOFT_MOST_BODIES];
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++)
        followed[c] = w->scene.clamps[c].rigid - 1;
    for (int32_t r = 0; r < w->number_of_rigid; r++) {
        tb_soft_run_sum sum[6] = {{0}};
        for (int32_t i = 0; i < l->count; i++) {
            const tb_soft_contact *c = l->contacts + i;
            const int32_t wall = c->b - w->scene.number_of_bodies;
            uint8_t held[2][8];
            double wrench[6];
            held_corners(w, c, held);
            tb_soft_contact_wrench(&w->space, c, held[0], followed,
                                   wall < 0 ? -1 : w->scene.obstacles[wall].rigid - 1, r,
                                   w->rigid[r].centre, wrench);
            for (int k = 0; k < 6; k++) tb_soft_run_add(&sum[k], i, wrench[k]);
        }
        for (int k = 0; k < 6; k++) w->rigid[r].impulse[k] += tb_soft_run_end(&sum[k]);
    }
}

static bool is_free(const tb_soft_world *w, int32_t who)
{
    return who < w->scene.number_of_bodies && w->fields[who].held == NULL;
}

/* Adds the impulses to the nodes' velocities. */
static void apply(projections *p)
{
    const tb_soft_links *l = &p->links;
    tb_soft_run_sum external[3] = {{0}};
    tb_soft_links_impulses(l, true, true, l->impulse);
    memset(l->part, 0, (size_t)l->count * sizeof *l->part);
    for (int32_t d = 0; d < l->places; d++)
        for (int a = 0; a < 3; a++) {
            const double impulse = l->impulse[3 * d + a], step = impulse * l->inverse_mass[d];
            if (d < l->soft_places)
                l->part[l->entries[l->first[d]].contact] +=
                    impulse * (l->velocity[d][a] + 0.5 * step);
            l->velocity[d][a] += step;
        }
    p->c->contact_work += tb_soft_links_sum(l);
    push_rigid(p->w, l);
    for (int32_t i = 0; i < l->count; i++) {
        const tb_soft_contact *c = l->contacts + i;
        const bool free_a = is_free(p->w, c->a), free_b = is_free(p->w, c->b);
        p->c->penetration = tb_max(p->c->penetration, -c->gap);
        double impulse[3];
        tb_soft_contact_impulse(c, true, true, impulse);
        for (int a = 0; a < 3; a++)
            tb_soft_run_add(&external[a], i, tb_soft_external(free_a, free_b, impulse[a]));
    }
    for (int a = 0; a < 3; a++) p->w->external[a] += tb_soft_run_end(&external[a]);
}

/* The velocities that have changed, to the card that has the fields. */
static tb_status push_velocities(tb_soft_world *w, const tb_soft_links *l, tb_error *error)
{
    tb_soft_card_push *push = TB_ARENA_ARRAY(&w->step, tb_soft_card_push, l->soft_places);
    if (push == NULL) return tb_fail_memory(error, 0, "velocities of a substep");
    for (int32_t d = 0; d < l->soft_places; d++) {
        const uint64_t key = l->entries[l->first[d]].key;
        push[d].body = (int32_t)(key / w->nodes);
        push[d].node = (int32_t)(key % w->nodes);
        memcpy(push[d].v, l->velocity[d], sizeof push[d].v);
    }
    return tb_soft_card_push_velocities(w, push, l->soft_places, error);
}

/* Makes the links of the contacts that impulses can change; the others are left out of the list. */
static tb_status link_contacts(tb_soft_world *w, tb_soft_contact *contacts, int32_t *count,
                               tb_soft_links *links, tb_error *error)
{
    tb_status status = tb_soft_links_make(w, contacts, *count, links, error);
    if (status != TB_OK) return status;
    double *mobility = TB_ARENA_ARRAY(&w->step, double, 3 * (size_t)*count);
    if (mobility == NULL) return tb_fail_memory(error, 0, "contacts of a substep");
    tb_soft_links_mobility(links, mobility);
    int32_t kept = 0;
    for (int32_t i = 0; i < *count; i++)
        if (tb_soft_moves(mobility + 3 * i)) contacts[kept++] = contacts[i];
    if (kept == *count) return TB_OK;
    *count = kept;
    return tb_soft_links_make(w, contacts, kept, links, error);
}

tb_status tb_soft_solve_contacts(tb_soft_world *w, double dt, tb_soft_contact *contacts,
                                 int32_t count, tb_soft_certificate *c, tb_error *error)
{
    projections p = {.w = w, .dt = dt, .c = c, .error = error};
    tb_status status = TB_OK;
    if (count > 0) {
        recall(w, contacts, count);
        status = link_contacts(w, contacts, &count, &p.links, error);
        if (status != TB_OK) return status;
    }
    if (count > 0) {
        p.base = p.links.slip;
        p.slip = TB_ARENA_ARRAY(&w->step, double, 3 * (size_t)count);
        p.gap_velocity = TB_ARENA_ARRAY(&w->step, double, count);
        p.identity = TB_ARENA_ARRAY(&w->step, int32_t, count);
        p.number = TB_ARENA_ARRAY(&w->step, int32_t, count);
        p.old_impulse = TB_ARENA_ARRAY(&w->step, double, 3 * (size_t)p.links.places);
        p.new_impulse = TB_ARENA_ARRAY(&w->step, double, 3 * (size_t)p.links.places);
        if (p.slip == NULL || p.gap_velocity == NULL || p.identity == NULL || p.number == NULL ||
            p.old_impulse == NULL || p.new_impulse == NULL)
            return tb_fail_memory(error, 0, "contacts of a substep");
        for (int32_t i = 0; i < count; i++) {
            p.identity[i] = i;
            p.number[i] = -1;
            p.gap_velocity[i] = gap_velocity(w, contacts + i, dt);
        }
        p.normal.counts = &c->normal;
        p.tangential.counts = &c->tangential;
        tb_soft_links_slip(w, &p.links, p.base);
        status = begin(&p);
        if (status == TB_OK)
            status = w->scene.options.contact == TB_SOFT_NEWTON ? solve_exactly(&p) : project(&p);
        if (status != TB_OK) return status;
        c->pushed += pushed_energy(&p);
        c->cone_error = tb_max(c->cone_error, cone_error(&p));
        apply(&p);
        if (w->card != NULL) status = push_velocities(w, &p.links, error);
        if (status != TB_OK) return status;
    }
    return remember(w, contacts, count, error);
}
