/* One solver of Siconos on one local 3D friction problem, from zero: the time of a solve, hot,
 * reading excluded, for the loosest of its own tolerances that reaches the target.
 *
 *   siconos_solve FILE SOLVER LOCAL TARGET TOLERANCE SECONDS REACTIONS
 *
 * SOLVER is Siconos' number, LOCAL that of its inner solver (0: its own choice). TARGET bounds the
 * field's residual, natural map at rho = 1 in De Saxcé's form over ||q||, which is computed here from
 * the reactions alone: Siconos divides by the largest of ||q||, ||r||, ||u||, so it is asked for more
 * and more until that residual is reached, in SECONDS at most. The times of solves that did not
 * reach it do not count. The reactions go to a file as doubles, and one JSON object to standard
 * output.
 *
 * peer_problems.py compiles this against Debian's libsiconos-numerics. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <FrictionContactProblem.h>
#include <NonSmoothDrivers.h>
#include <NumericsMatrix.h>
#include <NumericsVerbose.h>
#include <SolverOptions.h>

enum { REPEATS = 25, MOST_ITERATIONS = 10000000 };
static const double ENOUGH = 0.2; /* s of repetitions */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Onto the cone |tangents| <= mu normal. */
static void project(double x[3], double mu)
{
    const double slip = hypot(x[1], x[2]);
    if (slip <= mu * x[0]) return;
    double normal = (x[0] + mu * slip) / (1 + mu * mu);
    if (normal < 0) normal = 0;
    const double scale = slip > 0 ? mu * normal / slip : 0;
    x[0] = normal;
    x[1] *= scale;
    x[2] *= scale;
}

static double residual(FrictionContactProblem *p, double *reaction, double *velocity)
{
    const int n = 3 * p->numberOfContacts;
    double sum = 0, scale = 0;
    memcpy(velocity, p->q, (size_t)n * sizeof *velocity);
    NM_gemv(1.0, p->M, reaction, 1.0, velocity);
    for (int i = 0; i < n; i++) scale += p->q[i] * p->q[i];
    for (int c = 0; c < n; c += 3) {
        const double *r = reaction + c, *u = velocity + c, mu = p->mu[c / 3];
        double x[3] = {r[0] - u[0] - mu * hypot(u[1], u[2]), r[1] - u[1], r[2] - u[2]};
        project(x, mu);
        for (int k = 0; k < 3; k++) sum += (r[k] - x[k]) * (r[k] - x[k]);
    }
    return sqrt(sum) / sqrt(scale);
}

static SolverOptions *options_for(int solver, int local, double tolerance)
{
    SolverOptions *options = solver_options_create(solver);
    if (options == NULL) exit(1);
    if (local > 0) solver_options_update_internal(options, 0, local);
    options->dparam[SICONOS_DPARAM_TOL] = tolerance;
    options->iparam[SICONOS_IPARAM_MAX_ITER] = MOST_ITERATIONS;
    return options;
}

/* Seconds of one solve from zero. */
static double solve(FrictionContactProblem *p, double *reaction, double *velocity, int solver,
                    int local, double tolerance, int *iterations)
{
    const size_t size = 3 * (size_t)p->numberOfContacts * sizeof *reaction;
    SolverOptions *options = options_for(solver, local, tolerance);
    memset(reaction, 0, size);
    memset(velocity, 0, size);
    const double begin = now();
    fc3d_driver(p, reaction, velocity, options);
    const double seconds = now() - begin;
    *iterations = options->iparam[SICONOS_IPARAM_ITER_DONE];
    solver_options_delete(options);
    free(options);
    return seconds;
}

int main(int argc, char **argv)
{
    if (argc != 8) return 2;
    const int solver = atoi(argv[2]), local = atoi(argv[3]);
    const double target = strtod(argv[4], NULL), limit = now() + strtod(argv[6], NULL);
    numerics_set_verbose(0);
    FrictionContactProblem *p = frictionContact_new_from_filename(argv[1]);
    if (p == NULL || p->dimension != 3) return 1;
    const size_t n = 3 * (size_t)p->numberOfContacts;
    double *reaction = calloc(n, sizeof *reaction), *velocity = calloc(n, sizeof *velocity);
    double *work = calloc(n, sizeof *work), seconds[REPEATS], tolerance = strtod(argv[5], NULL),
           reached = INFINITY;
    if (reaction == NULL || velocity == NULL || work == NULL) return 1;
    int iterations = 0, repeats = 0;

    for (; tolerance > 1e-16 && now() < limit; tolerance /= 10) {
        seconds[0] = solve(p, reaction, velocity, solver, local, tolerance, &iterations);
        reached = residual(p, reaction, work);
        if (reached <= target) break;
    }
    if (reached <= target) {
        const double begin = now();
        for (; repeats < REPEATS && (repeats < 3 || now() < begin + ENOUGH); repeats++)
            seconds[repeats] = solve(p, reaction, velocity, solver, local, tolerance, &iterations);
        qsort(seconds, (size_t)repeats, sizeof *seconds, ascending);
        reached = residual(p, reaction, work);
    }
    FILE *file = fopen(argv[7], "wb");
    if (file == NULL || fwrite(reaction, sizeof *reaction, n, file) != n) return 1;
    fclose(file);
    printf("{\"solved\": %s, \"residual\": %.17g, \"tolerance\": %g, \"iterations\": %d, "
           "\"seconds\": %.9g, \"repeats\": %d}\n",
           reached <= target ? "true" : "false", isfinite(reached) ? reached : 1e300, tolerance,
           iterations, seconds[repeats / 2], repeats);
    return 0;
}
