/* Functions of Modelica on a card: products beside cuBLAS, calls whose arrays are sent or kept, and first
 * calls. Prints a JSON object a line; without a card it says so and ends with 0.
 *
 *   bench_functions [FOLDER]           the models: tests/data/modelica
 *   bench_functions products           products alone
 *   bench_functions sweeps [FOLDER]    shallow water: sequential loops whose launches take many rounds
 *   bench_functions small, small-sweeps [FOLDER]   small ones, checked and not timed: for a sanitizer
 *
 * cuBLAS is loaded at run time (libcublas.so.13 or 12); without it its column is 0. */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/function_values.h"
#include "tribo_function.h"

static const char PRODUCTS[] =
    "function ordered\n  input Real A[:, :];\n  input Real B[size(A, 2), :];\n"
    "  input Integer times;\n  output Real C[size(A, 1), size(B, 2)];\nprotected\n  Real s;\n"
    "algorithm\n  for r in 1:times loop\n    for i in 1:size(A, 1), j in 1:size(B, 2) loop\n"
    "      s := 0;\n      for k in 1:size(A, 2) loop\n        s := s + A[i, k] * B[k, j];\n"
    "      end for;\n      C[i, j] := s;\n    end for;\n  end for;\n"
    "  annotation(gpuFunction = true%s);\nend ordered;\n";

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tb_function_program *compile(const char *text, const char *name)
{
    tb_error error = {0};
    tb_function_program *program = NULL;
    if (tb_function_compile(text, strlen(text), name, &program, NULL, &error) == TB_OK)
        return program;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

/* Calls the function; ends the program if it fails. */
static void call(const tb_function_program *program, int32_t function, tb_function_backend backend,
                 const tb_function_value *inputs, const bool *keep, tb_function_value *outputs,
                 tb_function_timing *timing)
{
    tb_error error = {0};
    tb_function_options options = tb_function_defaults();
    options.backend = backend;
    options.cache = "";
    options.keep = keep;
    options.seconds = 600;
    options.memory_bytes = UINT64_C(8) << 30;
    const tb_status status =
        tb_function_call(program, function, &options, inputs, outputs, timing, &error);
    if (status == TB_OK) return;
    if (status == TB_UNAVAILABLE) printf("{\"skipped\": \"%s\"}\n", error.message);
    if (status != TB_UNAVAILABLE) fprintf(stderr, "%s\n", error.message);
    exit(status != TB_UNAVAILABLE);
}

/* ---- products ---- */

typedef struct blas {
    void *handle, *begin, *end;
    int (*gemm)(void *, int, int, int, int, int, const double *, const double *, int,
                const double *, int, const double *, double *, int);
    int (*allocate)(unsigned long long *, size_t);
    int (*release)(unsigned long long);
    int (*record)(void *, void *);
    int (*wait)(void);
    int (*elapsed)(float *, void *, void *);
} blas;

static bool open_blas(blas *b)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *library = NULL;
    static const char *const NAMES[] = {"libcublas.so.13", "libcublas.so.12"};
    for (int k = 0; k < 2 && library == NULL; k++) library = dlopen(NAMES[k], RTLD_NOW);
    if (driver == NULL || library == NULL) return false;
    int (*create)(void **), (*event)(void **, unsigned);
    *(void **)&create = dlsym(library, "cublasCreate_v2");
    *(void **)&event = dlsym(driver, "cuEventCreate");
    *(void **)&b->gemm = dlsym(library, "cublasDgemm_v2");
    *(void **)&b->allocate = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&b->release = dlsym(driver, "cuMemFree_v2");
    *(void **)&b->record = dlsym(driver, "cuEventRecord");
    *(void **)&b->wait = dlsym(driver, "cuCtxSynchronize");
    *(void **)&b->elapsed = dlsym(driver, "cuEventElapsedTime");
    return create(&b->handle) == 0 && event(&b->begin, 0) == 0 && event(&b->end, 0) == 0;
}

