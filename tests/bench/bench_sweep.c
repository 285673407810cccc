/* Cost of a sweep of factorized `sor`, per contact, and this machine's copy bandwidth.
 *
 * Two problems: a field of 100,000 contacts between free bodies on a grid (each body with its
 * neighbours), and 14 contacts on one free body, which stay in the cache. A sweep's cost is the
 * difference between a solve of many sweeps and one of few, so that set-up and the last residual do
 * not count. Bandwidth is a copy of an array larger than the caches, read plus write, measured
 * between the solves of the same run. `traffic` is the least memory traffic of a sweep: rows of Y,
 * blocks, impulses, c, and both bodies' velocities. Times are of this thread's processor, so that
 * neighbours on the machine disturb them little. One JSON object a line; medians with the smallest
 * and largest of all repetitions. */
#include "solve/solve.h"

#include "common_bench.h"
#include "solve/sweep/sweep.h"

enum { REPETITIONS = 9, FEW = 2 };

typedef struct field {
    tb_problem problem;
    tb_block *blocks;
    tb_segment *segments;
    tb_real *values, *c;
} field;

static void *take(size_t count, size_t size)
{
    void *p = aligned_alloc(64, (count * size + 63) / 64 * 64);
    if (!p) exit(1);
    return p;
}

/* contacts of unit spheres with random normals: the first 6 numbers of a row on body a,
 * the next on b */
static void add_contact(field *f, int32_t i, int32_t a, int32_t b, tb_random *random)
{
    const bool two = b >= 0;
    const int32_t width = two ? 12 : 6;
    const int64_t value = (int64_t)i * 36;
    f->blocks[i] = (tb_block){.law = TB_LAW_COULOMB,
                              .row = 3 * i,
                              .rows = 3,
                              .segment = 2 * i,
                              .segments = two ? 2 : 1,
                              .width = width,
                              .value = value,
                              .mu = TB_R(0.5)};
    f->segments[2 * i] = (tb_segment){6 * a, 6};
    f->segments[2 * i + 1] = (tb_segment){two ? 6 * b : 0, 6};
    tb_vec3 axis[3];
    axis[0] = tb_v3_normalize(tb_v3(TB_R(tb_random_normal(random)), TB_R(tb_random_normal(random)),
                                    TB_R(tb_random_normal(random))),
                              tb_v3(0, 0, 1));
    tb_v3_tangents(axis[0], &axis[1], &axis[2]);
    for (int r = 0; r < 3; r++) {
        const tb_vec3 arm = tb_v3_cross(axis[0], axis[r]);
        const tb_real row[6] = {axis[r].x,          axis[r].y,          axis[r].z,
                                TB_R(1.58) * arm.x, TB_R(1.58) * arm.y, TB_R(1.58) * arm.z};
        for (int k = 0; k < width; k++)
            f->values[value + r * width + k] = k < 6 ? (two ? -row[k] : row[k]) : row[k - 6];
        f->c[3 * i + r] = TB_R(tb_random_between(random, r == 0 ? -1.0 : -0.3, r == 0 ? 0.0 : 0.3));
    }
}

/* bodies on a cubic grid, each with three neighbours ahead */
static field make_field(int32_t contacts, int32_t bodies)
{
    field f;
    f.blocks = take((size_t)contacts, sizeof *f.blocks);
    f.segments = take((size_t)contacts * 2, sizeof *f.segments);
    f.values = take((size_t)contacts * 36, sizeof *f.values);
    f.c = take((size_t)contacts * 3, sizeof *f.c);
    tb_random random = tb_random_stream(7, 1);
    const int32_t side = (int32_t)cbrt((double)bodies);
    const int32_t ahead[3] = {1, side, side * side};
    for (int32_t i = 0; i < contacts; i++) {
        const int32_t a = bodies > 1 ? (i / 3) % bodies : 0;
        const int32_t b = bodies > 1 ? (a + ahead[i % 3]) % bodies : -1;
        add_contact(&f, i, a, b == a ? -1 : b, &random);
    }
    f.problem = (tb_problem){.number_of_blocks = contacts,
                             .number_of_rows = 3 * contacts,
                             .number_of_dofs = 6 * bodies,
                             .blocks = f.blocks,
                             .segments = f.segments,
                             .values = f.values,
                             .c = f.c};
    return f;
}

