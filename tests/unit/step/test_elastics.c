/* Elastic triangles and tetrahedra: their forces are those of St. Venant and Kirchhoff's material, rigid motions give
 * none, momentum is kept, energy is bounded, and waves run as formulas say. */
#include <math.h>

#include "model/merge.h"
#include "model_util.h"
#include "run_util.h"
#include "step/dynamics/dynamics.h"

#define FREE(children)                                                                             \
    MJCF("<option timestep='.001'><flag gravity='disable'/></option><worldbody>" children          \
         "</worldbody>")
#define NO_CONTACT "<contact contype='0' conaffinity='0'/>"
/* 0.4 x 0.2 x 0.2 m of 20 kPa and 0.8 kg in 45 points; a sheet of 0.4 x 0.2 m and 1 mm in 15 */
#define BLOCK(elasticity)                                                                          \
    "<flexcomp name='f' dim='3' count='5 3 3' spacing='.1 .1 .1' radius='.01' "                    \
    "mass='.9'>" NO_CONTACT "<elasticity young='2e4' " elasticity "/></flexcomp>"
#define SHEET(elasticity)                                                                          \
    "<flexcomp name='f' dim='2' count='5 3 1' spacing='.1 .1 .1' radius='.01' "                    \
    "mass='.3'>" NO_CONTACT                                                                        \
    "<elasticity young='2e6' thickness='.001' elastic2d='stretch' " elasticity "/></flexcomp>"

/* Places of the vertices at rest, and the dofs that take a vertex to x = F p + shift. */
static void deform(const run *r, double deformation[3][3], const double shift[3], double *q)
{
    for (int32_t i = 0; i < r->scene.model->number_of_dofs / 3; i++) {
        const double *p = r->scene.scene->bodies[i].position;
        for (int k = 0; k < 3; k++)
            q[3 * i + k] = deformation[k][0] * p[0] + deformation[k][1] * p[1] +
                           deformation[k][2] * p[2] + shift[k] - p[k];
    }
}

static double mass_of(const run *r, int32_t dof)
{
    return r->scene.model->bodies[r->scene.model->dofs[dof].body].mass;
}

/* Forces on the dofs of a state. */
static void forces_at(const run *r, const double *q, double *force)
{
    const int32_t dofs = r->scene.model->number_of_dofs;
    TEST_OK(tb_state_set_q(r->state, q, dofs, &error), &error);
    TEST_OK(tb_state_smooth_acceleration(r->state, force, &error), &error);
    for (int32_t i = 0; i < dofs; i++) force[i] *= mass_of(r, i);
}

enum { MOST_DOFS = 200 };

/* A box without a lid, bent at its edges. */
#define BOX                                                                                        \
    "<flexcomp name='f' type='box' dim='2' count='3 3 3' spacing='.1 .1 .1' radius='.01' "         \
    "mass='.3'>" NO_CONTACT                                                                        \
    "<elasticity young='2e6' thickness='.01' elastic2d='bend'/></flexcomp>"

START_TEST(rigid_motions_give_no_force)
{
    static const char *const TEXTS[] = {FREE(BLOCK("poisson='.3'")), FREE(SHEET("poisson='.3'")),
                                        FREE(BOX)};
    for (int n = 0; n < 3; n++) {
        run r = begin(TEXTS[n], TB_SCHEME_STEWART_TRINKLE);
        const double shift[3] = {0.3, -2, 5};
        const double s = sin(2), c = cos(2);
        double turn[3][3] = {{0.6 * c, -0.6 * s, 0.8}, {s, c, 0}, {-0.8 * c, 0.8 * s, 0.6}};
        double q[MOST_DOFS], force[MOST_DOFS];
        deform(&r, turn, shift, q);
        forces_at(&r, q, force);
        for (int32_t i = 0; i < r.scene.model->number_of_dofs; i++) TEST_NEAR(force[i], 0, 1e-9);
        TEST_NEAR(tb_state_energy(r.state), 0, 1e-12);
        end(&r);
    }
}
END_TEST

