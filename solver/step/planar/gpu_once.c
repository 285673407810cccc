/* Planar worlds whose contacts a GPU solves: the halves of a step run on the processor's threads,
 * and between them the sweeps of all islands of all worlds go to the GPU at once (Betz 3.4, where
 * collision detection stays on the processor too). Impulses are those of the processor's
 * prox_serial, prox_cuda and mprgp to the byte: both add in the same order. */
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/error.h"
#include "solve/planar/betz_batch.h"
#include "solve/planar/mprgp_run.h"
#include "step/planar/islands.h"

/* One world of the batch, in the present step. */
typedef struct planar_batch_world {
    tb_state *state;
    const tb_course *course; /* or NULL */
    tb_workspace workspace;
    tb_planar_kept kept;
    tb_planar_stepping *stepping; /* NULL: it has ended or failed */
    tb_planar_islands *islands;   /* NULL: no contacts */
    int32_t first_island;         /* in the arrays of all worlds */
    tb_certificate certificate, merged;
    tb_status status;
    tb_error error;
} planar_batch_world;

/* One island of one world. */
typedef struct planar_solve {
    planar_batch_world *world;
    int32_t island, row; /* island of the world; first row in `p` */
    tb_problem problem;
    tb_betz_run run;
    tb_mprgp_lists lists; /* of mprgp */
    tb_status status;
} planar_solve;

typedef struct planar_context {
    const tb_backend *gpu;
    void *card;
    const tb_step_options *options; /* of the call */
    int32_t wanted, threads;
    planar_batch_world *batch_worlds; /* capacity */
    int32_t capacity, worlds;
    int32_t step;   /* of the call */
    tb_arena arena; /* of a step's arrays of all worlds */
    planar_solve *solves;
    tb_arena *scratch; /* solves: each one's own */
    int32_t number_of_solves, scratch_capacity;
    tb_betz_batch batch;
} planar_context;

/* ---- the context ---- */

static void destroy(void *context)
{
    planar_context *c = context;
    for (int32_t i = 0; i < c->capacity; i++) {
        tb_arena_destroy(&c->batch_worlds[i].workspace.arena);
        tb_planar_kept_destroy(&c->batch_worlds[i].kept);
    }
    for (int32_t i = 0; i < c->scratch_capacity; i++) tb_arena_destroy(&c->scratch[i]);
    tb_arena_destroy(&c->arena);
    if (c->card) c->gpu->planar_close(c->card);
    free(c->batch_worlds);
    free(c->scratch);
    free(c);
}

static bool is_serial(const tb_step_options *options)
{
    return strcmp(options->solve.solver, "prox_serial") == 0;
}

static bool is_mprgp(const tb_step_options *options)
{
    return strcmp(options->solve.solver, "mprgp") == 0;
}

static tb_status check(const tb_step_options *options, tb_error *error)
{
    const char *solver = options->solve.solver;
    if (!is_serial(options) && !is_mprgp(options) && strcmp(solver, "prox_cuda") != 0)
        return tb_fail_field(error, TB_UNSUPPORTED, "solve.solver",
                             "solver '%s' does not run on the GPU under the planar scheme: "
                             "mprgp, prox_serial and prox_cuda do",
                             solver);
    if (options->solve.r_strategy == TB_R_GAUSS_SEIDEL)
        return tb_fail_field(error, TB_UNSUPPORTED, "solve.r_strategy",
                             "r of Gauss-Seidel goes contact by contact: not on the GPU");
    return TB_OK;
}

static tb_status create(const tb_step_options *options, void **context, tb_error *error)
{
    const tb_backend *gpu = NULL;
    tb_status status = check(options, error);
    if (status == TB_OK) status = tb_backend_find(TB_BACKEND_GPU, &gpu, error);
    if (status != TB_OK) return status;
    if (!gpu->planar_open)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend", "backend '%s' has no planar sweeps",
                             gpu->name);
    planar_context *c = calloc(1, sizeof *c);
    if (!c) return tb_fail_memory(error, sizeof *c, "the planar GPU backend");
    c->gpu = gpu;
    c->wanted = options->threads;
    c->threads = tb_parallel_threads(options->threads);
    tb_arena_init(&c->arena, 0);
    status = gpu->planar_open(options->device, &c->card, error);
    if (status != TB_OK) {
        destroy(c);
        return status;
    }
    *context = c;
    return TB_OK;
}

