/* Nützi's random systems (section 6.1): the time of an iteration of every variant, figures 6.1 to 6.3,
 * and the cross-check of section 3.7.1 against the processor's loops in the card's order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_nuetzi_random.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/progress.h"

enum { USUAL_CONTACTS = 500, SIZES = 4, ITERATIONS = 10, MOST_REPEATS = 101, SEED = 5 };

/* The thesis's figures for an iteration of a variant on a GTX 580 in double (section 6.3, appendix B):
 * speedup over one core, and time over that of variant 5. 0: only a curve is given, which is lost. */
static const struct {
    const char *variant;
    double speedup, over_jor5;
} THESIS[] = {{"jor1", 0, 1},          {"jor2", 0, 1},          {"jor5", 16, 1},
              {"jor5-single", 0, 0.5}, {"jor7", 1.5, 0},        {"full-sor-32", 0, 2},
              {"full-sor-64", 0, 2},   {"relaxed-sor-4", 0, 2}, {"relaxed-sor-128", 0, 1}};

/* Variant 5 in single precision; the thesis does not number it separately. */
static const char SINGLE[] = "jor5-single";

typedef struct experiment {
    tb_prox_system *system;
    double *lambda, *other; /* 3 numbers a contact */
    size_t rows;
} experiment;

static int32_t contacts_of(const thesis_options *o)
{
    return o->contacts > 0 ? (int32_t)o->contacts : USUAL_CONTACTS;
}

static tb_status open_experiment(experiment *e, int32_t contacts, tb_error *error)
{
    e->rows = 3 * (size_t)contacts;
    e->lambda = calloc(e->rows, sizeof *e->lambda);
    e->other = calloc(e->rows, sizeof *e->other);
    if (!e->lambda || !e->other)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for %d contacts",
                        (int)contacts);
    return tb_prox_system_random(contacts, SEED, 1, &e->system, error);
}

static void close_experiment(experiment *e)
{
    tb_prox_system_destroy(e->system);
    free(e->lambda);
    free(e->other);
}

