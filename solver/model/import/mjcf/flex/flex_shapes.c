/* Regular flexes: lattices of points, in MuJoCo's order, which names of bodies and pins go by. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/flex/flex.h"

static const double TURN = 2 * 3.14159265358979323846;

/* The six tetrahedra of a cell of a grid, and its corners: round the square below, then the one above. */
static const int32_t CELL[6][4] = {{0, 3, 1, 7}, {0, 1, 4, 7}, {1, 3, 2, 7},
                                   {1, 2, 6, 7}, {1, 5, 4, 7}, {1, 6, 5, 7}};
static const int32_t CORNER[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0},
                                     {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};

static tb_status reserve(flex *f, const xmlNode *node, int64_t points, int64_t simplices,
                         tb_error *error)
{
    tb_simplices *b = &f->body;
    if (points > FLEX_VERTEX_LIMIT)
        return tb_xml_fail(error, TB_RESOURCE_EXHAUSTED, node, "count",
                           "the flexcomp has more than %d points", FLEX_VERTEX_LIMIT);
    if (simplices < 1)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "count",
                           "count is too small for a simplex of dim %d", (int)b->dimension);
    const size_t corners = (size_t)simplices * (size_t)(b->dimension + 1);
    b->points = malloc(3 * (size_t)points * sizeof *b->points);
    b->simplices = malloc(corners * sizeof *b->simplices);
    return b->points != NULL && b->simplices != NULL
               ? TB_OK
               : tb_fail_memory(error, corners * 4 + (size_t)points * 24, "a flexcomp");
}

static void add_point(flex *f, double x, double y, double z)
{
    double *p = f->body.points + 3 * (size_t)f->body.number_of_points++;
    p[0] = x, p[1] = y, p[2] = z;
}

static void add_simplex(flex *f, const int32_t *points)
{
    const int32_t corners = f->body.dimension + 1;
    memcpy(f->body.simplices + (size_t)corners * (size_t)f->body.number_of_simplices++, points,
           (size_t)corners * sizeof *points);
}

static void add_triangle(flex *f, int32_t a, int32_t b, int32_t c)
{
    const int32_t triangle[3] = {a, b, c};
    add_simplex(f, triangle);
}

/* The middle of `count` points is at zero. */
static double along(const flex *f, int axis, int32_t i)
{
    return f->spacing[axis] * (i - 0.5 * (f->count[axis] - 1));
}

/* ---- lines ---- */

static tb_status make_line(flex *f, const xmlNode *node, tb_error *error)
{
    const bool closed = f->type == FLEX_CIRCLE; /* the last point is the first */
    const int32_t n = f->count[0] - closed;
    MJCF_TRY(reserve(f, node, n, closed && n < 3 ? 0 : n - !closed, error));
    const double turn = TURN / n, radius = f->spacing[0] / (2 * sin(turn / 2));
    for (int32_t i = 0; i < n; i++) {
        if (closed)
            add_point(f, radius * cos(turn * i), radius * sin(turn * i), 0);
        else
            add_point(f, along(f, 0, i), 0, 0);
        const int32_t next[2] = {i, i + 1 < n ? i + 1 : 0};
        if (closed || i + 1 < n) add_simplex(f, next);
    }
    return TB_OK;
}

/* ---- plates ---- */

/* Whether a cell's diagonal goes from (1, 0) to (0, 1): towards the rim of a disc. */
static bool turns_diagonal(const flex *f, double x, double y)
{
    const double rounding = 1e-14;
    return f->type == FLEX_DISC &&
           ((x < -rounding && y > -rounding) || (x > -rounding && y < -rounding));
}

static tb_status make_plate(flex *f, const xmlNode *node, tb_error *error)
{
    const int32_t nx = f->count[0], ny = f->count[1];
    MJCF_TRY(reserve(f, node, (int64_t)nx * ny, 2 * (int64_t)(nx - 1) * (ny - 1), error));
    for (int32_t ix = 0; ix < nx; ix++)
        for (int32_t iy = 0; iy < ny; iy++) {
            const double x = along(f, 0, ix), y = along(f, 1, iy);
            add_point(f, x, y, 0);
            if (ix == nx - 1 || iy == ny - 1) continue;
            const int32_t a = ix * ny + iy, b = a + ny, c = b + 1, d = a + 1;
            const bool turned = turns_diagonal(f, x, y);
            add_triangle(f, a, b, turned ? d : c);
            add_triangle(f, turned ? b : a, c, d);
        }
    return TB_OK;
}