static void measure(const void *context, tb_stepper_use *use)
{
    const planar_context *c = context;
    use->host_bytes += c->arena.capacity;
    use->allocations += c->arena.allocations;
    for (int32_t i = 0; i < c->capacity; i++) {
        const planar_batch_world *g = &c->batch_worlds[i];
        use->host_bytes += g->workspace.arena.capacity + g->kept.arena.capacity;
        use->allocations += g->workspace.arena.allocations + g->kept.arena.allocations;
    }
}

static tb_status reserve_worlds(planar_context *c, int32_t worlds, tb_error *error)
{
    if (worlds <= c->capacity) return TB_OK;
    const size_t bytes = (size_t)worlds * sizeof *c->batch_worlds;
    planar_batch_world *grown = realloc(c->batch_worlds, bytes);
    if (!grown) return tb_fail_memory(error, bytes, "a batch");
    memset(grown + c->capacity, 0, (size_t)(worlds - c->capacity) * sizeof *grown);
    c->batch_worlds = grown;
    c->capacity = worlds;
    return TB_OK;
}

static tb_status reserve_scratch(planar_context *c, int32_t solves, tb_error *error)
{
    if (solves <= c->scratch_capacity) return TB_OK;
    const size_t bytes = (size_t)solves * sizeof *c->scratch;
    tb_arena *grown = realloc(c->scratch, bytes);
    if (!grown) return tb_fail_memory(error, bytes, "the islands of a step");
    for (int32_t i = c->scratch_capacity; i < solves; i++) tb_arena_init(&grown[i], 0);
    c->scratch = grown;
    c->scratch_capacity = solves;
    return TB_OK;
}

/* ---- the halves of a step ---- */

static void begin_world(void *context, int32_t i, int32_t thread)
{
    planar_context *c = context;
    planar_batch_world *g = &c->batch_worlds[i];
    (void)thread;
    g->stepping = NULL;
    g->islands = NULL;
    if (g->status != TB_OK) return;
    if (g->course && c->step >= g->course->steps) return;
    g->workspace.threads = c->worlds == 1 ? c->threads : 1;
    tb_arena_reset(&g->workspace.arena);
    if (g->course)
        g->status = tb_course_apply_inputs(g->state, g->course, c->step, &g->workspace.arena);
    if (g->status != TB_OK) {
        tb_fail_memory(&g->error, 0, "the inputs of a course");
        return;
    }
    tb_planar_stepping *stepping = NULL;
    g->status = tb_planar_step_begin(g->state, c->options, &g->workspace, &g->kept, &g->certificate,
                                     &stepping, &g->error);
    if (g->status == TB_DIVERGED) tb_certificate_merge(&g->merged, &g->certificate);
    if (g->status != TB_OK) return;
    g->stepping = stepping;
    g->islands = tb_planar_step_islands(stepping);
}

static void end_world(void *context, int32_t i, int32_t thread)
{
    planar_context *c = context;
    planar_batch_world *g = &c->batch_worlds[i];
    (void)thread;
    if (!g->stepping) return;
    if (g->islands)
        for (int32_t k = 0; k < g->islands->number_of_islands; k++)
            g->islands->failures[k] = c->solves[g->first_island + k].status;
    g->status = tb_planar_step_end(g->stepping, g->state, &g->certificate, &g->error);
    if (g->course && (g->status == TB_OK || g->status == TB_DIVERGED))
        tb_course_record_outputs(g->state, g->course, c->step, &g->certificate);
    tb_certificate_merge(&g->merged, &g->certificate);
}

/* ---- the sweeps ---- */

