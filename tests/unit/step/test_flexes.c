/* Soft flexes step: edges keep their length however many there are, momentum and energy are kept, springs and
 * pendulums move as formulas say, and vertices rest on planes. */
#include <math.h>

#include "model_util.h"
#include "run_util.h"

/* Sums of velocities and of moments about the origin over the vertices, each of three slides. */
static void momentum_of(const run *r, double linear[3], double angular[3])
{
    const double *u = tb_state_u(r->state), *q = tb_state_q(r->state);
    memset(linear, 0, 3 * sizeof *linear);
    memset(angular, 0, 3 * sizeof *angular);
    for (int32_t i = 0; i < r->scene.model->number_of_dofs / 3; i++) {
        const double *p = r->scene.scene->bodies[i].position;
        const tb_vec3 at = tb_v3_add(tb_v3_load(p), tb_v3_load(q + 3 * i));
        const tb_vec3 v = tb_v3_load(u + 3 * i);
        double moment[3];
        tb_v3_store(moment, tb_v3_cross(at, v));
        for (int k = 0; k < 3; k++) {
            linear[k] += u[3 * i + k];
            angular[k] += moment[k];
        }
    }
}

/* A chain of 79 edges and a full block of 98, more than the dense matrix has rows, thrown and turning. The block's
 * edges are more than its degrees of freedom. */
START_TEST(nets_keep_lengths_momentum_and_energy)
{
    static const char *const NETS[] = {"dim='1' count='80 1 1' spacing='.1 .1 .1'",
                                       "type='ellipsoid' dim='3' count='3 3 3' spacing='.3 .3 .3'"};
    static const tb_scheme SCHEMES[] = {TB_SCHEME_STEWART_TRINKLE, TB_SCHEME_MOREAU};
    /* shares of the energy and of the moment that the schemes' order loses in 0.1 s */
    static const double LOSS[] = {1e-3, 1e-6}, TURN[] = {1e-4, 1e-3};
    for (int n = 0; n < 4; n++) {
        char text[512];
        snprintf(
            text, sizeof text,
            MJCF("<option timestep='.001'><flag gravity='disable'/></option><worldbody>"
                 "<flexcomp name='f' radius='.01' mass='1' %s><edge equality='true'/></flexcomp>"
                 "</worldbody>"),
            NETS[n / 2]);
        run r = begin(text, SCHEMES[n % 2]);
        const int32_t dofs = r.scene.model->number_of_dofs;
        double u[240], before[3], turning[3], after[3], turned[3];
        ck_assert_int_le(dofs, 240);
        ck_assert_int_gt(r.scene.model->number_of_equalities, 64);
        for (int32_t i = 0; i < dofs; i++) u[i] = sin(1.0 + 0.1 * (i / 3) + i % 3);
        TEST_OK(tb_state_set_u(r.state, u, dofs, &error), &error);
        go(&r, 1); /* what edges do not allow is gone */
        const double energy = r.last.energy;
        r.sum = r.last;
        r.sum.closure_error = 0;
        momentum_of(&r, before, turning);
        go(&r, 100);
        momentum_of(&r, after, turned);
        const double moment = tb_v3_length(tb_v3_load(turning));
        for (int k = 0; k < 3; k++) {
            TEST_NEAR(after[k], before[k], 1e-9);
            TEST_NEAR(turned[k], turning[k], TURN[n % 2] * moment);
        }
        ck_assert_int_eq(r.sum.status, TB_OK);
        ck_assert_double_le(r.sum.closure_error, 1e-10);
        ck_assert_double_gt(energy, 0.01);
        TEST_NEAR(r.last.energy, energy, LOSS[n % 2] * energy);
        end(&r);
    }
}
END_TEST

/* Two points, one of them pinned: a pendulum of 1 m with 2 pi sqrt(l / g) for a period. */
START_TEST(an_edge_is_a_pendulum)
{
    run r =
        begin(MJCF("<option timestep='.001'/><worldbody><flexcomp name='f' dim='1' type='direct' "
                   "point='0 0 0 .02 0 -.9997999799959990' element='0 1' radius='.01'><pin id='0'/>"
                   "<edge equality='true'/></flexcomp></worldbody>"),
              TB_SCHEME_MOREAU);
    const double period = 2 * 3.14159265358979 * sqrt(1 / 9.81);
    go(&r, (int)(period / 2 / 0.001));
    TEST_NEAR(tb_state_q(r.state)[0], -0.04, 4e-5);
    ck_assert_double_le(r.sum.closure_error, 1e-9);
    end(&r);
}
END_TEST

