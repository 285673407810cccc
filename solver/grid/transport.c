/* Transport of X and v by v (Litven, section 4.1), and the repair of momentum.
 *
 * The advection of v is not conservative, and masses are measured anew from X. Both errors are those of
 * the discretization. Their sum over the body is taken back as one rigid velocity, so that linear and
 * angular momentum of a body change by impulses alone. */
#include <string.h>

#include "grid/grid_internal.h"

typedef struct stage {
    double dt;
    bool second; /* of two stages */
} stage;

static void advect_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const stage *s = context;
    const tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j)
        tb_soft_advect_node(&w->space, f, &w->stages, s->dt, s->second, n);
}

static void adopt_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const stage *s = context;
    const tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        double x[3];
        tb_soft_adopt_node(f, &w->stages, s->second, n);
        if (f->layer[n] != 0 || f->held == NULL || f->held[n] == 0) continue;
        tb_soft_place_of(&w->space, at, x);
        tb_soft_frame_velocity(w->frames + (f->held[n] - 1), x, f->v + 3 * (size_t)n);
    }
}

static void repair_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        tb_soft_repair_node(&w->space, f, context, at, n);
    }
}

void tb_soft_transport(tb_soft_world *w, int32_t body, double dt, tb_soft_certificate *c)
{
    tb_soft_field *f = w->fields + body;
    double mass_error;
    const bool clamped = f->held != NULL;
    tb_soft_sums was = {0};
    if (!clamped) was = tb_soft_momentum_pass(w, body);
    const int stages = w->scene.options.advection == TB_SOFT_SECOND_ORDER ? 2 : 1;
    tb_soft_find_neighbours(w, body);
    for (int number = 0; number < stages; number++) {
        const stage s = {dt, number == 1};
        tb_soft_extrapolate(w, body, f->v);
        if (s.second) tb_soft_extrapolate(w, body, f->X);
        tb_soft_planes(w, body, advect_plane, &s);
        tb_soft_planes(w, body, adopt_plane, &s);
    }
    tb_soft_extrapolate(w, body, f->X);
    tb_soft_extrapolate(w, body, f->v);
    tb_soft_measure_masses(w, body, &mass_error);
    c->mass_error = tb_max(c->mass_error, mass_error);
    if (!clamped) {
        const tb_soft_sums now = tb_soft_momentum_pass(w, body);
        const tb_soft_repair r = tb_soft_repair_of(&was, &now);
        tb_soft_planes(w, body, repair_plane, &r);
        c->transport_repair = tb_max(c->transport_repair, tb_v3_length(tb_v3_load(r.linear)));
    }
    tb_soft_extrapolate(w, body, f->v);
}
