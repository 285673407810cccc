/* Three-vectors, quaternions, 3x3 matrices and poses, in working precision.
 *
 * Quaternions are (w, x, y, z); matrices are row-major; a pose maps body coordinates to the world's
 * or the parent's by x -> rotation x + position. */
#ifndef TB_VECTOR_H
#define TB_VECTOR_H

#include "base/real.h"

typedef struct tb_vec3 {
    tb_real x, y, z;
} tb_vec3;

typedef struct tb_quaternion {
    tb_real w, x, y, z;
} tb_quaternion;

typedef struct tb_mat33 {
    tb_real m[9]; /* row-major */
} tb_mat33;

typedef struct tb_pose {
    tb_vec3 position;
    tb_mat33 rotation;
} tb_pose;

TB_FN tb_vec3 tb_v3(tb_real x, tb_real y, tb_real z)
{
    tb_vec3 v;
    v.x = x;
    v.y = y;
    v.z = z;
    return v;
}

/* from three doubles in memory */
TB_FN tb_vec3 tb_v3_load(const double *p)
{
    return tb_v3(TB_R(p[0]), TB_R(p[1]), TB_R(p[2]));
}

TB_FN void tb_v3_store(double *p, tb_vec3 v)
{
    p[0] = (double)v.x;
    p[1] = (double)v.y;
    p[2] = (double)v.z;
}

TB_FN tb_vec3 tb_v3_add(tb_vec3 a, tb_vec3 b)
{
    return tb_v3(a.x + b.x, a.y + b.y, a.z + b.z);
}

TB_FN tb_vec3 tb_v3_sub(tb_vec3 a, tb_vec3 b)
{
    return tb_v3(a.x - b.x, a.y - b.y, a.z - b.z);
}

TB_FN tb_vec3 tb_v3_scale(tb_vec3 a, tb_real s)
{
    return tb_v3(a.x * s, a.y * s, a.z * s);
}

/* a + s b */
TB_FN tb_vec3 tb_v3_add_scaled(tb_vec3 a, tb_vec3 b, tb_real s)
{
    return tb_v3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}

TB_FN tb_vec3 tb_v3_negate(tb_vec3 a)
{
    return tb_v3(-a.x, -a.y, -a.z);
}

TB_FN tb_vec3 tb_v3_lerp(tb_vec3 a, tb_vec3 b, tb_real t)
{
    return tb_v3(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), a.z + t * (b.z - a.z));
}

TB_FN tb_vec3 tb_v3_min(tb_vec3 a, tb_vec3 b)
{
    return tb_v3(tb_min(a.x, b.x), tb_min(a.y, b.y), tb_min(a.z, b.z));
}

TB_FN tb_vec3 tb_v3_max(tb_vec3 a, tb_vec3 b)
{
    return tb_v3(tb_max(a.x, b.x), tb_max(a.y, b.y), tb_max(a.z, b.z));
}

