/* Poulsen's tables of communicating processes: chapter 6 but for its OpenMP part, and sections 7.1 and
 * 7.2. A time is that of the iterations; threads and lists of bodies are made before. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench_poulsen.h"
#include "common/cli.h"
#include "common/interrupt.h"

/* Iterations of table 3.3 (Jacobi), and the speedups of tables 6.1 and 6.2. */
static const struct {
    const char *scene;
    int32_t jacobi;
    struct {
        double own, sequential, cores;
    } factorized, t;
} SCENES[] = {{"poulsen_pile_40", 63, {2.4, 2.6, 8}, {3.6, 7.5, 4}},
              {"poulsen_pile_80", 65, {2.8, 2.8, 8}, {5.1, 11.0, 7}},
              {"poulsen_grid_8", 63, {3.1, 2.6, 4}, {2.7, 2.0, 4}},
              {"poulsen_grid_24", 66, {3.7, 2.9, 7}, {3.1, 1.8, 6}},
              {"poulsen_grid_40", 65, {4.8, 2.7, 7}, {3.2, 1.5, 8}}};
enum { SCENES_COUNT = sizeof SCENES / sizeof SCENES[0] };

/* Milliseconds of an iteration. */
static tb_status time_iteration(const char *scene, const tb_poulsen_options *method,
                                int64_t repeats, double *milliseconds, tb_error *error)
{
    double seconds = NAN;
    uint64_t hash;
    const tb_status status = poulsen_time(scene, method, repeats, &seconds, &hash, error);
    *milliseconds = 1e3 * seconds / method->iterations;
    return status;
}

/* A row of times by workers, then the best against one worker and against `sequential`, and the number of
 * workers of the best. */
static tb_status fill_workers(const char *scene, tb_poulsen_options method, int64_t repeats,
                              int most, double sequential, double *here, tb_error *error)
{
    double best = INFINITY;
    tb_status status = TB_OK;
    for (int n = 1; n <= most && status == TB_OK; n++) {
        method.threads = n;
        status = time_iteration(scene, &method, repeats, &here[n - 1], error);
        if (here[n - 1] < best) {
            best = here[n - 1];
            here[most + 2] = n;
        }
    }
    here[most] = here[0] / best;
    here[most + 1] = sequential / best;
    return status;
}

static int add_worker_columns(const thesis_options *o, thesis_table *t)
{
    t->row_key = "method";
    const int most = poulsen_thread_columns(o, t, "ms");
    thesis_add_column(t, "over_one", "");
    thesis_add_column(t, "over_sequential", "");
    thesis_add_column(t, "best_threads", "");
    return most;
}

static tb_poulsen_options jacobi(int32_t iterations, tb_storage storage)
{
    tb_poulsen_options o = tb_poulsen_defaults();
    o.jacobi = true;
    o.storage = storage;
    o.iterations = iterations;
    return o;
}

/* Figure 6.2: its scene is not named, and its numbers are lost with the drawing. */
tb_status poulsen_fill_extreme(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const WAYS[] = {[TB_EXTREME_DATA] = "data in messages",
                                       [TB_EXTREME_POINTERS] = "pointers",
                                       [TB_EXTREME_ONE_THREAD] = "in one thread",
                                       [TB_EXTREME_MERGED] = "merged"};
    const char *scene = o->scene != NULL ? o->scene : "poulsen_grid_8";
    tb_poulsen_options method = jacobi(5, TB_STORAGE_FACTORIZED);
    double sequential = NAN;
    const int most = add_worker_columns(o, t);
    tb_status status = time_iteration(scene, &method, o->repeats, &sequential, error);
    thesis_add_row(t, "sequential Jacobi")->here[0] = sequential;
    method.processes = TB_POULSEN_EXTREME;
    for (int i = 0; i < 4 && status == TB_OK; i++) {
        method.csp.extreme = (tb_poulsen_extreme)i;
        status = fill_workers(scene, method, o->repeats, most, sequential,
                              thesis_add_row(t, WAYS[i])->here, error);
    }
    thesis_note(t,
                "%s, medians of %d; the thesis: ten times the sequential time, no gain beyond two",
                scene, (int)o->repeats);
    return status;
}

