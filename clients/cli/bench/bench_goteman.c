/* Göteman and Roxling's tables (GPU Usage for Parallel Functions and Contacts in Modelica, Lund 2015,
 * chapter 8): broad phase of the billiards, intersections of prisms and of the Geneva drive. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/thesis.h"
#include "common/cli.h"
#include "common/interrupt.h"

/* A scene by the volume law after some steps. */
static tb_status open_at(const char *scene, int32_t steps, tb_model **model, tb_state **state,
                         tb_error *error)
{
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    options.scheme = TB_SCHEME_VOLUME;
    *state = NULL;
    tb_status status = thesis_load(scene, model, error);
    if (status == TB_OK) status = tb_state_create(*model, state, error);
    if (status == TB_OK)
        status = tb_state_reset(*state, tb_model_find(*model, TB_HANDLE_KEYFRAME, "start"), error);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, error);
    if (status == TB_OK) status = tb_step(stepper, *state, steps, NULL, error);
    tb_stepper_destroy(stepper);
    return status;
}

/* ---- broad phase ---- */

/* Rows of a card, where there is one. */
static tb_status add_card_pairs(thesis_table *t, const tb_state *state, const char *scene,
                                double brute, tb_error *error)
{
    static const struct {
        const char *method, *label;
        double cell; /* m */
    } WAYS[] = {{"gpu_count", "card, count and write", 0.01},
                {"gpu_append", "card, append", 0.01},
                {"gpu_append", "card, append, cell 1 m", 1},
                {"gpu_sort", "card sorts if many", 0.01}};
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        char label[THESIS_LABEL];
        tb_volume_measure m;
        const tb_status status =
            tb_state_measure_volume(state, WAYS[i].method, WAYS[i].cell, &m, error);
        if (status == TB_UNAVAILABLE) return TB_OK;
        if (status != TB_OK) return status;
        snprintf(label, sizeof label, "%s, %s", scene, WAYS[i].label);
        thesis_row *row = thesis_add_row(t, label);
        row->here[0] = (double)m.intervals / m.shapes;
        row->here[1] = m.seconds;
        row->here[2] = brute / m.seconds;
        row->here[3] = m.pairs;
        if (m.parts[0] > 0)
            thesis_note(t, "%s on the card: encoding %.3g, sort %.3g, finding %.3g, sort %.3g ms",
                        WAYS[i].label, 1e3 * m.parts[0], 1e3 * m.parts[1], 1e3 * m.parts[2],
                        1e3 * m.parts[3]);
    }
    return TB_OK;
}

static tb_status fill_broad(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        double cell, intervals; /* m; table 8.1 */
    } CELLS[] = {{2, 4.5}, {1, 8}, {0.5, 8}, {0.1, 5.2}, {0.01, 3.2}, {0.001, 7.8}, {0, NAN}};
    const char *scene = o->scene != NULL ? o->scene : "billiards";
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_volume_measure brute, m;
    thesis_add_column(t, "intervals_per_body", "");
    thesis_add_column(t, "seconds", "s");
    thesis_add_column(t, "brute_over_this", "");
    thesis_add_column(t, "pairs", "");
    tb_status status = open_at(scene, 0, &model, &state, error);
    if (status == TB_OK) status = tb_state_measure_volume(state, "brute", 0, &brute, error);
    for (size_t i = 0; i < sizeof CELLS / sizeof *CELLS && status == TB_OK; i++) {
        char label[THESIS_LABEL];
        status = tb_state_measure_volume(state, "morton", CELLS[i].cell, &m, error);
        if (status != TB_OK) break;
        if (CELLS[i].cell > 0)
            snprintf(label, sizeof label, "%s, cell %g m", scene, CELLS[i].cell);
        else
            snprintf(label, sizeof label, "%s, finest cell", scene);
        thesis_row *row = thesis_add_row(t, label);
        row->here[0] = (double)m.intervals / m.shapes;
        row->here[1] = m.seconds;
        row->here[2] = brute.seconds / m.seconds;
        row->here[3] = m.pairs;
        if (strcmp(scene, "billiards") != 0) continue;
        row->thesis[0] = CELLS[i].intervals;
        if (CELLS[i].cell == 0.01) row->thesis[1] = 2.5e-3, row->thesis[2] = 78;
    }
    if (status == TB_OK) status = tb_state_measure_volume(state, "rows", 0, &m, error);
    if (status == TB_OK) {
        char label[THESIS_LABEL];
        snprintf(label, sizeof label, "%s, rows", scene);
        thesis_row *row = thesis_add_row(t, label);
        row->here[1] = m.seconds;
        row->here[2] = brute.seconds / m.seconds;
        row->here[3] = m.pairs;
    }
    if (status == TB_OK) status = add_card_pairs(t, state, scene, brute.seconds, error);
    if (status == TB_OK)
        thesis_note(t,
                    "brute force: %.3g s a call, %d pairs. Table 8.3's call includes the "
                    "encoding, two sorts and the removal of doubles.",
                    brute.seconds, brute.pairs);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return status;
}

