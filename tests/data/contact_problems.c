/* Contact problems of our own, written as text files into a folder: the committed set in
 * tests/data/problems.
 *
 *     build/tests/data/contact_problems tests/data/problems
 *
 * Each is one step of free rigid bodies of simple shape under gravity, in contact where they touch:
 * W from W' inverse(M) W with M diagonal, q the velocity that the contacts would have without
 * impulses. Stacks and grasps are over-determined on purpose:
 * four contacts a face where three would do. */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#include "contact/contact.h"

enum { MOST_BODIES = 64, MOST_CONTACTS = 256 };
static const double DT = 0.002, GRAVITY = 9.81;

typedef struct body {
    double mass, inertia[3], position[3], velocity[6];
} body;

typedef struct scene {
    int32_t bodies, contacts;
    body body[MOST_BODIES];
    tb_block blocks[MOST_CONTACTS];
    tb_segment segments[2 * MOST_CONTACTS];
    double values[36 * MOST_CONTACTS], c[3 * MOST_CONTACTS];
} scene;

static scene s; /* one at a time */

/* a body with half extents h (a solid box's inertia), falling since the step began */
static int32_t add_body(double mass, const double h[3], double x, double y, double z)
{
    body *b = &s.body[s.bodies];
    memset(b, 0, sizeof *b);
    b->mass = mass;
    for (int i = 0; i < 3; i++) {
        const double p = h[(i + 1) % 3], q = h[(i + 2) % 3];
        b->inertia[i] = mass / 3 * (p * p + q * q);
    }
    b->position[0] = x;
    b->position[1] = y;
    b->position[2] = z;
    b->velocity[2] = -GRAVITY * DT;
    return s.bodies++;
}

/* one contact at a point, normal from a to b; -1 is the world, moving at world_speed along z */
static void add_contact(int32_t a, int32_t b, tb_vec3 point, tb_vec3 normal, double mu,
                        double world_speed)
{
    const int32_t i = s.contacts++;
    tb_vec3 axis[3];
    axis[0] = normal;
    tb_v3_tangents(normal, &axis[1], &axis[2]);
    const int32_t pair[2] = {a, b};
    const int32_t width = a >= 0 && b >= 0 ? 12 : 6;
    tb_block *block = &s.blocks[i];
    *block = (tb_block){.law = TB_LAW_COULOMB,
                        .row = 3 * i,
                        .rows = 3,
                        .segment = 2 * i,
                        .width = width,
                        .value = 36 * i,
                        .mu = mu};
    memset(&s.c[3 * i], 0, 3 * sizeof(double));
    for (int side = 0; side < 2; side++) {
        const double sign = side == 0 ? -1 : 1;
        if (pair[side] < 0) {
            for (int r = 0; r < 3; r++) s.c[3 * i + r] += sign * axis[r].z * world_speed;
            continue;
        }
        const body *own = &s.body[pair[side]];
        const tb_vec3 arm = tb_v3_sub(point, tb_v3_load(own->position));
        const int32_t at = 6 * block->segments;
        s.segments[block->segment + block->segments++] = (tb_segment){6 * pair[side], 6};
        for (int r = 0; r < 3; r++) {
            const tb_vec3 turn = tb_v3_cross(arm, axis[r]);
            const double row[6] = {axis[r].x, axis[r].y, axis[r].z, turn.x, turn.y, turn.z};
            for (int k = 0; k < 6; k++) {
                const double weight = k < 3 ? own->mass : own->inertia[k - 3];
                s.values[36 * i + r * width + at + k] = sign * row[k] / sqrt(weight);
                s.c[3 * i + r] += sign * row[k] * own->velocity[k];
            }
        }
    }
}

static void begin(void)
{
    memset(&s, 0, sizeof s);
}