/* Stretched by a along x and held along y (and z): with the strain G = (a^2 - 1)/2, the energy is volume (lambda/2 +
 * mu) G^2, and the pull of a section its derivative by the length, area (lambda + 2 mu) G a. */
START_TEST(a_stretched_body_pulls_as_the_material_does)
{
    static const char *const TEXTS[] = {FREE(BLOCK("poisson='.3'")), FREE(SHEET("poisson='.3'"))};
    static const double YOUNG[] = {2e4, 2e6}, SECTION[] = {0.2 * 0.2, 0.2 * 0.001};
    for (int n = 0; n < 2; n++) {
        run r = begin(TEXTS[n], TB_SCHEME_STEWART_TRINKLE);
        const double a = 1.3, strain = (a * a - 1) / 2, nu = 0.3, mu = YOUNG[n] / (2 * (1 + nu));
        const double lambda =
            n == 0 ? YOUNG[n] * nu / ((1 + nu) * (1 - 2 * nu)) : YOUNG[n] * nu / (1 - nu * nu);
        double stretch[3][3] = {{a, 0, 0}, {0, 1, 0}, {0, 0, 1}};
        const double none[3] = {0};
        double q[MOST_DOFS], force[MOST_DOFS], pull = 0;
        deform(&r, stretch, none, q);
        forces_at(&r, q, force);
        for (int32_t i = 0; i < r.scene.model->number_of_dofs; i += 3) {
            const double x = r.scene.scene->bodies[i / 3].position[0];
            if (x > 0.15) pull -= force[i];
            if (fabs(x) < 0.15) TEST_NEAR(force[i], 0, 1e-9); /* a uniform stress */
        }
        TEST_NEAR(pull, SECTION[n] * (lambda + 2 * mu) * strain * a, 1e-9 * YOUNG[n]);
        TEST_NEAR(tb_state_energy(r.state), 0.4 * SECTION[n] * (lambda / 2 + mu) * strain * strain,
                  1e-10 * YOUNG[n]);
        end(&r);
    }
}
END_TEST

/* Accelerations of a sheet and a block that are deformed: MuJoCo 4.0's. */
START_TEST(forces_are_mujocos)
{
    static const char *const TEXTS[] = {
        WORLD("<flexcomp name='f' count='3 2 1' spacing='.1 .1 .1' radius='.01' "
              "mass='.6'>" NO_CONTACT "<edge equality='false'/><elasticity young='2e4' "
              "poisson='.3' thickness='.01' elastic2d='stretch'/><pin id='0'/></flexcomp>"),
        WORLD("<flexcomp name='f' dim='3' count='2 2 2' spacing='.1 .1 .1' radius='.01' "
              "mass='.8'>" NO_CONTACT "<edge equality='false'/><elasticity young='2e4' "
              "poisson='.3'/><pin id='0'/></flexcomp>")};
    static const double ACCELERATION[2][21] = {
        {-6.30547024747, -10.5760366755, -9.95387080222, 12.1170470267, 31.953489113, -9.902872783,
         27.1882494601, -15.0040389726, -8.25599928637, -5.09523029501, -4.41197459836,
         -9.80039023136, -23.7237493719, -6.19017790876, -9.68248204116},
        {-43.1920353957, -109.540555401, 75.7503493926,  3.91429751132,  51.2964297554,
         -37.2920785408, -49.7719702664, 18.9996312136,  -58.0372959728, 9.49186967654,
         -88.2718852362, -8.38403566829, -3.54366114309, -5.3309909999,  -51.2133751603,
         -11.6434071122, 104.299556739,  -93.4215229621, 98.6994995762,  44.6692516834,
         106.602040104}};
    for (int n = 0; n < 2; n++) {
        run r = begin(TEXTS[n], TB_SCHEME_STEWART_TRINKLE);
        const int32_t dofs = r.scene.model->number_of_dofs;
        double q[MOST_DOFS], a[MOST_DOFS];
        ck_assert_int_eq(dofs, n == 0 ? 15 : 21);
        for (int i = 0; i < dofs; i++) q[i] = 0.01 * sin(1 + i * i);
        TEST_OK(tb_state_set_q(r.state, q, dofs, &error), &error);
        TEST_OK(tb_state_smooth_acceleration(r.state, a, &error), &error);
        for (int i = 0; i < dofs; i++) TEST_NEAR(a[i], ACCELERATION[n][i], 1e-8);
        end(&r);
    }
}
END_TEST

