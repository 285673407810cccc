/* libtribo: exact Coulomb contact dynamics.
 *
 * The library's first public header; it includes a header for each subject. tribo_qp.h,
 * tribo_poulsen.h and tribo_function.h extend it. A caller describes a scene (`tb_scene`, by the
 * builder of tribo_scene.h or from MJCF, URDF, OBJ and STL files), compiles it into an immutable
 * `tb_model`, makes one `tb_state` per world and steps states with a `tb_stepper`. Every step of
 * every world returns a `tb_certificate`: the residual and errors of that step.
 *
 * Conventions. SI units, radians, seconds. World frame right-handed, Z up. Quaternions are
 * (w, x, y, z), unit, and rotate body coordinates into the parent's or world's. Arrays are
 * row-major. Contact normals point from shape A to shape B in world axes; a positive gap is a
 * separation. Impulses are N s (N m s for torques), forces N (N m).
 *
 * Errors. A function that can fail returns `tb_status` and, where it has a `tb_error *` (may be
 * NULL), writes a message that names the faulty argument, element or file. The library never aborts
 * or exits.
 *
 * Threads. A `tb_model` may be shared by any number of threads. A `tb_state`, a `tb_scene` and a
 * `tb_stepper` belong to one thread at a time. */
#ifndef TRIBO_H
#define TRIBO_H

#include "tribo_base.h"
#include "tribo_scene.h"
#include "tribo_model.h"
#include "tribo_step.h"
#include "tribo_grasp.h"
#include "tribo_problem.h"

#define TB_VERSION "0.1.0"

#endif