/* ---- intersections ---- */

static tb_status fill_intersections(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *scene;
        int32_t steps;
        double reduced, traversal; /* speed over the first generation, tables 8.5 and 8.6 */
    } SCENES[] = {{"prisms_512", 500, 3.18, 10.3}, {"geneva", 640, 2.5, 17.4}};
    static const char *const METHODS[] = {"original", "reduced", "traversal", "pieces"};
    thesis_add_column(t, "pairs", "");
    for (int k = 0; k < 4; k++) thesis_add_column(t, METHODS[k], "s");
    thesis_add_column(t, "original_over_reduced", "");
    thesis_add_column(t, "original_over_traversal", "");
    thesis_add_column(t, "original_over_pieces", "");
    thesis_add_column(t, "volume_difference", "");
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES && status == TB_OK; i++) {
        if (o->scene != NULL && strcmp(o->scene, SCENES[i].scene) != 0) continue;
        tb_model *model = NULL;
        tb_state *state = NULL;
        tb_volume_measure m[4];
        status = open_at(SCENES[i].scene, SCENES[i].steps, &model, &state, error);
        for (int k = 0; k < 4 && status == TB_OK; k++)
            status = tb_state_measure_volume(state, METHODS[k], 0, &m[k], error);
        tb_state_destroy(state);
        tb_model_destroy(model);
        if (status != TB_OK) break;
        thesis_row *row = thesis_add_row(t, SCENES[i].scene);
        row->here[0] = m[0].pairs;
        double worst = 0;
        for (int k = 0; k < 4; k++) {
            row->here[1 + k] = m[k].seconds;
            if (k > 0) row->here[4 + k] = m[0].seconds / m[k].seconds;
            worst = fmax(worst, fabs(m[k].volume / m[3].volume - 1));
        }
        row->here[8] = worst;
        row->thesis[5] = SCENES[i].reduced;
        row->thesis[6] = SCENES[i].traversal;
        thesis_note(t, "%s: %d, %d, %d overlaps of the generations were open and computed again",
                    SCENES[i].scene, m[0].mended, m[1].mended, m[2].mended);
    }
    return status;
}

/* ---- traversals on a card ---- */

