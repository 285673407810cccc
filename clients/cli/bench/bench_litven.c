/* Litven's figures: banded factors (5.3), symgbmm (6.2), random programs by four programs (7.1, 7.2), and
 * the collision of nine cylinders (7.4 to 7.8). The text of the thesis gives few of the curves' numbers; a
 * cell has the thesis's number where the text states one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_schurpa.h"
#include "bench/thesis.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/progress.h"
#include "tribo_qp.h"
#include "tribo_soft.h"

enum {
    VARIABLES = 8000, /* of the thesis's random programs */
    BAND_PARTS = 8,   /* variables over half-bandwidth: 8000 over 1000 */
    SIZES = 4,        /* of the tables over sizes */
    RIGHT_SIDES = 10, /* of figure 5.3 */
    PRODUCT_COLUMNS = 64,
    COLLISION_STEPS = 107
};
static const double MS = 1e3;

static bool has_card(void)
{
    tb_device_info info;
    return tb_device_describe(TB_BACKEND_GPU, 0, &info, NULL) == TB_OK;
}

static void note_card(thesis_table *t)
{
    if (!has_card()) thesis_note(t, "no card here: its columns are empty");
}

static int32_t largest_of(const thesis_options *o)
{
    return o->contacts > 0 ? (int32_t)o->contacts : VARIABLES;
}

static tb_status no_memory(tb_error *error)
{
    return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for a band");
}

/* ---- figure 5.3: factorization and solves ---- */

/* Seconds of one factorization and of ten solves one after the other, best of the repeats. */
static tb_status time_band(const thesis_options *o, int32_t n, int32_t half, const double *hessian,
                           double *f, tb_backend_choice backend, double *factor, double *solve,
                           double *residual, tb_error *error)
{
    const tb_qp_program program = {.n = n, .half_bandwidth = half, .hessian = hessian, .f = f};
    tb_qp_options options = tb_qp_defaults();
    double *x = malloc((size_t)n * sizeof *x);
    tb_status status = x != NULL ? TB_OK : no_memory(error);
    options.backend = backend;
    for (int64_t turn = 0; turn < o->repeats && status == TB_OK; turn++) {
        tb_qp_solver *solver = NULL;
        tb_qp_result r;
        double first = 0, solves = 0;
        status = tb_qp_solver_open(&program, &options, &solver, error);
        for (int k = 0; k <= RIGHT_SIDES && status == TB_OK; k++) {
            f[k % n] += 1; /* another right-hand side */
            status = tb_qp_solver_solve(solver, f, NULL, NULL, x, NULL, &r, error);
            if (status != TB_OK) break;
            *residual = fmax(*residual, r.kkt.relative);
            if (k == 0)
                first = r.factor_seconds;
            else
                solves += r.solve_seconds;
        }
        tb_qp_solver_close(solver);
        *factor = turn == 0 ? first : fmin(*factor, first);
        *solve = turn == 0 ? solves : fmin(*solve, solves);
        if (interrupt_requested() && status == TB_OK) status = TB_CANCELLED;
    }
    free(x);
    return status;
}

static tb_status fill_band(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const int32_t most = largest_of(o), half = most / BAND_PARTS;
    double *hessian = malloc((size_t)most * ((size_t)half + 1) * sizeof *hessian);
    double *f = malloc((size_t)most * sizeof *f);
    tb_status status = hessian != NULL && f != NULL ? TB_OK : no_memory(error);
    t->row_key = "variables";
    thesis_add_series(t, "processor_factor", "ms", "factorization");
    thesis_add_series(t, "card_factor", "ms", "factorization");
    thesis_add_series(t, "processor_solve", "ms", "solves with 10 right-hand sides");
    thesis_add_series(t, "card_solve", "ms", "solves with 10 right-hand sides");
    for (int32_t i = 1; i <= SIZES && status == TB_OK; i++) {
        char label[THESIS_LABEL];
        const int32_t n = most * i / SIZES;
        snprintf(label, sizeof label, "%d", (int)n);
        thesis_row *row = thesis_add_row(t, label);
        row->residual = 0;
        status = tb_qp_random(n, half, 1, hessian, f, error);
        for (int card = 0; card <= (has_card() ? 1 : 0) && status == TB_OK; card++) {
            double factor = NAN, solve = NAN;
            status = time_band(o, n, half, hessian, f, card ? TB_BACKEND_GPU : TB_BACKEND_CPU,
                               &factor, &solve, &row->residual, error);
            row->here[card] = MS * factor;
            row->here[2 + card] = MS * solve;
        }
    }
    thesis_note(
        t,
        "half-bandwidth %d; factors with inverse diagonal blocks; right-hand sides one after "
        "the other",
        (int)half);
    thesis_note(t, "the thesis, n 8000, half-bandwidth 1000: the card factors twice as fast as its "
                   "processor; both linear in n");
    note_card(t);
    free(hessian);
    free(f);
    return status;
}

