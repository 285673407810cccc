/* A parallel-jaw hand the size of a Franka hand, and a scene in which it grasps the mug of mug.c.
 *
 * The hand's frame lies between its pads, +Z towards the palm, Y the closing direction. In hand.xml
 * it has slides x, y, lift and hinges turn (Z), tilt (Y) with position servos, so that it can reach
 * a pose, lift and shake; fingers are slides whose coordinate is the way closed (0 to 40 mm), with
 * force motors. hand.urdf is the same hand on a lift alone, the right finger a mimic of the left
 * one.
 *
 * MJCF takes a mesh for its convex hull, so the mug of grasp.xml collides as boxes and capsules;
 * its OBJ mesh is there to be seen. Every keyframe of grasp.xml is one grasp, hand open and in
 * place; the caller closes, lifts and shakes it.
 *
 * mug.xml is the mug of grasp.xml alone, for callers with another hand.
 *
 * Rigid pads that are out of line with a wall touch it with a corner, and an object held by two
 * corners swings about the line through them. With SPIN (m, the friction against spinning over the
 * normal force; 0.003 is rubber pressed over a centimetre) the pads of hand.xml hold it as soft
 * ones do.
 *
 * hand FOLDER [MU [SPIN]] writes hand.xml, hand.urdf, mug.xml and grasp.xml (MU 0.7, SPIN 0).
 * grasp.xml needs mug.obj there. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WALL_BOXES = 24, HANDLE_CAPSULES = 8 };

static const double PI = 3.14159265358979323846;

/* a box or cylinder of the hand: centre and half extents (cylinder: radius, radius,
 * half length), m, kg */
typedef struct part {
    const char *name;
    int cylinder;
    double centre[3], half[3], mass;
} part;

static const part HAND[] = {{"palm", 0, {0, 0, 0.070}, {0.020, 0.100, 0.030}, 0.60},
                            {"flange", 1, {0, 0, 0.110}, {0.0315, 0.0315, 0.010}, 0.13}};
/* of the left finger, whose frame is on the pad's face; mirrored in Y for the right one */
static const part FINGER[] = {{"pad", 0, {0, 0.003, 0}, {0.010, 0.003, 0.011}, 0.005},
                              {"finger", 0, {0, 0.012, 0.014}, {0.009, 0.006, 0.025}, 0.025}};
enum { HAND_PARTS = 2, FINGER_PARTS = 2 };

static const double OPEN = 0.040, STROKE = 0.040; /* m, of each finger */
static const double REFERENCE_HEIGHT = 0.055;     /* m, of the grasp centre at lift = 0 */
static const double FINGER_DAMPING = 150, FINGER_FORCE = 70; /* N s/m: gears; N */

/* ---- MJCF ---- */

/* pad: friction attribute of the part "pad"; "": as all others */
static void put_geoms(FILE *file, const char *indent, const char *side, const part *parts,
                      int count, int sign, const char *pad)
{
    for (int i = 0; i < count; i++) {
        const part *p = &parts[i];
        fprintf(file, "%s<geom name=\"%s%s\" type=\"%s\" pos=\"%g %g %g\" ", indent, p->name, side,
                p->cylinder ? "cylinder" : "box", p->centre[0], sign * p->centre[1], p->centre[2]);
        if (strcmp(p->name, "pad") == 0) fprintf(file, "%s", pad);
        if (p->cylinder)
            fprintf(file, "size=\"%g %g\" mass=\"%g\"/>\n", p->half[0], p->half[2], p->mass);
        else
            fprintf(file, "size=\"%g %g %g\" mass=\"%g\"/>\n", p->half[0], p->half[1], p->half[2],
                    p->mass);
    }
}

static void put_joint(FILE *file, const char *name, const char *type, const char *axis,
                      double lower, double upper, double armature)
{
    fprintf(file,
            "      <joint name=\"%s\" type=\"%s\" axis=\"%s\" range=\"%g %g\" armature=\"%g\"/>\n",
            name, type, axis, lower, upper, armature);
}

static void put_servo(FILE *file, const char *name, double stiffness, double damping, double force)
{
    fprintf(file,
            "    <position name=\"%s\" joint=\"%s\" kp=\"%g\" kv=\"%g\" forcerange=\"%g %g\"/>\n",
            name, name, stiffness, damping, -force, force);
}