/* Tables 6.1 and 6.2, figures 6.4 and 6.5, and T in float (section 6.3). */
tb_status poulsen_fill_csp(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const int most = add_worker_columns(o, t);
    tb_status status = TB_OK;
    for (int i = 0; i < SCENES_COUNT && status == TB_OK; i++) {
        const char *scene = SCENES[i].scene;
        char label[THESIS_LABEL];
        double sequential = NAN;
        if (o->scene != NULL && strcmp(o->scene, scene) != 0) continue;
        tb_poulsen_options method = jacobi(SCENES[i].jacobi, TB_STORAGE_FACTORIZED);
        status = time_iteration(scene, &method, o->repeats, &sequential, error);
        snprintf(label, sizeof label, "%s sequential", scene);
        thesis_add_row(t, label)->here[0] = sequential;
        method.processes = TB_POULSEN_CSP;
        for (int way = 0; way < 3 && status == TB_OK; way++) {
            method.storage = way == 0 ? TB_STORAGE_FACTORIZED : TB_STORAGE_T;
            method.csp.single = way == 2;
            snprintf(label, sizeof label, "%s %s", scene,
                     way == 0   ? "factorized"
                     : way == 1 ? "T"
                                : "T float");
            thesis_row *row = thesis_add_row(t, label);
            status = fill_workers(scene, method, o->repeats, most, sequential, row->here, error);
            if (way == 2) continue;
            row->thesis[most] = way == 0 ? SCENES[i].factorized.own : SCENES[i].t.own;
            row->thesis[most + 1] =
                way == 0 ? SCENES[i].factorized.sequential : SCENES[i].t.sequential;
            row->thesis[most + 2] = way == 0 ? SCENES[i].factorized.cores : SCENES[i].t.cores;
        }
        if (t->rows > 0 && i == 3) t->row[t->rows - 1].thesis[most] = 3.6;
        if (t->rows > 0 && i == 4) t->row[t->rows - 1].thesis[most] = 5.2;
        if (t->rows > 0 && i == 4) t->row[t->rows - 1].thesis[most + 1] = 2.6;
    }
    thesis_note(t,
                "medians of %d, iterations of table 3.3; a worker is a thread, beside the "
                "accumulator's; the thesis: 8 cores",
                (int)o->repeats);
    return status;
}

/* The improvements of section 6.2.1 in their order, then the sizes of pages and of subtasks. */
tb_status poulsen_fill_ladder(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *label;
        tb_storage storage;
        tb_poulsen_csp csp;
    } STEPS[] = {
        {"dense updates", TB_STORAGE_FACTORIZED, {.compressed = false}},
        {"compressed updates", TB_STORAGE_FACTORIZED, {.compressed = true}},
        {"two w", TB_STORAGE_FACTORIZED, {.compressed = true, .double_w = true}},
        {"lookahead",
         TB_STORAGE_FACTORIZED,
         {.compressed = true, .double_w = true, .lookahead = true}},
        {"pages of 10", TB_STORAGE_FACTORIZED, {.compressed = true, .double_w = true, .page = 10}},
        {"pages of 50", TB_STORAGE_FACTORIZED, {.compressed = true, .double_w = true, .page = 50}},
        {"pages of 100",
         TB_STORAGE_FACTORIZED,
         {.compressed = true, .double_w = true, .page = 100}},
        {"pages of 1000",
         TB_STORAGE_FACTORIZED,
         {.compressed = true, .double_w = true, .page = 1000}},
        {"pages of 100, own channels",
         TB_STORAGE_FACTORIZED,
         {.compressed = true, .double_w = true, .page = 100, .own_channels = true}},
        {"T, a range a worker", TB_STORAGE_T, {.own_channels = true, .subtasks = 1}},
        {"T, 10 subtasks", TB_STORAGE_T, {.own_channels = true, .subtasks = 10}},
        {"T, 100 subtasks", TB_STORAGE_T, {.own_channels = true, .subtasks = 100}}};
    const char *scene = o->scene != NULL ? o->scene : "poulsen_grid_24";
    const int most = o->threads > 0 ? (int)o->threads : POULSEN_MOST_THREADS;
    tb_poulsen_options method = jacobi(20, TB_STORAGE_FACTORIZED);
    tb_poulsen_result result = {0};
    t->row_key = "method";
    thesis_add_column(t, "one_worker", "ms");
    thesis_add_column(t, "workers", "ms");
    thesis_add_column(t, "over_one", "");
    thesis_add_column(t, "ahead", "");
    thesis_add_column(t, "reductions", "");
    tb_status status = time_iteration(scene, &method, o->repeats,
                                      &thesis_add_row(t, "sequential")->here[0], error);
    method.processes = TB_POULSEN_CSP;
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0] && status == TB_OK; i++) {
        thesis_row *row = thesis_add_row(t, STEPS[i].label);
        method.storage = STEPS[i].storage;
        method.csp = STEPS[i].csp;
        method.threads = 1;
        status = time_iteration(scene, &method, o->repeats, &row->here[0], error);
        method.threads = most;
        if (status == TB_OK)
            status = time_iteration(scene, &method, o->repeats, &row->here[1], error);
        if (status == TB_OK) status = tb_poulsen_solve(scene, &method, &result, error);
        row->here[2] = row->here[0] / row->here[1];
        if (STEPS[i].csp.lookahead) row->here[3] = result.ahead;
        if (STEPS[i].csp.lookahead) row->thesis[3] = 0.175; /* 15 to 20 % on 8 cores */
        row->here[4] = result.reductions;
    }
    thesis_note(t,
                "%s, medians of %d, 20 iterations; workers %d; ahead: share of contacts solved "
                "by lookahead",
                scene, (int)o->repeats, most);
    return status;
}

