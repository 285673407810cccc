/* A body on the grid: its masses from the reference map, and the extrapolation of its fields to the
 * nodes around it. Formulas: nodes/masses.h. */
#include <string.h>

#include "grid/grid_internal.h"
#include "grid/nodes/masses.h"

/* ---- loops ---- */

typedef struct pass {
    tb_soft_world *w;
    tb_soft_visit *visit;
    tb_soft_part *part;
    const void *context;
    int32_t body;
} pass;

static void run_plane(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    const pass *p = context;
    p->visit(p->w, p->body, p->w->fields[p->body].lower[2] + index, p->context);
}

void tb_soft_planes(tb_soft_world *w, int32_t body, tb_soft_visit *visit, const void *context)
{
    const tb_soft_field *f = w->fields + body;
    pass p = {w, visit, NULL, context, body};
    tb_parallel_for(f->upper[2] - f->lower[2], 1, w->scene.options.threads, run_plane, &p);
}

/* Adds the parts of a run up by halves. Bit i of `present`: node i has a part; an absent one is cleared, which
 * adds nothing. */
static void add_run(tb_soft_sums parts[TB_SOFT_RUN], uint32_t present, tb_soft_sums *row)
{
    for (int step = TB_SOFT_RUN / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++) {
            if (!(present >> (i + step) & 1)) continue;
            if (present >> i & 1)
                tb_soft_sums_add(parts + i, parts + i + step);
            else
                parts[i] = parts[i + step];
            present |= (uint32_t)1 << i;
        }
    tb_soft_sums_add(row, parts);
}

static void add_row(const pass *p, int32_t j, int32_t k, tb_soft_sums *row)
{
    const tb_soft_field *f = p->w->fields + p->body;
    tb_soft_sums parts[TB_SOFT_RUN];
    const int32_t first = f->lower[0] - f->lower[0] % TB_SOFT_RUN;
    for (int32_t run = first; run < f->upper[0]; run += TB_SOFT_RUN) {
        const int32_t begin = run > f->lower[0] ? run : f->lower[0];
        const int32_t end = run + TB_SOFT_RUN < f->upper[0] ? run + TB_SOFT_RUN : f->upper[0];
        uint32_t present = 0;
        for (int32_t i = begin; i < end; i++) {
            const int32_t at[3] = {i, j, k};
            tb_soft_sums_clear(parts + (i - run));
            if (p->part(p->w, p->body, at, tb_soft_node(p->w, i, j, k), p->context,
                        parts + (i - run)))
                present |= (uint32_t)1 << (i - run);
        }
        if (present != 0) add_run(parts, present, row);
    }
}

static void add_plane(void *context, int32_t index, int32_t thread)
{
    (void)thread;
    const pass *p = context;
    const tb_soft_field *f = p->w->fields + p->body;
    const int32_t k = f->lower[2] + index;
    tb_soft_sums *plane = p->w->planes + k, row;
    tb_soft_sums_clear(plane);
    for (int32_t j = f->lower[1]; j < f->upper[1]; j++) {
        tb_soft_sums_clear(&row);
        add_row(p, j, k, &row);
        tb_soft_sums_add(plane, &row);
    }
}

tb_soft_sums tb_soft_add_up(tb_soft_world *w, int32_t body, tb_soft_part *part, const void *context)
{
    const tb_soft_field *f = w->fields + body;
    pass p = {w, NULL, part, context, body};
    tb_soft_sums whole;
    tb_soft_sums_clear(&whole);
    tb_parallel_for(f->upper[2] - f->lower[2], 1, w->scene.options.threads, add_plane, &p);
    for (int32_t k = f->lower[2]; k < f->upper[2]; k++) tb_soft_sums_add(&whole, w->planes + k);
    return whole;
}

/* ---- masses ---- */