static void open_solve(void *context, int32_t i, int32_t thread)
{
    planar_context *c = context;
    planar_solve *s = &c->solves[i];
    tb_planar_islands *islands = s->world->islands;
    tb_warm_start warm = {.scratch = &c->scratch[i]};
    (void)thread;
    tb_arena_reset(&c->scratch[i]);
    tb_planar_island_open(islands, s->island, &s->problem, &warm);
    tb_solution *solution = &islands->solutions[s->island];
    const tb_solve_options *options = &c->options->solve;
    if (c->batch.mprgp)
        s->status = tb_mprgp_open(&s->run, &s->lists, &s->problem, options, &warm, solution);
    else
        s->status = tb_betz_open(&s->run, &s->problem, options, &warm, solution,
                                 is_serial(c->options) ? TB_BETZ_OF_SERIAL : TB_BETZ_OF_CUDA);
    s->run.done = s->status != TB_OK;
}

/* Numbers of a solve in the arrays of a batch whose lengths are not the island's. */
typedef struct planar_lengths {
    int32_t segments, entries, starts;
    int64_t values;
} planar_lengths;

static planar_lengths lengths_of(const planar_solve *s, bool mprgp)
{
    const tb_problem *p = &s->problem;
    if (s->status != TB_OK) return (planar_lengths){0};
    if (mprgp) {
        const int32_t slices = tb_mprgp_slices(p->number_of_dofs);
        return (planar_lengths){.entries = s->lists.slice[slices],
                                .starts = slices + 1,
                                .values = (int64_t)s->lists.width * p->number_of_rows};
    }
    const tb_block *last = &p->blocks[p->number_of_blocks - 1];
    return (planar_lengths){.segments = last->segment + last->segments,
                            .entries = s->run.z.start[p->number_of_dofs],
                            .starts = p->number_of_dofs + 1,
                            .values = last->value + (int64_t)last->rows * last->width};
}

/* Offsets of the island's numbers among those of all. */
static void place_solve(planar_context *c, int32_t i)
{
    tb_betz_batch *b = &c->batch;
    planar_solve *s = &c->solves[i];
    const tb_planar_island *from = &s->world->islands->islands[s->island];
    const planar_lengths own = lengths_of(s, b->mprgp);
    s->row = b->number_of_rows;
    b->islands[i] = (tb_betz_island){.block = b->number_of_blocks,
                                     .blocks = from->blocks,
                                     .row = b->number_of_rows,
                                     .rows = from->rows,
                                     .dof = b->number_of_dofs,
                                     .dofs = from->dofs,
                                     .segment = b->number_of_segments,
                                     .start = b->number_of_dofs + i,
                                     .entry = (int32_t)b->number_of_entries,
                                     .value = b->number_of_values,
                                     .width = s->lists.width};
    b->number_of_blocks += from->blocks;
    b->number_of_rows += from->rows;
    b->number_of_dofs += from->dofs;
    b->number_of_segments += own.segments;
    b->number_of_values += own.values;
    b->number_of_entries += own.entries;
}

static void copy_solve(void *context, int32_t i, int32_t thread)
{
    planar_context *c = context;
    const tb_betz_batch *b = &c->batch;
    const planar_solve *s = &c->solves[i];
    const tb_betz_island *to = &b->islands[i];
    const tb_problem *p = &s->problem;
    (void)thread;
    if (s->status != TB_OK) return;
    const planar_lengths own = lengths_of(s, b->mprgp);
    const size_t entries = (size_t)own.entries, values = (size_t)own.values;
    const size_t starts = (size_t)own.starts;
    memcpy((tb_block *)(uintptr_t)b->blocks + to->block, p->blocks,
           (size_t)to->blocks * sizeof *p->blocks);
    memcpy((double *)(uintptr_t)b->c + to->row, p->c, (size_t)to->rows * sizeof *p->c);
    memcpy((double *)(uintptr_t)b->values + to->value, b->mprgp ? s->lists.of_row : p->values,
           values * sizeof *b->values);
    memcpy((int32_t *)(uintptr_t)b->start + to->start, b->mprgp ? s->lists.slice : s->run.z.start,
           starts * sizeof *b->start);
    memcpy((int32_t *)(uintptr_t)b->row_of + to->entry, b->mprgp ? s->lists.row : s->run.z.row,
           entries * sizeof *b->row_of);
    memcpy((double *)(uintptr_t)b->coefficient + to->entry,
           b->mprgp ? s->lists.of_dof : s->run.z.coefficient, entries * sizeof *b->coefficient);
    if (b->mprgp)
        memcpy((int32_t *)(uintptr_t)b->dof_of + to->value, s->lists.dof,
               values * sizeof *b->dof_of);
    else
        memcpy((tb_segment *)(uintptr_t)b->segments + to->segment, p->segments,
               (size_t)own.segments * sizeof *p->segments);
}

