/* Facets of a convex hull by qhull (Barber, Dobkin, Huhdanpaa, The quickhull algorithm for convex
 * hulls, ACM TOMS 22, 1996), in its reentrant form.
 *
 * qhull receives distinct points, sorted, centred and scaled to one, so its result does not
 * depend on the order, the repetition or the offset of the points. qhull reports failures by
 * longjmp and prints them; this file catches both. */
#include "base/budget.h"
#include "model/geometry/indexed_point.h"
#include "model/model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libqhull_r/qhull_ra.h>

/* Memory of qhull for one corner of the hull: two facets with their ridges, sets and normals. */
enum { QHULL_POINT_BYTES = 1024, HULL_SIMPLEX = 4 };

/* ---- points ---- */

/* Sorted, distinct, centred and scaled points; NULL after an error. */
static tb_indexed_point *prepare(const double *points, int32_t count, int32_t *distinct,
                                 tb_error *error)
{
    tb_indexed_point *sorted = malloc((size_t)count * sizeof *sorted);
    if (sorted == NULL) {
        tb_fail_memory(error, (size_t)count * sizeof *sorted, "hull");
        return NULL;
    }
    double lower[3] = {INFINITY, INFINITY, INFINITY}, upper[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int32_t i = 0; i < count; i++) {
        sorted[i].index = i;
        for (int k = 0; k < 3; k++) {
            const double x = points[3 * (size_t)i + (size_t)k] + 0.0;
            sorted[i].x[k] = x;
            lower[k] = tb_min(lower[k], x);
            upper[k] = tb_max(upper[k], x);
        }
    }
    qsort(sorted, (size_t)count, sizeof *sorted, tb_indexed_point_compare);
    double half = 0;
    for (int k = 0; k < 3; k++) half = tb_max(half, upper[k] / 2 - lower[k] / 2);
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        const tb_indexed_point *last = kept > 0 ? &sorted[kept - 1] : NULL;
        if (last != NULL && memcmp(last->x, sorted[i].x, sizeof last->x) == 0) continue;
        sorted[kept++] = sorted[i];
    }
    for (int32_t i = 0; i < kept && half > 0; i++)
        for (int k = 0; k < 3; k++)
            sorted[i].x[k] = (sorted[i].x[k] - (lower[k] / 2 + upper[k] / 2)) / half;
    *distinct = kept;
    return sorted;
}

/* ---- qhull ---- */

typedef struct hull_run {
    qhT qh;
    double *coordinates;
    const tb_indexed_point *points;
    int32_t count;
    int32_t most; /* vertices; 0: all */
    tb_facets *facets;
    bool out_of_memory;
} hull_run;

/* Copies the facets out. May leave by longjmp from within qhull:
 * only *facets owns memory. */
static void copy_facets(hull_run *run)
{
    qhT *qh = &run->qh;
    facetT *facet;
    vertexT *vertex, **vertexp;
    tb_facets *facets = run->facets;
    int32_t faces = 0, corners = 0;
    FORALLfacets
    {
        faces++;
        corners += qh_setsize(qh, facet->vertices);
    }
    facets->face_start = malloc(((size_t)faces + 1) * sizeof(int32_t));
    facets->face_vertices = malloc(((size_t)corners + 1) * sizeof(int32_t));
    run->out_of_memory = facets->face_start == NULL || facets->face_vertices == NULL;
    if (run->out_of_memory) return;

    int32_t at = 0;
    FORALLfacets
    {
        setT *vertices = qh_facet3vertex(qh, facet);
        const int32_t first = at;
        facets->face_start[facets->number_of_faces++] = first;
        FOREACHvertex_(vertices)
        {
            if (at < corners) facets->face_vertices[at++] = (int32_t)qh_pointid(qh, vertex->point);
        }
        qh_settempfree(qh, &vertices);

        /* counter-clockwise seen from outside: Newell's normal along qhull's */
        double area[3] = {0}, along = 0;
        for (int32_t i = first; i < at; i++) {
            const double *p = run->points[facets->face_vertices[i]].x;
            const double *q = run->points[facets->face_vertices[i + 1 < at ? i + 1 : first]].x;
            for (int k = 0; k < 3; k++)
                area[k] += p[(k + 1) % 3] * q[(k + 2) % 3] - p[(k + 2) % 3] * q[(k + 1) % 3];
        }
        for (int k = 0; k < 3; k++) along += area[k] * facet->normal[k];
        if (along < 0)
            for (int32_t i = first, j = at - 1; i < j; i++, j--) {
                const int32_t swap = facets->face_vertices[i];
                facets->face_vertices[i] = facets->face_vertices[j];
                facets->face_vertices[j] = swap;
            }
    }
    facets->face_start[facets->number_of_faces] = at;
}

/* qhull reports its progress to a stream (option TF), where this function checks the thread's
 * budget: once the budget has ended, it makes qhull stop at the current number of vertices. */
static ssize_t hear_qhull(void *context, const char *text, size_t size)
{
    hull_run *run = context;
    (void)text;
    if (!tb_budget_holds()) run->qh.STOPadd = 1;
    return (ssize_t)size;
}

static FILE *open_stream(hull_run *run)
{
    const cookie_io_functions_t functions = {.write = hear_qhull};
    FILE *stream = fopencookie(run, "w", functions);
    if (stream != NULL) setvbuf(stream, NULL, _IONBF, 0);
    return stream;
}