static void write_hand(const char *folder, double mu, double spin)
{
    FILE *file = data_open(folder, "hand.xml");
    char pad[64] = "";
    if (spin > 0) snprintf(pad, sizeof pad, "condim=\"4\" friction=\"%g %g 0\" ", mu, spin);
    fprintf(file,
            "<mujoco model=\"hand\">\n"
            "  <compiler angle=\"radian\" autolimits=\"true\"/>\n"
            "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\"/>\n"
            "  <default>\n    <geom friction=\"%g 0 0\" condim=\"3\"/>\n  </default>\n"
            "  <worldbody>\n    <body name=\"hand\" pos=\"0 0 %g\">\n",
            mu, REFERENCE_HEIGHT);
    put_joint(file, "x", "slide", "1 0 0", -0.3, 0.3, 1);
    put_joint(file, "y", "slide", "0 1 0", -0.3, 0.3, 1);
    put_joint(file, "lift", "slide", "0 0 1", -0.05, 0.5, 1);
    put_joint(file, "turn", "hinge", "0 0 1", -3.2, 3.2, 0.02);
    put_joint(file, "tilt", "hinge", "0 1 0", -1.6, 1.6, 0.02);
    put_geoms(file, "      ", "", HAND, HAND_PARTS, 1, "");
    for (int sign = 1; sign >= -1; sign -= 2) {
        const char *side = sign > 0 ? "left" : "right", *tail = sign > 0 ? "_left" : "_right";
        fprintf(file,
                "      <body name=\"finger_%s\" pos=\"0 %g 0\">\n"
                "        <joint name=\"%s\" type=\"slide\" axis=\"0 %d 0\" range=\"0 %g\""
                " damping=\"%g\" armature=\"0.05\"/>\n",
                side, sign * OPEN, side, -sign, STROKE, FINGER_DAMPING);
        put_geoms(file, "        ", tail, FINGER, FINGER_PARTS, sign, pad);
        fprintf(file, "      </body>\n");
    }
    fprintf(file, "    </body>\n  </worldbody>\n  <actuator>\n");
    put_servo(file, "x", 20000, 400, 300);
    put_servo(file, "y", 20000, 400, 300);
    put_servo(file, "lift", 20000, 400, 300);
    put_servo(file, "turn", 400, 8, 30);
    put_servo(file, "tilt", 400, 8, 30);
    for (int sign = 1; sign >= -1; sign -= 2)
        fprintf(file, "    <motor name=\"close_%s\" joint=\"%s\" ctrlrange=\"0 %g\"/>\n",
                sign > 0 ? "left" : "right", sign > 0 ? "left" : "right", FINGER_FORCE);
    fprintf(file, "  </actuator>\n</mujoco>\n");
    data_close(file, folder, "hand.xml");
}

/* ---- URDF ---- */

/* A link: its inertial summed over the parts, and a collision element for each. */
static void put_link(FILE *file, const char *name, const part *parts, int count, int sign)
{
    double mass = 0, moment[3] = {0},
           inertia[6] = {0}; /* xx, yy, zz, xy, xz, yz about the origin */
    for (int i = 0; i < count; i++) {
        const part *p = &parts[i];
        const double c[3] = {p->centre[0], sign * p->centre[1], p->centre[2]}, *h = p->half;
        const double round = p->half[0] * p->half[0] / 4; /* of a cylinder, over its mass */
        mass += p->mass;
        for (int k = 0; k < 3; k++) {
            const int a = (k + 1) % 3, b = (k + 2) % 3;
            double own = (h[a] * h[a] + h[b] * h[b]) / 3;
            if (p->cylinder) own = k == 2 ? 2 * round : round + h[2] * h[2] / 3;
            moment[k] += p->mass * c[k];
            inertia[k] += p->mass * (own + c[a] * c[a] + c[b] * c[b]);
        }
        inertia[3] -= p->mass * c[0] * c[1];
        inertia[4] -= p->mass * c[0] * c[2];
        inertia[5] -= p->mass * c[1] * c[2];
    }
    const double c[3] = {moment[0] / mass, moment[1] / mass, moment[2] / mass};
    fprintf(file,
            "  <link name=\"%s\">\n    <inertial>\n      <origin xyz=\"%.9g %.9g %.9g\"/>\n"
            "      <mass value=\"%g\"/>\n      <inertia ixx=\"%.9g\" iyy=\"%.9g\" izz=\"%.9g\""
            " ixy=\"%.9g\" ixz=\"%.9g\" iyz=\"%.9g\"/>\n    </inertial>\n",
            name, c[0], c[1], c[2], mass, inertia[0] - mass * (c[1] * c[1] + c[2] * c[2]),
            inertia[1] - mass * (c[2] * c[2] + c[0] * c[0]),
            inertia[2] - mass * (c[0] * c[0] + c[1] * c[1]), inertia[3] + mass * c[0] * c[1],
            inertia[4] + mass * c[0] * c[2], inertia[5] + mass * c[1] * c[2]);
    for (int i = 0; i < count; i++) {
        const part *p = &parts[i];
        fprintf(file, "    <collision>\n      <origin xyz=\"%g %g %g\"/>\n      <geometry>",
                p->centre[0], sign * p->centre[1], p->centre[2]);
        if (p->cylinder)
            fprintf(file, "<cylinder radius=\"%g\" length=\"%g\"/>", p->half[0], 2 * p->half[2]);
        else
            fprintf(file, "<box size=\"%g %g %g\"/>", 2 * p->half[0], 2 * p->half[1],
                    2 * p->half[2]);
        fprintf(file, "</geometry>\n    </collision>\n");
    }
    fprintf(file, "  </link>\n");
}

