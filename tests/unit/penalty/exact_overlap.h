/* Overlap volume of two triangle surfaces in exact rational arithmetic (GMP), for tests.
 *
 * A surface is the sum of signed tetrahedra from the origin to its triangles. The overlap of two
 * tetrahedra is the first one cut by the four planes of the second; a tetrahedron cut by a plane is
 * at most three tetrahedra, and every volume is a determinant. Nothing is rounded. */
#ifndef EXACT_OVERLAP_H
#define EXACT_OVERLAP_H

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_MOST = 128, EXACT_POINTS = 4096 };

typedef struct exact_point {
    mpq_t x[3];
} exact_point;

typedef struct exact_tetra {
    int corner[4]; /* in the pool */
} exact_tetra;

typedef struct exact_pool {
    exact_point points[EXACT_POINTS];
    int used;
    mpq_t t[12];
} exact_pool;

static inline exact_pool *exact_pool_create(void)
{
    exact_pool *pool = malloc(sizeof *pool);
    for (int i = 0; i < EXACT_POINTS; i++)
        for (int k = 0; k < 3; k++) mpq_init(pool->points[i].x[k]);
    for (int k = 0; k < 12; k++) mpq_init(pool->t[k]);
    pool->used = 0;
    return pool;
}

static inline void exact_pool_destroy(exact_pool *pool)
{
    for (int i = 0; i < EXACT_POINTS; i++)
        for (int k = 0; k < 3; k++) mpq_clear(pool->points[i].x[k]);
    for (int k = 0; k < 12; k++) mpq_clear(pool->t[k]);
    free(pool);
}

static inline int exact_add(exact_pool *pool, const double x[3])
{
    for (int k = 0; k < 3; k++) mpq_set_d(pool->points[pool->used].x[k], x[k]);
    return pool->used++;
}

/* det(b - a, c - a, d - a): six times the signed volume. */
static inline void exact_det(exact_pool *pool, mpq_t result, const int v[4])
{
    mpq_t *t = pool->t;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            mpq_sub(t[3 * i + k], pool->points[v[i + 1]].x[k], pool->points[v[0]].x[k]);
    mpq_set_ui(result, 0, 1);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        mpq_mul(t[9], t[3 + j], t[6 + k]);
        mpq_mul(t[10], t[3 + k], t[6 + j]);
        mpq_sub(t[9], t[9], t[10]);
        mpq_mul(t[9], t[9], t[i]);
        mpq_add(result, result, t[9]);
    }
}

/* The point where the edge from a (da) to b (db) meets the plane. */
static inline int exact_cross(exact_pool *pool, int a, int b, mpq_t da, mpq_t db)
{
    mpq_t *t = pool->t;
    mpq_sub(t[9], da, db);
    mpq_div(t[9], da, t[9]);
    for (int k = 0; k < 3; k++) {
        mpq_sub(t[10], pool->points[b].x[k], pool->points[a].x[k]);
        mpq_mul(t[10], t[10], t[9]);
        mpq_add(pool->points[pool->used].x[k], pool->points[a].x[k], t[10]);
    }
    return pool->used++;
}

/* Appends the part of a tetrahedron where d <= 0. */
static inline int exact_cut(exact_pool *pool, const exact_tetra *tetra, mpq_t d[4],
                            exact_tetra *out)
{
    int in[4], beyond[4], inside = 0, outside = 0, p[4][4];
    for (int i = 0; i < 4; i++) {
        if (mpq_sgn(d[i]) <= 0)
            in[inside++] = i;
        else
            beyond[outside++] = i;
    }
    if (outside == 0) {
        out[0] = *tetra;
        return 1;
    }
    if (inside == 0) return 0;
    for (int i = 0; i < inside; i++)
        for (int k = 0; k < outside; k++)
            p[i][k] = exact_cross(pool, tetra->corner[in[i]], tetra->corner[beyond[k]], d[in[i]],
                                  d[beyond[k]]);
    const int a = tetra->corner[in[0]], b = inside > 1 ? tetra->corner[in[1]] : -1,
              c = inside > 2 ? tetra->corner[in[2]] : -1;
    if (inside == 1) {
        out[0] = (exact_tetra){{a, p[0][0], p[0][1], p[0][2]}};
        return 1;
    }
    if (inside == 2) { /* a wedge: triangles (a, a0, a1) and (b, b0, b1) */
        out[0] = (exact_tetra){{a, p[0][0], p[0][1], b}};
        out[1] = (exact_tetra){{p[0][0], p[0][1], b, p[1][0]}};
        out[2] = (exact_tetra){{p[0][1], b, p[1][0], p[1][1]}};
        return 3;
    }
    out[0] = (exact_tetra){{a, b, c, p[0][0]}}; /* a prism: triangles (a, b, c) and their cuts */
    out[1] = (exact_tetra){{b, c, p[0][0], p[1][0]}};
    out[2] = (exact_tetra){{c, p[0][0], p[1][0], p[2][0]}};
    return 3;
}

