/* A block on an incline sticks if and only if tan(theta) <= mu, and slides with g (sin - mu cos)
 * else.
 *
 * Source: Coulomb's law; closed form. The block lies flat, wide enough not to tip. */
#include "common_truth.h"

#define MU 0.5

/* A plane through the origin, tilted by theta about y (downhill +x), and a box lying on it. */
static truth incline(double theta, double dt)
{
    truth t = truth_begin(GRAVITY, dt);
    const double n[3] = {sin(theta), 0, cos(theta)};
    truth_plane(&t, n[0], n[1], n[2], truth_surface(MU, 0));
    const double half = 0.05;
    const double p[3] = {half * n[0], 0, half * n[2]};
    const double q[4] = {cos(theta / 2), 0, sin(theta / 2), 0};
    truth_body(&t, "block", TB_SHAPE_BOX, (const double[3]){0.2, 0.2, half}, 1, p, q,
               truth_surface(MU, 0));
    truth_start(&t);
    return t;
}

static double downhill_speed(const truth *t, double theta)
{
    const tb_body_motion m = truth_motion(t, "block");
    return m.linear_velocity[0] * cos(theta) - m.linear_velocity[2] * sin(theta);
}

START_TEST(block_sticks_or_slides_as_coulomb_says)
{
    const double limit = atan(MU);
    double worst_slide = 0, worst_stick = 0;
    for (int i = 0; i < 20; i++) {
        /* ten angles below and ten above, from 2e-3 to 0.2 rad away */
        const double away = 2e-3 * pow(100, (i / 2) / 9.0);
        const double theta = limit + (i % 2 ? away : -away);
        const bool sticks = tan(theta) <= MU - 1e-3;
        truth t = incline(theta, 1e-3);
        truth_run(&t, 1000);
        const double speed = downhill_speed(&t, theta);
        if (sticks) {
            worst_stick = fmax(worst_stick, fabs(speed));
        } else {
            const double a = GRAVITY * (sin(theta) - MU * cos(theta));
            worst_slide = fmax(worst_slide, fabs(speed / a - 1));
        }
        truth_end(&t);
    }
    TRUTH_CHECK("incline block: speed of sticking blocks, m/s", worst_stick, 1e-9);
    TRUTH_CHECK("incline block: relative error of a when sliding", worst_slide, 1e-4);
}
END_TEST

START_TEST(sticking_block_does_not_creep)
{
    const double theta = atan(MU - 1e-3);
    truth t = incline(theta, 1e-3);
    truth_run(&t, 100);
    const tb_body_motion before = truth_motion(&t, "block");
    truth_run(&t, 10000);
    const tb_body_motion after = truth_motion(&t, "block");
    double way = 0;
    for (int k = 0; k < 3; k++) way += pow(after.position[k] - before.position[k], 2);
    TRUTH_CHECK("incline block: creep over 10 s, m/s", sqrt(way) / 10, 1e-9);
    truth_end(&t);
}
END_TEST

TEST_MAIN(block_sticks_or_slides_as_coulomb_says, sticking_block_does_not_creep)
