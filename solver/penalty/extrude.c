/* Extrusion of flat outlines to closed surfaces, with triangulation by cutting off ears. */
#include <stdlib.h>

#include "penalty/solid.h"

/* Twice the signed area of a triangle of outline points. */
static double turn(const double *a, const double *b, const double *c)
{
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/* Whether the corner at `i` of the rest of an outline is convex and holds no other corner. */
static bool is_ear(const double *x, const int32_t *rest, int32_t count, int32_t i)
{
    const int32_t ia = rest[(i + count - 1) % count], ib = rest[i], ic = rest[(i + 1) % count];
    const double *a = x + 2 * ia, *b = x + 2 * ib, *c = x + 2 * ic;
    if (!(turn(a, b, c) > 0)) return false;
    for (int32_t k = 0; k < count; k++) {
        const int32_t ip = rest[k];
        const double *p = x + 2 * ip;
        if (ip == ia || ip == ib || ip == ic) continue;
        if (turn(a, b, p) >= 0 && turn(b, c, p) >= 0 && turn(c, a, p) >= 0) return false;
    }
    return true;
}

/* Adds lid and bottom of one ear; corners of the lid have numbers from `lid` on. */
static bool add_ear(tb_surface_mesh *m, int32_t bottom, int32_t lid, int32_t a, int32_t b,
                    int32_t c)
{
    return tb_surface_mesh_triangle(m, lid + a, lid + b, lid + c) &&
           tb_surface_mesh_triangle(m, bottom + a, bottom + c, bottom + b);
}

tb_status tb_surface_mesh_extrude(tb_surface_mesh *mesh, const double *outline, int32_t count,
                                  double lower, double upper, tb_error *error)
{
    int32_t *rest = malloc(((size_t)count + 1) * sizeof *rest);
    const int32_t bottom = mesh->number_of_vertices, lid = bottom + count;
    bool fits = rest != NULL;
    for (int32_t side = 0; side < 2; side++)
        for (int32_t i = 0; i < count && fits; i++)
            fits = tb_surface_mesh_vertex(mesh, outline[2 * i], outline[2 * i + 1],
                                          side ? upper : lower) >= 0;
    for (int32_t i = 0; i < count && fits; i++) {
        const int32_t next = (i + 1) % count;
        rest[i] = i;
        fits = tb_surface_mesh_triangle(mesh, bottom + i, bottom + next, lid + next) &&
               tb_surface_mesh_triangle(mesh, bottom + i, lid + next, lid + i);
    }
    int32_t left = count, i = 0, tried = 0;
    while (left > 3 && fits && tried <= left) {
        if (!is_ear(outline, rest, left, i % left)) {
            i++, tried++;
            continue;
        }
        i %= left;
        fits =
            add_ear(mesh, bottom, lid, rest[(i + left - 1) % left], rest[i], rest[(i + 1) % left]);
        for (int32_t k = i; k + 1 < left; k++) rest[k] = rest[k + 1];
        left--, i++, tried = 0; /* the next ear elsewhere: fewer thin triangles */
    }
    if (fits && left == 3) fits = add_ear(mesh, bottom, lid, rest[0], rest[1], rest[2]);
    free(rest);
    if (!fits) return tb_fail_memory(error, 0, "an extruded outline");
    if (left == 3) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "outline",
                         "the outline crosses itself or runs clockwise");
}
