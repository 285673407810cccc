/* CSG files: solids by constructive solid geometry, in the text that OpenSCAD exports as .csg, and
 * translate, rotate, scale and mirror besides. See mesh_file.h.
 *
 * A module with children combines them: difference takes the others from the first, intersection
 * keeps the common part, every other module unites them. Inside of linear_extrude the flat modules
 * (square, circle, polygon) become prisms of its height at once: the union, difference or
 * intersection of prisms is the prism of that of their outlines. */
#include "base/budget.h"
#include "base/file.h"
#include "model/import/mesh/csg_solid.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, MOST_ARGUMENTS = 16, MOST_SEGMENTS = 512, WORD = 32 };

static const double PI = 3.14159265358979323846;

/* A value: a number, or a list whose rows are numbers or lists of numbers. */
typedef struct value {
    char name[WORD]; /* "": by its place */
    double *numbers; /* flat */
    int32_t *rows;   /* first number of each row, and the end; NULL for a plain list */
    int32_t count, number_capacity, number_of_rows, row_capacity;
    bool is_list;
} value;

typedef struct arguments {
    value list[MOST_ARGUMENTS];
    int32_t count;
} arguments;

typedef struct reader {
    const char *text, *at, *end, *file;
    tb_error *error;
    tb_status status;
    tb_csg_pool pool;
    double transform[12]; /* rows of 4: of the present module */
    bool flat;            /* inside of linear_extrude */
    double bottom, top;
    int depth;
} reader;

TB_PRINTF(3, 4)
static void fail(reader *r, tb_status status, const char *format, ...)
{
    char text[160];
    int line = 1;
    va_list list;
    if (r->status != TB_OK) return;
    for (const char *p = r->text; p < r->at; p++) line += *p == '\n';
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    r->status = tb_fail_file(r->error, status, r->file, line, "mesh", "%s", text);
}

/* ---- words and numbers ---- */

static void skip(reader *r)
{
    while (r->at < r->end) {
        if (isspace((unsigned char)*r->at) || *r->at == ';') {
            r->at++;
        } else if (r->at[0] == '/' && r->at[1] == '/') {
            while (r->at < r->end && *r->at != '\n') r->at++;
        } else if (r->at[0] == '/' && r->at[1] == '*') {
            const char *close = strstr(r->at, "*/");
            r->at = close != NULL ? close + 2 : r->end;
        } else {
            return;
        }
    }
}

static bool take(reader *r, char c)
{
    while (r->at < r->end && isspace((unsigned char)*r->at)) r->at++;
    if (r->at >= r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static void word(reader *r, char text[WORD])
{
    int n = 0;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '$')) {
        if (n < WORD - 1) text[n++] = *r->at;
        r->at++;
    }
    text[n] = 0;
}

static void add_number(reader *r, value *v, double x)
{
    double *grown = tb_grow(v->numbers, v->count + 1, &v->number_capacity, sizeof *grown);
    if (grown == NULL) {
        fail(r, TB_RESOURCE_EXHAUSTED, "there is no memory for its numbers");
        return;
    }
    v->numbers = grown;
    v->numbers[v->count++] = x;
}

static void add_row(reader *r, value *v)
{
    int32_t *grown = tb_grow(v->rows, v->number_of_rows + 2, &v->row_capacity, sizeof *grown);
    if (grown == NULL) {
        fail(r, TB_RESOURCE_EXHAUSTED, "there is no memory for its lists");
        return;
    }
    v->rows = grown;
    v->rows[v->number_of_rows++] = v->count;
}

/* A number, a word that names one, or a list; lists of lists to a depth of 2. */
static void read_value(reader *r, value *v, int depth)
{
    char text[WORD];
    skip(r);
    if (!tb_budget_holds()) {
        if (r->status == TB_OK) r->status = tb_budget_check(r->error);
        return;
    }
    if (take(r, '[')) {
        if (depth >= 2) {
            fail(r, TB_INVALID_ARGUMENT, "a list is too deep");
            return;
        }
        v->is_list = true;
        if (depth == 1) add_row(r, v);
        while (r->status == TB_OK && !take(r, ']')) {
            read_value(r, v, depth + 1);
            if (!take(r, ',') && r->status == TB_OK && (r->at >= r->end || *r->at != ']'))
                fail(r, TB_INVALID_ARGUMENT, "a list goes on without a comma");
        }
        if (depth == 1 && v->rows != NULL) v->rows[v->number_of_rows] = v->count;
        return;
    }
    double x = 0;
    const char *p = r->at;
    if (r->at < r->end && *r->at == '"') {
        const char *close = memchr(r->at + 1, '"', (size_t)(r->end - r->at - 1));
        r->at = close != NULL ? close + 1 : r->end;
        add_number(r, v, 0);
    } else if (tb_parse_number(&p, &x) && p <= r->end && isfinite(x)) {
        r->at = p;
        add_number(r, v, x);
    } else {
        word(r, text);
        if (strcmp(text, "undef") == 0) return;
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            fail(r, TB_INVALID_ARGUMENT, "'%.20s' is no number", text[0] ? text : "this");
        add_number(r, v, strcmp(text, "true") == 0);
    }
}

