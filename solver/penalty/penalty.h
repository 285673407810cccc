/* The volume law as a way of stepping: TB_SCHEME_VOLUME.
 *
 * Contacts are forces that depend smoothly on poses and velocities (volume_law.h). One step of dt is
 * one call of an integrator of ordinary differential equations on y = (q, u, W): coordinates,
 * velocities, and the work of the contacts, whose balance with the energy shows the integrator's
 * error. Quaternions are integrated as four numbers and have unit length again after the step. Every
 * step starts from q and u alone, so that a restored or forked world continues with the same bytes.
 *
 * A tb_penalty is the working memory of one thread: the solids of the last model, pairs that are
 * near each other, and arrays. It never changes a result. */
#ifndef TB_PENALTY_H
#define TB_PENALTY_H

#include "penalty/overlap.h"
#include "step/step.h"

typedef struct tb_penalty tb_penalty;

/* One step of one world; the contract of tb_world_step. UNSUPPORTED names an element of the model
 * that the law has no force for. The workspace keeps its tb_penalty. */
tb_status tb_penalty_step(tb_state *state, const tb_step_options *options, tb_workspace *workspace,
                          tb_certificate *certificate, tb_error *error);
void tb_penalty_destroy(tb_penalty *penalty); /* NULL is fine */

#endif
