/* Poulsen's tables: counts of his scenes, iterations and quality, times on any number of threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "bench/bench_poulsen.h"

/* His table 3.2, and the colours of section 7.3: sizes of the first-free ones with the unsafe one last,
 * numbers of balanced ones. 0: not given. */
static const struct {
    const char *scene;
    double bodies, contacts, nnz, greedy[4], balanced;
} SCENES[] = {{"poulsen_grid_8", 513, 1408, 17728, {0}, 0},
              {"poulsen_grid_24", 13825, 40320, 757824, {6912, 5329, 570, 7}, 580},
              {"poulsen_grid_40", 64001, 188800, 4587840, {0}, 0},
              {"poulsen_pile_40", 64001, 6605, 7415, {0}, 0},
              {"poulsen_pile_80", 512001, 52909, 58631, {50125, 50125, 2784, 2}, 3}};
enum { SCENES_COUNT = sizeof SCENES / sizeof SCENES[0] };

static double given(double value)
{
    return value > 0 ? value : NAN;
}

static json_t *colours_json(const tb_poulsen_counts *c)
{
    json_t *object = json_object(), *sizes = json_array();
    for (int32_t i = 0; i < c->colours; i++) json_array_append_new(sizes, json_integer(c->size[i]));
    json_object_set_new(object, "colours", sizes);
    json_object_set_new(object, "unsafe_colours", json_integer(c->unsafe));
    json_object_set_new(object, "largest_degree", json_integer(c->largest_degree));
    return object;
}

static tb_status fill_counts(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const COLUMNS[] = {"bodies",
                                          "contacts",
                                          "nnz",
                                          "largest_colour",
                                          "smallest_safe",
                                          "unsafe_contacts",
                                          "merged_colours",
                                          "first_free_colours",
                                          "balanced_colours",
                                          "balanced_smallest",
                                          "balanced_largest"};
    for (int k = 0; k < 11; k++) thesis_add_column(t, COLUMNS[k], "");
    tb_status status = TB_OK;
    for (int i = 0; i < SCENES_COUNT && status == TB_OK; i++) {
        tb_poulsen_counts c;
        if (o->scene != NULL && strcmp(o->scene, SCENES[i].scene) != 0) continue;
        status = tb_poulsen_count(SCENES[i].scene, &c, error);
        if (status != TB_OK) return status;
        thesis_row *row = thesis_add_row(t, SCENES[i].scene);
        double largest = 0, smallest = INFINITY;
        for (int32_t k = 0; k < c.colours - c.unsafe; k++) {
            largest = fmax(largest, c.size[k]);
            smallest = fmin(smallest, c.size[k]);
        }
        const double here[] = {c.bodies,           c.contacts,
                               (double)c.nnz,      largest,
                               smallest,           c.unsafe ? c.size[c.colours - 1] : 0,
                               c.colours,          c.greedy_colours,
                               c.balanced_colours, c.balanced_smallest,
                               c.balanced_largest};
        const double thesis[] = {SCENES[i].bodies,
                                 SCENES[i].contacts,
                                 SCENES[i].nnz,
                                 given(SCENES[i].greedy[0]),
                                 given(SCENES[i].greedy[1]),
                                 given(SCENES[i].greedy[2]),
                                 given(SCENES[i].greedy[3]),
                                 NAN,
                                 given(SCENES[i].balanced),
                                 NAN,
                                 NAN};
        memcpy(row->here, here, sizeof here);
        memcpy(row->thesis, thesis, sizeof thesis);
        if (i == 1) { /* "69 or 70" */
            row->thesis[9] = 69;
            row->thesis[10] = 70;
        }
        if (i == 4) {
            row->thesis[9] = 17636;
            row->thesis[10] = 17637;
        }
        row->more = colours_json(&c);
    }
    thesis_note(t, "the ground is a body of the contact graph; colours of less than a tenth of all "
                   "contacts are merged into one that is unsafe, the last");
    return status;
}

/* ---- iterations and quality ---- */

/* Tables 3.3 and 3.5 (sequential, factorized) and section 7.4: gamma and epsilon of Gauss-Seidel, sweeps
 * that others take to its gamma. 0: not given. */
