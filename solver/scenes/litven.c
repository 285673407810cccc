/* Scenes of soft bodies for `tribo run`, in the format of solver/grid/README.md.
 *
 * nine_cylinders is the collision of Litven's section 7.2. The thesis gives: 3 x 3 cylinders of 5 m and
 * diameter 3 m that move to the centre at 4 m/s, mu = 1, steps of 5 ms, 500 solves a factorization, 0.5 s
 * from the first contact. Chosen here: axes along z, no gravity, gaps of 40 mm, the middle cylinder at rest,
 * cells of 0.25 m (0.5 m in nine_cylinders_coarse), neo-Hookean with 1000 kg/m^3, 200 kPa, Poisson's ratio
 * 0.3 and 2 ms of damping, first-order transport, a tolerance of projections of 1e-2. */
#include <math.h>
#include <stdio.h>

#include "scenes/scenes.h"

static const double RADIUS_M = 1.5, HALF_LENGTH_M = 2.5, SPEED = 4, GAP_M = 0.04;

static void begin(tb_scene_text *t, const char *name, const char *options)
{
    tb_scene_put(t, "<soft model=\"%s\">\n  <option %s/>\n", name, options);
}

static void put_grid(tb_scene_text *t, const double half[3], double lower, double spacing)
{
    tb_scene_put(t, "  <grid lower=\"%g %g %g\" upper=\"%g %g %g\" spacing=\"%g\"/>\n", -half[0],
                 -half[1], lower, half[0], half[1], half[2], spacing);
}

static void write_nine_cylinders(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const double spacing = 1.0 / recipe->size, pitch = 2 * RADIUS_M + GAP_M;
    /* room to bulge, and the layers of nodes that a body needs around it */
    const double wide = spacing * ceil((pitch + RADIUS_M + 0.6) / spacing + 4);
    const double high = spacing * ceil((HALF_LENGTH_M + 0.6) / spacing + 4);
    const double half[3] = {wide, wide, high};
    begin(
        t, recipe->name,
        "timestep=\"0.005\" friction=\"1\" advection=\"first\" solves=\"500\" tolerance=\"1e-2\"");
    put_grid(t, half, -high, spacing);
    tb_scene_put(t, "  <material name=\"rubber\" law=\"neo-hookean\" density=\"1000\" "
                    "young=\"2e5\" poisson=\"0.3\" damping=\"0.002\"/>\n");
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            const double distance = i == 0 && j == 0 ? 1 : sqrt(i * i + j * j);
            tb_scene_put(t,
                         "  <body name=\"cylinder_%d%d\" material=\"rubber\" type=\"cylinder\" "
                         "size=\"%g %g\" pos=\"%g %g 0\" velocity=\"%.17g %.17g 0\"/>\n",
                         i + 1, j + 1, RADIUS_M, HALF_LENGTH_M, i * pitch, j * pitch,
                         0 - i * SPEED / distance, 0 - j * SPEED / distance);
        }
    tb_scene_put(t, "</soft>\n");
}

static void write_jelly(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const double half[3] = {0.9, 0.9, 0.9};
    char options[200];
    snprintf(options, sizeof options,
             "timestep=\"0.002\" gravity=\"%.17g 0 %.17g\" friction=\"%g\"",
             9.81 * sin(recipe->angle), -9.81 * cos(recipe->angle), recipe->friction);
    begin(t, recipe->name, options);
    put_grid(t, half, -0.6, 0.15);
    tb_scene_put(t, "  <material name=\"jelly\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" "
                    "damping=\"0.02\"/>\n"
                    "  <body name=\"block\" material=\"jelly\" type=\"box\" size=\"0.3 0.3 0.15\" "
                    "pos=\"0 0 0.15\"/>\n"
                    "  <wall name=\"slope\" type=\"plane\"/>\n"
                    "</soft>\n");
}

const tb_scene_recipe tb_scenes_litven[] = {
    {.name = "nine_cylinders",
     .summary = "3 x 3 soft cylinders that collide in their middle",
     .source = "Litven 7.2",
     .write = write_nine_cylinders,
     .size = 4},
    {.name = "nine_cylinders_coarse",
     .summary = "the same on cells of 0.5 m",
     .source = "Litven 7.2",
     .write = write_nine_cylinders,
     .size = 2},
    {.name = "jelly_sticks",
     .summary = "a block of jelly on a slope of 22 degrees, below its angle of friction",
     .source = "README",
     .write = write_jelly,
     .angle = 22 * 0.017453292519943295,
     .friction = 0.5},
    {.name = "jelly_slides",
     .summary = "the same on 35 degrees: it slides",
     .source = "README",
     .write = write_jelly,
     .angle = 35 * 0.017453292519943295,
     .friction = 0.5},
    {.name = NULL}};
