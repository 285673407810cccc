/* Islands of a planar world: contacts that share no body with others, directly or through others,
 * are problems of their own. They are solved one by one, or at once on threads; which thread solves
 * an island does not matter to its bytes. The residual of the whole is judged afterwards: where
 * every island reaches the tolerance against its own c, so does the world. */
#include "step/planar/islands.h"

#include "base/parallel.h"

#include <string.h>

/* ---- which contact belongs to which island ---- */

static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static int32_t body_of(const tb_problem *p, const tb_block *block, int32_t k)
{
    return p->segments[block->segment + k].dof / TB_PLANAR_DOFS;
}

/* Numbers islands by their first contact, and lists their contacts in order. */
static tb_status find_islands(tb_planar_islands *s, tb_arena *arena)
{
    const tb_problem *p = s->problem;
    const int32_t bodies = p->number_of_dofs / TB_PLANAR_DOFS, n = p->number_of_blocks;
    int32_t *parent = TB_ARENA_ARRAY(arena, int32_t, bodies);
    int32_t *number = TB_ARENA_ARRAY(arena, int32_t, bodies);
    int32_t *of = TB_ARENA_ARRAY(arena, int32_t, n);
    s->order = TB_ARENA_ARRAY(arena, int32_t, n);
    s->islands = TB_ARENA_ZEROED(arena, tb_planar_island, n);
    s->body_dof = TB_ARENA_ARRAY(arena, int32_t, bodies);
    if (!parent || !number || !of || !s->order || !s->islands || !s->body_dof)
        return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < bodies; i++) {
        parent[i] = i;
        number[i] = s->body_dof[i] = -1;
    }
    for (int32_t b = 0; b < n; b++)
        if (p->blocks[b].segments == 2)
            parent[root_of(parent, body_of(p, &p->blocks[b], 0))] =
                root_of(parent, body_of(p, &p->blocks[b], 1));
    for (int32_t b = 0; b < n; b++) {
        const int32_t root = root_of(parent, body_of(p, &p->blocks[b], 0));
        if (number[root] < 0) number[root] = s->number_of_islands++;
        of[b] = number[root];
        s->islands[of[b]].blocks++;
        s->islands[of[b]].rows += p->blocks[b].rows;
    }
    for (int32_t i = 0; i < bodies; i++) {
        const int32_t own = number[root_of(parent, i)];
        if (own < 0) continue;
        s->body_dof[i] = s->islands[own].dofs;
        s->islands[own].dofs += TB_PLANAR_DOFS;
    }
    for (int32_t i = 0, first = 0, row = 0; i < s->number_of_islands; i++) {
        s->islands[i].first = first;
        s->islands[i].row = row;
        first += s->islands[i].blocks;
        row += s->islands[i].rows;
        s->islands[i].blocks = 0;
    }
    for (int32_t b = 0; b < n; b++) {
        tb_planar_island *own = &s->islands[of[b]];
        s->order[own->first + own->blocks++] = b;
    }
    return TB_OK;
}

/* Appends an island's contacts to those of the islands before it. */
static void fill_island(tb_planar_islands *s, tb_planar_island *own)
{
    const tb_problem *p = s->problem;
    int32_t row = 0, segment = 0;
    int64_t value = 0;
    for (int32_t i = 0; i < own->blocks; i++) {
        const int32_t b = s->order[own->first + i];
        const tb_block *from = &p->blocks[b];
        tb_block *to = &s->blocks[own->first + i];
        *to = *from;
        to->row = row;
        to->segment = segment;
        to->value = value;
        for (int32_t k = 0; k < from->segments; k++) {
            const int32_t body = body_of(p, from, k);
            s->segments[own->segment + segment++] = (tb_segment){s->body_dof[body], TB_PLANAR_DOFS};
        }
        memcpy(s->values + own->value + value, p->values + from->value,
               (size_t)from->rows * (size_t)from->width * sizeof(double));
        memcpy(s->c + own->row + row, p->c + from->row, (size_t)from->rows * sizeof(double));
        memcpy(s->warm + own->row + row, s->solve.warm + from->row,
               (size_t)from->rows * sizeof(double));
        s->known[own->first + i] = s->solve.statuses[b];
        s->speeds[own->first + i] = s->solve.speeds[b];
        row += from->rows;
        value += (int64_t)from->rows * from->width;
    }
}

