/* The formulas of a cell and of a material of solver/grid, one by one. */
#include "base/random.h"
#include "grid/cell.h"
#include "grid/material.h"
#include "grid/shape.h"
#include "grid/transport.h"
#include "test_util.h"

START_TEST(a_cut_by_a_plane_has_the_volume_below_it)
{
    tb_random random = tb_random_stream(7, 0);
    for (int i = 0; i < 200; i++) {
        double p[8], n[3], inside = 0;
        const double w = tb_random_between(&random, -0.3, 1.2);
        for (int a = 0; a < 3; a++) n[a] = tb_random_between(&random, -1, 1);
        for (int c = 0; c < 8; c++)
            p[c] = n[0] * (c & 1) + n[1] * (c >> 1 & 1) + n[2] * (c >> 2 & 1) - w;
        enum { N = 40 };
        for (int k = 0; k < N * N * N; k++)
            inside += n[0] * (k % N + 0.5) / N + n[1] * (k / N % N + 0.5) / N +
                          n[2] * (k / N / N + 0.5) / N <
                      w;
        TEST_NEAR(tb_soft_cube_part(p, i % 8), inside / (N * N * N), 0.01);
        for (int c = 0; c < 8; c++) p[c] = -p[c];
        TEST_NEAR(tb_soft_cube_part(p, 0), 1 - inside / (N * N * N), 0.01);
    }
}
END_TEST

START_TEST(a_corner_that_lies_on_the_surface_takes_nothing)
{
    const double full[8] = {-1, -1, -1, -1, 0, 0, 0, 0}, none[8] = {0, 0, 0, 0, 1, 1, 1, 1};
    TEST_NEAR(tb_soft_cube_part(full, 0), 1, 1e-15);
    TEST_NEAR(tb_soft_cube_part(none, 0), 0, 1e-15);
}
END_TEST

/* The stress is the derivative of the energy: P F' / J, with P by central differences of W(F). */
START_TEST(stress_is_the_derivative_of_the_energy)
{
    const double step = 1e-6;
    for (int law = 0; law < 3; law++) {
        tb_soft_material m = {
            .law = (tb_soft_law)law, .density = 1, .young = 3, .poisson = 0.3, .damping = 0};
        const tb_mat33 f = {{1.1, 0.2, -0.1, 0.05, 0.9, 0.15, -0.2, 0.1, 1.05}}, still = {{0}};
        tb_mat33 g, sigma;
        tb_soft_stress s, up, down;
        tb_soft_material_lame(&m);
        ck_assert(tb_m33_inverse(&f, &g) > 0);
        const double j = tb_soft_stress_of(&m, &g, &still, &s);
        TEST_NEAR_RELATIVE(j, tb_m33_determinant(&f), 1e-14);
        for (int i = 0; i < 9; i++) {
            tb_mat33 near = f;
            near.m[i] += step;
            tb_m33_inverse(&near, &g);
            tb_soft_stress_of(&m, &g, &still, &up);
            near.m[i] -= 2 * step;
            tb_m33_inverse(&near, &g);
            tb_soft_stress_of(&m, &g, &still, &down);
            sigma.m[i] = (up.energy - down.energy) / (2 * step); /* P */
        }
        const tb_mat33 ft = tb_m33_transpose(&f);
        sigma = tb_m33_mul(&sigma, &ft);
        for (int i = 0; i < 9; i++) TEST_NEAR(s.sigma.m[i], sigma.m[i] / j, 1e-8);
        ck_assert(s.stiffness >=
                  m.lambda + 2 * m.mu); /* no softer than at rest, as it is stretched */
    }
}
END_TEST

START_TEST(a_rotation_makes_no_stress_and_damping_resists)
{
    const double a = 0.7;
    const tb_mat33 g = {{cos(a), sin(a), 0, -sin(a), cos(a), 0, 0, 0, 1}};
    const tb_mat33 turn = {{0, -2, 0, 2, 0, 0, 0, 0, 0}},
                   squeeze = {{-1, 0, 0, 0, 0.5, 0, 0, 0, 0}};
    for (int law = 0; law < 3; law++) {
        tb_soft_material m = {
            .law = (tb_soft_law)law, .density = 1, .young = 1, .poisson = 0.4, .damping = 0.1};
        tb_soft_stress s;
        tb_soft_material_lame(&m);
        tb_soft_stress_of(&m, &g, &turn, &s);
        for (int i = 0; i < 9; i++) TEST_NEAR(s.sigma.m[i], 0, 1e-14);
        TEST_NEAR(s.energy, 0, 1e-14);
        tb_soft_stress_of(&m, &g, &squeeze, &s);
        ck_assert(s.dissipation > 0);
        TEST_NEAR(s.dissipation, -s.sigma.m[0] + 0.5 * s.sigma.m[4], 1e-12);
    }
    const tb_mat33 folded = {{-1, 0, 0, 0, 1, 0, 0, 0, 1}};
    tb_soft_material m = {.density = 1, .young = 1};
    tb_soft_stress s;
    ck_assert(tb_soft_stress_of(&m, &folded, &turn, &s) == 0);
}
END_TEST