/* Runs qhull and discards its messages; returns the exit code, 0 for success. */
static int run_qhull(hull_run *run)
{
    /* TA: number of points added to the first simplex; Q9: the farthest of all points is next */
    char command[64] = "qhull Pp TF100";
    if (run->most > HULL_SIMPLEX)
        snprintf(command, sizeof command, "qhull Pp TF100 Q9 TA%d",
                 (int)(run->most - HULL_SIMPLEX));
    int current = 0, total = 0;
    FILE *nowhere = open_stream(run);
    if (nowhere == NULL) return qh_ERRmem;
    qhT *qh = &run->qh;
    qh_zero(qh, nowhere);
    int code = qh_new_qhull(qh, 3, run->count, run->coordinates, False, command, nowhere, nowhere);
    if (code == 0) {
        /* qh_new_qhull took its error handler with it when it returned */
        code = setjmp(qh->errexit);
        if (code == 0) {
            qh->NOerrexit = False;
            copy_facets(run);
        }
        qh->NOerrexit = True;
    }
    qh_freeqhull(qh, !qh_ALL);
    qh_memfreeshort(qh, &current, &total);
    fclose(nowhere);
    return code;
}

/* Whether every edge occurs once in each direction: the facets close. */
static int compare_edges(const void *left, const void *right)
{
    const uint64_t l = *(const uint64_t *)left, r = *(const uint64_t *)right;
    return (l > r) - (l < r);
}

static bool is_closed(const tb_facets *facets)
{
    const int32_t corners = facets->face_start[facets->number_of_faces];
    uint64_t *edges = malloc(2 * (size_t)corners * sizeof *edges);
    if (edges == NULL) return false;
    uint64_t *twins = edges + corners;
    for (int32_t f = 0; f < facets->number_of_faces; f++) {
        const int32_t first = facets->face_start[f], end = facets->face_start[f + 1];
        for (int32_t i = first; i < end; i++) {
            const uint64_t p = (uint32_t)facets->face_vertices[i];
            const uint64_t q = (uint32_t)facets->face_vertices[i + 1 < end ? i + 1 : first];
            edges[i] = p << 32 | q;
            twins[i] = q << 32 | p;
        }
    }
    qsort(edges, (size_t)corners, sizeof *edges, compare_edges);
    qsort(twins, (size_t)corners, sizeof *twins, compare_edges);
    bool closed = memcmp(edges, twins, (size_t)corners * sizeof *edges) == 0;
    for (int32_t i = 0; closed && i + 1 < corners; i++) closed = edges[i] != edges[i + 1];
    free(edges);
    return closed;
}

/* ---- the whole ---- */

static tb_status build(hull_run *run, tb_error *error)
{
    const size_t memory = (size_t)run->count * QHULL_POINT_BYTES;
    if (!tb_budget_take(memory)) return tb_budget_check(error);
    const int code = run_qhull(run);
    tb_budget_give_back(memory);
    if (!tb_budget_holds()) return tb_budget_check(error);
    if (run->out_of_memory || code == qh_ERRmem)
        return tb_fail_memory(error, (size_t)run->count * sizeof(tb_indexed_point), "hull");
    if (code == qh_ERRsingular || code == qh_ERRprec)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices",
                             "the points lie in one plane and have no hull (use a mesh shape)");
    if (code != 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices",
                             "qhull found no hull of the points (code %d)", code);
    for (int32_t f = 0; f < run->facets->number_of_faces; f++)
        if (run->facets->face_start[f + 1] - run->facets->face_start[f] < 3)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices",
                                 "the points are so close to a plane that their hull has no faces");
    if (!is_closed(run->facets))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices",
                             "the points are so close to a plane that their hull does not close");
    return TB_OK;
}

tb_status tb_facets_build(const double *points, int32_t count, int32_t most, tb_facets *facets,
                          tb_error *error)
{
    memset(facets, 0, sizeof *facets);
    for (int32_t i = 0; i < 3 * count; i++)
        if (!isfinite(points[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices", "point %d is not finite",
                                 (int)(i / 3));
    if (count < 4)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices",
                             "a hull needs 4 points, not %d", (int)count);
    int32_t distinct = 0;
    tb_indexed_point *sorted = prepare(points, count, &distinct, error);
    if (sorted == NULL) return TB_RESOURCE_EXHAUSTED;

    tb_status status = TB_OK;
    hull_run *run = calloc(1, sizeof *run);
    double *coordinates = malloc((size_t)distinct * 3 * sizeof *coordinates);
    if (run == NULL || coordinates == NULL) {
        status = tb_fail_memory(error, (size_t)distinct * 24, "hull");
    } else if (distinct < 4) {
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "vertices",
                               "a hull needs 4 different points, not %d", (int)distinct);
    } else {
        for (int32_t i = 0; i < distinct; i++)
            memcpy(coordinates + 3 * (size_t)i, sorted[i].x, sizeof sorted[i].x);
        run->coordinates = coordinates;
        run->points = sorted;
        run->count = distinct;
        run->most = most;
        run->facets = facets;
        status = build(run, error);
    }
    if (status == TB_OK)
        for (int32_t i = 0; i < facets->face_start[facets->number_of_faces]; i++)
            facets->face_vertices[i] = sorted[facets->face_vertices[i]].index;
    else
        tb_facets_free(facets);
    free(coordinates);
    free(run);
    free(sorted);
    return status;
}

void tb_facets_free(tb_facets *facets)
{
    free(facets->face_start);
    free(facets->face_vertices);
    memset(facets, 0, sizeof *facets);
}
