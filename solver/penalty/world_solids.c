/* The solids of a model: every colliding shape as a closed surface with its convex pieces.
 *
 * Round shapes become polyhedra whose corners lie on the shape, except where a closed form exists:
 * balls among each other, and balls on planes. Equal shapes share a solid. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/penalty_internal.h"

enum { ROUND_SEGMENTS = 32, ROUND_RINGS = 8 };

static const double TWO_PI = 6.28318530717958647692;

/* ---- surfaces of primitives ---- */

static bool put_box(tb_surface_mesh *m, const double half[3])
{
    static const int32_t FACES[12][3] = {{0, 4, 6}, {0, 6, 2}, {1, 3, 7}, {1, 7, 5},
                                         {0, 1, 5}, {0, 5, 4}, {2, 6, 7}, {2, 7, 3},
                                         {0, 2, 3}, {0, 3, 1}, {4, 5, 7}, {4, 7, 6}};
    for (int i = 0; i < 8; i++)
        if (tb_surface_mesh_vertex(m, i & 1 ? half[0] : -half[0], i & 2 ? half[1] : -half[1],
                                   i & 4 ? half[2] : -half[2]) < 0)
            return false;
    for (int f = 0; f < 12; f++)
        if (!tb_surface_mesh_triangle(m, FACES[f][0], FACES[f][1], FACES[f][2])) return false;
    return true;
}

/* A surface of revolution about z: rings of (radius, height), from the lowest; poles at both ends. */
static bool put_rings(tb_surface_mesh *m, const double (*rings)[2], int32_t count, double bottom,
                      double top, double stretch_y)
{
    const int32_t n = ROUND_SEGMENTS;
    for (int32_t r = 0; r < count; r++)
        for (int32_t k = 0; k < n; k++)
            if (tb_surface_mesh_vertex(m, rings[r][0] * cos(TWO_PI * k / n),
                                       stretch_y * rings[r][0] * sin(TWO_PI * k / n),
                                       rings[r][1]) < 0)
                return false;
    const int32_t south = tb_surface_mesh_vertex(m, 0, 0, bottom);
    const int32_t north = tb_surface_mesh_vertex(m, 0, 0, top);
    bool fits = south >= 0 && north >= 0;
    for (int32_t k = 0; k < n && fits; k++) {
        const int32_t next = (k + 1) % n, last = (count - 1) * n;
        fits = tb_surface_mesh_triangle(m, south, next, k) &&
               tb_surface_mesh_triangle(m, north, last + k, last + next);
        for (int32_t r = 0; r + 1 < count && fits; r++) {
            const int32_t a = r * n + k, b = r * n + next;
            fits = tb_surface_mesh_triangle(m, a, b, b + n) &&
                   tb_surface_mesh_triangle(m, a, b + n, a + n);
        }
    }
    return fits;
}

/* A cap or a whole ball is `rings` of an ellipse with half axes r and h about height z. */
static int32_t add_arc(double (*rings)[2], int32_t count, double r, double h, double z, int from,
                       int to)
{
    for (int k = from; k <= to; k++, count++) {
        const double angle = TWO_PI / 4 * k / ROUND_RINGS;
        rings[count][0] = r * cos(angle);
        rings[count][1] = z + h * sin(angle);
    }
    return count;
}

