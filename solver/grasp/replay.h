/* Trials of grasps, played again to be looked at. */
#ifndef TB_GRASP_REPLAY_H
#define TB_GRASP_REPLAY_H

#include "tribo.h"

/* Called with each shown state of a replay: `time` s since the protocol began, `step` the
 * certificate of the last step. Both are the library's. A status other than OK ends the replay. */
typedef tb_status tb_grasp_show(void *context, tb_state *state, double time,
                                const tb_certificate *step, tb_error *);
/* Plays one trial of a grasp again, as its job played it, and shows its first state, one every
 * `interval` s, and the last. An object that the hand loses is followed to the end of the protocol.
 * The request has one pose; `copy` counts from 0, the copy that is not perturbed. On success the
 * caller owns *model, the world of the unperturbed copies, by whose indices the states go.
 * INVALID_ARGUMENT as tb_grasp_job_create, and for another copy. */
tb_status tb_grasp_replay(const tb_grasp_request *, int32_t copy, double interval, tb_grasp_show *,
                          void *context, tb_model **model, tb_error *);

#endif
