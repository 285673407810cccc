/* Poulsen's solvers on his scenes.
 *
 * Every sphere weighs 20 kg and has the radius 1 m; a step of 0.01 s lets gravity pull the balls of a
 * grid on the ground, b = -0.0981 m/s there and 0 elsewhere. The balls of a pile get seeded
 * velocities of 0.05 m/s (standard deviation), because the thesis does not give its velocities. */
#include <math.h>
#include <string.h>

#include "scenes/poulsen.h"
#include "solve/coloured/block_rows.h"

static const double PILE_SPEED_M_S = 0.05, GRAVITY_M_S2 = 9.81, FRICTION = 0.5;

/* Unit vectors s and t normal to n. */
static void tangents_of(const double n[3], double s[3], double t[3])
{
    const int k = fabs(n[0]) < 0.9 ? 0 : 1;
    const double e[3] = {k == 0, k == 1, 0};
    double length = 0;
    s[0] = n[1] * e[2] - n[2] * e[1];
    s[1] = n[2] * e[0] - n[0] * e[2];
    s[2] = n[0] * e[1] - n[1] * e[0];
    length = sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
    for (int i = 0; i < 3; i++) s[i] /= length;
    t[0] = n[1] * s[2] - n[2] * s[1];
    t[1] = n[2] * s[0] - n[0] * s[2];
    t[2] = n[0] * s[1] - n[1] * s[0];
}

/* J W^1/2 of one side; sign -1 for body a. The lever is r n from a and -r n from b. */
static void fill_side(const double frame[3][3], double sign, double *y)
{
    const double mass = 1 / sqrt(TB_POULSEN_MASS_KG);
    const double turn =
        1 / sqrt(0.4 * TB_POULSEN_MASS_KG * TB_POULSEN_RADIUS_M * TB_POULSEN_RADIUS_M);
    const double *n = frame[0];
    for (int r = 0; r < 3; r++) {
        const double *d = frame[r];
        const double lever = -sign * TB_POULSEN_RADIUS_M;
        const double moment[3] = {n[1] * d[2] - n[2] * d[1], n[2] * d[0] - n[0] * d[2],
                                  n[0] * d[1] - n[1] * d[0]};
        for (int i = 0; i < 3; i++) {
            y[6 * r + i] = sign * mass * d[i];
            y[6 * r + 3 + i] = sign * turn * lever * moment[i];
        }
    }
    for (int i = 0; i < 3; i++) {
        y[18 + i] = 0;
        y[21 + i] = sign * turn * TB_POULSEN_RADIUS_M * n[i];
    }
}

static void fill_contact(const tb_poulsen_scene *s, int32_t k, const double *velocity, double *y,
                         double *b)
{
    const double *p = s->position + 3 * (int64_t)s->a[k], *q = s->position + 3 * (int64_t)s->b[k];
    double frame[3][3] = {{0, 0, 1}}, length = 0;
    for (int i = 0; i < 3 && s->a[k] > 0; i++) frame[0][i] = q[i] - p[i];
    for (int i = 0; i < 3; i++) length += frame[0][i] * frame[0][i];
    for (int i = 0; i < 3; i++) frame[0][i] /= sqrt(length);
    tangents_of(frame[0], frame[1], frame[2]);
    memset(y, 0, 2 * TB_SIDE_NUMBERS * sizeof *y);
    if (s->a[k] > 0) fill_side((const double(*)[3])frame, -1, y);
    fill_side((const double(*)[3])frame, 1, y + TB_SIDE_NUMBERS);
    for (int r = 0; r < 3; r++) {
        b[r] = 0;
        for (int i = 0; i < 3; i++)
            b[r] += frame[r][i] *
                    (velocity[3 * (int64_t)s->b[k] + i] - velocity[3 * (int64_t)s->a[k] + i]);
    }
    b[3] = 0;
}

