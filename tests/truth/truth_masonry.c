/* Structures held by friction and compression alone: a house of two cards, an arch of 13
 * stones.
 *
 * Card house: by symmetry the cards push each other horizontally with H; moments about the foot
 * give H / (m g) = tan(alpha) / 2 - t / (2 L) for cards of length L and thickness t whose inner
 * corners touch, so it is stable if and only if the floor's mu is at least that (Glocker; with t =
 * 0 the textbook's tan(alpha) / 2). Arch: a semicircular arch of joints that do not slide stands by
 * itself if t / R >= 0.1075 (Milankovitch 1907; Heyman, The Stone Skeleton; R to the middle line).
 * */
#include "common_truth.h"

#define CARD_LENGTH    0.1  /* m */
#define CARD_THICKNESS 5e-4 /* m */

static double card_house_top(double alpha, double mu)
{
    truth t = truth_begin(GRAVITY, 1e-3);
    t.options.solve.tolerance = 1e-10;
    tb_error error;
    const double s = sin(alpha), c = cos(alpha), half = CARD_LENGTH / 2, thick = CARD_THICKNESS / 2;
    truth_plane(&t, 0, 0, 1, truth_surface(mu, 0));
    const char *names[2] = {"left", "right"};
    for (int i = 0; i < 2; i++) {
        /* the left card leans right; its inner corners are at x = 0 (top) and z = 0 (foot) */
        const double side = i ? 1 : -1;
        const double p[3] = {side * (half * s + thick * c), 0, half * c + thick * s};
        const double q[4] = {cos(alpha / 2), 0, -side * sin(alpha / 2), 0};
        truth_body(&t, names[i], TB_SHAPE_BOX, (const double[3]){thick, 0.03, half}, 2e-3, p, q,
                   truth_surface(0, 0));
    }
    /* between the cards friction must hold for any normal of the touching edges */
    tb_pair_def pair = tb_pair_defaults();
    pair.a = tb_scene_find(t.scene, TB_HANDLE_SHAPE, names[0]);
    pair.b = tb_scene_find(t.scene, TB_HANDLE_SHAPE, names[1]);
    pair.surface = truth_surface(2, 0);
    TEST_OK(tb_scene_add_pair(t.scene, &pair, NULL, &error), &error);
    truth_start(&t);
    truth_run(&t, 2000);
    const tb_body_motion m = truth_motion(&t, "left");
    truth_end(&t);
    return m.position[2] / (half * c + thick * s);
}

START_TEST(card_house_stands_by_the_friction_of_its_floor)
{
    double lowest_standing = 1, highest_fallen = 0;
    const double alphas[3] = {0.2, 0.35, 0.5};
    for (int i = 0; i < 3; i++) {
        const double needed = tan(alphas[i]) / 2 - CARD_THICKNESS / (2 * CARD_LENGTH);
        lowest_standing = fmin(lowest_standing, card_house_top(alphas[i], needed + 0.01));
        highest_fallen = fmax(highest_fallen, card_house_top(alphas[i], needed - 0.01));
    }
    TRUTH_CHECK("card house, mu 0.01 above: height lost", 1 - lowest_standing, 1e-3);
    TRUTH_CHECK("card house, mu 0.01 below: height left", highest_fallen, 0.5);
}
END_TEST

enum { STONES = 13 };

/* Height of the crown after 1 s over its height before. */
static double arch_crown(double thickness)
{
    truth t = truth_begin(GRAVITY, 1e-3);
    t.options.solve.tolerance = 1e-8;
    tb_error error;
    const tb_surface s = truth_surface(0.8, 0);
    truth_plane(&t, 0, 0, 1, s);
    const double pi = acos(-1), wide = 0.15;
    char name[16];
    double crown = 0;
    for (int i = 0; i < STONES; i++) {
        const double middle = pi * (i + 0.5) / STONES;
        const double centre[3] = {cos(middle), 0, sin(middle)};
        double vertices[8][3];
        for (int k = 0; k < 8; k++) {
            const double a = pi * (i + (k & 1)) / STONES;
            const double r = 1 + (k & 2 ? 0.5 : -0.5) * thickness;
            vertices[k][0] = r * cos(a) - centre[0];
            vertices[k][1] = k & 4 ? wide : -wide;
            vertices[k][2] = r * sin(a) - centre[2];
        }
        tb_mesh_def mesh = tb_mesh_defaults();
        mesh.vertices = vertices[0];
        mesh.number_of_vertices = 8;
        mesh.inertia = TB_MESH_INERTIA_CONVEX;
        tb_handle asset, body;
        TEST_OK(tb_scene_add_mesh(t.scene, &mesh, &asset, &error), &error);
        tb_body_def def = tb_body_defaults();
        snprintf(name, sizeof name, "s%d", i);
        def.name = name;
        memcpy(def.position, centre, sizeof def.position);
        TEST_OK(tb_scene_add_body(t.scene, &def, &body, &error), &error);
        tb_joint_def joint = tb_joint_defaults();
        joint.type = TB_JOINT_FREE;
        joint.body = body;
        TEST_OK(tb_scene_add_joint(t.scene, &joint, NULL, &error), &error);
        tb_shape_def shape = tb_shape_defaults();
        shape.type = TB_SHAPE_CONVEX;
        shape.body = body;
        shape.asset = asset;
        shape.density = 2000;
        shape.surface = s;
        TEST_OK(tb_scene_add_shape(t.scene, &shape, NULL, &error), &error);
        if (i == STONES / 2) crown = centre[2];
    }
    truth_start(&t);
    truth_run(&t, 1000);
    snprintf(name, sizeof name, "s%d", STONES / 2);
    const double height = truth_motion(&t, name).position[2];
    truth_end(&t);
    return height / crown;
}

START_TEST(arch_stands_if_it_is_thick_enough)
{
    TRUTH_CHECK("arch of 13 stones, t/R 0.12: height of the crown lost", 1 - arch_crown(0.12),
                1e-3);
    TRUTH_CHECK("arch of 13 stones, t/R 0.10: height of the crown left", arch_crown(0.10), 0.9);
}
END_TEST

TEST_MAIN(card_house_stands_by_the_friction_of_its_floor, arch_stands_if_it_is_thick_enough)
