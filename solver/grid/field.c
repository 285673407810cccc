/* A body on the grid: its masses from the reference map, and the extrapolation of its fields to the
 * nodes around it. */
#include <string.h>

#include "grid/grid_internal.h"

/* Occupied part of an octant below which it has no mass: a face that lies in a plane of the grid but
 * for rounding would give its outer nodes a life of their own. */
static const double SMALLEST_PART = 1e-5;

typedef struct pass {
    tb_soft_world *w;
    tb_soft_visit *visit;
    void *context;
    int32_t body;
} pass;

static void run_plane(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    const pass *p = context;
    const int32_t k = p->w->fields[p->body].lower[2] + index;
    tb_soft_sums *sums = p->w->planes + k;
    memset(sums, 0, sizeof *sums);
    sums->smallest = 1e300;
    p->visit(p->w, p->body, k, sums, p->context);
}

tb_soft_sums tb_soft_planes(tb_soft_world *w, int32_t body, tb_soft_visit *visit, void *context)
{
    enum { SUMS = offsetof(tb_soft_sums, speed) / sizeof(double) };
    const tb_soft_field *f = w->fields + body;
    pass p = {w, visit, context, body};
    tb_soft_sums whole = {.smallest = 1e300};
    tb_parallel_for(f->upper[2] - f->lower[2], 1, w->scene.options.threads, run_plane, &p);
    for (int32_t k = f->lower[2]; k < f->upper[2]; k++) {
        const tb_soft_sums *s = w->planes + k;
        for (int i = 0; i < SUMS; i++) ((double *)&whole)[i] += ((const double *)s)[i];
        whole.speed = tb_max(whole.speed, s->speed);
        whole.stiffness = tb_max(whole.stiffness, s->stiffness);
        whole.smallest = tb_min(whole.smallest, s->smallest);
        whole.scratch[0] += s->scratch[0];
        whole.scratch[1] += s->scratch[1];
    }
    return whole;
}

/* ---- masses ---- */

static void depth_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                        void *context)
{
    const bool outside_only = *(const bool *)context;
    tb_soft_field *f = w->fields + body;
    const tb_soft_solid *shape = &w->scene.bodies[body].shape;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j)
        if (f->layer[n] != TB_SOFT_NO_LAYER && !(outside_only && f->layer[n] == 0))
            f->depth[n] = tb_soft_distance(shape, f->X + 3 * (size_t)n);
}

/* Occupied parts of a cell's octants. X is trilinear, so its values on the cell lie among those at the
 * corners, and the distance changes by no more than X does. Each side of the shape cuts on its own:
 * near an edge the distance itself is not linear, and the parts of two sides multiply. */
static void occupy_cell(const tb_soft_solid *shape, const double X[24], double parts[8])
{
    double centre[3] = {0}, reach = 0, side[27][TB_SOFT_SIDES];
    int sides = 1;
    for (int c = 0; c < 8; c++)
        for (int a = 0; a < 3; a++) centre[a] += 0.125 * X[3 * c + a];
    for (int c = 0; c < 8; c++) {
        double square = 0;
        for (int a = 0; a < 3; a++)
            square += (X[3 * c + a] - centre[a]) * (X[3 * c + a] - centre[a]);
        reach = tb_max(reach, square);
    }
    const double middle = tb_soft_distance(shape, centre);
    for (int o = 0; o < 8; o++) parts[o] = middle * middle < reach || middle < 0 ? 1 : 0;
    if (middle * middle >= reach) return;
    for (int p = 0; p < 27; p++) {
        const double u[3] = {0.5 * (p % 3), 0.5 * (p / 3 % 3), 0.5 * (p / 9)};
        double x[3] = {0};
        for (int c = 0; c < 8; c++) {
            const double s = tb_soft_shape(c, u);
            for (int a = 0; a < 3; a++) x[a] += s * X[3 * c + a];
        }
        sides = tb_soft_sides(shape, x, side[p]);
    }
    for (int o = 0; o < 8; o++)
        for (int s = 0; s < sides; s++) {
            double corner[8];
            for (int c = 0; c < 8; c++)
                corner[c] = side[(o & 1) + (c & 1) + 3 * ((o >> 1 & 1) + (c >> 1 & 1)) +
                                 9 * ((o >> 2 & 1) + (c >> 2 & 1))][s];
            parts[o] *= tb_soft_cube_part(corner, o);
        }
}

