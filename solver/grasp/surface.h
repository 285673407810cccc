/* An object's surface as triangles. */
#ifndef TB_GRASP_SURFACE_H
#define TB_GRASP_SURFACE_H

#include "grasp/grasp.h"

typedef struct grasp_triangle {
    tb_vec3 corner, edge1, edge2, normal; /* m, the object's frame; normal outward, unit */
    double area;                          /* m^2, area of this triangle and all before it */
} grasp_triangle;

typedef struct grasp_surface {
    grasp_triangle *triangles;
    int32_t count, capacity;
    double area; /* m^2 */
} grasp_surface;

/* Surface of all shapes that can collide, in the frame of the world's only child;
 * INVALID_ARGUMENT if the world has several children, or if no shape collides. */
tb_status grasp_surface_make(const tb_model *model, grasp_surface *surface, tb_error *error);
void grasp_surface_free(grasp_surface *surface);

#endif
