/* Draws a plot. Everything is laid out in pixels of a fixed page;
 * text is left to the reader's font. */
#include "common/plot.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"

enum {
    PAGE_WIDTH = 900,
    LEFT = 80,
    RIGHT = 230, /* height for the legend */
    TOP = 56,
    PANEL_HEIGHT = 230,
    PANEL_GAP = 52,
    BOTTOM = 46,
    LEGEND_NAME = 26, /* characters */
    LEGEND_LINE = 13
};

/* Okabe and Ito's colours without their yellow, which is faint on white. */
static const char *const COLOURS[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#56B4E9", "#E69F00", "#000000", "#7F7F7F"};
enum { COLOURS_COUNT = sizeof COLOURS / sizeof COLOURS[0] };

typedef struct axis {
    double low, high; /* of the data, or exponents of ten */
    double tick;
    double pixel_low, pixel_high;
    bool logarithmic;
} axis;

/* ---- scales ---- */

/* 1, 2 or 5 times a power of ten, so that there are about `wanted` ticks. */
static double nice_tick(double range, int wanted)
{
    const double rough = range / wanted;
    const double power = pow(10, floor(log10(rough)));
    const double share = rough / power;
    return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

static axis linear_axis(double low, double high, double pixel_low, double pixel_high)
{
    axis a = {.pixel_low = pixel_low, .pixel_high = pixel_high};
    /* a flat line lies in the middle */
    const double smallest = fmax(fabs(low), fabs(high)) * 1e-9;
    if (!(high - low > smallest)) {
        const double around = fmax(fabs(high) * 0.1, 1e-12);
        low -= around;
        high += around;
    }
    a.tick = nice_tick(high - low, 6);
    a.low = floor(low / a.tick + 1e-9) * a.tick;
    a.high = ceil(high / a.tick - 1e-9) * a.tick;
    return a;
}

static axis decade_axis(double low, double high, double pixel_low, double pixel_high)
{
    axis a = {.pixel_low = pixel_low, .pixel_high = pixel_high, .logarithmic = true};
    a.low = floor(log10(low));
    a.high = ceil(log10(high));
    if (a.high <= a.low) a.high = a.low + 1;
    a.tick = fmax(1, nice_tick(a.high - a.low, 6));
    return a;
}

static double to_pixel(const axis *a, double value)
{
    double x = value;
    if (a->logarithmic) x = value > 0 ? log10(value) : a->low;
    x = fmin(fmax(x, a->low), a->high);
    return a->pixel_low + (x - a->low) / (a->high - a->low) * (a->pixel_high - a->pixel_low);
}

static axis panel_axis(const plot *p, const plot_panel *panel, double pixel_low, double pixel_high)
{
    double low = DBL_MAX, high = -DBL_MAX;
    for (int32_t s = 0; s < panel->series; s++)
        for (int32_t i = 0; i < p->samples; i++) {
            const double v = panel->values[s][i];
            if (!isfinite(v) || (panel->logarithmic && !(v > 0))) continue;
            low = fmin(low, v);
            high = fmax(high, v);
        }
    if (panel->logarithmic) {
        /* nothing to show: some decades around rounding errors */
        if (low > high) return decade_axis(1e-16, 1e-8, pixel_low, pixel_high);
        return decade_axis(low, high, pixel_low, pixel_high);
    }
    if (low > high) return linear_axis(0, 1, pixel_low, pixel_high);
    return linear_axis(low, high, pixel_low, pixel_high);
}

/* ---- pieces of SVG ---- */

void plot_write_text(FILE *file, const char *text, size_t longest)
{
    size_t written = 0;
    for (const char *c = text; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;
        const bool continued = (byte & 0xc0) == 0x80;
        if (!continued && written == longest) {
            fputs("\xe2\x80\xa6", file); /* ellipsis */
            return;
        }
        if (!continued) written++;
        switch (*c) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        default: fputc(byte < 0x20 ? '?' : byte, file); break;
        }
    }
}

static void draw_x_ticks(FILE *file, const axis *x, double top, double bottom)
{
    const double first = ceil(x->low / x->tick - 1e-6);
    const double last = floor(x->high / x->tick + 1e-6);
    for (double i = first; i <= last; i++) {
        const double value = i * x->tick;
        const double at = to_pixel(x, value);
        fprintf(file, "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", at,
                top, at, bottom);
        fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.6g</text>\n", at,
                bottom + 16, fabs(value) < x->tick * 1e-6 ? 0 : value);
    }
}

