/* A compiled scene as the messages that a viewer, a planner or a learner reads. */
#ifndef SERVER_SCENE_MESSAGE_H
#define SERVER_SCENE_MESSAGE_H

#include "wire/wire.h"

/* The digest of a mesh or height field. */
typedef char td_wire_digest[65];

/* Fills bodies, joints, shapes, actuators, sites, tendons and meshes. Names are borrowed from the
 * model; digests, of the meshes by index and then of the height fields, from the caller. `wire` has
 * failed if memory ran out. */
void td_wire_scene(td_wire *, const tb_model *, td_wire_digest *digests,
                   Tribo__V1__GetSceneResponse *);
/* Names of all elements of a kind, by index. */
char **td_wire_names(td_wire *, const tb_model *, tb_handle_kind, int32_t count, size_t *number);

/* Geometry of a mesh or height field. *triangles (two: the mesh and its hull) and *heights are
 * borrowed by the message and freed by the caller after it is sent. */
tb_status td_wire_mesh(td_wire *, const tb_model *, int32_t mesh, tb_triangles triangles[2],
                       Tribo__V1__MeshGeometry **, tb_error *);
tb_status td_wire_height_field(td_wire *, const tb_model *, int32_t field, float **heights,
                               Tribo__V1__HeightFieldGeometry **, tb_error *);

#endif
