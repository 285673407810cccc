/* Threads, channels, changes of w and the controller of the processes: see csp.h. */
#include "solve/coloured/csp/csp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = TB_CONTACT_ROWS, DOFS = TB_BODY_DOFS, REPORTS = 64 /* buffered, of each worker */ };

/* ---- channels ---- */

void tb_csp_report_send(tb_csp_worker *worker, const tb_csp_report *report)
{
    tb_csp *net = worker->net;
    tb_channel_send(net->o->csp.own_channels ? &worker->out : &net->shared, report);
}

tb_csp_report tb_csp_report_receive(tb_csp *net)
{
    tb_csp_report report;
    if (net->o->csp.own_channels)
        tb_guard_receive(&net->guard, &net->worker->out, sizeof *net->worker, net->workers,
                         &net->next, &report);
    else
        tb_channel_receive(&net->shared, &report);
    return report;
}

void tb_csp_order_all(tb_csp *net, const tb_csp_order *order)
{
    for (int32_t i = 0; i < net->workers; i++) tb_channel_send(&net->worker[i].in, order);
}

void tb_csp_order_receive(tb_csp_worker *worker, tb_csp_order *order)
{
    const double begun = tb_csp_seconds();
    if (!tb_channel_receive(&worker->in, order)) *order = (tb_csp_order){.command = TB_CSP_STOP};
    const double now = tb_csp_seconds();
    if (worker->received > 0) {
        const double busy = begun - worker->received;
        worker->busy += busy;
        worker->busy_squares += busy * busy;
        worker->tasks++;
        worker->waited += now - begun;
    }
    worker->received = now;
}

/* ---- threads ---- */

double tb_csp_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *begin(void *worker)
{
    ((tb_csp_worker *)worker)->net->work(worker);
    return NULL;
}

static bool create_channels(tb_csp *net)
{
    if (!net->o->csp.own_channels &&
        !tb_channel_create(&net->shared, sizeof(tb_csp_report), REPORTS * net->workers, NULL))
        return false;
    for (int32_t i = 0; i < net->workers; i++) {
        tb_csp_worker *w = &net->worker[i];
        if (!tb_channel_create(&w->in, sizeof(tb_csp_order), 1, NULL)) return false;
        if (net->o->csp.own_channels &&
            !tb_channel_create(&w->out, sizeof(tb_csp_report), REPORTS, &net->guard))
            return false;
    }
    return true;
}

/* The workers' share of waiting, and the largest relative spread of the times of a worker's tasks. */
static void measure_waits(const tb_csp *net)
{
    double waited = 0, all = 0;
    for (int32_t i = 0; i < net->workers; i++) {
        const tb_csp_worker *w = &net->worker[i];
        waited += w->waited;
        all += w->waited + w->busy;
        if (w->tasks == 0 || !(w->busy > 0)) continue;
        const double mean = w->busy / (double)w->tasks;
        const double variance = w->busy_squares / (double)w->tasks - mean * mean;
        const double spread = sqrt(fmax(variance, 0)) / mean;
        if (spread > net->result->jitter) net->result->jitter = spread;
    }
    if (all > 0) net->result->waited = waited / all;
}

tb_status tb_csp_run(tb_csp *net, void (*work)(tb_csp_worker *worker),
                     void (*accumulate)(tb_csp *net), tb_error *error)
{
    int32_t started = 0;
    bool ready = true;
    if (!tb_guard_create(&net->guard)) return tb_fail_memory(error, 0, "channels");
    net->work = work;
    for (int32_t i = 0; i < net->workers; i++) {
        net->worker[i].net = net;
        net->worker[i].index = i;
    }
    if (create_channels(net))
        while (started < net->workers && pthread_create(&net->worker[started].thread, NULL, begin,
                                                        &net->worker[started]) == 0)
            started++;
    for (int32_t i = 0; i < started; i++) ready = !tb_csp_report_receive(net).failed && ready;
    ready = ready && started == net->workers;
    const double begun = tb_csp_seconds();
    if (ready) accumulate(net);
    net->result->seconds = tb_csp_seconds() - begun;
    const tb_csp_order stop = {.command = TB_CSP_STOP};
    const double ended = tb_csp_seconds();
    for (int32_t i = 0; i < started; i++) {
        if (net->o->csp.poison)
            tb_channel_poison(&net->worker[i].in);
        else
            tb_channel_send(&net->worker[i].in, &stop);
    }
    for (int32_t i = 0; i < started; i++) pthread_join(net->worker[i].thread, NULL);
    net->result->shutdown_seconds = tb_csp_seconds() - ended;
    measure_waits(net);
    for (int32_t i = 0; i < net->workers; i++) {
        tb_channel_destroy(&net->worker[i].in);
        tb_channel_destroy(&net->worker[i].out);
    }
    tb_channel_destroy(&net->shared);
    tb_guard_destroy(&net->guard);
    return ready ? TB_OK : tb_fail_memory(error, 0, "threads of the processes");
}

