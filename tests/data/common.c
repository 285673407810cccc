/* See common.h. */
#include "common.h"

#include <math.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

static void fail(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    perror(path);
    exit(EXIT_FAILURE);
}

FILE *data_open(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL) fail(folder, name);
    return file;
}

void data_close(FILE *file, const char *folder, const char *name)
{
    const int failed = ferror(file);
    if (fclose(file) != 0 || failed) fail(folder, name);
    printf("%s/%s\n", folder, name);
}

const char *data_folder(int argc, char **argv, const char *usage)
{
    if (argc >= 2 && argv[1][0] != '-') return argv[1];
    fprintf(stderr, "usage: %s FOLDER %s\n", argv[0], usage);
    exit(EXIT_FAILURE);
}

/* a point of |x|^e + |z|^e = 1 at the angle t, x >= 0 */
static void superellipse(double t, double point[2])
{
    const double power = 2 / 2.5;
    point[0] = pow(fmax(cos(t), 0), power);
    point[1] = copysign(pow(fabs(sin(t)), power), sin(t));
}

static void handle_point(double s, double position[2])
{
    double p[2];
    superellipse(PI / 2 - PI * s, p);
    const double half = (MUG_HANDLE_HIGH_M - MUG_HANDLE_LOW_M) / 2;
    position[0] = MUG_RADIUS_M + MUG_HANDLE_REACH_M * p[0];
    position[1] = (MUG_HANDLE_HIGH_M + MUG_HANDLE_LOW_M) / 2 + half * p[1];
}

void mug_handle(double s, double position[2], double direction[2])
{
    const double step = 1e-3;
    double before[2], after[2];
    handle_point(s, position);
    handle_point(fmax(s - step, 0), before);
    handle_point(fmin(s + step, 1), after);
    const double x = after[0] - before[0], z = after[1] - before[1], length = hypot(x, z);
    direction[0] = x / length;
    direction[1] = z / length;
}
