/* Quadratic programs with a band beyond Litven's table 7.1 (tribo bench schurpa has that):
 *
 *   symgbmm   his figure 6.2: the product of a band with a matrix, on the processor and, with a
 *             card, in its naive and its shared variant
 *   kept      solves in a row whose f drifts, each from the last set: with the last one's
 *             factorization (tb_qp_solver) and without, alternating
 *
 * bench_programs [n half_bandwidth columns]; 2000 250 32 without. A card counts if TRIBO_GPU_PLUGIN
 * or the plug-in beside the program finds one. */
#include "tribo_qp.h"
#include "common_bench.h"

enum { TURNS = 7, WARM_UP = 1, BOUNDS_AT_A_TIME = 10 };

static const char *const VARIANTS[] = {"host", "naive", "shared"};
static const char *const PRECISIONS[] = {[TB_DOUBLE] = "double", [TB_FLOAT] = "float"};
static const char *const WHERE[] = {[TB_BACKEND_CPU] = "cpu", [TB_BACKEND_GPU] = "gpu"};

typedef struct problem {
    tb_qp_program program;
    int32_t columns;
    bool card;
    double *hessian, *f, *value, *b, *x, *lambda;
    int32_t *row_start, *column;
    uint8_t *active;
} problem;

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) {
        fprintf(stderr, "bench: no memory\n");
        exit(1);
    }
    return memory;
}

/* x >= 0 */
static problem make_problem(int32_t n, int32_t half, int32_t columns)
{
    problem p = {.columns = columns};
    tb_error error = {0};
    tb_device_info info;
    const size_t count = (size_t)n;
    p.hessian = room(count * ((size_t)half + 1), sizeof *p.hessian);
    p.f = room(count, sizeof *p.f);
    p.value = room(count, sizeof *p.value);
    p.b = room(count, sizeof *p.b);
    p.x = room(count, sizeof *p.x);
    p.lambda = room(count, sizeof *p.lambda);
    p.row_start = room(count, sizeof *p.row_start);
    p.column = room(count, sizeof *p.column);
    p.active = room(count, sizeof *p.active);
    bench_check(tb_qp_random(n, half, 1, p.hessian, p.f, &error), &error);
    for (int32_t j = 0; j <= n; j++) p.row_start[j] = p.column[j] = j;
    for (int32_t j = 0; j < n; j++) p.value[j] = -1;
    p.program = (tb_qp_program){.n = n,
                                .half_bandwidth = half,
                                .hessian = p.hessian,
                                .f = p.f,
                                .constraints = n,
                                .row_start = p.row_start,
                                .column = p.column,
                                .value = p.value,
                                .b = p.b};
    p.card = tb_device_describe(TB_BACKEND_GPU, 0, &info, NULL) == TB_OK;
    return p;
}

static void free_problem(problem *p)
{
    void *const memory[] = {p->hessian, p->f,         p->value,  p->b,     p->x,
                            p->lambda,  p->row_start, p->column, p->active};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) free(memory[i]);
}

/* ---- products ---- */

static void bench_products(const problem *p, tb_precision precision)
{
    const size_t count = (size_t)p->program.n * (size_t)p->columns;
    double *a = room(count, sizeof *a), *c = room(count, sizeof *c);
    for (size_t i = 0; i < count; i++) a[i] = (double)(i % 17) - 8;
    for (int v = TB_SYMGBMM_HOST; v <= (p->card ? TB_SYMGBMM_SHARED : TB_SYMGBMM_HOST); v++) {
        char name[64];
        bench_figure figure = {.name = name, .unit = "ms"};
        snprintf(name, sizeof name, "symgbmm %s %s", VARIANTS[v], PRECISIONS[precision]);
        for (int turn = 0; turn < TURNS + WARM_UP; turn++) {
            tb_error error = {0};
            double seconds;
            bench_check(tb_symgbmm((tb_symgbmm_variant)v, precision, 0, p->program.n,
                                   p->program.half_bandwidth, p->columns, p->hessian, a, c,
                                   &seconds, &error),
                        &error);
            if (turn >= WARM_UP) bench_add(&figure, 1e3 * seconds);
        }
        bench_print(&figure);
    }
    free(a);
    free(c);
}

/* ---- solves in a row ---- */

/* f of some variables changes its sign, others each turn: about so many bounds change with it */
static void drift(problem *p, int turn)
{
    const int32_t step = p->program.n / BOUNDS_AT_A_TIME;
    for (int32_t k = 0; k < BOUNDS_AT_A_TIME; k++) {
        const int32_t j = (k * step + 31 * turn) % p->program.n;
        p->f[j] = -p->f[j];
    }
}

static void bench_kept(problem *p, tb_backend_choice where, tb_precision precision)
{
    tb_qp_options options = tb_qp_defaults();
    tb_qp_solver *solvers[2] = {NULL, NULL};
    char names[2][64];
    bench_figure figures[2];
    tb_error error = {0};
    tb_qp_result result;
    double gain[TURNS];
    int32_t factorizations = 0;
    options.backend = where;
    options.precision = precision;
    for (int k = 0; k < 2; k++) {
        snprintf(names[k], sizeof names[k], "solve %s %s %s", k ? "fresh" : "kept", WHERE[where],
                 PRECISIONS[precision]);
        figures[k] = (bench_figure){.name = names[k], .unit = "ms"};
        bench_check(tb_qp_solver_open(&p->program, &options, &solvers[k], &error), &error);
    }
    uint8_t *start = room((size_t)p->program.n, 1);
    for (int turn = 0; turn < TURNS + WARM_UP; turn++) {
        double seconds[2];
        drift(p, turn);
        for (int k = 0; k < 2; k++) {
            memcpy(p->active, start, (size_t)p->program.n);
            if (k == 1) tb_qp_solver_forget(solvers[k]);
            const double began = bench_now();
            bench_check(tb_qp_solver_solve(solvers[k], p->f, p->b, p->active, p->x, p->lambda,
                                           &result, &error),
                        &error);
            seconds[k] = bench_now() - began;
            bench_check(result.status, &error);
            if (turn >= WARM_UP) bench_add(&figures[k], 1e3 * seconds[k]);
            if (turn >= WARM_UP && k == 0) factorizations += result.factorizations;
        }
        memcpy(start, p->active, (size_t)p->program.n);
        if (turn >= WARM_UP) gain[turn - WARM_UP] = seconds[1] / seconds[0];
    }
    for (int k = 0; k < 2; k++) {
        bench_print(&figures[k]);
        tb_qp_solver_close(solvers[k]);
    }
    char name[80];
    bench_sort(gain, TURNS);
    snprintf(name, sizeof name, "fresh / kept %s %s", WHERE[where], PRECISIONS[precision]);
    bench_print_number(name, "times", gain[TURNS / 2]);
    snprintf(name, sizeof name, "factorizations kept %s %s", WHERE[where], PRECISIONS[precision]);
    bench_print_number(name, "", factorizations);
    free(start);
}

int main(int argc, char **argv)
{
    const int32_t n = argc > 1 ? atoi(argv[1]) : 2000, half = argc > 2 ? atoi(argv[2]) : 250;
    problem p = make_problem(n, half, argc > 3 ? atoi(argv[3]) : 32);
    for (int precision = TB_DOUBLE; precision <= TB_FLOAT; precision++) {
        bench_products(&p, (tb_precision)precision);
        bench_kept(&p, TB_BACKEND_CPU, (tb_precision)precision);
        if (p.card) bench_kept(&p, TB_BACKEND_GPU, (tb_precision)precision);
    }
    free_problem(&p);
    return 0;
}
