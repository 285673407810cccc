/* Draws line plots as SVG and thins their samples. See plot.h. */
#include "common/plot.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"

tb_status plot_begin(plot *p, const char *title, const char *x_title, tb_error *error)
{
    memset(p, 0, sizeof *p);
    snprintf(p->title, sizeof p->title, "%s", title);
    snprintf(p->x_title, sizeof p->x_title, "%s", x_title);
    p->stride = 1;
    p->x = calloc(PLOT_SAMPLES, sizeof *p->x);
    if (p->x == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, "plot", "no memory for a plot");
    return TB_OK;
}

void plot_free(plot *p)
{
    for (int32_t i = 0; i < p->panels; i++)
        for (int32_t k = 0; k < p->panel[i].series; k++) {
            free(p->panel[i].names[k]);
            free(p->panel[i].values[k]);
        }
    free(p->x);
    memset(p, 0, sizeof *p);
}

int32_t plot_add_panel(plot *p, const char *title, bool logarithmic, bool peaks)
{
    if (p->panels == PLOT_PANELS) return -1;
    plot_panel *panel = &p->panel[p->panels];
    snprintf(panel->title, sizeof panel->title, "%s", title);
    panel->logarithmic = logarithmic;
    panel->peaks = peaks;
    return p->panels++;
}

int32_t plot_add_series(plot *p, int32_t panel, const char *name)
{
    if (panel < 0) return -1;
    plot_panel *to = &p->panel[panel];
    if (to->series == PLOT_SERIES) {
        to->left_out++;
        return -1;
    }
    char *copy = strdup(name);
    double *values = calloc(PLOT_SAMPLES, sizeof *values);
    if (copy == NULL || values == NULL) {
        free(copy);
        free(values);
        to->left_out++;
        return -1;
    }
    to->names[to->series] = copy;
    to->values[to->series] = values;
    return to->series++;
}

/* Halves the number of points; each remaining point represents twice as many samples. */
static void thin(plot *p)
{
    const int32_t half = p->samples / 2;
    for (int32_t i = 0; i < half; i++) p->x[i] = p->x[2 * i + 1];
    for (int32_t k = 0; k < p->panels; k++)
        for (int32_t s = 0; s < p->panel[k].series; s++) {
            double *v = p->panel[k].values[s];
            for (int32_t i = 0; i < half; i++) {
                const double a = v[2 * i], b = v[2 * i + 1];
                v[i] = p->panel[k].peaks && a > b ? a : b;
            }
        }
    p->samples = half;
    p->stride *= 2;
}

void plot_sample(plot *p, double x, const double *values)
{
    const bool fresh = p->pending == 0;
    if (fresh && p->samples == PLOT_SAMPLES) thin(p);
    if (fresh) p->samples++;

    const int32_t last = p->samples - 1;
    int32_t next = 0;
    p->x[last] = x;
    for (int32_t k = 0; k < p->panels; k++)
        for (int32_t s = 0; s < p->panel[k].series; s++) {
            double *value = &p->panel[k].values[s][last];
            const double sample = values[next++];
            if (fresh || !p->panel[k].peaks || !(*value > sample)) *value = sample;
        }
    p->pending = (p->pending + 1) % p->stride;
}
