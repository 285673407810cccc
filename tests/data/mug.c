/* A mug with a handle as one watertight triangle mesh, normals outwards.
 *
 * Five surfaces of revolution (outer wall, rim, inner wall, bottom from inside and outside) and a
 * swept tube. Where the handle grows out of the wall, a patch of the wall's grid is left open, and
 * the tube's first and last ring are the patches' boundaries: so the mesh closes without any
 * cutting of surfaces.
 *
 * mug FOLDER [DETAIL] writes FOLDER/mug.obj. DETAIL 1 to 16 scales the number of quads along each
 * direction (default 2: 64 around). */
#include "common.h"

#include <math.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

/* Everything in units of the detail d: the wall has 32 d x 20 d quads, a patch 2 d x 4 d. */
typedef struct mug {
    FILE *file;
    int around, rows, patch_columns, patch_rows, tube_rings;
    int vertices; /* written so far; OBJ counts from 1 */
} mug;

static int put_vertex(mug *m, double x, double y, double z)
{
    fprintf(m->file, "v %.8f %.8f %.8f\n", x, y, z);
    return ++m->vertices;
}

static void put_quad(mug *m, int a, int b, int c, int d)
{
    fprintf(m->file, "f %d %d %d\nf %d %d %d\n", a, b, c, a, c, d);
}

/* A ring of vertices around the Z axis; gives the first one's number. */
static int put_ring(mug *m, double radius, double z)
{
    const int first = m->vertices + 1;
    for (int i = 0; i < m->around; i++) {
        const double angle = 2 * PI * i / m->around;
        put_vertex(m, radius * cos(angle), radius * sin(angle), z);
    }
    return first;
}

/* Quads between two rings; outwards if `upper` follows `lower` up an outer wall. */
static void put_band(mug *m, int lower, int upper)
{
    for (int i = 0; i < m->around; i++) {
        const int next = (i + 1) % m->around;
        put_quad(m, lower + i, lower + next, upper + next, upper + i);
    }
}

/* A disc from a ring to its centre, facing up or down. */
static void put_disc(mug *m, int ring, double z, int up)
{
    const int centre = put_vertex(m, 0, 0, z);
    for (int i = 0; i < m->around; i++) {
        const int next = (i + 1) % m->around;
        fprintf(m->file, "f %d %d %d\n", centre, ring + (up ? i : next), ring + (up ? next : i));
    }
}

/* The row of the wall's grid nearest to a height. */
static int row_at(const mug *m, double z)
{
    return (int)lround(z / MUG_HEIGHT_M * m->rows);
}

/* Whether a quad of the outer wall belongs to a patch where the handle grows. Columns are counted
 * from the handle's middle, from -around / 2. */
static int in_patch(const mug *m, int column, int row)
{
    const int half_columns = m->patch_columns / 2, half_rows = m->patch_rows / 2;
    if (column < -half_columns || column >= half_columns) return 0;
    const int low = row_at(m, MUG_HANDLE_LOW_M), high = row_at(m, MUG_HANDLE_HIGH_M);
    return (row >= low - half_rows && row < low + half_rows) ||
           (row >= high - half_rows && row < high + half_rows);
}

/* The vertex of the wall (first vertex `wall`) at a place k of a patch's boundary, counted from the
 * middle of its right side upwards (sign 1) or downwards (sign -1), seen from outside. */
static int patch_vertex(const mug *m, int wall, int row, int sign, int k)
{
    const int a = m->patch_columns / 2, b = m->patch_rows / 2;
    int column, rise;
    if (k <= b) { /* up the right side */
        column = a, rise = k;
    } else if (k <= b + 2 * a) { /* along the top */
        column = a - (k - b), rise = b;
    } else if (k <= 3 * b + 2 * a) { /* down the left side */
        column = -a, rise = b - (k - b - 2 * a);
    } else if (k <= 3 * b + 4 * a) { /* along the bottom */
        column = -a + (k - 3 * b - 2 * a), rise = -b;
    } else { /* up the right side again */
        column = a, rise = -b + (k - 3 * b - 4 * a);
    }
    return wall + (row + sign * rise) * m->around + (column + m->around) % m->around;
}

static void put_handle(mug *m, int wall)
{
    const int sides = 2 * (m->patch_columns + m->patch_rows);
    const int high = row_at(m, MUG_HANDLE_HIGH_M), low = row_at(m, MUG_HANDLE_LOW_M);

    /* rings between the two patches: across Y, and across the direction of the middle line */
    const int first = m->vertices + 1;
    for (int ring = 1; ring < m->tube_rings; ring++) {
        double p[2], t[2];
        mug_handle((double)ring / m->tube_rings, p, t);
        for (int k = 0; k < sides; k++) {
            const double angle = 2 * PI * k / sides;
            const double u = MUG_HANDLE_THICK_M * sin(angle);
            put_vertex(m, p[0] - u * t[1], MUG_HANDLE_WIDE_M * cos(angle), p[1] + u * t[0]);
        }
    }
    for (int ring = 0; ring < m->tube_rings; ring++)
        for (int k = 0; k < sides; k++) {
            const int next = (k + 1) % sides;
            const int here = first + (ring - 1) * sides, there = here + sides;
            const int start = ring == 0, end = ring == m->tube_rings - 1;
            put_quad(m, start ? patch_vertex(m, wall, high, 1, k) : here + k,
                     start ? patch_vertex(m, wall, high, 1, next) : here + next,
                     end ? patch_vertex(m, wall, low, -1, next) : there + next,
                     end ? patch_vertex(m, wall, low, -1, k) : there + k);
        }
}

int main(int argc, char **argv)
{
    const char *folder = data_folder(argc, argv, "[DETAIL]");
    const int detail = argc > 2 ? atoi(argv[2]) : 2;
    if (detail < 1 || detail > 16) {
        fprintf(stderr, "mug: DETAIL is 1 to 16, not %s\n", argv[2]);
        return EXIT_FAILURE;
    }
    mug m = {.file = data_open(folder, "mug.obj"),
             .around = 32 * detail,
             .rows = 20 * detail,
             .patch_columns = 2 * detail,
             .patch_rows = 4 * detail,
             .tube_rings = 16 * detail};
    fprintf(m.file, "# mug with a handle, m, closed, counter-clockwise outside\no mug\n");

    /* outer wall, open where the handle grows */
    const int wall = 1;
    for (int row = 0; row <= m.rows; row++) put_ring(&m, MUG_RADIUS_M, MUG_HEIGHT_M * row / m.rows);
    for (int row = 0; row < m.rows; row++)
        for (int i = 0; i < m.around; i++) {
            if (in_patch(&m, i < m.around / 2 ? i : i - m.around, row)) continue;
            const int lower = wall + row * m.around, upper = lower + m.around;
            const int next = (i + 1) % m.around;
            put_quad(&m, lower + i, lower + next, upper + next, upper + i);
        }

    /* rim, inner wall and both sides of the bottom */
    const double inner = MUG_RADIUS_M - MUG_WALL_M;
    const int rim = put_ring(&m, inner, MUG_HEIGHT_M);
    const int floor_ring = put_ring(&m, inner, MUG_BOTTOM_M);
    put_band(&m, wall + m.rows * m.around, rim);
    put_band(&m, rim, floor_ring);
    put_disc(&m, floor_ring, MUG_BOTTOM_M, 1);
    put_disc(&m, wall, 0, 0);
    put_handle(&m, wall);
    data_close(m.file, folder, "mug.obj");
    return EXIT_SUCCESS;
}