static tb_status fill_traversals(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *scene;
        int32_t steps;
    } SCENES[] = {{"prisms_512", 500}, {"prisms_2197", 500}, {"geneva", 1200}};
    static const char *const WAYS[] = {"traversal",  "gpu_recursive", "gpu_iterative",
                                       "gpu_hybrid", "gpu_shared",    "gpu_own"};
    thesis_add_column(t, "seconds", "s");
    thesis_add_column(t, "on_the_card", "s");
    thesis_add_column(t, "volume_difference", "");
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES && status == TB_OK; i++) {
        if (o->scene != NULL && strcmp(o->scene, SCENES[i].scene) != 0) continue;
        tb_model *model = NULL;
        tb_state *state = NULL;
        double volume = 0;
        status = open_at(SCENES[i].scene, o->steps > 0 ? (int32_t)o->steps : SCENES[i].steps,
                         &model, &state, error);
        for (size_t k = 0; k < sizeof WAYS / sizeof *WAYS && status == TB_OK; k++) {
            char label[THESIS_LABEL];
            tb_volume_measure m;
            status = tb_state_measure_volume(state, WAYS[k], 0, &m, error);
            if (status != TB_OK) break;
            if (k == 0) volume = m.volume;
            snprintf(label, sizeof label, "%s, %s", SCENES[i].scene, WAYS[k]);
            thesis_row *row = thesis_add_row(t, label);
            row->here[0] = m.seconds;
            row->here[1] = k > 0 ? m.parts[0] : NAN;
            row->here[2] = fabs(m.volume - volume) / (volume > 0 ? volume : 1);
        }
        tb_state_destroy(state);
        tb_model_destroy(model);
    }
    thesis_note(t, "all overlaps of one pose; seconds have placing, copies and measuring too");
    return status;
}

/* ---- encoding ---- */

static tb_status fill_encoding(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        double cell, seconds; /* m; table 8.2, processor */
    } CELLS[] = {{1, 1.8e-3}, {0.01, 0.6e-3}};
    const char *scene = o->scene != NULL ? o->scene : "billiards";
    tb_model *model = NULL;
    tb_state *state = NULL;
    thesis_add_column(t, "seconds", "s");
    thesis_add_column(t, "intervals_per_body", "");
    tb_status status = open_at(scene, 0, &model, &state, error);
    for (size_t i = 0; i < sizeof CELLS / sizeof *CELLS && status == TB_OK; i++) {
        char label[THESIS_LABEL];
        tb_volume_measure m;
        status = tb_state_measure_volume(state, "encode", CELLS[i].cell, &m, error);
        if (status != TB_OK) break;
        snprintf(label, sizeof label, "%s, cell %g m", scene, CELLS[i].cell);
        thesis_row *row = thesis_add_row(t, label);
        row->here[0] = m.seconds;
        row->here[1] = (double)m.intervals / m.shapes;
        if (strcmp(scene, "billiards") == 0) row->thesis[0] = CELLS[i].seconds;
    }
    tb_state_destroy(state);
    tb_model_destroy(model);
    return status;
}

/* ---- sorts ---- */

/* The thesis's card sorts faster from 160,000 (first sort) and 190,000 keys (second) on. */
static tb_status fill_sorts(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const int32_t COUNTS[] = {16000, 42000, 80000, 160000, 190000, 400000, 1000000, 4000000};
    (void)o;
    thesis_add_column(t, "processor", "s");
    thesis_add_column(t, "card", "s");
    thesis_add_column(t, "processor_over_card", "");
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        char label[THESIS_LABEL];
        double here, card = NAN;
        tb_status status = tb_measure_sort(COUNTS[i], false, &here, error);
        if (status == TB_OK) status = tb_measure_sort(COUNTS[i], true, &card, error);
        if (status == TB_UNAVAILABLE) card = NAN, status = TB_OK;
        if (status != TB_OK) return status;
        snprintf(label, sizeof label, "%d keys", (int)COUNTS[i]);
        thesis_row *row = thesis_add_row(t, label);
        row->here[0] = here;
        row->here[1] = card;
        row->here[2] = here / card;
    }
    thesis_note(t, "64-bit keys with values; the card's time has both copies. One core sorts.");
    return TB_OK;
}

/* ---- shares ---- */

/* Seconds of one evaluation of all forces by its parts, and their shares in the thesis, %. */
typedef struct shares {
    const char *label;
    double broad, narrow, thesis[3];
} shares;