static void depth_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const bool outside_only = *(const bool *)context;
    tb_soft_field *f = w->fields + body;
    const tb_soft_solid *shape = &w->scene.bodies[body].shape;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j)
        if (f->layer[n] != TB_SOFT_NO_LAYER && !(outside_only && f->layer[n] == 0))
            f->depth[n] = tb_soft_distance(shape, f->X + 3 * (size_t)n);
}

static bool cell_part(tb_soft_world *w, int32_t body, const int32_t at[3], int32_t n,
                      const void *context, tb_soft_sums *sums)
{
    (void)context;
    const tb_soft_body *b = w->scene.bodies + body;
    sums->scratch =
        tb_soft_weigh_cell(&w->space, w->fields + body, &b->shape, b->material.density, at, n);
    return sums->scratch > 0;
}

static void scale_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const double scale = *(const double *)context;
    tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j)
        for (size_t o = 0; o < 8; o++) f->octant[8 * (size_t)n + o] *= scale;
}

static void mass_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    (void)context;
    tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        f->mass[n] = tb_soft_node_mass(&w->space, f, at);
    }
}

/* ---- layers ---- */

static void layer_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const int layer = *(const int *)context;
    tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        if (f->layer[n] == TB_SOFT_NO_LAYER && tb_soft_touches_layer(&w->space, f, at, layer - 1))
            f->layer[n] = (uint8_t)layer;
    }
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
    tb_soft_enlarge_box(&w->space, f, lower, upper);
    /* nodes of the new box that the old one did not have */
    for (int32_t k = f->lower[2]; k < f->upper[2]; k++)
        TB_SOFT_EACH_NODE (w, f, k, n, i, j)
            if (f->layer[n] != 0) f->layer[n] = TB_SOFT_NO_LAYER, f->mass[n] = 0;
    for (int layer = 1; layer <= TB_SOFT_LAYERS; layer++)
        tb_soft_planes(w, body, layer_plane, &layer);
}

/* ---- extrapolation ---- */

/* Bits of w->neighbours: of a node outside, its nearest neighbours; of a node of layer 0, that the surface is near. */
enum { SURFACE = 1 };

static void neighbours_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const tb_soft_field *f = w->fields + body;
    (void)context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        const int layer = f->layer[n];
        w->cell_mass[n] = tb_soft_cell_mass(f, n);
        if (layer == 0)
            w->neighbours[n] = tb_soft_touches_layer(&w->space, f, at, 1) ? SURFACE : 0;
        else if (layer != TB_SOFT_NO_LAYER)
            w->neighbours[n] = tb_soft_nearest_neighbours(&w->space, f, layer, at, n);
    }
}

void tb_soft_find_neighbours(tb_soft_world *w, int32_t body)
{
    tb_soft_planes(w, body, neighbours_plane, NULL);
}

/* Gradients of q at nodes of layer 0 near the surface. */
static void slope_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const tb_soft_field *f = w->fields + body;
    const double *q = context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        if (f->layer[n] == 0 && w->neighbours[n] == SURFACE)
            tb_soft_node_slope(&w->space, f, w->cell_mass, q, at, w->slope + 9 * (size_t)n);
    }
}

typedef struct extension {
    double *q;
    int layer;
} extension;

static void extend_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const extension *e = context;
    const tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j)
        if (f->layer[n] == e->layer)
            tb_soft_extend_by(&w->space, f, e->q, w->slope, e->layer, w->neighbours[n], n);
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
    const double sum = tb_soft_add_up(w, body, cell_part, NULL).scratch;
    const double mass = b->material.density * tb_soft_volume(&b->shape);
    double scale = sum > 0 ? mass / sum : 1;
    *mass_error = fabs(sum / mass - 1);
    tb_soft_planes(w, body, scale_plane, &scale);
    tb_soft_planes(w, body, mass_plane, NULL);
    number_layers(w, body);
    tb_soft_find_neighbours(w, body);
    tb_soft_extrapolate(w, body, f->X);
    outside_only = true;
    tb_soft_planes(w, body, depth_plane, &outside_only);
}