static bool put_round(tb_surface_mesh *m, const tb_model_shape *shape)
{
    double rings[2 * ROUND_RINGS + 2][2];
    const double *s = shape->size;
    int32_t count = 0;
    switch (shape->type) {
    case TB_SHAPE_CYLINDER:
        rings[0][0] = rings[1][0] = s[0];
        rings[0][1] = -s[1], rings[1][1] = s[1];
        return put_rings(m, (const double(*)[2])rings, 2, -s[1], s[1], 1);
    case TB_SHAPE_CAPSULE:
        count = add_arc(rings, count, s[0], s[0], -s[1], 1 - ROUND_RINGS, 0);
        count = add_arc(rings, count, s[0], s[0], s[1], 0, ROUND_RINGS - 1);
        return put_rings(m, (const double(*)[2])rings, count, -s[1] - s[0], s[1] + s[0], 1);
    case TB_SHAPE_SPHERE:
        count = add_arc(rings, count, s[0], s[0], 0, 1 - ROUND_RINGS, ROUND_RINGS - 1);
        return put_rings(m, (const double(*)[2])rings, count, -s[0], s[0], 1);
    default:
        count = add_arc(rings, count, s[0], s[2], 0, 1 - ROUND_RINGS, ROUND_RINGS - 1);
        return put_rings(m, (const double(*)[2])rings, count, -s[2], s[2], s[1] / s[0]);
    }
}

static bool put_hull(tb_surface_mesh *m, const tb_hull *hull)
{
    for (int32_t v = 0; v < hull->number_of_vertices; v++) {
        const double *x = hull->vertices + 3 * v;
        if (tb_surface_mesh_vertex(m, x[0], x[1], x[2]) < 0) return false;
    }
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        const int32_t *face = hull->face_vertices + hull->face_start[f];
        for (int32_t k = 1; k + 1 < hull->face_start[f + 1] - hull->face_start[f]; k++)
            if (!tb_surface_mesh_triangle(m, face[0], face[k], face[k + 1])) return false;
    }
    return true;
}

static bool put_mesh(tb_surface_mesh *m, const tb_triangle_mesh *mesh)
{
    for (int32_t v = 0; v < mesh->number_of_vertices; v++) {
        const double *x = mesh->vertices + 3 * v;
        if (tb_surface_mesh_vertex(m, x[0], x[1], x[2]) < 0) return false;
    }
    for (int32_t t = 0; t < mesh->number_of_triangles; t++) {
        const int32_t *v = mesh->triangles + 3 * t;
        if (!tb_surface_mesh_triangle(m, v[0], v[1], v[2])) return false;
    }
    return true;
}

/* ---- solids ---- */

static tb_status build_solid(const tb_model *model, const tb_model_shape *shape, const char *name,
                             tb_solid *solid, tb_error *error)
{
    tb_surface_mesh m = {0};
    bool fits = false;
    switch (shape->type) {
    case TB_SHAPE_PLANE: return tb_solid_of_half_space(solid, error);
    case TB_SHAPE_BOX: fits = put_box(&m, shape->size); break;
    case TB_SHAPE_CONVEX: fits = put_hull(&m, &model->hulls[shape->asset]); break;
    case TB_SHAPE_MESH:
        if (shape->size[0] > 0)
            return tb_fail_field(
                error, TB_UNSUPPORTED, name,
                "the volume law has no meshes with a radius, and shape '%s' is one", name);
        fits = put_mesh(&m, &model->meshes[shape->asset]);
        break;
    case TB_SHAPE_HEIGHT_FIELD:
        return tb_fail_field(error, TB_UNSUPPORTED, name,
                             "the volume law has no height fields, and shape '%s' is one", name);
    default: fits = put_round(&m, shape);
    }
    tb_status status = fits ? TB_OK : tb_fail_memory(error, 0, "the surface of a shape");
    if (status == TB_OK) status = tb_surface_mesh_check(&m, TB_REPAIR_REFUSE, name, error);
    if (status == TB_OK) status = tb_solid_of_mesh(&m, name, solid, error);
    tb_surface_mesh_free(&m);
    return status;
}

