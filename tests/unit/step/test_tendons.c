/* Spatial tendons: lengths, their derivatives and forces, beside MuJoCo 4.0 and alone. */
#include "model/mjcf_util.h"

/* A free body and an arm of a hinge, a slide, a ball joint and a hinge, with tendons of every
 * kind. */
static const char *const ARM =
    "<mujoco><worldbody>"
    "<site name='o' pos='0 .1 1'/>"
    "<body name='a' pos='0 0 1'><joint name='a' axis='0 1 0' springref='.2'/><joint name='a2' "
    "type='slide' axis='1 0 0'/>"
    "<geom size='.02' fromto='0 0 0 .3 0 0' type='capsule'/><geom name='c' type='cylinder' "
    "size='.05 .1' pos='.3 0 .01' euler='80 10 0'/>"
    "<site name='a' pos='.12 .02 .05'/><site name='in' pos='.3 0 0.02'/>"
    "<body name='b' pos='.3 0 0'><joint name='b' type='ball'/><geom size='.02' fromto='0 0 0 .25 0 "
    "0' type='capsule'/>"
    "<geom name='s' size='.04' pos='.25 0 0'/><site name='b' pos='.12 .01 .06'/><site name='out' "
    "pos='.25 .01 .3'/>"
    "<body name='e' pos='.25 0 0'><joint name='e' axis='0 1 .1' ref='.3' springref='-.1'/><geom "
    "size='.03' pos='.2 0 0'/><site name='e' pos='.15 0.02 .03'/></body></body></body>"
    "<body pos='.2 .5 .6'><freejoint/><geom size='.05'/><site name='f' pos='0 0 .05'/></body>"
    "</worldbody>"
    "<tendon>"
    "<spatial name='straight'><site site='o'/><site site='a'/><site site='e'/></spatial>"
    "<spatial name='cylinder' stiffness='30' damping='2'><site site='a'/><geom geom='c'/><site "
    "site='b'/></spatial>"
    "<spatial name='inside'><site site='a'/><geom geom='c' sidesite='in'/><site "
    "site='b'/></spatial>"
    "<spatial name='sphere' stiffness='20' springlength='.1 .2'><site site='b'/><geom geom='s' "
    "sidesite='out'/><site site='e'/></spatial>"
    "<spatial name='pulley' stiffness='11' springlength='.3'><site site='o'/><site "
    "site='f'/><pulley divisor='2'/><site site='f'/><site site='e'/><geom geom='s'/><site "
    "site='b'/><pulley divisor='3'/><site site='a'/><geom geom='c'/><site site='b'/></spatial>"
    "<fixed name='fixed' stiffness='3'><joint joint='a' coef='1'/><joint joint='e' "
    "coef='-.5'/></fixed>"
    "</tendon>"
    "<actuator><motor tendon='cylinder' gear='-3'/><position tendon='pulley' kp='40' "
    "kv='2'/></actuator>"
    "</mujoco>";

enum { COORDINATES = 14, DOFS = 12, TENDONS = 6 };

/* MuJoCo 4.0's values for a state of ARM: lengths, their speeds, accelerations without limits. */
typedef struct truth {
    double q[COORDINATES], u[DOFS], lengths[TENDONS], speeds[TENDONS], accelerations[DOFS];
} truth;

