/* Prox operators against their definition (no point of the set is nearer) and against closed forms,
 * and the exact solve of one contact against its law. */
#include "test_util.h"

#include "contact/contact.h"
#include "contact/judge.h"

static double length(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

START_TEST(the_coulomb_projection_is_max_then_disk)
{
    double a[3] = {-1, 3, 4}, b[3] = {2, 3, 4}, c[3] = {2, 0.3, 0.4};
    tb_prox_coulomb(a, 0.5);
    ck_assert(a[0] == 0 && a[1] == 0 && a[2] == 0);
    tb_prox_coulomb(b, 0.5);
    TEST_NEAR(b[0], 2, 0);
    TEST_NEAR(b[1], 0.6, 1e-15);
    TEST_NEAR(b[2], 0.8, 1e-15);
    tb_prox_coulomb(c, 0.5);
    ck_assert(c[1] == 0.3 && c[2] == 0.4);
}
END_TEST

START_TEST(no_friction_leaves_the_normal_alone)
{
    double x[3] = {2, 3, 4}, k[3] = {2, 3, 4};
    tb_prox_coulomb(x, 0);
    ck_assert(x[0] == 2 && x[1] == 0 && x[2] == 0);
    tb_project_cone(k, 3, 0);
    ck_assert(k[0] == 2 && k[1] == 0 && k[2] == 0);
}
END_TEST

START_TEST(disks_of_tiny_and_huge_vectors_keep_their_direction)
{
    const double sizes[] = {1e-300, 1e-160, 1e-20, 1, 1e20, 1e160, 1e300};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const double s = sizes[i];
        double x[2] = {3 * s, -4 * s};
        tb_prox_disk(x, s);
        TEST_NEAR(x[0] / s, 0.6, 1e-14);
        TEST_NEAR(x[1] / s, -0.8, 1e-14);
    }
}
END_TEST

START_TEST(the_ellipsoid_projection_is_on_the_rim_along_the_normal)
{
    tb_random random = tb_random_stream(1, 1);
    for (int trial = 0; trial < 20000; trial++) {
        const double radius = pow(10, tb_random_between(&random, -6, 6));
        double z[3], x[3];
        for (int i = 0; i < 3; i++)
            z[i] = x[i] =
                radius * tb_random_normal(&random) * pow(10, tb_random_between(&random, -3, 6));
        tb_prox_ellipsoid(x, radius);
        const double inside = z[0] * z[0] + z[1] * z[1] + 2.25 * z[2] * z[2];
        if (inside <= radius * radius) {
            for (int i = 0; i < 3; i++) ck_assert(x[i] == z[i]);
            continue;
        }
        const double rim = (x[0] * x[0] + x[1] * x[1] + 2.25 * x[2] * x[2]) / (radius * radius);
        TEST_NEAR(rim, 1, 1e-13);
        /* z - x is parallel to the gradient (x0, x1, 9/4 x2) */
        const double gradient[3] = {x[0], x[1], 2.25 * x[2]};
        const double d[3] = {z[0] - x[0], z[1] - x[1], z[2] - x[2]};
        double cross[3] = {d[1] * gradient[2] - d[2] * gradient[1],
                           d[2] * gradient[0] - d[0] * gradient[2],
                           d[0] * gradient[1] - d[1] * gradient[0]};
        const double scale = (length(d, 3) + radius * 1e-15) * length(gradient, 3);
        ck_assert_msg(length(cross, 3) <= 1e-9 * length(z, 3) * length(gradient, 3) + 1e-12 * scale,
                      "trial %d", trial);
        ck_assert(d[0] * gradient[0] + d[1] * gradient[1] + d[2] * gradient[2] >= 0);
    }
}
END_TEST

START_TEST(an_ellipsoid_without_size_projects_to_zero)
{
    double x[3] = {1, 2, 3}, y[3] = {1e300, -1e300, 1e300};
    tb_prox_ellipsoid(x, 0);
    ck_assert(x[0] == 0 && x[1] == 0 && x[2] == 0);
    tb_prox_ellipsoid(y, 1e-300);
    for (int i = 0; i < 3; i++) ck_assert(isfinite(y[i]));
}
END_TEST

START_TEST(cone_projections_split_a_vector_after_moreau)
{
    tb_random random = tb_random_stream(2, 1);
    for (int trial = 0; trial < 20000; trial++) {
        const double mu = trial % 7 == 0 ? 0 : pow(10, tb_random_between(&random, -3, 1));
        const int rows = trial % 2 ? 2 : 3;
        double x[3] = {0}, p[3], d[3];
        for (int i = 0; i < rows; i++) x[i] = tb_random_normal(&random);
        memcpy(p, x, sizeof p);
        tb_project_cone(p, rows, mu);
        /* Moreau: the rest lies in the polar cone, whose negative is the dual, across p */
        for (int i = 0; i < 3; i++) d[i] = p[i] - x[i];
        const double slip = rows == 2 ? fabs(p[1]) : hypot(p[1], p[2]);
        ck_assert(slip <= mu * p[0] * (1 + 1e-14) + 1e-300);
        const double dual = rows == 2 ? fabs(d[1]) : hypot(d[1], d[2]);
        ck_assert(d[0] >= mu * dual - 1e-13 * (1 + mu));
        double product = 0;
        for (int i = 0; i < rows; i++) product += p[i] * d[i];
        TEST_NEAR(product, 0, 1e-12);
    }
}
END_TEST