static const struct {
    const char *scene;
    double gamma, epsilon, jacobi, relaxed, balanced;
    bool pile; /* its velocities are not known, so gamma and epsilon cannot be compared */
} QUALITY[] = {{"poulsen_grid_8", 247, 0.088, 63, 0, 0, false},
               {"poulsen_grid_24", 2850, 0.090, 66, 57, 49, false},
               {"poulsen_grid_40", 7920, 0.090, 65, 0, 0, false},
               {"poulsen_pile_40", 0.000219, 0.00036, 63, 0, 0, true},
               {"poulsen_pile_80", 0.0148, 0.0073, 65, 51, 50, true}};
enum { QUALITY_COUNT = sizeof QUALITY / sizeof QUALITY[0], MOST_SWEEPS = 200 };

tb_status poulsen_sweeps_to(const char *scene, tb_poulsen_options o, double gamma, double *sweeps,
                            tb_error *error)
{
    tb_poulsen_result result;
    o.gamma = gamma;
    o.iterations = MOST_SWEEPS;
    if (interrupt_requested()) return TB_CANCELLED;
    const tb_status status = tb_poulsen_solve(scene, &o, &result, error);
    if (status == TB_OK && result.gamma <= gamma) *sweeps = result.iterations;
    return status;
}

static tb_status fill_quality(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const COLUMNS[] = {"gamma",    "epsilon",  "jacobi",    "relaxed",   "rigid",
                                          "balanced", "jacobi_T", "relaxed_T", "balanced_T"};
    for (int k = 0; k < 9; k++) thesis_add_column(t, COLUMNS[k], k < 2 ? "" : "sweeps");
    tb_status status = TB_OK;
    for (int i = 0; i < QUALITY_COUNT && status == TB_OK; i++) {
        const char *scene = QUALITY[i].scene;
        if (o->scene != NULL ? strcmp(o->scene, scene) != 0 : i == 2) continue;
        tb_poulsen_options method = tb_poulsen_defaults();
        tb_poulsen_result result;
        thesis_row *row = thesis_add_row(t, scene);
        status = tb_poulsen_solve(scene, &method, &result, error);
        row->here[0] = result.gamma;
        row->here[1] = result.epsilon;
        method.threads = (int32_t)o->threads;
        for (int k = 0; k < 7 && status == TB_OK; k++) {
            method.storage = k < 4 ? TB_STORAGE_FACTORIZED : TB_STORAGE_T;
            method.jacobi = k == 0 || k == 4;
            method.colouring = k == 2             ? TB_POULSEN_RIGID
                               : k == 3 || k == 6 ? TB_POULSEN_BALANCED
                                                  : TB_POULSEN_RELAXED;
            status = poulsen_sweeps_to(scene, method, result.gamma, &row->here[2 + k], error);
        }
        row->thesis[0] = QUALITY[i].pile ? NAN : QUALITY[i].gamma;
        row->thesis[1] = QUALITY[i].pile ? NAN : QUALITY[i].epsilon;
        row->thesis[2] = row->thesis[6] = given(QUALITY[i].jacobi);
        row->thesis[3] = given(QUALITY[i].relaxed);
        row->thesis[5] = given(QUALITY[i].balanced);
    }
    thesis_note(
        t, "sequential Gauss-Seidel, 50 sweeps: gamma and epsilon (table 3.3); the others: sweeps "
           "to the same gamma (table 3.3, section 7.4)");
    return status;
}

/* ---- times ---- */

static double median_seconds(double *seconds, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        for (int64_t k = i; k > 0 && seconds[k] < seconds[k - 1]; k--) {
            const double s = seconds[k];
            seconds[k] = seconds[k - 1];
            seconds[k - 1] = s;
        }
    return seconds[count / 2];
}

tb_status poulsen_time(const char *scene, const tb_poulsen_options *method, int64_t repeats,
                       double *seconds, uint64_t *hash, tb_error *error)
{
    double times[1000];
    tb_poulsen_result result = {0};
    tb_status status = TB_OK;
    for (int64_t i = 0; i < repeats && status == TB_OK; i++) {
        status = tb_poulsen_solve(scene, method, &result, error);
        times[i] = result.seconds;
        if (interrupt_requested()) status = TB_CANCELLED;
    }
    if (status == TB_OK) *seconds = median_seconds(times, repeats);
    *hash = result.hash;
    return status;
}