static const truth TRUTHS[] = {
    /* intermediate points: 3, 2, 4, 2, 9, 0 */
    {{0.915009, 0.061588, 0.525689, 0.294056, 0.794541, 0.076728, -0.269344, -0.072835, 0.229255,
      0.899506, 0.121095, -0.547533, -0.42542, 0.710325},
     {0.795, 0.688, -0.215, -0.014, 0.353, -0.878, 0.111, -0.457, 0.759, -0.872, 0.358, 0.74},
     {0.652367038209487, 0.26667544772535, 0.269609495953711, 0.267061869655315, 0.589199504654505,
      1.049681},
     {0.640324975594624, 0.00659196369447301, -0.00185478949811233, -0.0552526609350511,
      -0.0846824738966969, 1.234},
     {-4.513861466636, 10.3852984078713, -470.474891501675, 76.7784074021778, -72.8825045628407,
      403.06261233264, 46.3651344801887, -36.9651127329692, -7.4438959672889, -1719.03070814743,
      -2119.10621606544, -1.08552424483255e-12}},
    /* intermediate points: 3, 2, 4, 4, 11, 0 */
    {{-0.396358, 0.090205, 0.353658, -0.444499, 0.766186, 0.300509, 0.729501, 0.304634, 0.610523,
      0.578295, -0.3954, -0.045646, 0.880207, -0.258479},
     {0.271, -0.247, 0.597, -0.612, -0.219, 0.596, -0.239, 0.427, 0.225, 0.882, 0.983, 0.447},
     {0.625437057887998, 0.232364910826196, 0.263037808176063, 0.320016970032392, 1.37153731681894,
      -0.7611085},
     {-0.214157033325067, 0.0706279500236805, 0.0231646376581476, 0.00968885102509409,
      0.056435469323003, -0.027},
     {13.7814980648149, 6.78066012889297, -225.843796144524, -99.7261834712455, 289.830942614934,
      -791.913942240844, -52.4050189308872, -164.236821057983, 103.882200877531, 8715.6584713892,
      4862.36495129358, 4.80575765338825e-13}},
    /* intermediate points: 3, 4, 2, 4, 13, 0 */
    {{1.443092, 0.078095, 0.817661, 0.507961, 0.252587, 0.098005, 1.067353, 0.137642, 0.669012,
      0.493558, 0.002, -0.029486, 0.997156, -0.06933},
     {0.646, -0.034, -0.224, 0.895, -0.251, 0.759, -0.163, -0.253, -0.277, -0.88, -0.445, -0.541},
     {0.728302839471082, 0.330190924745198, 0.319544841878312, 0.329516231993244, 1.28369367816712,
      0.9094155},
     {-0.19432600091645, 0.0140207236754831, -0.00072459933658494, 0.0262486482751857,
      -0.118949172147298, 0.2665},
     {28.5768541912695, 14.4556367491766, -67.0961045723838, -13.2084990621179, 319.814074379036,
      897.826182909543, -49.0783778354079, -154.055512254112, 71.941246233757, 8037.36366943263,
      2905.13289720767, 1.73912730245109e-12}},
    /* intermediate points: 3, 4, 2, 2, 11, 0 */
    {{-1.312967, 0.008314, 0.896384, 0.235934, -0.145665, -0.345851, -1.093949, 0.123997, 0.770466,
      0.368014, 0.234168, 0.428681, -0.101095, -0.866705},
     {0.86, 0.368, -0.478, -0.04, -0.502, 0.785, 0.9, -0.858, 0.048, -0.632, -0.191, 0.482},
     {0.597584564629819, 0.273549062883677, 0.272569687377316, 0.194321792367568, 1.83763381714898,
      -0.7659925},
     {0.39425938942241, -0.00177923506183781, -0.00563393534071135, 0.0870980037727932,
      -0.683518105481632, 0.4675},
     {10.0223351137452, -9.71679727368008, 323.250957576108, 399.145388562841, 103.90331456188,
      -3544.61145444297, -24.7778617198273, -200.24976566612, 181.116753431294, -11903.7484117285,
      -1062.02600879761, -6.00783455541238e-13}},
    /* intermediate points: 3, 2, 2, 4, 9, 0 */
    {{-0.738383, 0.079988, 0.632686, -0.448427, -0.057304, 0.628759, 1.198004, 0.379289, 0.399538,
      0.649866, 0.638254, 0.357809, -0.669181, -0.129618},
     {0.044, 0.475, -0.845, -0.575, 0.976, -0.401, -0.489, -0.856, -0.375, 0.121, -0.922, -0.422},
     {0.693721900920596, 0.208673433080879, 0.208673433080879, 0.334166594822813, 1.06283560216698,
      -1.337385},
     {0.358207629453186, -0.132969150116616, -0.132969150116616, -0.0146045052347034,
      -0.285188204078162, 0.2445},
     {24.7097668042052, -2.44018840379472, 459.602937564511, -105.712023390563, 157.667936917019,
      -481.018633451679, -44.6498130645103, -73.1695957538651, 109.52536972906, -1861.31859202703,
      6742.69709129167, 2.53101189341424e-12}},
    /* intermediate points: 3, 2, 4, 4, 9, 0 */
    {{0.835287, 0.011343, 0.287268, 0.768361, -0.167569, 0.546827, 1.342211, 0.013853, 0.274858,
      0.512109, 0.385633, -0.487087, 0.179341, 0.762804},
     {0.645, -0.987, 0.821, -0.819, -0.387, -0.027, -0.152, -0.569, 0.459, 0.678, -0.545, -0.67},
     {0.494704876396191, 0.271689181139214, 0.27508589660234, 0.33950748053977, 1.08721297887403,
      0.1641815},
     {-0.654117343744447, 0.0949615518047944, 0.069357505396621, -0.0010137296912343,
      -0.876806142632562, 0.6585},
     {31.8506577941053, 7.5290475364948, -596.88949724668, -50.3085407859975, 28.3044055103275,
      1161.34241930872, 40.5300413765607, -63.9880850221392, 129.399414476634, 214.730265208851,
      -7920.62490647642, 4.35726783835542e-13}}};