static void free_field(field *f)
{
    free(f->blocks);
    free(f->segments);
    free(f->values);
    free(f->c);
}

static double solve_seconds(const field *f, int32_t sweeps, bool local, int32_t repeats,
                            tb_arena *arena, tb_solution *solution)
{
    tb_solve_options options = tb_solve_defaults();
    options.tolerance =
        0; /* never reached: every sweep is made; residuals are computed as they fall due */
    options.accelerate = false;
    options.maximum_iterations = sweeps;
    options.local_solve = local;
    options.maximum_halvings = 0;
    tb_warm_start warm = {.scratch = arena};
    const double begin = bench_worked();
    for (int32_t k = 0; k < repeats; k++) tb_solve_sor(&f->problem, &options, &warm, solution);
    const double seconds = (bench_worked() - begin) / repeats;
    tb_arena_reset(arena);
    return seconds;
}

static double copy_bandwidth(unsigned char *from, unsigned char *to, size_t size)
{
    const double begin = bench_worked();
    memcpy(to, from, size);
    const double seconds = bench_worked() - begin;
    volatile unsigned char keep = to[size / 2];
    (void)keep;
    return 2.0 * (double)size / seconds * 1e-9;
}

static void bench(int32_t contacts, int32_t bodies, bool local, int32_t many, int32_t repeats)
{
    const size_t size = (size_t)256 << 20;
    unsigned char *from = take(size, 1), *to = take(size, 1);
    memset(from, 1, size);
    memset(to, 2, size);
    field f = make_field(contacts, bodies);
    tb_solution solution = {.lambda = take((size_t)contacts * 3, sizeof(tb_real)),
                            .xi = take((size_t)contacts * 3, sizeof(tb_real)),
                            .statuses = take((size_t)contacts, 1)};
    tb_arena arena;
    tb_arena_init(&arena, 0);
    double cost[REPETITIONS], copy[REPETITIONS], set_up[REPETITIONS];
    solve_seconds(&f, FEW, local, 1, &arena, &solution);
    for (int k = 0; k < REPETITIONS; k++) {
        copy[k] = copy_bandwidth(from, to, size);
        const double few = solve_seconds(&f, FEW, local, repeats, &arena, &solution);
        const double all = solve_seconds(&f, FEW + many, local, repeats, &arena, &solution);
        cost[k] = (all - few) / many / contacts * 1e9;
        set_up[k] = (few / contacts * 1e9) - FEW * cost[k];
    }
    bench_sort(cost, REPETITIONS);
    bench_sort(copy, REPETITIONS);
    bench_sort(set_up, REPETITIONS);
    const int m = REPETITIONS / 2;
    const double width = bodies > 1 ? 12 : 6;
    const double traffic =
        (3 * width + 3 + 3 + 3 + 2 * width) * sizeof(tb_real) + sizeof(tb_sweep_block);
    printf("{\"bench\":\"sweep\",\"solver\":\"sor\",\"precision\":\"double\",\"contacts\":%d,"
           "\"bodies\":%d,\"local_solve\":%s,\"ns_per_contact_and_sweep\":%.2f,\"min\":%.2f,"
           "\"max\":%.2f,"
           "\"ns_set_up_and_account_per_contact\":%.1f,\"traffic_bytes\":%.0f,\"traffic_GB_per_s\":"
           "%.1f,"
           "\"copy_GB_per_s\":%.1f,\"copy_min\":%.1f,\"copy_max\":%.1f,\"share_of_copy\":%.2f}\n",
           contacts, bodies, local ? "true" : "false", cost[m], cost[0], cost[REPETITIONS - 1],
           set_up[m], traffic, traffic / cost[m], copy[m], copy[0], copy[REPETITIONS - 1],
           traffic / cost[m] / copy[m]);
    tb_arena_destroy(&arena);
    free_field(&f);
    free(solution.lambda);
    free(solution.xi);
    free(solution.statuses);
    free(from);
    free(to);
}

int main(void)
{
    for (int local = 0; local < 2; local++) {
        bench(100000, 34000, local, 60, 1);
        bench(14, 1, local, 500, 200);
    }
    return 0;
}