static void free_arguments(arguments *a)
{
    for (int32_t i = 0; i < a->count; i++) {
        free(a->list[i].numbers);
        free(a->list[i].rows);
    }
}

static void read_arguments(reader *r, arguments *a)
{
    a->count = 0;
    if (!take(r, '(')) fail(r, TB_INVALID_ARGUMENT, "'(' is missing");
    while (r->status == TB_OK && !take(r, ')')) {
        if (a->count == MOST_ARGUMENTS) {
            fail(r, TB_INVALID_ARGUMENT, "there are too many arguments");
            return;
        }
        value *v = &a->list[a->count++];
        memset(v, 0, sizeof *v);
        skip(r);
        const char *before = r->at;
        word(r, v->name);
        if (v->name[0] == 0 || !take(r, '=')) {
            v->name[0] = 0;
            r->at = before;
        }
        read_value(r, v, 0);
        if (!take(r, ',') && r->status == TB_OK && (r->at >= r->end || *r->at != ')'))
            fail(r, TB_INVALID_ARGUMENT, "arguments go on without a comma");
    }
}

/* The argument of a name, or the one at a place (from 0) among those without; NULL: none. */
static const value *argument(const arguments *a, const char *name, int32_t place)
{
    for (int32_t i = 0; i < a->count; i++)
        if (strcmp(a->list[i].name, name) == 0) return &a->list[i];
    for (int32_t i = 0; i < a->count; i++)
        if (a->list[i].name[0] == 0 && place-- == 0) return &a->list[i];
    return NULL;
}

static double number(const arguments *a, const char *name, int32_t place, double usual)
{
    const value *v = argument(a, name, place);
    return v != NULL && v->count > 0 ? v->numbers[0] : usual;
}

/* `count` numbers; a single number applies to all of them. */
static void numbers(const arguments *a, const char *name, int32_t place, int32_t count, double *x)
{
    const value *v = argument(a, name, place);
    if (v == NULL || v->count == 0) return;
    for (int32_t i = 0; i < count; i++)
        if (i < v->count || !v->is_list) x[i] = v->numbers[v->is_list ? i : 0];
}

/* ---- primitives ---- */

static int32_t add_point(reader *r, double x, double y, double z)
{
    const double *t = r->transform;
    return tb_csg_vertex(&r->pool, t[0] * x + t[1] * y + t[2] * z + t[3],
                         t[4] * x + t[5] * y + t[6] * z + t[7],
                         t[8] * x + t[9] * y + t[10] * z + t[11]);
}

/* Faces keep their outside where the transformation mirrors. */
static void add_face(reader *r, tb_csg_solid *s, int32_t *v, int32_t count)
{
    const double *t = r->transform;
    const double turn = t[0] * (t[5] * t[10] - t[6] * t[9]) - t[1] * (t[4] * t[10] - t[6] * t[8]) +
                        t[2] * (t[4] * t[9] - t[5] * t[8]);
    for (int32_t i = 0; i < count / 2 && turn < 0; i++) {
        const int32_t swap = v[i];
        v[i] = v[count - 1 - i], v[count - 1 - i] = swap;
    }
    tb_csg_face(&r->pool, s, v, count);
}

