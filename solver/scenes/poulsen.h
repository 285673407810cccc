/* Poulsen's ball grids and ball piles as lists of contacts, in his contact order. */
#ifndef TB_SCENES_POULSEN_H
#define TB_SCENES_POULSEN_H

#include "scenes/scenes.h"

/* Spheres of radius POULSEN_RADIUS_M over a fixed ground, which is body 0: a vertex of the contact
 * graph like any other. */
typedef struct tb_poulsen_scene {
    int32_t bodies, contacts;
    double *position; /* bodies x 3, m; the ground's is the origin */
    int32_t *a,
        *b; /* contacts: bodies, a below, before or left of b; the normal points from a to b */
} tb_poulsen_scene;

#define TB_POULSEN_RADIUS_M 1.0
#define TB_POULSEN_MASS_KG  20.0
#define TB_POULSEN_DT_S     0.01

/* Creates the scene of this name; NOT_FOUND if it is not one of Poulsen's. The caller destroys
 * it. */
tb_status tb_poulsen_scene_create(const char *name, tb_poulsen_scene *scene, tb_error *error);
void tb_poulsen_scene_destroy(tb_poulsen_scene *scene);

#endif
