/* The soft bodies of a state, for the files that keep (attached.c) and step (coupled.c) them. */
#ifndef TB_SOFT_ATTACHED_H
#define TB_SOFT_ATTACHED_H

#include "grid/grid_internal.h"
#include "step/soft.h"

struct tb_state_soft {
    tb_soft_world *world;
    tb_soft_certificate certificate; /* of the last step */
    tb_soft_obstacle *walls; /* of the scene's text, for the velocities of those that move */
    int32_t number_of_walls;
    tb_body_motion *motions; /* bodies of the model: scratch */
    tb_bytes backup;         /* the world before a step that may fail */
    bool fresh;              /* made for a new state, whose first reset keeps the world */
};

#endif
