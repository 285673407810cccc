/* Nanoseconds of a hull's queries in a step, by its number of vertices: the extreme vertex along a
 * direction, the face that looks there, its tight and its loose box; beside looking at every
 * vertex.
 *
 * Points on an ellipsoid, directions at random; the median of 15 rounds is printed with the smallest
 * and the largest. */
#include "base/random.h"
#include "collide/collide.h"
#include "collide/convex/faces.h"
#include "common_bench.h"

enum { DIRECTIONS = 512, ROUNDS = 15, QUESTIONS = 5 };

static tb_vec3 random_direction(tb_random *random)
{
    const tb_vec3 any =
        tb_v3(tb_random_normal(random), tb_random_normal(random), tb_random_normal(random));
    return tb_v3_normalize(any, tb_v3(1, 0, 0));
}

static void build(int32_t count, tb_arena *arena, tb_hull *hull)
{
    tb_random random = tb_random_stream(31, (uint64_t)count);
    tb_error error = {0};
    double *points = malloc((size_t)count * 3 * sizeof *points);
    for (int32_t i = 0; i < count; i++) {
        const tb_vec3 u = random_direction(&random);
        points[3 * i] = 0.11 * u.x, points[3 * i + 1] = 0.07 * u.y, points[3 * i + 2] = 0.05 * u.z;
    }
    bench_check(tb_hull_build(points, count, arena, hull, &error), &error);
    free(points);
}

static int32_t scan(const tb_hull *hull, tb_vec3 d)
{
    int32_t best = 0;
    double most = -INFINITY;
    for (int32_t v = 0; v < hull->number_of_vertices; v++) {
        const double height = tb_v3_dot(d, tb_v3_load(hull->vertices + 3 * v));
        if (height > most) most = height, best = v;
    }
    return best;
}

/* The answer to question k about direction d: a number, so that no question is left out. */
static double ask(int k, const tb_hull *hull, tb_vec3 d)
{
    tb_posed_shape shape = {.type = TB_SHAPE_CONVEX, .hull = hull};
    bool tight;
    if (k == 0) return tb_hull_support(hull, d, 0);
    if (k == 1) return tb_hull_face_towards(hull, d, 0);
    if (k == 2) return scan(hull, d);
    shape.pose.position = d;
    shape.pose.rotation = tb_q_matrix(tb_q_from_rotation_vector(d));
    return k == 3 ? tb_shape_box(&shape).lower.x : tb_shape_loose_box(&shape, &tight).lower.x;
}

static void bench(int32_t count)
{
    static const char *const names[QUESTIONS] = {"support", "face", "scan", "box", "loose box"};
    static tb_vec3 directions[DIRECTIONS];
    tb_random random = tb_random_stream(32, 0);
    tb_arena arena;
    tb_hull hull;
    tb_arena_init(&arena, 0);
    build(count, &arena, &hull);
    for (int i = 0; i < DIRECTIONS; i++) directions[i] = random_direction(&random);
    for (int k = 0; k < QUESTIONS; k++) {
        char name[64];
        double sum = 0;
        snprintf(name, sizeof name, "%s of %d vertices", names[k], hull.number_of_vertices);
        bench_figure figure = {.name = name, .unit = "ns"};
        for (int round = 0; round < ROUNDS; round++) {
            const double start = bench_worked();
            for (int i = 0; i < DIRECTIONS; i++) sum += ask(k, &hull, directions[i]);
            bench_add(&figure, 1e9 * (bench_worked() - start) / DIRECTIONS);
        }
        if (!isfinite(sum)) exit(1);
        bench_print(&figure);
    }
    tb_arena_destroy(&arena);
}

int main(void)
{
    static const int32_t counts[] = {16, 100, 1000, 5000, 25000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) bench(counts[i]);
    return 0;
}
