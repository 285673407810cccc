/* Elements of flexes in contact: an impact is shared by the corners' weights whatever hits them, momentum is kept,
 * chains hold on cylinders by friction as Euler and Eytelwein say, and carry weights. */
#include <math.h>

#include "model/merge.h"
#include "model_util.h"
#include "run_util.h"

/* Without energies, by a dt of its own. */
static run begin_at(const char *text, double dt)
{
    tb_step_options options = tb_step_defaults();
    options.dt = dt;
    return begin_with(text, &options);
}

/* ---- impacts ---- */

/* A body that flies down at (0.2, 0.3) onto a triangle or segment of 0.5 kg a corner. */
typedef struct shot {
    const char *geom;
    double below; /* m, from its body down to its lowest point */
} shot;

static const shot SHOTS[] = {
    {"type='sphere' size='.05'", 0.05},
    {"type='ellipsoid' size='.05 .05 .08'", 0.08},
    {"type='capsule' size='.03 .05'", 0.08},
    {"type='box' size='.05 .05 .05' quat='.880476 .364705 .279848 -.115916'", 0.0866025},
    {"type='mesh' mesh='tetra'", 0.1},
};

#define TETRA "<asset><mesh name='tetra' vertex='0 0 -.1 .1 .1 .1 -.1 .1 .1 0 -.1 .1'/></asset>"

/* A point mass hits, without restitution: the impulse is that of the masses behind the point, and the corners get
 * their shares of it. weights: of the corners in the point (0.2, 0.3). */
static void check_impact(const char *flex, int32_t corners, const double *weights, const shot *s)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        MJCF("<option><flag gravity='disable'/></option>" TETRA
             "<worldbody><flexcomp name='f' type='direct' %s radius='.01' mass='%g'/>"
             "<body name='b' pos='.2 .3 %.17g'><inertial pos='0 0 0' mass='2' diaginertia='1 1 "
             "1'/><joint type='slide' axis='0 0 1'/><geom %s/></body></worldbody>"),
        flex, 0.5 * corners, s->below + 0.01 + 0.0005, s->geom);
    run r = begin_at(text, 0.001);
    const int32_t last = 3 * corners;
    double u[10] = {0}, behind = 1 / 2.0, momentum = 0;
    ck_assert_int_eq(r.scene.model->number_of_dofs, last + 1);
    u[last] = -1;
    TEST_OK(tb_state_set_u(r.state, u, last + 1, &error), &error);
    go(&r, 2);
    for (int32_t i = 0; i < corners; i++) behind += weights[i] * weights[i] / 0.5;
    const double impulse = 1 / behind, *after = tb_state_u(r.state);
    for (int32_t i = 0; i < corners; i++) {
        ck_assert_msg(fabs(after[3 * i + 2] + weights[i] * impulse / 0.5) < 2e-3,
                      "%s on %s: corner %d has %g, not %g m/s", s->geom, flex, (int)i,
                      after[3 * i + 2], -weights[i] * impulse / 0.5);
        momentum += 0.5 * after[3 * i + 2];
    }
    TEST_NEAR(momentum + 2 * after[last], -2, 1e-9);
    ck_assert_int_eq(r.sum.status, TB_OK);
    end(&r);
}

START_TEST(corners_share_an_impact_by_their_weights)
{
    static const double TRIANGLE[] = {0.5, 0.2, 0.3}, SEGMENT[] = {0.7, 0.3};
    for (size_t i = 0; i < sizeof SHOTS / sizeof SHOTS[0]; i++) {
        check_impact("dim='2' point='0 0 0 1 0 0 0 1 0' element='0 1 2'", 3, TRIANGLE, &SHOTS[i]);
        check_impact("dim='1' point='.2 0 0 .2 1 0' element='0 1'", 2, SEGMENT, &SHOTS[i]);
    }
}
END_TEST

/* Two triangles cross in an impact, edge against edge, and a chain falls onto another: nothing goes through, and
 * momenta are shared. */