/* Two triangles that are upright on each other at rest, one of them pinned: the other one swings about their edge by
 * the hinge's torque k sin(angle), k = D L^2 / (A + B). */
START_TEST(a_hinge_swings_as_theory_says)
{
    run r = begin(FREE("<flexcomp name='f' type='direct' dim='2' radius='.01' mass='.4' "
                       "point='0 0 0 .2 0 0 .1 .1 0 .1 0 .1' element='0 1 2 1 0 3'>" NO_CONTACT
                       "<edge equality='true'/><elasticity young='1e6' poisson='.2' "
                       "thickness='.004' elastic2d='bend'/><pin id='0 1 2'/></flexcomp>"),
                  TB_SCHEME_MOREAU);
    const double rigidity = 1e6 * 0.004 * 0.004 * 0.004 / (12 * (1 - 0.2 * 0.2));
    const double k = rigidity * 0.2 * 0.2 / 0.02;
    const double bent[3] = {0, -0.1 * sin(1), 0.1 * (cos(1) - 1)};
    ck_assert_int_eq(r.scene.model->number_of_dofs, 3);
    TEST_OK(tb_state_set_q(r.state, bent, 3, &error), &error);
    TEST_NEAR(tb_state_energy(r.state), k * (1 - cos(1)), 1e-12);
    /* slightly bent: the period of a torsion spring */
    const double slightly[3] = {0, -0.1 * sin(0.05), 0.1 * (cos(0.05) - 1)};
    const double period = 2 * 3.14159265358979 * sqrt(0.1 * 0.1 * 0.1 / k);
    TEST_OK(tb_state_set_q(r.state, slightly, 3, &error), &error);
    double last = 1, crossing[2] = {0};
    int found = 0;
    for (int step = 1; found < 2 && step < 5000; step++) {
        go(&r, 1);
        const double y = -tb_state_q(r.state)[1];
        if (last > 0 && y <= 0) crossing[found++] = 0.001 * (step - y / (y - last));
        last = y;
    }
    ck_assert_int_eq(found, 2);
    TEST_NEAR(crossing[1] - crossing[0], period, 0.002 * period);
    ck_assert_int_eq(r.sum.status, TB_OK);
    end(&r);
}
END_TEST

/* Elastics between sites of any bodies: two turning bodies, one of two joints, and the world. */
#define BETWEEN_BODIES                                                                             \
    MJCF(                                                                                          \
        "<option timestep='.001'/><worldbody><site name='w' pos='0 0 1'/><body name='a' "          \
        "pos='1 0 0'><freejoint/><geom size='.1' mass='1'/><site name='a' pos='.1 .2 0'/><site "   \
        "name='b' pos='.1 -.2 .1'/></body><body pos='0 1 0'><joint axis='0 0 1'/><geom size='.1' " \
        "mass='1'/><body pos='0 .2 0'><joint type='slide' axis='1 0 0'/><geom size='.1' "          \
        "mass='1'/><site name='c' pos='.1 0 .3'/></body></body></worldbody>")

