/* Betz's planar scenes (Solving Rigid Multibody Physics Dynamics Using Proximal Point Functions on the
 * GPU, RPI 2011, chapter 4): Friction Angle and Large Group.
 *
 * The thesis gives bodies of 1 kg and 30 kg cm^2, hexagons of 10 cm x 16 cm with two longer sides,
 * regular octagons of unstated size, slopes of 0.09 and 0.18 rad, 25 bodies named by their first X
 * in cm, of which it gives 17 and 209, and groups of 7 x 75 hexagons over three surfaces that lean
 * by 0.02 rad with a slight step between them. Chosen here: hexagon vertices (+-8, 0), (+-5, +-5)
 * cm and an octagon of 8 cm circumradius; two staggered rows 8 cm apart, since 17 to 209 in steps
 * of 8 are 25 bodies; a platform that ends at X = 295, which a frictionless body from 209 reaches
 * after about 1 s at 10 degrees; g = 9.81 m/s^2, a step of 0.01 s, drop heights, the pitch of rows
 * and the step of 2 cm.
 *
 * Motion is in the x-z plane: every body has slides along x and z and a hinge about -y, so that a
 * positive angle turns x towards z. Outlines are prisms of 4 cm depth. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scenes/scenes.h"

static const double PI = 3.14159265358979323846;
static const double HALF_DEPTH_M = 0.02;
static const double PLATFORM_HALF_THICKNESS_M = 0.05;

enum { ANGLE_BODIES = 25, GROUP_ROWS = 7, GROUP_COLUMNS = 75, GROUP_SURFACES = 3 };

static void put_outline(tb_scene_text *t, const char *name, double (*corners)[2], int count)
{
    tb_scene_put(t, "    <mesh name=\"%s\" vertex=\"", name);
    for (int side = -1; side <= 1; side += 2)
        for (int i = 0; i < count; i++)
            tb_scene_put(t, "%s%.17g %g %.17g", side < 0 && i == 0 ? "" : " ", corners[i][0],
                         side * HALF_DEPTH_M, corners[i][1]);
    tb_scene_put(t, "\"/>\n");
}

static void put_head(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    double hexagon[6][2] = {{0.08, 0},  {0.05, 0.05},   {-0.05, 0.05},
                            {-0.08, 0}, {-0.05, -0.05}, {0.05, -0.05}};
    double octagon[8][2];
    for (int i = 0; i < 8; i++) {
        octagon[i][0] = 0.08 * cos((i + 0.5) * PI / 4);
        octagon[i][1] = 0.08 * sin((i + 0.5) * PI / 4);
    }
    tb_scene_put(t,
                 "<mujoco model=\"%s\">\n  <compiler angle=\"radian\"/>\n"
                 "  <option timestep=\"0.01\" gravity=\"0 0 -9.81\"/>\n"
                 "  <default>\n    <geom friction=\"%g 0 0\" condim=\"3\"/>\n  </default>\n"
                 "  <asset>\n",
                 recipe->name, recipe->friction);
    if (strcmp(recipe->detail, "octagon") == 0)
        put_outline(t, "octagon", octagon, 8);
    else
        put_outline(t, "hexagon", hexagon, 6);
    tb_scene_put(t, "  </asset>\n  <worldbody>\n");
}

/* Writes a box; its top begins at (x, z) and runs for `length` down a slope of `angle` towards
 * +x. */
static void put_platform(tb_scene_text *t, double x, double z, double length, double angle)
{
    const double along[2] = {cos(angle), -sin(angle)}, up[2] = {sin(angle), cos(angle)};
    const double half = length / 2, thick = PLATFORM_HALF_THICKNESS_M;
    tb_scene_put(t,
                 "    <geom type=\"box\" size=\"%.17g %g %g\" pos=\"%.17g 0 %.17g\""
                 " euler=\"0 %.17g 0\"/>\n",
                 half, 2 * HALF_DEPTH_M, thick, x + half * along[0] - thick * up[0],
                 z + half * along[1] - thick * up[1], angle);
}

/* name: the body's, NULL for none. */
static void put_body(tb_scene_text *t, const char *shape, const char *name, double x, double z,
                     double turn)
{
    tb_scene_put(t, "    <body");
    if (name) tb_scene_put(t, " name=\"%s\"", name);
    tb_scene_put(t, " pos=\"%.17g 0 %.17g\"", x, z);
    if (turn != 0) tb_scene_put(t, " euler=\"0 %.17g 0\"", turn);
    tb_scene_put(
        t,
        ">\n      <inertial pos=\"0 0 0\" mass=\"1\" diaginertia=\"0.003 0.003 0.003\"/>\n"
        "      <joint type=\"slide\" axis=\"%.17g 0 %.17g\"/>"
        "<joint type=\"slide\" axis=\"%.17g 0 %.17g\"/><joint type=\"hinge\" axis=\"0 -1 0\"/>\n"
        "      <geom type=\"mesh\" mesh=\"%s\"/>\n    </body>\n",
        cos(turn), sin(turn), -sin(turn), cos(turn), shape);
}