/* A prism, or a frustum or cone: a loop at the bottom and one at the top, each scaled. */
static void put_prism(reader *r, tb_csg_solid *s, const double (*loop)[2], int32_t count, double z0,
                      double z1, double scale0, double scale1)
{
    int32_t *low = malloc(2 * (size_t)count * sizeof *low), *high = low + count;
    if (low == NULL) {
        fail(r, TB_RESOURCE_EXHAUSTED, "there is no memory for a prism");
        return;
    }
    const int32_t lows = scale0 > 0 ? count : 1, highs = scale1 > 0 ? count : 1;
    for (int32_t i = 0; i < lows; i++)
        low[i] = add_point(r, scale0 * loop[i][0], scale0 * loop[i][1], z0);
    for (int32_t i = 0; i < highs; i++)
        high[i] = add_point(r, scale1 * loop[i][0], scale1 * loop[i][1], z1);
    for (int32_t i = 0; i < count; i++) {
        const int32_t k = (i + 1) % count;
        int32_t face[4] = {low[i % lows], low[k % lows], high[k % highs], high[i % highs]};
        int32_t corners = 0;
        for (int c = 0; c < 4; c++)
            if (corners == 0 || (face[c] != face[corners - 1] && face[c] != face[0]))
                face[corners++] = face[c];
        add_face(r, s, face, corners);
    }
    if (highs > 1) add_face(r, s, high, count);
    for (int32_t i = 0; i < count / 2; i++) {
        const int32_t swap = low[i];
        low[i] = low[count - 1 - i], low[count - 1 - i] = swap;
    }
    if (lows > 1) add_face(r, s, low, count);
    free(low);
}

/* OpenSCAD's number of sides of a circle. */
static int32_t segments(reader *r, const arguments *a, double radius)
{
    const double fn = number(a, "$fn", MOST_ARGUMENTS, 0),
                 fa = number(a, "$fa", MOST_ARGUMENTS, 12),
                 fs = number(a, "$fs", MOST_ARGUMENTS, 2);
    double n = fn >= 3 ? floor(fn) : ceil(fmax(fmin(360 / fa, radius * 2 * PI / fs), 5));
    if (fn <= 0 && fa == 12 && fs == 2) n = 30; /* a side of 2 is one of 2 mm there, of 2 m here */
    if (!(n <= MOST_SEGMENTS)) {
        fail(r, TB_RESOURCE_EXHAUSTED, "a circle has more than %d sides", (int)MOST_SEGMENTS);
        n = 3;
    }
    return (int32_t)n;
}

static void circle(double (*loop)[2], int32_t count, double radius)
{
    for (int32_t i = 0; i < count; i++) {
        loop[i][0] = radius * cos(2 * PI * i / count);
        loop[i][1] = radius * sin(2 * PI * i / count);
    }
}

static void put_cube(reader *r, const arguments *a, tb_csg_solid *s)
{
    double size[3] = {1, 1, 1};
    numbers(a, "size", 0, r->flat ? 2 : 3, size);
    const bool centre = number(a, "center", 1, 0) != 0;
    if (!(size[0] > 0) || !(size[1] > 0) || !(size[2] > 0)) {
        fail(r, TB_INVALID_ARGUMENT, "sizes must be positive");
        return;
    }
    const double x = centre ? -size[0] / 2 : 0, y = centre ? -size[1] / 2 : 0,
                 z = centre ? -size[2] / 2 : 0;
    const double loop[4][2] = {
        {x, y}, {x + size[0], y}, {x + size[0], y + size[1]}, {x, y + size[1]}};
    put_prism(r, s, loop, 4, r->flat ? r->bottom : z, r->flat ? r->top : z + size[2], 1, 1);
}

static void put_cylinder(reader *r, const arguments *a, tb_csg_solid *s)
{
    double loop[MOST_SEGMENTS][2];
    const double radius =
        number(a, "r", r->flat ? 0 : MOST_ARGUMENTS, number(a, "d", MOST_ARGUMENTS, 2) / 2);
    const double h = number(a, "h", 0, 1), bottom = number(a, "r1", 1, radius),
                 top = number(a, "r2", 2, radius);
    const double z = number(a, "center", 3, 0) != 0 ? -h / 2 : 0;
    const double largest = r->flat ? radius : fmax(bottom, top);
    if (!(h > 0) || !(largest > 0) || bottom < 0 || top < 0) {
        fail(r, TB_INVALID_ARGUMENT, "heights and radii must be positive");
        return;
    }
    const int32_t count = segments(r, a, largest);
    circle(loop, count, 1);
    if (r->flat)
        put_prism(r, s, (const double(*)[2])loop, count, r->bottom, r->top, radius, radius);
    else
        put_prism(r, s, (const double(*)[2])loop, count, z, z + h, bottom, top);
}