/* ---- figure 6.2: products ---- */

static tb_status fill_products(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const NAMES[] = {"processor", "naive", "shared", "gemm"};
    const int32_t most = largest_of(o), half = most / BAND_PARTS;
    const size_t numbers = (size_t)most * PRODUCT_COLUMNS;
    double *band = malloc((size_t)most * ((size_t)half + 1) * sizeof *band);
    double *a = malloc(numbers * sizeof *a), *c = malloc(numbers * sizeof *c);
    tb_status status = band != NULL && a != NULL && c != NULL ? TB_OK : no_memory(error);
    bool blas = true;
    t->row_key = "variables";
    for (int v = TB_SYMGBMM_HOST; v <= TB_SYMGBMM_GEMM; v++)
        thesis_add_series(t, NAMES[v], "ms", "product");
    for (int32_t i = 1; i <= SIZES && status == TB_OK; i++) {
        char label[THESIS_LABEL];
        const int32_t n = most * i / SIZES;
        snprintf(label, sizeof label, "%d", (int)n);
        thesis_row *row = thesis_add_row(t, label);
        status = tb_qp_random(n, half, 1, band, a, error);
        for (size_t k = 0; k < numbers; k++) a[k] = (double)(k % 17) - 8;
        for (int v = TB_SYMGBMM_HOST; v <= (has_card() ? TB_SYMGBMM_GEMM : TB_SYMGBMM_HOST); v++)
            for (int64_t turn = 0; turn <= o->repeats && status == TB_OK; turn++) {
                double seconds;
                status = tb_symgbmm((tb_symgbmm_variant)v, TB_DOUBLE, 0, n, half, PRODUCT_COLUMNS,
                                    band, a, c, &seconds, error);
                if (status == TB_UNSUPPORTED && v == TB_SYMGBMM_GEMM) {
                    blas = false;
                    status = TB_OK;
                    break;
                }
                /* the first one warms up */
                if (status == TB_OK && turn > 0)
                    row->here[v] = turn == 1 ? MS * seconds : fmin(row->here[v], MS * seconds);
            }
        if (interrupt_requested() && status == TB_OK) status = TB_CANCELLED;
    }
    thesis_note(
        t,
        "half-bandwidth %d, %d columns, double; gemm: cuBLAS with all n x n numbers; best of "
        "the repeats",
        (int)half, PRODUCT_COLUMNS);
    thesis_note(t, "the thesis: shared is significantly faster than naive");
    note_card(t);
    if (!blas) thesis_note(t, "no cuBLAS here: its column is empty");
    free(band);
    free(a);
    free(c);
    return status;
}

/* ---- figures 7.1 and 7.2: random programs ---- */

enum { CARD_SCHURPA, CARD_DIRECT, HERE_SCHURPA, HERE_DIRECT, SCHURPA_PARTS, DIRECT_PARTS = 6 };

/* table 7.1, ms: factor, solve, total of SCHURPA and DIRECT on the thesis's card */
static const double TABLE_7_1[BENCH_SCHURPA_DELTAS][2][3] = {
    {{279.574, 44.5667, 350.912}, {193.128, 45.9466, 263.926}},
    {{282.66, 169.643, 484.104}, {767.985, 183.745, 1004.63}},
    {{278.669, 227.727, 540.222}, {938.094, 229.483, 1229.05}},
    {{281.972, 257.621, 574.07}, {967.221, 229.828, 1260.15}},
    {{284.377, 274.522, 593.343}, {959.715, 230.715, 1253.28}},
    {{283.504, 359.458, 678.072}, {972.877, 229.687, 1265.25}}};

