/* Output shared by all tables of theses: text, JSON, drawing. */
#include "bench/thesis.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/json.h"
#include "common/plot.h"

void thesis_add_column(thesis_table *t, const char *name, const char *unit)
{
    t->column[t->columns++] = (thesis_column){name, unit, NULL};
}

void thesis_add_series(thesis_table *t, const char *name, const char *unit, const char *panel)
{
    t->column[t->columns++] = (thesis_column){name, unit, panel};
}

thesis_row *thesis_add_row(thesis_table *t, const char *label)
{
    thesis_row *row = &t->row[t->rows++];
    memset(row, 0, sizeof *row);
    snprintf(row->label, sizeof row->label, "%s", label);
    for (int k = 0; k < THESIS_COLUMNS; k++) row->here[k] = row->thesis[k] = NAN;
    row->residual = row->iterations = NAN;
    return row;
}

void thesis_note(thesis_table *t, const char *format, ...)
{
    for (size_t i = 0; i < sizeof t->notes / sizeof t->notes[0]; i++) {
        if (t->notes[i][0] != '\0') continue;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(t->notes[i], sizeof t->notes[i], format, arguments);
        va_end(arguments);
        return;
    }
}

void thesis_free(thesis_table *t)
{
    for (int i = 0; i < t->rows; i++) json_decref(t->row[i].more);
}

tb_status thesis_load(const char *scene, tb_model **model, tb_error *error)
{
    unsigned char *text = NULL;
    size_t size = 0;
    tb_scene *built = NULL;
    *model = NULL;
    tb_status status = tb_named_scene_mjcf(scene, &text, &size, error);
    if (status == TB_OK)
        status = tb_scene_load_mjcf((const char *)text, size, scene, NULL, &built, error);
    if (status == TB_OK) status = tb_scene_compile(built, model, error);
    tb_scene_destroy(built);
    tb_bytes_destroy(text);
    return status;
}

/* ---- text and JSON ---- */

static const char *cell_text(double here, double thesis, char text[48])
{
    char own[20] = "-", theirs[24] = "";
    if (isfinite(here)) snprintf(own, sizeof own, "%.8g", here);
    if (isfinite(thesis)) snprintf(theirs, sizeof theirs, " (%.8g)", thesis);
    snprintf(text, 48, "%s%s", own, theirs);
    return text;
}

static void print_text(const thesis_table *t)
{
    char text[48];
    int width[THESIS_COLUMNS], label = (int)strlen(t->row_key);
    for (int i = 0; i < t->rows; i++)
        if ((int)strlen(t->row[i].label) > label) label = (int)strlen(t->row[i].label);
    for (int k = 0; k < t->columns; k++) {
        width[k] = (int)(strlen(t->column[k].name) + strlen(t->column[k].unit)) + 3;
        for (int i = 0; i < t->rows; i++) {
            const int own = (int)strlen(cell_text(t->row[i].here[k], t->row[i].thesis[k], text));
            if (own > width[k]) width[k] = own;
        }
    }
    printf("%s %s: %s\n", t->bench, t->name, t->title);
    printf("  %-*s", label, t->row_key);
    for (int k = 0; k < t->columns; k++) {
        char head[64];
        const bool unit = t->column[k].unit[0] != '\0';
        snprintf(head, sizeof head, unit ? "%s (%s)" : "%s", t->column[k].name, t->column[k].unit);
        printf("  %*s", width[k], head);
    }
    printf("\n");
    for (int i = 0; i < t->rows; i++) {
        printf("  %-*s", label, t->row[i].label);
        for (int k = 0; k < t->columns; k++)
            printf("  %*s", width[k], cell_text(t->row[i].here[k], t->row[i].thesis[k], text));
        printf("\n");
    }
    for (size_t i = 0; i < sizeof t->notes / sizeof t->notes[0]; i++)
        if (t->notes[i][0] != '\0') printf("  %s\n", t->notes[i]);
    printf("  in parentheses: the thesis\n");
}

