/* Grasps with known outcomes: friction against weight and acceleration, drops,
 * random friction, stops; and that results do not depend on how the work is done.
 *
 * Sources: Coulomb's law and Newton's, stated at each case. */
#include "common_grasp.h"

static const double PI = 3.14159265358979323846;
/* half extents (m), nearly as wide as the open hand, and how high above its middle it is grasped:
 * jaws that scrape over the table could not give way to it */
static const double BLOCK[3] = {0.02, 0.045, 0.02}, BALL[3] = {0.045, 0, 0};
static const double ABOVE = 0.005;

static tb_grasp_pose above(void)
{
    tb_grasp_pose pose = tb_grasp_pose_defaults();
    pose.position[2] = ABOVE;
    return pose;
}

/* largest acceleration of a path of length s in time t: s t^-2 10 / sqrt 3 */
static double peak(double length, double seconds)
{
    return length / (seconds * seconds) * 10 / sqrt(3);
}

static void keep_trial(void *context, const tb_grasp_result *result)
{
    *(tb_grasp_trial *)context = result->trials[0];
}

/* The first copy of one grasp of a box (or ball) of `mass`, held by two pads of `force` each. */
static tb_grasp_trial one(tb_shape_type type, double mass, double mu, double force,
                          const tb_grasp_request *like)
{
    tb_grasp_trial trial;
    tb_scene *hand = grasp_jaw(force, mu),
             *object = grasp_object(type, type == TB_SHAPE_BOX ? BLOCK : BALL, mass, mu);
    tb_grasp_pose pose = above();
    tb_grasp_request request = like != NULL ? *like : grasp_request(hand, object, &pose, 1);
    request.hand.scene = hand;
    request.object.scene = object;
    request.poses = &pose;
    request.number_of_poses = 1;
    grasp_play(&request, 1000000, keep_trial, &trial);
    tb_scene_destroy(hand);
    tb_scene_destroy(object);
    return trial;
}

/* ---- held or not ---- */

/* Two pads that push with F each carry at most 2 mu F: held iff that is more than m (g + a), a the
 * largest acceleration of the lift. A percent on either side decides. */
START_TEST(held_if_and_only_if_friction_carries_weight_and_lift)
{
    tb_grasp_request like = grasp_request(NULL, NULL, NULL, 0);
    like.protocol.hold_seconds = 0.2;
    like.protocol.slip_limit = 1e-5;
    like.step.solve.tolerance = 1e-9;
    static const double MU[3] = {0.2, 0.5, 1};
    static const double MASS[3] = {0.05, 0.2, 1};
    int wrong = 0, worlds = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            for (int over = 0; over < 2; over++)
                for (int type = 0; type < 2; type++) {
                    const double limit =
                        MASS[k] * (GRAVITY + peak(like.protocol.lift, like.protocol.lift_seconds)) /
                        (2 * MU[i]);
                    const tb_grasp_trial t =
                        one(type == 0 ? TB_SHAPE_BOX : TB_SHAPE_SPHERE, MASS[k], MU[i],
                            limit * (over ? 1.01 : 0.99), &like);
                    if ((t.verdict == TB_GRASP_HELD) != (over == 1)) wrong++;
                    worlds++;
                }
    TRUTH_CHECK("36 grasps a percent from 2 mu F = m (g + a): wrong", wrong, 0);
    ck_assert_int_eq(worlds, 36);
}
END_TEST

