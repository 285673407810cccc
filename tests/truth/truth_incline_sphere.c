/* A sphere on an incline rolls with 5/7 g sin(theta) where friction can hold it, slides with
 * g (sin - mu cos) and spins up by 5/2 mu g cos / r where not; a sphere thrown along a floor
 * slides, then rolls.
 *
 * Source: rigid-body mechanics of a solid sphere, I = 2/5 m r^2; closed forms. The limit between
 * rolling and sliding is mu = 2/7 tan(theta). */
#include "common_truth.h"

#define RADIUS 0.1

static truth sphere_on(double theta, double mu, double dt)
{
    truth t = truth_begin(GRAVITY, dt);
    truth_plane(&t, sin(theta), 0, cos(theta), truth_surface(mu, 0));
    const double p[3] = {RADIUS * sin(theta), 0, RADIUS * cos(theta)};
    truth_body(&t, "ball", TB_SHAPE_SPHERE, (const double[3]){RADIUS}, 1, p, NULL,
               truth_surface(mu, 0));
    truth_start(&t);
    return t;
}

START_TEST(sphere_rolls_down_where_friction_holds)
{
    const double theta = 0.4;
    truth t = sphere_on(theta, 1.1 * 2.0 / 7 * tan(theta), 1e-3);
    truth_run(&t, 1000);
    const tb_body_motion m = truth_motion(&t, "ball");
    const double v = m.linear_velocity[0] * cos(theta) - m.linear_velocity[2] * sin(theta);
    TRUTH_CHECK("incline sphere: rolling, relative error of a",
                fabs(v / (5.0 / 7 * GRAVITY * sin(theta)) - 1), 1e-4);
    TRUTH_CHECK("incline sphere: rolling, |v - r w| / v",
                fabs(v - RADIUS * m.angular_velocity[1]) / v, 1e-9);
    truth_end(&t);
}
END_TEST

START_TEST(sphere_slides_where_friction_does_not_hold)
{
    const double theta = 0.4, mu = 0.5 * 2.0 / 7 * tan(theta);
    truth t = sphere_on(theta, mu, 1e-3);
    truth_run(&t, 1000);
    const tb_body_motion m = truth_motion(&t, "ball");
    const double v = m.linear_velocity[0] * cos(theta) - m.linear_velocity[2] * sin(theta);
    const double a = GRAVITY * (sin(theta) - mu * cos(theta));
    const double spin = 2.5 * mu * GRAVITY * cos(theta) / RADIUS;
    TRUTH_CHECK("incline sphere: sliding, relative error of a", fabs(v / a - 1), 1e-4);
    TRUTH_CHECK("incline sphere: sliding, relative error of spin",
                fabs(m.angular_velocity[1] / spin - 1), 1e-4);
    truth_end(&t);
}
END_TEST

START_TEST(sliding_sphere_comes_to_roll)
{
    const double mu = 0.2, v0 = 3, dt = 1e-4;
    truth t = sphere_on(0, mu, dt);
    truth_set_velocity(&t, "ball", (const double[3]){v0}, (const double[3]){0});
    const double time = 2 * v0 / (7 * mu * GRAVITY), way = 12 * v0 * v0 / (49 * mu * GRAVITY);
    double rolls_at = 0, x = 0;
    for (int i = 0; i < (int)(2 * time / dt) && rolls_at == 0; i++) {
        truth_run(&t, 1);
        const tb_body_motion m = truth_motion(&t, "ball");
        if (m.linear_velocity[0] - RADIUS * m.angular_velocity[1] > 1e-6 * v0) continue;
        rolls_at = tb_state_time(t.state);
        x = m.position[0];
    }
    TRUTH_CHECK("slip to roll: relative error of t", fabs(rolls_at / time - 1), 1e-3);
    TRUTH_CHECK("slip to roll: relative error of x", fabs(x / way - 1), 1e-3);
    truth_run(&t, 1000);
    const double v = truth_motion(&t, "ball").linear_velocity[0];
    TRUTH_CHECK("slip to roll: relative error of v", fabs(v / (5.0 / 7 * v0) - 1), 1e-3);
    truth_end(&t);
}
END_TEST

TEST_MAIN(sphere_rolls_down_where_friction_holds, sphere_slides_where_friction_does_not_hold,
          sliding_sphere_comes_to_roll)