static void add_shares(thesis_table *t, const shares *s, double other)
{
    const double parts[3] = {s->broad, s->narrow, other};
    const double sum = s->broad + s->narrow + other;
    thesis_row *row = thesis_add_row(t, s->label);
    for (int k = 0; k < 3; k++) {
        row->here[k] = 100 * parts[k] / sum;
        row->thesis[k] = s->thesis[k];
    }
    row->here[3] = sum;
}

static tb_status fill_shares(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const char *const METHODS[] = {"brute", "morton", "traversal", "pieces", "evaluation"};
    enum { BRUTE, MORTON, TRAVERSAL, PIECES, EVALUATION, COUNT };
    const char *scene = o->scene != NULL ? o->scene : "prisms_2197";
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_volume_measure m[COUNT];
    thesis_add_column(t, "broad", "%");
    thesis_add_column(t, "narrow", "%");
    thesis_add_column(t, "other", "%");
    thesis_add_column(t, "seconds", "s");
    tb_status status =
        open_at(scene, o->steps > 0 ? (int32_t)o->steps : 500, &model, &state, error);
    for (int k = 0; k < COUNT && status == TB_OK; k++)
        status = tb_state_measure_volume(state, METHODS[k], 0, &m[k], error);
    if (status == TB_OK) {
        const double other = fmax(m[EVALUATION].seconds - m[PIECES].seconds, 0);
        const shares rows[] = {
            {"brute force, third generation", m[BRUTE].seconds, m[TRAVERSAL].seconds, {73, 25, 2}},
            {"Morton, third generation", m[MORTON].seconds, m[TRAVERSAL].seconds, {8, 65, 27}},
            {"Morton, pieces", m[MORTON].seconds, m[PIECES].seconds, {NAN, NAN, NAN}},
            {"list of near pairs, pieces", 0, m[PIECES].seconds, {NAN, NAN, NAN}}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) add_shares(t, &rows[i], other);
        thesis_note(t, "%s after %d steps; steps keep a list of near pairs while it holds", scene,
                    (int)(o->steps > 0 ? o->steps : 500));
    }
    tb_state_destroy(state);
    tb_model_destroy(model);
    return status;
}

/* ---- whole simulations ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A named scene whose shapes push as one contact for each pair. */
static tb_status load_joined(const char *scene, tb_model **model, tb_error *error)
{
    static const char JOINED[] =
        "<custom><text name=\"volume_law\" data=\"joined=1\"/></custom>\n</mujoco>\n";
    unsigned char *text = NULL;
    size_t size = 0;
    tb_scene *built = NULL;
    *model = NULL;
    tb_status status = tb_named_scene_mjcf(scene, &text, &size, error);
    if (status != TB_OK) return status;
    const size_t kept = size - strlen("</mujoco>\n");
    char *longer = malloc(kept + sizeof JOINED);
    if (longer == NULL) {
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
    } else {
        memcpy(longer, text, kept);
        memcpy(longer + kept, JOINED, sizeof JOINED);
        status = tb_scene_load_mjcf(longer, kept + sizeof JOINED - 1, scene, NULL, &built, error);
    }
    if (status == TB_OK) status = tb_scene_compile(built, model, error);
    tb_scene_destroy(built);
    tb_bytes_destroy(text);
    free(longer);
    return status;
}

typedef struct simulation {
    double seconds;
    double evaluations, contacts; /* of all steps; after the last one */
} simulation;

