/* Poulsen's ball grids and ball piles (A Parallel Gauss-Seidel Method for Computing Contact Forces,
 * DIKU 2010, section 5.2).
 *
 * A grid is n^3 unit spheres that touch on a cubic lattice, the bottom layer on a fixed ground:
 * 3 n^2 (n - 1) + n^2 contacts. A pile is n planes of n x n spheres in which a few neighbours touch; the
 * thesis gives its numbers of bodies, contacts and blocks of A, and of the larger one the sizes of the
 * first-free colours. Its random numbers are not known, so the pile is built of components that add up
 * to those numbers: pairs, chains of two and three contacts, stars of three and one star with a longer
 * leg, scattered over the lattice by a seeded generator. Spheres of a component move together until
 * they touch; all others keep their gaps.
 *
 * Contacts have the order that reproduces the thesis's colour sizes: bottom-up, then along y,
 * then along x, and of a sphere the contact with the ground, then those along +x, +y and +z. Not
 * in the thesis: radius 1 m, 20 kg, a step of 0.01 s (found by fitting its residuals), mu 0.5. */
#include "scenes/poulsen.h"

#include <stdlib.h>
#include <string.h>

/* In-plane gap between spheres of a pile that do not touch, and between its planes. */
static const double PILE_GAP_M = 0.1, PLANE_GAP_M = 1;

enum { MOST_MEMBERS = 5 };

typedef enum component {
    PAIR,
    CHAIN_OF_TWO,
    CHAIN_OF_THREE,
    STAR,
    LONG_STAR,
    COMPONENTS
} component;

/* Numbers of components of each kind that give the thesis's counts. */
typedef struct pile_recipe {
    int32_t edge;
    int32_t count[COMPONENTS];
} pile_recipe;

static const pile_recipe PILES[] = {{40, {5805, 385, 10, 0, 0}}, {80, {47270, 2705, 73, 2, 1}}};

/* A member's offset from the component's first member (steps along the component's axes), and
 * its displacement towards the others (gaps). */
typedef struct member {
    int8_t along, across;
    double moves;
} member;

static const struct {
    int32_t members;
    member member[MOST_MEMBERS];
} SHAPES[COMPONENTS] = {
    [PAIR] = {2, {{0, 0, 0.5}, {1, 0, -0.5}}},
    [CHAIN_OF_TWO] = {3, {{0, 0, 1}, {1, 0, 0}, {2, 0, -1}}},
    [CHAIN_OF_THREE] = {4, {{0, 0, 1.5}, {1, 0, 0.5}, {2, 0, -0.5}, {3, 0, -1.5}}},
    /* the last member of a star moves across, back to the centre */
    [STAR] = {4, {{0, 0, 1}, {1, 0, 0}, {2, 0, -1}, {1, 1, -1}}},
    [LONG_STAR] = {5, {{0, 0, 1}, {1, 0, 0}, {2, 0, -1}, {3, 0, -2}, {1, 1, -1}}}};

static int32_t place(int32_t n, int32_t x, int32_t y, int32_t z)
{
    return 1 + (z * n + y) * n + x;
}

static bool reserve(tb_poulsen_scene *s, int32_t bodies, int32_t contacts)
{
    s->bodies = bodies;
    s->position = calloc((size_t)bodies * 3, sizeof *s->position);
    s->a = malloc((size_t)contacts * sizeof *s->a);
    s->b = malloc((size_t)contacts * sizeof *s->b);
    return s->position && s->a && s->b;
}

static void add_contact(tb_poulsen_scene *s, int32_t a, int32_t b)
{
    s->a[s->contacts] = a;
    s->b[s->contacts++] = b;
}

/* ---- grids ---- */

