/* Gauss-Seidel by processes (Poulsen 7.1 and 7.2).
 *
 * Naive: each worker sweeps a range of contacts by a w of its own, and learns the changes of the others
 * between iterations. Coloured: the accumulator takes the colours in turn and gives each worker a batch of
 * the colour. Of a safe colour the batches share no body, and workers write impulses and w in place. The
 * unsafe colour's contacts are divided once: on w a worker sweeps its part naively and sends the changes of
 * w, on T it makes a Jacobi step and sends the impulses; the accumulator writes them when all are there. */
#include "solve/coloured/csp/csp.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = TB_CONTACT_ROWS, DOFS = TB_BODY_DOFS };

/* w of a worker's own, and its changes, by the bodies of some contacts. */
typedef struct local_w {
    tb_csp_update own, change;
    int32_t *place; /* 2 x contacts */
} local_w;

static bool local_create(const tb_csp *net, const int32_t *list, int32_t first, int32_t count,
                         local_w *l)
{
    int32_t *same = NULL;
    const bool ok = tb_csp_update_create(&net->z, list, first, count, &l->own, &l->place) &&
                    tb_csp_update_create(&net->z, list, first, count, &l->change, &same);
    free(same);
    return ok;
}

static void local_destroy(local_w *l)
{
    tb_csp_update_destroy(&l->own);
    tb_csp_update_destroy(&l->change);
    free(l->place);
}

/* Solves contact k, the i-th of the local ones, by the worker's own w, which follows at once. */
static double local_solve(const local_w *l, const tb_row_sweep *z, int32_t i, int32_t k,
                          double epsilon)
{
    double change[ROWS];
    double *own[2], *sum[2];
    for (int side = 0; side < 2; side++) {
        own[side] = l->own.value + (int64_t)DOFS * l->place[2 * i + side];
        sum[side] = l->change.value + (int64_t)DOFS * l->place[2 * i + side];
    }
    const double *const w[2] = {own[0], own[1]};
    epsilon = tb_csp_solve(z, k, w, change, epsilon);
    for (int side = 0; side < 2; side++) {
        tb_row_push_to(z, k, side, change, own[side]);
        tb_row_push_to(z, k, side, change, sum[side]);
    }
    return epsilon;
}

static void local_fill(const local_w *l, const double *w)
{
    for (int32_t i = 0; i < l->own.bodies; i++)
        memcpy(l->own.value + (int64_t)DOFS * i, w + (int64_t)DOFS * l->own.body[i],
               DOFS * sizeof(double));
}

/* ---- naive ---- */

static void work_naive(tb_csp_worker *base)
{
    tb_csp *net = base->net;
    tb_row_sweep z = net->z;
    local_w l = {0};
    tb_csp_order order;
    const int32_t count = base->end - base->first;
    const tb_csp_report ready = {.worker = base->index,
                                 .failed = !local_create(net, NULL, base->first, count, &l)};
    tb_csp_report_send(base, &ready);
    tb_csp_order_receive(base, &order);
    while (order.command != TB_CSP_STOP) {
        tb_csp_report report = {.worker = base->index, .last = true, .update = &l.change};
        z.lambda = order.in == 0 ? net->z.lambda : net->z.next;
        z.next = order.in == 0 ? net->z.next : net->z.lambda;
        z.r = order.r;
        for (int32_t i = 0; i < count; i++)
            report.epsilon = local_solve(&l, &z, i, base->first + i, report.epsilon);
        tb_csp_report_send(base, &report);
        tb_csp_order_receive(base, &order);
        /* the accumulator has left the new w in the changes' buffer */
        double *changes = l.own.value;
        l.own.value = l.change.value;
        l.change.value = changes;
        tb_csp_update_clear(&l.change);
    }
    local_destroy(&l);
}

static void accumulate_naive(tb_csp *net)
{
    tb_csp_order order = {.command = TB_CSP_GO_ON, .r = net->z.r};
    double *sum = net->measured + (int64_t)DOFS * net->z.bodies, *w = net->z.w;
    tb_csp_order_all(net, &order);
    while (order.command != TB_CSP_STOP) {
        double epsilon = 0;
        bool accepted;
        for (int32_t i = 0; i < net->workers; i++) {
            const tb_csp_report report = tb_csp_report_receive(net);
            tb_csp_update_apply(report.update, sum);
            net->worker[report.worker].sent = report.update;
            if (report.epsilon > epsilon) epsilon = report.epsilon;
        }
        double *x = order.in == 0 ? net->z.next : net->z.lambda;
        order.command = tb_csp_judge(net, epsilon, x, &accepted);
        for (int32_t i = 0; i < net->touched_bodies; i++)
            for (int d = 0; d < DOFS; d++) {
                const int64_t at = (int64_t)DOFS * net->touched[i] + d;
                if (accepted) w[at] += sum[at];
                sum[at] = 0;
            }
        if (accepted) order.in = 1 - order.in;
        if (order.command == TB_CSP_STOP) break;
        order.r = net->z.r;
        for (int32_t i = 0; i < net->workers; i++) {
            const tb_csp_update *to = net->worker[i].sent;
            for (int32_t m = 0; m < to->bodies; m++)
                memcpy(to->value + (int64_t)DOFS * m, w + (int64_t)DOFS * to->body[m],
                       DOFS * sizeof *w);
            tb_channel_send(&net->worker[i].in, &order);
        }
    }
    if (order.in == 1)
        memcpy(net->z.lambda, net->z.next, (size_t)net->z.contacts * ROWS * sizeof *w);
}