/* Jacobi (sweeps of table 3.3) and coloured Gauss-Seidel (50) by threads, against one thread of its own
 * and against sequential factorized Gauss-Seidel. */
static tb_status fill_threads(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *label;
        bool jacobi;
        tb_storage storage;
        tb_poulsen_colouring colouring;
        double own, sequential; /* the large pile on 8 cores */
    } METHODS[] = {{"jacobi", true, TB_STORAGE_FACTORIZED, TB_POULSEN_SEQUENTIAL, 5.2, NAN},
                   {"jacobi T", true, TB_STORAGE_T, TB_POULSEN_SEQUENTIAL, 7.7, NAN},
                   {"relaxed", false, TB_STORAGE_FACTORIZED, TB_POULSEN_RELAXED, NAN, NAN},
                   {"relaxed A", false, TB_STORAGE_DENSE, TB_POULSEN_RELAXED, NAN, NAN},
                   {"relaxed T", false, TB_STORAGE_T, TB_POULSEN_RELAXED, 6.6, 8.4},
                   {"rigid", false, TB_STORAGE_FACTORIZED, TB_POULSEN_RIGID, NAN, NAN},
                   {"balanced", false, TB_STORAGE_FACTORIZED, TB_POULSEN_BALANCED, NAN, NAN},
                   {"balanced T", false, TB_STORAGE_T, TB_POULSEN_BALANCED, NAN, NAN}};
    const char *scene = o->scene != NULL ? o->scene : "poulsen_pile_80";
    const bool large_pile = strcmp(scene, "poulsen_pile_80") == 0 && o->threads == 8;
    tb_poulsen_options method = tb_poulsen_defaults();
    double sequential = 0, one = 0, many = 0;
    uint64_t hash, hash_of_many;
    t->row_key = "method";
    thesis_add_column(t, "one_thread", "s");
    thesis_add_column(t, "threads", "s");
    thesis_add_column(t, "over_one_thread", "");
    thesis_add_column(t, "over_sequential", "");
    thesis_add_column(t, "same_bytes", "");
    tb_status status = poulsen_time(scene, &method, o->repeats, &sequential, &hash, error);
    thesis_row *first = thesis_add_row(t, "sequential Gauss-Seidel");
    first->here[0] = sequential;
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0] && status == TB_OK; i++) {
        method = tb_poulsen_defaults();
        method.jacobi = METHODS[i].jacobi;
        method.storage = METHODS[i].storage;
        method.colouring = METHODS[i].colouring;
        if (method.jacobi) method.iterations = 65;
        status = poulsen_time(scene, &method, o->repeats, &one, &hash, error);
        method.threads = (int32_t)o->threads;
        if (status == TB_OK)
            status = poulsen_time(scene, &method, o->repeats, &many, &hash_of_many, error);
        if (status != TB_OK) break;
        thesis_row *row = thesis_add_row(t, METHODS[i].label);
        row->here[0] = one;
        row->here[1] = many;
        row->here[2] = one / many;
        row->here[3] = sequential / many;
        row->here[4] = hash == hash_of_many;
        row->thesis[2] = large_pile ? METHODS[i].own : NAN;
        row->thesis[3] = large_pile ? METHODS[i].sequential : NAN;
    }
    thesis_note(t, "%s, medians of %d; 50 sweeps, Jacobi 65; set-up left out; threads %d (0: all)",
                scene, (int)o->repeats, (int)o->threads);
    return status;
}

/* ---- equal quality ---- */

int poulsen_thread_columns(const thesis_options *o, thesis_table *t, const char *unit)
{
    static const char *const NAMES[POULSEN_MOST_THREADS] = {"threads_1", "threads_2", "threads_3",
                                                            "threads_4", "threads_5", "threads_6",
                                                            "threads_7", "threads_8"};
    const bool few = o->threads > 0 && o->threads < POULSEN_MOST_THREADS;
    const int most = few ? (int)o->threads : POULSEN_MOST_THREADS;
    for (int n = 0; n < most; n++) thesis_add_column(t, NAMES[n], unit);
    return most;
}

/* Seconds to the gamma of 50 sequential Gauss-Seidel sweeps, by threads: figures 7.5 to 7.10. The sweeps
 * are counted first, so that the timed solves compute no gamma. The thesis's times are those that its text
 * gives for 8 cores (tables 3.5 and 6.3, section 7.5). */
