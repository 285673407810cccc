/* Eulerian solids: very deformable bodies on a grid, in frictional contact.
 *
 * Source: Litven, A parallel active-set method for solving frictional contact problems, UBC 2013,
 * chapter 4; Levin, Litven, Jones, Sueda and Pai, Eulerian solid simulation with contact, ACM TOG
 * 2011. A scene is a text in the format of solver/grid/README.md. A world is one scene in motion. A
 * world is used by one thread at a time. */
#ifndef TRIBO_SOFT_H
#define TRIBO_SOFT_H

#include "tribo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Method of the contact impulses. */
typedef enum tb_soft_contact_method {
    TB_SOFT_SCHURPA, /* staggered projections, one factorization a program */
    TB_SOFT_DIRECT,  /* the same, and every working set is factored */
    TB_SOFT_NEWTON   /* the exact cone, by the library's solver `newton` */
} tb_soft_contact_method;

/* Where the working sets that the two programs of a substep begin with come from. */
typedef enum tb_soft_first_sets {
    TB_SOFT_SETS_SWEPT,    /* the impulses of the substep before, and sweeps over single contacts */
    TB_SOFT_SETS_RECALLED, /* impulses and sets of the substep before, cell by cell (Litven 7.2) */
    TB_SOFT_SETS_EMPTY     /* no impulses, no active constraint */
} tb_soft_first_sets;

/* Counts of one of the two programs of a step. */
typedef struct tb_soft_program_counts {
    int32_t variables;      /* contacts, or twice the contacts with an impulse */
    int32_t half_bandwidth; /* of the program's Hessian */
    int32_t free_variables; /* at the solution */
    int32_t iterations;     /* the most of one solve */
    int32_t solves;         /* right-hand sides */
    int32_t factorizations;
    int32_t resets;
    int32_t fallbacks; /* solves that a card left to the processor: too large, or not converged */
    int32_t warm;      /* active constraints that the first working set had */
    int32_t active;    /* constraints active at the solution */
    double residual;   /* largest relative KKT residual */
    double bytes;      /* that H, its factors and the solves with them move at least; sum */
    double factor_seconds, solve_seconds, seconds;
} tb_soft_program_counts;

/* The exactness of a step, or of several: worst values, sums in the fields marked so. */
typedef struct tb_soft_certificate {
    tb_status status;                   /* OK, NOT_CONVERGED: a program or the projections */
    double time;                        /* s, at the end */
    int32_t substeps;                   /* sum */
    double courant;                     /* largest sum over axes of |v| dt / h */
    double wave;                        /* dt over the longest stable one */
    double smallest_volume;             /* smallest det F; F: deformation gradient; 1: undeformed */
    double kinetic, elastic, potential; /* J, at the end; potential of gravity */
    double damped;                      /* J, by the material's damping; sum */
    double contact_work; /* J, change of kinetic energy by contact and friction impulses; sum */
    double pushed;       /* J, the most that pushing overlaps apart adds to the energy; sum */
    double momentum[3], angular[3]; /* kg m/s; kg m^2/s about the origin; at the end */
    /* kg m/s, of all bodies: change that neither gravity nor obstacles nor clamped nodes explain;
     * largest */
    double momentum_error;
    double transport_repair; /* m/s: largest rigid velocity that transport adds to keep momentum */
    double mass_error;       /* largest |sum of masses / mass - 1| before masses are scaled */
    int32_t contacts;        /* cells, at the end */
    int32_t projections;     /* most of one substep */
    tb_soft_program_counts normal, tangential;
    double cone_error;  /* N s, distance of impulses from Coulomb's law with the circular cone */
    double penetration; /* m, deepest at cells in contact */
    /* m/s: largest error of the programs' predicted velocity of a touched rigid body */
    double prediction_error;
    double bytes; /* that the steps move at least: fields, search for contacts, programs; sum */
} tb_soft_certificate;

typedef struct tb_soft_world tb_soft_world;

/* Replacements for values of a scene's text; zeros leave them. */
typedef struct tb_soft_load_options {
    int32_t threads;     /* 0: all processors */
    double dt;           /* s; 0: the scene's */
    bool choose_contact; /* `contact` replaces the scene's */
    tb_soft_contact_method contact;
    tb_backend_choice backend; /* GPU: fields and programs on the card, where the scene fits it */
    tb_soft_first_sets first_sets;
} tb_soft_load_options;

/* Sizes of a world. */
typedef struct tb_soft_info {
    const char *name; /* borrowed from the world */
    double dt;        /* s */
    int32_t bodies, walls;
    int32_t nodes[3];
} tb_soft_info;

/* Whether a text begins as a scene of this kind: its first element is `soft`. */
bool tb_soft_is_scene(const char *text, size_t size);

