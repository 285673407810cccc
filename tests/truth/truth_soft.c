/* Eulerian solids (solver/grid) against mechanics: momentum, beams, a bouncing ball, an incline. */
#include <string.h>

#include "grid/grid_internal.h"
#include "common_truth.h"

static tb_error error;
static const double G = 9.81;

/* One body in a grid of cubes; one thread. */
static tb_soft_scene scene_of(tb_soft_shape_kind kind, double h, const int32_t nodes[3],
                              const double origin[3])
{
    tb_soft_scene s = {.options = tb_soft_options_defaults()};
    tb_soft_body *b = s.bodies;
    s.options.threads = 1;
    s.number_of_bodies = 1;
    strcpy(b->name, "body");
    b->shape.kind = kind;
    b->shape.pose = tb_pose_identity();
    b->material =
        (tb_soft_material){.density = 1000, .young = 1e5, .poisson = 0.3, .damping = 2e-3};
    for (int a = 0; a < 3; a++) {
        s.lattice.nodes[a] = nodes[a];
        s.lattice.origin[a] = origin[a];
        s.lattice.spacing[a] = h;
    }
    return s;
}

static void add_floor(tb_soft_scene *s, double height)
{
    tb_soft_obstacle *o = s->obstacles + s->number_of_obstacles++;
    strcpy(o->name, "floor");
    o->shape.kind = TB_SOFT_PLANE;
    o->shape.pose = tb_pose_identity();
    o->shape.pose.position.z = height;
}

static tb_soft_world *world_of(const tb_soft_scene *s)
{
    tb_soft_world *w;
    TEST_OK(tb_soft_world_create(s, &w, &error), &error);
    return w;
}

/* ---- nothing outside acts ---- */

static void fly(tb_soft_advection advection)
{
    const int32_t nodes[3] = {22, 22, 22};
    const double origin[3] = {-1.05, -1.05, -1.05};
    tb_soft_scene s = scene_of(TB_SOFT_SPHERE, 0.1, nodes, origin);
    tb_soft_certificate start, end;
    s.bodies[0].shape.size[0] = 0.5;
    s.bodies[0].velocity[0] = 0.5;
    s.bodies[0].angular[2] = 2;
    s.options.dt = 2e-3;
    s.options.advection = advection;
    tb_soft_world *w = world_of(&s);
    TEST_OK(tb_soft_step(w, 0, &start, &error), &error);
    TEST_OK(tb_soft_step(w, 40, &end, &error), &error);
    for (int a = 0; a < 3; a++) {
        TEST_NEAR(end.momentum[a], start.momentum[a], 1e-10 * start.momentum[0]);
        TEST_NEAR(end.angular[a], start.angular[a], 1e-10 * start.angular[2]);
    }
    ck_assert(end.momentum_error <= 1e-10 * start.momentum[0]);
    TEST_NEAR_RELATIVE(end.kinetic + end.elastic, start.kinetic + start.elastic, 5e-3);
    double centre[3];
    tb_soft_world_measure(w, 0, NULL, NULL, centre);
    TEST_NEAR(centre[0], 0.04, 5e-5);
    tb_soft_world_destroy(w);
}

START_TEST(a_ball_that_flies_and_turns_keeps_its_momentum)
{
    fly(TB_SOFT_FIRST_ORDER);
    fly(TB_SOFT_SECOND_ORDER);
}
END_TEST

