/* Elastic triangles, tetrahedra and hinges in a step (tb_elastic_def, tb_model_elastic). */
#ifndef TB_ELASTIC_H
#define TB_ELASTIC_H

#include "step/stages/stages.h"

#ifndef TB_DEVICE
/* Adds a block of bilateral rows with compliance for each elastic, a row for each number of its strain: springs and
 * dampers that are implicit like those of tendons. RESOURCE_EXHAUSTED. */
#define tb_elastics_add_rows TB_SYMBOL(tb_elastics_add_rows)
TB_EXTERN tb_status tb_elastics_add_rows(tb_world *world);
/* Adds the forces of all elastics to `force` (dofs), without rows. */
#define tb_elastics_push TB_SYMBOL(tb_elastics_push)
TB_EXTERN void tb_elastics_push(const tb_world *world, tb_real *force);
/* Energy at the poses of the dynamics, J. */
#define tb_elastics_energy TB_SYMBOL(tb_elastics_energy)
TB_EXTERN tb_real tb_elastics_energy(const tb_dynamics *dynamics);
/* Power of their springs at velocities of the dofs, W. */
#define tb_elastics_power TB_SYMBOL(tb_elastics_power)
TB_EXTERN tb_real tb_elastics_power(const tb_world *world, const tb_real *u);
/* Work (J) of the rows at the mean velocity of the step, and the dampers' part of it. */
#define tb_elastics_work TB_SYMBOL(tb_elastics_work)
TB_EXTERN tb_real tb_elastics_work(const tb_world *world, const tb_solution *solution,
                                   const tb_real *mean, tb_real *damping);
/* Largest energy (J) that the discretization of a step to u_end may give: a row takes the strain for linear in the
 * motion dt v, and its spring's force for that of the end. */
#define tb_elastics_error TB_SYMBOL(tb_elastics_error)
TB_EXTERN tb_real tb_elastics_error(const tb_world *world);
#else
/* A card steps no model with elastics. */
TB_FN tb_real tb_elastics_energy(const tb_dynamics *dynamics)
{
    (void)dynamics;
    return 0;
}

TB_FN tb_real tb_elastics_power(const tb_world *world, const tb_real *u)
{
    (void)world, (void)u;
    return 0;
}

TB_FN tb_real tb_elastics_work(const tb_world *world, const tb_solution *solution,
                               const tb_real *mean, tb_real *damping)
{
    (void)world, (void)solution, (void)mean, (void)damping;
    return 0;
}

TB_FN tb_real tb_elastics_error(const tb_world *world)
{
    (void)world;
    return 0;
}
#endif

#endif