START_TEST(a_rolling_block_bounds_friction_by_mu_and_rolling_by_the_normal)
{
    double x[6] = {2, 5, 0, 0, 3, 4};
    tb_prox_block(TB_LAW_ROLLING, 6, 0.25, 0, 0, x);
    TEST_NEAR(x[1], 0.5, 1e-15);
    TEST_NEAR(x[4], 1.2, 1e-15);
    TEST_NEAR(x[5], 1.6, 1e-15);
    double box[1] = {7};
    tb_prox_block(TB_LAW_BOX, 1, 0, -2, 3, box);
    ck_assert(box[0] == 3);
    double free_row[2] = {-5, 9};
    tb_prox_block(TB_LAW_BILATERAL, 2, 0, 0, 0, free_row);
    ck_assert(free_row[0] == -5 && free_row[1] == 9);
}
END_TEST

/* largest violation of the law of one contact, relative to b and to lambda's size */
static double law_error(const double w[9], const double b[3], double mu, const double lambda[3])
{
    double u[3], x[3], scale = 0;
    for (int i = 0; i < 3; i++) {
        u[i] = b[i] + w[3 * i] * lambda[0] + w[3 * i + 1] * lambda[1] + w[3 * i + 2] * lambda[2];
        scale = fmax(scale, fabs(b[i]));
    }
    /* step in units of W, so that impulses and velocities weigh alike */
    const double rho = 1 / (w[0] + w[4] + w[8]);
    for (int i = 0; i < 3; i++) x[i] = lambda[i] - rho * u[i];
    x[0] -= rho * mu * hypot(u[1], u[2]);
    tb_project_cone(x, 3, mu);
    double error = 0;
    for (int i = 0; i < 3; i++) error = fmax(error, fabs(lambda[i] - x[i]) / rho);
    return error / scale;
}

START_TEST(one_contact_is_solved_exactly)
{
    tb_random random = tb_random_stream(3, 1);
    int kinds[3] = {0};
    for (int trial = 0; trial < 50000; trial++) {
        /* W = A A', well conditioned, of any scale */
        const double scale = pow(10, tb_random_between(&random, -8, 8));
        double a[9], w[9], b[3];
        for (int i = 0; i < 9; i++) a[i] = tb_random_normal(&random) * 0.5 + (i % 4 == 0);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                w[3 * i + j] = i == j ? 0.05 * scale : 0;
                for (int k = 0; k < 3; k++) w[3 * i + j] += scale * a[3 * i + k] * a[3 * j + k];
            }
        const double mu = tb_random_between(&random, 0, 1.2);
        const double speed = pow(10, tb_random_between(&random, -9, 3));
        for (int i = 0; i < 3; i++) b[i] = speed * tb_random_normal(&random);
        const tb_local_contact local = tb_local_prepare(w, 1 / w[0]);
        double alpha = trial % 2 ? 0 : scale * tb_random_uniform(&random), lambda[3] = {0};
        const tb_contact_status status = tb_local_solve(&local, w, b, mu, 60, &alpha, lambda);
        kinds[status]++;
        const double error = law_error(w, b, mu, lambda);
        ck_assert_msg(error < 1e-9, "trial %d, status %d, error %g", trial, (int)status, error);
    }
    for (int i = 0; i < 3; i++) ck_assert(kinds[i] > 1000);
}
END_TEST

START_TEST(one_contact_with_a_skewed_matrix_is_solved)
{
    tb_random random = tb_random_stream(4, 1);
    for (int trial = 0; trial < 20000; trial++) {
        double w[9], b[3];
        for (int i = 0; i < 9; i++) w[i] = (i % 4 == 0 ? 2 : 0) + 0.3 * tb_random_normal(&random);
        for (int i = 0; i < 3; i++) b[i] = tb_random_normal(&random);
        if (w[0] < 0.5 || w[4] < 0.5 || w[8] < 0.5) continue;
        const tb_local_contact local = tb_local_prepare(w, 1 / w[0]);
        double alpha = 0, lambda[3] = {0};
        tb_local_solve(&local, w, b, 0.4, 60, &alpha, lambda);
        const double error = law_error(w, b, 0.4, lambda);
        ck_assert_msg(error < 1e-8, "trial %d, error %g", trial, error);
    }
}
END_TEST

START_TEST(one_contact_with_a_singular_matrix_stays_finite_and_in_its_cone)
{
    tb_random random = tb_random_stream(5, 1);
    for (int trial = 0; trial < 20000; trial++) {
        double v[3], w[9], b[3];
        for (int i = 0; i < 3; i++) {
            v[i] = trial % 5 == i ? 0 : tb_random_normal(&random);
            b[i] = tb_random_normal(&random);
        }
        for (int i = 0; i < 9; i++) w[i] = trial % 11 == 0 ? 0 : v[i / 3] * v[i % 3];
        const tb_local_contact local = tb_local_prepare(w, w[0] > 0 ? 1 / w[0] : 0);
        double alpha = 0, lambda[3] = {0};
        tb_local_solve(&local, w, b, 0.7, 60, &alpha, lambda);
        for (int i = 0; i < 3; i++) ck_assert(isfinite(lambda[i]));
        ck_assert(lambda[0] >= 0);
        ck_assert(hypot(lambda[1], lambda[2]) <= 0.7 * lambda[0] * (1 + 1e-12));
    }
}
END_TEST

TEST_MAIN(the_coulomb_projection_is_max_then_disk, no_friction_leaves_the_normal_alone,
          disks_of_tiny_and_huge_vectors_keep_their_direction,
          the_ellipsoid_projection_is_on_the_rim_along_the_normal,
          an_ellipsoid_without_size_projects_to_zero, cone_projections_split_a_vector_after_moreau,
          a_rolling_block_bounds_friction_by_mu_and_rolling_by_the_normal,
          one_contact_is_solved_exactly, one_contact_with_a_skewed_matrix_is_solved,
          one_contact_with_a_singular_matrix_stays_finite_and_in_its_cone)