static run begin_between_bodies(double damping, tb_scheme scheme)
{
    run r = begin(BETWEEN_BODIES, scheme);
    tb_elastic_def def = {
        .kind = TB_ELASTIC_TETRAHEDRON, .young = 3e3, .poisson = 0.2, .damping = damping};
    static const char *const NAMES[] = {"w", "a", "b", "c"};
    for (int i = 0; i < 4; i++)
        def.sites[i] = tb_scene_find(r.scene.scene, TB_HANDLE_SITE, NAMES[i]);
    TEST_OK(tb_scene_add_elastic(r.scene.scene, &def, &error), &error);
    def = (tb_elastic_def){.kind = TB_ELASTIC_TRIANGLE,
                           .sites = {def.sites[0], def.sites[1], def.sites[3]},
                           .young = 2e5,
                           .thickness = 0.01,
                           .damping = damping};
    TEST_OK(tb_scene_add_elastic(r.scene.scene, &def, &error), &error);
    def.kind = TB_ELASTIC_HINGE;
    def.sites[2] = tb_scene_find(r.scene.scene, TB_HANDLE_SITE, "b");
    def.sites[3] = tb_scene_find(r.scene.scene, TB_HANDLE_SITE, "c");
    def.young = 2e8;
    TEST_OK(tb_scene_add_elastic(r.scene.scene, &def, &error), &error);
    tb_state_destroy(r.state);
    tb_model_destroy(r.scene.model);
    TEST_OK(tb_scene_compile(r.scene.scene, &r.scene.model, &error), &error);
    TEST_OK(tb_state_create(r.scene.model, &r.state, &error), &error);
    return r;
}

/* M a is the derivative of the energy, by central differences. */
START_TEST(forces_are_the_derivative_of_the_energy)
{
    run r = begin_between_bodies(0, TB_SCHEME_STEWART_TRINKLE);
    enum { DOFS = 8, COORDINATES = 9 };
    double u[DOFS] = {0}, a[DOFS], q[COORDINATES], mass[DOFS * DOFS];
    ck_assert_int_eq(r.scene.model->number_of_dofs, DOFS);
    ck_assert_int_eq(r.scene.model->number_of_elastics, 3);
    for (int i = 0; i < DOFS; i++) u[i] = 0.3 * cos(i);
    TEST_OK(tb_state_set_u(r.state, u, DOFS, &error), &error);
    memcpy(q, tb_state_q(r.state), sizeof q);
    tb_dynamics_integrate(r.scene.model, u, 1, q);
    memset(u, 0, sizeof u);
    TEST_OK(tb_state_set_u(r.state, u, DOFS, &error), &error);
    TEST_OK(tb_state_set_q(r.state, q, COORDINATES, &error), &error);
    TEST_OK(tb_state_smooth_acceleration(r.state, a, &error), &error);
    TEST_OK(tb_state_mass_matrix(r.state, mass, &error), &error);
    for (int i = 0; i < DOFS; i++) {
        double energy[2], force = 0;
        for (int side = 0; side < 2; side++) {
            double moved[COORDINATES], way[DOFS] = {0};
            memcpy(moved, q, sizeof moved);
            way[i] = side ? 1e-5 : -1e-5;
            tb_dynamics_integrate(r.scene.model, way, 1, moved);
            TEST_OK(tb_state_set_q(r.state, moved, COORDINATES, &error), &error);
            energy[side] = tb_state_energy(r.state);
        }
        for (int j = 0; j < DOFS; j++) force += mass[DOFS * i + j] * a[j];
        TEST_NEAR(force, (energy[0] - energy[1]) / 2e-5, 1e-5);
    }
    end(&r);
}
END_TEST

/* Sums of m v and of moments about the origin over vertices of three slides. */
static void momentum_of(const run *r, double linear[3], double angular[3])
{
    const double *u = tb_state_u(r->state), *q = tb_state_q(r->state);
    tb_vec3 sum = {0}, turning = {0};
    for (int32_t i = 0; i < r->scene.model->number_of_dofs / 3; i++) {
        const tb_vec3 p = tb_v3_load(r->scene.scene->bodies[i].position);
        const tb_vec3 v = tb_v3_scale(tb_v3_load(u + 3 * i), mass_of(r, 3 * i));
        sum = tb_v3_add(sum, v);
        turning = tb_v3_add(turning, tb_v3_cross(tb_v3_add(p, tb_v3_load(q + 3 * i)), v));
    }
    tb_v3_store(linear, sum);
    tb_v3_store(angular, turning);
}