START_TEST(two_balls_that_collide_keep_the_sum_of_their_momenta)
{
    const int32_t nodes[3] = {34, 22, 20};
    const double origin[3] = {-1.65, -1.05, -0.95};
    tb_soft_scene s = scene_of(TB_SOFT_SPHERE, 0.1, nodes, origin);
    tb_soft_certificate c, whole = {0};
    double energy;
    s.number_of_bodies = 2;
    s.bodies[1] = s.bodies[0];
    strcpy(s.bodies[1].name, "other");
    s.bodies[1].material.density = 2000;
    for (int b = 0; b < 2; b++) {
        s.bodies[b].shape.size[0] = 0.5;
        s.bodies[b].shape.pose.position = tb_v3(b == 0 ? -0.55 : 0.55, b == 0 ? 0 : 0.13, 0);
        s.bodies[b].velocity[0] = b == 0 ? 3 : -1;
    }
    s.options.dt = 2e-3;
    tb_soft_world *w = world_of(&s);
    TEST_OK(tb_soft_step(w, 0, &c, &error), &error);
    const double momentum[3] = {c.momentum[0], c.momentum[1], c.momentum[2]};
    const double angular = c.angular[2], start = c.kinetic;
    energy = start;
    for (int i = 0; i < 40; i++) {
        TEST_OK(tb_soft_step(w, 2, &c, &error), &error);
        tb_soft_certificate_merge(&whole, &c);
        const double now = c.kinetic + c.elastic;
        ck_assert_msg(now <= energy + 2e-4 * start, "energy grows from %g to %g J at %g s", energy,
                      now, c.time);
        energy = now;
    }
    TEST_OK(whole.status, NULL);
    ck_assert(whole.contact_work < 0);
    for (int a = 0; a < 3; a++) TEST_NEAR(c.momentum[a], momentum[a], 1e-10 * 1000 * 3 * 4.19 / 8);
    TEST_NEAR(c.angular[2], angular, 0.02 * fabs(angular));
    double first[3], second[3];
    tb_soft_world_measure(w, 0, NULL, first, NULL);
    tb_soft_world_measure(w, 1, NULL, second, NULL);
    /* m/s: they came at 4 and have a quarter left, the rest is in their compression */
    ck_assert(fabs(first[0] - second[0] / 2) / (1000 * 4.19 / 8) < 1);
    tb_soft_world_destroy(w);
}
END_TEST

/* ---- statics, by damped motion ---- */

/* Depth (m) of the deflection at a node after `periods` of the lowest mode, with 0.7 of its critical damping. */
static double settle(const tb_soft_scene *s, double period, double periods, const int32_t at[3])
{
    tb_soft_world *w = world_of(s);
    tb_soft_field *f = tb_soft_world_field(w, 0);
    const int32_t *n = s->lattice.nodes;
    const size_t all = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
    const double keep = 1 - 2 * 0.7 * 6.2831853 / period * s->options.dt; /* 0.7 of critical */
    const int32_t steps = (int32_t)(periods * period / s->options.dt);
    for (int32_t i = 0; i < steps; i++) {
        TEST_OK(tb_soft_step(w, 1, NULL, &error), &error);
        for (size_t k = 0; k < 3 * all; k++) f->v[k] *= keep;
    }
    const size_t node = (size_t)(at[0] + n[0] * (at[1] + n[1] * at[2]));
    const double depth =
        f->X[3 * node + 2] - (s->lattice.origin[2] + at[2] * s->lattice.spacing[2]);
    tb_soft_world_destroy(w);
    return depth;
}

/* A bar of cells along an axis, clamped where `clamp_upper` or `clamp_lower` says. */
static tb_soft_scene bar_of(double h, const int32_t cells[3], tb_soft_law law)
{
    const int32_t nodes[3] = {cells[0] + 9, cells[1] + 9, cells[2] + 9};
    const double origin[3] = {-4 * h, -4 * h, -4 * h};
    tb_soft_scene s = scene_of(TB_SOFT_BOX, h, nodes, origin);
    tb_soft_body *b = s.bodies;
    b->material = (tb_soft_material){.law = law, .density = 1000, .young = 1e6};
    for (int a = 0; a < 3; a++) {
        b->shape.size[a] = cells[a] * h / 2;
        s.clamps[0].lower[a] = -1e3;
        s.clamps[0].upper[a] = 1e3;
    }
    b->shape.pose.position = tb_v3(b->shape.size[0], b->shape.size[1], b->shape.size[2]);
    s.number_of_clamps = 1;
    s.options.advection = TB_SOFT_FIRST_ORDER;
    s.options.dt = 0.44 * h / sqrt(1e6 / 1000);
    return s;
}