static tb_status fill_random(const thesis_options *o, thesis_table *t, tb_error *error)
{
    bench_schurpa_times times[BENCH_SCHURPA_DELTAS];
    bench_schurpa_options options = {.n = largest_of(o),
                                     .half_bandwidth = largest_of(o) / BAND_PARTS,
                                     .delta = -1,
                                     .repeats = (int32_t)o->repeats,
                                     .seed = 1,
                                     .precision = TB_DOUBLE};
    const bool as_thesis = options.n == VARIABLES;
    int32_t count = 0;
    t->row_key = "delta";
    thesis_add_series(t, "card_schurpa", "ms", "total");
    thesis_add_series(t, "card_direct", "ms", "total");
    thesis_add_series(t, "processor_schurpa", "ms", "total");
    thesis_add_series(t, "processor_direct", "ms", "total");
    thesis_add_series(t, "schurpa_factor", "ms", "parts on the card, or here without one");
    thesis_add_series(t, "schurpa_solve", "ms", "parts on the card, or here without one");
    thesis_add_series(t, "direct_factor", "ms", "parts on the card, or here without one");
    thesis_add_series(t, "direct_solve", "ms", "parts on the card, or here without one");
    tb_status status = TB_OK;
    for (int card = 0; card <= (has_card() ? 1 : 0) && status == TB_OK; card++) {
        options.backend = card ? TB_BACKEND_GPU : TB_BACKEND_CPU;
        status = bench_schurpa_measure(&options, times, &count, error);
        for (int32_t d = 0; d < count && status == TB_OK; d++) {
            char label[THESIS_LABEL];
            snprintf(label, sizeof label, "%d", (int)times[d].delta);
            thesis_row *row = card ? &t->row[d] : thesis_add_row(t, label);
            for (int direct = 0; direct < 2; direct++) {
                const int total = (card ? CARD_SCHURPA : HERE_SCHURPA) + direct;
                const int parts = SCHURPA_PARTS + 2 * direct;
                const double *theirs = TABLE_7_1[d][direct];
                row->here[total] = MS * times[d].total[direct];
                row->here[parts] = MS * times[d].factor[direct];
                row->here[parts + 1] = MS * times[d].solve[direct];
                if (!as_thesis) continue;
                row->thesis[CARD_SCHURPA + direct] = theirs[2];
                row->thesis[parts] = theirs[0];
                row->thesis[parts + 1] = theirs[1];
            }
            row->residual = times[d].residual;
            row->iterations = times[d].iterations;
        }
    }
    thesis_note(t,
                "%d variables, half-bandwidth %d, double; the thesis's numbers are those of its "
                "card (table 7.1)",
                (int)options.n, (int)options.half_bandwidth);
    note_card(t);
    return status;
}

/* ---- figures 7.4 to 7.8: nine cylinders ---- */

/* A world that collides, and one that makes each of its steps by DIRECT. */
typedef struct collision {
    tb_soft_world *world, *direct;
    unsigned char *text, *bytes;
} collision;

static void close_collision(collision *c)
{
    tb_soft_world_destroy(c->world);
    tb_soft_world_destroy(c->direct);
    tb_bytes_destroy(c->text);
    tb_bytes_destroy(c->bytes);
}

static tb_status open_collision(const thesis_options *o, collision *c, bool both, tb_error *error)
{
    const char *name = o->scene != NULL ? o->scene : "nine_cylinders";
    size_t size = 0;
    tb_soft_load_options options = {.threads = (int32_t)o->threads,
                                    .choose_contact = true,
                                    .contact = TB_SOFT_SCHURPA,
                                    .backend = (tb_backend_choice)o->backend,
                                    .first_sets = (tb_soft_first_sets)o->sets};
    tb_status status = tb_named_scene_mjcf(name, &c->text, &size, error);
    if (status == TB_OK && !tb_soft_is_scene((const char *)c->text, size))
        status = cli_fail(error, TB_INVALID_ARGUMENT, name, 0, NULL, "has no soft bodies");
    if (status == TB_OK)
        status = tb_soft_world_load((const char *)c->text, size, name, &options, &c->world, error);
    options.contact = TB_SOFT_DIRECT;
    if (status == TB_OK && both)
        status = tb_soft_world_load((const char *)c->text, size, name, &options, &c->direct, error);
    return status;
}

