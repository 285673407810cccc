/* Contact problems of other people's simulations and of our own, solved to 1e-8.
 *
 * Source of the first: the test data of Siconos in ../shared/data/contact-problems, read if it is
 * there and skipped with a message if not. Residual: natural map at rho = 1 in De Saxcé form over
 * ||q|| (Acary, Brémond, Huber, RR-9118), in double, by W as the file has it. For files in global
 * form, q is the local one, H' inverse(M) f + w. `auto` solves every one of them unchanged.
 * Problems that `sor` alone has solved must stay solved; for the others, the residual that it
 * reaches must not grow. Prints the table of the closing note. */
#include "common_truth.h"

#include <dirent.h>

static const char FOREIGN[] = "../shared/data/contact-problems";
static const char OWN[] = "tests/data/problems";

enum { MOST_FILES = 100, NAME_SIZE = 160, MOST_ITERATIONS = 30000 };

/* not solved to 1e-8 by sor: the residual that it must reach */
static const struct {
    const char *name;
    double reach;
} UNSOLVED[] = {
    {"RockPile_tob1.dat", 1e-4},
    {"spheres-in-a-box-98-i10000-256-10.hdf5", 2e-5},
};

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* names of a folder's problem files, sorted; -1 where there is no such folder */
static int list(const char *folder, char names[][NAME_SIZE])
{
    DIR *directory = opendir(folder);
    if (!directory) return -1;
    int count = 0;
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || (strcmp(dot, ".dat") != 0 && strcmp(dot, ".hdf5") != 0)) continue;
        ck_assert(count < MOST_FILES && strlen(entry->d_name) < NAME_SIZE);
        snprintf(names[count++], NAME_SIZE, "%.*s", NAME_SIZE - 1, entry->d_name);
    }
    closedir(directory);
    qsort(names, (size_t)count, NAME_SIZE, by_name);
    return count;
}

/* residual limit of a file */
static double limit_of(const char *name, const char *solver)
{
    if (strcmp(solver, "sor") != 0) return 1e-8;
    for (size_t i = 0; i < sizeof UNSOLVED / sizeof UNSOLVED[0]; i++)
        if (strcmp(UNSOLVED[i].name, name) == 0) return UNSOLVED[i].reach;
    return 1e-8;
}

/* one line of the table; returns how many of the folder's files failed */
static int solve_folder(const char *folder, const char *solver)
{
    static char names[MOST_FILES][NAME_SIZE];
    const int count = list(folder, names);
    if (count < 0) {
        printf("SKIPPED %s: there is no such folder\n", folder);
        return 0;
    }
    int failed = 0;
    printf("TABLE %-42s | contacts | solver | status | residual | iterations | seconds\n", "file");
    for (int i = 0; i < count; i++) {
        char path[512];
        tb_error error;
        tb_problem_file *file;
        tb_problem_result result;
        snprintf(path, sizeof path, "%s/%.*s", folder, NAME_SIZE - 1, names[i]);
        TEST_OK(tb_problem_load(path, &file, &error), &error);
        tb_solve_options options = tb_solve_defaults();
        options.solver = solver;
        options.tolerance = 1e-8;
        options.maximum_iterations = MOST_ITERATIONS;
        TEST_OK(tb_problem_solve(file, &options, NULL, NULL, &result, &error), &error);
        const tb_problem_info info = tb_problem_describe(file);
        const bool bad = !(result.residual <= limit_of(names[i], solver));
        printf("TABLE %-42s | %d%s | %s | %s | %.2e | %d | %.4f%s\n", names[i], info.contacts,
               info.dimension == 2 ? " (2D)" : "", result.solver, tb_status_name(result.status),
               result.residual, result.iterations, result.seconds,
               bad ? "  <- above its limit" : "");
        fflush(stdout);
        failed += bad;
        tb_problem_destroy(file);
    }
    return failed;
}

START_TEST(problems_of_siconos_are_all_solved_to_1e_8)
{
    ck_assert_int_eq(solve_folder(FOREIGN, "auto"), 0);
}
END_TEST

START_TEST(sweeps_alone_solve_what_they_solved_before)
{
    ck_assert_int_eq(solve_folder(FOREIGN, "sor"), 0);
}
END_TEST

START_TEST(problems_of_our_own_are_solved_to_1e_8)
{
    ck_assert_int_eq(solve_folder(OWN, "auto"), 0);
    ck_assert_int_eq(solve_folder(OWN, "newton"), 0);
    ck_assert_int_eq(solve_folder(OWN, "sor"), 0);
    ck_assert_int_eq(solve_folder(OWN, "jor"), 0);
}
END_TEST

TEST_MAIN(problems_of_siconos_are_all_solved_to_1e_8, sweeps_alone_solve_what_they_solved_before,
          problems_of_our_own_are_solved_to_1e_8)