/* Steps a scene from its start, by rkfix4 as the thesis. */
static tb_status simulate(const char *scene, bool joined, int32_t steps, simulation *s,
                          tb_error *error)
{
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    tb_model *model = NULL;
    tb_state *state = NULL;
    tb_certificate certificate = {0};
    options.scheme = TB_SCHEME_VOLUME;
    tb_status status =
        joined ? load_joined(scene, &model, error) : thesis_load(scene, &model, error);
    if (status == TB_OK) status = tb_state_create(model, &state, error);
    if (status == TB_OK)
        status = tb_state_reset(state, tb_model_find(model, TB_HANDLE_KEYFRAME, "start"), error);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, error);
    const double before = now();
    for (int32_t done = 0; done < steps && status == TB_OK && !interrupt_requested();) {
        const int32_t some = steps - done < 50 ? steps - done : 50;
        status = tb_step(stepper, state, some, &certificate, error);
        s->evaluations += certificate.iterations;
        done += some;
    }
    s->seconds = now() - before;
    if (status == TB_OK) s->contacts = tb_state_number_of_contacts(state);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    if (status == TB_OK && interrupt_requested())
        return cli_fail(error, TB_CANCELLED, "", 0, NULL, "interrupted");
    return status;
}

static tb_status fill_simulations(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *scene;
        double seconds, evaluations; /* third generation on the processor, tables 8.5 to 8.8 */
    } SCENES[] = {{"prisms_512", 116, 6686},
                  {"prisms_2197", 550, NAN},
                  {"geneva", 3.46, 5160},
                  {"geneva_12", NAN, NAN}};
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : 1000;
    thesis_add_column(t, "seconds", "s");
    thesis_add_column(t, "evaluations", "");
    thesis_add_column(t, "contacts_at_end", "");
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES && status == TB_OK; i++) {
        if (o->scene != NULL && strcmp(o->scene, SCENES[i].scene) != 0) continue;
        simulation s = {0};
        status = simulate(SCENES[i].scene, false, steps, &s, error);
        if (status != TB_OK) break;
        thesis_row *row = thesis_add_row(t, SCENES[i].scene);
        row->here[0] = s.seconds;
        row->here[1] = s.evaluations;
        row->here[2] = s.contacts;
        if (steps != 1000) continue;
        row->thesis[0] = SCENES[i].seconds;
        row->thesis[1] = SCENES[i].evaluations;
    }
    thesis_note(t,
                "%d steps of rkfix4; overlaps by the pieces. The thesis's card took 7.47 s for one "
                "Geneva drive and 41.9 s for twelve",
                steps);
    return status;
}

static tb_status fill_splitting(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *scene;
        int32_t steps;
        double without, with; /* s; table 8.9 */
    } SCENES[] = {{"prisms_27", 5000, 17.4, 22.8},
                  {"prisms_125", 5000, 230, 310},
                  {"geneva", 1000, 3.51, 3.48}};
    thesis_add_column(t, "without", "s");
    thesis_add_column(t, "with", "s");
    thesis_add_column(t, "slow_down", "%");
    tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES && status == TB_OK; i++) {
        if (o->scene != NULL && strcmp(o->scene, SCENES[i].scene) != 0) continue;
        const int32_t steps = o->steps > 0 ? (int32_t)o->steps : SCENES[i].steps;
        simulation without = {0}, with = {0};
        status = simulate(SCENES[i].scene, true, steps, &without, error);
        if (status == TB_OK) status = simulate(SCENES[i].scene, false, steps, &with, error);
        if (status != TB_OK) break;
        thesis_row *row = thesis_add_row(t, SCENES[i].scene);
        row->here[0] = without.seconds;
        row->here[1] = with.seconds;
        row->here[2] = 100 * (with.seconds / without.seconds - 1);
        if (steps != SCENES[i].steps) continue;
        row->thesis[0] = SCENES[i].without;
        row->thesis[1] = SCENES[i].with;
        row->thesis[2] = 100 * (SCENES[i].with / SCENES[i].without - 1);
    }
    return status;
}

/* ---- Tippe Top ---- */