START_TEST(elements_strike_elements)
{
    run r =
        begin_at(MJCF("<option><flag gravity='disable'/></option><worldbody><flexcomp name='a' "
                      "type='direct' dim='1' point='-1 0 0 1 0 0' element='0 1' radius='.01' "
                      "mass='1'/><flexcomp name='b' type='direct' dim='1' point='.2 -1 .0205 .2 1 "
                      ".0205' element='0 1' radius='.01' mass='1'/></worldbody>"),
                 0.001);
    double u[12] = {0};
    u[8] = u[11] = -1;
    TEST_OK(tb_state_set_u(r.state, u, 12, &error), &error);
    go(&r, 3);
    /* a is struck at 0.4 and 0.6, b at its middle: 1 / (2 (0.16 + 0.36) + 2 (0.25 + 0.25)) N s */
    const double impulse = 1 / (2 * 0.52 + 2 * 0.5), *after = tb_state_u(r.state);
    TEST_NEAR(after[2], -0.4 * impulse / 0.5, 1e-3);
    TEST_NEAR(after[5], -0.6 * impulse / 0.5, 1e-3);
    TEST_NEAR(after[8], -1 + 0.5 * impulse / 0.5, 1e-3);
    TEST_NEAR(after[8], after[11], 1e-9);
    end(&r);

    r = begin_at(
        MJCF("<option><flag gravity='disable'/></option><worldbody><flexcomp name='a' "
             "type='direct' dim='2' point='-1 0 0 1 0 0 0 0 -1' element='0 1 2' radius='.01' "
             "mass='1.5'/><flexcomp name='b' type='direct' dim='2' point='.2 -1 .0205 .2 1 "
             ".0205 .2 0 1' element='0 1 2' radius='.01' mass='1.5'/></worldbody>"),
        0.001);
    double v[18] = {0};
    v[11] = v[14] = v[17] = -1;
    TEST_OK(tb_state_set_u(r.state, v, 18, &error), &error);
    go(&r, 3);
    TEST_NEAR(tb_state_u(r.state)[2], -0.4 * impulse / 0.5, 1e-3);
    TEST_NEAR(tb_state_u(r.state)[11], -1 + 0.5 * impulse / 0.5, 1e-3);
    TEST_NEAR(tb_state_u(r.state)[8], 0, 1e-9);
    ck_assert_int_eq(r.sum.status, TB_OK);
    end(&r);
}
END_TEST

/* A strip of cloth, folded over, lies on itself: the upper layer a diameter above the lower one. */
START_TEST(a_cloth_lies_on_itself)
{
    static char text[4096];
    int at = snprintf(text, sizeof text,
                      "<mujoco><worldbody><geom type='plane' size='1 1 1'/><flexcomp name='f' "
                      "type='direct' dim='2' radius='.01' mass='1.8' point='");
    /* nine rows of two: three on the floor, three in a bow of 0.05 m, three above */
    static const double X[9] = {0, .1, .2, .285, .32, .285, .2, .1, 0},
                        Z[9] = {.01, .01, .01, .025, .075, .125, .14, .14, .14};
    for (int i = 0; i < 9; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%g 0 %g %g .1 %g ", X[i], Z[i], X[i],
                       Z[i]);
    at += snprintf(text + at, sizeof text - (size_t)at, "' element='");
    for (int i = 0; i < 8; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%d %d %d %d %d %d ", 2 * i, 2 * i + 2,
                       2 * i + 3, 2 * i, 2 * i + 3, 2 * i + 1);
    snprintf(text + at, sizeof text - (size_t)at,
             "'><edge equality='true'/></flexcomp></worldbody></mujoco>");
    run r = begin_at(text, 0.002);
    go(&r, 1000);
    const double *q = tb_state_q(r.state);
    for (int i = 6; i < 9; i++)
        for (int side = 0; side < 2; side++) {
            const double z = Z[i] + q[3 * (2 * i + side) + 2];
            TEST_NEAR(z, 0.03, 0.004);
        }
    ck_assert_double_le(r.last.penetration, 1e-4);
    end(&r);
}
END_TEST

/* A free ball strikes a free cloth aside of its middle, with friction: the sum of all momenta stays. */
START_TEST(momentum_is_kept)
{
    run r = begin_at(
        MJCF("<option><flag gravity='disable'/></option><worldbody><flexcomp name='f' "
             "count='4 4 1' spacing='.1 .1 .1' radius='.01' mass='1.6'><edge "
             "equality='true'/></flexcomp><body name='b' pos='.02 .03 .07'><freejoint/><geom "
             "size='.05' mass='2'/></body></worldbody>"),
        0.001);
    double u[54] = {0};
    const int32_t ball = 48;
    u[ball] = 0.5, u[ball + 2] = -2;
    TEST_OK(tb_state_set_u(r.state, u, 54, &error), &error);
    go(&r, 50);
    const double *after = tb_state_u(r.state);
    double sum[3] = {0};
    for (int32_t i = 0; i < 16; i++)
        for (int k = 0; k < 3; k++) sum[k] += 0.1 * after[3 * i + k];
    for (int k = 0; k < 3; k++) sum[k] += 2 * after[ball + k];
    TEST_NEAR(sum[0], 1, 1e-6);
    TEST_NEAR(sum[1], 0, 1e-6);
    TEST_NEAR(sum[2], -4, 1e-6);
    ck_assert(after[ball + 2] > -1.9);
    ck_assert_int_eq(r.sum.status, TB_OK);
    end(&r);
}
END_TEST