static tb_status take_arrays(tb_planar_islands *s, tb_arena *arena)
{
    const size_t n = (size_t)s->problem->number_of_blocks;
    const size_t rows = (size_t)s->problem->number_of_rows;
    const size_t dofs = (size_t)s->problem->number_of_dofs;
    const size_t islands = (size_t)s->number_of_islands;
    s->blocks = TB_ARENA_ARRAY(arena, tb_block, n);
    s->segments = TB_ARENA_ARRAY(arena, tb_segment, 2 * n);
    s->values = TB_ARENA_ARRAY(arena, double, 2 * TB_PLANAR_DOFS * rows);
    s->c = TB_ARENA_ARRAY(arena, double, rows);
    s->warm = TB_ARENA_ARRAY(arena, double, rows);
    s->speeds = TB_ARENA_ARRAY(arena, double, n);
    s->known = TB_ARENA_ARRAY(arena, uint8_t, n);
    s->lambda = TB_ARENA_ZEROED(arena, double, rows);
    s->xi = TB_ARENA_ZEROED(arena, double, rows);
    s->whitened = TB_ARENA_ZEROED(arena, double, dofs);
    s->statuses = TB_ARENA_ZEROED(arena, uint8_t, n);
    s->solutions = TB_ARENA_ZEROED(arena, tb_solution, islands);
    s->histories = TB_ARENA_ARRAY(arena, tb_solve_history, islands);
    s->failures = TB_ARENA_ZEROED(arena, tb_status, islands);
    const bool all = s->blocks && s->segments && s->values && s->c && s->warm && s->speeds &&
                     s->known && s->lambda && s->xi && s->whitened && s->statuses && s->solutions &&
                     s->histories && s->failures;
    return all ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

/* ---- solving them ---- */

void tb_planar_island_open(tb_planar_islands *s, int32_t i, tb_problem *problem,
                           tb_warm_start *warm)
{
    const tb_planar_solve *solve = &s->solve;
    const tb_planar_island *own = &s->islands[i];
    *problem = (tb_problem){.number_of_blocks = own->blocks,
                            .number_of_rows = own->rows,
                            .number_of_dofs = own->dofs,
                            .blocks = s->blocks + own->first,
                            .segments = s->segments + own->segment,
                            .values = s->values + own->value,
                            .c = s->c + own->row};
    tb_solution *x = &s->solutions[i];
    x->lambda = s->lambda + own->row;
    x->xi = s->xi + own->row;
    x->whitened = s->whitened + own->dof;
    x->statuses = s->statuses + own->first;
    s->histories[i] = *solve->history;
    problem->c_squared = tb_problem_c_squared(problem);
    if (!solve->options->warm_start) return;
    warm->lambda = s->warm + own->row;
    warm->statuses = s->known + own->first;
    warm->speeds = s->speeds + own->first;
    warm->history = &s->histories[i];
}

static void solve_island(void *context, int32_t i, int32_t thread)
{
    tb_planar_islands *s = context;
    tb_problem problem;
    tb_warm_start warm = {.scratch = &s->arenas[thread]};
    tb_planar_island_open(s, i, &problem, &warm);
    s->failures[i] = tb_solver_find(s->solve.options->solver)(&problem, s->solve.options, &warm,
                                                              &s->solutions[i]);
}

/* Impulses and counts of all, in the places of the problem's contacts. The island with the most
 * rows names the solver and leaves its history. */
static void gather(const tb_planar_islands *s, tb_solution *x)
{
    int32_t largest = 0;
    x->status = TB_OK;
    for (int32_t i = 0; i < s->number_of_islands; i++) {
        const tb_planar_island *own = &s->islands[i];
        const tb_solution *part = &s->solutions[i];
        if (own->rows > s->islands[largest].rows) largest = i;
        if (part->status != TB_OK && x->status != TB_DIVERGED) x->status = part->status;
        if (part->iterations > x->iterations) x->iterations = part->iterations;
        x->halvings += part->halvings;
        x->work.linear_solves += part->work.linear_solves;
        x->work.factorizations += part->work.factorizations;
        x->work.resets += part->work.resets;
        for (int32_t k = 0; k < own->blocks; k++) {
            const int32_t b = s->order[own->first + k];
            const tb_block *block = &s->problem->blocks[b];
            memcpy(x->lambda + block->row, part->lambda + s->blocks[own->first + k].row,
                   (size_t)block->rows * sizeof(double));
            x->statuses[b] = part->statuses[k];
        }
    }
    memcpy(x->solver, s->solutions[largest].solver, sizeof x->solver);
    *s->solve.history = s->histories[largest];
}

tb_status tb_planar_islands_make(const tb_problem *problem, const tb_planar_solve *solve,
                                 tb_arena *arena, tb_planar_islands *s)
{
    *s = (tb_planar_islands){.solve = *solve, .problem = problem};
    tb_status status = find_islands(s, arena);
    if (status == TB_OK) status = take_arrays(s, arena);
    if (status != TB_OK) return status;
    int32_t dof = 0, segment = 0;
    int64_t value = 0;
    for (int32_t i = 0; i < s->number_of_islands; i++) {
        tb_planar_island *own = &s->islands[i];
        own->dof = dof;
        own->segment = segment;
        own->value = value;
        fill_island(s, own);
        const tb_block *last = &s->blocks[own->first + own->blocks - 1];
        dof += own->dofs;
        segment += last->segment + last->segments;
        value += last->value + (int64_t)last->rows * last->width;
    }
    return TB_OK;
}

tb_status tb_planar_islands_finish(const tb_planar_islands *s, tb_arena *arena, tb_solution *x)
{
    for (int32_t i = 0; i < s->number_of_islands; i++)
        if (s->failures[i] != TB_OK) return s->failures[i];
    gather(s, x);
    return tb_problem_judge(s->problem, x->lambda, NULL, arena, x->whitened, x->xi, &x->residuals);
}

tb_status tb_planar_islands_solve(tb_planar_islands *s, int32_t threads, tb_arena *arena)
{
    if (threads > s->number_of_islands) threads = s->number_of_islands;
    threads = tb_parallel_threads(threads > 1 ? threads : 1);
    s->arenas = TB_ARENA_ZEROED(arena, tb_arena, threads);
    if (!s->arenas) return TB_RESOURCE_EXHAUSTED;
    tb_parallel_for(s->number_of_islands, 1, threads, solve_island, s);
    for (int32_t i = 0; i < threads; i++) tb_arena_destroy(&s->arenas[i]);
    return TB_OK;
}
