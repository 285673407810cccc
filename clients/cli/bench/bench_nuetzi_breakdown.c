/* Nützi's figure 6.4: the time of an iteration of full-sor-32 by its parts, over the number of contacts.
 *
 * The parts are found as in the thesis: they are left out one after the other, and what an iteration then
 * saves is the part's. Step B is what an iteration takes beyond step A alone. Runs take turns, and the
 * shortest of each counts, since a difference of times bears the noise of both. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_nuetzi_random.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/progress.h"

enum { USUAL_CONTACTS = 500, SIZES = 4, ITERATIONS = 10, LONGER_ALONE = 10, SEED = 5 };

/* What is left out of each run: all that is left out before, and one part more. */
static const uint32_t LEFT_OUT[] = {
    0,
    TB_PROX_STEP_B,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL | TB_PROX_TANGENTIAL,
    TB_PROX_STEP_B | TB_PROX_PROPAGATION | TB_PROX_NORMAL | TB_PROX_TANGENTIAL | TB_PROX_WRITES};
enum { RUNS = sizeof LEFT_OUT / sizeof LEFT_OUT[0], PARTS = RUNS - 1 };

/* The parts of figure 6.4 in the order in which they go, with the thesis's share (%) of an iteration:
 * "almost no influence", "10-20 %", "over 25 %"; NAN: only a curve, which is lost. */
static const struct {
    const char *name;
    double thesis;
} PART[PARTS] = {
    {"step_b", NAN}, {"propagation", 25}, {"normal", 0}, {"tangential", 15}, {"writes", NAN}};
static const double THESIS_BARRIERS = 20; /* % */

/* Shortest time of an iteration (s) with each set of parts left out. */
static tb_status time_runs(const tb_prox_system *system, double *lambda, int64_t repeats,
                           double *shortest, tb_error *error)
{
    const size_t bytes = 3 * (size_t)tb_prox_system_contacts(system) * sizeof *lambda;
    tb_status status = TB_OK;
    for (int r = 0; r < RUNS; r++) shortest[r] = INFINITY;
    /* the first turn warms the caches and does not count */
    for (int64_t turn = 0; turn <= repeats; turn++)
        for (int r = 0; r < RUNS && status == TB_OK; r++) {
            tb_prox_options options = tb_prox_defaults();
            tb_prox_result result;
            options.variant = "full-sor-32";
            options.left_out = LEFT_OUT[r];
            options.iterations = r == 0 ? ITERATIONS : LONGER_ALONE * ITERATIONS;
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

static void fill_row(thesis_row *row, const double *shortest)
{
    row->here[0] = 1e6 * shortest[0];
    row->here[1] = 1e6 * shortest[1];
    row->here[2] = 1e6 * (shortest[0] - shortest[1]);
    for (int p = 0; p < PARTS; p++) {
        row->here[3 + p] = 100 * (shortest[p] - shortest[p + 1]) / shortest[0];
        row->thesis[3 + p] = PART[p].thesis;
    }
    row->here[3 + PARTS] = 100 * shortest[PARTS] / shortest[0];
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
    if (status == TB_OK) status = time_runs(system, lambda, o->repeats, shortest, error);
    if (status == TB_OK) {
        snprintf(label, sizeof label, "%d", (int)contacts);
        fill_row(thesis_add_row(t, label), shortest);
    }
    tb_prox_system_destroy(system);
    free(lambda);
    return status;
}

tb_status nuetzi_fill_breakdown(const thesis_options *o, thesis_table *t, tb_error *error)
{
    const int32_t most = o->contacts > 0 ? (int32_t)o->contacts : USUAL_CONTACTS;
    if (o->backend == TB_BACKEND_GPU)
        return cli_fail(error, TB_UNSUPPORTED, "--backend", 0, NULL,
                        "the parts of an iteration are measured on the processor only");
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
                "may stay in a cache");
    thesis_note(t, "the thesis: step B grows with the square of the contacts, step A linearly; one "
                   "thread has no barriers");
    return status;
}
