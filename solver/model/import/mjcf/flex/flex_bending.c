/* Bending of plates: at each edge between two triangles the energy 1/2 k |sum of c_i x_i|^2, with weights c_i by the
 * cotangents of the triangles' angles, which vanish for points of a plane, and k = D / (A + B), D the plate's flexural
 * rigidity and A and B the areas. Wardetzky, Bergou, Harmon, Zorin and Grinspun, Discrete quadratic curvature
 * energies, Computer Aided Geometric Design 24, 2007; D as in MuJoCo 4.0. It is a spring on a sum of coordinates in
 * each direction. Where the plate is not flat at rest, MuJoCo adds a cubic term; while the edges keep their length, the
 * sum is the energy of the angle that an elastic hinge has (tb_elastic_def), up to forces along the edges. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/flex/flex.h"

/* An edge of a triangle and its other point. */
typedef struct half_edge {
    int32_t a, b, apex; /* a < b */
} half_edge;

static int by_edge(const void *left, const void *right)
{
    const half_edge *p = left, *q = right;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    return (p->apex > q->apex) - (p->apex < q->apex);
}

/* Of the angle at a point between the directions to two others. */
static double cotangent(tb_vec3 at, tb_vec3 to, tb_vec3 and)
{
    const tb_vec3 u = tb_v3_sub(to, at), v = tb_v3_sub(and, at);
    return tb_v3_dot(u, v) / tb_v3_length(tb_v3_cross(u, v));
}

static double twice_area(tb_vec3 a, tb_vec3 b, tb_vec3 c)
{
    return tb_v3_length(tb_v3_cross(tb_v3_sub(b, a), tb_v3_sub(c, a)));
}

/* Height of a corner over the plane of the others, over their distance, up to which a plate is flat. */
#define FLAT 1e-9

static void make_hinge(const flex *f, half_edge one, half_edge other, flex_hinge *h)
{
    const int32_t points[4] = {one.a, one.b, one.apex, other.apex};
    tb_vec3 x[4];
    for (int i = 0; i < 4; i++) x[i] = tb_v3_load(f->body.points + 3 * (size_t)points[i]);
    const double at_a = cotangent(x[0], x[1], x[2]), at_a2 = cotangent(x[0], x[3], x[1]);
    const double at_b = cotangent(x[1], x[2], x[0]), at_b2 = cotangent(x[1], x[0], x[3]);
    const double shares[4] = {at_b + at_b2, at_a + at_a2, -(at_a + at_b), -(at_a2 + at_b2)};
    const double areas = (twice_area(x[0], x[1], x[2]) + twice_area(x[0], x[1], x[3])) / 2;
    const tb_vec3 normal = tb_v3_cross(tb_v3_sub(x[1], x[0]), tb_v3_sub(x[2], x[0]));
    const tb_vec3 across = tb_v3_sub(x[3], x[0]);
    memcpy(h->points, points, sizeof points);
    memcpy(h->shares, shares, sizeof shares);
    h->stiffness = f->rigidity / areas;
    h->flat = fabs(tb_v3_dot(normal, across)) <= FLAT * tb_v3_length(normal) * tb_v3_length(across);
}

tb_status flex_find_hinges(mjcf *m, const xmlNode *node, flex *f)
{
    const size_t count = 3 * (size_t)f->body.number_of_simplices;
    half_edge *all = malloc(count * sizeof *all);
    f->hinges = malloc(count * sizeof *f->hinges);
    if (all == NULL || f->hinges == NULL) {
        free(all);
        return tb_fail_memory(m->error, count * sizeof *all, "hinges");
    }
    for (size_t i = 0; i < count; i++) {
        const int32_t *t = f->body.simplices + 3 * (i / 3), k = (int32_t)(i % 3);
        const int32_t p = t[k], q = t[(k + 1) % 3];
        all[i] = (half_edge){p < q ? p : q, p < q ? q : p, t[(k + 2) % 3]};
    }
    qsort(all, count, sizeof *all, by_edge);
    tb_status status = f->dofs == FLEX_RADIAL
                           ? tb_xml_fail(m->error, TB_UNSUPPORTED, node, "dof",
                                         "bending of radial flexes is not supported")
                           : TB_OK;
    for (size_t i = 0; i + 1 < count && status == TB_OK; i++) {
        if (all[i].a != all[i + 1].a || all[i].b != all[i + 1].b) continue;
        make_hinge(f, all[i], all[i + 1], &f->hinges[f->number_of_hinges++]);
    }
    free(all);
    return status;
}
