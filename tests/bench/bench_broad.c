/* The broad phase beside brute force on the billiards triangle of Göteman and Roxling (C1: rows of
 * balls of 1 m, 100 rows and one ball more are 5,051), its growth, and their Table 8.1 (intervals
 * per body).
 *
 * Both run alternately in this process. One thread is measured by the processor time that it took,
 * so that other programs do not count against the longer run; several by the clock. Figures are
 * medians with the 10th and 90th percentile. */
#include "collide/collide.h"

#include "common_bench.h"

enum { ROUNDS = 41, ROWS = 100 };

typedef struct spread {
    double median, low, high;
} spread;

static spread spread_of(double *x, int count)
{
    bench_sort(x, count);
    return (spread){x[count / 2], x[count / 10], x[count - 1 - count / 10]};
}

static tb_box ball(double x, double y, double z)
{
    tb_box b;
    b.lower = tb_v3(TB_R(x - 0.5), TB_R(y - 0.5), TB_R(z - 0.5));
    b.upper = tb_v3(TB_R(x + 0.5), TB_R(y + 0.5), TB_R(z + 0.5));
    return b;
}

/* rows (rows + 1) / 2 + 1 balls in the plane y = 0 */
static int32_t triangle(tb_box *boxes, int rows)
{
    int32_t n = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c <= r; c++) boxes[n++] = ball(c - 0.5 * r, 0, r * 0.8660254037844386);
    boxes[n++] = ball(0, 0, -2);
    return n;
}

static int fail(const char *what)
{
    fprintf(stderr, "bench_broad: %s\n", what);
    return 1;
}

/* Times of `threads` threads and of brute force, alternately. */
static int compare_with_brute(const tb_box *boxes, int32_t n, int32_t threads)
{
    double (*const clock)(void) = threads == 1 ? bench_worked : bench_now;
    tb_arena arena = {0};
    double fast[ROUNDS], slow[ROUNDS], ratio[ROUNDS];
    int32_t count = 0, expected = 0;
    for (int k = -3; k < ROUNDS; k++) {
        /* the fast one is run often, and its median run counts */
        enum { REPEATS = 25 };
        double run[REPEATS], start;
        tb_pair *pairs;
        for (int i = 0; i < REPEATS; i++) {
            tb_arena_reset(&arena);
            start = clock();
            if (tb_broad_phase(boxes, n, NULL, NULL, threads, &arena, &pairs, &count) != TB_OK)
                return fail("no memory");
            run[i] = clock() - start;
        }
        const double a = spread_of(run, REPEATS).median;
        tb_arena_reset(&arena);
        start = clock();
        if (tb_broad_phase_brute(boxes, n, NULL, NULL, &arena, &pairs, &expected) != TB_OK)
            return fail("no memory");
        const double b = clock() - start;
        if (k < 0) continue;
        fast[k] = a;
        slow[k] = b;
        ratio[k] = b / a;
    }
    if (count != expected) return fail("the two do not find the same pairs");
    const spread f = spread_of(fast, ROUNDS), s = spread_of(slow, ROUNDS);
    const spread r = spread_of(ratio, ROUNDS);
    printf(
        "%d balls, %d pairs, %d thread%s: %.3f ms [%.3f, %.3f], brute force %.2f ms [%.2f, %.2f], "
        "ratio %.1f [%.1f, %.1f] (published: 78)\n",
        n, count, threads, threads == 1 ? "" : "s", 1e3 * f.median, 1e3 * f.low, 1e3 * f.high,
        1e3 * s.median, 1e3 * s.low, 1e3 * s.high, r.median, r.low, r.high);
    tb_arena_destroy(&arena);
    return 0;
}

/* Time per box as the scene grows. */
static int growth(void)
{
    tb_arena arena = {0};
    const int rows[] = {14, 44, 100, 141, 447};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        tb_box *boxes = malloc(sizeof(tb_box) * ((size_t)rows[k] * (size_t)(rows[k] + 1) / 2 + 1));
        if (!boxes) return fail("no memory");
        const int32_t n = triangle(boxes, rows[k]);
        double time[15];
        for (int i = -2; i < 15; i++) {
            tb_pair *pairs;
            int32_t count;
            const int repeats = 1 + 20000 / n;
            const double start = bench_worked();
            for (int j = 0; j < repeats; j++) {
                tb_arena_reset(&arena);
                if (tb_broad_phase(boxes, n, NULL, NULL, 1, &arena, &pairs, &count) != TB_OK)
                    return fail("no memory");
            }
            if (i >= 0) time[i] = (bench_worked() - start) / repeats;
        }
        const spread t = spread_of(time, 15);
        printf("%7d balls: %8.3f ms, %5.1f ns a ball [%.1f, %.1f]\n", n, 1e3 * t.median,
               1e9 * t.median / n, 1e9 * t.low / n, 1e9 * t.high / n);
        free(boxes);
    }
    tb_arena_destroy(&arena);
    return 0;
}

/* Table 8.1: average intervals per body for cells of these sizes. The thesis reckons cells as
 * (x + 1e6 cells) / cell + 97151. */
static void table(const tb_box *boxes, int32_t n)
{
    const double cells[] = {2, 1, 0.5, 0.1, 0.01, 0.001},
                 printed[] = {4.5, 8.0, 8.0, 5.2, 3.2, 7.8};
    printf("intervals per body (Table 8.1): ");
    for (int k = 0; k < 6; k++) {
        const double corner = -(1e6 + 97151) * cells[k];
        int64_t sum = 0;
        for (int32_t i = 0; i < n; i++) {
            uint64_t start[8], end[8];
            sum += tb_morton_intervals(&boxes[i], tb_v3(TB_R(corner), TB_R(corner), TB_R(corner)),
                                       TB_R(cells[k]), start, end);
        }
        printf("%s%g m %.2f (%.1f)", k ? ", " : "", cells[k], (double)sum / n, printed[k]);
    }
    printf("\n");
}

int main(void)
{
    static tb_box boxes[ROWS * (ROWS + 1) / 2 + 1];
    const int32_t n = triangle(boxes, ROWS);
    table(boxes, n);
    const int32_t threads = tb_parallel_threads(0);
    if (compare_with_brute(boxes, n, 1)) return 1;
    if (threads > 1 && compare_with_brute(boxes, n, threads)) return 1;
    return growth();
}