static tb_status fill_equal(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *label;
        bool jacobi;
        tb_storage storage;
        tb_poulsen_colouring colouring;
        double sweeps, seconds; /* the large pile; seconds on 8 cores; 0: not given */
    } METHODS[] = {{"jacobi", true, TB_STORAGE_FACTORIZED, TB_POULSEN_SEQUENTIAL, 65, 1.93},
                   {"jacobi T", true, TB_STORAGE_T, TB_POULSEN_SEQUENTIAL, 65, 0.876},
                   {"relaxed", false, TB_STORAGE_FACTORIZED, TB_POULSEN_RELAXED, 51, 0},
                   {"relaxed T", false, TB_STORAGE_T, TB_POULSEN_RELAXED, 51, 0.86},
                   {"balanced", false, TB_STORAGE_FACTORIZED, TB_POULSEN_BALANCED, 50, 0},
                   {"balanced T", false, TB_STORAGE_T, TB_POULSEN_BALANCED, 50, 0}};
    const char *scene = o->scene != NULL ? o->scene : "poulsen_pile_80";
    const bool large_pile = strcmp(scene, "poulsen_pile_80") == 0;
    tb_poulsen_options method = tb_poulsen_defaults();
    tb_poulsen_result result;
    uint64_t hash, first_hash = 0;
    t->row_key = "method";
    thesis_add_column(t, "sweeps", "");
    const int most = poulsen_thread_columns(o, t, "s");
    thesis_add_column(t, "over_sequential", "");
    thesis_add_column(t, "same_bytes", "");
    tb_status status = tb_poulsen_solve(scene, &method, &result, error);
    thesis_row *first = thesis_add_row(t, "sequential Gauss-Seidel");
    if (status == TB_OK)
        status = poulsen_time(scene, &method, o->repeats, &first->here[1], &hash, error);
    first->here[0] = method.iterations;
    first->thesis[0] = 50;
    first->thesis[1] = large_pile ? 7.26 : NAN;
    const double gamma = result.gamma, sequential = first->here[1];
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0] && status == TB_OK; i++) {
        double sweeps = NAN, best = INFINITY;
        method = tb_poulsen_defaults();
        method.jacobi = METHODS[i].jacobi;
        method.storage = METHODS[i].storage;
        method.colouring = METHODS[i].colouring;
        method.threads = (int32_t)o->threads;
        status = poulsen_sweeps_to(scene, method, gamma, &sweeps, error);
        if (status != TB_OK) break;
        thesis_row *row = thesis_add_row(t, METHODS[i].label);
        row->here[0] = sweeps;
        row->thesis[0] = large_pile ? METHODS[i].sweeps : NAN;
        if (isnan(sweeps)) continue; /* not reached */
        method.iterations = (int32_t)sweeps;
        row->here[most + 2] = 1;
        for (int n = 1; n <= most && status == TB_OK; n++) {
            method.threads = n;
            status = poulsen_time(scene, &method, o->repeats, &row->here[n], &hash, error);
            best = fmin(best, row->here[n]);
            if (n == 1) first_hash = hash;
            if (hash != first_hash) row->here[most + 2] = 0;
        }
        row->here[most + 1] = sequential / best;
        if (large_pile && most == POULSEN_MOST_THREADS) {
            row->thesis[most] = given(METHODS[i].seconds);
            row->thesis[most + 1] = given(METHODS[i].seconds > 0 ? 7.26 / METHODS[i].seconds : 0);
        }
    }
    thesis_note(
        t, "%s, medians of %d; sweeps to the gamma %.4g of 50 sequential ones; set-up left out",
        scene, (int)o->repeats, gamma);
    return status;
}

/* ---- the card ---- */

/* Iterations on the card beside sequential Gauss-Seidel on this machine: factorized, as in the thesis, and
 * on T, the quickest sequential form. */
