/* Göteman and Roxling's tables (GPU Usage for Parallel Functions and Contacts in Modelica, Lund 2015,
 * chapter 8): broad phase of the billiards, intersections of prisms and of the Geneva drive. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/thesis.h"
#include "common/cli.h"

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
    thesis_add_column(t, "brute_over_morton", "");
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

const thesis_entry thesis_goteman[] = {
    {"broad", "near pairs by Morton intervals and by brute force (tables 8.1, 8.3)", false,
     fill_broad},
    {"intersections", "overlaps by three generations of BSP and by pieces (tables 8.5, 8.6)", false,
     fill_intersections},
    {NULL, NULL, false, NULL}};