/* size: number of bodies; 1: one body that starts on the slope, for comparing its acceleration
 * with theory. */
static void write_angle(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const bool hexagons = strcmp(recipe->detail, "hexagon") == 0;
    const double apothem = hexagons ? 0.05 : 0.08 * cos(PI / 8);
    const double clearance = 0.02, row_pitch = 2 * apothem + 0.02;
    put_head(t, recipe);
    if (recipe->size == 1) {
        const double start = 0.17;
        put_platform(t, 0, 0, 10, recipe->angle);
        put_body(t, recipe->detail, "body",
                 start * cos(recipe->angle) + apothem * sin(recipe->angle),
                 -start * sin(recipe->angle) + apothem * cos(recipe->angle), recipe->angle);
    } else {
        put_platform(t, 0, 0, 2.95 / cos(recipe->angle), recipe->angle);
        for (int i = 0; i < ANGLE_BODIES; i++) {
            char name[16];
            const int x_cm = 17 + 8 * i;
            snprintf(name, sizeof name, "%d", x_cm);
            put_body(t, recipe->detail, name, x_cm / 100.0,
                     apothem + clearance + (i % 2 ? row_pitch : 0), 0);
        }
    }
    tb_scene_put(t, "  </worldbody>\n</mujoco>\n");
}

/* size: groups, one above the other. */
static void write_group(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const double pitch = 0.17, row_pitch = 0.2, step = 0.02, group_pitch = 4;
    const double length = GROUP_COLUMNS * pitch / GROUP_SURFACES;
    const double drop = length * sin(recipe->angle) + step;
    put_head(t, recipe);
    for (int32_t g = 0; g < recipe->size; g++) {
        const double base = g * group_pitch;
        for (int s = 0; s < GROUP_SURFACES; s++)
            put_platform(t, s * length * cos(recipe->angle), base - s * drop, length,
                         recipe->angle);
        for (int row = 0; row < GROUP_ROWS; row++)
            for (int c = 0; c < GROUP_COLUMNS; c++)
                put_body(t, recipe->detail, NULL, pitch * (c + 0.5) + (row % 2 ? 0.03 : 0),
                         base + 0.1 + row_pitch * row, 0);
    }
    tb_scene_put(t, "  </worldbody>\n</mujoco>\n");
}

#define ANGLE_SCENE(shape, degrees, radians, mu)                                                   \
    {                                                                                              \
        .name = "betz_angle_" #shape "_" #degrees "_mu" #mu,                                       \
        .summary = "25 " #shape "s dropped on a slope of " #radians " rad, mu " #mu,               \
        .source = "Betz 4.2, Friction Angle", .write = write_angle, .size = ANGLE_BODIES,          \
        .angle = radians, .friction = mu, .detail = #shape                                         \
    }
#define ANGLE_SCENES(shape, degrees, radians)                                                      \
    ANGLE_SCENE(shape, degrees, radians, 0), ANGLE_SCENE(shape, degrees, radians, 0.1),            \
        ANGLE_SCENE(shape, degrees, radians, 0.2), ANGLE_SCENE(shape, degrees, radians, 0.5),      \
        ANGLE_SCENE(shape, degrees, radians, 1)
#define SLIDE_SCENE(degrees, radians, mu)                                                          \
    {                                                                                              \
        .name = "betz_slide_" #degrees "_mu" #mu,                                                  \
        .summary = "one hexagon on a slope of " #radians " rad, mu " #mu,                          \
        .source = "Betz 4.2, the accelerations that theory gives", .write = write_angle,           \
        .size = 1, .angle = radians, .friction = mu, .detail = "hexagon"                           \
    }
#define GROUP_SCENE(groups, bodies)                                                                \
    {                                                                                              \
        .name = "betz_group_" #bodies,                                                             \
        .summary = #bodies " hexagons in groups of 7 x 75 over three surfaces each, frictionless", \
        .source = "Betz 4.3, Large Group", .write = write_group, .size = groups, .angle = 0.02,    \
        .friction = 0, .detail = "hexagon"                                                         \
    }

const tb_scene_recipe tb_scenes_betz[] = {ANGLE_SCENES(hexagon, 5, 0.09),
                                          ANGLE_SCENES(octagon, 5, 0.09),
                                          ANGLE_SCENES(hexagon, 10, 0.18),
                                          ANGLE_SCENES(octagon, 10, 0.18),
                                          SLIDE_SCENE(5, 0.09, 0),
                                          SLIDE_SCENE(5, 0.09, 0.1),
                                          SLIDE_SCENE(10, 0.18, 0),
                                          SLIDE_SCENE(10, 0.18, 0.1),
                                          SLIDE_SCENE(10, 0.18, 0.2),
                                          GROUP_SCENE(1, 525),
                                          GROUP_SCENE(4, 2100),
                                          GROUP_SCENE(10, 5250),
                                          {.name = NULL}};
