/* Repeats and times a benchmark of the command (bench.h), and builds the piles that several
 * share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "common/cli.h"
#include "common/interrupt.h"

static const double PILE_RADIUS_M = 0.1;
static const double PILE_MASS_KG = 10;
/* Offset of spheres from the lattice; without it a sweep along the columns solves the pile
 * exactly. */
static const double PILE_DISORDER_M = 1e-3;

/* ---- measuring ---- */

tb_status bench_measure(bench *b, bench_function *function, tb_error *error)
{
    for (int turn = -1; turn < b->repeats; turn++)
        for (int i = 0; i < b->cases; i++) {
            if (interrupt_requested())
                return cli_fail(error, TB_CANCELLED, "", 0, NULL, "interrupted");
            const double seconds = function(b->list[i].context, error);
            if (seconds < 0) return error->status != TB_OK ? error->status : TB_INTERNAL;
            if (turn >= 0) b->list[i].seconds[turn] = seconds;
        }
    return TB_OK;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bench_summary summarize(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    const double middle = (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
    return (bench_summary){middle, numbers[0], numbers[count - 1]};
}

bench_summary bench_time(const bench *b, int index)
{
    double numbers[BENCH_REPEATS];
    for (int k = 0; k < b->repeats; k++)
        numbers[k] = b->list[index].seconds[k] / b->list[index].amount;
    return summarize(numbers, b->repeats);
}

bench_summary bench_ratio(const bench *b, int index)
{
    double numbers[BENCH_REPEATS];
    for (int k = 0; k < b->repeats; k++) {
        const double own = b->list[index].seconds[k] / b->list[index].amount;
        const double first = b->list[0].seconds[k] / b->list[0].amount;
        numbers[k] = first > 0 ? own / first : 0;
    }
    return summarize(numbers, b->repeats);
}

double bench_exponent(const bench *b)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < b->cases; i++) {
        const double x = log(b->list[i].size);
        const double y = log(bench_time(b, i).median * b->list[i].size);
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    const double n = b->cases;
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/* ---- the pile ---- */

static tb_status add_sphere(tb_scene *scene, const double position[3], tb_error *error)
{
    tb_handle body;
    tb_body_def body_def = tb_body_defaults();
    memcpy(body_def.position, position, sizeof body_def.position);
    tb_status status = tb_scene_add_body(scene, &body_def, &body, error);
    if (status != TB_OK) return status;

    tb_joint_def joint = tb_joint_defaults();
    joint.body = body;
    joint.type = TB_JOINT_FREE;
    status = tb_scene_add_joint(scene, &joint, NULL, error);
    if (status != TB_OK) return status;

    tb_shape_def shape = tb_shape_defaults();
    shape.body = body;
    shape.type = TB_SHAPE_SPHERE;
    shape.size[0] = PILE_RADIUS_M;
    shape.mass = PILE_MASS_KG;
    shape.surface.friction = 0.5;
    return tb_scene_add_shape(scene, &shape, NULL, error);
}

/* -1 to 1, the same on every machine: the upper bits of a linear congruence (Knuth's MMIX). */
static double disorder(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 4503599627370496.0 - 1;
}

tb_status bench_pile(int side, tb_model **model, tb_error *error)
{
    tb_scene *scene = NULL;
    uint64_t seed = 1;
    tb_scene_def def = tb_scene_defaults();
    def.dt = 1e-3;
    tb_status status = tb_scene_create(&def, &scene, error);

    tb_shape_def floor = tb_shape_defaults();
    floor.type = TB_SHAPE_PLANE;
    if (status == TB_OK) status = tb_scene_add_shape(scene, &floor, NULL, error);
    for (int i = 0; i < side * side * side && status == TB_OK; i++) {
        const double pitch = 2 * PILE_RADIUS_M;
        const double position[3] = {pitch * (i % side) + PILE_DISORDER_M * disorder(&seed),
                                    pitch * (i / side % side) + PILE_DISORDER_M * disorder(&seed),
                                    PILE_RADIUS_M + pitch * (i / side / side)};
        status = add_sphere(scene, position, error);
    }
    if (status == TB_OK) status = tb_scene_compile(scene, model, error);
    tb_scene_destroy(scene);
    return status;
}
