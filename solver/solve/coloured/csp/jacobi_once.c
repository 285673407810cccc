/* Jacobi by workers with contacts of their own (Poulsen 6.2 and 6.3).
 *
 * Factorized: a worker solves its range by the w of the last iteration and sends, page by page, the changes
 * of w that its new impulses make. The accumulator adds them to the other w, orders the next iteration as
 * soon as all is there, and copies the new w over the old one while workers solve. With lookahead a worker
 * does not wait: it solves on by a w that has its own changes alone, until the order comes, and solves
 * the rest of its contacts by the new w.
 *
 * T: workers read one x and write the other, and send nothing but their residual. */
#include "solve/coloured/csp/csp.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = TB_CONTACT_ROWS, DOFS = TB_BODY_DOFS };

/* ---- factorized ---- */

/* Changes of w of a worker: pages, twice with lookahead, which fills the next iteration's while the
 * accumulator may still read the last one's. */
typedef struct jacobi_worker {
    tb_csp_worker *base;
    int32_t pages, page_contacts;
    tb_csp_update *update[2]; /* pages each */
    int32_t **place;          /* pages: bodies of each contact in its page; NULL without lists */
    tb_csp_update local;      /* lookahead: w of the bodies of all contacts */
    int32_t *local_place;
    int32_t turn; /* which of update[] is filled */
} jacobi_worker;

static bool make_pages(jacobi_worker *j)
{
    const tb_csp *net = j->base->net;
    const tb_poulsen_csp *csp = &net->o->csp;
    const int32_t first = j->base->first, count = j->base->end - first;
    j->page_contacts = csp->page > 0 && csp->compressed ? csp->page : count;
    j->pages = count > 0 ? (count - 1) / j->page_contacts + 1 : 0;
    const size_t entries = (size_t)j->pages + 1;
    j->place = calloc(entries, sizeof *j->place);
    bool ok = j->place != NULL;
    for (int t = 0; t < (csp->lookahead ? 2 : 1) && ok; t++) {
        j->update[t] = calloc(entries, sizeof *j->update[t]);
        ok = j->update[t] != NULL;
        for (int32_t p = 0; p < j->pages && ok; p++) {
            const int32_t at = first + p * j->page_contacts;
            const int32_t left = j->base->end - at;
            const int32_t many = left < j->page_contacts ? left : j->page_contacts;
            if (!csp->compressed) {
                ok = tb_csp_update_create_dense(&net->z, &j->update[t][p]);
                continue;
            }
            free(j->place[p]);
            ok = tb_csp_update_create(&net->z, NULL, at, many, &j->update[t][p], &j->place[p]);
        }
    }
    if (ok && csp->lookahead)
        ok = tb_csp_update_create(&net->z, NULL, first, count, &j->local, &j->local_place);
    return ok;
}

static void free_pages(jacobi_worker *j)
{
    for (int t = 0; t < 2; t++) {
        for (int32_t p = 0; p < j->pages && j->update[t]; p++)
            tb_csp_update_destroy(&j->update[t][p]);
        free(j->update[t]);
    }
    for (int32_t p = 0; p < j->pages && j->place; p++) free(j->place[p]);
    free(j->place);
    tb_csp_update_destroy(&j->local);
    free(j->local_place);
}

/* Solves the worker's i-th contact by w; its changes go into the contact's page. */
static double solve_in_page(jacobi_worker *j, const tb_row_sweep *z, int32_t i,
                            const double *const w[2], double epsilon)
{
    const int32_t k = j->base->first + i, p = i / j->page_contacts;
    tb_csp_update *u = &j->update[j->turn][p];
    const int32_t *place = j->place[p] ? j->place[p] + 2 * (i - p * j->page_contacts) : NULL;
    double change[ROWS];
    if (i == p * j->page_contacts) tb_csp_update_clear(u);
    epsilon = tb_csp_solve(z, k, w, change, epsilon);
    for (int side = 0; side < 2; side++) {
        const int32_t at = place ? place[side] : tb_row_body(z, k, side);
        tb_row_push_to(z, k, side, change, u->value + (int64_t)DOFS * at);
    }
    return epsilon;
}

