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
#include "grid/material.h"
#include "grid/shape.h"
#include "grid/transport.h"

enum { TB_SOFT_NAME = 64, TB_SOFT_MOST_BODIES = 64, TB_SOFT_MOST_OBSTACLES = 64 };
/* layers of nodes around a body to which X and v are extrapolated; a body keeps that many nodes away
 * from the grid's faces */
enum { TB_SOFT_LAYERS = 3, TB_SOFT_NO_LAYER = 255 };

typedef struct tb_soft_lattice {
    int32_t nodes[3]; /* along x, y, z */
    double origin[3]; /* m, of node (0, 0, 0) */
    double spacing[3];
} tb_soft_lattice;

typedef struct tb_soft_body {
    char name[TB_SOFT_NAME];
    tb_soft_solid shape; /* at the start */
    tb_soft_material material;
    double velocity[3], angular[3]; /* m/s; rad/s about the shape's position */
} tb_soft_body;

/* A rigid thing that is not pushed back: its velocity is prescribed and constant. */
typedef struct tb_soft_obstacle {
    char name[TB_SOFT_NAME];
    tb_soft_solid shape;
    double velocity[3]; /* m/s */
} tb_soft_obstacle;

/* Nodes of a body inside a box do not move. */
typedef struct tb_soft_clamp {
    int32_t body;
    double lower[3], upper[3]; /* m */
} tb_soft_clamp;

/* Method of the contact impulses. */
typedef enum tb_soft_contact_method {
    TB_SOFT_SCHURPA, /* staggered projections, one factorization a program */
    TB_SOFT_DIRECT,  /* the same, and every working set is factored */
    TB_SOFT_NEWTON   /* the exact cone, by the library's solver `newton` */
} tb_soft_contact_method;

typedef struct tb_soft_options {
    double dt;       /* s, of a step, > 0 */
    double friction; /* mu of all contacts, >= 0 */
    tb_soft_advection advection;
    int32_t most_substeps; /* of one step; more are an error */
    tb_soft_contact_method contact;
    double tolerance;         /* of staggered projections: squared ratio (Litven 4.19) */
    int32_t most_projections; /* of staggered projections */
    int32_t maximum_solves;   /* right-hand sides of one factorization, then a fresh one */
    int32_t threads;          /* 0: all processors */
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
} tb_soft_scene;

/* Counts of one of the two programs of a step. */
typedef struct tb_soft_program_counts {
    int32_t variables;      /* contacts, or twice the contacts with an impulse */
    int32_t half_bandwidth; /* of H */
    int32_t free_variables; /* at the solution: the size of G */
    int32_t iterations;     /* the most of one solve */
    int32_t solves;         /* right-hand sides */
    int32_t factorizations;
    int32_t resets;
    int32_t warm, active; /* of the solution's active constraints, those in the first working set */
    double residual;      /* largest relative KKT residual */
    double factor_seconds, solve_seconds, seconds;
} tb_soft_program_counts;

/* The exactness of a step, or of several: worst values, sums of counts where they say so. */
typedef struct tb_soft_certificate {
    tb_status status;                   /* OK, NOT_CONVERGED: a program or the projections */
    double time;                        /* s, at the end */
    int32_t substeps;                   /* sum */
    double courant;                     /* largest sum over axes of |v| dt / h */
    double wave;                        /* dt over the longest stable one */
    double smallest_volume;             /* det F */
    double kinetic, elastic, potential; /* J, at the end; potential of gravity */
    double damped;                      /* J, by the material's damping; sum */
    double contact_work; /* J, change of kinetic energy by contact and friction impulses; sum */
    double momentum[3], angular[3]; /* kg m/s; kg m^2/s about the origin; at the end */
    /* kg m/s, of all bodies: change that neither gravity nor obstacles nor clamps explain; largest */
    double momentum_error;
    double transport_repair; /* m/s: largest rigid velocity that keeps momentum in transport */
    double mass_error;       /* largest |sum of masses / mass - 1| before masses are scaled */
    int32_t contacts;        /* cells, at the end */
    int32_t projections;     /* most of one substep */
    tb_soft_program_counts normal, tangential;
    double cone_error;  /* N s, distance of impulses from Coulomb's law with the circular cone */
    double penetration; /* m, deepest at cells in contact */
} tb_soft_certificate;