START_TEST(a_bar_hangs_longer_by_its_own_weight)
{
    const int32_t cells[3] = {1, 1, 8}, tip[3] = {4, 4, 4};
    const double length = 0.8, speed = sqrt(1e6 / 1000);
    for (int law = 0; law < 3; law++) {
        tb_soft_scene s = bar_of(0.1, cells, (tb_soft_law)law);
        s.gravity[2] = -0.1;
        s.clamps[0].lower[2] = length;
        const double depth = settle(&s, 4 * length / speed, 1.6, tip);
        TEST_NEAR_RELATIVE(depth, 1000 * 0.1 * length * length / (2 * 1e6), 5e-3);
    }
}
END_TEST

/* Deflection of a cantilever with `n` cells across its height over that of Timoshenko's beam. */
static double cantilever(int32_t n)
{
    const double height = 0.2, length = 0.6, load = 1000 * 0.01 * height;
    const double h = height / n;
    const int32_t cells[3] = {3 * n, 1, n}, tip[3] = {4 + 3 * n, 4, 4 + n / 2};
    tb_soft_scene s = bar_of(h, cells, TB_SOFT_NEO_HOOKEAN);
    s.gravity[2] = -0.01;
    s.clamps[0].upper[0] = 0;
    const double bending = load * pow(length, 4) / (8 * 1e6 * pow(height, 3) / 12);
    const double shear = load * length * length / (2 * 5.0 / 6 * 0.5e6 * height);
    const double period = 1.787 * length * length / (height * sqrt(1000 / 12.0));
    return settle(&s, period, 1.7, tip) / (bending + shear);
}

START_TEST(a_cantilever_bends_like_timoshenkos)
{
    const double w[4] = {cantilever(1), cantilever(2), cantilever(4), cantilever(8)};
    const double order = log2((w[2] - w[1]) / (w[3] - w[2]));
    printf("cantilever: %.4f %.4f %.4f %.4f of Timoshenko's, order %.2f\n", w[0], w[1], w[2], w[3],
           order);
    ck_assert_msg(order > 1.5 && order < 2.5, "order %g of %g %g %g %g", order, w[0], w[1], w[2],
                  w[3]);
    TEST_NEAR(w[3], 1, 0.01);
}
END_TEST

/* ---- contact ---- */

START_TEST(a_bouncing_balls_energy_never_grows)
{
    const int32_t nodes[3] = {21, 21, 24};
    const double origin[3] = {-1, -1, -0.53};
    tb_soft_scene s = scene_of(TB_SOFT_SPHERE, 0.1, nodes, origin);
    tb_soft_certificate c, whole = {0};
    s.bodies[0].shape.size[0] = 0.5;
    s.bodies[0].shape.pose.position = tb_v3(0, 0, 0.52);
    s.bodies[0].velocity[2] = -3;
    s.gravity[2] = -G;
    s.options.dt = 2e-3;
    add_floor(&s, 0);
    tb_soft_world *w = world_of(&s);
    TEST_OK(tb_soft_step(w, 0, &c, &error), &error);
    double energy = c.kinetic + c.elastic + c.potential, up = 0;
    const double start = c.kinetic, mass = 1000 * 4.18879 / 8;
    for (int i = 0; i < 75; i++) {
        TEST_OK(tb_soft_step(w, 2, &c, &error), &error);
        tb_soft_certificate_merge(&whole, &c);
        const double now = c.kinetic + c.elastic + c.potential;
        ck_assert_msg(now <= energy + 1e-3 * start, "energy grows from %g to %g J at %g s", energy,
                      now, c.time);
        energy = now;
        up = c.momentum[2] / mass;
    }
    ck_assert_msg(up > 0.8 && up < 2, "rebounds with %g m/s", up);
    ck_assert_msg(fabs(c.momentum[0]) + fabs(c.momentum[1]) < 0.01 * mass * 3,
                  "deflected sideways: %g %g", c.momentum[0], c.momentum[1]);
    TEST_OK(whole.status, NULL);
    ck_assert(whole.momentum_error <= 1e-10 * 3 * mass);
    ck_assert(whole.penetration < 0.02);
    ck_assert(whole.normal.residual < 1e-9 && whole.tangential.residual < 1e-9);
    tb_soft_world_destroy(w);
}
END_TEST