/* Bodies that are stretched, turn and fly: momentum is kept, the energy does not grow; the midpoint rule keeps it. */
START_TEST(momentum_is_kept_and_energy_is_bounded)
{
    static const char *const TEXTS[] = {FREE(BLOCK("poisson='.3'")), FREE(SHEET("poisson='.3'"))};
    static const tb_scheme SCHEMES[] = {TB_SCHEME_STEWART_TRINKLE, TB_SCHEME_MOREAU};
    const double none[3] = {0};
    double stretch[3][3] = {{1.1, 0.1, 0}, {0, 0.95, 0}, {0, 0, 1}};
    for (int n = 0; n < 4; n++) {
        run r = begin(TEXTS[n / 2], SCHEMES[n % 2]);
        const int32_t dofs = r.scene.model->number_of_dofs;
        double q[MOST_DOFS], u[MOST_DOFS], before[3], turning[3], after[3], turned[3];
        deform(&r, stretch, none, q);
        for (int32_t i = 0; i < dofs; i += 3) {
            const double *p = r.scene.scene->bodies[i / 3].position;
            u[i] = 0.3 - 2 * p[1];
            u[i + 1] = -0.1 + 2 * p[0];
            u[i + 2] = 0.2;
        }
        TEST_OK(tb_state_set_q(r.state, q, dofs, &error), &error);
        TEST_OK(tb_state_set_u(r.state, u, dofs, &error), &error);
        momentum_of(&r, before, turning);
        const double energy = tb_state_energy(r.state);
        double most = 0, least = energy;
        for (int step = 0; step < 1000; step++) {
            go(&r, 1);
            most = fmax(most, r.last.energy);
            least = fmin(least, r.last.energy);
        }
        momentum_of(&r, after, turned);
        for (int k = 0; k < 3; k++) {
            TEST_NEAR(after[k], before[k], 1e-9);
            TEST_NEAR(turned[k], turning[k], 1e-9);
        }
        ck_assert_int_eq(r.sum.status, TB_OK);
        ck_assert_double_le(most, energy * (n % 2 ? 1.02 : 1.001));
        if (n % 2) ck_assert_double_ge(least, energy * 0.98);
        end(&r);
    }
}
END_TEST

/* A block 1,000 times as stiff vibrates 20 times within a step. */
START_TEST(stiff_bodies_stay_bounded)
{
    run r = begin(MJCF("<option timestep='.01'/><worldbody><geom type='plane' size='5 5 1'/>"
                       "<flexcomp name='f' dim='3' count='3 3 3' spacing='.1 .1 .1' radius='.01' "
                       "mass='.9' pos='0 0 .15'><elasticity young='2e7' poisson='.3'/></flexcomp>"
                       "</worldbody>"),
                  TB_SCHEME_STEWART_TRINKLE);
    go(&r, 200);
    ck_assert_int_eq(r.sum.status, TB_OK);
    double weight = 0, fastest = 0;
    for (int32_t i = 0; i < tb_state_number_of_contacts(r.state); i++) {
        tb_contact_info contact;
        TEST_OK(tb_state_contact(r.state, i, &contact), NULL);
        weight += contact.impulse[0] / 0.01;
    }
    for (int32_t i = 0; i < r.scene.model->number_of_dofs; i++)
        fastest = fmax(fastest, fabs(tb_state_u(r.state)[i]));
    TEST_NEAR(weight, 0.9 * 9.81, 1e-3);
    ck_assert_double_le(fastest, 1e-3);
    end(&r);
}
END_TEST

