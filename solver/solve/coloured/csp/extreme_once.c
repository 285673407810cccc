/* The extreme factorized Jacobi (Poulsen 6.1): a contact is a task. A dispatcher sends its impulses and the w
 * of its two bodies to any worker, which sends the new impulses and the changes of w to the accumulator. When
 * all contacts are back, the accumulator judges the iteration and lets the dispatcher begin the next. */
#include "solve/coloured/csp/csp.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS = TB_CONTACT_ROWS,
    DOFS = TB_BODY_DOFS,
    TASKS = 2, /* buffered, of each worker */
    SHUT_DOWN = -1
};

/* Messages that hold numbers. */
typedef struct data_task {
    int32_t contact; /* or SHUT_DOWN */
    double r, x[ROWS], w[2][DOFS];
} data_task;

typedef struct data_result {
    int32_t contact;
    double epsilon, x[ROWS], w[2][DOFS]; /* w: changes */
} data_result;

/* Messages that hold pointers. */
typedef struct pointer_task {
    int32_t contact;
    double r;
    const double *x, *w[2];
    data_result *result; /* to be filled */
} pointer_task;

typedef struct extreme {
    tb_csp *net;
    tb_channel tasks, results; /* of one dispatcher, and of one accumulator */
    data_result *result;       /* contacts; for messages that hold pointers */
    pthread_t *thread, dispatcher;
    tb_channel begin; /* orders to the dispatcher's thread */
    bool pointers;
    double *w[2];       /* bodies x 6: of the iteration, and with the changes since */
    int32_t in;         /* which x the iteration reads */
    int32_t next, back; /* contacts sent, and back */
    double epsilon;     /* of the contacts that are back */
    tb_csp_command command;
} extreme;

/* ---- workers ---- */

static void solve_task(const tb_csp *net, int32_t k, double r, const double *x,
                       const double *const w[2], data_result *result)
{
    double v[ROWS], z[ROWS], change[ROWS];
    tb_row_velocity_by(&net->z, k, w, v);
    for (int i = 0; i < ROWS; i++) z[i] = x[i] - r * v[i];
    tb_prox_block(TB_LAW_SPIN, ROWS, net->z.mu, 0, 0, z);
    memset(result, 0, sizeof *result);
    result->contact = k;
    for (int i = 0; i < ROWS; i++) {
        change[i] = z[i] - x[i];
        if (tb_abs(change[i]) > result->epsilon) result->epsilon = tb_abs(change[i]);
        result->x[i] = z[i];
    }
    for (int side = 0; side < 2; side++) tb_row_push_to(&net->z, k, side, change, result->w[side]);
}

static void *work_on_data(void *context)
{
    extreme *e = context;
    data_task task;
    data_result result;
    for (;;) {
        tb_channel_receive(&e->tasks, &task);
        if (task.contact == SHUT_DOWN) return NULL;
        const double *const w[2] = {task.w[0], task.w[1]};
        solve_task(e->net, task.contact, task.r, task.x, w, &result);
        tb_channel_send(&e->results, &result);
    }
}

static void *work_on_pointers(void *context)
{
    extreme *e = context;
    pointer_task task;
    for (;;) {
        tb_channel_receive(&e->tasks, &task);
        if (task.contact == SHUT_DOWN) return NULL;
        const double *const w[2] = {task.w[0], task.w[1]};
        solve_task(e->net, task.contact, task.r, task.x, w, task.result);
        tb_channel_send(&e->results, &task.result);
    }
}

/* ---- dispatcher ---- */

/* Sends contact k, or SHUT_DOWN; without `wait` false where the channel is full. */
static bool send_task(extreme *e, int32_t k, bool wait)
{
    const tb_csp *net = e->net;
    const bool shut_down = k == SHUT_DOWN;
    const double *x = (e->in == 0 ? net->z.lambda : net->z.next) + (int64_t)ROWS * (k > 0 ? k : 0);
    const double *w[2] = {NULL, NULL};
    for (int side = 0; side < 2 && !shut_down; side++)
        w[side] = e->w[0] + (int64_t)DOFS * tb_row_body(&net->z, k, side);
    pointer_task by_pointer;
    data_task by_data;
    const void *message = &by_data;
    if (e->pointers) {
        by_pointer = (pointer_task){.contact = k,
                                    .r = net->z.r,
                                    .x = x,
                                    .w = {w[0], w[1]},
                                    .result = shut_down ? NULL : e->result + k};
        message = &by_pointer;
    } else {
        memset(&by_data, 0, sizeof by_data);
        by_data.contact = k;
        by_data.r = net->z.r;
        for (int side = 0; side < 2 && !shut_down; side++)
            memcpy(by_data.w[side], w[side], sizeof by_data.w[side]);
        memcpy(by_data.x, x, sizeof by_data.x);
    }
    if (!wait) return tb_channel_try_send(&e->tasks, message);
    tb_channel_send(&e->tasks, message);
    return true;
}

static void *dispatch(void *context)
{
    extreme *e = context;
    bool go_on;
    for (;;) {
        tb_channel_receive(&e->begin, &go_on);
        if (!go_on) return NULL;
        for (int32_t k = 0; k < e->net->z.contacts; k++) send_task(e, k, true);
    }
}

/* ---- accumulator ---- */

