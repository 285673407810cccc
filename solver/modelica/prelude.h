/* Arithmetic of Modelica, written once: the interpreter includes this header, and the text of it
 * precedes every piece of C and CUDA that the back ends generate. It includes nothing.
 *
 * A failure calls MO_FAIL(run, kind, place, a, b): kind says what failed, place is the line times
 * 2^32 plus the column, a and b are its details. On the processor it does not return; on the card it
 * notes the first failure of the kernel and the operation gives 0. */
#ifndef TB_MODELICA_PRELUDE_H
#define TB_MODELICA_PRELUDE_H

typedef long long mo_int;
typedef unsigned long long mo_word;

enum mo_failure {
    MO_FAIL_INDEX,    /* a: index, b: size; what: function, variable, dimension */
    MO_FAIL_OVERFLOW, /* of Integer */
    MO_FAIL_DIVISION, /* by zero */
    MO_FAIL_DOMAIN,   /* a: mo_x_op */
    MO_FAIL_ASSERT,   /* a: number of the message */
    MO_FAIL_STEP,     /* of a range: 0 */
    MO_FAIL_SIZE,     /* a: negative size */
    MO_FAIL_DEPTH,    /* of calls */
    MO_FAIL_MEMORY    /* a: bytes */
};

MO_FN mo_int mo_add(MO_RUN run, mo_int place, mo_int p, mo_int q)
{
    const mo_int r = (mo_int)((mo_word)p + (mo_word)q);
    if (((p ^ r) & (q ^ r)) < 0) MO_FAIL(run, MO_FAIL_OVERFLOW, place, p, q);
    return r;
}

MO_FN mo_int mo_subtract(MO_RUN run, mo_int place, mo_int p, mo_int q)
{
    const mo_int r = (mo_int)((mo_word)p - (mo_word)q);
    if (((p ^ q) & (p ^ r)) < 0) MO_FAIL(run, MO_FAIL_OVERFLOW, place, p, q);
    return r;
}

MO_FN mo_int mo_negate(MO_RUN run, mo_int place, mo_int p)
{
    return mo_subtract(run, place, 0, p);
}

MO_FN mo_int mo_multiply(MO_RUN run, mo_int place, mo_int p, mo_int q)
{
    const mo_int most = 2147483647, lowest = -most - 1;
    const mo_int r = (mo_int)((mo_word)p * (mo_word)q);
    if (p >= -most && p <= most && q >= -most && q <= most) return r;
    if (q == 0) return 0;
    if ((q == -1 && p == lowest * 4294967296) || (q != -1 && r / q != p))
        MO_FAIL(run, MO_FAIL_OVERFLOW, place, p, q);
    return r;
}

MO_FN double mo_divide(MO_RUN run, mo_int place, double p, double q)
{
    if (q == 0) {
        MO_FAIL(run, MO_FAIL_DIVISION, place, 0, 0);
        return 0;
    }
    return p / q;
}

/* towards zero, with the sign of p, and with the sign of q */
MO_FN mo_int mo_div_integer(MO_RUN run, mo_int place, mo_int p, mo_int q)
{
    if (q == 0) {
        MO_FAIL(run, MO_FAIL_DIVISION, place, 0, 0);
        return 0;
    }
    return q == -1 ? mo_negate(run, place, p) : p / q;
}

MO_FN mo_int mo_rem_integer(MO_RUN run, mo_int place, mo_int p, mo_int q)
{
    if (q == 0) {
        MO_FAIL(run, MO_FAIL_DIVISION, place, 0, 0);
        return 0;
    }
    return q == -1 ? 0 : p % q;
}

MO_FN mo_int mo_mod_integer(MO_RUN run, mo_int place, mo_int p, mo_int q)
{
    const mo_int r = mo_rem_integer(run, place, p, q);
    return r != 0 && (r < 0) != (q < 0) ? r + q : r;
}

MO_FN double mo_div_real(MO_RUN run, mo_int place, double p, double q)
{
    return mo_trunc(mo_divide(run, place, p, q));
}

MO_FN double mo_mod_real(MO_RUN run, mo_int place, double p, double q)
{
    return p - mo_floor(mo_divide(run, place, p, q)) * q;
}

MO_FN double mo_rem_real(MO_RUN run, mo_int place, double p, double q)
{
    return p - mo_trunc(mo_divide(run, place, p, q)) * q;
}

/* 0^q for q < 0 divides by zero; a negative base needs a whole exponent */
MO_FN double mo_power(MO_RUN run, mo_int place, double p, double q)
{
    if (p == 0 && q < 0) {
        MO_FAIL(run, MO_FAIL_DIVISION, place, 0, 0);
        return 0;
    }
    if (p < 0 && mo_floor(q) != q) {
        MO_FAIL(run, MO_FAIL_DOMAIN, place, 0, 0);
        return 0;
    }
    return pow(p, q);
}

/* a function on lowest <= p <= highest, or above lowest */
MO_FN double mo_within(MO_RUN run, mo_int place, mo_int op, double p, double lowest, double highest)
{
    if (p >= lowest && p <= highest) return p;
    MO_FAIL(run, MO_FAIL_DOMAIN, place, op, 0);
    return highest < 2 ? highest : 1;
}

MO_FN double mo_positive(MO_RUN run, mo_int place, mo_int op, double p)
{
    if (p > 0) return p;
    MO_FAIL(run, MO_FAIL_DOMAIN, place, op, 0);
    return 1;
}

/* rounds of a loop from p to q */
MO_FN mo_word mo_rounds(mo_int p, mo_int q, mo_int step)
{
    if (step > 0) return p > q ? 0 : ((mo_word)q - (mo_word)p) / (mo_word)step + 1;
    if (step < 0) return p < q ? 0 : ((mo_word)p - (mo_word)q) / (0 - (mo_word)step) + 1;
    return 0;
}

MO_FN mo_int mo_sign(double p)
{
    return p > 0 ? 1 : p < 0 ? -1 : 0;
}

/* the largest Integer not above p */
MO_FN mo_int mo_integer(MO_RUN run, mo_int place, double p)
{
    const double floored = mo_floor(p);
    if (floored >= -9007199254740992.0 && floored <= 9007199254740992.0) return (mo_int)floored;
    MO_FAIL(run, MO_FAIL_OVERFLOW, place, 0, 0);
    return 0;
}

/* absolute values, smaller and larger; a tie gives p */
MO_FN mo_int mo_abs_integer(MO_RUN run, mo_int place, mo_int p)
{
    return p < 0 ? mo_negate(run, place, p) : p;
}

MO_FN double mo_min_real(double p, double q)
{
    return q < p ? q : p;
}

MO_FN double mo_max_real(double p, double q)
{
    return q > p ? q : p;
}

MO_FN mo_int mo_min_integer(mo_int p, mo_int q)
{
    return q < p ? q : p;
}

MO_FN mo_int mo_max_integer(mo_int p, mo_int q)
{
    return q > p ? q : p;
}

#endif