/* Rings at the middles of equal angles, as OpenSCAD. */
static void put_sphere(reader *r, const arguments *a, tb_csg_solid *s)
{
    const double radius = number(a, "r", 0, number(a, "d", MOST_ARGUMENTS, 2) / 2);
    if (!(radius > 0)) {
        fail(r, TB_INVALID_ARGUMENT, "a radius must be positive");
        return;
    }
    const int32_t n = segments(r, a, radius), rings = (n + 1) / 2;
    int32_t *v = malloc((size_t)n * (size_t)rings * sizeof *v);
    if (v == NULL) {
        fail(r, TB_RESOURCE_EXHAUSTED, "there is no memory for a sphere");
        return;
    }
    for (int32_t k = 0; k < rings; k++) {
        const double angle = PI * (k + 0.5) / rings;
        for (int32_t i = 0; i < n; i++)
            v[k * n + i] =
                add_point(r, radius * sin(angle) * cos(2 * PI * i / n),
                          radius * sin(angle) * sin(2 * PI * i / n), radius * cos(angle));
    }
    for (int32_t k = 0; k + 1 < rings; k++)
        for (int32_t i = 0; i < n; i++) {
            const int32_t j = (i + 1) % n;
            int32_t face[4] = {v[(k + 1) * n + i], v[(k + 1) * n + j], v[k * n + j], v[k * n + i]};
            add_face(r, s, face, 4);
        }
    add_face(r, s, v, n);
    int32_t *last = v + (rings - 1) * n;
    for (int32_t i = 0; i < n / 2; i++) {
        const int32_t swap = last[i];
        last[i] = last[n - 1 - i], last[n - 1 - i] = swap;
    }
    add_face(r, s, last, n);
    free(v);
}

/* The points of a list of points with `width` numbers each; NULL after a failure. */
static const value *points_of(reader *r, const arguments *a, int32_t width)
{
    const value *v = argument(a, "points", 0);
    bool fits = v != NULL && v->number_of_rows >= 3 && v->rows[0] == 0;
    for (int32_t i = 0; fits && i < v->number_of_rows; i++)
        fits = v->rows[i + 1] - v->rows[i] == width;
    if (!fits) fail(r, TB_INVALID_ARGUMENT, "points must be 3 or more lists of %d numbers", width);
    return fits ? v : NULL;
}

static void put_polyhedron(reader *r, const arguments *a, tb_csg_solid *s)
{
    const value *x = points_of(r, a, 3), *faces = argument(a, "faces", 1);
    if (x == NULL) return;
    const int32_t first = r->pool.number_of_vertices;
    for (int32_t i = 0; i < x->number_of_rows; i++)
        add_point(r, x->numbers[3 * i], x->numbers[3 * i + 1], x->numbers[3 * i + 2]);
    for (int32_t f = 0; faces != NULL && f < faces->number_of_rows && r->status == TB_OK; f++) {
        const int32_t count = faces->rows[f + 1] - faces->rows[f];
        int32_t corners[64];
        if (count < 3 || count > 64) {
            fail(r, TB_INVALID_ARGUMENT, "a face has %d corners, expected 3 to 64", (int)count);
            return;
        }
        for (int32_t k = 0; k < count; k++) {
            const double v = faces->numbers[faces->rows[f] + k];
            if (!(v >= 0 && v < x->number_of_rows) || v != floor(v)) {
                fail(r, TB_INVALID_ARGUMENT, "face %d names point %g of %d", (int)f, v,
                     (int)x->number_of_rows);
                return;
            }
            corners[count - 1 - k] = first + (int32_t)v; /* OpenSCAD: clockwise from outside */
        }
        add_face(r, s, corners, count);
    }
}

static void put_polygon(reader *r, const arguments *a, tb_csg_solid *s)
{
    const value *x = points_of(r, a, 2), *paths = argument(a, "paths", 1);
    if (x == NULL) return;
    if (paths != NULL && paths->number_of_rows > 1) {
        fail(r, TB_UNSUPPORTED, "a polygon has several paths: use difference");
        return;
    }
    const bool path = paths != NULL && paths->count > 0;
    const int32_t count = path ? paths->count : x->number_of_rows;
    double(*loop)[2] = malloc(((size_t)count + 1) * sizeof *loop);
    if (loop == NULL) fail(r, TB_RESOURCE_EXHAUSTED, "there is no memory for a polygon");
    double area = 0;
    for (int32_t i = 0; i < count && r->status == TB_OK; i++) {
        const double v = path ? paths->numbers[i] : i;
        if (!(v >= 0 && v < x->number_of_rows))
            fail(r, TB_INVALID_ARGUMENT, "a path names no point");
        if (r->status == TB_OK) memcpy(loop[i], x->numbers + 2 * (int32_t)v, sizeof loop[i]);
    }
    for (int32_t i = 0; i < count && r->status == TB_OK; i++) {
        const double *p = loop[i], *q = loop[(i + 1) % count];
        area += p[0] * q[1] - p[1] * q[0];
    }
    for (int32_t i = 0; i < count / 2 && area < 0; i++)
        for (int k = 0; k < 2; k++) {
            const double swap = loop[i][k];
            loop[i][k] = loop[count - 1 - i][k], loop[count - 1 - i][k] = swap;
        }
    if (r->status == TB_OK)
        put_prism(r, s, (const double(*)[2])loop, count, r->bottom, r->top, 1, 1);
    free(loop);
}