/* ---- squeezed between two plates ---- */

/* Adds a plate above that comes down. */
static void add_press(tb_soft_scene *s, double height, double speed)
{
    tb_soft_obstacle *o = s->obstacles + s->number_of_obstacles++;
    strcpy(o->name, "press");
    o->shape.kind = TB_SOFT_PLANE;
    o->shape.pose = tb_pose_identity();
    o->shape.pose.rotation.m[4] = o->shape.pose.rotation.m[8] = -1; /* half a turn about x */
    o->shape.pose.position.z = height;
    o->velocity[2] = -speed;
}

/* Mean force (N) of both plates over the last tenth of `steps` steps. */
static double press(const tb_soft_scene *s, int32_t steps, tb_soft_certificate *whole)
{
    tb_soft_world *w = world_of(s);
    double impulse = 0;
    const int32_t last = steps / 10;
    memset(whole, 0, sizeof *whole);
    for (int32_t i = 0; i < steps; i++) {
        tb_soft_certificate c;
        int32_t n;
        TEST_OK(tb_soft_step(w, 1, &c, &error), &error);
        ck_assert_int_eq(c.substeps, 1);
        tb_soft_certificate_merge(whole, &c);
        const tb_soft_contact *contacts = tb_soft_world_contacts(w, &n);
        for (int32_t k = 0; i >= steps - last && k < n; k++)
            impulse += fabs(contacts[k].alpha * contacts[k].normal[2]);
    }
    tb_soft_world_destroy(w);
    return impulse / (2 * last * s->options.dt);
}

/* Force (N) of a cube with `n` cells an edge, 0.2 m, squeezed by a tenth less half of the last tenth. */
static double squeeze_cube(int32_t n, double friction)
{
    const double edge = 0.2, h = edge / n, speed = 0.04;
    const int32_t nodes[3] = {n + 11, n + 11, n + 11};
    const double origin[3] = {-5 * h, -5 * h, -5 * h};
    tb_soft_scene s = scene_of(TB_SOFT_BOX, h, nodes, origin);
    tb_soft_certificate c;
    for (int a = 0; a < 3; a++) s.bodies[0].shape.size[a] = edge / 2;
    s.bodies[0].shape.pose.position = tb_v3(edge / 2, edge / 2, edge / 2);
    s.options.friction = friction;
    s.bodies[0].material.damping = 5e-4;
    s.options.dt = 3e-3 / n;
    add_floor(&s, 0);
    add_press(&s, edge, speed);
    const double force = press(&s, (int32_t)(0.1 * edge / (speed * s.options.dt) + 0.5), &c);
    TEST_OK(c.status, NULL);
    return force;
}

/* Force (N) of a neo-Hookean cube of 0.2 m in uniaxial stress at a stretch. */
static double uniaxial_force(double stretch)
{
    const double young = 1e5, poisson = 0.3, mu = young / (2 * (1 + poisson));
    const double lambda = young * poisson / ((1 + poisson) * (1 - 2 * poisson));
    double t = 1; /* square of the lateral stretch: mu (t - 1) + lambda ln(stretch t) = 0 */
    for (int i = 0; i < 50; i++)
        t -= (mu * (t - 1) + lambda * log(stretch * t)) / (mu + lambda / t);
    return -0.04 * (mu * (stretch * stretch - 1) + lambda * log(stretch * t)) / stretch;
}

START_TEST(a_cube_between_smooth_plates_is_in_uniaxial_stress)
{
    const double exact = uniaxial_force(1 - 0.095);
    const double coarse = squeeze_cube(4, 0), fine = squeeze_cube(8, 0);
    printf("cube, smooth plates: %.2f %.2f N, exact %.2f N\n", coarse, fine, exact);
    TEST_NEAR_RELATIVE(coarse, exact, 0.04);
    TEST_NEAR_RELATIVE(fine, exact, 0.02);
}
END_TEST

