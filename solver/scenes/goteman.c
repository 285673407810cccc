/* The contact scenes of Göteman and Roxling (GPU Usage for Parallel Functions and Contacts in
 * Modelica, Lund 2015), chapter 7, for `tribo run --contact volume`.
 *
 * The thesis gives: billiards of 100 rows, balls of 1 m, no gravity; a cube of 1 m and 1000 kg, from
 * 1 m above the ground, at 1 m/s, at 1 rad/s; a ring of 750 kg on a fixed fork; 8^3 and 13^3
 * tetrahedra that fall 0.4 s; 125 stones and a bucket; wheels of 744 and 564 triangles, the driver at
 * 1 rad/s; a top at 0.1 rad, 180 rad/s, 0.5 mm above the ground. Density 1000 kg/m^3 and the time
 * steps are the thesis's. All other dimensions, and the speed of the first ball (10 m/s), are chosen
 * here. Z is up. Bodies with an initial velocity have it in the keyframe "start". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "penalty/solid.h"
#include "scenes/scenes.h"

static const double PI = 3.14159265358979323846;
static const double BALL_M = 1, BALL_SPEED = 10, BALL_GAP_M = 1e-3;
static const double CUBE_M = 1;

static void begin(tb_scene_text *t, const char *name, double dt, double gravity)
{
    tb_scene_put(t,
                 "<mujoco model=\"%s\">\n  <compiler angle=\"radian\"/>\n"
                 "  <option timestep=\"%g\" gravity=\"0 0 %g\"/>\n"
                 "  <default>\n    <geom density=\"1000\"/>\n  </default>\n",
                 name, dt, gravity);
}

/* Constants of the volume law for all shapes, or NULL. */
static void put_constants(tb_scene_text *t, const char *constants)
{
    if (constants)
        tb_scene_put(t, "  <custom>\n    <text name=\"volume_law\" data=\"%s\"/>\n  </custom>\n",
                     constants);
}

static void put_ground(tb_scene_text *t, double half)
{
    tb_scene_put(t,
                 "    <geom name=\"ground\" type=\"box\" size=\"%g %g 0.5\" pos=\"0 0 -0.5\"/>\n",
                 half, half);
}

/* ---- billiards ---- */

static void put_ball(tb_scene_text *t, double x, double y)
{
    tb_scene_put(t,
                 "    <body pos=\"%.9g %.9g 0\"><freejoint/>"
                 "<geom type=\"sphere\" size=\"%g\"/></body>\n",
                 x, y, BALL_M / 2);
}

static void write_billiards(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const int32_t rows = recipe->size;
    const double pitch = BALL_M + BALL_GAP_M;
    const int32_t balls = rows * (rows + 1) / 2 + 1;
    begin(t, recipe->name, 0.01, 0);
    put_constants(t, recipe->detail);
    tb_scene_put(t, "  <worldbody>\n");
    put_ball(t, -2 * BALL_M, 0);
    for (int32_t r = 0; r < rows; r++)
        for (int32_t k = 0; k <= r; k++)
            put_ball(t, r * pitch * sqrt(3) / 2, (k - r / 2.0) * pitch);
    tb_scene_put(t, "  </worldbody>\n  <keyframe>\n    <key name=\"start\" qvel=\"%g", BALL_SPEED);
    for (int32_t i = 1; i < 6 * balls; i++) tb_scene_put(t, " 0");
    tb_scene_put(t, "\"/>\n  </keyframe>\n</mujoco>\n");
}

/* ---- one cube ---- */

static void write_cube(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const bool drops = recipe->size == 0;
    begin(t, recipe->name, 0.001, -9.81);
    tb_scene_put(t, "  <worldbody>\n");
    put_ground(t, 5);
    tb_scene_put(t,
                 "    <body name=\"cube\" pos=\"0 0 %.9g\"><freejoint/>"
                 "<geom name=\"cube\" type=\"box\" size=\"%g %g %g\"/></body>\n  </worldbody>\n",
                 CUBE_M / 2 + (drops ? 1 : -0.001304), CUBE_M / 2, CUBE_M / 2, CUBE_M / 2);
    if (!drops)
        tb_scene_put(t, "  <keyframe>\n    <key name=\"start\" qvel=\"%s\"/>\n  </keyframe>\n",
                     recipe->detail);
    tb_scene_put(t, "</mujoco>\n");
}

