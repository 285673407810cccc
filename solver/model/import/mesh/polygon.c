/* Cutting a polygon in space into triangles: see tb_polygon_triangulate.
 *
 * The polygon is laid flat along its Newell normal. Ears are kept in a flag per corner; cutting one
 * changes the flags of its two neighbours only, so the work grows with the square of the
 * corners. */
#include "model/import/mesh/mesh_file.h"

#include <stdlib.h>

typedef struct corner {
    double x, y;
    int32_t previous, next;
    bool ear;
} corner;

/* twice the signed area of three corners */
static double turn(const corner *a, const corner *b, const corner *c)
{
    return (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
}

/* Newell's normal: its length is twice the area of a planar polygon. */
static tb_vec3 newell_normal(const double *vertices, const int32_t *polygon, int32_t count)
{
    const tb_vec3 origin = tb_v3_load(vertices + 3 * (size_t)polygon[0]);
    tb_vec3 normal = tb_v3(0, 0, 0);
    for (int32_t i = 1; i + 1 < count; i++) {
        const tb_vec3 a = tb_v3_sub(tb_v3_load(vertices + 3 * (size_t)polygon[i]), origin);
        const tb_vec3 b = tb_v3_sub(tb_v3_load(vertices + 3 * (size_t)polygon[i + 1]), origin);
        normal = tb_v3_add(normal, tb_v3_cross(a, b));
    }
    return normal;
}

static void cut_fan(const int32_t *polygon, int32_t count, int32_t *triangles)
{
    for (int32_t i = 1; i + 1 < count; i++) {
        *triangles++ = polygon[0];
        *triangles++ = polygon[i];
        *triangles++ = polygon[i + 1];
    }
}

/* Cuts a quadrangle along its shorter diagonal, as most readers of OBJ do: where the corners are not
 * in one plane, the choice decides the volume. */
static void cut_quadrangle(const double *vertices, const int32_t *polygon, int32_t *triangles)
{
    tb_vec3 p[4];
    for (int i = 0; i < 4; i++) p[i] = tb_v3_load(vertices + 3 * (size_t)polygon[i]);
    const bool first = tb_v3_length2(tb_v3_sub(p[2], p[0])) < tb_v3_length2(tb_v3_sub(p[3], p[1]));
    static const int CORNERS[2][6] = {{0, 1, 3, 1, 2, 3}, {0, 1, 2, 0, 2, 3}};
    for (int i = 0; i < 6; i++) triangles[i] = polygon[CORNERS[first][i]];
}

/* Whether the triangle of a corner and its neighbours is convex and holds no other corner. */
static bool is_ear(const corner *corners, int32_t at, double slack)
{
    const corner *b = &corners[at], *a = &corners[b->previous], *c = &corners[b->next];
    if (turn(a, b, c) <= slack) return false;
    for (int32_t i = c->next; i != b->previous; i = corners[i].next) {
        const corner *p = &corners[i];
        /* only a corner that is not convex can lie inside; corners may share a place */
        if (turn(&corners[p->previous], p, &corners[p->next]) > slack) continue;
        if ((p->x == a->x && p->y == a->y) || (p->x == c->x && p->y == c->y)) continue;
        if (turn(a, b, p) >= -slack && turn(b, c, p) >= -slack && turn(c, a, p) >= -slack)
            return false;
    }
    return true;
}

/* Cuts ears; false if it finds none before the polygon is used up. */
static bool cut_ears(corner *corners, const int32_t *polygon, int32_t count, double slack,
                     int32_t *triangles)
{
    for (int32_t i = 0; i < count; i++) corners[i].ear = is_ear(corners, i, slack);

    int32_t left = count, at = 0, passed = 0;
    while (left > 3) {
        if (!corners[at].ear) {
            if (++passed > left) return false;
            at = corners[at].next;
            continue;
        }
        passed = 0;
        const int32_t previous = corners[at].previous, next = corners[at].next;
        *triangles++ = polygon[previous];
        *triangles++ = polygon[at];
        *triangles++ = polygon[next];
        corners[previous].next = next;
        corners[next].previous = previous;
        left--;
        corners[previous].ear = is_ear(corners, previous, slack);
        corners[next].ear = is_ear(corners, next, slack);
        /* go on beyond the neighbour: cutting always at one place makes needles */
        at = corners[next].next;
    }
    *triangles++ = polygon[corners[at].previous];
    *triangles++ = polygon[at];
    *triangles++ = polygon[corners[at].next];
    return true;
}

tb_status tb_polygon_triangulate(const double *vertices, const int32_t *polygon, int32_t count,
                                 int32_t *triangles)
{
    const tb_vec3 normal = newell_normal(vertices, polygon, count);
    const double area = tb_v3_length(normal);
    if (count == 3 || !(area > 0)) {
        cut_fan(polygon, count, triangles);
        return TB_OK;
    }

    corner *corners = calloc((size_t)count, sizeof *corners);
    if (corners == NULL) return TB_RESOURCE_EXHAUSTED;
    tb_vec3 u, v;
    tb_v3_tangents(tb_v3_scale(normal, 1 / area), &u, &v);
    const tb_vec3 origin = tb_v3_load(vertices + 3 * (size_t)polygon[0]);
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 p = tb_v3_sub(tb_v3_load(vertices + 3 * (size_t)polygon[i]), origin);
        corners[i].x = tb_v3_dot(p, u);
        corners[i].y = tb_v3_dot(p, v);
        corners[i].previous = i > 0 ? i - 1 : count - 1;
        corners[i].next = i + 1 < count ? i + 1 : 0;
    }

    /* turns below the slack are rounding, or straight on */
    const double slack = 1e-12 * area;
    bool convex = true;
    for (int32_t i = 0; i < count && convex; i++)
        convex =
            turn(&corners[corners[i].previous], &corners[i], &corners[corners[i].next]) > slack;

    tb_status status = TB_OK;
    if (!convex && count > TB_MESH_FACE_LIMIT)
        status = TB_RESOURCE_EXHAUSTED;
    else if (convex && count == 4)
        cut_quadrangle(vertices, polygon, triangles);
    else if (convex || !cut_ears(corners, polygon, count, slack, triangles))
        cut_fan(polygon, count, triangles);
    free(corners);
    return status;
}
