/* Eulerian solids: very deformable bodies on a fixed grid, in frictional contact.
 *
 * Source: Litven, A parallel active-set method for solving frictional contact problems, UBC 2013,
 * chapter 4; Levin, Litven, Jones, Sueda and Pai, Eulerian solid simulation with contact, ACM TOG
 * 2011. A body has a velocity v and a reference coordinate X at every node of the grid near it. X(x)
 * is the place that the material at x had at the start; F = (grad X)^-1 is the deformation gradient,
 * and the body is where its undeformed shape contains X(x). README.md has the formulas.
 *
 * A step: forces, contact impulses, transport of X and v. Each may be split into substeps so that no
 * wave and no particle crosses too much of a cell.
 *
 * Units: m, kg, s, N. Axes: the world's. Arrays by nodes: x fastest, then y, then z. */
#ifndef TB_SOFT_GRID_H
#define TB_SOFT_GRID_H

#include "base/base.h"
#include "grid/mesh/mesh.h"
#include "grid/nodes/touch.h"
#include "tribo_soft.h"

enum { TB_SOFT_NAME = 64, TB_SOFT_PATH = 1024 };
/* obstacles: walls of a text are at most as many as bodies, shapes of rigid bodies are more */
enum { TB_SOFT_MOST_BODIES = 64, TB_SOFT_MOST_OBSTACLES = 256 };

typedef struct tb_soft_body {
    char name[TB_SOFT_NAME];
    tb_soft_solid shape; /* at the start */
    int32_t mesh;        /* number among the scene's meshes, of a shape of that kind */
    tb_soft_material material;
    double velocity[3], angular[3]; /* m/s; rad/s about the shape's position */
} tb_soft_body;

/* A rigid thing: a wall whose velocity is prescribed and constant, or a shape of a rigid body. */
typedef struct tb_soft_obstacle {
    char name[TB_SOFT_NAME];
    tb_soft_solid shape; /* in the rigid body's frame, if there is one */
    double velocity[3];  /* m/s; 0 of a rigid body's shape */
    int32_t rigid;       /* number of the rigid body (partners.c), from 1; 0: a wall */
} tb_soft_obstacle;

/* Nodes of a body inside a box stand, or move with a frame (clamps.c). */
typedef struct tb_soft_clamp {
    int32_t body;
    double lower[3], upper[3];  /* m, at the start */
    double velocity[3];         /* m/s, of the frame; 0 of a rigid body's */
    char partner[TB_SOFT_NAME]; /* name of the rigid body that it moves with; "": none */
    int32_t rigid;              /* its number (partners.c), from 1; 0: none */
    tb_pose start;              /* of the rigid body in its reference pose */
} tb_soft_clamp;

typedef struct tb_soft_options {
    double dt;       /* s, of a step, > 0 */
    double friction; /* mu of all contacts, >= 0 */
    tb_soft_advection advection;
    int32_t most_substeps; /* of one step; more are an error */
    tb_soft_contact_method contact;
    tb_backend_choice backend;  /* of the fields */
    int32_t device;             /* of a GPU */
    tb_backend_choice programs; /* of the two programs */
    double tolerance;           /* of staggered projections: squared ratio (Litven 4.19) */
    int32_t most_projections;   /* of staggered projections */
    int32_t maximum_solves;     /* right-hand sides of one factorization, then a fresh one */
    int32_t threads;            /* 0: all processors */
    tb_soft_first_sets first_sets;
} tb_soft_options;

typedef struct tb_soft_scene {
    char name[TB_SOFT_NAME];
    tb_soft_lattice lattice;
    double gravity[3]; /* m/s^2 */
    tb_soft_options options;
    tb_soft_body bodies[TB_SOFT_MOST_BODIES];
    tb_soft_obstacle obstacles[TB_SOFT_MOST_OBSTACLES];
    tb_soft_clamp clamps[TB_SOFT_MOST_BODIES];
    int32_t number_of_bodies, number_of_obstacles, number_of_clamps;
    tb_soft_mesh *meshes[TB_SOFT_MOST_BODIES]; /* the scene is one of their users */
    int32_t number_of_meshes;
    char rigid[TB_SOFT_PATH]; /* file of rigid bodies, as the text has it; "": none */
    int32_t rigid_line;       /* of the element that names it */
} tb_soft_scene;

/* 5 ms, mu 0.5, second order, 100 substeps, SCHURPA, 1e-6, 50 projections, 500 solves. */
tb_soft_options tb_soft_options_defaults(void);

/* INVALID_ARGUMENT names the thing and the field: grids too small, negative moduli, shapes outside
 * of the grid. Fills in Lame's constants. */
tb_status tb_soft_scene_check(tb_soft_scene *scene, tb_error *error);

/* Adds a closed mesh, whose user the scene becomes, also on failure. RESOURCE_EXHAUSTED. */
tb_status tb_soft_scene_add_mesh(tb_soft_scene *scene, tb_soft_mesh *mesh, tb_error *error);
/* Gives up the scene's meshes; one without meshes needs no clearing. */
void tb_soft_scene_clear(tb_soft_scene *scene);

/* Takes a copy of the scene. INVALID_ARGUMENT as tb_soft_scene_check and for bodies that overlap no
 * cell; RESOURCE_EXHAUSTED. */
tb_status tb_soft_world_create(const tb_soft_scene *scene, tb_soft_world **world, tb_error *error);

const tb_soft_scene *tb_soft_world_scene(const tb_soft_world *world);
tb_soft_field *tb_soft_world_field(tb_soft_world *world, int32_t body);
const tb_soft_contact *tb_soft_world_contacts(const tb_soft_world *world, int32_t *count);
/* kinetic, elastic and potential energy (J), momentum and mass centre of one body; NULL: not asked */
void tb_soft_world_measure(tb_soft_world *world, int32_t body, double energy[3], double momentum[3],
                           double centre[3]);

/* ---- scene_xml.c ---- */

/* Reads the scene format (README.md). INVALID_ARGUMENT names file, line, element and attribute, and
 * is also for meshes in files (tb_soft_import puts them into the text); RESOURCE_EXHAUSTED beyond the
 * limits of tb_soft_scene. The caller clears the scene. */
tb_status tb_soft_scene_read(const char *text, size_t size, const char *name, tb_soft_scene *scene,
                             tb_error *error);

#endif
