/* A pushed box below 25 spheres: the box slides on the ground, the spheres roll on the box.
 *
 * Source: the rolling test of the SimBenchmark suite (Hwangbo, Kang, Hutter), force oblique to the
 * axes so that a friction pyramid fails. A box of M = 10 kg slides on the ground (mu 0.4) under F =
 * 150 N and carries n = 25 spheres of m = 1 kg that roll on it (mu 0.8). The ground takes mu (M + n
 * m) g from F. A sphere is moved by the friction f at its lowest point alone: m a = f, and with I =
 * 2/5 m r^2 its lowest point runs ahead with a + f r^2 / I = 7/2 a, which is the box's acceleration
 * A because nothing slips there. Hence
 *
 *     A = (F - mu (M + n m) g) / (M + 2/7 n m) = 0.7385 m/s^2,    a = 2/7 A = 0.2110 m/s^2.
 *
 * Measure: the mean over all steps of the squared velocity error of box and sphere; RaiSim reached
 * 5.7e-9.
 *
 * Moreau's scheme counts a contact from the step in which it is closed at the midpoint. There the
 * bodies start 1 um deep, as the suite lets them (5 um), so that rounding does not decide about the
 * first step. */
#include "common_truth.h"

#define BOX_MASS  10.0  /* kg */
#define BALL_MASS 1.0   /* kg */
#define RADIUS    0.5   /* m */
#define PUSH      150.0 /* N */
#define DT        1e-3  /* s */
#define STEPS     4000

static const double DIRECTION[2] = {0.5, 0.86602540378443865};

static truth box_and_spheres(tb_scheme scheme)
{
    const double deep = scheme == TB_SCHEME_MOREAU ? 1e-6 : 0;
    truth t = truth_begin(GRAVITY, DT);
    t.options.scheme = scheme;
    truth_plane(&t, 0, 0, 1, truth_surface(0.4, 0));
    truth_body(&t, "box", TB_SHAPE_BOX, (const double[3]){10, 10, 0.5}, BOX_MASS,
               (const double[3]){0, 0, 0.5 - deep}, NULL, truth_surface(0.4, 0));
    for (int i = 0; i < 25; i++) {
        char name[16];
        snprintf(name, sizeof name, "ball%d", i);
        const double p[3] = {2.0 * (i % 5 - 2), 2.0 * (i / 5 - 2), 1 + RADIUS - 2 * deep};
        truth_body(&t, name, TB_SHAPE_SPHERE, (const double[3]){RADIUS}, BALL_MASS, p, NULL,
                   truth_surface(0.8, 0));
    }
    truth_start(&t);
    tb_error error;
    const double wrench[6] = {PUSH * DIRECTION[0], PUSH * DIRECTION[1]};
    const int32_t box = tb_model_find(t.model, TB_HANDLE_BODY, "box");
    TEST_OK(tb_state_set_body_wrench(t.state, box, wrench, &error), &error);
    return t;
}

static double squared_error(const truth *t, const char *name, double speed)
{
    const tb_body_motion m = truth_motion(t, name);
    return pow(m.linear_velocity[0] - speed * DIRECTION[0], 2) +
           pow(m.linear_velocity[1] - speed * DIRECTION[1], 2) + pow(m.linear_velocity[2], 2);
}

static void run(tb_scheme scheme, const char *const names[3])
{
    const double n = 25;
    const double a_box =
        (PUSH - 0.4 * (BOX_MASS + n * BALL_MASS) * GRAVITY) / (BOX_MASS + 2.0 / 7 * n * BALL_MASS);
    const double a_ball = 2.0 / 7 * a_box;
    TEST_NEAR(a_box, 0.7385, 5e-5); /* the numbers as published */
    TEST_NEAR(a_ball, 0.2110, 5e-5);

    truth t = box_and_spheres(scheme);
    double sum = 0;
    for (int i = 1; i <= STEPS; i++) {
        truth_run(&t, 1);
        /* every sphere moves alike; each step looks at another one */
        char name[16];
        snprintf(name, sizeof name, "ball%d", i % 25);
        sum += squared_error(&t, "box", a_box * i * DT);
        sum += squared_error(&t, name, a_ball * i * DT);
    }
    const tb_body_motion box = truth_motion(&t, "box"), ball = truth_motion(&t, "ball7");
    const double time = STEPS * DT;
    TRUTH_CHECK(names[0], sum / STEPS, 5e-9);
    TRUTH_CHECK(names[1],
                fabs(hypot(box.linear_velocity[0], box.linear_velocity[1]) / time - a_box), 5e-5);
    TRUTH_CHECK(names[2],
                fabs(hypot(ball.linear_velocity[0], ball.linear_velocity[1]) / time - a_ball),
                5e-5);
    truth_end(&t);
}

START_TEST(box_slides_and_spheres_roll_stewart_trinkle)
{
    run(TB_SCHEME_STEWART_TRINKLE,
        (const char *const[3]){"rolling: mean squared velocity error, (m/s)^2",
                               "rolling: error of the box's acceleration, m/s^2",
                               "rolling: error of the spheres' acceleration, m/s^2"});
}
END_TEST

START_TEST(box_slides_and_spheres_roll_moreau)
{
    run(TB_SCHEME_MOREAU,
        (const char *const[3]){"rolling, Moreau: mean squared velocity error, (m/s)^2",
                               "rolling, Moreau: error of the box's acceleration, m/s^2",
                               "rolling, Moreau: error of the spheres' acceleration, m/s^2"});
}
END_TEST

TEST_MAIN(box_slides_and_spheres_roll_stewart_trinkle, box_slides_and_spheres_roll_moreau)