/* A bar of `sections` points, four a section and the first pinned: a chain of masses m on springs k = E area / length.
 * Its slowest wave along has omega = 2 sqrt(k / m) sin(pi / (4 sections - 2)), and with damping decays by half its
 * square times the damping. */
static void vibrate(double damping, double *period, double *decay)
{
    enum { SECTIONS = 12 };
    char text[512];
    snprintf(text, sizeof text,
             FREE("<flexcomp name='f' dim='3' count='%d 2 2' spacing='.1 .02 .02' radius='.005' "
                  "mass='1.2'>" NO_CONTACT "<elasticity young='1e5' damping='%g'/><pin "
                  "gridrange='0 0 0 0 1 1'/></flexcomp>"),
             SECTIONS, damping);
    run r = begin(text, TB_SCHEME_MOREAU);
    const int32_t dofs = r.scene.model->number_of_dofs;
    const double mass = 1.2 / SECTIONS, stiffness = 1e5 * 0.02 * 0.02 / 0.1;
    const double angle = 3.14159265358979 / (4 * SECTIONS - 2);
    const double omega = 2 * sqrt(stiffness / mass) * sin(angle);
    double q[MOST_DOFS] = {0}, last = 0;
    ck_assert_int_eq(dofs, 12 * (SECTIONS - 1));
    for (int32_t i = 0; i < dofs; i += 3) q[i] = 1e-3 * sin(2 * angle * (1 + i / 12));
    TEST_OK(tb_state_set_q(r.state, q, dofs, &error), &error);
    /* downward crossings of the free end, interpolated */
    double crossing[2] = {0}, largest[2] = {1e-3, 0};
    int found = 0;
    for (int step = 1; found < 2 && step < 10000; step++) {
        go(&r, 1);
        const double x = tb_state_q(r.state)[dofs - 12];
        if (last > 0 && x <= 0) crossing[found++] = 0.001 * (step - x / (x - last));
        if (found == 1) largest[1] = fmax(largest[1], x);
        last = x;
    }
    ck_assert_int_eq(found, 2);
    *period = (crossing[1] - crossing[0]) * omega / (2 * 3.14159265358979);
    *decay = log(largest[0] / largest[1]) / (crossing[1] - crossing[0]);
    if (damping > 0) *decay /= omega * omega * damping / 2;
    end(&r);
}

START_TEST(a_bar_vibrates_as_theory_says)
{
    double period, decay;
    vibrate(0, &period, &decay);
    TEST_NEAR(period, 1, 0.005);
    vibrate(0.01, &period, &decay);
    TEST_NEAR(decay, 1, 0.02);
}
END_TEST

/* ---- models ---- */

