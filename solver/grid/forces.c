/* Forces of stress on nodes, and the mass, momentum and energy of a body.
 *
 * The stress is constant in an octant. The force on a node is the sum of -V sigma grad phi over the
 * octants around it; for one stress a cell that is the flux through the faces of the node's control
 * volume (Litven 4.1). The gradients of the shape functions add up to zero, so the forces do. */
#include "grid/grid_internal.h"
#include "grid/nodes/forces.h"

static bool stress_part(tb_soft_world *w, int32_t body, const int32_t at[3], int32_t n,
                        const void *context, tb_soft_sums *sums)
{
    (void)at, (void)context;
    return tb_soft_stress_cell(&w->space, w->fields + body, &w->scene.bodies[body].material, n,
                               w->cell_force + 24 * (size_t)n, sums);
}

tb_soft_sums tb_soft_stress_pass(tb_soft_world *w, int32_t body)
{
    return tb_soft_add_up(w, body, stress_part, NULL);
}

static void accelerate_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const double dt = *(const double *)context;
    const tb_soft_field *f = w->fields + body;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const int32_t at[3] = {i, j, k};
        tb_soft_accelerate_node(&w->space, f, w->cell_force, dt, at, n);
    }
}

void tb_soft_accelerate(tb_soft_world *w, int32_t body, double dt)
{
    tb_soft_planes(w, body, accelerate_plane, &dt);
    tb_soft_clamps_hold(w, body);
}

static bool momentum_part(tb_soft_world *w, int32_t body, const int32_t at[3], int32_t n,
                          const void *context, tb_soft_sums *sums)
{
    (void)context;
    return tb_soft_node_momentum(&w->space, w->fields + body, at, n, sums);
}

tb_soft_sums tb_soft_momentum_pass(tb_soft_world *w, int32_t body)
{
    return tb_soft_add_up(w, body, momentum_part, NULL);
}
