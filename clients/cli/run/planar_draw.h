/* Drawing of `tribo run --draw`: the outlines of a planar world, its contacts and their forces. */
#ifndef CLI_PLANAR_DRAW_H
#define CLI_PLANAR_DRAW_H

#include "tribo.h"

/* Writes an SVG file of the state's present poses, seen along the hinges of its bodies, with the
 * contact forces of the last step of `dt` seconds. The path "-" is standard output. UNSUPPORTED for
 * a model without a hinge. */
tb_status planar_draw(const tb_model *model, const tb_state *state, double dt, const char *title,
                      const char *path, tb_error *error);

#endif