static tb_status fill_card(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *label;
        bool jacobi;
        tb_storage storage;
        tb_poulsen_colouring colouring;
    } METHODS[] = {{"jacobi", true, TB_STORAGE_FACTORIZED, TB_POULSEN_SEQUENTIAL},
                   {"jacobi A", true, TB_STORAGE_DENSE, TB_POULSEN_SEQUENTIAL},
                   {"jacobi T", true, TB_STORAGE_T, TB_POULSEN_SEQUENTIAL},
                   {"relaxed", false, TB_STORAGE_FACTORIZED, TB_POULSEN_RELAXED},
                   {"relaxed A", false, TB_STORAGE_DENSE, TB_POULSEN_RELAXED},
                   {"relaxed T", false, TB_STORAGE_T, TB_POULSEN_RELAXED},
                   {"rigid", false, TB_STORAGE_FACTORIZED, TB_POULSEN_RIGID},
                   {"rigid T", false, TB_STORAGE_T, TB_POULSEN_RIGID},
                   {"balanced", false, TB_STORAGE_FACTORIZED, TB_POULSEN_BALANCED},
                   {"balanced T", false, TB_STORAGE_T, TB_POULSEN_BALANCED}};
    const char *scene = o->scene != NULL ? o->scene : "poulsen_pile_80";
    double sequential = 0, best = 0;
    uint64_t hash, hash_of_card;
    t->row_key = "method";
    thesis_add_column(t, "gpu", "s");
    thesis_add_column(t, "over_sequential", "");
    thesis_add_column(t, "over_sequential_T", "");
    thesis_add_column(t, "same_bytes", "");
    tb_poulsen_options method = tb_poulsen_defaults();
    tb_status status = poulsen_time(scene, &method, o->repeats, &sequential, &hash, error);
    method.storage = TB_STORAGE_T;
    if (status == TB_OK) status = poulsen_time(scene, &method, o->repeats, &best, &hash, error);
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0] && status == TB_OK; i++) {
        double here = 0, there = 0;
        method = tb_poulsen_defaults();
        method.jacobi = METHODS[i].jacobi;
        method.storage = METHODS[i].storage;
        method.colouring = METHODS[i].colouring;
        if (method.jacobi) method.iterations = 65;
        method.threads = (int32_t)o->threads;
        status = poulsen_time(scene, &method, 1, &here, &hash, error);
        method.backend = (tb_backend_choice)o->backend;
        if (status == TB_OK)
            status = poulsen_time(scene, &method, o->repeats, &there, &hash_of_card, error);
        if (status != TB_OK) break;
        thesis_row *row = thesis_add_row(t, METHODS[i].label);
        row->here[0] = there;
        row->here[1] = sequential / there;
        row->here[2] = best / there;
        row->here[3] = hash == hash_of_card;
    }
    thesis_note(t,
                "%s, medians of %d; 50 sweeps, Jacobi 65; copies and set-up left out; sequential "
                "Gauss-Seidel here: %.4g s factorized, %.4g s on T",
                scene, (int)o->repeats, sequential, best);
    return status;
}

const thesis_entry thesis_poulsen[] = {
    {"counts", "bodies, contacts, blocks of A and colours (table 3.2, section 7.3)", false,
     fill_counts},
    {"quality", "iterations, gamma and epsilon (tables 3.3 and 3.5, section 7.4)", true,
     fill_quality},
    {"equal", "seconds to equal gamma by threads (figures 7.5 to 7.10)", true, fill_equal},
    {"card", "times on the card with --backend gpu, beside one core", true, fill_card},
    {"threads", "times by threads (tables 6.1 to 6.3, figures 7.5 to 7.10)", true, fill_threads},
    {"extreme", "a contact is a task: ms an iteration by workers (figure 6.2)", true,
     poulsen_fill_extreme},
    {"csp", "Jacobi by processes: ms an iteration by workers (tables 6.1, 6.2, figures 6.4, 6.5)",
     true, poulsen_fill_csp},
    {"ladder", "improvements of the processes, one after the other (section 6.2.1)", true,
     poulsen_fill_ladder},
    {"naive", "gamma of naive Gauss-Seidel by workers (section 7.1)", true, poulsen_fill_naive},
    {"csp-sweeps", "coloured processes, seconds to equal gamma (figures 7.5, 7.6)", true,
     poulsen_fill_csp_sweeps},
    {"order", "relaxed sweeps with the unsafe colour last or first (section 7.2)", true,
     poulsen_fill_order},
    {"shutdown", "processes that end by a status or by poison (section 6.2)", true,
     poulsen_fill_shutdown},
    {"waits", "waits of the processes and spread of their tasks (section 6.2)", true,
     poulsen_fill_waits},
    {NULL, NULL, false, NULL}};
