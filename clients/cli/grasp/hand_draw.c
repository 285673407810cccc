/* A drawing of a hand: its shapes in two planes of the tool frame, open and closed.
 *
 * A shape is drawn as the convex hull of its projection. The hull comes from support distances h
 * along directions n(angle): its corners are where the lines n . x = h of neighbouring directions
 * meet. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/plot.h"
#include "grasp/grasp.h"

enum { DIRECTIONS = 48, PANEL = 460, EDGE = 24, CAPTION = 64 };
static const double PI = 3.14159265358979323846;

/* One plane of the tool frame: two axes of it, drawn rightwards and upwards. */
typedef struct plane {
    const char *caption;
    int right, up; /* axes 0 to 2 */
    double left;   /* pixels */
    double centre[2], scale;
} plane;

/* Corners of a shape's outline, m in the plane. */
static void outline(const tb_hand *hand, int32_t shape, bool closed, const plane *p,
                    double corners[DIRECTIONS][2])
{
    double h[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; i++) {
        const double angle = 2 * PI * i / DIRECTIONS;
        double n[3] = {0};
        n[p->right] = cos(angle);
        n[p->up] = sin(angle);
        h[i] = tb_hand_support(hand, shape, closed, n);
    }
    const double turn = 2 * PI / DIRECTIONS;
    for (int i = 0; i < DIRECTIONS; i++) {
        const double a = turn * i, next = h[(i + 1) % DIRECTIONS];
        const double along = (next - h[i] * cos(turn)) / sin(turn);
        corners[i][0] = h[i] * cos(a) - along * sin(a);
        corners[i][1] = h[i] * sin(a) + along * cos(a);
    }
}

/* Fits the plane to the hand in both poses and to the tool frame. */
static void fit(const tb_hand *hand, plane *p)
{
    double low[2] = {-0.02, -0.02}, high[2] = {0.02, 0.02}, corners[DIRECTIONS][2];
    for (int32_t s = 0; s < tb_hand_number_of_shapes(hand); s++)
        for (int closed = 0; closed < 2; closed++) {
            outline(hand, s, closed == 1, p, corners);
            for (int i = 0; i < DIRECTIONS; i++)
                for (int k = 0; k < 2; k++) {
                    low[k] = fmin(low[k], corners[i][k]);
                    high[k] = fmax(high[k], corners[i][k]);
                }
        }
    p->scale = (PANEL - 2 * EDGE) / fmax(high[0] - low[0], high[1] - low[1]);
    for (int k = 0; k < 2; k++) p->centre[k] = (low[k] + high[k]) / 2;
}

static double x_of(const plane *p, double right)
{
    return p->left + PANEL / 2.0 + p->scale * (right - p->centre[0]);
}

static double y_of(const plane *p, double up)
{
    return CAPTION + PANEL / 2.0 - p->scale * (up - p->centre[1]);
}

static void draw_shapes(FILE *file, const tb_hand *hand, const plane *p, bool closed)
{
    double corners[DIRECTIONS][2];
    for (int32_t s = 0; s < tb_hand_number_of_shapes(hand); s++) {
        outline(hand, s, closed, p, corners);
        fprintf(file, "<polygon class=\"%s\" points=\"", closed ? "closed" : "open");
        for (int i = 0; i < DIRECTIONS; i++)
            fprintf(file, "%.1f,%.1f ", x_of(p, corners[i][0]), y_of(p, corners[i][1]));
        fputs("\"><title>", file);
        plot_write_text(file, tb_hand_shape_body(hand, s), SIZE_MAX);
        fputs("</title></polygon>\n", file);
    }
}

static void draw_arrow(FILE *file, const plane *p, const double from[2], const double to[2],
                       const char *class, const char *label)
{
    const double x = x_of(p, to[0]), y = y_of(p, to[1]);
    fprintf(file,
            "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
            "marker-end=\"url(#tip)\"/>\n"
            "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            class, x_of(p, from[0]), y_of(p, from[1]), x, y, class, x + 5, y - 5, label);
}

/* The tool frame: its axes as arrows, the one that is normal to the plane as a dot. */
static void draw_frame(FILE *file, const plane *p)
{
    static const char *const NAMES[] = {"x", "y", "z"};
    const double length = 60 / p->scale, zero[2] = {0, 0};
    const double right[2] = {length, 0}, up[2] = {0, length};
    draw_arrow(file, p, zero, right, NAMES[p->right], NAMES[p->right]);
    draw_arrow(file, p, zero, up, NAMES[p->up], NAMES[p->up]);
    fprintf(file, "<circle class=\"origin\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x_of(p, 0),
            y_of(p, 0));
}

/* The opening along the closing axis, through the tool frame's origin. */
static void draw_opening(FILE *file, const tb_hand_info *h, const plane *p)
{
    const double d[2] = {h->axis[p->right] * h->opening / 2, h->axis[p->up] * h->opening / 2};
    if (!(hypot(d[0], d[1]) > 0.1 * h->opening)) return;
    fprintf(file,
            "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
            "marker-start=\"url(#tip)\" marker-end=\"url(#tip)\"/>\n"
            "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\">opening %.1f mm</text>\n",
            x_of(p, -d[0]), y_of(p, -d[1]), x_of(p, d[0]), y_of(p, d[1]), x_of(p, d[0]) + 6,
            y_of(p, d[1]) + 16, 1e3 * h->opening);
}

static const char STYLE[] =
    "<style>text{font:13px sans-serif;fill:#222}.open{fill:#7aa6d8;fill-opacity:.18;stroke:#2b5f9e}"
    ".closed{fill:none;stroke:#c0392b;stroke-dasharray:4 3}.origin{fill:#222}"
    "line{stroke-width:2}line.x{stroke:#d62728}line.y{stroke:#2ca02c}line.z{stroke:#1f4fd6}"
    "line.axis{stroke:#8e44ad}text.axis{fill:#8e44ad}</style>\n"
    "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0 8 4 0 "
    "8z\"/></marker></defs>\n";

tb_status hand_draw(FILE *file, const tb_hand *hand, const char *title, tb_error *error)
{
    const tb_hand_info *h = tb_hand_describe(hand);
    plane planes[] = {{.caption = "closing plane: y right, z (approach) up", .right = 1, .up = 2},
                      {.caption = "side: x right, z (approach) up", .right = 0, .up = 2}};
    const int width = 2 * PANEL, height = PANEL + CAPTION + 28;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n%s<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"22\">",
            width, height, width, height, STYLE, width, height, EDGE);
    plot_write_text(file, title, SIZE_MAX);
    fprintf(file, ", profile %s: open (blue), closed (red)</text>\n",
            h->profile[0] != '\0' ? h->profile : "none");
    for (int i = 0; i < 2; i++) {
        plane *p = &planes[i];
        p->left = PANEL * i;
        fit(hand, p);
        fprintf(file, "<text x=\"%.0f\" y=\"46\">%s</text>\n", p->left + EDGE, p->caption);
        draw_shapes(file, hand, p, false);
        draw_shapes(file, hand, p, true);
        draw_frame(file, p);
        draw_opening(file, h, p);
    }
    fputs("</svg>\n", file);
    if (ferror(file))
        return cli_fail(error, TB_DATA_LOSS, "", 0, NULL, "the drawing could not be written");
    return TB_OK;
}