START_TEST(a_cube_between_rough_plates_agrees_with_a_finer_grid)
{
    const double smooth = uniaxial_force(1 - 0.095);
    const double coarse = squeeze_cube(4, 1), middle = squeeze_cube(6, 1);
    const double fine = squeeze_cube(8, 1);
    printf("cube, rough plates: %.2f %.2f %.2f N\n", coarse, middle, fine);
    ck_assert(fine > 1.02 * smooth);
    TEST_NEAR_RELATIVE(coarse, fine, 0.05);
    TEST_NEAR_RELATIVE(middle, fine, 0.02);
    ck_assert(fabs(middle - fine) < 0.6 * fabs(coarse - fine));
}
END_TEST

/* ---- a pad on a wall that shakes ---- */

/* Moves the first obstacle by `way` within the next step. */
static void move_wall(tb_soft_world *w, const double way[3])
{
    tb_soft_obstacle *wall = w->scene.obstacles;
    double place[3];
    tb_v3_store(place, wall->shape.pose.position);
    for (int a = 0; a < 3; a++) {
        const double velocity = way[a] / w->scene.options.dt;
        place[a] += w->time * (wall->velocity[a] - velocity);
        wall->velocity[a] = velocity;
    }
    wall->shape.pose.position = tb_v3_load(place);
}

/* Where the material at x was at the start. */
static tb_vec3 material_at(tb_soft_world *w, const double x[3])
{
    const tb_soft_lattice *l = &w->scene.lattice;
    int32_t at[3];
    double u[3], X[24], sum[3] = {0};
    for (int a = 0; a < 3; a++) {
        u[a] = (x[a] - l->origin[a]) / l->spacing[a];
        at[a] = (int32_t)floor(u[a]);
        u[a] -= at[a];
    }
    tb_soft_gather(w, w->fields[0].X, tb_soft_node(w, at[0], at[1], at[2]), X);
    for (int c = 0; c < 8; c++)
        for (int a = 0; a < 3; a++) sum[a] += tb_soft_shape(c, u) * X[3 * c + a];
    return tb_v3_load(sum);
}

static double normal_impulse(tb_soft_world *w)
{
    int32_t n;
    const tb_soft_contact *contacts = tb_soft_world_contacts(w, &n);
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += contacts[i].alpha;
    return sum / w->last_dt;
}

/* A pad of 20 x 20 x 10 mm hangs from a clamp, and a wall is pressed into it by 0.5 mm. The wall then
 * shakes along itself by 0.4 mm, which friction carries: pressure and place stay. */
START_TEST(a_pad_on_a_shaking_wall_keeps_its_pressure_and_does_not_slip)
{
    const double h = 5e-3, height = 2e-3, press = 5e-4, shake = 4e-4, period = 0.02;
    const int32_t nodes[3] = {15, 15, 14};
    const double origin[3] = {-0.033, -0.033, -0.025};
    tb_soft_scene s = scene_of(TB_SOFT_BOX, h, nodes, origin);
    tb_soft_certificate c, whole = {0};
    const double size[3] = {0.01, 0.01, 0.005};
    memcpy(s.bodies[0].shape.size, size, sizeof size);
    s.bodies[0].shape.pose.position = tb_v3(0, 0, height + size[2]);
    s.bodies[0].material =
        (tb_soft_material){.density = 1100, .young = 5e4, .poisson = 0.4, .damping = 2e-4};
    s.options.friction = 0.7;
    s.options.dt = 5e-4;
    s.number_of_clamps = 1;
    s.clamps[0] = (tb_soft_clamp){.lower = {-1, -1, height + size[2]}, .upper = {1, 1, 1}};
    add_floor(&s, height);
    tb_soft_world *w = world_of(&s);
    for (int i = 0; i < 40; i++) {
        move_wall(w, (double[3]){0, 0, i < 20 ? press / 20 : 0});
        TEST_OK(tb_soft_step(w, 1, NULL, &error), &error);
    }
    const double under[3] = {0, 0, height + press}, force = normal_impulse(w);
    const tb_vec3 start = material_at(w, under);
    for (int i = 0; i < 80; i++) {
        const double from = shake * sin(2 * 3.14159265358979 * i * s.options.dt / period);
        const double to = shake * sin(2 * 3.14159265358979 * (i + 1) * s.options.dt / period);
        move_wall(w, (double[3]){to - from, 0, 0});
        TEST_OK(tb_soft_step(w, 1, &c, &error), &error);
        tb_soft_certificate_merge(&whole, &c);
    }
    const tb_vec3 way = tb_v3_sub(material_at(w, under), start);
    const double slip = hypot(way.x, way.y);
    printf("shaken pad: %.3f of %.3f N, slips by %.1f um, overlaps %.1f um\n", normal_impulse(w),
           force, 1e6 * slip, 1e6 * whole.penetration);
    TEST_OK(whole.status, NULL);
    TEST_NEAR_RELATIVE(normal_impulse(w), force, 0.05);
    ck_assert(slip < 1e-5);
    ck_assert(whole.penetration < 1.5e-4);
    tb_soft_world_destroy(w);
}
END_TEST