/* s of one product of n x n matrices, the mean of many in a row; the least of a few means */
static double time_blas(const blas *b, int n)
{
    enum { TIMES = 40, TRIES = 5 };
    unsigned long long x = 0, y = 0, z = 0;
    const size_t bytes = (size_t)n * (size_t)n * 8;
    const double one = 1, zero = 0;
    double best = DBL_MAX;
    if (b->allocate(&x, bytes) != 0 || b->allocate(&y, bytes) != 0 || b->allocate(&z, bytes) != 0)
        return 0;
    for (int k = 0; k < TRIES; k++) {
        float milliseconds = 0;
        b->record(b->begin, NULL);
        for (int i = 0; i < TIMES; i++)
            b->gemm(b->handle, 0, 0, n, n, n, &one, (const double *)(uintptr_t)x, n,
                    (const double *)(uintptr_t)y, n, &zero, (double *)(uintptr_t)z, n);
        b->record(b->end, NULL);
        b->wait();
        b->elapsed(&milliseconds, b->begin, b->end);
        best = fmin(best, 1e-3 * (double)milliseconds / TIMES);
    }
    b->release(x);
    b->release(y);
    b->release(z);
    return best;
}

/* the same by a function: the difference between calls with many and few products */
static double time_product(const tb_function_program *program, int n)
{
    enum { FEW = 4, MANY = 44, TRIES = 5 };
    static const bool KEEP[] = {true};
    tb_function_value inputs[3] = {bench_matrix(n, n, 1, 0.5), bench_matrix(n, n, 1, 0.5),
                                   bench_whole(0)},
                      c;
    double least[2] = {DBL_MAX, DBL_MAX};
    tb_error error;
    for (int k = 0; k < 2; k++) {
        tb_function_value kept = {.type = TB_FUNCTION_REAL, .rank = 2};
        tb_function_array_make(&inputs[k], &kept.kept, &error);
        tb_function_value_free(&inputs[k]);
        inputs[k] = kept;
    }
    for (int k = 0; k < 2 * TRIES; k++) {
        tb_function_timing timing;
        *(int64_t *)inputs[2].data = k % 2 == 0 ? FEW : MANY;
        call(program, 0, TB_FUNCTION_GPU, inputs, KEEP, &c, &timing);
        tb_function_value_free(&c);
        least[k % 2] = fmin(least[k % 2], timing.kernel_seconds);
    }
    for (int k = 0; k < 3; k++) tb_function_value_free(&inputs[k]);
    return (least[1] - least[0]) / (MANY - FEW);
}

/* the largest difference to the processor's product, relative; negative sizes of a product fail */
static double check_product(const tb_function_program *program, int64_t m, int64_t depth, int64_t n)
{
    tb_function_value inputs[3] = {bench_matrix(m, depth, 0.1, 2), bench_matrix(depth, n, -0.2, 2),
                                   bench_whole(1)};
    tb_function_value c[2];
    call(program, 0, TB_FUNCTION_CPU, inputs, NULL, &c[0], NULL);
    call(program, 0, TB_FUNCTION_GPU, inputs, NULL, &c[1], NULL);
    const double difference = bench_furthest(&c[0], &c[1]);
    for (int k = 0; k < 3; k++) tb_function_value_free(&inputs[k]);
    for (int k = 0; k < 2; k++) tb_function_value_free(&c[k]);
    return difference;
}

static int bench_products(bool small)
{
    static const int SIZES[] = {50, 100, 200, 300, 500, 700, 1000, 2000};
    static const int64_t SHAPES[][3] = {{33, 1, 35},     {32, 16, 32},    {65, 17, 127},
                                        {50, 50, 50},    {100, 99, 97},   {130, 34, 66},
                                        {200, 200, 200}, {257, 511, 255}, {500, 500, 500},
                                        {501, 333, 77},  {700, 650, 710}, {1000, 1000, 1000}};
    blas b = {0};
    char text[1024];
    int failed = 0;
    tb_function_program *program[2];
    for (int k = 0; k < 2; k++) {
        snprintf(text, sizeof text, PRODUCTS, k == 0 ? "" : ", __Tribod_reorder = true");
        program[k] = compile(text, "products.mo");
    }
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++) {
        const int64_t *shape = SHAPES[s];
        if (small && shape[0] * shape[1] > 40000) continue;
        const double ordered = check_product(program[0], shape[0], shape[1], shape[2]);
        const double any = check_product(program[1], shape[0], shape[1], shape[2]);
        const bool good = ordered == 0 && any <= 1e-13;
        failed += !good;
        printf("{\"part\": \"product\", \"m\": %lld, \"depth\": %lld, \"n\": %lld, "
               "\"difference_in_order\": %g, \"difference_any_order\": %g, \"good\": %s}\n",
               (long long)shape[0], (long long)shape[1], (long long)shape[2], ordered, any,
               good ? "true" : "false");
    }
    const bool has_blas = !small && open_blas(&b);
    for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0] && !small; s++) {
        const int n = SIZES[s];
        const double library = has_blas ? time_blas(&b, n) : 0;
        const double ordered = time_product(program[0], n), any = time_product(program[1], n);
        printf("{\"part\": \"products\", \"n\": %d, \"in_order_us\": %.2f, \"any_order_us\": %.2f, "
               "\"cublas_us\": %.2f, \"ratio_in_order\": %.2f, \"ratio_any_order\": %.2f}\n",
               n, 1e6 * ordered, 1e6 * any, 1e6 * library, library > 0 ? ordered / library : 0,
               library > 0 ? any / library : 0);
        fflush(stdout);
    }
    tb_function_destroy(program[0]);
    tb_function_destroy(program[1]);
    return failed;
}

