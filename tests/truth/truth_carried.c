/* Joints on a kinematic body: bodies on a moving base feel its motion.
 *
 * Source: Newton's laws in the resting frame, in which every case has a closed form. */
#include "common_mechanism.h"

static const double ORIGIN[3] = {0, 0, 0};
static const double X_AXIS[3] = {1, 0, 0}, Y_AXIS[3] = {0, 1, 0}, Z_AXIS[3] = {0, 0, 1};
static const double UPRIGHT[4] = {1, 0, 0, 0};

static tb_handle carrier(truth *t)
{
    tb_body_def def = tb_body_defaults();
    tb_error error = {0};
    tb_handle handle;
    def.name = "carrier";
    def.kinematic = true;
    TEST_OK(tb_scene_add_body(t->scene, &def, &handle, &error), &error);
    return handle;
}

/* Begins to move the carrier from a place with constant velocities. */
static void carry(truth *t, const double position[3], const double velocity[3],
                  const double spin[3])
{
    tb_error error = {0};
    const int32_t body = tb_model_find(t->model, TB_HANDLE_BODY, "carrier");
    TEST_OK(tb_state_set_kinematic(t->state, body, position, UPRIGHT, velocity, spin, &error),
            &error);
}

static truth begin(int scheme, double dt)
{
    truth t = truth_begin(0, dt);
    t.options.scheme = scheme == 0 ? TB_SCHEME_MOREAU : TB_SCHEME_STEWART_TRINKLE;
    return t;
}

/* A mass that can slide along x and y of a turntable which also travels: without forces it moves
 * straight on in the resting frame. */
static double straightness(int scheme, double dt)
{
    const double moments[3] = {1e-3, 2e-3, 3e-3}, place[3] = {0.3, -0.2, 0.1};
    const double velocity[3] = {0.4, 0.7, 0}, spin[3] = {0, 0, 2};
    truth t = begin(scheme, dt);
    const tb_handle mass = mechanism_body(&t, "mass", carrier(&t), ORIGIN, 1.5, ORIGIN, moments);
    mechanism_joint(&t, "x", mass, TB_JOINT_SLIDE, NULL, X_AXIS);
    mechanism_joint(&t, "y", mass, TB_JOINT_SLIDE, NULL, Y_AXIS);
    truth_start(&t);
    carry(&t, place, velocity, spin);
    set_joint_coordinate(&t, "x", 0.5);

    const tb_body_motion first = truth_motion(&t, "mass");
    truth_run(&t, (int32_t)lround(1 / dt));
    const tb_body_motion last = truth_motion(&t, "mass");
    double worst = 0;
    for (int k = 0; k < 3; k++)
        worst = fmax(worst, fabs(last.position[k] - first.position[k] - first.linear_velocity[k]));
    /* on the table it began at rest: outside it has the table's velocity there */
    TEST_NEAR(first.linear_velocity[1], 0.7 + 2 * 0.5, 1e-12);
    truth_end(&t);
    return worst;
}

START_TEST(a_free_mass_goes_straight_over_a_turntable)
{
    const double coarse = straightness(0, 2e-3), fine = straightness(0, 1e-3);
    TRUTH_CHECK("mass on a turntable: straightness (m), Moreau", fine, 1e-5);
    TRUTH_CHECK("mass on a turntable: lack of order 2, Moreau", 2 - log2(coarse / fine), 0.1);
    TRUTH_CHECK("mass on a turntable: straightness (m), Stewart-Trinkle", straightness(1, 1e-3),
                1e-2);
}
END_TEST

/* A slider driven outwards: r'' = w^2 r, from rest r = r0 cosh w t. */
START_TEST(a_slider_on_a_turntable_flies_outwards)
{
    const double moments[3] = {1e-3, 2e-3, 3e-3}, r0 = 0.2, w = 3, dt = 1e-3;
    const double place[3] = {1, 2, 3}, velocity[3] = {-0.3, 0.2, 0.5}, spin[3] = {0, 0, w};
    truth t = begin(0, dt);
    const tb_handle mass = mechanism_body(&t, "mass", carrier(&t), ORIGIN, 0.7, ORIGIN, moments);
    mechanism_joint(&t, "r", mass, TB_JOINT_SLIDE, NULL, X_AXIS);
    truth_start(&t);
    carry(&t, place, velocity, spin);
    set_joint_coordinate(&t, "r", r0);
    truth_run(&t, 1000);
    TRUTH_CHECK("slider on a turntable: radius, relative",
                fabs(joint_coordinate(&t, "r") / (r0 * cosh(w)) - 1), 1e-5);
    truth_end(&t);
}
END_TEST