static bool make_grid(tb_poulsen_scene *s, int32_t n)
{
    const double pitch = 2 * TB_POULSEN_RADIUS_M;
    if (!reserve(s, n * n * n + 1, 3 * n * n * (n - 1) + n * n)) return false;
    for (int32_t z = 0; z < n; z++)
        for (int32_t y = 0; y < n; y++)
            for (int32_t x = 0; x < n; x++) {
                const int32_t body = place(n, x, y, z);
                double *at = s->position + 3 * (int64_t)body;
                at[0] = pitch * (x - (n - 1) / 2.0);
                at[1] = pitch * (y - (n - 1) / 2.0);
                at[2] = pitch * (z + 0.5);
                if (z == 0) add_contact(s, 0, body);
                if (x + 1 < n) add_contact(s, body, place(n, x + 1, y, z));
                if (y + 1 < n) add_contact(s, body, place(n, x, y + 1, z));
                if (z + 1 < n) add_contact(s, body, place(n, x, y, z + 1));
            }
    return true;
}

/* ---- piles ---- */

/* Site of a component: members lie along x, or along y if the component is turned. */
typedef struct site {
    int32_t x, y, z;
    bool turned;
} site;

static int32_t member_body(int32_t n, const site *at, const member *m)
{
    const int32_t x = at->x + (at->turned ? m->across : m->along);
    const int32_t y = at->y + (at->turned ? m->along : m->across);
    return x < n && y < n ? place(n, x, y, at->z) : -1;
}

/* Puts a component at free lattice sites: marks them and moves their spheres. */
static void scatter(tb_poulsen_scene *s, int32_t n, component kind, tb_random *random,
                    uint8_t *taken)
{
    site at;
    int32_t bodies[MOST_MEMBERS];
    const int32_t members = SHAPES[kind].members;
    for (bool is_free = false; !is_free;) {
        at.x = (int32_t)(tb_random_uniform(random) * n);
        at.y = (int32_t)(tb_random_uniform(random) * n);
        at.z = (int32_t)(tb_random_uniform(random) * n);
        at.turned = kind != LONG_STAR && tb_random_uniform(random) < 0.5;
        is_free = true;
        for (int32_t i = 0; i < members; i++) {
            bodies[i] = member_body(n, &at, &SHAPES[kind].member[i]);
            is_free = is_free && bodies[i] >= 0 && !taken[bodies[i]];
        }
    }
    for (int32_t i = 0; i < members; i++) {
        const member *m = &SHAPES[kind].member[i];
        const bool along_y = at.turned != (m->across != 0);
        s->position[3 * (int64_t)bodies[i] + (along_y ? 1 : 0)] += m->moves * PILE_GAP_M;
        taken[bodies[i]] = 1;
    }
}

static bool touch(const tb_poulsen_scene *s, int32_t a, int32_t b)
{
    const double *p = s->position + 3 * (int64_t)a, *q = s->position + 3 * (int64_t)b;
    double square = 0;
    for (int k = 0; k < 3; k++) square += (q[k] - p[k]) * (q[k] - p[k]);
    const double reach = 2 * TB_POULSEN_RADIUS_M + 1e-9;
    return square <= reach * reach;
}

static bool make_pile(tb_poulsen_scene *s, int32_t n)
{
    const pile_recipe *recipe = NULL;
    for (size_t i = 0; i < sizeof PILES / sizeof *PILES; i++)
        if (PILES[i].edge == n) recipe = &PILES[i];
    const double pitch = 2 * TB_POULSEN_RADIUS_M + PILE_GAP_M;
    const double rise = 2 * TB_POULSEN_RADIUS_M + PLANE_GAP_M;
    uint8_t *taken = calloc((size_t)(n * n * n + 1), 1);
    if (!recipe || !taken || !reserve(s, n * n * n + 1, 2 * n * n * (n - 1))) {
        free(taken);
        return false;
    }
    for (int32_t body = 1; body < s->bodies; body++) {
        const int32_t i = body - 1;
        double *at = s->position + 3 * (int64_t)body;
        at[0] = pitch * (i % n - (n - 1) / 2.0);
        at[1] = pitch * (i / n % n - (n - 1) / 2.0);
        at[2] = TB_POULSEN_RADIUS_M + PLANE_GAP_M + rise * (i / (n * n));
    }
    tb_random random = tb_random_stream(2010, (uint64_t)n);
    for (int kind = COMPONENTS - 1; kind >= 0; kind--)
        for (int32_t i = 0; i < recipe->count[kind]; i++)
            scatter(s, n, (component)kind, &random, taken);
    free(taken);
    for (int32_t z = 0; z < n; z++)
        for (int32_t y = 0; y < n; y++)
            for (int32_t x = 0; x < n; x++) {
                const int32_t body = place(n, x, y, z);
                if (x + 1 < n && touch(s, body, body + 1)) add_contact(s, body, body + 1);
                if (y + 1 < n && touch(s, body, body + n)) add_contact(s, body, body + n);
            }
    return true;
}

