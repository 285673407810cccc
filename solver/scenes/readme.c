/* The scenes of README.md: boxes on an incline, and two fingers around a mug of primitives.
 *
 * The grasp has the geometry, masses and names of the benchmark scene tests/data/jaw_mug.c: a
 * mug of 0.3 kg, a palm on a vertical slide with a position servo, fingers on slides with force
 * motors. */
#include <math.h>

#include "scenes/scenes.h"

enum { WALL_BOXES = 16, HANDLE_CAPSULES = 4 };

static const double PI = 3.14159265358979323846;
static const double RADIUS_M = 0.040, HEIGHT_M = 0.095, WALL_M = 0.003;
static const double BOTTOM_KG = 0.05, WALL_KG = 0.2, CAPSULE_KG = 0.0125;

static void write_incline(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    (void)recipe;
    tb_scene_put(t, "<mujoco model=\"incline\">\n"
                    "  <option timestep=\"0.002\" gravity=\"3.3552 0 -9.2184\"/>\n"
                    "  <worldbody>\n"
                    "    <geom name=\"plane\" type=\"plane\" size=\"5 5 0.1\" friction=\"0.3\"/>\n"
                    "    <body name=\"box\" pos=\"0 0 0.1\">\n      <freejoint/>\n"
                    "      <geom type=\"box\" size=\"0.1 0.1 0.1\" mass=\"1\" friction=\"0.4\"/>\n"
                    "    </body>\n");
    tb_scene_put(t, "    <body name=\"slider\" pos=\"0 1 0.1\">\n      <freejoint/>\n"
                    "      <geom type=\"box\" size=\"0.1 0.1 0.1\" mass=\"1\" friction=\"0.3\"/>\n"
                    "    </body>\n  </worldbody>\n</mujoco>\n");
}

static void put_mug(tb_scene_text *t)
{
    tb_scene_put(
        t,
        "    <body name=\"mug\" pos=\"0 0 0\">\n      <freejoint name=\"mug\"/>\n"
        "      <geom type=\"cylinder\" size=\"%.4f %.4f\" pos=\"0 0 %.4f\" mass=\"%.2f\"/>\n",
        RADIUS_M, WALL_M, WALL_M, BOTTOM_KG);
    /* boxes tangent to the outer wall, wide enough to close it */
    const double half_width = RADIUS_M * tan(PI / WALL_BOXES), middle = RADIUS_M - WALL_M / 2;
    for (int i = 0; i < WALL_BOXES; i++) {
        const double angle = 2 * PI * i / WALL_BOXES;
        tb_scene_put(t,
                     "      <geom type=\"box\" size=\"%.5f %.5f %.5f\" pos=\"%.6f %.6f %.5f\""
                     " euler=\"0 0 %.6f\" mass=\"%.6f\"/>\n",
                     WALL_M / 2, half_width, HEIGHT_M / 2, middle * cos(angle), middle * sin(angle),
                     HEIGHT_M / 2 + 2 * WALL_M, angle, WALL_KG / WALL_BOXES);
    }
    /* handle towards +Y: distance from the wall, height */
    static const double LINE_M[HANDLE_CAPSULES + 1][2] = {
        {0, 0.020}, {0.022, 0.028}, {0.030, 0.048}, {0.022, 0.068}, {0, 0.076}};
    for (int i = 0; i < HANDLE_CAPSULES; i++)
        tb_scene_put(t,
                     "      <geom type=\"capsule\" fromto=\"0 %.4f %.3f 0 %.4f %.3f\""
                     " size=\"0.005\" mass=\"%.4f\"/>\n",
                     RADIUS_M + LINE_M[i][0], LINE_M[i][1], RADIUS_M + LINE_M[i + 1][0],
                     LINE_M[i + 1][1], CAPSULE_KG);
    tb_scene_put(t, "    </body>\n");
}

static void put_finger(tb_scene_text *t, int side)
{
    tb_scene_put(
        t,
        "      <body name=\"finger%+d\" pos=\"%.4f 0 0\">\n"
        "        <joint name=\"slide%+d\" type=\"slide\" axis=\"%d 0 0\" range=\"0 0.055\""
        " damping=\"100\" armature=\"0.01\"/>\n"
        "        <geom type=\"box\" size=\"0.006 0.011 0.025\" pos=\"%.4f 0 0\" mass=\"0.05\"/>\n"
        "      </body>\n",
        side, side * 0.055, side, -side, side * 0.006);
}

static void write_jaw_mug(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    tb_scene_put(t,
                 "<mujoco model=\"jaw_mug\">\n"
                 "  <compiler angle=\"radian\" autolimits=\"true\"/>\n"
                 "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\"/>\n"
                 "  <default>\n    <geom friction=\"%g 0 0\" condim=\"3\"/>\n  </default>\n"
                 "  <worldbody>\n    <geom name=\"floor\" type=\"plane\" size=\"1 1 0.1\"/>\n",
                 recipe->friction);
    put_mug(t);
    tb_scene_put(t,
                 "    <body name=\"palm\" pos=\"0 0 0.055\">\n"
                 "      <joint name=\"lift\" type=\"slide\" axis=\"0 0 1\" range=\"-0.05 0.4\""
                 " damping=\"1\" armature=\"0.1\"/>\n"
                 "      <geom type=\"box\" size=\"0.07 0.02 0.01\" pos=\"0 0 0.075\" mass=\"0.6\""
                 " contype=\"0\" conaffinity=\"0\"/>\n");
    put_finger(t, -1);
    put_finger(t, 1);
    tb_scene_put(t, "    </body>\n  </worldbody>\n  <actuator>\n"
                    "    <position name=\"lift\" joint=\"lift\" kp=\"2000\" kv=\"120\""
                    " forcerange=\"-60 60\"/>\n"
                    "    <motor name=\"close-1\" joint=\"slide-1\" ctrlrange=\"0 40\"/>\n"
                    "    <motor name=\"close+1\" joint=\"slide+1\" ctrlrange=\"0 40\"/>\n"
                    "  </actuator>\n</mujoco>\n");
}

const tb_scene_recipe tb_scenes_readme[] = {
    {.name = "incline",
     .summary = "two boxes on a plane that leans by 20 degrees; one stands, one slides",
     .source = "README",
     .write = write_incline},
    {.name = "jaw_mug",
     .summary = "two force-driven fingers on a lift around a mug of primitives",
     .source = "README",
     .write = write_jaw_mug,
     .friction = 0.6},
    {.name = NULL}};
