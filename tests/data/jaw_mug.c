/* The grasp scene that contact solvers are timed on: two 20 N slide fingers around a mug of
 * primitives.
 *
 * The same geometry, masses, names and rounding as the project's common peers' scene, so that
 * numbers compare: a mug of 0.3 kg (a cylinder as bottom, 16 boxes as wall, 4 capsules as handle),
 * a palm on a vertical slide with a position servo, fingers on slides with force motors, dt 2 ms.
 *
 * jaw_mug FOLDER [MU] writes FOLDER/jaw_mug.xml (MU 0.6). */
#include "common.h"

#include <math.h>
#include <stdlib.h>

enum { WALL_BOXES = 16, HANDLE_CAPSULES = 4 };

static const double PI = 3.14159265358979323846;
static const double RADIUS = 0.040, HEIGHT = 0.095, WALL = 0.003;               /* m */
static const double BOTTOM_MASS = 0.05, WALL_MASS = 0.2, CAPSULE_MASS = 0.0125; /* kg */

static void write_mug(FILE *file)
{
    fprintf(file,
            "    <body name=\"mug\" pos=\"0 0 0\">\n      <freejoint name=\"mug\"/>\n"
            "      <geom type=\"cylinder\" size=\"%.4f %.4f\" pos=\"0 0 %.4f\" mass=\"%.2f\"/>\n",
            RADIUS, WALL, WALL, BOTTOM_MASS);

    /* boxes tangent to the outer wall, wide enough to close it */
    const double half_width = RADIUS * tan(PI / WALL_BOXES), middle = RADIUS - WALL / 2;
    for (int i = 0; i < WALL_BOXES; i++) {
        const double angle = 2 * PI * i / WALL_BOXES;
        fprintf(file,
                "      <geom type=\"box\" size=\"%.5f %.5f %.5f\" pos=\"%.6f %.6f %.5f\""
                " euler=\"0 0 %.6f\" mass=\"%.6f\"/>\n",
                WALL / 2, half_width, HEIGHT / 2, middle * cos(angle), middle * sin(angle),
                HEIGHT / 2 + 2 * WALL, angle, WALL_MASS / WALL_BOXES);
    }

    /* handle towards +Y: distance from the wall, height */
    static const double LINE[HANDLE_CAPSULES + 1][2] = {
        {0, 0.020}, {0.022, 0.028}, {0.030, 0.048}, {0.022, 0.068}, {0, 0.076}};
    for (int i = 0; i < HANDLE_CAPSULES; i++)
        fprintf(file,
                "      <geom type=\"capsule\" fromto=\"0 %.4f %.3f 0 %.4f %.3f\" size=\"0.005\""
                " mass=\"%.4f\"/>\n",
                RADIUS + LINE[i][0], LINE[i][1], RADIUS + LINE[i + 1][0], LINE[i + 1][1],
                CAPSULE_MASS);
    fprintf(file, "    </body>\n");
}

static void write_finger(FILE *file, int side)
{
    fprintf(
        file,
        "      <body name=\"finger%+d\" pos=\"%.4f 0 0\">\n"
        "        <joint name=\"slide%+d\" type=\"slide\" axis=\"%d 0 0\" range=\"0 0.055\""
        " damping=\"100\" armature=\"0.01\"/>\n"
        "        <geom type=\"box\" size=\"0.006 0.011 0.025\" pos=\"%.4f 0 0\" mass=\"0.05\"/>\n"
        "      </body>\n",
        side, side * 0.055, side, -side, side * 0.006);
}

int main(int argc, char **argv)
{
    const char *folder = data_folder(argc, argv, "[MU]");
    const double mu = argc > 2 ? strtod(argv[2], NULL) : 0.6;
    FILE *file = data_open(folder, "jaw_mug.xml");

    fprintf(file,
            "<mujoco model=\"jaw_mug\">\n"
            "  <compiler angle=\"radian\" autolimits=\"true\"/>\n"
            "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\"/>\n"
            "  <default>\n    <geom friction=\"%g 0 0\" condim=\"3\"/>\n  </default>\n"
            "  <worldbody>\n    <geom name=\"floor\" type=\"plane\" size=\"1 1 0.1\"/>\n",
            mu);
    write_mug(file);
    fprintf(file, "    <body name=\"palm\" pos=\"0 0 0.055\">\n"
                  "      <joint name=\"lift\" type=\"slide\" axis=\"0 0 1\" range=\"-0.05 0.4\""
                  " damping=\"1\" armature=\"0.1\"/>\n"
                  "      <geom type=\"box\" size=\"0.07 0.02 0.01\" pos=\"0 0 0.075\" mass=\"0.6\""
                  " contype=\"0\" conaffinity=\"0\"/>\n");
    write_finger(file, -1);
    write_finger(file, 1);
    fprintf(file, "    </body>\n  </worldbody>\n  <actuator>\n"
                  "    <position name=\"lift\" joint=\"lift\" kp=\"2000\" kv=\"120\""
                  " forcerange=\"-60 60\"/>\n"
                  "    <motor name=\"close-1\" joint=\"slide-1\" ctrlrange=\"0 40\"/>\n"
                  "    <motor name=\"close+1\" joint=\"slide+1\" ctrlrange=\"0 40\"/>\n"
                  "  </actuator>\n</mujoco>\n");
    data_close(file, folder, "jaw_mug.xml");
    return EXIT_SUCCESS;
}
