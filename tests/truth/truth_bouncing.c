/* Spheres that bounce: energy kept for e = 1, rest in finite time for e < 1, Newton's cradle.
 *
 * Sources: the bouncing and 6x6x6 scenes of the SimBenchmark suite (Hwangbo, Kang, Hutter), with
 * its error measures: the mean over time of the squared error of the total energy (J^2), and of the
 * summed squared penetration (m^2); Newton's impact law in closed form; Glocker, Set-Valued Force
 * Laws, ch. 8, for the simultaneous impact of three equal balls.
 *
 * e = 1 runs use Moreau's scheme. Its midpoint rule keeps the energy of free flight exactly, and at
 * a closed contact (u+ + u-)' M (u+ - u-) = xi' lambda = 0. */
#include "base/base.h"
#include "common_truth.h"

static const double BALL[3] = {0.1, 0, 0};

START_TEST(elastic_balls_keep_their_energy)
{
    truth t = truth_begin(GRAVITY, 1e-3);
    t.options.scheme = TB_SCHEME_MOREAU;
    const tb_surface s = truth_surface(0, 1);
    truth_plane(&t, 0, 0, 1, s);
    char name[16];
    for (int i = 0; i < 49; i++) {
        snprintf(name, sizeof name, "b%d", i);
        const double p[3] = {i % 7, i / 7, 5};
        truth_body(&t, name, TB_SHAPE_SPHERE, BALL, 10, p, NULL, s);
    }
    truth_start(&t);
    const double energy = tb_state_energy(t.state);
    double sum = 0;
    for (int i = 0; i < 20000; i++) {
        truth_run(&t, 1);
        sum += pow(tb_state_energy(t.state) - energy, 2);
    }
    TRUTH_CHECK("bouncing, 49 balls, 20 s: mean squared energy error, J^2", sum / 20000, 0.0186);
    truth_end(&t);
}
END_TEST

START_TEST(inelastic_ball_comes_to_rest_in_time)
{
    double worst = 0;
    const double es[3] = {0.3, 0.5, 0.8};
    for (int k = 0; k < 3; k++) {
        const double e = es[k], h = 1;
        truth t = truth_begin(GRAVITY, 1e-4);
        t.options.scheme = TB_SCHEME_MOREAU;
        const tb_surface s = truth_surface(0, e);
        truth_plane(&t, 0, 0, 1, s);
        truth_body(&t, "ball", TB_SHAPE_SPHERE, BALL, 1, (const double[3]){0, 0, h + BALL[0]}, NULL,
                   s);
        truth_start(&t);
        const double rest = sqrt(2 * h / GRAVITY) * (1 + e) / (1 - e);
        double last_motion = 0;
        for (int i = 0; i < (int)(1.5 * rest / 1e-4); i++) {
            truth_run(&t, 1);
            const tb_body_motion m = truth_motion(&t, "ball");
            if (fabs(m.linear_velocity[2]) > 2 * GRAVITY * 1e-4 || m.position[2] > BALL[0] + 1e-5)
                last_motion = tb_state_time(t.state);
        }
        worst = fmax(worst, fabs(last_motion / rest - 1));
        truth_end(&t);
    }
    TRUTH_CHECK("bouncing, e < 1: relative error of the time of rest", worst, 0.01);
}
END_TEST

/* Nützi's eps_T (4.28): a ball that meets a plane with the tangential velocity g of its contact point leaves
 * with -eps_T g where friction holds, so its velocity changes by -2/7 (1 + eps_T) g, and where friction does
 * not hold by mu (1 + eps_N) v_n. With both restitutions 1 the energy stays. */
START_TEST(a_ball_rebounds_sideways)
{
    double holds = 0, slides = 0, energy = 0;
    for (int k = 0; k < 2 * 5; k++) {
        const double e_t = 0.25 * (k / 2), fall = -2, along = 0.7, spin = 9;
        /* the contact's lever is the radius where the gap is 0 at the scheme's collision detection */
        const double z = BALL[0] - (k % 2 ? 0 : 0.5e-3 * fall);
        truth t = truth_begin(0, 1e-3);
        t.options.scheme = k % 2 ? TB_SCHEME_STEWART_TRINKLE : TB_SCHEME_MOREAU;
        t.options.solve.tolerance = 1e-13;
        tb_surface s = truth_surface(10, 1);
        s.tangential_restitution = e_t;
        truth_plane(&t, 0, 0, 1, s);
        truth_body(&t, "ball", TB_SHAPE_SPHERE, BALL, 2, (const double[3]){0, 0, z}, NULL, s);
        truth_start(&t);
        truth_set_velocity(&t, "ball", (const double[3]){along, 0, fall},
                           (const double[3]){0, -spin, 0});
        const double before = tb_state_energy(t.state);
        /* the contact point's velocity: v_x + (omega x r)_x with r = (0, 0, -R) */
        const double g = along + spin * BALL[0];
        truth_run(&t, 2);
        const tb_body_motion m = truth_motion(&t, "ball");
        holds = fmax(holds, fabs(m.linear_velocity[0] - (along - 2.0 / 7 * (1 + e_t) * g)));
        holds = fmax(holds, fabs(m.linear_velocity[2] + fall));
        holds = fmax(holds, fabs(m.linear_velocity[0] - m.angular_velocity[1] * BALL[0] + e_t * g));
        if (e_t == 1) energy = fmax(energy, fabs(tb_state_energy(t.state) / before - 1));
        truth_end(&t);

        /* little friction: its bound acts, whatever eps_T is */
        t = truth_begin(0, 1e-3);
        t.options.scheme = k % 2 ? TB_SCHEME_STEWART_TRINKLE : TB_SCHEME_MOREAU;
        t.options.solve.tolerance = 1e-13;
        s = truth_surface(0.05, 1);
        s.tangential_restitution = e_t;
        truth_plane(&t, 0, 0, 1, s);
        truth_body(&t, "ball", TB_SHAPE_SPHERE, BALL, 2, (const double[3]){0, 0, z}, NULL, s);
        truth_start(&t);
        truth_set_velocity(&t, "ball", (const double[3]){along, 0, fall},
                           (const double[3]){0, -spin, 0});
        truth_run(&t, 2);
        const double v = truth_motion(&t, "ball").linear_velocity[0];
        slides = fmax(slides, fabs(v - (along + 0.05 * 2 * fall)));
        truth_end(&t);
    }
    TRUTH_CHECK("sideways rebound, friction holds: velocity, m/s", holds, 1e-10);
    TRUTH_CHECK("sideways rebound, friction slides: velocity, m/s", slides, 1e-10);
    TRUTH_CHECK("sideways rebound, both restitutions 1: energy", energy, 1e-10);
}
END_TEST