enum { TRUTHS_COUNT = sizeof TRUTHS / sizeof TRUTHS[0] };

static tb_state *new_state(const tb_model *model)
{
    tb_state *state = NULL;
    tb_error error = {0};
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

static tb_state *arm_state(const mjcf_case *c, const truth *t)
{
    const double controls[2] = {.5, -.2};
    tb_error error = {0};
    tb_state *state = new_state(c->model);
    TEST_OK(tb_state_set_q(state, t->q, COORDINATES, &error), &error);
    TEST_OK(tb_state_set_u(state, t->u, DOFS, &error), &error);
    TEST_OK(tb_state_set_controls(state, controls, 2, &error), &error);
    return state;
}

START_TEST(numbers_are_those_of_mujoco)
{
    mjcf_case c = mjcf_load(ARM);
    for (int n = 0; n < TRUTHS_COUNT; n++) {
        const truth *t = &TRUTHS[n];
        double lengths[TENDONS], jacobian[TENDONS * DOFS], acceleration[DOFS];
        tb_error error = {0};
        tb_state *state = arm_state(&c, t);
        TEST_OK(tb_state_tendons(state, lengths, jacobian, &error), &error);
        TEST_OK(tb_state_smooth_acceleration(state, acceleration, &error), &error);
        double largest = 1;
        for (int i = 0; i < DOFS; i++) largest = fmax(largest, fabs(t->accelerations[i]));
        for (int i = 0; i < TENDONS; i++) {
            double speed = 0;
            for (int k = 0; k < DOFS; k++) speed += jacobian[DOFS * i + k] * t->u[k];
            ck_assert_double_eq_tol(lengths[i], t->lengths[i], 1e-9);
            ck_assert_double_eq_tol(speed, t->speeds[i], 1e-8);
        }
        for (int i = 0; i < DOFS; i++)
            ck_assert_double_eq_tol(acceleration[i], t->accelerations[i], 1e-6 * largest);
        tb_state_destroy(state);
    }
    mjcf_free(&c);
}
END_TEST

/* Without a springlength a spring rests where all joints are at their spring references. */
START_TEST(springs_rest_at_the_spring_references)
{
    static const double REST[TENDONS] = {0.7327551, 0.30037013, 0.30033315, 0.1, 0.3, 0.00436332};
    mjcf_case c = mjcf_load(ARM);
    for (int i = 0; i < TENDONS; i++)
        ck_assert_double_eq_tol(c.model->tendons[i].spring_lower, REST[i], 1e-8);
    ck_assert_double_eq_tol(c.model->tendons[3].spring_upper, 0.2, 1e-15);
    mjcf_free(&c);
}
END_TEST

/* The jacobian equals the change of lengths as a joint moves a little, around bends as well. */
START_TEST(the_jacobian_is_the_slope_of_the_length)
{
    mjcf_case c = mjcf_load(ARM);
    static const int32_t COORDINATE[] = {0, 1, 6, 7, 8, 9}, DOF[] = {0, 1, 5, 6, 7, 8};
    const double step = 1e-6;
    for (int n = 0; n < TRUTHS_COUNT; n++) {
        double jacobian[TENDONS * DOFS], sides[2][TENDONS], own[TENDONS];
        tb_error error = {0};
        tb_state *state = arm_state(&c, &TRUTHS[n]);
        TEST_OK(tb_state_tendons(state, own, jacobian, &error), &error);
        for (size_t k = 0; k < sizeof DOF / sizeof DOF[0]; k++) {
            for (int side = 0; side < 2; side++) {
                double q[COORDINATES];
                memcpy(q, TRUTHS[n].q, sizeof q);
                q[COORDINATE[k]] += side ? step : -step;
                TEST_OK(tb_state_set_q(state, q, COORDINATES, &error), &error);
                TEST_OK(tb_state_tendons(state, sides[side], NULL, &error), &error);
            }
            for (int i = 0; i < TENDONS; i++)
                ck_assert_double_eq_tol(jacobian[DOFS * i + DOF[k]],
                                        (sides[1][i] - sides[0][i]) / (2 * step), 1e-7);
        }
        tb_state_destroy(state);
    }
    mjcf_free(&c);
}
END_TEST

/* Bytes hold the path: a model made from them moves alike, and another path has another address. */
START_TEST(the_path_is_part_of_the_bytes)
{
    mjcf_case c = mjcf_load(ARM), other = {0};
    tb_error error = {0};
    tb_model *again = NULL;
    size_t size = 0;
    const unsigned char *bytes = tb_model_bytes(c.model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_int_eq(again->number_of_tendon_points, c.model->number_of_tendon_points);
    ck_assert_mem_eq(again->tendon_points, c.model->tendon_points,
                     (size_t)again->number_of_tendon_points * sizeof *again->tendon_points);
    ck_assert_mem_eq(again->tendon_dofs, c.model->tendon_dofs,
                     (size_t)again->number_of_tendon_terms * sizeof *again->tendon_dofs);
    tb_model_destroy(again);

    char *text = malloc(strlen(ARM) + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, ARM, strlen(ARM) + 1);
    char *pulley = strstr(text, "pulley divisor='2'");
    ck_assert_ptr_nonnull(pulley);
    pulley[strlen("pulley divisor='")] = '4';
    other = mjcf_load(text);
    ck_assert_str_ne(tb_model_sha256(other.model), tb_model_sha256(c.model));
    free(text);
    mjcf_free(&other);
    mjcf_free(&c);
}
END_TEST

/* Both schemes step ARM, bends and all. */
START_TEST(steps_of_both_schemes_converge)
{
    static const tb_scheme SCHEMES[] = {TB_SCHEME_STEWART_TRINKLE, TB_SCHEME_MOREAU};
    mjcf_case c = mjcf_load(ARM);
    for (size_t s = 0; s < 2; s++) {
        tb_step_options options = tb_step_defaults();
        tb_stepper *stepper = NULL;
        tb_error error = {0};
        options.scheme = SCHEMES[s];
        options.dt = 1e-4;
        TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
        truth still = TRUTHS[0];
        memset(still.u, 0, sizeof still.u);
        tb_state *state = arm_state(&c, &still);
        const double none[2] = {0, .1};
        TEST_OK(tb_state_set_controls(state, none, 2, &error), &error);
        for (int i = 0; i < 200; i++) {
            tb_certificate certificate;
            TEST_OK(tb_step(stepper, state, 1, &certificate, &error), &error);
            ck_assert_int_eq(certificate.status, TB_OK);
        }
        tb_state_destroy(state);
        tb_stepper_destroy(stepper);
    }
    mjcf_free(&c);
}
END_TEST

/* A chain whose free ends a heavy string joins; compared with MuJoCo 4.0's accelerations and
 * mass matrix. */
START_TEST(armature_is_inertia_of_the_length)
{
    mjcf_case c = mjcf_load(
        MJCF("<worldbody><site name='o' pos='0.1 0 0'/><body pos='0 0 1'><joint axis='0 1 0'/>"
             "<geom size='.1' pos='.3 0 0' mass='1'/><body pos='.6 0 0'><joint axis='0 .6 .8'/>"
             "<geom size='.1' pos='.2 0 0' mass='2'/><site name='b' pos='.3 .1 0'/></body></body>"
             "</worldbody><tendon><spatial armature='3'><site site='o'/><site site='b'/></spatial>"
             "</tendon>"));
    static const double Q[2] = {0.3, -0.7}, U[2] = {0.5, 1.25};
    static const double ACCELERATION[2] = {5.29757051668849, 1.66281589832112};
    static const double MASS[4] = {2.90738153785992, 0.409330851467995, 0.409330851467995,
                                   0.12458304930318};
    double acceleration[2], mass[4];
    tb_error error = {0};
    tb_state *state = new_state(c.model);
    TEST_OK(tb_state_set_q(state, Q, 2, &error), &error);
    TEST_OK(tb_state_set_u(state, U, 2, &error), &error);
    TEST_OK(tb_state_smooth_acceleration(state, acceleration, &error), &error);
    TEST_OK(tb_state_mass_matrix(state, mass, &error), &error);
    for (int i = 0; i < 2; i++) ck_assert_double_eq_tol(acceleration[i], ACCELERATION[i], 1e-9);
    for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(mass[i], MASS[i], 1e-12);
    tb_state_destroy(state);
    mjcf_free(&c);
}
END_TEST

#define TWO                                                                                        \
    "<worldbody><site name='o'/><geom name='box' type='box' size='1 1 1'/><geom name='ball' "      \
    "size='1'/>"                                                                                   \
    "<body pos='0 0 -3'><joint name='j' type='slide' axis='0 0 1'/><geom size='.1'/><site "        \
    "name='b'/>"                                                                                   \
    "</body></worldbody>"

START_TEST(paths_that_make_no_sense_are_refused)
{
    static const struct {
        const char *text;
        tb_status status;
        const char *words;
    } cases[] = {
        {"<spatial><site site='o'/></spatial>", TB_INVALID_ARGUMENT, "fewer than two points"},
        {"<spatial><site site='o'/><site site='x'/></spatial>", TB_NOT_FOUND, "no site 'x'"},
        {"<spatial><site site='o'/><geom geom='x'/><site site='b'/></spatial>", TB_NOT_FOUND,
         "no geom 'x'"},
        {"<spatial><site site='o'/><geom geom='box'/><site site='b'/></spatial>",
         TB_INVALID_ARGUMENT, "neither sphere nor cylinder"},
        {"<spatial><site site='o'/><geom geom='ball'/></spatial>", TB_INVALID_ARGUMENT,
         "not between two sites"},
        {"<spatial><site site='o'/><pulley divisor='2'/><site site='b'/></spatial>",
         TB_INVALID_ARGUMENT, "site without a neighbour"},
        {"<spatial><site site='o'/><site site='b'/><pulley divisor='2'/></spatial>",
         TB_INVALID_ARGUMENT, "pulley without a branch"},
        {"<spatial><pulley divisor='0'/><site site='o'/><site site='b'/></spatial>",
         TB_INVALID_ARGUMENT, "divisor is 0"},
        {"<spatial><joint joint='j' coef='1'/><site site='o'/></spatial>", TB_INVALID_ARGUMENT,
         "unknown element in 'spatial'"},
        {"<spatial springlength='2 1'><site site='o'/><site site='b'/></spatial>",
         TB_INVALID_ARGUMENT, "the first is larger"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, MJCF(TWO "\n<tendon>%s</tendon>"), cases[i].text);
        mjcf_refuses(text, cases[i].status, 2, cases[i].words);
    }
}
END_TEST

/* A weight on a cable of 2 m, which it holds at its full length and not at less. */
START_TEST(a_limit_is_a_cable)
{
    mjcf_case c = mjcf_load(MJCF(
        "<worldbody><site name='o'/><body pos='0 0 -1.9'><freejoint/><geom size='.1' mass='2'/>"
        "<site name='b'/></body></worldbody><tendon><spatial range='0 2' limited='true'>"
        "<site site='o'/><site site='b'/></spatial></tendon>"));
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    tb_error error = {0};
    options.dt = 1e-3;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    tb_state *state = new_state(c.model);
    double longest = 0, length = 0;
    for (int i = 0; i < 500; i++) {
        tb_certificate certificate;
        TEST_OK(tb_step(stepper, state, 1, &certificate, &error), &error);
        TEST_OK(tb_state_tendons(state, &length, NULL, &error), &error);
        longest = fmax(longest, length);
    }
    ck_assert_double_le(longest, 2 + 1e-6);
    ck_assert_double_eq_tol(length, 2, 1e-6);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    mjcf_free(&c);
}
END_TEST

TEST_MAIN(numbers_are_those_of_mujoco, springs_rest_at_the_spring_references,
          the_jacobian_is_the_slope_of_the_length, the_path_is_part_of_the_bytes,
          steps_of_both_schemes_converge, armature_is_inertia_of_the_length,
          paths_that_make_no_sense_are_refused, a_limit_is_a_cable)