/* Mass of a cell's octants: the density follows the volume, rho = rho0 det(grad X). */
static void octant_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                         void *context)
{
    (void)context;
    tb_soft_field *f = w->fields + body;
    const tb_soft_body *b = w->scene.bodies + body;
    const double volume = tb_soft_cell_volume(w) / 8;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        double X[24], parts[8], *octant = f->octant + 8 * (size_t)n;
        memset(octant, 0, 8 * sizeof *octant);
        if (i + 1 >= f->upper[0] || j + 1 >= f->upper[1] || k + 1 >= f->upper[2] ||
            !tb_soft_cell_valid(w, f, n))
            continue;
        tb_soft_gather(w, f->X, n, X);
        occupy_cell(&b->shape, X, parts);
        for (int o = 0; o < 8; o++) {
            if (!(parts[o] > SMALLEST_PART)) continue;
            const tb_mat33 g = tb_soft_gradient(X, w->tables.slope[o]);
            octant[o] =
                b->material.density * volume * parts[o] * tb_max(tb_m33_determinant(&g), 0.0);
            sums->scratch[0] += octant[o];
        }
    }
}

static void scale_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                        void *context)
{
    const double scale = *(const double *)context;
    tb_soft_field *f = w->fields + body;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j)
        for (size_t o = 0; o < 8; o++) f->octant[8 * (size_t)n + o] *= scale;
}

/* A node has the mass of the octants around it, weighted by its shape function at their centres. */
static void mass_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums, void *context)
{
    (void)context;
    tb_soft_field *f = w->fields + body;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        double mass = 0;
        for (int c = 0; c < 8; c++) {
            const int32_t x = i - (c & 1), y = j - (c >> 1 & 1), z = k - (c >> 2 & 1);
            if (x < f->lower[0] || y < f->lower[1] || z < f->lower[2]) continue;
            const double *octant = f->octant + 8 * (size_t)tb_soft_node(w, x, y, z);
            for (int o = 0; o < 8; o++) mass += w->tables.share[o][c] * octant[o];
        }
        f->mass[n] = mass;
    }
}

/* ---- layers ---- */

/* Whether another node within one step along every axis, in the box, has layer `layer`. */
static bool touches_layer(const tb_soft_world *w, const tb_soft_field *f, int32_t i, int32_t j,
                          int32_t k, int layer)
{
    for (int32_t z = k - 1; z <= k + 1; z++)
        for (int32_t y = j - 1; y <= j + 1; y++)
            for (int32_t x = i - 1; x <= i + 1; x++)
                if (x >= f->lower[0] && y >= f->lower[1] && z >= f->lower[2] && x < f->upper[0] &&
                    y < f->upper[1] && z < f->upper[2] &&
                    f->layer[tb_soft_node(w, x, y, z)] == layer)
                    return true;
    return false;
}

static void layer_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                        void *context)
{
    const int layer = *(const int *)context;
    tb_soft_field *f = w->fields + body;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j)
        if (f->layer[n] == TB_SOFT_NO_LAYER && touches_layer(w, f, i, j, k, layer - 1))
            f->layer[n] = (uint8_t)layer;
}

/* Layer numbers from masses, and the box of the valid nodes. */
static void number_layers(tb_soft_world *w, int32_t body)
{
    tb_soft_field *f = w->fields + body;
    int32_t lower[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, upper[3] = {0, 0, 0};
    for (int32_t k = f->lower[2]; k < f->upper[2]; k++)
        TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
            f->layer[n] = f->mass[n] > 0 ? 0 : TB_SOFT_NO_LAYER;
            if (f->layer[n] != 0) continue;
            const int32_t at[3] = {i, j, k};
            for (int a = 0; a < 3; a++) {
                if (at[a] < lower[a]) lower[a] = at[a];
                if (at[a] + 1 > upper[a]) upper[a] = at[a] + 1;
            }
        }
    f->outside = 0;
    for (int a = 0; a < 3; a++) {
        const int32_t begin = lower[a] - TB_SOFT_LAYERS, end = upper[a] + TB_SOFT_LAYERS;
        const int32_t nodes = w->scene.lattice.nodes[a];
        if (begin < 0 || end > nodes) f->outside = a + 1;
        f->lower[a] = begin > 0 ? begin : 0;
        f->upper[a] = end < nodes ? end : nodes;
    }
    /* nodes of the new box that the old one did not have */
    for (int32_t k = f->lower[2]; k < f->upper[2]; k++)
        TB_SOFT_EACH_NODE (w, f, k, n, i, j)
            if (f->layer[n] != 0) f->layer[n] = TB_SOFT_NO_LAYER, f->mass[n] = 0;
    for (int layer = 1; layer <= TB_SOFT_LAYERS; layer++)
        tb_soft_planes(w, body, layer_plane, &layer);
}

/* ---- extrapolation ---- */

/* Gradients of q at nodes of layer 0 near the surface: the mean of the cells around the node, weighted
 * by their masses, so that slivers of material decide nothing. */