/* Draws a square onto the disc or ellipse of its sides. */
static void round_plate(flex *f)
{
    for (int32_t i = 0; i < f->body.number_of_points; i++) {
        double *p = f->body.points + 3 * (size_t)i;
        const double reach = fmax(fabs(p[0]), fabs(p[1])), length = hypot(p[0], p[1]);
        for (int k = 0; k < 2 && length > 0; k++)
            p[k] *= 0.5 * f->spacing[k] * (f->count[k] - 1) * reach / length;
    }
}

/* ---- full grids ---- */

static tb_status make_block(flex *f, const xmlNode *node, tb_error *error)
{
    const int32_t nx = f->count[0], ny = f->count[1], nz = f->count[2];
    MJCF_TRY(reserve(f, node, (int64_t)nx * ny * nz, 6 * (int64_t)(nx - 1) * (ny - 1) * (nz - 1),
                     error));
    for (int32_t ix = 0; ix < nx; ix++)
        for (int32_t iy = 0; iy < ny; iy++)
            for (int32_t iz = 0; iz < nz; iz++) {
                add_point(f, along(f, 0, ix), along(f, 1, iy), along(f, 2, iz));
                if (ix == nx - 1 || iy == ny - 1 || iz == nz - 1) continue;
                for (int t = 0; t < 6; t++) {
                    int32_t corners[4];
                    for (int k = 0; k < 4; k++) {
                        const int32_t *step = CORNER[CELL[t][k]];
                        corners[k] = ((ix + step[0]) * ny + iy + step[1]) * nz + iz + step[2];
                    }
                    add_simplex(f, corners);
                }
            }
    return TB_OK;
}

/* ---- the sides of a block: with its centre as a body, without the upper side as a shell ---- */

/* A point of the block's surface onto the shape. */
static void add_projected(flex *f, const int32_t at[3])
{
    double p[3];
    for (int k = 0; k < 3; k++) p[k] = 2.0 * at[k] / (f->count[k] - 1) - 1;
    const double flat = hypot(p[0], p[1]), reach = fmax(fabs(p[0]), fabs(p[1]));
    const double length = hypot(flat, p[2]);
    for (int k = 0; k < 3; k++) {
        if (f->type == FLEX_ELLIPSOID) p[k] /= length;
        if (f->type == FLEX_CYLINDER && k < 2 && flat > 0) p[k] *= reach / flat;
        p[k] *= 0.5 * f->spacing[k] * (f->count[k] - 1);
    }
    add_point(f, p[0], p[1], p[2]);
}

static int32_t lattice_place(const flex *f, const int32_t at[3])
{
    return (at[0] * f->count[1] + at[1]) * f->count[2] + at[2];
}

/* Whether a side is there: shells are open above. */
static bool has_side(const flex *f, int axis, int end)
{
    return f->body.dimension == 3 || axis != 2 || end == 0;
}

/* Points of both sides across an axis but those that sides before it have. */
static void add_side_points(flex *f, int axis, int32_t *place)
{
    static const int ACROSS[3][2] = {{1, 2}, {0, 2}, {0, 1}}; /* slow, fast */
    const int slow = ACROSS[axis][0], fast = ACROSS[axis][1];
    for (int end = 0; end < 2; end++)
        for (int32_t i = 0; has_side(f, axis, end) && i < f->count[slow]; i++)
            for (int32_t j = 0; j < f->count[fast]; j++) {
                int32_t at[3];
                at[axis] = end * (f->count[axis] - 1), at[slow] = i, at[fast] = j;
                if (place[lattice_place(f, at)] >= 0) continue;
                place[lattice_place(f, at)] = f->body.number_of_points;
                add_projected(f, at);
            }
}

/* A triangle of the surface, or the tetrahedron that it makes with the centre. */
static void add_face(flex *f, int32_t a, int32_t b, int32_t c)
{
    const int32_t corners[4] = {0, a, b, c};
    add_simplex(f, f->body.dimension == 3 ? corners : corners + 1);
}

