/* The soft bodies of a state, for the rooms below solver/grid, which defines these functions
 * (grid/attached.c, grid/coupled.c). A state has some if its model has. */
#ifndef TB_STEP_SOFT_H
#define TB_STEP_SOFT_H

#include "step/step.h"

typedef struct tb_state_soft tb_state_soft;

/* The model's soft bodies at their start. */
tb_status tb_state_soft_create(const tb_model *model, tb_state_soft **soft, tb_error *error);
void tb_state_soft_destroy(tb_state_soft *soft); /* NULL is fine */
/* Back to their start; sets the velocities of walls that move. */
tb_status tb_state_soft_reset(tb_state *state, tb_error *error);
tb_status tb_state_soft_fork(const tb_state *state, tb_state_soft **fork, tb_error *error);
/* As bytes, which tb_bytes_destroy frees, and new ones from bytes: the contracts of tb_soft_world_save
 * and tb_soft_world_restore. */
tb_status tb_state_soft_save(const tb_state *state, unsigned char **bytes, size_t *size,
                             tb_error *error);
tb_status tb_state_soft_read(const tb_state *state, const unsigned char *bytes, size_t size,
                             tb_state_soft **soft, tb_error *error);

/* tb_soft_model_nodes of a state that has soft bodies. */
int64_t tb_state_soft_nodes(const tb_state *state);

/* One step of a state with soft bodies: the contract of tb_world_step. UNSUPPORTED: a scheme or a precision
 * that soft bodies have not. FAILED_PRECONDITION as tb_soft_step; the state is then as it was. */
tb_status tb_soft_step_state(tb_state *state, const tb_step_options *options,
                             tb_workspace *workspace, tb_certificate *certificate, tb_error *error);

/* A fork without soft bodies. Defined in step/state. */
tb_status tb_state_fork_rigid(const tb_state *state, tb_state **fork, tb_error *error);
/* Moves the numbers and contacts of a fork, which tb_state_fork_rigid made, into the state; the fork gets
 * the contacts that the state had. */
void tb_state_put_back_rigid(tb_state *state, tb_state *fork);
/* Multiplies the impulses of the last step by a factor: from a substep to a whole step, or back.
 * RESOURCE_EXHAUSTED. */
tb_status tb_state_scale_impulses(tb_state *state, double factor);
/* Counts all substeps since the state `before` as one step that ends at `time` (s). */
void tb_state_count_one_step(tb_state *state, const tb_state *before, double time);

#endif