/* A point of 0.5 kg on an edge of 200 N/m stretches it by m g / k, with its damping to rest. */
START_TEST(an_edge_is_a_spring)
{
    run r =
        begin(MJCF("<option timestep='.002'/><worldbody><flexcomp name='f' dim='1' type='direct' "
                   "point='0 0 0 0 0 -1' element='0 1' radius='.01' mass='1'><pin id='0'/>"
                   "<edge stiffness='200' damping='10'/></flexcomp></worldbody>"),
              TB_SCHEME_STEWART_TRINKLE);
    go(&r, 2000);
    TEST_NEAR(tb_state_q(r.state)[2], -0.5 * 9.81 / 200, 1e-9);
    end(&r);
}
END_TEST

/* A block falls onto a plane and lies there: its lowest vertices a radius above, the contacts bear its weight. */
START_TEST(a_block_rests_on_a_plane)
{
    run r = begin(MJCF("<option timestep='.005'/><worldbody><geom type='plane' size='1 1 1'/>"
                       "<flexcomp name='f' dim='3' count='2 2 2' spacing='.1 .1 .1' radius='.01' "
                       "mass='2' pos='0 0 .07'><edge equality='true'/></flexcomp></worldbody>"),
                  TB_SCHEME_STEWART_TRINKLE);
    go(&r, 200);
    ck_assert_int_eq(r.sum.status, TB_OK);
    const int32_t contacts = tb_state_number_of_contacts(r.state);
    double weight = 0;
    ck_assert_int_eq(contacts, 4);
    for (int32_t i = 0; i < contacts; i++) {
        tb_contact_info contact;
        TEST_OK(tb_state_contact(r.state, i, &contact), NULL);
        weight += contact.impulse[0] / 0.005;
    }
    TEST_NEAR(weight, 2 * 9.81, 1e-4);
    for (int i = 0; i < 8; i++) TEST_NEAR(tb_state_q(r.state)[3 * i + 2], -0.01, 5e-6);
    end(&r);
}
END_TEST

/* Accelerations of a plate that is bent and moves, its edges aside: MuJoCo 4.0's. */
START_TEST(plates_bend_as_mujocos_do)
{
    static const double ACCELERATION[] = {
        -3.65899294759,  -2.60231532901, -4.30883880334,  4.19054299164,  4.56686383045,
        -17.0731379038,  0.464992811993, -0.992150321467, -7.77223736097, 2.14590783814,
        -0.298951431186, -11.8716193174, -1.08027109348,  1.96870196357,  -9.18999862576,
        -1.14233295482,  0.101956151411, -13.2189589378,  4.17901559365,  4.64630427945,
        -3.4980740584,   -2.04013978279, -3.77586225089,  -12.4371810719};
    enum { DOFS = sizeof ACCELERATION / sizeof ACCELERATION[0] };
    mjcf_case c = mjcf_load(
        WORLD("<flexcomp name='f' count='3 3 1' spacing='.1 .1 .1' radius='.01' mass='.9'><contact "
              "contype='0' conaffinity='0'/><edge equality='true'/><elasticity young='1e6' "
              "poisson='.2' thickness='.01' elastic2d='bend' damping='.01'/><pin id='4'/>"
              "</flexcomp>"));
    double q[DOFS], u[DOFS], acceleration[DOFS];
    tb_state *state = NULL;
    ck_assert_int_eq(c.model->number_of_dofs, DOFS);
    for (int i = 0; i < DOFS; i++) {
        q[i] = 0.01 * sin(1 + i * i);
        u[i] = 0.5 * cos(2 + i * i);
    }
    TEST_OK(tb_state_create(c.model, &state, &error), &error);
    TEST_OK(tb_state_set_q(state, q, DOFS, &error), &error);
    TEST_OK(tb_state_set_u(state, u, DOFS, &error), &error);
    TEST_OK(tb_state_smooth_acceleration(state, acceleration, &error), &error);
    for (int i = 0; i < DOFS; i++) TEST_NEAR(acceleration[i], ACCELERATION[i], 1e-9);
    tb_state_destroy(state);
    mjcf_free(&c);
}
END_TEST

TEST_MAIN(nets_keep_lengths_momentum_and_energy, an_edge_is_a_pendulum, an_edge_is_a_spring,
          a_block_rests_on_a_plane, plates_bend_as_mujocos_do)