/* Both triangles of each cell of the sides across an axis. */
static void add_side_faces(flex *f, int axis, const int32_t *place)
{
    static const int ACROSS[3][2] = {{1, 2}, {0, 2}, {0, 1}};
    const int u = ACROSS[axis][0], v = ACROSS[axis][1];
    for (int end = 0; end < 2; end++) {
        /* of shells, the sides y = most and x = least have the other diagonal */
        const bool turned = f->body.dimension == 2 && ((axis == 1 && end) || (axis == 0 && !end));
        for (int32_t i = 0; has_side(f, axis, end) && i + 1 < f->count[u]; i++)
            for (int32_t j = 0; j + 1 < f->count[v]; j++) {
                int32_t corner[2][2], at[3];
                for (int p = 0; p < 2; p++)
                    for (int q = 0; q < 2; q++) {
                        at[axis] = end * (f->count[axis] - 1), at[u] = i + p, at[v] = j + q;
                        corner[p][q] = place[lattice_place(f, at)];
                    }
                if (turned) {
                    add_face(f, corner[1][0], corner[0][0], corner[0][1]);
                    add_face(f, corner[1][0], corner[0][1], corner[1][1]);
                } else {
                    add_face(f, corner[0][0], corner[1][0], corner[1][1]);
                    add_face(f, corner[0][0], corner[1][1], corner[0][1]);
                }
            }
    }
}

static tb_status make_hollow(flex *f, const xmlNode *node, tb_error *error)
{
    const int64_t nx = f->count[0], ny = f->count[1], nz = f->count[2];
    const int64_t lattice = nx * ny * nz, full = f->body.dimension == 3;
    if (nx < 2 || ny < 2 || nz < 2)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "count", "a count is less than 2");
    const int64_t missing = (nx - 2) * (ny - 2) * (full ? nz - 2 : nz - 1);
    const int64_t points = lattice - missing + full;
    const int64_t cells =
        (1 + full) * (nx - 1) * (ny - 1) + 2 * ((nx - 1) * (nz - 1) + (ny - 1) * (nz - 1));
    MJCF_TRY(reserve(f, node, points, 2 * cells, error));
    if (lattice > 64 * (int64_t)FLEX_VERTEX_LIMIT)
        return tb_xml_fail(error, TB_RESOURCE_EXHAUSTED, node, "count", "the counts are too large");
    int32_t *place = malloc((size_t)lattice * sizeof *place);
    if (place == NULL) return tb_fail_memory(error, (size_t)lattice * 4, "a flexcomp");
    memset(place, -1, (size_t)lattice * sizeof *place);
    if (full) add_point(f, 0, 0, 0);
    for (int axis = 2; axis >= 0; axis--) add_side_points(f, axis, place);
    for (int axis = 2; axis >= 0; axis--) add_side_faces(f, axis, place);
    free(place);
    return TB_OK;
}

tb_status flex_make_shape(flex *f, const xmlNode *node, tb_error *error)
{
    for (int k = 0; k < 3; k++)
        if (f->count[k] < 1 || f->count[k] > FLEX_VERTEX_LIMIT)
            return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "count",
                               "count %d is %d, not from 1 to %d", k + 1, (int)f->count[k],
                               FLEX_VERTEX_LIMIT);
    switch (f->type) {
    case FLEX_BOX:
    case FLEX_CYLINDER:
    case FLEX_ELLIPSOID:
        if (f->body.dimension == 1) break;
        return make_hollow(f, node, error);
    case FLEX_SQUARE:
    case FLEX_DISC:
        f->body.dimension = 2;
        MJCF_TRY(make_plate(f, node, error));
        if (f->type == FLEX_DISC) round_plate(f);
        return TB_OK;
    case FLEX_CIRCLE:
        if (f->body.dimension != 1) break;
        return make_line(f, node, error);
    default:
        return f->body.dimension == 1   ? make_line(f, node, error)
               : f->body.dimension == 2 ? make_plate(f, node, error)
                                        : make_block(f, node, error);
    }
    return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "dim",
                       "a flexcomp of this type does not have dim %d", (int)f->body.dimension);
}
