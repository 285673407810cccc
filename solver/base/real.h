/* One source, two precisions, two languages.
 *
 * Numeric sources are written for `tb_real` and compiled twice into the same library: as double,
 * where external names are plain, and with TB_SINGLE as float, where TB_SYMBOL gives external names
 * the suffix _f32. Functions marked TB_FN are per-element mathematics that C and CUDA share, so
 * headers that hold them keep to the common part of both languages. */
#ifndef TB_REAL_H
#define TB_REAL_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "base/device.h"

#ifdef TB_SINGLE
typedef float tb_real;
#define TB_SYMBOL(name)    name##_f32
#define TB_REAL_EPSILON    FLT_EPSILON
#define TB_REAL_MAX        FLT_MAX
#define TB_REAL_MIN_NORMAL FLT_MIN
#define tb_sqrt            sqrtf
#define tb_abs             fabsf
#define tb_sin             sinf
#define tb_cos             cosf
#define tb_acos            acosf
#define tb_asin            asinf
#define tb_atan2           atan2f
#define tb_exp             expf
#define tb_floor           floorf
#define tb_ceil            ceilf
#else
typedef double tb_real;
#define TB_SYMBOL(name)    name
#define TB_REAL_EPSILON    DBL_EPSILON
#define TB_REAL_MAX        DBL_MAX
#define TB_REAL_MIN_NORMAL DBL_MIN
#define tb_sqrt            sqrt
#define tb_abs             fabs
#define tb_sin             sin
#define tb_cos             cos
#define tb_acos            acos
#define tb_asin            asin
#define tb_atan2           atan2
#define tb_exp             exp
#define tb_floor           floor
#define tb_ceil            ceil
#endif

/* Declares a function of a source that is compiled in both precisions, for callers that choose one
 * at run time. */
#define TB_BOTH_PRECISIONS(type, name, arguments)                                                  \
    type name arguments;                                                                           \
    type name##_f32 arguments;

/* The reciprocal root; a card has it at the price of a root. */
#if defined(__CUDA_ARCH__) && defined(TB_SINGLE)
#define tb_rsqrt rsqrtf
#elif defined(__CUDA_ARCH__)
#define tb_rsqrt rsqrt
#else
#define tb_rsqrt(x) (1 / tb_sqrt(x))
#endif

/* A literal or a double in working precision, without a conversion warning. */
#define TB_R(x) ((tb_real)(x))

TB_FN tb_real tb_min(tb_real a, tb_real b)
{
    return a < b ? a : b;
}

TB_FN tb_real tb_max(tb_real a, tb_real b)
{
    return a > b ? a : b;
}

TB_FN tb_real tb_clamp(tb_real x, tb_real lower, tb_real upper)
{
    return x < lower ? lower : (x > upper ? upper : x);
}

/* Whether none of the numbers is infinite or NaN. */
TB_FN int tb_all_finite(const tb_real *x, int32_t count)
{
    TB_ROLLED
    for (int32_t i = 0; i < count; i++)
        if (!(tb_abs(x[i]) <= TB_REAL_MAX)) return 0;
    return 1;
}

#endif