/* ---- calls ---- */

static char *read_text(const char *folder, const char *file)
{
    char path[4096], *text = calloc(1, 1 << 18);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *in = fopen(path, "r");
    if (in == NULL || fread(text, 1, (1 << 18) - 1, in) == 0) {
        fprintf(stderr, "no %s\n", path);
        exit(1);
    }
    fclose(in);
    return text;
}

static int64_t bytes_of(const tb_function_value *value)
{
    int64_t bytes = 8;
    for (int32_t d = 0; d < value->rank; d++) bytes *= value->size[d];
    return bytes;
}

/* Whether the arrays that a call keeps have the bytes of those that another one sent. */
static bool keeps_bytes(const tb_function_program *program, int32_t function,
                        const tb_function_value *inputs, const bool *keep,
                        const tb_function_value *sent, int32_t count)
{
    tb_function_value outputs[16];
    tb_error error;
    bool same = true;
    call(program, function, TB_FUNCTION_GPU, inputs, keep, outputs, NULL);
    for (int32_t k = 0; k < count; k++) {
        tb_function_value read = outputs[k];
        if (keep[k] && tb_function_array_read(outputs[k].kept, &read, &error) != TB_OK)
            return false;
        same = same && memcmp(read.data, sent[k].data, (size_t)bytes_of(&sent[k])) == 0;
        if (keep[k]) tb_function_value_free(&read);
        tb_function_value_free(&outputs[k]);
    }
    return same;
}

/* Median time of a call, s, less the time from its first launch to the end of the card's work. */
static double time_beyond(const tb_function_program *program, int32_t function,
                          const tb_function_value *inputs, const bool *keep, int32_t count,
                          double *kernels)
{
    enum { TRIES = 9 };
    double beyond[TRIES];
    for (int k = 0; k < TRIES; k++) {
        tb_function_value outputs[16];
        tb_function_timing timing;
        const double begin = seconds_now();
        call(program, function, TB_FUNCTION_GPU, inputs, keep, outputs, &timing);
        const double own = seconds_now() - begin - timing.kernel_seconds;
        *kernels = timing.kernel_seconds;
        int i = k;
        for (; i > 0 && beyond[i - 1] > own; i--) beyond[i] = beyond[i - 1];
        beyond[i] = own;
        for (int32_t q = 0; q < count; q++) tb_function_value_free(&outputs[q]);
    }
    return beyond[TRIES / 2];
}