/* Makes the world of a scene. `name` appears in messages; `options` may be NULL. INVALID_ARGUMENT names
 * file, line, element and attribute of a fault; RESOURCE_EXHAUSTED. */
tb_status tb_soft_world_load(const char *text, size_t size, const char *name,
                             const tb_soft_load_options *options, tb_soft_world **world,
                             tb_error *error);
void tb_soft_world_destroy(tb_soft_world *world); /* NULL is fine */
void tb_soft_world_info(const tb_soft_world *world, tb_soft_info *info);
double tb_soft_world_time(const tb_soft_world *world); /* s */
/* Borrowed from the world; "": there is no such body. */
const char *tb_soft_world_body_name(const tb_soft_world *world, int32_t body);

/* Steps. `certificate` (may be NULL) covers these steps. FAILED_PRECONDITION: more substeps than
 * the scene allows, or a body that leaves the grid; DIVERGED: a folded map or velocities that are
 * not finite; RESOURCE_EXHAUSTED: memory for contacts and programs. Too many substeps, velocities
 * that are not finite and a body that leaves the grid are found before a substep changes anything:
 * the world then keeps its last whole substep. After another failure it must be restored. */
tb_status tb_soft_step(tb_soft_world *world, int32_t steps, tb_soft_certificate *certificate,
                       tb_error *error);
/* Joins the certificate of later steps to that of earlier ones. */
void tb_soft_certificate_merge(tb_soft_certificate *whole, const tb_soft_certificate *next);

/* The state as bytes: fields, time, warm sets. A restored world continues with the same bytes. The
 * caller frees *bytes by tb_bytes_destroy. restore: DATA_LOSS for damaged bytes, FAILED_PRECONDITION
 * for those of another scene; the world is then unchanged. */
tb_status tb_soft_world_save(const tb_soft_world *world, unsigned char **bytes, size_t *size,
                             tb_error *error);
tb_status tb_soft_world_restore(tb_soft_world *world, const unsigned char *bytes, size_t size,
                                tb_error *error);

/* The surface of a body as a closed mesh of triangles, counter-clockwise seen from outside: vertices (x 3, m), triangles
 * (x 3), the contact pressure of each triangle (Pa, of the last substep). The caller frees the three by
 * free. */
typedef struct tb_soft_surface {
    double *vertices;
    int32_t *triangles;
    double *pressure;
    int32_t number_of_vertices, number_of_triangles;
} tb_soft_surface;
tb_status tb_soft_world_surface(tb_soft_world *world, int32_t body, tb_soft_surface *surface,
                                tb_error *error);

/* Approximate size, in bytes, of the surfaces of all bodies, with `number` bytes for a coordinate
 * or pressure. */
size_t tb_soft_world_surface_bytes(const tb_soft_world *world, size_t number);

/* ---- soft bodies of a state ----
 *
 * tb_scene_load reads the format of soft bodies too: the model has their walls, and the rigid bodies that
 * the text includes, as shapes and bodies; its states have soft bodies, which tb_step moves and
 * which snapshots, forks and resets hold. */

/* The soft bodies of a state, borrowed until it is reset, restored or destroyed; NULL: it has none. */
tb_soft_world *tb_state_soft_world(const tb_state *state);
/* Certificate of the state's last step; false if the state has no soft bodies. */
bool tb_state_soft_certificate(const tb_state *state, tb_soft_certificate *certificate);
/* Replaces the scene's method; later resets and forks keep the replacement. */
void tb_soft_world_choose_contact(tb_soft_world *world, tb_soft_contact_method contact);
/* Number of soft bodies of a model, and their memory (bytes) in a state and, in addition, on a card that
 * has them; 0: none. The card's is that of fields; contacts and programs add to it as they come. */
int32_t tb_soft_model_bodies(const tb_model *model);
uint64_t tb_soft_model_bytes(const tb_model *model);
uint64_t tb_soft_model_card_bytes(const tb_model *model);
/* Nodes in the boxes of the soft bodies at their start; 0: none. From TB_SOFT_CARD_NODES on a card is faster than 16
 * threads of a processor, and TB_BACKEND_AUTO takes it (tests/bench/gpu/results/README.md). */
enum { TB_SOFT_CARD_NODES = 4096 };
int64_t tb_soft_model_nodes(const tb_model *model);

/* VTK XML files for ParaView as text, which the caller frees by tb_bytes_destroy: `volume` is an
 * UnstructuredGrid (.vtu) of the cells with material, with X, v, mass and body at points and Cauchy
 * stress (xx yy zz xy yz xz, Pa) and the occupied part in cells; else PolyData (.vtp) of the surfaces
 * with contact pressure and body. */
tb_status tb_soft_world_vtk(tb_soft_world *world, bool volume, unsigned char **text, size_t *size,
                            tb_error *error);

#ifdef __cplusplus
}
#endif
#endif