static void slope_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                        void *context)
{
    const tb_soft_field *f = w->fields + body;
    const double *q = context;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        double *slope = w->slope + 9 * (size_t)n, whole = 0;
        if (f->layer[n] != 0 || !touches_layer(w, f, i, j, k, 1)) continue;
        memset(slope, 0, 9 * sizeof *slope);
        for (int c = 0; c < 8; c++) {
            const int32_t cell = tb_soft_node(w, i - (c & 1), j - (c >> 1 & 1), k - (c >> 2 & 1));
            double mass = 0, values[24];
            for (size_t o = 0; o < 8; o++) mass += f->octant[8 * (size_t)cell + o];
            if (!(mass > 0)) continue;
            tb_soft_gather(w, q, cell, values);
            const tb_mat33 g = tb_soft_gradient(values, w->tables.slope[8]);
            for (int a = 0; a < 9; a++) slope[a] += mass * g.m[a];
            whole += mass;
        }
        for (int a = 0; a < 9; a++) slope[a] /= whole;
    }
}

typedef struct extension {
    double *q;
    int layer;
} extension;

/* neighbours of a node: 6 across faces, 12 across edges, 8 across corners */
enum { FACES_END = 6, EDGES_END = 18, NEIGHBOURS = 26 };
static const int8_t NEIGHBOUR[NEIGHBOURS][3] = {
    {-1, 0, 0},  {1, 0, 0},   {0, -1, 0}, {0, 1, 0},   {0, 0, -1},   {0, 0, 1},   {-1, -1, 0},
    {1, -1, 0},  {-1, 1, 0},  {1, 1, 0},  {-1, 0, -1}, {1, 0, -1},   {-1, 0, 1},  {1, 0, 1},
    {0, -1, -1}, {0, 1, -1},  {0, -1, 1}, {0, 1, 1},   {-1, -1, -1}, {1, -1, -1}, {-1, 1, -1},
    {1, 1, -1},  {-1, -1, 1}, {1, -1, 1}, {-1, 1, 1},  {1, 1, 1}};

/* q and its gradient at a node of a layer: the mean of the values that its nearest neighbours in
 * the layer before extrapolate by their own gradients. Affine fields are extended exactly. */
static void extend_node(tb_soft_world *w, const tb_soft_field *f, const extension *e,
                        const int32_t at[3], size_t n)
{
    const double *h = w->scene.lattice.spacing;
    double value[3] = {0}, slope[9] = {0}, whole = 0;
    for (int b = 0; b < NEIGHBOURS; b++) {
        const int8_t *o = NEIGHBOUR[b];
        if ((b == FACES_END || b == EDGES_END) && whole > 0) break;
        bool inside = true;
        for (int a = 0; a < 3; a++)
            inside = inside && at[a] + o[a] >= f->lower[a] && at[a] + o[a] < f->upper[a];
        const size_t m = n + (size_t)(o[0] + o[1] * w->stride[1] + o[2] * w->stride[2]);
        if (!inside || f->layer[m] != e->layer - 1) continue;
        const double weight = e->layer == 1 ? f->mass[m] : 1, *g = w->slope + 9 * m;
        const double d[3] = {-o[0] * h[0], -o[1] * h[1], -o[2] * h[2]};
        for (size_t c = 0; c < 3; c++)
            value[c] += weight * (e->q[3 * m + c] + g[3 * c] * d[0] + g[3 * c + 1] * d[1] +
                                  g[3 * c + 2] * d[2]);
        for (int c = 0; c < 9; c++) slope[c] += weight * g[c];
        whole += weight;
    }
    for (size_t c = 0; c < 3; c++) e->q[3 * n + c] = value[c] / whole;
    for (size_t c = 0; c < 9; c++) w->slope[9 * n + c] = slope[c] / whole;
}

static void extend_plane(tb_soft_world *w, int32_t body, int32_t k, tb_soft_sums *sums,
                         void *context)
{
    const extension *e = context;
    const tb_soft_field *f = w->fields + body;
    (void)sums;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        if (f->layer[n] == e->layer) extend_node(w, f, e, at, (size_t)n);
    }
}

void tb_soft_extrapolate(tb_soft_world *w, int32_t body, double *q)
{
    tb_soft_planes(w, body, slope_plane, q);
    for (int layer = 1; layer <= TB_SOFT_LAYERS; layer++) {
        extension e = {q, layer};
        tb_soft_planes(w, body, extend_plane, &e);
    }
}

/* ---- all of it ---- */

void tb_soft_measure_masses(tb_soft_world *w, int32_t body, double *mass_error)
{
    tb_soft_field *f = w->fields + body;
    const tb_soft_body *b = w->scene.bodies + body;
    bool outside_only = false;
    tb_soft_planes(w, body, depth_plane, &outside_only);
    const double sum = tb_soft_planes(w, body, octant_plane, NULL).scratch[0];
    const double mass = b->material.density * tb_soft_volume(&b->shape);
    double scale = sum > 0 ? mass / sum : 1;
    *mass_error = fabs(sum / mass - 1);
    tb_soft_planes(w, body, scale_plane, &scale);
    tb_soft_planes(w, body, mass_plane, NULL);
    number_layers(w, body);
    tb_soft_extrapolate(w, body, f->X);
    outside_only = true;
    tb_soft_planes(w, body, depth_plane, &outside_only);
}
