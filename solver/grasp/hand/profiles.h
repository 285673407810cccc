/* Known hands: found by their joints, see profiles.c. */
#ifndef TB_GRASP_PROFILES_H
#define TB_GRASP_PROFILES_H

#include "grasp/grasp.h"

/* Angle (rad) or place (m) of a joint with the hand open and closed; a NULL joint ends a list. */
typedef struct grasp_posture {
    const char *joint; /* end of the name */
    double open, close;
} grasp_posture;

typedef struct grasp_profile {
    const char *name, *title;
    const char *joints[6]; /* ends of the names of joints that only this hand has; NULL: no more */
    const char *anchor;    /* joint ... */
    bool
        own_body; /* ... whose body or, if false, that body's parent, is the frame of the numbers below */
    double position[3];           /* m, origin of the tool frame */
    double axis[3], approach[3];  /* its y and z axes, unit vectors, normal to each other */
    const grasp_posture *posture; /* NULL: the controls come from the motion of the fingertips */
} grasp_profile;

/* The entry of this name for this file's joints. NOT_FOUND names the known profiles,
 * INVALID_ARGUMENT the joint that the hand lacks. *found is NULL for "" and NULL. */
tb_status grasp_profile_find(const char *name, const tb_model *file, const grasp_profile **found,
                             tb_error *error);
/* The joint of the file whose name ends so, behind no letter or digit; -1: none. */
int32_t grasp_profile_joint(const tb_model *file, const char *end);
/* The tool frame in the frame of the file's body `base` (0: the world), at the file's reference
 * coordinates. */
grasp_frame grasp_profile_tool(const grasp_profile *profile, const tb_model *file, int32_t base);
/* Control at which a servo of the file holds the posture; false if the posture has none of its
 * joints, or if it is no servo. */
bool grasp_profile_controls(const grasp_profile *profile, const tb_model *file, int32_t actuator,
                            double *open, double *close);

#endif