/* One step of the world, which takes *seconds, and before it the same step of the other. */
static tb_status step_both(collision *c, tb_soft_certificate *schurpa, tb_soft_certificate *direct,
                           double *seconds, tb_error *error)
{
    size_t size = 0;
    tb_status status = TB_OK;
    if (c->direct != NULL) {
        tb_bytes_destroy(c->bytes);
        c->bytes = NULL;
        status = tb_soft_world_save(c->world, &c->bytes, &size, error);
        if (status == TB_OK) status = tb_soft_world_restore(c->direct, c->bytes, size, error);
        if (status == TB_OK) status = tb_soft_step(c->direct, 1, direct, error);
    }
    const double start = progress_clock();
    if (status == TB_OK) status = tb_soft_step(c->world, 1, schurpa, error);
    *seconds = progress_clock() - start;
    return status;
}

static double share(int32_t part, int32_t whole)
{
    return whole > 0 ? (double)part / whole : NAN;
}

/* Columns of the table `cylinders`, of both programs. */
enum {
    ROWS,
    FREE_NORMAL,
    FREE_TANGENTIAL,
    WARM,
    WARM_TANGENTIAL,
    RATIO,
    ITERATIONS,
    ITERATIONS_TANGENTIAL,
    SOLVES,
    SOLVES_TANGENTIAL,
    RESETS,
    RESETS_TANGENTIAL,
    COUNTS
};

static void put_counts(thesis_row *row, const tb_soft_certificate *c)
{
    const tb_soft_program_counts *n = &c->normal, *f = &c->tangential;
    double *here = row->here;
    here[ROWS] = n->variables;
    here[FREE_NORMAL] = n->free_variables;
    here[FREE_TANGENTIAL] = f->free_variables;
    here[WARM] = share(n->warm, n->active);
    here[WARM_TANGENTIAL] = share(f->warm, f->active);
    here[RATIO] = n->variables > 0 ? (double)n->half_bandwidth / n->variables : NAN;
    here[ITERATIONS] = n->iterations;
    here[ITERATIONS_TANGENTIAL] = f->iterations;
    here[SOLVES] = n->solves;
    here[SOLVES_TANGENTIAL] = f->solves;
    here[RESETS] = n->resets;
    here[RESETS_TANGENTIAL] = f->resets;
    row->residual = fmax(n->residual, f->residual);
    row->iterations = c->projections;
}

/* A last row: largest counts, mean shares, steps with resets; the thesis's bounds beside them. */
static void sum_up(thesis_table *t, int32_t projections)
{
    thesis_row whole = {.label = "all"};
    int warm[2] = {0}, counted[2] = {0};
    for (int k = 0; k < THESIS_COLUMNS; k++) whole.here[k] = whole.thesis[k] = NAN;
    for (int k = 0; k < COUNTS; k++) {
        const bool mean = k == WARM || k == WARM_TANGENTIAL || k == RATIO;
        double sum = 0;
        int n = 0;
        for (int i = 0; i < t->rows; i++) {
            const double value = t->row[i].here[k];
            if (!isfinite(value)) continue;
            if (k >= RESETS)
                sum += value > 0;
            else
                sum = mean ? sum + value : fmax(sum, value);
            n++;
            if (k == WARM || k == WARM_TANGENTIAL) {
                warm[k - WARM] += value > 0.8;
                counted[k - WARM]++;
            }
        }
        whole.here[k] = mean && n > 0 ? sum / n : sum;
    }
    whole.thesis[WARM] = whole.thesis[WARM_TANGENTIAL] = 0.8;
    whole.thesis[RATIO] = 0.18;
    whole.thesis[ITERATIONS] = 8;
    whole.thesis[ITERATIONS_TANGENTIAL] = 11;
    whole.thesis[RESETS] = 0;
    whole.thesis[RESETS_TANGENTIAL] = 8;
    whole.residual = 0;
    for (int i = 0; i < t->rows; i++) whole.residual = fmax(whole.residual, t->row[i].residual);
    whole.iterations = projections;
    thesis_note(
        t,
        "at most %d projections a step (2); first set right by more than 0.8 in %d of %d and "
        "%d of %d steps",
        (int)projections, warm[0], counted[0], warm[1], counted[1]);
    if (t->rows < THESIS_ROWS) t->row[t->rows++] = whole;
}