static double solve_by_order(jacobi_worker *j, const tb_row_sweep *z, int32_t i, double epsilon)
{
    const int32_t k = j->base->first + i;
    const double *const w[2] = {z->w + (int64_t)DOFS * tb_row_body(z, k, 0),
                                z->w + (int64_t)DOFS * tb_row_body(z, k, 1)};
    return solve_in_page(j, z, i, w, epsilon);
}

static void send_page(jacobi_worker *j, int32_t page, double epsilon)
{
    const tb_csp_report report = {.worker = j->base->index,
                                  .last = page >= j->pages - 1,
                                  .epsilon = epsilon,
                                  .update = page < j->pages ? &j->update[j->turn][page] : NULL};
    tb_csp_report_send(j->base, &report);
}

static void set_input(tb_row_sweep *z, const tb_csp *net, int32_t in)
{
    z->lambda = in == 0 ? net->z.lambda : net->z.next;
    z->next = in == 0 ? net->z.next : net->z.lambda;
}

/* The worker's own w: that of the iteration with the worker's changes. Before its last report, after which
 * the accumulator may write to z->w. */
static void make_local(jacobi_worker *j, const tb_row_sweep *z)
{
    for (int32_t i = 0; i < j->local.bodies; i++)
        memcpy(j->local.value + (int64_t)DOFS * i, z->w + (int64_t)DOFS * j->local.body[i],
               DOFS * sizeof(double));
    for (int32_t p = 0; p < j->pages; p++) {
        const tb_csp_update *u = &j->update[j->turn][p];
        int32_t at = 0;
        for (int32_t i = 0; i < u->bodies; i++) {
            while (j->local.body[at] != u->body[i]) at++;
            for (int d = 0; d < DOFS; d++)
                j->local.value[(int64_t)DOFS * at + d] += u->value[(int64_t)DOFS * i + d];
        }
    }
}

/* Solves contacts of the next iteration by the worker's own w until an order comes. Returns how many;
 * none stay where the order takes the last iteration back. */
static int32_t look_ahead(jacobi_worker *j, tb_row_sweep *z, tb_csp_order *order, double *epsilon)
{
    const int32_t count = j->base->end - j->base->first;
    int32_t done = 0;
    const tb_csp *net = j->base->net;
    set_input(z, net, 1 - order->in);
    double *const next = z->next;
    /* the accumulator may take the last iteration back, so its start is kept */
    z->next = net->measured + 2 * (int64_t)DOFS * net->z.bodies;
    j->turn = 1 - j->turn;
    *epsilon = 0;
    while (!tb_channel_try_receive(&j->base->in, order)) {
        if (done == count) {
            tb_csp_order_receive(j->base, order);
            break;
        }
        const int32_t *place = j->local_place + 2 * done;
        const double *const w[2] = {j->local.value + (int64_t)DOFS * place[0],
                                    j->local.value + (int64_t)DOFS * place[1]};
        *epsilon = solve_in_page(j, z, done++, w, *epsilon);
    }
    if (order->command == TB_CSP_GO_ON) {
        const int64_t first = (int64_t)ROWS * j->base->first;
        memcpy(next + first, z->next + first, (size_t)done * ROWS * sizeof *next);
        j->base->ahead += done;
        return done;
    }
    *epsilon = 0;
    return 0;
}

static void work_factorized(tb_csp_worker *base)
{
    tb_csp *net = base->net;
    jacobi_worker j = {.base = base};
    tb_row_sweep z = net->z;
    tb_csp_order order;
    const tb_csp_report ready = {.worker = base->index, .failed = !make_pages(&j)};
    const int32_t count = base->end - base->first;
    tb_csp_report_send(base, &ready);
    tb_csp_order_receive(base, &order);
    int32_t done = 0;
    double epsilon = 0;
    while (order.command != TB_CSP_STOP) {
        int32_t page = 0;
        set_input(&z, net, order.in);
        z.w = (double *)(uintptr_t)order.w; /* read alone */
        z.r = order.r;
        for (int32_t i = 0; i < count; i++) {
            if (i >= done) epsilon = solve_by_order(&j, &z, i, epsilon);
            const bool full = (i + 1) % j.page_contacts == 0 && i + 1 < count;
            if (full) send_page(&j, page++, epsilon);
        }
        if (net->o->csp.lookahead) make_local(&j, &z);
        send_page(&j, page, epsilon);
        done = 0;
        epsilon = 0;
        if (net->o->csp.lookahead)
            done = look_ahead(&j, &z, &order, &epsilon);
        else
            tb_csp_order_receive(base, &order);
    }
    free_pages(&j);
}