static json_t *number(double value)
{
    const bool whole = isfinite(value) && value == floor(value) && fabs(value) < 1e15;
    return whole ? json_integer((json_int_t)value) : json_finite(value);
}

static void print_row(const thesis_table *t, const thesis_row *row, const thesis_options *o)
{
    json_t *object = json_object(), *thesis = json_object();
    tb_device_info device;
    json_object_set_new(object, "benchmark", json_text(t->bench));
    json_object_set_new(object, "table", json_text(t->name));
    json_object_set_new(object, t->row_key, json_text(row->label));
    for (int k = 0; k < t->columns; k++) {
        if (isfinite(row->here[k]))
            json_object_set_new(object, t->column[k].name, number(row->here[k]));
        if (isfinite(row->thesis[k]))
            json_object_set_new(thesis, t->column[k].name, number(row->thesis[k]));
    }
    if (row->more != NULL) json_object_update(object, row->more);
    if (isfinite(row->residual)) json_object_set_new(object, "residual", number(row->residual));
    if (isfinite(row->iterations))
        json_object_set_new(object, "iterations", number(row->iterations));
    json_object_set_new(object, "thesis", thesis);
    json_object_set_new(object, "commit", json_text(cli_commit()));
    if (tb_device_describe((tb_backend_choice)o->backend, 0, &device, NULL) == TB_OK) {
        json_object_set_new(object, o->backend == TB_BACKEND_GPU ? "card" : "processor",
                            json_text(device.name));
        if (device.driver[0] != '\0')
            json_object_set_new(object, "driver", json_text(device.driver));
    }
    json_print(stdout, object);
}

void thesis_print(const thesis_table *t, const thesis_options *o)
{
    if (!o->json) print_text(t);
    for (int i = 0; i < t->rows && o->json; i++) print_row(t, &t->row[i], o);
    fflush(stdout);
}

/* ---- drawing ---- */

/* The panel of a column: that of the column before where they share it. -1: there is no room for it. */
static int32_t panel_of(plot *p, const thesis_table *t, int k, int32_t before)
{
    const thesis_column *own = &t->column[k];
    char name[96];
    if (own->panel != NULL && k > 0 && t->column[k - 1].panel != NULL &&
        strcmp(own->panel, t->column[k - 1].panel) == 0)
        return before;
    snprintf(name, sizeof name, own->unit[0] != '\0' ? "%s (%s)" : "%s",
             own->panel != NULL ? own->panel : own->name, own->unit);
    return plot_add_panel(p, name, false, false);
}

/* A panel for each of the first columns, or for those that share one; rows from left to right. */
tb_status thesis_draw(const thesis_table *t, const char *path, tb_error *error)
{
    plot p = {0};
    char title[160];
    double values[THESIS_COLUMNS * 2];
    snprintf(title, sizeof title, "%s %s: %s", t->bench, t->name, t->title);
    tb_status status = plot_begin(&p, title, "row of the table", error);
    int columns = 0;
    for (int32_t panel = -1; columns < t->columns && status == TB_OK; columns++) {
        const thesis_column *own = &t->column[columns];
        panel = panel_of(&p, t, columns, panel);
        if (panel < 0) break;
        plot_add_series(&p, panel, own->panel != NULL ? own->name : "here");
        if (own->panel == NULL) plot_add_series(&p, panel, "thesis");
    }
    for (int i = 0; i < t->rows && status == TB_OK; i++) {
        int series = 0;
        for (int k = 0; k < columns; k++) {
            values[series++] = t->row[i].here[k];
            if (t->column[k].panel == NULL) values[series++] = t->row[i].thesis[k];
        }
        plot_sample(&p, i + 1, values);
    }
    if (status == TB_OK) status = plot_write(&p, path, error);
    plot_free(&p);
    return status;
}