/* false: kept arrays have other bytes than arrays that are sent */
static bool bench_call(const char *text, const char *name, tb_function_value *inputs, int32_t given)
{
    bool keep[16] = {false};
    tb_function_info info;
    tb_function_timing timing;
    tb_function_value outputs[16];
    double kernels_sent = 0, kernels_kept = 0;
    int64_t sent = 0, back = 0;
    tb_error error;
    tb_function_program *program = compile(text, name);
    const int32_t function = tb_function_find(program, name);
    tb_function_describe(program, function, &info);
    const double begin = seconds_now();
    call(program, function, TB_FUNCTION_GPU, inputs, NULL, outputs, &timing);
    const double first = seconds_now() - begin;
    for (int32_t k = 0; k < info.outputs; k++) {
        keep[k] = outputs[k].rank > 0;
        back += bytes_of(&outputs[k]);
    }
    const double beyond_sent =
        time_beyond(program, function, inputs, NULL, info.outputs, &kernels_sent);
    for (int32_t k = 0; k < given; k++) {
        sent += inputs[k].data != NULL ? bytes_of(&inputs[k]) : 0;
        if (inputs[k].rank == 0) continue;
        tb_function_value kept = {.type = inputs[k].type, .rank = inputs[k].rank};
        tb_function_array_make(&inputs[k], &kept.kept, &error);
        tb_function_value_free(&inputs[k]);
        inputs[k] = kept;
    }
    time_beyond(program, function, inputs, keep, info.outputs, &kernels_kept);
    const double beyond_kept =
        time_beyond(program, function, inputs, keep, info.outputs, &kernels_kept);
    const bool same = keeps_bytes(program, function, inputs, keep, outputs, info.outputs);
    for (int32_t k = 0; k < info.outputs; k++) tb_function_value_free(&outputs[k]);
    printf("{\"part\": \"call\", \"function\": \"%s\", \"first_call_s\": %.3f, "
           "\"compile_s\": %.3f, \"launches\": %lld, \"bytes_in\": %lld, \"bytes_out\": %lld, "
           "\"kernels_us\": %.1f, \"beyond_sent_us\": %.1f, \"kernels_kept_us\": %.1f, "
           "\"beyond_kept_us\": %.1f, \"kept_bytes_equal\": %s}\n",
           name, first, timing.compile_seconds, (long long)timing.launches, (long long)sent,
           (long long)back, 1e6 * kernels_sent, 1e6 * beyond_sent, 1e6 * kernels_kept,
           1e6 * beyond_kept, same ? "true" : "false");
    fflush(stdout);
    for (int32_t k = 0; k < given; k++) tb_function_value_free(&inputs[k]);
    tb_function_destroy(program);
    return same;
}

/* Shallow water with grids below and above the blocks that the card runs at once; the outputs must have the
 * processor's bytes. Times are of calls with kept arrays: the least of a few. */
static int bench_sweeps(const char *folder, bool small)
{
    enum { TRIES = 4, OUTPUTS = 3 };
    static const struct {
        int64_t rows, columns, steps;
    } ROWS[] = {{20, 23, 1},    {20, 23, 9},       {64, 100, 14},    {250, 130, 23},
                {650, 420, 11}, {256, 256, 20000}, {512, 512, 2000}, {1024, 1024, 200},
                {32, 32, 2000}, {2048, 2048, 40},  {256, 256, 100}};
    static const bool KEEP[OUTPUTS] = {true, true, true};
    int failed = 0;
    char *water = read_text(folder, "shallow_water.mo");
    tb_function_program *program = compile(water, "shallow_water.mo");
    const int32_t euler = tb_function_find(program, "euler");
    for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
        const int64_t m = ROWS[r].rows, n = ROWS[r].columns, steps = ROWS[r].steps;
        tb_function_value inputs[] = {bench_matrix(m, n, 0, 1),
                                      bench_matrix(m + 1, n, 0, 0),
                                      bench_matrix(m, n + 1, 0, 0),
                                      bench_number(8),
                                      bench_number(32),
                                      bench_number(1.0 / (double)(m > n ? m : n)),
                                      bench_whole(steps)};
        tb_function_value cpu[OUTPUTS], gpu[OUTPUTS];
        tb_function_timing timing;
        double least = DBL_MAX;
        bool same = true;
        if (small && m * n * steps > 5000000) continue;
        call(program, euler, TB_FUNCTION_CPU, inputs, NULL, cpu, NULL);
        call(program, euler, TB_FUNCTION_GPU, inputs, NULL, gpu, &timing);
        const int64_t launches = timing.launches;
        for (int k = 0; k < OUTPUTS; k++) {
            same = same && memcmp(cpu[k].data, gpu[k].data, (size_t)bytes_of(&cpu[k])) == 0;
            tb_function_value_free(&cpu[k]);
            tb_function_value_free(&gpu[k]);
        }
        for (int q = 0; q < TRIES && !small; q++) {
            call(program, euler, TB_FUNCTION_GPU, inputs, KEEP, gpu, &timing);
            least = fmin(least, timing.kernel_seconds);
            for (int k = 0; k < OUTPUTS; k++) tb_function_value_free(&gpu[k]);
        }
        failed += !same;
        printf("{\"part\": \"sweep\", \"rows\": %lld, \"columns\": %lld, \"steps\": %lld, "
               "\"launches\": %lld, \"us_a_step\": %.3f, \"bytes_equal\": %s}\n",
               (long long)m, (long long)n, (long long)steps, (long long)launches,
               small ? 0 : 1e6 * least / (double)steps, same ? "true" : "false");
        fflush(stdout);
        for (size_t k = 0; k < sizeof inputs / sizeof inputs[0]; k++)
            tb_function_value_free(&inputs[k]);
    }
    tb_function_destroy(program);
    free(water);
    return failed;
}