/* Adds the changes of one iteration to `w`; returns its epsilon. */
static double gather(tb_csp *net, double *w)
{
    double largest = 0;
    for (int32_t finished = 0; finished < net->workers;) {
        const tb_csp_report report = tb_csp_report_receive(net);
        if (report.update) tb_csp_update_apply(report.update, w);
        if (report.epsilon > largest) largest = report.epsilon;
        finished += report.last;
    }
    return largest;
}

static void accumulate_factorized(tb_csp *net)
{
    tb_csp_order order = {.command = TB_CSP_GO_ON, .r = net->z.r};
    double *w[2] = {net->z.w, net->measured + (int64_t)DOFS * net->z.bodies};
    const bool twice = net->o->csp.double_w;
    order.w = w[0];
    tb_csp_order_all(net, &order);
    for (;;) {
        bool accepted;
        /* w[1]: the coming w where there are two, else the sum of changes */
        const double epsilon = gather(net, w[1]);
        double *x = order.in == 0 ? net->z.next : net->z.lambda;
        order.command = tb_csp_judge(net, epsilon, x, &accepted);
        if (accepted && twice) {
            double *old = w[0];
            w[0] = w[1];
            w[1] = old;
        } else if (accepted) {
            for (int32_t i = 0; i < net->touched_bodies; i++) {
                const int64_t at = (int64_t)DOFS * net->touched[i];
                for (int d = 0; d < DOFS; d++) w[0][at + d] += w[1][at + d];
            }
        }
        if (accepted) order.in = 1 - order.in;
        if (order.command == TB_CSP_STOP) break;
        for (int32_t i = 0; i < net->touched_bodies && !twice; i++)
            memset(w[1] + (int64_t)DOFS * net->touched[i], 0, DOFS * sizeof *w[1]);
        if (twice && !accepted) tb_csp_copy_touched(net, w[0], w[1]);
        order.r = net->z.r;
        order.w = w[0];
        tb_csp_order_all(net, &order);
        if (twice && accepted) tb_csp_copy_touched(net, w[0], w[1]);
    }
    net->final = order.in;
}

tb_status tb_csp_jacobi(tb_csp *net, tb_error *error)
{
    const tb_status status = tb_csp_run(net, work_factorized, accumulate_factorized, error);
    int64_t ahead = 0;
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < net->workers; i++) ahead += net->worker[i].ahead;
    net->result->ahead = (double)ahead / ((double)net->z.contacts * net->result->iterations);
    if (net->final == 1)
        memcpy(net->z.lambda, net->z.next, (size_t)net->z.contacts * ROWS * sizeof *net->z.lambda);
    return TB_OK;
}

/* ---- T ---- */

/* T, b and the two x of a worker's rows in float. x is the net's, behind the w of net->measured. */
typedef struct float_rows {
    float *block, *x[2];
} float_rows;

static bool make_float_rows(const tb_csp_worker *base, float_rows *f)
{
    const tb_csp *net = base->net;
    int64_t blocks = 0;
    f->x[0] = (float *)(void *)(net->measured + 2 * (int64_t)DOFS * net->z.bodies);
    f->x[1] = f->x[0] + (int64_t)ROWS * net->z.contacts;
    for (int32_t i = base->first; i < base->end; i++) {
        const int32_t k = tb_csp_contact(net, i);
        blocks += net->z.start[k + 1] - net->z.start[k];
    }
    f->block = malloc(((size_t)blocks * TB_BLOCK_NUMBERS + 1) * sizeof *f->block);
    if (!f->block) return false;
    float *to = f->block;
    for (int32_t i = base->first; i < base->end; i++) {
        const int32_t k = tb_csp_contact(net, i);
        for (int64_t j = net->z.start[k] * TB_BLOCK_NUMBERS;
             j < net->z.start[k + 1] * TB_BLOCK_NUMBERS; j++)
            *to++ = (float)net->z.block[j];
    }
    return true;
}