/* The number of a shape's solid; equal shapes have one. */
static tb_status find_solid(tb_penalty *p, const tb_model *model, int32_t shape, int32_t *solid,
                            tb_error *error)
{
    const tb_model_shape *s = &model->shapes[shape];
    char name[TB_ERROR_NAME_SIZE];
    const char *given = tb_model_thing_name(model, TB_HANDLE_SHAPE, shape);
    if (given[0])
        snprintf(name, sizeof name, "%s", given);
    else
        snprintf(name, sizeof name, "shape %d", (int)shape);
    tb_solid_key key;
    memset(&key, 0, sizeof key);
    key.type = s->type;
    key.asset = s->type == TB_SHAPE_CONVEX || s->type == TB_SHAPE_MESH ? s->asset : -1;
    if (key.asset < 0) memcpy(key.size, s->size, sizeof key.size);
    for (int32_t i = 0; i < p->number_of_solids; i++)
        if (memcmp(&p->keys[i], &key, sizeof key) == 0) {
            *solid = i;
            return TB_OK;
        }
    tb_solid *solids =
        tb_grow(p->solids, p->number_of_solids + 1, &p->solid_capacity, sizeof *solids);
    if (solids) p->solids = solids;
    tb_solid_key *keys = tb_grow(p->keys, p->number_of_solids + 1, &p->key_capacity, sizeof *keys);
    if (keys) p->keys = keys;
    if (!solids || !keys) return tb_fail_memory(error, 0, "the solids of a model");
    const tb_status status = build_solid(model, s, name, &p->solids[p->number_of_solids], error);
    if (status != TB_OK) return status;
    *solid = p->number_of_solids;
    p->keys[p->number_of_solids++] = key;
    return TB_OK;
}

static bool is_ball(const tb_model_shape *s)
{
    return s->type == TB_SHAPE_SPHERE;
}

static tb_status take_shape(tb_penalty *p, const tb_model *model, int32_t shape, bool only_balls,
                            tb_error *error)
{
    const tb_model_shape *s = &model->shapes[shape];
    tb_law_shape *x = &p->shapes[p->number_of_shapes++];
    memset(x, 0, sizeof *x);
    x->shape = shape;
    x->body = s->body;
    x->solid = -1;
    x->half_space = s->type == TB_SHAPE_PLANE;
    x->fixed = !model->filters[shape].moves;
    x->constants =
        model->volume_constants ? model->volume_constants[shape] : tb_volume_constants_defaults();
    if (is_ball(s)) x->radius = s->size[0];
    for (int i = 0; i < 3; i++) x->lower[i] = -x->radius, x->upper[i] = x->radius;
    if (is_ball(s) && only_balls) return TB_OK;
    const tb_status status = find_solid(p, model, shape, &x->solid, error);
    if (status != TB_OK) return status;
    memcpy(x->lower, p->solids[x->solid].lower, sizeof x->lower);
    memcpy(x->upper, p->solids[x->solid].upper, sizeof x->upper);
    return TB_OK;
}

tb_status tb_penalty_take_shapes(tb_penalty *p, const tb_model *model, tb_error *error)
{
    const int32_t count = model->number_of_colliding_shapes;
    bool only_balls = true; /* balls and planes need no polyhedra */
    p->shapes = TB_ARENA_ARRAY(&p->arena, tb_law_shape, count);
    if (!p->shapes) return tb_fail_memory(error, 0, "the shapes of a model");
    p->number_of_shapes = 0;
    for (int32_t i = 0; i < count; i++) {
        const tb_model_shape *s = &model->shapes[model->colliding_shapes[i]];
        only_balls = only_balls && (is_ball(s) || s->type == TB_SHAPE_PLANE);
    }
    tb_status status = TB_OK;
    for (int32_t i = 0; i < count && status == TB_OK; i++)
        status = take_shape(p, model, model->colliding_shapes[i], only_balls, error);
    return status;
}

void tb_penalty_free_solids(tb_penalty *p)
{
    for (int32_t i = 0; i < p->number_of_solids; i++) tb_solid_free(&p->solids[i]);
    free(p->solids);
    free(p->keys);
    p->solids = NULL;
    p->keys = NULL;
    p->number_of_solids = p->solid_capacity = p->key_capacity = 0;
}
