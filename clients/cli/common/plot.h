/* Line plots as SVG files: panels above one another over a common x axis, each with ticks, a legend
 * and up to sixteen series in colours that colour-blind readers can distinguish (Okabe and Ito).
 *
 * Samples are thinned as they come: a series never keeps more than PLOT_SAMPLES points. A thinned
 * point is the last one of its stretch, or the largest in a panel that shows peaks. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdio.h>

#include "tribo.h"

enum { PLOT_PANELS = 8, PLOT_SERIES = 16, PLOT_SAMPLES = 2048 };

typedef struct plot_panel {
    char title[96];
    bool logarithmic; /* decades; values of 0 and less lie on the lower rim */
    bool peaks;       /* thinning keeps the largest value */
    int32_t series;
    int32_t left_out; /* series beyond the table's size */
    char *names[PLOT_SERIES];
    double *values[PLOT_SERIES]; /* PLOT_SAMPLES each */
} plot_panel;

typedef struct plot {
    char title[160];
    char x_title[64];
    int32_t panels;
    plot_panel panel[PLOT_PANELS];
    double *x;
    int32_t samples;
    int64_t stride, pending; /* samples in a point, and seen of the one at the end */
} plot;

/* A zeroed plot is empty. `title` and names are copied. */
tb_status plot_begin(plot *p, const char *title, const char *x_title, tb_error *error);
void plot_free(plot *p);

/* Index of a new panel, or -1 where PLOT_PANELS are full. */
int32_t plot_add_panel(plot *p, const char *title, bool logarithmic, bool peaks);
/* Index of a new series; -1 if the table is full: the caller then adds no values for it. */
int32_t plot_add_series(plot *p, int32_t panel, const char *name);

/* One sample: x, then every panel's values in the order of panels and series. */
void plot_sample(plot *p, double x, const double *values);

/* INVALID_ARGUMENT for a path that does not end in .svg, the only format. "-" is stdout. Callers
 * check the path before the run. */
tb_status plot_check_path(const char *path, tb_error *error);
tb_status plot_write(const plot *p, const char *path, tb_error *error);
/* Text between tags of SVG, escaped, and cut after `longest` characters. */
void plot_write_text(FILE *file, const char *text, size_t longest);

#endif