/* Adds one result; without `wait` false where there is none. */
static bool take_result(extreme *e, bool wait)
{
    data_result data, *result = &data;
    void *message = e->pointers ? (void *)&result : (void *)&data;
    if (wait)
        tb_channel_receive(&e->results, message);
    else if (!tb_channel_try_receive(&e->results, message))
        return false;
    const tb_row_sweep *z = &e->net->z;
    double *x = (e->in == 0 ? z->next : z->lambda) + (int64_t)ROWS * result->contact;
    memcpy(x, result->x, sizeof result->x);
    for (int side = 0; side < 2; side++) {
        double *w = e->w[1] + (int64_t)DOFS * tb_row_body(z, result->contact, side);
        for (int d = 0; d < DOFS; d++) w[d] += result->w[side][d];
    }
    if (result->epsilon > e->epsilon) e->epsilon = result->epsilon;
    e->back++;
    return true;
}

/* All contacts are back: judges, and makes the next iteration's x and w. */
static void end_iteration(extreme *e)
{
    bool accepted;
    double *x = e->in == 0 ? e->net->z.next : e->net->z.lambda;
    e->command = tb_csp_judge(e->net, e->epsilon, x, &accepted);
    if (accepted) {
        e->in = 1 - e->in;
        tb_csp_copy_touched(e->net, e->w[1], e->w[0]);
    } else {
        tb_csp_copy_touched(e->net, e->w[0], e->w[1]);
    }
    e->epsilon = 0;
    e->next = e->back = 0;
}

/* ---- the three ways of dispatcher and accumulator ---- */

static void iterate_in_two_threads(extreme *e)
{
    bool go_on = true;
    while (go_on) {
        tb_channel_send(&e->begin, &go_on);
        while (e->back < e->net->z.contacts) take_result(e, true);
        end_iteration(e);
        go_on = e->command != TB_CSP_STOP;
    }
}

/* Runs the dispatcher until its channel is full. */
static void dispatcher_turn(extreme *e)
{
    while (e->next < e->net->z.contacts && send_task(e, e->next, false)) e->next++;
}

/* Runs the accumulator until its channel is empty; waits for the first result. */
static void accumulator_turn(extreme *e)
{
    if (e->back < e->net->z.contacts) take_result(e, true);
    while (e->back < e->net->z.contacts && take_result(e, false)) continue;
    if (e->back == e->net->z.contacts) end_iteration(e);
}

static void iterate_by_turns(extreme *e)
{
    while (e->command != TB_CSP_STOP) {
        dispatcher_turn(e);
        accumulator_turn(e);
    }
}

static void iterate_as_one(extreme *e)
{
    while (e->command != TB_CSP_STOP) {
        for (int32_t k = 0; k < e->net->z.contacts; k++)
            while (!send_task(e, k, false)) take_result(e, true);
        while (e->back < e->net->z.contacts) take_result(e, true);
        end_iteration(e);
    }
}

/* ---- the network ---- */

static bool create(extreme *e, size_t task, size_t result)
{
    const int32_t capacity = TASKS * e->net->workers;
    e->thread = malloc((size_t)e->net->workers * sizeof *e->thread);
    if (e->pointers) e->result = calloc((size_t)e->net->z.contacts, sizeof *e->result);
    return e->thread && (e->result || !e->pointers) &&
           tb_channel_create(&e->tasks, task, capacity, NULL) &&
           tb_channel_create(&e->results, result, capacity, NULL) &&
           tb_channel_create(&e->begin, sizeof(bool), 1, NULL);
}

tb_status tb_csp_extreme(tb_csp *net, tb_error *error)
{
    const tb_poulsen_extreme way = net->o->csp.extreme;
    extreme e = {.net = net,
                 .pointers = way != TB_EXTREME_DATA,
                 .w = {net->z.w, net->measured + (int64_t)DOFS * net->z.bodies}};
    const bool apart = way == TB_EXTREME_DATA || way == TB_EXTREME_POINTERS, end = false;
    int32_t started = 0;
    bool ok = create(&e, e.pointers ? sizeof(pointer_task) : sizeof(data_task),
                     e.pointers ? sizeof(data_result *) : sizeof(data_result));
    while (ok && started < net->workers) {
        ok = pthread_create(&e.thread[started], NULL, e.pointers ? work_on_pointers : work_on_data,
                            &e) == 0;
        started += ok;
    }
    bool dispatches = ok && apart && pthread_create(&e.dispatcher, NULL, dispatch, &e) == 0;
    ok = ok && (dispatches || !apart);
    const double begun = tb_csp_seconds();
    if (ok && apart) iterate_in_two_threads(&e);
    if (ok && way == TB_EXTREME_ONE_THREAD) iterate_by_turns(&e);
    if (ok && way == TB_EXTREME_MERGED) iterate_as_one(&e);
    net->result->seconds = tb_csp_seconds() - begun;
    if (dispatches) tb_channel_send(&e.begin, &end);
    if (dispatches) pthread_join(e.dispatcher, NULL);
    for (int32_t i = 0; i < started; i++) send_task(&e, SHUT_DOWN, true);
    for (int32_t i = 0; i < started; i++) pthread_join(e.thread[i], NULL);
    tb_channel_destroy(&e.tasks);
    tb_channel_destroy(&e.results);
    tb_channel_destroy(&e.begin);
    free(e.thread);
    free(e.result);
    if (!ok) return tb_fail_memory(error, 0, "threads of the processes");
    if (e.in == 1)
        memcpy(net->z.lambda, net->z.next, (size_t)net->z.contacts * ROWS * sizeof(double));
    return TB_OK;
}
