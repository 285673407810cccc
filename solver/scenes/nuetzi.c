/* Nützi's sphere scene (Computing Non-Smooth Dynamics on the GPU, ETH Zürich 2011, section 6.2):
 * 3,000 equal spheres that fall into a box, so that the number of contacts runs over a wide range in a
 * short time.
 *
 * The thesis gives the number of spheres and the step of 0.001 s. Chosen here: radius 0.1 m, 1,000
 * kg/m^3, mu 0.3, no restitution, g = 9.81 m/s^2, a floor of 2.4 m x 2.4 m with walls, and a start on a
 * lattice of pitch 0.22 m whose places are disturbed by up to 8 mm. */
#include "scenes/scenes.h"

static const double RADIUS_M = 0.1, PITCH_M = 0.22, DISORDER_M = 8e-3, HALF_WIDTH_M = 1.2;
enum { ALONG = 10 };

static void put_wall(tb_scene_text *t, double x, double y)
{
    tb_scene_put(t, "    <geom type=\"box\" size=\"%g %g 4\" pos=\"%g %g 4\"/>\n",
                 x != 0 ? 0.1 : HALF_WIDTH_M + 0.2, y != 0 ? 0.1 : HALF_WIDTH_M + 0.2,
                 x * (HALF_WIDTH_M + 0.1), y * (HALF_WIDTH_M + 0.1));
}

static void write_spheres(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    tb_random random = tb_random_stream(2011, 0);
    tb_scene_put(
        t,
        "<mujoco model=\"%s\">\n  <option timestep=\"0.001\" gravity=\"0 0 -9.81\"/>\n"
        "  <default>\n    <geom friction=\"%g 0 0\" condim=\"3\"/>\n"
        "    <default class=\"s\"><geom type=\"sphere\" size=\"%g\" density=\"1000\"/></default>\n"
        "  </default>\n"
        "  <worldbody>\n    <geom type=\"plane\" size=\"5 5 0.1\"/>\n",
        recipe->name, recipe->friction, RADIUS_M);
    put_wall(t, 1, 0);
    put_wall(t, -1, 0);
    put_wall(t, 0, 1);
    put_wall(t, 0, -1);
    for (int32_t i = 0; i < recipe->size; i++) {
        double at[3] = {PITCH_M * (i % ALONG - (ALONG - 1) / 2.0),
                        PITCH_M * (i / ALONG % ALONG - (ALONG - 1) / 2.0),
                        PITCH_M * (0.5 + (double)(i / (ALONG * ALONG)))};
        for (int k = 0; k < 3; k++) at[k] += tb_random_between(&random, -DISORDER_M, DISORDER_M);
        tb_scene_put(t, "    <body pos=\"%.9g %.9g %.9g\"><freejoint/><geom class=\"s\"/></body>\n",
                     at[0], at[1], at[2]);
    }
    tb_scene_put(t, "  </worldbody>\n</mujoco>\n");
}

const tb_scene_recipe tb_scenes_nuetzi[] = {{.name = "nuetzi_spheres",
                                             .summary = "3000 spheres that fall into a box",
                                             .source = "Nützi 6.2",
                                             .write = write_spheres,
                                             .size = 3000,
                                             .friction = 0.3},
                                            {.name = NULL}};