/* A body's fields. nodes x 3 or nodes; valid where `layer` is at most TB_SOFT_LAYERS. */
typedef struct tb_soft_field {
    double *X;      /* m, reference coordinate */
    double *v;      /* m/s */
    double *mass;   /* kg; 0 outside */
    double *depth;  /* m, distance of X from the shape's surface */
    double *octant; /* nodes x 8, kg, of the cell above the node */
    uint8_t *layer; /* 0: the node has mass; 1 to TB_SOFT_LAYERS: steps from one that has */
    uint8_t *held;  /* 1: clamped; NULL: no clamps */
    int32_t lower[3], upper[3]; /* nodes of layers up to TB_SOFT_LAYERS, upper excluded */
    int32_t outside;            /* axis + 1 along which a layer leaves the grid; 0: none does */
    double stiffness;           /* Pa, the bound of material.h, of the last stress */
} tb_soft_field;

/* A cell in contact, in the order of the programs. */
typedef struct tb_soft_contact {
    uint64_t key; /* cell and pair, ascending */
    int32_t cell; /* number of its lowest node */
    int32_t a, b; /* bodies; b >= number_of_bodies: obstacle b - number_of_bodies */
    double area;  /* m^2 */
    double gap;   /* m, negative: overlap */
    double point[3], normal[3], tangent[2][3]; /* m; unit, from b to a */
    double weights[2][8];  /* of the corners in the velocity of a and of b; each sums to 1 */
    double alpha, beta[2]; /* N s, on a along normal and tangents */
    uint8_t active;        /* bit 0: alpha is 0; bits 1 to 4: facets that hold with equality */
} tb_soft_contact;

typedef struct tb_soft_world tb_soft_world;

/* 5 ms, mu 0.5, second order, 100 substeps, SCHURPA, 1e-6, 50 projections, 500 solves. */
tb_soft_options tb_soft_options_defaults(void);

/* INVALID_ARGUMENT names the thing and the field: grids too small, negative moduli, shapes outside
 * of the grid. Fills in Lame's constants. */
tb_status tb_soft_scene_check(tb_soft_scene *scene, tb_error *error);

/* Takes a copy of the scene. INVALID_ARGUMENT as tb_soft_scene_check and for bodies that overlap no
 * cell; RESOURCE_EXHAUSTED. */
tb_status tb_soft_world_create(const tb_soft_scene *scene, tb_soft_world **world, tb_error *error);
void tb_soft_world_destroy(tb_soft_world *world); /* NULL is fine */

/* Steps. `certificate` (may be NULL) is about these steps. On failure the world is as after the last
 * whole step: FAILED_PRECONDITION (more substeps than allowed; a body that leaves the grid),
 * DIVERGED (a folded map, numbers that are not finite), RESOURCE_EXHAUSTED. */
tb_status tb_soft_step(tb_soft_world *world, int32_t steps, tb_soft_certificate *certificate,
                       tb_error *error);
/* Joins the certificate of later steps to that of earlier ones. */
void tb_soft_certificate_merge(tb_soft_certificate *whole, const tb_soft_certificate *next);

const tb_soft_scene *tb_soft_world_scene(const tb_soft_world *world);
double tb_soft_world_time(const tb_soft_world *world);
tb_soft_field *tb_soft_world_field(tb_soft_world *world, int32_t body);
const tb_soft_contact *tb_soft_world_contacts(const tb_soft_world *world, int32_t *count);
/* kinetic, elastic and potential energy (J), momentum and mass centre of one body; NULL: not asked */
void tb_soft_world_measure(tb_soft_world *world, int32_t body, double energy[3], double momentum[3],
                           double centre[3]);

/* The state as bytes: fields, time, warm sets. A restored world continues with the same bytes.
 * save: the caller frees by tb_bytes_free. restore: DATA_LOSS for bytes of another scene or damaged
 * ones; the world is then unchanged. */
tb_status tb_soft_world_save(const tb_soft_world *world, tb_bytes *bytes, tb_error *error);
tb_status tb_soft_world_restore(tb_soft_world *world, const unsigned char *bytes, size_t size,
                                tb_error *error);

#endif
