/* Spatial tendons: lengths around shapes, weights on ropes over pulleys, springs that keep their
 * energy.
 *
 * Sources: closed forms, stated at each case. */
#include "common_mechanism.h"

static truth begin(const char *document, tb_scheme scheme, double dt)
{
    truth t = truth_begin(0, dt);
    tb_error error = {0};
    tb_scene_destroy(t.scene);
    TEST_OK(tb_scene_load_mjcf(document, strlen(document), "t.xml", NULL, &t.scene, &error),
            &error);
    t.options.scheme = scheme;
    t.options.dt = dt;
    truth_start(&t);
    return t;
}

static double length_of(const truth *t)
{
    double lengths[8];
    tb_error error = {0};
    ck_assert_int_le(tb_model_count(t->model).tendons, 8);
    TEST_OK(tb_state_tendons(t->state, lengths, NULL, &error), &error);
    return lengths[0];
}

/* ---- a rope around a cylinder ---- */

/* From distance d1 to distance d2 at the angle `turn` to it, around radius r and up by h:
 *
 *     flat = sqrt(d1^2 - r^2) + sqrt(d2^2 - r^2) + r (turn - acos(r / d1) - acos(r / d2)),
 *     length = sqrt(flat^2 + h^2),
 *
 * because a cylinder is flat when it is unrolled. */
START_TEST(a_rope_around_a_cylinder_is_a_line_on_it_unrolled)
{
    const double r = 0.3, d1 = 0.5, d2 = 0.8, h = 0.25;
    double worst = 0;
    for (int i = 0; i < 20; i++) {
        /* with the side point opposite beyond a half turn */
        const double turn = 2.3 + 0.1 * i;
        if (turn > 3.1 && turn < 3.2) continue;
        const double flat = sqrt(d1 * d1 - r * r) + sqrt(d2 * d2 - r * r) +
                            r * (turn - acos(r / d1) - acos(r / d2));
        char document[1024];
        snprintf(document, sizeof document,
                 "<mujoco><worldbody><geom name='c' type='cylinder' size='%.17g 1'/>"
                 "<site name='a' pos='%.17g 0 0'/><site name='s' pos='%.17g %.17g 0'/>"
                 "<site name='b' pos='%.17g %.17g %.17g'/>"
                 "<body pos='9 9 9'><freejoint/><geom size='.1'/></body></worldbody><tendon>"
                 "<spatial><site site='a'/><geom geom='c' sidesite='s'/><site site='b'/></spatial>"
                 "</tendon></mujoco>",
                 r, d1, cos(turn / 2), sin(turn / 2), d2 * cos(turn), d2 * sin(turn), h);
        truth t = begin(document, TB_SCHEME_MOREAU, 1e-3);
        worst = fmax(worst, fabs(length_of(&t) - sqrt(flat * flat + h * h)));
        truth_end(&t);
    }
    TRUTH_CHECK("rope around a cylinder: error of length, m", worst, 1e-14);
}
END_TEST

/* ---- ropes without friction ---- */

/* Weights m1, m2 on a rope over a fixed cylinder; the rope is inextensible, pulls alike on both sides
 * and has no mass (Atwood): a = g (m1 - m2) / (m1 + m2). */
static const char *const ATWOOD =
    "<mujoco><option gravity='0 0 -9.81'/><worldbody><site name='top' pos='0 0 .5'/>"
    "<geom name='c' type='cylinder' size='.2 .5' euler='90 0 0' contype='0' conaffinity='0'/>"
    "<body pos='-.2 0 -1'><joint name='one' type='slide' axis='0 0 -1'/>"
    "<geom size='.05' mass='3'/><site name='one'/></body>"
    "<body pos='.2 0 -1.5'><joint name='two' type='slide' axis='0 0 -1'/>"
    "<geom size='.05' mass='2'/><site name='two'/></body></worldbody><tendon>"
    "<spatial limited='true' range='0 3.1283185307179586'><site site='one'/><geom geom='c' "
    "sidesite='top'/>"
    "<site site='two'/></spatial></tendon></mujoco>";

/* The second weight on the half of a rope that runs over a loose pulley: its length counts half, so
 * it falls twice as fast and pulls half as much: a1 = g (m1 - 2 m2) / (m1 + 4 m2). */