/* A flat block of jelly on an incline down the grid's x, after `steps`. */
typedef struct slide {
    double place, velocity; /* m, m/s, of the mass centre along the slope */
    double moved, change;   /* of both in the second half of the steps */
    double ratio;           /* of the last substep's tangential impulse to the normal one */
    tb_soft_certificate whole;
} slide;

static slide slide_down(double degrees, int32_t steps, tb_soft_contact_method method)
{
    const int32_t nodes[3] = {18, 14, 12};
    const double origin[3] = {-0.6, -0.6, -0.6}, slope = degrees * 3.14159265358979 / 180;
    tb_soft_scene s = scene_of(TB_SOFT_BOX, 0.15, nodes, origin);
    tb_soft_certificate c;
    slide r = {.velocity = 0};
    double momentum[3], centre[3];
    const double size[3] = {0.3, 0.3, 0.15}, mass = 1000 * 8 * 0.3 * 0.3 * 0.15;
    memcpy(s.bodies[0].shape.size, size, sizeof size);
    s.bodies[0].shape.pose.position = tb_v3(0.3, 0.3, 0.15);
    s.bodies[0].material.damping = 2e-2;
    s.gravity[0] = G * sin(slope);
    s.gravity[2] = -G * cos(slope);
    s.options.dt = 2e-3;
    s.options.contact = method;
    add_floor(&s, 0);
    tb_soft_world *w = world_of(&s);
    for (int half = 0; half < 2; half++) {
        TEST_OK(tb_soft_step(w, steps / 2, &c, &error), &error);
        tb_soft_certificate_merge(&r.whole, &c);
        tb_soft_world_measure(w, 0, NULL, momentum, centre);
        r.moved = centre[0] - r.place;
        r.place = centre[0];
        r.change = momentum[0] / mass - r.velocity;
        r.velocity = momentum[0] / mass;
    }
    int32_t n;
    const tb_soft_contact *contacts = tb_soft_world_contacts(w, &n);
    double normal = 0, tangential = 0;
    for (int32_t i = 0; i < n; i++) {
        normal += contacts[i].alpha;
        tangential -= contacts[i].beta[0] * contacts[i].tangent[0][0] +
                      contacts[i].beta[1] * contacts[i].tangent[1][0];
    }
    r.ratio = tangential / normal;
    tb_soft_world_destroy(w);
    return r;
}

START_TEST(a_block_of_jelly_sticks_below_the_angle_of_friction_and_slides_above)
{
    const double degree = 3.14159265358979 / 180;
    const slide sticks = slide_down(22, 500, TB_SOFT_SCHURPA); /* atan 0.5 is 26.6 degrees */
    TEST_OK(sticks.whole.status, NULL);
    TEST_NEAR(sticks.moved, 0, 5e-5); /* the last of its swing */
    TEST_NEAR(sticks.velocity, 0, 5e-5);
    TEST_NEAR(sticks.ratio, tan(22 * degree), 0.02);
    const slide slides = slide_down(35, 120, TB_SOFT_SCHURPA);
    TEST_OK(slides.whole.status, NULL);
    TEST_NEAR(slides.ratio, 0.5, 1e-3);
    TEST_NEAR_RELATIVE(slides.change / 0.12, G * (sin(35 * degree) - 0.5 * cos(35 * degree)), 0.05);
}
END_TEST