static tb_status fill_cylinders(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const PANELS[] = {
        "sizes",      "sizes",      "sizes",  "first set right", "first set right", NULL,
        "iterations", "iterations", "solves", "solves",          "resets",          "resets"};
    static const char *const COLUMNS[] = {
        "contacts",           "free_contact",        "free_friction",
        "warm_contact",       "warm_friction",       "bandwidth_over_contacts",
        "iterations_contact", "iterations_friction", "solves_contact",
        "solves_friction",    "resets_contact",      "resets_friction"};
    collision c = {0};
    int32_t projections = 0;
    const int64_t steps = o->steps > 0 ? o->steps : COLLISION_STEPS;
    t->row_key = "time";
    for (int k = 0; k < COUNTS; k++)
        thesis_add_series(t, COLUMNS[k], "", PANELS[k] != NULL ? PANELS[k] : COLUMNS[k]);
    tb_status status = open_collision(o, &c, false, error);
    progress bar = progress_begin("cylinders", (double)steps, o->json);
    for (int64_t i = 0; i < steps && status == TB_OK; i++) {
        tb_soft_certificate certificate;
        char label[THESIS_LABEL];
        double seconds;
        status = step_both(&c, &certificate, NULL, &seconds, error);
        progress_update(&bar, (double)i + 1);
        if (status == TB_OK && interrupt_requested()) status = TB_CANCELLED;
        if (status != TB_OK) break;
        if (certificate.projections > projections) projections = certificate.projections;
        if (certificate.normal.variables == 0 || t->rows + 1 >= THESIS_ROWS) continue;
        snprintf(label, sizeof label, "%.3f s", certificate.time);
        put_counts(thesis_add_row(t, label), &certificate);
    }
    progress_end(&bar);
    if (t->rows > 0) sum_up(t, projections);
    thesis_note(t,
                "the last row: largest counts, mean shares, steps with resets; the thesis's shares "
                "are above 0.8");
    close_collision(&c);
    return status;
}

/* Total, factorization and solves of SCHURPA and DIRECT, contact and then friction; DIRECT's total over
 * SCHURPA's. */
enum { PHASE = 6, SPEEDUP = 2 * PHASE, WHOLE = SPEEDUP + 2, WHOLE_FLOOR, WHOLE_RATE, TIMES };

static void put_times(double here[THESIS_COLUMNS], const tb_soft_certificate *schurpa,
                      const tb_soft_certificate *direct)
{
    for (int phase = 0; phase < 2; phase++) {
        double *at = here + PHASE * phase;
        for (int method = 0; method < 2; method++) {
            const tb_soft_certificate *c = method == 0 ? schurpa : direct;
            const tb_soft_program_counts *n = phase == 0 ? &c->normal : &c->tangential;
            at[method] = MS * n->seconds;
            at[2 + method] = MS * n->factor_seconds;
            at[4 + method] = MS * n->solve_seconds;
        }
        here[SPEEDUP + phase] = at[0] > 0 ? at[1] / at[0] : NAN;
    }
}

/* Counts of both programs by both methods, as further members of a row, and added to sums. */
typedef struct time_counts {
    double iterations, factorizations, solves; /* the most of one solve; sums */
} time_counts;

static void add_counts(thesis_row *row, const tb_soft_certificate *schurpa,
                       const tb_soft_certificate *direct, time_counts sum[2][2])
{
    static const char *const PHASES[] = {"contact", "friction"};
    static const char *const METHODS[] = {"schurpa", "direct"};
    row->more = json_object();
    for (int phase = 0; phase < 2; phase++)
        for (int method = 0; method < 2; method++) {
            const tb_soft_certificate *c = method == 0 ? schurpa : direct;
            const tb_soft_program_counts *n = phase == 0 ? &c->normal : &c->tangential;
            const struct {
                const char *name;
                int32_t count;
            } counts[] = {{"iterations", n->iterations},
                          {"factorizations", n->factorizations},
                          {"solves", n->solves}};
            time_counts *s = &sum[phase][method];
            for (int k = 0; k < 3; k++) {
                char name[48];
                snprintf(name, sizeof name, "%s_%s_%s", METHODS[method], PHASES[phase],
                         counts[k].name);
                (void)json_object_set_new(row->more, name, json_integer(counts[k].count));
            }
            s->iterations = fmax(s->iterations, n->iterations);
            s->factorizations += n->factorizations;
            s->solves += n->solves;
        }
}

