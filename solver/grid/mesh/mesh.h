/* Closed meshes as shapes of soft bodies.
 *
 * A mesh becomes a signed distance on a lattice that is finer than the grid of the bodies: grid passes ask for
 * distances at tens of points a cell, and a lattice answers each by eight numbers. The sign is by
 * the winding number, so that surfaces which cut themselves have an inside, too. */
#ifndef TB_SOFT_MESH_H
#define TB_SOFT_MESH_H

#include "base/base.h"
#include "grid/mesh/samples.h"

enum { TB_SOFT_MOST_TRIANGLES = 200000, TB_SOFT_DIGEST = 65 };

typedef struct tb_soft_mesh tb_soft_mesh;

/* Takes a copy of the triangles; one user. Triangles that all face inwards are turned round.
 * INVALID_ARGUMENT: an edge without a second triangle, which the message places; no volume; numbers
 * that are no vertices; RESOURCE_EXHAUSTED: more than TB_SOFT_MOST_TRIANGLES, or memory. */
tb_status tb_soft_mesh_create(const double *vertices, int32_t number_of_vertices,
                              const int32_t *triangles, int32_t number_of_triangles,
                              tb_soft_mesh **mesh, tb_error *error);
void tb_soft_mesh_retain(tb_soft_mesh *mesh);
void tb_soft_mesh_release(tb_soft_mesh *mesh); /* the last user frees it; NULL is fine */

double tb_soft_mesh_volume(const tb_soft_mesh *mesh); /* m^3 */
void tb_soft_mesh_bounds(const tb_soft_mesh *mesh, double lower[3], double upper[3]);
/* SHA-256 of vertices and triangles, as text. */
const char *tb_soft_mesh_digest(const tb_soft_mesh *mesh);

/* Measures the distance on cubes of at most `step` (m), wider for a large mesh, with `margin` (m)
 * around the mesh, unless it is measured. Not for several threads at once. RESOURCE_EXHAUSTED. */
tb_status tb_soft_mesh_measure(tb_soft_mesh *mesh, double step, double margin, int32_t threads,
                               tb_error *error);
/* Borrowed from the mesh; only after tb_soft_mesh_measure. */
const tb_soft_samples *tb_soft_mesh_samples(const tb_soft_mesh *mesh);

#endif