/* Angle of the stem to the vertical, degrees, and angular velocity about it, rad/s (figure 8.7). */
static tb_status look_at_top(const tb_state *state, int32_t body, double *angle, double *spin)
{
    tb_body_motion m;
    const tb_status status = tb_state_body_motion(state, body, &m);
    if (status != TB_OK) return status;
    const double *q = m.orientation, *w = m.angular_velocity;
    const double stem[3] = {2 * (q[1] * q[3] + q[0] * q[2]), 2 * (q[2] * q[3] - q[0] * q[1]),
                            1 - 2 * (q[1] * q[1] + q[2] * q[2])};
    *angle = acos(fmax(-1, fmin(1, stem[2]))) * 180 / acos(-1.0);
    *spin = stem[0] * w[0] + stem[1] * w[1] + stem[2] * w[2];
    return TB_OK;
}

static void add_top_row(thesis_table *t, const char *what, double time, double angle, double spin)
{
    thesis_row *row = thesis_add_row(t, what);
    row->here[0] = time;
    row->here[1] = angle;
    row->here[2] = spin;
}

/* The thesis's run of 3.3 s in steps of 0.1 ms. Its figure 8.7 shows the spin; in words, the spin vanishes where the
 * stem is horizontal, is negative afterwards, and the top ends inverted. */
static tb_status fill_tippe_top(const thesis_options *o, thesis_table *t, tb_error *error)
{
    enum { STEPS = 33000, LOOK = 50, PRINT = 1500 };
    static const double INVERTED_DEGREES = 171.9; /* cosine -0.99 */
    const char *scene = o->scene != NULL ? o->scene : "tippe_top";
    const int32_t steps = o->steps > 0 ? (int32_t)o->steps : STEPS;
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    tb_model *model = NULL;
    tb_state *state = NULL;
    bool horizontal = false, inverted = false;
    options.scheme = TB_SCHEME_VOLUME;
    thesis_add_column(t, "seconds", "s");
    thesis_add_column(t, "angle", "deg");
    thesis_add_column(t, "spin", "rad/s");
    tb_status status = open_at(scene, 0, &model, &state, error);
    const int32_t body = status == TB_OK ? tb_model_find(model, TB_HANDLE_BODY, "top") : -1;
    if (status == TB_OK && body < 0)
        status = cli_fail(error, TB_NOT_FOUND, "", 0, NULL, "scene '%s' has no body 'top'", scene);
    if (status == TB_OK) status = tb_stepper_create(&options, &stepper, error);
    for (int32_t done = 0; done <= steps && status == TB_OK && !interrupt_requested();) {
        double angle, spin;
        status = look_at_top(state, body, &angle, &spin);
        if (status != TB_OK) break;
        const double time = tb_state_time(state);
        char label[THESIS_LABEL];
        snprintf(label, sizeof label, "%s, %.2f s", scene, time);
        if (done % PRINT == 0) add_top_row(t, label, time, angle, spin);
        if (angle >= 90 && !horizontal) add_top_row(t, "stem horizontal", time, angle, spin);
        horizontal = horizontal || angle >= 90;
        if (angle >= INVERTED_DEGREES && !inverted) {
            add_top_row(t, "inverted", time, angle, spin);
            t->row[t->rows - 1].thesis[0] = 3.3;
            inverted = true;
        }
        status = tb_step(stepper, state, LOOK, NULL, error);
        done += LOOK;
    }
    thesis_note(t, "The thesis ends at 3.3 s with the top inverted; its text names no other time, "
                   "and no dimensions");
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    return status;
}

/* ---- batches of worlds on a card ---- */

enum { MOST_BATCH = 4096 };

/* Worlds of one scene after some steps of a card. */
typedef struct batch {
    tb_state *states[MOST_BATCH];
    int32_t worlds;
} batch;

static void free_batch(batch *b)
{
    for (int32_t i = 0; i < b->worlds; i++) tb_state_destroy(b->states[i]);
    b->worlds = 0;
}

