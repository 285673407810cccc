/* Grasp results as messages of the wire. */
#ifndef SERVER_GRASP_MESSAGE_H
#define SERVER_GRASP_MESSAGE_H

#include "grasp/replay.h"
#include "tribo/v1/grasp.pb-c.h"
#include "wire/wire.h"

/* A message in the arena that borrows the result; NULL if out of memory. */
Tribo__V1__GraspResult *td_grasp_result_message(td_wire *, const tb_grasp_result *);
/* The same of a hand. */
Tribo__V1__HandInfo *td_grasp_hand_message(td_wire *, const tb_hand_info *);
/* The same of a trial's film; `grasp`: index of the pose. */
Tribo__V1__GraspTrajectory *td_grasp_trajectory_message(td_wire *, int32_t grasp,
                                                        const tb_grasp_trial *,
                                                        const tb_grasp_film *);
void td_grasp_progress_message(const tb_grasp_progress *, Tribo__V1__GraspProgress *);

#endif