/* Notes the bound of the ratio of times: DIRECT's factorizations over SCHURPA's, since a solve of SCHURPA
 * is not cheaper than one of DIRECT. */
static void note_counts(thesis_table *t, time_counts sum[2][2])
{
    for (int phase = 0; phase < 2; phase++) {
        const time_counts *s = &sum[phase][0], *d = &sum[phase][1];
        thesis_note(t,
                    "%s: %.0f factorizations by SCHURPA, %.0f by DIRECT: %.2f times; right-hand "
                    "sides %.0f and %.0f; at most %.0f iterations",
                    phase == 0 ? "contact" : "friction", s->factorizations, d->factorizations,
                    d->factorizations / s->factorizations, s->solves, d->solves,
                    fmax(s->iterations, d->iterations));
    }
}

static void add_time_columns(thesis_table *t)
{
    static const struct {
        const char *name, *unit, *panel;
    } COLUMNS[TIMES] = {{"schurpa_contact", "ms", "contact"},
                        {"direct_contact", "ms", "contact"},
                        {"schurpa_contact_factor", "ms", "contact: factor"},
                        {"direct_contact_factor", "ms", "contact: factor"},
                        {"schurpa_contact_solve", "ms", "contact: solve"},
                        {"direct_contact_solve", "ms", "contact: solve"},
                        {"schurpa_friction", "ms", "friction"},
                        {"direct_friction", "ms", "friction"},
                        {"schurpa_friction_factor", "ms", "friction: factor"},
                        {"direct_friction_factor", "ms", "friction: factor"},
                        {"schurpa_friction_solve", "ms", "friction: solve"},
                        {"direct_friction_solve", "ms", "friction: solve"},
                        {"speedup_contact", "", "DIRECT over SCHURPA"},
                        {"speedup_friction", "", "DIRECT over SCHURPA"},
                        {"step", "ms", "step"},
                        {"floor", "MB", "floor"},
                        {"rate", "GB/s", "rate"}};
    for (int k = 0; k < TIMES; k++)
        thesis_add_series(t, COLUMNS[k].name, COLUMNS[k].unit, COLUMNS[k].panel);
}

static tb_status fill_times(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const SETS[] = {"swept", "recalled from the substep before", "empty"};
    collision c = {0};
    time_counts counts[2][2] = {{{0}}};
    double peak = 0, ratio[2] = {NAN, NAN}, sum[THESIS_COLUMNS] = {0}, whole[2] = {0};
    const int64_t steps = o->steps > 0 ? o->steps : COLLISION_STEPS;
    t->row_key = "time";
    add_time_columns(t);
    tb_status status = open_collision(o, &c, true, error);
    progress bar = progress_begin("cylinder times", (double)steps, o->json);
    for (int64_t i = 0; i < steps && status == TB_OK; i++) {
        tb_soft_certificate schurpa, direct;
        char label[THESIS_LABEL];
        double seconds;
        status = step_both(&c, &schurpa, &direct, &seconds, error);
        progress_update(&bar, (double)i + 1);
        if (status == TB_OK && interrupt_requested()) status = TB_CANCELLED;
        if (status != TB_OK) break;
        if (schurpa.normal.variables == 0 || t->rows == THESIS_ROWS) continue;
        snprintf(label, sizeof label, "%.3f s", schurpa.time);
        thesis_row *row = thesis_add_row(t, label);
        put_times(row->here, &schurpa, &direct);
        add_counts(row, &schurpa, &direct, counts);
        row->here[WHOLE] = MS * seconds;
        row->here[WHOLE_FLOOR] = 1e-6 * schurpa.bytes;
        row->here[WHOLE_RATE] = 1e-9 * schurpa.bytes / seconds;
        whole[0] += seconds;
        whole[1] += schurpa.bytes;
        row->residual = fmax(fmax(schurpa.normal.residual, schurpa.tangential.residual),
                             fmax(direct.normal.residual, direct.tangential.residual));
        for (int k = 0; k < SPEEDUP; k++) sum[k] += row->here[k];
        if (schurpa.normal.variables <= peak) continue;
        peak = schurpa.normal.variables;
        for (int f = 0; f < 2; f++) ratio[f] = row->here[SPEEDUP + f];
    }
    progress_end(&bar);
    thesis_note(t,
                "DIRECT over SCHURPA where contacts are most (%.0f): contact %.2f (4), friction "
                "%.2f (3)",
                peak, ratio[0], ratio[1]);
    thesis_note(t, "DIRECT over SCHURPA, all steps: contact %.2f, friction %.2f", sum[1] / sum[0],
                sum[PHASE + 1] / sum[PHASE]);
    thesis_note(t,
                "a step of SCHURPA with contacts: %.3g ms for at least %.3g MB (fields, search and "
                "programs): %.3g GB/s",
                MS * whole[0] / t->rows, 1e-6 * whole[1] / t->rows, 1e-9 * whole[1] / whole[0]);
    note_counts(t, counts);
    thesis_note(t, "both step from the same state; first sets %s; programs on the %s",
                SETS[o->sets], o->backend == TB_BACKEND_GPU ? "card" : "processor");
    close_collision(&c);
    return status;
}