START_TEST(direct_gives_what_schurpa_gives_and_the_exact_cone_is_met_by_newton)
{
    const slide schurpa = slide_down(35, 20, TB_SOFT_SCHURPA);
    const slide direct = slide_down(35, 20, TB_SOFT_DIRECT);
    const slide newton = slide_down(35, 20, TB_SOFT_NEWTON);
    TEST_NEAR_RELATIVE(direct.velocity, schurpa.velocity, 1e-9);
    TEST_NEAR_RELATIVE(newton.velocity, schurpa.velocity, 0.06);
    ck_assert(direct.whole.normal.factorizations >= schurpa.whole.normal.factorizations);
    ck_assert_msg(newton.whole.cone_error < 1e-5 && schurpa.whole.cone_error > 1e-4,
                  "distances from the circular cone: newton %g N s, four facets %g N s",
                  newton.whole.cone_error, schurpa.whole.cone_error);
}
END_TEST

/* Litven's collision of nine cylinders on cells of 0.5 m, to the strongest compression and beyond: his section 7.2
 * has at most 8 and 11 iterations and first working sets that are right by more than 0.8. Overlaps are
 * pushed apart, which may not add more energy than its bound. */
START_TEST(nine_cylinders_begin_with_their_working_sets_and_gain_no_energy)
{
    unsigned char *text;
    size_t size;
    tb_soft_world *w;
    tb_soft_certificate c;
    TEST_OK(tb_named_scene_mjcf("nine_cylinders_coarse", &text, &size, &error), &error);
    TEST_OK(tb_soft_world_load((const char *)text, size, "nine.xml", NULL, &w, &error), &error);
    double before = 1e300, pushed = 0, least = 1;
    int32_t warm = 0, active = 0;
    for (int i = 0; i < 65; i++) {
        TEST_OK(tb_soft_step(w, 1, &c, &error), &error);
        TEST_OK(c.status, NULL);
        const double energy = c.kinetic + c.elastic;
        ck_assert_msg(energy < before + 1e-9 * before, "step %d gains %g J", i, energy - before);
        ck_assert_msg(c.pushed < 1.05e-3 * c.substeps * before, "step %d adds %g J of %g", i,
                      c.pushed, before);
        ck_assert_int_le(c.projections, 2);
        ck_assert_int_le(c.normal.iterations, 3);
        ck_assert_int_le(c.tangential.iterations, 6);
        ck_assert_int_eq(c.normal.resets + c.tangential.resets, 0);
        least = tb_min(least, (double)c.normal.warm / c.normal.active);
        warm += c.tangential.warm;
        active += c.tangential.active;
        pushed += c.pushed;
        before = energy;
    }
    printf("nine cylinders: first sets right by %.3f at least and %.3f (friction, of %d facets), "
           "pushed by %.3g of the energy\n",
           least, (double)warm / active, active, pushed / before);
    ck_assert(pushed > 0);
    ck_assert_int_gt(active, 200);
    ck_assert(least > 0.8 && warm > 0.9 * active);
    tb_soft_world_destroy(w);
    tb_bytes_destroy(text);
}
END_TEST

TEST_MAIN(a_ball_that_flies_and_turns_keeps_its_momentum,
          two_balls_that_collide_keep_the_sum_of_their_momenta,
          a_bar_hangs_longer_by_its_own_weight, a_cantilever_bends_like_timoshenkos,
          a_bouncing_balls_energy_never_grows, a_cube_between_smooth_plates_is_in_uniaxial_stress,
          a_cube_between_rough_plates_agrees_with_a_finer_grid,
          a_pad_on_a_shaking_wall_keeps_its_pressure_and_does_not_slip,
          a_block_of_jelly_sticks_below_the_angle_of_friction_and_slides_above,
          direct_gives_what_schurpa_gives_and_the_exact_cone_is_met_by_newton,
          nine_cylinders_begin_with_their_working_sets_and_gain_no_energy)