/* The same while it is shaken up and down: a from the path that path.c describes. */
START_TEST(held_if_and_only_if_friction_carries_the_shake)
{
    tb_grasp_request like = grasp_request(NULL, NULL, NULL, 0);
    tb_grasp_shake shake = tb_grasp_shake_defaults();
    shake.amplitude = 0.02;
    shake.frequency = 4;
    like.protocol.shakes = &shake;
    like.protocol.number_of_shakes = 1;
    like.protocol.lift_seconds = 1;
    like.protocol.hold_seconds = 0.2;
    like.protocol.slip_limit = 1e-5;
    like.step.solve.tolerance = 1e-9;
    /* largest downward inertia, by differences over a step, as the path is followed */
    double a = 0;
    const double dt = 0.002;
    const int steps = (int)lround(shake.seconds / dt);
    for (int s = 0; s <= steps; s++) {
        double z[3];
        for (int k = -1; k <= 1; k++) {
            const double t = fmin(fmax((s + k) * dt, 0), shake.seconds), u = t / shake.seconds;
            z[k + 1] = shake.amplitude * pow(sin(PI * u), 2) * sin(2 * PI * shake.frequency * t);
        }
        a = fmax(a, fabs(z[2] - 2 * z[1] + z[0]) / (dt * dt));
    }
    const double m = 0.2, mu = 0.5, limit = m * (GRAVITY + a) / (2 * mu);
    ck_assert(a > peak(0.1, 1)); /* the shake decides, not the lift */
    const tb_grasp_trial strong = one(TB_SHAPE_BOX, m, mu, 1.02 * limit, &like);
    const tb_grasp_trial weak = one(TB_SHAPE_BOX, m, mu, 0.98 * limit, &like);
    ck_assert_int_eq(strong.verdict, TB_GRASP_HELD);
    TRUTH_CHECK("shaken grasp above the limit: slip (m)", strong.slip, 1e-6);
    ck_assert_int_eq(weak.verdict, TB_GRASP_SLIPPED);
    TRUTH_CHECK("shaken grasp below the limit: slip at least (1/m)", 1 / weak.slip, 1e5);
}
END_TEST

/* ---- drops ---- */

/* A ball without friction stays on the table: the hand lifts off, and it has been dropped when the
 * lift began or the pads last pressed it, which is within the lift. */
START_TEST(what_was_never_held_is_dropped_when_the_lift_begins)
{
    tb_grasp_request like = grasp_request(NULL, NULL, NULL, 0);
    tb_grasp_pose pose = above();
    tb_scene *hand = grasp_jaw(5, 0.5), *object = grasp_object(TB_SHAPE_BOX, BLOCK, 0.1, 0.5);
    tb_grasp_trial trial;
    /* the hand closes 20 cm beside the object */
    pose.position[0] = 0.2;
    like.hand.scene = hand;
    like.object.scene = object;
    like.poses = &pose;
    like.number_of_poses = 1;
    grasp_play(&like, 0, keep_trial, &trial);
    ck_assert_int_eq(trial.verdict, TB_GRASP_DROPPED);
    TRUTH_CHECK("object never touched: drop time is the lift's begin (s)",
                fabs(trial.drop_time - like.protocol.close_seconds), 1e-12);
    tb_scene_destroy(hand);
    tb_scene_destroy(object);
}
END_TEST

/* Without a table and without friction a block falls freely from the moment the lift begins: it has
 * left the pads when its upper face passes their lower edge. */
START_TEST(a_frictionless_block_falls_out_on_time)
{
    tb_grasp_request like = grasp_request(NULL, NULL, NULL, 0);
    like.object.no_table = true;
    like.step.dt = 0.0005;
    const tb_grasp_trial t = one(TB_SHAPE_BOX, 0.1, 0, 5, &like);
    ck_assert_int_eq(t.verdict, TB_GRASP_DROPPED);
    /* fall g t^2 / 2 plus rise of the hand = from the face to the edge */
    double lower = 0, upper = 0.4;
    for (int i = 0; i < 60; i++) {
        const double s = (lower + upper) / 2, u = s / like.protocol.lift_seconds;
        const double rise = like.protocol.lift * u * u * u * (10 + u * (6 * u - 15));
        if (GRAVITY * s * s / 2 + rise < BLOCK[2] + 0.02 - ABOVE)
            lower = s;
        else
            upper = s;
    }
    TRUTH_CHECK("frictionless block: time of the drop (s)",
                fabs(t.drop_time - like.protocol.close_seconds - lower), 1e-3);
}
END_TEST

/* ---- perturbations ---- */

/* rate: success, its interval; the friction that is just enough; trials that disagree with it */
static void keep_rate(void *context, const tb_grasp_result *result)
{
    double *rate = context;
    for (int32_t i = 0; i < result->number_of_trials; i++) {
        const tb_grasp_trial *t = &result->trials[i];
        const double over = t->friction / rate[3] - 1;
        if (fabs(over) > 0.02 && (over > 0) != (t->verdict == TB_GRASP_HELD)) rate[4]++;
    }
    rate[0] = result->success;
    rate[1] = result->lower;
    rate[2] = result->upper;
    int32_t held = 0;
    for (int32_t i = 0; i < result->number_of_trials; i++)
        held += result->trials[i].verdict == TB_GRASP_HELD;
    TEST_NEAR(rate[0], (double)held / result->number_of_trials, 1e-15);
}