static void write_urdf(const char *folder)
{
    FILE *file = data_open(folder, "hand.urdf");
    fprintf(file, "<?xml version=\"1.0\"?>\n<robot name=\"hand\">\n  <link name=\"base\"/>\n");
    put_link(file, "hand", HAND, HAND_PARTS, 1);
    put_link(file, "finger_left", FINGER, FINGER_PARTS, 1);
    put_link(file, "finger_right", FINGER, FINGER_PARTS, -1);
    fprintf(file,
            "  <joint name=\"lift\" type=\"prismatic\">\n    <parent link=\"base\"/>\n"
            "    <child link=\"hand\"/>\n    <origin xyz=\"0 0 %g\"/>\n    <axis xyz=\"0 0 1\"/>\n"
            "    <limit lower=\"-0.05\" upper=\"0.5\" effort=\"300\" velocity=\"1\"/>\n"
            "    <dynamics damping=\"400\"/>\n  </joint>\n",
            REFERENCE_HEIGHT);
    for (int sign = 1; sign >= -1; sign -= 2) {
        const char *side = sign > 0 ? "left" : "right";
        fprintf(file,
                "  <joint name=\"%s\" type=\"prismatic\">\n    <parent link=\"hand\"/>\n"
                "    <child link=\"finger_%s\"/>\n    <origin xyz=\"0 %g 0\"/>\n"
                "    <axis xyz=\"0 %d 0\"/>\n"
                "    <limit lower=\"0\" upper=\"%g\" effort=\"%g\" velocity=\"0.2\"/>\n"
                "    <dynamics damping=\"%g\"/>\n%s  </joint>\n",
                side, side, sign * OPEN, -sign, STROKE, FINGER_FORCE, FINGER_DAMPING,
                sign > 0 ? "" : "    <mimic joint=\"left\"/>\n");
    }
    fprintf(file, "</robot>\n");
    data_close(file, folder, "hand.urdf");
}

/* ---- the grasp scene ---- */

/* The body of the mug; `seen` adds the mesh that does not collide. */
static void put_mug(FILE *file, int seen)
{
    const double inner = MUG_RADIUS_M - MUG_WALL_M, wall_height = MUG_HEIGHT_M - MUG_BOTTOM_M;
    const double wall_mass =
        MUG_DENSITY * PI * wall_height * (MUG_RADIUS_M * MUG_RADIUS_M - inner * inner) / WALL_BOXES;
    fprintf(file,
            "    <body name=\"mug\">\n      <freejoint name=\"mug\"/>\n%s"
            "      <geom type=\"cylinder\" size=\"%g %g\" pos=\"0 0 %g\" density=\"%g\"/>\n",
            seen ? "      <geom type=\"mesh\" mesh=\"mug\" mass=\"0\" contype=\"0\""
                   " conaffinity=\"0\" group=\"2\"/>\n"
                 : "",
            MUG_RADIUS_M, MUG_BOTTOM_M / 2, MUG_BOTTOM_M / 2, MUG_DENSITY);

    /* boxes tangent to the outer wall, wide enough to close it */
    for (int i = 0; i < WALL_BOXES; i++) {
        const double angle = 2 * PI * i / WALL_BOXES, middle = MUG_RADIUS_M - MUG_WALL_M / 2;
        fprintf(file,
                "      <geom type=\"box\" size=\"%g %.6f %g\" pos=\"%.7f %.7f %g\""
                " euler=\"0 0 %.7f\" mass=\"%.7f\"/>\n",
                MUG_WALL_M / 2, MUG_RADIUS_M * tan(PI / WALL_BOXES), wall_height / 2,
                middle * cos(angle), middle * sin(angle), MUG_BOTTOM_M + wall_height / 2, angle,
                wall_mass);
    }

    /* the handle's oval section as capsules of the same area */
    const double area = PI * MUG_HANDLE_WIDE_M * MUG_HANDLE_THICK_M, radius = sqrt(area / PI);
    for (int i = 0; i < HANDLE_CAPSULES; i++) {
        double a[2], b[2], direction[2];
        mug_handle((double)i / HANDLE_CAPSULES, a, direction);
        mug_handle((i + 1.0) / HANDLE_CAPSULES, b, direction);
        fprintf(file,
                "      <geom type=\"capsule\" fromto=\"%.7f 0 %.7f %.7f 0 %.7f\" size=\"%.6f\""
                " mass=\"%.7f\"/>\n",
                a[0], a[1], b[0], b[1], radius,
                MUG_DENSITY * area * hypot(b[0] - a[0], b[1] - a[1]));
    }
    fprintf(file, "    </body>\n");
}