static bool take_arrays(planar_context *c)
{
    tb_betz_batch *b = &c->batch;
    b->blocks = TB_ARENA_ARRAY(&c->arena, tb_block, b->number_of_blocks);
    b->segments = TB_ARENA_ARRAY(&c->arena, tb_segment, b->number_of_segments);
    b->values = TB_ARENA_ARRAY(&c->arena, double, b->number_of_values);
    b->c = TB_ARENA_ARRAY(&c->arena, double, b->number_of_rows);
    b->start = TB_ARENA_ZEROED(&c->arena, int32_t, b->number_of_dofs + b->number_of_islands);
    b->row_of = TB_ARENA_ARRAY(&c->arena, int32_t, b->number_of_entries);
    b->coefficient = TB_ARENA_ARRAY(&c->arena, double, b->number_of_entries);
    b->dof_of = b->mprgp ? TB_ARENA_ARRAY(&c->arena, int32_t, b->number_of_values) : NULL;
    b->p = TB_ARENA_ZEROED(&c->arena, double, b->number_of_rows);
    return b->blocks && b->segments && b->values && b->c && b->start && b->row_of &&
           b->coefficient && b->p && (b->dof_of || !b->mprgp);
}

/* Lists the islands of all worlds, opens their solves, and lays their arrays one behind the
 * other. */
static tb_status gather(planar_context *c, tb_error *error)
{
    tb_arena_reset(&c->arena);
    c->batch = (tb_betz_batch){.mprgp = is_mprgp(c->options)};
    c->number_of_solves = 0;
    for (int32_t i = 0; i < c->worlds; i++) {
        planar_batch_world *g = &c->batch_worlds[i];
        g->first_island = c->number_of_solves;
        if (g->islands) c->number_of_solves += g->islands->number_of_islands;
    }
    const int32_t n = c->number_of_solves;
    tb_status status = reserve_scratch(c, n, error);
    if (status != TB_OK || n == 0) return status;
    c->solves = TB_ARENA_ZEROED(&c->arena, planar_solve, n);
    c->batch.islands = TB_ARENA_ZEROED(&c->arena, tb_betz_island, n);
    c->batch.number_of_islands = n;
    if (!c->solves || !c->batch.islands) return tb_fail_memory(error, 0, "the islands of a step");
    for (int32_t i = 0; i < c->worlds; i++) {
        planar_batch_world *g = &c->batch_worlds[i];
        for (int32_t k = 0; g->islands && k < g->islands->number_of_islands; k++)
            c->solves[g->first_island + k] = (planar_solve){.world = g, .island = k};
    }
    tb_parallel_for(n, 1, c->threads, open_solve, c);
    for (int32_t i = 0; i < n; i++) place_solve(c, i);
    if (c->batch.number_of_entries > INT32_MAX || !take_arrays(c))
        return tb_fail_memory(error, 0, "the contacts of a step");
    tb_parallel_for(n, 1, c->threads, copy_solve, c);
    return TB_OK;
}

/* The island's order for the next call. */
static void order(planar_context *c, int32_t i)
{
    planar_solve *s = &c->solves[i];
    tb_betz_island *to = &c->batch.islands[i];
    const tb_betz_run *run = &s->run;
    const tb_solve_options *o = &c->options->solve;
    to->sweeps = run->done ? 0 : tb_betz_due(run);
    to->omega = run->omega_of_r;
    to->tolerance = run->z.tolerance;
    to->limit = tb_betz_limit(run);
    to->kind = (run->made == 0 ? TB_BETZ_FRESH : 0) | (run->z.freeze ? TB_BETZ_FREEZE : 0) |
               (run->richardson ? TB_BETZ_RICHARDSON : 0) |
               (tb_betz_begins_as_listed(run) ? TB_BETZ_MU_ONE : 0) |
               (o->stop == TB_STOP_ONE_SIDED ? TB_BETZ_ONE_SIDED : 0) |
               (o->as_listed && !run->serial ? TB_BETZ_UNGUARDED : 0) |
               (c->batch.mprgp && tb_mprgp_rubs(&s->problem) ? TB_BETZ_RUBS : 0);
    if (!run->done && run->made == 0)
        memcpy(c->batch.p + s->row, run->z.p, (size_t)to->rows * sizeof(double));
}