/* ---- growth with the grid ---- */

/* One block that fills the grid, without contact, on the processor and on the card. Beside the times, the
 * bytes that a substep has to move: a floor for any program whose passes share memory alone. */
enum {
    PROCESSOR,
    CARD,
    FLOOR,
    PROCESSOR_RATE,
    CARD_RATE,
    PROCESSOR_EXPONENT,
    CARD_EXPONENT,
    GROWTH_COLUMNS,
    CARD_STEPS = 20,            /* of a call */
    MOST_ON_PROCESSOR = 2000000 /* nodes: larger ones take minutes */
};

static const int32_t GRIDS[][3] = {{50, 50, 16},   {100, 100, 16}, {100, 100, 32},
                                   {200, 200, 32}, {200, 200, 64}, {400, 400, 64}};
enum { NUMBER_OF_GRIDS = sizeof GRIDS / sizeof *GRIDS };

/* m, and nodes between the block and the grid's faces */
static const double SPACING = 0.05;
enum { MARGIN = 5 };

/* The text of a block in free flight that turns and swings. */
static void write_scene(const int32_t nodes[3], char *text, size_t size)
{
    double half[3], end[3];
    for (int a = 0; a < 3; a++) {
        end[a] = 0.5 * SPACING * (nodes[a] - 1);
        half[a] = end[a] - MARGIN * SPACING;
    }
    snprintf(text, size,
             "<soft model=\"block\"><option timestep=\"0.0005\"/>"
             "<grid lower=\"%.17g %.17g %.17g\" upper=\"%.17g %.17g %.17g\" spacing=\"%.17g\"/>"
             "<material name=\"rubber\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" "
             "damping=\"0.001\"/>"
             "<body name=\"block\" material=\"rubber\" type=\"box\" size=\"%.17g %.17g %.17g\" "
             "velocity=\"0.1 0.05 0.02\" angular=\"0.02 0.01 0.05\"/></soft>",
             -end[0], -end[1], -end[2], end[0], end[1], end[2], SPACING, half[0], half[1], half[2]);
}