/* Row k by its float blocks, which begin at *block and end where the next row's begin. */
static double solve_float(const tb_row_sweep *z, int32_t k, const float **block, const float *x,
                          float *to, double epsilon)
{
    float sum[ROWS];
    double trial[ROWS];
    for (int r = 0; r < ROWS; r++) sum[r] = (float)(-z->r * z->free[(int64_t)ROWS * k + r]);
    for (int64_t j = z->start[k]; j < z->start[k + 1]; j++, *block += TB_BLOCK_NUMBERS) {
        const float *other = x + (int64_t)ROWS * z->column[j];
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < ROWS; c++) sum[r] += (*block)[r * ROWS + c] * other[c];
    }
    for (int r = 0; r < ROWS; r++) trial[r] = (double)sum[r];
    tb_prox_block(TB_LAW_SPIN, ROWS, z->mu, 0, 0, trial);
    for (int r = 0; r < ROWS; r++) {
        float *own = to + (int64_t)ROWS * k + r;
        *own = (float)trial[r];
        const double change = tb_abs((double)*own - (double)x[(int64_t)ROWS * k + r]);
        if (change > epsilon) epsilon = change;
    }
    return epsilon;
}

/* T of the worker's rows for R times nu */
static void rescale(const tb_csp_worker *base, const float_rows *f)
{
    const tb_csp *net = base->net;
    float *block = f->block;
    for (int32_t i = base->first; i < base->end; i++) {
        const int32_t k = tb_csp_contact(net, i);
        tb_row_rescale(&net->z, k, net->o->nu);
        if (!block) continue;
        for (int64_t j = net->z.start[k] * TB_BLOCK_NUMBERS;
             j < net->z.start[k + 1] * TB_BLOCK_NUMBERS; j++)
            *block++ = (float)net->z.block[j];
    }
}

static void work_t(tb_csp_worker *base)
{
    tb_csp *net = base->net;
    tb_row_sweep z = net->z;
    float_rows f = {0};
    tb_csp_order order;
    const bool single = net->o->csp.single;
    const tb_csp_report ready = {.worker = base->index,
                                 .failed = single && !make_float_rows(base, &f)};
    tb_csp_report_send(base, &ready);
    tb_csp_order_receive(base, &order);
    for (; order.command != TB_CSP_STOP; tb_csp_order_receive(base, &order)) {
        const float *block = f.block;
        double epsilon = 0;
        set_input(&z, net, order.in);
        z.r = order.r;
        if (order.command == TB_CSP_TAKE_BACK) rescale(base, &f);
        for (int32_t i = base->first; i < base->end; i++) {
            const int32_t k = tb_csp_contact(net, i);
            if (single)
                epsilon = solve_float(&z, k, &block, f.x[order.in], f.x[1 - order.in], epsilon);
            else
                epsilon = tb_row_solve(&z, k, false, epsilon);
        }
        const tb_csp_report report = {.worker = base->index, .last = true, .epsilon = epsilon};
        tb_csp_report_send(base, &report);
    }
    free(f.block);
}

static void accumulate_t(tb_csp *net)
{
    tb_csp_order order = {.command = TB_CSP_GO_ON, .r = net->z.r};
    const int64_t numbers = (int64_t)ROWS * net->z.contacts;
    float *x[2];
    x[0] = (float *)(void *)(net->measured + 2 * (int64_t)DOFS * net->z.bodies);
    x[1] = x[0] + numbers;
    while (order.command != TB_CSP_STOP) {
        bool accepted;
        tb_csp_order_all(net, &order);
        const double epsilon = gather(net, NULL);
        double *out = order.in == 0 ? net->z.next : net->z.lambda;
        if (net->o->csp.single && net->o->gamma > 0)
            for (int64_t i = 0; i < numbers; i++) out[i] = (double)x[1 - order.in][i];
        order.command = tb_csp_judge(net, epsilon, out, &accepted);
        if (accepted) order.in = 1 - order.in;
        order.r = net->z.r;
    }
    if (net->o->csp.single)
        for (int64_t i = 0; i < numbers; i++) net->z.lambda[i] = (double)x[order.in][i];
    else if (order.in == 1)
        memcpy(net->z.lambda, net->z.next, (size_t)numbers * sizeof *net->z.lambda);
}

tb_status tb_csp_jacobi_t(tb_csp *net, tb_error *error)
{
    return tb_csp_run(net, work_t, accumulate_t, error);
}