/* Section 7.1: 50 iterations. */
tb_status poulsen_fill_naive(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *scene;
        double one, eight;
    } GAMMAS[] = {{"poulsen_grid_8", 246, 306},
                  {"poulsen_grid_40", 7921, 7976},
                  {"poulsen_pile_40", NAN, NAN},
                  {"poulsen_pile_80", NAN, NAN}};
    static const char *const COLUMNS[] = {"workers_1", "workers_2", "workers_4", "workers_8"};
    tb_poulsen_options method = tb_poulsen_defaults();
    tb_status status = TB_OK;
    method.processes = TB_POULSEN_CSP;
    method.colouring = TB_POULSEN_NAIVE;
    for (int k = 0; k < 4; k++) thesis_add_column(t, COLUMNS[k], "gamma");
    for (size_t i = 0; i < sizeof GAMMAS / sizeof GAMMAS[0] && status == TB_OK; i++) {
        if (o->scene != NULL && strcmp(o->scene, GAMMAS[i].scene) != 0) continue;
        thesis_row *row = thesis_add_row(t, GAMMAS[i].scene);
        for (int k = 0; k < 4 && status == TB_OK; k++) {
            tb_poulsen_result result = {.gamma = NAN};
            method.threads = 1 << k;
            status = tb_poulsen_solve(GAMMAS[i].scene, &method, &result, error);
            row->here[k] = result.gamma;
            if (status == TB_OK && interrupt_requested()) status = TB_CANCELLED;
        }
        row->thesis[0] = GAMMAS[i].one;
        row->thesis[3] = GAMMAS[i].eight;
    }
    thesis_note(t, "50 iterations; the thesis: little change with cores on the piles");
    return status;
}

/* Figures 7.5 and 7.6; sweeps of section 7.2.4. */
tb_status poulsen_fill_csp_sweeps(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *label;
        tb_storage storage;
        tb_poulsen_colouring colouring;
        double sweeps; /* the medium grid */
    } METHODS[] = {{"naive", TB_STORAGE_FACTORIZED, TB_POULSEN_NAIVE, NAN},
                   {"rigid", TB_STORAGE_FACTORIZED, TB_POULSEN_RIGID, NAN},
                   {"relaxed", TB_STORAGE_FACTORIZED, TB_POULSEN_RELAXED, 57},
                   {"relaxed T", TB_STORAGE_T, TB_POULSEN_RELAXED, 65}};
    const char *scene = o->scene != NULL ? o->scene : "poulsen_grid_24";
    const bool medium = strcmp(scene, "poulsen_grid_24") == 0;
    tb_poulsen_options method = tb_poulsen_defaults();
    tb_poulsen_result result;
    t->row_key = "method";
    const int most = poulsen_thread_columns(o, t, "s");
    thesis_add_column(t, "sweeps_1", "");
    thesis_add_column(t, "sweeps", "");
    thesis_add_column(t, "over_one", "");
    tb_status status = tb_poulsen_solve(scene, &method, &result, error);
    if (status != TB_OK) return status;
    const double gamma = result.gamma;
    thesis_row *first = thesis_add_row(t, "sequential Gauss-Seidel");
    first->here[0] = result.seconds;
    first->here[most] = method.iterations;
    first->thesis[0] = medium ? 3.24 : NAN;
    method.processes = TB_POULSEN_CSP;
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0] && status == TB_OK; i++) {
        thesis_row *row = thesis_add_row(t, METHODS[i].label);
        double best = INFINITY, sweeps = NAN;
        uint64_t hash;
        method.storage = METHODS[i].storage;
        method.colouring = METHODS[i].colouring;
        for (int n = 1; n <= most && status == TB_OK; n++) {
            method.threads = n;
            sweeps = NAN;
            status = poulsen_sweeps_to(scene, method, gamma, &sweeps, error);
            if (n == 1) row->here[most] = sweeps;
            if (status != TB_OK || isnan(sweeps)) continue;
            method.iterations = (int32_t)sweeps;
            status = poulsen_time(scene, &method, o->repeats, &row->here[n - 1], &hash, error);
            best = fmin(best, row->here[n - 1]);
        }
        row->here[most + 1] = sweeps;
        row->thesis[most + 1] = medium ? METHODS[i].sweeps : NAN;
        row->here[most + 2] = row->here[0] / best;
        if (medium && i == 2) row->thesis[most + 2] = 2.6;
    }
    thesis_note(t,
                "%s, medians of %d; to the gamma %.4g of 50 sequential sweeps; sweeps: of one "
                "worker, and of all",
                scene, (int)o->repeats, gamma);
    return status;
}