/* ---- chains ---- */

/* A chain of 41 points, of which 24 segments touch the upper half of a cylinder of 0.2 m with their middles, friction
 * mu, and weights of 1 kg and `ratio` kg at its ends. Returns the speed of the second one down after 0.3 s. */
static double speed_on_capstan(double mu, double ratio)
{
    enum { POINTS = 41, TOUCHING = 24, SIDE = (POINTS - 1 - TOUCHING) / 2 };
    static char text[8192];
    const double half = 3.14159265358979 / 2, turn = 2 * half / TOUCHING;
    const double reach = 0.21001 / cos(turn / 2), length = 2 * 0.21001 * tan(turn / 2);
    const double drop = SIDE * length;
    int at = snprintf(text, sizeof text,
                      "<mujoco><worldbody><geom type='cylinder' size='.2 .1' euler='90 0 0' "
                      "friction='%g'/><flexcomp name='r' dim='1' type='direct' radius='.01' "
                      "mass='.41' point='",
                      mu);
    for (int i = 0; i < POINTS; i++) {
        const int k = i - SIDE, within = k < 0 ? 0 : k > TOUCHING ? TOUCHING : k;
        const double angle = within * turn - half;
        at += snprintf(text + at, sizeof text - (size_t)at, "%.12g 0 %.12g ", reach * sin(angle),
                       reach * cos(angle) - abs(k - within) * length);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "' element='");
    for (int i = 0; i + 1 < POINTS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%d %d ", i, i + 1);
    at += snprintf(text + at, sizeof text - (size_t)at,
                   "'><edge equality='true'/><contact friction='%g'/></flexcomp>", mu);
    for (int i = 0; i < 2; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "<body name='w%d' pos='%.12g 0 %.12g'><joint type='slide' axis='0 0 "
                       "1'/><inertial pos='0 0 0' mass='%g' diaginertia='1 1 1'/></body>",
                       i, i ? reach : -reach, -drop, i ? ratio : 1);
    snprintf(text + at, sizeof text - (size_t)at,
             "</worldbody><equality><connect body1='r_0' body2='w0' anchor='0 0 0'/><connect "
             "body1='r_40' body2='w1' anchor='0 0 0'/></equality></mujoco>");
    run r = begin_at(text, 0.002);
    go(&r, 150);
    ck_assert_int_eq(r.sum.status, TB_OK);
    const double speed = -tb_state_u(r.state)[r.scene.model->number_of_dofs - 1];
    end(&r);
    return speed;
}

/* Half a turn: tensions of a ratio of exp(mu pi) are held, and hardly larger ones; without friction the weights
 * move as Atwood's do, with the chain of 0.41 kg between them. */
START_TEST(chains_hold_by_friction)
{
    const double mu = 0.3, most = exp(mu * 3.14159265358979);
    TEST_NEAR(speed_on_capstan(mu, 0.9 * most), 0, 1e-4);
    ck_assert_double_gt(speed_on_capstan(mu, 1.25 * most), 0.05);
    TEST_NEAR(speed_on_capstan(0, 2), 9.81 / 3.41 * 0.3, 0.04);
}
END_TEST

/* A slack chain between two pins carries a ball of 1 kg. */
START_TEST(a_slack_chain_carries_a_ball)
{
    static char text[4096];
    enum { POINTS = 21 };
    int at = snprintf(text, sizeof text,
                      "<mujoco><worldbody><flexcomp name='r' dim='1' type='direct' radius='.01' "
                      "mass='2.1' point='");
    for (int i = 0; i < POINTS; i++) {
        const double x = 0.1 * (i - 10);
        at += snprintf(text + at, sizeof text - (size_t)at, "%g 0 %g ", x, 0.3 * x * x);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "' element='");
    for (int i = 0; i + 1 < POINTS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%d %d ", i, i + 1);
    snprintf(text + at, sizeof text - (size_t)at,
             "'><edge equality='true'/><pin id='0 20'/></flexcomp><body pos='.03 0 .17'><joint "
             "type='slide' axis='1 0 0' damping='3'/><joint type='slide' axis='0 0 1' damping='3'/>"
             "<geom size='.15' mass='1'/></body></worldbody></mujoco>");
    run r = begin_at(text, 0.002);
    /* the chain swings on a little: the mean of four seconds */
    enum { STEPS = 2000 };
    double weight = 0;
    go(&r, STEPS);
    for (int step = 0; step < STEPS; step++) {
        go(&r, 1);
        for (int32_t i = 0; i < tb_state_number_of_contacts(r.state); i++) {
            tb_contact_info c;
            TEST_OK(tb_state_contact(r.state, i, &c), NULL);
            weight += (c.normal[2] * c.impulse[0] + c.tangent1[2] * c.impulse[1] +
                       c.tangent2[2] * c.impulse[2]) /
                      0.002 / STEPS;
        }
    }
    TEST_NEAR(weight, 9.81, 0.1);
    ck_assert_double_le(r.last.penetration, 1e-4);
    ck_assert_int_eq(r.sum.status, TB_OK);
    end(&r);
}
END_TEST

/* ---- models ---- */

START_TEST(elements_are_part_of_the_bytes)
{
    mjcf_case c = mjcf_load(WORLD("<flexcomp name='f' count='3 3 1'/>"));
    tb_model *again = NULL;
    size_t size = 0;
    const unsigned char *bytes = tb_model_bytes(c.model, &size);
    ck_assert_int_eq(c.model->number_of_elements, 8);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_int_eq(again->number_of_elements, 8);
    ck_assert_mem_eq(again->elements, c.model->elements, 8 * sizeof *again->elements);
    ck_assert_str_eq(tb_model_sha256(again), tb_model_sha256(c.model));
    ck_assert(tb_model_has_meshes(again) && tb_scene_has_meshes(c.scene));
    tb_model_destroy(again);

    /* a merged scene has them as well */
    tb_scene *scene = NULL;
    tb_scene_def options = tb_scene_defaults();
    tb_merge_def def = tb_merge_defaults();
    def.prefix = "m_";
    tb_model *merged = NULL;
    TEST_OK(tb_scene_create(&options, &scene, &error), &error);
    TEST_OK(tb_scene_add_model(scene, c.model, &def, &error), &error);
    TEST_OK(tb_scene_compile(scene, &merged, &error), &error);
    ck_assert_int_eq(merged->number_of_elements, 8);
    tb_model_destroy(merged);
    tb_scene_destroy(scene);
    mjcf_free(&c);
}
END_TEST

START_TEST(elements_that_make_no_sense_are_refused)
{
    mjcf_case c =
        mjcf_load(WORLD("<geom name='a' size='.1'/><geom name='b' size='.1'/><geom name='c' "
                        "size='.2'/><geom name='d' type='box' size='.1 .1 .1'/>"));
    tb_handle h[4];
    static const char *const NAMES[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) h[i] = tb_scene_find(c.scene, TB_HANDLE_SHAPE, NAMES[i]);
    const struct {
        tb_element_def def;
        const char *words;
    } CASES[] = {{{.corners = 4, .balls = {h[0], h[1], h[2]}}, "neither 2 nor 3"},
                 {{.corners = 2, .balls = {h[0]}}, "balls[1]"},
                 {{.corners = 2, .balls = {h[0], h[0]}}, "given twice"},
                 {{.corners = 2, .balls = {h[0], h[2]}}, "another radius"},
                 {{.corners = 3, .balls = {h[0], h[1], h[3]}}, "no ball"}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        memset(&error, 0, sizeof error);
        ck_assert_int_eq(tb_scene_add_element(c.scene, &CASES[i].def, &error), TB_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.message, CASES[i].words) != NULL, "%s lacks %s", error.message,
                      CASES[i].words);
    }
    mjcf_free(&c);
}
END_TEST

START_TEST(schemes_of_a_plane_refuse_elements)
{
    mjcf_case c = mjcf_load(WORLD("<flexcomp name='f' dim='1' count='3 1 1' dof='2d'/>"));
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    tb_state *state = NULL;
    options.scheme = TB_SCHEME_PLANAR;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_state_create(c.model, &state, &error), &error);
    TEST_STATUS(tb_step(stepper, state, 1, NULL, &error), TB_UNSUPPORTED, &error);
    ck_assert(strstr(error.message, "not by scheme planar") != NULL);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&c);
}
END_TEST

TEST_MAIN(corners_share_an_impact_by_their_weights, elements_strike_elements,
          a_cloth_lies_on_itself, momentum_is_kept, chains_hold_by_friction,
          a_slack_chain_carries_a_ball, elements_are_part_of_the_bytes,
          elements_that_make_no_sense_are_refused, schemes_of_a_plane_refuse_elements)