/* Angular momentum of a spinning body on a ball joint at its centre of mass, resting frame. */
static void momentum(const truth *t, const double moments[3], double l[3])
{
    const tb_body_motion m = truth_motion(t, "top");
    double own[3];
    reference_unrotate(m.orientation, m.angular_velocity, own);
    for (int k = 0; k < 3; k++) own[k] *= moments[k];
    reference_rotate(m.orientation, own, l);
}

START_TEST(a_top_on_a_turning_carrier_keeps_its_angular_momentum)
{
    const double moments[3] = {1e-3, 2e-3, 2.5e-3}, dt = 1e-3;
    const double velocity[3] = {0.1, 0, 0}, spin[3] = {0.8, -1.5, 2};
    truth t = begin(0, dt);
    const tb_handle top = mechanism_body(&t, "top", carrier(&t), ORIGIN, 1, ORIGIN, moments);
    mechanism_joint(&t, "ball", top, TB_JOINT_BALL, NULL, Z_AXIS);
    truth_start(&t);
    carry(&t, ORIGIN, velocity, spin);
    set_joint_velocity(&t, "ball", 3);
    double before[3], after[3], change = 0, size = 0;
    momentum(&t, moments, before);
    truth_run(&t, 1000);
    momentum(&t, moments, after);
    for (int k = 0; k < 3; k++) {
        change += (after[k] - before[k]) * (after[k] - before[k]);
        size += before[k] * before[k];
    }
    TRUTH_CHECK("top on a turning carrier: angular momentum, relative", sqrt(change / size), 1e-4);
    truth_end(&t);
}
END_TEST

/* A weight hangs on a vertical slide of a carrier that travels at v and drags a box over ice: the
 * box gains mu m g / M each second until it travels with the carrier. */
START_TEST(a_carried_finger_drags_a_box_by_its_friction)
{
    const double moments[3] = {1e-3, 1e-3, 1e-3}, tip[3] = {0.02, 0, 0}, half[3] = {1, 0.1, 0.05};
    const double mu = 0.5, weight = 1, box_mass = 2, v = 0.5, dt = 1e-3;
    const double velocity[3] = {v, 0, 0}, above[3] = {-0.3, 0, 0.12}, middle[3] = {0, 0, 0.05};
    tb_error error = {0};
    truth t = truth_begin(GRAVITY, dt);
    truth_plane(&t, 0, 0, 1, truth_surface(0, 0));
    truth_body(&t, "box", TB_SHAPE_BOX, half, box_mass, middle, NULL, truth_surface(0, 0));
    const tb_handle finger =
        mechanism_body(&t, "finger", carrier(&t), ORIGIN, weight, ORIGIN, moments);
    mechanism_joint(&t, "down", finger, TB_JOINT_SLIDE, NULL, Z_AXIS);
    tb_shape_def shape = tb_shape_defaults();
    shape.body = finger;
    shape.type = TB_SHAPE_SPHERE;
    memcpy(shape.size, tip, sizeof tip);
    shape.surface = truth_surface(mu, 0);
    TEST_OK(tb_scene_add_shape(t.scene, &shape, NULL, &error), &error);
    truth_start(&t);
    carry(&t, above, velocity, ORIGIN);

    const double gain = mu * weight * GRAVITY / box_mass;
    truth_run(&t, 100);
    TRUTH_CHECK("box dragged by a carried finger: slipping, relative",
                fabs(truth_motion(&t, "box").linear_velocity[0] / (gain * 0.1) - 1), 1e-6);
    truth_run(&t, 300);
    TRUTH_CHECK("box dragged by a carried finger: sticking (m/s)",
                fabs(truth_motion(&t, "box").linear_velocity[0] - v), 1e-9);
    TRUTH_CHECK("box dragged by a carried finger: finger keeps its height (m)",
                fabs(truth_motion(&t, "finger").position[2] - 0.12), 1e-5);
    truth_end(&t);
}
END_TEST

TEST_MAIN(a_free_mass_goes_straight_over_a_turntable, a_slider_on_a_turntable_flies_outwards,
          a_top_on_a_turning_carrier_keeps_its_angular_momentum,
          a_carried_finger_drags_a_box_by_its_friction)
