/* Vectors, quaternions, small linear algebra and random numbers. test_base_math_f32.c compiles this
 * again in float: tolerances are multiples of the working precision. */
#include "base/linear.h"
#include "base/random.h"
#include "test_util.h"

static const double eps = (double)TB_REAL_EPSILON;

static tb_real uniform(tb_random *random)
{
    return TB_R(tb_random_between(random, -1, 1));
}

static tb_vec3 random_direction(tb_random *random)
{
    const tb_vec3 v = tb_v3(TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random)),
                            TB_R(tb_random_normal(random)));
    return tb_v3_normalize(v, tb_v3(0, 0, 1));
}

static tb_quaternion random_rotation(tb_random *random)
{
    return tb_q_normalize(tb_q(TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random)),
                               TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random))));
}

static void expect_v3(tb_vec3 a, tb_vec3 b, double tolerance)
{
    TEST_NEAR(a.x, b.x, tolerance);
    TEST_NEAR(a.y, b.y, tolerance);
    TEST_NEAR(a.z, b.z, tolerance);
}

static void expect_m33(const tb_mat33 *a, const tb_mat33 *b, double tolerance)
{
    for (int i = 0; i < 9; i++) TEST_NEAR(a->m[i], b->m[i], tolerance);
}

static void expect_rotation(const tb_mat33 *r, double tolerance)
{
    const tb_mat33 t = tb_m33_transpose(r), product = tb_m33_mul(r, &t), one = tb_m33_identity();
    expect_m33(&product, &one, tolerance);
    TEST_NEAR(tb_m33_determinant(r), 1, tolerance);
}

/* ---- random numbers ---- */

static void expect_philox(const uint32_t counter[4], const uint32_t key[2],
                          const uint32_t expected[4])
{
    const tb_random4 r = tb_philox(counter, key);
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(r.v[i], expected[i]);
}

