/* Poulsen's solvers as communicating sequential processes (A Parallel Gauss-Seidel Method for Computing
 * Contact Forces, DIKU 2010, sections 6.1 to 6.3, 7.1 and 7.2).
 *
 * Workers are kernel threads that solve contacts; the caller's thread is the accumulator, which adds
 * their changes, judges the iteration and orders the next. Messages carry pointers to arrays: a channel orders
 * the accesses of its two ends, and no array is written while another process may read it.
 *
 * Where the accumulator adds changes of w in the order of their arrival, the last bits of a result
 * differ from run to run. Coloured sweeps and Jacobi on T add nothing that way. */
#ifndef TB_CSP_H
#define TB_CSP_H

#include "solve/coloured/block_rows_sweep.h"
#include "solve/coloured/csp/channel.h"

/* Order of the accumulator after an iteration, or within one. */
typedef enum tb_csp_command {
    TB_CSP_GO_ON,     /* the iteration is accepted: begin the next */
    TB_CSP_TAKE_BACK, /* begin it again from its start, with a smaller R */
    TB_CSP_SOLVE,     /* solve a batch of a safe colour */
    TB_CSP_UNSAFE,    /* solve the worker's part of the unsafe colour */
    TB_CSP_STOP
} tb_csp_command;

typedef struct tb_csp_order {
    tb_csp_command command;
    int32_t in;         /* of the two x, the one to read */
    int32_t first, end; /* batch: order[first] to order[end - 1] of the colours */
    double r;           /* kg */
    const double *w;    /* bodies x 6 */
} tb_csp_order;

/* Changes of w: by bodies of a list, ascending, or (no list) by all. */
typedef struct tb_csp_update {
    int32_t bodies;
    int32_t *body; /* NULL: body i is i */
    double *value; /* bodies x 6 */
} tb_csp_update;

typedef struct tb_csp_report {
    int32_t worker;
    bool last;             /* of the worker's iteration or batch */
    bool failed;           /* no memory; before the first iteration */
    double epsilon;        /* of its contacts so far */
    tb_csp_update *update; /* NULL: none */
} tb_csp_report;

typedef struct tb_csp tb_csp;

typedef struct tb_csp_worker {
    tb_channel out; /* reports; its own, or not created. First member: see tb_guard_receive */
    tb_csp *net;
    tb_channel in; /* orders; capacity of one */
    pthread_t thread;
    int32_t index, first, end; /* contacts list[first] to list[end - 1] of the net */
    int64_t ahead;             /* contacts solved by lookahead */
    double received;           /* clock at its last order; 0: none yet */
    double waited;             /* seconds for orders, from the first on */
    double busy, busy_squares; /* seconds from an order to the next wait, and their squares */
    int64_t tasks;             /* of these */
    tb_csp_update *sent;       /* of its last report; the accumulator's */
} tb_csp_worker;

struct tb_csp {
    tb_row_sweep z; /* lambda and next: the two x */
    const tb_poulsen_options *o;
    const tb_edge_colouring *colours;
    int32_t workers;
    tb_csp_worker *worker;
    const int32_t *list;    /* contacts by worker; NULL: contact i is i */
    int32_t touched_bodies; /* bodies that have contacts */
    int32_t *touched;       /* which */
    tb_channel shared;      /* of all reports, unless workers have their own */
    tb_guard guard;         /* of their own */
    int32_t next;           /* worker whose channel is looked at first */
    void (*work)(tb_csp_worker *worker);
    /* of the controller */
    int32_t final;    /* which x has the result; factorized Jacobi */
    double last;      /* N s, epsilon of the iteration before */
    double *measured; /* bodies x 6: w of the measure of quality */
    tb_poulsen_result *result;
};

/* ---- network_once.c ---- */

/* Runs workers in threads of their own and `accumulate` in this one. Each worker sends a report when it is
 * ready, and then waits for its first order. */
tb_status tb_csp_run(tb_csp *net, void (*work)(tb_csp_worker *worker),
                     void (*accumulate)(tb_csp *net), tb_error *error);

/* A clock, for the result's seconds. */
double tb_csp_seconds(void);

/* Judges an iteration that left `x` (contacts x 4). GO_ON, TAKE_BACK or STOP; *accepted: whether x stays.
 * Scales net->z.r after a growth. */
tb_csp_command tb_csp_judge(tb_csp *net, double epsilon, double *x, bool *accepted);

void tb_csp_report_send(tb_csp_worker *worker, const tb_csp_report *report);
tb_csp_report tb_csp_report_receive(tb_csp *net);
void tb_csp_order_all(tb_csp *net, const tb_csp_order *order);
/* The worker's next order, STOP from a poisoned channel; counts how long it waits and works. */
void tb_csp_order_receive(tb_csp_worker *worker, tb_csp_order *order);

/* An update by the bodies of `count` contacts (list NULL: first, first + 1 ...), with the places of each
 * one's two bodies in it (2 x count). Heap; false without memory. */
bool tb_csp_update_create(const tb_row_sweep *z, const int32_t *list, int32_t first, int32_t count,
                          tb_csp_update *update, int32_t **place);
/* One by all bodies. */
bool tb_csp_update_create_dense(const tb_row_sweep *z, tb_csp_update *update);
void tb_csp_update_destroy(tb_csp_update *update);
void tb_csp_update_clear(tb_csp_update *update);

/* w += update */
void tb_csp_update_apply(const tb_csp_update *update, double *w);
/* to = from (bodies x 6), for bodies that have contacts. */
void tb_csp_copy_touched(const tb_csp *net, const double *from, double *to);

/* Contact k by the w of its two bodies: its new impulse goes to z->next, its change to `change`. Returns
 * the larger of epsilon and the change, N s. */
double tb_csp_solve(const tb_row_sweep *z, int32_t k, const double *const w[2],
                    double change[TB_CONTACT_ROWS], double epsilon);

static inline int32_t tb_csp_contact(const tb_csp *net, int32_t i)
{
    return net->list ? net->list[i] : i;
}

/* ---- one file each: iterations until the controller ends them; impulses end in z.lambda ---- */

tb_status tb_csp_extreme(tb_csp *net, tb_error *error);
tb_status tb_csp_jacobi(tb_csp *net, tb_error *error);   /* factorized, in ranges */
tb_status tb_csp_jacobi_t(tb_csp *net, tb_error *error); /* T */
tb_status tb_csp_naive(tb_csp *net, tb_error *error);
tb_status tb_csp_coloured(tb_csp *net, tb_error *error);

/* ---- csp_once.c ---- */

/* UNSUPPORTED names the option that the processes do not have. */
tb_status tb_csp_check(const tb_poulsen_options *options, tb_error *error);

/* All iterations on `workers` threads beside this one; impulses end in z->lambda. The result's seconds leave
 * out threads and lists of bodies. */
tb_status tb_csp_iterate(tb_row_sweep *z, const tb_edge_colouring *colours,
                         const tb_poulsen_options *options, int32_t workers, tb_arena *arena,
                         tb_poulsen_result *result, tb_error *error);

#endif
