/* Stages of a step that no world of the warp's kernel has (warp_fits.h), so that it carries no code for
 * them: tendons, media, equalities, adhesion. They do what those stages do where a model has none. */
#ifndef TB_GPU_WARP_WITHOUT_H
#define TB_GPU_WARP_WITHOUT_H

#include "step/stages/stages.h"

/* ---- tendons ---- */

TB_STATIC inline tb_status tb_tendons_take(tb_world *world)
{
    world->tendon_coefficients = NULL;
    return TB_OK;
}

TB_STATIC inline void tb_tendons_place(const tb_world *world)
{
    (void)world;
}

TB_STATIC inline void tb_tendons_gain(const tb_world *world, const tb_motion *velocities)
{
    (void)world, (void)velocities;
}

TB_STATIC inline tb_transmission tb_tendon_transmission(const tb_world *world, int32_t tendon)
{
    const tb_transmission none = {.scale = 1};
    (void)world, (void)tendon;
    return none;
}

TB_STATIC inline tb_real tb_tendon_length(const tb_world *world, int32_t tendon, const tb_real *q)
{
    (void)world, (void)tendon, (void)q;
    return 0;
}

TB_STATIC inline tb_real tb_tendon_stretch(const tb_model_tendon *tendon, tb_real length)
{
    (void)tendon, (void)length;
    return 0;
}

/* ---- media and adhesion ---- */

TB_STATIC inline bool tb_fluid_take(tb_world *world)
{
    (void)world;
    return true;
}

TB_STATIC inline void tb_fluid_forces(tb_world *world)
{
    (void)world;
}

TB_STATIC inline tb_status tb_world_adhere(tb_world *world, tb_error *error)
{
    (void)world, (void)error;
    return TB_OK;
}

/* ---- equalities ---- */

TB_STATIC inline tb_real *tb_equality_begin(tb_world *world, int32_t equality, const tb_real *q,
                                            int32_t memory, tb_real errors[TB_EQUALITY_ROWS],
                                            tb_real drift[TB_EQUALITY_ROWS])
{
    (void)world, (void)equality, (void)q, (void)memory, (void)errors, (void)drift;
    return NULL;
}

TB_STATIC inline void tb_equality_bias(const tb_world *world, const tb_real *values, int32_t rows,
                                       const tb_real drift[TB_EQUALITY_ROWS],
                                       tb_real bias[TB_EQUALITY_ROWS])
{
    (void)world, (void)values, (void)rows, (void)drift, (void)bias;
}

TB_STATIC inline void tb_equality_recovery(const tb_world *world, int32_t rows,
                                           const tb_real errors[TB_EQUALITY_ROWS],
                                           tb_real *recovery)
{
    (void)world, (void)rows, (void)errors, (void)recovery;
}

TB_STATIC inline tb_status tb_equality_predict(tb_world *world, tb_real *u)
{
    (void)world, (void)u;
    return TB_OK;
}

TB_STATIC inline tb_status tb_world_close_loops(tb_world *world, tb_real *q, bool placed,
                                                tb_recovered *recovered, double *closure_error,
                                                tb_error *error)
{
    (void)world, (void)q, (void)placed, (void)recovered, (void)error;
    *closure_error = 0;
    return TB_OK;
}

#endif