/* ---- the controller ---- */

tb_csp_command tb_csp_judge(tb_csp *net, double epsilon, double *x, bool *accepted)
{
    tb_poulsen_result *result = net->result;
    result->iterations++;
    result->epsilon = epsilon;
    *accepted = !(epsilon > net->last && net->o->tries > 0);
    if (!*accepted) {
        if (result->reductions == net->o->tries) return TB_CSP_STOP;
        net->z.r *= net->o->nu;
        result->reductions++;
        net->last = INFINITY;
        return result->iterations < net->o->iterations ? TB_CSP_TAKE_BACK : TB_CSP_STOP;
    }
    net->last = epsilon;
    if (result->iterations == net->o->iterations) return TB_CSP_STOP;
    if (net->o->gamma > 0) {
        tb_row_sweep z = net->z;
        z.lambda = x;
        z.w = net->measured;
        if (tb_row_quality(&z) <= net->o->gamma) return TB_CSP_STOP;
    }
    return TB_CSP_GO_ON;
}

/* ---- changes of w ---- */

static int ascending(const void *a, const void *b)
{
    const int32_t p = *(const int32_t *)a, q = *(const int32_t *)b;
    return (p > q) - (p < q);
}

bool tb_csp_update_create(const tb_row_sweep *z, const int32_t *list, int32_t first, int32_t count,
                          tb_csp_update *u, int32_t **place)
{
    const size_t ends = 2 * (size_t)count;
    int32_t n = 0;
    memset(u, 0, sizeof *u);
    u->body = malloc((ends + 1) * sizeof *u->body);
    *place = malloc((ends + 1) * sizeof **place);
    if (!u->body || !*place) return false;
    for (int32_t i = 0; i < count; i++)
        for (int side = 0; side < 2; side++)
            u->body[2 * i + side] = tb_row_body(z, list ? list[first + i] : first + i, side);
    qsort(u->body, ends, sizeof *u->body, ascending);
    for (size_t i = 0; i < ends; i++)
        if (i == 0 || u->body[i] != u->body[n - 1]) u->body[n++] = u->body[i];
    u->bodies = n;
    for (int32_t i = 0; i < 2 * count; i++) {
        const int32_t k = list ? list[first + i / 2] : first + i / 2;
        const int32_t body = tb_row_body(z, k, i % 2);
        const int32_t *found = bsearch(&body, u->body, (size_t)n, sizeof *u->body, ascending);
        (*place)[i] = (int32_t)(found - u->body);
    }
    u->value = calloc((size_t)n + 1, DOFS * sizeof *u->value);
    return u->value != NULL;
}

bool tb_csp_update_create_dense(const tb_row_sweep *z, tb_csp_update *u)
{
    memset(u, 0, sizeof *u);
    u->bodies = z->bodies;
    u->value = calloc((size_t)z->bodies, DOFS * sizeof *u->value);
    return u->value != NULL;
}

void tb_csp_update_destroy(tb_csp_update *u)
{
    free(u->body);
    free(u->value);
    memset(u, 0, sizeof *u);
}

void tb_csp_update_clear(tb_csp_update *u)
{
    memset(u->value, 0, (size_t)u->bodies * DOFS * sizeof *u->value);
}

void tb_csp_update_apply(const tb_csp_update *u, double *w)
{
    for (int32_t i = 0; i < u->bodies; i++) {
        double *to = w + (int64_t)DOFS * (u->body ? u->body[i] : i);
        for (int d = 0; d < DOFS; d++) to[d] += u->value[(int64_t)DOFS * i + d];
    }
}

void tb_csp_copy_touched(const tb_csp *net, const double *from, double *to)
{
    for (int32_t i = 0; i < net->touched_bodies; i++) {
        const int64_t at = (int64_t)DOFS * net->touched[i];
        for (int d = 0; d < DOFS; d++) to[at + d] = from[at + d];
    }
}

/* ---- a contact ---- */

double tb_csp_solve(const tb_row_sweep *z, int32_t k, const double *const w[2], double change[ROWS],
                    double epsilon)
{
    const double *own = z->lambda + (int64_t)ROWS * k;
    double *to = z->next + (int64_t)ROWS * k, v[ROWS], x[ROWS];
    tb_row_velocity_by(z, k, w, v);
    for (int r = 0; r < ROWS; r++) x[r] = own[r] - z->r * v[r];
    tb_prox_block(TB_LAW_SPIN, ROWS, z->mu, 0, 0, x);
    for (int r = 0; r < ROWS; r++) {
        change[r] = x[r] - own[r];
        if (tb_abs(change[r]) > epsilon) epsilon = tb_abs(change[r]);
    }
    for (int r = 0; r < ROWS; r++) to[r] = x[r];
    return epsilon;
}
