/* Poulsen's processes: which of them an option names, and the division of contacts between workers. */
#include "solve/coloured/csp/csp.h"

#include <math.h>
#include <string.h>

enum { ROWS = TB_CONTACT_ROWS, DOFS = TB_BODY_DOFS };

/* His numbers of subtasks of T (section 6.3), and contacts of a worker below which there are fewer. */
enum { SUBTASKS = 100, LEAST_SUBTASKS = 10, CONTACTS_OF_A_SUBTASK = 10 };

tb_status tb_csp_check(const tb_poulsen_options *o, tb_error *error)
{
    const bool extreme = o->processes == TB_POULSEN_EXTREME;
    const bool t = o->storage == TB_STORAGE_T, factorized = o->storage == TB_STORAGE_FACTORIZED;
    if (o->processes == TB_POULSEN_LOOPS) {
        if (o->jacobi || o->colouring != TB_POULSEN_NAIVE) return TB_OK;
        return tb_fail_field(error, TB_UNSUPPORTED, "colouring",
                             "naive Gauss-Seidel wants processes: csp");
    }
    const struct {
        bool wrong;
        const char *field, *why;
    } checks[] = {
        {o->backend == TB_BACKEND_GPU, "backend", "processes are threads of the processor"},
        {!factorized && !t, "storage", "processes have no A: factorized or T"},
        {extreme && !(o->jacobi && factorized), "processes", "extreme is factorized Jacobi"},
        {!o->jacobi && o->colouring == TB_POULSEN_SEQUENTIAL, "colouring",
         "the sequential order has nothing for processes to divide"},
        {!o->jacobi && o->colouring == TB_POULSEN_NAIVE && !factorized, "storage",
         "naive Gauss-Seidel is factorized"},
        {o->csp.single && !(o->jacobi && t), "csp.single", "float is for Jacobi on T"},
        {o->csp.lookahead && !(o->csp.compressed && o->csp.double_w), "csp.lookahead",
         "lookahead wants compressed updates and two w"},
        {o->csp.poison && extreme, "csp.poison", "extreme processes end by messages alone"},
        {o->unsafe_first, "unsafe_first", "processes solve the unsafe colour last"},
        {o->csp.page < 0, "csp.page", "a page has contacts"},
        {o->csp.subtasks < 0, "csp.subtasks", "a number of subtasks is not negative"},
        {o->csp.extreme < TB_EXTREME_DATA || o->csp.extreme > TB_EXTREME_MERGED, "csp.extreme",
         "there is no such way"}};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].wrong)
            return tb_fail_field(error, TB_UNSUPPORTED, checks[i].field, "%s", checks[i].why);
    return TB_OK;
}

/* Equal ranges of contacts. */
static void divide_evenly(tb_csp *net)
{
    for (int32_t i = 0; i < net->workers; i++) {
        net->worker[i].first = (int32_t)((int64_t)net->z.contacts * i / net->workers);
        net->worker[i].end = (int32_t)((int64_t)net->z.contacts * (i + 1) / net->workers);
    }
}

static int32_t subtasks_of(const tb_csp *net)
{
    if (net->o->csp.subtasks > 0) return net->o->csp.subtasks;
    const int32_t fit = net->z.contacts / net->workers / CONTACTS_OF_A_SUBTASK;
    return fit > SUBTASKS ? SUBTASKS : fit < LEAST_SUBTASKS ? LEAST_SUBTASKS : fit;
}

/* Rows of T: subtasks of about equal numbers of blocks, cut in contact order; each goes to the worker that
 * has the fewest blocks so far. */
static tb_status divide_blocks(tb_csp *net, tb_arena *arena, tb_error *error)
{
    const int32_t contacts = net->z.contacts, tasks = subtasks_of(net) * net->workers;
    const int64_t blocks = net->z.start[contacts];
    int32_t *list = TB_ARENA_ARRAY(arena, int32_t, contacts);
    int32_t *owner = TB_ARENA_ARRAY(arena, int32_t, contacts);
    int32_t *count = TB_ARENA_ZEROED(arena, int32_t, net->workers);
    int64_t *load = TB_ARENA_ZEROED(arena, int64_t, net->workers);
    if (!list || !owner || !count || !load)
        return tb_fail_memory(error, 0, "the division of contacts");
    int32_t task = 0, to = 0;
    for (int32_t k = 0; k < contacts; k++) {
        if (k > 0 && (double)net->z.start[k] >= (double)blocks * (task + 1) / tasks) {
            task++;
            to = 0;
            for (int32_t i = 1; i < net->workers; i++)
                if (load[i] < load[to]) to = i;
        }
        owner[k] = to;
        count[to]++;
        load[to] += net->z.start[k + 1] - net->z.start[k];
    }
    for (int32_t i = 0, first = 0; i < net->workers; i++) {
        net->worker[i].first = net->worker[i].end = first;
        first += count[i];
    }
    for (int32_t k = 0; k < contacts; k++) list[net->worker[owner[k]].end++] = k;
    net->list = list;
    return TB_OK;
}

static tb_status reserve(tb_csp *net, tb_arena *arena, tb_error *error)
{
    const tb_row_sweep *z = &net->z;
    const size_t w = (size_t)z->bodies * DOFS, x = (size_t)z->contacts * ROWS;
    net->worker = TB_ARENA_ZEROED(arena, tb_csp_worker, net->workers);
    net->touched = TB_ARENA_ARRAY(arena, int32_t, z->bodies);
    /* w of the measure of quality, another w, and impulses: previous ones, or two in float */
    net->measured = TB_ARENA_ZEROED(arena, double, 2 * w + x);
    if (!net->worker || !net->touched || !net->measured)
        return tb_fail_memory(error, 0, "the processes");
    for (int32_t m = 0; m < z->bodies; m++)
        if (z->of_body[m + 1] > z->of_body[m]) net->touched[net->touched_bodies++] = m;
    return TB_OK;
}

tb_status tb_csp_iterate(tb_row_sweep *z, const tb_edge_colouring *colours,
                         const tb_poulsen_options *o, int32_t workers, tb_arena *arena,
                         tb_poulsen_result *result, tb_error *error)
{
    tb_csp net = {.z = *z,
                  .o = o,
                  .colours = colours,
                  .workers = workers < z->contacts ? workers : z->contacts,
                  .last = INFINITY,
                  .result = result};
    const bool t = o->storage == TB_STORAGE_T;
    tb_status status = reserve(&net, arena, error);
    if (status != TB_OK) return status;
    divide_evenly(&net);
    if (o->processes == TB_POULSEN_EXTREME)
        status = tb_csp_extreme(&net, error);
    else if (o->jacobi && t)
        status = divide_blocks(&net, arena, error);
    else if (o->jacobi)
        status = tb_csp_jacobi(&net, error);
    else if (o->colouring == TB_POULSEN_NAIVE)
        status = tb_csp_naive(&net, error);
    else
        status = tb_csp_coloured(&net, error);
    if (status == TB_OK && o->jacobi && t) status = tb_csp_jacobi_t(&net, error);
    z->r = net.z.r;
    return status;
}