/* ---- files ---- */

static void write_balls(tb_scene_text *t, const tb_scene_recipe *recipe)
{
    tb_poulsen_scene s;
    tb_error error;
    t->status = tb_poulsen_scene_create(recipe->name, &s, &error);
    if (t->status != TB_OK) return;
    const double half = 2.2 * recipe->size * TB_POULSEN_RADIUS_M;
    tb_scene_put(
        t,
        "<mujoco model=\"%s\">\n  <option timestep=\"%g\" gravity=\"0 0 -9.81\"/>\n"
        "  <default>\n    <geom friction=\"%g %.17g 0\" condim=\"4\"/>\n"
        "    <default class=\"s\"><geom type=\"sphere\" size=\"%g\" mass=\"%g\"/></default>\n"
        "  </default>\n  <worldbody>\n"
        "    <geom name=\"ground\" type=\"box\" size=\"%g %g 1\" pos=\"0 0 -1\"/>\n",
        recipe->name, TB_POULSEN_DT_S, recipe->friction, 2.0 / 3 * recipe->friction,
        TB_POULSEN_RADIUS_M, TB_POULSEN_MASS_KG, half, half);
    for (int32_t body = 1; body < s.bodies; body++) {
        const double *at = s.position + 3 * (int64_t)body;
        tb_scene_put(t, "<body pos=\"%.9g %.9g %.9g\"><freejoint/><geom class=\"s\"/></body>\n",
                     at[0], at[1], at[2]);
    }
    tb_scene_put(t, "  </worldbody>\n</mujoco>\n");
    tb_poulsen_scene_destroy(&s);
}

tb_status tb_poulsen_scene_create(const char *name, tb_poulsen_scene *scene, tb_error *error)
{
    memset(scene, 0, sizeof *scene);
    const tb_scene_recipe *recipe = tb_scene_recipe_find(name);
    if (!recipe || recipe->write != write_balls)
        return tb_fail_field(error, TB_NOT_FOUND, "scene", "'%s' is no ball grid and no ball pile",
                             name ? name : "");
    const bool grid = strcmp(recipe->detail, "grid") == 0;
    if (grid ? make_grid(scene, recipe->size) : make_pile(scene, recipe->size)) return TB_OK;
    tb_poulsen_scene_destroy(scene);
    return tb_fail_memory(error, 0, "a scene of balls");
}

void tb_poulsen_scene_destroy(tb_poulsen_scene *scene)
{
    free(scene->position);
    free(scene->a);
    free(scene->b);
    memset(scene, 0, sizeof *scene);
}

#define BALL_SCENE(kind, n, text)                                                                  \
    {                                                                                              \
        .name = "poulsen_" #kind "_" #n, .summary = text, .source = "Poulsen 5.2",                 \
        .write = write_balls, .size = n, .friction = 0.5, .detail = #kind                          \
    }

const tb_scene_recipe tb_scenes_poulsen[] = {
    BALL_SCENE(grid, 8, "8^3 spheres that touch on a cubic lattice over a ground, 1408 contacts"),
    BALL_SCENE(grid, 24, "24^3 spheres likewise, 40320 contacts"),
    BALL_SCENE(grid, 40, "40^3 spheres likewise, 188800 contacts"),
    BALL_SCENE(pile, 40, "40 planes of 40 x 40 spheres of which few touch, 6605 contacts"),
    BALL_SCENE(pile, 80, "80 planes of 80 x 80 spheres likewise, 52909 contacts"),
    {.name = NULL}};