/* An integrator of a model's function of rates. */
static char *integrator(const char *text, const char *name, tb_function_method method)
{
    tb_error error = {0};
    char *source = NULL;
    tb_function_program *program = compile(text, name);
    if (tb_function_integrator(program, tb_function_find(program, name), method, &source, &error) !=
        TB_OK)
        fprintf(stderr, "%s\n", error.message);
    tb_function_destroy(program);
    return source;
}

#define CALL(text, name, ...)                                                                      \
    do {                                                                                           \
        tb_function_value inputs_[] = {__VA_ARGS__};                                               \
        failed += !bench_call(text, name, inputs_, (int32_t)(sizeof inputs_ / sizeof inputs_[0])); \
    } while (0)

static int bench_calls(const char *folder)
{
    int failed = 0;
    const int64_t cells[3] = {96, 96, 96}, nx = 512;
    char *matmul = read_text(folder, "matmul.mo"), *water = read_text(folder, "shallow_water.mo");
    char *plates = read_text(folder, "cold_plates.mo"), *stam = read_text(folder, "stam.mo");
    char *airflow = read_text(folder, "airflow.mo");
    CALL(matmul, "multiply", bench_matrix(500, 500, 1, 1), bench_matrix(500, 500, 1, 1));
    CALL(matmul, "multiply_in_any_order", bench_matrix(1000, 1000, 1, 1),
         bench_matrix(1000, 1000, 1, 1));
    CALL(water, "euler", bench_matrix(256, 256, 0, 1), bench_matrix(257, 256, 0, 0),
         bench_matrix(256, 257, 0, 0), bench_number(8), bench_number(32), bench_number(1.0 / 256),
         bench_whole(100));
    CALL(water, "runge_kutta", bench_matrix(256, 256, 0, 1), bench_matrix(257, 256, 0, 0),
         bench_matrix(256, 257, 0, 0), bench_number(8), bench_number(32), bench_number(1.0 / 256),
         bench_whole(20));
    CALL(plates, "simulate", bench_matrix(nx, 512, 295, 0), bench_array(1, &nx, 100500, 0),
         bench_array(1, &nx, 295, 0), bench_number(1e-7), bench_whole(20));
    CALL(stam, "coupled", bench_matrix(258, 258, 0, 0.1), bench_matrix(258, 258, 0, 0.1),
         bench_matrix(258, 258, 1, 1), bench_matrix(258, 258, 0, 0.1),
         bench_matrix(258, 258, 0, 0.1), bench_matrix(258, 258, 1, 1), bench_whole(1));
    CALL(airflow, "flows", bench_array(3, cells, 295, 10), bench_array(3, cells, 0, 1),
         bench_array(3, cells, 0, 1), bench_array(3, cells, 0, 1), bench_number(0.1));
    free(matmul);
    free(water);
    free(stam);
    free(airflow);
    free(plates);
    return failed;
}

static int bench_integrators(const char *folder)
{
    int failed = 0;
    const int64_t nx = 64;
    char *plates = read_text(folder, "cold_plates.mo");
    for (int m = TB_FUNCTION_EULER; m <= TB_FUNCTION_IMPLICIT_EULER; m++) {
        char name[64];
        char *source = integrator(plates, "derivatives", (tb_function_method)m);
        if (source == NULL) continue;
        snprintf(name, sizeof name, "derivatives_%s",
                 tb_function_method_name((tb_function_method)m));
        CALL(source, name, bench_matrix(nx, 64, 295, 0), bench_array(1, &nx, 100500, 0),
             bench_array(1, &nx, 295, 0), bench_number(1e-7), bench_whole(2));
        free(source);
    }
    free(plates);
    return failed;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "", *folder = "tests/data/modelica";
    const bool small = strcmp(part, "small") == 0, products = strcmp(part, "products") == 0;
    const bool few = strcmp(part, "small-sweeps") == 0, sweeps = strcmp(part, "sweeps") == 0;
    const bool all = !small && !products && !few && !sweeps;
    if (argc > 2 || (argc > 1 && all)) folder = argv[argc - 1];
    int failed = 0;
    /* the card is warm before the first calls that are timed */
    if (all || products || small) failed += bench_products(small);
    if (few || sweeps) failed += bench_sweeps(folder, few);
    if (all) failed += bench_calls(folder) + bench_integrators(folder);
    return failed > 0;
}
