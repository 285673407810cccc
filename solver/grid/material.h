/* Hyperelastic laws: Cauchy stress, stored energy and wave speed from the deformation gradient.
 *
 * Litven's thesis names no law; these three are the usual ones of compressible solids (Bonet and
 * Wood, Nonlinear continuum mechanics for finite element analysis, 2008, chapter 6). With B = F F',
 * J = det F and Lame's lambda, mu:
 *
 *     neo-Hookean         sigma = (mu (B - I) + lambda ln J I) / J
 *     St Venant-Kirchhoff sigma = F (lambda tr E I + 2 mu E) F' / J,  E = (F'F - I) / 2
 *     corotated           sigma = (2 mu (V V - V) + lambda tr(V - I) V) / J,  V = sqrt(B)
 *
 * Damping is viscous and proportional to the stiffness: sigma += tau (lambda tr D I + 2 mu D) with the
 * rate of deformation D. Matrices are row-major. */
#ifndef TB_SOFT_MATERIAL_H
#define TB_SOFT_MATERIAL_H

#include <string.h>

#include "base/vector.h"

typedef enum tb_soft_law {
    TB_SOFT_NEO_HOOKEAN,
    TB_SOFT_ST_VENANT_KIRCHHOFF,
    TB_SOFT_COROTATED
} tb_soft_law;

typedef struct tb_soft_material {
    tb_soft_law law;
    double density;    /* kg/m^3, undeformed, > 0 */
    double young;      /* Pa, > 0 */
    double poisson;    /* 0 <= nu < 0.5 */
    double damping;    /* tau, s, >= 0 */
    double lambda, mu; /* Pa, by tb_soft_material_lame */
} tb_soft_material;

/* The stress of a point and the numbers that come with it. */
typedef struct tb_soft_stress {
    tb_mat33 sigma;     /* Pa, Cauchy, with damping */
    double energy;      /* J/m^3 of undeformed volume */
    double stiffness;   /* Pa: density times the square of the fastest wave, a bound */
    double dissipation; /* W/m^3 of deformed volume, by damping, >= 0 */
} tb_soft_stress;

/* The natural logarithm of a normal positive number, to two roundings, with the same bytes on processors and
 * cards, whose libraries differ in the last bit: the series of artanh in (m - 1) / (m + 1), m the
 * mantissa nearest to 1. */
TB_FN double tb_soft_log(double x)
{
    enum { TERMS = 12 };
    int exponent;
    double m = frexp(x, &exponent), sum = 0;
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    const double s = (m - 1) / (m + 1), z = s * s;
    for (int k = TERMS - 1; k >= 0; k--) sum = sum * z + 1.0 / (2 * k + 1);
    return exponent * 0.69314718055994531 + 2 * s * sum;
}

TB_FN void tb_soft_material_lame(tb_soft_material *m)
{
    m->mu = m->young / (2 * (1 + m->poisson));
    m->lambda = m->young * m->poisson / ((1 + m->poisson) * (1 - 2 * m->poisson));
}

/* The rotation nearest to F, det F > 0, by Newton's iteration R <- (R + R^-T) / 2 (Higham 1986),
 * which converges quadratically. */
TB_FN tb_mat33 tb_soft_rotation(const tb_mat33 *f)
{
    enum { MOST = 30 };
    tb_mat33 r = *f, inverse;
    for (int k = 0; k < MOST; k++) {
        if (!(tb_m33_inverse(&r, &inverse) > 0)) break;
        double change = 0;
        for (int i = 0; i < 9; i++) {
            const double next = 0.5 * (r.m[i] + inverse.m[3 * (i % 3) + i / 3]);
            change = tb_max(change, tb_abs(next - r.m[i]));
            r.m[i] = next;
        }
        if (change < 1e-14) break;
    }
    return r;
}

TB_FN double tb_soft_trace(const tb_mat33 *a)
{
    return a->m[0] + a->m[4] + a->m[8];
}

/* sum of the squares of all entries */
TB_FN double tb_soft_square(const tb_mat33 *a)
{
    double sum = 0;
    for (int i = 0; i < 9; i++) sum += a->m[i] * a->m[i];
    return sum;
}

/* largest sum of magnitudes in a row: a bound of the eigenvalues */
TB_FN double tb_soft_bound(const tb_mat33 *a)
{
    double most = 0;
    for (int i = 0; i < 3; i++)
        most =
            tb_max(most, tb_abs(a->m[3 * i]) + tb_abs(a->m[3 * i + 1]) + tb_abs(a->m[3 * i + 2]));
    return most;
}