/* Friction mu0 (1 + sigma z) with z normal: held with the probability that mu is above the limit.
 * The interval of 150 copies at 99.9 % holds it. */
START_TEST(random_friction_succeeds_as_often_as_the_normal_distribution_says)
{
    const double mass = 0.2, mu0 = 0.5, sigma = 0.2;
    tb_scene *hand = NULL, *object = grasp_object(TB_SHAPE_SPHERE, BALL, mass, mu0);
    tb_grasp_pose pose = above();
    for (int i = 0; i < 3; i++) {
        /* the force at which mu0 (1 + sigma z) is just enough, for z = -1, 0, 0.7 */
        static const double Z[3] = {-1, 0, 0.7};
        tb_grasp_request request = grasp_request(NULL, object, &pose, 1);
        const double a = peak(request.protocol.lift, request.protocol.lift_seconds);
        const double force = mass * (GRAVITY + a) / (2 * mu0 * (1 + sigma * Z[i]));
        hand = grasp_jaw(force, mu0);
        request.hand.scene = hand;
        request.perturbation.count = 150;
        request.perturbation.seed = 42 + (uint64_t)i;
        request.perturbation.friction = sigma;
        request.protocol.hold_seconds = 0.02;
        request.protocol.close_seconds = 0.2;
        request.protocol.slip_limit = 1e-5;
        request.confidence = 0.999;
        double rate[5] = {0};
        rate[3] = mu0 * (1 + sigma * Z[i]);
        grasp_play(&request, 5000000, keep_rate, rate);
        const double share = 0.5 * erfc(Z[i] / sqrt(2));
        char name[80];
        snprintf(name, sizeof name, "random friction: %.3f held of %.3f: outside the interval",
                 rate[0], share);
        TRUTH_CHECK(name, fmax(rate[1] - share, share - rate[2]), 0);
        TRUTH_CHECK("random friction: copies against their own friction", rate[4], 0);
        tb_scene_destroy(hand);
    }
    tb_scene_destroy(object);
}
END_TEST

/* The interval itself: Wilson 1927; the numbers are those of Brown, Cai, DasGupta, Interval
 * estimation for a binomial proportion, Statistical Science 16, 2001, in closed form. */
START_TEST(wilson_intervals_are_wilsons)
{
    double lower, upper;
    tb_wilson_interval(0, 10, 0.95, &lower, &upper);
    const double z2 = 3.8414588206941236; /* the chi-square quantile of one degree */
    TRUTH_CHECK("Wilson interval of 0 of 10: upper end", fabs(upper - z2 / (10 + z2)), 1e-12);
    ck_assert(lower == 0);
    tb_wilson_interval(5, 10, 0.95, &lower, &upper);
    const double half = sqrt(z2 / (4 * (10 + z2)));
    TRUTH_CHECK("Wilson interval of 5 of 10", fabs(lower - (0.5 - half)), 1e-12);
    TRUTH_CHECK("Wilson interval of 5 of 10: symmetry", fabs(upper + lower - 1), 1e-12);
    tb_wilson_interval(10, 10, 0.95, &lower, &upper);
    ck_assert(upper == 1);
    TRUTH_CHECK("Wilson interval of 10 of 10: lower end", fabs(lower - 10 / (10 + z2)), 1e-12);
}
END_TEST

/* ---- actions of the hand ---- */

static void keep_forces(void *context, const tb_grasp_result *result)
{
    double *out = context;
    ck_assert_int_eq(result->trials[0].verdict, TB_GRASP_HELD);
    ck_assert_int_eq(result->number_of_fingers, 2);
    out[0] = result->fingers[0].force;
    out[1] = result->fingers[1].force;
    for (int k = 0; k < 6; k++) out[2 + k] = 0;
    for (int32_t i = 0; i < result->number_of_contacts; i++) {
        const tb_grasp_contact *c = &result->contacts[i];
        for (int k = 0; k < 6; k++) out[2 + k] += c->wrench[k];
        /* contacts of the block lie on its faces, normals into it */
        TEST_NEAR(fabs(c->position[1]), BLOCK[1], 1e-5);
        TEST_NEAR(c->normal[1] * (c->position[1] > 0 ? -1 : 1), 1, 1e-9);
    }
}

/* At the end of the hold the pads push with the motor's force, a pose's own limit overrides the
 * protocol's, and all contacts together carry the weight and no torque. */