/* kat_vectors of Random123, philox4x32 with 10 rounds */
START_TEST(philox_gives_the_published_words)
{
    const uint32_t zero[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u};
    const uint32_t pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
    const uint32_t pi_key[2] = {0xa4093822, 0x299f31d0};
    expect_philox(zero, zero, (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    expect_philox(ones, ones, (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    expect_philox(pi, pi_key, (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}
END_TEST

START_TEST(a_stream_is_philox_word_by_word_from_any_position)
{
    tb_random r = tb_random_stream(0x299f31d0a4093822u, 0x0370734413198a2eu);
    r.position = 4 * 0x85a308d3243f6a88u; /* the counter of the vector above, but for two bits */
    const uint32_t counter[4] = {0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344};
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    const tb_random4 expected = tb_philox(counter, key);
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(tb_random_u32(&r), expected.v[i]);

    tb_random again = tb_random_stream(0, 0), other = tb_random_stream(0, 1);
    ck_assert_uint_eq(tb_random_u32(&again), 0x6627e8d5);
    ck_assert_uint_ne(tb_random_u32(&other), 0x6627e8d5);
}
END_TEST

START_TEST(random_numbers_have_their_moments)
{
    enum { N = 200000 };
    tb_random r = tb_random_stream(4, 0);
    double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        const double u = tb_random_uniform(&r), n = tb_random_normal(&r);
        ck_assert(u >= 0 && u < 1 && isfinite(n));
        sum += u, squares += u * u;
        normal_sum += n, normal_squares += n * n, fourth += n * n * n * n;
    }
    /* five standard deviations of each estimate */
    TEST_NEAR(sum / N, 0.5, 5 * sqrt(1.0 / 12 / N));
    TEST_NEAR(squares / N, 1.0 / 3, 5 * sqrt(4.0 / 45 / N));
    TEST_NEAR(normal_sum / N, 0, 5 * sqrt(1.0 / N));
    TEST_NEAR(normal_squares / N, 1, 5 * sqrt(2.0 / N));
    TEST_NEAR(fourth / N, 3, 5 * sqrt(96.0 / N));
    for (int i = 0; i < 1000; i++) {
        const double x = tb_random_between(&r, -3, 5);
        ck_assert(x >= -3 && x < 5);
    }
}
END_TEST

/* ---- vectors ---- */

START_TEST(directions_of_any_length_normalise)
{
    const tb_vec3 fallback = tb_v3(0, 1, 0);
    const tb_real tiny = TB_REAL_MIN_NORMAL, huge = TB_REAL_MAX;
    const tb_real scales[] = {tiny, tiny * TB_R(1e-3), TB_R(1e-15), 1, TB_R(1e15), huge / 4};
    for (int i = 0; i < 6; i++) {
        const tb_real s = scales[i];
        const tb_vec3 n = tb_v3_normalize(tb_v3(3 * s, 0, -4 * s), fallback);
        /* a subnormal has fewer digits */
        expect_v3(n, tb_v3(TB_R(0.6), 0, TB_R(-0.8)), i == 1 ? 1e-3 : 4 * eps);
        TEST_NEAR(tb_v3_length(n), 1, 4 * eps);
    }
    const tb_real inf = TB_R(INFINITY), nan = TB_R(NAN);
    const tb_vec3 bad[] = {tb_v3(0, 0, 0),   tb_v3(inf, 0, 0), tb_v3(1, nan, 1),
                           tb_v3(nan, 1, 1), tb_v3(1, 1, nan), tb_v3(nan, nan, nan)};
    for (int i = 0; i < 6; i++) expect_v3(tb_v3_normalize(bad[i], fallback), fallback, 0);
}
END_TEST

static void expect_frame(tb_vec3 n)
{
    tb_vec3 t1, t2;
    tb_v3_tangents(n, &t1, &t2);
    TEST_NEAR(tb_v3_length(t1), 1, 8 * eps);
    TEST_NEAR(tb_v3_length(t2), 1, 8 * eps);
    TEST_NEAR(tb_v3_dot(n, t1), 0, 8 * eps);
    TEST_NEAR(tb_v3_dot(n, t2), 0, 8 * eps);
    TEST_NEAR(tb_v3_dot(t1, t2), 0, 8 * eps);
    expect_v3(tb_v3_cross(t1, t2), n, 8 * eps); /* (n, t1, t2) right-handed */
}

START_TEST(tangents_are_orthonormal_for_every_normal)
{
    tb_random random = tb_random_stream(5, 0);
    for (int i = 0; i < 20000; i++) expect_frame(random_direction(&random));
    for (int axis = 0; axis < 3; axis++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const tb_real s = TB_R(sign);
            expect_frame(
                tb_v3(axis == 0 ? s : 0, axis == 1 ? s : TB_R(-0.0), axis == 2 ? s : TB_R(-0.0)));
        }
    /* next to the south pole, where older methods lose all digits */
    for (tb_real a = 1; a > TB_REAL_MIN_NORMAL; a *= TB_R(0.25)) {
        expect_frame(tb_v3(tb_sin(a), 0, -tb_cos(a)));
        expect_frame(tb_v3(0, -tb_sin(a), -tb_cos(a)));
    }
}
END_TEST

START_TEST(vectors_survive_memory_as_doubles)
{
    const double p[3] = {1.5, -2.25, 1024.125};
    double back[3];
    tb_v3_store(back, tb_v3_load(p));
    for (int i = 0; i < 3; i++) {
        TEST_NEAR(back[i], p[i], 0);
        TEST_NEAR(tb_v3_at(tb_v3_load(p), i), p[i], 0);
    }
    const tb_vec3 a = tb_v3(1, 2, 3), b = tb_v3(3, 1, 5);
    expect_v3(tb_v3_min(a, b), tb_v3(1, 1, 3), 0);
    expect_v3(tb_v3_max(a, b), tb_v3(3, 2, 5), 0);
    expect_v3(tb_v3_lerp(a, b, TB_R(0.5)), tb_v3(2, TB_R(1.5), 4), 0);
    expect_v3(tb_v3_cross(a, b), tb_v3(7, 4, -5), 0);
}
END_TEST

/* ---- quaternions ---- */

START_TEST(a_quaternion_comes_back_from_its_matrix)
{
    tb_random random = tb_random_stream(6, 0);
    for (int i = 0; i < 20000; i++) {
        tb_quaternion q = random_rotation(&random);
        /* every sixteenth a half turn about a random or a main axis: the trace is -1 there */
        if (i % 16 == 0) q = tb_q_normalize(tb_q(0, q.x, q.y, q.z));
        if (i % 16 == 1) q = tb_q(0, TB_R(i % 3 == 0), TB_R(i % 3 == 1), TB_R(i % 3 == 2));
        const tb_mat33 r = tb_q_matrix(q);
        expect_rotation(&r, 16 * eps);
        const tb_quaternion p = tb_q_from_matrix(&r);
        const tb_real same = q.w * p.w + q.x * p.x + q.y * p.y + q.z * p.z;
        TEST_NEAR(tb_abs(same), 1, 8 * eps);
        const tb_mat33 again = tb_q_matrix(p);
        expect_m33(&again, &r, 16 * eps);
    }
}
END_TEST

START_TEST(a_quaternion_turns_as_its_matrix_does)
{
    tb_random random = tb_random_stream(7, 0);
    for (int i = 0; i < 2000; i++) {
        const tb_quaternion p = random_rotation(&random), q = random_rotation(&random);
        const tb_vec3 v = tb_v3(uniform(&random), uniform(&random), uniform(&random));
        const tb_mat33 a = tb_q_matrix(p), b = tb_q_matrix(q), ab = tb_m33_mul(&a, &b);
        const tb_mat33 pq = tb_q_matrix(tb_q_mul(p, q));
        expect_m33(&pq, &ab, 16 * eps);
        expect_v3(tb_q_rotate(p, v), tb_m33_mul_v3(&a, v), 16 * eps);
        expect_v3(tb_q_rotate(tb_q_conjugate(p), v), tb_m33_tmul_v3(&a, v), 16 * eps);
    }
    /* a quarter turn about Z takes X to Y */
    const tb_real h = tb_sqrt(TB_R(0.5));
    expect_v3(tb_q_rotate(tb_q(h, 0, 0, h), tb_v3(1, 0, 0)), tb_v3(0, 1, 0), 4 * eps);
}
END_TEST

START_TEST(a_rotation_vector_comes_back_at_every_angle)
{
    tb_random random = tb_random_stream(8, 0);
    const double pi = 3.141592653589793;
    const double angles[] = {0,    1e-300, 1e-30, 1e-12, 1e-7,      1.1e-7,
                             9e-5, 1.1e-4, 1e-2,  1,     pi - 1e-3, pi * (1 - 1e-6)};
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 200; k++) {
            const tb_vec3 v = tb_v3_scale(random_direction(&random), TB_R(angles[i]));
            const tb_quaternion q = tb_q_from_rotation_vector(v);
            TEST_NEAR(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z, 1, 4 * eps);
            /* relative for small angles: a slow turn keeps its digits */
            const double tolerance = 16 * eps * angles[i] + (double)TB_REAL_MIN_NORMAL;
            expect_v3(tb_q_rotation_vector(q), v, tolerance);
            expect_v3(tb_q_rotation_vector(tb_q(-q.w, -q.x, -q.y, -q.z)), v, tolerance);
        }
    /* more than half a turn comes back the short way */
    const tb_vec3 short_way =
        tb_q_rotation_vector(tb_q_from_rotation_vector(tb_v3(0, 0, TB_R(1.5 * pi))));
    expect_v3(short_way, tb_v3(0, 0, TB_R(-0.5 * pi)), 16 * eps);
}
END_TEST

START_TEST(quaternions_of_any_length_normalise)
{
    const tb_real tiny = TB_REAL_MIN_NORMAL;
    const tb_real scales[] = {
        tiny * TB_R(1e-3),    tiny,           tb_sqrt(tiny), TB_R(1e-10), 1, TB_R(1e10),
        tb_sqrt(TB_REAL_MAX), TB_REAL_MAX / 8};
    for (int i = 0; i < 8; i++) {
        const tb_real s = scales[i];
        const tb_quaternion q = tb_q_normalize(tb_q(s, -2 * s, 4 * s, 2 * s));
        const double tolerance = i == 0 ? 1e-3 : 4 * eps; /* a subnormal has fewer digits */
        TEST_NEAR(q.w, 0.2, tolerance);
        TEST_NEAR(q.x, -0.4, tolerance);
        TEST_NEAR(q.y, 0.8, tolerance);
        TEST_NEAR(q.z, 0.4, tolerance);
        TEST_NEAR(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z, 1, 4 * eps);
    }
    const tb_real inf = TB_R(INFINITY), nan = TB_R(NAN);
    const tb_quaternion bad[] = {tb_q(0, 0, 0, 0),   tb_q(inf, 0, 0, 0),  tb_q(1, -inf, 0, 0),
                                 tb_q(nan, 1, 1, 1), tb_q(1, nan, 1, 1),  tb_q(1, 1, nan, 1),
                                 tb_q(1, 1, 1, nan), tb_q(inf, nan, 1, 1)};
    for (int i = 0; i < 8; i++) {
        const tb_quaternion q = tb_q_normalize(bad[i]);
        ck_assert(q.w == 1 && q.x == 0 && q.y == 0 && q.z == 0);
    }
}
END_TEST

START_TEST(a_constant_velocity_integrates_exactly)
{
    /* one second at (0.3, -1, 2) rad/s in one step and in a thousand */
    const tb_vec3 w = tb_v3(TB_R(0.3), -1, 2);
    const tb_quaternion start = tb_q_normalize(tb_q(1, TB_R(0.2), TB_R(-0.4), TB_R(0.1)));
    const tb_quaternion once = tb_q_integrate(start, w, 1);
    tb_quaternion q = start;
    for (int i = 0; i < 1000; i++) q = tb_q_integrate(q, w, TB_R(1e-3));
    TEST_NEAR(q.w, once.w, 1000 * eps);
    TEST_NEAR(q.x, once.x, 1000 * eps);
    TEST_NEAR(q.y, once.y, 1000 * eps);
    TEST_NEAR(q.z, once.z, 1000 * eps);

    /* body axes: a turn about the body's own axis leaves that axis where it is in the world */
    const tb_vec3 axis = tb_v3_normalize(w, w);
    expect_v3(tb_q_rotate(once, axis), tb_q_rotate(start, axis), 16 * eps);
}
END_TEST

/* ---- poses ---- */

START_TEST(poses_compose_and_come_back)
{
    tb_random random = tb_random_stream(9, 0);
    for (int i = 0; i < 1000; i++) {
        tb_pose a, b;
        a.rotation = tb_q_matrix(random_rotation(&random));
        b.rotation = tb_q_matrix(random_rotation(&random));
        a.position = tb_v3(uniform(&random), uniform(&random), uniform(&random));
        b.position = tb_v3(uniform(&random), uniform(&random), uniform(&random));
        const tb_vec3 x = tb_v3(uniform(&random), uniform(&random), uniform(&random));
        const tb_pose ab = tb_pose_mul(&a, &b), back = tb_pose_relative(&a, &ab);
        expect_v3(tb_pose_point(&ab, x), tb_pose_point(&a, tb_pose_point(&b, x)), 32 * eps);
        expect_v3(tb_pose_inverse_point(&ab, tb_pose_point(&ab, x)), x, 32 * eps);
        expect_v3(back.position, b.position, 32 * eps);
        expect_m33(&back.rotation, &b.rotation, 32 * eps);
    }
}
END_TEST

/* ---- matrices ---- */

START_TEST(an_inverse_undoes_its_matrix)
{
    tb_random random = tb_random_stream(10, 0);
    const tb_mat33 one = tb_m33_identity();
    for (int i = 0; i < 2000; i++) {
        tb_mat33 a, r;
        for (int k = 0; k < 9; k++) a.m[k] = uniform(&random) + (k % 4 == 0 ? 3 : 0);
        const tb_real determinant = tb_m33_inverse(&a, &r);
        TEST_NEAR(determinant, tb_m33_determinant(&a), 0);
        const tb_mat33 product = tb_m33_mul(&a, &r);
        expect_m33(&product, &one, 100 * eps);
    }
}
END_TEST

START_TEST(a_matrix_without_an_inverse_leaves_the_result_alone)
{
    const tb_mat33 singular = {{1, 2, 3, 2, 4, 6, 0, 0, 1}};
    const tb_real s = tb_sqrt(TB_REAL_MIN_NORMAL), nan = TB_R(NAN);
    const tb_mat33 tiny = {{s, 0, 0, 0, s, 0, 0, 0, s}}, bad = {{nan, 0, 0, 0, 1, 0, 0, 0, 1}};
    const tb_mat33 *matrices[] = {&singular, &tiny, &bad};
    for (int i = 0; i < 3; i++) {
        tb_mat33 r = tb_m33_identity();
        const tb_mat33 one = r;
        TEST_NEAR(tb_m33_inverse(matrices[i], &r), 0, 0);
        expect_m33(&r, &one, 0);
    }
}
END_TEST

/* checks A V = V D, V a rotation, D descending; tolerance relative to the largest |value| */
static void expect_eigen(const tb_mat33 *a, tb_real values[3])
{
    tb_mat33 v;
    tb_m33_eigen(a, values, &v);
    expect_rotation(&v, 64 * eps);
    ck_assert(values[0] >= values[1] && values[1] >= values[2]);
    double size = 0;
    for (int i = 0; i < 9; i++) size = fmax(size, fabs((double)a->m[i]));
    for (int j = 0; j < 3; j++) {
        const tb_vec3 column = tb_m33_column(&v, j);
        expect_v3(tb_m33_mul_v3(a, column), tb_v3_scale(column, values[j]), 64 * eps * size);
    }
}

START_TEST(eigenvectors_diagonalise_random_and_repeated_spectra)
{
    tb_random random = tb_random_stream(11, 0);
    const double spectra[][3] = {{3, 2, 1}, {2, 2, 1},    {2, 1, 1},         {1, 1, 1},
                                 {1, 0, 0}, {1, 1, 0},    {1, 0, -1},        {5, 1e-3, 1e-6},
                                 {0, 0, 0}, {-1, -2, -3}, {1, 1 - 1e-6, 0.5}};
    for (int s = 0; s < 11; s++)
        for (int i = 0; i < 300; i++) {
            const tb_mat33 r = tb_q_matrix(random_rotation(&random));
            const tb_mat33 d =
                tb_m33_symmetric((double[]){spectra[s][0], spectra[s][1], spectra[s][2], 0, 0, 0});
            tb_mat33 a = tb_m33_rotate_symmetric(&r, &d);
            a.m[3] = a.m[1], a.m[6] = a.m[2], a.m[7] = a.m[5];
            tb_real values[3];
            expect_eigen(&a, values);
            for (int k = 0; k < 3; k++) TEST_NEAR(values[k], spectra[s][k], 64 * eps * 5);
        }
}
END_TEST

START_TEST(eigenvalues_of_easy_and_awkward_matrices)
{
    tb_real values[3];
    const tb_mat33 diagonal = tb_m33_symmetric((double[]){1, 3, 2, 0, 0, 0});
    expect_eigen(&diagonal, values);
    TEST_NEAR(values[0], 3, 0);
    TEST_NEAR(values[1], 2, 0);
    TEST_NEAR(values[2], 1, 0);

    /* nothing on the diagonal: 2 and twice -1 */
    const tb_mat33 hollow = tb_m33_symmetric((double[]){0, 0, 0, 1, 1, 1});
    expect_eigen(&hollow, values);
    TEST_NEAR(values[0], 2, 16 * eps);
    TEST_NEAR(values[2], -1, 16 * eps);

    /* moments of something small, and an off-diagonal that is nothing beside the rest */
    const tb_mat33 small = tb_m33_symmetric((double[]){2e-12, 1e-12, 3e-12, 1e-13, 2e-13, 0});
    expect_eigen(&small, values);
    const tb_mat33 wide = tb_m33_symmetric((double[]){1e6, 1, 1e-6, 1e-12, 0, 1e-20});
    expect_eigen(&wide, values);
}
END_TEST

START_TEST(cholesky_solves_in_a_wider_array)
{
    tb_random random = tb_random_stream(12, 0);
    for (int n = 1; n <= 9; n++) {
        const int stride = n + 2;
        tb_real b[9 * 9], a[9 * 11], copy[9 * 11], x[9], right[9];
        for (int i = 0; i < n * n; i++) b[i] = uniform(&random);
        for (int i = 0; i < n * stride; i++) a[i] = 77; /* must stay beyond the matrix */
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                tb_real sum = i == j ? TB_R(1) : TB_R(0);
                for (int k = 0; k < n; k++) sum += b[n * i + k] * b[n * j + k];
                a[i * stride + j] = sum;
            }
        memcpy(copy, a, sizeof copy);
        for (int i = 0; i < n; i++) x[i] = uniform(&random);
        for (int i = 0; i < n; i++) {
            right[i] = 0;
            for (int j = 0; j < n; j++) right[i] += a[i * stride + j] * x[j];
        }
        ck_assert_int_eq(tb_cholesky(a, n, stride), n);
        tb_cholesky_solve(a, n, stride, right);
        for (int i = 0; i < n; i++) TEST_NEAR(right[i], x[i], 200 * eps);

        /* the upper triangle and the columns beyond are untouched */
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < stride; j++)
                TEST_NEAR(a[i * stride + j], copy[i * stride + j], 0);
    }
}
END_TEST

START_TEST(cholesky_names_the_pivot_that_fails)
{
    tb_real indefinite[9] = {4, 0, 0, 2, 1, 0, 0, 0, 1}; /* second pivot 1 - 1 = 0 */
    ck_assert_int_eq(tb_cholesky(indefinite, 3, 3), 1);
    tb_real negative[1] = {-1}, nan[1] = {TB_R(NAN)};
    ck_assert_int_eq(tb_cholesky(negative, 1, 1), 0);
    ck_assert_int_eq(tb_cholesky(nan, 1, 1), 0);
    ck_assert_int_eq(tb_cholesky(NULL, 0, 0), 0);
}
END_TEST

TEST_MAIN(philox_gives_the_published_words, a_stream_is_philox_word_by_word_from_any_position,
          random_numbers_have_their_moments, directions_of_any_length_normalise,
          tangents_are_orthonormal_for_every_normal, vectors_survive_memory_as_doubles,
          a_quaternion_comes_back_from_its_matrix, a_quaternion_turns_as_its_matrix_does,
          a_rotation_vector_comes_back_at_every_angle, quaternions_of_any_length_normalise,
          a_constant_velocity_integrates_exactly, poses_compose_and_come_back,
          an_inverse_undoes_its_matrix, a_matrix_without_an_inverse_leaves_the_result_alone,
          eigenvectors_diagonalise_random_and_repeated_spectra,
          eigenvalues_of_easy_and_awkward_matrices, cholesky_solves_in_a_wider_array,
          cholesky_names_the_pivot_that_fails)