/* ---- modules ---- */

static void compose(double t[12], const double m[12])
{
    double out[12];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            out[4 * i + k] = k == 3 ? t[4 * i + 3] : 0;
            for (int j = 0; j < 3; j++) out[4 * i + k] += t[4 * i + j] * m[4 * j + k];
        }
    memcpy(t, out, sizeof out);
}

/* Rotations about x, then y, then z, degrees. */
static void rotation(const double angle[3], double m[12])
{
    double turn[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    for (int axis = 2; axis >= 0; axis--) {
        const double c = cos(angle[axis] * PI / 180), s = sin(angle[axis] * PI / 180);
        const int j = (axis + 1) % 3, k = (axis + 2) % 3;
        double one[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
        one[4 * j + j] = one[4 * k + k] = c;
        one[4 * j + k] = -s, one[4 * k + j] = s;
        compose(turn, one);
    }
    memcpy(m, turn, sizeof turn);
}

/* The transformation of a module; false if it is none. */
static bool transformation(reader *r, const char *name, const arguments *a, double m[12])
{
    const double identity[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    double x[3] = {0, 0, 0};
    memcpy(m, identity, sizeof identity);
    if (strcmp(name, "multmatrix") == 0) {
        const value *v = argument(a, "m", 0);
        if (v == NULL || v->count < 12) fail(r, TB_INVALID_ARGUMENT, "a matrix has 4 x 4 numbers");
        for (int i = 0; i < 12 && r->status == TB_OK; i++) m[i] = v->numbers[i];
        return true;
    }
    if (strcmp(name, "translate") == 0) {
        numbers(a, "v", 0, 3, x);
        for (int i = 0; i < 3; i++) m[4 * i + 3] = x[i];
        return true;
    }
    if (strcmp(name, "scale") == 0) {
        x[0] = x[1] = x[2] = 1;
        numbers(a, "v", 0, 3, x);
        for (int i = 0; i < 3; i++) m[5 * i] = x[i];
        return true;
    }
    if (strcmp(name, "rotate") == 0) {
        const value *v = argument(a, "a", 0);
        if (v != NULL && !v->is_list)
            x[2] = v->count > 0 ? v->numbers[0] : 0;
        else
            numbers(a, "a", 0, 3, x);
        rotation(x, m);
        return true;
    }
    if (strcmp(name, "mirror") != 0) return false;
    numbers(a, "v", 0, 3, x);
    const double square = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
    for (int i = 0; i < 3 && square > 0; i++)
        for (int k = 0; k < 3; k++) m[4 * i + k] -= 2 * x[i] * x[k] / square;
    return true;
}

static bool is_one_of(const char *name, const char *const *list)
{
    while (*list != NULL && strcmp(*list, name) != 0) list++;
    return *list != NULL;
}

/* A primitive; false if the module is none. */
static bool primitive(reader *r, const char *name, const arguments *a, tb_csg_solid *s)
{
    static const char *const FLAT[] = {"square", "circle", "polygon", NULL};
    static const char *const SOLID[] = {"cube", "cylinder", "sphere", "polyhedron", NULL};
    const bool flat = is_one_of(name, FLAT);
    if (!flat && !is_one_of(name, SOLID)) return false;
    if (flat != r->flat) {
        fail(r, TB_INVALID_ARGUMENT,
             flat ? "%s is flat: put it into linear_extrude"
                  : "%s is a solid: it cannot be extruded",
             name);
        return true;
    }
    if (strcmp(name, "square") == 0 || strcmp(name, "cube") == 0)
        put_cube(r, a, s);
    else if (strcmp(name, "circle") == 0 || strcmp(name, "cylinder") == 0)
        put_cylinder(r, a, s);
    else if (strcmp(name, "sphere") == 0)
        put_sphere(r, a, s);
    else if (strcmp(name, "polyhedron") == 0)
        put_polyhedron(r, a, s);
    else
        put_polygon(r, a, s);
    return true;
}

static void read_module(reader *r, tb_csg_solid *s);

/* The children in braces, or one without, combined. */
static void read_children(reader *r, tb_csg_operation operation, tb_csg_solid *s)
{
    if (take(r, ';')) return; /* none */
    skip(r);
    const bool block = take(r, '{');
    for (int32_t i = 0; r->status == TB_OK; i++) {
        tb_csg_solid one = {0};
        skip(r);
        if (block && take(r, '}')) return;
        if (r->at >= r->end) {
            fail(r, TB_INVALID_ARGUMENT, "'}' is missing");
            return;
        }
        read_module(r, i == 0 ? s : &one);
        if (i > 0) tb_csg_combine(&r->pool, operation, s, &one);
        tb_csg_solid_free(&one);
        if (r->status == TB_OK && !tb_budget_holds()) r->status = tb_budget_check(r->error);
        if (!block) return;
    }
}

static void extrude(reader *r, const arguments *a, tb_csg_solid *s)
{
    const double height = number(a, "height", 0, 1);
    double scales[2] = {1, 1};
    numbers(a, "scale", MOST_ARGUMENTS, 2, scales);
    if (number(a, "twist", MOST_ARGUMENTS, 0) != 0 || scales[0] != 1 || scales[1] != 1)
        fail(r, TB_UNSUPPORTED, "extrusions are straight: without twist and scale");
    if (!(height > 0) || r->flat) fail(r, TB_INVALID_ARGUMENT, "an extrusion has a height, once");
    r->flat = true;
    r->bottom = number(a, "center", MOST_ARGUMENTS, 0) != 0 ? -height / 2 : 0;
    r->top = r->bottom + height;
    read_children(r, TB_CSG_UNION, s);
    r->flat = false;
}

/* One module with its arguments and children. */
static void read_module(reader *r, tb_csg_solid *s)
{
    static const char *const GROUPS[] = {"group", "union", "color", "render", NULL};
    char name[WORD];
    arguments a;
    double before[12], m[12];
    skip(r);
    word(r, name);
    if (name[0] == 0) fail(r, TB_INVALID_ARGUMENT, "a module's name is missing");
    if (++r->depth > DEEPEST) fail(r, TB_RESOURCE_EXHAUSTED, "modules are nested too deep");
    a.count = 0;
    if (r->status == TB_OK) read_arguments(r, &a);
    memcpy(before, r->transform, sizeof before);
    if (r->status != TB_OK) {
        /* nothing more is read */
    } else if (primitive(r, name, &a, s)) {
        /* it is done */
    } else if (transformation(r, name, &a, m)) {
        compose(r->transform, m);
        read_children(r, TB_CSG_UNION, s);
    } else if (strcmp(name, "linear_extrude") == 0) {
        extrude(r, &a, s);
    } else if (strcmp(name, "difference") == 0) {
        read_children(r, TB_CSG_DIFFERENCE, s);
    } else if (strcmp(name, "intersection") == 0) {
        read_children(r, TB_CSG_INTERSECTION, s);
    } else if (is_one_of(name, GROUPS)) {
        read_children(r, TB_CSG_UNION, s);
    } else {
        fail(r, TB_UNSUPPORTED, "'%s' is not read", name);
    }
    memcpy(r->transform, before, sizeof before);
    free_arguments(&a);
    r->depth--;
}

tb_status tb_csg_parse(const char *text, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error)
{
    reader r = {.text = text,
                .at = text,
                .end = text + size,
                .file = file,
                .error = error,
                .transform = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    tb_csg_solid whole = {0};
    memset(mesh, 0, sizeof *mesh);
    for (skip(&r); r.status == TB_OK && r.at < r.end; skip(&r)) {
        tb_csg_solid one = {0};
        read_module(&r, &one);
        tb_csg_combine(&r.pool, TB_CSG_UNION, &whole, &one);
        tb_csg_solid_free(&one);
    }
    if (r.status == TB_OK && whole.count == 0 && !r.pool.no_memory && !r.pool.too_large &&
        !r.pool.too_far)
        fail(&r, TB_INVALID_ARGUMENT, "the solid is empty");
    if (r.status == TB_OK) r.status = tb_csg_triangles(&r.pool, &whole, file, mesh, error);
    tb_csg_solid_free(&whole);
    tb_csg_pool_free(&r.pool);
    return r.status;
}