tb_status tb_csp_naive(tb_csp *net, tb_error *error)
{
    return tb_csp_run(net, work_naive, accumulate_naive, error);
}

/* ---- coloured ---- */

/* Part t of p equal parts of [first, end) begins here. */
static int32_t part(int32_t first, int32_t end, int32_t t, int32_t p)
{
    return first + (int32_t)((int64_t)(end - first) * t / p);
}

/* The worker's part of the unsafe colour: order[*first] to order[*end - 1]; empty without one. */
static void unsafe_part(const tb_csp_worker *base, int32_t *first, int32_t *end)
{
    const tb_csp *net = base->net;
    const tb_edge_colouring *c = net->colours;
    const int32_t last = c->colours - 1;
    *first = *end = 0;
    if (c->unsafe == 0) return;
    *first = part(c->start[last], c->start[last + 1], base->index, net->workers);
    *end = part(c->start[last], c->start[last + 1], base->index + 1, net->workers);
}

static void work_coloured(tb_csp_worker *base)
{
    tb_csp *net = base->net;
    const int32_t *list = net->colours->order;
    const bool factorized = net->z.storage == TB_STORAGE_FACTORIZED;
    tb_row_sweep z = net->z;
    local_w l = {0};
    tb_csp_order order;
    int32_t first, end;
    unsafe_part(base, &first, &end);
    const tb_csp_report ready = {.worker = base->index,
                                 .failed = factorized &&
                                           !local_create(net, list, first, end - first, &l)};
    tb_csp_report_send(base, &ready);
    tb_csp_order_receive(base, &order);
    for (; order.command != TB_CSP_STOP; tb_csp_order_receive(base, &order)) {
        tb_csp_report report = {.worker = base->index, .last = true};
        z.r = order.r;
        for (int32_t i = order.first; i < order.end && order.command == TB_CSP_SOLVE; i++)
            report.epsilon = tb_row_solve(&z, list[i], true, report.epsilon);
        if (order.command == TB_CSP_UNSAFE && factorized) {
            /* no other worker reads this part's impulses, so they are written in place */
            tb_row_sweep in_place = z;
            in_place.next = z.lambda;
            local_fill(&l, z.w);
            tb_csp_update_clear(&l.change);
            report.update = &l.change;
            for (int32_t i = first; i < end; i++)
                report.epsilon = local_solve(&l, &in_place, i - first, list[i], report.epsilon);
        } else if (order.command == TB_CSP_UNSAFE) {
            for (int32_t i = first; i < end; i++)
                report.epsilon = tb_row_solve(&z, list[i], false, report.epsilon);
        }
        tb_csp_report_send(base, &report);
    }
    local_destroy(&l);
}

/* One colour on all workers; returns its epsilon. */
static double solve_colour(tb_csp *net, int32_t colour)
{
    const tb_edge_colouring *c = net->colours;
    const int32_t first = c->start[colour], end = c->start[colour + 1];
    const bool safe = colour < c->colours - c->unsafe;
    double largest = 0;
    for (int32_t i = 0; i < net->workers; i++) {
        const tb_csp_order order = {.command = safe ? TB_CSP_SOLVE : TB_CSP_UNSAFE,
                                    .first = part(first, end, i, net->workers),
                                    .end = part(first, end, i + 1, net->workers),
                                    .r = net->z.r};
        tb_channel_send(&net->worker[i].in, &order);
    }
    for (int32_t i = 0; i < net->workers; i++) {
        const tb_csp_report report = tb_csp_report_receive(net);
        if (report.epsilon > largest) largest = report.epsilon;
        net->worker[report.worker].sent = report.update;
    }
    for (int32_t i = 0; i < net->workers && !safe; i++)
        if (net->worker[i].sent) tb_csp_update_apply(net->worker[i].sent, net->z.w);
    for (int32_t i = first; i < end && !safe && net->z.storage == TB_STORAGE_T; i++)
        memcpy(net->z.lambda + (int64_t)ROWS * c->order[i],
               net->z.next + (int64_t)ROWS * c->order[i], ROWS * sizeof(double));
    return largest;
}

static void take_back(tb_csp *net, const double *previous, double nu)
{
    memcpy(net->z.lambda, previous, (size_t)net->z.contacts * ROWS * sizeof *previous);
    for (int32_t m = 0; m < net->z.bodies; m++) tb_row_sum_body(&net->z, m);
    if (net->z.storage != TB_STORAGE_T || nu >= 1) return;
    for (int32_t k = 0; k < net->z.contacts; k++) tb_row_rescale(&net->z, k, nu);
}

static void accumulate_coloured(tb_csp *net)
{
    double *previous = net->measured + 2 * (int64_t)DOFS * net->z.bodies;
    tb_csp_command command = TB_CSP_GO_ON;
    while (command != TB_CSP_STOP) {
        double epsilon = 0;
        bool accepted;
        memcpy(previous, net->z.lambda, (size_t)net->z.contacts * ROWS * sizeof *previous);
        for (int32_t i = 0; i < net->colours->colours; i++) {
            const double largest = solve_colour(net, i);
            if (largest > epsilon) epsilon = largest;
        }
        const double r = net->z.r;
        command = tb_csp_judge(net, epsilon, net->z.lambda, &accepted);
        if (!accepted) take_back(net, previous, net->z.r / r);
    }
}

tb_status tb_csp_coloured(tb_csp *net, tb_error *error)
{
    return tb_csp_run(net, work_coloured, accumulate_coloured, error);
}
