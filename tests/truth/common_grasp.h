/* Shared by the truth cases about grasps: a parallel jaw with force motors, and objects. */
#ifndef COMMON_GRASP_H
#define COMMON_GRASP_H

#include "common_truth.h"

#define JAW_OPENING 0.1 /* m, between the pads */

/* A jaw that closes along Y, its base frame between the pads; each pad is pushed by a motor of up
 * to `force` (N). Friction of the pads: mu. */
tb_scene *grasp_jaw(double force, double mu);

/* A free body of one box or sphere, `mass` kg, friction mu. */
tb_scene *grasp_object(tb_shape_type type, const double size[3], double mass, double mu);

/* A request of both with one pose at the object's origin. */
tb_grasp_request grasp_request(const tb_scene *hand, const tb_scene *object,
                               const tb_grasp_pose *poses, int32_t number_of_poses);

/* Plays all; calls `take` for each result. budget: ns a slice. */
void grasp_play(const tb_grasp_request *request, int64_t budget,
                void (*take)(void *context, const tb_grasp_result *result), void *context);

#endif