START_TEST(elastics_are_part_of_the_bytes)
{
    run r = begin_between_bodies(0.01, TB_SCHEME_STEWART_TRINKLE);
    tb_model *again = NULL, *merged = NULL;
    size_t size = 0;
    const unsigned char *bytes = tb_model_bytes(r.scene.model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_int_eq(again->number_of_elastics, 3);
    ck_assert_mem_eq(again->elastics, r.scene.model->elastics, 3 * sizeof *again->elastics);
    ck_assert_str_eq(tb_model_sha256(again), tb_model_sha256(r.scene.model));
    ck_assert(tb_model_has_meshes(again) && tb_scene_has_meshes(r.scene.scene));
    tb_model_destroy(again);

    tb_scene *scene = NULL;
    tb_scene_def options = tb_scene_defaults();
    tb_merge_def def = tb_merge_defaults();
    TEST_OK(tb_scene_create(&options, &scene, &error), &error);
    TEST_OK(tb_scene_add_model(scene, r.scene.model, &def, &error), &error);
    TEST_OK(tb_scene_compile(scene, &merged, &error), &error);
    ck_assert_int_eq(merged->number_of_elastics, 3);
    tb_model_destroy(merged);
    tb_scene_destroy(scene);
    end(&r);
}
END_TEST

START_TEST(elastics_that_make_no_sense_are_refused)
{
    mjcf_case c = mjcf_load(WORLD("<site name='a'/><site name='b' pos='1 0 0'/><site name='c' "
                                  "pos='0 1 0'/><site name='d' pos='1 1 0'/><site name='e' "
                                  "pos='2 0 0'/>"));
    tb_handle h[5];
    static const char *const NAMES[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) h[i] = tb_scene_find(c.scene, TB_HANDLE_SITE, NAMES[i]);
    const tb_elastic_def good = {.sites = {h[0], h[1], h[2]}, .young = 1, .thickness = 1};
    tb_elastic_def cases[8];
    static const char *const WORDS[] = {"kind is 3", "sites[1]",  "given twice",    "young",
                                        "poisson",   "thickness", "poisson is 0.5", "damping"};
    for (int i = 0; i < 8; i++) cases[i] = good;
    cases[0].kind = (tb_elastic_kind)3;
    cases[1].sites[1] = (tb_handle){0};
    cases[2].sites[2] = h[0];
    cases[3].young = 0;
    cases[4].poisson = -0.1;
    cases[5].thickness = 0;
    cases[6].poisson = 0.5;
    cases[7].damping = -1;
    for (int i = 0; i < 8; i++) {
        memset(&error, 0, sizeof error);
        ck_assert_int_eq(tb_scene_add_elastic(c.scene, &cases[i], &error), TB_INVALID_ARGUMENT);
        ck_assert_msg(strstr(error.message, WORDS[i]) != NULL, "%s lacks %s", error.message,
                      WORDS[i]);
    }
    /* corners in a line and in a plane */
    for (int kind = TB_ELASTIC_TRIANGLE; kind <= TB_ELASTIC_HINGE; kind++) {
        static const char *const CORNERS[3][4] = {
            {"a", "b", "e"}, {"a", "b", "c", "d"}, {"a", "b", "c", "e"}};
        tb_scene *scene = NULL;
        tb_model *model = NULL;
        tb_scene_def options = tb_scene_defaults();
        tb_merge_def def = tb_merge_defaults();
        tb_elastic_def flat = {.kind = (tb_elastic_kind)kind, .young = 1, .thickness = 1};
        TEST_OK(tb_scene_create(&options, &scene, &error), &error);
        TEST_OK(tb_scene_add_model(scene, c.model, &def, &error), &error);
        for (int k = 0; k < 4 && CORNERS[kind][k]; k++)
            flat.sites[k] = tb_scene_find(scene, TB_HANDLE_SITE, CORNERS[kind][k]);
        TEST_OK(tb_scene_add_elastic(scene, &flat, &error), &error);
        TEST_STATUS(tb_scene_compile(scene, &model, &error), TB_INVALID_ARGUMENT, &error);
        ck_assert(strstr(error.message,
                         kind == TB_ELASTIC_TETRAHEDRON ? "in a plane" : "in a line") != NULL);
        tb_scene_destroy(scene);
    }
    mjcf_free(&c);
}
END_TEST

START_TEST(schemes_of_a_plane_refuse_elastics)
{
    run r = begin_between_bodies(0, TB_SCHEME_PLANAR);
    TEST_STATUS(tb_step(r.stepper, r.state, 1, NULL, &error), TB_UNSUPPORTED, &error);
    ck_assert(strstr(error.message, "elastics") != NULL);
    end(&r);
}
END_TEST

TEST_MAIN(rigid_motions_give_no_force, a_stretched_body_pulls_as_the_material_does,
          forces_are_mujocos, a_hinge_swings_as_theory_says,
          forces_are_the_derivative_of_the_energy, momentum_is_kept_and_energy_is_bounded,
          stiff_bodies_stay_bounded, a_bar_vibrates_as_theory_says, elastics_are_part_of_the_bytes,
          elastics_that_make_no_sense_are_refused, schemes_of_a_plane_refuse_elastics)