TB_FN tb_real tb_v3_dot(tb_vec3 a, tb_vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

TB_FN tb_vec3 tb_v3_cross(tb_vec3 a, tb_vec3 b)
{
    return tb_v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

TB_FN tb_real tb_v3_length2(tb_vec3 a)
{
    return tb_v3_dot(a, a);
}

TB_FN tb_real tb_v3_length(tb_vec3 a)
{
    return tb_sqrt(tb_v3_dot(a, a));
}

/* the unit vector along a, or `fallback` if a has no direction */
TB_FN_LARGE tb_vec3 tb_v3_normalize(tb_vec3 a, tb_vec3 fallback)
{
    /* scale first: squares of tiny or huge components leave the range of floats */
    const tb_real largest = tb_max(tb_abs(a.x), tb_max(tb_abs(a.y), tb_abs(a.z)));
    if (!(largest > 0) || !(largest <= TB_REAL_MAX)) return fallback;
    const tb_vec3 b = tb_v3(a.x / largest, a.y / largest, a.z / largest);
    const tb_real length = tb_v3_length(b);
    if (!(length > 0)) return fallback; /* a comparison may have passed over a NaN */
    return tb_v3_scale(b, TB_R(1) / length);
}

/* component by index 0, 1, 2 */
TB_FN tb_real tb_v3_at(tb_vec3 a, int axis)
{
    return axis == 0 ? a.x : (axis == 1 ? a.y : a.z);
}

/* Two unit tangents t1, t2 with (n, t1, t2) right-handed and orthonormal, for a unit n.
 * Duff et al., Building an Orthonormal Basis, Revisited, JCGT 2017: continuous but for n.z = 0. */
TB_FN void tb_v3_tangents(tb_vec3 n, tb_vec3 *t1, tb_vec3 *t2)
{
    const tb_real sign = n.z >= 0 ? TB_R(1) : TB_R(-1);
    const tb_real a = TB_R(-1) / (sign + n.z);
    const tb_real b = n.x * n.y * a;
    *t1 = tb_v3(1 + sign * n.x * n.x * a, sign * b, -sign * n.x);
    *t2 = tb_v3(b, sign + n.y * n.y * a, -n.y);
}

/* ---- matrices ---- */

TB_FN tb_mat33 tb_m33_identity(void)
{
    tb_mat33 r;
    for (int i = 0; i < 9; i++) r.m[i] = TB_R(i % 4 == 0);
    return r;
}

TB_FN tb_vec3 tb_m33_mul_v3(const tb_mat33 *a, tb_vec3 v)
{
    const tb_real *m = a->m;
    return tb_v3(m[0] * v.x + m[1] * v.y + m[2] * v.z, m[3] * v.x + m[4] * v.y + m[5] * v.z,
                 m[6] * v.x + m[7] * v.y + m[8] * v.z);
}

/* transpose(a) v */
TB_FN tb_vec3 tb_m33_tmul_v3(const tb_mat33 *a, tb_vec3 v)
{
    const tb_real *m = a->m;
    return tb_v3(m[0] * v.x + m[3] * v.y + m[6] * v.z, m[1] * v.x + m[4] * v.y + m[7] * v.z,
                 m[2] * v.x + m[5] * v.y + m[8] * v.z);
}

TB_FN tb_mat33 tb_m33_mul(const tb_mat33 *a, const tb_mat33 *b)
{
    tb_mat33 r;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            r.m[3 * i + j] = a->m[3 * i] * b->m[j] + a->m[3 * i + 1] * b->m[3 + j] +
                             a->m[3 * i + 2] * b->m[6 + j];
    return r;
}

TB_FN tb_mat33 tb_m33_transpose(const tb_mat33 *a)
{
    tb_mat33 r;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) r.m[3 * i + j] = a->m[3 * j + i];
    return r;
}

TB_FN tb_vec3 tb_m33_column(const tb_mat33 *a, int j)
{
    return tb_v3(a->m[j], a->m[3 + j], a->m[6 + j]);
}

/* the matrix with these columns */
TB_FN tb_mat33 tb_m33_from_columns(tb_vec3 a, tb_vec3 b, tb_vec3 c)
{
    tb_mat33 r;
    r.m[0] = a.x, r.m[1] = b.x, r.m[2] = c.x;
    r.m[3] = a.y, r.m[4] = b.y, r.m[5] = c.y;
    r.m[6] = a.z, r.m[7] = b.z, r.m[8] = c.z;
    return r;
}

/* R S R' for a rotation R and a symmetric S */
TB_FN tb_mat33 tb_m33_rotate_symmetric(const tb_mat33 *r, const tb_mat33 *s)
{
    const tb_mat33 rs = tb_m33_mul(r, s);
    const tb_mat33 rt = tb_m33_transpose(r);
    return tb_m33_mul(&rs, &rt);
}

/* symmetric matrix from xx, yy, zz, xy, xz, yz */
TB_FN tb_mat33 tb_m33_symmetric(const double s[6])
{
    tb_mat33 r;
    r.m[0] = TB_R(s[0]), r.m[4] = TB_R(s[1]), r.m[8] = TB_R(s[2]);
    r.m[1] = r.m[3] = TB_R(s[3]);
    r.m[2] = r.m[6] = TB_R(s[4]);
    r.m[5] = r.m[7] = TB_R(s[5]);
    return r;
}

TB_FN tb_real tb_m33_determinant(const tb_mat33 *a)
{
    const tb_real *m = a->m;
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
           m[2] * (m[3] * m[7] - m[4] * m[6]);
}

/* Inverse by cofactors; returns the determinant. If the determinant is not a normal number, so
 * that its reciprocal is unusable, returns 0 and leaves r unchanged. */
TB_FN tb_real tb_m33_inverse(const tb_mat33 *a, tb_mat33 *r)
{
    const tb_real *m = a->m;
    const tb_real determinant = tb_m33_determinant(a);
    const tb_real size = tb_abs(determinant);
    if (!(size >= TB_REAL_MIN_NORMAL) || !(size <= TB_REAL_MAX)) return 0;
    const tb_real s = 1 / determinant;
    tb_mat33 i;
    i.m[0] = s * (m[4] * m[8] - m[5] * m[7]);
    i.m[1] = s * (m[2] * m[7] - m[1] * m[8]);
    i.m[2] = s * (m[1] * m[5] - m[2] * m[4]);
    i.m[3] = s * (m[5] * m[6] - m[3] * m[8]);
    i.m[4] = s * (m[0] * m[8] - m[2] * m[6]);
    i.m[5] = s * (m[2] * m[3] - m[0] * m[5]);
    i.m[6] = s * (m[3] * m[7] - m[4] * m[6]);
    i.m[7] = s * (m[1] * m[6] - m[0] * m[7]);
    i.m[8] = s * (m[0] * m[4] - m[1] * m[3]);
    *r = i;
    return determinant;
}

/* ---- quaternions ---- */

TB_FN tb_quaternion tb_q(tb_real w, tb_real x, tb_real y, tb_real z)
{
    tb_quaternion q;
    q.w = w;
    q.x = x;
    q.y = y;
    q.z = z;
    return q;
}

TB_FN tb_quaternion tb_q_load(const double *p)
{
    return tb_q(TB_R(p[0]), TB_R(p[1]), TB_R(p[2]), TB_R(p[3]));
}

TB_FN void tb_q_store(double *p, tb_quaternion q)
{
    p[0] = (double)q.w;
    p[1] = (double)q.x;
    p[2] = (double)q.y;
    p[3] = (double)q.z;
}

TB_FN tb_quaternion tb_q_identity(void)
{
    return tb_q(1, 0, 0, 0);
}

TB_FN tb_quaternion tb_q_conjugate(tb_quaternion q)
{
    return tb_q(q.w, -q.x, -q.y, -q.z);
}

TB_FN tb_quaternion tb_q_mul(tb_quaternion a, tb_quaternion b)
{
    return tb_q(a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
                a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
                a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w);
}

/* unit length; the identity if q is zero or not finite */
TB_FN_LARGE tb_quaternion tb_q_normalize(tb_quaternion q)
{
    tb_real length2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    if (!(length2 > TB_REAL_MIN_NORMAL / TB_REAL_EPSILON && length2 <= TB_REAL_MAX)) {
        /* squares of tiny or huge components leave the range of numbers: scale first */
        const tb_real largest =
            tb_max(tb_max(tb_abs(q.w), tb_abs(q.x)), tb_max(tb_abs(q.y), tb_abs(q.z)));
        if (!(largest > 0) || !(largest <= TB_REAL_MAX)) return tb_q_identity();
        q = tb_q(q.w / largest, q.x / largest, q.y / largest, q.z / largest);
        length2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
        if (!(length2 >= 1)) return tb_q_identity(); /* a comparison may have passed over a NaN */
    }
    const tb_real length = tb_sqrt(length2);
    return tb_q(q.w / length, q.x / length, q.y / length, q.z / length);
}

TB_FN tb_vec3 tb_q_rotate(tb_quaternion q, tb_vec3 v)
{
    const tb_vec3 u = tb_v3(q.x, q.y, q.z);
    const tb_vec3 t = tb_v3_scale(tb_v3_cross(u, v), 2);
    return tb_v3_add(tb_v3_add_scaled(v, t, q.w), tb_v3_cross(u, t));
}

TB_FN tb_mat33 tb_q_matrix(tb_quaternion q)
{
    tb_mat33 r;
    const tb_real xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z;
    const tb_real xy = q.x * q.y, xz = q.x * q.z, yz = q.y * q.z;
    const tb_real wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z;
    r.m[0] = 1 - 2 * (yy + zz), r.m[1] = 2 * (xy - wz), r.m[2] = 2 * (xz + wy);
    r.m[3] = 2 * (xy + wz), r.m[4] = 1 - 2 * (xx + zz), r.m[5] = 2 * (yz - wx);
    r.m[6] = 2 * (xz - wy), r.m[7] = 2 * (yz + wx), r.m[8] = 1 - 2 * (xx + yy);
    return r;
}

/* rotation by the vector `angle` (rad, axis times angle) */
TB_FN_LARGE tb_quaternion tb_q_from_rotation_vector(tb_vec3 angle)
{
    const tb_real a = tb_v3_length(angle);
    /* sin(a/2)/a, by its series where a is too small to divide by */
    const tb_real s =
        a > TB_R(1e-4) ? tb_sin(a * TB_R(0.5)) / a : TB_R(0.5) - a * a * TB_R(1.0 / 48.0);
    return tb_q_normalize(tb_q(tb_cos(a * TB_R(0.5)), s * angle.x, s * angle.y, s * angle.z));
}

/* rotation vector of a unit quaternion, of length at most pi */
TB_FN_LARGE tb_vec3 tb_q_rotation_vector(tb_quaternion q)
{
    if (q.w < 0) q = tb_q(-q.w, -q.x, -q.y, -q.z);
    const tb_vec3 u = tb_v3(q.x, q.y, q.z);
    const tb_real s = tb_v3_length(u);
    if (s < TB_R(1e-7)) return tb_v3_scale(u, 2);
    return tb_v3_scale(u, 2 * tb_atan2(s, q.w) / s);
}

/* q turned by the body-frame angular velocity w (rad/s) for time dt; exact for constant w */
TB_FN tb_quaternion tb_q_integrate(tb_quaternion q, tb_vec3 w, tb_real dt)
{
    return tb_q_normalize(tb_q_mul(q, tb_q_from_rotation_vector(tb_v3_scale(w, dt))));
}

/* quaternion of a rotation matrix (Shepperd's method: divides by the largest component) */
TB_FN tb_quaternion tb_q_from_matrix(const tb_mat33 *r)
{
    const tb_real *m = r->m;
    const tb_real t[4] = {m[0] + m[4] + m[8], m[0], m[4], m[8]};
    int largest = 0;
    for (int i = 1; i < 4; i++)
        if (t[i] > t[largest]) largest = i;
    tb_quaternion q;
    if (largest == 0)
        q = tb_q(1 + t[0], m[7] - m[5], m[2] - m[6], m[3] - m[1]);
    else if (largest == 1)
        q = tb_q(m[7] - m[5], 1 + m[0] - m[4] - m[8], m[1] + m[3], m[2] + m[6]);
    else if (largest == 2)
        q = tb_q(m[2] - m[6], m[1] + m[3], 1 - m[0] + m[4] - m[8], m[5] + m[7]);
    else
        q = tb_q(m[3] - m[1], m[2] + m[6], m[5] + m[7], 1 - m[0] - m[4] + m[8]);
    return tb_q_normalize(q);
}

/* ---- poses ---- */

TB_FN tb_pose tb_pose_identity(void)
{
    tb_pose p;
    p.position = tb_v3(0, 0, 0);
    p.rotation = tb_m33_identity();
    return p;
}

TB_FN tb_vec3 tb_pose_point(const tb_pose *p, tb_vec3 local)
{
    return tb_v3_add(p->position, tb_m33_mul_v3(&p->rotation, local));
}

TB_FN tb_vec3 tb_pose_inverse_point(const tb_pose *p, tb_vec3 world)
{
    return tb_m33_tmul_v3(&p->rotation, tb_v3_sub(world, p->position));
}

/* a after b: x -> a(b(x)) */
TB_FN tb_pose tb_pose_mul(const tb_pose *a, const tb_pose *b)
{
    tb_pose r;
    r.position = tb_pose_point(a, b->position);
    r.rotation = tb_m33_mul(&a->rotation, &b->rotation);
    return r;
}

/* inverse(a) after b: pose of b in the frame of a */
TB_FN tb_pose tb_pose_relative(const tb_pose *a, const tb_pose *b)
{
    tb_pose r;
    const tb_mat33 t = tb_m33_transpose(&a->rotation);
    r.position = tb_pose_inverse_point(a, b->position);
    r.rotation = tb_m33_mul(&t, &b->rotation);
    return r;
}

#endif
