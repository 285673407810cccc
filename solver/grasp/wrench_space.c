/* The grasp wrench space: the convex hull of the wrenches that contacts exert on an object, and the
 * largest disturbance from any direction that the contacts resist.
 *
 * C. Ferrari, J. Canny: Planning optimal grasps, ICRA 1992: with all normal forces together bounded
 * by one (L1), the set is the hull of the primitive wrenches; epsilon is the distance of its
 * nearest facet from zero. The hull in six dimensions is qhull's (Barber, Dobkin, Huhdanpaa, ACM
 * TOMS 22, 1996), each facet given by its unit normal and its offset. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libqhull_r/qhull_ra.h>

#include "base/base.h"
#include "base/error.h"

enum { DIMENSION = 6 };

/* Points are flat if their extent in some direction is below this fraction of their size. */
static const double FLATNESS = 1e-7;

/* Rank of the points about their mean, by Gram and Schmidt with pivoting; stops at 6. */
static bool are_flat(const double *points, int32_t count)
{
    double mean[DIMENSION] = {0}, largest = 0;
    double *rest = malloc((size_t)count * DIMENSION * sizeof *rest);
    if (rest == NULL || count < DIMENSION + 1) {
        free(rest);
        return true;
    }
    for (int32_t i = 0; i < count; i++)
        for (int k = 0; k < DIMENSION; k++) mean[k] += points[DIMENSION * i + k] / count;
    for (int32_t i = 0; i < count; i++)
        for (int k = 0; k < DIMENSION; k++)
            rest[DIMENSION * i + k] = points[DIMENSION * i + k] - mean[k];

    bool flat = false;
    for (int axis = 0; axis < DIMENSION && !flat; axis++) {
        int32_t pivot = 0;
        double length2 = 0;
        for (int32_t i = 0; i < count; i++) {
            double own = 0;
            for (int k = 0; k < DIMENSION; k++)
                own += rest[DIMENSION * i + k] * rest[DIMENSION * i + k];
            if (own > length2) {
                length2 = own;
                pivot = i;
            }
        }
        if (axis == 0) largest = length2;
        flat = !(length2 > FLATNESS * FLATNESS * largest);
        double direction[DIMENSION];
        for (int k = 0; k < DIMENSION && !flat; k++)
            direction[k] = rest[DIMENSION * pivot + k] / sqrt(length2);
        for (int32_t i = 0; i < count && !flat; i++) {
            double along = 0;
            for (int k = 0; k < DIMENSION; k++) along += rest[DIMENSION * i + k] * direction[k];
            for (int k = 0; k < DIMENSION; k++) rest[DIMENSION * i + k] -= along * direction[k];
        }
    }
    free(rest);
    return flat;
}

typedef struct hull_answer {
    double epsilon, volume;
} hull_answer;

/* May leave by longjmp from within qhull; owns nothing. */
static void read_hull(qhT *qh, hull_answer *answer)
{
    facetT *facet;
    double nearest = INFINITY;
    FORALLfacets
    {
        nearest = fmin(nearest, -facet->offset);
    }
    answer->epsilon = nearest > 0 && nearest < INFINITY ? nearest : 0;
    qh_getarea(qh, qh->facet_list);
    answer->volume = qh->totvol > 0 ? qh->totvol : 0;
}

/* qhull's exit code, 0 for success. Its messages are discarded. */
static int run_qhull(double *points, int32_t count, char *command, hull_answer *answer)
{
    qhT qh_memory, *qh = &qh_memory;
    char *text = NULL;
    size_t text_size = 0;
    int current = 0, total = 0;
    FILE *nowhere = open_memstream(&text, &text_size);
    if (nowhere == NULL) return qh_ERRmem;
    qh_zero(qh, nowhere);
    int code = qh_new_qhull(qh, DIMENSION, count, points, False, command, nowhere, nowhere);
    if (code == 0) {
        /* qh_new_qhull took its error handler with it when it returned */
        code = setjmp(qh->errexit);
        if (code == 0) {
            qh->NOerrexit = False;
            read_hull(qh, answer);
        }
        qh->NOerrexit = True;
    }
    qh_freeqhull(qh, !qh_ALL);
    qh_memfreeshort(qh, &current, &total);
    fclose(nowhere);
    free(text);
    return code;
}

tb_status tb_wrench_space(const double *wrenches, int32_t count, double *epsilon, double *volume,
                          tb_error *error)
{
    *epsilon = *volume = 0;
    if (count < 0 || (count > 0 && wrenches == NULL))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "wrenches", "%d wrenches", (int)count);
    for (int32_t i = 0; i < DIMENSION * count; i++)
        if (!isfinite(wrenches[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "wrenches",
                                 "wrench %d has a number that is not finite", (int)(i / DIMENSION));
    if (are_flat(wrenches, count)) return TB_OK;

    double *points = malloc((size_t)count * DIMENSION * sizeof *points);
    if (points == NULL) return tb_fail_memory(error, 0, "a wrench space");
    /* merged facets first (the default), joggled input where that meets a case it cannot merge */
    static const char *const COMMANDS[] = {"qhull Q12 Pp", "qhull QJ Pp"};
    int code = -1;
    hull_answer answer = {0};
    for (int i = 0; i < 2 && code != 0 && code != qh_ERRsingular && code != qh_ERRmem; i++) {
        char command[32];
        snprintf(command, sizeof command, "%s", COMMANDS[i]);
        memcpy(points, wrenches, (size_t)count * DIMENSION * sizeof *points);
        code = run_qhull(points, count, command, &answer);
    }
    free(points);
    if (code == qh_ERRmem) return tb_fail_memory(error, 0, "a wrench space");
    if (code == qh_ERRsingular) return TB_OK;
    if (code != 0)
        return tb_fail(error, TB_INTERNAL, "qhull found no hull of %d wrenches (code %d)",
                       (int)count, code);
    *epsilon = answer.epsilon;
    *volume = answer.volume;
    return TB_OK;
}