/* Neo-Hookean: stress without damping, energy, stiffness. b = F F', j = det F > 0. */
TB_FN void tb_soft_neo_hookean(const tb_soft_material *m, const tb_mat33 *b, double j,
                               tb_soft_stress *s)
{
    const double log_j = tb_soft_log(j);
    for (int i = 0; i < 9; i++)
        s->sigma.m[i] =
            (m->mu * (b->m[i] - (i % 4 == 0)) + (i % 4 == 0 ? m->lambda * log_j : 0)) / j;
    s->energy =
        0.5 * m->mu * (tb_soft_trace(b) - 3) - m->mu * log_j + 0.5 * m->lambda * log_j * log_j;
    /* along a principal stretch s: s^2 dP/ds = mu (s^2 + 1) + lambda (1 - ln J) */
    s->stiffness = m->mu * (1 + tb_soft_bound(b)) + m->lambda * tb_max(1 - log_j, 0.0);
}

TB_FN void tb_soft_st_venant(const tb_soft_material *m, const tb_mat33 *b, double j,
                             tb_soft_stress *s)
{
    /* with E's invariants from B: F E F' = (B B - B) / 2, tr E = (tr B - 3) / 2 */
    const tb_mat33 bb = tb_m33_mul(b, b);
    const double trace = 0.5 * (tb_soft_trace(b) - 3);
    for (int i = 0; i < 9; i++)
        s->sigma.m[i] = (m->lambda * trace * b->m[i] + m->mu * (bb.m[i] - b->m[i])) / j;
    const double squares = 0.25 * (tb_soft_trace(&bb) - 2 * tb_soft_trace(b) + 3); /* E : E */
    s->energy = 0.5 * m->lambda * trace * trace + m->mu * squares;
    const double stretch2 = tb_soft_bound(b);
    s->stiffness = (m->lambda + 2 * m->mu) * stretch2 * tb_max(0.5 * (3 * stretch2 - 1), 1.0);
}

TB_FN void tb_soft_corotated(const tb_soft_material *m, const tb_mat33 *f, const tb_mat33 *b,
                             double j, tb_soft_stress *s)
{
    const tb_mat33 r = tb_soft_rotation(f);
    const tb_mat33 rt = tb_m33_transpose(&r);
    const tb_mat33 v = tb_m33_mul(f, &rt); /* F = V R */
    const double trace = tb_soft_trace(&v) - 3;
    double squares = 0;
    for (int i = 0; i < 9; i++) {
        s->sigma.m[i] = (2 * m->mu * (b->m[i] - v.m[i]) + m->lambda * trace * v.m[i]) / j;
        const double strain = v.m[i] - (i % 4 == 0);
        squares += strain * strain;
    }
    s->energy = m->mu * squares + 0.5 * m->lambda * trace * trace;
    s->stiffness = (m->lambda + 2 * m->mu) * tb_soft_bound(b);
}

/* The stress for the gradient g = dX/dx of the reference map, whose inverse is F, and the velocity's
 * gradient l = dv/dx (1/s). Returns det F, or 0, with no stress, if the map is folded. */
TB_FN_LARGE double tb_soft_stress_of(const tb_soft_material *m, const tb_mat33 *g,
                                     const tb_mat33 *l, tb_soft_stress *s)
{
    tb_mat33 f;
    memset(s, 0, sizeof *s);
    const double volume = tb_m33_inverse(g, &f); /* undeformed over deformed */
    if (!(volume > 0)) return 0;
    const double j = 1 / volume;
    const tb_mat33 ft = tb_m33_transpose(&f);
    const tb_mat33 b = tb_m33_mul(&f, &ft);
    if (m->law == TB_SOFT_NEO_HOOKEAN)
        tb_soft_neo_hookean(m, &b, j, s);
    else if (m->law == TB_SOFT_ST_VENANT_KIRCHHOFF)
        tb_soft_st_venant(m, &b, j, s);
    else
        tb_soft_corotated(m, &f, &b, j, s);
    if (m->damping > 0) {
        tb_mat33 d;
        for (int i = 0; i < 9; i++) d.m[i] = 0.5 * (l->m[i] + l->m[3 * (i % 3) + i / 3]);
        const double trace = tb_soft_trace(&d);
        for (int i = 0; i < 9; i++)
            s->sigma.m[i] +=
                m->damping * (2 * m->mu * d.m[i] + (i % 4 == 0 ? m->lambda * trace : 0));
        s->dissipation = m->damping * (2 * m->mu * tb_soft_square(&d) + m->lambda * trace * trace);
    }
    return j;
}

#endif
