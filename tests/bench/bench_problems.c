/* Contact problems from files, solved from zero again and again: the median time of a solve, hot,
 * reading excluded, and its residual.
 *
 *   bench_problems [--solver auto] [--tolerance 1e-8] [--reactions FOLDER] [--text FOLDER] FILE...
 *
 * --reactions writes each solution there as doubles (NAME.bin), --text each problem in text form
 * (NAME.dat), so that others can solve and judge the same. One JSON object a file. */
#include "common_bench.h"

static const double SECONDS = 0.4; /* of repetitions of one file */

typedef struct bench {
    tb_solve_options options;
    const char *reactions, *text;
} bench;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void write_reactions(const bench *b, const char *path, const double *reactions, int32_t rows)
{
    char name[700];
    snprintf(name, sizeof name, "%s/%s.bin", b->reactions, base_name(path));
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(reactions, sizeof *reactions, (size_t)rows, file) != (size_t)rows) {
        fprintf(stderr, "bench: %s cannot be written\n", name);
        exit(1);
    }
    fclose(file);
}

static void measure(const bench *b, const char *path)
{
    tb_error error;
    tb_problem_file *problem = NULL;
    tb_problem_result result = {0};
    bench_figure figure = {.name = base_name(path), .unit = "s"};
    bench_check(tb_problem_load(path, &problem, &error), &error);
    const tb_problem_info info = tb_problem_describe(problem);
    double *reactions = calloc((size_t)info.rows + 1, sizeof *reactions);
    if (reactions == NULL) exit(1);
    const double begin = bench_now();
    for (int i = 0; i < BENCH_RUNS && (i < 5 || bench_now() < begin + SECONDS); i++) {
        const double start = bench_now();
        const tb_status status =
            tb_problem_solve(problem, &b->options, reactions, NULL, &result, &error);
        bench_add(&figure, bench_now() - start);
        if (status != TB_NOT_CONVERGED) bench_check(status, &error);
        if (figure.samples[i] > 10) break;
    }
    if (b->reactions != NULL) write_reactions(b, path, reactions, info.rows);
    if (b->text != NULL) {
        char name[700];
        snprintf(name, sizeof name, "%s/%s.dat", b->text, base_name(path));
        bench_check(tb_problem_save(problem, name, &error), &error);
    }
    printf("{\"bench\": \"problems\", \"file\": \"%s\", \"dimension\": %d, \"contacts\": %d, "
           "\"rows\": %d, \"global\": %s, \"solver\": \"%s\", \"status\": \"%s\", "
           "\"residual\": %.17g, \"iterations\": %d, \"seconds\": %.9g, \"repeats\": %d}\n",
           base_name(path), info.dimension, info.contacts, info.rows,
           info.global ? "true" : "false", result.solver, tb_status_name(result.status),
           result.residual, result.iterations, bench_median(&figure), figure.count);
    fflush(stdout);
    free(reactions);
    tb_problem_destroy(problem);
}

int main(int argc, char **argv)
{
    bench b = {.options = tb_solve_defaults()};
    int files = 0;
    b.options.tolerance = 1e-8;
    b.options.maximum_iterations = 100000;
    b.options.threads = 1;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--solver") == 0)
            b.options.solver = argv[++i];
        else if (more && strcmp(argv[i], "--tolerance") == 0)
            b.options.tolerance = strtod(argv[++i], NULL);
        else if (more && strcmp(argv[i], "--reactions") == 0)
            b.reactions = argv[++i];
        else if (more && strcmp(argv[i], "--text") == 0)
            b.text = argv[++i];
        else
            argv[++files] = argv[i];
    }
    if (files == 0) puts("bench: no file of a contact problem is named");
    for (int i = 1; i <= files; i++) measure(&b, argv[i]);
    return 0;
}