static void write_mug(const char *folder, double mu)
{
    FILE *file = data_open(folder, "mug.xml");
    fprintf(file,
            "<mujoco model=\"mug\">\n  <compiler angle=\"radian\"/>\n"
            "  <default>\n    <geom friction=\"%g 0 0\" condim=\"3\"/>\n  </default>\n"
            "  <worldbody>\n",
            mu);
    put_mug(file, 0);
    fprintf(file, "  </worldbody>\n</mujoco>\n");
    data_close(file, folder, "mug.xml");
}

static void write_grasp(const char *folder, double mu)
{
    /* x, height of the grasp centre, turn, tilt, closing force (N) */
    static const struct grasp {
        const char *name;
        double x, height, turn, tilt, force;
    } GRASPS[] = {{"middle", 0, 0.055, 0, 0, 20},
                  {"rim", 0, 0.075, 0, 0, 20},
                  {"turned", 0, 0.060, 0.785398, 0, 20},
                  {"side", 0, 0.055, 0, -1.570796, 20},
                  {"oblique", 0, 0.073, 0, -0.785398, 20},
                  {"off_centre", 0.008, 0.060, 0, 0, 20},
                  {"handle", 0.064, 0.047, 0, 0, 40},
                  {"weak", 0, 0.055, 0, 0, 1},
                  /* the wall leans more than the friction angle there: the mug is squeezed out */
                  {"edge", -0.034, 0.055, 0, 0, 20}};
    FILE *file = data_open(folder, "grasp.xml");
    fprintf(file,
            "<mujoco model=\"grasp\">\n  <include file=\"hand.xml\"/>\n"
            "  <asset>\n    <mesh name=\"mug\" file=\"mug.obj\"/>\n  </asset>\n"
            "  <worldbody>\n    <geom name=\"floor\" type=\"plane\" size=\"1 1 0.1\""
            " friction=\"%g 0 0\"/>\n",
            mu);
    put_mug(file, 1);
    fprintf(file, "  </worldbody>\n  <keyframe>\n");
    for (size_t i = 0; i < sizeof GRASPS / sizeof GRASPS[0]; i++) {
        const struct grasp *g = &GRASPS[i];
        const double lift = g->height - REFERENCE_HEIGHT;
        fprintf(file,
                "    <key name=\"%s\" qpos=\"%g 0 %g %g %g 0 0 0 0 0 1 0 0 0\""
                " ctrl=\"%g 0 %g %g %g %g %g\"/>\n",
                g->name, g->x, lift, g->turn, g->tilt, g->x, lift, g->turn, g->tilt, g->force,
                g->force);
    }
    fprintf(file, "  </keyframe>\n</mujoco>\n");
    data_close(file, folder, "grasp.xml");
}

int main(int argc, char **argv)
{
    const char *folder = data_folder(argc, argv, "[MU [SPIN]]");
    const double mu = argc > 2 ? strtod(argv[2], NULL) : 0.7;
    const double spin = argc > 3 ? strtod(argv[3], NULL) : 0;
    if (!(mu >= 0 && spin >= 0)) {
        fprintf(stderr, "hand: MU and SPIN are friction coefficients, not negative\n");
        return EXIT_FAILURE;
    }
    write_hand(folder, mu, spin);
    write_urdf(folder);
    write_mug(folder, mu);
    write_grasp(folder, mu);
    return EXIT_SUCCESS;
}