static const char *const TACKLE =
    "<mujoco><option gravity='0 0 -9.81'/><worldbody><site name='o' pos='-.2 0 0'/>"
    "<site name='p' pos='.2 0 0'/>"
    "<body pos='-.2 0 -1'><joint name='one' type='slide' axis='0 0 -1'/>"
    "<geom size='.05' mass='3'/><site name='one'/></body>"
    "<body pos='.2 0 -1.5'><joint name='two' type='slide' axis='0 0 -1'/>"
    "<geom size='.05' mass='1'/><site name='two'/></body></worldbody><tendon>"
    "<spatial limited='true' range='0 1.75'><site site='o'/><site site='one'/>"
    "<pulley divisor='2'/><site site='p'/><site site='two'/></spatial></tendon></mujoco>";

static void fall(const char *name, const char *document, double acceleration)
{
    truth t = begin(document, TB_SCHEME_STEWART_TRINKLE, 1e-3);
    const double rest = length_of(&t);
    double worst = 0, longest = 0;
    for (int i = 1; i <= 400; i++) {
        truth_run(&t, 1);
        const double v = tb_state_u(t.state)[0];
        worst = fmax(worst, fabs(v - acceleration * i * 1e-3));
        longest = fmax(longest, length_of(&t) - rest);
    }
    char line[128];
    snprintf(line, sizeof line, "%s: error of speed, m/s", name);
    TRUTH_CHECK(line, worst, 1e-9);
    snprintf(line, sizeof line, "%s: the rope grows by, m", name);
    TRUTH_CHECK(line, longest, 1e-9);
    truth_end(&t);
}

START_TEST(ropes_without_friction_pull_alike_on_both_sides)
{
    fall("weights over a cylinder", ATWOOD, 9.81 * (3 - 2) / (3 + 2));
    fall("weights on a tackle", TACKLE, 9.81 * (3 - 2) / (3 + 4));
}
END_TEST

/* ---- springs ---- */

/* Masses on elastic strings, straight, around a sphere, and with armature (a mass that runs with
 * the string keeps its energy too). The midpoint rule is of second order: a half of the step leaves
 * a quarter of the error. */
#define SPRING(path, attributes)                                                                   \
    "<mujoco><option gravity='0 0 -9.81'/><worldbody><site name='o'/>"                             \
    "<geom name='s' size='.1' pos='.2 0 -.4' contype='0' conaffinity='0'/>"                        \
    "<body pos='.3 0 -.8'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/>"    \
    "<joint type='slide' axis='0 0 1'/><geom size='.05' mass='1'/><site name='b'/></body>"         \
    "</worldbody><tendon><spatial stiffness='80' springlength='.6' " attributes ">"                \
    "<site site='o'/>" path "<site site='b'/></spatial></tendon></mujoco>"

static double energy_error(const char *document, double dt)
{
    truth t = begin(document, TB_SCHEME_MOREAU, dt);
    const double start = tb_state_energy(t.state);
    double worst = 0;
    for (int i = 0; i < (int)lround(1 / dt); i++) {
        truth_run(&t, 1);
        worst = fmax(worst, fabs(tb_state_energy(t.state) - start));
    }
    truth_end(&t);
    return worst;
}

START_TEST(springs_keep_their_energy_to_second_order)
{
    static const struct {
        const char *name, *document;
    } cases[] = {
        {"elastic string", SPRING("", "")},
        {"elastic string around a sphere", SPRING("<geom geom='s'/>", "")},
        {"elastic string with armature", SPRING("", "armature='.7'")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double coarse = energy_error(cases[i].document, 2e-3);
        const double fine = energy_error(cases[i].document, 1e-3);
        char line[128];
        snprintf(line, sizeof line, "%s: error of energy, J", cases[i].name);
        TRUTH_CHECK(line, fine, 1e-3);
        snprintf(line, sizeof line, "%s: lack of order", cases[i].name);
        TRUTH_CHECK(line, 2 - log2(coarse / fine), 0.2);
    }
}
END_TEST

TEST_MAIN(a_rope_around_a_cylinder_is_a_line_on_it_unrolled,
          ropes_without_friction_pull_alike_on_both_sides,
          springs_keep_their_energy_to_second_order)