/* Velocities (m/s) after gravity, the ground's zero. */
static void fill_velocities(const tb_poulsen_scene *s, bool pile, double *velocity)
{
    tb_random random = tb_random_stream(2010, 1);
    memset(velocity, 0, 3 * sizeof *velocity);
    for (int64_t i = 1; i < s->bodies; i++)
        for (int k = 0; k < 3; k++) {
            velocity[3 * i + k] = k == 2 ? -GRAVITY_M_S2 * TB_POULSEN_DT_S : 0;
            if (pile) velocity[3 * i + k] += PILE_SPEED_M_S * tb_random_normal(&random);
        }
}

tb_poulsen_options tb_poulsen_defaults(void)
{
    return (tb_poulsen_options){
        .storage = TB_STORAGE_FACTORIZED,
        .colouring = TB_POULSEN_SEQUENTIAL,
        .r = 5,
        .nu = 0.5,
        .tries = 5,
        .iterations = 50,
        .threads = 1,
        .csp = {.compressed = true, .double_w = true, .page = 64, .own_channels = true}};
}

static tb_status check(const tb_poulsen_options *o, tb_error *error)
{
    const struct {
        bool wrong;
        const char *field;
    } checks[] = {
        {o->storage < TB_STORAGE_FACTORIZED || o->storage > TB_STORAGE_T, "storage"},
        {o->colouring < TB_POULSEN_SEQUENTIAL || o->colouring > TB_POULSEN_NAIVE, "colouring"},
        {!(o->r > 0 && o->r < 1e9), "r"},
        {!(o->nu > 0 && o->nu < 1), "nu"},
        {o->tries < 0 || o->tries > 60, "tries"},
        {o->iterations < 1, "iterations"},
        {!(o->gamma >= 0), "gamma"},
        {o->threads < 0 || o->threads > 4096, "threads"},
        {o->colours < 0, "colours"},
        {o->processes < TB_POULSEN_LOOPS || o->processes > TB_POULSEN_EXTREME, "processes"},
        {o->backend < TB_BACKEND_CPU || o->backend > TB_BACKEND_AUTO, "backend"},
        {o->device < 0, "device"}};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].wrong)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, checks[i].field,
                                 "%s is out of its range", checks[i].field);
    return TB_OK;
}

/* FNV-1a of the impulses' bytes. */
static uint64_t hash_of(const double *lambda, size_t numbers)
{
    uint64_t hash = 14695981039346656037u;
    const unsigned char *bytes = (const unsigned char *)lambda;
    for (size_t i = 0; i < numbers * sizeof *lambda; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

tb_status tb_poulsen_solve(const char *name, const tb_poulsen_options *options,
                           tb_poulsen_result *result, tb_error *error)
{
    tb_poulsen_scene scene;
    tb_arena arena;
    tb_status status = check(options, error);
    if (status != TB_OK) return status;
    status = tb_poulsen_scene_create(name, &scene, error);
    if (status != TB_OK) return status;
    tb_arena_init(&arena, 0);
    const size_t contacts = (size_t)scene.contacts;
    double *velocity = TB_ARENA_ARRAY(&arena, double, 3 * (size_t)scene.bodies);
    double *y = TB_ARENA_ARRAY(&arena, double, 2 * TB_SIDE_NUMBERS * contacts);
    double *b = TB_ARENA_ARRAY(&arena, double, TB_CONTACT_ROWS *contacts);
    double *lambda = TB_ARENA_ARRAY(&arena, double, TB_CONTACT_ROWS *contacts);
    if (velocity && y && b && lambda) {
        fill_velocities(&scene, strncmp(name, "poulsen_pile", 12) == 0, velocity);
        for (int32_t k = 0; k < scene.contacts; k++)
            fill_contact(&scene, k, velocity, y + 2 * TB_SIDE_NUMBERS * (int64_t)k,
                         b + TB_CONTACT_ROWS * (int64_t)k);
        const tb_block_rows rows = {
            {scene.bodies, scene.contacts, scene.a, scene.b}, y, b, FRICTION};
        status = tb_block_rows_solve(&rows, options, &arena, lambda, result, error);
        if (status == TB_OK) result->hash = hash_of(lambda, TB_CONTACT_ROWS * contacts);
    } else {
        status = tb_fail_memory(error, 0, "a scene of balls");
    }
    tb_arena_destroy(&arena);
    tb_poulsen_scene_destroy(&scene);
    return status;
}