START_TEST(distances_are_those_of_the_shapes)
{
    tb_soft_solid s = {.kind = TB_SOFT_BOX, .size = {1, 2, 3}, .pose = tb_pose_identity()};
    s.pose.position.x = 1;
    const double corner[3] = {5, 6, 0}, inside[3] = {1.5, 0, 0}, above[3] = {1, 0, 4};
    TEST_NEAR(tb_soft_distance(&s, corner), 5, 1e-15);
    TEST_NEAR(tb_soft_distance(&s, inside), -0.5, 1e-15);
    s.kind = TB_SOFT_CYLINDER;
    TEST_NEAR(tb_soft_distance(&s, above), 2, 1e-15);
    TEST_NEAR(tb_soft_distance(&s, inside), -0.5, 1e-15);
    s.kind = TB_SOFT_CAPSULE;
    TEST_NEAR(tb_soft_distance(&s, above), 1, 1e-15);
    s.kind = TB_SOFT_SPHERE;
    TEST_NEAR(tb_soft_distance(&s, above), 3, 1e-15);
    s.kind = TB_SOFT_PLANE;
    TEST_NEAR(tb_soft_distance(&s, above), 4, 1e-15);
}
END_TEST

/* A linear field is carried exactly; a wave of wavelength 16 or 32 cells shows each scheme's order. */
START_TEST(advection_has_its_order)
{
    const int64_t stride[3] = {1, 1, 1};
    const double v[2] = {0.3, -0.3};
    for (int order = 0; order < 2; order++)
        for (int d = 0; d < 2; d++) {
            double errors[2] = {0};
            const double velocity[3] = {v[d], 0, 0};
            for (int fine = 0; fine < 2; fine++) {
                enum { MOST = 40 };
                const int n = fine ? 32 : 16;
                const double h[3] = {1.0 / n, 1, 1};
                double q[MOST], linear[MOST];
                for (int i = 0; i < n + 4; i++)
                    q[i] = sin(6.283185307 * (i - 2) / n), linear[i] = 3 + 5.0 * i / n;
                for (int i = 2; i < n + 2; i++) {
                    const double exact = v[d] * 6.283185307 * cos(6.283185307 * (i - 2) / n);
                    errors[fine] += fabs(tb_soft_advection_rate(q + i, stride, velocity, h,
                                                                (tb_soft_advection)order) -
                                         exact) /
                                    n;
                    TEST_NEAR(tb_soft_advection_rate(linear + i, stride, velocity, h,
                                                     (tb_soft_advection)order),
                              5 * v[d], 1e-12);
                }
            }
            const double rate = log2(errors[0] / errors[1]);
            ck_assert_msg(rate > (order == 0 ? 0.9 : 1.7), "order %g", rate);
        }
}
END_TEST

START_TEST(the_longest_step_is_stable_and_no_longer_one_is)
{
    const double rates[3] = {1, 100, 1e4}, taus[3] = {0, 0.01, 3};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            for (int longer = 0; longer < 2; longer++) {
                const double dt = tb_soft_longest_step(rates[i], taus[k]) * (longer ? 1.02 : 0.98);
                double x = 1, velocity = 0;
                for (int s = 0; s < 3000 && fabs(x) < 1e6; s++) {
                    velocity -= dt * (rates[i] * x + rates[i] * taus[k] * velocity);
                    x += dt * velocity;
                }
                ck_assert_int_eq(fabs(x) > 100, longer);
            }
}
END_TEST

TEST_MAIN(a_cut_by_a_plane_has_the_volume_below_it, a_corner_that_lies_on_the_surface_takes_nothing,
          stress_is_the_derivative_of_the_energy, a_rotation_makes_no_stress_and_damping_resists,
          distances_are_those_of_the_shapes, advection_has_its_order,
          the_longest_step_is_stable_and_no_longer_one_is)