static void finish(const char *folder, const char *name)
{
    const tb_problem problem = {.number_of_blocks = s.contacts,
                                .number_of_rows = 3 * s.contacts,
                                .number_of_dofs = 6 * s.bodies,
                                .blocks = s.blocks,
                                .segments = s.segments,
                                .values = s.values,
                                .c = s.c};
    char path[1024];
    tb_error error;
    snprintf(path, sizeof path, "%s/%s.dat", folder, name);
    if (tb_problem_write(&problem, path, &error) != TB_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    printf("%s\n", path);
}

/* the four corners of a horizontal face at height z between a and b */
static void face(int32_t a, int32_t b, double hx, double hy, double x, double y, double z,
                 double mu)
{
    for (int k = 0; k < 4; k++)
        add_contact(a, b, tb_v3(x + (k & 1 ? hx : -hx), y + (k & 2 ? hy : -hy), z), tb_v3(0, 0, 1),
                    mu, 0);
}

static void box(const char *folder, const char *name, double speed, double mu)
{
    const double h[3] = {0.1, 0.05, 0.05};
    begin();
    const int32_t b = add_body(1.5, h, 0, 0, 0.05);
    s.body[b].velocity[0] = speed;
    s.body[b].velocity[5] = speed * 2; /* spins too, so that every corner slides its own way */
    face(-1, b, 0.1, 0.05, 0, 0, 0, mu);
    finish(folder, name);
}

static void stack(const char *folder, const char *name, int32_t count, double heavier)
{
    const double h[3] = {0.1, 0.1, 0.05};
    double mass = 1;
    begin();
    for (int32_t i = 0; i < count; i++) {
        const int32_t b = add_body(mass, h, 0.02 * (i % 2), 0, 0.05 + 0.1 * i);
        if (i == count - 1) s.body[b].velocity[0] = 0.5;
        face(b - 1, b, 0.09, 0.1, 0.01 * (i > 0), 0, 0.1 * i, 0.5);
        mass *= heavier;
    }
    finish(folder, name);
}

/* balls in cubic packing that fall on a floor with a push */
static void balls(const char *folder, const char *name, int32_t side)
{
    const double r = 0.1, h[3] = {r, r, r};
    begin();
    for (int32_t k = 0; k < side; k++)
        for (int32_t j = 0; j < side; j++)
            for (int32_t i = 0; i < side; i++) {
                const int32_t b = add_body(10, h, 2 * r * i, 2 * r * j, r + 2 * r * k);
                s.body[b].velocity[0] = 0.1 * (k + 1);
                s.body[b].velocity[1] = 0.02 * (i - j);
            }
    for (int32_t b = 0; b < s.bodies; b++) {
        const int32_t step[3] = {1, side, side * side},
                      place[3] = {b % side, b / side % side, b / (side * side)};
        const tb_vec3 at = tb_v3_load(s.body[b].position);
        for (int axis = 0; axis < 3; axis++) {
            const tb_vec3 n = tb_v3(axis == 0, axis == 1, axis == 2);
            if (place[axis] + 1 < side)
                add_contact(b, b + step[axis], tb_v3_add_scaled(at, n, r), n, 0.4, 0);
        }
        if (place[2] == 0) add_contact(-1, b, tb_v3(at.x, at.y, 0), tb_v3(0, 0, 1), 0.4, 0);
    }
    finish(folder, name);
}

/* two fingers of 0.1 kg, pressed by 20 N each, hold a block by seven points a side and lift it */
static void grasp(const char *folder, const char *name, double lift)
{
    const double object[3] = {0.035, 0.035, 0.045}, finger[3] = {0.005, 0.01, 0.02};
    begin();
    const int32_t held = add_body(0.3, object, 0, 0, 0);
    for (int side = -1; side <= 1; side += 2) {
        const int32_t f = add_body(0.1, finger, 0.04 * side, 0, 0);
        s.body[f].velocity[0] = -side * 20 / 0.1 * DT;
        s.body[f].velocity[2] = 0;
        for (int k = 0; k < 7; k++) {
            const double angle = 0.9 * k;
            add_contact(f, held,
                        tb_v3(0.035 * side, k ? 0.008 * cos(angle) : 0, k ? 0.015 * sin(angle) : 0),
                        tb_v3(-side, 0, 0), 0.7, 0);
        }
        /* the finger's slide: held to its line by stiff contacts all round */
        const tb_vec3 normals[4] = {{0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
        for (int k = 0; k < 4; k++)
            for (int end = -1; end <= 1; end += 2)
                add_contact(
                    -1, f,
                    tb_v3(0.04 * side + 0.005 * end, -0.01 * normals[k].y, -0.02 * normals[k].z),
                    normals[k], 0, lift);
    }
    finish(folder, name);
}

/* a roof of two plates that lean on each other: friction alone keeps them up */
static void roof(const char *folder, const char *name, double mu)
{
    const double h[3] = {0.005, 0.05, 0.1}, lean = 0.3;
    begin();
    for (int side = -1; side <= 1; side += 2) {
        const int32_t b = add_body(0.2, h, side * 0.1 * sin(lean), 0, 0.1 * cos(lean));
        for (int k = -1; k <= 1; k += 2)
            add_contact(-1, b, tb_v3(side * 0.2 * sin(lean), 0.05 * k, 0), tb_v3(0, 0, 1), mu, 0);
    }
    for (int k = -1; k <= 1; k += 2)
        add_contact(0, 1, tb_v3(0, 0.05 * k, 0.2 * cos(lean)), tb_v3(1, 0, 0), mu, 0);
    finish(folder, name);
}

int main(int argc, char **argv)
{
    const char *folder = data_folder(argc, argv, "FOLDER");
    box(folder, "box_sticks", 0.005, 0.5);
    box(folder, "box_slides", 2, 0.3);
    box(folder, "box_without_friction", 1, 0);
    stack(folder, "stack_of_6", 6, 1);
    stack(folder, "stack_heavier_upwards", 5, 3);
    balls(folder, "balls_3", 3);
    grasp(folder, "grasp_at_rest", 0);
    grasp(folder, "grasp_lifts", 0.1);
    roof(folder, "roof_stands", 0.4);
    roof(folder, "roof_falls", 0.1);
    return 0;
}