START_TEST(forces_at_the_end_are_those_of_equilibrium)
{
    const double mass = 0.2;
    tb_scene *hand = grasp_jaw(20, 0.8), *object = grasp_object(TB_SHAPE_BOX, BLOCK, mass, 0.8);
    for (int i = 0; i < 3; i++) {
        static const double FORCE[3] = {20, 12, 7};
        tb_grasp_pose pose = above();
        tb_grasp_request request = grasp_request(hand, object, &pose, 1);
        request.step.solve.tolerance = 1e-10;
        request.protocol.force = i > 0 ? 12 : 0;
        pose.force = i > 1 ? 7 : 0;
        double out[8];
        grasp_play(&request, 0, keep_forces, out);
        TRUTH_CHECK("pads' forces (N)", fmax(fabs(out[0] - FORCE[i]), fabs(out[1] - FORCE[i])),
                    1e-3);
        double off = fabs(out[4] - mass * GRAVITY);
        for (int k = 0; k < 6; k++)
            if (k != 2) off = fmax(off, fabs(out[2 + k]));
        TRUTH_CHECK("contacts against the weight (N, N m)", off, 1e-4);
    }
    tb_scene_destroy(hand);
    tb_scene_destroy(object);
}
END_TEST

/* Fingers with stops at a width: a block that is wider is squeezed, a narrower one is not. */
START_TEST(closing_to_a_width_stops_there)
{
    tb_grasp_request like = grasp_request(NULL, NULL, NULL, 0);
    like.protocol.width = 0.0898; /* of a block of 0.09 */
    ck_assert_int_eq(one(TB_SHAPE_BOX, 0.1, 0.5, 10, &like).verdict, TB_GRASP_HELD);
    like.protocol.width = 0.0902;
    const tb_grasp_trial wide = one(TB_SHAPE_BOX, 0.1, 0.5, 10, &like);
    ck_assert_int_eq(wide.verdict, TB_GRASP_DROPPED);
    like.protocol.width = 0.2;
    tb_scene *hand = grasp_jaw(10, 0.5), *object = grasp_object(TB_SHAPE_BOX, BLOCK, 0.1, 0.5);
    tb_grasp_pose pose = above();
    tb_grasp_job *job;
    tb_error error = {0};
    like.hand.scene = hand;
    like.object.scene = object;
    like.poses = &pose;
    like.number_of_poses = 1;
    TEST_STATUS(tb_grasp_job_create(&like, &job, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "protocol.width");
    tb_scene_destroy(hand);
    tb_scene_destroy(object);
}
END_TEST

/* A hand that moves along its approach ends at its target; one that begins inside an object
 * collides. */
START_TEST(hands_inside_of_things_collide)
{
    tb_grasp_request like = grasp_request(NULL, NULL, NULL, 0);
    like.protocol.approach[2] = -1;
    like.protocol.approach_distance = 0.1;
    ck_assert_int_eq(one(TB_SHAPE_BOX, 0.1, 0.5, 10, &like).verdict, TB_GRASP_HELD);

    tb_scene *hand = grasp_jaw(10, 0.5), *object = grasp_object(TB_SHAPE_BOX, BLOCK, 0.1, 0.5);
    tb_grasp_pose poses[2] = {tb_grasp_pose_defaults(), tb_grasp_pose_defaults()};
    poses[0].position[2] = ABOVE;
    poses[0].position[1] = 0.015; /* a pad inside of the block */
    poses[1].position[2] = -0.01; /* pads below the table */
    for (int i = 0; i < 2; i++) {
        tb_grasp_trial trial;
        tb_grasp_request request = grasp_request(hand, object, &poses[i], 1);
        grasp_play(&request, 0, keep_trial, &trial);
        ck_assert_int_eq(trial.verdict, TB_GRASP_COLLIDED);
    }
    tb_scene_destroy(hand);
    tb_scene_destroy(object);
}
END_TEST

/* ---- determinism ---- */

enum { GRASPS = 6, COPIES = 3 };

/* Everything of the results that is numbers, by pose. */
typedef struct record {
    tb_grasp_trial trials[GRASPS][COPIES];
    double qualities[GRASPS][6];
    tb_certificate certificates[GRASPS];
    double wrench[GRASPS][6];
} record;

typedef struct keeper {
    record *r;
    const int *order; /* which grasp each pose is */
} keeper;

static void keep_all(void *context, const tb_grasp_result *result)
{
    keeper *k = context;
    const int g = k->order[result->index];
    ck_assert_int_eq(result->number_of_trials, COPIES);
    memcpy(k->r->trials[g], result->trials, sizeof k->r->trials[g]);
    /* names are the job's own */
    for (int32_t i = 0; i < COPIES; i++)
        k->r->trials[g][i].reason.hand_body = k->r->trials[g][i].reason.other_body = NULL;
    const double q[6] = {result->epsilon, result->volume, result->margin,
                         result->slip,    result->lower,  result->success};
    memcpy(k->r->qualities[g], q, sizeof q);
    k->r->certificates[g] = result->certificate;
    for (int32_t i = 0; i < result->number_of_contacts; i++)
        for (int c = 0; c < 6; c++) k->r->wrench[g][c] += result->contacts[i].wrench[c];
}

static void play_in_order(const int *order, int count, int threads, int64_t budget, record *r)
{
    tb_scene *hand = grasp_jaw(6, 0.5), *object = grasp_object(TB_SHAPE_BOX, BLOCK, 0.2, 0.5);
    tb_grasp_pose poses[GRASPS];
    tb_grasp_shake shake = tb_grasp_shake_defaults();
    shake.angle = 0.2;
    memset(r, 0, sizeof *r);
    for (int i = 0; i < count; i++) {
        poses[i] = tb_grasp_pose_defaults();
        poses[i].position[0] = 0.004 * order[i] - 0.01;
        poses[i].position[2] = ABOVE + 0.001 * order[i];
        poses[i].orientation[3] = 0.02 * order[i];
        if (order[i] == 4) poses[i].force = 3;
    }
    tb_grasp_request request = grasp_request(hand, object, poses, count);
    request.protocol.shakes = &shake;
    request.protocol.number_of_shakes = 1;
    request.protocol.hold_seconds = 0.1;
    request.perturbation.count = COPIES;
    request.perturbation.seed = 9;
    request.perturbation.position = 0.002;
    request.perturbation.angle = 0.05;
    request.perturbation.friction = 0.2;
    request.perturbation.mass = 0.2;
    request.step.threads = threads;
    keeper k = {r, order};
    grasp_play(&request, budget, keep_all, &k);
    tb_scene_destroy(hand);
    tb_scene_destroy(object);
}

START_TEST(results_are_the_same_bytes_however_the_work_is_done)
{
    static const int FORWARDS[GRASPS] = {0, 1, 2, 3, 4, 5}, MIXED[GRASPS] = {3, 5, 0, 4, 2, 1};
    static record first, other;
    play_in_order(FORWARDS, GRASPS, 1, INT64_MAX, &first);
    play_in_order(FORWARDS, GRASPS, 2, INT64_MAX, &other);
    ck_assert(memcmp(&first, &other, sizeof first) == 0);
    play_in_order(FORWARDS, GRASPS, 1, 0, &other); /* the smallest slices */
    ck_assert(memcmp(&first, &other, sizeof first) == 0);
    play_in_order(MIXED, GRASPS, 3, 50000000, &other);
    ck_assert(memcmp(&first, &other, sizeof first) == 0);
    /* a grasp alone */
    static const int ALONE[1] = {4};
    play_in_order(ALONE, 1, 1, 1000000, &other);
    ck_assert(memcmp(first.trials[4], other.trials[4], sizeof first.trials[4]) == 0);
    ck_assert(memcmp(first.qualities[4], other.qualities[4], sizeof first.qualities[4]) == 0);
    /* and something was at stake */
    ck_assert(first.trials[4][1].friction != first.trials[4][2].friction);
    ck_assert(first.trials[0][1].slip != first.trials[0][2].slip);
    ck_assert(first.trials[0][1].mass == first.trials[3][1].mass);
}
END_TEST

TEST_MAIN(held_if_and_only_if_friction_carries_weight_and_lift,
          held_if_and_only_if_friction_carries_the_shake,
          what_was_never_held_is_dropped_when_the_lift_begins,
          a_frictionless_block_falls_out_on_time,
          random_friction_succeeds_as_often_as_the_normal_distribution_says,
          wilson_intervals_are_wilsons, forces_at_the_end_are_those_of_equilibrium,
          closing_to_a_width_stops_there, hands_inside_of_things_collide,
          results_are_the_same_bytes_however_the_work_is_done)