/* Ten iterations from zero without a stop test. */
static tb_status run_once(experiment *e, const char *variant, tb_backend_choice backend,
                          const thesis_options *o, tb_prox_result *result, tb_error *error)
{
    tb_prox_options options = tb_prox_defaults();
    const bool single = strcmp(variant, SINGLE) == 0;
    options.variant = single ? "jor5" : variant;
    options.precision = single ? TB_FLOAT : TB_DOUBLE;
    options.backend = backend;
    options.threads = (int32_t)o->threads;
    options.iterations = ITERATIONS;
    options.check_period = 0;
    if (interrupt_requested()) return TB_CANCELLED;
    memset(e->lambda, 0, e->rows * sizeof *e->lambda);
    return tb_prox_iterate(e->system, &options, e->lambda, result, error);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median and largest time of an iteration, and bytes and copies of the last run. */
typedef struct measure {
    double median, high, copy;
    int64_t bytes;
} measure;

static tb_status measure_variant(experiment *e, const char *variant, tb_backend_choice backend,
                                 const thesis_options *o, measure *m, tb_error *error)
{
    double seconds[MOST_REPEATS];
    const int repeats = o->repeats < MOST_REPEATS ? (int)o->repeats : MOST_REPEATS;
    tb_prox_result result = {0};
    /* the first run pays for loading a card's kernels */
    tb_status status = run_once(e, variant, backend, o, &result, error);
    for (int k = 0; k < repeats && status == TB_OK; k++) {
        status = run_once(e, variant, backend, o, &result, error);
        seconds[k] = result.seconds / ITERATIONS;
    }
    if (status != TB_OK) return status;
    qsort(seconds, (size_t)repeats, sizeof *seconds, compare);
    *m = (measure){.median = (seconds[(repeats - 1) / 2] + seconds[repeats / 2]) / 2,
                   .high = seconds[repeats - 1],
                   .copy = result.copy_seconds,
                   .bytes = result.bytes};
    return TB_OK;
}

static bool is_wanted(const thesis_options *o, const char *variant)
{
    return o->solver == NULL || strcmp(o->solver, variant) == 0;
}

static void fill_row(thesis_row *row, const char *variant, const measure *m, double core,
                     double jor5)
{
    row->here[0] = 1e6 * m->median;
    row->here[1] = 1e6 * m->high;
    row->here[2] = 1e-9 * (double)m->bytes / m->median;
    row->here[3] = core / m->median;
    if (jor5 > 0) row->here[4] = m->median / jor5;
    if (m->copy > 0 && core > m->median) row->here[5] = ceil(m->copy / (core - m->median));
    for (size_t i = 0; i < sizeof THESIS / sizeof THESIS[0]; i++) {
        if (strcmp(THESIS[i].variant, variant) != 0) continue;
        if (THESIS[i].speedup > 0) row->thesis[3] = THESIS[i].speedup;
        if (THESIS[i].over_jor5 > 0) row->thesis[4] = THESIS[i].over_jor5;
    }
}

static void add_columns(thesis_table *t)
{
    thesis_add_column(t, "median", "us");
    thesis_add_column(t, "slowest", "us");
    thesis_add_column(t, "rate", "GB/s");
    thesis_add_column(t, "over_core", "");
    thesis_add_column(t, "time_over_jor5", "");
    thesis_add_column(t, "pays_from", "iterations");
}

/* The name of a row's variant: those of dense T, and variant 5 in single precision. NULL past the last. */
static const char *dense_variant(int index)
{
    int32_t v = 0;
    if (index == 0) return SINGLE;
    /* a random T has no zeros: sparse variants save nothing there */
    for (int left = index; tb_prox_variant_name(v) != NULL; v++)
        if (strncmp(tb_prox_variant_name(v), "sparse", 6) != 0 && --left == 0) break;
    return tb_prox_variant_name(v);
}

/* A row for each wanted variant of one system; `core` receives the time of jor5 on one core. */
static tb_status add_rows(experiment *e, const thesis_options *o, bool with_size, thesis_table *t,
                          measure *core, tb_error *error)
{
    const tb_backend_choice backend = (tb_backend_choice)o->backend;
    measure jor5 = {0}, m;
    tb_status status = measure_variant(e, "jor5", TB_BACKEND_CPU, o, core, error);
    if (status == TB_OK) status = measure_variant(e, "jor5", backend, o, &jor5, error);
    progress bar = progress_begin("variants", 24, o->json);
    for (int v = 0; dense_variant(v) != NULL && status == TB_OK; v++) {
        const char *variant = dense_variant(v);
        progress_update(&bar, v + 1);
        char label[THESIS_LABEL];
        if (!is_wanted(o, variant)) continue;
        status = measure_variant(e, variant, backend, o, &m, error);
        snprintf(label, sizeof label, with_size ? "%s %zu" : "%s", variant, e->rows / 3);
        if (status == TB_OK)
            fill_row(thesis_add_row(t, label), variant, &m, core->median, jor5.median);
        if (status == TB_UNSUPPORTED) {
            thesis_note(t, "skipped: %s: %s", variant, error->message);
            status = TB_OK;
        }
    }
    progress_end(&bar);
    return status;
}

tb_status nuetzi_fill_variants(const thesis_options *o, thesis_table *t, tb_error *error)
{
    experiment e = {0};
    measure core = {0};
    t->row_key = "variant";
    add_columns(t);
    tb_status status = open_experiment(&e, contacts_of(o), error);
    if (status == TB_OK) status = add_rows(&e, o, false, t, &core, error);
    if (status == TB_OK)
        thesis_note(t,
                    "%zu contacts, dense T, double unless it says single, %d iterations a run; one "
                    "core, jor5: %.4g us",
                    e.rows / 3, ITERATIONS, 1e6 * core.median);
    close_experiment(&e);
    return status;
}

/* Figures 6.1 to 6.3 over the number of contacts. */
tb_status nuetzi_fill_sizes(const thesis_options *o, thesis_table *t, tb_error *error)
{
    tb_status status = TB_OK;
    t->row_key = "variant_contacts";
    add_columns(t);
    for (int k = 1; k <= SIZES && status == TB_OK; k++) {
        experiment e = {0};
        measure core = {0};
        const int32_t contacts = (int32_t)((int64_t)contacts_of(o) * k / SIZES);
        status = open_experiment(&e, contacts > 0 ? contacts : 1, error);
        if (status == TB_OK) status = add_rows(&e, o, true, t, &core, error);
        close_experiment(&e);
    }
    thesis_note(t,
                "dense T, double unless it says single, %d iterations a run; the thesis has "
                "curves from 2000 to 4000 contacts, whose numbers are lost",
                ITERATIONS);
    return status;
}

/* ---- cross-check ---- */

/* Numbers of double precision between two numbers. */
static double apart(double a, double b)
{
    if (a == b) return 0;
    const double size = fmax(fabs(a), fabs(b));
    return fabs(a - b) / (nextafter(size, INFINITY) - size);
}

static void compare_rows(const experiment *e, thesis_row *row)
{
    double mean = 0, most = 0, failing = 0, finite = 1;
    for (size_t i = 0; i < e->rows; i++) {
        const double a = e->other[i], b = e->lambda[i], ulp = apart(a, b);
        if (!isfinite(a) || !isfinite(b)) finite = 0;
        mean += ulp / (double)e->rows;
        most = fmax(most, ulp);
        if (!(fabs(a - b) <= 1e-12 * fabs(b) + 1e-16)) failing++;
    }
    row->here[0] = mean;
    row->here[1] = most;
    row->here[2] = failing;
    row->here[3] = finite;
}

tb_status nuetzi_fill_crosscheck(const thesis_options *o, thesis_table *t, tb_error *error)
{
    experiment e = {0};
    bool agree = true;
    t->row_key = "variant";
    thesis_add_column(t, "mean", "ULP");
    thesis_add_column(t, "largest", "ULP");
    thesis_add_column(t, "failing_rows", "");
    thesis_add_column(t, "finite", "");
    tb_status status = open_experiment(&e, contacts_of(o), error);
    for (int v = 0; tb_prox_variant_name(v) != NULL && status == TB_OK; v++) {
        const char *variant = tb_prox_variant_name(v);
        tb_prox_result result;
        if (!is_wanted(o, variant)) continue;
        status = run_once(&e, variant, (tb_backend_choice)o->backend, o, &result, error);
        if (status == TB_UNSUPPORTED) {
            thesis_note(t, "skipped: %s: %s", variant, error->message);
            status = TB_OK;
            continue;
        }
        memcpy(e.other, e.lambda, e.rows * sizeof *e.other);
        if (status == TB_OK) status = run_once(&e, variant, TB_BACKEND_CPU, o, &result, error);
        if (status != TB_OK) continue;
        thesis_row *row = thesis_add_row(t, variant);
        compare_rows(&e, row);
        agree = agree && row->here[2] == 0 && row->here[3] == 1;
    }
    thesis_note(t, "T_rel 1e-12, T_abs 1e-16 N s; the processor sums in the card's order");
    close_experiment(&e);
    if (status != TB_OK || agree) return status;
    return cli_fail(error, TB_NOT_CONVERGED, "", 0, NULL,
                    "the device and the processor do not agree");
}

/* ---- parts of an iteration ---- */

/* Nützi's figure 6.4: the time of an iteration of full-sor-32 by its parts, over the number of contacts.
 *
 * As in the thesis, each part is left out in turn; its time is the time that an iteration then
 * saves. The time of step B is the excess over step A alone. Runs take turns, and the shortest of
 * each counts, since a difference of times has the noise of both. */
enum { LONGER_ALONE = 10 }; /* times the iterations, where step B is left out */

/* Each run leaves out the parts that the run before it leaves out, and one more. */
static const uint32_t LEFT_OUT[] = {
    0,
    TB_PROX_STEP_B,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL | TB_PROX_TANGENTIAL,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL | TB_PROX_TANGENTIAL | TB_PROX_WRITES,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL | TB_PROX_TANGENTIAL | TB_PROX_WRITES |
        TB_PROX_BARRIERS}; /* the last on a card only */
enum { RUNS = sizeof LEFT_OUT / sizeof LEFT_OUT[0], PARTS = RUNS - 2 };

/* The parts of figure 6.4 in the order in which they go, with the thesis's share (%) of an iteration:
 * "almost no influence", "10-20 %", "over 25 %"; NAN: only a curve, which is lost. */
static const struct {
    const char *name;
    double thesis;
} PART[PARTS] = {
    {"step_b", NAN}, {"propagation", 25}, {"normal", 0}, {"tangential", 15}, {"writes", NAN}};
static const double THESIS_BARRIERS = 20; /* % */

/* Shortest time of an iteration (s) with each set of parts left out. */
static tb_status time_runs(const tb_prox_system *system, double *lambda, const thesis_options *o,
                           double *shortest, tb_error *error)
{
    const size_t bytes = 3 * (size_t)tb_prox_system_contacts(system) * sizeof *lambda;
    const bool card = o->backend == TB_BACKEND_GPU;
    const int runs = card ? RUNS : RUNS - 1;
    tb_status status = TB_OK;
    for (int r = 0; r < RUNS; r++) shortest[r] = INFINITY;
    /* the first turn warms the caches and does not count */
    for (int64_t turn = 0; turn <= o->repeats; turn++)
        for (int r = 0; r < runs && status == TB_OK; r++) {
            tb_prox_options options = tb_prox_defaults();
            tb_prox_result result;
            options.variant = "full-sor-32";
            options.backend = (tb_backend_choice)o->backend;
            options.left_out = LEFT_OUT[r];
            options.iterations = r == 0 || card ? ITERATIONS : LONGER_ALONE * ITERATIONS;
            options.check_period = 0;
            memset(lambda, 0, bytes);
            status = tb_prox_iterate(system, &options, lambda, &result, error);
            if (status != TB_OK) break;
            const double seconds = result.seconds / options.iterations;
            if (turn > 0 && seconds < shortest[r]) shortest[r] = seconds;
            if (interrupt_requested()) status = TB_CANCELLED;
        }
    return status;
}

static void fill_parts(thesis_row *row, const double *shortest, bool card)
{
    row->here[0] = 1e6 * shortest[0];
    row->here[1] = 1e6 * shortest[1];
    row->here[2] = 1e6 * (shortest[0] - shortest[1]);
    for (int p = 0; p < PARTS; p++) {
        row->here[3 + p] = 100 * (shortest[p] - shortest[p + 1]) / shortest[0];
        row->thesis[3 + p] = PART[p].thesis;
    }
    const double rest = card ? shortest[PARTS + 1] : shortest[PARTS];
    row->here[3 + PARTS] = 100 * rest / shortest[0];
    if (card) row->here[4 + PARTS] = 100 * (shortest[PARTS] - rest) / shortest[0];
    row->thesis[4 + PARTS] = THESIS_BARRIERS;
}

static tb_status fill_size(const thesis_options *o, int32_t contacts, thesis_table *t,
                           tb_error *error)
{
    double shortest[RUNS];
    char label[THESIS_LABEL];
    tb_prox_system *system = NULL;
    double *lambda = calloc(3 * (size_t)contacts, sizeof *lambda);
    tb_status status = lambda != NULL ? tb_prox_system_random(contacts, SEED, 1, &system, error)
                                      : cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL,
                                                 "no memory for %d contacts", (int)contacts);
    if (status == TB_OK) status = time_runs(system, lambda, o, shortest, error);
    if (status == TB_OK) {
        snprintf(label, sizeof label, "%d", (int)contacts);
        fill_parts(thesis_add_row(t, label), shortest, o->backend == TB_BACKEND_GPU);
    }
    tb_prox_system_destroy(system);
    free(lambda);
    return status;
}

tb_status nuetzi_fill_breakdown(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const int32_t most = o->contacts > 0 ? (int32_t)o->contacts : USUAL_CONTACTS;
    t->row_key = "contacts";
    thesis_add_column(t, "iteration", "us");
    thesis_add_column(t, "step_a", "us");
    thesis_add_column(t, "step_b_time", "us");
    for (int p = 0; p < PARTS; p++) thesis_add_column(t, PART[p].name, "%");
    thesis_add_column(t, "rest_of_a", "%");
    thesis_add_column(t, "barriers", "%");
    tb_status status = TB_OK;
    progress bar = progress_begin("breakdown", SIZES, o->json);
    for (int k = 1; k <= SIZES && status == TB_OK; k++) {
        const int32_t contacts = (int32_t)((int64_t)most * k / SIZES);
        if (contacts > 0) status = fill_size(o, contacts, t, error);
        progress_update(&bar, k);
    }
    progress_end(&bar);
    thesis_note(t,
                "shares of an iteration; step A is timed without step B, so that its blocks of T "
                "may stay in a cache; on a card the rest holds the launches");
    thesis_note(t, "the thesis: step B grows with the square of the contacts, step A linearly; one "
                   "thread has no barriers");
    return status;
}