static void draw_y_ticks(FILE *file, const axis *y)
{
    const int count = (int)((y->high - y->low) / y->tick + 1e-6);
    for (int i = 0; i <= count; i++) {
        const double value = y->low + i * y->tick;
        const double at = to_pixel(y, y->logarithmic ? pow(10, value) : value);
        fprintf(file, "<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", LEFT, at,
                PAGE_WIDTH - RIGHT, at);
        fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 7, at + 4);
        if (y->logarithmic)
            fprintf(file, "1e%d</text>\n", (int)lround(value));
        else
            fprintf(file, "%.6g</text>\n", fabs(value) < y->tick * 1e-6 ? 0 : value);
    }
}

/* The later eight series are dashed. */
static void write_stroke(FILE *file, int32_t series)
{
    fprintf(file, "stroke=\"%s\"%s", COLOURS[series % COLOURS_COUNT],
            series >= COLOURS_COUNT ? " stroke-dasharray=\"6 3\"" : "");
}

static void draw_series(FILE *file, const plot *p, const double *values, int32_t series,
                        const axis *x, const axis *y)
{
    bool down = false;
    fprintf(file, "<path class=\"s\" ");
    write_stroke(file, series);
    fprintf(file, " d=\"");
    for (int32_t i = 0; i < p->samples; i++) {
        /* a value that is not a number interrupts the line */
        const bool drawn = isfinite(values[i]);
        if (drawn)
            fprintf(file, "%c%.2f %.2f", down ? 'L' : 'M', to_pixel(x, p->x[i]),
                    to_pixel(y, values[i]));
        down = drawn;
    }
    fprintf(file, "\"/>\n");
}

static void draw_legend(FILE *file, const plot_panel *panel, double top)
{
    const int left = PAGE_WIDTH - RIGHT + 14;
    for (int32_t s = 0; s < panel->series; s++) {
        const double at = top + 8 + s * LEGEND_LINE;
        fprintf(file, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke-width=\"2\" ", left,
                at, left + 22, at);
        write_stroke(file, s);
        fprintf(file, "/>\n<text x=\"%d\" y=\"%.1f\">", left + 28, at + 4);
        plot_write_text(file, panel->names[s], LEGEND_NAME);
        fprintf(file, "</text>\n");
    }
    if (panel->left_out > 0)
        fprintf(file, "<text x=\"%d\" y=\"%.1f\">and %d more, not drawn</text>\n", left,
                top + 12 + panel->series * LEGEND_LINE, (int)panel->left_out);
}

static void draw_panel(FILE *file, const plot *p, const plot_panel *panel, double top)
{
    const double bottom = top + PANEL_HEIGHT;
    const double first = p->samples > 0 ? p->x[0] : 0;
    const double last = p->samples > 0 ? p->x[p->samples - 1] : 1;
    /* x ends where the samples end; y ends at ticks */
    axis x = linear_axis(first, last, LEFT, PAGE_WIDTH - RIGHT);
    if (last > first) {
        x.low = first;
        x.high = last;
    }
    const axis y = panel_axis(p, panel, bottom, top);

    fprintf(file, "<text x=\"%d\" y=\"%.1f\" class=\"h\">", LEFT, top - 10);
    plot_write_text(file, panel->title, sizeof panel->title);
    fprintf(file, "</text>\n");
    draw_x_ticks(file, &x, top, bottom);
    draw_y_ticks(file, &y);
    fprintf(file, "<rect class=\"f\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n", LEFT, top,
            PAGE_WIDTH - RIGHT - LEFT, PANEL_HEIGHT);
    for (int32_t s = 0; s < panel->series; s++) draw_series(file, p, panel->values[s], s, &x, &y);
    draw_legend(file, panel, top);
}

tb_status plot_check_path(const char *path, tb_error *error)
{
    if (files_has_extension(path, ".svg") || strcmp(path, "-") == 0) return TB_OK;
    return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, "plot", "a plot ends in .svg");
}

tb_status plot_write(const plot *p, const char *path, tb_error *error)
{
    FILE *file = NULL;
    const tb_status status = files_create(path, &file, error);
    if (status != TB_OK) return status;

    const int height = TOP + p->panels * (PANEL_HEIGHT + PANEL_GAP) - PANEL_GAP + BOTTOM + 20;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<style>.g{stroke:#ddd}.f{fill:none;stroke:#888}.h{font-weight:bold}"
            ".s{fill:none;stroke-width:1.6;stroke-linejoin:round}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"24\" font-size=\"16\">",
            PAGE_WIDTH, height, PAGE_WIDTH, height, PAGE_WIDTH, height, LEFT);
    plot_write_text(file, p->title, sizeof p->title);
    fprintf(file, "</text>\n");
    for (int32_t k = 0; k < p->panels; k++)
        draw_panel(file, p, &p->panel[k], TOP + k * (PANEL_HEIGHT + PANEL_GAP));
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
            (LEFT + PAGE_WIDTH - RIGHT) / 2, height - 14);
    plot_write_text(file, p->x_title, sizeof p->x_title);
    fprintf(file, "</text>\n</svg>\n");
    return files_close(file, path, error);
}