static tb_status fork_batch(const batch *from, batch *to, tb_error *error)
{
    for (to->worlds = 0; to->worlds < from->worlds; to->worlds++) {
        const tb_status status =
            tb_state_fork(from->states[to->worlds], &to->states[to->worlds], error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

static tb_stepper *batch_stepper(const thesis_options *o, tb_backend_choice backend,
                                 tb_error *error)
{
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    options.scheme = TB_SCHEME_VOLUME;
    options.backend = backend;
    options.threads = (int32_t)o->threads;
    options.solve.solver = o->solver != NULL ? o->solver : "symplectic";
    return tb_stepper_create(&options, &stepper, error) == TB_OK ? stepper : NULL;
}

/* The largest difference of two batches' coordinates. */
static double compare_batches(const batch *a, const batch *b, int32_t coordinates)
{
    double most = 0;
    for (int32_t w = 0; w < a->worlds; w++) {
        const double *x = tb_state_q(a->states[w]), *y = tb_state_q(b->states[w]);
        for (int32_t i = 0; i < coordinates; i++) most = fmax(most, fabs(x[i] - y[i]));
    }
    return most;
}

/* Worlds that differ a little in their first coordinate, some steps after the scene's start. */
static tb_status start_batch(tb_stepper *stepper, const tb_model *model, int32_t before,
                             int32_t worlds, batch *b, tb_error *error)
{
    const int32_t start = tb_model_find(model, TB_HANDLE_KEYFRAME, "start");
    const int32_t count = tb_model_count(model).coordinates;
    double *q = malloc((size_t)count * sizeof *q);
    if (q == NULL) return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
    tb_status status = tb_state_create(model, &b->states[0], error);
    b->worlds = status == TB_OK;
    if (status == TB_OK) status = tb_state_reset(b->states[0], start, error);
    if (status == TB_OK) status = tb_step(stepper, b->states[0], before, NULL, error);
    if (status == TB_OK) memcpy(q, tb_state_q(b->states[0]), (size_t)count * sizeof *q);
    while (b->worlds < worlds && status == TB_OK) {
        status = tb_state_fork(b->states[0], &b->states[b->worlds], error);
        if (status != TB_OK) break;
        q[0] += 1e-7;
        status = tb_state_set_q(b->states[b->worlds++], q, count, error);
    }
    free(q);
    return status;
}

static tb_status time_batch(tb_stepper *stepper, batch *b, int32_t steps, double *seconds,
                            tb_error *error)
{
    const double before = now();
    const tb_status status = tb_step_batch(stepper, b->states, b->worlds, steps, NULL, error);
    *seconds = now() - before;
    return status;
}

/* The worlds' steps on the card and on the processor; both have made their scenes before. */
static tb_status measure_batch(tb_stepper *const steppers[2], const batch *from, int32_t steps,
                               int32_t coordinates, thesis_row *row, tb_error *error)
{
    static batch again, card, processor;
    double seconds;
    tb_status status = fork_batch(from, &card, error);
    if (status == TB_OK) status = fork_batch(from, &again, error);
    if (status == TB_OK) status = fork_batch(from, &processor, error);
    if (status == TB_OK) status = time_batch(steppers[0], &processor, 1, &seconds, error);
    free_batch(&processor);
    if (status == TB_OK) status = fork_batch(from, &processor, error);
    if (status == TB_OK) status = time_batch(steppers[1], &again, steps, &seconds, error);
    if (status == TB_OK) status = time_batch(steppers[1], &card, steps, &row->here[1], error);
    if (status == TB_OK) status = time_batch(steppers[0], &processor, steps, &row->here[0], error);
    if (status == TB_OK) {
        row->here[2] = row->here[0] / row->here[1];
        row->here[3] = compare_batches(&card, &processor, coordinates);
        row->here[4] = compare_batches(&card, &again, coordinates);
        row->here[5] = 0;
        for (int32_t w = 0; w < card.worlds; w++)
            row->here[5] += tb_state_number_of_contacts(card.states[w]);
    }
    free_batch(&card);
    free_batch(&again);
    free_batch(&processor);
    return status;
}

static tb_status fill_batches(const thesis_options *o, thesis_table *t, tb_error *error)
{
    static const struct {
        const char *scene;
        int32_t worlds, before, steps; /* before: of one world, then of all */
    } ROWS[] = {{"billiards", 1, 50, 500},     {"billiards_10", 4096, 50, 200},
                {"cube_drop", 4096, 450, 200}, {"tippe_top", 4096, 100, 500},
                {"prisms_512", 1, 450, 100},   {"prisms_2197", 1, 450, 50},
                {"prisms_27", 1024, 420, 50},  {"bucket", 1, 200, 200},
                {"bucket", 128, 200, 20},      {"fork_ring", 1024, 20, 50},
                {"geneva", 1, 640, 200},       {"geneva", 512, 640, 20}};
    static batch from;
    thesis_add_column(t, "processor", "s");
    thesis_add_column(t, "card", "s");
    thesis_add_column(t, "processor_over_card", "");
    thesis_add_column(t, "difference", "");
    thesis_add_column(t, "difference_of_runs", "");
    thesis_add_column(t, "contacts", "");
    tb_stepper *const steppers[2] = {batch_stepper(o, TB_BACKEND_CPU, error),
                                     batch_stepper(o, TB_BACKEND_GPU, error)};
    tb_status status = steppers[0] && steppers[1] ? TB_OK : TB_UNAVAILABLE;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS && status == TB_OK; i++) {
        if (o->scene != NULL && strcmp(o->scene, ROWS[i].scene) != 0) continue;
        const int32_t steps = o->steps > 0 ? (int32_t)o->steps : ROWS[i].steps;
        const int32_t before =
            o->steps > 0 && o->steps < ROWS[i].before ? (int32_t)o->steps : ROWS[i].before;
        char label[THESIS_LABEL];
        tb_model *model = NULL;
        status = thesis_load(ROWS[i].scene, &model, error);
        if (status == TB_OK)
            status = start_batch(steppers[1], model, before, ROWS[i].worlds, &from, error);
        snprintf(label, sizeof label, "%s x %d, %d steps", ROWS[i].scene, (int)ROWS[i].worlds,
                 (int)steps);
        if (status == TB_OK)
            status = measure_batch(steppers, &from, steps, tb_model_count(model).coordinates,
                                   thesis_add_row(t, label), error);
        free_batch(&from);
        tb_model_destroy(model);
        if (status == TB_OK && interrupt_requested())
            status = cli_fail(error, TB_CANCELLED, "", 0, NULL, "interrupted");
    }
    tb_stepper_destroy(steppers[0]);
    tb_stepper_destroy(steppers[1]);
    thesis_note(t,
                "%s, all processors beside one card; times have copies and the records of the "
                "last contacts",
                o->solver != NULL ? o->solver : "symplectic");
    return status;
}

const thesis_entry thesis_goteman[] = {
    {"broad", "near pairs by Morton intervals, rows and brute force (tables 8.1, 8.3)", false,
     fill_broad},
    {"intersections", "overlaps by three generations of BSP and by pieces (tables 8.5, 8.6)", false,
     fill_intersections},
    {"encoding", "Morton intervals of the billiards (table 8.2)", false, fill_encoding},
    {"traversals", "BSP trees on a card: recursive, iterative, hybrid, shared, own (8.3)", true,
     fill_traversals},
    {"sorts", "sorts of many keys on the processor and on a card (5.3)", true, fill_sorts},
    {"shares", "broad phase, narrow phase and the rest of an evaluation (table 8.4)", false,
     fill_shares},
    {"simulations", "whole simulations of prisms and Geneva drives (tables 8.5 to 8.8)", true,
     fill_simulations},
    {"tippe-top", "angle and spin of the Tippe Top over time (7.7, figure 8.7)", false,
     fill_tippe_top},
    {"batches", "many worlds, and large ones, on the processor and on a card", true, fill_batches},
    {"splitting", "whole simulations with overlaps split and joined (table 8.9)", true,
     fill_splitting},
    {NULL, NULL, false, NULL}};