/* Section 7.2: the unsafe colour last, or first. Sweeps to the gamma of 50 sequential ones. */
tb_status poulsen_fill_order(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const NAMES[] = {"poulsen_grid_8", "poulsen_grid_24", "poulsen_pile_80"};
    static const tb_storage STORAGES[] = {TB_STORAGE_FACTORIZED, TB_STORAGE_T};
    thesis_add_column(t, "last", "sweeps");
    thesis_add_column(t, "first", "sweeps");
    thesis_add_column(t, "last_T", "sweeps");
    thesis_add_column(t, "first_T", "sweeps");
    tb_status status = TB_OK;
    for (int i = 0; i < 3 && status == TB_OK; i++) {
        if (o->scene != NULL && strcmp(o->scene, NAMES[i]) != 0) continue;
        tb_poulsen_options method = tb_poulsen_defaults();
        tb_poulsen_result result = {0};
        thesis_row *row = thesis_add_row(t, NAMES[i]);
        status = tb_poulsen_solve(NAMES[i], &method, &result, error);
        method.colouring = TB_POULSEN_RELAXED;
        method.threads = (int32_t)o->threads;
        for (int k = 0; k < 4 && status == TB_OK; k++) {
            method.storage = STORAGES[k / 2];
            method.unsafe_first = k % 2 != 0;
            status = poulsen_sweeps_to(NAMES[i], method, result.gamma, &row->here[k], error);
        }
    }
    thesis_note(t, "to the gamma of 50 sequential sweeps; the thesis: last converges faster");
    return status;
}

/* Section 6.2: workers end by a status in a message, or by poisoned channels. */
tb_status poulsen_fill_shutdown(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const char *scene = o->scene != NULL ? o->scene : "poulsen_grid_8";
    static const char *const WAYS[] = {"status", "poison"};
    tb_poulsen_options method = jacobi(63, TB_STORAGE_FACTORIZED);
    tb_status status = TB_OK;
    t->row_key = "way";
    thesis_add_column(t, "iterations", "s");
    thesis_add_column(t, "end", "us");
    method.processes = TB_POULSEN_CSP;
    method.threads = (int32_t)o->threads;
    for (int i = 0; i < 2 && status == TB_OK; i++) {
        double iterations = 0, end = INFINITY;
        tb_poulsen_result result = {0};
        uint64_t hash;
        method.csp.poison = i == 1;
        status = poulsen_time(scene, &method, o->repeats, &iterations, &hash, error);
        for (int64_t k = 0; k < o->repeats && status == TB_OK; k++) {
            status = tb_poulsen_solve(scene, &method, &result, error);
            end = fmin(end, result.shutdown_seconds);
        }
        thesis_row *row = thesis_add_row(t, WAYS[i]);
        row->here[0] = iterations;
        row->here[1] = 1e6 * end;
    }
    thesis_note(
        t,
        "%s, factorized Jacobi, 63 iterations; the thesis: poison by exceptions takes about "
        "10 %% longer",
        scene);
    return status;
}

/* Section 6.2: waits of the workers, and how much the times of their tasks differ. */
tb_status poulsen_fill_waits(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const char *scene = o->scene != NULL ? o->scene : "poulsen_grid_24";
    const int most = o->threads > 0 && o->threads < POULSEN_MOST_THREADS ? (int)o->threads
                                                                         : POULSEN_MOST_THREADS;
    tb_status status = TB_OK;
    t->row_key = "workers";
    thesis_add_column(t, "waited", "");
    thesis_add_column(t, "jitter", "");
    thesis_add_column(t, "waited_T", "");
    thesis_add_column(t, "jitter_T", "");
    for (int n = 1; n <= most && status == TB_OK; n *= 2) {
        char label[THESIS_LABEL];
        snprintf(label, sizeof label, "%d", n);
        thesis_row *row = thesis_add_row(t, label);
        for (int k = 0; k < 2 && status == TB_OK; k++) {
            tb_poulsen_result result = {0};
            tb_poulsen_options method = jacobi(50, k == 0 ? TB_STORAGE_FACTORIZED : TB_STORAGE_T);
            method.processes = TB_POULSEN_CSP;
            method.threads = n;
            status = tb_poulsen_solve(scene, &method, &result, error);
            row->here[2 * k] = result.waited;
            row->here[2 * k + 1] = result.jitter;
            if (status == TB_OK && interrupt_requested()) status = TB_CANCELLED;
        }
        row->thesis[1] = n == 8 ? 0.1 : NAN;
    }
    thesis_note(t,
                "%s, Jacobi, 50 iterations: share of the workers' time spent waiting for orders; "
                "spread of a worker's tasks over their mean; the thesis: up to 10 %% jitter",
                scene);
    return status;
}