/* Seconds of a substep, best of the repeats, and the bytes that it moves at least. */
static tb_status time_steps(const thesis_options *o, const int32_t nodes[3],
                            tb_backend_choice backend, double *seconds, double *bytes,
                            tb_error *error)
{
    char text[1024];
    tb_soft_world *w = NULL;
    tb_soft_certificate c;
    const tb_soft_load_options options = {.threads = (int32_t)o->threads, .backend = backend};
    const int32_t steps = o->steps > 0                ? (int32_t)o->steps
                          : backend == TB_BACKEND_GPU ? CARD_STEPS
                                                      : 1;
    write_scene(nodes, text, sizeof text);
    tb_status status = tb_soft_world_load(text, strlen(text), "block", &options, &w, error);
    if (status == TB_OK) status = tb_soft_step(w, 1, &c, error); /* warms up */
    for (int64_t turn = 0; turn < o->repeats && status == TB_OK; turn++) {
        const double start = progress_clock();
        status = tb_soft_step(w, steps, &c, error);
        const double one = (progress_clock() - start) / c.substeps;
        if (status == TB_OK) *seconds = turn == 0 ? one : fmin(*seconds, one);
        *bytes = c.bytes / c.substeps;
        if (interrupt_requested() && status == TB_OK) status = TB_CANCELLED;
    }
    tb_soft_world_destroy(w);
    return status;
}

/* Exponent of the time in the number of nodes, of which the floor is a multiple. */
static double exponent(const thesis_row *from, const thesis_row *to, int column)
{
    return log(to->here[column] / from->here[column]) / log(to->here[FLOOR] / from->here[FLOOR]);
}

static tb_status fill_growth(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *name, *unit, *panel;
    } columns[GROWTH_COLUMNS] = {{"processor_substep", "ms", "a substep"},
                                 {"card_substep", "ms", "a substep"},
                                 {"floor", "MB", "bytes of a substep at least"},
                                 {"processor_rate", "GB/s", "floor over time"},
                                 {"card_rate", "GB/s", "floor over time"},
                                 {"processor_exponent", "", "exponent"},
                                 {"card_exponent", "", "exponent"}};
    const bool card = has_card();
    const int64_t most = o->contacts > 0 ? o->contacts : INT64_MAX;
    thesis_row *first = NULL, *before = NULL;
    tb_status status = TB_OK;
    t->row_key = "nodes";
    for (int k = 0; k < GROWTH_COLUMNS; k++)
        thesis_add_series(t, columns[k].name, columns[k].unit, columns[k].panel);
    for (int i = 0; i < NUMBER_OF_GRIDS && status == TB_OK; i++) {
        const int32_t *n = GRIDS[i];
        const int64_t nodes = (int64_t)n[0] * n[1] * n[2];
        char label[THESIS_LABEL];
        if (nodes > most && i > 0) break;
        snprintf(label, sizeof label, "%dx%dx%d", (int)n[0], (int)n[1], (int)n[2]);
        thesis_row *row = thesis_add_row(t, label);

        for (int where = PROCESSOR; where <= CARD && status == TB_OK; where++) {
            double seconds = NAN, bytes = NAN;
            if (where == CARD ? !card : nodes > MOST_ON_PROCESSOR) continue;
            status = time_steps(o, n, where == CARD ? TB_BACKEND_GPU : TB_BACKEND_CPU, &seconds,
                                &bytes, error);
            row->here[where] = 1e3 * seconds;
            row->here[FLOOR] = 1e-6 * bytes;
            row->here[PROCESSOR_RATE + where] = 1e-3 * row->here[FLOOR] / seconds;
            if (before != NULL)
                row->here[PROCESSOR_EXPONENT + where] = exponent(before, row, where);
        }
        if (first == NULL) first = row;
        before = row;
    }
    if (first != NULL && before != first)
        thesis_note(t, "exponents over all sizes on the card: %.2f (goal: at most 1.1)",
                    exponent(first, before, CARD));
    thesis_note(t, "floor: bytes that fields in the block's box move at least");
    if (!card) thesis_note(t, "no card here: its columns are empty");
    return status;
}

const thesis_entry thesis_litven[] = {
    {"band", "factorization and solves of a band (figure 5.3)", true, fill_band},
    {"products", "symgbmm and cuBLAS GEMM (figure 6.2)", true, fill_products},
    {"random", "random programs, four programs (figures 7.1 and 7.2)", true, fill_random},
    {"cylinders", "nine cylinders: sizes, sets, iterations, solves (figures 7.4 to 7.6)", true,
     fill_cylinders},
    {"growth", "a step of soft bodies from 50 x 50 x 16 to 400 x 400 x 64 nodes", true,
     fill_growth},
    {"cylinder-times", "nine cylinders: times of SCHURPA and DIRECT (figures 7.7, 7.8)", true,
     fill_times},
    {NULL, NULL, false, NULL}};