static void look(void *context, int32_t i, int32_t thread)
{
    planar_context *c = context;
    planar_solve *s = &c->solves[i];
    const tb_betz_island *from = &c->batch.islands[i];
    (void)thread;
    if (s->run.done) return;
    memcpy(s->run.z.p, c->batch.p + s->row, (size_t)from->rows * sizeof(double));
    const bool over = from->limit > 0 && (from->vote & TB_BETZ_OVER);
    const bool ended = !over && (from->kind & TB_BETZ_ONE_SIDED) && !(from->vote & TB_BETZ_MOVES);
    if (from->vote & TB_BETZ_GAVE_UP) s->run.most = s->run.made + from->made;
    s->status = tb_betz_look(&s->run, from->made, ended, over);
    if (s->status == TB_OK && s->run.done) s->status = tb_betz_close(&s->run);
    if (s->status != TB_OK) s->run.done = true;
}

static tb_status sweep(planar_context *c, tb_error *error)
{
    const tb_solve_options *o = &c->options->solve;
    for (bool fresh = true;; fresh = false) {
        bool busy = false;
        for (int32_t i = 0; i < c->number_of_solves; i++) {
            order(c, i);
            busy = busy || c->batch.islands[i].sweeps > 0;
        }
        if (!busy) return TB_OK;
        if (o->cancelled && o->cancelled(o->cancelled_context))
            return tb_fail(error, TB_CANCELLED, "%s", tb_status_text(TB_CANCELLED));
        const tb_status status = c->gpu->planar_sweep(c->card, &c->batch, fresh, error);
        if (status != TB_OK) return status;
        tb_parallel_for(c->number_of_solves, 1, c->threads, look, c);
    }
}

/* ---- a call ---- */

static int32_t last_step(const planar_context *c, int32_t steps)
{
    int32_t most = 0;
    for (int32_t i = 0; i < c->worlds; i++) {
        const int32_t own = c->batch_worlds[i].course ? c->batch_worlds[i].course->steps : steps;
        if (own > most) most = own;
    }
    return most;
}

static tb_status step_batch(void *context, const tb_step_options *options, tb_state *const *states,
                            const tb_course *courses, int32_t worlds, int32_t steps,
                            tb_certificate *certificates, tb_error *error)
{
    planar_context *c = context;
    tb_status status = check(options, error);
    if (status == TB_OK) status = reserve_worlds(c, worlds, error);
    if (status != TB_OK) return status;
    c->options = options;
    c->worlds = worlds;
    for (int32_t i = 0; i < worlds; i++) {
        planar_batch_world *g = &c->batch_worlds[i];
        g->state = states[i];
        g->course = courses ? &courses[i] : NULL;
        g->status = TB_OK;
        memset(&g->merged, 0, sizeof g->merged);
    }
    const int32_t most = last_step(c, steps);
    for (c->step = 0; c->step < most && status == TB_OK; c->step++) {
        tb_parallel_for(worlds, 1, c->threads, begin_world, c);
        status = gather(c, error);
        if (status == TB_OK) status = sweep(c, error);
        if (status == TB_OK) tb_parallel_for(worlds, 1, c->threads, end_world, c);
    }
    for (int32_t i = 0; i < worlds && certificates; i++)
        certificates[i] = c->batch_worlds[i].merged;
    for (int32_t i = 0; i < worlds && status == TB_OK; i++) {
        const planar_batch_world *g = &c->batch_worlds[i];
        status = g->status;
        if (status != TB_OK) tb_fail_world(error, status, worlds, i, &g->error);
    }
    return status;
}

/* `devices` and `describe` are never called: this backend wraps the GPU's own. */
const tb_backend tb_backend_planar = {.abi = TB_BACKEND_ABI,
                                      .name = "gpu",
                                      .create = create,
                                      .destroy = destroy,
                                      .step = step_batch,
                                      .measure = measure};