START_TEST(three_equal_balls_share_an_impact)
{
    truth t = truth_begin(0, 1e-3);
    t.options.scheme = TB_SCHEME_MOREAU;
    t.options.solve.tolerance = 1e-15;
    const tb_surface s = truth_surface(0, 1);
    const char *names[3] = {"left", "middle", "right"};
    for (int i = 0; i < 3; i++)
        truth_body(&t, names[i], TB_SHAPE_SPHERE, BALL, 1, (const double[3]){0.2 * i, 0, 0}, NULL,
                   s);
    truth_start(&t);
    truth_set_velocity(&t, "left", (const double[3]){1}, (const double[3]){0});
    const double energy = tb_state_energy(t.state);
    truth_run(&t, 3);
    const double wanted[3] = {-1.0 / 3, 2.0 / 3, 2.0 / 3};
    double worst = 0;
    for (int i = 0; i < 3; i++)
        worst = fmax(worst, fabs(truth_motion(&t, names[i]).linear_velocity[0] - wanted[i]));
    TRUTH_CHECK("cradle of three: velocity error, m/s", worst, 1e-12);
    TRUTH_CHECK("cradle of three: relative energy error",
                fabs(tb_state_energy(t.state) / energy - 1), 1e-12);
    truth_end(&t);
}
END_TEST

/* 6x6x6 balls, lowest layer's centres at `height`, each moved by up to 1 mm along x and y. */
static truth cube_of_balls(double height, double mu, double e)
{
    truth t = truth_begin(GRAVITY, 1e-3);
    const tb_surface s = truth_surface(mu, e);
    truth_plane(&t, 0, 0, 1, s);
    tb_random random = tb_random_stream(6, 6);
    char name[16];
    for (int i = 0; i < 216; i++) {
        snprintf(name, sizeof name, "b%d", i);
        const double p[3] = {0.21 * (i % 6) + tb_random_between(&random, -1e-3, 1e-3),
                             0.21 * (i / 6 % 6) + tb_random_between(&random, -1e-3, 1e-3),
                             0.21 * (i / 36) + height};
        truth_body(&t, name, TB_SHAPE_SPHERE, BALL, 10, p, NULL, s);
    }
    return t;
}

START_TEST(dropped_cube_of_balls_hardly_penetrates)
{
    truth t = cube_of_balls(0.2, 0.8, 0);
    t.options.solve.tolerance = 1e-6;
    t.options.solve.maximum_iterations = 200;
    truth_start(&t);
    double sum = 0;
    const int steps = 5000;
    for (int i = 0; i < steps; i++) {
        truth_run(&t, 1);
        for (int32_t k = 0; k < tb_state_number_of_contacts(t.state); k++) {
            tb_contact_info c;
            TEST_OK(tb_state_contact(t.state, k, &c), NULL);
            sum += pow(fmin(c.gap, 0), 2);
        }
    }
    TRUTH_CHECK("216 balls, e 0: mean summed squared penetration, m^2", sum / steps, 1.3e-4);
    truth_end(&t);
}
END_TEST

START_TEST(elastic_cube_of_balls_keeps_its_energy)
{
    truth t = cube_of_balls(1.101, 0, 1);
    t.options.scheme = TB_SCHEME_MOREAU;
    t.options.solve.tolerance = 1e-9;
    truth_start(&t);
    const double energy = tb_state_energy(t.state);
    double sum = 0;
    const int steps = 2000;
    for (int i = 0; i < steps; i++) {
        truth_run(&t, 1);
        sum += pow(tb_state_energy(t.state) - energy, 2);
    }
    TRUTH_CHECK("216 balls, e 1: mean squared energy error, J^2", sum / steps, 8.3);
    truth_end(&t);
}
END_TEST

TEST_MAIN(elastic_balls_keep_their_energy, inelastic_ball_comes_to_rest_in_time,
          three_equal_balls_share_an_impact, a_ball_rebounds_sideways,
          dropped_cube_of_balls_hardly_penetrates, elastic_cube_of_balls_keeps_its_energy)