/* ---- fork and ring ---- */

enum { RING_SEGMENTS = 24 };

/* A tube of rectangular section about the x axis, closed. */
static void put_ring_mesh(tb_scene_text *t, double inner, double outer, double half_width)
{
    const int n = RING_SEGMENTS;
    tb_scene_put(t, "    <mesh name=\"ring\" inertia=\"exact\" vertex=\"");
    for (int k = 0; k < n; k++)
        for (int c = 0; c < 4; c++) {
            const double r = c < 2 ? inner : outer, x = c == 0 || c == 3 ? -half_width : half_width;
            tb_scene_put(t, "%.12g %.12g %.12g  ", x, r * cos(2 * PI * k / n),
                         r * sin(2 * PI * k / n));
        }
    tb_scene_put(t, "\" face=\"");
    for (int k = 0; k < n; k++) {
        const int a = 4 * k, b = 4 * ((k + 1) % n);
        for (int c = 0; c < 4; c++) {
            const int d = (c + 1) % 4;
            tb_scene_put(t, "%d %d %d  %d %d %d  ", a + c, a + d, b + d, a + c, b + d, b + c);
        }
    }
    tb_scene_put(t, "\"/>\n");
}

static void write_fork_ring(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    /* inner and outer polygon of n corners: area n/2 sin(2 pi/n) (R^2 - r^2); 0.75 m^3 in all */
    const double inner = 0.6, outer = 1,
                 area = RING_SEGMENTS / 2.0 * sin(2 * PI / RING_SEGMENTS) *
                        (outer * outer - inner * inner);
    const double half_width = 0.75 / area / 2;
    begin(t, recipe->name, 0.01, -9.81);
    put_constants(t, recipe->detail);
    tb_scene_put(t, "  <asset>\n");
    put_ring_mesh(t, inner, outer, half_width);
    /* a U of three bars as one surface: two prongs along x and the bar that joins them */
    static const double OUTLINE[8][2] = {{-1.2, -0.35}, {-1, -0.35}, {1, -0.35}, {1, -0.25},
                                         {-1, -0.25},   {-1, 0.25},  {1, 0.25},  {1, 0.35}};
    tb_scene_put(t, "    <mesh name=\"fork\" inertia=\"exact\" vertex=\"");
    for (int side = 0; side < 2; side++) {
        for (int k = 0; k < 8; k++)
            tb_scene_put(t, "%g %g %g  ", OUTLINE[k][0], OUTLINE[k][1], side * 0.1);
        tb_scene_put(t, "-1 0.35 %g  -1.2 0.35 %g  ", side * 0.1, side * 0.1);
    }
    /* corners 0 to 7 and 8 (-1, 0.35), 9 (-1.2, 0.35); quads of the bottom, then the walls */
    static const int QUADS[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {0, 1, 8, 9}};
    static const int WALL[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    tb_scene_put(t, "\" face=\"");
    for (int q = 0; q < 2; q++) {
        const int *v = QUADS[q];
        tb_scene_put(t, "%d %d %d  %d %d %d  ", v[0], v[2], v[1], v[0], v[3], v[2]);
        tb_scene_put(t, "%d %d %d  %d %d %d  ", v[0] + 10, v[1] + 10, v[2] + 10, v[0] + 10,
                     v[2] + 10, v[3] + 10);
    }
    /* the bar 0 1 4 5 8 9 as a fan about 0 */
    static const int BAR[6] = {0, 1, 4, 5, 8, 9};
    for (int k = 1; k < 5; k++)
        tb_scene_put(t, "%d %d %d  %d %d %d  ", BAR[0], BAR[k + 1], BAR[k], BAR[0] + 10,
                     BAR[k] + 10, BAR[k + 1] + 10);
    for (int k = 0; k < 10; k++) {
        const int a = WALL[k], b = WALL[(k + 1) % 10];
        tb_scene_put(t, "%d %d %d  %d %d %d  ", a, b, b + 10, a, b + 10, a + 10);
    }
    tb_scene_put(t,
                 "\"/>\n  </asset>\n  <worldbody>\n"
                 "    <geom name=\"fork\" type=\"sdf\" mesh=\"fork\"/>\n"
                 "    <body name=\"ring\" pos=\"0 0 %.9g\"><freejoint/>"
                 "<geom name=\"ring\" type=\"sdf\" mesh=\"ring\"/></body>\n"
                 "  </worldbody>\n</mujoco>\n",
                 0.1 - sqrt(inner * inner - 0.35 * 0.35) + 0.05);
}

/* ---- pile of prisms ---- */

static void write_prisms(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const int32_t side = recipe->size;
    const double edge = 1, pitch = 1.05, lift = 0.785; /* falls 0.4 s: g t^2 / 2 */
    begin(t, recipe->name, 0.001, -9.81);
    tb_scene_put(t,
                 "  <asset>\n    <mesh name=\"prism\" inertia=\"exact\" vertex=\"0 0 0  %g 0 0  "
                 "0 %g 0  0 0 %g\" face=\"0 2 1  0 1 3  0 3 2  1 2 3\"/>\n  </asset>\n"
                 "  <worldbody>\n",
                 edge, edge, edge);
    put_ground(t, 2.0 * side + 10);
    for (int32_t i = 0; i < side * side * side; i++)
        tb_scene_put(t,
                     "    <body pos=\"%.9g %.9g %.9g\"><freejoint/>"
                     "<geom type=\"mesh\" mesh=\"prism\"/></body>\n",
                     (i % side - side / 2.0) * pitch, (i / side % side - side / 2.0) * pitch,
                     i / (side * side) * pitch + lift);
    tb_scene_put(t, "  </worldbody>\n</mujoco>\n");
}

/* ---- bucket ---- */

enum { STONES_ALONG = 5 };

static void put_stone_mesh(tb_scene_text *t, int32_t number, double size, tb_random *random)
{
    tb_scene_put(t, "    <mesh name=\"stone%d\" inertia=\"convex\" vertex=\"", number);
    for (int c = 0; c < 8; c++) {
        for (int k = 0; k < 3; k++)
            tb_scene_put(t, "%.6f ",
                         size * ((c >> k & 1) - 0.5 + 0.3 * (tb_random_uniform(random) - 0.5)));
        tb_scene_put(t, " ");
    }
    tb_scene_put(t, "\"/>\n");
}

static void write_bucket(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    const double size = 0.2, pitch = 0.26, wall = 0.8;
    const int32_t stones = STONES_ALONG * STONES_ALONG * STONES_ALONG;
    tb_random random = tb_random_stream(125, 0);
    begin(t, recipe->name, 0.001, -9.81);
    tb_scene_put(t, "  <asset>\n");
    for (int32_t i = 0; i < stones; i++) put_stone_mesh(t, i, size, &random);
    tb_scene_put(t, "  </asset>\n  <worldbody>\n");
    put_ground(t, 5);
    /* a railing of four walls */
    for (int k = 0; k < 4; k++)
        tb_scene_put(t, "    <geom type=\"box\" size=\"%g %g 0.3\" pos=\"%g %g 0.3\"/>\n",
                     k < 2 ? 0.05 : wall + 0.1, k < 2 ? wall : 0.05,
                     k < 2 ? (2 * k - 1) * (wall + 0.05) : 0,
                     k < 2 ? 0 : (2 * k - 5) * (wall + 0.05));
    for (int32_t i = 0; i < stones; i++)
        tb_scene_put(t,
                     "    <body pos=\"%.6g %.6g %.6g\"><freejoint/>"
                     "<geom type=\"mesh\" mesh=\"stone%d\"/></body>\n",
                     (i % 5 - 2) * pitch, (i / 5 % 5 - 2) * pitch, i / 25 * pitch + 0.16, i);
    /* a bucket of three plates on two slides; its mass makes the trajectory a prescribed one */
    tb_scene_put(t, "    <body name=\"bucket\" pos=\"-1.3 0 1.1\" gravcomp=\"1\">\n"
                    "      <inertial pos=\"0 0 0\" mass=\"1e9\" diaginertia=\"1e9 1e9 1e9\"/>\n"
                    "      <joint name=\"forward\" type=\"slide\" axis=\"1 0 0\"/>\n"
                    "      <joint name=\"down\" type=\"slide\" axis=\"0 0 -1\"/>\n"
                    "      <geom type=\"box\" size=\"0.25 0.3 0.02\" pos=\"0.25 0 0\"/>\n"
                    "      <geom type=\"box\" size=\"0.02 0.3 0.2\" pos=\"-0.02 0 0.18\"/>\n"
                    "      <geom type=\"box\" size=\"0.25 0.02 0.15\" pos=\"0.25 0.32 0.13\"/>\n"
                    "      <geom type=\"box\" size=\"0.25 0.02 0.15\" pos=\"0.25 -0.32 0.13\"/>\n"
                    "    </body>\n  </worldbody>\n  <keyframe>\n    <key name=\"start\" qvel=\"");
    for (int32_t i = 0; i < 6 * stones; i++) tb_scene_put(t, "0 ");
    tb_scene_put(t, "0.5 0.15\"/>\n  </keyframe>\n</mujoco>\n");
}

/* ---- Tippe Top ---- */

static void write_tippe_top(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    /* dimensions of Leine and Glocker (2003): the origin is the centre of mass */
    const double radius = 0.015, centre = 0.003, tilt = 0.1;
    begin(t, recipe->name, 1e-4, -9.81);
    tb_scene_put(t,
                 "  <worldbody>\n    <geom name=\"ground\" type=\"plane\" size=\"1 1 0.1\"/>\n"
                 "    <body name=\"top\" pos=\"0 0 %.9g\" euler=\"%g 0 0\"><freejoint/>\n"
                 "      <inertial pos=\"0 0 0\" mass=\"0.006\" diaginertia=\"8e-7 8e-7 7e-7\"/>\n"
                 "      <geom name=\"ball\" type=\"sphere\" size=\"%g\" pos=\"0 0 %g\"/>\n"
                 "      <geom name=\"stem\" type=\"sphere\" size=\"0.005\" pos=\"0 0 0.016\"/>\n"
                 "    </body>\n  </worldbody>\n  <keyframe>\n"
                 "    <key name=\"start\" qvel=\"0 0 0 0 0 180\"/>\n  </keyframe>\n</mujoco>\n",
                 radius - centre * cos(tilt) + 0.0005, tilt, radius, centre);
}

/* ---- Geneva drive ---- */

enum { SLOTS = 4, WHEEL_CORNERS = 187, LOCK_CORNERS = 111, PIN_CORNERS = 32, SLOT_CORNERS = 17 };

/* m; sin and cos of 45 degrees times the distance of the axes give crank and wheel */
static const double AXES_M = 1, PIN_M = 0.05, SLOT_GAP_M = 0.003, STOP_M = 0.5, STOP_GAP_M = 0.01;
static const double LID_M = 0.1, DRIVES_M = 3;

static int32_t put_point(double *outline, int32_t n, double x, double y, double angle)
{
    outline[2 * n] = x * cos(angle) - y * sin(angle);
    outline[2 * n + 1] = x * sin(angle) + y * cos(angle);
    return n + 1;
}

/* Four times an arc that the driver's disc locks, and a slot for its pin. */
static void wheel_outline(double outline[2 * WHEEL_CORNERS])
{
    const double radius = AXES_M * cos(PI / SLOTS), width = PIN_M + SLOT_GAP_M;
    const double cut = (AXES_M * AXES_M + radius * radius - STOP_M * STOP_M) / (2 * AXES_M);
    const double opening = atan2(sqrt(radius * radius - cut * cut), AXES_M - cut);
    const double bottom = AXES_M - AXES_M * sin(PI / SLOTS),
                 mouth = sqrt(radius * radius - width * width);
    int32_t n = 0;
    for (int k = 0; k < SLOTS; k++) {
        const double arc = 2 * PI * k / SLOTS, slot = arc + PI / SLOTS;
        const int corners = k < 3 ? 28 : 27;
        for (int i = 0; i < corners; i++) {
            const double a = opening * (2.0 * i / (corners - 1) - 1);
            n = put_point(outline, n, AXES_M - STOP_M * cos(a), STOP_M * sin(a), arc);
        }
        n = put_point(outline, n, mouth, -width, slot);
        for (int i = 0; i < SLOT_CORNERS; i++) {
            const double a = PI * i / (SLOT_CORNERS - 1);
            n = put_point(outline, n, bottom - width * sin(a), -width * cos(a), slot);
        }
        n = put_point(outline, n, mouth, width, slot);
    }
}

/* A disc with a hollow for the wheel's tips on the side of the pin. */
static void lock_outline(double outline[2 * LOCK_CORNERS])
{
    enum { HOLLOW = 26 };
    const double radius = STOP_M - STOP_GAP_M, hollow = AXES_M * cos(PI / SLOTS) + 0.02;
    const double cut = (radius * radius + AXES_M * AXES_M - hollow * hollow) / (2 * AXES_M);
    const double begins = acos(cut / radius), opening = atan2(radius * sin(begins), AXES_M - cut);
    int32_t n = 0;
    for (int i = 0; i < LOCK_CORNERS - HOLLOW; i++) {
        const double a = begins + (2 * PI - 2 * begins) * i / (LOCK_CORNERS - HOLLOW - 1);
        n = put_point(outline, n, radius, 0, a);
    }
    for (int i = 1; i <= HOLLOW; i++) {
        const double a = opening * (2.0 * i / (HOLLOW + 1) - 1);
        n = put_point(outline, n, AXES_M - hollow * cos(a), hollow * sin(a), 0);
    }
}

static void put_mesh(tb_scene_text *t, const char *name, const double *outline, int32_t count)
{
    tb_surface_mesh m = {0};
    if (t->status == TB_OK) t->status = tb_surface_mesh_extrude(&m, outline, count, 0, LID_M, NULL);
    tb_scene_put(t, "    <mesh name=\"%s\" inertia=\"exact\" vertex=\"", name);
    for (int32_t v = 0; v < m.number_of_vertices; v++)
        tb_scene_put(t, "%.12g %.12g %.12g  ", m.vertices[3 * v], m.vertices[3 * v + 1],
                     m.vertices[3 * v + 2]);
    tb_scene_put(t, "\" face=\"");
    for (int32_t i = 0; i < m.number_of_triangles; i++)
        tb_scene_put(t, "%d %d %d  ", m.triangles[3 * i], m.triangles[3 * i + 1],
                     m.triangles[3 * i + 2]);
    tb_scene_put(t, "\"/>\n");
    tb_surface_mesh_free(&m);
}

/* The driver's inertia is so large that it keeps 1 rad/s. */
static void write_geneva(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    double wheel[2 * WHEEL_CORNERS], lock[2 * LOCK_CORNERS], pin[2 * PIN_CORNERS];
    wheel_outline(wheel);
    lock_outline(lock);
    for (int i = 0; i < PIN_CORNERS; i++) put_point(pin, i, PIN_M, 0, 2 * PI * i / PIN_CORNERS);
    begin(t, recipe->name, 0.005, -9.81);
    tb_scene_put(t, "  <asset>\n");
    put_mesh(t, "wheel", wheel, WHEEL_CORNERS);
    put_mesh(t, "lock", lock, LOCK_CORNERS);
    put_mesh(t, "pin", pin, PIN_CORNERS);
    tb_scene_put(t, "  </asset>\n  <worldbody>\n");
    for (int32_t i = 0; i < recipe->size; i++) {
        char number[12] = "";
        if (i > 0) snprintf(number, sizeof number, "%d", (int)i + 1);
        tb_scene_put(
            t,
            "    <body name=\"wheel%s\" pos=\"0 %g 0\">\n"
            "      <joint name=\"wheel%s\" type=\"hinge\" axis=\"0 0 1\"/>\n"
            "      <geom name=\"wheel%s\" type=\"sdf\" mesh=\"wheel\"/>\n    </body>\n"
            "    <body name=\"driver%s\" pos=\"%g %g 0\">\n"
            "      <inertial pos=\"0 0 0\" mass=\"1000\" diaginertia=\"1e9 1e9 1e9\"/>\n"
            "      <joint name=\"driver%s\" type=\"hinge\" axis=\"0 0 1\"/>\n"
            "      <geom name=\"lock%s\" type=\"sdf\" mesh=\"lock\" pos=\"0 0 -0.005\"/>\n"
            "      <geom name=\"pin%s\" type=\"sdf\" mesh=\"pin\" pos=\"%.12g 0 -0.005\"/>\n"
            "    </body>\n",
            number, DRIVES_M * i, number, number, number, AXES_M, DRIVES_M * i, number, number,
            number, AXES_M * sin(PI / SLOTS));
    }
    tb_scene_put(t, "  </worldbody>\n  <keyframe>\n    <key name=\"start\" qvel=\"");
    for (int32_t i = 0; i < recipe->size; i++) tb_scene_put(t, "%s0 1", i > 0 ? " " : "");
    tb_scene_put(t, "\"/>\n  </keyframe>\n</mujoco>\n");
}

#define SOURCE "Goteman and Roxling, chapter 7"
const tb_scene_recipe tb_scenes_goteman[] = {
    {.name = "billiards",
     .summary = "5,051 balls in a plane: a triangle of 100 rows and one ball shot at it",
     .source = SOURCE,
     .write = write_billiards,
     .size = 100},
    {.name = "billiards_10",
     .summary = "56 balls in a plane: a triangle of 10 rows and one ball shot at it",
     .source = SOURCE,
     .write = write_billiards,
     .size = 10},
    {.name = "billiards_hertz_10",
     .summary = "the 56 balls, repelled by Hertz in the place of springs",
     .source = SOURCE,
     .write = write_billiards,
     .size = 10,
     .detail = "sphere_stiffness=0"},
    {.name = "cube_drop",
     .summary = "a cube of 1 m and 1000 kg falls from 1 m above the ground",
     .source = SOURCE,
     .write = write_cube,
     .size = 0},
    {.name = "cube_friction",
     .summary = "the cube on the ground, sliding at 1 m/s",
     .source = SOURCE,
     .write = write_cube,
     .size = 1,
     .detail = "1 0 0 0 0 0"},
    {.name = "cube_spin",
     .summary = "the cube on the ground, spinning at 1 rad/s",
     .source = SOURCE,
     .write = write_cube,
     .size = 1,
     .detail = "0 0 0 0 0 1"},
    {.name = "fork_ring",
     .summary = "a ring of 750 kg that hangs on the two prongs of a fork",
     .source = SOURCE,
     .write = write_fork_ring},
    {.name = "fork_ring_joined",
     .summary = "the ring on its fork, pushed at one point: both overlaps are one contact",
     .source = SOURCE,
     .write = write_fork_ring,
     .detail = "joined=1"},
    {.name = "prisms_27",
     .summary = "27 tetrahedra fall onto the ground",
     .source = SOURCE,
     .write = write_prisms,
     .size = 3},
    {.name = "prisms_125",
     .summary = "125 tetrahedra fall onto the ground",
     .source = SOURCE,
     .write = write_prisms,
     .size = 5},
    {.name = "prisms_512",
     .summary = "512 tetrahedra fall onto the ground",
     .source = SOURCE,
     .write = write_prisms,
     .size = 8},
    {.name = "prisms_2197",
     .summary = "2,197 tetrahedra fall onto the ground",
     .source = SOURCE,
     .write = write_prisms,
     .size = 13},
    {.name = "bucket",
     .summary = "a bucket on its way through 125 irregular stones within a railing",
     .source = SOURCE,
     .write = write_bucket},
    {.name = "geneva",
     .summary = "a Geneva drive: wheels of 744 and 564 triangles, the driver at 1 rad/s",
     .source = SOURCE,
     .write = write_geneva,
     .size = 1},
    {.name = "geneva_12",
     .summary = "twelve Geneva drives side by side",
     .source = SOURCE,
     .write = write_geneva,
     .size = 12},
    {.name = "tippe_top",
     .summary = "a hollow ball with a stem, spun at 180 rad/s, which turns over",
     .source = SOURCE,
     .write = write_tippe_top},
    {.name = NULL}};