/* Adds `sign` times six volumes of the overlap of two tetrahedra. */
static inline void exact_add_overlap(exact_pool *pool, const int a[4], const int b[4], int sign,
                                     mpq_t six)
{
    exact_tetra now[EXACT_MOST], next[3 * EXACT_MOST];
    mpq_t d[4], reference;
    for (int k = 0; k < 4; k++) mpq_init(d[k]);
    mpq_init(reference);
    const int mark = pool->used;
    int count = 1;
    memcpy(now[0].corner, a, sizeof now[0].corner);
    for (int f = 0; f < 4 && count > 0; f++) {
        /* the plane of b's face without corner f, and on which side that corner lies */
        const int face[4] = {b[(f + 1) % 4], b[(f + 2) % 4], b[(f + 3) % 4], b[f]};
        exact_det(pool, reference, face);
        int made = 0;
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < 4; k++) {
                const int v[4] = {face[0], face[1], face[2], now[i].corner[k]};
                exact_det(pool, d[k], v);
                if (mpq_sgn(reference) > 0) mpq_neg(d[k], d[k]);
            }
            if (mpq_sgn(reference) != 0) made += exact_cut(pool, &now[i], d, next + made);
        }
        count = made;
        memcpy(now, next, (size_t)count * sizeof *now);
    }
    for (int i = 0; i < count; i++) {
        exact_det(pool, reference, now[i].corner);
        mpq_abs(reference, reference);
        if (sign > 0)
            mpq_add(six, six, reference);
        else
            mpq_sub(six, six, reference);
    }
    pool->used = mark;
    for (int k = 0; k < 4; k++) mpq_clear(d[k]);
    mpq_clear(reference);
}

/* Overlap volume (m^3) of two tetrahedra of 4 x 3 coordinates, rounded once at the end. */
static inline double exact_tetra_overlap(exact_pool *pool, const double a[12], const double b[12])
{
    mpq_t six;
    int va[4], vb[4];
    mpq_init(six);
    pool->used = 0;
    for (int i = 0; i < 4; i++) va[i] = exact_add(pool, a + 3 * i);
    for (int i = 0; i < 4; i++) vb[i] = exact_add(pool, b + 3 * i);
    exact_add_overlap(pool, va, vb, 1, six);
    const double volume = mpq_get_d(six) / 6;
    mpq_clear(six);
    return volume;
}

/* Overlap volume (m^3) of two closed surfaces, rounded once at the end. */
static inline double exact_overlap(exact_pool *pool, const double *va, int na, const int *ta,
                                   int fa, const double *vb, int nb, const int *tb, int fb)
{
    const double zero[3] = {0, 0, 0};
    mpq_t six, sign_a, sign_b;
    mpq_init(six);
    mpq_init(sign_a);
    mpq_init(sign_b);
    pool->used = 0;
    const int origin = exact_add(pool, zero), a0 = pool->used;
    for (int i = 0; i < na; i++) exact_add(pool, va + 3 * i);
    const int b0 = pool->used;
    for (int i = 0; i < nb; i++) exact_add(pool, vb + 3 * i);
    for (int i = 0; i < fa; i++) {
        const int a[4] = {origin, a0 + ta[3 * i], a0 + ta[3 * i + 1], a0 + ta[3 * i + 2]};
        exact_det(pool, sign_a, a);
        for (int k = 0; k < fb && mpq_sgn(sign_a) != 0; k++) {
            const int b[4] = {origin, b0 + tb[3 * k], b0 + tb[3 * k + 1], b0 + tb[3 * k + 2]};
            exact_det(pool, sign_b, b);
            if (mpq_sgn(sign_b) != 0)
                exact_add_overlap(pool, a, b, mpq_sgn(sign_a) * mpq_sgn(sign_b), six);
        }
    }
    const double volume = mpq_get_d(six) / 6;
    mpq_clear(six);
    mpq_clear(sign_a);
    mpq_clear(sign_b);
    return volume;
}

#endif
